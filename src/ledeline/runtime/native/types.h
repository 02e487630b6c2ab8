/* The Python types of the engine, and what they share. */

#ifndef LEDELINE_TYPES_H
#define LEDELINE_TYPES_H

#include "float_mode.h"
#include "held_tensors.h"
#include "model.h"

/* Around what is computed: other threads of Python go on, and floats have their default mode. */
#define BEGIN_COMPUTING Py_BEGIN_ALLOW_THREADS FloatMode mode_before = enter_float_mode();
#define END_COMPUTING leave_float_mode(mode_before); Py_END_ALLOW_THREADS

typedef struct {
    PyObject_HEAD
    Model model;
} ModelObject;

/* Objects are made whole: the types have `new` and no `init`. NULL with a Python error. */
PyObject *make_model_type(PyObject *module);
PyObject *make_search_type(PyObject *module);
PyObject *make_follow_type(PyObject *module);
PyObject *make_verifier_type(PyObject *module);

/* An object of zeros, or NULL with a Python error. */
void *new_object(PyTypeObject *type);
void free_object(PyObject *self);

/* The model in a Python object, or NULL with a TypeError. */
const Model *model_of(PyObject *object);

/* The kernels of a kind, or NULL with a Python error. */
const Kernels *kernels_named(const char *name);

/* What attention mixes for a source, (I, H) floats as bytes, or NULL with a Python error. */
PyObject *memory_values(const Model *model, const Memory *memory);

/* Lists of ids, (number) of them, none empty if `filled`. NULL with a Python error. */
typedef struct {
    int32_t **ids;
    Size *lengths;
    Size number;
} IdLists;
int id_lists_of(PyObject *sequence, Size limit, int filled, IdLists *lists);
void drop_id_lists(IdLists *lists);

#endif

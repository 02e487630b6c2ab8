/* The Python types of the engine. */

#ifndef LEDELINE_TYPES_H
#define LEDELINE_TYPES_H

#include "held_tensors.h"
#include "model.h"

typedef struct {
    PyObject_HEAD
    Model model;
    int made;
} ModelObject;

PyObject *make_model_type(PyObject *module);
PyObject *make_search_type(PyObject *module);
PyObject *make_follow_type(PyObject *module);

/* The model in a Python object, or NULL with a TypeError. */
ModelObject *model_of(PyObject *object);

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

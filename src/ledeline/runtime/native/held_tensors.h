/* Tensors that Python holds, as the engine reads them. */

#ifndef LEDELINE_HELD_TENSORS_H
#define LEDELINE_HELD_TENSORS_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "linear.h"

typedef struct {
    Tensors tensors;
    Tensor *list;
    Py_buffer *views;
    PyObject **names;
    Size number; /* that are held */
} HeldTensors;

/* A dict of name -> (type, shape, buffer), with the types of safetensors: F32, F16, I8. Returns 0 with a
   Python error if it is something else, or if a buffer does not have the size of its shape. */
int hold_tensors(PyObject *dict, HeldTensors *held);
void drop_tensors(HeldTensors *held);

/* A ValueError with the sentence of `tensors`, or a MemoryError without one. */
void raise_tensors_error(const Tensors *tensors);

/* The ids in a sequence of whole numbers from 0 to `limit` - 1; a new array of at least one, or NULL with
   a Python error. */
int32_t *ids_of(PyObject *sequence, Size limit, Size *number);

#endif

#include "held_tensors.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SIZE ((Size)1 << 40) /* of a tensor, in values */

static int stored_of(const char *type, Stored *stored, Py_ssize_t *size) {
    static const struct { const char *type; Stored stored; Py_ssize_t size; } known[] = {
        {"F32", STORED_FLOAT32, 4}, {"F16", STORED_FLOAT16, 2}, {"I8", STORED_INT8, 1}};
    for (int i = 0; i < 3; i++)
        if (strcmp(type, known[i].type) == 0) {
            *stored = known[i].stored, *size = known[i].size;
            return 1;
        }
    return 0;
}

static int shape_of(PyObject *shape, Tensor *tensor) {
    Py_ssize_t dims = PyTuple_Size(shape);
    if (dims < 1 || dims > 2) return 0;
    Size sizes[2] = {1, 1};
    for (Py_ssize_t i = 0; i < dims; i++) {
        Size size = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
        if (size < 0 || size > MAX_SIZE) return 0;
        sizes[2 - dims + i] = size;
    }
    tensor->dims = (int)dims, tensor->rows = sizes[0], tensor->cols = sizes[1];
    return sizes[0] == 0 || sizes[1] <= MAX_SIZE / sizes[0];
}

static int hold_one(PyObject *name, PyObject *value, Tensor *tensor, Py_buffer *view) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    const char *type;
    PyObject *shape, *buffer;
    Py_ssize_t size;
    if (!text || !PyTuple_Check(value) || !PyArg_ParseTuple(value, "sO!O", &type, &PyTuple_Type, &shape, &buffer))
        return 0;
    tensor->name = text;
    if (!stored_of(type, &tensor->stored, &size) || !shape_of(shape, tensor)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "%.120s has the type %.20s or its shape, which the engine does not read", text,
                         type);
        return 0;
    }
    if (PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE) < 0) return 0;
    if (view->len != tensor->rows * tensor->cols * size) {
        PyErr_Format(PyExc_ValueError, "%.120s has %zd bytes, which is not what its shape needs", text, view->len);
        PyBuffer_Release(view);
        return 0;
    }
    tensor->values = view->buf;
    return 1;
}

int hold_tensors(PyObject *dict, HeldTensors *held) {
    memset(held, 0, sizeof *held);
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "tensors must be a dict");
        return 0;
    }
    Py_ssize_t size = PyDict_Size(dict), place = 0;
    PyObject *name, *value;
    held->list = calloc((size_t)size + 1, sizeof *held->list);
    held->views = calloc((size_t)size + 1, sizeof *held->views);
    held->names = calloc((size_t)size + 1, sizeof *held->names);
    if (!held->list || !held->views || !held->names) {
        drop_tensors(held);
        PyErr_NoMemory();
        return 0;
    }
    while (PyDict_Next(dict, &place, &name, &value)) {
        Size n = held->number;
        if (n == size || !hold_one(name, value, &held->list[n], &held->views[n])) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a tensor is not (type, shape, buffer)");
            drop_tensors(held);
            return 0;
        }
        held->names[n] = Py_NewRef(name);
        held->number++;
    }
    held->tensors.tensors = held->list, held->tensors.number = held->number;
    return 1;
}

void drop_tensors(HeldTensors *held) {
    for (Size i = 0; i < held->number; i++) {
        PyBuffer_Release(&held->views[i]);
        Py_DECREF(held->names[i]);
    }
    free(held->list), free(held->views), free(held->names);
    memset(held, 0, sizeof *held);
}

void raise_tensors_error(const Tensors *tensors) {
    if (!tensors->error[0]) {
        PyErr_NoMemory();
        return;
    }
    /* A long name was cut, maybe in the middle of a character. */
    PyObject *text = PyUnicode_DecodeUTF8(tensors->error, (Py_ssize_t)strlen(tensors->error), "replace");
    if (text) PyErr_SetObject(PyExc_ValueError, text);
    Py_XDECREF(text);
}

int32_t *ids_of(PyObject *sequence, Size limit, Size *number) {
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0) return NULL;
    int32_t *ids = calloc((size_t)size + 1, sizeof *ids); /* a length may be anything; malloc's could wrap */
    if (!ids) return (int32_t *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        Size id = item ? PyLong_AsSsize_t(item) : -1;
        Py_XDECREF(item);
        if (id < 0 || id >= limit) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%zd is not an id of the vocabulary", id);
            free(ids);
            return NULL;
        }
        ids[i] = (int32_t)id;
    }
    *number = (Size)size;
    return ids;
}

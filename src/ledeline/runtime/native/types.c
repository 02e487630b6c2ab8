#include "types.h"

#include <stdlib.h>
#include <string.h>

void *new_object(PyTypeObject *type) { return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0); }

void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

const Kernels *kernels_named(const char *name) {
    int kind = kind_of(name);
    const Kernels *kernels = kind < 0 ? NULL : kernels_of((Kind)kind);
    if (!kernels) PyErr_Format(PyExc_ValueError, "this processor has no kernels of the kind %.40s", name);
    return kernels;
}

PyObject *memory_values(const Model *model, const Memory *memory) {
    Size h = model->size;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, memory->length * h * (Size)sizeof(float));
    float *to = bytes ? (float *)PyBytes_AsString(bytes) : NULL;
    for (Size i = 0; to && i < memory->length; i++)
        memcpy(to + i * h, memory->values + i * memory->stride, (size_t)h * sizeof *to);
    return bytes;
}

int id_lists_of(PyObject *sequence, Size limit, int filled, IdLists *lists) {
    memset(lists, 0, sizeof *lists);
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0) return 0;
    lists->ids = calloc((size_t)size + 1, sizeof *lists->ids);
    lists->lengths = calloc((size_t)size + 1, sizeof *lists->lengths);
    if (!lists->ids || !lists->lengths) return drop_id_lists(lists), PyErr_NoMemory(), 0;
    for (Py_ssize_t n = 0; n < size; n++) {
        PyObject *one = PySequence_GetItem(sequence, n);
        lists->ids[n] = one ? ids_of(one, limit, &lists->lengths[n]) : NULL;
        Py_XDECREF(one);
        if (!lists->ids[n]) return drop_id_lists(lists), 0;
        lists->number++;
        if (filled && !lists->lengths[n])
            return drop_id_lists(lists), PyErr_SetString(PyExc_ValueError, "a source has no words"), 0;
    }
    return 1;
}

void drop_id_lists(IdLists *lists) {
    for (Size n = 0; n < lists->number; n++) free(lists->ids[n]);
    free(lists->ids), free(lists->lengths);
    memset(lists, 0, sizeof *lists);
}

/* The module `ledeline.runtime._runtime`: the types Model, Search, Follow and Verifier. */

#include "types.h"

static PyObject *kinds(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    PyObject *names = PyList_New(0);
    for (int kind = 0; names && kind < NUM_KINDS; kind++) {
        if (!kernels_of((Kind)kind)) continue;
        PyObject *name = PyUnicode_FromString(kind_name((Kind)kind));
        if (!name || PyList_Append(names, name) < 0) Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyMethodDef functions[] = {
    {"kinds", kinds, METH_NOARGS, "The kinds of kernels that this processor can run, the slowest first."},
    {NULL, NULL, 0, NULL},
};

static int add(PyObject *module, const char *name, PyObject *type) {
    int done = type ? PyModule_AddObjectRef(module, name, type) : -1;
    Py_XDECREF(type);
    return done;
}

static int run(PyObject *module) {
    return add(module, "Model", make_model_type(module)) < 0 || add(module, "Search", make_search_type(module)) < 0 ||
                   add(module, "Follow", make_follow_type(module)) < 0 ||
                   add(module, "Verifier", make_verifier_type(module)) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, run}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_runtime", "The engine that writes headlines, in C.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__runtime(void) { return PyModuleDef_Init(&definition); }

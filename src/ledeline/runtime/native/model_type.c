/* `Model(tensors, sizes, int8, kind)`: a trained model. */

#include "types.h"

#include <stdlib.h>
#include <string.h>

static const char *const SYSTEMS[] = {"encdec", "transformer"};

static int system_of(const char *name, System *system) {
    for (int i = ENCDEC; i <= TRANSFORMER; i++)
        if (strcmp(name, SYSTEMS[i]) == 0) return *system = (System)i, 1;
    return PyErr_Format(PyExc_ValueError, "the engine has no system %.40s", name), 0;
}

static int make(ModelObject *own, PyObject *tensors, Sizes sizes, int int8, const Kernels *kernels) {
    HeldTensors held;
    int good;
    if (!hold_tensors(tensors, &held)) return 0;
    BEGIN_COMPUTING
    good = model_init(&own->model, &held.tensors, sizes, int8, kernels);
    END_COMPUTING
    if (!good) raise_tensors_error(&held.tensors);
    drop_tensors(&held);
    return good;
}

static PyObject *new_model(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"tensors", "vocabulary", "embedding", "hidden", "layers", "gate", "spm", "int8", "kind", "system",
                            "encoder_layers", "heads", "attention_layer", "attention_head", NULL};
    PyObject *tensors;
    Sizes sizes = {0};
    const char *kind, *system = SYSTEMS[ENCDEC];
    int int8;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "Onnnnppps|snnnn:Model", names, &tensors, &sizes.vocabulary,
                                     &sizes.embedding, &sizes.hidden, &sizes.layers, &sizes.gate, &sizes.spm,
                                     &int8, &kind, &system, &sizes.encoder_layers, &sizes.heads,
                                     &sizes.attention_layer, &sizes.attention_head))
        return NULL;
    const Kernels *kernels = system_of(system, &sizes.system) ? kernels_named(kind) : NULL;
    ModelObject *own = kernels ? new_object(type) : NULL;
    if (own && !make(own, tensors, sizes, int8, kernels)) Py_CLEAR(own);
    return (PyObject *)own;
}

/* The type itself is asked, for an object may say that it is anything. A module that is imported once more
   has a type of its own, which makes the same objects. */
const Model *model_of(PyObject *object) {
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_new) == (void *)new_model) return &((ModelObject *)object)->model;
    return PyErr_SetString(PyExc_TypeError, "a Model is needed"), NULL;
}

static void model_dealloc(PyObject *self) {
    model_release(&((ModelObject *)self)->model);
    free_object(self);
}

static PyObject *get_state_size(PyObject *self, void *none) {
    (void)none;
    return PyLong_FromSsize_t(state_size(&((ModelObject *)self)->model));
}

static PyObject *get_size(PyObject *self, void *none) {
    (void)none;
    return PyLong_FromSsize_t(((ModelObject *)self)->model.size);
}

static PyGetSetDef attributes[] = {
    {"state_size", get_state_size, NULL, "Floats of a row of states, which begins with z.", NULL},
    {"size", get_size, NULL, "Of z, and of what attention mixes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyObject *make_model_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A trained model with its add-ons."},
        {Py_tp_new, (void *)new_model},
        {Py_tp_dealloc, (void *)model_dealloc},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {"ledeline.runtime._runtime.Model", sizeof(ModelObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

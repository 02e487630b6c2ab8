/* `Model(tensors, sizes, int8, kind)`: a trained model. */

#include "types.h"

#include <stdlib.h>
#include <string.h>

static PyObject *model_type;

ModelObject *model_of(PyObject *object) {
    int is_model = PyObject_IsInstance(object, model_type);
    if (is_model < 0) return NULL;
    if (!is_model || !((ModelObject *)object)->made) {
        PyErr_SetString(PyExc_TypeError, "a Model is needed");
        return NULL;
    }
    return (ModelObject *)object;
}

static const char *const SYSTEMS[] = {"encdec", "transformer"};

static int system_of(const char *name, System *system) {
    for (int i = ENCDEC; i <= TRANSFORMER; i++)
        if (strcmp(name, SYSTEMS[i]) == 0) return *system = (System)i, 1;
    return PyErr_Format(PyExc_ValueError, "the engine has no system %s", name), 0;
}

static int model_new_init(PyObject *self, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"tensors", "vocabulary", "embedding", "hidden", "layers", "gate", "spm", "int8", "kind", "system",
                            "encoder_layers", "heads", "attention_layer", "attention_head", NULL};
    ModelObject *own = (ModelObject *)self;
    PyObject *tensors;
    Sizes sizes = {0};
    const char *kind, *system = SYSTEMS[ENCDEC];
    int int8;
    if (own->made) return PyErr_SetString(PyExc_TypeError, "a Model is made once"), -1;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "Onnnnppps|snnnn", names, &tensors, &sizes.vocabulary,
                                     &sizes.embedding, &sizes.hidden, &sizes.layers, &sizes.gate, &sizes.spm,
                                     &int8, &kind, &system, &sizes.encoder_layers, &sizes.heads,
                                     &sizes.attention_layer, &sizes.attention_head))
        return -1;
    if (!system_of(system, &sizes.system)) return -1;
    int number = kind_of(kind);
    const Kernels *kernels = number < 0 ? NULL : kernels_of((Kind)number);
    if (!kernels) return PyErr_Format(PyExc_ValueError, "this processor has no kernels of the kind %s", kind), -1;
    HeldTensors held;
    if (!hold_tensors(tensors, &held)) return -1;
    Py_BEGIN_ALLOW_THREADS
    own->made = model_init(&own->model, &held.tensors, sizes, int8, kernels);
    Py_END_ALLOW_THREADS
    if (!own->made) raise_tensors_error(&held.tensors);
    drop_tensors(&held);
    return own->made ? 0 : -1;
}

static void model_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    model_release(&((ModelObject *)self)->model);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
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
        {Py_tp_init, model_new_init},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_dealloc, model_dealloc},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {"ledeline.runtime._runtime.Model", sizeof(ModelObject), 0, Py_TPFLAGS_DEFAULT, slots};
    model_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return Py_XNewRef(model_type);
}

PyObject *memory_values(const Model *model, const Memory *memory) {
    Size h = model->size;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, memory->length * h * (Size)sizeof(float));
    float *to = bytes ? (float *)PyBytes_AsString(bytes) : NULL;
    for (Size i = 0; to && i < memory->length; i++)
        memcpy(to + i * h, memory->values + i * memory->stride, (size_t)h * sizeof *to);
    return bytes;
}

/* --- lists of ids ------------------------------------------------------------------------------- */

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

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

/* --- steps for searches outside the engine ------------------------------------------------------ */

/* Only states of an EncDec are all in buffers. */
static int has_buffers(PyObject *self) {
    if (!model_of(self)) return 0;
    if (((ModelObject *)self)->model.sizes.system == ENCDEC) return 1;
    PyErr_SetString(PyExc_ValueError, "the states of this system do not fit into buffers");
    return 0;
}

static int floats_in(PyObject *object, Py_buffer *view, int flags, Size number) {
    if (PyObject_GetBuffer(object, view, flags) < 0) return 0;
    if (view->len == (Py_ssize_t)number * (Py_ssize_t)sizeof(float)) return 1;
    PyErr_Format(PyExc_ValueError, "a buffer has %zd bytes but should have %zd floats", view->len, number);
    PyBuffer_Release(view);
    return 0;
}

/* encode_sources(sources, memory, states): memory (B, 2, I, S), states (B, size), I the longest source. */
static PyObject *model_encode(PyObject *self, PyObject *arguments) {
    const Model *model = &((ModelObject *)self)->model;
    PyObject *sources, *memory, *states;
    Py_buffer to, first;
    IdLists lists;
    Size longest = 0, total = 0;
    if (!has_buffers(self) || !PyArg_ParseTuple(arguments, "OOO", &sources, &memory, &states) ||
        !id_lists_of(sources, model->sizes.vocabulary, 1, &lists))
        return NULL;
    for (Size n = 0; n < lists.number; n++) {
        total += lists.lengths[n];
        if (lists.lengths[n] > longest) longest = lists.lengths[n];
    }
    Size plane = 2 * longest * model->encdec.key.stride;
    if (!floats_in(memory, &to, PyBUF_WRITABLE, lists.number * plane)) return drop_id_lists(&lists), NULL;
    if (!floats_in(states, &first, PyBUF_WRITABLE, lists.number * state_size(model)))
        return PyBuffer_Release(&to), drop_id_lists(&lists), NULL;
    int32_t *ids = malloc(((size_t)total + 1) * sizeof *ids);
    Memory *own = malloc(((size_t)lists.number + 1) * sizeof *own), **memories = malloc(((size_t)lists.number + 1) * sizeof *memories);
    int good = ids && own && memories;
    Work work = {0};
    for (Size n = 0, at = 0; good && n < lists.number; at += lists.lengths[n++]) {
        memcpy(ids + at, lists.ids[n], (size_t)lists.lengths[n] * sizeof *ids);
        float *keys = (float *)to.buf + n * plane;
        own[n] = (Memory){lists.lengths[n], model->encdec.key.stride, keys, keys + lists.lengths[n] * model->encdec.key.stride, NULL, NULL};
        memories[n] = &own[n];
    }
    Py_BEGIN_ALLOW_THREADS
    good = good && (!lists.number || encode_sources(model, ids, lists.lengths, lists.number, memories, first.buf, &work));
    work_release(&work);
    Py_END_ALLOW_THREADS
    free(ids), free(own), free(memories);
    PyBuffer_Release(&to), PyBuffer_Release(&first), drop_id_lists(&lists);
    return good ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

typedef struct {
    Py_buffer memory, lengths, words, before, after, logs;
    int held;
} StepBuffers;

static int hold(StepBuffers *buffers, Py_buffer *view, PyObject *object, int flags) {
    if (PyObject_GetBuffer(object, view, flags) < 0) return 0;
    buffers->held++;
    return 1;
}

static void drop(StepBuffers *buffers) {
    Py_buffer *all[] = {&buffers->memory, &buffers->lengths, &buffers->words, &buffers->before, &buffers->after, &buffers->logs};
    for (int i = 0; i < buffers->held; i++) PyBuffer_Release(all[i]);
}

/* The log-probabilities of all rows. (rows, V). */
static int log_probabilities(const Model *model, const float *states, Size rows, float *logs, Work *work) {
    Size v = model->sizes.vocabulary;
    float *row = malloc((size_t)model->output.stride * sizeof *row);
    int good = row != NULL;
    for (Size n = 0; good && n < rows; n++) {
        good = logits(model, &model->output, states + n * state_size(model), 1, row, work);
        float norm = good ? model->kernels->log_sum_exp(row, v) : 0.0f;
        for (Size i = 0; good && i < v; i++) logs[n * v + i] = row[i] - norm;
    }
    free(row);
    return good;
}

/* step(memory, lengths, words, before, after, logs, first): words (B, K) and lengths (B) in int32. */
static PyObject *model_step(PyObject *self, PyObject *arguments) {
    const Model *model = &((ModelObject *)self)->model;
    PyObject *objects[6];
    int first, good;
    StepBuffers b = {.held = 0};
    if (!has_buffers(self) || !PyArg_ParseTuple(arguments, "OOOOOOp", &objects[0], &objects[1], &objects[2], &objects[3],
                                                &objects[4], &objects[5], &first))
        return NULL;
    Py_buffer *views[] = {&b.memory, &b.lengths, &b.words, &b.before, &b.after, &b.logs};
    for (int i = 0; i < 6; i++)
        if (!hold(&b, views[i], objects[i], i < 4 ? PyBUF_SIMPLE : PyBUF_WRITABLE)) return drop(&b), NULL;
    Size number = (Size)(b.lengths.len / 4), rows = (Size)(b.words.len / 4), size = state_size(model);
    Size plane = number ? (Size)(b.memory.len / 4) / number : 0;
    const int32_t *lengths = b.lengths.buf, *words = b.words.buf;
    good = number > 0 && rows % number == 0 && b.before.len == rows * size * 4 && b.after.len == rows * size * 4 &&
           b.logs.len == rows * model->sizes.vocabulary * 4;
    for (Size n = 0; good && n < number; n++) good = lengths[n] > 0 && 2 * lengths[n] * model->encdec.key.stride <= plane;
    for (Size n = 0; good && n < rows; n++) good = words[n] >= 0 && words[n] < model->sizes.vocabulary;
    if (!good) return drop(&b), PyErr_SetString(PyExc_ValueError, "the buffers of a step do not fit together"), NULL;
    Memory *memories = malloc((size_t)number * sizeof *memories);
    const Memory **of_rows = malloc((size_t)rows * sizeof *of_rows + 1);
    good = memories && of_rows;
    Work work = {0};
    for (Size n = 0; good && n < number; n++) {
        float *keys = (float *)b.memory.buf + n * plane;
        memories[n] = (Memory){lengths[n], model->encdec.key.stride, keys, keys + lengths[n] * model->encdec.key.stride, NULL, NULL};
    }
    for (Size n = 0; good && n < rows; n++) of_rows[n] = &memories[n / (rows / number)];
    Py_BEGIN_ALLOW_THREADS
    good = good && decoder_step(model, words, of_rows, b.before.buf, b.after.buf, rows, first ? FIRST_BOUND : 1.0f, NULL, &work) &&
           log_probabilities(model, b.after.buf, rows, b.logs.buf, &work);
    work_release(&work);
    Py_END_ALLOW_THREADS
    free(memories), free(of_rows), drop(&b);
    return good ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *get_state_size(PyObject *self, void *none) {
    (void)none;
    return PyLong_FromSsize_t(state_size(&((ModelObject *)self)->model));
}

static PyObject *get_size(PyObject *self, void *none) {
    (void)none;
    return PyLong_FromSsize_t(((ModelObject *)self)->model.size);
}

static PyObject *get_stride(PyObject *self, void *none) {
    (void)none;
    return PyLong_FromSsize_t(((ModelObject *)self)->model.encdec.key.stride);
}

static PyGetSetDef attributes[] = {
    {"state_size", get_state_size, NULL, "Floats of a row of states, which begins with z.", NULL},
    {"size", get_size, NULL, "Of z, and of what attention mixes.", NULL},
    {"memory_stride", get_stride, NULL, "Floats of a position of a memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"encode", model_encode, METH_VARARGS, "Encode sources into buffers."},
    {"step", model_step, METH_VARARGS, "One step of the decoder, from buffers into buffers."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_model_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A trained model with its add-ons."},
        {Py_tp_init, model_new_init},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_dealloc, model_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {"ledeline.runtime._runtime.Model", sizeof(ModelObject), 0, Py_TPFLAGS_DEFAULT, slots};
    model_type = PyType_FromModuleAndSpec(module, &spec, NULL);
    return Py_XNewRef(model_type);
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

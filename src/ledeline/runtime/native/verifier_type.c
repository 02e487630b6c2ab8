/* Legend: I lede sub-words, N headlines, J sub-words of the longest, G generator size. */

#include "types.h"

#include <stdlib.h>
#include <string.h>

#include "verifier.h"

typedef struct {
    PyObject_HEAD
    Verifier verifier;
} VerifierObject;

/* --- making ----------------------------------------------------------------------------------- */

static int read_size(PyObject *dict, const char *name, Size *size) {
    PyObject *value = PyDict_GetItemString(dict, name);
    if (!value) {
        PyErr_Format(PyExc_ValueError, "the shape of the verifier has no %s", name);
        return 0;
    }
    *size = PyLong_AsSsize_t(value);
    return !(*size == -1 && PyErr_Occurred());
}

static int read_shape(PyObject *dict, VerifierShape *shape) {
    if (PyDict_Size(dict) > 6) {
        PyErr_SetString(PyExc_ValueError, "the shape of the verifier has sizes that are not known");
        return 0;
    }
    return read_size(dict, "vocabulary", &shape->vocabulary) &&
           read_size(dict, "size", &shape->size) && read_size(dict, "heads", &shape->heads) &&
           read_size(dict, "layers", &shape->layers) &&
           read_size(dict, "embedding_size", &shape->embedding_size) &&
           read_size(dict, "generator_size", &shape->generator_size);
}

static int init_verifier(Verifier *verifier, PyObject *dict, VerifierShape shape, int int8, const Kernels *kernels) {
    HeldTensors held;
    if (!hold_tensors(dict, &held)) return 0;
    int good;
    BEGIN_COMPUTING
    good = verifier_init(verifier, &held.tensors, shape, int8, kernels);
    END_COMPUTING
    if (!good) raise_tensors_error(&held.tensors);
    drop_tensors(&held);
    return good;
}

static PyObject *new_verifier(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"tensors", "shape", "int8", "kind", NULL};
    PyObject *tensors, *sizes;
    VerifierShape shape;
    int int8;
    const char *kind;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO!ps:Verifier", names, &tensors, &PyDict_Type, &sizes, &int8, &kind))
        return NULL;
    const Kernels *kernels = kernels_named(kind);
    if (!kernels || !read_shape(sizes, &shape)) return NULL;
    VerifierObject *self = new_object(type);
    if (self && !init_verifier(&self->verifier, tensors, shape, int8, kernels)) Py_CLEAR(self);
    return (PyObject *)self;
}

static void free_verifier(PyObject *self) {
    verifier_release(&((VerifierObject *)self)->verifier);
    free_object(self);
}

/* --- what is asked ---------------------------------------------------------------------------- */

/* Floats of a buffer; copied if it does not start where a float can. */
typedef struct {
    Py_buffer view;
    float *copy;
    const float *values;
} Floats;

static void drop_floats(Floats *floats) {
    free(floats->copy);
    if (floats->view.obj) PyBuffer_Release(&floats->view);
}

static int copy_floats(Floats *floats) {
    floats->copy = malloc((size_t)floats->view.len);
    if (!floats->copy) return PyErr_NoMemory(), 0;
    memcpy(floats->copy, floats->view.buf, (size_t)floats->view.len);
    floats->values = floats->copy;
    return 1;
}

/* A buffer of rows * cols * depth floats. */
static int read_floats(PyObject *buffer, const char *name, Size rows, Size cols, Size depth,
                       Floats *floats) {
    if (PyObject_GetBuffer(buffer, &floats->view, PyBUF_SIMPLE) < 0) return 0;
    double wanted = (double)rows * (double)cols * (double)depth * sizeof(float);
    if ((double)floats->view.len != wanted) {
        PyErr_Format(PyExc_ValueError,
                     "%s must have %zd x %zd x %zd values in float32, but have %zd bytes", name,
                     rows, cols, depth, floats->view.len);
        return 0;
    }
    floats->values = floats->view.buf;
    return (uintptr_t)floats->values % sizeof(float) ? copy_floats(floats) : 1;
}

/* What the verifier is asked, and its answers. */
typedef struct {
    Size num_source, number, width; /* I, N, J */
    int32_t *source, *headlines, **lists;
    Size *lengths;
    Floats values, states, logs;
    float *labels, *doubts, *kinds;
} Question;

static void drop_question(Question *q) {
    for (Size n = 0; q->lists && n < q->number; n++) free(q->lists[n]);
    free(q->lists), free(q->lengths), free(q->source), free(q->headlines);
    free(q->labels), free(q->doubts), free(q->kinds);
    drop_floats(&q->values), drop_floats(&q->states), drop_floats(&q->logs);
}

static int read_source(Question *q, PyObject *source, Size vocabulary) {
    q->source = ids_of(source, vocabulary, &q->num_source);
    if (q->source && !q->num_source)
        PyErr_SetString(PyExc_ValueError, "the lede must have a sub-word");
    return q->source && q->num_source;
}

static int read_list(Question *q, PyObject *headlines, Size n, Size vocabulary) {
    PyObject *one = PySequence_GetItem(headlines, n);
    if (!one) return 0;
    q->lists[n] = ids_of(one, vocabulary, &q->lengths[n]);
    Py_DECREF(one);
    if (q->lists[n] && q->lengths[n] > q->width) q->width = q->lengths[n];
    return q->lists[n] != NULL;
}

/* Headlines (N, J), padded with 0. */
static int read_headlines(Question *q, PyObject *headlines, Size vocabulary) {
    Py_ssize_t number = PySequence_Size(headlines);
    if (number < 0) return 0;
    q->lists = calloc((size_t)number + 1, sizeof *q->lists);
    q->lengths = calloc((size_t)number + 1, sizeof *q->lengths);
    if (!q->lists || !q->lengths) return PyErr_NoMemory(), 0;
    q->number = (Size)number;
    for (Size n = 0; n < q->number; n++)
        if (!read_list(q, headlines, n, vocabulary)) return 0;
    q->headlines = calloc((size_t)q->number * (size_t)q->width + 1, sizeof *q->headlines);
    if (!q->headlines) return PyErr_NoMemory(), 0;
    for (Size n = 0; n < q->number; n++)
        memcpy(q->headlines + n * q->width, q->lists[n], (size_t)q->lengths[n] * sizeof(int32_t));
    return 1;
}

static int make_answers(Question *q) {
    size_t number = (size_t)q->number;
    q->labels = malloc((number * NUM_LABELS + 1) * sizeof *q->labels);
    q->doubts = malloc((number * (size_t)q->width + 1) * sizeof *q->doubts);
    q->kinds = malloc((number * NUM_ERROR_KINDS + 1) * sizeof *q->kinds);
    if (!q->labels || !q->doubts || !q->kinds) return PyErr_NoMemory(), 0;
    return 1;
}

static int read_question(Question *q, PyObject *args, const VerifierShape *shape) {
    PyObject *source, *values, *headlines, *states, *logs;
    return PyArg_ParseTuple(args, "OOOOO:judge", &source, &values, &headlines, &states, &logs) &&
           read_source(q, source, shape->vocabulary) &&
           read_headlines(q, headlines, shape->vocabulary) &&
           read_floats(values, "values", 1, q->num_source, shape->generator_size, &q->values) &&
           read_floats(states, "states", q->number, q->width + 1, shape->generator_size,
                       &q->states) &&
           read_floats(logs, "logs", 1, q->number, q->width + 1, &q->logs) && make_answers(q);
}

/* --- answers ---------------------------------------------------------------------------------- */

static PyObject *list_of(const float *values, Size number) {
    PyObject *list = PyList_New(number);
    for (Size i = 0; list && i < number; i++) {
        PyObject *value = PyFloat_FromDouble(values[i]);
        if (!value || PyList_SetItem(list, i, value) < 0) Py_CLEAR(list);
    }
    return list;
}

/* Rows of floats, `apart` from each other; of the lengths, or all if there are none. */
static PyObject *lists_of(const float *values, Size rows, Size apart, const Size *lengths) {
    PyObject *lists = PyList_New(rows);
    for (Size n = 0; lists && n < rows; n++) {
        PyObject *list = list_of(values + n * apart, lengths ? lengths[n] : apart);
        if (!list || PyList_SetItem(lists, n, list) < 0) Py_CLEAR(lists);
    }
    return lists;
}

static PyObject *answer(const Question *q) {
    PyObject *labels = lists_of(q->labels, q->number, NUM_LABELS, NULL);
    PyObject *doubts = lists_of(q->doubts, q->number, q->width, q->lengths);
    PyObject *kinds = lists_of(q->kinds, q->number, NUM_ERROR_KINDS, NULL);
    PyObject *all = labels && doubts && kinds ? PyTuple_Pack(3, labels, doubts, kinds) : NULL;
    Py_XDECREF(labels);
    Py_XDECREF(doubts);
    Py_XDECREF(kinds);
    return all;
}

static PyObject *judge(PyObject *self, PyObject *args) {
    const Verifier *verifier = &((VerifierObject *)self)->verifier;
    Question q;
    PyObject *found = NULL;
    memset(&q, 0, sizeof q);
    if (read_question(&q, args, &verifier->shape)) {
        int good;
        BEGIN_COMPUTING
        good = verifier_judge(verifier, q.source, q.num_source, q.values.values, q.number, q.width,
                              q.headlines, q.states.values, q.logs.values, q.labels, q.doubts,
                              q.kinds);
        END_COMPUTING
        found = good ? answer(&q) : PyErr_NoMemory();
    }
    drop_question(&q);
    return found;
}

/* --- the type --------------------------------------------------------------------------------- */

PyObject *make_verifier_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"judge", judge, METH_VARARGS,
         "judge(source, values, headlines, states, logs) -> (labels, doubts, kinds)\n\n"
         "Judge headlines (lists of ids) beside a lede; all before softmax and sigmoid.\n"
         "values (I, G), states (N, J + 1, G) and logs (N, J + 1) are buffers of float32."},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Says of headlines beside their lede which labels they would get."},
        {Py_tp_new, (void *)new_verifier},
        {Py_tp_dealloc, (void *)free_verifier},
        {Py_tp_methods, methods},
        {0, NULL}};
    static PyType_Spec spec = {"ledeline.runtime._runtime.Verifier", sizeof(VerifierObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

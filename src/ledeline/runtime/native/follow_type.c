/* `Follow(model, sources, headlines, explain)`: known headlines, written again step by step. */

#include "follow.h"
#include "types.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    Follow follow;
    PyObject *model;
    PyThread_type_lock lock; /* one thread at a time, as the GIL is released in a step */
    int failed;              /* after a step that failed, some of what was seen is missing */
} FollowObject;

static void drop_headlines(Followed *all, Size number) {
    for (Size n = 0; n < number; n++) free(all[n].ids);
    free(all);
}

/* Headlines as (source, ids) pairs; the ids are taken over. */
static Followed *headlines_of(PyObject *sequence, Size num_sources, Size limit, Size *number) {
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0) return NULL;
    Followed *all = calloc((size_t)size + 1, sizeof *all);
    if (!all) return PyErr_NoMemory(), NULL;
    for (*number = 0; *number < size; ++*number) {
        PyObject *pair = PySequence_GetItem(sequence, *number), *ids;
        Followed *one = &all[*number];
        int good = pair && PyTuple_Check(pair) && PyArg_ParseTuple(pair, "nO", &one->source, &ids);
        if (good && (one->source < 0 || one->source >= num_sources))
            good = 0, PyErr_SetString(PyExc_ValueError, "a headline is of no source");
        if (good) one->ids = ids_of(ids, limit, &one->length);
        Py_XDECREF(pair);
        if (!good || !one->ids) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a headline is not (source, ids)");
            return drop_headlines(all, *number), NULL;
        }
    }
    return all;
}

static PyObject *new_follow(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"model", "sources", "headlines", "explain", NULL};
    PyObject *model, *sources, *headlines;
    int explain, good;
    Size number;
    IdLists lists;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOp:Follow", names, &model, &sources, &headlines, &explain))
        return NULL;
    const Model *of = model_of(model);
    if (!of || !id_lists_of(sources, of->sizes.vocabulary, 1, &lists)) return NULL;
    Followed *all = headlines_of(headlines, lists.number, of->sizes.vocabulary, &number);
    FollowObject *own = all ? new_object(type) : NULL;
    if (!own) return drop_headlines(all, all ? number : 0), drop_id_lists(&lists), NULL;
    own->model = Py_NewRef(model), own->lock = PyThread_allocate_lock();
    BEGIN_COMPUTING
    good = follow_init(&own->follow, of, lists.ids, lists.lengths, lists.number, all, number, explain);
    END_COMPUTING
    if (good && own->lock) return (PyObject *)own;
    Py_DECREF(own);
    return PyErr_NoMemory();
}

static void follow_dealloc(PyObject *self) {
    FollowObject *own = (FollowObject *)self;
    follow_release(&own->follow);
    if (own->lock) PyThread_free_lock(own->lock);
    Py_XDECREF(own->model);
    free_object(self);
}

static Follow *enter(PyObject *self) {
    FollowObject *own = (FollowObject *)self;
    if (!PyThread_acquire_lock(own->lock, NOWAIT_LOCK))
        return PyErr_SetString(PyExc_RuntimeError, "another thread uses this"), NULL;
    if (!own->failed) return &own->follow;
    PyThread_release_lock(own->lock);
    return PyErr_SetString(PyExc_RuntimeError, "a step failed for lack of memory; begin again"), NULL;
}

static void leave(PyObject *self) { PyThread_release_lock(((FollowObject *)self)->lock); }

static PyObject *step(PyObject *self, PyObject *none) {
    (void)none;
    Follow *follow = enter(self);
    if (!follow) return NULL;
    int good = 1;
    BEGIN_COMPUTING
    if (follow->running) good = follow_step(follow);
    END_COMPUTING
    ((FollowObject *)self)->failed = !good;
    leave(self);
    return good ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *floats(const float *values, Size number) {
    return values ? PyBytes_FromStringAndSize((const char *)values, number * (Size)sizeof *values) : Py_NewRef(Py_None);
}

/* headline(n): (logs, states, attention, predictions), floats as bytes; None where there are none. */
static PyObject *headline(PyObject *self, PyObject *number) {
    Size n = PyLong_AsSsize_t(number);
    if (n == -1 && PyErr_Occurred()) return NULL;
    const Follow *follow = enter(self);
    if (!follow) return NULL;
    PyObject *seen = NULL;
    if (follow->running || n < 0 || n >= follow->number)
        PyErr_SetString(PyExc_ValueError, "there is no such headline yet");
    else {
        const Followed *one = &follow->headlines[n];
        Size steps = one->length + 1, width = follow->lengths[one->source];
        seen = Py_BuildValue("(NNNN)", floats(one->logs, steps), floats(one->states, steps * follow->model->size),
                             floats(one->attention, steps * width), floats(one->predictions, steps * width));
    }
    leave(self);
    return seen;
}

/* values(source): what attention mixes, (I, H) floats as bytes. */
static PyObject *values(PyObject *self, PyObject *number) {
    Size source = PyLong_AsSsize_t(number);
    if (source == -1 && PyErr_Occurred()) return NULL;
    const Follow *follow = enter(self);
    if (!follow) return NULL;
    PyObject *bytes = NULL;
    if (source < 0 || source >= follow->num_sources) PyErr_SetString(PyExc_ValueError, "there is no such source");
    else bytes = memory_values(follow->model, &follow->seen[source]);
    leave(self);
    return bytes;
}

static PyObject *get_running(PyObject *self, void *none) {
    (void)none;
    const Follow *follow = enter(self);
    if (!follow) return NULL;
    int running = follow->running;
    leave(self);
    return PyBool_FromLong(running);
}

static PyGetSetDef attributes[] = {
    {"running", get_running, NULL, "Whether there is a step left.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"step", step, METH_NOARGS, "Write the next word of each headline."},
    {"headline", headline, METH_O, "What was seen of a headline."},
    {"values", values, METH_O, "What attention mixes for a source."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_follow_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, "Known headlines, written again step by step."},
        {Py_tp_new, (void *)new_follow},
        {Py_tp_dealloc, (void *)follow_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {"ledeline.runtime._runtime.Follow", sizeof(FollowObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

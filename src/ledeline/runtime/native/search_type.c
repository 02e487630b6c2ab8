/* `Search(model, sources, ...)`: a beam search that is carried on step by step. `model` may also be a
   sequence of models with one vocabulary. */

#include "search.h"
#include "types.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    Search search;
    PyObject *models; /* a tuple */
    PyThread_type_lock lock; /* one thread at a time, as the GIL is released in a step */
    int failed;              /* after a step that failed its parts do not fit together */
} SearchObject;

static int parse(PyObject *arguments, PyObject *keywords, PyObject **model, PyObject **sources,
                 SearchOptions *o, PyObject **forbidden) {
    static char *names[] = {"model", "sources", "beam", "n_best", "min_length", "max_length", "block_ngrams", "recombine",
                            "keep_finished", "forbid_unknown", "stop_early", "keep_states", "max_states", "forbidden", NULL};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOnnnnnnppppnO", names, model, sources, &o->beam, &o->n_best,
                                     &o->min_length, &o->max_length, &o->block_ngrams, &o->recombine, &o->keep_finished,
                                     &o->forbid_unknown, &o->stop_early, &o->keep_states, &o->max_states, forbidden))
        return 0;
    if (o->beam < 1 || o->beam > 1 << 20 || o->n_best < 1 || o->n_best > o->beam || o->min_length < 0 ||
        o->min_length > 1 << 20 || o->block_ngrams < 0 || o->recombine < 0) {
        PyErr_SetString(PyExc_ValueError, "the options of the search are not possible");
        return 0;
    }
    return 1;
}

/* Begin the search; the lists are those of the sources and of what is forbidden. */
static int begin(SearchObject *own, const Model *const *models, Size num_models, const IdLists *sources, const IdLists *forbidden,
                 SearchOptions options) {
    Size total = 0;
    for (Size n = 0; n < sources->number; n++) total += sources->lengths[n];
    int32_t *ids = malloc(((size_t)total + 1) * sizeof *ids);
    if (!ids) return 0;
    for (Size n = 0, at = 0; n < sources->number; at += sources->lengths[n++])
        memcpy(ids + at, sources->ids[n], (size_t)sources->lengths[n] * sizeof *ids);
    int good = search_init(&own->search, models, num_models, ids, sources->lengths, sources->number, options,
                           forbidden->number ? forbidden->ids : NULL, forbidden->lengths);
    free(ids);
    return good;
}

/* The models of the search, and the Python tuple that keeps them. NULL with a Python error. */
static const Model **models_of(PyObject *given, PyObject **tuple) {
    *tuple = PySequence_Check(given) ? PySequence_Tuple(given) : PyTuple_Pack(1, given);
    Size number = *tuple ? PyTuple_Size(*tuple) : 0;
    if (*tuple && !number) PyErr_SetString(PyExc_ValueError, "a search needs a model");
    const Model **models = number ? malloc((size_t)number * sizeof *models) : NULL;
    if (number && !models) PyErr_NoMemory();
    int good = models != NULL;
    for (Size n = 0; good && n < number; n++) {
        models[n] = model_of(PyTuple_GetItem(*tuple, n));
        good = models[n] != NULL;
        if (!good) break;
        good = models[n]->sizes.vocabulary == models[0]->sizes.vocabulary;
        if (!good) PyErr_SetString(PyExc_ValueError, "the models have different vocabularies");
    }
    if (good) return models;
    free(models);
    Py_CLEAR(*tuple);
    return NULL;
}

/* Ids as they were asked for. */
static int lists_of(PyObject *sources, PyObject *forbidden, Size vocabulary, IdLists *ids, IdLists *never) {
    if (!id_lists_of(sources, vocabulary, 1, ids)) return 0;
    if (forbidden != Py_None && !id_lists_of(forbidden, vocabulary, 0, never)) return drop_id_lists(ids), 0;
    if (ids->number && (!never->number || never->number == ids->number)) return 1;
    PyErr_SetString(PyExc_ValueError, "a search needs sources, and as many lists of forbidden words");
    drop_id_lists(ids), drop_id_lists(never);
    return 0;
}

static PyObject *new_search(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *model, *sources, *forbidden, *tuple;
    SearchOptions options;
    IdLists ids, never = {0};
    if (!parse(arguments, keywords, &model, &sources, &options, &forbidden)) return NULL;
    const Model **models = models_of(model, &tuple);
    if (!models) return NULL;
    Size number = PyTuple_Size(tuple);
    int good = number == 1 || !options.keep_states;
    if (!good) PyErr_SetString(PyExc_ValueError, "keep_states goes with one model");
    if (!good || !lists_of(sources, forbidden, models[0]->sizes.vocabulary, &ids, &never))
        return free(models), Py_DECREF(tuple), NULL;
    SearchObject *own = new_object(type);
    if (own) {
        own->models = Py_NewRef(tuple), own->lock = PyThread_allocate_lock();
        BEGIN_COMPUTING
        good = own->lock && begin(own, models, number, &ids, &never, options);
        END_COMPUTING
        if (!good) Py_CLEAR(own);
        if (!good) PyErr_NoMemory();
    }
    drop_id_lists(&ids), drop_id_lists(&never), free(models), Py_DECREF(tuple);
    return (PyObject *)own;
}

static void search_dealloc(PyObject *self) {
    SearchObject *own = (SearchObject *)self;
    search_release(&own->search);
    if (own->lock) PyThread_free_lock(own->lock);
    Py_XDECREF(own->models);
    free_object(self);
}

static Search *enter(PyObject *self) {
    SearchObject *own = (SearchObject *)self;
    if (!PyThread_acquire_lock(own->lock, NOWAIT_LOCK))
        return PyErr_SetString(PyExc_RuntimeError, "another thread uses this search"), NULL;
    if (!own->failed) return &own->search;
    PyThread_release_lock(own->lock);
    return PyErr_SetString(PyExc_RuntimeError, "the search failed for lack of memory; begin another"), NULL;
}

static void leave(PyObject *self) { PyThread_release_lock(((SearchObject *)self)->lock); }

static PyObject *step(PyObject *self, PyObject *none) {
    (void)none;
    Search *search = enter(self);
    if (!search) return NULL;
    int good = 1;
    BEGIN_COMPUTING
    if (search->running) good = search_step(search);
    END_COMPUTING
    ((SearchObject *)self)->failed = !good;
    leave(self);
    return good ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *give_up(PyObject *self, PyObject *sources) {
    Size number;
    int32_t *ids = ids_of(sources, ((SearchObject *)self)->search.number, &number);
    if (!ids) return NULL;
    Search *search = enter(self);
    if (search) {
        for (Size i = 0; i < number; i++) search_give_up(search, ids[i]);
        leave(self);
    }
    free(ids);
    return search ? Py_NewRef(Py_None) : NULL;
}

/* Put a new object, or NULL with a Python error, into a tuple. */
static int put(PyObject *tuple, Size place, PyObject *item) {
    return item && PyTuple_SetItem(tuple, place, item) == 0; /* which takes over the item */
}

/* What a node says, at its step; `ids` has no place for the end. */
static int put_node(const Beam *beam, const Node *one, Size length, PyObject *ids, PyObject *slots, PyObject *logs) {
    double before = one->parent < 0 ? 0.0 : (double)beam->nodes[one->parent].total;
    return (one->step >= length || put(ids, one->step, PyLong_FromLong(one->word))) &&
           put(slots, one->step, PyLong_FromLong(one->slot)) &&
           put(logs, one->step, PyFloat_FromDouble((double)one->total - before));
}

/* A headline: (ids, cost, truncated, slots, logs). */
static PyObject *headline(const Beam *beam, int32_t node) {
    int truncated = node < 0;
    int32_t last = truncated ? -1 - node : node;
    Size steps = beam->nodes[last].step + 1, length = steps - !truncated;
    PyObject *ids = PyTuple_New(length), *slots = PyTuple_New(steps), *logs = PyTuple_New(steps), *all = NULL;
    int good = ids && slots && logs;
    for (int32_t at = last; good && at >= 0; at = beam->nodes[at].parent)
        good = put_node(beam, &beam->nodes[at], length, ids, slots, logs);
    double cost = -(double)beam->nodes[last].total;
    if (good) all = Py_BuildValue("(OdNOO)", ids, cost, PyBool_FromLong(truncated), slots, logs);
    Py_XDECREF(ids);
    Py_XDECREF(slots);
    Py_XDECREF(logs);
    return all;
}

static PyObject *list_of(const Search *search, Size source, int32_t *nodes) {
    PyObject *list = PyList_New(0);
    Size number = search_best(search, source, nodes);
    for (Size i = 0; list && i < number; i++) {
        PyObject *one = headline(&search->beams[source], nodes[i]);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *hypotheses(PyObject *self, PyObject *none) {
    (void)none;
    Search *search = enter(self);
    if (!search) return NULL;
    PyObject *lists = PyList_New(0);
    int32_t *nodes = malloc((size_t)search->options.n_best * sizeof *nodes);
    for (Size n = 0; lists && n < search->number; n++) {
        PyObject *one = nodes ? list_of(search, n, nodes) : PyErr_NoMemory();
        if (!one || PyList_Append(lists, one) < 0) Py_CLEAR(lists);
        Py_XDECREF(one);
    }
    free(nodes);
    leave(self);
    return lists;
}

/* values(source): what attention mixes, (I, H) floats as bytes. */
static PyObject *values(PyObject *self, PyObject *number) {
    Size source = PyLong_AsSsize_t(number);
    if (source == -1 && PyErr_Occurred()) return NULL;
    Search *search = enter(self);
    if (!search) return NULL;
    PyObject *bytes = NULL;
    if (source < 0 || source >= search->number || !search->members->memories[source].floats)
        PyErr_SetString(PyExc_ValueError, "there is no such source");
    else bytes = memory_values(search->model, &search->members->memories[source]);
    leave(self);
    return bytes;
}

static int place_state(const Search *search, Size source, Size j, Size slot, float *to) {
    if (j >= search->num_seen) return 1;
    Size h = search->model->size;
    SeenRows rows = search->seen[j].rows[source];
    if (slot >= rows.number) return 0;
    memcpy(to, search->seen[j].states + (rows.first + slot) * h, (size_t)h * sizeof *to);
    return 1;
}

/* states(source, slots, steps): z of some headlines of a source, given by the slots of their steps:
   (N, steps, H) floats as bytes, 0 behind their last step. */
static PyObject *states(PyObject *self, PyObject *arguments) {
    Size source, steps;
    PyObject *paths, *bytes = NULL;
    IdLists lists;
    if (!PyArg_ParseTuple(arguments, "nOn", &source, &paths, &steps) ||
        !id_lists_of(paths, ((SearchObject *)self)->search.options.beam, 0, &lists))
        return NULL;
    Search *search = enter(self);
    int good = search && source >= 0 && source < search->number && steps >= 0 && steps <= search->num_seen;
    if (good) {
        Size h = search->model->size;
        bytes = PyBytes_FromStringAndSize(NULL, lists.number * steps * h * (Size)sizeof(float));
        float *to = bytes ? (float *)PyBytes_AsString(bytes) : NULL;
        if (to) memset(to, 0, (size_t)(lists.number * steps * h) * sizeof *to);
        for (Size n = 0; to && n < lists.number; n++)
            for (Size j = 0; good && j < steps && j < lists.lengths[n]; j++)
                good = place_state(search, source, j, lists.ids[n][j], to + (n * steps + j) * h);
    }
    if (search) leave(self);
    if (search && !good) {
        Py_CLEAR(bytes);
        PyErr_SetString(PyExc_ValueError, "these steps were not seen");
    }
    drop_id_lists(&lists);
    return bytes;
}

static PyObject *get_running(PyObject *self, void *none) {
    (void)none;
    const Search *search = enter(self);
    if (!search) return NULL;
    int running = search->running;
    leave(self);
    return PyBool_FromLong(running);
}

static PyObject *get_num_seen(PyObject *self, void *none) {
    (void)none;
    const Search *search = enter(self);
    if (!search) return NULL;
    Size number = search->num_seen;
    leave(self);
    return PyLong_FromSsize_t(number);
}

static PyGetSetDef attributes[] = {
    {"running", get_running, NULL, "Whether there is a step left.", NULL},
    {"num_seen", get_num_seen, NULL, "How many steps' states were kept.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"step", step, METH_NOARGS, "Extend every hypothesis by a word."},
    {"give_up", give_up, METH_O, "Search no further for these sources."},
    {"hypotheses", hypotheses, METH_NOARGS, "The n-best list of each source."},
    {"values", values, METH_O, "What attention mixes for a source."},
    {"states", states, METH_VARARGS, "What was seen while headlines were written."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_search_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A beam search of several sources."},
        {Py_tp_new, (void *)new_search},
        {Py_tp_dealloc, (void *)search_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_getset, attributes},
        {0, NULL},
    };
    static PyType_Spec spec = {"ledeline.runtime._runtime.Search", sizeof(SearchObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

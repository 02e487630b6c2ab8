/* The engine without Python: `driver DUMP key=value...` searches the sources of a dump, follows what it
   finds and judges it. It prints a line for each headline (run.h), or a sentence and status 3.

   Keys: kind, int8, batch, threads, every (only every so many sources), give_up, forbid, and the options
   of the search. With threads, each searches all sources with the same model, and all must agree. */

#include "dump.h"
#include "run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *kind;
    int int8;
    Size batch, threads, every;
    Task task;
} Settings;

typedef struct {
    const Dump *dump;
    const Model *model;
    const Verifier *verifier;
    const Settings *settings;
    Found found;
    int good;
} Job;

static int set_number(Settings *settings, const char *key, Size value) {
    SearchOptions *options = &settings->task.options;
    const struct { const char *key; Size *size; int *flag; } known[] = {
        {"int8", NULL, &settings->int8}, {"batch", &settings->batch, NULL}, {"threads", &settings->threads, NULL},
        {"every", &settings->every, NULL}, {"give_up", &settings->task.give_up, NULL},
        {"forbid", NULL, &settings->task.forbid}, {"beam", &options->beam, NULL}, {"n_best", &options->n_best, NULL},
        {"min_length", &options->min_length, NULL}, {"max_length", &options->max_length, NULL},
        {"block_ngrams", &options->block_ngrams, NULL}, {"recombine", &options->recombine, NULL},
        {"keep_finished", NULL, &options->keep_finished}, {"forbid_unknown", NULL, &options->forbid_unknown},
        {"stop_early", NULL, &options->stop_early}, {"keep_states", NULL, &options->keep_states},
        {"max_states", &options->max_states, NULL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].key, key)) continue;
        if (known[i].size) *known[i].size = value;
        else *known[i].flag = (int)value;
        return 1;
    }
    return 0;
}

/* The best kind of this processor. */
static Kind best_kind(void) {
    for (int kind = NUM_KINDS - 1; kind > 0; kind--)
        if (kernels_of((Kind)kind)) return (Kind)kind;
    return KIND_PORTABLE;
}

static int read_settings(Settings *settings, int number, char **arguments) {
    *settings = (Settings){.kind = kind_name(best_kind()), .int8 = 1, .batch = 32, .threads = 1, .every = 1};
    settings->task.options = (SearchOptions){.beam = 5, .n_best = 1, .min_length = 1, .max_length = -1, .max_states = -1};
    for (int i = 0; i < number; i++) {
        char *value = strchr(arguments[i], '=');
        if (!value) return fprintf(stderr, "%s is not key=value\n", arguments[i]), 0;
        *value++ = 0;
        if (!strcmp(arguments[i], "kind")) settings->kind = value;
        else if (!set_number(settings, arguments[i], (Size)strtoll(value, NULL, 10)))
            return fprintf(stderr, "%s is not known\n", arguments[i]), 0;
    }
    return settings->batch > 0 && settings->threads > 0 && settings->every > 0;
}

static void *work(void *argument) {
    Job *job = argument;
    Size every = job->settings->every, chosen = (job->dump->num_sources + every - 1) / every;
    int32_t **sources = malloc(((size_t)chosen + 1) * sizeof *sources);
    Size *lengths = malloc(((size_t)chosen + 1) * sizeof *lengths);
    job->good = sources && lengths;
    for (Size n = 0; job->good && n < chosen; n++)
        sources[n] = job->dump->sources[n * every], lengths[n] = job->dump->lengths[n * every];
    for (Size first = 0; job->good && first < chosen; first += job->settings->batch) {
        Size some = chosen - first < job->settings->batch ? chosen - first : job->settings->batch;
        job->good = run_batch(job->model, job->verifier, sources + first, lengths + first, first, some,
                              &job->settings->task, &job->found);
    }
    for (Size i = 0; i < job->found.number; i++) job->found.all[i].source *= every;
    free(sources), free(lengths);
    return NULL;
}

static int same(const Found *one, const Found *other) {
    int good = one->number == other->number;
    for (Size i = 0; good && i < one->number; i++) {
        const FoundHeadline *a = &one->all[i], *b = &other->all[i];
        good = a->source == b->source && a->length == b->length && a->seen == b->seen && a->attention == b->attention &&
               a->predictions == b->predictions && a->verdict == b->verdict && !memcmp(&a->cost, &b->cost, sizeof a->cost) &&
               !memcmp(a->ids, b->ids, (size_t)a->length * sizeof *a->ids);
    }
    return good;
}

static int run_threads(const Job *job, Size number) {
    Job *jobs = malloc((size_t)number * sizeof *jobs);
    pthread_t *threads = malloc((size_t)number * sizeof *threads);
    int good = jobs && threads;
    Size started = 0;
    for (; good && started < number; started++) {
        jobs[started] = *job;
        if (pthread_create(&threads[started], NULL, work, &jobs[started])) break;
    }
    for (Size n = 0; n < started; n++) pthread_join(threads[n], NULL);
    good = good && started == number;
    for (Size n = 0; good && n < number; n++) good = jobs[n].good && same(&jobs[0].found, &jobs[n].found);
    if (good) found_print(&jobs[0].found, stdout);
    for (Size n = 0; n < started; n++) found_release(&jobs[n].found);
    free(jobs), free(threads);
    return good;
}

static int fail(const Tensors *tensors) {
    printf("%s\n", tensors->error[0] ? tensors->error : "there was no memory");
    return 3;
}

static int run(Dump *dump, const Settings *settings) {
    int kind = kind_of(settings->kind);
    const Kernels *kernels = kind < 0 ? NULL : kernels_of((Kind)kind);
    if (!kernels) return fprintf(stderr, "no kernels of the kind %s here\n", settings->kind), 4;
    Model model;
    Verifier verifier;
    if (!model_init(&model, &dump->model.tensors, dump->sizes, settings->int8, kernels)) return fail(&dump->model.tensors);
    if (dump->has_verifier && !verifier_init(&verifier, &dump->verifier.tensors, dump->shape,
                                             settings->int8, kernels))
        return model_release(&model), fail(&dump->verifier.tensors);
    Job job = {dump, &model, dump->has_verifier ? &verifier : NULL, settings, {NULL, 0}, 0};
    int good = run_threads(&job, settings->threads);
    model_release(&model);
    if (dump->has_verifier) verifier_release(&verifier);
    if (!good) fprintf(stderr, "there was no memory, or threads did not agree\n");
    return good ? 0 : 5;
}

int main(int number, char **arguments) {
    Settings settings;
    Dump dump;
    if (number == 2 && !strcmp(arguments[1], "kinds")) {
        for (int kind = 0; kind < NUM_KINDS; kind++)
            if (kernels_of((Kind)kind)) printf("%s\n", kind_name((Kind)kind));
        return 0;
    }
    if (number < 2 || !read_settings(&settings, number - 2, arguments + 2)) return 2;
    int status = dump_read(&dump, arguments[1]) ? run(&dump, &settings) : 6;
    if (status == 6) fprintf(stderr, "%s is no dump\n", arguments[1]);
    dump_release(&dump);
    return status;
}

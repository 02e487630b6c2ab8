#include "follow.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_AT_ONCE 16 /* headlines whose logits are made together */

static int make_room(const Follow *follow, Followed *one) {
    size_t steps = (size_t)one->length + 1, width = (size_t)follow->lengths[one->source];
    size_t h = (size_t)follow->model->size;
    one->logs = malloc(steps * sizeof *one->logs);
    one->states = malloc(steps * h * sizeof *one->states);
    if (!follow->explain) return one->logs && one->states;
    one->attention = malloc(steps * width * sizeof *one->attention);
    if (follow->model->sizes.spm) one->predictions = malloc(steps * width * sizeof *one->predictions);
    return one->logs && one->states && one->attention && (one->predictions || !follow->model->sizes.spm);
}

/* Encode the sources; each headline starts from the state of its source. */
static int start(Follow *follow, float *first) {
    const Model *model = follow->model;
    Size total = 0, at = 0, size = state_size(model);
    for (Size n = 0; n < follow->num_sources; n++) total += follow->lengths[n];
    int32_t *ids = malloc(((size_t)total + 1) * sizeof *ids);
    Memory **memories = malloc(((size_t)follow->num_sources + 1) * sizeof *memories);
    int good = ids && memories;
    for (Size n = 0; good && n < follow->num_sources; at += follow->lengths[n++]) {
        memcpy(ids + at, follow->sources[n], (size_t)follow->lengths[n] * sizeof *ids);
        memories[n] = &follow->seen[n];
    }
    good = good && encode_sources(model, ids, follow->lengths, follow->num_sources, memories, first, &follow->work);
    free(ids), free(memories);
    for (Size n = 0; good && n < follow->number; n++)
        memcpy(follow->before + n * size, first + follow->headlines[n].source * size,
               (size_t)size * sizeof(float));
    return good;
}

int follow_init(Follow *follow, const Model *model, int32_t **sources, Size *lengths, Size num_sources,
                Followed *headlines, Size number, int explain) {
    memset(follow, 0, sizeof *follow);
    follow->model = model, follow->num_sources = num_sources, follow->number = number;
    follow->explain = explain, follow->running = number > 0;
    follow->sources = sources, follow->lengths = lengths, follow->headlines = headlines;
    size_t size = (size_t)state_size(model) * sizeof(float);
    float *first = malloc((size_t)num_sources * size + 1);
    follow->before = malloc((size_t)number * size + 1);
    follow->seen = calloc((size_t)num_sources + 1, sizeof *follow->seen);
    int good = first && follow->before && follow->seen;
    for (Size n = 0; good && n < num_sources; n++) good = memory_init(model, &follow->seen[n], lengths[n]);
    for (Size n = 0; good && n < number; n++) {
        good = make_room(follow, &headlines[n]);
        if (headlines[n].length > follow->longest) follow->longest = headlines[n].length;
    }
    good = good && (!num_sources || start(follow, first));
    free(first);
    return good;
}

void follow_release(Follow *follow) {
    for (Size n = 0; n < follow->num_sources; n++) {
        free(follow->sources[n]);
        if (follow->seen) memory_release(&follow->seen[n]);
    }
    for (Size n = 0; n < follow->number; n++) {
        Followed *one = &follow->headlines[n];
        free(one->ids), free(one->logs), free(one->states), free(one->attention), free(one->predictions);
    }
    free(follow->sources), free(follow->lengths), free(follow->seen);
    free(follow->before), free(follow->headlines);
    work_release(&follow->work);
    memset(follow, 0, sizeof *follow);
}

/* The word that step j writes. */
static int32_t word_at(const Followed *one, Size j) { return j < one->length ? one->ids[j] : EOS; }

/* q_j of the words at the positions of the source; values are the logits. */
static void predict(Follow *follow, const Followed *one, float *values) {
    follow->model->kernels->softmax(values, follow->model->sizes.vocabulary);
    Size width = follow->lengths[one->source];
    for (Size i = 0; i < width; i++)
        one->predictions[follow->steps * width + i] = values[follow->sources[one->source][i]];
}

/* What is kept of some headlines' step. */
static int look(Follow *follow, const Size *rows, Size number, const float *states, float *values) {
    const Model *model = follow->model;
    Size h = model->size, size = state_size(model), j = follow->steps;
    if (!logits(model, &model->output, states, number, values, &follow->work)) return 0;
    for (Size n = 0; n < number; n++) {
        Followed *one = &follow->headlines[rows[n]];
        const float *own = values + n * model->output.stride;
        memcpy(one->states + j * h, states + n * size, (size_t)h * sizeof *states);
        one->logs[j] = own[word_at(one, j)] - model->kernels->log_sum_exp(own, model->sizes.vocabulary);
    }
    if (!number || !follow->headlines[rows[0]].predictions) return 1;
    if (!logits(model, &model->spm, states, number, values, &follow->work)) return 0;
    for (Size n = 0; n < number; n++)
        predict(follow, &follow->headlines[rows[n]], values + n * model->spm.stride);
    return 1;
}

/* Advance the headlines that have this step; rows (number) says which. */
static int advance_some(Follow *follow, const Size *rows, Size number, float *after, float *values) {
    Size size = state_size(follow->model), j = follow->steps;
    int32_t *words = malloc(((size_t)number + 1) * sizeof *words);
    const Memory **memories = malloc(((size_t)number + 1) * sizeof *memories);
    const float **before = malloc(((size_t)number + 1) * sizeof *before);
    float **attention = malloc(((size_t)number + 1) * sizeof *attention);
    int good = words && memories && before && attention;
    for (Size n = 0; good && n < number; n++) {
        Followed *one = &follow->headlines[rows[n]];
        words[n] = j ? word_at(one, j - 1) : BOS;
        memories[n] = &follow->seen[one->source];
        if (one->attention) attention[n] = one->attention + j * follow->lengths[one->source];
        before[n] = follow->before + rows[n] * size;
    }
    good = good && decoder_step(follow->model, words, memories, before, after, number,
                                follow->explain ? attention : NULL, &follow->work);
    for (Size n = 0; good && n < number; n++)
        memcpy(follow->before + rows[n] * size, after + n * size, (size_t)size * sizeof *after);
    for (Size n = 0; good && n < number; n += LOOK_AT_ONCE) {
        Size some = number - n < LOOK_AT_ONCE ? number - n : LOOK_AT_ONCE;
        good = look(follow, rows + n, some, after + n * size, values);
    }
    free(words), free(memories), free(before), free(attention);
    return good;
}

int follow_step(Follow *follow) {
    size_t size = (size_t)follow->number * (size_t)state_size(follow->model) * sizeof(float);
    Size *rows = malloc(((size_t)follow->number + 1) * sizeof *rows), number = 0;
    float *after = malloc(size + 1);
    Size stride = follow->model->output.stride;
    if (follow->model->sizes.spm && follow->model->spm.stride > stride) stride = follow->model->spm.stride;
    float *values = malloc(LOOK_AT_ONCE * (size_t)stride * sizeof *values);
    int good = rows && after && values;
    for (Size n = 0; good && n < follow->number; n++)
        if (follow->steps <= follow->headlines[n].length) rows[number++] = n;
    good = good && advance_some(follow, rows, number, after, values);
    free(rows), free(after), free(values);
    follow->running = good && ++follow->steps <= follow->longest;
    return good;
}

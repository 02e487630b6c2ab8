#include "members.h"

#include <stdlib.h>
#include <string.h>

int member_init(Member *member, const Model *model, const int32_t *ids, const Size *lengths, Size number,
                Size most_rows) {
    member->model = model, member->number = number;
    member->memories = calloc((size_t)number, sizeof *member->memories);
    member->seen = malloc((size_t)most_rows * sizeof *member->seen);
    member->states = malloc((size_t)most_rows * sizeof *member->states);
    member->before = malloc((size_t)most_rows * (size_t)state_size(model) * sizeof *member->before);
    member->after = malloc((size_t)most_rows * (size_t)state_size(model) * sizeof *member->after);
    Memory **memories = malloc((size_t)number * sizeof *memories);
    int good = member->memories && member->seen && member->states && member->before && member->after && memories;
    for (Size n = 0; good && n < number; n++) {
        memories[n] = &member->memories[n];
        good = memory_init(model, memories[n], lengths[n]);
    }
    good = good && encode_sources(model, ids, lengths, number, memories, member->after, &member->work);
    free(memories);
    return good;
}

void member_release(Member *member) {
    for (Size n = 0; member->memories && n < member->number; n++) memory_release(&member->memories[n]);
    free(member->memories), free(member->seen), free(member->states), free(member->before), free(member->after);
    work_release(&member->work);
}

int member_step(Member *member, const int32_t *words, const Size *sources, const Size *parents, Size rows) {
    Size size = state_size(member->model);
    float *before = member->after;
    if (parents) forget_rows(member->model, member->seen, before, member->rows, parents, rows);
    member->rows = rows;
    member->after = member->before, member->before = before;
    for (Size n = 0; n < rows; n++) {
        member->seen[n] = &member->memories[sources[n]];
        member->states[n] = before + (parents ? parents[n] : sources[n]) * size;
    }
    return decoder_step(member->model, words, member->seen, member->states, member->after, rows, NULL, &member->work);
}

void member_drop(Member *member, Size source) { memory_release(&member->memories[source]); }

/* Logits of some rows of one model, and what makes log-probabilities of them. */
static int score_with(Member *member, Size first, Size rows, float *logs, float *norms) {
    const Model *model = member->model;
    const float *states = member->after + first * state_size(model);
    if (!logits(model, &model->output, states, rows, logs, &member->work)) return 0;
    for (Size n = 0; n < rows; n++)
        norms[n] = model->kernels->log_sum_exp(logs + n * model->output.stride, model->sizes.vocabulary);
    return 1;
}

int score_rows(Member *members, Size num_members, Size first, Size rows, Size most_rows, float *logs,
               float *norms) {
    const Model *model = members->model;
    Size stride = model->output.stride, apart = most_rows * stride;
    for (Size m = 0; m < num_members; m++)
        if (!score_with(&members[m], first, rows, logs + m * apart, norms + m * most_rows)) return 0;
    if (num_members == 1) return 1;
    for (Size n = 0; n < rows; n++) {
        model->kernels->mean_logs(logs + n * stride, apart, norms + n, most_rows, num_members,
                                  model->sizes.vocabulary);
        norms[n] = 0.0f;
    }
    return 1;
}

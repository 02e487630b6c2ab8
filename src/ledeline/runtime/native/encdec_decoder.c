#include "encdec.h"

#include <stdlib.h>
#include <string.h>

#define STEP_ROWS 64 /* hypotheses that are advanced together: their gates stay in the cache */

/* --- memory and states -------------------------------------------------------------------------- */

Size encdec_state_size(const Model *model) { return encdec_layer_state(model, model->encdec.sizes.layers); }

Size encdec_layer_state(const Model *model, Size layer) { return (1 + 2 * layer) * model->encdec.sizes.hidden; }

int encdec_memory_init(const Model *model, Memory *memory, Size length) {
    Size stride = model->encdec.key.stride;
    if (length > PTRDIFF_MAX / 16 / stride) return 0;
    memory->floats = malloc(2 * (size_t)(length * stride) * sizeof *memory->floats);
    if (!memory->floats) return 0;
    memory->length = length, memory->stride = stride;
    memory->keys = memory->floats, memory->values = memory->floats + length * stride;
    return 1;
}

int encdec_logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to, Work *work) {
    return apply_rows(model->kernels, layer, states, encdec_state_size(model), rows, to, work);
}

/* --- layers ------------------------------------------------------------------------------------- */

/* Some rows of a step. */
typedef struct {
    const Model *model;
    const EncDec *own;
    const int32_t *words;
    const float *const *before; /* states */
    float *after;
    Size rows, size; /* of a row of states */
    Work *work;
} Step;

/* h and c of a layer in one row, from its gates. */
static void advance(const Step *s, Size row, Size layer, const float *gates) {
    Size place = row * s->size + encdec_layer_state(s->model, layer), hidden = s->own->sizes.hidden;
    float *h = s->after + place, *c = h + hidden;
    memcpy(c, s->before[row] + encdec_layer_state(s->model, layer) + hidden, (size_t)hidden * sizeof *c);
    s->model->kernels->cell(gates, h, c, hidden);
}

/* Rows of one parent have the same state before, and rows of one word the same embedding: their products
   are made once. */
typedef struct {
    Size num_states, num_words;
    Size first_rows[STEP_ROWS]; /* the first row of each state */
    int32_t words[STEP_ROWS];
    Size state_of[STEP_ROWS], word_of[STEP_ROWS]; /* of each row */
} Shared;

static void find_shared(const Step *s, Shared *shared) {
    shared->num_states = shared->num_words = 0;
    for (Size n = 0; n < s->rows; n++) {
        Size at = 0;
        while (at < shared->num_states && s->before[shared->first_rows[at]] != s->before[n]) at++;
        if (at == shared->num_states) shared->first_rows[shared->num_states++] = n;
        shared->state_of[n] = at;
        for (at = 0; at < shared->num_words && shared->words[at] != s->words[n]; at++) continue;
        if (at == shared->num_words) shared->words[shared->num_words++] = s->words[n];
        shared->word_of[n] = at;
    }
}

/* The first layer: gates from [z; h], and from the word. */
static int decode_first(const Step *s) {
    const Linear *layer = &s->own->decoder[0], *of_word = &s->own->first_word;
    Size stride = layer->stride;
    Shared shared;
    find_shared(s, &shared);
    float *of_states = room(&s->work->products, (size_t)(shared.num_states + 1) * (size_t)stride * sizeof *of_states);
    float *of_words = room(&s->work->more, (size_t)shared.num_words * (size_t)stride * sizeof *of_words);
    if (!of_states || !of_words || !apply_words(s->model->kernels, of_word, &s->own->words, shared.words,
                                                shared.num_words, of_words, s->work) ||
        !begin_rows(layer, shared.num_states, s->work))
        return 0;
    for (Size n = 0; n < shared.num_states; n++) /* z and h lie together */
        fill_row(s->model->kernels, layer, n, s->before[shared.first_rows[n]], layer->k, NULL, s->work);
    if (!apply_filled(s->model->kernels, layer, shared.num_states, of_states, s->work)) return 0;
    float *gates = of_states + shared.num_states * stride;
    for (Size n = 0; n < s->rows; n++) {
        memcpy(gates, of_states + shared.state_of[n] * stride, (size_t)stride * sizeof *gates);
        s->model->kernels->add(gates, of_words + shared.word_of[n] * stride, stride);
        advance(s, n, 0, gates);
    }
    return 1;
}

/* Another layer: gates from the layer below and h. */
static int decode_upper(const Step *s, Size number) {
    const Linear *layer = &s->own->decoder[number];
    Size place = encdec_layer_state(s->model, number), below = encdec_layer_state(s->model, number - 1);
    float *gates = room(&s->work->products, (size_t)s->rows * (size_t)layer->stride * sizeof *gates);
    if (!gates || !begin_rows(layer, s->rows, s->work)) return 0;
    for (Size n = 0; n < s->rows; n++)
        fill_row(s->model->kernels, layer, n, s->after + n * s->size + below, s->own->sizes.hidden,
                 s->before[n] + place, s->work);
    if (!apply_filled(s->model->kernels, layer, s->rows, gates, s->work)) return 0;
    for (Size n = 0; n < s->rows; n++) advance(s, n, number, gates + n * layer->stride);
    return 1;
}

/* --- attention ---------------------------------------------------------------------------------- */

/* The context of one row, added up in `context` (H); the weights of attention go to `weights`. */
static void attend(const Model *model, const float *query, const Memory *memory, float *weights,
                   float *context) {
    Size hidden = model->encdec.sizes.hidden, stride = memory->stride;
    for (Size i = 0; i < memory->length; i++)
        weights[i] = model->kernels->dot(query, memory->keys + i * stride, hidden);
    model->kernels->softmax(weights, memory->length);
    memset(context, 0, (size_t)hidden * sizeof *context);
    for (Size i = 0; i < memory->length; i++)
        model->kernels->add_scaled(context, memory->values + i * stride, weights[i], hidden);
}

/* z = tanh(W_s [context; h]) of the highest layer's h. */
static int look_at_sources(const Step *s, const Memory *const *memories, float *const *attention) {
    const Linear *query = &s->own->query;
    Size hidden = s->own->sizes.hidden, longest = 0;
    for (Size n = 0; n < s->rows; n++) longest = memories[n]->length > longest ? memories[n]->length : longest;
    const float *top = s->after + encdec_layer_state(s->model, s->own->sizes.layers - 1);
    float *queries = room(&s->work->products, (size_t)s->rows * (size_t)query->stride * sizeof *queries);
    float *weights = room(&s->work->scores, (size_t)(longest + hidden) * sizeof *weights);
    if (!queries || !weights ||
        !apply_rows(s->model->kernels, query, top, s->size, s->rows, queries, s->work))
        return 0;
    for (Size n = 0; n < s->rows; n++) {
        float *context = weights + longest, *z = s->after + n * s->size;
        attend(s->model, top + n * s->size, memories[n], weights, context);
        memcpy(z, queries + n * query->stride, (size_t)hidden * sizeof *z);
        s->model->kernels->tanh_add(z, context, hidden);
        if (attention) memcpy(attention[n], weights, (size_t)memories[n]->length * sizeof *weights);
    }
    return 1;
}

int encdec_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *const *before,
                float *after, Size rows, float *const *attention, Work *work) {
    Size size = encdec_state_size(model);
    for (Size n = 0; n < rows; n += STEP_ROWS) {
        Step s = {model, &model->encdec, words + n, before + n,
                  after + n * size, rows - n < STEP_ROWS ? rows - n : STEP_ROWS, size, work};
        int good = decode_first(&s);
        for (Size layer = 1; good && layer < model->encdec.sizes.layers; layer++) good = decode_upper(&s, layer);
        if (!good || !look_at_sources(&s, memories + n, attention ? attention + n : NULL)) return 0;
    }
    return 1;
}

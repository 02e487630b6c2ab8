/* Legend: I lede sub-words, N headlines, J sub-words, G generator size, D size, H heads. Rows are
   the sub-words of all headlines, one headline after the other.

   What is known of a row never depends on the other headlines: a headline has the same bits alone
   and among others. */

#include "verifier_work.h"

#include <math.h>
#include <string.h>

#define LEAST_LOG -12.0f /* log-probabilities below it are all the same */
#define MAX_SKIPPED 8    /* skipped sub-words that count */
#define FAR_AWAY 1e4f    /* further than any state */
#define EPSILON 1e-5f    /* of layer norms */

/* --- products and sums ------------------------------------------------------------------------ */

static void multiply(VerifierWork *w, const Linear *layer, const float *values, Size from, Size rows,
                     float *outputs) {
    if (rows && w->good) w->good = apply_rows(w->kernels, layer, values, from, rows, outputs, &w->products);
}

/* Add what a layer of D outputs makes of some rows. */
static void add_product(VerifierWork *w, const Linear *layer, const float *values, Size from,
                        Size rows, float *outputs) {
    multiply(w, layer, values, from, rows, w->more);
    w->kernels->add(outputs, w->more, rows * w->stride);
}

/* Rows of D, normed. */
static void norm_rows(const VerifierWork *w, const LayerNorm *norm, const float *values, Size rows,
                      float *normed) {
    for (Size n = 0; n < rows; n++)
        w->kernels->layer_norm(values + n * w->stride, norm->gain, norm->bias,
                               normed + n * w->stride, w->v->shape.size, EPSILON);
}

static void cut_negative(float *values, Size number) {
    for (Size i = 0; i < number; i++) values[i] = values[i] > 0.0f ? values[i] : 0.0f;
}

/* Row i of the sums is the sum of the rows before i. */
static void cumulate(const VerifierWork *w, const float *values, Size width, float *sums) {
    for (Size i = 0; i < width; i++) w->sums[i] = 0.0, sums[i] = 0.0f;
    for (Size n = 0; n < w->num_source; n++)
        for (Size i = 0; i < width; i++) {
            w->sums[i] += values[n * width + i];
            sums[(n + 1) * width + i] = (float)w->sums[i];
        }
}

/* --- the lede --------------------------------------------------------------------------------- */

static void embed(const VerifierWork *w, const int32_t *ids, Size number, float *embedded) {
    for (Size i = 0; i < number; i++) table_row(&w->v->embedding, ids[i], embedded + i * w->embedded_width);
}

static void read_lede(VerifierWork *w) {
    const Verifier *v = w->v;
    Size number = w->num_source, given = v->shape.generator_size, width = w->embedded_width;
    Size keys = 0;
    for (Size i = 0; i < number; i++)
        if (w->source[i] != PAD) w->lede_keys[keys++] = (int32_t)i;
    embed(w, w->source, number, w->embedded);
    multiply(w, &v->lede, w->values, given, number, w->at);
    add_product(w, &v->lede_word, w->embedded, width, number, w->at);
    norm_rows(w, &v->lede_norm, w->at, number, w->memory);
    multiply(w, &v->at, w->values, given, number, w->at);
    multiply(w, &v->before, w->values, given, number, w->before);
    add_product(w, &v->word_before, w->embedded, width, number, w->before);
    multiply(w, &v->behind, w->values, given, number, w->behind);
    add_product(w, &v->word_behind, w->embedded, width, number, w->behind);
    multiply(w, &v->skipped, w->values, given, number, w->more);
    cumulate(w, w->more, w->stride, w->skipped_sums);
    cumulate(w, w->embedded, width, w->embedded_sums);
}

/* --- inputs of the rows ----------------------------------------------------------------------- */

/* What a layer makes of the states before (`step` 0) or after (1) each sub-word. */
static void multiply_states(VerifierWork *w, const Linear *layer, Size step, float *outputs) {
    Size given = w->v->shape.generator_size;
    if (!w->rows || !w->good || !(w->good = begin_rows(layer, w->rows, &w->products))) return;
    for (Size n = 0; n < w->num_headlines; n++) {
        const float *states = w->states_seen + (n * (w->width + 1) + step) * given;
        for (Size j = 0; j < w->spans[n].length; j++)
            fill_row(w->kernels, layer, w->spans[n].first + j, states + j * given, given, NULL, &w->products);
    }
    w->good = apply_filled(w->kernels, layer, w->rows, outputs, &w->products);
}

/* What stands at, behind and before the place of a row, and the mean of what was skipped. */
static void add_places(const VerifierWork *w, Size row) {
    const Place *place = &w->places[row];
    Size stride = w->stride, at = place->at;
    float *state = w->states + row * stride;
    if (at < 0) return;
    w->kernels->add(state, w->at + at * stride, stride);
    if (at + 1 < w->length) w->kernels->add(state, w->behind + (at + 1) * stride, stride);
    if (at > 0) w->kernels->add(state, w->before + (at - 1) * stride, stride);
    if (!place->num_skipped) return;
    const float *start = w->skipped_sums + place->start * stride;
    const float *stop = start + place->num_skipped * stride;
    for (Size i = 0; i < stride; i++) state[i] += (stop[i] - start[i]) / (float)place->num_skipped;
}

/* The mean of the skipped embeddings, which counts for more the more there are. */
static void mean_skipped_words(const VerifierWork *w, Size row, float *mean) {
    const Place *place = &w->places[row];
    Size width = w->embedded_width, number = place->num_skipped;
    const float *start = w->embedded_sums + place->start * width, *stop = start + number * width;
    float weight = sqrtf((float)(number < MAX_SKIPPED ? number : MAX_SKIPPED));
    if (!number) memset(mean, 0, (size_t)width * sizeof *mean);
    for (Size i = 0; number && i < width; i++)
        mean[i] = (stop[i] - start[i]) / (float)number * weight;
}

static float scaled_log(float log) { return (log > LEAST_LOG ? log : LEAST_LOG) / 4.0f; }

/* Numbers about a sub-word: how it is aligned, where it stands, how likely it was. */
static void describe(const VerifierWork *w, const Span *span, Size j, const float *logs, float *scalars) {
    const Place *place = &w->places[span->first + j];
    int is_aligned = place->at >= 0;
    Size distance = place->at - place->last;
    scalars[0] = (float)is_aligned;
    scalars[1] = (float)place->is_exact;
    scalars[2] = (float)(distance == 1 && is_aligned);
    scalars[3] = (float)(distance < 1 && is_aligned);
    scalars[4] = (float)natural_log(1.0 + (double)place->num_skipped);
    scalars[5] = (float)(place->num_skipped > 0);
    scalars[6] = (float)larger(place->at, 0) / (float)larger(w->length, 1);
    scalars[7] = (float)j / (float)larger(span->num_written, 1);
    scalars[8] = scaled_log(logs[j]);
    scalars[9] = scaled_log(logs[j + 1]);
    scalars[10] = (float)span->num_written / 20.0f;
    scalars[11] = (float)w->length / 40.0f;
}

static void describe_all(VerifierWork *w) {
    for (Size n = 0; n < w->num_headlines; n++) {
        const Span *span = &w->spans[n];
        for (Size j = 0; j < span->length; j++)
            describe(w, span, j, w->logs + n * (w->width + 1),
                     w->scalars + (span->first + j) * NUM_SCALARS);
    }
}

/* What is known of each sub-word: the first states. */
static void make_states(VerifierWork *w) {
    const Verifier *v = w->v;
    Size rows = w->rows, width = w->embedded_width;
    multiply_states(w, &v->state_before, 0, w->states);
    multiply_states(w, &v->state_after, 1, w->more);
    w->kernels->add(w->states, w->more, rows * w->stride);
    embed(w, w->words, rows, w->own_embedded);
    add_product(w, &v->word, w->own_embedded, width, rows, w->states);
    for (Size row = 0; row < rows; row++) {
        add_places(w, row);
        mean_skipped_words(w, row, w->own_embedded + row * width);
    }
    add_product(w, &v->words_skipped, w->own_embedded, width, rows, w->states);
    describe_all(w);
    add_product(w, &v->scalars, w->scalars, NUM_SCALARS, rows, w->states);
}

/* --- layers ----------------------------------------------------------------------------------- */

static void feed_forward(VerifierWork *w, const VerifierLayer *layer, Size first, Size rows) {
    float *states = w->states + first * w->stride;
    Size hidden = layer->up.stride;
    norm_rows(w, &layer->hidden_norm, states, rows, w->normed);
    multiply(w, &layer->up, w->normed, w->stride, rows, w->hidden);
    cut_negative(w->hidden, rows * hidden);
    add_product(w, &layer->down, w->hidden, hidden, rows, states);
}

static void apply_layer(VerifierWork *w, const VerifierLayer *layer) {
    norm_rows(w, &layer->attention_norm, w->states, w->rows, w->normed);
    multiply(w, &layer->query_key_value, w->normed, w->stride, w->rows, w->query_key_value);
    multiply(w, &layer->lede_key_value, w->memory, w->stride, w->num_source, w->lede_key_value);
    for (Size head = 0; head < w->v->shape.heads && w->good; head++) attend_with_head(w, head);
    add_product(w, &layer->mix, w->normed, w->stride, w->rows, w->states);
    for (Size first = 0; first < w->rows; first += AT_ONCE)
        feed_forward(w, layer, first, w->rows - first < AT_ONCE ? w->rows - first : AT_ONCE);
}

/* --- conclusion ------------------------------------------------------------------------------- */

/* Mean, highest and lowest of the written sub-words of a headline; a mean of none is 0. */
static void pool(const VerifierWork *w, const Span *span, float *pooled) {
    Size size = w->v->shape.size;
    float *mean = pooled, *highest = pooled + size, *lowest = highest + size;
    for (Size i = 0; i < size; i++) mean[i] = 0.0f, highest[i] = -FAR_AWAY, lowest[i] = FAR_AWAY;
    for (Size n = 0; n < span->num_written; n++) {
        const float *state = w->normed + w->own_keys[span->first + n] * w->stride;
        for (Size i = 0; i < size; i++) {
            mean[i] += state[i];
            highest[i] = n && highest[i] > state[i] ? highest[i] : state[i];
            lowest[i] = n && lowest[i] < state[i] ? lowest[i] : state[i];
        }
    }
    for (Size i = 0; i < size; i++) mean[i] /= (float)larger(span->num_written, 1);
}

static void write_outputs(VerifierWork *w, const Linear *layer, float *outputs) {
    Size number = layer->m;
    multiply(w, layer, w->pooled, w->stride, w->num_headlines, w->outputs);
    for (Size n = 0; n < w->num_headlines; n++)
        memcpy(outputs + n * number, w->outputs + n * layer->stride,
               (size_t)number * sizeof *outputs);
}

static void write_doubts(VerifierWork *w, float *doubts) {
    multiply(w, &w->v->doubt_output, w->normed, w->stride, w->rows, w->outputs);
    for (Size n = 0; n < w->num_headlines; n++) {
        const Span *span = &w->spans[n];
        const float *outputs = w->outputs + span->first * GROUP;
        for (Size j = 0; j < w->width; j++)
            doubts[n * w->width + j] = j < span->length ? outputs[j * GROUP] : 0.0f;
    }
}

static void conclude(VerifierWork *w, float *labels, float *doubts, float *kinds) {
    Size pooled = 3 * w->v->shape.size;
    norm_rows(w, &w->v->norm, w->states, w->rows, w->normed);
    for (Size n = 0; n < w->num_headlines; n++)
        pool(w, &w->spans[n], w->pooled_inputs + n * pooled);
    multiply(w, &w->v->pool, w->pooled_inputs, pooled, w->num_headlines, w->pooled);
    cut_negative(w->pooled, w->num_headlines * w->stride);
    write_outputs(w, &w->v->label_output, labels);
    write_outputs(w, &w->v->kind_output, kinds);
    write_doubts(w, doubts);
}

static void judge(VerifierWork *w, float *labels, float *doubts, float *kinds) {
    Size row = 0;
    for (Size n = 0; n < w->num_headlines; n++) {
        read_headline(w, n, row);
        row += w->spans[n].length;
    }
    read_lede(w);
    make_states(w);
    for (Size i = 0; i < w->v->shape.layers; i++) apply_layer(w, &w->v->layers[i]);
    conclude(w, labels, doubts, kinds);
}

int verifier_judge(const Verifier *v, const int32_t *source, Size num_source, const float *values,
                   Size num_headlines, Size width, const int32_t *headlines, const float *states,
                   const float *logs, float *labels, float *doubts, float *kinds) {
    VerifierWork w = {.v = v, .kernels = v->kernels, .good = 1, .source = source, .headlines = headlines,
              .values = values, .states_seen = states, .logs = logs, .num_source = num_source,
              .num_headlines = num_headlines, .width = width};
    if (!make_work(&w)) return 0;
    judge(&w, labels, doubts, kinds);
    drop_work(&w);
    return w.good;
}

/* Legend: I lede sub-words, N headlines, J sub-words, G generator size, D size, H heads. Rows are
   the sub-words of all headlines, one headline after the other.

   What is known of a row never depends on the other headlines: a headline has the same bits alone
   and among others. */

#include "verifier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAD 0
#define NUM_SCALARS 12
#define LEAST_LOG -12.0f /* log-probabilities below it are all the same */
#define MAX_SKIPPED 8    /* skipped sub-words that count */
#define FAR_AWAY 1e4f    /* further than any state */
#define EPSILON 1e-5f    /* of layer norms */
#define AT_ONCE 48       /* rows whose wide activations stay in the nearest caches */

static Size up(Size value, Size multiple) { return (value + multiple - 1) / multiple * multiple; }

static Size larger(Size one, Size other) { return one > other ? one : other; }

/* --- making ----------------------------------------------------------------------------------- */

#define MAX_SIZE 16384      /* so that the widest layer, of 4 D, can be multiplied */
#define MAX_INPUTS 65536
#define MAX_VOCABULARY ((Size)1 << 24)
#define MAX_LAYERS 64
#define LEAST_BOUND 1e-30f   /* what is smaller has no levels */

typedef struct {
    Tensors *tensors;
    Block **blocks;
    const char *const *names;
    const float *bounds;
    char *is_used; /* whether there is a layer of this name */
    Size num_bounds;
    int int8;
} Maker;

static int is_between(Size value, Size most) { return value > 0 && value <= most; }

static int check_shape(Tensors *tensors, const VerifierShape *shape) {
    int good = is_between(shape->vocabulary, MAX_VOCABULARY) && is_between(shape->size, MAX_SIZE) &&
               is_between(shape->heads, shape->size) && shape->size % shape->heads == 0 &&
               is_between(shape->layers, MAX_LAYERS) &&
               is_between(shape->embedding_size, MAX_INPUTS) &&
               is_between(shape->generator_size, MAX_INPUTS);
    if (!good) snprintf(tensors->error, sizeof tensors->error, "a verifier cannot have this shape");
    return good;
}

/* The bound of a layer, or 0 if it has none. */
static float bound_of(Maker *maker, const char *name) {
    for (Size i = 0; i < maker->num_bounds; i++)
        if (strcmp(maker->names[i], name) == 0) {
            maker->is_used[i] = 1;
            return maker->bounds[i];
        }
    return 0.0f;
}

/* The layer `prefix` + `name` of K inputs and M outputs. */
static int make_layer(Maker *maker, BoundedLinear *layer, const char *prefix, const char *name,
                      Size k, Size m) {
    char full[80], weight[100], bias[100];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    snprintf(weight, sizeof weight, "%s.weight", full);
    snprintf(bias, sizeof bias, "%s.bias", full);
    float bound = bound_of(maker, full);
    LayerSource source = {weight, bias, m, k, 0, k, 0, 1, 0};
    layer->bound = bound, layer->step = bound / MAX_LEVEL;
    return make_linear(&layer->linear, maker->tensors, maker->blocks, source,
                       maker->int8 && bound > 0.0f);
}

/* A vector of floats, or NULL. */
static const float *make_vector(Maker *maker, const char *name, Size number) {
    float *values = keep(maker->blocks, (size_t)number * sizeof *values);
    Linear zeros = {.m = number, .bias = values};
    return values && add_bias(&zeros, maker->tensors, name) ? values : NULL;
}

static int make_norm(Maker *maker, Norm *norm, const char *prefix, const char *name, Size size) {
    char gain[100], bias[100];
    snprintf(gain, sizeof gain, "%s%s.weight", prefix, name);
    snprintf(bias, sizeof bias, "%s%s.bias", prefix, name);
    norm->gain = make_vector(maker, gain, size);
    norm->bias = norm->gain ? make_vector(maker, bias, size) : NULL;
    return norm->bias != NULL;
}

static int make_attention_layer(Maker *maker, VerifierLayer *layer, Size number, Size size) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "layers.%td.", number);
    return make_norm(maker, &layer->attention_norm, prefix, "attention_norm", size) &&
           make_norm(maker, &layer->hidden_norm, prefix, "hidden_norm", size) &&
           make_layer(maker, &layer->lede_key_value, prefix, "lede_key_value", size, 2 * size) &&
           make_layer(maker, &layer->query_key_value, prefix, "query_key_value", size, 3 * size) &&
           make_layer(maker, &layer->mix, prefix, "mix", size, size) &&
           make_layer(maker, &layer->up, prefix, "up", size, 4 * size) &&
           make_layer(maker, &layer->down, prefix, "down", 4 * size, size);
}

static int make_attention_layers(Maker *maker, Verifier *v) {
    Size number = v->shape.layers;
    v->layers = keep(maker->blocks, (size_t)number * sizeof *v->layers);
    if (!v->layers) return 0;
    for (Size i = 0; i < number; i++)
        if (!make_attention_layer(maker, &v->layers[i], i, v->shape.size)) return 0;
    return 1;
}

static int make_input_layers(Maker *maker, Verifier *v) {
    Size d = v->shape.size, e = v->shape.embedding_size, g = v->shape.generator_size;
    return make_layer(maker, &v->lede, "", "lede", g, d) &&
           make_layer(maker, &v->lede_word, "", "lede_word", e, d) &&
           make_layer(maker, &v->at, "", "at", g, d) &&
           make_layer(maker, &v->before, "", "before", g, d) &&
           make_layer(maker, &v->behind, "", "behind", g, d) &&
           make_layer(maker, &v->skipped, "", "skipped", g, d) &&
           make_layer(maker, &v->word_before, "", "word_before", e, d) &&
           make_layer(maker, &v->word_behind, "", "word_behind", e, d) &&
           make_layer(maker, &v->words_skipped, "", "words_skipped", e, d) &&
           make_layer(maker, &v->state_before, "", "state_before", g, d) &&
           make_layer(maker, &v->state_after, "", "state_after", g, d) &&
           make_layer(maker, &v->word, "", "word", e, d) &&
           make_layer(maker, &v->scalars, "", "scalars", NUM_SCALARS, d) &&
           make_norm(maker, &v->lede_norm, "", "lede_norm", d);
}

static int make_output_layers(Maker *maker, Verifier *v) {
    Size d = v->shape.size;
    return make_norm(maker, &v->norm, "", "norm", d) &&
           make_layer(maker, &v->pool, "", "pool", 3 * d, d) &&
           make_layer(maker, &v->label_output, "", "label_output", d, NUM_LABELS) &&
           make_layer(maker, &v->doubt_output, "", "doubt_output", d, 1) &&
           make_layer(maker, &v->kind_output, "", "kind_output", d, NUM_ERROR_KINDS);
}

static int check_values(const Maker *maker) {
    for (Size i = 0; i < maker->num_bounds; i++) {
        float bound = maker->bounds[i];
        if (isfinite(bound) && bound >= LEAST_BOUND && bound <= 1.0f / LEAST_BOUND) continue;
        snprintf(maker->tensors->error, sizeof maker->tensors->error,
                 "the bound of %.120s is not a positive finite number", maker->names[i]);
        return 0;
    }
    return 1;
}

static int check_names(const Maker *maker) {
    for (Size i = 0; i < maker->num_bounds; i++) {
        if (maker->is_used[i]) continue;
        snprintf(maker->tensors->error, sizeof maker->tensors->error,
                 "%.120s has a bound but is not a linear layer of the verifier", maker->names[i]);
        return 0;
    }
    return 1;
}

static int make_all(Maker *maker, Verifier *v) {
    const VerifierShape *shape = &v->shape;
    if (!check_values(maker)) return 0;
    v->classes = make_vector(maker, "classes", shape->vocabulary);
    return v->classes &&
           make_table(&v->embedding, maker->tensors, maker->blocks, "embedding.weight",
                      shape->vocabulary, shape->embedding_size, 0) &&
           make_input_layers(maker, v) && make_attention_layers(maker, v) &&
           make_output_layers(maker, v) && check_names(maker);
}

int verifier_init(Verifier *v, Tensors *tensors, VerifierShape shape, const char *const *names,
                  const float *bounds, Size num_bounds, int int8, const Kernels *kernels) {
    memset(v, 0, sizeof *v);
    v->shape = shape, v->kernels = kernels;
    if (!check_shape(tensors, &shape)) return 0;
    char *is_used = calloc((size_t)num_bounds + 1, 1);
    Maker maker = {tensors, &v->blocks, names, bounds, is_used, num_bounds, int8};
    int good = is_used && make_all(&maker, v);
    free(is_used);
    if (!good) verifier_release(v);
    return good;
}

void verifier_release(Verifier *v) { release(&v->blocks); }

/* --- what a call works with ------------------------------------------------------------------- */

/* The rows of a headline, up to the last that is no <pad>. */
typedef struct {
    Size first, length;
    Size num_written; /* that are no <pad> */
} Span;

/* Where a sub-word stands in the lede. */
typedef struct {
    Size at, last;            /* its place, and that of the aligned sub-word before, or -1 */
    Size start, num_skipped;  /* what was skipped between the two */
    int is_exact;             /* whether the lede has the very sub-word there */
} Place;

typedef struct {
    const Verifier *v;
    const Kernels *kernels;
    int good; /* there was memory so far */
    Buffer scratch;
    /* What is asked. */
    const int32_t *source, *headlines;
    const float *values, *states_seen, *logs;
    Size num_source, num_headlines, width;
    /* Sizes: rows in all, the longest span, sub-words of the lede that are no <pad>; how far apart
       rows of D and embeddings are; inputs of a head, and the same rounded up. */
    Size rows, longest, length, stride, embedded_width, head, head_width;
    Span *spans;         /* (N) */
    Place *places;       /* (rows) */
    int32_t *words;      /* (rows) */
    int32_t *lede_keys;  /* (I): places that are no <pad> */
    int32_t *own_keys;   /* (rows): the same for the rows of each span, from its first on */
    void *inputs;        /* of the layer that is applied */
    double *sums;        /* of one row */
    /* Of the lede: rows of D, embeddings, and sums of all rows before. */
    float *embedded, *memory, *at, *before, *behind, *skipped_sums, *embedded_sums, *lede_key_value;
    /* Of the rows. */
    float *states, *more, *normed, *own_embedded, *scalars, *query_key_value, *hidden;
    /* Of one head. */
    float *queries, *packed_keys, *packed_values, *own_packed_keys, *own_packed_values;
    float *scores, *own_scores, *weights, *own_weights, *both, *mixed, *own_mixed;
    /* Of the headlines. */
    float *pooled_inputs, *pooled, *outputs;
} Work;

/* One piece of memory that is handed out in parts. */
typedef struct {
    char *start; /* NULL as long as parts are only counted */
    size_t used;
} Arena;

static void *take(Arena *arena, Size rows, Size cols, size_t size) {
    void *part = arena->start ? arena->start + arena->used : NULL;
    arena->used += ((size_t)rows * (size_t)cols * size + 63) / 64 * 64;
    return part;
}

static float *floats(Arena *arena, Size rows, Size cols) {
    return take(arena, rows, cols, sizeof(float));
}

static void lay_out_lede(Work *w, Arena *arena) {
    Size number = w->num_source, stride = w->stride, embedded = w->embedded_width;
    w->lede_keys = take(arena, number, 1, sizeof *w->lede_keys);
    w->sums = take(arena, larger(stride, embedded), 1, sizeof *w->sums);
    w->embedded = floats(arena, number, embedded);
    w->memory = floats(arena, number, stride);
    w->at = floats(arena, number, stride);
    w->before = floats(arena, number, stride);
    w->behind = floats(arena, number, stride);
    w->skipped_sums = floats(arena, number + 1, stride);
    w->embedded_sums = floats(arena, number + 1, embedded);
    w->lede_key_value = floats(arena, number, up(2 * w->v->shape.size, GROUP));
}

static void lay_out_rows(Work *w, Arena *arena) {
    Size rows = w->rows, stride = w->stride, size = w->v->shape.size;
    w->spans = take(arena, w->num_headlines, 1, sizeof *w->spans);
    w->places = take(arena, rows, 1, sizeof *w->places);
    w->words = take(arena, rows, 1, sizeof *w->words);
    w->own_keys = take(arena, rows, 1, sizeof *w->own_keys);
    w->states = floats(arena, rows, stride);
    w->more = floats(arena, larger(rows, w->num_source), stride);
    w->normed = floats(arena, rows, stride);
    w->own_embedded = floats(arena, rows, w->embedded_width);
    w->scalars = floats(arena, rows, NUM_SCALARS);
    w->query_key_value = floats(arena, rows, up(3 * size, GROUP));
    w->hidden = floats(arena, AT_ONCE, up(4 * size, GROUP));
    w->pooled_inputs = floats(arena, w->num_headlines, 3 * size);
    w->pooled = floats(arena, w->num_headlines, stride);
    w->outputs = floats(arena, larger(rows, w->num_headlines), GROUP);
}

static void lay_out_head(Work *w, Arena *arena) {
    Size rows = w->rows, longest = w->longest, head = w->head, head_width = w->head_width;
    Size keys = up(w->length, GROUP), own = up(longest, GROUP);
    w->queries = floats(arena, rows, head);
    w->packed_keys = floats(arena, keys, head);
    w->packed_values = floats(arena, w->length, head_width);
    w->own_packed_keys = floats(arena, own, head);
    w->own_packed_values = floats(arena, longest, head_width);
    w->scores = floats(arena, rows, keys);
    w->own_scores = floats(arena, longest, own);
    w->weights = floats(arena, rows, w->length);
    w->own_weights = floats(arena, longest, longest);
    w->both = floats(arena, w->length + longest, 1);
    w->mixed = floats(arena, rows, head_width);
    w->own_mixed = floats(arena, longest, head_width);
}

/* Inputs of the widest layers, in floats; of the layer of 4 D, AT_ONCE rows at a time. */
static void lay_out_inputs(Work *w, Arena *arena) {
    const VerifierShape *shape = &w->v->shape;
    Size rows = larger(larger(w->rows, w->num_source), 1);
    Size widest = larger(larger(shape->generator_size, shape->embedding_size), shape->size);
    Size number = rows * up(larger(widest, NUM_SCALARS), QUAD);
    number = larger(number, w->num_headlines * up(3 * shape->size, QUAD));
    w->inputs = floats(arena, larger(number, AT_ONCE * up(4 * shape->size, QUAD)), 1);
}

static size_t lay_out(Work *w, void *start) {
    Arena arena = {start, 0};
    lay_out_lede(w, &arena);
    lay_out_rows(w, &arena);
    lay_out_head(w, &arena);
    lay_out_inputs(w, &arena);
    return arena.used;
}

static Size span_length(const int32_t *ids, Size width) {
    while (width && ids[width - 1] == PAD) width--;
    return width;
}

static void measure(Work *w) {
    const VerifierShape *shape = &w->v->shape;
    w->stride = up(shape->size, GROUP), w->embedded_width = w->v->embedding.width;
    w->head = shape->size / shape->heads, w->head_width = up(w->head, GROUP);
    for (Size i = 0; i < w->num_source; i++) w->length += w->source[i] != PAD;
    for (Size n = 0; n < w->num_headlines; n++) {
        Size length = span_length(w->headlines + n * w->width, w->width);
        w->rows += length, w->longest = larger(w->longest, length);
    }
}

/* --- products and sums ------------------------------------------------------------------------ */

/* Rows of values, `from` apart, as inputs of a layer, from row `first` on. */
static void fill(Work *w, const BoundedLinear *layer, const float *values, Size from, Size first,
                 Size rows) {
    const Linear *linear = &layer->linear;
    size_t size = linear->int8 ? sizeof(int8_t) : sizeof(float);
    char *to = (char *)w->inputs + (size_t)(first * linear->width) * size;
    as_inputs(w->kernels, linear->int8, values, from, to, linear->width, rows, linear->k,
              layer->bound);
    size_t behind = (size_t)(linear->width - linear->k) * size;
    for (Size n = 0; behind && n < rows; n++)
        memset(to + (size_t)(n * linear->width + linear->k) * size, 0, behind);
}

static void multiply_filled(Work *w, const BoundedLinear *layer, Size rows, float *outputs) {
    if (rows && w->good)
        w->good = apply(w->kernels, &layer->linear, w->inputs, rows, &layer->step, 1, outputs,
                        &w->scratch);
}

static void multiply(Work *w, const BoundedLinear *layer, const float *values, Size from, Size rows,
                     float *outputs) {
    fill(w, layer, values, from, 0, rows);
    multiply_filled(w, layer, rows, outputs);
}

/* Add what a layer of D outputs makes of some rows. */
static void add_product(Work *w, const BoundedLinear *layer, const float *values, Size from,
                        Size rows, float *outputs) {
    multiply(w, layer, values, from, rows, w->more);
    w->kernels->add(outputs, w->more, rows * w->stride);
}

/* Rows of D, normed. */
static void norm_rows(const Work *w, const Norm *norm, const float *values, Size rows,
                      float *normed) {
    for (Size n = 0; n < rows; n++)
        w->kernels->layer_norm(values + n * w->stride, norm->gain, norm->bias,
                               normed + n * w->stride, w->v->shape.size, EPSILON);
}

static void cut_negative(float *values, Size number) {
    for (Size i = 0; i < number; i++) values[i] = values[i] > 0.0f ? values[i] : 0.0f;
}

/* Row i of the sums is the sum of the rows before i. */
static void cumulate(const Work *w, const float *values, Size width, float *sums) {
    for (Size i = 0; i < width; i++) w->sums[i] = 0.0, sums[i] = 0.0f;
    for (Size n = 0; n < w->num_source; n++)
        for (Size i = 0; i < width; i++) {
            w->sums[i] += values[n * width + i];
            sums[(n + 1) * width + i] = (float)w->sums[i];
        }
}

/* --- the lede --------------------------------------------------------------------------------- */

static void embed(const Work *w, const int32_t *ids, Size number, float *embedded) {
    size_t size = (size_t)w->embedded_width * sizeof *embedded;
    for (Size i = 0; i < number; i++)
        memcpy(embedded + i * w->embedded_width,
               w->v->embedding.values + ids[i] * w->embedded_width, size);
}

static void read_lede(Work *w) {
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

/* --- alignment -------------------------------------------------------------------------------- */

/* How good a place of the lede is if it has the sub-word; `next_too`: also the next one. */
static float place_score(Size distance, int next_too, int is_exact) {
    float score = 1.5f * (float)next_too + 0.3f * (float)is_exact;
    float ahead = 0.03f * (float)(distance < 40 ? distance : 40);
    float back = 0.6f - 0.01f * (float)distance;
    return (score + (distance == 0 ? 2.0f : 0.0f)) - (distance < 0 ? back : ahead);
}

/* The best place of a sub-word in the lede, or -1; `next` is the sub-word behind it, or <pad>. */
static Size find_place(const Work *w, int32_t word, int32_t next, Size last) {
    const float *classes = w->v->classes;
    float own = classes[word], following = next == PAD ? 0.0f : classes[next], best = -FAR_AWAY / 2;
    Size place = -1;
    for (Size i = 0; own > 0.0f && i < w->num_source; i++) {
        if (classes[w->source[i]] != own) continue;
        int next_too = following > 0.0f && i + 1 < w->num_source &&
                       classes[w->source[i + 1]] == following;
        float score = place_score(i - last - 1, next_too, w->source[i] == word);
        if (score > best) best = score, place = i;
    }
    return place;
}

static Place place_of(const Work *w, int32_t word, int32_t next, Size last) {
    Place place = {find_place(w, word, next, last), last, 0, 0, 0};
    if (place.at < 0) return place;
    Size low = place.at > last ? last : place.at, high = place.at > last ? place.at : last;
    place.start = low + 1;
    place.num_skipped = high > place.start ? high - place.start : 0;
    place.is_exact = w->source[place.at] == word;
    return place;
}

/* The rows of a headline: its sub-words and their places, from left to right. */
static void read_headline(Work *w, Size number, Size first) {
    const int32_t *ids = w->headlines + number * w->width;
    Span span = {first, span_length(ids, w->width), 0};
    Size last = -1;
    for (Size j = 0; j < span.length; j++) {
        Place place = place_of(w, ids[j], j + 1 < span.length ? ids[j + 1] : PAD, last);
        w->places[first + j] = place, w->words[first + j] = ids[j];
        if (place.at >= 0) last = place.at;
        if (ids[j] != PAD) w->own_keys[first + span.num_written++] = (int32_t)(first + j);
    }
    w->spans[number] = span;
}

/* --- inputs of the rows ----------------------------------------------------------------------- */

/* The states before (`step` 0) or after (1) each sub-word become inputs. */
static void fill_states(Work *w, const BoundedLinear *layer, Size step) {
    Size given = w->v->shape.generator_size;
    for (Size n = 0; n < w->num_headlines; n++)
        fill(w, layer, w->states_seen + (n * (w->width + 1) + step) * given, given,
             w->spans[n].first, w->spans[n].length);
}

/* What stands at, behind and before the place of a row, and the mean of what was skipped. */
static void add_places(const Work *w, Size row) {
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
static void mean_skipped_words(const Work *w, Size row, float *mean) {
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
static void describe(const Work *w, const Span *span, Size j, const float *logs, float *scalars) {
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

static void describe_all(Work *w) {
    for (Size n = 0; n < w->num_headlines; n++) {
        const Span *span = &w->spans[n];
        for (Size j = 0; j < span->length; j++)
            describe(w, span, j, w->logs + n * (w->width + 1),
                     w->scalars + (span->first + j) * NUM_SCALARS);
    }
}

/* What is known of each sub-word: the first states. */
static void make_states(Work *w) {
    const Verifier *v = w->v;
    Size rows = w->rows, width = w->embedded_width;
    fill_states(w, &v->state_before, 0);
    multiply_filled(w, &v->state_before, rows, w->states);
    fill_states(w, &v->state_after, 1);
    multiply_filled(w, &v->state_after, rows, w->more);
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

/* --- attention -------------------------------------------------------------------------------- */

/* Keys and values are packed like the weights of a layer, so that scores and mixed values of all
   rows are products of floats. `rows` says which rows of `from`, `apart` from each other, are packed. */

static void pack_keys(const float *from, Size apart, const int32_t *rows, Size number, Size head,
                      float *packed) {
    memset(packed, 0, (size_t)(up(number, GROUP) * head) * sizeof *packed);
    for (Size n = 0; n < number; n++) {
        const float *key = from + rows[n] * apart;
        float *to = packed + n / GROUP * GROUP * head + n % GROUP;
        for (Size i = 0; i < head; i++) to[i * GROUP] = key[i];
    }
}

static void pack_values(const float *from, Size apart, const int32_t *rows, Size number, Size head,
                        float *packed) {
    for (Size first = 0; first < head; first += GROUP) {
        Size some = head - first < GROUP ? head - first : GROUP;
        for (Size n = 0; n < number; n++, packed += GROUP) {
            memcpy(packed, from + rows[n] * apart + first, (size_t)some * sizeof *packed);
            for (Size i = some; i < GROUP; i++) packed[i] = 0.0f;
        }
    }
}

/* The queries of a head, scaled. */
static void take_queries(const Work *w, Size head_number) {
    Size head = w->head, apart = up(3 * w->v->shape.size, GROUP);
    float scale = 1.0f / sqrtf((float)head);
    for (Size row = 0; row < w->rows; row++) {
        const float *from = w->query_key_value + row * apart + head_number * head;
        for (Size i = 0; i < head; i++) w->queries[row * head + i] = from[i] * scale;
    }
}

/* Scores of the lede and of the headline -> weights of both, whose sum is 1. */
static void weigh(const Work *w, const Span *span) {
    Size length = w->length, own = span->num_written;
    size_t size = (size_t)length * sizeof(float), own_size = (size_t)own * sizeof(float);
    for (Size j = 0; j < span->length; j++) {
        Size row = span->first + j;
        memcpy(w->both, w->scores + row * up(length, GROUP), size);
        memcpy(w->both + length, w->own_scores + j * up(own, GROUP), own_size);
        w->kernels->softmax(w->both, length + own);
        memcpy(w->weights + row * length, w->both, size);
        memcpy(w->own_weights + j * own, w->both + length, own_size);
    }
}

/* Attention of a headline to itself, and the weights of the lede's sub-words. */
static void attend_to_own(const Work *w, const Span *span, Size head_number) {
    Size size = w->v->shape.size, apart = up(3 * size, GROUP), own = span->num_written;
    const float *keys = w->query_key_value + size + head_number * w->head, *values = keys + size;
    const int32_t *rows = w->own_keys + span->first;
    pack_keys(keys, apart, rows, own, w->head, w->own_packed_keys);
    pack_values(values, apart, rows, own, w->head, w->own_packed_values);
    w->kernels->float_product(w->own_packed_keys, w->queries + span->first * w->head, span->length,
                              w->head, up(own, GROUP), w->own_scores, up(own, GROUP));
    weigh(w, span);
    w->kernels->float_product(w->own_packed_values, w->own_weights, span->length, own,
                              w->head_width, w->own_mixed, w->head_width);
    for (Size j = 0; j < span->length; j++)
        memcpy(w->normed + (span->first + j) * w->stride + head_number * w->head,
               w->own_mixed + j * w->head_width, (size_t)w->head * sizeof(float));
}

/* One head: what its rows see of the lede and of their headlines, to `normed`. */
static void attend(const Work *w, Size head_number) {
    Size size = w->v->shape.size, apart = up(2 * size, GROUP), head = w->head, length = w->length;
    const float *keys = w->lede_key_value + head_number * head, *values = keys + size;
    pack_keys(keys, apart, w->lede_keys, length, head, w->packed_keys);
    pack_values(values, apart, w->lede_keys, length, head, w->packed_values);
    take_queries(w, head_number);
    w->kernels->float_product(w->packed_keys, w->queries, w->rows, head, up(length, GROUP),
                              w->scores, up(length, GROUP));
    for (Size n = 0; n < w->num_headlines; n++)
        if (w->spans[n].length) attend_to_own(w, &w->spans[n], head_number);
    w->kernels->float_product(w->packed_values, w->weights, w->rows, length, w->head_width,
                              w->mixed, w->head_width);
    for (Size row = 0; row < w->rows; row++)
        w->kernels->add(w->normed + row * w->stride + head_number * head,
                        w->mixed + row * w->head_width, head);
}

/* --- layers ----------------------------------------------------------------------------------- */

static void feed_forward(Work *w, const VerifierLayer *layer, Size first, Size rows) {
    float *states = w->states + first * w->stride;
    Size hidden = layer->up.linear.stride;
    norm_rows(w, &layer->hidden_norm, states, rows, w->normed);
    multiply(w, &layer->up, w->normed, w->stride, rows, w->hidden);
    cut_negative(w->hidden, rows * hidden);
    add_product(w, &layer->down, w->hidden, hidden, rows, states);
}

static void apply_layer(Work *w, const VerifierLayer *layer) {
    norm_rows(w, &layer->attention_norm, w->states, w->rows, w->normed);
    multiply(w, &layer->query_key_value, w->normed, w->stride, w->rows, w->query_key_value);
    multiply(w, &layer->lede_key_value, w->memory, w->stride, w->num_source, w->lede_key_value);
    for (Size head = 0; head < w->v->shape.heads && w->good; head++) attend(w, head);
    add_product(w, &layer->mix, w->normed, w->stride, w->rows, w->states);
    for (Size first = 0; first < w->rows; first += AT_ONCE)
        feed_forward(w, layer, first, w->rows - first < AT_ONCE ? w->rows - first : AT_ONCE);
}

/* --- conclusion ------------------------------------------------------------------------------- */

/* Mean, highest and lowest of the written sub-words of a headline; a mean of none is 0. */
static void pool(const Work *w, const Span *span, float *pooled) {
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

static void write_outputs(Work *w, const BoundedLinear *layer, float *outputs) {
    Size number = layer->linear.m;
    multiply(w, layer, w->pooled, w->stride, w->num_headlines, w->outputs);
    for (Size n = 0; n < w->num_headlines; n++)
        memcpy(outputs + n * number, w->outputs + n * layer->linear.stride,
               (size_t)number * sizeof *outputs);
}

static void write_doubts(Work *w, float *doubts) {
    multiply(w, &w->v->doubt_output, w->normed, w->stride, w->rows, w->outputs);
    for (Size n = 0; n < w->num_headlines; n++) {
        const Span *span = &w->spans[n];
        const float *outputs = w->outputs + span->first * GROUP;
        for (Size j = 0; j < w->width; j++)
            doubts[n * w->width + j] = j < span->length ? outputs[j * GROUP] : 0.0f;
    }
}

static void conclude(Work *w, float *labels, float *doubts, float *kinds) {
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

static void judge(Work *w, float *labels, float *doubts, float *kinds) {
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
    Work w = {.v = v, .kernels = v->kernels, .good = 1, .source = source, .headlines = headlines,
              .values = values, .states_seen = states, .logs = logs, .num_source = num_source,
              .num_headlines = num_headlines, .width = width};
    measure(&w);
    void *memory = malloc(lay_out(&w, NULL) + 64);
    if (!memory) return 0;
    lay_out(&w, (char *)memory + (64 - (uintptr_t)memory % 64));
    judge(&w, labels, doubts, kinds);
    free(memory), free(w.scratch.at);
    return w.good;
}

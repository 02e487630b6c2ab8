/* The weights of the verifier. Legend: D size. */

#include "verifier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    layer->bound = bound, layer->step = bound / MAX_LEVEL;
    return make_linear(&layer->linear, maker->tensors, maker->blocks, whole_matrix(weight, bias, m, k),
                       maker->int8 && bound > 0.0f);
}

static int make_own_norm(Maker *maker, LayerNorm *norm, const char *prefix, const char *name, Size size) {
    return make_norm(norm, maker->tensors, maker->blocks, prefix, name, size);
}

static int make_attention_layer(Maker *maker, VerifierLayer *layer, Size number, Size size) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "layers.%td.", number);
    return make_own_norm(maker, &layer->attention_norm, prefix, "attention_norm", size) &&
           make_own_norm(maker, &layer->hidden_norm, prefix, "hidden_norm", size) &&
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
           make_own_norm(maker, &v->lede_norm, "", "lede_norm", d);
}

static int make_output_layers(Maker *maker, Verifier *v) {
    Size d = v->shape.size;
    return make_own_norm(maker, &v->norm, "", "norm", d) &&
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
    v->classes = make_vector(maker->tensors, maker->blocks, "classes", shape->vocabulary);
    return v->classes &&
           make_table(&v->embedding, maker->tensors, maker->blocks, "embedding.weight",
                      shape->vocabulary, shape->embedding_size, 0) &&
           make_input_layers(maker, v) && make_attention_layers(maker, v) &&
           make_output_layers(maker, v) && check_names(maker) &&
           all_are_used(maker->tensors, "the verifier");
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

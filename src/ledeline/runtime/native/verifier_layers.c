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

typedef struct {
    Tensors *tensors;
    Block **blocks;
    int int8;
} Maker;

static int check_shape(Tensors *tensors, const VerifierShape *shape) {
    int good = is_between(shape->vocabulary, 1, MAX_VOCABULARY) && is_between(shape->size, 1, MAX_SIZE) &&
               is_between(shape->heads, 1, shape->size) && shape->size % shape->heads == 0 &&
               is_between(shape->layers, 1, MAX_LAYERS) && is_between(shape->embedding_size, 1, MAX_INPUTS) &&
               is_between(shape->generator_size, 1, MAX_INPUTS);
    if (!good) snprintf(tensors->error, sizeof tensors->error, "a verifier cannot have this shape");
    return good;
}

/* The layer `prefix` + `name` of K inputs and M outputs. */
static int make_any(Maker *maker, Linear *layer, const char *prefix, const char *name, Size k, Size m, int int8) {
    char weight[100], bias[100];
    snprintf(weight, sizeof weight, "%s%s.weight", prefix, name);
    snprintf(bias, sizeof bias, "%s%s.bias", prefix, name);
    return make_linear(layer, maker->tensors, maker->blocks, whole_matrix(weight, bias, m, k), int8);
}

static int make_layer(Maker *maker, Linear *layer, const char *prefix, const char *name, Size k, Size m) {
    return make_any(maker, layer, prefix, name, k, m, maker->int8);
}

static int make_narrow(Maker *maker, Linear *layer, const char *name, Size k, Size m) {
    return make_any(maker, layer, "", name, k, m, 0);
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
           make_narrow(maker, &v->scalars, "scalars", NUM_SCALARS, d) &&
           make_own_norm(maker, &v->lede_norm, "", "lede_norm", d);
}

static int make_output_layers(Maker *maker, Verifier *v) {
    Size d = v->shape.size;
    return make_own_norm(maker, &v->norm, "", "norm", d) &&
           make_layer(maker, &v->pool, "", "pool", 3 * d, d) &&
           make_narrow(maker, &v->label_output, "label_output", d, NUM_LABELS) &&
           make_narrow(maker, &v->doubt_output, "doubt_output", d, 1) &&
           make_narrow(maker, &v->kind_output, "kind_output", d, NUM_ERROR_KINDS);
}

static int make_all(Maker *maker, Verifier *v) {
    const VerifierShape *shape = &v->shape;
    v->classes = make_vector(maker->tensors, maker->blocks, "classes", shape->vocabulary);
    return v->classes &&
           make_table(&v->embedding, maker->tensors, maker->blocks, "embedding.weight",
                      shape->vocabulary, shape->embedding_size, 0) &&
           make_input_layers(maker, v) && make_attention_layers(maker, v) &&
           make_output_layers(maker, v) && all_are_used(maker->tensors, "the verifier");
}

int verifier_init(Verifier *v, Tensors *tensors, VerifierShape shape, int int8, const Kernels *kernels) {
    memset(v, 0, sizeof *v);
    v->shape = shape, v->kernels = kernels;
    tensors->adds_pairs = kernels->adds_pairs;
    Maker maker = {tensors, &v->blocks, int8};
    int good = check_shape(tensors, &shape) && make_all(&maker, v);
    if (!good) verifier_release(v);
    return good;
}

void verifier_release(Verifier *v) { release(&v->blocks); }

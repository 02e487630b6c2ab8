#include "transformer_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SIZE ((Size)1 << 14)
#define MAX_HIDDEN ((Size)1 << 16)
#define MAX_LAYERS 64
#define MAX_VOCABULARY ((Size)1 << 22)

/* What all weights are made with. */
typedef struct {
    Tensors *tensors;
    Block **blocks;
    int int8;
    Size size, hidden;
} Maker;

static int are_possible(const TransformerSizes *s) {
    return is_between(s->vocabulary, 4, MAX_VOCABULARY) && is_between(s->size, 2, MAX_SIZE) && s->size % 2 == 0 &&
           is_between(s->hidden, 1, MAX_HIDDEN) && is_between(s->heads, 1, s->size) && s->size % s->heads == 0 &&
           is_between(s->encoder_layers, 1, MAX_LAYERS) && is_between(s->decoder_layers, 1, MAX_LAYERS) &&
           is_between(s->attention_layer, 1, s->decoder_layers) && is_between(s->attention_head, 0, s->heads);
}

/* The layer `prefix` + `name` of K inputs and M outputs. */
static int make_layer(const Maker *maker, Linear *layer, const char *prefix, const char *name, Size k, Size m) {
    char weight[100], bias[100];
    snprintf(weight, sizeof weight, "%s%s.weight", prefix, name);
    snprintf(bias, sizeof bias, "%s%s.bias", prefix, name);
    return make_linear(layer, maker->tensors, maker->blocks, whole_matrix(weight, bias, m, k), maker->int8);
}

static int make_own_norm(const Maker *maker, LayerNorm *norm, const char *prefix, const char *name) {
    return make_norm(norm, maker->tensors, maker->blocks, prefix, name, maker->size);
}

static int make_shared_parts(const Maker *maker, TransformerLayer *layer, const char *prefix) {
    Size d = maker->size;
    SelfAttention *self = &layer->self;
    FeedForward *feed_forward = &layer->feed_forward;
    return make_own_norm(maker, &self->norm, prefix, "attention_norm") &&
           make_layer(maker, &self->of_state, prefix, "attention.of_state", d, 3 * d) &&
           make_layer(maker, &self->mix, prefix, "attention.mix", d, d) &&
           make_own_norm(maker, &feed_forward->norm, prefix, "feed_forward_norm") &&
           make_layer(maker, &feed_forward->inward, prefix, "feed_forward.inward", d, maker->hidden) &&
           make_layer(maker, &feed_forward->outward, prefix, "feed_forward.outward", maker->hidden, d);
}

static int make_source_attention(const Maker *maker, SourceAttention *source, const char *prefix) {
    Size d = maker->size;
    return make_own_norm(maker, &source->norm, prefix, "source_norm") &&
           make_layer(maker, &source->of_state, prefix, "source_attention.of_state", d, d) &&
           make_layer(maker, &source->of_source, prefix, "source_attention.of_source", d, 2 * d) &&
           make_layer(maker, &source->mix, prefix, "source_attention.mix", d, d);
}

/* The layers of the encoder or decoder and its last norm. */
static TransformerLayer *make_stack(const Maker *maker, const char *name, Size number, LayerNorm *norm) {
    char prefix[40];
    TransformerLayer *layers = keep(maker->blocks, (size_t)number * sizeof *layers);
    int decodes = strcmp(name, "decoder") == 0, good = layers != NULL;
    for (Size n = 0; good && n < number; n++) {
        snprintf(prefix, sizeof prefix, "%s.layers.%td.", name, n);
        good = make_shared_parts(maker, &layers[n], prefix) &&
               (!decodes || make_source_attention(maker, &layers[n].source, prefix));
    }
    snprintf(prefix, sizeof prefix, "%s.", name);
    return good && make_own_norm(maker, norm, prefix, "norm") ? layers : NULL;
}

int make_transformer(Transformer *transformer, Linear *output, Tensors *tensors, Block **blocks,
                     TransformerSizes sizes, int int8, const Kernels *kernels) {
    static const char TABLE[] = "encoder.words.table.weight"; /* of ledes, headlines and the output layer */
    memset(transformer, 0, sizeof *transformer);
    if (!are_possible(&sizes)) {
        snprintf(tensors->error, sizeof tensors->error, "the sizes of the model are not possible");
        return 0;
    }
    Maker maker = {tensors, blocks, int8, sizes.size, sizes.hidden};
    LayerSource tied = whole_matrix(TABLE, "output.bias", sizes.vocabulary, sizes.size);
    transformer->sizes = sizes;
    transformer->heads = heads_of(kernels, sizes.size, sizes.heads);
    transformer->scale = (float)sqrt((double)sizes.size);
    if (!make_table(&transformer->words, tensors, blocks, TABLE, sizes.vocabulary, sizes.size, int8) ||
        !make_linear(output, tensors, blocks, tied, int8) || !positions_init(&transformer->positions, blocks, sizes.size))
        return 0;
    transformer->encoder = make_stack(&maker, "encoder", sizes.encoder_layers, &transformer->encoder_norm);
    if (transformer->encoder)
        transformer->decoder = make_stack(&maker, "decoder", sizes.decoder_layers, &transformer->decoder_norm);
    return transformer->decoder != NULL;
}

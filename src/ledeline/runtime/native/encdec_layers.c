#include "encdec_layers.h"

#include <stdio.h>
#include <string.h>

#define MAX_SIZE ((Size)1 << 14)
#define MAX_VOCABULARY ((Size)1 << 22)

/* What all weights are made with. */
typedef struct {
    EncDec *encdec;
    Tensors *tensors;
    Block **blocks;
    int int8;
} Maker;

static int are_possible(const EncDecSizes *s) {
    return is_between(s->vocabulary, 4, MAX_VOCABULARY) && is_between(s->embedding, 1, MAX_SIZE) &&
           is_between(s->hidden, 1, MAX_SIZE) && is_between(s->layers, 1, MAX_ENCDEC_LAYERS);
}

static int make_layer(const Maker *maker, Linear *layer, LayerSource source) {
    return make_linear(layer, maker->tensors, maker->blocks, source, maker->int8);
}

static int make_words(const Maker *maker, Table *table, const char *name) {
    const EncDecSizes *s = &maker->encdec->sizes;
    return make_table(table, maker->tensors, maker->blocks, name, s->vocabulary, s->embedding, maker->int8);
}

/* One direction of a layer of the encoder. Its two biases are added up. */
static int make_direction(const Maker *maker, EncoderLayer *layer, Size number, int backwards) {
    const EncDecSizes *s = &maker->encdec->sizes;
    Size inputs = number ? s->hidden : s->embedding, gates = 4 * s->hidden;
    const char *const kinds[4] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    char names[4][80];
    for (int i = 0; i < 4; i++)
        snprintf(names[i], sizeof names[i], "encoder.layers.%td.%s_l0%s", number, kinds[i], backwards ? "_reverse" : "");
    Linear *input = &layer->input[backwards];
    return make_layer(maker, input, whole_matrix(names[0], names[2], gates, inputs)) &&
           add_bias(input, maker->tensors, names[3]) &&
           make_layer(maker, &layer->recurrent[backwards], whole_matrix(names[1], NULL, gates, s->hidden));
}

static int make_encoder(const Maker *maker) {
    EncDec *encdec = maker->encdec;
    for (Size n = 0; n < encdec->sizes.layers; n++)
        if (!make_direction(maker, &encdec->encoder[n], n, 0) || !make_direction(maker, &encdec->encoder[n], n, 1))
            return 0;
    return 1;
}

/* Columns from `first` on of a matrix that is two layers side by side. */
static LayerSource part_of(const char *name, Size rows, Size cols, Size first, Size k) {
    LayerSource part = whole_matrix(name, NULL, rows, cols);
    part.first = first, part.k = k, part.part = first > 0, part.parts = 2;
    return part;
}

static int make_decoder(const Maker *maker) {
    static const char FIRST[] = "decoder.first.weight";
    EncDec *encdec = maker->encdec;
    Size h = encdec->sizes.hidden, d = encdec->sizes.embedding;
    LayerSource word = part_of(FIRST, 4 * h, d + 2 * h, 0, d);
    word.bias = "decoder.first.bias";
    if (!make_layer(maker, &encdec->first_word, word) ||
        !make_layer(maker, &encdec->decoder[0], part_of(FIRST, 4 * h, d + 2 * h, d, 2 * h)))
        return 0;
    for (Size n = 1; n < encdec->sizes.layers; n++) {
        char weight[60], bias[60];
        snprintf(weight, sizeof weight, "decoder.upper.%td.weight", n - 1);
        snprintf(bias, sizeof bias, "decoder.upper.%td.bias", n - 1);
        if (!make_layer(maker, &encdec->decoder[n], whole_matrix(weight, bias, 4 * h, 2 * h))) return 0;
    }
    return 1;
}

static int make_attention(const Maker *maker) {
    static const char MIX[] = "decoder.attention.mix.weight";
    EncDec *encdec = maker->encdec;
    Size h = encdec->sizes.hidden;
    LayerSource key = whole_matrix("decoder.attention.bilinear", NULL, h, h);
    key.transposed = 1;
    return make_layer(maker, &encdec->key, key) &&
           make_layer(maker, &encdec->value, part_of(MIX, h, 2 * h, 0, h)) &&
           make_layer(maker, &encdec->query, part_of(MIX, h, 2 * h, h, h));
}

int make_encdec(EncDec *encdec, Linear *output, Tensors *tensors, Block **blocks, EncDecSizes sizes, int int8) {
    Maker maker = {encdec, tensors, blocks, int8};
    memset(encdec, 0, sizeof *encdec);
    if (!are_possible(&sizes)) {
        snprintf(tensors->error, sizeof tensors->error, "the sizes of the model are not possible");
        return 0;
    }
    encdec->sizes = sizes;
    return make_words(&maker, &encdec->source_words, "encoder.embedding.weight") &&
           make_words(&maker, &encdec->words, "decoder.embedding.weight") && make_encoder(&maker) &&
           make_decoder(&maker) && make_attention(&maker) &&
           make_layer(&maker, output, whole_matrix("output.weight", "output.bias", sizes.vocabulary, sizes.hidden));
}

/* The weights of an EncDec.

   Legend: D embedding, H hidden size, V vocabulary. */

#ifndef LEDELINE_ENCDEC_LAYERS_H
#define LEDELINE_ENCDEC_LAYERS_H

#include "linear.h"

#define MAX_ENCDEC_LAYERS 16

typedef struct {
    Size vocabulary, embedding, hidden, layers; /* V, D, H */
} EncDecSizes;

/* A layer of the encoder: gates, forwards and backwards. */
typedef struct {
    Linear input[2], recurrent[2];
} EncoderLayer;

typedef struct {
    EncDecSizes sizes;
    Table source_words, words;
    EncoderLayer encoder[MAX_ENCDEC_LAYERS];
    Linear first_word; /* the word's part of the decoder's first layer: a product of its own */
    Linear decoder[MAX_ENCDEC_LAYERS];
    Linear key, value, query; /* of attention: W_a, and the parts of W_s for the context and for the state */
} EncDec;

/* The weights, and the output layer. Returns 0 with a sentence in tensors->error if something is wrong. */
int make_encdec(EncDec *encdec, Linear *output, Tensors *tensors, Block **blocks, EncDecSizes sizes, int int8);

#endif

/* The weights of a Transformer whose normalisation comes before each part of a layer.

   Legend: d size of a state, h heads, V vocabulary. */

#ifndef LEDELINE_TRANSFORMER_LAYERS_H
#define LEDELINE_TRANSFORMER_LAYERS_H

#include "multi_head_attention.h"
#include "positions.h"

typedef struct {
    Size vocabulary, size, hidden, heads, encoder_layers, decoder_layers; /* V, d, of feed-forward networks, h */
    Size attention_layer, attention_head; /* whose attention is told: from 1; head 0 is the mean of all */
} TransformerSizes;

typedef struct {
    LayerNorm norm;
    Linear of_state, mix; /* queries, keys, values side by side: 3 d */
} SelfAttention;

typedef struct {
    LayerNorm norm;
    Linear of_state, of_source, mix; /* queries: d; keys and values side by side: 2 d */
} SourceAttention;

typedef struct {
    LayerNorm norm;
    Linear inward, outward;
} FeedForward;

/* A layer of the encoder, or of the decoder, which also attends to the source. */
typedef struct {
    SelfAttention self;
    SourceAttention source;
    FeedForward feed_forward;
} TransformerLayer;

typedef struct {
    TransformerSizes sizes;
    Heads heads;
    Table words;
    float scale; /* of embeddings: sqrt(d) */
    Positions positions;
    TransformerLayer *encoder, *decoder;
    LayerNorm encoder_norm, decoder_norm;
} Transformer;

/* The weights, and the tied output layer. Returns 0 with a sentence in tensors->error if something is
   wrong, or without one if there was no memory. */
int make_transformer(Transformer *transformer, Linear *output, Tensors *tensors, Block **blocks,
                     TransformerSizes sizes, int int8, const Kernels *kernels);

#endif

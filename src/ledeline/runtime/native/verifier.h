/* The verifier: whether a lede supports its headlines. What `ledeline.model.verifier` computes, for
   one lede at a time.

   Legend: I lede sub-words, N headlines, J sub-words, G generator size, D size, H heads. */

#ifndef LEDELINE_VERIFIER_H
#define LEDELINE_VERIFIER_H

#include "linear.h"

#define NUM_LABELS 4
#define NUM_ERROR_KINDS 10
#define NUM_SCALARS 12 /* numbers about a sub-word */

typedef struct {
    Size vocabulary, size, heads, layers, embedding_size, generator_size;
} VerifierShape;

typedef struct {
    LayerNorm attention_norm, hidden_norm;
    Linear lede_key_value, query_key_value, mix, up, down;
} VerifierLayer;

typedef struct Verifier {
    VerifierShape shape;
    const Kernels *kernels;
    Block *blocks;
    const float *classes; /* sub-words of a class are taken as the same word; 0 matches none */
    Table embedding;
    Linear lede, lede_word, at, before, behind, skipped;
    Linear word_before, word_behind, words_skipped;
    Linear state_before, state_after, word, scalars;
    Linear pool, label_output, doubt_output, kind_output;
    LayerNorm lede_norm, norm;
    VerifierLayer *layers;
} Verifier;

/* With `int8` all layers but the narrow ones at the ends, of scalars and outputs, multiply in int8. Returns 0
   with a sentence in tensors->error if something is wrong, or without one if there was no memory. */
int verifier_init(Verifier *v, Tensors *tensors, VerifierShape shape, int int8, const Kernels *kernels);
void verifier_release(Verifier *v);

/* source (I) with I > 0, values (I, G), headlines (N, J) padded with 0, states (N, J + 1, G), logs
   (N, J + 1) -> labels (N, 4), doubts (N, J), kinds (N, 10), all before softmax and sigmoid. Ids
   must be in the vocabulary. Returns 0 if there was no memory. Several threads may use one verifier. */
int verifier_judge(const Verifier *v, const int32_t *source, Size num_source, const float *values,
                   Size num_headlines, Size width, const int32_t *headlines, const float *states,
                   const float *logs, float *labels, float *doubts, float *kinds);

#endif

/* A trained EncDec with its add-ons: the encoder, a step of the decoder, and what explains it.

   Legend: I positions of a source, D embedding, H hidden size, L layers, V vocabulary. */

#ifndef LEDELINE_MODEL_H
#define LEDELINE_MODEL_H

#include "linear.h"

enum { PAD, UNK, BOS, EOS };

#define MAX_LAYERS 16

typedef struct {
    Size vocabulary, embedding, hidden, layers;
    int gate, spm; /* whether it has them */
} Sizes;

typedef struct {
    Sizes sizes;
    int int8;
    const Kernels *kernels;
    Block *blocks;
    Table source_words, words;
    struct { Linear input[2], recurrent[2]; } encoder[MAX_LAYERS]; /* forwards, backwards */
    Linear gate_of_state, gate_of_sentence, key, value;
    Linear first_word, decoder[MAX_LAYERS]; /* the first layer's word has a product of its own */
    Linear query, output, spm;
} Model;

int model_init(Model *model, Tensors *tensors, Sizes sizes, int int8, const Kernels *kernels);
void model_release(Model *model);

/* What attention sees of a source. */
typedef struct {
    Size length;
    const float *keys, *values; /* (I, stride): h_i^T W_a, W_s h_i; `stride` is that of the key layer */
} Memory;

/* The decoder between two steps, for some rows: z, then h and c of each layer, H floats each. */
typedef struct {
    float *values;
} State;
Size state_size(const Model *model); /* floats of a row */

/* Room for what a thread computes. */
typedef struct {
    Buffer scratch, inputs, products, more, scores, steps;
} Work;
void work_release(Work *work);

/* Encode a source: its memory, whose floats go to `memory` (2, I, stride), and the decoder's first state,
   a row of `state`. Sources are encoded together: lengths (number), and ids one after another. Returns 0
   if there was no memory. */
int encode_sources(const Model *model, const int32_t *ids, const Size *lengths, Size number, float **memories,
           float *states, Work *work);

/* One step for some rows: the last words (rows), their memories, the state before -> the state after.
   `attention` is NULL, or gets the weights of row n at attention[n]. The first step has bound 2. */
int decoder_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *before,
            float *after, Size rows, float bound, float *const *attention, Work *work);

/* Logits of the words, or of the source's words by the SPM, from states: (rows, stride of the layer). */
int logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to,
           Work *work);

#define FIRST_BOUND 2.0f /* an encoder's state is the sum of two values between -1 and 1 */

#endif

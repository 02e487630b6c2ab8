/* A trained model with its add-ons: the encoder, a step of the decoder, and what explains it. The systems
   are EncDec (encdec.h) and the Transformer (transformer.h).

   Legend: I positions of a source, D embedding, H hidden size, L layers, V vocabulary. */

#ifndef LEDELINE_MODEL_H
#define LEDELINE_MODEL_H

#include "encdec_layers.h"
#include "past.h"
#include "products.h"
#include "transformer_layers.h"

typedef enum { ENCDEC, TRANSFORMER } System;

/* Of a Transformer `embedding` is d, `hidden` that of its feed-forward networks, `layers` the decoder's. */
typedef struct {
    Size vocabulary, embedding, hidden, layers;
    int gate, spm; /* whether it has them */
    System system;
    Size encoder_layers, heads, attention_layer, attention_head; /* of a Transformer */
} Sizes;

typedef struct {
    Sizes sizes;
    int int8;
    const Kernels *kernels;
    Block *blocks;
    Size size; /* of z_j, and of what attention mixes */
    Linear gate_of_state, gate_of_sentence, output, spm;
    EncDec encdec;           /* the system is one */
    Transformer transformer; /* of the two */
} Model;

int model_init(Model *model, Tensors *tensors, Sizes sizes, int int8, const Kernels *kernels);
void model_release(Model *model);

/* What the decoder sees of a source: `values` is what attention mixes, (I, stride). Of an EncDec these are
   W_s h_i, and `keys` h_i^T W_a, (I, stride). Of a Transformer they are h_i, `keys` has the packed keys and
   values of each layer, and `past` those of the words that were written so far. */
typedef struct {
    Size length, stride;
    float *keys, *values, *floats; /* the floats are the memory's own */
    Past *past;
} Memory;
int memory_init(const Model *model, Memory *memory, Size length); /* 0 if there was no memory; release it, too */
void memory_release(Memory *memory);

/* The decoder between two steps is a row of floats, which begins with z and may be copied. Then an EncDec
   has h and c of each layer, H floats each; a Transformer the number of a slot in the past of its source,
   so a row goes with its source's memory. */
Size state_size(const Model *model); /* floats of a row */

/* Encode sources together: lengths (number), and ids one after another -> their memories, made before by
   memory_init, and the decoder's first states, rows of `states`. Returns 0 if there was no memory. */
int encode_sources(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                   Memory *const *memories, float *states, Work *work);

/* One step for some rows: the last words (rows), their memories, where the state before is of each -> the
   states after. Rows with the same state before share what is computed of it.
   `attention` is NULL, or gets the weights of row n at attention[n]. Rows of
   one source are for one thread at a time. */
int decoder_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *const *before,
                 float *after, Size rows, float *const *attention, Work *work);

/* Between two steps: of some rows, with their memories and states, those that are a parent of the next rows go
   on. What the others alone had written is forgotten; a memory may be released before. */
void forget_rows(const Model *model, const Memory *const *memories, const float *states, Size rows, const Size *parents,
                 Size next);

/* Logits of the words, or of the source's words by the SPM, from states: (rows, stride of the layer). */
int logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to,
           Work *work);

#endif

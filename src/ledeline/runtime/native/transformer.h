/* What a Transformer computes: the encoder, and a step of the decoder. */

#ifndef LEDELINE_TRANSFORMER_H
#define LEDELINE_TRANSFORMER_H

#include "model.h"

/* A row of states is z, then the slot of the last word in the past of its source, as its bits. */
Size transformer_state_size(const Model *model);
void set_slot(const Model *model, float *state, int32_t slot);

/* Room for a source's memory; see memory_init. */
int transformer_memory_init(const Model *model, Memory *memory, Size length);

/* As encode_sources, decoder_step, forget_rows and logits. */
int transformer_encode(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                       Memory *const *memories, float *states, Work *work);
int transformer_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *const *before,
                     float *after, Size rows, float *const *attention, Work *work);
void transformer_forget(const Model *model, const Memory *const *memories, const float *states, Size rows,
                        const Size *parents, Size next);
int transformer_logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to, Work *work);

#endif

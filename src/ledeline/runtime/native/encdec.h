/* What an EncDec computes: the encoder, and a step of the decoder. */

#ifndef LEDELINE_ENCDEC_H
#define LEDELINE_ENCDEC_H

#include "model.h"

/* A row of states is z, then h and c of each layer. */
Size encdec_state_size(const Model *model);
Size encdec_layer_state(const Model *model, Size layer); /* where h of a layer begins; c is behind it */

/* Room for a source's memory; see memory_init. */
int encdec_memory_init(const Model *model, Memory *memory, Size length);

/* As encode_sources, decoder_step and logits. */
int encdec_encode(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                  Memory *const *memories, float *states, Work *work);
int encdec_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *const *before,
                float *after, Size rows, float *const *attention, Work *work);
int encdec_logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to, Work *work);

#endif

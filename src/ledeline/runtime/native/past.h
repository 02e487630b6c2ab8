/* What a Transformer's decoder remembers of the words that the hypotheses of a source wrote: keys and
   values of each layer, in a slot for each word. A hypothesis is known by the slot of its last word, so
   hypotheses share the slots of their common beginning, and reordering a beam copies nothing but this number.
   A search holds the slots that its next rows extend and lets go of the others, which are free for other
   words as soon as no word behind them is left. Who lets go of none needs to hold none. */

#ifndef LEDELINE_PAST_H
#define LEDELINE_PAST_H

#include "kernels.h"

#define NO_SLOT -1 /* nothing is written yet */

typedef struct {
    Size slot_size, number, capacity; /* floats of a slot; slots; slots that the lists have room for */
    int32_t *before;                  /* the slot of the word before, or NO_SLOT; of a free one the next free one */
    int32_t *places;                  /* of the words, from 0 */
    int32_t *holds;                   /* words behind a slot, also those that the next step will write */
    int32_t free;                     /* the first free slot, or NO_SLOT */
    float **chunks;
} Past;

void past_init(Past *past, Size slot_size);
void past_release(Past *past);

/* A slot for the word behind that of another slot, or NO_SLOT if there was no memory. One thread at a
   time may add to a past. */
int32_t past_add(Past *past, int32_t before);
/* One more row of the next step extends a slot, or NO_SLOT. */
void past_hold(Past *past, int32_t slot);
/* A row ended with this slot; if nothing holds it, it is free, and so are those before it that only it held. */
void past_let_go(Past *past, int32_t slot);
float *past_slot(const Past *past, int32_t slot);

#endif

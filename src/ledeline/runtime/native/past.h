/* What a Transformer's decoder remembers of the words that the hypotheses of a source wrote: keys and
   values of each layer, in a slot for each word. Slots are only added. A hypothesis is known by the slot
   of its last word, so hypotheses share the slots of their common beginning, and reordering a beam copies
   nothing but this number. */

#ifndef LEDELINE_PAST_H
#define LEDELINE_PAST_H

#include "kernels.h"

#define NO_SLOT -1 /* nothing is written yet */

typedef struct {
    Size slot_size, number, capacity; /* floats of a slot; slots; slots that the lists have room for */
    int32_t *before;                  /* the slot of the word before, or NO_SLOT */
    int32_t *places;                  /* of the words, from 0 */
    float **chunks;
} Past;

void past_init(Past *past, Size slot_size);
void past_release(Past *past);

/* A slot for the word behind that of another slot, or NO_SLOT if there was no memory. One thread at a
   time may add to a past. */
int32_t past_add(Past *past, int32_t before);
float *past_slot(const Past *past, int32_t slot);

#endif

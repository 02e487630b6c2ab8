/* The places of words as sine waves: what `sinusoids` in model/layers/word_input.py computes. */

#ifndef LEDELINE_POSITIONS_H
#define LEDELINE_POSITIONS_H

#include "linear.h"

typedef struct {
    Size size; /* d, an even number */
    const float *frequencies; /* (d / 2) */
    const float *first;       /* the vectors of the first places */
} Positions;

/* Returns 0 if there was no memory. */
int positions_init(Positions *positions, Block **blocks, Size size);

/* Add the vector of a place, counted from 0, to `values` (d). Every place has a vector of its own. */
void add_position(const Positions *positions, Size place, float *values);

#endif

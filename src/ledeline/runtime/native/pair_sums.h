/* For processors that multiply bytes but add the products of two in 16 bits: AVX2 and AVX-512 without VNNI.

   They add the products of a lane's two weights in each of two quads, four in all. An input is at most 127,
   so such a sum fits if its positive weights come to at most 258, and its negative ones, too. Where they do
   not, the two weights of the second quad are taken out and multiplied apart. That is exact, too. */

#ifndef LEDELINE_PAIR_SUMS_H
#define LEDELINE_PAIR_SUMS_H

#include "linear.h"

/* Take out of a layer's packed levels what would not fit. Returns 0 if there was no memory. */
int split_pair_sums(Linear *layer, Block **blocks, int8_t *levels);

#endif

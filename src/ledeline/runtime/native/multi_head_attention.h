/* Attention with several heads (Vaswani et al. 2017).

   Legend: I places that are attended to, d size of a state, h heads. */

#ifndef LEDELINE_MULTI_HEAD_ATTENTION_H
#define LEDELINE_MULTI_HEAD_ATTENTION_H

#include "products.h"

typedef struct {
    const Kernels *kernels;
    Size size, number, head, head_width; /* d, h, d / h, and the same rounded up to GROUP */
} Heads;

Heads heads_of(const Kernels *kernels, Size size, Size number);

/* Keys and values of one head are packed like the weights of a layer, so that scores and mixed values are
   products of floats: those of some places, `apart` apart, or of the places that `rows` names. Keys become
   [I / 16][head][16], values [head / 16][padded][16]. Where there is nothing `packed` stays as it is. */
void pack_keys(const float *keys, Size apart, const int32_t *rows, Size length, Size head, float *packed);
void pack_values(const float *values, Size apart, const int32_t *rows, Size length, Size padded, Size head,
                 float *packed);

/* Keys and values of places that many queries attend to, packed like the weights of layers. */
Size packed_size(const Heads *heads, Size length); /* floats */
void pack_places(const Heads *heads, const float *keys, const float *values, Size apart, Size length, float *packed);

/* Which weights are told: those of one head, counted from 1, or with 0 the mean of all. They go to
   `weights[row]` (I); NULL: none are. */
typedef struct {
    float *const *weights;
    Size head;
} Told;

/* Queries (rows, d), `apart` apart -> contexts (rows, d), `stride` apart. Returns 0 if there was no memory. */
int attend_to_packed(const Heads *heads, const float *packed, Size length, const float *queries, Size apart,
                     Size rows, float *contexts, Size stride, Told told, Buffer *buffer);

/* One query -> its context. A place has its key, and its value d floats behind. `scratch` has room for
   d + `length` floats. */
void attend_to_slots(const Heads *heads, const float *const *places, Size length, const float *query,
                     float *context, float *scratch);

#endif

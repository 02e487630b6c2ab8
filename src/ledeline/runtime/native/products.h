/* Products of layers with values, which become their inputs first: floats as they are, or in int8 levels.

   `values` are rows, `from` apart; outputs are rows, `stride` of the layer apart. All return 0 if there was
   no memory. */

#ifndef LEDELINE_PRODUCTS_H
#define LEDELINE_PRODUCTS_H

#include "linear.h"

/* Room for what a thread computes. */
typedef struct {
    Buffer scratch, inputs, steps; /* of products; the others are for who asks for them */
    Buffer products, more, scores;
    const Size *parents; /* NULL, or of the rows of a step: rows of one parent have the same state before */
} Work;

void work_release(Work *work);

/* Bytes of a row of a layer's inputs. */
size_t row_size(const Linear *layer);

/* Room for `rows` rows of inputs, with zeros behind each row's values. */
char *room_for_inputs(const Linear *layer, Size rows, Work *work);

/* Values between -bound and bound. */
int apply_bounded(const Kernels *kernels, const Linear *layer, const float *values, Size from, Size rows,
                  float bound, float *outputs, Work *work);

/* Values without a bound: each row has a step of its own, its largest value as 127. */
int apply_unbounded(const Kernels *kernels, const Linear *layer, const float *values, Size from, Size rows,
                    float *outputs, Work *work);

/* The rows of some words in a table, with the table's own levels. */
int apply_to_words(const Kernels *kernels, const Linear *layer, const Table *table, const int32_t *words,
                   Size rows, float *outputs, Work *work);

#endif

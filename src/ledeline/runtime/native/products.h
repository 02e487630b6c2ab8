/* Products of layers with rows of values, which become the layer's inputs first: floats as they are, or in
   int8 levels, each row with a step of its own. All return 0 if there was no memory. */

#ifndef LEDELINE_PRODUCTS_H
#define LEDELINE_PRODUCTS_H

#include "linear.h"

/* A growing piece of memory. */
typedef struct {
    void *at;
    size_t size;
} Buffer;
void *room(Buffer *buffer, size_t size); /* NULL if there is no memory; what was there is lost */

/* Room for what a thread computes. */
typedef struct {
    Buffer scratch, inputs, steps, embedded; /* of products; the others are for who asks for them */
    Buffer products, more, scores;
} Work;

void work_release(Work *work);

/* Rows of values, `from` apart -> outputs (rows, stride of the layer). */
int apply_rows(const Kernels *kernels, const Linear *layer, const float *values, Size from, Size rows,
               float *outputs, Work *work);

/* The same for the rows of some words in a table. */
int apply_words(const Kernels *kernels, const Linear *layer, const Table *table, const int32_t *words,
                Size rows, float *outputs, Work *work);

/* The same in parts: begin, fill each row, and apply. A row is `number` values, and those of `more` behind
   them. */
int begin_rows(const Linear *layer, Size rows, Work *work);
void fill_row(const Kernels *kernels, const Linear *layer, Size row, const float *values, Size number,
              const float *more, Work *work);
int apply_filled(const Kernels *kernels, const Linear *layer, Size rows, float *outputs, Work *work);

#endif

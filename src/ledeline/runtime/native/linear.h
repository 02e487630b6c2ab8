/* Weights as they are stored, and linear layers made of them, packed for products. */

#ifndef LEDELINE_LINEAR_H
#define LEDELINE_LINEAR_H

#include "kernels.h"

enum { PAD, UNK, BOS, EOS }; /* the words that are more than words */

static inline int is_between(Size value, Size least, Size most) { return value >= least && value <= most; }

typedef enum { STORED_FLOAT32, STORED_FLOAT16, STORED_INT8 } Stored;

/* A tensor of a model file; its values belong to somebody else. */
typedef struct {
    const char *name;
    Stored stored;
    int dims;        /* 1 or 2 */
    Size rows, cols; /* a vector is one row */
    const void *values;
    int is_used; /* by a layer */
} Tensor;

typedef struct {
    Tensor *tensors;
    Size number;
    char error[256]; /* a sentence, if something is wrong */
    int adds_pairs;  /* layers are for kernels that add products in pairs */
} Tensors;

/* The tensor of a name and shape (rows of 1 and dims of 1 for a vector), or NULL with a sentence. */
const Tensor *tensor_of(Tensors *tensors, const char *name, int dims, Size rows, Size cols);
/* Whether each tensor was asked for; if not, a sentence names the first that no layer of `whole` has. */
int all_are_used(Tensors *tensors, const char *whole);

/* Buffers that are released together. */
typedef struct Block {
    struct Block *next;
} Block;
void *keep(Block **blocks, size_t size); /* zeroed and aligned; NULL if there is no memory */
void release(Block **blocks);

/* Some of the columns of a matrix `name`, or its transpose, and a bias (or NULL) as a layer. Stored
   levels are used as they are; `part` says which column of the scales belongs to these columns. */
typedef struct {
    const char *name, *bias;
    Size rows, cols;      /* of the whole matrix */
    Size first, k;        /* the columns that are used */
    int part, parts;      /* of the scales */
    int transposed;
} LayerSource;

LayerSource whole_matrix(const char *name, const char *bias, Size rows, Size cols);

/* Makers return 0 with a sentence in tensors->error if something is wrong. */
int make_linear(Linear *layer, Tensors *tensors, Block **blocks, LayerSource source, int int8);

/* The bias of a layer becomes its sum with another vector. */
int add_bias(Linear *layer, Tensors *tensors, const char *name);

/* A table of words: each a row of levels with a scale, or of floats if `levels` is NULL. */
typedef struct {
    Size cols;
    const int8_t *levels;
    const float *values, *scales;
} Table;

int make_table(Table *table, Tensors *tensors, Block **blocks, const char *name, Size rows, Size cols,
               int int8);
void table_row(const Table *table, int32_t word, float *to); /* as floats */

/* A vector of floats, or NULL. */
const float *make_vector(Tensors *tensors, Block **blocks, const char *name, Size number);

typedef struct {
    const float *gain, *bias;
} LayerNorm;

/* `prefix` + `name` with `.weight` and `.bias`. */
int make_norm(LayerNorm *norm, Tensors *tensors, Block **blocks, const char *prefix, const char *name, Size size);

#endif

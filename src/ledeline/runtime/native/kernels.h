/* What the engine computes with: products, the functions of a gate, sums and softmax.

   The same kernels are built for several kinds of processors, and one kind is chosen when a model is
   loaded. All kinds give the same bits:
   - sums of integers are exact, so their order does not matter;
   - sums of floats have one order, written in the code, and no multiply-add is contracted;
   - exponentials and logarithms are our own.

   Legend: rows are rows of activations; K is the width of a row; M the number of outputs. */

#ifndef LEDELINE_KERNELS_H
#define LEDELINE_KERNELS_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the runtime needs a little-endian processor"
#endif
#if defined(__FAST_MATH__)
#error "the runtime must be compiled without fast-math"
#endif
#if FLT_EVAL_METHOD != 0
#error "the runtime needs floats of one precision, such as -msse2 -mfpmath=sse gives"
#endif
#if PTRDIFF_MAX < INT64_MAX
#error "the runtime needs a 64-bit system"
#endif

typedef ptrdiff_t Size; /* of a row or a list, or a place in it; as wide as a pointer on every system */

#define GROUP 16  /* outputs whose weights lie together */
#define QUAD 4    /* levels of a row that one instruction multiplies */
#define PAIR 8    /* two quads */
#define LANES 16  /* partial sums of a sum over floats: value i goes to sum i % 16 */
#define WEIGHT_LEVELS 127.0f /* a weight has levels from -127 to 127 */
/* The levels of an input have 7 bits, from -63 to 63, and are stored as 1 to 127, so that processors which
   add products of bytes in 16 bits can add some of them. A row has a step of its own: its largest value is
   level 63. */
#define INPUT_LEVELS 63.0f
#define ZERO_INPUT 64
#define MOST_INPUT 127

static inline Size up(Size value, Size multiple) { return (value + multiple - 1) / multiple * multiple; }

typedef enum {
    KIND_PORTABLE,
    KIND_SSE2,
    KIND_AVX2,
    KIND_AVXVNNI,
    KIND_AVX512,
    KIND_VNNI,
    KIND_NEON,
    KIND_DOTPROD,
    NUM_KINDS
} Kind;

/* Weights that are multiplied apart (pair_sums.h): [..][16][4], each with the place of its inputs in a row;
   those of a group from its start on. */
typedef struct {
    const int8_t *levels;
    const int32_t *places;
    const Size *starts;
} Apart;

/* x W^T + b. In int8, x has levels; else floats. Both are `width` apart, and the weights behind K are 0.
   Levels are packed as [M / 16][K / 4][16][4], floats as [M / 16][K][16]. */
typedef struct {
    int int8;
    Size k, m;          /* inputs, outputs */
    Size width, stride; /* K rounded up to PAIR, M rounded up to GROUP */
    const int8_t *levels;
    const int32_t *zeros; /* (M): what inputs that are all zero add to the sums of levels */
    Apart apart;          /* where the kernels add in pairs */
    const float *weights, *scales, *bias;
} Linear;

#define INT8_SCRATCH(rows, k) ((size_t)(rows) * (size_t)(k))

typedef struct {
    int adds_pairs; /* its products need layers whose sums were split */
    /* Levels (rows, K) -> floats (rows, M) of a layer in int8: sum * scales[m] * steps[row] + bias[m].
       `scratch` has room for INT8_SCRATCH bytes. */
    void (*int8_product)(const Linear *layer, const uint8_t *inputs, Size rows, const float *steps,
                         float *outputs, void *scratch);
    /* The same in floats: weights are packed as [M / 16][K][16]; a sum goes from the first value to
       the last. */
    void (*float_product)(const float *weights, const float *values, Size rows, Size k, Size m,
                          float *sums, Size stride);
    float (*largest)(const float *values, Size number); /* without signs */
    /* Levels of values times per_unit, rounded, cut off at 63. */
    void (*quantize)(const float *values, uint8_t *levels, Size number, float per_unit);
    void (*cell)(const float *gates, float *hidden, float *cells, Size size); /* in place */
    void (*add)(float *values, const float *more, Size number);
    void (*gate)(float *values, const float *of_state, const float *of_sentence, Size size);
    void (*tanh_add)(float *values, const float *more, Size number);
    float (*dot)(const float *one, const float *other, Size number);
    void (*add_scaled)(float *sums, const float *values, float weight, Size number);
    void (*softmax)(float *values, Size number);
    float (*log_sum_exp)(const float *values, Size number);
    /* Logarithms of mean probabilities of several models. logits (models, number) are `apart` from each
       other, norms (models) `norms_apart`; a model's log-probability is its logit - its norm. The result
       takes the place of the first model's logits. */
    void (*mean_logs)(float *logits, Size apart, const float *norms, Size norms_apart, Size models,
                      Size number);
    /* Where (value - norm) + total is above a bound, ascending; returns how many there are. */
    Size (*above)(const float *values, Size number, float norm, float total, float bound,
                  int32_t *places);
    void (*layer_norm)(const float *values, const float *gain, const float *bias, float *normed,
                       Size size, float epsilon);
} Kernels;

/* The kernels of a kind, or NULL where this processor or this build does not have them. */
const Kernels *kernels_of(Kind kind);
/* The kind that a name stands for, or -1. */
int kind_of(const char *name);
const char *kind_name(Kind kind);

double natural_log(double x); /* the same bits everywhere; x > 0 and finite */

#endif

/* The kernels themselves. `kernels.c` includes this once for each kind of processor, with NAME naming
   the kind and one of the INT8_... macros saying how it multiplies levels.

   A result depends only on its row, never on where the row stands: a source has the same bits in a
   batch of any size. */

/* e^x, with a relative error below 2e-7; the polynomial is the best of its degree for |r| < ln 2 / 2 */
static inline float NAME(exp)(float x) {
    x = x > -87.0f ? x : -87.0f; /* also what is no number */
    x = x > 88.0f ? 88.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: its last bits are the nearest integer */
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693145752f; /* ln 2 in two parts, the first exact in a product with n */
    r -= n * 1.42860677e-6f;
    float p = 0.00138145f;
    p = p * r + 0.00836875f;
    p = p * r + 0.04166839f;
    p = p * r + 0.1666652f;
    p = p * r + 0.49999993f;
    p = p * (r * r) + r + 1.0f;
    union { int32_t bits; float value; } scale;
    scale.bits = (int32_t)((uint32_t)((int32_t)n + 127) << 23);
    return p * scale.value;
}

static inline float NAME(sigmoid)(float x) { return 1.0f / (1.0f + NAME(exp)(-x)); }

static inline float NAME(tanh)(float x) { return 2.0f / (1.0f + NAME(exp)(-2.0f * x)) - 1.0f; }

/* --- products ----------------------------------------------------------------------------------- */

#define PARTS (GROUP * 4 / PART) /* registers for GROUP values of 32 bits */

#include "int8_product.h"

/* As many floats as a register of the kind has. */
typedef float NAME(Part) __attribute__((vector_size(PART)));

#define FLOAT_ROW(r)                                                                            \
    if (rows > r) {                                                                             \
        float x = values[r * k + i];                                                            \
        a##r += w * x;                                                                          \
    }

/* One part of some outputs: (rows, PART / 4) sums, each from the first value to the last. */
static inline ALWAYS_INLINE void NAME(float_block)(const float *restrict weights,
                                                   const float *restrict values, Size k, float *sums,
                                                   Size stride, const int rows) {
    for (int p = 0; p < PARTS; p++, weights += PART / 4, sums += PART / 4) {
        NAME(Part) a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
        for (Size i = 0; i < k; i++) {
            NAME(Part) w;
            memcpy(&w, weights + i * GROUP, sizeof w);
            FLOAT_ROW(0) FLOAT_ROW(1) FLOAT_ROW(2) FLOAT_ROW(3)
            FLOAT_ROW(4) FLOAT_ROW(5) FLOAT_ROW(6) FLOAT_ROW(7)
        }
        NAME(Part) all[8] = {a0, a1, a2, a3, a4, a5, a6, a7};
        for (int r = 0; r < rows; r++) memcpy(sums + r * stride, &all[r], sizeof all[r]);
    }
}
#undef FLOAT_ROW

static void NAME(float_product)(const float *weights, const float *values, Size rows, Size k, Size m,
                                float *sums, Size stride) {
    for (Size g = 0; g < m / GROUP; g++) {
        const float *w = weights + g * GROUP * k;
        Size n = 0;
        for (; n + 8 <= rows; n += 8)
            NAME(float_block)(w, values + n * k, k, sums + n * stride + g * GROUP, stride, 8);
        for (; n + 4 <= rows; n += 4)
            NAME(float_block)(w, values + n * k, k, sums + n * stride + g * GROUP, stride, 4);
        for (; n < rows; n++)
            NAME(float_block)(w, values + n * k, k, sums + n * stride + g * GROUP, stride, 1);
    }
}

static float NAME(largest)(const float *values, Size number) {
    const Bits *bits = (const Bits *)values; /* without their signs, floats have the order of their bits */
    uint32_t lanes[LANES] = {0}, most = 0;
    Size whole = number / LANES * LANES;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            uint32_t own = bits[i + l] & INT32_MAX;
            lanes[l] = own > lanes[l] ? own : lanes[l];
        }
    for (Size i = whole; i < number; i++) {
        uint32_t own = bits[i] & INT32_MAX;
        most = own > most ? own : most;
    }
    for (int l = 0; l < LANES; l++) most = lanes[l] > most ? lanes[l] : most;
    float value;
    memcpy(&value, &most, sizeof value);
    return value;
}

static void NAME(quantize)(const float *restrict values, uint8_t *restrict levels, Size number,
                           float per_unit) {
    for (Size i = 0; i < number; i++) {
        float level = values[i] * per_unit + (ZERO_INPUT + 0.5f);
        level = level > 1.0f ? level : 1.0f; /* also what is no number */
        level = level < (float)MOST_INPUT ? level : (float)MOST_INPUT;
        levels[i] = (uint8_t)(int)level;
    }
}

/* --- gates -------------------------------------------------------------------------------------- */

/* An LSTM cell: gates (4 size) in the order input, forget, candidate, output. */
static void NAME(cell)(const float *restrict g, float *restrict hidden, float *restrict cells,
                       Size size) {
    for (Size i = 0; i < size; i++) {
        float cell = NAME(sigmoid)(g[size + i]) * cells[i] +
                     NAME(sigmoid)(g[i]) * NAME(tanh)(g[2 * size + i]);
        cells[i] = cell;
        hidden[i] = NAME(sigmoid)(g[3 * size + i]) * NAME(tanh)(cell);
    }
}

static void NAME(add)(float *restrict values, const float *restrict more, Size number) {
    for (Size i = 0; i < number; i++) values[i] += more[i];
}

static void NAME(gate)(float *restrict values, const float *restrict of_state,
                       const float *restrict of_sentence, Size size) {
    for (Size i = 0; i < size; i++) values[i] *= NAME(sigmoid)(of_state[i] + of_sentence[i]);
}

static void NAME(tanh_add)(float *restrict values, const float *restrict more, Size number) {
    for (Size i = 0; i < number; i++) values[i] = NAME(tanh)(values[i] + more[i]);
}

/* --- sums --------------------------------------------------------------------------------------- */

/* The sum of sixteen partial sums, always in this order. */
static inline float NAME(total)(const float *lanes) {
    float eight[8], four[4];
    for (int i = 0; i < 8; i++) eight[i] = lanes[i] + lanes[i + 8];
    for (int i = 0; i < 4; i++) four[i] = eight[i] + eight[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

static float NAME(dot)(const float *restrict one, const float *restrict other, Size number) {
    float lanes[LANES] = {0};
    Size whole = number / LANES * LANES;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += one[i + l] * other[i + l];
    for (Size i = whole; i < number; i++) lanes[i - whole] += one[i] * other[i];
    return NAME(total)(lanes);
}

static void NAME(add_scaled)(float *restrict sums, const float *restrict values, float weight,
                             Size number) {
    for (Size i = 0; i < number; i++) sums[i] += weight * values[i];
}

static float NAME(highest)(const float *values, Size number) {
    float lanes[LANES], highest = values[0];
    for (int l = 0; l < LANES; l++) lanes[l] = highest;
    Size whole = number / LANES * LANES;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] = values[i + l] > lanes[l] ? values[i + l] : lanes[l];
    for (Size i = whole; i < number; i++) highest = values[i] > highest ? values[i] : highest;
    for (int l = 0; l < LANES; l++) highest = lanes[l] > highest ? lanes[l] : highest;
    return highest;
}

static void NAME(softmax)(float *values, Size number) {
    float highest = NAME(highest)(values, number), lanes[LANES] = {0};
    for (Size i = 0; i < number; i++) values[i] = NAME(exp)(values[i] - highest);
    Size whole = number / LANES * LANES;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += values[i + l];
    for (Size i = whole; i < number; i++) lanes[i - whole] += values[i];
    float total = NAME(total)(lanes);
    for (Size i = 0; i < number; i++) values[i] /= total;
}

static float NAME(log_sum_exp)(const float *values, Size number) {
    float highest = NAME(highest)(values, number), lanes[LANES] = {0};
    Size whole = number / LANES * LANES;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += NAME(exp)(values[i + l] - highest);
    for (Size i = whole; i < number; i++) lanes[i - whole] += NAME(exp)(values[i] - highest);
    double total = 0.0;
    for (int l = 0; l < LANES; l++) total += lanes[l];
    return highest + (float)natural_log(total);
}

/* natural_log of a float that is positive, finite and not denormal: the same bits, in a form that compilers
   make vectors of. */
static inline ALWAYS_INLINE double NAME(log)(float x) {
    union { int32_t bits; float value; } one = {.value = x};
    int32_t e = (one.bits >> 23) - 126;
    one.bits = (one.bits & 0x7fffff) | 126 << 23; /* m between 1 / 2 and 1 */
    int is_low = one.value < 0.70710678118654752;
    double m = (double)one.value * (is_low ? 2.0 : 1.0);
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 1.0 / 21;
    sum = sum * square + 1.0 / 19;
    sum = sum * square + 1.0 / 17;
    sum = sum * square + 1.0 / 15;
    sum = sum * square + 1.0 / 13;
    sum = sum * square + 1.0 / 11;
    sum = sum * square + 1.0 / 9;
    sum = sum * square + 1.0 / 7;
    sum = sum * square + 1.0 / 5;
    sum = sum * square + 1.0 / 3;
    sum = sum * square + 1.0;
    return 2.0 * s * sum + (e - is_low) * 0.69314718055994531;
}

#define WORDS_AT_ONCE 64 /* whose sums stay in the nearest cache */

static void NAME(mean_some_logs)(float *logits, Size apart, const float *norms, Size norms_apart, Size models,
                                 double of_models, Size number) {
    float highest[WORDS_AT_ONCE], sums[WORDS_AT_ONCE] = {0};
    for (Size i = 0; i < number; i++) highest[i] = logits[i] - norms[0];
    for (Size m = 1; m < models; m++)
        for (Size i = 0; i < number; i++) {
            float log = logits[m * apart + i] - norms[m * norms_apart];
            highest[i] = log > highest[i] ? log : highest[i];
        }
    for (Size m = 0; m < models; m++)
        for (Size i = 0; i < number; i++)
            sums[i] += NAME(exp)((logits[m * apart + i] - norms[m * norms_apart]) - highest[i]);
    for (Size i = 0; i < number; i++) logits[i] = highest[i] + (float)(NAME(log)(sums[i]) - of_models);
}

static void NAME(mean_logs)(float *logits, Size apart, const float *norms, Size norms_apart, Size models,
                            Size number) {
    double of_models = natural_log((double)models);
    for (Size i = 0; i < number; i += WORDS_AT_ONCE)
        NAME(mean_some_logs)(logits + i, apart, norms, norms_apart, models, of_models,
                             number - i < WORDS_AT_ONCE ? number - i : WORDS_AT_ONCE);
}

#undef WORDS_AT_ONCE

static Size NAME(above)(const float *values, Size number, float norm, float total, float bound,
                        int32_t *places) {
    Size found = 0;
    for (Size start = 0; start < number; start += 64) {
        Size stop = start + 64 < number ? start + 64 : number;
        int any = 0;
        for (Size i = start; i < stop; i++) any |= (values[i] - norm) + total > bound;
        if (!any) continue;
        for (Size i = start; i < stop; i++)
            if ((values[i] - norm) + total > bound) places[found++] = (int32_t)i;
    }
    return found;
}

static void NAME(layer_norm)(const float *restrict values, const float *restrict gain,
                             const float *restrict bias, float *restrict normed, Size size,
                             float epsilon) {
    float sums[LANES] = {0}, squares[LANES] = {0};
    Size whole = size / LANES * LANES;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) sums[l] += values[i + l];
    for (Size i = whole; i < size; i++) sums[i - whole] += values[i];
    float mean = NAME(total)(sums) / (float)size;
    for (Size i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float from_mean = values[i + l] - mean;
            squares[l] += from_mean * from_mean;
        }
    for (Size i = whole; i < size; i++) squares[i - whole] += (values[i] - mean) * (values[i] - mean);
    float scale = 1.0f / sqrtf(NAME(total)(squares) / (float)size + epsilon);
    for (Size i = 0; i < size; i++) normed[i] = (values[i] - mean) * scale * gain[i] + bias[i];
}

static const Kernels NAME(kernels) = {
    .adds_pairs = ADDS_PAIRS,
    .int8_product = NAME(int8_product),
    .float_product = NAME(float_product),
    .largest = NAME(largest),
    .quantize = NAME(quantize),
    .cell = NAME(cell),
    .add = NAME(add),
    .gate = NAME(gate),
    .tanh_add = NAME(tanh_add),
    .dot = NAME(dot),
    .add_scaled = NAME(add_scaled),
    .softmax = NAME(softmax),
    .log_sum_exp = NAME(log_sum_exp),
    .mean_logs = NAME(mean_logs),
    .above = NAME(above),
    .layer_norm = NAME(layer_norm),
};

#undef PARTS
#undef ADDS_PAIRS

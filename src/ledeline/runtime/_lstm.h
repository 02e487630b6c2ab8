/* All steps of a bidirectional LSTM layer in int8, for processors with AVX-512 VNNI.

   A product with few rows takes as long as reading its weights, and there are two in every step;
   fusing the steps leaves no overhead between them. The order of a sum of integers does not matter,
   so a source has the same bits in a batch of any size.

   Weights of a direction are packed as [4 size / 16][size / 4][16][4], so that the operand of one
   instruction, 4 values of each of 16 rows, is contiguous. */

#include <immintrin.h>

/* The product of R rows of levels with 16 G rows of weights, plus the inputs. */
static inline __attribute__((always_inline)) void NAME(block)(
    const unsigned char *levels, const signed char *weights, const float *scales, const int *zeros,
    const float *inputs, float *gates, long size, const int R, const int G) {
    __m512i sums[8];
    for (int i = 0; i < R * G; i++) sums[i] = _mm512_setzero_si512();
    for (long k = 0; k < size / 4; k++)
        for (int g = 0; g < G; g++) {
            __m512i w = _mm512_loadu_si512(weights + (g * (size / 4) + k) * 64);
            for (int r = 0; r < R; r++) {
                __m512i x = _mm512_set1_epi32(((const int *)(levels + r * size))[k]);
                sums[r * G + g] = _mm512_dpbusd_epi32(sums[r * G + g], x, w);
            }
        }
    for (int r = 0; r < R; r++)
        for (int g = 0; g < G; g++) {
            __m512i sum = _mm512_sub_epi32(sums[r * G + g], _mm512_loadu_si512(zeros + g * 16));
            __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(scales + g * 16));
            long place = r * 4 * size + g * 16;
            _mm512_storeu_ps(gates + place, _mm512_add_ps(value, _mm512_loadu_ps(inputs + place)));
        }
}

static void NAME(product)(const unsigned char *levels, const signed char *weights,
                          const float *scales, const int *zeros, const float *inputs, float *gates,
                          long rows, long size) {
    for (long n = 0; n < rows;) {
        long some = rows - n >= 8 ? 8 : rows - n >= 4 ? 4 : rows - n >= 2 ? 2 : 1;
        long groups = some == 8 ? 1 : some == 4 ? 2 : 4;
        const unsigned char *x = levels + n * size;
        for (long g = 0; g < size / 4; g += groups) {
            const signed char *w = weights + g * 16 * size;
            long place = n * 4 * size + g * 16;
            const float *s = scales + g * 16, *more = inputs + place;
            const int *z = zeros + g * 16;
            if (some == 8) NAME(block)(x, w, s, z, more, gates + place, size, 8, 1);
            else if (some == 4) NAME(block)(x, w, s, z, more, gates + place, size, 4, 2);
            else if (some == 2) NAME(block)(x, w, s, z, more, gates + place, size, 2, 4);
            else NAME(block)(x, w, s, z, more, gates + place, size, 1, 4);
        }
        n += some;
    }
}

/* The inputs' part of the gates (steps, 2, batch, 4 size) -> hidden and cells
   (steps, 2, batch, size). The size is a multiple of 16. Returns 0 if there was no memory. */
static int NAME(lstm)(const float *inputs, const signed char *weights, const float *scales,
                      const int *zeros, float *hidden, float *cells, long steps, long batch,
                      long size) {
    long plane = batch * size;
    float *gates = malloc(4 * plane * sizeof(float));
    float *none = calloc(plane, sizeof(float));
    unsigned char *levels = malloc(2 * plane);
    if (gates && none && levels)
        for (long t = 0; t < steps; t++)
            for (int side = 0; side < 2; side++) {
                long place = (2 * t + side) * plane;
                const float *now = inputs + 4 * place;
                if (t)
                    NAME(product)(levels + side * plane, weights + side * 4 * size * size,
                                  scales + side * 4 * size, zeros + side * 4 * size, now, gates,
                                  batch, size);
                NAME(cell)(t ? gates : now, 0, 0, t ? cells + place - 2 * plane : none,
                           hidden + place, cells + place, batch, size);
                NAME(levels)(hidden + place, levels + side * plane, size, batch, size, 127.0f);
            }
    int done = gates && none && levels;
    free(gates), free(none), free(levels);
    return done;
}

/* Products of levels by what every CPU of its architecture has: SSE2 on x86-64, NEON on aarch64. Products of
   two bytes fit into 16 bits, and are added in pairs, in 32. */

#ifndef LEDELINE_INT8_HALVES_H
#define LEDELINE_INT8_HALVES_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#define HALVES sse2

typedef __m128i Halves;
typedef struct {
    __m128i low, high; /* in 16 bits */
} HalfWeights;

static inline ALWAYS_INLINE Halves no_halves(void) { return _mm_setzero_si128(); }

/* The weights of four outputs. */
static inline ALWAYS_INLINE HalfWeights half_weights(const int8_t *weights) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)weights);
    return (HalfWeights){_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8),
                         _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8)};
}

/* Add the products of a quad of inputs. */
static inline ALWAYS_INLINE void add_halves(const uint8_t *inputs, HalfWeights w, Halves *low, Halves *high) {
    int32_t quad;
    memcpy(&quad, inputs, sizeof quad);
    __m128i x = _mm_unpacklo_epi8(_mm_set1_epi32(quad), _mm_setzero_si128());
    *low = _mm_add_epi32(*low, _mm_madd_epi16(x, w.low));
    *high = _mm_add_epi32(*high, _mm_madd_epi16(x, w.high));
}

static inline ALWAYS_INLINE void join_halves(Halves low, Halves high, int32_t *sums) {
    __m128 a = _mm_castsi128_ps(low), b = _mm_castsi128_ps(high);
    __m128i first = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
    __m128i second = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
    _mm_storeu_si128((__m128i *)sums, _mm_add_epi32(first, second));
}

#else
#define HALVES neon

typedef int32x4_t Halves;
typedef struct {
    int8x8_t low, high;
} HalfWeights;

static inline ALWAYS_INLINE Halves no_halves(void) { return vdupq_n_s32(0); }

/* The weights of four outputs. */
static inline ALWAYS_INLINE HalfWeights half_weights(const int8_t *weights) {
    int8x16_t bytes = vld1q_s8(weights);
    return (HalfWeights){vget_low_s8(bytes), vget_high_s8(bytes)};
}

/* Add the products of a quad of inputs, which are at most 127: the same with a sign. */
static inline ALWAYS_INLINE void add_halves(const uint8_t *inputs, HalfWeights w, Halves *low, Halves *high) {
    int32_t quad;
    memcpy(&quad, inputs, sizeof quad);
    int8x8_t x = vreinterpret_s8_s32(vdup_n_s32(quad));
    *low = vpadalq_s16(*low, vmull_s8(x, w.low));
    *high = vpadalq_s16(*high, vmull_s8(x, w.high));
}

static inline ALWAYS_INLINE void join_halves(Halves low, Halves high, int32_t *sums) {
    vst1q_s32(sums, vpaddq_s32(low, high));
}

#endif

#endif

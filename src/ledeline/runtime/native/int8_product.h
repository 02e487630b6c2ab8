/* Products of levels, in the way that INT8_... names. Included by kernels_body.h.

   Rows are multiplied with GROUP outputs at a time, some rows at once so that a weight that was
   loaded is used several times. */

#if defined(INT8_VNNI)

/* Levels become unsigned by adding 128; 128 times the sum of a row of weights is subtracted. */
static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int32_t *row_sums,
                                                  const uint8_t *levels, Size k, int32_t *sums,
                                                  Size stride, const int rows, const int groups) {
    __m512i acc[24];
    for (int i = 0; i < rows * groups; i++) acc[i] = _mm512_setzero_si512();
    for (Size i = 0; i < k; i += QUAD) {
        __m512i w[4];
        for (int g = 0; g < groups; g++) w[g] = _mm512_loadu_si512(weights + (g * k + i) * GROUP);
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, levels + r * k + i, sizeof quad);
            __m512i x = _mm512_set1_epi32(quad);
            for (int g = 0; g < groups; g++)
                acc[r * groups + g] = _mm512_dpbusd_epi32(acc[r * groups + g], x, w[g]);
        }
    }
    for (int g = 0; g < groups; g++) {
        __m512i zero = _mm512_slli_epi32(_mm512_loadu_si512(row_sums + g * GROUP), 7);
        for (int r = 0; r < rows; r++)
            _mm512_storeu_si512(sums + r * stride + g * GROUP,
                                _mm512_sub_epi32(acc[r * groups + g], zero));
    }
}

#elif defined(INT8_AVXVNNI)

static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int32_t *row_sums,
                                                  const uint8_t *levels, Size k, int32_t *sums,
                                                  Size stride, const int rows, const int groups) {
    (void)groups;
    __m256i acc[12];
    for (int i = 0; i < rows * 2; i++) acc[i] = _mm256_setzero_si256();
    for (Size i = 0; i < k; i += QUAD) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(weights + i * GROUP));
        __m256i high = _mm256_loadu_si256((const __m256i *)(weights + i * GROUP + 32));
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, levels + r * k + i, sizeof quad);
            __m256i x = _mm256_set1_epi32(quad);
            acc[2 * r] = _mm256_dpbusd_avx_epi32(acc[2 * r], x, low);
            acc[2 * r + 1] = _mm256_dpbusd_avx_epi32(acc[2 * r + 1], x, high);
        }
    }
    for (int half = 0; half < 2; half++) {
        __m256i zero =
            _mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)(row_sums + 8 * half)), 7);
        for (int r = 0; r < rows; r++)
            _mm256_storeu_si256((__m256i *)(sums + r * stride + 8 * half),
                                _mm256_sub_epi32(acc[2 * r + half], zero));
    }
}

#elif defined(INT8_AVX2)

/* Levels are widened to 16 bits: products of 8 bits would saturate. A register of sums has two
   halves of each of 4 outputs, which are added at the end. */
static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int32_t *row_sums,
                                                  const int16_t *levels, Size k, int32_t *sums,
                                                  Size stride, const int rows, const int groups) {
    (void)row_sums, (void)groups;
    __m256i acc[12];
    for (int i = 0; i < rows * 4; i++) acc[i] = _mm256_setzero_si256();
    for (Size i = 0; i < k; i += QUAD) {
        __m256i x[3];
        for (int r = 0; r < rows; r++) {
            int64_t quad;
            memcpy(&quad, levels + r * k + i, sizeof quad);
            x[r] = _mm256_set1_epi64x(quad);
        }
        for (int q = 0; q < 4; q++) {
            __m256i w = _mm256_cvtepi8_epi16(
                _mm_loadu_si128((const __m128i *)(weights + i * GROUP + q * 16)));
            for (int r = 0; r < rows; r++)
                acc[4 * r + q] = _mm256_add_epi32(acc[4 * r + q], _mm256_madd_epi16(x[r], w));
        }
    }
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) {
            __m256i both = _mm256_hadd_epi32(acc[4 * r + 2 * half], acc[4 * r + 2 * half + 1]);
            both = _mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0));
            _mm256_storeu_si256((__m256i *)(sums + r * stride + 8 * half), both);
        }
}

#elif defined(INT8_DOTPROD)

static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int32_t *row_sums,
                                                  const int8_t *levels, Size k, int32_t *sums,
                                                  Size stride, const int rows, const int groups) {
    (void)row_sums, (void)groups;
    int32x4_t acc[16];
    for (int i = 0; i < rows * 4; i++) acc[i] = vdupq_n_s32(0);
    for (Size i = 0; i < k; i += QUAD)
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, levels + r * k + i, sizeof quad);
            int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(quad));
            for (int q = 0; q < 4; q++)
                acc[4 * r + q] = vdotq_s32(acc[4 * r + q], vld1q_s8(weights + i * GROUP + q * 16), x);
        }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < 4; q++) vst1q_s32(sums + r * stride + 4 * q, acc[4 * r + q]);
}

#else

static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int32_t *row_sums,
                                                  const int8_t *levels, Size k, int32_t *sums,
                                                  Size stride, const int rows, const int groups) {
    (void)row_sums, (void)groups, (void)rows, (void)stride;
    int32_t acc[GROUP] = {0};
    for (Size i = 0; i < k; i += QUAD)
        for (int l = 0; l < GROUP; l++)
            for (int j = 0; j < QUAD; j++)
                acc[l] += levels[i + j] * weights[i * GROUP + l * QUAD + j];
    memcpy(sums, acc, sizeof acc);
}

#endif

static void NAME(int8_product)(const int8_t *weights, const int32_t *row_sums, const int8_t *levels,
                               Size rows, Size k, Size m, int32_t *sums, Size stride, void *scratch) {
#if defined(INT8_VNNI) || defined(INT8_AVXVNNI)
    uint8_t *x = scratch;
    for (Size i = 0; i < rows * k; i++) x[i] = (uint8_t)(levels[i] + 128);
#elif defined(INT8_AVX2)
    int16_t *x = scratch;
    for (Size i = 0; i < rows * k; i++) x[i] = levels[i];
#else
    const int8_t *x = levels;
    (void)scratch;
#endif
#if defined(INT8_VNNI)
    for (Size g = 0; g < m / GROUP;) {
        int groups = m / GROUP - g >= 4 ? 4 : 1;
        const int8_t *w = weights + g * GROUP * k;
        const int32_t *s = row_sums + g * GROUP;
        int32_t *out = sums + g * GROUP;
        Size n = 0;
        if (groups == 4) {
            for (; n + 6 <= rows; n += 6)
                NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 6, 4);
            for (; n + 2 <= rows; n += 2)
                NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 2, 4);
            for (; n < rows; n++)
                NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 1, 4);
        } else {
            for (; n + 8 <= rows; n += 8)
                NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 8, 1);
            for (; n < rows; n++)
                NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 1, 1);
        }
        g += groups;
    }
#else
    for (Size g = 0; g < m / GROUP; g++) {
        const int8_t *w = weights + g * GROUP * k;
        const int32_t *s = row_sums + g * GROUP;
        int32_t *out = sums + g * GROUP;
        Size n = 0;
#if defined(INT8_AVXVNNI)
        for (; n + 6 <= rows; n += 6)
            NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 6, 1);
        for (; n + 2 <= rows; n += 2)
            NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 2, 1);
#elif defined(INT8_AVX2)
        for (; n + 3 <= rows; n += 3)
            NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 3, 1);
#elif defined(INT8_DOTPROD)
        for (; n + 4 <= rows; n += 4)
            NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 4, 1);
#endif
        for (; n < rows; n++)
            NAME(int8_block)(w, s, x + n * k, k, out + n * stride, stride, 1, 1);
    }
#endif
}

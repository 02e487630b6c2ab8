/* Products of levels, in the way that INT8_... names. Included by kernels_body.h.

   Some rows are multiplied with GROUP outputs or more at a time, so that a weight that was loaded is
   used several times. Sums stay in registers and leave them as floats: sum * scale * step + bias.
   A block of rows has its levels as [K / 4][rows][4], so that they are read one after another. */

/* Compilers copy and spill sums that instructions write in place, which halves the speed; so these two
   lines are assembly. */
#define MULTIPLY_ADD(way, sums, x, w) __asm__(way "vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(w))
#define WIDE_MULTIPLY_ADD(sums, more, x, w, other) \
    do { \
        __m256i products_; \
        __asm__("vpmaddwd %4, %2, %3\n\tvpaddd %3, %0, %0\n\tvpmaddwd %5, %2, %2\n\tvpaddd %2, %1, %1" \
                : "+x"(sums), "+x"(more), "+x"(x), "=&x"(products_) : "x"(w), "x"(other)); \
    } while (0)

/* Where a block of outputs goes, and what makes floats of its sums. */
typedef struct {
    const int32_t *row_sums;
    const float *scales, *bias, *steps; /* steps[0] if `one_step` */
    int one_step;
    float *outputs;
    Size stride;
} NAME(Outputs);

#if defined(INT8_VNNI)

#define MOST_ROWS 12

/* Levels become unsigned by adding 128; 128 times the sum of a row of weights is subtracted. */
static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const uint8_t *levels, Size k,
                                                  NAME(Outputs) to, const int rows, const int groups) {
    __m512i first[MOST_ROWS], second[MOST_ROWS]; /* apart, as GCC keeps no longer array in registers */
    for (int r = 0; r < rows; r++) first[r] = second[r] = _mm512_setzero_si512();
    for (Size i = 0; i < k; i += QUAD) {
        __m512i w = _mm512_loadu_si512(weights + i * GROUP), other = w;
        if (groups == 2) other = _mm512_loadu_si512(weights + (k + i) * GROUP);
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, levels + i * rows + r * QUAD, sizeof quad);
            __m512i x = _mm512_set1_epi32(quad);
            MULTIPLY_ADD("", first[r], x, w);
            if (groups == 2) MULTIPLY_ADD("", second[r], x, other);
        }
    }
    for (int g = 0; g < groups; g++) {
        __m512i zero = _mm512_slli_epi32(_mm512_loadu_si512(to.row_sums + g * GROUP), 7);
        __m512 scale = _mm512_loadu_ps(to.scales + g * GROUP), bias = _mm512_loadu_ps(to.bias + g * GROUP);
        for (int r = 0; r < rows; r++) {
            __m512 sum = _mm512_cvtepi32_ps(_mm512_sub_epi32(g ? second[r] : first[r], zero));
            __m512 step = _mm512_set1_ps(to.steps[to.one_step ? 0 : r]);
            sum = _mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(sum, scale), step), bias);
            _mm512_storeu_ps(to.outputs + r * to.stride + g * GROUP, sum);
        }
    }
}

#elif defined(INT8_AVXVNNI)

#define MOST_ROWS 6

static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const uint8_t *levels, Size k,
                                                  NAME(Outputs) to, const int rows, const int groups) {
    (void)groups;
    __m256i acc[MOST_ROWS * 2];
    for (int i = 0; i < rows * 2; i++) acc[i] = _mm256_setzero_si256();
    for (Size i = 0; i < k; i += QUAD) {
        __m256i low = _mm256_loadu_si256((const __m256i *)(weights + i * GROUP));
        __m256i high = _mm256_loadu_si256((const __m256i *)(weights + i * GROUP + 32));
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, levels + i * rows + r * QUAD, sizeof quad);
            __m256i x = _mm256_set1_epi32(quad);
            MULTIPLY_ADD("%{vex%} ", acc[2 * r], x, low);
            MULTIPLY_ADD("%{vex%} ", acc[2 * r + 1], x, high);
        }
    }
    for (int half = 0; half < 2; half++) {
        __m256i zero = _mm256_slli_epi32(_mm256_loadu_si256((const __m256i *)(to.row_sums + 8 * half)), 7);
        __m256 scale = _mm256_loadu_ps(to.scales + 8 * half), bias = _mm256_loadu_ps(to.bias + 8 * half);
        for (int r = 0; r < rows; r++) {
            __m256 sum = _mm256_cvtepi32_ps(_mm256_sub_epi32(acc[2 * r + half], zero));
            __m256 step = _mm256_set1_ps(to.steps[to.one_step ? 0 : r]);
            sum = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(sum, scale), step), bias);
            _mm256_storeu_ps(to.outputs + r * to.stride + 8 * half, sum);
        }
    }
}

#elif defined(INT8_AVX2)

#define MOST_ROWS 6

/* Levels and weights have 16 bits here: products of 8 bits would saturate. A register of sums has two
   halves of each of 4 outputs, which are added at the end. Eight outputs at a time: their weights stay in
   the nearest cache, and two weights, a row and its products are all that needs registers beside sums. */
static inline ALWAYS_INLINE void NAME(int8_block)(const void *weights, const int16_t *levels, Size k,
                                                  NAME(Outputs) to, const int rows, const int is_wide) {
    for (int half = 0; half < 2; half++) {
        __m256i first[MOST_ROWS], second[MOST_ROWS];
        for (int r = 0; r < rows; r++) first[r] = second[r] = _mm256_setzero_si256();
        for (Size i = 0; i < k; i += QUAD) {
            const __m256i *wide = (const __m256i *)weights + i + 2 * half;
            const __m128i *narrow = (const __m128i *)weights + i + 2 * half;
            __m256i w = is_wide ? _mm256_load_si256(wide) : _mm256_cvtepi8_epi16(_mm_loadu_si128(narrow));
            __m256i other = is_wide ? _mm256_load_si256(wide + 1)
                                    : _mm256_cvtepi8_epi16(_mm_loadu_si128(narrow + 1));
            for (int r = 0; r < rows; r++) {
                int64_t quad;
                memcpy(&quad, levels + i * rows + r * QUAD, sizeof quad);
                __m256i x = _mm256_set1_epi64x(quad);
                WIDE_MULTIPLY_ADD(first[r], second[r], x, w, other);
            }
        }
        __m256 scale = _mm256_loadu_ps(to.scales + 8 * half), bias = _mm256_loadu_ps(to.bias + 8 * half);
        for (int r = 0; r < rows; r++) {
            __m256i both = _mm256_hadd_epi32(first[r], second[r]);
            __m256 sum = _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(both, _MM_SHUFFLE(3, 1, 2, 0)));
            __m256 step = _mm256_set1_ps(to.steps[to.one_step ? 0 : r]);
            sum = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(sum, scale), step), bias);
            _mm256_storeu_ps(to.outputs + r * to.stride + 8 * half, sum);
        }
    }
}

#elif defined(INT8_DOTPROD)

#define MOST_ROWS 4

static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int8_t *levels, Size k,
                                                  NAME(Outputs) to, const int rows, const int groups) {
    (void)groups;
    int32x4_t acc[MOST_ROWS * 4];
    for (int i = 0; i < rows * 4; i++) acc[i] = vdupq_n_s32(0);
    for (Size i = 0; i < k; i += QUAD)
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, levels + i * rows + r * QUAD, sizeof quad);
            int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(quad));
            for (int q = 0; q < 4; q++)
                acc[4 * r + q] = vdotq_s32(acc[4 * r + q], vld1q_s8(weights + i * GROUP + q * 16), x);
        }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < 4; q++) {
            float32x4_t step = vdupq_n_f32(to.steps[to.one_step ? 0 : r]);
            float32x4_t sum = vmulq_f32(vcvtq_f32_s32(acc[4 * r + q]), vld1q_f32(to.scales + 4 * q));
            sum = vaddq_f32(vmulq_f32(sum, step), vld1q_f32(to.bias + 4 * q));
            vst1q_f32(to.outputs + r * to.stride + 4 * q, sum);
        }
}

#else

#define MOST_ROWS 1

static inline ALWAYS_INLINE void NAME(int8_block)(const int8_t *weights, const int8_t *levels, Size k,
                                                  NAME(Outputs) to, const int rows, const int groups) {
    (void)rows, (void)groups;
    int32_t acc[GROUP] = {0};
    for (Size i = 0; i < k; i += QUAD)
        for (int l = 0; l < GROUP; l++)
            for (int j = 0; j < QUAD; j++)
                acc[l] += levels[i + j] * weights[i * GROUP + l * QUAD + j];
    for (int l = 0; l < GROUP; l++) to.outputs[l] = (float)acc[l] * to.scales[l] * to.steps[0] + to.bias[l];
}

#endif

/* The rows of the next block, where blocks have about one size. */
static inline Size NAME(block_rows)(Size rows) {
    Size blocks = (rows + MOST_ROWS - 1) / MOST_ROWS;
    return (rows + blocks - 1) / blocks;
}

#if MOST_ROWS == 1
typedef int8_t NAME(Level);
#else
#if defined(INT8_VNNI) || defined(INT8_AVXVNNI)
typedef uint8_t NAME(Level);
#elif defined(INT8_AVX2)
typedef int16_t NAME(Level);
#else
typedef int8_t NAME(Level);
#endif

/* Levels (rows, K) -> blocks as [K / 4][rows][4], one after another. */
static void NAME(pack_rows)(const int8_t *levels, Size rows, Size k, NAME(Level) *to) {
    for (Size n = 0; n < rows;) {
        Size some = NAME(block_rows)(rows - n);
        for (Size r = 0; r < some; r++)
            for (Size i = 0; i < k; i += QUAD) {
                int32_t quad;
                memcpy(&quad, levels + (n + r) * k + i, sizeof quad);
#if defined(INT8_AVX2)
                _mm_storel_epi64((__m128i *)(to + n * k + i * some + r * QUAD),
                                 _mm_cvtepi8_epi16(_mm_cvtsi32_si128(quad)));
#else
#if !defined(INT8_DOTPROD)
                quad ^= (int32_t)0x80808080; /* 128 is added to each level */
#endif
                memcpy(to + n * k + i * some + r * QUAD, &quad, sizeof quad);
#endif
            }
        n += some;
    }
}
#endif

/* Rows with a group of outputs or with two, in blocks of at most MOST_ROWS, all of about one size.
   `kind` is how many groups, or for AVX2 whether the weights have 16 bits. */
static inline ALWAYS_INLINE void NAME(int8_rows)(const void *weights, const NAME(Level) *levels, Size rows,
                                                 Size k, NAME(Outputs) to, const int kind) {
    for (Size n = 0; n < rows;) {
        Size some = NAME(block_rows)(rows - n);
        const NAME(Level) *from = levels + n * k;
        switch (some) {
#define CASE(number) case number: NAME(int8_block)(weights, from, k, to, number, kind); break;
#if MOST_ROWS == 12
            CASE(12) CASE(11) CASE(10) CASE(9) CASE(8) CASE(7)
#endif
#if MOST_ROWS >= 6
            CASE(6) CASE(5)
#endif
#if MOST_ROWS >= 4
            CASE(4)
#endif
#if MOST_ROWS >= 3
            CASE(3) CASE(2)
#endif
            CASE(1)
#undef CASE
        }
        n += some, to.outputs += some * to.stride;
        if (!to.one_step) to.steps += some;
    }
}

static void NAME(int8_product)(const Linear *layer, const int8_t *levels, Size rows, const float *steps,
                               int one_step, float *outputs, void *scratch) {
    Size k = layer->width, groups = layer->stride / GROUP, g = 0;
#if MOST_ROWS == 1
    const int8_t *x = levels;
    (void)scratch;
#else
    NAME(Level) *x = scratch;
    NAME(pack_rows)(levels, rows, k, x);
#endif
    NAME(Outputs) to = {layer->row_sums, layer->scales, layer->bias, steps, one_step, outputs, layer->stride};
#if defined(INT8_AVX2)
    __m256i *wide = (__m256i *)(((uintptr_t)(x + rows * k) + 63) / 64 * 64);
#endif
    while (g < groups) {
        const int8_t *w = layer->levels + g * GROUP * k;
        to.row_sums = layer->row_sums + g * GROUP, to.scales = layer->scales + g * GROUP;
        to.bias = layer->bias + g * GROUP, to.outputs = outputs + g * GROUP;
#if defined(INT8_VNNI)
        if (g + 2 <= groups) {
            NAME(int8_rows)(w, x, rows, k, to, 2);
            g += 2;
            continue;
        }
#endif
#if defined(INT8_AVX2)
        if (rows > 3) {
            for (Size i = 0; i < k; i++)
                _mm256_store_si256(wide + i, _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w + i)));
            NAME(int8_rows)(wide, x, rows, k, to, 1);
        } else
            NAME(int8_rows)(w, x, rows, k, to, 0);
#else
        NAME(int8_rows)(w, x, rows, k, to, 1);
#endif
        g++;
    }
}

#undef MULTIPLY_ADD
#undef WIDE_MULTIPLY_ADD
#undef MOST_ROWS

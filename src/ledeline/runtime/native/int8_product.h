/* Products of levels, in the way that INT8_... names. Included by kernels_body.h.

   A block of some rows is multiplied with GROUP outputs or more at a time, so that a weight that was
   loaded is used several times. Sums stay in registers and leave them as floats: sum * scale * step + bias.
   A block has its inputs as [K / 4][rows][4], so that they are read one after another. */

/* Where a block of outputs goes, and what makes floats of its sums. */
typedef struct {
    const int32_t *zeros;
    const float *scales, *bias, *steps;
    float *outputs;
    Size stride;
} NAME(Outputs);

/* The weights of a group of outputs, or of two. */
typedef struct {
    const int8_t *first, *second; /* registers of each quad: of two groups, or the two halves of one */
    const int8_t *next;           /* those that are multiplied after these: they are fetched meanwhile */
    const int8_t *apart;          /* those that are multiplied apart, and the places of their inputs */
    const int32_t *places;
    Size num_apart;
} NAME(Weights);

/* --- registers of x86 --------------------------------------------------------------------------- */

#if defined(INT8_VNNI) || defined(INT8_AVXVNNI) || defined(INT8_PAIRS)

#if PART == 64
#define V(operation) _mm512_##operation
typedef __m512i NAME(Bytes);
typedef __m512 NAME(Floats);
#else
#define V(operation) _mm256_##operation
typedef __m256i NAME(Bytes);
typedef __m256 NAME(Floats);
#endif

static inline ALWAYS_INLINE NAME(Bytes) NAME(load)(const void *from) {
    NAME(Bytes) bytes;
    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

/* A quad of a row, in all places of a register. */
static inline ALWAYS_INLINE NAME(Bytes) NAME(spread)(const uint8_t *inputs) {
    int32_t quad;
    memcpy(&quad, inputs, sizeof quad);
    return V(set1_epi32)(quad);
}

/* Sums of row r, as many as a register has, for the outputs from `at` on. */
static inline ALWAYS_INLINE void NAME(write_sums)(NAME(Bytes) sums, NAME(Outputs) to, int r, Size at) {
    NAME(Floats) sum = V(cvtepi32_ps)(V(sub_epi32)(sums, NAME(load)(to.zeros + at)));
    sum = V(mul_ps)(V(mul_ps)(sum, V(loadu_ps)(to.scales + at)), V(set1_ps)(to.steps[r]));
    V(storeu_ps)(to.outputs + r * to.stride + at, V(add_ps)(sum, V(loadu_ps)(to.bias + at)));
}

#endif

/* --- a block of rows ---------------------------------------------------------------------------- */

#if defined(INT8_VNNI) || defined(INT8_AVXVNNI)

#define ADDS_PAIRS 0
#if defined(INT8_VNNI)
#define MOST_ROWS 12
#define VPDPBUSD "vpdpbusd"
#else
#define MOST_ROWS 6
#define VPDPBUSD "%{vex%} vpdpbusd"
#endif

/* Compilers copy and spill sums that an instruction writes in place, which halves the speed; so this one is
   assembly. */
#define MULTIPLY_ADD(sums, x, w) __asm__(VPDPBUSD " %2, %1, %0" : "+v"(sums) : "v"(x), "v"(w))

static inline ALWAYS_INLINE void NAME(int8_block)(NAME(Weights) weights, const uint8_t *inputs, Size k,
                                                  NAME(Outputs) to, const int rows, const int two) {
    NAME(Bytes) first[MOST_ROWS], second[MOST_ROWS]; /* apart, as GCC keeps no longer array in registers */
    for (int r = 0; r < rows; r++) first[r] = second[r] = V(set1_epi32)(0);
    for (Size i = 0; i < k; i += QUAD) {
        NAME(Bytes) w = NAME(load)(weights.first + i * GROUP), other = w;
        if (two) other = NAME(load)(weights.second + i * GROUP);
        __builtin_prefetch(weights.next + i * GROUP);
        if (PART == 64 && two) __builtin_prefetch(weights.next + (k + i) * GROUP);
        for (int r = 0; r < rows; r++) {
            NAME(Bytes) x = NAME(spread)(inputs + i * rows + r * QUAD);
            MULTIPLY_ADD(first[r], x, w);
            if (two) MULTIPLY_ADD(second[r], x, other);
        }
    }
    for (int r = 0; r < rows; r++) NAME(write_sums)(first[r], to, r, 0);
    for (int r = 0; r < rows && two; r++) NAME(write_sums)(second[r], to, r, PART / 4);
}

#undef VPDPBUSD
#undef MULTIPLY_ADD

#elif defined(INT8_PAIRS)

#define ADDS_PAIRS 1
#if PART == 64
#define MOST_ROWS 8
#else
#define MOST_ROWS 4
#endif

/* Products are added in 16 bits, those of two quads together, and then in 32: see pair_sums.h. */
static inline ALWAYS_INLINE void NAME(int8_block)(NAME(Weights) weights, const uint8_t *inputs, Size k,
                                                  NAME(Outputs) to, const int rows, const int two) {
    const NAME(Bytes) ones = V(set1_epi16)(1);
    NAME(Bytes) sums[MOST_ROWS][PARTS];
    (void)two;
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < PARTS; p++) sums[r][p] = V(set1_epi32)(0);
    for (Size i = 0; i < k; i += PAIR) {
        NAME(Bytes) first[PARTS], second[PARTS];
        for (int p = 0; p < PARTS; p++) {
            first[p] = NAME(load)(weights.first + i * GROUP + p * PART);
            second[p] = NAME(load)(weights.first + (i + QUAD) * GROUP + p * PART);
        }
        __builtin_prefetch(weights.next + i * GROUP), __builtin_prefetch(weights.next + (i + QUAD) * GROUP);
        for (int r = 0; r < rows; r++) {
            NAME(Bytes) x = NAME(spread)(inputs + i * rows + r * QUAD);
            NAME(Bytes) other = NAME(spread)(inputs + (i + QUAD) * rows + r * QUAD);
            for (int p = 0; p < PARTS; p++) {
                NAME(Bytes) both = V(add_epi16)(V(maddubs_epi16)(x, first[p]), V(maddubs_epi16)(other, second[p]));
                sums[r][p] = V(add_epi32)(sums[r][p], V(madd_epi16)(both, ones));
            }
        }
    }
    for (Size i = 0; i < weights.num_apart; i++)
        for (int r = 0; r < rows; r++) {
            NAME(Bytes) x = NAME(spread)(inputs + weights.places[i] * rows + r * QUAD);
            for (int p = 0; p < PARTS; p++) {
                NAME(Bytes) w = NAME(load)(weights.apart + i * QUAD * GROUP + p * PART);
                sums[r][p] = V(add_epi32)(sums[r][p], V(madd_epi16)(V(maddubs_epi16)(x, w), ones));
            }
        }
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < PARTS; p++) NAME(write_sums)(sums[r][p], to, r, p * (PART / 4));
}

#elif defined(INT8_DOTPROD)

#define ADDS_PAIRS 0
#define MOST_ROWS 4

static inline ALWAYS_INLINE void NAME(int8_block)(NAME(Weights) weights, const uint8_t *inputs, Size k,
                                                  NAME(Outputs) to, const int rows, const int two) {
    int32x4_t sums[MOST_ROWS * 4];
    (void)two;
    for (int i = 0; i < rows * 4; i++) sums[i] = vdupq_n_s32(0);
    for (Size i = 0; i < k; i += QUAD)
        for (int r = 0; r < rows; r++) {
            int32_t quad;
            memcpy(&quad, inputs + i * rows + r * QUAD, sizeof quad);
            int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(quad)); /* at most 127: the same with a sign */
            for (int q = 0; q < 4; q++)
                sums[4 * r + q] = vdotq_s32(sums[4 * r + q], vld1q_s8(weights.first + i * GROUP + q * 16), x);
        }
    for (int r = 0; r < rows; r++)
        for (int q = 0; q < 4; q++) {
            int32x4_t own = vsubq_s32(sums[4 * r + q], vld1q_s32(to.zeros + 4 * q));
            float32x4_t sum = vmulq_f32(vcvtq_f32_s32(own), vld1q_f32(to.scales + 4 * q));
            sum = vaddq_f32(vmulq_f32(sum, vdupq_n_f32(to.steps[r])), vld1q_f32(to.bias + 4 * q));
            vst1q_f32(to.outputs + r * to.stride + 4 * q, sum);
        }
}

#elif defined(INT8_HALVES)

#define ADDS_PAIRS 0
#define MOST_ROWS 4

/* What every CPU of its architecture has. The weights of four outputs make two registers of sums, each of
   which has for two outputs the sums of the first and of the second half of the quads. */
static inline ALWAYS_INLINE void NAME(int8_block)(NAME(Weights) weights, const uint8_t *inputs, Size k,
                                                  NAME(Outputs) to, const int rows, const int two) {
    (void)two;
    for (int p = 0; p < PARTS; p++) {
        Halves low[MOST_ROWS], high[MOST_ROWS];
        for (int r = 0; r < rows; r++) low[r] = high[r] = no_halves();
        for (Size i = 0; i < k; i += QUAD) {
            HalfWeights w = half_weights(weights.first + i * GROUP + p * PART);
            for (int r = 0; r < rows; r++) add_halves(inputs + i * rows + r * QUAD, w, &low[r], &high[r]);
        }
        for (int r = 0; r < rows; r++) {
            int32_t sums[PART / 4];
            join_halves(low[r], high[r], sums);
            for (int l = 0, m = p * (PART / 4); l < PART / 4; l++, m++)
                to.outputs[r * to.stride + m] = (float)(sums[l] - to.zeros[m]) * to.scales[m] * to.steps[r] + to.bias[m];
        }
    }
}

#else

#define ADDS_PAIRS 0
#define MOST_ROWS 1

static inline ALWAYS_INLINE void NAME(int8_block)(NAME(Weights) weights, const uint8_t *inputs, Size k,
                                                  NAME(Outputs) to, const int rows, const int two) {
    int32_t sums[GROUP] = {0};
    (void)rows, (void)two;
    for (Size i = 0; i < k; i += QUAD)
        for (int l = 0; l < GROUP; l++)
            for (int j = 0; j < QUAD; j++) sums[l] += inputs[i + j] * weights.first[i * GROUP + l * QUAD + j];
    for (int l = 0; l < GROUP; l++)
        to.outputs[l] = (float)(sums[l] - to.zeros[l]) * to.scales[l] * to.steps[0] + to.bias[l];
}

#endif

#undef V

/* --- all rows and outputs ----------------------------------------------------------------------- */

/* The rows of the next block, where blocks have about one size. */
static inline Size NAME(block_rows)(Size rows) {
    Size blocks = (rows + MOST_ROWS - 1) / MOST_ROWS;
    return (rows + blocks - 1) / blocks;
}

/* Inputs (rows, K) -> blocks as [K / 4][rows][4], one after another. */
static const uint8_t *NAME(pack_rows)(const uint8_t *inputs, Size rows, Size k, uint8_t *to) {
    if (MOST_ROWS == 1) return inputs;
    for (Size n = 0; n < rows;) {
        Size some = NAME(block_rows)(rows - n);
        for (Size r = 0; r < some; r++)
            for (Size i = 0; i < k; i += QUAD)
                memcpy(to + n * k + i * some + r * QUAD, inputs + (n + r) * k + i, QUAD);
        n += some;
    }
    return to;
}

/* All rows with some outputs, in blocks of at most MOST_ROWS, all of about one size. */
static inline ALWAYS_INLINE void NAME(int8_rows)(NAME(Weights) weights, const uint8_t *inputs, Size rows,
                                                 Size k, NAME(Outputs) to, const int two) {
    for (Size n = 0; n < rows;) {
        Size some = NAME(block_rows)(rows - n);
        const uint8_t *from = inputs + n * k;
        switch (some) {
#define CASE(number) case number: NAME(int8_block)(weights, from, k, to, number, two); break;
#if MOST_ROWS == 12
            CASE(12) CASE(11) CASE(10) CASE(9)
#endif
#if MOST_ROWS >= 8
            CASE(8) CASE(7)
#endif
#if MOST_ROWS >= 6
            CASE(6) CASE(5)
#endif
#if MOST_ROWS >= 4
            CASE(4) CASE(3) CASE(2)
#endif
            CASE(1)
#undef CASE
        }
        n += some, to.outputs += some * to.stride, to.steps += some;
    }
}

static void NAME(int8_product)(const Linear *layer, const uint8_t *inputs, Size rows, const float *steps,
                               float *outputs, void *scratch) {
    Size k = layer->width, groups = layer->stride / GROUP;
    const uint8_t *packed = NAME(pack_rows)(inputs, rows, k, scratch);
    for (Size g = 0, some; g < groups; g += some) {
        const int8_t *levels = layer->levels + g * GROUP * k;
        NAME(Outputs) to = {layer->zeros + g * GROUP, layer->scales + g * GROUP, layer->bias + g * GROUP, steps,
                            outputs + g * GROUP, layer->stride};
        some = PART == 64 && !ADDS_PAIRS && g + 2 <= groups ? 2 : 1;
        NAME(Weights) weights = {levels, levels + (some == 2 ? GROUP * k : PART), levels, NULL, NULL, 0};
        if (g + 2 * some <= groups) weights.next += some * GROUP * k;
#if ADDS_PAIRS
        Size start = layer->apart.starts[g];
        weights.apart = layer->apart.levels + start * QUAD * GROUP, weights.places = layer->apart.places + start;
        weights.num_apart = layer->apart.starts[g + 1] - start;
#endif
        if (PART == 64 && some == 1) NAME(int8_rows)(weights, packed, rows, k, to, 0);
        else NAME(int8_rows)(weights, packed, rows, k, to, 1);
    }
}

#undef MOST_ROWS

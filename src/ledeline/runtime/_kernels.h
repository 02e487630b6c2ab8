/* The kernels themselves, in plain C that compilers turn into vector code; `_kernels.c` includes
   this once for each kind of processor, with NAME naming the kind.

   A result depends only on its value or its row, never on the position in memory: a row has the
   same bits in a batch of any size. Sums over a row use 16 partial sums: value i goes to sum i % 16. */

/* e^x, with a relative error below 1e-7; the polynomial is the best of its degree for |r| < ln 2 / 2 */
static inline float NAME(exp)(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = __builtin_rintf(x * 1.44269504f);
    float r = x - n * 0.693145752f; /* ln 2 in two parts, the first exact in a product with n */
    r -= n * 1.42860677e-6f;
    float p = 0.00138145f;
    p = p * r + 0.00836875f;
    p = p * r + 0.04166839f;
    p = p * r + 0.1666652f;
    p = p * r + 0.49999993f;
    p = p * (r * r) + r + 1.0f;
    union { int bits; float value; } scale = {((int)n + 127) << 23};
    return p * scale.value;
}

static inline float NAME(sigmoid)(float x) { return 1.0f / (1.0f + NAME(exp)(-x)); }

static inline float NAME(tanh)(float x) { return 2.0f / (1.0f + NAME(exp)(-2.0f * x)) - 1.0f; }

/* An LSTM cell: gates (rows, 4 size) in the order input, forget, candidate, output, to which row n of
   `more` is added, or its row words[n]. cells (rows, size) -> hidden, next. */
static UNUSED void NAME(cell)(const float *restrict gates, const float *restrict more, const long *words,
                       const float *restrict cells, float *restrict hidden, float *restrict next,
                       long rows, long size) {
    for (long n = 0; n < rows; n++) {
        const float *g = gates + n * 4 * size;
        const float *m = more ? more + (words ? words[n] : n) * 4 * size : 0;
        const float *c = cells + n * size;
        float *h = hidden + n * size, *d = next + n * size;
        if (m) {
            for (long i = 0; i < size; i++) {
                float in_gate = NAME(sigmoid)(g[i] + m[i]);
                float forget = NAME(sigmoid)(g[size + i] + m[size + i]);
                float candidate = NAME(tanh)(g[2 * size + i] + m[2 * size + i]);
                float out_gate = NAME(sigmoid)(g[3 * size + i] + m[3 * size + i]);
                float cell = forget * c[i] + in_gate * candidate;
                d[i] = cell;
                h[i] = out_gate * NAME(tanh)(cell);
            }
        } else {
            for (long i = 0; i < size; i++) {
                float cell = NAME(sigmoid)(g[size + i]) * c[i] +
                             NAME(sigmoid)(g[i]) * NAME(tanh)(g[2 * size + i]);
                d[i] = cell;
                h[i] = NAME(sigmoid)(g[3 * size + i]) * NAME(tanh)(cell);
            }
        }
    }
}

/* Quantize values (rows, size) to unsigned levels in `places`, whose rows are `stride` apart. */
static UNUSED void NAME(levels)(const float *restrict values, unsigned char *restrict places, long stride,
                         long rows, long size, float per_unit) {
    for (long n = 0; n < rows; n++) {
        const float *v = values + n * size;
        unsigned char *p = places + n * stride;
        for (long i = 0; i < size; i++) p[i] = (unsigned char)(int)(v[i] * per_unit + 128.5f);
    }
}

static UNUSED void NAME(tanh_all)(float *values, long number) {
    for (long i = 0; i < number; i++) values[i] = NAME(tanh)(values[i]);
}

/* Logits (rows, types) -> log-probabilities. */
static UNUSED void NAME(log_softmax)(const float *restrict logits, float *restrict logs, long rows,
                              long types) {
    long whole = types / 16 * 16;
    for (long n = 0; n < rows; n++) {
        const float *x = logits + n * types;
        float *y = logs + n * types;
        float most[16], sum[16], highest = -__builtin_inff();
        for (int k = 0; k < 16; k++) most[k] = highest, sum[k] = 0.0f;
        for (long i = 0; i < whole; i += 16)
            for (int k = 0; k < 16; k++) most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
        for (long i = whole; i < types; i++) highest = x[i] > highest ? x[i] : highest;
        for (int k = 0; k < 16; k++) highest = most[k] > highest ? most[k] : highest;
        for (long i = 0; i < whole; i += 16)
            for (int k = 0; k < 16; k++) sum[k] += NAME(exp)(x[i + k] - highest);
        double total = 0.0;
        for (int k = 0; k < 16; k++) total += sum[k];
        for (long i = whole; i < types; i++) total += NAME(exp)(x[i] - highest);
        float norm = highest + (float)log(total);
        for (long i = 0; i < types; i++) y[i] = x[i] - norm;
    }
}

/* The k highest of totals (beam) + logs (beam, types), ranked by value, then by flat index. Returns
   how many there are; minus infinity does not count. */
static UNUSED long NAME(best_of)(const float *restrict logs, const float *restrict totals, long beam,
                          long types, long k, float *restrict values, long *restrict places) {
    long found = 0;
    float least = -__builtin_inff(); /* to be among the best a value must be above it */
    for (long row = 0; row < beam; row++) {
        const float *x = logs + row * types;
        float total = totals[row];
        for (long start = 0; start < types; start += 64) {
            long stop = start + 64 < types ? start + 64 : types;
            int any = 0;
            for (long i = start; i < stop; i++) any |= x[i] + total > least;
            if (!any) continue;
            for (long i = start; i < stop; i++) {
                float value = x[i] + total;
                if (!(value > least)) continue;
                long at = found < k ? found++ : k - 1;
                for (; at > 0 && values[at - 1] < value; at--)
                    values[at] = values[at - 1], places[at] = places[at - 1];
                values[at] = value, places[at] = row * types + i;
                if (found == k) least = values[k - 1];
            }
        }
    }
    return found;
}

static UNUSED void NAME(best)(const float *logs, const float *totals, long sources, long beam, long types,
                       long k, float *values, long *places) {
    for (long b = 0; b < sources; b++, values += k, places += k) {
        long found = NAME(best_of)(logs + b * beam * types, totals + b * beam, beam, types, k,
                                   values, places);
        for (; found < k; found++) values[found] = -__builtin_inff(), places[found] = 0;
    }
}

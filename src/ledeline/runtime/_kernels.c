/* Small fused loops of the CPU engine (see kernels.py): LSTM cell, log-softmax, top-k.

   Built where pip finds a C compiler, and optional: elsewhere torch does the same. Each loop is
   compiled for several kinds of x86 processors; the right one is chosen at run time. */

#include <math.h>
#include <stdlib.h>

#if defined(__GNUC__)
#define UNUSED __attribute__((unused)) /* not every kind of processor uses every loop */
#else
#define UNUSED
#endif
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define NAME(name) JOIN(plain, name)
#include "_kernels.h"
#undef NAME

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define KINDS 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define NAME(name) JOIN(avx2, name)
#include "_kernels.h"
#undef NAME
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#define NAME(name) JOIN(avx512, name)
#include "_kernels.h"
#undef NAME
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,prefer-vector-width=512")
#define NAME(name) JOIN(vnni, name)
#include "_kernels.h"
#include "_lstm.h"
#undef NAME
#pragma GCC pop_options

/* 0: portable, 1: AVX2, 2: AVX-512, 3: AVX-512 with VNNI; the KINDS of cpu.py. */
static int found(void) {
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    int vnni = __builtin_cpu_supports("avx512vnni");
    return avx2 ? (avx512 ? (vnni ? 3 : 2) : 1) : 0;
}

static int kind_ = -1;

static int kind(void) {
    if (kind_ < 0) kind_ = found();
    return kind_;
}

/* Use no instructions newer than those of this kind; returns the kind that is used. */
int ledeline_limit(int newest) {
    int best = found();
    return kind_ = newest < best ? newest : best;
}

#define CHOSEN(name, arguments)                                  \
    do {                                                         \
        if (kind() >= 2) JOIN(avx512, name) arguments;           \
        else if (kind() == 1) JOIN(avx2, name) arguments;        \
        else JOIN(plain, name) arguments;                        \
    } while (0)
#else
int ledeline_limit(int newest) {
    (void)newest;
    return 0;
}

#define CHOSEN(name, arguments) JOIN(plain, name) arguments
#endif

void ledeline_cell(const float *gates, const float *more, const long *words, const float *cells,
                   float *hidden, float *next, long rows, long size) {
    CHOSEN(cell, (gates, more, words, cells, hidden, next, rows, size));
}

void ledeline_levels(const float *values, unsigned char *places, long stride, long rows, long size,
                     float per_unit) {
    CHOSEN(levels, (values, places, stride, rows, size, per_unit));
}

void ledeline_tanh(float *values, long number) { CHOSEN(tanh_all, (values, number)); }

void ledeline_log_softmax(const float *logits, float *logs, long rows, long types) {
    CHOSEN(log_softmax, (logits, logs, rows, types));
}

void ledeline_best(const float *logs, const float *totals, long sources, long beam, long types,
                   long k, float *values, long *places) {
    CHOSEN(best, (logs, totals, sources, beam, types, k, values, places));
}

/* Whether `ledeline_lstm` can be called. */
int ledeline_has_lstm(void) {
#ifdef KINDS
    return kind() == 3;
#else
    return 0;
#endif
}

int ledeline_lstm(const float *inputs, const signed char *weights, const float *scales,
                  const int *zeros, float *hidden, float *cells, long steps, long batch, long size) {
#ifdef KINDS
    return vnni_lstm(inputs, weights, scales, zeros, hidden, cells, steps, batch, size);
#else
    (void)inputs, (void)weights, (void)scales, (void)zeros, (void)hidden, (void)cells;
    (void)steps, (void)batch, (void)size;
    return 0;
#endif
}

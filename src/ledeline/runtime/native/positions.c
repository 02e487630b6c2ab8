/* Sines, cosines and exponentials are our own, so that they have the same bits on every system. */

#include "positions.h"

#include <math.h>

#define NUM_FIRST 128 /* places whose vectors are kept */
#define LOG_OF_SHORTEST (-9.210340371976184f) /* the frequencies go from 1 to 1 / 10000 */

/* e^x for x between -700 and 0: 2^n e^r with |r| below 0.35, as a series. The error is below 1e-15. */
static double exponential(double x) {
    double n = floor(x / 0.69314718055994531 + 0.5), r = x - n * 0.69314718055994531, sum = 1.0;
    for (int i = 14; i > 0; i--) sum = 1.0 + r / i * sum;
    return ldexp(sum, (int)n);
}

/* sin x and cos x for x from 0 to 2^24: x is reduced to at most pi / 4, with pi / 2 in three parts, the
   products with the first two exact. The error is below 1e-13. */
static void sine_and_cosine(double x, double *sine, double *cosine) {
    double n = floor(x * 0.63661977236758134 + 0.5);
    double r = ((x - n * 1.57079632673412561417e+00) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
    double square = r * r, s = 1.0, c = 1.0;
    for (int i = 16; i > 0; i -= 2) s = 1.0 - square / (i * (i + 1)) * s;
    for (int i = 17; i > 0; i -= 2) c = 1.0 - square / (i * (i + 1)) * c;
    s *= r;
    int quarter = (int)((int64_t)n & 3);
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

/* The angles have 24 bits, as those of the system. */
static void write_vector(const Positions *positions, Size place, float *vector) {
    Size half = positions->size / 2;
    for (Size k = 0; k < half; k++) {
        double sine, cosine;
        sine_and_cosine((double)((float)place * positions->frequencies[k]), &sine, &cosine);
        vector[k] = (float)sine, vector[half + k] = (float)cosine;
    }
}

int positions_init(Positions *positions, Block **blocks, Size size) {
    Size half = size / 2, last = half > 1 ? half - 1 : 1;
    float *frequencies = keep(blocks, (size_t)half * sizeof *frequencies);
    float *first = keep(blocks, (size_t)size * NUM_FIRST * sizeof *first);
    if (!frequencies || !first) return 0;
    for (Size k = 0; k < half; k++) {
        float share = (float)k / (float)last, exponent = LOG_OF_SHORTEST * share;
        frequencies[k] = (float)exponential((double)exponent);
    }
    *positions = (Positions){size, frequencies, first};
    for (Size place = 0; place < NUM_FIRST; place++) write_vector(positions, place, first + place * size);
    return 1;
}

#define SOME 64

void add_position(const Positions *positions, Size place, float *values) {
    Size size = positions->size, half = size / 2;
    if (place < NUM_FIRST) {
        const float *vector = positions->first + place * size;
        for (Size i = 0; i < size; i++) values[i] += vector[i];
        return;
    }
    for (Size k = 0; k < half; k += SOME) { /* a part at a time, as if it were the whole */
        float vector[2 * SOME];
        Size some = half - k < SOME ? half - k : SOME;
        Positions part = {2 * some, positions->frequencies + k, NULL};
        write_vector(&part, place, vector);
        for (Size i = 0; i < some; i++) values[k + i] += vector[i], values[half + k + i] += vector[some + i];
    }
}

/* What a call of the verifier works with.

   Legend: I lede sub-words, N headlines, J sub-words, G generator size, D size. Rows are the sub-words of
   all headlines, one headline after the other. */

#ifndef LEDELINE_VERIFIER_WORK_H
#define LEDELINE_VERIFIER_WORK_H

#include "products.h"
#include "verifier.h"

#define AT_ONCE 48 /* rows whose wide activations stay in the nearest caches */

static inline Size larger(Size one, Size other) { return one > other ? one : other; }

/* The rows of a headline, up to the last that is no <pad>. */
typedef struct {
    Size first, length;
    Size num_written; /* that are no <pad> */
} Span;

/* Where a sub-word stands in the lede. */
typedef struct {
    Size at, last;            /* its place, and that of the aligned sub-word before, or -1 */
    Size start, num_skipped;  /* what was skipped between the two */
    int is_exact;             /* whether the lede has the very sub-word there */
} Place;

typedef struct {
    const Verifier *v;
    const Kernels *kernels;
    int good; /* there was memory so far */
    Work products;
    void *room; /* of all parts below */
    /* What is asked. */
    const int32_t *source, *headlines;
    const float *values, *states_seen, *logs;
    Size num_source, num_headlines, width;
    /* Sizes: rows in all, the longest span, sub-words of the lede that are no <pad>; how far apart
       rows of D and embeddings are; inputs of a head, and the same rounded up. */
    Size rows, longest, length, stride, embedded_width, head, head_width;
    Span *spans;         /* (N) */
    Place *places;       /* (rows) */
    int32_t *words;      /* (rows) */
    int32_t *lede_keys;  /* (I): places that are no <pad> */
    int32_t *own_keys;   /* (rows): the same for the rows of each span, from its first on */
    double *sums;        /* of one row */
    /* Of the lede: rows of D, embeddings, and sums of all rows before. */
    float *embedded, *memory, *at, *before, *behind, *skipped_sums, *embedded_sums, *lede_key_value;
    /* Of the rows. */
    float *states, *more, *normed, *own_embedded, *scalars, *query_key_value, *hidden;
    /* Of one head. */
    float *queries, *packed_keys, *packed_values, *own_packed_keys, *own_packed_values;
    float *scores, *own_scores, *weights, *own_weights, *both, *mixed, *own_mixed;
    /* Of the headlines. */
    float *pooled_inputs, *pooled, *outputs;
} VerifierWork;

/* How long a headline is up to the last that is no <pad>. */
Size span_length(const int32_t *ids, Size width);

/* Sizes of what is asked, and room for all parts. Returns 0 if there was no memory. */
int make_work(VerifierWork *w);
void drop_work(VerifierWork *w);

/* The rows of a headline from row `first` on: its sub-words and their places in the lede, from left to
   right. */
void read_headline(VerifierWork *w, Size number, Size first);

/* One head of attention: what its rows see of the lede and of their headlines, to `normed`. */
void attend_with_head(const VerifierWork *w, Size head);

#endif

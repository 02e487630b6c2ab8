/* Not that of multi_head_attention.c: a row has one softmax over two sets, the lede and its own headline. */

#include "verifier_work.h"

#include <math.h>
#include <string.h>

/* Keys and values are packed like the weights of a layer, so that scores and mixed values of all
   rows are products of floats. `rows` says which rows of `from`, `apart` from each other, are packed. */

static void pack_keys(const float *from, Size apart, const int32_t *rows, Size number, Size head,
                      float *packed) {
    memset(packed, 0, (size_t)(up(number, GROUP) * head) * sizeof *packed);
    for (Size n = 0; n < number; n++) {
        const float *key = from + rows[n] * apart;
        float *to = packed + n / GROUP * GROUP * head + n % GROUP;
        for (Size i = 0; i < head; i++) to[i * GROUP] = key[i];
    }
}

static void pack_values(const float *from, Size apart, const int32_t *rows, Size number, Size head,
                        float *packed) {
    for (Size first = 0; first < head; first += GROUP) {
        Size some = head - first < GROUP ? head - first : GROUP;
        for (Size n = 0; n < number; n++, packed += GROUP) {
            memcpy(packed, from + rows[n] * apart + first, (size_t)some * sizeof *packed);
            for (Size i = some; i < GROUP; i++) packed[i] = 0.0f;
        }
    }
}

/* The queries of a head, scaled. */
static void take_queries(const VerifierWork *w, Size head_number) {
    Size head = w->head, apart = up(3 * w->v->shape.size, GROUP);
    float scale = 1.0f / sqrtf((float)head);
    for (Size row = 0; row < w->rows; row++) {
        const float *from = w->query_key_value + row * apart + head_number * head;
        for (Size i = 0; i < head; i++) w->queries[row * head + i] = from[i] * scale;
    }
}

/* Scores of the lede and of the headline -> weights of both, whose sum is 1. */
static void weigh(const VerifierWork *w, const Span *span) {
    Size length = w->length, own = span->num_written;
    size_t size = (size_t)length * sizeof(float), own_size = (size_t)own * sizeof(float);
    for (Size j = 0; j < span->length; j++) {
        Size row = span->first + j;
        memcpy(w->both, w->scores + row * up(length, GROUP), size);
        memcpy(w->both + length, w->own_scores + j * up(own, GROUP), own_size);
        w->kernels->softmax(w->both, length + own);
        memcpy(w->weights + row * length, w->both, size);
        memcpy(w->own_weights + j * own, w->both + length, own_size);
    }
}

/* Attention of a headline to itself, and the weights of the lede's sub-words. */
static void attend_to_own(const VerifierWork *w, const Span *span, Size head_number) {
    Size size = w->v->shape.size, apart = up(3 * size, GROUP), own = span->num_written;
    const float *keys = w->query_key_value + size + head_number * w->head, *values = keys + size;
    const int32_t *rows = w->own_keys + span->first;
    pack_keys(keys, apart, rows, own, w->head, w->own_packed_keys);
    pack_values(values, apart, rows, own, w->head, w->own_packed_values);
    w->kernels->float_product(w->own_packed_keys, w->queries + span->first * w->head, span->length,
                              w->head, up(own, GROUP), w->own_scores, up(own, GROUP));
    weigh(w, span);
    w->kernels->float_product(w->own_packed_values, w->own_weights, span->length, own,
                              w->head_width, w->own_mixed, w->head_width);
    for (Size j = 0; j < span->length; j++)
        memcpy(w->normed + (span->first + j) * w->stride + head_number * w->head,
               w->own_mixed + j * w->head_width, (size_t)w->head * sizeof(float));
}

void attend_with_head(const VerifierWork *w, Size head_number) {
    Size size = w->v->shape.size, apart = up(2 * size, GROUP), head = w->head, length = w->length;
    const float *keys = w->lede_key_value + head_number * head, *values = keys + size;
    pack_keys(keys, apart, w->lede_keys, length, head, w->packed_keys);
    pack_values(values, apart, w->lede_keys, length, head, w->packed_values);
    take_queries(w, head_number);
    w->kernels->float_product(w->packed_keys, w->queries, w->rows, head, up(length, GROUP),
                              w->scores, up(length, GROUP));
    for (Size n = 0; n < w->num_headlines; n++)
        if (w->spans[n].length) attend_to_own(w, &w->spans[n], head_number);
    w->kernels->float_product(w->packed_values, w->weights, w->rows, length, w->head_width,
                              w->mixed, w->head_width);
    for (Size row = 0; row < w->rows; row++)
        w->kernels->add(w->normed + row * w->stride + head_number * head,
                        w->mixed + row * w->head_width, head);
}

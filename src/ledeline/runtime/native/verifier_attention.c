/* Not that of multi_head_attention.c: a row has one softmax over two sets, the lede and its own headline. */

#include "multi_head_attention.h"
#include "verifier_work.h"

#include <math.h>
#include <string.h>

/* Keys of one head, and its values D behind them. */
static void pack(const VerifierWork *w, const float *keys, Size apart, const int32_t *rows, Size number,
                 float *packed_keys, float *packed_values) {
    memset(packed_keys, 0, (size_t)(up(number, GROUP) * w->head) * sizeof *packed_keys);
    memset(packed_values, 0, (size_t)(number * w->head_width) * sizeof *packed_values);
    pack_keys(keys, apart, rows, number, w->head, packed_keys);
    pack_values(keys + w->v->shape.size, apart, rows, number, number, w->head, packed_values);
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
    const float *keys = w->query_key_value + size + head_number * w->head;
    pack(w, keys, apart, w->own_keys + span->first, own, w->own_packed_keys, w->own_packed_values);
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
    pack(w, w->lede_key_value + head_number * head, apart, w->lede_keys, length, w->packed_keys, w->packed_values);
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

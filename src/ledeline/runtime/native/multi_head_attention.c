#include "multi_head_attention.h"

#include <math.h>
#include <string.h>

#define AT_ONCE 64 /* queries whose scores are kept at a time */

Heads heads_of(const Kernels *kernels, Size size, Size number) {
    Size head = size / number;
    return (Heads){kernels, size, number, head, up(head, GROUP)};
}

/* --- many queries, the same places ---------------------------------------------------------------- */

/* The places are rounded up to GROUP; what is added has no weight. */
static Size packed_head(const Heads *heads, Size length) { return up(length, GROUP) * (heads->head + heads->head_width); }

Size packed_size(const Heads *heads, Size length) { return heads->number * packed_head(heads, length); }

void pack_keys(const float *keys, Size apart, const int32_t *rows, Size length, Size head, float *packed) {
    for (Size n = 0; n < length; n++) {
        const float *key = keys + (rows ? rows[n] : n) * apart;
        float *to = packed + n / GROUP * GROUP * head + n % GROUP;
        for (Size i = 0; i < head; i++) to[i * GROUP] = key[i];
    }
}

void pack_values(const float *values, Size apart, const int32_t *rows, Size length, Size padded, Size head,
                 float *packed) {
    for (Size first = 0; first < head; first += GROUP) {
        Size some = head - first < GROUP ? head - first : GROUP;
        for (Size n = 0; n < length; n++)
            memcpy(packed + (first * padded + n * GROUP), values + (rows ? rows[n] : n) * apart + first,
                   (size_t)some * sizeof *packed);
    }
}

void pack_places(const Heads *heads, const float *keys, const float *values, Size apart, Size length, float *packed) {
    Size size = packed_head(heads, length), padded = up(length, GROUP), head = heads->head;
    memset(packed, 0, (size_t)packed_size(heads, length) * sizeof *packed);
    for (Size h = 0; h < heads->number; h++) {
        pack_keys(keys + h * head, apart, NULL, length, head, packed + h * size);
        pack_values(values + h * head, apart, NULL, length, padded, head, packed + h * size + padded * head);
    }
}

/* A head's part of a query, scaled. */
static void take_query(const Heads *heads, const float *query, float *taken) {
    float scale = 1.0f / sqrtf((float)heads->head);
    for (Size i = 0; i < heads->head; i++) taken[i] = query[i] * scale;
}

/* Add the weights of a head to what is told; of the mean, the last head makes it. */
static void tell(const Heads *heads, Size h, const float *weights, Size length, float *told, Size head) {
    if (head && head != h + 1) return;
    for (Size i = 0; i < length; i++) told[i] = head || !h ? weights[i] : told[i] + weights[i];
    for (Size i = 0; !head && h + 1 == heads->number && i < length; i++) told[i] /= (float)heads->number;
}

/* At most AT_ONCE queries; `at` has room for queries, scores and mixed values of a head. */
static void attend_some(const Heads *heads, const float *packed, Size length, const float *queries, Size apart,
                        Size rows, float *contexts, Size stride, Told told, float *at) {
    Size padded = up(length, GROUP), head = heads->head, width = heads->head_width;
    float *taken = at, *scores = taken + AT_ONCE * head, *mixed = scores + AT_ONCE * padded;
    for (Size h = 0; h < heads->number; h++) {
        const float *keys = packed + h * packed_head(heads, length), *values = keys + padded * head;
        for (Size n = 0; n < rows; n++) take_query(heads, queries + n * apart + h * head, taken + n * head);
        heads->kernels->float_product(keys, taken, rows, head, padded, scores, padded);
        for (Size n = 0; n < rows; n++) {
            float *weights = scores + n * padded;
            heads->kernels->softmax(weights, length);
            memset(weights + length, 0, (size_t)(padded - length) * sizeof *weights);
            if (told.weights) tell(heads, h, weights, length, told.weights[n], told.head);
        }
        heads->kernels->float_product(values, scores, rows, padded, width, mixed, width);
        for (Size n = 0; n < rows; n++)
            memcpy(contexts + n * stride + h * head, mixed + n * width, (size_t)head * sizeof *mixed);
    }
}

int attend_to_packed(const Heads *heads, const float *packed, Size length, const float *queries, Size apart,
                     Size rows, float *contexts, Size stride, Told told, Buffer *buffer) {
    Size floats = AT_ONCE * (heads->head + up(length, GROUP) + heads->head_width);
    float *at = room(buffer, (size_t)floats * sizeof *at);
    if (!at) return 0;
    for (Size n = 0; n < rows; n += AT_ONCE) {
        Told some = {told.weights ? told.weights + n : NULL, told.head};
        attend_some(heads, packed, length, queries + n * apart, apart, rows - n < AT_ONCE ? rows - n : AT_ONCE,
                    contexts + n * stride, stride, some, at);
    }
    return 1;
}

/* --- one query, places of its own ----------------------------------------------------------------- */

void attend_to_slots(const Heads *heads, const float *const *places, Size length, const float *query,
                     float *context, float *scratch) {
    const Kernels *kernels = heads->kernels;
    float *taken = scratch, *weights = scratch + heads->head;
    memset(context, 0, (size_t)heads->size * sizeof *context);
    for (Size first = 0; first < heads->size; first += heads->head) {
        take_query(heads, query + first, taken);
        for (Size j = 0; j < length; j++) weights[j] = kernels->dot(taken, places[j] + first, heads->head);
        kernels->softmax(weights, length);
        for (Size j = 0; j < length; j++)
            kernels->add_scaled(context + first, places[j] + heads->size + first, weights[j], heads->head);
    }
}

#include "verifier_work.h"

#include <stdlib.h>

#define ALIGNMENT 64

/* One piece of memory that is handed out in parts. */
typedef struct {
    char *start; /* NULL as long as parts are only counted */
    size_t used;
} Arena;

static void *take(Arena *arena, Size rows, Size cols, size_t size) {
    void *part = arena->start ? arena->start + arena->used : NULL;
    arena->used += ((size_t)rows * (size_t)cols * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return part;
}

static float *floats(Arena *arena, Size rows, Size cols) {
    return take(arena, rows, cols, sizeof(float));
}

static void lay_out_lede(VerifierWork *w, Arena *arena) {
    Size number = w->num_source, stride = w->stride, embedded = w->embedded_width;
    w->lede_keys = take(arena, number, 1, sizeof *w->lede_keys);
    w->sums = take(arena, larger(stride, embedded), 1, sizeof *w->sums);
    w->embedded = floats(arena, number, embedded);
    w->memory = floats(arena, number, stride);
    w->at = floats(arena, number, stride);
    w->before = floats(arena, number, stride);
    w->behind = floats(arena, number, stride);
    w->skipped_sums = floats(arena, number + 1, stride);
    w->embedded_sums = floats(arena, number + 1, embedded);
    w->lede_key_value = floats(arena, number, up(2 * w->v->shape.size, GROUP));
}

static void lay_out_rows(VerifierWork *w, Arena *arena) {
    Size rows = w->rows, stride = w->stride, size = w->v->shape.size;
    w->spans = take(arena, w->num_headlines, 1, sizeof *w->spans);
    w->places = take(arena, rows, 1, sizeof *w->places);
    w->words = take(arena, rows, 1, sizeof *w->words);
    w->own_keys = take(arena, rows, 1, sizeof *w->own_keys);
    w->states = floats(arena, rows, stride);
    w->more = floats(arena, larger(rows, w->num_source), stride);
    w->normed = floats(arena, rows, stride);
    w->own_embedded = floats(arena, rows, w->embedded_width);
    w->scalars = floats(arena, rows, NUM_SCALARS);
    w->query_key_value = floats(arena, rows, up(3 * size, GROUP));
    w->hidden = floats(arena, AT_ONCE, up(4 * size, GROUP));
    w->pooled_inputs = floats(arena, w->num_headlines, 3 * size);
    w->pooled = floats(arena, w->num_headlines, stride);
    w->outputs = floats(arena, larger(rows, w->num_headlines), GROUP);
}

static void lay_out_head(VerifierWork *w, Arena *arena) {
    Size rows = w->rows, longest = w->longest, head = w->head, head_width = w->head_width;
    Size keys = up(w->length, GROUP), own = up(longest, GROUP);
    w->queries = floats(arena, rows, head);
    w->packed_keys = floats(arena, keys, head);
    w->packed_values = floats(arena, w->length, head_width);
    w->own_packed_keys = floats(arena, own, head);
    w->own_packed_values = floats(arena, longest, head_width);
    w->scores = floats(arena, rows, keys);
    w->own_scores = floats(arena, longest, own);
    w->weights = floats(arena, rows, w->length);
    w->own_weights = floats(arena, longest, longest);
    w->both = floats(arena, w->length + longest, 1);
    w->mixed = floats(arena, rows, head_width);
    w->own_mixed = floats(arena, longest, head_width);
}

static size_t lay_out(VerifierWork *w, void *start) {
    Arena arena = {start, 0};
    lay_out_lede(w, &arena);
    lay_out_rows(w, &arena);
    lay_out_head(w, &arena);
    return arena.used;
}

static void measure(VerifierWork *w) {
    const VerifierShape *shape = &w->v->shape;
    w->stride = up(shape->size, GROUP), w->embedded_width = w->v->embedding.cols;
    w->head = shape->size / shape->heads, w->head_width = up(w->head, GROUP);
    for (Size i = 0; i < w->num_source; i++) w->length += w->source[i] != PAD;
    for (Size n = 0; n < w->num_headlines; n++) {
        Size length = span_length(w->headlines + n * w->width, w->width);
        w->rows += length, w->longest = larger(w->longest, length);
    }
}

int make_work(VerifierWork *w) {
    measure(w);
    w->room = malloc(lay_out(w, NULL) + ALIGNMENT);
    if (!w->room) return 0;
    lay_out(w, (char *)w->room + (ALIGNMENT - (uintptr_t)w->room % ALIGNMENT));
    return 1;
}

void drop_work(VerifierWork *w) { free(w->room), work_release(&w->products); }

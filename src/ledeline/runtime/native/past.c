#include "past.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 16 /* slots that are allocated together; they never move */

void past_init(Past *past, Size slot_size) {
    memset(past, 0, sizeof *past);
    past->slot_size = slot_size, past->free = NO_SLOT;
}

void past_release(Past *past) {
    for (Size n = 0; n < past->number; n += CHUNK) free(past->chunks[n / CHUNK]);
    free(past->before), free(past->places), free(past->holds), free(past->chunks);
    past_init(past, past->slot_size);
}

static int grow_list(int32_t **list, Size number) {
    int32_t *more = realloc(*list, (size_t)number * sizeof *more);
    if (more) *list = more;
    return more != NULL;
}

static int make_room(Past *past) {
    Size capacity = past->capacity ? 2 * past->capacity : 4 * CHUNK;
    if (capacity > INT32_MAX / 2) return 0;
    float **chunks = realloc(past->chunks, (size_t)(capacity / CHUNK) * sizeof *chunks);
    if (chunks) past->chunks = chunks;
    if (!chunks || !grow_list(&past->before, capacity) || !grow_list(&past->places, capacity) ||
        !grow_list(&past->holds, capacity))
        return 0;
    past->capacity = capacity;
    return 1;
}

/* A slot that is free, or a new one; NO_SLOT if there was no memory. */
static int32_t find_slot(Past *past) {
    Size slot = past->free;
    if (slot != NO_SLOT) return past->free = past->before[slot], (int32_t)slot;
    slot = past->number;
    if (slot == past->capacity && !make_room(past)) return NO_SLOT;
    if (slot % CHUNK == 0) {
        float *chunk = malloc((size_t)past->slot_size * CHUNK * sizeof *chunk);
        if (!chunk) return NO_SLOT;
        past->chunks[slot / CHUNK] = chunk;
    }
    past->number++;
    return (int32_t)slot;
}

int32_t past_add(Past *past, int32_t before) {
    int32_t slot = find_slot(past);
    if (slot == NO_SLOT) return NO_SLOT;
    past->before[slot] = before, past->holds[slot] = 0;
    past->places[slot] = before == NO_SLOT ? 0 : past->places[before] + 1;
    return slot;
}

void past_hold(Past *past, int32_t slot) {
    if (slot != NO_SLOT) past->holds[slot]++;
}

void past_let_go(Past *past, int32_t slot) {
    while (slot != NO_SLOT && !past->holds[slot]) {
        int32_t before = past->before[slot];
        past->before[slot] = past->free, past->free = slot;
        if (before != NO_SLOT) past->holds[before]--;
        slot = before;
    }
}

float *past_slot(const Past *past, int32_t slot) {
    return past->chunks[slot / CHUNK] + slot % CHUNK * past->slot_size;
}

/* Random beams in a past: after each step as many slots are in use as the live hypotheses reach, and each
   hypothesis still has the words that it wrote. `beams SEED BEAM STEPS` prints slots made and the most that
   were reached. */

#include "past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static int32_t below(int32_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)(state >> 33) % limit;
}

static _Noreturn void complain(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Words are told apart by a number in their slots, which says what was written before, too. */
static float name_of(const Past *past, int32_t before, int32_t row) {
    float old = before == NO_SLOT ? 0.0f : *past_slot(past, before);
    uint32_t mixed = (uint32_t)old * 2654435761u + (uint32_t)row * 40503u + 7u;
    return (float)(mixed >> 8);
}

static Size count_free(const Past *past) {
    Size number = 0;
    for (int32_t slot = past->free; slot != NO_SLOT; slot = past->before[slot]) number++;
    return number;
}

/* How many slots some rows reach; each has the names that its rows wrote. */
static Size reached(const Past *past, const int32_t *rows, float *const *names, int32_t number, int32_t steps) {
    char *seen = calloc((size_t)past->number + 1, 1);
    Size found = 0;
    if (!seen) complain("there was no memory");
    for (int32_t n = 0; n < number; n++) {
        int32_t slot = rows[n];
        for (int32_t j = steps; j-- > 0; slot = past->before[slot]) {
            if (slot == NO_SLOT || past->places[slot] != j) complain("a place is wrong");
            if (*past_slot(past, slot) != names[n][j]) complain("a word was lost");
            found += !seen[slot], seen[slot] = 1;
        }
        if (slot != NO_SLOT) complain("a past is too long");
    }
    free(seen);
    return found;
}

typedef struct {
    int32_t *slots, number;
    float **names; /* what each row wrote */
} Rows;

static Rows new_rows(int32_t beam, int32_t steps) {
    Rows rows = {malloc((size_t)beam * sizeof *rows.slots), 0, malloc((size_t)beam * sizeof *rows.names)};
    for (int32_t n = 0; rows.slots && rows.names && n < beam; n++)
        if (!(rows.names[n] = malloc((size_t)steps * sizeof **rows.names))) complain("there was no memory");
    return rows.slots && rows.names ? rows : (complain("there was no memory"), rows);
}

static void release_rows(Rows *rows, int32_t beam) {
    for (int32_t n = 0; n < beam; n++) free(rows->names[n]);
    free(rows->slots), free(rows->names);
}

/* The next rows, by parents of which the first are likelier, as in a search. */
static void step(Past *past, const Rows *rows, Rows *next, int32_t beam, int32_t j) {
    int32_t *parents = malloc((size_t)beam * sizeof *parents);
    if (!parents) complain("there was no memory");
    next->number = below(4) ? beam : 1 + below(beam);
    for (int32_t n = 0; n < next->number; n++) {
        parents[n] = below(1 + below(rows->number));
        past_hold(past, rows->slots[parents[n]]);
    }
    for (int32_t n = 0; j && n < rows->number; n++) past_let_go(past, rows->slots[n]);
    for (int32_t n = 0; n < next->number; n++) {
        int32_t before = rows->slots[parents[n]], slot = past_add(past, before);
        if (slot == NO_SLOT) complain("there was no memory");
        memcpy(next->names[n], rows->names[parents[n]], (size_t)j * sizeof(float));
        *past_slot(past, slot) = next->names[n][j] = name_of(past, before, n);
        next->slots[n] = slot;
    }
    free(parents);
}

int main(int number, char **arguments) {
    if (number != 4) return 2;
    state = strtoull(arguments[1], NULL, 10);
    int32_t beam = (int32_t)atol(arguments[2]), steps = (int32_t)atol(arguments[3]);
    Rows rows = new_rows(beam, steps), next = new_rows(beam, steps);
    Size most = 0;
    Past past;
    past_init(&past, 3);
    rows.number = 1, rows.slots[0] = NO_SLOT;
    for (int32_t j = 0; j < steps; j++) {
        step(&past, &rows, &next, beam, j);
        Rows swapped = rows;
        rows = next, next = swapped;
        Size live = reached(&past, rows.slots, rows.names, rows.number, j + 1);
        if (live + count_free(&past) != past.number) complain("slots that are dead are not free");
        if (live > most) most = live;
    }
    printf("%ld %ld\n", (long)past.number, (long)most);
    past_release(&past), release_rows(&rows, beam), release_rows(&next, beam);
    return 0;
}

/* A search, and everything that may follow it, as the driver and the fuzzer run it. */

#ifndef LEDELINE_RUN_H
#define LEDELINE_RUN_H

#include "search.h"
#include "verifier.h"

#include <stdio.h>

/* A headline that was found, and checksums of what was seen. */
typedef struct {
    Size source, rank, length;
    int truncated;
    double cost;
    int32_t *ids;
    float labels[NUM_LABELS];
    uint32_t seen, attention, predictions, verdict;
} FoundHeadline;

typedef struct {
    FoundHeadline *all;
    Size number;
} Found;

typedef struct {
    SearchOptions options;
    Size give_up; /* every so many sources is given up after two steps; 0: none */
    int forbid;   /* words 5, 6 and 7 are forbidden */
} Task;

/* Search some sources, follow what was found and judge it (v may be NULL). `first` is the number of the
   first source. Returns 0 if there was no memory. */
int run_batch(const Model *model, const Verifier *v, int32_t *const *sources, const Size *lengths, Size first,
              Size number, const Task *task, Found *found);
void found_release(Found *found);
void found_print(const Found *found, FILE *file);

/* CRC-32, as zlib has it. */
uint32_t checksum(uint32_t before, const void *bytes, size_t size);

#endif

/* Known headlines, written again step by step, and what was seen: for explanations and checks. */

#ifndef LEDELINE_FOLLOW_H
#define LEDELINE_FOLLOW_H

#include "model.h"

/* A headline of J + 1 steps, the last of which writes <eos>, and what its steps saw. */
typedef struct {
    Size source, length; /* length: J */
    int32_t *ids;        /* (J) */
    float *logs;         /* (J + 1): log p of what is written */
    float *states;       /* (J + 1, H): z */
    float *attention;    /* (J + 1, I), or NULL */
    float *predictions;  /* (J + 1, I): the SPM's probability of the word at each position, or NULL */
} Followed;

typedef struct {
    const Model *model;
    Size num_sources, number, steps, longest;
    int explain, running;
    int32_t **sources;
    Size *lengths;
    Memory *seen; /* of each source */
    float *before;
    Followed *headlines;
    Work work;
} Follow;

/* Takes over `sources` and the ids of `headlines`, which it releases. */
int follow_init(Follow *follow, const Model *model, int32_t **sources, Size *lengths, Size num_sources,
                Followed *headlines, Size number, int explain);
int follow_step(Follow *follow);
void follow_release(Follow *follow);

#endif

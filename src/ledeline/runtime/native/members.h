/* The models of a search: one, or several whose mean probabilities are searched. Each has memories and
   states of its own; the words are the same for all. */

#ifndef LEDELINE_MEMBERS_H
#define LEDELINE_MEMBERS_H

#include "model.h"

typedef struct {
    const Model *model;
    Size number, rows;     /* of sources; of the last step */
    Memory *memories;      /* (N) */
    const Memory **seen;   /* of the rows of a step */
    const float **states;  /* of the same rows, before it */
    float *before, *after; /* states of the rows of the step before, and of this one */
    Work work;
} Member;

/* Encode the sources; a step has at most `most_rows` rows. Returns 0 if there was no memory. */
int member_init(Member *member, const Model *model, const int32_t *ids, const Size *lengths, Size number,
                Size most_rows);
void member_release(Member *member);

/* One step for some rows: their last words, the number of each one's source, and its parent, which is a row
   of the step before; parents are NULL in the first step. */
int member_step(Member *member, const int32_t *words, const Size *sources, const Size *parents, Size rows);

/* A source has no more rows. */
void member_drop(Member *member, Size source);

/* Log-probabilities of the next words up to norms (rows), for rows from `first` on: log p = value - norm.
   They go to logs (members, rows at most, stride), and in the end to its first rows. */
int score_rows(Member *members, Size num_members, Size first, Size rows, Size most_rows, float *logs,
               float *norms);

#endif

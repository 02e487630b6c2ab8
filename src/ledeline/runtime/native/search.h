/* The shrinking beam for a batch of sources, step by step (docs/search.md). Each source has a beam of its
   own; only products are shared. Candidates are ranked by (log-probability, slot, word id).

   Legend: K slots of a beam, V vocabulary, J words written so far. */

#ifndef LEDELINE_SEARCH_H
#define LEDELINE_SEARCH_H

#include "members.h"

typedef struct {
    Size beam, n_best, min_length, max_length; /* max_length < 0: no limit */
    Size block_ngrams, recombine;              /* 0: off */
    int keep_finished, forbid_unknown, stop_early;
    int keep_states;
    Size max_states; /* steps whose states are kept; < 0: all */
} SearchOptions;

/* A word that a step selected. */
typedef struct {
    int32_t parent; /* the node before, or -1 */
    int32_t word;
    int32_t slot;   /* the slot that was extended */
    int32_t step;
    float total;    /* log p so far */
} Node;

typedef struct {
    int32_t node;
    double score; /* mean log p */
} Finished;

typedef struct {
    Size length, limit, size, num_live, num_finished, num_nodes, max_nodes, num_forbidden;
    int running;
    int32_t cut_off; /* the node of the best unfinished hypothesis at the limit, or -1 */
    Node *nodes;
    int32_t *slots;     /* (K): nodes of live hypotheses */
    Finished *finished; /* in the order in which they finished */
    int32_t *forbidden;
} Beam;

/* The total of a live hypothesis. */
static inline float total_of(const Beam *beam, Size slot) {
    return beam->slots[slot] < 0 ? 0.0f : beam->nodes[beam->slots[slot]].total;
}

/* z of all rows of a step, and which rows each source has: so many from the first on. */
typedef struct {
    Size first, number;
} SeenRows;

typedef struct {
    float *states;
    SeenRows *rows;
} SeenStep;

typedef struct {
    const Model *model; /* the first */
    Member *members;
    SearchOptions options;
    Size num_members, number, steps, rows, num_seen;
    int running;
    Beam *beams;
    int32_t *words;  /* of the rows */
    Size *sources;   /* of the rows */
    Size *parents;   /* of the next rows: a row now */
    float *logits;   /* (members, most_scored, stride), in the end only the first member's */
    float *norms;    /* (members, most_scored) */
    Size most_scored, first_scored, num_scored; /* rows that are scored together */
    float *beam_logits, *beam_norms;            /* of the source that is extended */
    int32_t *places; /* (V + K) */
    Node *selected;  /* (K) */
    SeenStep *seen;
    Buffer written; /* words of a hypothesis */
} Search;

/* Sources: ids one after another. forbidden may be NULL, or has `num_forbidden[n]` ids for each source.
   Several models must have the same vocabulary. Returns 0 if there was no memory. */
int search_init(Search *search, const Model *const *models, Size num_models, const int32_t *ids,
                const Size *lengths, Size number, SearchOptions options, int32_t *const *forbidden, const Size *num_forbidden);
int search_step(Search *search);
void search_give_up(Search *search, Size source);
void search_release(Search *search);

/* The n-best list of a source: nodes, at most n_best, the best first. A headline that was cut off is -1 -
   its node. Returns how many there are. */
Size search_best(const Search *search, Size source, int32_t *nodes);

#endif

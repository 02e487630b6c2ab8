#include "search.h"

#include "search_rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCORED_AT_ONCE 48 /* rows whose logits are computed together, at least */
#define STEPS_PER_SOURCE_TOKEN 2

/* --- making a search ---------------------------------------------------------------------------- */

static Size limit_of(Size length, const SearchOptions *options) {
    Size limit = STEPS_PER_SOURCE_TOKEN * length;
    if (limit < options->min_length + 1) limit = options->min_length + 1;
    if (options->max_length >= 0 && limit - 1 > options->max_length) limit = options->max_length + 1;
    return limit;
}

static int make_beam(Search *search, Beam *beam, Size length, const int32_t *forbidden,
                     Size num_forbidden) {
    size_t k = (size_t)search->options.beam;
    beam->length = length, beam->limit = limit_of(length, &search->options);
    beam->size = search->options.beam, beam->num_live = 1, beam->running = 1, beam->cut_off = -1;
    beam->slots = malloc(k * sizeof *beam->slots);
    beam->forbidden = malloc(((size_t)num_forbidden + 1) * sizeof *beam->forbidden);
    if (!beam->slots || !beam->forbidden) return 0;
    beam->slots[0] = -1; /* nothing is written yet */
    beam->num_forbidden = num_forbidden;
    if (num_forbidden) memcpy(beam->forbidden, forbidden, (size_t)num_forbidden * sizeof *forbidden);
    return 1;
}

static int make_buffers(Search *search) {
    const Model *model = search->model;
    size_t k = (size_t)search->options.beam, rows = k * (size_t)search->number;
    search->most_scored = search->options.beam > SCORED_AT_ONCE ? search->options.beam : SCORED_AT_ONCE;
    size_t scored = (size_t)search->most_scored * (size_t)search->num_members;
    search->members = calloc((size_t)search->num_members, sizeof *search->members);
    search->words = malloc(rows * sizeof *search->words);
    search->sources = malloc(rows * sizeof *search->sources);
    search->parents = malloc(rows * sizeof *search->parents);
    search->logits = malloc(scored * (size_t)model->output.stride * sizeof(float));
    search->norms = malloc(scored * sizeof(float));
    search->places = malloc(((size_t)model->sizes.vocabulary + k) * sizeof *search->places);
    search->selected = malloc((k + 1) * sizeof *search->selected);
    search->beams = calloc((size_t)search->number, sizeof *search->beams);
    return search->members && search->words && search->sources && search->parents && search->logits &&
           search->norms && search->places && search->selected && search->beams;
}

static void start_rows(Search *search) {
    search->rows = search->number;
    for (Size n = 0; n < search->number; n++) search->words[n] = BOS, search->sources[n] = n;
}

int search_init(Search *search, const Model *const *models, Size num_models, const int32_t *ids,
                const Size *lengths, Size number, SearchOptions options, int32_t *const *forbidden,
                const Size *num_forbidden) {
    memset(search, 0, sizeof *search);
    search->model = models[0], search->num_members = num_models;
    search->options = options, search->number = number, search->running = 1;
    int good = make_buffers(search);
    for (Size n = 0; good && n < number; n++)
        good = make_beam(search, &search->beams[n], lengths[n], forbidden ? forbidden[n] : NULL,
                         forbidden ? num_forbidden[n] : 0);
    for (Size m = 0; good && m < num_models; m++)
        good = member_init(&search->members[m], models[m], ids, lengths, number, number * options.beam);
    if (good) start_rows(search);
    else search_release(search);
    return good;
}

static void release_beam(Beam *beam) {
    free(beam->nodes), free(beam->slots), free(beam->finished), free(beam->forbidden);
}

void search_release(Search *search) {
    for (Size n = 0; search->beams && n < search->number; n++) release_beam(&search->beams[n]);
    for (Size n = 0; n < search->num_seen; n++) free(search->seen[n].states), free(search->seen[n].rows);
    for (Size m = 0; search->members && m < search->num_members; m++) member_release(&search->members[m]);
    free(search->members), free(search->beams), free(search->words), free(search->written.at);
    free(search->sources), free(search->parents), free(search->logits), free(search->norms);
    free(search->places), free(search->selected), free(search->seen);
    memset(search, 0, sizeof *search);
}

/* --- a step ------------------------------------------------------------------------------------- */

/* Put a candidate into its place among the best. */
static Size insert(Node *best, Size found, Size most, Node candidate) {
    Size at = found < most ? found++ : most - 1;
    for (; at > 0 && best[at - 1].total < candidate.total; at--) best[at] = best[at - 1];
    best[at] = candidate;
    return found;
}

/* The best extensions of a beam's hypotheses into search->selected; returns how many. */
static Size select_best(Search *search, const Beam *beam) {
    const Model *model = search->model;
    Size found = 0, most = beam->size;
    float least = -INFINITY;
    for (Size slot = 0; slot < beam->num_live; slot++) {
        const float *row = search->beam_logits + slot * model->output.stride;
        float norm = search->beam_norms[slot], total = total_of(beam, slot);
        Size number = model->kernels->above(row, model->sizes.vocabulary, norm, total, least, search->places);
        for (Size i = 0; i < number; i++) {
            int32_t word = search->places[i];
            float value = (row[word] - norm) + total;
            if (!(value > least)) continue;
            Node node = {beam->slots[slot], word, (int32_t)slot, (int32_t)search->steps, value};
            found = insert(search->selected, found, most, node);
            if (found == most) least = search->selected[most - 1].total;
        }
    }
    return found;
}

/* Logits of the rows of a source, the first of which is `first`, and of as many sources behind it as there
   is room for: weights are read once for all of them. */
static int score_some(Search *search, Size source, Size first) {
    Size rows = 0;
    for (Size n = source; n < search->number; n++) {
        Size live = search->beams[n].running ? search->beams[n].num_live : 0;
        if (rows + live > search->most_scored) break;
        rows += live;
    }
    search->first_scored = first, search->num_scored = rows;
    return score_rows(search->members, search->num_members, first, rows, search->most_scored, search->logits,
                      search->norms);
}

/* Logits and what may not be written, for the rows of a source. */
static int score(Search *search, Size source, Size first) {
    const Beam *beam = &search->beams[source];
    Size stride = search->model->output.stride;
    if (first >= search->first_scored + search->num_scored && !score_some(search, source, first)) return 0;
    search->beam_logits = search->logits + (first - search->first_scored) * stride;
    search->beam_norms = search->norms + (first - search->first_scored);
    return rule_out(search, beam);
}

static int add_nodes(Beam *beam, const Node *nodes, Size number) {
    if (!number) return 1; /* no candidate was a number */
    if (beam->num_nodes + number > beam->max_nodes) {
        Size most = 2 * beam->max_nodes + number;
        Node *more = realloc(beam->nodes, (size_t)most * sizeof *more);
        if (!more) return 0;
        beam->nodes = more, beam->max_nodes = most;
    }
    memcpy(beam->nodes + beam->num_nodes, nodes, (size_t)number * sizeof *nodes);
    beam->num_nodes += number;
    return 1;
}

static int add_finished(Beam *beam, int32_t node, double score) {
    Finished *more = realloc(beam->finished, ((size_t)beam->num_finished + 1) * sizeof *more);
    if (!more) return 0;
    beam->finished = more;
    beam->finished[beam->num_finished++] = (Finished){node, score};
    return 1;
}

/* Finished headlines keep their places: the K best of them and of the new nodes stay, by mean
   log-probability. Of equals, those that finished before go first. Marks the others' totals. */
static void compete(const Search *search, Beam *beam, Node *nodes, Size number) {
    Size kept = 0, places = search->options.beam, n = beam->num_finished;
    for (Size i = 0; i < n; i++) {
        Size better = 0;
        for (Size j = 0; j < n; j++)
            better += beam->finished[j].score > beam->finished[i].score ||
                      (j < i && beam->finished[j].score == beam->finished[i].score);
        for (Size j = 0; j < number; j++)
            better += (double)nodes[j].total / (double)(search->steps + 1) > beam->finished[i].score;
        if (better < places) search->places[kept++] = (int32_t)i;
    }
    Size stay = 0;
    for (Size j = 0; j < number; j++) { /* nodes are ranked: those after one that goes go, too */
        double own = (double)nodes[j].total / (double)(search->steps + 1);
        Size better = j;
        for (Size i = 0; i < n; i++) better += beam->finished[i].score >= own;
        if (better < places) stay = j + 1;
    }
    for (Size j = stay; j < number; j++) nodes[j].total = -INFINITY;
    for (Size i = 0; i < kept; i++) beam->finished[i] = beam->finished[search->places[i]];
    beam->num_finished = kept;
}

/* Whether no unfinished hypothesis can get into the n-best list any more. Its cost cannot fall, and its
   length is at most the limit. */
static int is_settled(const Search *search, const Beam *beam) {
    Size n_best = search->options.n_best, better = 0;
    if (beam->num_finished < n_best || !beam->num_live) return 0;
    double highest = -INFINITY;
    for (Size slot = 0; slot < beam->num_live; slot++)
        highest = total_of(beam, slot) > highest ? total_of(beam, slot) : highest;
    double bound = highest / (double)beam->limit;
    for (Size i = 0; i < beam->num_finished; i++) better += beam->finished[i].score >= bound;
    return better >= n_best;
}

/* Take over what was selected: finished headlines leave, the others are the next slots. `first` is the
   beam's first row now, `row` its first row at the next step; returns the number of rows after it, or
   -1 if there was no memory. */
static Size take_over(Search *search, Beam *beam, Size number, Size first, Size row) {
    Node *selected = search->selected;
    int32_t base = (int32_t)beam->num_nodes;
    Size done = search->steps + 1;
    if (!add_nodes(beam, selected, number)) return -1;
    if (search->options.keep_finished) compete(search, beam, selected, number);
    beam->num_live = 0;
    for (Size i = 0; i < number; i++) {
        if (selected[i].total == -INFINITY) continue;
        if (selected[i].word == EOS) {
            if (!add_finished(beam, base + (int32_t)i, (double)selected[i].total / (double)done)) return -1;
            if (!search->options.keep_finished) beam->size--;
            continue;
        }
        if (done >= beam->limit) {
            if (beam->cut_off < 0) beam->cut_off = base + (int32_t)i;
            continue;
        }
        search->parents[row + beam->num_live] = first + selected[i].slot;
        beam->slots[beam->num_live++] = base + (int32_t)i;
    }
    if (search->options.stop_early && is_settled(search, beam)) beam->num_live = 0;
    beam->running = beam->num_live > 0;
    return row + beam->num_live;
}

/* Keep z of all rows, for a verifier. */
static int see(Search *search) {
    const SearchOptions *options = &search->options;
    if (!options->keep_states || (options->max_states >= 0 && search->num_seen >= options->max_states)) return 1;
    SeenStep *more = realloc(search->seen, ((size_t)search->num_seen + 1) * sizeof *more);
    if (!more) return 0;
    search->seen = more;
    Size h = search->model->size, size = state_size(search->model), row = 0;
    SeenStep *seen = &search->seen[search->num_seen];
    seen->states = malloc((size_t)search->rows * (size_t)h * sizeof(float));
    seen->rows = malloc((size_t)search->number * sizeof *seen->rows);
    if (!seen->states || !seen->rows) return free(seen->states), free(seen->rows), 0;
    search->num_seen++;
    for (Size n = 0; n < search->number; n++) {
        seen->rows[n] = (SeenRows){row, search->beams[n].running ? search->beams[n].num_live : 0};
        row += seen->rows[n].number;
    }
    for (Size n = 0; n < search->rows; n++)
        memcpy(seen->states + n * h, search->members->after + n * size, (size_t)h * sizeof(float));
    return 1;
}

static int advance_rows(Search *search) {
    for (Size m = 0; m < search->num_members; m++)
        if (!member_step(&search->members[m], search->words, search->sources,
                         search->steps ? search->parents : NULL, search->rows))
            return 0;
    return 1;
}

/* The rows of the next step. */
static void next_rows(Search *search) {
    search->rows = 0;
    for (Size n = 0; n < search->number; n++) {
        const Beam *beam = &search->beams[n];
        for (Size slot = 0; beam->running && slot < beam->num_live; slot++) {
            search->words[search->rows] = beam->nodes[beam->slots[slot]].word;
            search->sources[search->rows++] = n;
        }
    }
}

int search_step(Search *search) {
    if (!advance_rows(search) || !see(search)) return 0;
    search->num_scored = search->first_scored = 0;
    Size first = 0, row = 0;
    for (Size n = 0; n < search->number; n++) {
        Beam *beam = &search->beams[n];
        if (!beam->running) continue;
        Size live = beam->num_live;
        if (!score(search, n, first)) return 0;
        row = take_over(search, beam, select_best(search, beam), first, row);
        if (row < 0) return 0;
        first += live;
    }
    search->steps++;
    search->running = row > 0;
    next_rows(search);
    return 1;
}

void search_give_up(Search *search, Size source) {
    Beam *given_up = &search->beams[source];
    if (!given_up->running) return;
    Size first = 0, live = given_up->num_live;
    for (Size n = 0; n < source; n++) first += search->beams[n].running ? search->beams[n].num_live : 0;
    Size rest = search->rows - first - live;
    for (Size m = 0; m < search->num_members; m++) member_drop(&search->members[m], source);
    memmove(search->words + first, search->words + first + live, (size_t)rest * sizeof *search->words);
    memmove(search->sources + first, search->sources + first + live, (size_t)rest * sizeof *search->sources);
    memmove(search->parents + first, search->parents + first + live, (size_t)rest * sizeof *search->parents);
    search->rows -= live;
    given_up->running = 0, given_up->num_live = 0;
    search->running = search->rows > 0;
}

/* --- what was found ----------------------------------------------------------------------------- */

Size search_best(const Search *search, Size source, int32_t *nodes) {
    const Beam *beam = &search->beams[source];
    Size found = 0, most = search->options.n_best;
    for (Size i = 0; i < beam->num_finished; i++) {
        Size at = found < most ? found++ : most;
        /* places of equal scores stay as they finished */
        while (at > 0 && beam->finished[nodes[at - 1]].score < beam->finished[i].score) {
            if (at < most) nodes[at] = nodes[at - 1];
            at--;
        }
        if (at < most) nodes[at] = (int32_t)i;
    }
    for (Size i = 0; i < found; i++) nodes[i] = beam->finished[nodes[i]].node;
    if (!found && beam->cut_off >= 0) nodes[found++] = -1 - beam->cut_off;
    return found;
}

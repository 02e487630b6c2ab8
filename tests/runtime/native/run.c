#include "run.h"

#include "follow.h"

#include <stdlib.h>
#include <string.h>

uint32_t checksum(uint32_t before, const void *bytes, size_t size) {
    static const uint32_t QUARTERS[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t sum = ~before;
    for (size_t i = 0; i < size; i++) {
        sum ^= ((const unsigned char *)bytes)[i];
        sum = sum >> 4 ^ QUARTERS[sum & 15];
        sum = sum >> 4 ^ QUARTERS[sum & 15];
    }
    return ~sum;
}

static uint32_t of_floats(uint32_t before, const float *values, Size number) {
    return checksum(before, values, (size_t)number * sizeof *values);
}

/* --- the search --------------------------------------------------------------------------------- */

static int keep_headline(Found *found, const Beam *beam, Size source, Size rank, int32_t node) {
    FoundHeadline *more = realloc(found->all, ((size_t)found->number + 1) * sizeof *more);
    if (!more) return 0;
    found->all = more;
    FoundHeadline *one = &more[found->number];
    memset(one, 0, sizeof *one);
    one->source = source, one->rank = rank, one->truncated = node < 0;
    int32_t last = node < 0 ? -1 - node : node;
    one->length = beam->nodes[last].step + one->truncated;
    one->cost = -(double)beam->nodes[last].total;
    one->ids = malloc(((size_t)one->length + 1) * sizeof *one->ids);
    if (!one->ids) return 0;
    found->number++;
    for (int32_t at = last; at >= 0; at = beam->nodes[at].parent)
        if (beam->nodes[at].step < one->length) one->ids[beam->nodes[at].step] = beam->nodes[at].word;
    return 1;
}

static int keep_all(Found *found, const Search *search, Size first) {
    int32_t *nodes = malloc((size_t)search->options.n_best * sizeof *nodes);
    int good = nodes != NULL;
    for (Size n = 0; good && n < search->number; n++) {
        Size number = search_best(search, n, nodes);
        for (Size i = 0; good && i < number; i++)
            good = keep_headline(found, &search->beams[n], first + n, i, nodes[i]);
    }
    free(nodes);
    return good;
}

/* Sources one after another. */
static int32_t *joined(int32_t *const *sources, const Size *lengths, Size number) {
    Size total = 0, at = 0;
    for (Size n = 0; n < number; n++) total += lengths[n];
    int32_t *ids = malloc(((size_t)total + 1) * sizeof *ids);
    for (Size n = 0; ids && n < number; at += lengths[n++])
        memcpy(ids + at, sources[n], (size_t)lengths[n] * sizeof *ids);
    return ids;
}

static int carry_on(Search *search, Size give_up) {
    int good = 1;
    while (good && search->running) {
        good = search_step(search);
        if (!give_up || search->steps != 2) continue;
        for (Size n = 0; good && n < search->number; n += give_up) search_give_up(search, n);
    }
    return good;
}

static int search_all(const Model *model, int32_t *const *sources, const Size *lengths, Size first, Size number,
                      const Task *task, Found *found) {
    static int32_t never[] = {5, 6, 7};
    Search search;
    int32_t *ids = joined(sources, lengths, number), **forbidden = malloc((size_t)number * sizeof *forbidden);
    Size *num_forbidden = malloc((size_t)number * sizeof *num_forbidden);
    for (Size n = 0; forbidden && num_forbidden && n < number; n++)
        forbidden[n] = never, num_forbidden[n] = model->sizes.vocabulary > 7 ? 3 : 0;
    int good = ids && forbidden && num_forbidden &&
               search_init(&search, &model, 1, ids, lengths, number, task->options, task->forbid ? forbidden : NULL,
                           num_forbidden);
    if (good) {
        good = carry_on(&search, task->give_up) && keep_all(found, &search, first);
        search_release(&search);
    }
    free(ids), free(forbidden), free(num_forbidden);
    return good;
}

/* --- what follows ------------------------------------------------------------------------------- */

static int32_t *copy_of(const int32_t *ids, Size number) {
    int32_t *copy = malloc(((size_t)number + 1) * sizeof *copy);
    if (copy) memcpy(copy, ids, (size_t)number * sizeof *ids);
    return copy;
}

/* What attention mixes for a source, (I, H), with nothing between rows. */
static float *values_of(const Follow *follow, Size source) {
    const Memory *memory = &follow->seen[source];
    Size h = follow->model->size, stride = memory->stride;
    float *values = malloc(((size_t)(memory->length * h) + 1) * sizeof *values);
    for (Size i = 0; values && i < memory->length; i++)
        memcpy(values + i * h, memory->values + i * stride, (size_t)h * sizeof *values);
    return values;
}

static int judge_one(const Verifier *v, const Follow *follow, const Followed *headline, const float *values,
                     FoundHeadline *one) {
    float *doubts = malloc(((size_t)one->length + 1) * sizeof *doubts), kinds[NUM_ERROR_KINDS];
    int good = doubts && verifier_judge(v, follow->sources[headline->source], follow->lengths[headline->source], values,
                                        1, one->length, one->ids, headline->states, headline->logs, one->labels,
                                        doubts, kinds);
    if (good) one->verdict = of_floats(of_floats(0, doubts, one->length), kinds, NUM_ERROR_KINDS);
    free(doubts);
    return good;
}

static int look_at(const Verifier *v, const Follow *follow, Size number, FoundHeadline *one) {
    const Followed *headline = &follow->headlines[number];
    Size steps = one->length + 1, width = follow->lengths[headline->source], h = follow->model->size;
    float *values = values_of(follow, headline->source);
    if (!values) return 0;
    one->seen = of_floats(of_floats(of_floats(0, values, width * h), headline->logs, steps), headline->states, steps * h);
    if (headline->attention) one->attention = of_floats(0, headline->attention, steps * width);
    if (headline->predictions) one->predictions = of_floats(0, headline->predictions, steps * width);
    int good = !v || judge_one(v, follow, headline, values, one);
    free(values);
    return good;
}

static int follow_all(const Model *model, const Verifier *v, int32_t *const *sources, const Size *lengths, Size first,
                      Size number, FoundHeadline *found, Size num_found) {
    Follow follow;
    int32_t **copies = calloc((size_t)number + 1, sizeof *copies);
    Size *copied = malloc(((size_t)number + 1) * sizeof *copied);
    Followed *headlines = calloc((size_t)num_found + 1, sizeof *headlines);
    if (!copies || !copied || !headlines) return free(copies), free(copied), free(headlines), 0;
    int good = 1;
    for (Size n = 0; n < number; n++) {
        copies[n] = copy_of(sources[n], copied[n] = lengths[n]);
        good = good && copies[n];
    }
    for (Size i = 0; i < num_found; i++) {
        headlines[i] = (Followed){.source = found[i].source - first, .length = found[i].length,
                                  .ids = copy_of(found[i].ids, found[i].length)};
        good = good && headlines[i].ids;
    }
    if (!good) num_found = 0; /* only released */
    good = follow_init(&follow, model, copies, copied, number, headlines, num_found, 1) && good;
    while (good && follow.running) good = follow_step(&follow);
    for (Size i = 0; good && i < num_found; i++) good = look_at(v, &follow, i, &found[i]);
    follow_release(&follow);
    return good;
}

int run_batch(const Model *model, const Verifier *v, int32_t *const *sources, const Size *lengths, Size first,
              Size number, const Task *task, Found *found) {
    Size before = found->number;
    return search_all(model, sources, lengths, first, number, task, found) &&
           (found->number == before || follow_all(model, v, sources, lengths, first, number, found->all + before, found->number - before));
}

void found_release(Found *found) {
    for (Size i = 0; i < found->number; i++) free(found->all[i].ids);
    free(found->all);
    memset(found, 0, sizeof *found);
}

static unsigned bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (unsigned)bits;
}

/* A line for each headline: source, rank, whether it was cut off, cost, labels, checksums, ids. */
void found_print(const Found *found, FILE *file) {
    for (Size i = 0; i < found->number; i++) {
        const FoundHeadline *one = &found->all[i];
        fprintf(file, "%ld %ld %d %a", (long)one->source, (long)one->rank, one->truncated, one->cost);
        for (int k = 0; k < NUM_LABELS; k++) fprintf(file, " %08x", bits_of(one->labels[k]));
        fprintf(file, " %08x %08x %08x %08x", (unsigned)one->seen, (unsigned)one->attention,
                (unsigned)one->predictions, (unsigned)one->verdict);
        for (Size j = 0; j < one->length; j++) fprintf(file, " %d", (int)one->ids[j]);
        fputc('\n', file);
    }
}

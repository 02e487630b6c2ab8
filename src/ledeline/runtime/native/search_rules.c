#include "search_rules.h"

#include <math.h>
#include <string.h>

/* --- words -------------------------------------------------------------------------------------- */

/* The words of a hypothesis into `words` (J), from the first. */
static void words_of(const Beam *beam, int32_t node, int32_t *words) {
    for (; node >= 0; node = beam->nodes[node].parent) words[beam->nodes[node].step] = beam->nodes[node].word;
}

/* Rule out what would repeat an n-gram of a hypothesis. */
static void ban_repeats(const Search *search, const Beam *beam, int32_t node, int32_t *words, float *row) {
    Size size = search->options.block_ngrams, written = search->steps;
    if (written < size) return;
    words_of(beam, node, words);
    const int32_t *last = words + written - size + 1;
    for (Size i = 0; i + size <= written; i++)
        if (memcmp(words + i, last, (size_t)(size - 1) * sizeof *words) == 0)
            row[words[i + size - 1]] = -INFINITY;
}

static void ban_words(const Search *search, const Beam *beam, float *row) {
    const SearchOptions *options = &search->options;
    if (search->steps == options->max_length) { /* only the end is left */
        float end = row[EOS];
        for (Size v = 0; v < search->model->sizes.vocabulary; v++) row[v] = -INFINITY;
        row[EOS] = end;
    }
    row[PAD] = row[BOS] = -INFINITY;
    if (options->forbid_unknown) row[UNK] = -INFINITY;
    if (search->steps < options->min_length) row[EOS] = -INFINITY;
    for (Size i = 0; i < beam->num_forbidden; i++) row[beam->forbidden[i]] = -INFINITY;
}

/* --- recombination ------------------------------------------------------------------------------ */

/* Whether two hypotheses end in the same words, C - 1 of them. */
static int same_end(const Beam *beam, int32_t one, int32_t other, Size number) {
    for (; number > 0 && one != other; number--) {
        if (one < 0 || other < 0 || beam->nodes[one].word != beam->nodes[other].word) return 0;
        one = beam->nodes[one].parent, other = beam->nodes[other].parent;
    }
    return 1;
}

/* Of each word, rule out all extensions of a group of slots but the best; of equal ones the first stays. */
static void keep_best(const Search *search, const Beam *beam, const int32_t *slots, Size number) {
    Size stride = search->model->output.stride;
    for (Size v = 0; v < search->model->sizes.vocabulary; v++) {
        float *best = NULL, most = -INFINITY;
        for (Size i = 0; i < number; i++) {
            float *one = search->beam_logits + slots[i] * stride + v;
            float value = (*one - search->beam_norms[slots[i]]) + total_of(beam, slots[i]);
            if (best && !(value > most)) *one = -INFINITY;
            else {
                if (best) *best = -INFINITY;
                best = one, most = value;
            }
        }
    }
}

/* Hypotheses that end in the same words are a group. */
static void recombine(const Search *search, const Beam *beam) {
    Size ending = search->options.recombine - 1;
    for (Size first = 0; first < beam->num_live; first++) {
        Size number = 0, before = 0;
        while (before < first && !same_end(beam, beam->slots[before], beam->slots[first], ending)) before++;
        if (before < first) continue; /* its group had its turn */
        for (Size slot = first; slot < beam->num_live; slot++)
            if (slot == first || same_end(beam, beam->slots[first], beam->slots[slot], ending))
                search->places[number++] = (int32_t)slot;
        if (number > 1) keep_best(search, beam, search->places, number);
    }
}

int rule_out(Search *search, const Beam *beam) {
    int32_t *words = room(&search->written, ((size_t)search->steps + 1) * sizeof *words);
    if (!words) return 0;
    for (Size slot = 0; slot < beam->num_live; slot++) {
        float *row = search->beam_logits + slot * search->model->output.stride;
        ban_words(search, beam, row);
        if (search->options.block_ngrams) ban_repeats(search, beam, beam->slots[slot], words, row);
    }
    if (search->options.recombine) recombine(search, beam);
    return 1;
}

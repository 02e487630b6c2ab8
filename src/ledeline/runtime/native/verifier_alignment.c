/* Where the sub-words of a headline stand in the lede. */

#include "verifier_work.h"

#define LEAST_SCORE -5e3f /* below that of any place */

Size span_length(const int32_t *ids, Size width) {
    while (width && ids[width - 1] == PAD) width--;
    return width;
}

/* How good a place of the lede is if it has the sub-word; `next_too`: also the next one. */
static float place_score(Size distance, int next_too, int is_exact) {
    float score = 1.5f * (float)next_too + 0.3f * (float)is_exact;
    float ahead = 0.03f * (float)(distance < 40 ? distance : 40);
    float back = 0.6f - 0.01f * (float)distance;
    return (score + (distance == 0 ? 2.0f : 0.0f)) - (distance < 0 ? back : ahead);
}

/* The best place of a sub-word in the lede, or -1; `next` is the sub-word behind it, or <pad>. */
static Size find_place(const VerifierWork *w, int32_t word, int32_t next, Size last) {
    const float *classes = w->v->classes;
    float own = classes[word], following = next == PAD ? 0.0f : classes[next], best = LEAST_SCORE;
    Size place = -1;
    for (Size i = 0; own > 0.0f && i < w->num_source; i++) {
        if (classes[w->source[i]] != own) continue;
        int next_too = following > 0.0f && i + 1 < w->num_source &&
                       classes[w->source[i + 1]] == following;
        float score = place_score(i - last - 1, next_too, w->source[i] == word);
        if (score > best) best = score, place = i;
    }
    return place;
}

static Place place_of(const VerifierWork *w, int32_t word, int32_t next, Size last) {
    Place place = {find_place(w, word, next, last), last, 0, 0, 0};
    if (place.at < 0) return place;
    Size low = place.at > last ? last : place.at, high = place.at > last ? place.at : last;
    place.start = low + 1;
    place.num_skipped = high > place.start ? high - place.start : 0;
    place.is_exact = w->source[place.at] == word;
    return place;
}

void read_headline(VerifierWork *w, Size number, Size first) {
    const int32_t *ids = w->headlines + number * w->width;
    Span span = {first, span_length(ids, w->width), 0};
    Size last = -1;
    for (Size j = 0; j < span.length; j++) {
        Place place = place_of(w, ids[j], j + 1 < span.length ? ids[j + 1] : PAD, last);
        w->places[first + j] = place, w->words[first + j] = ids[j];
        if (place.at >= 0) last = place.at;
        if (ids[j] != PAD) w->own_keys[first + span.num_written++] = (int32_t)(first + j);
    }
    w->spans[number] = span;
}

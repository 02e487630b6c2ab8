/* Norms, attention and sums are in floats. What is computed of a row depends only on the row and its source.

   Legend: I places of a source, d size of a state. Rows are places of sources, or hypotheses. */

#include "transformer.h"

#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-5f /* of layer norms */
#define AT_ONCE 48    /* rows whose wide activations stay in the nearest caches */
#define STEP_ROWS 64  /* hypotheses that are advanced together */
#define MOST_ROWS 256 /* of sources that are encoded together; a longer source is alone */

/* --- rows --------------------------------------------------------------------------------------- */

/* Rows of d floats, `stride` apart: x, norm(x), and what a part adds. */
typedef struct {
    const Model *model;
    const Transformer *own;
    Work *work;
    Size rows, stride;
    float *states, *normed, *added;
} Rows;

static int rows_init(Rows *r, const Model *model, Size rows, Work *work) {
    Size stride = up(model->transformer.sizes.size, GROUP);
    size_t floats = (size_t)rows * (size_t)stride;
    float *at = room(&work->more, 3 * floats * sizeof *at);
    if (!at) return 0;
    memset(at, 0, 3 * floats * sizeof *at);
    *r = (Rows){model, &model->transformer, work, rows, stride, at, at + floats, at + 2 * floats};
    return 1;
}

/* `sqrt(d) E x + p`. */
static void embed(Rows *r, Size row, int32_t word, Size place) {
    float *to = r->states + row * r->stride, scale = r->own->scale;
    table_row(&r->own->words, word, to);
    for (Size i = 0; i < r->own->sizes.size; i++) to[i] *= scale;
    add_position(&r->own->positions, place, to);
}

static void norm_rows(Rows *r, const LayerNorm *norm) {
    for (Size n = 0; n < r->rows; n++)
        r->model->kernels->layer_norm(r->states + n * r->stride, norm->gain, norm->bias, r->normed + n * r->stride,
                                      r->own->sizes.size, EPSILON);
}

static int apply_own(Rows *r, const Linear *layer, const float *values, Size from, Size rows, float *outputs) {
    return apply_rows(r->model->kernels, layer, values, from, rows, outputs, r->work);
}

/* The normed rows as the inputs of a layer; NULL if there was no memory. */
static float *product(Rows *r, const Linear *layer) {
    float *outputs = room(&r->work->products, (size_t)r->rows * (size_t)layer->stride * sizeof *outputs);
    return outputs && apply_own(r, layer, r->normed, r->stride, r->rows, outputs) ? outputs : NULL;
}

static void add_up(Rows *r, const float *more) { r->model->kernels->add(r->states, more, r->rows * r->stride); }

/* What attention of all heads becomes in the states. */
static int mix(Rows *r, const Linear *layer) {
    if (!apply_own(r, layer, r->added, r->stride, r->rows, r->normed)) return 0;
    add_up(r, r->normed);
    return 1;
}

static int feed_forward(Rows *r, const FeedForward *part) {
    Size wide = part->inward.stride;
    float *inner = room(&r->work->products, AT_ONCE * (size_t)wide * sizeof *inner);
    if (!inner) return 0;
    norm_rows(r, &part->norm);
    for (Size n = 0; n < r->rows; n += AT_ONCE) {
        Size some = r->rows - n < AT_ONCE ? r->rows - n : AT_ONCE, at = n * r->stride;
        if (!apply_own(r, &part->inward, r->normed + at, r->stride, some, inner)) return 0;
        for (Size i = 0; i < some * wide; i++) inner[i] = inner[i] > 0.0f ? inner[i] : 0.0f;
        if (!apply_own(r, &part->outward, inner, wide, some, r->added + at)) return 0;
    }
    add_up(r, r->added);
    return 1;
}

/* --- the encoder -------------------------------------------------------------------------------- */

/* The places of each source attend to themselves. `packed` has room for the longest. */
static int attend_to_self(Rows *r, const SelfAttention *part, const Size *lengths, Size number, float *packed) {
    norm_rows(r, &part->norm);
    const float *all = product(r, &part->of_state);
    Size d = r->own->sizes.size, apart = part->of_state.stride, at = 0;
    for (Size n = 0; all && n < number; at += lengths[n++]) {
        const float *queries = all + at * apart;
        pack_places(&r->own->heads, queries + d, queries + 2 * d, apart, lengths[n], packed);
        if (!attend_to_packed(&r->own->heads, packed, lengths[n], queries, apart, lengths[n],
                              r->added + at * r->stride, r->stride, (Told){NULL, 0}, &r->work->scores))
            return 0;
    }
    return all && mix(r, &part->mix);
}

static int encoder_layers(Rows *r, const Size *lengths, Size number) {
    Size longest = 0;
    for (Size n = 0; n < number; n++) longest = lengths[n] > longest ? lengths[n] : longest;
    float *packed = malloc((size_t)packed_size(&r->own->heads, longest) * sizeof *packed);
    int good = packed != NULL;
    for (Size n = 0; good && n < r->own->sizes.encoder_layers; n++)
        good = attend_to_self(r, &r->own->encoder[n].self, lengths, number, packed) &&
               feed_forward(r, &r->own->encoder[n].feed_forward);
    free(packed);
    if (good) norm_rows(r, &r->own->encoder_norm);
    return good;
}

/* sGate: each normed state by a gate that also sees the mean of all states of its source. */
static int gate_states(Rows *r, const Size *lengths, Size number) {
    const Model *model = r->model;
    Size d = r->own->sizes.size, stride = r->stride;
    float *of_states = product(r, &model->gate_of_state), *mean = r->added;
    float *of_sentence = room(&r->work->scores, (size_t)model->gate_of_sentence.stride * sizeof *of_sentence);
    if (!of_states || !of_sentence) return 0;
    for (Size n = 0, at = 0; n < number; at += lengths[n++]) {
        float *states = r->normed + at * stride;
        memset(mean, 0, (size_t)stride * sizeof *mean);
        for (Size i = 0; i < lengths[n]; i++) model->kernels->add(mean, states + i * stride, d);
        for (Size i = 0; i < d; i++) mean[i] /= (float)lengths[n];
        if (!apply_own(r, &model->gate_of_sentence, mean, stride, 1, of_sentence)) return 0;
        for (Size i = 0; i < lengths[n]; i++)
            model->kernels->gate(states + i * stride, of_states + (at + i) * stride, of_sentence, d);
    }
    return 1;
}

/* The states, and what each layer of the decoder makes of them. */
static int remember(Rows *r, const Size *lengths, Size number, Memory *const *memories) {
    Size d = r->own->sizes.size;
    for (Size layer = 0; layer < r->own->sizes.decoder_layers; layer++) {
        const Linear *of_source = &r->own->decoder[layer].source.of_source;
        const float *all = product(r, of_source);
        for (Size n = 0, at = 0; all && n < number; at += lengths[n++]) {
            const float *keys = all + at * of_source->stride;
            pack_places(&r->own->heads, keys, keys + d, of_source->stride, lengths[n],
                        memories[n]->keys + layer * packed_size(&r->own->heads, lengths[n]));
        }
        if (!all) return 0;
    }
    for (Size n = 0, at = 0; n < number; at += lengths[n++])
        memcpy(memories[n]->values, r->normed + at * r->stride, (size_t)(lengths[n] * r->stride) * sizeof *r->normed);
    return 1;
}

static int encode_some(const Model *model, const int32_t *ids, const Size *lengths, Size number, Size rows,
                       Memory *const *memories, Work *work) {
    Rows r;
    if (!rows_init(&r, model, rows, work)) return 0;
    for (Size n = 0, at = 0; n < number; at += lengths[n++])
        for (Size i = 0; i < lengths[n]; i++) embed(&r, at + i, ids[at + i], i);
    return encoder_layers(&r, lengths, number) && (!model->sizes.gate || gate_states(&r, lengths, number)) &&
           remember(&r, lengths, number, memories);
}

int transformer_encode(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                       Memory *const *memories, float *states, Work *work) {
    Size size = transformer_state_size(model), end;
    memset(states, 0, (size_t)(number * size) * sizeof *states);
    for (Size n = 0; n < number; n++) set_slot(model, states + n * size, NO_SLOT);
    for (Size first = 0; first < number; first = end) {
        Size rows = lengths[first];
        for (end = first + 1; end < number && rows + lengths[end] <= MOST_ROWS; end++) rows += lengths[end];
        if (!encode_some(model, ids, lengths + first, end - first, rows, memories + first, work)) return 0;
        ids += rows;
    }
    return 1;
}

/* --- memory and states -------------------------------------------------------------------------- */

Size transformer_state_size(const Model *model) { return model->transformer.sizes.size + 1; }

void set_slot(const Model *model, float *state, int32_t slot) {
    memcpy(state + model->transformer.sizes.size, &slot, sizeof slot);
}

static int32_t slot_of(const Model *model, const float *state) {
    int32_t slot;
    memcpy(&slot, state + model->transformer.sizes.size, sizeof slot);
    return slot;
}

/* Whether sizes in bytes cannot overflow. */
static int can_remember(const Transformer *own, Size length) {
    double each = (double)own->heads.number * (double)(own->heads.head + own->heads.head_width);
    double floats = (double)own->sizes.decoder_layers * each + (double)up(own->sizes.size, GROUP);
    return ((double)length + GROUP) * floats < (double)PTRDIFF_MAX / 16.0;
}

int transformer_memory_init(const Model *model, Memory *memory, Size length) {
    const Transformer *own = &model->transformer;
    if (!can_remember(own, length)) return 0;
    Size stride = up(own->sizes.size, GROUP), values = length * stride;
    Size keys = own->sizes.decoder_layers * packed_size(&own->heads, length);
    memory->floats = malloc((size_t)(values + keys) * sizeof(float));
    memory->past = malloc(sizeof *memory->past);
    if (memory->past) past_init(memory->past, 2 * own->sizes.size * own->sizes.decoder_layers);
    if (!memory->floats || !memory->past) return 0;
    memory->length = length, memory->stride = stride;
    memory->values = memory->floats, memory->keys = memory->floats + values;
    return 1;
}

int transformer_logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to, Work *work) {
    return apply_rows(model->kernels, layer, states, transformer_state_size(model), rows, to, work);
}

void transformer_forget(const Model *model, const Memory *const *memories, const float *states, Size rows,
                        const Size *parents, Size next) {
    Size size = transformer_state_size(model);
    for (Size n = 0; n < next; n++) past_hold(memories[parents[n]]->past, slot_of(model, states + parents[n] * size));
    for (Size n = 0; n < rows; n++)
        if (memories[n]->past) past_let_go(memories[n]->past, slot_of(model, states + n * size));
}

/* --- the decoder -------------------------------------------------------------------------------- */

/* The pasts of some rows: slots of the words up to the one that is read, `longest` for each row. */
typedef struct {
    Size *lengths, longest;
    const float **slots;
    float **newest;
    float *scratch;
} Pasts;

static void release_pasts(Pasts *pasts) {
    free(pasts->lengths), free(pasts->slots), free(pasts->newest), free(pasts->scratch);
}

/* A new slot for each row. */
static int add_slots(const Model *model, Pasts *pasts, const Memory *const *memories, const float *const *before,
                     float *after, Size rows) {
    Size size = transformer_state_size(model);
    pasts->lengths = malloc((size_t)rows * sizeof *pasts->lengths);
    pasts->newest = malloc((size_t)rows * sizeof *pasts->newest);
    if (!pasts->lengths || !pasts->newest) return 0;
    for (Size n = 0; n < rows; n++) {
        Past *past = memories[n]->past;
        int32_t slot = past_add(past, slot_of(model, before[n]));
        if (slot == NO_SLOT) return 0;
        set_slot(model, after + n * size, slot);
        pasts->newest[n] = past_slot(past, slot);
        pasts->lengths[n] = (Size)past->places[slot] + 1;
        if (pasts->lengths[n] > pasts->longest) pasts->longest = pasts->lengths[n];
    }
    return 1;
}

static int find_pasts(const Model *model, Pasts *pasts, const Memory *const *memories, const float *const *before,
                      float *after, Size rows) {
    if (!add_slots(model, pasts, memories, before, after, rows)) return 0;
    Size longest = pasts->longest, size = transformer_state_size(model);
    pasts->slots = malloc((size_t)rows * (size_t)longest * sizeof *pasts->slots);
    pasts->scratch = malloc((size_t)(longest + model->transformer.sizes.size) * sizeof *pasts->scratch);
    if (!pasts->slots || !pasts->scratch) return 0;
    for (Size n = 0; n < rows; n++) {
        const Past *past = memories[n]->past;
        int32_t slot = slot_of(model, after + n * size);
        for (Size j = pasts->lengths[n]; j > 0; j--, slot = past->before[slot])
            pasts->slots[n * longest + j - 1] = past_slot(past, slot);
    }
    return 1;
}

/* Each row attends to its past; its own key and value go to its newest slot. */
static int attend_to_past(Rows *r, Size layer, Pasts *pasts) {
    const SelfAttention *part = &r->own->decoder[layer].self;
    Size d = r->own->sizes.size, place = layer * 2 * d;
    norm_rows(r, &part->norm);
    const float *all = product(r, &part->of_state);
    for (Size n = 0; all && n < r->rows; n++) {
        const float *query = all + n * part->of_state.stride, **slots = pasts->slots + n * pasts->longest;
        memcpy(pasts->newest[n] + place, query + d, 2 * (size_t)d * sizeof *query);
        for (Size j = 0; layer && j < pasts->lengths[n]; j++) slots[j] += 2 * d; /* from the layer below */
        attend_to_slots(&r->own->heads, slots, pasts->lengths[n], query, r->added + n * r->stride, pasts->scratch);
    }
    return all && mix(r, &part->mix);
}

/* Rows of one source attend to it together. */
static int attend_to_source(Rows *r, Size layer, const Memory *const *memories, float *const *attention) {
    const SourceAttention *part = &r->own->decoder[layer].source;
    const Heads *heads = &r->own->heads;
    norm_rows(r, &part->norm);
    const float *queries = product(r, &part->of_state);
    int told = attention && layer + 1 == r->own->sizes.attention_layer;
    for (Size first = 0, end; queries && first < r->rows; first = end) {
        const Memory *memory = memories[first];
        for (end = first + 1; end < r->rows && memories[end] == memory;) end++;
        if (!attend_to_packed(heads, memory->keys + layer * packed_size(heads, memory->length), memory->length,
                              queries + first * part->of_state.stride, part->of_state.stride, end - first,
                              r->added + first * r->stride, r->stride,
                              (Told){told ? attention + first : NULL, r->own->sizes.attention_head}, &r->work->scores))
            return 0;
    }
    return queries && mix(r, &part->mix);
}

static int step_rows(const Model *model, const int32_t *words, const Memory *const *memories, Pasts *pasts,
                     float *after, Size rows, float *const *attention, Work *work) {
    Rows r;
    if (!rows_init(&r, model, rows, work)) return 0;
    for (Size n = 0; n < rows; n++) embed(&r, n, words[n], pasts->lengths[n] - 1);
    for (Size layer = 0; layer < r.own->sizes.decoder_layers; layer++)
        if (!attend_to_past(&r, layer, pasts) || !attend_to_source(&r, layer, memories, attention) ||
            !feed_forward(&r, &r.own->decoder[layer].feed_forward))
            return 0;
    norm_rows(&r, &r.own->decoder_norm);
    Size d = r.own->sizes.size, size = transformer_state_size(model);
    for (Size n = 0; n < rows; n++) memcpy(after + n * size, r.normed + n * r.stride, (size_t)d * sizeof *after);
    return 1;
}

int transformer_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *const *before,
                     float *after, Size rows, float *const *attention, Work *work) {
    Size size = transformer_state_size(model);
    for (Size n = 0; n < rows; n += STEP_ROWS) {
        Size some = rows - n < STEP_ROWS ? rows - n : STEP_ROWS;
        Pasts pasts = {0};
        int good = find_pasts(model, &pasts, memories + n, before + n, after + n * size, some) &&
                   step_rows(model, words + n, memories + n, &pasts, after + n * size, some,
                             attention ? attention + n : NULL, work);
        release_pasts(&pasts);
        if (!good) return 0;
    }
    return 1;
}

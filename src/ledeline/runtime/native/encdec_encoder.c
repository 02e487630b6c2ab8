#include "encdec.h"

#include <stdlib.h>
#include <string.h>

/* Sources that are encoded together, the longest first, so that those that are still read at a step
   come first. */
typedef struct {
    const Size *lengths;
    const Size *order;  /* sources, the longest first */
    const Size *starts; /* where the positions of each source begin */
    Size number, total;
} Batch;

/* Read all sources in one direction. inputs (total, stride) are the inputs' part of the gates. Adds the
   states to states (total, H), and the last ones to ends (number, h and c of each source). */
static int read_sources(const Model *model, const Linear *recurrent, const float *inputs,
                        const Batch *batch, int backwards, float *states, float *ends, Work *work) {
    Size h = model->encdec.sizes.hidden, stride = recurrent->stride, row = encdec_state_size(model);
    size_t rows = (size_t)batch->number;
    float *hidden = calloc(rows * (size_t)h, 2 * sizeof *hidden), *cells = hidden + rows * (size_t)h;
    float *gates = malloc(rows * (size_t)stride * sizeof *gates);
    int good = hidden && gates;
    Size active = batch->number, longest = batch->lengths[batch->order[0]];
    for (Size t = 0; good && t < longest; t++) {
        while (batch->lengths[batch->order[active - 1]] <= t) active--;
        good = apply_rows(model->kernels, recurrent, hidden, h, active, gates, work);
        for (Size n = 0; good && n < active; n++) {
            Size source = batch->order[n], length = batch->lengths[source];
            Size place = batch->starts[source] + (backwards ? length - 1 - t : t);
            float *now = gates + n * stride, *own = hidden + n * h, *cell = cells + n * h;
            model->kernels->add(now, inputs + place * stride, stride);
            model->kernels->cell(now, own, cell, h);
            model->kernels->add(states + place * h, own, h);
            if (t == length - 1) {
                model->kernels->add(ends + source * row, own, h);
                model->kernels->add(ends + source * row + h, cell, h);
            }
        }
    }
    free(hidden), free(gates);
    return good;
}

/* A layer: its inputs are words, or the states below. */
static int encode_layer(const Model *model, Size number, const int32_t *ids, const Batch *batch,
                        float **states, float *first, Work *work) {
    Size h = model->encdec.sizes.hidden;
    size_t size = (size_t)batch->total * (size_t)h;
    float *above = calloc(size, sizeof *above), *ends = first + encdec_layer_state(model, number);
    int good = above != NULL;
    for (int side = 0; good && side < 2; side++) {
        const Linear *layer = &model->encdec.encoder[number].input[side];
        float *inputs = room(&work->products, (size_t)batch->total * (size_t)layer->stride * sizeof *inputs);
        good = inputs && (number ? apply_rows(model->kernels, layer, *states, h, batch->total, inputs, work)
                                 : apply_words(model->kernels, layer, &model->encdec.source_words, ids, batch->total,
                                                  inputs, work));
        good = good && read_sources(model, &model->encdec.encoder[number].recurrent[side], inputs, batch, side,
                                    above, ends, work);
    }
    free(*states);
    *states = above;
    return good;
}

static int gate_states(const Model *model, const Batch *batch, const float *first, float *states,
                       Work *work) {
    Size h = model->encdec.sizes.hidden, stride = model->gate_of_state.stride, row = encdec_state_size(model);
    float *of_states = room(&work->products, (size_t)batch->total * (size_t)stride * sizeof(float));
    float *of_sentences = room(&work->more, (size_t)batch->number * (size_t)stride * sizeof(float));
    const float *sentences = first + encdec_layer_state(model, model->encdec.sizes.layers - 1);
    if (!of_states || !of_sentences ||
        !apply_rows(model->kernels, &model->gate_of_state, states, h, batch->total, of_states, work) ||
        !apply_rows(model->kernels, &model->gate_of_sentence, sentences, row, batch->number, of_sentences, work))
        return 0;
    for (Size n = 0; n < batch->number; n++)
        for (Size i = 0; i < batch->lengths[n]; i++) {
            Size place = batch->starts[n] + i;
            model->kernels->gate(states + place * h, of_states + place * stride, of_sentences + n * stride, h);
        }
    return 1;
}

static int remember(const Model *model, const Batch *batch, const float *states, Memory *const *memories,
                    Work *work) {
    Size h = model->encdec.sizes.hidden;
    for (Size n = 0; n < batch->number; n++) {
        const float *own = states + batch->starts[n] * h;
        Size length = batch->lengths[n];
        if (!apply_rows(model->kernels, &model->encdec.key, own, h, length, memories[n]->keys, work) ||
            !apply_rows(model->kernels, &model->encdec.value, own, h, length, memories[n]->values, work))
            return 0;
    }
    return 1;
}

/* The sources' numbers, the longest first; of equal ones the first. */
static void sort_by_length(const Size *lengths, Size number, Size *order) {
    for (Size n = 0; n < number; n++) {
        Size at = n;
        for (; at > 0 && lengths[order[at - 1]] < lengths[n]; at--) order[at] = order[at - 1];
        order[at] = n;
    }
}

int encdec_encode(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                  Memory *const *memories, float *states, Work *work) {
    Size *order = malloc((size_t)number * 2 * sizeof *order), *starts = order + number, total = 0;
    if (!order) return 0;
    sort_by_length(lengths, number, order);
    for (Size n = 0; n < number; n++) starts[n] = total, total += lengths[n];
    Batch batch = {lengths, order, starts, number, total};
    memset(states, 0, (size_t)number * (size_t)encdec_state_size(model) * sizeof *states);
    float *below = NULL;
    int good = 1;
    for (Size layer = 0; good && layer < model->encdec.sizes.layers; layer++)
        good = encode_layer(model, layer, ids, &batch, &below, states, work);
    if (good && model->sizes.gate) good = gate_states(model, &batch, states, below, work);
    good = good && remember(model, &batch, below, memories, work);
    free(below), free(order);
    return good;
}

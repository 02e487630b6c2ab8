#include "model.h"

#include "transformer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- weights ------------------------------------------------------------------------------------ */

static int encoder_layer(Model *model, Tensors *tensors, Size number) {
    static const char *const ENDS[2] = {"l0", "l0_reverse"};
    Size inputs = number ? model->sizes.hidden : model->sizes.embedding, gates = 4 * model->sizes.hidden;
    for (int side = 0; side < 2; side++) {
        char names[4][80];
        const char *const kinds[4] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
        for (int i = 0; i < 4; i++)
            snprintf(names[i], sizeof names[i], "encoder.layers.%td.%s_%s", number, kinds[i], ENDS[side]);
        Linear *input = &model->encoder[number].input[side];
        LayerSource of_input = {names[0], names[2], gates, inputs, 0, inputs, 0, 1, 0};
        LayerSource of_state = {names[1], NULL, gates, model->sizes.hidden, 0, model->sizes.hidden, 0, 1, 0};
        if (!make_linear(input, tensors, &model->blocks, of_input, model->int8) ||
            !add_bias(input, tensors, names[3]) ||
            !make_linear(&model->encoder[number].recurrent[side], tensors, &model->blocks, of_state,
                         model->int8))
            return 0;
    }
    return 1;
}

static int decoder_layers(Model *model, Tensors *tensors) {
    Size h = model->sizes.hidden, d = model->sizes.embedding;
    LayerSource word = {"decoder.first.weight", "decoder.first.bias", 4 * h, d + 2 * h, 0, d, 0, 2, 0};
    LayerSource first = {"decoder.first.weight", NULL, 4 * h, d + 2 * h, d, 2 * h, 1, 2, 0};
    if (!make_linear(&model->first_word, tensors, &model->blocks, word, model->int8) ||
        !make_linear(&model->decoder[0], tensors, &model->blocks, first, model->int8))
        return 0;
    for (Size number = 1; number < model->sizes.layers; number++) {
        char weight[60], bias[60];
        snprintf(weight, sizeof weight, "decoder.upper.%td.weight", number - 1);
        snprintf(bias, sizeof bias, "decoder.upper.%td.bias", number - 1);
        LayerSource upper = {weight, bias, 4 * h, 2 * h, 0, 2 * h, 0, 1, 0};
        if (!make_linear(&model->decoder[number], tensors, &model->blocks, upper, model->int8)) return 0;
    }
    return 1;
}

/* A layer that is wanted or not, and where its weights are. */
typedef struct {
    int wanted;
    Linear *layer;
    LayerSource source;
} Wanted;

static int make_wanted(Model *model, Tensors *tensors, const Wanted *all, size_t number) {
    for (size_t i = 0; i < number; i++)
        if (all[i].wanted && !make_linear(all[i].layer, tensors, &model->blocks, all[i].source, model->int8))
            return 0;
    return 1;
}

static int attention_layers(Model *model, Tensors *tensors) {
    Size h = model->sizes.hidden, v = model->sizes.vocabulary;
    const char *mix = "decoder.attention.mix.weight";
    const Wanted all[] = {
        {1, &model->key, {"decoder.attention.bilinear", NULL, h, h, 0, h, 0, 1, 1}},
        {1, &model->value, {mix, NULL, h, 2 * h, 0, h, 0, 2, 0}},
        {1, &model->query, {mix, NULL, h, 2 * h, h, h, 1, 2, 0}},
        {1, &model->output, {"output.weight", "output.bias", v, h, 0, h, 0, 1, 0}},
    };
    return make_wanted(model, tensors, all, sizeof all / sizeof *all);
}

/* Of sGate and SPM. */
static int addon_layers(Model *model, Tensors *tensors) {
    Size h = model->size, v = model->sizes.vocabulary;
    int gate = model->sizes.gate;
    const Wanted all[] = {
        {model->sizes.spm, &model->spm, {"spm.output.weight", "spm.output.bias", v, h, 0, h, 0, 1, 0}},
        {gate, &model->gate_of_state, {"gate.of_state.weight", NULL, h, h, 0, h, 0, 1, 0}},
        {gate, &model->gate_of_sentence, {"gate.of_sentence.weight", "gate.of_sentence.bias", h, h, 0, h, 0, 1, 0}},
    };
    return make_wanted(model, tensors, all, sizeof all / sizeof *all);
}

#define MAX_SIZE ((Size)1 << 14)
#define MAX_VOCABULARY ((Size)1 << 22)

static int possible(Sizes sizes) {
    return sizes.vocabulary > EOS && sizes.vocabulary <= MAX_VOCABULARY && sizes.embedding > 0 &&
           sizes.embedding <= MAX_SIZE && sizes.hidden > 0 && sizes.hidden <= MAX_SIZE &&
           sizes.layers > 0 && sizes.layers <= MAX_LAYERS;
}

static int encdec_layers(Model *model, Tensors *tensors) {
    Sizes sizes = model->sizes;
    int int8 = model->int8;
    model->size = sizes.hidden;
    if (!possible(sizes)) {
        snprintf(tensors->error, sizeof tensors->error, "the sizes of the model are not possible");
        return 0;
    }
    int good = make_table(&model->source_words, tensors, &model->blocks, "encoder.embedding.weight",
                          sizes.vocabulary, sizes.embedding, int8) &&
               make_table(&model->words, tensors, &model->blocks, "decoder.embedding.weight",
                          sizes.vocabulary, sizes.embedding, int8);
    for (Size number = 0; good && number < sizes.layers; number++)
        good = encoder_layer(model, tensors, number);
    return good && decoder_layers(model, tensors) && attention_layers(model, tensors);
}

static int transformer_layers(Model *model, Tensors *tensors) {
    const Sizes *s = &model->sizes;
    TransformerSizes sizes = {s->vocabulary, s->embedding, s->hidden, s->heads, s->encoder_layers, s->layers,
                              s->attention_layer, s->attention_head};
    model->size = s->embedding;
    return make_transformer(&model->transformer, &model->output, tensors, &model->blocks, sizes, model->int8,
                            model->kernels);
}

int model_init(Model *model, Tensors *tensors, Sizes sizes, int int8, const Kernels *kernels) {
    memset(model, 0, sizeof *model);
    model->sizes = sizes, model->int8 = int8, model->kernels = kernels;
    int good = (sizes.system == TRANSFORMER ? transformer_layers(model, tensors) : encdec_layers(model, tensors)) &&
               addon_layers(model, tensors);
    if (!good) model_release(model);
    return good;
}

void model_release(Model *model) { release(&model->blocks); }

Size state_size(const Model *model) {
    if (model->sizes.system == TRANSFORMER) return transformer_state_size(model);
    return (1 + 2 * model->sizes.layers) * model->sizes.hidden;
}

int memory_init(const Model *model, Memory *memory, Size length) {
    memset(memory, 0, sizeof *memory);
    if (model->sizes.system == TRANSFORMER) return transformer_memory_init(model, memory, length);
    Size stride = model->key.stride;
    if (length > PTRDIFF_MAX / 16 / stride) return 0;
    memory->floats = malloc(2 * (size_t)(length * stride) * sizeof *memory->floats);
    if (!memory->floats) return 0;
    memory->length = length, memory->stride = stride;
    memory->keys = memory->floats, memory->values = memory->floats + length * stride;
    return 1;
}

void memory_release(Memory *memory) {
    if (memory->past) past_release(memory->past);
    free(memory->past), free(memory->floats);
    memset(memory, 0, sizeof *memory);
}

void work_release(Work *work) {
    Buffer *all[] = {&work->scratch, &work->inputs, &work->products, &work->more, &work->scores, &work->steps};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->at), all[i]->at = NULL, all[i]->size = 0;
}

/* --- inputs of layers --------------------------------------------------------------------------- */

static size_t input_size(const Model *model) { return model->int8 ? 1 : sizeof(float); }

/* values (rows, k), `from` apart, as inputs of a layer, zero behind them, in `work->inputs`. */
static void *inputs_of(const Model *model, const Linear *layer, const float *values, Size from, Size rows,
                       float bound, Work *work) {
    size_t size = (size_t)rows * (size_t)layer->width * input_size(model);
    void *inputs = room(&work->inputs, size);
    if (!inputs) return NULL;
    if (layer->width != layer->k) memset(inputs, 0, size);
    as_inputs(model->kernels, model->int8, values, from, inputs, layer->width, rows, layer->k, bound);
    return inputs;
}

/* A layer of values between -bound and bound. */
static int apply_to(const Model *model, const Linear *layer, const float *values, Size from, Size rows,
                    float bound, float *outputs, Work *work) {
    float step = bound / MAX_LEVEL;
    void *inputs = inputs_of(model, layer, values, from, rows, bound, work);
    return inputs && apply(model->kernels, layer, inputs, rows, &step, 1, outputs, &work->scratch);
}

/* A layer of the embeddings of words. */
static int apply_to_words(const Model *model, const Linear *layer, const Table *table,
                          const int32_t *words, Size rows, float *outputs, Work *work) {
    size_t size = (size_t)layer->width * input_size(model);
    char *inputs = room(&work->inputs, (size_t)rows * size);
    float *steps = room(&work->steps, (size_t)rows * sizeof *steps);
    if (!inputs || !steps) return 0;
    const char *from = model->int8 ? (const char *)table->levels : (const char *)table->values;
    for (Size n = 0; n < rows; n++) {
        memcpy(inputs + (size_t)n * size, from + (size_t)words[n] * size, size);
        steps[n] = model->int8 ? table->scales[words[n]] : 1.0f;
    }
    return apply(model->kernels, layer, inputs, rows, steps, 0, outputs, &work->scratch);
}

int logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to,
           Work *work) {
    if (model->sizes.system == TRANSFORMER) return transformer_logits(model, layer, states, rows, to, work);
    return apply_to(model, layer, states, state_size(model), rows, 1.0f, to, work);
}

/* --- the encoder -------------------------------------------------------------------------------- */

/* Sources that are encoded together, the longest first, so that those that are still read at a step
   come first. */
typedef struct {
    const Size *lengths;
    const Size *order;  /* sources, the longest first */
    const Size *starts; /* where the positions of each source begin */
    Size number, total;
} Batch;

/* Read all sources in one direction. inputs (total, stride) are the inputs' part of the gates. Adds the
   states to states (total, H), and the last ones to ends (number, h and c at `end`). */
static int read_sources(const Model *model, const Linear *recurrent, const float *inputs,
                        const Batch *batch, int backwards, float *states, float *ends, Work *work) {
    Size h = model->sizes.hidden, stride = recurrent->stride, row = state_size(model);
    size_t rows = (size_t)batch->number;
    float *hidden = calloc(rows * (size_t)h, 2 * sizeof *hidden), *cells = hidden + rows * (size_t)h;
    float *gates = malloc(rows * (size_t)stride * sizeof *gates);
    int good = hidden && gates;
    Size active = batch->number, longest = batch->lengths[batch->order[0]];
    for (Size t = 0; good && t < longest; t++) {
        while (batch->lengths[batch->order[active - 1]] <= t) active--;
        good = apply_to(model, recurrent, hidden, h, active, 1.0f, gates, work);
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
    Size h = model->sizes.hidden;
    size_t size = (size_t)batch->total * (size_t)h;
    float *above = calloc(size, sizeof *above), *ends = first + h + 2 * number * h;
    int good = above != NULL;
    for (int side = 0; good && side < 2; side++) {
        const Linear *layer = &model->encoder[number].input[side];
        float *inputs = room(&work->products, (size_t)batch->total * (size_t)layer->stride * sizeof *inputs);
        good = inputs && (number ? apply_to(model, layer, *states, h, batch->total, FIRST_BOUND, inputs, work)
                                 : apply_to_words(model, layer, &model->source_words, ids, batch->total,
                                                  inputs, work));
        good = good && read_sources(model, &model->encoder[number].recurrent[side], inputs, batch, side,
                                    above, ends, work);
    }
    free(*states);
    *states = above;
    return good;
}

static int gate_states(const Model *model, const Batch *batch, const float *first, float *states,
                       Work *work) {
    Size h = model->sizes.hidden, stride = model->gate_of_state.stride, row = state_size(model);
    float *of_states = room(&work->products, (size_t)batch->total * (size_t)stride * sizeof(float));
    float *of_sentences = room(&work->more, (size_t)batch->number * (size_t)stride * sizeof(float));
    const float *sentences = first + h + 2 * (model->sizes.layers - 1) * h;
    if (!of_states || !of_sentences ||
        !apply_to(model, &model->gate_of_state, states, h, batch->total, FIRST_BOUND, of_states, work) ||
        !apply_to(model, &model->gate_of_sentence, sentences, row, batch->number, FIRST_BOUND,
                  of_sentences, work))
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
    Size h = model->sizes.hidden;
    for (Size n = 0; n < batch->number; n++) {
        const float *own = states + batch->starts[n] * h;
        Size length = batch->lengths[n];
        if (!apply_to(model, &model->key, own, h, length, FIRST_BOUND, memories[n]->keys, work) ||
            !apply_to(model, &model->value, own, h, length, FIRST_BOUND, memories[n]->values, work))
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

int encode_sources(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                   Memory *const *memories, float *states, Work *work) {
    if (model->sizes.system == TRANSFORMER)
        return transformer_encode(model, ids, lengths, number, memories, states, work);
    Size *order = malloc((size_t)number * 2 * sizeof *order), *starts = order + number, total = 0;
    if (!order) return 0;
    sort_by_length(lengths, number, order);
    for (Size n = 0; n < number; n++) starts[n] = total, total += lengths[n];
    Batch batch = {lengths, order, starts, number, total};
    memset(states, 0, (size_t)number * (size_t)state_size(model) * sizeof *states);
    float *below = NULL;
    int good = 1;
    for (Size layer = 0; good && layer < model->sizes.layers; layer++)
        good = encode_layer(model, layer, ids, &batch, &below, states, work);
    if (good && model->sizes.gate) good = gate_states(model, &batch, states, below, work);
    good = good && remember(model, &batch, below, memories, work);
    free(below), free(order);
    return good;
}

/* --- the decoder -------------------------------------------------------------------------------- */

/* A layer of the decoder: gates from [below; h], for the first layer also from the word. */
static int decode_layer(const Model *model, Size number, const int32_t *words, const float *below,
                        const float *before, float *after, Size rows, float bound, Work *work) {
    const Linear *layer = &model->decoder[number];
    Size h = model->sizes.hidden, size = state_size(model), own = h + 2 * number * h;
    size_t row = (size_t)layer->width * input_size(model), half = (size_t)h * input_size(model);
    float *gates = room(&work->products, (size_t)rows * (size_t)layer->stride * sizeof *gates);
    float *of_words = room(&work->more, (size_t)rows * (size_t)layer->stride * sizeof *of_words);
    if (!gates || !of_words) return 0;
    if (number == 0 && !apply_to_words(model, &model->first_word, &model->words, words, rows, of_words, work))
        return 0;
    char *inputs = room(&work->inputs, (size_t)rows * row);
    if (!inputs) return 0;
    if (layer->width != layer->k) memset(inputs, 0, (size_t)rows * row);
    as_inputs(model->kernels, model->int8, below, size, inputs, layer->width, rows, h, bound);
    as_inputs(model->kernels, model->int8, before + own, size, inputs + half, layer->width, rows, h, bound);
    float step = bound / MAX_LEVEL;
    if (!apply(model->kernels, layer, inputs, rows, &step, 1, gates, &work->scratch)) return 0;
    for (Size n = 0; n < rows; n++) {
        float *now = gates + n * layer->stride, *to = after + n * size + own;
        if (number == 0) model->kernels->add(now, of_words + n * layer->stride, layer->stride);
        memcpy(to + h, before + n * size + own + h, (size_t)h * sizeof *to);
        model->kernels->cell(now, to, to + h, h);
    }
    return 1;
}

#define SHARED 64 /* rows at most that share products */

/* The first layer of the decoder for rows of a beam: what rows of one parent or of one word have in common
   is computed once. The bits are those of decode_layer. */
static int decode_beam(const Model *model, const int32_t *words, const float *before, float *after, Size rows,
                       float bound, Work *work) {
    const Linear *layer = &model->decoder[0];
    Size h = model->sizes.hidden, size = state_size(model), stride = layer->stride, k = layer->width;
    size_t half = (size_t)h * input_size(model), row = (size_t)k * input_size(model);
    Size state_of[SHARED], word_of[SHARED], firsts[SHARED], states = 0, num_words = 0;
    int32_t others[SHARED];
    for (Size n = 0, at; n < rows; n++) {
        for (at = 0; at < states && work->parents[firsts[at]] != work->parents[n]; at++) continue;
        if (at == states) firsts[states++] = n;
        state_of[n] = at;
        for (at = 0; at < num_words && others[at] != words[n]; at++) continue;
        if (at == num_words) others[num_words++] = words[n];
        word_of[n] = at;
    }
    float *gates = room(&work->products, (size_t)(states + 1) * (size_t)stride * sizeof *gates);
    float *of_words = room(&work->more, (size_t)num_words * (size_t)stride * sizeof *of_words);
    if (!gates || !of_words ||
        !apply_to_words(model, &model->first_word, &model->words, others, num_words, of_words, work))
        return 0;
    char *inputs = room(&work->inputs, (size_t)states * row);
    if (!inputs) return 0;
    memset(inputs, 0, (size_t)states * row);
    for (Size n = 0; n < states; n++) {
        const float *state = before + firsts[n] * size;
        char *to = inputs + (size_t)n * row;
        as_inputs(model->kernels, model->int8, state, size, to, k, 1, h, bound);
        as_inputs(model->kernels, model->int8, state + h, size, to + half, k, 1, h, bound);
    }
    float step = bound / MAX_LEVEL, *now = gates + states * stride;
    if (!apply(model->kernels, layer, inputs, states, &step, 1, gates, &work->scratch)) return 0;
    for (Size n = 0; n < rows; n++) {
        float *to = after + n * size + h;
        memcpy(now, gates + state_of[n] * stride, (size_t)stride * sizeof *now);
        model->kernels->add(now, of_words + word_of[n] * stride, stride);
        memcpy(to + h, before + n * size + 2 * h, (size_t)h * sizeof *to);
        model->kernels->cell(now, to, to + h, h);
    }
    return 1;
}

/* The context of one row, added up in `context` (H); the weights of attention go to `weights`. */
static void attend(const Model *model, const float *query, const Memory *memory, float *weights,
                   float *context) {
    Size h = model->sizes.hidden, stride = model->key.stride;
    for (Size i = 0; i < memory->length; i++)
        weights[i] = model->kernels->dot(query, memory->keys + i * stride, h);
    model->kernels->softmax(weights, memory->length);
    memset(context, 0, (size_t)h * sizeof *context);
    for (Size i = 0; i < memory->length; i++)
        model->kernels->add_scaled(context, memory->values + i * stride, weights[i], h);
}

int decoder_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *before,
            float *after, Size rows, float bound, float *const *attention, Work *work) {
    if (model->sizes.system == TRANSFORMER)
        return transformer_step(model, words, memories, before, after, rows, attention, work);
    Size h = model->sizes.hidden, size = state_size(model), longest = 0;
    for (Size number = 0; number < model->sizes.layers; number++) {
        const float *below = number ? after + h + 2 * (number - 1) * h : before;
        if (number == 0 && work->parents && rows <= SHARED) {
            if (!decode_beam(model, words, before, after, rows, bound, work)) return 0;
            continue;
        }
        if (!decode_layer(model, number, words, below, before, after, rows, bound, work)) return 0;
    }
    for (Size n = 0; n < rows; n++) longest = memories[n]->length > longest ? memories[n]->length : longest;
    const float *top = after + h + 2 * (model->sizes.layers - 1) * h;
    float *queries = room(&work->products, (size_t)rows * (size_t)model->query.stride * sizeof *queries);
    float *scores = room(&work->scores, (size_t)(longest + h) * sizeof *scores);
    if (!queries || !scores || !apply_to(model, &model->query, top, size, rows, 1.0f, queries, work)) return 0;
    for (Size n = 0; n < rows; n++) {
        float *context = scores + longest, *z = after + n * size;
        attend(model, top + n * size, memories[n], scores, context);
        memcpy(z, queries + n * model->query.stride, (size_t)h * sizeof *z);
        model->kernels->tanh_add(z, context, h);
        if (attention) memcpy(attention[n], scores, (size_t)memories[n]->length * sizeof *scores);
    }
    return 1;
}

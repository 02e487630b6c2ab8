#include "model.h"

#include "encdec.h"
#include "transformer.h"

#include <stdlib.h>
#include <string.h>

/* --- weights ------------------------------------------------------------------------------------ */

static int make_layer(Model *model, Linear *layer, Tensors *tensors, LayerSource source) {
    return make_linear(layer, tensors, &model->blocks, source, model->int8);
}

static int make_gate(Model *model, Tensors *tensors) {
    LayerSource of_state = whole_matrix("gate.of_state.weight", NULL, model->size, model->size);
    LayerSource of_sentence =
        whole_matrix("gate.of_sentence.weight", "gate.of_sentence.bias", model->size, model->size);
    return make_layer(model, &model->gate_of_state, tensors, of_state) &&
           make_layer(model, &model->gate_of_sentence, tensors, of_sentence);
}

static int make_spm(Model *model, Tensors *tensors) {
    return make_layer(model, &model->spm, tensors,
                      whole_matrix("spm.output.weight", "spm.output.bias", model->sizes.vocabulary, model->size));
}

static int make_system(Model *model, Tensors *tensors) {
    const Sizes *s = &model->sizes;
    if (s->system == TRANSFORMER) {
        TransformerSizes sizes = {s->vocabulary, s->embedding, s->hidden, s->heads, s->encoder_layers, s->layers,
                                  s->attention_layer, s->attention_head};
        model->size = s->embedding;
        return make_transformer(&model->transformer, &model->output, tensors, &model->blocks, sizes, model->int8,
                                model->kernels);
    }
    EncDecSizes sizes = {s->vocabulary, s->embedding, s->hidden, s->layers};
    model->size = s->hidden;
    return make_encdec(&model->encdec, &model->output, tensors, &model->blocks, sizes, model->int8);
}

int model_init(Model *model, Tensors *tensors, Sizes sizes, int int8, const Kernels *kernels) {
    memset(model, 0, sizeof *model);
    tensors->adds_pairs = kernels->adds_pairs;
    model->sizes = sizes, model->int8 = int8, model->kernels = kernels;
    int good = make_system(model, tensors) && (!sizes.gate || make_gate(model, tensors)) &&
               (!sizes.spm || make_spm(model, tensors)) && all_are_used(tensors, "the model");
    if (!good) model_release(model);
    return good;
}

void model_release(Model *model) { release(&model->blocks); }

/* --- memory and states -------------------------------------------------------------------------- */

Size state_size(const Model *model) {
    return model->sizes.system == TRANSFORMER ? transformer_state_size(model) : encdec_state_size(model);
}

int memory_init(const Model *model, Memory *memory, Size length) {
    memset(memory, 0, sizeof *memory);
    return model->sizes.system == TRANSFORMER ? transformer_memory_init(model, memory, length)
                                              : encdec_memory_init(model, memory, length);
}

void memory_release(Memory *memory) {
    if (memory->past) past_release(memory->past);
    free(memory->past), free(memory->floats);
    memset(memory, 0, sizeof *memory);
}

/* --- what the systems compute ------------------------------------------------------------------- */

int encode_sources(const Model *model, const int32_t *ids, const Size *lengths, Size number,
                   Memory *const *memories, float *states, Work *work) {
    return model->sizes.system == TRANSFORMER
               ? transformer_encode(model, ids, lengths, number, memories, states, work)
               : encdec_encode(model, ids, lengths, number, memories, states, work);
}

int decoder_step(const Model *model, const int32_t *words, const Memory *const *memories, const float *const *before,
                 float *after, Size rows, float *const *attention, Work *work) {
    return model->sizes.system == TRANSFORMER
               ? transformer_step(model, words, memories, before, after, rows, attention, work)
               : encdec_step(model, words, memories, before, after, rows, attention, work);
}

void forget_rows(const Model *model, const Memory *const *memories, const float *states, Size rows, const Size *parents,
                 Size next) {
    if (model->sizes.system == TRANSFORMER) transformer_forget(model, memories, states, rows, parents, next);
}

int logits(const Model *model, const Linear *layer, const float *states, Size rows, float *to, Work *work) {
    return model->sizes.system == TRANSFORMER ? transformer_logits(model, layer, states, rows, to, work)
                                              : encdec_logits(model, layer, states, rows, to, work);
}

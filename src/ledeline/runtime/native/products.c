#include "products.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

void work_release(Work *work) {
    Buffer *all[] = {&work->scratch, &work->inputs, &work->steps, &work->products, &work->more, &work->scores};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->at), all[i]->at = NULL, all[i]->size = 0;
}

static size_t unit_of(const Linear *layer) { return layer->int8 ? sizeof(int8_t) : sizeof(float); }

size_t row_size(const Linear *layer) { return (size_t)layer->width * unit_of(layer); }

char *room_for_inputs(const Linear *layer, Size rows, Work *work) {
    size_t row = row_size(layer), used = (size_t)layer->k * unit_of(layer);
    char *inputs = room(&work->inputs, (size_t)rows * row);
    for (Size n = 0; inputs && used < row && n < rows; n++) memset(inputs + (size_t)n * row + used, 0, row - used);
    return inputs;
}

int apply_bounded(const Kernels *kernels, const Linear *layer, const float *values, Size from, Size rows,
                  float bound, float *outputs, Work *work) {
    float step = bound / MAX_LEVEL;
    char *inputs = room_for_inputs(layer, rows, work);
    if (!inputs) return 0;
    as_inputs(kernels, layer->int8, values, from, inputs, layer->width, rows, layer->k, bound);
    return apply(kernels, layer, inputs, rows, &step, 1, outputs, &work->scratch);
}

/* The largest absolute value; their bits have the order of the values. */
static float largest(const float *values, Size number) {
    union { int32_t bits; float value; } most = {0};
    for (Size i = 0; i < number; i++) {
        int32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        bits &= INT32_MAX;
        most.bits = bits > most.bits ? bits : most.bits;
    }
    return most.value;
}

/* A row as levels; returns what a level stands for. */
static float quantize_row(const Kernels *kernels, const float *values, Size number, char *levels) {
    float step = largest(values, number) / MAX_LEVEL;
    step = step < FLT_MIN ? FLT_MIN : step;
    kernels->quantize(values, (int8_t *)levels, number, 1.0f / step);
    return step;
}

int apply_unbounded(const Kernels *kernels, const Linear *layer, const float *values, Size from, Size rows,
                    float *outputs, Work *work) {
    size_t row = row_size(layer);
    char *inputs = room_for_inputs(layer, rows, work);
    float *steps = room(&work->steps, (size_t)rows * sizeof *steps);
    if (!inputs || !steps) return 0;
    for (Size n = 0; n < rows; n++) {
        const float *own = values + n * from;
        char *to = inputs + (size_t)n * row;
        if (layer->int8) steps[n] = quantize_row(kernels, own, layer->k, to);
        else memcpy(to, own, (size_t)layer->k * sizeof *own);
    }
    return apply(kernels, layer, inputs, rows, steps, 0, outputs, &work->scratch);
}

int apply_to_words(const Kernels *kernels, const Linear *layer, const Table *table, const int32_t *words,
                   Size rows, float *outputs, Work *work) {
    size_t row = row_size(layer);
    char *inputs = room(&work->inputs, (size_t)rows * row);
    float *steps = room(&work->steps, (size_t)rows * sizeof *steps);
    if (!inputs || !steps) return 0;
    const char *from = layer->int8 ? (const char *)table->levels : (const char *)table->values;
    for (Size n = 0; n < rows; n++) {
        memcpy(inputs + (size_t)n * row, from + (size_t)words[n] * row, row);
        steps[n] = layer->int8 ? table->scales[words[n]] : 1.0f;
    }
    return apply(kernels, layer, inputs, rows, steps, 0, outputs, &work->scratch);
}

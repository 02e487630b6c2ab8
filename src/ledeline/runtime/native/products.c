#include "products.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

void *room(Buffer *buffer, size_t size) {
    if (buffer->size < size || !buffer->at) {
        free(buffer->at);
        size_t wanted = size + size / 4 + 64;
        buffer->at = malloc(wanted);
        buffer->size = buffer->at ? wanted : 0;
    }
    return buffer->at;
}

void work_release(Work *work) {
    Buffer *all[] = {&work->scratch,  &work->inputs, &work->steps, &work->embedded,
                     &work->products, &work->more,   &work->scores};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->at), all[i]->at = NULL, all[i]->size = 0;
}

int begin_rows(const Linear *layer, Size rows, Work *work) {
    size_t unit = layer->int8 ? sizeof(uint8_t) : sizeof(float);
    return room(&work->inputs, (size_t)rows * (size_t)layer->width * unit) &&
           room(&work->steps, (size_t)rows * sizeof(float));
}

/* What a level of a row stands for. */
static float step_of(const Kernels *kernels, const float *values, Size number, const float *more, Size rest) {
    float most = kernels->largest(values, number), other = more ? kernels->largest(more, rest) : 0.0f;
    float step = (other > most ? other : most) / INPUT_LEVELS;
    return step < FLT_MIN ? FLT_MIN : step;
}

void fill_row(const Kernels *kernels, const Linear *layer, Size row, const float *values, Size number,
              const float *more, Work *work) {
    Size rest = layer->k - number, behind = layer->width - layer->k;
    if (layer->int8) {
        uint8_t *to = (uint8_t *)work->inputs.at + row * layer->width;
        float step = step_of(kernels, values, number, more, rest);
        kernels->quantize(values, to, number, 1.0f / step);
        if (more) kernels->quantize(more, to + number, rest, 1.0f / step);
        memset(to + layer->k, 0, (size_t)behind);
        ((float *)work->steps.at)[row] = step;
        return;
    }
    float *to = (float *)work->inputs.at + row * layer->width;
    memcpy(to, values, (size_t)number * sizeof *to);
    if (more) memcpy(to + number, more, (size_t)rest * sizeof *to);
    memset(to + layer->k, 0, (size_t)behind * sizeof *to);
}

#define CHUNK 48 /* rows whose inputs stay in the nearest caches */

int apply_filled(const Kernels *kernels, const Linear *layer, Size rows, float *outputs, Work *work) {
    if (!layer->int8) {
        kernels->float_product(layer->weights, work->inputs.at, rows, layer->width, layer->stride, outputs,
                               layer->stride);
        for (Size n = 0; n < rows; n++) kernels->add(outputs + n * layer->stride, layer->bias, layer->stride);
        return 1;
    }
    void *scratch = room(&work->scratch, INT8_SCRATCH(CHUNK, layer->width));
    if (!scratch) return 0;
    const uint8_t *inputs = work->inputs.at;
    const float *steps = work->steps.at;
    for (Size n = 0; n < rows; n += CHUNK) {
        Size some = rows - n < CHUNK ? rows - n : CHUNK;
        kernels->int8_product(layer, inputs + n * layer->width, some, steps + n, outputs + n * layer->stride, scratch);
    }
    return 1;
}

int apply_rows(const Kernels *kernels, const Linear *layer, const float *values, Size from, Size rows,
               float *outputs, Work *work) {
    if (!begin_rows(layer, rows, work)) return 0;
    for (Size n = 0; n < rows; n++) fill_row(kernels, layer, n, values + n * from, layer->k, NULL, work);
    return apply_filled(kernels, layer, rows, outputs, work);
}

int apply_words(const Kernels *kernels, const Linear *layer, const Table *table, const int32_t *words,
                Size rows, float *outputs, Work *work) {
    float *embedded = room(&work->embedded, (size_t)table->cols * sizeof *embedded);
    if (!embedded || !begin_rows(layer, rows, work)) return 0;
    for (Size n = 0; n < rows; n++) {
        table_row(table, words[n], embedded);
        fill_row(kernels, layer, n, embedded, table->cols, NULL, work);
    }
    return apply_filled(kernels, layer, rows, outputs, work);
}

#include "linear.h"

#include "pair_sums.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- memory ------------------------------------------------------------------------------------- */

#define ALIGNMENT 64

void *keep(Block **blocks, size_t size) {
    if (size > SIZE_MAX - sizeof(Block) - ALIGNMENT) return NULL;
    Block *block = calloc(1, size + sizeof(Block) + ALIGNMENT);
    if (!block) return NULL;
    block->next = *blocks, *blocks = block;
    uintptr_t start = (uintptr_t)(block + 1);
    return (void *)((start + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

void release(Block **blocks) {
    while (*blocks) {
        Block *next = (*blocks)->next;
        free(*blocks);
        *blocks = next;
    }
}

/* --- tensors ------------------------------------------------------------------------------------ */

static int fail(Tensors *tensors, const char *what, const char *name) {
    snprintf(tensors->error, sizeof tensors->error, "%.120s %s", name, what);
    return 0;
}

static Tensor *find(const Tensors *tensors, const char *name) {
    for (Size i = 0; i < tensors->number; i++)
        if (strcmp(tensors->tensors[i].name, name) == 0) return &tensors->tensors[i];
    return NULL;
}

const Tensor *tensor_of(Tensors *tensors, const char *name, int dims, Size rows, Size cols) {
    Tensor *one = find(tensors, name);
    if (!one) return fail(tensors, "is missing", name), NULL;
    if (one->dims != dims || one->rows != rows || one->cols != cols) {
        char what[120];
        snprintf(what, sizeof what, "is (%td, %td) but should be (%td, %td)", one->rows, one->cols,
                 rows, cols);
        return fail(tensors, what, name), NULL;
    }
    one->is_used = 1;
    return one;
}

int all_are_used(Tensors *tensors, const char *whole) {
    for (Size i = 0; i < tensors->number; i++) {
        if (tensors->tensors[i].is_used) continue;
        char what[80];
        snprintf(what, sizeof what, "belongs to no layer of %s", whole);
        return fail(tensors, what, tensors->tensors[i].name);
    }
    return 1;
}

static float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, rest = half & 1023;
    union { uint32_t bits; float value; } one;
    if (exponent == 0) {
        one.value = (float)rest * 5.9604644775390625e-8f; /* 2^-24 */
        one.bits |= sign;
        return one.value;
    }
    one.bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | rest << 13;
    return one.value;
}

/* A value of a float tensor; files promise no alignment. */
static float value_at(const Tensor *tensor, Size place) {
    if (tensor->stored == STORED_FLOAT16) {
        uint16_t half;
        memcpy(&half, (const char *)tensor->values + 2 * place, sizeof half);
        return half_to_float(half);
    }
    float value;
    memcpy(&value, (const char *)tensor->values + 4 * place, sizeof value);
    return value;
}

/* A vector of `number` finite floats, followed by zeros up to `padded`. */
static float *floats_of(Tensors *tensors, Block **blocks, const Tensor *tensor, Size number,
                        Size padded) {
    if (tensor->stored == STORED_INT8) return fail(tensors, "has levels without scales", tensor->name), NULL;
    float *values = keep(blocks, (size_t)padded * sizeof(float));
    if (!values) return fail(tensors, "does not fit into memory", tensor->name), NULL;
    for (Size i = 0; i < number; i++) {
        values[i] = value_at(tensor, i);
        if (!isfinite(values[i])) return fail(tensors, "has weights that are not finite numbers", tensor->name), NULL;
    }
    return values;
}

/* The scales of a matrix of levels, or NULL. */
static const Tensor *scales_of(Tensors *tensors, const char *name, Size rows, Size cols) {
    char full[160];
    snprintf(full, sizeof full, "%.140s.scale", name);
    return tensor_of(tensors, full, 2, rows, cols);
}

/* --- layers ------------------------------------------------------------------------------------- */

/* One output: its K levels or values, and its scale. */
typedef struct {
    const Tensor *matrix, *scales;
    LayerSource source;
} Rows;

/* Whether each level times a scale is a finite number. */
static int is_scale(float scale) { return fabsf(scale) <= FLT_MAX / 128; }

static float scale_of(const Rows *rows, Size m) {
    return value_at(rows->scales,
                    rows->source.transposed ? m : m * rows->source.parts + rows->source.part);
}

static Size place_of(const LayerSource *source, Size m, Size k) {
    return source->transposed ? k * source->cols + m : m * source->cols + source->first + k;
}

static void read_levels(const Rows *rows, Size m, int8_t *levels) {
    const int8_t *stored = rows->matrix->values;
    const LayerSource *source = &rows->source;
    if (!source->transposed)
        memcpy(levels, stored + place_of(source, m, 0), (size_t)source->k);
    else
        for (Size k = 0; k < source->k; k++) levels[k] = stored[place_of(source, m, k)];
}

static int read_floats(const Rows *rows, Size m, float *values, int8_t *levels) {
    const LayerSource *source = &rows->source;
    if (rows->scales) {
        float scale = scale_of(rows, m);
        read_levels(rows, m, levels);
        for (Size k = 0; k < source->k; k++) values[k] = (float)levels[k] * scale;
        return is_scale(scale);
    }
    int finite = 1;
    for (Size k = 0; k < source->k; k++) {
        values[k] = value_at(rows->matrix, place_of(source, m, k));
        finite &= isfinite(values[k]) != 0;
    }
    return finite;
}

/* Levels and scale of an output whose weights are floats. */
static float quantize_row(const float *values, int8_t *levels, Size k) {
    float most = 0.0f;
    for (Size i = 0; i < k; i++) most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    float scale = most / WEIGHT_LEVELS;
    scale = scale < FLT_MIN ? FLT_MIN : scale;
    for (Size i = 0; i < k; i++) levels[i] = (int8_t)rintf(values[i] / scale);
    return scale;
}

static int32_t sum_of(const int8_t *levels, Size number) {
    int32_t sum = 0;
    for (Size i = 0; i < number; i++) sum += levels[i];
    return sum;
}

/* The levels of an output and its scale; `values` is room for K. Returns 0 if something is not finite. */
static int levels_of(const Rows *rows, Size m, int8_t *levels, float *values, float *scale) {
    if (!rows->scales) {
        if (!read_floats(rows, m, values, levels)) return 0;
        *scale = quantize_row(values, levels, rows->source.k);
        return 1;
    }
    *scale = scale_of(rows, m);
    read_levels(rows, m, levels);
    return is_scale(*scale);
}

static int pack_int8(Linear *layer, Tensors *tensors, Block **blocks, const Rows *rows) {
    Size width = layer->width;
    int8_t *packed = keep(blocks, (size_t)layer->stride * (size_t)width);
    int32_t *zeros = keep(blocks, (size_t)layer->stride * sizeof *zeros);
    float *scales = keep(blocks, (size_t)layer->stride * sizeof *scales);
    int8_t *levels = calloc(1, (size_t)width);
    float *values = malloc((size_t)width * sizeof *values);
    int good = packed && zeros && scales && levels && values;
    if (!good) fail(tensors, "does not fit into memory", rows->source.name);
    for (Size m = 0; good && m < layer->m; m++) {
        good = levels_of(rows, m, levels, values, &scales[m]);
        if (!good) fail(tensors, "has weights that are not finite numbers", rows->source.name);
        int8_t *to = packed + m / GROUP * GROUP * width + m % GROUP * QUAD;
        for (Size k = 0; k < width; k += QUAD) memcpy(to + k * GROUP, levels + k, QUAD);
        zeros[m] = ZERO_INPUT * sum_of(levels, width);
    }
    free(levels), free(values);
    layer->levels = packed, layer->zeros = zeros, layer->scales = scales;
    if (good && tensors->adds_pairs && !split_pair_sums(layer, blocks, packed))
        return fail(tensors, "does not fit into memory", rows->source.name);
    return good;
}

static int pack_floats(Linear *layer, Tensors *tensors, Block **blocks, const Rows *rows) {
    float *packed = keep(blocks, (size_t)layer->stride * (size_t)layer->width * sizeof *packed);
    float *values = calloc((size_t)layer->width, sizeof *values);
    int8_t *levels = malloc((size_t)layer->width);
    int good = packed && values && levels;
    if (!good) fail(tensors, "does not fit into memory", rows->source.name);
    for (Size m = 0; good && m < layer->m; m++) {
        good = read_floats(rows, m, values, levels);
        if (!good) fail(tensors, "has weights that are not finite numbers", rows->source.name);
        float *to = packed + m / GROUP * GROUP * layer->width + m % GROUP;
        for (Size k = 0; k < layer->width; k++) to[k * GROUP] = values[k];
    }
    free(values), free(levels);
    layer->weights = packed;
    return good;
}

static int find_rows(Rows *rows, Tensors *tensors, LayerSource source) {
    rows->source = source;
    rows->matrix = tensor_of(tensors, source.name, 2, source.rows, source.cols);
    rows->scales = NULL;
    if (!rows->matrix) return 0;
    if (rows->matrix->stored == STORED_INT8) {
        rows->scales = source.transposed ? scales_of(tensors, source.name, 1, source.cols)
                                         : scales_of(tensors, source.name, source.rows, source.parts);
        if (!rows->scales) return 0;
        if (rows->scales->stored == STORED_INT8) return fail(tensors, "has scales in int8", source.name);
    }
    return 1;
}

LayerSource whole_matrix(const char *name, const char *bias, Size rows, Size cols) {
    return (LayerSource){.name = name, .bias = bias, .rows = rows, .cols = cols, .k = cols, .parts = 1};
}

#define MAX_WIDTH (1 << 16) /* so that sums of levels fit into 32 bits */

int make_linear(Linear *layer, Tensors *tensors, Block **blocks, LayerSource source, int int8) {
    Rows rows;
    if (!find_rows(&rows, tensors, source)) return 0;
    memset(layer, 0, sizeof *layer);
    layer->int8 = int8;
    layer->k = source.k;
    layer->m = source.transposed ? source.cols : source.rows;
    layer->width = up(layer->k, PAIR), layer->stride = up(layer->m, GROUP);
    if (layer->width > MAX_WIDTH) return fail(tensors, "is too wide", source.name);
    const Tensor *bias = source.bias ? tensor_of(tensors, source.bias, 1, 1, layer->m) : NULL;
    if (source.bias && !bias) return 0;
    layer->bias = bias ? floats_of(tensors, blocks, bias, layer->m, layer->stride)
                       : keep(blocks, (size_t)layer->stride * sizeof(float));
    if (!layer->bias) return tensors->error[0] ? 0 : fail(tensors, "does not fit into memory", source.name);
    return int8 ? pack_int8(layer, tensors, blocks, &rows) : pack_floats(layer, tensors, blocks, &rows);
}

int add_bias(Linear *layer, Tensors *tensors, const char *name) {
    const Tensor *more = tensor_of(tensors, name, 1, 1, layer->m);
    if (!more) return 0;
    if (more->stored == STORED_INT8) return fail(tensors, "has levels without scales", name);
    float *bias = (float *)layer->bias;
    for (Size m = 0; m < layer->m; m++) {
        bias[m] += value_at(more, m);
        if (!isfinite(bias[m])) return fail(tensors, "has weights that are not finite numbers", name);
    }
    return 1;
}

int make_table(Table *table, Tensors *tensors, Block **blocks, const char *name, Size rows, Size cols,
               int int8) {
    Rows stored;
    if (!find_rows(&stored, tensors, whole_matrix(name, NULL, rows, cols))) return 0;
    size_t number = (size_t)rows * (size_t)cols;
    int8_t *levels = keep(blocks, int8 ? number : (size_t)cols);
    float *scales = keep(blocks, (size_t)rows * sizeof *scales);
    float *values = keep(blocks, (int8 ? (size_t)cols : number) * sizeof *values);
    if (!levels || !scales || !values) return fail(tensors, "does not fit into memory", name);
    for (Size row = 0; row < rows; row++) {
        int good = int8 ? levels_of(&stored, row, levels + row * cols, values, &scales[row])
                        : read_floats(&stored, row, values + row * cols, levels);
        if (!good) return fail(tensors, "has weights that are not finite numbers", name);
    }
    *table = (Table){cols, int8 ? levels : NULL, values, scales};
    return 1;
}

void table_row(const Table *table, int32_t word, float *to) {
    Size cols = table->cols;
    if (!table->levels) {
        memcpy(to, table->values + word * cols, (size_t)cols * sizeof *to);
        return;
    }
    for (Size i = 0; i < cols; i++) to[i] = (float)table->levels[word * cols + i] * table->scales[word];
}

const float *make_vector(Tensors *tensors, Block **blocks, const char *name, Size number) {
    float *values = keep(blocks, (size_t)number * sizeof *values);
    Linear zeros = {.m = number, .bias = values};
    return values && add_bias(&zeros, tensors, name) ? values : NULL;
}

int make_norm(LayerNorm *norm, Tensors *tensors, Block **blocks, const char *prefix, const char *name, Size size) {
    char gain[100], bias[100];
    snprintf(gain, sizeof gain, "%s%s.weight", prefix, name);
    snprintf(bias, sizeof bias, "%s%s.bias", prefix, name);
    norm->gain = make_vector(tensors, blocks, gain, size);
    norm->bias = norm->gain ? make_vector(tensors, blocks, bias, size) : NULL;
    return norm->bias != NULL;
}

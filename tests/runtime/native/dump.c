#include "dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Size number(Dump *dump) {
    uint64_t value = 0;
    if (dump->size - dump->at < 8) return dump->damaged = 1, 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)(unsigned char)dump->bytes[dump->at++] << (8 * i);
    return (Size)value;
}

/* A number of things that follow, each of at least `least` bytes. */
static Size count(Dump *dump, size_t least) {
    Size value = number(dump);
    if (value >= 0 && (size_t)value <= (dump->size - dump->at) / least) return value;
    dump->damaged = 1;
    return 0;
}

static const char *bytes(Dump *dump, Size *size) {
    *size = count(dump, 1);
    const char *found = dump->bytes + dump->at;
    dump->at += (size_t)*size;
    return found;
}

/* A text that ends with a zero byte, which the file has. */
static const char *text(Dump *dump) {
    Size size;
    const char *found = bytes(dump, &size);
    if (!size || found[size - 1]) dump->damaged = 1;
    return dump->damaged ? "" : found;
}

/* A list whose items are zero at first. */
static void *list(Dump *dump, Size items, size_t size) {
    void *found = calloc((size_t)items + 1, size);
    if (!found) dump->damaged = 1;
    return found;
}

static void read_tensors(Dump *dump, StoredTensors *stored) {
    static const Size SIZES[] = {4, 2, 1};
    Size items = count(dump, 48);
    stored->list = list(dump, items, sizeof *stored->list);
    for (Size i = 0; i < items && !dump->damaged; i++) {
        Tensor *one = &stored->list[i];
        one->name = text(dump);
        Size kind = number(dump), size;
        one->dims = (int)number(dump), one->rows = number(dump), one->cols = number(dump);
        one->values = bytes(dump, &size);
        if (kind < 0 || kind > 2 || size != one->rows * one->cols * SIZES[kind]) dump->damaged = 1;
        else one->stored = (Stored)kind;
        stored->tensors.number = i + 1;
    }
    stored->tensors.tensors = stored->list;
}

static void read_verifier(Dump *dump) {
    dump->shape.vocabulary = number(dump), dump->shape.size = number(dump);
    dump->shape.heads = number(dump), dump->shape.layers = number(dump);
    dump->shape.embedding_size = number(dump), dump->shape.generator_size = number(dump);
    read_tensors(dump, &dump->verifier);
}

static void read_sources(Dump *dump) {
    Size sources = count(dump, 8);
    dump->lengths = list(dump, sources, sizeof *dump->lengths);
    dump->sources = list(dump, sources, sizeof *dump->sources);
    for (Size n = 0; n < sources && !dump->damaged; n++) {
        Size length = dump->lengths[n] = count(dump, 8);
        dump->sources[n] = list(dump, length, sizeof **dump->sources);
        dump->num_sources = n + 1;
        for (Size i = 0; i < length && !dump->damaged; i++) {
            Size id = number(dump);
            if (id < 0 || id >= dump->sizes.vocabulary) dump->damaged = 1;
            dump->sources[n][i] = (int32_t)id;
        }
        if (!length) dump->damaged = 1;
    }
}

static int read_file(Dump *dump, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    size_t room = 1 << 16;
    dump->bytes = malloc(room);
    while (dump->bytes) {
        dump->size += fread(dump->bytes + dump->size, 1, room - dump->size, file);
        if (dump->size < room) break;
        char *more = realloc(dump->bytes, room *= 2);
        if (!more) free(dump->bytes);
        dump->bytes = more;
    }
    fclose(file);
    return dump->bytes != NULL;
}

int dump_read(Dump *dump, const char *path) {
    memset(dump, 0, sizeof *dump);
    if (!read_file(dump, path)) return 0;
    Sizes *sizes = &dump->sizes;
    sizes->vocabulary = number(dump), sizes->embedding = number(dump), sizes->hidden = number(dump);
    sizes->layers = number(dump), sizes->gate = (int)number(dump), sizes->spm = (int)number(dump);
    sizes->system = number(dump) ? TRANSFORMER : ENCDEC;
    sizes->encoder_layers = number(dump), sizes->heads = number(dump);
    sizes->attention_layer = number(dump), sizes->attention_head = number(dump);
    read_tensors(dump, &dump->model);
    dump->has_verifier = (int)number(dump);
    if (dump->has_verifier && !dump->damaged) read_verifier(dump);
    read_sources(dump);
    return !dump->damaged && dump->at == dump->size;
}

void dump_release(Dump *dump) {
    for (Size n = 0; n < dump->num_sources; n++) free(dump->sources[n]);
    free(dump->sources), free(dump->lengths);
    free(dump->model.list), free(dump->verifier.list), free(dump->bytes);
    memset(dump, 0, sizeof *dump);
}

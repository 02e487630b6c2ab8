/* What Python wrote for the driver: a model, a verifier and questions, in one file.

   All numbers are 64 bits, little-endian. A text is its length and its bytes. */

#ifndef LEDELINE_DUMP_H
#define LEDELINE_DUMP_H

#include "model.h"
#include "verifier.h"

typedef struct {
    Tensor *list;
    Tensors tensors;
} StoredTensors;

typedef struct {
    char *bytes;
    size_t size, at;
    int damaged;
    Sizes sizes;
    StoredTensors model, verifier;
    int has_verifier;
    VerifierShape shape;
    Size num_sources;
    Size *lengths;
    int32_t **sources;
} Dump;

/* Read a file; returns 0 if it cannot be read, or is no dump. */
int dump_read(Dump *dump, const char *path);
void dump_release(Dump *dump);

#endif

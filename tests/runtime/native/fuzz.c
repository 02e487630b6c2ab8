/* Hostile models and questions, made of bytes: shapes that are off, types that do not belong, weights that
   are no numbers, -128 among levels, options that no search has. Whatever the bytes are, the engine must
   refuse the model with a sentence or write with it, and all kinds of kernels must write the same.

   clang -fsanitize=fuzzer calls LLVMFuzzerTestOneInput; elsewhere (RANDOM_DRIVER) `fuzz COUNT SEED` makes
   the bytes itself. */

#include "run.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TENSORS 96
#define MAX_NAME 64

typedef struct {
    const uint8_t *at;
    size_t left;
    uint64_t state; /* of the numbers behind the last byte */
    int calm;       /* nothing is off but values */
} Bytes;

static unsigned byte(Bytes *bytes) {
    if (bytes->left) return bytes->left--, *bytes->at++;
    bytes->state = bytes->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(bytes->state >> 56);
}

static Size below(Bytes *bytes, Size limit) { return (Size)(byte(bytes) % (unsigned)limit); }

static int rarely(Bytes *bytes) { return byte(bytes) == 7 && !bytes->calm; }

static const Size ODD_SIZES[] = {0, 1, 2, 3, 4, 5, 15, 16, 17, 64, 127, 4096, 65535, 65536, 65537, (Size)1 << 22,
                                 (Size)1 << 31, ((Size)1 << 31) + 1, (Size)1 << 32, (Size)1 << 40, (Size)1 << 62, PTRDIFF_MAX,
                                 PTRDIFF_MAX - 1, -1, -2, PTRDIFF_MIN};

static Size odd_size(Bytes *bytes) { return ODD_SIZES[below(bytes, (Size)(sizeof ODD_SIZES / sizeof *ODD_SIZES))]; }

/* --- tensors ------------------------------------------------------------------------------------ */

typedef struct {
    Tensor list[MAX_TENSORS];
    char names[MAX_TENSORS][MAX_NAME];
    Tensors tensors;
} Made;

static float odd_float(Bytes *bytes) {
    static const float ODD[] = {0.0f, -0.0f, 1e-45f, -1e-39f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY, NAN, 1e30f, 127.5f, 1e-20f};
    return ODD[below(bytes, (Size)(sizeof ODD / sizeof *ODD))];
}

static void fill_values(Bytes *bytes, Stored stored, char *values, Size number, int odd) {
    for (Size i = 0; i < number; i++) {
        unsigned one = byte(bytes);
        float value = odd && one < 3 ? odd_float(bytes) : ((float)one - 127.5f) / 256.0f;
        uint16_t half = (uint16_t)(odd && one < 3 ? byte(bytes) << 8 | one : (one & 128u) << 8 | (0x2800u + (one & 127u) * 8u));
        if (stored == STORED_INT8) values[i] = (char)(one - 128);
        else if (stored == STORED_FLOAT16) memcpy(values + 2 * i, &half, 2);
        else memcpy(values + 4 * i, &value, 4);
    }
}

/* A tensor, mostly as it should be. Its values are exactly as long as its shape says, so that a sanitizer
   sees what is read behind them. */
static int add_one(Bytes *bytes, Made *made, const char *name, int dims, Size rows, Size cols, Stored stored, int odd) {
    static const Size SIZES[] = {4, 2, 1};
    if (made->tensors.number == MAX_TENSORS) return 0;
    Tensor *one = &made->list[made->tensors.number];
    if (rarely(bytes)) rows = below(bytes, 40);
    if (rarely(bytes)) cols = below(bytes, 40);
    if (rarely(bytes)) dims = (int)below(bytes, 4);
    if (rarely(bytes)) stored = (Stored)below(bytes, 3);
    char *values = malloc((size_t)(rows * cols * SIZES[stored]));
    if (rarely(bytes)) return free(values), 1; /* missing */
    fill_values(bytes, stored, values, rows * cols, odd);
    snprintf(made->names[made->tensors.number], MAX_NAME, "%s", name);
    *one = (Tensor){made->names[made->tensors.number], stored, dims, rows, cols, values, 0};
    made->tensors.number++;
    return 1;
}

static void add_vector(Bytes *bytes, Made *made, const char *name, Size number, int odd) {
    add_one(bytes, made, name, 1, 1, number, byte(bytes) & 1 ? STORED_FLOAT32 : STORED_FLOAT16, odd);
}

/* A matrix, in levels with scales or in floats. */
static void add_matrix(Bytes *bytes, Made *made, const char *name, Size rows, Size cols, Size parts, int transposed, int odd) {
    char scale[MAX_NAME];
    int levels = byte(bytes) & 1;
    add_one(bytes, made, name, 2, rows, cols, levels ? STORED_INT8 : byte(bytes) & 1 ? STORED_FLOAT16 : STORED_FLOAT32, odd);
    snprintf(scale, sizeof scale, "%s.scale", name);
    if (levels) add_one(bytes, made, scale, 2, transposed ? 1 : rows, transposed ? cols : parts, STORED_FLOAT32, odd);
}

static void drop(Made *made) {
    for (Size i = 0; i < made->tensors.number; i++) free((void *)(uintptr_t)made->list[i].values);
}

/* --- a generator -------------------------------------------------------------------------------- */

static void make_generator(Bytes *bytes, Made *made, Sizes sizes, int odd) {
    Size v = sizes.vocabulary, d = sizes.embedding, h = sizes.hidden;
    char name[MAX_NAME];
    memset(made, 0, sizeof *made);
    made->tensors.tensors = made->list;
    add_matrix(bytes, made, "encoder.embedding.weight", v, d, 1, 0, odd);
    add_matrix(bytes, made, "decoder.embedding.weight", v, d, 1, 0, odd);
    for (Size n = 0; n < sizes.layers; n++)
        for (int side = 0; side < 2; side++) {
            const char *end = side ? "_reverse" : "";
            snprintf(name, sizeof name, "encoder.layers.%td.weight_ih_l0%s", n, end);
            add_matrix(bytes, made, name, 4 * h, n ? h : d, 1, 0, odd);
            snprintf(name, sizeof name, "encoder.layers.%td.weight_hh_l0%s", n, end);
            add_matrix(bytes, made, name, 4 * h, h, 1, 0, odd);
            snprintf(name, sizeof name, "encoder.layers.%td.bias_ih_l0%s", n, end);
            add_vector(bytes, made, name, 4 * h, odd);
            snprintf(name, sizeof name, "encoder.layers.%td.bias_hh_l0%s", n, end);
            add_vector(bytes, made, name, 4 * h, odd);
        }
    add_matrix(bytes, made, "decoder.first.weight", 4 * h, d + 2 * h, 2, 0, odd);
    add_vector(bytes, made, "decoder.first.bias", 4 * h, odd);
    for (Size n = 1; n < sizes.layers; n++) {
        snprintf(name, sizeof name, "decoder.upper.%td.weight", n - 1);
        add_matrix(bytes, made, name, 4 * h, 2 * h, 1, 0, odd);
        snprintf(name, sizeof name, "decoder.upper.%td.bias", n - 1);
        add_vector(bytes, made, name, 4 * h, odd);
    }
    add_matrix(bytes, made, "decoder.attention.bilinear", h, h, 1, 1, odd);
    add_matrix(bytes, made, "decoder.attention.mix.weight", h, 2 * h, 2, 0, odd);
    add_matrix(bytes, made, "output.weight", v, h, 1, 0, odd);
    add_vector(bytes, made, "output.bias", v, odd);
    if (sizes.spm || rarely(bytes)) {
        add_matrix(bytes, made, "spm.output.weight", v, h, 1, 0, odd);
        add_vector(bytes, made, "spm.output.bias", v, odd);
    }
    if (!sizes.gate && !rarely(bytes)) return;
    add_matrix(bytes, made, "gate.of_state.weight", h, h, 1, 0, odd);
    add_matrix(bytes, made, "gate.of_sentence.weight", h, h, 1, 0, odd);
    add_vector(bytes, made, "gate.of_sentence.bias", h, odd);
}

/* --- a verifier --------------------------------------------------------------------------------- */

static void add_linear(Bytes *bytes, Made *made, const char *name, Size inputs, Size outputs, int odd) {
    char full[MAX_NAME];
    snprintf(full, sizeof full, "%s.weight", name);
    add_matrix(bytes, made, full, outputs, inputs, 1, 0, odd);
    snprintf(full, sizeof full, "%s.bias", name);
    add_vector(bytes, made, full, outputs, odd);
}

static void add_norm(Bytes *bytes, Made *made, const char *name, Size size, int odd) {
    char full[MAX_NAME];
    snprintf(full, sizeof full, "%s.weight", name);
    add_vector(bytes, made, full, size, odd);
    snprintf(full, sizeof full, "%s.bias", name);
    add_vector(bytes, made, full, size, odd);
}

static void make_judge(Bytes *bytes, Made *made, VerifierShape shape, int odd) {
    static const char *const OF_STATES[] = {"lede", "at", "before", "behind", "skipped", "state_before", "state_after"};
    static const char *const OF_WORDS[] = {"lede_word", "word_before", "word_behind", "words_skipped", "word"};
    Size d = shape.size;
    char name[MAX_NAME];
    memset(made, 0, sizeof *made);
    made->tensors.tensors = made->list;
    add_vector(bytes, made, "classes", shape.vocabulary, odd);
    add_matrix(bytes, made, "embedding.weight", shape.vocabulary, shape.embedding_size, 1, 0, odd);
    for (int i = 0; i < 7; i++) add_linear(bytes, made, OF_STATES[i], shape.generator_size, d, odd);
    for (int i = 0; i < 5; i++) add_linear(bytes, made, OF_WORDS[i], shape.embedding_size, d, odd);
    add_linear(bytes, made, "scalars", 12, d, odd);
    add_norm(bytes, made, "lede_norm", d, odd);
    for (Size n = 0; n < shape.layers; n++) {
        const struct { const char *name; Size inputs, outputs; } LAYERS[] = {
            {"lede_key_value", d, 2 * d}, {"query_key_value", d, 3 * d}, {"mix", d, d}, {"up", d, 4 * d}, {"down", 4 * d, d}};
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "layers.%td.%s", n, LAYERS[i].name);
            add_linear(bytes, made, name, LAYERS[i].inputs, LAYERS[i].outputs, odd);
        }
        snprintf(name, sizeof name, "layers.%td.attention_norm", n);
        add_norm(bytes, made, name, d, odd);
        snprintf(name, sizeof name, "layers.%td.hidden_norm", n);
        add_norm(bytes, made, name, d, odd);
    }
    add_norm(bytes, made, "norm", d, odd);
    add_linear(bytes, made, "pool", 3 * d, d, odd);
    add_linear(bytes, made, "label_output", d, NUM_LABELS, odd);
    add_linear(bytes, made, "doubt_output", d, 1, odd);
    add_linear(bytes, made, "kind_output", d, NUM_ERROR_KINDS, odd);
}

/* --- a case ------------------------------------------------------------------------------------- */

typedef struct {
    Sizes sizes;
    VerifierShape shape;
    int int8, odd;
    Made generator, judge;
    int32_t ids[4][70];
    int32_t *sources[4];
    Size lengths[4], number;
    Task task;
} Case;

static Size *size_of(Sizes *sizes, Size place) {
    Size *all[] = {&sizes->vocabulary, &sizes->embedding, &sizes->hidden, &sizes->layers};
    return all[place];
}

static void make_options(Bytes *bytes, SearchOptions *o) {
    *o = (SearchOptions){.beam = 1 + below(bytes, 9), .max_length = below(bytes, 12) - 1, .block_ngrams = below(bytes, 4),
                         .recombine = below(bytes, 4), .min_length = below(bytes, 6), .keep_finished = (int)below(bytes, 2),
                         .forbid_unknown = (int)below(bytes, 2), .stop_early = (int)below(bytes, 2),
                         .keep_states = (int)below(bytes, 2), .max_states = below(bytes, 5) - 1};
    o->n_best = 1 + below(bytes, o->beam);
    if (rarely(bytes)) o->max_length = PTRDIFF_MAX;
    if (rarely(bytes)) o->block_ngrams = PTRDIFF_MAX;
    if (rarely(bytes)) o->recombine = PTRDIFF_MAX;
}

static void make_case(Bytes *bytes, Case *one) {
    memset(one, 0, sizeof *one);
    bytes->calm = byte(bytes) & 1, one->odd = byte(bytes) % 4 == 0, one->int8 = (int)below(bytes, 2);
    one->sizes = (Sizes){.vocabulary = 4 + below(bytes, 40), .embedding = 1 + below(bytes, 20), .hidden = 1 + below(bytes, 20),
                         .layers = 1 + below(bytes, 2), .gate = (int)below(bytes, 2), .spm = (int)below(bytes, 2)};
    Size heads = 1 + below(bytes, 3);
    one->shape = (VerifierShape){one->sizes.vocabulary, heads * (1 + below(bytes, 6)), heads, 1 + below(bytes, 2),
                                 1 + below(bytes, 9), one->sizes.hidden};
    make_generator(bytes, &one->generator, one->sizes, one->odd);
    make_judge(bytes, &one->judge, one->shape, one->odd);
    if (rarely(bytes)) *size_of(&one->sizes, below(bytes, 4)) = odd_size(bytes);
    if (rarely(bytes)) one->shape.heads = odd_size(bytes);
    if (rarely(bytes)) one->shape.size = odd_size(bytes);
    one->number = 1 + below(bytes, 4);
    for (Size n = 0; n < one->number; n++) {
        one->lengths[n] = 1 + below(bytes, rarely(bytes) ? 70 : 9), one->sources[n] = one->ids[n];
        for (Size i = 0; i < one->lengths[n]; i++)
            one->ids[n][i] = (int32_t)(byte(bytes) % (unsigned)(one->shape.vocabulary));
    }
    make_options(bytes, &one->task.options);
    one->task.give_up = rarely(bytes) ? 1 + below(bytes, 3) : 0, one->task.forbid = (int)below(bytes, 2);
}

/* How cases ended. */
static struct { long cases, refused, verifier_refused, written, headlines; } counts;

static _Noreturn void complain(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static void is_sentence(const Tensors *tensors) {
    if (!memchr(tensors->error, 0, sizeof tensors->error)) complain("an error has no end");
    if (strchr(tensors->error, '\n')) complain("an error has several lines");
}

/* Run a case with some kernels; returns whether the model was taken. */
static int run_case(Case *one, const Kernels *kernels, Found *found, int *judged) {
    Model model;
    Verifier verifier;
    if (!model_init(&model, &one->generator.tensors, one->sizes, one->int8, kernels)) return is_sentence(&one->generator.tensors), 0;
    *judged = verifier_init(&verifier, &one->judge.tensors, one->shape, one->int8, kernels);
    if (!*judged) is_sentence(&one->judge.tensors);
    if (!run_batch(&model, *judged ? &verifier : NULL, one->sources, one->lengths, 0, one->number, &one->task, found))
        complain("there was no memory");
    if (*judged) verifier_release(&verifier);
    model_release(&model);
    return 1;
}

/* Whether two kinds wrote the same. What is no number may have other bits. */
static void compare(const Found *one, const Found *other, int odd) {
    if (one->number != other->number) complain("kinds found other numbers of headlines");
    for (Size i = 0; i < one->number; i++) {
        const FoundHeadline *a = &one->all[i], *b = &other->all[i];
        if (a->length != b->length || memcmp(a->ids, b->ids, (size_t)a->length * sizeof *a->ids)) complain("kinds wrote other words");
        if (odd) continue;
        if (memcmp(&a->cost, &b->cost, sizeof a->cost) || memcmp(a->labels, b->labels, sizeof a->labels) || a->seen != b->seen ||
            a->attention != b->attention || a->predictions != b->predictions || a->verdict != b->verdict)
            complain("kinds have other bits");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static Case one;
    Bytes bytes = {data, size, 0x9e3779b97f4a7c15u, 0};
    Found first = {NULL, 0};
    int judged = 0, again = 0, taken = -1;
    for (size_t i = 0; i < size && i < 8; i++) bytes.state ^= (uint64_t)data[i] << (8 * i);
    make_case(&bytes, &one);
    for (int kind = 0; kind < NUM_KINDS && taken; kind++) {
        const Kernels *kernels = kernels_of((Kind)kind);
        Found found = {NULL, 0};
        if (!kernels) continue;
        int now = run_case(&one, kernels, taken < 0 ? &first : &found, taken < 0 ? &judged : &again);
        if (taken >= 0 && (now != taken || again != judged)) complain("kinds take other models");
        if (taken >= 0) compare(&first, &found, one.odd);
        taken = now;
        found_release(&found);
    }
    counts.cases++, counts.refused += !taken, counts.written += taken, counts.verifier_refused += taken && !judged;
    counts.headlines += first.number;
    found_release(&first), drop(&one.generator), drop(&one.judge);
    return 0;
}

#ifdef RANDOM_DRIVER
int main(int number, char **arguments) {
    long cases = number > 1 ? atol(arguments[1]) : 1000;
    uint64_t seed = number > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    for (long i = 0; i < cases; i++) {
        uint64_t start = (seed << 32) + (uint64_t)i;
        uint8_t data[8];
        memcpy(data, &start, sizeof data);
        LLVMFuzzerTestOneInput(data, sizeof data);
    }
    printf("%ld cases: %ld models refused, %ld taken; %ld verifiers refused; %ld headlines written\n", counts.cases, counts.refused,
           counts.written, counts.verifier_refused, counts.headlines);
    return 0;
}
#endif

/* One set of kernels for each kind of processor, and the choice among them. */

#include "kernels.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define X86 1
#include <cpuid.h>
#include <immintrin.h>
/* Older compilers do not know AVX-VNNI; NO_AVXVNNI stands for them. Apple's Clang counts one ahead. */
#if defined(__apple_build_version__)
#define FIRST_WITH_AVXVNNI 13
#define COMPILER_VERSION __clang_major__
#elif defined(__clang__)
#define FIRST_WITH_AVXVNNI 12
#define COMPILER_VERSION __clang_major__
#else
#define FIRST_WITH_AVXVNNI 11
#define COMPILER_VERSION __GNUC__
#endif
#if COMPILER_VERSION >= FIRST_WITH_AVXVNNI && !defined(NO_AVXVNNI)
#define AVXVNNI 1
#endif
#elif defined(__aarch64__) && (defined(__GNUC__) || defined(__clang__))
#define ARM 1
#include <arm_neon.h>
/* Clang before 16 has these products only where all of the program may use them. */
#if !defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_DOTPROD)
#define DOTPROD 1
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define ALWAYS_INLINE __attribute__((always_inline))
#else
#error "the runtime needs GCC, Clang or MinGW"
#endif

#if defined(__clang__)
#define PRAGMA(text) _Pragma(#text)
#define BEGIN_TARGET(features) \
    PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define END_TARGET PRAGMA(clang attribute pop)
#else
#define PRAGMA(text) _Pragma(#text)
#define BEGIN_TARGET(features) PRAGMA(GCC push_options) PRAGMA(GCC target(features))
#define END_TARGET PRAGMA(GCC pop_options)
#endif

typedef uint32_t __attribute__((may_alias)) Bits; /* those of a float */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* A logarithm in double: x = 2^e m with m between 1 / sqrt(2) and sqrt(2), and
   log m = 2 artanh(s), s = (m - 1) / (m + 1), as a series. The error is below 1e-15. */
double natural_log(double x) {
    int e;
    double m = frexp(x, &e); /* exact */
    if (m < 0.70710678118654752) m *= 2.0, e--;
    double s = (m - 1.0) / (m + 1.0), square = s * s, sum = 0.0;
    for (int i = 21; i > 0; i -= 2) sum = sum * square + 1.0 / i;
    return 2.0 * s * sum + e * 0.69314718055994531;
}

#define NAME(name) JOIN(portable, name)
#define PART 16
#include "kernels_body.h"
#undef NAME
#undef PART

#if defined(X86) || defined(ARM)
#include "int8_halves.h"

#define NAME(name) JOIN(HALVES, name)
#define PART 16
#define INT8_HALVES
#include "kernels_body.h"
#undef INT8_HALVES
#undef NAME
#undef PART
#endif

#ifdef X86

BEGIN_TARGET("avx2")
#define NAME(name) JOIN(avx2, name)
#define PART 32
#define INT8_PAIRS
#include "kernels_body.h"
#undef INT8_PAIRS
#undef NAME
#undef PART
END_TARGET

#ifdef AVXVNNI
BEGIN_TARGET("avx2,avxvnni")
#define NAME(name) JOIN(avxvnni, name)
#define PART 32
#define INT8_AVXVNNI
#include "kernels_body.h"
#undef INT8_AVXVNNI
#undef NAME
#undef PART
END_TARGET
#endif

#if defined(__clang__) || __GNUC__ < 11 /* GCC 10 does not know the last feature */
BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx2")
#else
BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx2,prefer-vector-width=512")
#endif
#define NAME(name) JOIN(avx512, name)
#define PART 64
#define INT8_PAIRS
#include "kernels_body.h"
#undef INT8_PAIRS
#undef NAME
#undef PART
END_TARGET

#if defined(__clang__) || __GNUC__ < 11
BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2")
#else
BEGIN_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,prefer-vector-width=512")
#endif
#define NAME(name) JOIN(vnni, name)
#define PART 64
#define INT8_VNNI
#include "kernels_body.h"
#undef INT8_VNNI
#undef NAME
#undef PART
END_TARGET

#endif

#ifdef DOTPROD
BEGIN_TARGET("arch=armv8.2-a+dotprod")
#define NAME(name) JOIN(dotprod, name)
#define PART 16
#define INT8_DOTPROD
#include "kernels_body.h"
#undef INT8_DOTPROD
#undef NAME
#undef PART
END_TARGET
#endif

#ifdef AVXVNNI
/* Not every compiler knows this feature by name. The system must save the registers, too, which AVX2
   shows. */
static int has_avxvnni(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#endif

#ifdef DOTPROD
static int has_dotprod(void) {
#if defined(__linux__)
    return (getauxval(AT_HWCAP) >> 20 & 1) != 0; /* ASIMDDP */
#elif defined(__APPLE__)
    return 1; /* all of Apple's 64-bit desktop processors have it */
#else
    return 0;
#endif
}
#endif

static const char *const NAMES[NUM_KINDS] = {"portable", "sse2", "avx2", "avxvnni", "avx512", "vnni", "neon", "dotprod"};

const char *kind_name(Kind kind) { return NAMES[kind]; }

int kind_of(const char *name) {
    for (int kind = 0; kind < NUM_KINDS; kind++)
        if (strcmp(name, NAMES[kind]) == 0) return kind;
    return -1;
}

const Kernels *kernels_of(Kind kind) {
    if (kind == KIND_PORTABLE) return &portable_kernels;
#ifdef X86
    if (kind == KIND_SSE2) return &sse2_kernels;
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2");
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (kind == KIND_AVX2 && avx2) return &avx2_kernels;
#ifdef AVXVNNI
    if (kind == KIND_AVXVNNI && avx2 && has_avxvnni()) return &avxvnni_kernels;
#endif
    if (kind == KIND_AVX512 && avx512) return &avx512_kernels;
    if (kind == KIND_VNNI && avx512 && __builtin_cpu_supports("avx512vnni")) return &vnni_kernels;
#endif
#ifdef ARM
    if (kind == KIND_NEON) return &neon_kernels;
#endif
#ifdef DOTPROD
    if (kind == KIND_DOTPROD && has_dotprod()) return &dotprod_kernels;
#endif
    return NULL;
}

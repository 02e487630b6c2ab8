/* The mode in which a thread computes floats: how it rounds, and whether numbers near 0 become 0. Other
   libraries of a process may have changed it; what the engine promises holds in the default. */

#ifndef LEDELINE_FLOAT_MODE_H
#define LEDELINE_FLOAT_MODE_H

#if defined(__x86_64__)
#include <xmmintrin.h>

typedef unsigned FloatMode;

static inline FloatMode get_float_mode(void) { return _mm_getcsr(); }
static inline void set_float_mode(FloatMode mode) { _mm_setcsr(mode); }
#define DEFAULT_FLOAT_MODE 0x1f80u /* nearest, nothing becomes 0, no exception stops the process */

#elif defined(__aarch64__)
#include <stdint.h>

typedef uint64_t FloatMode;

static inline FloatMode get_float_mode(void) {
    FloatMode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void set_float_mode(FloatMode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#define DEFAULT_FLOAT_MODE 0

#else

typedef int FloatMode;

static inline FloatMode get_float_mode(void) { return 0; }
static inline void set_float_mode(FloatMode mode) { (void)mode; }
#define DEFAULT_FLOAT_MODE 0

#endif

/* Take the default, and go back to what was before. What is computed between the two must be behind a call
   that is not inlined, for compilers know nothing of modes. */
static inline FloatMode enter_float_mode(void) {
    FloatMode before = get_float_mode();
    set_float_mode(DEFAULT_FLOAT_MODE);
    return before;
}
static inline void leave_float_mode(FloatMode before) { set_float_mode(before); }

#endif

/* SPDX-License-Identifier: MIT */
/*
 * compiler.h: what compilers offer beyond C, by names of our own
 *
 * The tree is C17 without extensions but for `base` and `kernels`. Elsewhere these stand for what makes
 * warnings or speed and changes no result, so that a compiler that has none of it may leave it out. Machines
 * that the library cannot be right on are refused here too.
 */
#ifndef PE_BASE_COMPILER_H
#define PE_BASE_COMPILER_H

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "posenc needs a little-endian machine: small floats, and files, are read as they lie in memory"
#endif

#if defined(__MINGW32__)
#define PE_PRINTF(format_at, first) __attribute__((format(gnu_printf, format_at, first)))
#elif defined(__GNUC__)
#define PE_PRINTF(format_at, first) __attribute__((format(printf, format_at, first)))
#else
#define PE_PRINTF(format_at, first)
#endif

/* What glibc's CMPLX is; it hides that from clang. */
#if defined(__GNUC__)
#define PE_COMPLEX(x, y) __builtin_complex((double)(x), (double)(y))
#else
#define PE_COMPLEX(x, y) CMPLX(x, y)
#endif

#if defined(__GNUC__)
#define PE_INLINE static inline __attribute__((always_inline))
/* Asks memory for a line; `locality`: 3 for all caches, 0 for none. */
#define PE_PREFETCH(at, writes, locality) __builtin_prefetch(at, writes, locality)
/* The numbers may have changed: nothing is worked out before it, or for several rounds at once. */
#define PE_OPAQUE(a, b) __asm__ volatile("" : "+r"(a), "+r"(b))
#else
#define PE_INLINE                         static inline
#define PE_PREFETCH(at, writes, locality) ((void)(at))
#define PE_OPAQUE(a, b)                   ((void)0)
#endif

#endif

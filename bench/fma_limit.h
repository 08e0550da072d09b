/* SPDX-License-Identifier: MIT */
/*
 * bench/fma_limit.h: the multiply-add limit that the benchmarks are held against
 */
#ifndef BENCH_FMA_LIMIT_H
#define BENCH_FMA_LIMIT_H

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <posenc/posenc.h>
#include <string.h>

#include "clock.h"

enum { CHAINS = 12 };

/* ---- the limit: CHAINS independent multiply-adds, as wide as the kernels in use ---- */

/* `multiply_add` is the instruction itself: compilers here do not fuse a*b+c on their own. */
#define FMA_LOOP(name, wide, attribute, set, multiply_add)                                             \
    attribute static float name(long n)                                                                \
    {                                                                                                  \
        wide       x[CHAINS];                                                                          \
        const wide a = set(0.999f), b = set(0.001f);                                                   \
        float      lanes[sizeof(wide) / sizeof(float)];                                                \
        for (int c = 0; c < CHAINS; c++)                                                               \
            x[c] = set(0.001f * (float)c);                                                             \
        for (long i = 0; i < n; i++)                                                                   \
            _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) x[c] = multiply_add(x[c], a, b); \
        for (int c = 1; c < CHAINS; c++)                                                               \
            x[0] = multiply_add(x[0], a, x[c]);                                                        \
        memcpy(lanes, x, sizeof lanes);                                                                \
        return lanes[0];                                                                               \
    }

typedef float four __attribute__((vector_size(16)));

static inline four set_four(float x)
{
    return (four){x, x, x, x};
}

static inline four multiply_add_four(four a, four b, four c)
{
    return a * b + c; /* the baseline has no fused one, and the plain kernels have none either */
}

FMA_LOOP(fma_plain, four, , set_four, multiply_add_four)
#ifdef __x86_64__
FMA_LOOP(fma_avx2, __m256, __attribute__((target("avx2,fma"))), _mm256_set1_ps, _mm256_fmadd_ps)
FMA_LOOP(fma_avx512, __m512, __attribute__((target("avx512f"))), _mm512_set1_ps, _mm512_fmadd_ps)
#endif

static const struct {
    const char *isa;
    int         lanes;
    float (*loop)(long n);
} limits[] = {
    {"plain", 4, fma_plain},
#ifdef __x86_64__
    {"avx2", 8, fma_avx2},
    {"avx512", 16, fma_avx512},
    {"avx512bf16", 16, fma_avx512},
#endif
};

/* Floating point operations per second of the loop for the instruction set in use. */
static inline double fma_limit(void)
{
    static volatile float sink;
    const long            n = 4000000;
    size_t                i = 0;
    while (strcmp(limits[i].isa, posenc_isa()) != 0)
        i++;
    const double start = now();
    sink               = limits[i].loop(n);
    (void)sink;
    return 2.0 * (double)n * CHAINS * limits[i].lanes / (now() - start);
}

#endif

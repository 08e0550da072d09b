/* SPDX-License-Identifier: MIT */
/*
 * guarded.h: float buffers that notice a write where none is allowed
 *
 * A buffer is filled with one NaN whose bits no kernel produces, with room before and behind. The test writes
 * its inputs, runs a kernel, and says which elements may have changed; every other element must still have
 * its bits. The NaN also betrays a kernel that computes with what it should not read.
 */
#ifndef TESTS_KERNELS_GUARDED_H
#define TESTS_KERNELS_GUARDED_H

#include <math.h>
#include <posenc/registry.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernels/kernels.h"

enum { GUARD = 64, CANARY = 0x7fc5a5a5 };

typedef struct guarded {
    float  *memory, *at, *before; /* at: behind the guard; before: what it held when the kernel began */
    int64_t count;
} guarded;

static inline guarded guarded_make(int64_t count)
{
    const int64_t all = count + 2 * GUARD;
    guarded       g = {malloc((size_t)all * sizeof(float)), NULL, malloc((size_t)all * sizeof(float)), count};
    for (int64_t i = 0; i < all; i++)
        g.memory[i] = pe_half_bits_to_float(CANARY);
    g.at = g.memory + GUARD;
    return g;
}

static inline void guarded_free(guarded *g)
{
    free(g->memory);
    free(g->before);
}

/* Call when inputs are written, before the kernel. */
static inline void guarded_remember(guarded *g)
{
    memcpy(g->before, g->memory, (size_t)(g->count + 2 * GUARD) * sizeof(float));
}

/* Rows [R, columns] of the buffer may have changed; returns the index of another element that did, or -1. */
static inline int64_t guarded_changed(const guarded *g, int64_t stride, int64_t R, int64_t columns)
{
    for (int64_t i = -GUARD; i < g->count + GUARD; i++) {
        const int allowed = i >= 0 && stride > 0 && i / stride < R && i % stride < columns;
        if (!allowed && memcmp(&g->at[i], &g->before[i + GUARD], sizeof(float)) != 0)
            return i < 0 ? g->count - i : i;
    }
    return -1;
}

static inline int64_t padded(int64_t n)
{
    return (n + PE_LANES - 1) / PE_LANES * PE_LANES;
}

/* Element (r,c) of a random matrix: normal numbers of a stream. */
static inline void fill_random(float *x, int64_t stride, int64_t R, int64_t columns, const char *name,
                               double scale)
{
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < columns; c++)
            x[r * stride + c] = (float)(scale * posenc_random_normal(9, name, (uint64_t)(r * 4096 + c)));
}

/* One ulp of the float nearest to x. */
static inline double ulp_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

#endif

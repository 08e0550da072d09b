/* SPDX-License-Identifier: MIT */
/*
 * vec_plain.h: the vector layer in portable C, four floats
 *
 * Compilers' vector extensions (gcc, clang) on whatever the baseline has: SSE2, NEON, or scalars. There is no
 * fused multiply-add in the baseline, so vfma rounds twice here: results differ from other widths in the last
 * bit.
 */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"

enum { VL = 4, BLOCK_VECS = 4, BLOCK_ROWS = 2, ROWS_OF_3 = 2, ROWS_OF_2 = 4, ROWS_OF_1 = 8 };

typedef float   vec __attribute__((vector_size(16)));
typedef int32_t ivec __attribute__((vector_size(16)));

static inline vec vload(const float *p)
{
    vec x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void vstore(float *p, vec x)
{
    memcpy(p, &x, sizeof x);
}

static inline vec vset(float x)
{
    return (vec){x, x, x, x};
}

static inline vec vadd(vec a, vec b)
{
    return a + b;
}

static inline vec vsub(vec a, vec b)
{
    return a - b;
}

static inline vec vmul(vec a, vec b)
{
    return a * b;
}

static inline vec vdiv(vec a, vec b)
{
    return a / b;
}

static inline vec vfma(vec a, vec b, vec c)
{
    return a * b + c;
}

static inline vec vfms(vec a, vec b, vec c)
{
    return a * b - c;
}

/* where(mask, a, b): mask lanes are all ones or zeros */
static inline vec vwhere(ivec mask, vec a, vec b)
{
    ivec x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = (x & mask) | (y & ~mask);
    memcpy(&a, &x, sizeof a);
    return a;
}

/* vfma on one number, rounded as vfma rounds */
static inline float fma_of_one(float a, float b, float c)
{
    return a * b + c;
}

static inline vec vmax(vec a, vec b)
{
    return vwhere(a > b, a, b);
}

/* a if low <= lane number + first < high, else b */
static inline vec vwhere_lanes(int32_t first, int32_t low, int32_t high, vec a, vec b)
{
    const ivec lane = {first, first + 1, first + 2, first + 3};
    return vwhere((lane >= low) & (lane < high), a, b);
}

static inline float vhmax(vec x)
{
    const float a = x[0] > x[1] ? x[0] : x[1], b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
}

static inline float vhsum(vec x)
{
    return (x[0] + x[2]) + (x[1] + x[3]);
}

/* neighbours exchanged: x1 x0 x3 x2 */
static inline vec vswap(vec x)
{
    return (vec){x[1], x[0], x[3], x[2]};
}

/* x0 x0 x1 x1: from VL/2 floats at p */
static inline vec vload_twice(const float *p)
{
    return (vec){p[0], p[0], p[1], p[1]};
}

/* -x0 x1 -x2 x3 */
static inline vec vnegate_even(vec x)
{
    return x * (vec){-1, 1, -1, 1};
}

/* Keeps the compiler from folding a reused load into each of its uses (then the loads, not the
   multiplications, would be the limit). */
static inline vec vkeep(vec x)
{
    return x;
}

#include "kernels/vec_four.h"

#endif

/* SPDX-License-Identifier: MIT */
/*
 * vec_plain.h: the vector layer in portable C, four floats
 *
 * Compilers' vector extensions (gcc, clang) on whatever the baseline has: SSE2, NEON, or scalars. There is no fused
 * multiply-add in the baseline, so vfma rounds twice here: results differ from other widths in the last bit.
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

/* t, as vscale2 wants it: cut where 2^t is nothing */
static inline vec vcut(vec t)
{
    return vmax(vset(-127.0f), t);
}

/* t less the nearest whole number; |t| < 2^22: adding and subtracting leaves that */
static inline vec vfraction(vec t)
{
    const vec magic = vset(0x1.8p23f);
    return t - ((t + magic) - magic);
}

/* x * 2^k for whole k from -127 on; 0 for -127 */
static inline vec vscale2(vec x, vec k)
{
    const vec magic = vset(0x1.8p23f + 127); /* k + 127 becomes the last bits, then the exponent */
    uint32_t  bits __attribute__((vector_size(16)));
    k += magic;
    memcpy(&bits, &k, sizeof bits);
    bits <<= 23;
    memcpy(&k, &bits, sizeof k);
    return x * k;
}

/* max of two of which one is above 0; of others, one that is not above 0 either */
static inline vec vmax_positive(vec a, vec b)
{
    return vmax(a, b);
}

/* is a > b in some lane? */
static inline int vany_above(vec a, vec b)
{
    const ivec above = a > b;
    return (above[0] | above[1] | above[2] | above[3]) != 0;
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

/* rows become columns */
static inline void vtranspose(vec x[4])
{
    const vec a = x[0], b = x[1], c = x[2], d = x[3];
    for (int i = 0; i < 4; i++)
        x[i] = (vec){a[i], b[i], c[i], d[i]};
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

/* Queries and keys that cache_scores multiplies at once. */
enum { DECODE_ROWS = 2, DECODE_KEYS = 2, VALUE_ROWS = 2, VALUE_ALSO = 0, VALUE_VECS = 4 };

/* Four numbers of 16 bits as floats. */
static inline vec vload_bf16(const uint16_t *p)
{
    return (vec){pe_bf16_to_float(p[0]), pe_bf16_to_float(p[1]), pe_bf16_to_float(p[2]),
                 pe_bf16_to_float(p[3])};
}

/* 2 VL numbers of bf16: those at even places, and at odd ones. */
static inline void vload_bf16_two(const uint16_t *p, vec *even, vec *odd)
{
    *even =
        (vec){pe_bf16_to_float(p[0]), pe_bf16_to_float(p[2]), pe_bf16_to_float(p[4]), pe_bf16_to_float(p[6])};
    *odd =
        (vec){pe_bf16_to_float(p[1]), pe_bf16_to_float(p[3]), pe_bf16_to_float(p[5]), pe_bf16_to_float(p[7])};
}

/* Two neighbouring vectors become the even and the odd places of both; vunite undoes it. */
static inline void vpart(vec *a, vec *b)
{
    const vec x = *a, y = *b;
    *a = (vec){x[0], x[2], y[0], y[2]};
    *b = (vec){x[1], x[3], y[1], y[3]};
}

static inline void vunite(vec *a, vec *b)
{
    const vec x = *a, y = *b;
    *a = (vec){x[0], y[0], x[1], y[1]};
    *b = (vec){x[2], y[2], x[3], y[3]};
}

static inline vec vload_f16(const uint16_t *p)
{
    return (vec){pe_f16_to_float(p[0]), pe_f16_to_float(p[1]), pe_f16_to_float(p[2]), pe_f16_to_float(p[3])};
}

/* sums of lanes: to[r*stride + c] = sum of x[r*keys + c] */
static inline void vsums(const vec x[], int rows, int keys, float *to, int64_t stride)
{
    for (int i = 0; i < rows * keys; i++)
        to[i / keys * stride + i % keys] = vhsum(x[i]);
}

/* Keeps the compiler from folding a reused load into each of its uses (then the loads, not the
   multiplications, would be the limit). */
static inline vec vkeep(vec x)
{
    return x;
}

#include "kernels/vec_four.h"

#endif

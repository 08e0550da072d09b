/* SPDX-License-Identifier: MIT */
/*
 * vec_four.h: what layers of four lanes share
 *
 * Transposes, choices, parts of vectors, 16-bit floats (base/half.h), and sums of products of doubles, in
 * portable C that the compiler makes vectors of; wider layers have instructions for all of it. To be included
 * below vfma, vwhere, vhmax and the others that such a layer has its own of.
 */
#ifndef PE_KERNELS_VEC_FOUR_H
#define PE_KERNELS_VEC_FOUR_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"

static inline vec vset(float x)
{
    return (vec){x, x, x, x};
}

static inline vec vmax(vec a, vec b)
{
    return vwhere((ivec)(a > b), a, b);
}

static inline vec vwhere_lanes(int32_t first, int32_t low, int32_t high, vec a, vec b)
{
    const ivec lane = {first, first + 1, first + 2, first + 3};
    return vwhere((ivec)((lane >= low) & (lane < high)), a, b);
}

static inline vec vswap(vec x)
{
    return (vec){x[1], x[0], x[3], x[2]};
}

static inline vec vnegate_even(vec x)
{
    return x * (vec){-1, 1, -1, 1};
}

/* Adding and subtracting leaves the whole number. */
static inline vec vfraction(vec t)
{
    const vec magic = vset(0x1.8p23f);
    return t - ((t + magic) - magic);
}

static inline vec vmax_positive(vec a, vec b)
{
    return vmax(a, b);
}

static inline int vany_above(vec a, vec b)
{
    const ivec above = a > b;
    return (above[0] | above[1] | above[2] | above[3]) != 0;
}

static inline void vtranspose(vec x[4])
{
    const vec a = x[0], b = x[1], c = x[2], d = x[3];
    for (int i = 0; i < 4; i++)
        x[i] = (vec){a[i], b[i], c[i], d[i]};
}

/* Queries and keys that cache_scores multiplies at once. */
enum { DECODE_ROWS = 2, DECODE_KEYS = 2, VALUE_ROWS = 2, VALUE_ALSO = 0, VALUE_VECS = 4 };

static inline void vunite(vec *a, vec *b)
{
    const vec x = *a, y = *b;
    *a = (vec){x[0], y[0], x[1], y[1]};
    *b = (vec){x[2], y[2], x[3], y[3]};
}

static inline vec veven(vec a, vec b)
{
    return (vec){a[0], a[2], b[0], b[2]};
}

static inline vec vodd(vec a, vec b)
{
    return (vec){a[1], a[3], b[1], b[3]};
}

static inline vec vload_part(const float *p, int64_t n)
{
    float lanes[VL] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *p);
    return vload(lanes);
}

static inline vec vload_behind(const float *p, int64_t n)
{
    float lanes[VL] = {0};
    memcpy(lanes + n, p, (size_t)(VL - n) * sizeof *p);
    return vload(lanes);
}

static inline void vstore_part(float *p, vec x, int64_t n)
{
    float lanes[VL];
    vstore(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof *p);
}

static inline void vstream(float *p, vec x)
{
    vstore(p, x);
}

static inline void vfence(void)
{
}

static inline void hstream(uint16_t *p, hvec h)
{
    hstore(p, h);
}

static inline void istream(uint16_t *p, wvec w)
{
    istore(p, w);
}

static inline vec vfrom_bf16(hvec h)
{
    return (vec)(__builtin_convertvector(h, uvec) << 16);
}

/* pe_half_f16_to_float for all lanes */
static inline vec vfrom_i8(const void *p)
{
    int8_t x[4];
    memcpy(x, p, sizeof x);
    return (vec){(float)x[0], (float)x[1], (float)x[2], (float)x[3]};
}

static inline vec vfrom_f16(hvec h)
{
    const uvec x = __builtin_convertvector(h, uvec), sign = (x & 0x8000) << 16, rest = (x & 0x7fff) << 13;
    const uvec size = (uvec)((vec)rest * 0x1p112f);
    return (vec)(sign | size | ((uvec)((ivec)rest >= 0x0f800000) & 0x7f800000));
}

static inline hvec vto_f16(vec x)
{
    return (hvec){pe_half_float_to_f16(x[0]), pe_half_float_to_f16(x[1]), pe_half_float_to_f16(x[2]),
                  pe_half_float_to_f16(x[3])};
}

/* In the upper halves of lanes; a NaN stays one. */
static inline uvec upper_bf16(vec x)
{
    return (uvec)vwhere((ivec)(x == x), (vec)round_word(x), (vec)((uvec)x | 0x400000));
}

static inline hvec vto_bf16(vec x)
{
    return __builtin_convertvector(upper_bf16(x) >> 16, hvec);
}

static inline wvec vto_words(vec low, vec high)
{
    const uvec a = upper_bf16(FIRST_IS_LOW ? low : high), b = upper_bf16(FIRST_IS_LOW ? high : low);
    return (wvec)(a >> 16 | (b & 0xffff0000u));
}

/* vshort_nan has nothing to do. */
static inline int vany_nan(vec x)
{
    return 0;
}

static inline vec vshort_nan(vec x)
{
    return x;
}

static inline dvec dwiden(const float *p)
{
    return (dvec){(double)p[0], (double)p[1]};
}

static inline dvec dset(double x)
{
    return (dvec){x, x};
}

static inline dvec dfma(dvec a, dvec b, dvec c)
{
    return a * b + c; /* rounds twice where there is no fused one: the bounds that are used allow for it */
}

static inline dvec dfms(dvec a, dvec b, dvec c)
{
    return a * b - c;
}

static inline vec vnarrow(dvec low, dvec high)
{
    return (vec){(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
}

static inline vec vleast(vec a, vec b)
{
    const vec size = (vec)((uvec)b & 0x7fffffff);
    return vwhere((ivec)(size < a), size, a);
}

static inline int vany_below(vec x, float limit)
{
    return vany_above(vset(limit), x);
}

#include "kernels/vec_narrow.h"

#endif

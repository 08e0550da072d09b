/* SPDX-License-Identifier: MIT */
/*
 * vec_four.h: what layers of four lanes share
 *
 * Powers of two, transposes, caches of keys, parts of vectors, stores past the caches, 16-bit floats
 * (base/half.h), and doubles, in portable C: arrays of four that the compiler makes vectors of. Whoever has
 * four lanes (vec, ivec, VL, vload, vstore) includes this below its own; wider layers have instructions for
 * all of it. Meanings:
 *
 *   vload_part, vstore_part   the first n < VL lanes, the others zero, or left alone in memory
 *   vload_behind              n zeros, n < VL, and behind them the first VL - n lanes of p
 *   vstream, hstream, istream a store that goes past the caches where there is one; p aligned to the vector;
 *   vfence ends a run
 *   hvec                      VL numbers of 16 bits: vfrom_f16, vto_f16, vfrom_bf16, vto_bf16 convert
 *   iload, istore             VL words of two bf16: vfrom_low and vfrom_high are the first and the second of
 *                             each word, vto_words puts two vectors together again, where every NaN comes of
 *                             bf16 or of vshort_nan
 *   vshort_nan                as it is, but a NaN without what bf16 does not keep of it, which rounding might
 *                             carry over; vany_nan says whether a vector needs it
 *   veven, vodd               the numbers 0 2 4 ... and 1 3 5 ... of two vectors
 *   dvec                      half as many doubles; vnarrow rounds two of them to one vector of floats
 *   nvec                      as vnarrow leaves them (nnarrow): nset, nstore, nstream, nleast, nany_below as
 *                             those of vec
 *   vleast, vany_below        of a, which is not negative, and the magnitude of b the smaller; is any lane of
 *                             it below a limit?
 */
#ifndef PE_KERNELS_VEC_FOUR_H
#define PE_KERNELS_VEC_FOUR_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"

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

/* rows become columns */
static inline void vtranspose(vec x[4])
{
    const vec a = x[0], b = x[1], c = x[2], d = x[3];
    for (int i = 0; i < 4; i++)
        x[i] = (vec){a[i], b[i], c[i], d[i]};
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

typedef struct hvec {
    uint16_t lane[VL];
} hvec;

static inline hvec hload(const uint16_t *p)
{
    hvec h;
    memcpy(&h, p, sizeof h);
    return h;
}

static inline void hstore(uint16_t *p, hvec h)
{
    memcpy(p, &h, sizeof h);
}

static inline void hstream(uint16_t *p, hvec h)
{
    hstore(p, h);
}

static inline vec vfrom_f16(hvec h)
{
    float lanes[VL];
    for (int i = 0; i < VL; i++)
        lanes[i] = pe_f16_to_float(h.lane[i]);
    return vload(lanes);
}

static inline hvec vto_f16(vec x)
{
    float lanes[VL];
    hvec  h;
    vstore(lanes, x);
    for (int i = 0; i < VL; i++)
        h.lane[i] = pe_float_to_f16(lanes[i]);
    return h;
}

static inline vec vfrom_bf16(hvec h)
{
    float lanes[VL];
    for (int i = 0; i < VL; i++)
        lanes[i] = pe_bf16_to_float(h.lane[i]);
    return vload(lanes);
}

static inline hvec vto_bf16(vec x)
{
    float lanes[VL];
    hvec  h;
    vstore(lanes, x);
    for (int i = 0; i < VL; i++)
        h.lane[i] = pe_float_to_bf16(lanes[i]);
    return h;
}

typedef struct wvec {
    uint16_t lane[VL][2];
} wvec;

static inline wvec iload(const uint16_t *p)
{
    wvec w;
    memcpy(&w, p, sizeof w);
    return w;
}

static inline void istore(uint16_t *p, wvec w)
{
    memcpy(p, &w, sizeof w);
}

static inline void istream(uint16_t *p, wvec w)
{
    istore(p, w);
}

static inline vec vfrom_low(wvec w)
{
    float lanes[VL];
    for (int i = 0; i < VL; i++)
        lanes[i] = pe_bf16_to_float(w.lane[i][0]);
    return vload(lanes);
}

static inline vec vfrom_high(wvec w)
{
    float lanes[VL];
    for (int i = 0; i < VL; i++)
        lanes[i] = pe_bf16_to_float(w.lane[i][1]);
    return vload(lanes);
}

/* vshort_nan has nothing to do. */
static inline int vany_nan(vec x)
{
    (void)x;
    return 0;
}

static inline vec vshort_nan(vec x)
{
    return x;
}

static inline wvec vto_words(vec low, vec high)
{
    const hvec a = vto_bf16(low), b = vto_bf16(high);
    wvec       w;
    for (int i = 0; i < VL; i++) {
        w.lane[i][0] = a.lane[i];
        w.lane[i][1] = b.lane[i];
    }
    return w;
}

static inline vec veven(vec a, vec b)
{
    float x[VL], y[VL];
    vstore(x, a);
    vstore(y, b);
    return vload((const float[VL]){x[0], x[2], y[0], y[2]});
}

static inline vec vodd(vec a, vec b)
{
    float x[VL], y[VL];
    vstore(x, a);
    vstore(y, b);
    return vload((const float[VL]){x[1], x[3], y[1], y[3]});
}

typedef double dvec __attribute__((vector_size(8 * VL / 2)));

static inline dvec dload(const double *p)
{
    dvec x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void dstore(double *p, dvec x)
{
    memcpy(p, &x, sizeof x);
}

static inline dvec dwiden(const float *p)
{
    return (dvec){(double)p[0], (double)p[1]};
}

static inline dvec dset(double x)
{
    return (dvec){x, x};
}

static inline dvec dkeep(dvec x)
{
    return x;
}

static inline dvec dmul(dvec a, dvec b)
{
    return a * b;
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
    const float lanes[VL] = {(float)low[0], (float)low[1], (float)high[0], (float)high[1]};
    return vload(lanes);
}

static inline vec vleast(vec a, vec b)
{
    float x[VL], y[VL];
    vstore(x, a);
    vstore(y, b);
    for (int i = 0; i < VL; i++)
        x[i] = __builtin_fabsf(y[i]) < x[i] ? __builtin_fabsf(y[i]) : x[i];
    return vload(x);
}

static inline int vany_below(vec x, float limit)
{
    float lanes[VL];
    int   any = 0;
    vstore(lanes, x);
    for (int i = 0; i < VL; i++)
        any |= lanes[i] < limit;
    return any;
}

#include "kernels/vec_narrow.h"

#endif

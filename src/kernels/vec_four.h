/* SPDX-License-Identifier: MIT */
/*
 * vec_four.h: what rotation and tables need of the vector layer besides floats, for any layer of four lanes
 *
 * Parts of vectors, stores past the caches, 16-bit floats (base/half.h), and doubles, in portable C: arrays of four that the
 * compiler makes vectors of. Whoever has four lanes (vec, ivec, VL, vload, vstore) includes this below its own; wider layers
 * have instructions for all of it. Meanings:
 *
 *   vload_part, vstore_part   the first n < VL lanes, the others zero, or left alone in memory
 *   vstream, hstream, istream a store that goes past the caches where there is one; p aligned to the vector; vfence ends a run
 *   hvec                      VL numbers of 16 bits: vfrom_f16, vto_f16, vfrom_bf16, vto_bf16 convert
 *   iload, istore             VL words of two bf16: vfrom_low and vfrom_high are the first and the second of each word,
 *                             vto_words puts two vectors together again
 *   dvec                      half as many doubles; vnarrow rounds two of them to one vector of floats
 *   vany_below                is any lane of either below the limit in magnitude?
 *   vzip_low, vzip_high       a0 b0 a1 b1 ..., the first half and the second
 */
#ifndef PE_KERNELS_VEC_FOUR_H
#define PE_KERNELS_VEC_FOUR_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"

static inline vec vload_part(const float *p, int64_t n)
{
    float lanes[VL] = {0};
    memcpy(lanes, p, (size_t)n * sizeof *p);
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

static inline int vany_below(vec a, vec b, float limit)
{
    float x[VL], y[VL];
    int   any = 0;
    vstore(x, a);
    vstore(y, b);
    for (int i = 0; i < VL; i++)
        any |= (x[i] < limit && x[i] > -limit) || (y[i] < limit && y[i] > -limit);
    return any;
}

static inline vec vzip_low(vec a, vec b)
{
    float x[VL], y[VL];
    vstore(x, a);
    vstore(y, b);
    return vload((const float[VL]){x[0], y[0], x[1], y[1]});
}

static inline vec vzip_high(vec a, vec b)
{
    float x[VL], y[VL];
    vstore(x, a);
    vstore(y, b);
    return vload((const float[VL]){x[2], y[2], x[3], y[3]});
}

#endif

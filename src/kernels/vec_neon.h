/* SPDX-License-Identifier: MIT */
/*
 * vec_neon.h: the vector layer on 64-bit ARM, four floats or two doubles. Meanings: vec_all.h.
 *
 * Advanced SIMD is part of every ARMv8-A processor, so no flag is needed and nothing has to be asked at run
 * time. It has a fused multiply-add, which portable C cannot be sure of: results differ from `plain` in the
 * last bit, and agree with the wide x86 sets where sums have the same order.
 */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <arm_neon.h>
#include <stdint.h>

/* 6 x 4 accumulators, 4 rows of B and a broadcast: 29 of 32 registers */
enum { VL = 4, BLOCK_VECS = 4, BLOCK_ROWS = 6, ROWS_OF_3 = 8, ROWS_OF_2 = 12, ROWS_OF_1 = 16 };

typedef float32x4_t vec;
typedef int32x4_t   ivec;
typedef uint32x4_t  wvec;
typedef uint16x4_t  hvec;
typedef float64x2_t dvec;

#define KEEP(x) __asm__("" : "+w"(x))
enum { FUSES = 1 };

#include "kernels/vec_all.h"

static inline vec vfms(vec a, vec b, vec c)
{
    return vfmaq_f32(vnegq_f32(c), a, b);
}

static inline vec vfma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

static inline vec vwhere(ivec mask, vec a, vec b)
{
    return vbslq_f32((uint32x4_t)mask, a, b);
}

static inline float vhmax(vec x)
{
    return vmaxvq_f32(x);
}

static inline float vhsum(vec x)
{
    const float32x2_t halves = vadd_f32(vget_low_f32(x), vget_high_f32(x));
    return vget_lane_f32(halves, 0) + vget_lane_f32(halves, 1);
}

static inline vec vload_twice(const float *p)
{
    const float32x2_t x = vld1_f32(p);
    return vcombine_f32(vdup_lane_f32(x, 0), vdup_lane_f32(x, 1));
}

#include "kernels/vec_four.h"

#endif

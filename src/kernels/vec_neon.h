/* SPDX-License-Identifier: MIT */
/*
 * vec_neon.h: the vector layer on 64-bit ARM, four floats or two doubles. Meanings: vec_plain.h.
 *
 * Advanced SIMD is part of every ARMv8-A processor, so no flag is needed and nothing has to be asked at run
 * time. It has a fused multiply-add, which portable C cannot be sure of: results differ from `plain` in the
 * last bit, and agree with the wide x86 sets where sums have the same order.
 */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

/* 6 x 4 accumulators, 4 rows of B and a broadcast: 29 of 32 registers */
enum { VL = 4, BLOCK_VECS = 4, BLOCK_ROWS = 6, ROWS_OF_3 = 8, ROWS_OF_2 = 12, ROWS_OF_1 = 16 };

typedef float32x4_t vec;
typedef int32x4_t   ivec;

static inline vec vload(const float *p)
{
    return vld1q_f32(p);
}

static inline void vstore(float *p, vec x)
{
    vst1q_f32(p, x);
}

static inline vec vset(float x)
{
    return vdupq_n_f32(x);
}

static inline vec vadd(vec a, vec b)
{
    return vaddq_f32(a, b);
}

static inline vec vsub(vec a, vec b)
{
    return vsubq_f32(a, b);
}

static inline vec vmul(vec a, vec b)
{
    return vmulq_f32(a, b);
}

static inline vec vdiv(vec a, vec b)
{
    return vdivq_f32(a, b);
}

static inline vec vfms(vec a, vec b, vec c)
{
    return vfmaq_f32(vnegq_f32(c), a, b);
}

static inline vec vfma(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

static inline float fma_of_one(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

/* The second where one is NaN, as the other layers have it; FMAX would give NaN. */
static inline vec vmax(vec a, vec b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vec vwhere_lanes(int32_t first, int32_t low, int32_t high, vec a, vec b)
{
    static const int32_t numbers[4] = {0, 1, 2, 3};
    const ivec           lane       = vaddq_s32(vdupq_n_s32(first), vld1q_s32(numbers));
    return vbslq_f32(vandq_u32(vcgeq_s32(lane, vdupq_n_s32(low)), vcltq_s32(lane, vdupq_n_s32(high))), a, b);
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

static inline vec vswap(vec x)
{
    return vrev64q_f32(x);
}

static inline vec vload_twice(const float *p)
{
    const float32x2_t x = vld1_f32(p);
    return vcombine_f32(vdup_lane_f32(x, 0), vdup_lane_f32(x, 1));
}

static inline vec vnegate_even(vec x)
{
    static const float signs[4] = {-1, 1, -1, 1};
    return vmulq_f32(x, vld1q_f32(signs));
}

static inline vec vkeep(vec x)
{
    __asm__("" : "+w"(x));
    return x;
}

#include "kernels/vec_four.h"

#endif

/* SPDX-License-Identifier: MIT */
/* vec_avx512.h: the vector layer on AVX-512 F, BW, VL, DQ, sixteen floats. Meanings: vec_plain.h. */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <immintrin.h>
#include <stdint.h>

/* 6 x 4 accumulators, 4 rows of B and a broadcast: 29 of 32 registers */
enum { VL = 16, BLOCK_VECS = 4, BLOCK_ROWS = 6, NARROW_ROWS = 12 };

typedef __m512  vec;
typedef __m512i ivec;

static inline vec vload(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vstore(float *p, vec x)
{
    _mm512_storeu_ps(p, x);
}

static inline vec vset(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec vadd(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static inline vec vsub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

static inline vec vmul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static inline vec vfma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline float fma_of_one(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

static inline vec vmax(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

static inline vec vwhere_lanes(int32_t first, int32_t low, int32_t high, vec a, vec b)
{
    const ivec lane =
        _mm512_add_epi32(_mm512_set1_epi32(first),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __mmask16 fits = _mm512_cmple_epi32_mask(_mm512_set1_epi32(low), lane) &
                           _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(high));
    return _mm512_mask_blend_ps(fits, b, a);
}

static inline vec vwhere_below(vec x, float limit, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, vset(limit), _CMP_LT_OQ), b, a);
}

static inline vec vround(vec x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec vpow2(vec n)
{
    return _mm512_scalef_ps(vset(1.0f), n);
}

static inline float vhmax(vec x)
{
    return _mm512_reduce_max_ps(x);
}

static inline float vhsum(vec x)
{
    return _mm512_reduce_add_ps(x);
}

static inline vec vswap(vec x)
{
    return _mm512_permute_ps(x, 0xB1);
}

static inline vec vload_twice(const float *p)
{
    const ivec twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

static inline vec vnegate_even(vec x)
{
    return _mm512_mask_sub_ps(x, 0x5555, _mm512_setzero_ps(), x);
}

static inline vec vkeep(vec x)
{
    __asm__("" : "+v"(x));
    return x;
}

/* doubles */

typedef __m512d dvec;

static inline dvec dvload(const double *p)
{
    return _mm512_loadu_pd(p);
}

static inline void dvstore(double *p, dvec x)
{
    _mm512_storeu_pd(p, x);
}

static inline dvec dvset(double x)
{
    return _mm512_set1_pd(x);
}

static inline dvec dvfma(dvec a, dvec b, dvec c)
{
    return _mm512_fmadd_pd(a, b, c);
}

static inline dvec dvkeep(dvec x)
{
    __asm__("" : "+v"(x));
    return x;
}

#endif

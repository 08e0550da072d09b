/* SPDX-License-Identifier: MIT */
/* vec_avx2.h: the vector layer on AVX2 with FMA, eight floats. Meanings: vec_plain.h. */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <immintrin.h>
#include <stdint.h>

/* 6 x 2 accumulators, 2 rows of B and a broadcast: 15 of 16 registers */
enum { VL = 8, BLOCK_VECS = 2, BLOCK_ROWS = 6, NARROW_ROWS = 6 };

typedef __m256  vec;
typedef __m256i ivec;

static inline vec vload(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vstore(float *p, vec x)
{
    _mm256_storeu_ps(p, x);
}

static inline vec vset(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec vadd(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

static inline vec vsub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

static inline vec vmul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

static inline vec vfma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline float fma_of_one(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

static inline vec vmax(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

static inline vec vwhere_lanes(int32_t first, int32_t low, int32_t high, vec a, vec b)
{
    const ivec lane  = _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const ivec under = _mm256_cmpgt_epi32(_mm256_set1_epi32(low), lane);
    const ivec fits  = _mm256_cmpgt_epi32(_mm256_set1_epi32(high), lane);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_andnot_si256(under, fits)));
}

static inline vec vwhere_below(vec x, float limit, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, vset(limit), _CMP_LT_OQ));
}

static inline vec vround(vec x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec vpow2(vec n)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}

static inline float vhmax(vec x)
{
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y        = _mm_max_ps(y, _mm_movehl_ps(y, y));
    y        = _mm_max_ss(y, _mm_movehdup_ps(y));
    return _mm_cvtss_f32(y);
}

static inline float vhsum(vec x)
{
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y        = _mm_add_ps(y, _mm_movehl_ps(y, y));
    y        = _mm_add_ss(y, _mm_movehdup_ps(y));
    return _mm_cvtss_f32(y);
}

static inline vec vswap(vec x)
{
    return _mm256_permute_ps(x, 0xB1);
}

static inline vec vload_twice(const float *p)
{
    const __m128 x = _mm_loadu_ps(p);
    return _mm256_set_m128(_mm_unpackhi_ps(x, x), _mm_unpacklo_ps(x, x));
}

static inline vec vnegate_even(vec x)
{
    return _mm256_xor_ps(x, _mm256_setr_ps(-0.f, 0.f, -0.f, 0.f, -0.f, 0.f, -0.f, 0.f));
}

static inline vec vkeep(vec x)
{
    __asm__("" : "+x"(x));
    return x;
}

/* doubles */

typedef __m256d dvec;

static inline dvec dvload(const double *p)
{
    return _mm256_loadu_pd(p);
}

static inline void dvstore(double *p, dvec x)
{
    _mm256_storeu_pd(p, x);
}

static inline dvec dvset(double x)
{
    return _mm256_set1_pd(x);
}

static inline dvec dvfma(dvec a, dvec b, dvec c)
{
    return _mm256_fmadd_pd(a, b, c);
}

static inline dvec dvkeep(dvec x)
{
    __asm__("" : "+x"(x));
    return x;
}

#endif

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

/* Four by four queries and keys of cache_scores: 16 sums, 4 keys, a query. */
enum { DECODE_ROWS = 4, DECODE_KEYS = 4, VALUE_ROWS = 3, VALUE_ALSO = 1, VALUE_VECS = 8 };

static inline vec vload_bf16(const uint16_t *p)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline void vload_bf16_two(const uint16_t *p, vec *even, vec *odd)
{
    const __m512i x = _mm512_loadu_si512((const void *)p);
    *even           = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    *odd            = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000)));
}

static inline void vpart(vec *a, vec *b)
{
    const ivec even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const vec  x = *a, y = *b;
    *a = _mm512_permutex2var_ps(x, even, y);
    *b = _mm512_permutex2var_ps(x, _mm512_add_epi32(even, _mm512_set1_epi32(1)), y);
}

static inline void vunite(vec *a, vec *b)
{
    const ivec low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const vec  x = *a, y = *b;
    *a = _mm512_permutex2var_ps(x, low, y);
    *b = _mm512_permutex2var_ps(x, _mm512_add_epi32(low, _mm512_set1_epi32(8)), y);
}

static inline vec vload_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

/* Lanes of a and b summed by twos, side by side. */
static inline vec add_pairs(vec a, vec b)
{
    return vadd(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

static inline vec add_fours(vec ab, vec cd)
{
    const __m512d x = _mm512_castps_pd(ab), y = _mm512_castps_pd(cd);
    return vadd(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

/* a's quarters summed by twos, then b's. */
static inline vec add_quarters(vec a, vec b)
{
    return vadd(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
}

static inline void vsums(const vec x[], int rows, int keys, float *to, int64_t stride)
{
    if (rows != DECODE_ROWS || keys != DECODE_KEYS) {
        for (int i = 0; i < rows * keys; i++)
            to[i / keys * stride + i % keys] = vhsum(x[i]);
        return;
    }
    vec row[DECODE_ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < DECODE_ROWS; r++)
        row[r] = add_fours(add_pairs(x[4 * r], x[4 * r + 1]), add_pairs(x[4 * r + 2], x[4 * r + 3]));
    const vec all = add_quarters(add_quarters(row[0], row[1]), add_quarters(row[2], row[3]));
    _mm_storeu_ps(to, _mm512_castps512_ps128(all));
    _mm_storeu_ps(to + stride, _mm512_extractf32x4_ps(all, 1));
    _mm_storeu_ps(to + 2 * stride, _mm512_extractf32x4_ps(all, 2));
    _mm_storeu_ps(to + 3 * stride, _mm512_extractf32x4_ps(all, 3));
}

static inline vec vkeep(vec x)
{
    __asm__("" : "+v"(x));
    return x;
}

#endif

/* SPDX-License-Identifier: MIT */
/* vec_avx2.h: the vector layer on AVX2 with FMA, eight floats. Meanings: vec_all.h. */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <immintrin.h>
#include <stdint.h>

/* 6 x 2 accumulators, 2 rows of B and a broadcast: 15 of 16 registers */
enum { VL = 8, BLOCK_VECS = 2, BLOCK_ROWS = 6, ROWS_OF_3 = 4, ROWS_OF_2 = 6, ROWS_OF_1 = 12 };

typedef __m256  vec;
typedef __m256i ivec, wvec;
typedef __m128i hvec;
typedef __m256d dvec;

#define KEEP(x) __asm__("" : "+x"(x))
enum { FUSES = 1 };

#include "kernels/vec_all.h"

static inline vec vset(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec vfma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vec vfms(vec a, vec b, vec c)
{
    return _mm256_fmsub_ps(a, b, c);
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

static inline vec vfraction(vec t)
{
    return _mm256_sub_ps(t, _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline vec vmax_positive(vec a, vec b)
{
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}

static inline int vany_above(vec a, vec b)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)) != 0;
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

static inline void vtranspose(vec x[8])
{
    vec y[8];
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) { /* 4 x 4 within each half */
        const vec a = _mm256_unpacklo_ps(x[i], x[i + 1]), b = _mm256_unpackhi_ps(x[i], x[i + 1]),
                  c = _mm256_unpacklo_ps(x[i + 2], x[i + 3]), d = _mm256_unpackhi_ps(x[i + 2], x[i + 3]);
        y[i]     = _mm256_shuffle_ps(a, c, 0x44);
        y[i + 1] = _mm256_shuffle_ps(a, c, 0xEE);
        y[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        y[i + 3] = _mm256_shuffle_ps(b, d, 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* then the halves */
        x[i]     = _mm256_permute2f128_ps(y[i], y[i + 4], 0x20);
        x[i + 4] = _mm256_permute2f128_ps(y[i], y[i + 4], 0x31);
    }
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

/* Four by two queries and keys of cache_scores: 8 sums, 2 keys, a query. */
enum { DECODE_ROWS = 4, DECODE_KEYS = 2, VALUE_ROWS = 2, VALUE_ALSO = 0, VALUE_VECS = 4 };

/* x holds of each half two numbers of a, two of b. */
static inline vec halves_in_order(vec x)
{
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(x), 0xD8));
}

static inline vec veven(vec a, vec b)
{
    return halves_in_order(_mm256_shuffle_ps(a, b, 0x88));
}

static inline vec vodd(vec a, vec b)
{
    return halves_in_order(_mm256_shuffle_ps(a, b, 0xDD));
}

static inline void vunite(vec *a, vec *b)
{
    const vec low = _mm256_unpacklo_ps(*a, *b), high = _mm256_unpackhi_ps(*a, *b);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
}

/* ---- parts of a vector, and stores past the caches ---- */

static inline ivec first_lanes(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vec vload_part(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, first_lanes(n));
}

static inline vec vload_behind(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p - n, _mm256_xor_si256(first_lanes(n), _mm256_set1_epi32(-1)));
}

static inline void vstore_part(float *p, vec x, int64_t n)
{
    _mm256_maskstore_ps(p, first_lanes(n), x);
}

static inline void vstream(float *p, vec x)
{
    _mm256_stream_ps(p, x);
}

static inline void vfence(void)
{
    _mm_sfence();
}

/* ---- 16-bit floats ---- */

static inline void hstream(uint16_t *p, hvec h)
{
    _mm_stream_si128((__m128i *)p, h);
}

static inline vec vfrom_i8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}

static inline vec vfrom_f16(hvec h)
{
    return _mm256_cvtph_ps(h);
}

static inline hvec vto_f16(vec x)
{
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

static inline vec vfrom_bf16(hvec h)
{
    return (vec)((uvec)_mm256_cvtepu16_epi32(h) << 16);
}

static inline void istream(uint16_t *p, wvec w)
{
    _mm256_stream_si256((__m256i *)p, w);
}

static inline hvec vto_bf16(vec x)
{
    const uvec quiet = (uvec)x | 0x400000, bits = round_word(x);
    const ivec h =
        (ivec)((uvec)_mm256_blendv_ps((vec)bits, (vec)quiet, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)) >> 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

static inline wvec vto_words(vec low, vec high)
{
    return _mm256_blend_epi16((ivec)(round_word(low) >> 16), (ivec)round_word(high), 0xAA);
}

static inline int vany_nan(vec x)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)) != 0;
}

static inline vec vshort_nan(vec x)
{
    const vec quiet = _mm256_or_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x400000)));
    const vec upper = _mm256_and_ps(quiet, _mm256_castsi256_ps(_mm256_set1_epi32((int)0xffff0000u)));
    return _mm256_blendv_ps(x, upper, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* ---- doubles ---- */

static inline dvec dwiden(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}

static inline dvec dset(double x)
{
    return _mm256_set1_pd(x);
}

static inline dvec dfma(dvec a, dvec b, dvec c)
{
    return _mm256_fmadd_pd(a, b, c);
}

static inline dvec dfms(dvec a, dvec b, dvec c)
{
    return _mm256_fmsub_pd(a, b, c);
}

static inline vec vnarrow(dvec low, dvec high)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

static inline vec vleast(vec a, vec b)
{
    return _mm256_min_ps(_mm256_andnot_ps(vset(-0.f), b), a);
}

static inline int vany_below(vec x, float limit)
{
    return _mm256_movemask_ps(_mm256_cmp_ps(x, vset(limit), _CMP_LT_OQ)) != 0;
}

#include "kernels/vec_narrow.h"

#endif

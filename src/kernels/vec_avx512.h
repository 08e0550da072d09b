/* SPDX-License-Identifier: MIT */
/* vec_avx512.h: the vector layer on AVX-512 F, BW, VL, DQ, sixteen floats. Meanings: vec_all.h. */
#ifndef PE_KERNELS_VEC_H
#define PE_KERNELS_VEC_H

#include <immintrin.h>
#include <stdint.h>

/* 6 x 4 accumulators, 4 rows of B and a broadcast: 29 of 32 registers; fewer columns, more rows */
enum { VL = 16, BLOCK_VECS = 4, BLOCK_ROWS = 6, ROWS_OF_3 = 8, ROWS_OF_2 = 12, ROWS_OF_1 = 16 };

typedef __m512  vec;
typedef __m512i ivec, wvec;
typedef __m256i hvec;
typedef __m512d dvec;

#define KEEP(x) __asm__("" : "+v"(x))
enum { FUSES = 1 };

#include "kernels/vec_all.h"

static inline vec vset(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec vfma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vec vfms(vec a, vec b, vec c)
{
    return _mm512_fmsub_ps(a, b, c);
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

static inline vec vcut(vec t)
{
    return t;
}

static inline vec vfraction(vec t)
{
    return _mm512_reduce_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec vscale2(vec x, vec k)
{
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(k, _mm512_set1_ps(LEAST_POWER), _CMP_NLT_UQ), x, k);
}

static inline vec vmax_positive(vec a, vec b)
{
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

static inline int vany_above(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
}

static inline float vhmax(vec x)
{
    return _mm512_reduce_max_ps(x);
}

static inline float vhsum(vec x)
{
    return _mm512_reduce_add_ps(x);
}

static inline void vtranspose(vec x[16])
{
    vec y[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 4) { /* 4 x 4 within each quarter */
        const vec a = _mm512_unpacklo_ps(x[i], x[i + 1]), b = _mm512_unpackhi_ps(x[i], x[i + 1]),
                  c = _mm512_unpacklo_ps(x[i + 2], x[i + 3]), d = _mm512_unpackhi_ps(x[i + 2], x[i + 3]);
        y[i]     = _mm512_shuffle_ps(a, c, 0x44);
        y[i + 1] = _mm512_shuffle_ps(a, c, 0xEE);
        y[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
        y[i + 3] = _mm512_shuffle_ps(b, d, 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* then the quarters */
        const vec a = _mm512_shuffle_f32x4(y[i], y[i + 4], 0x88),
                  b = _mm512_shuffle_f32x4(y[i], y[i + 4], 0xDD),
                  c = _mm512_shuffle_f32x4(y[i + 8], y[i + 12], 0x88),
                  d = _mm512_shuffle_f32x4(y[i + 8], y[i + 12], 0xDD);
        x[i]        = _mm512_shuffle_f32x4(a, c, 0x88);
        x[i + 4]    = _mm512_shuffle_f32x4(b, d, 0x88);
        x[i + 8]    = _mm512_shuffle_f32x4(a, c, 0xDD);
        x[i + 12]   = _mm512_shuffle_f32x4(b, d, 0xDD);
    }
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

static inline void vunite(vec *a, vec *b)
{
    const ivec low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const vec  x = *a, y = *b;
    *a = _mm512_permutex2var_ps(x, low, y);
    *b = _mm512_permutex2var_ps(x, _mm512_add_epi32(low, _mm512_set1_epi32(8)), y);
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

static inline void store_quarters(float *to, int64_t stride, vec x)
{
    _mm_storeu_ps(to, _mm512_castps512_ps128(x));
    _mm_storeu_ps(to + stride, _mm512_extractf32x4_ps(x, 1));
    _mm_storeu_ps(to + 2 * stride, _mm512_extractf32x4_ps(x, 2));
    _mm_storeu_ps(to + 3 * stride, _mm512_extractf32x4_ps(x, 3));
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
    store_quarters(to, stride, all);
}

/* ---- parts of a vector, and stores past the caches ---- */

static inline vec vload_part(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

static inline vec vload_behind(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)(0xffffu << n), p - n);
}

static inline void vstore_part(float *p, vec x, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}

static inline void vstream(float *p, vec x)
{
    _mm512_stream_ps(p, x);
}

static inline void vfence(void)
{
    _mm_sfence();
}

static inline vec vfrom_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}

/* ---- 16-bit floats ---- */

static inline void hstream(uint16_t *p, hvec h)
{
    _mm256_stream_si256((__m256i *)p, h);
}

static inline vec vfrom_f16(hvec h)
{
    return _mm512_cvtph_ps(h);
}

static inline hvec vto_f16(vec x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec vfrom_bf16(hvec h)
{
    return (vec)((uvec)_mm512_cvtepu16_epi32(h) << 16);
}

/* Rounded to the upper half of each lane; the lower half is the remainder. */
static inline ivec round_bf16(vec x)
{
    const ivec      bits = _mm512_castps_si512(x), up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    const __mmask16 odd  = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const ivec      even = _mm512_mask_add_epi32(up, odd, up, _mm512_set1_epi32(1));
    return _mm512_mask_or_epi32(even, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits,
                                _mm512_set1_epi32(0x400000));
}

static inline hvec vto_bf16(vec x)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bf16(x), 16));
}

static inline void istream(uint16_t *p, wvec w)
{
    _mm512_stream_si512((void *)p, w);
}

static inline int vany_nan(vec x)
{
    return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q) != 0;
}

static inline vec vshort_nan(vec x)
{
    const ivec upper =
        _mm512_ternarylogic_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x400000),
                                  _mm512_set1_epi32((int)0xffff0000u), 0xA8); /* (x | quiet) & mask */
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, _mm512_castsi512_ps(upper));
}

/* As round_bf16, both numbers of a word at once: upper and lower halves are put together first. Where the
   upper half is odd, the last bit makes more than a tie of a tie. */
static inline wvec vto_words(vec low, vec high)
{
    const ivec      a = _mm512_castps_si512(low), b = _mm512_castps_si512(high), one = _mm512_set1_epi16(1);
    const __mmask64 first = 0x3333333333333333; /* bytes of the first number */
    const ivec      upper = _mm512_mask_alignr_epi8(b, first, a, a, 2),
               lower      = _mm512_mask_alignr_epi8(a, ~first, b, b, 14),
               odd        = _mm512_ternarylogic_epi32(lower, upper, one, 0xF8); /* lower | (upper & 1) */
    const __mmask32 up    = _mm512_cmpgt_epu16_mask(odd, _mm512_set1_epi16((short)0x8000));
    return _mm512_mask_add_epi16(upper, up, upper, one);
}

static inline vec veven(vec a, vec b)
{
    const ivec order = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, order, b);
}

static inline vec vodd(vec a, vec b)
{
    const ivec order = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, order, b);
}

/* ---- doubles ---- */

static inline dvec dwiden(const float *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}

static inline dvec dset(double x)
{
    return _mm512_set1_pd(x);
}

static inline dvec dfma(dvec a, dvec b, dvec c)
{
    return _mm512_fmadd_pd(a, b, c);
}

static inline dvec dfms(dvec a, dvec b, dvec c)
{
    return _mm512_fmsub_pd(a, b, c);
}

static inline vec vnarrow(dvec low, dvec high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
}

static inline vec vleast(vec a, vec b)
{
    return _mm512_range_ps(a, b, 2); /* the smaller magnitude, with the sign of a */
}

static inline int vany_below(vec x, float limit)
{
    return _mm512_cmp_ps_mask(x, vset(limit), _CMP_LT_OQ) != 0;
}

/* ---- floats as narrowing leaves them: joining halves would cost as much as storing the second ---- */

typedef struct nvec {
    __m256 low, high;
} nvec;

static inline nvec nnarrow(dvec low, dvec high)
{
    nvec x = {_mm512_cvtpd_ps(low), _mm512_cvtpd_ps(high)};
    __asm__("" : "+v"(x.low), "+v"(x.high));
    return x;
}

static inline nvec nset(float x)
{
    return (nvec){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

static inline void nstore(float *p, nvec x)
{
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + VL / 2, x.high);
}

static inline void nstream(float *p, nvec x)
{
    vstream(p, _mm512_insertf32x8(_mm512_castps256_ps512(x.low), x.high, 1));
}

static inline nvec nleast(nvec a, nvec b)
{
    return (nvec){_mm256_range_ps(a.low, b.low, 2), _mm256_range_ps(a.high, b.high, 2)};
}

static inline int nany_below(nvec x, float limit)
{
    return _mm256_cmp_ps_mask(_mm256_min_ps(x.low, x.high), _mm256_set1_ps(limit), _CMP_LT_OQ) != 0;
}

#endif

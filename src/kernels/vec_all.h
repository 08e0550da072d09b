/* SPDX-License-Identifier: MIT */
/*
 * vec_all.h: the vector layer: what all instruction sets share, and what the names mean
 *
 * The compiler's own vectors (gcc, clang) know loads, sums, products, bits and shifts of any width, so these
 * stand here once. A layer (vec_plain.h, vec_neon.h, vec_avx2.h, vec_avx512.h) first says VL, its types, KEEP
 * and FUSES, includes this, and adds what its processor has instructions for. Meanings:
 *
 *   vec, ivec, dvec           VL floats, as many whole numbers of 32 bits, half as many doubles
 *   vfma, vfms                a*b + c and a*b - c, rounded once where FUSES, twice elsewhere
 *   vmax                      the second where one is NaN
 *   vwhere                    (four lanes) a where the mask's lane is all ones, b where it is zeros
 *   vwhere_lanes              a if low <= lane number + first < high, else b
 *   vcut                      t, as vscale2 wants it: cut far below LEAST_POWER
 *   vfraction                 t minus the nearest whole number; |t| < 2^22
 *   vscale2                   x * 2^k for whole k; 0 below LEAST_POWER
 *   vmax_positive             max of two of which one is above 0; of others, one that is not above 0 either
 *   vany_above                is a > b in some lane?
 *   vhmax, vhsum, vsums       of all lanes of a vector, of each of rows x keys vectors
 *   vtranspose                rows become columns
 *   vswap, vnegate_even       x1 x0 x3 x2 ...; -x0 x1 -x2 x3 ...
 *   vload_twice               x0 x0 x1 x1 ..., from VL/2 floats
 *   veven, vodd, vunite       the numbers 0 2 4 ... and 1 3 5 ... of two vectors; puts them back in order
 *   vload_part, vstore_part   the first n < VL lanes, the others zero, or unchanged in memory
 *   vload_behind              n zeros, n < VL, and after them the first VL - n lanes of p
 *   vstream, hstream, istream a store that goes past the caches where there is one; p aligned to the vector;
 *                             vfence ends a run
 *   hvec                      VL numbers of 16 bits: vfrom_f16, vto_f16, vfrom_bf16, vto_bf16 convert
 *   wvec                      VL words of two bf16: vfrom_low and vfrom_high are the first and the second of
 *                             each word, vto_words puts two vectors together again, where every NaN comes of
 *                             bf16 or of vshort_nan
 *   vshort_nan                as it is, but a NaN without the bits that bf16 cuts off, which rounding might
 *                             carry over; vany_nan says whether a vector needs it
 *   vnarrow                   rounds two dvec to one vec
 *   nvec                      as vnarrow leaves them (nnarrow): nset, nstore, nstream, nleast, nany_below as
 *                             those of vec
 *   vleast, vany_below        of a, which is not negative, and the magnitude of b the smaller; is any lane of
 *                             it below a limit?
 */
#ifndef PE_KERNELS_VEC_ALL_H
#define PE_KERNELS_VEC_ALL_H

typedef uint32_t uvec __attribute__((vector_size(4 * VL)));

/* Weights below 2^-100 of the largest change no sum of floats, but products with them are soon subnormal, and
   each of these takes Intel's processors 150 cycles: causal ALiBi took six times as long as no bias. */
#define LEAST_POWER -100.0f

/* In memory, where numbers are aligned as one of them is and may be anything. */
typedef vec  vec_at __attribute__((aligned(4), may_alias));
typedef dvec dvec_at __attribute__((aligned(8), may_alias));
typedef hvec hvec_at __attribute__((aligned(2), may_alias));
typedef wvec wvec_at __attribute__((aligned(2), may_alias));

static inline vec vload(const float *p)
{
    return *(const vec_at *)p;
}

static inline void vstore(float *p, vec x)
{
    *(vec_at *)p = x;
}

static inline vec vadd(vec a, vec b)
{
    return a + b;
}

static inline vec vsub(vec a, vec b)
{
    return a - b;
}

static inline vec vmul(vec a, vec b)
{
    return a * b;
}

static inline vec vdiv(vec a, vec b)
{
    return a / b;
}

/* vfma on one number, rounded as vfma rounds */
static inline float fma_of_one(float a, float b, float c)
{
    return FUSES ? __builtin_fmaf(a, b, c) : a * b + c;
}

/* Keeps the compiler from folding a reused load into each of its uses (then the loads, not the
   multiplications, would be the limit). */
static inline vec vkeep(vec x)
{
    KEEP(x);
    return x;
}

static inline dvec dload(const double *p)
{
    return *(const dvec_at *)p;
}

static inline void dstore(double *p, dvec x)
{
    *(dvec_at *)p = x;
}

static inline dvec dkeep(dvec x)
{
    KEEP(x);
    return x;
}

static inline dvec dmul(dvec a, dvec b)
{
    return a * b;
}

static inline hvec hload(const uint16_t *p)
{
    return *(const hvec_at *)(const void *)p;
}

static inline void hstore(uint16_t *p, hvec h)
{
    *(hvec_at *)(void *)p = h;
}

static inline wvec iload(const uint16_t *p)
{
    return *(const wvec_at *)(const void *)p;
}

static inline void istore(uint16_t *p, wvec w)
{
    *(wvec_at *)(void *)p = w;
}

/* Rounded to the upper half of each lane, NaN like any number; the lower half is the remainder. */
static inline uvec round_word(vec x)
{
    const uvec bits = (uvec)x;
    return bits + 0x7fff + (bits >> 16 & 1);
}

/* Of the two numbers in a word the first is the lower one where the lower bytes come first. */
enum { FIRST_IS_LOW = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

static inline vec vfrom_low(wvec w)
{
    return (vec)(FIRST_IS_LOW ? (uvec)w << 16 : (uvec)w & 0xffff0000u);
}

static inline vec vfrom_high(wvec w)
{
    return (vec)(FIRST_IS_LOW ? (uvec)w & 0xffff0000u : (uvec)w << 16);
}

#endif

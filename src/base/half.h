/* SPDX-License-Identifier: MIT */
/*
 * half.h: the 16-bit storage types, to and from float, and the 8-bit ones to float
 *
 * f16 is IEEE binary16 (with subnormals and infinities), bf16 the upper half of a float. Storage only:
 * arithmetic is float or better. Rounding is to nearest, ties to even; NaN stays NaN. e4m3 is the 8-bit float
 * of the Open Compute Project (OCP 8-bit floating point specification, 2023: bias 7, no infinities, NaN where
 * all other bits are set); q8_0 ggml's block of 32 signed bytes behind an f16 scale.
 */
#ifndef PE_BASE_HALF_H
#define PE_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float pe_half_bits_to_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t pe_half_float_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float pe_half_bf16_to_float(uint16_t h)
{
    return pe_half_bits_to_float((uint32_t)h << 16);
}

static inline uint16_t pe_half_float_to_bf16(float x)
{
    const uint32_t bits = pe_half_float_to_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) /* NaN: stays quiet; rounding could make it infinite */
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float pe_half_f16_to_float(uint16_t h)
{
    /* Exponent and fraction moved to where float has them, and the exponent raised by a product that is
       exact: so subnormal numbers need no branch, and loops become vectors. */
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
    const uint32_t size = pe_half_float_to_bits(pe_half_bits_to_float(rest) * 0x1p112f);
    return pe_half_bits_to_float(sign | size | (rest >= 0x0f800000u ? 0x7f800000u : 0));
}

static inline uint16_t pe_half_float_to_f16(float x)
{
    const uint32_t bits = pe_half_float_to_bits(x), sign = (bits >> 16) & 0x8000u,
                   magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the rounded subnormal in the low bits */
        const float shifted = pe_half_bits_to_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (pe_half_float_to_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}

static inline float pe_half_e4m3_to_float(uint8_t x)
{
    /* A whole number times a power of two. Not as f16 above: small activations are subnormal here, which in
       float take many times as long. */
    const uint32_t exponent = x >> 3 & 15u, fraction = x & 7u, first = exponent ? exponent : 1;
    const float    size = (float)(int32_t)(exponent ? fraction + 8 : fraction) *
                       pe_half_bits_to_float((first + 117) << 23); /* 2^(first - 10) */
    const uint32_t bits = pe_half_float_to_bits(size) | (uint32_t)(x & 0x80u) << 24;
    return pe_half_bits_to_float(bits | ((x & 0x7fu) == 0x7f ? 0x7fc00000u : 0));
}

enum { PE_HALF_Q8 = 32, PE_HALF_Q8_BYTES = 34 }; /* numbers of a block of q8_0, and its bytes */

/* Number i of a row of blocks. */
static inline float pe_half_q8_to_float(const void *row, int64_t i)
{
    const unsigned char *block = (const unsigned char *)row + i / PE_HALF_Q8 * PE_HALF_Q8_BYTES;
    uint16_t             scale;
    memcpy(&scale, block, sizeof scale);
    return pe_half_f16_to_float(scale) * (float)(int8_t)block[2 + i % PE_HALF_Q8];
}

/* x to float so that rounding on to 16 bits gives what rounding x itself would: the bits cut off set the last
   bit ("round to odd"), so that no tie arises. */
static inline float pe_half_round_to_odd(double x)
{
    const float  near = (float)x;
    const double back = (double)near;
    if (back == x || x != x || pe_half_float_to_bits(near) & 1)
        return near;
    const int away = (back < x) == (x > 0); /* the odd neighbour on x's side */
    return pe_half_bits_to_float(pe_half_float_to_bits(near) + (away ? 1u : -1u));
}

static inline double pe_half_round_to_bf16(double x)
{
    return (double)pe_half_bf16_to_float(pe_half_float_to_bf16(pe_half_round_to_odd(x)));
}

static inline double pe_half_round_to_f16(double x)
{
    return (double)pe_half_f16_to_float(pe_half_float_to_f16(pe_half_round_to_odd(x)));
}

#endif

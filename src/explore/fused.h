/* SPDX-License-Identifier: MIT */
/*
 * fused.h: fma for a machine that has none: the module is compiled with this header before all others
 *
 * WebAssembly has no such instruction, and its C library computes with integers. Exact angles (base/angle.h)
 * need twenty of them for each pair and position: most of a picture's time went there. They are needed for
 * two things. Where a*b and c nearly cancel, what is left must be right: a*b is then taken as the exact sum
 * of two doubles. Where they do not, as in a polynomial, one more rounding is no harm.
 *
 * Error  exact where |a*b + c| < |c|/4, up to the last bit of the result; else 4 * 2^-53 of it. Numbers
 * beyond 2^990, or below the normal ones on the way, are rounded as they come Source Dekker, Numer. Math. 18
 * (1971) 224
 */
#ifndef PE_EXPLORE_FUSED_H
#define PE_EXPLORE_FUSED_H

#include <math.h>

static inline double pe_fused(double a, double b, double c)
{
    const double p = a * b, rounded = p + c;
    if (!(fabs(rounded) < 0.25 * fabs(c)))
        return rounded;
    const double A = a * 0x8000001p0, B = b * 0x8000001p0; /* 27 bits and the rest */
    const double a1 = A - (A - a), a2 = a - a1, b1 = B - (B - b), b2 = b - b1;
    return rounded + (((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2);
}

#ifdef __wasm__
#define fma pe_fused
#endif

#endif

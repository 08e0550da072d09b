/* SPDX-License-Identifier: MIT */
/*
 * quarter.h: the arithmetic of exact angles, inline
 *
 * What angle.h describes, without a branch and without a call except fma, rint and floor, so that a compiler
 * can vectorise it: the kernels compute whole rows of a table by the same operations, and so to the same
 * bits, as angle.c one angle. Files that include it must be compiled without contraction of a*b + c.
 */
#ifndef PE_BASE_QUARTER_H
#define PE_BASE_QUARTER_H

#include <math.h>

/* sin(pi/2 r)/r and cos(pi/2 r) as polynomials in r^2: Taylor coefficients (pi/2)^n/n!, correctly rounded.
   |r| <= 1/2: the first term left out is below 2e-18 in both. */
static inline double pe_quarter_sine(double r)
{
    const double s = r * r;
    double       sum =
        -0x1.6fadb9f155744p-31; /* unrolled: inner loops would keep the outer one from becoming vectors */
    sum = fma(sum, s, 0x1.e8f434d018d63p-25);
    sum = fma(sum, s, -0x1.e3074fde8871fp-19);
    sum = fma(sum, s, 0x1.50783487ee782p-13);
    sum = fma(sum, s, -0x1.32d2cce62bd86p-8);
    sum = fma(sum, s, 0x1.466bc6775aae2p-4);
    sum = fma(sum, s, -0x1.4abbce625be53p-1);
    /* the leading product in two parts: r*pi/2 rounds once, its error and the rest are added last */
    const double lead = r * 0x1.921fb54442d18p+0;
    return lead + fma(r, 0x1.921fb54442d18p+0, -lead) + r * (s * sum + 0x1.1a62633145c07p-54);
}

static inline double pe_quarter_cosine(double r)
{
    const double s   = r * r;
    double       sum = 0x1.20c62c2f2d7f5p-34;
    sum              = fma(sum, s, -0x1.b6e24f44b128fp-28);
    sum              = fma(sum, s, 0x1.f9d38a3763cc3p-22);
    sum              = fma(sum, s, -0x1.a6d1f2a204a8cp-16);
    sum              = fma(sum, s, 0x1.e1f506891babbp-11);
    sum              = fma(sum, s, -0x1.55d3c7e3cbffap-6);
    sum              = fma(sum, s, 0x1.03c1f081b5ac4p-2);
    sum              = fma(sum, s, -0x1.3bd3cc9be45dep+0);
    return fma(sum, s, 1.0);
}

/* Cosine and sine of n + r quarter turns, n whole. */
static inline void pe_quarter_turns(double n, double r, double *cosine, double *sine)
{
    const double c = pe_quarter_cosine(r), s = pe_quarter_sine(r);
    const double q      = n - 4.0 * floor(n * 0.25); /* quadrant 0..3, exact */
    const int    is_odd = q == 1 || q == 3, is_left = q == 1 || q == 2, is_low = q >= 2;
    const double x = is_odd ? s : c, y = is_odd ? c : s;
    *cosine = is_left ? -x : x;
    *sine   = is_low ? -y : y;
}

/* Of position * (k_hi + k_lo) quarter turns. */
static inline void pe_quarter_cos_sin(double position, double k_hi, double k_lo, double *cosine, double *sine)
{
    const double h = position * k_hi;
    const double e = fma(position, k_hi, -h) + position * k_lo;
    const double n = rint(h);
    pe_quarter_turns(n, (h - n) + e, cosine, sine);
}

#endif

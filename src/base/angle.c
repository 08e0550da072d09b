/* SPDX-License-Identifier: MIT */
/* Exact angles. Contract and idea: angle.h. */
#include "base/angle.h"

#include <math.h>

/* 2/pi to 107 bits */
#define TWO_OVER_PI_HI 0x1.45f306dc9c883p-1
#define TWO_OVER_PI_LO (-0x1.6b01ec5417056p-55)

pe_frequency pe_frequency_of(double w)
{
    pe_frequency k;
    k.k_hi = w * TWO_OVER_PI_HI;
    k.k_lo = fma(w, TWO_OVER_PI_HI, -k.k_hi) + w * TWO_OVER_PI_LO;
    return k;
}

/* sin(pi/2 r)/r and cos(pi/2 r) as polynomials in r^2: Taylor coefficients (pi/2)^n/n!, correctly rounded.
   |r| <= 1/2: the first term left out is below 2e-18 in both. */
static double sine_of_quarter(double r)
{
    static const double c[] = {
        0x1.921fb54442d18p+0,  -0x1.4abbce625be53p-1,  0x1.466bc6775aae2p-4,  -0x1.32d2cce62bd86p-8,
        0x1.50783487ee782p-13, -0x1.e3074fde8871fp-19, 0x1.e8f434d018d63p-25, -0x1.6fadb9f155744p-31,
    };
    const double s   = r * r;
    double       sum = c[7];
    for (int i = 6; i >= 1; i--)
        sum = fma(sum, s, c[i]);
    /* the leading product in two parts: r*pi/2 rounds once, its error and the rest are added last */
    const double lead = r * c[0];
    return lead + fma(r, c[0], -lead) + r * (s * sum + 0x1.1a62633145c07p-54);
}

static double cosine_of_quarter(double r)
{
    static const double c[] = {
        1.0,
        -0x1.3bd3cc9be45dep+0,
        0x1.03c1f081b5ac4p-2,
        -0x1.55d3c7e3cbffap-6,
        0x1.e1f506891babbp-11,
        -0x1.a6d1f2a204a8cp-16,
        0x1.f9d38a3763cc3p-22,
        -0x1.b6e24f44b128fp-28,
        0x1.20c62c2f2d7f5p-34,
    };
    const double s   = r * r;
    double       sum = c[8];
    for (int i = 7; i >= 1; i--)
        sum = fma(sum, s, c[i]);
    return fma(sum, s, c[0]);
}

/* Of n + r quarter turns, n whole. */
static void turned(double n, double r, double *cosine, double *sine)
{
    const double c = cosine_of_quarter(r), s = sine_of_quarter(r);
    const double f = n - 4.0 * floor(n * 0.25); /* quadrant 0..3, exact */
    const int    q = (int)f;
    *cosine        = q == 0 ? c : q == 1 ? -s : q == 2 ? -c : s;
    *sine          = q == 0 ? s : q == 1 ? c : q == 2 ? -s : -c;
}

void pe_cos_sin(double position, pe_frequency k, double *cosine, double *sine)
{
    const double h = position * k.k_hi;
    const double e = fma(position, k.k_hi, -h) + position * k.k_lo;
    const double n = nearbyint(h);
    turned(n, (h - n) + e, cosine, sine);
}

void pe_cos_sin_sum(int n, const double position[], const pe_frequency k[], double *cosine, double *sine)
{
    double whole = 0, high = 0, low = 0;
    for (int i = 0; i < n; i++) {
        const double h = position[i] * k[i].k_hi;
        const double e = fma(position[i], k[i].k_hi, -h) + position[i] * k[i].k_lo;
        const double w = nearbyint(h), r = h - w; /* exact */
        const double sum = high + r, back = sum - high;
        low += (high - (sum - back)) + (r - back) + e; /* what the sum lost */
        high = sum;
        whole += w - 4.0 * floor(w * 0.25);
    }
    const double w = nearbyint(high);
    turned(whole + w, (high - w) + low, cosine, sine);
}

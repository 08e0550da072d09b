/* SPDX-License-Identifier: MIT */
/* Exact angles. Contract and idea: angle.h. */
#include "base/angle.h"

#include <math.h>

#include "base/quarter.h"

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

void pe_cos_sin(double position, pe_frequency k, double *cosine, double *sine)
{
    pe_turned(position, k.k_hi, k.k_lo, cosine, sine);
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
    pe_quarter_turns(whole + w, (high - w) + low, cosine, sine);
}

/* SPDX-License-Identifier: MIT */
/* Exact angles, and waves of them. Contract and idea: angle.h. */
#include "base/angle.h"

#include <math.h>

#include "base/quarter.h"
#include "base/wide.h"

/* 2/pi to 107 bits */
#define TWO_OVER_PI_HI 0x1.45f306dc9c883p-1
#define TWO_OVER_PI_LO (-0x1.6b01ec5417056p-55)

pe_frequency pe_angle_frequency(double w)
{
    pe_frequency k;
    k.k_hi = w * TWO_OVER_PI_HI;
    k.k_lo = fma(w, TWO_OVER_PI_HI, -k.k_hi) + w * TWO_OVER_PI_LO;
    return k;
}

pe_frequency pe_angle_divided(pe_frequency k, double divisor)
{
    const double hi = k.k_hi / divisor;
    return (pe_frequency){hi, (fma(-hi, divisor, k.k_hi) + k.k_lo) / divisor};
}

void pe_angle_cos_sin(double position, pe_frequency k, double *cosine, double *sine)
{
    pe_quarter_cos_sin(position, k.k_hi, k.k_lo, cosine, sine);
}

void pe_angle_cos_sin_sum(int n, const double position[], const pe_frequency k[], double *cosine,
                          double *sine)
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

/* ---- waves into channels, and cotangents of channels into one sum ---- */

double pe_angle_base_frequency(double base, double k, double N)
{
    if (k == 0 || !(N > 0))
        return k == 0 ? 1.0 : pow(base, -k / N);
    return pe_wide_power(pe_wide_of(base), pe_wide_ratio(pe_wide_of(-k), pe_wide_of(N))).hi;
}

static int is_blank(const pe_waves *x, double position)
{
    return isnan(position) || position == x->blank;
}

static int is_channel(const pe_waves *x, int64_t channel)
{
    return channel >= 0 && channel < x->width;
}

static double single(double x)
{
    return (double)(float)x;
}

double pe_angle_base_frequency_single(double base, double k, double N, int divided)
{
    if (k == 0 || N == 0)
        return k == 0;
    const double exponent =
        divided ? single(single(k * single(-log(base))) / single(N)) : single(k * single(-(log(base) / N)));
    return single(exp(exponent));
}

/* What is multiplied by the frequency of the waves; where angles are made of floats, the angle, times 1. */
static double place_of(const pe_waves *x, int64_t s, double w)
{
    double pos = x->pos[s * x->step];
    if (x->divisor != 0)
        pos = single(single(pos) / single(x->divisor));
    if (!x->is_single)
        return pos;
    const double angle = single(single(pos) * single(w));
    return x->times == 0 ? angle : single(angle * single(x->times));
}

void pe_angle_wave_fill(const pe_waves *x, double w, int64_t sine, int64_t cosine, double size, double out[])
{
    const pe_frequency turns = pe_angle_frequency(x->is_single ? 1 : w);
    for (int64_t s = 0; s < x->n; s++) {
        double c, v, *row = out + s * x->width;
        if (is_blank(x, x->pos[s * x->step]))
            continue;
        pe_angle_cos_sin(place_of(x, s, w), turns, &c, &v);
        if (is_channel(x, sine))
            row[sine] = size * v;
        if (is_channel(x, cosine))
            row[cosine] = size * c;
    }
}

double pe_angle_wave_fold(const pe_waves *x, double w, int64_t sine, int64_t cosine, const double dout[])
{
    const pe_frequency turns = pe_angle_frequency(x->is_single ? 1 : w);
    double             sum   = 0;
    for (int64_t s = 0; s < x->n; s++) {
        double        c, v;
        const double *row = dout + s * x->width;
        if (is_blank(x, x->pos[s * x->step]))
            continue;
        pe_angle_cos_sin(place_of(x, s, w), turns, &c, &v);
        sum += (is_channel(x, sine) ? row[sine] * v : 0) + (is_channel(x, cosine) ? row[cosine] * c : 0);
    }
    return sum;
}

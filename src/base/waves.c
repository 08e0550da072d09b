/* SPDX-License-Identifier: MIT */
/* Waves into channels, and cotangents of channels into one sum. Contract: waves.h. */
#include "base/waves.h"

#include "base/wide.h"

#include <math.h>

#include "base/angle.h"

double pe_wave_frequency(double base, double k, double N)
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

void pe_wave_fill(const pe_waves *x, double w, int64_t sine, int64_t cosine, double size, double out[])
{
    const pe_frequency turns = pe_frequency_of(w);
    for (int64_t s = 0; s < x->n; s++) {
        double c, v, *row = out + s * x->width;
        if (is_blank(x, x->pos[s * x->step]))
            continue;
        pe_cos_sin(x->pos[s * x->step], turns, &c, &v);
        if (is_channel(x, sine))
            row[sine] = size * v;
        if (is_channel(x, cosine))
            row[cosine] = size * c;
    }
}

double pe_wave_fold(const pe_waves *x, double w, int64_t sine, int64_t cosine, const double dout[])
{
    const pe_frequency turns = pe_frequency_of(w);
    double             sum   = 0;
    for (int64_t s = 0; s < x->n; s++) {
        double        c, v;
        const double *row = dout + s * x->width;
        if (is_blank(x, x->pos[s * x->step]))
            continue;
        pe_cos_sin(x->pos[s * x->step], turns, &c, &v);
        sum += (is_channel(x, sine) ? row[sine] * v : 0) + (is_channel(x, cosine) ? row[cosine] * c : 0);
    }
    return sum;
}

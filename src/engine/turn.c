/* SPDX-License-Identifier: MIT */
/* Rotation by exact angles. Contract: turn.h. */
#include "engine/turn.h"

#include <math.h>

void pe_turn_finish(pe_turn *turn)
{
    for (int64_t m = 0; m < turn->M; m++)
        turn->k[m] = pe_frequency_of(turn->w[m]);
}

pe_turn pe_turn_for_keys(const pe_turn *turn)
{
    pe_turn keys     = *turn;
    keys.growth_sign = -turn->growth_sign;
    return keys;
}

static double factor(const pe_turn *turn, int64_t m, double position)
{
    if (!turn->growth)
        return turn->magnitude;
    return turn->magnitude * exp(turn->growth_sign * turn->growth[m] * (position - turn->center));
}

void pe_turn_table(float *table, const pe_turn *turn, const posenc_positions *pos, int64_t b, int64_t s0,
                   int64_t n)
{
    const int64_t M = turn->M;
    for (int64_t s = 0; s < n; s++) {
        const double p   = pe_position(pos, b, s0 + s);
        float       *row = table + s * 2 * M;
        for (int64_t m = 0; m < M; m++) {
            double c, n_;
            pe_cos_sin(p, turn->k[m], &c, &n_);
            const double f = factor(turn, m, p);
            row[m]         = (float)(c * f);
            row[m + M]     = (float)(n_ * f);
        }
    }
}

void pe_turn_row(double *x, const pe_turn *turn, double position, double sign)
{
    const int64_t M = turn->M;
    double       *y = x + turn->first;
    for (int64_t m = 0; m < M; m++) {
        const int64_t a = turn->layout == PE_HALF ? m : 2 * m,
                      b = turn->layout == PE_HALF ? m + M : 2 * m + 1;
        const double xa = y[a], xb = y[b];
        double       c, n;
        pe_cos_sin(position, turn->k[m], &c, &n);
        const double f = factor(turn, m, position);
        c *= f;
        n *= f * sign;
        y[a] = xa * c - xb * n;
        y[b] = xb * c + xa * n;
    }
}

void pe_turn_rows(float *x, int64_t stride, const pe_turn *turn, const float *table, int64_t R, float sign,
                  const pe_kernels *kernels)
{
    pe_rotate_fn *rotate = turn->layout == PE_HALF ? kernels->rotate_half : kernels->rotate_interleaved;
    rotate(x + turn->first, stride, table, 2 * turn->M, R, turn->M, sign);
}

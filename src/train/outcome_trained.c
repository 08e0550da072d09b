/* SPDX-License-Identifier: MIT */
/*
 * outcome_trained.c: what runs measured of their trained models (trained.h), over the seeds of an encoding
 *
 * Weights are averaged over seeds. Of the shifts that of the seed stands there which notices it most: a claim
 * of zero must hold for each. Losses with a truncated context stay apart by seed and window, as their
 * differences are paired.
 */
#include "train/outcome.h"

#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 0.9

static int allocate(pe_outcome *o, int64_t seeds)
{
    const pe_run_config *c = &o->config;
    free(o->near); /* measured again: tests do that */
    free(o->far);
    free(o->truncated);
    o->near      = calloc((size_t)c->L, sizeof *o->near);
    o->far       = calloc((size_t)(PE_REACH * c->L), sizeof *o->far);
    o->truncated = malloc((size_t)(seeds * c->windows) * sizeof *o->truncated);
    return o->near && o->far && o->truncated;
}

static void take_shift(pe_outcome *o, const float *shift)
{
    for (int i = 0; i < PE_SHIFTS; i++)
        if (!(fabs((double)shift[i]) <= fabs(o->shift[i])))
            o->shift[i] = (double)shift[i];
}

static void take_seed(pe_outcome *o, int64_t s, int64_t seeds)
{
    const pe_run_config    *c       = &o->config;
    const pe_trained_layout at      = pe_trained_lay_out(c);
    const float            *numbers = o->runs[s].trained;
    take_shift(o, numbers + at.shift);
    for (int64_t t = 0; t < c->L; t++)
        o->near[t] += (double)numbers[at.near + t] / (double)seeds;
    for (int64_t t = 0; t < PE_REACH * c->L; t++)
        o->far[t] += (double)numbers[at.far + t] / (double)seeds;
    for (int64_t w = 0; w < c->windows; w++)
        o->truncated[s * c->windows + w] = (double)numbers[at.truncated + w];
}

posenc_status pe_outcome_take_trained(pe_outcome *o, int64_t seeds, posenc_error *err)
{
    if (!allocate(o, seeds))
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the trained models of %s", o->label);
    for (int i = 0; i < PE_SHIFTS; i++)
        o->shift[i] = 0;
    for (int64_t s = 0; s < seeds; s++)
        take_seed(o, s, seeds);
    o->near_90 = pe_mass_distance(o->near, o->config.L, SHARE);
    o->far_90  = pe_mass_distance(o->far, PE_REACH * o->config.L, SHARE);
    return POSENC_OK;
}

double pe_outcome_largest_shift(const pe_outcome *o)
{
    double largest = NAN;
    for (int i = 0; i < PE_SHIFTS; i++)
        if (!isnan(o->shift[i]))
            largest = isnan(largest) ? fabs(o->shift[i]) : fmax(largest, fabs(o->shift[i]));
    return largest;
}

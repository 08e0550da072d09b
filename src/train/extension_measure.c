/* SPDX-License-Identifier: MIT */
/*
 * extension_measure.c: from the runs of extended models to losses and paired differences
 *
 * Every way reads the same windows, and its model stems from the same seed's trained one, so differences are
 * taken window by window and seed by seed, as between encodings (statistics.c). A family counts when the runs
 * of all its seeds have ended.
 */
#include "train/extension.h"

#include "train/extension_run.h"
#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of way, factor and tuning in a bucket: [seeds, windows]. */
static double *means_at(const pe_extension *x, int way, int factor, int tuning, int bucket)
{
    const int64_t at = ((int64_t)(way * PE_FACTORS + factor) * PE_TUNINGS + tuning) * PE_FAR_BUCKETS + bucket;
    return x->means + at * x->seeds * x->windows;
}

static int has_ended_well(const pe_outcome *o, int64_t seeds)
{
    for (int64_t s = 0; s < seeds; s++)
        if (atomic_load(&o->ended[s]) != 1 + POSENC_OK)
            return 0;
    return 1;
}

/* What one run says about the way that is number k of its family. */
static void take_way(pe_extension *x, const pe_extension_plan *p, int k, const float *numbers, int64_t seed)
{
    for (int f = 0; f < PE_FACTORS; f++)
        for (int t = 0; t < PE_TUNINGS; t++)
            for (int b = 0; b < PE_FAR_BUCKETS; b++) {
                const float *from = numbers + pe_extension_at(p, k, f, t, b);
                double      *to   = means_at(x, p->ways[k], f, t, b) + seed * x->windows;
                for (int64_t w = 0; w < x->windows; w++)
                    to[w] = (double)from[w];
            }
}

posenc_status pe_extension_measure(pe_extension *x, posenc_error *err)
{
    const int64_t n = pe_way_count() * PE_FACTORS * PE_TUNINGS * PE_FAR_BUCKETS * x->seeds * x->windows;
    if (x->count == 0)
        return POSENC_OK;
    free(x->means);
    x->means = malloc((size_t)n * sizeof *x->means);
    if (!x->means)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the losses of extended models");
    for (int64_t i = 0; i < n; i++)
        x->means[i] = NAN;
    for (int f = 0; f < x->count; f++)
        for (int64_t s = 0; has_ended_well(&x->outcomes[f], x->seeds) && s < x->seeds; s++)
            for (int k = 0; k < x->plans[f].way_count; k++)
                take_way(x, &x->plans[f], k, x->outcomes[f].runs[s].sequel, s);
    return POSENC_OK;
}

double pe_extension_loss(const pe_extension *x, int way, int factor, int tuning, int bucket)
{
    return x->means ? pe_mean(means_at(x, way, factor, tuning, bucket), x->seeds * x->windows) : NAN;
}

int pe_extension_has(const pe_extension *x, int way, int factor, int tuning)
{
    return isfinite(pe_extension_loss(x, way, factor, tuning, PE_AT_L));
}

pe_interval pe_extension_difference(const pe_extension *x, pe_spot a, pe_spot b, int bucket)
{
    return pe_bootstrap_difference(x->bootstrap, means_at(x, a.way, a.factor, a.tuning, bucket),
                                   means_at(x, b.way, b.factor, b.tuning, bucket));
}

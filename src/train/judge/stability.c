/* SPDX-License-Identifier: MIT */
/*
 * stability.c: from the levels of a comparison to what of its order is settled
 *
 * order.h judges; here it is given the losses of every encoding at every level, in the bucket at L and in the
 * last one.
 */
#include "train/judge/judge.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

/* Differences that mean nothing, however many seeds there are. */
static const double resolutions[PE_ORDERS_SHOWN] = {0.01, 0.05};

double pe_stability_resolution(int order)
{
    return resolutions[order];
}

/* An order of a comparison, and its bucket. */
typedef struct judged_order {
    const pe_compare *c;
    int               which, bucket;
} judged_order;

/* Half of the interval of the pair's difference; of a level, which has one seed, also two standard deviations
   of a difference between seeds. Levels may be there before the comparison is, after an interrupt. */
static double resolution_of(const void *self, int level, int a, int b)
{
    const judged_order *o   = self;
    const pe_outcome   *one = &o->c->outcomes[a], *other = &o->c->outcomes[b];
    const double        least =
        o->c->unit * resolutions[o->which == PE_ORDER_AT_L ? PE_ORDER_AT_L : PE_ORDER_FURTHEST];
    if (!one->is_complete || !other->is_complete)
        return least;
    const pe_interval d = pe_losses_difference(o->c, a, b, o->bucket);
    const double      one_seed =
        pe_stability_level(o->c->levels, level) == PE_LEVEL_WHOLE
                 ? 0
                 : 2 * sqrt(one->spread[o->bucket].variance + other->spread[o->bucket].variance);
    return fmax(least, fmax(one_seed, (d.high - d.low) / 2)); /* fmax ignores NaN */
}

/* -1: no such bucket between the two orders that are shown. */
static int bucket_of(const pe_compare *c, int which)
{
    const int furthest = pe_stats_furthest(c->config.preset.reach), between = which - PE_ORDER_OF_BUCKET;
    return which == PE_ORDER_AT_L                    ? PE_AT_L
           : which == PE_ORDER_FURTHEST              ? furthest
           : between > PE_AT_L && between < furthest ? between
                                                     : -1;
}

int pe_stability_level(const pe_levels *levels, int k)
{
    int level = 0;
    while (!pe_level_exists(levels, level) || k-- > 0)
        level++;
    return level;
}

static int count_levels(const pe_levels *levels)
{
    int count = 0;
    for (int level = 0; level < PE_LEVELS; level++)
        count += pe_level_exists(levels, level);
    return count;
}

/* The whole is measured with the comparison. */
static posenc_status measure_levels(pe_compare *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int level = 0; level < PE_LEVEL_WHOLE; level++)
        for (int i = 0; i < c->count && !status; i++) {
            pe_outcome *o = pe_level_outcome(c, level, i);
            if (o)
                status = pe_losses_measure(o, 1, err);
        }
    return status;
}

static posenc_status judge_order(pe_compare *c, int which, int levels, double *losses, posenc_error *err)
{
    const int             bucket   = bucket_of(c, which);
    const judged_order    self     = {c, which, bucket};
    const pe_order_losses question = {
        .items = c->count, .levels = levels, .losses = losses, .resolution = resolution_of, .self = &self};
    for (int k = 0; k < levels; k++)
        for (int i = 0; i < c->count; i++)
            losses[k * c->count + i] =
                pe_losses_ranked(pe_level_outcome(c, pe_stability_level(c->levels, k), i), bucket);
    pe_order_free(c->orders[which]);
    c->orders[which] = NULL;
    return pe_order_create(&c->orders[which], &question, err);
}

posenc_status pe_stability_measure(pe_compare *c, posenc_error *err)
{
    const int     levels = count_levels(c->levels);
    double       *losses = malloc((size_t)(levels * c->count + 1) * sizeof *losses);
    posenc_status status = measure_levels(c, err);
    if (!status && !losses)
        status = pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the order");
    for (int which = 0; which < PE_ORDERS && levels && !status; which++)
        if (bucket_of(c, which) >= 0)
            status = judge_order(c, which, levels, losses, err);
    free(losses);
    return status;
}

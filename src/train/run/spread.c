/* SPDX-License-Identifier: MIT */
/*
 * spread.c: the variance between seeds, of all encodings together
 *
 * Model      In one bucket the mean loss of encoding e and seed s is y[e,s] = m[e] + c[s] + x[e,s]. c is
 *            common to all encodings (same first weights, same batches) and cancels in differences. The
 *            spread of e is the variance of x[e,.]. The spreads of a class scatter about their pool v as
 *            v d0 / chi2(d0) does: d0 large means alike, d0 small that each is different.
 * Pool       of e: the spreads of the others in its class and the stored one, weighted with their degrees
 *            of freedom. The stored one counts STORED, for it is a mean of texts that differ (spread.def).
 *            A pool is known with D degrees of freedom, and as a prior for e with n0 = 1 / (1/d0 + 1/D),
 *            as the variances of the logarithms, about 2/d0 and 2/D, add.
 * Moderated  The spread of e is (n0 v + n s^2) / (n0 + n) with n0 + n degrees of freedom; s^2 is e's own
 *            variance with n. With one seed there is no s^2, and this is the stored spread.
 * Test       Are the variances alike? An own variance that is too large for the pool of the others (F
 *            test, 0.1 %) is "odd": it stays out of c and of all pools, and has no help from them.
 * Centring   c[s] is the mean over the encodings of class 0 that are not odd; their x then has the share
 *            (E - 1) / E of its variance and of its degrees of freedom. The variance is divided by that
 *            share. With two encodings that keep their loss and many seeds this is the paired t-test.
 * Rates      A share of right answers varies most where a task is half learned: with
 *            q = (share - chance) / (1 - chance) the stored deviation of q is RATE_DEVIATION q (1 - q), which
 *            is constant on the scale of log q/(1-q).
 * Source     Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3, 3 (moderated t); Phipson et al. 2016, Ann. Appl.
 *            Stat. 10, 946 (odd variances); Searle, Casella and McCulloch 1992, Variance Components. Whether
 *            the intervals hold what they say: tests/train/test_spread.c.
 */
#include "train/run/spread.h"

#include <math.h>
#include <stddef.h>

#define STORED         8.0   /* degrees of freedom */
#define ODD            0.001 /* probability */
#define RATE_DEVIATION 0.7   /* docs/experiments.md, section 11: order and parity from several seeds */
#define RATE_FREEDOM   6.0   /* there from 0.2 to 1.5 */

int pe_spread_class(double ratio)
{
    return isnan(ratio) ? -1 : ratio <= 1.1 ? 0 : ratio <= 1.4 ? 1 : 2;
}

pe_spread pe_spread_stored(int bucket, int class, double unit)
{
    static const double stored[][2 * PE_SPREAD_CLASSES] = {
#define SPREAD(...) {__VA_ARGS__},
#include "train/run/spread.def"
#undef SPREAD
    };
    const int     last = (int)(sizeof stored / sizeof *stored) - 1;
    const double *one  = stored[bucket < last ? bucket : last] + 2 * class; /* deviation, freedom */
    return (pe_spread){one[0] * one[0] * unit * unit, one[1], 0};
}

/* ---------------------------------------------------------------- own variances ------------- */

/* Run mean - mean of the encoding's runs. */
static double deviation(const pe_spread_runs *r, int e, int64_t seed)
{
    const double *own = r->means + e * r->seeds;
    return own[seed] - pe_stats_mean(own, r->seeds);
}

static int is_centre(const pe_spread_runs *r, const pe_spread *s, int e)
{
    return r->classes[e] == 0 && !s[e].is_odd;
}

/* What the seed does to all encodings: the mean deviation of those that are centres, if they are two. */
static double common(const pe_spread_runs *r, const pe_spread *s, int64_t seed)
{
    double sum = 0;
    int    n   = 0;
    for (int e = 0; e < r->count; e++)
        if (is_centre(r, s, e)) {
            sum += deviation(r, e, seed);
            n++;
        }
    return n > 1 ? sum / n : 0;
}

static int count_centres(const pe_spread_runs *r, const pe_spread *s)
{
    int n = 0;
    for (int e = 0; e < r->count; e++)
        n += is_centre(r, s, e);
    return n;
}

/* Each encoding's own variance, as it is or without what is common. */
static void measure_own(pe_spread *s, const pe_spread_runs *r, int is_centred)
{
    const int    centres = is_centred ? count_centres(r, s) : 0;
    const double lost    = centres > 1 ? (double)centres / (centres - 1) : 1;
    for (int e = 0; e < r->count; e++)
        s[e].freedom = s[e].variance = 0;
    for (int64_t seed = 0; seed < r->seeds && r->seeds > 1; seed++) {
        const double c = centres > 1 ? common(r, s, seed) : 0;
        for (int e = 0; e < r->count; e++) {
            const double x = deviation(r, e, seed) - c, factor = is_centre(r, s, e) ? lost : 1;
            s[e].variance += factor * x * x / (double)(r->seeds - 1);
            s[e].freedom = (double)(r->seeds - 1) / factor;
        }
    }
}

/* ---------------------------------------------------------------- pools --------------------- */

/* The stored spread and those of the class of e that are not odd, except its own. */
static pe_spread pool_of_others(const pe_spread *s, const pe_spread_runs *r, int e)
{
    const pe_spread stored  = pe_spread_stored(r->bucket, r->classes[e], r->unit);
    double          squares = STORED * stored.variance, freedom = STORED;
    for (int f = 0; f < r->count; f++)
        if (f != e && r->classes[f] == r->classes[e] && !s[f].is_odd) {
            squares += s[f].freedom * s[f].variance;
            freedom += s[f].freedom;
        }
    return (pe_spread){squares / freedom, 1 / (1 / stored.freedom + 1 / freedom), 0};
}

/* Marks encodings as odd until no more are. */
static void mark_odd(pe_spread *s, const pe_spread_runs *r)
{
    for (int found = 1; found && r->seeds > 1;) {
        found = 0;
        for (int e = 0; e < r->count; e++) {
            if (r->classes[e] < 0 || s[e].is_odd)
                continue;
            const pe_spread pool = pool_of_others(s, r, e);
            s[e].is_odd = pe_stats_above_f(s[e].variance / pool.variance, s[e].freedom, pool.freedom) < ODD;
            found |= s[e].is_odd;
        }
    }
}

static pe_spread moderated(pe_spread own, pe_spread pool)
{
    const double freedom = pool.freedom + own.freedom;
    return (pe_spread){(pool.freedom * pool.variance + own.freedom * own.variance) / freedom, freedom, 0};
}

void pe_spread_estimate(pe_spread *spreads, pe_spread *own, const pe_spread_runs *runs)
{
    for (int e = 0; e < runs->count; e++)
        own[e].is_odd = 0;
    measure_own(own, runs, 0);
    mark_odd(own, runs);
    measure_own(own, runs, 1);
    for (int e = 0; e < runs->count; e++)
        spreads[e] = runs->classes[e] < 0 ? (pe_spread){NAN, NAN, 0}
                     : own[e].is_odd      ? own[e]
                                          : moderated(own[e], pool_of_others(own, runs, e));
}

/* ---------------------------------------------------------------- others -------------------- */

pe_spread pe_spread_of_readings(const pe_stats_sample *a, const pe_stats_sample *b, int bucket, int class_a,
                                int class_b, double unit)
{
    if (class_a < 0 || class_b < 0)
        return (pe_spread){NAN, NAN, 0};
    const pe_spread one   = pe_spread_stored(bucket, class_a, unit),
                    other = pe_spread_stored(bucket, class_b, unit),
                    wider = one.variance > other.variance ? one : other;
    pe_spread    own      = {0, (double)(a->seeds - 1), 0};
    const double mean     = pe_stats_difference(a, b).value;
    for (int64_t s = 0; s < a->seeds && a->seeds > 1; s++) {
        const int64_t at = s * a->windows;
        const double  x  = pe_stats_mean(a->x + at, a->windows) - pe_stats_mean(b->x + at, a->windows) - mean;
        own.variance += x * x / own.freedom;
    }
    return moderated(own,
                     (pe_spread){one.variance + other.variance, 1 / (1 / wider.freedom + 1 / STORED), 0});
}

pe_spread pe_spread_of_rate(const double *by_seed, int64_t seeds, int64_t n, double chance)
{
    const double middle    = (pe_stats_mean(by_seed, seeds) * (double)n + 2) / ((double)n + 4), /* Wilson's */
        known              = fabs(middle - chance) / (1 - chance),
                 deviation = RATE_DEVIATION * (1 - chance) * known * (1 - known);
    pe_spread own          = {0, (double)(seeds - 1), 0};
    for (int64_t s = 0; s < seeds && seeds > 1; s++) {
        const double x = by_seed[s] - pe_stats_mean(by_seed, seeds);
        own.variance += x * x / own.freedom;
    }
    return moderated(own, (pe_spread){deviation * deviation, RATE_FREEDOM, 0});
}

const char *pe_spread_advice(int64_t seeds)
{
    return seeds == 2
               ? "--seeds 2: two seeds cannot show which of them is the exception: take one, whose intervals "
                 "use a spread that was measured beforehand, or at least three"
               : NULL;
}

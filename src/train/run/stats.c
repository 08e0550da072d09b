/* SPDX-License-Identifier: MIT */
/*
 * stats.c: buckets, paired bootstrap, shared ranks
 *
 * Pairing    The same windows are read under every encoding. Some windows are hard for all, which makes
 *            losses vary by 0.09 nats from window to window, but the differences of two encodings by 0.013
 *            only: so windows are resampled together and the difference is taken within each. It is worth
 *            fifty times the windows.
 * Seeds      Every seed is evaluated on the same windows, so windows and seeds are crossed, not nested: a
 *            resample draws windows once for all seeds; drawing them for each seed anew would average their
 *            noise away and claim too much. What seeds add is the error of their mean: each resample is
 *            spread by it times Student's t with seeds - 1 degrees of freedom. Resampling two or three seeds
 *            instead gives the interval from the least to the largest of them, outside which the truth lies
 *            in a half or a quarter of the cases and not in a twentieth. t is the paired t-test that the
 *            papers use, and honest about two seeds: they bound little. With one seed the interval is about
 *            other windows of this text, nothing more.
 * Exact t    No t is drawn: with two seeds it is Cauchy's distribution, of whose draws even 2000 leave the
 *            ends of the interval uncertain by a seventh. The resamples are a mixture of t curves, one about
 *            each mean over windows, and the ends are where that mixture's own probability is 2.5 and 97.5 %.
 * Random     Numbers are named by resample and window (counter-based), and drawn once for a whole comparison.
 * Rates      of right answers have Wilson's interval, which stays within 0 and 1.
 * Source     Wilson 1927, J. Am. Stat. Assoc. 22, 209; Efron and Tibshirani 1993, chapters 8 and 13
 *            (percentile interval); Davison and Hinkley 1997, 3.8 (hierarchical data); Owen 2007,
 *            arXiv:0712.1111 (crossed data); Student 1908; Abramowitz and Stegun 1964, 26.7.3 and 26.7.4 (t
 *            for whole degrees of freedom); Dowell and Jarratt 1971, BIT 11, 168 (Illinois).
 */
#include "train/run/stats.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

/* Half of what a 95 % interval leaves out. */
#define TAIL 0.025

int pe_stats_furthest(int64_t reach)
{
    int bucket = PE_AT_L;
    while (reach >>= 1)
        bucket++;
    return bucket;
}

int pe_stats_buckets(int64_t reach)
{
    return pe_stats_furthest(reach) + 1;
}

/* 0, L/2, L, 2 L, 4 L ... */
int64_t pe_stats_bucket_edge(int64_t L, int bucket)
{
    return bucket == 0 ? 0 : bucket == 1 ? L / 2 : L << (bucket - 2);
}

const char *pe_stats_bucket_name(int bucket)
{
    static const char *const names[PE_MOST_BUCKETS] = {"0..L/2", "L/2..L", "x2",  "x4",
                                                       "x8",     "x16",    "x32", "x64"};
    return names[bucket];
}

const char *pe_stats_length_name(int bucket)
{
    return bucket == PE_AT_HALF ? "L/2" : bucket == PE_AT_L ? "L" : pe_stats_bucket_name(bucket);
}

void pe_stats_bucket_means(double *means, const float *losses, int64_t windows, int64_t length, int64_t L,
                           int bucket)
{
    const int64_t first = pe_stats_bucket_edge(L, bucket), end = pe_stats_bucket_edge(L, bucket + 1);
    for (int64_t w = 0; w < windows; w++) {
        double sum = 0;
        for (int64_t p = first; p < end; p++)
            sum += (double)losses[w * length + p];
        means[w] = sum / (double)(end - first);
    }
}

double pe_stats_random_cosine(int64_t d)
{
    return exp(lgamma((double)d / 2) - lgamma((double)(d + 1) / 2)) / sqrt(acos(-1.0));
}

double pe_stats_mean(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

void pe_stats_smooth(double *smooth, const double *x, int64_t n, int64_t width)
{
    const int64_t before = (width - 1) / 2, after = width / 2;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = i < before ? 0 : i - before, end = i + after + 1 > n ? n : i + after + 1;
        smooth[i] = pe_stats_mean(x + first, end - first);
    }
}

pe_interval pe_stats_wilson(double rate, int64_t n)
{
    const double z = 1.959963984540054, zz = z * z / (double)n; /* the 97.5 % quantile of the normal */
    const double middle = rate + zz / 2,
                 half   = z * sqrt(rate * (1 - rate) / (double)n + zz / (4 * (double)n));
    if (isnan(rate))
        return (pe_interval){NAN, NAN, NAN};
    /* the rate lies within: the rounding of 1 - 1 must not put it outside */
    return (pe_interval){rate, fmax(0, fmin(rate, (middle - half) / (1 + zz))),
                         fmin(1, fmax(rate, (middle + half) / (1 + zz)))};
}

/* ---------------------------------------------------------------- bootstrap ----------------- */

struct pe_bootstrap {
    int64_t  seeds, windows, resamples;
    int32_t *rows;    /* [resamples, windows] which window */
    double  *mean;    /* [windows] over the seeds, of the difference at hand */
    double  *means;   /* [resamples] in ascending order */
    double   student; /* the 1 - TAIL quantile of t with seeds - 1 degrees of freedom; 0 with one seed */
};

/* P(t <= x) for Student's t: a finite sum, since the degrees of freedom are whole. */
static double student_below(double x, int64_t freedom)
{
    const int64_t odd    = freedom % 2;
    const double  square = (double)freedom + x * x, cosine2 = (double)freedom / square;
    double        term = odd ? sqrt(cosine2) : 1, sum = 0;
    for (int64_t k = odd; k <= freedom - 2; k += 2) {
        sum += term;
        term *= cosine2 * (double)(k + 1) / (double)(k + 2);
    }
    sum *= x / sqrt(square);
    return 0.5 + (odd ? (atan(x / sqrt((double)freedom)) + sum) / acos(-1.0) : sum / 2);
}

/* Its 1 - TAIL quantile, which lies between those of the normal and of Cauchy's distribution: 1.96 and
   12.71. */
static double student_quantile(int64_t freedom)
{
    double low = 1, high = 16;
    for (int i = 0; freedom && i < 60; i++) {
        const double middle = (low + high) / 2;
        if (student_below(middle, freedom) < 1 - TAIL)
            low = middle;
        else
            high = middle;
    }
    return freedom ? high : 0;
}

posenc_status pe_stats_bootstrap_create(pe_bootstrap **bootstrap, int64_t seeds, int64_t windows,
                                        int64_t resamples, uint64_t seed, posenc_error *err)
{
    pe_bootstrap *b = calloc(1, sizeof *b);
    *bootstrap      = b;
    if (b)
        *b = (pe_bootstrap){seeds,
                            windows,
                            resamples,
                            malloc((size_t)(resamples * windows) * sizeof *b->rows),
                            malloc((size_t)windows * sizeof *b->mean),
                            malloc((size_t)resamples * sizeof *b->means),
                            student_quantile(seeds - 1)};
    if (!b || !b->rows || !b->mean || !b->means) {
        pe_stats_bootstrap_free(b);
        *bootstrap = NULL;
        return pe_fail(err, POSENC_ERROR_MEMORY, "statistics: no memory for %lld resamples of %lld windows",
                       (long long)resamples, (long long)windows);
    }
    for (int64_t i = 0; i < resamples * windows; i++)
        b->rows[i] = (int32_t)(int64_t)(posenc_random_uniform(seed, "bootstrap windows", (uint64_t)i) *
                                        (double)windows);
    return POSENC_OK;
}

void pe_stats_bootstrap_free(pe_bootstrap *bootstrap)
{
    if (!bootstrap)
        return;
    free(bootstrap->rows);
    free(bootstrap->mean);
    free(bootstrap->means);
    free(bootstrap);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile of n sorted numbers, between its two neighbours. */
static double quantile(const double *sorted, int64_t n, double q)
{
    const double  at = q * (double)(n - 1);
    const int64_t i  = (int64_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* b->mean[w] = mean over the seeds of x - y in window w; returns the mean over all. */
static double mean_over_seeds(const pe_bootstrap *b, const double *x, const double *y)
{
    for (int64_t w = 0; w < b->windows; w++) {
        double sum = 0;
        for (int64_t s = 0; s < b->seeds; s++)
            sum += x[s * b->windows + w] - y[s * b->windows + w];
        b->mean[w] = sum / (double)b->seeds;
    }
    return pe_stats_mean(b->mean, b->windows);
}

/* Standard error over the seeds of a mean difference; 0 with one seed, which has none to show. */
static double error_over_seeds(const pe_bootstrap *b, const double *x, const double *y, double mean)
{
    double squares = 0;
    for (int64_t s = 0; s < b->seeds; s++) {
        const double *a = x + s * b->windows, *c = y + s * b->windows;
        const double  one = pe_stats_mean(a, b->windows) - pe_stats_mean(c, b->windows) - mean;
        squares += one * one;
    }
    return b->seeds > 1 ? sqrt(squares / (double)(b->seeds - 1) / (double)b->seeds) : 0;
}

typedef struct quantile_point {
    double x, off; /* where, and the share below it minus the share that is sought */
} quantile_point;

/* The share of the resamples, each spread by t times the error, that lies below x. */
static quantile_point point_at(const pe_bootstrap *b, double error, int side, double x)
{
    double sum = 0;
    for (int64_t r = 0; r < b->resamples; r++)
        sum += student_below((x - b->means[r]) / error, b->seeds - 1);
    return (quantile_point){x, sum / (double)b->resamples - (side < 0 ? TAIL : 1 - TAIL)};
}

/* Where that share is TAIL (side -1) or 1 - TAIL (side 1). The same quantile of t about the least and about
   the largest mean holds it between them; the rule of false position narrows that, halving the end that stays
   (Illinois). */
static double spread_quantile(const pe_bootstrap *b, double error, int side)
{
    const double   reach  = side * b->student * error;
    quantile_point end[2] = {point_at(b, error, side, b->means[0] + reach),
                             point_at(b, error, side, b->means[b->resamples - 1] + reach)};
    quantile_point p      = end[1];
    for (int i = 0, last = -1; i < 100 && fabs(p.off) > 1e-10 && end[0].off < 0 && end[1].off > 0; i++) {
        const double share = end[0].off / (end[0].off - end[1].off);
        p                  = point_at(b, error, side, end[0].x + (end[1].x - end[0].x) * share);
        const int now      = p.off > 0;
        end[now]           = p;
        end[!now].off /= now == last ? 2 : 1;
        last = now;
    }
    return p.x;
}

static void resample_means(pe_bootstrap *b)
{
    for (int64_t r = 0; r < b->resamples; r++) {
        const int32_t *rows = b->rows + r * b->windows;
        double         sum  = 0;
        for (int64_t w = 0; w < b->windows; w++)
            sum += b->mean[rows[w]];
        b->means[r] = sum / (double)b->windows;
    }
    qsort(b->means, (size_t)b->resamples, sizeof *b->means, ascending);
}

pe_interval pe_stats_bootstrap_difference(pe_bootstrap *b, const double *x, const double *y)
{
    pe_interval result = {mean_over_seeds(b, x, y), NAN, NAN};
    if (!isfinite(result.value))
        return result;
    const double error = error_over_seeds(b, x, y, result.value);
    resample_means(b);
    result.low  = error > 0 ? spread_quantile(b, error, -1) : quantile(b->means, b->resamples, TAIL);
    result.high = error > 0 ? spread_quantile(b, error, 1) : quantile(b->means, b->resamples, 1 - TAIL);
    return result;
}

/* ---------------------------------------------------------------- ranks, breaks ------------- */

void pe_stats_sort(int order[], const double *keys, int count)
{
    for (int i = 1; i < count; i++) /* few items: insertion, which leaves equals in order */
        for (int k = i; k > 0; k--) {
            const double above = keys[order[k - 1]], here = keys[order[k]];
            if (!(here < above || (isnan(above) && !isnan(here))))
                break;
            const int swap = order[k];
            order[k]       = order[k - 1];
            order[k - 1]   = swap;
        }
}

/* The lowest mean that has no rank yet; the first of equals; -1 if there is none. */
static int next_best(const int *ranks, const double *means, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (!ranks[i] && !isnan(means[i]) && (best < 0 || means[i] < means[best]))
            best = i;
    return best;
}

void pe_stats_rank(int *ranks, const double *means, int count,
                   int (*differs)(void *self, int better, int worse), void *self)
{
    int leader = -1, placed = 0;
    for (int i = 0; i < count; i++)
        ranks[i] = 0;
    for (int i = next_best(ranks, means, count); i >= 0; i = next_best(ranks, means, count)) {
        if (leader < 0 || differs(self, leader, i))
            leader = i;
        ranks[i] = leader == i ? placed + 1 : ranks[leader];
        placed++;
    }
}

int64_t pe_stats_break_position(const double *smooth, int64_t n, double limit)
{
    for (int64_t p = n - 1; p >= 0; p--)
        if (smooth[p] <= limit)
            return p;
    return -1;
}

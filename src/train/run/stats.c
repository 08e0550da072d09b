/* SPDX-License-Identifier: MIT */
/*
 * stats.c: buckets, intervals of differences and ratios, shared ranks
 *
 * Model      loss[e, s, w] = mean + encoding e + window w + seed s + (e, w) + (e, s) + rest: encodings are
 *            what is asked about, windows and seeds are drawn at random and crossed, as all encodings and all
 *            seeds read the same windows. In the difference of two encodings window and seed cancel. What
 *            remains: the variance of (e, w), seen in the differences by window, of which there are many; and
 *            that of (e, s), the "spread" of an encoding, which few seeds show badly: spread.c estimates it
 *            from all encodings together. Variance of the difference of two means over W windows and S seeds:
 *            v(windows) / W + (spread + spread) / S.
 * Pairing    Some windows are hard for all encodings, which makes losses vary by 0.09 nats from window to
 *            window, but the differences of two encodings by 0.013 only. It is worth fifty times the windows.
 * Interval   estimate -+ t sqrt(variance). The three variances are known with different degrees of freedom;
 *            t is the mean of their three quantiles of Student's t, weighted with the variances (Cochran and
 *            Cox). Satterthwaite's degrees of freedom give intervals that are too short where a spread is
 *            known badly. A ratio a / b is treated as the difference a - r b at the r that makes it zero
 *            (delta method).
 * Rates      of right answers have Wilson's interval, which stays within 0 and 1.
 * Source     Wilson 1927, J. Am. Stat. Assoc. 22, 209; Cochran and Cox 1957, Experimental Designs, 4.14;
 *            Searle, Casella and McCulloch 1992, Variance Components, chapter 4 (crossed random effects);
 *            Efron and Tibshirani 1993, 5.3 (delta method); NIST Handbook of Mathematical Functions, 8.17(v)
 *            and Lentz 1976, Applied Optics 15, 668 (incomplete beta function).
 */
#include "train/run/stats.h"

#include <math.h>

#define TAIL         0.025  /* half of what a 95 % interval leaves out */
#define FOUR_OF_FIVE 0.8416 /* the 80 % quantile of the normal */

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

pe_interval pe_stats_wilson(double rate, double n)
{
    const double z = 1.959963984540054, zz = z * z / n; /* the 97.5 % quantile of the normal */
    const double middle = rate + zz / 2, half = z * sqrt(rate * (1 - rate) / n + zz / (4 * n));
    if (isnan(rate))
        return (pe_interval){NAN, NAN, NAN};
    /* the rate lies within: the rounding of 1 - 1 must not put it outside */
    return (pe_interval){rate, fmax(0, fmin(rate, (middle - half) / (1 + zz))),
                         fmin(1, fmax(rate, (middle + half) / (1 + zz)))};
}

/* ---------------------------------------------------------------- t and F ------------------- */

/* The continued fraction of the incomplete beta function, from the front (Lentz). */
static double beta_fraction(double x, double a, double b)
{
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m < 500; m++) {
        const double at = a + 2 * m, even = m * (b - m) * x / ((at - 1) * at),
                     odd = -(a + m) * (a + b + m) * x / (at * (at + 1));
        d                = 1 / (1 + even * d);
        c                = 1 + even / c;
        value *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        value *= c * d;
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    return value;
}

/* I_x(a, b), the share below x of the beta distribution. */
static double beta_below(double x, double a, double b)
{
    if (x <= 0 || x >= 1)
        return x > 0;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                     : 1 - front * beta_fraction(1 - x, b, a) / b;
}

double pe_stats_student(double freedom)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) { /* by halves, in x = freedom / (freedom + t^2) */
        const double x = (low + high) / 2;
        if (beta_below(x, freedom / 2, 0.5) < 2 * TAIL)
            low = x;
        else
            high = x;
    }
    return sqrt(freedom * (1 - low) / low);
}

double pe_stats_above_f(double f, double freedom, double freedom_below)
{
    return beta_below(freedom_below / (freedom_below + freedom * f), freedom_below / 2, freedom / 2);
}

/* ---------------------------------------------------------------- intervals ----------------- */

/* Mean over the seeds in window w. */
static double in_window(const pe_stats_sample *a, int64_t w)
{
    double sum = 0;
    for (int64_t s = 0; s < a->seeds; s++)
        sum += a->x[s * a->windows + w];
    return sum / (double)a->seeds;
}

/* The variance of mean(a) - r mean(b) that comes from the windows. One window shows none. */
static pe_spread from_windows(const pe_stats_sample *a, const pe_stats_sample *b, double r)
{
    const double n    = (double)a->windows;
    double       mean = 0, squares = 0;
    for (int64_t w = 0; w < a->windows; w++)
        mean += (in_window(a, w) - r * in_window(b, w)) / n;
    for (int64_t w = 0; w < a->windows; w++) {
        const double off = in_window(a, w) - r * in_window(b, w) - mean;
        squares += off * off;
    }
    return a->windows > 1 ? (pe_spread){squares / (n - 1) / n, n - 1, 0} : (pe_spread){0, 1, 0};
}

/* How far mean(a) - r mean(b) may be off: its standard error, and half the width of its 95 % interval. */
typedef struct error_bar {
    double deviation, half;
} error_bar;

/* With so many seeds; the spreads gain a degree of freedom with each. The standard error is the root of the
   sum of the three variances; each brings the t of its own degrees of freedom into the mean that multiplies
   it. */
static error_bar error_of(const pe_stats_sample *a, const pe_stats_sample *b, double r, int64_t seeds)
{
    const double    n = (double)seeds, more = (double)(seeds - a->seeds);
    const pe_spread parts[] = {from_windows(a, b, r),
                               {a->spread.variance / n, a->spread.freedom + more, 0},
                               {r * r * b->spread.variance / n, b->spread.freedom + more, 0}};
    double          sum = 0, weighted = 0;
    for (int i = 0; i < 3; i++) {
        sum += parts[i].variance;
        weighted += parts[i].variance > 0 ? parts[i].variance * pe_stats_student(parts[i].freedom)
                                          : parts[i].variance; /* 0 or NaN */
    }
    return (error_bar){sqrt(sum), sum > 0 ? weighted / sqrt(sum) : sum};
}

static pe_interval interval_about(double value, double half)
{
    return (pe_interval){value, value - half, value + half};
}

static double mean_of(const pe_stats_sample *a)
{
    return pe_stats_mean(a->x, a->seeds * a->windows);
}

pe_interval pe_stats_difference(const pe_stats_sample *a, const pe_stats_sample *b)
{
    return interval_about(mean_of(a) - mean_of(b), error_of(a, b, 1, a->seeds).half);
}

pe_interval pe_stats_ratio(const pe_stats_sample *a, const pe_stats_sample *b)
{
    const double below = mean_of(b), ratio = mean_of(a) / below;
    return interval_about(ratio, error_of(a, b, ratio, a->seeds).half / fabs(below));
}

int pe_stats_seeds_to_settle(const pe_stats_sample *a, const pe_stats_sample *b)
{
    const double difference = fabs(mean_of(a) - mean_of(b));
    for (int64_t seeds = a->seeds; seeds <= PE_MOST_SEEDS; seeds++) {
        const error_bar e = error_of(a, b, 1, seeds);
        if (difference > e.half + FOUR_OF_FIVE * e.deviation)
            return (int)seeds;
    }
    return PE_MOST_SEEDS + 1;
}

double pe_stats_entropy(const int64_t *counts, int64_t n)
{
    double all = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        all += (double)counts[i];
    for (int64_t i = 0; i < n; i++)
        sum -= counts[i] ? (double)counts[i] / all * log((double)counts[i] / all) : 0;
    return sum;
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

/* SPDX-License-Identifier: MIT */
/*
 * scores_bias.c: which bias was fitted: a line in |t| has slopes, steps in t are buckets
 */
#include "diagnose/scores.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pe_scores_slopes(double *slopes, int64_t H)
{
    int64_t power = 1;
    while (2 * power <= H)
        power *= 2;
    for (int64_t h = 0; h < H; h++)
        slopes[h] = h < power ? exp2(-8.0 * (double)(h + 1) / (double)power)
                              : exp2(-4.0 * (double)(2 * (h - power) + 1) / (double)power);
}

/* The bucket of key j - i = -t. */
static int64_t bucket_of(int64_t t, int64_t buckets, int64_t max_distance, int is_bidirectional)
{
    int64_t base = 0, n = t;
    if (is_bidirectional) {
        buckets /= 2;
        base = t < 0 ? buckets : 0;
        n    = t < 0 ? -t : t;
    } else if (n < 0)
        n = 0;
    const int64_t exact = buckets / 2;
    if (n < exact)
        return base + n;
    const int64_t large =
        exact + (int64_t)(log((double)n / (double)exact) / log((double)max_distance / (double)exact) *
                              (double)(buckets - exact) +
                          1e-9);
    return base + (large < buckets - 1 ? large : buckets - 1);
}

static double tolerance(const pe_fit *f, int64_t k)
{
    return 6 * sqrt(f->noise / fmax(1, f->count[k])) + 1e-9;
}

/* b = -m |t|, or -m t where only one side is seen. */
static int is_line(pe_scores_reading *r, const pe_fit *f)
{
    r->slopes = calloc((size_t)f->H, sizeof *r->slopes);
    int any   = 0;
    for (int64_t h = 0; r->slopes && h < f->H; h++) {
        double above = 0, below = 0, mean = 0, weight = 0, mean_t = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t k = 0; k < f->T; k++) {
                const double n = f->count[h * f->T + k], t = fabs((double)(k - f->Lk + 1)),
                             b = f->bias[h * f->T + k];
                if (pass) {
                    above += n * (t - mean_t) * (b - mean);
                    below += n * (t - mean_t) * (t - mean_t);
                } else {
                    mean += n * b;
                    mean_t += n * t;
                    weight += n;
                }
            }
            if (!pass && weight > 0) {
                mean /= weight;
                mean_t /= weight;
            }
        }
        r->slopes[h] = below > 0 ? -above / below : 0;
        for (int64_t k = 0; k < f->T; k++) {
            const double t = fabs((double)(k - f->Lk + 1));
            if (f->count[h * f->T + k] > 0 &&
                fabs(f->bias[h * f->T + k] - mean + r->slopes[h] * (t - mean_t)) >
                    tolerance(f, h * f->T + k) + 3e-3 * fabs(r->slopes[h] * t))
                return 0;
        }
        any |= fabs(r->slopes[h]) * (double)f->Lk > 4 * sqrt(f->noise);
    }
    r->heads = f->H;
    return r->slopes && any;
}

/* Do distances of one bucket have one bias? How many buckets there are; 0: no. */
static int64_t fits_buckets(const pe_fit *f, int64_t buckets, int64_t max_distance, int is_bidirectional)
{
    int64_t found = 0, last = -1;
    for (int64_t h = 0; h < f->H; h++) {
        double mean = 0, error = 0;
        last = -1;
        for (int64_t k = 0; k < f->T; k++) {
            const int64_t i      = h * f->T + k,
                          bucket = bucket_of(k - f->Lk + 1, buckets, max_distance, is_bidirectional);
            if (!(f->count[i] > 0))
                continue;
            if (bucket != last) {
                found += h == 0;
                mean  = f->bias[i];
                error = tolerance(f, i);
                last  = bucket;
            } else if (fabs(f->bias[i] - mean) > tolerance(f, i) + error)
                return 0;
        }
    }
    return found;
}

/* Buckets that models have, the expected ones first; visited until one returns 1. */
typedef int visit_buckets(void *to, int64_t buckets, int64_t max_distance, int is_bidirectional);

static int each_buckets(const pe_scores_reading *expected, visit_buckets *visit, void *to)
{
    static const int64_t counts[] = {4, 8, 16, 32, 64, 128, 256, 320},
                         most[] = {8, 16, 20, 32, 50, 64, 100, 128, 200, 256, 400, 500, 512, 800, 1000, 1024};
    const int     is_given      = expected && expected->buckets > 0;
    const int64_t given = is_given ? expected->buckets : 32, far = is_given ? expected->max_distance : 128;
    int           is_it = 0;
    for (int way = 0; way < 2; way++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts + 1; c++)
            for (size_t m = 0; m < sizeof most / sizeof *most + 1 && !is_it; m++) {
                const int64_t n = c ? counts[c - 1] : given, d = m ? most[m - 1] : far;
                const int     is_bidirectional = expected ? expected->is_bidirectional ^ way : way;
                if (n >= 4 && d > n / 2 / (is_bidirectional ? 2 : 1))
                    is_it = visit(to, n, d, is_bidirectional);
            }
    return is_it;
}

/* What is read of them, and how many steps it has. */
typedef struct bucketing {
    pe_scores_reading *r;
    const pe_fit      *f;
    int64_t            given, least;
} bucketing;

static int has_fewest(void *to, int64_t n, int64_t max_distance, int is_bidirectional)
{
    bucketing *b     = to;
    int64_t    steps = fits_buckets(b->f, n, max_distance, is_bidirectional);
    steps += steps && n != b->given && n != 32; /* of equal ones what is expected, then what is usual */
    if (steps && steps < b->least) {
        b->least               = steps;
        b->r->buckets          = n;
        b->r->max_distance     = max_distance;
        b->r->is_bidirectional = is_bidirectional;
    }
    return 0;
}

/* How many steps the bias has: as many buckets should there be. */
static int is_bucketed(pe_scores_reading *r, const pe_fit *f, const pe_scores_reading *expected)
{
    bucketing b = {r, f, expected ? expected->buckets : 0, INT64_MAX};
    each_buckets(expected, has_fewest, &b);
    return b.least < INT64_MAX;
}

static int leaves_nothing(void *to, int64_t n, int64_t max_distance, int is_bidirectional)
{
    pe_fit *f = to;
    for (int64_t k = 0; k < f->T; k++)
        f->group[k] = bucket_of(k - f->Lk + 1, n, max_distance, is_bidirectional);
    return pe_fit_groups(f) <= pe_scores_enough;
}

int pe_bias_each_buckets(pe_fit *f, const pe_scores_reading *expected)
{
    return each_buckets(expected, leaves_nothing, f);
}

void pe_bias_read(pe_scores_reading *r, const pe_fit *f, const pe_scores_reading *expected)
{
    int is_none = 1;
    for (int64_t k = 0; k < f->H * f->T; k++)
        is_none &= !(f->count[k] > 0) || fabs(f->bias[k]) <= tolerance(f, k);
    if (is_none)
        snprintf(r->encoding, sizeof r->encoding, "none");
    else if (is_line(r, f))
        snprintf(r->encoding, sizeof r->encoding, "alibi");
    else {
        free(r->slopes);
        r->slopes = NULL;
        snprintf(r->encoding, sizeof r->encoding, "%s", is_bucketed(r, f, expected) ? "t5" : "distance");
    }
}

static void compare_slopes(pe_scores_diagnosis *d, const pe_scores_reading *e, const pe_fit *f)
{
    const pe_scores_reading *r     = &d->found;
    int64_t                  first = -1;
    for (int64_t h = 0; h < r->heads && first < 0; h++)
        if (fabs(r->slopes[h] - e->slopes[h]) * (double)f->Lk >
            0.012 * fabs(e->slopes[h]) * (double)f->Lk + 3 * sqrt(f->noise))
            first = h;
    if (first < 0)
        return;
    d->departs |= 1u << PE_SLOPES;
    pe_fixes_add(
        &d->advice,
        "the slope of head %lld is %.6g, and should be %.6g: 2^(-8(h+1)/H), for other H than powers of 2 "
        "by the paper's rule",
        (long long)first, r->slopes[first], e->slopes[first]);
}

/* Finer buckets fit what coarser ones made, but then some neighbours would have one bias by chance. */
static int is_as_coarse(const pe_fit *f, const pe_scores_reading *e, const pe_scores_reading *r)
{
    const int64_t wanted = fits_buckets(f, e->buckets, e->max_distance, e->is_bidirectional);
    return wanted && wanted <= fits_buckets(f, r->buckets, r->max_distance, r->is_bidirectional);
}

static const char *bias_name(const char *encoding)
{
    return !strcmp(encoding, "alibi")      ? "that of alibi"
           : !strcmp(encoding, "t5")       ? "that of t5's buckets"
           : !strcmp(encoding, "distance") ? "a number of each distance that is neither alibi's nor t5's"
                                           : "none";
}

enum { BUCKETS_TEXT = 120 };

static const char *buckets_text(char text[BUCKETS_TEXT], const pe_scores_reading *r)
{
    snprintf(text, BUCKETS_TEXT, "num_buckets=%lld max_distance=%lld bidirectional=%s", (long long)r->buckets,
             (long long)r->max_distance, r->is_bidirectional ? "yes" : "no");
    return text;
}

void pe_bias_compare(pe_scores_diagnosis *d, const pe_scores_reading *e, const pe_fit *f)
{
    const pe_scores_reading *r       = &d->found;
    const int                is_line = !strcmp(e->encoding, "alibi");
    if (!strcmp(e->encoding, "unknown"))
        return;
    if (is_line && !strcmp(r->encoding, "alibi"))
        compare_slopes(d, e, f);
    else if (!strcmp(e->encoding, "t5") && !strcmp(r->encoding, "t5") && is_as_coarse(f, e, r))
        return;
    else if (strcmp(r->encoding, e->encoding)) {
        d->departs |= 1u << (is_line || !strcmp(r->encoding, "alibi") ? PE_SLOPES : PE_BUCKETS);
        pe_fixes_add(&d->advice, "the bias is %s, and should be %s", bias_name(r->encoding),
                     bias_name(e->encoding));
    } else if (!strcmp(e->encoding, "t5")) {
        d->departs |= 1u << PE_BUCKETS;
        char got[BUCKETS_TEXT], wanted[BUCKETS_TEXT];
        pe_fixes_add(&d->advice, "the buckets are those of %s, and should be those of %s",
                     buckets_text(got, r), buckets_text(wanted, e));
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * scores.c: what made one tensor of scores of another: a bias, a scale, a temperature, a softcap, a mask
 *
 * The idea   Masked scores are apart by their size and tell the mask. The others are fitted by theories from
 *            the simplest on: nothing, a scale, a bias of each head and distance, a scale of each row, a cap,
 *            and two of these; the first that leaves nothing over is what happened. Then the bias is read: a
 *            line in |t| has slopes, steps in t are buckets.
 * Surprise   What is the same for all keys of a query changes no attention; BLOOM's slopes times the key's
 *            position are such a bias by distance and a number for each row, so these are taken off where
 *            nothing else fits.
 */
#include "diagnose/dump.h"

#include <math.h>
#include <posenc/scores.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADS = 64, ROUNDS = 30 };

static const double hidden = -9e3; /* scores below are masked */
static const double enough = 2.5;  /* roundings that may be left over */

/* What is fitted, as bits. */
enum { SCALE = 1, BIAS = 2, ROWS = 4, CAP = 8, SHIFT = 16 };

typedef struct fitting {
    const pe_scores *in;
    int64_t          B, H, Lq, Lk, T; /* T distances, t + Lk - 1 >= 0 */
    double           bits, noise;     /* mean square of rounding */
    double          *bias;            /* [H,T] */
    double          *count;           /* [H,T] scores of each */
    double          *scale;           /* [Lq] */
    double          *shift;           /* [B,H,Lq] the same for all keys */
    double           cap, rest;       /* mean square that is left */
} fitting;

/* ---------------------------------------------------------------- known numbers ------------- */

void pe_scores_slopes(double *slopes, int64_t H)
{
    int64_t power = 1;
    while (2 * power <= H)
        power *= 2;
    for (int64_t h = 0; h < H; h++)
        slopes[h] = h < power ? exp2(-8.0 * (double)(h + 1) / (double)power)
                              : exp2(-4.0 * (double)(2 * (h - power) + 1) / (double)power);
}

int64_t pe_scores_bucket(int64_t t, int64_t buckets, int64_t max_distance, int is_bidirectional)
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

/* ---------------------------------------------------------------- scores -------------------- */

static double score(const posenc_tensor *t, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return pe_dump_element(t, b * t->stride[0] + h * t->stride[1] + i * t->stride[2] + j * t->stride[3]);
}

static int64_t distance_of(const fitting *f, int64_t i, int64_t j)
{
    return i + f->Lk - f->Lq - j;
}

static int is_hidden(double x)
{
    return !(x > hidden);
}

/* Calls `visit` for each score that both have; y without the cap. */
typedef void visitor(fitting *f, void *to, int64_t at[4], double x, double y);

static void visit_all(fitting *f, visitor *visit, void *to)
{
    int64_t at[4];
    for (at[0] = 0; at[0] < f->B; at[0]++)
        for (at[1] = 0; at[1] < f->H; at[1]++)
            for (at[2] = 0; at[2] < f->Lq; at[2]++)
                for (at[3] = 0; at[3] < f->Lk; at[3]++) {
                    const double x = score(&f->in->before, at[0], at[1], at[2], at[3]),
                                 y = score(&f->in->after, at[0], at[1], at[2], at[3]);
                    if (!is_hidden(x) && !is_hidden(y))
                        visit(f, to, at, x, y);
                }
}

static double uncapped(const fitting *f, double y)
{
    return f->cap > 0 ? f->cap * atanh(fmax(-1 + 1e-12, fmin(1 - 1e-12, y / f->cap))) : y;
}

static double *bias_at(const fitting *f, const int64_t at[4])
{
    return &f->bias[at[1] * f->T + distance_of(f, at[2], at[3]) + f->Lk - 1];
}

static double *shift_at(const fitting *f, const int64_t at[4])
{
    return &f->shift[(at[0] * f->H + at[1]) * f->Lq + at[2]];
}

static double weight_of(const fitting *f, double y)
{
    if (!(f->cap > 0))
        return 1;
    const double slope = 1 - y * y / (f->cap * f->cap); /* of the cap: what it flattens is uncertain */
    return slope > 0.02 ? slope * slope : 0;
}

/* ---------------------------------------------------------------- fits ---------------------- */

typedef struct part_sums {
    double *above, *below; /* [Lq] or [H,T] or [B,H,Lq] */
} part_sums;

static void sum_scale(fitting *f, void *to, int64_t at[4], double x, double y)
{
    part_sums   *s = to;
    const double w = weight_of(f, y);
    s->above[at[2]] += w * x * (uncapped(f, y) - *bias_at(f, at) - *shift_at(f, at));
    s->below[at[2]] += w * x * x;
}

static void sum_bias(fitting *f, void *to, int64_t at[4], double x, double y)
{
    part_sums    *s = to;
    const double  w = weight_of(f, y);
    const int64_t k = bias_at(f, at) - f->bias;
    s->above[k] += w * (uncapped(f, y) - f->scale[at[2]] * x - *shift_at(f, at));
    s->below[k] += w;
}

static void sum_shift(fitting *f, void *to, int64_t at[4], double x, double y)
{
    part_sums    *s = to;
    const double  w = weight_of(f, y);
    const int64_t k = shift_at(f, at) - f->shift;
    s->above[k] += w * (uncapped(f, y) - f->scale[at[2]] * x - *bias_at(f, at));
    s->below[k] += w;
}

static double theory_of(const fitting *f, const int64_t at[4], double x)
{
    const double y = f->scale[at[2]] * x + *bias_at(f, at) + *shift_at(f, at);
    return f->cap > 0 ? f->cap * tanh(y / f->cap) : y;
}

static void sum_rest(fitting *f, void *to, int64_t at[4], double x, double y)
{
    double      *s = to;
    const double d = y - theory_of(f, at, x);
    s[0] += d * d;
    s[1] += 1;
}

/* Some theories have no number of their own left to tell them by: as many numbers as scores. */
static void measure(fitting *f, int what)
{
    double rest[2] = {0};
    visit_all(f, sum_rest, rest);
    double free = what & BIAS ? 0 : what & ROWS ? (double)f->Lq : 1;
    for (int64_t k = 0; what & BIAS && k < f->H * f->T; k++)
        free += f->count[k] > 0;
    free += what & SHIFT ? (double)(f->B * f->H * f->Lq) : 0;
    f->rest = rest[1] > free ? rest[0] / (rest[1] - free) : INFINITY;
}

static void solve_scale(fitting *f, int what, part_sums s)
{
    double above = 0, below = 0;
    memset(s.above, 0, (size_t)f->Lq * sizeof *s.above);
    memset(s.below, 0, (size_t)f->Lq * sizeof *s.below);
    visit_all(f, sum_scale, &s);
    for (int64_t i = 0; i < f->Lq; i++) {
        above += s.above[i];
        below += s.below[i];
    }
    for (int64_t i = 0; i < f->Lq; i++)
        f->scale[i] = what & ROWS && s.below[i] > 0 ? s.above[i] / s.below[i] : below > 0 ? above / below : 1;
}

static void solve_list(fitting *f, visitor *visit, double *list, int64_t n, part_sums s)
{
    memset(s.above, 0, (size_t)n * sizeof *s.above);
    memset(s.below, 0, (size_t)n * sizeof *s.below);
    visit_all(f, visit, &s);
    for (int64_t k = 0; k < n; k++)
        list[k] = s.below[k] > 0 ? s.above[k] / s.below[k] : 0;
}

/* The parts of a theory in turn, until nothing moves. */
static void fit(fitting *f, int what, double cap, part_sums s)
{
    const int parts = !!(what & (SCALE | ROWS)) + !!(what & BIAS) + !!(what & SHIFT);
    f->cap          = cap;
    for (int64_t i = 0; i < f->Lq; i++)
        f->scale[i] = 1;
    memset(f->bias, 0, (size_t)(f->H * f->T) * sizeof *f->bias);
    memset(f->shift, 0, (size_t)(f->B * f->H * f->Lq) * sizeof *f->shift);
    double before = INFINITY;
    for (int round = 0; round < (parts > 1 ? ROUNDS : 1); round++) {
        if (what & (SCALE | ROWS))
            solve_scale(f, what, s);
        if (what & BIAS)
            solve_list(f, sum_bias, f->bias, f->H * f->T, s);
        if (what & SHIFT)
            solve_list(f, sum_shift, f->shift, f->B * f->H * f->Lq, s);
        measure(f, what);
        if (!(f->rest < 0.999 * before) || f->rest < f->noise)
            break;
        before = f->rest;
    }
    measure(f, what);
}

static void largest(fitting *f, void *to, int64_t at[4], double x, double y)
{
    (void)f;
    (void)at;
    (void)x;
    *(double *)to = fmax(*(double *)to, fabs(y));
}

/* The cap that leaves least: from just above the largest score on, then finer, then rounder. */
static void fit_cap(fitting *f, int what, part_sums s)
{
    double most = 0, best = 0, least = INFINITY, ratio = 1.1;
    visit_all(f, largest, &most);
    for (double cap = most * 1.0001; cap < 40 * most && most > 0; cap *= ratio) {
        fit(f, what, cap, s);
        if (f->rest < least) {
            least = f->rest;
            best  = cap;
        }
    }
    for (int round = 0; round < 14 && best > 0; round++, ratio = sqrt(ratio))
        for (int side = -1; side <= 1; side += 2) {
            const double cap = fmax(best * pow(ratio, side), most * (1 + 1e-9));
            fit(f, what, cap, s);
            if (f->rest < least) {
                least = f->rest;
                best  = cap;
            }
        }
    for (int digits = 1; digits < 8 && best > 0; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, best);
        const double cap = strtod(text, NULL);
        if (cap < most)
            continue;
        fit(f, what, cap, s);
        if (f->rest <= fmax(1.3 * least, f->noise * 1.5))
            return;
    }
    fit(f, what, best, s);
}

/* ---------------------------------------------------------------- the mask ------------------ */

/* The range of distances that are seen, if it is one; keys that no query sees are padding. */
static int find_range(pe_range *r, const fitting *f, const posenc_tensor *t)
{
    int is_range = 1;
    *r           = (pe_range){f->Lk, -f->Lk};
    for (int64_t i = 0; i < f->Lq; i++)
        for (int64_t j = 0; j < f->Lk; j++)
            if (!is_hidden(score(t, 0, 0, i, j))) {
                const int64_t d = distance_of(f, i, j);
                r->low          = d < r->low ? d : r->low;
                r->high         = d > r->high ? d : r->high;
            }
    for (int64_t j = 0; j < f->Lk; j++) {
        int64_t seen = 0, hid = 0;
        for (int64_t i = 0; i < f->Lq; i++) {
            const int64_t d       = distance_of(f, i, j);
            const int     is_seen = !is_hidden(score(t, 0, 0, i, j));
            seen += is_seen;
            hid += !is_seen && d >= r->low && d <= r->high;
        }
        is_range &= !hid || !seen;
    }
    if (r->low <= -(f->Lk - 1))
        r->low = -f->Lk;
    if (r->high >= f->Lk - 1)
        r->high = f->Lk;
    return is_range;
}

/* ---------------------------------------------------------------- the bias ------------------ */

static double tolerance(const fitting *f, int64_t k)
{
    return 6 * sqrt(f->noise / fmax(1, f->count[k])) + 1e-9;
}

/* b = -m |t|, or -m t where only one side is seen. */
static int is_line(pe_scores_reading *r, const fitting *f)
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
static int64_t fits_buckets(const fitting *f, int64_t buckets, int64_t max_distance, int is_bidirectional)
{
    int64_t found = 0, last = -1;
    for (int64_t h = 0; h < f->H; h++) {
        double mean = 0, error = 0;
        last = -1;
        for (int64_t k = 0; k < f->T; k++) {
            const int64_t i      = h * f->T + k,
                          bucket = pe_scores_bucket(k - f->Lk + 1, buckets, max_distance, is_bidirectional);
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

/* How many steps the bias has: as many buckets should there be. */
static int is_bucketed(pe_scores_reading *r, const fitting *f, const pe_scores_reading *expected)
{
    static const int64_t counts[] = {4, 8, 16, 32, 64, 128, 256, 320},
                         most[] = {8, 16, 20, 32, 50, 64, 100, 128, 200, 256, 400, 500, 512, 800, 1000, 1024};
    int64_t       least         = INT64_MAX;
    const int64_t given         = expected ? expected->buckets : 0;
    for (int way = 0; way < 2; way++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts + 1; c++)
            for (size_t m = 0; m < sizeof most / sizeof *most + 1; m++) {
                const int64_t n = c ? counts[c - 1] : given, d = m          ? most[m - 1]
                                                                 : expected ? expected->max_distance
                                                                            : 0;
                const int     bidirectional = expected ? expected->is_bidirectional ^ way : way;
                if (n < 4 || d <= n / 2 / (bidirectional ? 2 : 1))
                    continue;
                int64_t steps = fits_buckets(f, n, d, bidirectional);
                steps +=
                    steps && n != given && n != 32; /* of equal ones what is expected, then what is usual */
                if (steps && 4 * steps < least) {
                    least               = 4 * steps;
                    r->buckets          = n;
                    r->max_distance     = d;
                    r->is_bidirectional = bidirectional;
                }
            }
    return least < INT64_MAX;
}

static void read_bias(pe_scores_reading *r, const fitting *f, const pe_scores_reading *expected)
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

/* ---------------------------------------------------------------- the verdict --------------- */

static void depart(pe_scores_diagnosis *d, pe_departure what)
{
    d->departs |= 1u << what;
}

static void compare_slopes(pe_scores_diagnosis *d, const pe_scores_reading *e, const fitting *f)
{
    const pe_scores_reading *r     = &d->found;
    int64_t                  first = -1;
    for (int64_t h = 0; h < r->heads && first < 0; h++)
        if (fabs(r->slopes[h] - e->slopes[h]) * (double)f->Lk >
            0.012 * fabs(e->slopes[h]) * (double)f->Lk + 3 * sqrt(f->noise))
            first = h;
    if (first < 0)
        return;
    depart(d, PE_SLOPES);
    pe_mends_add(
        &d->advice,
        "the slope of head %lld is %.6g, and should be %.6g: 2^(-8(h+1)/H), for other H than powers of 2 "
        "by the paper's rule",
        (long long)first, r->slopes[first], e->slopes[first]);
}

/* Finer buckets fit what coarser ones made, but then some neighbours would have one bias by chance. */
static int is_as_coarse(const fitting *f, const pe_scores_reading *e, const pe_scores_reading *r)
{
    const int64_t wanted = fits_buckets(f, e->buckets, e->max_distance, e->is_bidirectional);
    return wanted && wanted <= fits_buckets(f, r->buckets, r->max_distance, r->is_bidirectional);
}

static void compare_bias(pe_scores_diagnosis *d, const pe_scores_reading *e, const fitting *f)
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
        depart(d, is_line || !strcmp(r->encoding, "alibi") ? PE_SLOPES : PE_BUCKETS);
        pe_mends_add(&d->advice, "the bias is %s, and should be %s", r->encoding, e->encoding);
    } else if (!strcmp(e->encoding, "t5")) {
        depart(d, PE_BUCKETS);
        pe_mends_add(
            &d->advice,
            "buckets are those of num_buckets=%lld max_distance=%lld bidirectional=%s, and should be of "
            "%lld, %lld, %s",
            (long long)r->buckets, (long long)r->max_distance, r->is_bidirectional ? "yes" : "no",
            (long long)e->buckets, (long long)e->max_distance, e->is_bidirectional ? "yes" : "no");
    }
}

static void compare_rest(pe_scores_diagnosis *d, const pe_scores_reading *e, const fitting *f)
{
    const pe_scores_reading *r = &d->found;
    if (r->has_temperature != e->has_temperature) {
        depart(d, PE_TEMPERATURE);
        pe_mends_add(
            &d->advice,
            r->has_temperature
                ? "rows are multiplied by %.6g to %.6g, and should be by one number"
                : "rows are multiplied by %.6g (to %.6g), and should be by a temperature of their position",
            r->first, r->last);
    } else if (r->has_temperature &&
               (fabs(r->first / e->first - 1) > 1e-3 || fabs(r->last / e->last - 1) > 1e-3)) {
        depart(d, PE_TEMPERATURE);
        pe_mends_add(&d->advice, "rows are multiplied by %.6g to %.6g, and should be by %.6g to %.6g",
                     r->first, r->last, e->first, e->last);
    } else if (!r->has_temperature &&
               fabs(r->scale / e->scale - 1) > fmax(1e-5, ldexp(1, 1 - (int)f->bits))) {
        depart(d, PE_SCALE);
        pe_mends_add(&d->advice, "scores are multiplied by %.6g, and should be by %.6g", r->scale, e->scale);
        d->alternatives[d->alternative_count] = (d->departs & ~(1u << PE_SCALE)) | 1u << PE_TEMPERATURE;
        snprintf(d->alternative_words[d->alternative_count++], PE_WORDS, "a temperature of %.6g",
                 e->scale / r->scale);
    }
    if (fabs(r->softcap - e->softcap) > 0.02 * fmax(r->softcap, e->softcap)) {
        depart(d, PE_SOFTCAP);
        pe_mends_add(&d->advice, "scores are capped at %.6g, and should be at %.6g (0: not at all)",
                     r->softcap, e->softcap);
    }
    if (r->is_irregular || r->seen.low != e->seen.low || r->seen.high != e->seen.high) {
        depart(d, PE_MASK);
        pe_mends_add(
            &d->advice,
            "keys at distances %lld to %lld are seen, and should be %lld to %lld (i - j; 0 is the token "
            "itself)",
            (long long)r->seen.low, (long long)r->seen.high, (long long)e->seen.low, (long long)e->seen.high);
    }
}

static int64_t clipped(int64_t x, int64_t Lk)
{
    return x <= -(Lk - 1) ? -Lk : x >= Lk - 1 ? Lk : x;
}

static void count_one(fitting *f, void *to, int64_t at[4], double x, double y)
{
    double *noise = to;
    f->count[bias_at(f, at) - f->bias]++;
    noise[0] += pe_dump_rounding(y, f->bits) + (f->bits < 30 ? 0 : 1e-20 * x * x);
    noise[1]++;
}

/* A row of scales that hardly moves is one scale. */
static void read_scale(pe_scores_reading *r, const fitting *f, int what)
{
    r->scale = r->first = f->scale[0];
    r->last             = f->scale[f->Lq - 1];
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = f->Lq / 8; i < f->Lq; i++) {
        low  = fmin(low, f->scale[i]);
        high = fmax(high, f->scale[i]);
    }
    r->first           = low;
    r->last            = high;
    r->has_temperature = what & ROWS && high / low - 1 > 1e-4;
    char text[32];
    for (int digits = 1; digits < 8; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, r->scale);
        if (fabs(strtod(text, NULL) / r->scale - 1) < ldexp(1, -(int)f->bits)) {
            r->scale = strtod(text, NULL);
            break;
        }
    }
}

static int explain(pe_scores_diagnosis *d, fitting *f, part_sums s)
{
    static const int theories[] = {0,           SCALE,        BIAS,
                                   CAP,         SCALE | BIAS, ROWS,
                                   CAP | SCALE, BIAS | SHIFT, CAP | BIAS,
                                   ROWS | BIAS, CAP | ROWS,   SCALE | BIAS | SHIFT};
    double           noise[2]   = {0};
    visit_all(f, count_one, noise);
    f->noise = noise[1] > 0 ? noise[0] / noise[1] + 1e-300 : 1;
    for (size_t i = 0; i < sizeof theories / sizeof *theories; i++) {
        if (theories[i] & CAP)
            fit_cap(f, theories[i], s);
        else
            fit(f, theories[i], 0, s);
        d->residual = sqrt(f->rest / f->noise);
        if (d->residual > enough)
            continue;
        read_scale(&d->found, f, theories[i]);
        d->found.softcap = f->cap;
        read_bias(&d->found, f, d ? f->in->expected : NULL);
        return 1;
    }
    return 0;
}

static posenc_status judge(pe_scores_diagnosis *d, fitting *f, part_sums s)
{
    const pe_scores_reading *e = f->in->expected;
    pe_range                 before;
    d->found.is_irregular = !find_range(&d->found.seen, f, &f->in->after);
    find_range(&before, f, &f->in->before);
    if (!explain(d, f, s)) {
        d->verdict = PE_UNEXPLAINED;
        pe_mends_add(&d->advice,
                     "no scale, temperature, bias by distance or softcap makes these scores of those before");
        return POSENC_OK;
    }
    if (!e)
        return POSENC_OK;
    pe_scores_reading wanted  = *e;
    const int         is_said = e->seen.low <= e->seen.high;
    wanted.seen.low           = clipped(is_said ? e->seen.low : before.low, f->Lk);
    wanted.seen.high          = clipped(is_said ? e->seen.high : before.high, f->Lk);
    if (!is_said && before.low == -f->Lk && before.high == f->Lk && !d->found.is_irregular &&
        d->found.seen.low == 0)
        wanted.seen = d->found.seen; /* a causal mask beside the bias is no fault of the bias */
    compare_bias(d, &wanted, f);
    compare_rest(d, &wanted, f);
    d->verdict = d->departs ? PE_DIFFERENT : PE_SAME;
    return POSENC_OK;
}

posenc_status pe_scores_judge(pe_scores_diagnosis *d, const pe_scores *in, posenc_error *err)
{
    const int64_t       *n     = in->after.shape;
    fitting              f     = {.in = in, .B = n[0], .H = n[1], .Lq = n[2], .Lk = n[3], .T = 2 * n[3] - 1};
    const posenc_tensor *after = &in->after;
    *d                         = (pe_scores_diagnosis){0};
    if (memcmp(in->before.shape, n, 4 * sizeof *n) || f.Lq > f.Lk) {
        *err = (posenc_error){
            .status  = POSENC_ERROR_SHAPE,
            .message = "diagnose: scores before and after must have one shape, [B,H,Lq,Lk] with Lq <= Lk"};
        return err->status;
    }
    const size_t most      = (size_t)(f.H * f.T + f.B * f.H * f.Lq + f.Lq);
    f.bits                 = pe_dump_bits(&after, 1);
    f.bias                 = calloc(most, sizeof *f.bias);
    f.count                = calloc(most, sizeof *f.count);
    f.scale                = calloc(most, sizeof *f.scale);
    f.shift                = calloc(most, sizeof *f.shift);
    const part_sums s      = {calloc(most, sizeof(double)), calloc(most, sizeof(double))};
    posenc_status   status = POSENC_ERROR_MEMORY;
    if (f.bias && f.count && f.scale && f.shift && s.above && s.below)
        status = judge(d, &f, s);
    else
        *err = (posenc_error){.status = status, .message = "diagnose: not enough memory"};
    free(f.bias);
    free(f.count);
    free(f.scale);
    free(f.shift);
    free(s.above);
    free(s.below);
    return status;
}

void pe_scores_diagnosis_free(pe_scores_diagnosis *d)
{
    free(d->found.slopes);
    d->found.slopes = NULL;
}

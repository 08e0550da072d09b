/* SPDX-License-Identifier: MIT */
/*
 * decay.c: does a score fall with distance?
 *
 * c(t) is the score of the last query for the key t tokens back, with the same q and k at every position, so
 * that only distance changes. Three contents, because the answer depends on them: q = k = ones; q, k ~ U[0,1]
 * (a common mean); q, k ~ N(0, I) (none). What an encoding adds whatever the content is measured by itself,
 * per head. Of an input encoding c(t) is the mean of p_i . p_{i+t} over i, for t below N/2, so that each is a
 * mean of at least N/2 products (of the first 4096 positions where there are more).
 *
 * Numbers: Spearman's rho of t and c(t); the share of steps that do not rise; the first t with c(t) <= c(0) /
 * 2, for a bias the first t where it has cost half of the weight, b(t) <= b(0) - ln 2; c at some distances
 * (contents: over c(0), ones alone). Of biases also the distance within which 90 % of softmax(b) lies at
 * eight times the length. Drawn contents give a mean and a standard deviation over draws and heads.
 *
 * Attention resolution, R = sum_n e^s(n) (e^s(n) - e^s(n+1)) / (sum_n e^s(n))^2, s the mean score of U[0,1]
 * contents: Sun et al. 2022, arXiv:2212.10554, section 2.2.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>

enum { LONGER = 8, MARKS = 5, MOST_POSITIONS = 4096 };
static const int64_t marks[MARKS] = {1, 16, 64, 256, 1023};

/* ---------------------------------------------------------------- numbers of a profile ------ */

/* A value and where it was. */
typedef struct place {
    double  value;
    int64_t at;
} place;

static int compare_places(const void *a, const void *b)
{
    const double x = ((const place *)a)->value, y = ((const place *)b)->value;
    return (x > y) - (x < y);
}

/* ranks[i] of c[i]: from 0; a run of equal values shares its mean rank. */
static void rank(double *ranks, const place *sorted, int64_t n)
{
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end].value == sorted[i].value;)
            end++;
        for (int64_t j = i; j < end; j++)
            ranks[sorted[j].at] = (double)(i + end - 1) / 2;
    }
}

/* Pearson's correlation of 0 .. n-1 and x; both have the mean (n-1)/2. */
static double correlation(const double *x, int64_t n)
{
    const double mean = (double)(n - 1) / 2;
    double       ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = (double)i - mean, b = x[i] - mean;
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    return bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

double pe_spearman(const double *c, int64_t n)
{
    place  *sorted = malloc((size_t)n * sizeof *sorted);
    double *ranks  = malloc((size_t)n * sizeof *ranks);
    double  rho    = NAN;
    if (sorted && ranks) {
        for (int64_t i = 0; i < n; i++)
            sorted[i] = (place){c[i], i};
        qsort(sorted, (size_t)n, sizeof *sorted, compare_places);
        rank(ranks, sorted, n);
        rho = correlation(ranks, n);
    }
    free(sorted);
    free(ranks);
    return rho;
}

double pe_falling_share(const double *c, int64_t n)
{
    int64_t falls = 0;
    for (int64_t t = 1; t < n; t++)
        falls += c[t] <= c[t - 1];
    return n > 1 ? (double)falls / (double)(n - 1) : NAN;
}

/* ---------------------------------------------------------------- findings ------------------ */

/* The three numbers of every profile. */
typedef struct shape {
    pe_moments trend, falling, half;
} shape;

static void add_profile(shape *to, const double *c, int64_t N, double half)
{
    pe_moments_add(&to->trend, pe_spearman(c, N));
    pe_moments_add(&to->falling, pe_falling_share(c, N));
    int64_t t = 0;
    while (t < N && !(c[t] <= half))
        t++;
    pe_moments_add(&to->half, t < N ? (double)t : NAN);
}

static void find_shape(const shape *of, const char *of_what, pe_findings *to)
{
    pe_find(to, PE_TREND, pe_moments_mean(&of->trend), pe_moments_spread(&of->trend), "%s", of_what);
    pe_find(to, PE_FALLING, pe_moments_mean(&of->falling), pe_moments_spread(&of->falling), "%s", of_what);
    if (of->half.count)
        pe_find(to, PE_HALF_DISTANCE, pe_moments_mean(&of->half), pe_moments_spread(&of->half), "%s",
                of_what);
}

static void find_marks(const double *c, int64_t N, double unit, const char *of_what, pe_findings *to)
{
    for (int m = 0; m < MARKS; m++)
        if (marks[m] < N)
            pe_find(to, PE_AT_DISTANCE, c[marks[m]] / unit, NAN, "%s, t = %lld", of_what,
                    (long long)marks[m]);
}

static posenc_status find_content(pe_subject *s, pe_content content, double *c, pe_findings *to,
                                  posenc_error *err)
{
    static const char *const names[] = {"q = k = ones", "q, k ~ U[0,1]", "q, k ~ N(0, I)"};
    const int64_t            N = s->sizes.length, draws = content == PE_ONES ? 1 : s->sizes.draws;
    shape                    of = {0};
    for (int64_t draw = 0; draw < draws; draw++) {
        const posenc_status status = pe_subject_profiles(s, content, draw, c, err);
        if (status)
            return status;
        for (int64_t h = 0; h < s->dims.H; h++)
            add_profile(&of, c + h * N, N, c[h * N] / 2);
    }
    find_shape(&of, names[content], to);
    if (content == PE_ONES)
        find_marks(c, N, c[0], "ones", to);
    return POSENC_OK;
}

static void find_bias(const pe_subject *s, const double *bias, double *c, pe_findings *to)
{
    const int64_t N  = s->sizes.length;
    shape         of = {0};
    for (int64_t h = 0; h < s->dims.H; h++) {
        for (int64_t t = 0; t < N; t++)
            c[h * N + t] = bias[h * N + N - 1 - t];
        add_profile(&of, c + h * N, N, c[h * N] - log(2));
    }
    find_shape(&of, s->dims.H > 1 ? "bias, all heads" : "bias", to);
    find_marks(c, N, 1, "bias, head 0", to);
}

/* ---------------------------------------------------------------- mass and resolution ------- */

/* The first t with the sum of softmax(b) from 0 to t at least 0.9; bias of distance t at N-1-t. */
static double mass_distance(const double *bias, int64_t N)
{
    double highest = -INFINITY, all = 0, sum = 0;
    for (int64_t t = 0; t < N; t++)
        highest = fmax(highest, bias[t]);
    for (int64_t t = 0; t < N; t++)
        all += exp(bias[t] - highest);
    int64_t t = 0;
    while (t < N && (sum += exp(bias[N - 1 - t] - highest)) < 0.9 * all)
        t++;
    return (double)t;
}

static double resolution(const double *scores, int64_t N)
{
    double highest = -INFINITY, above = 0, below = 0;
    for (int64_t n = 0; n < N; n++)
        highest = fmax(highest, scores[n]);
    for (int64_t n = 0; n < N; n++) {
        const double here = exp(scores[n] - highest), next = n + 1 < N ? exp(scores[n + 1] - highest) : here;
        above += here * (here - next);
        below += here;
    }
    return above / (below * below);
}

/* The same encoding with other positions to see; NULL where it has no meaning there (a table that ends). */
static pe_subject *longer(const pe_subject *s, int64_t factor)
{
    pe_subject      *other;
    pe_subject_sizes sizes = s->sizes;
    sizes.length *= factor;
    return pe_subject_create(&other, s->e, &sizes, NULL) ? NULL : other;
}

static posenc_status find_mass(const pe_subject *s, pe_findings *to, posenc_error *err)
{
    pe_subject *far = longer(s, LONGER);
    if (!far)
        return POSENC_OK;
    const int64_t N = far->sizes.length, H = far->dims.H;
    double       *bias   = pe_subject_take(far, H * N, sizeof *bias);
    posenc_status status = bias ? pe_subject_bias(far, bias, NULL) : pe_measure_no_memory(err, "biases");
    for (int64_t h = 0; !status && h < H && h < 8; h++)
        pe_find(to, PE_MASS, mass_distance(bias + h * N, N), NAN, "head %lld, context %lld", (long long)h,
                (long long)N);
    pe_subject_free(far);
    return status == POSENC_ERROR_MEMORY ? status : POSENC_OK;
}

/* mean [N] over draws and heads, c [H,N] is room. */
static posenc_status mean_scores(pe_subject *s, double *mean, double *c, posenc_error *err)
{
    const int64_t H = s->dims.H, N = s->sizes.length;
    for (int64_t t = 0; t < N; t++)
        mean[t] = 0;
    for (int64_t draw = 0; draw < s->sizes.draws; draw++) {
        const posenc_status status = pe_subject_profiles(s, PE_UNIFORM, draw, c, err);
        if (status)
            return status;
        for (int64_t i = 0; i < H * N; i++)
            mean[i % N] += c[i] / (double)(H * s->sizes.draws);
    }
    return POSENC_OK;
}

static posenc_status find_resolution(const pe_subject *s, int64_t factor, pe_findings *to, posenc_error *err)
{
    pe_subject *far = longer(s, factor);
    if (!far)
        return POSENC_OK;
    const int64_t N = far->sizes.length, H = far->dims.H;
    double       *room = pe_subject_take(far, (H + 1) * N, sizeof *room);
    posenc_status status =
        room ? mean_scores(far, room, room + N, NULL) : pe_measure_no_memory(err, "scores");
    if (!status)
        pe_find(to, PE_RESOLUTION, resolution(room, N), NAN, "length %lld", (long long)N);
    pe_subject_free(far);
    return status == POSENC_ERROR_MEMORY ? status : POSENC_OK;
}

/* ---------------------------------------------------------------- the property -------------- */

/* The mean dot product of every offset, as a profile. */
static posenc_status find_products(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t d = s->dims.d_model,
                  N = s->sizes.length < MOST_POSITIONS ? s->sizes.length : MOST_POSITIONS;
    double       *table, *c = pe_subject_take(s, N, sizeof *c);
    shape         of     = {0};
    posenc_status status = c ? pe_subject_take_table(s, &table, err) : pe_measure_no_memory(err, "a table");
    for (int64_t t = 0; !status && t < N / 2; t++) {
        c[t] = 0;
        for (int64_t i = 0; i < (N - t) * d; i++)
            c[t] += table[i] * table[i + t * d];
        c[t] /= (double)(N - t);
    }
    if (!status) {
        add_profile(&of, c, N / 2, c[0] / 2);
        find_shape(&of, "p_i . p_j", to);
        find_marks(c, N / 2, c[0], "p_i . p_j", to);
    }
    return status;
}

static posenc_status find_scores(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t n    = s->dims.H * s->sizes.length;
    double       *bias = pe_subject_take(s, 2 * n, sizeof *bias), *c = bias + n;
    int           is_biased, moves;
    if (!bias)
        return pe_measure_no_memory(err, "biases");
    posenc_status status = pe_score_kinds(s, bias, c, &is_biased, &moves, err);
    for (int content = 0; !status && moves && content < PE_CONTENTS; content++)
        status = find_content(s, (pe_content)content, c, to, err);
    if (!status && is_biased) {
        find_bias(s, bias, c, to);
        status = find_mass(s, to, err);
    }
    for (int64_t factor = 1; !status && (moves || is_biased) && factor <= 2; factor++)
        status = find_resolution(s, factor, to, err);
    return status;
}

posenc_status pe_measure_decay(pe_subject *s, pe_findings *to, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    if (s->coordinates > 1)
        return POSENC_OK;
    if (pe_subject_has(s, POSENC_PLACE_INPUT))
        status = find_products(s, to, err);
    return status || !pe_subject_attends(s) ? status : find_scores(s, to, err);
}

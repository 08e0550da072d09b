/* SPDX-License-Identifier: MIT */
/*
 * decay.c: does a score fall with distance?
 *
 * c(t) is the score of the last query for the key t tokens back, with the same q and k at every position, so
 * that only distance changes. Three contents, because the answer depends on them: q = k = ones; q, k ~ U[0,1]
 * (a common mean); q, k ~ N(0, I) (mean zero). A bias, which no content changes, is measured by itself, per
 * head. Of an input encoding c(t) is the mean of p_i . p_{i+t} over i, for t below N/2, so that each is a
 * mean of at least N/2 products (of the first 4096 positions where there are more).
 *
 * Numbers: Spearman's rho of t and c(t); the share of steps that do not rise; the first t with c(t) <= c(0) /
 * 2, for a bias the first t where it has cost half of the weight, b(t) <= b(0) - ln 2; c at some distances
 * (of contents: only ones, over c(0)). Of biases also the distance within which 90 % of softmax(b) lies at
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

/* A value and its index. */
typedef struct ranked {
    double  value;
    int64_t at;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

/* ranks[i] of c[i], from 0; a run of equal values shares its mean rank. */
static void set_ranks(double *ranks, const ranked *sorted, int64_t n)
{
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end].value == sorted[i].value;)
            end++;
        for (int64_t j = i; j < end; j++)
            ranks[sorted[j].at] = (double)(i + end - 1) / 2;
    }
}

/* Pearson's correlation of two lists of ranks, whose mean is (n-1)/2. */
static double correlation(const double *x, const double *y, int64_t n)
{
    const double mean = (double)(n - 1) / 2;
    double       ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = x[i] - mean, b = y[i] - mean;
        ab += a * b;
        aa += a * a;
        bb += b * b;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

static void rank(double *ranks, ranked *sorted, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (ranked){x[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ranked);
    set_ranks(ranks, sorted, n);
}

double pe_decay_rank_correlation(const double *x, const double *y, int64_t n)
{
    ranked *sorted = malloc((size_t)n * sizeof *sorted);
    double *ranks  = malloc((size_t)(2 * n) * sizeof *ranks);
    double  rho    = NAN;
    if (sorted && ranks) {
        rank(ranks, sorted, x, n);
        rank(ranks + n, sorted, y, n);
        rho = correlation(ranks, ranks + n, n);
    }
    free(sorted);
    free(ranks);
    return rho;
}

double pe_decay_spearman(const double *c, int64_t n)
{
    double *index = malloc((size_t)n * sizeof *index);
    for (int64_t i = 0; index && i < n; i++)
        index[i] = (double)i;
    const double rho = index ? pe_decay_rank_correlation(index, c, n) : NAN;
    free(index);
    return rho;
}

double pe_decay_falling_share(const double *c, int64_t n)
{
    int64_t falls = 0;
    for (int64_t t = 1; t < n; t++)
        falls += c[t] <= c[t - 1];
    return n > 1 ? (double)falls / (double)(n - 1) : NAN;
}

/* ---------------------------------------------------------------- findings ------------------ */

/* The three numbers of every profile. */
typedef struct shape {
    pe_sample trend, falling, half;
} shape;

static void add_profile(shape *to, const double *c, int64_t N, double half)
{
    pe_subject_sample_add(&to->trend, pe_decay_spearman(c, N));
    pe_subject_sample_add(&to->falling, pe_decay_falling_share(c, N));
    int64_t t = 0;
    while (t < N && !(c[t] <= half))
        t++;
    pe_subject_sample_add(&to->half, t < N ? (double)t : NAN);
}

static void find_shape(const shape *of, const char *of_what, pe_findings *to)
{
    pe_findings_add(to, PE_TREND, pe_subject_sample_mean(&of->trend), pe_subject_sample_spread(&of->trend),
                    "%s", of_what);
    pe_findings_add(to, PE_FALLING, pe_subject_sample_mean(&of->falling),
                    pe_subject_sample_spread(&of->falling), "%s", of_what);
    if (of->half.count)
        pe_findings_add(to, PE_HALF_DISTANCE, pe_subject_sample_mean(&of->half),
                        pe_subject_sample_spread(&of->half), "%s", of_what);
}

static void find_marks(const double *c, int64_t N, double unit, const char *of_what, pe_findings *to)
{
    for (int m = 0; m < MARKS; m++)
        if (marks[m] < N)
            pe_findings_add(to, PE_AT_DISTANCE, c[marks[m]] / unit, NAN, "%s, t = %lld", of_what,
                            (long long)marks[m]);
}

static posenc_status find_content(pe_subject *s, pe_content content, double *c, pe_findings *to,
                                  posenc_error *err)
{
    static const char *const names[] = {"q = k = ones", "q, k ~ U[0,1]", "q, k ~ N(0, I)"};
    const int64_t            N = s->sizes.length, draws = content == PE_CONTENT_ONES ? 1 : s->sizes.draws;
    shape                    of = {0};
    for (int64_t draw = 0; draw < draws; draw++) {
        const posenc_status status = pe_subject_profiles(s, content, draw, c, err);
        if (status)
            return status;
        for (int64_t h = 0; h < s->dims.H; h++)
            add_profile(&of, c + h * N, N, c[h * N] / 2);
    }
    find_shape(&of, names[content], to);
    if (content == PE_CONTENT_ONES)
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

/* What is found of the same encoding at `factor` times the length; nothing where it cannot be (a table that
   ends). */
static posenc_status find_longer(const pe_subject *s, int64_t factor, pe_property *find, pe_findings *to,
                                 posenc_error *err)
{
    pe_subject      *far;
    pe_subject_sizes sizes = s->sizes;
    sizes.length *= factor;
    if (pe_subject_create(&far, s->e, &sizes, NULL))
        return POSENC_OK;
    const posenc_status status = find(far, to, err);
    pe_subject_free(far);
    return status == POSENC_ERROR_MEMORY ? status : POSENC_OK;
}

static posenc_status find_mass(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, H = s->dims.H;
    double       *bias   = pe_subject_take(s, H * N, sizeof *bias);
    posenc_status status = bias ? pe_subject_bias(s, bias, NULL) : pe_subject_no_memory(err, "biases");
    for (int64_t h = 0; !status && h < H && h < 8; h++)
        pe_findings_add(to, PE_MASS, mass_distance(bias + h * N, N), NAN, "head %lld, context %lld",
                        (long long)h, (long long)N);
    return status;
}

/* mean [N] over draws and heads; c [H,N] is scratch memory. */
static posenc_status mean_scores(pe_subject *s, double *mean, double *c, posenc_error *err)
{
    const int64_t H = s->dims.H, N = s->sizes.length;
    for (int64_t t = 0; t < N; t++)
        mean[t] = 0;
    for (int64_t draw = 0; draw < s->sizes.draws; draw++) {
        const posenc_status status = pe_subject_profiles(s, PE_CONTENT_UNIFORM, draw, c, err);
        if (status)
            return status;
        for (int64_t i = 0; i < H * N; i++)
            mean[i % N] += c[i] / (double)(H * s->sizes.draws);
    }
    return POSENC_OK;
}

static posenc_status find_resolution(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, H = s->dims.H;
    double       *mean   = pe_subject_take(s, (H + 1) * N, sizeof *mean);
    posenc_status status = mean ? mean_scores(s, mean, mean + N, NULL) : pe_subject_no_memory(err, "scores");
    if (!status)
        pe_findings_add(to, PE_RESOLUTION, resolution(mean, N), NAN, "length %lld", (long long)N);
    return status;
}

/* ---------------------------------------------------------------- the property -------------- */

/* The mean dot product of every offset, as a profile. */
static posenc_status find_products(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t d = s->dims.d_model,
                  N = s->sizes.length < MOST_POSITIONS ? s->sizes.length : MOST_POSITIONS;
    double       *table, *c = pe_subject_take(s, N, sizeof *c);
    shape         of     = {0};
    posenc_status status = c ? pe_subject_take_table(s, &table, err) : pe_subject_no_memory(err, "a table");
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

/* Do scores c [H,N] of a drawn content change along the keys by more than the bias [H,N] does? */
static int content_moves(const double *c, const double *bias, int64_t H, int64_t N)
{
    double size = 0, change = 0;
    for (int64_t h = 0; h < H; h++)
        for (int64_t t = 0; t < N; t++) {
            const double here  = c[h * N + t] - bias[h * N + N - 1 - t],
                         first = c[h * N] - bias[h * N + N - 1];
            size               = fmax(size, fabs(c[h * N + t]) + fabs(bias[h * N + N - 1 - t]));
            change             = fmax(change, fabs(here - first));
        }
    return change > 1e-12 * size;
}

static posenc_status find_scores(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, H = s->dims.H;
    double       *bias = pe_subject_take(s, 2 * H * N, sizeof *bias), *c = bias + H * N;
    int           is_biased = 0;
    if (!bias)
        return pe_subject_no_memory(err, "biases");
    posenc_status status = pe_subject_bias(s, bias, err);
    if (!status)
        status = pe_subject_profiles(s, PE_CONTENT_NORMAL, 0, c, err);
    for (int64_t i = 0; !status && i < H * N; i++)
        is_biased |= bias[i] != 0;
    const int moves = !status && content_moves(c, bias, H, N);
    for (int content = 0; !status && moves && content < PE_CONTENTS; content++)
        status = find_content(s, (pe_content)content, c, to, err);
    if (!status && is_biased) {
        find_bias(s, bias, c, to);
        status = find_longer(s, LONGER, find_mass, to, err);
    }
    for (int64_t factor = 1; !status && (moves || is_biased) && factor <= 2; factor++)
        status = find_longer(s, factor, find_resolution, to, err);
    return status;
}

posenc_status pe_decay_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    if (s->coordinates > 1)
        return POSENC_OK;
    if (pe_subject_has(s, POSENC_PLACE_INPUT))
        status = find_products(s, to, err);
    return status || !pe_subject_attends(s) ? status : find_scores(s, to, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * scores.c: do the scores depend only on the offset, and do they tell past from future?
 *
 * The same token x ~ N(0, I) stands everywhere, so that nothing but position can make two scores differ; W_q
 * and W_k are drawn from N(0, 1/d_model), parameters as the encoding's source initialises them; the scores
 * are those before any mask. eta is the share of their variance within the offsets i - j.
 * Several draws, all heads: the sums of squares are pooled before they are divided.
 *
 * Direction: the mean score of each offset, s(t), split into an even and an odd part; the odd share of their
 * squares.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Mean, and squares about it, of offset t of an N x N array: a diagonal. */
static void sum_diagonal(const double *S, int64_t N, int64_t t, double *mean, double *squares)
{
    const int64_t first = t >= 0 ? t * N : -t, n = N - llabs(t);
    *mean = *squares = 0;
    for (int64_t i = 0; i < n; i++)
        *mean += S[first + i * (N + 1)];
    *mean /= (double)n;
    for (int64_t i = 0; i < n; i++)
        *squares += (S[first + i * (N + 1)] - *mean) * (S[first + i * (N + 1)] - *mean);
}

static double mean_of_all(const double *S, int64_t N, int past_only)
{
    double  sum   = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < (past_only ? i : N); j++, count++)
            sum += S[i * N + j];
    return count ? sum / (double)count : 0;
}

void pe_scores_offset_squares(const double *S, int64_t N, int past_only, double *within, double *total,
                              double *profile)
{
    const double all = mean_of_all(S, N, past_only);
    for (int64_t t = past_only ? 1 : 1 - N; t < N; t++) {
        double mean, squares;
        sum_diagonal(S, N, t, &mean, &squares);
        *within += squares;
        *total += squares + (double)(N - llabs(t)) * (mean - all) * (mean - all);
        if (profile)
            profile[N - 1 + t] = mean;
    }
}

/* Adds the squares of the odd part of a profile, and of its even part about the mean of that. */
static void split(const double *profile, int64_t N, double *odd, double *even)
{
    double mean = 0;
    for (int64_t t = 1; t < N; t++)
        mean += (profile[N - 1 + t] + profile[N - 1 - t]) / 2 / (double)(N - 1);
    for (int64_t t = 1; t < N; t++) {
        const double past = profile[N - 1 + t], future = profile[N - 1 - t];
        *odd += (past - future) * (past - future) / 4;
        *even += ((past + future) / 2 - mean) * ((past + future) / 2 - mean);
    }
}

/* Arrays for one draw. */
typedef struct score_draw {
    double *x, *y, *Wq, *Wk, *q, *k, *S, *profile;
} score_draw;

/* to [H,N,D] = y W; where nothing is added at the input all rows of y are the same token: one is projected
   and repeated. */
static void project_or_repeat(double *to, const score_draw *r, const double *W, const pe_subject *s)
{
    const int64_t H = s->dims.H, D = s->dims.D, N = s->sizes.length;
    if (pe_subject_has(s, POSENC_PLACE_INPUT)) {
        pe_subject_project(to, r->y, W, &s->dims, N);
        return;
    }
    pe_subject_project(to, r->y, W, &s->dims, 1);
    for (int64_t row = H * N - 1; row >= 0; row--)
        memmove(to + row * D, to + row / N * D, (size_t)D * sizeof *to);
}

static posenc_status draw_scores(pe_subject *s, score_draw *r, int64_t index, posenc_error *err)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model, all = s->dims.H * s->dims.D;
    posenc_status status = pe_subject_initialise(s, s->sizes.seed + (uint64_t)index, err);
    pe_subject_draw_normal(r->x, d, 1, s, "token", index);
    for (int64_t i = d; i < N * d; i++)
        r->x[i] = r->x[i - d];
    pe_subject_draw_normal(r->Wq, d * all, 1 / sqrt((double)d), s, "Wq", index);
    pe_subject_draw_normal(r->Wk, d * all, 1 / sqrt((double)d), s, "Wk", index);
    if (!status)
        status = pe_subject_embed(s, r->x, r->y, err);
    if (status)
        return status;
    project_or_repeat(r->q, r, r->Wq, s);
    project_or_repeat(r->k, r, r->Wk, s);
    return pe_subject_scores(s, r->q, r->k, r->S, err);
}

/* What the draws add up to. */
typedef struct score_sums {
    double within, total, odd, even;
    double squares; /* of the scores themselves */
} score_sums;

double pe_scores_share(double part, double whole, double squares)
{
    return whole > 1e-24 * squares ? part / whole : NAN;
}

static posenc_status add_draw(pe_subject *s, score_draw *r, int64_t index, score_sums *all, posenc_error *err)
{
    const int64_t       N      = s->sizes.length;
    const posenc_status status = draw_scores(s, r, index, err);
    for (int64_t h = 0; !status && h < s->dims.H; h++) {
        pe_scores_offset_squares(r->S + h * N * N, N, 0, &all->within, &all->total, r->profile);
        split(r->profile, N, &all->odd, &all->even);
    }
    for (int64_t i = 0; !status && i < s->dims.H * N * N; i++)
        all->squares += r->S[i] * r->S[i];
    return status;
}

posenc_status pe_scores_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model, H = s->dims.H, w = H * s->dims.D;
    const int64_t sizes[] = {N * d, N * d, d * w, d * w, N * w, N * w, H * N * N, 2 * N};
    score_draw    r;
    double      **parts[] = {&r.x, &r.y, &r.Wq, &r.Wk, &r.q, &r.k, &r.S, &r.profile};
    score_sums    all     = {0};
    if (s->coordinates > 1)
        return POSENC_OK;
    if (!pe_subject_take_all(s, parts, sizes, sizeof sizes / sizeof *sizes))
        return pe_subject_no_memory(err, "scores");
    posenc_status status = POSENC_OK;
    for (int64_t i = 0; !status && i < s->sizes.draws; i++)
        status = add_draw(s, &r, i, &all, err);
    if (status)
        return status;
    pe_findings_add(to, PE_SCORES, pe_scores_share(all.within, all.total, all.squares), NAN, "%lld draws",
                    (long long)s->sizes.draws);
    if (!s->causal_only)
        pe_findings_add(to, PE_DIRECTION, pe_scores_share(all.odd, all.odd + all.even, all.squares), NAN,
                        "%lld draws", (long long)s->sizes.draws);
    return POSENC_OK;
}

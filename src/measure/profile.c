/* SPDX-License-Identifier: MIT */
/*
 * profile.c: scores against distance, for contents that are the same at every position
 *
 * One query stands at the last position, one key at every position up to it: where q and k are the same
 * everywhere, the score is a function of the position alone, and c(t) is that of the key t tokens back.
 * Encodings that see more than the distance (fire) are measured as the last query sees them.
 */
#include "measure/measure.h"

#include "measure/linear.h"
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>

const char *pe_content_name(pe_content content)
{
    static const char *const names[] = {"q = k = ones", "q, k ~ U[0,1]", "q, k ~ N(0, I)"};
    return names[content];
}

static void fill(double *x, int64_t n, pe_content content, const pe_subject *s, const char *name,
                 int64_t draw)
{
    if (content == PE_NORMAL)
        pe_draw_normal(x, n, 1, s, name, draw);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] =
                content == PE_ONES ? 1 : posenc_random_uniform(s->sizes.seed, name, (uint64_t)(draw * n + i));
}

/* The scores come by key: distance 0 is the last. */
static void reverse(double *c, int64_t n)
{
    for (int64_t t = 0; t < n - 1 - t; t++) {
        const double kept = c[t];
        c[t]              = c[n - 1 - t];
        c[n - 1 - t]      = kept;
    }
}

posenc_status pe_subject_profiles(pe_subject *s, pe_content content, int64_t draw, double *c,
                                  posenc_error *err)
{
    const int64_t H = s->dims.H, D = s->dims.D, N = s->sizes.length;
    double       *q = malloc((size_t)(2 * H * D) * sizeof *q);
    if (!q)
        return pe_measure_no_memory(err, "queries");
    fill(q, H * D, content, s, "query", draw);
    fill(q + H * D, H * D, content, s, "key", draw);
    const posenc_status status = pe_subject_last_scores(s, q, q + H * D, c, err);
    free(q);
    for (int64_t h = 0; !status && h < H; h++)
        reverse(c + h * N, N);
    return status;
}

posenc_status pe_score_profile(pe_subject *s, pe_content content, int64_t draw, int64_t h, double *c,
                               posenc_error *err)
{
    const int64_t N   = s->sizes.length;
    double       *all = malloc((size_t)(s->dims.H * N) * sizeof *all);
    if (!all)
        return pe_measure_no_memory(err, "scores");
    const posenc_status status = pe_subject_profiles(s, content, draw, all, err);
    for (int64_t t = 0; !status && t < N; t++)
        c[t] = all[h * N + t];
    free(all);
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

posenc_status pe_score_kinds(pe_subject *s, double *bias, double *c, int *is_biased, int *moves,
                             posenc_error *err)
{
    const int64_t N = s->sizes.length, H = s->dims.H;
    posenc_status status = pe_subject_bias(s, bias, err);
    if (!status)
        status = pe_subject_profiles(s, PE_NORMAL, 0, c, err);
    *is_biased = !status && !pe_all_zero(bias, H * N);
    *moves     = !status && content_moves(c, bias, H, N);
    return status;
}

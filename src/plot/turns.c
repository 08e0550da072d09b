/* SPDX-License-Identifier: MIT */
/*
 * turns.c: vectors that are turned, and their scores by distance
 *
 * The query is turned to position t, the key stays at 0: t > 0 is a key in the past. The library turns; what
 * it cannot do is to turn every pair by the same frequency, and that is computed here:
 *     (q_x k_x + q_y k_y) cos(t theta) + (q_x k_y - q_y k_x) sin(t theta), summed over the pairs (2m, 2m+1),
 * times the square of the encoding's factor; channels that it does not turn are added as they are.
 *
 * Surprises  A query stands at all positions at once by a stride of 0. Positions come in pieces: R draws at n
 *            positions would be R * n * D numbers.
 */
#include "plot/turns.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWS = 200, MOST_ELEMENTS = 1 << 20 };

/* ---------------------------------------------------------------- vectors ------------------- */

const pe_content pe_contents[PE_CONTENTS] = {
    {"ones", PE_ONES, NULL},
    {"U[0,1]", PE_UNIFORM, posenc_random_uniform},
    {"N(0,1)", PE_NORMAL, posenc_random_normal},
};

int64_t pe_draws(const pe_sketch *s)
{
    return s->data->draws ? s->data->draws : DRAWS;
}

pe_trial pe_draw_vectors(pe_sketch *s, const pe_content *content)
{
    pe_trial      t  = {.content = content, .D = s->data->dims.D, .n = s->data->length};
    const int64_t RD = (t.R = content->draw ? pe_draws(s) : 1) * t.D;
    t.q              = pe_take_numbers(s, RD);
    t.k              = pe_take_numbers(s, RD);
    t.scores         = pe_take_numbers(s, t.R * t.n);
    for (int64_t i = 0; t.scores && i < RD; i++) {
        t.q[i] = content->draw ? content->draw(s->data->seed, "plot q", (uint64_t)i) : 1;
        t.k[i] = content->draw ? content->draw(s->data->seed, "plot k", (uint64_t)i) : 1;
    }
    return t;
}

/* A plan of a run that turns R heads at n positions. */
static int prepare_turn(pe_sketch *s, const posenc_encoding *e, int64_t R, int64_t n)
{
    posenc_dims dims = s->data->dims;
    dims.B           = 1;
    dims.H = dims.G = R;
    dims.Lq         = n;
    dims.Lk         = dims.Lk > n ? dims.Lk : n;
    dims.d_model    = dims.d_model ? dims.d_model : dims.D;
    return pe_prepare(s, e, &dims, POSENC_FORWARD);
}

void pe_turn(pe_sketch *s, double *q, int64_t R, int64_t n, double first)
{
    const posenc_tensor all =
        posenc_tensor_contiguous(q, POSENC_F64, 4, (const int64_t[]){1, R, n, s->data->dims.D});
    const posenc_rotate_io io = {.q         = all,
                                 .to_q      = all,
                                 .q_pos     = posenc_positions_range(first, 1),
                                 .k_pos     = posenc_positions_range(0, 1),
                                 .direction = 1,
                                 .params    = s->data->params};
    if (q && prepare_turn(s, s->e, R, n > 1 ? n : 2))
        s->status = posenc_rotate(s->plan, &io, s->work, s->err);
}

/* ---------------------------------------------------------------- scores -------------------- */

/* The queries at positions t0 .. t0+n-1 into turned [R, n, D], the keys at 0 into key [R, D]. Stride 0 gives
   one query to all positions. */
static void turn(pe_sketch *s, const pe_trial *t, int64_t t0, int64_t n, double *turned, double *key)
{
    const int64_t    shape[4] = {1, t->R, n, t->D}, one[4] = {1, t->R, 1, t->D};
    posenc_rotate_io io = {.q         = posenc_tensor_contiguous(t->q, POSENC_F64, 4, shape),
                           .k         = posenc_tensor_contiguous(t->k, POSENC_F64, 4, one),
                           .to_q      = posenc_tensor_contiguous(turned, POSENC_F64, 4, shape),
                           .to_k      = posenc_tensor_contiguous(key, POSENC_F64, 4, one),
                           .q_pos     = posenc_positions_range((double)t0, 1),
                           .k_pos     = posenc_positions_range(0, 1),
                           .direction = 1,
                           .params    = s->data->params};
    io.q.stride[0] = io.q.stride[1] = t->D;
    io.q.stride[2]                  = 0;
    s->status                       = posenc_rotate(s->plan, &io, s->work, s->err);
}

/* Some positions at a time: all of them together would be R * n * D numbers. */
void pe_score(pe_sketch *s, const posenc_encoding *e, pe_trial *t)
{
    const int64_t fit = MOST_ELEMENTS / (t->R * t->D), step = fit < 1 ? 1 : fit < t->n ? fit : t->n;
    double       *turned = malloc((size_t)(t->R * (step + 1) * t->D) * sizeof *turned); /* not for long */
    double       *key    = turned ? turned + t->R * step * t->D : NULL;
    if (!turned)
        s->status = s->status ? s->status : pe_plot_no_memory(s->err);
    prepare_turn(s, e, t->R, step);
    for (int64_t t0 = 0; !s->status && t0 < t->n; t0 += step) {
        const int64_t n = t->n - t0 < step ? t->n - t0 : step;
        turn(s, t, t0, n, turned, key);
        for (int64_t i = 0; !s->status && i < t->R * n; i++)
            t->scores[i / n * t->n + t0 + i % n] =
                pe_product(turned + i * t->D, key + i / n * t->D, t->D) / (double)t->D;
    }
    free(turned);
}

void pe_score_with_one_theta(pe_trial *t, const pe_one_theta *one)
{
    const double factor = one->magnitude * one->magnitude;
    for (int64_t r = 0; r < t->R; r++) {
        const double *q = t->q + r * t->D, *k = t->k + r * t->D;
        double        even = 0, odd = 0;
        const double  still = pe_product(q + 2 * one->M, k + 2 * one->M, t->D - 2 * one->M);
        for (int64_t m = 0; m < one->M; m++) {
            even += q[2 * m] * k[2 * m] + q[2 * m + 1] * k[2 * m + 1];
            odd += q[2 * m] * k[2 * m + 1] - q[2 * m + 1] * k[2 * m];
        }
        for (int64_t i = 0; i < t->n; i++) {
            const double a          = (double)i * one->theta;
            t->scores[r * t->n + i] = (factor * (even * cos(a) + odd * sin(a)) + still) / (double)t->D;
        }
    }
}

/* ---------------------------------------------------------------- mean and band ------------- */

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the neighbours, as NumPy's "linear". sorted [n]. */
static double quantile(const double *sorted, int64_t n, double part)
{
    const double  at = part * (double)(n - 1);
    const int64_t i  = (int64_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

void pe_summarise(pe_sketch *s, const pe_trial *t, pe_curve *curve)
{
    double *mean = pe_take_numbers(s, 3 * t->n), *low = mean + t->n, *high = low + t->n;
    double *column = pe_take_numbers(s, t->R);
    for (int64_t i = 0; column && i < t->n; i++) {
        for (int64_t r = 0; r < t->R; r++) {
            column[r] = t->scores[r * t->n + i];
            mean[i] += column[r] / (double)t->R;
        }
        qsort(column, (size_t)t->R, sizeof *column, smaller_first);
        low[i]  = quantile(column, t->R, 0.1);
        high[i] = quantile(column, t->R, 0.9);
    }
    curve->y    = mean;
    curve->low  = t->content->draw ? low : NULL;
    curve->high = t->content->draw ? high : NULL;
}

/* ---------------------------------------------------------------- frequencies --------------- */

/* Frequencies do not ask for rows: a plan of the shortest run will do. */
double *pe_read_frequencies(pe_sketch *s, const posenc_encoding *e, int64_t *M, double *magnitude)
{
    posenc_dims dims = s->data->dims;
    dims.B = dims.H = dims.G = 1;
    dims.Lq = dims.Lk = 2;
    dims.d_model      = dims.D;
    *M                = 0;
    if (pe_prepare(s, e, &dims, POSENC_FORWARD))
        s->status = posenc_rotary_frequencies(s->plan, NULL, M, magnitude, s->err);
    posenc_rotary_pair *pairs = pe_take(s, *M, sizeof *pairs);
    double             *w     = pe_take_numbers(s, *M);
    if (!w)
        return NULL;
    s->status =
        posenc_rotary_pairs(s->plan, s->data->params, (double)s->data->length, pairs, s->work, s->err);
    for (int64_t m = 0; !s->status && m < *M; m++)
        w[m] = pairs[m].w;
    if (!s->status && isnan(w[0]))
        pe_plot_refuse(s, POSENC_UNSUPPORTED,
                       "picture: the pairs of %s follow several coordinates at once; "
                       "they have no frequency of their own",
                       posenc_encoding_spec(e));
    return s->status ? NULL : w;
}

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
    {"ones", PE_ONES, 0, NULL},
    {"U[0,1]", PE_UNIFORM, 1, posenc_random_uniform},
    {"N(0,1)", PE_NORMAL, 1, posenc_random_normal},
};

int64_t pe_draws(const pe_sketch *s)
{
    return s->data->draws ? s->data->draws : DRAWS;
}

posenc_status pe_draw_vectors(pe_sketch *s, const pe_content *content, pe_trial *t, posenc_error *err)
{
    t->content = content;
    t->D       = s->data->dims.D;
    t->n       = s->data->length;
    t->R       = content->random ? pe_draws(s) : 1;
    t->q       = pe_take_numbers(s, t->R * t->D);
    t->k       = pe_take_numbers(s, t->R * t->D);
    t->scores  = pe_take_numbers(s, t->R * t->n);
    if (!t->q || !t->k || !t->scores)
        return pe_plot_no_memory(err);
    for (int64_t i = 0; i < t->R * t->D; i++) {
        t->q[i] = content->draw ? content->draw(s->data->seed, "plot q", (uint64_t)i) : 1;
        t->k[i] = content->draw ? content->draw(s->data->seed, "plot k", (uint64_t)i) : 1;
    }
    return POSENC_OK;
}

posenc_dims pe_turning_dims(const pe_sketch *s, int64_t R, int64_t n)
{
    posenc_dims dims = s->data->dims;
    dims.B           = 1;
    dims.H = dims.G = R;
    dims.Lq         = n;
    dims.Lk         = dims.Lk > n ? dims.Lk : n;
    dims.d_model    = dims.d_model ? dims.d_model : dims.D;
    return dims;
}

/* ---------------------------------------------------------------- scores -------------------- */

/* The queries at positions t0 .. t0+n-1 into turned [R, n, D], the keys at 0 into key [R, D]. Stride 0 gives
   one query to all positions. */
static posenc_status turn(pe_sketch *s, const pe_trial *t, int64_t t0, int64_t n, double *turned, double *key,
                          posenc_error *err)
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
    return posenc_rotate(s->plan, &io, s->work, err);
}

/* Some positions at a time: all of them together would be R * n * D numbers. */
posenc_status pe_score(pe_sketch *s, const posenc_encoding *e, pe_trial *t, posenc_error *err)
{
    const int64_t     fit = MOST_ELEMENTS / (t->R * t->D), step = fit < 1 ? 1 : fit < t->n ? fit : t->n;
    const posenc_dims dims   = pe_turning_dims(s, t->R, step);
    double           *turned = malloc((size_t)(t->R * (step + 1) * t->D) * sizeof *turned);
    double           *key    = turned ? turned + t->R * step * t->D : NULL;
    posenc_status     status = turned ? pe_prepare(s, e, &dims, POSENC_FORWARD, err) : pe_plot_no_memory(err);
    for (int64_t t0 = 0; !status && t0 < t->n; t0 += step) {
        const int64_t n = t->n - t0 < step ? t->n - t0 : step;
        status          = turn(s, t, t0, n, turned, key, err);
        for (int64_t i = 0; !status && i < t->R * n; i++)
            t->scores[i / n * t->n + t0 + i % n] =
                pe_product(turned + i * t->D, key + i / n * t->D, t->D) / (double)t->D;
    }
    free(turned);
    return status;
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

posenc_status pe_summarise(pe_sketch *s, const pe_trial *t, pe_curve *curve, posenc_error *err)
{
    double *mean = pe_take_numbers(s, 3 * t->n), *low = mean + t->n, *high = low + t->n;
    double *column = pe_take_numbers(s, t->R);
    if (!mean || !column)
        return pe_plot_no_memory(err);
    for (int64_t i = 0; i < t->n; i++) {
        for (int64_t r = 0; r < t->R; r++) {
            column[r] = t->scores[r * t->n + i];
            mean[i] += column[r] / (double)t->R;
        }
        qsort(column, (size_t)t->R, sizeof *column, smaller_first);
        low[i]  = quantile(column, t->R, 0.1);
        high[i] = quantile(column, t->R, 0.9);
    }
    curve->y    = mean;
    curve->low  = t->content->random ? low : NULL;
    curve->high = t->content->random ? high : NULL;
    return POSENC_OK;
}

/* ---------------------------------------------------------------- frequencies --------------- */

/* Frequencies do not ask for rows: a plan of the shortest run will do. */
posenc_status pe_read_frequencies(pe_sketch *s, const posenc_encoding *e, double **w, int64_t *M,
                                  double *magnitude, posenc_error *err)
{
    posenc_dims dims = s->data->dims;
    dims.B = dims.H = dims.G = 1;
    dims.Lq = dims.Lk    = 2;
    dims.d_model         = dims.D;
    posenc_status status = pe_prepare(s, e, &dims, POSENC_FORWARD, err);
    if (!status)
        status = posenc_rotary_frequencies(s->plan, NULL, M, magnitude, err);
    if (status)
        return status;
    posenc_rotary_pair *pairs = pe_take(s, *M, sizeof *pairs);
    *w                        = pe_take_numbers(s, *M);
    if (!pairs || !*w)
        return pe_plot_no_memory(err);
    status = posenc_rotary_pairs(s->plan, s->data->params, (double)s->data->length, pairs, s->work, err);
    for (int64_t m = 0; !status && m < *M; m++)
        (*w)[m] = pairs[m].w;
    if (!status && isnan((*w)[0]))
        return pe_plot_fail(err, POSENC_UNSUPPORTED,
                            "picture: the pairs of %s follow several coordinates at once; "
                            "they have no frequency of their own",
                            posenc_encoding_spec(e));
    return status;
}

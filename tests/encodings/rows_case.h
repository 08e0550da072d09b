/* SPDX-License-Identifier: MIT */
/*
 * rows_case.h: one input encoding with its plan and random parameters in double
 *
 * What the tests of single rooms at place input share: making, running, the gradient, and slopes of the loss
 * sum(dy * y) by central differences. With h = 1e-6 these are off by about 1e-9 of the loss, so 1e-6 of the
 * largest gradient is tight enough to see a missing term and too wide to fail by chance.
 */
#ifndef TESTS_ENCODINGS_ROWS_CASE_H
#define TESTS_ENCODINGS_ROWS_CASE_H

#include "attention_case.h"

typedef struct rows_case {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_dims      dims;
    array            numbers[CASE_PARAMS], gradients[CASE_PARAMS];
    posenc_tensor    params[CASE_PARAMS], dparams[CASE_PARAMS];
    posenc_workspace work;
    int              count;
} rows_case;

/* Random parameters of size `scale`, for runs of up to L positions in B items. */
static inline rows_case rows_make(const char *spec, int64_t B, int64_t L, int threads, double scale)
{
    rows_case      c       = {.dims = {.B = B, .Lq = L, .Lk = L, .L = L, .d_model = 6}};
    posenc_options options = posenc_options_default();
    posenc_error   err;
    options.threads = threads;
    if (posenc_encoding_create(&c.e, spec, NULL, &err) ||
        posenc_plan_create(&c.plan, c.e, &c.dims, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    c.count = posenc_param_count(c.e);
    for (int i = 0; i < c.count; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        assert_int_equal(posenc_param_shape(c.e, &c.dims, i, &ndim, shape, &err), POSENC_OK);
        c.numbers[i]   = array_make(ndim, shape);
        c.gradients[i] = array_make(ndim, shape);
        c.params[i]    = array_tensor(&c.numbers[i], 1);
        c.dparams[i]   = array_tensor(&c.gradients[i], 1);
        array_fill(&c.numbers[i], 5, posenc_param_name(c.e, i), scale);
    }
    c.work = workspace_for(c.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    return c;
}

static inline void rows_free(rows_case *c)
{
    for (int i = 0; i < c->count; i++) {
        array_free(&c->numbers[i]);
        array_free(&c->gradients[i]);
    }
    posenc_workspace_free(&c->work);
    posenc_plan_free(c->plan);
    posenc_encoding_free(c->e);
}

static inline posenc_status rows_try(const rows_case *c, posenc_positions pos, const array *y,
                                     posenc_error *err)
{
    const posenc_rows_in in = {.size = sizeof in, .pos = pos, .params = c->params};
    posenc_tensor        to = array_tensor(y, 1);
    return posenc_rows(c->plan, &in, &to, &c->work, err);
}

static inline void rows_run(const rows_case *c, posenc_positions pos, const array *y)
{
    posenc_error err;
    if (rows_try(c, pos, y, &err))
        fail_msg("%s", err.message);
}

/* Gradients, from zero. */
static inline void rows_back(rows_case *c, posenc_positions pos, const array *dy)
{
    const posenc_rows_in   in   = {.size = sizeof in, .pos = pos, .params = c->params};
    const posenc_rows_grad grad = {.size = sizeof grad, .dy = array_tensor(dy, 1), .dparams = c->dparams};
    posenc_error           err;
    for (int i = 0; i < c->count; i++)
        memset(c->gradients[i].wide, 0, (size_t)c->gradients[i].count * sizeof(double));
    if (posenc_rows_backward(c->plan, &in, &grad, &c->work, &err))
        fail_msg("%s", err.message);
}

static inline double dot(const array *a, const array *b)
{
    double sum = 0;
    for (int64_t i = 0; i < a->count; i++)
        sum += a->wide[i] * b->wide[i];
    return sum;
}

static inline double rows_loss(const rows_case *c, posenc_positions pos, const array *dy)
{
    array y = array_make(dy->ndim, dy->shape);
    rows_run(c, pos, &y);
    const double loss = dot(&y, dy);
    array_free(&y);
    return loss;
}

/* All gradients against slopes. dy [B,L,width]. */
static inline void rows_compare_slopes(rows_case *c, posenc_positions pos, const array *dy)
{
    static const double h = 1e-6;
    rows_back(c, pos, dy);
    for (int p = 0; p < c->count; p++) {
        const double scale = fmax(largest(&c->gradients[p], NULL), 1e-2);
        for (int64_t i = 0; i < c->numbers[p].count; i++) {
            double      *at    = &c->numbers[p].wide[i];
            const double start = *at, got = c->gradients[p].wide[i];
            *at                = start + h;
            const double above = rows_loss(c, pos, dy);
            *at                = start - h;
            const double slope = (above - rows_loss(c, pos, dy)) / (2 * h);
            *at                = start;
            if (!(fabs(slope - got) <= 1e-6 * scale))
                fail_msg("%s: d%s[%d] is %.12g, the slope is %.12g", posenc_encoding_spec(c->e),
                         posenc_param_name(c->e, p), (int)i, got, slope);
        }
    }
}

#endif

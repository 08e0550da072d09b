/* SPDX-License-Identifier: MIT */
/*
 * floater.c: the rows of a learned differential equation against arithmetic: FLOATER
 *
 * posenc_plan_operations counts what its formulas cost, one for each product and sum; the multiply-add peak
 * does two at once. A row is a step from the row before it, so positions are no help: what can be done side
 * by side are the channels of a state and the states (one for each block of a model, or for q, k and v).
 * Backward makes each step again and multiplies by the transpose and the outer product where forward
 * multiplies once: three times the arithmetic.
 */
#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/limits.h"

#include <stdio.h>

enum { WIDTH = 128, LENGTH = 512, PARAMS = 8, BACKWARD = 3 };

typedef struct path {
    pe_buffers       all;
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_rows_in   in;
    posenc_rows_grad grad;
    posenc_tensor    y, params[PARAMS], dparams[PARAMS];
    void            *work;
    int              backward;
    posenc_error     err;
} path;

static void close_path(path *p)
{
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
    pe_free_buffers(&p->all);
}

static posenc_tensor draw(path *p, int32_t ndim, const int64_t *shape, posenc_error *err)
{
    int64_t n = 1;
    for (int32_t a = 0; a < ndim; a++)
        n *= shape[a];
    return posenc_tensor_contiguous(pe_random_buffer(&p->all, n, POSENC_F32, err), POSENC_F32, ndim, shape);
}

static posenc_status open_params(path *p, const posenc_dims *dims, posenc_error *err)
{
    for (int i = 0; i < posenc_param_count(p->e); i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS];
        const posenc_status status = posenc_param_shape(p->e, dims, i, &ndim, shape, err);
        if (status)
            return status;
        p->params[i]  = draw(p, ndim, shape, err);
        p->dparams[i] = draw(p, ndim, shape, err);
        if (!p->params[i].data || !p->dparams[i].data)
            return err->status;
    }
    return posenc_param_init(p->e, dims, p->params, 1, err);
}

static posenc_status open_path(path *p, const pe_bench_case *c, int threads, posenc_error *err)
{
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = LENGTH, .Lk = LENGTH, .D = WIDTH, .d_model = WIDTH};
    posenc_options    o    = posenc_options_default();
    *p                     = (path){.backward = c->shape.backward};
    o.threads              = threads;
    posenc_status status   = posenc_encoding_create(&p->e, c->shape.spec, NULL, err);
    if (!status)
        status = posenc_plan_create(&p->plan, p->e, &dims, &o, err);
    if (!status)
        status = open_params(p, &dims, err);
    if (status)
        return status;
    const int64_t shape[3] = {1, LENGTH, posenc_row_width(p->plan)};
    p->in                  = (posenc_rows_in){.pos = posenc_positions_range(0, 1), .params = p->params};
    p->y                   = draw(p, 3, shape, err);
    p->grad                = (posenc_rows_grad){.dy = draw(p, 3, shape, err), .dparams = p->dparams};
    p->work = pe_plain_buffer(&p->all, posenc_plan_workspace(p->plan, POSENC_FORWARD | POSENC_BACKWARD), err);
    if (!p->y.data || !p->grad.dy.data || !p->work)
        return err->status;
    return POSENC_OK;
}

static void run_path(void *context)
{
    path *p = context;
    if (p->backward)
        p->err.status = posenc_rows_backward(p->plan, &p->in, &p->grad, p->work, &p->err);
    else
        p->err.status = posenc_rows(p->plan, &p->in, &p->y, p->work, &p->err);
}

static posenc_status measure_path(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    path          p;
    pe_peak       peak;
    posenc_status status = open_path(&p, c, effort->threads, err);
    if (!status) {
        run_path(&p);
        *err   = p.err;
        status = p.err.status;
    }
    if (!status) {
        const pe_timed kernel = {run_path, &p, (p.backward ? BACKWARD : 1) * posenc_plan_operations(p.plan),
                                 effort->threads},
                       limit  = pe_multiply_add_limit(&peak, NULL, effort->threads);
        pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    close_path(&p);
    return status;
}

void pe_floater_cases(pe_case_list *to)
{
    static const struct {
        const char *name, *spec;
    } kinds[] = {{"one state", "floater[positions=512]"}, {"16 states", "floater[positions=512:states=16]"}};
    for (int k = 0; k < 2; k++)
        for (int backward = 0; backward < 2; backward++)
            pe_add_case(to, "FLOATER",
                        (pe_bench_case){.unit    = "GFLOP/s",
                                        .sense   = PE_STATED,
                                        .measure = measure_path,
                                        .shape   = {.spec = kinds[k].spec, .backward = backward}},
                        "rows %s f32, %d x %d, %s, of the multiply-add peak",
                        backward ? "backward" : "forward", LENGTH, WIDTH, kinds[k].name);
}

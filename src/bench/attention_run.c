/* SPDX-License-Identifier: MIT */
/* One attention problem of a case. Contract: attention_run.h. */
#include "bench/attention_run.h"

#include <stdio.h>
#include <string.h>

enum { REACH = 8 }; /* trained at an eighth of the keys */

void pe_attention_close(pe_attention_run *r)
{
    posenc_plan_free(r->plan);
    posenc_encoding_free(r->e);
    pe_free_buffers(&r->all);
}

static posenc_status open_encoding(pe_attention_run *r, const pe_bench_shape *s, posenc_error *err)
{
    char small[512] = "";
    if (!strpbrk(s->spec, "[+")) {
        const posenc_status status =
            posenc_small_model_for(s->spec, &r->dims, s->mask, small, sizeof small, err);
        if (status)
            return status;
    }
    return posenc_encoding_create(&r->e, s->spec, small, err);
}

static posenc_status open_plan(pe_attention_run *r, const pe_bench_case *c, int threads, posenc_error *err)
{
    posenc_options o = posenc_options_default();
    o.mask           = c->shape.mask;
    o.window         = c->shape.window;
    o.threads        = threads;
    o.isa            = c->isa;
    o.executor       = POSENC_TILED;
    return posenc_plan_create(&r->plan, r->e, &r->dims, &o, err);
}

/* A tensor of random numbers; no data after an error. */
static posenc_tensor draw(pe_attention_run *r, posenc_dtype dtype, int32_t ndim, const int64_t *shape,
                          posenc_error *err)
{
    int64_t n = 1;
    for (int32_t a = 0; a < ndim; a++)
        n *= shape[a];
    return posenc_tensor_contiguous(pe_random_buffer(&r->all, n, dtype, err), dtype, ndim, shape);
}

static int is_zero(const posenc_tensor *t, int64_t n)
{
    const float *x = t->data;
    int64_t      i = 0;
    while (i < n && x[i] == 0)
        i++;
    return i == n;
}

static void fill_zeros(posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    if (is_zero(t, n))
        for (int64_t i = 0; i < n; i++)
            ((float *)t->data)[i] = (float)(0.1 * posenc_random_uniform(1, "bench", (uint64_t)i));
}

static posenc_status open_params(pe_attention_run *r, int backward, posenc_error *err)
{
    const int count = posenc_param_count(r->e);
    for (int i = 0; i < count; i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS];
        const posenc_status status = posenc_param_shape(r->e, &r->dims, i, &ndim, shape, err);
        if (status)
            return status;
        r->params[i] = draw(r, POSENC_F32, ndim, shape, err);
        if (!r->params[i].data)
            return err->status;
        r->dparams[i] = posenc_tensor_contiguous(NULL, POSENC_F32, ndim, shape);
        if (backward && posenc_param_trainable(r->e, i))
            r->dparams[i] = draw(r, POSENC_F32, ndim, shape, err);
    }
    const posenc_status status = count ? posenc_param_init(r->e, &r->dims, r->params, 1, err) : POSENC_OK;
    for (int i = 0; !status && i < count; i++)
        fill_zeros(&r->params[i]);
    return status;
}

/* err->status says whether all of them got memory. */
static posenc_status open_tensors(pe_attention_run *r, const pe_bench_shape *s, posenc_error *err)
{
    const posenc_dims *d = &r->dims;
    const int64_t q[4] = {1, d->H, d->Lq, d->D}, k[4] = {1, d->G, d->Lk, d->D}, lse[3] = {1, d->H, d->Lq};
    err->status  = POSENC_OK;
    r->in.q      = draw(r, s->dtype, 4, q, err);
    r->in.k      = draw(r, s->dtype, 4, k, err);
    r->in.v      = draw(r, s->dtype, 4, k, err);
    r->in.q_pos  = posenc_positions_range((double)(d->Lk - d->Lq), 1);
    r->in.k_pos  = posenc_positions_range(0, 1);
    r->in.params = r->params;
    r->out.o     = draw(r, s->dtype, 4, q, err);
    r->out.lse   = draw(r, POSENC_F32, 3, lse, err);
    if (!s->backward)
        return err->status;
    r->grad      = (posenc_attend_grad){.o = r->out.o, .lse = r->out.lse, .dparams = r->dparams};
    r->grad.dout = draw(r, s->dtype, 4, q, err);
    r->grad.dq   = draw(r, s->dtype, 4, q, err);
    r->grad.dk   = draw(r, s->dtype, 4, k, err);
    r->grad.dv   = draw(r, s->dtype, 4, k, err);
    return err->status;
}

posenc_status pe_attention_open(pe_attention_run *r, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    memset(r, 0, sizeof *r);
    r->dims              = (posenc_dims){.B  = 1,
                                         .H  = s->H,
                                         .G  = s->G ? s->G : s->H,
                                         .Lq = s->Lq,
                                         .Lk = s->Lk,
                                         .D  = s->D,
                                         .Dv = s->D,
                                         .L  = (s->Lk + REACH - 1) / REACH};
    r->backward          = s->backward;
    posenc_status status = open_encoding(r, s, err);
    if (!status && posenc_param_count(r->e) > PE_BENCH_PARAMS)
        *err =
            (posenc_error){status = POSENC_UNSUPPORTED, "more parameters than the measurement has room for"};
    if (!status)
        status = open_plan(r, c, threads, err);
    if (!status)
        status = open_params(r, s->backward, err);
    if (!status)
        status = open_tensors(r, s, err);
    if (!status)
        r->work_bytes = posenc_plan_workspace(r->plan, POSENC_FORWARD | (s->backward ? POSENC_BACKWARD : 0));
    return status;
}

posenc_status pe_attention_start(pe_attention_run *r, posenc_error *err)
{
    r->work = pe_plain_buffer(&r->all, r->work_bytes, err);
    if (!r->work)
        return err->status;
    posenc_status status = posenc_attend(r->plan, &r->in, &r->out, r->work, err);
    if (!status && r->backward)
        status = posenc_attend_backward(r->plan, &r->in, &r->grad, r->work, err);
    return status;
}

void pe_attention_go(void *context)
{
    pe_attention_run *r = context;
    if (r->backward)
        posenc_attend_backward(r->plan, &r->in, &r->grad, r->work, &r->err);
    else
        posenc_attend(r->plan, &r->in, &r->out, r->work, &r->err);
}

/* Pairs of one head; queries are the last Lq of Lk places. */
static double pairs_of(const pe_bench_shape *s)
{
    double pairs = 0;
    for (int64_t i = s->Lk - s->Lq; i < s->Lk; i++) {
        const int64_t past   = s->mask & POSENC_MASK_WINDOW && i + 1 > s->window ? s->window : i + 1;
        const int64_t future = s->Lk - 1 - i;
        pairs += (double)past;
        if (!(s->mask & POSENC_MASK_CAUSAL))
            pairs +=
                (double)(s->mask & POSENC_MASK_WINDOW && future > s->window - 1 ? s->window - 1 : future);
    }
    return pairs;
}

pe_timed pe_attention_timed(pe_attention_run *r, const pe_bench_shape *s, int threads)
{
    const double operations = (s->backward ? 10.0 : 4.0) * (double)(s->D * s->H) * pairs_of(s);
    return (pe_timed){pe_attention_go, r, operations, threads};
}

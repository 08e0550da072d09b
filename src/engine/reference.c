/* SPDX-License-Identifier: MIT */
/*
 * reference.c: executor 1, attention in double, direct
 *
 * One (batch item, head) at a time, one query row at a time: scores, softmax, output - as the formula in
 * terms.h reads. Slow and obviously right: the tiled executor is tested against it, and it is what the
 * reference cases in float64 are held against. A row of the forward depends on nothing but its own query, so
 * a chunk of queries gives the same bits as the full pass. The backward is serial: sums have one order.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/reference_head.h"

static double greatest(const double *s, int64_t n)
{
    double m = -INFINITY;
    for (int64_t j = 0; j < n; j++)
        m = fmax(m, s[j]);
    return m;
}

static void forward_row(void *context, int64_t i, int thread)
{
    const pe_reference_head *x = context;
    const pe_attention      *a = x->a;
    const pe_problem        *p = &a->sizes;
    double *s = pe_reference_row(x, thread, PE_ROW_SCORES), *o = pe_reference_row(x, thread, PE_ROW_OUTPUT);
    pe_reference_score_row(x, i, s, thread);
    const double m   = greatest(s, p->Lk);
    double       sum = 0, lse = -INFINITY;
    memset(o, 0, (size_t)p->Dv * sizeof *o);
    for (int64_t j = 0; m > -INFINITY && j < p->Lk; j++) {
        const double e = exp(s[j] - m);
        sum += e;
        if (e == 0) /* masked: its distance may have no row */
            continue;
        const double *c = pe_reference_member(x, PE_GATE, i, j), *r = pe_reference_member(x, PE_R, i, j);
        for (int64_t d = 0; d < p->Dv; d++)
            o[d] += e * (c ? *c : 1) * (x->V[j * p->Dv + d] + (r ? r[d] : 0));
    }
    for (int64_t d = 0; m > -INFINITY && d < p->Dv; d++)
        o[d] /= sum;
    if (m > -INFINITY)
        lse = m + log(sum);
    pe_store_double(pe_row(&a->o, x->b, x->h, i), a->o.dtype, 1, o, p->Dv);
    if (a->lse.data)
        pe_store_double(pe_element(&a->lse, x->b, x->h, i), a->lse.dtype, 1, &lse, 1);
}

static void scores_row(void *context, int64_t i, int thread)
{
    const pe_reference_head *x = context;
    double                  *s = pe_reference_row(x, thread, PE_ROW_SCORES);
    pe_reference_score_row(x, i, s, thread);
    pe_store_double(pe_row(x->S, x->b, x->h, i), x->S->dtype, x->S->stride[3], s, x->a->sizes.Lk);
}

static void each_head(pe_reference_head *x, pe_parallel_task *row)
{
    const pe_problem *p = &x->a->sizes;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++) {
            pe_reference_load(x, b, h);
            pe_parallel_for(p->Lq, x->a->threads, row, x);
        }
}

void pe_reference_forward(const pe_attention *a, pe_arena *arena)
{
    pe_reference_head x = pe_reference_lay_out(a, arena, 0);
    if (arena->memory)
        each_head(&x, forward_row);
}

void pe_reference_scores(const pe_attention *a, const posenc_tensor *S, pe_arena *arena)
{
    pe_reference_head x = pe_reference_lay_out(a, arena, 0);
    x.S                 = S;
    if (arena->memory)
        each_head(&x, scores_row);
}

void pe_attend_bias(const pe_attention *a, const posenc_tensor *bias, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    pe_reference_head x = pe_reference_lay_out(a, arena, 0);
    if (!arena->memory)
        return;
    memset(x.Q, 0, (size_t)(p->Lq * pe_query_width(a)) * sizeof(double));
    memset(x.K, 0, (size_t)(p->Lk * p->D) * sizeof(double));
    memset(x.raw, 0, (size_t)pe_raw_size(a) * sizeof(double));
    pe_reference_positions(&x, 0);
    for (int64_t h = 0; h < p->H; h++) {
        x.h = h;
        if (a->terms->prepare.fill) {
            pe_reference_prepare(&x, PE_QUERIES, h);
            pe_reference_prepare(&x, PE_KEYS, h / (p->H / p->G));
        }
        pe_reference_tables(&x, h);
        for (int64_t i = 0; i < p->Lq; i++) {
            pe_reference_score_row(&x, i, pe_reference_row(&x, 0, PE_ROW_SCORES), 0);
            pe_store_double(pe_row(bias, h, i, 0), bias->dtype, bias->stride[2],
                            pe_reference_row(&x, 0, PE_ROW_SCORES), p->Lk);
        }
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * metric.c: the limits themselves, and kernels against them: all goals but G12, G15 and the memory of G17
 *
 * Limits: a limit that is too low flatters every kernel. So the multiply-add loops must come within 3 %
 * of 2 x width x clock x units, where the clock is that of a loop of dependent additions, run alternately
 * with it, and units is the whole number nearest to what was seen (a processor has one, two or four).
 * Bandwidths have no such rule.
 *
 * Peak (G8 to G10, G18, FLOATER): the share of the multiply-add loop of the instruction set in use.
 * Useful arithmetic of attention is what the mask allows, however many times a kernel computes something
 * again. posenc_plan_operations counts what FLOATER's formulas cost, one for each product and sum, where
 * the peak does two at once; a row is a step from the row before it, so positions are no help: what can
 * be done side by side are the channels of a state and the states (one for each block of a model, or for
 * q, k and v). Backward makes each step again and multiplies by the transpose and the outer product where
 * forward multiplies once: three times the arithmetic.
 *
 * Pass (G1 to G4, G7): a rotation in place reads and writes every number once, so its limit is a pass in
 * place over the very same buffer; one out of place is held against a copy between the same two. A table is
 * written once and nothing is read, so its limit is a store of the same bytes.
 *
 * G21: one token reads its cache; what one thread reads in the same time is the limit of one thread and of
 * two, so that rows of different threads compare. G22: a call of one key has next to no work; what it costs
 * beyond a call without an encoding is what its plan and its parameters cost.
 *
 * G3: while a model decodes, its engine makes the cosines and sines of a step once (posenc_rotary_table)
 * and every layer rotates by them; next to these rows stand the same calls from positions, which make their
 * table each time. The overhead of a call is what a call costs where there is no work: seconds of one
 * token and of three, extrapolated to none.
 */
#include "bench/limits.h"
#include "bench/metric.h"
#include "bench/workload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MOST = 101 };

/* ---------------------------------------------------------------- the limits themselves ------ */

posenc_status pe_metric_clock(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                              posenc_error *err)
{
    pe_peak        clock;
    const pe_timed loop = pe_limits_clock(&clock);
    double         hertz[MOST];
    int            n = effort->repeats < MOST ? effort->repeats : MOST;
    for (int i = 0; i < n; i++)
        hertz[i] = 1e-9 * loop.work / pe_timing_once(&loop);
    *figure = pe_timing_quartiles(hertz, n);
    return POSENC_OK;
}

/* Operations of one instruction: a dot product takes two pairs in each lane. */
static double width_of(const pe_bench_case *c, const pe_peak *peak)
{
    return (c->shape.dtype == POSENC_DTYPE_BF16 ? 4.0 : 2.0) * peak->loops->lanes;
}

posenc_status pe_metric_units(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                              posenc_error *err)
{
    pe_peak peak, clock;
    if (c->shape.dtype == POSENC_DTYPE_BF16 && !pe_limits_has_dot_products()) {
        *err = (posenc_error){POSENC_ERROR_UNSUPPORTED, "this processor has no bfloat16 dot products"};
        return err->status;
    }
    const pe_timed loop = c->shape.dtype == POSENC_DTYPE_BF16 ? pe_limits_dot_product(&peak, 1)
                                                              : pe_limits_multiply_add(&peak, c->isa, 1);
    const pe_timed beat = pe_limits_clock(&clock);
    pe_timing_compare(figure, &loop, &beat, PE_SPEED_RATIO, effort);
    const double units = fmax(1, round(figure->value / width_of(c, &peak)));
    const double full  = units * width_of(c, &peak); /* operations of a cycle */
    figure->value /= full;
    figure->q1 /= full;
    figure->q3 /= full;
    figure->limit *= 1e-9 * full;
    return POSENC_OK;
}

posenc_status pe_metric_bandwidth(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_buffers    all   = {0};
    const int64_t bytes = c->shape.Lk, size = bytes + 4096;
    void         *x = pe_workload_random(&all, size / 4, POSENC_DTYPE_F32, err);
    void         *y = x ? pe_workload_random(&all, size / 4, POSENC_DTYPE_F32, err) : NULL;
    double        rates[MOST];
    int           n = 0;
    if (y) {
        pe_limits_pass pass;
        const pe_timed t =
            pe_limits_best_pass(&pass, (pe_pass_kind)c->shape.kind, x, y, size, effort->threads);
        const double start = pe_timing_now();
        do
            rates[n++] = 1e-9 * t.work / pe_timing_once(&t);
        while (n < effort->repeats && n < MOST && (n < 3 || pe_timing_now() - start < effort->seconds));
        *figure = pe_timing_quartiles(rates, n);
    }
    pe_workload_free(&all);
    return y ? POSENC_OK : err->status;
}

/* ---------------------------------------------------------------- against a limit ------------ */

static double operations_of(const pe_workload *w)
{
    enum { BACKWARD = 3 };
    return w->shape->verb == PE_ATTEND
               ? pe_workload_operations(w->shape)
               : (w->shape->backward ? BACKWARD : 1) * posenc_plan_operations(w->plan);
}

/* What a limit runs on. Keys and values are read in the order of attention. */
typedef struct limit_state {
    pe_peak        peak;
    pe_limits_pass pass, pass_values;
    pe_timed       keys, values;
} limit_state;

static void read_cache(void *context)
{
    limit_state *h = context;
    h->keys.run(h->keys.context);
    h->values.run(h->values.context);
}

/* The limit of what is run, and what a run comes to in its unit: one token reads the cache, attention and
   rows are arithmetic, and the others pass over their memory. */
static pe_timed limit_of(limit_state *h, const pe_workload *w, const pe_bench_case *c, int threads,
                         double *work)
{
    const pe_bench_shape *s    = w->shape;
    const pe_pass_kind    kind = (pe_pass_kind)s->kind;
    if (s->verb == PE_ATTEND && s->Lq == 1) {
        const int64_t bytes = s->G * w->keys * s->D * (int64_t)posenc_dtype_size(s->dtype);
        h->keys             = pe_limits_best_pass(&h->pass, PE_PASS_READ, w->in.k.data, NULL, bytes, threads);
        h->values = pe_limits_best_pass(&h->pass_values, PE_PASS_READ, w->in.v.data, NULL, bytes, threads);
        *work     = 2.0 * (double)bytes;
        return (pe_timed){read_cache, h, h->keys.work + h->values.work, threads};
    }
    if (s->verb == PE_ATTEND || s->verb == PE_MAKE_ROWS) {
        *work = operations_of(w);
        return pe_limits_multiply_add(&h->peak, c->isa, threads);
    }
    *work = (kind == PE_PASS_STORE ? 1.0 : 2.0) * (double)w->bytes;
    return pe_limits_best_pass(&h->pass, kind, w->x, w->to, w->bytes + 2048, threads);
}

posenc_status pe_metric_share(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                              posenc_error *err)
{
    const int   threads = pe_crew_threads(c->shape.crew, effort->threads);
    pe_workload w;
    limit_state h;
    pe_workload_ready(&w, c, threads, err);
    if (!err->status) {
        pe_timed       kernel = {pe_workload_run, &w, 0, threads};
        const pe_timed limit =
            limit_of(&h, &w, c, c->shape.crew ? 1 : threads, &kernel.work); /* G21: of one */
        pe_timing_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    pe_workload_close(&w);
    return err->status;
}

/* ---------------------------------------------------------------- against another run -------- */

/* Two workloads alternately: an encoding and none, or without one bfloat16 and float32, or in float32 many
   threads and one. Work is 1, so speeds are runs per second; the limit is in the row's unit of time. */
posenc_status pe_metric_over(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                             posenc_error *err)
{
    const int      over_plain = strcmp(c->shape.spec, "nope") != 0, threads = effort->threads;
    const pe_ratio ratio  = over_plain ? PE_TIME_RATIO : PE_SPEED_RATIO;
    pe_timed       kernel = {pe_workload_run, NULL, 1, threads}, limit = kernel;
    pe_bench_case  other = *c;
    pe_workload    a, b;
    if (over_plain)
        other.shape.spec = "nope";
    else if (c->shape.dtype != POSENC_DTYPE_F32)
        other.shape.dtype = POSENC_DTYPE_F32;
    else {
        kernel.threads = c->processors;
        limit.threads  = 1;
    }
    kernel.context = &a;
    limit.context  = &b;
    pe_workload_open(&a, c, kernel.threads, err);
    pe_workload_open(&b, &other, limit.threads, err);
    pe_workload_start(&a, err);
    pe_workload_start(&b, err);
    if (!err->status) {
        pe_timing_compare(figure, &kernel, &limit, ratio, effort);
        figure->limit = (strcmp(c->unit, "us") != 0 ? 1e3 : 1e6) *
                        (ratio == PE_SPEED_RATIO ? 1 / figure->limit : figure->limit);
    }
    pe_workload_close(&a);
    pe_workload_close(&b);
    return err->status;
}

/* Seconds of one long run. */
posenc_status pe_metric_seconds(const pe_bench_case *c, const pe_bench_effort *effort,
                                pe_bench_figure *figure, posenc_error *err)
{
    pe_workload w;
    pe_workload_open(&w, c, effort->threads, err);
    const double start = pe_timing_worked(effort->threads);
    pe_workload_start(&w, err);
    if (!err->status)
        figure->value = figure->q1 = figure->q3 = pe_timing_worked(effort->threads) - start;
    pe_workload_close(&w);
    return err->status;
}

/* Nanoseconds of a call at 1 and at 3 tokens give a line; what it has at 0 is the overhead. */
posenc_status pe_metric_overhead(const pe_bench_case *c, const pe_bench_effort *effort,
                                 pe_bench_figure *figure, posenc_error *err)
{
    double        one[MOST];
    const int     n   = effort->repeats < MOST ? effort->repeats : MOST;
    pe_bench_case few = *c, many = *c;
    pe_workload   a, b;
    few.shape.Lq = few.shape.Lk = 1;
    many.shape.Lq = many.shape.Lk = 3;
    pe_workload_ready(&a, &few, effort->threads, err);
    pe_workload_ready(&b, &many, effort->threads, err);
    for (int i = 0; !err->status && i < n; i++) {
        const pe_timed short_call = {pe_workload_run, &a, 1, effort->threads},
                       long_call  = {pe_workload_run, &b, 1, effort->threads};
        one[i]                    = 1e9 * (3 * pe_timing_once(&short_call) - pe_timing_once(&long_call)) / 2;
    }
    if (!err->status)
        *figure = pe_timing_quartiles(one, n);
    pe_workload_close(&a);
    pe_workload_close(&b);
    return err->status;
}

/* ---------------------------------------------------------------- against a finished table --- */

/* The kernel that posenc_rotate runs, from a table of all positions. */
typedef struct table_run {
    pe_rotate_fn  *rotate;
    pe_rotate_args rotation;
} table_run;

static void rotate_by_table(void *context)
{
    const table_run *t = context;
    t->rotate(&t->rotation);
}

/* Any unit vectors do: what is measured does not look at the angles. */
static float *make_table(pe_workload *w, const pe_bench_shape *s, posenc_error *err)
{
    float *table = pe_workload_random(&w->all, s->Lq * s->D, POSENC_DTYPE_F32, err);
    for (int64_t i = 0; table && i < s->Lq; i++)
        for (int64_t m = 0; m < s->D / 2; m++) {
            float *const c = table + i * s->D + m, *const n = c + s->D / 2;
            const float length = hypotf(*c, *n) + 1e-20f;
            *c /= length;
            *n /= length;
        }
    return table;
}

/* What it costs to make cosines and sines in the run: posenc_rotate, and the same kernel fed from a table. */
posenc_status pe_metric_in_flight(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    pe_workload           w;
    pe_workload_ready(&w, c, 1, err);
    const pe_kernels *kernels = pe_kernels_named(c->isa ? c->isa : posenc_isa());
    const float      *table   = err->status ? NULL : make_table(&w, s, err);
    const int64_t     far     = pe_kernels_prefetch_distance(sizeof *table, w.bytes);
    if (table) {
        table_run      t      = {.rotate   = kernels->rotate[PE_STORED_F32][strstr(s->spec, "half") != NULL],
                                 .rotation = {.to           = w.x,
                                              .from         = w.x,
                                              .to_token     = s->H * s->D,
                                              .to_head      = s->D,
                                              .from_token   = s->H * s->D,
                                              .from_head    = s->D,
                                              .table        = table,
                                              .table_stride = s->D,
                                              .tokens       = s->Lq,
                                              .heads        = s->H,
                                              .M            = s->D / 2,
                                              .sign         = 1,
                                              .far          = far,
                                              .far_table    = 1}};
        const pe_timed flight = {pe_workload_run, &w, 2.0 * (double)w.bytes, 1},
                       tables = {rotate_by_table, &t, 2.0 * (double)w.bytes, 1};
        pe_timing_compare(figure, &flight, &tables, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    pe_workload_close(&w);
    return err->status;
}

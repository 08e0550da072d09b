/* SPDX-License-Identifier: MIT */
/*
 * measure.c: the limits themselves, and kernels against them: all goals but G12, G15 and the memory of G17
 *
 * Limits: a limit that is too low flatters every kernel. So the multiply-add loops must come within 3 %
 * of 2 x width x clock x units, where the clock is that of a loop of dependent additions, run in turns
 * with it, and units is the whole number nearest to what was seen (a processor has one, two or four).
 * Bandwidths have no such rule; they are printed beside those that were seen on a 2-core guest of an EPYC
 * of the Zen 5 family, with the way and the sizes of docs/performance.md.
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
 * place over the very same buffer; one out of place is held against a copy between the same two. Tensors
 * are tokens x heads x 128, as engines hold them. A table is written once and nothing is read, so its
 * limit is a store of the same bytes: streaming beyond the last cache, plain in it.
 *
 * G3: while a model decodes, its engine makes the cosines and sines of a step once (posenc_rotary_table)
 * and every layer turns by them; beside these rows stand the same calls from positions, which make their
 * table each time. The overhead of a call is what a call costs where there is no work: seconds of one
 * token and of three, drawn on to none. G6: what it costs to make cosines and sines in the run:
 * posenc_rotate beside the same kernel fed from a finished table.
 *
 * Over: seconds over those of another run: the same shape without positions (G11, G18's biases), in
 * float32 instead of bfloat16 (G19, the other way round), on one thread instead of two (G14). Read (G20):
 * bytes of keys and values per second over those of a loop that only reads them.
 */
#include "bench/limits.h"
#include "bench/problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MOST = 101 };

/* ---------------------------------------------------------------- the limits themselves ------ */

posenc_status pe_measure_clock(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                               posenc_error *err)
{
    pe_peak        clock;
    const pe_timed loop = pe_clock_loop(&clock);
    double         hertz[MOST];
    int            n = effort->repeats < MOST ? effort->repeats : MOST;
    for (int i = 0; i < n; i++)
        hertz[i] = 1e-9 * loop.work / pe_time_once(&loop);
    *figure = pe_quartiles(hertz, n);
    return POSENC_OK;
}

/* Operations of one instruction: a dot product takes two pairs in each lane. */
static double width_of(const pe_bench_case *c, const pe_peak *peak)
{
    return (c->shape.dtype == POSENC_DTYPE_BF16 ? 4.0 : 2.0) * peak->loops->lanes;
}

posenc_status pe_measure_units(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                               posenc_error *err)
{
    pe_peak peak, clock;
    if (c->shape.dtype == POSENC_DTYPE_BF16 && !pe_has_dot_products()) {
        *err = (posenc_error){POSENC_ERROR_UNSUPPORTED, "this processor has no bfloat16 dot products"};
        return err->status;
    }
    const pe_timed loop = c->shape.dtype == POSENC_DTYPE_BF16 ? pe_dot_product_limit(&peak, 1)
                                                              : pe_multiply_add_limit(&peak, c->isa, 1);
    const pe_timed beat = pe_clock_loop(&clock);
    pe_compare(figure, &loop, &beat, PE_SPEED_RATIO, effort);
    const double units = fmax(1, round(figure->value / width_of(c, &peak)));
    const double full  = units * width_of(c, &peak); /* operations of a cycle */
    figure->value /= full;
    figure->q1 /= full;
    figure->q3 /= full;
    figure->limit *= 1e-9 * full;
    return POSENC_OK;
}

posenc_status pe_measure_bandwidth(const pe_bench_case *c, const pe_bench_effort *effort,
                                   pe_bench_figure *figure, posenc_error *err)
{
    pe_buffers    all   = {0};
    const int64_t bytes = c->shape.Lk, room = bytes + 4096;
    void         *x = pe_random_buffer(&all, room / 4, POSENC_DTYPE_F32, err), *y = NULL;
    double        rates[MOST];
    int           n = 0;
    if (x)
        y = pe_random_buffer(&all, room / 4, POSENC_DTYPE_F32, err);
    if (y) {
        pe_pass        pass;
        const pe_timed t     = pe_best_pass(&pass, (pe_pass_kind)c->shape.kind, x, y, room, effort->threads);
        const double   start = pe_now();
        do
            rates[n++] = 1e-9 * t.work / pe_time_once(&t);
        while (n < effort->repeats && n < MOST && (n < 3 || pe_now() - start < effort->seconds));
        *figure = pe_quartiles(rates, n);
    }
    pe_free_buffers(&all);
    return y ? POSENC_OK : err->status;
}

/* ---------------------------------------------------------------- against a limit ------------ */

static double operations_of(const pe_problem *p)
{
    enum { BACKWARD = 3 };
    return p->shape->verb == PE_ATTEND
               ? pe_attention_operations(p->shape)
               : (p->shape->backward ? BACKWARD : 1) * posenc_plan_operations(p->plan);
}

/* What a limit is made of. Keys and values are read in the order of attention. */
typedef struct held {
    pe_peak  peak;
    pe_pass  pass, pass_values;
    pe_timed keys, values;
} held;

static void read_cache(void *context)
{
    held *h = context;
    h->keys.run(h->keys.context);
    h->values.run(h->values.context);
}

/* The limit of what is run, and what a run comes to in its unit: one token reads the cache, attention and
   rows are arithmetic, and the others pass over their memory. */
static pe_timed limit_of(held *h, const pe_problem *p, const pe_bench_case *c, int threads, double *work)
{
    const pe_bench_shape *s    = p->shape;
    const pe_pass_kind    kind = (pe_pass_kind)s->kind;
    if (s->verb == PE_ATTEND && s->Lq == 1) {
        const int64_t bytes = s->G * s->Lk * s->D * (int64_t)posenc_dtype_size(s->dtype);
        h->keys             = pe_best_pass(&h->pass, PE_PASS_READ, p->in.k.data, NULL, bytes, threads);
        h->values           = pe_best_pass(&h->pass_values, PE_PASS_READ, p->in.v.data, NULL, bytes, threads);
        *work               = 2.0 * (double)bytes;
        return (pe_timed){read_cache, h, h->keys.work + h->values.work, threads};
    }
    if (s->verb == PE_ATTEND || s->verb == PE_ROWS) {
        *work = operations_of(p);
        return pe_multiply_add_limit(&h->peak, c->isa, threads);
    }
    *work = (kind == PE_PASS_STORE ? 1.0 : 2.0) * (double)p->bytes;
    return pe_best_pass(&h->pass, kind, p->x, p->to, p->bytes + 2048, threads);
}

posenc_status pe_measure_share(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                               posenc_error *err)
{
    pe_problem p;
    held       h;
    pe_problem_ready(&p, c, effort->threads, err);
    if (!err->status) {
        pe_timed       kernel = {pe_problem_go, &p, 0, effort->threads};
        const pe_timed limit  = limit_of(&h, &p, c, effort->threads, &kernel.work);
        pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    pe_problem_close(&p);
    return err->status;
}

/* ---------------------------------------------------------------- against another run -------- */

/* Two problems in turns: an encoding and none, or without one bfloat16 and float32, or in float32 many
   threads and one. Work is 1, so speeds are runs per second; the limit is in milliseconds. */
posenc_status pe_measure_over(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                              posenc_error *err)
{
    const int      over_plain = strcmp(c->shape.spec, "nope") != 0, threads = effort->threads;
    const pe_ratio ratio  = over_plain ? PE_TIME_RATIO : PE_SPEED_RATIO;
    pe_timed       kernel = {pe_problem_go, NULL, 1, threads}, limit = kernel;
    pe_bench_case  other = *c;
    pe_problem     a, b;
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
    pe_problem_open(&a, c, kernel.threads, err);
    pe_problem_open(&b, &other, limit.threads, err);
    pe_problem_start(&a, err);
    pe_problem_start(&b, err);
    if (!err->status) {
        pe_compare(figure, &kernel, &limit, ratio, effort);
        figure->limit = 1e3 * (ratio == PE_SPEED_RATIO ? 1 / figure->limit : figure->limit);
    }
    pe_problem_close(&a);
    pe_problem_close(&b);
    return err->status;
}

/* Seconds of one long run. */
posenc_status pe_measure_seconds(const pe_bench_case *c, const pe_bench_effort *effort,
                                 pe_bench_figure *figure, posenc_error *err)
{
    pe_problem p;
    pe_problem_open(&p, c, effort->threads, err);
    const double start = pe_worked(effort->threads);
    pe_problem_start(&p, err);
    if (!err->status)
        figure->value = figure->q1 = figure->q3 = pe_worked(effort->threads) - start;
    pe_problem_close(&p);
    return err->status;
}

/* Nanoseconds of a call at 1 and at 3 tokens give a line; what it has at 0 is the overhead. */
posenc_status pe_measure_overhead(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    double        one[MOST];
    const int     n   = effort->repeats < MOST ? effort->repeats : MOST;
    pe_bench_case few = *c, many = *c;
    pe_problem    a, b;
    few.shape.Lq = few.shape.Lk = 1;
    many.shape.Lq = many.shape.Lk = 3;
    pe_problem_ready(&a, &few, effort->threads, err);
    pe_problem_ready(&b, &many, effort->threads, err);
    for (int i = 0; !err->status && i < n; i++) {
        const pe_timed short_call = {pe_problem_go, &a, 1, effort->threads},
                       long_call  = {pe_problem_go, &b, 1, effort->threads};
        one[i]                    = 1e9 * (3 * pe_time_once(&short_call) - pe_time_once(&long_call)) / 2;
    }
    if (!err->status)
        *figure = pe_quartiles(one, n);
    pe_problem_close(&a);
    pe_problem_close(&b);
    return err->status;
}

/* ---------------------------------------------------------------- against a finished table --- */

/* The kernel that posenc_rotate runs, from a table of all positions. */
typedef struct tabled {
    const float  *table;
    float        *x;
    pe_rotate_fn *turn;
    int64_t       L, H, D, far;
} tabled;

static void run_tabled(void *context)
{
    const tabled *t = context;
    t->turn(&(pe_rotation){.to           = t->x,
                           .from         = t->x,
                           .to_token     = t->H * t->D,
                           .to_head      = t->D,
                           .from_token   = t->H * t->D,
                           .from_head    = t->D,
                           .table        = t->table,
                           .table_stride = t->D,
                           .tokens       = t->L,
                           .heads        = t->H,
                           .M            = t->D / 2,
                           .sign         = 1,
                           .far          = t->far,
                           .far_table    = 1});
}

/* Any unit vectors do: what is measured does not look at the angles. */
static float *make_table(pe_problem *r, const pe_bench_shape *s, posenc_error *err)
{
    float *table = pe_random_buffer(&r->all, s->Lq * s->D, POSENC_DTYPE_F32, err);
    for (int64_t i = 0; table && i < s->Lq; i++)
        for (int64_t m = 0; m < s->D / 2; m++) {
            float *const c = table + i * s->D + m, *const n = c + s->D / 2;
            const float length = hypotf(*c, *n) + 1e-20f;
            *c /= length;
            *n /= length;
        }
    return table;
}

posenc_status pe_measure_in_flight(const pe_bench_case *c, const pe_bench_effort *effort,
                                   pe_bench_figure *figure, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    pe_problem            r;
    pe_problem_ready(&r, c, 1, err);
    const pe_kernels *kernels = pe_kernels_named(c->isa ? c->isa : posenc_isa());
    const float      *table   = err->status ? NULL : make_table(&r, s, err);
    if (table) {
        tabled         t      = {.table = table,
                                 .x     = r.x,
                                 .turn  = kernels->rotate[PE_STORED_F32][strstr(s->spec, "half") != NULL],
                                 .L     = s->Lq,
                                 .H     = s->H,
                                 .D     = s->D,
                                 .far   = pe_rotation_ahead(sizeof *table, r.bytes)};
        const pe_timed flight = {pe_problem_go, &r, 2.0 * (double)r.bytes, 1},
                       tables = {run_tabled, &t, 2.0 * (double)r.bytes, 1};
        pe_compare(figure, &flight, &tables, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    pe_problem_close(&r);
    return err->status;
}

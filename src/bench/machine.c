/* SPDX-License-Identifier: MIT */
/*
 * machine.c: the limits themselves, held against the clock and beside those of another machine
 *
 * A limit that is too low flatters every kernel. So the multiply-add loops must come within 3 % of 2 x width
 * x clock x units, where the clock is that of a loop of dependent additions, run in turns with it, and units
 * is the whole number nearest to what was seen (a processor has one, two or four). Bandwidths have no such
 * rule; they are printed beside those that were seen on a 2-core guest of an EPYC of the Zen 5 family, with
 * the way and the sizes of docs/performance.md.
 */
#include "bench/cases.h"
#include "bench/buffers.h"
#include "bench/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIGA 1e-9

/* ---------------------------------------------------------------- arithmetic ---------------- */

enum { MULTIPLY_ADD, DOT_PRODUCT };

static posenc_status measure_clock(const pe_bench_case *c, const pe_bench_effort *effort,
                                   pe_bench_figure *figure, posenc_error *err)
{
    pe_peak        clock;
    const pe_timed loop = pe_clock_loop(&clock);
    double         hertz[101];
    int            n = effort->repeats < 101 ? effort->repeats : 101;
    (void)c, (void)err;
    for (int i = 0; i < n; i++)
        hertz[i] = GIGA * loop.work / pe_time_once(&loop);
    *figure = pe_quartiles(hertz, n);
    return POSENC_OK;
}

/* Operations of one instruction: a dot product takes two pairs in each lane. */
static double width_of(const pe_bench_case *c, const pe_peak *peak)
{
    return (c->shape.kind == DOT_PRODUCT ? 4.0 : 2.0) * peak->loops->lanes;
}

static posenc_status measure_peak(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_peak peak, clock;
    if (c->shape.kind == DOT_PRODUCT && !pe_has_dot_products()) {
        *err = (posenc_error){POSENC_UNSUPPORTED, "this processor has no bfloat16 dot products"};
        return err->status;
    }
    const pe_timed loop = c->shape.kind == DOT_PRODUCT ? pe_dot_product_limit(&peak, 1)
                                                       : pe_multiply_add_limit(&peak, c->isa, 1);
    const pe_timed beat = pe_clock_loop(&clock);
    pe_compare(figure, &loop, &beat, PE_SPEED_RATIO, effort);
    const double units = fmax(1, round(figure->value / width_of(c, &peak)));
    const double full  = units * width_of(c, &peak); /* operations of a cycle */
    figure->value /= full;
    figure->q1 /= full;
    figure->q3 /= full;
    figure->limit *= GIGA * full;
    return POSENC_OK;
}

static void add_arithmetic(pe_case_list *to)
{
    static const struct {
        const char *isa;
        double      seen;
    } rows[] = {{"plain", 0}, {"avx2", 136}, {"avx512", 272}, {"neon", 0}};
    pe_add_case(to, "limits", (pe_bench_case){.unit = "GHz", .sense = PE_STATED, .measure = measure_clock},
                "clock, by dependent additions (4.04 to 4.23 seen on a Zen 5 guest)");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char seen[48] = "";
        if (rows[i].seen > 0)
            snprintf(seen, sizeof seen, " (%.0f seen on a Zen 5 guest)", rows[i].seen);
        pe_add_case(to, "limits",
                    (pe_bench_case){.unit    = "GFLOP/s",
                                    .wanted  = 0.97,
                                    .sense   = i ? PE_NEAR_ONE : PE_STATED, /* plain has none that is fused */
                                    .isa     = rows[i].isa,
                                    .measure = measure_peak,
                                    .shape   = {.kind = MULTIPLY_ADD}},
                    "multiply-adds f32 %s, of 2 x width x clock x units%s", rows[i].isa, seen);
    }
    pe_add_case(to, "limits",
                (pe_bench_case){.unit    = "GFLOP/s",
                                .wanted  = 0.97,
                                .sense   = PE_NEAR_ONE,
                                .measure = measure_peak,
                                .shape   = {.kind = DOT_PRODUCT}},
                "dot products bf16, of 4 x width x clock x units (545 seen on a Zen 5 guest)");
}

/* ---------------------------------------------------------------- bandwidth ----------------- */

static posenc_status measure_pass(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_buffers    all   = {0};
    const int64_t bytes = c->shape.Lk, room = bytes + 4096;
    void         *x = pe_random_buffer(&all, room / 4, POSENC_F32, err), *y = NULL;
    double        rates[101];
    int           n = 0;
    if (x)
        y = pe_random_buffer(&all, room / 4, POSENC_F32, err);
    if (y) {
        pe_pass        pass;
        const pe_timed t     = pe_best_pass(&pass, (pe_pass_kind)c->shape.kind, x, y, room, effort->threads);
        const double   start = pe_now();
        do
            rates[n++] = GIGA * t.work / pe_time_once(&t);
        while (n < effort->repeats && n < 101 && (n < 3 || pe_now() - start < effort->seconds));
        *figure = pe_quartiles(rates, n);
    }
    pe_free_buffers(&all);
    return y ? POSENC_OK : err->status;
}

static void add_bandwidths(pe_case_list *to)
{
    static const struct {
        const char *name;
        int64_t     bytes;
        double      seen[PE_PASS_KINDS]; /* ORDER pe_pass_kind */
    } sizes[] = {{"16 KiB", 16 << 10, {545, 543, 331, 274, 507}},
                 {"256 KiB", 256 << 10, {390, 259, 267, 202, 201}},
                 {"4 MiB", 4 << 20, {223, 116, 112, 104, 124}},
                 {"256 MiB", 256 << 20, {58.5, 52.7, 39.5, 41.6, 40.3}}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kind = 0; kind < PE_PASS_KINDS; kind++)
            pe_add_case(to, "limits",
                        (pe_bench_case){.unit    = "GB/s",
                                        .sense   = PE_STATED,
                                        .measure = measure_pass,
                                        .shape   = {.kind = kind, .Lk = sizes[s].bytes}},
                        "%s, %s (%g seen on a Zen 5 guest)", pe_pass_kind_name((pe_pass_kind)kind),
                        sizes[s].name, sizes[s].seen[kind]);
}

void pe_machine_cases(pe_case_list *to)
{
    add_arithmetic(to);
    add_bandwidths(to);
}

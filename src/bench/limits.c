/* SPDX-License-Identifier: MIT */
/*
 * limits.c: which loops run here, on several threads, and which pass over a buffer is the fastest
 *
 * The winner depends on the size: below the last cache plain stores win, far above it those that go around
 * the caches, and prefetching wins in place where the hardware's own falls behind. Nobody has to know: all
 * are tried, from three alignments (a page's start, a line after it, and somewhere in a page). The C
 * library's memcpy has its own ways.
 */
#include "bench/limits.h"

#include <posenc/registry.h>
#include <string.h>

#include "base/parallel.h"
#include "base/shared/compiler.h"

/* ---------------------------------------------------------------- loops --------------------- */

extern const pe_limits_loops pe_limits_loops_plain;
#ifdef POSENC_X86
extern const pe_limits_loops pe_limits_loops_avx2, pe_limits_loops_avx512;
#endif
#ifdef POSENC_NEON
extern const pe_limits_loops pe_limits_loops_neon;
#endif

static const pe_limits_loops *const tables[] = {
    &pe_limits_loops_plain,
#ifdef POSENC_X86
    &pe_limits_loops_avx2,
    &pe_limits_loops_avx512,
#endif
#ifdef POSENC_NEON
    &pe_limits_loops_neon,
#endif
};

enum { TABLES = sizeof tables / sizeof *tables, STEP = 128 };

int pe_limits_runs_here(const char *isa)
{
    for (int i = 0; posenc_isa_at(i); i++)
        if (!strcmp(posenc_isa_at(i), isa))
            return 1;
    return 0;
}

const pe_limits_loops *pe_limits_of(const char *isa)
{
    const pe_limits_loops *best = tables[0];
    for (int i = 0; i < TABLES; i++) {
        if (isa && !strcmp(tables[i]->isa, isa))
            return tables[i];
        best = pe_limits_runs_here(tables[i]->isa) ? tables[i] : best;
    }
    return best;
}

static volatile float sink; /* what loops return, so that they are not left out */

/* ---------------------------------------------------------------- arithmetic ---------------- */

enum { CALIBRATION = 100000 };

#define PEAK_SECONDS 5e-3

static void one_peak(void *context, int64_t index, int thread)
{
    const pe_peak *p = context;
#ifdef POSENC_X86
    sink = p->is_bf16 ? pe_limits_dot_product_loop(p->n) : p->loops->multiply_add(p->n);
#else
    sink = p->loops->multiply_add(p->n);
#endif
}

static void run_peak(void *context)
{
    pe_peak *p = context;
    pe_parallel_for(p->threads, &(pe_team){.threads = p->threads}, one_peak, p);
}

/* A loop that lasts long enough for the clock, and not so long that it is no neighbour of the kernel. */
static pe_timed calibrated(pe_peak *p, void (*loop)(void *), double operations)
{
    pe_timed t = {loop, p, 0, p->threads};
    p->n       = CALIBRATION;
    p->n       = (int64_t)(CALIBRATION * PEAK_SECONDS / pe_timing_once(&t)) + 1;
    t.work     = operations * (double)p->n * p->threads;
    return t;
}

pe_timed pe_limits_multiply_add(pe_peak *peak, const char *isa, int threads)
{
    *peak = (pe_peak){.loops = pe_limits_of(isa ? isa : posenc_isa()), .threads = threads};
    return calibrated(peak, run_peak, 2.0 * peak->loops->lanes * peak->loops->chains);
}

int pe_limits_has_dot_products(void)
{
#ifdef POSENC_X86
    return pe_limits_runs_here("avx512bf16");
#else
    return 0;
#endif
}

pe_timed pe_limits_dot_product(pe_peak *peak, int threads)
{
    *peak = (pe_peak){.loops = pe_limits_of(NULL), .threads = threads, .is_bf16 = 1};
#ifdef POSENC_X86
    return calibrated(peak, run_peak, pe_limits_dot_product_operations);
#else
    return calibrated(peak, run_peak, 1);
#endif
}

/* Each sum needs the one before it; PE_OPAQUE keeps the compiler from adding several at once. */
static void run_clock(void *context)
{
    const pe_peak *p   = context;
    uint64_t       sum = 1, step = (uint64_t)p->n;
    for (int64_t i = 0; i < p->n; i++)
#pragma GCC unroll 64
        for (int k = 0; k < 64; k++) {
            sum += step;
            PE_OPAQUE(sum, step);
        }
    sink = (float)sum;
}

pe_timed pe_limits_clock(pe_peak *peak)
{
    *peak = (pe_peak){.loops = pe_limits_of(NULL), .threads = 1};
    return calibrated(peak, run_clock, 64);
}

/* ---------------------------------------------------------------- bandwidth ----------------- */

const char *pe_limits_pass_name(pe_pass_kind kind)
{
    static const char *const names[PE_PASS_KINDS] = {"in-place read-modify-write", "copy", "memcpy", "store",
                                                     "read"};
    return names[kind];
}

/* Slice `index` of `threads`, in whole steps of the loops. */
static void one_slice(void *context, int64_t index, int thread)
{
    const pe_limits_pass *p    = context;
    const int64_t         from = p->n / STEP * index / p->threads * STEP;
    const int64_t         n    = p->n / STEP * (index + 1) / p->threads * STEP - from;
    float *const x = p->x ? p->x + p->offset + from : NULL, *const y = p->y ? p->y + p->offset + from : NULL;
    if (p->kind == PE_PASS_MEMCPY)
        memcpy(y, x, (size_t)n * sizeof *x);
    else
        sink = p->loops->pass(p->kind, p->kind == PE_PASS_IN_PLACE ? x : y, x, n, p->way);
}

static void run_pass(void *context)
{
    pe_limits_pass *p = context;
    pe_parallel_for(p->threads, &(pe_team){.threads = p->threads}, one_slice, p);
}

static double bytes_of(const pe_limits_pass *p)
{
    const double n = (double)p->n * sizeof(float);
    return p->kind == PE_PASS_STORE || p->kind == PE_PASS_READ ? n : 2 * n;
}

pe_timed pe_limits_best_pass(pe_limits_pass *pass, pe_pass_kind kind, void *x, void *y, int64_t bytes,
                             int threads)
{
    static const int64_t offsets[] = {0, 16, 272}; /* floats: 0, 64 and 1088 bytes */
    pe_limits_pass best = {.loops = pe_limits_of(NULL), .kind = kind, .threads = threads, .x = x, .y = y};
    double         most = 0;
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
        for (int way = 0; way < (kind == PE_PASS_MEMCPY ? 1 : PE_PASS_WAYS); way++) {
            pe_limits_pass tried = best;
            tried.way            = (pe_pass_way)way;
            tried.offset         = offsets[o];
            tried.n              = (bytes / (int64_t)sizeof(float) - offsets[o]) / STEP * STEP;
            const pe_timed t     = {run_pass, &tried, bytes_of(&tried), threads};
            const double   rate  = t.work / pe_timing_once(&t);
            if (rate > most) {
                most  = rate;
                *pass = tried;
            }
        }
    return (pe_timed){run_pass, pass, bytes_of(pass), threads};
}

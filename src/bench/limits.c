/* SPDX-License-Identifier: MIT */
/*
 * limits.c: how long something takes, which loops run here, on several threads, and which pass over a buffer
 * is the fastest
 *
 * The winner depends on the size: below the last cache plain stores win, far above it those that go around
 * the caches, and prefetching wins in place where the hardware's own falls behind. Nobody has to know: all
 * are tried, from three alignments (a vector's, a line beside a page's start, and somewhere in a page). The C
 * library's memcpy has its own ways.
 */
#include "bench/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parallel.h"

/* ---------------------------------------------------------------- timing -------------------- */

enum { MOST_REPEATS = 1000, FEWEST_REPEATS = 7, FEWEST_SHARED = 15, ROUNDS = 5, TRIES = 3 };

/* A turn lasts at least so long: short kernels are called many times in one. */
#define TURN_SECONDS 3e-4
#define QUIET        1.15

static double now_by(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pe_now(void)
{
    return now_by(CLOCK_MONOTONIC);
}

/* Which clock tells how long something takes that so many threads do. */
static clockid_t clock_of(int threads)
{
    return threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
}

double pe_worked(int threads)
{
    return now_by(clock_of(threads));
}

/* Seconds of one of `calls` calls. */
static double turn(const pe_timed *t, int64_t calls, clockid_t clock)
{
    const double start = now_by(clock);
    for (int64_t i = 0; i < calls; i++)
        t->run(t->context);
    return (now_by(clock) - start) / (double)calls;
}

static int64_t calls_of(const pe_timed *t, clockid_t clock)
{
    int64_t calls = 1;
    while (turn(t, calls, clock) * (double)calls < TURN_SECONDS)
        calls *= 2;
    return calls;
}

double pe_time_once(const pe_timed *t)
{
    const clockid_t clock    = clock_of(t->threads);
    const int64_t   calls    = calls_of(t, clock);
    double          shortest = INFINITY;
    for (int i = 0; i < TRIES; i++)
        shortest = fmin(shortest, turn(t, calls, clock));
    return shortest;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

pe_bench_figure pe_quartiles(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    const double median = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
    return (pe_bench_figure){.value = median, .q1 = x[n / 4], .q3 = x[n - 1 - n / 4], .limit = NAN};
}

/* What lies between the quartiles of the limit's own speed: third over first. */
static double one_round(pe_bench_figure *figure, const pe_timed *kernel, const pe_timed *limit,
                        pe_ratio ratio, const pe_bench_effort *effort)
{
    double    ratios[MOST_REPEATS], speeds[MOST_REPEATS];
    const int most    = effort->repeats < MOST_REPEATS ? effort->repeats : MOST_REPEATS;
    const int threads = kernel->threads > limit->threads ? kernel->threads : limit->threads;
    /* turns that are made whatever the time: more on the wall's clock, where every disturbance counts */
    const int wanted = threads > 1 ? FEWEST_SHARED : FEWEST_REPEATS, least = most < wanted ? most : wanted;
    const clockid_t clock        = clock_of(threads);
    const int64_t   kernel_calls = calls_of(kernel, clock), limit_calls = calls_of(limit, clock);
    const double    start  = pe_now();
    double          before = turn(limit, limit_calls, clock);
    int             n      = 0;
    while (n < least || (n < most && pe_now() - start < effort->seconds)) {
        const double seconds = turn(kernel, kernel_calls, clock), after = turn(limit, limit_calls, clock);
        speeds[n] = 2 * limit->work / (before + after);
        ratios[n] = kernel->work / seconds / speeds[n];
        ratios[n] = ratio == PE_SPEED_RATIO ? ratios[n] : 1 / ratios[n];
        before    = after;
        n++;
    }
    const pe_bench_figure speed = pe_quartiles(speeds, n);
    *figure                     = pe_quartiles(ratios, n);
    figure->limit               = ratio == PE_SPEED_RATIO ? speed.value : 1 / speed.value;
    return speed.q3 / speed.q1;
}

void pe_compare(pe_bench_figure *figure, const pe_timed *kernel, const pe_timed *limit, pe_ratio ratio,
                const pe_bench_effort *effort)
{
    double quietest = INFINITY;
    for (int i = 0; i < ROUNDS && quietest > QUIET; i++) {
        pe_bench_figure round;
        const double    unrest = one_round(&round, kernel, limit, ratio, effort);
        if (unrest < quietest) {
            quietest = unrest;
            *figure  = round;
        }
    }
}

/* ---------------------------------------------------------------- loops --------------------- */

extern const pe_limit_loops pe_limit_loops_plain;
#ifdef POSENC_X86
extern const pe_limit_loops pe_limit_loops_avx2, pe_limit_loops_avx512;
#endif
#ifdef POSENC_NEON
extern const pe_limit_loops pe_limit_loops_neon;
#endif

static const pe_limit_loops *const tables[] = {
    &pe_limit_loops_plain,
#ifdef POSENC_X86
    &pe_limit_loops_avx2,
    &pe_limit_loops_avx512,
#endif
#ifdef POSENC_NEON
    &pe_limit_loops_neon,
#endif
};

enum { TABLES = sizeof tables / sizeof *tables, STEP = 128 };

int pe_runs_here(const char *isa)
{
    for (int i = 0; posenc_isa_at(i); i++)
        if (!strcmp(posenc_isa_at(i), isa))
            return 1;
    return 0;
}

const pe_limit_loops *pe_limits_of(const char *isa)
{
    const pe_limit_loops *best = tables[0];
    for (int i = 0; i < TABLES; i++) {
        if (isa && !strcmp(tables[i]->isa, isa))
            return tables[i];
        best = pe_runs_here(tables[i]->isa) ? tables[i] : best;
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
    sink = p->is_bf16 ? pe_dot_product_loop(p->n) : p->loops->multiply_add(p->n);
#else
    sink = p->loops->multiply_add(p->n);
#endif
}

static void run_peak(void *context)
{
    pe_peak *p = context;
    pe_parallel_for(p->threads, p->threads, one_peak, p);
}

/* A loop that lasts long enough for the clock, and not so long that it is no neighbour of the kernel. */
static pe_timed calibrated(pe_peak *p, void (*loop)(void *), double operations)
{
    pe_timed t = {loop, p, 0, p->threads};
    p->n       = CALIBRATION;
    p->n       = (int64_t)(CALIBRATION * PEAK_SECONDS / pe_time_once(&t)) + 1;
    t.work     = operations * (double)p->n * p->threads;
    return t;
}

pe_timed pe_multiply_add_limit(pe_peak *peak, const char *isa, int threads)
{
    *peak = (pe_peak){.loops = pe_limits_of(isa ? isa : posenc_isa()), .threads = threads};
    return calibrated(peak, run_peak, 2.0 * peak->loops->lanes * peak->loops->chains);
}

int pe_has_dot_products(void)
{
#ifdef POSENC_X86
    return __builtin_cpu_supports("avx512bf16") != 0;
#else
    return 0;
#endif
}

pe_timed pe_dot_product_limit(pe_peak *peak, int threads)
{
    *peak = (pe_peak){.loops = pe_limits_of(NULL), .threads = threads, .is_bf16 = 1};
#ifdef POSENC_X86
    return calibrated(peak, run_peak, pe_dot_product_operations);
#else
    return calibrated(peak, run_peak, 1);
#endif
}

/* Each sum needs the one before it; the empty asm keeps the compiler from adding several at once. */
static void run_clock(void *context)
{
    const pe_peak *p   = context;
    uint64_t       sum = 1, step = (uint64_t)p->n;
    for (int64_t i = 0; i < p->n; i++)
#pragma GCC unroll 64
        for (int k = 0; k < 64; k++) {
            sum += step;
            __asm__ volatile("" : "+r"(sum), "+r"(step));
        }
    sink = (float)sum;
}

pe_timed pe_clock_loop(pe_peak *peak)
{
    *peak = (pe_peak){.loops = pe_limits_of(NULL), .threads = 1};
    return calibrated(peak, run_clock, 64);
}

/* ---------------------------------------------------------------- bandwidth ----------------- */

const char *pe_pass_kind_name(pe_pass_kind kind)
{
    static const char *const names[PE_PASS_KINDS] = {"in-place read-modify-write", "copy", "memcpy", "store",
                                                     "read"};
    return names[kind];
}

/* Slice `index` of `threads`, in whole turns of the loops. */
static void one_slice(void *context, int64_t index, int thread)
{
    const pe_pass *p    = context;
    const int64_t  from = p->n / STEP * index / p->threads * STEP;
    const int64_t  n    = p->n / STEP * (index + 1) / p->threads * STEP - from;
    float *const x = p->x ? p->x + p->offset + from : NULL, *const y = p->y ? p->y + p->offset + from : NULL;
    if (p->kind == PE_PASS_MEMCPY)
        memcpy(y, x, (size_t)n * sizeof *x);
    else
        sink = p->loops->pass(p->kind, p->kind == PE_PASS_IN_PLACE ? x : y, x, n, p->way);
}

static void run_pass(void *context)
{
    pe_pass *p = context;
    pe_parallel_for(p->threads, p->threads, one_slice, p);
}

static double bytes_of(const pe_pass *p)
{
    const double n = (double)p->n * sizeof(float);
    return p->kind == PE_PASS_STORE || p->kind == PE_PASS_READ ? n : 2 * n;
}

pe_timed pe_best_pass(pe_pass *pass, pe_pass_kind kind, void *x, void *y, int64_t bytes, int threads)
{
    static const int64_t offsets[] = {0, 16, 272}; /* floats: 0, 64 and 1088 bytes */
    pe_pass best = {.loops = pe_limits_of(NULL), .kind = kind, .threads = threads, .x = x, .y = y};
    double  most = 0;
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
        for (int way = 0; way < (kind == PE_PASS_MEMCPY ? 1 : PE_PASS_WAYS); way++) {
            pe_pass tried       = best;
            tried.way           = (pe_pass_way)way;
            tried.offset        = offsets[o];
            tried.n             = (bytes / (int64_t)sizeof(float) - offsets[o]) / STEP * STEP;
            const pe_timed t    = {run_pass, &tried, bytes_of(&tried), threads};
            const double   rate = t.work / pe_time_once(&t);
            if (rate > most) {
                most  = rate;
                *pass = tried;
            }
        }
    return (pe_timed){run_pass, pass, bytes_of(pass), threads};
}

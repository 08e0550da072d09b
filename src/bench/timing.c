/* SPDX-License-Identifier: MIT */
/* The clock, and two speeds side by side. Contract: timing.h. */
#include "bench/timing.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_REPEATS = 1000, FEWEST_REPEATS = 7, FEWEST_SHARED = 15, ROUNDS = 5, TRIES = 3 };

/* One timing lasts at least so long: short kernels are called many times in it. */
#define TIMING_SECONDS 3e-4
#define QUIET          1.15

static double now_by(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pe_timing_now(void)
{
    return now_by(CLOCK_MONOTONIC);
}

/* Which clock tells how long something takes that so many threads do. */
static clockid_t clock_of(int threads)
{
    return threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
}

double pe_timing_worked(int threads)
{
    return now_by(clock_of(threads));
}

/* Seconds of one of `calls` calls. */
static double seconds_of(const pe_timed *t, int64_t calls, clockid_t clock)
{
    const double start = now_by(clock);
    for (int64_t i = 0; i < calls; i++)
        t->run(t->context);
    return (now_by(clock) - start) / (double)calls;
}

static int64_t calls_of(const pe_timed *t, clockid_t clock)
{
    int64_t calls = 1;
    while (seconds_of(t, calls, clock) * (double)calls < TIMING_SECONDS)
        calls *= 2;
    return calls;
}

double pe_timing_once(const pe_timed *t)
{
    const clockid_t clock    = clock_of(t->threads);
    const int64_t   calls    = calls_of(t, clock);
    double          shortest = INFINITY;
    for (int i = 0; i < TRIES; i++)
        shortest = fmin(shortest, seconds_of(t, calls, clock));
    return shortest;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

pe_bench_figure pe_timing_quartiles(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    const double median = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
    return (pe_bench_figure){.value = median, .q1 = x[n / 4], .q3 = x[n - 1 - n / 4], .limit = NAN};
}

/* Returns how far the limit itself was disturbed: the third quartile of its speed over the first. */
static double one_round(pe_bench_figure *figure, const pe_timed *kernel, const pe_timed *limit,
                        pe_ratio ratio, const pe_bench_effort *effort)
{
    double    ratios[MOST_REPEATS], speeds[MOST_REPEATS];
    const int most    = effort->repeats < MOST_REPEATS ? effort->repeats : MOST_REPEATS;
    const int threads = kernel->threads > limit->threads ? kernel->threads : limit->threads;
    /* repeats that are made whatever the time: more on the wall's clock, where every disturbance counts */
    const int wanted = threads > 1 ? FEWEST_SHARED : FEWEST_REPEATS, least = most < wanted ? most : wanted;
    const clockid_t clock        = clock_of(threads);
    const int64_t   kernel_calls = calls_of(kernel, clock), limit_calls = calls_of(limit, clock);
    const double    start  = pe_timing_now();
    double          before = seconds_of(limit, limit_calls, clock);
    int             n      = 0;
    while (n < least || (n < most && pe_timing_now() - start < effort->seconds)) {
        const double seconds = seconds_of(kernel, kernel_calls, clock),
                     after   = seconds_of(limit, limit_calls, clock);
        speeds[n]            = 2 * limit->work / (before + after);
        ratios[n]            = kernel->work / seconds / speeds[n];
        ratios[n]            = ratio == PE_SPEED_RATIO ? ratios[n] : 1 / ratios[n];
        before               = after;
        n++;
    }
    const pe_bench_figure speed = pe_timing_quartiles(speeds, n);
    *figure                     = pe_timing_quartiles(ratios, n);
    figure->limit               = ratio == PE_SPEED_RATIO ? speed.value : 1 / speed.value;
    return speed.q3 / speed.q1;
}

void pe_timing_compare(pe_bench_figure *figure, const pe_timed *kernel, const pe_timed *limit, pe_ratio ratio,
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

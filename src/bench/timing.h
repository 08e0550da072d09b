/* SPDX-License-Identifier: MIT */
/*
 * timing.h: how long something takes, and the ratio of two speeds, measured side by side
 *
 * Clocks change and neighbours come and go, so a kernel is never held against a figure from another minute:
 * kernel and limit run alternately (limit, kernel, limit, kernel, ..., limit), and each run of the kernel is
 * compared with the mean of the two runs of the limit around it. The median of those ratios is the value,
 * their quartiles its spread. What one thread does is timed by the seconds that this thread worked, so that
 * others who share the processor count for little; what several do, by the clock on the wall.
 */
#ifndef PE_BENCH_TIMING_H
#define PE_BENCH_TIMING_H

#include "bench/bench.h"

/* Something to be timed: run(context) once, which does `work` (operations, bytes, or 1). */
typedef struct pe_timed {
    void (*run)(void *context);
    void  *context;
    double work;
    int    threads; /* that it runs on; 0 is 1 */
} pe_timed;

/* Seconds by a clock that never goes back. */
double pe_timing_now(void);
/* Seconds by the clock that tells how long something takes that so many threads do. */
double pe_timing_worked(int threads);

/* Seconds of one call, the shortest of a few tries after a first that does not count. */
double pe_timing_once(const pe_timed *t);

/* SPEED: value is the kernel's work per second over the limit's, limit the limit's work per second.
   TIME: value is the kernel's seconds per work over the limit's, limit the limit's seconds per work. */
typedef enum pe_ratio { PE_SPEED_RATIO, PE_TIME_RATIO } pe_ratio;

/* Repeats until effort->seconds are over or effort->repeats reached, at least seven times, fifteen on several
   threads (or effort->repeats). A round in which the limit itself was disturbed (its third quartile above
   1.15 times its first) is measured again, four times at most; the quietest counts. */
void pe_timing_compare(pe_bench_figure *figure, const pe_timed *kernel, const pe_timed *limit, pe_ratio ratio,
                       const pe_bench_effort *effort);

/* Median and quartiles of x[0 .. n-1], which is sorted. */
pe_bench_figure pe_timing_quartiles(double *x, int n);

#endif

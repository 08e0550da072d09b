/* SPDX-License-Identifier: MIT */
/*
 * limits.h: loops that do nothing but reach a limit of the machine, and the ratio of two speeds, measured
 * side by side
 *
 * Arithmetic: independent fused multiply-adds, as many chains as hide their latency. Bandwidth: one pass over
 * a buffer, in four ways (plain; with prefetches 4 KiB ahead, or 12, there for writing where it writes; with
 * streaming stores, which leave the caches alone) and from several alignments; what counts is the best of
 * them at that size, found first (pe_best_pass) and then run beside the kernel.
 *
 * Written once (limits.inc) against the kernels' vector layer and compiled for each instruction set.
 * Bandwidth counts bytes read and written: a copy of n bytes moves 2n, a pass in place 2n, a store or a read
 * n.
 *
 * Clocks change and neighbours come and go, so a kernel is never held against a figure from another minute:
 * kernel and limit run in turns (limit, kernel, limit, kernel, ..., limit), and each turn of the kernel is
 * compared with the mean of the two turns of the limit around it. The median of those ratios is the value,
 * their quartiles its spread. What one thread does is timed by the seconds that this thread worked, so that
 * others who share the processor count for little; what several do, by the clock on the wall.
 */
#ifndef PE_BENCH_LIMITS_H
#define PE_BENCH_LIMITS_H

#include "bench/bench.h"

/* ---------------------------------------------------------------- timing -------------------- */

/* Something to be timed: run(context) once, which does `work` (operations, bytes, or 1). */
typedef struct pe_timed {
    void (*run)(void *context);
    void  *context;
    double work;
    int    threads; /* that it runs on; 0 is 1 */
} pe_timed;

/* Seconds by a clock that never goes back. */
double pe_now(void);
/* Seconds by the clock that tells how long something takes that so many threads do. */
double pe_worked(int threads);

/* Seconds of one call, the shortest of a few tries after a first that does not count. */
double pe_time_once(const pe_timed *t);

/* SPEED: value is the kernel's work per second over the limit's, limit the limit's work per second.
   TIME: value is the kernel's seconds per work over the limit's, limit the limit's seconds per work. */
typedef enum pe_ratio { PE_SPEED_RATIO, PE_TIME_RATIO } pe_ratio;

/* Repeats until effort->seconds are over or effort->repeats reached, at least seven times, fifteen on several
   threads (or effort->repeats). A round in which the limit itself was disturbed (its third quartile above
   1.15 times its first) is measured again, four times at most; the quietest counts. */
void pe_compare(pe_bench_figure *figure, const pe_timed *kernel, const pe_timed *limit, pe_ratio ratio,
                const pe_bench_effort *effort);

/* Median and quartiles of x[0 .. n-1], which is sorted. */
pe_bench_figure pe_quartiles(double *x, int n);

/* ---------------------------------------------------------------- loops --------------------- */

/* What a pass does. COPY is ours, MEMCPY the C library's. */
typedef enum pe_pass_kind {
    PE_PASS_IN_PLACE, /* x = -x */
    PE_PASS_COPY,
    PE_PASS_MEMCPY,
    PE_PASS_STORE,
    PE_PASS_READ,
    PE_PASS_KINDS
} pe_pass_kind;

/* How. READ streams by prefetching past the caches. */
typedef enum pe_pass_way {
    PE_PLAIN_PASS,
    PE_PREFETCHED_PASS,
    PE_FAR_PASS,
    PE_STREAMING_PASS,
    PE_PASS_WAYS
} pe_pass_way;

const char *pe_pass_kind_name(pe_pass_kind kind); /* "in-place read-modify-write" ... */

/* The loops of one instruction set. n counts floats and is a multiple of 128; pointers are aligned to 64
   bytes. */
typedef struct pe_limit_loops {
    const char *isa;
    int         lanes, chains; /* floats of a vector; chains of `multiply_add` */
    /* One after the other n times, `chains` multiply-adds of `lanes` each. */
    float (*multiply_add)(int64_t n);
    /* Any pass but MEMCPY: reads x, writes y; the same buffer IN_PLACE. READ returns what its sums come to.
     */
    float (*pass)(pe_pass_kind kind, float *y, const float *x, int64_t n, pe_pass_way way);
} pe_limit_loops;

int pe_runs_here(const char *isa);
/* Those of an instruction set, or of the best that there are loops for here (a NULL or unknown name). */
const pe_limit_loops *pe_limits_of(const char *isa);

/* ---------------------------------------------------------------- arithmetic ---------------- */

/* A loop of multiply-adds that takes about a hundredth of a second, on so many threads. */
typedef struct pe_peak {
    const pe_limit_loops *loops;
    int                   threads, is_bf16;
    int64_t               n;
} pe_peak;

/* The float32 multiply-add limit of an instruction set. */
pe_timed pe_multiply_add_limit(pe_peak *peak, const char *isa, int threads);
/* n rounds of independent bfloat16 dot products of so many operations (x86 with AVX512-BF16). */
float               pe_dot_product_loop(int64_t n);
extern const double pe_dot_product_operations;
/* Their limit; 0 where this processor has none. */
int      pe_has_dot_products(void);
pe_timed pe_dot_product_limit(pe_peak *peak, int threads);
/* Dependent additions of whole numbers, one per cycle: work per second is the clock. */
pe_timed pe_clock_loop(pe_peak *peak);

/* ---------------------------------------------------------------- bandwidth ----------------- */

typedef struct pe_pass {
    const pe_limit_loops *loops;
    pe_pass_kind          kind;
    pe_pass_way           way;
    int                   threads;
    int64_t               offset, n; /* floats */
    float                *x, *y;     /* y: what copies and stores write */
} pe_pass;

/* The fastest pass of its kind over `bytes` at x (and y, for copies and stores; for STORE x is not looked
   at). */
pe_timed pe_best_pass(pe_pass *pass, pe_pass_kind kind, void *x, void *y, int64_t bytes, int threads);

#endif

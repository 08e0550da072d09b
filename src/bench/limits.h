/* SPDX-License-Identifier: MIT */
/*
 * limits.h: loops that do nothing but reach a limit of the machine
 *
 * Arithmetic: independent fused multiply-adds, as many chains as hide their latency. Bandwidth: one pass over
 * a buffer, in four ways (plain; with prefetches 4 KiB ahead, or 12, there for writing where it writes; with
 * streaming stores, which leave the caches alone) and from several alignments; what counts is the best of
 * them at that size, found first (pe_limits_best_pass) and then run beside the kernel.
 *
 * Written once (limits.inc) against the kernels' vector layer and compiled for each instruction set.
 * Bandwidth counts bytes read and written: a copy of n bytes moves 2n, a pass in place 2n, a store or a read
 * n.
 */
#ifndef PE_BENCH_LIMITS_H
#define PE_BENCH_LIMITS_H

#include "bench/timing.h"

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

const char *pe_limits_pass_name(pe_pass_kind kind); /* "in-place read-modify-write" ... */

/* The loops of one instruction set. n counts floats and is a multiple of 128; pointers are aligned to 64
   bytes. */
typedef struct pe_limits_loops {
    const char *isa;
    int         lanes, chains; /* floats of a vector; chains of `multiply_add` */
    /* One after the other n times, `chains` multiply-adds of `lanes` each. */
    float (*multiply_add)(int64_t n);
    /* Any pass but MEMCPY: reads x, writes y; the same buffer IN_PLACE. READ returns what its sums come to.
     */
    float (*pass)(pe_pass_kind kind, float *y, const float *x, int64_t n, pe_pass_way way);
} pe_limits_loops;

int pe_limits_runs_here(const char *isa);
/* Those of an instruction set, or of the best that there are loops for here (a NULL or unknown name). */
const pe_limits_loops *pe_limits_of(const char *isa);

/* ---------------------------------------------------------------- arithmetic ---------------- */

/* A loop of multiply-adds that takes about a hundredth of a second, on so many threads. */
typedef struct pe_peak {
    const pe_limits_loops *loops;
    int                    threads, is_bf16;
    int64_t                n;
} pe_peak;

/* The float32 multiply-add limit of an instruction set. */
pe_timed pe_limits_multiply_add(pe_peak *peak, const char *isa, int threads);
/* n rounds of independent bfloat16 dot products of so many operations (x86 with AVX512-BF16). */
float               pe_limits_dot_product_loop(int64_t n);
extern const double pe_limits_dot_product_operations;
/* Their limit; 0 where this processor has none. */
int      pe_limits_has_dot_products(void);
pe_timed pe_limits_dot_product(pe_peak *peak, int threads);
/* Dependent additions of whole numbers, one per cycle: work per second is the clock. */
pe_timed pe_limits_clock(pe_peak *peak);

/* ---------------------------------------------------------------- bandwidth ----------------- */

typedef struct pe_limits_pass {
    const pe_limits_loops *loops;
    pe_pass_kind           kind;
    pe_pass_way            way;
    int                    threads;
    int64_t                offset, n; /* floats */
    float                 *x, *y;     /* y: what copies and stores write */
} pe_limits_pass;

/* The fastest pass of its kind over `bytes` at x (and y, for copies and stores; for STORE x is not looked
   at). */
pe_timed pe_limits_best_pass(pe_limits_pass *pass, pe_pass_kind kind, void *x, void *y, int64_t bytes,
                             int threads);

#endif

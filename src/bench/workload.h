/* SPDX-License-Identifier: MIT */
/*
 * workload.h: the list of cases while it is made, what measures them, one problem made from a case, ready to
 * be run again and again, and memory to measure on
 *
 * Encodings get the settings that their rooms state for a small model trained at an eighth of the keys,
 * unless the case's spec has brackets; those that are turned or make tables have none. Parameters are as
 * their source initialises them; those born as zeros throughout are drawn, for zeros are not what anybody
 * computes with.
 *
 * Zeros also move faster than numbers (streaming stores twice as fast on the machine where it was seen), and
 * pages of 4 KiB cost up to 8 %: so buffers begin at 2 MiB, ask for huge pages, and are written in full
 * before anything is timed.
 */
#ifndef PE_BENCH_WORKLOAD_H
#define PE_BENCH_WORKLOAD_H

#include "bench/bench.h"

typedef struct pe_case_list {
    pe_bench_case *rows;
    int            count, room, is_full; /* is_full: there was no memory for a row */
} pe_case_list;

/* Adds a copy of `c` under the name that `format` makes. */
void pe_add_case(pe_case_list *to, const char *goal, pe_bench_case c, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The rows of G15. */
void pe_training_cases(pe_case_list *to);

/* metric.c and memory.c */
pe_bench_fn pe_measure_clock, pe_measure_units, pe_measure_bandwidth, pe_measure_share, pe_measure_over,
    pe_measure_seconds, pe_measure_overhead, pe_measure_in_flight, pe_measure_growth, pe_measure_megabytes;

enum { PE_MOST_BUFFERS = 96, PE_BENCH_PARAMS = 16, PE_BEYOND = 1024 };

/* All memory of one case, freed at once. */
typedef struct pe_buffers {
    void *blocks[PE_MOST_BUFFERS];
    int   count;
} pe_buffers;

/* n numbers of a storage type, uniform with mean 0 and variance 1. NULL without memory, after filling err. */
void *pe_random_buffer(pe_buffers *all, int64_t n, posenc_dtype dtype, posenc_error *err);
void  pe_free_buffers(pe_buffers *all);

/* From now on this process has small pages: for whoever counts which are touched. */
void pe_take_small_pages(void);

typedef struct pe_problem {
    const pe_bench_shape *shape;
    pe_buffers            all;
    posenc_encoding      *e;
    posenc_plan          *plan;
    posenc_dims           dims;
    posenc_attend_in      in;
    posenc_attend_out     out;
    posenc_attend_grad    grad;
    posenc_rows_in        rows;
    posenc_rows_grad      rows_grad;
    posenc_rotate_io      turn;
    posenc_tensor         y, params[PE_BENCH_PARAMS], dparams[PE_BENCH_PARAMS]; /* y: rows or a table */
    void                 *x, *to, *work; /* what is turned, what a pass may write: PE_BEYOND numbers longer */
    int64_t               bytes;         /* of what is turned, or of y */
    int                   is_rotary;
    posenc_error          err; /* of the last run */
} pe_problem;

/* These do nothing more after an error: ask err->status at the end. */
/* Everything but the workspace. Close it whatever the status. */
void pe_problem_open(pe_problem *p, const pe_bench_case *c, int threads, posenc_error *err);
/* The workspace, and a first run: forward before backward where that needs what it leaves. */
void pe_problem_start(pe_problem *p, posenc_error *err);
/* Both. */
void pe_problem_ready(pe_problem *p, const pe_bench_case *c, int threads, posenc_error *err);
void pe_problem_close(pe_problem *p);

/* One run, backward if the case says so. context is the pe_problem. */
void pe_problem_go(void *context);

/* The useful arithmetic of attention: 4 D for each pair that the mask allows, backward 10 D, whatever the
   encoding adds. */
double pe_attention_operations(const pe_bench_shape *shape);

#endif

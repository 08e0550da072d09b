/* SPDX-License-Identifier: MIT */
/*
 * workload.h: what a case runs, made ready to be run again and again, and memory to measure on
 *
 * Encodings get the settings that their rooms state for a small model trained at an eighth of the keys,
 * unless the case's spec has brackets; rotations and tables of them have none. Parameters are as their source
 * initialises them; those that it initialises with zeros only are random, for zeros are not what anybody
 * computes with.
 *
 * Zeros also move faster than numbers (streaming stores twice as fast on the machine where it was seen), and
 * pages of 4 KiB cost up to 8 %: so buffers begin at 2 MiB, ask for huge pages, and are written in full
 * before anything is timed.
 */
#ifndef PE_BENCH_WORKLOAD_H
#define PE_BENCH_WORKLOAD_H

#include "bench/crew.h"

enum { PE_MOST_BUFFERS = 96, PE_BENCH_PARAMS = 16, PE_BENCH_TOKENS = 4, PE_BEYOND = 1024 };

/* All memory of one case, freed at once. */
typedef struct pe_buffers {
    void *blocks[PE_MOST_BUFFERS];
    int   count;
} pe_buffers;

/* n numbers of a storage type, uniform with mean 0 and variance 1. NULL without memory, after filling err. */
void *pe_workload_random(pe_buffers *all, int64_t n, posenc_dtype dtype, posenc_error *err);
void  pe_workload_free(pe_buffers *all);

/* From now on this process has small pages: for whoever counts which are touched. */
void pe_workload_use_small_pages(void);

typedef struct pe_workload {
    const pe_bench_shape *shape;
    pe_buffers            all;
    posenc_encoding      *e;
    posenc_plan          *plan;
    posenc_bound         *bound;
    posenc_dims           dims;
    posenc_attend_in      in;
    posenc_attend_out     out;
    posenc_attend_grad    grad;
    posenc_rows_in        rows;
    posenc_rows_grad      rows_grad;
    posenc_rotate_io      rotation;
    int64_t               keys;                                                 /* of a run */
    posenc_tensor         y, params[PE_BENCH_PARAMS], dparams[PE_BENCH_PARAMS]; /* y: rows or a table */
    void                 *x, *to; /* what is rotated, what a pass may write: PE_BEYOND numbers longer */
    posenc_tensor         tokens[PE_BENCH_TOKENS], dtokens[PE_BENCH_TOKENS], sums[PE_BENCH_TOKENS];
    posenc_workspace      work;
    int64_t               bytes; /* of what is rotated, or of y */
    int                   is_rotary;
    posenc_error          err; /* of the last run */
} pe_workload;

/* These do nothing more after an error: ask err->status at the end. */
/* Everything except the workspace. Close it whatever the status. */
void pe_workload_open(pe_workload *w, const pe_bench_case *c, int threads, posenc_error *err);
/* The workspace, and a first run: forward before backward where that needs what it leaves. */
void pe_workload_start(pe_workload *w, posenc_error *err);
/* Both. */
void pe_workload_ready(pe_workload *w, const pe_bench_case *c, int threads, posenc_error *err);
void pe_workload_close(pe_workload *w);

/* One run, backward if the case says so. context is the pe_workload. */
void pe_workload_run(void *context);

/* The useful arithmetic of attention: 4 D for each pair that the mask allows, backward 10 D, whatever the
   encoding adds. */
double pe_workload_operations(const pe_bench_shape *shape);

#endif

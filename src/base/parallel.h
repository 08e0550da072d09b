/* SPDX-License-Identifier: MIT */
/*
 * parallel.h: the only way the library uses several threads
 *
 * Tasks are numbered, independent, and each writes to its own memory; sums over tasks are taken afterwards in
 * the order of their numbers. So results are the same bits for any number of threads.
 */
#ifndef PE_BASE_PARALLEL_H
#define PE_BASE_PARALLEL_H

#include <stdint.h>

/* One task: `index` in 0..n-1, `thread` in 0..threads-1 (for scratch memory). */
typedef void pe_parallel_task(void *context, int64_t index, int thread);

/* Runs tasks 0..n-1 on at most `threads` threads; with one thread or one task no team is started. */
void pe_parallel_for(int64_t n, int threads, pe_parallel_task *task, void *context);

/* How many threads a request means: 0 = OpenMP's default, else the request itself; at least 1. */
int pe_parallel_threads(int requested);

/* Processors that this process may run on, at least 1: fewer than the machine has where taskset or a batch
   system says so. */
int pe_parallel_processors(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * parallel.h: the only way the library uses several threads
 *
 * Tasks are numbered, independent, and each writes to its own memory; sums over tasks are taken afterwards in
 * the order of their numbers. So results are the same bits for any number of threads, whoever brings them.
 *
 * The library's own threads are OpenMP's (openmp.c) or a pool of POSIX threads (pool.c); the build chooses
 * one.
 */
#ifndef PE_BASE_PARALLEL_H
#define PE_BASE_PARALLEL_H

#include <posenc/posenc.h>
#include <stdint.h>

/* Who runs the tasks of one run, and what ends it early. */
typedef struct pe_team {
    int                  threads;      /* at most; slots are below this */
    posenc_parallel_for *parallel_for; /* the caller's; NULL: the library's own threads */
    void                *context;      /* its first argument */
    const volatile int  *cancel;       /* NULL: nothing ends it */
} pe_team;

/* Runs tasks 0..n-1; with one thread or one task on the calling thread. Tasks that have not begun when the
   run is cancelled are left out. */
void pe_parallel_for(int64_t n, const pe_team *team, posenc_task *task, void *argument);

/* Was it? What its tasks wrote is not to be used then. */
int pe_parallel_is_cancelled(const pe_team *team);

/* The same team, but only the calling thread where the work is too little for more: less than `least`. */
pe_team pe_parallel_for_work(const pe_team *team, double work, double least);

/* How many threads a request means: 0 = the default of the library's own, else the request itself; at
   least 1. */
int pe_parallel_threads(int requested);

/* ---- openmp.c or pool.c ---- */

/* Processors that this process may run on, at least 1: fewer than the machine has where taskset or a batch
   system says so. */
int pe_parallel_processors(void);

/* Threads of the library's own if nobody says how many. */
int pe_parallel_default(void);

/* Runs tasks 0..n-1 on at most `threads` of the library's own threads, n and threads at least 2. */
void pe_parallel_own(int64_t n, int threads, posenc_task *task, void *argument);

#endif

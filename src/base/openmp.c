/* SPDX-License-Identifier: MIT */
/*
 * openmp.c: the library's threads are OpenMP's
 *
 * A child of fork() has only the thread that called it, but OpenMP believes in its whole team and would wait
 * for it for ever. So once a team has run here, children work on the calling thread alone.
 */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/parallel.h"

static atomic_int is_forked;

static void enter_child(void)
{
    atomic_store(&is_forked, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, enter_child);
}

void pe_parallel_own(int64_t n, int threads, posenc_task *task, void *argument)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const int             most = n < threads ? (int)n : threads;
    pthread_once(&once, watch_forks);
    const int team = atomic_load(&is_forked) ? 1 : most;
    /* dynamic: causal tiles differ in length; which thread takes which task changes no number */
#pragma omp parallel for schedule(dynamic) num_threads(team)
    for (int64_t index = 0; index < n; index++)
        task(argument, index, omp_get_thread_num());
}

int pe_parallel_default(void)
{
    return omp_get_max_threads();
}

int pe_parallel_processors(void)
{
    return omp_get_num_procs();
}

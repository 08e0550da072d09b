/* SPDX-License-Identifier: MIT */
/* Threads through OpenMP, only in this file. Contract: parallel.h. */
#include "base/parallel.h"

#include <omp.h>

void pe_parallel_for(int64_t n, int threads, pe_parallel_task *task, void *context)
{
    if (threads <= 1 || n <= 1) {
        for (int64_t index = 0; index < n; index++)
            task(context, index, 0);
        return;
    }
    const int team = n < threads ? (int)n : threads;
    /* dynamic: causal tiles differ in length; which thread takes which task changes no number */
#pragma omp parallel for schedule(dynamic) num_threads(team)
    for (int64_t index = 0; index < n; index++)
        task(context, index, omp_get_thread_num());
}

int pe_parallel_threads(int requested)
{
    const int threads = requested > 0 ? requested : omp_get_max_threads();
    return threads < 1 ? 1 : threads;
}

int pe_parallel_processors(void)
{
    return omp_get_num_procs();
}

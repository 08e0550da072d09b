/* SPDX-License-Identifier: MIT */
/* alone.c: the threads of a module that has none, in the place of base/openmp.c and base/pool.c */
#include "base/parallel.h"

int pe_parallel_processors(void)
{
    return 1;
}

int pe_parallel_default(void)
{
    return 1;
}

void pe_parallel_own(int64_t n, int threads, posenc_task *task, void *argument)
{
    (void)threads;
    for (int64_t index = 0; index < n; index++)
        task(argument, index, 0);
}

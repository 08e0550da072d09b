/* SPDX-License-Identifier: MIT */
/* Whose threads a case runs on. Contract: crew.h. */
#include "bench/crew.h"

#include <stdio.h>

int pe_crew_threads(pe_bench_crew crew, int asked)
{
    return crew == PE_CREW_ASKED ? asked : crew == PE_CREW_ONE ? 1 : 2;
}

#ifdef POSENC_OPENMP
/* base/pool.c under another name: CMakeLists.txt */
void pe_crew_pool(int64_t n, int threads, posenc_task *task, void *argument);

static void run_in_pool(void *context, int64_t n, posenc_task *task, void *argument)
{
    pe_crew_pool(n, *(const int *)context, task, argument);
}
#endif

posenc_status pe_crew_set(posenc_options *options, pe_bench_crew crew, int threads, posenc_error *err)
{
    options->threads = threads;
#ifdef POSENC_OPENMP
    static int two = 2;
    if (crew == PE_CREW_POOL) {
        options->parallel_for     = run_in_pool;
        options->parallel_context = &two;
    }
#else
    if (crew == PE_CREW_OPENMP) {
        *err = (posenc_error){.status = POSENC_ERROR_UNSUPPORTED};
        snprintf(err->message, sizeof err->message, "%s",
                 "built without OpenMP: configure with -DPOSENC_OPENMP=ON");
        return err->status;
    }
#endif
    return POSENC_OK;
}

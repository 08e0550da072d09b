/* SPDX-License-Identifier: MIT */
/*
 * run_progress.c: how far a run is, and whether it shall stop
 */
#include "train/run/run.h"

#include "base/status.h"

#include <stdatomic.h>
#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double pe_run_clock(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double pe_run_thread_clock(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

int pe_run_advance(pe_run_progress *progress)
{
    atomic_fetch_add(&progress->step, 1);
    return atomic_load(&progress->cancel) != 0;
}

posenc_status pe_run_cancelled(int *cancelled, posenc_error *err)
{
    *cancelled = 1;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "run: cancelled before its end");
}

/* SPDX-License-Identifier: MIT */
/*
 * bench/clock.h: the clock of the benchmarks, and how one ends that cannot go on
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* `bench` is the name of the program. */
static inline void stop(const char *bench, const posenc_error *err)
{
    fprintf(stderr, "bench_%s: %s\n", bench, err->message);
    exit(1);
}

#endif

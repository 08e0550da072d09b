/* SPDX-License-Identifier: MIT */
/*
 * crew.h: whose threads a case runs on
 *
 * The library has one kind of threads of its own, which its build chooses: OpenMP's or a pool. A build with
 * OpenMP has the very same pool here, as threads of a caller (options.parallel_for), so both are measured by
 * one program. A build without OpenMP has only the pool.
 */
#ifndef PE_BENCH_CREW_H
#define PE_BENCH_CREW_H

#include "bench/bench.h"

/* How many threads: `asked`, one or two. */
int pe_crew_threads(pe_bench_crew crew, int asked);
/* The options of a plan that runs on them. UNSUPPORTED: this build does not have them. */
posenc_status pe_crew_set(posenc_options *options, pe_bench_crew crew, int threads, posenc_error *err);

#endif

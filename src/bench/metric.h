/* SPDX-License-Identifier: MIT */
/* metric.h: the functions that measure a case (pe_bench_fn), for the table of cases */
#ifndef PE_BENCH_METRIC_H
#define PE_BENCH_METRIC_H

#include "bench/bench.h"

/* The limits themselves, and kernels against them. */
pe_bench_fn pe_metric_clock, pe_metric_units, pe_metric_bandwidth, pe_metric_share, pe_metric_over,
    pe_metric_seconds, pe_metric_overhead, pe_metric_in_flight;
/* Memory: at twice the length over that at the length; MiB of one run (memory.c). */
pe_bench_fn pe_memory_growth, pe_memory_megabytes;
/* A step of the training engine; two runs side by side over one (training.c). */
pe_bench_fn pe_training_step, pe_training_pair;

#endif

/* SPDX-License-Identifier: MIT */
/* cases.h: the list of cases while it is made, and what measures them. */
#ifndef PE_BENCH_CASES_H
#define PE_BENCH_CASES_H

#include "bench/bench.h"

typedef struct pe_case_list {
    pe_bench_case *rows;
    int            count, room, is_full; /* is_full: there was no memory for a row */
} pe_case_list;

/* Adds a copy of `c` under the name that `format` makes. */
void pe_add_case(pe_case_list *to, const char *goal, pe_bench_case c, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The rows of G15. */
void pe_training_cases(pe_case_list *to);

/* measure.c and growth.c */
pe_bench_fn pe_measure_clock, pe_measure_units, pe_measure_bandwidth, pe_measure_share, pe_measure_over,
    pe_measure_seconds, pe_measure_overhead, pe_measure_in_flight, pe_measure_growth, pe_measure_megabytes;

#endif

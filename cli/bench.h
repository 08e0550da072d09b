/* SPDX-License-Identifier: MIT */
/* bench.h: measured rows as JSON, for the command `bench` and its tests. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "bench/bench.h"
#include "cli.h"

#include <jansson.h>

/* One array, an object per row: goal, name, value, q1, q3, limit, unit, wanted, met; and reason where there
   is no value. NULL without memory. */
json_t *cli_bench_json(const pe_bench_row *rows, int count);

#endif

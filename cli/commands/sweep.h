/* SPDX-License-Identifier: MIT */
/* sweep.h: the vectors of one input encoding, measured for each value of a setting. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "cli/print/columns.h"

#include "measure/measure.h"

#include <jansson.h>

/* Every --sweep NAME=V,V,... of the call, one table each, or one JSON value. `settings` hold for all. Returns
   an exit status. */
int cli_sweep(const cli_args *args, const char *settings, const pe_subject_sizes *sizes);

#endif

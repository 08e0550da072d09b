/* SPDX-License-Identifier: MIT */
/* explain.h: every formula of a model's rotation with its numbers in place, as text. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "config.h"

/* To standard output. An exit status after printing what is wrong. */
int cli_explain(const cli_config *config);

#endif

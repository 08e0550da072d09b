/* SPDX-License-Identifier: MIT */
/*
 * lists.h: lists and grids as values of options
 *
 * Numbers of a list are separated by ':' (as in settings) or ','; a grid or a point is two numbers with an x
 * between them, rows or y first: 16x32.
 */
#ifndef CLI_LISTS_H
#define CLI_LISTS_H

#include "cli.h"

enum { CLI_LIST_MOST = 32 };

/* All return the count of numbers read, 0 if the option is absent, -1 after printing an error. */
int cli_integers(const cli_args *args, const char *option, int64_t low, int64_t high,
                 int64_t list[CLI_LIST_MOST]);
int cli_reals(const cli_args *args, const char *option, double low, double high, double list[CLI_LIST_MOST]);
/* y, x, y, x, ...: an even count. */
int cli_points(const cli_args *args, const char *option, int64_t most, int64_t list[CLI_LIST_MOST]);
/* Both numbers from 1 to most. */
int cli_grid(const cli_args *args, const char *option, int64_t most, int64_t *rows, int64_t *cols);

#endif

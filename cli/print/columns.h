/* SPDX-License-Identifier: MIT */
/* columns.h: a table of text cells on the terminal. */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include "cli/frame/cli.h"

#include "train/compare.h"

/* Aligned columns, texts left, numbers right, then the notes; frees the table. Columns that are details are
   left out. */
void cli_print_table(pe_table *t);

#endif

/* SPDX-License-Identifier: MIT */
/* print.h: tables of text cells, and values as JSON. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "bench/bench.h"
#include "cli/frame/cli.h"
#include "files/arrays/json.h"
#include "files/arrays/text.h"
#include "train/compare.h"

/* Aligned columns, texts left, numbers right, then the notes, in lines of cli_width(); frees the table.
   Columns that are details are omitted. */
void cli_print_table(pe_table *t);
void cli_print_indented(pe_table *t, int indent);

/* The same of a table of `count` rows, each filled by `set` (0: no memory). An exit status; `who` is the
   command for its sentence. */
int cli_print_rows(const char *who, const pe_column *columns, int column_count, int count,
                   int (*set)(pe_table *t, int row, const void *from), const void *from);

/* Prints the value, takes it over (NULL: no memory for it) and returns the exit status. Reals have so many
   digits; 0: as many as they need. A write that fails shows when standard output is closed. */
int     cli_print_json(json_t *value, size_t digits);
json_t *cli_json_real(double x);         /* null where there is no number */
json_t *cli_json_text(const char *text); /* null where there is none or ""; what does not show itself is ? */
/* The words of a text as a list. */
json_t *cli_json_words(const char *text, const char *separators);
/* Measured rows: an object per row with goal, name, value, q1, q3, limit, unit, wanted, met; and reason where
   there is no value. NULL without memory. */
json_t *cli_json_bench(const pe_bench_row *rows, int count);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * extend.h: a checkpoint whose learned table of positions is longer, or of another grid
 *
 * The new rows are those that the library's own encodings make of the old ones: learned_resize (every kind of
 * interpolation), hierarchical, and learned read again and again. Rows before the positions stay: class
 * tokens, and the rows that RoBERTa and OPT leave free. The configuration beside the checkpoint follows, and
 * so does a stored list of position ids. First a plan, which reads and refuses; then the run, which writes.
 */
#ifndef PE_CONVERT_EXTEND_H
#define PE_CONVERT_EXTEND_H

#include <posenc/files.h>

#include "files/arrays/checkpoint.h"

typedef struct pe_extend_wish {
    int64_t     length; /* positions; 0: a grid */
    int64_t     grid[2];
    const char *how;    /* a kind of learned_resize, "repeat", "hierarchical" */
    const char *tensor; /* the table's name; NULL: the only one that has such a name */
} pe_extend_wish;

typedef struct pe_extend {
    const char    *path;
    pe_checkpoint  c;
    pe_extend_wish wish;
    int            table, ids; /* tensors; -1: there is none */
    posenc_dtype   dtype;
    int64_t        rows, prefix, old_rows, dim; /* of the new table in all; rows kept; of the old one */
    int64_t        old_grid[2];                 /* 0: a line */
    char          *config, *config_text; /* path beside the file and what it shall say; NULL: nothing there */
    char           note[200];            /* what the caller should know; "" */
} pe_extend;

/* Errors: FILE, FORMAT (no such table, several: by their names; a type that is no float), ARGUMENT (a length
   or grid that changes nothing or cannot be had), MEMORY. `path` and the wish's texts must live as long as
   the plan, which is the caller's to free in either case. */
posenc_status pe_extend_plan(pe_extend *x, const char *path, const pe_extend_wish *wish, posenc_error *err);
/* Where the new configuration goes, malloc'd: config.json beside the output; NAME.config.json where that is
   the old table's and the old file stays, or another model's or output's (beside.h). NULL: none is written,
   or no memory. */
char *pe_extend_config(const pe_extend *x, const char *output);
/* Writes the checkpoint and, where there is one beside the old, its configuration. Memory: the table
   in float64, some MiB and the header. */
posenc_status pe_extend_run(const pe_extend *x, const char *output, pe_progress progress, posenc_error *err);
void          pe_extend_free(pe_extend *x);

#endif

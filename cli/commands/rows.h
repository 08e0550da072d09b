/* SPDX-License-Identifier: MIT */
/*
 * rows.h: which rows of a table a command asks for: --length, --grid or --positions
 *
 *     --length 512                 512 tokens, from the encoding's first position on
 *     --grid 14x14                 the tokens of a grid, in the encoding's own order
 *     --positions 0,1.5,7          these positions; of several coordinates 0:0,0:1
 *     --positions F                those of a file: [L], or [L,N] for N coordinates
 *
 * A grid is a matter of settings where the encoding numbers its tokens itself (MoCo v3 goes down the columns,
 * class tokens come first): rooms name it `shape`, `grid_out`, or `height` and `width`. Where it has no such
 * setting but as many coordinates as the grid has axes, its tokens are listed row by row. How many
 * coordinates a position has may itself be a matter of the grid, or of the positions given (sinusoidal_nd's
 * shape).
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "cli/commands/calc.h"
#include "plot/plot.h"

enum { CLI_MAX_AXES = 8, CLI_GRID_TEXT = PE_SETTINGS };

typedef struct cli_rows {
    const char   *command;            /* whose options they are, for messages */
    int64_t       length;             /* rows; 0: those of the grid */
    int64_t       grid[CLI_MAX_AXES]; /* axes of them */
    int           axes;
    int           is_numbered; /* the grid is one of settings, whose tokens the encoding numbers */
    posenc_tensor list;        /* [L,N] F64 of --positions; no data: a range */
    double        last;        /* the largest of them */
} cli_rows;

/* Exactly one of the options. What is made lives as long as `in`, which a file of positions fills. */
void cli_rows_read(cli_rows *rows, const cli_args *args, pe_calc *in);

/* Only the sizes of --grid, as many as there are. An exit status. */
int cli_rows_read_grid(cli_rows *rows, const char *text);

/* "height=3 width=5": settings that make e's grid this one, or that follow from the positions given; empty
   where it has none. An exit status. */
int cli_rows_settings(cli_rows *rows, const posenc_encoding *e, char text[CLI_GRID_TEXT]);
/* The positions of a run of e for these sizes, and its length. `tokens`: posenc_rows_tokens. */
posenc_positions cli_rows_positions(cli_rows *rows, const posenc_encoding *e, int64_t tokens, pe_calc *in);

#endif

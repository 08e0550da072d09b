/* SPDX-License-Identifier: MIT */
/* calc.h: a calculation (verify/calc.h) of a command: settings from options, errors and warnings. */
#ifndef CLI_CALC_H
#define CLI_CALC_H

#include "cli/frame/cli.h"
#include "verify/calc.h"

/* Joins every --set NAME=VALUE into one text. */
const char *cli_calc_settings(pe_calc *p, const cli_args *args);

/* What help pages say of CSV. */
#define CLI_CALC_CSV                                                                                       \
    "In CSV a line such as # q 2x3x4 names the array below it (2 heads, 3 positions, 4 channels); each "   \
    "line "                                                                                                \
    "of numbers is a row of its last axis, heads one after the other. Without a shape one line is a list " \
    "and "                                                                                                 \
    "several are [lines,numbers of a line]."

/* Refuses -o where it ends in none of these (text such as ".npz .csv") and is not "-"; it may be missing. */
void cli_calc_output(pe_calc *p, const cli_args *args, const char *endings);
/* Writes p's results to the output, or without one prints them as CSV. */
posenc_status cli_calc_write(pe_calc *p, const char *output);

/* Refuses an array whose axes are not those of heads, so many of them (at least two, but in text one); an
   empty one too. */
void cli_calc_check_heads(pe_calc *p, const char *name, const posenc_tensor *t, int32_t axes, int is_text,
                          int is_blhd);
/* [B,H,L,D] of the elements at `data`, which lie in the order of a file's array: [D], [L,D], [H,L,D] or
   [B,H,L,D], or with the last heads before the width (blhd). A complex number is two channels. */
posenc_tensor cli_calc_heads(const posenc_array *array, int is_blhd, void *data, posenc_dtype dtype);

/* Takes over an exit status whose sentence was printed. */
void cli_calc_said(pe_calc *p, int status);
/* Prints what is wrong, once; the exit status. `end` also frees everything. */
int cli_calc_status(pe_calc *p);
int cli_calc_end(pe_calc *p);

/* Frequencies and factors that a rotation asks for are never made up: refuses those that nobody has given. */
void cli_calc_need_rotary(pe_calc *p);

/* Warns of arrays that nobody asked for, except results (out_*, g_*) and what has a prefix given here. */
void cli_calc_warn_unused(const pe_calc *p, const char *passed_over);
/* A warning for each parameter that training would have changed and the file lacks. */
void cli_calc_warn_initial(const pe_calc *p);

#endif

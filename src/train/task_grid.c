/* SPDX-License-Identifier: MIT */
/*
 * task_grid.c: shift in two dimensions: grid
 *
 * n x n random symbols, row by row, without a mask. One cell holds MARK instead, and there the answer is the
 * symbol DOWN rows below and RIGHT columns beside it; the mark is placed so that there is one. In the
 * row-major order that offset is DOWN n + RIGHT tokens, another number for every n: what learned it on 8 x 8
 * as a distance on a line fails on 12 x 12, what learned it as an offset of rows and columns does not. For
 * encodings of a grid alone.
 */
#include "train/task.h"

enum { SIDE = 8, DOWN = 1, RIGHT = 2 };
enum { UNTESTED = 1 << PE_TASK_HALF | 1 << PE_TASK_4 | 1 << PE_TASK_8 };

static int64_t square(int64_t n)
{
    return n * n;
}

static void make_grid(pe_draws *d, int64_t n, unsigned char *symbols, int16_t *targets)
{
    for (int64_t i = 0; i < n * n; i++)
        symbols[i] = pe_draw_symbol(d);
    const int64_t row = pe_draw(d, n - DOWN), column = pe_draw(d, n - RIGHT), cell = row * n + column;
    targets[cell] = symbols[cell + DOWN * n + RIGHT];
    symbols[cell] = PE_MARK;
}

const pe_task pe_task_grid = {.name     = "grid",
                              .title    = "which symbol stands one row down, two columns right of the mark?",
                              .asks     = "does it know rows and columns?",
                              .full     = 1,
                              .L        = SIDE,
                              .least    = SIDE,
                              .symbols  = PE_TASK_SYMBOLS,
                              .classes  = PE_TASK_SYMBOLS,
                              .chance   = 1.0 / PE_ALPHABET,
                              .steps    = 1500,
                              .untested = UNTESTED,
                              .grid     = 1,
                              .tokens   = square,
                              .make     = make_grid};

/* SPDX-License-Identifier: MIT */
/*
 * rows.h: the pass that adds rows of a table to the embeddings
 *
 * A room makes rows in double for a list of positions, of one coordinate or several; this adds them to x in
 * any storage type, block by block, and hands cotangents back. Where all items of a batch stand at the same
 * positions a row is made once and used for each; the backward sums the batch before it asks the room.
 */
#ifndef PE_ENGINE_ROWS_H
#define PE_ENGINE_ROWS_H

#include "base/positions.h"
#include "base/arena.h"
#include "engine/rotation/ladder.h"
#include "engine/rows/sequence.h"

typedef struct pe_rows_run {
    pe_part part;
    int64_t width;
    int64_t N;     /* coordinates of a position */
    double  first; /* added to positions given as a range */
    void (*locate)(const pe_problem *p, int64_t s,
                   double at[]); /* where token s of a range stands; NULL: at s */
    void (*rows)(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[]);
    void (*rows_back)(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[]);
    const pe_ladder  *waves;    /* the same rows without an x, in float, where there are many; may be NULL */
    double            blank;    /* of waves: position of a zero row, NAN: none */
    pe_sequence       sequence; /* takes the place of rows and rows_back where it has rows */
    double           *ready;    /* all rows of that table, made before the run; NULL: none */
    int64_t           B, L;
    posenc_positions  pos;
    posenc_tensor     x, y; /* x may have no data; backward: x = dy, y = dx (may have no data) */
    pe_team           team;
    const pe_kernels *kernels;
} pe_rows_run;

/* The memory of any run of the plan; and the run. */
void pe_rows_forward_lay_out(const pe_rows_run *r, pe_arena *arena);
void pe_rows_backward_lay_out(const pe_rows_run *r, pe_arena *arena);
void pe_rows_forward_run(const pe_rows_run *r, pe_arena *arena);
void pe_rows_backward_run(const pe_rows_run *r, pe_arena *arena);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * ready.h: tables of the tiled executor, and those that are made once for many runs
 *
 * A member by distance is a table of rows, one for each distance, which a run makes in its workspace. With
 * parameters that are bound (api/bound.c) it is there before the run: the same rows for all distances that a
 * plan is likely to meet, from the farthest past down, so that a run whose positions step by one reads its
 * own distances as a part of it. Only the bias needs more: a run subtracts the largest bias that it reaches
 * before it rounds. Where that is the largest of all, as it is when the nearest or the farthest bucket is
 * reached, the rows are those of the run; else it rounds its own from the exact numbers, which are kept.
 */
#ifndef PE_ENGINE_READY_H
#define PE_ENGINE_READY_H

#include "engine/score/attention.h"

/* Row x of all rows by distance stands for t = t0 + slope*x; rows first .. last-1 are reached by the
   masks. */
typedef struct pe_band {
    int64_t rows, t0, slope, first, last;
} pe_band;

/*
 * The table of one member: what is stored of these rows, rounded once. A member that clips distances is the
 * same beyond `low` and beyond `high`; so a run of rows that lies wholly beyond is read at the end of what is
 * stored (pe_row_in), and the table is no longer than what lies between and one run on either side.
 */
typedef struct pe_distance_table {
    float *rows, *columns; /* [H, count, row], and transposed [H, width, stride]; NULL: none, or not needed */
    int64_t width, row;    /* numbers per row: used, and with padding */
    int64_t count, stride; /* allocated rows; stride of a column */
    int64_t low, high;     /* where runs begin */
    int64_t flat_low, flat_high; /* a run that begins here, or beyond, is of one content */
    int64_t last_low;            /* the last row that is the same as all below it */
    int64_t first, last;         /* rows stored, the last not included */
    int     is_ready;            /* filled before the run */
} pe_distance_table;

typedef struct pe_ready {
    int64_t low, high; /* distances that have rows; none if low > high */
    int64_t margin[2]; /* the longest run of rows that may begin beside them: of vectors, of numbers */
    pe_band band;
    pe_distance_table by[PE_KINDS]; /* width 0: no table, runs make their own */
    double           *exact;        /* [H, rows of the bias] before they are rounded */
    double           *center;       /* [H] the largest of them, which the rows lack */
    int64_t          *peaks;        /* [H, 2] its first and its last row; -1: it is not the largest */

    float  *by_position[2]; /* by pe_side [heads, positions, D - a->D]: by_position.c; NULL: none */
    int64_t positions;      /* 0, 1, 2, ... that have rows there */
} pe_ready;

/* What it is to hold: distances low .. high, none if low > high, and so many positions. */
typedef struct pe_ready_extent {
    int64_t low, high, positions;
} pe_ready_extent;

/* Memory; numbers of the parameters that are in a->parts. `lent` is for the time of making them. Both count
   on arenas without memory. */
pe_ready pe_ready_lay_out(const pe_attention *a, const pe_ready_extent *of, pe_arena *arena);
void     pe_ready_fill(const pe_ready *r, const pe_attention *a, pe_arena *lent);

/* ---- by_position.c: the same of numbers by position ---- */

void pe_by_position_lay_out_ready(pe_ready *r, const pe_attention *a, int64_t positions, pe_arena *arena);
void pe_by_position_make_ready(const pe_ready *r, const pe_attention *a, pe_arena *lent);

#endif

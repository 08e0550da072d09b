/* SPDX-License-Identifier: MIT */
/*
 * sequence.h: rows that follow from each other, made once per run
 *
 * Most rooms make any row by itself. Where each row is a step from the one before (the states of an ODE) that
 * would cost the square of the length; so a run makes rows 0 .. n-1 into a table, n as far as its positions
 * reach, and reads them from there. Backward the cotangents of all positions are summed into a second table,
 * and the room walks it from its end to its beginning. A row is `lanes` equal pieces that know nothing of
 * each other. A few of them go together, so that what they share is loaded once for all; such groups run in
 * parallel. How many go together follows from the number of lanes only, and each group sums gradients of its
 * own, which are added in the order of the groups: so the bits do not depend on the threads.
 */
#ifndef PE_ENGINE_SEQUENCE_H
#define PE_ENGINE_SEQUENCE_H

#include "base/arena.h"
#include "base/parallel.h"
#include "engine/score/terms.h"
#include "kernels/kernels.h"

/* Lanes first .. first+count-1, what multiplies matrices for them, and whose cancelling ends them early. */
typedef struct pe_lane_group {
    int64_t          first, count;
    pe_product64_fn *product;
    const pe_team   *team;
} pe_lane_group;

/* What a room brings. Lane l has the columns l*w .. l*w+w-1 of each row, w = width / lanes. */
typedef struct pe_sequence {
    int64_t (*rows)(const pe_problem *p); /* of the longest table a run may ask for; NULL: no sequence */
    int64_t (*lanes)(const pe_problem *p);
    int64_t (*scratch)(const pe_problem *p, int64_t lanes); /* doubles a group of so many works with */
    /* Rows 0 .. n-1 of a group. */
    void (*make)(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                 double table[], double scratch[]);
    /* From the cotangents drows [n, width] to parameters, adding; table holds what make made. */
    void (*make_back)(const pe_problem *p, const double *const par[], const pe_lane_group *group, int64_t n,
                      const double table[], const double drows[], double scratch[], double *const dpar[]);
} pe_sequence;

/* Sums of the group that a thread is at: one block per parameter, NULL where it is not wanted. */
typedef struct pe_lane_sums {
    double *dpar[PE_HOOK_PARAMS];
} pe_lane_sums;

/* The table of one run, in its workspace. */
typedef struct pe_sequence_table {
    const pe_sequence *room;
    const pe_part     *part;
    int64_t            width, n;
    pe_team            team;
    const pe_kernels  *kernels;
    double            *rows, *drows; /* [longest, width]; drows backward only */
    double           **scratch;      /* [threads] */
    pe_lane_sums      *sums;         /* [threads], backward only */
    int64_t            group0;       /* first of the groups under way */
} pe_sequence_table;

/* On an arena without memory it only counts; then all parameters count as wanted. */
pe_sequence_table pe_sequence_lay_out(const pe_sequence *room, const pe_part *part, int64_t width,
                                      const pe_kernels *kernels, const pe_team *team, int backward,
                                      pe_arena *arena);

/* Rows 0 .. n-1; backward their cotangents become 0. */
void pe_sequence_make(pe_sequence_table *t, int64_t n);
/* out [n, width]: the rows at whole positions pos[0 .. n-1]. */
void pe_sequence_read(const pe_sequence_table *t, const double pos[], int64_t n, double out[]);
/* The cotangents of these rows, adding. */
void pe_sequence_add(pe_sequence_table *t, const double pos[], int64_t n, const double dout[]);
/* All cotangents to the parameters. */
void pe_sequence_back(pe_sequence_table *t);

#endif

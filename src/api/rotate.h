/* SPDX-License-Identifier: MIT */
/*
 * rotate.h: what runs that rotate have in common
 *
 * posenc_rotate and its tables (rotate.c), rotation from one plan to another (reroute.c) and the numbers of a
 * rotation (angles.c) open in the same way: is there a rotary part, do the rows fit it, at which positions do
 * they stand, and which rotation do parameters and length make of it.
 */
#ifndef PE_API_ROTATE_H
#define PE_API_ROTATE_H

#include "api/objects.h"

/* Has the plan a rotary part? `who` opens the sentence, here and below. */
posenc_status pe_rotary_start(const posenc_plan *plan, const char *who, posenc_error *err);

/* A tensor of rows and, if `to` is not NULL, where they go; their names. */
posenc_status pe_rotary_check_rows(const posenc_plan *plan, const posenc_tensor *from,
                                   const posenc_tensor *to, int64_t heads, const char *const names[2],
                                   posenc_error *err);

/* Parameters, workspace, and the rotation made of them. */
posenc_status pe_rotary_open(const posenc_plan *plan, const posenc_tensor *params, posenc_tensor *dparams,
                             double length, const char *who, pe_numbers *numbers, pe_run_turn *turn,
                             void *workspace, pe_arena *arena, posenc_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * rotary.h: the parts of a rotation, for whoever rotates elsewhere, explains, draws or keeps a cache
 *
 * posenc_rotate and posenc_attend (posenc.h) need none of this. Here are the tables, frequencies, pairs and
 * angles that they rotate by, and cached keys moved to other positions or another rotation. Every call wants
 * a plan with a part at place rotary, UNSUPPORTED if it has none; angles are in radians. The rules and the
 * errors of runs that posenc.h states hold here too.
 */
#ifndef POSENC_ROTARY_H
#define POSENC_ROTARY_H

#include <posenc/posenc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Coordinates of a position that the plan's rotary part reads, or without one its score part (t5_nd): q_pos
   and k_pos of rotation and attention are arrays [L,N] or [B or 1, L, N] then. A range gives all N
   coordinates the same number, as text has it among pictures. Other parts have 1. */
POSENC_API int posenc_rotary_coordinates(const posenc_plan *plan);

/* Heads whose frequencies are their own: H where each has a matrix (rope[per_head=yes]), else 1. */
POSENC_API int64_t posenc_rotary_heads(const posenc_plan *plan);

/* Which positions, and the rotary part's parameters as in posenc_rotate_io. */
typedef struct posenc_rotary_in {
    size_t               size; /* sizeof(posenc_rotary_in) */
    posenc_positions     pos;
    const posenc_tensor *params;
    const posenc_bound  *bound; /* NULL, or in place of params */
} posenc_rotary_in;

typedef enum posenc_side { POSENC_SIDE_QUERIES = 0, POSENC_SIDE_KEYS } posenc_side;

/* Cosines and sines that posenc_rotate rotates by, for whoever rotates several tensors at the same positions:
   table [B,L,width] F32, last stride 1, width = posenc_rotary_width (0 without a rotary part). A row holds M
   cosines, then M sines, magnitude included (of an image encoder that pairs within the part of each
   coordinate, such for each part), and for queries the temperature if there is one. Rows of queries and of
   keys differ where the width does, and for xpos. Every number is within 0.501 ulp of the exact one.
   Workspace: ROTATE. Also UNSUPPORTED: heads with frequencies of their own. */
POSENC_API int64_t       posenc_rotary_width(const posenc_plan *plan, posenc_side side);
POSENC_API posenc_status posenc_rotary_table(const posenc_plan *plan, posenc_side side,
                                             const posenc_rotary_in *in, posenc_tensor *table,
                                             const posenc_workspace *work, posenc_error *err);

/* Writes the M frequencies (radians per position) of the rotary part to w[0..M-1], M to *pairs; w may be NULL
   to ask for M; *magnitude (may be NULL) receives the factor on cosine and sine, NaN where it changes with
   the position (xpos). A schedule that follows the length gives those of a short sequence. UNSUPPORTED: w of
   frequencies that are parameters; ask posenc_rotary_pairs. */
POSENC_API posenc_status posenc_rotary_frequencies(const posenc_plan *plan, double *w, int64_t *pairs,
                                                   double *magnitude, posenc_error *err);

/* What a rotation does to one pair of channels of a head. */
typedef struct posenc_rotary_pair {
    int64_t from[2], to[2]; /* its channels in the input and in the result */
    int     coordinate;     /* which one it follows; -1: a sum over all, with frequencies of a matrix */
    double  w;              /* radians per step of it; NaN for a matrix */
} posenc_rotary_pair;

/* The M pairs of a run with these parameters whose sequence is `length` long (as posenc_rotate finds it).
   Workspace: ROTATE. */
POSENC_API posenc_status posenc_rotary_pairs(const posenc_plan *plan, const posenc_tensor *params,
                                             double length, posenc_rotary_pair *pairs,
                                             const posenc_workspace *work, posenc_error *err);

/* The angles of queries: angle [B or 1, L, M] F64, or [B or 1, L, H*M] head by head where posenc_rotary_heads
   says so, not reduced, as products rounded to double (of rounded angles the float32 numbers themselves);
   temperature [B or 1, L] F64, the factor on their rows. Either may have no data, or be NULL. The batch is
   that of the arrays. Do not take cosines of large angles: the rotation itself does not round the product.
   Workspace: ROTATE. */
POSENC_API posenc_status posenc_rotary_angles(const posenc_plan *plan, const posenc_rotary_in *in,
                                              const posenc_tensor *angle, const posenc_tensor *temperature,
                                              const posenc_workspace *work, posenc_error *err);

/* Keys that one plan rotated at from_pos, rotated on to where another plan would have put them at to_pos: a
   cache whose frequencies follow the length (dynamic, longrope), or whose positions move (a context shift:
   the same plan twice). Each pair is rotated by the difference of its exact angles and multiplied by the
   ratio of the magnitudes, in double, and stored once. k, to_k [B,G,L,D], the same tensor or not; both plans
   pair the same channels (layout_out may differ). Schedules without `length` take 1 + the largest of their
   own positions. Workspace: the ROTATE bytes of both plans together. SHAPE: plans that do not fit. */
typedef struct posenc_rerotate_io {
    size_t               size; /* sizeof(posenc_rerotate_io) */
    posenc_tensor        k, to_k;
    posenc_positions     from_pos, to_pos;
    const posenc_tensor *from_params, *to_params;
    const posenc_bound  *from_bound, *to_bound; /* each NULL, or in place of the params of its plan */
} posenc_rerotate_io;

POSENC_API posenc_status posenc_rotary_rerotate(const posenc_plan *from, const posenc_plan *to,
                                                const posenc_rerotate_io *io, const posenc_workspace *work,
                                                posenc_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/*
 * attend.h: machine 3, attention - what the executors share
 *
 * A pe_attention is one checked run: sizes, tensors, positions, masks, and the score's terms with their
 * numbers. Two executors take it. `reference` computes in double, one query row at a time, and reads like the
 * paper. `tiled` computes in float, one tile at a time, in linear memory. Both lay their pieces out in an
 * arena: on an arena without memory they only count, so a plan knows its workspace.
 */
#ifndef PE_ENGINE_ATTEND_H
#define PE_ENGINE_ATTEND_H

#include "base/positions.h"
#include "base/workspace.h"
#include "engine/score/terms.h"
#include "engine/rotation/rotation.h"
#include "kernels/kernels.h"

typedef struct pe_attention {
    pe_problem      sizes; /* of this run; `set` is not used; D is that of prepared rows */
    int64_t         D;     /* of the caller's q and k */
    const pe_terms *terms;
    pe_part         parts[PE_OWNERS]; /* those that filled the terms; p is NULL where no part did */
    const pe_turn *grown; /* a rotation whose scores grow or decay with distance (xPos); turn is then without:
                             growth.c */
    pe_turn        plain[2];
    const pe_turn *turn, *turn_keys; /* of queries and of keys; NULL: no rotation */

    posenc_tensor    q, k, v;
    posenc_positions q_pos, k_pos;   /* for distances, one coordinate */
    posenc_positions q_turn, k_turn; /* for the rotation: the same, or all coordinates */
    int              mask;
    pe_reach         reach;    /* of the masks by distance */
    int              unmasked; /* scores are wanted everywhere; the mask is for what a hook may see */
    posenc_tensor    key_allowed, allowed, q_segments, k_segments;
    pe_distances     distances;

    posenc_tensor o, lse;           /* outputs of the forward, inputs of the backward */
    posenc_tensor dout, dq, dk, dv; /* backward only */

    int               threads;
    int64_t           tile_q, tile_k, max_distances;
    posenc_products   products;
    const pe_kernels *kernels;
} pe_attention;

/* Executor 1. `scores` writes S before masks. */
void pe_reference_forward(const pe_attention *a, pe_arena *arena);
void pe_reference_backward(const pe_attention *a, pe_arena *arena);
void pe_reference_scores(const pe_attention *a, const posenc_tensor *S, pe_arena *arena);

/* Executor 2. */
void pe_tiled_forward(const pe_attention *a, pe_arena *arena);
void pe_tiled_backward(const pe_attention *a, pe_arena *arena);
void pe_tiled_scores(const pe_attention *a, const posenc_tensor *S, pe_arena *arena);

/* What the terms add whatever the content: bias [H,Lq,Lk], positions of batch item 0; in double. */
void pe_attend_bias(const pe_attention *a, const posenc_tensor *bias, pe_arena *arena);

/* growth[D]: by what the logarithm of a channel's share of q.k changes per token of distance; zeros where
   nothing turns. */
void pe_channel_growth(const pe_turn *grown, int64_t D, double growth[]);

/* Rows of a member for the distances t0 .. t0+n-1, and what becomes of their cotangents. */
void pe_member_fill(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                    int64_t n, double rows[]);
void pe_member_fold(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                    int64_t n, const double drows[]);

/* Numbers of pairs (i, j0 .. j0+n-1) of head h added to `to`, and their cotangents to where the caller wants
   them. */
void pe_pairs_load(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n, double to[]);
void pe_pairs_add(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n,
                  const double cotangents[]);
/* Where the floats of a row of pairs lie; NULL if the caller's numbers are no floats. */
const float *pe_pairs_at(const pe_attention *a, int64_t h, int64_t i, int64_t j0);

/* Are there cotangents to be added? */
static inline int pe_pairs_wanted(const pe_attention *a)
{
    const pe_part *part = &a->parts[PE_SCORE];
    return a->terms->pairs.matrix && part->dleft && part->dleft[a->terms->pairs.param];
}

/* Does anybody want the gradient of any of these parameters in double? */
int pe_part_wanted(const pe_part *part);

/* Does anybody want gradients that this member folds? */
int pe_member_wanted(const pe_part *part, const pe_by_distance *m);

/* May query i of item b, head h see key j? All masks together. */
int pe_is_allowed(const pe_attention *a, int64_t b, int64_t h, int64_t i, int64_t j);

/* Segment of element s of item b; 0 where the run brought none. */
int64_t pe_segment(const posenc_tensor *segments, int64_t b, int64_t s);

/* Did the run bring segments? Otherwise all tokens are of one. */
static inline int pe_segments_known(const pe_attention *a)
{
    return a->q_segments.data || a->k_segments.data;
}

/* G_h[z], D doubles, and its gradient (NULL if not wanted). */
static inline const double *pe_segment_vector(const pe_attention *a, int64_t h, int z)
{
    return a->parts[PE_SCORE].par[a->terms->G] + (z * a->sizes.H + h) * a->sizes.D;
}

static inline double *pe_segment_gradient(const pe_attention *a, int64_t h, int z)
{
    double *const *dpar = a->parts[PE_SCORE].dpar;
    return !dpar || !dpar[a->terms->G] ? NULL : dpar[a->terms->G] + (z * a->sizes.H + h) * a->sizes.D;
}

/* Does a token at this position stand apart from the bias by distance? */
static inline int pe_is_apart(const pe_attention *a, double position)
{
    return a->terms->hook.apart && a->terms->hook.apart(a->parts[PE_SCORE].p, position);
}

/* Do the terms need whole distances? */
static inline int pe_uses_distance(const pe_terms *terms)
{
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (pe_has(terms, kind))
            return 1;
    return 0;
}

/* u_h or w_h: D doubles, or NULL. */
static inline const double *pe_head_vector(const pe_attention *a, int which, int64_t h)
{
    return which == PE_NONE ? NULL : a->parts[PE_SCORE].par[which] + h * a->sizes.D;
}

/* Its gradient, or NULL if nobody wants it. */
static inline double *pe_head_vector_gradient(const pe_attention *a, int which, int64_t h)
{
    double *const *dpar = a->parts[PE_SCORE].dpar;
    return which == PE_NONE || !dpar || !dpar[which] ? NULL : dpar[which] + h * a->sizes.D;
}

#endif

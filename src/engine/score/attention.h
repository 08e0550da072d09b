/* SPDX-License-Identifier: MIT */
/*
 * attention.h: one run of attention, and what is said of its pairs
 *
 * A pe_attention is one checked run: sizes, tensors, positions, masks, and the score's terms with their
 * numbers. Executors ask it for rows of keys and values (keys.c), for rows by distance (members.c) and, pair
 * by pair, for numbers that lie in the caller's tensor, masks and segments (pairs.c).
 */
#ifndef PE_ENGINE_ATTENTION_H
#define PE_ENGINE_ATTENTION_H

#include "base/positions.h"
#include "base/arena.h"
#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/rotation/rotation.h"
#include "engine/score/terms.h"
#include "kernels/kernels.h"

/* Where a part of a run begins in it: what rooms, parameters and pages number by the whole run. */
typedef struct pe_beginning {
    int64_t b, h, g, i, j; /* item, query head, key head, query, key */
} pe_beginning;

/* Products of the queries of a part with vectors by distance, made by pair (tiled/project.c): that of head h,
   query i, key j at[h*head + i*row + j], scale included. */
typedef struct pe_projected {
    const float *at;
    int64_t      head, row;
} pe_projected;

/* Rows that grow (xpos) are multiplied by a factor about the middle of their tile, which has at most so many
   rows; its logarithm is at most so large, and is cut there: tiled/tile_rows.c. */
enum { PE_GROWN_ROWS = 64, PE_MOST_GROWTH = 40 };

/* The factor of query i of item b and head h: at[b*item + h*head + i]; its gradients, of all heads. */
typedef struct pe_tempered {
    double *at, *gradient; /* NULL: there is none; not wanted */
    int64_t item, head;
} pe_tempered;

/* Running sums of the whole run: drift.c. */
typedef struct pe_drifted {
    posenc_tensor
             given[PE_SIDES]; /* [B, Ht, Lk, 1] F64, by the caller; no data: they are made of the tokens */
    double  *sums[PE_SIDES];  /* [B, Ht, stored] after every so many keys */
    int64_t  every, stored;
    double  *query[PE_SIDES];  /* [B, H, Lq] of queries */
    int64_t *index[PE_SIDES];  /* [B, Lq] how many gates those have */
    double  *dquery[PE_SIDES]; /* backward, of the item at hand: [H, Lq] and */
    double  *dkey[PE_SIDES];   /* [H, Lk], cotangents of the sums */
    double  *fold;             /* [Lk + 1] */
    posenc_tensor key_allowed; /* of the whole run, as are the sizes */
    int64_t       heads, queries, keys;
} pe_drifted;

/* Angles of the whole run that a token input makes: turn.c. */
typedef struct pe_turned {
    const posenc_tensor *token; /* [B, Ht, Lk, n], Ht 1 or G; NULL: the caller gives running sums of it, */
    posenc_tensor        given; /* F64 of the same shape; no data: there are none */
    posenc_tensor       *dtoken;
    double              *sums; /* [B, Ht, stored, n], of steps */
    int64_t              every, stored;
    int64_t             *own;          /* [B, Lq] which token a query is; -1: it stands before the first */
    int64_t             *first, *next; /* backward [B, Lk], [B, Lq]: lists of the queries of a token */
    double              *walk, *back;  /* of the threads */
    double              *dkey;         /* backward, of the item at hand: [H, Lk, D] of a wall */
    posenc_tensor        key_allowed, k_segments;
    int64_t              heads, share, queries, keys; /* key heads, and query heads of each */
} pe_turned;
/* The chain of the whole run: chain.c. */
typedef struct pe_chained {
    int64_t *own; /* [B, Lq] the last key of each query's chain */
    int64_t  queries;
    double  *state; /* [H,Lq,1+D] of a part, which goes on where the one to its right ended: has a query's
                       chain  begun, and what became of it as the executor left it; NULL: a whole run */
} pe_chained;

typedef struct pe_attention {
    pe_problem       sizes; /* of this run; `set` is not used; D is that of prepared rows */
    pe_beginning     from;  /* of a part (parts.c); zeros: the run is whole */
    int64_t          D;     /* of the caller's q and k */
    const pe_terms  *terms;
    pe_part          parts[PE_OWNERS]; /* those that filled the terms; p is NULL where no part did */
    const pe_rotary *grown; /* a rotation whose scores grow or decay with distance (xPos); rotary is then
                             without: tile_rows.c */
    pe_rotary        plain[2];
    const pe_rotary *rotary, *rotary_keys; /* of queries and of keys; NULL: no rotation */

    posenc_tensor q, k, v;
    const posenc_tensor
                    *tokens[PE_OWNERS][PE_MAX_TOKENS];  /* of the whole run, as the part numbers them, and */
    posenc_tensor   *dtokens[PE_OWNERS][PE_MAX_TOKENS]; /* their gradients; NULL: none, not wanted */
    posenc_positions q_pos, k_pos;                      /* for distances, one coordinate */
    posenc_positions q_coordinates,
        k_coordinates; /* for rotations and rooms with several: the same, or all */
    int           mask;
    pe_reach      reach;    /* of the masks by distance */
    int           unmasked; /* scores are wanted everywhere; the mask is for what a hook may see */
    posenc_tensor key_allowed, allowed, q_segments, k_segments;
    posenc_tensor pages;            /* of the only item: k and v lie in pages (keys.c); no data: in rows */
    posenc_tensor k_scale, v_scale; /* [G] of quantised rows; no data: 1 */
    pe_distances  distances;

    const struct pe_ready *ready; /* tables that were made with the parameters: tiled/ready.h; NULL: none */

    pe_temper_on temper_on; /* as the terms have it, but not of a bias; and its factors */
    pe_tempered  temper;
    int          has_sink; /* has the denominator one? Parts get theirs when they are joined */
    double      *dsink;    /* backward [B,H,Lq] its cotangents */
    double       softcap;  /* 0: none */
    int          has_rest; /* does what a stick leaves go to a value? Parts get it when they are joined */
    pe_drifted   drift;
    pe_turned    turn;
    pe_chained   chain;

    int          is_projected; /* a part whose products with A are there, or whose rows of A are ready */
    pe_projected projected;    /* no data: those rows are */

    posenc_tensor o, lse; /* outputs of the forward, inputs of the backward */
    double       *state;  /* [H,Lq,PE_HOOK_STATE] what a hook that travels starts from and leaves, of a part;
                             NULL: it starts from 0 */
    posenc_tensor dout, dlse, dq, dk, dv; /* backward only; dlse without data: 0 */

    /* No run yet but its largest sizes and the type of q: what only a run knows (positions, other storage,
       wanted gradients) is taken to be whatever needs most memory. */
    int for_any_run;

    int64_t whole_keys[2]; /* a few queries with at most so many keys are known to be one part: of the tiled
                              executor, of the reference; 0: not known */

    pe_team           team;
    int64_t           tile_q, tile_k, max_distances;
    posenc_products   products;
    const pe_kernels *kernels;
} pe_attention;

/* ---- members.c ---- */

/* Rows of a member for the distances t0 .. t0+n-1, and what becomes of their cotangents. */
void pe_members_fill(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                     int64_t n, double rows[]);
void pe_members_fold(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                     int64_t n, const double drows[]);

/* Does anybody want the gradient of any of these parameters in double? And gradients that this member
   folds? */
int pe_members_part_wanted(const pe_part *part);
int pe_members_wanted(const pe_part *part, const pe_by_distance *m);

/* Adds a row of cotangents to where the caller has the gradient. */
static inline void pe_add_row(void *to, posenc_dtype dtype, const double *row, int64_t width)
{
    for (int64_t d = 0; d < width; d++) {
        if (dtype == POSENC_DTYPE_F64)
            ((double *)to)[d] += row[d];
        else
            ((float *)to)[d] += (float)row[d];
    }
}

/* ---- keys.c: rows of keys and values where the caller has them ---- */

/* Row j of k or v (t is a->k or a->v). */
const void *pe_keys_row(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t g, int64_t j);

/* Does the caller's mask, of a part or of the whole run, hide key j of item b? No data: it hides none. */
static inline int pe_keys_is_padding(const posenc_tensor *key_allowed, int64_t b, int64_t j)
{
    return key_allowed->data &&
           !pe_tensor_integer_at(key_allowed, (key_allowed->shape[0] == 1 ? 0 : b) * key_allowed->stride[0] +
                                                  j * key_allowed->stride[1]);
}

/* May no query of item b see key j, so that its rows are not read and count as zeros? */
int pe_keys_is_hidden(const pe_attention *a, int64_t b, int64_t j);

/* How many of the n keys from j on (n > 0) lie one after the other, and are hidden all or none. */
int64_t pe_keys_run(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t j, int64_t n);

/* Do keys lie in rows of floats of some kind, and are none hidden? Then they can be read like any tensor. */
int pe_keys_are_plain(const pe_attention *a);

/* What rows of key head g are multiplied by. */
double pe_keys_scale(const pe_attention *a, const posenc_tensor *t, int64_t g);

/* Row j in double, zeros if it is hidden. */
void pe_keys_load_double(const pe_attention *a, double *to, const posenc_tensor *t, int64_t b, int64_t g,
                         int64_t j, int64_t width);

/* ---- token inputs of queries ---- */

/* Row i of head h of a token input of the score part, or of its gradient. */
static inline void *pe_token_row(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t h,
                                 int64_t i)
{
    const int64_t share = a->parts[PE_SCORE].p->H / t->shape[1];
    return pe_tensor_row(t, a->from.b + b, (a->from.h + h) / share, a->from.i + i);
}

/* What is multiplied by rows of A in place of the query, and its gradient; NULL: nothing is; not wanted. */
static inline const posenc_tensor *pe_profile(const pe_attention *a)
{
    return a->terms->profile == PE_NONE ? NULL : a->tokens[PE_SCORE][a->terms->profile];
}

static inline posenc_tensor *pe_profile_gradient(const pe_attention *a)
{
    return a->terms->profile == PE_NONE ? NULL : a->dtokens[PE_SCORE][a->terms->profile];
}

/* ---- pairs.c ---- */

/* Numbers of pairs (i, j0 .. j0+n-1) of head h, and their cotangents to where the caller wants them. */
void pe_pairs_load(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n, double to[]);
void pe_pairs_add(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n,
                  const double cotangents[]);
/* Where the floats of a row of pairs lie; NULL if the caller's numbers are no floats. */
const float *pe_pairs_at(const pe_attention *a, int64_t h, int64_t i, int64_t j0);

/* Are there cotangents to be added? */
static inline int pe_pairs_wanted(const pe_attention *a)
{
    const pe_part *part = &a->parts[PE_SCORE];
    return a->terms->pairs.matrix && part->dtensor && part->dtensor[a->terms->pairs.param];
}

/* May query i of item b, head h see key j? All masks together. */
int pe_pairs_allowed(const pe_attention *a, int64_t b, int64_t h, int64_t i, int64_t j);

/* Segment of element s of item b; 0 where the run brought none. */
int64_t pe_pairs_segment(const posenc_tensor *segments, int64_t b, int64_t s);

/* Did the run bring segments? Otherwise all tokens are of one. */
static inline int pe_has_segments(const pe_attention *a)
{
    return a->q_segments.data || a->k_segments.data;
}

/* ---- temper.c: what is said query by query ---- */

/* Does the factor go into the rows of queries before they are multiplied? Otherwise, and where there is a
   softcap, scores are finished when all their terms are there. */
int pe_temper_folds(const pe_attention *a);
int pe_temper_finishes(const pe_attention *a);
/* Does anybody want its gradients? */
int pe_temper_is_wanted(const pe_attention *a);
/* Memory of a run; numbers; gradients to parameters. */
void pe_temper_lay_out(pe_attention *a, pe_arena *arena, int backward);
void pe_temper_fill(pe_attention *a);
void pe_temper_fold(const pe_attention *a);

static inline double pe_temper_at(const pe_attention *a, int64_t b, int64_t h, int64_t i)
{
    return a->temper.at ? a->temper.at[b * a->temper.item + h * a->temper.head + i] : 1;
}

/* The sink of a row, -infinity where there is none. It joins the denominator when all keys have: lse becomes
   that of both, and the output is to be multiplied by what is returned. Its share of a denominator that has
   it; what all cotangents of the scores of head h sum to for its sake; its gradients. */
double pe_sink_at(const pe_attention *a, int64_t b, int64_t h, int64_t i);
double pe_sink_join(const pe_attention *a, int64_t b, int64_t h, int64_t i, double *lse);
double pe_sink_share(const pe_attention *a, int64_t b, int64_t h, int64_t i, double lse);
void   pe_sink_lay_out(pe_attention *a, pe_arena *arena);
void   pe_sink_back(pe_attention *a);
double pe_sink_row_sum(const pe_attention *a, int64_t h);
void   pe_sink_fold(const pe_attention *a);

/* ---- own.c: which key a query is ---- */

/* Gates and angles are of tokens, and tokens are keys. The keys of a query's segment lie side by side, from
   `first` up to `end`, and their positions rise: pe_own_find looks for them among so many `keys`, which is
   quick where neighbours are of one segment. pe_own_count says how many of them stand before the query, or
   (with) not beyond it: the last of those is the query itself. */
typedef struct pe_own {
    int64_t keys, first, end, segment;
    int     is_found;
} pe_own;

void    pe_own_find(pe_own *own, const pe_attention *a, int64_t b, int64_t i);
int64_t pe_own_count(const pe_own *own, const pe_attention *a, int64_t b, int64_t i, int with);

/* ---- turn.c: angles that a token input makes ---- */

static inline int pe_turns(const pe_attention *a)
{
    return a->rotary && a->rotary->content != PE_CONTENT_NONE;
}

/* Gates of channels (wall.c): their running sums are these too. */
static inline int pe_walls(const pe_attention *a)
{
    return a->terms->wall.is_given;
}

/* Where a walk through the tokens of a row stands: what multiplies the frequencies there, or the sums. */
typedef struct pe_turn_walk {
    int64_t b, row, token;
    double *at; /* numbers of the token, and room for twice as many */
} pe_turn_walk;

/* What a rotation got and gave: rows from before it with their gradients; NULL: the side took no part. */
typedef struct pe_turn_back {
    const posenc_tensor *q, *dq, *k, *dk;
    double               sign;
} pe_turn_back;

/* Memory of a run; numbers. */
void pe_turn_lay_out(pe_attention *a, pe_arena *arena, int backward);
void pe_turn_fill(pe_attention *a);
/* Rows of the token input that the heads of a part read, and which of all of them query head h does. */
int64_t pe_turn_rows(const pe_attention *a);
int64_t pe_turn_row(const pe_attention *a, int64_t h);
/* A walk through a row of item b, and where query or key s of the part stands; memory for PE_TURN_WALK times
   as many doubles as a token has numbers. */
pe_turn_walk  pe_turn_start(const pe_attention *a, int64_t b, int64_t row, double *memory);
const double *pe_turn_at(const pe_attention *a, pe_turn_walk *x, pe_side side, int64_t s);
void          pe_turn_table(const pe_attention *a, const pe_rotation_table *t, pe_side side);
/* The gradient of the token input, of whole runs. */
void pe_turn_back_run(const pe_attention *a, const pe_turn_back *of);
/* Lists of the queries of each token of an item; is the token after this one of its segment? */
void pe_turn_list(const pe_attention *a, int64_t b);
int  pe_turn_adds(const pe_attention *a, int64_t b, int64_t token);

/* ---- wall.c: gates of channels ---- */

/* Backward, item by item: cotangents are 0; all of them to the token input, when dq is complete. Those of the
   sums of keys are added to where the executor finds them: turn.dkey, NULL if nobody wants them. */
void pe_wall_clear(const pe_attention *a);
void pe_wall_fold(const pe_attention *a, int64_t b);

/* ---- drift.c: running sums ---- */

static inline int pe_drifts(const pe_attention *a)
{
    return a->terms->drift.kind != PE_DRIFT_NONE;
}

/* Does anybody want its gradients? Must the cotangents of a row be added up, or is their sum known? */
int pe_drift_is_wanted(const pe_attention *a);
int pe_drift_is_open(const pe_attention *a);
/* Memory of a run; numbers. */
void pe_drift_lay_out(pe_attention *a, pe_arena *arena, int backward);
void pe_drift_fill(pe_attention *a);
/* c of all queries of a head from the first of the part on; of n keys where they lie, or in `to`. */
const double *pe_drift_queries(const pe_attention *a, int side, int64_t b, int64_t h);
const double *pe_drift_keys(const pe_attention *a, int side, int64_t b, int64_t h, int64_t j0, int64_t n,
                            double to[]);
/* Backward, item by item: cotangents are 0; those of queries whose sum is known; all of them to token inputs
   and parameters. */
void pe_drift_clear(const pe_attention *a);
void pe_drift_close(const pe_attention *a, int64_t b);
void pe_drift_fold(const pe_attention *a, int64_t b);

static inline void pe_drift_add(const pe_attention *a, int side, int64_t h, int64_t i, int64_t j, double dS)
{
    const double x = side == PE_BEHIND ? dS : -dS;
    a->drift.dquery[side][h * a->sizes.Lq + i] += x;
    a->drift.dkey[side][h * a->sizes.Lk + j] -= x;
}

/* ---- chain.c: queries that are transformed from key to key ---- */

static inline int pe_chains(const pe_attention *a)
{
    return a->terms->chain.is_given;
}

/* Memory of a run; numbers. Does anybody want gradients of w or beta? */
void pe_chain_lay_out(pe_attention *a, pe_arena *arena);
void pe_chain_fill(pe_attention *a);
int  pe_chain_is_wanted(const pe_attention *a);

/* The last key of the chain of query i of item b, as the part numbers keys: it may lie to either side. */
static inline int64_t pe_chain_own(const pe_attention *a, int64_t b, int64_t i)
{
    return a->chain.own[(a->from.b + b) * a->chain.queries + a->from.i + i] - a->from.j;
}

/* State of query i of head h of a part, which see above; NULL: the run is whole. */
static inline double *pe_chain_state(const pe_attention *a, int64_t h, int64_t i)
{
    return a->chain.state ? a->chain.state + (h * a->sizes.Lq + i) * (1 + a->sizes.D) : NULL;
}

/* w [n, stride] and beta [n] of keys j0 .. j0+n-1 of key head g; zeros where padding hides them. */
void pe_chain_load(const pe_attention *a, int64_t b, int64_t g, int64_t j0, int64_t n, double *w,
                   int64_t stride, double *beta);
/* Their gradients of item b, dw [G, Lk, stride] and dbeta [G, Lk], to where the caller wants them. */
void pe_chain_store(const pe_attention *a, int64_t b, const double *dw, int64_t stride, const double *dbeta);

/* One key head as the formula reads, for one query at a time: a product x.k_j for each key, x = q at first
   and transformed on the way; what is left of it stays in x. own: the last key of its chain. kept: NULL, or
   [Lk, D] x as it met each key; with that and the cotangents of products to those of everything, dq last. */
typedef struct pe_chain_keys {
    const double *K, *W, *beta; /* [Lk, D], [Lk, D], [Lk] */
    int64_t       Lk, D;
} pe_chain_keys;

void pe_chain_products(const pe_chain_keys *keys, int64_t own, const double *q, double *x, double products[],
                       double *kept);
void pe_chain_products_back(const pe_chain_keys *keys, int64_t own, const double *kept,
                            const double dproducts[], double *dq, double *dK, double *dW, double *dbeta);

/* ---- stick.c: weights that break a stick ---- */

static inline int pe_sticks(const pe_attention *a)
{
    return a->terms->stick.is_given;
}

/* Is the pair left out for its distance of 0? */
static inline int pe_stick_skips(const pe_attention *a, double P, double R)
{
    return !a->terms->stick.current && P == R;
}

/* Of n keys with finished scores z (-infinity: not allowed), *left the logarithm of what those to their right
   have left, which becomes that of what they leave: weights A and sigma(z). Backward g become the cotangents
   of z, *prefix the sum of g of the keys to their left. */
void pe_stick_weights(const pe_kernels *kernels, const double z[], int64_t n, double *left, double A[],
                      double share[]);
void pe_stick_back(const double share[], int64_t n, double dlse, double *prefix, double g[]);
/* The key whose value gets what query i leaves; -1: none does. own: see pe_own_find. */
int64_t pe_stick_own(const pe_attention *a, pe_own *own, int64_t b, int64_t i);

/* ---- parts of the terms ---- */

/* G_h[z], D doubles, and its gradient (NULL if not wanted). */
static inline const double *pe_segment_vector(const pe_attention *a, int64_t h, int z)
{
    const pe_part *part = &a->parts[PE_SCORE];
    return part->par[a->terms->G] + (z * part->p->H + a->from.h + h) * a->sizes.D;
}

static inline double *pe_segment_gradient(const pe_attention *a, int64_t h, int z)
{
    double *const *dpar = a->parts[PE_SCORE].dpar;
    return !dpar || !dpar[a->terms->G] ? NULL : dpar[a->terms->G] + (z * a->sizes.H + h) * a->sizes.D;
}

/* The smallest distance that the masks let through, with its sign. */
static inline int64_t pe_attention_nearest(const pe_attention *a)
{
    const int64_t low = a->distances.low, high = low + a->distances.count - 1;
    return low > 0 ? low : high < 0 ? high : 0;
}

/* Is a token at this position special, without the bias by distance? */
static inline int pe_attention_is_special(const pe_attention *a, double position)
{
    return a->terms->hook.is_special && a->terms->hook.is_special(a->parts[PE_SCORE].p, position);
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
    return which == PE_NONE ? NULL : a->parts[PE_SCORE].par[which] + (a->from.h + h) * a->sizes.D;
}

/* Its gradient, or NULL if nobody wants it. */
static inline double *pe_head_vector_gradient(const pe_attention *a, int which, int64_t h)
{
    double *const *dpar = a->parts[PE_SCORE].dpar;
    return which == PE_NONE || !dpar || !dpar[which] ? NULL : dpar[which] + h * a->sizes.D;
}

#endif

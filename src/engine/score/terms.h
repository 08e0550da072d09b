/* SPDX-License-Identifier: MIT */
/*
 * terms.h: what a score is made of - the one data structure between rooms and executors
 *
 *     S[h,i,j] = scale * [ (q_i + u_h).k_j + (q_i + w_h).A_h[t] + k_j.B_h[t] + (q_i + us_h).G_h[z] ] + b_h[t]
 *     + X_h(i,j) + c_h[i] - c_h[j]
 *                t = P(i) - P(j), z = 0 if query and key are of one segment, else 1; where a token input r is
 *                the profile, r_i.A_h[t] stands beside the brackets, not times scale
 *                then S = tau_i S (or q is tempered), S = c tanh(S/c); the softmax has exp(sink_h) more
 *     o[h,i]   = sum_j softmax(S)[i,j] * c_h[t] * ( v_j + r_h[t] )
 *
 * A room fills in the members it needs and leaves the others empty; the executors (reference/, tiled/)
 * compute scores, softmax, output and every gradient from the same members and know no encoding. Rooms see
 * and return double; the tiled executor rounds tables once to float. Each member has its adjoint next to it:
 * what `fill` writes, `fold` takes back to gradients of parameters, adding to dpar[i] where that is not NULL.
 */
#ifndef PE_ENGINE_TERMS_H
#define PE_ENGINE_TERMS_H

#include <posenc/posenc.h>

#include "base/angle.h"
#include "base/positions.h"
#include "base/settings.h"
#include "kernels/kernels.h"

/* The sizes of the problem at hand (glossary in posenc.h) and the room's settings, in the order of its
   table. */
typedef struct pe_problem {
    int64_t                     B, H, G, Lq, Lk, D, Dv, d_model, L;
    const pe_value             *set;
    double                      scale;   /* the factor of the products, once it is settled */
    const pe_kernels           *kernels; /* for members that are made of products, of waves or of gates */
    const posenc_tensor *const *tensor;  /* of a run: the caller's parameters, those that are read in place */
} pe_problem;

/* Which part of an encoding a member's numbers come from: that at place score, that at place weight, or the
   settings that every encoding has. */
typedef enum pe_owner { PE_SCORE, PE_WEIGHT, PE_COMMON, PE_OWNERS } pe_owner;

/* The numbers of a part at run time: its own problem, its parameters in double, and where their gradients
   add. A parameter that a member by distance reads itself (see pe_by_distance.row) is not there: it stays in
   the caller's tensor. */
typedef struct pe_part {
    const pe_problem           *p;
    const double *const        *par;     /* NULL where one is read in place and not in double */
    double *const              *dpar;    /* NULL, or one pointer per parameter, each may be NULL */
    const posenc_tensor *const *tensor;  /* the caller's tensors of those that stay there, */
    posenc_tensor *const       *dtensor; /* and of their gradients, as dpar */
    int                         count;   /* parameters, and the numbers in each */
    const int64_t              *sizes;
} pe_part;

/* Numbers at, at+1, ... of parameter `index`, wherever it is read. */
static inline void pe_read(const pe_problem *p, const double *const par[], int index, int64_t at, int64_t n,
                           double to[])
{
    const float *floats = par[index] ? NULL : (const float *)p->tensor[index]->data;
    for (int64_t i = 0; i < n; i++)
        to[i] = floats ? (double)floats[at + i] : par[index][at + i];
}

/* What a room says by distance: fill writes the rows of n distances t0, t0+1, ...; fold receives the sums of
   the cotangents over each of these distances. A row is one number (bias, gate), D numbers (A, B) or Dv
   numbers (r).

   A member whose rows are those of a parameter gives that parameter and `index` instead: which row of it each
   of n distances has, -1 for a row of zeros. A bias may be `divided` by the scale. Rows that are made of the
   parameter are loaded by the room, each once for the neighbours that share it, and their cotangents stored.

   Where the parameter has one row for each distance, it gives `row`: such a table is as long as the
   positions, and is then neither copied nor summed in double. Its heads share it.

   A member of vectors that are sinusoids of the distance times a parameter W [ranks,H,D] also says
   `waves`: it writes n of their ranks/2 frequencies, from `first` on. The tiled executor makes the sinusoids
   and multiplies them with `param` itself, for all heads at once: row_h(t)[d] = sum_m R(t)[m] * W[m,h,d],
   R(t) the sines, then the cosines, of t times each frequency, t not below `least` and not above `most`.

   clipped: all t <= low have one row, and so have all t >= high, so nothing is stored for those beyond.
   `owner` is filled in by the plan. */
typedef struct pe_by_distance {
    void (*fill)(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 double rows[]);
    void (*fold)(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 const double drows[], double *const dpar[]);
    void (*index)(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[]);
    int divided;
    void (*load)(const pe_problem *p, const double *const par[], int param, int64_t h, int64_t row,
                 double to[]);
    void (*store)(const pe_problem *p, const double *const par[], int param, int64_t h, int64_t row,
                  const double drow[], double *const dpar[]);
    int64_t (*row)(const pe_problem *p, int64_t t);
    void (*waves)(const pe_problem *p, int64_t first, int64_t n, pe_frequency frequency[]);
    int64_t ranks, least, most;
    int     param; /* of index, of row or of waves */
    int     clipped;
    int64_t low, high;
    /* bias: rows are slope(h) * |t|, so that there is no fill and an executor may do without a table. */
    double (*slope)(const pe_problem *p, const double *const par[], int64_t h);
    pe_owner owner;
} pe_by_distance;

/* A number for each pair, added to the score, that is read where the caller has it: a parameter of [.., Lq,
   Lk] numbers by place in the tensors, of which head h has matrix number `matrix`. It is neither copied nor
   are its gradients held twice. Heads may share a matrix. */
typedef struct pe_by_pair {
    int64_t (*matrix)(const pe_problem *p, int64_t h);
    int param, shared;
} pe_by_pair;

/* All coordinates of some tokens, beginning with token `first` of item b. */
typedef struct pe_places {
    const posenc_positions *pos;
    int64_t                 b, first;
} pe_places;

static inline double pe_place_of(const pe_places *x, int64_t s, int coordinate)
{
    return pe_positions_coordinate(x->pos, x->b, x->first + s, coordinate);
}

/* A rectangle of scores: queries at q_pos[0..rows-1], keys at k_pos[0..cols-1]. The lower half is there for a
   hook that asks for content. */
typedef struct pe_tile {
    int64_t       h, rows, cols, stride; /* x element (r,c) at r*stride + c */
    int64_t       i0, j0;                /* its first query and key in the tensors */
    const double *q_pos, *k_pos;         /* of a room with several coordinates: tokens, counted */
    pe_places     q_places, k_places;
    double        scale;
    const double *q;        /* [rows, D] queries, rotated, unscaled */
    const double *s;        /* as x: scale * q.k where the pair is allowed, -infinity elsewhere */
    double       *state;    /* [rows, hook.state] carried from key tile to key tile of the same queries */
    int           backward; /* see pe_tile_hook */
    double       *ds, *dq;  /* visit_back adds the cotangents of s (as x) and of q [rows, D] */
} pe_tile;

/*
 * X: for what fits no other member
 *
 * visit writes X of the whole tile (where the pair is not allowed it is ignored); visit_back receives dX of
 * the tile. A hook with content sees products and queries too. One with state travels: the forward visits the
 * key tiles of a query from right to left, state starting at 0, and what state holds at the end is what the
 * backward starts from; that visits from left to right, on each tile first visit with `backward` set (which
 * must not change state), then visit_back, which steps state on. A tile may be all keys at once: then the
 * backward makes that state itself, by a visit from 0 without `backward`, before visit_back.
 *
 * One with `is_special` is for special tokens, which have no distances (a class token): a pair whose query or
 * key stands at such a position has X instead of the bias b; of other pairs it must say 0, and tiles without
 * such a token are not visited.
 */
typedef struct pe_tile_hook {
    void (*visit)(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[]);
    void (*visit_back)(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[]);
    int (*is_special)(const pe_problem *p, double position);
    int      content; /* wants q, s and, backward, ds and dq */
    int      state;   /* doubles per query, at most PE_HOOK_STATE */
    unsigned learns;  /* bits 1 << index of the parameters that visit_back adds to; 0: any */
} pe_tile_hook;

enum { PE_HOOK_STATE = 4, PE_HOOK_PARAMS = 16, PE_MAX_TOKENS = 4 };

enum { PE_NONE = -1 };

/*
 * What a room makes of a query or a key before anything else sees it: unit rows, further channels that hold
 * the position's half of a product. fill takes n rows x [n,D] of one side and head (a key head for keys) into
 * y; fold takes dy to dx (overwriting) and adds to dpar. A prepared key has `width` numbers, at least D, and
 * everything else of a term that says D then means width; rotation is for its first channels.
 *
 * Where y is x and after it numbers that follow from the position only, `by_position` gives those,
 * [n,width-D], and by_position_back takes their cotangents: an executor may make them once for all items of a
 * batch.
 *
 * A prepared query has `forms` times as many. With two forms the product q.k of the formula above is the
 * modulus of (q'.k, q''.k): the first width numbers are q', the others q''.
 */
typedef enum pe_side { PE_QUERIES, PE_KEYS } pe_side;

typedef struct pe_preparation {
    void (*fill)(const pe_problem *p, const double *const par[], pe_side side, int64_t h, const double pos[],
                 int64_t n, const double x[], double y[]);
    void (*fold)(const pe_problem *p, const double *const par[], pe_side side, int64_t h, const double pos[],
                 int64_t n, const double x[], const double dy[], double dx[], double *const dpar[]);
    void (*by_position)(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                        const double pos[], int64_t n, double to[]);
    void (*by_position_back)(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                             const double pos[], int64_t n, const double dto[], double *const dpar[]);
    int64_t width;
    int     forms;
    int     products64; /* products reach far beyond 1 (100 times a cosine): see products64.c */
} pe_preparation;

/* A factor tau for each query. It multiplies the finished row of the query, or the finished score; of u, w
   and us and of what is added it knows in the second case alone. What its rule sees of a query: */
typedef enum pe_temper_on { PE_TEMPER_NONE, PE_TEMPER_QUERY, PE_TEMPER_SCORE } pe_temper_on;

typedef struct pe_tempering {
    int64_t h;
    double  position; /* its first coordinate, not below 0 */
    int64_t keys;     /* that it may see, at least 1; 0 where the rule does not count */
} pe_tempering;

typedef struct pe_temper {
    pe_temper_on on;
    int          fill_by_head, counts; /* do heads differ? Does it count keys? */
    double (*fill)(const pe_problem *p, const double *const par[], const pe_tempering *of);
    void (*fold)(const pe_problem *p, const double *const par[], const pe_tempering *of, double dtau,
                 double *const dpar[]); /* NULL: nothing is learned */
} pe_temper;

/* A difference of running sums: c of the query less c of the key, in the unit of scores. Of gates, a token
   input of the keys has one number for each, whose gate it makes: c of a query is the sum of ln of the gates
   up to its own key, c of a key that up to itself; or (by_key) those before. Else c is a rate times the
   position. Where it is two-sided, pairs with t < 0 have sums of their own, and c' of the key less c' of the
   query. What a hook, a preparation or numbers of pairs say does not go with it. */
typedef enum pe_drift_kind { PE_DRIFT_NONE, PE_DRIFT_GATES, PE_DRIFT_RATE } pe_drift_kind;
enum { PE_BEHIND, PE_AHEAD, PE_SIDES };

typedef struct pe_drift {
    pe_drift_kind kind;
    int           by_key, two_sided;
    int           token[PE_SIDES];
    /* ln of n gates; its adjoint, in place. */
    void (*gates)(const pe_problem *p, const double x[], int64_t n, double log_gate[]);
    void (*gates_back)(const pe_problem *p, const double x[], int64_t n, double dx[]);
    double (*rate)(const pe_problem *p, const double *const par[], int64_t h, int side);
    void (*rate_back)(const pe_problem *p, const double *const par[], int64_t h, int side, double drate,
                      double *const dpar[]);
} pe_drift;

/* Queries that are transformed from key to key (chain.c): at each key, from its own to the left, a query q
   becomes (I - beta w w^T) q before it meets the keys farther left. Token inputs w, D channels, and beta,
   one, of key heads. It stands in the place of the product q.k, with which no vectors and forms go then. */
typedef struct pe_chain {
    int is_given, w, beta;
} pe_chain;

/* Gates of channels (wall.c): each channel of the product of a pair is multiplied by e^(G_i - G_j), G running
   sums of ln of the gates that a token input [B,Ht,Lk,D] makes; ahead by 1. It goes with no vectors, forms
   and rotation. */
typedef struct pe_walled {
    int is_given, token;
    /* ln of n gates; its adjoint, in place. */
    void (*gates)(const pe_problem *p, const double x[], int64_t n, double log_gate[]);
    void (*gates_back)(const pe_problem *p, const double x[], int64_t n, double dx[]);
} pe_walled;

/* Weights that are no softmax (stick.c): keys from the nearest to the left take their share. `current`: the
   key at distance 0 too; `to_self`: what is left goes to the value of the query's own key. lse is its
   logarithm. It goes without a gate and a sink. */
typedef struct pe_stick {
    int is_given, current, to_self;
} pe_stick;

typedef struct pe_terms {
    double         scale;
    int            u, w, us; /* which parameter [H,D] is added to q before k, A, G; PE_NONE: none */
    int            G;        /* which parameter [2,H,D] is multiplied by q, by segment; PE_NONE: none */
    pe_by_distance bias;     /* b: added to the score */
    pe_by_distance gate;     /* c: multiplies the weight after the softmax */
    pe_by_distance A;        /* multiplied by the query, */
    int            profile;  /* or by this token input of queries [B,Ht,Lq,profile_width], with zeros beyond
                                the ends of A; PE_NONE: none */
    int64_t        profile_width;
    pe_by_distance B;       /* multiplied by the key */
    pe_by_distance r;       /* joins the value */
    pe_by_pair     pairs;   /* added to the score, of the score part */
    pe_tile_hook   hook;    /* X, of the score part */
    pe_preparation prepare; /* of q and k, by the score part; no fill: they are taken as they are */
    pe_drift       drift;   /* added to the score, of the score part */
    pe_chain       chain;   /* in the product, of the score part */
    pe_walled      wall;    /* the same */
    pe_stick       stick;   /* in place of the softmax, of the weight part */
    pe_temper      temper;  /* tau; on NONE: 1 */
    int            sink;    /* which common parameter [H] joins the denominator as a score; PE_NONE: none */
    int            sink_token; /* or which common token input [B,Ht,Lq,1]; PE_NONE: none */
    double         softcap;    /* scores become c tanh(S/c) before the masks; 0: they do not */
} pe_terms;

/* The five members by distance, for the loops of executors. */
typedef enum pe_kind { PE_BIAS, PE_GATE, PE_A, PE_B, PE_R, PE_KINDS } pe_kind;

static inline pe_by_distance pe_member(const pe_terms *s, pe_kind kind)
{
    const pe_by_distance *all[PE_KINDS] = {&s->bias, &s->gate, &s->A, &s->B, &s->r};
    return *all[kind];
}

/* Is there such a member? */
static inline int pe_member_is_given(const pe_by_distance *m)
{
    return m->fill || m->index || m->slope || m->row;
}

static inline int pe_has(const pe_terms *s, pe_kind kind)
{
    const pe_by_distance *all[PE_KINDS] = {&s->bias, &s->gate, &s->A, &s->B, &s->r};
    return pe_member_is_given(all[kind]);
}

/* Forms of a query; see pe_preparation. */
static inline int64_t pe_forms(const pe_terms *s)
{
    return s->prepare.forms > 1 ? s->prepare.forms : 1;
}

/* Are keys multiplied by the very vectors that queries are? Then these are stored once, and so are their
   cotangents. */
static inline int pe_vectors_are_shared(const pe_terms *s)
{
    return s->A.row && s->A.row == s->B.row && s->A.param == s->B.param && s->A.owner == s->B.owner;
}

/* Is a row one number (bias, gate), not a vector? */
static inline int pe_is_scalar(pe_kind kind)
{
    return kind == PE_BIAS || kind == PE_GATE;
}

/* Numbers per row of a member. */
static inline int64_t pe_member_width(const pe_terms *s, const pe_problem *p, pe_kind kind)
{
    return kind == PE_A && s->profile != PE_NONE ? s->profile_width
           : kind == PE_R                        ? p->Dv
           : kind == PE_A || kind == PE_B        ? p->D
                                                 : 1;
}

/* Rooms pad rows to whole vectors of the kernel below. */
static inline int64_t pe_padded64(int64_t n)
{
    return (n + PE_LANES64 - 1) / PE_LANES64 * PE_LANES64;
}

/* Products with a parameter, for rooms. The kernel takes whole vectors; a plain loop serves other widths:
   C [R,columns] += A [R,K] B, A element (r,k) at a + r*a_row + k*a_col, rows of B and C at their strides. */
static inline void pe_multiply64(const pe_problem *p, double *c, int64_t c_stride, const double *a,
                                 int64_t a_row, int64_t a_col, const double *b, int64_t b_stride, int64_t R,
                                 int64_t columns, int64_t K)
{
    if (columns % PE_LANES64 == 0) {
        p->kernels->product64(c, c_stride, a, a_row, a_col, b, b_stride, R, columns, K, 1);
        return;
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t d = 0; d < columns; d++)
                c[r * c_stride + d] += a[r * a_row + k * a_col] * b[k * b_stride + d];
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * tiles.h: what the tiled forward and backward share
 *
 * Queries are cut into tiles of Br rows, keys into tiles of Bc columns; a tile of scores [Br,Bc] lies row by
 * row, keys along the vector. Along a row the distance falls by one per key, so with x = j - i + Lq - 1 a
 * term by distance is contiguous: the bias of row i is the vector bias[x], read one place earlier for each
 * further query ("skewed" positions: t = t00 + step*(i-j)). Vectors by distance (A) give a product of the
 * tile's queries with the band of Br + Bc - 1 distances, read back along the same diagonals; vectors that
 * are multiplied by the key (B) do it with the tile's keys. Vectors that join the values (r) go the other
 * way: weights are shifted onto diagonals and multiply the band. Positions without that pattern are slower:
 * `extra` tiles, looked up element by element.
 */
#ifndef PE_ENGINE_TILES_H
#define PE_ENGINE_TILES_H

#include "base/sizes.h"
#include "engine/score/attention.h"
#include "engine/tiled/ready.h"

static inline int64_t pe_padded(int64_t n)
{
    return (n + PE_LANES - 1) / PE_LANES * PE_LANES;
}

/* Where in a table a run of rows, at most one band long, begins. */
static inline int64_t pe_row_in(const pe_distance_table *t, int64_t x)
{
    return (x < t->low ? t->low : x > t->high ? t->high : x) - t->first;
}

/* Does a run that begins at x, of at most one band, lie wholly beyond an end? Then its rows are all the same;
   which of the two ends is the side. */
static inline int pe_run_is_flat(const pe_distance_table *t, int64_t x)
{
    return x <= t->flat_low || x >= t->flat_high;
}

static inline int pe_flat_side(const pe_distance_table *t, int64_t x)
{
    return x > t->flat_low;
}

/* A row of that run that the masks reach, if they reach any: others are not filled. */
static inline int64_t pe_flat_row(const pe_distance_table *t, int64_t x)
{
    return pe_flat_side(t, x) ? t->flat_high : t->last_low;
}

/* Queries that are transformed from key to key, a tile at a time: chain.c. D and C are padded to PE_LANES64.
 */
typedef struct pe_chain_scratch {
    double *beta, *W, *K, *across, *N,
        *UM;      /* [Bc], [Bc,D], [Bc,D], [D or C,C], [Bc,C], [Bc,D+C]: the solve */
    float *own_W; /* [Bc, Dp] forward: W before it is transposed */
    /* of the tile at hand: [D, Bcp], minus U [Bc, Dp], [Bc, Bcp] */
    const float *Wt, *U, *M;
    int64_t     *own;            /* [Br] how many of its keys are in each query's chain */
    float       *lower, *upper;  /* [Br, Bcp] X W^T of these, and of the others */
    int          steps, reaches; /* are there any of these; of the others, where they count? */
    const float *X;              /* backward: the queries as they meet it; NULL: as they began */
} pe_chain_scratch;

/* What one thread works with. Each struct in it belongs to the files named after it; where a run has no
   such terms its memory is not there. */
typedef struct pe_scratch {
    float  *S, *W;    /* [Br, Bcp] two tiles */
    float  *extra;    /* [Br, Bcp] what is added pair by pair */
    float  *gate;     /* [Br, Bcp] looked up */
    double *pair_row; /* [Bc] numbers of pairs on their way */
    float  *segments; /* [Br, 2] scaled products of queries with the segment vectors; [Br] where there is one,
                         with the row of terms */
    float   *Qu, *Qw, *rows; /* [forms, Br, Dp], [Br, Ap], [max(Br,Bc), max(Dp,Dvp)] */
    float   *m;              /* [Br] lse */
    int32_t *low, *high;     /* [Br] columns that a query may see */
    int      limited;        /* is that not all of them? */
    int      backward;       /* is this the backward? */
    double  *chunk;          /* [PE_CHUNK, widest row] distances on their way from or to a room */
    int64_t  b, h, I, J;     /* the tile at hand: item, query head, query tile, key tile, */
    int64_t  i0, j0, R, C;   /* its first query and key, how many of them, */
    int64_t  x0;             /* and the first row of its band */
    int64_t  placed[2];      /* of the tile whose positions are there for every item; -1: of none */
    double  *q_pos, *k_pos;  /* [Br], [Bc] */
    int64_t *q_seg, *k_seg;  /* [Br], [Bc] segments */

    struct {
        float  *gamma; /* [Br, gamma_width] queries times A, the band of the tile at hand from gamma_at on */
        int64_t gamma_at, gamma_key; /* the key tile whose first columns are there already; -1: none */
        float  *beta;                /* [band, Bcp] B times keys; backward also [Bc, band] */
        float  *flat, *flat_key; /* [Br, PE_LANES] on the way to flat_row; [Bcp] B beyond an end times keys */
        float  *flat_row;        /* [2, Br] queries times A beyond each end */
        int64_t flat_of[2];      /* the query tile that it is of; -1: none */
        float  *shift;           /* [Br, band] a tile moved onto its diagonals */
    } band;                      /* tile_scores.c, pair_backward.c: vectors by distance */
    struct {
        double *x, *s, *ds; /* [Br, Bc] X, products, cotangents of products */
        double *q, *dq;     /* [Br, D] */
        double *state;      /* [Br, PE_HOOK_STATE] of the queries at hand: saved ones, or */
        double *own_state;  /* the forward's */
        int     whole_row;  /* backward: no other tile has keys of these queries, so the hook begins anew */
        int     is_called;  /* has it something to say of the tile at hand? */
    } hook;                 /* tile_scores.c, pair_backward.c: what the hook reads and writes */
    struct {
        double *raw, *draw; /* [max(Br,Bc), a->D] and their cotangents */
        double *made, *at;  /* [max(Br,Bc), forms*D] prepared rows, [max(Br,Bc)] their positions */
        double *walk;       /* through the tokens that turn them: pe_turn_start */
    } prepared;             /* tile_rows.c: rows to prepare */
    struct {
        double *products, *top;     /* [Br, stride]; [Br] what is subtracted from each row of them */
        double *keys, *keys_across; /* [Bc, D], transposed [D, pe_products64_padded(Bc)] */
        int64_t stride, from;       /* of the products that are there: columns per row, the first column */
    } products64;                   /* products64.c: products in double */
    struct {
        float *Q, *factors, *between; /* [forms, Br, Dp], [Br, Dp] their factors, [Dp] */
        float *K, *dK;                /* [Bc, Dp]; backward, their cotangents */
        float *Kt, *own_Kt;           /* transposed [D, Bcp]: the forward's packed ones; backward own_Kt */
    } growth;                         /* tile_rows.c: queries and keys times what they grow by */
    struct {
        float *Q, *factors,
            *between;        /* [Br, Dp] queries times [Br, Dp] their factors, of which [Dp] a part */
        float  *Kt, *K, *dK; /* [D, Bcp] keys times theirs; [Bc, Dp] keys; backward */
        double *walk, *f;    /* see pe_turn_start; [D] factors of a pair */
        double *G, *gate;    /* [Bc, D] running sums of the tile's keys, and their gates */
        int     is_left;     /* do all its keys stand before its queries? */
    } wall;                  /* wall.c: gates of channels */
    struct {
        const float *Q2;   /* of the queries at hand; NULL: there is one form */
        float *S2, *share; /* [Br, Bcp] its products; [2, Br, Bcp] backward, how far each form moves S */
    } forms;               /* tile_scores.c, pair_backward.c: the second form of queries */
    struct {
        float *tau, *raw, *slope; /* [Br]; [Br, Bcp] backward */
    } finish;                     /* tile_scores.c, pair_backward.c: scores that are tempered or capped */
    struct {
        const float *Q, *Kt;  /* the first form of the queries at hand, the second of the keys, transposed */
        int64_t      step;    /* from a form of the queries to the next */
        float       *S;       /* [Br, Bcp] what belongs to one class of pairs */
        unsigned     classes; /* those of the tile, as bits */
    } map;                    /* tile_scores.c, pair_backward.c: a map of distances */
    struct {
        double *keys[PE_SIDES]; /* [Bc] running sums of the tile's keys */
        float  *row, *key;      /* [Br], [Bcp] of queries and of keys, about one between them, */
        double  between;        /* and which that is */
        int64_t tile;           /* the query tile that row is of; -1: none */
        float  *ones, *sum;     /* [Br], [Bcp] backward */
    } drift;                    /* tile_scores.c, pair_backward.c */
    pe_chain_scratch chain;
    struct {
        double *left;        /* [Br] logarithms of what the keys until now leave of each query's stick */
        double *row, *share; /* [3, Bcp]; backward [Br, Bc] sigma of scores */
        double *value;       /* [Dv] */
    } stick;                 /* stick.c: weights that break a stick */
    struct {
        float *O, *most, *sums, *factor; /* [Br, Dvp], [Br], [Br, PE_LANES], [Br] */
    } softmax;                           /* tiled_forward.c: the online softmax of a query tile */
    struct {
        float       *K, *Kt, *Vt;      /* [forms, Bc, Dp], [forms, D, Bcp], [Dv, Bcp] */
        float       *dK, *dV;          /* [forms, Bc, Dp], [Bc, Dvp] */
        float       *diagonal, *gated; /* [band], [Br, Bcp] */
        const float *lse;              /* of the queries at hand: see pe_is_shifted */
        int64_t      g, chunk;         /* the key head at hand, and where sums of the tile go: */
        float       *dQ;               /* [R, Dp] rows of the chunk */
        double      *du, *dw;
    } back; /* pair_backward.c: the key tile at hand, and cotangents */
} pe_scratch;

/* Distances whose vectors are asked of a room at once; keys of a short row, whose delta is exact; keys of a
   row whose products may be taken in double. */
enum { PE_CHUNK = 256, PE_SHORT = 64, PE_PRODUCTS64_KEYS = 4096 };

typedef struct pe_tiles {
    const pe_attention *a;
    int64_t Br, Bc, Bcp, Dp, Dvp, Ap, band_width, gamma_width; /* padded widths of buffers, in floats */
    int64_t query_tiles, key_tiles;
    int     by_distance;     /* any member by distance */
    int     has_extra;       /* lookups, hook or explicit mask */
    int     folds, finishes; /* pe_temper_folds, pe_temper_finishes */
    int     skewed;          /* distances follow the diagonals, or do not matter */
    int64_t e_low, e_high;   /* skewed: allowed iff e_low <= i - j <= e_high */
    pe_band band;
    const pe_ready   *ready; /* tables that hold all distances of the run; NULL: none */
    pe_distance_table by[PE_KINDS];
    double           *center; /* [H] what was subtracted from the bias before it was rounded; NULL: nothing */
    double           *exact;  /* [threads, exact_count] scalars by distance before they are rounded */
    int64_t           exact_count;
    float *basis, *W;     /* [2, PE_CHUNK/2, ranks/2], [H, ranks, D]: basis.c; NULL: no member has a basis */
    float *basis_scratch; /* of all threads */
    pe_frequency *frequencies; /* [ranks/2] of the basis */
    double       *growth;      /* [D] of a rotation that grows; NULL: none */
    float *q_grown, *k_grown;  /* [batches, Lq, Dp], [batches, Lk, Dp] factors of rows within their tile */
    struct {
        int64_t rows;              /* of the token input, of each item */
        float  *keys, *queries;    /* [B, rows, key_tiles, D, Bcp], [B, rows, Lq, Dp] factors within a tile */
        double *ends[2];           /* by pe_side [B, rows, tiles, D] sums at the end of a tile */
        double *walk, *sums;       /* of all threads */
    } wall;                        /* wall.c: gates of channels */
    double           *hook_cache;  /* [H, Lq, padded Lk] what the hook says: hook_cache.c; NULL: not cached */
    float            *hook_floats; /* the same, rounded */
    float            *by_position[2]; /* by pe_side [heads, L, D - a->D]: by_position.c; NULL: not used */
    int               positions_are_ready; /* are they those of all positions, by number: ready.h? */
    double           *by_position_rows;    /* [threads, rows of a task, D - a->D] before they are rounded */
    pe_rotation_table rotations[2][PE_MAP_FORMS]; /* by pe_side and form */
    int               forms[2];                   /* of a map of distances, by pe_side; else 1 */
    pe_scratch       *scratch;                    /* [threads] */
} pe_tiles;

/* Numbers of a row of A, and of what is multiplied by it: rows of queries, or of the profile. */
static inline int64_t pe_width_of_A(const pe_tiles *T)
{
    return pe_member_width(T->a->terms, &T->a->sizes, PE_A);
}

/* Forms of a query that meet keys: those of its preparation, or of a map of distances. */
static inline int64_t pe_query_forms(const pe_tiles *T)
{
    return pe_forms(T->a->terms) * T->forms[PE_QUERIES];
}

/* The rows of a member of head h for a run of rows from x. */
static inline float *pe_rows_by(const pe_tiles *T, pe_kind kind, int64_t h, int64_t x)
{
    const pe_distance_table *t = &T->by[kind];
    return t->rows + (h * t->count + pe_row_in(t, x)) * t->row;
}

/* The same transposed: [width, stride]. */
static inline const float *pe_columns_by(const pe_tiles *T, pe_kind kind, int64_t h, int64_t x)
{
    const pe_distance_table *t = &T->by[kind];
    return t->columns + h * t->width * t->stride + pe_row_in(t, x);
}

/* First and last row (not included) of a member's table that holds anything, as rows of the band. */
static inline int64_t pe_table_begin(const pe_tiles *T, pe_kind kind)
{
    return pe_larger(T->by[kind].first, T->band.first);
}

static inline int64_t pe_table_end(const pe_tiles *T, pe_kind kind)
{
    return pe_smaller(T->by[kind].last, T->band.last);
}

/* Has a run of distances no row of the profile? */
static inline int pe_profile_is_over(const pe_tiles *T, int64_t x)
{
    return T->a->terms->profile != PE_NONE && pe_run_is_flat(&T->by[PE_A], x);
}

/* Do queries carry the temper of the whole score? Then rows of the profile do too. */
static inline int pe_scores_are_folded(const pe_tiles *T)
{
    return T->folds && T->a->temper_on == PE_TEMPER_SCORE;
}

/* In the backward of a hook with content, lse is subtracted from scores already: X may be large, and X - lse
   is computed in double, where float would round it at the size of X. Not of a stick, whose lse is far below
   its scores. */
static inline int pe_is_shifted(const pe_tiles *T, const pe_scratch *z)
{
    return z->backward && T->a->terms->hook.content && !T->finishes && !pe_sticks(T->a);
}

/* Must a pair be asked for whether it is allowed? Otherwise its distance tells: e_low, e_high. */
static inline int pe_asks_pairs(const pe_tiles *T)
{
    return !T->skewed || T->a->unmasked || (T->a->mask & ~(POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) != 0;
}

/* Is a token of the pair special, so that X takes the place of its bias? z has the tile's positions. */
static inline int pe_pair_is_special(const pe_tiles *T, const pe_scratch *z, int64_t r, int64_t c)
{
    return pe_attention_is_special(T->a, z->q_pos[r]) || pe_attention_is_special(T->a, z->k_pos[c]);
}

/* A softmax does not see a constant: the largest bias of a head is subtracted from all of them while
   they are double, so that those which matter are small where they become float. lse gets it back. From
   scores that are wanted themselves nothing is subtracted. */
static inline double pe_center(const pe_tiles *T, int64_t h)
{
    return T->center ? T->center[h] : 0;
}

/* Distance of table row r; and, off the diagonals, the row of a distance. */
static inline int64_t pe_band_distance(const pe_band *band, int64_t r)
{
    return band->t0 + band->slope * r;
}

static inline int64_t pe_band_row(const pe_tiles *T, double t)
{
    return T->band.t0 - (int64_t)t;
}

/* Has that distance a row? One that masks hide may have none, and no weight of 0 says so where the row of
   scores is NaN. */
static inline int pe_band_has(const pe_tiles *T, double t)
{
    const int64_t row = pe_band_row(T, t);
    return row >= T->band.first && row < T->band.last;
}

/* ---- which queries of a tile see which of its keys ---- */

/* Are there allowed pairs in tile (I,J)? */
static inline int pe_tile_is_reached(const pe_tiles *T, int64_t I, int64_t J)
{
    const pe_problem *p  = &T->a->sizes;
    const int64_t     i0 = I * T->Br, i1 = pe_smaller(i0 + T->Br, p->Lq), j0 = J * T->Bc,
                  j1 = pe_smaller(j0 + T->Bc, p->Lk);
    return !T->skewed || T->a->unmasked || (i1 - 1 - j0 >= T->e_low && i0 - (j1 - 1) <= T->e_high);
}

/* Queries of a tile that see keys first .. first+count-1 together; first is a multiple of PE_LANES. Where
   all queries see all keys, one group is all of them. */
typedef struct pe_visible {
    int64_t rows, first, count;
} pe_visible;

static inline pe_visible pe_visible_keys(const pe_scratch *z, int64_t r)
{
    if (!z->limited)
        return (pe_visible){z->R, 0, z->C};
    const int64_t rows = pe_smaller(PE_LANES, z->R - r), first = z->low[r] / PE_LANES * PE_LANES,
                  last = z->high[r + rows - 1]; /* limits rise from row to row */
    return (pe_visible){rows, first, last > first ? last - first : 0};
}

/* And the other way: queries that see any of the keys c .. c+n-1 of the tile; `first` and `count` are
   theirs. */
static inline pe_visible pe_queries_of_keys(const pe_scratch *z, int64_t c, int64_t n)
{
    pe_visible y = {n, 0, z->R};
    while (z->limited && y.count && z->high[y.first] <= c)
        y.first++, y.count--;
    while (z->limited && y.count && z->low[y.first + y.count - 1] >= c + n)
        y.count--;
    return y;
}

/* Columns of a tile's row that its query may see: first .. last-1. */
static inline pe_visible pe_seen_columns(const pe_scratch *z, int64_t r)
{
    return z->limited ? (pe_visible){1, z->low[r], z->high[r] - z->low[r]} : (pe_visible){1, 0, z->C};
}

/* The same on diagonals (pe_tile_scores_shift): of rows r .. r+rows-1 the columns of the band that any of
   them sees. */
static inline pe_visible pe_band_group(const pe_scratch *z, int64_t r)
{
    const int64_t    rows = pe_smaller(PE_LANES, z->R - r);
    const pe_visible top = pe_seen_columns(z, r), low = pe_seen_columns(z, r + rows - 1);
    const int64_t    first = z->R - r - rows + top.first, last = z->R - 1 - r + low.first + low.count;
    return (pe_visible){rows, first, low.first + low.count > top.first ? last - first : 0};
}

static inline int pe_sees_band(const pe_scratch *z, int64_t r, int64_t x, int64_t n)
{
    const pe_visible y     = pe_seen_columns(z, r);
    const int64_t    first = z->R - 1 - r + y.first;
    return y.count > 0 && first < x + n && first + y.count > x;
}

/* And queries that see any of the band's columns x .. x+n-1; `first` and `count` are theirs. */
static inline pe_visible pe_queries_of_band(const pe_scratch *z, int64_t x, int64_t n)
{
    pe_visible y = {n, 0, z->R};
    while (y.count && !pe_sees_band(z, y.first, x, n))
        y.first++, y.count--;
    while (y.count && !pe_sees_band(z, y.first + y.count - 1, x, n))
        y.count--;
    return y;
}

/* First row of the band of a tile, R + C - 1 rows long. */
static inline int64_t pe_band_start(const pe_tiles *T, int64_t i0, int64_t R, int64_t j0)
{
    return j0 - (i0 + R - 1) + T->a->sizes.Lq - 1;
}

/* From here on tile (I,J) of item b, head h is the one at hand. */
static inline void pe_tile_begin(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t I, int64_t J)
{
    z->b  = b;
    z->h  = h;
    z->I  = I;
    z->J  = J;
    z->i0 = I * T->Br;
    z->j0 = J * T->Bc;
    z->R  = pe_smaller(T->Br, T->a->sizes.Lq - z->i0);
    z->C  = pe_smaller(T->Bc, T->a->sizes.Lk - z->j0);
    z->x0 = pe_band_start(T, z->i0, z->R, z->j0);
}

/* ---- tiles_prepare.c: sizes, and the memory and the tables of a run ---- */

/* Sizes alone. Memory; then what a run needs before its first tile: tables. */
pe_tiles pe_tiles_of(const pe_attention *a);
pe_tiles pe_tiles_lay_out(const pe_attention *a, pe_arena *arena, int backward);
void     pe_tiles_fill(pe_tiles *T);
void     pe_tiles_fill_rotation(pe_tiles *T, pe_side side);

/* Memory for cosines and sines of one side. */
void pe_tiles_lay_out_rotation(pe_tiles *T, pe_side side, pe_arena *arena);

/* ---- tables.c: members by distance ---- */

/* The band of a run; its tables: memory, numbers. */
void pe_tables_find_band(pe_tiles *T);
void pe_tables_lay_out(pe_tiles *T, pe_arena *arena, int backward);
void pe_tables_fill(pe_tiles *T);

/* Are the rows of all distances of the run ready? How far its band lies behind theirs. Is this member's table
   the run's as it stands? Is what the bias of head h lacks there that of the nearest distance? Exact numbers
   of the bias of rows x0 .. x0+n-1 of the run, of a head of the whole run. */
int     pe_ready_serves(const pe_tiles *T);
int64_t pe_ready_shift(const pe_tiles *T);
int     pe_ready_has(const pe_tiles *T, pe_kind kind);
int     pe_ready_is_centered(const pe_tiles *T, int64_t h);
void    pe_ready_copy(const pe_tiles *T, int64_t h, int64_t x0, int64_t n, double to[]);

/* ---- basis.c ---- */

/* Is member A a basis times a parameter, to be multiplied in float? Its memory; its tables filled, except for
   what lies around them. */
int  pe_basis_serves(const pe_tiles *T);
void pe_basis_lay_out(pe_tiles *T, pe_arena *arena);
void pe_basis_fill(pe_tiles *T);

/* ---- tile_rows.c: rows of the tensors on their way into tiles and out of them ---- */

/* Rows s0 .. s0+n-1 of q or k in float, prepared and rotated, stride Dp, padding zeroed; z lends its memory.
   The second form of queries goes to to2 (NULL where there is one form). */
void pe_tile_rows_load(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side, int64_t b,
                       int64_t h, int64_t s0, int64_t n);
/* The same as a form of a map of distances. Cotangents of all forms, `step` apart, which go back to where
   they came from: to the first, and if it has data to `to`. */
void pe_tile_rows_load_form(const pe_tiles *T, float *rows, pe_side side, int form, int64_t b, int64_t h,
                            int64_t s0, int64_t n);
void pe_tile_rows_store_forms(const pe_tiles *T, float *rows, int64_t step, pe_side side, int64_t b,
                              int64_t h, int64_t s0, int64_t n);
/* The same, of rows that are prepared, in double. */
void pe_tile_rows_load_doubles(const pe_tiles *T, const pe_scratch *z, double *to, pe_side side, int64_t b,
                               int64_t h, int64_t s0, int64_t n);
/* Rows of k or v (t) as the caller has them, wherever they lie; hidden ones are zeros. */
void pe_tile_rows_load_keys(const pe_attention *a, float *to, int64_t stride, const posenc_tensor *t,
                            int64_t b, int64_t g, int64_t j0, int64_t n, int64_t width);
/* Rows of q, o or dout, or to o and dv: no rotation. */
void pe_tile_rows_load_plain(float *to, int64_t stride, const posenc_tensor *t, int64_t b, int64_t h,
                             int64_t s0, int64_t n, int64_t width);
void pe_tile_rows_store_plain(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n,
                              const float *from, int64_t stride, int64_t width);
/* Rows s0 .. s0+n-1 of item b, head h, will be wanted soon: asks for them, if there is such an item. Rows of
   short sequences lie far from each other, many to a page and few to a head, so that no prefetcher foresees
   them. */
void pe_tile_rows_prefetch(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n,
                           int64_t width);
/* Rotated back and written to dq or dk; rows that were prepared are not written: pe_tile_rows_fold does it.
 */
void pe_tile_rows_store(const pe_tiles *T, float *rows, pe_side side, const posenc_tensor *to, int64_t b,
                        int64_t h, int64_t s0, int64_t n);
/* Cotangents of prepared rows (rotated back; stride Dp, forms `form_step` apart) to dq or dk and to
   parameters. */
void pe_tile_rows_fold(const pe_tiles *T, const pe_scratch *z, const float *rows, int64_t form_step,
                       pe_side side, int64_t b, int64_t h, int64_t s0, int64_t n);
/* scale*(tau q + u) and scale*(tau q + w) of n loaded rows; Qw may be NULL. */
void pe_tile_rows_scale(const pe_tiles *T, float *Qu, float *Qw, int64_t b, int64_t h, int64_t i0, int64_t n);
/* key[j] = 0 or -infinity for item b; returns NULL without a padding mask. */
const float *pe_tile_rows_key_mask(const pe_tiles *T, float *key, int64_t b);

/* A rotation whose pairs grow with the distance. Factors of a run: memory, numbers. Before the product of a
   tile, queries times what they grow by until its keys (z->growth.Q, .factors); keys times what they lack
   (`to` may be K; the adjoint is the same). */
/* Weights that break a stick, in place of the softmax: of the tile's products in z->S; outputs of a query
   tile, when all keys have been there. */
void pe_tile_stick_lay_out(const pe_tiles *T, pe_scratch *z, pe_arena *arena, int backward);
void pe_tile_stick_weights(const pe_tiles *T, pe_scratch *z, const pe_tile_terms *terms);
void pe_tile_stick_finish(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R);

/* Gates of channels. Factors of a run: memory, numbers. Products of a tile; backward, after them, cotangents
   to z->back. */
void pe_tile_wall_lay_out(pe_tiles *T, pe_arena *arena);
void pe_tile_wall_lay_out_scratch(const pe_tiles *T, pe_scratch *z, pe_arena *arena, int backward);
void pe_tile_wall_fill(pe_tiles *T);
void pe_tile_wall_multiply(const pe_tiles *T, pe_scratch *z, float *s, const float *Qu, const float *Kt);
void pe_tile_wall_back(const pe_tiles *T, pe_scratch *z, const float *dS, const float *Qu);

void pe_tile_rows_lay_out_growth(pe_tiles *T, pe_arena *arena);
void pe_tile_rows_fill_growth(pe_tiles *T);
void pe_tile_rows_grow_queries(const pe_tiles *T, pe_scratch *z, const float *Qu);
void pe_tile_rows_grow_keys(const pe_tiles *T, float *to, const float *K, int64_t b, int64_t j0, int64_t C);

/* ---- tile_scores.c: the scores of one tile ---- */

/* The products of the tile at hand into s (stride Bcp), and the terms that the kernels which finish scores
   are to add. One of those, the bias, else the band, else numbers of pairs where they lie, is in s already
   and NULL in the terms: all but products in double, two forms and hooks with content take it on their way
   out. Returns 0, and leaves s as it is, if no pair of the tile is allowed. Qu, Qw: scaled rows (q+u), (q+w)
   of the tile, stride Dp; Kt: keys transposed [D, Bcp]. key: 0 or -infinity per key of the whole row, or
   NULL. reuse: the previous call had the previous key tile. */
int pe_tile_scores_multiply(const pe_tiles *T, pe_scratch *z, float *s, const float *Qu, const float *Qw,
                            const float *Kt, const float *key, int reuse, pe_tile_terms *terms);

/* Its gate as a term for the kernel of that name (stride of rows in *step), or NULL. Call it
   after pe_tile_scores_multiply, whose lookups it shares. */
const float *pe_tile_scores_gate(const pe_tiles *T, const pe_scratch *z, int64_t *step);

/* shift[r, R-1-r+c] = s[r,c], zero elsewhere: row by row onto diagonals. */
void pe_tile_scores_shift(const pe_tiles *T, pe_scratch *z, const float *s);

/* to += X B, X the tile that lies on diagonals, B [R + C - 1, width] the band's rows, both with padded rows:
   for each group of queries the distances at which they see keys. */
void pe_tile_scores_band_product(const pe_tiles *T, const pe_scratch *z, float *to, const float *B,
                                 int64_t width);

/* Positions and segments of the tile's queries and keys. */
void pe_tile_scores_load_places(const pe_tiles *T, pe_scratch *z);

/* The class of pair (r,c) in a map of distances, and how many columns from c on have it; z has the places. A
   class is an interval of a range of keys. */
int pe_map_run(const pe_tiles *T, const pe_scratch *z, int64_t r, int64_t c, int64_t *run);

/* What the hook sees of the tile at hand. */
pe_tile pe_tile_scores_hook_tile(const pe_tiles *T, const pe_scratch *z);

/* ---- products64.c: products that are taken in double ---- */

/* Memory for so many columns of such products: the kernel writes whole vectors from any column on. */
static inline int64_t pe_products64_padded(int64_t n)
{
    return pe_padded(n) + PE_LANES;
}

/* Are products taken in double? Then they are there, with what is to be subtracted from each row, before the
   tiles of a query tile (forward; `whole`: scores themselves are wanted, nothing is subtracted), or of one
   tile (backward: lse is subtracted). */
int  pe_products64_serve(const pe_tiles *T);
void pe_products64_fill_row(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                            int whole);
void pe_products64_fill_tile(const pe_tiles *T, pe_scratch *z, const float lse[]);
/* -infinity where there is none; a NaN is passed over. */
double pe_products64_largest(const double x[], int64_t n);

/* ---- chain.c: queries that are transformed from key to key ---- */

/* What is made of a tile of keys, in float: K^ and W [n, Dp], minus U [n, Dp], M [n, Bcp]. */
typedef struct pe_chain_rows {
    float *K, *W, *U, *M;
} pe_chain_rows;

/* Cotangents of one tile in double: of K^, which become those of K, and of W [n, D]; of minus [U|M]
   [n, D + C], which are spent; of beta [n], written. D and C are padded to PE_LANES64. */
typedef struct pe_chain_fold {
    double *dK, *dW, *dUM, *dbeta;
} pe_chain_fold;

void pe_tile_chain_lay_out(const pe_tiles *T, pe_chain_scratch *x, pe_arena *arena);
/* Of keys j0 .. j0+n-1, where they are a tile. */
void pe_tile_chain_make(const pe_tiles *T, const pe_chain_scratch *x, const pe_chain_rows *to, int64_t b,
                        int64_t g, int64_t j0, int64_t n);
void pe_tile_chain_fold(const pe_tiles *T, const pe_chain_scratch *x, const pe_chain_fold *f, int64_t b,
                        int64_t g, int64_t j0, int64_t n);
/* Queries X [R, Dp] come to the tile at hand, whose rows z->chain has; its products, which are s = X K^^T so
   far, get what keys ahead of queries lack; X goes on to the left. */
void pe_tile_chain_meet(const pe_tiles *T, pe_scratch *z, const float *X);
void pe_tile_chain_reach(const pe_tiles *T, const pe_scratch *z, float *s);
void pe_tile_chain_step(const pe_tiles *T, const pe_scratch *z, float *X);
/* Scaled queries of a part begin with what the part to the right left, and leave what they became. */
void pe_tile_chain_resume(const pe_tiles *T, float *X, int64_t h, int64_t i0, int64_t R);
void pe_tile_chain_leave(const pe_tiles *T, const float *X, int64_t h, int64_t i0, int64_t R);

/* ---- hook_cache.c: what a hook says of all pairs, made once ---- */

/* Where it depends on positions that a batch shares and the pairs are few: memory (T->hook_cache stays NULL
   where it is not so), numbers. */
void pe_hook_cache_lay_out(pe_tiles *T, pe_arena *arena);
void pe_hook_cache_fill(pe_tiles *T);

/* Numbers from one query to the next, and the first of a tile of head h. */
static inline int64_t pe_hook_cache_stride(const pe_problem *p)
{
    return pe_padded(p->Lk);
}

static inline int64_t pe_hook_cache_first(const pe_problem *p, int64_t h, int64_t i0, int64_t j0)
{
    return (h * p->Lq + i0) * pe_hook_cache_stride(p) + j0;
}

/* ---- by_position.c: numbers of q and k that follow from the position only ---- */

/* They come after the a->D numbers of content (pe_preparation) and are made once per run where all items have
   the same positions. Memory, numbers; their cotangents, of n rows, added to sums [heads, L, D - a->D]; in
   the end folded to parameters. */
void pe_by_position_lay_out(pe_tiles *T, pe_arena *arena);
void pe_by_position_fill(pe_tiles *T);
/* Those of element s of item b and head h. */
const float *pe_by_position_row(const pe_tiles *T, pe_side side, int64_t b, int64_t h, int64_t s);
void         pe_by_position_sum(const pe_tiles *T, double *sums, const float *rows, pe_side side, int64_t h,
                                int64_t s0, int64_t n);
void         pe_by_position_fold(const pe_tiles *T, const double *sums, pe_side side);

/* Numbers of all rows of one side. */
static inline int64_t pe_by_position_size(const pe_attention *a, pe_side side)
{
    const pe_problem *p    = &a->sizes;
    const int64_t     rows = side == PE_KEYS ? p->G * p->Lk : p->H * p->Lq;
    return a->terms->prepare.by_position && p->B > 1 ? rows * (p->D - a->D) : 0;
}

/* ---- tiled_forward.c ---- */

/* The keys and values of one (item, key head) pair, ready for products. */
typedef struct pe_packed {
    float       *Kt;         /* [key_tiles, D, Bcp] */
    float       *Kgt;        /* the same, grown */
    float       *Kmt;        /* and of their second form in a map of distances */
    float       *Wt, *U, *M; /* of a chain: [key_tiles, D, Bcp], [key_tiles*Bc, Dp], [key_tiles*Bc, Bcp] */
    float       *V;          /* [Lk, Dvp], where the caller's rows cannot be used as they are */
    const float *values;     /* V or the caller's memory */
    int64_t      v_stride;
    float       *key;      /* [Lk] 0 or -infinity */
    const float *key_mask; /* key or NULL */
} pe_packed;

typedef struct pe_forward {
    pe_tiles             T;
    pe_packed           *pairs;       /* [wave] */
    int64_t              wave, first; /* pairs of this wave: first .. first+wave-1, of B*G */
    int64_t              tasks_per_pair;
    const posenc_tensor *S; /* scores only; NULL: outputs */
} pe_forward;

/* Memory; after pe_tiles_fill, the run. */
pe_forward pe_tiled_forward_lay_out(const pe_attention *a, pe_arena *arena);
void       pe_tiled_forward_run(pe_forward *f);

#endif

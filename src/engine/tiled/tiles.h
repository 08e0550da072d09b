/* SPDX-License-Identifier: MIT */
/*
 * tiles.h: what the tiled forward and backward share
 *
 * Queries are cut into tiles of Br rows, keys into tiles of Bc columns; a tile of scores [Br,Bc] lies row by
 * row, keys along the vector. Along a row the distance falls by one per key, so with x = j - i + Lq - 1 a
 * term by distance is contiguous: the bias of row i is the vector bias[x], read one place earlier for each
 * further query ("skewed" positions: t = t00 + step*(i-j)). Vectors by distance (A) give a product of the
 * tile's queries with the band of Br + Bc - 1 distances, read back along the same diagonals; vectors that
 * meet the key (B) do it with the tile's keys. Vectors that join the values (r) go the other way: weights are
 * shifted onto diagonals and multiply the band. Positions without that pattern take the slow road: `extra`
 * tiles, looked up element by element.
 */
#ifndef PE_ENGINE_TILES_H
#define PE_ENGINE_TILES_H

#include "engine/score/attention.h"
#include "engine/rotation/ladder.h"

static inline int64_t pe_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t pe_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Row x of all rows by distance stands for t = t0 + slope*x; rows first .. last-1 are reached by the
   masks. */
typedef struct pe_band {
    int64_t rows, t0, slope, first, last;
} pe_band;

/*
 * The table of one member: what is kept of these rows, rounded once. A member that clips distances is the
 * same beyond `low` and beyond `high`; so a run of rows that lies wholly beyond is read at the end of what is
 * kept (pe_row_in), and the table is no longer than what lies between and one run on either side.
 */
typedef struct pe_table {
    float *rows, *columns; /* [H, count, row], and transposed [H, width, stride]; NULL: none, or not needed */
    int64_t width, row;    /* numbers per row: used, and with padding */
    int64_t count, stride; /* allocated rows; stride of a column */
    int64_t low, high;     /* where runs begin */
    int64_t last_low;      /* the last row that is the same as all below it */
    int64_t first, last;   /* rows kept, the last not included */
} pe_table;

/* Where in a table a run of rows, at most one band long, begins. */
static inline int64_t pe_row_in(const pe_table *t, int64_t x)
{
    return (x < t->low ? t->low : x > t->high ? t->high : x) - t->first;
}

/* Does a run that begins at x, of at most one band, lie wholly beyond an end? Then its rows are all the same;
   which of the two ends is the side. */
static inline int pe_run_is_flat(const pe_table *t, int64_t x)
{
    return x <= t->low || x >= t->high;
}

static inline int pe_flat_side(const pe_table *t, int64_t x)
{
    return x > t->low;
}

/* A row of that run that the masks reach, if they reach any: others are not filled. */
static inline int64_t pe_flat_row(const pe_table *t, int64_t x)
{
    return pe_flat_side(t, x) ? t->high : t->last_low;
}

/* Scratch of one thread. */
typedef struct pe_scratch {
    float  *S, *W; /* [Br, Bcp] two tiles */
    float  *gamma; /* [Br, gamma_width] queries times A, the band of the tile at hand from gamma_at on */
    float  *beta;  /* [band, Bcp] B times keys; backward also [Bc, band] */
    float  *flat, *flat_key;   /* [Br, PE_LANES] on the way to flat_row; [Bcp] B beyond an end times keys */
    int64_t flat_of[2];        /* the query tile that it is of; -1: none */
    float  *flat_row;          /* [2, Br] queries times A beyond each end */
    float  *shift;             /* [Br, band] a tile moved onto its diagonals */
    float  *extra, *gate;      /* [Br, Bcp] looked up */
    double *x, *s, *ds;        /* [Br, Bc] of the hook: X, products, cotangents of products */
    double *q, *dq;            /* [Br, D] of the hook */
    double *state, *own_state; /* [Br, PE_HOOK_STATE] of the queries at hand; the forward's memory for it */
    int     backward;          /* for the hook */
    int     whole_row; /* backward: no other tile has keys of these queries, so the hook begins anew */
    int     hooked;    /* the hook has something to say of the tile at hand */
    int64_t i0, j0;    /* of the tile at hand */
    int64_t placed[2]; /* of the tile whose places are there for every item; -1: of none */
    const float *lse;  /* backward, of the queries at hand: see pe_is_shifted */
    double      *q_pos, *k_pos; /* [Br], [Bc] */
    double      *pair_row;      /* [Bc] numbers of pairs on their way */
    int64_t     *q_seg, *k_seg; /* [Br], [Bc] segments */
    float *meets; /* [Br, 2] scaled products of queries with the segment vectors; [Br] where there is one,
                     with the row of terms */
    float  *Qu, *Qw, *rows;           /* [forms, Br, Dp], [Br, Dp], [max(Br,Bc), max(Dp,Dvp)] */
    double *raw, *draw;               /* [max(Br,Bc), a->D] rows to prepare and their cotangents */
    double *made, *at;                /* [max(Br,Bc), forms*D] prepared rows, [max(Br,Bc)] their positions */
    double *sharp, *keys, *top;       /* [Br, sharp_stride], [Bc, D], [Br]: sharp.c */
    double *keys_across;              /* keys transposed [D, pe_sharp_padded(Bc)] */
    int64_t sharp_stride, sharp_from; /* of the products that are there: columns per row, the first column */
    float  *Qg, *grow, *between; /* growth: [forms, Br, Dp] grown queries, [Br, Dp] their factors, [Dp] */
    float  *Kg, *dKg;            /* backward: [Bc, Dp] grown keys and their cotangents */
    float  *Kgt;                 /* grown keys of the tile transposed [D, Bcp]: the caller's, or Kgt_own */
    float  *Kgt_own;             /* backward */
    const float *Q2;             /* the second form of the queries at hand; NULL: there is one */
    float       *S2,
        *share; /* [Br, Bcp], [2, Br, Bcp]: products of the second form; backward, how far each moves S */
    float   *O, *m, *f;                  /* [Br, Dvp], [Br] each */
    float   *taken, *sums;               /* [Br], [Br, PE_LANES]: of the online softmax */
    float   *K, *Kt, *Vt;                /* backward: [Bc, Dp], [D, Bcp], [Dv, Bcp] of the key tile */
    float   *dK, *dV, *diagonal, *gated; /* [Bc, Dp], [Bc, Dvp], [band], [Br, Bcp]: backward */
    int32_t *low, *high;                 /* [Br] columns that a query may see */
    int      limited;                    /* is that not all of them? */
    double  *chunk;                      /* [PE_CHUNK, max(D,Dv)] distances on their way from or to a room */
    int64_t  gamma_at;
    int64_t  gamma_key; /* the key tile for which the left part of gamma is there already; -1: none */
} pe_scratch;

/* Distances whose vectors are asked of a room at once; keys of a short row, whose delta is exact; keys of a
   row that may be sharp. */
enum { PE_CHUNK = 256, PE_SHORT = 64, PE_SHARP = 4096 };

typedef struct pe_tiles {
    const pe_attention *a;
    int64_t  Br, Bc, Bcp, Dp, Dvp, band_width, gamma_width; /* padded widths of buffers, in floats */
    int64_t  query_tiles, key_tiles;
    int      by_distance;   /* any member by distance */
    int      has_extra;     /* lookups, hook or explicit mask */
    int      skewed;        /* distances follow the diagonals, or do not matter */
    int64_t  e_low, e_high; /* skewed: allowed iff e_low <= i - j <= e_high */
    pe_band  band;
    pe_table by[PE_KINDS];
    double  *center; /* [H] what was taken from the bias before it was rounded; NULL: nothing */
    double  *exact;  /* [threads, exact_count] scalars by distance before they are rounded */
    int64_t  exact_count;
    float   *basis, *W; /* [2, PE_CHUNK/2, ranks/2], [H, ranks, D]: basis.c; NULL: no member has a basis */
    float   *basis_scratch;     /* of all threads */
    double  *growth;            /* [D] of a rotation that grows; NULL: none */
    float   *q_grown, *k_grown; /* [batches, Lq, Dp], [batches, Lk, Dp] factors of rows within their tile */
    float   *q_table, *k_table; /* cosines and sines [batches, heads, L, 2M] */
    double  *kept;              /* [H, Lq, padded Lk] what the hook says: see shared.c; NULL: not kept */
    float   *kept_added;        /* the same, rounded */
    float   *beside[2];         /* by pe_side [heads, L, D - a->D]: see shared.c; NULL: not used */
    int64_t  q_batches, k_batches;
    pe_scratch *scratch; /* [threads] */

    pe_frequency *frequencies; /* [ranks/2] of the basis */
} pe_tiles;

/* The rows of a member of head h for a run of rows from x. */
static inline float *pe_rows_by(const pe_tiles *T, pe_kind kind, int64_t h, int64_t x)
{
    const pe_table *t = &T->by[kind];
    return t->rows + (h * t->count + pe_row_in(t, x)) * t->row;
}

/* The same transposed: [width, stride]. */
static inline const float *pe_columns_by(const pe_tiles *T, pe_kind kind, int64_t h, int64_t x)
{
    const pe_table *t = &T->by[kind];
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

/* In the backward of a hook with content, scores come less lse already: X may be large, and X - lse is taken
   in double, where float would round it at the size of X. */
static inline int pe_is_shifted(const pe_tiles *T, const pe_scratch *z)
{
    return z->backward && T->a->terms->hook.content;
}

/* Must a pair be asked for whether it is allowed? Otherwise its distance tells: e_low, e_high. */
static inline int pe_asks_pairs(const pe_tiles *T)
{
    return !T->skewed || T->a->unmasked || (T->a->mask & ~(POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) != 0;
}

/* Does a token of the pair stand apart, so that X takes the place of its bias? z has the tile's positions. */
static inline int pe_pair_is_apart(const pe_tiles *T, const pe_scratch *z, int64_t r, int64_t c)
{
    return pe_is_apart(T->a, z->q_pos[r]) || pe_is_apart(T->a, z->k_pos[c]);
}

/* A softmax does not see a constant: the largest bias of a head is taken from all of them while they are
   double, so that those which matter are small where they become float. lse gets it back. Scores that are
   wanted themselves keep all. */
static inline double pe_center(const pe_tiles *T, int64_t h)
{
    return T->center ? T->center[h] : 0;
}

/* Distance of table row r. */
static inline int64_t pe_band_distance(const pe_band *band, int64_t r)
{
    return band->t0 + band->slope * r;
}

/* ---- which queries of a tile meet which of its keys ---- */

/* Are there allowed pairs in tile (I,J)? */
static inline int pe_tile_is_reached(const pe_tiles *T, int64_t I, int64_t J)
{
    const pe_problem *p  = &T->a->sizes;
    const int64_t     i0 = I * T->Br, i1 = pe_smaller(i0 + T->Br, p->Lq), j0 = J * T->Bc,
                  j1 = pe_smaller(j0 + T->Bc, p->Lk);
    return !T->skewed || T->a->unmasked || (i1 - 1 - j0 >= T->e_low && i0 - (j1 - 1) <= T->e_high);
}

/* Queries of a tile that meet keys first .. first+count-1 together; first is a multiple of PE_LANES. Where
   all queries see all keys, one group is all of them. */
typedef struct pe_group {
    int64_t rows, first, count;
} pe_group;

static inline pe_group pe_group_at(const pe_scratch *z, int64_t r, int64_t R, int64_t C)
{
    if (!z->limited)
        return (pe_group){R, 0, C};
    const int64_t rows = pe_smaller(PE_LANES, R - r), first = z->low[r] / PE_LANES * PE_LANES,
                  last = z->high[r + rows - 1]; /* limits rise from row to row */
    return (pe_group){rows, first, last > first ? last - first : 0};
}

/* And the other way: queries that meet any of the keys c .. c+n-1 of the tile; `first` and `count` are
   theirs. */
static inline pe_group pe_meeting(const pe_scratch *z, int64_t c, int64_t n, int64_t R)
{
    pe_group y = {n, 0, R};
    while (z->limited && y.count && z->high[y.first] <= c)
        y.first++, y.count--;
    while (z->limited && y.count && z->low[y.first + y.count - 1] >= c + n)
        y.count--;
    return y;
}

/* Columns of a tile's row that its query may see: first .. last-1. */
static inline pe_group pe_seen_columns(const pe_scratch *z, int64_t r, int64_t C)
{
    return z->limited ? (pe_group){1, z->low[r], z->high[r] - z->low[r]} : (pe_group){1, 0, C};
}

/* The same on diagonals (pe_shift_tile): of rows r .. r+rows-1 the columns of the band that any of them
   sees. */
static inline pe_group pe_band_group(const pe_scratch *z, int64_t r, int64_t R, int64_t C)
{
    const int64_t  rows = pe_smaller(PE_LANES, R - r);
    const pe_group top = pe_seen_columns(z, r, C), low = pe_seen_columns(z, r + rows - 1, C);
    const int64_t  first = R - r - rows + top.first, last = R - 1 - r + low.first + low.count;
    return (pe_group){rows, first, low.first + low.count > top.first ? last - first : 0};
}

static inline int pe_meets_band(const pe_scratch *z, int64_t r, int64_t x, int64_t n, int64_t R, int64_t C)
{
    const pe_group y     = pe_seen_columns(z, r, C);
    const int64_t  first = R - 1 - r + y.first;
    return y.count > 0 && first < x + n && first + y.count > x;
}

/* And queries that see any of the band's columns x .. x+n-1; `first` and `count` are theirs. */
static inline pe_group pe_meeting_band(const pe_scratch *z, int64_t x, int64_t n, int64_t R, int64_t C)
{
    pe_group y = {n, 0, R};
    while (y.count && !pe_meets_band(z, y.first, x, n, R, C))
        y.first++, y.count--;
    while (y.count && !pe_meets_band(z, y.first + y.count - 1, x, n, R, C))
        y.count--;
    return y;
}

/* ---- tiles_make.c: sizes, scratch, and tables of a rotation ---- */

/* Sizes, tables and scratch. Tables are filled only where the arena has memory. */
pe_tiles pe_tiles_make(const pe_attention *a, pe_arena *arena, int backward);

/* Cosines and sines of the queries and, with `keys`, of the keys; filled where the arena has memory. */
void pe_turns_make(pe_tiles *T, pe_arena *arena, int keys);

/* ---- tables.c: members by distance ---- */

/* The band of a run; tables laid out (on an arena without memory: counted, for any positions) and filled. */
void pe_band_find(pe_tiles *T);
void pe_tables_lay_out(pe_tiles *T, pe_arena *arena, int backward);
void pe_tables_fill(pe_tiles *T);
/* -infinity where there is none; a NaN is passed over. */
double pe_largest(const double x[], int64_t n);

/* ---- basis.c ---- */

/* Is member A a basis times a parameter, to be multiplied in float? Its memory; its tables filled, but for
   what lies around them. */
int  pe_basis_serves(const pe_tiles *T);
void pe_basis_lay_out(pe_tiles *T, pe_arena *arena);
void pe_basis_fill(pe_tiles *T);

/* ---- tile_rows.c: rows of the tensors on their way into tiles and out of them ---- */

/* Rows s0 .. s0+n-1 of q or k in float, prepared and turned, stride Dp, padding zeroed; z lends its memory.
   The second form of queries goes to to2 (NULL where there is one form). */
void pe_load_turned(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side, int64_t b,
                    int64_t h, int64_t s0, int64_t n);
/* Rows of v or dout, or to o and dv: no rotation. */
void pe_load_plain(float *to, int64_t stride, const posenc_tensor *t, int64_t b, int64_t h, int64_t s0,
                   int64_t n, int64_t width);
/* Rows s0 .. s0+n-1 of item b, head h, will be wanted soon: asks for them, if there is such an item. Rows of
   short sequences lie apart, many to a page and few to a head, so that no prefetcher foresees them. */
void pe_call_rows(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, int64_t width);
void pe_store_plain(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, const float *from,
                    int64_t stride, int64_t width);
/* Turned back and written to dq or dk; rows that were prepared are not written: pe_fold_prepared does it. */
void pe_store_turned(const pe_tiles *T, float *rows, pe_side side, const posenc_tensor *to, int64_t b,
                     int64_t h, int64_t s0, int64_t n);
/* Cotangents of prepared rows (turned back; stride Dp, forms `form_step` apart) to dq or dk and to
   parameters. */
void pe_fold_prepared(const pe_tiles *T, const pe_scratch *z, const float *rows, int64_t form_step,
                      pe_side side, int64_t b, int64_t h, int64_t s0, int64_t n);
/* scale*(q + u) and scale*(q + w) of n loaded rows; Qw may be NULL. */
void pe_scale_queries(const pe_tiles *T, float *Qu, float *Qw, int64_t h, int64_t n);
/* key[j] = 0 or -infinity for item b; returns NULL without a padding mask. */
const float *pe_key_mask(const pe_tiles *T, float *key, int64_t b);

/* n prepared rows of q or k in double, as pe_load_turned makes them, into `to`; z lends its memory. */
void pe_prepare_exactly(const pe_tiles *T, const pe_scratch *z, double *to, pe_side side, int64_t b,
                        int64_t h, int64_t s0, int64_t n);

/* ---- tile_scores.c: the scores of one tile ---- */

/* The tile's products into s (stride Bcp), and the terms that the kernels which finish scores are to add. One
   of those, the bias, else the band, else numbers of pairs where they lie, is in s already and NULL in the
   terms: all but sharp products, two forms and hooks with content take it on their way out. Returns 0, and
   leaves s alone, if no pair of the tile is allowed. Qu, Qw: scaled rows (q+u), (q+w) of the tile, stride Dp;
   Kt: keys transposed [D, Bcp]. key: 0 or -infinity per key of the whole row, or NULL. reuse: the previous
   call had the previous key tile. */
int pe_tile_products(const pe_tiles *T, pe_scratch *z, float *s, int64_t b, int64_t h, int64_t I, int64_t J,
                     const float *Qu, const float *Qw, const float *Kt, const float *key, int reuse,
                     pe_tile_terms *terms);

/* The gate of tile (I,J) as a term for the kernel of that name (stride of rows in *step), or NULL. Call it
   after pe_tile_products, whose lookups it shares. */
const float *pe_tile_gate(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t I, int64_t J,
                          int64_t *step);

/* shift[r, R-1-r+c] = s[r,c], zero elsewhere: row by row onto diagonals. */
void pe_shift_tile(const pe_tiles *T, pe_scratch *z, const float *s, int64_t R, int64_t C);

/* to += X B, X the tile that lies on diagonals, B [R + C - 1, width] the band's rows, both with padded rows:
   for each group of queries the distances at which they see keys. */
void pe_band_product(const pe_tiles *T, const pe_scratch *z, float *to, const float *B, int64_t R, int64_t C,
                     int64_t width);

/* First row of the band of a tile, R + C - 1 rows long. */
int64_t pe_band_start(const pe_tiles *T, int64_t i0, int64_t R, int64_t j0);

/* Positions and segments of the tile's queries and keys, from z->i0 and z->j0 on. */
void pe_load_places(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t R, int64_t C);

/* What the hook sees of the tile at hand. */
pe_tile pe_hook_tile(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t R, int64_t C);

/* The tile's products in double, each with its share of X (rows `step` apart), into s. */
void pe_sharp_add(const pe_tiles *T, const pe_scratch *z, float *s, const double *X, int64_t step, int64_t R,
                  int64_t C);

/* ---- growth.c: rotations whose pairs grow with the distance ---- */

/* Factors of a run; before the product of a tile, queries times what they grow by until its keys (z->Qg,
   z->grow); keys times what they lack (`to` may be K; the adjoint is the same). */
void pe_growth_lay_out(pe_tiles *T, pe_arena *arena);
void pe_grow_queries(const pe_tiles *T, pe_scratch *z, int64_t b, const float *Qu, int64_t R);
void pe_grow_keys(const pe_tiles *T, float *to, const float *K, int64_t b, int64_t j0, int64_t C);

/* ---- sharp.c: products that are taken in double ---- */

/* Room for so many columns of sharp products: the kernel writes whole vectors from any column on. */
static inline int64_t pe_sharp_padded(int64_t n)
{
    return pe_padded(n) + PE_LANES;
}

/* Are products taken in double? Then they are there, in z->sharp with what is to be taken from each row in
   z->top, before the tiles of a query tile (forward; `whole`: scores themselves are wanted, nothing is
   taken), or of one tile (backward: lse is taken). */
int  pe_is_sharp(const pe_tiles *T);
void pe_sharpen_row(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R, int whole);
void pe_sharpen_tile(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                     int64_t j0, int64_t C, const float lse[]);

/* ---- shared.c: what a hook says of all pairs, made once ---- */

/* What a hook says of all pairs, where it depends on positions that a batch shares and the pairs are few.
   Laid out and filled (T->kept is NULL where it is not so); the share of the tile at hand added to its terms,
   or to sharp products. */
void pe_kept_lay_out(pe_tiles *T, pe_arena *arena);
void pe_kept_add(const pe_tiles *T, pe_scratch *z, float *s, int64_t h, int64_t R, int64_t C,
                 pe_tile_terms *terms);

/* ---- shared.c: what stands beside q and k and follows from the position alone ---- */

/* What stands beside q and k and follows from the position alone (pe_preparation), made once per run where
   all items have the same positions. Laid out and filled; n rows of it copied behind the a->D numbers of rows
   already there; their cotangents, of rows as wide as those, added to sums [heads, L, D - a->D]; in the end
   folded to parameters. */
void pe_beside_lay_out(pe_tiles *T, pe_arena *arena);
void pe_beside_load(const pe_tiles *T, float *rows, pe_side side, int64_t h, int64_t s0, int64_t n);
void pe_beside_sum(const pe_tiles *T, double *sums, const float *rows, pe_side side, int64_t h, int64_t s0,
                   int64_t n);
void pe_beside_fold(const pe_tiles *T, const double *sums, pe_side side);

/* Numbers of all its rows, of one side. */
static inline int64_t pe_beside_size(const pe_attention *a, pe_side side)
{
    const pe_problem *p    = &a->sizes;
    const int64_t     rows = side == PE_KEYS ? p->G * p->Lk : p->H * p->Lq;
    return a->terms->prepare.beside && p->B > 1 ? rows * (p->D - a->D) : 0;
}

#endif

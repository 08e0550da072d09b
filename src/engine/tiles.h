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

#include "engine/attend.h"
#include "engine/ladder.h"

static inline int64_t pe_padded(int64_t n)
{
    return (n + PE_LANES - 1) / PE_LANES * PE_LANES;
}

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
    double  *kept;              /* [H, Lq, padded Lk] what the hook says: see kept.c; NULL: not kept */
    float   *kept_added;        /* the same, rounded */
    float   *beside[2];         /* by pe_side [heads, L, D - a->D]: see beside.c; NULL: not used */
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

#endif

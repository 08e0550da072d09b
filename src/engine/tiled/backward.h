/* SPDX-License-Identifier: MIT */
/*
 * backward.h: what the files of the tiled backward share
 *
 * tiled_backward.c goes through the batch, holds the formulas and takes the sums to parameters when all is
 * done; pair_backward.c does one pair of tiles.
 */
#ifndef PE_ENGINE_BACKWARD_H
#define PE_ENGINE_BACKWARD_H

#include "engine/tiled/tiles.h"

/* chain_backward.c: queries that are transformed from key to key. */
typedef struct pe_chain_back pe_chain_back;

/* A query of a stick: the logarithm of what all keys leave, of what the tiles until now do; the sum of g
   there (engine/score/stick.c); the cotangent of what is left. */
typedef struct pe_stick_state {
    double all, gone, prefix, drem;
} pe_stick_state;

typedef struct pe_backward {
    pe_tiles T;
    int64_t  b;      /* the item at hand */
    int64_t  chunks; /* per key head */
    int      wants[PE_KINDS], wants_u, wants_w, wants_us, wants_G, wants_hook;
    /* the item's queries and keys */
    float       *Qu, *Qw, *dout, *delta, *lse; /* [forms,H,Lq,Dp], [H,Lq,Ap], [H,Lq,Dvp], [H,Lq], [H,Lq] */
    float       *dlse;                         /* [H,Lq]; NULL: 0 */
    float       *key;                          /* [Lk] */
    const float *key_mask;
    /* sums: of the item, and over the batch */
    float   *dQ;              /* [forms,chunks,H,Lq,Dp] */
    float   *dprofile;        /* [chunks,H,Lq,Ap]; NULL: there is none, or it is not wanted */
    float   *dK;              /* [G,Lk,Dp] of prepared keys, until they are folded */
    double  *hook_sums;       /* as T.hook_cache */
    double  *dby_position[2]; /* by pe_side, as T.by_position */
    double  *dby1[PE_KINDS];  /* [H,chunks,table_rows] of bias and gate */
    float   *dby[PE_KINDS];   /* [H,chunks,table_rows,row] of A, B, r */
    double  *du, *dw, *dus;   /* [H,chunks,D] */
    double  *dG;              /* [H,chunks,2,D] */
    double  *hook;            /* [G*chunks, hook_count]: parameters of the part, end to end */
    double **hook_pointers;   /* [G*chunks, PE_HOOK_PARAMS] */
    double  *total, *mass;    /* [widest row] of one head: see find_residue */
    int64_t  hook_count;
    double  *state;  /* [H,Lq,PE_HOOK_STATE] of a hook that travels */
    int is_short;    /* rows of at most PE_SHORT keys, or products in double: delta is taken from the weights
                        themselves */
    double *moments; /* [H,Lq,2] of such rows: sums of W and W*dW */
    double
        *drift_rows[PE_SIDES]; /* [chunks,H,Lq] cotangents of queries' running sums; NULL: they are known */
    double         *dtau;      /* [chunks,H,Lq] of scores that are tempered; NULL: not wanted */
    pe_chain_back  *chain;     /* NULL: there is none */
    pe_stick_state *stick;     /* [H,Lq]; NULL: weights are a softmax */
    int64_t        *stick_own; /* [Lq] the key whose value gets what is left; -1: none */
} pe_backward;

/* Where the second form of queries at Qu lies; NULL where there is one. */
static inline float *pe_second_form(const pe_backward *w, float *Qu)
{
    const pe_attention *a = w->T.a;
    return pe_forms(a->terms) > 1 ? Qu + a->sizes.H * a->sizes.Lq * w->T.Dp : NULL;
}

/* Tiles I and J of head h are at hand from here on, and their sums go to those of a chunk. */
void pe_pair_backward_begin(const pe_backward *w, pe_scratch *z, int64_t h, int64_t chunk, int64_t I,
                            int64_t J);

/* Their share of all sums. */
void pe_pair_backward_run(const pe_backward *w, pe_scratch *z);

/* What the sums need of all keys of a query, if anything: the moments of short rows of several tiles, what is
   left of a stick, what a travelling hook's state ends as. Queries i0 .. i0+R-1 of head h: before their key
   tiles, with each of these at hand, from right to left, and after them. */
int  pe_looks_ahead(const pe_backward *w);
void pe_look_begin(const pe_backward *w, pe_scratch *z, int64_t h, int64_t i0, int64_t R);
void pe_look(const pe_backward *w, pe_scratch *z);
void pe_look_end(const pe_backward *w, pe_scratch *z, int64_t h, int64_t i0, int64_t R);

/* x += f*y */
static inline void pe_add_floats(float *x, float f, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += f * y[i];
}

/* hook_cache.c: sums for a hook that is cached (NULL: it is not), the pair's share of them, and all of them
   to parameters. */
double *pe_hook_cache_sums(const pe_attention *a, pe_arena *arena);
void    pe_hook_cache_sum(const pe_backward *w, const pe_scratch *z, const float *dS);
void    pe_hook_cache_fold(const pe_backward *w);

/* stick.c: memory; of an item, the key of each query's rest; queries of which all keys are known to leave
   z->stick.left; then, tile by tile, what is left to its value, weights, and cotangents of weights (z->W) to
   those of scores. */
void pe_stick_back_lay_out(pe_backward *w, pe_arena *arena);
void pe_stick_find_own(const pe_backward *w);
void pe_stick_start(const pe_backward *w, pe_scratch *z, int64_t h, int64_t i0, int64_t R);
void pe_stick_rest_back(const pe_backward *w, pe_scratch *z);
void pe_stick_weights_again(const pe_backward *w, pe_scratch *z, const pe_tile_terms *terms);
void pe_stick_cotangent(const pe_backward *w, pe_scratch *z);

/* chain_backward.c: memory, NULL where there is no chain; the item's key tiles, in place of the others. */
pe_chain_back *pe_chain_back_lay_out(const pe_tiles *T, pe_arena *arena);
void           pe_chain_back_run(pe_backward *w);

/* tiled_backward.c: memory; after pe_tiles_fill, the run. */
pe_backward pe_tiled_backward_lay_out(const pe_attention *a, pe_arena *arena);
void        pe_tiled_backward_run(pe_backward *w);

#endif

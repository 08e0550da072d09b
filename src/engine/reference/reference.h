/* SPDX-License-Identifier: MIT */
/*
 * reference.h: what the files of the reference executor share
 *
 * One head of one item in double: rows as the formula of terms.h reads them, members by distance as tables,
 * memory for rows under way. reference.c loads it, computes rows of scores of it and runs forward,
 * reference_back.c backward.
 */
#ifndef PE_ENGINE_REFERENCE_H
#define PE_ENGINE_REFERENCE_H

#include "engine/score/attention.h"

/* One (b,h) in double. */
typedef struct pe_reference_head {
    const pe_attention *a;
    int64_t             b, h;
    double             *Q, *K, *V; /* [Lq,forms,D] and [Lk,D] prepared and rotated, [Lk,Dv] */
    double             *growth;    /* [D], and [threads, D] factors of a pair: growth.c */
    double *raw, *draw;    /* rows as the caller has them, [max(Lq,Lk), a->D], where they are prepared */
    double *q_pos, *k_pos; /* [Lq], [Lk] */
    double *by[PE_KINDS];  /* members by t - distances.low: [count, width] */
    double *rows;  /* [threads, PE_REFERENCE_ROWS, max(Lk, Dv)]: scores, output, products, their cotangents */
    double *state; /* [threads, PE_HOOK_STATE] */
    double *dQ, *dK, *dV;   /* backward: as Q, K, V */
    double *dby[PE_KINDS];  /* their cotangents */
    double *dout;           /* [Dv] */
    const posenc_tensor *S; /* scores only */
} pe_reference_head;

/* Rows that each thread has. */
enum { PE_ROW_SCORES, PE_ROW_OUTPUT, PE_ROW_PRODUCTS, PE_ROW_DPRODUCTS, PE_REFERENCE_ROWS };

/* Takes the memory; counts where the arena has none. */
pe_reference_head pe_reference_lay_out(const pe_attention *a, pe_arena *arena, int backward);

/* Everything of head h of item b; and its steps: all rows of a side turned forward or back, rows loaded. */
void pe_reference_load(pe_reference_head *x, int64_t b, int64_t h);
void pe_reference_turn(const pe_reference_head *x, pe_side side, int64_t h, double *rows, double sign);
void pe_reference_load_rows(double *to, const posenc_tensor *t, int64_t b, int64_t h, int64_t L,
                            int64_t width);

/* Numbers per prepared query: more than sizes.D where it has two forms. */
int64_t pe_query_width(const pe_attention *a);
/* A row of this thread. */
double *pe_reference_row(const pe_reference_head *x, int thread, int which);
/* The row of a member for pair (i,j); NULL where there is no such member. */
const double *pe_reference_member(const pe_reference_head *x, pe_kind kind, int64_t i, int64_t j);

/* s[j] for every allowed key of query i, -infinity for the others. */
void pe_reference_score_row(const pe_reference_head *x, int64_t i, double *s, int thread);
/* (q_i + u) . k_j; with two forms the modulus of both, and in share (may be NULL) how far each moves it. */
double pe_reference_product(const pe_reference_head *x, int64_t i, int64_t j, double share[2], int thread);
/* What multiplies each channel of the product of a pair; NULL: 1. The memory is the thread's. */
const double *pe_pair_growth(const pe_reference_head *x, int64_t i, int64_t j, int thread);
/* The hook's view of row i: all keys in one tile. */
pe_tile pe_reference_tile(const pe_reference_head *x, int64_t i, int thread);
/* Are query i and key j of different segments? */
int pe_reference_differs(const pe_reference_head *x, int64_t i, int64_t j);
/* Is the hook's X all that is added to the pair, in the place of the bias by distance? */
int    pe_reference_is_apart(const pe_reference_head *x, int64_t i, int64_t j);
double pe_reference_dot(const double *a, const double *b, int64_t n);

#endif

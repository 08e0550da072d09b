/* SPDX-License-Identifier: MIT */
/*
 * kernels.h: the contract book of the hot loops
 *
 * Kernels take floats (one of them doubles), strides and counts, return void and cannot fail: all checking was done when the run began.
 * Each is written once (*.inc) against the small vector layer vec_*.h and compiled once per instruction set; a
 * plan holds the table that dispatch.c chose. Strides are in elements. "Padded" means: rows may be read and
 * written up to the next multiple of PE_LANES columns, and the machine allocated them so.
 *
 * Everything the tiled attention multiplies is one kernel, `product`: scores, values and all five products of the
 * backward pass are C = A*B with A read at two free strides (so A transposed costs nothing: its elements are
 * broadcast) and B read along its rows.
 */
#ifndef PE_KERNELS_KERNELS_H
#define PE_KERNELS_KERNELS_H

#include <stdint.h>

enum {
    PE_LANES   = 16,
    PE_LANES64 = 8
}; /* padding of rows in the machine's buffers: the widest vector in floats, in doubles */

/*
 * product: C = A*B, or C += A*B
 *
 * Formula  C[r,c] = (add ? C[r,c] : 0) + sum_k A[r,k] * B[k,c]
 * Shapes   C [R, C] at c + r*c_stride; A element (r,k) at a + r*a_row + k*a_col; B row k at b + k*b_stride
 *          columns padded to PE_LANES: C and B are read and written beyond `columns` up to the multiple
 *          R, K >= 0; A, B, C do not overlap
 * Error    the sum is taken in the order of k by fused multiply-adds: K/2 ulp of sum |A||B|
 * Speed    the FMA limit: B rows of a block are loaded once for several rows of C
 * Threads  pure
 */
typedef void pe_product_fn(float *c, int64_t c_stride, const float *a, int64_t a_row, int64_t a_col,
                           const float *b, int64_t b_stride, int64_t R, int64_t columns, int64_t K, int add);

/* product64: the same in doubles, padded to PE_LANES64; for rooms whose rows follow from each other. */
typedef void pe_product64_fn(double *c, int64_t c_stride, const double *a, int64_t a_row, int64_t a_col,
                             const double *b, int64_t b_stride, int64_t R, int64_t columns, int64_t K,
                             int add);

/* What is added to a tile of products to make scores. Any pointer may be NULL. Row r of a term starts at
   term + r*step; a bias by distance has step -1 because the distance grows by one per query. */
typedef struct pe_tile_terms {
    const float   *bias, *skewed, *extra, *key;        /* four streams of [R, columns] */
    int64_t        bias_step, skewed_step, extra_step; /* key: the same row for every query */
    const int32_t *low,
        *high; /* allowed columns of row r: low[r] <= c < high[r]; both NULL: all of `columns` */
} pe_tile_terms;

/*
 * scores_finish: products become scores
 *
 * Formula  S[r,c] = S[r,c] + bias + skewed + extra + key where allowed, -infinity elsewhere
 * Shapes   s [R, columns] padded; the padding becomes -infinity
 */
typedef void pe_scores_finish_fn(float *s, int64_t s_stride, const pe_tile_terms *terms, int64_t R,
                                 int64_t columns);

/*
 * softmax_step: one step of the online softmax
 *
 * Formula  m' = max(m, max_c S), W = exp(S - m'), l' = l*f + sum_c W, f = exp(m - m') (0 while m is -infinity)
 *          S becomes W; m and l are updated; factor[r] = f is what the running output must be multiplied by
 * Shapes   s [R, columns] padded (padding holds -infinity); m, l, factor [R]
 * Error    exp within 2 ulp; arguments below -87.3 give 0
 * Special  a row of -infinity leaves m, l and gives W = 0, f = 1
 */
typedef void pe_softmax_step_fn(float *s, int64_t s_stride, float *m, float *l, float *factor, int64_t R,
                                int64_t columns);

/*
 * weights: the weights again from scores and log-sum-exp, for the backward pass
 *
 * Formula  W[r,c] = exp(S[r,c] - lse[r]); 0 where lse is -infinity
 */
typedef void pe_weights_fn(float *s, int64_t s_stride, const float *lse, int64_t R, int64_t columns);

/*
 * score_cotangent: dS = W * (dW - delta)
 *
 * Shapes   dw [R, columns] padded: becomes dS; w the same shape; delta [R] = sum_d do*o
 */
typedef void pe_score_cotangent_fn(float *dw, const float *w, int64_t stride, const float *delta, int64_t R,
                                   int64_t columns);

/* gate, add_skewed: w[r,c] *= y, x[r,c] += y with y = term[r*step + c]; a term by distance has step -1. */
typedef void pe_gate_fn(float *w, int64_t stride, const float *term, int64_t step, int64_t R,
                        int64_t columns);
typedef void pe_add_skewed_fn(float *x, int64_t stride, const float *term, int64_t step, int64_t R,
                              int64_t columns);

/*
 * row_moments, exact_cotangent: the softmax's backward where a row is short enough to be seen whole
 *
 * Formula  sums[r] = (sum_c W, sum_c W*dW), added;   then dS = W * (dW - sums[r][1] / sums[r][0])
 *          delta from the very W and dW it will meet, in double: a saturated softmax (W near 1 for one key) leaves a
 *          difference of nearly equal numbers, of which dO.O in float would leave noise
 * Shapes   w, dw [R, columns], dw becomes dS; sums [R, 2] double
 */
typedef void pe_row_moments_fn(double *sums, const float *w, const float *dw, int64_t stride, int64_t R,
                               int64_t columns);
typedef void pe_exact_cotangent_fn(float *dw, const float *w, int64_t stride, const double *sums, int64_t R,
                                   int64_t columns);

/* scale_rows: x[r,:] *= factor[r], skipping rows whose factor is 1. */
typedef void pe_scale_rows_fn(float *x, int64_t stride, const float *factor, int64_t R, int64_t columns);

/* diagonal_sums: sums[c + (R-1-r)] += x[r,c], the adjoint of a bias with step -1. sums has R + columns - 1. */
typedef void pe_diagonal_sums_fn(float *sums, const float *x, int64_t stride, int64_t R, int64_t columns);

/*
 * dot_rows: out[r] = sum_c x[r,c]*y[r,c]
 *
 * Error    the very sum that `product` makes of the same numbers, in its order and with its rounding: where a query sees
 *          one key alone, O is that key's V, and dW - delta must be 0, not noise
 */
typedef void pe_dot_rows_fn(float *out, const float *x, int64_t x_stride, const float *y, int64_t y_stride,
                            int64_t R, int64_t columns);

/*
 * rotate_half, rotate_interleaved: turn pairs of channels by their position's angles, in place
 *
 * Formula  y_a = x_a * c - s * x_b * n       c = cos(r,m), n = sin(r,m), s = sign
 *          y_b = x_b * c + s * x_a * n
 *          half-split a = m, b = m + M; interleaved a = 2m, b = 2m + 1
 *          sign +1 turns forward; -1 turns back, which is also the gradient
 * Shapes   x [R, 2M], row r at x + r*x_stride; table [R, 2M]: M cosines, then M sines (magnitude included)
 * Error    |y - exact| <= 2^-22 * hypot(x_a, x_b) per element, for the table as given
 * Special  NaN and infinity in x spread to their own pair only
 * Source   Su et al. 2021, arXiv:2104.09864, eq. 34 (interleaved); half-split: GPT-NeoX
 */
typedef void pe_rotate_fn(float *x, int64_t x_stride, const float *table, int64_t t_stride, int64_t R,
                          int64_t M, float sign);

/*
 * cosines: of exact angles, in double
 *
 * Formula  cosine[i], sine[i] of position[i] * (k[2*i*step] + k[2*i*step + 1]) quarter turns: base/quarter.h, the same bits
 * Shapes   position, cosine, sine [n]; k pairs of doubles, `step` pairs apart (0: one for all)
 * Speed    n loops without branches: the limit is that of double fused multiply-adds, 20 for an angle
 */
typedef void pe_cosines_fn(const double *position, const double *k, int64_t step, double *cosine,
                           double *sine, int64_t n);

typedef struct pe_kernels {
    const char            *isa;
    pe_product_fn         *product;
    pe_product64_fn       *product64;
    pe_scores_finish_fn   *scores_finish;
    pe_softmax_step_fn    *softmax_step;
    pe_weights_fn         *weights;
    pe_score_cotangent_fn *score_cotangent;
    pe_row_moments_fn     *row_moments;
    pe_exact_cotangent_fn *exact_cotangent;
    pe_gate_fn            *gate;
    pe_add_skewed_fn      *add_skewed;
    pe_scale_rows_fn      *scale_rows;
    pe_diagonal_sums_fn   *diagonal_sums;
    pe_dot_rows_fn        *dot_rows;
    pe_rotate_fn          *rotate_half, *rotate_interleaved;
    pe_cosines_fn         *cosines;
} pe_kernels;

/* The best table this processor can run, or the one that POSENC_ISA names; NULL if it can run none of that name. */
const pe_kernels *pe_kernels_choose(void);
/* The table of that name ("plain", "avx2", "avx512", "neon"), NULL if this processor cannot run it. */
const pe_kernels *pe_kernels_named(const char *name);
/* What POSENC_ISA says; NULL if it is empty or not set. */
const char *pe_kernels_wanted(void);
/* Table number `index` of those this processor can run, best last; NULL beyond. */
const pe_kernels *pe_kernels_at(int index);

#endif

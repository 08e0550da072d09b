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

enum { PE_LANES = 16 }; /* padding of rows in the machine's buffers: the widest vector in floats */

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

/* Rows of a cache of keys or values as the caller keeps them. */
typedef enum pe_cache_type { PE_CACHE_F32, PE_CACHE_BF16, PE_CACHE_F16 } pe_cache_type;

enum { PE_CACHE_WIDEST = 512 }; /* channels of a row */

typedef struct pe_cache {
    const void   *rows; /* row c at c*stride elements */
    int64_t       stride;
    pe_cache_type type;
    const void   *next;      /* rows that will be wanted afterwards, for the prefetch; NULL: not known */
    int64_t       next_step; /* bytes from one to the next */
} pe_cache;

/*
 * cache_scores: products of a few queries with keys that lie as the caller keeps them
 *
 * Formula  S[r,c] = sum_d Q[r,d] * K[c,d]
 * Shapes   S [R, C] at s + r*s_stride, nothing beyond C is written; Q [R, D] floats; D a multiple of 2 PE_LANES, at most
 *          PE_CACHE_WIDEST
 * Error    partial sums of D/VL fused multiply-adds each, joined by a tree: (D/VL + log2 VL) ulp of sum |Q||K|
 * Speed    the read bandwidth of the machine where the keys come from memory and R is small
 */
typedef void pe_cache_scores_fn(float *s, int64_t s_stride, const float *q, int64_t q_stride,
                                const pe_cache *k, int64_t R, int64_t C, int64_t D);

/*
 * cache_values: O += W V, V as the caller keeps it
 *
 * Formula  O[r,d] = O[r,d] + sum_c W[r,c] * V[c,d], in the order of c, by fused multiply-adds
 * Shapes   O [R, D] floats at o + r*o_stride; W [R, C]; D a multiple of 2 PE_LANES
 */
typedef void pe_cache_values_fn(float *o, int64_t o_stride, const float *w, int64_t w_stride,
                                const pe_cache *v, int64_t R, int64_t C, int64_t D);

/*
 * slope_row: a bias that is a slope times the distance
 *
 * Formula  x[c] = slope * (|t0 + c*step| - near), in double, rounded once
 * Shapes   x [n]
 */
typedef void pe_slope_row_fn(float *x, double slope, double t0, double step, double near, int64_t n);

typedef struct pe_kernels {
    const char            *isa;
    pe_product_fn         *product;
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
    pe_cache_scores_fn    *cache_scores;
    pe_cache_values_fn    *cache_values;
    pe_slope_row_fn       *slope_row;
} pe_kernels;

/*
 * The second table: attention in bf16, on processors that multiply pairs of bf16. One tile is PE_BF16_QUERIES queries
 * (in the lanes) by some keys; "pairs" are two bf16 in 32 bits, the first in the lower half.
 */
enum { PE_BF16_QUERIES = 64 };

/*
 * scores: products of a tile, times scale (and log2 e: the softmax is one of powers of two), and a bias
 *
 * Formula  S[c,a] = scale * sum_d q[d,a] * k[c,d] + bias[a - c];   most[a] = max_c S[c,a]
 * Shapes   s [keys, 64], keys a multiple of 4; q [pairs, 64] pairs of channels; k rows of 2*pairs bf16, stride k_stride;
 *          bias read from bias - keys + 1 to bias + 63, or NULL; most [64]
 * Error    products are exact, sums are float: pairs ulp of sum |q||k|; subnormal numbers count as 0
 */
typedef void pe_bf16_scores_fn(float *s, const uint32_t *q, const uint16_t *k, int64_t k_stride,
                               int64_t pairs, int64_t keys, float scale, const float *bias, float *most);

/* mask: S[c,a] = -infinity unless low <= first + a - c <= high; plus key[c], 0 or -infinity (NULL: 0); `most` anew. */
typedef void pe_bf16_mask_fn(float *s, int64_t keys, const float *key, int64_t first, int64_t low,
                             int64_t high, float *most);

/*
 * softmax: one step, as softmax_step, in powers of two
 *
 * Formula  m' = max(m, most), P = 2^(S - m') rounded to bf16 in pairs of keys; l' = l*f + sum of P before rounding,
 *          rounded' = rounded*f + sum of P after it, f = 2^(m - m') (1 while m' is -infinity)
 * Shapes   p [keys/2, 64] pairs, keys even; the others [64]. Returns whether any f is not 1.
 * Error    2^x within 4 ulp; below 2^-149 it is 0. Rounding to bf16: 2^-8 of each weight at most
 */
typedef int pe_bf16_softmax_fn(uint32_t *p, const float *s, int64_t keys, const float *most, float *m,
                               float *l, float *rounded, float *factor);

/* values: O[d,a] = O[d,a]*factor[a] + sum_c P[c,a] V[c,d]; o [D, 64], D a multiple of 4; v [pairs, v_stride] pairs of keys;
   factor NULL: 1. Error: as scores. */
typedef void pe_bf16_values_fn(float *o, const uint32_t *p, const uint32_t *v, int64_t v_stride,
                               int64_t pairs, int64_t D, const float *factor);

/* narrow: n floats rounded to bf16 (to nearest, ties to even; subnormal ones to 0). pair_rows: two rows of bf16 as one of
   pairs. */
typedef void pe_bf16_narrow_fn(uint16_t *to, const float *from, int64_t n);
typedef void pe_bf16_pair_rows_fn(uint32_t *to, const uint16_t *first, const uint16_t *second, int64_t n);

/* cache_scores: as the kernel of that name for keys in bf16, with queries [R, D] in bf16 too. */
typedef void pe_bf16_cache_scores_fn(float *s, int64_t s_stride, const uint16_t *q, int64_t q_stride,
                                     const pe_cache *k, int64_t R, int64_t C, int64_t D);

typedef struct pe_bf16_kernels {
    pe_bf16_scores_fn       *scores;
    pe_bf16_mask_fn         *mask;
    pe_bf16_softmax_fn      *softmax;
    pe_bf16_values_fn       *values;
    pe_bf16_narrow_fn       *narrow;
    pe_bf16_pair_rows_fn    *pair_rows;
    pe_bf16_cache_scores_fn *cache_scores;
} pe_bf16_kernels;

/* The second table of the level that `kernels` is; NULL where the level has none. */
const pe_bf16_kernels *pe_kernels_bf16(const pe_kernels *kernels);

/* The best table this processor can run, or the one POSENC_ISA names ("plain", "avx2", "avx512",
   "avx512bf16"). */
const pe_kernels *pe_kernels_choose(void);
/* Table number `index` of those this processor can run, best last; NULL beyond. For tests. */
const pe_kernels *pe_kernels_at(int index);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * kernels.h: the contracts of the hot loops
 *
 * Kernels take floats (one of them doubles), strides and counts, return void and cannot fail: all checking
 * was done when the run began. Each is written once (*.inc) against the small vector layer vec_*.h and
 * compiled once per instruction set; a plan holds the table that kernels.c chose. Strides are in elements.
 * "Padded" means: rows may be read and written up to the next multiple of PE_LANES columns, and the caller
 * allocated them so.
 *
 * Everything the tiled attention multiplies is one kernel, `product`: scores, values and all five products of
 * the backward pass are C = A*B with A read at two free strides (so A transposed costs nothing: its elements
 * are broadcast) and B read along its rows.
 */
#ifndef PE_KERNELS_KERNELS_H
#define PE_KERNELS_KERNELS_H

#include <stdint.h>

enum {
    PE_LANES   = 16,
    PE_LANES64 = 8
}; /* padding of rows in scratch memory: the widest vector in floats, in doubles */

/*
 * product: C = A*B, or C += A*B
 *
 * Formula  C[r,c] = (add ? C[r,c] : 0) + sum_k A[r,k] * B[k,c]      the sum is rounded, then added
 * Shapes   C [R, C] at c + r*c_stride; A element (r,k) at a + r*a_row + k*a_col; B row k at b + k*b_stride
 *          columns padded to PE_LANES: C and B are read and written beyond `columns` up to the multiple
 *          R, K >= 0; A, B, C do not overlap
 * Error    the sum is taken in the order of k by fused multiply-adds: K/2 ulp of sum |A||B|, half a one of C
 *          more
 * Speed    the FMA limit: B rows of a block are loaded once for several rows of C
 * Threads  pure
 */
typedef void pe_product_fn(float *c, int64_t c_stride, const float *a, int64_t a_row, int64_t a_col,
                           const float *b, int64_t b_stride, int64_t R, int64_t columns, int64_t K, int add);

/* product_plus: C = A*B + P, P element (r,c) at plus + r*plus_step + c, read as C is; each sum is rounded,
   then added to. A's columns are 1 apart. For terms of scores: they cost almost nothing here, where a
   pass of their own takes 3 % of attention. ahead: NULL, or what later calls will read: whole blocks prefetch
   it while they multiply, row by row and as many floats of each as C has columns. What corresponds to C's
   last rows, in no whole block, is not prefetched. */
typedef struct pe_ahead {
    uintptr_t at[2];   /* addresses, never read and maybe beyond all memory; 0: none */
    int64_t   step[2]; /* bytes from row to row */
} pe_ahead;

typedef void pe_product_plus_fn(float *c, int64_t c_stride, const float *a, int64_t a_row, const float *b,
                                int64_t b_stride, int64_t R, int64_t columns, int64_t K, const float *plus,
                                int64_t plus_step, const pe_ahead *ahead);

/* product64: the same in doubles, padded to PE_LANES64; for rows that are computed from each other. */
typedef void pe_product64_fn(double *c, int64_t c_stride, const double *a, int64_t a_row, int64_t a_col,
                             const double *b, int64_t b_stride, int64_t R, int64_t columns, int64_t K,
                             int add);

/*
 * sigmoids: y = 1 / (1 + e^-x), in double, for gates
 *
 * Shapes   x, y [n]
 * Error    within 4 ulp where |x| <= 700; beyond it is 1, or below 1e-304
 * Special  -infinity gives 0, NaN gives NaN
 */
typedef void pe_sigmoids_fn(double *y, const double *x, int64_t n);

/*
 * logs: x becomes ln(1 + x), in double, for biases that bend; the same bits on every instruction set
 *
 * Shapes   x [n], none of them below 0
 * Error    within 4 ulp
 * Special  infinity gives infinity, NaN gives NaN
 */
typedef void pe_logs_fn(double *x, int64_t n);

/* What is added to a tile of products to make scores. Any pointer may be NULL. Row r of a term starts at
   term + r*step; a bias by distance has step -1 because the distance grows by one per query. */
typedef struct pe_tile_terms {
    const float   *bias, *skewed, *extra, *key;        /* four streams of [R, columns] */
    int64_t        bias_step, skewed_step, extra_step; /* key: the same row for every query */
    const float   *row;                                /* [R] one number for all keys of a query */
    float          cap;  /* the sum s of all these becomes cap tanh(s/cap); 0: none */
    const float   *gate; /* multiplies the weights; read only by `softmax` */
    int64_t        gate_step;
    const int32_t *low,
        *high; /* allowed columns of row r: low[r] <= c < high[r]; both NULL: all of `columns` */
} pe_tile_terms;

/*
 * scores_finish: products become scores
 *
 * Formula  S[r,c] = S[r,c] + row + skewed + bias + extra + key, capped, where allowed, -infinity elsewhere
 * Shapes   s [R, columns] padded; the padding becomes -infinity
 */
typedef void pe_scores_finish_fn(float *s, int64_t s_stride, const pe_tile_terms *terms, int64_t R,
                                 int64_t columns);

/* The state of the online softmax for a tile's queries. */
typedef struct pe_softmax {
    float  *shift; /* [R] subtracted from scores; -FLT_MAX at first */
    float  *sums;  /* [R, PE_LANES] of the weights, lane by lane */
    float  *o;     /* [R, columns] the running output, padded; rescaled when a shift rises */
    int64_t o_stride, columns;
} pe_softmax;

enum { PE_HEADROOM = 8 };

/*
 * softmax: one step of the online softmax
 *
 * Formula  S = s + terms, W = exp(S - shift), sums += W; s becomes gate * W
 *          Where a score is PE_HEADROOM above its row's shift, the shift becomes the largest score, and
 *          sums, output and the row's weights so far are multiplied by exp(old shift - shift). Any shift near
 *          the maximum serves as well as the maximum: weights reach e^8 instead of 1, and almost no row is
 *          ever rescaled.
 * Shapes   s [R, columns] padded; the padding becomes 0
 * Error    exp within 3 + 1.25 |S - shift| ulp, the second about what the rounding of S may cost; below -69
 *          at most 2^-99, from -70 on 0; the cap as in temper
 * Special  a row of -infinity changes nothing and gives W = 0; NaN gives NaN
 */
typedef void pe_softmax_fn(float *s, int64_t s_stride, const pe_tile_terms *terms, const pe_softmax *to,
                           int64_t R, int64_t columns);

/*
 * weights: the weights again from products, terms and log-sum-exp, for the backward pass
 *
 * Formula  W[r,c] = exp(s + terms - lse[r]), with the error of softmax;
 *          0 where lse is -infinity. It takes no gate.
 * Shapes   s [R, columns] padded; the padding becomes 0
 */
typedef void pe_weights_fn(float *s, int64_t s_stride, const pe_tile_terms *terms, const float *lse,
                           int64_t R, int64_t columns);

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

/* join_rows: to[r,c] = x[r,c] + y[c]; columns padded to PE_LANES. */
typedef void pe_join_rows_fn(float *to, int64_t to_stride, const float *x, int64_t x_stride, const float *y,
                             int64_t R, int64_t columns);

/* butterfly: x and y become x + y and x - y; columns padded to PE_LANES. */
typedef void pe_butterfly_fn(float *x, int64_t x_stride, float *y, int64_t y_stride, int64_t R,
                             int64_t columns);

/*
 * modulus: x = sqrt(x^2 + y^2)
 *
 * Shapes   x, y [R, columns] padded, of one stride
 * Error    within 2^-23 of itself where the squares are normal numbers
 */
typedef void pe_modulus_fn(float *x, const float *y, int64_t stride, int64_t R, int64_t columns);

/*
 * row_moments, exact_cotangent: the softmax's backward where a row is short enough to be seen whole
 *
 * Formula  sums[r] = (sum_c W, sum_c W*dW), added;   then dS = W * (dW - sums[r][1] / sums[r][0])
 *          delta from the same W and dW, in double: a saturated softmax (W near 1 for one key) gives a
 *          difference of nearly equal numbers, of which dO.O in float would leave only noise
 * Shapes   w, dw [R, columns], dw becomes dS; sums [R, 2] double
 */
typedef void pe_row_moments_fn(double *sums, const float *w, const float *dw, int64_t stride, int64_t R,
                               int64_t columns);
typedef void pe_exact_cotangent_fn(float *dw, const float *w, int64_t stride, const double *sums, int64_t R,
                                   int64_t columns);

/* What finished scores go through before the softmax, of a tile of queries. */
typedef struct pe_tempering_of_tile {
    const float *tau;   /* [R]; NULL: 1 */
    float        cap;   /* 0: none */
    float       *raw;   /* [R, columns] gets the scores as they were; NULL: nobody wants them */
    float       *slope; /* the same, gets 1 - (Z/cap)^2, and 0 for -infinity; NULL: nobody wants it */
} pe_tempering_of_tile;

/*
 * temper: Z = cap tanh(tau S / cap)
 *
 * Shapes   s [R, columns] padded: becomes Z; raw and slope as s
 * Error    tanh within 3e-7 of itself
 * Special  -infinity stays whatever tau is, NaN stays NaN
 */
typedef void pe_temper_fn(float *s, int64_t stride, const pe_tempering_of_tile *by, int64_t R,
                          int64_t columns);

/* scale_rows: x[r,:] *= factor[r], skipping rows whose factor is 1. */
typedef void pe_scale_rows_fn(float *x, int64_t stride, const float *factor, int64_t R, int64_t columns);

/* lane_sums: out[r] = sum of row r of lanes [R, PE_LANES]: halves are added, then halves of that. */
typedef void pe_lane_sums_fn(float *out, const float *lanes, int64_t R);

/* diagonal_sums: sums[c + (R-1-r)] += x[r,c], the adjoint of a bias with step -1. sums has R + columns -
   1. */
typedef void pe_diagonal_sums_fn(float *sums, const float *x, int64_t stride, int64_t R, int64_t columns);

/*
 * dot_rows: out[r] = sum_c x[r,c]*y[r,c]
 *
 * Error    the very sum that `product` makes of the same numbers, in its order and with its rounding: where a
 *          query sees only one key, O is that key's V, and dW - delta must be 0, not noise
 */
typedef void pe_dot_rows_fn(float *out, const float *x, int64_t x_stride, const float *y, int64_t y_stride,
                            int64_t R, int64_t columns);

/* transpose: to[c, r] = from[r, c], 0 for rows from R on to to_stride, which is a multiple of PE_LANES. */
typedef void pe_transpose_fn(float *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t R,
                             int64_t columns);

/*
 * rotate: rotates pairs of channels by their position's angles, all heads of some tokens
 *
 * Formula  y_a = x_a * c - s * x_b * n       c = cos(t,m), n = sin(t,m), s = sign
 *          y_b = x_b * c + s * x_a * n
 *          half-split a = m, b = m + M; interleaved a = 2m, b = 2m + 1
 *          sign +1 rotates forward; -1 back, which is also the gradient
 * Shapes   x [tokens, heads, 2M] at `from`, y the same at `to`, strides in elements; `to` may be `from`;
 *          table [tokens, 2M] in float: M cosines, then M sines (magnitude included); nothing else is read
 * Error    in float |y - exact| <= 2^-22 * hypot(x_a, x_b) per element, for the table as given; f16 and bf16
 *          are rotated in float and rounded once
 * Special  NaN and infinity in x spread to their own pair only
 * Speed    that of x = -x in place: memory. M = 16, 32, 40, 48, 64 and 128 are constants of loops of their
 *          own
 * Source   Su et al. 2021, arXiv:2104.09864, eq. 34 (interleaved); half-split: GPT-NeoX
 */
typedef struct pe_rotate_args {
    void        *to;
    const void  *from;
    int64_t      to_token, to_head, from_token, from_head;
    const float *table;
    int64_t      table_stride, tokens, heads, M;
    float        sign;
    int64_t      far;       /* rows are prefetched so many bytes ahead; 0: not */
    int          stream;    /* y bypasses the caches: to, its strides and M are whole multiples of 64 bytes */
    int          far_table; /* prefetch rows of the table as well: they were not just made */
} pe_rotate_args;

typedef void pe_rotate_fn(const pe_rotate_args *rotation);

typedef enum pe_stored { PE_STORED_F32, PE_STORED_F16, PE_STORED_BF16, PE_STORED } pe_stored;

/*
 * cosines: of exact angles, in double
 *
 * Formula  cosine[i], sine[i] of position[i] * (k[2*i*step] + k[2*i*step + 1]) quarter turns: base/quarter.h,
 *          the same bits
 * Shapes   position, cosine, sine [n]; k pairs of doubles, `step` pairs apart (0: one for all)
 * Speed    n loops without branches: the limit is that of double fused multiply-adds, 20 for an angle
 */
typedef void pe_cosines_fn(const double *position, const double *k, int64_t step, double *cosine,
                           double *sine, int64_t n);

/* ---- for training: the layers of a model between its products, on contiguous rows of any width ---- */

/*
 * norm, stretch, norm_back: layer normalisation
 *
 * Formula  scale = 1 / sqrt(mean((x - mean(x))^2) + 1e-5), unit = (x - mean(x)) scale, y = unit gain + bias
 *          backward, with g = dy gain: dx += scale (g - mean(g) - unit mean(g unit)), dgain += sum_r dy unit,
 *          dbias += sum_r dy
 * Shapes   x, y, unit, dx, dy [R, d]; scale [R]; gain, bias, dgain, dbias [d]. stretch: y again from unit,
 *          the same bits
 * Error    each mean within d 2^-24 of the mean of the absolute values
 * Source   Ba et al. 2016, arXiv:1607.06450
 */
typedef void pe_norm_fn(float *y, float *unit, float *scale, const float *x, const float *gain,
                        const float *bias, int64_t R, int64_t d);
typedef void pe_stretch_fn(float *y, const float *unit, const float *gain, const float *bias, int64_t R,
                           int64_t d);
typedef void pe_norm_back_fn(float *dx, float *dgain, float *dbias, const float *dy, const float *unit,
                             const float *scale, const float *gain, int64_t R, int64_t d);

/*
 * gelu, gelu_back: in the form with a tanh
 *
 * Formula  x = h + bias, z = 2 sqrt(2/pi) (x + 0.044715 x^3), s = 1 / (1 + e^-z)
 *          active = x/2 (1 + tanh(z/2)) = x s;
 *          backward: dh *= s + x s (1 - s) z', dbias += sum_r dh, and active again
 * Shapes   h, active, dh [R, columns]; bias, dbias [columns]
 * Error    active within 2^-22 |x|, what dh is multiplied by within 2^-20
 * Source   Hendrycks and Gimpel 2016, arXiv:1606.08415, section 2
 */
typedef void pe_gelu_fn(float *active, const float *h, const float *bias, int64_t R, int64_t columns);
typedef void pe_gelu_back_fn(float *active, float *dh, float *dbias, const float *h, const float *bias,
                             int64_t R, int64_t columns);

/*
 * softmax_row: largest = max_c x, x becomes exp(x - largest), sum = sum_c of that
 *
 * Error    exp as in softmax, of x - largest; the sum within n 2^-24 of itself
 * Special  a NaN or an infinity makes the sum a NaN
 */
typedef void pe_softmax_row_fn(float *x, float *largest, float *sum, int64_t n);
/*
 * add_angles: the sum of two rows of angles, in double
 *
 * Formula  C = a_c * b_c - a_s * b_s,  S = a_s * b_c + a_c * b_s
 * Shapes   to, a, b [2, padded]: cosines, then sines; padded a multiple of PE_LANES; `to` may be one of them
 * Error    what a and b carry, each times the other's length, and two roundings
 */
typedef void pe_add_angles_fn(double *to, const double *a, const double *b, int64_t padded);

/*
 * wave_rows: some of the PE_BLOCK_WAVES rows of cosines and sines of consecutive positions around a base, in
 * float
 *
 * Formula  column j of row r of a block holds the cosine of coarse + middle + (r - 7.5) w_j,
 *          magnitude included; that of a sine
 *          is one whose coarse angle is a quarter turn back
 * Shapes   to + (r - first)*stride: row r, first <= r < first + rows <= PE_BLOCK_WAVES; `width` floats, of
 *          which those of pair m are at cosine + m*step and sine + m*step where these are below `width`
 *          coarse, middle [2, padded], cosines and sines of each column; fine [3, padded]: those of w_j / 2,
 *          and 2 cos w_j padding is 1 and 0, in coarse `factor` and 0, in the third row of fine 2
 * Error    0.501 ulp, zeros included, if the sum of coarse and middle carries at most 2e-15, fine 2.3e-16 and
 *          its third row 4.6e-16, and those of pairs that have rotated by less than an eighth yet as much of
 *          themselves: other numbers below `small` are made from their exact angles
 * Speed    that of narrowing: a multiply-add and a rounding for each number, 7 more multiply-adds for 16 of a
 *          column
 */
enum { PE_BLOCK_WAVES = 16 };

typedef struct pe_wave_rows {
    float        *to;
    int64_t       stride, first, rows, M, padded, width, cosine, sine, step;
    const double *coarse, *middle, *fine;
    const double *k; /* exact angles: position of the first row, its distance to the next is 1 */
    double        position, factor, sense;
    float         small;  /* 2^-13 of the magnitude, of its next power of two where it is none */
    int           stream; /* rows bypass the caches: to and stride are whole multiples of 64 bytes */
    int           last;   /* no more follow: what bypassed the caches must have arrived */
} pe_wave_rows;

typedef void pe_wave_rows_fn(const pe_wave_rows *rows);

/* Rows of a cache of keys or values as the caller stores them. */
typedef enum pe_cache_type {
    PE_CACHE_F32,
    PE_CACHE_BF16,
    PE_CACHE_F16,
    PE_CACHE_E4M3, /* the numbers of 8 bits of half.h */
    PE_CACHE_Q8
} pe_cache_type;

enum { PE_CACHE_WIDEST = 512, PE_CACHE_PLACES = 8 }; /* channels of a row; places of rows at most */

/* Rows at one place, or C / places of them at each of 2, 4 or 8: a multiple of PE_CACHE_TURN, for so many
   rows are read at a place before those of the next. Rows are numbered place by place. */
enum { PE_CACHE_TURN = 4 };

typedef struct pe_cache {
    const void *rows[PE_CACHE_PLACES]; /* row c of a place at c*stride elements */
    int         spread;                /* how often 1 is doubled for the number of places */
    float       scale;                 /* what numbers of 8 bits are multiplied by */
    int64_t     C, D;                  /* C rows of D numbers: a multiple of 2 PE_LANES, at most
                                          PE_CACHE_WIDEST */
    int64_t       stride;
    pe_cache_type type;
    const void   *next[PE_CACHE_PLACES]; /* what will be read afterwards at these places; NULL: not known */
    int64_t       next_step;             /* bytes from row to row there */
    int           found; /* the hardware finds rows of one place by itself: do not prefetch (not
                            pe_kernels_prefetch_helps) */
    int far;             /* rows of several places come from memory: prefetch */
} pe_cache;

/*
 * cache_scores: products of a few queries with keys as the caller stores them
 *
 * Formula  S[r,c] = sum_d Q[r,d] * K[c,d]
 * Shapes   S [R, C] at s + r*s_stride, nothing beyond C is written; Q [R, D] floats
 * Error    partial sums of D/VL fused multiply-adds each, joined by a tree: (D/VL + log2 VL) ulp of sum
 *          |Q||K|
 * Speed    the read bandwidth of the machine where the keys come from memory and R is small
 */
typedef void pe_cache_scores_fn(float *s, int64_t s_stride, const float *q, int64_t q_stride,
                                const pe_cache *k, int64_t R);

/*
 * cache_values: O += W V, V as the caller stores it
 *
 * Formula  O[r,d] = O[r,d] + sum_c W[r,c] * V[c,d], in the order of c, by fused multiply-adds
 * Shapes   O [R, D] floats at o + r*o_stride; W [R, C]
 */
typedef void pe_cache_values_fn(float *o, int64_t o_stride, const float *w, int64_t w_stride,
                                const pe_cache *v, int64_t R);

/* widen_e4m3, widen_q8: n numbers of 8 bits (half.h) as floats, times scale, rounded once; of q8_0 whole
   blocks. */
typedef void pe_widen_fn(float *to, const void *from, int64_t n, float scale);

/*
 * softmax_step: one step of the online softmax over rows with many keys and few queries
 *
 * Formula  m' = max(m, max_c S), W = exp(S - m'), l' = l*f + sum_c W, f = exp(m - m')
 *          (0 while m is -infinity)
 *          S becomes W; m and l are updated; factor[r] = f is what the running output must be multiplied by
 * Shapes   s [R, columns] padded (padding holds -infinity); m, l, factor [R]
 * Error    exp as in softmax
 * Special  a row of -infinity leaves m, l and gives W = 0, f = 1
 */
typedef void pe_softmax_step_fn(float *s, int64_t s_stride, float *m, float *l, float *factor, int64_t R,
                                int64_t columns);

/*
 * slope_row: a bias that is a slope times the distance, added
 *
 * Formula  x[c] += slope * (|t0 + c*step| - near); t0, step and near are whole
 * Shapes   x [n], padded
 * Error    the product within 0.5 + 2^-22 ulp, 1 + 2^-22 where multiply-adds round twice (plain), then that
 *          of the sum
 */
typedef void pe_slope_row_fn(float *x, double slope, double t0, double step, double near, int64_t n);

/*
 * drift_row: the difference of running sums, added
 *
 * Formula  x[c] += from - to[c], the difference taken in double and rounded once
 * Shapes   x, to [n]
 */
typedef void pe_drift_row_fn(float *x, double from, const double *to, int64_t n);

typedef struct pe_kernels {
    const char            *isa;
    pe_product_fn         *product;
    pe_product_plus_fn    *product_plus;
    pe_product64_fn       *product64;
    pe_sigmoids_fn        *sigmoids;
    pe_logs_fn            *logs;
    pe_scores_finish_fn   *scores_finish;
    pe_softmax_fn         *softmax;
    pe_weights_fn         *weights;
    pe_score_cotangent_fn *score_cotangent;
    pe_row_moments_fn     *row_moments;
    pe_exact_cotangent_fn *exact_cotangent;
    pe_gate_fn            *gate;
    pe_add_skewed_fn      *add_skewed;
    pe_join_rows_fn       *join_rows;
    pe_butterfly_fn       *butterfly;
    pe_modulus_fn         *modulus;
    pe_scale_rows_fn      *scale_rows;
    pe_temper_fn          *temper;
    pe_lane_sums_fn       *lane_sums;
    pe_diagonal_sums_fn   *diagonal_sums;
    pe_dot_rows_fn        *dot_rows;
    pe_transpose_fn       *transpose;
    pe_rotate_fn          *rotate[PE_STORED][2]; /* interleaved, half-split */
    pe_cosines_fn         *cosines;
    pe_norm_fn            *norm;
    pe_stretch_fn         *stretch;
    pe_norm_back_fn       *norm_back;
    pe_gelu_fn            *gelu;
    pe_gelu_back_fn       *gelu_back;
    pe_softmax_row_fn     *softmax_row;
    pe_add_angles_fn      *add_angles;
    pe_wave_rows_fn       *wave_rows;
    pe_cache_scores_fn    *cache_scores;
    pe_cache_values_fn    *cache_values;
    pe_softmax_step_fn    *softmax_step;
    pe_slope_row_fn       *slope_row;
    pe_drift_row_fn       *drift_row;
    pe_widen_fn           *widen_e4m3, *widen_q8;
} pe_kernels;

/*
 * The second table: attention in bf16, on processors that multiply pairs of bf16. One tile is PE_BF16_QUERIES
 * queries (in the lanes) by some keys; "pairs" are two bf16 in 32 bits, the first in the lower half.
 */
enum { PE_BF16_QUERIES = 64 };

/*
 * scores: products of a tile, times scale (and log2 e: the softmax is one of powers of two), and a bias
 *
 * Formula  S[c,a] = scale * sum_d q[d,a] * k[c,d] + bias[a - c];   most[a] = max_c S[c,a]
 * Shapes   s [keys, 64], keys a multiple of 4; q [pairs, 64] pairs of channels; k rows of 2*pairs bf16,
 *          stride k_stride; bias read from bias - keys + 1 to bias + 63, or NULL; most [64]
 * Error    products are exact, sums are float: pairs ulp of sum |q||k|; subnormal numbers count as 0
 */
typedef void pe_bf16_scores_fn(float *s, const uint32_t *q, const uint16_t *k, int64_t k_stride,
                               int64_t pairs, int64_t keys, float scale, const float *bias, float *most);

/* mask: S[c,a] = -infinity unless low <= first + a - c <= high; plus key[c], 0 or -infinity (NULL: 0); `most`
   anew. */
typedef void pe_bf16_mask_fn(float *s, int64_t keys, const float *key, int64_t first, int64_t low,
                             int64_t high, float *most);

/*
 * softmax: one step, as softmax_step, in powers of two
 *
 * Formula  m' = max(m, most), P = 2^(S - m') rounded to bf16 in pairs of keys;
 *          l' = l*f + sum of P before rounding,
 *          rounded' = rounded*f + sum of P after it, f = 2^(m - m') (1 while m' is -infinity)
 * Shapes   p [keys/2, 64] pairs, keys even; the others [64]. Returns whether any f is not 1.
 * Error    2^x within 4 ulp; below 2^-149 it is 0. Rounding to bf16: 2^-8 of each weight at most
 */
typedef int pe_bf16_softmax_fn(uint32_t *p, const float *s, int64_t keys, const float *most, float *m,
                               float *l, float *rounded, float *factor);

/* values: O[d,a] = O[d,a]*factor[a] + sum_c P[c,a] V[c,d]; o [D, 64], D a multiple of 4; v [pairs, v_stride]
   pairs of keys; factor NULL: 1. Error: as scores. */
typedef void pe_bf16_values_fn(float *o, const uint32_t *p, const uint32_t *v, int64_t v_stride,
                               int64_t pairs, int64_t D, const float *factor);

/* narrow: n floats rounded to bf16 (to nearest, ties to even; subnormal ones to 0). pair_rows: two rows of
   bf16 as one of pairs. */
typedef void pe_bf16_narrow_fn(uint16_t *to, const float *from, int64_t n);
typedef void pe_bf16_pair_rows_fn(uint32_t *to, const uint16_t *first, const uint16_t *second, int64_t n);

/* cache_scores: as the kernel of that name for keys in bf16, with queries [R, D] in bf16 too, and times
   scale. */
typedef void pe_bf16_cache_scores_fn(float *s, int64_t s_stride, const uint16_t *q, int64_t q_stride,
                                     const pe_cache *k, int64_t R, float scale);

/* The state of the online softmax for each row. */
typedef struct pe_softmax_sums {
    float *m, *l, *rounded, *factor; /* [R] */
} pe_softmax_sums;

/*
 * softmax_step: as the kernel of that name, with weights in bf16 beside the scores
 *
 * Formula  P = exp(S - m') rounded to bf16, rounded' = rounded*f + sum_c P;
 *          l' of the weights before they are rounded
 * Shapes   p rows of as many bf16 as columns, and up to the next multiple of 2 PE_LANES; s is only read
 */
typedef void pe_bf16_softmax_step_fn(uint16_t *p, int64_t p_stride, const float *s, int64_t s_stride,
                                     const pe_softmax_sums *sums, int64_t R, int64_t columns);

/*
 * cache_values: O += P V, V in bf16 as the caller stores it
 *
 * Formula  O[r,d] = O[r,d] + sum_c P[r,c] * V[c,d], two keys at a time
 * Shapes   O [R, D] floats at o + r*o_stride; P [R, C] bf16
 * Error    products are exact, sums are float; subnormal numbers count as 0
 */
typedef void pe_bf16_cache_values_fn(float *o, int64_t o_stride, const uint16_t *p, int64_t p_stride,
                                     const pe_cache *v, int64_t R);

typedef struct pe_bf16_kernels {
    pe_bf16_scores_fn       *scores;
    pe_bf16_mask_fn         *mask;
    pe_bf16_softmax_fn      *softmax;
    pe_bf16_values_fn       *values;
    pe_bf16_narrow_fn       *narrow;
    pe_bf16_pair_rows_fn    *pair_rows;
    pe_bf16_cache_scores_fn *cache_scores;
    pe_bf16_softmax_step_fn *softmax_step;
    pe_bf16_cache_values_fn *cache_values;
} pe_bf16_kernels;

/* The second table of the level that `kernels` is; NULL where the level has none. */
const pe_bf16_kernels *pe_kernels_bf16(const pe_kernels *kernels);

/* The best table this processor can run, or the one that POSENC_ISA names; NULL if it can run none of that
   name. */
const pe_kernels *pe_kernels_choose(void);
/* The table of that name ("plain", "avx2", "avx512", "avx512bf16", "neon"), NULL if this processor cannot run
   it. */
const pe_kernels *pe_kernels_named(const char *name);
/* What POSENC_ISA says; NULL if it is empty or not set. */
const char *pe_kernels_wanted(void);
/* Do loops through memory gain by prefetching? */
int pe_kernels_prefetch_helps(void);
/* pe_rotate_args.far for a tensor of so many bytes, in numbers of `size` bytes each. */
int64_t pe_kernels_prefetch_distance(int64_t size, int64_t bytes);
/* Table number `index` of those this processor can run, best last; NULL beyond. */
const pe_kernels *pe_kernels_at(int index);

#endif

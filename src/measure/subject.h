/* SPDX-License-Identifier: MIT */
/*
 * subject.h: how the properties measure their subject
 *
 * A subject holds an encoding with sizes, parameters in float64, a plan for all positions at once and a
 * workspace. All answers come from the public interface: posenc_rows, posenc_bias, posenc_scores,
 * posenc_attend on the reference executor. Where the encoding has a meaning only under a causal mask, the
 * plan has one.
 *
 * Sizes: an encoding with an input part has d_model = width and heads of width / heads; any other has heads
 * of `width` and d_model = heads * width.
 */
#ifndef PE_MEASURE_SUBJECT_H
#define PE_MEASURE_SUBJECT_H

#include "measure/measure.h"

struct pe_subject {
    const posenc_encoding *e;
    pe_subject_sizes       sizes;
    posenc_dims            dims;
    posenc_tensor         *params, *tokens;
    posenc_tensor         *last;   /* the tokens of a run of the last query alone */
    posenc_plan           *plan;   /* without a mask, unless the encoding needs one */
    posenc_plan           *causal; /* under a causal mask */
    posenc_workspace       work;
    int                    causal_only, is_timed; /* pe_survey.time */
    int                    randomised;            /* as in pe_findings */
    int              coordinates; /* of a position: 2 and more where a range numbers the tokens of a grid */
    posenc_positions positions;   /* of all N */
    double          *content;     /* [2, H, D]: a query and a key */
    int64_t          grid_rows;   /* pe_survey.rows */
    void            *store;       /* see pe_subject_take */
};

int pe_subject_has(const pe_subject *s, posenc_place place);
/* Does a row of its input part belong to a word too? */
int pe_subject_is_by_word(const pe_subject *s);
/* Does any part act in attention: rotary, score or weight? */
int pe_subject_attends(const pe_subject *s);

/* The rows of all positions, [N, d_model], from the store. */
posenc_status pe_subject_take_table(pe_subject *s, double **table, posenc_error *err);
/* The same of other positions, [N] of them. */
posenc_status pe_subject_take_rows(pe_subject *s, posenc_positions positions, double **table,
                                   posenc_error *err);
/* y [N, d_model] = x + table, or x where there is no input part. */
posenc_status pe_subject_embed(pe_subject *s, const double *x, double *y, posenc_error *err);
/* bias [H, N]: of the last position's query for every key. */
posenc_status pe_subject_bias(pe_subject *s, double *bias, posenc_error *err);
/* S [H,N,N] of q and k [H,N,D]. */
posenc_status pe_subject_scores(pe_subject *s, const double *q, const double *k, double *S,
                                posenc_error *err);
/* o [H,N,D] of q, k, v [H,N,D], with or without a causal mask. */
posenc_status pe_subject_attend(pe_subject *s, int causal, const double *q, const double *k, const double *v,
                                double *o, posenc_error *err);

/* c [H,N]: the score of the last position's query for the key t positions back, with one content at all
   positions. */
posenc_status pe_subject_profiles(pe_subject *s, pe_content content, int64_t draw, double *c,
                                  posenc_error *err);

/* `count` elements of `size` bytes, until pe_subject_give_back or the end of the subject; NULL without
 * memory.
 */
void *pe_subject_take(pe_subject *s, int64_t count, size_t size);
void  pe_subject_give_back(pe_subject *s);
/* The same for several arrays: *parts[i] points to sizes[i] numbers. 0 without memory. */
int pe_subject_take_all(pe_subject *s, double **const parts[], const int64_t sizes[], size_t count);
/* x[i] = sigma * normal number i of draw `draw` of the stream `name`. */
void pe_subject_draw_normal(double *x, int64_t n, double sigma, const pe_subject *s, const char *name,
                            int64_t draw);
/* to [H,N,D] = y [N,d_model] times W [d_model, H*D] */
void pe_subject_project(double *to, const double *y, const double *W, const posenc_dims *dims, int64_t N);

/* Mean and standard deviation of numbers that come one by one; NaN is skipped. */
typedef struct pe_sample {
    double  sum, squares;
    int64_t count;
} pe_sample;

void   pe_subject_sample_add(pe_sample *m, double x);
double pe_subject_sample_mean(const pe_sample *m);   /* NaN of none */
double pe_subject_sample_spread(const pe_sample *m); /* of a sample; NaN of fewer than two */

/* part / whole, sums of squares about means. NaN where the whole is only round-off of the numbers themselves,
   whose squares sum to `squares`. */
double pe_scores_share(double part, double whole, double squares);

/* X [n,c] with the least |A X - B|, among those the shortest: A [m,n], B [m,c], row-major, m >= n. Singular
   values below cut * the largest count as 0. Can fail only with MEMORY. */
posenc_status pe_least_squares_fit(double *X, const double *A, const double *B, int64_t m, int64_t n,
                                   int64_t c, double cut, posenc_error *err);

/* "measure: not enough memory for WHAT" */
posenc_status pe_subject_no_memory(posenc_error *err, const char *what);

#endif

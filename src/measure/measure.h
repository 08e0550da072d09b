/* SPDX-License-Identifier: MIT */
/*
 * measure.h: what an encoding does, in numbers; the one header of this folder that others include
 *
 * A tutorial says "unique", "relative", "decays". Here each such word is a number with a formula
 * (docs/properties.md), and the word beside a number is computed from that number alone (pe_findings_word):
 * if you doubt the word, look at the number; if you doubt the number, compute it again.
 *
 * A subject is an encoding made ready to be measured, in float64 and only through the public interface: its
 * rows, its biases, its scores, its attention. Each property has a file, which measures the subject and adds
 * findings to a list:
 *
 *     uniqueness.c   two vectors that are nearly equal; distances that scores cannot tell apart
 *     relativity.c   p(i+k) as a linear map of p(i); dot products that depend only on the offset
 *     scores.c       scores that depend only on the offset; past and future told apart
 *     score_terms.c  the four terms of a score between two embedded positions
 *     equivariance.c what becomes of the output when the tokens are permuted
 *     decay.c        scores against distance
 *     grid.c         the same on a grid; rows and columns of a table
 *     cost.c         parameters, operations, bytes, speed
 *
 * Nothing here prints, and nothing here knows an encoding by name. Random numbers come from the seed alone.
 */
#ifndef PE_MEASURE_MEASURE_H
#define PE_MEASURE_MEASURE_H

#include <posenc/registry.h>
#include <stdint.h>

#include "base/shared/compiler.h"

/* ---------------------------------------------------------------- findings ------------------ */

/* What is measured; the order of the report. ORDER the table of findings.c */
typedef enum pe_measure {
    PE_NEAREST,         /* u = min |p_i - p_j| / rms */
    PE_DISTINCT,        /* share of rows that differ once rounded to bf16 */
    PE_DISTINCT_BF16,   /* the same with positions that went through bf16 */
    PE_GAP,             /* u_b = min over pairs of distances of |v(s) - v(t)| */
    PE_DISTANCES,       /* share of distances that the scores tell apart */
    PE_LAST_CHANGE,     /* last distance whose score differs from the one before */
    PE_SHIFT,           /* r(k), for one offset k */
    PE_OFFSET_SHARE,    /* tau */
    PE_SCORES,          /* eta */
    PE_DIRECTION,       /* odd share of the mean scores */
    PE_CONTENT_CONTENT, /* rms of the four terms of a score */
    PE_CONTENT_POSITION,
    PE_POSITION_CONTENT,
    PE_POSITION_POSITION,
    PE_TERMS_SUM,     /* largest |sum of the four - the score| */
    PE_BOTH_WAYS,     /* max |f(Px) - P f(x)|, no mask */
    PE_CAUSAL,        /* the same under a causal mask */
    PE_TREND,         /* Spearman's rho of distance and score */
    PE_FALLING,       /* share of steps that do not rise */
    PE_HALF_DISTANCE, /* first distance with half of the score, or half of the weight */
    PE_AT_DISTANCE,   /* the score at one distance */
    PE_MASS,          /* distance that holds 90 % of the softmax of the bias */
    PE_RESOLUTION,    /* xPos's attention resolution */
    PE_ROW_SHARE,     /* of a table on a grid: its squares that are those of the rows' means */
    PE_COLUMN_SHARE,
    PE_BEYOND_CHANCE, /* of both, less what random numbers have */
    PE_PARAMETERS,
    PE_OPERATIONS,
    PE_WORKSPACE,
    PE_SPEED,
    PE_MEASURES
} pe_measure;

/* "uniqueness" ...; "nearest pair, |p_i - p_j| / rms"; "" where the number has no unit. Constant strings. */
const char *pe_findings_property(pe_measure m);
const char *pe_findings_title(pe_measure m);
const char *pe_findings_unit(pe_measure m);

/* The word for a number, by the rule of findings.c; NULL for measures without one. NaN means 0/0: there is
   nothing to judge. */
const char *pe_findings_word(pe_measure m, double value);

enum { PE_MOST_FINDINGS = 64, PE_DETAIL = 64 };

/* One number. `spread`: standard deviation over draws, NaN where nothing is drawn. `detail`: which offset,
   which content, which pair; "" where there is nothing to say. */
typedef struct pe_finding {
    pe_measure  measure;
    double      value, spread;
    const char *verdict;
    char        detail[PE_DETAIL];
} pe_finding;

typedef struct pe_findings {
    pe_finding rows[PE_MOST_FINDINGS];
    int        count;
    int        randomised; /* its parameters are initialised with zeros: N(0,1) was measured instead */
    int        causal_only;
} pe_findings;

/* Adds a number with its verdict; the list is long enough for one subject (an assert says so). */
void pe_findings_add(pe_findings *to, pe_measure m, double value, double spread, const char *detail, ...)
    PE_PRINTF(5, 6);

/* ---------------------------------------------------------------- subjects ------------------ */

typedef struct pe_subject_sizes {
    int64_t  length; /* N: positions of tables, keys of scores */
    int64_t  width;  /* of a vector where the encoding has an input part, else of a head */
    int64_t  heads;
    int64_t  draws; /* of content, matrices and initial parameters */
    uint64_t seed;
} pe_subject_sizes;

typedef struct pe_subject pe_subject;

/* e must outlive the subject. Errors: those of posenc_plan_create and posenc_param_init; SHAPE if heads does
   not divide the width of an input encoding. */
posenc_status pe_subject_create(pe_subject **s, const posenc_encoding *e, const pe_subject_sizes *sizes,
                                posenc_error *err);
void          pe_subject_free(pe_subject *s); /* NULL is fine */
/* Parameters as the encoding's source initialises them, with this seed (creation: sizes->seed); from N(0,1)
   if all of them would be zero, which leaves nothing to measure. */
posenc_status pe_subject_initialise(pe_subject *s, uint64_t seed, posenc_error *err);
/* The same, and N(0,1) added to each trained parameter that is initialised with one number everywhere: unit
   gates, zero biases. */
posenc_status pe_subject_initialise_varied(pe_subject *s, uint64_t seed, posenc_error *err);

/* table [length, width]: the rows of its input part at positions [length], or at 0, 1, ... where NULL.
   UNSUPPORTED without one. */
posenc_status pe_subject_rows(pe_subject *s, const double *positions, double *table, posenc_error *err);

/* ---------------------------------------------------------------- properties ---------------- */

/* Each adds its findings about this subject; none where the encoding acts at another place. It may change the
   parameters (pe_subject_initialise restores them). */
typedef posenc_status pe_property(pe_subject *s, pe_findings *to, posenc_error *err);
pe_property           pe_uniqueness_measure, pe_relativity_measure, pe_scores_measure, pe_score_terms_measure,
    pe_equivariance_measure, pe_decay_measure, pe_grid_measure, pe_cost_measure;

/* All of them, with the sizes that suit each: scores, terms and equivariance at `tokens`, all else at
   `length`. */
typedef struct pe_survey {
    pe_subject_sizes sizes;
    int64_t          tokens;
    int64_t          rows; /* of the grid that the positions lie on; 0: none is said */
    int              time; /* 1: speed is measured as well, which differs from run to run */
} pe_survey;

/* As posenc_encoding_create. A single encoding whose default settings hold too few positions, or make no use
   of it there, gets the setting that suits (posenc_encoding_info.at_length), unless the caller sets it. */
posenc_status pe_survey_encoding(posenc_encoding **e, const char *spec, const char *settings,
                                 posenc_error *err);

/* tokens.c: the token inputs of e for dims, F64 from N(0,1), as in.tokens; freed after an error too. A bias
   [H, Lq, Lk] contiguous F64, as posenc_bias gives it; or, where token inputs say what is added, the scores
   of q = k = 0. */
posenc_status pe_tokens_draw(const posenc_encoding *e, const posenc_dims *dims, uint64_t seed,
                             posenc_tensor **tokens, posenc_error *err);
void          pe_tokens_free(const posenc_encoding *e, posenc_tensor *tokens);
posenc_status pe_tokens_bias(const posenc_plan *plan, const posenc_attend_in *in, const posenc_dims *dims,
                             posenc_tensor *bias, const posenc_workspace *work, posenc_error *err);

posenc_status pe_survey_run(const posenc_encoding *e, const pe_survey *survey, pe_findings *to,
                            posenc_error *err);

/* ---------------------------------------------------------------- the formulas themselves --- */

/* u over the rows of table [N,d], N >= 2, and a pair that has it. */
typedef struct pe_row_pair {
    double  distance; /* divided by rms */
    int64_t first, second;
} pe_row_pair;

pe_row_pair pe_uniqueness_nearest_pair(const double *table, int64_t N, int64_t d);
/* How many different rows there are after rounding to bf16. -1 without memory. */
int64_t pe_uniqueness_distinct_rows(const double *table, int64_t N, int64_t d);
double  pe_uniqueness_round_bf16(double x);

/* r(k); NaN where N - k < 4 d or the table does not change. */
posenc_status pe_relativity_shift_residual(double *r, const double *table, int64_t N, int64_t d, int64_t k,
                                           posenc_error *err);
/* tau over the first rows (at most 1024); NaN where all dot products are equal. */
posenc_status pe_relativity_offset_share(double *tau, const double *table, int64_t N, int64_t d,
                                         posenc_error *err);
/* Channels whose values span less than a twentieth of what the widest channel spans. */
int64_t pe_relativity_idle_channels(const double *table, int64_t N, int64_t d);

/* S [N,N]. Sums over the offsets i - j (past_only: only i > j): squares about the mean of each offset, and
   about the mean of all; adds to both. profile [2 N - 1] receives the means, that of offset t at N - 1 + t;
   may be NULL. */
void pe_scores_offset_squares(const double *S, int64_t N, int past_only, double *within, double *total,
                              double *profile);

/* Spearman's rho of 0 .. n-1 and c[0 .. n-1]; equal values share their mean rank. NaN for constant c, or
   without memory. */
double pe_decay_spearman(const double *c, int64_t n);
/* The same of any x [n] and y [n]. */
double pe_decay_rank_correlation(const double *x, const double *y, int64_t n);
/* Share of the steps 1 .. n-1 with c[t] <= c[t-1]. */
double pe_decay_falling_share(const double *c, int64_t n);

/* Shares of the squares of table [H*W, d], row by row, about its mean: grid.c. NaN where it has none. */
typedef struct pe_grid_shares {
    double rows, columns, beyond;
} pe_grid_shares;

posenc_status pe_grid_structure(pe_grid_shares *to, const double *table, int64_t H, int64_t W, int64_t d,
                                posenc_error *err);
/* Spearman's rho of the distance of two cells and their similarity [H*W, H*W], of which the half below the
   diagonal is read. NaN where it is constant, or without memory. */
double pe_grid_trend(const double *similarity, int64_t H, int64_t W);

/* What q and k are where they are the same everywhere. */
typedef enum pe_content { PE_CONTENT_ONES, PE_CONTENT_UNIFORM, PE_CONTENT_NORMAL, PE_CONTENTS } pe_content;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * scores.h: what the parts of the search for a bias share (scores.c says how it goes)
 */
#ifndef PE_DIAGNOSE_SCORES_H
#define PE_DIAGNOSE_SCORES_H

#include "diagnose/dump.h"

static const double pe_scores_enough = 2.5,
                    pe_scores_loose  = 4; /* roundings that may be left over, and where nothing leaves less */

/* What is fitted, as bits; TWICE: the cap of a capped score. */
enum {
    PE_FIT_SCALE = 1,
    PE_FIT_BIAS  = 2,
    PE_FIT_ROWS  = 4,
    PE_FIT_CAP   = 8,
    PE_FIT_SHIFT = 16,
    PE_FIT_TWICE = 32
};

typedef struct pe_fit {
    const pe_scores *in;
    int64_t          B, H, Lq, Lk, T; /* T distances, t + Lk - 1 >= 0 */
    double           bits, noise;     /* mean square of rounding */
    double          *bias;            /* [H,T] */
    double          *count;           /* [H,T] scores of each */
    int64_t         *group;           /* [T] the distance whose bias it has: its own */
    double          *scale;           /* [Lq] */
    double          *shift;           /* [B,H,Lq] the same for all keys */
    double          *above, *below;   /* sums, as many as the longest of these */
    double           cap, rest;       /* rest: mean square that is left */
    int              caps;            /* how often the cap is applied */
} pe_fit;

/* scores_fit.c */
double  pe_fit_score(const posenc_tensor *t, int64_t b, int64_t h, int64_t i, int64_t j);
int     pe_fit_is_hidden(double score);
int64_t pe_fit_distance(const pe_fit *f, int64_t i, int64_t j);

/* 0 where memory is short. */
int  pe_fit_open(pe_fit *f, const pe_scores *in);
void pe_fit_close(pe_fit *f);

/* Fits these parts, and the cap where it is 0; returns the rms that is left, in roundings. */
double pe_fit_try(pe_fit *f, int what, double cap);

/* What these numbers leave, none of them fitted. */
double pe_fit_given(pe_fit *f, double scale, const double *slopes, double cap);

/* Of one query each distance is seen once, so only a rule tells its bias beside a scale: distances side by
   side whose numbers in f->group are the same have one; or it is a line in the distance. */
double pe_fit_groups(pe_fit *f);
double pe_fit_lines(pe_fit *f);

/* scores_bias.c: the bias that was fitted, in the words of its encoding; and against that which is expected.
 */
void pe_bias_read(pe_scores_reading *r, const pe_fit *f, const pe_scores_reading *expected);
int  pe_bias_each_buckets(pe_fit *f, const pe_scores_reading *expected);
void pe_bias_compare(pe_scores_diagnosis *d, const pe_scores_reading *e, const pe_fit *f);

#endif

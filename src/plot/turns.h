/* SPDX-License-Identifier: MIT */
/*
 * turns.h: vectors that are turned, and their scores by distance: what decay.c and pair.c share
 */
#ifndef PE_PLOT_TURNS_H
#define PE_PLOT_TURNS_H

#include "plot/picture.h"

enum { PE_CONTENTS = 3 };
#define PE_TWO_PI 6.283185307179586

typedef struct pe_content {
    const char *name;
    int         flag;
    double (*draw)(uint64_t seed, const char *stream, uint64_t index); /* NULL: ones */
} pe_content;

/* ones, U[0,1], N(0,1) */
extern const pe_content pe_contents[PE_CONTENTS];

/* Of one content: R queries and keys [R, D], and their scores q.k / D [R, n] by distance. */
typedef struct pe_trial {
    const pe_content *content;
    int64_t           R, D, n;
    double           *q, *k, *scores;
} pe_trial;

/* How many the data asks for. */
int64_t pe_draws(const pe_sketch *s);
/* R = 1 of ones, else as many draws as the data asks for. */
pe_trial pe_draw_vectors(pe_sketch *s, const pe_content *content);

/* Scores as e turns the vectors; as one frequency for M pairs turns them, made longer by a factor. */
typedef struct pe_one_theta {
    double  theta, magnitude;
    int64_t M;
} pe_one_theta;

void pe_score(pe_sketch *s, const posenc_encoding *e, pe_trial *t);
void pe_score_with_one_theta(pe_trial *t, const pe_one_theta *one);

/* What the R draws come to: curve->y their mean, low and high the quantiles 0.1 and 0.9 of a random
   content. */
void pe_summarise(pe_sketch *s, const pe_trial *t, pe_curve *curve);

/* Turns q [R, n, D] in place to positions first, first + 1, ... */
void pe_turn(pe_sketch *s, double *q, int64_t R, int64_t n, double first);
/* The frequencies of an encoding with the parameters of the picture, [*M], at its length, and the factor on
   cosine and sine (NULL: not wanted), NAN where it changes with the position. It fails for a matrix. */
double *pe_read_frequencies(pe_sketch *s, const posenc_encoding *e, int64_t *M, double *magnitude);

#endif

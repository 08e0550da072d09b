/* SPDX-License-Identifier: MIT */
/*
 * explain.h: what `posenc explain` was asked for, and the parts that answer
 *
 * cmd_explain.c reads the options and calls one part: model.c for a model's file, words.c for a sentence, and
 * else one per place of the encoding. Each asks the library for all its numbers first and writes them on
 * a sheet (sheet.h) afterwards, so that a call that fails has printed nothing.
 */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "cli/commands/explain/sheet.h"
#include "cli/commands/subject.h"

enum { CLI_EXPLAIN_WIDEST = 1024 }; /* numbers of a vector */

typedef struct cli_explanation {
    const cli_args *args;
    cli_subject     subject; /* its encoding, made; sizes and parameters are each part's */
    cli_sheet       sheet;
    int64_t         dim, heads, length; /* 0: not given */
    int64_t         step, seed, digits;
    cli_numbers     position, key_position; /* a number, or one for each coordinate */
    cli_numbers     vector, key, theta;     /* count 0: not given */
    const char     *words;                  /* --words; NULL: not given */
    cli_numbers     permute;                /* count 0: not given */
    int             identity;               /* which of CLI_EXPLAIN_IDENTITIES, if --identity is given */
} cli_explanation;

/* All leave what is wrong in x->subject.p. */

/* The formula of a part, what its letters mean, and the settings that its numbers are made with. */
void cli_explain_formula(cli_explanation *x, const posenc_encoding_info *info);

/* A setting of a part as it is now, which must be a number; NaN where it is absent or none. */
double cli_explain_setting(const cli_explanation *x, const posenc_encoding_info *info, const char *name);

/* n numbers, NULL without memory; and n that are normal with this sigma, by --seed and a name. They live as
   long as the calculation. */
double *cli_explain_numbers(pe_calc *p, int64_t n);
double *cli_explain_draw(cli_explanation *x, const char *name, int64_t n, double sigma);
/* The vector of --vector, or 1, 2, 3, ...; D numbers that live as long as x. */
double *cli_explain_vector(cli_explanation *x, int64_t D);
/* Sizes, parameters, plan and workspace for these runs. */
void cli_explain_plan(cli_explanation *x, const posenc_dims *dims, posenc_run runs);
/* Coordinate c of a place; a single number stands for all of them. */
double cli_explain_coordinate(const cli_numbers *where, int c);
/* --position with all its coordinates: "3", "(3, 5)". */
const char *cli_explain_place(cli_explanation *x, int coordinates);
/* n times the same place: `moved` positions beyond --position or --key-position, on every coordinate. */
posenc_positions cli_explain_at(cli_explanation *x, const cli_numbers *where, int coordinates, double moved,
                                int64_t n);
/* The largest |a - b| of n numbers, as a share of the largest a if that is above 1. */
double cli_explain_difference(const double *a, const double *b, int64_t n);
double cli_explain_dot(const double *a, const double *b, int64_t n);
/* The largest entry of |A^T A - I| of a matrix [D,D], D at most CLI_EXPLAIN_WIDEST. */
double cli_explain_orthogonality(const double *A, int64_t D);
/* Of many rows of a table the terminal gets a few: the first ones, powers of 2, the last. */
int cli_explain_is_shown(int64_t i, int64_t count);

/* Has any part of e a meaning only under a causal mask? */
int cli_explain_needs_mask(const posenc_encoding *e);

/* A part at place input: a row, and of one made of waves their frequencies, tables and steps. */
void cli_explain_rows(cli_explanation *x);
/* A part at place rotary: angles, matrix, the result in four ways, what it depends on. */
void cli_explain_rotary(cli_explanation *x);
/* A part at place score: what it adds for each key and head. At place weight: its factors. */
void cli_explain_scores(cli_explanation *x);
void cli_explain_weights(cli_explanation *x);

/* --words: a sentence and another order of its words through attention, with the encoding and without. */
void cli_explain_words(cli_explanation *x);

/* --identity: a statement as two sides and a residual. */
#define CLI_EXPLAIN_IDENTITIES "taylor|one-hot|row-sums|orthogonality"
void cli_explain_identity(cli_explanation *x);

/* Every formula of the rotation of --config with its numbers in place. */
void cli_explain_model(cli_explanation *x);

#endif

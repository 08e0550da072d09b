/* SPDX-License-Identifier: MIT */
/*
 * encoding.h: what a room offers
 *
 * A room is one .c file with all that one encoding is: head comment (Place, Formula, Learns, Source, then
 * what a reader must know), settings, parameters, worked examples, init, what it contributes and the gradient
 * of that side by side, and at the end a pe_encoding. Its row in encodings.def makes the library, the tool,
 * the tests and the build know it. A room fills in the common members that it needs and those of its place:
 *
 *   input            .input.width, .rows, .rows_back   n rows of a table; .tokens and .locate on a grid
 *                    .input.width, .sequence           a table whose rows follow from each other (FLOATER)
 *   rotary           .rotary.fill, .fold               pairs, frequencies, magnitude; their gradients
 *   score, weight    .attention.terms (or .bias, or .hook)   members of pe_terms, each with its adjoint
 *
 * A member that only one room fills in says why it is there.
 */
#ifndef PE_ENCODINGS_ENCODING_H
#define PE_ENCODINGS_ENCODING_H

#include <assert.h>
#include <math.h>
#include <posenc/posenc.h>
#include <string.h>

#include "base/angle.h"
#include "base/random.h"
#include "base/settings.h"
#include "base/status.h"
#include "engine/score/index.h"
#include "engine/rows/sequence.h"
#include "engine/rotation/rotation.h"

/* Rows of a table that ends with {0}. */
#define PE_ROWS(table) ((int)(sizeof(table) / sizeof *(table)) - 1)

/* dpar[index][at] += x, if that gradient is wanted. */
static inline void pe_add(double *const dpar[], int index, int64_t at, double x)
{
    if (dpar[index])
        dpar[index][at] += x;
}

/* A room's tables, as members of its pe_encoding; all three where it has them. */
#define PE_SETTINGS(table) .info.settings = table, .info.setting_count = PE_ROWS(table)
#define PE_PARAMS(table)   .info.params = table, .info.param_count = PE_ROWS(table)
#define PE_TOKENS(table)   .info.tokens = table, .info.token_count = PE_ROWS(table)
#define PE_TABLES(settings, parameters, worked) \
    PE_SETTINGS(settings), PE_PARAMS(parameters), .examples = worked

/* Positions of the queries and keys of one batch item, and the distances that masks by distance allow. */
typedef struct pe_span {
    double  q_low, q_high, k_low, k_high;
    int64_t t_low, t_high; /* of the whole run; mean something where `whole` */
    int     whole;         /* all positions are whole numbers */
} pe_span;

/* What only a run knows of a rotation. A plan asks without parameters: frequencies that need them are NAN
   then. */
typedef struct pe_rotary_run {
    const double *const *par;    /* NULL: not known yet */
    double               length; /* the largest position and one */
} pe_rotary_run;

/* Place input. */
typedef struct pe_input_members {
    /* Expressions over settings and sizes: numbers per row. */
    const char *width;
    /* How many tokens the rows of a grid are, class tokens included. NULL: no limit, a range may go on. */
    const char *tokens;
    /* Where token number s = 0, 1, ... of a range stands: at[coordinates], NAN for a token without a place
       (the zero row of a class token). NULL: a range is the position; of several coordinates it is
       refused. */
    void (*locate)(const pe_problem *p, int64_t s, double at[]);
    /* complex_order, where words are waves: the first coordinate is the id of a word, a whole number
       0 .. ids-1, which no check of positions can say; accept is not asked then. NULL: it is a place. */
    const char *ids;
    /* What is added to positions that are given as a range (arrays are row numbers already). NULL: 0. */
    double (*first)(const pe_problem *p);
    /* May positions low .. high (`whole`: all are integers) be asked for, in any coordinate? NULL: any. */
    posenc_status (*accept)(const pe_problem *p, double low, double high, int whole, posenc_error *err);
    /* out [n, width]: the row of each position, pos [n, coordinates]. */
    void (*rows)(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[]);
    /* Cotangents of n rows to parameters, adding. NULL where nothing is learned. */
    void (*rows_back)(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[]);
    /* sinusoidal, the encoding with the longest tables: the same rows as plain waves, which the engine makes
       faster. Their frequencies go to w, which has an element per channel. Returns how many; 0: with these
       settings rows are something else. NULL: never. */
    int64_t (*waves)(const pe_problem *p, double w[], pe_wave_form *form);
    /* floater, whose rows are steps of a solver: in place of rows and rows_back a table made once per run.
       Positions must be whole, below sequence.rows, which accept sees to. */
    pe_sequence sequence;
} pe_input_members;

/* Place rotary. */
typedef struct pe_rotary_members {
    /* Fills in the rotation, except what pe_rotation_finish does; its arrays are for D/2 pairs. */
    void (*fill)(const pe_problem *p, const pe_rotary_run *run, pe_rotary *t);
    /* Gradients of frequencies, dw [heads, M, coordinates], to parameters, adding: the adjoint of fill, which
       xPos has no parameters for. */
    void (*fold)(const pe_problem *p, const pe_rotary_run *run, const pe_rotary *t, const double dw[],
                 double *const dpar[]);
    /* rope, since timm's mixed frequencies differ from head to head and arrays are laid out before fill: how
       many heads have frequencies of their own, 1 or H, queries and keys alike; an expression. NULL: 1. */
    const char *heads;
} pe_rotary_members;

/* Places score and weight. */
typedef struct pe_attention_members {
    /* Members that are the same whatever the settings; `terms` is asked for the others, and for the scale
       where it is not 1/sqrt(D). NULL: there are none. */
    pe_by_distance bias;
    pe_tile_hook   hook; /* score */
    void (*terms)(const pe_problem *p, pe_terms *s);
    /* Numbers made of the parameters once per run, or once for all runs that are given a bound, for hooks and
       preparations: par[param_count], and dpar there takes their cotangents. derive_back may overwrite
       `dmade`; NULL: gradients go elsewhere. NULL: none. */
    int64_t (*derived)(const pe_problem *p);
    /* They only save time: a run of few queries does without so many numbers or more, and par[param_count] is
       NULL then. 0: each run makes them. */
    int64_t derived_for_many;
    void (*derive)(const pe_problem *p, const double *const par[], double made[]);
    void (*derive_back)(const pe_problem *p, const double *const par[], const double made[], double dmade[],
                        double *const dpar[]);
    /* Bits 1 << index of parameters that are long: for few queries they are not copied, and pe_read reads
       them. A member with `index` alone needs no bit for its own. */
    unsigned in_place;
    /* May a run ask for these positions and distances? NULL: any. */
    posenc_status (*reach)(const pe_problem *p, const pe_span *span, posenc_error *err);
} pe_attention_members;

typedef struct pe_encoding {
    posenc_encoding_info  info;
    const char           *model;      /* settings for a small model trained at L: "max_distance=L/2" */
    const char           *model_both; /* those of one that sees the future as well; NULL: the same */
    const posenc_example *examples;   /* ends with {0} */

    /* Do settings and sizes fit together? NULL: always. */
    posenc_status (*check)(const pe_problem *p, posenc_error *err);
    /* Number i (0, 1, 2, ... in memory order) of parameter `index` as the source initialises it. NULL: as the
       table of parameters says: "zeros", "ones", a number, "normal(0, sigma)", "uniform(low, high)". */
    double (*init)(const pe_problem *p, int index, pe_random *rng, int64_t i);
    /* Do the settings (words and flags only) call for parameter `index`? NULL: always. */
    int (*has)(const pe_value *set, int index);
    /* And for token input `index`? */
    int (*has_token)(const pe_value *set, int index);
    /* Is it trained, with these settings? NULL: as the table of parameters says. */
    int (*trains)(const pe_value *set, int index);
    /* Why parameters have no gradient with these settings. NULL, or returning NULL: they have one. */
    const char *(*no_gradient)(const pe_value *set);
    /* input, rotary: coordinates of a position (input: from words, flags and lengths of lists). NULL: 1. */
    int (*coordinates)(const pe_value *set);

    /* What the room's own formulas cost in one run of Lq queries and Lk keys (of one batch item, all heads),
       forward: making rows, numbers by distance (each of Lq + Lk - 1 once), hooks, preparations, numbers made
       of parameters. Each + - * / and max counts one, and so does a function (sin, exp, sqrt); a minus sign,
       an absolute value and the little that a head or a run needs once count nothing. posenc_plan_operations
       adds what the engine does with these numbers. An expression over settings (a word is its number, a flag
       0 or 1) and sizes, or a count; NULL: none, numbers are looked up. */
    const char *operations;
    double (*count)(const pe_problem *p);

    /* fox, rope, where settings say whether it is causal_only, whatever info says. NULL: info does. */
    int (*sees_future)(const pe_value *set);

    /* pope, of which nobody said what it is beside a rotation: why not, as a clause. NULL: it may be. */
    const char *no_rotation;

    /* urpe, whose authors' own bias gives way to the one it is joined with: the default of a setting of a
       weight encoding that is joined with a score encoding, "bias=none". NULL: no other. */
    const char *with_score;

    /* One of them, by info.place. */
    pe_input_members     input;
    pe_rotary_members    rotary;
    pe_attention_members attention; /* score, weight */
} pe_encoding;

/* common.c: the settings of every encoding and what they do, as a room that is a part of each; what of them
   as they were written does not go together. */
extern const pe_encoding pe_common;
posenc_status            pe_common_check(const pe_setting_text text[], posenc_error *err);

/* registry.c: the rows of encodings.def as an array. */
int                pe_encoding_count(void);
const pe_encoding *pe_encoding_at(int index);                         /* NULL outside */
const pe_encoding *pe_encoding_find(const char *name, size_t length); /* NULL if unknown */

#endif

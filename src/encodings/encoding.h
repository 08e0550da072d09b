/* SPDX-License-Identifier: MIT */
/*
 * encoding.h: what a room offers
 *
 * A room is one .c file: head comment (Place, Formula, Learns, Source, then what a reader must know),
 * settings, parameters, worked examples, init, its contribution and the gradient of its contribution side by
 * side, and at the end this struct, its door plate. Its row in encodings.def makes the library, the tool, the
 * tests and the build know it. Which members are filled depends on the place:
 *
 *   input    width, rows, rows_back     n rows of a table; coordinates, tokens and locate where a position is
 *            a place;
 *            width, sequence            a table whose rows follow from each other (FLOATER)
 *   rotary   turn, turn_back            frequencies, pairing, magnitude; gradient of the frequencies
 *   score    terms                      members of pe_terms, each with its adjoint
 *   weight   terms
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

/* A room's tables, for its door plate; all three where it has them. */
#define PE_SETTINGS(table) .info.settings = table, .info.setting_count = PE_ROWS(table)
#define PE_PARAMS(table)   .info.params = table, .info.param_count = PE_ROWS(table)
#define PE_TABLES(settings, parameters, worked) \
    PE_SETTINGS(settings), PE_PARAMS(parameters), .examples = worked

/* Where the queries and keys of one batch item stand, and how far apart those are that the masks by distance
   join. */
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
    /* Do the settings (words and flags alone) call for parameter `index`? NULL: always. */
    int (*has)(const pe_value *set, int index);
    /* Is it trained, with these settings? NULL: as the table of parameters says. */
    int (*trains)(const pe_value *set, int index);

    /* What the room's own formulas cost in one run of Lq queries and Lk keys (of one batch item, all heads),
       forward: making rows, numbers by distance (each of Lq + Lk - 1 once), hooks, preparations, numbers made
       of parameters. One each for + - * / and max, one for a function (sin, exp, sqrt). What machines do with
       these numbers is counted by posenc_plan_operations. An expression over
       settings (a word is its number, a flag 0 or 1) and sizes, or a count; NULL: none, numbers are looked
       up. */
    const char *operations;
    double (*count)(const pe_problem *p);

    /* -- input -- */
    /* Expressions over settings and sizes: numbers per row. */
    const char *width;
    /* Coordinates of a position, from words, flags and lengths of lists. NULL: 1. */
    int (*coordinates)(const pe_value *set);
    /* How many tokens the rows of a grid are, those of class tokens included. NULL: it has none, a range may
       go on. */
    const char *tokens;
    /* Where token number s = 0, 1, ... of a range stands: at[coordinates], NAN for a token without a place
       (the zero row of a class token). NULL: a range is the position; of several coordinates it is
       refused. */
    void (*locate)(const pe_problem *p, int64_t s, double at[]);
    /* The first of several coordinates is no place but the id of a word, a whole number 0 .. ids-1; accept is
       not asked then. NULL: it is a place. */
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
    /* The same rows, where they are plain waves that the machine makes faster: their frequencies to w, room
       for one per channel, and where they go. Returns how many; 0: with these settings rows are other than
       that. NULL: never. */
    int64_t (*waves)(const pe_problem *p, double w[], pe_wave_form *form);
    /* In place of rows and rows_back: a table made once per run. Positions must be whole, below
       sequence.rows, which accept sees to. */
    pe_sequence sequence;
    /* Why parameters have no gradient with these settings. NULL, or returning NULL: they have one. */
    const char *(*no_gradient)(const pe_value *set);

    /* -- rotary -- */
    /* Coordinates of a position. NULL: 1. */
    int (*axes)(const pe_problem *p);
    /* Heads that have frequencies of their own, queries and keys alike: 1 or H. NULL: 1. */
    int64_t (*heads)(const pe_problem *p);
    /* Fills the rotation but for what pe_rotation_finish does; its arrays have room for D/2 pairs. With
       `grows` also growth and center. */
    void (*turn)(const pe_problem *p, const pe_rotary_run *run, pe_rotary *t);
    int grows;
    /* Do the frequencies depend on parameters, or on the length of a run? Then each run asks for them again.
       NULL: no. */
    int (*by_run)(const pe_value *set);
    /* Gradients of frequencies, dw [heads, M, axes], to parameters, adding. NULL where there are none. */
    void (*turn_back)(const pe_problem *p, const pe_rotary_run *run, const pe_rotary *t, const double dw[],
                      double *const dpar[]);

    /* -- score, weight -- */
    /* Members that are the same whatever the settings; `terms` is asked for the others, and for the scale
       where it is not 1/sqrt(D). NULL: there are none. */
    pe_by_distance bias;
    pe_tile_hook   hook; /* score */
    void (*terms)(const pe_problem *p, pe_terms *s);
    /* Numbers made of the parameters once per run, for hooks and preparations: par[param_count], and dpar
       there takes their cotangents. derive_back may overwrite `dmade`; NULL: gradients go elsewhere. NULL:
       none. */
    int64_t (*derived)(const pe_problem *p);
    void (*derive)(const pe_problem *p, const double *const par[], double made[]);
    void (*derive_back)(const pe_problem *p, const double *const par[], const double made[], double dmade[],
                        double *const dpar[]);
    /* May a run ask for these positions and distances? NULL: any. */
    posenc_status (*reach)(const pe_problem *p, const pe_span *span, posenc_error *err);
    /* weight: what a setting is beside a score part, in place of its standard. NULL: none. */
    const char *beside_score;
    int         beside_setting;
} pe_encoding;

/* registry.c: the rows of encodings.def as an array. */
int                pe_encoding_count(void);
const pe_encoding *pe_encoding_at(int index);                         /* NULL outside */
const pe_encoding *pe_encoding_find(const char *name, size_t length); /* NULL if unknown */

#endif

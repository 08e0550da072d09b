/* SPDX-License-Identifier: MIT */
/*
 * trial.h: runs one reference case against the library; and the words that its steps are written in
 *
 * What a case checks follows from where its encoding acts and from the arrays it has, never from names of
 * files or encodings. It runs once per executor; the result keeps the error that comes closest to, or
 * furthest beyond, what is allowed. Nothing here prints.
 *
 * A trial is a problem (problem.h) whose results are known: it finds arrays of the case's file, has the
 * library fill others, and measures what came out. As a problem fails once and then does nothing, so a trial
 * compares nothing after it: a form of case (forms.c) may ask for all it needs and look once. The first
 * reason becomes the problem of the result.
 *
 * How far an array may differ from its reference: docs/reference-cases.md.
 */
#ifndef CLI_TRIAL_H
#define CLI_TRIAL_H

#include "verify/calc.h"

/* The executors a case can be run with, and their numbers. */
typedef struct cli_executor {
    const char     *name;
    posenc_executor executor;
    posenc_dtype    dtype;
} cli_executor;

enum { CLI_EXECUTORS = 2 };
extern const cli_executor cli_executors[CLI_EXECUTORS];

typedef struct cli_case_options {
    unsigned executors; /* bit i: cli_executors[i] */
    int64_t  tile_q, tile_k;
} cli_case_options;

typedef struct cli_case_result {
    int         passed;
    int         compared;     /* arrays, counted once per executor */
    double      worst;        /* the largest error as a fraction of what is allowed */
    char        array[64];    /* which array had it */
    const char *executor;     /* with which executor; NULL: it has none (tables) */
    char        problem[400]; /* why the case failed; empty if it passed */
    char        unused[200];  /* arrays of the file that nothing was compared with or made from */
} cli_case_result;

/* Runs a case of folder `dir`, or (NULL) of arrays that are in memory. Whatever is wrong with it becomes
   result->problem. */
void cli_case_run(cli_case_result *result, const char *dir, const posenc_arrays *file, const posenc_case *c,
                  const cli_case_options *options);

/* Is this the name of a subject of the cases that is no encoding? */
int cli_is_subject(const char *name);
/* ---------------------------------------------------------------- measuring ----------------- */

/* SOLVED is an output that approaches the solution of an equation, as its reference does. PREPARED is one
   that the library computes in double whichever executor runs. */
typedef enum cli_kind { CLI_OUTPUT, CLI_GRADIENT, CLI_SOLVED, CLI_PREPARED, CLI_INDEX, CLI_KINDS } cli_kind;

/* `angles`, one per row, or `angle` for all rows: how far an angle may be off, in radians. What it
   turns is as large as the row, so the allowance grows by angle * max(1, max |ref| of the row). */
typedef struct cli_allowance {
    cli_kind      kind;
    int           is_single; /* computed in float32 */
    double        angle;
    const double *angles;
    double        others; /* max |ref| of all gradients of the case: see ZERO in trial.c */
} cli_allowance;

typedef struct cli_measure {
    double  worst; /* error / allowed */
    int64_t at;    /* its element, counted in C order */
    double  got, want;
} cli_measure;

/* Both contiguous, with equal numbers of elements; rows are those of want. */
cli_measure cli_measure_array(const posenc_tensor *got, const posenc_tensor *want,
                              const cli_allowance *allowance);

/* max |x|, infinities and NaN aside: they decide nothing about the others. */
double cli_largest(const posenc_tensor *t);

/* ---------------------------------------------------------------- the trial ----------------- */

typedef struct cli_trial {
    cli_problem             p;
    const posenc_case      *c;
    const cli_case_options *options;
    const cli_executor     *with; /* NULL: none runs (tables) */
    cli_case_result        *result;
    posenc_tensor *exact, *dparams; /* p.params in double, for what is made of them there; gradients */
} cli_trial;

/* The file's array of that name, or NULL; it counts as used from then on. `has` only looks. */
const posenc_tensor *cli_trial_find(cli_trial *t, const char *name);
int                  cli_trial_has(const cli_trial *t, const char *name);
/* Fails where one of the NULL-terminated names is missing; whether nothing failed. */
int cli_trial_need(cli_trial *t, const char *const *names);
/* An array of the file in the executor's numbers, and one as positions (whole numbers stay whole). */
posenc_tensor    cli_trial_numbers(cli_trial *t, const char *name);
posenc_positions cli_trial_positions(cli_trial *t, const char *name);

/* Plan and workspace for the trial's encoding and executor. Parameters: initial values, then those of the
   file; t->dparams where the file has a gradient. Frequencies of a rotation stay in double in both: angles
   are prepared there, whichever executor runs. Returns whether nothing failed. */
int cli_trial_prepare(cli_trial *t, const posenc_dims *dims, int mask, int runs);

/* Measures an array against the file's of that name, if it has one; shapes may differ in leading
   axes of length 1. `angle` as in cli_allowance, `angles` one per row (NULL: none). */
void cli_trial_compare(cli_trial *t, cli_kind kind, const char *name, const posenc_tensor *got, double angle);
void cli_trial_compare_rows(cli_trial *t, const char *name, const posenc_tensor *got, const double *angles);
void cli_trial_compare_param_gradients(cli_trial *t, double angle);

/* The text of a setting of the case, up to the next blank; NULL if its settings do not say it. */
const char *cli_case_setting(const posenc_case *c, const char *name);

/* The forms that a case can have, by what the library is asked to do (forms.c). */
void cli_run_rows(cli_trial *t);      /* place input: out_y, or of words out_re and out_im */
void cli_run_rotation(cli_trial *t);  /* place rotary: out_q, out_k */
void cli_run_attention(cli_trial *t); /* places score and weight, and any case with in_v: out_o */

/* Besides outputs some cases have what came between, found through the library's public calls (inside.c): the
   vectors of each distance, all that is added to a score, positions that were counted, the tables that a
   window determines. Every array of that kind that the attention case has. */
void cli_compare_inside(cli_trial *t, const posenc_attend_in *in);
/* index_map, table swin: out_index_RxC and out_coords_RxC of each window in the file. */
void cli_compare_windows(cli_trial *t);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * trial.h: one reference case with one executor, and the words its steps are written in
 *
 * A trial finds arrays of the case's file, makes arrays for the library to fill, and measures what
 * came out. Its status is sticky: after a failure the helpers return empty tensors and compare
 * nothing, so that a form of case (forms.c) may ask for all it needs and look once. The first
 * reason becomes the problem of the result.
 */
#ifndef CLI_TRIAL_H
#define CLI_TRIAL_H

#include "cases.h"
#include "tolerance.h"

enum { CLI_MAX_PARAMS = 32, CLI_MAX_NAME = 128 };

typedef struct cli_trial {
    const posenc_case      *c;
    const posenc_arrays    *file;
    unsigned char          *used; /* per array of the file: was it looked at */
    posenc_arrays           made; /* everything allocated on the way */
    const cli_case_options *options;
    const cli_executor     *with; /* NULL: none runs (tables) */
    cli_case_result        *result;
    posenc_status           status;

    const posenc_encoding *e;
    posenc_plan           *plan;
    posenc_dims            dims;
    posenc_tensor          params[CLI_MAX_PARAMS], dparams[CLI_MAX_PARAMS];
    posenc_tensor exact[CLI_MAX_PARAMS]; /* the parameters in double, for what is made of them there */
} cli_trial;

/* Both return the trial's status. */
posenc_status cli_trial_fail(cli_trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
posenc_status cli_trial_refused(cli_trial *t, const posenc_error *err); /* the library's own sentence */

/* The file's array of that name, or NULL; it counts as used from then on. `has` only looks. */
const posenc_tensor *cli_trial_find(cli_trial *t, const char *name);
int                  cli_trial_has(const cli_trial *t, const char *name);
/* Fails where one of the NULL-terminated names is missing. */
posenc_status cli_trial_need(cli_trial *t, const char *const *names);

/* Zeroed tensors that live as long as the trial; no data after a failure, or where there is nothing
   to be like. */
posenc_tensor cli_trial_make(cli_trial *t, posenc_dtype dtype, int32_t ndim, const int64_t *shape);
posenc_tensor cli_trial_make_like(cli_trial *t, posenc_dtype dtype, const posenc_tensor *like);
posenc_tensor cli_trial_convert(cli_trial *t, posenc_dtype dtype, const posenc_tensor *from);
/* An array of the file in the executor's numbers, and one as positions (whole numbers stay whole).
 */
posenc_tensor    cli_trial_numbers(cli_trial *t, const char *name);
posenc_positions cli_trial_positions(cli_trial *t, const char *name);
void            *cli_trial_workspace(cli_trial *t, const posenc_plan *plan, int runs);

/* Makes t->plan for the trial's encoding and executor. */
posenc_status cli_trial_plan(cli_trial *t, const posenc_dims *dims, int mask);
/* All parameters as the encoding's source initialises them. */
posenc_status cli_trial_initial(cli_trial *t, const posenc_dims *dims, posenc_dtype dtype,
                                posenc_tensor *params);
/* t->params and t->exact: initial values, then those of the file; t->dparams where the file has a gradient.
   Frequencies of a rotation stay in double in both: angles are prepared there, whichever executor runs. */
posenc_status cli_trial_params(cli_trial *t);

/* Measures an array against the file's of that name, if it has one; shapes may differ in leading
   axes of length 1. `angle` as in cli_allowance. */
void cli_trial_compare(cli_trial *t, cli_kind kind, const char *name, const posenc_tensor *got, double angle);
void cli_trial_compare_rows(cli_trial *t, const char *name, const posenc_tensor *got, const double *angles);
void cli_trial_compare_param_gradients(cli_trial *t, double angle);

/* The text of a setting of the case, up to the next blank; NULL if its settings do not say it. */
const char *cli_find_setting(const posenc_case *c, const char *name);
/* A setting of the case as a number, or as a word; what the settings do not say is `standard`, and no
   word. */
double cli_real_setting(const posenc_case *c, const char *name, double standard);
int    cli_setting_is(const posenc_case *c, const char *name, const char *word);

#endif

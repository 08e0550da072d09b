/* SPDX-License-Identifier: MIT */
/*
 * trial.h: a reference case while it runs, and the words that its steps are written in
 *
 * A trial is a calculation (calc.h) whose results are known: it finds arrays of the case's file, has the
 * library fill others, and measures what came out. After its first failure it does nothing more, so a form
 * of case (the functions at the end) may ask for all it needs and look once. The first reason becomes the
 * problem of the result.
 */
#ifndef PE_VERIFY_TRIAL_H
#define PE_VERIFY_TRIAL_H

#include "verify/calc.h"
#include "verify/case.h"

/* ---------------------------------------------------------------- measuring ----------------- */

/* SOLVED is an output that approaches the solution of an equation, as its reference does. PREPARED is one
   that the library computes in double whichever executor runs. */
typedef enum pe_case_kind {
    PE_CASE_OUTPUT,
    PE_CASE_GRADIENT,
    PE_CASE_SOLVED,
    PE_CASE_PREPARED,
    PE_CASE_INDEX,
    PE_CASE_KINDS
} pe_case_kind;

/* `angles`, one per row, or where that is NULL `angle` for all rows: how far an angle may be off, in radians.
   What it rotates is as large as the row, so the allowance grows by angle * max(1, max |ref| of the row). */
typedef struct pe_allowance {
    pe_case_kind  kind;
    int           is_single; /* computed in float32 */
    double        angle;
    const double *angles;
    double        others;  /* max |ref| of all gradients of the case: see ZERO in trial.c */
    int           by_head; /* a row is a head's whole [L, n]: of a gradient of a token input */
} pe_allowance;

typedef struct pe_difference {
    double  worst; /* error / allowed */
    int64_t at;    /* its element, counted in C order */
    double  got, want;
} pe_difference;

/* Both contiguous, with equal numbers of elements; rows are those of want. */
pe_difference pe_trial_measure(const posenc_tensor *got, const posenc_tensor *want,
                               const pe_allowance *allowance);

/* max |x|, infinities and NaN aside: they decide nothing about the others. */
double pe_trial_largest(const posenc_tensor *t);

/* ---------------------------------------------------------------- the trial ----------------- */

typedef struct pe_trial {
    pe_calc                 p; /* the calculation: file, plan, parameters; its failure */
    const posenc_case      *c;
    const pe_case_options  *options;
    const pe_case_executor *with; /* the executor of this run; NULL: none runs (tables) */
    pe_case_result         *result;
    posenc_tensor          *tokens, *dtokens; /* token inputs of an attention, and their gradients */
    posenc_tensor          *exact, *dparams;  /* by pe_trial_prepare: p.params in double; their gradients */
} pe_trial;

/* The file's array of that name, or NULL; it counts as used from then on. `has` only looks. */
const posenc_tensor *pe_trial_find(pe_trial *t, const char *name);
int                  pe_trial_has(const pe_trial *t, const char *name);
/* Fails where one of the NULL-terminated names is missing; whether nothing failed. */
int pe_trial_need(pe_trial *t, const char *const *names);
/* An array of the file in the executor's numbers, and one as positions (whole numbers stay whole). */
posenc_tensor    pe_trial_numbers(pe_trial *t, const char *name);
posenc_positions pe_trial_positions(pe_trial *t, const char *name);

/* Plan and workspace for the trial's encoding and executor. Parameters: initial values, then those of the
   file; t->dparams where the file has a gradient. Frequencies of a rotation stay in double in both: angles
   are prepared there, whichever executor runs. Returns whether nothing failed. */
int pe_trial_prepare(pe_trial *t, const posenc_dims *dims, int mask, posenc_run runs);

/* The real parts and the imaginary ones of two arrays of the file as one; and such a one measured against
   both. */
posenc_tensor pe_trial_join(pe_trial *t, const char *const parts[2]);
void          pe_trial_compare_parts(pe_trial *t, pe_case_kind kind, const char *const parts[2],
                                     const posenc_tensor *got, double angle);

/* Measures an array against the file's of that name, if it has one; shapes may differ in leading
   axes of length 1. `angle` as in pe_allowance, `angles` one per row (NULL: none). */
void pe_trial_compare(pe_trial *t, pe_case_kind kind, const char *name, const posenc_tensor *got,
                      double angle);
/* The gradient of a token input. */
void pe_trial_compare_heads(pe_trial *t, const char *name, const posenc_tensor *got);
void pe_trial_compare_rows(pe_trial *t, const char *name, const posenc_tensor *got, const double *angles);
void pe_trial_compare_param_gradients(pe_trial *t, double angle);

/* The text of a setting of the case, up to the next blank; NULL if its settings do not say it. */
const char *pe_trial_setting(const posenc_case *c, const char *name);

/* The forms that a case can have, by what the library is asked to do. */
void pe_trial_rows(pe_trial *t);               /* place input: out_y, or of words out_re and out_im */
void pe_trial_attention_rotation(pe_trial *t); /* place rotary: out_q, out_k */
void pe_trial_attention(pe_trial *t);          /* places score and weight, and any case with in_v: out_o */
/* index_map, table swin: out_index_RxC and out_coords_RxC of each window in the file. */
void pe_trial_attention_windows(pe_trial *t);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * problem.h: named arrays as a problem that the library solves
 *
 * A file's arrays and a SPEC say everything about a run: settings that nobody gave (an axis of a parameter),
 * sizes, parameters, positions and masks. A problem holds what was read and what was made of it - encoding,
 * plan, parameters, workspace - until it ends, and all who run the library on arrays use it: attend, rotate,
 * encode, verify (trial.h), the pictures of tables and the explanation of a rotation.
 *
 * People name an array as they say it (q) or as the reference cases do (in_q, par_table): a command asks for
 * all spellings at once, and two of them in one file are refused, because one would be ignored in silence.
 * What nobody asked for is named in a warning: a misspelt name is the likeliest fault of an input file.
 *
 * Failing is sticky: the first thing wrong stays, be it our sentence or the library's in `err`, and after it
 * the helpers do nothing and return tensors without data. So a command asks for all it needs, and only
 * cli_problem_status and cli_problem_end look. Do not call the library with &p->err after a failure: ask
 * cli_stopped before.
 */
#ifndef CLI_PROBLEM_H
#define CLI_PROBLEM_H

#include "cli/frame/cli.h"

#include <posenc/files.h>

typedef struct cli_problem {
    const char    *path; /* the file's name, or the command's: the beginning of sentences */
    posenc_arrays  file;
    unsigned char *used;          /* per array of the file: was it asked for */
    posenc_arrays  made;          /* everything allocated on the way */
    posenc_arrays  results;       /* what a command writes */
    posenc_error   err;           /* its status says whether anything failed */
    char           sentence[400]; /* what, if it is ours; else err has the library's */
    int            status;        /* of what was printed */

    posenc_encoding *e;
    posenc_dims      dims;
    posenc_options   options;
    posenc_plan     *plan;
    void            *work;

    posenc_tensor *params;     /* `count` of them */
    unsigned char *is_initial; /* per parameter: the file does not have it */
    int            count;
    int64_t        seed; /* of parameters as they start */
} cli_problem;

cli_problem cli_problem_new(const char *path);

/* Did anything fail? */
static inline int cli_stopped(const cli_problem *p)
{
    return p->err.status != POSENC_OK;
}

/* Keeps one sentence, to which the path is put, unless there is one. */
void cli_refuse(cli_problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_refuse_memory(cli_problem *p, const char *what); /* "there is no memory for WHAT" */
/* Takes over an exit status whose sentence was printed. */
void cli_said(cli_problem *p, int status);
/* Prints what is wrong, once; the exit status. `end` also frees everything. */
int cli_problem_status(cli_problem *p);
int cli_problem_end(cli_problem *p);

/* ---------------------------------------------------------------- arrays -------------------- */

void cli_problem_read(cli_problem *p, const char *path);

/* The array that has one of these NULL-terminated names; no data if none has. `need` fails there. An array of
   complex numbers is for those who ask for it by cli_find_array (NULL if none has the name); the others
   refuse it. */
posenc_tensor       cli_find(cli_problem *p, const char *const *names);
posenc_tensor       cli_need(cli_problem *p, const char *const *names);
const posenc_array *cli_find_array(cli_problem *p, const char *const *names);
/* The positions under one of these names: whole numbers stay whole (I64), real ones become F64. */
posenc_tensor cli_find_positions(cli_problem *p, const char *const *names);

/* Zeroed tensors that live as long as the problem; texts too ("" after a failure). `convert` reads every type
   and writes F64, F32, I64 and U8 (a mask: 0 or 1); without data it gives none. */
posenc_tensor cli_make(cli_problem *p, posenc_dtype dtype, int32_t ndim, const int64_t *shape);
posenc_tensor cli_make_like(cli_problem *p, posenc_dtype dtype, const posenc_tensor *like);
posenc_tensor cli_convert(cli_problem *p, posenc_dtype dtype, const posenc_tensor *from);
/* The same among p->results, under a name. */
posenc_tensor cli_result(cli_problem *p, const char *name, posenc_dtype dtype, int32_t ndim,
                         const int64_t *shape);
void         *cli_block(cli_problem *p, size_t bytes); /* aligned as workspaces must be */
const char   *cli_text(cli_problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char   *cli_shape_text(cli_problem *p, int32_t ndim, const int64_t *shape); /* "[2,3,7,8]" */

/* An encoding with complex heads takes one tensor whose last axis holds the real parts, then the imaginary
   ones; reference cases and people have two arrays. `join` makes one (no data where the two differ in shape
   or type), `split` fills two; all contiguous. */
posenc_tensor cli_join(cli_problem *p, const posenc_tensor parts[2]);
void          cli_split(const posenc_tensor *whole, const posenc_tensor parts[2]);

/* Warns of arrays that nobody asked for, but for results (out_*, g_*) and what has a prefix given here. */
void cli_warn_unused(const cli_problem *p, const char *passed_over);

/* The same numbers with leading axes of length 1 added or taken until there are ndim, as NumPy broadcasts. */
posenc_tensor cli_with_axes(posenc_tensor t, int32_t ndim);
int           cli_is_float(posenc_dtype dtype);
int64_t       cli_element_count(const posenc_tensor *t);
double        cli_element(const posenc_tensor *t, int64_t i); /* of a contiguous tensor */
void          cli_put_element(posenc_tensor *t, int64_t i, double x);

/* ---------------------------------------------------------------- the encoding -------------- */

/* Joins every --set NAME=VALUE into one text. */
const char *cli_settings(cli_problem *p, const cli_args *args);
/* Makes p->e, in the place of another. */
void cli_encoding(cli_problem *p, const char *spec, const char *settings);
/* The same once more, with what the arrays say about settings that neither `spec` nor `given` says: a
   parameter's axis is often just a setting ("mlp_width,2"), so whoever brings the array has said the number.
   An axis that is the product of a list of two ("grid1*grid2") is read as one column of as many rows. */
void cli_infer(cli_problem *p, const char *spec, const char *given);

/* Is "name=" somewhere in the text of a SPEC or of settings, as a word of its own? */
int cli_is_said(const char *text, const char *name);
/* The setting of that name, or NULL. */
const posenc_setting_info *cli_find_setting(const posenc_encoding_info *info, const char *name);

/* The sizes of queries, keys and values [B,H,L,D]. */
posenc_dims cli_attention_dims(const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v);

/* The plan for p->e, dims and options, and a workspace for these runs. */
void  cli_plan(cli_problem *p, int runs);
void *cli_workspace(cli_problem *p, const posenc_plan *plan, int runs);

/* Parameters as they start, for p->e, dims and seed; NULL after a failure. */
posenc_tensor *cli_initial(cli_problem *p, posenc_dtype dtype);
/* p->params, in `dtype`, but float64 where the file's are. All are initialised first, so that a parameter's
   numbers do not depend on which others the file has; then those that the file has take their place: by name,
   also behind the encoding's ("tupe.pos", as a combination says it), and each behind "par_", or behind "in_"
   as reference cases that call it an input. */
void cli_params(cli_problem *p, posenc_dtype dtype);
/* Is `name`, as a file would have it, a parameter of p->e? (`pos`, which are positions elsewhere.) */
int cli_is_param(const cli_problem *p, const char *name);
/* A warning for each that training would have changed and the file lacks. */
void cli_warn_initial(const cli_problem *p);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * calc.h: a calculation of the library on named arrays
 *
 * A file's arrays and a SPEC say everything about a run: settings that nobody gave (an axis of a parameter),
 * sizes, parameters, positions and masks. A calculation holds what was read and what was made of it -
 * encoding, plan, parameters, workspace - until it ends, and all who run the library on arrays use it:
 * attend, rotate, encode, verify (trial.h), the pictures of tables and the explanation of a rotation.
 *
 * People name an array as they say it (q) or as the reference cases do (in_q, par_table): a command asks for
 * all spellings at once, and two of them in one file are refused, because one would be silently ignored.
 * What nobody asked for is named in a warning: a misspelt name is the likeliest fault of an input file.
 *
 * Failing is sticky: the first thing wrong stays, be it our sentence or the library's in `err`, and after it
 * the helpers do nothing and return tensors without data. So a command asks for all it needs, and looks once,
 * at the end. Do not call the library with &p->err after a failure: ask pe_calc_failed before. Nothing here
 * prints.
 */
#ifndef PE_VERIFY_CALC_H
#define PE_VERIFY_CALC_H

#include "base/shared/compiler.h"
#include "base/tensor.h"

#include <posenc/files.h>
#include <posenc/registry.h>

typedef struct pe_calc {
    const char    *path; /* the file's name, or the command's: the beginning of sentences */
    posenc_arrays  file;
    unsigned char *used;          /* per array of the file: was it asked for */
    posenc_arrays  made;          /* everything allocated on the way */
    int64_t        most, taken;   /* bytes that it may have, 0: any number; and has */
    posenc_arrays  results;       /* what a command writes */
    posenc_error   err;           /* its status says whether anything failed */
    char           sentence[400]; /* what, if it is ours; else err has the library's */

    posenc_encoding *e;
    posenc_dims      dims;
    posenc_options   options;
    posenc_plan     *plan;
    int              is_shown; /* its numbers are shown, not kept: fewer are made (base/shared/work.h) */
    posenc_workspace work;

    posenc_tensor *params;     /* `count` of them */
    unsigned char *is_initial; /* per parameter: the file does not have it */
    int            count;
    int64_t        seed; /* of initial parameters */
} pe_calc;

pe_calc pe_calc_new(const char *path);
void    pe_calc_free(pe_calc *p);

/* Did anything fail? */
static inline int pe_calc_failed(const pe_calc *p)
{
    return p->err.status != POSENC_OK;
}

/* Stores one sentence, to which the path is put, unless there is one. */
void pe_calc_refuse(pe_calc *p, const char *format, ...) PE_PRINTF(2, 3);
void pe_calc_refuse_memory(pe_calc *p, const char *what); /* "not enough memory for WHAT" */

/* ---------------------------------------------------------------- arrays -------------------- */

void pe_calc_read(pe_calc *p, const char *path);

/* The array that has one of these NULL-terminated names; no data if none has. `need` fails there. An array of
   complex numbers is for those who ask for it by pe_calc_find_array (NULL if none has the name); the others
   refuse it. */
posenc_tensor       pe_calc_find(pe_calc *p, const char *const *names);
posenc_tensor       pe_calc_need(pe_calc *p, const char *const *names);
const posenc_array *pe_calc_find_array(pe_calc *p, const char *const *names);
/* Whole numbers by their type; numbers of text, which has no types, by their values. */
int pe_calc_is_whole(const posenc_array *array);
/* The positions under one of these names: whole numbers stay whole (I64), real ones become F64. A column of
   text is a list. */
posenc_tensor pe_calc_find_positions(pe_calc *p, const char *const *names);
/* Refuses coordinates (an array of three axes) for queries or keys alone: the other side would count 0, 1, 2,
   ... on every axis. */
void pe_calc_match_positions(pe_calc *p, const posenc_positions *q, const posenc_positions *k);

/* Zeroed tensors that live as long as the calculation; texts too ("" after a failure). `convert` reads every
   type and writes F64, F32, I64 and U8 (a mask: 0 or 1); without data it gives none. */
posenc_tensor pe_calc_make(pe_calc *p, posenc_dtype dtype, int32_t ndim, const int64_t *shape);
posenc_tensor pe_calc_make_like(pe_calc *p, posenc_dtype dtype, const posenc_tensor *like);
posenc_tensor pe_calc_convert(pe_calc *p, posenc_dtype dtype, const posenc_tensor *from);
/* The same among p->results, under a name. */
posenc_tensor pe_calc_result(pe_calc *p, const char *name, posenc_dtype dtype, int32_t ndim,
                             const int64_t *shape);
void         *pe_calc_block(pe_calc *p, size_t bytes); /* aligned as workspaces must be */
const char   *pe_calc_text(pe_calc *p, const char *format, ...) PE_PRINTF(2, 3);
const char   *pe_calc_shape_text(pe_calc *p, int32_t ndim, const int64_t *shape); /* "[2,3,7,8]" */

/* An encoding with complex heads takes one tensor whose last axis holds the real parts, then the imaginary
   ones; reference cases and people have two arrays. `join` makes one (no data where the two differ in shape
   or type), `split` fills two; all contiguous. */
posenc_tensor pe_calc_join(pe_calc *p, const posenc_tensor parts[2]);
void          pe_calc_split(const posenc_tensor *whole, const posenc_tensor parts[2]);

/* The same numbers with leading axes of length 1 added or taken until there are ndim, as NumPy broadcasts. */
posenc_tensor pe_calc_with_axes(posenc_tensor t, int32_t ndim);
double        pe_calc_element(const posenc_tensor *t, int64_t i); /* of a contiguous tensor */
void          pe_calc_put(posenc_tensor *t, int64_t i, double x);
int64_t       pe_calc_whole(double x); /* INT64_MAX, which no call accepts, where x is no whole number */

/* ---------------------------------------------------------------- the encoding -------------- */

/* Makes p->e, in the place of another. */
void pe_calc_encoding(pe_calc *p, const char *spec, const char *settings);
/* The same once more, with what the arrays say about settings that neither `spec` nor `given` says: a
   parameter's axis is often just a setting ("mlp_width,2"), so whoever brings the array has said the number.
   An axis that is the product of a list of two ("grid1*grid2") is read as one column of as many rows. */
void pe_calc_infer(pe_calc *p, const char *spec, const char *given);

/* Is "name=" somewhere in the text of a SPEC or of settings, as a word of its own? */
int pe_calc_is_set(const char *text, const char *name);
/* The setting of that name, or NULL. */
const posenc_setting_info *pe_calc_setting(const posenc_encoding_info *info, const char *name);

/* The sizes of queries, keys and values [B,H,L,D]. */
posenc_dims pe_calc_attention_dims(const posenc_tensor *q, const posenc_tensor *k, const posenc_tensor *v);

/* The plan for p->e, dims and options, and a workspace for these runs. */
void             pe_calc_plan(pe_calc *p, posenc_run runs);
posenc_workspace pe_calc_workspace(pe_calc *p, const posenc_plan *plan, posenc_run runs);

/* Initial parameters, for p->e, dims and seed; NULL after a failure. */
posenc_tensor *pe_calc_initial(pe_calc *p, posenc_dtype dtype);
/* p->params, in `dtype`, but float64 where the file's are. All are initialised first, so that a parameter's
   numbers do not depend on which others the file has; then those that the file has take their place: by name,
   also after the encoding's ("tupe.pos", as in a combination), and each after "par_", or after "in_"
   as reference cases that call it an input. */
void pe_calc_params(pe_calc *p, posenc_dtype dtype);
/* Token inputs of p->e in `dtype`, as [B,Ht,L,n]: arrays NAME or in_NAME; fails where one is missing. */
posenc_tensor *pe_calc_tokens(pe_calc *p, posenc_dtype dtype);
/* Is `name`, as a file would have it, a parameter of p->e? (`pos`, which are positions elsewhere.) */
int pe_calc_is_param(const pe_calc *p, const char *name);

#endif

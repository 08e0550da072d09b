/* SPDX-License-Identifier: MIT */
/*
 * case.h: runs one reference case against the library
 *
 * What a case checks follows from where its encoding acts and from the arrays it has, never from names of
 * files or encodings. It runs once per executor; the result has the error that comes closest to, or
 * furthest beyond, what is allowed. Nothing here prints.
 * How far an array may differ from its reference: docs/reference-cases.md.
 */
#ifndef PE_VERIFY_CASE_H
#define PE_VERIFY_CASE_H

#include <posenc/files.h>

/* The executors a case can be run with, and their numbers. */
typedef struct pe_case_executor {
    const char     *name;
    posenc_executor executor;
    posenc_dtype    dtype;
} pe_case_executor;

enum { PE_CASE_EXECUTORS = 2 };

typedef struct pe_case_options {
    unsigned executors; /* bit 0: reference, bit 1: tiled */
    int64_t  tile_q, tile_k;
} pe_case_options;

typedef struct pe_case_result {
    int         passed;
    int         compared;     /* arrays, counted once per executor */
    double      worst;        /* the largest error as a fraction of what is allowed */
    char        array[64];    /* which array had it */
    const char *executor;     /* with which executor; NULL: it has none (tables) */
    char        problem[400]; /* why the case failed; empty if it passed */
    char        unused[200];  /* arrays of the file that nothing was compared with or made from */
} pe_case_result;

/* Runs a case of folder `dir`, or (NULL) of arrays that are in memory. Whatever is wrong with it becomes
   result->problem. */
void pe_case_run(pe_case_result *result, const char *dir, const posenc_arrays *file, const posenc_case *c,
                 const pe_case_options *options);

/* Is this the name of a subject of the cases that is no encoding? */
int pe_case_is_subject(const char *name);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * cases.h: runs one reference case against the library
 *
 * What a case checks follows from where its encoding acts and from the arrays it has, never from
 * names of files or encodings. It runs once per executor; the result keeps the error that comes
 * closest to, or furthest beyond, what is allowed. Nothing here prints.
 */
#ifndef CLI_CASES_H
#define CLI_CASES_H

#include <posenc/files.h>
#include <posenc/posenc.h>

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

/* Runs a case of folder `dir`. Whatever is wrong with it becomes result->problem. */
void cli_case_run(cli_case_result *result, const char *dir, const posenc_case *c,
                  const cli_case_options *options);

/* The same for arrays that are in memory already. */
void cli_case_run_arrays(cli_case_result *result, const posenc_arrays *file, const posenc_case *c,
                         const cli_case_options *options);

/* Is this the name of a subject of the cases that is no encoding? */
int cli_is_subject(const char *name);

#endif

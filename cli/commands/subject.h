/* SPDX-License-Identifier: MIT */
/*
 * subject.h: what a picture shows: an encoding with its initial parameters, the rotation of a model,
 * or a table that the user brings
 *
 * A table is the parameter of the encoding `learned` with as many rows, so that whatever can be drawn of an
 * encoding can be drawn of a table.
 */
#ifndef CLI_SUBJECT_H
#define CLI_SUBJECT_H

#include "cli/commands/config.h"

enum { CLI_SUBJECT_TEXT = 120 };

typedef struct cli_subject {
    pe_calc    p;      /* with the file of a table */
    cli_config config; /* of a model */
    int64_t    rows, width;
    char       name[CLI_SUBJECT_TEXT];   /* of a table or a model; "" for an encoding */
    char       origin[CLI_SUBJECT_TEXT]; /* where trainable parameters come from; "" without */
} cli_subject;

/* All return an exit status after printing what is wrong. Free in either case; s->p is a new problem. */

/* SPEC with `settings` and then every --set of args, in the place of what was there; its parameters follow,
   once the sizes are known. */
int cli_subject_encoding(cli_subject *s, const cli_args *args, const char *spec, const char *settings);
int cli_subject_params(cli_subject *s, const posenc_dims *dims, int64_t seed);
/* For each parameter: is it initialised here and trained? NULL: no memory. */
int *cli_subject_varied(cli_subject *s);
/* Adds N(0,1) to each of these that is initialised with one number everywhere, and says so in
   `origin`. How many there were. */
int cli_subject_vary(cli_subject *s, int64_t seed);
/* The same for the rotation of --config and --layer. */
int cli_subject_config(cli_subject *s, const cli_args *args);
/* "F:NAME", or "F" for the only array of a file: a table of rows, leading axes of length 1 dropped. */
int cli_subject_table(cli_subject *s, const char *source);

void cli_subject_free(cli_subject *s);

#endif

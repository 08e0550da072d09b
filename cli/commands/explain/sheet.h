/* SPDX-License-Identifier: MIT */
/*
 * sheet.h: numbers with names, on the terminal or as one JSON object
 *
 * Each call writes one thing. On the terminal it has a name and so many digits; in JSON it is a member under
 * its key, whole. Prose is for the terminal alone. A number that is none (NaN) is a dash, or null.
 */
#ifndef CLI_SHEET_H
#define CLI_SHEET_H

#include "base/shared/compiler.h"
#include "cli/print/print.h"

typedef struct cli_sheet {
    int     digits;   /* after the point */
    json_t *json;     /* where everything goes; NULL: to the terminal */
    int     is_begun; /* the terminal has something */
    int     is_lost;  /* something of it, without memory */
} cli_sheet;

/* A line above what belongs together. */
void cli_sheet_title(cli_sheet *s, const char *format, ...) PE_PRINTF(2, 3);
/* A paragraph that is indented. */
void cli_sheet_text(cli_sheet *s, const char *format, ...) PE_PRINTF(2, 3);
/* "NAME  WORDS", the words indented below each other. */
void cli_sheet_words(cli_sheet *s, const char *key, const char *name, const char *words);

/* "NAME  0.1234"; a difference that should be nothing has an exponent. */
void cli_sheet_number(cli_sheet *s, const char *key, const char *name, double value);
void cli_sheet_residual(cli_sheet *s, const char *key, const char *name, double value);
/* n numbers behind the name, in as many lines as they need; of very many the first. */
void cli_sheet_vector(cli_sheet *s, const char *key, const char *name, const double *values, int64_t n);
/* A matrix below its name; whether it fits the terminal. One that does not is for JSON alone. */
int cli_sheet_matrix(cli_sheet *s, const char *key, const char *name, const double *values, int64_t rows,
                     int64_t columns);

/* How the numbers of a column are written: whole or short ones as they are; with digits after the point; with
   as many digits that mean something. */
typedef enum cli_sheet_kind { CLI_SHEET_PLAIN, CLI_SHEET_FIXED, CLI_SHEET_SIGNIFICANT } cli_sheet_kind;

enum { CLI_SHEET_CELL = 48 };

/* A number so, in `text` or a constant. */
const char *cli_sheet_digits(char text[CLI_SHEET_CELL], const cli_sheet *s, cli_sheet_kind kind, double x);

typedef struct cli_sheet_column {
    const char    *key, *head;
    cli_sheet_kind kind;
} cli_sheet_column;

/* values [rows, count]: in JSON a list of objects. An exit status. */
int cli_sheet_table(cli_sheet *s, const char *key, const cli_sheet_column *columns, int count,
                    const double *values, int64_t rows);

/* A list of n numbers, for cli_sheet_put. */
json_t *cli_sheet_numbers(const double *values, int64_t n);
/* A member that is JSON already; takes it over (NULL: no memory for it). */
void cli_sheet_put(cli_sheet *s, const char *key, json_t *value);

/* Prints the JSON, if it is one. An exit status. */
int cli_sheet_end(cli_sheet *s);

#endif

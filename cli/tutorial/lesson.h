/* SPDX-License-Identifier: MIT */
/*
 * lesson.h: the five tutorials as tables: every figure, formula, number, listing and claim, in the order of
 * the text
 *
 * The tables are docs/tutorials/000.json to 004.json, which docs/tutorials/README.md explains; they are
 * compiled in. What takes minutes was run once: docs/tutorials/stored.json has what those commands printed.
 */
#ifndef CLI_TUTORIAL_LESSON_H
#define CLI_TUTORIAL_LESSON_H

#include <jansson.h>

enum { CLI_LESSONS = 5 };

/* The languages that a table has, and their number. */
typedef enum cli_tongue { CLI_ENGLISH, CLI_CHINESE, CLI_TONGUES } cli_tongue;

typedef struct cli_lesson {
    json_t     *json; /* owns everything */
    const char *number, *title[CLI_TONGUES], *source[CLI_TONGUES];
    json_t     *sections;
} cli_lesson;

/* Members that a row lacks are NULL or 0. */
typedef struct cli_row {
    const char *id, *says[CLI_TONGUES], *formula, *note[CLI_TONGUES], *right[CLI_TONGUES];
    int         erratum; /* its number in docs/errata.md; `right` says what is right */
    json_t     *runs;
} cli_row;

/* A command of a row. */
typedef struct cli_row_run {
    const char *command;
    int         status; /* that it must end with */
    json_t     *show, *numbers, *measured;
} cli_row_run;

/* The tutorial of that index; 0, or -1 where there is no memory. cli_lesson_free takes it back. */
int  cli_lesson_open(cli_lesson *lesson, int index);
void cli_lesson_free(cli_lesson *lesson);

/* The title of a section, or its rows. */
const char *cli_lesson_heading(const json_t *section, cli_tongue tongue);
json_t     *cli_lesson_rows(const json_t *section);

/* Read a row, and a command of it. NULL, or what is wrong with the table. */
const char *cli_lesson_row(cli_row *row, json_t *from, char fault[160]);
const char *cli_lesson_run(cli_row_run *run, json_t *from, char fault[160]);

/* "figure", "formula", "number", "listing" or "claim", by the letter of the id. */
const char *cli_lesson_kind(const char *id, cli_tongue tongue);

/* What is stored of a command that takes minutes: its output, and where and on what it was measured. NULL: it
   is run each time. */
const char *cli_lesson_stored(const char *command, cli_tongue tongue, const char **measured_on);

/* The bytes of a file that commands of the tables read, which the tool has in itself; NULL for any other. */
const void *cli_lesson_file(const char *path, size_t *size);

#endif

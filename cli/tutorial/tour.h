/* SPDX-License-Identifier: MIT */
/* tour.h: through a tutorial, row by row: runs the commands, judges the numbers, hands all of it to a view.
 */
#ifndef CLI_TUTORIAL_TOUR_H
#define CLI_TUTORIAL_TOUR_H

#include "cli/tutorial/child.h"
#include "cli/tutorial/judge.h"
#include "cli/tutorial/view.h"

/* A command that was run, kept for further rows that ask for it. */
typedef struct cli_tour_run {
    char      *command;
    cli_output output;
} cli_tour_run;

typedef struct cli_tour {
    cli_view      view;
    const char   *only;    /* id of the one row; NULL: all */
    int           section; /* number of the one section; 0: all */
    const char   *text; /* a file: commands that train are run on it; NULL: their stored results are shown */
    int           rows, errata;          /* rows that were shown, and those of them with an erratum */
    int           kinds[CLI_FAULTY + 1]; /* verdicts of each kind */
    int           broken;                /* commands that did not end as they must */
    cli_tour_run *runs;
    int           run_count;
} cli_tour;

/* How many numbers, measurements and commands are not as they must be; -1 after printing why it could not be
 * shown. */
int  cli_tour_show(cli_tour *t, const cli_lesson *l);
void cli_tour_free(cli_tour *t);

/* What a run printed: stored, or run now or before. NULL after printing why not. `*measured_on` as of
   cli_lesson_stored. */
const cli_output *cli_tour_output(cli_tour *t, const char *command, const char **measured_on);

/* The section that has the row (0: none). */
int cli_tour_find(const cli_lesson *l, const char *id);

#endif

/* SPDX-License-Identifier: MIT */
/* child.h: a command of the tool, run by the tool itself. */
#ifndef CLI_TUTORIAL_CHILD_H
#define CLI_TUTORIAL_CHILD_H

/* What it printed, and how it ended (128 + N: by signal N). */
typedef struct cli_output {
    char *text; /* malloc'd */
    int   status;
} cli_output;

/* Runs `posenc COMMAND`, whose words may stand in single quotes, for lines of that many characters; `more`:
   further words, or NULL. `< FILE` is one of cli_lesson_file. What it says on standard error is part of the
   text, or, with aloud, goes where ours does. 0, or -1 after printing why it could not be run. */
int cli_child_run(cli_output *o, const char *command, const char *more, int columns, int aloud);

#endif

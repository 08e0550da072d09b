/* SPDX-License-Identifier: MIT */
/* progress.h: how much of a file is written, for commands that write large ones. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "cli/frame/cli.h"

typedef struct cli_progress {
    const char *command;
    int64_t     all; /* bytes */
    int         shown;
} cli_progress;

/* What to call with p after each piece, and how many bytes are done: on a terminal it shows a line that is
   written over; elsewhere it is NULL. */
typedef void       cli_progress_tell(void *p, int64_t done);
cli_progress_tell *cli_progress_begin(cli_progress *p, const char *command, int64_t all);
/* Takes the line away. */
void cli_progress_end(const cli_progress *p);

#endif

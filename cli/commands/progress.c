/* SPDX-License-Identifier: MIT */
/* progress.c: contract in progress.h */
#include "cli/commands/progress.h"

#include <unistd.h>

static void show(void *self, int64_t done)
{
    cli_progress *p       = self;
    const int     percent = p->all ? (int)(100.0 * (double)done / (double)p->all) : 100;
    if (percent == p->shown)
        return;
    p->shown = percent;
    fprintf(stderr, "\r\033[K%s %3d %% of %.1f MB", p->command, percent, (double)p->all / 1e6);
    fflush(stderr);
}

cli_progress_tell *cli_progress_begin(cli_progress *p, const char *command, int64_t all)
{
    *p = (cli_progress){command, all, -1};
    return cli_is_terminal(STDERR_FILENO) ? show : NULL;
}

void cli_progress_end(const cli_progress *p)
{
    if (p->shown >= 0)
        fputs("\r\033[K", stderr);
}

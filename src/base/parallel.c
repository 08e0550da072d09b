/* SPDX-License-Identifier: MIT */
/* Who runs tasks, and whether they still run. Contract: parallel.h. */
#include "base/parallel.h"

typedef struct watched {
    const pe_team *team;
    posenc_task   *task;
    void          *argument;
} watched;

int pe_parallel_is_cancelled(const pe_team *team)
{
    return team->cancel && __atomic_load_n(team->cancel, __ATOMIC_RELAXED);
}

static void run_watched(void *argument, int64_t index, int slot)
{
    const watched *w = argument;
    if (!pe_parallel_is_cancelled(w->team))
        w->task(w->argument, index, slot);
}

static void run_tasks(int64_t n, const pe_team *team, posenc_task *task, void *argument)
{
    if (n <= 1 || team->threads <= 1)
        for (int64_t index = 0; index < n; index++)
            task(argument, index, 0);
    else if (team->parallel_for)
        team->parallel_for(team->context, n, task, argument);
    else
        pe_parallel_own(n, team->threads, task, argument);
}

void pe_parallel_for(int64_t n, const pe_team *team, posenc_task *task, void *argument)
{
    watched w = {team, task, argument};
    if (team->cancel)
        run_tasks(n, team, run_watched, &w);
    else
        run_tasks(n, team, task, argument);
}

pe_team pe_parallel_for_work(const pe_team *team, double work, double least)
{
    pe_team few = *team;
    if (work < least)
        few.threads = 1;
    return few;
}

int pe_parallel_threads(int requested)
{
    const int threads = requested > 0 ? requested : pe_parallel_default();
    return threads < 1 ? 1 : threads;
}

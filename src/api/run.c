/* SPDX-License-Identifier: MIT */
/* run.c: what every run begins and ends with: the workspace that it is given, and whether it was cancelled */
#include "api/objects.h"
#include "base/status.h"

/* An older caller's workspace may have none. */
static int threads_of(const posenc_workspace *work)
{
    return work->size < offsetof(posenc_workspace, threads) + sizeof work->threads ? 0 : work->threads;
}

int pe_run_threads(const posenc_plan *plan, const posenc_workspace *work)
{
    const int threads = work ? threads_of(work) : 0;
    return threads > 0 && threads <= PE_MOST_THREADS ? threads : plan->threads;
}

static posenc_status check_memory(const posenc_workspace *work, const char *who, posenc_error *err)
{
    posenc_workspace copy;
    if (!work || !work->size)
        return pe_fail(err, POSENC_ERROR_WORKSPACE, "%s: the workspace is %s; see posenc_workspace_create",
                       who, work ? "empty, its size 0" : "NULL");
    if (!pe_given_read(&copy, work, PE_GIVEN(posenc_workspace, bytes), who, "work", err))
        return POSENC_ERROR_ARGUMENT;
    if (!work->memory)
        return pe_fail(err, POSENC_ERROR_WORKSPACE,
                       "%s: the workspace has no memory; see posenc_workspace_create", who);
    if ((uintptr_t)work->memory % PE_ALIGN != 0)
        return pe_fail(err, POSENC_ERROR_WORKSPACE, "%s: the workspace is not aligned to %d bytes", who,
                       PE_ALIGN);
    if (threads_of(work) < 0 || threads_of(work) > PE_MOST_THREADS)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "%s: the workspace's threads are %d; they must be 0 (as planned) to %d", who,
                       threads_of(work), PE_MOST_THREADS);
    return POSENC_OK;
}

/* Nothing to find fault with, at one look. */
static int is_usual(const posenc_workspace *work)
{
    return work && work->size == sizeof *work && work->memory && (uintptr_t)work->memory % PE_ALIGN == 0 &&
           work->threads >= 0 && work->threads <= PE_MOST_THREADS;
}

posenc_status pe_run_open(pe_opened *run, const posenc_plan *plan, const posenc_workspace *work,
                          const pe_wanted *wanted, posenc_error *err)
{
    const posenc_options *o      = &plan->options;
    const posenc_status   status = is_usual(work) ? POSENC_OK : check_memory(work, wanted->who, err);
    const size_t          all    = wanted->taken + wanted->bytes;
    if (status)
        return status;
    if (work->bytes < all)
        return pe_fail(
            err, POSENC_ERROR_WORKSPACE,
            "%s: the workspace has %zu bytes, but this run takes %zu; make it for this kind of run, "
            "its sizes and its threads (posenc_plan_workspace)",
            wanted->who, work->bytes, all);
    run->arena = (pe_arena){(char *)work->memory + wanted->taken, 0};
    run->team  = (pe_team){wanted->threads, o->parallel_for, o->parallel_context, o->cancel};
    return POSENC_OK;
}

posenc_status pe_run_done(const pe_team *team, const char *who, posenc_error *err)
{
    if (pe_parallel_is_cancelled(team))
        return pe_fail(err, POSENC_ERROR_CANCELLED, "%s: cancelled; its outputs are incomplete", who);
    return pe_done(err);
}

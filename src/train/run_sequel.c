/* SPDX-License-Identifier: MIT */
/*
 * run_sequel.c: what is asked of the trained model while it is still in memory
 *
 * First the measures (trained.c), where they are wanted; then the sequel, such as extending the model to
 * longer inputs (extension.c). Checkpoints count its units, and one that was broken off is done again from
 * its beginning.
 */
#include "train/descent.h"
#include "train/run_parts.h"
#include "train/trained.h"

int64_t pe_run_sequel_work(const pe_run_config *c, int64_t units)
{
    int64_t work = 0;
    for (int64_t i = 0; c->sequel && i < units; i++)
        work += c->sequel->work(c->sequel->self, i);
    return work;
}

posenc_status pe_run_measure_trained(pe_run_state *w, const pe_run_config *c, pe_run_result *result,
                                     posenc_error *err)
{
    const int     is_wanted = c->measures && !c->bidirectional;
    const double  since     = pe_clock();
    posenc_status status    = is_wanted ? pe_trained_measure(result->trained, w->model, c, err) : POSENC_OK;
    w->measures[PE_RUN_EVAL_SECONDS] += pe_clock() - since;
    return status;
}

/* One unit of the sequel; a run that is told to stop writes a checkpoint first, from which it does that unit
   again. */
static posenc_status follow_on(pe_run_state *w, const pe_run_config *c, pe_run_progress *progress,
                               pe_run_result *result, posenc_error *err)
{
    posenc_status status = c->sequel->unit(c->sequel->self, c, w->model, w->marks[PE_RUN_SEQUEL], progress,
                                           result->sequel, &result->cancelled, err);
    w->measures[PE_RUN_EVAL_SECONDS] = pe_clock() - w->since;
    if (status && !result->cancelled)
        return status;
    w->marks[PE_RUN_SEQUEL] += !status;
    if (c->checkpoint && (status || pe_clock() - w->kept >= c->checkpoint_seconds)) {
        const posenc_status kept = pe_run_keep(w, c, result, err);
        return kept ? kept : status ? pe_run_cancelled(&result->cancelled, err) : POSENC_OK;
    }
    return status;
}

posenc_status pe_run_follow(pe_run_state *w, const pe_run_config *c, pe_run_progress *progress,
                            pe_run_result *result, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    w->since             = pe_clock() - w->measures[PE_RUN_EVAL_SECONDS];
    while (c->sequel && w->marks[PE_RUN_SEQUEL] < c->sequel->units && !status)
        status = follow_on(w, c, progress, result, err);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * run_train.c: `steps` steps on batches of the text
 *
 * Throughput is taken from step 100 on: the first steps warm caches and clocks. A run that goes on from a
 * checkpoint warms up again. A loss or a gradient that is not finite is written down and ends the run as
 * diverged, with status OK.
 */
#include "train/descent.h"
#include "train/run_parts.h"
#include "train/text_windows.h"

#include <math.h>

enum { WARM_STEPS = 100 };

/* One step; *finite = 0 if its loss or gradient was not, and then nothing was changed. */
static posenc_status train_step(pe_run_state *w, const pe_run_config *c, int64_t step, float *train_loss,
                                int *finite, posenc_error *err)
{
    double           loss;
    const pe_descent descent = {c->steps, c->warmup, c->learning_rate, c->weight_decay, c->clip};
    const pe_batch   batch   = {.windows = w->windows, .hidden = w->hidden, .B = c->batch, .length = c->L};
    pe_text_batch(w->windows, c->text, c->L, c->batch, c->seed, step);
    for (int64_t r = 0; w->hidden && r < c->batch; r++)
        pe_text_hide(w->hidden + r * c->L, c->L, c->seed, "hidden", (step * c->batch + r) * c->L);
    const posenc_status status =
        pe_descent_step(w->model, w->optimiser, &batch, &descent, step, &loss, finite, err);
    if (!status)
        *train_loss =
            isnan(loss) ? NAN : (float)loss; /* processors differ in the sign of a NaN, files know none */
    return status;
}

/* Throughput of the steps from `first` on, which began at `warm`. */
static double rate_of(const pe_run_config *c, int64_t first, double warm)
{
    const double seconds = pe_clock() - warm;
    return seconds > 0 ? (double)((c->steps - first) * c->batch * c->L) / seconds : 0;
}

posenc_status pe_run_train(pe_run_state *w, const pe_run_config *c, pe_run_progress *progress,
                           pe_run_result *result, posenc_error *err)
{
    const int64_t begin = w->marks[PE_RUN_STEP];
    double        warm  = pe_clock();
    int64_t       first = begin;
    w->since            = warm - w->measures[PE_RUN_TRAIN_SECONDS];
    for (int64_t step = begin; step < c->steps && !result->diverged; step++) {
        int           finite = 1;
        posenc_status status = train_step(w, c, step, &result->train_loss[step], &finite, err);
        if (status)
            return status;
        result->diverged          = !finite;
        w->marks[PE_RUN_DIVERGED] = !finite;
        if (step + 1 == begin + WARM_STEPS && step + 1 < c->steps) {
            warm  = pe_clock();
            first = step + 1;
        }
        if (step + 1 == c->steps && finite)
            w->measures[PE_RUN_RATE] = rate_of(c, first, warm);
        status = pe_run_pass(w, c, progress, result, PE_RUN_STEP, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

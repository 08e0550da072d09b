/* SPDX-License-Identifier: MIT */
/* descent.c: one step of training, and the little that every run needs around it. Contract: descent.h. */
#define _POSIX_C_SOURCE 200809L

#include "train/descent.h"

#include "train/fail.h"

#include <math.h>
#include <time.h>

double pe_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int pe_advance(pe_run_progress *progress)
{
    atomic_fetch_add(&progress->step, 1);
    return atomic_load(&progress->cancel) != 0;
}

posenc_status pe_run_cancelled(int *cancelled, posenc_error *err)
{
    *cancelled = 1;
    return pe_train_fail(err, POSENC_UNSUPPORTED, "run: cancelled before its end");
}

posenc_status pe_descent_step(pe_model *model, pe_optimiser *optimiser, const pe_batch *batch,
                              const pe_descent *descent, int64_t step, double *loss, int *finite,
                              posenc_error *err)
{
    const posenc_status status = pe_model_gradient(model, loss, batch, err);
    if (status)
        return status;
    const double rate = pe_learning_rate(descent->learning_rate, step, descent->warmup, descent->steps);
    *finite           = isfinite(*loss) &&
              isfinite(pe_optimiser_step(optimiser, model->theta, model->grad, model->weights,
                                         model->weight_count, rate, descent->weight_decay, descent->clip));
    return POSENC_OK;
}

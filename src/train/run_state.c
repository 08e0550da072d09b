/* SPDX-License-Identifier: MIT */
/*
 * run_state.c: what one run holds, and how it is kept
 *
 * A run that has a place for checkpoints keeps its whole state there: parameters, the optimiser's moments,
 * how far it is, what was measured. Everything else is named by the step, so the run that goes on from there
 * has the same bits.
 *
 * Each stage calls pe_run_pass after each of its units. There alone progress is counted, a checkpoint is
 * written when it is time to, and a wish to stop is heard. A sequel, whose units are long, counts its own
 * (run_sequel.c).
 */
#include "train/checkpoint.h"
#include "train/descent.h"
#include "train/fail.h"
#include "train/record.h"
#include "train/run_parts.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- memory -------------------- */

static pe_model_config model_config(const pe_run_config *c)
{
    return (pe_model_config){.spec    = c->spec,
                             .L       = c->L,
                             .longest = PE_REACH * c->L,
                             .d_model = c->d_model,
                             .layers  = c->layers,
                             .heads   = c->heads,
                             .batch   = c->batch,
                             .seed    = c->seed,
                             .dtype   = POSENC_F32,

                             .bidirectional = c->bidirectional,
                             .entry         = c->entry};
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int allocate(pe_run_state *w, const pe_run_config *c)
{
    const int64_t rows = larger(c->batch, w->model->long_batch), length = PE_REACH * c->L;
    const int64_t tokens = larger(c->batch * c->L, w->model->long_batch * length);
    w->windows           = malloc((size_t)rows * sizeof *w->windows);
    w->losses            = malloc((size_t)tokens * sizeof *w->losses);
    w->sums              = calloc((size_t)c->windows, sizeof *w->sums);
    w->counts            = malloc((size_t)c->windows * sizeof *w->counts);
    if (c->bidirectional)
        w->hidden = malloc((size_t)larger(tokens, c->windows * length));
    if (c->checkpoint)
        w->identity = pe_run_identity(c);
    return w->windows && w->losses && w->sums && w->counts && (w->hidden || !c->bidirectional) &&
           (w->identity || !c->checkpoint);
}

posenc_status pe_run_state_create(pe_run_state *w, const pe_run_config *c, posenc_error *err)
{
    const pe_model_config config = model_config(c);
    posenc_status         status = pe_model_create(&w->model, &config, err);
    if (!status)
        status = pe_optimiser_create(&w->optimiser, w->model->size, err);
    if (status)
        return status;
    if (!allocate(w, c))
        return pe_train_fail(err, POSENC_MEMORY, "run: no memory for a batch of %lld windows",
                             (long long)c->batch);
    return POSENC_OK;
}

void pe_run_state_free(pe_run_state *w)
{
    pe_model_free(w->model);
    pe_optimiser_free(w->optimiser);
    free(w->windows);
    free(w->losses);
    free(w->hidden);
    free(w->sums);
    free(w->counts);
    free(w->identity);
}

/* ---------------------------------------------------------------- checkpoints --------------- */

enum { STRETCHES = 9 };

/* Everything that a run needs to go on. */
static int list_state(pe_stretch list[STRETCHES], pe_run_state *w, const pe_run_config *c,
                      const pe_run_result *result)
{
    int64_t      *t;
    float        *moments;
    const int64_t remembered = pe_optimiser_memory(w->optimiser, &t, &moments);
    int           n          = 0;
    list[n++]                = (pe_stretch){"marks", w->marks, PE_RUN_MARKS, POSENC_I64};
    list[n++]                = (pe_stretch){"measures", w->measures, PE_RUN_MEASURES, POSENC_F64};
    list[n++]                = (pe_stretch){"theta", w->model->theta, w->model->size, POSENC_F32};
    list[n++]                = (pe_stretch){"optimiser.step", t, 1, POSENC_I64};
    list[n++]                = (pe_stretch){"optimiser.moments", moments, remembered, POSENC_F32};
    list[n++]                = (pe_stretch){"train_loss", result->train_loss, c->steps, POSENC_F32};
    list[n++] = (pe_stretch){"window_loss", result->window_loss, c->windows * PE_REACH * c->L, POSENC_F32};
    list[n++] = (pe_stretch){"sums", w->sums, c->windows, POSENC_F64};
    if (c->sequel)
        list[n++] = (pe_stretch){"sequel", result->sequel, c->sequel->count, POSENC_F32};
    return n;
}

posenc_status pe_run_go_on(pe_run_state *w, const pe_run_config *c, pe_run_progress *progress,
                           pe_run_result *result, posenc_error *err)
{
    pe_stretch list[STRETCHES];
    int        found;
    w->kept = pe_clock();
    if (!c->checkpoint)
        return POSENC_OK;
    const int           n      = list_state(list, w, c, result);
    const posenc_status status = pe_checkpoint_read(c->checkpoint, w->identity, list, n, &found, err);
    result->diverged           = w->marks[PE_RUN_DIVERGED] != 0;
    if (progress)
        atomic_store(&progress->step, w->marks[PE_RUN_STEP] + w->marks[PE_RUN_UNIT] +
                                          pe_run_sequel_work(c, w->marks[PE_RUN_SEQUEL]));
    return status;
}

posenc_status pe_run_keep(pe_run_state *w, const pe_run_config *c, const pe_run_result *result,
                          posenc_error *err)
{
    pe_stretch list[STRETCHES];
    const int  n = list_state(list, w, c, result);
    w->kept      = pe_clock();
    return pe_checkpoint_write(c->checkpoint, w->identity, list, n, err);
}

/* Who is told to stop has the checkpoint before this one if none can be written any more. */
posenc_status pe_run_pass(pe_run_state *w, const pe_run_config *c, pe_run_progress *progress,
                          pe_run_result *result, int mark, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    const int     stop   = progress && atomic_load(&progress->cancel);
    w->marks[mark]++;
    w->measures[mark == PE_RUN_STEP ? PE_RUN_TRAIN_SECONDS : PE_RUN_EVAL_SECONDS] = pe_clock() - w->since;
    if (progress)
        atomic_fetch_add(&progress->step, 1);
    if (c->checkpoint && (stop || pe_clock() - w->kept >= c->checkpoint_seconds))
        status = pe_run_keep(w, c, result, err);
    return stop ? pe_run_cancelled(&result->cancelled, err) : status;
}

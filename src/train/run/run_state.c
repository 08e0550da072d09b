/* SPDX-License-Identifier: MIT */
/*
 * run_state.c: what one run holds while it goes on: model, optimiser, buffers, checkpoints
 *
 * A run that has a file for checkpoints saves its whole state there: parameters, the optimiser's moments, how
 * far it is, what was measured. Everything else is named by the step, so a run that resumes from there has
 * the same bits.
 */
#include "train/run/run_state.h"

#include "base/status.h"

#include <stdlib.h>
#include <unistd.h>

/* ---------------------------------------------------------------- memory -------------------- */

pe_model_config pe_run_model_config(const pe_run_config *c)
{
    const pe_task  *task = c->task;
    pe_model_config m    = {.spec    = c->spec,
                            .L       = c->L,
                            .longest = c->reach * c->L,
                            .d_model = c->d_model,
                            .layers  = c->layers,
                            .heads   = c->heads,
                            .batch   = c->batch,
                            .seed    = c->seed,
                            .dtype   = POSENC_DTYPE_F32,

                            .bidirectional = c->bidirectional,
                            .is_rough      = c->is_rough,
                            .vocabulary    = c->text ? c->text->vocabulary : 0,
                            .scattered     = c->places.count,
                            .entry         = c->entry};
    if (task) {
        m.L             = pe_task_tokens(task, task->L);
        m.longest       = pe_task_tested_tokens(task, c->longest);
        m.bidirectional = task->full;
        m.symbols       = task->symbols;
        m.classes       = task->classes;
        m.grid          = task->grid ? pe_task_largest(task, c->longest) : 0;
    }
    return m;
}

static int allocate(pe_run_state *w, const pe_run_config *c)
{
    const int64_t tokens = pe_model_tokens(w->model), held_out = c->windows * c->reach * c->L;
    w->windows = malloc((size_t)pe_model_rows(w->model) * sizeof *w->windows);
    w->losses  = malloc((size_t)tokens * sizeof *w->losses);
    if (c->places.kind != PE_IN_ORDER && !(w->positions = malloc((size_t)tokens * sizeof *w->positions)))
        return 0;
    if (c->task) {
        w->symbols = malloc((size_t)tokens * sizeof *w->symbols);
        w->targets = malloc((size_t)tokens * sizeof *w->targets);
        return w->windows && w->losses && w->symbols && w->targets;
    }
    w->sums   = calloc((size_t)c->windows, sizeof *w->sums);
    w->counts = malloc((size_t)c->windows * sizeof *w->counts);
    if (c->bidirectional)
        w->hidden = malloc((size_t)(tokens > held_out ? tokens : held_out));
    if (c->checkpoint)
        w->identity = pe_run_identity(c);
    return w->windows && w->losses && w->sums && w->counts && (w->hidden || !c->bidirectional) &&
           (w->identity || !c->checkpoint);
}

posenc_status pe_run_state_create(pe_run_state *w, const pe_run_config *c, posenc_error *err)
{
    const pe_model_config config = pe_run_model_config(c);
    posenc_status         status = pe_model_create(&w->model, &config, err);
    if (!status)
        status = pe_optimiser_create(&w->optimiser, w->model->weights, w->model->weight_count,
                                     w->model->kernels, err);
    if (status)
        return status;
    if (!allocate(w, c))
        return pe_fail(err, POSENC_ERROR_MEMORY, "run: not enough memory for a batch of %lld windows",
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
    free(w->symbols);
    free(w->positions);
    free(w->targets);
    free(w->identity);
}

/* ---------------------------------------------------------------- checkpoints --------------- */

int64_t pe_run_followup_work(const pe_run_config *c, int64_t units)
{
    int64_t work = 0;
    for (int64_t i = 0; c->followup && i < units; i++)
        work += c->followup->work(c->followup->self, i);
    return work;
}

/* Everything that a run needs to go on. */
static pe_run_file list_state(pe_run_state *w)
{
    const pe_run_config *c      = w->config;
    const pe_run_result *result = w->result;
    int64_t             *t;
    float               *moments;
    const int64_t        remembered = pe_optimiser_memory(w->optimiser, &t, &moments);
    pe_run_file          k          = {.identity = w->identity};
    pe_run_file_list(&k, "marks", w->marks, POSENC_DTYPE_I64, PE_RUN_MARKS, 0);
    pe_run_file_list(&k, "measures", w->measures, POSENC_DTYPE_F64, PE_RUN_MEASURES, 0);
    pe_run_file_list(&k, "theta", w->model->theta, POSENC_DTYPE_F32, w->model->size, 0);
    pe_run_file_list(&k, "optimiser.step", t, POSENC_DTYPE_I64, 1, 0);
    pe_run_file_list(&k, "optimiser.moments", moments, POSENC_DTYPE_F32, remembered, 0);
    pe_run_file_list(&k, "train_loss", result->train_loss, POSENC_DTYPE_F32, c->steps, 0);
    pe_run_file_list(&k, "window_loss", result->window_loss, POSENC_DTYPE_F32, c->windows, c->reach * c->L);
    pe_run_file_list(&k, "scored", result->scored, POSENC_DTYPE_F64, c->windows, 2);
    pe_run_file_list(&k, "sums", w->sums, POSENC_DTYPE_F64, c->windows, 0);
    if (c->followup)
        pe_run_file_list(&k, "followup", result->followup, POSENC_DTYPE_F32, c->followup->count, 0);
    return k;
}

posenc_status pe_run_resume(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c   = w->config;
    posenc_arrays        set = {0};
    w->saved                 = pe_run_clock();
    if (!c->checkpoint || access(c->checkpoint, F_OK))
        return POSENC_OK;
    const pe_run_file list   = list_state(w);
    posenc_status     status = posenc_arrays_read(&set, c->checkpoint, err);
    if (!status)
        status = pe_run_file_take(&list, &set, "", c->checkpoint, err);
    posenc_arrays_free(&set);
    return status;
}

posenc_status pe_run_save(pe_run_state *w, int stops, posenc_error *err)
{
    const double now = pe_run_clock();
    if (!w->config->checkpoint || (!stops && now - w->saved < w->config->checkpoint_seconds))
        return POSENC_OK;
    const pe_run_file list = list_state(w);
    w->saved               = now;
    return pe_run_file_write(w->config->checkpoint, &list, err);
}

/* Who is told to stop has the checkpoint before this one if none can be written any more. */
posenc_status pe_run_unit_done(pe_run_state *w, int mark, posenc_error *err)
{
    const int stop = pe_run_advance(w->progress);
    w->marks[mark]++;
    w->measures[mark == PE_RUN_STEP ? PE_RUN_TRAIN_SECONDS : PE_RUN_EVAL_SECONDS] =
        pe_run_clock() - w->stage_start;
    const posenc_status status = pe_run_save(w, stop, err);
    return stop ? pe_run_cancelled(&w->result->cancelled, err) : status;
}

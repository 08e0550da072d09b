/* SPDX-License-Identifier: MIT */
/*
 * run_state.c: what one run holds, how it is kept, and what it leaves behind
 *
 * A run that has a place for checkpoints keeps its whole state there: parameters, the optimiser's moments,
 * how far it is, what was measured. Everything else is named by the step, so the run that goes on from there
 * has the same bits.
 *
 * Each stage calls pe_run_pass after each of its units. There alone progress is counted, a checkpoint is
 * written when it is time to, and a wish to stop is heard. A sequel, whose units are long, counts its own
 * (run_sequel.c).
 *
 * Arrays of a result begin as NaN: what was not measured, as the run diverged or was stopped before, must not
 * look like a number.
 */
#include "train/descent.h"
#include "train/fail.h"
#include "train/identity.h"
#include "train/run_parts.h"
#include "train/trained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Everything that a run needs to go on. */
static pe_run_file list_state(pe_run_state *w, const pe_run_config *c, const pe_run_result *result)
{
    int64_t      *t;
    float        *moments;
    const int64_t remembered = pe_optimiser_memory(w->optimiser, &t, &moments);
    pe_run_file   k          = {.identity = w->identity};
    pe_run_file_list(&k, "marks", w->marks, POSENC_I64, PE_RUN_MARKS, 0);
    pe_run_file_list(&k, "measures", w->measures, POSENC_F64, PE_RUN_MEASURES, 0);
    pe_run_file_list(&k, "theta", w->model->theta, POSENC_F32, w->model->size, 0);
    pe_run_file_list(&k, "optimiser.step", t, POSENC_I64, 1, 0);
    pe_run_file_list(&k, "optimiser.moments", moments, POSENC_F32, remembered, 0);
    pe_run_file_list(&k, "train_loss", result->train_loss, POSENC_F32, c->steps, 0);
    pe_run_file_list(&k, "window_loss", result->window_loss, POSENC_F32, c->windows, PE_REACH * c->L);
    pe_run_file_list(&k, "sums", w->sums, POSENC_F64, c->windows, 0);
    if (c->sequel)
        pe_run_file_list(&k, "sequel", result->sequel, POSENC_F32, c->sequel->count, 0);
    return k;
}

posenc_status pe_run_go_on(pe_run_state *w, const pe_run_config *c, pe_run_progress *progress,
                           pe_run_result *result, posenc_error *err)
{
    posenc_arrays set = {0};
    w->kept           = pe_clock();
    if (!c->checkpoint || access(c->checkpoint, F_OK))
        return POSENC_OK;
    const pe_run_file list   = list_state(w, c, result);
    posenc_status     status = posenc_arrays_read(&set, c->checkpoint, err);
    if (!status)
        status = pe_run_file_take(&list, &set, "", c->checkpoint, err);
    posenc_arrays_free(&set);
    result->diverged = w->marks[PE_RUN_DIVERGED] != 0;
    if (progress)
        atomic_store(&progress->step, w->marks[PE_RUN_STEP] + w->marks[PE_RUN_UNIT] +
                                          pe_run_sequel_work(c, w->marks[PE_RUN_SEQUEL]));
    return status;
}

posenc_status pe_run_keep(pe_run_state *w, const pe_run_config *c, const pe_run_result *result,
                          posenc_error *err)
{
    const pe_run_file list = list_state(w, c, result);
    w->kept                = pe_clock();
    return pe_run_file_write(c->checkpoint, &list, err);
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

/* ---------------------------------------------------------------- the result ---------------- */

/* The tensors of all layers, without data. */
static posenc_status params_create(pe_run_result *result, const pe_run_config *c, posenc_error *err)
{
    const pe_model_config config = model_config(c);
    const posenc_dims     dims   = pe_model_dims(&config, c->batch, c->L);
    posenc_encoding      *e      = NULL;
    posenc_status         status = posenc_encoding_create(&e, c->spec, NULL, err);
    const int             n      = status ? 0 : posenc_param_count(e);
    result->params               = calloc((size_t)(c->layers * n) + 1, sizeof *result->params);
    result->param_count          = (int)c->layers * n;
    for (int i = 0; i < result->param_count && result->params && !status; i++) {
        int64_t shape[POSENC_MAX_DIMS];
        int32_t ndim;
        status = posenc_param_shape(e, &dims, i % n, &ndim, shape, err);
        if (!status)
            result->params[i] = posenc_tensor_contiguous(NULL, POSENC_F32, ndim, shape);
    }
    posenc_encoding_free(e);
    return status;
}

static int64_t count_of(const posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    return n;
}

posenc_status pe_run_result_create(pe_run_result *result, const pe_run_config *c, posenc_error *err)
{
    *result               = (pe_run_result){.cosine_before = NAN, .cosine_after = NAN};
    const int64_t windows = c->windows * PE_REACH * c->L, trained = pe_trained_count(c);
    const int64_t sequel   = c->sequel ? c->sequel->count : 0;
    posenc_status status   = params_create(result, c, err);
    int64_t       n        = c->steps + windows + trained + sequel;
    const int     is_there = result->params != NULL;
    for (int i = 0; is_there && i < result->param_count; i++)
        n += count_of(&result->params[i]);
    if (status)
        return status;
    float *at = result->memory = is_there ? malloc((size_t)n * sizeof *at) : NULL;
    if (!at)
        return pe_train_fail(err, POSENC_MEMORY, "run: no memory for the losses of %lld windows",
                             (long long)c->windows);
    for (int64_t i = 0; i < n; i++)
        at[i] = NAN;
    result->train_loss  = at;
    result->window_loss = result->train_loss + c->steps;
    result->trained     = result->window_loss + windows;
    result->sequel      = c->sequel ? result->trained + trained : NULL;
    at                  = result->trained + trained + sequel;
    for (int i = 0; i < result->param_count; at += count_of(&result->params[i++]))
        result->params[i].data = at;
    return POSENC_OK;
}

void pe_run_list(pe_run_file *k, const pe_run_config *c, pe_run_result *r)
{
    int64_t per_layer = 0;
    for (int i = 0; i < r->param_count / (int)c->layers; i++)
        per_layer += count_of(&r->params[i]);
    pe_run_file_list(k, "diverged", &r->diverged, POSENC_U8, 1, 0);
    pe_run_file_list(k, "train_loss", r->train_loss, POSENC_F32, c->steps, 0);
    pe_run_file_list(k, "window_loss", r->window_loss, POSENC_F32, c->windows, PE_REACH * c->L);
    pe_run_file_list(k, "cosine_before", &r->cosine_before, POSENC_F64, 1, 0);
    pe_run_file_list(k, "cosine_after", &r->cosine_after, POSENC_F64, 1, 0);
    pe_run_file_list(k, "parameters", &r->parameters, POSENC_I64, 1, 0);
    pe_run_file_list(k, "encoding_parameters", &r->encoding_parameters, POSENC_I64, 1, 0);
    pe_run_file_list(k, "trained", r->trained, POSENC_F32, pe_trained_count(c), 0);
    pe_run_file_list(k, "time.train_seconds", &r->train_seconds, POSENC_F64, 1, 0);
    pe_run_file_list(k, "time.eval_seconds", &r->eval_seconds, POSENC_F64, 1, 0);
    pe_run_file_list(k, "time.bytes_per_second", &r->tokens_per_second, POSENC_F64, 1, 0);
    pe_run_file_list(k, "time.instructions", r->instructions, POSENC_U8, PE_ISA, 0);
    if (per_layer)
        pe_run_file_list(k, "params", r->params->data, POSENC_F32, c->layers, per_layer);
    if (c->sequel)
        pe_run_file_list(k, "sequel", r->sequel, POSENC_F32, c->sequel->count, 0);
}

void pe_run_result_free(pe_run_result *result)
{
    if (!result)
        return;
    free(result->params);
    free(result->memory);
    *result = (pe_run_result){0};
}

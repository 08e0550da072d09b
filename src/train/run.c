/* SPDX-License-Identifier: MIT */
/*
 * run.c: one training run, from checks to numbers
 *
 * Check (run_check.c), train `steps` batches of L (run_train.c), read held-out windows of 8 L
 * (run_evaluate.c), ask the trained model what else is wanted (run_sequel.c). What a run holds and how it is
 * kept on the way, and what it leaves behind, is in run_state.c. Here is the order.
 *
 * Nothing here depends on the clock, on other runs or on the number of workers: the library is told to use
 * the calling thread alone, random numbers are named and not drawn in order, and sums have a fixed order. The
 * clock is only read, for the throughput.
 *
 * A loss or a gradient that is not finite ends the run with `diverged` and status OK: that is a
 * finding about the encoding, not an error of the caller.
 */
#include "train/run_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t pe_run_work(const pe_run_config *config)
{
    const int64_t units = config->sequel ? config->sequel->units : 0;
    return config->steps + pe_run_evaluation_calls(config) + pe_run_sequel_work(config, units);
}

/* ---------------------------------------------------------------- tokens and positions ------ */

static posenc_status measure_cosine(double *cosine, const pe_run_state *w, const pe_run_config *c,
                                    posenc_error *err)
{
    int64_t counts[PE_BYTES] = {0};
    double  weight[PE_BYTES];
    for (int64_t i = 0; i < c->text->train_size; i++)
        counts[c->text->bytes[i]]++;
    for (int i = 0; i < PE_BYTES; i++)
        weight[i] = (double)counts[i] / (double)c->text->train_size;
    return pe_model_cosine(w->model, cosine, weight, err);
}

/* Before the first step; a run that goes on has it from its checkpoint. */
static posenc_status measure_first(pe_run_state *w, const pe_run_config *c, posenc_error *err)
{
    return w->marks[PE_RUN_STEP] ? POSENC_OK : measure_cosine(&w->measures[PE_RUN_COSINE], w, c, err);
}

/* ---------------------------------------------------------------- the order ----------------- */

static void copy_tensor(posenc_tensor *to, const posenc_tensor *from)
{
    size_t n = sizeof(float);
    for (int32_t a = 0; a < from->ndim; a++)
        n *= (size_t)from->shape[a];
    memcpy(to->data, from->data, n);
}

static void copy_measures(pe_run_result *result, const pe_run_state *w)
{
    result->parameters          = pe_model_parameters(w->model);
    result->encoding_parameters = pe_model_encoding_parameters(w->model);
    snprintf(result->instructions, sizeof result->instructions, "%s", posenc_isa());
    result->cosine_before     = w->measures[PE_RUN_COSINE];
    result->train_seconds     = w->measures[PE_RUN_TRAIN_SECONDS];
    result->eval_seconds      = w->measures[PE_RUN_EVAL_SECONDS];
    result->tokens_per_second = w->measures[PE_RUN_RATE];
}

posenc_status pe_run(const pe_run_config *config, pe_run_progress *progress, pe_run_result *result,
                     posenc_error *err)
{
    pe_run_state w       = {.measures[PE_RUN_COSINE] = NAN};
    *result              = (pe_run_result){0};
    posenc_status status = pe_run_check(config, err);
    if (!status)
        status = pe_run_state_create(&w, config, err);
    if (!status)
        status = pe_run_result_create(result, config, err);
    if (!status)
        status = pe_run_go_on(&w, config, progress, result, err);
    if (!status)
        status = measure_first(&w, config, err);
    if (!status)
        status = pe_run_train(&w, config, progress, result, err);
    if (!status && !result->diverged)
        status = measure_cosine(&result->cosine_after, &w, config, err);
    if (!status && !result->diverged)
        status = pe_run_evaluate(&w, config, progress, result, err);
    if (!status && !result->diverged)
        status = pe_run_measure_trained(&w, config, result, err);
    if (!status && !result->diverged)
        status = pe_run_follow(&w, config, progress, result, err);
    if (w.model)
        copy_measures(result, &w);
    for (int i = 0; i < result->param_count && !status; i++)
        copy_tensor(&result->params[i], &w.model->params[i]);
    pe_run_state_free(&w);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * run_result.c: the arrays of a result
 *
 * They begin as NaN: what was not measured, as the run diverged or was stopped before, must not look like a
 * number.
 */
#include "base/status.h"
#include "base/tensor.h"
#include "train/run/run_state.h"
#include "train/run/trained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The tensors of layer l, without data, behind those that there are. */
static posenc_status add_layer(pe_run_result *result, const pe_run_config *c, const posenc_encoding *e,
                               posenc_error *err)
{
    const pe_model_config config = pe_run_model_config(c);
    const posenc_dims     dims   = pe_model_dims(&config, c->batch, config.L);
    const int64_t         side   = c->task ? pe_task_largest(c->task, c->longest) : 0;
    const int             n = posenc_param_count(e), first = result->param_count;
    posenc_tensor        *more = realloc(result->params, (size_t)(first + n + 1) * sizeof *more);
    posenc_status status = more ? POSENC_OK : pe_fail(err, POSENC_ERROR_MEMORY, "run: not enough memory");
    result->params       = more ? more : result->params;
    for (int i = 0; i < n && !status; i++) {
        int64_t shape[POSENC_MAX_DIMS];
        int32_t ndim;
        status = posenc_param_shape(e, &dims, i, &ndim, shape, err);
        if (c->task && !status && shape[0] == side * side)
            shape[0] = c->task->L * c->task->L; /* the cells that were trained: pe_run_result_take_params */
        if (!status)
            result->params[result->param_count++] =
                posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, ndim, shape);
    }
    return status;
}

static posenc_status params_create(pe_run_result *result, const pe_run_config *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int64_t l = 0; l < c->layers && !status; l++) {
        posenc_encoding *e = NULL;
        posenc_layer     read;
        status = pe_spec_layer(&e, &read, c->spec, l, err);
        if (!status)
            status = add_layer(result, c, e, err);
        posenc_encoding_free(e);
    }
    return status;
}

/* Pictures show what training on the text made of an encoding, or on a grid: tables of rows and columns. */
static int keeps_params(const pe_run_config *c)
{
    return !c->task || c->task->grid;
}

posenc_status pe_run_result_create(pe_run_result *result, const pe_run_config *c, posenc_error *err)
{
    *result =
        (pe_run_result){.cosine_before = NAN, .cosine_after = NAN, .lowest_loss = INFINITY, .last_loss = NAN};
    for (int i = 0; i < PE_TASK_LENGTHS; i++)
        result->loss[i] = NAN;
    const int64_t windows = c->windows * c->reach * c->L, trained = c->task ? 0 : pe_trained_lay_out(c).count;
    const int64_t followup = c->followup ? c->followup->count : 0;
    posenc_status status   = keeps_params(c) ? params_create(result, c, err) : POSENC_OK;
    int64_t       n        = c->steps + windows + trained + followup;
    for (int i = 0; result->params && i < result->param_count; i++)
        n += pe_tensor_elements(&result->params[i]);
    if (status)
        return status;
    float *at = result->memory = malloc((size_t)n * sizeof *at);
    if (c->task)
        result->right = calloc((size_t)(PE_TASK_LENGTHS * c->sequences), sizeof *result->right);
    else
        result->scored = malloc((size_t)(2 * c->windows) * sizeof *result->scored);
    if (!at || (keeps_params(c) && !result->params) || !(c->task ? (void *)result->right : result->scored))
        return pe_fail(err, POSENC_ERROR_MEMORY, "run: not enough memory for the losses of %lld windows",
                       (long long)(c->task ? c->sequences : c->windows));
    for (int64_t i = 0; i < n; i++)
        at[i] = NAN;
    for (int64_t i = 0; !c->task && i < 2 * c->windows; i++)
        result->scored[i] = NAN;
    result->train_loss  = at;
    result->window_loss = result->train_loss + c->steps;
    result->trained     = result->window_loss + windows;
    result->followup    = c->followup ? result->trained + trained : NULL;
    at                  = result->trained + trained + followup;
    for (int i = 0; i < result->param_count; at += pe_tensor_elements(&result->params[i++]))
        result->params[i].data = at;
    return POSENC_OK;
}

/* A table of the largest grid that is tested has the smaller one that was trained in its upper left corner.
 */
void pe_run_result_take_params(pe_run_result *result, const pe_run_config *c, const posenc_tensor *from)
{
    for (int i = 0; i < result->param_count; i++) {
        const posenc_tensor *to   = &result->params[i];
        const int64_t        all  = pe_tensor_elements(to);
        const int            cut  = pe_tensor_elements(&from[i]) > all;
        const int64_t        part = cut ? all / c->task->L : all, rows = cut ? c->task->L : 1,
                      step = cut ? pe_tensor_elements(&from[i]) / pe_task_largest(c->task, c->longest) : 0;
        for (int64_t r = 0; r < rows; r++)
            memcpy((float *)to->data + r * part, (const float *)from[i].data + r * step,
                   (size_t)part * sizeof(float));
    }
}

/* What only a run on the text has. */
static void list_text(pe_run_file *k, const pe_run_config *c, pe_run_result *r)
{
    const int64_t rows = pe_spec_is_layered(c->spec) ? 1 : c->layers; /* layers may differ */
    int64_t       all  = 0;
    for (int i = 0; i < r->param_count; i++)
        all += pe_tensor_elements(&r->params[i]);
    pe_run_file_list(k, "window_loss", r->window_loss, POSENC_DTYPE_F32, c->windows, c->reach * c->L);
    pe_run_file_list(k, "scored", r->scored, POSENC_DTYPE_F64, c->windows, 2);
    pe_run_file_list(k, "cosine_before", &r->cosine_before, POSENC_DTYPE_F64, 1, 0);
    pe_run_file_list(k, "cosine_after", &r->cosine_after, POSENC_DTYPE_F64, 1, 0);
    pe_run_file_list(k, "trained", r->trained, POSENC_DTYPE_F32, pe_trained_lay_out(c).count, 0);
    pe_run_file_list(k, "time.bytes_per_second", &r->tokens_per_second, POSENC_DTYPE_F64, 1, 0);
    if (all)
        pe_run_file_list(k, "params", r->params->data, POSENC_DTYPE_F32, rows, all / rows);
    if (c->followup)
        pe_run_file_list(k, "followup", r->followup, POSENC_DTYPE_F32, c->followup->count, 0);
}

static void list_task(pe_run_file *k, const pe_run_config *c, pe_run_result *r)
{
    pe_run_file_list(k, "right", r->right, POSENC_DTYPE_I64, PE_TASK_LENGTHS, c->sequences);
    pe_run_file_list(k, "loss", r->loss, POSENC_DTYPE_F64, PE_TASK_LENGTHS, 0);
    pe_run_file_list(k, "lowest_loss", &r->lowest_loss, POSENC_DTYPE_F64, 1, 0);
    pe_run_file_list(k, "last_loss", &r->last_loss, POSENC_DTYPE_F64, 1, 0);
    if (r->param_count && r->params->ndim == 2) /* of the first layer; a part at the input has one for all */
        pe_run_file_list(k, "table", r->params->data, POSENC_DTYPE_F32, r->params->shape[0],
                         r->params->shape[1]);
}

void pe_run_list(pe_run_file *k, const pe_run_config *c, pe_run_result *r)
{
    pe_run_file_list(k, "diverged", &r->diverged, POSENC_DTYPE_U8, 1, 0);
    pe_run_file_list(k, "train_loss", r->train_loss, POSENC_DTYPE_F32, c->steps, 0);
    pe_run_file_list(k, "parameters", &r->parameters, POSENC_DTYPE_I64, 1, 0);
    pe_run_file_list(k, "encoding_parameters", &r->encoding_parameters, POSENC_DTYPE_I64, 1, 0);
    pe_run_file_list(k, "time.train_seconds", &r->train_seconds, POSENC_DTYPE_F64, 1, 0);
    pe_run_file_list(k, "time.eval_seconds", &r->eval_seconds, POSENC_DTYPE_F64, 1, 0);
    pe_run_file_list(k, "time.instructions", r->instructions, POSENC_DTYPE_U8, PE_ISA, 0);
    (c->task ? list_task : list_text)(k, c, r);
}

void pe_run_result_free(pe_run_result *result)
{
    free(result->params);
    free(result->memory);
    free(result->right);
    free(result->scored);
    *result = (pe_run_result){0};
}

int pe_run_all_ended(const pe_run_slot *runs, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (atomic_load(&runs[i].ended) != 1 + POSENC_OK)
            return 0;
    return 1;
}

void pe_run_slots_free(pe_run_slot *runs, int64_t count)
{
    for (int64_t i = 0; runs && i < count; i++)
        pe_run_result_free(&runs[i].result);
    free(runs);
}

/* SPDX-License-Identifier: MIT */
/*
 * task_run.c: train on batches of a task, test at every length
 *
 * The model is the one of `compare` (model.h) with the task's symbols and classes for bytes. Batches are made
 * as they are needed. Every length is read by itself, causal or not: a sequence of another n is another
 * sequence.
 *
 * An answer is right if its class is likelier than every other. All answers of a sequence right is an exact
 * match, and as each answer was given what should have been written before it, that is also what free writing
 * would have brought.
 */
#include "train/task_run.h"

#include "train/fail.h"
#include "train/model.h"

#include <math.h>
#include <stdlib.h>

/* What one run holds. */
typedef struct work {
    pe_model             *model;
    pe_optimiser         *optimiser;
    unsigned char        *symbols; /* [tokens of one pass] */
    int16_t              *targets; /* [tokens of one pass] */
    double               *losses;  /* [tokens of one pass] */
    const unsigned char **rows;    /* [sequences of one pass] */
} work;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t tested_tokens(const pe_task_config *c)
{
    return pe_task_tested_tokens(c->task, c->longest);
}

posenc_dims pe_task_dims(const pe_task_config *c)
{
    const int64_t D = c->d_model / c->heads, longest = tested_tokens(c);
    return (posenc_dims){.B       = 1,
                         .H       = c->heads,
                         .G       = c->heads,
                         .Lq      = longest,
                         .Lk      = longest,
                         .D       = D,
                         .Dv      = D,
                         .d_model = c->d_model,
                         .L       = pe_task_trained_tokens(c->task)};
}

static pe_model_config model_config(const pe_task_config *c)
{
    return (pe_model_config){.spec          = c->spec,
                             .L             = pe_task_trained_tokens(c->task),
                             .longest       = tested_tokens(c),
                             .d_model       = c->d_model,
                             .layers        = c->layers,
                             .heads         = c->heads,
                             .batch         = c->batch,
                             .seed          = c->seed,
                             .dtype         = POSENC_F32,
                             .bidirectional = c->task->full,
                             .entry         = c->entry,
                             .symbols       = c->task->symbols,
                             .classes       = c->task->classes,
                             .grid          = c->task->grid ? pe_task_largest(c->task, c->longest) : 0};
}

static posenc_status work_create(work *w, const pe_task_config *c, posenc_error *err)
{
    const pe_model_config config = model_config(c);
    posenc_status         status = pe_model_create(&w->model, &config, err);
    if (!status)
        status = pe_optimiser_create(&w->optimiser, w->model->size, err);
    if (status)
        return status;
    const int64_t rows = larger(c->batch, w->model->long_batch);
    const size_t  n    = (size_t)larger(c->batch * config.L, w->model->long_batch * config.longest);
    w->symbols         = malloc(n * sizeof *w->symbols);
    w->targets         = malloc(n * sizeof *w->targets);
    w->losses          = malloc(n * sizeof *w->losses);
    w->rows            = malloc((size_t)rows * sizeof *w->rows);
    if (w->symbols && w->targets && w->losses && w->rows)
        return POSENC_OK;
    return pe_train_fail(err, POSENC_MEMORY, "task %s: no memory for a batch of %lld sequences",
                         c->task->name, (long long)c->batch);
}

static void work_free(work *w)
{
    pe_model_free(w->model);
    pe_optimiser_free(w->optimiser);
    free(w->symbols);
    free(w->targets);
    free(w->losses);
    free(w->rows);
}

/* The sequences in w as a batch of size n. */
static pe_batch batch_of(work *w, const pe_task *task, int64_t n, int64_t count)
{
    const int64_t length = task->tokens(n);
    for (int64_t r = 0; r < count; r++)
        w->rows[r] = w->symbols + r * length;
    return (pe_batch){.windows = w->rows,
                      .B       = count,
                      .length  = length,
                      .targets = w->targets,
                      .columns = task->grid ? n : 0};
}

/* ---------------------------------------------------------------- training ------------------ */

static posenc_status train(work *w, const pe_task_config *c, pe_run_progress *progress,
                           pe_task_result *result, posenc_error *err)
{
    const double start = pe_clock();
    for (int64_t step = 0; step < c->descent.steps && !result->diverged; step++) {
        const int64_t n = pe_task_batch_size(c->task, c->seed, step);
        int           finite;
        pe_task_batch(c->task, c->seed, step, n, c->batch, w->symbols, w->targets);
        const pe_batch      batch  = batch_of(w, c->task, n, c->batch);
        const posenc_status status = pe_descent_step(w->model, w->optimiser, &batch, &c->descent, step,
                                                     &result->last_loss, &finite, err);
        if (status)
            return status;
        result->diverged    = !finite;
        result->lowest_loss = fmin(result->lowest_loss, result->last_loss);
        if (pe_advance(progress))
            return pe_run_cancelled(&result->cancelled, err);
    }
    result->train_seconds = pe_clock() - start;
    return POSENC_OK;
}

/* ---------------------------------------------------------------- tests --------------------- */

/* Test sequences that one call takes. The model's buffers are those of a training batch. */
static int64_t per_call(const pe_task_config *c, int length)
{
    const int64_t trained = pe_task_trained_tokens(c->task),
                  tokens  = c->task->tokens(pe_task_size(c->task, length));
    return tokens <= trained ? c->batch : larger(1, c->batch * trained / tested_tokens(c));
}

int64_t pe_task_work(const pe_task_config *c)
{
    int64_t units = c->descent.steps;
    for (int i = 0; i <= c->longest; i++)
        if (pe_task_size(c->task, i))
            units += (c->sequences + per_call(c, i) - 1) / per_call(c, i);
    return units;
}

/* Sequences first .. first + count - 1 of a length: adds up the losses, and counts what was right in each. */
static posenc_status test_some(work *w, const pe_task_config *c, int length, int64_t first, int64_t count,
                               double *sum, int64_t *right, posenc_error *err)
{
    pe_task_test(c->task, length, first, count, w->symbols, w->targets);
    const pe_batch      batch  = batch_of(w, c->task, pe_task_size(c->task, length), count);
    const posenc_status status = pe_model_losses(w->model, w->losses, &batch, err);
    for (int64_t i = 0; !status && i < count * batch.length; i++)
        if (w->targets[i] >= 0) {
            *sum += w->losses[i];
            right[first + i / batch.length] += w->model->right[i];
        }
    return status;
}

static posenc_status test_length(work *w, const pe_task_config *c, int length, pe_run_progress *progress,
                                 pe_task_result *result, posenc_error *err)
{
    const int64_t most = per_call(c, length);
    double        sum  = 0;
    for (int64_t first = 0; first < c->sequences; first += most) {
        const int64_t       count = c->sequences - first < most ? c->sequences - first : most;
        const posenc_status status =
            test_some(w, c, length, first, count, &sum, result->right + length * c->sequences, err);
        if (status)
            return status;
        if (pe_advance(progress))
            return pe_run_cancelled(&result->cancelled, err);
    }
    result->loss[length] = sum / (double)(c->sequences * pe_task_asked(c->task, length));
    return POSENC_OK;
}

static posenc_status test(work *w, const pe_task_config *c, pe_run_progress *progress, pe_task_result *result,
                          posenc_error *err)
{
    const double  start  = pe_clock();
    posenc_status status = POSENC_OK;
    for (int i = 0; i <= c->longest && !status; i++)
        if (pe_task_size(c->task, i))
            status = test_length(w, c, i, progress, result, err);
    result->eval_seconds = pe_clock() - start;
    return status;
}

/* ---------------------------------------------------------------- all ----------------------- */

static posenc_status check(const pe_task_config *c, posenc_error *err)
{
    if (c->descent.steps < 1 || c->batch < 1 || c->sequences < 1)
        return pe_train_fail(err, POSENC_ARGUMENT,
                             "task %s: steps is %lld, batch %lld, sequences %lld; all must be at least 1",
                             c->task->name, (long long)c->descent.steps, (long long)c->batch,
                             (long long)c->sequences);
    if (c->longest < PE_TASK_L || c->longest >= PE_TASK_LENGTHS)
        return pe_train_fail(err, POSENC_ARGUMENT, "task %s: longest is %d; it must be %d to %d",
                             c->task->name, c->longest, PE_TASK_L, PE_TASK_LENGTHS - 1);
    return POSENC_OK;
}

posenc_status pe_task_result_create(pe_task_result *result, const pe_task_config *c, posenc_error *err)
{
    *result = (pe_task_result){.lowest_loss = INFINITY, .last_loss = NAN};
    for (int i = 0; i < PE_TASK_LENGTHS; i++)
        result->loss[i] = NAN;
    result->right = calloc((size_t)(PE_TASK_LENGTHS * c->sequences), sizeof *result->right);
    return result->right
               ? POSENC_OK
               : pe_train_fail(err, POSENC_MEMORY, "task %s: no memory for the answers of %lld sequences",
                               c->task->name, (long long)c->sequences);
}

void pe_task_list(pe_run_file *k, const pe_task_config *c, pe_task_result *r)
{
    pe_run_file_list(k, "diverged", &r->diverged, POSENC_U8, 1, 0);
    pe_run_file_list(k, "right", r->right, POSENC_I64, PE_TASK_LENGTHS, c->sequences);
    pe_run_file_list(k, "loss", r->loss, POSENC_F64, PE_TASK_LENGTHS, 0);
    pe_run_file_list(k, "lowest_loss", &r->lowest_loss, POSENC_F64, 1, 0);
    pe_run_file_list(k, "last_loss", &r->last_loss, POSENC_F64, 1, 0);
    pe_run_file_list(k, "parameters", &r->parameters, POSENC_I64, 1, 0);
    pe_run_file_list(k, "encoding_parameters", &r->encoding_parameters, POSENC_I64, 1, 0);
    pe_run_file_list(k, "time.train_seconds", &r->train_seconds, POSENC_F64, 1, 0);
    pe_run_file_list(k, "time.eval_seconds", &r->eval_seconds, POSENC_F64, 1, 0);
    pe_run_file_list(k, "time.instructions", r->instructions, POSENC_U8, PE_ISA, 0);
}

posenc_status pe_task_run(const pe_task_config *config, pe_run_progress *progress, pe_task_result *result,
                          posenc_error *err)
{
    pe_run_progress nobody = {0};
    work            w      = {0};
    *result                = (pe_task_result){0};
    posenc_status status   = check(config, err);
    if (!status)
        status = work_create(&w, config, err);
    if (!status)
        status = pe_task_result_create(result, config, err);
    if (!status) {
        result->parameters          = pe_model_parameters(w.model);
        result->encoding_parameters = pe_model_encoding_parameters(w.model);
        snprintf(result->instructions, sizeof result->instructions, "%s", posenc_isa());
    }
    if (!status)
        status = train(&w, config, progress ? progress : &nobody, result, err);
    if (!status && !result->diverged)
        status = test(&w, config, progress ? progress : &nobody, result, err);
    work_free(&w);
    return status;
}

void pe_task_result_free(pe_task_result *result)
{
    if (!result)
        return;
    free(result->right);
    *result = (pe_task_result){0};
}

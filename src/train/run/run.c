/* SPDX-License-Identifier: MIT */
/*
 * run.c: one training run, from checks to numbers
 *
 * Check, train `steps` batches of L, read held-out windows of 8 L (run_evaluate.c), measure the trained model
 * (trained.c), do with it what else is wanted (the sequel). The order stands at the end. Each stage goes on
 * from where the marks of the state say that an earlier start has come, and returns OK at once if there is
 * nothing left to do.
 *
 * Nothing here depends on the clock, on other runs or on the number of workers: the library is told to use
 * the calling thread alone, random numbers are named and not drawn in order, and sums have a fixed order. The
 * clock is only read, for the throughput, which is taken from step 100 on: the first steps warm caches and
 * clocks.
 *
 * A loss or a gradient that is not finite is written down and ends the run with `diverged` and status OK:
 * that is a finding about the encoding, not an error of the caller.
 *
 * A run that has a place for checkpoints keeps its whole state there: parameters, the optimiser's moments,
 * how far it is, what was measured. Everything else is named by the step, so the run that goes on from there
 * has the same bits.
 */
#include "train/model/optimiser.h"
#include "train/fail.h"
#include "train/run/run_parts.h"
#include "train/run/run.h"
#include "train/run/trained.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM_STEPS = 100 };

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_numbers(const pe_run_config *c, posenc_error *err)
{
    const struct {
        const char *name;
        double      value, low, high;
    } rows[] = {{"L", (double)c->L, 1, 1e6},
                {"steps", (double)c->steps, 1, 1e9},
                {"warmup", (double)c->warmup, 0, 1e9},
                {"windows", (double)c->windows, 1, 1e9},
                {"bidirectional", (double)c->bidirectional, 0, 1},
                {"learning_rate", c->learning_rate, 0, 1e3},
                {"weight_decay", c->weight_decay, 0, 1e3},
                {"clip", c->clip, 0, 1e9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= rows[i].low && rows[i].value <= rows[i].high))
            return pe_train_fail(err, POSENC_ARGUMENT, "run: %s is %g; it must be %g to %g", rows[i].name,
                                 rows[i].value, rows[i].low, rows[i].high);
    return POSENC_OK;
}

static posenc_status check_text(const pe_run_config *c, posenc_error *err)
{
    const pe_text *t = c->text;
    if (!t || !t->bytes || t->train_size < 0 || t->train_size > t->size)
        return pe_train_fail(err, POSENC_ARGUMENT, "run: text has no bytes, or its training part exceeds it");
    if (t->train_size <= c->L)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "run: the training part of the text has %lld bytes; training at length %lld needs at "
            "least %lld: give a longer text",
            (long long)t->train_size, (long long)c->L, (long long)c->L + 1);
    const int64_t windows = pe_text_windows(t, c->L);
    if (windows < c->windows)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "run: the held-out part of the text has %lld bytes; %lld window(s) of %lld predictions "
            "need %lld: give a longer text",
            (long long)(t->size - t->train_size), (long long)c->windows, (long long)(PE_REACH * c->L),
            (long long)(c->windows * PE_REACH * c->L + 1));
    return POSENC_OK;
}

/* Numbers within bounds, and a text that is long enough on both of its sides: one window of L to train on,
   and all windows of 8 L that are held out. What a model can be made of is model.c's to refuse. */
static posenc_status check(const pe_run_config *c, posenc_error *err)
{
    if (c->task)
        return pe_task_check(c, err);
    const posenc_status status = check_numbers(c, err);
    return status ? status : check_text(c, err);
}

/* ---------------------------------------------------------------- memory -------------------- */

pe_model_config pe_run_model_config(const pe_run_config *c)
{
    const pe_task  *task = c->task;
    pe_model_config m    = {.spec    = c->spec,
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
    if (task) {
        m.L             = pe_task_trained_tokens(task);
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
    const int64_t tokens = pe_model_tokens(w->model), held_out = c->windows * PE_REACH * c->L;
    w->windows = malloc((size_t)pe_model_rows(w->model) * sizeof *w->windows);
    w->losses  = malloc((size_t)tokens * sizeof *w->losses);
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

/* Model, optimiser and buffers. w is zeros before, and is freed whatever the status. */
static posenc_status state_create(pe_run_state *w, const pe_run_config *c, posenc_error *err)
{
    const pe_model_config config = pe_run_model_config(c);
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

static void state_free(pe_run_state *w)
{
    pe_model_free(w->model);
    pe_optimiser_free(w->optimiser);
    free(w->windows);
    free(w->losses);
    free(w->hidden);
    free(w->sums);
    free(w->counts);
    free(w->symbols);
    free(w->targets);
    free(w->identity);
}

/* ---------------------------------------------------------------- checkpoints --------------- */

/* Units of progress of the sequel, up to before its unit number `units`. */
static int64_t sequel_work(const pe_run_config *c, int64_t units)
{
    int64_t work = 0;
    for (int64_t i = 0; c->sequel && i < units; i++)
        work += c->sequel->work(c->sequel->self, i);
    return work;
}

int64_t pe_run_work(const pe_run_config *config)
{
    const int64_t units = config->sequel ? config->sequel->units : 0;
    if (config->task)
        return config->steps + pe_task_evaluation_calls(config);
    return config->steps + pe_run_evaluation_calls(config) + sequel_work(config, units);
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

/* Goes on from the checkpoint, if there is one. */
static posenc_status go_on(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c   = w->config;
    posenc_arrays        set = {0};
    w->kept                  = pe_clock();
    if (!c->checkpoint || access(c->checkpoint, F_OK))
        return POSENC_OK;
    const pe_run_file list   = list_state(w);
    posenc_status     status = posenc_arrays_read(&set, c->checkpoint, err);
    if (!status)
        status = pe_run_file_take(&list, &set, "", c->checkpoint, err);
    posenc_arrays_free(&set);
    w->result->diverged = w->marks[PE_RUN_DIVERGED] != 0;
    atomic_store(&w->progress->step,
                 w->marks[PE_RUN_STEP] + w->marks[PE_RUN_UNIT] + sequel_work(c, w->marks[PE_RUN_SEQUEL]));
    return status;
}

/* Is it time for a checkpoint, or the last moment? */
static int is_time(const pe_run_state *w, int stop)
{
    return w->config->checkpoint && (stop || pe_clock() - w->kept >= w->config->checkpoint_seconds);
}

static posenc_status keep(pe_run_state *w, posenc_error *err)
{
    const pe_run_file list = list_state(w);
    w->kept                = pe_clock();
    return pe_run_file_write(w->config->checkpoint, &list, err);
}

/* Who is told to stop has the checkpoint before this one if none can be written any more. */
posenc_status pe_run_pass(pe_run_state *w, int mark, posenc_error *err)
{
    const int stop = pe_advance(w->progress);
    w->marks[mark]++;
    w->measures[mark == PE_RUN_STEP ? PE_RUN_TRAIN_SECONDS : PE_RUN_EVAL_SECONDS] = pe_clock() - w->since;
    const posenc_status status = is_time(w, stop) ? keep(w, err) : POSENC_OK;
    return stop ? pe_run_cancelled(&w->result->cancelled, err) : status;
}

/* ---------------------------------------------------------------- training ------------------ */

static pe_batch next_batch(pe_run_state *w, int64_t step)
{
    const pe_run_config *c = w->config;
    if (c->task)
        return pe_task_next_batch(w, step);
    pe_text_batch(w->windows, c->text, c->L, c->batch, c->seed, step);
    for (int64_t r = 0; w->hidden && r < c->batch; r++)
        pe_text_hide(w->hidden + r * c->L, c->L, c->seed, "hidden", (step * c->batch + r) * c->L);
    return (pe_batch){.windows = w->windows, .hidden = w->hidden, .B = c->batch, .length = c->L};
}

/* One step; *finite = 0 if its loss or gradient was not, and then nothing was changed. */
static posenc_status train_step(pe_run_state *w, int64_t step, int *finite, posenc_error *err)
{
    const pe_run_config *c       = w->config;
    pe_run_result       *r       = w->result;
    const pe_descent     descent = {c->steps, c->warmup, c->learning_rate, c->weight_decay, c->clip};
    const pe_batch       batch   = next_batch(w, step);
    const posenc_status  status =
        pe_descent_step(w->model, w->optimiser, &batch, &descent, step, &r->last_loss, finite, err);
    if (status)
        return status;
    r->train_loss[step] = isnan(r->last_loss) ? NAN : (float)r->last_loss; /* NaN has no sign in files */
    r->lowest_loss      = fmin(r->lowest_loss, r->last_loss);
    return POSENC_OK;
}

/* Until the last step, or until it diverges. */
static posenc_status train(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c     = w->config;
    const int64_t        begin = w->marks[PE_RUN_STEP];
    double               warm  = pe_clock();
    int64_t              first = begin;
    w->since                   = warm - w->measures[PE_RUN_TRAIN_SECONDS];
    for (int64_t step = begin; step < c->steps && !w->result->diverged; step++) {
        int           finite = 1;
        posenc_status status = train_step(w, step, &finite, err);
        if (status)
            return status;
        w->result->diverged       = !finite;
        w->marks[PE_RUN_DIVERGED] = !finite;
        if (step + 1 == begin + WARM_STEPS && step + 1 < c->steps) {
            warm  = pe_clock();
            first = step + 1;
        }
        if (step + 1 == c->steps && finite)
            w->measures[PE_RUN_RATE] =
                (double)((c->steps - first) * c->batch * c->L) / fmax(pe_clock() - warm, 1e-9);
        status = pe_run_pass(w, PE_RUN_STEP, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the trained model --------- */

static posenc_status measure_trained(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c      = w->config;
    const double         since  = pe_clock();
    const posenc_status  status = c->measures && !c->bidirectional
                                      ? pe_trained_measure(w->result->trained, w->model, c, err)
                                      : POSENC_OK;
    w->measures[PE_RUN_EVAL_SECONDS] += pe_clock() - since;
    return status;
}

/* One unit of the sequel, whose units are long, so that it counts its own progress; a run that is told to
   stop writes a checkpoint first, from which it does that unit again. */
static posenc_status follow_on(pe_run_state *w, posenc_error *err)
{
    const pe_run_sequel *sequel    = w->config->sequel;
    int                 *cancelled = &w->result->cancelled;
    const posenc_status  status    = sequel->unit(sequel->self, w->config, w->model, w->marks[PE_RUN_SEQUEL],
                                                  w->progress, w->result->sequel, cancelled, err);
    w->measures[PE_RUN_EVAL_SECONDS] = pe_clock() - w->since;
    if (status && !*cancelled)
        return status;
    w->marks[PE_RUN_SEQUEL] += !status;
    const posenc_status kept = is_time(w, status != POSENC_OK) ? keep(w, err) : POSENC_OK;
    return kept ? kept : status ? pe_run_cancelled(cancelled, err) : POSENC_OK;
}

static posenc_status follow(pe_run_state *w, posenc_error *err)
{
    const pe_run_sequel *sequel = w->config->sequel;
    posenc_status        status = POSENC_OK;
    w->since                    = pe_clock() - w->measures[PE_RUN_EVAL_SECONDS];
    while (sequel && w->marks[PE_RUN_SEQUEL] < sequel->units && !status)
        status = follow_on(w, err);
    return status;
}

/* ---------------------------------------------------------------- tokens and positions ------ */

static posenc_status measure_cosine(double *cosine, const pe_run_state *w, posenc_error *err)
{
    const pe_text *text             = w->config->text;
    int64_t        counts[PE_BYTES] = {0};
    double         weight[PE_BYTES];
    for (int64_t i = 0; i < text->train_size; i++)
        counts[text->bytes[i]]++;
    for (int i = 0; i < PE_BYTES; i++)
        weight[i] = (double)counts[i] / (double)text->train_size;
    return pe_model_cosine(w->model, cosine, weight, err);
}

/* Before the first step; a run that goes on has it from its checkpoint. */
static posenc_status measure_first(pe_run_state *w, posenc_error *err)
{
    return w->marks[PE_RUN_STEP] ? POSENC_OK : measure_cosine(&w->measures[PE_RUN_COSINE], w, err);
}

static posenc_status measure_last(pe_run_state *w, posenc_error *err)
{
    return measure_cosine(&w->result->cosine_after, w, err);
}

/* ---------------------------------------------------------------- the order ----------------- */

typedef posenc_status stage(pe_run_state *w, posenc_error *err);

static stage *const on_text[] = {go_on,           measure_first,   train,  measure_last,
                                 pe_run_evaluate, measure_trained, follow, NULL};
static stage *const on_task[] = {train, pe_task_evaluate, NULL};

static void copy_measures(pe_run_result *result, const pe_run_state *w)
{
    result->parameters          = pe_model_parameters(w->model);
    result->encoding_parameters = pe_model_encoding_parameters(w->model);
    result->cosine_before       = w->measures[PE_RUN_COSINE];
    result->train_seconds       = w->measures[PE_RUN_TRAIN_SECONDS];
    result->eval_seconds        = w->measures[PE_RUN_EVAL_SECONDS];
    result->tokens_per_second   = w->measures[PE_RUN_RATE];
    snprintf(result->instructions, sizeof result->instructions, "%s", posenc_isa());
    for (int i = 0; i < result->param_count; i++)
        memcpy(result->params[i].data, w->model->params[i].data,
               (size_t)pe_elements(&result->params[i]) * sizeof(float));
}

posenc_status pe_run(const pe_run_config *config, pe_run_progress *progress, pe_run_result *result,
                     posenc_error *err)
{
    pe_run_progress nobody = {0};
    pe_run_state    w      = {.config                  = config,
                              .progress                = progress ? progress : &nobody,
                              .result                  = result,
                              .measures[PE_RUN_COSINE] = NAN};
    *result                = (pe_run_result){0};
    posenc_status status   = check(config, err);
    if (!status)
        status = state_create(&w, config, err);
    if (!status)
        status = pe_run_result_create(result, config, err);
    for (stage *const *next = config->task ? on_task : on_text; *next && !status && !result->diverged; next++)
        status = (*next)(&w, err);
    if (!status)
        copy_measures(result, &w);
    state_free(&w);
    return status;
}

posenc_status pe_run_try(const pe_run_config *config, posenc_error *err)
{
    pe_run_result result;
    pe_run_config c            = *config;
    c.steps                    = 1;
    c.batch                    = 1;
    c.windows                  = !c.task;
    c.sequences                = c.task != NULL;
    c.seed                     = 1;
    c.measures                 = 0;
    const posenc_status status = pe_run(&c, NULL, &result, err);
    pe_run_result_free(&result);
    return status;
}

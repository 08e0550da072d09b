/* SPDX-License-Identifier: MIT */
/*
 * run.c: one training run, from checks to numbers
 *
 * Check, train `steps` batches of L, read held-out windows of R L (run_evaluate.c), measure the trained model
 * (trained.c), do with it what else is wanted (the follow-up). The order stands at the end. Each stage goes
 * on from where the marks of the state say that an earlier start has come, and returns OK at once if there is
 * nothing more to do.
 *
 * Nothing here depends on the clock, on other runs or on the number of workers: the library is told to use
 * only the calling thread, random numbers are named and not drawn in order, and sums have a fixed order. The
 * clock is only read, for the throughput, which is taken from step 100 on: the first steps warm caches and
 * clocks.
 *
 * A loss or a gradient that is not finite is written down and ends the run with `diverged` and status OK:
 * that is a finding about the encoding, not an error of the caller.
 *
 * Checkpoints: run_state.c.
 */
#include "base/status.h"
#include "base/tensor.h"
#include "train/run/run_state.h"
#include "train/run/trained.h"

#include <math.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
                {"reach", (double)c->reach, 2, PE_LONGEST_REACH},
                {"windows", (double)c->windows, 1, 1e9},
                {"bidirectional", (double)c->bidirectional, 0, 1},
                {"learning_rate", c->learning_rate, 0, 1e3},
                {"weight_decay", c->weight_decay, 0, 1e3},
                {"clip", c->clip, 0, 1e9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= rows[i].low && rows[i].value <= rows[i].high))
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "run: %s is %g; it must be %g to %g", rows[i].name,
                           rows[i].value, rows[i].low, rows[i].high);
    if (c->reach & (c->reach - 1))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "run: reach is %lld; it must be a power of two",
                       (long long)c->reach);
    return POSENC_OK;
}

static posenc_status check_text(const pe_run_config *c, posenc_error *err)
{
    const pe_text *t = c->text;
    if (!t || !t->ids || t->spared < 0 || t->train_size < t->spared || t->train_size > t->size)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "run: text has no bytes, or its training part exceeds it");
    if (t->train_size - t->spared <= c->L)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "run: the training part of the text has %lld bytes; training at length %lld needs at "
                       "least %lld: give a longer text",
                       (long long)(t->train_size - t->spared), (long long)c->L, (long long)c->L + 1);
    const int64_t windows = pe_text_windows(t, c->reach * c->L);
    if (windows < c->windows)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "run: the held-out part of the text has %lld bytes; %lld window(s) of %lld "
                       "predictions need %lld: give a longer text",
                       (long long)(t->size - t->train_size), (long long)c->windows,
                       (long long)(c->reach * c->L), (long long)(c->windows * c->reach * c->L + 1));
    return POSENC_OK;
}

/* Numbers within bounds, and a text that is long enough on both of its sides: one window of L to train on,
   and all windows of R L that are held out. What a model can be made of is model.c's to refuse. */
static posenc_status check_config(const pe_run_config *c, posenc_error *err)
{
    if (c->task)
        return pe_run_task_check(c, err);
    const posenc_status status = check_numbers(c, err);
    return status ? status : check_text(c, err);
}

int64_t pe_run_work(const pe_run_config *config)
{
    const int64_t units = config->followup ? config->followup->units : 0;
    if (config->task)
        return config->steps + pe_run_task_calls(config);
    return config->steps + pe_run_evaluate_calls(config) + pe_run_score_calls(config) +
           pe_run_followup_work(config, units);
}

/* ---------------------------------------------------------------- training ------------------ */

/* Windows that do not stand in order. A model that is only tried has its last symbol at the last position. */
static pe_batch place_windows(pe_run_state *w, pe_batch batch, int64_t step)
{
    const pe_run_config *c = w->config;
    for (int64_t b = 0; w->positions && b < batch.B; b++) {
        int64_t *to = w->positions + b * batch.length;
        pe_run_positions_draw(to, &c->places, batch.length, c->seed, step * c->batch + b);
        if (c->is_rough && c->places.count > batch.length)
            to[batch.length - 1] = c->places.count - 1;
    }
    batch.positions = w->positions;
    return batch;
}

static pe_batch windows_of(pe_run_state *w, int64_t step)
{
    const pe_run_config *c = w->config;
    if (c->task)
        return pe_run_task_batch(w, step);
    pe_text_batch(w->windows, c->text, c->L, c->batch, c->seed, step);
    for (int64_t r = 0; w->hidden && r < c->batch; r++)
        pe_text_hide(w->hidden + r * c->L, c->L, c->seed, "hidden", (step * c->batch + r) * c->L);
    return (pe_batch){.windows = w->windows, .hidden = w->hidden, .B = c->batch, .length = c->L};
}

static pe_batch next_batch(pe_run_state *w, int64_t step)
{
    return place_windows(w, windows_of(w, step), step);
}

/* One step; *finite = 0 if its loss or gradient was not, and then nothing was changed. */
static posenc_status train_step(pe_run_state *w, int64_t step, int *finite, posenc_error *err)
{
    const pe_run_config *c       = w->config;
    pe_run_result       *r       = w->result;
    const pe_descent     descent = {c->steps, c->warmup, c->learning_rate, c->weight_decay, c->clip};
    const pe_batch       batch   = next_batch(w, step);
    const posenc_status  status =
        pe_optimiser_descend(w->model, w->optimiser, &batch, &descent, step, &r->last_loss, finite, err);
    if (status)
        return status;
    r->train_loss[step] = isnan(r->last_loss) ? NAN : (float)r->last_loss; /* NaN has no sign in files */
    r->lowest_loss      = fmin(r->lowest_loss, r->last_loss);
    return POSENC_OK;
}

/* Until the last step, or until it diverges. */
static posenc_status train_steps(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c     = w->config;
    const int64_t        begin = w->marks[PE_RUN_STEP];
    double               warm  = pe_run_thread_clock();
    int64_t              first = begin;
    w->stage_start             = pe_run_clock() - w->measures[PE_RUN_TRAIN_SECONDS];
    for (int64_t step = begin; step < c->steps && !w->result->diverged; step++) {
        int           finite = 1;
        posenc_status status = train_step(w, step, &finite, err);
        if (status)
            return status;
        w->result->diverged       = !finite;
        w->marks[PE_RUN_DIVERGED] = !finite;
        if (step + 1 == begin + WARM_STEPS && step + 1 < c->steps) {
            warm  = pe_run_thread_clock();
            first = step + 1;
        }
        if (step + 1 == c->steps && finite)
            w->measures[PE_RUN_RATE] =
                (double)((c->steps - first) * c->batch * c->L) / fmax(pe_run_thread_clock() - warm, 1e-9);
        status = pe_run_unit_done(w, PE_RUN_STEP, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the trained model --------- */

static posenc_status measure_trained(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c      = w->config;
    const double         since  = pe_run_clock();
    const posenc_status  status = c->measures && !c->bidirectional
                                      ? pe_trained_measure(w->result->trained, w->model, c, err)
                                      : POSENC_OK;
    w->measures[PE_RUN_EVAL_SECONDS] += pe_run_clock() - since;
    return status;
}

/* One unit of the follow-up, whose units are long, so that it counts its own progress; a run that is told to
   stop writes a checkpoint first, from which it does that unit again. */
static posenc_status do_followup_unit(pe_run_state *w, posenc_error *err)
{
    const pe_run_followup *followup  = w->config->followup;
    int                   *cancelled = &w->result->cancelled;
    const posenc_status    status =
        followup->unit(followup->self, w->config, w->model, w->marks[PE_RUN_FOLLOWUP], w->progress,
                       w->result->followup, cancelled, err);
    w->measures[PE_RUN_EVAL_SECONDS] = pe_run_clock() - w->stage_start;
    if (status && !*cancelled)
        return status;
    w->marks[PE_RUN_FOLLOWUP] += !status;
    const posenc_status saved = pe_run_save(w, status != POSENC_OK, err);
    return saved ? saved : status ? pe_run_cancelled(cancelled, err) : POSENC_OK;
}

static posenc_status do_followup(pe_run_state *w, posenc_error *err)
{
    const pe_run_followup *followup = w->config->followup;
    posenc_status          status   = POSENC_OK;
    w->stage_start                  = pe_run_clock() - w->measures[PE_RUN_EVAL_SECONDS];
    while (followup && w->marks[PE_RUN_FOLLOWUP] < followup->units && !status)
        status = do_followup_unit(w, err);
    return status;
}

/* ---------------------------------------------------------------- tokens and positions ------ */

static posenc_status measure_cosine(double *cosine, const pe_run_state *w, posenc_error *err)
{
    const pe_text *text   = w->config->text;
    double        *weight = calloc((size_t)w->model->classes, sizeof *weight);
    if (!weight)
        return pe_model_no_memory(err);
    for (int64_t i = 0; i < text->train_size; i++)
        weight[text->ids[i]]++;
    for (int64_t i = 0; i < w->model->classes; i++)
        weight[i] /= (double)text->train_size;
    const posenc_status status = pe_model_cosine(w->model, cosine, weight, err);
    free(weight);
    return status;
}

/* Before the first step; a run that resumes has it from its checkpoint. */
static posenc_status measure_first(pe_run_state *w, posenc_error *err)
{
    return w->marks[PE_RUN_STEP] ? POSENC_OK : measure_cosine(&w->measures[PE_RUN_COSINE], w, err);
}

/* Marks say where to go on: a file may hold any. */
static posenc_status take_marks(pe_run_state *w, posenc_error *err)
{
    const pe_run_config *c                  = w->config;
    const int64_t        most[PE_RUN_MARKS] = {[PE_RUN_STEP]     = c->steps,
                                               [PE_RUN_UNIT]     = pe_run_evaluate_calls(c),
                                               [PE_RUN_DIVERGED] = 1,
                                               [PE_RUN_FOLLOWUP] = c->followup ? c->followup->units : 0,
                                               [PE_RUN_SCORED]   = pe_run_score_calls(c)};
    for (int i = 0; i < PE_RUN_MARKS; i++)
        if (w->marks[i] < 0 || w->marks[i] > most[i])
            return pe_fail(err, POSENC_ERROR_FORMAT,
                           "%.150s: \"marks\" says that %lld of %lld parts are done; remove it",
                           c->checkpoint, (long long)w->marks[i], (long long)most[i]);
    w->result->diverged = w->marks[PE_RUN_DIVERGED] != 0;
    atomic_store(&w->progress->step, w->marks[PE_RUN_STEP] + w->marks[PE_RUN_UNIT] + w->marks[PE_RUN_SCORED] +
                                         pe_run_followup_work(c, w->marks[PE_RUN_FOLLOWUP]));
    return POSENC_OK;
}

static posenc_status measure_last(pe_run_state *w, posenc_error *err)
{
    return measure_cosine(&w->result->cosine_after, w, err);
}

/* ---------------------------------------------------------------- the order ----------------- */

typedef posenc_status stage(pe_run_state *w, posenc_error *err);

static stage *const on_text[] = {pe_run_resume,   take_marks,   measure_first,   train_steps, measure_last,
                                 pe_run_evaluate, pe_run_score, measure_trained, do_followup, NULL};
static stage *const on_task[] = {train_steps, pe_run_task_evaluate, NULL};

static void copy_measures(pe_run_result *result, const pe_run_state *w)
{
    result->parameters          = pe_model_parameters(w->model);
    result->encoding_parameters = pe_model_encoding_parameters(w->model);
    result->cosine_before       = w->measures[PE_RUN_COSINE];
    result->train_seconds       = w->measures[PE_RUN_TRAIN_SECONDS];
    result->eval_seconds        = w->measures[PE_RUN_EVAL_SECONDS];
    result->tokens_per_second   = w->measures[PE_RUN_RATE];
    snprintf(result->instructions, sizeof result->instructions, "%s", posenc_isa());
    pe_run_result_take_params(result, w->config, w->model->params);
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
    posenc_status status   = check_config(config, err);
    if (!status)
        status = pe_run_state_create(&w, config, err);
    if (!status)
        status = pe_run_result_create(result, config, err);
    for (stage *const *next = config->task ? on_task : on_text; *next && !status && !result->diverged; next++)
        status = (*next)(&w, err);
    if (!status)
        copy_measures(result, &w);
    pe_run_state_free(&w);
    return status;
}

posenc_status pe_run_try(const pe_run_config *config, posenc_error *err)
{
    pe_run_result result;
    pe_run_config c = *config;
    c.steps         = 1;
    c.batch         = 1;
    c.learning_rate = 0; /* what matters is whether it runs */
    c.layers        = c.entry.inject == PE_IN_BLOCKS || pe_spec_is_layered(c.spec) ? c.layers : 1; /* alike */
    c.windows       = !c.task;
    c.sequences     = c.task != NULL;
    c.seed          = 1;
    c.measures      = 0;
    c.is_rough      = 1;
    const posenc_status status = pe_run(&c, NULL, &result, err);
    pe_run_result_free(&result);
    return status;
}

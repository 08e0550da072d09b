/* SPDX-License-Identifier: MIT */
/* trial.c: which learning rate each encoding is compared at. Contract: trial.h. */
#include "train/jobs/trial.h"

#include "base/status.h"
#include "train/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The spared bytes: a twentieth of the training part, but no more than so many windows. */
enum { SPARED_PART = 20, MOST_WINDOWS = 512 };
#define USUAL_SHARE 0.25

/* ---------------------------------------------------------------- reading a model ----------- */

/* Window w: L + 1 bytes; neighbours share one, the last target of one and the first input of the next. */
static const uint16_t *window_at(const pe_run_config *c, int64_t w)
{
    return c->text->ids + c->text->train_size - c->text->spared + w * c->L;
}

static int64_t calls_of(const void *self, int64_t unit)
{
    (void)unit;
    return ((const pe_trial_plan *)self)->windows;
}

/* A window is read forwards, which is a third of training with it. */
static double steps_of(const void *self, int64_t unit)
{
    const pe_trial_plan *p = self;
    (void)unit;
    return (double)p->windows / (3 * (double)p->batch);
}

/* Mean over the bytes of one window that count: [L/2, L), of a bidirectional model those that are hidden. */
static double mean_of(const double *losses, const unsigned char *hidden, int64_t L)
{
    double  sum = 0;
    int64_t n   = 0;
    for (int64_t p = 0; p < L; p++)
        if (hidden ? hidden[p] : p >= L / 2) {
            sum += losses[p];
            n++;
        }
    return sum / (double)n;
}

static posenc_status read_window(float *mean, pe_model *m, const pe_run_config *c, int64_t w, double *losses,
                                 posenc_error *err)
{
    unsigned char  *hidden = c->bidirectional ? (unsigned char *)(losses + c->L) : NULL;
    const uint16_t *window = window_at(c, w);
    const pe_batch  batch  = {.windows = &window, .hidden = hidden, .B = 1, .length = c->L};
    if (hidden)
        pe_text_hide(hidden, c->L, 0, "hidden.rates", w * c->L); /* for every seed and rate the same */
    const posenc_status status = pe_model_losses(m, losses, &batch, err);
    if (!status)
        *mean = (float)mean_of(losses, hidden, c->L);
    return status;
}

static posenc_status read_all(const void *self, const pe_run_config *config, pe_model *trained, int64_t unit,
                              pe_run_progress *progress, float *numbers, int *cancelled, posenc_error *err)
{
    const pe_trial_plan *plan   = self;
    double              *losses = malloc((size_t)config->L * (sizeof *losses + 1)); /* and what is hidden */
    posenc_status        status =
        losses ? POSENC_OK : pe_fail(err, POSENC_ERROR_MEMORY, "trial: not enough memory for the losses");
    (void)unit;
    for (int64_t w = 0; w < plan->windows && !status; w++) {
        status = read_window(&numbers[w], trained, config, w, losses, err);
        if (!status && pe_run_advance(progress))
            status = pe_run_cancelled(cancelled, err);
    }
    free(losses);
    return status;
}

static pe_run_followup followup_of(pe_trial_plan *plan)
{
    snprintf(plan->name, sizeof plan->name, "trial, %lld windows", (long long)plan->windows);
    return (pe_run_followup){.name  = plan->name,
                             .self  = plan,
                             .units = 1,
                             .count = plan->windows,
                             .work  = calls_of,
                             .unit  = read_all,
                             .steps = steps_of};
}

/* ---------------------------------------------------------------- the trials ---------------- */

int64_t pe_trial_steps(int64_t steps, double share)
{
    const int64_t n = (int64_t)llround((double)steps * share);
    return n > 1 ? n : 1;
}

double pe_trial_rate(double rate, int64_t steps, int64_t all)
{
    return rate * sqrt((double)all / (double)steps);
}

int64_t pe_trial_runs(const pe_trials *t)
{
    return t && t->outcomes ? (int64_t)t->encodings * t->rate_count : 0;
}

pe_outcome *pe_trial_at(const pe_trials *t, int i, int r)
{
    return &t->outcomes[i * t->rate_count + r];
}

static posenc_status trial_create(pe_trials *t, const pe_compare *c, int i, int r, posenc_error *err)
{
    pe_outcome *o = pe_trial_at(t, i, r);
    snprintf(o->label, sizeof o->label, "%.*s, rate %g", PE_LONGEST_SPEC - 32, c->outcomes[i].label,
             t->rates[r]);
    o->config               = c->outcomes[i].config;
    o->config.steps         = pe_trial_steps(o->config.steps, t->share);
    o->config.learning_rate = pe_trial_rate(t->rates[r], o->config.steps, c->outcomes[i].config.steps);
    o->config.measures      = 0;
    o->config.followup      = &t->followup;
    o->runs                 = calloc(1, sizeof *o->runs);
    return o->runs ? POSENC_OK
                   : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", o->label);
}

/* The end of the training part is spared. */
static posenc_status spare_bytes(pe_trials *t, pe_compare *c, posenc_error *err)
{
    const int64_t L = c->config.preset.L, part = c->text.train_size / SPARED_PART, fit = (part - 1) / L;
    t->plan.windows = fit < MOST_WINDOWS ? fit : MOST_WINDOWS;
    t->plan.batch   = c->config.preset.batch;
    c->text.spared  = t->plan.windows * L + 1;
    t->followup     = followup_of(&t->plan);
    if (t->plan.windows < 1)
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "rates: the text is too short to choose a learning rate on a part of it; give one rate");
    return POSENC_OK;
}

static posenc_status make_trials(pe_trials *t, pe_compare *c, posenc_error *err)
{
    posenc_status status = spare_bytes(t, c, err);
    t->outcomes          = calloc((size_t)(t->encodings * t->rate_count), sizeof *t->outcomes);
    if (!status && !t->outcomes)
        status = pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the trials");
    for (int i = 0; i < t->encodings * t->rate_count && !status; i++)
        status = trial_create(t, c, i / t->rate_count, i % t->rate_count, err);
    return status;
}

posenc_status pe_trial_list_create(pe_compare *c, posenc_error *err)
{
    const pe_preset *p = &c->config.preset;
    pe_trials       *t = c->trials = calloc(1, sizeof *t);
    if (t)
        t->chosen = calloc((size_t)c->count, sizeof *t->chosen);
    if (!t || !t->chosen)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the trials");
    t->encodings  = c->count;
    t->rates[0]   = p->learning_rate;
    t->rate_count = 1;
    t->share      = p->rate_share > 0 ? p->rate_share : USUAL_SHARE;
    if (t->share > 1)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "compare: the share of a trial is %g; it must be 0 to 1",
                       t->share);
    const posenc_status status =
        p->rates ? pe_preset_read_rates(t->rates, &t->rate_count, p->rates, err) : POSENC_OK;
    if (status || t->rate_count == 1)
        return status;
    for (int i = 0; i < c->count; i++)
        t->chosen[i] = -1;
    return make_trials(t, c, err);
}

void pe_trial_list_free(pe_trials *t)
{
    if (!t)
        return;
    for (int64_t i = 0; i < pe_trial_runs(t); i++)
        pe_outcome_free(&t->outcomes[i], 1);
    free(t->outcomes);
    free(t->chosen);
    free(t);
}

/* ---------------------------------------------------------------- the choice ---------------- */

double pe_trial_loss(const pe_trials *t, int i, int r)
{
    const pe_run_slot *run = pe_trial_at(t, i, r)->runs;
    double             sum = 0;
    if (!pe_run_all_ended(run, 1) || run->result.diverged)
        return NAN;
    for (int64_t w = 0; w < t->plan.windows; w++)
        sum += (double)run->result.followup[w];
    return sum / (double)t->plan.windows;
}

int pe_trial_all_ended(const pe_trials *t)
{
    for (int64_t i = 0; i < pe_trial_runs(t); i++)
        if (!pe_run_all_ended(t->outcomes[i].runs, 1))
            return 0;
    return 1;
}

void pe_trial_choose(pe_trials *t)
{
    for (int i = 0; i < t->encodings && t->outcomes; i++) {
        double best  = INFINITY;
        t->chosen[i] = 0;
        for (int r = 0; r < t->rate_count; r++)
            if (pe_trial_loss(t, i, r) < best) {
                best         = pe_trial_loss(t, i, r);
                t->chosen[i] = r;
            }
    }
}

int pe_trial_edge(const pe_trials *t, int i)
{
    if (!t->outcomes || t->chosen[i] < 0)
        return 0;
    return t->chosen[i] == 0 ? -1 : t->chosen[i] == t->rate_count - 1;
}

void pe_trial_write_rates(char text[PE_RATES_TEXT], const pe_trials *t)
{
    text[0] = 0;
    for (int r = 0; r < t->rate_count && t->outcomes; r++)
        snprintf(text + strlen(text), PE_RATES_TEXT - strlen(text), "%s%g", r ? ", " : "", t->rates[r]);
}

/* SPDX-License-Identifier: MIT */
/*
 * compare_train.c: the runs of a comparison on workers, and on other processes
 *
 * A job is one encoding with one seed; workers take whole jobs, each single-threaded, so the results do not
 * depend on how many there are.
 *
 * Where learning rates are to be chosen (trial.h) there are two phases: the trials, and when all have ended,
 * everything else.
 *
 * A finished run is saved at once, and one under way now and then (store.c). Several processes share the runs
 * by messages (pool.c): each trains with its own workers, process 0 saves and measures.
 *
 * An interruption cancels the runs that are under way and keeps what is finished; an encoding counts when all
 * its seeds are. A run that fails (no memory) stops all the others: a table with a hole that nobody asked for
 * would be read as a finding.
 */
#include "train/compare.h"

#include "base/status.h"
#include "train/jobs/job.h"
#include "train/jobs/level.h"
#include "train/jobs/pool.h"
#include "train/jobs/store.h"
#include "train/judge/judge.h"
#include "train/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct training {
    pe_compare             *c;
    const pe_compare_watch *watch;
    posenc_error           *errors;   /* [jobs] */
    int                    *reported; /* [jobs] */
    int64_t                 next;     /* process 0: the job to take, if it has not ended */
    int64_t                 end;      /* of the jobs of this phase */
    double start, told, before;       /* clock; when progress was told; the fraction done at the start */
    int    finished;                  /* runs: those saved before, and those that were reported */
    int    interrupted, failed;       /* a job's number + 1 */
} training;

static void run_job(void *self, int64_t job)
{
    training     *t             = self;
    pe_job        j             = pe_job_at(t->c, job);
    char         *path          = t->c->store ? pe_store_file(t->c, job) : NULL;
    posenc_status status        = POSENC_OK;
    j.config.checkpoint         = j.cell ? NULL : path; /* a run on a task is short */
    j.config.checkpoint_seconds = t->c->config.checkpoint_seconds;
    if (t->c->store && !path)
        status = pe_fail(&t->errors[job], POSENC_ERROR_MEMORY,
                         "compare: not enough memory for a run of %.60s", j.label);
    else
        status = pe_run(&j.config, j.progress, j.result, &t->errors[job]);
    free(path);
    atomic_store(j.ended, 1 + (int)status);
}

/* Process 0: the next job that no worker has taken. */
static int64_t next_job(void *self)
{
    training *t = self;
    while (t->next < t->end && atomic_load(pe_job_at(t->c, t->next).ended))
        t->next++;
    return t->next < t->end ? t->next++ : -1;
}

static pe_compare_state state_of(const training *t)
{
    pe_compare_state state = {.runs      = (int)pe_job_count(t->c),
                              .finished  = t->finished,
                              .seconds   = pe_run_clock() - t->start,
                              .remaining = NAN};
    double           done = 0, all = 0;
    for (int64_t job = 0; job < state.runs; job++) {
        const pe_job          j     = pe_job_at(t->c, job);
        const pe_model_config m     = pe_run_model_config(&j.config);
        const double          total = (double)pe_run_work(&j.config),
                     unit           = /* the cost of one unit of progress */
                     pe_model_cost(m.d_model, m.layers, pe_model_classes(&m), m.batch * m.L);
        const int ended = atomic_load(j.ended) != 0;
        done += unit * (ended ? total : fmin((double)atomic_load(&j.progress->step), total));
        all += unit * total;
    }
    state.fraction = done / all;
    if (state.fraction > t->before)
        state.remaining = state.seconds * (1 - state.fraction) / (state.fraction - t->before);
    return state;
}

/* Mean of one run over a bucket. */
static double run_loss(const pe_job *j, int bucket)
{
    double sum = 0;
    for (int64_t w = 0; w < j->config.windows; w++)
        sum += pe_losses_of_window(j->result, &j->config, bucket, w);
    return sum / (double)j->config.windows;
}

/* A trial's is that on the windows that decide. */
static double loss_at_L(const training *t, int64_t job, const pe_job *j)
{
    const pe_trials *trials = t->c->trials;
    return job < pe_trial_runs(trials)
               ? pe_trial_loss(trials, (int)(job / trials->rate_count), (int)(job % trials->rate_count))
               : run_loss(j, PE_AT_L);
}

/* Counted here and not where runs end: two that end between two looks are reported as two numbers. */
static void report_finished(training *t, int64_t job, const pe_job *j)
{
    const pe_cell       *cell = j->cell;
    const int            far  = pe_stats_furthest(j->config.reach);
    const pe_compare_run row  = {.label          = j->label,
                                 .task           = cell ? cell->task->name : NULL,
                                 .seed           = j->seed + 1,
                                 .loss_at_L      = cell ? NAN : loss_at_L(t, job, j),
                                 .loss_beyond    = cell ? NAN : run_loss(j, far),
                                 .accuracy_at_L  = cell ? pe_rates_accuracy(cell, j->seed, PE_TASK_L) : NAN,
                                 .accuracy_at_2L = cell ? pe_rates_accuracy(cell, j->seed, PE_TASK_2) : NAN,
                                 .seconds        = j->result->train_seconds + j->result->eval_seconds,
                                 .diverged       = j->result->diverged};
    t->finished++;
    const pe_compare_state state = state_of(t);
    if (t->watch && t->watch->finished)
        t->watch->finished(t->watch->self, &row, &state);
}

/* A job has failed: everything is stopped, and this is why. */
static void fail_with(training *t, int64_t job, const posenc_error *why)
{
    if (t->failed)
        return;
    t->errors[job] = *why;
    t->failed      = (int)job + 1;
    if (pe_ranks_here())
        pe_pool_tell(PE_MESSAGE_FAILED, job, why, sizeof *why);
}

/* A finished run is saved, or sent to the process that saves. */
static void deliver(training *t, int64_t job)
{
    posenc_error  err;
    size_t        n;
    posenc_status status = POSENC_OK;
    const pe_job  j      = pe_job_at(t->c, job);
    char         *bytes  = pe_ranks_here() ? pe_job_pack(&j, &n) : NULL;
    if (bytes)
        pe_pool_tell(PE_MESSAGE_FINISHED, job, bytes, n);
    else if (pe_ranks_here())
        status = pe_fail(&err, POSENC_ERROR_MEMORY, "compare: not enough memory to send a run");
    else if (t->c->store)
        status = pe_store_save(t->c, job, &err);
    free(bytes);
    if (status)
        fail_with(t, job, &err);
    else
        report_finished(t, job, &j);
}

/* Looks for runs that have ended since the last time. */
static void look_for_ended(training *t)
{
    for (int64_t job = 0; job < pe_job_count(t->c); job++) {
        const pe_job j     = pe_job_at(t->c, job);
        const int    ended = atomic_load(j.ended);
        if (!ended || t->reported[job])
            continue;
        t->reported[job] = 1;
        if (ended == 1 + POSENC_OK)
            deliver(t, job);
        else if (!j.result->cancelled)
            fail_with(t, job, &t->errors[job]);
    }
}

/* Once a second, how far the runs of this process are. */
static void tell_progress(training *t)
{
    if (!pe_ranks_here() || pe_run_clock() - t->told < 1)
        return;
    t->told = pe_run_clock();
    for (int64_t job = 0; job < pe_job_count(t->c); job++) {
        const pe_job  j    = pe_job_at(t->c, job);
        const int64_t step = atomic_load(&j.progress->step);
        if (step && !atomic_load(j.ended))
            pe_pool_tell(PE_MESSAGE_STEP, job, &step, sizeof step);
    }
}

static int watch_jobs(void *self)
{
    training *t = self;
    look_for_ended(t);
    tell_progress(t);
    const pe_compare_state state = state_of(t);
    if (t->watch && t->watch->interrupted && state.finished < state.runs &&
        t->watch->interrupted(t->watch->self))
        t->interrupted = 1;
    if (t->watch && t->watch->progress)
        t->watch->progress(t->watch->self, &state);
    const int stop = t->interrupted || t->failed;
    for (int64_t job = 0; stop && job < state.runs; job++)
        atomic_store(&pe_job_at(t->c, job).progress->cancel, 1);
    return stop;
}

/* ---------------------------------------------------------------- other processes ----------- */

static void receive_message(void *self, pe_message message, int64_t job, const void *data, size_t n)
{
    training    *t = self;
    posenc_error err;
    int64_t      step;
    if (job < 0 || job >= pe_job_count(t->c))
        return;
    const pe_job j = pe_job_at(t->c, job);
    if (message == PE_MESSAGE_STEP && n == sizeof step) {
        memcpy(&step, data, sizeof step);
        atomic_store(&j.progress->step, step);
    } else if (message == PE_MESSAGE_FAILED && n == sizeof err) {
        memcpy(&err, data, sizeof err);
        fail_with(t, job, &err);
    } else if (message == PE_MESSAGE_FINISHED && !atomic_load(j.ended) && pe_job_unpack(&j, data, n, &err))
        fail_with(t, job, &err);
}

static void stop_all(void *self)
{
    training *t    = self;
    t->interrupted = 1;
}

/* Did every run end, unless somebody stopped them? */
static posenc_status check_all_ended(const training *t, posenc_error *err)
{
    for (int64_t job = 0; !t->interrupted && job < t->end; job++)
        if (!atomic_load(pe_job_at(t->c, job).ended))
            return pe_fail(err, POSENC_ERROR_FILE,
                           "compare: a process ended before its run did; start again with --resume: what was "
                           "saved before is still there");
    return POSENC_OK;
}

static posenc_status measure_all(pe_compare *c, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < c->count && !status; i++)
        status = pe_losses_measure(&c->outcomes[i], c->config.preset.seeds, err);
    if (!status)
        status = pe_losses_rank(c, err);
    if (!status)
        status = pe_rates_measure(c->suite, err);
    if (!status)
        status = pe_losses_measure_extension(c->extension, err);
    if (!status)
        status = pe_claims_measure(c, err);
    if (!status)
        status = pe_stability_measure(c, err);
    if (!status)
        pe_settled_write_notes(c);
    return status;
}

/* The jobs up to before `end`. */
static posenc_status train_phase(training *t, int64_t end, posenc_error *err)
{
    const pe_pool_calls calls = {t, run_job, next_job, watch_jobs, receive_message, stop_all};
    t->end                    = end;
    posenc_status status      = pe_pool_run(&calls, (int)t->c->workers, err);
    if (!status && t->failed) {
        status = t->errors[t->failed - 1].status;
        if (err)
            *err = t->errors[t->failed - 1];
    }
    return status || pe_ranks_here() ? status : check_all_ended(t, err);
}

/* Those that ended before, in an earlier start. */
static void count_ended(training *t)
{
    for (int64_t job = 0; job < pe_job_count(t->c); job++)
        if (!t->reported[job] && atomic_load(pe_job_at(t->c, job).ended)) {
            t->reported[job] = 1;
            t->finished++;
        }
}

/* All processes come here: the rates that process 0 has chosen become everybody's, and what an earlier start
   has done with them is taken over. */
static posenc_status choose_rates(training *t, posenc_error *err)
{
    pe_compare   *c      = t->c;
    posenc_status status = POSENC_OK;
    if (pe_ranks_here() == 0)
        pe_job_choose_rates(c);
    pe_ranks_share(c->trials->chosen, (size_t)c->count * sizeof *c->trials->chosen);
    pe_job_set_rates(c, 0);
    if (pe_ranks_here() == 0)
        status = pe_store_take(c, err);
    count_ended(t);
    return pe_ranks_agree(status, err);
}

static posenc_status train_all(training *t, posenc_error *err)
{
    const int64_t trials = pe_trial_runs(t->c->trials);
    posenc_status status = POSENC_OK;
    int           stop   = 0;
    if (trials) {
        status = pe_ranks_agree(train_phase(t, trials, err), err);
        stop   = t->interrupted;
        pe_ranks_share(&stop, sizeof stop);
    }
    if (trials && !status && !stop)
        status = choose_rates(t, err);
    return status || stop ? status : train_phase(t, pe_job_count(t->c), err);
}

static posenc_status training_create(training *t, posenc_error *err)
{
    const size_t jobs = (size_t)pe_job_count(t->c);
    t->errors         = calloc(jobs, sizeof *t->errors);
    t->reported       = calloc(jobs, sizeof *t->reported);
    if (!t->errors || !t->reported)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %zu runs", jobs);
    count_ended(t);
    t->before = state_of(t).fraction;
    return t->c->store ? pe_store_open(t->c, err) : POSENC_OK;
}

posenc_status pe_compare_train(pe_compare *compare, const pe_compare_watch *watcher, int *interrupted,
                               posenc_error *err)
{
    training      t      = {.c = compare, .watch = watcher, .start = pe_run_clock()};
    posenc_status status = pe_ranks_agree(training_create(&t, err), err);
    if (!status)
        status = train_all(&t, err);
    compare->wall_seconds = pe_run_clock() - t.start;
    compare->runs         = (int)pe_job_count(compare);
    compare->missing      = t.interrupted ? compare->runs - t.finished : 0;
    *interrupted          = t.interrupted;
    if (!status && pe_ranks_here() == 0)
        status = measure_all(compare, err);
    free(t.errors);
    free(t.reported);
    return status;
}

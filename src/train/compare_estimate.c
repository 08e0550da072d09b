/* SPDX-License-Identifier: MIT */
/*
 * compare_estimate.c: how long a comparison will take, measured here in about three seconds
 *
 * There are hundreds of pairs of an encoding and a task, and a step of a large model takes seconds. So not
 * every pair is timed, but every encoding on the text, and every task with one encoding. Of the others it is
 * taken that what makes an encoding slow on the text makes it as slow on a task:
 *
 *     time(encoding, task) = time(first, task) time(encoding, text) / time(first, text)
 *
 * Each gets the same share of the time. A step is timed with as many windows as fit into that share, and time
 * is taken to be proportional to the multiplications of the model (pe_model_cost) and, once a step, of Muon:
 * of a step with one window of a large model these are most, of one with the whole batch few.
 *
 * Seconds are those of the processor, so that other work on the machine does not change them; with a worker
 * per processor they pass at the same pace if nothing else runs.
 *
 * What is read after training is counted in windows: those held out; those of the shifts, 6 times 16 of half
 * the length; and the truncated context, which reads the far half of each window four times, L at a time
 * (trained.c). A follow-up says itself how many steps it is worth.
 */
#include "train/compare.h"

#include "base/status.h"
#include "train/jobs/extension.h"
#include "train/jobs/job.h"
#include "train/jobs/pool.h"
#include "train/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET      3.0 /* seconds */
#define READING     0.3 /* share of it */
#define FIRST_GUESS 2e-10

enum { PROBE_STEPS = 4, PROBE_WINDOWS = 4, PASSES = 3, SHIFT_WINDOWS = 48 };

/* Seconds per multiplication, of training and of reading. */
typedef struct speed {
    double train, read;
} speed;

static double processor_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Of Muon in a step, in multiplications of the forward pass, of which training makes three. A layer has 150 d
   d d: five times 2 m n n + n n n for each matrix of m rows and n columns (muon.h), four of m = n = d and two
   of m = 4 d. */
static double work_of_muon(const pe_run_config *c)
{
    const pe_model_config m = pe_run_model_config(c);
    const double          d = (double)m.d_model;
    return 150 * d * d * d * (double)m.layers / 3;
}

/* Multiplications of one window or sequence of training, and of one that is read. */
static speed work_of(const pe_run_config *c)
{
    const pe_model_config m       = pe_run_model_config(c);
    const int64_t         classes = pe_model_classes(&m);
    return (speed){pe_model_cost(m.d_model, m.layers, classes, m.L),
                   pe_model_cost(m.d_model, m.layers, classes, m.longest)};
}

/* As many of `most` as fit into so many seconds, one at least. */
static int64_t fitting(double seconds, double each, int64_t most)
{
    const double n = seconds / each;
    return n < 1 ? 1 : (int64_t)smaller(n, (double)most);
}

/* s: what is guessed before and known afterwards. */
static posenc_status probe(speed *s, const pe_run_config *config, double seconds, posenc_error *err)
{
    pe_run_result result;
    pe_run_config c    = *config;
    const speed   work = work_of(config);
    const double  muon = work_of_muon(config), reading = READING * seconds;
    c.followup        = NULL;
    c.measures        = 0;
    c.seed            = 1;
    c.is_rough        = 1;
    c.batch           = fitting((seconds - reading) / 2 - s->train * muon, s->train * work.train, c.batch);
    const double step = (double)c.batch * work.train + muon;
    c.steps           = fitting(seconds - reading, s->train * step, PROBE_STEPS);
    *(c.task ? &c.sequences : &c.windows) =
        fitting(reading, s->read * work.read,
                c.task ? c.batch : (int64_t)smaller((double)c.windows, PROBE_WINDOWS));
    const double        wall = pe_run_clock(), processor = processor_clock();
    const posenc_status status = pe_run(&c, NULL, &result, err);
    const double        part   = (processor_clock() - processor) / fmax(pe_run_clock() - wall, 1e-9);
    const int64_t       read   = c.task ? c.sequences : c.windows;
    s->train                   = part * result.train_seconds / ((double)c.steps * step);
    s->read                    = part * result.eval_seconds / ((double)read * work.read);
    pe_run_result_free(&result);
    return status;
}

static double seconds_of(const pe_run_config *c, speed s)
{
    const speed work  = work_of(c);
    double      steps = (double)c->steps;
    for (int i = 0; c->followup && i < c->followup->units; i++)
        steps += c->followup->steps(c->followup->self, i);
    const int64_t passes = c->measures && !c->bidirectional ? PASSES
                           : c->bidirectional               ? pe_stats_buckets(c->reach)
                                                            : 1;
    const int64_t read =
        c->task ? c->sequences : passes * c->windows + (passes == PASSES ? SHIFT_WINDOWS : 0);
    const double scored = c->task ? 0 : (double)(pe_run_score_calls(c) * c->batch) / (double)c->reach;
    const double step   = (double)c->batch * work.train + work_of_muon(c);
    return s.train * step * steps + s.read * work.read * ((double)read + scored);
}

/* ---------------------------------------------------------------- all of them --------------- */

typedef struct speeds {
    const pe_compare *c;
    speed            *text;  /* [encodings] */
    speed            *tasks; /* [tasks] of the first encoding that takes part, */
    const char      **bases; /* [tasks] which this is; NULL: none does */
} speeds;

/* On the text; of the first encoding where that one has no meaning there. */
static speed on_text(const speeds *s, const char *label)
{
    for (int i = 0; i < s->c->count; i++)
        if (!strcmp(s->c->outcomes[i].label, label))
            return s->text[i];
    return s->text[0];
}

static speed of_job(const speeds *s, const pe_job *j)
{
    const speed own = on_text(s, j->label);
    if (!j->cell)
        return own;
    for (int t = 0; t < s->c->suite->task_count; t++)
        if (s->c->suite->tasks[t] == j->cell->task) {
            const speed base = on_text(s, s->bases[t]), task = s->tasks[t];
            return (speed){task.train * own.train / base.train, task.read * own.read / base.read};
        }
    return own;
}

static posenc_status measure(speeds *s, posenc_error *err)
{
    const pe_compare *c       = s->c;
    const pe_suite   *suite   = c->suite;
    const double      seconds = BUDGET / (double)(c->count + suite->task_count);
    speed             guess   = {FIRST_GUESS, FIRST_GUESS};
    posenc_status     status  = POSENC_OK;
    for (int i = 0; i < c->count && !status; i++) {
        s->text[i] = guess;
        status     = probe(&s->text[i], &c->outcomes[i].config, seconds, err);
        guess      = s->text[i];
    }
    for (int t = 0; t < suite->task_count && !status; t++)
        for (int l = 0; l < suite->label_count && !s->bases[t]; l++) {
            const pe_cell *cell = &suite->cells[t * suite->label_count + l];
            if (!cell->runs)
                continue;
            s->bases[t] = cell->label;
            s->tasks[t] = guess;
            status      = probe(&s->tasks[t], &cell->config, seconds, err);
        }
    return status;
}

static void add_up(pe_compare_cost *cost, const speeds *s)
{
    double longest = 0;
    for (int64_t job = 0; job < pe_job_count(s->c); job++) {
        const pe_job j = pe_job_at(s->c, job);
        if (atomic_load(j.ended))
            continue;
        const double one = seconds_of(&j.config, of_job(s, &j));
        cost->processor_seconds += one;
        cost->runs++;
        longest = fmax(longest, one);
    }
    cost->workers = s->c->workers * pe_ranks_count();
    cost->seconds = fmax(longest, cost->processor_seconds / (double)cost->workers);
}

posenc_status pe_compare_estimate(pe_compare *compare, pe_compare_cost *cost, posenc_error *err)
{
    const size_t  n = (size_t)compare->count, tasks = (size_t)compare->suite->task_count + 1;
    speeds        s = {compare, calloc(n, sizeof *s.text), calloc(tasks, sizeof *s.tasks),
                       calloc(tasks, sizeof *s.bases)};
    posenc_status status =
        s.text && s.tasks && s.bases
            ? measure(&s, err)
            : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for an estimate");
    *cost = (pe_compare_cost){0};
    if (!status)
        add_up(cost, &s);
    free(s.text);
    free(s.tasks);
    free(s.bases);
    return status;
}

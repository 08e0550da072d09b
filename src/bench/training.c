/* SPDX-License-Identifier: MIT */
/*
 * training.c: a step of the training engine against arithmetic, and two runs side by side: G15
 *
 * The step is a gradient and an update of a small model. Useful arithmetic per token, forward and backward:
 * 6 (12 d d layers + 256 d) for the matrices and 12 d layers (L + 1) / 2 for the pairs below the diagonal;
 * per step 300 d d d layers for Muon (muon.h: five times 4 m n n + 2 n n n for each matrix of m rows and n
 * columns, of which a layer has four with m = n = d and two with m = 4 d); nothing else counts. Two runs
 * share only the computer, as workers of `compare` do: each takes its steps on a thread of its own, and the
 * steps of both per second are held against those of one.
 */
#include "bench/limits.h"
#include "bench/metric.h"

#include <pthread.h>

#include "train/model/speed.h"

enum { SYMBOLS = 256, RUNS = 2 };

static pe_speed_shape model_of(const pe_bench_shape *s)
{
    return (
        pe_speed_shape){.d_model = s->D, .layers = s->layers, .heads = s->H, .L = s->Lq, .batch = s->batch};
}

static double operations(const pe_bench_shape *s)
{
    const double d = (double)s->D, layers = (double)s->layers;
    const double matrices = 6 * (12 * d * d * layers + SYMBOLS * d),
                 pairs    = 12 * d * layers * (double)(s->Lq + 1) / 2;
    return (matrices + pairs) * (double)(s->batch * s->Lq) + 300 * d * d * d * layers;
}

static void step(void *context)
{
    pe_speed_step(context);
}

posenc_status pe_training_step(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                               posenc_error *err)
{
    pe_speed            *run;
    pe_peak              peak;
    const pe_speed_shape model  = model_of(&c->shape);
    const posenc_status  status = pe_speed_create(&run, c->shape.spec, &model, 1, err);
    if (status)
        return status;
    const pe_timed kernel = {step, run, operations(&c->shape), 1},
                   limit  = pe_limits_multiply_add(&peak, NULL, 1);
    pe_timing_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
    figure->limit *= 1e-9;
    pe_speed_free(run);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- side by side --------------- */

static void *two_steps(void *run)
{
    pe_speed_step(run);
    pe_speed_step(run);
    return NULL;
}

/* Of the first of two runs. */
static void step_one(void *context)
{
    pe_speed **runs = context;
    two_steps(runs[0]);
}

/* Of both: the other on its own thread. */
static void step_both(void *context)
{
    pe_speed **runs = context;
    pthread_t  other;
    const int  failed = pthread_create(&other, NULL, two_steps, runs[1]);
    two_steps(runs[0]);
    if (failed)
        two_steps(runs[1]);
    else
        pthread_join(other, NULL);
}

posenc_status pe_training_pair(const pe_bench_case *c, const pe_bench_effort *effort, pe_bench_figure *figure,
                               posenc_error *err)
{
    const pe_speed_shape model      = model_of(&c->shape);
    pe_speed            *runs[RUNS] = {NULL};
    posenc_status        status     = POSENC_OK;
    for (int i = 0; !status && i < RUNS; i++)
        status = pe_speed_create(&runs[i], c->shape.spec, &model, (uint64_t)i + 1, err);
    if (!status) {
        const pe_timed both = {step_both, runs, 2.0 * RUNS, RUNS}, one = {step_one, runs, 2, 1};
        pe_timing_compare(figure, &both, &one, PE_SPEED_RATIO, effort);
    }
    for (int i = 0; i < RUNS; i++)
        pe_speed_free(runs[i]);
    return status;
}

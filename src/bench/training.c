/* SPDX-License-Identifier: MIT */
/*
 * training.c: a step of the training engine against arithmetic, and two runs side by side: G15
 *
 * The step is a gradient and an update of the model of docs/performance.md; beside it, stated, of the one
 * that `compare` trains. Useful arithmetic per token, forward and backward: 6 (12 d d layers + 256 d) for the
 * matrices and 12 d layers (L + 1) / 2 for the pairs below the diagonal; nothing else counts. Two runs share
 * nothing but the machine, as workers of `compare` do: each walks on a thread of its own, and the steps of
 * both per second are held against those of one alone.
 */
#include "bench/problem.h"
#include "bench/limits.h"

#include <pthread.h>

#include "train/model/speed.h"

enum { GOAL, PRESET, SYMBOLS = 256, RUNS = 2 };

/* That of the goal, and the model that presets of `compare` train. */
static const pe_speed_shape shapes[] = {
    [GOAL]   = {.d_model = 128, .layers = 4, .heads = 4, .L = 256, .batch = 16},
    [PRESET] = {.d_model = 64, .layers = 3, .heads = 4, .L = 64, .batch = 32},
};

static double operations(const pe_speed_shape *s)
{
    const double d = (double)s->d_model, layers = (double)s->layers;
    const double matrices = 6 * (12 * d * d * layers + SYMBOLS * d),
                 pairs    = 12 * d * layers * (double)(s->L + 1) / 2;
    return (matrices + pairs) * (double)(s->batch * s->L);
}

static void step(void *context)
{
    pe_speed_step(context);
}

static posenc_status measure_step(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_speed             *run;
    pe_peak               peak;
    const pe_speed_shape *shape  = &shapes[c->shape.kind];
    const posenc_status   status = pe_speed_create(&run, c->shape.spec, shape, 1, err);
    if (status)
        return status;
    const pe_timed kernel = {step, run, operations(shape), 1}, limit = pe_multiply_add_limit(&peak, NULL, 1);
    pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
    figure->limit *= 1e-9;
    pe_speed_free(run);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- side by side --------------- */

static void *walk(void *run)
{
    pe_speed_step(run);
    pe_speed_step(run);
    return NULL;
}

/* Two steps of the first of two runs. */
static void walk_one(void *context)
{
    pe_speed **runs = context;
    walk(runs[0]);
}

/* Two steps of both: the other on its own thread. */
static void walk_both(void *context)
{
    pe_speed **runs = context;
    pthread_t  other;
    const int  alone = pthread_create(&other, NULL, walk, runs[1]);
    walk(runs[0]);
    if (alone)
        walk(runs[1]);
    else
        pthread_join(other, NULL);
}

static posenc_status measure_pair(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_speed     *runs[RUNS] = {NULL};
    posenc_status status     = POSENC_OK;
    for (int i = 0; !status && i < RUNS; i++)
        status = pe_speed_create(&runs[i], c->shape.spec, &shapes[GOAL], (uint64_t)i + 1, err);
    if (!status) {
        const pe_timed both = {walk_both, runs, 2.0 * RUNS, RUNS}, one = {walk_one, runs, 2, 1};
        pe_compare(figure, &both, &one, PE_SPEED_RATIO, effort);
    }
    for (int i = 0; i < RUNS; i++)
        pe_speed_free(runs[i]);
    return status;
}

static void add_step(pe_case_list *to, int kind, double wanted)
{
    const pe_speed_shape *s = &shapes[kind];
    pe_add_case(to, "G15",
                (pe_bench_case){.unit    = "GFLOP/s",
                                .wanted  = wanted,
                                .sense   = wanted > 0 ? PE_AT_LEAST : PE_STATED,
                                .measure = measure_step,
                                .shape   = {.spec = "nope", .kind = kind}},
                "training step, d %d, %d layers, L %d, batch %d, of the multiply-add peak", (int)s->d_model,
                (int)s->layers, (int)s->L, (int)s->batch);
}

void pe_training_cases(pe_case_list *to)
{
    add_step(to, GOAL, 0.45);
    pe_add_case(to, "G15",
                (pe_bench_case){.unit       = "steps/s",
                                .wanted     = 1.9,
                                .processors = 2,
                                .measure    = measure_pair,
                                .shape      = {.spec = "nope", .kind = GOAL}},
                "training step, two runs side by side over one");
    add_step(to, PRESET, 0);
}

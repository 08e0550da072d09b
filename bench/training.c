/* SPDX-License-Identifier: MIT */
/*
 * bench/training.c: how far a training step of `compare` is from this machine's multiply-add limit
 *
 *     build/default/bench/training [REPEATS [SPEC]]          7 repeats, nope
 *
 * Two models, on random bytes: the one that presets of `compare` train (d 64, 3 layers, L 64, batch 32) and the larger one
 * of the goal (d 128, 4 layers, L 256, batch 16), both with 4 heads and a causal mask. A step is a gradient and an AdamW
 * update. Useful arithmetic per token, forward and backward: 6 (12 d d layers + 256 d) for the matrices and 12 d layers
 * (L + 1) / 2 for the pairs of attention below the diagonal; nothing else counts. Time is stated as a share of a loop of
 * independent fused multiply-adds that runs between the steps, so clock changes and neighbours hit both; median and
 * quartiles.
 *
 * Then where the time goes: the update; attention of all layers, called as the model calls it; and what is left of the
 * gradient, which is products, norms, gelu and the output. Last, two runs side by side, as workers of `compare` are: the sum
 * of their tokens per second over that of one alone.
 */
#include <posenc/posenc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fma_limit.h"
#include "train/descent.h"
#include "train/model.h"
#include "train/optimiser.h"

enum { MAX_REPEATS = 101, MOST_WINDOWS = 64, SYMBOLS = 256 };

typedef struct shape {
    const char *name;
    int64_t     d, layers, heads, L, batch;
    int         steps; /* in one repeat */
    double      wanted;
} shape;

static const shape shapes[] = {
    {"small: d 64, 3 layers, L 64, batch 32", 64, 3, 4, 64, 32, 4, 0},
    {"goal: d 128, 4 layers, L 256, batch 16", 128, 4, 4, 256, 16, 1, 0.45},
};

/* ---------------------------------------------------------------- a run --------------------- */

typedef struct run {
    const shape         *s;
    pe_model            *model;
    pe_optimiser        *optimiser;
    unsigned char       *text;
    const unsigned char *windows[MOST_WINDOWS];
    pe_batch             batch;
    int64_t              step;
} run;

static run make_run(const shape *s, const char *spec, uint64_t seed)
{
    run                   r      = {.s = s};
    const pe_model_config config = {.spec    = spec,
                                    .L       = s->L,
                                    .d_model = s->d,
                                    .layers  = s->layers,
                                    .heads   = s->heads,
                                    .batch   = s->batch,
                                    .seed    = seed,
                                    .dtype   = POSENC_F32};
    posenc_error          err;
    if (pe_model_create(&r.model, &config, &err) || pe_optimiser_create(&r.optimiser, r.model->size, &err))
        stop("training", &err);
    r.text = malloc((size_t)(s->batch * (s->L + 1)));
    if (!r.text)
        exit(1);
    for (int64_t i = 0; i < s->batch * (s->L + 1); i++)
        r.text[i] = (unsigned char)(posenc_random_uniform(seed, "text", (uint64_t)i) * SYMBOLS);
    r.batch = (pe_batch){.B = s->batch, .length = s->L};
    return r;
}

static void free_run(run *r)
{
    pe_model_free(r->model);
    pe_optimiser_free(r->optimiser);
    free(r->text);
}

static void point_windows(run *r)
{
    for (int64_t b = 0; b < r->s->batch; b++)
        r->windows[b] = r->text + b * (r->s->L + 1);
    r->batch.windows = r->windows;
}

static void do_step(run *r)
{
    const pe_descent descent = {
        .steps = 1 << 20, .warmup = 100, .learning_rate = 1e-3, .weight_decay = 0.01, .clip = 1};
    posenc_error err;
    double       loss;
    int          finite;
    point_windows(r);
    if (pe_descent_step(r->model, r->optimiser, &r->batch, &descent, r->step++, &loss, &finite, &err))
        stop("training", &err);
}

/* ---------------------------------------------------------------- parts of a step ----------- */

static void do_gradient(run *r)
{
    posenc_error err;
    double       loss;
    point_windows(r);
    if (pe_model_gradient(r->model, &loss, &r->batch, &err))
        stop("training", &err);
}

static void do_forward(run *r)
{
    static _Thread_local double losses[1 << 13];
    posenc_error                err;
    point_windows(r);
    if (pe_model_losses(r->model, losses, &r->batch, &err))
        stop("training", &err);
}

static void do_update(run *r)
{
    pe_model *m = r->model;
    pe_optimiser_step(r->optimiser, m->theta, m->grad, m->weights, m->weight_count, 1e-6, 0.01, 1);
}

/* The tensors of layer 0 as model.inc sees them: the third number `which` of [B,L,3,H,D], as [B,H,L,D]. */
static posenc_tensor third(const run *r, void *qkv, int which)
{
    const int64_t d = r->s->d, D = d / r->s->heads;
    posenc_tensor t = posenc_tensor_contiguous((float *)qkv + which * d, POSENC_F32, 4,
                                               (const int64_t[]){r->s->batch, r->s->heads, r->s->L, D});
    t.stride[0]     = 3 * r->s->L * d;
    t.stride[1]     = D;
    t.stride[2]     = 3 * d;
    return t;
}

static posenc_tensor heads_of(const run *r, void *data)
{
    return posenc_tensor_from_blhd(data, POSENC_F32, r->s->batch, r->s->L, r->s->heads,
                                   r->s->d / r->s->heads);
}

static posenc_attend_in attention_of(const run *r, int64_t l)
{
    void *qkv = r->model->layers[l].qkv;
    return (posenc_attend_in){.q      = third(r, qkv, 0),
                              .k      = third(r, qkv, 1),
                              .v      = third(r, qkv, 2),
                              .q_pos  = posenc_positions_range(0, 1),
                              .k_pos  = posenc_positions_range(0, 1),
                              .params = r->model->params + l * r->model->param_count};
}

static posenc_tensor lse_of(const run *r, int64_t l)
{
    return posenc_tensor_contiguous(r->model->layers[l].lse, POSENC_F32, 3,
                                    (const int64_t[]){r->s->batch, r->s->heads, r->s->L});
}

static void do_attention(run *r)
{
    posenc_error err;
    for (int64_t l = 0; l < r->s->layers; l++) {
        const posenc_attend_in  in  = attention_of(r, l);
        const posenc_attend_out out = {.o = heads_of(r, r->model->layers[l].o), .lse = lse_of(r, l)};
        if (posenc_attend(r->model->short_plan, &in, &out, r->model->workspace, &err))
            stop("training", &err);
    }
}

static void do_attention_back(run *r)
{
    posenc_error err;
    for (int64_t l = 0; l < r->s->layers; l++) {
        const posenc_attend_in   in   = attention_of(r, l);
        const posenc_attend_grad grad = {.o       = heads_of(r, r->model->layers[l].o),
                                         .lse     = lse_of(r, l),
                                         .dout    = heads_of(r, r->model->spare),
                                         .dq      = third(r, r->model->dqkv, 0),
                                         .dk      = third(r, r->model->dqkv, 1),
                                         .dv      = third(r, r->model->dqkv, 2),
                                         .dparams = r->model->layer_dparams + l * r->model->param_count};
        if (posenc_attend_backward(r->model->short_plan, &in, &grad, r->model->workspace, &err))
            stop("training", &err);
    }
}

/* ---------------------------------------------------------------- figures ------------------- */

typedef struct figures {
    double low, median, high;
} figures;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static figures figures_of(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return (figures){x[n / 4], x[n / 2], x[n * 3 / 4]};
}

static double tokens_of(const shape *s)
{
    return (double)(s->batch * s->L);
}

static double matrices_per_token(const shape *s)
{
    return 6.0 * (double)(12 * s->d * s->d * s->layers + SYMBOLS * s->d);
}

static double pairs_per_token(const shape *s)
{
    return 12.0 * (double)(s->d * s->layers) * (double)(s->L + 1) / 2;
}

static double arithmetic(const shape *s)
{
    return (matrices_per_token(s) + pairs_per_token(s)) * tokens_of(s);
}

/* ---------------------------------------------------------------- one run alone ------------- */

typedef struct part {
    const char *name;
    void (*work)(run *r);
    double (*useful)(const shape *s); /* arithmetic of it, or NULL */
} part;

static double forward_arithmetic(const shape *s)
{
    return arithmetic(s) / 3;
}

static double attention_arithmetic(const shape *s)
{
    return pairs_per_token(s) * tokens_of(s) / 3;
}

static double attention_back_arithmetic(const shape *s)
{
    return 2 * attention_arithmetic(s);
}

enum { STEP, GRADIENT, FORWARD, ATTENTION, ATTENTION_BACK, UPDATE, PARTS };

static const part parts[PARTS] = {
    [STEP]           = {"step", do_step, arithmetic},
    [GRADIENT]       = {"  gradient", do_gradient, arithmetic},
    [FORWARD]        = {"    forward alone", do_forward, forward_arithmetic},
    [ATTENTION]      = {"    attention forward", do_attention, attention_arithmetic},
    [ATTENTION_BACK] = {"    attention backward", do_attention_back, attention_back_arithmetic},
    [UPDATE]         = {"  update", do_update, NULL},
};

static void report_part(const part *p, const shape *s, double *seconds, double *share, int repeats)
{
    const figures t = figures_of(seconds, repeats), f = figures_of(share, repeats);
    printf("  %-22s %8.3f ms  [%.3f %.3f]", p->name, 1e3 * t.median, 1e3 * t.low, 1e3 * t.high);
    if (p->useful)
        printf("  %6.1f GFLOP/s  %.3f [%.3f %.3f] of the limit", 1e-9 * p->useful(s) / t.median, f.median,
               f.low, f.high);
    printf("\n");
}

/* Returns the seconds of a step. */
static double report_alone(const shape *s, const char *spec, int repeats)
{
    static double seconds[PARTS][MAX_REPEATS], share[PARTS][MAX_REPEATS];
    run           r = make_run(s, spec, 1);
    for (int i = 0; i < 2; i++)
        do_step(&r);
    for (int i = 0; i < repeats; i++)
        for (int p = 0; p < PARTS; p++) {
            const double limit = fma_limit(), start = now();
            for (int n = 0; n < s->steps; n++)
                parts[p].work(&r);
            seconds[p][i] = (now() - start) / s->steps;
            share[p][i]   = parts[p].useful ? parts[p].useful(s) / seconds[p][i] / limit : 0;
        }
    printf("%s, %s: %.2f MFLOP per token\n", s->name, spec, 1e-6 * arithmetic(s) / tokens_of(s));
    for (int p = 0; p < PARTS; p++)
        report_part(&parts[p], s, seconds[p], share[p], repeats);
    const double step = seconds[STEP][repeats / 2], median = share[STEP][repeats / 2],
                 rest = seconds[GRADIENT][repeats / 2] - seconds[ATTENTION][repeats / 2] -
                        seconds[ATTENTION_BACK][repeats / 2];
    printf("  %-22s %8.3f ms  of which products at the limit take %.3f ms\n", "    all else", 1e3 * rest,
           1e3 * matrices_per_token(s) * tokens_of(s) * median * step / arithmetic(s));
    printf("  %.0f tokens/s", tokens_of(s) / step);
    if (s->wanted > 0)
        printf("  wanted %.2f of the limit  %s", s->wanted, median >= s->wanted ? "met" : "NOT MET");
    printf("\n");
    free_run(&r);
    return step;
}

/* ---------------------------------------------------------------- two side by side ---------- */

typedef struct lane {
    run    r;
    int    steps;
    double seconds;
} lane;

static pthread_barrier_t together;

static void *walk(void *argument)
{
    lane *l = argument;
    do_step(&l->r);
    pthread_barrier_wait(&together);
    const double start = now();
    for (int i = 0; i < l->steps; i++)
        do_step(&l->r);
    l->seconds = now() - start;
    pthread_barrier_wait(&together);
    return NULL;
}

/* Steps per second of `count` runs at once: the slowest one's time counts for all. */
static double speed_of(lane *lanes, int count)
{
    pthread_t threads[2];
    double    slowest = 0;
    pthread_barrier_init(&together, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, walk, &lanes[i]))
            exit(1);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
    for (int i = 0; i < count; i++)
        slowest = lanes[i].seconds > slowest ? lanes[i].seconds : slowest;
    return count * lanes[0].steps / slowest;
}

static void report_pair(const shape *s, const char *spec, double step, int repeats)
{
    static double ratio[MAX_REPEATS];
    const int     steps    = 1 + (int)(0.3 / step);
    lane          lanes[2] = {{make_run(s, spec, 1), steps, 0}, {make_run(s, spec, 2), steps, 0}};
    for (int i = 0; i < repeats; i++) {
        const double one = speed_of(lanes, 1);
        ratio[i]         = speed_of(lanes, 2) / one;
    }
    const figures f = figures_of(ratio, repeats);
    printf("  two runs side by side: %.2f times one  [%.2f %.2f]  wanted 1.90  %s\n", f.median, f.low, f.high,
           f.median >= 1.9 ? "met" : "NOT MET");
    free_run(&lanes[0].r);
    free_run(&lanes[1].r);
}

int main(int argc, char **argv)
{
    const int   repeats = argc > 1 ? atoi(argv[1]) : 7;
    const char *spec    = argc > 2 ? argv[2] : "nope";
    if (repeats < 1 || repeats > MAX_REPEATS) {
        fprintf(stderr, "bench training: usage: training [REPEATS up to %d [SPEC]]\n", MAX_REPEATS);
        return 2;
    }
    printf("instruction set %s, fused multiply-add loop %.1f GFLOP/s, one thread\n", posenc_isa(),
           fma_limit() / 1e9);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const double step = report_alone(&shapes[i], spec, repeats);
        report_pair(&shapes[i], spec, step, repeats);
    }
    return 0;
}

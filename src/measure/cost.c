/* SPDX-License-Identifier: MIT */
/*
 * cost.c: what an encoding costs beyond attention without one
 *
 * Parameters: those that training changes, for these sizes. Operations per token, at N keys:
 * posenc_plan_operations, which counts the formulas themselves. Bytes: the workspace of the tiled forward run
 * beyond that of attention without positions, per token.
 *
 * Speed: embedding and attention of the tiled executor on one thread, forward, causal, over the same without
 * positions; the two run alternately, three times each in a round, and each round gives the ratio of the
 * shortest times. Times are CPU times of the thread, so that other programs disturb little. The number is the
 * median of the rounds, its spread half of the range between their quartiles; both ends of the spread must
 * give the same word (findings.c). Speed differs from run to run, so it is measured only when asked for.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* The encoding that adds nothing: what all others are compared with. */
#define BASELINE "nope"

enum { ROUNDS = 15, RUNS = 3 };

static double trained_numbers(const pe_subject *s)
{
    double sum = 0;
    for (int i = 0; i < posenc_param_count(s->e); i++) {
        double n = posenc_param_trainable(s->e, i);
        for (int32_t a = 0; a < s->params[i].ndim; a++)
            n *= (double)s->params[i].shape[a];
        sum += n;
    }
    return sum;
}

/* A run of attention in float32, with all it needs. */
typedef struct timed {
    posenc_encoding  *own; /* to be freed; NULL where it is the subject's */
    posenc_plan      *plan;
    posenc_attend_in  in;
    posenc_attend_out out;
    posenc_rows_in    rows;
    posenc_tensor     y;
    int               is_input;
    posenc_workspace  work;
    double            seconds; /* the shortest of a round */
} timed;

static void close_timed(timed *t)
{
    posenc_plan_free(t->plan);
    posenc_encoding_free(t->own);
    posenc_workspace_free(&t->work);
}

static posenc_status open_plan(timed *t, const pe_subject *s, const posenc_encoding *e, posenc_error *err)
{
    posenc_options options = posenc_options_default();
    options.executor       = POSENC_EXECUTOR_TILED;
    options.mask           = POSENC_MASK_CAUSAL;
    options.threads        = 1;
    t->is_input            = posenc_encoding_part(e, POSENC_PLACE_INPUT) != NULL;
    return posenc_plan_create(&t->plan, e, &s->dims, &options, err);
}

static posenc_status fill_timed(timed *t, pe_subject *s, posenc_error *err)
{
    const int64_t H = s->dims.H, D = s->dims.D, N = s->sizes.length, d = s->dims.d_model, n = H * N * D;
    const int64_t shape[4] = {1, H, N, D}, rows[3] = {1, N, d};
    float        *block = pe_subject_take(s, 4 * n + 2 * N * d, sizeof *block);
    if (!block)
        return pe_subject_no_memory(err, "timing");
    const posenc_status status = posenc_workspace_create(&t->work, t->plan, POSENC_RUN_FORWARD, NULL, err);
    if (status)
        return status;
    for (int64_t i = 0; i < 4 * n + 2 * N * d; i++)
        block[i] = (float)posenc_random_normal(s->sizes.seed, "timing", (uint64_t)i);
    const posenc_tensor x = posenc_tensor_contiguous(block, POSENC_DTYPE_F32, 4, shape);
    t->in = (posenc_attend_in){.size = sizeof(posenc_attend_in), .q = x, .k = x, .v = x, .params = s->params};
    t->in.k.data  = block + n;
    t->in.v.data  = block + 2 * n;
    t->out.size   = sizeof t->out;
    t->out.o      = x;
    t->out.o.data = block + 3 * n;
    t->y          = posenc_tensor_contiguous(block + 4 * n + N * d, POSENC_DTYPE_F32, 3, rows);
    t->rows =
        (posenc_rows_in){.size = sizeof(posenc_rows_in), .x = t->y, .pos = s->positions, .params = s->params};
    t->rows.x.data = block + 4 * n;
    t->in.q_pos = t->in.k_pos = s->positions;
    return POSENC_OK;
}

/* Seconds of CPU time of this thread, so that other programs disturb little. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static posenc_status run_once(timed *t, posenc_error *err)
{
    const double  start  = cpu_seconds();
    posenc_status status = t->is_input ? posenc_rows(t->plan, &t->rows, &t->y, &t->work, err) : POSENC_OK;
    if (!status)
        status = posenc_attend(t->plan, &t->in, &t->out, &t->work, err);
    t->seconds = fmin(t->seconds, cpu_seconds() - start);
    return status;
}

static int compare_ratios(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* In a round both run alternately, and the shortest time of each counts. */
static posenc_status time_both(timed *with, timed *without, double ratios[ROUNDS], posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int run = 0; !status && run < ROUNDS * RUNS; run++) {
        if (run % RUNS == 0)
            with->seconds = without->seconds = INFINITY;
        status = run_once(with, err);
        if (!status)
            status = run_once(without, err);
        ratios[run / RUNS] = without->seconds / with->seconds;
    }
    return status;
}

static posenc_status find_speed(pe_subject *s, timed *with, timed *without, pe_findings *to,
                                posenc_error *err)
{
    double        ratios[ROUNDS];
    posenc_status status = fill_timed(with, s, err);
    if (!status)
        status = fill_timed(without, s, err);
    if (!status)
        status = time_both(with, without, ratios, err);
    if (status)
        return status;
    qsort(ratios, ROUNDS, sizeof *ratios, compare_ratios);
    const double low = ratios[ROUNDS / 4], high = ratios[ROUNDS - 1 - ROUNDS / 4];
    pe_findings_add(to, PE_SPEED, ratios[ROUNDS / 2], (high - low) / 2, "%lld tokens, tiled, forward",
                    (long long)s->sizes.length);
    return status;
}

posenc_status pe_cost_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    timed         with = {0}, without = {0};
    posenc_status status = posenc_encoding_create(&without.own, BASELINE, NULL, err);
    pe_findings_add(to, PE_PARAMETERS, trained_numbers(s), NAN, "%s", "");
    pe_findings_add(to, PE_OPERATIONS, posenc_plan_operations(s->plan) / (double)s->sizes.length, NAN,
                    "%lld keys", (long long)s->sizes.length);
    if (!status)
        status = open_plan(&without, s, without.own, err);
    if (!status)
        status = open_plan(&with, s, s->e, err);
    if (!status) {
        const double more = (double)posenc_plan_workspace(with.plan, POSENC_RUN_FORWARD, NULL) -
                            (double)posenc_plan_workspace(without.plan, POSENC_RUN_FORWARD, NULL);
        pe_findings_add(to, PE_WORKSPACE, more / (double)s->sizes.length, NAN, "%s", "");
    }
    if (!status && s->is_timed)
        status = find_speed(s, &with, &without, to, err);
    close_timed(&with);
    close_timed(&without);
    return status;
}

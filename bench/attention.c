/* SPDX-License-Identifier: MIT */
/*
 * bench/attention.c: how far the tiled attention is from this machine's multiply-add limit, and how its memory grows
 *
 *     build/bench_attention [L [REPEATS]]          L = 4096, 5 repeats
 *
 * For every encoding of the registry but those whose parameter holds a number per pair, with the settings of a model
 * that is trained at an eighth of that length: one head, D = 64, causal, one thread, random
 * data. Time is stated as a share of a loop of independent fused multiply-adds that runs between the repeats, so clock
 * changes and neighbours hit both; median and quartiles. Useful arithmetic: 4 D per attended pair forward, 10 D
 * backward, whatever the encoding adds. Then, at 8192 and 16384, the memory of a forward and a backward run beyond
 * inputs and outputs: the workspace asked for, and the pages really touched (a child process each).
 */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "fma_limit.h"

enum { D = 64, MAX_REPEATS = 101, MAX_PARAMS = 16, REACH = 8 };

/* ---- one head of attention ---- */

typedef struct problem {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_dims      dims;
    float           *q, *k, *v, *o, *lse, *dout, *dq, *dk, *dv;
    posenc_tensor    params[MAX_PARAMS], dparams[MAX_PARAMS];
    void            *work;
    size_t           work_bytes;
} problem;

static void *block(size_t bytes)
{
    void *p = aligned_alloc(64, bytes / 64 * 64 + 64); /* pages of a fresh block are not touched until used */
    if (!p)
        exit(1);
    return p;
}

static float *random_numbers(int64_t n, const char *name)
{
    float *x = block((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)posenc_random_normal(1, name, (uint64_t)i);
    return x;
}

static posenc_tensor rows(float *x, int64_t L, int64_t width)
{
    return posenc_tensor_contiguous(x, POSENC_F32, 4, (int64_t[]){1, 1, L, width});
}

static problem make_problem(const posenc_encoding_info *info, int64_t L)
{
    problem        p = {.dims = {.B       = 1,
                                 .H       = 1,
                                 .G       = 1,
                                 .Lq      = L,
                                 .Lk      = L,
                                 .D       = D,
                                 .Dv      = D,
                                 .d_model = D,
                                 .L       = (L + REACH - 1) / REACH}};
    posenc_options o = posenc_options_default();
    char           small[256];
    posenc_error   err;
    o.mask     = POSENC_MASK_CAUSAL;
    o.threads  = 1;
    o.executor = POSENC_TILED;
    if (posenc_small_model(info->name, &p.dims, small, sizeof small, &err) ||
        posenc_encoding_create(&p.e, info->name, small, &err) ||
        posenc_plan_create(&p.plan, p.e, &p.dims, &o, &err))
        stop("attention", &err);
    p.q    = random_numbers(L * D, "q");
    p.k    = random_numbers(L * D, "k");
    p.v    = random_numbers(L * D, "v");
    p.dout = random_numbers(L * D, "dout");
    p.o    = random_numbers(L * D, "o");
    p.dq   = random_numbers(L * D, "dq");
    p.dk   = random_numbers(L * D, "dk");
    p.dv   = random_numbers(L * D, "dv");
    p.lse  = random_numbers(L, "lse");
    for (int i = 0; i < posenc_param_count(p.e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], n = 1;
        if (posenc_param_shape(p.e, &p.dims, i, &ndim, shape, &err))
            stop("attention", &err);
        for (int a = 0; a < ndim; a++)
            n *= shape[a];
        p.params[i]  = posenc_tensor_contiguous(random_numbers(n, "p"), POSENC_F32, ndim, shape);
        p.dparams[i] = posenc_tensor_contiguous(random_numbers(n, "dp"), POSENC_F32, ndim, shape);
    }
    if (posenc_param_init(p.e, &p.dims, p.params, 1, &err))
        stop("attention", &err);
    p.work_bytes = posenc_plan_workspace(p.plan, POSENC_FORWARD | POSENC_BACKWARD);
    return p;
}

static void run(const problem *p, int backward)
{
    const int64_t    L = p->dims.Lq;
    posenc_error     err;
    posenc_attend_in in = {
        .q = rows(p->q, L, D), .k = rows(p->k, L, D), .v = rows(p->v, L, D), .params = p->params};
    posenc_tensor      lse  = posenc_tensor_contiguous(p->lse, POSENC_F32, 3, (int64_t[]){1, 1, L});
    posenc_attend_out  out  = {.o = rows(p->o, L, D), .lse = lse};
    posenc_attend_grad grad = {.o       = out.o,
                               .lse     = lse,
                               .dout    = rows(p->dout, L, D),
                               .dq      = rows(p->dq, L, D),
                               .dk      = rows(p->dk, L, D),
                               .dv      = rows(p->dv, L, D),
                               .dparams = (posenc_tensor *)p->dparams};
    if (backward ? posenc_attend_backward(p->plan, &in, &grad, p->work, &err)
                 : posenc_attend(p->plan, &in, &out, p->work, &err))
        stop("attention", &err);
}

/* Is a parameter a matrix of the caller's, with a number for each pair? Then memory is quadratic before a run begins. */
static int is_quadratic(const posenc_encoding_info *info)
{
    for (int p = 0; p < info->param_count; p++)
        if (strstr(info->params[p].shape, "Lq,Lk"))
            return 1;
    return 0;
}

/* ---- reports ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report_speed(const posenc_encoding_info *info, int64_t L, int repeats)
{
    problem      p     = make_problem(info, L);
    const double pairs = (double)L * (double)(L + 1) / 2;
    double       share[2][MAX_REPEATS];
    p.work = block(p.work_bytes);
    run(&p, 0);
    for (int r = 0; r < repeats; r++)
        for (int back = 0; back < 2; back++) {
            const double limit = fma_limit(), start = now();
            run(&p, back);
            share[back][r] = (back ? 10.0 : 4.0) * D * pairs / (now() - start) / limit;
        }
    for (int back = 0; back < 2; back++) {
        const double wanted = back ? 0.10 : 0.15;
        qsort(share[back], (size_t)repeats, sizeof(double), ascending);
        const double median = share[back][repeats / 2];
        printf("%-16s %-9s %6.3f  [%.3f %.3f]  wanted %.2f  %s\n", info->name, back ? "backward" : "forward",
               median, share[back][repeats / 4], share[back][repeats * 3 / 4], wanted,
               median >= wanted ? "met" : "NOT MET");
    }
}

/* Kilobytes of pages that a forward and a backward run touch beyond what was there before. */
static long touched(const posenc_encoding_info *info, int64_t L)
{
    int           ends[2];
    long          before_after[2] = {0, 0};
    struct rusage use;
    if (pipe(ends))
        return -1;
    if (fork() == 0) {
        problem p = make_problem(info, L);
        getrusage(RUSAGE_SELF, &use);
        before_after[0] = use.ru_maxrss;
        p.work          = block(p.work_bytes);
        run(&p, 0);
        run(&p, 1);
        getrusage(RUSAGE_SELF, &use);
        before_after[1] = use.ru_maxrss;
        _exit(write(ends[1], before_after, sizeof before_after) != sizeof before_after);
    }
    if (read(ends[0], before_after, sizeof before_after) != sizeof before_after)
        return -1;
    wait(NULL);
    close(ends[0]);
    close(ends[1]);
    return before_after[1] - before_after[0];
}

static void report_memory(const posenc_encoding_info *info)
{
    long   kilobytes[2];
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        const int64_t L = i ? 16384 : 8192;
        problem       p = make_problem(info, L);
        bytes[i]        = p.work_bytes;
        kilobytes[i]    = touched(info, L);
    }
    const double asked = (double)bytes[1] / (double)bytes[0],
                 grown = (double)kilobytes[1] / (double)kilobytes[0];
    printf(
        "%-16s workspace %6.1f -> %6.1f MiB (x%.2f)   touched %6.1f -> %6.1f MiB (x%.2f)   wanted x2.1  %s\n",
        info->name, (double)bytes[0] / 1048576, (double)bytes[1] / 1048576, asked,
        (double)kilobytes[0] / 1024, (double)kilobytes[1] / 1024, grown,
        asked <= 2.1 && grown <= 2.1 ? "met" : "NOT MET");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int64_t L       = argc > 1 ? atoll(argv[1]) : 4096;
    const int     repeats = argc > 2 ? atoi(argv[2]) : 5;
    if (L < 1 || repeats < 1 || repeats > MAX_REPEATS) {
        fprintf(stderr, "bench_attention: usage: bench_attention [L [REPEATS up to %d]]\n", MAX_REPEATS);
        return 2;
    }
    printf("instruction set %s, fused multiply-add loop %.1f GFLOP/s, one thread\n", posenc_isa(),
           fma_limit() / 1e9);
    printf("\nshare of that loop, L = %lld, D = %d, causal, f32: median [quartiles] of %d\n", (long long)L, D,
           repeats);
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (!is_quadratic(posenc_encoding_info_at(i)))
            report_speed(posenc_encoding_info_at(i), L, repeats);
    printf("\nmemory of forward and backward beyond inputs and outputs, L = 8192 -> 16384\n");
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (!is_quadratic(posenc_encoding_info_at(i)))
            report_memory(posenc_encoding_info_at(i));
    return 0;
}

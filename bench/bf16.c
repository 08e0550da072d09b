/* SPDX-License-Identifier: MIT */
/*
 * bench/bf16.c: attention on 16-bit tensors against the same attention on float
 *
 *     build/default/bench/bf16 [L [REPEATS]]          L = 4096, 9 repeats
 *
 * One head, one thread, random data; times are taken in turn within each repeat. A row says how many times as fast as on
 * F32 the same attention runs on BF16 (or F16) tensors, and what share of the limit that is: a loop of independent dot
 * products of bf16 pairs where the processor has them, of fused multiply-adds elsewhere. Median and quartiles. Useful
 * arithmetic: 4 D per pair of a query and a key that it sees.
 */
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

enum { MAX_REPEATS = 101, MAX_PARAMS = 4, CHAINS = 16 };

/* ---- the limit ---- */

#ifdef __x86_64__
__attribute__((target("avx512f,avx512bw,avx512bf16"))) static float dot_loop(long n)
{
    __m512        x[CHAINS];
    const __m512i one = _mm512_set1_epi32(0x3f803f80);
    for (int c = 0; c < CHAINS; c++)
        x[c] = _mm512_set1_ps(0.001f * (float)c);
    for (long i = 0; i < n; i++)
        _Pragma("GCC unroll 16") for (int c = 0; c < CHAINS; c++) x[c] =
            _mm512_dpbf16_ps(x[c], (__m512bh)one, (__m512bh)one);
    for (int c = 1; c < CHAINS; c++)
        x[0] = _mm512_add_ps(x[0], x[c]);
    return _mm512_cvtss_f32(x[0]);
}
#endif

/* Floating point operations per second of dot products of pairs; 0 where there are none. */
static double dot_limit(void)
{
#ifdef __x86_64__
    static volatile float sink;
    const long            n = 1000000;
    if (strcmp(posenc_isa(), "avx512bf16") != 0)
        return 0;
    const double start = now();
    sink               = dot_loop(n);
    (void)sink;
    return 4.0 * 16 * CHAINS * (double)n / (now() - start);
#else
    return 0;
#endif
}

/* ---- one head ---- */

typedef struct problem {
    posenc_encoding *e;
    posenc_plan     *plan;
    int64_t          L, D;
    posenc_dtype     dtype[2]; /* F32 and the other one */
    void            *q[2], *k[2], *v[2], *o[2], *work;
    posenc_tensor    params[MAX_PARAMS];
} problem;

static void *block(size_t bytes)
{
    void *p = aligned_alloc(64, bytes / 64 * 64 + 64);
    if (!p)
        exit(1);
    return p;
}

/* The same numbers, which 16 bits hold, in both types. */
static void random_pair(void *to[2], const posenc_dtype dtype[2], int64_t n, const char *name)
{
    for (int i = 0; i < 2; i++)
        to[i] = block((size_t)n * posenc_dtype_size(dtype[i]));
    for (int64_t i = 0; i < n; i++) {
        float    x = (float)posenc_random_normal(1, name, (uint64_t)i);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits = (bits & 0x8fffffffu) | 0x30000000u; /* between 2^-31 and 2 */
        bits = (bits & 0x807f0000u) | 0x3f000000u; /* 0.5 .. 1 in magnitude, 7 bits */
        memcpy(&x, &bits, sizeof x);
        ((float *)to[0])[i] = x;
        ((uint16_t *)to[1])[i] =
            (uint16_t)(dtype[1] == POSENC_BF16 ? bits >> 16
                                               : (bits >> 16 & 0x8000) | 0x3800 | (bits >> 13 & 0x3ff));
    }
}

static problem make_problem(const char *spec, int mask, posenc_dtype dtype, int64_t L, int64_t D)
{
    const posenc_dims dims = {.B = 1, .H = 1, .G = 1, .Lq = L, .Lk = L, .D = D};
    posenc_options    o    = posenc_options_default();
    problem           p    = {.L = L, .D = D, .dtype = {POSENC_F32, dtype}};
    posenc_error      err;
    o.mask     = mask;
    o.threads  = 1;
    o.executor = POSENC_TILED;
    if (posenc_encoding_create(&p.e, spec, NULL, &err) || posenc_plan_create(&p.plan, p.e, &dims, &o, &err))
        stop("bf16", &err);
    random_pair(p.q, p.dtype, L * D, "q");
    random_pair(p.k, p.dtype, L * D, "k");
    random_pair(p.v, p.dtype, L * D, "v");
    random_pair(p.o, p.dtype, L * D, "o");
    for (int i = 0; i < posenc_param_count(p.e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], n = 1;
        if (posenc_param_shape(p.e, &dims, i, &ndim, shape, &err))
            stop("bf16", &err);
        for (int a = 0; a < ndim; a++)
            n *= shape[a];
        p.params[i] = posenc_tensor_contiguous(block((size_t)n * sizeof(float)), POSENC_F32, ndim, shape);
    }
    if (posenc_param_init(p.e, &dims, p.params, 1, &err))
        stop("bf16", &err);
    p.work = block(posenc_plan_workspace(p.plan, POSENC_FORWARD));
    return p;
}

static void free_problem(problem *p)
{
    for (int i = 0; i < 2; i++)
        free(p->q[i]), free(p->k[i]), free(p->v[i]), free(p->o[i]);
    for (int i = 0; i < posenc_param_count(p->e); i++)
        free(p->params[i].data);
    free(p->work);
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
}

/* Seconds of one run; which: 0 F32, 1 the other. */
static double run(const problem *p, int which)
{
    const int64_t     shape[4] = {1, 1, p->L, p->D};
    posenc_error      err;
    posenc_attend_in  in    = {.q      = posenc_tensor_contiguous(p->q[which], p->dtype[which], 4, shape),
                               .k      = posenc_tensor_contiguous(p->k[which], p->dtype[which], 4, shape),
                               .v      = posenc_tensor_contiguous(p->v[which], p->dtype[which], 4, shape),
                               .params = p->params};
    posenc_attend_out out   = {.o = posenc_tensor_contiguous(p->o[which], p->dtype[which], 4, shape)};
    const double      start = now();
    if (posenc_attend(p->plan, &in, &out, p->work, &err))
        stop("bf16", &err);
    return now() - start;
}

/* ---- reports ---- */

typedef struct report {
    double ratio[3], share[3]; /* median and quartiles */
} report;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarise(double to[3], double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    to[0] = x[n / 2];
    to[1] = x[n / 4];
    to[2] = x[n * 3 / 4];
}

/* One row: how much faster than F32, and the share of the limit (0: no limit here). */
static report measure(const char *spec, int mask, posenc_dtype dtype, int64_t L, int64_t D, int repeats)
{
    problem      p     = make_problem(spec, mask, dtype, L, D);
    const double pairs = mask & POSENC_MASK_CAUSAL ? (double)L * (double)(L + 1) / 2 : (double)L * (double)L;
    double       ratio[MAX_REPEATS], share[MAX_REPEATS];
    report       r;
    run(&p, 0);
    run(&p, 1);
    for (int i = 0; i < repeats; i++) {
        const double limit = dot_limit(), wide = run(&p, 0), narrow = run(&p, 1);
        ratio[i] = wide / narrow;
        share[i] = limit > 0 ? 4.0 * (double)D * pairs / narrow / limit : 0;
    }
    summarise(r.ratio, ratio, repeats);
    summarise(r.share, share, repeats);
    free_problem(&p);
    return r;
}

static const struct {
    const char  *name, *spec;
    int          mask;
    posenc_dtype dtype;
    int64_t      D;
    double       wanted; /* times as fast as F32 */
} rows[] = {
    {"bf16, D = 64", "nope", POSENC_MASK_NONE, POSENC_BF16, 64, 1.4},
    {"bf16, D = 64, causal", "nope", POSENC_MASK_CAUSAL, POSENC_BF16, 64, 1.4},
    {"bf16, D = 128", "nope", POSENC_MASK_NONE, POSENC_BF16, 128, 1.4},
    {"bf16, D = 128, causal", "nope", POSENC_MASK_CAUSAL, POSENC_BF16, 128, 1.4},
    {"bf16, D = 64, causal, ALiBi", "alibi", POSENC_MASK_CAUSAL, POSENC_BF16, 64, 1.4},
    {"bf16, D = 64, T5", "t5[scale=0.125]", POSENC_MASK_NONE, POSENC_BF16, 64, 1.4},
    {"bf16, D = 128, causal, RoPE", "rope", POSENC_MASK_CAUSAL, POSENC_BF16, 128, 1.4},
    {"f16, D = 64, causal", "nope", POSENC_MASK_CAUSAL, POSENC_F16, 64, 0.95},
};

int main(int argc, char **argv)
{
    const int64_t L       = argc > 1 ? atoll(argv[1]) : 4096;
    const int     repeats = argc > 2 ? atoi(argv[2]) : 9;
    if (L < 1 || repeats < 1 || repeats > MAX_REPEATS) {
        fprintf(stderr, "bench_bf16: usage: bench_bf16 [L [REPEATS up to %d]]\n", MAX_REPEATS);
        return 2;
    }
    printf("instruction set %s, dot products of bf16 pairs %.1f GFLOP/s, one thread, L = %lld\n",
           posenc_isa(), dot_limit() / 1e9, (long long)L);
    printf("times as fast as F32, and share of that loop: median [quartiles] of %d\n", repeats);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const report r = measure(rows[i].spec, rows[i].mask, rows[i].dtype, L, rows[i].D, repeats);
        printf("%-28s %5.2f  [%.2f %.2f]  wanted %.2f  %-7s  share %.3f [%.3f %.3f]\n", rows[i].name,
               r.ratio[0], r.ratio[1], r.ratio[2], rows[i].wanted,
               r.ratio[0] >= rows[i].wanted ? "met" : "NOT MET", r.share[0], r.share[1], r.share[2]);
        fflush(stdout);
    }
    return 0;
}

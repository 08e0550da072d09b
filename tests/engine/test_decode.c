/* SPDX-License-Identifier: MIT */
/*
 * test_decode: a few queries against a cache, with every bias by distance, on every instruction set
 *
 * The tables below have what decoding treats apart: one key; more keys than a block; keys that all lie behind
 * or all before the token, so that every distance is beyond the ends of a table; windows that begin within a
 * run of a table; positions by twos; keys that step otherwise than queries, whose biases are looked up one by
 * one; widths that are constants in the kernels, others, and one that passes through scratch. The reference
 * executor reads the same tensors, of 32 and 16 bits. What an output may be off by:
 *
 *   scores   a score is off by 2^-20 of the largest one at most, a weight by as much of itself, and weights
 *            add to 1: that times sum_j w_j |v_j - o|, the spread
 *   sums     of n = Lk products, each rounded to u = 2^-24 of a partial sum, which is sum_j w_j |v_j| at
 *            most. Roundings are as good as independent, so 6 sqrt(n) u of that is exceeded once in 3e7
 *            numbers (Higham and Mary 2019, SIAM J. Sci. Comput. 41: 2 exp(-6^2 / 2)). The logarithm of the
 *            sum of the weights is off by 6 sqrt(n) u, and rounded.
 *   weights  where q, k and v are bf16, the processor multiplies pairs and values are read as they lie,
 *            weights are rounded by 2^-8 of themselves and divided by their own sum: 2^-8 / (1 - 2^-8) of the
 *            spread, and as they are rounded independently, 6 * 2^-8 of the root of sum_j (w_j (v_j - o))^2
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernels/kernels.h"
#include "workspace.h"

static const struct shape {
    posenc_dims dims;
    double      q_start, k_start, q_step, k_step;
} shapes[] = {
    {{.B = 2, .H = 4, .G = 2, .Lq = 1, .Lk = 1, .D = 64, .Dv = 64}, 3, 3, 1, 1},
    {{.B = 1, .H = 4, .G = 1, .Lq = 1, .Lk = 2049, .D = 64, .Dv = 64}, 2048, 0, 1, 1},
    {{.B = 1, .H = 6, .G = 2, .Lq = 1, .Lk = 1029, .D = 128, .Dv = 128}, 2900, 600, 1, 1},
    {{.B = 1, .H = 6, .G = 2, .Lq = 3, .Lk = 700, .D = 96, .Dv = 32}, 300, 0, 1, 1},
    {{.B = 1, .H = 2, .G = 1, .Lq = 5, .Lk = 130, .D = 128, .Dv = 64}, 0, 100, 1, 1},
    {{.B = 1, .H = 2, .G = 2, .Lq = 2, .Lk = 300, .D = 32, .Dv = 96}, 400, 0, 2, 2},
    {{.B = 1, .H = 2, .G = 1, .Lq = 4, .Lk = 150, .D = 20, .Dv = 64}, 449, 0, 1, 3},
};

static const char *const specs[] = {
    "nope",
    "alibi",
    "alibi[learned=yes]",
    "t5[num_buckets=12:max_distance=40]",
    "t5[max_distance=600:bidirectional=yes]",
    "kerple_log",
    "kerple_power",
    "sandwich[d_bar=16]",
    "relative_table[max_relative=50]",
    "relative_table[max_relative=700]",
    "toeplitz[first=-3000:count=6001]",
    "nope[temperature=ssmax:sink=head]",
    "t5[max_distance=40:temperature=llama4:temper_length=40:temper_scale=0.5:sink=head]",
    "nope[softcap=3:sink=head]",
    "rope+t5[max_distance=100]"};

static const int masks[] = {POSENC_MASK_CAUSAL, POSENC_MASK_NONE, POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW,
                            POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING};

enum {
    SHAPES = sizeof shapes / sizeof *shapes,
    SPECS  = sizeof specs / sizeof *specs,
    MASKS  = sizeof masks / sizeof *masks,
    WINDOW = 170,
    MOST   = 4
};

/* ---- a problem ---- */

typedef struct problem {
    const char         *spec;
    const struct shape *shape;
    int                 mask;
    posenc_encoding    *e;
    posenc_tensor       q, k, v, key_allowed, params[MOST];
    double             *values; /* what v holds */
} problem;

static void stop(const problem *p, const posenc_error *err)
{
    fail_msg("%s, mask %d, %d keys: %s", p->spec, p->mask, (int)p->shape->dims.Lk, err->message);
}

static double put(const posenc_tensor *x, int64_t i, float value)
{
    uint16_t *half = x->data;
    if (x->dtype == POSENC_DTYPE_BF16)
        return (double)pe_half_bf16_to_float(half[i] = pe_half_float_to_bf16(value));
    if (x->dtype == POSENC_DTYPE_F16)
        return (double)pe_half_f16_to_float(half[i] = pe_half_float_to_f16(value));
    return (double)(((float *)x->data)[i] = value);
}

/* Normal numbers [a, b, c, d]; in `exact`, if not NULL, what is stored. */
static posenc_tensor draw(posenc_dtype dtype, const char *name, int64_t a, int64_t b, int64_t c, int64_t d,
                          double *exact)
{
    const int64_t       n = a * b * c * d;
    const posenc_tensor x = posenc_tensor_contiguous(malloc((size_t)n * posenc_dtype_size(dtype)), dtype, 4,
                                                     (int64_t[]){a, b, c, d});
    for (int64_t i = 0; i < n; i++) {
        const double stored = put(&x, i, (float)posenc_random_normal(5, name, (uint64_t)i));
        if (exact)
            exact[i] = stored;
    }
    return x;
}

/* As an encoding starts, but a little off, and nowhere 0. */
static void draw_params(problem *p)
{
    posenc_error err;
    int64_t      count[MOST];
    for (int i = 0; i < posenc_param_count(p->e); i++) {
        int32_t ndim;
        int64_t size[POSENC_MAX_DIMS];
        if (posenc_param_shape(p->e, &p->shape->dims, i, &ndim, size, &err))
            stop(p, &err);
        count[i] = 1;
        for (int a = 0; a < ndim; a++)
            count[i] *= size[a];
        p->params[i] =
            posenc_tensor_contiguous(calloc((size_t)count[i], sizeof(double)), POSENC_DTYPE_F64, ndim, size);
    }
    if (posenc_param_init(p->e, &p->shape->dims, p->params, 1, &err))
        stop(p, &err);
    for (int i = 0; i < posenc_param_count(p->e); i++)
        for (int64_t n = 0; n < count[i]; n++) {
            double *x = (double *)p->params[i].data + n;
            *x        = *x != 0 ? *x * (1 - 0.3 * posenc_random_uniform(5, "share", (uint64_t)n))
                                : posenc_random_normal(5, "param", (uint64_t)n);
        }
}

static problem make_problem(const char *spec, const struct shape *s, int mask, posenc_dtype dtype)
{
    const posenc_dims *d       = &s->dims;
    uint8_t           *allowed = malloc((size_t)(d->B * d->Lk));
    posenc_error       err;
    problem            p = {.spec = spec, .shape = s, .mask = mask};
    if (posenc_encoding_create(&p.e, spec, NULL, &err))
        stop(&p, &err);
    p.values = malloc((size_t)(d->B * d->G * d->Lk * d->Dv) * sizeof *p.values);
    p.q      = draw(dtype, "q", d->B, d->H, d->Lq, d->D, NULL);
    p.k      = draw(dtype, "k", d->B, d->G, d->Lk, d->D, NULL);
    p.v      = draw(dtype, "v", d->B, d->G, d->Lk, d->Dv, p.values);
    for (int64_t i = 0; i < d->B * d->Lk; i++)
        allowed[i] = posenc_random_uniform(5, "allowed", (uint64_t)i) < 0.7;
    p.key_allowed = posenc_tensor_contiguous(allowed, POSENC_DTYPE_U8, 2, (int64_t[]){d->B, d->Lk});
    draw_params(&p);
    return p;
}

static void free_problem(problem *p)
{
    for (int i = 0; i < posenc_param_count(p->e); i++)
        free(p->params[i].data);
    free(p->q.data), free(p->k.data), free(p->v.data);
    free(p->key_allowed.data), free(p->values);
    posenc_encoding_free(p->e);
}

/* ---- a run ---- */

typedef struct result {
    void  *o, *lse;     /* of the executor's type */
    size_t size, count; /* of a number; of outputs */
} result;

/* scores: [B, H, Lq, Lk] before masks; NULL: not wanted */
static result run(const problem *p, posenc_executor executor, int threads, double *scores)
{
    const posenc_dims *d     = &p->shape->dims;
    const posenc_dtype dtype = executor == POSENC_EXECUTOR_REFERENCE ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32;
    const size_t       size  = posenc_dtype_size(dtype);
    posenc_options     o     = posenc_options_default();
    posenc_plan       *plan;
    posenc_error       err;
    result             r = {.size = size, .count = (size_t)(d->B * d->H * d->Lq * d->Dv)};
    r.o                  = malloc(r.count * size);
    r.lse                = malloc((size_t)(d->B * d->H * d->Lq) * size);
    o.executor           = executor;
    o.mask               = p->mask;
    o.window             = o.mask & POSENC_MASK_WINDOW ? WINDOW : 0;
    o.threads            = threads;
    o.max_distances      = 4096; /* of positions by twos and threes */
    if (posenc_plan_create(&plan, p->e, d, &o, &err))
        stop(p, &err);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_SCORES);
    posenc_attend_in in   = {
          .size = sizeof in, .q = p->q, .k = p->k, .v = p->v, .params = (posenc_tensor *)p->params};
    in.q_pos = posenc_positions_range(p->shape->q_start, p->shape->q_step);
    in.k_pos = posenc_positions_range(p->shape->k_start, p->shape->k_step);
    if (p->mask & POSENC_MASK_KEY_PADDING)
        in.key_allowed = p->key_allowed;
    posenc_attend_out out = {.size = sizeof out};
    out.o                 = posenc_tensor_contiguous(r.o, dtype, 4, (int64_t[]){d->B, d->H, d->Lq, d->Dv});
    out.lse               = posenc_tensor_contiguous(r.lse, dtype, 3, (int64_t[]){d->B, d->H, d->Lq});
    if (posenc_attend(plan, &in, &out, &work, &err))
        stop(p, &err);
    if (scores) {
        posenc_tensor S =
            posenc_tensor_contiguous(scores, POSENC_DTYPE_F64, 4, (int64_t[]){d->B, d->H, d->Lq, d->Lk});
        if (posenc_scores(plan, &in, &S, &work, &err))
            stop(p, &err);
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return r;
}

static void free_result(result *r)
{
    free(r->o), free(r->lse);
}

/* ---- comparison ---- */

/* A sum of n numbers, in shares of the sum of their sizes. */
static double sums_off(int64_t n)
{
    return 6 * sqrt((double)n) * 0x1p-24;
}

static int is_allowed(const problem *p, int64_t b, int64_t i, int64_t j)
{
    const struct shape *s = p->shape;
    const double        t = s->q_start + (double)i * s->q_step - s->k_start - (double)j * s->k_step;
    return (!(p->mask & POSENC_MASK_CAUSAL) || t >= 0) &&
           (!(p->mask & POSENC_MASK_WINDOW) || fabs(t) < WINDOW) &&
           (!(p->mask & POSENC_MASK_KEY_PADDING) ||
            ((const uint8_t *)p->key_allowed.data)[b * s->dims.Lk + j]);
}

/* Are weights rounded? */
static int are_rounded(const problem *p, const char *isa)
{
    return p->v.dtype == POSENC_DTYPE_BF16 && !strcmp(isa, "avx512bf16") && p->shape->dims.Dv % 32 == 0;
}

/* How far column c of the values of (b, g) may lead from its output o, where the largest score is `steep`. */
static double allowed_error(const problem *p, const double *weight, int64_t bg, int64_t c, double o,
                            double steep, int rounded)
{
    const posenc_dims *d      = &p->shape->dims;
    double             spread = 0, square = 0, size = 0;
    for (int64_t j = 0; j < d->Lk; j++) {
        const double v = p->values[(bg * d->Lk + j) * d->Dv + c];
        spread += weight[j] * fabs(v - o);
        square += pow(weight[j] * (v - o), 2);
        size += weight[j] * fabs(v);
    }
    return 0x1p-20 * steep * spread + sums_off(d->Lk) * size +
           (rounded ? 0x1p-8 / (1 - 0x1p-8) * fmin(spread, 6 * sqrt(square)) : 0);
}

/* Row `row` of [B, H, Lq]: S its scores, weight room for as many. */
static void check_row(const problem *p, const result *got, const result *want, const double *S,
                      double *weight, const char *isa, int64_t row)
{
    const posenc_dims *d = &p->shape->dims;
    const int64_t      i = row % d->Lq, h = row / d->Lq % d->H, b = row / d->Lq / d->H, g = h / (d->H / d->G);
    const double       lse = ((const double *)want->lse)[row], is = (double)((const float *)got->lse)[row];
    const double      *o     = (const double *)want->o + row * d->Dv;
    const float       *y     = (const float *)got->o + row * d->Dv;
    double             steep = 1;
    for (int64_t j = 0; j < d->Lk; j++) {
        const int allowed = is_allowed(p, b, i, j);
        steep             = fmax(steep, allowed ? fabs(S[j]) : 0);
        weight[j]         = allowed ? exp(S[j] - lse) : 0;
    }
    if (lse == -INFINITY ? is != -INFINITY
                         : !(fabs(is - lse) <= sums_off(d->Lk) + 0x1p-24 * fabs(lse) + 0x1p-20 * steep))
        fail_msg("%s, %s, mask %d, %d keys: lse of row %d is %.9g, not %.9g", isa, p->spec, p->mask,
                 (int)d->Lk, (int)row, is, lse);
    for (int64_t c = 0; c < d->Dv; c++) {
        const double allowed =
            lse > -INFINITY ? allowed_error(p, weight, b * d->G + g, c, o[c], steep, are_rounded(p, isa)) : 0;
        if (!(fabs((double)y[c] - o[c]) <= allowed))
            fail_msg("%s, %s, mask %d, %d keys: o[%d,%d] is %.9g, not %.9g; %.3g times what is allowed", isa,
                     p->spec, p->mask, (int)d->Lk, (int)row, (int)c, (double)y[c], o[c],
                     fabs((double)y[c] - o[c]) / allowed);
    }
}

static void check_on(const problem *p, const char *isa, const result *want, const double *S, double *weight)
{
    const posenc_dims *d    = &p->shape->dims;
    const int64_t      rows = d->B * d->H * d->Lq;
    assert_int_equal(setenv("POSENC_ISA", isa, 1), 0);
    result got = run(p, POSENC_EXECUTOR_TILED, 1, NULL), again = run(p, POSENC_EXECUTOR_TILED, 2, NULL);
    for (int64_t row = 0; row < rows; row++)
        check_row(p, &got, want, S + row * d->Lk, weight, isa, row);
    assert_memory_equal(got.o, again.o, got.count * got.size);
    assert_memory_equal(got.lse, again.lse, (size_t)rows * got.size);
    free_result(&got), free_result(&again);
}

static void check_all(posenc_dtype dtype, int mask_count)
{
    for (int s = 0; s < SHAPES; s++)
        for (int e = 0; e < SPECS; e++)
            for (int m = 0; m < mask_count; m++) {
                const posenc_dims *d      = &shapes[s].dims;
                problem            p      = make_problem(specs[e], &shapes[s], masks[m], dtype);
                double            *S      = malloc((size_t)(d->B * d->H * d->Lq * d->Lk) * sizeof *S);
                double            *weight = malloc((size_t)d->Lk * sizeof *weight);
                result             want   = run(&p, POSENC_EXECUTOR_REFERENCE, 1, S);
                for (int isa = 0; pe_kernels_at(isa); isa++)
                    check_on(&p, pe_kernels_at(isa)->isa, &want, S, weight);
                free_result(&want);
                free(S), free(weight);
                free_problem(&p);
            }
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
}

static void a_cache_of_floats_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all(POSENC_DTYPE_F32, MASKS);
}

static void a_cache_of_bf16_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all(POSENC_DTYPE_BF16, 1);
}

static void a_cache_of_f16_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all(POSENC_DTYPE_F16, 1);
}

/* ---- what is no number ---- */

static void put_special(posenc_tensor *k, int64_t at, int is_nan)
{
    static const uint16_t halves[] = {0x7c00, 0x7e00}, brains[] = {0x7f80, 0x7fc0};
    if (k->dtype == POSENC_DTYPE_F32)
        ((float *)k->data)[at] = is_nan ? NAN : INFINITY;
    else
        ((uint16_t *)k->data)[at] = (k->dtype == POSENC_DTYPE_F16 ? halves : brains)[is_nan];
}

/* Outputs that are NaN in the reference are so, and no others. */
static void check_specials(const problem *p, const char *isa, const result *want)
{
    const posenc_dims *d = &p->shape->dims;
    assert_int_equal(setenv("POSENC_ISA", isa, 1), 0);
    result got = run(p, POSENC_EXECUTOR_TILED, 1, NULL);
    for (int64_t row = 0; row < d->B * d->H * d->Lq; row++) {
        const float lse = ((float *)got.lse)[row], o = ((float *)got.o)[row * d->Dv];
        if (!isnan(lse) != !isnan(((double *)want->lse)[row]) ||
            !isnan(o) != !isnan(((double *)want->o)[row * d->Dv]))
            fail_msg("%s, %s, Lq=%d, row %d: o %g, lse %g; the reference has lse %g", isa,
                     p->k.dtype == POSENC_DTYPE_F32   ? "f32"
                     : p->k.dtype == POSENC_DTYPE_F16 ? "f16"
                                                      : "bf16",
                     (int)d->Lq, (int)row, (double)o, (double)lse, ((double *)want->lse)[row]);
    }
    free_result(&got);
}

/* Key `key` of the second key head holds what is no number. */
static void check_key(const struct shape *shape, posenc_dtype dtype, int64_t key, int is_nan)
{
    problem p = make_problem("nope", shape, POSENC_MASK_CAUSAL, dtype);
    put_special(&p.k, (shape->dims.Lk + key) * shape->dims.D + 3, is_nan);
    result want = run(&p, POSENC_EXECUTOR_REFERENCE, 1, NULL);
    for (int isa = 0; pe_kernels_at(isa); isa++)
        check_specials(&p, pe_kernels_at(isa)->isa, &want);
    free_result(&want);
    free_problem(&p);
}

/* A key that is NaN or infinite spoils the rows that see it, on every road (a token, a prompt): none may
   leave it out in silence. Nor where a row sees no other key: the reference once took such a row for one
   without keys. */
static void a_key_that_is_no_number_is_not_left_out(void **state)
{
    static const struct shape two[] = {
        {{.B = 1, .H = 4, .G = 2, .Lq = 1, .Lk = 200, .D = 64, .Dv = 64}, 199, 0, 1, 1},
        {{.B = 1, .H = 4, .G = 2, .Lq = 20, .Lk = 200, .D = 64, .Dv = 64}, 180, 0, 1, 1}};
    static const posenc_dtype dtypes[] = {POSENC_DTYPE_F32, POSENC_DTYPE_BF16, POSENC_DTYPE_F16};
    static const struct shape only[]   = {
          {{.B = 1, .H = 4, .G = 2, .Lq = 1, .Lk = 1, .D = 64, .Dv = 64}, 0, 0, 1, 1},
          {{.B = 1, .H = 4, .G = 2, .Lq = 20, .Lk = 20, .D = 64, .Dv = 64}, 0, 0, 1, 1}};
    static const int64_t keys[] = {5, 199};
    (void)state;
    for (int i = 0; i < 2 * 3 * 2 * 2; i++)
        check_key(&two[i % 2], dtypes[i / 2 % 3], keys[i / 6 % 2], i / 12);
    for (int i = 0; i < 2 * 3; i++)
        check_key(&only[i % 2], dtypes[i / 2], 0, 1);
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_of_floats_agrees_with_the_reference),
        cmocka_unit_test(a_cache_of_bf16_agrees_with_the_reference),
        cmocka_unit_test(a_cache_of_f16_agrees_with_the_reference),
        cmocka_unit_test(a_key_that_is_no_number_is_not_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

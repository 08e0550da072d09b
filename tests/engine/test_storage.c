/* SPDX-License-Identifier: MIT */
/*
 * test_storage: attention forward on tensors of 16 bits, and of few queries, on every instruction set
 *
 * The reference executor reads the very same tensors, so every difference is arithmetic. Where weights stay
 * float the tolerance is that of float (2e-6 of the row's scale). Where they are rounded to bf16 (q, k and v
 * all bf16, a processor that multiplies pairs; of few queries only where values are read as they lie) each
 * weight is off by d_j, |d_j| <= 2^-8, and they are divided by their own sum, so
 *
 *     |o - exact| <= 2^-8 / (1 - 2^-8) * sum_j w_j |v_j - exact|        lse is not touched
 *
 * and where q and k of many queries are turned as well, each of their numbers is rounded once more: scores
 * move by at most scale * (2^-7 + 2^-16) * sum_d |q_d k_d|, weights by twice that, which the same sum bounds.
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

typedef struct shape {
    posenc_dims dims;
    double      q_start; /* position of the first query */
} shape;

static const shape shapes[] = {
    {{.B = 2, .H = 2, .G = 1, .Lq = 70, .Lk = 70, .D = 64, .Dv = 64}, 0},
    {{.B = 1, .H = 2, .G = 1, .Lq = 66, .Lk = 131, .D = 32, .Dv = 48}, 65},
    {{.B = 1, .H = 1, .G = 1, .Lq = 9, .Lk = 301, .D = 128, .Dv = 128}, 292},
    {{.B = 1, .H = 3, .G = 3, .Lq = 67, .Lk = 3, .D = 6, .Dv = 5}, 0},
    {{.B = 2, .H = 8, .G = 2, .Lq = 1, .Lk = 533, .D = 128, .Dv = 128}, 532},
    {{.B = 1, .H = 8, .G = 1, .Lq = 5, .Lk = 261, .D = 80, .Dv = 80}, 256},
    {{.B = 1, .H = 2, .G = 2, .Lq = 3, .Lk = 40, .D = 20, .Dv = 9}, 12},
    {{.B = 1, .H = 16, .G = 1, .Lq = 8, .Lk = 590, .D = 32, .Dv = 32}, 582}, /* chunks of several blocks */
};

static const char *const specs[] = {"nope",
                                    "alibi",
                                    "t5[scale=0.125:max_distance=40]",
                                    "rope",
                                    "rope[layout=half]+alibi",
                                    "urpe[rows=2049:index_offset=1024]"};

static const int masks[] = {POSENC_MASK_NONE, POSENC_MASK_CAUSAL, POSENC_MASK_WINDOW,
                            POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING,
                            POSENC_MASK_KEY_PADDING};

enum {
    SHAPES       = sizeof shapes / sizeof *shapes,
    SPECS        = sizeof specs / sizeof *specs,
    MASKS        = sizeof masks / sizeof *masks,
    WINDOW       = 21,
    MOST         = 4,
    MOST_KEYS    = 600, /* of the shapes above */
    MOST_COLUMNS = 128
};

/* ---- a problem ---- */

typedef struct numbers {
    posenc_dtype dtype;
    int64_t      count;
    void        *data;
    double      *exact; /* what data holds */
} numbers;

static void store(const numbers *x, int64_t i, double value)
{
    const float y = (float)value;
    switch (x->dtype) {
    case POSENC_DTYPE_F64: ((double *)x->data)[i] = value, x->exact[i] = value; break;
    case POSENC_DTYPE_BF16:
        ((uint16_t *)x->data)[i] = pe_half_float_to_bf16(y);
        x->exact[i]              = (double)pe_half_bf16_to_float(pe_half_float_to_bf16(y));
        break;
    case POSENC_DTYPE_F16:
        ((uint16_t *)x->data)[i] = pe_half_float_to_f16(y);
        x->exact[i]              = (double)pe_half_f16_to_float(pe_half_float_to_f16(y));
        break;
    default: ((float *)x->data)[i] = y, x->exact[i] = (double)y;
    }
}

/* What is not stored, in a result or behind the last row, is not a number. */
static numbers make_numbers(int64_t n, posenc_dtype dtype, const char *name, double scale)
{
    const size_t  bytes = (size_t)(n + MOST_COLUMNS) * sizeof(double);
    const numbers x     = {dtype, n, malloc(bytes), calloc((size_t)n, sizeof(double))};
    memset(x.data, 0xff, bytes);
    for (int64_t i = 0; name && i < n; i++)
        store(&x, i, scale * posenc_random_normal(3, name, (uint64_t)i));
    return x;
}

static void free_numbers(numbers *x)
{
    free(x->data);
    free(x->exact);
}

typedef struct problem {
    const char      *spec;
    const shape     *shape;
    int              mask, threads;
    posenc_products  products;
    posenc_encoding *e;
    numbers          q, k, v;
    uint8_t         *key_allowed;
    posenc_tensor    params[MOST];
} problem;

static void stop(const posenc_error *err)
{
    fail_msg("%s", err->message);
}

static problem make_problem(const char *spec, const shape *s, int mask, const posenc_dtype types[3],
                            double sharpness)
{
    const posenc_dims *d = &s->dims;
    posenc_error       err;
    problem            p = {.spec = spec, .shape = s, .mask = mask, .threads = 1};
    if (posenc_encoding_create(&p.e, spec, NULL, &err))
        stop(&err);
    p.q           = make_numbers(d->B * d->H * d->Lq * d->D, types[0], "q", sharpness);
    p.k           = make_numbers(d->B * d->G * d->Lk * d->D, types[1], "k", 1);
    p.v           = make_numbers(d->B * d->G * d->Lk * d->Dv, types[2], "v", 1);
    p.key_allowed = malloc((size_t)(d->B * d->Lk));
    for (int64_t i = 0; i < d->B * d->Lk; i++) /* the last item of a batch sees nothing at its end */
        p.key_allowed[i] = posenc_random_uniform(3, "allowed", (uint64_t)i) < 0.7;
    for (int i = 0; i < posenc_param_count(p.e); i++) {
        int32_t ndim;
        int64_t size[POSENC_MAX_DIMS], n = 1;
        if (posenc_param_shape(p.e, d, i, &ndim, size, &err))
            stop(&err);
        for (int a = 0; a < ndim; a++)
            n *= size[a];
        p.params[i] =
            posenc_tensor_contiguous(calloc((size_t)n, sizeof(double)), POSENC_DTYPE_F64, ndim, size);
    }
    if (posenc_param_init(p.e, d, p.params, 1, &err))
        stop(&err);
    return p;
}

static void free_problem(problem *p)
{
    free_numbers(&p->q), free_numbers(&p->k), free_numbers(&p->v);
    for (int i = 0; i < posenc_param_count(p->e); i++)
        free(p->params[i].data);
    free(p->key_allowed);
    posenc_encoding_free(p->e);
}

static posenc_tensor view(const numbers *x, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return posenc_tensor_contiguous(x->data, x->dtype, 4, (int64_t[]){a, b, c, d});
}

static posenc_attend_in inputs(const problem *p)
{
    const posenc_dims *d  = &p->shape->dims;
    posenc_attend_in   in = {.size   = sizeof in,
                             .q      = view(&p->q, d->B, d->H, d->Lq, d->D),
                             .k      = view(&p->k, d->B, d->G, d->Lk, d->D),
                             .v      = view(&p->v, d->B, d->G, d->Lk, d->Dv),
                             .q_pos  = posenc_positions_range(p->shape->q_start, 1),
                             .params = p->params};
    if (p->mask & POSENC_MASK_KEY_PADDING)
        in.key_allowed =
            posenc_tensor_contiguous(p->key_allowed, POSENC_DTYPE_U8, 2, (int64_t[]){d->B, d->Lk});
    return in;
}

typedef struct result {
    numbers o, lse;
} result;

/* scores: of the reference executor, before masks; NULL: not wanted */
static result run(const problem *p, posenc_executor executor, posenc_dtype dtype, numbers *scores)
{
    const posenc_dims *d = &p->shape->dims;
    posenc_options     o = posenc_options_default();
    posenc_plan       *plan;
    posenc_error       err;
    result             r = {make_numbers(d->B * d->H * d->Lq * d->Dv, dtype, NULL, 0),
                            make_numbers(d->B * d->H * d->Lq, dtype, NULL, 0)};
    o.executor           = executor;
    o.mask               = p->mask;
    o.window             = o.mask & POSENC_MASK_WINDOW ? WINDOW : 0;
    o.threads            = p->threads;
    o.products           = p->products;
    if (posenc_plan_create(&plan, p->e, d, &o, &err))
        stop(&err);
    posenc_workspace  work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_SCORES);
    posenc_attend_in  in   = inputs(p);
    posenc_attend_out out  = {.size = sizeof out, .o = view(&r.o, d->B, d->H, d->Lq, d->Dv)};
    out.lse = posenc_tensor_contiguous(r.lse.data, r.lse.dtype, 3, (int64_t[]){d->B, d->H, d->Lq});
    if (posenc_attend(plan, &in, &out, &work, &err))
        stop(&err);
    if (scores) {
        posenc_tensor S = view(scores, d->B, d->H, d->Lq, d->Lk);
        if (posenc_scores(plan, &in, &S, &work, &err))
            stop(&err);
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return r;
}

static void free_result(result *r)
{
    free_numbers(&r->o), free_numbers(&r->lse);
}

static int is_allowed(const problem *p, int64_t b, int64_t i, int64_t j)
{
    const int64_t t = (int64_t)p->shape->q_start + i - j;
    return (!(p->mask & POSENC_MASK_CAUSAL) || t >= 0) &&
           (!(p->mask & POSENC_MASK_WINDOW) || llabs(t) < WINDOW) &&
           (!(p->mask & POSENC_MASK_KEY_PADDING) || p->key_allowed[b * p->shape->dims.Lk + j]);
}

static double at(const numbers *x, int64_t i)
{
    return x->dtype == POSENC_DTYPE_F64 ? ((const double *)x->data)[i] : (double)((const float *)x->data)[i];
}

/* ---- comparison ---- */

/* How far a score may move because q_i and k_j are rounded once more. */
static double movable(const problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const posenc_dims *d   = &p->shape->dims;
    const int64_t      g   = h / (d->H / d->G);
    double             sum = 0, q = 0, k = 0;
    for (int64_t c = 0; c < d->D; c++) { /* a rotation keeps the length of a pair; sum |q_d k_d| <= |q| |k| */
        q += pow(p->q.exact[((b * d->H + h) * d->Lq + i) * d->D + c], 2);
        k += pow(p->k.exact[((b * d->G + g) * d->Lk + j) * d->D + c], 2);
    }
    sum = sqrt(q * k) / sqrt((double)d->D);
    return sum * (0x1p-7 + 0x1p-16);
}

/* One row of the output, lse and what of them is allowed. `rounded`: weights are in bf16; `turned`: rows are
   too. */
static void check_row(const problem *p, const result *got, const result *want, const numbers *S,
                      const char *isa, int64_t row, int rounded, int turned)
{
    const posenc_dims *d = &p->shape->dims;
    const int64_t      i = row % d->Lq, h = row / d->Lq % d->H, b = row / d->Lq / d->H, g = h / (d->H / d->G);
    const double       lse = at(&want->lse, row), is = at(&got->lse, row);
    double             moved = 0, scale = 1e-3, steep = 1, weight[MOST_KEYS];
    if (lse == -INFINITY) {
        assert_true(is == -INFINITY);
        for (int64_t c = 0; c < d->Dv; c++)
            assert_true(at(&got->o, row * d->Dv + c) == 0);
        return;
    }
    for (int64_t j = 0; turned && j < d->Lk; j++)
        moved = fmax(moved, is_allowed(p, b, i, j) ? movable(p, b, h, i, j) : 0);
    for (int64_t j = 0; j < d->Lk; j++) /* a score is only as good as float has it */
        steep = fmax(steep, is_allowed(p, b, i, j) ? fabs(at(S, row * d->Lk + j)) : 0);
    for (int64_t j = 0; j < d->Lk; j++)
        weight[j] = is_allowed(p, b, i, j) ? exp(at(S, row * d->Lk + j) - lse) : 0;
    for (int64_t c = 0; c < d->Dv; c++)
        scale = fmax(scale, fabs(at(&want->o, row * d->Dv + c)));
    if (!(fabs(is - lse) <= 4e-6 * fmax(1, fabs(lse)) + 0x1p-21 * steep + moved))
        fail_msg("%s, %s, mask %d, D=%d: lse of row %d is %.9g, not %.9g", isa, p->spec, p->mask, (int)d->D,
                 (int)row, is, lse);
    for (int64_t c = 0; c < d->Dv; c++) {
        const double o = at(&want->o, row * d->Dv + c), y = at(&got->o, row * d->Dv + c);
        double       spread = 0;
        for (int64_t j = 0; j < d->Lk; j++)
            spread += weight[j] * fabs(p->v.exact[((b * d->G + g) * d->Lk + j) * d->Dv + c] - o);
        const double allowed = 4e-6 * scale + 0x1p-20 * steep * spread + 2.2 * moved * spread +
                               (rounded ? 0x1p-8 / (1 - 0x1p-8) * spread : 0);
        if (!(fabs(y - o) <= allowed))
            fail_msg("%s, %s, mask %d, Lq=%d, D=%d: o[%d,%d] is %.9g, not %.9g; %.3g times what is allowed",
                     isa, p->spec, p->mask, (int)d->Lq, (int)d->D, (int)row, (int)c, y, o,
                     fabs(y - o) / allowed);
    }
}

static int is_gated(const problem *p)
{
    return !strncmp(p->spec, "urpe", 4);
}

/* The tiled executor on every instruction set; with two threads the same bits. */
static void check(problem *p)
{
    const posenc_dims *d    = &p->shape->dims;
    numbers            S    = make_numbers(d->B * d->H * d->Lq * d->Lk, POSENC_DTYPE_F64, NULL, 0);
    result             want = run(p, POSENC_EXECUTOR_REFERENCE, POSENC_DTYPE_F64, &S);
    const int          narrow =
        p->q.dtype == POSENC_DTYPE_BF16 && p->k.dtype == POSENC_DTYPE_BF16 && p->v.dtype == POSENC_DTYPE_BF16;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        const char *name = pe_kernels_at(isa)->isa;
        assert_int_equal(setenv("POSENC_ISA", name, 1), 0);
        const int many = d->Lq > 8, rounded = narrow && !strcmp(name, "avx512bf16") && !is_gated(p) &&
                                              (many || d->Dv % 32 == 0);
        result got = run(p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
        for (int64_t row = 0; row < d->B * d->H * d->Lq; row++)
            check_row(p, &got, &want, &S, name, row, rounded, rounded && many && strstr(p->spec, "rope"));
        p->threads   = 2;
        result again = run(p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
        p->threads   = 1;
        assert_memory_equal(got.o.data, again.o.data, (size_t)got.o.count * sizeof(float));
        assert_memory_equal(got.lse.data, again.lse.data, (size_t)got.lse.count * sizeof(float));
        free_result(&got), free_result(&again);
    }
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
    free_result(&want);
    free_numbers(&S);
}

static void check_all(const posenc_dtype types[3], double sharpness, int first_mask)
{
    for (int s = 0; s < SHAPES; s++)
        for (int e = 0; e < SPECS; e++)
            for (int m = first_mask; m < MASKS; m++) {
                if (is_gated(&(problem){.spec = specs[e]}) && shapes[s].dims.Lq > 8)
                    continue; /* the gate is the general road's there: test_executors */
                problem p = make_problem(specs[e], &shapes[s], masks[m], types, sharpness);
                check(&p);
                free_problem(&p);
            }
}

static void bf16_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all((posenc_dtype[]){POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, POSENC_DTYPE_BF16}, 1, 0);
}

static void bf16_with_a_sharp_softmax_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all((posenc_dtype[]){POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, POSENC_DTYPE_BF16}, 12, MASKS - 2);
}

static void f16_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all((posenc_dtype[]){POSENC_DTYPE_F16, POSENC_DTYPE_F16, POSENC_DTYPE_F16}, 1, MASKS - 2);
}

static void mixed_types_agree_with_the_reference(void **state)
{
    (void)state;
    check_all((posenc_dtype[]){POSENC_DTYPE_BF16, POSENC_DTYPE_F32, POSENC_DTYPE_F16}, 1, MASKS - 2);
    check_all((posenc_dtype[]){POSENC_DTYPE_F64, POSENC_DTYPE_F64, POSENC_DTYPE_BF16}, 1, MASKS - 2);
}

/* Many queries, and few. */
static const shape *const both_ways[] = {&shapes[1], &shapes[4]};

enum { WAYS = sizeof both_ways / sizeof *both_ways };

/* The best instruction set of this processor that has no products of pairs. */
static const char *without_pairs(void)
{
    const char *best = pe_kernels_choose()->isa;
    return strcmp(best, "avx512bf16") ? best : "avx512";
}

/* Named, float products are the same on the processor that has pairs as on the one that has none. */
static void products_in_float_do_not_round_weights(void **state)
{
    const posenc_dtype all[3] = {POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, POSENC_DTYPE_BF16};
    (void)state;
    for (int i = 0; i < WAYS; i++) {
        problem p   = make_problem("rope", both_ways[i], POSENC_MASK_CAUSAL, all, 2);
        p.products  = POSENC_PRODUCTS_F32;
        result best = run(&p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
        assert_int_equal(setenv("POSENC_ISA", without_pairs(), 1), 0);
        p.products   = POSENC_PRODUCTS_BY_STORAGE;
        result other = run(&p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
        assert_int_equal(unsetenv("POSENC_ISA"), 0);
        assert_memory_equal(best.o.data, other.o.data, (size_t)best.o.count * sizeof(float));
        free_result(&best), free_result(&other);
        free_problem(&p);
    }
}

/* Not named, they are of pairs on a processor that has them, whatever the mask and the bias by distance. */
static void products_by_storage_round_weights(void **state)
{
    const posenc_dtype all[3] = {POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, POSENC_DTYPE_BF16};
    (void)state;
    if (strcmp(pe_kernels_choose()->isa, "avx512bf16") != 0)
        skip();
    for (int m = 0; m < MASKS; m++)
        for (int alibi = 0; alibi < 2; alibi++) {
            problem p      = make_problem(alibi ? "alibi" : "nope", both_ways[0], masks[m], all, 2);
            result  paired = run(&p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
            p.products     = POSENC_PRODUCTS_F32;
            result floats  = run(&p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
            assert_memory_not_equal(paired.o.data, floats.o.data, (size_t)floats.o.count * sizeof(float));
            free_result(&paired), free_result(&floats);
            free_problem(&p);
        }
}

/* Weights that are rounded are divided by their own sum: a constant value comes out as it is, but for
   float. */
static void a_constant_value_survives_rounded_weights(void **state)
{
    const posenc_dtype all[3] = {POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, POSENC_DTYPE_BF16};
    (void)state;
    for (int i = 0; i < WAYS; i++) {
        problem p = make_problem("nope", both_ways[i], POSENC_MASK_CAUSAL, all, 2);
        for (int64_t n = 0; n < p.v.count; n++)
            store(&p.v, n, 1.5);
        result r = run(&p, POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32, NULL);
        for (int64_t n = 0; n < r.o.count; n++)
            assert_true(fabs(at(&r.o, n) - 1.5) <= 1.5 * 0x1p-20);
        free_result(&r);
        free_problem(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_agrees_with_the_reference),
        cmocka_unit_test(bf16_with_a_sharp_softmax_agrees_with_the_reference),
        cmocka_unit_test(f16_agrees_with_the_reference),
        cmocka_unit_test(mixed_types_agree_with_the_reference),
        cmocka_unit_test(products_in_float_do_not_round_weights),
        cmocka_unit_test(products_by_storage_round_weights),
        cmocka_unit_test(a_constant_value_survives_rounded_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_decode: a few queries against rows of a cache, and a bias by slope, on every instruction set
 *
 * Each kernel of decode.inc, and those of decode_pairs.inc, against a loop in double. Bounds are those of
 * kernels.h: a sum of n products in any order is off by n roundings of 2^-24 of the sum of their sizes.
 * Whether rows are asked for ahead, and which come next, may change no bit; rows at several places are summed
 * in another order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "guarded.h"

static const int64_t widths[] = {32, 64, 96, 128, 160, 512}, /* 64 and 128 are constants in the kernels */
    rows_tried[] = {1, 2, 3, 4, 5, 8, 11}, lengths[] = {1, 2, 3, 4, 5, 7, 8, 33, 64, 67};

enum {
    WIDTHS  = sizeof widths / sizeof *widths,
    ROWS    = sizeof rows_tried / sizeof *rows_tried,
    LENGTHS = sizeof lengths / sizeof *lengths,
    TYPES   = PE_CACHE_Q8 + 1,
    APART   = 8 /* numbers between two rows; of blocks a block */
};

#define SCALE 0.25f /* of products of pairs, and of numbers of 8 bits: changes no bit but the exponent */

/* ---- a cache ---- */

typedef struct stored {
    void    *data;
    double  *exact;
    pe_cache cache;
} stored;

/* Any bits but those of NaN: numbers below the least normal one, too. */
static void put_e4m3(stored *x, int64_t i, float value)
{
    const uint8_t bits      = (uint8_t)((int)(value * 100) & 0xff);
    ((uint8_t *)x->data)[i] = (bits & 0x7f) == 0x7f ? 0 : bits;
    x->exact[i]             = (double)(SCALE * pe_half_e4m3_to_float(((uint8_t *)x->data)[i]));
}

static void put_q8(stored *x, int64_t i, float value)
{
    char *block = (char *)x->data + i / PE_HALF_Q8 * PE_HALF_Q8_BYTES;
    if (i % PE_HALF_Q8 == 0) {
        const uint16_t step = pe_half_float_to_f16(0.01f * (1 + value * value));
        memcpy(block, &step, sizeof step);
    }
    ((int8_t *)block)[2 + i % PE_HALF_Q8] = (int8_t)((int)(value * 100) & 0xff);
    x->exact[i]                           = (double)(SCALE * pe_half_q8_to_float(x->data, i));
}

static void put(stored *x, int64_t i, float value)
{
    uint16_t *half = x->data;
    switch (x->cache.type) {
    case PE_CACHE_BF16:
        x->exact[i] = (double)pe_half_bf16_to_float(half[i] = pe_half_float_to_bf16(value));
        break;
    case PE_CACHE_F16:
        x->exact[i] = (double)pe_half_f16_to_float(half[i] = pe_half_float_to_f16(value));
        break;
    case PE_CACHE_F32: x->exact[i] = (double)(((float *)x->data)[i] = value); break;
    case PE_CACHE_E4M3: put_e4m3(x, i, value); break;
    case PE_CACHE_Q8: put_q8(x, i, value); break;
    }
}

static int64_t bytes_of(pe_cache_type type, int64_t n)
{
    return type == PE_CACHE_F32    ? n * (int64_t)sizeof(float)
           : type == PE_CACHE_E4M3 ? n
           : type == PE_CACHE_Q8   ? n / PE_HALF_Q8 * PE_HALF_Q8_BYTES
                                   : n * (int64_t)sizeof(uint16_t);
}

/* No byte behind the last row: what reads there is seen by a sanitizer. */
static stored make_stored(int64_t C, int64_t D, pe_cache_type type)
{
    const int64_t stride = D + (type == PE_CACHE_Q8 ? PE_HALF_Q8 : APART), n = (C - 1) * stride + D;
    stored        x = {malloc((size_t)bytes_of(type, n)), malloc((size_t)n * sizeof(double)), {.C = 0}};
    x.cache = (pe_cache){.rows = {x.data}, .scale = SCALE, .C = C, .D = D, .stride = stride, .type = type};
    for (int64_t i = 0; i < n; i++)
        put(&x, i, (float)posenc_random_normal(9, "cache", (uint64_t)i));
    return x;
}

static void free_stored(stored *x)
{
    free(x->data);
    free(x->exact);
}

/* The ways of knowing what comes next: found without asking; asked for, with nothing behind; with rows
   behind. And the same rows as if they were at 2, 4 and 8 places. */
enum { AT_ONE = 3, WAYS = 6 };

/* Returns 0 if there are too few rows for it. */
static int by_way(const stored *x, int way, pe_cache *cache)
{
    *cache               = x->cache;
    const int     spread = way < AT_ONE ? 0 : way - AT_ONE + 1;
    const int64_t each   = cache->C >> spread;
    cache->found         = way == 0;
    cache->far           = 1;
    cache->spread        = spread;
    for (int i = 0; i < 1 << spread; i++) {
        cache->rows[i] = (char *)x->data + bytes_of(cache->type, i * each * cache->stride);
        cache->next[i] = way >= 2 ? x->data : NULL;
    }
    cache->next_step = way >= 2 ? 4 : 0;
    return !spread || (each << spread == cache->C && each % PE_CACHE_TURN == 0);
}

typedef void check_fn(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D);

/* Of every number of rows, length and width, for kernels and a type. */
static void check_each(check_fn *check, const pe_kernels *kernels, pe_cache_type type)
{
    for (int w = 0; w < WIDTHS; w++)
        for (int r = 0; r < ROWS; r++)
            for (int n = 0; n < LENGTHS; n++)
                check(kernels, type, rows_tried[r], lengths[n], widths[w]);
}

static void check_every_type(check_fn *check)
{
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int type = 0; type < TYPES; type++)
            check_each(check, pe_kernels_at(isa), (pe_cache_type)type);
}

/* ---- products with keys ---- */

static void check_products(const char *isa, const guarded *s, int64_t stride, const double *q,
                           const stored *k, int64_t R, int64_t C, int64_t D)
{
    if (guarded_changed(s, stride, R, C) >= 0)
        fail_msg("%s: cache_scores wrote outside its rows", isa);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            double want = 0, size = 0;
            for (int64_t d = 0; d < D; d++) {
                const double product = q[r * D + d] * k->exact[c * k->cache.stride + d];
                want += product;
                size += fabs(product);
            }
            const double got = (double)s->at[r * stride + c];
            if (!(fabs(got - want) <= (double)(D / 4 + 4) * 0x1p-24 * size))
                fail_msg("%s, type %d, D=%d, R=%d, C=%d: product [%d,%d] is %.9g, not %.9g", isa,
                         (int)k->cache.type, (int)D, (int)R, (int)C, (int)r, (int)c, got, want);
        }
}

/* Queries as floats, or as pairs of bf16; what they hold. */
typedef struct queries {
    float    *floats;
    uint16_t *pairs;
    double   *exact;
} queries;

static queries make_queries(int64_t n, int paired)
{
    queries q = {malloc((size_t)n * sizeof(float)), malloc((size_t)n * sizeof(uint16_t)),
                 malloc((size_t)n * sizeof(double))};
    for (int64_t i = 0; i < n; i++) {
        q.floats[i] = (float)posenc_random_normal(9, "queries", (uint64_t)i);
        q.pairs[i]  = pe_half_float_to_bf16(q.floats[i]);
        q.exact[i]  = (double)(paired ? SCALE * pe_half_bf16_to_float(q.pairs[i]) : q.floats[i]);
    }
    return q;
}

static void free_queries(queries *q)
{
    free(q->floats);
    free(q->pairs);
    free(q->exact);
}

static void check_scores(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D,
                         int paired)
{
    const pe_bf16_kernels *pairs  = paired ? pe_kernels_bf16(kernels) : NULL;
    const int64_t          stride = C + 3;
    stored                 k      = make_stored(C, D, type);
    queries                q      = make_queries(R * D, paired);
    guarded                s[WAYS];
    for (int way = 0; way < WAYS; way++) {
        pe_cache cache;
        s[way] = guarded_make(R * stride);
        if (!by_way(&k, way, &cache))
            continue;
        guarded_remember(&s[way]);
        if (pairs)
            pairs->cache_scores(s[way].at, stride, q.pairs, D, &cache, R, SCALE);
        else
            kernels->cache_scores(s[way].at, stride, q.floats, D, &cache, R);
        check_products(kernels->isa, &s[way], stride, q.exact, &k, R, C, D);
        assert_memory_equal(s[way].memory, s[0].memory, (size_t)(R * stride + 2 * GUARD) * sizeof(float));
    }
    for (int way = 0; way < WAYS; way++)
        guarded_free(&s[way]);
    free_queries(&q);
    free_stored(&k);
}

static void check_keys(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D)
{
    check_scores(kernels, type, R, C, D, 0);
}

static void check_pairs(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D)
{
    check_scores(kernels, type, R, C, D, 1);
}

static void products_with_keys_are_sums_over_channels(void **state)
{
    (void)state;
    check_every_type(check_keys);
}

/* Where a processor has no products of pairs there is nothing to hold. */
static void products_of_pairs_are_sums_over_channels(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        if (pe_kernels_bf16(pe_kernels_at(isa)))
            check_each(check_pairs, pe_kernels_at(isa), PE_CACHE_BF16);
}

/* ---- values ---- */

static void check_sums(const char *isa, const guarded *o, int64_t stride, const float *w, int64_t w_stride,
                       const stored *v, int64_t R, int64_t C, int64_t D)
{
    if (guarded_changed(o, stride, R, D) >= 0)
        fail_msg("%s: cache_values wrote outside its rows", isa);
    for (int64_t r = 0; r < R; r++)
        for (int64_t d = 0; d < D; d++) {
            double want = (double)o->before[GUARD + r * stride + d], size = fabs(want);
            for (int64_t c = 0; c < C; c++) {
                const double product = (double)w[r * w_stride + c] * v->exact[c * v->cache.stride + d];
                want += product;
                size += fabs(product);
            }
            const double got = (double)o->at[r * stride + d];
            if (!(fabs(got - want) <= (double)(C + 1) * 0x1p-24 * size))
                fail_msg("%s, type %d, D=%d, R=%d, C=%d: output [%d,%d] is %.9g, not %.9g", isa,
                         (int)v->cache.type, (int)D, (int)R, (int)C, (int)r, (int)d, got, want);
        }
}

/* Weights as floats, or as pairs of bf16 and what they hold. */
static void make_weights(float *w, uint16_t *pairs, int64_t stride, int64_t R, int64_t C)
{
    fill_random(w, stride, R, C, "weights", 1);
    for (int64_t r = 0; pairs && r < R; r++)
        for (int64_t c = 0; c < stride; c++) {
            float *x              = w + r * stride + c;
            pairs[r * stride + c] = c < C ? pe_half_float_to_bf16(*x) : 0;
            *x                    = pe_half_bf16_to_float(pairs[r * stride + c]);
        }
}

static void check_values(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D,
                         int paired)
{
    const pe_bf16_kernels *pairs  = paired ? pe_kernels_bf16(kernels) : NULL;
    const int64_t          stride = D + 16, w_stride = C + 3;
    stored                 v = make_stored(C, D, type);
    float                 *w = malloc((size_t)(R * w_stride) * sizeof *w);
    uint16_t              *p = malloc((size_t)(R * w_stride) * sizeof *p);
    guarded                o[WAYS];
    make_weights(w, pairs ? p : NULL, w_stride, R, C);
    for (int way = 0; way < WAYS; way++) {
        pe_cache cache;
        o[way] = guarded_make(R * stride);
        if (!by_way(&v, way, &cache))
            continue;
        fill_random(o[way].at, stride, R, D, "outputs", 1);
        guarded_remember(&o[way]);
        if (pairs)
            pairs->cache_values(o[way].at, stride, p, w_stride, &cache, R);
        else
            kernels->cache_values(o[way].at, stride, w, w_stride, &cache, R);
        check_sums(kernels->isa, &o[way], stride, w, w_stride, &v, R, C, D);
        if (way < AT_ONE)
            assert_memory_equal(o[way].memory, o[0].memory, (size_t)(R * stride + 2 * GUARD) * sizeof(float));
    }
    for (int way = 0; way < WAYS; way++)
        guarded_free(&o[way]);
    free(w), free(p);
    free_stored(&v);
}

static void check_float_values(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D)
{
    check_values(kernels, type, R, C, D, 0);
}

static void check_pair_values(const pe_kernels *kernels, pe_cache_type type, int64_t R, int64_t C, int64_t D)
{
    check_values(kernels, type, R, C, D, 1);
}

static void values_are_added_by_their_weights(void **state)
{
    (void)state;
    check_every_type(check_float_values);
}

static void values_are_added_by_weights_in_pairs(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        if (pe_kernels_bf16(pe_kernels_at(isa)))
            check_each(check_pair_values, pe_kernels_at(isa), PE_CACHE_BF16);
}

/* ---- a step of the softmax ---- */

/* Rows: scores that rise from step to step, that fall, and none at all before the last step. */
enum { STEPS = 3, SOFT_ROWS = 3, MOST_COLUMNS = 160 };

static double score_of(int step, int64_t r, int64_t c)
{
    const double level = r == 0 ? 6.0 * step : r == 1 ? -6.0 * step : step < STEPS - 1 ? -INFINITY : 0;
    return (double)(float)(level +
                           3 * posenc_random_normal(9, "softmax", (uint64_t)(step * 1000 + r * 200 + c)));
}

typedef struct soft {
    float    S[SOFT_ROWS][MOST_COLUMNS];
    uint16_t P[SOFT_ROWS][MOST_COLUMNS];
    float    m[SOFT_ROWS], l[SOFT_ROWS], rounded[SOFT_ROWS], factor[SOFT_ROWS];
} soft;

static void take_step(soft *x, const pe_kernels *kernels, int paired, int64_t columns)
{
    const pe_softmax_sums sums = {x->m, x->l, x->rounded, x->factor};
    if (paired)
        pe_kernels_bf16(kernels)->softmax_step(x->P[0], MOST_COLUMNS, x->S[0], MOST_COLUMNS, &sums, SOFT_ROWS,
                                               columns);
    else
        kernels->softmax_step(x->S[0], MOST_COLUMNS, x->m, x->l, x->factor, SOFT_ROWS, columns);
}

/* What e^x may be off: kernels.h, an ulp being 2^-23 of a number at most. */
static double off(double x)
{
    return x > -INFINITY ? exp(x) * (3 + 1.25 * fabs(x)) * 0x1p-23 : 0;
}

/* Weights of row r in its step, their sum over all steps so far, and that of the weights as they meet
   values. */
static void check_step(const soft *x, const char *isa, int paired, int step, int64_t r, int64_t columns,
                       double rounded_before)
{
    const double m    = (double)x->m[r];
    double       most = -INFINITY, l = 0, allowed = 0, rounded = rounded_before * (double)x->factor[r];
    for (int s = 0; s <= step; s++)
        for (int64_t c = 0; c < columns; c++)
            most = fmax(most, score_of(s, r, c));
    if (m != most)
        fail_msg("%s: the largest of row %d is %g, not %g", isa, (int)r, m, most);
    for (int s = 0; most > -INFINITY && s <= step; s++)
        for (int64_t c = 0; c < columns; c++) {
            const double weight = exp(score_of(s, r, c) - most);
            l += weight;
            allowed += 2 * off(score_of(s, r, c) - most) + STEPS * weight * off(0);
        }
    if (!(fabs((double)x->l[r] - l) <= allowed + (double)(STEPS * columns) * 0x1p-24 * l))
        fail_msg("%s: the sum of row %d is %.9g, not %.9g", isa, (int)r, (double)x->l[r], l);
    for (int64_t c = 0; c < columns; c++) {
        const double y = score_of(step, r, c) - most, want = most > -INFINITY ? exp(y) : 0,
                     got = (double)(paired ? pe_half_bf16_to_float(x->P[r][c]) : x->S[r][c]);
        if (!(fabs(got - want) <= off(y) + (paired ? 0x1p-8 * (want + off(y)) : 0)))
            fail_msg("%s: weight [%d,%d] is %.9g, not %.9g", isa, (int)r, (int)c, got, want);
        rounded += got;
    }
    if (paired && !(fabs((double)x->rounded[r] - rounded) <= (double)(columns + 2) * 0x1p-24 * rounded))
        fail_msg("%s: the rounded sum of row %d is %.9g, not %.9g", isa, (int)r, (double)x->rounded[r],
                 rounded);
}

static void check_softmax(const pe_kernels *kernels, int paired, int64_t columns)
{
    soft x = {0};
    for (int64_t r = 0; r < SOFT_ROWS; r++)
        x.m[r] = -INFINITY;
    for (int step = 0; step < STEPS; step++) {
        double before[SOFT_ROWS];
        for (int64_t r = 0; r < SOFT_ROWS; r++) {
            before[r] = (double)x.rounded[r];
            for (int64_t c = 0; c < padded(columns); c++)
                x.S[r][c] = c < columns ? (float)score_of(step, r, c) : -INFINITY;
        }
        take_step(&x, kernels, paired, columns);
        for (int64_t r = 0; r < SOFT_ROWS; r++)
            check_step(&x, kernels->isa, paired, step, r, columns, before[r]);
    }
}

static void a_step_of_the_softmax_keeps_its_sums(void **state)
{
    static const int64_t columns[] = {1, 5, 16, 17, 33, 48, 130};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (size_t n = 0; n < sizeof columns / sizeof *columns; n++)
            for (int paired = 0; paired <= (pe_kernels_bf16(pe_kernels_at(isa)) != NULL); paired++)
                check_softmax(pe_kernels_at(isa), paired, columns[n]);
}

/* ---- a bias by slope ---- */

/* The distances t0, t0 + step, ... of a row: those of a cache behind the token, around 0, far beyond what
   floats count, and a far start with a near end. */
static const struct {
    double t0, step, near;
} slopes[] = {
    {2048, -1, 0},    {70, -1, 3},           {-5, 1, 0},        {0, 0, 0},        {16777000, -3, 12},
    {16777216, 1, 0}, {2147483000, -1, 100}, {16777230, -1, 0}, {-16777216, 1, 0}};

static void a_slope_times_the_distance_is_added(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++)
            for (int n = 0; n < LENGTHS; n++) {
                const pe_kernels *kernels = pe_kernels_at(isa);
                const double      slope = -0x1p-3 / 3, product = !strcmp(kernels->isa, "plain") ? 1 : 0.5;
                guarded           x = guarded_make(padded(lengths[n]));
                fill_random(x.at, 0, 1, padded(lengths[n]), "scores", 1);
                guarded_remember(&x);
                kernels->slope_row(x.at, slope, slopes[i].t0, slopes[i].step, slopes[i].near, lengths[n]);
                if (guarded_changed(&x, padded(lengths[n]), 1, padded(lengths[n])) >= 0)
                    fail_msg("%s: slope_row wrote outside its row", kernels->isa);
                for (int64_t c = 0; c < lengths[n]; c++) {
                    const double bias =
                        slope * (fabs(slopes[i].t0 + (double)c * slopes[i].step) - slopes[i].near);
                    const double want = (double)x.before[GUARD + c] + bias, got = (double)x.at[c];
                    const double allowed = (product + 0x1p-22) * ulp_of(bias) + 0.5 * ulp_of(got);
                    if (!(fabs(got - want) <= allowed))
                        fail_msg("%s, row %d of %d: number %d is %.9g, not %.9g", kernels->isa, (int)i,
                                 (int)lengths[n], (int)c, got, want);
                }
                guarded_free(&x);
            }
}

static void running_sums_are_subtracted_in_double(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < LENGTHS; n++) {
            const pe_kernels *kernels = pe_kernels_at(isa);
            double           *to      = malloc((size_t)(lengths[n] + 1) * sizeof *to);
            guarded           x       = guarded_make(lengths[n]);
            assert_non_null(to);
            fill_random(x.at, 0, 1, lengths[n], "scores", 1);
            guarded_remember(&x);
            for (int64_t c = 0; c < lengths[n]; c++)
                to[c] = -3e5 - 0.3 * (double)c; /* floats are 0.03 apart here */
            kernels->drift_row(x.at, -3e5 - 77.1, to, lengths[n]);
            for (int64_t c = 0; c < lengths[n]; c++) {
                const float want = x.before[GUARD + c] + (float)((-3e5 - 77.1) - to[c]);
                if (x.at[c] != want)
                    fail_msg("%s: number %d is %.9g, not %.9g", kernels->isa, (int)c, (double)x.at[c],
                             (double)want);
            }
            guarded_free(&x);
            free(to);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_with_keys_are_sums_over_channels),
        cmocka_unit_test(products_of_pairs_are_sums_over_channels),
        cmocka_unit_test(values_are_added_by_their_weights),
        cmocka_unit_test(values_are_added_by_weights_in_pairs),
        cmocka_unit_test(a_step_of_the_softmax_keeps_its_sums),
        cmocka_unit_test(a_slope_times_the_distance_is_added),
        cmocka_unit_test(running_sums_are_subtracted_in_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_attend: what happens to a tile of scores between two products, on every instruction set
 *
 * Each kernel of attend.inc against a plain loop. Where a kernel makes one sum or product of floats in a stated order
 * the bits must be equal; the exponential is held against exp in double with the Error line of kernels.h, 2 ulp, and
 * sums of n weights with n roundings of 2^-24.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "guarded.h"

enum { EXP_ULP = 2 };

static const int64_t columns_tried[] = {1, 5, 15, 16, 17, 31, 32, 40, 64, 77};

enum { COLUMNS = sizeof columns_tried / sizeof *columns_tried, ROWS = 5 };

/* ---- scores_finish ---- */

/* A stream of [R, columns] with step `step`: readable over the padding, rows at at + r*step. */
static float *make_stream(guarded *g, int64_t step, int64_t R, int64_t columns, const char *name)
{
    const int64_t span = (step < 0 ? -step : step) * (R - 1);
    *g                 = guarded_make(span + padded(columns));
    fill_random(g->at, 0, 1, span + padded(columns), name, 1);
    return g->at + (step < 0 ? span : 0);
}

static void check_scores(const char *isa, const guarded *s, int64_t stride, const pe_tile_terms *t, int64_t R,
                         int64_t columns)
{
    if (guarded_changed(s, stride, R, padded(columns)) >= 0)
        fail_msg("%s: scores_finish wrote outside its rows", isa);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < padded(columns); c++) {
            const float got = s->at[r * stride + c];
            if (c >= columns || (t->low && (c < t->low[r] || c >= t->high[r]))) {
                assert_true(got == -INFINITY);
                continue;
            }
            const double parts[5] = {(double)s->before[GUARD + r * stride + c],
                                     t->bias ? (double)t->bias[r * t->bias_step + c] : 0,
                                     t->skewed ? (double)t->skewed[r * t->skewed_step + c] : 0,
                                     t->extra ? (double)t->extra[r * t->extra_step + c] : 0,
                                     t->key ? (double)t->key[c] : 0};
            double       want = 0, size = 0;
            for (int i = 0; i < 5; i++) {
                want += parts[i];
                size += fabs(parts[i]);
            }
            if (!(fabs((double)got - want) <= 4 * 0x1p-24 * size)) /* four additions */
                fail_msg("%s: score [%d,%d] is %.9g, not %.9g", isa, (int)r, (int)c, (double)got, want);
        }
}

static void scores_are_sums_of_their_terms_and_minus_infinity_where_masked(void **state)
{
    static const int32_t lows[ROWS] = {0, 3, 0, 9, 2}, spans[ROWS] = {100, 1, 0, 7, 30};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++)
            for (int which = 0; which < 32; which++) {
                const int64_t columns = columns_tried[n], stride = padded(columns) + 5;
                guarded       s = guarded_make((ROWS + 1) * stride), bias, skewed, extra, key;
                int32_t       low[ROWS], high[ROWS];
                for (int r = 0; r < ROWS; r++) {
                    low[r]  = lows[r] < (int32_t)columns ? lows[r] : (int32_t)columns;
                    high[r] = low[r] + spans[r] < (int32_t)columns ? low[r] + spans[r] : (int32_t)columns;
                }
                float *const bias_at    = make_stream(&bias, -1, ROWS, columns, "bias"),
                             *skewed_at = make_stream(&skewed, padded(columns) - 1, ROWS, columns, "skewed"),
                             *extra_at  = make_stream(&extra, padded(columns), ROWS, columns, "extra"),
                             *key_at    = make_stream(&key, 0, ROWS, columns, "key");
                const pe_tile_terms terms = {.bias        = which & 1 ? bias_at : NULL,
                                             .bias_step   = -1,
                                             .skewed      = which & 2 ? skewed_at : NULL,
                                             .skewed_step = padded(columns) - 1,
                                             .extra       = which & 4 ? extra_at : NULL,
                                             .extra_step  = padded(columns),
                                             .key         = which & 8 ? key_at : NULL,
                                             .low         = which & 16 ? low : NULL,
                                             .high        = which & 16 ? high : NULL};
                fill_random(s.at, stride, ROWS, padded(columns), "S", 1);
                guarded_remember(&s);
                pe_kernels_at(isa)->scores_finish(s.at, stride, &terms, ROWS, columns);
                check_scores(pe_kernels_at(isa)->isa, &s, stride, &terms, ROWS, columns);
                guarded_free(&s), guarded_free(&bias), guarded_free(&skewed), guarded_free(&extra),
                    guarded_free(&key);
            }
}

/* ---- softmax_step ---- */

/* Largest error of the exponential in ulp of the true value, over x = 0 .. -87.3 in steps that hit every binade. */
static double exponential_error(const pe_kernels *kernels, double *worst_at)
{
    enum { MANY = 4096 };
    static float x[MANY], w[MANY];
    double       worst = 0;
    for (int pass = 0; pass < 64; pass++) {
        for (int i = 0; i < MANY; i++) {
            const double u = posenc_random_uniform((uint64_t)pass, "exp", (uint64_t)i);
            x[i]           = (float)(-87.3 * (pass % 2 ? u : pow(2, -30 * u)));
        }
        x[0] = 0; /* the maximum, so that weights are exp(x) themselves */
        memcpy(w, x, sizeof w);
        float m = -INFINITY, l = 0, factor = 0;
        kernels->softmax_step(w, MANY, &m, &l, &factor, 1, MANY);
        for (int i = 0; i < MANY; i++) {
            const double e = exp((double)x[i]), error = fabs((double)w[i] - e) / ulp_of(e);
            if (x[i] >= -87.3f && error > worst) {
                worst     = error;
                *worst_at = (double)x[i];
            }
        }
    }
    return worst;
}

static void the_exponential_keeps_its_error_line(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        double       at    = 0;
        const double error = exponential_error(pe_kernels_at(isa), &at);
        if (!(error <= EXP_ULP))
            fail_msg("%s: exp(%.9g) is off by %.3f ulp", pe_kernels_at(isa)->isa, at, error);
    }
}

static void the_exponential_of_what_is_far_below_is_zero(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        float s[PE_LANES] = {0, -87.4f, -88, -100, -1000, -1e30f, -INFINITY, -3.4e38f};
        float m = -INFINITY, l = 0, factor = 0;
        for (int i = 8; i < PE_LANES; i++)
            s[i] = -INFINITY;
        pe_kernels_at(isa)->softmax_step(s, PE_LANES, &m, &l, &factor, 1, 8);
        assert_true(s[0] == 1 && l == 1 && m == 0 && factor == 0);
        for (int i = 1; i < 8; i++)
            assert_true(s[i] == 0);
    }
}

/* Scores of several steps; row r of step n may be wholly masked. */
static void make_step(guarded *s, int64_t stride, int64_t columns, int step)
{
    char name[32];
    snprintf(name, sizeof name, "step %d", step);
    fill_random(s->at, stride, ROWS, columns, name, 4);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < padded(columns); c++)
            if (c >= columns || r == 4 || (r == 3 && step != 1) || (c + r + step) % 3 == 0)
                s->at[r * stride + c] = -INFINITY;
}

static double within_exp(double got, double x)
{
    return x < -87.3 ? fabs(got) / 1e-37 : fabs(got - exp(x)) / (EXP_ULP * ulp_of(exp(x)));
}

static void check_step(const char *isa, const guarded *s, int64_t stride, int64_t columns, const float m0[],
                       const float l0[], const float m[], const float l[], const float factor[])
{
    assert_int_equal(guarded_changed(s, stride, ROWS, padded(columns)), -1);
    for (int64_t r = 0; r < ROWS; r++) {
        const float *before = s->before + GUARD + r * stride, *w = s->at + r * stride;
        float        most = m0[r];
        double       sum  = 0;
        for (int64_t c = 0; c < columns; c++)
            most = fmaxf(most, before[c]);
        assert_true(m[r] == most);
        for (int64_t c = 0; c < columns; c++) {
            const double x = before[c] == -INFINITY ? -INFINITY : (double)(before[c] - most);
            if (x == -INFINITY ? w[c] != 0 : within_exp((double)w[c], x) > 1)
                fail_msg("%s: weight [%d,%d] is %.9g for %.9g", isa, (int)r, (int)c, (double)w[c], x);
            sum += (double)w[c];
        }
        if (m0[r] == most)
            assert_true(factor[r] == 1);
        else if (m0[r] == -INFINITY)
            assert_true(factor[r] == 0);
        else
            assert_true(within_exp((double)factor[r], (double)(m0[r] - most)) <= 1);
        const double want = (double)l0[r] * (double)factor[r] + sum;
        assert_true(fabs((double)l[r] - want) <= (double)(columns + 2) * 0x1p-24 * want);
    }
}

static void a_step_of_the_online_softmax_is_its_formula(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t columns = columns_tried[n], stride = padded(columns) + 2;
            float         m[ROWS], l[ROWS]                   = {0}, factor[ROWS];
            for (int r = 0; r < ROWS; r++)
                m[r] = -INFINITY;
            for (int step = 0; step < 3; step++) {
                guarded s = guarded_make((ROWS + 1) * stride);
                float   m0[ROWS], l0[ROWS];
                make_step(&s, stride, columns, step);
                guarded_remember(&s);
                memcpy(m0, m, sizeof m);
                memcpy(l0, l, sizeof l);
                pe_kernels_at(isa)->softmax_step(s.at, stride, m, l, factor, ROWS, columns);
                check_step(pe_kernels_at(isa)->isa, &s, stride, columns, m0, l0, m, l, factor);
                guarded_free(&s);
            }
            assert_true(m[4] == -INFINITY && l[4] == 0); /* a row that is masked everywhere */
        }
}

/* ---- the backward pass ---- */

static void weights_come_back_from_scores_and_log_sum_exp(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t columns = columns_tried[n], stride = padded(columns) + 2;
            const float   lse[ROWS] = {3, 9, -2, 8, -INFINITY};
            guarded       s         = guarded_make((ROWS + 1) * stride);
            make_step(&s, stride, columns, 1);
            guarded_remember(&s);
            pe_kernels_at(isa)->weights(s.at, stride, lse, ROWS, columns);
            assert_int_equal(guarded_changed(&s, stride, ROWS, padded(columns)), -1);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t c = 0; c < columns; c++) {
                    const float x = s.before[GUARD + r * stride + c], w = s.at[r * stride + c];
                    if (x == -INFINITY || lse[r] == -INFINITY)
                        assert_true(w == 0);
                    else
                        assert_true(within_exp((double)w, (double)(x - lse[r])) <= 1);
                }
            guarded_free(&s);
        }
}

static void the_cotangent_of_a_score_is_w_times_dw_minus_delta(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t columns = columns_tried[n], stride = padded(columns) + 2;
            guarded       dw = guarded_make((ROWS + 1) * stride), w = guarded_make((ROWS + 1) * stride);
            float         delta[ROWS];
            fill_random(dw.at, stride, ROWS, padded(columns), "dW", 1);
            fill_random(w.at, stride, ROWS, padded(columns), "W", 1);
            fill_random(delta, 1, ROWS, 1, "delta", 1);
            guarded_remember(&dw);
            pe_kernels_at(isa)->score_cotangent(dw.at, w.at, stride, delta, ROWS, columns);
            assert_int_equal(guarded_changed(&dw, stride, ROWS, padded(columns)), -1);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t c = 0; c < columns; c++) {
                    const float difference = dw.before[GUARD + r * stride + c] - delta[r];
                    assert_true(dw.at[r * stride + c] == w.at[r * stride + c] * difference);
                }
            guarded_free(&dw), guarded_free(&w);
        }
}

static void rows_are_scaled_and_a_factor_of_one_leaves_them_alone(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t columns = columns_tried[n], stride = padded(columns) + 2;
            const float   factor[ROWS] = {2, 1, 0, 0.3f, -1};
            guarded       x            = guarded_make((ROWS + 1) * stride);
            fill_random(x.at, stride, ROWS, padded(columns), "x", 1);
            guarded_remember(&x);
            pe_kernels_at(isa)->scale_rows(x.at, stride, factor, ROWS, columns);
            assert_int_equal(guarded_changed(&x, stride, ROWS, padded(columns)), -1);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t c = 0; c < columns; c++)
                    assert_true(x.at[r * stride + c] == x.before[GUARD + r * stride + c] * factor[r]);
            guarded_free(&x);
        }
}

static void diagonal_sums_add_each_diagonal_in_the_order_of_rows(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++)
            for (int64_t R = 0; R <= 9; R += 3) {
                const int64_t columns = columns_tried[n], stride = padded(columns) + 2,
                              count = R + columns - 1;
                guarded x = guarded_make((R + 1) * stride), sums = guarded_make(count);
                float   want[128];
                fill_random(x.at, stride, R, columns, "x", 1);
                fill_random(sums.at, count, 1, count, "sums", 1);
                memcpy(want, sums.at, (size_t)count * sizeof(float));
                guarded_remember(&sums);
                pe_kernels_at(isa)->diagonal_sums(sums.at, x.at, stride, R, columns);
                for (int64_t r = 0; r < R; r++)
                    for (int64_t c = 0; c < columns; c++)
                        want[c + R - 1 - r] += x.at[r * stride + c];
                assert_int_equal(guarded_changed(&sums, count, 1, count), -1); /* no padding here */
                assert_memory_equal(sums.at, want, (size_t)count * sizeof(float));
                guarded_free(&x), guarded_free(&sums);
            }
}

/* ---- terms by distance that act on weights ---- */

/* gate multiplies, add_skewed adds: one float operation each, so the bits are known. */
static void a_term_read_along_diagonals_gates_weights_or_is_added(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++)
            for (int64_t step = -1; step <= 1; step++) {
                const int64_t columns = columns_tried[n], stride = padded(columns) + 2;
                guarded w = guarded_make((ROWS + 1) * stride), x = guarded_make((ROWS + 1) * stride), term;
                float *const y = make_stream(&term, step, ROWS, columns, "term");
                fill_random(w.at, stride, ROWS, padded(columns), "W", 1);
                fill_random(x.at, stride, ROWS, padded(columns), "X", 1);
                guarded_remember(&w), guarded_remember(&x);
                pe_kernels_at(isa)->gate(w.at, stride, y, step, ROWS, columns);
                pe_kernels_at(isa)->add_skewed(x.at, stride, y, step, ROWS, columns);
                assert_int_equal(guarded_changed(&w, stride, ROWS, padded(columns)), -1);
                assert_int_equal(guarded_changed(&x, stride, ROWS, padded(columns)), -1);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t c = 0; c < columns; c++) {
                        const int64_t at = r * stride + c;
                        assert_true(w.at[at] == w.before[GUARD + at] * y[r * step + c]);
                        assert_true(x.at[at] == x.before[GUARD + at] + y[r * step + c]);
                    }
                guarded_free(&w), guarded_free(&x), guarded_free(&term);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_sums_of_their_terms_and_minus_infinity_where_masked),
        cmocka_unit_test(the_exponential_keeps_its_error_line),
        cmocka_unit_test(the_exponential_of_what_is_far_below_is_zero),
        cmocka_unit_test(a_step_of_the_online_softmax_is_its_formula),
        cmocka_unit_test(weights_come_back_from_scores_and_log_sum_exp),
        cmocka_unit_test(the_cotangent_of_a_score_is_w_times_dw_minus_delta),
        cmocka_unit_test(rows_are_scaled_and_a_factor_of_one_leaves_them_alone),
        cmocka_unit_test(diagonal_sums_add_each_diagonal_in_the_order_of_rows),
        cmocka_unit_test(a_term_read_along_diagonals_gates_weights_or_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

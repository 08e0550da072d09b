/* SPDX-License-Identifier: MIT */
/*
 * test_attend: what happens to a tile of scores between two products, on every instruction set
 *
 * Each kernel of attend.inc against a plain loop. Where a kernel makes one sum or product of floats in a
 * stated order the bits must be equal; the exponential is held against exp in double with the Error line of
 * kernels.h, and sums of n weights with n roundings of 2^-24.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <stdio.h>

#include "guarded.h"

enum { EXP_ULP = 3 };

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

/* ---- softmax ---- */

/* Allowed error of exp(x) in ulp: 3, and what the rounding of a product with log2 e makes of a large x. */
static double exp_ulp(double x)
{
    return EXP_ULP + 1.25 * fabs(x);
}

/* Largest error of the exponential as a share of what is allowed, over x = 0 .. -69 in steps that hit every
   binade. */
static double exponential_error(const pe_kernels *kernels, double *worst_at)
{
    enum { MANY = 4096 };
    static float        x[MANY], w[MANY];
    const pe_tile_terms none  = {0};
    double              worst = 0;
    for (int pass = 0; pass < 64; pass++) {
        float            shift = 0, sums[PE_LANES] = {0};
        const pe_softmax to = {&shift, sums, NULL, 0, 0};
        for (int i = 0; i < MANY; i++) {
            const double u = posenc_random_uniform((uint64_t)pass, "exp", (uint64_t)i);
            x[i]           = (float)(-69 * (pass % 2 ? u : pow(2, -30 * u)));
        }
        x[0] = 0;
        memcpy(w, x, sizeof w);
        kernels->softmax(w, MANY, &none, &to, 1, MANY);
        assert_true(w[0] == 1 && shift == 0);
        for (int i = 0; i < MANY; i++) {
            const double e     = exp((double)x[i]),
                         error = fabs((double)w[i] - e) / ulp_of(e) / exp_ulp((double)x[i]);
            if (x[i] >= -69.0f && error > worst) {
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
        if (!(error <= 1))
            fail_msg("%s: exp(%.9g) is off by %.3f of what is allowed", pe_kernels_at(isa)->isa, at, error);
    }
}

static void the_exponential_of_what_is_far_below_is_zero(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        float               s[PE_LANES] = {0, -69.4f, -69.6f, -70, -1000, -1e30f, -INFINITY, -3.4e38f};
        float               shift = 0, sums[PE_LANES] = {0}, total = 0;
        const pe_softmax    to   = {&shift, sums, NULL, 0, 0};
        const pe_tile_terms none = {0};
        pe_kernels_at(isa)->softmax(s, PE_LANES, &none, &to, 1, 8);
        for (int i = 0; i < PE_LANES; i++)
            total += sums[i];
        assert_true(s[0] == 1 && total == 1 && shift == 0);
        for (int i = 1; i < PE_LANES; i++)
            assert_true(i < 3 ? s[i] >= 0 && s[i] < 0x1p-99f : s[i] == 0);
    }
}

/* A cap of any size, and scores from far below it to far above. */
static void a_cap_is_its_formula(void **state)
{
    static const float parts[] = {0, 1e-4f, 0.1f, -0.3f, 0.33f, 0.49f, 0.51f, -2, 30, 1e5f};
    enum { PARTS = sizeof parts / sizeof *parts };
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int power = -100; power <= 100; power += 5)
            for (int most = 1; most <= PARTS;
                 most++) { /* of the parts: the small ones alone have a short cut */
                const float         cap         = ldexpf(1.1f, power);
                float               s[PE_LANES] = {0}, sums[PE_LANES] = {0}, shift = 0;
                const pe_softmax    to    = {&shift, sums, NULL, 0, 0};
                const pe_tile_terms terms = {.cap = cap};
                for (int i = 0; i < most; i++)
                    s[i] = fminf(fmaxf(parts[i] * cap, -10), 10);
                float x[PE_LANES];
                memcpy(x, s, sizeof x);
                pe_kernels_at(isa)->softmax(s, PE_LANES, &terms, &to, 1, PE_LANES);
                for (int i = 0; i < PE_LANES; i++) {
                    const double t = (double)cap * tanh((double)x[i] / (double)cap),
                                 e = exp(t - (double)shift);
                    if (!(fabs((double)s[i] - e) <= 4e-6 * e + 0x1p-99))
                        fail_msg("%s: cap %g of %g has the weight %g in place of %g", pe_kernels_at(isa)->isa,
                                 (double)cap, (double)x[i], (double)s[i], e);
                }
            }
}

/* Running numbers of ROWS rows. */
typedef struct running {
    float   shift[ROWS], sums[ROWS * PE_LANES];
    guarded o;
} running;

static double sum_of(const running *x, int64_t r)
{
    double sum = 0;
    for (int i = 0; i < PE_LANES; i++)
        sum += (double)x->sums[r * PE_LANES + i];
    return sum;
}

/* Scores of several steps, each higher than the one before; row r of step n may be wholly masked. */
static void make_step(guarded *s, int64_t stride, int64_t columns, int step)
{
    char name[32];
    snprintf(name, sizeof name, "step %d", step);
    fill_random(s->at, stride, ROWS, columns, name, 4);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < padded(columns); c++)
            if (c >= columns || r == 4 || (r == 3 && step != 1) || (c + r + step) % 3 == 0)
                s->at[r * stride + c] = -INFINITY;
            else
                s->at[r * stride + c] += 7 * (float)step;
}

static double within_exp(double got, double x)
{
    return x < -69 ? fabs(got) / 0x1p-99 : fabs(got - exp(x)) / (exp_ulp(x) * ulp_of(exp(x)));
}

/* What a step made of one row. `most` is the largest score so far. */
static void check_row(const char *isa, const guarded *s, int64_t stride, int64_t columns, const running *was,
                      const running *is, const float *gate, int64_t r)
{
    const float *before = s->before + GUARD + r * stride, *w = s->at + r * stride;
    const double shift = (double)is->shift[r];
    double       sum = 0, size = 0, most = -INFINITY;
    for (int64_t c = 0; c < columns; c++) {
        const double x = (double)before[c] - shift, y = gate ? (double)gate[c - r] : 1;
        most = fmax(most, (double)before[c]);
        if (before[c] == -INFINITY
                ? w[c] != 0
                : fabs((double)w[c] - exp(x) * y) > 3 * exp_ulp(x) * 0x1p-23 * exp(x) * fabs(y) + 0x1p-99)
            fail_msg("%s: weight [%d,%d] is %.9g for %.9g", isa, (int)r, (int)c, (double)w[c], x);
        sum += before[c] == -INFINITY ? 0 : exp(x);
    }
    assert_true(most - shift <= PE_HEADROOM);
    assert_true(is->shift[r] == was->shift[r] || most >= shift); /* a shift is a score */
    const double f    = was->shift[r] == -FLT_MAX ? 0 : exp((double)was->shift[r] - shift);
    const double want = sum_of(was, r) * f + sum;
    size              = want * ((double)columns + 125) * 0x1p-23;
    assert_true(fabs(sum_of(is, r) - want) <= size);
    for (int64_t d = 0; d < 2 * PE_LANES && was->shift[r] != -FLT_MAX; d++) {
        const double o = (double)was->o.at[r * 2 * PE_LANES + d] * f;
        assert_true(fabs((double)is->o.at[r * 2 * PE_LANES + d] - o) <= 125 * 0x1p-23 * fabs(o) + 0x1p-99);
    }
}

static void run_steps(const pe_kernels *k, int64_t columns, const float *gate)
{
    const int64_t stride = padded(columns) + 2, wide = 2 * PE_LANES;
    running       is = {.o = guarded_make(ROWS * wide)};
    for (int r = 0; r < ROWS; r++)
        is.shift[r] = -FLT_MAX;
    fill_random(is.o.at, wide, ROWS, wide, "o", 1);
    for (int step = 0; step < 4; step++) {
        const pe_softmax    to    = {is.shift, is.sums, is.o.at, wide, wide};
        const pe_tile_terms terms = {.gate = gate, .gate_step = -1};
        guarded             s     = guarded_make((ROWS + 1) * stride);
        running             was   = is;
        was.o                     = guarded_make(ROWS * wide);
        memcpy(was.o.at, is.o.at, (size_t)(ROWS * wide) * sizeof(float));
        make_step(&s, stride, columns, step);
        guarded_remember(&s);
        k->softmax(s.at, stride, &terms, &to, ROWS, columns);
        assert_int_equal(guarded_changed(&s, stride, ROWS, padded(columns)), -1);
        for (int64_t r = 0; r < ROWS - 1; r++)
            check_row(k->isa, &s, stride, columns, &was, &is, gate, r);
        assert_true(is.shift[4] == -FLT_MAX && sum_of(&is, 4) == 0); /* a row that is masked everywhere */
        guarded_free(&s), guarded_free(&was.o);
    }
    guarded_free(&is.o);
}

static void a_step_of_the_online_softmax_is_its_formula(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            guarded      term;
            float *const gate = make_stream(&term, -1, ROWS, columns_tried[n], "gate");
            run_steps(pe_kernels_at(isa), columns_tried[n], NULL);
            run_steps(pe_kernels_at(isa), columns_tried[n], gate);
            guarded_free(&term);
        }
}

static void scores_that_are_no_numbers_are_seen_in_the_sums(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        float            s[PE_LANES] = {0, NAN, 1}, shift = -FLT_MAX, sums[PE_LANES] = {0}, o[PE_LANES] = {0};
        const pe_softmax to       = {&shift, sums, o, PE_LANES, PE_LANES};
        const pe_tile_terms none  = {0};
        float               total = 0;
        pe_kernels_at(isa)->softmax(s, PE_LANES, &none, &to, 1, 3);
        for (int i = 0; i < PE_LANES; i++)
            total += sums[i];
        assert_true(isnan(total));
    }
}

static void the_terms_of_a_score_are_added_before_its_weight(void **state)
{
    static const int32_t low[2] = {1, 0}, high[2] = {20, 9};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        enum { WIDE = 2 * PE_LANES };
        float s[2 * WIDE], want[2 * WIDE], row[WIDE + 1], shift[2] = {0, 0}, sums[2 * PE_LANES] = {0};
        for (int i = 0; i < 2 * WIDE; i++)
            s[i] = want[i] = -0.01f * (float)i;
        for (int i = 0; i < WIDE + 1; i++)
            row[i] = 0.02f * (float)i;
        const pe_tile_terms terms    = {.bias       = row + 1,
                                        .bias_step  = -1,
                                        .skewed     = row,
                                        .extra      = row,
                                        .extra_step = 1,
                                        .key        = row,
                                        .low        = low,
                                        .high       = high};
        const pe_softmax    to       = {shift, sums, NULL, 0, 0};
        const pe_kernels   *k        = pe_kernels_at(isa);
        float               again[2] = {0, 0};
        k->weights(want, WIDE, &terms, again, 2, 20);
        k->softmax(s, WIDE, &terms, &to, 2, 20);
        for (int i = 0; i < 2 * WIDE; i++)
            assert_true(i % WIDE >= 20 || s[i] == want[i]);
    }
}

/* Every set of terms has code of its own where a row is whole fours of vectors. */
static void any_set_of_terms_is_added_as_scores_finish_adds_them(void **state)
{
    enum { WIDE = 4 * PE_LANES, SETS = 64 };
    float streams[2 * WIDE], start[ROWS * WIDE];
    (void)state;
    fill_random(streams, 2 * WIDE, 1, 2 * WIDE, "streams", 1);
    fill_random(start, WIDE, ROWS, WIDE, "scores", 4);
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int set = 0; set < SETS; set++) {
            const pe_kernels   *k     = pe_kernels_at(isa);
            const pe_tile_terms terms = {.row         = set & 1 ? streams + 5 : NULL,
                                         .skewed      = set & 2 ? streams + ROWS : NULL,
                                         .skewed_step = -1,
                                         .bias        = set & 4 ? streams : NULL,
                                         .bias_step   = 1,
                                         .extra       = set & 8 ? streams + 9 : NULL,
                                         .extra_step  = 3,
                                         .key         = set & 16 ? streams + 17 : NULL};
            const pe_tile_terms none  = {0};
            float               s[ROWS * WIDE], want[ROWS * WIDE];
            float               shifts[2][ROWS], sums[2][ROWS * PE_LANES] = {{0}};
            for (int r = 0; r < 2 * ROWS; r++)
                shifts[r / ROWS][r % ROWS] = -FLT_MAX;
            memcpy(s, start, sizeof s);
            memcpy(want, start, sizeof want);
            pe_tile_terms gated = terms, gate = none;
            gated.gate = gate.gate = set & 32 ? streams + 7 : NULL;
            gated.gate_step = gate.gate_step = 1;
            const pe_softmax to              = {shifts[0], sums[0], NULL, 0, 0},
                             to_want         = {shifts[1], sums[1], NULL, 0, 0};
            k->softmax(s, WIDE, &gated, &to, ROWS, WIDE);
            k->scores_finish(want, WIDE, &terms, ROWS, WIDE);
            k->softmax(want, WIDE, &gate, &to_want, ROWS, WIDE);
            for (int i = 0; i < ROWS * WIDE; i++)
                if (fabsf(s[i] - want[i]) > 1e-5f * fabsf(want[i]) + 0x1p-99f)
                    fail_msg("%s: terms %d: weight [%d,%d] is %.9g, not %.9g", k->isa, set, i / WIDE,
                             i % WIDE, (double)s[i], (double)want[i]);
            for (int r = 0; r < ROWS; r++)
                assert_true(shifts[0][r] == shifts[1][r]);
            for (int i = 0; i < ROWS * PE_LANES; i++)
                assert_true(fabsf(sums[0][i] - sums[1][i]) <= 1e-5f * sums[1][i]);
        }
}

/* ---- the backward pass ---- */

static void weights_come_back_from_scores_and_log_sum_exp(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t       columns = columns_tried[n], stride = padded(columns) + 2;
            const float         lse[ROWS] = {3, 9, -2, 8, -INFINITY};
            const pe_tile_terms none      = {0};
            guarded             s         = guarded_make((ROWS + 1) * stride);
            make_step(&s, stride, columns, 1);
            guarded_remember(&s);
            pe_kernels_at(isa)->weights(s.at, stride, &none, lse, ROWS, columns);
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

static void lane_sums_add_halves_of_each_row_in_one_order_on_all_instruction_sets(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t R = 0; R <= 35; R++) {
            guarded lanes = guarded_make((R + 1) * PE_LANES), out = guarded_make(R + 1);
            fill_random(lanes.at, PE_LANES, R, PE_LANES, "lanes", 1);
            guarded_remember(&out);
            pe_kernels_at(isa)->lane_sums(out.at, lanes.at, R);
            for (int64_t r = 0; r < R; r++) {
                float *row = lanes.at + r * PE_LANES;
                for (int n = PE_LANES / 2; n > 0; n /= 2)
                    for (int i = 0; i < n; i++)
                        row[i] += row[i + n];
                assert_true(out.at[r] == row[0]);
            }
            assert_int_equal(guarded_changed(&out, R, 1, R), -1);
            guarded_free(&lanes), guarded_free(&out);
        }
}

static void diagonal_sums_add_each_diagonal_in_the_order_of_rows(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++)
            for (int64_t R = 0; R <= 60; R += 3) {
                const int64_t columns = columns_tried[n], stride = padded(columns) + 2,
                              count = R + columns - 1;
                guarded x = guarded_make((R + 1) * stride), sums = guarded_make(count);
                float   want[160];
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

static void one_row_joins_all(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t columns = columns_tried[n], stride = padded(columns) + 2, x_stride = stride + 3;
            guarded       to = guarded_make((ROWS + 1) * stride), x = guarded_make((ROWS + 1) * x_stride),
                    y = guarded_make(stride);
            fill_random(x.at, x_stride, ROWS, padded(columns), "X", 1);
            fill_random(y.at, stride, 1, padded(columns), "Y", 1);
            guarded_remember(&to);
            pe_kernels_at(isa)->join_rows(to.at, stride, x.at, x_stride, y.at, ROWS, columns);
            assert_int_equal(guarded_changed(&to, stride, ROWS, padded(columns)), -1);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t c = 0; c < columns; c++)
                    assert_true(to.at[r * stride + c] == x.at[r * x_stride + c] + y.at[c]);
            guarded_free(&to), guarded_free(&x), guarded_free(&y);
        }
}

/* Two rows, one of which may be walked backwards; one float operation each. */
static void butterfly_is_sum_and_difference(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++)
            for (int back = 0; back <= 1; back++) {
                const int64_t columns = columns_tried[n], stride = padded(columns) + 2,
                              step = back ? -stride : stride;
                guarded x = guarded_make((ROWS + 1) * stride), y = guarded_make((ROWS + 1) * stride);
                fill_random(x.at, stride, ROWS, padded(columns), "X", 1);
                fill_random(y.at, stride, ROWS, padded(columns), "Y", 1);
                guarded_remember(&x), guarded_remember(&y);
                pe_kernels_at(isa)->butterfly(x.at, stride, y.at + (back ? (ROWS - 1) * stride : 0), step,
                                              ROWS, columns);
                assert_int_equal(guarded_changed(&x, stride, ROWS, padded(columns)), -1);
                assert_int_equal(guarded_changed(&y, stride, ROWS, padded(columns)), -1);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t c = 0; c < columns; c++) {
                        const int64_t at = r * stride + c, other = (back ? ROWS - 1 - r : r) * stride + c;
                        const float   a = x.before[GUARD + at], b = y.before[GUARD + other];
                        assert_true(x.at[at] == a + b);
                        assert_true(y.at[other] == a - b);
                    }
                guarded_free(&x), guarded_free(&y);
            }
}

static void modulus_is_that_of_two_parts(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++) {
            const int64_t columns = columns_tried[n], stride = padded(columns) + 2;
            guarded       x = guarded_make((ROWS + 1) * stride), y = guarded_make((ROWS + 1) * stride);
            fill_random(x.at, stride, ROWS, padded(columns), "X", 1);
            fill_random(y.at, stride, ROWS, padded(columns), "Y", 1);
            x.at[0] = y.at[0] = 0;
            guarded_remember(&x);
            pe_kernels_at(isa)->modulus(x.at, y.at, stride, ROWS, columns);
            assert_int_equal(guarded_changed(&x, stride, ROWS, padded(columns)), -1);
            assert_true(x.at[0] == 0);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t c = 0; c < columns; c++) {
                    const double a = (double)x.before[GUARD + r * stride + c],
                                 b = (double)y.at[r * stride + c], want = sqrt(a * a + b * b);
                    assert_true(fabs((double)x.at[r * stride + c] - want) <= 2 * 0x1p-24 * want);
                }
            guarded_free(&x), guarded_free(&y);
        }
}

static void rows_become_columns(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int n = 0; n < COLUMNS; n++)
            for (int64_t R = 1; R <= 40; R += 13) {
                const int64_t columns = columns_tried[n], from_stride = columns + 3, stride = padded(R);
                guarded       from = guarded_make(R * from_stride), to = guarded_make(columns * stride);
                fill_random(from.at, from_stride, R, columns, "from", 1);
                guarded_remember(&to);
                pe_kernels_at(isa)->transpose(to.at, stride, from.at, from_stride, R, columns);
                assert_int_equal(guarded_changed(&to, stride, columns, stride), -1);
                for (int64_t r = 0; r < stride; r++)
                    for (int64_t c = 0; c < columns; c++)
                        assert_true(to.at[c * stride + r] == (r < R ? from.at[r * from_stride + c] : 0));
                guarded_free(&from), guarded_free(&to);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_sums_of_their_terms_and_minus_infinity_where_masked),
        cmocka_unit_test(the_exponential_keeps_its_error_line),
        cmocka_unit_test(the_exponential_of_what_is_far_below_is_zero),
        cmocka_unit_test(a_cap_is_its_formula),
        cmocka_unit_test(a_step_of_the_online_softmax_is_its_formula),
        cmocka_unit_test(scores_that_are_no_numbers_are_seen_in_the_sums),
        cmocka_unit_test(the_terms_of_a_score_are_added_before_its_weight),
        cmocka_unit_test(any_set_of_terms_is_added_as_scores_finish_adds_them),
        cmocka_unit_test(weights_come_back_from_scores_and_log_sum_exp),
        cmocka_unit_test(the_cotangent_of_a_score_is_w_times_dw_minus_delta),
        cmocka_unit_test(rows_are_scaled_and_a_factor_of_one_leaves_them_alone),
        cmocka_unit_test(lane_sums_add_halves_of_each_row_in_one_order_on_all_instruction_sets),
        cmocka_unit_test(diagonal_sums_add_each_diagonal_in_the_order_of_rows),
        cmocka_unit_test(rows_become_columns),
        cmocka_unit_test(a_term_read_along_diagonals_gates_weights_or_is_added),
        cmocka_unit_test(one_row_joins_all),
        cmocka_unit_test(butterfly_is_sum_and_difference),
        cmocka_unit_test(modulus_is_that_of_two_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

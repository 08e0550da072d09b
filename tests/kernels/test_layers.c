/* SPDX-License-Identifier: MIT */
/*
 * test_layers: norms, gelu and the softmax of a model's output, forward and backward, on every instruction
 * set
 *
 * Each against its formula in double, for widths around multiples of a vector, with the Error lines of
 * kernels.h. What reaches a row's end must not touch what is behind it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guarded.h"

enum { ROWS = 5 };

static const int64_t widths[] = {1, 3, 15, 16, 17, 31, 64, 77, 100};

enum { WIDTHS = sizeof widths / sizeof *widths };

static const double rounding = 0x1p-24;

/* A buffer [ROWS, width] of random numbers. */
static guarded random_rows(int64_t rows, int64_t width, const char *name, double scale)
{
    guarded g = guarded_make(rows * width);
    fill_random(g.at, width, rows, width, name, scale);
    guarded_remember(&g);
    return g;
}

static void check_kept(const char *isa, const char *kernel, const guarded *g, int64_t rows, int64_t width)
{
    if (guarded_changed(g, width, rows, width) >= 0)
        fail_msg("%s: %s wrote outside its rows, width %d", isa, kernel, (int)width);
}

static void check_near(const char *isa, const char *what, double got, double want, double allowed)
{
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s: %s is %.9g, not %.9g +- %.2g", isa, what, got, want, allowed);
}

/* ---- layer normalisation ---- */

typedef struct statistics {
    double mean, scale, size; /* size: mean |x| */
} statistics;

static statistics statistics_of(const float *x, int64_t d)
{
    statistics s        = {0, 0, 0};
    double     variance = 0;
    for (int64_t c = 0; c < d; c++) {
        s.mean += (double)x[c] / (double)d;
        s.size += fabs((double)x[c]) / (double)d;
    }
    for (int64_t c = 0; c < d; c++)
        variance += ((double)x[c] - s.mean) * ((double)x[c] - s.mean) / (double)d;
    s.scale = 1 / sqrt(variance + 1e-5);
    return s;
}

/* Forward: the mean is off by d roundings, and moves unit; the variance is off by d roundings of itself. */
static void check_norm(const char *isa, const guarded *x, const guarded *unit, const guarded *y,
                       const guarded *scale, const float *gain, const float *bias, int64_t d)
{
    for (int64_t r = 0; r < ROWS; r++) {
        const statistics s     = statistics_of(x->at + r * d, d);
        const double     loose = (double)(d + 4) * rounding;
        check_near(isa, "scale", (double)scale->at[r], s.scale, loose * s.scale * (1 + s.size * s.scale));
        for (int64_t c = 0; c < d; c++) {
            const double u       = ((double)x->at[r * d + c] - s.mean) * s.scale;
            const double allowed = loose * (s.size * s.scale + fabs(u)) * (1 + s.size * s.scale);
            const double got     = (double)unit->at[r * d + c];
            check_near(isa, "unit", got, u, allowed);
            check_near(isa, "y", (double)y->at[r * d + c], got * (double)gain[c] + (double)bias[c],
                       2 * rounding * (fabs(got * (double)gain[c]) + fabs((double)bias[c])));
        }
    }
}

static void a_norm_is_its_formula_and_stretch_gives_y_again(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int w = 0; w < WIDTHS; w++) {
            const pe_kernels *k = pe_kernels_at(isa);
            const int64_t     d = widths[w];
            guarded           x = random_rows(ROWS, d, "x", 3), unit = random_rows(ROWS, d, "u", 1),
                    y = random_rows(ROWS, d, "y", 1), again = random_rows(ROWS, d, "y", 1),
                    scale = random_rows(ROWS, 1, "s", 1), gain = random_rows(1, d, "gain", 1),
                    bias = random_rows(1, d, "bias", 1);
            k->norm(y.at, unit.at, scale.at, x.at, gain.at, bias.at, ROWS, d);
            k->stretch(again.at, unit.at, gain.at, bias.at, ROWS, d);
            check_kept(k->isa, "norm", &y, ROWS, d);
            check_kept(k->isa, "norm", &unit, ROWS, d);
            check_kept(k->isa, "norm", &scale, ROWS, 1);
            check_kept(k->isa, "stretch", &again, ROWS, d);
            check_norm(k->isa, &x, &unit, &y, &scale, gain.at, bias.at, d);
            assert_memory_equal(y.at, again.at, (size_t)(ROWS * d) * sizeof(float));
            guarded *all[] = {&x, &unit, &y, &again, &scale, &gain, &bias};
            for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                guarded_free(all[i]);
        }
}

typedef struct norm_gradient {
    guarded dx, dgain, dbias, dy, unit, scale, gain;
} norm_gradient;

static norm_gradient make_norm_gradient(int64_t d)
{
    return (norm_gradient){.dx    = random_rows(ROWS, d, "dx", 1),
                           .dgain = random_rows(1, d, "dgain", 1),
                           .dbias = random_rows(1, d, "dbias", 1),
                           .dy    = random_rows(ROWS, d, "dy", 1),
                           .unit  = random_rows(ROWS, d, "unit", 1),
                           .scale = random_rows(ROWS, 1, "scale", 1),
                           .gain  = random_rows(1, d, "gain", 1)};
}

static void free_norm_gradient(norm_gradient *g)
{
    guarded *all[] = {&g->dx, &g->dgain, &g->dbias, &g->dy, &g->unit, &g->scale, &g->gain};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        guarded_free(all[i]);
}

/* dx of one row: both means are off by d + 2 roundings of what they add. */
static void check_norm_row(const char *isa, const norm_gradient *g, int64_t r, int64_t d)
{
    const float *dy = g->dy.at + r * d, *u = g->unit.at + r * d, *gain = g->gain.at;
    double       mean = 0, along = 0, size = 0;
    for (int64_t c = 0; c < d; c++) {
        const double x = (double)dy[c] * (double)gain[c];
        mean += x / (double)d;
        along += x * (double)u[c] / (double)d;
        size += fabs(x) * (1 + fabs((double)u[c])) / (double)d;
    }
    for (int64_t c = 0; c < d; c++) {
        const double x = (double)dy[c] * (double)gain[c], before = (double)g->dx.before[GUARD + r * d + c],
                     s = (double)g->scale.at[r];
        check_near(isa, "dx", (double)g->dx.at[r * d + c], before + s * (x - mean - (double)u[c] * along),
                   (double)(d + 6) * rounding *
                       (fabs(before) + fabs(s) * (fabs(x) + size * (1 + fabs((double)u[c])))));
    }
}

static void check_norm_column(const char *isa, const norm_gradient *g, int64_t c, int64_t d)
{
    double gain = (double)g->dgain.before[GUARD + c], bias = (double)g->dbias.before[GUARD + c],
           size = fabs(gain) + fabs(bias);
    for (int64_t r = 0; r < ROWS; r++) {
        const double y = (double)g->dy.at[r * d + c], x = y * (double)g->unit.at[r * d + c];
        gain += x;
        bias += y;
        size += fabs(x) + fabs(y);
    }
    check_near(isa, "dgain", (double)g->dgain.at[c], gain, 2 * ROWS * rounding * size);
    check_near(isa, "dbias", (double)g->dbias.at[c], bias, 2 * ROWS * rounding * size);
}

static void a_norm_backward_is_its_formula(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int w = 0; w < WIDTHS; w++) {
            const pe_kernels *k = pe_kernels_at(isa);
            const int64_t     d = widths[w];
            norm_gradient     g = make_norm_gradient(d);
            k->norm_back(g.dx.at, g.dgain.at, g.dbias.at, g.dy.at, g.unit.at, g.scale.at, g.gain.at, ROWS, d);
            check_kept(k->isa, "norm_back", &g.dx, ROWS, d);
            check_kept(k->isa, "norm_back", &g.dgain, 1, d);
            check_kept(k->isa, "norm_back", &g.dbias, 1, d);
            for (int64_t r = 0; r < ROWS; r++)
                check_norm_row(k->isa, &g, r, d);
            for (int64_t c = 0; c < d; c++)
                check_norm_column(k->isa, &g, c, d);
            free_norm_gradient(&g);
        }
}

/* ---- gelu ---- */

static double gelu_at(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double slope_at(double x)
{
    const double z = 2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x), s = 1 / (1 + exp(-z));
    return s + x * s / (1 + exp(z)) * 2 * sqrt(2 / acos(-1.0)) * (1 + 3 * 0.044715 * x * x);
}

/* x from -40 to 40, finely about 0, and where e^-z overflows. */
static float wide_number(int64_t i)
{
    const double t = (double)i / 4000 - 1;
    return (float)(40 * t * t * t);
}

static void gelu_and_its_slope_are_those_of_the_form_with_a_tanh(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t i = 0; i <= 8000; i++) {
            const pe_kernels *k = pe_kernels_at(isa);
            const float       h = wide_number(i), bias = 0.25f;
            const double      x = (double)(h + bias);
            float             active, again, dh = 1, dbias = 0;
            k->gelu(&active, &h, &bias, 1, 1);
            k->gelu_back(&again, &dh, &dbias, &h, &bias, 1, 1);
            check_near(k->isa, "gelu", (double)active, gelu_at(x), 0x1p-22 * fabs(x));
            check_near(k->isa, "its slope", (double)dh, slope_at(x), 0x1p-20);
            assert_true(again == active && dbias == dh);
        }
}

static void gelu_takes_rows_of_any_width_and_adds_up_columns(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int w = 0; w < WIDTHS; w++) {
            const pe_kernels *k = pe_kernels_at(isa);
            const int64_t     n = widths[w];
            guarded           h = random_rows(ROWS, n, "h", 2), active = random_rows(ROWS, n, "a", 1),
                    dh = random_rows(ROWS, n, "dh", 1), bias = random_rows(1, n, "b", 1),
                    dbias = random_rows(1, n, "db", 1);
            k->gelu_back(active.at, dh.at, dbias.at, h.at, bias.at, ROWS, n);
            check_kept(k->isa, "gelu_back", &active, ROWS, n);
            check_kept(k->isa, "gelu_back", &dh, ROWS, n);
            check_kept(k->isa, "gelu_back", &dbias, 1, n);
            for (int64_t c = 0; c < n; c++) {
                double sum = (double)dbias.before[GUARD + c], size = fabs(sum);
                for (int64_t r = 0; r < ROWS; r++) {
                    const double x      = (double)(h.at[r * n + c] + bias.at[c]),
                                 before = (double)dh.before[GUARD + r * n + c];
                    check_near(k->isa, "gelu", (double)active.at[r * n + c], gelu_at(x), 0x1p-22 * fabs(x));
                    check_near(k->isa, "dh", (double)dh.at[r * n + c], before * slope_at(x),
                               0x1p-20 * fabs(before));
                    sum += (double)dh.at[r * n + c];
                    size += fabs((double)dh.at[r * n + c]);
                }
                check_near(k->isa, "dbias", (double)dbias.at[c], sum, ROWS * rounding * size);
            }
            k->gelu(dh.at, h.at, bias.at, ROWS, n);
            check_kept(k->isa, "gelu", &dh, ROWS, n);
            assert_memory_equal(dh.at, active.at, (size_t)(ROWS * n) * sizeof(float));
            guarded *all[] = {&h, &active, &dh, &bias, &dbias};
            for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                guarded_free(all[i]);
        }
}

/* ---- the output ---- */

static void a_softmax_row_is_exponentials_of_distances_to_the_largest(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int w = 0; w < WIDTHS; w++) {
            const pe_kernels *k = pe_kernels_at(isa);
            const int64_t     n = widths[w];
            guarded           x = random_rows(1, n, "logits", 20);
            float             largest, sum, most = x.at[0];
            double            want = 0;
            for (int64_t c = 1; c < n; c++)
                most = fmaxf(most, x.at[c]);
            k->softmax_row(x.at, &largest, &sum, n);
            check_kept(k->isa, "softmax_row", &x, 1, n);
            assert_true(largest == most);
            for (int64_t c = 0; c < n; c++) {
                const double apart = (double)(x.before[GUARD + c] - most);
                check_near(k->isa, "an exponential", (double)x.at[c], apart < -69 ? 0 : exp(apart),
                           apart < -69 ? 0x1p-99 : (3 - 1.25 * apart) * ulp_of(exp(apart)));
                want += (double)x.at[c];
            }
            check_near(k->isa, "the sum", (double)sum, want, (double)n * rounding * want);
            guarded_free(&x);
        }
}

static void what_is_no_number_shows_in_the_sum_of_a_softmax_row(void **state)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t at = 0; at < 37; at++)
            for (int i = 0; i < 3; i++) {
                float x[37] = {0}, largest, sum;
                x[at]       = strange[i];
                pe_kernels_at(isa)->softmax_row(x, &largest, &sum, 37);
                assert_true(isnan(sum));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_is_its_formula_and_stretch_gives_y_again),
        cmocka_unit_test(a_norm_backward_is_its_formula),
        cmocka_unit_test(gelu_and_its_slope_are_those_of_the_form_with_a_tanh),
        cmocka_unit_test(gelu_takes_rows_of_any_width_and_adds_up_columns),
        cmocka_unit_test(a_softmax_row_is_exponentials_of_distances_to_the_largest),
        cmocka_unit_test(what_is_no_number_shows_in_the_sum_of_a_softmax_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_floater: the solvers, their gradient, their memory
 *
 * Solvers must reach their order where no unit changes sides: halving the step divides the error by 2^order,
 * within 15 %. solver=exact is held against equations with a closed solution, one of them with a kink between
 * two positions. The gradient is that of the discrete solver, so finite differences see it to their own
 * error. States are lanes: each is what it would be alone, on any number of threads, to the bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows_case.h"

enum { W1, B1, W2, B2, Y0 };

static const struct {
    const char *name;
    int         order;
} solvers[] = {{"euler", 1}, {"midpoint", 2}, {"rk4_classic", 4}, {"rk4_38", 4}};

enum { SOLVERS = sizeof solvers / sizeof *solvers };

static rows_case make(const char *solver, int dim, int states, int substeps, double dt, int64_t n,
                      int threads)
{
    char spec[200];
    snprintf(spec, sizeof spec, "floater[dim=%d:states=%d:positions=%d:dt=%g:substeps=%d:solver=%s]", dim,
             states, (int)n, dt, substeps, solver);
    return rows_make(spec, 1, n, threads, 0.7);
}

static array path_of(const rows_case *c, int64_t n)
{
    array y = array_make(3, (int64_t[]){1, n, posenc_rows_width(c->plan)});
    rows_run(c, posenc_positions_range(0, 1), &y);
    return y;
}

/* ---- solutions ---- */

/* All units far on the side where they let through. */
static array smooth_path(const char *solver, int substeps)
{
    enum { N = 5 };
    rows_case c = make(solver, 4, 2, substeps, 0.25, N, 1);
    for (int64_t i = 0; i < c.numbers[B1].count; i++)
        c.numbers[B1].wide[i] = 40;
    for (int64_t i = 0; i < c.numbers[W2].count; i++)
        c.numbers[W2].wide[i] *= 0.25;
    array y = path_of(&c, N);
    rows_free(&c);
    return y;
}

static void solvers_reach_their_order(void **state)
{
    array exact = smooth_path("exact", 1);
    (void)state;
    for (int s = 0; s < SOLVERS; s++) {
        array        one = smooth_path(solvers[s].name, 8), two = smooth_path(solvers[s].name, 16);
        const double gain = largest(&one, &exact) / largest(&two, &exact), want = exp2(solvers[s].order);
        if (!(fabs(gain - want) <= 0.15 * want))
            fail_msg("%s: half the step makes the error %.3g times smaller, not %g", solvers[s].name, gain,
                     want);
        array_free(&one), array_free(&two);
    }
    array_free(&exact);
}

/* dp/dt = slope * max(p + time * t + shift, 0) + lift, p(0) = start, with one channel. */
static array one_channel(double slope, double time, double shift, double lift, double start, double dt,
                         int64_t n)
{
    rows_case    c         = make("exact", 1, 1, 1, dt, n, 1);
    const double set[5][2] = {{1, time}, {shift}, {slope, 0}, {lift}, {start}};
    for (int p = 0; p < 5; p++)
        for (int64_t i = 0; i < c.numbers[p].count; i++)
            c.numbers[p].wide[i] = set[p][i];
    array y = path_of(&c, n);
    rows_free(&c);
    return y;
}

static void exact_follows_an_exponential(void **state)
{
    array y = one_channel(1, 0, 10, -10, 0.5, 0.3, 9);
    (void)state;
    for (int i = 0; i < 9; i++) {
        const double want = 0.5 * exp(0.3 * i);
        assert_true(fabs(y.wide[i] - want) <= 1e-12 * fmax(1, want));
    }
    array_free(&y);
}

/* p = t - 1 until t = 1, then e^(t-1) - 1: the kink lies between two positions. */
static void exact_turns_at_a_kink(void **state)
{
    array y = one_channel(1, 0, 0, 1, -1, 0.3, 9);
    (void)state;
    for (int i = 0; i < 9; i++) {
        const double t = 0.3 * i, want = t < 1 ? t - 1 : exp(t - 1) - 1;
        assert_true(fabs(y.wide[i] - want) <= 1e-12 * fmax(1, want));
    }
    array_free(&y);
}

/* dp/dt = 120 p: e^720 is no number, and to halve steps would not help. */
static void a_path_that_leaves_the_numbers_comes_to_an_end(void **state)
{
    array y = one_channel(120, 0, 0, 0, 1, 1, 7);
    (void)state;
    assert_true(fabs(y.wide[5] / exp(600) - 1) < 1e-9);
    assert_true(!isfinite(y.wide[6]));
    array_free(&y);
}

/* dp/dt = -1e9 (p - t), far from the kink: a solver of this kind needs 1e9 / 3 steps between two positions,
   but where no product is fused with its sum p - t may be rounded to 0 soon, and all steps agree on t - 1e-9.
 */
static void an_equation_too_steep_is_given_up(void **state)
{
    array y = one_channel(-1e9, -1, 10, 1e10, 1, 1, 4);
    (void)state;
    assert_true(y.wide[0] == 1);
    for (int i = 1; i < 4; i++)
        assert_true(isnan(y.wide[i]) || fabs(y.wide[i] - (i - 1e-9)) < 1e-12);
    array_free(&y);
}

/* Steps do not drift off the positions: dt = 0.1 has no exact double, but position 10 is 10 * dt. */
static void positions_are_landed_on(void **state)
{
    rows_case c = make("midpoint", 1, 1, 3, 0.1, 301, 1);
    (void)state;
    for (int p = 0; p < 5; p++)
        for (int64_t i = 0; i < c.numbers[p].count; i++)
            c.numbers[p].wide[i] = (p == W1 || p == W2) && i == 1; /* dp/dt = t: midpoint is exact */
    array y = path_of(&c, 301);
    for (int i = 0; i <= 300; i++)
        assert_true(fabs(y.wide[i] - 0.005 * i * i) <= 1e-12 * fmax(1, y.wide[i]));
    array_free(&y);
    rows_free(&c);
}

/* ---- gradients ---- */

static void the_gradient_is_that_of_the_discrete_solver(void **state)
{
    static const int64_t at[] = {5, 0, 3, 3, 1}; /* in any order, one of them twice, some never */
    (void)state;
    for (int s = 0; s < SOLVERS; s++)
        for (int states = 1; states <= 3; states += 2) {
            rows_case c  = make(solvers[s].name, 3, states, 1 + s, 0.2, 7, 1);
            array     dy = array_make(3, (int64_t[]){1, 5, 3 * states});
            array_fill(&dy, 8, "dy", 1);
            rows_compare_slopes(&c, posenc_positions_range(2, 1), &dy);
            rows_compare_slopes(&c,
                                posenc_positions_array(posenc_tensor_contiguous(
                                    (void *)(uintptr_t)at, POSENC_DTYPE_I64, 1, (int64_t[]){5})),
                                &dy);
            array_free(&dy);
            rows_free(&c);
        }
}

static void exact_has_no_gradient_and_says_so(void **state)
{
    rows_case        c  = make("exact", 2, 1, 1, 0.1, 3, 1);
    array            dy = array_make(3, (int64_t[]){1, 3, 2}), dx = array_make(3, dy.shape);
    posenc_rows_in   in   = {.size = sizeof in, .params = c.params};
    posenc_rows_grad grad = {
        .size = sizeof grad, .dy = array_tensor(&dy, 1), .dx = array_tensor(&dx, 1), .dparams = c.dparams};
    posenc_error err;
    (void)state;
    array_fill(&dy, 8, "dy", 1);
    assert_int_equal(posenc_rows_backward(c.plan, &in, &grad, &c.work, &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "floater has no gradient for W1: solver=exact"));
    assert_true(largest(&dx, NULL) == 0);
    posenc_tensor none[CASE_PARAMS] = {{0}}; /* what x gets does not pass through the solver */
    for (int i = 0; i < 2; i++) {
        grad.dparams = i ? none : NULL;
        assert_int_equal(posenc_rows_backward(c.plan, &in, &grad, &c.work, &err), POSENC_OK);
        assert_memory_equal(dx.wide, dy.wide, (size_t)dy.count * sizeof(double));
    }
    for (int p = 0; p < c.count; p++)
        assert_false(posenc_param_trainable(c.e, p));
    array_free(&dy), array_free(&dx);
    rows_free(&c);
}

/* ---- states and threads ---- */

enum { STATES = 5, DIM = 4, LENGTH = 11 };

static void assert_each_is_what_it_is_alone(const char *solver)
{
    rows_case many = make(solver, DIM, STATES, 2, 0.1, LENGTH, 2);
    array     y    = path_of(&many, LENGTH);
    for (int l = 0; l < STATES; l++) {
        rows_case one = make(solver, DIM, 1, 2, 0.1, LENGTH, 1);
        memcpy(one.numbers[Y0].wide, many.numbers[Y0].wide + l * DIM, DIM * sizeof(double));
        array alone = path_of(&one, LENGTH);
        for (int i = 0; i < LENGTH; i++)
            assert_memory_equal(alone.wide + i * DIM, y.wide + (i * STATES + l) * DIM, DIM * sizeof(double));
        array_free(&alone);
        rows_free(&one);
    }
    array_free(&y);
    rows_free(&many);
}

/* With solver=exact the steps of one depend on no other. */
static void a_state_is_what_it_is_alone(void **state)
{
    (void)state;
    assert_each_is_what_it_is_alone("rk4_38");
    assert_each_is_what_it_is_alone("exact");
}

static void threads_change_no_bit_of_rows_and_gradients(void **state)
{
    rows_case one = make("rk4_classic", DIM, STATES, 2, 0.1, LENGTH, 1);
    array     dy = array_make(3, (int64_t[]){1, LENGTH, STATES * DIM}), y = path_of(&one, LENGTH);
    (void)state;
    array_fill(&dy, 8, "dy", 1);
    rows_back(&one, posenc_positions_range(0, 1), &dy);
    for (int threads = 2; threads <= 7; threads++) {
        rows_case more  = make("rk4_classic", DIM, STATES, 2, 0.1, LENGTH, threads);
        array     again = path_of(&more, LENGTH);
        assert_memory_equal(y.wide, again.wide, (size_t)y.count * sizeof(double));
        rows_back(&more, posenc_positions_range(0, 1), &dy);
        for (int p = 0; p < one.count; p++)
            assert_memory_equal(one.gradients[p].wide, more.gradients[p].wide,
                                (size_t)one.gradients[p].count * sizeof(double));
        array_free(&again);
        rows_free(&more);
    }
    array_free(&y), array_free(&dy);
    rows_free(&one);
}

/* ---- memory and refusals ---- */

static size_t bytes_for(int64_t n, int substeps, posenc_run run)
{
    rows_case    c     = make("rk4_38", 16, 3, substeps, 0.01, n, 1);
    const size_t bytes = posenc_plan_workspace(c.plan, run, NULL);
    rows_free(&c);
    return bytes;
}

/* States are saved at positions, steps between two of them once: length and steps add, they do not
   multiply. */
static void memory_is_linear_in_the_length_and_steps_do_not_multiply_it(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const posenc_run run       = i ? POSENC_RUN_ROWS_BACKWARD : POSENC_RUN_ROWS;
        const size_t     short_one = bytes_for(4096, 5, run), long_one = bytes_for(8192, 5, run);
        assert_true((double)long_one <= 2.01 * (double)short_one);
        assert_true(long_one - short_one <= 2 * (size_t)4096 * 3 * 16 * sizeof(double));
        assert_true(bytes_for(4096, 105, run) - short_one <=
                    (size_t)100 * 2 * 16 * sizeof(double) + 64); /* two states go together */
    }
}

static void positions_off_the_table_are_refused(void **state)
{
    static const struct {
        double      start, step;
        const char *words;
    } refused[]    = {{6, 1, "position 8 is not below positions=8; raise that setting"},
                      {-1, 1, "position -1 is negative; positions begin at 0"},
                      {0.5, 1, "positions must be whole numbers"}};
    rows_case    c = make("euler", 2, 1, 1, 0.1, 8, 1);
    array        y = array_make(3, (int64_t[]){1, 3, 2});
    posenc_error err;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(rows_try(&c, posenc_positions_range(refused[i].start, refused[i].step), &y, &err),
                         POSENC_ERROR_RANGE);
        assert_non_null(strstr(err.message, refused[i].words));
    }
    array_free(&y);
    rows_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solvers_reach_their_order),
        cmocka_unit_test(exact_follows_an_exponential),
        cmocka_unit_test(exact_turns_at_a_kink),
        cmocka_unit_test(a_path_that_leaves_the_numbers_comes_to_an_end),
        cmocka_unit_test(an_equation_too_steep_is_given_up),
        cmocka_unit_test(positions_are_landed_on),
        cmocka_unit_test(the_gradient_is_that_of_the_discrete_solver),
        cmocka_unit_test(exact_has_no_gradient_and_says_so),
        cmocka_unit_test(a_state_is_what_it_is_alone),
        cmocka_unit_test(threads_change_no_bit_of_rows_and_gradients),
        cmocka_unit_test(memory_is_linear_in_the_length_and_steps_do_not_multiply_it),
        cmocka_unit_test(positions_off_the_table_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

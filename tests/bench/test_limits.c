/* SPDX-License-Identifier: MIT */
/*
 * test_limits: the loops that are to reach the limits do what they say, on every instruction set
 *
 * A pass that skipped a part of its buffer would be a limit that nobody reaches; so every element is looked
 * at, in every way of passing. And the arithmetic that attention is credited with is counted pair by pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

#include "bench/workload.h"
#include "bench/limits.h"

enum { N = 128 * 9, BEYOND = 64 };

static float *numbers(void)
{
    float *x = aligned_alloc(64, (N + BEYOND) * sizeof *x);
    for (int i = 0; i < N + BEYOND; i++)
        x[i] = (float)(1 + i);
    return x;
}

/* Calls `check` for each instruction set that runs here and each way. */
static void for_all(void (*check)(const pe_limits_loops *loops, pe_pass_way way))
{
    for (int i = 0; posenc_isa_at(i); i++)
        for (int way = 0; way < PE_PASS_WAYS; way++)
            check(pe_limits_of(posenc_isa_at(i)), (pe_pass_way)way);
}

static void check_in_place(const pe_limits_loops *loops, pe_pass_way way)
{
    float *x = numbers();
    loops->pass(PE_PASS_IN_PLACE, x, x, N, way);
    for (int i = 0; i < N + BEYOND; i++)
        assert_true(x[i] == (float)(i < N ? -(1 + i) : 1 + i));
    free(x);
}

static void a_pass_in_place_negates_every_number_and_none_beyond(void **state)
{
    (void)state;
    for_all(check_in_place);
}

static void check_copy(const pe_limits_loops *loops, pe_pass_way way)
{
    float *x = numbers(), *y = numbers();
    for (int i = 0; i < N; i++)
        x[i] = -x[i];
    loops->pass(PE_PASS_COPY, y, x, N, way);
    for (int i = 0; i < N + BEYOND; i++)
        assert_true(y[i] == (float)(i < N ? -(1 + i) : 1 + i));
    free(x);
    free(y);
}

static void a_copy_copies_every_number_and_none_beyond(void **state)
{
    (void)state;
    for_all(check_copy);
}

static void check_store(const pe_limits_loops *loops, pe_pass_way way)
{
    float *y = numbers();
    loops->pass(PE_PASS_STORE, y, NULL, N, way);
    for (int i = 0; i < N + BEYOND; i++)
        assert_true(i < N ? y[i] > 0 && y[i] < 1 : y[i] == (float)(1 + i));
    free(y);
}

static void a_store_writes_every_number_none_of_them_zero(void **state)
{
    (void)state;
    for_all(check_store);
}

static void check_read(const pe_limits_loops *loops, pe_pass_way way)
{
    float      *x   = numbers();
    const float all = loops->pass(PE_PASS_READ, NULL, x, N, way);
    for (int i = 0; i < N; i += loops->lanes) { /* what comes back is the sum of the first lane */
        x[i] += 1 << 20;
        assert_true(loops->pass(PE_PASS_READ, NULL, x, N, way) != all);
        x[i] -= 1 << 20;
    }
    free(x);
}

static void a_read_looks_at_every_vector(void **state)
{
    (void)state;
    for_all(check_read);
}

static void every_instruction_set_has_loops_of_its_width(void **state)
{
    (void)state;
    for (int i = 0; posenc_isa_at(i); i++)
        assert_true(pe_limits_of(posenc_isa_at(i))->lanes >= 4);
    assert_string_equal(pe_limits_of("plain")->isa, "plain");
    assert_int_equal(pe_limits_of("plain")->lanes, 4);
    assert_true(isfinite(pe_limits_of("plain")->multiply_add(1000)));
}

/* ---- the arithmetic of attention ---- */

static double counted(const pe_bench_shape *s)
{
    double pairs = 0;
    for (int64_t i = 0; i < s->Lq; i++)
        for (int64_t j = 0; j < s->Lk; j++) {
            const int64_t t       = i + s->Lk - s->Lq - j;
            const int     allowed = (!(s->mask & POSENC_MASK_CAUSAL) || t >= 0) &&
                                (!(s->mask & POSENC_MASK_WINDOW) || llabs(t) < s->window);
            pairs += allowed;
        }
    return (s->backward ? 10.0 : 4.0) * (double)(s->D * s->H) * pairs;
}

static void useful_arithmetic_counts_the_pairs_that_the_mask_allows(void **state)
{
    static const int masks[] = {POSENC_MASK_NONE, POSENC_MASK_CAUSAL, POSENC_MASK_WINDOW,
                                POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW};
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int64_t Lq = 1; Lq <= 11; Lq += 5)
            for (int backward = 0; backward < 2; backward++) {
                const pe_bench_shape s = {
                    .H = 3, .Lq = Lq, .Lk = 11, .D = 8, .mask = masks[m], .window = 4, .backward = backward};

                assert_true(pe_workload_operations(&s) == counted(&s));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_in_place_negates_every_number_and_none_beyond),
        cmocka_unit_test(a_copy_copies_every_number_and_none_beyond),
        cmocka_unit_test(a_store_writes_every_number_none_of_them_zero),
        cmocka_unit_test(a_read_looks_at_every_vector),
        cmocka_unit_test(every_instruction_set_has_loops_of_its_width),
        cmocka_unit_test(useful_arithmetic_counts_the_pairs_that_the_mask_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

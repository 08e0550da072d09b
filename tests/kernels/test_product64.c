/* SPDX-License-Identifier: MIT */
/*
 * test_product64: C = A*B in doubles, on every instruction set this processor has
 *
 * Against a loop in long double, for the tails of all blocks. Tolerance: one rounding of 2^-53 per step, two
 * where there is no fused multiply-add. Nothing is written outside the padded rows, and a row's bits do not
 * depend on the rows beside it, nor on how A is laid out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MOST_R = 15, MOST_K = 33, MOST_COLUMNS = 136, STRIDE = 144 };

static double a[MOST_R * MOST_K], b[MOST_K * STRIDE], start[(MOST_R + 1) * STRIDE];

static int begin(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < MOST_R * MOST_K; i++)
        a[i] = posenc_random_normal(3, "A", i);
    for (uint64_t i = 0; i < MOST_K * STRIDE; i++)
        b[i] = posenc_random_normal(3, "B", i);
    for (uint64_t i = 0; i < (MOST_R + 1) * STRIDE; i++)
        start[i] = posenc_random_normal(3, "C", i);
    return 0;
}

/* A [R,K] by rows, or the same by columns. */
static void run(const pe_kernels *kernels, double *c, int64_t R, int64_t columns, int64_t K, int add,
                int by_columns)
{
    static double turned[MOST_R * MOST_K];
    for (int64_t i = 0; by_columns && i < R * K; i++)
        turned[i % K * R + i / K] = a[i];
    memcpy(c, start, sizeof start);
    kernels->product64(c, STRIDE, by_columns ? turned : a, by_columns ? 1 : K, by_columns ? R : 1, b, STRIDE,
                       R, columns, K, add);
}

static void check(const pe_kernels *kernels, int64_t R, int64_t columns, int64_t K, int add)
{
    static double c[(MOST_R + 1) * STRIDE];
    const int64_t padded = (columns + PE_LANES64 - 1) / PE_LANES64 * PE_LANES64;
    run(kernels, c, R, columns, K, add, 0);
    for (int64_t i = 0; i < (MOST_R + 1) * STRIDE; i++) {
        const int64_t r = i / STRIDE, column = i % STRIDE;
        long double   sum = add ? start[i] : 0, size = fabsl(sum);
        if (r >= R || column >= padded) {
            assert_memory_equal(&c[i], &start[i], sizeof *c);
            continue;
        }
        for (int64_t k = 0; k < K; k++) {
            const long double x = (long double)a[r * K + k] * b[k * STRIDE + column];
            sum += x;
            size += fabsl(x);
        }
        if (!(fabsl(c[i] - sum) <= (long double)(2 * K + 1) * 0x1p-53L * size))
            fail_msg("%s: C[%d,%d] of K=%d is %.17g, not %.17Lg", kernels->isa, (int)r, (int)column, (int)K,
                     c[i], sum);
    }
}

static void product64_is_the_plain_loop_for_every_tail(void **state)
{
    static const int64_t columns[] = {1, 7, 8, 9, 16, 31, 32, 40, 63, 64, 65, 72, 128, MOST_COLUMNS};
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t R = 0; R <= MOST_R; R++)
            for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
                for (int64_t K = 0; K <= MOST_K; K += 11)
                    for (int add = 0; add < 2; add++)
                        check(pe_kernels_at(isa), R, columns[c], K, add);
}

static void a_row_has_the_same_bits_in_any_company_and_layout(void **state)
{
    static double all[(MOST_R + 1) * STRIDE], some[(MOST_R + 1) * STRIDE];
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        run(pe_kernels_at(isa), all, MOST_R, 100, MOST_K, 0, 0);
        for (int64_t R = 1; R <= MOST_R; R++)
            for (int by_columns = 0; by_columns < 2; by_columns++) {
                run(pe_kernels_at(isa), some, R, 100, MOST_K, 0, by_columns);
                for (int64_t r = 0; r < R; r++)
                    assert_memory_equal(some + r * STRIDE, all + r * STRIDE, 100 * sizeof *all);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product64_is_the_plain_loop_for_every_tail),
        cmocka_unit_test(a_row_has_the_same_bits_in_any_company_and_layout),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}

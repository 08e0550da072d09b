/* SPDX-License-Identifier: MIT */
/*
 * test_products: the matrix products of the float model, against sums in double
 *
 * On every instruction set, for widths around multiples of a vector and depths around that of a piece.
 * Tolerance: K + 1 roundings of sum |A||B|, as for the kernel (tests/kernels/test_product.c).
 */
#include "train/model/products.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/guarded.h"

static const int64_t widths[] = {1, 10, 16, 24, 64, 72, 131}, depths[] = {1, 3, 127, 128, 129, 300},
                     rows[] = {1, 5, 70};

enum {
    WIDTHS = sizeof widths / sizeof *widths,
    DEPTHS = sizeof depths / sizeof *depths,
    ROWS   = sizeof rows / sizeof *rows
};

typedef struct problem {
    guarded a, b, c;
} problem;

/* C [R, columns]; A and B of the sizes given, B with room to be read beyond its end. */
static problem make(int64_t R, int64_t columns, int64_t a, int64_t b)
{
    problem p = {guarded_make(a), guarded_make(b), guarded_make(R * columns)};
    fill_random(p.a.at, a, 1, a, "A", 1);
    fill_random(p.b.at, b, 1, b, "B", 1);
    fill_random(p.c.at, columns, R, columns, "C", 1);
    guarded_remember(&p.c);
    return p;
}

static void free_problem(problem *p)
{
    guarded_free(&p->a);
    guarded_free(&p->b);
    guarded_free(&p->c);
}

/* A element (r,k) at r * a_row + k * a_col. */
static void check(const char *isa, const problem *p, int64_t R, int64_t columns, int64_t K, int64_t a_row,
                  int64_t a_col, int add)
{
    if (guarded_changed(&p->c, columns, R, columns) >= 0)
        fail_msg("%s: wrote outside C, R=%d columns=%d K=%d", isa, (int)R, (int)columns, (int)K);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < columns; c++) {
            double sum = add ? (double)p->c.before[GUARD + r * columns + c] : 0, size = fabs(sum);
            for (int64_t k = 0; k < K; k++) {
                const double x = (double)p->a.at[r * a_row + k * a_col] * (double)p->b.at[k * columns + c];
                sum += x;
                size += fabs(x);
            }
            if (!(fabs((double)p->c.at[r * columns + c] - sum) <= (double)(K + 1) * 0x1p-24 * size))
                fail_msg("%s: C[%d,%d] of %dx%dx%d is %.9g, not %.9g", isa, (int)r, (int)c, (int)R,
                         (int)columns, (int)K, (double)p->c.at[r * columns + c], sum);
        }
}

static void products_are_sums_for_every_tail(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int i = 0; i < WIDTHS * DEPTHS * ROWS; i++)
            for (int add = 0; add < 2; add++) {
                const int64_t columns = widths[i % WIDTHS], K = depths[i / WIDTHS % DEPTHS],
                              R = rows[i / WIDTHS / DEPTHS];
                problem p       = make(R, columns, R * K, K * columns);
                pe_products_multiply(pe_kernels_at(isa), p.c.at, p.a.at, p.b.at, R, K, columns, add);
                check(pe_kernels_at(isa)->isa, &p, R, columns, K, K, 1, add);
                free_problem(&p);
            }
}

static void folds_are_sums_over_the_rows_for_every_tail(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int i = 0; i < WIDTHS * DEPTHS * ROWS; i++) {
            const int64_t columns = widths[i % WIDTHS], n = depths[i / WIDTHS % DEPTHS],
                          k = rows[i / WIDTHS / DEPTHS];
            problem p       = make(k, columns, n * k, n * columns);
            pe_products_fold(pe_kernels_at(isa), p.c.at, p.a.at, p.b.at, n, k, columns);
            check(pe_kernels_at(isa)->isa, &p, k, columns, n, 1, k, 1);
            free_problem(&p);
        }
}

static void a_row_does_not_depend_on_how_many_rows_are_multiplied_with_it(void **state)
{
    enum { R = 70, K = 200, COLUMNS = 72 };
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        problem all = make(R, COLUMNS, R * K, K * COLUMNS);
        pe_products_multiply(pe_kernels_at(isa), all.c.at, all.a.at, all.b.at, R, K, COLUMNS, 0);
        for (int64_t n = 1; n < R; n += 9) {
            problem some = make(R, COLUMNS, R * K, K * COLUMNS);
            pe_products_multiply(pe_kernels_at(isa), some.c.at, some.a.at, some.b.at, n, K, COLUMNS, 0);
            assert_memory_equal(some.c.at, all.c.at, (size_t)(n * COLUMNS) * sizeof(float));
            free_problem(&some);
        }
        free_problem(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sums_for_every_tail),
        cmocka_unit_test(folds_are_sums_over_the_rows_for_every_tail),
        cmocka_unit_test(a_row_does_not_depend_on_how_many_rows_are_multiplied_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

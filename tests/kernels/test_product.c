/* SPDX-License-Identifier: MIT */
/*
 * test_product: C = A*B and what belongs to it, on every instruction set this processor has
 *
 * Against a plain double loop, for all block tails: rows 0..19, columns around multiples of 16, K from 0.
 * Tolerance: the Error line of kernels.h, K/2 ulp of sum |A||B| (one rounding of 2^-24 per step); the
 * portable table has no fused multiply-add and rounds each product too, hence K + 1 instead of K. Writes stay
 * inside the padded rows; A is read at free strides, so the transposed A must give the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guarded.h"

typedef struct problem {
    int64_t R, columns, K, c_stride, b_stride;
    guarded a, b, c;
} problem;

static problem make(int64_t R, int64_t columns, int64_t K, int transposed)
{
    problem p = {
        .R = R, .columns = columns, .K = K, .c_stride = padded(columns) + 7, .b_stride = padded(columns) + 3};
    p.a = guarded_make(R * K);
    p.b = guarded_make((K + 1) * p.b_stride);
    p.c = guarded_make((R + 1) * p.c_stride);
    fill_random(p.b.at, p.b_stride, K, padded(columns), "B", 1);
    fill_random(p.c.at, p.c_stride, R, padded(columns), "C", 1);
    for (int64_t r = 0; r < R; r++)
        for (int64_t k = 0; k < K; k++)
            p.a.at[transposed ? k * R + r : r * K + k] =
                (float)posenc_random_normal(9, "A", (uint64_t)(r * 4096 + k));
    guarded_remember(&p.c);
    return p;
}

static void free_problem(problem *p)
{
    guarded_free(&p->a);
    guarded_free(&p->b);
    guarded_free(&p->c);
}

static void run(const pe_kernels *kernels, problem *p, int transposed, int add)
{
    kernels->product(p->c.at, p->c_stride, p->a.at, transposed ? 1 : p->K, transposed ? p->R : 1, p->b.at,
                     p->b_stride, p->R, p->columns, p->K, add);
}

static void check(const char *isa, const problem *p, int add)
{
    if (guarded_changed(&p->c, p->c_stride, p->R, padded(p->columns)) >= 0)
        fail_msg("%s: product wrote outside C, R=%d columns=%d K=%d", isa, (int)p->R, (int)p->columns,
                 (int)p->K);
    for (int64_t r = 0; r < p->R; r++)
        for (int64_t c = 0; c < p->columns; c++) {
            const double start = add ? (double)p->c.before[GUARD + r * p->c_stride + c] : 0;
            double       sum = start, size = fabs(start);
            for (int64_t k = 0; k < p->K; k++) {
                const double x = (double)p->a.at[r * p->K + k] * (double)p->b.at[k * p->b_stride + c];
                sum += x;
                size += fabs(x);
            }
            const double got     = (double)p->c.at[r * p->c_stride + c],
                         allowed = (double)(p->K + 1) * 0x1p-24 * size;
            if (!(fabs(got - sum) <= allowed))
                fail_msg("%s: C[%d,%d] of %dx%dx%d is %.9g, not %.9g", isa, (int)r, (int)c, (int)p->R,
                         (int)p->columns, (int)p->K, got, sum);
        }
}

static const int64_t columns_tried[] = {1, 3, 15, 16, 17, 32, 33, 48, 63, 64, 65, 80, 100, 131};
static const int64_t depths_tried[]  = {0, 1, 2, 5, 64};

enum {
    COLUMNS = sizeof columns_tried / sizeof *columns_tried,
    DEPTHS  = sizeof depths_tried / sizeof *depths_tried
};

static void product_is_the_double_loop_for_every_tail(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t R = 0; R < 20; R++)
            for (int c = 0; c < COLUMNS; c++)
                for (int k = 0; k < DEPTHS; k++)
                    for (int add = 0; add < 2; add++) {
                        problem p = make(R, columns_tried[c], depths_tried[k], 0);
                        run(pe_kernels_at(isa), &p, 0, add);
                        check(pe_kernels_at(isa)->isa, &p, add);
                        free_problem(&p);
                    }
}

static void transposed_a_gives_the_same_bits(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t R = 1; R < 20; R += 3) {
            problem p = make(R, 37, 21, 0), t = make(R, 37, 21, 1);
            run(pe_kernels_at(isa), &p, 0, 0);
            run(pe_kernels_at(isa), &t, 1, 0);
            assert_memory_equal(p.c.at, t.c.at, (size_t)p.c.count * sizeof(float));
            free_problem(&p);
            free_problem(&t);
        }
}

static void a_row_does_not_depend_on_how_many_rows_are_multiplied_with_it(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++) {
        problem all = make(19, 70, 33, 0);
        run(pe_kernels_at(isa), &all, 0, 0);
        for (int64_t R = 1; R < 19; R++) {
            problem some = make(R, 70, 33, 0);
            run(pe_kernels_at(isa), &some, 0, 0);
            for (int64_t r = 0; r < R; r++)
                assert_memory_equal(some.c.at + r * some.c_stride, all.c.at + r * all.c_stride,
                                    70 * sizeof(float));
            free_problem(&some);
        }
        free_problem(&all);
    }
}

/* Sums are rounded, then added to: what is there (add), or any rows that lie as they like (plus). */
static void what_is_added_meets_the_bits_of_the_bare_product(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t R = 0; R < 20; R++)
            for (int c = 0; c < COLUMNS; c++) {
                const int64_t K =
                    (const int64_t[]){21, 2, 7}[R / 2 % 3]; /* 2: less than there are rows to ask for */
                const pe_kernels *k = pe_kernels_at(isa);
                problem bare = make(R, columns_tried[c], K, 0), added = make(R, columns_tried[c], K, 0),
                        plus    = make(R, columns_tried[c], K, 0);
                const int64_t n = R + padded(columns_tried[c]);
                guarded       P = guarded_make(n);
                fill_random(P.at, n, 1, n, "P", 1);
                const pe_ahead ahead = {.at = {0, (uintptr_t)P.at}, .step = {0, sizeof(float)}};
                run(k, &bare, 0, 0);
                run(k, &added, 0, 1);
                k->product_plus(plus.c.at, plus.c_stride, plus.a.at, plus.K, plus.b.at, plus.b_stride, R,
                                plus.columns, plus.K, P.at + R, -1, R % 2 ? &ahead : NULL);
                check(k->isa, &added, 1);
                assert_int_equal(guarded_changed(&plus.c, plus.c_stride, R, padded(plus.columns)), -1);
                for (int64_t r = 0; r < R; r++)
                    for (int64_t i = 0; i < bare.columns; i++) {
                        const int64_t at     = r * bare.c_stride + i;
                        const float   sums[] = {added.c.before[GUARD + at] + bare.c.at[at],
                                                bare.c.at[at] + P.at[R - r + i]};
                        assert_memory_equal(&added.c.at[at], &sums[0], sizeof(float));
                        assert_memory_equal(&plus.c.at[at], &sums[1], sizeof(float));
                    }
                guarded_free(&P);
                free_problem(&bare);
                free_problem(&added);
                free_problem(&plus);
            }
}

/* dot_rows promises the very sum of product: delta must cancel dW where a query sees one key alone. */
static void dot_rows_has_the_bits_of_product(void **state)
{
    enum { R = 21, K = 83 };
    float x[R * K], y[R * K], out[R + 1];
    (void)state;
    fill_random(x, K, R, K, "x", 1);
    fill_random(y, K, R, K, "y", 1);
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t rows = 0; rows <= R; rows++) {
            out[rows] = 7;
            pe_kernels_at(isa)->dot_rows(out, x, K, y, K, rows, K);
            assert_true(out[rows] == 7);
            for (int64_t r = 0; r < rows; r++) {
                float b[K * PE_LANES] = {0}, c[PE_LANES];
                for (int k = 0; k < K; k++)
                    b[k * PE_LANES] = y[r * K + k];
                pe_kernels_at(isa)->product(c, PE_LANES, x + r * K, K, 1, b, PE_LANES, 1, 1, K, 0);
                assert_memory_equal(&out[r], &c[0], sizeof(float));
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_is_the_double_loop_for_every_tail),
        cmocka_unit_test(transposed_a_gives_the_same_bits),
        cmocka_unit_test(a_row_does_not_depend_on_how_many_rows_are_multiplied_with_it),
        cmocka_unit_test(what_is_added_meets_the_bits_of_the_bare_product),
        cmocka_unit_test(dot_rows_has_the_bits_of_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

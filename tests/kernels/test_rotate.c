/* SPDX-License-Identifier: MIT */
/*
 * test_rotate: pairs of channels turned in place, on every instruction set
 *
 * Against a plain double loop over the table as given, for pair counts with every tail and strides wider than the
 * rows. Tolerance: the Error line of kernels.h, 2^-22 * hypot(x_a, x_b). There and back costs it twice, plus what the
 * table's rounded cosine and sine miss of length 1: |c^2 + s^2 - 1| <= 2^-23.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guarded.h"

enum { ROWS = 4, MOST = 40 };

typedef struct layout {
    const char *name;
    int         half;
} layout;

static const layout layouts[] = {{"interleaved", 0}, {"half", 1}};

static pe_rotate_fn *kernel_of(const pe_kernels *kernels, const layout *l)
{
    return l->half ? kernels->rotate_half : kernels->rotate_interleaved;
}

static int64_t first_of(const layout *l, int64_t m)
{
    return l->half ? m : 2 * m;
}

static int64_t second_of(const layout *l, int64_t m, int64_t M)
{
    return l->half ? m + M : 2 * m + 1;
}

typedef struct problem {
    int64_t M, x_stride, t_stride;
    guarded x, table;
} problem;

static problem make(int64_t M)
{
    problem p = {.M = M, .x_stride = 2 * M + 3, .t_stride = 2 * M + 1};
    p.x       = guarded_make((ROWS + 1) * p.x_stride);
    p.table   = guarded_make((ROWS + 1) * p.t_stride);
    fill_random(p.x.at, p.x_stride, ROWS, 2 * M, "x", 1);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t m = 0; m < M; m++) {
            const double angle                 = posenc_random_normal(4, "angle", (uint64_t)(r * MOST + m));
            p.table.at[r * p.t_stride + m]     = (float)cos(angle);
            p.table.at[r * p.t_stride + M + m] = (float)sin(angle);
        }
    guarded_remember(&p.x);
    guarded_remember(&p.table);
    return p;
}

static void free_problem(problem *p)
{
    guarded_free(&p->x);
    guarded_free(&p->table);
}

/* Largest error as a fraction of hypot(x_a, x_b). */
static double error_of(const problem *p, const layout *l, double sign)
{
    double worst = 0;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t m = 0; m < p->M; m++) {
            const float *before = p->x.before + GUARD + r * p->x_stride, *now = p->x.at + r * p->x_stride;
            const double a = (double)before[first_of(l, m)], b = (double)before[second_of(l, m, p->M)];
            const double c  = (double)p->table.at[r * p->t_stride + m],
                         n  = sign * (double)p->table.at[r * p->t_stride + p->M + m];
            const double ya = (double)now[first_of(l, m)] - (a * c - b * n),
                         yb = (double)now[second_of(l, m, p->M)] - (b * c + a * n);
            worst           = fmax(worst, fmax(fabs(ya), fabs(yb)) / hypot(a, b));
            if (isnan(ya) || isnan(yb))
                return INFINITY;
        }
    return worst;
}

static void turning_is_its_formula_for_every_number_of_pairs(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++)
            for (int64_t M = 1; M <= MOST; M++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    problem p = make(M);
                    kernel_of(pe_kernels_at(isa), &layouts[k])(p.x.at, p.x_stride, p.table.at, p.t_stride,
                                                               ROWS, M, (float)sign);
                    if (guarded_changed(&p.x, p.x_stride, ROWS, 2 * M) >= 0 ||
                        guarded_changed(&p.table, 1, 0, 0) >= 0)
                        fail_msg("%s, %s, M=%d: wrote outside", pe_kernels_at(isa)->isa, layouts[k].name,
                                 (int)M);
                    const double error = error_of(&p, &layouts[k], sign);
                    if (!(error <= 0x1p-22))
                        fail_msg("%s, %s, M=%d: off by %.3g", pe_kernels_at(isa)->isa, layouts[k].name,
                                 (int)M, error);
                    free_problem(&p);
                }
}

static void turning_back_undoes_turning_forward(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++)
            for (int64_t M = 1; M <= MOST; M += 3) {
                problem       p    = make(M);
                pe_rotate_fn *turn = kernel_of(pe_kernels_at(isa), &layouts[k]);
                turn(p.x.at, p.x_stride, p.table.at, p.t_stride, ROWS, M, 1);
                turn(p.x.at, p.x_stride, p.table.at, p.t_stride, ROWS, M, -1);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t m = 0; m < M; m++) {
                        const float *before = p.x.before + GUARD + r * p.x_stride,
                                    *now    = p.x.at + r * p.x_stride;
                        const int64_t a = first_of(&layouts[k], m), b = second_of(&layouts[k], m, M);
                        const double  size = hypot((double)before[a], (double)before[b]);
                        assert_true(fabs((double)now[a] - (double)before[a]) <=
                                    (2 * 0x1p-22 + 0x1p-23) * size);
                        assert_true(fabs((double)now[b] - (double)before[b]) <=
                                    (2 * 0x1p-22 + 0x1p-23) * size);
                    }
                free_problem(&p);
            }
}

static void a_nan_spreads_to_its_own_pair_only(void **state)
{
    enum { M = 19 };
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++)
            for (int64_t bad = 0; bad < M; bad++) {
                problem p                                       = make(M);
                p.x.at[p.x_stride + first_of(&layouts[k], bad)] = NAN;
                kernel_of(pe_kernels_at(isa), &layouts[k])(p.x.at, p.x_stride, p.table.at, p.t_stride, ROWS,
                                                           M, 1);
                for (int64_t r = 0; r < ROWS; r++)
                    for (int64_t m = 0; m < M; m++) {
                        const int is_bad = r == 1 && m == bad;
                        assert_int_equal(isnan(p.x.at[r * p.x_stride + first_of(&layouts[k], m)]) != 0,
                                         is_bad);
                        assert_int_equal(isnan(p.x.at[r * p.x_stride + second_of(&layouts[k], m, M)]) != 0,
                                         is_bad);
                    }
                free_problem(&p);
            }
}

static void no_rows_mean_no_writes(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int k = 0; k < 2; k++) {
            problem p = make(8);
            kernel_of(pe_kernels_at(isa), &layouts[k])(p.x.at, p.x_stride, p.table.at, p.t_stride, 0, 8, 1);
            assert_int_equal(guarded_changed(&p.x, 1, 0, 0), -1);
            free_problem(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turning_is_its_formula_for_every_number_of_pairs),
        cmocka_unit_test(turning_back_undoes_turning_forward),
        cmocka_unit_test(a_nan_spreads_to_its_own_pair_only),
        cmocka_unit_test(no_rows_mean_no_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

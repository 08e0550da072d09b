/* SPDX-License-Identifier: MIT */
/*
 * test_index: index maps against integer arithmetic of any size
 *
 * floor(ln(n/m)/ln(M/m) * s) >= k says (n/m)^s >= (M/m)^k, that is n^s * m^k >= M^k * m^s: a comparison of
 * whole numbers, made here with exact products. It is asked on both sides of every class that the map
 * returns, for all numbers of buckets up to 40 and distances around every power and boundary; no tolerance,
 * no logarithm. The same for DeBERTa with ceil. T5's room fills runs of distances class by class: every
 * distance is held against the map. Beside it, what holds for any size: classes never fall with distance and
 * never leave the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/score/index.h"
#include "workspace.h"

enum { LIMBS = 24 };

typedef struct whole {
    uint32_t limb[LIMBS]; /* lowest first */
} whole;

static void multiply(whole *x, int64_t factor, int64_t times)
{
    for (int64_t t = 0; t < times; t++) {
        uint64_t carry = 0;
        for (int i = 0; i < LIMBS; i++) {
            carry += (uint64_t)x->limb[i] * (uint64_t)factor;
            x->limb[i] = (uint32_t)carry;
            carry >>= 32;
        }
        assert_true(carry == 0); /* else LIMBS is too small for this test */
    }
}

/* a^e * b^f >= c^g * d^h ? */
static int is_at_least(int64_t a, int64_t e, int64_t b, int64_t f, int64_t c, int64_t g, int64_t d, int64_t h)
{
    whole x = {{1}}, y = {{1}};
    multiply(&x, a, e);
    multiply(&x, b, f);
    multiply(&y, c, g);
    multiply(&y, d, h);
    for (int i = LIMBS - 1; i >= 0; i--)
        if (x.limb[i] != y.limb[i])
            return x.limb[i] > y.limb[i];
    return 1;
}

/* Is `large`, the class behind the m exact ones, floor(ln(n/m)/ln(M/m) * s), limited to s - 1 where s = N -
   m? */
static int is_t5_class(int64_t large, int64_t n, int64_t m, int64_t M, int64_t s)
{
    const int from  = is_at_least(n, s, m, large, M, large, m, s);
    const int below = large == s - 1 || !is_at_least(n, s, m, large + 1, M, large + 1, m, s);
    return large >= 0 && large < s && from && below;
}

static void t5_has_the_class_of_exact_arithmetic(void **state)
{
    static const int64_t spans[] = {1, 2, 7, 20, 50, 100, 128, 333};
    (void)state;
    for (int64_t buckets = 4; buckets <= 40; buckets += 1 + buckets / 16)
        for (int both = 0; both < 2; both++)
            for (size_t k = 0; k < sizeof spans / sizeof *spans; k++) {
                const int64_t N = both ? buckets / 2 : buckets, m = N / 2,
                              M = spans[k] > m ? spans[k] : m + spans[k];
                for (int64_t n = 0; n <= M + 3; n++) {
                    const int64_t got = pe_index_t5(-n, buckets, M, both);
                    if (n < m ? got != n : !is_t5_class(got - m, n, m, M, N - m))
                        fail_msg("%d buckets to %d, distance %d: class %d", (int)buckets, (int)M, (int)n,
                                 (int)got);
                }
            }
}

static void t5_puts_the_future_where_its_direction_says(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 300; n++) {
        assert_int_equal(pe_index_t5(n, 32, 128, 1), 16 + pe_index_t5(-n, 32, 128, 1));
        assert_int_equal(pe_index_t5(n, 32, 128, 0), 0);
    }
    assert_int_equal(pe_index_t5(-40, 32, 100, 0),
                     24); /* ln(2.5)/ln(6.25) is 1/2 exactly: libm alone may say 23 */
}

static void t5_never_falls_and_never_leaves_its_table(void **state)
{
    static const int64_t tables[][2] = {{32, 128}, {2, 2}, {3, 1000000}, {1048576, 2000000000}, {320, 800}};
    (void)state;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        int64_t before = 0;
        for (int64_t n = 0; n < ((int64_t)1 << 40); n += 1 + n / 97) {
            const int64_t now = pe_index_t5(-n, tables[k][0], tables[k][1], 0);
            assert_in_range(now, before, tables[k][0] - 1);
            before = now;
        }
        assert_int_equal(before, tables[k][0] - 1);
    }
}

/* large = ceil(ln(n/mid)/ln(far/mid) * (mid-1)), the smallest k with (far/mid)^k >= (n/mid)^(mid-1) */
static int is_deberta_class(int64_t large, int64_t n, int64_t mid, int64_t far)
{
    const int enough = is_at_least(far, large, mid, mid - 1, n, mid - 1, mid, large);
    const int needed = large == 0 || !is_at_least(far, large - 1, mid, mid - 1, n, mid - 1, mid, large - 1);
    return large >= 0 && enough && needed;
}

static void deberta_has_the_class_of_exact_arithmetic(void **state)
{
    static const int64_t farthest[] = {3, 10, 40, 128, 512};
    (void)state;
    for (int64_t buckets = 4; buckets <= 36; buckets += 1 + buckets / 9)
        for (size_t k = 0; k < sizeof farthest / sizeof *farthest; k++) {
            const int64_t mid = buckets / 2, max = mid + 1 + farthest[k];
            for (int64_t n = 0; n <= max + 40; n++) {
                const int64_t got = pe_index_deberta(n, buckets, max, 0);
                if (n <= mid ? got != n : !is_deberta_class(got - mid, n, mid, max - 1))
                    fail_msg("%d buckets to %d, distance %d: class %d", (int)buckets, (int)max, (int)n,
                             (int)got);
            }
        }
}

static void deberta_is_odd_and_clipping_first_only_changes_what_is_far(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 3000; n++) {
        assert_int_equal(pe_index_deberta(-n, 256, 512, 0), -pe_index_deberta(n, 256, 512, 0));
        assert_int_equal(pe_index_deberta(-n, 256, 512, 1), -pe_index_deberta(n, 256, 512, 1));
        assert_int_equal(pe_index_deberta(n, 256, 512, 1), pe_index_deberta(n < 511 ? n : 511, 256, 512, 0));
    }
    assert_true(pe_index_deberta(3000, 256, 512, 0) > pe_index_deberta(3000, 256, 512, 1));
}

/* Biases of the distances last, last - 1 .. last - n + 1, where class c has the bias c. */
static void read_classes(const char *spec, posenc_executor executor, int64_t classes, int64_t last, int64_t n,
                         double *classes_of)
{
    const posenc_dims dims    = {.B = 1, .H = 1, .G = 1, .Lq = 1, .Lk = n, .D = 2, .Dv = 2, .d_model = 2};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan;
    options.executor = executor;
    assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, &options, NULL), POSENC_OK);
    double *table = malloc((size_t)classes * sizeof *table), numbers[2] = {0};
    for (int64_t c = 0; c < classes; c++)
        table[c] = (double)c;
    posenc_tensor param = posenc_tensor_contiguous(table, POSENC_DTYPE_F64, 2, (int64_t[]){classes, 1}),
                  to    = posenc_tensor_contiguous(classes_of, POSENC_DTYPE_F64, 3, (int64_t[]){1, 1, n});
    const posenc_attend_in in   = {.size   = sizeof in,
                                   .q      = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F64, 4,
                                                                      (int64_t[]){1, 1, 1, 2}),
                                   .q_pos  = posenc_positions_range((double)last, 1),
                                   .k_pos  = posenc_positions_range(0, 1),
                                   .params = &param};
    posenc_workspace       work = workspace_for(plan, POSENC_RUN_SCORES);
    assert_int_equal(posenc_bias(plan, &in, &to, &work, NULL), POSENC_OK);
    posenc_workspace_free(&work);
    free(table);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* Runs that begin and end anywhere, also amid a class and on both sides of 0. */
static void t5_fills_runs_with_the_class_of_each_distance(void **state)
{
    static const int64_t shapes[][2] = {{32, 128}, {32, 100},  {4, 3},    {7, 50},
                                        {10, 33},  {33, 1000}, {64, 5000}};
    static const int64_t runs[][2]   = {{3000, 6000}, {0, 1}, {0, 40}, {29, 37}, {7, 9}, {-3, 60}, {101, 5}};
    static double        got[6000];
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes * 4; i++)
        for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
            const int64_t         buckets = shapes[i / 4][0], far = shapes[i / 4][1];
            const int             both     = i % 2;
            const posenc_executor executor = i / 2 % 2 ? POSENC_EXECUTOR_TILED : POSENC_EXECUTOR_REFERENCE;
            char                  spec[128];
            snprintf(spec, sizeof spec, "t5[num_buckets=%d:max_distance=%d:bidirectional=%s]", (int)buckets,
                     (int)far, both ? "yes" : "no");
            read_classes(spec, executor, buckets, runs[k][0], runs[k][1], got);
            for (int64_t j = 0; j < runs[k][1]; j++)
                if (got[j] != (double)pe_index_t5(j - runs[k][0], buckets, far, both))
                    fail_msg("%s: distance %d has class %g", spec, (int)(runs[k][0] - j), got[j]);
        }
}

static void clipping_keeps_what_is_between_its_ends(void **state)
{
    (void)state;
    for (int64_t t = -9; t <= 9; t++) {
        const int64_t got = pe_index_clip(t, -3, 5);
        assert_in_range(got + 3, 0, 8);
        assert_true(t < -3 ? got == -3 : t > 5 ? got == 5 : got == t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t5_has_the_class_of_exact_arithmetic),
        cmocka_unit_test(t5_puts_the_future_where_its_direction_says),
        cmocka_unit_test(t5_never_falls_and_never_leaves_its_table),
        cmocka_unit_test(t5_fills_runs_with_the_class_of_each_distance),
        cmocka_unit_test(clipping_keeps_what_is_between_its_ends),
        cmocka_unit_test(deberta_has_the_class_of_exact_arithmetic),
        cmocka_unit_test(deberta_is_odd_and_clipping_first_only_changes_what_is_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_cosines: rows of cosines have the very bits of one angle at a time, on every instruction set
 *
 * That these bits are right is test_angle's business; here every count of angles up to several vectors, steps
 * 0, 1 and 2 through the frequencies, positions of all sizes and signs, whole quarter turns among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <string.h>

#include "base/angle.h"
#include "kernels/kernels.h"

enum { MOST = 37 };

static void rows_have_the_bits_of_single_angles(void **state)
{
    (void)state;
    for (int isa = 0; pe_kernels_at(isa); isa++)
        for (int64_t step = 0; step <= 2; step++)
            for (int64_t n = 0; n <= MOST; n++) {
                pe_frequency k[2 * MOST];
                double       p[MOST], c[MOST + 1], s[MOST + 1];
                for (int i = 0; i < 2 * MOST; i++)
                    k[i] = i % 5 ? pe_angle_frequency(pow(10000, -i / 40.0)) : (pe_frequency){1, 0};
                for (uint64_t i = 0; i < MOST; i++) {
                    const double u = posenc_random_uniform(1, "positions", i + (uint64_t)n);
                    p[i]           = (i % 2 ? 1 : -1) * (i % 3 ? floor(exp2(31 * u)) : 300 * u);
                }
                c[n] = s[n] = 7;
                pe_kernels_at(isa)->cosines(p, &k[0].k_hi, step, c, s, n);
                for (int64_t i = 0; i < n; i++) {
                    double cosine, sine;
                    pe_angle_cos_sin(p[i], k[i * step], &cosine, &sine);
                    assert_memory_equal(&c[i], &cosine, sizeof cosine);
                    assert_memory_equal(&s[i], &sine, sizeof sine);
                }
                assert_true(c[n] == 7 && s[n] == 7);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_have_the_bits_of_single_angles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

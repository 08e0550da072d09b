/* SPDX-License-Identifier: MIT */
/*
 * test_random: Philox against its authors' vectors, and what is made of it against what a distribution must
 * show
 *
 * Known answers: Random123 1.14, tests/kat_vectors, philox4x32 with 10 rounds. Moments: the mean of n
 * independent numbers of standard deviation s lies within 5 s/sqrt(n) of the truth, the variance of n normals
 * within 5 sqrt(2/n), of n uniforms within 5/12 sqrt(0.8/n); a right generator misses such a bound once in a
 * million streams, and the streams here are fixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>

#include "base/random.h"

enum { MANY = 100000 };

static void philox_gives_the_known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        pe_random_philox(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

typedef struct moments {
    double mean, variance, low, high;
} moments;

static moments moments_of(double (*draw)(uint64_t seed, const char *name, uint64_t index))
{
    moments m       = {0, 0, INFINITY, -INFINITY};
    double  squares = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        const double x = draw(17, "moments", i);
        m.mean += x / MANY;
        squares += x * x / MANY;
        m.low  = fmin(m.low, x);
        m.high = fmax(m.high, x);
    }
    m.variance = squares - m.mean * m.mean;
    return m;
}

static void uniform_numbers_fill_zero_to_one_evenly(void **state)
{
    const moments m = moments_of(posenc_random_uniform);
    (void)state;
    assert_true(m.low >= 0 && m.low < 1e-3 && m.high < 1 && m.high > 1 - 1e-3);
    assert_true(fabs(m.mean - 0.5) < 5 * sqrt(1 / 12.0 / MANY));
    assert_true(fabs(m.variance - 1 / 12.0) < 5 / 12.0 * sqrt(0.8 / MANY));
}

static void normal_numbers_have_mean_0_and_variance_1_and_no_cut(void **state)
{
    const moments m = moments_of(posenc_random_normal);
    (void)state;
    assert_true(fabs(m.mean) < 5 / sqrt(MANY));
    assert_true(fabs(m.variance - 1) < 5 * sqrt(2.0 / MANY));
    assert_true(m.low < -3.5 && m.high > 3.5); /* 23 of 100000 lie beyond on each side */
}

static void a_stream_is_the_same_in_any_order(void **state)
{
    pe_random      r = pe_random_stream(5, "order"), n = r;
    const uint64_t key = pe_random_key(5, "order");
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        assert_true(pe_random_uniform(&r) == pe_random_uniform_at(key, i));
        assert_true(pe_random_normal(&n) == posenc_random_normal(5, "order", i));
        assert_true(posenc_random_uniform(5, "order", i) == pe_random_uniform_at(key, i));
    }
}

/* Correlation of n independent pairs: within 5/sqrt(n) of 0. */
static double correlation(uint64_t seed_a, const char *a, uint64_t seed_b, const char *b, uint64_t shift)
{
    double sum = 0;
    for (uint64_t i = 0; i < MANY; i++)
        sum += posenc_random_normal(seed_a, a, i) * posenc_random_normal(seed_b, b, i + shift);
    return sum / MANY;
}

static void streams_of_other_names_seeds_and_places_are_unrelated(void **state)
{
    const double bound = 5 / sqrt(MANY);
    (void)state;
    assert_true(fabs(correlation(1, "table", 1, "slopes", 0)) < bound);
    assert_true(fabs(correlation(1, "table", 1, "tablf", 0)) < bound);
    assert_true(fabs(correlation(1, "table", 2, "table", 0)) < bound);
    assert_true(fabs(correlation(1, "table", 1, "table", 1)) < bound);
    assert_true(fabs(correlation(1, "", 0, "", 0)) < bound);
}

static void keys_of_near_names_and_seeds_never_meet(void **state)
{
    enum { SEEDS = 32, NAMES = 32 };
    uint64_t keys[SEEDS * NAMES];
    (void)state;
    for (int s = 0; s < SEEDS; s++)
        for (int n = 0; n < NAMES; n++) {
            const char name[3]  = {(char)('a' + n % 8), (char)('a' + n / 8), '\0'};
            keys[s * NAMES + n] = pe_random_key((uint64_t)s, name);
        }
    for (int i = 0; i < SEEDS * NAMES; i++)
        for (int j = 0; j < i; j++)
            assert_true(keys[i] != keys[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(uniform_numbers_fill_zero_to_one_evenly),
        cmocka_unit_test(normal_numbers_have_mean_0_and_variance_1_and_no_cut),
        cmocka_unit_test(a_stream_is_the_same_in_any_order),
        cmocka_unit_test(streams_of_other_names_seeds_and_places_are_unrelated),
        cmocka_unit_test(keys_of_near_names_and_seeds_never_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

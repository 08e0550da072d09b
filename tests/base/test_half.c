/* SPDX-License-Identifier: MIT */
/*
 * test_half: the 16-bit storage types against what IEEE 754 says of every one of their 65536 values
 *
 * Decoding is held against the definition (sign, exponent, fraction by ldexp). Encoding is tested where it
 * can go wrong: at every number itself, at every midpoint of two neighbours (a tie goes to the even one) and
 * one float to either side of it. The midpoints are floats, so nothing here has a tolerance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/half.h"

enum { F16_INFINITY = 0x7c00, BF16_INFINITY = 0x7f80, SIGN = 0x8000 };

/* The value of a finite f16 by definition; the encoding of infinity as the number that would follow the
   largest. */
static double f16_value(unsigned h)
{
    const unsigned exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;
    const double   magnitude =
        exponent ? ldexp(1024.0 + fraction, (int)exponent - 25) : ldexp((double)fraction, -24);
    return h & SIGN ? -magnitude : magnitude;
}

static int is_f16_nan(unsigned h)
{
    return (h & 0x7fffu) > F16_INFINITY;
}

static int is_bf16_nan(unsigned h)
{
    return (h & 0x7fffu) > BF16_INFINITY;
}

static void every_f16_decodes_to_its_definition_and_back(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        const float x = pe_half_f16_to_float((uint16_t)h);
        if (is_f16_nan(h)) {
            assert_true(isnan(x));
            assert_true(is_f16_nan(pe_half_float_to_f16(x)));
            continue;
        }
        if ((h & 0x7fffu) == F16_INFINITY)
            assert_true(isinf(x) && !signbit(x) == !(h & SIGN));
        else
            assert_true((double)x == f16_value(h) && !signbit(x) == !(h & SIGN));
        assert_int_equal(pe_half_float_to_f16(x), h);
    }
}

static void a_float_between_two_f16_goes_to_the_nearer_and_a_tie_to_the_even(void **state)
{
    (void)state;
    for (unsigned sign = 0; sign <= SIGN; sign += SIGN)
        for (unsigned h = 0; h < F16_INFINITY; h++) {
            const float    side   = sign ? -1.0f : 1.0f;
            const float    middle = (float)((f16_value(h) + f16_value(h + 1)) / 2);
            const unsigned even   = h & 1u ? h + 1 : h;
            assert_int_equal(pe_half_float_to_f16(side * middle), sign | even);
            assert_int_equal(pe_half_float_to_f16(side * nextafterf(middle, 0)), sign | h);
            assert_int_equal(pe_half_float_to_f16(side * nextafterf(middle, INFINITY)), sign | (h + 1));
        }
}

static void what_is_too_large_for_f16_becomes_infinite(void **state)
{
    (void)state;
    assert_int_equal(pe_half_float_to_f16(65520.0f), F16_INFINITY);
    assert_int_equal(pe_half_float_to_f16(3e38f), F16_INFINITY);
    assert_int_equal(pe_half_float_to_f16(-INFINITY), F16_INFINITY | SIGN);
    assert_int_equal(pe_half_float_to_f16(1e-40f), 0); /* a float subnormal */
}

static void every_bf16_is_the_upper_half_of_a_float(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        const float x = pe_half_bf16_to_float((uint16_t)h);
        if (is_bf16_nan(h)) {
            assert_true(isnan(x));
            assert_true(is_bf16_nan(pe_half_float_to_bf16(x)));
            continue;
        }
        assert_int_equal(pe_half_float_to_bits(x), h << 16);
        assert_int_equal(pe_half_float_to_bf16(x), h);
    }
}

static void a_float_between_two_bf16_goes_to_the_nearer_and_a_tie_to_the_even(void **state)
{
    (void)state;
    for (unsigned sign = 0; sign <= SIGN; sign += SIGN)
        for (unsigned h = 0; h < BF16_INFINITY; h++) {
            const uint32_t middle = (sign | h) << 16 | 0x8000u;
            const unsigned even   = h & 1u ? h + 1 : h;
            assert_int_equal(pe_half_float_to_bf16(pe_half_bits_to_float(middle)), sign | even);
            assert_int_equal(pe_half_float_to_bf16(pe_half_bits_to_float(middle - 1)), sign | h);
            assert_int_equal(pe_half_float_to_bf16(pe_half_bits_to_float(middle + 1)), sign | (h + 1));
        }
}

static void a_nan_whose_payload_lies_in_the_lower_half_stays_a_nan(void **state)
{
    (void)state;
    assert_true(is_bf16_nan(pe_half_float_to_bf16(pe_half_bits_to_float(0x7f800001u))));
    assert_true(is_bf16_nan(pe_half_float_to_bf16(pe_half_bits_to_float(0xffffffffu))));
    assert_true(is_f16_nan(pe_half_float_to_f16(pe_half_bits_to_float(0x7f800001u))));
}

/* A double next to the middle of two neighbours must not be taken for the middle, which as a float it is. */
static void a_double_is_rounded_once(void **state)
{
    (void)state;
    for (unsigned h = 1; h < BF16_INFINITY - 1; h++) {
        const double low    = (double)pe_half_bits_to_float(h << 16),
                     middle = (double)pe_half_bits_to_float(h << 16 | 0x8000u),
                     high   = (double)pe_half_bits_to_float((h + 1) << 16);
        assert_true(pe_half_round_to_bf16(middle) == (h & 1u ? high : low));
        assert_true(pe_half_round_to_bf16(nextafter(middle, high)) == high);
        assert_true(pe_half_round_to_bf16(nextafter(-middle, -low)) == -low);
    }
    for (unsigned h = 0; h < F16_INFINITY - 1; h++) {
        const double low = f16_value(h), high = f16_value(h + 1), middle = (low + high) / 2;
        assert_true(pe_half_round_to_f16(middle) == (h & 1u ? high : low));
        assert_true(pe_half_round_to_f16(-nextafter(middle, high)) == -high);
        assert_true(pe_half_round_to_f16(nextafter(middle, low)) == low);
    }
    assert_true(isnan(pe_half_round_to_bf16((double)NAN)) && isinf(pe_half_round_to_bf16(1e300)));
    assert_true(isnan(pe_half_round_to_f16((double)NAN)) && pe_half_round_to_f16(1e-30) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_decodes_to_its_definition_and_back),
        cmocka_unit_test(a_float_between_two_f16_goes_to_the_nearer_and_a_tie_to_the_even),
        cmocka_unit_test(what_is_too_large_for_f16_becomes_infinite),
        cmocka_unit_test(every_bf16_is_the_upper_half_of_a_float),
        cmocka_unit_test(a_float_between_two_bf16_goes_to_the_nearer_and_a_tie_to_the_even),
        cmocka_unit_test(a_double_is_rounded_once),
        cmocka_unit_test(a_nan_whose_payload_lies_in_the_lower_half_stays_a_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Where windows of training stand: what rules may be, and what they draw. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "train/run/run.h"

enum { LENGTH = 8, PLACES = 20, DRAWS = 2000 };

static void draw(int64_t to[LENGTH], pe_run_places_kind kind, int64_t window)
{
    const pe_run_places places = {kind, PLACES};
    pe_run_positions_draw(to, &places, LENGTH, 3, window);
}

static void a_rule_is_a_name_and_as_many_positions_as_a_window_needs(void **state)
{
    static const char *const wrong[] = {"",          "random", "random:",         "random:7", "random:8x",
                                        "random:-9", "ape:9",  "random:99999999", "shift: 9"};
    pe_run_places            places;
    posenc_error             err;
    (void)state;
    assert_int_equal(pe_run_positions_read(&places, "random:8", LENGTH, &err), POSENC_OK);
    assert_true(places.kind == PE_AT_RANDOM && places.count == 8);
    assert_int_equal(pe_run_positions_read(&places, "pose:20", LENGTH, &err), POSENC_OK);
    assert_true(places.kind == PE_AT_POSE && places.count == 20);
    assert_int_equal(pe_run_positions_read(&places, "shift:20", LENGTH, &err), POSENC_OK);
    assert_string_equal(pe_run_positions_name(places.kind), "shift");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(pe_run_positions_read(&places, wrong[i], LENGTH, &err), POSENC_ERROR_ARGUMENT);
        assert_non_null(strstr(err.message, "--positions is"));
    }
}

static void positions_rise_within_their_bounds_and_depend_on_the_window_alone(void **state)
{
    (void)state;
    for (int kind = PE_AT_RANDOM; kind <= PE_AT_SHIFT; kind++)
        for (int64_t w = 0; w < DRAWS; w++) {
            int64_t to[LENGTH], again[LENGTH];
            draw(to, (pe_run_places_kind)kind, w);
            for (int i = 1; i < LENGTH; i++)
                assert_true(to[i] > to[i - 1]);
            assert_true(to[0] >= 0 && to[LENGTH - 1] < PLACES);
            for (int i = 1; i < LENGTH && kind != PE_AT_RANDOM; i++)
                assert_true(to[i] == to[i - 1] + 1 || (kind == PE_AT_POSE && i == LENGTH / 2));
            draw(again, (pe_run_places_kind)kind, w);
            assert_memory_equal(to, again, sizeof to);
        }
}

/* Every position as often, and every shift. */
static void all_places_are_as_likely(void **state)
{
    int    seen[PLACES] = {0}, shifts[PLACES - LENGTH + 1] = {0};
    double p = (double)LENGTH / PLACES, q = 1.0 / (PLACES - LENGTH + 1);
    (void)state;
    for (int64_t w = 0; w < DRAWS; w++) {
        int64_t to[LENGTH];
        draw(to, PE_AT_RANDOM, w);
        for (int i = 0; i < LENGTH; i++)
            seen[to[i]]++;
        draw(to, PE_AT_SHIFT, w);
        shifts[to[0]]++;
    }
    for (int i = 0; i < PLACES; i++)
        assert_true(fabs(seen[i] - DRAWS * p) < 5 * sqrt(DRAWS * p * (1 - p)));
    for (int i = 0; i <= PLACES - LENGTH; i++)
        assert_true(fabs(shifts[i] - DRAWS * q) < 5 * sqrt(DRAWS * q * (1 - q)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_is_a_name_and_as_many_positions_as_a_window_needs),
        cmocka_unit_test(positions_rise_within_their_bounds_and_depend_on_the_window_alone),
        cmocka_unit_test(all_places_are_as_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

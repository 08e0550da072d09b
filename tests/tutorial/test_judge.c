/* SPDX-License-Identifier: MIT */
/* Where a number stands in an output, when it is as printed, and what a condition says of it. */
#include "cli/tutorial/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static cli_verdict judge(const char *check, int index, const char *output)
{
    json_t *json = json_loads(check, 0, NULL);
    assert_non_null(json);
    const cli_verdict v = cli_judge(json, index, output);
    json_decref(json);
    return v;
}

static void assert_finding(const char *check, const char *output, cli_finding finding)
{
    const cli_verdict v = judge(check, 0, output);
    if (v.finding != finding)
        fail_msg("%s in \"%s\": found \"%s\", finding %d instead of %d", check, output, v.found,
                 (int)v.finding, (int)finding);
}

static void a_number_is_as_printed_if_it_rounds_to_it(void **state)
{
    (void)state;
    assert_finding("{\"printed\": \"0.0998\"}", "0.09975", CLI_AS_PRINTED);
    assert_finding("{\"printed\": \"0.0998\"}", "0.09974", CLI_FAILS);
    assert_finding("{\"printed\": \"6283\"}", "6283.19", CLI_AS_PRINTED);
    assert_finding("{\"printed\": \"6283\"}", "6283.51", CLI_FAILS);
    assert_finding("{\"printed\": \"1.2e-4\"}", "1.155e-04", CLI_AS_PRINTED);
    assert_finding("{\"printed\": \"62000\", \"within\": 1000}", "62832", CLI_AS_PRINTED);
    assert_finding("{\"printed\": \"-2.234\"}", "2.234", CLI_FAILS);
    assert_finding("{\"printed\": \"1\"}", "none", CLI_MISSING);
}

static void a_wrong_number_has_the_right_one_beside_it(void **state)
{
    (void)state;
    static const char check[] = "{\"printed\": \"62832 1\", \"right\": \"54410 1\"}";
    assert_finding(check, "54410.1 1", CLI_DIFFERS);
    assert_finding(check, "62832 1", CLI_FAILS);
    assert_int_equal(judge(check, 1, "54410 1").finding, CLI_AS_PRINTED);
    assert_int_equal(judge(check, 2, "54410 1").finding, CLI_FAULTY);
}

static void a_number_is_found_by_line_text_and_count(void **state)
{
    (void)state;
    static const char csv[] = "1,2,3\n4,5,6\n7,8,9\n";
    assert_string_equal(judge("{\"printed\": \"5\", \"line\": 2, \"skip\": 1}", 0, csv).found, "5");
    assert_string_equal(judge("{\"printed\": \"2 5 8\", \"skip\": 1, \"step\": 3}", 2, csv).found, "8");
    assert_string_equal(judge("{\"printed\": \"4\", \"after\": [\"r(1)\", \"k\"]}", 0, "k 3 r(1) k 4").found,
                        "4");
    assert_finding("{\"printed\": \"4\", \"after\": [\"k\", \"r\"]}", "r 4 k", CLI_MISSING);
    assert_finding("{\"printed\": \"4\", \"line\": 9}", csv, CLI_MISSING);
    assert_string_equal(judge("{\"printed\": \"7\"}", 0, "x2 a1.5 7").found, "7");
}

static void a_measurement_holds_or_not(void **state)
{
    (void)state;
    assert_finding("{\"is\": \"<= 1e-20\"}", "eta <1e-20", CLI_HOLDS);
    assert_finding("{\"is\": \"< 1e-20\"}", "eta 1e-20", CLI_FAILS);
    assert_finding("{\"is\": \"> 0.5\"}", "0.4", CLI_FAILS);
    assert_finding("{\"is\": \"= 51\"}", "51 of 128", CLI_HOLDS);
    assert_finding("{\"is\": \"= 51\"}", "52 of 128", CLI_FAILS);
    assert_finding("{\"is\": \"0.4 .. 0.5\"}", "0.45", CLI_HOLDS);
    assert_finding("{\"is\": \"0.4 .. 0.5\"}", "0.51", CLI_FAILS);
    assert_finding("{\"is\": \"about 3\"}", "3", CLI_FAULTY);
    assert_finding("{\"says\": \"yes\", \"after\": \"b\"}", "yes b no", CLI_FAILS);
    assert_finding("{\"says\": \"yes\", \"after\": \"b\"}", "no b yes", CLI_HOLDS);
    assert_finding("{}", "3", CLI_FAULTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_as_printed_if_it_rounds_to_it),
        cmocka_unit_test(a_wrong_number_has_the_right_one_beside_it),
        cmocka_unit_test(a_number_is_found_by_line_text_and_count),
        cmocka_unit_test(a_measurement_holds_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The manifest reader: settings become text that the library reads, and whatever else is refused
   with its place. */
#include "files/formats.h"

#include <math.h>

#include "scratch.h"

#define HEAD "{\"entries\": [{\"file\": \"a.npz\", \"encoding\": \"t5\", \"settings\": "

/* One entry with these settings. */
static posenc_cases parsed(const char *settings)
{
    posenc_cases cases = {0};
    posenc_error err;
    char         text[4096];
    snprintf(text, sizeof text, HEAD "%s}]}", settings);
    if (pe_cases_parse(&cases, text, strlen(text), "manifest.json", &err))
        fail_msg("%s", err.message);
    assert_int_equal(cases.count, 1);
    return cases;
}

static void settings_become_text_in_the_order_of_the_file(void **state)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{}", ""},
        {"{\"b\": 1, \"a\": \"half\"}", "b=1 a=half"},
        {"{\"a\": true, \"b\": false, \"c\": null}", "a=yes b=no"},
        {"{\"base\": 10000.0, \"scale\": 0.35355339059327373, \"x\": 1e-6}",
         "base=10000 scale=0.35355339059327373 x=1e-06"},
        {"{\"sections\": [24, 20, 20], \"one\": [3], \"none\": []}", "sections=24:20:20 one=3 none="},
        {"{\"map\": {\"a\": 8, \"b\": 4.5}}", "map=a=8:b=4.5"},
        {"{\"causal\": true, \"q_offset\": 6, \"scale\": 1}", "scale=1"},
        {"{\"n\": -9007199254740993}", "n=-9007199254740993"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_cases cases = parsed(rows[i].json);
        assert_string_equal(cases.items[0].settings, rows[i].text);
        posenc_cases_free(&cases);
    }
}

/* No text of a manifest can become a second setting. */
static void what_is_no_plain_word_stays_json(void **state)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{\"layout\": \"half dim=4\"}", "layout=\"half dim=4\""},
        {"{\"layout\": \"half,dim=4\"}", "layout=\"half,dim=4\""},
        {"{\"layout\": \"\"}", "layout=\"\""},
        {"{\"layout\": [\"a:b\", [1]]}", "layout=\"a:b\":[1]"},
        {"{\"dim=4 layout\": 1}", "\"\"=1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_cases cases = parsed(rows[i].json);
        assert_string_equal(cases.items[0].settings, rows[i].text);
        posenc_encoding *e = NULL;
        assert_int_not_equal(posenc_encoding_create(&e, "rope", cases.items[0].settings, NULL), POSENC_OK);
        posenc_cases_free(&cases);
    }
}

static void what_the_run_and_the_subjects_need_stands_apart(void **state)
{
    posenc_cases cases =
        parsed("{\"causal\": true, \"q_offset\": -2, \"scale\": 0.5, \"table\": \"buckets\", "
               "\"maps\": [{\"out\": \"x\", \"map\": \"t5\", \"num_buckets\": 8, \"bidirectional\": true}], "
               "\"heads\": [1, 12]}");
    const posenc_case *c = &cases.items[0];
    (void)state;
    assert_true(c->causal && c->q_offset == -2 && c->scale == 0.5 && c->angle_ulp == 0);
    assert_string_equal(c->table, "buckets");
    assert_int_equal(c->map_count, 1);
    assert_string_equal(c->maps[0].out, "x");
    assert_string_equal(c->maps[0].map, "t5");
    assert_string_equal(c->maps[0].settings, "num_buckets=8 bidirectional=yes");
    assert_int_equal(c->head_count, 2);
    assert_true(c->heads[0] == 1 && c->heads[1] == 12);
    assert_null(c->arrays[0]);
    posenc_cases_free(&cases);
}

static void arrays_and_details_are_taken_from_the_entry(void **state)
{
    static const char text[] = HEAD
        "{\"scale\": null, \"causal\": null, \"q_offset\": null}, \"arrays\": {\"in_q\": {}, \"out_o\": {}}, "
        "\"details\": {\"angle_change_per_frequency_ulp\": 2.5e-10}, \"peer_checks\": []}]}";
    posenc_cases cases = {0};
    (void)state;
    assert_int_equal(pe_cases_parse(&cases, text, sizeof text - 1, "m", NULL), POSENC_OK);
    assert_string_equal(cases.items[0].arrays[0], "in_q");
    assert_string_equal(cases.items[0].arrays[1], "out_o");
    assert_null(cases.items[0].arrays[2]);
    assert_true(cases.items[0].angle_ulp == 2.5e-10 && isnan(cases.items[0].scale));
    posenc_cases_free(&cases);
}

static void what_is_no_manifest_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *part;
    } rows[] = {
        {"", "line 1"},
        {"{\n\"entries\": [\n{\"file\": }", "line 3, column"},
        {"{\"entries\": [], \"entries\": []}", "duplicate object key"},
        {HEAD "{\"a\": 1, \"a\": 2}}]}", "duplicate object key"},
        {HEAD "{\"a\": NaN}}]}", "line 1"},
        {HEAD "{\"a\": 1e999}}]}", "overflow"},
        {HEAD "{\"a\": 99999999999999999999}}]}", "line 1"},
        {HEAD "{}}]} x", "end of file expected"},
        {HEAD "{\"a\": \"\\u0000\"}}]}", "line 1"},
        {"[]", "no list `entries`"},
        {"{}", "no list `entries`"},
        {"{\"entries\": {}}", "no list `entries`"},
        {"{\"entries\": [1]}", "entry 1: file must be a text"},
        {"{\"entries\": [{\"file\": \"a\"}]}", "entry 1: encoding must be a text"},
        {"{\"entries\": [{\"file\": \"a\", \"encoding\": 3}]}", "entry 1: encoding must be a text"},
        {"{\"entries\": [{\"file\": \"a\", \"encoding\": \"x\"}]}", "entry 1: settings must be an object"},
        {HEAD "{}, \"arrays\": []}]}", "entry 1: arrays must be an object"},
        {HEAD "{\"causal\": 1}}]}", "entry 1: causal must be true or false"},
        {HEAD "{\"q_offset\": 1.5}}]}", "entry 1: q_offset must be a whole number"},
        {HEAD "{\"maps\": [{\"out\": \"x\"}]}}]}", "entry 1: map must be a text"},
        {HEAD "{\"heads\": [0]}}]}", "entry 1: heads must be"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_cases cases = {0};
        posenc_error err;
        assert_int_equal(pe_cases_parse(&cases, rows[i].text, strlen(rows[i].text), "m.json", &err),
                         POSENC_ERROR_FORMAT);
        assert_int_equal(cases.count, 0);
        assert_int_equal(strncmp(err.message, "m.json: ", 8), 0);
        assert_null(strchr(err.message, '\n'));
        if (!strstr(err.message, rows[i].part))
            fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i].part);
    }
}

static void nesting_without_end_is_refused(void **state)
{
    enum { DEPTH = 100000 };
    char        *text  = malloc(DEPTH);
    posenc_cases cases = {0};
    posenc_error err;
    (void)state;
    memset(text, '[', DEPTH);
    assert_int_equal(pe_cases_parse(&cases, text, DEPTH, "m.json", &err), POSENC_ERROR_FORMAT);
    assert_non_null(strstr(err.message, "depth"));
    free(text);
}

static void a_folder_without_a_manifest_says_which_file_is_missing(void **state)
{
    posenc_cases cases = {0};
    posenc_error err;
    (void)state;
    assert_int_equal(posenc_cases_read(&cases, scratch_folder, &err), POSENC_ERROR_FILE);
    assert_non_null(strstr(err.message, "/manifest.json: it cannot be opened: No such file"));
}

static void the_projects_own_manifests_are_read(void **state)
{
    static const char *const folders[] = {POSENC_SOURCE_DIR "/tests/golden",
                                          POSENC_SOURCE_DIR "/tests/golden/rope"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        posenc_cases cases = {0};
        posenc_error err;
        if (posenc_cases_read(&cases, folders[i], &err))
            fail_msg("%s", err.message);
        assert_true(cases.count >= 18);
        posenc_cases_free(&cases);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_become_text_in_the_order_of_the_file),
        cmocka_unit_test(what_is_no_plain_word_stays_json),
        cmocka_unit_test(what_the_run_and_the_subjects_need_stands_apart),
        cmocka_unit_test(arrays_and_details_are_taken_from_the_entry),
        cmocka_unit_test(what_is_no_manifest_is_refused_with_its_place),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(a_folder_without_a_manifest_says_which_file_is_missing),
        cmocka_unit_test(the_projects_own_manifests_are_read),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

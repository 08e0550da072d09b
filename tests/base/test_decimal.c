/* SPDX-License-Identifier: MIT */
/*
 * test_decimal: the libraries in a program that has set a locale with decimal commas
 *
 * Such a program writes 0,5 where the libraries must still read and write 0.5: SPECs and their sentences,
 * JSON, CSV, what a model's file says. Each test makes its text in "C" and then again in the other locale.
 * The locale is one that the machine has, or one made of the C library's own sources (localedef).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <posenc/files.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/decimal.h"
#include "files/parse.h"
#include "files/scratch.h"

static const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8", "pt_BR.UTF-8"};

/* A locale with commas is set now. */
static int set_commas(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i]) && *localeconv()->decimal_point == ',')
            return 1;
    setlocale(LC_ALL, "C");
    return 0;
}

/* One that the machine has, or else one made here and now. */
static int find_commas(void **state)
{
    char command[600];
    if (scratch_open(state))
        return -1;
    if (set_commas())
        return 0;
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1",
             scratch_folder);
    return system(command) == -1 || setenv("LOCPATH", scratch_folder, 1);
}

static int remove_all(void **state)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s/de_DE.UTF-8'", scratch_folder);
    return system(command) || scratch_close(state);
}

/* The same text in both locales. */
static void require_same(void (*write)(char *text, size_t n))
{
    char point[8192], comma[8192];
    setlocale(LC_ALL, "C");
    write(point, sizeof point);
    if (!set_commas()) {
        print_message("no locale with decimal commas here: install locales-all, or locales with localedef\n");
        skip();
    }
    write(comma, sizeof comma);
    setlocale(LC_ALL, "C");
    assert_string_equal(comma, point);
    assert_non_null(strchr(point, '.'));
}

static void write_spec(char *text, size_t n)
{
    posenc_encoding *e = NULL;
    posenc_error     err;
    size_t           used = 0;
    if (posenc_encoding_create(&e, "rope[base=12345.5:factor=1e1/2.5:schedule=linear]", NULL, &err))
        used += (size_t)snprintf(text + used, n - used, "%s\n", err.message);
    used += (size_t)snprintf(text + used, n - used, "%s\n", e ? posenc_encoding_spec(e) : "");
    posenc_encoding_free(e);
    posenc_encoding_create(&e, "rope[partial_rotary_factor=1.5]", NULL, &err);
    snprintf(text + used, n - used, "%s\n", err.message);
    posenc_encoding_free(e);
}

static void a_spec_and_its_sentences_are_the_same(void **state)
{
    (void)state;
    require_same(write_spec);
}

static void write_small_models(char *text, size_t n)
{
    const posenc_dims dims = {.B = 1, .H = 2, .Lq = 64, .Lk = 64, .D = 16, .d_model = 32, .L = 50};
    size_t            used = 0;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        char settings[256];
        assert_int_equal(posenc_small_model(posenc_encoding_info_at(i)->name, &dims, 0, settings,
                                            sizeof settings, NULL),
                         POSENC_OK);
        used += (size_t)snprintf(text + used, n - used, "%s\n", settings);
    }
    snprintf(text + used, n - used, ".");
}

static void settings_of_small_models_are_the_same(void **state)
{
    (void)state;
    require_same(write_small_models);
}

static void write_csv(char *text, size_t n)
{
    posenc_arrays set = {0};
    posenc_error  err;
    const char   *path = scratch("numbers.csv");
    FILE         *file = fopen(path, "w");
    assert_non_null(file);
    fputs("# q 2x2\n0.5,1.25e-3\n-2.75,3\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(posenc_arrays_read(&set, path, &err), POSENC_OK);
    assert_int_equal(((const int64_t *)set.items[0].tensor.shape)[1], 2);
    FILE *to = fmemopen(text, n, "w");
    assert_non_null(to);
    assert_int_equal(posenc_arrays_print(&set, to, &err), POSENC_OK);
    assert_int_equal(fclose(to), 0);
    posenc_arrays_free(&set);
}

static void csv_is_the_same(void **state)
{
    (void)state;
    require_same(write_csv);
}

/* What posenc inspect --json prints, warnings with their numbers included. */
static void write_model(char *text, size_t n)
{
    static const char config[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, \"rope_theta\": "
        "10000.5, "
        "\"max_position_embeddings\": 4096, \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2.5, "
        "\"original_max_position_embeddings\": 2048}}";
    posenc_model *model = NULL;
    posenc_error  err;
    char         *json = NULL;
    assert_int_equal(posenc_model_read_memory(&model, config, sizeof config - 1, NULL, &err), POSENC_OK);
    assert_int_equal(posenc_model_json(&json, model, -1, &err), POSENC_OK);
    snprintf(text, n, "%s", json);
    posenc_model_json_free(json);
    posenc_model_free(model);
}

static void what_a_model_says_is_the_same(void **state)
{
    (void)state;
    require_same(write_model);
}

static void write_manifest(char *text, size_t n)
{
    static const char manifest[] =
        "{\"entries\": [{\"file\": \"a.npz\", \"encoding\": \"rope\", \"settings\": {\"base\": 12345.25, "
        "\"scale\": 0.5}, \"arrays\": {\"in_q\": {\"shape\": [1]}}}]}";
    posenc_cases        cases  = {0};
    posenc_error        err    = {0};
    const posenc_status status = pe_cases_parse(&cases, manifest, sizeof manifest - 1, "manifest.json", &err);
    snprintf(text, n, "%s%s", err.message, status ? "" : cases.items[0].settings);
    assert_string_equal(err.message, "");
    posenc_cases_free(&cases);
}

static void a_manifest_is_the_same(void **state)
{
    (void)state;
    require_same(write_manifest);
}

static void the_locale_of_the_program_stays(void **state)
{
    char text[64];
    (void)state;
    if (!set_commas())
        skip();
    assert_true(pe_decimal_read("0.5", NULL) == 0.5);
    snprintf(text, sizeof text, "%.1f", 0.5);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, "0,5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_and_its_sentences_are_the_same),
        cmocka_unit_test(settings_of_small_models_are_the_same),
        cmocka_unit_test(csv_is_the_same),
        cmocka_unit_test(what_a_model_says_is_the_same),
        cmocka_unit_test(a_manifest_is_the_same),
        cmocka_unit_test(the_locale_of_the_program_stays),
    };
    return cmocka_run_group_tests(tests, find_commas, remove_all);
}

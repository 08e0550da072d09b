/* SPDX-License-Identifier: MIT */
/* combine= and inject= out of specifications, and into them. */
#include "train/model/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void takes(const char *spec, const char *want, pe_combine combine, pe_inject inject, int names_combine)
{
    char         plain[256];
    pe_entry     entry;
    posenc_error err;
    if (pe_spec_split(plain, sizeof plain, &entry, spec, &err))
        fail_msg("%s: %s", spec, err.message);
    if (strcmp(plain, want))
        fail_msg("%s became %s, not %s", spec, plain, want);
    assert_int_equal(entry.combine, combine);
    assert_int_equal(entry.inject, inject);
    assert_int_equal(entry.names_combine, names_combine);
}

static void what_is_ours_is_taken_and_the_rest_stays(void **state)
{
    (void)state;
    takes("sinusoidal", "sinusoidal", PE_ADD, PE_AT_INPUT, 0);
    takes("sinusoidal[combine=add]", "sinusoidal", PE_ADD, PE_AT_INPUT, 1);
    takes("sinusoidal[combine=concat]", "sinusoidal", PE_CONCAT, PE_AT_INPUT, 1);
    takes("sinusoidal[inject=blocks]", "sinusoidal", PE_ADD, PE_IN_BLOCKS, 0);
    takes("sinusoidal[base=100,combine=concat dim=8]", "sinusoidal[base=100:dim=8]", PE_CONCAT, PE_AT_INPUT,
          1);
    takes("learned[combine=concat:rows=9]+t5[num_buckets=8]", "learned[rows=9]+t5[num_buckets=8]", PE_CONCAT,
          PE_AT_INPUT, 1);
    takes("rope+learned[combine=concat]", "rope+learned", PE_CONCAT, PE_AT_INPUT, 1);
    takes("sinusoidal[combine=concat:combine=add]", "sinusoidal", PE_ADD, PE_AT_INPUT,
          1); /* the last counts */
}

/* Whatever is wrong with it is the library's to say. */
static void what_has_nothing_of_ours_is_copied_as_it_stands(void **state)
{
    static const char *const specs[] = {"rope[base=5e5, scale=1]", "swin[window=3x3]", "a[b",
                                        "no_such[x=1:2:3]",        "learned[]",        "x++y",
                                        "sinusoidal[combined=1]"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        takes(specs[i], specs[i], PE_ADD, PE_AT_INPUT, 0);
    takes("no_such[combine=concat:z=1]", "no_such[z=1]", PE_CONCAT, PE_AT_INPUT, 1);
}

static void refuse(const char *spec, const char *words)
{
    char         plain[256];
    pe_entry     entry;
    posenc_error err = {0};
    assert_int_equal(pe_spec_split(plain, sizeof plain, &entry, spec, &err), POSENC_ERROR_SETTING);
    if (!strstr(err.message, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", spec, err.message, words);
}

static void what_has_no_meaning_is_refused(void **state)
{
    (void)state;
    refuse("sinusoidal[combine=join]", "combine is 'join'; it must be add or concat");
    refuse("sinusoidal[combine=]", "it must be add or concat");
    refuse("sinusoidal[inject=layers]", "it must be input or blocks");
    refuse("sinusoidal[combine=add:concat]", "one value");
    refuse("t5[combine=concat]", "acts at place score");
    refuse("sinusoidal+alibi[inject=blocks]", "alibi: inject is for encodings that act at the input");
    refuse("sinusoidal[combine=concat:inject=blocks]", "inject=input");
}

static void a_specification_that_does_not_fit_is_refused(void **state)
{
    char         plain[12];
    pe_entry     entry;
    posenc_error err = {0};
    (void)state;
    assert_int_equal(pe_spec_split(plain, sizeof plain, &entry, "sinusoidal[base=10:combine=add]", &err),
                     POSENC_ERROR_ARGUMENT);
    assert_int_equal(pe_spec_set_combine(plain, sizeof plain, "sinusoidal", PE_CONCAT, &err),
                     POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "too long"));
}

static void names(const char *spec, const char *want)
{
    char named[256];
    assert_int_equal(pe_spec_set_combine(named, sizeof named, spec, PE_CONCAT, NULL), POSENC_OK);
    assert_string_equal(named, want);
}

static void a_way_of_combining_is_written_into_the_input_part(void **state)
{
    (void)state;
    names("sinusoidal", "sinusoidal[combine=concat]");
    names("sinusoidal[]", "sinusoidal[combine=concat]");
    names("sinusoidal[base=100,dim=8]", "sinusoidal[base=100,dim=8:combine=concat]");
    names("t5[num_buckets=8]+learned+rope", "t5[num_buckets=8]+learned[combine=concat]+rope");
}

static void gives(const char *spec, const char *want)
{
    char given[PE_LONGEST_SPEC];
    strcpy(given, spec);
    assert_int_equal(pe_spec_set_missing(given, "states", 3, NULL), POSENC_OK);
    assert_string_equal(given, want);
}

/* To encodings at the input that have the setting, and no others; what the caller says stays. */
static void a_setting_is_given_where_it_exists_and_is_open(void **state)
{
    int has_states = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        spec[128], want[128];
        int                         has = 0;
        for (int k = 0; k < info->setting_count; k++)
            has |= info->place == POSENC_PLACE_INPUT && !strcmp(info->settings[k].name, "states");
        snprintf(want, sizeof want, has ? "%s[states=3]" : "%s", info->name);
        gives(info->name, want);
        snprintf(spec, sizeof spec, "nope+%s[a=1:states=5:b=2]", info->name);
        gives(spec, spec);
        snprintf(spec, sizeof spec, "%s[statesmen=5]", info->name);
        snprintf(want, sizeof want, has ? "%s[statesmen=5:states=3]" : "%s[statesmen=5]", info->name);
        gives(spec, want);
        has_states |= has;
    }
    assert_true(has_states);
}

static void ways_are_read_from_a_list(void **state)
{
    int          ways;
    posenc_error err = {0};
    (void)state;
    assert_int_equal(pe_spec_read_combine(&ways, "add", NULL), POSENC_OK);
    assert_int_equal(ways, 1 << PE_ADD);
    assert_int_equal(pe_spec_read_combine(&ways, "concat,add", NULL), POSENC_OK);
    assert_int_equal(ways, 1 << PE_ADD | 1 << PE_CONCAT);
    assert_int_equal(pe_spec_read_combine(&ways, "add,mul", &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "\"mul\""));
    assert_int_equal(pe_spec_read_combine(&ways, ",", &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(pe_spec_read_combine(&ways, "", &err), POSENC_ERROR_ARGUMENT);
}

static void a_list_is_cut_outside_brackets_and_names_are_those_of_the_registry(void **state)
{
    static const char *const want[] = {"rope[base=5e5,layout=half]+alibi", "t5", "no_such"};
    const char              *list   = "RoPE[base=5e5,layout=half] + ALiBi, T5,no_such";
    (void)state;
    for (int i = 0; i < 3; i++) {
        char          spec[64];
        posenc_status status;
        list = pe_spec_next(spec, sizeof spec, list, &status, NULL);
        assert_int_equal(status, POSENC_OK);
        assert_string_equal(spec, want[i]);
    }
    assert_null(list);
}

static void entries_of_layers_are_completed_and_written_one_by_one(void **state)
{
    static const struct {
        const char *spec, *canonical;
    } rows[] = {
        {"rope[window=8:base=10000]:3/nope", "rope[window=8]:3/nope"},
        {"rope/rope[ window=4 ]/RoPE[window=4]", "rope/rope[window=4]:2"},
        {"rope/rope", "rope"},
        {"nope[window=2]", "nope[window=2]"},
        {"sinusoidal+t5[window=2]", "sinusoidal[window=2]+t5"},
        {"t5[num_buckets=16]", "t5[num_buckets=16]"},
    };
    const posenc_dims dims = {
        .B = 1, .H = 4, .G = 4, .Lq = 64, .Lk = 64, .D = 16, .Dv = 16, .d_model = 64, .L = 64};
    char         text[PE_LONGEST_SPEC];
    posenc_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (pe_spec_canonical(text, sizeof text, rows[i].spec, &err))
            fail_msg("%s: %s", rows[i].spec, err.message);
        assert_string_equal(text, rows[i].canonical);
    }
    assert_int_equal(
        pe_spec_complete(text, sizeof text, "t5[window=9]:2/t5", &dims, POSENC_MASK_CAUSAL, &err), POSENC_OK);
    assert_true(!strncmp(text, "t5[window=9:", 12) && strstr(text, "]:2/t5["));
    assert_int_equal(pe_spec_check("rope/nosuch", &err), POSENC_ERROR_SETTING);
    assert_int_equal(pe_spec_check("rope[window=0]/nope", &err), POSENC_ERROR_SETTING);
    assert_true(pe_spec_is_layered("rope/nope") && pe_spec_is_layered("rope[window=3]"));
    assert_false(pe_spec_is_layered("rope[base=500]+t5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_ours_is_taken_and_the_rest_stays),
        cmocka_unit_test(what_has_nothing_of_ours_is_copied_as_it_stands),
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test(a_specification_that_does_not_fit_is_refused),
        cmocka_unit_test(a_way_of_combining_is_written_into_the_input_part),
        cmocka_unit_test(a_setting_is_given_where_it_exists_and_is_open),
        cmocka_unit_test(ways_are_read_from_a_list),
        cmocka_unit_test(a_list_is_cut_outside_brackets_and_names_are_those_of_the_registry),
        cmocka_unit_test(entries_of_layers_are_completed_and_written_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_encoding: the registry, and SPEC as text
 *
 * What is true of any encoding is asked of every row of the registry: names are distinct, standards are
 * accepted, an unknown setting is refused with the nearest name, the canonical SPEC is a fixed point. The
 * grammar is tried on two encodings found in the registry by what they are (one with a real setting at place
 * rotary, one of another place), and on text that no grammar has, which may do no more than be refused.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <stdio.h>
#include <string.h>

#include "encodings/encoding.h"

static posenc_encoding *create(const char *spec, const char *settings)
{
    posenc_encoding *e;
    posenc_error     err;
    if (posenc_encoding_create(&e, spec, settings, &err))
        fail_msg("%s (%s): %s", spec, settings ? settings : "", err.message);
    assert_string_equal(err.message, "");
    return e;
}

static void assert_canonical(const char *spec, const char *settings, const char *want)
{
    posenc_encoding *e = create(spec, settings);
    assert_string_equal(posenc_encoding_spec(e), want);
    posenc_encoding_free(e);
}

static void assert_refused(const char *spec, const char *settings, posenc_status status, const char *words)
{
    posenc_encoding *e   = (posenc_encoding *)(uintptr_t)&spec;
    posenc_error     err = {0};
    if (posenc_encoding_create(&e, spec, settings, &err) != status || err.status != status ||
        !strstr(err.message, words))
        fail_msg("'%s' '%s': status %s, '%s'", spec, settings ? settings : "",
                 posenc_status_string(err.status), err.message);
    assert_null(e);
}

/* ---- the registry ---- */

static void names_are_distinct_and_each_is_its_own_nearest(void **state)
{
    (void)state;
    assert_true(posenc_encoding_count() > 0);
    assert_null(posenc_encoding_info_at(-1));
    assert_null(posenc_encoding_info_at(posenc_encoding_count()));
    assert_null(posenc_encoding_find("no such encoding"));
    assert_null(posenc_encoding_find(""));
    assert_null(posenc_encoding_find(NULL));
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        wrong[80];
        assert_ptr_equal(posenc_encoding_find(info->name), info);
        assert_string_equal(posenc_encoding_nearest(info->name), info->name);
        snprintf(wrong, sizeof wrong, "%s?", info->name);
        assert_string_equal(posenc_encoding_nearest(wrong), info->name);
        assert_string_not_equal(posenc_place_name(info->place), "unknown");
        for (int j = 0; j < i; j++)
            assert_string_not_equal(info->name, posenc_encoding_info_at(j)->name);
    }
}

static void names_are_found_without_regard_to_case(void **state)
{
    posenc_encoding *e;
    posenc_error     err;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        upper[80];
        size_t                      n = 0;
        for (; info->name[n]; n++)
            upper[n] = (char)toupper((unsigned char)info->name[n]);
        upper[n] = 0;
        assert_ptr_equal(posenc_encoding_find(upper), info);
    }
    assert_null(posenc_encoding_find("rop"));
    assert_null(posenc_encoding_find("ropes"));
    assert_int_equal(posenc_encoding_create(&e, "RoPE[base=5e5]+ALiBi", "Rope.base=100", &err), POSENC_OK);
    assert_string_equal(posenc_encoding_spec(e), "rope[base=100]+alibi");
    posenc_encoding_free(e);
}

static void what_is_near_begins_like_it_or_is_about_it(void **state)
{
    static const struct {
        const char *typed, *nearest;
    } rows[] = {{"sinus", "sinusoidal"},
                {"Kerple", "kerple_log"},
                {"roped", "rope"},
                {"swinv2", "swin_v2"},
                {"transformer-xl", "transformer_xl"},
                {"rotary", "rope"},
                {"yarn", "rope"},
                {"LLaMA", "rope"},
                {"Whisper", "sinusoidal"},
                {"BERT", "learned"},
                {"BLOOM", "alibi"},
                {"absolute", "absolute_distance"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(posenc_encoding_nearest(rows[i].typed), rows[i].nearest))
            fail_msg("nearest to %s is %s", rows[i].typed, posenc_encoding_nearest(rows[i].typed));
}

/* No encoding "extrapolates": what holds beyond the trained length is said as it is, and of a table that has
   a row per position that it ends. */
static void every_encoding_says_what_it_does_beyond_its_length(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        const size_t                n    = info->beyond ? strlen(info->beyond) : 0;
        if (n < 20 || n > 95 || info->beyond[n - 1] != '.' || strchr(info->beyond, '\n') ||
            strstr(info->beyond, "xtrapol"))
            fail_msg("%s: \"%s\" is not such a sentence", info->name, info->beyond);
        if (info->row_limit && !strstr(info->beyond, "ends") && !strstr(info->beyond, "Ends"))
            fail_msg("%s has rows, and does not say that they end", info->name);
    }
}

static void every_text_that_list_prints_is_there(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        assert_true(info->title && *info->title && info->paper && *info->paper && info->models &&
                    info->pictures);
        for (int s = 0; s < info->setting_count; s++) {
            const posenc_setting_info *x = &info->settings[s];
            assert_true(x->name && x->type && x->default_value && x->range && x->meaning && *x->meaning);
            for (int t = 0; t < s; t++)
                assert_string_not_equal(x->name, info->settings[t].name);
        }
        for (int p = 0; p < info->param_count; p++)
            assert_true(*info->params[p].name && info->params[p].shape && *info->params[p].init &&
                        *info->params[p].meaning);
        if (info->row_limit) {
            int found = 0;
            for (int s = 0; s < info->setting_count; s++)
                found += !strcmp(info->settings[s].name, info->row_limit);
            assert_int_equal(found, 1);
        }
    }
}

/* A standard may follow another setting ("-max_relative"); a user's text may name sizes alone. */
static int names_a_setting(const posenc_encoding_info *info, const char *text)
{
    for (int s = 0; s < info->setting_count; s++)
        if (strstr(text, info->settings[s].name))
            return 1;
    return 0;
}

static void a_standard_may_be_written_and_is_not_repeated(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        for (int s = 0; s < info->setting_count; s++) {
            char settings[160];
            if (!*info->settings[s].default_value || names_a_setting(info, info->settings[s].default_value))
                continue;
            snprintf(settings, sizeof settings, "%s=%s", info->settings[s].name,
                     info->settings[s].default_value);
            assert_canonical(info->name, settings, info->name);
        }
    }
}

static void an_unknown_setting_is_refused_with_the_nearest(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        assert_refused(info->name, "scalee=1", POSENC_ERROR_SETTING, "did you mean 'scale'?");
        for (int s = 0; s < info->setting_count; s++) {
            char settings[160], words[300];
            snprintf(settings, sizeof settings, "%sx=1", info->settings[s].name);
            snprintf(words, sizeof words, "%s has no setting '%sx'; did you mean '%s'?", info->name,
                     info->settings[s].name, info->settings[s].name);
            assert_refused(info->name, settings, POSENC_ERROR_SETTING, words);
        }
    }
}

static void a_small_model_is_a_canonical_spec_and_a_buffer_too_small_is_refused(void **state)
{
    const posenc_dims dims = {.B = 1, .H = 4, .Lq = 64, .Lk = 64, .D = 16, .L = 64};
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const char      *name = posenc_encoding_info_at(i)->name;
        char             small[256], tight[4];
        posenc_encoding *e, *again;
        posenc_error     err;
        posenc_plan     *plan;
        assert_int_equal(posenc_small_model(name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, &err),
                         POSENC_OK);
        e     = create(name, small);
        again = create(posenc_encoding_spec(e), NULL);
        assert_string_equal(posenc_encoding_spec(e), posenc_encoding_spec(again));
        assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_OK);
        posenc_plan_free(plan);
        posenc_encoding_free(e);
        posenc_encoding_free(again);
        if (strlen(small) >= sizeof tight)
            assert_int_equal(posenc_small_model(name, &dims, POSENC_MASK_CAUSAL, tight, sizeof tight, &err),
                             POSENC_ERROR_ARGUMENT);
    }
    assert_int_equal(posenc_small_model("no such", &dims, POSENC_MASK_CAUSAL, (char[8]){0}, 8, NULL),
                     POSENC_ERROR_SETTING);
}

/* ---- the grammar ---- */

/* An encoding that turns and has a real and an integer setting, and one of place score that has parameters:
   the words that the grammar is tried with. */
typedef struct words {
    const posenc_encoding_info *turning, *scoring;
    const char                 *real, *integer; /* settings of `turning` */
} words;

static words find_words(void)
{
    words w = {0};
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place == POSENC_PLACE_SCORE && info->param_count && !w.scoring)
            w.scoring = info;
        for (int s = 0; info->place == POSENC_PLACE_ROTARY && s < info->setting_count; s++) {
            w.turning = info;
            if (!strcmp(info->settings[s].type, "real"))
                w.real = info->settings[s].name;
            if (!strcmp(info->settings[s].type, "integer"))
                w.integer = info->settings[s].name;
        }
    }
    assert_true(w.turning && w.scoring && w.real && w.integer);
    return w;
}

/* Text with %t turning, %s scoring, %r, %i settings. */
static const char *with_words(const char *text)
{
    static char out[4][512];
    static int  next;
    const words w  = find_words();
    char       *to = out[next++ % 4], *start = to;
    for (; *text; text++) {
        if (*text != '%') {
            *to++ = *text;
            continue;
        }
        text++;
        const char *word = *text == 't'   ? w.turning->name
                           : *text == 's' ? w.scoring->name
                           : *text == 'r' ? w.real
                                          : w.integer;
        to += sprintf(to, "%s", word);
    }
    *to = '\0';
    return start;
}

static void settings_in_brackets_are_parted_by_colon_comma_or_space(void **state)
{
    static const char *const all[] = {"%t[%r=5e5:%i=4]",       "%t[%r=5e5,%i=4]", "%t[%r=5e5 %i=4]",
                                      "%t[ %r=5e5 : , %i=4 ]", "%t[%i=4:%r=5e5]", "%t[%r=3:%r=5e5:%i=4]"};
    posenc_encoding         *first = create(with_words(all[0]), NULL);
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_canonical(with_words(all[i]), NULL, posenc_encoding_spec(first));
    assert_non_null(strstr(posenc_encoding_spec(first), with_words("%r=5e5")));
    assert_non_null(strstr(posenc_encoding_spec(first), with_words("%i=4")));
    posenc_encoding_free(first);
    assert_canonical(with_words("%t[]"), NULL, with_words("%t"));
}

static void a_combination_is_written_by_place_and_knows_its_parts(void **state)
{
    const words      w = find_words();
    posenc_encoding *e = create(with_words("%s+%t[%r=77]"), NULL);
    (void)state;
    assert_string_equal(posenc_encoding_spec(e), with_words("%t[%r=77]+%s"));
    assert_ptr_equal(posenc_encoding_part(e, POSENC_PLACE_ROTARY), w.turning);
    assert_ptr_equal(posenc_encoding_part(e, POSENC_PLACE_SCORE), w.scoring);
    assert_null(posenc_encoding_part(e, POSENC_PLACE_INPUT));
    assert_null(posenc_encoding_part(e, (posenc_place)99));
    for (int i = 0; i < posenc_param_count(e); i++) { /* "encoding.name" */
        assert_int_equal(strncmp(posenc_param_name(e, i), w.scoring->name, strlen(w.scoring->name)), 0);
        assert_in_range(posenc_param_describe(e, i) - w.scoring->params, 0, w.scoring->param_count - 1);
    }
    assert_null(posenc_param_name(e, posenc_param_count(e)));
    assert_null(posenc_param_describe(e, posenc_param_count(e)));
    posenc_encoding_free(e);
    e = create(with_words("%s"), NULL);
    assert_string_equal(posenc_param_name(e, 0), w.scoring->params[0].name); /* plain in a single encoding */
    posenc_encoding_free(e);
}

static void settings_beside_the_spec_override_it(void **state)
{
    (void)state;
    assert_canonical(with_words("%t[%r=3]"), with_words("%r=4"), with_words("%t[%r=4]"));
    assert_canonical(with_words("%t+%s"), with_words("%t.%r=5e5"), with_words("%t[%r=5e5]+%s"));
    assert_canonical(with_words("%t+%s"), with_words("%r=5e5"), with_words("%t[%r=5e5]+%s"));
    posenc_encoding *both = create(with_words("%t[%r=5e5:%i=2]+%s"), NULL);
    assert_canonical(with_words("%t+%s"), with_words("%t.%r=5e5, %t.%i=2"), posenc_encoding_spec(both));
    posenc_encoding_free(both);
    assert_canonical(with_words("%t"), "", with_words("%t"));
}

static void scale_belongs_to_every_encoding(void **state)
{
    const posenc_setting_info *common;
    (void)state;
    assert_true(posenc_common_settings(&common) >= 1);
    assert_string_equal(common[0].name, "scale");
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const char *name = posenc_encoding_info_at(i)->name;
        char        spec[80], want[80];
        snprintf(spec, sizeof spec, "%s[scale=1/sqrt(D)]", name);
        assert_canonical(spec, NULL, spec);
        snprintf(want, sizeof want, "%s[scale=0.5]", name);
        assert_canonical(spec, "scale=0.5", want);
    }
}

static void what_has_no_meaning_is_refused_with_a_sentence(void **state)
{
    static const struct {
        const char   *spec, *settings;
        posenc_status status;
        const char   *words;
    } all[] = {
        {"", NULL, POSENC_ERROR_SETTING, "name is missing"},
        {"%t+", NULL, POSENC_ERROR_SETTING, "name is missing"},
        {"+%t", NULL, POSENC_ERROR_SETTING, "name is missing"},
        {"%t+%t", NULL, POSENC_ERROR_UNSUPPORTED,
         "both act at place rotary; join at most one encoding per place"},
        {"%tx", NULL, POSENC_ERROR_SETTING, "unknown encoding"},
        {"%t[%r=5", NULL, POSENC_ERROR_SETTING, "'[' without ']'"},
        {"%t[%r=5]]", NULL, POSENC_ERROR_SETTING, ""},
        {"%t[%r=5]x", NULL, POSENC_ERROR_SETTING, "'[' without ']'"},
        {"%t[%r]", NULL, POSENC_ERROR_SETTING, "has no value; write name=value"},
        {"%t[%r=]", NULL, POSENC_ERROR_SETTING, "has no value"},
        {"%t[=5]", NULL, POSENC_ERROR_SETTING, "has no name; write name=value"},
        {"%t[%r=abc]", NULL, POSENC_ERROR_SETTING, "is not a number"},
        {"%t[%r=1:2]", NULL, POSENC_ERROR_SETTING,
         "%r=1:2 is not a number"}, /* a piece without '=' goes on with the value */
        {"%t[%i=-2]", NULL, POSENC_ERROR_SETTING, "out of range"},
        {"%t", "nobody.%r=5", POSENC_ERROR_SETTING, "belongs to no encoding of this specification"},
        {"%t+%s", "wrong=5", POSENC_ERROR_SETTING, "has no setting 'wrong'"},
        {"%t", "%r", POSENC_ERROR_SETTING, "has no value"},
        {"%t[scale=x]", NULL, POSENC_ERROR_SETTING, "scale=x is not a number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_refused(with_words(all[i].spec), all[i].settings ? with_words(all[i].settings) : NULL,
                       all[i].status, with_words(all[i].words));
    assert_int_equal(posenc_encoding_create(NULL, "x", NULL, NULL), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_encoding_create(&(posenc_encoding *){NULL}, NULL, NULL, NULL),
                     POSENC_ERROR_ARGUMENT);
}

static void text_of_any_length_is_refused_not_cut(void **state)
{
    static char long_name[10000], long_value[10000];
    (void)state;
    memset(long_name, 'n', sizeof long_name - 1);
    assert_refused(long_name, NULL, POSENC_ERROR_SETTING, "unknown encoding 'nnn");
    memset(long_value, '1', sizeof long_value - 1);
    memcpy(long_value, with_words("%r=1"), strlen(with_words("%r=1")));
    assert_refused(with_words("%t"), long_value, POSENC_ERROR_SETTING, "1 to 63 characters");
}

static void no_text_does_more_than_be_refused(void **state)
{
    static const char letters[] = "[]+:=,. %5e-";
    uint64_t          at        = 0;
    int               accepted  = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char             text[256] = "";
        posenc_encoding *e;
        const int        pieces = 1 + (int)(posenc_random_uniform(1, "pieces", at++) * 9);
        for (int p = 0; p < pieces; p++) {
            static const char *const words_of_spec[] = {"%t", "%s", "%r", "%i", "=", "[", "]", "+", "5"};
            const double             u               = posenc_random_uniform(1, "spec", at++);
            const size_t             used            = strlen(text);
            if (u < 0.8)
                snprintf(text + used, sizeof text - used, "%s",
                         with_words(words_of_spec[(int)(u / 0.8 * 9)]));
            else
                snprintf(text + used, sizeof text - used, "%c",
                         letters[(int)((u - 0.8) * 5 * (double)(sizeof letters - 1))]);
        }
        if (posenc_encoding_create(&e, text, NULL, NULL) == POSENC_OK) {
            posenc_encoding *again = create(posenc_encoding_spec(e), NULL);
            assert_string_equal(posenc_encoding_spec(again), posenc_encoding_spec(e));
            posenc_encoding_free(again);
            posenc_encoding_free(e);
            accepted++;
        } else
            assert_null(e);
    }
    assert_in_range(accepted, 50, 15000); /* else the text tests nothing */
}

/* ---- parameters ---- */

static void shapes_follow_sizes_and_settings(void **state)
{
    const posenc_dims dims = {.B = 1, .H = 3, .Lq = 20, .Lk = 20, .D = 8, .d_model = 24, .L = 20};
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        posenc_encoding *e = create(posenc_encoding_info_at(i)->name, NULL);
        int32_t          ndim;
        int64_t          shape[POSENC_MAX_DIMS];
        posenc_error     err;
        for (int p = 0; p < posenc_param_count(e); p++) {
            const char *text = posenc_param_describe(e, p)->shape;
            int         axes = *text != 0, conditional = 0; /* "H if per_head" may be missing */
            for (const char *c = text; *c; c++)
                axes += *c == ',';
            for (const char *c = text; (c = strstr(c, " if ")) != NULL; c++)
                conditional++;
            assert_int_equal(posenc_param_shape(e, &dims, p, &ndim, shape, &err), POSENC_OK);
            assert_in_range(ndim, axes - conditional, axes);
            for (int a = 0; a < ndim; a++)
                assert_true(shape[a] >= 1);
        }
        assert_int_equal(posenc_param_shape(e, &dims, posenc_param_count(e), &ndim, shape, &err),
                         POSENC_ERROR_ARGUMENT);
        assert_int_equal(posenc_param_shape(e, &dims, -1, &ndim, shape, &err), POSENC_ERROR_ARGUMENT);
        assert_int_equal(posenc_param_shape(NULL, &dims, 0, &ndim, shape, &err), POSENC_ERROR_ARGUMENT);
        posenc_encoding_free(e);
    }
}

/* What the registry says to callers is what rows go by. */
static void rows_that_belong_to_words_have_ids_and_a_position(void **state)
{
    int found = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        assert_int_equal(info->by_word, pe_encoding_at(i)->input.ids != NULL);
        if (!info->by_word)
            continue;
        posenc_encoding *e = create(info->name, NULL);
        assert_int_equal(info->place, POSENC_PLACE_INPUT);
        assert_int_equal(posenc_rows_coordinates(e), 2);
        posenc_encoding_free(e);
        found = 1;
    }
    assert_true(found);
}

static void the_input_part_tells_its_coordinates_and_the_tokens_of_its_grid(void **state)
{
    static const struct {
        const char *spec;
        int         coordinates;
        int64_t     tokens;
    } all[] = {
        {"sinusoidal", 1, 0},
        {"sinusoidal2d", 2, 6},
        {"sinusoidal2d[height=3:width=5:prefix_rows=2]+t5", 2, 17},
        {"sinusoidal_nd", 1, 6},
        {"sinusoidal_nd[shape=2x3x4]", 3, 24},
        {"sinusoidal_nd[shape=Lx4]", 2, 24},
    };
    const posenc_dims d = {.Lq = 6, .Lk = 6, .H = 2, .D = 6};
    posenc_error      err;
    int64_t           tokens = -1;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_encoding *e = create(all[i].spec, NULL);
        assert_int_equal(posenc_rows_coordinates(e), all[i].coordinates);
        assert_int_equal(posenc_rows_tokens(e, &d, &tokens, &err), POSENC_OK);
        assert_true(tokens == all[i].tokens);
        assert_int_equal(posenc_rows_tokens(e, &d, NULL, &err), POSENC_ERROR_ARGUMENT);
        posenc_encoding_free(e);
    }
    posenc_encoding *rope = create("rope", NULL);
    assert_int_equal(posenc_rows_coordinates(rope), 1);
    assert_int_equal(posenc_rows_tokens(rope, &d, &tokens, &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "rope has no part at place input"));
    posenc_encoding_free(rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_distinct_and_each_is_its_own_nearest),
        cmocka_unit_test(names_are_found_without_regard_to_case),
        cmocka_unit_test(what_is_near_begins_like_it_or_is_about_it),
        cmocka_unit_test(every_encoding_says_what_it_does_beyond_its_length),
        cmocka_unit_test(every_text_that_list_prints_is_there),
        cmocka_unit_test(a_standard_may_be_written_and_is_not_repeated),
        cmocka_unit_test(an_unknown_setting_is_refused_with_the_nearest),
        cmocka_unit_test(a_small_model_is_a_canonical_spec_and_a_buffer_too_small_is_refused),
        cmocka_unit_test(settings_in_brackets_are_parted_by_colon_comma_or_space),
        cmocka_unit_test(a_combination_is_written_by_place_and_knows_its_parts),
        cmocka_unit_test(settings_beside_the_spec_override_it),
        cmocka_unit_test(scale_belongs_to_every_encoding),
        cmocka_unit_test(what_has_no_meaning_is_refused_with_a_sentence),
        cmocka_unit_test(text_of_any_length_is_refused_not_cut),
        cmocka_unit_test(no_text_does_more_than_be_refused),
        cmocka_unit_test(shapes_follow_sizes_and_settings),
        cmocka_unit_test(rows_that_belong_to_words_have_ids_and_a_position),
        cmocka_unit_test(the_input_part_tells_its_coordinates_and_the_tokens_of_its_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

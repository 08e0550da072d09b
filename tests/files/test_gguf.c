/* SPDX-License-Identifier: MIT */
/*
 * Reading GGUF: what the keys mean, and that a file which lies about itself is refused
 *
 * Files are put together here, value by value; whole ones as gguf-py writes them are compared by
 * tests/cli/inspect.txt.
 */
#include "gguf_file.h"

/* ---------------------------------------------------------------- what keys mean ------------ */

static void the_layout_is_the_architectures(void **state)
{
    file          llama = sized("llama"), qwen = sized("qwen2");
    posenc_model *a = read_file(&llama), *b = read_file(&qwen);
    (void)state;
    assert_string_equal(fact(a, 0, "layout")->text, "interleaved");
    assert_string_equal(fact(b, 0, "layout")->text, "half");
    assert_true(warns(a, "base-default"));
    posenc_model_free(a);
    posenc_model_free(b);
}

static void numbers_are_the_floats_of_the_file(void **state)
{
    file f = sized("llama");
    add_real(&f, "llama.rope.freq_base", 1234567.9F);
    posenc_model *model = read_file(&f);
    (void)state;
    assert_float_equal(fact(model, 0, "base")->real, (double)1234567.9F, 0);
    posenc_model_free(model);
}

static void every_fourth_layer_of_cohere2_does_not_rotate(void **state)
{
    file          f     = sized("cohere2");
    posenc_model *model = read_file(&f);
    (void)state;
    assert_string_equal(posenc_model_group_at(model, posenc_model_group_of(model, 3))->encoding, "nope");
    assert_string_equal(posenc_model_group_at(model, posenc_model_group_of(model, 4))->encoding, "rope");
    posenc_model_free(model);
}

/* The fourth axis of a picture model is 0 wide and so is none. */
static void four_sections_of_which_one_is_empty_are_three_axes(void **state)
{
    static const uint32_t sections[] = {4, 2, 2, 0};
    file                  f          = sized("qwen3vl");
    add_list(&f, "qwen3vl.rope.dimension_sections", sections, 4);
    posenc_model *model = read_file(&f);
    (void)state;
    assert_int_equal(fact(model, 0, "axes")->integer, 3);
    assert_string_equal(fact(model, 0, "axis_rule")->text, "interleaved_sections");
    assert_int_equal(fact(model, 0, "sections")->count, 3);
    posenc_model_free(model);
}

static file scaled(const char *architecture, float log_multiplier)
{
    file f = sized(architecture);
    char key[80];
    snprintf(key, sizeof key, "%s.rope.scaling.type", architecture);
    add_word(&f, key, "yarn");
    snprintf(key, sizeof key, "%s.rope.scaling.factor", architecture);
    add_real(&f, key, 4);
    snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", architecture);
    add_whole(&f, key, 1024);
    snprintf(key, sizeof key, "%s.rope.scaling.yarn_log_multiplier", architecture);
    if (log_multiplier != 0)
        add_real(&f, key, log_multiplier);
    return f;
}

/* 0.1 ln 4 + 1, and what the multiplier of 1 makes of it. */
static void the_magnitude_of_yarn_follows_the_log_multiplier(void **state)
{
    file          plain = scaled("mistral3", 0), one = scaled("mistral3", 1);
    posenc_model *a = read_file(&plain), *b = read_file(&one);
    (void)state;
    assert_float_equal(fact(a, 0, "magnitude")->real, 1.138629436111989, 1e-15);
    assert_float_equal(fact(b, 0, "magnitude")->real, 1, 0);
    posenc_model_free(a);
    posenc_model_free(b);
}

static void gpt_oss_has_lost_its_truncation(void **state)
{
    file          f     = scaled("gpt-oss", 0);
    posenc_model *model = read_file(&f);
    (void)state;
    assert_true(warns(model, "truncate-lost"));
    posenc_model_free(model);
}

/* In the table of what is told, and in the SPEC. */
static void the_share_that_yarn_leaves_alone_is_told(void **state)
{
    file plain = scaled("mistral3", 0), half = scaled("mistral3", 0);
    add_real(&half, "mistral3.rope.scaling.yarn_ext_factor", 0.5F);
    posenc_model *a = read_file(&plain), *b = read_file(&half);
    (void)state;
    assert_null(posenc_model_fact(posenc_model_group_at(a, 0), "extrapolation_factor"));
    assert_float_equal(fact(b, 0, "extrapolation_factor")->real, 0.5, 0);
    assert_non_null(strstr(posenc_model_group_at(b, 0)->spec, "extrapolation_factor=0.5"));
    posenc_model_free(a);
    posenc_model_free(b);
}

/* Without numbers of their own the sliding layers turn as the full ones. */
static void layers_that_are_alike_are_one_group(void **state)
{
    file same = sized("gemma3"), other = sized("gemma3");
    add_real(&same, "gemma3.rope.freq_base", 10000);
    add_real(&other, "gemma3.rope.freq_base", 1000000);
    posenc_model *a = read_file(&same), *b = read_file(&other);
    (void)state;
    assert_int_equal(posenc_model_describe(a)->group_count, 1);
    assert_true(posenc_model_group_at(a, 0)->is_all);
    assert_int_equal(posenc_model_describe(b)->group_count, 2);
    posenc_model_free(a);
    posenc_model_free(b);
}

/* A table with fewer rows than the context has no more positions than rows. */
static void a_learned_table_bounds_the_positions(void **state)
{
    static const float x[64 * 4] = {0};
    file               f         = sized("gpt2");
    add_table(&f, "position_embd.weight", x, 64, 4);
    posenc_model *model = read_file(&f);
    (void)state;
    assert_int_equal(fact(model, 0, "rows")->integer, 4);
    assert_int_equal(posenc_model_describe(model)->max_positions, 4);
    posenc_model_free(model);
}

static void a_divisor_divides_its_frequency(void **state)
{
    static const float divisors[8] = {1, 2, 1, 1, 1, 1, 1, 8};
    file               f           = sized("llama");
    add_tensor(&f, "rope_freqs.weight", divisors, 8, F32);
    posenc_model *with    = read_file(&f);
    file          bare    = sized("llama");
    posenc_model *without = read_file(&bare);
    const double *w = fact(with, 0, "inv_freq")->list, *plain = fact(without, 0, "inv_freq")->list;
    (void)state;
    assert_float_equal(w[1], plain[1] / 2, 0);
    assert_float_equal(w[7], plain[7] / 8, 0);
    assert_float_equal(w[0], plain[0], 0);
    posenc_model_free(with);
    posenc_model_free(without);
}

static void alibis_steepest_slope_can_be_another(void **state)
{
    file f = sized("bloom");
    add_real(&f, "bloom.attention.max_alibi_bias", 16);
    posenc_model *model = read_file(&f);
    (void)state;
    assert_float_equal(fact(model, 0, "slopes")->list[0], 0.0625, 0); /* 2^(-16/4) */
    posenc_model_free(model);
}

static void layers_slide_as_the_architecture_has_it(void **state)
{
    static const struct {
        const char *arch;
        int64_t     windows[3];
    } rows[] = {{"gemma2", {8, 0, 8}},
                {"gpt-oss", {8, 0, 8}},
                {"gemma3", {8, 8, 8}},
                {"modern-bert", {0, 5, 5}},
                {"llama", {0, 0, 0}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[64];
        file f = sized(rows[i].arch);
        snprintf(key, sizeof key, "%s.attention.sliding_window", rows[i].arch);
        add_whole(&f, key, 8);
        posenc_model *model = read_file(&f);
        assert_true(posenc_model_describe(model)->layers >= 3);
        for (int64_t layer = 0; layer < 3; layer++)
            assert_int_equal(posenc_model_window(model, layer), rows[i].windows[layer]);
        posenc_model_free(model);
    }
}

/* gpt-oss has sinks in every layer; MiMo's are found by their tensors, here of the layers that slide. */
static void sinks_are_those_of_the_layers_that_have_them(void **state)
{
    static const float    sinks[8]   = {0};
    static const uint32_t pattern[8] = {0, 1, 1, 1, 0, 1, 1, 1};
    file                  every = sized("gpt-oss"), some = sized("mimo2"), none = sized("mimo2");
    add_whole(&some, "mimo2.attention.sliding_window", 128);
    add_list(&some, "mimo2.attention.sliding_window_pattern", pattern, 8);
    add_tensor(&some, "blk.1.attn_norm.weight", sinks, 8, F32);
    add_tensor(&some, "blk.1.attn_sinks.weight", sinks, 4, F32);
    posenc_model             *a = read_file(&every), *b = read_file(&some), *c = read_file(&none);
    const posenc_model_group *full   = posenc_model_group_at(b, posenc_model_group_of(b, 4)),
                             *slides = posenc_model_group_at(b, posenc_model_group_of(b, 5));
    (void)state;
    assert_string_equal(fact(a, 0, "sink")->text, "head");
    assert_non_null(strstr(posenc_model_group_at(a, 0)->spec, ",sink=head]"));
    assert_null(posenc_model_fact(full, "sink"));
    assert_non_null(strstr(slides->spec, ",sink=head]"));
    assert_null(posenc_model_fact(posenc_model_group_at(c, 0), "sink"));
    posenc_model_free(a);
    posenc_model_free(b);
    posenc_model_free(c);
}

static void scores_are_capped_where_the_architecture_does(void **state)
{
    static const struct {
        const char *architecture;
        float       given;
        double      cap;
    } rows[] = {{"gemma2", 0, 50}, {"gemma2", 30, 30}, {"grok", 0, 30}, {"gemma3", 30, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file f = sized(rows[i].architecture);
        char key[80];
        snprintf(key, sizeof key, "%s.attn_logit_softcapping", rows[i].architecture);
        if (rows[i].given > 0)
            add_real(&f, key, rows[i].given);
        posenc_model *model = read_file(&f);
        if (rows[i].cap > 0)
            assert_float_equal(fact(model, 0, "softcap")->real, rows[i].cap, 0);
        else
            assert_null(posenc_model_fact(posenc_model_group_at(model, 0), "softcap"));
        posenc_model_free(model);
    }
    file below = sized("gemma2");
    add_real(&below, "gemma2.attn_logit_softcapping", -1);
    refused(&below, 3, "attn_logit_softcapping is -1; it must be above 0");
}

static void an_unknown_architecture_is_said(void **state)
{
    file silent = sized("novel"), turning = sized("novel");
    add_real(&turning, "novel.rope.freq_base", 10000);
    posenc_model *a = read_file(&silent), *b = read_file(&turning);
    (void)state;
    assert_string_equal(posenc_model_describe(a)->encoding, "unknown");
    assert_int_equal(posenc_model_describe(a)->group_count, 0);
    assert_string_equal(posenc_model_describe(b)->encoding, "rope");
    assert_true(warns(a, "unknown-model-type") && warns(b, "unknown-model-type"));
    posenc_model_free(a);
    posenc_model_free(b);
}

/* ---------------------------------------------------------------- refusals ------------------ */

static void a_factor_tensor_has_one_number_per_pair(void **state)
{
    static const float seven[7] = {1, 1, 1, 1, 1, 1, 1};
    file               f        = sized("llama");
    (void)state;
    add_tensor(&f, "rope_freqs.weight", seven, 7, F32);
    refused(&f, 3, "8 pairs");
}

static void a_factor_tensor_is_float32(void **state)
{
    static const float x[8] = {0};
    file               f    = sized("llama");
    (void)state;
    add_tensor(&f, "rope_freqs.weight", x, 8, F16);
    refused(&f, 3, "F32");
}

static void a_divisor_of_zero_is_refused(void **state)
{
    static const float x[8] = {1, 1, 1, 0, 1, 1, 1, 1};
    file               f    = sized("llama");
    (void)state;
    add_tensor(&f, "rope_freqs.weight", x, 8, F32);
    refused(&f, 3, "above 0");
}

static void an_unknown_scaling_is_refused(void **state)
{
    file f = sized("llama");
    (void)state;
    add_word(&f, "llama.rope.scaling.type", "dynamic");
    refused(&f, 3, "dynamic");
}

static void a_key_may_stand_once(void **state)
{
    file f = sized("llama");
    (void)state;
    add_whole(&f, "llama.block_count", 8);
    refused(&f, 3, "twice");
}

static void a_base_is_a_number(void **state)
{
    file f = sized("llama");
    (void)state;
    add_word(&f, "llama.rope.freq_base", "big");
    refused(&f, 3, "not a finite number");
}

static void longrope_needs_both_of_its_lists(void **state)
{
    static const float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    file               f    = sized("phi3");
    (void)state;
    add_tensor(&f, "rope_factors_long.weight", x, 8, F32);
    refused(&f, 3, "both tensors");
}

static void a_list_longer_than_the_file_is_refused(void **state)
{
    file f = sized("llama");
    (void)state;
    put_key(&f, "tokenizer.ggml.tokens", 9);
    put_u32(f.values, &f.value_size, 8);
    put_u64(f.values, &f.value_size, UINT64_MAX);
    refused(&f, 3, "truncated");
}

static void versions_2_and_3_are_read(void **state)
{
    file f = sized("llama");
    (void)state;
    refused(&f, 1, "version 1");
    refused(&f, 4, "version 4");
}

static void a_file_that_ends_early_is_refused_wherever_it_ends(void **state)
{
    static const float x[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    file               f    = sized("llama");
    (void)state;
    add_tensor(&f, "rope_freqs.weight", x, 8, F32);
    join(&f, 3);
    for (size_t whole = f.size, n = 0; n < whole; n++) {
        posenc_model *model;
        posenc_error  err;
        f.size = n;
        assert_int_equal(parse(&model, &f, &err), POSENC_ERROR_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_the_architectures),
        cmocka_unit_test(numbers_are_the_floats_of_the_file),
        cmocka_unit_test(every_fourth_layer_of_cohere2_does_not_rotate),
        cmocka_unit_test(four_sections_of_which_one_is_empty_are_three_axes),
        cmocka_unit_test(the_magnitude_of_yarn_follows_the_log_multiplier),
        cmocka_unit_test(gpt_oss_has_lost_its_truncation),
        cmocka_unit_test(the_share_that_yarn_leaves_alone_is_told),
        cmocka_unit_test(layers_that_are_alike_are_one_group),
        cmocka_unit_test(a_learned_table_bounds_the_positions),
        cmocka_unit_test(a_divisor_divides_its_frequency),
        cmocka_unit_test(alibis_steepest_slope_can_be_another),
        cmocka_unit_test(layers_slide_as_the_architecture_has_it),
        cmocka_unit_test(sinks_are_those_of_the_layers_that_have_them),
        cmocka_unit_test(scores_are_capped_where_the_architecture_does),
        cmocka_unit_test(an_unknown_architecture_is_said),
        cmocka_unit_test(a_factor_tensor_has_one_number_per_pair),
        cmocka_unit_test(a_factor_tensor_is_float32),
        cmocka_unit_test(a_divisor_of_zero_is_refused),
        cmocka_unit_test(an_unknown_scaling_is_refused),
        cmocka_unit_test(a_key_may_stand_once),
        cmocka_unit_test(a_base_is_a_number),
        cmocka_unit_test(longrope_needs_both_of_its_lists),
        cmocka_unit_test(a_list_longer_than_the_file_is_refused),
        cmocka_unit_test(versions_2_and_3_are_read),
        cmocka_unit_test(a_file_that_ends_early_is_refused_wherever_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A finished run as named arrays: the same bits come back, another configuration has another identity, and
 * what is not whole is not taken.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_run.h"

static const char *const specs[] = {"nope", "learned[rows=128:sigma=0.5]", "transformer_xl[sigma=0.3]", "t5"};

static void run(pe_run_result *result, const pe_run_config *config)
{
    posenc_error err;
    if (pe_run(config, NULL, result, &err))
        fail_msg("%s", err.message);
}

/* Everything in a result as arrays; free the identity. */
static pe_run_file file_of(const pe_run_config *config, pe_run_result *result)
{
    pe_run_file f = {.identity = pe_run_identity(config), .is_finished = 1};
    pe_run_list(&f, config, result);
    return f;
}

static void assert_comes_back(const pe_run_config *config)
{
    pe_run_result there, back;
    posenc_arrays set = {0};
    int           is_finished;
    run(&there, config);
    assert_int_equal(pe_run_result_create(&back, config, NULL), POSENC_OK);
    pe_run_file from = file_of(config, &there), to = file_of(config, &back);
    assert_true(pe_run_file_add(&set, "it/", &from));
    assert_int_equal(pe_run_file_take(&to, &set, "it/", "here", NULL), POSENC_OK);
    tiny_assert_same(&there, &back);
    assert_true(there.train_seconds == back.train_seconds && there.eval_seconds == back.eval_seconds &&
                there.tokens_per_second == back.tokens_per_second);
    assert_string_equal(back.instructions, posenc_isa());
    char *identity = pe_run_file_identity(&set, "it/", &is_finished);
    assert_string_equal(identity, from.identity);
    assert_true(is_finished);
    assert_null(pe_run_file_identity(&set, "", &is_finished));
    free(identity);
    free(from.identity);
    free(to.identity);
    posenc_arrays_free(&set);
    pe_run_result_free(&there);
    pe_run_result_free(&back);
}

static void a_run_comes_back_bit_for_bit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        pe_run_config config = tiny_run(specs[i]);
        assert_comes_back(&config);
    }
    pe_run_config config = tiny_run("sinusoidal");
    config.bidirectional = 1;
    config.entry.combine = PE_CONCAT;
    assert_comes_back(&config);
}

/* Its losses are NaN from there on, and nothing was evaluated. */
static void a_run_that_diverged_comes_back_too(void **state)
{
    (void)state;
    pe_run_config config = tiny_run("alibi");
    config.learning_rate = config.weight_decay = 1000;
    assert_comes_back(&config);
}

/* Another run, an array less, or one of another size: nothing is taken. */
static void what_is_not_whole_is_refused(void **state)
{
    const pe_run_config config = tiny_run("t5"), other = tiny_run("alibi");
    pe_run_config       shorter = config;
    pe_run_result       result, back;
    posenc_error        err;
    (void)state;
    run(&result, &config);
    shorter.windows--;
    pe_run_file from = file_of(&config, &result);
    for (int i = 0; i < from.count; i++) {
        posenc_arrays set  = {0};
        pe_run_file   less = from;
        less.arrays[i]     = less.arrays[--less.count];
        assert_true(pe_run_file_add(&set, "", &less));
        assert_int_equal(pe_run_file_take(&from, &set, "", "here", &err), POSENC_ERROR_FORMAT);
        assert_non_null(strstr(err.message, "is missing or has another size"));
        posenc_arrays_free(&set);
    }
    posenc_arrays set = {0};
    assert_true(pe_run_file_add(&set, "", &from));
    assert_int_equal(pe_run_result_create(&back, &shorter, NULL), POSENC_OK);
    char *identity = from.identity;
    from           = file_of(&shorter, &back);
    free(from.identity);
    from.identity = identity;
    assert_int_equal(pe_run_file_take(&from, &set, "", "here", &err), POSENC_ERROR_FORMAT);
    assert_true(isnan(back.train_loss[0]));
    free(from.identity);
    from.identity = pe_run_identity(&other);
    assert_int_equal(pe_run_file_take(&from, &set, "", "here", &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "another run"));
    free(from.identity);
    posenc_arrays_free(&set);
    pe_run_result_free(&back);
    pe_run_result_free(&result);
}

static void expect_other(const pe_run_config *config, const char *word)
{
    const pe_run_config standard = tiny_run("alibi");
    char               *a = pe_run_identity(&standard), *b = pe_run_identity(config), text[200];
    assert_string_not_equal(a, b);
    pe_run_identity_difference(text, sizeof text, a, b);
    if (!strstr(text, word))
        fail_msg("\"%s\" does not say \"%s\"", text, word);
    free(a);
    free(b);
}

/* Whatever changes a run's numbers changes its identity, and the sentence says what it was. */
static void every_member_of_the_configuration_has_its_say(void **state)
{
    static uint16_t other[TINY_RUN_BYTES];
    const pe_text   another = {.ids = other, .size = TINY_RUN_BYTES, .train_size = 3000};
    pe_run_config   c;
    (void)state;
#define OTHER(member, value, word) c = tiny_run("alibi"), c.member = (value), expect_other(&c, word)
    OTHER(L, 8, "L is 16 there and 8 here");
    OTHER(d_model, 32, "d_model");
    OTHER(layers, 3, "layers");
    OTHER(heads, 4, "heads");
    OTHER(batch, 9, "batch");
    OTHER(steps, 13, "steps is 12 there and 13 here");
    OTHER(warmup, 4, "warmup");
    OTHER(learning_rate, 2.4000000001e-2, "learning_rate");
    OTHER(weight_decay, 0.02, "weight_decay");
    OTHER(clip, 2, "clip");
    OTHER(windows, 2, "windows");
    OTHER(bidirectional, 1, "trains");
    OTHER(places, ((pe_run_places){PE_AT_RANDOM, 512}), "positions");
    OTHER(entry.combine, PE_CONCAT, "combine");
    OTHER(entry.inject, PE_IN_BLOCKS, "inject");
    OTHER(seed, 2, "");
    OTHER(spec, "nope", "");
    memcpy(other, tiny_run_bytes, sizeof other);
    other[2000] ^= 1;
    OTHER(text, &another, "the text is another");
#undef OTHER
    c                            = tiny_run("alibi");
    c.checkpoint                 = "elsewhere.npz";
    c.checkpoint_seconds         = 3;
    const pe_run_config standard = tiny_run("alibi");
    char               *a = pe_run_identity(&standard), *b = pe_run_identity(&c);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_comes_back_bit_for_bit),
        cmocka_unit_test(a_run_that_diverged_comes_back_too),
        cmocka_unit_test(what_is_not_whole_is_refused),
        cmocka_unit_test(every_member_of_the_configuration_has_its_say),
    };
    return cmocka_run_group_tests(tests, tiny_run_write_text, NULL);
}

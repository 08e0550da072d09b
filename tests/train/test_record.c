/* SPDX-License-Identifier: MIT */
/*
 * A finished run as a line: the same bits come back, another configuration has another name, and a line that
 * is not what was written is none.
 */
#include "train/record.h"

#include <jansson.h>
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

static char *line_of(const pe_run_config *config, const pe_run_result *result)
{
    char *line;
    assert_int_equal(pe_record_write(&line, "a label", config, result, NULL), POSENC_OK);
    assert_null(strchr(line, '\n'));
    return line;
}

static void assert_comes_back(const pe_run_config *config)
{
    pe_run_result  there, back;
    pe_record_head head;
    run(&there, config);
    char *line = line_of(config, &there), *identity = pe_run_identity(config);
    assert_int_equal(pe_record_read(&back, config, line, NULL), POSENC_OK);
    tiny_assert_same(&there, &back);
    assert_true(there.train_seconds == back.train_seconds && there.eval_seconds == back.eval_seconds &&
                there.tokens_per_second == back.tokens_per_second);
    assert_int_equal(pe_record_head_read(&head, line, NULL), POSENC_OK);
    assert_string_equal(head.identity, identity);
    assert_string_equal(head.label, "a label");
    pe_record_head_free(&head);
    free(identity);
    free(line);
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

/* A line is read by others as well: what they need is there in plain numbers. */
static void a_line_is_json_with_hash_curves_and_times(void **state)
{
    const pe_run_config config = tiny_run("alibi");
    pe_run_result       result;
    char                name[PE_RUN_NAME];
    (void)state;
    run(&result, &config);
    char   *line = line_of(&config, &result), *identity = pe_run_identity(&config);
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    pe_run_name(name, identity);
    assert_string_equal(json_string_value(json_object_get(json, "run")), name);
    assert_int_equal(json_array_size(json_object_get(json, "curve")), 8 * TINY_RUN_LENGTH);
    assert_int_equal(json_array_size(json_object_get(json, "training")), TINY_STEPS);
    double first = 0;
    for (int w = 0; w < TINY_WINDOWS; w++)
        first += (double)result.window_loss[w * 8 * TINY_RUN_LENGTH] / TINY_WINDOWS;
    assert_true(fabs(json_real_value(json_array_get(json_object_get(json, "curve"), 0)) - first) < 1e-12);
    assert_true((float)json_real_value(json_array_get(json_object_get(json, "training"), 3)) ==
                result.train_loss[3]);
    assert_true(json_real_value(json_object_get(json_object_get(json, "time"), "train_seconds")) ==
                result.train_seconds);
    json_decref(json);
    free(identity);
    free(line);
    pe_run_result_free(&result);
}

/* A byte changed anywhere, or the end missing: no line. */
static void a_line_that_was_changed_is_refused(void **state)
{
    const pe_run_config config = tiny_run("t5");
    pe_run_result       result, back;
    posenc_error        err;
    (void)state;
    run(&result, &config);
    char        *line = line_of(&config, &result);
    const size_t n    = strlen(line);
    for (size_t at = 0; at < n; at += 1 + n / 300) {
        const char was = line[at];
        line[at]       = was == 'x' ? 'y' : 'x';
        assert_int_equal(pe_record_read(&back, &config, line, &err), POSENC_FORMAT);
        assert_non_null(strstr(err.message, "no whole line"));
        line[at] = 0;
        assert_int_equal(pe_record_read(&back, &config, line, &err), POSENC_FORMAT);
        line[at] = was;
    }
    assert_int_equal(pe_record_read(&back, &config, line, &err), POSENC_OK);
    pe_run_result_free(&back);
    free(line);
    pe_run_result_free(&result);
}

static void expect_other(const pe_run_config *config, const char *word)
{
    const pe_run_config standard = tiny_run("alibi");
    char               *a = pe_run_identity(&standard), *b = pe_run_identity(config), text[200];
    assert_string_not_equal(a, b);
    pe_identity_difference(text, sizeof text, a, b);
    if (!strstr(text, word))
        fail_msg("\"%s\" does not say \"%s\"", text, word);
    free(a);
    free(b);
}

/* Whatever changes a run's numbers changes its identity, and the sentence says what it was. */
static void every_member_of_the_configuration_has_its_say(void **state)
{
    static unsigned char other[TINY_RUN_BYTES];
    const pe_text        another = {.bytes = other, .size = TINY_RUN_BYTES, .train_size = 3000};
    pe_run_config        c;
    (void)state;
#define OTHER(member, value, word) c = tiny_run("alibi"), c.member = (value), expect_other(&c, word)
    OTHER(L, 8, "L is 16 there and 8 here");
    OTHER(d_model, 32, "d_model");
    OTHER(layers, 3, "layers");
    OTHER(heads, 4, "heads");
    OTHER(batch, 9, "batch");
    OTHER(steps, 13, "steps is 12 there and 13 here");
    OTHER(warmup, 4, "warmup");
    OTHER(learning_rate, 5.000000001e-3, "learning_rate");
    OTHER(weight_decay, 0.02, "weight_decay");
    OTHER(clip, 2, "clip");
    OTHER(windows, 2, "windows");
    OTHER(bidirectional, 1, "trains");
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
        cmocka_unit_test(a_line_is_json_with_hash_curves_and_times),
        cmocka_unit_test(a_line_that_was_changed_is_refused),
        cmocka_unit_test(every_member_of_the_configuration_has_its_say),
    };
    return cmocka_run_group_tests(tests, tiny_run_write_text, NULL);
}

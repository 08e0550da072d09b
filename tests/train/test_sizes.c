/* SPDX-License-Identifier: MIT */
/*
 * Sizes, reach and tokens of a comparison that are not those of the presets, and how long it would take.
 */
#include "train/jobs/outcome.h"
#include "train/judge/judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_compare.h"

static uint16_t ids[TINY_BYTES];

static int write_words(void **state)
{
    (void)state;
    tiny_write_words();
    tiny_bytes[0] = 255; /* so that bytes as tokens have a vocabulary of 256 */
    for (int i = 0; i < TINY_BYTES; i++)
        ids[i] = tiny_bytes[i];
    return 0;
}

static json_t *result_of(const pe_compare_config *config)
{
    json_t *json = tiny_numbers(config);
    json_object_del(json, "files");
    return json;
}

static const json_t *first_encoding(const json_t *results)
{
    return json_array_get(json_object_get(results, "encodings"), 0);
}

/* ---------------------------------------------------------------- refused ------------------- */

static void refuse(const pe_compare_config *config, const char *sentence)
{
    pe_compare  *c;
    posenc_error err;
    assert_int_equal(pe_compare_create(&c, config, &err), POSENC_ERROR_ARGUMENT);
    if (!strstr(err.message, sentence))
        fail_msg("\"%s\" does not say \"%s\"", err.message, sentence);
    assert_null(c);
}

static void sizes_that_cannot_be_are_refused_with_their_option(void **state)
{
    (void)state;
    pe_compare_config config = tiny_compare("rope");
    config.preset.L          = 17;
    refuse(&config, "--length is 17; it must be even");
    config                = tiny_compare("rope");
    config.preset.d_model = 18;
    config.preset.heads   = 4;
    refuse(&config, "--width is 18 and --heads 4; the heads must divide the width");
    config.preset.heads = 2;
    refuse(&config, "each head 9 channels, and the rotation of rope needs an even number");
    config              = tiny_compare("rope");
    config.preset.reach = 12;
    refuse(&config, "--reach is 12; it must be a power of two");
    config.preset.reach = 128;
    refuse(&config, "--reach is 128; it must be 2 to 64");
    config                      = tiny_compare("rope");
    config.preset.learning_rate = 0;
    refuse(&config, "--learning-rate is 0");
    config          = tiny_compare("rope");
    config.preset.L = 4096;
    refuse(&config, "a smaller --length or --reach");
}

static void a_head_of_odd_width_is_fine_without_a_rotation(void **state)
{
    (void)state;
    pe_compare_config config = tiny_compare("alibi");
    config.preset.d_model    = 18;
    config.preset.steps      = 1;
    pe_compare_free(tiny_trained(&config, NULL));
}

/* ---------------------------------------------------------------- reach --------------------- */

/* Columns, buckets and curves end where the reading does. */
static void a_comparison_reads_as_far_as_it_is_told(void **state)
{
    static const int64_t reaches[] = {2, 4, 16};
    (void)state;
    for (int masked = 0; masked < 2; masked++)
        for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
            const int64_t     reach   = reaches[i];
            pe_compare_config config  = tiny_compare("alibi,learned");
            config.preset.reach       = reach;
            config.preset.steps       = 3;
            config.bidirectional      = masked;
            pe_compare       *c       = tiny_trained(&config, NULL);
            const pe_outcome *o       = &c->outcomes[0];
            const int         buckets = pe_stats_buckets(reach);
            pe_table          t;
            char              last[16];
            for (int b = 0; b < PE_MOST_BUCKETS; b++)
                assert_true(isfinite(o->loss[b]) == (b < buckets));
            assert_true(isfinite(o->curve[reach * TINY_LENGTH - 1]));
            assert_int_equal(o->rank[buckets - 1] > 0, 1);
            assert_int_equal(pe_summary_table(c, &t, NULL), POSENC_OK);
            snprintf(last, sizeof last, "x%lld", (long long)reach);
            assert_string_equal(t.columns[buckets].head, last);
            assert_string_not_equal(pe_table_cell(&t, 0, buckets), "-");
            pe_table_free(&t);
            pe_compare_free(c);
        }
}

static void a_check_of_a_length_that_was_not_read_is_not_applicable(void **state)
{
    (void)state;
    pe_compare_config config = tiny_compare("alibi,transformer_xl");
    config.preset.reach      = 2;
    config.preset.steps      = 3;
    pe_compare     *c        = tiny_trained(&config, NULL);
    pe_check_result all[PE_MOST_CHECKS];
    int             found = 0;
    for (int i = 0, n = pe_claims_check(all, c); i < n; i++)
        if (all[i].number == 11 && strstr(all[i].found, "--reach")) {
            assert_int_equal(all[i].verdict, PE_NOT_APPLICABLE);
            found++;
        }
    assert_true(found > 0);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- tokens -------------------- */

static pe_compare_config tokens(const char *encodings)
{
    pe_compare_config config = tiny_compare(encodings);
    config.tokens            = ids;
    config.text              = NULL;
    return config;
}

static void bytes_given_as_tokens_have_the_same_losses_to_the_bit(void **state)
{
    (void)state;
    for (int masked = 0; masked < 2; masked++) {
        pe_compare_config bytes = tiny_compare("learned,rope,complex_order"),
                          same  = tokens(bytes.preset.encodings);
        bytes.bidirectional = same.bidirectional = masked;
        bytes.preset.steps = same.preset.steps = 5;
        json_t *a = result_of(&bytes), *b = result_of(&same);
        assert_true(json_equal(json_object_get(first_encoding(a), "curve"),
                               json_object_get(first_encoding(b), "curve")));
        assert_true(json_equal(json_object_get(first_encoding(a), "training"),
                               json_object_get(first_encoding(b), "training")));
        assert_int_equal(json_integer_value(json_object_get(json_object_get(b, "text"), "vocabulary")), 256);
        char *of_bytes  = json_dumps(json_object_get(a, "recommendations"), 0),
             *of_tokens = json_dumps(json_object_get(b, "recommendations"), 0);
        assert_non_null(strstr(of_bytes, "byte"));
        assert_null(strstr(of_tokens, "byte"));
        free(of_bytes);
        free(of_tokens);
        json_decref(a);
        json_decref(b);
    }
}

static void a_vocabulary_may_be_larger_than_bytes(void **state)
{
    (void)state;
    for (int masked = 0; masked < 2; masked++) {
        pe_compare_config config = tokens("sinusoidal[combine=concat],complex_order,t5");
        config.bidirectional     = masked;
        config.preset.steps      = 3;
        ids[TINY_BYTES - 1]      = 999;
        pe_compare *c            = tiny_trained(&config, NULL);
        assert_int_equal(c->text.vocabulary, 1000);
        for (int i = 0; i < c->count; i++) /* of a model that has learned nothing */
            assert_true(fabs(c->outcomes[i].loss[PE_AT_L] - log(1000)) < 1);
        ids[TINY_BYTES - 1] = tiny_bytes[TINY_BYTES - 1];
        pe_compare_free(c);
    }
}

static void losses_are_per_byte_too_where_the_bytes_of_tokens_are_known(void **state)
{
    static int32_t two[256];
    (void)state;
    for (int i = 0; i < 256; i++)
        two[i] = 2;
    pe_compare_config config = tokens("alibi");
    config.token_bytes       = two;
    config.token_kinds       = 255;
    refuse(&config, "--token-bytes: it has 255 numbers and the highest id of --tokens is 255");
    config.token_kinds = 256;
    pe_compare *c      = tiny_trained(&config, NULL);
    pe_table    t;
    char        half[16];
    assert_int_equal(pe_summary_table(c, &t, NULL), POSENC_OK);
    snprintf(half, sizeof half, "%.3f", c->outcomes[0].loss[PE_AT_L] / 2);
    assert_string_equal(t.columns[t.column_count - 2].head, "nats/B");
    assert_string_equal(pe_table_cell(&t, 0, t.column_count - 2), half);
    pe_table_free(&t);
    pe_compare_free(c);
}

/* Per byte at L: of the tokens whose losses make the loss at L, which are not those of the long windows. */
static void bytes_of_tokens_are_counted_where_their_loss_is(void **state)
{
    static int32_t bytes[256];
    double         sum = 0, n = 0;
    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = 1 + i % 7;
    pe_compare_config config = tokens("alibi");
    config.token_bytes       = bytes;
    config.token_kinds       = 256;
    pe_compare          *c   = tiny_trained(&config, NULL);
    const pe_run_config *run = &c->outcomes[0].config;
    for (int64_t i = 0; i < pe_run_scored_windows(run); i++)
        for (int64_t p = run->L / 2; p < run->L; p++, n++)
            sum += bytes[pe_run_scored_window(run, i)[p + 1]];
    assert_true(n > (double)(run->windows * (run->L - run->L / 2)));
    assert_true(fabs(c->token_bytes[PE_AT_L] - sum / n) < 1e-12);
    assert_true(c->unit == c->token_bytes[PE_AT_L]);
    assert_true(strstr(c->warning, "--token-bytes") == NULL);
    pe_compare_free(c);
}

static void texts_about_bytes_are_told_about_tokens(void **state)
{
    (void)state;
    pe_compare_config config = tokens("alibi");
    pe_compare       *c;
    assert_int_equal(pe_compare_create(&c, &config, NULL), POSENC_OK);
    char *told = pe_words_retell(c, "nats per byte; 16 bytes. --token-bytes, bytes.npy, 字节");
    assert_string_equal(told, "nats per token; 16 tokens. --token-bytes, bytes.npy, 词元");
    free(told);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- how long ------------------ */

static pe_compare_cost cost_of(const pe_compare_config *config)
{
    pe_compare     *c;
    pe_compare_cost cost;
    posenc_error    err;
    if (pe_compare_create(&c, config, &err) || pe_compare_estimate(c, &cost, &err))
        fail_msg("%s", err.message);
    pe_compare_free(c);
    return cost;
}

static void an_estimate_grows_with_what_is_asked_for(void **state)
{
    (void)state;
    pe_compare_config     config = tiny_compare("alibi,rope");
    const pe_compare_cost few    = cost_of(&config);
    config.preset.steps          = 4000;
    config.workers               = 2;
    const pe_compare_cost more   = cost_of(&config);
    assert_int_equal(few.runs, 2);
    assert_int_equal(few.workers, 1);
    assert_int_equal(more.workers, 2);
    assert_true(few.seconds > 0 && few.seconds == few.processor_seconds);
    assert_true(more.processor_seconds > 5 * few.processor_seconds);
    assert_true(more.seconds >= more.processor_seconds / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_cannot_be_are_refused_with_their_option),
        cmocka_unit_test(a_head_of_odd_width_is_fine_without_a_rotation),
        cmocka_unit_test(a_comparison_reads_as_far_as_it_is_told),
        cmocka_unit_test(a_check_of_a_length_that_was_not_read_is_not_applicable),
        cmocka_unit_test(bytes_given_as_tokens_have_the_same_losses_to_the_bit),
        cmocka_unit_test(a_vocabulary_may_be_larger_than_bytes),
        cmocka_unit_test(losses_are_per_byte_too_where_the_bytes_of_tokens_are_known),
        cmocka_unit_test(bytes_of_tokens_are_counted_where_their_loss_is),
        cmocka_unit_test(texts_about_bytes_are_told_about_tokens),
        cmocka_unit_test(an_estimate_grows_with_what_is_asked_for),
    };
    return cmocka_run_group_tests(tests, write_words, NULL);
}

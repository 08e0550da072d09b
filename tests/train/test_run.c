/* SPDX-License-Identifier: MIT */
/*
 * Whole runs, small: that they learn, that they are the same every time whatever runs beside them, and
 * that they end as they should when text, sizes or numbers are bad.
 */
#include "train/run/run.h"
#include "train/run/stats.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 16, BYTES = 4000 };

static uint16_t      bytes[BYTES];
static const pe_text text = {.ids = bytes, .size = BYTES, .train_size = 3000};

static int write_text(void **state)
{
    const char *sentence = "a stitch in time saves nine; ";
    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)sentence[i % strlen(sentence)];
    return 0;
}

static void spec_of(char *spec, size_t n, const char *name)
{
    const posenc_dims dims = {
        .B = 8, .H = 2, .G = 2, .Lq = LENGTH, .Lk = LENGTH, .D = 8, .Dv = 8, .d_model = 16, .L = LENGTH};
    char settings[256];
    assert_int_equal(posenc_small_model(name, &dims, POSENC_MASK_CAUSAL, settings, sizeof settings, NULL),
                     POSENC_OK);
    snprintf(spec, n, settings[0] ? "%s[%s]" : "%s", name, settings);
}

static pe_run_config small(const char *spec)
{
    return (pe_run_config){.spec          = spec,
                           .L             = LENGTH,
                           .reach         = PE_REACH,
                           .d_model       = 16,
                           .layers        = 2,
                           .heads         = 2,
                           .batch         = 8,
                           .steps         = 20,
                           .warmup        = 5,
                           .learning_rate = 0.024,
                           .weight_decay  = 0.01,
                           .clip          = 1,
                           .windows       = 3,
                           .seed          = 1,
                           .text          = &text};
}

/* Of the bytes [L/2, L) of the first window. */
static double held_out_loss(const pe_run_result *result)
{
    double sum = 0;
    for (int p = LENGTH / 2; p < LENGTH; p++)
        sum += (double)result->window_loss[p];
    return sum / (LENGTH - LENGTH / 2);
}

static void every_encoding_learns_a_repeated_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        char          spec[512];
        pe_run_result result;
        posenc_error  err;
        spec_of(spec, sizeof spec, posenc_encoding_info_at(i)->name);
        pe_run_config config       = small(spec);
        config.steps               = 150;
        const posenc_status status = pe_run(&config, NULL, &result, &err);
        if (status && status != POSENC_ERROR_UNSUPPORTED)
            fail_msg("%s", err.message);
        if (!status) {
            if (!(result.train_loss[0] > 5 && result.train_loss[149] < 1))
                fail_msg("%s: loss %g, then %g", spec, (double)result.train_loss[0],
                         (double)result.train_loss[149]);
            assert_true(held_out_loss(&result) < 1 && result.tokens_per_second > 0);
        }
        pe_run_result_free(&result);
    }
}

typedef struct job {
    char          spec[512];
    pe_run_result result;
    posenc_status status;
} job;

static void *work(void *of)
{
    job                *j      = of;
    const pe_run_config config = small(j->spec);
    j->status                  = pe_run(&config, NULL, &j->result, NULL);
    return NULL;
}

static void assert_same(const pe_run_result *a, const pe_run_result *b)
{
    assert_memory_equal(a->train_loss, b->train_loss, 20 * sizeof(float));
    assert_memory_equal(a->window_loss, b->window_loss, 3 * 8 * LENGTH * sizeof(float));
}

static void two_runs_at_once_equal_one_alone_bit_for_bit(void **state)
{
    (void)state;
    static job jobs[3];
    pthread_t  threads[2];
    for (int i = 0; i < 3; i++)
        spec_of(jobs[i].spec, sizeof jobs[i].spec,
                posenc_encoding_info_at(posenc_encoding_count() - 1)->name);
    work(&jobs[2]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobs[i].status, POSENC_OK);
    for (int i = 0; i < 2; i++)
        assert_same(&jobs[i].result, &jobs[2].result);
    for (int i = 0; i < 3; i++)
        pe_run_result_free(&jobs[i].result);
}

static const char *first_name(void)
{
    return posenc_encoding_info_at(0)->name;
}

static void another_seed_gives_another_run(void **state)
{
    (void)state;
    char spec[512];
    spec_of(spec, sizeof spec, first_name());
    pe_run_config a = small(spec), b = small(spec);
    pe_run_result x, y;
    b.seed = 2;
    assert_int_equal(pe_run(&a, NULL, &x, NULL), POSENC_OK);
    assert_int_equal(pe_run(&b, NULL, &y, NULL), POSENC_OK);
    assert_memory_not_equal(x.train_loss, y.train_loss, 20 * sizeof(float));
    pe_run_result_free(&x);
    pe_run_result_free(&y);
}

static void progress_ends_at_the_work_announced(void **state)
{
    (void)state;
    char spec[512];
    spec_of(spec, sizeof spec, first_name());
    const pe_run_config config   = small(spec);
    pe_run_progress     progress = {0};
    pe_run_result       result;
    assert_int_equal(pe_run(&config, &progress, &result, NULL), POSENC_OK);
    assert_int_equal(atomic_load(&progress.step), pe_run_work(&config));
    pe_run_result_free(&result);
}

static void a_cancelled_run_stops_at_the_next_step(void **state)
{
    (void)state;
    char spec[512];
    spec_of(spec, sizeof spec, first_name());
    const pe_run_config config   = small(spec);
    pe_run_progress     progress = {0};
    pe_run_result       result;
    atomic_store(&progress.cancel, 1);
    assert_int_equal(pe_run(&config, &progress, &result, NULL), POSENC_ERROR_UNSUPPORTED);
    assert_true(result.cancelled && isnan(result.train_loss[1]));
    assert_int_equal(atomic_load(&progress.step), 1);
    pe_run_result_free(&result);
}

/* Decay of a thousand at a rate of a thousand turns every weight into minus a million of itself. */
static void a_run_that_diverges_says_so_and_reports_no_number(void **state)
{
    (void)state;
    char spec[512];
    spec_of(spec, sizeof spec, first_name());
    pe_run_config config = small(spec);
    pe_run_result result;
    config.learning_rate = 1000;
    config.weight_decay  = 1000;
    assert_int_equal(pe_run(&config, NULL, &result, NULL), POSENC_OK);
    assert_true(result.diverged && isnan(result.window_loss[0]) && isnan(result.train_loss[19]));
    pe_run_result_free(&result);
}

static void the_parameters_come_back_layer_by_layer(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        char             spec[512];
        posenc_encoding *e;
        pe_run_result    result;
        spec_of(spec, sizeof spec, posenc_encoding_info_at(i)->name);
        const pe_run_config config = small(spec);
        assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
        if (pe_run(&config, NULL, &result, NULL) == POSENC_OK) {
            const int n = posenc_param_count(e);
            assert_int_equal(result.param_count, 2 * n);
            for (int p = 0; p < n; p++) {
                const posenc_tensor *first = &result.params[p], *second = &result.params[n + p];
                assert_int_equal(first->ndim, second->ndim);
                assert_memory_equal(first->shape, second->shape, (size_t)first->ndim * sizeof *first->shape);
            }
        }
        pe_run_result_free(&result);
        posenc_encoding_free(e);
    }
}

static void a_text_too_short_is_refused_with_a_sentence_that_says_how_much_it_needs(void **state)
{
    (void)state;
    char spec[512];
    spec_of(spec, sizeof spec, first_name());
    const pe_text texts[2] = {{bytes, 3000 + 3 * 8 * LENGTH, 3000, 0, 0}, {bytes, 3000, LENGTH, 0, 0}};
    const char   *needs[2] = {"385", "17"};
    for (int i = 0; i < 2; i++) {
        pe_run_config config = small(spec);
        pe_run_result result;
        posenc_error  err = {0};
        config.text       = &texts[i];
        assert_int_equal(pe_run(&config, NULL, &result, &err), POSENC_ERROR_ARGUMENT);
        assert_non_null(strstr(err.message, needs[i]));
        pe_run_result_free(&result);
    }
}

static void batches_are_named_by_seed_and_step_and_stay_in_the_training_part(void **state)
{
    (void)state;
    const pe_text   tight = {bytes, LENGTH + 3, LENGTH + 2, 0, 0}; /* two places */
    const uint16_t *a[64], *b[64];
    int             seen[2] = {0};
    pe_text_batch(a, &tight, LENGTH, 64, 9, 4);
    pe_text_batch(b, &tight, LENGTH, 64, 9, 4);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 64; i++) {
        assert_in_range(a[i] - bytes, 0, 1);
        seen[a[i] - bytes]++;
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    pe_text_batch(b, &tight, LENGTH, 64, 9, 5);
    assert_memory_not_equal(a, b, sizeof a);
}

static void about_15_percent_are_hidden_and_never_none(void **state)
{
    (void)state;
    static unsigned char flags[20000], again[20000];
    int                  count = 0;
    pe_text_hide(flags, 20000, 5, "test", 0);
    pe_text_hide(again, 20000, 5, "test", 0);
    assert_memory_equal(flags, again, sizeof flags);
    for (int i = 0; i < 20000; i++)
        count += flags[i];
    assert_in_range(count, 2850, 3150);
    for (int64_t first = 0; first < 200; first++) { /* two bytes: chance alone would hide none in 72 of 100 */
        pe_text_hide(flags, 2, 5, "test", 2 * first);
        assert_true(flags[0] || flags[1]);
    }
    pe_text_hide(flags, 64, 5, "test", 0);
    pe_text_hide(again, 64, 6, "test", 0);
    assert_memory_not_equal(flags, again, 64);
}

/* A sentence of 29 bytes that repeats: what is hidden stands elsewhere in the window. */
static void a_bidirectional_run_learns_to_fill_gaps_at_five_lengths(void **state)
{
    (void)state;
    char            spec[512];
    pe_run_result   result;
    pe_run_progress progress = {0};
    spec_of(spec, sizeof spec, first_name());
    pe_run_config config = small(spec);
    config.bidirectional = 1;
    config.steps         = 150;
    assert_int_equal(pe_run(&config, &progress, &result, NULL), POSENC_OK);
    assert_int_equal(atomic_load(&progress.step), pe_run_work(&config));
    assert_true(result.train_loss[0] > 5 && result.train_loss[149] < 4);
    for (int w = 0; w < 3; w++) {
        const float *row = result.window_loss + w * 8 * LENGTH;
        for (int p = 0; p < 8 * LENGTH; p++)
            assert_true(isfinite(row[p]));
        for (int length = LENGTH / 2; length <= 8 * LENGTH; length *= 2) /* a staircase */
            assert_true(row[length - 1] == row[length == LENGTH / 2 ? 0 : length / 2]);
        assert_true(row[LENGTH - 1] != row[LENGTH]);
    }
    pe_run_result_free(&result);
}

static void held_out_windows_span_the_rest_and_predict_no_byte_twice(void **state)
{
    (void)state;
    const int64_t most = pe_text_windows(&text, 8 * LENGTH);
    assert_int_equal(most, (BYTES - 3000 - 1) / (8 * LENGTH));
    for (int64_t count = 1; count <= most; count++) {
        const uint16_t *end = text.ids + text.train_size;
        assert_ptr_equal(pe_text_window(&text, 8 * LENGTH, count, 0), end);
        for (int64_t w = 0; w < count; w++) {
            const uint16_t *start = pe_text_window(&text, 8 * LENGTH, count, w);
            assert_true(start >= end);
            end = start + 8 * LENGTH;
        }
        assert_true(end + 1 <= text.ids + text.size);
        assert_true(count == 1 || end + 1 == text.ids + text.size);
    }
}

/* Before training tokens are random directions, so their mean |cos| with any rows is that of the width,
   within what the 19 letters and 16 positions of this text leave open; training then changes it. Without rows
   there is none. */
static void token_and_position_vectors_begin_as_random_directions(void **state)
{
    static const char *const specs[] = {"sinusoidal", "sinusoidal[combine=concat]",
                                        "learned[rows=128:sigma=0.5]", "sinusoidal[inject=blocks]", "nope"};
    (void)state;
    for (int i = 0; i < 5; i++) {
        char          plain[128];
        pe_run_result result;
        pe_entry      entry;
        assert_int_equal(pe_spec_split(plain, sizeof plain, &entry, specs[i], NULL), POSENC_OK);
        pe_run_config config = small(plain);
        config.entry         = entry;
        assert_int_equal(pe_run(&config, NULL, &result, NULL), POSENC_OK);
        if (i == 4)
            assert_true(isnan(result.cosine_before) && isnan(result.cosine_after));
        else {
            assert_true(fabs(result.cosine_before - pe_stats_random_cosine(16)) <
                        0.25 * pe_stats_random_cosine(16));
            assert_true(result.cosine_after > 0 && result.cosine_after < 1 &&
                        fabs(result.cosine_after - result.cosine_before) > 1e-6);
        }
        pe_run_result_free(&result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_encoding_learns_a_repeated_sentence),
        cmocka_unit_test(two_runs_at_once_equal_one_alone_bit_for_bit),
        cmocka_unit_test(another_seed_gives_another_run),
        cmocka_unit_test(progress_ends_at_the_work_announced),
        cmocka_unit_test(a_cancelled_run_stops_at_the_next_step),
        cmocka_unit_test(a_run_that_diverges_says_so_and_reports_no_number),
        cmocka_unit_test(the_parameters_come_back_layer_by_layer),
        cmocka_unit_test(a_text_too_short_is_refused_with_a_sentence_that_says_how_much_it_needs),
        cmocka_unit_test(batches_are_named_by_seed_and_step_and_stay_in_the_training_part),
        cmocka_unit_test(about_15_percent_are_hidden_and_never_none),
        cmocka_unit_test(a_bidirectional_run_learns_to_fill_gaps_at_five_lengths),
        cmocka_unit_test(held_out_windows_span_the_rest_and_predict_no_byte_twice),
        cmocka_unit_test(token_and_position_vectors_begin_as_random_directions),
    };
    return cmocka_run_group_tests(tests, write_text, NULL);
}

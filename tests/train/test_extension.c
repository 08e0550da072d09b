/* SPDX-License-Identifier: MIT */
/*
 * Extension: rows of longer tables by hand, SPECs of ways, and whole extended runs, tiny: an untouched model
 * reads as it did, a length by itself is what it is by itself, and the numbers are the same on any number of
 * workers.
 */
#include "train/judge/judge.h"
#include "train/model/model.h"
#include "train/run/run.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tiny_compare.h"

enum { STEPS = 4 };

static int begin(void **state)
{
    (void)state;
    tiny_write_words();
    return 0;
}

/* ---------------------------------------------------------------- rows ---------------------- */

static const pe_way *way_of(const char *family, const char *name)
{
    const int i = pe_way_find(family, name);
    assert_true(i >= 0);
    return &pe_ways[i];
}

/* Cell o of 8 reads a table of 4 at (o + 1/2)/2 - 1/2: 0 (cut at the border), 1/4, 3/4, 5/4 ... */
static void interpolated_rows_lie_between_their_neighbours(void **state)
{
    const float table[4][2] = {{0, 0}, {4, -8}, {0, 8}, {2, 4}};
    const float want[8][2]  = {{0, 0}, {1, -2}, {3, -6}, {3, -4}, {1, 4}, {0.5F, 7}, {1.5F, 5}, {2, 4}};
    float       rows[8][2];
    (void)state;
    assert_int_equal(pe_way_rows(&rows[0][0], 8, way_of("learned", "interpolation"), 2, &table[0][0], 4, 2,
                                 NULL),
                     POSENC_OK);
    for (int i = 0; i < 16; i++)
        assert_true(fabsf((&rows[0][0])[i] - (&want[0][0])[i]) < 1e-6F);
}

/* Row s = p_low + 2/3 (p_high - p_0) with alpha 0.4 and the digits of s to base 4. */
static void hierarchical_rows_have_a_row_for_each_digit(void **state)
{
    const float table[4] = {1, 4, -2, 7};
    const float want[16] = {1, 4, -2, 7, 3, 6, 0, 9, -1, 2, -4, 5, 5, 8, 2, 11};
    float       rows[16];
    (void)state;
    assert_int_equal(pe_way_rows(rows, 16, way_of("learned", "hierarchical"), 4, table, 4, 1, NULL),
                     POSENC_OK);
    for (int i = 0; i < 16; i++)
        assert_true(fabsf(rows[i] - want[i]) < 1e-5F);
}

static void a_way_is_a_spec_with_factor_and_length(void **state)
{
    const posenc_dims dims = {
        .B = 1, .H = 4, .G = 4, .Lq = 64, .Lk = 64, .D = 16, .Dv = 16, .d_model = 64, .L = 64};
    static const struct {
        const char *family, *way, *part;
        int64_t     factor;
    } rows[] = {{"rope", "linear", "schedule=linear factor=4", 4},
                {"rope", "ntk", "schedule=ntk alpha=8", 8},
                {"rope", "dynamic", "schedule=dynamic factor=2 max_length=64", 2},
                {"rope", "yarn", "schedule=yarn factor=16 original_length=64", 16},
                {"rope", "base", "base=640000", 8},
                {"learned", "interpolation", "rows=1024", 2}};
    char spec[PE_LONGEST_SPEC];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(pe_way_spec(spec, way_of(rows[i].family, rows[i].way), rows[i].factor, &dims, NULL),
                         POSENC_OK);
        if (!strstr(spec, rows[i].part))
            fail_msg("%s is not in %s", rows[i].part, spec);
    }
}

/* ---------------------------------------------------------------- whole runs ---------------- */

static pe_compare_config extended(const char *how)
{
    pe_compare_config config = tiny_compare("rope,learned");
    config.preset.tune_steps = STEPS;
    config.preset.windows    = 8;
    config.extension         = how;
    return config;
}

static const pe_outcome *outcome_of(const pe_compare *c, const char *label)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->outcomes[i].label, label))
            return &c->outcomes[i];
    return NULL;
}

static void every_way_is_read_and_those_that_were_asked_for_are_tuned(void **state)
{
    const pe_compare_config config = extended("brief");
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    assert_int_equal(c->extension->count, PE_FAMILIES);
    for (int w = 0; w < PE_WAYS; w++)
        for (int f = 0; f < PE_FACTORS; f++) {
            assert_int_equal(pe_losses_has_extended(c->extension, (pe_losses_reading){w, f, PE_UNTUNED}),
                             !pe_ways[w].stays_at_L);
            assert_int_equal(pe_losses_has_extended(c->extension, (pe_losses_reading){w, f, PE_TUNED}),
                             pe_ways[w].stays_at_L || (f == 0 && !pe_ways[w].is_untuned));
        }
    pe_compare_free(c);
}

/* The families are trained as their encodings are: the same bits. What is untouched reads the windows that
   both have, the first of all, alike; other frequencies do not; up to L dynamic ones are the trained ones,
   and beyond are not. */
static void a_model_that_is_left_alone_reads_as_it_did(void **state)
{
    const pe_compare_config config = extended("brief");
    pe_compare             *c      = tiny_trained(&config, NULL);
    const pe_extension     *x      = c->extension;
    (void)state;
    for (int f = 0; f < x->count; f++) {
        const pe_outcome *own = outcome_of(c, x->plans[f].family);
        const size_t      n   = (size_t)(own->config.windows * PE_REACH * own->config.L) * sizeof(float);
        double            mean[8];
        assert_memory_equal(own->runs[0].result.window_loss, x->outcomes[f].runs[0].result.window_loss, n);
        for (int b = 0; b < PE_BUCKETS; b++) {
            pe_stats_bucket_means(mean, own->runs[0].result.window_loss, 1, PE_REACH * own->config.L,
                                  own->config.L, b);
            const double here = (double)x->outcomes[f]
                                    .runs[0]
                                    .result.followup[pe_extension_offset(&x->plans[f], 0, 0, PE_UNTUNED, b)];
            if (b < PE_AT_2L || f == 0) /* the table of the family is longer, its rows from 8 L on new */
                assert_true(fabs(here - mean[0]) < 2e-5);
        }
    }
    const int none = pe_way_find("rope", "none"), dynamic = pe_way_find("rope", "dynamic");
    assert_true(fabs(pe_losses_extended(x, (pe_losses_reading){none, 0, PE_UNTUNED}, PE_AT_L) -
                     pe_losses_extended(x, (pe_losses_reading){dynamic, 0, PE_UNTUNED}, PE_AT_L)) < 2e-5);
    for (int w = 0; w < PE_WAYS; w++)
        if (w != none && !pe_ways[w].stays_at_L && !strcmp(pe_ways[w].family, "rope"))
            assert_true(pe_losses_extended(x, (pe_losses_reading){w, 0, PE_UNTUNED}, PE_AT_4L) !=
                        pe_losses_extended(x, (pe_losses_reading){none, 0, PE_UNTUNED}, PE_AT_4L));
    pe_compare_free(c);
}

/* One tuning at L, whatever f. The control goes on as it was trained; without the rotation, and with normed
   queries and keys, every length is another one's. */
static void a_dropped_rotation_is_tuned_once_beside_its_control(void **state)
{
    const pe_compare_config config  = extended("full");
    pe_compare             *c       = tiny_trained(&config, NULL);
    const pe_extension     *x       = c->extension;
    const int               dropped = pe_way_find("rope", "drope"), kept = pe_way_find("rope", "kept");
    (void)state;
    for (int b = 0; b < PE_FAR_BUCKETS; b++) {
        const double loss = pe_losses_extended(x, (pe_losses_reading){dropped, 0, PE_TUNED}, b);
        assert_true(loss != pe_losses_extended(x, (pe_losses_reading){kept, 0, PE_TUNED}, b));
        assert_true(loss != pe_losses_extended(x, pe_losses_nothing_done(dropped), b));
        for (int f = 1; f < PE_FACTORS; f++)
            assert_true(pe_losses_extended(x, (pe_losses_reading){dropped, f, PE_TUNED}, b) == loss);
    }
    assert_true(pe_losses_extended(x, (pe_losses_reading){kept, 0, PE_TUNED}, PE_AT_L) <
                pe_losses_extended(x, pe_losses_nothing_done(kept), PE_AT_L));
    pe_compare_free(c);
}

static void extended_models_have_the_same_numbers_on_two_workers(void **state)
{
    pe_compare_config config = extended("full");
    (void)state;
    config.preset.seeds = 2;
    json_t *one         = tiny_numbers(&config);
    config.workers      = 2;
    json_t *two         = tiny_numbers(&config);
    assert_true(json_equal(one, two));
    const json_t *ways = json_object_get(json_object_get(one, "extension"), "schedules");
    assert_int_equal(json_array_size(ways), PE_WAYS);
    for (int w = 0; w < PE_WAYS; w++)
        for (int f = 0; f < PE_FACTORS; f++) {
            const json_t *at =
                json_array_get(json_object_get(json_array_get(ways, (size_t)w), "factors"), (size_t)f);
            assert_int_equal(json_array_size(json_object_get(at, "untuned")),
                             pe_ways[w].stays_at_L ? 0 : PE_FAR_BUCKETS);
            assert_int_equal(json_array_size(json_object_get(at, "tuned")),
                             pe_ways[w].is_untuned ? 0 : PE_FAR_BUCKETS);
        }
    json_decref(one);
    json_decref(two);
}

/* The same units, each of which has the run stopped behind it. */
static pe_run_followup real;

static posenc_status one_unit(const void *self, const pe_run_config *config, pe_model *trained, int64_t unit,
                              pe_run_progress *progress, float *numbers, int *cancelled, posenc_error *err)
{
    const posenc_status status = real.unit(self, config, trained, unit, progress, numbers, cancelled, err);
    atomic_store(&progress->cancel, 1);
    return status;
}

static void a_run_that_is_stopped_in_every_unit_ends_with_the_same_numbers(void **state)
{
    const pe_compare_config config = extended("brief");
    pe_compare             *c      = tiny_trained(&config, NULL);
    static const char       path[] = "/tmp/posenc-extension-checkpoint.npz";
    pe_run_config           run    = c->extension->outcomes[0].config;
    const float            *whole  = c->extension->outcomes[0].runs[0].result.followup;
    pe_run_result           again;
    posenc_error            err;
    int                     starts = 0, is_going_on = 1;
    real                           = *run.followup;
    const pe_run_followup by_units = {real.name, real.self, real.units, real.count,
                                      real.work, one_unit,  real.steps};
    (void)state;
    remove(path);
    run.seed       = 1;
    run.followup   = &by_units;
    run.checkpoint = path;
    for (; is_going_on; starts++) {
        pe_run_progress progress = {0};
        is_going_on              = pe_run(&run, &progress, &again, &err) != POSENC_OK;
        assert_int_equal(again.cancelled, is_going_on);
        if (!is_going_on) {
            assert_memory_equal(whole, again.followup, (size_t)real.count * sizeof(float));
            assert_int_equal(atomic_load(&progress.step), pe_run_work(&run));
        }
        pe_run_result_free(&again);
    }
    assert_true(starts > real.units / 2); /* units that are copies pass without a look at the progress */
    remove(path);
    pe_compare_free(c);
}

static void a_saved_run_names_its_followup(void **state)
{
    const pe_compare_config config = extended("brief");
    pe_compare             *c      = tiny_trained(&config, NULL);
    const pe_run_config    *run    = &c->extension->outcomes[0].config;
    char                   *who    = pe_run_identity(run);
    pe_run_file             file   = {0};
    int                     named  = 0;
    (void)state;
    assert_non_null(strstr(who, "\"followup\":"));
    pe_run_list(&file, run, &c->extension->outcomes[0].runs[0].result);
    for (int i = 0; i < file.count; i++)
        named += !strcmp(file.arrays[i].name, "followup");
    assert_int_equal(named, 1);
    free(who);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- refusals ------------------ */

static void what_cannot_be_extended_says_why(void **state)
{
    pe_compare_config config = extended("brief");
    posenc_error      err;
    pe_compare       *c;
    (void)state;
    config.text_size = 8 * TINY_LENGTH * 10 + 20; /* one window of 8 L and none of 16 L */
    assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "too short"));
    config.extension        = NULL;
    config.preset.extension = "brief";
    assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_OK);
    assert_non_null(strstr(c->extension->reason, "too short"));
    pe_compare_free(c);
    config.extension = "much";
    assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "none, brief or full"));
    config               = extended("full");
    config.bidirectional = 1;
    assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "both sides"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolated_rows_lie_between_their_neighbours),
        cmocka_unit_test(hierarchical_rows_have_a_row_for_each_digit),
        cmocka_unit_test(a_way_is_a_spec_with_factor_and_length),
        cmocka_unit_test(every_way_is_read_and_those_that_were_asked_for_are_tuned),
        cmocka_unit_test(a_model_that_is_left_alone_reads_as_it_did),
        cmocka_unit_test(a_dropped_rotation_is_tuned_once_beside_its_control),
        cmocka_unit_test(extended_models_have_the_same_numbers_on_two_workers),
        cmocka_unit_test(a_run_that_is_stopped_in_every_unit_ends_with_the_same_numbers),
        cmocka_unit_test(a_saved_run_names_its_followup),
        cmocka_unit_test(what_cannot_be_extended_says_why),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Whole comparisons, tiny: the same numbers for any number of workers, nothing accepted that cannot work, and
 * a directory that appears whole or not at all.
 */
#include "train/compare.h"
#include "train/judge/judge.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tiny_compare.h"

enum { LENGTH = TINY_LENGTH };

static char everything[1024], folder[] = "/tmp/posenc-compare-XXXXXX";

static int begin(void **state)
{
    (void)state;
    tiny_write_words();
    for (int i = 0; i < posenc_encoding_count(); i++)
        snprintf(everything + strlen(everything), sizeof everything - strlen(everything), "%s%s",
                 i ? "," : "", posenc_encoding_info_at(i)->name);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return chdir("/") || rmdir(folder);
}

static const char *first_two(void)
{
    static char list[256];
    snprintf(list, sizeof list, "%s,%s", posenc_encoding_info_at(0)->name, posenc_encoding_info_at(1)->name);
    return list;
}

/* ---------------------------------------------------------------- numbers ------------------- */

static void any_number_of_workers_gives_the_same_numbers(void **state)
{
    pe_compare_config config = tiny_compare(everything);
    (void)state;
    config.preset.seeds = 2;
    json_t *one         = tiny_numbers(&config);
    config.workers      = 2;
    json_t *two         = tiny_numbers(&config);
    assert_true(json_equal(one, two));
    assert_int_equal(json_array_size(json_object_get(one, "encodings")) +
                         json_array_size(json_object_get(one, "does_not_apply")),
                     posenc_encoding_count());
    json_decref(one);
    json_decref(two);
}

/* What row `row` of the recommendations names, and says about it. NULL: not asked. */
static void assert_recommended(const pe_compare *c, int row, const char *names, const char *confidence)
{
    pe_table t;
    assert_int_equal(pe_answer_table(c, &t, NULL), POSENC_OK);
    assert_true(row < t.row_count);
    assert_non_null(strstr(pe_table_cell(&t, row, 1), names));
    if (confidence)
        assert_string_equal(pe_table_cell(&t, row, 2), confidence);
    pe_table_free(&t);
}

static void the_table_has_a_row_per_encoding_and_the_best_first(void **state)
{
    const pe_compare_config config = tiny_compare(everything);
    pe_compare             *c      = tiny_trained(&config, NULL);
    pe_table                t;
    (void)state;
    assert_int_equal(pe_summary_table(c, &t, NULL), POSENC_OK);
    assert_int_equal(t.row_count, posenc_encoding_count());
    assert_string_equal(pe_table_cell(&t, 0, 0), c->outcomes[c->reference].label);
    for (int i = 0; i < c->count; i++)
        assert_true(c->outcomes[i].loss[PE_AT_L] >= c->outcomes[c->reference].loss[PE_AT_L]);
    pe_table_free(&t);
    assert_recommended(c, 0, c->outcomes[c->reference].label, NULL);
    pe_compare_free(c);
}

/* A star in the table, and nowhere else, where the registry says that rows end. */
static void rows_that_were_never_trained_are_marked(void **state)
{
    const pe_compare_config config = tiny_compare(everything);
    pe_compare             *c      = tiny_trained(&config, NULL);
    pe_table                t;
    (void)state;
    assert_int_equal(pe_summary_table(c, &t, NULL), POSENC_OK);
    for (int row = 0; row < c->count; row++) { /* below these rows stands what does not apply */
        const int ends = posenc_encoding_find(pe_table_cell(&t, row, 0))->row_limit != NULL;
        assert_int_equal(strchr(pe_table_cell(&t, row, 5), '*') != NULL, ends);
        assert_null(strchr(pe_table_cell(&t, row, 2), '*'));
    }
    pe_table_free(&t);
    pe_compare_free(c);
}

/* Check 1 is about encodings by themselves: it holds whatever the model is. */
static void assert_only_theorems_are_judged(const pe_compare *c)
{
    pe_check_result all[PE_MOST_CHECKS];
    const int       count = pe_claims_check(all, c);
    for (const pe_check_result *r = all; r < all + count; r++)
        if (r->verdict != (r->number == 1 ? PE_PASSED : PE_NOT_APPLICABLE))
            fail_msg("%d, %s: %s, found %s", r->number, r->claim, pe_claims_verdict_name(r->verdict),
                     r->found);
}

static void checks_do_not_judge_what_they_were_not_made_for(void **state)
{
    const pe_compare_config config = tiny_compare(everything);
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    assert_only_theorems_are_judged(c);
    pe_compare_free(c);
}

/* Two outcomes by hand: a is near `loss`, b is a + `shift` in every window, and +- `noise` from window to
   window. */
static void set_outcomes_apart_at(pe_compare *c, double loss, double shift, double noise)
{
    const int64_t windows = c->windows;
    for (int b = 0; b < PE_BUCKETS; b++) {
        pe_outcome *one = &c->outcomes[0], *other = &c->outcomes[1];
        for (int64_t i = 0; i < c->config.preset.seeds * windows; i++) {
            one->window_means[b][i]   = loss + 0.01 * (double)(i % windows);
            other->window_means[b][i] = one->window_means[b][i] + shift + (i % 2 ? noise : -noise);
        }
        one->loss[b]   = pe_stats_mean(one->window_means[b], windows);
        other->loss[b] = pe_stats_mean(other->window_means[b], windows);
    }
    assert_int_equal(pe_losses_rank(c, NULL), POSENC_OK);
}

static void set_outcomes_apart(pe_compare *c, double shift, double noise)
{
    set_outcomes_apart_at(c, 2, shift, noise);
}

static void a_winner_is_named_only_where_the_data_show_one(void **state)
{
    const pe_compare_config config = tiny_compare(first_two());
    pe_compare             *c      = tiny_trained(&config, NULL);
    const char             *best   = c->outcomes[0].label;
    char                    names[2 * PE_LONGEST_SPEC + 64];
    (void)state;
    snprintf(names, sizeof names, "%s, %s", best, c->outcomes[1].label);
    set_outcomes_apart(c, 0.001, 0.02);
    assert_recommended(c, 0, names, "a tie");
    assert_true(c->outcomes[0].rank[PE_AT_L] == 1 && c->outcomes[1].rank[PE_AT_L] == 1);
    set_outcomes_apart(c, 0.3, 0.02);
    assert_recommended(c, 0, best, "settled");
    assert_recommended(c, 1, best, "settled");
    assert_true(c->outcomes[0].rank[PE_AT_L] == 1 && c->outcomes[1].rank[PE_AT_L] == 2);
    pe_compare_free(c);
}

/* What can be told is said, in nats, and how many seeds would tell the rest. */
static void the_resolution_and_the_seeds_that_would_settle_it_are_numbers(void **state)
{
    const pe_compare_config config = tiny_compare(first_two());
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    set_outcomes_apart(c, 0.3, 0.02);
    const pe_interval d = pe_losses_difference(c, 1, 0, PE_AT_L);
    assert_true(fabs(c->resolution[PE_AT_L] - (d.high - d.low) / 2) < 1e-12);
    assert_int_equal(c->seeds_to_settle[PE_AT_L], 0);
    assert_true(pe_losses_differ(c, 0, 1, PE_AT_L) && pe_losses_differ(c, 1, 0, PE_AT_L));
    set_outcomes_apart(c, 0.006, 0.002);
    assert_true(c->seeds_to_settle[PE_AT_L] > 1 && c->seeds_to_settle[PE_AT_L] <= PE_MOST_SEEDS);
    set_outcomes_apart(c, 0.0001, 0.02);
    assert_int_equal(c->seeds_to_settle[PE_AT_L], PE_MOST_SEEDS + 1);
    c->resolution[PE_AT_L] = 0.5; /* whatever the interval says */
    set_outcomes_apart(c, 0.3, 0.02);
    assert_true(c->resolution[PE_AT_L] < 0.5);
    c->resolution[PE_AT_L] = 0.5;
    assert_false(pe_losses_differ(c, 0, 1, PE_AT_L));
    pe_compare_free(c);
}

/* A loss above the entropy of the held-out bytes: no class, and best at nothing. */
static void a_model_that_has_not_learned_is_best_at_nothing(void **state)
{
    const pe_compare_config config = tiny_compare(first_two());
    pe_compare             *c      = tiny_trained(&config, NULL);
    (void)state;
    set_outcomes_apart(c, 0.3, 0.02);
    assert_true(c->entropy > 2.5 && c->entropy < log(26));
    assert_true(c->outcomes[0].has_learned && strcmp(c->outcomes[0].verdict, "not learned") != 0);
    set_outcomes_apart_at(c, c->entropy, 0.3, 0.02);
    assert_false(c->outcomes[0].has_learned || c->outcomes[1].has_learned);
    assert_string_equal(c->outcomes[0].verdict, "not learned");
    assert_recommended(c, 0, "-", NULL);
    pe_compare_free(c);
}

/* Three seeds of which one says the contrary of the others: no winner, however many windows agree. */
static void seeds_that_disagree_name_no_winner(void **state)
{
    pe_compare_config config = tiny_compare(first_two());
    (void)state;
    config.preset.seeds = 3;
    pe_compare *c       = tiny_trained(&config, NULL);
    set_outcomes_apart(c, 0.03, 0.001);
    assert_int_equal(c->outcomes[1].rank[PE_AT_L], 2);
    for (int b = 0; b < PE_BUCKETS; b++)
        for (int64_t w = 0; w < c->windows; w++) {
            c->outcomes[1].window_means[b][w] = c->outcomes[0].window_means[b][w] - 0.01;
        }
    assert_int_equal(pe_losses_rank(c, NULL), POSENC_OK);
    assert_int_equal(c->outcomes[1].rank[PE_AT_L], 1);
    assert_recommended(c, 0, ", ", "a tie");
    pe_compare_free(c);
}

/* Far behind, but by seeds that differ so much that nothing is certain: not among the best, and not ruled out
   either. */
static void what_a_wide_interval_leaves_open_is_said_apart(void **state)
{
    enum { COUNT = 5 };
    pe_compare_config config = tiny_compare("nope,rope,t5,kerple_log,alibi");
    (void)state;
    config.preset.seeds = 3;
    pe_compare *c       = tiny_trained(&config, NULL);
    for (int b = 0; b < PE_BUCKETS; b++)
        for (int i = 0; i < COUNT; i++) {
            pe_outcome *o = &c->outcomes[i];
            for (int64_t w = 0; w < 3 * c->windows; w++)
                o->window_means[b][w] = i < COUNT - 1 ? 2 + 0.1 * i : 1.9 + 0.4 * (double)(w / c->windows);
            o->loss[b] = pe_stats_mean(o->window_means[b], 3 * c->windows);
        }
    assert_int_equal(pe_losses_rank(c, NULL), POSENC_OK);
    assert_int_equal(c->outcomes[1].rank[PE_AT_L], 2);
    assert_recommended(c, 0, "nope", "open");
    pe_compare_free(c);
}

/* By 0.1 of the answers behind, but not told apart: the row names it and does not only say "open". */
static void an_exact_distance_that_is_open_names_what_is_not_excluded(void **state)
{
    static const double right[] = {0.85, 0.95, 0.2};
    pe_compare_config   config  = tiny_compare("nope,rope,t5");
    pe_table            t;
    int                 found = 0;
    (void)state;
    config.tasks              = "shift";
    config.task_steps         = 1;
    config.preset.task_layers = 1;
    config.preset.task_batch  = 4;
    config.preset.sequences   = 10;
    config.preset.longest     = PE_TASK_2;
    pe_compare *c             = tiny_trained(&config, NULL);
    for (int i = 0; i < 3; i++) {
        pe_suite_cell(c->suite, 0, i)->beyond = right[i];
        pe_suite_cell(c->suite, 0, i)->rank   = i == 2 ? 3 : 1;
    }
    assert_int_equal(pe_answer_table(c, &t, NULL), POSENC_OK);
    for (int row = 0; row < t.row_count; row++)
        if (strstr(pe_table_cell(&t, row, 0), "exact distance")) {
            assert_string_equal(pe_table_cell(&t, row, 1), "rope");
            assert_string_equal(pe_table_cell(&t, row, 2), "open");
            assert_non_null(strstr(pe_table_cell(&t, row, 3), "(guessing: 0.06); not excluded: nope"));
            found++;
        }
    assert_int_equal(found, 1);
    pe_table_free(&t);
    pe_compare_free(c);
}

/* What is cheap and no better than nothing is not recommended. */
static void the_cheapest_to_decode_is_better_than_no_encoding(void **state)
{
    static const double     loss[] = {3, 1, 2, 3.5};
    const pe_compare_config config = tiny_compare("nope,transformer_xl,t5,learned");
    pe_compare             *c      = tiny_trained(&config, NULL);
    pe_table                t;
    int                     found = 0;
    (void)state;
    for (int b = 0; b < PE_BUCKETS; b++)
        for (int i = 0; i < 4; i++) {
            for (int64_t w = 0; w < c->windows; w++)
                c->outcomes[i].window_means[b][w] = loss[i];
            c->outcomes[i].loss[b] = loss[i];
        }
    assert_int_equal(pe_losses_rank(c, NULL), POSENC_OK);
    assert_int_equal(pe_answer_table(c, &t, NULL), POSENC_OK);
    for (int row = 0; row < t.row_count; row++)
        if (!strncmp(pe_table_cell(&t, row, 0), "cheapest", 8)) {
            assert_string_equal(pe_table_cell(&t, row, 1), "t5");
            assert_string_equal(pe_table_cell(&t, row, 2), "settled");
            found++;
        }
    assert_int_equal(found, 1);
    pe_table_free(&t);
    pe_compare_free(c);
}

static void without_nope_nothing_is_said_to_be_better_than_no_encoding(void **state)
{
    const pe_compare_config config = tiny_compare("rope,t5");
    pe_compare             *c      = tiny_trained(&config, NULL);
    pe_table                t;
    int                     found = 0;
    (void)state;
    for (int i = 0; i < c->count; i++)
        c->outcomes[i].has_learned = 1;
    assert_int_equal(pe_answer_table(c, &t, NULL), POSENC_OK);
    for (int row = 0; row < t.row_count; row++)
        found += !strcmp(pe_table_cell(&t, row, 0), "cheapest to decode, loss at L within 2 %");
    assert_int_equal(found, 1);
    pe_table_free(&t);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- objectives ---------------- */

static const char *find_causal_only(void)
{
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (posenc_encoding_info_at(i)->causal_only)
            return posenc_encoding_info_at(i)->name;
    return NULL;
}

static void bidirectional_comparisons_take_all_but_what_is_causal(void **state)
{
    pe_compare_config config = tiny_compare(everything);
    (void)state;
    config.bidirectional = 1;
    pe_compare *c        = tiny_trained(&config, NULL);
    assert_int_equal(c->count + c->absent_count, posenc_encoding_count());
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o = &c->outcomes[i];
        assert_false(posenc_encoding_find(o->label)->causal_only);
        assert_true(o->is_complete && !o->diverged && o->loss[PE_AT_HALF] > 0 && o->loss[PE_AT_8L] > 0);
    }
    assert_only_theorems_are_judged(c);
    pe_compare_free(c);
}

/* In the last row of the table, with dashes, and below it with the reason; in the JSON too. */
static void what_does_not_apply_is_named_with_the_reason(void **state)
{
    char              list[128];
    const char       *name   = find_causal_only();
    pe_compare_config config = tiny_compare(list);
    pe_table          t;
    char             *json;
    (void)state;
    if (!name)
        skip();
    snprintf(list, sizeof list, "%s,%s", name, posenc_encoding_info_at(0)->name);
    config.bidirectional = 1;
    pe_compare *c        = tiny_trained(&config, NULL);
    assert_int_equal(c->count, 1);
    assert_int_equal(pe_summary_table(c, &t, NULL), POSENC_OK);
    assert_int_equal(t.row_count, 2);
    assert_string_equal(pe_table_cell(&t, 1, 0), name);
    assert_string_equal(pe_table_cell(&t, 1, 2), "-");
    assert_non_null(strstr(t.notes, "does not apply: "));
    assert_non_null(strstr(t.notes, "Objective: masked bytes"));
    pe_table_free(&t);
    assert_int_equal(pe_results_json(c, &json, NULL), POSENC_OK);
    assert_non_null(strstr(json, "\"objective\": \"masked bytes\""));
    assert_non_null(strstr(json, "\"reason\": "));
    free(json);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- how rows enter ------------ */

/* The first encoding at the input (1) or elsewhere (0). */
static const char *name_at_input(int at_input)
{
    int i = 0;
    while ((posenc_encoding_info_at(i)->place == POSENC_PLACE_INPUT) != at_input)
        i++;
    return posenc_encoding_info_at(i)->name;
}

static void both_ways_of_combining_stand_side_by_side(void **state)
{
    char              list[128], joint[128], found[64];
    pe_compare_config config = tiny_compare(list);
    pe_table          t;
    int               is_plain;
    (void)state;
    snprintf(list, sizeof list, "%s,%s", name_at_input(1), name_at_input(0));
    snprintf(joint, sizeof joint, "%s[combine=concat]", name_at_input(1));
    config.combine = "add,concat";
    pe_compare *c  = tiny_trained(&config, NULL);
    assert_int_equal(c->count, 3);
    assert_string_equal(c->outcomes[0].label, name_at_input(1));
    assert_string_equal(c->outcomes[1].label, joint);
    assert_string_equal(c->outcomes[2].label, name_at_input(0));
    assert_int_equal(c->outcomes[1].runs[0].result.parameters - c->outcomes[0].runs[0].result.parameters,
                     2 * 16 * 16);
    assert_true(c->outcomes[0].is_plain && !c->outcomes[1].is_plain);
    assert_int_equal(pe_outcome_added(c, 1), 0);
    assert_int_equal(pe_outcome_added(c, 0), -1);
    const pe_interval d = pe_losses_difference(c, 1, 0, PE_AT_L);
    snprintf(found, sizeof found, "%+.3f (%+.3f to %+.3f)", d.value, d.low, d.high);
    assert_int_equal(pe_summary_entries(c, &t, &is_plain, NULL), POSENC_OK);
    assert_int_equal(t.row_count, 2);
    assert_false(is_plain);
    for (int row = 0; row < 2; row++) { /* the difference stands in the row of the one that is concatenated */
        const int is_joint = !strcmp(pe_table_cell(&t, row, 0), joint);
        assert_string_equal(pe_table_cell(&t, row, 1), is_joint ? "concat" : "add");
        assert_string_equal(pe_table_cell(&t, row, 5), is_joint ? found : "-");
    }
    pe_table_free(&t);
    pe_compare_free(c);
}

static const json_t *encoding_named(const json_t *json, const char *name)
{
    size_t        i;
    const json_t *one;
    json_array_foreach(json_object_get(json, "encodings"), i,
                       one) if (!strcmp(json_string_value(json_object_get(one, "encoding")),
                                        name)) return one;
    fail_msg("%s is not among the results", name);
    return NULL;
}

static double real_at(const json_t *json, const char *key)
{
    assert_true(json_is_real(json_object_get(json, key)));
    return json_real_value(json_object_get(json, key));
}

/* In the JSON: how rows enter, the two cosines, and a difference from the sum that is the difference of the
   two losses. */
static void the_results_say_how_rows_enter_and_what_it_changes(void **state)
{
    char              list[512], joint[128], blocks[128];
    const char       *name   = name_at_input(1);
    pe_compare_config config = tiny_compare(list);
    (void)state;
    snprintf(joint, sizeof joint, "%s[combine=concat]", name);
    snprintf(blocks, sizeof blocks, "%s[inject=blocks]", name);
    snprintf(list, sizeof list, "%s,%s,%s,%s", blocks, joint, name, name_at_input(0));
    json_t       *json = tiny_numbers(&config);
    const json_t *sum = encoding_named(json, name), *joined = encoding_named(json, joint),
                 *entry = json_object_get(joined, "entry");
    assert_true(json_is_null(json_object_get(encoding_named(json, name_at_input(0)), "entry")));
    assert_true(json_is_null(json_object_get(sum, "to_sum")));
    assert_string_equal(json_string_value(json_object_get(entry, "combine")), "concat");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(encoding_named(json, blocks), "entry"), "inject")),
        "blocks");
    const json_t *cosine = json_object_get(entry, "token_position_cosine");
    assert_true(real_at(cosine, "before") > 0 && real_at(cosine, "after") > 0);
    assert_true(real_at(cosine, "random") > 0.19 && real_at(cosine, "random") < 0.21); /* of width 16 */
    for (size_t b = 0; b < PE_BUCKETS; b++) {
        const double a     = real_at(json_array_get(json_object_get(joined, "buckets"), b), "loss"),
                     other = real_at(json_array_get(json_object_get(sum, "buckets"), b), "loss");
        const double d     = real_at(json_array_get(json_object_get(joined, "to_sum"), b), "value");
        assert_true(d != 0 && fabs(d - (a - other)) < 1e-6);
    }
    json_decref(json);
}

static void every_way_gives_the_same_numbers_for_any_number_of_workers(void **state)
{
    char              list[512];
    const char       *name   = name_at_input(1);
    pe_compare_config config = tiny_compare(list);
    (void)state;
    snprintf(list, sizeof list, "%s,%s[dim=32:inject=blocks],%s[inject=blocks]", name, name, name);
    config.combine      = "add,concat";
    config.preset.seeds = 2;
    json_t *one         = tiny_numbers(&config);
    config.workers      = 2;
    json_t *two         = tiny_numbers(&config);
    assert_int_equal(json_array_size(json_object_get(one, "encodings")), 4);
    assert_true(json_equal(one, two));
    json_decref(one);
    json_decref(two);
}

/* The room of one encoding has states; the comparison gives it as many as the model has blocks. */
static void a_path_per_block_is_given_to_rows_that_enter_blocks(void **state)
{
    pe_compare_config config =
        tiny_compare("floater,floater[inject=blocks],floater[states=1:substeps=1:inject=blocks]");
    (void)state;
    config.preset.steps = 2;
    pe_compare *c       = tiny_trained(&config, NULL);
    assert_int_equal(c->count, 3);
    assert_null(strstr(posenc_encoding_spec(c->outcomes[0].e), "states"));
    assert_non_null(strstr(posenc_encoding_spec(c->outcomes[1].e), "states=2"));
    assert_null(strstr(posenc_encoding_spec(c->outcomes[2].e), "states=2"));
    /* one start more, and the dynamics once */
    assert_int_equal(c->outcomes[1].runs[0].result.parameters - c->outcomes[0].runs[0].result.parameters, 16);
    pe_compare_free(c);
}

/* Causal or not: the mask symbol is a word too. */
static void rows_of_words_are_compared_with_both_objectives(void **state)
{
    pe_compare_config config = tiny_compare("complex_order,nope");
    (void)state;
    config.preset.steps = 3;
    for (int both = 0; both < 2; both++) {
        config.bidirectional = both;
        pe_compare *c        = tiny_trained(&config, NULL);
        assert_int_equal(c->count, 2);
        assert_int_equal(strstr(posenc_encoding_spec(c->outcomes[0].e), "vocab=257") != NULL, both);
        assert_true(c->outcomes[0].is_complete && isnan(c->outcomes[0].cosine_after));
        pe_compare_free(c);
    }
}

/* ---------------------------------------------------------------- tasks --------------------- */

static pe_compare_config tiny_with_tasks(const char *encodings, const char *tasks)
{
    pe_compare_config config  = tiny_compare(encodings);
    config.tasks              = tasks;
    config.task_steps         = 6;
    config.preset.steps       = 3;
    config.preset.task_layers = 1;
    config.preset.task_batch  = 4;
    config.preset.sequences   = 6;
    config.preset.longest     = PE_TASK_4;
    return config;
}

static void tasks_give_the_same_numbers_for_any_number_of_workers(void **state)
{
    pe_compare_config config = tiny_with_tasks("nope,rope,shaw,xpos,swin", "posid,needle,sort,count,grid");
    (void)state;
    config.preset.seeds = 2;
    json_t *one         = tiny_numbers(&config);
    config.workers      = 2;
    json_t *two         = tiny_numbers(&config);
    assert_true(json_equal(one, two));
    assert_int_equal(json_array_size(json_object_get(one, "tasks")), 5);
    json_decref(one);
    json_decref(two);
}

/* The runs on the text are what they are without tasks, to the last bit. */
static void tasks_change_nothing_about_the_text(void **state)
{
    pe_compare_config config = tiny_with_tasks("nope,rope,shaw", "order");
    (void)state;
    json_t *with    = tiny_numbers(&config);
    config.tasks    = "none";
    json_t *without = tiny_numbers(&config);
    assert_int_equal(json_array_size(json_object_get(without, "tasks")), 0);
    assert_true(json_equal(json_object_get(with, "encodings"), json_object_get(without, "encodings")));
    assert_true(
        json_equal(json_object_get(with, "recommendations"), json_object_get(without, "recommendations")));
    json_decref(with);
    json_decref(without);
}

static double value_of(const json_t *length, const char *key)
{
    const json_t *rate = json_object_get(length, key);
    assert_true(real_at(rate, "low") <= real_at(rate, "value") &&
                real_at(rate, "value") <= real_at(rate, "high"));
    return real_at(rate, "value");
}

/* Task, encoding, length: rates and losses, or the reason. */
static void the_results_hold_every_encoding_on_every_task_at_every_length(void **state)
{
    pe_compare_config config = tiny_with_tasks("nope,xpos", "order,shift");
    (void)state;
    config.preset.seeds = 2;
    json_t       *json  = tiny_numbers(&config);
    const json_t *tasks = json_object_get(json, "tasks"), *order = json_array_get(tasks, 0), *cell, *length;
    size_t        i, k;
    assert_string_equal(json_string_value(json_object_get(order, "task")), "order");
    assert_string_equal(json_string_value(json_object_get(order, "attention")), "full");
    assert_true(real_at(order, "chance") == 0.5);
    const json_t *absent = json_array_get(json_object_get(order, "encodings"), 1);
    assert_string_equal(json_string_value(json_object_get(absent, "encoding")), "xpos");
    assert_non_null(
        strstr(json_string_value(json_object_get(absent, "does_not_apply")), "only with a causal mask"));
    json_array_foreach(json_object_get(json_array_get(tasks, 1), "encodings"), i, cell)
    {
        const json_t *lengths = json_object_get(cell, "lengths");
        double        beyond  = 0;
        assert_int_equal(json_array_size(lengths), 5);
        json_array_foreach(lengths, k, length)
        {
            const json_t *seeds = json_object_get(length, "accuracy_by_seed");
            const double  value = value_of(length, "accuracy");
            assert_true(value_of(length, "exact_match") <= value && real_at(length, "loss") > 0);
            assert_true(fabs(json_real_value(json_array_get(seeds, 0)) +
                             json_real_value(json_array_get(seeds, 1)) - 2 * value) < 1e-8);
            beyond += k > 1 ? value / 3 : 0;
        }
        assert_true(fabs(real_at(cell, "beyond_L") - beyond) < 1e-8);
    }
    assert_int_equal(i, 2);
    json_decref(json);
}

static void an_unknown_task_is_refused_before_any_work(void **state)
{
    pe_compare             *c;
    posenc_error            err    = {0};
    const pe_compare_config config = tiny_with_tasks("nope", "order,chess");
    (void)state;
    assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_ERROR_ARGUMENT);
    assert_null(c);
    assert_non_null(strstr(err.message, "chess"));
}

/* ---------------------------------------------------------------- other scripts ------------- */

/* Lines of our own making: three bytes a character, and the bytes are learned like any others. */
static const char *const chinese[] = {"春天的早晨，河边的柳树绿了。", "孩子们在路上唱歌，小鸟在树上听。",
                                      "老人坐在门前，慢慢地喝一杯茶。", "风从山上来，带着花的香气。",
                                      "晚上月亮升起，照在安静的水面上。"};

static unsigned char chinese_text[TINY_BYTES];

static void write_chinese(void)
{
    size_t used = 0;
    for (uint64_t i = 0; used < TINY_BYTES; i++) {
        const char *line = chinese[(size_t)(5 * posenc_random_uniform(4, "lines", i))];
        for (; *line && used < TINY_BYTES; line++)
            chinese_text[used++] = (unsigned char)*line;
    }
}

/* The second and third bytes of a character follow from few possible ones: far below ln 256 = 5.5 after 150
   steps. */
static void chinese_is_learned_as_bytes(void **state)
{
    pe_compare_config config = tiny_compare("nope,rope,learned");
    (void)state;
    write_chinese();
    config.text         = chinese_text;
    config.text_name    = "春天.txt";
    config.preset.steps = 150;
    config.preset.batch = 8;
    pe_compare *c       = tiny_trained(&config, NULL);
    char       *json;
    for (int i = 0; i < c->count; i++)
        if (!(c->outcomes[i].loss[PE_AT_L] < 4))
            fail_msg("%s: %.3f nats per byte", c->outcomes[i].label, c->outcomes[i].loss[PE_AT_L]);
    assert_int_equal(pe_results_json(c, &json, NULL), POSENC_OK);
    assert_non_null(strstr(json, "春天.txt"));
    free(json);
    pe_compare_free(c);
}

static void chinese_is_learned_with_hidden_bytes_too(void **state)
{
    pe_compare_config config = tiny_compare("nope,t5");
    (void)state;
    write_chinese();
    config.text          = chinese_text;
    config.bidirectional = 1;
    config.preset.steps  = 150;
    config.preset.batch  = 8;
    pe_compare *c        = tiny_trained(&config, NULL);
    for (int i = 0; i < c->count; i++)
        assert_true(c->outcomes[i].loss[PE_AT_L] < 4);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- interruption -------------- */

typedef struct patience {
    int finished, stops_after;
} patience;

static int is_interrupted(void *self)
{
    const patience *p = self;
    return p->finished >= p->stops_after;
}

static void count_finished(void *self, const pe_compare_run *run, const pe_compare_state *state)
{
    patience *p = self;
    p->finished++;
    assert_true(run->loss_at_L > 0 && state->finished <= state->runs);
    assert_int_equal(state->finished, p->finished);
}

/* Runs of one step end several between two looks of the watcher, which comes ten times a second. */
static void finished_runs_are_counted_one_by_one(void **state)
{
    pe_compare_config      config = tiny_compare(everything);
    patience               p      = {.stops_after = 1000};
    const pe_compare_watch watch  = {.self = &p, .interrupted = is_interrupted, .finished = count_finished};
    pe_compare            *c;
    int                    interrupted;
    (void)state;
    config.preset.steps = 1;
    assert_int_equal(pe_compare_create(&c, &config, NULL), POSENC_OK);
    assert_int_equal(pe_compare_train(c, &watch, &interrupted, NULL), POSENC_OK);
    assert_int_equal(p.finished, c->count * config.preset.seeds);
    pe_compare_free(c);
}

static void an_interruption_keeps_what_is_finished(void **state)
{
    pe_compare_config      config = tiny_compare(everything);
    patience               p      = {.stops_after = 1};
    const pe_compare_watch watch  = {.self = &p, .interrupted = is_interrupted, .finished = count_finished};
    pe_compare            *c;
    int                    interrupted;
    (void)state;
    config.preset.steps = 2000; /* long enough that the watcher comes in between */
    assert_int_equal(pe_compare_create(&c, &config, NULL), POSENC_OK);
    assert_int_equal(pe_compare_train(c, &watch, &interrupted, NULL), POSENC_OK);
    assert_true(interrupted);
    const pe_compare_words says = pe_compare_says(c);
    assert_true(says.finished >= 1 && says.finished < c->count);
    assert_int_equal(says.runs, c->count * config.preset.seeds);
    assert_int_equal(says.missing, says.runs - p.finished);
    pe_compare_free(c);
}

/* ---------------------------------------------------------------- refusals ------------------ */

static void refuse(const pe_compare_config *config, posenc_status status, const char *word)
{
    pe_compare  *c;
    posenc_error err = {0};
    assert_int_equal(pe_compare_create(&c, config, &err), status);
    assert_null(c);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" does not say \"%s\"", err.message, word);
}

static void what_cannot_work_is_refused_before_any_work(void **state)
{
    char              twice[128];
    pe_compare_config config = tiny_compare(first_two());
    (void)state;
    config.preset.encodings = "no_such_encoding";
    refuse(&config, POSENC_ERROR_SETTING, "no_such_encoding");
    snprintf(twice, sizeof twice, "%s,%s", posenc_encoding_info_at(0)->name,
             posenc_encoding_info_at(0)->name);
    config.preset.encodings = twice;
    refuse(&config, POSENC_ERROR_ARGUMENT, "once");
    snprintf(twice, sizeof twice, "%s,%s[combine=add]", name_at_input(1), name_at_input(1));
    refuse(&config, POSENC_ERROR_ARGUMENT, "once");
    config.preset.encodings = name_at_input(0);
    config.combine          = "add,concat";
    refuse(&config, POSENC_ERROR_ARGUMENT, "applies to none of the encodings");
    config.combine = "sum";
    refuse(&config, POSENC_ERROR_ARGUMENT, "\"sum\"");
    config.combine = NULL;
    if (find_causal_only()) { /* alone it is an error */
        config.bidirectional    = 1;
        config.preset.encodings = find_causal_only();
        refuse(&config, POSENC_ERROR_UNSUPPORTED, "causal mask");
    }
    config              = tiny_compare(first_two());
    config.preset.steps = 0;
    refuse(&config, POSENC_ERROR_ARGUMENT, "steps");
    config           = tiny_compare(first_two());
    config.text_size = 10 * (8 * LENGTH + 1) - 1;
    refuse(&config, POSENC_ERROR_ARGUMENT, "1290 bytes");
    config.text_size++;
    pe_compare *c;
    assert_int_equal(pe_compare_create(&c, &config, NULL), POSENC_OK);
    assert_non_null(strstr(pe_compare_says(c).warning, "checks 10-13 do not apply"));
    pe_compare_free(c);
}

static void a_directory_that_is_not_ours_is_left_alone(void **state)
{
    pe_compare_config config = tiny_compare(first_two());
    (void)state;
    assert_int_equal(mkdir("theirs", 0777), 0);
    FILE *note = fopen("theirs/note", "w");
    fclose(note);
    config.directory = "theirs";
    refuse(&config, POSENC_ERROR_ARGUMENT, "note");
    config.directory = "missing/inner";
    refuse(&config, POSENC_ERROR_ARGUMENT, "missing/inner");
    config.directory = "theirs/note";
    refuse(&config, POSENC_ERROR_ARGUMENT, "theirs/note");
    config.directory = ".";
    refuse(&config, POSENC_ERROR_ARGUMENT, "name a new one with -o");
    assert_int_equal(unlink("theirs/note") | rmdir("theirs"), 0);
}

/* ---------------------------------------------------------------- the directory ------------- */

static int count_entries(const char *path)
{
    int  count = 0;
    DIR *dir   = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static char *read_text(const char *path)
{
    char *text = calloc(1, 1 << 22);
    FILE *from = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(from);
    assert_true(fread(text, 1, (1 << 22) - 1, from) > 100);
    fclose(from);
    return text;
}

static void remove_listed(const char *path)
{
    char        name[512];
    const char *inner;
    json_t     *json, *files;
    snprintf(name, sizeof name, "%s/results.json", path);
    json  = json_load_file(name, 0, NULL);
    files = json_object_get(json, "files");
    for (size_t i = 0; i < json_array_size(files); i++) {
        inner = json_string_value(json_array_get(files, i));
        snprintf(name, sizeof name, "%s/%s", path, inner);
        assert_int_equal(unlink(name), 0); /* every file that is listed exists */
    }
    json_decref(json);
    assert_int_equal(rmdir(path), 0); /* and every file that exists is listed */
}

static void the_report_stands_alone_and_an_older_one_is_replaced(void **state)
{
    pe_compare_config config = tiny_with_tasks(first_two(), "shift,grid");
    (void)state;
    config.directory = "out";
    config.call      = "posenc compare '<text>'";
    pe_compare  *c   = tiny_trained(&config, NULL);
    posenc_error err;
    for (int again = 0; again < 2; again++) {
        if (pe_results_write(c, &err))
            fail_msg("%s", err.message);
        assert_int_equal(count_entries("."), 1); /* nothing lies beside it */
    }
    char *page = read_text("out/report.html");
    assert_non_null(strstr(page, "</html>"));
    assert_non_null(strstr(page, "posenc compare '&lt;text&gt;'"));
    assert_null(strstr(page, "src=\"http"));
    assert_null(strstr(page, "<link"));
    assert_null(strstr(page, "@import"));
    assert_non_null(strstr(page, "<svg"));
    assert_non_null(strstr(page, "id=entries")); /* one of the two acts at the input */
    assert_non_null(strstr(page, "id=task-shift"));
    assert_non_null(strstr(page, "style=\"background:#")); /* a cell of the heat map, with its number */
    assert_non_null(strstr(page, "does not apply: its positions form a line"));
    /* Gamma(8) / (sqrt(pi) Gamma(8.5)) */
    assert_non_null(strstr(page, "is 0.203 at this model's width of 16, and 0.035 at 512"));
    free(page);
    FILE *note = fopen("out/mine", "w");
    fclose(note);
    assert_int_equal(pe_results_write(c, &err),
                     POSENC_ERROR_FILE); /* somebody has put a file of his own there meanwhile */
    assert_int_equal(access("out/mine", F_OK) | unlink("out/mine"), 0);
    pe_compare_free(c);
    remove_listed("out");
}

/* With a word, the tests of that name alone: under ThreadSanitizer all take an hour. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers_gives_the_same_numbers),
        cmocka_unit_test(the_table_has_a_row_per_encoding_and_the_best_first),
        cmocka_unit_test(rows_that_were_never_trained_are_marked),
        cmocka_unit_test(checks_do_not_judge_what_they_were_not_made_for),
        cmocka_unit_test(a_winner_is_named_only_where_the_data_show_one),
        cmocka_unit_test(the_resolution_and_the_seeds_that_would_settle_it_are_numbers),
        cmocka_unit_test(a_model_that_has_not_learned_is_best_at_nothing),
        cmocka_unit_test(seeds_that_disagree_name_no_winner),
        cmocka_unit_test(what_a_wide_interval_leaves_open_is_said_apart),
        cmocka_unit_test(an_exact_distance_that_is_open_names_what_is_not_excluded),
        cmocka_unit_test(without_nope_nothing_is_said_to_be_better_than_no_encoding),
        cmocka_unit_test(the_cheapest_to_decode_is_better_than_no_encoding),
        cmocka_unit_test(bidirectional_comparisons_take_all_but_what_is_causal),
        cmocka_unit_test(what_does_not_apply_is_named_with_the_reason),
        cmocka_unit_test(both_ways_of_combining_stand_side_by_side),
        cmocka_unit_test(the_results_say_how_rows_enter_and_what_it_changes),
        cmocka_unit_test(every_way_gives_the_same_numbers_for_any_number_of_workers),
        cmocka_unit_test(a_path_per_block_is_given_to_rows_that_enter_blocks),
        cmocka_unit_test(rows_of_words_are_compared_with_both_objectives),
        cmocka_unit_test(tasks_give_the_same_numbers_for_any_number_of_workers),
        cmocka_unit_test(tasks_change_nothing_about_the_text),
        cmocka_unit_test(the_results_hold_every_encoding_on_every_task_at_every_length),
        cmocka_unit_test(an_unknown_task_is_refused_before_any_work),
        cmocka_unit_test(chinese_is_learned_as_bytes),
        cmocka_unit_test(chinese_is_learned_with_hidden_bytes_too),
        cmocka_unit_test(an_interruption_keeps_what_is_finished),
        cmocka_unit_test(finished_runs_are_counted_one_by_one),
        cmocka_unit_test(what_cannot_work_is_refused_before_any_work),
        cmocka_unit_test(a_directory_that_is_not_ours_is_left_alone),
        cmocka_unit_test(the_report_stands_alone_and_an_older_one_is_replaced),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, begin, end);
}

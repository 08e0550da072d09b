/* SPDX-License-Identifier: MIT */
/*
 * Runs on tasks, small: every encoding on every task trains or says why not, runs are the same every time,
 * what theory says of equal tokens holds at every step, and what can be learned is.
 */
#include "train/run/run.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEQUENCES = 20 };

static pe_run_config tiny(const char *task)
{
    return (pe_run_config){.task          = pe_task_find(task),
                           .d_model       = 16,
                           .layers        = 2,
                           .heads         = 2,
                           .batch         = 4,
                           .sequences     = SEQUENCES,
                           .longest       = PE_TASK_4,
                           .seed          = 1,
                           .steps         = 3,
                           .warmup        = 2,
                           .learning_rate = 0.024,
                           .weight_decay  = 0.01,
                           .clip          = 1};
}

/* Runs label on the task of c with its settings; returns the status of whichever step refused. */
static posenc_status run(pe_run_config *c, const char *label, pe_run_progress *progress,
                         pe_run_result *result, posenc_error *err)
{
    char spec[1024];
    *result              = (pe_run_result){0};
    posenc_status status = pe_run_task_spec(spec, sizeof spec, &c->entry, label, c, err);
    c->spec              = spec;
    if (!status)
        status = pe_run(c, progress, result, err);
    c->spec = NULL;
    return status;
}

static pe_run_result trained(pe_run_config *c, const char *label)
{
    pe_run_result result;
    posenc_error  err;
    if (run(c, label, NULL, &result, &err))
        fail_msg("%s on %s: %s", label, c->task->name, err.message);
    return result;
}

/* Share of right answers at a length. */
static double accuracy(const pe_run_config *c, const pe_run_result *r, int length)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < c->sequences; i++)
        sum += r->right[length * c->sequences + i];
    return (double)sum / (double)(c->sequences * pe_task_asked(c->task, length));
}

/* ---------------------------------------------------------------- all on all ---------------- */

static void assert_sound(const pe_run_config *c, const pe_run_result *r)
{
    int64_t *asked = malloc((size_t)c->sequences * sizeof *asked);
    assert_true(isfinite(r->lowest_loss) && r->lowest_loss <= r->last_loss);
    assert_true(r->parameters > 0 && !r->cancelled && !r->diverged);
    for (int i = 0; i < PE_TASK_LENGTHS; i++) {
        const int is_tested = i <= c->longest && pe_task_size(c->task, i) > 0;
        assert_int_equal(isfinite(r->loss[i]) != 0, is_tested);
        pe_task_asked_each(c->task, i, c->sequences, asked);
        for (int64_t s = 0; s < c->sequences; s++)
            assert_true(r->right[i * c->sequences + s] <= (is_tested ? asked[s] : 0));
    }
    free(asked);
}

static void every_encoding_runs_on_every_task_or_says_why_not(void **state)
{
    int on_grid = 0, on_line = 0;
    (void)state;
    for (int t = 0; t < PE_TASKS; t++)
        for (int i = 0; i < posenc_encoding_count(); i++) {
            const posenc_encoding_info *info = posenc_encoding_info_at(i);
            pe_run_config               c    = tiny(pe_tasks[t].name);
            pe_run_result               r;
            posenc_error                err;
            const posenc_status         status = run(&c, info->name, NULL, &r, &err);
            if (!status)
                assert_sound(&c, &r);
            else if (strlen(err.message) < 10)
                fail_msg("%s on %s: status %d without a sentence", info->name, c.task->name, (int)status);
            if (status && !c.task->grid && status != POSENC_ERROR_UNSUPPORTED)
                fail_msg("%s on %s: %s", info->name, c.task->name, err.message);
            if (info->causal_only)
                assert_int_equal(status == POSENC_OK, !c.task->full);
            on_grid += !status && c.task->grid;
            on_line += !status && !c.task->grid;
            pe_run_result_free(&r);
        }
    assert_true(on_grid >= 6); /* sinusoids of two coordinates, distances and windows */
    assert_true(on_line >= 12 * (posenc_encoding_count() - 4));
}

/* ---------------------------------------------------------------- settings ------------------ */

static void assert_spec(const char *task, const char *label, const char *part)
{
    pe_run_config c = tiny(task);
    char          spec[1024];
    posenc_error  err;
    if (pe_run_task_spec(spec, sizeof spec, &c.entry, label, &c, &err))
        fail_msg("%s", err.message);
    if (!strstr(spec, part))
        fail_msg("%s on %s is %s, without %s", label, task, spec, part);
}

static void settings_are_those_for_the_length_the_mask_and_the_symbols_of_the_task(void **state)
{
    (void)state;
    assert_spec("shift", "shaw", "max_relative=8");
    assert_spec("copy", "shaw", "max_relative=16");
    assert_spec("shift", "t5", "bidirectional=no");
    assert_spec("order", "t5", "bidirectional=yes");
    assert_spec("shift", "t5[num_buckets=4]", "num_buckets=4]");
    assert_spec("lego", "complex_order", "vocab=86");
    assert_spec("shift", "floater[inject=blocks]", "states=2");
    assert_spec("grid", "sinusoidal2d", "height=16:width=16");
    assert_spec("grid", "sinusoidal2d[preset=mae]", "height=16:width=16:preset=mae");
    assert_spec("grid", "swin_v2+sinusoidal_nd", "window=16x16:pretrained_window=8x8");
    assert_spec("grid", "swin_v2+sinusoidal_nd", "shape=16x16");
}

static void refuse(pe_run_config c, const char *label, posenc_status status, const char *word)
{
    pe_run_result r;
    posenc_error  err = {0};
    assert_int_equal(run(&c, label, NULL, &r, &err), status);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" does not say \"%s\"", err.message, word);
    pe_run_result_free(&r);
}

static void what_has_no_meaning_is_refused_with_a_sentence(void **state)
{
    pe_run_config c = tiny("shift");
    (void)state;
    c.sequences = 0;
    refuse(c, "nope", POSENC_ERROR_ARGUMENT, "sequences 0");
    c         = tiny("shift");
    c.longest = PE_TASK_LENGTHS;
    refuse(c, "nope", POSENC_ERROR_ARGUMENT, "longest is 6");
    refuse(tiny("grid"), "rope", POSENC_ERROR_UNSUPPORTED, "rows and columns");
    refuse(tiny("posid"), "xpos", POSENC_ERROR_UNSUPPORTED, "only with a causal mask");
    refuse(tiny("order"), "no_such_encoding", POSENC_ERROR_SETTING, "no_such_encoding");
}

/* Of 16 x 16 places 8 x 8 were trained: the corner of the table, which runs.npz keeps. */
static void a_grid_keeps_the_trained_corner_of_its_table(void **state)
{
    pe_run_config c      = tiny("grid");
    pe_run_result r      = trained(&c, "learned_resize");
    const int64_t all[2] = {16 * 16, c.d_model};
    float        *table  = calloc((size_t)(all[0] * all[1]), sizeof *table);
    posenc_tensor from   = posenc_tensor_contiguous(table, POSENC_DTYPE_F32, 2, all);
    pe_run_result other;
    pe_run_file   k = {0};
    (void)state;
    assert_non_null(table);
    assert_true(r.params->ndim == 2 && r.params->shape[0] == 64 && r.params->shape[1] == c.d_model);
    for (int64_t i = 0; i < all[0] * all[1]; i++)
        table[i] = (float)(i / all[1]);
    c.spec = "learned_resize[grid_in=16x16:grid_out=16x16]";
    assert_int_equal(pe_run_result_create(&other, &c, NULL), POSENC_OK);
    const posenc_tensor layers[2] = {from, from};
    pe_run_result_take_params(&other, &c, layers);
    for (int64_t i = 0; i < 64 * c.d_model; i++)
        assert_true(((float *)other.params->data)[i] == (float)(i / c.d_model / 8 * 16 + i / c.d_model % 8));
    pe_run_list(&k, &c, &other);
    assert_string_equal(k.arrays[k.count - 1].name, "table");
    pe_run_result_free(&other);
    pe_run_result_free(&r);
    free(table);
}

/* ---------------------------------------------------------------- the same every time ------- */

typedef struct job {
    pe_run_result result;
    posenc_status status;
} job;

static void *work(void *of)
{
    job          *j = of;
    pe_run_config c = tiny("needle");
    c.steps         = 30;
    j->status       = run(&c, "rope+urpe", NULL, &j->result, NULL);
    return NULL;
}

static void assert_same(const pe_run_result *a, const pe_run_result *b)
{
    assert_memory_equal(a->right, b->right, PE_TASK_LENGTHS * SEQUENCES * sizeof *a->right);
    assert_memory_equal(a->loss, b->loss, (PE_TASK_4 + 1) * sizeof *a->loss);
    assert_true(a->last_loss == b->last_loss && a->lowest_loss == b->lowest_loss);
}

static void two_runs_at_once_equal_one_alone_bit_for_bit(void **state)
{
    static job jobs[3];
    pthread_t  threads[2];
    (void)state;
    work(&jobs[2]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].status, POSENC_OK);
        assert_same(&jobs[i].result, &jobs[2].result);
    }
    for (int i = 0; i < 3; i++)
        pe_run_result_free(&jobs[i].result);
}

/* Tests come in portions of what fits the buffers of a batch; a batch of another size cuts them otherwise. */
static void test_sequences_do_not_depend_on_how_many_are_read_at_once(void **state)
{
    pe_run_config few = tiny("sort"), many = tiny("sort");
    (void)state;
    few.learning_rate = many.learning_rate = 0; /* nothing is learned: the batch does not matter */
    many.batch                             = 7;
    pe_run_result a = trained(&few, "alibi"), b = trained(&many, "alibi");
    assert_memory_equal(a.right, b.right, PE_TASK_LENGTHS * SEQUENCES * sizeof *a.right);
    for (int i = 0; i <= PE_TASK_4; i++)
        assert_true(fabs(a.loss[i] - b.loss[i]) < 1e-6);
    pe_run_result_free(&a);
    pe_run_result_free(&b);
}

static void a_run_stops_where_it_is_told_to(void **state)
{
    pe_run_config   c        = tiny("shift");
    pe_run_progress progress = {0};
    pe_run_result   r;
    posenc_error    err;
    (void)state;
    progress.cancel = 1;
    assert_int_equal(run(&c, "nope", &progress, &r, &err), POSENC_ERROR_UNSUPPORTED);
    assert_true(r.cancelled && atomic_load(&progress.step) == 1);
    pe_run_result_free(&r);
    progress.cancel = 0;
    atomic_store(&progress.step, 0);
    assert_int_equal(run(&c, "nope", &progress, &r, &err), POSENC_OK);
    assert_int_equal(atomic_load(&progress.step), pe_run_work(&c));
    pe_run_result_free(&r);
}

/* ---------------------------------------------------------------- what can be learned ------- */

/* Check 2 of docs/experiments.md: at every step, because all outputs are equal. */
static void what_acts_on_scores_alone_cannot_tell_equal_tokens_apart(void **state)
{
    static const char *const blind[] = {"nope",           "rope",       "alibi", "t5",
                                        "transformer_xl", "kerple_log", "fire"};
    static const char *const see[]   = {"learned", "sinusoidal"};
    (void)state;
    for (size_t i = 0; i < sizeof blind / sizeof *blind; i++) {
        pe_run_config c = tiny("posid");
        c.steps         = 60;
        pe_run_result r = trained(&c, blind[i]);
        if (!(r.lowest_loss >= log(16) - 1e-4))
            fail_msg("%s had a batch with loss %.6f", blind[i], r.lowest_loss);
        assert_true(accuracy(&c, &r, PE_TASK_L) <= 1.0 / 16 + 0.02);
        pe_run_result_free(&r);
    }
    for (size_t i = 0; i < sizeof see / sizeof *see; i++) {
        pe_run_config c = tiny("posid");
        c.steps         = 200;
        pe_run_result r = trained(&c, see[i]);
        if (!(accuracy(&c, &r, PE_TASK_L) > 0.9))
            fail_msg("%s has %.3f right", see[i], accuracy(&c, &r, PE_TASK_L));
        pe_run_result_free(&r);
    }
}

/* Each by an encoding that can, above chance by far more than the draw of the sequences allows (the three of
   arithmetic take thousands of steps). */
static void models_learn_what_their_encoding_can_see(void **state)
{
    static const struct {
        const char *task, *encoding;
        int64_t     steps;
        double      least;
    } rows[] = {{"order", "alibi", 400, 0.9},         {"shift", "transformer_xl", 150, 0.9},
                {"needle", "kerple_log", 200, 0.8},   {"copy", "alibi", 300, 0.2},
                {"reverse", "sinusoidal", 300, 0.12}, {"sort", "nope", 300, 0.4},
                {"count", "cope", 200, 0.8},          {"parity", "cope", 300, 0.65},
                {"grid", "swin_v2", 400, 0.5}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pe_run_config c = tiny(rows[i].task);
        c.steps         = rows[i].steps;
        c.warmup        = 20;
        c.d_model       = 32;
        c.batch         = 32;
        c.sequences     = 100;
        pe_run_result r = trained(&c, rows[i].encoding);
        if (!(accuracy(&c, &r, PE_TASK_L) >= rows[i].least))
            fail_msg("%s on %s: %.3f right at L, loss %.3f", rows[i].encoding, rows[i].task,
                     accuracy(&c, &r, PE_TASK_L), r.last_loss);
        pe_run_result_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_keeps_the_trained_corner_of_its_table),
        cmocka_unit_test(every_encoding_runs_on_every_task_or_says_why_not),
        cmocka_unit_test(settings_are_those_for_the_length_the_mask_and_the_symbols_of_the_task),
        cmocka_unit_test(what_has_no_meaning_is_refused_with_a_sentence),
        cmocka_unit_test(two_runs_at_once_equal_one_alone_bit_for_bit),
        cmocka_unit_test(test_sequences_do_not_depend_on_how_many_are_read_at_once),
        cmocka_unit_test(a_run_stops_where_it_is_told_to),
        cmocka_unit_test(what_acts_on_scores_alone_cannot_tell_equal_tokens_apart),
        cmocka_unit_test(models_learn_what_their_encoding_can_see),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A model of symbols: targets at some places, fewer classes than bytes, any mask, lengths below the planned
 * one, and cells of a grid. Gradients are held against difference quotients for every encoding, as in
 * test_model.c, and what makes these models different is left out or changed once to see that it matters.
 */
#include "train/model/model.h"
#include "train/run/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 8, WIDTH = 16, HEADS = 2, LAYERS = 2, BATCH = 3, SYMBOLS = 9, CLASSES = 5, SAMPLES = 3 };

static const double step = 1e-5, relative = 1e-6, absolute = 2e-9;

static pe_model_config config_of(const char *spec, int full, int64_t grid)
{
    return (pe_model_config){.spec          = spec,
                             .L             = LENGTH,
                             .longest       = 2 * LENGTH,
                             .d_model       = WIDTH,
                             .layers        = LAYERS,
                             .heads         = HEADS,
                             .batch         = BATCH,
                             .seed          = 3,
                             .dtype         = POSENC_DTYPE_F64,
                             .bidirectional = full,
                             .symbols       = SYMBOLS,
                             .classes       = CLASSES,
                             .grid          = grid};
}

/* Number i of the registry with its room's settings; NULL if it has no meaning under this mask. */
static pe_model *model_at(int i, int full)
{
    const posenc_dims dims = {.B       = 1,
                              .H       = HEADS,
                              .G       = HEADS,
                              .Lq      = 2 * LENGTH,
                              .Lk      = 2 * LENGTH,
                              .D       = WIDTH / HEADS,
                              .Dv      = WIDTH / HEADS,
                              .d_model = WIDTH,
                              .L       = LENGTH};
    const char       *name = posenc_encoding_info_at(i)->name;
    char              settings[256], spec[512];
    pe_model         *m;
    posenc_error      err;
    assert_int_equal(posenc_small_model(name, &dims, full ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL, settings,
                                        sizeof settings, NULL),
                     POSENC_OK);
    snprintf(spec, sizeof spec, settings[0] ? "%s[%s]" : "%s", name, settings);
    const pe_model_config config = config_of(spec, full, 0);
    const posenc_status   status = pe_model_create(&m, &config, &err);
    if (status && status != POSENC_ERROR_UNSUPPORTED)
        fail_msg("%s: %s", spec, err.message);
    return m;
}

/* Symbols at random, and an answer asked for at about half of the places. */
static void write_batch(uint16_t x[BATCH * 2 * LENGTH], int16_t y[BATCH * 2 * LENGTH])
{
    for (uint64_t i = 0; i < BATCH * 2 * LENGTH; i++) {
        x[i] = (uint16_t)(SYMBOLS * posenc_random_uniform(1, "symbols", i));
        y[i] = (int16_t)(2 * CLASSES * posenc_random_uniform(1, "answers", i) - CLASSES);
        if (y[i] < 0)
            y[i] = -1;
    }
}

/* A batch of B sequences of `length`, which is valid until the next call. */
static const pe_batch *batch_of(int64_t B, int64_t length, int64_t columns)
{
    static uint16_t        x[BATCH * 2 * LENGTH];
    static int16_t         y[BATCH * 2 * LENGTH];
    static const uint16_t *rows[BATCH];
    static pe_batch        batch;
    write_batch(x, y);
    for (int64_t b = 0; b < B; b++)
        rows[b] = x + b * length;
    batch = (pe_batch){.windows = rows, .B = B, .length = length, .targets = y, .columns = columns};
    return &batch;
}

static double loss_of(pe_model *m, const pe_batch *batch)
{
    double  losses[BATCH * 2 * LENGTH], sum = 0;
    int64_t asked = 0;
    assert_int_equal(pe_model_losses(m, losses, batch, NULL), POSENC_OK);
    for (int64_t i = 0; i < batch->B * batch->length; i++) {
        assert_int_equal(isnan(losses[i]) != 0, batch->targets[i] < 0);
        sum += batch->targets[i] < 0 ? 0 : losses[i];
        asked += batch->targets[i] >= 0;
    }
    return sum / (double)asked;
}

static double quotient(pe_model *m, const pe_batch *batch, int64_t at)
{
    double *x = (double *)m->theta + at, old = *x;
    *x                = old + step;
    const double more = loss_of(m, batch);
    *x                = old - step;
    const double less = loss_of(m, batch);
    *x                = old;
    return (more - less) / (2 * step);
}

/* Away from zeros and from kinks: see test_model.c. */
static void stir(pe_model *m)
{
    double *theta = m->theta;
    for (int i = 0; i < m->weight_count; i++)
        for (int64_t j = 0; j < m->weights[i].count && m->weights[i].trains; j++) {
            double      *x    = &theta[m->weights[i].offset + j];
            const double move = 0.1 * posenc_random_normal(7, m->weights[i].name, (uint64_t)j);
            *x += *x == 0 || fabs(move) < 0.5 * fabs(*x) ? move : 0.5 * *x;
        }
}

static int64_t largest(const double *grad, int64_t n)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        best = fabs(grad[j]) > fabs(grad[best]) ? j : best;
    return best;
}

/* The largest |gradient - quotient| over what is allowed, at the largest gradient and others of every
   tensor. */
static double verdict(pe_model *m, const pe_batch *batch, pe_gradient_term drop)
{
    double worst = 0, loss, *grad = malloc((size_t)m->size * sizeof *grad);
    m->drop_gradient = PE_DROP_NONE;
    assert_int_equal(pe_model_gradient(m, &loss, batch, NULL), POSENC_OK);
    assert_true(fabs(loss - loss_of(m, batch)) < 1e-12);
    memcpy(grad, m->grad, (size_t)m->size * sizeof *grad);
    m->drop_gradient = drop;
    assert_int_equal(pe_model_gradient(m, &loss, batch, NULL), POSENC_OK);
    const double *judged = m->grad;
    for (int i = 0; i < m->weight_count; i++)
        for (int s = 0; s < SAMPLES && m->weights[i].trains; s++) {
            const pe_weight *w = &m->weights[i];
            const int64_t    j =
                s == 0 ? largest(grad + w->offset, w->count)
                          : (int64_t)((double)w->count * posenc_random_uniform(5, w->name, (uint64_t)s));
            const double q = quotient(m, batch, w->offset + j);
            worst          = fmax(worst, fabs(judged[w->offset + j] - q) / (absolute + relative * fabs(q)));
        }
    free(grad);
    return worst;
}

/* At the trained length and below it, since the n of a batch varies. */
static void gradients_of_answers_are_difference_quotients_for_every_encoding(void **state)
{
    int tried = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (int full = 0; full < 2; full++) {
            pe_model *m = model_at(i, full);
            if (!m)
                continue;
            stir(m);
            for (int64_t length = LENGTH - 3; length <= LENGTH; length += 3) {
                const double worst = verdict(m, batch_of(BATCH, length, 0), PE_DROP_NONE);
                if (worst > 1)
                    fail_msg("%s: off by %g times what is allowed", m->config.spec, worst);
            }
            tried++;
            pe_model_free(m);
        }
    assert_true(tried > posenc_encoding_count());
}

static void the_judge_condemns_a_gradient_without_its_softmax(void **state)
{
    (void)state;
    pe_model *m = model_at(0, 1);
    stir(m);
    assert_true(verdict(m, batch_of(BATCH, LENGTH, 0), PE_DROP_SOFTMAX) > 100);
    assert_true(verdict(m, batch_of(BATCH, LENGTH, 0), PE_DROP_EMBEDDING) > 100);
    pe_model_free(m);
}

/* Of sequence b all rows are asked, the first, the last, or every third. */
static int is_asked(int64_t b, int64_t p)
{
    return b % 4 == 0 || (b % 4 == 1 && p == 0) || (b % 4 == 2 && p == LENGTH - 1) ||
           (b % 4 == 3 && p % 3 == 1);
}

/* Behind the last attention the rows that are asked go on together, in blocks: what a batch of several blocks
   has is the mean over its answers of what its sequences have alone. */
static void a_batch_of_many_blocks_has_the_gradient_of_its_sequences(void **state)
{
    enum { SEQUENCES = 96 };
    pe_model_config config = config_of("shaw", 1, 0);
    uint16_t        x[SEQUENCES * LENGTH];
    int16_t         y[SEQUENCES * LENGTH];
    const uint16_t *rows[SEQUENCES];
    pe_model       *m;
    double          loss, sum = 0;
    int64_t         asked[SEQUENCES] = {0}, all = 0;
    (void)state;
    config.batch = SEQUENCES;
    assert_int_equal(pe_model_create(&m, &config, NULL), POSENC_OK);
    stir(m);
    for (int64_t i = 0; i < SEQUENCES * LENGTH; i++) {
        x[i] = (uint16_t)(SYMBOLS * posenc_random_uniform(1, "symbols", (uint64_t)i));
        y[i] = (int16_t)(is_asked(i / LENGTH, i % LENGTH)
                             ? CLASSES * posenc_random_uniform(1, "answers", (uint64_t)i)
                             : -1);
        asked[i / LENGTH] += y[i] >= 0;
        all += y[i] >= 0;
        rows[i / LENGTH] = x + i / LENGTH * LENGTH;
    }
    assert_true(all > 2 * PE_BLOCK_ROWS && all % PE_BLOCK_ROWS != 0);
    double *mean = calloc((size_t)m->size, sizeof *mean), *grad = m->grad;
    for (int64_t b = 0; b < SEQUENCES; b++) {
        const pe_batch one = {.windows = rows + b, .B = 1, .length = LENGTH, .targets = y + b * LENGTH};
        assert_int_equal(pe_model_gradient(m, &loss, &one, NULL), POSENC_OK);
        sum += loss * (double)asked[b] / (double)all;
        for (int64_t j = 0; j < m->size; j++)
            mean[j] += grad[j] * (double)asked[b] / (double)all;
    }
    const pe_batch together = {.windows = rows, .B = SEQUENCES, .length = LENGTH, .targets = y};
    assert_int_equal(pe_model_gradient(m, &loss, &together, NULL), POSENC_OK);
    assert_true(fabs(loss - sum) < 1e-12);
    for (int64_t j = 0; j < m->size; j++)
        if (!(fabs(grad[j] - mean[j]) < 1e-12))
            fail_msg("number %d: %g together, %g one by one", (int)j, grad[j], mean[j]);
    free(mean);
    pe_model_free(m);
}

/* ---------------------------------------------------------------- answers ------------------- */

/* With two classes an answer is right where its loss is below ln 2, and only there. */
static void an_answer_is_right_where_it_is_likelier_than_every_other(void **state)
{
    pe_model_config config = config_of("nope", 0, 0);
    pe_model       *m;
    double          losses[BATCH * LENGTH];
    int             rights = 0, wrongs = 0;
    (void)state;
    config.classes = 2;
    assert_int_equal(pe_model_create(&m, &config, NULL), POSENC_OK);
    stir(m);
    pe_batch batch = *batch_of(BATCH, LENGTH, 0);
    int16_t  y[BATCH * LENGTH];
    for (int i = 0; i < BATCH * LENGTH; i++)
        y[i] = (int16_t)(batch.targets[i] < 0 ? -1 : batch.targets[i] % 2);
    batch.targets = y;
    assert_int_equal(pe_model_losses(m, losses, &batch, NULL), POSENC_OK);
    for (int i = 0; i < BATCH * LENGTH; i++)
        if (y[i] >= 0) {
            assert_int_equal(m->right[i], losses[i] < log(2));
            rights += m->right[i];
            wrongs += !m->right[i];
        }
    assert_true(rights > 0 && wrongs > 0);
    pe_model_free(m);
}

/* All classes alike: nobody is right by the order in which they stand. */
static void of_equally_likely_answers_none_is_right(void **state)
{
    const pe_model_config config = config_of("nope", 0, 0);
    pe_model             *m;
    double                losses[BATCH * LENGTH];
    (void)state;
    assert_int_equal(pe_model_create(&m, &config, NULL), POSENC_OK);
    const pe_weight *output = &m->weights[LAYERS * PE_LAYER_WEIGHTS + PE_OUTPUT];
    assert_int_equal(output->count, WIDTH * CLASSES);
    memset((double *)m->theta + output->offset, 0, (size_t)output->count * sizeof(double));
    const pe_batch *batch = batch_of(BATCH, LENGTH, 0);
    assert_int_equal(pe_model_losses(m, losses, batch, NULL), POSENC_OK);
    for (int i = 0; i < BATCH * LENGTH; i++)
        if (batch->targets[i] >= 0) {
            assert_true(fabs(losses[i] - log(CLASSES)) < 1e-12);
            assert_int_equal(m->right[i], 0);
        }
    pe_model_free(m);
}

static void the_future_is_seen_without_a_mask_alone(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        pe_model *m = model_at(0, full);
        double    before[LENGTH], after[LENGTH];
        int16_t   y[LENGTH] = {-1, 1, -1, -1, -1, -1, -1, 2};
        pe_batch  batch     = *batch_of(1, LENGTH, 0);
        batch.targets       = y;
        stir(m);
        assert_int_equal(pe_model_losses(m, before, &batch, NULL), POSENC_OK);
        ((uint16_t *)batch.windows[0])[5] ^= 1;
        assert_int_equal(pe_model_losses(m, after, &batch, NULL), POSENC_OK);
        assert_true((before[1] != after[1]) == full && before[7] != after[7]);
        pe_model_free(m);
    }
}

static void targets_belong_to_models_of_symbols_alone(void **state)
{
    double          losses[BATCH * LENGTH];
    pe_model_config config = config_of("nope", 0, 0);
    pe_model       *symbols, *bytes;
    (void)state;
    assert_int_equal(pe_model_create(&symbols, &config, NULL), POSENC_OK);
    config.symbols = config.classes = 0;
    assert_int_equal(pe_model_create(&bytes, &config, NULL), POSENC_OK);
    pe_batch batch = *batch_of(BATCH, LENGTH, 0);
    assert_int_equal(pe_model_losses(bytes, losses, &batch, NULL), POSENC_ERROR_ARGUMENT);
    batch.targets = NULL;
    assert_int_equal(pe_model_losses(symbols, losses, &batch, NULL), POSENC_ERROR_ARGUMENT);
    pe_model_free(symbols);
    pe_model_free(bytes);
    config.symbols = PE_BYTES + 1;
    config.classes = 2;
    assert_int_equal(pe_model_create(&symbols, &config, NULL), POSENC_ERROR_ARGUMENT);
}

/* ---------------------------------------------------------------- grids --------------------- */

static const char *const grids[] = {"sinusoidal2d[height=4:width=4]", "swin[window=4x4:sigma=0.5]",
                                    "absolute_distance[grid=4x4:sigma=0.5]",
                                    "sinusoidal2d[height=4:width=4]+swin[window=4x4]"};

/* The same eight symbols in two rows of four and in four rows of two; and in line they are refused. */
static void cells_of_a_grid_have_rows_and_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const pe_model_config config = config_of(grids[i], 1, 4);
        pe_model             *m;
        posenc_error          err;
        if (pe_model_create(&m, &config, &err))
            fail_msg("%s", err.message);
        stir(m);
        const double wide = loss_of(m, batch_of(BATCH, LENGTH, 4)),
                     high = loss_of(m, batch_of(BATCH, LENGTH, 2));
        if (!(fabs(wide - high) > 1e-6))
            fail_msg("%s: %g in rows of four, %g in rows of two", grids[i], wide, high);
        assert_true(verdict(m, batch_of(BATCH, LENGTH, 2), PE_DROP_NONE) <= 1);
        double losses[BATCH * LENGTH];
        assert_int_equal(pe_model_losses(m, losses, batch_of(BATCH, LENGTH, 0), &err), POSENC_ERROR_ARGUMENT);
        assert_int_equal(pe_model_losses(m, losses, batch_of(BATCH, LENGTH, 5), &err), POSENC_ERROR_ARGUMENT);
        pe_model_free(m);
    }
}

/* What knows offsets of rows and columns alone gives a corner of 2 x 2 the same scores in a grid of any
   width: one layer's answers depend on the cells, not on their numbers. Held against a plan of another
   largest grid. */
static void a_grid_is_read_the_same_whatever_the_largest_is(void **state)
{
    static const char *const two[] = {"sinusoidal2d[height=4:width=4]", "sinusoidal2d[height=9:width=9]"};
    double                   losses[2][4];
    (void)state;
    for (int i = 0; i < 2; i++) {
        pe_model_config config = config_of(two[i], 1, i ? 9 : 4);
        pe_model       *m;
        assert_int_equal(pe_model_create(&m, &config, NULL), POSENC_OK);
        stir(m);
        assert_int_equal(pe_model_losses(m, losses[i], batch_of(1, 4, 2), NULL), POSENC_OK);
        pe_model_free(m);
    }
    for (int s = 0; s < 4; s++)
        assert_true((isnan(losses[0][s]) && isnan(losses[1][s])) || losses[0][s] == losses[1][s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_answers_are_difference_quotients_for_every_encoding),
        cmocka_unit_test(a_batch_of_many_blocks_has_the_gradient_of_its_sequences),
        cmocka_unit_test(the_judge_condemns_a_gradient_without_its_softmax),
        cmocka_unit_test(an_answer_is_right_where_it_is_likelier_than_every_other),
        cmocka_unit_test(of_equally_likely_answers_none_is_right),
        cmocka_unit_test(the_future_is_seen_without_a_mask_alone),
        cmocka_unit_test(targets_belong_to_models_of_symbols_alone),
        cmocka_unit_test(cells_of_a_grid_have_rows_and_columns),
        cmocka_unit_test(a_grid_is_read_the_same_whatever_the_largest_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

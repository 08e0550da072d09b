/* SPDX-License-Identifier: MIT */
/*
 * test_findings: a word hangs on its number and on nothing else
 *
 * Numbers of two encodings are exchanged: the words must change places. Beyond that: the limits of every rule
 * are tried on both sides, encodings of which the answer is a theorem get the right word, and the least
 * squares behind the residuals solve what they should.
 */
#include "measure/subject.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* cmocka's assert_float_equal compares floats: too coarse here. */
static void near(double x, double wanted, double error)
{
    if (!(fabs(x - wanted) <= error))
        fail_msg("%.17g is not %.17g within %g", x, wanted, error);
}

static pe_findings survey_of(const char *spec)
{
    posenc_encoding *e;
    posenc_error     err;
    pe_findings      all;
    const pe_survey  survey = {.sizes  = {.length = 96, .width = 16, .heads = 4, .draws = 3, .seed = 7},
                               .tokens = 24};
    if (posenc_encoding_create(&e, spec, NULL, &err) || pe_survey_run(e, &survey, &all, &err))
        fail_msg("%s: %s", spec, err.message);
    posenc_encoding_free(e);
    return all;
}

/* Of one run of 96 queries and keys: 4 heads of 16, rows of 16 where the encoding acts at the input alone. */
static double operations_of(const char *spec)
{
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    posenc_dims      dims = {.B = 1, .H = 4, .Lq = 96, .Lk = 96, .D = 16, .d_model = 64};
    if (posenc_encoding_create(&e, spec, NULL, &err))
        fail_msg("%s: %s", spec, err.message);
    if (posenc_encoding_part(e, POSENC_PLACE_INPUT) && !posenc_encoding_part(e, POSENC_PLACE_SCORE))
        dims.d_model = 16;
    if (posenc_plan_create(&plan, e, &dims, NULL, &err))
        fail_msg("%s: %s", spec, err.message);
    const double count = posenc_plan_operations(plan);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return count;
}

/* NULL is a word too: that of measures which claim nothing. */
static int same_word(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Exchanges the numbers of findings about the same thing; returns how many words differed before. */
static int exchange(pe_findings *a, pe_findings *b)
{
    int differed = 0;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++) {
            pe_finding *x = &a->rows[i], *y = &b->rows[k];
            if (x->measure != y->measure || (x->measure == PE_SHIFT && strcmp(x->detail, y->detail)))
                continue;
            const double kept = x->value;
            x->value          = y->value;
            y->value          = kept;
            differed += !same_word(x->verdict, y->verdict);
            break;
        }
    return differed;
}

static const pe_finding *first(const pe_findings *f, pe_measure m)
{
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].measure == m)
            return &f->rows[i];
    return NULL;
}

/* The same numbers, with their verdicts found anew. */
static pe_findings judged(const pe_findings *all)
{
    pe_findings to = {.count = 0};
    for (const pe_finding *f = all->rows; f < all->rows + all->count; f++)
        pe_findings_add(&to, f->measure, f->value, f->spread, "%s", f->detail);
    return to;
}

static void exchanged_numbers_exchange_verdicts(const char *one, const char *other, int at_least)
{
    const pe_findings a = survey_of(one), b = survey_of(other);
    pe_findings       a_then = a, b_then = b;
    if (exchange(&a_then, &b_then) < at_least)
        fail_msg("%s and %s have the same verdicts: this test shows nothing", one, other);
    b_then = judged(&b_then);
    for (int m = 0; m < PE_MEASURES; m++) {
        const pe_finding *was = first(&a, (pe_measure)m), *is = first(&b_then, (pe_measure)m);
        if (was && is && first(&b, (pe_measure)m) && !same_word(was->verdict, is->verdict))
            fail_msg("%s: %s had \"%s\"; with its number %s has \"%s\"", pe_findings_title((pe_measure)m),
                     one, was->verdict ? was->verdict : "", other, is->verdict ? is->verdict : "");
    }
}

static void vectors_that_change_numbers_change_verdicts(void **state)
{
    (void)state;
    exchanged_numbers_exchange_verdicts("sinusoidal", "learned", 3); /* r, tau, trend, parameters */
}

static void scores_that_change_numbers_change_verdicts(void **state)
{
    (void)state;
    exchanged_numbers_exchange_verdicts("alibi", "t5", 3);  /* gap, distances, direction, trend */
    exchanged_numbers_exchange_verdicts("nope", "shaw", 2); /* eta, equivariance */
}

/* Of every rule: numbers on the two sides of a limit have different words. */
static void a_limit_parts_words(void **state)
{
    (void)state;
    static const struct {
        pe_measure  m;
        double      at;
        const char *up_to, *above;
    } rows[] = {
        {PE_NEAREST, 0, "repeats", "nearly repeats"},
        {PE_NEAREST, 0.01, "nearly repeats", "unique"},
        {PE_SHIFT, 1e-20, "relative", "nearly relative"},
        {PE_SHIFT, 0.5, "partly", "not relative"},
        {PE_SCORES, 1e-20, "relative", "nearly relative"},
        {PE_SCORES, 0.1, "nearly relative", "absolute"},
        {PE_BOTH_WAYS, 1e-5, "blind to order", "hardly sees order"},
        {PE_BOTH_WAYS, 1e-2, "hardly sees order", "sees order"},
        {PE_TREND, -0.9, "decays", "tends to decay"},
        {PE_TREND, -0.5, "tends to decay", "no trend"},
        {PE_TREND, 0.5, "no trend", "grows"},
        {PE_PARAMETERS, 0, "learns nothing", "learns"},
        {PE_DIRECTION, 1e-20, "past and future alike", "past and future differ"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(pe_findings_word(rows[i].m, rows[i].at), rows[i].up_to);
        assert_string_equal(pe_findings_word(rows[i].m, rows[i].at + 1e-12 + fabs(rows[i].at) * 1e-9),
                            rows[i].above);
    }
}

static void a_number_that_is_none_has_a_word_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(pe_findings_word(PE_SCORES, NAN), "no position in the scores");
    assert_string_equal(pe_findings_word(PE_SHIFT, NAN), "too short");
}

/* What is a theorem: none is blind, a mask is not; every other encoding of these sees order. Outputs are
   means of values from N(0,1): larger differences are an explosion, not a measure. */
static void permutations_are_seen_where_theory_says(void **state)
{
    (void)state;
    static const char *const seeing[] = {"sinusoidal",     "learned", "rope",    "shaw",
                                         "transformer_xl", "t5",      "alibi",   "kerple_power",
                                         "fire",           "urpe",    "floater", "cope"};
    const pe_findings        none     = survey_of("nope");
    assert_true(first(&none, PE_BOTH_WAYS)->value <= 1e-5);
    assert_true(first(&none, PE_CAUSAL)->value >= 1e-2);
    for (size_t i = 0; i < sizeof seeing / sizeof *seeing; i++) {
        const pe_findings f = survey_of(seeing[i]);
        if (!(first(&f, PE_BOTH_WAYS)->value >= 1e-2 && first(&f, PE_BOTH_WAYS)->value <= 10))
            fail_msg("%s: a permutation changes %g", seeing[i], first(&f, PE_BOTH_WAYS)->value);
    }
}

/* (x+p)W_q . (x+p)W_k is its four products; sums of some hundred products in double. */
static void four_terms_make_the_score(void **state)
{
    (void)state;
    const pe_findings f = survey_of("sinusoidal");
    assert_true(first(&f, PE_TERMS_SUM)->value <= 1e-13);
    for (int m = PE_CONTENT_CONTENT; m <= PE_POSITION_POSITION; m++)
        assert_true(first(&f, (pe_measure)m)->value > 0.01);
}

/* Encodings that are initialised with zeros have no effect: they are measured with random parameters. */
static void what_is_initialised_with_zeros_is_randomised(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int         randomised;
    } rows[] = {{"cope", 1}, {"toeplitz", 1}, {"dense_bias", 1}, {"t5", 0}, {"floater", 0}, {"nope", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pe_findings f = survey_of(rows[i].spec);
        if (f.randomised != rows[i].randomised || (f.randomised && isnan(first(&f, PE_SCORES)->value)))
            fail_msg("%s: randomised is %d", rows[i].spec, f.randomised);
    }
}

/* A table shorter than the positions is used as a hierarchy; a window holds the tokens; what the caller says
   stands. */
static void encodings_get_sizes_that_suit_the_length(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *settings, *measured;
    } rows[] = {{"hierarchical", NULL, "hierarchical[rows=floor(sqrt(Lk-1))+1]"},
                {"hierarchical", "alpha=0.3", "hierarchical[rows=floor(sqrt(Lk-1))+1:alpha=0.3]"},
                {"hierarchical[rows=9]", "", "hierarchical[rows=9]"},
                {"hierarchical", "rows=9", "hierarchical[rows=9]"},
                {"swin", "", "swin[window=floor(sqrt(Lk-1))+1xfloor(sqrt(Lk-1))+1]"},
                {"swin", "window=4x4", "swin[window=4x4]"},
                {"sinusoidal", NULL, "sinusoidal"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_encoding *e;
        assert_int_equal(pe_survey_encoding(&e, rows[i].spec, rows[i].settings, NULL), POSENC_OK);
        assert_string_equal(posenc_encoding_spec(e), rows[i].measured);
        posenc_encoding_free(e);
    }
}

static void symmetric_biases_have_no_direction(void **state)
{
    (void)state;
    const pe_findings alibi = survey_of("alibi"), t5 = survey_of("t5");
    near(first(&alibi, PE_DIRECTION)->value, 0, 0);
    assert_true(first(&t5, PE_DIRECTION)->value > 0.01);
}

/* A = Q diag(1, 1e-9, 0): the fit must find X on the first two directions and nothing on the third. */
static void least_squares_keep_small_directions_and_drop_none(void **state)
{
    (void)state;
    const double A[4 * 3] = {1, 1e-9, 0, 1, -1e-9, 0, 1, 1e-9, 0, 1, -1e-9, 0};
    const double B[4]     = {2 + 3e-9, 2 - 3e-9, 2 + 3e-9, 2 - 3e-9}; /* A (2, 3, anything) */
    double       X[3];
    assert_int_equal(pe_least_squares_fit(X, A, B, 4, 3, 1, 1e-13, NULL), POSENC_OK);
    near(X[0], 2, 1e-14);
    near(X[1], 3, 1e-6); /* 2^-52 / 1e-9, a few times */
    near(X[2], 0, 0);
}

/* Counted by hand for 96 queries and keys, 4 heads of 16 (d_model 64), or rows of 16 at the input: + - * /
   max and functions, one each. A run's sum, to be divided by its 96 tokens. */
static void costs_are_those_counted_by_hand(void **state)
{
    (void)state;
    enum { T = 96, H = 4, D = 16, M = 64, DISTANCES = 2 * T - 1, PAIRS = H * T * T };
    static const struct {
        const char *spec;
        double      run;
    } rows[] = {
        {"nope", 0},
        {"learned", T * D},                         /* a row is added */
        {"sinusoidal", T * (D + 8 + 16)},           /* 8 angles, 16 sines and cosines */
        {"sinusoidal[channels=sin]", T * (D + 16)}, /* 8 of them */
        {"sinusoidal[scaled=yes]", T * (D + 24 + D)},
        {"timestep", T * (D + 24)},
        {"hierarchical[rows=10]", T * D + 86 * 3 * D}, /* ten rows are the table's own */
        {"learned_resize[grid_in=48:grid_out=96]", T * (D + 2 * 2 * D + 4)}, /* two rows, their two weights */
        /* 5 steps of 4 stages, each 2 layers of 16 x 17 and 16 maxima; ten slopes are added, two operations
           per number */
        {"floater", T * D + 95.0 * 5 * (4 * (2 * 2 * 16 * 17 + 16) + 10 * 2 * 16)},
        {"floater[solver=euler:substeps=1]", T * D + 95.0 * (2 * 2 * 16 * 17 + 16 + 2 * 16)},
        {"rope",
         T * 8 * (3 + 6 * 2 * H)}, /* 8 pairs: angle, sine, cosine; six for q and for k in each head */
        {"xpos", T * 8 * (3 + 4 * 2 + 6 * 2 * H)},
        {"shaw[max_relative=4]",
         T * H * (9 * 31 + T) + T * H * (2 * 16 * 9 + T)}, /* nine rows, keys and values */
        {"shaw[max_relative=4:values=no]", T * H * (9 * 31 + T)},
        {"deberta", 2 * PAIRS * 32.0},
        {"huang_m4", 2 * PAIRS * 32.0},
        {"transformer_xl", 2 * T * H * D + PAIRS * 32.0 + DISTANCES * (1.5 * M + 2 * M * M)},
        {"t5", PAIRS},
        {"alibi", PAIRS + H * DISTANCES},
        {"alibi[form=key_shifted]", PAIRS + H * T},
        {"kerple_log", PAIRS + 4 * H * DISTANCES},
        {"kerple_power", PAIRS + 2 * H * DISTANCES},
        {"urpe", 2 * PAIRS},
        /* a pair: e^z, + 1, ln; two sums of the exponent, its power, the sum carried; a softmax: max, -, e,
           + */
        {"stick_breaking", (7 - 4) * PAIRS},
        {"nope+stick_breaking[remainder=self]", (7 - 4) * PAIRS + T * H * (1 + 2 * 16)},
        {"fire", PAIRS + T * T * (4 + 3 * 32 + H * 2 * 32) + T * 5},
        {"tupe[cls=no:relative=no]", PAIRS * 32.0 + T * (8 * M + 2 * 2 * M * M)},
        {"tupe[cls=no:relative=yes]", PAIRS * 33.0 + T * (8 * M + 2 * 2 * M * M)},
        {"cope", PAIRS * 11.0 + T * H * 2 * D * (T + 1)},
        {"swin[window=10x10]", PAIRS},
        {"swin_v2[window=10x10:mlp_width=8]",
         PAIRS + 361 * (5 * 8 + H * (2 * 8 + 4)) + 5 * 38 + 2 * T * H * (3 * D + 2)},
        {"complex_order_attention", PAIRS * (32.0 + 4)},
        {"sinusoidal2d[height=96:width=1]", T * (D + 24)},
        {"sinusoidal_nd", T * (D + 24)},
        {"complex_order", T * (D + 8 * 6)},
        {"complex_order[theta=zero]", T * (D + 8 * 5)},
        {"absolute_distance[grid=96x1]", PAIRS + H * T},
        {"sandwich[d_bar=10]", PAIRS + DISTANCES * (3 * 5 + 1 + H)},
        {"xlnet", 3 * T * H * D + PAIRS * 32.0 + T * H * 2 * 31 + PAIRS + DISTANCES * (1.5 * M + 2 * M * M)},
        {"sinusoidal+alibi", T * (M + 32 + 64) + PAIRS + H * DISTANCES},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double counted = operations_of(rows[i].spec);
        if (fabs(counted - rows[i].run) > 1e-9 * rows[i].run)
            fail_msg("%s: %.17g operations, not %.17g", rows[i].spec, counted, rows[i].run);
    }
}

static void parameters_and_bytes_are_those_of_the_encoding(void **state)
{
    (void)state;
    const pe_findings none = survey_of("nope"), alibi = survey_of("alibi"), t5 = survey_of("t5");
    near(first(&none, PE_WORKSPACE)->value, 0, 0);
    near(first(&alibi, PE_OPERATIONS)->value, 96 * 4 + 4 * 191 / 96.0, 1e-12);
    near(first(&t5, PE_PARAMETERS)->value, 32 * 4, 0);
    near(first(&alibi, PE_PARAMETERS)->value, 0, 0);
}

/* A number that wanders about a limit must not change its word with it. */
static void a_time_near_a_limit_has_no_word(void **state)
{
    (void)state;
    pe_findings f = {.count = 0};
    pe_findings_add(&f, PE_SPEED, 0.3, 0.1, "%s", "");
    pe_findings_add(&f, PE_SPEED, 0.49, 0.02, "%s", "");
    pe_findings_add(&f, PE_SPEED, 0.51, 0.02, "%s", "");
    pe_findings_add(&f, PE_SPEED, 0.88, 0.03, "%s", "");
    pe_findings_add(&f, PE_SPEED, 0.99, 0.05, "%s", "");
    assert_string_equal(f.rows[0].verdict, "slow");
    for (int i = 1; i <= 3; i++)
        assert_string_equal(f.rows[i].verdict, "too close to a limit to say");
    assert_string_equal(f.rows[4].verdict, "as fast");
}

static void speed_is_measured_only_when_asked_for(void **state)
{
    (void)state;
    const pe_findings without = survey_of("alibi");
    posenc_encoding  *e;
    pe_findings       with;
    const pe_survey   survey = {.sizes  = {.length = 96, .width = 16, .heads = 4, .draws = 2, .seed = 7},
                                .tokens = 24,
                                .time   = 1};
    assert_null(first(&without, PE_SPEED));
    assert_int_equal(posenc_encoding_create(&e, "alibi", NULL, NULL), POSENC_OK);
    assert_int_equal(pe_survey_run(e, &survey, &with, NULL), POSENC_OK);
    posenc_encoding_free(e);
    assert_true(first(&with, PE_SPEED)->value > 0 && isfinite(first(&with, PE_SPEED)->value));
}

static void spearman_shares_ranks_of_equal_values(void **state)
{
    (void)state;
    const double falling[4] = {9, 7, 2, 1}, tied[4] = {1, 2, 2, 3}, level[3] = {5, 5, 5};
    near(pe_decay_spearman(falling, 4), -1, 1e-15);
    near(pe_decay_spearman(tied, 4), 4.5 / sqrt(5 * 4.5), 1e-15); /* ranks 0, 1.5, 1.5, 3 */
    assert_true(isnan(pe_decay_spearman(level, 3)));
    near(pe_decay_falling_share(tied, 4), 1.0 / 3, 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_that_change_numbers_change_verdicts),
        cmocka_unit_test(scores_that_change_numbers_change_verdicts),
        cmocka_unit_test(a_limit_parts_words),
        cmocka_unit_test(a_number_that_is_none_has_a_word_of_its_own),
        cmocka_unit_test(permutations_are_seen_where_theory_says),
        cmocka_unit_test(four_terms_make_the_score),
        cmocka_unit_test(symmetric_biases_have_no_direction),
        cmocka_unit_test(least_squares_keep_small_directions_and_drop_none),
        cmocka_unit_test(costs_are_those_counted_by_hand),
        cmocka_unit_test(parameters_and_bytes_are_those_of_the_encoding),
        cmocka_unit_test(a_time_near_a_limit_has_no_word),
        cmocka_unit_test(what_is_initialised_with_zeros_is_randomised),
        cmocka_unit_test(encodings_get_sizes_that_suit_the_length),
        cmocka_unit_test(speed_is_measured_only_when_asked_for),
        cmocka_unit_test(spearman_shares_ranks_of_equal_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

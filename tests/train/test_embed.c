/* SPDX-License-Identifier: MIT */
/*
 * How rows enter the model, held against models that cannot be wrong in the same way.
 *
 * Gradients are judged in test_model.c; here is what they are gradients of. A concatenation is a sum of two
 * products, so a model that adds other tables must agree with it; rows of each block's own must reduce to the
 * sum at the input when those of the later blocks are zero, and to the same rows for all when they are equal.
 * Losses are compared, in double, of windows longer than L too.
 */
#include "train/model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 8, WIDTH = 16, HEADS = 2, LAYERS = 2, BATCH = 2, LONG = 4 * LENGTH };

static posenc_status try_create(pe_model **m, const char *spec, posenc_error *err)
{
    pe_entry      entry;
    char          plain[256];
    posenc_status status = pe_spec_split(plain, sizeof plain, &entry, spec, err);
    if (status)
        return status;
    const pe_model_config config = {.spec    = plain,
                                    .L       = LENGTH,
                                    .longest = LONG,
                                    .d_model = WIDTH,
                                    .layers  = LAYERS,
                                    .heads   = HEADS,
                                    .batch   = BATCH,
                                    .seed    = 3,
                                    .dtype   = POSENC_DTYPE_F64,
                                    .entry   = entry};
    return pe_model_create(m, &config, err);
}

static void randomise(double *x, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = 0.5 * posenc_random_normal(9, name, (uint64_t)i);
}

/* What layers add to the stream starts as zeros, behind which nothing of theirs would show. */
static void wake(pe_model *m)
{
    for (int i = 0; i < m->weight_count; i++) {
        const pe_weight *w = &m->weights[i];
        if (strstr(w->name, "attention.out") || strstr(w->name, ".down"))
            randomise((double *)m->theta + w->offset, w->count, w->name);
    }
}

static pe_model *create(const char *spec)
{
    posenc_error err;
    pe_model    *m;
    if (try_create(&m, spec, &err))
        fail_msg("%s: %s", spec, err.message);
    wake(m);
    return m;
}

static const uint16_t *const *text(void)
{
    static uint16_t        bytes[LONG + 1];
    static const uint16_t *window = bytes;
    for (uint64_t s = 0; s <= LONG; s++)
        bytes[s] = (uint16_t)(97 + 6 * posenc_random_uniform(1, "text", s));
    return &window;
}

static void read_losses(pe_model *m, double losses[LONG])
{
    assert_int_equal(pe_model_losses(m, losses, &(pe_batch){.windows = text(), .B = 1, .length = LONG}, NULL),
                     POSENC_OK);
}

/* The largest difference between two models' losses; both are freed. */
static double distance(pe_model *a, pe_model *b)
{
    double x[LONG], y[LONG], most = 0;
    read_losses(a, x);
    read_losses(b, y);
    for (int p = 0; p < LONG; p++)
        most = fmax(most, fabs(x[p] - y[p]));
    pe_model_free(a);
    pe_model_free(b);
    return most;
}

static double *weights_named(const pe_model *m, const char *name, int64_t *count)
{
    for (int i = 0; i < m->weight_count; i++)
        if (!strcmp(m->weights[i].name, name)) {
            *count = m->weights[i].count;
            return (double *)m->theta + m->weights[i].offset;
        }
    fail_msg("there is no tensor %s", name);
    *count = 0;
    return NULL;
}

/* to[n,m] = a[n,k] w[k,m] */
static void product(double *to, const double *a, const double *w, int64_t n, int64_t k, int64_t m)
{
    memset(to, 0, (size_t)(n * m) * sizeof *to);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < k; i++)
            for (int64_t c = 0; c < m; c++)
                to[r * m + c] += a[r * k + i] * w[i * m + c];
}

/* ---------------------------------------------------------------- concatenated -------------- */

static void a_concatenation_begins_as_the_sum(void **state)
{
    (void)state;
    assert_true(distance(create("sinusoidal"), create("sinusoidal[combine=concat]")) < 1e-13);
    assert_true(distance(create("learned[rows=32:sigma=0.5]"),
                         create("learned[rows=32:sigma=0.5:combine=concat]")) < 1e-13);
    /* of narrower rows what there is stands in the first channels */
    assert_true(distance(create("sinusoidal[dim=4:combine=concat]"), create("nope")) > 1e-3);
}

/* [e; p] W = e W_e + p W_p: the model that adds the tables E W_e and P W_p. Rows have 6 numbers, the model
   16. */
static void a_concatenation_is_the_sum_of_two_products(void **state)
{
    int64_t   n, rows, width;
    pe_model *joint = create("learned[rows=32:dim=6:combine=concat]"), *sum = create("learned[rows=32]");
    double   *w = weights_named(joint, "combine", &n);
    (void)state;
    assert_int_equal(n, (WIDTH + 6) * WIDTH);
    randomise(w, n, "combine");
    double *from = weights_named(joint, "table", &rows), *to = weights_named(sum, "table", &width);
    randomise(from, rows, "rows");
    product(to, from, w + WIDTH * WIDTH, 32, 6, WIDTH);
    from = weights_named(joint, "embedding", &rows);
    product(weights_named(sum, "embedding", &rows), from, w, PE_BYTES, WIDTH, WIDTH);
    assert_true(distance(joint, sum) < 1e-12);
}

static void a_concatenation_costs_its_matrix_and_nothing_else(void **state)
{
    pe_model *sum = create("learned[rows=32]"), *joint = create("learned[rows=32:combine=concat]");
    pe_model *wide   = create("sinusoidal[dim=40:combine=concat]"),
             *blocks = create("learned[rows=32:inject=blocks]");
    (void)state;
    assert_int_equal(pe_model_parameters(joint) - pe_model_parameters(sum), 2 * WIDTH * WIDTH);
    assert_int_equal(pe_model_encoding_parameters(joint),
                     pe_model_encoding_parameters(sum) + 2 * WIDTH * WIDTH);
    assert_int_equal(pe_model_encoding_parameters(wide), (WIDTH + 40) * WIDTH);
    assert_int_equal(pe_model_parameters(blocks), pe_model_parameters(sum));
    assert_true(joint->weights[joint->encoding_weight].decays &&
                joint->weights[joint->encoding_weight].trains);
    pe_model_free(sum);
    pe_model_free(joint);
    pe_model_free(wide);
    pe_model_free(blocks);
}

/* ---------------------------------------------------------------- in every block ------------ */

/* A model whose blocks have rows of their own: block 0 those of `first`, block 1 those of `second`; NULL:
   zeros. */
static pe_model *with_blocks(const char *first, const char *second)
{
    pe_model         *m       = create("learned[rows=32:dim=32:inject=blocks]");
    const char *const names[] = {first, second};
    double            one[LONG * WIDTH];
    int64_t           n;
    double           *table = weights_named(m, "table", &n);
    assert_int_equal(n, LONG * LAYERS * WIDTH);
    for (int l = 0; l < LAYERS; l++) {
        memset(one, 0, sizeof one);
        if (names[l])
            randomise(one, LONG * WIDTH, names[l]);
        for (int64_t s = 0; s < LONG; s++)
            memcpy(table + (s * LAYERS + l) * WIDTH, one + s * WIDTH, WIDTH * sizeof *one);
    }
    return m;
}

static pe_model *with_table(const char *spec, const char *name)
{
    int64_t   n;
    pe_model *m     = create(spec);
    double   *table = weights_named(m, "table", &n);
    assert_int_equal(n, LONG * WIDTH);
    randomise(table, n, name);
    return m;
}

static void rows_of_the_first_block_alone_are_a_sum_at_the_input(void **state)
{
    (void)state;
    assert_true(distance(with_blocks("p", NULL), with_table("learned[rows=32]", "p")) < 1e-12);
}

static void equal_rows_for_each_block_are_the_same_rows_for_all(void **state)
{
    (void)state;
    assert_true(distance(with_blocks("p", "p"), with_table("learned[rows=32:inject=blocks]", "p")) < 1e-12);
    assert_true(distance(with_table("learned[rows=32]", "p"),
                         with_table("learned[rows=32:inject=blocks]", "p")) > 1e-3);
}

/* With block 0 silent, x enters block 1 as it left the embedding: rows of block 1 act as rows of block 0
   would in a model whose block 0 is silent as well. And it matters which block has which. */
static void each_block_gets_its_own_rows(void **state)
{
    static const char *const silent[] = {"layer0.attention.out", "layer0.down"};
    pe_model                *late = with_blocks(NULL, "p"), *early = with_blocks("p", NULL);
    int64_t                  n;
    (void)state;
    for (int i = 0; i < 2; i++) {
        double *x = weights_named(late, silent[i], &n), *y = weights_named(early, silent[i], &n);
        memset(x, 0, (size_t)n * sizeof *x);
        memset(y, 0, (size_t)n * sizeof *y);
    }
    assert_true(distance(late, early) < 1e-12);
    assert_true(distance(with_blocks("p", "q"), with_blocks("q", "p")) > 1e-3);
    assert_true(distance(with_blocks(NULL, "p"), with_blocks("p", NULL)) > 1e-3);
}

/* With W = 0 and b = 0 a path stays where it starts: rows of a state per block, the same at every
   position. */
static void each_block_gets_its_own_state(void **state)
{
    int64_t   n, many;
    pe_model *paths = create("floater[positions=32:states=2:inject=blocks]"),
             *table = create("learned[rows=32:dim=32:inject=blocks]");
    double *starts = weights_named(paths, "y0", &n), *rows = weights_named(table, "table", &many);
    double *w1 = weights_named(paths, "W1", &n), *w2 = weights_named(paths, "W2", &many);
    (void)state;
    memset(w1, 0, (size_t)n * sizeof *w1);
    memset(w2, 0, (size_t)many * sizeof *w2);
    for (int s = 0; s < LONG; s++)
        memcpy(rows + s * LAYERS * WIDTH, starts, LAYERS * WIDTH * sizeof *rows);
    assert_true(distance(paths, table) < 1e-12);
}

/* ---------------------------------------------------------------- how they stand ------------ */

/* The mean over letters a, b (weights 1/4 and 3/4) and positions below L, from the definition. */
static double expected_cosine(const double *tokens, const double *rows, int64_t stride)
{
    double mean = 0;
    for (int c = 'a'; c <= 'b'; c++)
        for (int64_t s = 0; s < LENGTH; s++) {
            double ab = 0, aa = 0, bb = 0;
            for (int i = 0; i < WIDTH; i++) {
                ab += tokens[c * WIDTH + i] * rows[s * stride + i];
                aa += tokens[c * WIDTH + i] * tokens[c * WIDTH + i];
                bb += rows[s * stride + i] * rows[s * stride + i];
            }
            mean += (c == 'a' ? 0.25 : 0.75) / LENGTH * fabs(ab) / sqrt(aa) / sqrt(bb);
        }
    return mean;
}

static double measured_cosine(pe_model *m)
{
    double weight[PE_BYTES] = {0}, cosine;
    weight['a']             = 0.25;
    weight['b']             = 0.75;
    assert_int_equal(pe_model_cosine(m, &cosine, weight, NULL), POSENC_OK);
    return cosine;
}

static void the_cosine_is_of_the_two_vectors_whose_sum_enters_the_first_block(void **state)
{
    int64_t   n;
    double    tokens[PE_BYTES * WIDTH], rows[LONG * WIDTH];
    pe_model *sum = with_table("learned[rows=32]", "p"), *blocks = with_blocks("q", "p"),
             *joint = create("learned[rows=32:dim=6:combine=concat]"), *none = create("nope");
    (void)state;
    const double *e = weights_named(sum, "embedding", &n);
    assert_true(fabs(measured_cosine(sum) - expected_cosine(e, weights_named(sum, "table", &n), WIDTH)) <
                1e-14);
    assert_true(fabs(measured_cosine(blocks) -
                     expected_cosine(e, weights_named(blocks, "table", &n), LAYERS * WIDTH)) < 1e-14);
    double *w = weights_named(joint, "combine", &n);
    randomise(w, n, "combine");
    product(tokens, weights_named(joint, "embedding", &n), w, PE_BYTES, WIDTH, WIDTH);
    product(rows, weights_named(joint, "table", &n), w + WIDTH * WIDTH, LONG, 6, WIDTH);
    assert_true(fabs(measured_cosine(joint) - expected_cosine(tokens, rows, WIDTH)) < 1e-14);
    assert_true(isnan(measured_cosine(none)));
    pe_model_free(sum);
    pe_model_free(blocks);
    pe_model_free(joint);
    pe_model_free(none);
}

/* ---------------------------------------------------------------- in place of the embedding - */

/* A wave of frequency 0 and phase 0 is its amplitude, [r; 0]: the same as an embedding without positions. Its
   own embedding is then not read, not trained and not counted. */
static void rows_of_words_take_the_place_of_the_embedding(void **state)
{
    int64_t   n, own, unread;
    pe_model *waves = create("complex_order[sigma=0.5]"), *plain = create("nope");
    double   *r = weights_named(waves, "r", &own), *omega = weights_named(waves, "omega", &n),
           *to = weights_named(plain, "embedding", &unread);
    (void)state;
    assert_int_equal(2 * own, unread);
    assert_int_equal(pe_model_parameters(waves), pe_model_parameters(plain) - unread + 3 * own);
    randomise(weights_named(waves, "embedding", &unread), unread, "unread");
    memset(omega, 0, (size_t)n * sizeof *omega);
    memset(to, 0, (size_t)unread * sizeof *to);
    for (int c = 0; c < PE_BYTES; c++)
        memcpy(to + c * WIDTH, r + c * WIDTH / 2, WIDTH / 2 * sizeof *to);
    assert_true(isnan(measured_cosine(waves)));
    assert_true(distance(waves, plain) < 1e-12);
}

static void moving_a_word_turns_its_wave(void **state)
{
    int64_t   n;
    pe_model *waves = create("complex_order[sigma=0.5:omega_per_dim=no:omega_per_word=no]"),
             *still = create("complex_order[sigma=0.5:omega_per_dim=no:omega_per_word=no]");
    (void)state;
    *weights_named(still, "omega", &n) = 0;
    assert_int_equal(n, 1);
    assert_true(distance(waves, still) > 1e-3);
}

/* ---------------------------------------------------------------- refusals ------------------ */

static void refuse(const char *spec, posenc_status status, const char *words)
{
    pe_model    *m   = NULL;
    posenc_error err = {0};
    assert_int_equal(try_create(&m, spec, &err), status);
    assert_null(m);
    if (!strstr(err.message, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", spec, err.message, words);
}

static void what_does_not_fit_is_refused_with_its_mend(void **state)
{
    posenc_error          err    = {0};
    pe_model             *m      = NULL;
    const pe_model_config config = {.spec    = "nope",
                                    .L       = LENGTH,
                                    .d_model = WIDTH,
                                    .layers  = LAYERS,
                                    .heads   = HEADS,
                                    .batch   = BATCH,
                                    .entry   = {.combine = PE_CONCAT}};
    (void)state;
    refuse("sinusoidal[dim=8]", POSENC_ERROR_SHAPE, "combine=concat takes any");
    refuse("complex_order[combine=concat]", POSENC_ERROR_UNSUPPORTED, "take the place");
    refuse("learned_resize", POSENC_ERROR_UNSUPPORTED, "depend on the length of the whole input");
    pe_model_free(create("learned_resize[grid_out=32]"));
    refuse("sinusoidal[dim=48:inject=blocks]", POSENC_ERROR_SHAPE, "must have 16, or 32");
    assert_int_equal(pe_model_create(&m, &config, &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "does not act at the input"));
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_concatenation_begins_as_the_sum),
        cmocka_unit_test(a_concatenation_is_the_sum_of_two_products),
        cmocka_unit_test(a_concatenation_costs_its_matrix_and_nothing_else),
        cmocka_unit_test(rows_of_the_first_block_alone_are_a_sum_at_the_input),
        cmocka_unit_test(equal_rows_for_each_block_are_the_same_rows_for_all),
        cmocka_unit_test(each_block_gets_its_own_rows),
        cmocka_unit_test(each_block_gets_its_own_state),
        cmocka_unit_test(rows_of_words_take_the_place_of_the_embedding),
        cmocka_unit_test(moving_a_word_turns_its_wave),
        cmocka_unit_test(the_cosine_is_of_the_two_vectors_whose_sum_enters_the_first_block),
        cmocka_unit_test(what_does_not_fit_is_refused_with_its_mend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

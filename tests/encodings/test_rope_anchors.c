/* SPDX-License-Identifier: MIT */
/*
 * test_rope_anchors: numbers that determine the frequencies of the rotary family
 *
 * Computed elsewhere with 40 digits, printed with 15: wavelengths, the ends of YaRN's ramp and of llama3's
 * blend before they are rounded to whole pairs, the factors of the softmax, xPos's zeta, DINOv3's periods,
 * and the permutation that leads from one layout to the other. None of them is in the interface; each is
 * worked out from what a user sees, which is the rotation: a ramp's ends from two pairs on it, zeta from two
 * lengths of a rotated pair, the permutation from where channels go. The tolerance is a few of the last
 * printed digits, times what that working out loses, as said with each.
 */
#include "rope_case.h"

#include <posenc/files.h>
#include <stdio.h>
#include <string.h>

#define TAU 6.28318530717958648

static double frequency(const char *spec, int64_t D, int pair)
{
    turning      t = make(spec, D);
    const double w = t.pairs[pair].w;
    drop(&t);
    return w;
}

static void bases_have_their_frequencies_and_wavelengths(void **state)
{
    static const struct {
        const char *spec;
        int64_t     D;
        int         pair;
        double      w;
    } all[] = {{"rope", 128, 1, 0.865964323360065},
               {"rope", 128, 63, TAU / 54410.1431307767},
               {"rope[base=5e5]", 128, 1, 0.814617233856545},
               {"rope[base=5e5]", 128, 63, TAU / 2559195.51737136},
               {"rope[schedule=ntk:alpha=8]", 128, 0, 1},
               {"rope[base=100:schedule=period:axes=2:axis_rule=axial]", 64, 1, TAU / 1.33352143216332},
               {"rope[base=100:schedule=period:axes=2:axis_rule=axial]", 64, 15, TAU / 74.9894209332456},
               {"rope[base=100:schedule=period:axes=2:axis_rule=axial]", 64, 15, 0.0837876226937768}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_near(frequency(all[i].spec, all[i].D, all[i].pair), all[i].w, 5e-15, all[i].spec);
}

/* The last pair of NTK is slowed by alpha, whatever alpha. */
static void ntk_slows_its_last_pair_by_alpha_and_its_first_not_at_all(void **state)
{
    (void)state;
    for (double alpha = 2; alpha < 1e4; alpha *= 7) {
        char spec[64];
        snprintf(spec, sizeof spec, "rope[schedule=ntk:alpha=%.17g]", alpha);
        assert_true(frequency(spec, 128, 0) == 1);
        assert_near(frequency(spec, 128, 63) * alpha, frequency("rope", 128, 63), 5e-15, spec);
    }
}

/* ---- YaRN ---- */

/* How far pair m is slowed: 0 not at all, 1 by the whole factor. */
static double ramp_at(const turning *t, const turning *plain, double factor, int m)
{
    return (1 - t->pairs[m].w / plain->pairs[m].w) / (1 - 1 / factor);
}

/* The ramp is a straight line: two pairs on it tell where it is 0 and 1. */
static void ends_of_ramp(const char *spec, const char *plain_spec, int64_t D, double factor, double ends[2])
{
    turning t = make(spec, D), plain = make(plain_spec, D);
    int     first = 0, last = (int)t.M - 1;
    while (ramp_at(&t, &plain, factor, first) < 1e-9)
        first++;
    while (ramp_at(&t, &plain, factor, last) > 1 - 1e-9)
        last--;
    assert_true(last > first);
    const double low = ramp_at(&t, &plain, factor, first), high = ramp_at(&t, &plain, factor, last),
                 step = (high - low) / (last - first);
    ends[0]           = first - low / step;
    ends[1]           = last + (1 - high) / step;
    drop(&t), drop(&plain);
}

/* A ramp's value is 1e-16 off, its end that over the step: some 10 to 17 pairs, hence 1e-13 relative. */
static void yarn_s_ramp_ends_where_models_have_it(void **state)
{
    static const struct {
        const char *base;
        int64_t     D;
        int         original;
        double      factor, raw[2], whole[2];
    } all[] = {
        {"1e4", 64, 4096, 40, {10.4722408103180, 22.5134406368773}, {10, 23}},  /* DeepSeek-V3 */
        {"1e6", 128, 32768, 4, {23.5959476083381, 39.6508807104171}, {23, 40}}, /* Qwen2.5, Qwen3 */
        {"1.5e5", 64, 4096, 32, {8.09277911551240, 17.3980245015886}, {8, 18}}, /* gpt-oss */
        {"5e5", 128, 8192, 8, {18.0811350343376, 34.9841190014724}, {18, 35}},  /* OLMo 3 */
        {"5e4", 64, 4096, 32, {8.91449896522401, 19.1645748886269}, {8, 20}},
        {"1e4", 64, 8192, 36, {12.8804807756299, 24.9216806021891}, {12, 25}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int truncate = 0; truncate < 2; truncate++) {
            char   spec[160], plain[64];
            double ends[2];
            snprintf(plain, sizeof plain, "rope[base=%s]", all[i].base);
            snprintf(spec, sizeof spec,
                     "rope[base=%s:schedule=yarn:factor=%g:original_length=%d:truncate=%s]", all[i].base,
                     all[i].factor, all[i].original, truncate ? "yes" : "no");
            ends_of_ramp(spec, plain, all[i].D, all[i].factor, ends);
            for (int e = 0; e < 2; e++)
                assert_near(ends[e], truncate ? all[i].whole[e] : all[i].raw[e], 2e-13, spec);
        }
}

static double magnitude(const char *spec)
{
    turning      t = make(spec, 64);
    const double m = t.magnitude;
    drop(&t);
    return m;
}

static void magnitudes_squared_are_what_scores_are_multiplied_by(void **state)
{
#define BY_FACTOR "rope[schedule=yarn:original_length=4096:factor="
    const double deepseek = magnitude(BY_FACTOR "40]"),
                 v2       = magnitude(BY_FACTOR "40:magnitude_rule=deepseek:mscale=0.707]");
    (void)state;
    assert_near(deepseek * deepseek, 1.87385420709263, 5e-15, "g(40, 1) squared");
    assert_near(deepseek * deepseek / sqrt(192), 0.135233778860880, 5e-15, "g(40, 1) squared / sqrt(192)");
    assert_near(v2 * v2, 1.58962616512087, 5e-15, "g(40, 0.707) squared");
#undef BY_FACTOR
}

/* DeepSeek-V3 puts the factor into the softmax, and none on cosine and sine. */
static void deepseek_v3_scales_its_scores_by_the_squared_magnitude(void **state)
{
    posenc_model *model;
    posenc_error  err;
    (void)state;
    if (posenc_model_read(&model, POSENC_SOURCE_DIR "/tests/golden/configs/deepseek_v3.json", &err))
        fail_msg("%s", err.message);
    const posenc_model_group *g = posenc_model_group_at(model, 0);
    assert_near(posenc_model_fact(g, "score_scale")->real, 0.135233778860880, 5e-15, "score_scale");
    assert_true(posenc_model_fact(g, "magnitude")->real == 1);
    posenc_model_free(model);
}

/* ---- llama3 ---- */

/* Turns within the original length of a blended pair, from its frequency, and from there the pair that has
   `turns`. The blend loses a digit where 1 - 1/factor divides, and the logarithm little. */
static double pair_of_turns(const char *spec, int64_t D, double factor, int m, double turns)
{
    const double w = frequency("rope[base=5e5]", D, m);
    const double s = (frequency(spec, D, m) / w - 1 / factor) / (1 - 1 / factor), has = 1 + 3 * s;
    return m + (double)D * log(has / turns) / (2 * log(5e5));
}

static void llama3_blends_between_the_same_pairs_as_meta_s_code(void **state)
{
    static const struct {
        int64_t D;
        double  factor;
        int     pair;
        double  high, low; /* pairs that turn 4 times and once within 8192 */
    } all[] = {{128, 8, 29, 28.2229254146185, 34.9841190014724},
               {128, 8, 34, 28.2229254146185, 34.9841190014724},
               {64, 32, 15, 14.1114627073092, 17.4920595007362},
               {64, 32, 17, 14.1114627073092, 17.4920595007362}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char spec[160];
        snprintf(spec, sizeof spec,
                 "rope[base=5e5:schedule=llama3:factor=%g:low_freq_factor=1:high_freq_factor=4:original_"
                 "length=8192]",
                 all[i].factor);
        assert_near(pair_of_turns(spec, all[i].D, all[i].factor, all[i].pair, 4), all[i].high, 1e-14, spec);
        assert_near(pair_of_turns(spec, all[i].D, all[i].factor, all[i].pair, 1), all[i].low, 1e-14, spec);
    }
}

/* ---- xPos ---- */

/* The logarithm of how long pair i becomes at p; a query's factor is zeta^(p/512). */
static double length_at(turning *t, double p, int i)
{
    double c, s;
    turn_one(t, p, i, &c, &s);
    return hypot(c, s);
}

static void xpos_shrinks_each_pair_by_its_zeta(void **state)
{
    static const struct {
        int    pair;
        double zeta;
    } all[]   = {{0, 0.285714285714286}, {1, 0.296875}, {63, 0.988839285714286}};
    turning t = make("xpos", 128);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_near(length_at(&t, 512, all[i].pair), all[i].zeta, 5e-15, "zeta");
    assert_near(length_at(&t, 100, 0), 0.782954834501328, 5e-15, "zeta_0^(100/512)");
    drop(&t);
    t = make("xpos[center=512]", 128);
    assert_near(length_at(&t, 512, 0), 1, 5e-15, "at the centre");
    assert_near(length_at(&t, 612, 0), 0.782954834501328, 5e-15, "100 after the centre");
    drop(&t);
}

/* ---- from one layout to the other ---- */

enum { MOST = 512 };

/* At position 0 nothing rotates: what remains is the order of the channels. Which channel of the input each
   of the result has. */
static void order_of(const char *spec, int D, int from[MOST])
{
    double       row[MOST];
    posenc_error err;
    turning      t = make(spec, D);
    for (int c = 0; c < D; c++)
        row[c] = c;
    const posenc_tensor x = posenc_tensor_contiguous(row, POSENC_DTYPE_F64, 4, (const int64_t[]){1, 1, 1, D});
    const posenc_rotate_io io = {
        .size = sizeof io, .q = x, .to_q = x, .q_pos = posenc_positions_range(0, 1), .direction = 1};
    if (posenc_rotate(t.plan, &io, &t.work, &err))
        fail_msg("%s", err.message);
    for (int c = 0; c < D; c++)
        from[c] = (int)row[c];
    drop(&t);
}

static const char to_interleaved[] = "rope[layout=half:layout_out=interleaved]",
                  to_half[]        = "rope[layout=interleaved:layout_out=half]";

static void layouts_lead_to_each_other_by_a_shuffle(void **state)
{
    static const int interleaved[] = {0, 4, 1, 5, 2, 6, 3, 7}, half[] = {0, 2, 4, 6, 1, 3, 5, 7};
    int              from[MOST];
    (void)state;
    order_of(to_interleaved, 8, from);
    assert_memory_equal(from, interleaved, sizeof interleaved);
    order_of(to_half, 8, from);
    assert_memory_equal(from, half, sizeof half);
}

/* How often a shuffle must be done to have done nothing. */
static int times_until_nothing_is_moved(const int from[MOST], int D)
{
    int at[MOST], times = 0, moved;
    for (int c = 0; c < D; c++)
        at[c] = c;
    do {
        moved = 0;
        for (int c = 0; c < D; c++) {
            at[c] = from[at[c]];
            moved += at[c] != c;
        }
        times++;
    } while (moved);
    return times;
}

/* Weights that were permuted twice are not those from before: the shuffle is no inverse of itself. */
static void shuffles_come_back_after_their_order(void **state)
{
    static const struct {
        int D, order;
    } all[] = {{8, 3},   {16, 4},  {32, 5},   {64, 6},  {80, 39},
               {96, 36}, {128, 7}, {192, 95}, {256, 8}, {512, 9}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int there[MOST], back[MOST];
        order_of(to_interleaved, all[i].D, there);
        order_of(to_half, all[i].D, back);
        assert_int_equal(times_until_nothing_is_moved(there, all[i].D), all[i].order);
        assert_int_equal(times_until_nothing_is_moved(back, all[i].D), all[i].order);
        for (int c = 0; c < all[i].D; c++)
            assert_int_equal(there[back[c]], c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bases_have_their_frequencies_and_wavelengths),
        cmocka_unit_test(ntk_slows_its_last_pair_by_alpha_and_its_first_not_at_all),
        cmocka_unit_test(yarn_s_ramp_ends_where_models_have_it),
        cmocka_unit_test(magnitudes_squared_are_what_scores_are_multiplied_by),
        cmocka_unit_test(deepseek_v3_scales_its_scores_by_the_squared_magnitude),
        cmocka_unit_test(llama3_blends_between_the_same_pairs_as_meta_s_code),
        cmocka_unit_test(xpos_shrinks_each_pair_by_its_zeta),
        cmocka_unit_test(layouts_lead_to_each_other_by_a_shuffle),
        cmocka_unit_test(shuffles_come_back_after_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_formulas: every encoding and setting of attention against the formula of its paper
 *
 * The oracle is formulas.h, a loop over pairs in double. Scores, outputs and log-sum-exp of the reference
 * executor must be its numbers to 1e-12 of the largest; gradients of the reference must be finite differences
 * of the oracle's loss, not of the executor's own forward; the tiled executor must agree within what float
 * can hold of scores of that size. Shapes have grouped heads, Dv other than D, one query, one key, lengths on
 * both sides of a tile's edge, and more channels than rooms take at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "differences.h"
#include "formulas.h"
#include "workspace.h"

static double shaw_value_row_or_none(const pair *x) /* min_distance=-4:max_distance=2:beyond=zero */
{
    return -x->t < -4 || -x->t > 2 ? -1 : -x->t + 4;
}

static const told encodings[] = {
    {"nope", plain, 0, 0, 0, 0, 0},
    {"nope[scale=0.3]", plain_by_three_tenths, 0, 0, 0, 0, 0},
    {"alibi", alibi, 0, 0, 0, 0, 0},
    {"alibi[form=key_shifted:learned=yes]", alibi_shifted, 0, 0, 0, 0, 0},
    {"kerple_log", kerple_log, 0, 0, 0, 0, 0},
    {"kerple_power", kerple_power, 0, 0, 0, 0, 0},
    {"t5[num_buckets=8:max_distance=20]", t5_both, 0, 0, 0, 0, 0},
    {"t5[num_buckets=9:max_distance=20]", t5_both, 0, 0, 0, 0, 0}, /* the ninth class is not used */
    {"t5[num_buckets=7:max_distance=30:bidirectional=no]", t5_past, 0, 0, 0, 0, 0},
    {"sandwich[d_bar=10]", sandwich, 0, 0, 0, 0, 0},
    {"relative_table[max_relative=3]", relative_table, 0, 0, 0, 0, 0},
    {"relative_table[min_distance=-2:max_distance=5]", relative_table_ends, 0, 0, 0, 0, 0},
    {"toeplitz[first=-90:count=200]", toeplitz, 0, 0, 0, 0, 0},
    {"dense_bias", dense_own, 0, 0, 0, 0, 0},
    {"dense_bias[heads=shared]", dense_shared, 0, 0, 0, 0, 0},
    {"absolute_distance[grid=80x1]", absolute_line, 0, 0, 0, 0, 1},
    {"absolute_distance[grid=9x8]", absolute_grid, 0, 0, 0, 0, 1},
    {"absolute_distance[grid=9x8:divide=no]", absolute_grid_plain, 0, 0, 0, 0, 1},
    {"swin[window=9x8]", swin, 0, 0, 0, 0, 1},
    {"decomposed[grid=9x8]", decomposed, 0, 0, 0, 0, 1},
    {"swin_v2[window=9x8:mlp_width=5:sigma=0.5]", swin_v2, 0, 0, 0, 0, 1},
    {"swin_v2[window=9x8:pretrained_window=4x5:mlp_width=5:sigma=0.5]", swin_v2_larger, 0, 0, 0, 0, 1},
    {"fire[init_L=4:mlp_width=5]", fire, 0, 0, 0, 0, 1},
    {"shaw[max_relative=3]", shaw, 0, "rv", shaw_value_row, 0, 0},
    {"shaw[max_relative=3:per_head=yes]", shaw, 0, "rv", shaw_value_row, 0, 0},
    {"shaw[max_relative=3:values=no]", shaw, 0, 0, 0, 0, 0},
    {"shaw[min_distance=-4:max_distance=2:beyond=zero]", shaw_zero, 0, "rv", shaw_value_row_or_none, 0, 0},
    {"huang_m4[max_positions=90]", huang, 0, 0, 0, 0, 0},
    {"huang_m4[max_positions=90:key_term=no]", huang_query, 0, 0, 0, 0, 0},
    {"transformer_xl[sigma=0.4]", transformer_xl, 0, 0, 0, 0, 0},
    {"transformer_xl[clamp_len=3:sigma=0.4]", transformer_xl_clamped, 0, 0, 0, 0, 0},
    {"xlnet[clamp_len=3:sigma=0.4]", xlnet, 0, 0, 0, 0, 0},
    {"deberta[span=4:sigma=0.5]", deberta, 0, 0, 0, 0, 0},
    {"deberta[span=4:sigma=0.5:p2c_index=paper]", deberta_paper, 0, 0, 0, 0, 0},
    {"deberta[span=4:sigma=0.5:terms=c2p]", deberta_c2p, 0, 0, 0, 0, 0},
    {"deberta[span=4:sigma=0.5:terms=p2c]", deberta_p2c, 0, 0, 0, 0, 0},
    {"deberta[position_buckets=6:max_relative_positions=20:projected=no:sigma=0.5:biases=both:norm_rel_ebd="
     "yes]",
     deberta_v3, 0, 0, 0, 0, 0},
    {"tupe[rows=90:sigma=0.5]", tupe, 0, 0, 0, 0, 1},
    {"tupe[rows=90:sigma=0.5:cls=no]", tupe_without_cls, 0, 0, 0, 0, 1},
    {"tupe[rows=90:sigma=0.5:relative=yes:num_buckets=8:max_distance=20]", tupe_relative, 0, 0, 0, 0, 1},
    {"urpe[index_offset=79]", urpe, urpe_gate, 0, 0, 0, 0},
    {"urpe[index_offset=79:bias=none]", plain, urpe_gate, 0, 0, 0, 0},
    {"kerple_log+urpe[index_offset=79]", kerple_log, urpe_gate, 0, 0, 0, 0},
    {"cope[npos=8]", cope, 0, 0, 0, 1, 0},
    {"cope[npos=8:scaling=paper]", cope_paper, 0, 0, 0, 1, 0},
    {"complex_order_attention", complex_plain, 0, 0, 0, 0, 0},
    {"complex_order_attention[conjugate=yes]", complex_conjugate, 0, 0, 0, 0, 0},
    {"rope", rope, 0, 0, 0, 0, 0},
    {"rope[layout=half:dim=4]", rope_half, 0, 0, 0, 0, 0},
    {"rope+alibi", rope_alibi, 0, 0, 0, 0, 0},
    {"rope[q_phase=0.7:phase_heads=odd]", rope_odd_phase, 0, 0, 0, 0, 0},
    {"rope[map=rerope:map_window=3]", rope_rerope, 0, 0, 0, 0, 0},
    {"rope[map=leaky_rerope:map_window=3:map_factor=4]", rope_leaky, 0, 0, 0, 0, 0},
    {"rope[map=self_extend:map_window=5:map_factor=2]", rope_self_extend, 0, 0, 0, 1, 1},
    {"rope[map=dca:map_chunk=5:map_local=1]", rope_dca, 0, 0, 0, 1, 1},
    {"rope[content=position]", rope_by_position, 0, 0, 0, 0, 0},
    {"rope[content=angle]", rope_by_angle, 0, 0, 0, 0, 0},
    {"rope[content=step]", rope_by_step, 0, 0, 0, 0, 0},
    {"pope", pope, 0, 0, 0, 0, 0},
    {"fox", fox, 0, 0, 0, 1, 0},
    {"path", path, 0, 0, 0, 1, 0},
    {"wall", wall, 0, 0, 0, 1, 0},
    {"stick_breaking", plain, 0, 0, 0, 1, 0},
    {"alibi+stick_breaking[attend_current=yes]", alibi, 0, 0, 0, 1, 0},
    {"rope+stick_breaking[remainder=self]", rope, 0, 0, 0, 1, 0},
    {"wall[gate=yes]", wall_with_gates, 0, 0, 0, 1, 0},
    {"path[gate=plain]", path_with_gates, 0, 0, 0, 1, 0},
    {"path[gate=scaled]", path_with_scaled_gates, 0, 0, 0, 1, 0},
    {"inkling[extent=40:width=3:sigma=0.5]", inkling, 0, 0, 0, 0, 0},
    {"inkling[extent=5:width=18:per_head=yes:sigma=0.5]", inkling_heads, 0, 0, 0, 0, 0},
    {"fox[gate_of=key]", fox_of_keys, 0, 0, 0, 1, 0},
    {"fox[bidirectional=yes]", fox_both, 0, 0, 0, 0, 0},
    {"fox[form=constant]", fox_constant, 0, 0, 0, 1, 0},
    {"xpos[scale_base=20]", xpos, 0, 0, 0, 1, 0},
};

static const posenc_dims shapes[] = {
    {.B = 2, .H = 4, .G = 2, .Lq = 5, .Lk = 7, .D = 6, .Dv = 4, .d_model = 8, .L = 80},
    {.B = 2, .H = 3, .G = 1, .Lq = 1, .Lk = 1, .D = 4, .Dv = 7, .d_model = 6, .L = 80},
    {.B = 1, .H = 2, .G = 1, .Lq = 1, .Lk = 65, .D = 4, .Dv = 5, .d_model = 8, .L = 80},
    {.B = 1, .H = 2, .G = 2, .Lq = 64, .Lk = 63, .D = 8, .Dv = 4, .d_model = 8, .L = 80},
    {.B = 1, .H = 2, .G = 1, .Lq = 3, .Lk = 4, .D = 72, .Dv = 5, .d_model = 72, .L = 80},
};

static const int masks[] = {POSENC_MASK_NONE, POSENC_MASK_CAUSAL,
                            POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING,
                            POSENC_MASK_CAUSAL | POSENC_MASK_EXPLICIT, POSENC_MASK_SEGMENTS};

enum {
    ENCODINGS = sizeof encodings / sizeof *encodings,
    SHAPES    = sizeof shapes / sizeof *shapes,
    MASKS     = sizeof masks / sizeof *masks
};

static attention_case make(const told *f, const posenc_dims *d, int mask, uint64_t seed)
{
    attention_case c = case_make(f->spec, *d, seed);
    c.options.mask   = mask | (f->is_causal ? POSENC_MASK_CAUSAL : 0);
    c.options.window = c.options.mask & POSENC_MASK_WINDOW ? 6 : 0;
    if (f->from_zero && c.q_pos.start < 0)
        c.q_pos.start = 0;
    keep_away_from_zero(&c);
    return c;
}

/* The largest score of the problem, at least 1: what float loses of a weight. */
static double steepest(const told *f, const attention_case *c)
{
    const posenc_dims *d    = &c->dims;
    double             most = 1;
    for (int64_t n = 0; n < d->B * d->H * d->Lq * d->Lk; n++) {
        const pair x =
            pair_at(c, n / d->Lk / d->Lq / d->H, n / d->Lk / d->Lq % d->H, n / d->Lk % d->Lq, n % d->Lk);
        most = fmax(most, is_seen(&x) ? fabs(f->score(&x)) : 0);
    }
    return most;
}

/* ---- scores ---- */

static void scores_of(const attention_case *c, const array *to)
{
    posenc_plan     *plan;
    posenc_error     err;
    posenc_tensor    params[CASE_PARAMS], S = array_tensor(to, 1);
    posenc_attend_in in = case_in(c, 1, params);
    if (posenc_plan_create(&plan, c->e, &c->dims, &c->options, &err))
        case_stop("plan", c, &err);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_SCORES);
    if (posenc_scores(plan, &in, &S, &work, &err))
        case_stop("scores", c, &err);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
}

static void scores_are_the_formula_of_every_pair(void **state)
{
    (void)state;
    for (int e = 0; e < ENCODINGS; e++)
        for (int s = 0; s < SHAPES; s++) {
            const posenc_dims *d    = &shapes[s];
            attention_case     c    = make(&encodings[e], d, POSENC_MASK_NONE, (uint64_t)(10 * e + s));
            array              S    = array_make4(d->B, d->H, d->Lq, d->Lk);
            const double       most = steepest(&encodings[e], &c);
            scores_of(&c, &S);
            for (int64_t n = 0; n < S.count; n++) {
                const int64_t i = n / d->Lk % d->Lq, h = n / d->Lk / d->Lq % d->H;
                const pair    x = pair_at(&c, n / d->Lk / d->Lq / d->H, h, i, n % d->Lk);
                if ((!encodings[e].is_causal || x.t >= 0) &&
                    !(fabs(S.wide[n] - encodings[e].score(&x)) <= 1e-12 * most))
                    fail_msg("%s, shape %d: the score at %s is %.15g; its formula says %.15g",
                             encodings[e].spec, s, array_place(&S, n, "item,head,query,key"), S.wide[n],
                             encodings[e].score(&x));
            }
            array_free(&S);
            case_free(&c);
        }
}

/* ---- outputs ---- */

static void compare_outputs(const told *f, const attention_case *c, int wide, double tolerance)
{
    const posenc_dims *d = &c->dims;
    attention_result   r = case_run(c, wide);
    double             o[16];
    tolerance *= wide ? 1 : steepest(f, c);
    for (int64_t row = 0; row < r.lse.count; row++) {
        const double lse = formula_row(f, c, row, o);
        const double got = wide ? r.lse.wide[row] : (double)r.lse.narrow[row];
        if (isinf(lse) ? got != lse : !(fabs(got - lse) <= tolerance * fmax(1, fabs(lse))))
            fail_msg("%s, mask %s, %s: lse at %s is %.15g; the formula says %.15g", f->spec,
                     mask_text(c->options.mask), wide ? "reference" : "tiled",
                     array_place(&r.lse, row, "item,head,query"), got, lse);
        for (int64_t e = 0; e < d->Dv; e++) {
            const int64_t n = row * d->Dv + e;
            const double  y = wide ? r.o.wide[n] : (double)r.o.narrow[n];
            if (!(fabs(y - o[e]) <= tolerance * 10))
                fail_msg("%s, mask %s, %s: o at %s is %.15g; the formula says %.15g", f->spec,
                         mask_text(c->options.mask), wide ? "reference" : "tiled",
                         array_place(&r.o, n, "item,head,query,channel"), y, o[e]);
        }
    }
    result_free(&r);
}

/* Each encoding with every mask, on one shape after the other. */
static void outputs_are_the_formula_on_both_executors(void **state)
{
    (void)state;
    for (int e = 0; e < ENCODINGS; e++)
        for (int m = 0; m < MASKS; m++) {
            const posenc_dims *d = &shapes[(e + m) % SHAPES];
            attention_case     c = make(&encodings[e], d, masks[m], (uint64_t)(100 + 10 * e + m));
            compare_outputs(&encodings[e], &c, 1, 1e-12);
            compare_outputs(&encodings[e], &c, 0, 1e-6);
            case_free(&c);
        }
}

/* ---- gradients ---- */

static double formula_loss(const told *f, const attention_case *c)
{
    const posenc_dims *d   = &c->dims;
    double             sum = 0, o[16];
    for (int64_t row = 0; row < d->B * d->H * d->Lq; row++) {
        formula_row(f, c, row, o);
        sum += dot(o, c->dout.wide + row * d->Dv, d->Dv);
    }
    return sum;
}

/* Some numbers of x, the one with the largest gradient among them: the reference says what differences of the
   formula say, and the tiled executor the same in float. */
static void compare_slopes(const told *f, attention_case *c, array *x, const array gradient[2],
                           const char *name)
{
    const double  scale = fmax(largest(&gradient[1], NULL), 1e-2), steep = steepest(f, c);
    const int64_t every = x->count > SAMPLES ? x->count / SAMPLES : 1;
    for (int64_t i = 0; i < x->count; i++) {
        const double start = x->wide[i], got = gradient[1].wide[i];
        if (i % every != 0 && fabs(got) < scale)
            continue;
        x->wide[i]         = start + STEP;
        const double above = formula_loss(f, c);
        x->wide[i]         = start - STEP;
        const double slope = (above - formula_loss(f, c)) / (2 * STEP);
        x->wide[i]         = start;
        if (!(fabs(slope - got) <= TOLERANCE * scale))
            fail_msg(
                "%s, mask %s: gradient of %s at %d: backward says %.12g, differences of the formula %.12g",
                f->spec, mask_text(c->options.mask), name, (int)i, got, slope);
    }
    for (int64_t i = 0; i < x->count; i++)
        if (!(fabs((double)gradient[0].narrow[i] - gradient[1].wide[i]) <= 2e-5 * steep * scale))
            fail_msg("%s, mask %s: gradient of %s at %d: tiled %.9g, reference %.9g", f->spec,
                     mask_text(c->options.mask), name, (int)i, (double)gradient[0].narrow[i],
                     gradient[1].wide[i]);
}

static void compare_all_slopes(const told *f, attention_case *c)
{
    attention_result r[2] = {case_run(c, 0), case_run(c, 1)};
    compare_slopes(f, c, &c->q, (array[]){r[0].dq, r[1].dq}, "q");
    compare_slopes(f, c, &c->k, (array[]){r[0].dk, r[1].dk}, "k");
    compare_slopes(f, c, &c->v, (array[]){r[0].dv, r[1].dv}, "v");
    for (int i = 0; i < c->param_count; i++)
        compare_slopes(f, c, &c->params[i], (array[]){r[0].dparams[i], r[1].dparams[i]},
                       posenc_param_name(c->e, i));
    result_free(&r[0]), result_free(&r[1]);
}

static void gradients_are_slopes_of_the_formula(void **state)
{
    (void)state;
    for (int e = 0; e < ENCODINGS; e++)
        for (int m = 0; m < MASKS; m++) {
            attention_case c = make(&encodings[e], &shapes[m % 2], masks[m], (uint64_t)(700 + 10 * e + m));
            compare_all_slopes(&encodings[e], &c);
            case_free(&c);
        }
}

/* Positions of two packed texts, each counted from 0, and of a text whose padding lies at the left. */
static void positions_of_each_item_are_its_own(void **state)
{
    static int64_t q[] = {0, 1, 2, 0, 1, 0, 0, 0, 1, 2}, k[] = {0, 1, 2, 3, 0, 1, 2, 0, 0, 0, 1, 2, 3, 4};
    /* anew in each segment, where running sums count tokens by positions that rise */
    static int64_t rising_q[] = {0, 1, 0, 1, 0, 2, 3, 0, 1, 0},
                   rising_k[] = {0, 1, 2, 0, 1, 0, 1, 0, 2, 3, 1, 2, 0, 5};
    const posenc_dims *d      = &shapes[0];
    (void)state;
    for (int e = 0; e < ENCODINGS; e++) {
        attention_case c       = make(&encodings[e], d, POSENC_MASK_SEGMENTS, (uint64_t)(900 + e));
        const int      rises   = c.token_count > 0 || strstr(encodings[e].spec, "remainder=self");
        const int64_t  size[2] = {d->B, d->Lq};
        c.q_pos =
            posenc_positions_array(posenc_tensor_contiguous(rises ? rising_q : q, POSENC_DTYPE_I64, 2, size));
        c.k_pos = posenc_positions_array(
            posenc_tensor_contiguous(rises ? rising_k : k, POSENC_DTYPE_I64, 2, (int64_t[]){d->B, d->Lk}));
        compare_outputs(&encodings[e], &c, 1, 1e-12);
        compare_outputs(&encodings[e], &c, 0, 1e-6);
        compare_all_slopes(&encodings[e], &c);
        case_free(&c);
    }
}

/* NEZHA's tables: sines and cosines of the distance, or of the number of the row. */
static void sinusoidal_tables_are_those_of_nezha(void **state)
{
    static const char *const specs[] = {"shaw[max_relative=3:table=sinusoidal]",
                                        "shaw[max_relative=3:table=sinusoidal:sinusoid_of=row]"};
    const posenc_dims        d       = {.B = 1, .H = 2, .G = 2, .Lq = 9, .Lk = 9, .D = 6, .Dv = 8};
    (void)state;
    for (int s = 0; s < 2; s++) {
        posenc_encoding *e;
        array            a[2] = {array_make(2, (int64_t[]){7, d.D}), array_make(2, (int64_t[]){7, d.Dv})};
        posenc_tensor    params[2] = {array_tensor(&a[0], 1), array_tensor(&a[1], 1)};
        assert_int_equal(posenc_encoding_create(&e, specs[s], NULL, NULL), POSENC_OK);
        assert_int_equal(posenc_param_init(e, &d, params, 1, NULL), POSENC_OK);
        for (int p = 0; p < 2; p++)
            for (int64_t n = 0; n < a[p].count; n++) {
                const int64_t channel = n % a[p].shape[1], row = n / a[p].shape[1];
                const double  of    = (double)(s ? row : row - 3);
                const double  angle = of / pow(10000, (double)(channel / 2 * 2) / (double)a[p].shape[1]);
                assert_true(fabs(a[p].wide[n] - (channel % 2 ? cos(angle) : sin(angle))) < 1e-15);
                assert_false(posenc_param_trainable(e, p));
            }
        array_free(&a[0]), array_free(&a[1]);
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_the_formula_of_every_pair),
        cmocka_unit_test(outputs_are_the_formula_on_both_executors),
        cmocka_unit_test(gradients_are_slopes_of_the_formula),
        cmocka_unit_test(positions_of_each_item_are_its_own),
        cmocka_unit_test(sinusoidal_tables_are_those_of_nezha),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

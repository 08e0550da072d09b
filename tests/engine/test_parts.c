/* SPDX-License-Identifier: MIT */
/*
 * test_parts: few queries against many keys, in memory that does not grow with them
 *
 * Of every encoding: what one query asks for at 131072 keys; and what a few queries give, part by part, on
 * both executors, against the reference with more queries at once, which is not cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_case.h"

enum { FEW = POSENC_DECODE_QUERIES, MANY = FEW + 1, KEYS = 1000, LONG = 2500 };

/* What is computed: outputs, or scores; with parameters that are bound. */
enum { OUTPUTS, SCORES = 1, BOUND = 2 };

static posenc_options options_of(const posenc_encoding_info *info, posenc_executor executor, int mask)
{
    posenc_options o = posenc_options_default();
    o.executor       = executor;
    o.threads        = 2;
    o.window         = mask & POSENC_MASK_WINDOW ? 700 : 0;
    o.mask           = mask | (info->causal_only ? POSENC_MASK_CAUSAL : 0);
    return o;
}

static posenc_plan *plan_of(const posenc_encoding *e, const posenc_dims *dims, const posenc_options *options)
{
    posenc_plan *plan;
    posenc_error err;
    if (posenc_plan_create(&plan, e, dims, options, &err))
        fail_msg("%s: %s", posenc_encoding_spec(e), err.message);
    return plan;
}

/* The settings of an encoding for positions below `length`. */
static const char *spec_of(const posenc_encoding_info *info, int64_t length)
{
    static char text[256];
    char        own[64] = "";
    if (!strcmp(info->name, "huang_m4"))
        snprintf(own, sizeof own, "max_positions=%lld", (long long)length);
    const char *settings = info->at_length ? info->at_length : own;
    snprintf(text, sizeof text, "%s[%s]", info->name, settings);
    if (!*settings)
        snprintf(text, sizeof text, "%s", info->name);
    return text;
}

static posenc_encoding *encoding_of(const posenc_encoding_info *info, const char *settings)
{
    posenc_encoding *e;
    posenc_error     err;
    if (posenc_encoding_create(&e, info->name, settings, &err))
        fail_msg("%s: %s", info->name, err.message);
    return e;
}

/* ---- asked for ---- */

static void assert_within(const posenc_encoding *e, const posenc_plan *plan, int64_t Lq, int threads,
                          posenc_run run)
{
    static const posenc_dtype types[] = {POSENC_DTYPE_F32, POSENC_DTYPE_BF16, POSENC_DTYPE_F64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        posenc_sizes s     = posenc_sizes_default();
        s.Lq               = Lq;
        s.threads          = threads;
        s.dtype            = types[t];
        const size_t bytes = posenc_plan_workspace(plan, run, &s);
        if (bytes > (size_t)threads << 20)
            fail_msg("%s: %zu bytes for %d queries and %d threads, run %d, type %d", posenc_encoding_spec(e),
                     bytes, (int)Lq, threads, (int)run, (int)types[t]);
    }
}

/* With a parameter of d_model x H*D, 67 MB in float here, which no number of a few queries needs whole. */
static int has_a_long_parameter(const posenc_encoding_info *info)
{
    return !strcmp(info->name, "transformer_xl") || !strcmp(info->name, "xlnet");
}

static void assert_few_ask_little(const posenc_encoding_info *info, const char *settings)
{
    const posenc_dims    dims    = {.B = 1, .H = 32, .G = 8, .Lq = FEW, .Lk = 131072, .D = 128};
    posenc_encoding     *e       = encoding_of(info, settings);
    const posenc_options options = options_of(info, POSENC_EXECUTOR_AUTO, 0);
    posenc_plan         *plan    = plan_of(e, &dims, &options);
    for (int threads = 1; threads <= 4; threads++)
        for (int64_t Lq = 1; Lq <= (has_a_long_parameter(info) ? FEW : 1); Lq++) {
            assert_within(e, plan, Lq, threads, POSENC_RUN_DECODE);
            assert_within(e, plan, Lq, threads, POSENC_RUN_ATTEND);
            assert_within(e, plan, Lq, threads, POSENC_RUN_SCORES);
        }
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

/* With default settings, and with those of a model of 512 tokens: larger tables, parameters by themselves. */
static void one_query_asks_at_most_1_mib_a_thread_with_any_encoding(void **state)
{
    const posenc_dims model = {.B = 1, .H = 32, .G = 8, .Lq = 512, .Lk = 512, .D = 128, .L = 512};
    char              small[256];
    posenc_error      err;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place == POSENC_PLACE_INPUT)
            continue;
        if (posenc_small_model(info->name, &model, POSENC_MASK_CAUSAL, small, sizeof small, &err))
            fail_msg("%s: %s", info->name, err.message);
        assert_few_ask_little(info, NULL);
        assert_few_ask_little(info, small);
    }
    assert_few_ask_little(posenc_encoding_find("deberta"), "projected=no biases=both norm_rel_ebd=yes");
    assert_few_ask_little(posenc_encoding_find("swin_v2"), "window=512x256");
    assert_few_ask_little(posenc_encoding_find("fire"), "mlp_width=256");
}

/* ---- computed ---- */

static posenc_bound *bind(const attention_case *c, const posenc_plan *plan, posenc_attend_in *in)
{
    posenc_bound *bound;
    posenc_error  err;
    if (posenc_plan_bind(&bound, plan, in->params, &err))
        case_stop("bind", c, &err);
    in->bound  = bound;
    in->params = NULL;
    return bound;
}

/* What a token input of queries says of the first Lq. */
static array first_queries(const array *t, int64_t Lq)
{
    array to = array_make4(t->shape[0], t->shape[1], Lq, t->shape[3]);
    for (int64_t x = 0; x < to.count; x++) {
        const int64_t row = Lq * t->shape[3], at = x / row * t->shape[2] * t->shape[3] + x % row;
        to.wide[x]   = t->wide[at];
        to.narrow[x] = t->narrow[at];
    }
    return to;
}

/* Some queries of a case on an executor: the first `Lq` of them, o [B,H,Lq,Dv] and lse [B,H,Lq]. */
static attention_result some_queries(const attention_case *c, int64_t Lq, int wide, int what)
{
    const int         scores  = what & SCORES;
    const posenc_dims d       = c->dims; /* of the plan, which takes fewer queries too */
    posenc_options    options = c->options;
    posenc_error      err;
    posenc_tensor     params[CASE_PARAMS];
    attention_result  r  = {.o   = scores ? array_make4(d.B, d.H, Lq, d.Lk) : array_make4(d.B, d.H, Lq, d.Dv),
                            .lse = array_make(3, (int64_t[]){d.B, d.H, Lq})};
    posenc_attend_in  in = case_in(c, wide, params);
    array             tokens[CASE_TOKENS] = {{0}};
    options.executor                      = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    for (int i = 0; i < c->token_count; i++)
        if (!posenc_token_describe(c->e, i)->of_keys) {
            tokens[i]   = first_queries(&c->tokens[i], Lq);
            c->views[i] = array_tensor(&tokens[i], wide);
        }
    in.q.shape[2]       = Lq;
    in.allowed.shape[2] = Lq;
    if (in.q_segments.data)
        in.q_segments.shape[1] = Lq;
    if (in.q_pos.array.data)
        in.q_pos.array.shape[in.q_pos.array.ndim == 3 ? 1 : in.q_pos.array.ndim - 1] = Lq;
    const posenc_attend_out out   = {.size = sizeof out,
                                     .o    = array_tensor(&r.o, wide),
                                     .lse  = array_tensor(&r.lse, wide)};
    posenc_tensor           S     = out.o;
    posenc_plan            *plan  = plan_of(c->e, &d, &options);
    posenc_bound           *bound = what & BOUND && !wide ? bind(c, plan, &in) : NULL;
    posenc_workspace        work  = workspace_for(plan, scores ? POSENC_RUN_SCORES : POSENC_RUN_ATTEND);
    memset(work.memory, 0xff, work.bytes);
    if (scores ? posenc_scores(plan, &in, &S, &work, &err) : posenc_attend(plan, &in, &out, &work, &err))
        case_stop("attend", c, &err);
    for (int i = 0; i < c->token_count; i++)
        array_free(&tokens[i]);
    posenc_workspace_free(&work);
    posenc_bound_free(bound);
    posenc_plan_free(plan);
    return r;
}

/* Row by row, in shares of its largest number or of `least`; `from` has more queries. */
static void assert_rows_close(const attention_case *c, const array *got, const array *from, int wide,
                              double tolerance, double least, const char *what)
{
    const int64_t heads = c->dims.B * c->dims.H, Lq = got->shape[2], Lall = from->shape[2],
                  width = got->count / (heads * Lq);
    for (int64_t r = 0; r < heads * Lq; r++) {
        const int64_t at   = (r / Lq * Lall + r % Lq) * width;
        double        most = least, off = 0;
        for (int64_t d = 0; d < width; d++) {
            const double w = from->wide[at + d],
                         g = wide ? got->wide[r * width + d] : (double)got->narrow[r * width + d];
            if (isinf(w) && w == g)
                continue;
            most = fmax(most, fabs(w));
            off  = fmax(off, isnan(g) ? INFINITY : fabs(g - w));
        }
        if (off > tolerance * most)
            fail_msg("%s, %s%s of %lld queries: row %lld is off by %g of %g", posenc_encoding_spec(c->e),
                     what, wide ? " in double" : "", (long long)Lq, (long long)r, off, most);
    }
}

static void assert_parts_agree(const attention_case *c, int what)
{
    const int            scores = what & SCORES;
    static const int64_t some[] = {1, POSENC_DECODE_QUERIES};
    attention_result     whole  = some_queries(c, MANY, 1, what);
    for (int wide = 0; wide < 2; wide++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            attention_result part = some_queries(c, some[i], wide, what);
            assert_rows_close(c, &part.o, &whole.o, wide, wide ? 1e-12 : 2e-5, 1e-3, scores ? "S" : "o");
            if (!scores)
                assert_rows_close(c, &part.lse, &whole.lse, wide, wide ? 1e-12 : 1e-5, 1, "lse");
            result_free(&part);
        }
    result_free(&whole);
}

typedef void change_fn(attention_case *c);

/* Parts of both executors, and tables for all distances, take more than they may here. */
static const posenc_dims wide      = {.B = 2, .H = 4, .G = 2, .Lq = MANY, .Lk = KEYS, .D = 64, .Dv = 64},
                         many      = {.B = 1, .H = 64, .G = 16, .Lq = MANY, .Lk = KEYS, .D = 8, .Dv = 8},
                         short_one = {.B = 1, .H = 64, .G = 16, .Lq = MANY, .Lk = 20, .D = 8, .Dv = 8};

static void for_spec(const char *spec, const posenc_encoding_info *info, posenc_dims dims, int mask,
                     change_fn *change, int what)
{
    attention_case c = case_make(spec, dims, 7);
    c.options        = options_of(info, POSENC_EXECUTOR_AUTO, mask);
    c.k_pos          = (posenc_positions){0}; /* from 0 on */
    if (change)
        change(&c);
    assert_parts_agree(&c, what);
    case_free(&c);
}

static void for_encoding(const posenc_encoding_info *info, posenc_dims dims, int mask, change_fn *change,
                         int what)
{
    for_spec(spec_of(info, KEYS), info, dims, mask, change, what);
}

static void for_every_encoding(int mask, change_fn *change, int what)
{
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (posenc_encoding_info_at(i)->place != POSENC_PLACE_INPUT)
            for_encoding(posenc_encoding_info_at(i), wide, mask, change, what);
}

/* What every encoding can do besides, query by query. */
static void for_common_settings(int mask, int what)
{
    static const struct {
        const char *spec, *name;
    } all[] = {{"nope[temperature=ssmax:sink=head:softcap=9]", "nope"},
               {"alibi[temperature=ssmax:temper_on=score:softcap=4:sink=head]", "alibi"},
               {"shaw[temperature=llama4:temper_length=300:temper_scale=0.5:sink=head]", "shaw"},
               {"rope[map=rerope:map_window=40]", "rope"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for_spec(all[i].spec, posenc_encoding_find(all[i].name), wide, mask, NULL, what);
}

static void parts_are_joined(void **state)
{
    (void)state;
    for_every_encoding(0, NULL, OUTPUTS);
    for_common_settings(0, OUTPUTS);
    for_common_settings(POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING | POSENC_MASK_EXPLICIT, OUTPUTS);
}

static void parts_are_masked(void **state)
{
    (void)state;
    for_every_encoding(POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING |
                           POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS,
                       NULL, OUTPUTS);
}

static void scores_are_those_of_all_parts(void **state)
{
    (void)state;
    for_every_encoding(0, NULL, SCORES);
    for_common_settings(POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING | POSENC_MASK_EXPLICIT, SCORES);
}

/* Tokens are missing, more of them the farther back, and two have changed places. Positions of several
   coordinates stay a range: of arrays masks count the tokens of a run, which here has fewer queries. */
static int64_t gaps[MANY + KEYS];

static void leave_gaps(attention_case *c)
{
    /* running sums count tokens by their positions */
    const int rises = c->token_count > 0 && posenc_token_describe(c->e, 0)->of_keys;
    for (int64_t s = 0; s < KEYS; s++)
        gaps[MANY + s] = s < KEYS / 2 ? s / 2 * 2 : s;
    gaps[MANY]     = 2;
    gaps[MANY + 2] = 0;
    for (int64_t s = 0; s < MANY; s++)
        gaps[s] = KEYS - 2 * MANY + 2 * s - (rises ? 0 : s % 3);
    for (int64_t s = 0; rises && s < KEYS; s++)
        gaps[MANY + s] = s < KEYS / 2 ? 2 * s - KEYS / 2 : s;
    c->q_pos =
        posenc_positions_array(posenc_tensor_contiguous(gaps, POSENC_DTYPE_I64, 1, (const int64_t[]){MANY}));
    c->k_pos = posenc_positions_array(
        posenc_tensor_contiguous(gaps + MANY, POSENC_DTYPE_I64, 1, (const int64_t[]){KEYS}));
    if (case_places(c->e, &c->dims, c->k_pos).array.ndim == 3) {
        c->q_pos = posenc_positions_range((double)(KEYS - MANY), 1);
        c->k_pos = posenc_positions_range(0, 1);
    }
}

static void positions_may_have_gaps(void **state)
{
    (void)state;
    for_every_encoding(POSENC_MASK_CAUSAL, leave_gaps, OUTPUTS);
}

/* Neighbours lie farther apart than a part has rows for: down to one query and few keys, or one of each. */
static void lie_far_apart(attention_case *c)
{
    for (int64_t s = 0; s < KEYS; s++)
        gaps[MANY + s] = s * s / 4;
    for (int64_t s = 0; s < MANY; s++)
        gaps[s] = KEYS * KEYS / 4 - 700 * s * s;
    c->options.max_distances = KEYS * KEYS;
    c->q_pos =
        posenc_positions_array(posenc_tensor_contiguous(gaps, POSENC_DTYPE_I64, 1, (const int64_t[]){MANY}));
    c->k_pos = posenc_positions_array(
        posenc_tensor_contiguous(gaps + MANY, POSENC_DTYPE_I64, 1, (const int64_t[]){KEYS}));
}

static void positions_may_lie_far_apart(void **state)
{
    const posenc_encoding_info *info = posenc_encoding_find("kerple_log");
    (void)state;
    for_encoding(info, wide, 0, lie_far_apart, OUTPUTS);
    for_encoding(info, wide, POSENC_MASK_CAUSAL, lie_far_apart, SCORES);
}

/* Frequencies of each head, of which a part has one. */
static void heads_may_turn_on_their_own(void **state)
{
    const posenc_encoding_info *info = posenc_encoding_find("rope");
    static const char *const    spec = "rope[axis_rule=matrix:per_head=yes]";
    posenc_dims                 own  = wide;
    (void)state;
    own.G = own.H;
    for_spec(spec, info, own, POSENC_MASK_CAUSAL, NULL, OUTPUTS);
    for_spec(spec, info, own, 0, NULL, SCORES);
}

/* Every second position; room for more distances than these keys have. */
static void count_by_two(attention_case *c)
{
    c->q_pos                 = posenc_positions_range(2.0 * (double)(c->dims.Lk - MANY), 2);
    c->k_pos                 = posenc_positions_range(0, 2);
    c->options.max_distances = 4 * KEYS;
}

/* Biases and gates that decoding makes a few keys at a time: learned ones, sinusoids, logarithms. */
static void many_heads_have_no_tables(void **state)
{
    static const char *const names[] = {"kerple_log", "sandwich", "relative_table", "toeplitz", "urpe"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const posenc_encoding_info *info = posenc_encoding_find(names[i]);
        for_encoding(info, many, POSENC_MASK_CAUSAL, NULL, OUTPUTS);
        for_encoding(info, many, POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING,
                     leave_gaps, OUTPUTS);
    }
    for_spec("urpe[rows=129:index_offset=64]", posenc_encoding_find("urpe"), short_one, POSENC_MASK_CAUSAL,
             count_by_two, OUTPUTS);
}

/* Queries and keys two apart, and what a bound has no rows for. */
static void step_by_two(attention_case *c)
{
    c->q_pos                 = posenc_positions_range(2 * (LONG - MANY), 2);
    c->k_pos                 = posenc_positions_range(0, 2);
    c->options.max_distances = 4 * LONG;
}

/* The second item stands elsewhere, and its queries the other way round. */
static int64_t places[2][LONG], queries[2][MANY];

static void place_apart(attention_case *c)
{
    for (int64_t b = 0; b < 2; b++) {
        for (int64_t s = 0; s < LONG; s++)
            places[b][s] = b * 100 + s;
        for (int64_t s = 0; s < MANY; s++)
            queries[b][s] = b ? LONG + MANY - s : LONG - MANY + s;
    }
    c->options.max_distances = 4 * LONG;
    c->q_pos                 = posenc_positions_array(
                        posenc_tensor_contiguous(queries, POSENC_DTYPE_I64, 2, (const int64_t[]){2, MANY}));
    c->k_pos = posenc_positions_array(
        posenc_tensor_contiguous(places, POSENC_DTYPE_I64, 2, (const int64_t[]){2, LONG}));
}

/* A few queries are multiplied with the parameter, and that with sinusoids: some frequencies and some keys at
   a time, of which neither is a multiple; more keys than are multiplied at once, and limits among them. */
static void vectors_by_distance_are_never_made(void **state)
{
    static const posenc_dims dims[] = {{.B = 2, .H = 2, .G = 1, .Lq = MANY, .Lk = LONG, .D = 20, .Dv = 20},
                                       {.B = 2, .H = 16, .G = 4, .Lq = MANY, .Lk = LONG, .D = 8, .Dv = 128}};
    static const struct {
        const char *spec, *name;
        int         mask;
        change_fn  *change;
        int         what;
    } cases[] = {
        {"transformer_xl[sigma=0.3:d_model=134]", "transformer_xl", POSENC_MASK_CAUSAL, NULL, OUTPUTS},
        {"transformer_xl[sigma=0.3]", "transformer_xl", POSENC_MASK_CAUSAL, NULL, BOUND},
        {"transformer_xl[sigma=0.3:d_model=2:clamp_len=900]", "transformer_xl", 0, NULL, SCORES},
        {"xlnet[sigma=0.3:clamp_len=1000]", "xlnet", 0, place_apart, OUTPUTS},
        {"xlnet[sigma=0.3]", "xlnet", POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW, place_apart, OUTPUTS},
        {"xlnet[sigma=0.3:clamp_len=500]", "xlnet", POSENC_MASK_WINDOW, step_by_two, BOUND},
        {"rope+transformer_xl[sigma=0.3]", "transformer_xl", 0, step_by_two, OUTPUTS},
        {"transformer_xl[sigma=0.3]+urpe", "transformer_xl", POSENC_MASK_CAUSAL, NULL, OUTPUTS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
            for_spec(cases[i].spec, posenc_encoding_find(cases[i].name), dims[d], cases[i].mask,
                     cases[i].change, cases[i].what);
}

/* What a run of many queries makes of its parameters once is not made for a few: they read the parameters. */
static void long_parameters_are_read_in_place(void **state)
{
    static const struct {
        const char *spec, *name;
        int         mask, what;
    } cases[] = {
        {"deberta[projected=no:max_relative_positions=40:sigma=0.3]", "deberta", 0, OUTPUTS},
        {"deberta[projected=no:biases=query:max_relative_positions=40:sigma=0.3]", "deberta", 0, SCORES},
        {"deberta[projected=no:biases=both:norm_rel_ebd=yes:position_buckets=8:sigma=0.3]", "deberta",
         POSENC_MASK_CAUSAL, OUTPUTS},
        {"deberta[projected=no:biases=both:norm_rel_ebd=yes:max_relative_positions=40:sigma=0.3]", "deberta",
         POSENC_MASK_WINDOW, BOUND},
        {"swin[window=500x2:sigma=0.5]", "swin", 0, OUTPUTS},
        {"swin_v2[window=1000x2:mlp_width=7:sigma=0.5]", "swin_v2", 0, OUTPUTS},
        {"swin_v2[window=1000x2:mlp_width=7:sigma=0.5]", "swin_v2", POSENC_MASK_CAUSAL, SCORES},
        {"swin_v2[window=1000x2:pretrained_window=9x2:mlp_width=7:sigma=0.5]", "swin_v2", 0, BOUND},
        {"decomposed[grid=1000x2:sigma=0.5]", "decomposed", 0, OUTPUTS},
        {"decomposed[grid=1000x2:sigma=0.5]", "decomposed", 0, BOUND},
    };
    static const posenc_dims odd = {.B = 2, .H = 4, .G = 2, .Lq = MANY, .Lk = KEYS, .D = 20, .Dv = 20};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int d = 0; d < 2; d++)
            for_spec(cases[i].spec, posenc_encoding_find(cases[i].name), d ? odd : wide, cases[i].mask, NULL,
                     cases[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_query_asks_at_most_1_mib_a_thread_with_any_encoding),
        cmocka_unit_test(parts_are_joined),
        cmocka_unit_test(parts_are_masked),
        cmocka_unit_test(scores_are_those_of_all_parts),
        cmocka_unit_test(positions_may_have_gaps),
        cmocka_unit_test(positions_may_lie_far_apart),
        cmocka_unit_test(heads_may_turn_on_their_own),
        cmocka_unit_test(many_heads_have_no_tables),
        cmocka_unit_test(vectors_by_distance_are_never_made),
        cmocka_unit_test(long_parameters_are_read_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

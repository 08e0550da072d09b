/* SPDX-License-Identifier: MIT */
/*
 * test_rules: rules of single encodings that no reference case tells apart
 *
 * A limit that no case reaches, a convention that differs in one row, a division by zero: each is stated here
 * with its own small problem, in scores where the rule can be read off, and on both executors where it is
 * arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

/* One head, Lq = Lk = L, no mask, positions 0 .. L-1. */
static attention_case small_case(const char *spec, int64_t L, int64_t D)
{
    const posenc_dims dims = {
        .B = 1, .H = 1, .G = 1, .Lq = L, .Lk = L, .D = D, .Dv = D, .d_model = D, .L = L};
    return case_make(spec, dims, 1);
}

static const posenc_dims four_of_sixteen = {
    .B = 1, .H = 1, .G = 1, .Lq = 4, .Lk = 4, .D = 8, .Dv = 8, .d_model = 8, .L = 16};

static array scores_of(const attention_case *c, posenc_executor executor)
{
    const int      wide    = executor == POSENC_EXECUTOR_REFERENCE;
    array          S       = array_make4(1, c->dims.H, c->dims.Lq, c->dims.Lk);
    posenc_options options = c->options;
    posenc_plan   *plan;
    posenc_error   err;
    posenc_tensor  params[CASE_PARAMS], to = array_tensor(&S, wide);
    options.executor          = executor;
    const posenc_attend_in in = case_in(c, wide, params);
    if (posenc_plan_create(&plan, c->e, &c->dims, &options, &err))
        case_stop("plan", c, &err);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_SCORES);
    if (posenc_scores(plan, &in, &to, &work, &err))
        case_stop("scores", c, &err);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return S;
}

static void set_all(array *a, double x)
{
    for (int64_t i = 0; i < a->count; i++)
        array_set(a, i, x);
}

static double score(const array *S, int64_t i, int64_t j)
{
    return S->wide[i * S->shape[3] + j];
}

static void assert_near(double a, double b)
{
    assert_true(fabs(a - b) <= 1e-12);
}

/* ---- KERPLE: parameters below and above their limits act as the limits, and learn as if they stood there
   ---- */

static attention_result kerple(const char *name, double p, double a)
{
    attention_case c    = small_case(name, 6, 4);
    c.params[0].wide[0] = p;
    c.params[1].wide[0] = a;
    attention_result r  = case_run(&c, 1);
    case_free(&c);
    return r;
}

static void kerple_s_parameters_are_limited_and_go_on_learning(void **state)
{
    static const struct {
        const char *name;
        double      p, a, acts_p, acts_a;
    } rows[] = {{"kerple_log", -1, -3, 0.01, 0.01},
                {"kerple_log", 0.5, 0, 0.5, 0.01},
                {"kerple_log", 2, 1.5, 2, 1.5},
                {"kerple_power", 5, -1, 2, 0.01},
                {"kerple_power", -1, 2, 0.01, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        attention_result beyond = kerple(rows[i].name, rows[i].p, rows[i].a),
                         at     = kerple(rows[i].name, rows[i].acts_p, rows[i].acts_a);
        assert_memory_equal(beyond.o.wide, at.o.wide, (size_t)at.o.count * sizeof(double));
        for (int n = 0; n < 2; n++) {
            assert_true(beyond.dparams[n].wide[0] == at.dparams[n].wide[0]);
            assert_true(fabs(beyond.dparams[n].wide[0]) > 1e-6);
        }
        result_free(&beyond), result_free(&at);
    }
}

/* ---- DeBERTa: Microsoft limits the distance before its bucket, Hugging Face does not; only the far future
   differs ---- */

static void deberta_s_clip_first_moves_the_far_future_alone(void **state)
{
    enum { L = 24, MOST = 10 };
    static const char *const specs[] = {
        "deberta[max_relative_positions=10:position_buckets=4:terms=c2p:clip_first=no]",
        "deberta[max_relative_positions=10:position_buckets=4:terms=c2p:clip_first=yes]"};
    array S[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        attention_case c = small_case(specs[i], L, 1);
        set_all(&c.q, 1);
        set_all(&c.k, 0);
        for (int64_t row = 0; row < c.params[0].count; row++)
            c.params[0].wide[row] = (double)row;
        S[i] = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
        case_free(&c);
    }
    const double scale = 1 / sqrt(2.0);
    for (int64_t i = 0; i < L; i++)
        for (int64_t j = 0; j < L; j++) {
            const double hugging = score(&S[0], i, j) / scale, microsoft = score(&S[1], i, j) / scale;
            const int    is_far = i - j <= -MOST;
            assert_near(hugging - microsoft, is_far ? -1 : 0);
            if (is_far)
                assert_near(hugging, 0);
        }
    array_free(&S[0]), array_free(&S[1]);
}

/* ---- DeBERTa: with log buckets the tables have a row for each bucket, however short the distances are
   ---- */

static void deberta_has_as_many_rows_as_buckets(void **state)
{
    enum { L = 7, D = 1, BUCKETS = 8 };
    attention_case c = small_case("deberta[max_relative_positions=6:position_buckets=8:terms=c2p]", L, D);
    (void)state;
    assert_int_equal(c.params[0].count, 2 * BUCKETS * D);
    set_all(&c.q, 1);
    set_all(&c.k, 0);
    for (int64_t row = 0; row < c.params[0].count; row++)
        c.params[0].wide[row] = (double)row;
    array S = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
    for (int64_t j = 0; j < L;
         j++) { /* query L-1: buckets 0 .. 4 of distances up to half, ln(5/4)/ln(5/4) * 3 + 4 of 5 */
        const int64_t t = L - 1 - j, bucket = t < 5 ? t : t == 5 ? 7 : 8;
        const double  row = (double)(bucket < BUCKETS ? bucket + BUCKETS : 2 * BUCKETS - 1);
        assert_near(score(&S, L - 1, j), row / sqrt(2.0));
    }
    array_free(&S);
    case_free(&c);
}

/* ---- DeBERTa from its table on: LayerNorm, projections and biases of the released models ---- */

/* The table of parameter `name`. */
static array *param_of(attention_case *c, const char *name)
{
    for (int i = 0; i < c->param_count; i++)
        if (!strcmp(posenc_param_name(c->e, i), name))
            return &c->params[i];
    return NULL;
}

/* LayerNorm(P) W^T + b as one writes it down; without a norm or bias those steps are left out. [rows,D] of
   one head. */
static void project_table(attention_case *c, const char *weight, const char *bias, double to[])
{
    const array *P = param_of(c, "P"), *W = param_of(c, weight), *b = param_of(c, bias),
                *ln_w = param_of(c, "ln_w"), *ln_b = param_of(c, "ln_b");
    const int64_t n = P->shape[1], D = c->dims.D;
    for (int64_t x = 0; x < P->shape[0]; x++) {
        double mean = 0, squares = 0, row[16];
        for (int64_t m = 0; m < n; m++) {
            mean += P->wide[x * n + m] / (double)n;
            squares += P->wide[x * n + m] * P->wide[x * n + m] / (double)n;
        }
        for (int64_t m = 0; m < n; m++)
            row[m] = !ln_w
                         ? P->wide[x * n + m]
                         : (P->wide[x * n + m] - mean) / sqrt(squares - mean * mean + 1e-7) * ln_w->wide[m] +
                               ln_b->wide[m];
        for (int64_t d = 0; d < D; d++) {
            to[x * D + d] = b ? b->wide[d] : 0;
            for (int64_t m = 0; m < n; m++)
                to[x * D + d] += row[m] * W->wide[d * n + m];
        }
    }
}

static void deberta_refuses_what_is_for_its_own_projection_without_one(void **state)
{
    static const char *const settings[] = {"biases=query", "biases=both", "norm_rel_ebd=yes"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        posenc_options   options = posenc_options_default();
        posenc_encoding *e;
        posenc_plan     *plan;
        posenc_error     err;
        assert_int_equal(posenc_encoding_create(&e, "deberta", settings[i], &err), POSENC_OK);
        assert_int_equal(posenc_plan_create(&plan, e, &four_of_sixteen, &options, &err),
                         POSENC_ERROR_SETTING);
        assert_non_null(strstr(err.message, i < 2 ? "biases needs" : "norm_rel_ebd=yes needs"));
        assert_non_null(strstr(err.message, "add projected=no"));
        posenc_encoding_free(e);
    }
}

static void deberta_projects_its_table_as_the_released_models_do(void **state)
{
    static const struct {
        const char *settings;
        int         count; /* P, W_kr, W_qr and so many more */
    } rows[] = {
        {"biases=none", 3}, {"biases=query", 4}, {"biases=both", 5}, {"biases=both:norm_rel_ebd=yes", 7}};
    enum { L = 6, D = 4, SPAN = 3 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char   spec[128];
        double K[2 * SPAN * D], Q[2 * SPAN * D];
        snprintf(spec, sizeof spec, "deberta[span=3:projected=no:sigma=1:%s]", rows[i].settings);
        attention_case c = small_case(spec, L, D);
        assert_int_equal(c.param_count, rows[i].count);
        assert_true(i != 1 || (param_of(&c, "b_qr") && !param_of(&c, "b_kr")));
        project_table(&c, "W_kr", "b_kr", K);
        project_table(&c, "W_qr", "b_qr", Q);
        array S = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
        for (int64_t at = 0; at < L * L; at++) {
            const int64_t i0 = at / L, j = at % L, t = i0 - j + SPAN, x = t < 0 ? 0 : t > 5 ? 5 : t;
            double        sum = 0;
            for (int64_t d = 0; d < D; d++)
                sum += c.q.wide[i0 * D + d] * (c.k.wide[j * D + d] + K[x * D + d]) +
                       c.k.wide[j * D + d] * Q[x * D + d];
            assert_near(score(&S, i0, j), sum / sqrt(3.0 * D));
        }
        array_free(&S);
        case_free(&c);
    }
}

/* ---- Shaw: beyond the table either its last row or nothing, for keys and for values ---- */

static void shaw_repeats_its_last_row_or_adds_nothing(void **state)
{
    static const char *const specs[] = {"shaw[min_distance=-2:max_distance=1]",
                                        "shaw[min_distance=-2:max_distance=1:beyond=zero]"};
    enum { L = 7, D = 4 };
    (void)state;
    for (int zero = 0; zero < 2; zero++)
        for (int wide = 0; wide < 2; wide++) {
            attention_case c = small_case(specs[zero], L, D);
            set_all(&c.k, 0), set_all(&c.v, 0), set_all(&c.q, 0);
            for (int64_t x = 0; x < c.params[0].count; x++)
                array_set(&c.params[0], x, x % D ? 0 : (double)(x / D + 1)),
                    array_set(&c.params[1], x, (double)(x / D + 1));
            attention_result r = case_run(&c, wide); /* q = 0: all keys weigh the same */
            for (int64_t i = 0; i < L; i++)
                array_set(&c.q, i * D, 1);
            array S = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
            for (int64_t i = 0; i < L; i++) {
                double sum = 0;
                for (int64_t j = 0; j < L; j++) {
                    const int64_t x      = j - i < -2 ? -2 : j - i > 1 ? 1 : j - i;
                    const double  number = zero && x != j - i ? 0 : (double)(x + 3);
                    assert_near(score(&S, i, j), number / 2);
                    sum += number / L;
                }
                assert_true(fabs((wide ? r.o.wide[i * D] : (double)r.o.narrow[i * D]) - sum) <= 2e-6 * sum);
            }
            array_free(&S);
            result_free(&r);
            case_free(&c);
        }
}

/* ---- how tables start where papers and released code disagree ---- */

static attention_case untouched(const char *spec, int64_t L, int64_t D)
{
    attention_case c = small_case(spec, L, D);
    posenc_tensor  params[CASE_PARAMS];
    posenc_error   err;
    for (int i = 0; i < c.param_count; i++)
        params[i] = array_tensor(&c.params[i], 1);
    assert_int_equal(posenc_param_init(c.e, &c.dims, params, 3, &err), POSENC_OK);
    return c;
}

static void nezha_s_sinusoids_are_of_the_distance_or_of_the_row(void **state)
{
    enum { L = 9, D = 4, MOST = 3 };
    (void)state;
    for (int by_row = 0; by_row < 2; by_row++) {
        char spec[96];
        snprintf(spec, sizeof spec, "shaw[max_relative=%d:table=sinusoidal:sinusoid_of=%s]", MOST,
                 by_row ? "row" : "distance");
        attention_case c = untouched(spec, L, D);
        for (int64_t x = 0; x < 2 * MOST + 1; x++)
            for (int64_t d = 0; d < D; d++) {
                const double angle = (double)(by_row ? x : x - MOST) * pow(10000, -(double)(d - d % 2) / D);
                assert_near(c.params[0].wide[x * D + d], d % 2 ? cos(angle) : sin(angle));
                assert_near(c.params[1].wide[x * D + d], d % 2 ? cos(angle) : sin(angle));
            }
        case_free(&c);
    }
}

static void urpe_s_factors_start_at_one_or_at_random(void **state)
{
    enum { L = 512, D = 2 };
    attention_case ones = untouched("urpe", L, D), normal = untouched("urpe[init=normal:sigma=0.3]", L, D);
    double         mean = 0, squares = 0;
    const array   *c = &normal.params[1];
    (void)state;
    for (int64_t x = 0; x < c->count; x++) {
        assert_true(ones.params[1].wide[x] == 1);
        mean += c->wide[x] / (double)c->count;
        squares += c->wide[x] * c->wide[x] / (double)c->count;
    }
    assert_int_equal(c->count, 2 * L);
    assert_true(fabs(mean) <= 5 * 0.3 / sqrt(2.0 * L));
    assert_true(fabs(sqrt(squares) - 0.3) <= 5 * 0.3 / sqrt(4.0 * L));
    assert_true(largest(c, &normal.params[0]) > 0.3); /* numbers of its own */
    case_free(&ones), case_free(&normal);
}

/* ---- Transformer-XL limits distances into the past alone, XLNet both ---- */

/* scale * q.r_t at distance t (k = 0, one query direction), for t = -(L-1) .. L-1. */
static void met_at_distances(const char *spec, int64_t L, double met[])
{
    attention_case c = small_case(spec, L, 4);
    set_all(&c.k, 0);
    for (int64_t x = 0; x < c.q.count; x++)
        c.q.wide[x] = 1 + (double)(x % 4);
    array S = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
    for (int64_t i = 0; i < L; i++)
        for (int64_t j = 0; j < L; j++)
            met[i - j + L - 1] = score(&S, i, j);
    array_free(&S);
    case_free(&c);
}

static void clamp_len_leaves_the_future_to_transformer_xl_and_limits_it_for_xlnet(void **state)
{
    enum { L = 9, CLAMP = 3, N = 2 * L - 1 };
    static const char *const names[] = {"transformer_xl", "xlnet"};
    (void)state;
    for (int n = 0; n < 2; n++) {
        char   free_spec[64], limited_spec[64];
        double all[N], limited[N];
        snprintf(free_spec, sizeof free_spec, "%s[sigma=1]", names[n]);
        snprintf(limited_spec, sizeof limited_spec, "%s[sigma=1:clamp_len=%d]", names[n], CLAMP);
        met_at_distances(free_spec, L, all);
        met_at_distances(limited_spec, L, limited);
        for (int t = -(L - 1); t < L; t++) {
            const int acts = t > CLAMP ? CLAMP : n == 1 && t < -CLAMP ? -CLAMP : t;
            assert_true(limited[t + L - 1] == all[acts + L - 1]);
        }
        assert_true(fabs(all[0] - all[L - 1 - CLAMP]) > 1e-3); /* the rule can be seen */
    }
}

/* ---- complex-order attention: a product of 0 has no direction ---- */

static void a_complex_product_of_zero_scores_zero_and_turns_nothing(void **state)
{
    static const char *const specs[] = {"complex_order_attention", "complex_order_attention[conjugate=yes]"};
    enum { L = 5, D = 4 };
    (void)state;
    for (int n = 0; n < 2; n++)
        for (int wide = 0; wide < 2; wide++) {
            attention_case c = small_case(specs[n], L, D);
            for (int64_t d = 0; d < D; d++) {
                array_set(&c.q, 2 * D + d, 0); /* query 2 */
                array_set(&c.k, 3 * D + d, 0); /* key 3 */
            }
            array            S = scores_of(&c, wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED);
            attention_result r = case_run(&c, wide);
            for (int64_t x = 0; x < L; x++) {
                const double *w = S.wide;
                const float  *f = S.narrow;
                assert_true(wide ? w[2 * L + x] == 0 && w[x * L + 3] == 0
                                 : f[2 * L + x] == 0 && f[x * L + 3] == 0);
            }
            for (int64_t x = 0; x < r.dq.count; x++) {
                const double dq = wide ? r.dq.wide[x] : (double)r.dq.narrow[x],
                             dk = wide ? r.dk.wide[x] : (double)r.dk.narrow[x];
                assert_true(isfinite(dq) && isfinite(dk));
                assert_true(x / D != 2 || dq == 0);
                assert_true(x / D != 3 || dk == 0);
            }
            assert_true(wide ? largest(&r.dq, NULL) > 1e-3 : fabsf(r.dq.narrow[0]) > 1e-6f);
            array_free(&S);
            result_free(&r);
            case_free(&c);
        }
}

/* ---- a 2-D distance that is not square: |dy| * columns + |dx| of a grid of rows x columns ---- */

static void a_distance_on_a_grid_counts_rows_by_its_columns(void **state)
{
    enum { ROWS = 3, COLUMNS = 5, L = ROWS * COLUMNS };
    attention_case c = small_case("absolute_distance[grid=3x5]", L, 4);
    (void)state;
    set_all(&c.q, 0);
    array S = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
    assert_int_equal(c.params[0].count, L);
    for (int i = 0; i < L; i++)
        for (int j = 0; j < L; j++) {
            const int dy = abs(i / COLUMNS - j / COLUMNS), dx = abs(i % COLUMNS - j % COLUMNS);
            /* the tutorial's code divides the table by 1/sqrt(D) */
            assert_near(score(&S, i, j), c.params[0].wide[dy * COLUMNS + dx] * 2);
        }
    array_free(&S);
    case_free(&c);
}

/* ---- TUPE: the class token is who stands at 0, not who comes first ---- */

static void the_class_token_is_known_by_its_position(void **state)
{
    enum { L = 6, D = 4 };
    const double   scale = 1 / sqrt(2.0 * D);
    attention_case c     = small_case("tupe[relative=yes:num_buckets=8:max_distance=12]", L, D);
    (void)state;
    set_all(&c.q, 0);
    array here = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
    for (int64_t j = 1; j < L; j++) { /* its row and its column are one number each */
        assert_near(score(&here, 0, j), score(&here, 0, 0));
        assert_near(score(&here, j, 0), score(&here, 1, 0));
    }
    assert_true(fabs(score(&here, 0, 0) - score(&here, 1, 0)) > 1e-3 * scale);
    c.dims.Lq    = L - 2; /* a chunk of queries from 2 on has no such row */
    c.q.shape[2] = c.dims.Lq;
    c.q_pos      = posenc_positions_range(2, 1);
    array chunk  = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
    for (int64_t i = 0; i < L - 2; i++)
        for (int64_t j = 0; j < L; j++)
            assert_true(score(&chunk, i, j) == score(&here, i + 2, j));
    array_free(&here), array_free(&chunk);
    case_free(&c);
}

/* ---- Swin V2: the factor of the cosine is at most 100 ---- */

static void the_factor_of_the_cosine_stops_at_its_limit_and_learns_no_more(void **state)
{
    attention_case   c = small_case("swin_v2[window=2x3:mlp_width=4]", 6, 4);
    attention_result at, beyond;
    (void)state;
    c.params[3].wide[0] = 4.605170185988092;
    at                  = case_run(&c, 1);
    c.params[3].wide[0] = 6;
    beyond              = case_run(&c, 1);
    assert_memory_equal(beyond.o.wide, at.o.wide, (size_t)at.o.count * sizeof(double));
    assert_true(at.dparams[3].wide[0] != 0 && beyond.dparams[3].wide[0] == 0);
    result_free(&at), result_free(&beyond);
    case_free(&c);
}

/* Zeros divided by a length of 0 would be no number, on one executor also where no query sees that key. */
static void a_row_of_zeros_has_no_direction_and_stays_one(void **state)
{
    attention_case c = small_case("swin_v2[window=2x3:mlp_width=4:normalize_eps=0]", 6, 4);
    (void)state;
    for (int64_t d = 0; d < 4; d++)
        array_set(&c.q, d, 0), array_set(&c.k, 4 + d, 0);
    attention_result want = case_run(&c, 1), got = case_run(&c, 0);
    for (int64_t i = 0; i < want.o.count; i++)
        assert_true(isfinite(want.o.wide[i]) && isfinite(want.dq.wide[i]) && isfinite(want.dk.wide[i]) &&
                    fabs(got.o.narrow[i] - want.o.wide[i]) < 1e-5 && isfinite(got.dq.narrow[i]) &&
                    isfinite(got.dk.narrow[i]));
    result_free(&want), result_free(&got);
    case_free(&c);
}

/* ---- xPos: the factor of a pair depends on its distance, however far from 0 both stand ---- */

static attention_result xpos_at(const char *spec, double start, int wide)
{
    attention_case c = small_case(spec, 70, 8);
    c.options.mask   = POSENC_MASK_CAUSAL;
    c.q_pos = c.k_pos  = posenc_positions_range(start, 1);
    attention_result r = case_run(&c, wide);
    case_free(&c);
    return r;
}

static double largest_between(const array *a, int a_wide, const array *b, int b_wide)
{
    double most = 0;
    for (int64_t i = 0; i < a->count; i++) {
        const double x = a_wide ? a->wide[i] : (double)a->narrow[i],
                     y = b_wide ? b->wide[i] : (double)b->narrow[i];
        most           = isfinite(x - y) ? fmax(most, fabs(x - y)) : INFINITY;
    }
    return most;
}

static void xpos_is_the_same_at_any_distance_from_the_origin(void **state)
{
    static const char *const specs[] = {"xpos", "xpos[layout=half:dim=6]+alibi"};
    (void)state;
    for (size_t n = 0; n < sizeof specs / sizeof *specs; n++)
        for (int wide = 0; wide < 2; wide++) {
            attention_result here = xpos_at(specs[n], 0, wide), far = xpos_at(specs[n], 1000000, wide);
            assert_true(largest_between(&here.o, wide, &far.o, wide) <= (wide ? 1e-12 : 2e-6));
            assert_true(largest_between(&here.dq, wide, &far.dq, wide) <= (wide ? 1e-11 : 2e-5));
            assert_true(largest_between(&here.dk, wide, &far.dk, wide) <= (wide ? 1e-11 : 2e-5));
            result_free(&here), result_free(&far);
        }
}

/* Beside other members only the product grows; vectors that queries or keys meet do not. */
static void xpos_far_out_is_one_thing_to_both_executors(void **state)
{
    static const char *const specs[] = {"xpos+shaw[max_relative=4]", "xpos+huang_m4[sigma=0.3]",
                                        "xpos+transformer_xl[sigma=0.3]", "xpos+complex_order_attention",
                                        "xpos+cope[npos=70]"};
    (void)state;
    for (size_t n = 0; n < sizeof specs / sizeof *specs; n++) {
        attention_result want = xpos_at(specs[n], 300000, 1), got = xpos_at(specs[n], 300000, 0);
        assert_true(largest_between(&got.o, 0, &want.o, 1) <= 4e-6);
        assert_true(largest_between(&got.dq, 0, &want.dq, 1) <= 4e-5);
        assert_true(largest_between(&got.dk, 0, &want.dk, 1) <= 4e-5);
        result_free(&want), result_free(&got);
    }
}

/* ---- Swin V2: windows of every published size, cosines times 100 ---- */

static void large_windows_keep_the_digits_of_sharp_scores(void **state)
{
    attention_case c = small_case("swin_v2[window=12x12:mlp_width=4]", 144, 16);
    (void)state;
    array_set(&c.params[3], 0, 6);
    attention_result want = case_run(&c, 1), got = case_run(&c, 0);
    const struct {
        const array *got, *want;
        double       tolerance;
    } all[] = {{&got.o, &want.o, 2e-6},
               {&got.dq, &want.dq, 2e-5},
               {&got.dk, &want.dk, 2e-5},
               {&got.dv, &want.dv, 2e-5}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const array *none[DISTURBED] = {all[i].want, all[i].want};
        assert_true(array_error(all[i].got, all[i].want, none, all[i].tolerance, 0) <= 1);
    }
    result_free(&want), result_free(&got);
    case_free(&c);
}

/* ---- what each encoding says of its scores ---- */

/* Scores of queries and keys at four positions. */
static array scores_at(const char *spec, int64_t pos[4])
{
    attention_case c = case_make(spec, four_of_sixteen, 1);
    c.q_pos          = c.k_pos =
        posenc_positions_array(posenc_tensor_contiguous(pos, POSENC_DTYPE_I64, 1, (const int64_t[]){4}));
    array S = scores_of(&c, POSENC_EXECUTOR_REFERENCE);
    case_free(&c);
    return S;
}

static int64_t in_a_row[] = {0, 1, 2, 3}, two_together[] = {0, 1, 1, 2},
               with_a_gap[] = {0, 1, 3, 4}; /* where running sums count tokens, positions must rise */

/* Are the scores of SPEC those with this scale, up to rounding? */
static int has_scale(const char *name, const char *settings, const char *scale)
{
    char plain[128], scaled[160];
    snprintf(plain, sizeof plain, "%s[%s]", name, settings);
    snprintf(scaled, sizeof scaled, "%s[%s%sscale=%s]", name, settings, *settings ? ":" : "", scale);
    array        S = scores_at(plain, in_a_row), T = scores_at(scaled, in_a_row);
    const double off = largest(&S, &T), size = largest(&S, NULL);
    array_free(&S), array_free(&T);
    return off <= 1e-14 * size;
}

/* An expression is tried as it stands, and doubled so that a difference would be seen; words are tried
   below. */
static void the_standard_scale_is_the_one_that_is_stated(void **state)
{
    int words = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        const char                 *text = info->scale ? info->scale : "1/sqrt(D)";
        char                        doubled[80];
        snprintf(doubled, sizeof doubled, "2*%s", text);
        if (info->place != POSENC_PLACE_SCORE) {
            assert_null(info->scale);
            continue;
        }
        if (strchr(text, ' ')) {
            words++;
            continue;
        }
        if (!has_scale(info->name, "", text) || has_scale(info->name, "", doubled))
            fail_msg("%s does not have the scale %s", info->name, text);
    }
    assert_int_equal(words, 2);
    assert_true(has_scale("swin_v2", "", "1") && !has_scale("swin_v2", "", "2"));
    assert_true(has_scale("deberta", "terms=c2p:p2c", "1/sqrt(3*D)"));
    assert_true(has_scale("deberta", "terms=c2p", "1/sqrt(2*D)"));
    assert_true(!has_scale("deberta", "terms=p2c", "1/sqrt(3*D)"));
}

/* Those that say so see no positions: the same tokens elsewhere have the same scores. All others see them. */
static void positions_matter_to_all_but_those_that_say_otherwise(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place != POSENC_PLACE_SCORE) {
            assert_true(!info->sees || info->place == POSENC_PLACE_WEIGHT);
            continue;
        }
        array row       = scores_at(info->name, in_a_row),
              other     = scores_at(info->name, info->token_count && info->sees ? with_a_gap : two_together);
        const int moved = largest(&row, &other) > 1e-6;
        if (moved == (info->sees != NULL))
            fail_msg("%s: scores %s with the positions, but they see %s", info->name,
                     moved ? "change" : "do not change", info->sees ? info->sees : "distances or positions");
        array_free(&row), array_free(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kerple_s_parameters_are_limited_and_go_on_learning),
        cmocka_unit_test(deberta_s_clip_first_moves_the_far_future_alone),
        cmocka_unit_test(deberta_has_as_many_rows_as_buckets),
        cmocka_unit_test(deberta_refuses_what_is_for_its_own_projection_without_one),
        cmocka_unit_test(deberta_projects_its_table_as_the_released_models_do),
        cmocka_unit_test(shaw_repeats_its_last_row_or_adds_nothing),
        cmocka_unit_test(nezha_s_sinusoids_are_of_the_distance_or_of_the_row),
        cmocka_unit_test(urpe_s_factors_start_at_one_or_at_random),
        cmocka_unit_test(clamp_len_leaves_the_future_to_transformer_xl_and_limits_it_for_xlnet),
        cmocka_unit_test(a_complex_product_of_zero_scores_zero_and_turns_nothing),
        cmocka_unit_test(a_distance_on_a_grid_counts_rows_by_its_columns),
        cmocka_unit_test(the_class_token_is_known_by_its_position),
        cmocka_unit_test(the_factor_of_the_cosine_stops_at_its_limit_and_learns_no_more),
        cmocka_unit_test(a_row_of_zeros_has_no_direction_and_stays_one),
        cmocka_unit_test(xpos_is_the_same_at_any_distance_from_the_origin),
        cmocka_unit_test(xpos_far_out_is_one_thing_to_both_executors),
        cmocka_unit_test(large_windows_keep_the_digits_of_sharp_scores),
        cmocka_unit_test(the_standard_scale_is_the_one_that_is_stated),
        cmocka_unit_test(positions_matter_to_all_but_those_that_say_otherwise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

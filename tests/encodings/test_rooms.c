/* SPDX-License-Identifier: MIT */
/*
 * test_rooms: what every room promises, for the encoding named on the command line
 *
 * Worked examples   The text of an example holds settings and sizes, told apart by the names of posenc_dims;
 *                   where a size is not given, H = 1, D = 4 and lengths just reach the example. A parameter
 *                   that is trained with these settings holds 0, 1, 2, ... in memory order, any other what
 *                   `init` gives (ALiBi's slopes). Tolerance 1e-14 relative: examples are printed with 15
 *                   digits or more.
 * Initialisation    "normal(0, s)" must have mean 0 and deviation s within five standard errors, "uniform(a,
 *                   b)" keep to its interval and reach beyond its middle on both sides, "zeros" be zero;
 *                   anything else must not depend on the seed. No parameter shares its numbers with another.
 * Gradients         against finite differences (differences.h), with the settings of a small model and with
 *                   defaults: what each member folds back alone, at each head and distance, then whole runs.
 * Outputs           a member writes the numbers that it is asked for, and none beside them: in a workspace
 * what lies behind its rows is another piece, or room for whole vectors, where nobody sees it. Decoding a
 * chunk of queries at its offset is the same as within the full pass, with the same plan: the same bits from
 * the reference, DESIGN's float tolerance on both sides, 4e-6 of the row, from the tiled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/objects.h"
#include "base/expression.h"
#include "differences.h"
#include "engine/score/attention.h"
#include "workspace.h"

static const posenc_encoding_info *info;

static int acts_in_attention(void)
{
    return info->place != POSENC_PLACE_INPUT;
}

/* ---- an encoding with its plan and parameters in double ---- */

typedef struct bench {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_dims      dims;
    array            numbers[CASE_PARAMS];
    posenc_tensor    params[CASE_PARAMS];
    posenc_workspace work;
} bench;

static void allocate_params(bench *x)
{
    posenc_error err;
    for (int i = 0; i < posenc_param_count(x->e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(x->e, &x->dims, i, &ndim, shape, &err))
            fail_msg("%s", err.message);
        x->numbers[i] = array_make(ndim, shape);
        x->params[i]  = array_tensor(&x->numbers[i], 1);
    }
}

static bench bench_make(const char *spec, const char *settings, posenc_dims dims, posenc_options options)
{
    bench        x = {.dims = dims};
    posenc_error err;
    if (posenc_encoding_create(&x.e, spec, settings, &err) ||
        posenc_plan_create(&x.plan, x.e, &dims, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    allocate_params(&x);
    if (posenc_param_init(x.e, &dims, x.params, 1, &err))
        fail_msg("%s", err.message);
    x.work = workspace_for(x.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES);
    return x;
}

static void bench_free(bench *x)
{
    for (int i = 0; i < posenc_param_count(x->e); i++)
        array_free(&x->numbers[i]);
    posenc_workspace_free(&x->work);
    posenc_plan_free(x->plan);
    posenc_encoding_free(x->e);
}

/* ---- worked examples ---- */

/* Sizes of "H=8 form=distance" go to dims, settings to the text. */
static void split(const char *text, posenc_dims *dims, char *settings, size_t n)
{
    const struct {
        const char *name;
        int64_t    *size;
    } sizes[]   = {{"B", &dims->B},   {"H", &dims->H},   {"G", &dims->G},
                   {"Lq", &dims->Lq}, {"Lk", &dims->Lk}, {"D", &dims->D},
                   {"Dv", &dims->Dv}, {"L", &dims->L},   {"d_model", &dims->d_model}};
    settings[0] = '\0';
    while (*text) {
        const size_t pair = strcspn(text, " "), name = strcspn(text, "=");
        int          is_size = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (strlen(sizes[i].name) == name && !strncmp(sizes[i].name, text, name)) {
                *sizes[i].size = strtoll(text + name + 1, NULL, 10);
                is_size        = 1;
            }
        if (!is_size)
            snprintf(settings + strlen(settings), n - strlen(settings), "%.*s ", (int)pair, text);
        text += pair + strspn(text + pair, " ");
    }
}

static void count_params(bench *x)
{
    for (int i = 0; i < posenc_param_count(x->e); i++)
        for (int64_t n = 0; posenc_param_trainable(x->e, i) && n < x->numbers[i].count; n++)
            x->numbers[i].wide[n] = (double)n;
}

static double row_value(bench *x, const posenc_example *example)
{
    const int64_t  width = posenc_rows_width(x->plan);
    array          y     = array_make(3, (int64_t[]){1, example->a + 1, width});
    posenc_tensor  to    = array_tensor(&y, 1);
    posenc_error   err;
    posenc_rows_in in = {.size = sizeof in, .params = x->params};
    double         steps[64];
    assert_in_range(example->a, 0, 63);
    assert_in_range(example->b, 0, width - 1);
    for (int s = 0; s <= example->a; s++) /* rows by number: an array is not moved by a preset's first row */
        steps[s] = s;
    if (posenc_rows_coordinates(x->e) == 1) /* places on a grid are numbered by a range alone */
        in.pos = posenc_positions_array(
            posenc_tensor_contiguous(steps, POSENC_DTYPE_F64, 1, (int64_t[]){example->a + 1}));
    if (posenc_rows(x->plan, &in, &to, &x->work, &err))
        fail_msg("%s", err.message);
    const double value = y.wide[example->a * width + example->b];
    array_free(&y);
    return value;
}

static double frequency_value(bench *x, const posenc_example *example)
{
    double       w[512];
    int64_t      pairs = 0;
    posenc_error err;
    assert_int_equal(posenc_rotary_frequencies(x->plan, NULL, &pairs, NULL, &err), POSENC_OK);
    assert_in_range(pairs, example->a + 1, 512);
    assert_int_equal(posenc_rotary_frequencies(x->plan, w, &pairs, NULL, &err), POSENC_OK);
    return w[example->a];
}

static double bias_value(bench *x, const posenc_example *example)
{
    array            bias = array_make(3, (int64_t[]){x->dims.H, example->b + 1, example->c + 1});
    posenc_tensor    to   = array_tensor(&bias, 1);
    posenc_attend_in in   = {.size = sizeof in, .q = {.dtype = POSENC_DTYPE_F64}, .params = x->params};
    posenc_error     err;
    if (posenc_bias(x->plan, &in, &to, &x->work, &err))
        fail_msg("%s", err.message);
    const double value = bias.wide[((example->a + 1) * (example->b + 1)) * (example->c + 1) - 1];
    array_free(&bias);
    return value;
}

static double (*const value_at[POSENC_PLACE_COUNT])(bench *,
                                                    const posenc_example *) = {row_value, frequency_value,
                                                                               bias_value, bias_value};

static const char *const made_by[POSENC_PLACE_COUNT] = {"rows", "frequencies", "scores", "factors"};

static const char *example_place(const posenc_example *x, char text[64])
{
    if (info->place == POSENC_PLACE_INPUT)
        snprintf(text, 64, "row %d, channel %d", (int)x->a, (int)x->b);
    else if (info->place == POSENC_PLACE_ROTARY)
        snprintf(text, 64, "pair %d", (int)x->a);
    else
        snprintf(text, 64, "head %d, query %d, key %d", (int)x->a, (int)x->b, (int)x->c);
    return text;
}

static void worked_examples_come_out(void **state)
{
    const posenc_example *examples;
    const int             count = posenc_examples(info->name, &examples);
    (void)state;
    for (int i = 0; i < count; i++) {
        const posenc_example *x    = &examples[i];
        posenc_dims           dims = {.B = 1, .Lq = x->a + 1, .Lk = x->a + 1, .d_model = 4};
        char                  settings[256], where[64];
        if (acts_in_attention())
            dims = (posenc_dims){.B = 1, .H = 1, .D = 4, .Lq = x->b + 1, .Lk = x->c + 1};
        split(x->settings, &dims, settings, sizeof settings);
        bench b = bench_make(info->name, settings, dims, posenc_options_default());
        count_params(&b);
        if (!value_at[info->place])
            fail_msg("%s: place %s has no way to check an example", info->name,
                     posenc_place_name(info->place));
        const double got = value_at[info->place](&b, x);
        if (!(fabs(got - x->value) <= 1e-14 * (x->value == 0 ? 1 : fabs(x->value))))
            fail_msg("%s, %s: its %s against its example: %s: computed %.17g, stated %.17g (%s)", info->name,
                     x->settings, made_by[info->place], example_place(x, where), got, x->value, x->source);
        bench_free(&b);
    }
}

/* ---- initialisation ---- */

static const posenc_dims large = {.B = 1, .H = 8, .Lq = 64, .Lk = 64, .D = 16, .d_model = 128, .L = 64};

static int own_setting(void *context, const char *name, size_t length, double *value)
{
    const pe_resolved *part = context;
    const int          own  = pe_settings_index(part->room->info.settings, name, length);
    *value                  = own >= 0 ? part->set[own].real : 0;
    return own >= 0;
}

/* The name s in "normal(0, s)", or 0. */
static int deviation_setting(const char *init, char name[64])
{
    return sscanf(init, "normal(0, %63[A-Za-z_0-9])", name) == 1;
}

/* The ends in "uniform(a, b)" as they are for these sizes, or 0. */
static int uniform_ends(const bench *x, int param, double ends[2])
{
    const posenc_param_info *row  = posenc_param_describe(x->e, param);
    const pe_resolved       *part = &x->plan->parts[info->place];
    char                     text[2][64];
    if (sscanf(row->init, "uniform(%63[^,], %63[^\n]", text[0], text[1]) != 2)
        return 0;
    text[1][strlen(text[1]) - 1] = '\0'; /* the closing parenthesis */
    for (int i = 0; i < 2; i++)
        if (!pe_expression_evaluate(text[i], own_setting, (void *)(uintptr_t)part, &ends[i]))
            fail_msg("%s: %s is no number", row->name, text[i]);
    return 1;
}

static void check_uniform(const array *x, const double ends[2], const char *name)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < x->count; i++) {
        low  = fmin(low, x->wide[i]);
        high = fmax(high, x->wide[i]);
    }
    const double middle = (ends[0] + ends[1]) / 2;
    if (!(x->count >= 8 && low >= ends[0] && high <= ends[1] && low < middle && high > middle))
        fail_msg("%s: from %g to %g, not spread over %g to %g", name, low, high, ends[0], ends[1]);
}

static void init_param(const posenc_encoding *e, uint64_t seed, posenc_tensor *params)
{
    posenc_error err;
    if (posenc_param_init(e, &large, params, seed, &err))
        fail_msg("%s", err.message);
}

static void check_normal(const array *x, double deviation, const char *name)
{
    double mean = 0, squares = 0, n = (double)x->count;
    for (int64_t i = 0; i < x->count; i++) {
        mean += x->wide[i] / n;
        squares += x->wide[i] * x->wide[i] / n;
    }
    if (!(fabs(mean) <= 5 * deviation / sqrt(n) &&
          fabs(sqrt(squares) - deviation) <= 5 * deviation / sqrt(2 * n)))
        fail_msg("%s: mean %g, deviation %g, not 0 and %g", name, mean, sqrt(squares), deviation);
}

static void check_start(bench *x, int i)
{
    const posenc_param_info *row = posenc_param_describe(x->e, i);
    double                   ends[2];
    char                     name[64];
    const array             *now   = &x->numbers[i];
    array                    first = array_make(now->ndim, now->shape);
    init_param(x->e, 1, x->params);
    memcpy(first.wide, now->wide, (size_t)now->count * sizeof(double));
    init_param(x->e, 2, x->params);
    if (deviation_setting(row->init, name)) {
        check_normal(&first, 0.37, row->name);
        check_normal(now, 0.37, row->name);
        assert_true(largest(now, &first) > 0); /* another seed */
    } else if (uniform_ends(x, i, ends)) {
        check_uniform(&first, ends, row->name);
        check_uniform(now, ends, row->name);
        assert_true(largest(now, &first) > 0);
    } else
        assert_true(largest(now, &first) == 0);
    if (!strncmp(row->init, "zeros", strlen("zeros")))
        assert_true(largest(now, NULL) == 0);
    else
        assert_true(largest(now, NULL) > 0);
    init_param(x->e, 1, x->params);
    assert_memory_equal(first.wide, now->wide, (size_t)now->count * sizeof(double));
    array_free(&first);
}

static void parameters_start_as_their_init_says(void **state)
{
    posenc_encoding *plain;
    (void)state;
    assert_int_equal(posenc_encoding_create(&plain, info->name, NULL, NULL), POSENC_OK);
    for (int i = 0; i < posenc_param_count(plain); i++) {
        char name[64], settings[128] = "";
        if (deviation_setting(posenc_param_describe(plain, i)->init, name))
            snprintf(settings, sizeof settings, "%s=0.37", name);
        bench x = bench_make(info->name, settings, large, posenc_options_default());
        check_start(&x, i);
        bench_free(&x);
    }
    posenc_encoding_free(plain);
}

static void parameters_in_float_are_those_in_double_rounded(void **state)
{
    bench         x = bench_make(info->name, NULL, large, posenc_options_default());
    posenc_tensor narrow[CASE_PARAMS];
    (void)state;
    for (int i = 0; i < posenc_param_count(x.e); i++)
        narrow[i] = array_tensor(&x.numbers[i], 0);
    init_param(x.e, 7, x.params);
    init_param(x.e, 7, narrow);
    for (int i = 0; i < posenc_param_count(x.e); i++)
        for (int64_t n = 0; n < x.numbers[i].count; n++)
            assert_true(x.numbers[i].narrow[n] == (float)x.numbers[i].wide[n]);
    bench_free(&x);
}

static void no_two_parameters_share_their_numbers(void **state)
{
    bench x = bench_make(info->name, NULL, large, posenc_options_default());
    char  name[64];
    (void)state;
    init_param(x.e, 1, x.params);
    for (int i = 0; i < posenc_param_count(x.e); i++)
        for (int j = 0; j < i; j++)
            if (deviation_setting(posenc_param_describe(x.e, i)->init, name) &&
                deviation_setting(posenc_param_describe(x.e, j)->init, name))
                assert_true(x.numbers[i].wide[0] != x.numbers[j].wide[0]);
    bench_free(&x);
}

static void another_part_of_a_combination_changes_no_number(void **state)
{
    posenc_options causal = posenc_options_default(); /* every encoding has a meaning with this mask */
    causal.mask           = POSENC_MASK_CAUSAL;
    bench alone           = bench_make(info->name, NULL, large, causal);
    int   tried           = 0;
    (void)state;
    init_param(alone.e, 5, alone.params);
    for (int o = 0; o < posenc_encoding_count(); o++) {
        const posenc_encoding_info *other = posenc_encoding_info_at(o);
        char                        spec[128];
        if (other->place == info->place)
            continue;
        snprintf(spec, sizeof spec, "%s+%s", info->name, other->name);
        if (!case_exists(spec, NULL))
            continue;
        bench both = bench_make(spec, NULL, large, causal);
        init_param(both.e, 5, both.params);
        for (int i = 0; i < posenc_param_count(both.e); i++)
            for (int j = 0; j < posenc_param_count(alone.e); j++) {
                if (posenc_param_describe(both.e, i) != posenc_param_describe(alone.e, j))
                    continue;
                assert_true(!strncmp(posenc_param_name(both.e, i), info->name, strlen(info->name)));
                assert_memory_equal(both.numbers[i].wide, alone.numbers[j].wide,
                                    (size_t)alone.numbers[j].count * sizeof(double));
            }
        bench_free(&both);
        tried++;
    }
    assert_true(tried > 0);
    bench_free(&alone);
}

/* ---- gradients ---- */

static const posenc_dims small_dims = {
    .B = 2, .H = 2, .G = 1, .Lq = 5, .Lk = 7, .D = 6, .Dv = 4, .d_model = 8, .L = 8};

/* "name", or "name[small settings]". */
static void write_spec(char *spec, size_t n, const posenc_dims *dims, int is_small)
{
    char         small[256] = "";
    posenc_error err;
    if (is_small && posenc_small_model(info->name, dims, POSENC_MASK_CAUSAL, small, sizeof small, &err))
        fail_msg("%s", err.message);
    snprintf(spec, n, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
}

/* ---- adjoints: what each member of the score's terms folds back, before any executor calls it ---- */

enum { FEW = 12, MOST_OUTPUTS = 4096 };

/* A member at one head: `outputs` numbers that its parameters make, and the adjoint that turns a cotangent of
   one of them into gradients. What a hook gives is compared with what it gives to the first key: what all
   keys of a query have alike vanishes in the softmax, and a room may leave it out. */
typedef struct member {
    const pe_encoding *room;
    const pe_problem  *p;
    int                param_count; /* of the room, and the numbers made of them */
    pe_by_distance     m;           /* or, where that is empty, the hook on `tile` */
    pe_tile_hook       hook;
    pe_tile            tile;
    int64_t            h, t0, outputs, width; /* numbers at one distance; of a hook: keys */
    const double      *par[CASE_PARAMS];
    double            *dpar[CASE_PARAMS];
    double            *made; /* those numbers, where gradients go to the parameters themselves; else NULL */
    const char        *forward, *backward;
} member;

static const char *param_name(const member *x, int local)
{
    return local < x->room->info.param_count ? x->room->info.params[local].name
                                             : "what is made of the parameters";
}

static const char *param_axes(const member *x, int local)
{
    return local < x->room->info.param_count ? x->room->info.params[local].shape : "number";
}

static void make_outputs(const member *x, double to[])
{
    if (x->made)
        x->room->attention.derive(x->p, x->par, x->made);
    if (x->m.fill)
        x->m.fill(x->p, x->par, x->h, x->t0, x->outputs / x->width, to);
    else
        x->hook.visit(x->p, x->par, &x->tile, to);
}

static void fold_one(const member *x, int64_t output, double cotangents[])
{
    memset(cotangents, 0, (size_t)x->outputs * sizeof *cotangents);
    cotangents[output] = 1;
    if (x->hook.visit)
        cotangents[output / x->width * x->width] -= 1;
    if (x->m.fill)
        x->m.fold(x->p, x->par, x->h, x->t0, x->outputs / x->width, cotangents, x->dpar);
    else
        x->hook.visit_back(x->p, x->par, &x->tile, cotangents, x->dpar);
}

static void output_text(const member *x, int64_t output, char text[64])
{
    const int64_t row = output / x->width, column = output % x->width;
    if (x->hook.visit)
        snprintf(text, 64, "P(i) = %g, P(j) = %g", x->tile.q_pos[row], x->tile.k_pos[column]);
    else if (x->width == 1)
        snprintf(text, 64, "t = %lld", (long long)(x->t0 + row));
    else
        snprintf(text, 64, "t = %lld, channel %lld", (long long)(x->t0 + row), (long long)column);
}

/* Number n of parameter `local`: moving it moves the outputs as the adjoint says. */
static void compare_number(const member *x, array *numbers, const array *gradients, int local, int64_t n)
{
    static double above[MOST_OUTPUTS], below[MOST_OUTPUTS];
    const double  start = numbers->wide[n];
    numbers->wide[n]    = start + STEP;
    make_outputs(x, above);
    numbers->wide[n] = start - STEP;
    make_outputs(x, below);
    numbers->wide[n] = start;
    for (int64_t output = 0; output < x->outputs; output++) {
        const int64_t first = output / x->width * x->width;
        const double  base  = x->hook.visit ? above[first] - below[first] : 0,
                     slope  = (above[output] - below[output] - base) / (2 * STEP),
                     got    = gradients->wide[output * numbers->count + n];
        char where[64];
        output_text(x, output, where);
        if (!(fabs(slope - got) <= TOLERANCE * fmax(1, fabs(slope))))
            fail_msg("%s: head %lld, %s: gradient of %s at %s: %s says %.9g, differences of %s say %.9g",
                     info->name, (long long)x->h, where, param_name(x, local),
                     array_place(numbers, n, param_axes(x, local)), x->backward, got, x->forward, slope);
    }
}

/* numbers[local] are the parameters of the room, as x->par. */
static void compare_adjoint(member *x, array *const numbers[])
{
    static double cotangents[MOST_OUTPUTS];
    array         gradients[CASE_PARAMS];
    assert_in_range(x->outputs, 1, MOST_OUTPUTS);
    for (int i = 0; i < x->param_count; i++)
        if (numbers[i])
            gradients[i] = array_make(2, (int64_t[]){x->outputs, numbers[i]->count});
    for (int64_t output = 0; output < x->outputs; output++) {
        for (int i = 0; i < x->param_count; i++)
            x->dpar[i] = numbers[i] ? gradients[i].wide + output * numbers[i]->count : NULL;
        fold_one(x, output, cotangents);
    }
    for (int i = 0; i < x->param_count; i++) {
        for (int64_t n = 0; numbers[i] && n < numbers[i]->count; n++)
            compare_number(x, numbers[i], &gradients[i], i, n);
        if (numbers[i])
            array_free(&gradients[i]);
    }
}

/* Numbers per row of a member; see pe_preparation.width. */
static int64_t width_of(const member *x, const pe_terms *terms, pe_kind kind)
{
    pe_problem p = *x->p;
    p.D          = terms->prepare.fill ? terms->prepare.width : p.D;
    return pe_member_width(terms, &p, kind);
}

/* A member by distance, from its first distance to its last. */
static void choose_member(member *x, const pe_terms *terms, pe_kind kind)
{
    int64_t last = small_dims.Lq - 1;
    x->m         = pe_member(terms, kind);
    x->width     = width_of(x, terms, kind);
    x->t0        = info->causal_only ? 0 : 1 - small_dims.Lq;
    if (x->m.clipped && x->t0 < x->m.low)
        x->t0 = x->m.low;
    if (x->m.clipped && last > x->m.high)
        last = x->m.high;
    x->outputs = (last - x->t0 + 1) * x->width;
}

static void compare_members(member x, const pe_terms *terms, array *const numbers[])
{
    static const char *const        forward[PE_KINDS] = {"fill", "fill of the gate", "fill of A", "fill of B",
                                                         "fill of r"},
                             *const backward[PE_KINDS] = {"fold", "fold of the gate", "fold of A",
                                                          "fold of B", "fold of r"};
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        choose_member(&x, terms, kind);
        if (!x.m.fill || !x.m.fold)
            continue;
        x.forward  = forward[kind];
        x.backward = backward[kind];
        compare_adjoint(&x, numbers);
    }
}

/* What a hook sees of all queries and keys; of their content numbers that mean nothing. */
typedef struct sheet {
    double q_pos[FEW], k_pos[FEW], q[FEW * FEW], s[FEW * FEW], dx[FEW * FEW], ds[FEW * FEW], dq[FEW * FEW];
    double state[FEW * PE_HOOK_STATE];
    posenc_positions all;
} sheet;

static void choose_hook(member *x, const pe_terms *terms, sheet *on, int64_t stride)
{
    const int64_t D = terms->prepare.fill ? terms->prepare.width : x->p->D;
    assert_true(D <= FEW && stride <= FEW && x->p->Lk <= stride);
    *on = (sheet){.all = posenc_positions_range(0, 1)};
    for (int i = 0; i < FEW; i++)
        on->q_pos[i] = on->k_pos[i] = i;
    for (int i = 0; i < FEW * FEW; i++) {
        const int is_hidden = i % stride > i / stride || i % stride >= x->p->Lk;
        on->q[i]            = posenc_random_normal(1, "q", (uint64_t)i);
        on->s[i]            = is_hidden ? -INFINITY : posenc_random_normal(1, "s", (uint64_t)i);
        on->dx[i]           = is_hidden ? 0 : posenc_random_normal(1, "dx", (uint64_t)i);
    }
    x->m        = (pe_by_distance){0};
    x->hook     = terms->hook;
    x->width    = stride;
    x->outputs  = x->p->Lq * stride;
    x->forward  = "visit";
    x->backward = "visit_back";
    x->tile     = (pe_tile){.h        = x->h,
                            .rows     = x->p->Lq,
                            .cols     = x->p->Lk,
                            .stride   = stride,
                            .q_pos    = on->q_pos,
                            .k_pos    = on->k_pos,
                            .q_places = {&on->all, 0, 0},
                            .k_places = {&on->all, 0, 0},
                            .scale    = terms->scale,
                            .q        = on->q,
                            .s        = on->s,
                            .state    = on->state,
                            .ds       = on->ds,
                            .dq       = on->dq};
}

/* A hook that sees no content is compared; of any other only what `learns` says of it. */
static void compare_hook(member x, const pe_terms *terms, array *const numbers[])
{
    sheet on;
    choose_hook(&x, terms, &on, x.p->Lk);
    if (!x.hook.content && !x.hook.state)
        compare_adjoint(&x, numbers);
    array gradients[CASE_PARAMS];
    for (int i = 0; i < x.param_count; i++) {
        gradients[i] = array_make(1, (int64_t[]){numbers[i] ? numbers[i]->count : 0});
        x.dpar[i]    = numbers[i] ? gradients[i].wide : NULL;
    }
    make_outputs(&x, (double[FEW * FEW]){0});
    x.hook.visit_back(x.p, x.par, &x.tile, on.dx, x.dpar);
    for (int i = 0; i < x.param_count; i++) {
        if (x.hook.learns && !(x.hook.learns >> i & 1) && largest(&gradients[i], NULL) > 0)
            fail_msg(
                "%s: visit_back adds to the gradient of %s, which .learns does not name: executors would "
                "drop it",
                info->name, param_name(&x, i));
        array_free(&gradients[i]);
    }
}

/* The room's members with parameters to call them with. */
typedef struct room_case {
    attention_case c;
    posenc_plan   *plan;
    array         *numbers[CASE_PARAMS], made; /* parameters by the room's own number; what is made of them */
    member         x;
} room_case;

static void open_room(room_case *to, int is_small)
{
    char         spec[300];
    posenc_error err;
    write_spec(spec, sizeof spec, &small_dims, is_small);
    *to = (room_case){.c = case_make(spec, small_dims, 5)};
    keep_away_from_zero(&to->c);
    if (info->causal_only)
        to->c.options.mask = POSENC_MASK_CAUSAL;
    if (posenc_plan_create(&to->plan, to->c.e, &to->c.dims, &to->c.options, &err))
        fail_msg("%s", err.message);
    const pe_resolved          *part = &to->plan->parts[info->place];
    const pe_attention_members *own  = &part->room->attention;
    member                     *x    = &to->x;
    const int64_t               made = acts_in_attention() && own->derived ? own->derived(&part->problem) : 0;
    x->room                          = part->room;
    x->p                             = &part->problem;
    x->param_count                   = part->room->info.param_count;
    for (int i = 0; i < to->c.param_count; i++) {
        if (to->c.e->params[i].place != (int)info->place)
            continue;
        to->numbers[to->c.e->params[i].local] = &to->c.params[i];
        x->par[to->c.e->params[i].local]      = to->c.params[i].wide;
    }
    to->made = array_make(1, &made);
    if (made > 0) {
        own->derive(x->p, x->par, to->made.wide);
        to->numbers[x->param_count] = &to->made;
        x->par[x->param_count++]    = to->made.wide;
        x->made                     = own->derive_back ? NULL : to->made.wide;
    }
}

static void close_room(room_case *of)
{
    array_free(&of->made);
    posenc_plan_free(of->plan);
    case_free(&of->c);
}

static void what_is_folded_back_is_the_slope_of_what_was_filled_in(void **state)
{
    (void)state;
    if (!acts_in_attention())
        skip();
    for (int is_small = 0; is_small < 2; is_small++) {
        room_case of;
        open_room(&of, is_small);
        for (of.x.h = 0; of.x.h < small_dims.H; of.x.h++) {
            compare_members(of.x, &of.plan->terms, of.numbers);
            if (of.plan->terms.hook.visit_back)
                compare_hook(of.x, &of.plan->terms, of.numbers);
        }
        close_room(&of);
    }
}

/* ---- outputs: a member writes what it is asked for ---- */

enum { BEHIND = 4 };                     /* numbers after the last row */
#define UNWRITTEN 0x1.23456789abcdep-900 /* no formula gives it */

static double *unwritten(int64_t n)
{
    double *x = malloc((size_t)(n + BEHIND) * sizeof *x);
    for (int64_t i = 0; i < n + BEHIND; i++)
        x[i] = UNWRITTEN;
    return x;
}

/* Of rows at their stride `width` numbers each, and nothing behind them. */
static void check_rows(const double *x, int64_t rows, int64_t width, int64_t stride, const char *who)
{
    for (int64_t i = 0; i < rows * stride + BEHIND; i++)
        if ((x[i] != UNWRITTEN) != (i < rows * stride && i % stride < width))
            fail_msg("%s: %s %s number %lld of row %lld of %lld, which have %lld numbers", info->name, who,
                     x[i] == UNWRITTEN ? "does not write" : "writes", (long long)(i % stride),
                     (long long)(i / stride), (long long)rows, (long long)width);
}

static void check_written(double *x, int64_t rows, int64_t width, const char *who)
{
    check_rows(x, rows, width, width, who);
    free(x);
}

/* Gradients that a member adds to, with nothing behind them. */
static void open_gradients(member *x, array *const numbers[])
{
    for (int i = 0; i < x->param_count; i++) {
        x->dpar[i] = numbers[i] ? unwritten(numbers[i]->count) : NULL;
        if (numbers[i])
            memset(x->dpar[i], 0, (size_t)numbers[i]->count * sizeof *x->dpar[i]);
    }
}

static void close_gradients(member *x, array *const numbers[], const char *who)
{
    for (int i = 0; i < x->param_count; i++)
        if (numbers[i])
            check_written(x->dpar[i], 1, numbers[i]->count, who);
}

static void check_member(member x, const pe_terms *terms, pe_kind kind, array *const numbers[])
{
    choose_member(&x, terms, kind);
    const int64_t n = x.outputs / x.width;
    if (x.m.slope) {
        const pe_part part = {.p = x.p, .par = x.par};
        double       *rows = unwritten(n);
        pe_members_fill(&part, &x.m, x.width, x.h, x.t0, n, rows);
        check_written(rows, n, 1, "what is filled in by the slope");
    }
    if (x.m.fill) {
        double *rows = unwritten(x.outputs);
        x.m.fill(x.p, x.par, x.h, x.t0, n, rows);
        open_gradients(&x, numbers);
        if (x.m.fold)
            x.m.fold(x.p, x.par, x.h, x.t0, n, rows, x.dpar);
        close_gradients(&x, numbers, "fold");
        check_written(rows, n, x.width, "fill");
    }
    if (x.m.index) {
        int64_t *rows = malloc((size_t)(n + 1) * sizeof *rows);
        memset(rows, 0x5a, (size_t)(n + 1) * sizeof *rows);
        const int64_t none = rows[n];
        x.m.index(x.p, x.h, x.t0, n, rows);
        for (int64_t i = 0; i <= n; i++)
            assert_true((rows[i] != none) == (i < n));
        free(rows);
    }
}

static void check_hook(member x, const pe_terms *terms, array *const numbers[])
{
    sheet         on;
    const int64_t stride = x.p->Lk + BEHIND, D = terms->prepare.fill ? terms->prepare.width : x.p->D;
    choose_hook(&x, terms, &on, stride);
    double *rows = unwritten(x.outputs);
    x.hook.visit(x.p, x.par, &x.tile, rows);
    check_rows(rows, x.p->Lq, x.p->Lk, stride, "visit");
    free(rows);
    open_gradients(&x, numbers);
    if (x.hook.visit_back)
        x.hook.visit_back(x.p, x.par, &x.tile, on.dx, x.dpar);
    close_gradients(&x, numbers, "visit_back");
    for (int64_t i = x.p->Lk; i < FEW * FEW; i++)
        assert_true(on.ds[i] == 0 || (i % stride < x.p->Lk && i < x.outputs));
    for (int64_t i = x.p->Lq * D; i < FEW * FEW; i++)
        assert_true(on.dq[i] == 0);
}

static void check_preparation(member x, const pe_terms *terms, pe_side side, array *const numbers[])
{
    enum { N = 3 };
    const pe_preparation *own = &terms->prepare;
    const int64_t D = x.p->D, forms = side == PE_QUERIES ? pe_forms(terms) : 1, width = forms * own->width;
    const double  pos[N] = {0, 2, 5};
    double       *from = unwritten(N * D), *to = unwritten(N * width), *back = unwritten(N * D);
    for (int64_t i = 0; i < N * D; i++)
        from[i] = posenc_random_normal(1, "x", (uint64_t)i);
    own->fill(x.p, x.par, side, x.h, pos, N, from, to);
    open_gradients(&x, numbers);
    if (own->fold) {
        own->fold(x.p, x.par, side, x.h, pos, N, from, to, back, x.dpar);
        check_rows(back, N, D, D, "fold of the preparation");
    }
    free(back);
    check_written(to, N, width, "fill of the preparation");
    check_written(from, N, D, "its x");
    if (own->by_position) {
        double *place = unwritten(N * (own->width - D));
        own->by_position(x.p, x.par, side, x.h, pos, N, place);
        own->by_position_back(x.p, x.par, side, x.h, pos, N, place, x.dpar);
        check_written(place, N, own->width - D, "by_position");
    }
    close_gradients(&x, numbers, "fold of the preparation");
}

static void check_input(member x, int64_t width, array *const numbers[])
{
    enum { N = 3 };
    const pe_input_members *own        = &x.room->input;
    const double            pos[4 * N] = {0, 1, 1, 0, 2, 1, 0, 1, 1};
    double                 *out        = unwritten(N * width);
    own->rows(x.p, x.par, pos, N, out);
    open_gradients(&x, numbers);
    if (own->rows_back)
        own->rows_back(x.p, x.par, pos, N, out, x.dpar);
    close_gradients(&x, numbers, "rows_back");
    check_written(out, N, width, "rows");
}

static void members_write_what_they_are_asked_for_and_nothing_beside_it(void **state)
{
    (void)state;
    for (int is_small = 0; is_small < 2; is_small++) {
        room_case of;
        open_room(&of, is_small);
        const pe_terms *terms = &of.plan->terms;
        if (!acts_in_attention() && of.x.room->input.rows)
            check_input(of.x, of.plan->row_width, of.numbers);
        for (of.x.h = 0; acts_in_attention() && of.x.h < small_dims.H; of.x.h++) {
            for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
                check_member(of.x, terms, kind, of.numbers);
            if (terms->hook.visit)
                check_hook(of.x, terms, of.numbers);
            for (pe_side side = PE_QUERIES; terms->prepare.fill && side <= PE_KEYS; side++)
                if (side == PE_QUERIES || of.x.h < small_dims.G)
                    check_preparation(of.x, terms, side, of.numbers);
        }
        close_room(&of);
    }
}

/* ---- gradients of whole runs ---- */

static double rows_loss(bench *x, const array *dy, posenc_positions pos, array *input)
{
    array                y  = array_make(3, dy->shape);
    posenc_tensor        to = array_tensor(&y, 1);
    const posenc_rows_in in = {
        .size = sizeof in, .x = array_tensor(input, 1), .pos = pos, .params = x->params};
    double       sum = 0;
    posenc_error err;
    if (posenc_rows(x->plan, &in, &to, &x->work, &err))
        fail_msg("%s", err.message);
    for (int64_t i = 0; i < y.count; i++)
        sum += dy->wide[i] * y.wide[i];
    array_free(&y);
    return sum;
}

typedef struct compared { /* what a loss of rows depends on */
    bench           *x;
    const array     *dy;
    posenc_positions pos;
    array           *input;
} compared;

static double rows_slope(const compared *c, double *at)
{
    const double start = *at;
    *at                = start + STEP;
    const double above = rows_loss(c->x, c->dy, c->pos, c->input);
    *at                = start - STEP;
    const double below = rows_loss(c->x, c->dy, c->pos, c->input);
    *at                = start;
    return (above - below) / (2 * STEP);
}

static void compare_slopes(const compared *c, array *numbers, const array *gradient, const char *name,
                           const char *axes)
{
    for (int64_t i = 0; i < gradient->count; i++) {
        const double slope = rows_slope(c, &numbers->wide[i]);
        if (!(fabs(slope - gradient->wide[i]) <= TOLERANCE))
            fail_msg("%s: gradient of %s at %s: rows_back says %.12g, finite differences of rows say %.12g",
                     posenc_encoding_spec(c->x->e), name, array_place(gradient, i, axes), gradient->wide[i],
                     slope);
    }
}

static void compare_rows(bench *x, posenc_positions pos)
{
    array dy         = array_make(3, (int64_t[]){2, small_dims.Lq, posenc_rows_width(x->plan)}),
          input      = array_make(3, dy.shape);
    array         dx = array_make(3, dy.shape), dparams[CASE_PARAMS];
    posenc_tensor to[CASE_PARAMS];
    posenc_error  err;
    array_fill(&dy, 1, "dy", 1);
    array_fill(&input, 1, "x", 1);
    for (int i = 0; i < posenc_param_count(x->e); i++) {
        array_fill(&x->numbers[i], 2, posenc_param_name(x->e, i), 1);
        dparams[i] = array_make(x->numbers[i].ndim, x->numbers[i].shape);
        to[i]      = array_tensor(&dparams[i], 1);
    }
    const posenc_rows_in in = {
        .size = sizeof in, .x = array_tensor(&input, 1), .pos = pos, .params = x->params};
    const posenc_rows_grad grad = {
        .size = sizeof grad, .dy = array_tensor(&dy, 1), .dx = array_tensor(&dx, 1), .dparams = to};
    if (posenc_rows_backward(x->plan, &in, &grad, &x->work, &err))
        fail_msg("%s", err.message);
    const compared by_rows = {x, &dy, pos, &input};
    compare_slopes(&by_rows, &input, &dx, "x", "item,row,channel");
    for (int p = 0; p < posenc_param_count(x->e); p++) {
        compare_slopes(&by_rows, &x->numbers[p], &dparams[p], posenc_param_name(x->e, p),
                       posenc_param_describe(x->e, p)->shape);
        array_free(&dparams[p]);
    }
    array_free(&dy), array_free(&input), array_free(&dx);
}

static void gradients_at_the_input(const char *spec)
{
    enum { COORDINATES = 4 };
    static const int64_t rows[10] = {0, 3, 3, 1, 4, 2, 2, 2, 0, 1}; /* repeated: cotangents meet */
    int64_t              ids[10 * COORDINATES];
    bench                x = bench_make(spec, NULL, small_dims, posenc_options_default());
    const int64_t        N = posenc_rows_coordinates(x.e), shape[3] = {2, 5, N};
    assert_in_range(N, 1, COORDINATES);
    for (int64_t i = 0; i < 10 * N; i++)
        ids[i] = rows[i / N];
    compare_rows(&x, posenc_positions_range(0, 1));
    compare_rows(&x, posenc_positions_array(
                         posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, N > 1 ? 3 : 2, shape)));
    bench_free(&x);
}

static void gradients_are_the_slopes_of_the_loss(void **state)
{
    (void)state;
    for (int is_small = 0; is_small < 2; is_small++) {
        char spec[300];
        write_spec(spec, sizeof spec, &small_dims, is_small);
        if (!acts_in_attention()) {
            gradients_at_the_input(spec);
            continue;
        }
        compare_gradients(spec, small_dims, POSENC_MASK_CAUSAL, 11);
        if (!info->causal_only)
            compare_gradients(spec, small_dims, POSENC_MASK_NONE, 12);
    }
}

/* ---- decoding ---- */

static const posenc_dims whole = {
    .B = 2, .H = 4, .G = 2, .Lq = 19, .Lk = 23, .D = 8, .Dv = 6, .d_model = 16, .L = 16};

/* What a token input of queries says of those from .. from+n-1. */
static array token_rows(const array *t, int64_t from, int64_t n)
{
    array to = array_make4(t->shape[0], t->shape[1], n, t->shape[3]);
    for (int64_t x = 0; x < to.count; x++) {
        const int64_t row = n * t->shape[3], at = (x / row * t->shape[2] + from) * t->shape[3] + x % row;
        to.wide[x]   = t->wide[at];
        to.narrow[x] = t->narrow[at];
    }
    return to;
}

/* Queries from .. from+n-1 of the case, all keys, written to o [B,H,n,Dv]. */
static void attend_chunk(const attention_case *c, const posenc_plan *plan, const posenc_workspace *work,
                         int wide, int64_t from, int64_t n, const array *o)
{
    posenc_tensor    params[CASE_PARAMS], tokens[CASE_TOKENS];
    array            rows[CASE_TOKENS] = {{0}};
    posenc_attend_in in                = {.size   = sizeof in,
                                          .q      = array_tensor(&c->q, wide),
                                          .k      = array_tensor(&c->k, wide),
                                          .v      = array_tensor(&c->v, wide),
                                          .tokens = tokens,
                                          .params = params};
    posenc_error     err;
    for (int i = 0; i < c->token_count; i++) {
        const int of_keys = posenc_token_describe(c->e, i)->of_keys;
        rows[i]           = token_rows(&c->tokens[i], of_keys ? 0 : from, of_keys ? whole.Lk : n);
        tokens[i]         = array_tensor(&rows[i], wide);
    }
    for (int i = 0; i < c->param_count; i++)
        params[i] = array_tensor(&c->params[i], wide);
    in.q.data     = wide ? (void *)(c->q.wide + from * whole.D) : (void *)(c->q.narrow + from * whole.D);
    in.q.shape[2] = n;
    in.q_pos      = posenc_positions_range((double)(whole.Lk - whole.Lq + from), 1);
    in.k_pos      = posenc_positions_range(0, 1);
    const posenc_attend_out out = {.size = sizeof out, .o = array_tensor(o, wide)};
    if (posenc_attend(plan, &in, &out, work, &err))
        fail_msg("%s: %s", posenc_encoding_spec(c->e), err.message);
    for (int i = 0; i < c->token_count; i++)
        array_free(&rows[i]);
}

static void compare_chunk(const array *full, const array *part, int wide, int64_t from, int64_t n)
{
    for (int64_t bh = 0; bh < whole.B * whole.H; bh++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t a = (bh * whole.Lq + from + i) * whole.Dv, b = (bh * n + i) * whole.Dv;
            double        scale = 0;
            for (int64_t d = 0; d < whole.Dv; d++)
                scale = fmax(scale, fabs((double)full->narrow[a + d]));
            for (int64_t d = 0; d < whole.Dv; d++) {
                if (wide)
                    assert_true(full->wide[a + d] == part->wide[b + d]);
                else
                    assert_true(fabs((double)full->narrow[a + d] - (double)part->narrow[b + d]) <=
                                4e-6 * scale);
            }
        }
}

static void chunks_in_attention(int wide, int mask)
{
    static const int64_t chunks[][2] = {{0, 1}, {18, 1}, {7, 1}, {0, 5}, {4, 15}, {11, 8}};
    char                 spec[300];
    posenc_plan         *plan;
    posenc_error         err;
    write_spec(spec, sizeof spec, &whole, 1);
    attention_case c   = case_make(spec, whole, 21);
    c.options.mask     = mask;
    c.options.executor = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    array full         = array_make4(whole.B, whole.H, whole.Lq, whole.Dv);
    if (posenc_plan_create(&plan, c.e, &whole, &c.options, &err))
        fail_msg("%s", err.message);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
    attend_chunk(&c, plan, &work, wide, 0, whole.Lq, &full);
    for (size_t x = 0; x < sizeof chunks / sizeof *chunks; x++) {
        array part = array_make4(whole.B, whole.H, chunks[x][1], whole.Dv);
        attend_chunk(&c, plan, &work, wide, chunks[x][0], chunks[x][1], &part);
        compare_chunk(&full, &part, wide, chunks[x][0], chunks[x][1]);
        array_free(&part);
    }
    array_free(&full);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    case_free(&c);
}

static void rows_from(bench *x, double start, const array *y)
{
    posenc_error         err;
    posenc_tensor        to = array_tensor(y, 1);
    const posenc_rows_in in = {.size   = sizeof in,
                               .pos    = posenc_positions_range(start, 1),
                               .params = x->params};
    if (posenc_rows(x->plan, &in, &to, &x->work, &err))
        fail_msg("%s", err.message);
}

static void chunks_at_the_input(void)
{
    char spec[300];
    write_spec(spec, sizeof spec, &whole, 1);
    bench         x     = bench_make(spec, NULL, whole, posenc_options_default());
    const int64_t width = posenc_rows_width(x.plan);
    array full = array_make(3, (int64_t[]){1, 15, width}), one = array_make(3, (int64_t[]){1, 1, width});
    rows_from(&x, 0, &full);
    for (int64_t s = 0; s < 15; s++) {
        rows_from(&x, (double)s, &one);
        assert_memory_equal(one.wide, full.wide + s * width, (size_t)width * sizeof(double));
    }
    array_free(&full), array_free(&one);
    bench_free(&x);
}

/* A parameter with a number per query goes by the place of a query in its tensor: a chunk has other
   places. */
static int goes_by_place(void)
{
    for (int p = 0; p < info->param_count; p++)
        if (strstr(info->params[p].shape, "Lq"))
            return 1;
    return 0;
}

static void a_chunk_at_its_offset_is_a_part_of_the_full_pass(void **state)
{
    (void)state;
    if (goes_by_place())
        skip();
    if (!acts_in_attention()) {
        chunks_at_the_input();
        return;
    }
    for (int wide = 0; wide < 2; wide++) {
        chunks_in_attention(wide, POSENC_MASK_CAUSAL);
        if (!info->causal_only)
            chunks_in_attention(wide, POSENC_MASK_NONE);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_examples_come_out),
        cmocka_unit_test(parameters_start_as_their_init_says),
        cmocka_unit_test(parameters_in_float_are_those_in_double_rounded),
        cmocka_unit_test(no_two_parameters_share_their_numbers),
        cmocka_unit_test(another_part_of_a_combination_changes_no_number),
        cmocka_unit_test(what_is_folded_back_is_the_slope_of_what_was_filled_in),
        cmocka_unit_test(members_write_what_they_are_asked_for_and_nothing_beside_it),
        cmocka_unit_test(gradients_are_the_slopes_of_the_loss),
        cmocka_unit_test(a_chunk_at_its_offset_is_a_part_of_the_full_pass),
    };
    info = argc == 2 ? posenc_encoding_find(argv[1]) : NULL;
    if (!info) {
        fprintf(stderr, "usage: test_encodings_rooms ENCODING, one of `posenc list`\n");
        return 2;
    }
    return cmocka_run_group_tests_name(info->name, tests, NULL, NULL);
}

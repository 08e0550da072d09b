/* SPDX-License-Identifier: MIT */
/*
 * test_properties: what must hold of every encoding without any reference
 *
 * Rotations keep lengths, are undone by turning back, and add up. Where an encoding acts by distance, moving
 * all positions changes nothing. Without an encoding attention is a bag of words, with one it is not. Outputs
 * are linear in v; the future and what is masked cannot be seen, to the bit; grouped heads are heads that
 * share; gradients of parameters add while those of activations overwrite. The registry says which encodings
 * there are and what kind they are; parameters are random and nowhere 0.
 *
 * Tolerances in double: a row of the reference sums some hundred products, so 1e-12 of the array's scale;
 * equal computations must have equal bits.
 */
#include <posenc/rotary.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

static const posenc_dims dims = {
    .B = 2, .H = 4, .G = 2, .Lq = 9, .Lk = 9, .D = 8, .Dv = 6, .d_model = 16, .L = 16};

/* "name[small settings]". */
static void write_spec(char *spec, size_t n, const posenc_encoding_info *info)
{
    char         small[256];
    posenc_error err;
    if (posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, &err))
        fail_msg("%s", err.message);
    snprintf(spec, n, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
}

/* The next encoding that acts in attention, from *index on; NULL: no more. */
static const posenc_encoding_info *attention_at(int *index)
{
    for (; *index < posenc_encoding_count(); (*index)++)
        if (posenc_encoding_info_at(*index)->place != POSENC_PLACE_INPUT)
            return posenc_encoding_info_at((*index)++);
    return NULL;
}

static attention_case make(const posenc_encoding_info *info, uint64_t seed)
{
    char spec[300];
    write_spec(spec, sizeof spec, info);
    attention_case c  = case_make(spec, dims, seed);
    c.options.mask    = info->causal_only ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
    c.options.threads = 1;
    return c;
}

/* Does it say nothing about positions? */
static int is_none(const posenc_encoding_info *info)
{
    /* the second reads phases that an embedding has put there; by itself it knows no place */
    return !strcmp(info->name, "nope") || !strcmp(info->name, "complex_order_attention");
}

static void assert_near(const array *a, const array *b, double tolerance, const char *what, const char *name)
{
    const double scale = largest(b, NULL);
    if (!(largest(a, b) <= tolerance * scale))
        fail_msg("%s: %s: differs by %.3g of %.3g", name, what, largest(a, b), scale);
}

static int has_same_bits(const array *a, const array *b, int wide)
{
    const size_t n = (size_t)a->count;
    return wide ? !memcmp(a->wide, b->wide, n * sizeof(double))
                : !memcmp(a->narrow, b->narrow, n * sizeof(float));
}

/* ---- rotations ---- */

typedef struct rotation {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace work;
} rotation;

static rotation rotation_make(const posenc_encoding_info *info)
{
    rotation     r;
    char         spec[300];
    posenc_error err;
    write_spec(spec, sizeof spec, info);
    if (posenc_encoding_create(&r.e, spec, NULL, &err) || posenc_plan_create(&r.plan, r.e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    r.work = workspace_for(r.plan, POSENC_RUN_FORWARD);
    return r;
}

static void rotation_free(rotation *r)
{
    posenc_workspace_free(&r->work);
    posenc_plan_free(r->plan);
    posenc_encoding_free(r->e);
}

static void rotate(const rotation *r, const array *x, int wide, double start, int direction)
{
    posenc_error           err;
    const posenc_tensor    t  = array_tensor(x, wide);
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = t,
                                 .to_q      = t,
                                 .q_pos     = posenc_positions_range(start, 1),
                                 .direction = direction};
    if (posenc_rotate(r->plan, &io, &r->work, &err))
        fail_msg("%s", err.message);
}

static double magnitude_of(const rotation *r)
{
    int64_t pairs;
    double  magnitude;
    assert_int_equal(posenc_rotary_frequencies(r->plan, NULL, &pairs, &magnitude, NULL), POSENC_OK);
    return magnitude;
}

/* The next encoding that does nothing but rotate, from *index on; 0: no more. Where the magnitude grows with
   the position it is NAN. */
static int rotation_at(int *index, rotation *r)
{
    for (const posenc_encoding_info *info; (info = attention_at(index)) != NULL;) {
        if (info->place != POSENC_PLACE_ROTARY)
            continue;
        *r = rotation_make(info);
        if (!isnan(magnitude_of(r)))
            return 1;
        rotation_free(r);
    }
    return 0;
}

/* Where the magnitude is not 1 channels outside the block keep theirs: then lengths say nothing simple. */
static void turning_keeps_the_length_of_every_row(void **state)
{
    rotation r;
    int      tried = 0;
    (void)state;
    for (int index = 0; rotation_at(&index, &r);) {
        array x = array_make4(dims.B, dims.H, dims.Lq, dims.D),
              y = array_make4(dims.B, dims.H, dims.Lq, dims.D);
        array_fill(&x, 1, "x", 1);
        array_fill(&y, 1, "x", 1);
        rotate(&r, &y, 1, 1000003, 1);
        for (int64_t row = 0; magnitude_of(&r) == 1 && row < x.count; row += dims.D) {
            double before = 0, after = 0;
            for (int64_t d = row; d < row + dims.D; d++) {
                before += x.wide[d] * x.wide[d];
                after += y.wide[d] * y.wide[d];
            }
            assert_true(fabs(after - before) <= 1e-14 * before);
            tried++;
        }
        assert_true(largest(&x, &y) > 0.1); /* it did turn */
        array_free(&x), array_free(&y);
        rotation_free(&r);
    }
    assert_true(tried > 0);
}

static void turning_back_undoes_turning(void **state)
{
    rotation r;
    (void)state;
    for (int index = 0; rotation_at(&index, &r);) {
        array x             = array_make4(dims.B, dims.H, dims.Lq, dims.D),
              y             = array_make4(dims.B, dims.H, dims.Lq, dims.D);
        const double square = magnitude_of(&r) * magnitude_of(&r);
        array_fill(&x, 2, "x", 1);
        array_fill(&y, 2, "x", 1);
        for (int wide = 0; wide < 2; wide++) {
            rotate(&r, &y, wide, -77777, 1);
            rotate(&r, &y, wide, -77777, -1);
        }
        for (int64_t i = 0; i < x.count; i++) {
            const int is_turned = y.wide[i] != x.wide[i] || square == 1;
            assert_true(fabs(y.wide[i] - (is_turned ? square : 1) * x.wide[i]) <= 1e-14 * largest(&x, NULL));
            /* twice the kernel's and the table's share: 2 (2^-22 + 2^-24.5), for pairs up to twice a number's
               size */
            assert_true(fabs((double)y.narrow[i] - (is_turned ? square : 1) * x.wide[i]) <=
                        4e-6 * largest(&x, NULL));
        }
        array_free(&x), array_free(&y);
        rotation_free(&r);
    }
}

static void turning_by_a_then_b_is_turning_by_a_plus_b(void **state)
{
    rotation r;
    (void)state;
    for (int index = 0; rotation_at(&index, &r);) {
        array x = array_make4(1, dims.H, 1, dims.D),
              y = array_make4(1, dims.H, 1, dims.D); /* one position: no range */
        array_fill(&x, 3, "x", 1);
        array_fill(&y, 3, "x", 1);
        rotate(&r, &x, 1, 12345, 1);
        rotate(&r, &x, 1, 678901, 1);
        rotate(&r, &y, 1, 12345 + 678901, 1);
        rotate(&r, &y, 1, 0, 1); /* the magnitude a second time */
        assert_near(&x, &y, 1e-14, "a then b", posenc_encoding_spec(r.e));
        array_free(&x), array_free(&y);
        rotation_free(&r);
    }
}

/* ---- positions ---- */

static void moving_all_positions_changes_nothing_where_only_distance_counts(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = attention_at(&index)) != NULL;) {
        attention_case   c    = make(info, 30);
        attention_result here = case_run(&c, 1);
        /* a table of positions ends somewhere */
        const double there   = info->row_limit && !info->by_distance ? 101 : 100001;
        c.q_pos              = posenc_positions_range(there, 1);
        c.k_pos              = posenc_positions_range(there, 1);
        attention_result far = case_run(&c, 1);
        if (info->by_distance) {
            assert_near(&far.o, &here.o, 1e-12, "o", info->name);
            assert_near(&far.lse, &here.lse, 1e-12, "lse", info->name);
            assert_near(&far.dq, &here.dq, 1e-11, "dq", info->name);
            for (int i = 0; i < c.param_count; i++)
                assert_near(&far.dparams[i], &here.dparams[i], 1e-11, posenc_param_name(c.e, i), info->name);
        } else if (!(largest(&far.o, &here.o) > 1e-6))
            fail_msg("%s sees more than distances, but moving all positions changes nothing", info->name);
        result_free(&here), result_free(&far);
        case_free(&c);
    }
}

/* Token s of the case becomes token order[s]. */
static void permute(array *x, const int64_t order[])
{
    const int64_t L = x->shape[2], width = x->shape[3], heads = x->count / (L * width);
    double       *old = malloc((size_t)x->count * sizeof *old);
    memcpy(old, x->wide, (size_t)x->count * sizeof *old);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t s = 0; s < L; s++)
            memcpy(x->wide + (h * L + s) * width, old + (h * L + order[s]) * width,
                   (size_t)width * sizeof *old);
    free(old);
}

static void permuting_tokens_permutes_outputs_only_without_an_encoding(void **state)
{
    const int64_t               order[9] = {4, 2, 8, 0, 6, 1, 7, 3, 5};
    const posenc_encoding_info *info;
    int                         without = 0, with = 0;
    (void)state;
    for (int index = 0; (info = attention_at(&index)) != NULL;) {
        if (info->causal_only)
            continue;
        attention_case   c     = make(info, 31);
        attention_result plain = case_run(&c, 1);
        permute(&c.q, order);
        permute(&c.k, order);
        permute(&c.v, order);
        attention_result mixed = case_run(&c, 1);
        permute(&plain.o, order);
        if (is_none(info))
            assert_near(&mixed.o, &plain.o, 1e-12, "permuted", info->name);
        else if (!(largest(&mixed.o, &plain.o) > 1e-3))
            fail_msg("%s does not see the order of tokens", info->name);
        without += is_none(info);
        with += !is_none(info);
        result_free(&plain), result_free(&mixed);
        case_free(&c);
    }
    assert_int_equal(without, 2);
    assert_true(with > 0);
}

/* ---- attention ---- */

/* A gate on the weights or vectors added to v would still be linear in v and its own parameters together: v
   alone counts where nothing is added to it. */
static void outputs_are_linear_in_v(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = attention_at(&index)) != NULL;) {
        attention_case c  = make(info, 32);
        array          v1 = array_make4(dims.B, dims.G, dims.Lk, dims.Dv),
              v2          = array_make4(dims.B, dims.G, dims.Lk, dims.Dv);
        array zero = array_make4(dims.B, dims.G, dims.Lk, dims.Dv), kept = c.v;
        array_fill(&v1, 1, "v1", 1);
        array_fill(&v2, 1, "v2", 1);
        array sum = array_make4(dims.B, dims.G, dims.Lk, dims.Dv), *all[4] = {&zero, &v1, &v2, &sum};
        attention_result r[4];
        for (int64_t i = 0; i < sum.count; i++)
            sum.wide[i] = 2 * v1.wide[i] - 3 * v2.wide[i];
        for (int i = 0; i < 4; i++) {
            c.v  = *all[i];
            r[i] = case_run(&c, 1);
        }
        for (int64_t i = 0; i < r[3].o.count; i++) { /* f(v) = f(0) + A v */
            const double rest = r[0].o.wide[i],
                         want = rest + 2 * (r[1].o.wide[i] - rest) - 3 * (r[2].o.wide[i] - rest);
            assert_true(fabs(r[3].o.wide[i] - want) <= 1e-13 * largest(&r[3].o, NULL));
        }
        assert_true(largest(&r[1].o, &r[0].o) > 0.1);
        for (int i = 0; i < 4; i++) {
            result_free(&r[i]);
            array_free(all[i]);
        }
        c.v = kept;
        case_free(&c);
    }
}

static void a_causal_row_does_not_see_the_future_to_the_bit(void **state)
{
    enum { KNOWN = 5 }; /* keys 5 .. 8 change */
    const posenc_encoding_info *info;
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int index = 0; (info = attention_at(&index)) != NULL;) {
            attention_case c       = make(info, 33);
            c.options.mask         = POSENC_MASK_CAUSAL;
            attention_result first = case_run(&c, wide);
            for (int64_t g = 0; g < dims.B * dims.G; g++)
                for (int64_t s = KNOWN; s < dims.Lk; s++) {
                    for (int64_t d = 0; d < dims.D; d++)
                        array_set(&c.k, (g * dims.Lk + s) * dims.D + d, 1e3 * (double)(d - s));
                    for (int64_t d = 0; d < dims.Dv; d++)
                        array_set(&c.v, (g * dims.Lk + s) * dims.Dv + d, -1e3 * (double)(d + s));
                }
            attention_result second = case_run(&c, wide);
            for (int64_t h = 0; h < dims.B * dims.H; h++) {
                const size_t at = (size_t)(h * dims.Lq * dims.Dv), n = (size_t)(KNOWN * dims.Dv);
                if (wide ? memcmp(first.o.wide + at, second.o.wide + at, n * sizeof(double))
                         : memcmp(first.o.narrow + at, second.o.narrow + at, n * sizeof(float)))
                    fail_msg("%s: a causal row changed with the future", info->name);
            }
            assert_false(has_same_bits(&first.o, &second.o, wide)); /* later rows did change */
            result_free(&first), result_free(&second);
            case_free(&c);
        }
}

/* Weights of a stick: a query without keys leaves all of it, whose logarithm is 0. */
static int breaks(const posenc_encoding_info *info)
{
    return !strcmp(info->name, "stick_breaking");
}

/* Segments of the case: thirds of the tokens. */
static void a_packed_sequence_does_not_see_its_neighbours_to_the_bit(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int index = 0; (info = attention_at(&index)) != NULL;) {
            attention_case c = make(info, 37);
            c.options.mask |= POSENC_MASK_SEGMENTS;
            attention_result first = case_run(&c, wide);
            for (int64_t g = 0; g < dims.B * dims.G; g++)
                for (int64_t s = 0; s < dims.Lk; s++)
                    if (c.k_segments[s] == 2) {
                        array_set(&c.k, (g * dims.Lk + s) * dims.D, 100);
                        array_set(&c.v, (g * dims.Lk + s) * dims.Dv, -100);
                    }
            attention_result second = case_run(&c, wide);
            for (int64_t h = 0; h < dims.B * dims.H; h++)
                for (int64_t i = 0; i < dims.Lq; i++) {
                    const int64_t at      = (h * dims.Lq + i) * dims.Dv;
                    const int     is_same = wide ? first.o.wide[at] == second.o.wide[at]
                                                 : first.o.narrow[at] == second.o.narrow[at];
                    if (!breaks(info) || first.o.wide[at] != 0 ||
                        first.o.narrow[at] != 0) /* the first sees none */
                        assert_int_equal(is_same, c.q_segments[i] != 2);
                }
            result_free(&first), result_free(&second);
            case_free(&c);
        }
}

static double number_at(const array *x, int64_t i, int wide)
{
    return wide ? x->wide[i] : (double)x->narrow[i];
}

/* Item 1 of the batch has no allowed key at all, item 0 has all: gradients of parameters come from item 0
   alone. */
static void a_query_without_a_key_gives_zero_and_no_gradient(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int index = 0; (info = attention_at(&index)) != NULL;) {
            attention_case c = make(info, 34);
            c.options.mask |= POSENC_MASK_KEY_PADDING;
            memset(c.key_allowed, 1, (size_t)dims.Lk);
            memset(c.key_allowed + dims.Lk, 0, (size_t)dims.Lk);
            attention_result r = case_run(&c, wide);
            const struct {
                const array *x;
                double       want;
            } all[] = {{&r.o, 0}, {&r.lse, breaks(info) ? 0 : -INFINITY}, {&r.dq, 0}, {&r.dk, 0}, {&r.dv, 0}};
            for (size_t a = 0; a < sizeof all / sizeof *all; a++)
                for (int64_t i = all[a].x->count / 2; i < all[a].x->count; i++)
                    if (number_at(all[a].x, i, wide) != all[a].want)
                        fail_msg("%s: member %d holds %g", info->name, (int)a, number_at(all[a].x, i, wide));
            for (int64_t i = 0; i < dims.Lk * dims.Dv;
                 i++) /* what was masked does not matter, however large */
                array_set(&c.v, c.v.count - 1 - i, 1e30);
            attention_result again = case_run(&c, wide);
            assert_true(has_same_bits(&r.o, &again.o, wide));
            for (int i = 0; i < c.param_count; i++)
                assert_true(has_same_bits(&r.dparams[i], &again.dparams[i], wide));
            result_free(&r), result_free(&again);
            case_free(&c);
        }
}

/* A parameter of key heads for as many as there are query heads. */
static void repeat_heads(array *to, const array *from)
{
    const int64_t times = to->count / from->count, size = from->count / dims.G;
    for (int64_t i = 0; i < to->count; i++)
        to->wide[i] = from->wide[times == 1 ? i : i / size / times * size + i % size];
}

/* A token input [B, Ht, L, n] of some heads for more of them. */
static void repeat_token(array *to, const array *from)
{
    const int64_t times = to->shape[1] / from->shape[1], size = from->shape[2] * from->shape[3];
    for (int64_t i = 0; i < to->count; i++)
        array_set(to, i, from->wide[i / size / times * size + i % size]);
}

static void grouped_heads_are_heads_that_share(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = attention_at(&index)) != NULL;) {
        char        spec[300];
        posenc_dims apart = dims;
        apart.G           = dims.H;
        write_spec(spec, sizeof spec, info);
        attention_case grouped = make(info, 35), repeated = case_make(spec, apart, 35);
        repeated.options    = grouped.options;
        const int64_t times = dims.H / dims.G, k = dims.Lk * dims.D, v = dims.Lk * dims.Dv;
        for (int64_t bh = 0; bh < dims.B * dims.H; bh++) {
            memcpy(repeated.k.wide + bh * k, grouped.k.wide + bh / times * k, (size_t)k * sizeof(double));
            memcpy(repeated.v.wide + bh * v, grouped.v.wide + bh / times * v, (size_t)v * sizeof(double));
        }
        for (int i = 0; i < grouped.param_count; i++)
            repeat_heads(&repeated.params[i], &grouped.params[i]);
        for (int i = 0; i < grouped.token_count; i++)
            repeat_token(&repeated.tokens[i], &grouped.tokens[i]);
        attention_result a = case_run(&grouped, 1), b = case_run(&repeated, 1);
        assert_true(has_same_bits(&a.o, &b.o, 1));
        assert_true(has_same_bits(&a.dq, &b.dq, 1));
        for (int64_t i = 0; i < a.dk.count;
             i++) { /* the gradient of a shared key is the sum over its heads */
            const int64_t bg  = i / k;
            double        sum = 0;
            for (int64_t t = 0; t < times; t++)
                sum += b.dk.wide[(bg * times + t) * k + i % k];
            assert_true(fabs(a.dk.wide[i] - sum) <= 1e-13 * largest(&b.dk, NULL));
        }
        result_free(&a), result_free(&b);
        case_free(&grouped), case_free(&repeated);
    }
}

/* ---- gradients: which add, which overwrite, which are not wanted ---- */

typedef struct backward { /* a forward run and all that its backward needs */
    attention_case   c;
    attention_result r;
    posenc_plan     *plan;
    posenc_tensor    params[CASE_PARAMS], dparams[CASE_PARAMS];
    posenc_attend_in in;
    posenc_workspace work;
} backward;

static backward backward_make(const posenc_encoding_info *info, int wide)
{
    backward     x = {.c = make(info, 36)};
    posenc_error err;
    x.r                  = case_run(&x.c, wide);
    x.c.options.executor = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    if (posenc_plan_create(&x.plan, x.c.e, &dims, &x.c.options, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < x.c.param_count; i++)
        x.dparams[i] = array_tensor(&x.r.dparams[i], wide);
    x.in   = case_in(&x.c, wide, x.params);
    x.work = workspace_for(x.plan, POSENC_RUN_BACKWARD);
    return x;
}

static void backward_run(backward *x, posenc_tensor dq, posenc_tensor dk, posenc_tensor dv,
                         posenc_tensor *dparams, int wide)
{
    posenc_error             err;
    const posenc_attend_grad grad = {.size    = sizeof grad,
                                     .o       = array_tensor(&x->r.o, wide),
                                     .lse     = array_tensor(&x->r.lse, wide),
                                     .dout    = array_tensor(&x->c.dout, wide),
                                     .dq      = dq,
                                     .dk      = dk,
                                     .dv      = dv,
                                     .dparams = dparams};
    x->in.params                  = x->params; /* x may have been copied since it was made */
    if (posenc_attend_backward(x->plan, &x->in, &grad, &x->work, &err))
        fail_msg("%s", err.message);
}

static void backward_free(backward *x)
{
    posenc_workspace_free(&x->work);
    posenc_plan_free(x->plan);
    result_free(&x->r);
    case_free(&x->c);
}

static void copy_number(array *to, const array *from)
{
    memcpy(to->wide, from->wide, (size_t)from->count * sizeof(double));
    memcpy(to->narrow, from->narrow, (size_t)from->count * sizeof(float));
}

/* What x + x may miss 2x by: nothing, except a number of each pair, whose items of the batch and heads are
   added one by one where the caller keeps the sum. */
static double rounding_of_twice(const array *once, int ndim, int wide)
{
    double    most    = 0;
    const int by_pair = ndim == 3 && once->shape[1] == dims.Lq && once->shape[2] == dims.Lk;
    for (int64_t n = 0; by_pair && n < once->count; n++)
        most = fmax(most, fabs(number_at(once, n, wide)));
    return most * (double)(2 * dims.B * dims.H) * (wide ? 0x1p-52 : 0x1p-23);
}

static void gradients_of_parameters_add_and_of_activations_overwrite(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int index = 0; (info = attention_at(&index)) != NULL;) {
            backward x  = backward_make(info, wide);
            array    dq = array_make4(dims.B, dims.H, dims.Lq, dims.D), once[CASE_PARAMS];
            array_fill(&dq, 1, "rubbish", 1e6);
            for (int i = 0; i < x.c.param_count; i++) {
                once[i] = array_make(x.r.dparams[i].ndim, x.r.dparams[i].shape);
                copy_number(&once[i], &x.r.dparams[i]);
            }
            backward_run(&x, array_tensor(&dq, wide), (posenc_tensor){0}, (posenc_tensor){0}, x.dparams,
                         wide);
            assert_true(has_same_bits(&dq, &x.r.dq, wide));
            for (int i = 0; i < x.c.param_count; i++) {
                const double slack = rounding_of_twice(&once[i], x.r.dparams[i].ndim, wide);
                for (int64_t n = 0; n < once[i].count; n++)
                    assert_true(fabs(number_at(&x.r.dparams[i], n, wide) -
                                     2 * number_at(&once[i], n, wide)) <= slack);
                array_free(&once[i]);
            }
            array_free(&dq);
            backward_free(&x);
        }
}

/* The same sums; the tiled executor may take them in another order where fewer are wanted: DESIGN's 2e-5 on
   each side. */
static void assert_same_sums(const array *a, const array *b, int wide, const char *name)
{
    double scale = 0;
    for (int64_t i = 0; i < b->count; i++)
        scale = fmax(scale, fabs(number_at(b, i, wide)));
    for (int64_t i = 0; i < a->count; i++)
        if (!(fabs(number_at(a, i, wide) - number_at(b, i, wide)) <= (wide ? 0 : 4e-5) * scale))
            fail_msg("%s: number %d is %.9g alone and %.9g among others", name, (int)i, number_at(a, i, wide),
                     number_at(b, i, wide));
}

static void a_gradient_that_is_not_wanted_changes_no_other(void **state)
{
    const posenc_encoding_info *info;
    const posenc_tensor         none = {0};
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int index = 0; (info = attention_at(&index)) != NULL;)
            for (int wanted = 0; wanted < 3; wanted++) {
                backward x      = backward_make(info, wide);
                array   *all[3] = {&x.r.dq, &x.r.dk, &x.r.dv};
                array alone = array_make4(all[wanted]->shape[0], all[wanted]->shape[1], all[wanted]->shape[2],
                                          all[wanted]->shape[3]);
                const posenc_tensor t = array_tensor(&alone, wide);
                backward_run(&x, wanted == 0 ? t : none, wanted == 1 ? t : none, wanted == 2 ? t : none, NULL,
                             wide);
                assert_same_sums(&alone, all[wanted], wide, info->name);
                array_free(&alone);
                backward_free(&x);
            }
}

/* Parameters that the settings of a small model call for. */
static int params_of(const posenc_encoding_info *info)
{
    attention_case c     = make(info, 36);
    const int      count = c.param_count;
    case_free(&c);
    return count;
}

static void each_parameter_s_gradient_may_be_asked_for_alone(void **state)
{
    const posenc_encoding_info *info;
    const posenc_tensor         none = {0};
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int index = 0; (info = attention_at(&index)) != NULL;)
            for (int p = 0; p < params_of(info); p++) {
                backward      x                 = backward_make(info, wide);
                array         alone             = array_make(x.r.dparams[p].ndim, x.r.dparams[p].shape);
                posenc_tensor only[CASE_PARAMS] = {{0}};
                only[p]                         = array_tensor(&alone, wide);
                backward_run(&x, none, none, none, only, wide);
                assert_same_sums(&alone, &x.r.dparams[p], wide, info->name);
                array_free(&alone);
                backward_free(&x);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turning_keeps_the_length_of_every_row),
        cmocka_unit_test(turning_back_undoes_turning),
        cmocka_unit_test(turning_by_a_then_b_is_turning_by_a_plus_b),
        cmocka_unit_test(moving_all_positions_changes_nothing_where_only_distance_counts),
        cmocka_unit_test(permuting_tokens_permutes_outputs_only_without_an_encoding),
        cmocka_unit_test(outputs_are_linear_in_v),
        cmocka_unit_test(a_causal_row_does_not_see_the_future_to_the_bit),
        cmocka_unit_test(a_packed_sequence_does_not_see_its_neighbours_to_the_bit),
        cmocka_unit_test(a_query_without_a_key_gives_zero_and_no_gradient),
        cmocka_unit_test(grouped_heads_are_heads_that_share),
        cmocka_unit_test(gradients_of_parameters_add_and_of_activations_overwrite),
        cmocka_unit_test(a_gradient_that_is_not_wanted_changes_no_other),
        cmocka_unit_test(each_parameter_s_gradient_may_be_asked_for_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

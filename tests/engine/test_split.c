/* SPDX-License-Identifier: MIT */
/*
 * test_split: a problem run in parts is the whole problem
 *
 * Engines split attention three ways: items of a batch go to different workers, a prompt comes in chunks of
 * queries, and a long cache is split into blocks of keys whose outputs are joined by their log-sum-exp (split
 * decoding). One plan serves all parts. For every encoding that acts in attention and both
 * executors: outputs are those of the whole run, gradients of q, k and v are those of the whole run or add up
 * to them, and gradients of parameters, which add, arrive at the same sum.
 *
 * In double sums come in another order: 1e-12 of the largest number. In float, DESIGN's 2e-6 for outputs and
 * 2e-5 for gradients on both sides, times what large scores cost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_part.h"

static const posenc_dims dims = {
    .B = 3, .H = 4, .G = 2, .Lq = 70, .Lk = 75, .D = 8, .Dv = 6, .d_model = 16, .L = 16};

static const int masks[] = {POSENC_MASK_CAUSAL, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING,
                            POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW,
                            POSENC_MASK_CAUSAL | POSENC_MASK_EXPLICIT,
                            POSENC_MASK_CAUSAL | POSENC_MASK_SEGMENTS};

enum { MASKS = sizeof masks / sizeof *masks };

typedef struct both {
    attention_case c;
    session        once, parts; /* in one run; in parts */
    const char    *name;
} both;

/* Two sessions of one problem, the first of which has run. */
static void both_open(both *x, const char *spec, int index, int wide)
{
    x->c                = case_make(spec, dims, (uint64_t)(40 + index));
    x->c.options.mask   = masks[index % MASKS];
    x->c.options.window = x->c.options.mask & POSENC_MASK_WINDOW ? 30 : 0;
    x->name             = posenc_encoding_spec(x->c.e);
    session_open(&x->once, &x->c, wide);
    session_open(&x->parts, &x->c, wide);
    const part all = whole(&x->c);
    part_forward(&x->once, &all);
    part_backward(&x->once, &all);
}

static void both_close(both *x)
{
    session_close(&x->once), session_close(&x->parts);
    case_free(&x->c);
}

/* The first `most` of o, lse, dq, dk, dv and gradients of parameters. */
static void assert_same_results(both *x, int wide, int most, const char *how)
{
    array    *a[RESULTS], *b[RESULTS];
    const int count = results_of(&x->c, &x->parts.r, a);
    results_of(&x->c, &x->once.r, b);
    for (int i = 0; i < count && i < most; i++) {
        const double allowed = wide    ? 1e-12
                               : i < 2 ? 1e-5
                                       : 2e-4,
                     off     = result_distance(&x->c, i, a[i], b[i], wide);
        if (!(off <= allowed))
            fail_msg("%s, mask %s, %s: %s of the parts is off by %.3g of the whole run's, in %s", x->name,
                     mask_text(x->c.options.mask), how, result_name(&x->c, i), off,
                     wide ? "double" : "float");
    }
}

typedef void splitting(both *x, int wide);

/* Every encoding that acts in attention and goes by the place of its keys at most so much (goes_by_place). */
static void split_all(splitting *split, int by_place)
{
    for (int i = 0; i < posenc_encoding_count() * 2; i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i / 2);
        char                        spec[300];
        both                        x;
        if (!write_small(spec, sizeof spec, info, &dims) || goes_by_place(spec, &dims) > by_place ||
            needs_tokens(spec))
            continue;
        both_open(&x, spec, i / 2, i % 2);
        split(&x, i % 2);
        both_close(&x);
    }
}

/* ---- items ---- */

static void one_by_one(both *x, int wide)
{
    for (int64_t b = 0; b < dims.B; b++) {
        part p = whole(&x->c);
        p.b    = b;
        p.B    = 1;
        part_forward(&x->parts, &p);
        part_backward(&x->parts, &p);
    }
    if (!are_same_bits(&x->parts.r.o, &x->once.r.o, wide) ||
        !are_same_bits(&x->parts.r.lse, &x->once.r.lse, wide))
        fail_msg("%s: outputs of an item have other bits alone", x->name);
    assert_same_results(x, wide, RESULTS, "items one by one");
}

static void items_of_a_batch_are_what_they_are_alone(void **state)
{
    (void)state;
    split_all(one_by_one, 2);
}

/* ---- queries ---- */

/* Gradients of keys and values are those of the queries at hand, and add up. */
static void add_key_gradients(both *x, const part *p)
{
    session *s  = &x->parts;
    array    dk = array_make4(dims.B, dims.G, dims.Lk, dims.D),
          dv    = array_make4(dims.B, dims.G, dims.Lk, dims.Dv);
    s->grad.dk  = array_tensor(&dk, s->wide);
    s->grad.dv  = array_tensor(&dv, s->wide);
    part_backward(s, p);
    array_add(&s->r.dk, &dk);
    array_add(&s->r.dv, &dv);
    array_free(&dk), array_free(&dv);
}

/* A chunk at a time with the keys that there are by then: the future is not in the cache yet. */
static void chunk_by_chunk(both *x, int wide)
{
    static const int64_t ends[] = {1, 9, 64, 70};
    for (int n = 0; n < 4; n++) {
        part p = whole(&x->c);
        p.i    = n ? ends[n - 1] : 0;
        p.Lq   = ends[n] - p.i;
        p.Lk   = ends[n] + dims.Lk - dims.Lq;
        part_forward(&x->parts, &p);
        add_key_gradients(x, &p);
    }
    assert_same_results(x, wide, RESULTS, "queries in chunks");
}

static void chunks_of_a_prompt_have_the_gradients_of_the_prompt(void **state)
{
    (void)state;
    split_all(chunk_by_chunk, 1);
}

/* ---- keys ---- */

/* o and lse of the parts become those of both blocks of keys: each weighs exp(its lse - the common one). */
static void join(session *s, const attention_result *block)
{
    for (int64_t row = 0; row < s->r.lse.count; row++) {
        const double a = number_of(&s->r.lse, row, s->wide), b = number_of(&block->lse, row, s->wide);
        const double most   = fmax(a, b),
                     joined = most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
        for (int64_t n = row * dims.Dv; joined > -INFINITY && n < (row + 1) * dims.Dv; n++) {
            const double o = number_of(&s->r.o, n, s->wide) * exp(a - joined) +
                             number_of(&block->o, n, s->wide) * exp(b - joined);
            s->r.o.wide[n]   = o;
            s->r.o.narrow[n] = (float)o;
        }
        s->r.lse.wide[row]   = joined;
        s->r.lse.narrow[row] = (float)joined;
    }
}

static void block_by_block(both *x, int wide)
{
    static const int64_t ends[] = {20, 21, 75};
    session             *s      = &x->parts, block;
    session_open(&block, &x->c, wide);
    for (int n = 0; n < 3; n++) {
        part p = whole(&x->c);
        p.j    = n ? ends[n - 1] : 0;
        p.Lk   = ends[n] - p.j;
        part_forward(n ? &block : s, &p);
        if (n)
            join(s, &block.r);
    }
    session_close(&block);
    assert_same_results(x, wide, 2, "keys in blocks");
}

static void blocks_of_keys_are_joined_by_their_log_sum_exp(void **state)
{
    (void)state;
    split_all(block_by_block, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_of_a_batch_are_what_they_are_alone),
        cmocka_unit_test(chunks_of_a_prompt_have_the_gradients_of_the_prompt),
        cmocka_unit_test(blocks_of_keys_are_joined_by_their_log_sum_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

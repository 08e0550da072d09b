/* SPDX-License-Identifier: MIT */
/* test_overlap: tensors that share memory, by the elements of both one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/registry.h>
#include <stdio.h>
#include <string.h>

#include "base/overlap.h"

enum { MEMORY = 4096, TRIALS = 20000 };

static float memory[MEMORY];

/* Marks the elements of t; returns how many it touches that are marked already. */
static int touch(const posenc_tensor *t, unsigned char marks[MEMORY])
{
    int64_t count = 1, shared = 0;
    for (int a = 0; a < t->ndim; a++)
        count *= t->shape[a];
    for (int64_t i = 0; i < count; i++) {
        int64_t at = (float *)t->data - memory, rest = i;
        for (int a = t->ndim - 1; a >= 0; rest /= t->shape[a--])
            at += rest % t->shape[a] * t->stride[a];
        shared += marks[at] == 1;
        marks[at] |= 2;
    }
    for (int i = 0; i < MEMORY; i++)
        marks[i] = marks[i] ? 1 : 0;
    return shared != 0;
}

static int64_t draw(uint64_t *n, int64_t below)
{
    return (int64_t)(posenc_random_uniform(5, "overlap", (*n)++) * (double)below);
}

/* Axes in any order in memory, steps of one, of whole rows, or with gaps between. */
static posenc_tensor draw_tensor(uint64_t *n)
{
    posenc_tensor t       = {.dtype = POSENC_DTYPE_F32, .ndim = 4};
    int           axis[4] = {0, 1, 2, 3};
    int64_t       step    = 1;
    for (int a = 3; a > 0; a--) {
        const int64_t other = draw(n, a + 1);
        const int     kept  = axis[a];
        axis[a]             = axis[other];
        axis[other]         = kept;
    }
    for (int a = 0; a < 4; a++) {
        t.shape[axis[a]]  = 1 + draw(n, 4);
        t.stride[axis[a]] = step;
        step *= t.shape[axis[a]] + draw(n, 3);
    }
    t.data = memory + draw(n, MEMORY - step);
    return t;
}

static void what_is_refused_shares_an_element_and_the_rest_does_not(void **state)
{
    (void)state;
    uint64_t n         = 0;
    int      counts[2] = {0};
    for (int trial = 0; trial < TRIALS; trial++) {
        unsigned char marks[MEMORY] = {0};
        posenc_tensor x = draw_tensor(&n), y = draw_tensor(&n);
        y.data = (float *)x.data + draw(&n, 200) - 100;
        if ((float *)y.data < memory || (float *)y.data > memory + MEMORY - 2000)
            continue;
        touch(&x, marks);
        const int shares  = touch(&y, marks);
        const int refused = pe_overlap_check(&x, "x", &y, "y", 0, NULL) == POSENC_ERROR_ARGUMENT;
        counts[shares]++;
        if (shares != refused)
            fail_msg("trial %d: they share %s, and %s", trial, shares ? "an element" : "nothing",
                     refused ? "are refused" : "pass");
    }
    assert_true(counts[0] > 1000 && counts[1] > 1000);
}

static void parts_of_one_buffer_that_run_through_each_other_are_apart(void **state)
{
    (void)state;
    const int64_t B = 2, L = 5, H = 3, D = 4; /* [B, L, 3, H, D]: q, k and v of a fused product */
    posenc_tensor q = {memory, POSENC_DTYPE_F32, 4, {B, H, L, D}, {L * 3 * H * D, D, 3 * H * D, 1}}, k = q;
    posenc_error  err;
    k.data = memory + H * D;
    assert_int_equal(pe_overlap_check(&q, "q", &k, "k", 0, &err), POSENC_OK);
    k.data = memory + H * D - 1;
    assert_int_equal(pe_overlap_check(&q, "attend: o", &k, "v", 0, &err), POSENC_ERROR_ARGUMENT);
    assert_string_equal(err.message, "attend: o overlaps v; it must be in memory of its own");
}

static void one_tensor_may_be_both_where_that_is_allowed(void **state)
{
    (void)state;
    const int64_t shape[2] = {3, 8};
    posenc_tensor x = posenc_tensor_contiguous(memory, POSENC_DTYPE_F32, 2, shape), y = x;
    posenc_error  err;
    assert_int_equal(pe_overlap_check(&x, "x", &y, "y", 1, &err), POSENC_OK);
    assert_int_equal(pe_overlap_check(&x, "x", &y, "y", 0, &err), POSENC_ERROR_ARGUMENT);
    y.data = memory + 8;
    assert_int_equal(pe_overlap_check(&x, "x", &y, "y", 1, &err), POSENC_ERROR_ARGUMENT);
    y.data = NULL;
    assert_int_equal(pe_overlap_check(&x, "x", &y, "y", 0, &err), POSENC_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused_shares_an_element_and_the_rest_does_not),
        cmocka_unit_test(parts_of_one_buffer_that_run_through_each_other_are_apart),
        cmocka_unit_test(one_tensor_may_be_both_where_that_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

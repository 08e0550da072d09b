/* SPDX-License-Identifier: MIT */
/*
 * test_masks: every mask is the list of the pairs that it allows
 *
 * A mask that a plan computes from positions, lengths or segments, and joins with others, must do what the
 * same pairs do when the caller writes them out as an explicit mask. The list is made here, from the words of
 * posenc.h. Outputs and all gradients are compared, for every encoding that acts in attention: in double to
 * 1e-12 of the largest number, in float to what both sides may lose. A plan for a mask may skip tiles that
 * the written one visits, so positions are such that tiles are whole, cut and empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_part.h"
#include "encodings/formulas.h"

static const posenc_dims dims = {
    .B = 2, .H = 2, .G = 1, .Lq = 67, .Lk = 70, .D = 8, .Dv = 6, .d_model = 16, .L = 16};

static const struct {
    int     mask;
    int64_t window;
    double  q_start;
} masks[] = {
    {POSENC_MASK_NONE, 0, 0},
    {POSENC_MASK_CAUSAL, 0, 3},
    {POSENC_MASK_CAUSAL, 0, 0},  /* the last keys are in nobody's past */
    {POSENC_MASK_WINDOW, 1, 3},  /* each query sees the key at its own position */
    {POSENC_MASK_WINDOW, 9, 40}, /* the first keys are in nobody's window, the last queries see none */
    {POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW, 24, 3},
    {POSENC_MASK_KEY_PADDING | POSENC_MASK_WINDOW, 12, 3},
    {POSENC_MASK_SEGMENTS | POSENC_MASK_CAUSAL, 0, 3},
    {POSENC_MASK_SEGMENTS | POSENC_MASK_KEY_PADDING, 0, 3},
    {POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING | POSENC_MASK_SEGMENTS |
         POSENC_MASK_EXPLICIT,
     30, 3},
};

enum { MASKS = sizeof masks / sizeof *masks };

/* Gates and transformations by the tokens between: padding has none, a key that a list hides has one, and
 * order counts. */
static int counts_gates(const posenc_encoding_info *info)
{
    return !strcmp(info->name, "fox") || !strcmp(info->name, "path") || !strcmp(info->name, "wall");
}

static void compare(attention_case *c, int wide)
{
    attention_result first = case_run(c, wide), written;
    array           *a[RESULTS], *b[RESULTS];
    const int        mask   = c->options.mask;
    const int64_t    window = c->options.window;
    uint8_t         *list = malloc((size_t)(dims.B * dims.Lq * dims.Lk)), *own = c->allowed;
    for (int64_t n = 0; n < dims.B * dims.Lq * dims.Lk; n++) {
        const pair x = pair_at(c, n / dims.Lk / dims.Lq, 0, n / dims.Lk % dims.Lq, n % dims.Lk);
        list[n]      = (uint8_t)is_seen(&x);
    }
    c->allowed        = list;
    c->options.mask   = POSENC_MASK_EXPLICIT | (mask & POSENC_MASK_CAUSAL);
    c->options.window = 0;
    written           = case_run(c, wide);
    const int count   = results_of(c, &first, a);
    results_of(c, &written, b);
    for (int i = 0; i < count; i++) {
        const double off = result_distance(c, i, a[i], b[i], wide);
        if (!(off <= (wide ? 1e-12 : i < 2 ? 1e-5 : 2e-4)))
            fail_msg("%s, mask %s, window %d, first query at %g, %s: %s is off by %.3g of that of the pairs "
                     "written out",
                     posenc_encoding_spec(c->e), mask_text(mask), (int)window, c->q_pos.start,
                     wide ? "reference" : "tiled", result_name(c, i), off);
    }
    c->allowed        = own;
    c->options.mask   = mask;
    c->options.window = window;
    free(list);
    result_free(&first), result_free(&written);
}

/* An encoding that needs the causal mask keeps it beside the list, which then says no more than it did. */
static void a_mask_is_the_list_of_its_pairs(void **state)
{
    char spec[300];
    (void)state;
    for (int e = 0; e < posenc_encoding_count(); e++)
        for (int m = 0; m < MASKS; m++) {
            const posenc_encoding_info *info = posenc_encoding_info_at(e);
            if (!write_small(spec, sizeof spec, info, &dims) || counts_gates(info))
                continue;
            attention_case c = case_make(spec, dims, (uint64_t)(20 * e + m));
            c.options.mask   = masks[m].mask | (info->causal_only ? POSENC_MASK_CAUSAL : 0);
            c.options.window = masks[m].mask & POSENC_MASK_WINDOW ? masks[m].window : 0;
            c.q_pos.start    = masks[m].q_start;
            compare(&c, 1);
            compare(&c, 0);
            case_free(&c);
        }
}

static int64_t order[70]; /* the key that stands at a place */

/* Rows of a tensor of keys, from the order of positions to that of the cache, or back. */
static void move_rows(array *to, const array *from, int is_back)
{
    const int64_t width = from->shape[3];
    for (int64_t row = 0; row < from->count / width; row++) {
        const int64_t there = row / dims.Lk * dims.Lk + order[row % dims.Lk];
        for (int64_t n = 0; n < width; n++) {
            const int64_t x = (is_back ? there : row) * width + n, y = (is_back ? row : there) * width + n;
            to->wide[x]   = from->wide[y];
            to->narrow[x] = from->narrow[y];
        }
    }
}

static void compare_orders(attention_case *c, attention_case *moved, int wide)
{
    attention_result a = case_run(moved, wide), b = case_run(c, wide);
    array            dk = array_make4(dims.B, dims.G, dims.Lk, dims.D),
          dv            = array_make4(dims.B, dims.G, dims.Lk, dims.Dv);
    move_rows(&dk, &a.dk, 1), move_rows(&dv, &a.dv, 1);
    const array *got[] = {&a.o, &a.lse, &a.dq, &dk, &dv}, *want[] = {&b.o, &b.lse, &b.dq, &b.dk, &b.dv};
    for (int i = 0; i < 5; i++)
        if (!(distance_of(got[i], want[i], wide) <= (wide ? 1e-12 : i < 2 ? 1e-5 : 2e-4)))
            fail_msg("%s, %s: %s depends on the order of the keys", posenc_encoding_spec(c->e),
                     wide ? "double" : "float", result_name(c, i));
    array_free(&dk), array_free(&dv);
    result_free(&a), result_free(&b);
}

/* Positions decide, not places: keys in any order give what they give in order. Encodings that read the place
   in the tensors, or count keys in it, are left out, and so are positions of several coordinates, where masks
   count tokens; segments go with places and are one here. */
static void the_order_of_keys_in_the_cache_does_not_matter(void **state)
{
    char spec[300];
    (void)state;
    for (int64_t j = 0; j < dims.Lk; j++)
        order[j] = j * 31 % dims.Lk; /* 31 and 70 share no factor */
    for (int e = 0; e < posenc_encoding_count(); e++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(e);
        if (!write_small(spec, sizeof spec, info, &dims) || goes_by_place(spec, &dims) || counts_gates(info))
            continue;
        attention_case c     = case_make(spec, dims, (uint64_t)(500 + e)),
                       moved = case_make(spec, dims, (uint64_t)(500 + e));
        memset(c.k_segments, 0, (size_t)(dims.B * dims.Lk) * sizeof *c.k_segments);
        memset(moved.k_segments, 0, (size_t)(dims.B * dims.Lk) * sizeof *c.k_segments);
        c.options.mask   = POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW;
        c.options.window = 40;
        moved.options    = c.options;
        moved.k_pos      = posenc_positions_array(
                 posenc_tensor_contiguous(order, POSENC_DTYPE_I64, 1, (int64_t[]){dims.Lk}));
        move_rows(&moved.k, &c.k, 0), move_rows(&moved.v, &c.v, 0);
        const int has_order = case_places(c.e, &dims, moved.k_pos).array.ndim == 1;
        for (int wide = 1; has_order && wide >= 0; wide--)
            compare_orders(&c, &moved, wide);
        case_free(&c), case_free(&moved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mask_is_the_list_of_its_pairs),
        cmocka_unit_test(the_order_of_keys_in_the_cache_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

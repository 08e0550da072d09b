/* SPDX-License-Identifier: MIT */
/*
 * test_positions: ranges, arrays, and the pattern of their differences
 *
 * The fast path of attention rests on pe_positions_distances: "skewed" must mean t = t00 + step*(i - j) for
 * every pair of every item, and must be found whenever it holds; low and count must cover every whole
 * distance that the masks let through. Both are checked by brute force over random positions, half of which
 * have the pattern. fairseq's rule is held against its own definition, cumsum(token != pad) * (token != pad)
 * + pad.
 */
#include <posenc/registry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/positions.h"

enum { B = 2, LONG = 6 };

static uint64_t drawn;

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(posenc_random_uniform(3, "positions", drawn++) * (double)(high - low + 1));
}

static void a_zeroed_struct_means_0_1_2(void **state)
{
    const posenc_positions zero = {0}, range = posenc_positions_range(5, -2);
    (void)state;
    for (int64_t s = 0; s < 10; s++) {
        assert_true(pe_positions_at(&zero, 0, s) == (double)s);
        assert_true(pe_positions_at(&range, 1, s) == 5 - 2 * (double)s);
    }
    assert_int_equal(pe_positions_batches(&zero), 1);
}

static void an_array_is_read_by_its_strides_and_shared_where_it_has_one_item(void **state)
{
    const int64_t ids[12] = {0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15};
    double        real[6] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};
    posenc_tensor swapped =
        posenc_tensor_contiguous((void *)(uintptr_t)ids, POSENC_DTYPE_I64, 2, (int64_t[]){2, 6});
    posenc_tensor coordinate =
        posenc_tensor_contiguous((void *)(uintptr_t)ids, POSENC_DTYPE_I64, 3, (int64_t[]){2, 3, 2});
    (void)state;
    swapped.stride[0]        = 1;
    swapped.stride[1]        = 2;
    const posenc_positions a = posenc_positions_array(swapped), n = posenc_positions_array(coordinate);
    const posenc_positions r =
        posenc_positions_array(posenc_tensor_contiguous(real, POSENC_DTYPE_F64, 1, (int64_t[]){6}));
    const posenc_positions one =
        posenc_positions_array(posenc_tensor_contiguous(real, POSENC_DTYPE_F64, 2, (int64_t[]){1, 6}));
    for (int64_t s = 0; s < 6; s++) {
        assert_true(pe_positions_at(&a, 0, s) == (double)s && pe_positions_at(&a, 1, s) == (double)(10 + s));
        assert_true(pe_positions_at(&r, 1, s) == 0.5 + (double)s &&
                    pe_positions_at(&one, 1, s) == 0.5 + (double)s);
    }
    assert_true(pe_positions_at(&n, 1, 2) == 5); /* the first of two coordinates */
    assert_true(pe_positions_coordinate(&n, 1, 2, 1) == 15);
    assert_int_equal(pe_positions_batches(&a), 2);
    assert_int_equal(pe_positions_batches(&r), 1);
    assert_int_equal(pe_positions_batches(&one), 1);
}

static void two_axes_are_a_batch_or_coordinates_as_the_encoding_says(void **state)
{
    const int64_t          ids[8] = {0, 10, 1, 11, 2, 12, 3, 13};
    const posenc_positions given  = posenc_positions_array(
         posenc_tensor_contiguous((void *)(uintptr_t)ids, POSENC_DTYPE_I64, 2, (int64_t[]){4, 2}));
    const posenc_positions items = pe_positions_view(&given, 1), places = pe_positions_view(&given, 2);
    posenc_error           err;
    (void)state;
    assert_int_equal(pe_positions_check(&items, "pos", 4, 2, 1, &err), POSENC_OK);
    assert_true(pe_positions_at(&items, 3, 1) == 13);
    assert_int_equal(pe_positions_check(&places, "pos", 4, 4, 2, &err), POSENC_OK);
    assert_int_equal(pe_positions_batches(&places), 1);
    for (int64_t s = 0; s < 4; s++)
        assert_true(pe_positions_coordinate(&places, 3, s, 0) == (double)s &&
                    pe_positions_coordinate(&places, 0, s, 1) == (double)(10 + s));
    const pe_extent all = pe_positions_extent(&places, 0, 4);
    assert_true(all.low == 0 && all.high == 13 && all.whole);
}

/* Everything that must be refused for B = 2, L = 6, with a word of the sentence. */
static void wrong_positions_are_refused_with_a_sentence(void **state)
{
    double              real[12] = {0};
    const posenc_tensor good     = posenc_tensor_contiguous(real, POSENC_DTYPE_F64, 2, (int64_t[]){2, 6});
    posenc_tensor       type = good, axes = good, items = good, length = good, coordinates = good;
    posenc_error        err;
    (void)state;
    type.dtype      = POSENC_DTYPE_F32;
    axes.ndim       = 4;
    items.shape[0]  = 3;
    length.shape[1] = 5;
    coordinates     = posenc_tensor_contiguous(real, POSENC_DTYPE_F64, 3, (int64_t[]){1, 6, 2});
    const struct {
        posenc_positions pos;
        posenc_status    status;
        const char      *words;
    } all[] = {
        {posenc_positions_array(good), POSENC_OK, ""},
        {posenc_positions_range(-1e6, 0.5), POSENC_OK, ""},
        {posenc_positions_array(type), POSENC_ERROR_DTYPE,
         "attend: q_pos is F32; positions must be I64, I32 or F64"},
        {posenc_positions_array(axes), POSENC_ERROR_SHAPE, "4 axes"},
        {posenc_positions_array(items), POSENC_ERROR_SHAPE, "3 x 6 positions; it must be [6], or [B,6]"},
        {posenc_positions_array(length), POSENC_ERROR_SHAPE, "2 x 5 positions"},
        {posenc_positions_array(coordinates), POSENC_ERROR_SHAPE,
         "2 coordinates per position; it must have 1"},
        {posenc_positions_range(INFINITY, 1), POSENC_ERROR_ARGUMENT, "finite"},
        {posenc_positions_range(0, NAN), POSENC_ERROR_ARGUMENT, "finite"},
        {posenc_positions_range(1e300, 1), POSENC_ERROR_RANGE, "2^53"},
        {posenc_positions_range(0, -1e16), POSENC_ERROR_RANGE, "2^53"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memset(&err, 0, sizeof err);
        if (pe_positions_check(&all[i].pos, "attend: q_pos", 2, 6, 1, &err) != all[i].status ||
            !strstr(err.message, all[i].words))
            fail_msg("case %zu: %s", i, err.message);
    }
    real[8] = NAN;
    assert_int_equal(pe_positions_check(&all[0].pos, "q_pos", 2, 6, 1, &err), POSENC_ERROR_RANGE);
    assert_non_null(strstr(err.message, "q_pos[1,2]"));
}

/* ---- distances ---- */

typedef struct places { /* one side: a range, or an array of B or 1 items */
    int64_t          numbers[B * LONG];
    posenc_positions pos;
} places;

static void make_places(places *p, int64_t L, int64_t start, int64_t step, int kind)
{
    const int64_t items = kind == 2 ? B : 1;
    for (int64_t x = 0; x < items * L; x++)
        p->numbers[x] = start + step * (x % L) + (kind == 3 ? draw(-1, 1) : 0);
    if (kind == 2 && draw(0, 3) == 0)
        p->numbers[L] += draw(-1, 1); /* the second item leaves the pattern */
    p->pos = kind == 0 ? posenc_positions_range((double)start, (double)step)
                       : posenc_positions_array(posenc_tensor_contiguous(p->numbers, POSENC_DTYPE_I64, 2,
                                                                         (int64_t[]){items, L}));
}

static int64_t distance(const places *q, const places *k, int64_t b, int64_t i, int64_t j)
{
    return (int64_t)(pe_positions_at(&q->pos, b, i) - pe_positions_at(&k->pos, b, j));
}

/* Is there a step other than 0 with t = t00 + step*(i-j) everywhere? */
static int has_pattern(const places *q, const places *k, int64_t Lq, int64_t Lk)
{
    const int64_t t00  = distance(q, k, 0, 0, 0);
    const int64_t step = Lk > 1 ? t00 - distance(q, k, 0, 0, 1) : Lq > 1 ? distance(q, k, 0, 1, 0) - t00 : 1;
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < Lq; i++)
            for (int64_t j = 0; j < Lk; j++)
                if (distance(q, k, b, i, j) != t00 + step * (i - j))
                    return 0;
    return step != 0;
}

static void distances_that_follow_the_diagonals_are_found_and_no_others(void **state)
{
    int found = 0, rounds = 4000;
    (void)state;
    drawn = 0;
    for (int round = 0; round < rounds; round++) {
        const int64_t Lq = draw(1, LONG), Lk = draw(1, LONG), step = draw(-2, 2);
        places        q, k;
        pe_distances  d;
        make_places(&q, Lq, draw(-9, 9), step, (int)draw(0, 3));
        make_places(&k, Lk, draw(-9, 9), draw(0, 3) ? step : draw(-2, 2), (int)draw(0, 3));
        pe_positions_distances(&d, &q.pos, &k.pos, B, Lq, Lk, pe_positions_reach(POSENC_MASK_NONE, 0));
        assert_true(d.whole);
        assert_int_equal(d.skewed, has_pattern(&q, &k, Lq, Lk));
        found += d.skewed;
        for (int64_t i = 0; d.skewed && i < Lq; i++)
            for (int64_t j = 0; j < Lk; j++)
                assert_int_equal(distance(&q, &k, 1, i, j), d.t00 + d.step * (i - j));
    }
    assert_in_range(found, rounds / 5, rounds - rounds / 5); /* both answers were asked for */
}

static void low_and_count_cover_every_distance_that_the_masks_let_through(void **state)
{
    static const int masks[] = {POSENC_MASK_NONE, POSENC_MASK_CAUSAL, POSENC_MASK_WINDOW,
                                POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW};
    (void)state;
    drawn = 100000;
    for (int round = 0; round < 2000; round++) {
        const int64_t  Lq = draw(1, LONG), Lk = draw(1, LONG);
        const pe_reach reach = pe_positions_reach(masks[round % 4], 4);
        places         q, k;
        pe_distances   d;
        int64_t        low = INT64_MAX, high = INT64_MIN;
        make_places(&q, Lq, draw(-9, 9), draw(-2, 2), (int)draw(0, 3));
        make_places(&k, Lk, draw(-9, 9), draw(-2, 2), (int)draw(0, 3));
        pe_positions_distances(&d, &q.pos, &k.pos, B, Lq, Lk, reach);
        for (int64_t b = 0; b < B; b++)
            for (int64_t i = 0; i < Lq; i++)
                for (int64_t j = 0; j < Lk; j++) {
                    const int64_t t = distance(&q, &k, b, i, j);
                    if (t < reach.low || t > reach.high)
                        continue;
                    assert_in_range(t - d.low, 0, d.count - 1);
                    low  = t < low ? t : low;
                    high = t > high ? t : high;
                }
        if (masks[round % 4] == POSENC_MASK_NONE) { /* without masks both ends are reached */
            assert_int_equal(d.low, low);
            assert_int_equal(d.low + d.count - 1, high);
        }
    }
}

static void masks_reach_what_their_definition_says(void **state)
{
    static const struct {
        int      mask;
        pe_reach want;
    } all[] = {
        {POSENC_MASK_CAUSAL, {0, INT64_MAX / 4}},
        {POSENC_MASK_WINDOW, {-6, 6}}, /* |t| < 7 */
        {POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW, {0, 6}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const pe_reach reach = pe_positions_reach(all[i].mask, 7);
        assert_int_equal(reach.low, all[i].want.low);
        assert_int_equal(reach.high, all[i].want.high);
    }
    assert_true(pe_positions_reach(POSENC_MASK_KEY_PADDING, 0).low < -((int64_t)1 << 54));
}

static void positions_between_whole_numbers_are_noticed(void **state)
{
    double                 half[3] = {0, 1.5, 2};
    const posenc_positions array =
        posenc_positions_array(posenc_tensor_contiguous(half, POSENC_DTYPE_F64, 1, (int64_t[]){3}));
    const posenc_positions all[] = {array, posenc_positions_range(0.5, 1), posenc_positions_range(0, 0.5)};
    const posenc_positions plain = posenc_positions_range(0, 1);
    pe_distances           d;
    (void)state;
    for (int i = 0; i < 3; i++) {
        pe_positions_distances(&d, &all[i], &plain, 1, 3, 3, pe_positions_reach(POSENC_MASK_NONE, 0));
        assert_false(d.whole || d.skewed);
        pe_positions_distances(&d, &plain, &all[i], 1, 3, 3, pe_positions_reach(POSENC_MASK_NONE, 0));
        assert_false(d.whole || d.skewed);
    }
}

/* ---- fairseq ---- */

static void fairseq_counts_tokens_behind_the_padding_index(void **state)
{
    enum { PAD = 1 };
    int64_t       tokens[2][5] = {{PAD, PAD, 7, 8, 9}, {5, PAD, 6, PAD, PAD}}, pos[2][5];
    const int64_t want[2][5]   = {{1, 1, 2, 3, 4}, {2, 1, 3, 1, 1}};
    posenc_tensor t            = posenc_tensor_contiguous(tokens, POSENC_DTYPE_I64, 2, (int64_t[]){2, 5});
    posenc_tensor p            = posenc_tensor_contiguous(pos, POSENC_DTYPE_I64, 2, (int64_t[]){2, 5});
    posenc_error  err;
    (void)state;
    assert_int_equal(posenc_positions_fairseq(&t, PAD, &p, &err), POSENC_OK);
    assert_memory_equal(pos, want, sizeof pos);
    t.dtype = POSENC_DTYPE_F64;
    assert_int_equal(posenc_positions_fairseq(&t, PAD, &p, &err), POSENC_ERROR_DTYPE);
    t.dtype    = POSENC_DTYPE_I64;
    t.shape[1] = 4;
    assert_int_equal(posenc_positions_fairseq(&t, PAD, &p, &err), POSENC_ERROR_SHAPE);
    assert_memory_equal(pos, want, sizeof pos); /* what fails writes nothing */
}

static void hugging_face_counts_from_zero_and_gives_padding_a_one(void **state)
{
    const uint8_t mask[2][5]  = {{0, 0, 1, 1, 1}, {1, 0, 255, 0, 1}};
    const int64_t words[2][5] = {{0, 0, 1, 1, 1}, {1, 0, 9, 0, -1}},
                  want[2][5]  = {{1, 1, 0, 1, 2}, {0, 1, 1, 1, 2}};
    const struct {
        const void  *data;
        posenc_dtype dtype;
    } all[] = {{mask, POSENC_DTYPE_U8}, {words, POSENC_DTYPE_I64}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        int64_t             pos[2][5];
        posenc_error        err;
        const posenc_tensor m =
            posenc_tensor_contiguous((void *)(uintptr_t)all[i].data, all[i].dtype, 2, (int64_t[]){2, 5});
        posenc_tensor p = posenc_tensor_contiguous(pos, POSENC_DTYPE_I64, 2, (int64_t[]){2, 5});
        assert_int_equal(posenc_positions_from_mask(&m, &p, &err), POSENC_OK);
        assert_memory_equal(pos, want, sizeof pos);
        p.dtype = POSENC_DTYPE_F64;
        assert_int_equal(posenc_positions_from_mask(&m, &p, &err), POSENC_ERROR_DTYPE);
        assert_int_equal(posenc_positions_from_mask(NULL, &p, &err), POSENC_ERROR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_struct_means_0_1_2),
        cmocka_unit_test(an_array_is_read_by_its_strides_and_shared_where_it_has_one_item),
        cmocka_unit_test(two_axes_are_a_batch_or_coordinates_as_the_encoding_says),
        cmocka_unit_test(wrong_positions_are_refused_with_a_sentence),
        cmocka_unit_test(distances_that_follow_the_diagonals_are_found_and_no_others),
        cmocka_unit_test(low_and_count_cover_every_distance_that_the_masks_let_through),
        cmocka_unit_test(masks_reach_what_their_definition_says),
        cmocka_unit_test(positions_between_whole_numbers_are_noticed),
        cmocka_unit_test(fairseq_counts_tokens_behind_the_padding_index),
        cmocka_unit_test(hugging_face_counts_from_zero_and_gives_padding_a_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

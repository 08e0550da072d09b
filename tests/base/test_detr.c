/* SPDX-License-Identifier: MIT */
/*
 * test_detr: counts of valid pixels, against their definition
 *
 * y of a pixel is the number of valid pixels in its column down to it, x that in its row up to it;
 * normalised, both are divided by the column's and the row's own count plus eps and become a share of 2 pi.
 * Masks are random, and read by strides; one row is padding alone, where 0 / eps must stay 0.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/positions.h"

#include <posenc/registry.h>

enum { B = 3, HIGH = 4, WIDE = 6 };

typedef struct masks {
    uint8_t       valid[B][HIGH][WIDE];
    posenc_tensor tensor;
} masks;

static void make_masks(masks *m)
{
    for (int i = 0; i < B * HIGH * WIDE; i++)
        (&m->valid[0][0][0])[i] = posenc_random_uniform(5, "mask", (uint64_t)i) < 0.6;
    memset(m->valid[1][2], 0, WIDE);
    m->tensor = posenc_tensor_contiguous(m->valid, POSENC_DTYPE_U8, 3, (int64_t[]){B, HIGH, WIDE});
}

/* Valid pixels of (b, y, x)'s column (along = 0) or row down to it, and in all. */
static void count(const masks *m, int b, int y, int x, int along, double *so_far, double *all)
{
    *so_far = *all = 0;
    for (int i = 0; i < (along ? WIDE : HIGH); i++) {
        const int is = along ? m->valid[b][y][i] : m->valid[b][i][x];
        *all += is;
        *so_far += is && i <= (along ? x : y);
    }
}

static void coordinates_count_the_valid_pixels(void **state)
{
    masks         m;
    double        at[B][HIGH][WIDE][2], so_far, all;
    posenc_tensor pos = posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, (int64_t[]){B, HIGH * WIDE, 2});
    posenc_error  err;
    (void)state;
    make_masks(&m);
    for (int normalize = 0; normalize < 2; normalize++) {
        assert_int_equal(posenc_positions_detr(&m.tensor, normalize, 1e-6, &pos, &err), POSENC_OK);
        for (int i = 0; i < B * HIGH * WIDE * 2; i++) {
            const int along = i % 2, x = i / 2 % WIDE, y = i / 2 / WIDE % HIGH, b = i / 2 / WIDE / HIGH;
            count(&m, b, y, x, along, &so_far, &all);
            assert_true(at[b][y][x][along] ==
                        (normalize ? so_far / (all + 1e-6) * 6.283185307179586 : so_far));
        }
        assert_true(at[1][2][5][1] == 0); /* a row of padding */
    }
    assert_true(pe_positions_detr_coordinate(3, 4, 0, 1) == 3);
}

static void masks_are_read_by_strides_and_in_either_type(void **state)
{
    masks         m;
    int64_t       turned[WIDE][HIGH][B];
    double        a[B * HIGH * WIDE * 2], b[B * HIGH * WIDE * 2];
    posenc_tensor to_a = posenc_tensor_contiguous(a, POSENC_DTYPE_F64, 3, (int64_t[]){B, HIGH * WIDE, 2}),
                  to_b = to_a;
    posenc_error err;
    (void)state;
    make_masks(&m);
    for (int i = 0; i < B * HIGH * WIDE; i++)
        turned[i % WIDE][i / WIDE % HIGH][i / WIDE / HIGH] = -(int64_t)(&m.valid[0][0][0])[i];
    posenc_tensor t = posenc_tensor_contiguous(turned, POSENC_DTYPE_I64, 3, (int64_t[]){B, HIGH, WIDE});
    t.stride[0]     = 1;
    t.stride[1]     = B;
    t.stride[2]     = B * HIGH;
    to_b.data       = b;
    assert_int_equal(posenc_positions_detr(&m.tensor, 1, 1e-6, &to_a, &err), POSENC_OK);
    assert_int_equal(posenc_positions_detr(&t, 1, 1e-6, &to_b, &err), POSENC_OK);
    assert_memory_equal(a, b, sizeof a);
}

static void what_is_no_mask_is_refused_and_nothing_is_written(void **state)
{
    masks         m;
    double        at[B * HIGH * WIDE * 2];
    posenc_tensor pos = posenc_tensor_contiguous(at, POSENC_DTYPE_F64, 3, (int64_t[]){B, HIGH * WIDE, 2});
    posenc_error  err;
    (void)state;
    make_masks(&m);
    posenc_tensor flat = m.tensor, real = m.tensor, small = pos, narrow = pos;
    flat.ndim      = 2;
    real.dtype     = POSENC_DTYPE_F32;
    small.shape[1] = HIGH;
    narrow.dtype   = POSENC_DTYPE_I64;
    const struct {
        posenc_tensor *valid, *pos;
        double         eps;
        posenc_status  status;
        const char    *words;
    } all[] = {
        {NULL, &pos, 1e-6, POSENC_ERROR_ARGUMENT, "must not be NULL"},
        {&flat, &pos, 1e-6, POSENC_ERROR_SHAPE, "positions: valid has shape"},
        {&real, &pos, 1e-6, POSENC_ERROR_DTYPE, "valid is F32; it must be U8 or I64"},
        {&m.tensor, &small, 1e-6, POSENC_ERROR_SHAPE, "must be [3,24,2]"},
        {&m.tensor, &narrow, 1e-6, POSENC_ERROR_DTYPE, "pos must be contiguous F64"},
        {&m.tensor, &pos, 0, POSENC_ERROR_ARGUMENT, "eps is 0"},
        {&m.tensor, &pos, NAN, POSENC_ERROR_ARGUMENT, "eps is"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memset(at, 0x5a, sizeof at);
        const double before = at[0];
        if (posenc_positions_detr(all[i].valid, 1, all[i].eps, all[i].pos, &err) != all[i].status ||
            !strstr(err.message, all[i].words))
            fail_msg("case %zu: %s", i, err.message);
        assert_true(at[0] == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_count_the_valid_pixels),
        cmocka_unit_test(masks_are_read_by_strides_and_in_either_type),
        cmocka_unit_test(what_is_no_mask_is_refused_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

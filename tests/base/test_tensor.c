/* SPDX-License-Identifier: MIT */
/*
 * test_tensor: views, conversion at the door, and the sentences of the checks
 *
 * Numbers that every storage type holds exactly (0 .. 100) must come through any pair of types and any stride
 * unchanged, and elements between the strides must not be touched. What the checks refuse is asked for by
 * status and by the words that tell a user which tensor, what it is and what it must be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/tensor.h"

enum { N = 13, PATTERN = 0x5a };

static const posenc_dtype floats[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F64, POSENC_DTYPE_F16,
                                      POSENC_DTYPE_BF16};

static double plain(int64_t i)
{
    return (double)(i * i % 101);
}

static void what_is_stored_in_any_float_type_loads_back(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof floats / sizeof *floats; t++)
        for (int64_t stride = 1; stride <= 3; stride++) {
            unsigned char memory[3 * N * 8];
            double        wide[N], wide_back[N];
            float         narrow[N], narrow_back[N];
            for (int64_t i = 0; i < N; i++) {
                wide[i]   = plain(i);
                narrow[i] = (float)plain(i + 1);
            }
            pe_tensor_store_double(memory, floats[t], stride, wide, N);
            pe_tensor_load_double(wide_back, memory, floats[t], stride, N);
            pe_tensor_load_float(narrow_back, memory, floats[t], stride, N);
            for (int64_t i = 0; i < N; i++)
                assert_true(wide_back[i] == wide[i] && (double)narrow_back[i] == wide[i]);
            pe_tensor_store_float(memory, floats[t], stride, narrow, N);
            pe_tensor_load_float(narrow_back, memory, floats[t], stride, N);
            assert_memory_equal(narrow, narrow_back, sizeof narrow);
        }
}

static void integers_and_masks_load_as_numbers(void **state)
{
    const int64_t ids[]  = {-3, 7, 1000000007};
    const uint8_t mask[] = {0, 1, 255};
    double        x[3];
    float         y[3];
    (void)state;
    pe_tensor_load_double(x, ids, POSENC_DTYPE_I64, 1, 3);
    pe_tensor_load_float(y, mask, POSENC_DTYPE_U8, 1, 3);
    for (int i = 0; i < 3; i++)
        assert_true(x[i] == (double)ids[i] && y[i] == (float)mask[i]);
    const posenc_tensor t =
        posenc_tensor_contiguous((void *)(uintptr_t)ids, POSENC_DTYPE_I64, 1, (int64_t[]){3});
    assert_int_equal(pe_tensor_integer_at(&t, 0), -3);
    assert_true(pe_tensor_real_at(&t, 2) == 1000000007.0);
}

static void a_store_touches_nothing_between_its_strides(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof floats / sizeof *floats; t++) {
        const size_t  size = posenc_dtype_size(floats[t]);
        unsigned char memory[3 * N * 8];
        const double  ones[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        memset(memory, PATTERN, sizeof memory);
        pe_tensor_store_double(memory, floats[t], 3, ones, N);
        for (size_t i = 0; i < 3 * N; i++)
            for (size_t byte = 0; i % 3 && byte < size; byte++)
                assert_int_equal(memory[i * size + byte], PATTERN);
    }
}

static void a_row_is_found_by_strides_whatever_their_order(void **state)
{
    float               memory[2 * 3 * 4 * 5];
    const posenc_tensor t =
        posenc_tensor_from_blhd(memory, POSENC_DTYPE_F32, 2, 3, 4, 5); /* [B=2, H=4, L=3, D=5] */
    (void)state;
    assert_ptr_equal(pe_tensor_row(&t, 1, 2, 0), memory + 1 * 60 + 0 * 20 + 2 * 5);
    assert_ptr_equal(pe_tensor_row(&t, 0, 3, 2), memory + 2 * 20 + 3 * 5);
    assert_int_equal(pe_tensor_elements(&t), 120);
    assert_false(pe_tensor_is_contiguous(&t));
}

static void contiguous_ignores_strides_of_axes_of_length_one(void **state)
{
    posenc_tensor t = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, 3, (int64_t[]){4, 1, 6});
    (void)state;
    assert_true(pe_tensor_is_contiguous(&t));
    t.stride[1] = 12345;
    assert_true(pe_tensor_is_contiguous(&t));
    t.stride[0] = 7;
    assert_false(pe_tensor_is_contiguous(&t));
    t.ndim = 0;
    assert_true(pe_tensor_is_contiguous(&t));
    assert_int_equal(pe_tensor_elements(&t), 1);
}

/* One wrong property per row, and what the sentence must contain. */
static void a_wrong_tensor_is_refused_with_what_it_is_and_must_be(void **state)
{
    float               memory[24];
    const int64_t       shape[2] = {4, 6};
    const posenc_tensor good     = posenc_tensor_contiguous(memory, POSENC_DTYPE_F32, 2, shape);
    posenc_tensor       bad[6]   = {good, good, good, good, good, good};
    static const struct {
        posenc_status status;
        const char   *words;
    } want[6] = {
        {POSENC_ERROR_ARGUMENT, "attend: q has no data"},
        {POSENC_ERROR_SHAPE, "attend: q has shape [4,5]; it must be [4,6]"},
        {POSENC_ERROR_SHAPE, "attend: q has shape [24]; it must be [4,6]"},
        {POSENC_ERROR_DTYPE, "attend: q has dtype number 77"},
        {POSENC_ERROR_SHAPE, "attend: q has 9 axes"},
        {POSENC_ERROR_SHAPE, "attend: q has -1 axes"},
    };
    posenc_error err;
    (void)state;
    bad[0].data     = NULL;
    bad[1].shape[1] = 5;
    bad[2].ndim     = 1;
    bad[2].shape[0] = 24;
    bad[3].dtype    = (posenc_dtype)77;
    bad[4].ndim     = 9;
    bad[5].ndim     = -1;
    assert_int_equal(pe_tensor_check(&good, "attend: q", 2, shape, &err), POSENC_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pe_tensor_check(&bad[i], "attend: q", 2, shape, &err), want[i].status);
        assert_non_null(strstr(err.message, want[i].words));
    }
}

static void any_size_is_accepted_where_the_shape_says_so(void **state)
{
    float         memory[24];
    const int64_t any[2] = {-1, 6};
    posenc_tensor t      = posenc_tensor_contiguous(memory, POSENC_DTYPE_F32, 2, (int64_t[]){4, 6});
    posenc_error  err;
    (void)state;
    assert_int_equal(pe_tensor_check(&t, "x", 2, any, &err), POSENC_OK);
    t.shape[0] = 0;
    assert_int_equal(pe_tensor_check(&t, "x", 2, any, &err), POSENC_OK);
    t.data = NULL; /* which no elements need */
    assert_int_equal(pe_tensor_check(&t, "x", 2, any, &err), POSENC_OK);
    t.shape[0] = 1;
    assert_int_equal(pe_tensor_check(&t, "x", 2, any, &err), POSENC_ERROR_ARGUMENT);
    assert_string_equal(err.message, "x has no data; it is needed here");
    t.data     = memory;
    t.shape[0] = -1;
    assert_int_equal(pe_tensor_check(&t, "x", 2, any, &err), POSENC_ERROR_SHAPE);
    assert_string_equal(err.message, "x has size -1 on axis 0; sizes are 0 or more");
    t.ndim = 1;
    assert_int_equal(pe_tensor_check(&t, "x", 2, any, &err), POSENC_ERROR_SHAPE);
}

static void an_output_must_be_real_and_must_not_overlap_itself(void **state)
{
    double        memory[24];
    const int64_t shape[2] = {4, 6};
    posenc_tensor t        = posenc_tensor_contiguous(memory, POSENC_DTYPE_I64, 2, shape);
    posenc_error  err;
    (void)state;
    assert_int_equal(pe_tensor_check_output(&t, "rows: y", 2, shape, &err), POSENC_ERROR_DTYPE);
    assert_non_null(strstr(err.message, "rows: y is I64"));
    t.dtype     = POSENC_DTYPE_F64;
    t.stride[0] = 0;
    assert_int_equal(pe_tensor_check_output(&t, "rows: y", 2, shape, &err), POSENC_ERROR_SHAPE);
    assert_non_null(strstr(err.message, "stride 0 on axis 0"));
    assert_int_equal(pe_tensor_check(&t, "rows: x", 2, shape, &err), POSENC_OK); /* an input may broadcast */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_in_any_float_type_loads_back),
        cmocka_unit_test(integers_and_masks_load_as_numbers),
        cmocka_unit_test(a_store_touches_nothing_between_its_strides),
        cmocka_unit_test(a_row_is_found_by_strides_whatever_their_order),
        cmocka_unit_test(contiguous_ignores_strides_of_axes_of_length_one),
        cmocka_unit_test(a_wrong_tensor_is_refused_with_what_it_is_and_must_be),
        cmocka_unit_test(any_size_is_accepted_where_the_shape_says_so),
        cmocka_unit_test(an_output_must_be_real_and_must_not_overlap_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

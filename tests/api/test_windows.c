/* SPDX-License-Identifier: MIT */
/*
 * test_windows: index and coordinates of Swin's windows, as the released code builds them
 *
 * microsoft/Swin-Transformer lists the coordinates of all tokens, subtracts each from each, shifts both axes
 * to begin at 0 and multiplies the first by the length of the second; v2 makes a table of all offsets,
 * divides them by the window less one, times 8, and takes sign and logarithm. The same steps are taken here,
 * and then held against swin's own bias: a table of 0, 1, 2, ... must come out as the index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/positions.h>
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workspace.h"

static const int64_t windows[][2] = {{1, 1}, {1, 5}, {4, 1}, {2, 3}, {7, 7}, {5, 8}};

enum { WINDOWS = sizeof windows / sizeof *windows, MOST = 49 * 49 };

static void an_index_counts_offsets_row_by_row(void **state)
{
    int64_t index[MOST];
    (void)state;
    for (int w = 0; w < WINDOWS; w++) {
        const int64_t rows = windows[w][0], columns = windows[w][1], n = rows * columns;
        assert_int_equal(posenc_window_index(rows, columns, index, NULL), POSENC_OK);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t relative[] = {i / columns - j / columns + rows - 1,
                                            i % columns - j % columns + columns - 1};
                assert_int_equal(index[i * n + j], relative[0] * (2 * columns - 1) + relative[1]);
            }
        assert_int_equal(index[0], index[n * n - 1]); /* no offset: the middle of the table */
        assert_int_equal(2 * index[0], (2 * rows - 1) * (2 * columns - 1) - 1);
        assert_int_equal(index[n - 1] + index[(n - 1) * n], 2 * index[0]); /* there and back again */
    }
}

/* Attention with q = 0 and a table that holds its own row numbers. */
static void the_index_is_where_swin_reads_its_table(void **state)
{
    static double table[4 * MOST], bias[2 * MOST];
    int64_t       index[MOST];
    (void)state;
    for (int w = 0; w < WINDOWS; w++) {
        const int64_t     rows = windows[w][0], columns = windows[w][1], n = rows * columns;
        const int64_t     offsets = (2 * rows - 1) * (2 * columns - 1);
        const posenc_dims dims    = {.B = 1, .H = 2, .Lq = n, .Lk = n, .D = 4};
        char              spec[64];
        posenc_encoding  *e;
        posenc_plan      *plan;
        snprintf(spec, sizeof spec, "swin[window=%dx%d]", (int)rows, (int)columns);
        assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
        assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, NULL), POSENC_OK);
        for (int64_t x = 0; x < 2 * offsets; x++)
            table[x] = (double)(x / 2 + x % 2 * 1000000); /* [offsets, H] */
        const posenc_tensor param =
            posenc_tensor_contiguous(table, POSENC_DTYPE_F64, 2, (int64_t[]){offsets, 2});
        posenc_tensor          to = posenc_tensor_contiguous(bias, POSENC_DTYPE_F64, 3, (int64_t[]){2, n, n});
        const posenc_attend_in in = {.size = sizeof in, .q = {.dtype = POSENC_DTYPE_F64}, .params = &param};
        posenc_workspace       work = workspace_for(plan, POSENC_RUN_SCORES);
        assert_int_equal(posenc_bias(plan, &in, &to, &work, NULL), POSENC_OK);
        assert_int_equal(posenc_window_index(rows, columns, index, NULL), POSENC_OK);
        for (int64_t x = 0; x < n * n; x++) {
            assert_true(bias[x] == (double)index[x]);
            assert_true(bias[n * n + x] == (double)(index[x] + 1000000));
        }
        posenc_workspace_free(&work);
        posenc_plan_free(plan);
        posenc_encoding_free(e);
    }
}

/* A table that holds its rows' numbers keeps them when its columns alone are resized. */
static void a_table_of_other_columns_is_resized(void **state)
{
    enum {
        ROWS    = 3,
        COLUMNS = 2,
        OLD     = 4,
        N       = ROWS * COLUMNS,
        NEW_ROW = 2 * COLUMNS - 1,
        OLD_ROW = 2 * OLD - 1
    };
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = N, .Lk = N, .D = 4};
    double            table[(2 * ROWS - 1) * OLD_ROW], bias[N * N];
    int64_t           index[N * N];
    posenc_encoding  *e;
    posenc_plan      *plan;
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "swin[window=3x2:table_window=3x4]", NULL, NULL), POSENC_OK);
    assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, NULL), POSENC_OK);
    for (int x = 0; x < (2 * ROWS - 1) * OLD_ROW; x++)
        table[x] = x / OLD_ROW;
    const posenc_tensor param =
        posenc_tensor_contiguous(table, POSENC_DTYPE_F64, 2, (int64_t[]){(2 * ROWS - 1) * OLD_ROW, 1});
    posenc_tensor          to   = posenc_tensor_contiguous(bias, POSENC_DTYPE_F64, 3, (int64_t[]){1, N, N});
    const posenc_attend_in in   = {.size = sizeof in, .q = {.dtype = POSENC_DTYPE_F64}, .params = &param};
    posenc_workspace       work = workspace_for(plan, POSENC_RUN_SCORES);
    assert_int_equal(posenc_bias(plan, &in, &to, &work, NULL), POSENC_OK);
    assert_int_equal(posenc_window_index(ROWS, COLUMNS, index, NULL), POSENC_OK);
    for (int x = 0; x < N * N; x++)
        assert_true(fabs(bias[x] - (double)(index[x] / NEW_ROW)) < 1e-12);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
}

static double spread(double offset, double side)
{
    const double share = side > 1 ? offset / (side - 1) * 8 : 0;
    return copysign(log2(fabs(share) + 1) / log2(8), share);
}

static void coordinates_are_logarithms_of_shares_of_the_window(void **state)
{
    static const int64_t before[][2] = {{0, 0}, {8, 8}, {6, 12}};
    double               c[2 * 13 * 15];
    (void)state;
    for (int w = 0; w < WINDOWS; w++)
        for (int b = 0; b < 3; b++) {
            const int64_t rows = windows[w][0], columns = windows[w][1];
            const double  sides[] = {(double)(before[b][0] ? before[b][0] : rows),
                                     (double)(before[b][1] ? before[b][1] : columns)};
            assert_int_equal(posenc_window_coordinates(rows, columns, before[b][0], before[b][1], c, NULL),
                             POSENC_OK);
            for (int64_t dy = 1 - rows; dy < rows; dy++)
                for (int64_t dx = 1 - columns; dx < columns; dx++) {
                    const double *x = c + 2 * ((dy + rows - 1) * (2 * columns - 1) + dx + columns - 1);
                    assert_true(fabs(x[0] - spread((double)dy, sides[0])) < 1e-14);
                    assert_true(fabs(x[1] - spread((double)dx, sides[1])) < 1e-14);
                }
        }
}

static void windows_that_cannot_be_are_refused(void **state)
{
    double       c[8]     = {7, 7, 7, 7, 7, 7, 7, 7};
    int64_t      index[4] = {7, 7, 7, 7};
    posenc_error err;
    (void)state;
    static const struct {
        int64_t       sides[4];
        posenc_status status;
    } bad[] = {{{0, 2, 0, 0}, POSENC_ERROR_RANGE},    {{2, 0, 0, 0}, POSENC_ERROR_RANGE},
               {{-1, 2, 0, 0}, POSENC_ERROR_RANGE},   {{4097, 1, 0, 0}, POSENC_ERROR_RANGE},
               {{1, 4097, 0, 0}, POSENC_ERROR_RANGE}, {{2, 1, 1, 0}, POSENC_ERROR_RANGE},
               {{1, 2, 0, 1}, POSENC_ERROR_RANGE},    {{2, 2, -1, 0}, POSENC_ERROR_RANGE},
               {{2, 2, 0, -3}, POSENC_ERROR_RANGE}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int64_t *s = bad[i].sides;
        assert_int_equal(posenc_window_coordinates(s[0], s[1], s[2], s[3], c, &err), bad[i].status);
        assert_true(err.message[0] && c[0] == 7);
        if (i < 5)
            assert_int_equal(posenc_window_index(s[0], s[1], index, &err), bad[i].status);
        assert_true(err.message[0] && index[0] == 7);
    }
    assert_int_equal(posenc_window_index(2, 2, NULL, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_window_coordinates(2, 2, 0, 0, NULL, &err), POSENC_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_counts_offsets_row_by_row),
        cmocka_unit_test(the_index_is_where_swin_reads_its_table),
        cmocka_unit_test(a_table_of_other_columns_is_resized),
        cmocka_unit_test(coordinates_are_logarithms_of_shares_of_the_window),
        cmocka_unit_test(windows_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

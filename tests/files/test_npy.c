/* SPDX-License-Identifier: MIT */
/*
 * The .npy reader: what NumPy writes is read, and nothing else is
 *
 * Files are put together here byte by byte, so that each test shows the one thing that is wrong
 * with its own.
 */
#include "files/arrays/formats.h"

#include <math.h>

#include "scratch.h"

enum { MOST = 2048 };

typedef struct bytes {
    unsigned char data[MOST];
    size_t        size;
} bytes;

/* An .npy of a version with that header text (a newline is added) and n bytes of elements. */
static bytes npy(int version, const char *header, const void *elements, size_t n)
{
    bytes        b    = {{0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0}, 8};
    const size_t text = strlen(header) + 1;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        b.data[b.size++] = (unsigned char)(text >> (8 * i) & 0xff);
    memcpy(b.data + b.size, header, text - 1);
    b.size += text - 1;
    b.data[b.size++] = '\n';
    if (n)
        memcpy(b.data + b.size, elements, n);
    b.size += n;
    return b;
}

static posenc_tensor read_one(posenc_arrays *set, const bytes *b)
{
    posenc_error err;
    if (pe_arrays_parse(set, b->data, b->size, "dir/x.npy", &err))
        fail_msg("%s", err.message);
    assert_int_equal(set->count, 1);
    assert_string_equal(set->items[0].name, "x");
    return set->items[0].tensor;
}

static void refused(const bytes *b, posenc_status status, const char *part)
{
    posenc_arrays set = {0};
    posenc_error  err;
    assert_int_equal(pe_arrays_parse(&set, b->data, b->size, "dir/x.npy", &err), status);
    assert_int_equal(set.count, 0);
    assert_non_null(strstr(err.message, "dir/x.npy: "));
    assert_null(strchr(err.message, '\n'));
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static double element(const posenc_tensor *t, int64_t i)
{
    return t->dtype == POSENC_DTYPE_F64   ? ((double *)t->data)[i]
           : t->dtype == POSENC_DTYPE_F32 ? (double)((float *)t->data)[i]
           : t->dtype == POSENC_DTYPE_I64 ? (double)((int64_t *)t->data)[i]
           : t->dtype == POSENC_DTYPE_U8  ? ((unsigned char *)t->data)[i]
                                          : (double)((uint16_t *)t->data)[i];
}

static void every_type_is_read(void **state)
{
    static const double        f8[] = {-1.5, 3};
    static const float         f4[] = {-1.5f, 3};
    static const uint16_t      f2[] = {0xbe00, 0x4200};
    static const int64_t       i8[] = {-2, 3};
    static const int32_t       i4[] = {-2, 3};
    static const int16_t       i2[] = {-2, 3};
    static const signed char   i1[] = {-2, 3};
    static const uint32_t      u4[] = {4294967295u, 3};
    static const uint16_t      u2[] = {65535, 3};
    static const unsigned char u1[] = {255, 3}, b1[] = {1, 0};
    static const struct {
        const char  *descr;
        const void  *elements;
        size_t       size;
        posenc_dtype dtype;
        double       first, second;
    } rows[] = {
        {"<f8", f8, sizeof f8, POSENC_DTYPE_F64, -1.5, 3},
        {"<f4", f4, sizeof f4, POSENC_DTYPE_F32, -1.5, 3},
        {"<f2", f2, sizeof f2, POSENC_DTYPE_F16, 0xbe00, 0x4200},
        {"<i8", i8, sizeof i8, POSENC_DTYPE_I64, -2, 3},
        {"<i4", i4, sizeof i4, POSENC_DTYPE_I64, -2, 3},
        {"<i2", i2, sizeof i2, POSENC_DTYPE_I64, -2, 3},
        {"|i1", i1, sizeof i1, POSENC_DTYPE_I64, -2, 3},
        {"<u4", u4, sizeof u4, POSENC_DTYPE_I64, 4294967295.0, 3},
        {"<u2", u2, sizeof u2, POSENC_DTYPE_I64, 65535, 3},
        {"|u1", u1, sizeof u1, POSENC_DTYPE_U8, 255, 3},
        {"|b1", b1, sizeof b1, POSENC_DTYPE_U8, 1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[100];
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }",
                 rows[i].descr);
        const bytes         b   = npy(1, header, rows[i].elements, rows[i].size);
        posenc_arrays       set = {0};
        const posenc_tensor t   = read_one(&set, &b);
        assert_int_equal(t.dtype, rows[i].dtype);
        assert_true(element(&t, 0) == rows[i].first && element(&t, 1) == rows[i].second);
        posenc_arrays_free(&set);
    }
}

static void versions_one_to_three_are_read(void **state)
{
    const double x = 7;
    (void)state;
    for (int version = 1; version <= 3; version++) {
        const bytes b =
            npy(version, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", &x, sizeof x);
        posenc_arrays       set = {0};
        const posenc_tensor t   = read_one(&set, &b);
        assert_true(element(&t, 0) == 7);
        posenc_arrays_free(&set);
    }
}

static void an_array_without_axes_is_one_number(void **state)
{
    const double        x   = 2.5;
    const bytes         b   = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &x, sizeof x);
    posenc_arrays       set = {0};
    const posenc_tensor t   = read_one(&set, &b);
    (void)state;
    assert_int_equal(t.ndim, 0);
    assert_true(element(&t, 0) == 2.5);
    posenc_arrays_free(&set);
}

static void an_empty_array_keeps_its_shape_and_has_data(void **state)
{
    const bytes         b = npy(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0, 2), }", NULL, 0);
    posenc_arrays       set = {0};
    const posenc_tensor t   = read_one(&set, &b);
    (void)state;
    assert_int_equal(t.ndim, 3);
    assert_int_equal(t.shape[1], 0);
    assert_non_null(t.data);
    posenc_arrays_free(&set);
}

/* Element (i,j,k) of a [2,3,4] array is 100 i + 10 j + k; Fortran counts i fastest. */
static void fortran_order_becomes_c_order(void **state)
{
    int16_t x[24];
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                x[i + 2 * j + 6 * k] = (int16_t)(100 * i + 10 * j + k);
    const bytes   b   = npy(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 4), }", x, sizeof x);
    posenc_arrays set = {0};
    const posenc_tensor t = read_one(&set, &b);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                assert_true(element(&t, 12 * i + 4 * j + k) == 100 * i + 10 * j + k);
    posenc_arrays_free(&set);
}

/* Number (i,j) of a [2,3] array is 10 i + j + (i - j) I, as one axis more. */
static void complex_numbers_are_an_axis_of_two(void **state)
{
    float         narrow[12];
    double        wide[12];
    posenc_arrays set = {0};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            narrow[6 * i + 2 * j]     = (float)(10 * i + j);
            narrow[6 * i + 2 * j + 1] = (float)(i - j);
            wide[2 * (i + 2 * j)]     = 10 * i + j; /* Fortran turns the numbers, not their parts */
            wide[2 * (i + 2 * j) + 1] = i - j;
        }
    const bytes files[2] = {
        npy(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", narrow, sizeof narrow),
        npy(1, "{'descr': '<c16', 'fortran_order': True, 'shape': (2, 3), }", wide, sizeof wide)};
    for (int f = 0; f < 2; f++) {
        const posenc_tensor t = read_one(&set, &files[f]);
        assert_true(set.items[0].is_complex);
        assert_int_equal(t.dtype, f ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32);
        assert_int_equal(t.ndim, 3);
        assert_true(t.shape[0] == 2 && t.shape[1] == 3 && t.shape[2] == 2 && t.stride[1] == 2);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++) {
                assert_true(element(&t, 6 * i + 2 * j) == 10 * i + j);
                assert_true(element(&t, 6 * i + 2 * j + 1) == i - j);
            }
        posenc_arrays_free(&set);
    }
}

static void the_axis_of_two_must_find_room(void **state)
{
    const float x[] = {1, 2};
    const bytes b =
        npy(1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1), }", x, sizeof x);
    (void)state;
    refused(&b, POSENC_ERROR_FORMAT, "it has 6 axes; an array of complex numbers may have at most 5");
}

/* What is written is what NumPy writes: a number without axes, too. */
static void complex_numbers_are_written_as_such(void **state)
{
    double       x[4] = {1, 2, 3, 4};
    char         header[PE_NPY_HEADER];
    size_t       n;
    posenc_array a = {.tensor     = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 2, (int64_t[]){2, 2}),
                      .is_complex = 1};
    posenc_error err;
    (void)state;
    assert_int_equal(pe_npy_header(header, &n, &a, (pe_origin){"x", NULL}, &err), POSENC_OK);
    assert_non_null(strstr(header + 10, "'descr': '<c16', 'fortran_order': False, 'shape': (2,), }"));
    a.tensor = posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 1, (int64_t[]){2});
    assert_int_equal(pe_npy_header(header, &n, &a, (pe_origin){"x", NULL}, &err), POSENC_OK);
    assert_non_null(strstr(header + 10, "'descr': '<c8', 'fortran_order': False, 'shape': (), }"));
    static const struct {
        posenc_dtype dtype;
        int32_t      ndim;
        int64_t      last;
    } wrong[] = {{POSENC_DTYPE_F64, 1, 4},
                 {POSENC_DTYPE_F64, 0, 1},
                 {POSENC_DTYPE_F16, 1, 2},
                 {POSENC_DTYPE_I64, 1, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        a.tensor = posenc_tensor_contiguous(x, wrong[i].dtype, wrong[i].ndim, &wrong[i].last);
        assert_int_equal(pe_npy_header(header, &n, &a, (pe_origin){"x", NULL}, &err), POSENC_ERROR_ARGUMENT);
        assert_string_equal(err.message, "x: complex numbers must be F32 or F64 with a last axis of 2");
    }
}

static void keys_stand_in_any_order_and_quotes(void **state)
{
    const double  x[] = {1, 2};
    const bytes   b = npy(1, "{ \"shape\":( 2 , ),'fortran_order' : False ,'descr':\"<f8\"}   ", x, sizeof x);
    posenc_arrays set     = {0};
    const posenc_tensor t = read_one(&set, &b);
    (void)state;
    assert_true(element(&t, 1) == 2);
    posenc_arrays_free(&set);
}

static void numbers_that_are_not_finite_are_numbers(void **state)
{
    const double        x[] = {(double)NAN, -(double)INFINITY};
    const bytes         b = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", x, sizeof x);
    posenc_arrays       set = {0};
    const posenc_tensor t   = read_one(&set, &b);
    (void)state;
    assert_true(isnan(element(&t, 0)) && isinf(element(&t, 1)));
    posenc_arrays_free(&set);
}

static void a_header_that_is_no_such_dictionary_is_refused(void **state)
{
    static const char *const headers[] = {
        "",
        "{",
        "[]",
        "{}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), ",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } x",
        "{'descr': '<f8', 'fortran_order': False, }",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1, }",
        "{'descr': '<f8' 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 1, }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,,2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<\\x668', 'fortran_order': False, 'shape': (1,), }",
        "{'descr: '<f8', 'fortran_order': False, 'shape': (1,), }",
    };
    const double x = 1;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        const bytes b = npy(1, headers[i], &x, sizeof x);
        refused(&b, POSENC_ERROR_FORMAT, "header");
    }
}

static void what_the_library_cannot_compute_with_is_named(void **state)
{
    static const struct {
        const char *descr, *part;
    } rows[] = {
        {"'>f8'", "big-endian"}, {"'>i4'", "big-endian"},     {"'|O'", "objects"},
        {"'<c32'", "'<c32'"},    {"'>c8'", "big-endian"},     {"'|c8'", "'|c8'"},
        {"'<U5'", "'<U5'"},      {"'<u8'", "'<u8'"},          {"'<f16'", "'<f16'"},
        {"'f8'", "'f8'"},        {"'=f8'", "'=f8'"},          {"''", "''"},
        {"'|f8'", "'|f8'"},      {"[('a', '<f8')]", "[...]"},
    };
    const double x = 1;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[100];
        snprintf(header, sizeof header, "{'descr': %s, 'fortran_order': False, 'shape': (1,), }",
                 rows[i].descr);
        const bytes b = npy(1, header, &x, sizeof x);
        refused(&b, POSENC_ERROR_FORMAT, rows[i].part);
    }
}

static void shapes_that_cannot_be_are_refused_before_memory_is_taken(void **state)
{
    static const struct {
        const char *shape, *part;
    } rows[] = {
        {"(1, 1, 1, 1, 1, 1, 1)", "more than 6 axes"},
        {"(4294967296, 4294967296, 4294967296)", "elements"},
        {"(3037000500, 3037000500, 0)", "elements"}, /* its strides overflow though it is empty */
        {"(9223372036854775807,)", "header"},
        {"(536870913,)", "elements"},
        {"(536870912,)", "4294967296 bytes of elements but 8 follow"},
        {"(2,)", "16 bytes of elements but 8 follow: it is truncated"},
        {"(0,)", "longer than it should be"},
    };
    const double x = 1;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[160];
        snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
                 rows[i].shape);
        const bytes b = npy(1, header, &x, sizeof x);
        refused(&b, POSENC_ERROR_FORMAT, rows[i].part);
    }
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    const double x[] = {1, 2};
    bytes        b   = npy(2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", x, sizeof x);
    (void)state;
    for (b.size--; b.size > 0; b.size--)
        refused(&b, POSENC_ERROR_FORMAT, "");
}

static void a_file_that_goes_on_is_refused(void **state)
{
    const double x[] = {1, 2, 3};
    const bytes  b   = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", x, sizeof x - 7);
    (void)state;
    refused(&b, POSENC_ERROR_FORMAT, "longer");
}

static void other_versions_and_long_headers_are_refused(void **state)
{
    const double x = 1;
    bytes        b = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", &x, sizeof x);
    (void)state;
    b.data[6] = 4;
    refused(&b, POSENC_ERROR_FORMAT, "version is 4.0");
    b.data[6] = 1;
    b.data[7] = 1;
    refused(&b, POSENC_ERROR_FORMAT, "version is 1.1");
    b          = npy(3, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", &x, sizeof x);
    b.data[11] = 0x7f;
    refused(&b, POSENC_ERROR_FORMAT, "header of");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(versions_one_to_three_are_read),
        cmocka_unit_test(an_array_without_axes_is_one_number),
        cmocka_unit_test(an_empty_array_keeps_its_shape_and_has_data),
        cmocka_unit_test(fortran_order_becomes_c_order),
        cmocka_unit_test(complex_numbers_are_an_axis_of_two),
        cmocka_unit_test(the_axis_of_two_must_find_room),
        cmocka_unit_test(complex_numbers_are_written_as_such),
        cmocka_unit_test(keys_stand_in_any_order_and_quotes),
        cmocka_unit_test(numbers_that_are_not_finite_are_numbers),
        cmocka_unit_test(a_header_that_is_no_such_dictionary_is_refused),
        cmocka_unit_test(what_the_library_cannot_compute_with_is_named),
        cmocka_unit_test(shapes_that_cannot_be_are_refused_before_memory_is_taken),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_file_that_goes_on_is_refused),
        cmocka_unit_test(other_versions_and_long_headers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Arrays as text: what is written reads back to the bit, what people and spreadsheets write is read, and what
   is no such text is refused with its line. */
#include "base/half.h"

#include <float.h>
#include <math.h>
#include <posenc/files.h>

#include "scratch.h"

/* The file q.csv with this text, and the arrays that it holds. */
static posenc_arrays arrays_of(const char *text)
{
    posenc_arrays set = {0};
    posenc_error  err;
    scratch_write("q.csv", text, strlen(text));
    if (posenc_arrays_read(&set, scratch("q.csv"), &err))
        fail_msg("%s", err.message);
    return set;
}

static void holds(const posenc_arrays *set, const char *name, const char *shape, const char *numbers)
{
    const posenc_tensor *t         = posenc_arrays_find(set, name);
    char                 text[400] = "";
    int64_t              count     = 1;
    assert_non_null(t);
    assert_int_equal(t->dtype, POSENC_DTYPE_F64);
    for (int32_t a = 0; a < t->ndim; a++) {
        snprintf(text + strlen(text), 20, "%s%lld", a ? "x" : "", (long long)t->shape[a]);
        count *= t->shape[a];
    }
    assert_string_equal(text, shape);
    text[0] = '\0';
    for (int64_t i = 0; i < count; i++)
        snprintf(text + strlen(text), 30, "%s%g", i ? " " : "", ((const double *)t->data)[i]);
    assert_string_equal(text, numbers);
}

static void a_text_without_a_name_is_one_array_named_like_the_file(void **state)
{
    posenc_arrays row = arrays_of("1,2.5,-3\n"), rows = arrays_of("1,2\n3,4\n5,6"),
                  column = arrays_of("1\n2\n");
    (void)state;
    holds(&row, "q", "3", "1 2.5 -3");
    holds(&rows, "q", "3x2", "1 2 3 4 5 6");
    holds(&column, "q", "2x1", "1 2");
    assert_true(row.items[0].is_unnamed && row.items[0].is_text);
    posenc_arrays_free(&row);
    posenc_arrays_free(&rows);
    posenc_arrays_free(&column);
}

static void names_and_shapes_stand_above_the_lines(void **state)
{
    posenc_arrays set = arrays_of("# q 2x1x2\n1,2\n3,4\n\n#k\n5,6\n# none 0x3\n# v 2\n7,8\n");
    (void)state;
    assert_int_equal(set.count, 4);
    holds(&set, "q", "2x1x2", "1 2 3 4");
    holds(&set, "k", "2", "5 6");
    holds(&set, "none", "0x3", "");
    holds(&set, "v", "2", "7 8");
    assert_false(set.items[0].is_unnamed);
    posenc_arrays_free(&set);
}

static void what_a_spreadsheet_writes_is_read(void **state)
{
    posenc_arrays set = arrays_of("\xef\xbb\xbf# q 2x3,,\r\n1, 2 ,\t3\r\n4,5,6\r\n\r\n");
    (void)state;
    holds(&set, "q", "2x3", "1 2 3 4 5 6");
    posenc_arrays_free(&set);
}

static void content_is_recognised_whatever_the_name(void **state)
{
    static const char text[] = "# q\n1,2\n";
    posenc_arrays     set    = {0};
    posenc_error      err;
    (void)state;
    scratch_write("numbers.txt", text, strlen(text));
    assert_int_equal(posenc_arrays_read(&set, scratch("numbers.txt"), &err), POSENC_OK);
    holds(&set, "q", "2", "1 2");
    posenc_arrays_free(&set);
}

/* Of every type: the last digits count, and so does the sign of zero. */
static void what_is_written_reads_back_to_the_bit(void **state)
{
    static const double wide[]   = {0.1, 1.0 / 3, -0.0, DBL_MAX, 5e-324, INFINITY};
    static const float  narrow[] = {0.1f, 1.0f / 3, -0.0f, FLT_MAX, 1e-45f, -INFINITY};
    const int64_t       shape[]  = {1, 2, 3};
    posenc_arrays       out = {0}, in = {0};
    posenc_error        err;
    (void)state;
    posenc_tensor *a = posenc_arrays_add(&out, "a", POSENC_DTYPE_F64, 3, shape);
    memcpy(a->data, wide, sizeof wide);
    posenc_tensor *b = posenc_arrays_add(&out, "b", POSENC_DTYPE_F32, 2, shape + 1);
    memcpy(b->data, narrow, sizeof narrow);
    posenc_tensor *c     = posenc_arrays_add(&out, "c", POSENC_DTYPE_F16, 1, (const int64_t[]){1});
    *(uint16_t *)c->data = pe_half_float_to_f16(0.1f);
    posenc_tensor *d     = posenc_arrays_add(&out, "d", POSENC_DTYPE_I64, 1, (const int64_t[]){1});
    *(int64_t *)d->data  = INT64_C(-9007199254740991);
    assert_int_equal(posenc_arrays_write(&out, scratch("out.csv"), &err), POSENC_OK);
    assert_int_equal(posenc_arrays_read(&in, scratch("out.csv"), &err), POSENC_OK);
    assert_int_equal(in.count, 4);
    assert_int_equal(in.items[0].tensor.ndim, 3);
    assert_memory_equal(in.items[0].tensor.data, wide, sizeof wide);
    for (int i = 0; i < 6; i++) {
        const float x = (float)((const double *)in.items[1].tensor.data)[i];
        assert_memory_equal(&x, &narrow[i], sizeof x);
    }
    assert_true((float)*(const double *)in.items[2].tensor.data == pe_half_f16_to_float(0x2e66));
    assert_true(*(const double *)in.items[3].tensor.data == -9007199254740991.0);
    posenc_arrays_free(&out);
    posenc_arrays_free(&in);
}

static void numbers_have_no_more_digits_than_their_type(void **state)
{
    posenc_arrays set = {0};
    posenc_error  err;
    size_t        n;
    (void)state;
    posenc_tensor *t      = posenc_arrays_add(&set, "q", POSENC_DTYPE_F32, 2, (const int64_t[]){1, 2});
    ((float *)t->data)[0] = 0.1f;
    ((float *)t->data)[1] = 16777216;
    assert_int_equal(posenc_arrays_write(&set, scratch("out.csv"), &err), POSENC_OK);
    char *text = scratch_read(scratch("out.csv"), &n);
    assert_string_equal(text, "# q 1x2\n0.1,16777216\n");
    free(text);
    posenc_arrays_free(&set);
}

static void complex_numbers_are_refused_and_no_file_is_left(void **state)
{
    posenc_arrays set = {0};
    posenc_error  err;
    (void)state;
    assert_non_null(posenc_arrays_add(&set, "q", POSENC_DTYPE_F64, 2, (const int64_t[]){1, 2}));
    set.items[0].is_complex = 1;
    assert_int_equal(posenc_arrays_write(&set, scratch("out.csv"), &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "out.csv: q holds complex numbers, which CSV has not"));
    assert_int_equal(scratch_count(), 0);
    posenc_arrays_free(&set);
}

static void a_fault_is_told_with_its_line(void **state)
{
    static const char *const rows[][2] = {
        {"1,2\n3\n", "line 2: it has 1 numbers, but the lines above it have 2"},
        {"# q\n1,x\n", "line 2: number 2 is \"x\"; it must be a number"},
        {"1,,2\n", "line 1: number 2 is \"\""},
        {"1;2\n", "line 1: number 1 is \"1;2\""},
        {"1 2\n", "line 1: number 1 is \"1 2\""},
        {"# q 2x\n1\n", "line 1: a line with # must be the name of the array below it"},
        {"# my table\n1\n", "line 1: a line with # must be"},
        {"#\n1\n", "line 1: a line with # must be"},
        {"# q 1x1x1x1x1x1x1x1x1\n1\n", "line 1: a line with # must be"},
        {"# q 99999999x99999999\n1\n", "line 1: a line with # must be"},
        {"\n# q 2x3\n1,2,3\n", "line 2: its shape asks for 2 lines of 3 numbers, but there are 1 of 3"},
        {"# q 2x3\n1,2\n3,4\n5,6\n", "asks for 2 lines of 3 numbers, but there are 3 of 2"},
        {"# q\n1\n# q\n2\n", "line 3: q is a name that an array above it has"},
        {"# q\n# k\n1\n", "line 1: there are no numbers below it"},
        {"\n\n", "it has no numbers"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_arrays set = {0};
        posenc_error  err;
        scratch_write("q.csv", rows[i][0], strlen(rows[i][0]));
        assert_int_equal(posenc_arrays_read(&set, scratch("q.csv"), &err), POSENC_ERROR_FORMAT);
        assert_int_equal(set.count, 0);
        if (!strstr(err.message, "q.csv: ") || !strstr(err.message, rows[i][1]))
            fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_text_without_a_name_is_one_array_named_like_the_file, scratch_clear),
        cmocka_unit_test_teardown(names_and_shapes_stand_above_the_lines, scratch_clear),
        cmocka_unit_test_teardown(what_a_spreadsheet_writes_is_read, scratch_clear),
        cmocka_unit_test_teardown(content_is_recognised_whatever_the_name, scratch_clear),
        cmocka_unit_test_teardown(what_is_written_reads_back_to_the_bit, scratch_clear),
        cmocka_unit_test_teardown(numbers_have_no_more_digits_than_their_type, scratch_clear),
        cmocka_unit_test_teardown(complex_numbers_are_refused_and_no_file_is_left, scratch_clear),
        cmocka_unit_test_teardown(a_fault_is_told_with_its_line, scratch_clear),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

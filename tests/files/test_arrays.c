/* SPDX-License-Identifier: MIT */
/* Sets of arrays and the files they come from: found by content, named by the file, refused in one
   sentence. */
#include <posenc/files.h>

#include <sys/stat.h>

#include "files/arrays/file.h"
#include "scratch.h"

static void a_set_grows_and_finds_by_name(void **state)
{
    posenc_arrays set = {0};
    char          name[16];
    (void)state;
    for (int64_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "a%d", (int)i);
        posenc_tensor *t = posenc_arrays_add(&set, name, POSENC_DTYPE_I64, 1, &i);
        assert_non_null(t);
        for (int64_t k = 0; k < i; k++)
            assert_int_equal(((int64_t *)t->data)[k], 0);
    }
    assert_int_equal(set.count, 100);
    assert_int_equal(posenc_arrays_find(&set, "a77")->shape[0], 77);
    assert_null(posenc_arrays_find(&set, "a100"));
    posenc_arrays_free(&set);
    assert_int_equal(set.count, 0);
    assert_null(posenc_arrays_find(&set, "a77"));
}

static void a_shape_that_cannot_be_gives_no_array(void **state)
{
    const int64_t negative = -1, huge[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 0};
    posenc_arrays set = {0};
    (void)state;
    assert_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, 1, &negative));
    assert_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, 3, huge));
    assert_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, POSENC_MAX_DIMS + 1, huge));
    assert_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, -1, huge));
    assert_int_equal(set.count, 0);
    posenc_arrays_free(&set);
}

static void an_npy_is_one_array_named_like_the_file(void **state)
{
    const int64_t  shape[2] = {2, 3};
    posenc_arrays  out = {0}, in = {0};
    posenc_error   err;
    posenc_tensor *t = posenc_arrays_add(&out, "whatever", POSENC_DTYPE_F32, 2, shape);
    (void)state;
    ((float *)t->data)[5] = 4;
    assert_int_equal(posenc_arrays_write(&out, scratch("q.before.npy"), &err), POSENC_OK);
    assert_int_equal(posenc_arrays_read(&in, scratch("q.before.npy"), &err), POSENC_OK);
    assert_string_equal(in.items[0].name, "q.before");
    assert_true(((float *)in.items[0].tensor.data)[5] == 4);
    posenc_arrays_free(&out);
    posenc_arrays_free(&in);
}

static void content_decides_what_a_file_is(void **state)
{
    const int64_t shape = 1;
    posenc_arrays out = {0}, in = {0};
    posenc_error  err;
    (void)state;
    assert_non_null(posenc_arrays_add(&out, "a", POSENC_DTYPE_F64, 1, &shape));
    assert_int_equal(posenc_arrays_write(&out, scratch("a.npz"), &err), POSENC_OK);
    assert_int_equal(rename(scratch("a.npz"), scratch("a.npy")), 0);
    assert_int_equal(posenc_arrays_read(&in, scratch("a.npy"), &err), POSENC_OK);
    assert_int_equal(in.count, 1);
    posenc_arrays_free(&out);
    posenc_arrays_free(&in);
}

/* A pipe cannot be sought; an archive is read from it all the same. */
static void a_pipe_is_read(void **state)
{
    const int64_t shape = 3;
    posenc_arrays out = {0}, in = {0};
    posenc_error  err;
    char          command[3 * SCRATCH_PATH];
    (void)state;
    assert_non_null(posenc_arrays_add(&out, "a", POSENC_DTYPE_F64, 1, &shape));
    assert_int_equal(posenc_arrays_write(&out, scratch("a.npz"), &err), POSENC_OK);
    assert_int_equal(mkfifo(scratch("pipe"), 0600), 0);
    snprintf(command, sizeof command, "cat '%s' >'%s' &", scratch("a.npz"), scratch("pipe"));
    assert_int_equal(system(command), 0);
    assert_int_equal(posenc_arrays_read(&in, scratch("pipe"), &err), POSENC_OK);
    assert_string_equal(in.items[0].name, "a");
    posenc_arrays_free(&out);
    posenc_arrays_free(&in);
}

static void read_refused(const char *path, posenc_status status, const char *part)
{
    posenc_arrays set = {0};
    posenc_error  err;
    assert_int_equal(posenc_arrays_read(&set, path, &err), status);
    assert_int_equal(posenc_arrays_read(&set, path, NULL), status);
    assert_int_equal(set.count, 0);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void what_is_no_array_is_refused_in_one_sentence(void **state)
{
    (void)state;
    scratch_write("text.npy", "hello, world", 12);
    scratch_write("empty.npz", "", 0);
    scratch_write("short.npz", "PK", 2);
    read_refused(scratch("text.npy"), POSENC_ERROR_FORMAT,
                 "text.npy: it is neither an .npy array, an .npz archive, a .safetensors file "
                 "nor CSV");
    read_refused(scratch("empty.npz"), POSENC_ERROR_FORMAT, "it is empty");
    read_refused(scratch("short.npz"), POSENC_ERROR_FORMAT, "not a valid zip archive");
    read_refused(scratch("nowhere.npz"), POSENC_ERROR_FILE, "No such file or directory");
    read_refused(scratch_folder, POSENC_ERROR_FILE, "it is a folder");
}

static void what_is_no_array_is_not_written(void **state)
{
    static const char *const names[] = {"x.npz", "x.npy", "x.csv"};
    (void)state;
    for (size_t n = 0; n < 3; n++)
        for (int i = 0; i < 8; i++) {
            posenc_arrays  set = {0};
            posenc_error   err;
            posenc_tensor *t = posenc_arrays_add(&set, "x", POSENC_DTYPE_F32, 2, (const int64_t[]){2, 3});
            assert_non_null(t);
            char *const name = set.items->name;
            void *const data = t->data;
            switch (i) {
            case 0: t->ndim = 99; break;
            case 1: t->ndim = -1; break;
            case 2: t->dtype = (posenc_dtype)55; break;
            case 3: t->shape[0] = -2; break;
            case 4: t->shape[0] = INT64_MAX; break;
            case 5: t->stride[0] = 1; break;
            case 6: t->data = NULL; break;
            default: set.items->name = NULL;
            }
            assert_int_equal(posenc_arrays_write(&set, scratch(names[n]), &err), POSENC_ERROR_ARGUMENT);
            assert_non_null(strstr(err.message, "array 1 is no contiguous array"));
            set.items->name = name;
            t->data         = data;
            posenc_arrays_free(&set);
        }
    assert_int_equal(scratch_count(), 0);
}

/* A name that begins a line of its own could make it a formula of a spreadsheet. */
static void a_name_with_blanks_is_not_written_as_csv(void **state)
{
    static const char *const names[] = {"", "a b", "a\n=1+1", "\t", "a\r"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        posenc_arrays set = {0};
        posenc_error  err;
        assert_non_null(posenc_arrays_add(&set, names[i], POSENC_DTYPE_F32, 1, (const int64_t[]){2}));
        assert_int_equal(posenc_arrays_write(&set, scratch("x.csv"), &err), POSENC_ERROR_ARGUMENT);
        assert_non_null(strstr(err.message, "which CSV cannot hold"));
        posenc_arrays_free(&set);
    }
    assert_int_equal(scratch_count(), 0);
}

/* Whoever reads /dev/zero gets a sentence, not the end of memory. */
static void no_more_is_read_than_may_be(void **state)
{
    const int64_t limits[] = {1 << 15, (1 << 16) - 1, 1 << 16, 100000, 300000};
    char         *long_one = calloc(1, 300001);
    (void)state;
    assert_non_null(long_one);
    scratch_write("long", long_one, 300001);
    free(long_one);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        posenc_error err;
        pe_bytes     bytes;
        int64_t      size;
        FILE        *from;
        assert_int_equal(pe_file_open(&from, &size, scratch("long"), &err), POSENC_OK);
        assert_int_equal(pe_file_read(&bytes, from, limits[i], "long", &err), POSENC_ERROR_FORMAT);
        assert_non_null(strstr(err.message, "the most that are read"));
        assert_int_equal(ftell(from), limits[i] + 1);
        rewind(from);
        assert_int_equal(pe_file_read(&bytes, from, 300001, "long", &err), POSENC_OK);
        assert_int_equal(bytes.size, 300001);
        free(bytes.data);
        pe_file_close(from);
    }
}

static void a_long_name_loses_its_front_and_never_the_reason(void **state)
{
    char long_name[1200];
    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    memcpy(long_name + sizeof long_name - 10, "\n/end.npz", 10);
    read_refused(long_name, POSENC_ERROR_FILE, "x?/end.npz: it cannot be opened: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_grows_and_finds_by_name),
        cmocka_unit_test(a_shape_that_cannot_be_gives_no_array),
        cmocka_unit_test_teardown(an_npy_is_one_array_named_like_the_file, scratch_clear),
        cmocka_unit_test_teardown(content_decides_what_a_file_is, scratch_clear),
        cmocka_unit_test_teardown(a_pipe_is_read, scratch_clear),
        cmocka_unit_test_teardown(what_is_no_array_is_refused_in_one_sentence, scratch_clear),
        cmocka_unit_test_teardown(what_is_no_array_is_not_written, scratch_clear),
        cmocka_unit_test_teardown(a_name_with_blanks_is_not_written_as_csv, scratch_clear),
        cmocka_unit_test_teardown(no_more_is_read_than_may_be, scratch_clear),
        cmocka_unit_test(a_long_name_loses_its_front_and_never_the_reason),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

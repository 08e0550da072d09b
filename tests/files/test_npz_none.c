/* SPDX-License-Identifier: MIT */
/*
 * A library without libzip: archives are refused in a sentence, and everything else works
 *
 * This program brings npz_none.c itself, so that the linker takes its two functions and leaves npz_zip.c, and
 * with it libzip, in the archive: what -DPOSENC_ZIP=OFF builds.
 */
#include "files/arrays/npz_none.c"

#include "scratch.h"

static void an_npz_is_refused_in_a_sentence(void **state)
{
    static const int64_t shape[] = {2};
    posenc_arrays        set     = {0};
    posenc_error         err;
    (void)state;
    scratch_write("a.npz", "PK\3\4 and so on", 14);
    assert_int_equal(posenc_arrays_read(&set, scratch("a.npz"), &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a.npz: it is an .npz, which this build does not know"));
    assert_int_equal(set.count, 0);
    assert_non_null(posenc_arrays_add(&set, "x", POSENC_DTYPE_F32, 1, shape));
    assert_int_equal(posenc_arrays_write(&set, scratch("b.npz"), &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "-DPOSENC_ZIP=ON"));
    posenc_arrays_free(&set);
    assert_int_equal(scratch_count(), 1);
}

static void what_is_no_archive_is_read_and_written(void **state)
{
    static const char *const names[] = {"x.npy", "x.csv"};
    static const int64_t     shape[] = {2};
    posenc_error             err;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        posenc_arrays  set = {0}, back = {0};
        posenc_tensor *t       = posenc_arrays_add(&set, "x", POSENC_DTYPE_F64, 1, shape);
        ((double *)t->data)[1] = 0.1;
        assert_int_equal(posenc_arrays_write(&set, scratch(names[i]), &err), POSENC_OK);
        if (posenc_arrays_read(&back, scratch(names[i]), &err))
            fail_msg("%s", err.message);
        assert_float_equal(((double *)posenc_arrays_find(&back, "x")->data)[1], 0.1, 0);
        posenc_arrays_free(&set);
        posenc_arrays_free(&back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_npz_is_refused_in_a_sentence, scratch_clear),
        cmocka_unit_test_teardown(what_is_no_archive_is_read_and_written, scratch_clear),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

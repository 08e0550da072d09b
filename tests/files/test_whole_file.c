/* SPDX-License-Identifier: MIT */
/*
 * Whole or not at all: what a reader of the path sees at each moment, and what is left after a
 * failure
 *
 * A full disk is played by the limit on the size of a file (EFBIG instead of ENOSPC, at the same
 * places), and by /dev/full where there is one.
 */
#define _XOPEN_SOURCE 700 /* symlink and its like beside the C library */

#include <posenc/files.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "scratch.h"

static void holds(const char *name, const char *text)
{
    size_t n;
    char  *found = scratch_read(scratch(name), &n);
    assert_string_equal(found, text);
    free(found);
}

static posenc_whole_file opened(const char *path)
{
    posenc_whole_file file;
    posenc_error      err;
    if (posenc_whole_file_open(&file, path, &err))
        fail_msg("%s", err.message);
    return file;
}

static void a_new_file_appears_with_commit(void **state)
{
    posenc_whole_file file = opened(scratch("f"));
    (void)state;
    fputs("new", file.stream);
    fflush(file.stream);
    assert_int_not_equal(access(scratch("f"), F_OK), 0);
    assert_int_equal(posenc_whole_file_commit(&file, NULL), POSENC_OK);
    assert_null(file.stream);
    holds("f", "new");
    assert_int_equal(scratch_count(), 1);
}

static void an_old_file_stays_until_commit(void **state)
{
    (void)state;
    scratch_write("f", "old", 3);
    posenc_whole_file file = opened(scratch("f"));
    fputs("newer", file.stream);
    fflush(file.stream);
    holds("f", "old");
    assert_int_equal(posenc_whole_file_commit(&file, NULL), POSENC_OK);
    holds("f", "newer");
    assert_int_equal(scratch_count(), 1);
}

static void discard_leaves_everything_as_it_was(void **state)
{
    (void)state;
    scratch_write("f", "old", 3);
    posenc_whole_file file = opened(scratch("f"));
    fputs("newer", file.stream);
    posenc_whole_file_discard(&file);
    holds("f", "old");
    assert_int_equal(scratch_count(), 1);
}

static void two_writers_of_one_path_do_not_mix(void **state)
{
    posenc_whole_file a = opened(scratch("f")), b = opened(scratch("f"));
    (void)state;
    fputs("aaaa", a.stream);
    fputs("b", b.stream);
    assert_int_equal(posenc_whole_file_commit(&a, NULL), POSENC_OK);
    assert_int_equal(posenc_whole_file_commit(&b, NULL), POSENC_OK);
    holds("f", "b");
    assert_int_equal(scratch_count(), 1);
}

static void replacing_makes_of(mode_t old, mode_t kept)
{
    struct stat s;
    scratch_write("f", "old", 3);
    assert_int_equal(chmod(scratch("f"), old), 0);
    posenc_whole_file file = opened(scratch("f"));
    assert_int_equal(posenc_whole_file_commit(&file, NULL), POSENC_OK);
    assert_int_equal(stat(scratch("f"), &s), 0);
    assert_int_equal(s.st_mode & 07777, kept);
}

static void a_replaced_file_keeps_its_permissions(void **state)
{
    (void)state;
    replacing_makes_of(0640, 0640);
}

/* New content has not earned what old content was trusted with. */
static void set_user_id_does_not_survive(void **state)
{
    (void)state;
    replacing_makes_of(06755, 0755);
}

static void a_program_that_ends_at_once_leaves_no_temporary_file(void **state)
{
    (void)state;
    scratch_write("f", "old", 3);
    posenc_whole_file one = opened(scratch("f")), two = opened(scratch("g"));
    fputs("half", one.stream);
    posenc_whole_file_abandon();
    assert_int_equal(scratch_count(), 1);
    holds("f", "old");
    posenc_whole_file_discard(&one);
    posenc_whole_file_discard(&two);
}

static void a_link_stays_and_its_target_is_replaced(void **state)
{
    struct stat s;
    (void)state;
    scratch_write("target", "old", 3);
    assert_int_equal(symlink("target", scratch("link")), 0);
    posenc_whole_file file = opened(scratch("link"));
    fputs("new", file.stream);
    assert_int_equal(posenc_whole_file_commit(&file, NULL), POSENC_OK);
    assert_int_equal(lstat(scratch("link"), &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    holds("target", "new");
    assert_int_equal(symlink("nowhere", scratch("dangling")), 0); /* one to nowhere becomes the file */
    file = opened(scratch("dangling"));
    fputs("new", file.stream);
    assert_int_equal(posenc_whole_file_commit(&file, NULL), POSENC_OK);
    assert_int_equal(lstat(scratch("dangling"), &s), 0);
    assert_true(S_ISREG(s.st_mode));
    holds("dangling", "new");
}

static void refused(const char *path, const char *part)
{
    posenc_whole_file file;
    posenc_error      err;
    assert_int_equal(posenc_whole_file_open(&file, path, &err), POSENC_ERROR_FILE);
    assert_null(file.stream);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void a_place_where_no_file_can_be_is_refused(void **state)
{
    (void)state;
    refused(scratch_folder, "Is a directory");
    refused(scratch("no/such/folder"), "its folder does not exist");
    refused("", "cannot be written");
}

/* Until `limit` bytes a file may grow. */
static void limit_files(rlim_t limit)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void a_disk_that_is_full_at_the_last_moment_leaves_nothing(void **state)
{
    struct rlimit     old;
    posenc_error      err;
    posenc_whole_file file = opened(scratch("f"));
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(1000);
    for (int i = 0; i < 2000; i++)
        fputc('x', file.stream); /* less than a buffer: nothing fails before commit */
    assert_int_equal(posenc_whole_file_commit(&file, &err), POSENC_ERROR_FILE);
    limit_files(old.rlim_cur);
    assert_non_null(strstr(err.message, "File too large"));
    assert_int_equal(scratch_count(), 0);
}

static void a_disk_that_is_full_long_before_leaves_the_old_file(void **state)
{
    struct rlimit old;
    posenc_error  err;
    posenc_arrays set   = {0};
    const int64_t shape = 100000;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    scratch_write("a.npz", "old", 3);
    assert_non_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, 1, &shape));
    limit_files(1000);
    assert_int_equal(posenc_arrays_write(&set, scratch("a.npz"), &err), POSENC_ERROR_FILE);
    limit_files(old.rlim_cur);
    assert_non_null(strstr(err.message, "a.npz: it cannot be written: File too large"));
    holds("a.npz", "old");
    assert_int_equal(scratch_count(), 1);
    posenc_arrays_free(&set);
}

/* The write that failed is long past, and its reason with it: it is asked for again. */
static void why_a_stream_failed_some_time_ago_is_said(void **state)
{
    struct rlimit     old;
    posenc_error      err;
    posenc_whole_file file = opened(scratch("f"));
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit_files(1000);
    for (int i = 0; i < 100000; i++)
        fputc('x', file.stream);
    assert_true(ferror(file.stream));
    setvbuf(file.stream, NULL, _IONBF, 0); /* nothing is left to be flushed, which would fail anew */
    assert_int_equal(posenc_whole_file_commit(&file, &err), POSENC_ERROR_FILE);
    limit_files(old.rlim_cur);
    assert_non_null(strstr(err.message, "File too large"));
    assert_int_equal(scratch_count(), 0);
}

static void a_device_is_written_to_and_not_replaced(void **state)
{
    struct stat  s;
    posenc_error err;
    (void)state;
    if (stat("/dev/full", &s) || !S_ISCHR(s.st_mode))
        skip();
    posenc_whole_file file = opened("/dev/full");
    fputs("x", file.stream);
    assert_int_equal(posenc_whole_file_commit(&file, &err), POSENC_ERROR_FILE);
    assert_non_null(strstr(err.message, "/dev/full: it cannot be written: No space left on device"));
    assert_int_equal(stat("/dev/full", &s), 0);
    assert_true(S_ISCHR(s.st_mode));
}

/* Of a link to a pipe, as /dev/stdout may be, the system gives no name that could be opened. */
static void a_link_to_a_pipe_is_written_to(void **state)
{
    int          ends[2];
    char         path[40], got[4] = "";
    posenc_error err;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
    if (access(path, W_OK))
        skip();
    posenc_whole_file file = opened(path);
    fputs("x", file.stream);
    assert_int_equal(posenc_whole_file_commit(&file, &err), POSENC_OK);
    assert_int_equal(read(ends[0], got, sizeof got), 1);
    assert_string_equal(got, "x");
    close(ends[0]);
    close(ends[1]);
}

static void standard_output_is_flushed_and_stays_open(void **state)
{
    posenc_whole_file file = opened("-");
    (void)state;
    assert_ptr_equal(file.stream, stdout);
    assert_int_equal(posenc_whole_file_commit(&file, NULL), POSENC_OK);
    assert_true(fileno(stdout) >= 0 && !ferror(stdout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_new_file_appears_with_commit, scratch_clear),
        cmocka_unit_test_teardown(an_old_file_stays_until_commit, scratch_clear),
        cmocka_unit_test_teardown(discard_leaves_everything_as_it_was, scratch_clear),
        cmocka_unit_test_teardown(two_writers_of_one_path_do_not_mix, scratch_clear),
        cmocka_unit_test_teardown(a_replaced_file_keeps_its_permissions, scratch_clear),
        cmocka_unit_test_teardown(set_user_id_does_not_survive, scratch_clear),
        cmocka_unit_test_teardown(a_program_that_ends_at_once_leaves_no_temporary_file, scratch_clear),
        cmocka_unit_test_teardown(a_link_stays_and_its_target_is_replaced, scratch_clear),
        cmocka_unit_test(a_place_where_no_file_can_be_is_refused),
        cmocka_unit_test_teardown(a_disk_that_is_full_at_the_last_moment_leaves_nothing, scratch_clear),
        cmocka_unit_test_teardown(a_disk_that_is_full_long_before_leaves_the_old_file, scratch_clear),
        cmocka_unit_test_teardown(why_a_stream_failed_some_time_ago_is_said, scratch_clear),
        cmocka_unit_test(a_device_is_written_to_and_not_replaced),
        cmocka_unit_test(a_link_to_a_pipe_is_written_to),
        cmocka_unit_test(standard_output_is_flushed_and_stays_open),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

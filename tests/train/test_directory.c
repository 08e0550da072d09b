/* SPDX-License-Identifier: MIT */
/*
 * What a kill leaves of a result directory, at each moment of writing it, is swept up by the next comparison;
 * an older result is never lost, and nothing that is not ours is touched.
 */
#include "train/jobs/directory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/posenc-directory-XXXXXX";

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return chdir("/") || rmdir(folder);
}

static void write_file(const char *path, const char *text)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

static int exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static const char listed[] =
    "{\"format\": \"" PE_RESULTS_FORMAT "\", \"files\": [\"" PE_RESULTS_NAME "\", \"loss.svg\"]}";

/* The list is the first file: killed before it has its name, nothing says whose directory it is. */
static void the_first_file_half_written_is_swept(void **state)
{
    (void)state;
    mkdir("out.tmp.20985", 0777);
    write_file("out.tmp.20985/" PE_RESULTS_NAME ".tmp.20985", "");
    pe_directory_sweep("out");
    assert_false(exists("out.tmp.20985"));
}

static void a_later_file_half_written_is_swept(void **state)
{
    (void)state;
    mkdir("out.tmp.7", 0777);
    write_file("out.tmp.7/" PE_RESULTS_NAME, listed);
    write_file("out.tmp.7/loss.svg.tmp.7", "<svg");
    pe_directory_sweep("out");
    assert_false(exists("out.tmp.7"));
}

static void an_older_result_goes_back_where_no_newer_one_came(void **state)
{
    (void)state;
    mkdir("out.tmp.7", 0777);
    mkdir("out.tmp.7.old", 0777);
    write_file("out.tmp.7/" PE_RESULTS_NAME, listed);
    write_file("out.tmp.7.old/" PE_RESULTS_NAME, listed);
    write_file("out.tmp.7.old/loss.svg", "old");
    pe_directory_sweep("out");
    assert_true(exists("out/loss.svg"));
    assert_false(exists("out.tmp.7"));
    assert_false(exists("out.tmp.7.old"));
    mkdir("out.tmp.8.old", 0777);
    write_file("out.tmp.8.old/" PE_RESULTS_NAME, listed);
    pe_directory_sweep("out");
    assert_true(exists("out/loss.svg"));
    assert_false(exists("out.tmp.8.old"));
    unlink("out/loss.svg");
    unlink("out/" PE_RESULTS_NAME);
    rmdir("out");
}

static void what_is_not_ours_stays(void **state)
{
    static const char *const names[] = {"out.tmp.7", "out.tmp.", "out.tmp.7x", "out.tmp.7.older"};
    char                     path[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mkdir(names[i], 0777);
        snprintf(path, sizeof path, "%s/mine", names[i]);
        write_file(path, "mine");
        pe_directory_sweep("out");
        assert_true(exists(path));
        unlink(path);
        rmdir(names[i]);
    }
}

/* The first is no fault of who gave the name, and no other name need help: status 1 of the tool. */
static void what_the_file_system_fails_at_is_no_wrong_argument(void **state)
{
    posenc_error err;
    (void)state;
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(pe_directory_check("loop/out", &err), POSENC_ERROR_FILE);
    assert_non_null(strstr(err.message, strerror(ELOOP)));
    write_file("file", "");
    assert_int_equal(pe_directory_check("file", &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(pe_directory_check("missing/out", &err), POSENC_ERROR_ARGUMENT);
    unlink("file");
    unlink("loop");
}

/* Reading it to see whose directory that is would not end. */
static void a_pipe_in_the_place_of_the_list_is_not_waited_for(void **state)
{
    posenc_error err;
    (void)state;
    mkdir("out", 0777);
    assert_int_equal(mkfifo("out/" PE_RESULTS_NAME, 0600), 0);
    assert_int_equal(pe_directory_check("out", &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "which compare did not write"));
    unlink("out/" PE_RESULTS_NAME);
    rmdir("out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_file_half_written_is_swept),
        cmocka_unit_test(a_later_file_half_written_is_swept),
        cmocka_unit_test(an_older_result_goes_back_where_no_newer_one_came),
        cmocka_unit_test(what_is_not_ours_stays),
        cmocka_unit_test(what_the_file_system_fails_at_is_no_wrong_argument),
        cmocka_unit_test(a_pipe_in_the_place_of_the_list_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

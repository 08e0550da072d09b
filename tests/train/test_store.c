/* SPDX-License-Identifier: MIT */
/*
 * DIR.partial: lines are there whole or not at all, one process at a time writes them, and nothing that is
 * not ours is removed.
 */
#include "train/store.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/posenc-store-XXXXXX";

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

static pe_store *opened(void)
{
    pe_store    *s = pe_store_create("out");
    posenc_error err;
    assert_non_null(s);
    if (pe_store_open(s, &err))
        fail_msg("%s", err.message);
    return s;
}

static void write_file(const char *path, const char *text)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

/* The lines, joined by '|'. */
static posenc_status join(void *self, const char *line, int64_t number, posenc_error *err)
{
    char *text = self;
    (void)err;
    sprintf(text + strlen(text), "%d:%s|", (int)number, line);
    return POSENC_OK;
}

static void assert_lines(const char *want, int is_partial, int want_cut)
{
    char      text[4096] = "";
    int       cut;
    pe_store *s = pe_store_create("out/"); /* the same place */
    assert_int_equal(pe_store_lines(s, is_partial, join, text, &cut, NULL), POSENC_OK);
    assert_string_equal(text, want);
    assert_int_equal(cut, want_cut);
    pe_store_free(s);
}

static void lines_stay_and_the_directory_goes_when_it_is_told_to(void **state)
{
    (void)state;
    pe_store *s = opened();
    assert_string_equal(pe_store_path(s), "out.partial");
    assert_lines("", 1, 0);
    assert_int_equal(pe_store_append(s, "one", NULL), POSENC_OK);
    assert_int_equal(pe_store_append(s, "two", NULL), POSENC_OK);
    pe_store_free(s);
    assert_lines("1:one|2:two|", 1, 0);
    s = opened();
    assert_int_equal(pe_store_append(s, "three", NULL), POSENC_OK);
    assert_lines("1:one|2:two|3:three|", 1, 0);
    pe_store_remove(s);
    assert_int_equal(access("out.partial", F_OK), -1);
    pe_store_free(s);
}

/* Whatever a kill left behind the last line end. */
static void an_unfinished_line_is_not_read_and_cut_off(void **state)
{
    static const char *const left[] = {"", "{", "two", "a much longer line that did not end"};
    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char text[64];
        assert_int_equal(mkdir("out.partial", 0777), 0);
        snprintf(text, sizeof text, "one\n%s", left[i]);
        write_file("out.partial/runs.jsonl", text);
        assert_lines("1:one|", 1, *left[i] != 0);
        pe_store *s = opened();
        assert_int_equal(pe_store_append(s, "three", NULL), POSENC_OK);
        assert_lines("1:one|2:three|", 1, 0);
        pe_store_remove(s);
        pe_store_free(s);
    }
}

/* The end of the whole lines may lie far before the end of the file. */
static void long_unfinished_lines_are_cut_off_too(void **state)
{
    char *text = malloc(20001);
    (void)state;
    memset(text, 'x', 20000);
    text[20000] = 0;
    for (int before = 0; before < 2; before++) {
        if (before)
            text[9000] = '\n';
        assert_int_equal(mkdir("out.partial", 0777), 0);
        write_file("out.partial/runs.jsonl", text);
        pe_store   *s = opened();
        struct stat about;
        assert_int_equal(stat("out.partial/runs.jsonl", &about), 0);
        assert_int_equal(about.st_size, before ? 9001 : 0);
        pe_store_remove(s);
        pe_store_free(s);
    }
    free(text);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, bytes == RLIM_INFINITY ? SIG_DFL : SIG_IGN);
}

/* A size limit stops a write in its middle, as a full disk does. */
static void a_full_disk_takes_no_part_of_a_line(void **state)
{
    posenc_error err;
    char         much[400];
    (void)state;
    memset(much, 'y', sizeof much);
    much[sizeof much - 1] = 0;
    pe_store *s           = opened();
    assert_int_equal(pe_store_append(s, "one", NULL), POSENC_OK);
    limit_files(100);
    const posenc_status status = pe_store_append(s, much, &err);
    limit_files(RLIM_INFINITY);
    assert_int_equal(status, POSENC_FILE);
    assert_non_null(strstr(err.message, "--resume"));
    assert_lines("1:one|", 1, 0);
    assert_int_equal(pe_store_append(s, "two", NULL), POSENC_OK);
    assert_lines("1:one|2:two|", 1, 0);
    pe_store_remove(s);
    pe_store_free(s);
}

static void one_process_at_a_time_works_there(void **state)
{
    (void)state;
    pe_store   *s     = opened();
    const pid_t child = fork();
    if (child == 0) {
        pe_store    *mine = pe_store_create("out");
        posenc_error err  = {0};
        const int    same =
            pe_store_open(mine, &err) == POSENC_ARGUMENT && strstr(err.message, "another posenc compare");
        pe_store_free(mine);
        _exit(same ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    pe_store_free(s); /* as when it dies */
    s = opened();
    pe_store_remove(s);
    pe_store_free(s);
}

static posenc_status count(void *self, const char *name, posenc_error *err)
{
    (void)err;
    assert_string_equal(name, "0123456789abcdef");
    ++*(int *)self;
    return POSENC_OK;
}

static void checkpoints_are_found_by_name_and_strangers_are_left_alone(void **state)
{
    int found = 0;
    (void)state;
    pe_store *s = opened();
    write_file("out.partial/0123456789abcdef.npz", "");
    write_file("out.partial/0123456789abcdef.npz.tmp.77", "");
    write_file("out.partial/mine.npz", "");
    write_file("out.partial/0123456789abcdef.npz.mine", "");
    assert_int_equal(pe_store_checkpoints(s, count, &found, NULL), POSENC_OK);
    assert_int_equal(found, 1);
    pe_store_free(s);
    s = opened(); /* the next start removes what a kill in the middle of writing left */
    assert_int_equal(access("out.partial/0123456789abcdef.npz.tmp.77", F_OK), -1);
    assert_int_equal(access("out.partial/0123456789abcdef.npz", F_OK), 0);
    pe_store_forget(s, "0123456789abcdef");
    assert_int_equal(access("out.partial/0123456789abcdef.npz", F_OK), -1);
    write_file("out.partial/0123456789abcdef.npz", "");
    pe_store_remove(s);
    assert_int_equal(access("out.partial/0123456789abcdef.npz", F_OK), -1);
    assert_int_equal(unlink("out.partial/mine.npz") | unlink("out.partial/0123456789abcdef.npz.mine"), 0);
    assert_int_equal(rmdir("out.partial"), 0); /* nothing else was left */
    pe_store_free(s);
}

static void a_place_that_cannot_be_written_is_a_sentence(void **state)
{
    posenc_error err;
    pe_store    *s = pe_store_create("missing/out");
    (void)state;
    assert_int_equal(pe_store_open(s, &err), POSENC_FILE);
    assert_non_null(strstr(err.message, "missing/out.partial"));
    pe_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_stay_and_the_directory_goes_when_it_is_told_to),
        cmocka_unit_test(an_unfinished_line_is_not_read_and_cut_off),
        cmocka_unit_test(long_unfinished_lines_are_cut_off_too),
        cmocka_unit_test(a_full_disk_takes_no_part_of_a_line),
        cmocka_unit_test(one_process_at_a_time_works_there),
        cmocka_unit_test(checkpoints_are_found_by_name_and_strangers_are_left_alone),
        cmocka_unit_test(a_place_that_cannot_be_written_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/* SPDX-License-Identifier: MIT */
/*
 * DIR.partial: one process at a time works there, a run is there whole or not at all, and nothing that is not
 * ours is removed.
 */
#include "train/jobs/store.h"

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

#include "tiny_compare.h"
#include "train/jobs/directory.h"

static char folder[] = "/tmp/posenc-store-XXXXXX";

static int begin(void **state)
{
    (void)state;
    tiny_write_words();
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return chdir("/") || rmdir(folder);
}

static pe_compare *created(int resume)
{
    pe_compare_config config = tiny_compare("nope");
    pe_compare       *c;
    posenc_error      err;
    config.directory = "out/";
    config.resume    = resume;
    if (pe_compare_create(&c, &config, &err))
        fail_msg("%s", err.message);
    return c;
}

static pe_compare *opened(int resume)
{
    pe_compare  *c = created(resume);
    posenc_error err;
    if (pe_store_open(c, &err))
        fail_msg("%s", err.message);
    return c;
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

static void a_finished_run_stays_and_the_directory_goes_when_it_is_told_to(void **state)
{
    (void)state;
    pe_compare *c = created(0);
    int         interrupted;
    assert_int_equal(pe_compare_train(c, NULL, &interrupted, NULL), POSENC_OK);
    char *path = pe_store_file(c, 0);
    assert_true(exists(path));
    pe_compare_free(c);
    c = opened(1);
    assert_non_null(strstr(pe_compare_says(c).notes, "1 of 1 runs are finished already"));
    assert_true(exists(path));
    pe_store_remove(c->store);
    assert_false(exists("out.partial"));
    free(path);
    pe_compare_free(c);
}

/* A text without its end would be read beyond it. */
static void a_run_whose_text_has_no_end_is_trained_again(void **state)
{
    posenc_arrays set;
    (void)state;
    pe_compare *c = created(0);
    int         interrupted;
    assert_int_equal(pe_compare_train(c, NULL, &interrupted, NULL), POSENC_OK);
    char *path = pe_store_file(c, 0);
    pe_compare_free(c);
    assert_int_equal(posenc_arrays_read(&set, path, NULL), POSENC_OK);
    posenc_tensor *text = (posenc_tensor *)(uintptr_t)posenc_arrays_find(&set, "time.instructions");
    memset(text->data, 'x', (size_t)text->shape[0]);
    assert_int_equal(posenc_arrays_write(&set, path, NULL), POSENC_OK);
    posenc_arrays_free(&set);
    c = opened(1);
    assert_non_null(strstr(pe_compare_says(c).notes, "has no end; its run is trained again"));
    pe_store_remove(c->store);
    free(path);
    pe_compare_free(c);
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
static void a_full_disk_takes_no_part_of_a_run(void **state)
{
    posenc_error err;
    (void)state;
    pe_compare *c = created(0);
    int         interrupted;
    assert_int_equal(pe_compare_train(c, NULL, &interrupted, NULL), POSENC_OK);
    char *path = pe_store_file(c, 0);
    assert_int_equal(truncate(path, 10), 0);
    limit_files(100);
    const posenc_status status = pe_store_save(c, 0, &err);
    limit_files(RLIM_INFINITY);
    assert_int_equal(status, POSENC_ERROR_FILE);
    assert_non_null(strstr(err.message, "--resume"));
    FILE *from = fopen(path, "r");
    assert_int_equal(fseek(from, 0, SEEK_END) || ftell(from) != 10, 0); /* as it was */
    fclose(from);
    assert_int_equal(pe_store_save(c, 0, &err), POSENC_OK);
    pe_store_remove(c->store);
    assert_false(exists("out.partial"));
    free(path);
    pe_compare_free(c);
}

static void one_process_at_a_time_works_there(void **state)
{
    (void)state;
    pe_compare *mine  = created(0); /* both have looked before either works */
    pe_compare *c     = opened(0);
    const pid_t child = fork();
    if (child == 0) {
        posenc_error err  = {0};
        const int    same = pe_store_open(mine, &err) == POSENC_ERROR_ARGUMENT &&
                         strstr(err.message, "another posenc compare");
        _exit(same ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    pe_compare_free(mine);
    pe_compare_free(c); /* as when it dies */
    c = opened(0);
    pe_store_remove(c->store);
    pe_compare_free(c);
}

/* The sentence of a start that is refused before it has made anything. */
static void refused(int resume, const char *says)
{
    pe_compare_config config = tiny_compare("nope");
    pe_compare       *c      = NULL;
    posenc_error      err    = {0};
    config.directory         = "out/";
    config.resume            = resume;
    assert_int_equal(pe_compare_create(&c, &config, &err), POSENC_ERROR_ARGUMENT);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

static void who_comes_while_one_works_is_not_told_to_remove_anything(void **state)
{
    (void)state;
    pe_compare *c = opened(0);
    write_file("out.partial/0123456789abcdef.npz", "");
    const pid_t child = fork();
    if (child == 0) {
        for (int resume = 0; resume < 2; resume++) {
            pe_compare_config config = tiny_compare("nope");
            pe_compare       *mine;
            posenc_error      err = {0};
            config.directory      = "out";
            config.resume         = resume;
            if (!pe_compare_create(&mine, &config, &err) || !strstr(err.message, "another posenc compare") ||
                strstr(err.message, "remove"))
                _exit(1);
        }
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    unlink("out.partial/0123456789abcdef.npz");
    pe_store_remove(c->store);
    pe_compare_free(c);
}

static void a_link_is_not_followed(void **state)
{
    (void)state;
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    write_file("elsewhere/0123456789abcdef.npz", "precious");
    assert_int_equal(symlink("elsewhere", "out.partial"), 0);
    refused(0, "out.partial: it is a symbolic link");
    refused(1, "out.partial: it is a symbolic link");
    unlink("out.partial");

    assert_int_equal(mkdir("out.partial", 0700), 0);
    assert_int_equal(symlink("../elsewhere/0123456789abcdef.npz", "out.partial/0123456789abcdef.npz"), 0);
    refused(1, "0123456789abcdef.npz is a symbolic link");
    unlink("out.partial/0123456789abcdef.npz");
    assert_int_equal(mkfifo("out.partial/0123456789abcdef.npz", 0600), 0); /* reading it would not end */
    refused(1, "0123456789abcdef.npz is no regular file");
    unlink("out.partial/0123456789abcdef.npz");

    assert_int_equal(symlink("../elsewhere/lock", "out.partial/lock"), 0);
    refused(0, "lock is a symbolic link");
    refused(1, "lock is a symbolic link");
    assert_false(exists("elsewhere/lock"));
    unlink("out.partial/lock");
    assert_int_equal(rmdir("out.partial"), 0);

    assert_int_equal(symlink("elsewhere", "out.tmp.77"), 0);
    pe_compare *c = opened(0); /* sweeps what killed processes leave */
    pe_store_remove(c->store);
    pe_compare_free(c);
    assert_int_equal(unlink("out.tmp.77"), 0);
    assert_int_equal(unlink("elsewhere/0123456789abcdef.npz"), 0);
    assert_int_equal(rmdir("elsewhere"), 0);
}

/* A pipe in the place of an older result's runs, which --resume looks into. */
static void a_pipe_in_an_older_result_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(mkdir("out", 0700), 0);
    assert_int_equal(mkfifo("out/runs.npz", 0600), 0);
    write_file("out/results.json",
               "{\"format\":\"" PE_RESULTS_FORMAT "\",\"files\":[\"results.json\",\"runs.npz\"]}");
    refused(1, "runs.npz is no regular file");
    unlink("out/runs.npz");
    unlink("out/results.json");
    assert_int_equal(rmdir("out"), 0);
}

static void strangers_are_left_alone_and_what_is_half_written_goes(void **state)
{
    static const char *const strangers[] = {"out.partial/mine.npz", "out.partial/0123456789abcdef.npz.mine",
                                            "out.partial/0123456789abcdeg.npz"};
    (void)state;
    pe_compare *c = opened(0);
    write_file("out.partial/0123456789abcdef.npz", "");
    write_file("out.partial/0123456789abcdef.npz.tmp.77", "");
    for (int i = 0; i < 3; i++)
        write_file(strangers[i], "");
    pe_compare_free(c);
    c = created(1); /* the next start notes what is damaged, and removes it when it begins to write */
    assert_non_null(strstr(pe_compare_says(c).notes, "0123456789abcdef.npz is damaged and is ignored"));
    assert_true(exists("out.partial/0123456789abcdef.npz"));
    assert_int_equal(pe_store_open(c, NULL), POSENC_OK);
    assert_false(exists("out.partial/0123456789abcdef.npz.tmp.77"));
    assert_false(exists("out.partial/0123456789abcdef.npz"));
    pe_store_remove(c->store);
    for (int i = 0; i < 3; i++)
        assert_int_equal(unlink(strangers[i]), 0);
    assert_int_equal(rmdir("out.partial"), 0); /* nothing else was left */
    pe_compare_free(c);
}

static void a_place_that_cannot_be_written_is_a_sentence(void **state)
{
    posenc_error err;
    (void)state;
    pe_compare *c = created(0);
    write_file("out.partial", "");
    assert_int_equal(pe_store_open(c, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "out.partial"));
    unlink("out.partial");
    pe_compare_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finished_run_stays_and_the_directory_goes_when_it_is_told_to),
        cmocka_unit_test(a_run_whose_text_has_no_end_is_trained_again),
        cmocka_unit_test(a_full_disk_takes_no_part_of_a_run),
        cmocka_unit_test(one_process_at_a_time_works_there),
        cmocka_unit_test(who_comes_while_one_works_is_not_told_to_remove_anything),
        cmocka_unit_test(a_link_is_not_followed),
        cmocka_unit_test(a_pipe_in_an_older_result_is_not_waited_for),
        cmocka_unit_test(strangers_are_left_alone_and_what_is_half_written_goes),
        cmocka_unit_test(a_place_that_cannot_be_written_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

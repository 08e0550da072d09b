/* SPDX-License-Identifier: MIT */
/*
 * A run that is stopped after every single unit of its work goes on to the same bits; a checkpoint that is
 * damaged or another run's is never taken, and a disk that is full leaves the one before.
 */
#include "train/run/run.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tiny_run.h"

static char       folder[] = "/tmp/posenc-checkpoint-XXXXXX";
static const char path[]   = "run.npz";

static int begin(void **state)
{
    tiny_run_write_text(state);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return unlink(path) | chdir("/") | rmdir(folder);
}

/* ---------------------------------------------------------------- going on ------------------ */

/* One unit of work per call; how many calls it took. */
static int64_t run_in_pieces(pe_run_config config, pe_run_result *result)
{
    int64_t       calls  = 0;
    posenc_status status = POSENC_ERROR_UNSUPPORTED;
    unlink(path);
    config.checkpoint         = path;
    config.checkpoint_seconds = 1e9; /* only because it is told to stop */
    while (status == POSENC_ERROR_UNSUPPORTED) {
        pe_run_progress progress = {.cancel = 1};
        posenc_error    err;
        status = pe_run(&config, &progress, result, &err);
        if (status && !result->cancelled)
            fail_msg("%s", err.message);
        calls++;
        assert_true(atomic_load(&progress.step) >= calls - 1);
        if (status)
            pe_run_result_free(result);
    }
    return calls;
}

static void assert_pieces_equal_the_whole(const pe_run_config *config)
{
    pe_run_result whole, pieces;
    assert_int_equal(pe_run(config, NULL, &whole, NULL), POSENC_OK);
    const int64_t calls = run_in_pieces(*config, &pieces);
    /* every unit once, and a last call that finds nothing left */
    assert_int_equal(calls, whole.diverged ? calls : pe_run_work(config) + 1);
    tiny_assert_same(&whole, &pieces);
    pe_run_result_free(&whole);
    pe_run_result_free(&pieces);
}

static void a_run_in_pieces_has_the_bits_of_the_whole(void **state)
{
    static const char *const specs[] = {"nope", "learned[rows=128:sigma=0.5]", "rope",
                                        "transformer_xl[sigma=0.3]"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const pe_run_config config = tiny_run(specs[i]);
        assert_pieces_equal_the_whole(&config);
    }
}

static void so_has_a_bidirectional_one_at_each_of_its_lengths(void **state)
{
    pe_run_config config = tiny_run("sinusoidal");
    (void)state;
    config.bidirectional = 1;
    config.entry.combine = PE_CONCAT;
    assert_pieces_equal_the_whole(&config);
}

static void so_has_one_that_diverges(void **state)
{
    pe_run_config config = tiny_run("alibi");
    (void)state;
    config.learning_rate = config.weight_decay = 1000;
    assert_pieces_equal_the_whole(&config);
}

static void checkpoints_come_at_intervals_and_change_nothing(void **state)
{
    pe_run_config config = tiny_run("alibi");
    pe_run_result plain, kept;
    (void)state;
    assert_int_equal(pe_run(&config, NULL, &plain, NULL), POSENC_OK);
    unlink(path);
    config.checkpoint         = path;
    config.checkpoint_seconds = 3600;
    assert_int_equal(pe_run(&config, NULL, &kept, NULL), POSENC_OK);
    assert_int_equal(access(path, F_OK), -1); /* over before it was time */
    pe_run_result_free(&kept);
    config.checkpoint_seconds = 0;
    assert_int_equal(pe_run(&config, NULL, &kept, NULL), POSENC_OK);
    assert_int_equal(access(path, F_OK), 0);
    tiny_assert_same(&plain, &kept);
    pe_run_result_free(&plain);
    pe_run_result_free(&kept);
}

/* ---------------------------------------------------------------- refusals ------------------ */

static void write_checkpoint(const pe_run_config *config, int units)
{
    pe_run_config c = *config;
    unlink(path);
    c.checkpoint = path;
    for (int i = 0; i < units; i++) {
        pe_run_progress progress = {.cancel = 1};
        pe_run_result   result;
        assert_int_equal(pe_run(&c, &progress, &result, NULL), POSENC_ERROR_UNSUPPORTED);
        pe_run_result_free(&result);
    }
}

static posenc_status status_of_going_on(const pe_run_config *config, posenc_error *err)
{
    pe_run_config c = *config;
    pe_run_result result;
    c.checkpoint               = path;
    c.checkpoint_seconds       = 1e9;
    const posenc_status status = pe_run(&c, NULL, &result, err);
    if (status)
        assert_true(!result.train_loss || isnan(result.train_loss[TINY_STEPS - 1])); /* nothing was trained */
    pe_run_result_free(&result);
    return status;
}

static void a_checkpoint_of_another_run_is_refused(void **state)
{
    const pe_run_config mine = tiny_run("alibi");
    pe_run_config       other;
    posenc_error        err;
    (void)state;
    write_checkpoint(&mine, 3);
#define REFUSED(member, value)                                                 \
    other = mine, other.member = (value);                                      \
    assert_int_equal(status_of_going_on(&other, &err), POSENC_ERROR_ARGUMENT); \
    assert_non_null(strstr(err.message, "another run"))
    REFUSED(seed, 2);
    REFUSED(steps, 13);
    REFUSED(learning_rate, 1e-3);
    REFUSED(spec, "nope");
#undef REFUSED
    assert_int_equal(status_of_going_on(&mine, &err), POSENC_OK);
}

static char *read_all(size_t *n)
{
    FILE       *from = fopen(path, "rb");
    struct stat about;
    assert_non_null(from);
    assert_int_equal(fstat(fileno(from), &about), 0);
    *n         = (size_t)about.st_size;
    char *data = malloc(*n);
    assert_int_equal(fread(data, 1, *n, from), *n);
    fclose(from);
    return data;
}

static void write_all(const char *data, size_t n)
{
    FILE *to = fopen(path, "wb");
    assert_int_equal(fwrite(data, 1, n, to), n);
    fclose(to);
}

static void a_checkpoint_that_was_cut_short_or_changed_is_refused(void **state)
{
    const pe_run_config config = tiny_run("alibi");
    posenc_error        err;
    size_t              n;
    (void)state;
    write_checkpoint(&config, 3);
    char *data = read_all(&n);
    for (size_t cut = 0; cut < n; cut += 1 + n / 23) {
        write_all(data, cut);
        assert_int_equal(status_of_going_on(&config, &err), POSENC_ERROR_FORMAT);
        assert_non_null(strstr(err.message, path));
    }
    for (size_t at = 300; at < n; at += 1 + n / 23) { /* inside the arrays, which make up nearly all of it */
        data[at] ^= 0x40;
        write_all(data, n);
        assert_true(status_of_going_on(&config, &err) != POSENC_OK);
        data[at] ^= 0x40;
    }
    write_all(data, n);
    assert_int_equal(status_of_going_on(&config, &err), POSENC_OK);
    free(data);
}

/* Whose marks are no numbers of this run's parts, though everything else is right. */
static void a_checkpoint_that_goes_on_nowhere_is_refused(void **state)
{
    static const int64_t wrong[] = {-1, INT64_MIN, 1000000, INT64_MAX};
    const pe_run_config  config  = tiny_run("alibi");
    posenc_error         err;
    (void)state;
    write_checkpoint(&config, 3);
    for (int mark = 0; mark < 5; mark++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            posenc_arrays set;
            assert_int_equal(posenc_arrays_read(&set, path, &err), POSENC_OK);
            int64_t      *marks = posenc_arrays_find(&set, "marks")->data;
            const int64_t right = marks[mark];
            marks[mark]         = wrong[i];
            assert_int_equal(posenc_arrays_write(&set, path, &err), POSENC_OK);
            assert_int_equal(status_of_going_on(&config, &err), POSENC_ERROR_FORMAT);
            assert_non_null(strstr(err.message, "marks"));
            marks[mark] = right;
            assert_int_equal(posenc_arrays_write(&set, path, &err), POSENC_OK);
            posenc_arrays_free(&set);
        }
    assert_int_equal(status_of_going_on(&config, &err), POSENC_OK);
}

/* A size limit for files refuses a write as a full disk does. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, bytes == RLIM_INFINITY ? SIG_DFL : SIG_IGN);
}

static void a_full_disk_leaves_the_checkpoint_before(void **state)
{
    pe_run_config config = tiny_run("alibi");
    pe_run_result whole, rest;
    posenc_error  err;
    size_t        n, again;
    (void)state;
    assert_int_equal(pe_run(&config, NULL, &whole, NULL), POSENC_OK);
    write_checkpoint(&config, 5);
    char *before      = read_all(&n);
    config.checkpoint = path;
    limit_files((rlim_t)n / 2);
    const posenc_status status = pe_run(&config, NULL, &rest, &err);
    limit_files(RLIM_INFINITY);
    assert_int_equal(status, POSENC_ERROR_FILE);
    assert_non_null(strstr(err.message, "--resume"));
    pe_run_result_free(&rest);
    char *after = read_all(&again);
    assert_int_equal(n, again);
    assert_memory_equal(before, after, n);
    assert_int_equal(pe_run(&config, NULL, &rest, &err), POSENC_OK);
    tiny_assert_same(&whole, &rest);
    free(before);
    free(after);
    pe_run_result_free(&whole);
    pe_run_result_free(&rest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_in_pieces_has_the_bits_of_the_whole),
        cmocka_unit_test(so_has_a_bidirectional_one_at_each_of_its_lengths),
        cmocka_unit_test(so_has_one_that_diverges),
        cmocka_unit_test(checkpoints_come_at_intervals_and_change_nothing),
        cmocka_unit_test(a_checkpoint_of_another_run_is_refused),
        cmocka_unit_test(a_checkpoint_that_was_cut_short_or_changed_is_refused),
        cmocka_unit_test(a_checkpoint_that_goes_on_nowhere_is_refused),
        cmocka_unit_test(a_full_disk_leaves_the_checkpoint_before),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

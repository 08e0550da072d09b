/* SPDX-License-Identifier: MIT */
/*
 * Whole comparisons that are killed, interrupted, damaged and gone on with: they end with the numbers of one
 * that was left in peace, to the bit. Each runs in a process of its own, as killing needs one.
 */
#include "train/jobs/outcome.h"
#include "train/jobs/store.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tiny_compare.h"

#define ENCODINGS "nope,learned,rope,alibi"

/* Long enough that the watcher, who wakes ten times a second, comes in between. */
enum { STEPS = 100 };
enum { MOST_STARTS = 100, MANY_KILLS = 30, SENTENCE = 2048, PATIENCE = 900 };

static char  folder[] = "/tmp/posenc-resume-XXXXXX";
static char *peace; /* the runs of a comparison that was left in peace, without times, sorted */

static pe_compare_config config_of(const char *directory, int resume)
{
    pe_compare_config config  = tiny_compare(ENCODINGS);
    config.directory          = directory;
    config.resume             = resume;
    config.workers            = 2;
    config.checkpoint_seconds = 0;
    config.preset.steps       = STEPS;
    return config;
}

static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}

static void remove_all(void)
{
    remove_folder("out");
    remove_folder("out.partial");
}

/* ---------------------------------------------------------------- a process of its own ------ */

static int ended; /* runs that ended before somebody interrupts */

static int is_interrupted(void *self)
{
    return ended >= *(int *)self;
}

static void count_ended(void *self, const pe_compare_run *run, const pe_compare_state *state)
{
    (void)self;
    (void)run;
    (void)state;
    ended++;
}

static void say(int to, const char *text)
{
    if (text && write(to, text, strlen(text)) < 0)
        _exit(9);
}

/* Trains and writes; ends with the status that the tool would have, its notes or its error in the pipe. */
static void compare_and_exit(const pe_compare_config *config, int patience, int to)
{
    posenc_error           err = {0};
    pe_compare            *c;
    int                    interrupted = 0;
    const pe_compare_watch watch       = {&patience, is_interrupted, NULL, count_ended};
    posenc_status          status      = pe_compare_create(&c, config, &err);
    if (!status) {
        say(to, pe_compare_says(c).notes);
        status = pe_compare_train(c, &watch, &interrupted, &err);
        if (!status && !interrupted)
            status = pe_results_write(c, &err);
        pe_compare_free(c);
    }
    if (status)
        say(to, err.message);
    _exit(interrupted ? 130 : (int)status);
}

typedef struct child {
    pid_t id;
    int   words;
} child;

/* Gnuplot has the pipe too: one that outlived the process that draws with it would keep finish() waiting, for
   which there is an alarm. */
static child start(const pe_compare_config *config, int patience)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const pid_t id = fork();
    if (id == 0) {
        close(pipes[0]);
        compare_and_exit(config, patience, pipes[1]);
    }
    close(pipes[1]);
    return (child){id, pipes[0]};
}

/* Its exit status, or 256 if it was killed; what it said. */
static int finish(child c, char words[SENTENCE])
{
    int     how;
    size_t  used = 0;
    ssize_t n;
    while ((n = read(c.words, words + used, SENTENCE - 1 - used)) > 0)
        used += (size_t)n;
    words[used] = 0;
    close(c.words);
    assert_int_equal(waitpid(c.id, &how, 0), c.id);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 256;
}

static int compare(const pe_compare_config *config, int patience, char words[SENTENCE])
{
    return finish(start(config, patience), words);
}

/* ---------------------------------------------------------------- numbers ------------------- */

enum { MOST_LINES = 1024, LINE = 64 };

typedef struct lines {
    char text[MOST_LINES][LINE];
    int  count;
} lines;

/* A line for every array of finished runs, but for the times: its name, and a fingerprint of its numbers. */
static void add_lines(lines *all, const char *path, const char *prefix)
{
    posenc_arrays set = {0};
    int           is_finished;
    char         *identity = NULL;
    assert_int_equal(posenc_arrays_read(&set, path, NULL), POSENC_OK);
    if (*prefix)
        identity = pe_run_file_identity(&set, "", &is_finished);
    for (int i = 0; i < set.count && (!*prefix || is_finished); i++) {
        const posenc_array *a = &set.items[i];
        assert_true(all->count < MOST_LINES);
        if (!strstr(a->name, "time."))
            snprintf(all->text[all->count++], LINE, "%s%s %016llx", prefix, a->name,
                     (unsigned long long)pe_run_fingerprint(a->tensor.data, pe_run_file_bytes(a)));
    }
    free(identity);
    posenc_arrays_free(&set);
}

static int ascending_lines(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Those of a result, or of the finished runs in out.partial; sorted and joined. */
static char *numbers_of(const char *directory)
{
    static lines all;
    char         path[300], prefix[32];
    all.count = 0;
    snprintf(path, sizeof path, "%s/" PE_RUNS_NAME, directory);
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    if (access(path, F_OK) == 0)
        add_lines(&all, path, "");
    else
        for (const struct dirent *entry; (entry = readdir(dir));)
            if (strlen(entry->d_name) == 20 && !strcmp(entry->d_name + 16, ".npz")) {
                snprintf(path, sizeof path, "%s/%.20s", directory, entry->d_name);
                snprintf(prefix, sizeof prefix, "%.16s/", entry->d_name);
                add_lines(&all, path, prefix);
            }
    closedir(dir);
    qsort(all.text, (size_t)all.count, sizeof *all.text, ascending_lines);
    char *joined = calloc((size_t)all.count + 1, LINE + 1);
    for (int i = 0; i < all.count; i++)
        strcat(strcat(joined, all.text[i]), "\n");
    return joined;
}

static void assert_as_in_peace(const char *directory)
{
    char *found = numbers_of(directory);
    assert_true(strlen(found) > 1000);
    if (strcmp(found, peace)) /* too long to print */
        fail_msg("%s has other numbers than the comparison that was left in peace", directory);
    free(found);
    assert_int_equal(access("out.partial", F_OK), -1);
}

/* How many entries the folder has that are not ours to keep. */
static int count_strangers(void)
{
    int  count = 0;
    DIR *dir   = opendir(".");
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.' && strcmp(entry->d_name, "out") && strcmp(entry->d_name, "peace");
    if (dir)
        closedir(dir);
    return count;
}

static int begin(void **state)
{
    char words[SENTENCE];
    (void)state;
    alarm(PATIENCE);
    tiny_write_words();
    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    const pe_compare_config config = config_of("peace", 0);
    if (compare(&config, 99, words))
        fail_msg("%s", words);
    peace = numbers_of("peace");
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(peace);
    remove_folder("peace");
    return chdir("/") || rmdir(folder);
}

/* ---------------------------------------------------------------- kills --------------------- */

static void wait_milliseconds(long n)
{
    const struct timespec t = {n / 1000, n % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Milliseconds until kill number i: at first wherever it falls, then later and later, as the pictures at the
   end are drawn in one go and a busy machine takes long for them. */
static long patience_of(int i)
{
    const long once = 5 + 37 * i % 200;
    return i < MANY_KILLS ? once : once << ((i - MANY_KILLS) / 2 < 12 ? (i - MANY_KILLS) / 2 : 12);
}

/* Checkpoints after every step, so most of the time is spent in writing them: that is where most kills
   fall. */
static void kills_at_any_moment_change_no_bit(void **state)
{
    const pe_compare_config config = config_of("out", 1);
    int                     status = 256, kills = 0;
    char                    words[SENTENCE];
    (void)state;
    for (int i = 0; status == 256; i++) {
        assert_true(i < MOST_STARTS);
        const child c = start(&config, 99);
        wait_milliseconds(patience_of(i));
        kill(c.id, SIGKILL);
        status = finish(c, words);
        kills += status == 256;
    }
    if (status)
        fail_msg("after %d kills: %s", kills, words);
    assert_true(kills >= 3);
    assert_as_in_peace("out");
    assert_int_equal(count_strangers(), 0); /* nor is anything left of results that were being written */
    remove_all();
}

static void an_interruption_is_gone_on_with(void **state)
{
    pe_compare_config config        = config_of("out", 1);
    int               interruptions = 0;
    char              words[SENTENCE];
    (void)state;
    config.workers = 1;
    while (compare(&config, 1, words) == 130) /* after one more run each time */
        assert_true(++interruptions < 5);
    assert_true(interruptions >= 1);
    assert_non_null(strstr(words, "of 4 runs are finished already"));
    assert_as_in_peace("out");
    remove_all();
}

/* ---------------------------------------------------------------- what is kept -------------- */

static off_t size_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_size;
}

/* The first file of out.partial that keeps a run, finished or begun; an empty path if there is none. */
static void find_run(char path[300], int wants_finished)
{
    DIR *dir = opendir("out.partial");
    path[0]  = 0;
    for (const struct dirent *entry; dir && !path[0] && (entry = readdir(dir));) {
        posenc_arrays set = {0};
        int           is_finished;
        char          found[300];
        snprintf(found, sizeof found, "out.partial/%.200s", entry->d_name);
        if (!strstr(found, ".npz") || posenc_arrays_read(&set, found, NULL))
            continue;
        free(pe_run_file_identity(&set, "", &is_finished));
        if (is_finished == wants_finished)
            strcpy(path, found);
        posenc_arrays_free(&set);
    }
    if (dir)
        closedir(dir);
}

/* Leaves out.partial with one run finished at least, and others begun. */
static void leave_something(void)
{
    pe_compare_config config = config_of("out", 0);
    int               tries  = 0;
    char              words[SENTENCE], path[300];
    config.workers = 1;
    do {
        remove_all();
        assert_true(tries++ < 5);
    } while (compare(&config, 1, words) != 130 || (find_run(path, 1), !path[0]));
}

static void expect(const pe_compare_config *config, int status, const char *word)
{
    char words[SENTENCE];
    assert_int_equal(compare(config, 99, words), status);
    if (!strstr(words, word))
        fail_msg("\"%s\" does not say \"%s\"", words, word);
}

static void without_resume_nothing_is_thrown_away(void **state)
{
    const pe_compare_config config = config_of("out", 0);
    (void)state;
    leave_something();
    char *before = numbers_of("out.partial");
    expect(&config, POSENC_ERROR_ARGUMENT, "--resume");
    char *after = numbers_of("out.partial");
    assert_string_equal(before, after);
    free(before);
    free(after);
    const pe_compare_config again = config_of("out", 1);
    expect(&again, POSENC_OK, "finished already");
    assert_as_in_peace("out");
    remove_all();
}

static void another_comparison_is_refused_and_what_is_kept_stays(void **state)
{
    static unsigned char other[TINY_BYTES];
    pe_compare_config    config = config_of("out", 1);
    (void)state;
    leave_something();
    config.preset.steps = STEPS + 1;
    expect(&config, POSENC_ERROR_ARGUMENT, "steps is 100 there and 101 here");
    config = config_of("out", 1);
    memcpy(other, tiny_bytes, sizeof other);
    other[TINY_BYTES / 2] ^= 1;
    config.text = other;
    expect(&config, POSENC_ERROR_ARGUMENT, "the text is another");
    config                  = config_of("out", 1);
    config.preset.encodings = "t5";
    expect(&config, POSENC_ERROR_ARGUMENT, "an encoding, task or seed not asked for");
    config = config_of("out", 1);
    expect(&config, POSENC_OK, "finished already");
    assert_as_in_peace("out");
    remove_all();
}

/* As a kill in the middle of writing cannot leave it; a finished run (1) or a checkpoint (0). */
static void cut_short(int finished)
{
    const pe_compare_config config = config_of("out", 1);
    char                    path[300];
    for (int part = 0; part < 3; part++) {
        do
            leave_something();
        while (find_run(path, finished), !path[0]);
        assert_int_equal(truncate(path, part * size_of(path) / 3), 0);
        expect(&config, POSENC_OK, "is damaged and is ignored");
        assert_as_in_peace("out");
    }
    remove_all();
}

static void a_checkpoint_cut_short_is_left_aside_with_a_sentence(void **state)
{
    (void)state;
    cut_short(0);
}

static void a_finished_run_cut_short_is_left_aside_with_a_sentence(void **state)
{
    (void)state;
    cut_short(1);
}

static void a_run_that_was_changed_is_left_aside_with_a_sentence(void **state)
{
    const pe_compare_config config = config_of("out", 1);
    char                    path[300];
    (void)state;
    leave_something();
    find_run(path, 1);
    FILE *file = fopen(path, "r+");
    assert_int_equal(fseek(file, 3000, SEEK_SET), 0);
    const int was = fgetc(file);
    assert_int_equal(fseek(file, 3000, SEEK_SET), 0);
    fputc(was ^ 1, file);
    fclose(file);
    expect(&config, POSENC_OK, "is damaged and is ignored");
    assert_as_in_peace("out");
    remove_all();
}

/* ---------------------------------------------------------------- growing ------------------- */

static void a_result_grows_by_seeds_and_encodings(void **state)
{
    pe_compare_config config = config_of("out", 0);
    char              words[SENTENCE];
    (void)state;
    config.preset.encodings = "nope,rope";
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    config = config_of("out", 1);
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    assert_non_null(strstr(words, "2 of 4 runs are finished already"));
    assert_as_in_peace("out");
    config.preset.seeds = 2;
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    assert_non_null(strstr(words, "4 of 8 runs are finished already"));
    config.preset.seeds = 1; /* a result is replaced, and may shrink */
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    assert_non_null(strstr(words, "4 of 4 runs are finished already"));
    assert_as_in_peace("out");
    remove_all();
}

/* ---------------------------------------------------------------- learning rates ------------ */

/* Four trials, then two runs at the rates that they decide, then two of a quarter of the steps. */
static pe_compare_config rates_of(const char *directory, int resume)
{
    pe_compare_config config = config_of(directory, resume);
    config.preset.encodings  = "nope,rope";
    config.preset.rates      = "1e-4,4e-3";
    config.preset.rate_share = 0.5;
    config.preset.stability  = "brief";
    return config;
}

/* Does the file hold a finished trial? */
static int is_trial(const char *path)
{
    posenc_arrays set = {0};
    int           is_finished;
    if (posenc_arrays_read(&set, path, NULL))
        return 0;
    char     *identity = pe_run_file_identity(&set, "", &is_finished);
    const int found    = is_finished && strstr(identity, "trial") != NULL;
    free(identity);
    posenc_arrays_free(&set);
    return found;
}

static void damage_a_trial(void)
{
    char path[300] = "";
    DIR *dir       = opendir("out.partial");
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "out.partial/%.200s", entry->d_name);
        if (strstr(path, ".npz") && is_trial(path))
            break;
    }
    if (dir)
        closedir(dir);
    assert_true(is_trial(path));
    assert_int_equal(truncate(path, size_of(path) / 2), 0);
}

static void assert_numbers(const char *all)
{
    char *found = numbers_of("out");
    assert_string_equal(found, all);
    free(found);
    remove_all();
}

/* Trials are the level of a quarter here: it is complete before the comparison is. */
static void an_interruption_after_all_trials_has_its_result(void **state)
{
    pe_compare_config config        = rates_of("out", 1);
    int               interruptions = 0, status;
    char              words[SENTENCE];
    (void)state;
    config.preset.rate_share = 0.25;
    config.workers           = 1;
    while ((status = compare(&config, 1, words)) == 130)
        assert_true(++interruptions < 9);
    assert_int_equal(status, POSENC_OK);
    assert_true(interruptions >= 3);
    remove_all();
}

static void a_choice_of_rates_is_gone_on_with(void **state)
{
    pe_compare_config config        = rates_of("out", 0);
    int               interruptions = 0;
    char              words[SENTENCE], *all;
    (void)state;
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    all = numbers_of("out");
    remove_all();
    config         = rates_of("out", 1);
    config.workers = 1;
    while (compare(&config, 1, words) == 130) /* within the trials, between, and after them */
        assert_true(++interruptions < 9);
    assert_true(interruptions >= 3);
    assert_non_null(strstr(words, "of 8 runs are finished already"));
    assert_numbers(all);
    free(all);
}

/* What was trained at the rates that it decided waits until it has ended again. */
static void a_damaged_trial_is_trained_again(void **state)
{
    pe_compare_config config = rates_of("out", 0);
    char              words[SENTENCE], *all;
    (void)state;
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    all = numbers_of("out");
    remove_all();
    config.workers = 1;
    assert_int_equal(compare(&config, 6, words), 130);
    damage_a_trial();
    config = rates_of("out", 1);
    expect(&config, POSENC_OK, "is damaged and is ignored");
    assert_numbers(all);
    free(all);
}

static void another_choice_of_rates_is_refused(void **state)
{
    pe_compare_config config = rates_of("out", 0);
    char              words[SENTENCE];
    (void)state;
    config.workers = 1;
    assert_int_equal(compare(&config, 2, words), 130);
    config              = rates_of("out", 1);
    config.preset.rates = "2e-4,8e-3";
    expect(&config, POSENC_ERROR_ARGUMENT, "learning_rate is 0.0");
    config              = rates_of("out", 1);
    config.preset.steps = STEPS + 2;
    expect(&config, POSENC_ERROR_ARGUMENT, "steps is 50 there and 51 here");
    remove_all();
}

/* ---------------------------------------------------------------- tasks --------------------- */

/* Two SPECs are one and the same where the longest sequence of training is that of copy. */
static pe_compare_config tasks_of(const char *directory, int resume)
{
    pe_compare_config config  = config_of(directory, resume);
    config.preset.encodings   = "nope,rope,shaw,shaw[max_relative=16]";
    config.preset.steps       = 5;
    config.preset.task_layers = 1;
    config.preset.task_batch  = 8;
    config.preset.sequences   = 6;
    config.preset.longest     = PE_TASK_4;
    config.tasks              = "posid,copy";
    config.task_steps         = 3 * STEPS;
    config.workers            = 1;
    return config;
}

/* 4 runs on the text and 8 on tasks. */
static void runs_on_tasks_are_taken_over_too(void **state)
{
    pe_compare_config config = tasks_of("out", 0);
    char              words[SENTENCE], *all;
    (void)state;
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    all = numbers_of("out");
    remove_all();
    config = tasks_of("out", 0);
    compare(&config, 9, words);
    char path[300];
    find_run(path, 1);
    assert_true(path[0]);
    config            = tasks_of("out", 1);
    config.task_steps = 3 * STEPS + 1;
    expect(&config, POSENC_ERROR_ARGUMENT, "steps is 300 there and 301 here");
    config       = tasks_of("out", 1);
    config.tasks = "posid";
    expect(&config, POSENC_ERROR_ARGUMENT, "an encoding, task or seed not asked for");
    config = tasks_of("out", 1);
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    assert_non_null(strstr(words, "of 12 runs are finished already"));
    char *found = numbers_of("out");
    assert_string_equal(found, all);
    free(found);
    config = tasks_of("out", 1);
    assert_int_equal(compare(&config, 99, words), POSENC_OK);
    assert_non_null(strstr(words, "12 of 12 runs are finished already"));
    found = numbers_of("out");
    assert_string_equal(found, all);
    free(found);
    free(all);
    remove_all();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_at_any_moment_change_no_bit),
        cmocka_unit_test(an_interruption_is_gone_on_with),
        cmocka_unit_test(without_resume_nothing_is_thrown_away),
        cmocka_unit_test(another_comparison_is_refused_and_what_is_kept_stays),
        cmocka_unit_test(a_checkpoint_cut_short_is_left_aside_with_a_sentence),
        cmocka_unit_test(a_finished_run_cut_short_is_left_aside_with_a_sentence),
        cmocka_unit_test(a_run_that_was_changed_is_left_aside_with_a_sentence),
        cmocka_unit_test(a_result_grows_by_seeds_and_encodings),
        cmocka_unit_test(an_interruption_after_all_trials_has_its_result),
        cmocka_unit_test(a_choice_of_rates_is_gone_on_with),
        cmocka_unit_test(a_damaged_trial_is_trained_again),
        cmocka_unit_test(another_choice_of_rates_is_refused),
        cmocka_unit_test(runs_on_tasks_are_taken_over_too),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, begin, end);
}

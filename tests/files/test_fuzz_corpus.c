/* SPDX-License-Identifier: MIT */
/*
 * The fuzz targets without a fuzzer: the corpus as it is, cut at every length, and with bytes
 * changed
 *
 * Changes are drawn from the library's own random numbers, so a failure repeats. Under the
 * sanitizers this is a small fuzzer that every test run pays for with a second; libFuzzer
 * (tests/fuzz) goes on from here.
 */
#include <posenc/registry.h>

#include "fuzz/targets.h"

#include "scratch.h"

#define CORPUS POSENC_SOURCE_DIR "/tests/fuzz/corpus/"

enum { COPIES = 500, MOST_CHANGES = 8 };

typedef void target(const unsigned char *bytes, size_t n);

static uint64_t draw(uint64_t *counter, uint64_t n)
{
    return (uint64_t)(posenc_random_uniform(1, "fuzz", (*counter)++) * (double)n);
}

/* A copy in memory of its own, so that a byte read beyond it is seen. */
static void run_changed(target *run, const char *text, size_t n, uint64_t *counter)
{
    unsigned char *copy = malloc(n + 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    for (uint64_t i = draw(counter, MOST_CHANGES) + 1; i > 0; i--)
        copy[draw(counter, n)] = (unsigned char)draw(counter, 256);
    run(copy, n);
    free(copy);
}

static void run_file(target *run, const char *path)
{
    size_t   n;
    uint64_t counter = 0;
    char    *text    = scratch_read(path, &n);
    for (size_t length = 0; length <= n; length++)
        run((unsigned char *)text, length);
    for (int i = 0; i < COPIES; i++)
        run_changed(run, text, n, &counter);
    free(text);
}

static void run_corpus(target *run, const char *path)
{
    char file[SCRATCH_PATH];
    int  files  = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        run_file(run, file);
        files++;
    }
    closedir(folder);
    assert_true(files > 0);
}

static void arrays_from_strangers_are_read_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_arrays, CORPUS "arrays");
}

static void tensors_from_strangers_are_read_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_safetensors, CORPUS "safetensors");
}

static void texts_from_strangers_are_read_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_csv, CORPUS "csv");
}

static void manifests_from_strangers_are_read_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_manifest, CORPUS "manifest");
}

static void configurations_from_strangers_are_read_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_config, CORPUS "config");
}

static void ggufs_from_strangers_are_read_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_gguf, CORPUS "gguf");
}

static void headers_of_strangers_are_accepted_or_refused(void **state)
{
    (void)state;
    run_corpus(fuzz_header, CORPUS "safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_from_strangers_are_read_or_refused),
        cmocka_unit_test(tensors_from_strangers_are_read_or_refused),
        cmocka_unit_test(texts_from_strangers_are_read_or_refused),
        cmocka_unit_test(manifests_from_strangers_are_read_or_refused),
        cmocka_unit_test(configurations_from_strangers_are_read_or_refused),
        cmocka_unit_test(ggufs_from_strangers_are_read_or_refused),
        cmocka_unit_test(headers_of_strangers_are_accepted_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

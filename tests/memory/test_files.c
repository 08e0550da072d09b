/* SPDX-License-Identifier: MIT */
/*
 * test_files: readers and writers of files survive every failure of the allocator
 *
 * This program's malloc and its kin take the place of those of the C library in the whole process, jansson
 * and libzip included, count, and fail on demand. Each call is repeated with its first, second, ...
 * allocation failing until none does any more: it must either say MEMORY, leave nothing made and hold no
 * memory, or give what the undisturbed call gives. Not under sanitizers, which bring an allocator of their
 * own.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <posenc/files.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/scratch.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
    printf("skipped: the sanitizer has an allocator of its own\n");
    return 0;
}

#else

static struct {
    int     is_counted; /* only while a call runs */
    int64_t asked, held, failing;
    size_t  bytes; /* of all calls together, what was given back too */
} heap;

static int fails(void)
{
    if (!heap.is_counted || heap.asked++ != heap.failing)
        return 0;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *memory)
{
    heap.held += heap.is_counted && memory;
    return memory;
}

static void find(void *call, const char *name)
{
    void *const found = dlsym(RTLD_NEXT, name);
    memcpy(call, &found, sizeof found);
}

POSENC_API void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (!next)
        find(&next, "malloc");
    heap.bytes += heap.is_counted ? size : 0;
    return fails() ? NULL : counted(next(size));
}

POSENC_API void *calloc(size_t count, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        find(&next, "calloc");
    heap.bytes += heap.is_counted && size ? (count < SIZE_MAX / size ? count * size : SIZE_MAX / 2) : 0;
    return fails() ? NULL : counted(next(count, size));
}

POSENC_API void *realloc(void *old, size_t size)
{
    static void *(*next)(void *, size_t);
    if (!next)
        find(&next, "realloc");
    heap.bytes += heap.is_counted ? size : 0;
    if (fails())
        return NULL;
    heap.held -= heap.is_counted && old;
    return counted(next(old, size));
}

POSENC_API void *aligned_alloc(size_t alignment, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        find(&next, "aligned_alloc");
    heap.bytes += heap.is_counted ? size : 0;
    return fails() ? NULL : counted(next(alignment, size));
}

POSENC_API void free(void *memory)
{
    static void (*next)(void *);
    if (!next)
        find(&next, "free");
    heap.held -= heap.is_counted && memory;
    next(memory);
}

/* ---- calls ---- */

enum { TEXT = 1 << 16 };

/* A call, what came of it as text, and its end. */
typedef posenc_status call(const char *path, char text[TEXT], posenc_error *err);

/* Each allocation of `run` on a file in turn. */
static void fail_each(call *run, const char *path)
{
    static char  whole[TEXT], text[TEXT];
    posenc_error err = {0};
    int64_t      failing;
    int          is_done = 0;
    if (run(path, whole, &err))
        fail_msg("%s: undisturbed: %s", path, err.message);
    for (failing = 0; !is_done; failing++) {
        memset(&err, 0, sizeof err);
        heap.asked = heap.held     = 0;
        heap.failing               = failing;
        heap.is_counted            = 1;
        const posenc_status status = run(path, text, &err);
        heap.is_counted            = 0;
        is_done                    = heap.asked <= failing;
        if (status && (status != POSENC_ERROR_MEMORY || !err.message[0] || strchr(err.message, '\n')))
            fail_msg("%s: allocation %lld: status %s: %s", path, (long long)failing,
                     posenc_status_string(status), err.message);
        if (!status && strcmp(text, whole) != 0)
            fail_msg("%s: allocation %lld: no error, and another result", path, (long long)failing);
        if (heap.held > 0 && !strstr(path, ".npz")) /* libzip 1.7 loses some of its own */
            fail_msg("%s: allocation %lld: %lld blocks are held", path, (long long)failing,
                     (long long)heap.held);
    }
    assert_true(failing > 2);
    assert_int_equal(run(path, text, &err), POSENC_OK); /* a later call is fine */
    assert_string_equal(text, whole);
}

static posenc_status read_arrays(const char *path, char text[TEXT], posenc_error *err)
{
    posenc_arrays       set    = {0};
    const posenc_status status = posenc_arrays_read(&set, path, err);
    size_t              used   = 0;
    text[0]                    = '\0';
    if (status)
        assert_int_equal(set.count, 0);
    for (int i = 0; i < set.count; i++)
        used += (size_t)snprintf(text + used, TEXT - used, "%s %d %lld %02x\n", set.items[i].name,
                                 (int)set.items[i].tensor.dtype, (long long)set.items[i].tensor.shape[0],
                                 *(unsigned char *)set.items[i].tensor.data);
    posenc_arrays_free(&set);
    return status;
}

static posenc_status write_arrays(const char *path, char text[TEXT], posenc_error *err)
{
    static double numbers[3] = {1, 2, 3};
    static char   name[]     = "q";
    const int64_t shape[]    = {3};
    posenc_array  q = {.name = name, .tensor = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F64, 1, shape)};
    const posenc_arrays set            = {&q, 1};
    const posenc_status status         = posenc_arrays_write(&set, path, err);
    const int           counted_before = heap.is_counted;
    heap.is_counted                    = 0; /* opendir is the test's own */
    snprintf(text, TEXT, "%d", status ? 0 : scratch_count());
    heap.is_counted = counted_before;
    return status;
}

static posenc_status read_cases(const char *path, char text[TEXT], posenc_error *err)
{
    posenc_cases        cases  = {0};
    const posenc_status status = posenc_cases_read(&cases, path, err);
    if (status)
        assert_int_equal(cases.count, 0);
    snprintf(text, TEXT, "%d %s %s", cases.count, cases.count ? cases.items[0].settings : "",
             cases.count ? cases.items[0].raw : "");
    posenc_cases_free(&cases);
    return status;
}

static posenc_status read_model(const char *path, char text[TEXT], posenc_error *err)
{
    posenc_model *model  = NULL;
    char         *json   = NULL;
    posenc_status status = posenc_model_read(&model, path, err);
    if (status)
        assert_null(model);
    else if ((status = posenc_model_json(&json, model, -1, err)))
        assert_null(json);
    snprintf(text, TEXT, "%s", json ? json : "");
    posenc_model_json_free(json);
    posenc_model_free(model);
    return status;
}

/* The rows that bert learns, of a checkpoint that an index divides. */
static posenc_status read_params(const char *path, char text[TEXT], posenc_error *err)
{
    posenc_arrays params = {0};
    posenc_model *model  = NULL;
    posenc_status status = posenc_model_read(&model, scratch("config.json"), err);
    if (!status)
        status = posenc_model_params(&params, model, 0, -1, path, err);
    assert_true(!status == !err->status);
    snprintf(text, TEXT, "%d arrays, %s", params.count, params.count ? params.items[0].name : "none");
    posenc_arrays_free(&params);
    posenc_model_free(model);
    return status;
}

static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s", POSENC_SOURCE_DIR, name);
    return path;
}

static void reading_npz_survives_every_failure(void **state)
{
    (void)state;
    fail_each(read_arrays, golden("alibi__causal.npz"));
}

static void reading_csv_survives_every_failure(void **state)
{
    static const char csv[] = "# q 2x2\n1,2\n3,4\n# k 1x2\n5,6\n";
    (void)state;
    scratch_write("a.csv", csv, sizeof csv - 1);
    fail_each(read_arrays, scratch("a.csv"));
}

static void writing_survives_every_failure(void **state)
{
    char path[SCRATCH_PATH];
    (void)state;
    static const char *const names[] = {"w.npy", "w.npz", "w.csv"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s", scratch(names[i]));
        fail_each(write_arrays, path);
    }
}

static void reading_a_manifest_survives_every_failure(void **state)
{
    static const char manifest[] =
        "{\"entries\": [{\"file\": \"a.npz\", \"encoding\": \"rope\", \"settings\": {\"base\": 12345.25, "
        "\"list\": [1, 2], \"map\": {\"a\": 8}}, \"arrays\": {\"in_q\": {\"shape\": [1]}, \"in_k\": "
        "{\"shape\": [1]}}}]}";
    (void)state;
    scratch_write("manifest.json", manifest, sizeof manifest - 1);
    fail_each(read_cases, scratch_folder);
}

static void reading_a_config_survives_every_failure(void **state)
{
    static const char config[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_attention_heads\": 8, "
        "\"num_hidden_layers\": 2, \"max_position_embeddings\": 131072, \"rope_theta\": 500000.0, "
        "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
        "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}}";
    (void)state;
    scratch_write("config.json", config, sizeof config - 1);
    fail_each(read_model, scratch("config.json"));
}

static void reading_a_gguf_survives_every_failure(void **state)
{
    (void)state;
    fail_each(read_model, golden("gguf/llama31.gguf"));
}

/* Its index, read wrongly, has no list of files: that is no fault of the index. */
static void reading_trained_parameters_survives_every_failure(void **state)
{
    static const char config[] = "{\"model_type\": \"bert\", \"hidden_size\": 2, \"num_attention_heads\": 1, "
                                 "\"num_hidden_layers\": 1, \"max_position_embeddings\": 2}",
                      index[]  = "{\"weight_map\": {\"bert.embeddings.position_embeddings.weight\": "
                                 "\"a.safetensors\", \"other\": \"a.safetensors\"}}",
                      header[] = "{\"bert.embeddings.position_embeddings.weight\": {\"dtype\": \"F32\", "
                                 "\"shape\": [2, 2], \"data_offsets\": [0, 16]}}";
    char file[512]             = {(char)(sizeof header - 1)};
    char path[SCRATCH_PATH];
    (void)state;
    memcpy(file + 8, header, sizeof header - 1);
    scratch_write("config.json", config, sizeof config - 1);
    scratch_write("a.index.json", index, sizeof index - 1);
    scratch_write("a.safetensors", file, 8 + sizeof header - 1 + 16);
    snprintf(path, sizeof path, "%s", scratch("a.index.json"));
    fail_each(read_params, path);
}

/* ---- inputs of less than 1 KB ---- */

enum { MOST_BYTES = 64 << 20 };

static void count_bytes(void)
{
    heap.asked = heap.held = 0;
    heap.failing           = -1;
    heap.bytes             = 0;
    heap.is_counted        = 1;
}

static void assert_little(const char *what)
{
    heap.is_counted = 0;
    if (heap.bytes > MOST_BYTES)
        fail_msg("%s asked for %zu bytes", what, heap.bytes);
}

/* Files that claim more than they hold. */
static void small_files_ask_for_little(void **state)
{
    static char text[TEXT];
    static const struct {
        const char *name, *bytes;
        size_t      n;
        call       *read;
    } all[] = {
#define FILE_OF(name, bytes, read)          \
    {                                       \
        name, bytes, sizeof bytes - 1, read \
    }
        FILE_OF("a.npy",
                "\x93NUMPY\1\0\x46\0{'descr': '<f8', 'fortran_order': False, 'shape': (536870911,), }        "
                "  \n",
                read_arrays),
        FILE_OF("b.csv", "# q 99999x999\n1,2\n", read_arrays),
        FILE_OF("c.safetensors",
                "\x50\0\0\0\0\0\0\0{\"q\":{\"dtype\":\"F64\",\"shape\":[99999999],\"data_offsets\":[0,"
                "799999992]}}       ",
                read_arrays),
        FILE_OF("d.safetensors", "\0\0\0\1\0\0\0\0{", read_arrays),
        FILE_OF("e.json",
                "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_attention_heads\": 1, "
                "\"num_hidden_layers\": 1000000000, \"max_position_embeddings\": 1000000000000}",
                read_model),
        FILE_OF("f.json",
                "{\"model_type\": \"bloom\", \"hidden_size\": 1073741824, \"n_head\": 1073741824, "
                "\"n_layer\": 2}",
                read_model),
        FILE_OF("g.json",
                "{\"model_type\": \"gemma3_text\", \"hidden_size\": 64, \"num_attention_heads\": 2, "
                "\"num_hidden_layers\": 2147483647, \"sliding_window\": 9007199254740991}",
                read_model),
        FILE_OF("h.gguf", "GGUF\3\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x10", read_model),
        FILE_OF("i.gguf",
                "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0a\x09\0\0\0\x06\0\0\0\0\0\0\x10"
                "\0\0\0\0",
                read_model),
#undef FILE_OF
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char         path[SCRATCH_PATH];
        posenc_error err;
        snprintf(path, sizeof path, "%s", scratch(all[i].name));
        scratch_write(all[i].name, all[i].bytes, all[i].n);
        count_bytes();
        all[i].read(path, text, &err);
        assert_little(all[i].name);
    }
}

static void small_manifests_ask_for_little(void **state)
{
    static char       text[TEXT];
    static const char manifest[] =
        "{\"entries\": [{\"file\": \"a.npz\", \"encoding\": \"rope\", \"settings\": {\"dim\": "
        "9007199254740992}, "
        "\"arrays\": {\"in_q\": {\"shape\": [99999999999]}}, \"heads\": [9007199254740992]}]}";
    posenc_error err;
    (void)state;
    scratch_write("manifest.json", manifest, sizeof manifest - 1);
    count_bytes();
    read_cases(scratch_folder, text, &err);
    assert_little("a manifest");
}

/* Every setting of every encoding at its largest, as a text asks for it. */
static void specs_ask_for_little(void **state)
{
    static const char *const values[] = {"16777216", "9007199254740992", "1048576x1048576", "1e300"};
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        for (int s = 0; s < info->setting_count; s++)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                char             spec[200];
                posenc_encoding *e    = NULL;
                posenc_plan     *plan = NULL;
                posenc_dims      dims = {.B = 1, .H = 2, .Lq = 8, .Lk = 8, .D = 16, .d_model = 32};
                snprintf(spec, sizeof spec, "%s[%s=%s]", info->name, info->settings[s].name, values[v]);
                count_bytes();
                if (!posenc_encoding_create(&e, spec, NULL, NULL))
                    posenc_plan_create(&plan, e, &dims, NULL, NULL);
                assert_little(spec);
                posenc_plan_free(plan);
                posenc_encoding_free(e);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_files_ask_for_little),
        cmocka_unit_test(small_manifests_ask_for_little),
        cmocka_unit_test(specs_ask_for_little),
        cmocka_unit_test(reading_npz_survives_every_failure),
        cmocka_unit_test(reading_csv_survives_every_failure),
        cmocka_unit_test(writing_survives_every_failure),
        cmocka_unit_test(reading_a_manifest_survives_every_failure),
        cmocka_unit_test(reading_a_config_survives_every_failure),
        cmocka_unit_test(reading_a_gguf_survives_every_failure),
        cmocka_unit_test(reading_trained_parameters_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

#endif

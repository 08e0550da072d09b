/* SPDX-License-Identifier: MIT */
/*
 * targets.h: what a fuzzer throws its bytes at
 *
 * Each target parses bytes as a file that a stranger sent, and then touches all that came out, so
 * that a size which was believed too early is found by the sanitizer. fuzz_files.c beside this file makes
 * each of them a target for libFuzzer; tests/files/test_fuzz_corpus.c runs them on the corpus and on changed
 * copies of it, in every test run.
 */
#ifndef TESTS_FUZZ_TARGETS_H
#define TESTS_FUZZ_TARGETS_H

#include "files/arrays/formats.h"
#include "files/model/build.h"
#include "files/parse.h"

#include <stdlib.h>
#include <string.h>

/* A failure without a sentence, or with more than a line, is a fault too. */
static inline void require(int holds)
{
    if (!holds)
        abort();
}

static inline void require_sentence(posenc_status status, const posenc_error *err)
{
    require(status == err->status && err->message[0] && !strchr(err->message, '\n'));
}

static inline unsigned touch(const void *data, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((const unsigned char *)data)[i];
    return sum;
}

static inline void fuzz_tensors(const unsigned char *bytes, size_t n, const char *path)
{
    posenc_arrays       set    = {0};
    posenc_error        err    = {0};
    volatile unsigned   sum    = 0;
    const posenc_status status = n ? pe_arrays_parse(&set, bytes, n, path, &err) : POSENC_OK;
    if (status)
        require_sentence(status, &err);
    require(!status || set.count == 0);
    for (int i = 0; i < set.count; i++)
        sum += touch(set.items[i].tensor.data, pe_arrays_bytes(&set.items[i].tensor)) +
               (unsigned)strlen(set.items[i].name);
    (void)sum;
    posenc_arrays_free(&set);
}

/* .npy and .npz: the first bytes say which. */
static inline void fuzz_arrays(const unsigned char *bytes, size_t n)
{
    fuzz_tensors(bytes, n, "fuzzed.npz");
}

/* The name keeps the bytes with this reader, however they are changed. */
static inline void fuzz_safetensors(const unsigned char *bytes, size_t n)
{
    fuzz_tensors(bytes, n, "fuzzed.safetensors");
}

static inline void fuzz_csv(const unsigned char *bytes, size_t n)
{
    fuzz_tensors(bytes, n, "fuzzed.csv");
}

static inline void fuzz_manifest(const unsigned char *bytes, size_t n)
{
    posenc_cases        cases  = {0};
    posenc_error        err    = {0};
    volatile size_t     sum    = 0;
    const posenc_status status = pe_cases_parse(&cases, (const char *)bytes, n, "fuzzed.json", &err);
    if (status)
        require_sentence(status, &err);
    require(!status || cases.count == 0);
    for (int i = 0; i < cases.count; i++) {
        const posenc_case *c = &cases.items[i];
        require(!strchr(c->settings, '\n'));
        sum += strlen(c->file) + strlen(c->encoding) + strlen(c->settings) + strlen(c->raw);
        for (char **name = c->arrays; *name; name++)
            sum += strlen(*name);
    }
    (void)sum;
    posenc_cases_free(&cases);
}

static inline unsigned touch_group(const posenc_model_group *g)
{
    unsigned sum = (unsigned)strlen(g->spec) + (unsigned)strlen(g->encoding);
    for (int64_t i = 0; i < g->layer_count; i++)
        sum += (unsigned)g->layers[i];
    for (int i = 0; i < g->param_count; i++)
        sum += touch(g->params[i].tensor.data, pe_arrays_bytes(&g->params[i].tensor));
    for (int i = 0; i < g->fact_count; i++) {
        const posenc_fact *f = &g->facts[i];
        require(f->name && f->rule);
        sum += touch(f->list, (size_t)f->count * sizeof *f->list) + (unsigned)(f->text ? strlen(f->text) : 0);
    }
    return sum;
}

static inline void touch_model(const posenc_model *model)
{
    const posenc_model_info *info = posenc_model_describe(model);
    volatile unsigned        sum  = (unsigned)strlen(info->encoding);
    for (int i = 0; i < info->group_count; i++)
        sum += touch_group(posenc_model_group_at(model, i));
    for (int i = 0; i < info->warning_count; i++)
        sum += (unsigned)strlen(posenc_model_warning_at(model, i)->sentence);
    require(posenc_model_group_of(model, 0) < info->group_count);
    (void)sum;
}

/* config.json and .gguf: the first bytes say which. */
static inline void fuzz_model(const unsigned char *bytes, size_t n, const char *path)
{
    posenc_model       *model  = NULL;
    posenc_error        err    = {0};
    const posenc_status status = pe_modelfile_parse(&model, bytes, n, path, &err);
    if (status)
        require_sentence(status, &err);
    require(!status == (model != NULL));
    if (model)
        touch_model(model);
    posenc_model_free(model);
}

static inline void fuzz_config(const unsigned char *bytes, size_t n)
{
    fuzz_model(bytes, n, "fuzzed.json");
}

static inline void fuzz_gguf(const unsigned char *bytes, size_t n)
{
    fuzz_model(bytes, n, "fuzzed.gguf");
}

/* The header of a .safetensors of any types. */
static inline void fuzz_header(const unsigned char *bytes, size_t n)
{
    pe_memory           left   = {(const char *)bytes, n};
    const pe_stream     stream = pe_memory_stream(&left, "fuzzed.safetensors");
    posenc_error        err    = {0};
    const posenc_status status = pe_safetensors_check(&stream, &err);
    if (status)
        require_sentence(status, &err);
}

#endif

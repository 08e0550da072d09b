/* SPDX-License-Identifier: MIT */
/* gguf_file.h: a GGUF file put together value by value, read, or refused. */
#ifndef TESTS_FILES_GGUF_FILE_H
#define TESTS_FILES_GGUF_FILE_H

#include "files/model/build.h"
#include "files/parse.h"

#include "scratch.h"

enum { MOST = 8192, F32 = 0, F16 = 1 };

typedef struct file {
    unsigned char bytes[MOST], values[MOST], entries[MOST], data[MOST];
    size_t        size, value_size, entry_size, data_size;
    uint64_t      value_count, tensor_count;
    size_t        alignment; /* of the data; 0: 32 */
} file;

static inline void put(unsigned char *to, size_t *size, const void *from, size_t n)
{
    assert_true(*size + n <= MOST);
    memcpy(to + *size, from, n);
    *size += n;
}

static inline void put_u32(unsigned char *to, size_t *size, uint32_t x)
{
    put(to, size, &x, sizeof x);
}

static inline void put_u64(unsigned char *to, size_t *size, uint64_t x)
{
    put(to, size, &x, sizeof x);
}

static inline void put_text(unsigned char *to, size_t *size, const char *text)
{
    put_u64(to, size, strlen(text));
    put(to, size, text, strlen(text));
}

static inline void put_key(file *f, const char *key, uint32_t type)
{
    put_text(f->values, &f->value_size, key);
    put_u32(f->values, &f->value_size, type);
    f->value_count++;
}

static inline void add_word(file *f, const char *key, const char *word)
{
    put_key(f, key, 8);
    put_text(f->values, &f->value_size, word);
}

static inline void add_whole(file *f, const char *key, uint32_t x)
{
    put_key(f, key, 4);
    put_u32(f->values, &f->value_size, x);
}

static inline void add_real(file *f, const char *key, float x)
{
    put_key(f, key, 6);
    put(f->values, &f->value_size, &x, sizeof x);
}

static inline void add_list(file *f, const char *key, const uint32_t *list, uint64_t n)
{
    put_key(f, key, 9);
    put_u32(f->values, &f->value_size, 4);
    put_u64(f->values, &f->value_size, n);
    put(f->values, &f->value_size, list, (size_t)n * sizeof *list);
}

/* An entry of the list of tensors: axes of these sizes, and where its data begin. */
static inline void put_entry(file *f, const char *name, uint32_t ndim, const uint64_t *shape, uint32_t type,
                             uint64_t at)
{
    put_text(f->entries, &f->entry_size, name);
    put_u32(f->entries, &f->entry_size, ndim);
    put(f->entries, &f->entry_size, shape, ndim * sizeof *shape);
    put_u32(f->entries, &f->entry_size, type);
    put_u64(f->entries, &f->entry_size, at);
    f->tensor_count++;
}

static inline void add_tensor(file *f, const char *name, const float *x, uint64_t n, uint32_t type)
{
    put_entry(f, name, 1, &n, type, f->data_size);
    put(f->data, &f->data_size, x, (size_t)n * sizeof *x);
}

static inline void add_table(file *f, const char *name, const float *x, uint64_t columns, uint64_t rows)
{
    put_entry(f, name, 2, (const uint64_t[]){columns, rows}, F32, f->data_size);
    put(f->data, &f->data_size, x, (size_t)(columns * rows) * sizeof *x);
}

/* Values, entries and data, one after the other. */
static inline void join(file *f, uint32_t version)
{
    static const unsigned char none[64] = {0};
    const size_t               step     = f->alignment ? f->alignment : 32;
    f->size                             = 0;
    put(f->bytes, &f->size, "GGUF", 4);
    put_u32(f->bytes, &f->size, version);
    put_u64(f->bytes, &f->size, f->tensor_count);
    put_u64(f->bytes, &f->size, f->value_count);
    put(f->bytes, &f->size, f->values, f->value_size);
    put(f->bytes, &f->size, f->entries, f->entry_size);
    if (f->tensor_count)
        put(f->bytes, &f->size, none, (step - f->size % step) % step);
    put(f->bytes, &f->size, f->data, f->data_size);
}

static inline posenc_status parse(posenc_model **model, const file *f, posenc_error *err)
{
    *model = NULL;
    return pe_modelfile_parse(model, f->bytes, f->size, "dir/m.gguf", err);
}

static inline posenc_model *read_file(file *f)
{
    posenc_model *model;
    posenc_error  err;
    join(f, 3);
    if (parse(&model, f, &err))
        fail_msg("%s", err.message);
    return model;
}

static inline void refused(file *f, uint32_t version, const char *part)
{
    posenc_model *model;
    posenc_error  err;
    join(f, version);
    assert_int_equal(parse(&model, f, &err), POSENC_ERROR_FORMAT);
    assert_null(model);
    assert_null(strchr(err.message, '\n'));
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

/* A model of 4 heads of 16, 8 layers; the keys begin with the architecture. */
static inline file sized(const char *architecture)
{
    static const struct {
        const char *key;
        uint32_t    value;
    } sizes[] = {
        {"block_count", 8}, {"embedding_length", 64}, {"attention.head_count", 4}, {"context_length", 4096}};
    file f = {0};
    add_word(&f, "general.architecture", architecture);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s.%s", architecture, sizes[i].key);
        add_whole(&f, key, sizes[i].value);
    }
    return f;
}

static inline const posenc_fact *fact(const posenc_model *model, int group, const char *name)
{
    const posenc_model_group *g = posenc_model_group_at(model, group);
    const posenc_fact        *f = g ? posenc_model_fact(g, name) : NULL;
    if (!f)
        fail_msg("there is no fact %s in group %d", name, group);
    return f;
}

static inline int warns(const posenc_model *model, const char *code)
{
    for (int i = 0; i < posenc_model_describe(model)->warning_count; i++)
        if (!strcmp(posenc_model_warning_at(model, i)->code, code))
            return 1;
    return 0;
}

#endif

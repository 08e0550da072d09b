/* SPDX-License-Identifier: MIT */
/*
 * safetensors_header.c: is this the header of a .safetensors that could be loaded?
 *
 * safetensors.c reads tensors and so refuses types that a posenc_tensor cannot hold, and files beyond memory.
 * Whoever asks about positions wants neither: here the header alone is read, tensors may have any type (fp8
 * checkpoints are common) and any size, and the rules of the format are still those of its reader: no key
 * twice, no holes, no overlaps, nothing behind the last tensor.
 * Source  huggingface/safetensors, safetensors/src/tensor.rs (Metadata::validate)
 */
#include "files/model_read.h"
#include "files/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "files/fail.h"

enum { PREFIX = 8, LONGEST = 16 << 20, MOST_AXES = 64 };

typedef struct span {
    const char *name;
    int64_t     begin, end;
} span;

/* Bits of an element; 0 for a type that is not known, whose size then is not checked. */
static int64_t bits_of(const char *type)
{
    static const struct {
        const char *name;
        int         bits;
    } types[] = {
        {"F64", 64}, {"I64", 64}, {"U64", 64},    {"C64", 64},    {"F32", 32},    {"I32", 32},
        {"U32", 32}, {"F16", 16}, {"BF16", 16},   {"I16", 16},    {"U16", 16},    {"I8", 8},
        {"U8", 8},   {"BOOL", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F4", 4},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type))
            return types[i].bits;
    return 0;
}

/* Bits of a whole tensor; -1 for a shape that no file could hold. */
static int64_t bits_of_shape(const json_t *shape, int64_t bits)
{
    size_t  i;
    json_t *value;
    int64_t size, product = bits;
    json_array_foreach(shape, i, value)
    {
        if (!pe_safetensors_size(value, &size) || size > INT64_MAX / 4 / (product ? product : 1))
            return -1;
        product *= size;
    }
    return product;
}

static posenc_status read_span(span *s, const char *name, const json_t *entry, const char *path,
                               posenc_error *err)
{
    const pe_origin origin = {path, name};
    const json_t   *shape = json_object_get(entry, "shape"), *pair = json_object_get(entry, "data_offsets");
    const char     *type = json_string_value(json_object_get(entry, "dtype"));
    s->name              = name;
    if (!type || !json_is_array(shape) || json_array_size(shape) > MOST_AXES || json_array_size(pair) != 2 ||
        !pe_safetensors_size(json_array_get(pair, 0), &s->begin) ||
        !pe_safetensors_size(json_array_get(pair, 1), &s->end) || s->end < s->begin)
        return pe_file_fail(err, POSENC_FORMAT, origin,
                            "its entry must have dtype, shape and data_offsets [begin, end]");
    const int64_t element = bits_of(type), bits = bits_of_shape(shape, element ? element : 1);
    if (bits < 0 || (element && bits != 8 * (s->end - s->begin)))
        return pe_file_fail(err, POSENC_FORMAT, origin,
                            "its data_offsets hold %lld bytes, which is not what its shape asks for",
                            (long long)(s->end - s->begin));
    return POSENC_OK;
}

static int by_offset(const void *left, const void *right)
{
    const span *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static posenc_status check_cover(span *spans, size_t n, int64_t data, const char *path, posenc_error *err)
{
    int64_t at = 0;
    qsort(spans, n, sizeof *spans, by_offset);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin != at)
            return pe_file_fail(err, POSENC_FORMAT, (pe_origin){path, spans[i].name},
                                "its data begin at byte %lld but the tensor before ends at %lld",
                                (long long)spans[i].begin, (long long)at);
        at = spans[i].end;
    }
    if (at != data)
        return pe_file_fail(err, POSENC_FORMAT, (pe_origin){path, NULL},
                            "its header asks for %lld bytes of data but %lld follow: it is %s", (long long)at,
                            (long long)data, at > data ? "cut" : "longer than it should be");
    return POSENC_OK;
}

/* An object of texts. */
static posenc_status check_metadata(const json_t *metadata, const char *path, posenc_error *err)
{
    const char *name;
    json_t     *value;
    int         sound = !metadata || json_is_object(metadata);
    json_object_foreach((json_t *)(uintptr_t)metadata, name, value) sound = sound && json_is_string(value);
    return sound ? POSENC_OK
                 : pe_file_fail(err, POSENC_FORMAT, (pe_origin){path, "__metadata__"},
                                "it must be an object whose values are texts");
}

static posenc_status check_header(json_t *header, int64_t data, const char *path, posenc_error *err)
{
    const char   *name;
    json_t       *entry;
    size_t        n      = 0;
    posenc_status status = check_metadata(json_object_get(header, "__metadata__"), path, err);
    if (status)
        return status;
    span *spans = calloc(json_object_size(header) + 1, sizeof *spans);
    if (!spans)
        return pe_file_fail(err, POSENC_MEMORY, (pe_origin){path, NULL}, "no memory for its header");
    json_object_foreach(header, name, entry) if (!status && strcmp(name, "__metadata__") != 0) status =
        read_span(&spans[n++], name, entry, path, err);
    if (!status)
        status = check_cover(spans, n, data, path, err);
    free(spans);
    return status;
}

static posenc_status parse(const pe_source *s, const char *text, int64_t n, posenc_error *err)
{
    json_error_t  why;
    json_t       *header = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    posenc_status status;
    if (!header)
        return pe_file_fail(err, POSENC_FORMAT, (pe_origin){s->path, NULL},
                            "its header: line %d, column %d: %.80s", why.line, why.column, why.text);
    status = json_is_object(header)
                 ? check_header(header, s->size - PREFIX - n, s->path, err)
                 : pe_file_fail(err, POSENC_FORMAT, (pe_origin){s->path, NULL}, "its header is no object");
    json_decref(header);
    return status;
}

posenc_status pe_safetensors_check(const pe_source *s, posenc_error *err)
{
    const pe_origin origin = {s->path, NULL};
    unsigned char   p[PREFIX];
    int64_t         n = 0;
    if (s->size < PREFIX || s->read_at(s->from, p, PREFIX, 0) != PREFIX)
        return pe_file_fail(err, POSENC_FORMAT, origin, "it is no .safetensors: it has not even 8 bytes");
    for (int i = PREFIX - 1; i >= 0; i--)
        n = n > INT64_MAX >> 9 ? INT64_MAX >> 1 : n << 8 | p[i];
    if (n > LONGEST || n > s->size - PREFIX)
        return pe_file_fail(err, POSENC_FORMAT, origin,
                            "its header would have %lld bytes; %lld follow, and %d is the most", (long long)n,
                            (long long)(s->size - PREFIX), LONGEST);
    char *text = malloc((size_t)n + 1);
    if (!text)
        return pe_file_fail(err, POSENC_MEMORY, origin, "no memory for its header");
    const int64_t       got    = s->read_at(s->from, text, n, PREFIX);
    const posenc_status status = got == n
                                     ? parse(s, text, n, err)
                                     : pe_file_fail(err, POSENC_FILE, origin, "its header cannot be read");
    free(text);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * safetensors: named tensors as model checkpoints carry them
 *
 * The file  8 bytes: length N of the header, little-endian; N bytes of JSON that begin with '{' and may
 *           end in spaces; the data. Each key of the header names a tensor {dtype, shape, data_offsets},
 *           offsets counted from the first byte behind the header; __metadata__ holds texts.
 * Rules     N is at most 100 000 000; no key stands twice; every byte of the data belongs to exactly one
 *           tensor, so sorted by offset each begins where the one before ends, and the last ends the
 *           file. Tensors without axes or without elements are allowed. Further members of a tensor's
 *           entry are passed over, as the original reader does.
 * Types     Those a posenc_tensor can hold (I32 and BOOL are converted); others, among them the 8-bit
 *           floats, are refused by their name, even where nobody would have asked for that tensor: a set
 *           that silently lacks one is worse.
 * Surprise  Since there are no holes, reading in the order of the offsets never seeks.
 * Source    huggingface/safetensors, README.md (format) and safetensors/src/tensor.rs (Metadata::validate)
 */
#include "files/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "files/arrays.h"

enum { PREFIX = 8, LONGEST_HEADER = 100000000 };

/* ---------------------------------------------------------------- element types ------------- */

/* In place, from the last element down: a wide element covers only narrow ones that are done. */
static void widen_i4(void *data, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        int32_t x;
        memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x);
        ((int64_t *)data)[i] = x;
    }
}

static void truth(void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((unsigned char *)data)[i] = ((unsigned char *)data)[i] != 0;
}

typedef struct type {
    const char  *name;
    posenc_dtype dtype;
    int64_t      size;                      /* in the file */
    void (*convert)(void *data, int64_t n); /* NULL: the elements are used as they are */
} type;

static const type types[] = {
    {"F64", POSENC_F64, 8, NULL},   {"F32", POSENC_F32, 4, NULL},  {"F16", POSENC_F16, 2, NULL},
    {"BF16", POSENC_BF16, 2, NULL}, {"I64", POSENC_I64, 8, NULL},  {"I32", POSENC_I64, 4, widen_i4},
    {"U8", POSENC_U8, 1, NULL},     {"BOOL", POSENC_U8, 1, truth},
};

static const type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

/* ---------------------------------------------------------------- one tensor's entry -------- */

typedef struct entry {
    const char *name; /* the header's own */
    const type *type;
    int32_t     ndim;
    int64_t     shape[POSENC_MAX_DIMS];
    int64_t     count; /* of elements */
    int64_t     begin, end;
} entry;

int pe_safetensors_size(const json_t *value, int64_t *size)
{
    *size = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *size >= 0 && *size <= INT64_MAX / 4;
}

static posenc_status read_type(entry *e, const json_t *value, pe_origin origin, posenc_error *err)
{
    const char *name = json_string_value(value);
    if (!name)
        return pe_file_fail(err, POSENC_FORMAT, origin, "its entry has no \"dtype\" that is a text");
    e->type = find_type(name);
    if (!e->type)
        return pe_file_fail(
            err, POSENC_FORMAT, origin,
            "its type is %.20s; F64, F32, F16, BF16, I64, I32, U8 and BOOL are read: convert it first", name);
    return POSENC_OK;
}

/* As in an .npy, the product must not overflow even where a size of 0 would hide it. */
static posenc_status read_shape(entry *e, const json_t *list, pe_origin origin, posenc_error *err)
{
    size_t  i;
    json_t *value;
    int64_t product = 1;
    if (!json_is_array(list))
        return pe_file_fail(err, POSENC_FORMAT, origin, "its entry has no \"shape\" that is a list");
    if (json_array_size(list) > POSENC_MAX_DIMS)
        return pe_file_fail(err, POSENC_FORMAT, origin, "it has %zu axes; at most %d are read",
                            json_array_size(list), POSENC_MAX_DIMS);
    e->ndim  = (int32_t)json_array_size(list);
    e->count = 1;
    json_array_foreach(list, i, value)
    {
        if (!pe_safetensors_size(value, &e->shape[i]))
            return pe_file_fail(err, POSENC_FORMAT, origin, "size %zu of its shape is no whole number from 0",
                                i);
        const int64_t size = e->shape[i] ? e->shape[i] : 1;
        if (size > PE_MAX_BYTES / 8 / product)
            return pe_file_fail(err, POSENC_FORMAT, origin,
                                "its shape holds more than %lld elements, the most that are read",
                                (long long)(PE_MAX_BYTES / 8));
        product *= size;
        e->count *= e->shape[i];
    }
    return POSENC_OK;
}

static posenc_status read_offsets(entry *e, const json_t *pair, pe_origin origin, posenc_error *err)
{
    if (json_array_size(pair) != 2 || !pe_safetensors_size(json_array_get(pair, 0), &e->begin) ||
        !pe_safetensors_size(json_array_get(pair, 1), &e->end) || e->end < e->begin)
        return pe_file_fail(err, POSENC_FORMAT, origin,
                            "its \"data_offsets\" are not two whole numbers [begin, end]");
    const int64_t bytes = e->count * e->type->size;
    if (e->end - e->begin != bytes)
        return pe_file_fail(err, POSENC_FORMAT, origin,
                            "its \"data_offsets\" hold %lld bytes but its shape and type ask for %lld",
                            (long long)(e->end - e->begin), (long long)bytes);
    return POSENC_OK;
}

static posenc_status read_entry(entry *e, const char *name, const json_t *object, const char *path,
                                posenc_error *err)
{
    const pe_origin origin = {path, name};
    posenc_status   status;
    *e = (entry){.name = name};
    if (!json_is_object(object))
        return pe_file_fail(err, POSENC_FORMAT, origin,
                            "its entry is no object of dtype, shape and data_offsets");
    if ((status = read_type(e, json_object_get(object, "dtype"), origin, err)) ||
        (status = read_shape(e, json_object_get(object, "shape"), origin, err)))
        return status;
    return read_offsets(e, json_object_get(object, "data_offsets"), origin, err);
}

/* ---------------------------------------------------------------- the header ---------------- */

static const char metadata_key[] = "__metadata__";

typedef struct header {
    json_t *json;    /* owns the names */
    entry  *entries; /* sorted by offset */
    size_t  count;
} header;

static void free_header(header *h)
{
    free(h->entries);
    json_decref(h->json);
}

static posenc_status check_metadata(const json_t *object, const char *path, posenc_error *err)
{
    const pe_origin origin = {path, metadata_key};
    const char     *key;
    json_t         *value;
    if (!json_is_object(object))
        return pe_file_fail(err, POSENC_FORMAT, origin, "it is no object of texts");
    json_object_foreach(
        (json_t *)(uintptr_t)object, key,
        value) if (!json_is_string(value)) return pe_file_fail(err, POSENC_FORMAT, origin,
                                                               "the value of \"%.40s\" is no text", key);
    return POSENC_OK;
}

/* Reads the length and the text of the header; *used is how many bytes that were. */
static posenc_status read_text(char **text, int64_t *length, const pe_stream *s, posenc_error *err)
{
    unsigned char p[PREFIX];
    uint64_t      n = 0;
    posenc_status status;
    if (s->size < PREFIX)
        return pe_file_fail(err, POSENC_FORMAT, s->origin,
                            "it has %lld bytes; a .safetensors file begins with 8 bytes of header length",
                            (long long)s->size);
    if ((status = pe_stream_read(p, PREFIX, s, err)))
        return status;
    for (int i = PREFIX - 1; i >= 0; i--)
        n = n << 8 | p[i];
    if (n > LONGEST_HEADER)
        return pe_file_fail(err, POSENC_FORMAT, s->origin,
                            "its header would have %llu bytes; a .safetensors header has at most %d",
                            (unsigned long long)n, LONGEST_HEADER);
    if ((int64_t)n > s->size - PREFIX)
        return pe_file_fail(err, POSENC_FORMAT, s->origin,
                            "its header has %lld bytes but only %lld follow: it is cut", (long long)n,
                            (long long)(s->size - PREFIX));
    *length = (int64_t)n;
    *text   = malloc((size_t)n + 1);
    if (!*text)
        return pe_file_fail(err, POSENC_MEMORY, s->origin, "no memory for its header");
    status = pe_stream_read(*text, *length, s, err);
    if (!status && (n == 0 || **text != '{'))
        status = pe_file_fail(err, POSENC_FORMAT, s->origin,
                              "its header does not begin with '{': it is no .safetensors file");
    if (status)
        free(*text);
    return status;
}

static posenc_status parse_text(header *h, const char *text, size_t length, const char *path,
                                posenc_error *err)
{
    json_error_t why;
    h->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (h->json)
        return POSENC_OK;
    return pe_file_fail(err, POSENC_FORMAT, (pe_origin){path, NULL}, "its header: line %d, column %d: %s",
                        why.line, why.column, why.text);
}

static posenc_status read_entries(header *h, const char *path, posenc_error *err)
{
    const char   *name;
    json_t       *object;
    posenc_status status;
    h->entries = calloc(json_object_size(h->json) + 1, sizeof *h->entries);
    if (!h->entries)
        return pe_file_fail(err, POSENC_MEMORY, (pe_origin){path, NULL}, "no memory for its header");
    json_object_foreach(h->json, name, object)
    {
        status = strcmp(name, metadata_key) ? read_entry(&h->entries[h->count++], name, object, path, err)
                                            : check_metadata(object, path, err);
        if (status)
            return status;
    }
    return POSENC_OK;
}

/* An empty tensor stands before the one that begins at the same byte. */
static int by_offset(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* No holes, no overlaps, nothing behind the last, and no more than is read. */
static posenc_status check_cover(const header *h, int64_t data, const char *path, posenc_error *err)
{
    const pe_origin whole  = {path, NULL};
    int64_t         at     = 0;
    int64_t         budget = PE_MAX_BYTES;
    for (size_t i = 0; i < h->count; i++) {
        const entry    *e      = &h->entries[i];
        const pe_origin origin = {path, e->name};
        const int64_t   bytes  = e->count * (int64_t)posenc_dtype_size(e->type->dtype);
        if (e->begin != at)
            return pe_file_fail(
                err, POSENC_FORMAT, origin,
                "its data begin at byte %lld but the tensor before ends at %lld: the file has "
                "%s",
                (long long)e->begin, (long long)at, e->begin > at ? "a hole" : "an overlap");
        at = e->end;
        if (bytes > budget)
            return pe_file_fail(err, POSENC_FORMAT, origin, "with it the tensors hold more than %lld bytes",
                                (long long)PE_MAX_BYTES);
        budget -= bytes;
    }
    if (at != data)
        return pe_file_fail(err, POSENC_FORMAT, whole,
                            "its header asks for %lld bytes of data but %lld follow: it is %s", (long long)at,
                            (long long)data, at > data ? "cut" : "longer than it should be");
    return POSENC_OK;
}

static posenc_status read_header(header *h, const pe_stream *s, posenc_error *err)
{
    const char   *path   = s->origin.path;
    char         *text   = NULL;
    int64_t       length = 0;
    posenc_status status = read_text(&text, &length, s, err);
    if (status)
        return status;
    status = parse_text(h, text, (size_t)length, path, err);
    free(text);
    if (status || (status = read_entries(h, path, err)))
        return status;
    qsort(h->entries, h->count, sizeof *h->entries, by_offset);
    return check_cover(h, s->size - PREFIX - length, path, err);
}

/* ---------------------------------------------------------------- the data ------------------ */

static posenc_status read_tensor(posenc_arrays *set, const entry *e, const pe_stream *s, posenc_error *err)
{
    posenc_tensor *tensor = posenc_arrays_add(set, e->name, e->type->dtype, e->ndim, e->shape);
    if (!tensor)
        return pe_file_fail(err, POSENC_MEMORY, s->origin, "no memory for its %lld elements",
                            (long long)e->count);
    const posenc_status status = pe_stream_read(tensor->data, e->end - e->begin, s, err);
    if (!status && e->type->convert)
        e->type->convert(tensor->data, e->count);
    return status;
}

int pe_is_safetensors(const unsigned char first[PE_SAFETENSORS_MAGIC])
{
    static const unsigned char none[4] = {0};
    /* 100 000 000 needs four bytes; the other four are version, flags and method of a zip member, never 0
       all */
    return !memcmp(first + 4, none, sizeof none) && first[PREFIX] == '{';
}

posenc_status pe_safetensors_read(posenc_arrays *set, const pe_stream *stream, posenc_error *err)
{
    header        h      = {0};
    posenc_arrays read   = {0};
    posenc_status status = read_header(&h, stream, err);
    for (size_t i = 0; !status && i < h.count; i++) {
        pe_stream s     = *stream;
        s.origin.member = h.entries[i].name;
        status          = read_tensor(&read, &h.entries[i], &s, err);
    }
    free_header(&h);
    if (status)
        posenc_arrays_free(&read);
    else
        *set = read;
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * safetensors: named tensors as model checkpoints carry them
 *
 * The file  8 bytes: length N of the header, little-endian; N bytes of JSON that begin with '{' and may
 *           end in spaces; the data. Each key of the header names a tensor {dtype, shape, data_offsets},
 *           offsets counted from the first byte after the header; __metadata__ holds texts.
 * Rules     N is at most 100 000 000; no key appears twice; every byte of the data belongs to exactly one
 *           tensor, so sorted by offset each begins where the one before ends, and the last ends the
 *           file. Tensors without axes or without elements are allowed. Further members of a tensor's
 *           entry are passed over, as the original reader does.
 * Types     Those a posenc_tensor can hold (I32 and BOOL are converted); others, among them the 8-bit
 *           floats, are refused by their name, even where nobody would have asked for that tensor: a set
 *           that silently lacks one is worse.
 * Checked   Whoever asks a checkpoint about positions wants no tensors: only the header is read, they
 *           may have any type (fp8 checkpoints are common) and any size, and the rules are the same.
 * Surprise  Since there are no holes, reading in the order of the offsets never seeks.
 * Source    huggingface/safetensors, README.md (format) and safetensors/src/tensor.rs (Metadata::validate)
 */
#include "files/arrays/checkpoint.h"
#include "files/arrays/formats.h"
#include "files/arrays/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8, LONGEST_HEADER = 100000000, LONGEST_CHECKED = 16 << 20, MOST_AXES_CHECKED = 64 };

/* ---------------------------------------------------------------- element types ------------- */

typedef struct tensor_type {
    const char  *name;
    int64_t      bits;
    int          is_held; /* by a posenc_tensor */
    posenc_dtype dtype;
} tensor_type;

/* The last row is for those that are not known, whose size is not checked. */
static const tensor_type types[] = {
    {"F64", 64, 1, POSENC_DTYPE_F64},
    {"F32", 32, 1, POSENC_DTYPE_F32},
    {"F16", 16, 1, POSENC_DTYPE_F16},
    {"BF16", 16, 1, POSENC_DTYPE_BF16},
    {"I64", 64, 1, POSENC_DTYPE_I64},
    {"I32", 32, 1, POSENC_DTYPE_I64},
    {"U8", 8, 1, POSENC_DTYPE_U8},
    {"BOOL", 8, 1, POSENC_DTYPE_U8},
    {"U64 C64", 64, 0, 0},
    {"U32", 32, 0, 0},
    {"I16 U16", 16, 0, 0},
    {"I8 F8_E4M3 F8_E5M2 F8_E8M0", 8, 0, 0},
    {"F4", 4, 0, 0},
    {NULL, 0, 0, 0},
};

/* ---------------------------------------------------------------- one tensor's entry -------- */

typedef struct entry {
    const char        *name, *dtype; /* the header's own */
    const tensor_type *type;
    int32_t            ndim;
    int64_t            shape[POSENC_MAX_DIMS];
    int64_t            count; /* of elements */
    int64_t            begin, end;
} entry;

typedef struct tensors_header {
    const pe_stream *stream;
    posenc_error    *err;
    int              is_checked; /* any types and sizes; no tensor will be read */
    char            *text;       /* of the header, length bytes */
    int64_t          length;
    json_t          *json;    /* owns the names */
    entry           *entries; /* sorted by offset */
    size_t           count;
} tensors_header;

/* Where an entry is wrong; NULL: the header itself. */
static pe_origin at(const tensors_header *h, const char *name)
{
    return (pe_origin){h->stream->origin.path, name};
}

/* A whole number from 0. Every size, also a sum of sizes that pass, stays far below what overflows. */
static int take_size(const json_t *value, int64_t *size)
{
    *size = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *size >= 0 && *size <= INT64_MAX / 8;
}

static posenc_status read_type(const tensors_header *h, entry *e, const json_t *value)
{
    const char *name = json_string_value(value);
    if (!name)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                            "its \"dtype\" is missing or not a string");
    e->dtype = name;
    e->type  = types;
    while (e->type->name && !pe_text_is_among(e->type->name, name))
        e->type++;
    if (!e->type->is_held && !h->is_checked)
        return pe_file_fail(
            h->err, POSENC_ERROR_FORMAT, at(h, e->name),
            "its type is %.20s; F64, F32, F16, BF16, I64, I32, U8 and BOOL are read: convert it first", name);
    return POSENC_OK;
}

/* As in an .npy, the product must not overflow even where a size of 0 would hide it. */
static posenc_status read_shape(const tensors_header *h, entry *e, const json_t *list)
{
    const size_t  most_axes = h->is_checked ? MOST_AXES_CHECKED : POSENC_MAX_DIMS;
    const int64_t most      = h->is_checked ? INT64_MAX / 256 : PE_MAX_BYTES / 8;
    size_t        i;
    json_t       *value;
    int64_t       size, product = 1;
    if (!json_is_array(list))
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                            "its \"shape\" is missing or not a list");
    if (json_array_size(list) > most_axes)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                            "it has %zu axes; at most %zu are read", json_array_size(list), most_axes);
    e->ndim  = (int32_t)json_array_size(list);
    e->count = 1;
    json_array_foreach(list, i, value)
    {
        if (!take_size(value, &size))
            return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                                size < 0 ? "size %zu of its shape is not a whole number from 0"
                                         : "size %zu of its shape is too large to be read",
                                i);
        if (size > most / product)
            return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                                "its shape holds more than %lld elements, the most that are read",
                                (long long)most);
        product *= size ? size : 1;
        e->count *= size;
        if (i < POSENC_MAX_DIMS)
            e->shape[i] = size;
    }
    return POSENC_OK;
}

static posenc_status read_offsets(const tensors_header *h, entry *e, const json_t *pair)
{
    if (json_array_size(pair) != 2 || !take_size(json_array_get(pair, 0), &e->begin) ||
        !take_size(json_array_get(pair, 1), &e->end) || e->end < e->begin)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                            "its \"data_offsets\" are not two whole numbers [begin, end]");
    const int64_t bits = e->count * e->type->bits;
    if (e->type->bits && 8 * (e->end - e->begin) != bits)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                            "its \"data_offsets\" hold %lld bytes but its shape and type ask for %lld",
                            (long long)(e->end - e->begin), (long long)(bits + 7) / 8);
    return POSENC_OK;
}

static posenc_status read_entry(const tensors_header *h, entry *e, const char *name, const json_t *object)
{
    posenc_status status;
    *e = (entry){.name = name};
    if (!json_is_object(object))
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, name),
                            "its entry is not an object of dtype, shape and data_offsets");
    if ((status = read_type(h, e, json_object_get(object, "dtype"))) ||
        (status = read_shape(h, e, json_object_get(object, "shape"))))
        return status;
    return read_offsets(h, e, json_object_get(object, "data_offsets"));
}

/* ---------------------------------------------------------------- the header ---------------- */

static const char metadata_key[] = "__metadata__";

static posenc_status check_metadata(const tensors_header *h, const json_t *object)
{
    const char *key;
    json_t     *value;
    if (!json_is_object(object))
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, metadata_key),
                            "it is not an object of strings");
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!json_is_string(value))
            return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, metadata_key),
                                "the value of \"%.40s\" is not a string", key);
    }
    return POSENC_OK;
}

/* Reads the length and the text of the header. */
static posenc_status read_text(tensors_header *h)
{
    const pe_stream *s       = h->stream;
    const int        longest = h->is_checked ? LONGEST_CHECKED : LONGEST_HEADER;
    uint64_t         n;
    posenc_status    status;
    if (s->size < PREFIX)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, s->origin,
                            "it has %lld bytes; a .safetensors file begins with 8 bytes of header length",
                            (long long)s->size);
    if ((status = pe_file_read_stream(&n, PREFIX, s, h->err)))
        return status;
    if (n > (uint64_t)longest)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, s->origin,
                            "its header would have %llu bytes; a %s at most %d", (unsigned long long)n,
                            h->is_checked ? "header may have" : ".safetensors header has", longest);
    if ((int64_t)n > s->size - PREFIX)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, s->origin,
                            "its header has %lld bytes but only %lld follow: it is truncated", (long long)n,
                            (long long)(s->size - PREFIX));
    h->length = (int64_t)n;
    h->text   = calloc((size_t)n + 1, 1);
    if (!h->text)
        return pe_file_fail(h->err, POSENC_ERROR_MEMORY, s->origin, "not enough memory for its header");
    status = pe_file_read_stream(h->text, h->length, s, h->err);
    if (!status && !h->is_checked && (n == 0 || *h->text != '{'))
        status = pe_file_fail(h->err, POSENC_ERROR_FORMAT, s->origin,
                              "its header does not begin with '{': it is not a .safetensors file");
    return status;
}

static posenc_status parse_text(tensors_header *h)
{
    json_error_t why;
    h->json = pe_json_load(h->text, (size_t)h->length, &why);
    if (!h->json)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, h->stream->origin,
                            "its header: line %d, column %d: %s", why.line, why.column, why.text);
    return json_is_object(h->json)
               ? POSENC_OK
               : pe_file_fail(h->err, POSENC_ERROR_FORMAT, h->stream->origin, "its header is not an object");
}

static posenc_status read_entries(tensors_header *h)
{
    const char   *name;
    json_t       *object;
    posenc_status status;
    h->entries = calloc(json_object_size(h->json) + 1, sizeof *h->entries);
    if (!h->entries)
        return pe_file_fail(h->err, POSENC_ERROR_MEMORY, h->stream->origin,
                            "not enough memory for its header");
    json_object_foreach(h->json, name, object)
    {
        status = strcmp(name, metadata_key) ? read_entry(h, &h->entries[h->count++], name, object)
                                            : check_metadata(h, object);
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

/* No holes, no overlaps, nothing after the last, and no more than is read. */
static posenc_status check_cover(const tensors_header *h, int64_t data)
{
    int64_t end    = 0;
    int64_t budget = h->is_checked ? INT64_MAX : PE_MAX_BYTES;
    for (size_t i = 0; i < h->count; i++) {
        const entry  *e     = &h->entries[i];
        const int64_t bytes = h->is_checked ? 0 : e->count * (int64_t)posenc_dtype_size(e->type->dtype);
        if (e->begin != end)
            return pe_file_fail(
                h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                "its data begin at byte %lld but the tensor before ends at %lld: the file has %s",
                (long long)e->begin, (long long)end, e->begin > end ? "a hole" : "an overlap");
        end = e->end;
        if (bytes > budget)
            return pe_file_fail(h->err, POSENC_ERROR_FORMAT, at(h, e->name),
                                "with this tensor the file holds more than %lld bytes",
                                (long long)PE_MAX_BYTES);
        budget -= bytes;
    }
    if (end != data)
        return pe_file_fail(h->err, POSENC_ERROR_FORMAT, h->stream->origin,
                            "its header asks for %lld bytes of data but %lld follow: it is %s",
                            (long long)end, (long long)data,
                            end > data ? "truncated" : "longer than it should be");
    return POSENC_OK;
}

/* What it took is freed by free_header, whatever comes out. */
static posenc_status read_header(tensors_header *h)
{
    posenc_status status = read_text(h);
    if (!status)
        status = parse_text(h);
    if (status || (status = read_entries(h)))
        return status;
    qsort(h->entries, h->count, sizeof *h->entries, by_offset);
    return check_cover(h, h->stream->size - PREFIX - h->length);
}

static void free_header(tensors_header *h)
{
    free(h->text);
    free(h->entries);
    json_decref(h->json);
}

posenc_status pe_safetensors_check(const pe_stream *stream, posenc_error *err)
{
    tensors_header      h      = {.stream = stream, .err = err, .is_checked = 1};
    const posenc_status status = read_header(&h);
    free_header(&h);
    return status;
}

/* ---------------------------------------------------------------- the data ------------------ */

static posenc_status read_tensor(posenc_arrays *set, const entry *e, const pe_stream *s, posenc_error *err)
{
    posenc_tensor *tensor = posenc_arrays_add(set, e->name, e->type->dtype, e->ndim, e->shape);
    if (!tensor)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, s->origin, "not enough memory for its %lld elements",
                            (long long)e->count);
    const posenc_status status = pe_file_read_stream(tensor->data, e->end - e->begin, s, err);
    if (!status && !strcmp(e->type->name, "I32"))
        pe_npy_widen(tensor->data, tensor->data, e->count, sizeof(int32_t), 1);
    if (!status && !strcmp(e->type->name, "BOOL"))
        pe_npy_booleans(tensor->data, e->count);
    return status;
}

int pe_safetensors_begins(const unsigned char first[PE_SAFETENSORS_MAGIC])
{
    static const unsigned char none[4] = {0};
    /* 100 000 000 needs four bytes; the other four are version, flags and method of a zip member, never 0
       all */
    return !memcmp(first + 4, none, sizeof none) && first[PREFIX] == '{';
}

posenc_status pe_safetensors_read(posenc_arrays *set, const pe_stream *stream, posenc_error *err)
{
    tensors_header h      = {.stream = stream, .err = err};
    posenc_status  status = read_header(&h);
    for (size_t i = 0; !status && i < h.count; i++) {
        pe_stream s     = *stream;
        s.origin.member = h.entries[i].name;
        status          = read_tensor(set, &h.entries[i], &s, err);
    }
    free_header(&h);
    return status;
}

/* ---------------------------------------------------------------- some of them -------------- */

static posenc_status pick_tensor(posenc_arrays *set, const entry *e, int64_t data, pe_stream s,
                                 posenc_error *err)
{
    s.origin.member = e->name;
    if (!e->type->is_held || e->ndim > POSENC_MAX_DIMS || e->end - e->begin > PE_MAX_BYTES)
        return pe_file_fail(
            err, POSENC_ERROR_FORMAT, s.origin,
            "its type is %.20s and it has %d axes; a tensor of F64, F32, F16 or BF16 with at most %d "
            "axes and 4 GiB is needed",
            e->type->name ? e->type->name : "not known", e->ndim, POSENC_MAX_DIMS);
    if (fseeko(s.from, (off_t)(data + e->begin), SEEK_SET))
        return pe_file_fail(err, POSENC_ERROR_FILE, s.origin, "it cannot be read: %s", pe_file_reason(errno));
    return read_tensor(set, e, &s, err);
}

posenc_status pe_safetensors_pick(posenc_arrays *set, FILE *stream, int64_t size, const char *path,
                                  const pe_picker *wanted, posenc_error *err)
{
    const pe_stream s      = pe_file_stream(stream, size, path);
    tensors_header  h      = {.stream = &s, .err = err, .is_checked = 1};
    posenc_status   status = read_header(&h);
    const int64_t   data   = status ? 0 : (int64_t)ftello(stream);
    for (size_t i = 0; !status && i < h.count; i++)
        if (wanted->wants(wanted->context, h.entries[i].name))
            status = pick_tensor(set, &h.entries[i], data, s, err);
    free_header(&h);
    return status;
}

/* ---------------------------------------------------------------- as it lies ---------------- */

/* Where a tensor lies, and what it is; further axes than a posenc_tensor has are not listed. */
static pe_checkpoint_tensor placed(const tensors_header *h, const entry *e)
{
    pe_checkpoint_tensor t = {.name  = e->name,
                              .type  = e->dtype,
                              .bits  = e->type->bits,
                              .ndim  = e->ndim,
                              .begin = PREFIX + h->length + e->begin,
                              .bytes = e->end - e->begin};
    memcpy(t.shape, e->shape, sizeof t.shape);
    return t;
}

posenc_status pe_checkpoint_open(pe_checkpoint *c, const char *path, posenc_error *err)
{
    tensors_header h     = {.err = err, .is_checked = 1};
    *c                   = (pe_checkpoint){.path = path};
    posenc_status status = pe_file_open_found(&c->stream, &c->size, path, err);
    if (status)
        return status;
    const pe_stream stream = pe_file_stream(c->stream, c->size, path);
    h.stream               = &stream;
    status                 = read_header(&h);
    c->tensors             = status ? NULL : calloc(h.count + 1, sizeof *c->tensors);
    if (!status && !c->tensors)
        status = pe_file_fail(err, POSENC_ERROR_MEMORY, stream.origin, "not enough memory for its header");
    for (size_t i = 0; !status && i < h.count; i++)
        c->tensors[c->count++] = placed(&h, &h.entries[i]);
    c->data   = PREFIX + h.length;
    c->header = h.text;
    c->json   = h.json;
    h.text    = NULL;
    h.json    = NULL;
    free_header(&h);
    if (status)
        pe_checkpoint_close(c);
    return status;
}

void pe_checkpoint_close(pe_checkpoint *c)
{
    pe_file_close(c->stream);
    free(c->header);
    free(c->tensors);
    json_decref(c->json);
    *c = (pe_checkpoint){0};
}

/* SPDX-License-Identifier: MIT */
/*
 * gguf.c: the GGUF container of llama.cpp
 *
 * The file  "GGUF", version (2 or 3), number of tensors and of values; the values, each a key, a type and
 *           what the type says; an entry per tensor; then, at the next multiple of general.alignment (32),
 *           the data. Little-endian; texts are a length of 8 bytes and their bytes.
 * Trust     None. A length is compared with what remains of the file before a byte of it is stored; the
 *           number of keys, their lengths and all numbers stored have bounds, so that the memory taken does
 *           not follow the file's wishes. A key or a tensor that appears twice is refused, a tensor that
 *           would lie beyond the end as well: the file is truncated.
 * Source    ggml, docs/gguf.md; block sizes: gguf-py, constants.py, GGML_QUANT_SIZES
 */
#include "files/gguf/gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_VALUES    = 1 << 16,
    MOST_TENSORS   = 1 << 20,
    MOST_STORED    = 1 << 20, /* numbers in lists, together */
    LONGEST_KEY    = 1024,
    LONGEST_TEXT   = 4096,
    BUFFER         = 1 << 16,
    MOST_ALIGNMENT = 1 << 20,
    DEEPEST        = 4 /* lists in lists */
};

/* ---------------------------------------------------------------- a cursor ------------------ */

typedef struct gguf_cursor {
    posenc_model    *model;
    const pe_source *source;
    int64_t          at; /* of the next byte */
    int64_t          from, filled;
    int64_t          stored; /* numbers in lists so far */
    unsigned char    buffer[BUFFER];
} gguf_cursor;

/* Are n more bytes there? */
static int has(gguf_cursor *c, uint64_t n, const char *what)
{
    const uint64_t remaining = (uint64_t)(c->source->size - c->at);
    if (c->model->status || n <= remaining)
        return !c->model->status;
    pe_build_refuse(c->model, "%s needs %llu bytes but %llu remain: it is truncated", what,
                    (unsigned long long)n, (unsigned long long)remaining);
    return 0;
}

static int fill(gguf_cursor *c)
{
    const int64_t remaining = c->source->size - c->at;
    c->from                 = c->at;
    c->filled =
        c->source->read_at(c->source->from, c->buffer, remaining < BUFFER ? remaining : BUFFER, c->at);
    if (c->filled <= 0)
        c->model->status = pe_file_fail(c->model->err, POSENC_ERROR_FILE, (pe_origin){c->source->path, NULL},
                                        "it cannot be read at byte %lld", (long long)c->at);
    return !c->model->status;
}

static void take(gguf_cursor *c, void *to, uint64_t n, const char *what)
{
    unsigned char *out = to;
    if (!has(c, n, what))
        return;
    while (n) {
        if ((c->at < c->from || c->at >= c->from + c->filled) && !fill(c))
            return;
        const uint64_t here = (uint64_t)(c->from + c->filled - c->at), some = n < here ? n : here;
        memcpy(out, c->buffer + (c->at - c->from), (size_t)some);
        out += some, n -= some, c->at += (int64_t)some;
    }
}

static void skip(gguf_cursor *c, uint64_t n, const char *what)
{
    if (has(c, n, what))
        c->at += (int64_t)n;
}

static uint64_t take_number(gguf_cursor *c, int bytes, const char *what)
{
    uint64_t x = 0;
    take(c, &x, (uint64_t)bytes, what);
    return c->model->status ? 0 : x;
}

/* A text of at most `longest` bytes; with `optional` a longer one is walked over, and NULL. */
static char *take_text(gguf_cursor *c, uint64_t longest, int is_optional, const char *what)
{
    const uint64_t n = take_number(c, 8, what);
    if (!has(c, n, what))
        return NULL;
    if (n > longest) {
        if (is_optional)
            skip(c, n, what);
        else
            pe_build_refuse(c->model, "%s has %llu bytes; at most %llu are read", what, (unsigned long long)n,
                            (unsigned long long)longest);
        return NULL;
    }
    char *text = pe_build_alloc(c->model, (size_t)n + 1);
    if (text)
        take(c, text, n, what);
    if (!c->model->status && memchr(text, '\0', (size_t)n))
        pe_build_refuse(c->model, "%s has a byte 0 in its text", what);
    return text;
}

/* ---------------------------------------------------------------- rows by name -------------- */

/* Values and tensors: their names stand first. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(gguf_cursor *c, void *rows, int64_t n, size_t size, const char *what)
{
    if (n)
        qsort(rows, (size_t)n, size, by_name);
    for (char *row = rows; --n > 0; row += size)
        if (!by_name(row, row + size))
            pe_build_refuse(c->model, "the %s %.60s appears twice", what, *(char **)(void *)row);
}

const pe_gguf_value *pe_gguf_find(const pe_gguf *g, const char *name)
{
    const size_t n = (size_t)g->value_count;
    return n ? bsearch(&name, g->values, n, sizeof *g->values, by_name) : NULL;
}

const pe_gguf_tensor *pe_gguf_tensor_of(const pe_gguf *g, const char *name)
{
    const size_t n = (size_t)g->tensor_count;
    return n ? bsearch(&name, g->tensors, n, sizeof *g->tensors, by_name) : NULL;
}

/* ---------------------------------------------------------------- values -------------------- */

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };

static const int widths[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static double number_of(uint64_t bits, uint32_t type)
{
    const uint32_t low = (uint32_t)bits;
    float          single;
    double         wide;
    switch (type) {
    case I8: return (int8_t)bits;
    case I16: return (int16_t)bits;
    case I32: return (int32_t)low;
    case I64: return (double)(int64_t)bits;
    case F32: memcpy(&single, &low, sizeof single); return (double)single;
    case F64: memcpy(&wide, &bits, sizeof wide); return wide;
    default: return (double)bits;
    }
}

static void skip_items(gguf_cursor *c, uint32_t type, uint64_t n, int depth)
{
    if (c->model->status)
        return;
    if (type >= TYPES || depth > DEEPEST)
        pe_build_refuse(c->model, "its metadata has a list of type %u, or lists in lists in lists", type);
    else if (widths[type])
        skip(c, n > UINT64_MAX / 8 ? UINT64_MAX : n * (uint64_t)widths[type], "a list");
    else if (has(c, n > UINT64_MAX / 8 ? UINT64_MAX : 8 * n,
                 "a list")) { /* each item has a length at least */
        for (uint64_t i = 0; !c->model->status && i < n; i++)
            if (type == STRING)
                skip(c, take_number(c, 8, "a text"), "a text");
            else {
                const uint32_t inner = (uint32_t)take_number(c, 4, "a list");
                skip_items(c, inner, take_number(c, 8, "a list"), depth + 1);
            }
    }
}

static void take_list(gguf_cursor *c, pe_gguf_value *v)
{
    const uint32_t type = (uint32_t)take_number(c, 4, v->name);
    const uint64_t n    = take_number(c, 8, v->name);
    v->kind             = PE_GGUF_OTHER;
    if (type >= TYPES || !widths[type] || n > (uint64_t)(MOST_STORED - c->stored)) {
        skip_items(c, type, n, 0);
        return;
    }
    if (!has(c, n * (uint64_t)widths[type], v->name))
        return;
    v->list = pe_build_alloc(c->model, (size_t)n * sizeof *v->list);
    for (uint64_t i = 0; v->list && i < n; i++)
        v->list[i] = number_of(take_number(c, widths[type], v->name), type);
    v->kind  = PE_GGUF_LIST;
    v->count = (int64_t)n;
    c->stored += (int64_t)n;
}

static void take_value(gguf_cursor *c, pe_gguf_value *v)
{
    v->name = take_text(c, LONGEST_KEY, 0, "the name of a value");
    if (c->model->status)
        return;
    const uint32_t type = (uint32_t)take_number(c, 4, v->name);
    if (type >= TYPES)
        pe_build_refuse(c->model, "%.60s is of type %u, which GGUF does not have", v->name, type);
    else if (type == STRING) {
        v->text = take_text(c, LONGEST_TEXT, 1, v->name);
        v->kind = v->text ? PE_GGUF_TEXT : PE_GGUF_OTHER;
    } else if (type == ARRAY)
        take_list(c, v);
    else {
        v->number = number_of(take_number(c, widths[type], v->name), type);
        v->kind   = type == BOOL ? PE_GGUF_FLAG : PE_GGUF_NUMBER;
    }
}

/* ---------------------------------------------------------------- tensors ------------------- */

/* Elements and bytes of a block; types that are not here are believed to be longer than nothing. */
static const struct {
    int elements, bytes;
} blocks[] = {
    {1, 4},    {1, 2},    {32, 18},   {32, 20},   {0, 0},     {0, 0},     {32, 22},   {32, 24},  {32, 34},
    {32, 40},  {256, 84}, {256, 110}, {256, 144}, {256, 176}, {256, 210}, {256, 292}, {256, 66}, {256, 74},
    {256, 98}, {256, 50}, {32, 18},   {256, 110}, {256, 82},  {256, 136}, {1, 1},     {1, 2},    {1, 4},
    {1, 8},    {1, 8},    {256, 56},  {1, 2},     {0, 0},     {0, 0},     {0, 0},     {256, 54}, {256, 66},
    {0, 0},    {0, 0},    {0, 0},     {32, 17},   {64, 36},   {128, 18},
};

static uint64_t bytes_of(const pe_gguf_tensor *t, uint64_t elements)
{
    const size_t known = sizeof blocks / sizeof *blocks;
    if (t->type >= known || !blocks[t->type].elements)
        return 0;
    return elements / (uint64_t)blocks[t->type].elements * (uint64_t)blocks[t->type].bytes;
}

static uint64_t take_shape(gguf_cursor *c, pe_gguf_tensor *t)
{
    const uint32_t n        = (uint32_t)take_number(c, 4, t->name);
    uint64_t       elements = 1;
    if (n > 4)
        pe_build_refuse(c->model, "tensor %.60s has %u axes; GGUF has at most 4", t->name, n);
    for (uint32_t a = 0; !c->model->status && a < n; a++) {
        const uint64_t size = take_number(c, 8, t->name);
        if (size > INT64_MAX / 512 / (elements ? elements : 1))
            pe_build_refuse(c->model, "the sizes of tensor %.60s overflow", t->name);
        elements *= size;
        t->shape[a] = (int64_t)size;
    }
    t->ndim = (int)n;
    return elements;
}

/* What a tensor's data need from the first byte of all data. */
static uint64_t take_tensor(gguf_cursor *c, pe_gguf_tensor *t)
{
    t->name = take_text(c, LONGEST_KEY, 0, "the name of a tensor");
    if (c->model->status)
        return 0;
    const uint64_t elements = take_shape(c, t);
    t->type                 = (uint32_t)take_number(c, 4, t->name);
    t->at                   = take_number(c, 8, t->name);
    if (t->at > INT64_MAX / 4)
        pe_build_refuse(c->model, "tensor %.60s begins at byte %llu of the data: it is truncated", t->name,
                        (unsigned long long)t->at);
    return t->at + bytes_of(t, elements);
}

/* Data begin at multiples of it. */
static int64_t alignment_of(gguf_cursor *c, const pe_gguf *g)
{
    const pe_gguf_value *v = pe_gguf_find(g, "general.alignment");
    const double         x = v && v->kind == PE_GGUF_NUMBER ? v->number : v ? 0 : 32;
    if (!(x >= 1 && x <= MOST_ALIGNMENT && x == floor(x) && ((uint32_t)x & ((uint32_t)x - 1)) == 0)) {
        pe_build_refuse(c->model, "general.alignment is not a power of two from 1 to %d", MOST_ALIGNMENT);
        return 1;
    }
    return (int64_t)x;
}

/* Tensors of the layers, but for sinks, say nothing that is asked here: they are checked, not stored. */
static void take_tensors(gguf_cursor *c, pe_gguf *g, uint64_t count)
{
    const int64_t step = alignment_of(c, g);
    uint64_t      need = 0;
    g->tensors         = pe_build_alloc(c->model, (size_t)count * sizeof *g->tensors);
    for (uint64_t i = 0; !c->model->status && i < count; i++) {
        pe_gguf_tensor one = {0};
        const uint64_t end = take_tensor(c, &one);
        need               = end > need ? end : need;
        if (!c->model->status && one.at % (uint64_t)step)
            pe_build_refuse(
                c->model,
                "tensor %.60s begins at byte %llu of the data, not a multiple of the alignment %lld",
                one.name, (unsigned long long)one.at, (long long)step);
        if (!c->model->status &&
            (strncmp(one.name, "blk.", 4) != 0 || pe_text_ends_with(one.name, ".attn_sinks.weight")))
            g->tensors[g->tensor_count++] = one;
    }
    const int64_t data  = (c->at + step - 1) / step * step;
    const int64_t there = c->source->size > data ? c->source->size - data : 0;
    if (count && need > (uint64_t)there)
        pe_build_refuse(c->model,
                        "its tensors need %llu bytes after the header but %lld are there: it is truncated",
                        (unsigned long long)need, (long long)there);
    for (int64_t i = 0; i < g->tensor_count; i++)
        g->tensors[i].at += (uint64_t)data;
    if (!c->model->status)
        sort(c, g->tensors, g->tensor_count, sizeof *g->tensors, "tensor");
}

/* ---------------------------------------------------------------- the file ------------------ */

void pe_gguf_read(pe_gguf *g)
{
    char        magic[4] = "";
    gguf_cursor all, *c = &all;
    all.model = g->model, all.source = g->source;
    all.at = all.from = all.filled = all.stored = 0;
    take(c, magic, sizeof magic, "its magic");
    const uint32_t version = (uint32_t)take_number(c, 4, "its version");
    if (memcmp(magic, "GGUF", 4) != 0)
        pe_build_refuse(c->model, "it does not begin with GGUF, as such a file does");
    if (version < 2 || version > 3)
        pe_build_refuse(c->model, "it is GGUF of version %u (big-endian, perhaps); 2 and 3 are read",
                        version);
    const uint64_t tensors = take_number(c, 8, "its number of tensors"),
                   values  = take_number(c, 8, "its number of values");
    /* an entry has 24 bytes at least, a value 13 */
    if (values > MOST_VALUES || tensors > MOST_TENSORS || !has(c, values * 13, "its metadata") ||
        !has(c, tensors * 24, "its list of tensors"))
        pe_build_refuse(c->model,
                        "it would have %llu values and %llu tensors; at most %d and %d are accepted",
                        (unsigned long long)values, (unsigned long long)tensors, MOST_VALUES, MOST_TENSORS);
    g->values = c->model->status ? NULL : pe_build_alloc(c->model, (size_t)values * sizeof *g->values);
    for (uint64_t i = 0; !c->model->status && i < values; i++)
        take_value(c, &g->values[g->value_count++]);
    if (!c->model->status)
        sort(c, g->values, g->value_count, sizeof *g->values, "key");
    if (!c->model->status)
        take_tensors(c, g, tensors);
}

static posenc_status read_floats(double *to, int64_t count, const pe_gguf_tensor *tensor, const pe_gguf *g)
{
    const pe_source *source = g->source;
    const pe_origin  origin = {source->path, tensor->name};
    posenc_error    *err    = g->model->err;
    if (tensor->type != 0)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin, "it is of type %u; it must be F32 (0)",
                            tensor->type);
    if (tensor->ndim != 1 || tensor->shape[0] != count)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, origin,
                            "it has %lld numbers on %d axes; it must have one for each of %lld pairs",
                            (long long)tensor->shape[0], tensor->ndim, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        float x;
        if (source->read_at(source->from, &x, sizeof x, (int64_t)tensor->at + 4 * i) != sizeof x)
            return pe_file_fail(err, POSENC_ERROR_FILE, origin, "it cannot be read");
        to[i] = (double)x;
    }
    return POSENC_OK;
}

const double *pe_gguf_floats(const pe_gguf *g, const char *name, int64_t count)
{
    const pe_gguf_tensor *tensor = pe_gguf_tensor_of(g, name);
    double *x = !tensor || g->model->status ? NULL : pe_build_alloc(g->model, (size_t)count * sizeof *x);
    if (x)
        g->model->status = read_floats(x, count, tensor, g);
    for (int64_t i = 0; x && !g->model->status && i < count; i++)
        if (!(x[i] > 0 && isfinite(x[i])))
            pe_build_refuse(g->model, "%s holds %g at place %lld; it must hold finite numbers above 0", name,
                            x[i], (long long)i);
    return g->model->status ? NULL : x;
}

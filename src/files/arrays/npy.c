/* SPDX-License-Identifier: MIT */
/*
 * npy: NumPy's format for one array
 *
 * The idea  "\x93NUMPY", two bytes of version, the length of a header (16 bits in version 1, 32 in
 *           2 and 3), the header - a Python dictionary {'descr': '<f8', 'fortran_order': False,
 *           'shape': (3, 4), } padded with blanks and ended by a newline - and the elements.
 * Strict    The dictionary must have exactly these three keys. What follows the elements is an
 *           error, and so is a stream that ends before them: a cut file must not become a shorter
 *           array.
 * Types     What the library computes with stays as it is; every other integer widens to int64, a
 *           boolean becomes U8. Complex numbers become an axis of two real ones, as they lie in
 *           memory. Big-endian numbers, objects (pickles), records and texts are refused.
 * Surprise  Fortran order transposes the data, not the shape: element (i,j) of a (3,4) array stands at i
 *           + 3 j. It becomes C order here, so that no caller has to know.
 * Source    NumPy Enhancement Proposal 1; numpy/lib/format.py
 */
#include "files/arrays/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 65536 };

void pe_npy_widen(void *to, const void *from, int64_t n, int64_t size, int is_signed)
{
    const int unused = 64 - 8 * (int)size;
    for (int64_t i = n - 1; i >= 0; i--) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)from + i * size, (size_t)size);
        ((int64_t *)to)[i] = is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
    }
}

void pe_npy_booleans(void *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((unsigned char *)data)[i] = ((unsigned char *)data)[i] != 0;
}

/* What follows the byte order in `descr`. Of complex numbers (c) dtype is that of a part. Integers
   narrower than their dtype are widened. */
typedef struct npy_type {
    char         code[4];
    posenc_dtype dtype;
    int64_t      size; /* in the file */
} npy_type;

static const npy_type types[] = {
    {"f8", POSENC_DTYPE_F64, 8},   {"f4", POSENC_DTYPE_F32, 4}, {"f2", POSENC_DTYPE_F16, 2},
    {"i8", POSENC_DTYPE_I64, 8},   {"i4", POSENC_DTYPE_I64, 4}, {"i2", POSENC_DTYPE_I64, 2},
    {"i1", POSENC_DTYPE_I64, 1},   {"u4", POSENC_DTYPE_I64, 4}, {"u2", POSENC_DTYPE_I64, 2},
    {"u1", POSENC_DTYPE_U8, 1},    {"b1", POSENC_DTYPE_U8, 1},  {"c8", POSENC_DTYPE_F32, 8},
    {"c16", POSENC_DTYPE_F64, 16},
};

static int is_complex(const npy_type *t)
{
    return t->code[0] == 'c';
}

typedef struct npy_header {
    const npy_type *type;
    int             is_fortran;
    int32_t         ndim;
    int64_t         shape[POSENC_MAX_DIMS];
    int64_t         count; /* of elements */
} npy_header;

/* ---------------------------------------------------------------- the header's text --------- */

typedef struct npy_cursor {
    const char   *at, *end;
    pe_origin     origin;
    posenc_error *err;
} npy_cursor;

static posenc_status malformed(const npy_cursor *c)
{
    return pe_file_fail(
        c->err, POSENC_ERROR_FORMAT, c->origin,
        "its .npy header is not a dictionary of descr, fortran_order and shape; save it with NumPy");
}

static void skip_blanks(npy_cursor *c)
{
    while (c->at < c->end && *c->at == ' ')
        c->at++;
}

static int take(npy_cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return 0;
    c->at++;
    return 1;
}

static int take_word(npy_cursor *c, const char *word)
{
    const size_t n = strlen(word);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n))
        return 0;
    c->at += n;
    return 1;
}

/* A quoted text without escapes, which no key or type of ours needs. */
static int take_text(npy_cursor *c, const char **text, size_t *length)
{
    const char quote = take(c, '\'') ? '\'' : take(c, '"') ? '"' : '\0';
    *text            = c->at;
    const char *end  = quote ? memchr(c->at, quote, (size_t)(c->end - c->at)) : NULL;
    if (!end)
        return 0;
    *length = (size_t)(end - c->at);
    c->at   = end + 1;
    return !memchr(*text, '\\', *length);
}

static int take_size(npy_cursor *c, int64_t *size)
{
    int digits = 0;
    skip_blanks(c);
    for (*size = 0; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, digits++) {
        if (*size > (INT64_MAX - 9) / 10)
            return 0;
        *size = 10 * *size + (*c->at - '0');
    }
    return digits > 0;
}

static posenc_status refuse_type(const npy_cursor *c, const char *descr, int n)
{
    const char *why =
        n > 0 && descr[0] == '>' ? "big-endian; convert it with .astype('<f8')"
        : n > 1 && (descr[0] == '|' && descr[1] == 'O')
            ? "Python objects, which are never loaded"
            : "not a real, integer or boolean type of up to 8 bytes, nor a complex one of 8 or 16";
    return pe_file_fail(c->err, POSENC_ERROR_FORMAT, c->origin, "its elements '%.*s' are %s", n > 16 ? 16 : n,
                        descr, why);
}

static posenc_status read_descr(npy_cursor *c, npy_header *h)
{
    const char *text;
    size_t      n;
    if (!take_text(c, &text, &n))
        return take(c, '[') ? refuse_type(c, "[...]", 5) : malformed(c);
    for (size_t i = 0; n > 1 && i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].code) == n - 1 && !memcmp(text + 1, types[i].code, n - 1) &&
            (text[0] == '<' || (types[i].size == 1 && text[0] == '|')))
            h->type = &types[i];
    return h->type ? POSENC_OK : refuse_type(c, text, (int)(n > 16 ? 16 : n));
}

static posenc_status read_order(npy_cursor *c, npy_header *h)
{
    h->is_fortran = take_word(c, "True");
    return h->is_fortran || take_word(c, "False") ? POSENC_OK : malformed(c);
}

/* "()", "(3,)", "(3, 4)": a comma must follow each size but the last, and a single one. */
static posenc_status read_shape(npy_cursor *c, npy_header *h)
{
    int64_t size;
    if (!take(c, '('))
        return malformed(c);
    for (int comma = 1; !take(c, ')'); comma = take(c, ',')) {
        if (!comma || !take_size(c, &size))
            return malformed(c);
        if (h->ndim == POSENC_MAX_DIMS)
            return pe_file_fail(c->err, POSENC_ERROR_FORMAT, c->origin,
                                "it has more than %d axes, the most that are read", POSENC_MAX_DIMS);
        h->shape[h->ndim++] = size;
        skip_blanks(c);
        if (h->ndim == 1 && c->at < c->end && *c->at == ')')
            return malformed(c);
    }
    return POSENC_OK;
}

static const struct {
    const char *name;
    posenc_status (*read)(npy_cursor *c, npy_header *h);
} keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};

enum { KEYS = sizeof keys / sizeof *keys };

static posenc_status read_dictionary(npy_cursor *c, npy_header *h)
{
    unsigned seen = 0;
    if (!take(c, '{'))
        return malformed(c);
    for (int comma = 1; !take(c, '}'); comma = take(c, ',')) {
        const char *text;
        size_t      n;
        int         k = comma && take_text(c, &text, &n) ? 0 : KEYS;
        while (k < KEYS && (strlen(keys[k].name) != n || memcmp(keys[k].name, text, n) != 0))
            k++;
        if (k == KEYS || (seen & 1u << k) || !take(c, ':'))
            return malformed(c);
        seen |= 1u << k;
        const posenc_status status = keys[k].read(c, h);
        if (status)
            return status;
    }
    if (seen != (1u << KEYS) - 1 || !take(c, '\n') || c->at != c->end)
        return malformed(c);
    return POSENC_OK;
}

/* Number of elements, and whether it is one that can be: the product must not overflow even where a
   size of 0 would hide it, because strides are made of the other sizes. */
static posenc_status count_elements(const npy_cursor *c, npy_header *h)
{
    int64_t product = 1;
    h->count        = 1;
    if (is_complex(h->type) && h->ndim == POSENC_MAX_DIMS)
        return pe_file_fail(c->err, POSENC_ERROR_FORMAT, c->origin,
                            "it has %d axes; an array of complex numbers may have at most %d", h->ndim,
                            POSENC_MAX_DIMS - 1);
    for (int32_t a = 0; a < h->ndim; a++) {
        const int64_t size = h->shape[a] ? h->shape[a] : 1;
        if (size > PE_MAX_BYTES / 8 / product)
            return pe_file_fail(c->err, POSENC_ERROR_FORMAT, c->origin,
                                "its shape holds more than %lld elements, the most that are read",
                                (long long)(PE_MAX_BYTES / 8));
        product *= size;
        h->count *= h->shape[a];
    }
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the stream ---------------- */

/* Reads magic and version, then the length of the header. */
static posenc_status read_prefix(int64_t *used, int64_t *length, const pe_stream *s, posenc_error *err)
{
    unsigned char p[12] = {0};
    posenc_status status;
    if ((status = pe_file_read_stream(p, 8, s, err)))
        return status;
    if (memcmp(p, "\x93NUMPY", 6))
        return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin,
                            "it is not a .npy array: it does not begin with \\x93NUMPY");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin,
                            "its .npy version is %d.%d; versions 1.0, 2.0, 3.0 are read", p[6], p[7]);
    const int wide = p[6] == 1 ? 2 : 4;
    if ((status = pe_file_read_stream(p + 8, wide, s, err)))
        return status;
    *used   = 8 + wide;
    *length = (int64_t)p[8] | (int64_t)p[9] << 8 | (int64_t)p[10] << 16 | (int64_t)p[11] << 24;
    if (*length > MAX_HEADER)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin, "its header of %lld bytes is longer than %d",
                            (long long)*length, MAX_HEADER);
    return POSENC_OK;
}

static posenc_status read_header(npy_header *h, const pe_stream *s, posenc_error *err)
{
    int64_t       used = 0, length = 0;
    posenc_status status = read_prefix(&used, &length, s, err);
    if (status)
        return status;
    char *text = malloc((size_t)length + 1);
    if (!text)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, s->origin, "not enough memory for its header");
    npy_cursor c = {text, text + length, s->origin, err};
    if (!(status = pe_file_read_stream(text, length, s, err)) && !(status = read_dictionary(&c, h)))
        status = count_elements(&c, h);
    free(text);
    if (status)
        return status;

    const int64_t data = h->count * h->type->size, promised = s->size - used - length;
    if (data != promised)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin,
                            "its header asks for %lld bytes of elements but %lld follow: it is %s",
                            (long long)data, (long long)promised,
                            data > promised ? "truncated" : "longer than it should be");
    return POSENC_OK;
}

static posenc_status read_end(const pe_stream *s, posenc_error *err)
{
    char          more;
    const int64_t got = s->read(s->from, &more, 1);
    if (got < 0)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin, "it is damaged: %s", s->reason(s->from));
    if (got > 0)
        return pe_file_fail(err, POSENC_ERROR_FORMAT, s->origin, "it continues after the last element");
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the elements -------------- */

/* C order from Fortran order: `index` counts in C order, `at` follows with Fortran's strides. */
static void transpose(char *to, const char *from, const npy_header *h)
{
    const size_t item                   = (size_t)h->type->size;
    int64_t      index[POSENC_MAX_DIMS] = {0}, stride[POSENC_MAX_DIMS], step = 1;
    for (int32_t a = 0; a < h->ndim; a++) {
        stride[a] = step;
        step *= h->shape[a];
    }
    for (int64_t n = 0, at = 0; n < h->count; n++) {
        memcpy(to + (size_t)n * item, from + (size_t)at * item, item);
        for (int32_t a = h->ndim - 1; a >= 0; a--) {
            at += stride[a];
            if (++index[a] < h->shape[a])
                break;
            at -= index[a] * stride[a];
            index[a] = 0;
        }
    }
}

/* Replaces *data by C order and a type that is computed with; 0 without memory. */
static int convert(void **data, const npy_header *h)
{
    const int must_transpose = h->is_fortran && h->ndim > 1,
              must_widen     = h->type->dtype == POSENC_DTYPE_I64 && h->type->size < 8;
    if (h->type->code[0] == 'b')
        pe_npy_booleans(*data, h->count);
    if (!must_transpose && !must_widen)
        return 1;
    const int64_t each = must_widen ? (int64_t)sizeof(int64_t) : h->type->size;
    void         *made = pe_file_alloc(h->count, each);
    if (!made)
        return 0;
    if (must_transpose)
        transpose(made, *data, h);
    if (must_widen)
        pe_npy_widen(made, must_transpose ? made : *data, h->count, h->type->size, h->type->code[0] == 'i');
    free(*data);
    *data = made;
    return 1;
}

/* The array of what was read; a complex one has the axis of its parts at the end. */
static posenc_array array_of(void *data, const npy_header *h)
{
    posenc_array array = {.is_complex = is_complex(h->type)};
    int64_t      shape[POSENC_MAX_DIMS];
    memcpy(shape, h->shape, sizeof shape);
    if (array.is_complex)
        shape[h->ndim] = 2;
    array.tensor = posenc_tensor_contiguous(data, h->type->dtype, h->ndim + array.is_complex, shape);
    return array;
}

posenc_status pe_npy_read(posenc_array *array, const pe_stream *stream, posenc_error *err)
{
    npy_header    h      = {0};
    posenc_status status = read_header(&h, stream, err);
    if (status)
        return status;
    const int64_t bytes = h.count * h.type->size;
    void         *data  = pe_file_alloc(h.count, h.type->size);
    if (!data)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, stream->origin, "not enough memory for its %lld bytes",
                            (long long)bytes);
    status = pe_file_read_stream(data, bytes, stream, err);
    if (!status)
        status = read_end(stream, err);
    if (!status && !convert(&data, &h))
        status = pe_file_fail(err, POSENC_ERROR_MEMORY, stream->origin,
                              "not enough memory to convert its %lld elements", (long long)h.count);
    if (status)
        free(data);
    else
        *array = array_of(data, &h);
    return status;
}

/* ---------------------------------------------------------------- writing ------------------- */

static const char *descr_of(const posenc_array *array)
{
    static const char *const names[][2] = {
        [POSENC_DTYPE_F32] = {"<f4", "<c8"}, [POSENC_DTYPE_F64] = {"<f8", "<c16"},
        [POSENC_DTYPE_F16] = {"<f2"},        [POSENC_DTYPE_I64] = {"<i8"},
        [POSENC_DTYPE_I32] = {"<i4"},        [POSENC_DTYPE_U8] = {"|u1"}};
    const size_t dtype = (size_t)array->tensor.dtype;
    return dtype < sizeof names / sizeof *names ? names[dtype][array->is_complex != 0] : NULL;
}

posenc_status pe_npy_header(char to[PE_NPY_HEADER], size_t *length, const posenc_array *array,
                            pe_origin origin, posenc_error *err)
{
    const posenc_tensor *tensor = &array->tensor;
    const char          *descr  = descr_of(array);
    const int32_t        ndim   = array->is_complex ? tensor->ndim - 1 : tensor->ndim;
    if (array->is_complex && (!descr || ndim < 0 || tensor->shape[ndim] != 2))
        return pe_file_fail(err, POSENC_ERROR_ARGUMENT, origin,
                            "complex numbers must be F32 or F64 with a last axis of 2");
    if (!descr)
        return pe_file_fail(err, POSENC_ERROR_DTYPE, origin,
                            "NumPy's format has no type for bf16; convert it to f32");

    int n =
        snprintf(to + 10, PE_NPY_HEADER - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int32_t a = 0; a < ndim; a++)
        n += snprintf(to + 10 + n, PE_NPY_HEADER - 10 - (size_t)n, "%s%lld%s", a ? " " : "",
                      (long long)tensor->shape[a], a + 1 < ndim || ndim == 1 ? "," : "");
    n += snprintf(to + 10 + n, PE_NPY_HEADER - 10 - (size_t)n, "), }");

    const int whole = (10 + n + 1 + 63) / 64 * 64; /* NumPy aligns the elements to 64 bytes */
    memset(to + 10 + n, ' ', (size_t)(whole - 10 - n));
    to[whole - 1] = '\n';
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8]   = (char)((whole - 10) & 0xff);
    to[9]   = (char)((whole - 10) >> 8);
    *length = (size_t)whole;
    return POSENC_OK;
}

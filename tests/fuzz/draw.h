/* SPDX-License-Identifier: MIT */
/*
 * draw.h: a fuzzer's bytes as choices, and arrays of numbers as tensors of any type and strides
 *
 * Every choice takes a byte; where the bytes end every choice is the first. Numbers have four significant
 * bits, so that each storage type holds them exactly. A view is a tensor in a block of its own of exactly its
 * size: the sanitizer sees what is read or written beyond it, and what lies between the elements of an output
 * must be as it was. Every other block touches a page that nobody may touch, before it or behind it, so that
 * a program without a sanitizer sees the same.
 */
#ifndef TESTS_FUZZ_DRAW_H
#define TESTS_FUZZ_DRAW_H

#include <fcntl.h>
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/half.h"

/* ---- choices ---- */

typedef struct draw_source {
    const uint8_t *at;
    size_t         left;
    uint64_t       noise;
} draw_source;

static inline int64_t draw_below(draw_source *s, int64_t n)
{
    if (!s->left)
        return 0;
    s->left--;
    return *s->at++ % n;
}

/* One time in n; never where the bytes are used up. */
static inline int draw_chance(draw_source *s, int64_t n)
{
    return draw_below(s, n) == n - 1;
}

/* Numbers as they stand in an attack: small ones, and the edges of types. */
static inline int64_t draw_integer(draw_source *s)
{
    static const int64_t edges[] = {INT64_MAX,     INT64_MIN,        INT32_MAX,        INT32_MIN, 1 << 24,
                                    INT64_MAX / 2, INT64_C(1) << 53, INT64_C(1) << 31, 4096,      65536};
    return draw_chance(s, 4) ? edges[draw_below(s, sizeof edges / sizeof *edges)] : draw_below(s, 40) - 4;
}

static inline double draw_real(draw_source *s)
{
    static const double edges[] = {NAN,     INFINITY, -INFINITY, 1e308, -1e308, 1e-308, 0x1p53,
                                   -0x1p53, 1e18,     0.5,       1e9,   -0.25,  0x1p31, 3.75};
    return draw_chance(s, 4) ? edges[draw_below(s, sizeof edges / sizeof *edges)]
                             : (double)draw_below(s, 40) - 4;
}

/* Noise that takes no bytes: -1.75 .. 1.75 in steps of 0.25. */
static inline double draw_noise(draw_source *s)
{
    s->noise = s->noise * 6364136223846793005u + 1442695040888963407u;
    return 0.25 * (double)((int64_t)(s->noise >> 33) % 15 - 7);
}

/* ---- memory ---- */

enum { DRAW_ROOMS = 24, DRAW_PAGE = 1 << 16, DRAW_ROOM = 1 << 20 };

/* Rooms between forbidden pages, made once. */
typedef struct draw_house {
    unsigned char *first; /* NULL: none yet */
    int            is_taken[DRAW_ROOMS];
} draw_house;

static draw_house draw_rooms;

static inline unsigned char *draw_room(int i)
{
    return draw_rooms.first + (size_t)i * (DRAW_ROOM + DRAW_PAGE) + DRAW_PAGE;
}

static inline void draw_build(void)
{
    const size_t all   = (size_t)DRAW_ROOMS * (DRAW_ROOM + DRAW_PAGE) + DRAW_PAGE;
    const int    zeros = open("/dev/zero", O_RDWR); /* POSIX has no other memory for mmap */
    void *const  got   = mmap(NULL, all, PROT_NONE, MAP_PRIVATE, zeros, 0);
    if (zeros < 0 || got == MAP_FAILED)
        abort();
    close(zeros);
    draw_rooms.first = got;
    for (int i = 0; i < DRAW_ROOMS; i++)
        if (mprotect(draw_room(i), DRAW_ROOM, PROT_READ | PROT_WRITE))
            abort();
}

/* `bytes`, a multiple of what they are aligned to; where: 0 anywhere, 1 at the beginning of a room, else at
   its end. */
static inline void *draw_memory(size_t bytes, int where)
{
    if (!draw_rooms.first)
        draw_build();
    for (int i = 0; where && i < DRAW_ROOMS && bytes <= DRAW_ROOM; i++)
        if (!draw_rooms.is_taken[i]) {
            draw_rooms.is_taken[i] = 1;
            return draw_room(i) + (where == 1 ? 0 : DRAW_ROOM - bytes);
        }
    return malloc(bytes + !bytes);
}

static inline void draw_free(void *memory)
{
    for (int i = 0; i < DRAW_ROOMS; i++) /* a block of no bytes may lie at a room's end */
        if (draw_rooms.first && (unsigned char *)memory >= draw_room(i) &&
            (unsigned char *)memory <= draw_room(i) + DRAW_ROOM) {
            draw_rooms.is_taken[i] = 0;
            return;
        }
    free(memory);
}

/* ---- arrays ---- */

typedef struct draw_numbers {
    int32_t ndim, same; /* along which axis its numbers are the same, counted from 1; 0: none */
    int64_t shape[POSENC_MAX_DIMS], count;
    double *x; /* NULL: no array */
} draw_numbers;

static inline draw_numbers draw_array(int32_t ndim, const int64_t *shape)
{
    draw_numbers a = {.ndim = ndim, .count = 1};
    for (int32_t i = 0; i < ndim; i++)
        a.count *= a.shape[i] = shape[i];
    a.x = calloc((size_t)a.count + 1, sizeof *a.x);
    return a;
}

/* Every number along an axis becomes its first: what stride 0 stands for. */
static inline void draw_repeat(draw_numbers *a, int32_t axis)
{
    int64_t inner = 1;
    for (int32_t i = axis + 1; i < a->ndim; i++)
        inner *= a->shape[i];
    for (int64_t i = 0; i < a->count; i++)
        a->x[i] = a->x[i - i / inner % a->shape[axis] * inner];
    a->same = axis + 1;
}

static inline void draw_fill(draw_source *s, draw_numbers *a)
{
    s->noise += (uint64_t)draw_below(s, 256);
    for (int64_t i = 0; i < a->count; i++)
        a->x[i] = draw_noise(s);
    if (a->ndim > 1 && draw_chance(s, 8))
        draw_repeat(a, (int32_t)draw_below(s, a->ndim - 1));
}

/* ---- views ---- */

typedef struct draw_view {
    posenc_tensor  t;
    unsigned char *block;
    size_t         bytes;
} draw_view;

enum { DRAW_PATTERN = 0xa5, DRAW_BLOCK = 32 };

/* Where element `index` lies, in elements from the tensor's first. */
static inline int64_t draw_offset(const posenc_tensor *t, const int64_t *shape, int64_t index)
{
    int64_t offset = 0;
    for (int a = t->ndim - 1; a >= 0; index /= shape[a--])
        offset += index % shape[a] * t->stride[a];
    return offset;
}

/* The nearest whole number that the type holds. */
static inline int64_t draw_whole(double x, int64_t low, int64_t high)
{
    return x >= (double)high ? high : x > (double)low ? (int64_t)x : low;
}

static inline void draw_put(void *data, posenc_dtype dtype, int64_t at, double x)
{
    switch (dtype) {
    case POSENC_DTYPE_F32: ((float *)data)[at] = (float)x; break;
    case POSENC_DTYPE_F64: ((double *)data)[at] = x; break;
    case POSENC_DTYPE_F16: ((uint16_t *)data)[at] = pe_half_float_to_f16((float)x); break;
    case POSENC_DTYPE_BF16: ((uint16_t *)data)[at] = pe_half_float_to_bf16((float)x); break;
    case POSENC_DTYPE_I64: ((int64_t *)data)[at] = draw_whole(x, INT64_MIN, INT64_MAX); break;
    case POSENC_DTYPE_I32: ((int32_t *)data)[at] = (int32_t)draw_whole(x, INT32_MIN, INT32_MAX); break;
    case POSENC_DTYPE_U8: ((uint8_t *)data)[at] = (uint8_t)draw_whole(x, 0, 255); break;
    case POSENC_DTYPE_F8_E4M3:
        for (int code = 0; code < 256; code++)
            if (pe_half_e4m3_to_float((uint8_t)code) == (float)x)
                ((uint8_t *)data)[at] = (uint8_t)code;
        break;
    case POSENC_DTYPE_Q8_0: {
        const int64_t  in      = (at % DRAW_BLOCK + DRAW_BLOCK) % DRAW_BLOCK;
        unsigned char *block   = (unsigned char *)data + (at - in) / DRAW_BLOCK * (DRAW_BLOCK + 2);
        const uint16_t quarter = pe_half_float_to_f16(0.25f);
        memcpy(block, &quarter, sizeof quarter);
        block[2 + in] = (unsigned char)(int)(4 * x);
    }
    }
}

static inline double draw_get(const void *data, posenc_dtype dtype, int64_t at)
{
    switch (dtype) {
    case POSENC_DTYPE_F32: return (double)((const float *)data)[at];
    case POSENC_DTYPE_F64: return ((const double *)data)[at];
    case POSENC_DTYPE_F16: return (double)pe_half_f16_to_float(((const uint16_t *)data)[at]);
    case POSENC_DTYPE_BF16: return (double)pe_half_bf16_to_float(((const uint16_t *)data)[at]);
    default: return 0;
    }
}

static inline size_t draw_bytes(posenc_dtype dtype, int64_t elements)
{
    return dtype == POSENC_DTYPE_Q8_0 ? (size_t)(elements / DRAW_BLOCK * (DRAW_BLOCK + 2))
                                      : (size_t)elements * posenc_dtype_size(dtype);
}

/* Strides of axes in any order, some with gaps, some downwards; the last axis stays last where `rows`. Axis
   `same`, counted from 1, has stride 0; where there is one element alone any stride will do.
   Returns the span in elements; *first: where element 0 is. */
static inline int64_t draw_strides(draw_source *s, posenc_tensor *t, int rows, int32_t same, int64_t *first)
{
    unsigned char order[POSENC_MAX_DIMS];
    int64_t       step = 1;
    *first             = 0;
    for (int a = 0; a < t->ndim; a++)
        order[a] = (unsigned char)a;
    for (int a = 0; a + 1 < t->ndim - rows; a++) { /* a shuffle */
        const int           other = a + (int)draw_below(s, t->ndim - rows - a);
        const unsigned char kept  = order[a];
        order[a]                  = order[other];
        order[other]              = kept;
    }
    for (int i = t->ndim - 1; i >= 0; i--) {
        const int     a = order[i], is_last = rows && i == t->ndim - 1;
        const int64_t unit = t->dtype == POSENC_DTYPE_Q8_0 && !is_last ? DRAW_BLOCK : 1;
        if (a + 1 == same && !is_last) {
            t->stride[a] = 0;
            continue;
        }
        step += !is_last && draw_chance(s, 6) ? unit : 0;
        t->stride[a] = step;
        if (!is_last && t->shape[a] > 0 && draw_chance(s, 8)) {
            *first += (t->shape[a] - 1) * step;
            t->stride[a] = -step;
        }
        step *= t->shape[a];
        if (t->shape[a] == 1 && !is_last && draw_chance(s, 8))
            t->stride[a] = draw_integer(s);
    }
    return step;
}

/* A tensor of these numbers; of an output (NULL x) the pattern. rows: its last axis has stride 1. */
static inline draw_view draw_tensor(draw_source *s, const draw_numbers *a, posenc_dtype dtype, int rows,
                                    int is_output)
{
    draw_view v = {0};
    int64_t   first;
    if (!a->x)
        return v;
    v.t = posenc_tensor_contiguous(NULL, dtype, a->ndim, a->shape);
    const int64_t span =
        draw_strides(s, &v.t, rows && a->ndim > 0, s->left && !is_output ? a->same : 0, &first);
    v.bytes  = draw_bytes(dtype, span);
    v.block  = draw_memory(v.bytes, (int)((v.bytes / 8 + s->left) % 4));
    v.t.data = v.block + draw_bytes(dtype, first);
    memset(v.block, DRAW_PATTERN, v.bytes);
    for (int64_t i = 0; !is_output && i < a->count; i++)
        draw_put(v.t.data, dtype, draw_offset(&v.t, a->shape, i), a->x[i]);
    return v;
}

/* The numbers of an output; each byte that is no element's must be the pattern still. */
static inline void draw_read(draw_view *v, draw_numbers *a)
{
    const size_t each = posenc_dtype_size(v->t.dtype);
    for (int64_t i = 0; i < a->count; i++)
        a->x[i] = draw_get(v->t.data, v->t.dtype, draw_offset(&v->t, a->shape, i));
    for (int64_t i = 0; i < a->count; i++)
        memset((unsigned char *)v->t.data + draw_offset(&v->t, a->shape, i) * (int64_t)each, DRAW_PATTERN,
               each);
    for (size_t i = 0; i < v->bytes; i++)
        if (v->block[i] != DRAW_PATTERN)
            abort(); /* written between the elements of an output */
}

static inline void draw_require_untouched(const draw_view *v)
{
    for (size_t i = 0; i < v->bytes; i++)
        if (v->block[i] != DRAW_PATTERN)
            abort(); /* a call that failed has written */
}

#endif

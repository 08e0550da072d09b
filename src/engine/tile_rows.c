/* SPDX-License-Identifier: MIT */
/* Rows of queries, keys and values on their way in, their cotangents on their way out. Contract: tiles.h. */
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/tiles.h"

/* Sixteen floats at a time, for a call of memcpy costs more than a short row. */
static inline void copy_floats(float *to, const float *from, int64_t n)
{
    int64_t d = 0;
    for (; d + PE_LANES <= n; d += PE_LANES)
        memcpy(to + d, from + d, PE_LANES * sizeof *to);
    for (; d < n; d++)
        to[d] = from[d];
}

void pe_load_plain(float *to, int64_t stride, const posenc_tensor *t, int64_t b, int64_t h, int64_t s0,
                   int64_t n, int64_t width)
{
    const char   *from = pe_row(t, b, h, s0);
    const int64_t step = t->stride[2] * (int64_t)posenc_dtype_size(t->dtype);
    for (int64_t s = 0; s < n; s++) {
        float *row = to + s * stride;
        if (t->dtype == POSENC_DTYPE_F32)
            copy_floats(row, (const float *)(const void *)(from + s * step), width);
        else
            pe_load_float(row, from + s * step, t->dtype, 1, width);
        for (int64_t d = width; d < stride; d++)
            row[d] = 0;
    }
}

void pe_call_rows(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, int64_t width)
{
    enum { LINE = 64, SECOND_CACHE = 2 };
    if (!t->data || b >= t->shape[0])
        return;
    const char   *row  = pe_row(t, b, h, s0);
    const int64_t size = (int64_t)posenc_dtype_size(t->dtype), step = t->stride[2] * size;
    for (int64_t s = 0; s < n; s++)
        for (int64_t at = 0; at < width * size; at += LINE)
            __builtin_prefetch(row + s * step + at, 0, SECOND_CACHE);
}

void pe_store_plain(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, const float *from,
                    int64_t stride, int64_t width)
{
    char         *to   = pe_row(t, b, h, s0);
    const int64_t step = t->stride[2] * (int64_t)posenc_dtype_size(t->dtype);
    for (int64_t s = 0; s < n; s++)
        if (t->dtype == POSENC_DTYPE_F32)
            copy_floats((float *)(void *)(to + s * step), from + s * stride, width);
        else
            pe_store_float(to + s * step, t->dtype, 1, from + s * stride, width);
}

static const posenc_tensor *tensor_of(const pe_tiles *T, pe_side side)
{
    return side == PE_KEYS ? &T->a->k : &T->a->q;
}

static void turn(const pe_tiles *T, float *rows, pe_side side, int64_t b, int64_t h, int64_t s0, int64_t n,
                 float sign)
{
    const pe_attention *a    = T->a;
    const int           keys = side == PE_KEYS;
    if (!a->turn)
        return;
    const pe_turn *by = keys ? a->turn_keys : a->turn;
    const int64_t  L = keys ? a->sizes.Lk : a->sizes.Lq, row = pe_turn_width(by),
                  batches = keys ? T->k_batches : T->q_batches,
                  at      = (batches > 1 ? b : 0) * by->heads + (by->heads > 1 ? h : 0);
    const float *table    = (keys ? T->k_table : T->q_table) + (at * L + s0) * row;
    pe_turn_rows(rows, T->Dp, a->sizes.D, by, table, n, sign, a->kernels);
}

/* The caller's rows and their positions into z->raw and z->at. */
static void load_raw(const pe_tiles *T, const pe_scratch *z, pe_side side, int64_t b, int64_t h, int64_t s0,
                     int64_t n)
{
    const pe_attention  *a = T->a;
    const posenc_tensor *t = tensor_of(T, side);
    for (int64_t s = 0; s < n; s++) {
        pe_load_double(z->raw + s * a->D, pe_row(t, b, h, s0 + s), t->dtype, 1, a->D);
        z->at[s] = pe_position(side == PE_KEYS ? &a->k_pos : &a->q_pos, b, s0 + s);
    }
}

static int64_t prepared_width(const pe_tiles *T, pe_side side)
{
    return (side == PE_KEYS ? 1 : pe_forms(T->a->terms)) * T->a->sizes.D;
}

static void make_rows(const pe_tiles *T, const pe_scratch *z, double *to, pe_side side, int64_t b, int64_t h,
                      int64_t s0, int64_t n)
{
    const pe_part *part = &T->a->parts[PE_SCORE];
    load_raw(T, z, side, b, h, s0, n);
    T->a->terms->prepare.fill(part->p, part->par, side, h, z->at, n, z->raw, to);
}

void pe_prepare_exactly(const pe_tiles *T, const pe_scratch *z, double *to, pe_side side, int64_t b,
                        int64_t h, int64_t s0, int64_t n)
{
    const pe_attention *a = T->a;
    make_rows(T, z, to, side, b, h, s0, n);
    const pe_turn *all = side == PE_KEYS ? a->turn_keys : a->turn;
    pe_turn        own;
    const pe_turn *by = all ? pe_turn_of_head(&own, all, h) : NULL;
    for (int64_t s = 0; by && s < n; s++) {
        double at[PE_MAX_AXES];
        pe_turn_place(by, side == PE_KEYS ? &a->k_turn : &a->q_turn, b, s0 + s, at);
        pe_turn_row(to + s * prepared_width(T, side), a->sizes.D, by, at, 1);
    }
}

static void load_prepared(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side,
                          int64_t b, int64_t h, int64_t s0, int64_t n)
{
    const int64_t D = T->a->sizes.D, made = prepared_width(T, side);
    make_rows(T, z, z->made, side, b, h, s0, n);
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < T->Dp; d++) {
            to[s * T->Dp + d] = d < D ? (float)z->made[s * made + d] : 0;
            if (made > D)
                to2[s * T->Dp + d] = d < D ? (float)z->made[s * made + D + d] : 0;
        }
}

void pe_load_turned(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side, int64_t b,
                    int64_t h, int64_t s0, int64_t n)
{
    if (T->a->terms->prepare.fill && !T->beside[side])
        load_prepared(T, z, to, to2, side, b, h, s0, n);
    else if (T->beside[side]) {
        pe_load_plain(to, T->Dp, tensor_of(T, side), b, h, s0, n, T->a->D);
        pe_beside_load(T, to, side, h, s0, n);
    } else
        pe_load_plain(to, T->Dp, tensor_of(T, side), b, h, s0, n, T->a->sizes.D);
    turn(T, to, side, b, h, s0, n, 1);
    if (to2)
        turn(T, to2, side, b, h, s0, n, 1);
}

void pe_store_turned(const pe_tiles *T, float *rows, pe_side side, const posenc_tensor *to, int64_t b,
                     int64_t h, int64_t s0, int64_t n)
{
    if (!to->data && !T->a->terms->prepare.fold)
        return;
    turn(T, rows, side, b, h, s0, n, -1);
    if (!T->a->terms->prepare.fold)
        pe_store_plain(to, b, h, s0, n, rows, T->Dp, T->a->sizes.D);
}

void pe_fold_prepared(const pe_tiles *T, const pe_scratch *z, const float *rows, int64_t form_step,
                      pe_side side, int64_t b, int64_t h, int64_t s0, int64_t n)
{
    const pe_attention  *a                    = T->a;
    const pe_part       *part                 = &a->parts[PE_SCORE];
    const posenc_tensor *to                   = side == PE_KEYS ? &a->dk : &a->dq;
    double *const        none[PE_HOOK_PARAMS] = {0};
    const int64_t        D = a->sizes.D, made = prepared_width(T, side);
    load_raw(T, z, side, b, h, s0, n);
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < made; d++)
            z->made[s * made + d] = (double)rows[d / D * form_step + s * T->Dp + d % D];
    a->terms->prepare.fold(part->p, part->par, side, h, z->at, n, z->raw, z->made, z->draw,
                           part->dpar ? part->dpar : none);
    for (int64_t s = 0; to->data && s < n; s++)
        pe_store_double(pe_row(to, b, h, s0 + s), to->dtype, 1, z->draw + s * a->D, a->D);
}

/* to = scale * (q + more); more may be NULL, to may be q. */
static void scale_row(float *to, const float *q, const double *more, float scale, int64_t D)
{
    if (more)
        for (int64_t d = 0; d < D; d++)
            to[d] = scale * (q[d] + (float)more[d]);
    else
        for (int64_t d = 0; d < D; d++)
            to[d] = scale * q[d];
}

void pe_scale_queries(const pe_tiles *T, float *Qu, float *Qw, int64_t h, int64_t n)
{
    const pe_attention *a     = T->a;
    const int64_t       D     = a->sizes.D;
    const float         scale = (float)a->terms->scale;
    const double       *u = pe_head_vector(a, a->terms->u, h), *w = pe_head_vector(a, a->terms->w, h);
    for (int64_t r = 0; r < n; r++) {
        if (Qw)
            scale_row(Qw + r * T->Dp, Qu + r * T->Dp, w, scale, D);
        scale_row(Qu + r * T->Dp, Qu + r * T->Dp, u, scale, D);
    }
    for (int64_t r = 0; Qw && r < n; r++)
        for (int64_t d = D; d < T->Dp; d++)
            Qw[r * T->Dp + d] = 0;
}

const float *pe_key_mask(const pe_tiles *T, float *key, int64_t b)
{
    const posenc_tensor *t = &T->a->key_allowed;
    if (!(T->a->mask & POSENC_MASK_KEY_PADDING))
        return NULL;
    for (int64_t j = 0; j < T->a->sizes.Lk; j++)
        key[j] =
            pe_integer_at(t, (t->shape[0] == 1 ? 0 : b) * t->stride[0] + j * t->stride[1]) ? 0 : -INFINITY;
    return key;
}

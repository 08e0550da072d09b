/* SPDX-License-Identifier: MIT */
/* Rows of queries, keys and values on their way in, their cotangents on their way out. Contract: tiles.h. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/shared/compiler.h"
#include "base/tensor.h"
#include "engine/tiled/tiles.h"

/* Sixteen floats at a time, for a call of memcpy costs more than a short row. */
static inline void copy_floats(float *to, const float *from, int64_t n)
{
    int64_t d = 0;
    for (; d + PE_LANES <= n; d += PE_LANES)
        memcpy(to + d, from + d, PE_LANES * sizeof *to);
    for (; d < n; d++)
        to[d] = from[d];
}

/* n rows of t from the one at `from` on. */
static void load_from(float *to, int64_t stride, const posenc_tensor *t, const char *from, int64_t n,
                      int64_t width)
{
    const int64_t step = pe_tensor_step(t, 2);
    for (int64_t s = 0; s < n; s++) {
        float *row = to + s * stride;
        if (t->dtype == POSENC_DTYPE_F32)
            copy_floats(row, (const float *)(const void *)(from + s * step), width);
        else
            pe_tensor_load_float(row, from + s * step, t->dtype, 1, width);
        for (int64_t d = width; d < stride; d++)
            row[d] = 0;
    }
}

/* The same of rows of 8 bits. */
static void widen_from(float *to, int64_t stride, const pe_kernels *kernels, const posenc_tensor *t,
                       const char *from, int64_t n, int64_t width, float scale)
{
    pe_widen_fn  *widen = t->dtype == POSENC_DTYPE_Q8_0 ? kernels->widen_q8 : kernels->widen_e4m3;
    const int64_t step  = pe_tensor_step(t, 2);
    for (int64_t s = 0; s < n; s++) {
        widen(to + s * stride, from + s * step, width, scale);
        memset(to + s * stride + width, 0, (size_t)(stride - width) * sizeof *to);
    }
}

void pe_tile_rows_load_plain(float *to, int64_t stride, const posenc_tensor *t, int64_t b, int64_t h,
                             int64_t s0, int64_t n, int64_t width)
{
    load_from(to, stride, t, pe_tensor_row(t, b, h, s0), n, width);
}

void pe_tile_rows_load_keys(const pe_attention *a, float *to, int64_t stride, const posenc_tensor *t,
                            int64_t b, int64_t g, int64_t j0, int64_t n, int64_t width)
{
    for (int64_t s = 0, run; s < n; s += run) {
        float *rows = to + s * stride;
        run         = pe_keys_run(a, t, b, j0 + s, n - s);
        if (pe_keys_is_hidden(a, b, j0 + s))
            memset(rows, 0, (size_t)(run * stride) * sizeof *to);
        else if (pe_tensor_is_quantised(t->dtype))
            widen_from(rows, stride, a->kernels, t, pe_keys_row(a, t, b, g, j0 + s), run, width,
                       (float)pe_keys_scale(a, t, g));
        else
            load_from(rows, stride, t, pe_keys_row(a, t, b, g, j0 + s), run, width);
    }
}

void pe_tile_rows_prefetch(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n, int64_t width)
{
    enum { LINE = 64, SECOND_CACHE = 2 };
    if (!t->data || b >= t->shape[0] || s0 + n > t->shape[2]) /* pages may end before */
        return;
    const char   *row  = pe_tensor_row(t, b, h, s0);
    const int64_t size = pe_tensor_bytes(t->dtype, width), step = pe_tensor_step(t, 2);
    for (int64_t s = 0; s < n; s++)
        for (int64_t at = 0; at < size; at += LINE)
            PE_PREFETCH(row + s * step + at, 0, SECOND_CACHE);
}

void pe_tile_rows_store_plain(const posenc_tensor *t, int64_t b, int64_t h, int64_t s0, int64_t n,
                              const float *from, int64_t stride, int64_t width)
{
    char         *to   = pe_tensor_row(t, b, h, s0);
    const int64_t step = pe_tensor_step(t, 2);
    for (int64_t s = 0; s < n; s++)
        if (t->dtype == POSENC_DTYPE_F32)
            copy_floats((float *)(void *)(to + s * step), from + s * stride, width);
        else
            pe_tensor_store_float(to + s * step, t->dtype, 1, from + s * stride, width);
}

static const posenc_tensor *tensor_of(const pe_tiles *T, pe_side side)
{
    return side == PE_KEYS ? &T->a->k : &T->a->q;
}

static int64_t head_of_run(const pe_tiles *T, pe_side side, int64_t h)
{
    return (side == PE_KEYS ? T->a->from.g : T->a->from.h) + h;
}

static void rotate(const pe_tiles *T, float *rows, pe_side side, int form, int64_t b, int64_t h, int64_t s0,
                   int64_t n, float sign)
{
    const pe_rotation_table *t = &T->rotations[side][form];
    pe_rotary                own;
    if (!t->by)
        return;
    const int64_t all = side == PE_KEYS ? T->a->sizes.G : T->a->sizes.H, row = pe_rotation_width(t->by),
                  at    = (t->batches > 1 ? b : 0) * t->heads + h * t->heads / all;
    const pe_rotary *by = pe_rotation_of_head(&own, t->by, head_of_run(T, side, h));
    pe_rotation_rows(rows, T->Dp, T->a->sizes.D, by, t->rows + (at * t->L + s0) * row, n, sign,
                     T->a->kernels);
}

/* The caller's rows and their positions into z->prepared. */
static void load_raw(const pe_tiles *T, const pe_scratch *z, pe_side side, int64_t b, int64_t h, int64_t s0,
                     int64_t n)
{
    const pe_attention  *a = T->a;
    const posenc_tensor *t = tensor_of(T, side);
    for (int64_t s = 0; s < n; s++) {
        double *row = z->prepared.raw + s * a->D;
        if (side == PE_KEYS)
            pe_keys_load_double(a, row, t, b, h, s0 + s, a->D);
        else
            pe_tensor_load_double(row, pe_tensor_row(t, b, h, s0 + s), t->dtype, 1, a->D);
        z->prepared.at[s] = pe_positions_at(side == PE_KEYS ? &a->k_pos : &a->q_pos, b, s0 + s);
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
    const int64_t first = side == PE_KEYS ? T->a->from.g : T->a->from.h;
    T->a->terms->prepare.fill(part->p, part->par, side, first + h, z->prepared.at, n, z->prepared.raw, to);
}

void pe_tile_rows_load_doubles(const pe_tiles *T, const pe_scratch *z, double *to, pe_side side, int64_t b,
                               int64_t h, int64_t s0, int64_t n)
{
    const pe_attention *a = T->a;
    make_rows(T, z, to, side, b, h, s0, n);
    const pe_rotary *all = side == PE_KEYS ? a->rotary_keys : a->rotary;
    pe_rotary        own;
    const pe_rotary *by   = all ? pe_rotation_of_head(&own, all, head_of_run(T, side, h)) : NULL;
    pe_turn_walk     walk = {0};
    if (pe_turns(a))
        walk = pe_turn_start(a, b, pe_turn_row(a, side == PE_KEYS ? h * (a->sizes.H / a->sizes.G) : h),
                             z->prepared.walk);
    for (int64_t s = 0; by && s < n; s++) {
        double place[PE_MAX_AXES];
        if (!pe_turns(a))
            pe_rotation_place(by, side == PE_KEYS ? &a->k_coordinates : &a->q_coordinates, b, s0 + s, place);
        pe_rotation_row(to + s * prepared_width(T, side), a->sizes.D, by,
                        pe_turns(a) ? pe_turn_at(a, &walk, side, s0 + s) : place, 1);
    }
}

static void load_prepared(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side,
                          int64_t b, int64_t h, int64_t s0, int64_t n)
{
    const int64_t D = T->a->sizes.D, made = prepared_width(T, side);
    make_rows(T, z, z->prepared.made, side, b, h, s0, n);
    for (int64_t s = 0; s < n; s++)
        for (int64_t d = 0; d < T->Dp; d++) {
            to[s * T->Dp + d] = d < D ? (float)z->prepared.made[s * made + d] : 0;
            if (made > D)
                to2[s * T->Dp + d] = d < D ? (float)z->prepared.made[s * made + D + d] : 0;
        }
}

/* What follows from the position only, after the numbers of content. */
static void append_by_position(const pe_tiles *T, float *rows, pe_side side, int64_t b, int64_t h, int64_t s0,
                               int64_t n)
{
    const int64_t D = T->a->D, width = T->a->sizes.D - D;
    for (int64_t s = 0; s < n; s++)
        copy_floats(rows + s * T->Dp + D, pe_by_position_row(T, side, b, h, s0 + s), width);
}

void pe_tile_rows_load(const pe_tiles *T, const pe_scratch *z, float *to, float *to2, pe_side side, int64_t b,
                       int64_t h, int64_t s0, int64_t n)
{
    if (T->a->terms->prepare.fill && !T->by_position[side])
        load_prepared(T, z, to, to2, side, b, h, s0, n);
    else if (side == PE_KEYS)
        pe_tile_rows_load_keys(T->a, to, T->Dp, &T->a->k, b, h, s0, n, T->a->D);
    else
        pe_tile_rows_load_plain(to, T->Dp, &T->a->q, b, h, s0, n, T->a->D);
    if (T->by_position[side])
        append_by_position(T, to, side, b, h, s0, n);
    rotate(T, to, side, 0, b, h, s0, n, 1);
    if (to2)
        rotate(T, to2, side, 0, b, h, s0, n, 1);
}

void pe_tile_rows_load_form(const pe_tiles *T, float *rows, pe_side side, int form, int64_t b, int64_t h,
                            int64_t s0, int64_t n)
{
    if (side == PE_KEYS)
        pe_tile_rows_load_keys(T->a, rows, T->Dp, &T->a->k, b, h, s0, n, T->a->D);
    else
        pe_tile_rows_load_plain(rows, T->Dp, &T->a->q, b, h, s0, n, T->a->D);
    rotate(T, rows, side, form, b, h, s0, n, 1);
}

void pe_tile_rows_store_forms(const pe_tiles *T, float *rows, int64_t step, pe_side side, int64_t b,
                              int64_t h, int64_t s0, int64_t n)
{
    const posenc_tensor *to = side == PE_KEYS ? &T->a->dk : &T->a->dq;
    for (int form = 0; form < T->forms[side]; form++) {
        float *own = rows + form * step;
        rotate(T, own, side, form, b, h, s0, n, -1);
        for (int64_t x = 0; form > 0 && x < n * T->Dp; x++)
            rows[x] += own[x];
    }
    if (to->data)
        pe_tile_rows_store_plain(to, b, h, s0, n, rows, T->Dp, T->a->sizes.D);
}

void pe_tile_rows_store(const pe_tiles *T, float *rows, pe_side side, const posenc_tensor *to, int64_t b,
                        int64_t h, int64_t s0, int64_t n)
{
    if (!to->data && !T->a->terms->prepare.fold)
        return;
    rotate(T, rows, side, 0, b, h, s0, n, -1);
    if (!T->a->terms->prepare.fold)
        pe_tile_rows_store_plain(to, b, h, s0, n, rows, T->Dp, T->a->sizes.D);
}

void pe_tile_rows_fold(const pe_tiles *T, const pe_scratch *z, const float *rows, int64_t form_step,
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
            z->prepared.made[s * made + d] = (double)rows[d / D * form_step + s * T->Dp + d % D];
    a->terms->prepare.fold(part->p, part->par, side, h, z->prepared.at, n, z->prepared.raw, z->prepared.made,
                           z->prepared.draw, part->dpar ? part->dpar : none);
    for (int64_t s = 0; to->data && s < n; s++)
        pe_tensor_store_double(pe_tensor_row(to, b, h, s0 + s), to->dtype, 1, z->prepared.draw + s * a->D,
                               a->D);
}

/* to = scale * (tau q + more); more may be NULL, to may be q. */
static void scale_row(float *to, const float *q, const double *more, float scale, double tau, int64_t D)
{
    const float own = (float)((double)scale * tau);
    if (more)
        for (int64_t d = 0; d < D; d++)
            to[d] = own * q[d] + scale * (float)more[d];
    else
        for (int64_t d = 0; d < D; d++)
            to[d] = own * q[d];
}

/* Rows of the profile, which only a factor of the whole score multiplies. */
static void load_profile(const pe_tiles *T, float *to, const posenc_tensor *t, int64_t b, int64_t h,
                         int64_t i0, int64_t n)
{
    const pe_attention *a     = T->a;
    const int64_t       width = a->terms->profile_width;
    for (int64_t r = 0; r < n; r++) {
        float *row = to + r * T->Ap;
        load_from(row, T->Ap, t, pe_token_row(a, t, b, h, i0 + r), 1, width);
        const float tau = (float)(pe_scores_are_folded(T) ? pe_temper_at(a, b, h, i0 + r) : 1);
        for (int64_t d = 0; tau != 1 && d < width; d++)
            row[d] *= tau;
    }
}

void pe_tile_rows_scale(const pe_tiles *T, float *Qu, float *Qw, int64_t b, int64_t h, int64_t i0, int64_t n)
{
    const pe_attention  *a     = T->a;
    const int64_t        D     = a->sizes.D;
    const float          scale = (float)a->terms->scale;
    const double        *u = pe_head_vector(a, a->terms->u, h), *w = pe_head_vector(a, a->terms->w, h);
    const posenc_tensor *profile = pe_profile(a);
    for (int64_t r = 0; r < n; r++) {
        const double tau = T->folds ? pe_temper_at(a, b, h, i0 + r) : 1;
        if (Qw && !profile)
            scale_row(Qw + r * T->Dp, Qu + r * T->Dp, w, scale, tau, D);
        scale_row(Qu + r * T->Dp, Qu + r * T->Dp, u, scale, tau, D);
    }
    if (Qw && profile)
        load_profile(T, Qw, profile, b, h, i0, n);
    for (int64_t r = 0; Qw && !profile && r < n; r++)
        for (int64_t d = D; d < T->Dp; d++)
            Qw[r * T->Dp + d] = 0;
}

const float *pe_tile_rows_key_mask(const pe_tiles *T, float *key, int64_t b)
{
    if (!(T->a->mask & POSENC_MASK_KEY_PADDING))
        return NULL;
    for (int64_t j = 0; j < T->a->sizes.Lk; j++)
        key[j] = pe_keys_is_padding(&T->a->key_allowed, b, j) ? -INFINITY : 0;
    return key;
}

/*
 * ---- pairs of channels whose share of a score decays with distance (xPos) ----
 *
 * Formula  pair m of q_i . k_j is multiplied by exp(growth_m (P(i) - P(j)))
 * Source   Sun et al. 2022, arXiv:2212.10554, section 3
 *
 * The paper multiplies a query by exp(growth_m P(i)) and a key by exp(-growth_m P(j)), which leaves the range
 * of any number somewhere: near position 36 000 in float. Only the distance counts, so here a tile of keys
 * has a centre c: its keys are multiplied by exp(-growth_m (P(j) - c)), never far from 1, and the queries
 * of its products by exp(growth_m (P(i) - c)), which only vanishes. Along ranges that is a factor of the
 * query's own tile times one of the two tiles; positions without a pattern are taken one by one.
 */

/* Masked pairs may stand anywhere; what they are multiplied by must only be finite, also as a product of two.
   What has decayed is 0: a least factor would come back where the two that it is multiplied by are large.
   Rows of a tile that stand too far apart for that were refused (api/attend.c). Neighbours are most often the
   same: pairs of channels, and those that are not rotated. */
static void grow_row(const pe_tiles *T, double distance, float to[])
{
    for (int64_t d = 0; d < T->a->sizes.D; d++)
        to[d] = T->growth[d] == 0 ? 1
                : d > 0 && T->growth[d] == T->growth[d - 1]
                    ? to[d - 1]
                    : (float)exp(fmin(T->growth[d] * distance, PE_MOST_GROWTH));
    for (int64_t d = T->a->sizes.D; d < T->Dp; d++)
        to[d] = 0;
}

/* The position of the middle of a tile. */
static double query_center(const pe_tiles *T, int64_t b, int64_t i0)
{
    return pe_positions_at(&T->a->q_pos, b, i0 + pe_smaller(T->Br, T->a->sizes.Lq - i0) / 2);
}

static double key_center(const pe_tiles *T, int64_t b, int64_t j0)
{
    return pe_positions_at(&T->a->k_pos, b, j0 + pe_smaller(T->Bc, T->a->sizes.Lk - j0) / 2);
}

/* The factors of the keys of one tile of one item. */
static void grow_tile(void *context, int64_t index, int thread)
{
    const pe_tiles *T = context;
    const int64_t   b = index / T->key_tiles, j0 = index % T->key_tiles * T->Bc, Lk = T->a->sizes.Lk,
                  C     = pe_smaller(T->Bc, Lk - j0);
    const double center = key_center(T, b, j0);
    for (int64_t j = j0; j < j0 + C; j++)
        grow_row(T, center - pe_positions_at(&T->a->k_pos, b, j), T->k_grown + (b * Lk + j) * T->Dp);
}

void pe_tile_rows_lay_out_growth(pe_tiles *T, pe_arena *arena)
{
    const pe_problem *p = &T->a->sizes;
    if (!T->a->grown)
        return;
    T->growth  = pe_arena_doubles(arena, p->D);
    T->q_grown = pe_arena_floats(arena, T->rotations[PE_QUERIES][0].batches * p->Lq * T->Dp);
    T->k_grown = pe_arena_floats(arena, T->rotations[PE_KEYS][0].batches * p->Lk * T->Dp);
}

/* Once per call, for all heads: an exponential costs more than what it is multiplied with. */
void pe_tile_rows_fill_growth(pe_tiles *T)
{
    const int64_t Lq = T->a->sizes.Lq;
    if (!T->a->grown)
        return;
    pe_rotation_channel_growth(T->a->grown, T->a->sizes.D, T->growth);
    pe_parallel_for(T->rotations[PE_KEYS][0].batches * T->key_tiles, &T->a->team, grow_tile, T);
    for (int64_t b = 0; T->skewed && b < T->rotations[PE_QUERIES][0].batches; b++)
        for (int64_t i = 0; i < Lq; i++)
            grow_row(T, pe_positions_at(&T->a->q_pos, b, i) - query_center(T, b, i / T->Br * T->Br),
                     T->q_grown + (b * Lq + i) * T->Dp);
}

/* factor[r,:] of the tile's queries for the keys at j0. */
static void fill_factors(const pe_tiles *T, pe_scratch *z)
{
    const double center = key_center(T, z->b, z->j0);
    if (!T->skewed) {
        for (int64_t r = 0; r < z->R; r++)
            grow_row(T, pe_positions_at(&T->a->q_pos, z->b, z->i0 + r) - center,
                     z->growth.factors + r * T->Dp);
        return;
    }
    const float *own =
        T->q_grown + ((T->rotations[PE_QUERIES][0].batches > 1 ? z->b : 0) * T->a->sizes.Lq + z->i0) * T->Dp;
    grow_row(T, query_center(T, z->b, z->i0) - center, z->growth.between);
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t d = 0; d < T->Dp; d++)
            z->growth.factors[r * T->Dp + d] = own[r * T->Dp + d] * z->growth.between[d];
}

static void multiply(float *to, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] * y[i];
}

void pe_tile_rows_grow_queries(const pe_tiles *T, pe_scratch *z, const float *Qu)
{
    fill_factors(T, z);
    multiply(z->growth.Q, Qu, z->growth.factors, z->R * T->Dp);
    if (z->forms.Q2)
        multiply(z->growth.Q + T->Br * T->Dp, z->forms.Q2, z->growth.factors, z->R * T->Dp);
}

void pe_tile_rows_grow_keys(const pe_tiles *T, float *to, const float *K, int64_t b, int64_t j0, int64_t C)
{
    const float *factors =
        T->k_grown + ((T->rotations[PE_KEYS][0].batches > 1 ? b : 0) * T->a->sizes.Lk + j0) * T->Dp;
    multiply(to, K, factors, C * T->Dp);
}

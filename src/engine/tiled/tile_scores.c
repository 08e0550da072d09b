/* SPDX-License-Identifier: MIT */
/*
 * tile_scores.c: the scores of one tile, put together from its products and all their terms
 *
 * pe_tile_products calls the parts, when z->i0 and z->j0 say where the tile begins and z->limited whether its
 * queries have column limits. What they find goes to `terms`, which kernels add, or to z->extra. Idea:
 * tiles.h.
 */
#include <math.h>
#include <string.h>

#include "engine/tiled/tiles.h"

/* ---- terms by distance, which lie along the diagonals of a tile, and products with their bands ---- */

int64_t pe_band_start(const pe_tiles *T, int64_t i0, int64_t R, int64_t j0)
{
    return j0 - (i0 + R - 1) + T->a->sizes.Lq - 1;
}

/* Where there is nothing yet: of some queries the columns of the band that they see, all those to come
   included if the next key tile goes on with them. They begin on a cache line if they can. */
static pe_group new_columns(const pe_scratch *z, int64_t r, int64_t R, int64_t C, int goes_on,
                            int64_t reached)
{
    const pe_group y    = pe_band_group(z, r, R, C);
    const int64_t  line = R - 1 - pe_padded(R - 1 - y.first), first = line > 0 ? line : 0,
                  last = goes_on ? reached : pe_smaller(reached, y.first + y.count);
    return (pe_group){y.rows, first, last - first};
}

/* gamma[r, at + c] = Qw[r,:] . A[x0 + c]: the band of the tile. Going from one key tile to the next, R - 1
   columns are there already and the others are written behind them, until there is no room: then the R - 1 go
   back to the beginning. What is written starts on a cache line; what no mask reaches is not. */
static void band_product(const pe_tiles *T, pe_scratch *z, int64_t h, const float *Qw, int64_t i0, int64_t R,
                         int64_t J, int64_t C, int reuse)
{
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D, x0 = pe_band_start(T, i0, R, J * T->Bc);
    const int64_t       have = reuse && z->gamma_key == J ? R - 1 : 0, W = T->gamma_width,
                  first = pe_padded(R - 1) - (R - 1), next = z->gamma_at + T->Bc;
    z->gamma_at = have && next + R - 1 + pe_padded(C) <= W ? next : first;
    for (int64_t r = 0; have && z->gamma_at == first && r < R; r++)
        memmove(z->gamma + r * W + first, z->gamma + r * W + next, (size_t)have * sizeof(float));
    const int64_t reached = pe_smaller(R + C - 1, T->band.last - x0);
    float *const  to      = z->gamma + z->gamma_at;
    for (int64_t r = 0; r < R;) {
        const pe_group y =
            have ? (pe_group){R, have, reached - have} : new_columns(z, r, R, C, reuse, reached);
        a->kernels->product(to + r * W + y.first, W, Qw + r * T->Dp, T->Dp, 1,
                            pe_columns_by(T, PE_A, h, x0) + y.first, T->by[PE_A].stride, y.rows,
                            pe_larger(y.count, 0), D, 0);
        r += y.rows;
    }
    z->gamma_key = J + 1;
}

/* Beyond an end of A there is one number for each query, the same for all key tiles there. */
static const float *flat_row(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, const float *Qw,
                             int64_t I, int64_t R, int64_t x0)
{
    const pe_attention *a    = T->a;
    const int           side = pe_flat_side(&T->by[PE_A], x0);
    const int64_t       tile = (b * a->sizes.H + h) * T->query_tiles + I;
    float              *row  = z->flat_row + side * T->Br;
    if (z->flat_of[side] == tile)
        return row;
    a->kernels->product(z->flat, PE_LANES, Qw, T->Dp, 1,
                        pe_columns_by(T, PE_A, h, pe_flat_row(&T->by[PE_A], x0)), T->by[PE_A].stride, R, 1,
                        a->sizes.D, 0);
    for (int64_t r = 0; r < R; r++)
        row[r] = z->flat[r * PE_LANES];
    z->flat_of[side] = tile;
    return row;
}

/* And beyond an end of B one for each key; `key` is what was to be added to a key already, or NULL. */
static const float *flat_key(const pe_tiles *T, pe_scratch *z, int64_t h, const float *Kt, const float *key,
                             int64_t C, int64_t x0)
{
    const float  scale = (float)T->a->terms->scale;
    const float *B     = pe_rows_by(T, PE_B, h, pe_flat_row(&T->by[PE_B], x0));
    T->a->kernels->product(z->flat_key, T->Bcp, B, T->by[PE_B].row, 1, Kt, T->Bcp, 1, C, T->a->sizes.D, 0);
    for (int64_t c = 0; c < T->Bcp; c++)
        z->flat_key[c] = scale * z->flat_key[c] + (key && c < C ? key[c] : 0);
    return z->flat_key;
}

/* extra[r,c] += scale * B[x] . K[c,:]: the band with the tile's keys, for each group of distances those that
   stand so far from a query, read along diagonals. */
static void add_key_band(const pe_tiles *T, pe_scratch *z, int64_t h, const float *Kt, int64_t i0, int64_t R,
                         int64_t j0, int64_t C)
{
    const pe_attention *a     = T->a;
    const float         scale = (float)a->terms->scale;
    const int64_t       n = R + C - 1, row = T->by[PE_B].row;
    const float        *B = pe_rows_by(T, PE_B, h, pe_band_start(T, i0, R, j0));
    for (int64_t x = 0; x < n; x += PE_LANES) {
        const int64_t some = pe_smaller(PE_LANES, n - x), c1 = pe_smaller(C, x + some),
                      c0 = pe_larger(0, x - (R - 1)) / PE_LANES * PE_LANES;
        a->kernels->product(z->beta + x * T->Bcp + c0, T->Bcp, B + x * row, row, 1, Kt + c0, T->Bcp, some,
                            c1 - c0, a->sizes.D, 0);
    }
    for (int64_t r = 0; r < R; r++) {
        const pe_group y = pe_seen_columns(z, r, C);
        for (int64_t c = y.first; c < y.first + y.count; c++)
            z->extra[r * T->Bcp + c] += scale * z->beta[(c + R - 1 - r) * T->Bcp + c];
    }
}

/* Terms by distance that lie along the diagonals. */
static void find_diagonals(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t I, int64_t J,
                           int64_t R, int64_t C, const float *Qw, const float *Kt, int reuse,
                           pe_tile_terms *terms)
{
    const int64_t x0 = pe_band_start(T, z->i0, R, z->j0);
    if (T->by[PE_B].rows && pe_run_is_flat(&T->by[PE_B], x0))
        terms->key = flat_key(T, z, h, Kt, terms->key, C, x0);
    if (pe_has(T->a->terms, PE_A) && pe_run_is_flat(&T->by[PE_A], x0))
        terms->row = flat_row(T, z, b, h, Qw, I, R, x0);
    else if (pe_has(T->a->terms, PE_A)) {
        band_product(T, z, h, Qw, z->i0, R, J, C, reuse);
        terms->skewed      = z->gamma + z->gamma_at + R - 1;
        terms->skewed_step = T->gamma_width - 1;
    }
    if (T->by[PE_BIAS].rows) {
        terms->bias      = pe_rows_by(T, PE_BIAS, h, x0) + R - 1;
        terms->bias_step = -1;
    }
}

void pe_shift_tile(const pe_tiles *T, pe_scratch *z, const float *s, int64_t R, int64_t C)
{
    for (int64_t r = 0; r < R; r++) {
        float *row = z->shift + r * T->band_width;
        memset(row, 0, (size_t)(R + C - 1) * sizeof(float));
        memcpy(row + R - 1 - r, s + r * T->Bcp, (size_t)C * sizeof(float));
    }
}

void pe_band_product(const pe_tiles *T, const pe_scratch *z, float *to, const float *B, int64_t R, int64_t C,
                     int64_t width)
{
    const int64_t stride = pe_padded(width);
    for (int64_t r = 0; r < R; r += PE_LANES) {
        const pe_group y = pe_band_group(z, r, R, C);
        T->a->kernels->product(to + r * stride, stride, z->shift + r * T->band_width + y.first, T->band_width,
                               1, B + y.first * stride, stride, y.rows, width, y.count, 1);
    }
}

/* ---- terms that are looked up pair by pair: distances off the diagonals, masks, segments ---- */

/* sum_d a[d] * b[d*step] */
static float dot(const float *a, const float *b, int64_t step, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i * step];
    return sum;
}

/* All score terms by distance of element (r,c), whose distance has row x of the band. */
static float looked_up(const pe_tiles *T, int64_t h, int64_t x, const float *Qw, const float *key)
{
    const int64_t D   = T->a->sizes.D;
    float         sum = T->by[PE_BIAS].rows ? *pe_rows_by(T, PE_BIAS, h, x) : 0;
    if (T->by[PE_A].rows)
        sum += dot(pe_rows_by(T, PE_A, h, x), Qw, 1, D);
    if (T->by[PE_B].rows)
        sum += (float)T->a->terms->scale * dot(pe_rows_by(T, PE_B, h, x), key, T->Bcp, D);
    return sum;
}

/* Terms by distance looked up one by one, where distances do not follow the diagonals. */
static void look_up(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, int64_t C, const float *Qw,
                    const float *Kt)
{
    const pe_attention *a   = T->a;
    const double        low = (double)a->distances.reach.low, high = (double)a->distances.reach.high;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const double  t   = z->q_pos[r] - z->k_pos[c];
            const int     out = t < low || t > high;
            const int64_t at = r * T->Bcp + c, row = T->by_distance && !out ? (int64_t)t - T->band.t0 : 0;
            z->extra[at] = out ? -INFINITY : 0;
            if (T->by_distance && !out)
                z->extra[at] += looked_up(T, h, row, Qw + r * T->Dp, Kt + c);
            if (T->by[PE_GATE].rows)
                z->gate[at] = out ? 0 : *pe_rows_by(T, PE_GATE, h, row);
        }
}

static void mask_explicitly(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                            int64_t j0, int64_t C)
{
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (!pe_is_allowed(T->a, b, h, i0 + r, j0 + c))
                z->extra[r * T->Bcp + c] = -INFINITY;
}

/* scale * (q + us) . G[segment] of the tile's queries, `step` numbers apart; Qu holds scale * (q + u). */
static void meet_segment(const pe_tiles *T, float *to, int64_t step, int64_t h, int segment, int64_t R,
                         const float *Qu)
{
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D;
    const double       *u = pe_head_vector(a, a->terms->u, h), *us = pe_head_vector(a, a->terms->us, h),
                 *G = pe_segment_vector(a, h, segment);
    double fixed    = 0;
    for (int64_t d = 0; d < D; d++)
        fixed += ((us ? us[d] : 0) - (u ? u[d] : 0)) * G[d];
    for (int64_t r = 0; r < R; r++) {
        double sum = a->terms->scale * fixed;
        for (int64_t d = 0; d < D; d++)
            sum += (double)Qu[r * T->Dp + d] * G[d];
        to[r * step] = (float)sum;
    }
}

/* Where there are two segments: extra += what the query makes of the key's. */
static void meet_segments(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, int64_t C, const float *Qu)
{
    for (int g = 0; g < 2; g++)
        meet_segment(T, z->meets + g, 2, h, g, R, Qu);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            z->extra[r * T->Bcp + c] += z->meets[2 * r + (z->q_seg[r] != z->k_seg[c])];
}

/* Where all tokens are of one: a number for each query, with those of `row`, which may be NULL. */
static const float *meet_own_segment(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, const float *Qu,
                                     const float *row)
{
    meet_segment(T, z->meets, 1, h, 0, R, Qu);
    for (int64_t r = 0; row && r < R; r++)
        z->meets[r] += row[r];
    return z->meets;
}

/* Packed sequences: other segments are not seen. */
static void mask_segments(const pe_tiles *T, pe_scratch *z, int64_t R, int64_t C)
{
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (z->q_seg[r] != z->k_seg[c])
                z->extra[r * T->Bcp + c] = -INFINITY;
}

void pe_load_places(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t R, int64_t C)
{
    const pe_attention *a = T->a;
    if (z->placed[0] == z->i0 && z->placed[1] == z->j0)
        return;
    z->placed[0] =
        pe_position_pairs(&a->q_pos, &a->k_pos, 2) == 1 && !pe_segments_known(a) ? z->i0 : -1; /* shared */
    z->placed[1] = z->j0;
    for (int64_t r = 0; r < R; r++) {
        z->q_pos[r] = pe_position(&a->q_pos, b, z->i0 + r);
        z->q_seg[r] = pe_segment(&a->q_segments, b, z->i0 + r);
    }
    for (int64_t c = 0; c < C; c++) {
        z->k_pos[c] = pe_position(&a->k_pos, b, z->j0 + c);
        z->k_seg[c] = pe_segment(&a->k_segments, b, z->j0 + c);
    }
}

/* All terms of pairs, into z->extra; z has the places of the tile where they matter. `with_keys`: the band
   with keys too. */
static void fill_extra(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                       int64_t j0, int64_t C, const float *Qu, const float *Qw, const float *Kt,
                       int with_keys)
{
    const pe_attention *a = T->a;
    if (T->skewed)
        memset(z->extra, 0, (size_t)(R * T->Bcp) * sizeof(float));
    else
        look_up(T, z, h, R, C, Qw, Kt);
    if (with_keys)
        add_key_band(T, z, h, Kt, i0, R, j0, C);
    if (a->terms->G != PE_NONE && pe_segments_known(a))
        meet_segments(T, z, h, R, C, Qu);
    if ((a->mask & POSENC_MASK_SEGMENTS) && !a->unmasked)
        mask_segments(T, z, R, C);
    if ((a->mask & POSENC_MASK_EXPLICIT) && !a->unmasked)
        mask_explicitly(T, z, b, h, i0, R, j0, C);
}

/* Numbers of pairs join what is added, where they could not be added in their place. */
static void take_pairs(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, int64_t C,
                       pe_tile_terms *terms)
{
    for (int64_t r = 0; r < R; r++) {
        pe_pairs_load(T->a, h, z->i0 + r, z->j0, C, z->pair_row);
        for (int64_t c = 0; c < C; c++)
            z->extra[r * T->Bcp + c] = (float)z->pair_row[c] + (terms->extra ? z->extra[r * T->Bcp + c] : 0);
    }
    terms->extra      = z->extra;
    terms->extra_step = T->Bcp;
}

/* ---- what a hook says of the pairs of a tile, and products that are there in double ---- */

pe_tile pe_hook_tile(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t R, int64_t C)
{
    return (pe_tile){.h        = h,
                     .rows     = R,
                     .cols     = C,
                     .stride   = C,
                     .i0       = z->i0,
                     .j0       = z->j0,
                     .q_pos    = z->q_pos,
                     .k_pos    = z->k_pos,
                     .scale    = T->a->terms->scale,
                     .q        = z->q,
                     .s        = z->s,
                     .state    = z->state,
                     .backward = z->backward && !z->whole_row,
                     .ds       = z->ds,
                     .dq       = z->dq};
}

/* Products and queries in double for a hook that asks for content. Of masks by distance the column limits
   tell. */
static void widen_content(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
                          int64_t j0, int64_t C, const float *s, const float *Qu)
{
    const pe_attention *a       = T->a;
    const int64_t       D       = a->sizes.D;
    const double        inverse = 1 / a->terms->scale;
    const int           ask     = pe_asks_pairs(T);
    for (int64_t r = 0; r < R; r++) {
        const pe_group seen = pe_seen_columns(z, r, C);
        const int64_t  low = seen.first, high = seen.first + seen.count;
        for (int64_t d = 0; d < D; d++)
            z->q[r * D + d] = (double)Qu[r * T->Dp + d] * inverse;
        for (int64_t c = 0; c < low; c++)
            z->s[r * C + c] = -INFINITY;
        for (int64_t c = low; c < high; c++)
            z->s[r * C + c] = (double)s[r * T->Bcp + c];
        for (int64_t c = high; c < C; c++)
            z->s[r * C + c] = -INFINITY;
        for (int64_t c = 0; ask && c < C; c++)
            if (!pe_is_allowed(a, b, h, i0 + r, j0 + c))
                z->s[r * C + c] = -INFINITY;
    }
}

static int any_is_apart(const pe_tiles *T, const double pos[], int64_t n)
{
    int apart = 0;
    for (int64_t i = 0; T->a->terms->hook.apart && i < n && !apart; i++)
        apart = pe_is_apart(T->a, pos[i]);
    return apart;
}

/* May the hook have something to say of the tile at hand? */
static int is_hooked(const pe_tiles *T, const pe_scratch *z, int64_t R, int64_t C)
{
    const pe_tile_hook *hook = &T->a->terms->hook;
    if (!hook->apart)
        return hook->visit && !T->kept;
    return any_is_apart(T, z->q_pos, R) || any_is_apart(T, z->k_pos, C);
}

/* The bias that the kernel (or a lookup) adds to a pair that stands apart, to be taken back. */
static double bias_of(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t r, int64_t c)
{
    const int64_t x = T->skewed ? z->j0 + c - (z->i0 + r) + T->a->sizes.Lq - 1
                                : (int64_t)(z->q_pos[r] - z->k_pos[c]) - T->band.t0;
    return T->by[PE_BIAS].rows && x >= T->band.first && x < T->band.last
               ? (double)*pe_rows_by(T, PE_BIAS, h, x) + pe_center(T, h)
               : 0;
}

/* The tile's products that are there in double; top[r] is still to be taken from them. */
static const double *sharp_row(const pe_scratch *z, int64_t r)
{
    return z->sharp + r * z->sharp_stride + z->j0 - z->sharp_from;
}

void pe_sharp_add(const pe_tiles *T, const pe_scratch *z, float *s, const double *X, int64_t step, int64_t R,
                  int64_t C)
{
    for (int64_t r = 0; r < R; r++) {
        const double *product = sharp_row(z, r), *x = X + r * step;
        for (int64_t c = 0; c < C; c++)
            s[r * T->Bcp + c] = (float)(product[c] - z->top[r] + x[c]);
    }
}

/* The tile's share of the products that are there in double, into s. */
static void take_sharp(const pe_tiles *T, const pe_scratch *z, float *s, int64_t R, int64_t C)
{
    for (int64_t r = 0; r < R; r++) {
        const double *product = sharp_row(z, r);
        for (int64_t c = 0; c < C; c++)
            s[r * T->Bcp + c] = (float)(product[c] - z->top[r]);
        for (int64_t c = C; c < T->Bcp; c++)
            s[r * T->Bcp + c] = 0;
    }
}

/* X goes to z->extra; sharp products take it in double before they are rounded. */
static void visit_hook(const pe_tiles *T, pe_scratch *z, float *s, int64_t h, int64_t R, int64_t C)
{
    const pe_attention *a     = T->a;
    const pe_tile       tile  = pe_hook_tile(T, z, h, R, C);
    const int           sharp = pe_is_sharp(T), keys = any_is_apart(T, z->k_pos, C),
              queries = any_is_apart(T, z->q_pos, R);
    a->terms->hook.visit(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile, z->x);
    for (int64_t r = 0; r < R; r++) {
        const double  less  = pe_is_shifted(T, z) && z->lse[r] != -INFINITY ? (double)z->lse[r] : 0;
        const int     query = queries && pe_is_apart(T->a, z->q_pos[r]);
        float        *extra = z->extra + r * T->Bcp, *to = s + r * T->Bcp;
        const double *x = z->x + r * C, *product = sharp ? sharp_row(z, r) : NULL;
        for (int64_t c = 0; !queries && !keys && sharp && c < C; c++)
            to[c] = (float)(product[c] - z->top[r] + (x[c] - less));
        for (int64_t c = 0; !queries && !keys && !sharp && c < C; c++)
            extra[c] += (float)(x[c] - less);
        for (int64_t c = 0; (queries || keys) && c < C; c++) {
            const int    apart = query || (keys && pe_is_apart(T->a, z->k_pos[c]));
            const double bias  = apart ? bias_of(T, z, h, r, c) : 0;
            const double more  = x[c] - less - bias;
            if (sharp)
                to[c] = (float)(product[c] - z->top[r] + more);
            else
                extra[c] += (float)more;
        }
    }
}

/* ---- products of queries and keys, and the terms that join them on their way out ---- */

/* The modulus of both forms; backward, the share of each in it besides: 0 where both are 0 and no direction
   is known. */
static void join_forms(const pe_tiles *T, pe_scratch *z, float *s, int64_t R, int64_t C)
{
    const int64_t n    = T->Br * T->Bcp;
    float *const first = z->share, *const second = z->share ? z->share + n : NULL;
    if (first)
        memcpy(first, s, (size_t)(R * T->Bcp) * sizeof *s);
    T->a->kernels->modulus(s, z->S2, T->Bcp, R, C);
    for (int64_t r = 0; first && r < R; r++)
        for (int64_t x = r * T->Bcp; x < r * T->Bcp + C; x++) {
            first[x]  = s[x] > 0 ? first[x] / s[x] : 0;
            second[x] = s[x] > 0 ? z->S2[x] / s[x] : 0;
        }
}

/* Numbers of the tile's pairs where the caller keeps them, if a kernel can add them from there; NULL: there
   are none, or something comes between (a kernel reads whole vectors, too). */
static const float *pairs_in_place(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t C)
{
    const pe_attention *a       = T->a;
    const int           between = a->grown || z->Q2 || pe_is_sharp(T) || a->terms->hook.visit || T->has_extra;
    return a->terms->pairs.matrix && !between && C % PE_LANES == 0 ? pe_pairs_at(a, h, z->i0, z->j0) : NULL;
}

/* The same for the tile after this: backward the queries go on, forward the keys. NULL behind the last. */
static const float *next_pairs(const pe_tiles *T, const pe_scratch *z, const float *pairs)
{
    const pe_problem *p    = &T->a->sizes;
    const int64_t     down = z->backward ? T->Br : 0, right = z->backward ? 0 : T->Bc;
    const int         last = z->i0 + down >= p->Lq || z->j0 + right >= p->Lk;
    return last ? NULL : pairs + down * T->a->parts[PE_SCORE].p->Lk + right;
}

/* One stream of terms, which goes into the products as they are made. */
typedef struct stream {
    const float *at; /* NULL: none */
    int64_t      step;
    int far; /* its rows lie far apart in memory, each on a page of its own, which no prefetcher foresees */
    const float *next; /* where it goes on with the next tile, if it is far and there is one */
} stream;

/* It is taken from the terms that are left to the kernels that finish scores. Where products are wanted bare,
   there is none. */
static stream take_stream(const pe_tiles *T, const pe_scratch *z, const float *pairs, pe_tile_terms *terms)
{
    stream y = {0};
    if (pe_is_sharp(T) || z->Q2 || T->a->terms->hook.content)
        return y;
    const float **from = terms->bias ? &terms->bias : terms->skewed ? &terms->skewed : &terms->extra;
    y.at               = *from;
    y.step = terms->bias ? terms->bias_step : terms->skewed ? terms->skewed_step : terms->extra_step;
    y.far  = y.at && y.at == pairs;
    y.next = y.far ? next_pairs(T, z, pairs) : NULL;
    *from  = NULL;
    return y;
}

/* Products of some queries from row r on with the keys that any of the group may see. What those from `ahead`
   on will add is asked for. */
static void multiply_group(const pe_tiles *T, float *s, int64_t r, int64_t rows, pe_group y, const float *Qu,
                           const float *Kt, stream plus, const float *ahead)
{
    const pe_kernels *k    = T->a->kernels;
    const int64_t     D    = T->a->sizes.D;
    float            *to   = s + r * T->Bcp + y.first;
    const pe_ahead    next = {.at   = {ahead ? (uintptr_t)(ahead + y.first) : 0},
                              .step = {plus.step * (int64_t)sizeof *ahead}};
    if (plus.at)
        k->product_plus(to, T->Bcp, Qu + r * T->Dp, T->Dp, Kt + y.first, T->Bcp, rows, y.count, D,
                        plus.at + r * plus.step + y.first, plus.step, ahead ? &next : NULL);
    else
        k->product(to, T->Bcp, Qu + r * T->Dp, T->Dp, 1, Kt + y.first, T->Bcp, rows, y.count, D, 0);
}

enum { TOGETHER = 6 }; /* rows of a block of products: whole blocks ask for what is ahead of them */

/* Some rows of a stream are called from memory at once; a number, as they may end before a whole tile
   does. */
static void call_rows(uintptr_t rows, int64_t step, int64_t n, int64_t C)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < C; c += PE_LANES)
            __builtin_prefetch((const void *)(rows + (uintptr_t)(r * step + c) * sizeof(float)));
}

/* Products of groups of queries. Where rows far apart are added, each block of products asks memory for those
   of the next, and the last of a tile for the first of the next tile: any earlier they would share sets of
   the first cache with too many others, all at once they would hold up the loads of the product at hand. */
static void multiply_seen(const pe_tiles *T, const pe_scratch *z, float *s, int64_t R, int64_t C,
                          const float *Qu, const float *Kt, stream plus)
{
    for (int64_t r = 0; r < R;) {
        const pe_group y   = pe_group_at(z, r, R, C);
        const int64_t  all = pe_smaller(y.rows, R - r), rows = plus.far ? pe_smaller(all, TOGETHER) : all,
                      next = r + rows;
        const float *ahead = !plus.far ? NULL : next < R ? plus.at + next * plus.step : plus.next;
        if (ahead && rows < TOGETHER)
            call_rows((uintptr_t)ahead, plus.step, pe_smaller(TOGETHER, next < R ? R - next : T->Br), C);
        multiply_group(T, s, r, rows, y, Qu, Kt, plus, ahead);
        r = next;
    }
}

/* Products of the tile's queries and keys, grown where that is asked for; of both forms their modulus. */
static void multiply_tile(const pe_tiles *T, pe_scratch *z, float *s, int64_t b, int64_t R, int64_t C,
                          const float *Qu, const float *Kt, const float *pairs, pe_tile_terms *terms)
{
    const pe_attention *a    = T->a;
    const float        *Q2   = z->Q2;
    const stream        plus = take_stream(T, z, pairs, terms);
    if (a->grown) {
        pe_grow_queries(T, z, b, Qu, R);
        Qu = z->Qg;
        Q2 = z->Q2 ? z->Qg + T->Br * T->Dp : NULL;
        Kt = z->Kgt;
    }
    if (pe_is_sharp(T))
        take_sharp(T, z, s, R, C);
    else if (Q2) /* what is not seen must be numbers too: its share times 0 has to be 0 */
        a->kernels->product(s, T->Bcp, Qu, T->Dp, 1, Kt, T->Bcp, R, C, a->sizes.D, 0);
    else
        multiply_seen(T, z, s, R, C, Qu, Kt, plus);
    if (!Q2)
        return;
    a->kernels->product(z->S2, T->Bcp, Q2, T->Dp, 1, Kt, T->Bcp, R, C, a->sizes.D, 0);
    join_forms(T, z, s, R, C);
}

/* ---- all together ---- */

/* Allowed columns of each row; returns 0 if all are. */
static int column_limits(const pe_tiles *T, const pe_scratch *z, int64_t i0, int64_t R, int64_t j0, int64_t C)
{
    if (!T->skewed || (i0 - (j0 + C - 1) >= T->e_low && i0 + R - 1 - j0 <= T->e_high))
        return 0;
    for (int64_t r = 0; r < R; r++) {
        const int64_t low = i0 + r - T->e_high - j0, high = i0 + r - T->e_low - j0 + 1;
        z->low[r]  = (int32_t)(low < 0 ? 0 : low > C ? C : low);
        z->high[r] = (int32_t)(high < 0 ? 0 : high > C ? C : high);
    }
    return 1;
}

const float *pe_tile_gate(const pe_tiles *T, const pe_scratch *z, int64_t h, int64_t I, int64_t J,
                          int64_t *step)
{
    const int64_t i0 = I * T->Br, R = pe_smaller(T->Br, T->a->sizes.Lq - i0);
    if (!T->by[PE_GATE].rows)
        return NULL;
    *step = T->skewed ? -1 : T->Bcp;
    return T->skewed ? pe_rows_by(T, PE_GATE, h, pe_band_start(T, i0, R, J * T->Bc)) + R - 1 : z->gate;
}

int pe_tile_products(const pe_tiles *T, pe_scratch *z, float *s, int64_t b, int64_t h, int64_t I, int64_t J,
                     const float *Qu, const float *Qw, const float *Kt, const float *key, int reuse,
                     pe_tile_terms *terms)
{
    const pe_attention *a  = T->a;
    const pe_problem   *p  = &a->sizes;
    const int64_t       i0 = I * T->Br, R = pe_smaller(T->Br, p->Lq - i0), j0 = J * T->Bc,
                  C = pe_smaller(T->Bc, p->Lk - j0);
    *terms          = (pe_tile_terms){0};
    if (!pe_tile_is_reached(T, I, J))
        return 0;
    z->i0      = i0;
    z->j0      = j0;
    z->limited = !a->unmasked && column_limits(T, z, i0, R, j0, C);
    const int banded_keys =
        T->skewed && T->by[PE_B].rows &&
        !pe_run_is_flat(&T->by[PE_B], pe_band_start(T, i0, R, j0)); /* of their own tile */
    const float *pairs = banded_keys ? NULL : pairs_in_place(T, z, h, C);
    terms->key         = key && !a->unmasked ? key + j0 : NULL;
    if (T->skewed)
        find_diagonals(T, z, b, h, I, J, R, C, Qw, Kt, reuse, terms);
    if (a->terms->G != PE_NONE && !pe_segments_known(a))
        terms->row = meet_own_segment(T, z, h, R, Qu, terms->row);
    if (pairs) {
        terms->extra      = pairs;
        terms->extra_step = a->parts[PE_SCORE].p->Lk;
    }
    multiply_tile(T, z, s, b, R, C, Qu, Kt, pairs, terms);
    if (T->has_extra || a->terms->hook.apart)
        pe_load_places(T, z, b, R, C);
    z->hooked = is_hooked(T, z, R, C);
    if (T->has_extra || z->hooked || banded_keys) {
        fill_extra(T, z, b, h, i0, R, j0, C, Qu, Qw, Kt, banded_keys);
        terms->extra      = z->extra;
        terms->extra_step = T->Bcp;
    }
    if (a->terms->pairs.matrix && !pairs)
        take_pairs(T, z, h, R, C, terms);
    if (z->limited) {
        terms->low  = z->low;
        terms->high = z->high;
    }
    if (T->kept)
        pe_kept_add(T, z, s, h, R, C, terms);
    if (a->terms->hook.content)
        widen_content(T, z, b, h, i0, R, j0, C, s, Qu);
    if (z->hooked)
        visit_hook(T, z, s, h, R, C);
    return 1;
}

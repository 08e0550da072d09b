/* SPDX-License-Identifier: MIT */
/*
 * tile_scores.c: the scores of one tile, put together from its products and all their terms
 *
 * pe_tile_scores_multiply calls the parts, when z->i0 and z->j0 say where the tile begins and z->limited
 * whether its queries have column limits. What they find goes to `terms`, which kernels add, or to z->extra.
 * Idea: tiles.h.
 */
#include <math.h>
#include <string.h>

#include "base/shared/compiler.h"
#include "engine/tiled/tiles.h"

/* ---- terms by distance, which lie along the diagonals of a tile, and products with their bands ---- */

/* Where there is nothing yet: of some queries the columns of the band that they see, all those to come
   included if the next key tile goes on with them. They begin on a cache line if they can. */
static pe_visible new_columns(const pe_scratch *z, int64_t r, int goes_on, int64_t reached)
{
    const pe_visible y    = pe_band_group(z, r);
    const int64_t    line = z->R - 1 - pe_padded(z->R - 1 - y.first), first = line > 0 ? line : 0,
                  last = goes_on ? reached : pe_smaller(reached, y.first + y.count);
    return (pe_visible){y.rows, first, last - first};
}

/* gamma[r, at + c] = Qw[r,:] . A[x0 + c]: the band of the tile. Going from one key tile to the next, R - 1
   columns are there already and the others are written after them, until the row is full: then the R - 1 go
   back to the beginning. What is written starts on a cache line; what no mask reaches is not. */
static void band_product(const pe_tiles *T, pe_scratch *z, const float *Qw, int reuse)
{
    const pe_attention *a    = T->a;
    const int64_t       have = reuse && z->band.gamma_key == z->J ? z->R - 1 : 0, W = T->gamma_width,
                  first = pe_padded(z->R - 1) - (z->R - 1), next = z->band.gamma_at + T->Bc;
    z->band.gamma_at = have && next + z->R - 1 + pe_padded(z->C) <= W ? next : first;
    for (int64_t r = 0; have && z->band.gamma_at == first && r < z->R; r++)
        memmove(z->band.gamma + r * W + first, z->band.gamma + r * W + next, (size_t)have * sizeof(float));
    const int64_t reached = pe_smaller(z->R + z->C - 1, T->band.last - z->x0);
    float *const  to      = z->band.gamma + z->band.gamma_at;
    for (int64_t r = 0; r < z->R;) {
        const pe_visible y =
            have ? (pe_visible){z->R, have, reached - have} : new_columns(z, r, reuse, reached);
        a->kernels->product(to + r * W + y.first, W, Qw + r * T->Ap, T->Ap, 1,
                            pe_columns_by(T, PE_A, z->h, z->x0) + y.first, T->by[PE_A].stride, y.rows,
                            pe_larger(y.count, 0), pe_width_of_A(T), 0);
        r += y.rows;
    }
    z->band.gamma_key = z->J + 1;
}

/* Beyond an end of A there is one number for each query, the same for all key tiles there. */
static const float *flat_row(const pe_tiles *T, pe_scratch *z, const float *Qw)
{
    const pe_attention *a    = T->a;
    const int           side = pe_flat_side(&T->by[PE_A], z->x0);
    const int64_t       tile = (z->b * a->sizes.H + z->h) * T->query_tiles + z->I;
    float              *row  = z->band.flat_row + side * T->Br;
    if (z->band.flat_of[side] == tile)
        return row;
    a->kernels->product(z->band.flat, PE_LANES, Qw, T->Ap, 1,
                        pe_columns_by(T, PE_A, z->h, pe_flat_row(&T->by[PE_A], z->x0)), T->by[PE_A].stride,
                        z->R, 1, pe_width_of_A(T), 0);
    for (int64_t r = 0; r < z->R; r++)
        row[r] = z->band.flat[r * PE_LANES];
    z->band.flat_of[side] = tile;
    return row;
}

/* And beyond an end of B one for each key; `key` is what was to be added to a key already, or NULL. */
static const float *flat_key(const pe_tiles *T, pe_scratch *z, const float *Kt, const float *key)
{
    const float  scale = (float)T->a->terms->scale;
    const float *B     = pe_rows_by(T, PE_B, z->h, pe_flat_row(&T->by[PE_B], z->x0));
    T->a->kernels->product(z->band.flat_key, T->Bcp, B, T->by[PE_B].row, 1, Kt, T->Bcp, 1, z->C,
                           T->a->sizes.D, 0);
    for (int64_t c = 0; c < T->Bcp; c++)
        z->band.flat_key[c] = scale * z->band.flat_key[c] + (key && c < z->C ? key[c] : 0);
    return z->band.flat_key;
}

/* extra[r,c] += scale * B[x] . K[c,:]: the band with the tile's keys, for each group of distances those that
   stand so far from a query, read along diagonals. */
static void add_key_band(const pe_tiles *T, pe_scratch *z, const float *Kt)
{
    const pe_attention *a     = T->a;
    const float         scale = (float)a->terms->scale;
    const int64_t       n = z->R + z->C - 1, row = T->by[PE_B].row;
    const float        *B = pe_rows_by(T, PE_B, z->h, z->x0);
    for (int64_t x = 0; x < n; x += PE_LANES) {
        const int64_t some = pe_smaller(PE_LANES, n - x), c1 = pe_smaller(z->C, x + some),
                      c0 = pe_larger(0, x - (z->R - 1)) / PE_LANES * PE_LANES;
        a->kernels->product(z->band.beta + x * T->Bcp + c0, T->Bcp, B + x * row, row, 1, Kt + c0, T->Bcp,
                            some, c1 - c0, a->sizes.D, 0);
    }
    for (int64_t r = 0; r < z->R; r++) {
        const pe_visible y = pe_seen_columns(z, r);
        for (int64_t c = y.first; c < y.first + y.count; c++)
            z->extra[r * T->Bcp + c] += scale * z->band.beta[(c + z->R - 1 - r) * T->Bcp + c];
    }
}

/* Terms by distance that lie along the diagonals. */
static void find_diagonals(const pe_tiles *T, pe_scratch *z, const float *Qw, const float *Kt, int reuse,
                           pe_tile_terms *terms)
{
    if (T->by[PE_B].rows && pe_run_is_flat(&T->by[PE_B], z->x0))
        terms->key = flat_key(T, z, Kt, terms->key);
    if (T->by[PE_A].width && pe_profile_is_over(T, z->x0))
        terms->skewed = NULL;
    else if (T->by[PE_A].width && pe_run_is_flat(&T->by[PE_A], z->x0))
        terms->row = flat_row(T, z, Qw);
    else if (T->by[PE_A].width) {
        band_product(T, z, Qw, reuse);
        terms->skewed      = z->band.gamma + z->band.gamma_at + z->R - 1;
        terms->skewed_step = T->gamma_width - 1;
    }
    if (T->by[PE_BIAS].rows) {
        terms->bias      = pe_rows_by(T, PE_BIAS, z->h, z->x0) + z->R - 1;
        terms->bias_step = -1;
    }
}

void pe_tile_scores_shift(const pe_tiles *T, pe_scratch *z, const float *s)
{
    for (int64_t r = 0; r < z->R; r++) {
        float *row = z->band.shift + r * T->band_width;
        memset(row, 0, (size_t)(z->R + z->C - 1) * sizeof(float));
        memcpy(row + z->R - 1 - r, s + r * T->Bcp, (size_t)z->C * sizeof(float));
    }
}

void pe_tile_scores_band_product(const pe_tiles *T, const pe_scratch *z, float *to, const float *B,
                                 int64_t width)
{
    const int64_t stride = pe_padded(width);
    for (int64_t r = 0; r < z->R; r += PE_LANES) {
        const pe_visible y = pe_band_group(z, r);
        T->a->kernels->product(to + r * stride, stride, z->band.shift + r * T->band_width + y.first,
                               T->band_width, 1, B + y.first * stride, stride, y.rows, width, y.count, 1);
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
        sum += dot(pe_rows_by(T, PE_A, h, x), Qw, 1, pe_width_of_A(T));
    if (T->by[PE_B].rows)
        sum += (float)T->a->terms->scale * dot(pe_rows_by(T, PE_B, h, x), key, T->Bcp, D);
    return sum;
}

/* Terms by distance looked up one by one, where distances do not follow the diagonals. */
static void look_up(const pe_tiles *T, pe_scratch *z, const float *Qw, const float *Kt)
{
    const int64_t       R = z->R, C = z->C;
    const pe_attention *a   = T->a;
    const double        low = (double)a->distances.reach.low, high = (double)a->distances.reach.high;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++) {
            const double  t   = z->q_pos[r] - z->k_pos[c];
            const int     out = t < low || t > high;
            const int64_t at = r * T->Bcp + c, row = T->by_distance && !out ? pe_band_row(T, t) : 0;
            z->extra[at] += out              ? -INFINITY
                            : T->by_distance ? looked_up(T, z->h, row, Qw ? Qw + r * T->Ap : NULL, Kt + c)
                                             : 0;
            if (T->by[PE_GATE].rows)
                z->gate[at] = out ? 0 : *pe_rows_by(T, PE_GATE, z->h, row);
        }
}

static void mask_explicitly(const pe_tiles *T, pe_scratch *z)
{
    const int64_t R = z->R, C = z->C;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (!pe_pairs_allowed(T->a, z->b, z->h, z->i0 + r, z->j0 + c))
                z->extra[r * T->Bcp + c] = -INFINITY;
}

/* scale * (q + us) . G[segment] of the tile's queries, `step` numbers apart; Qu holds scale * (q + u). */
static void multiply_segment(const pe_tiles *T, float *to, int64_t step, int64_t h, int segment, int64_t R,
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
static void add_segments(const pe_tiles *T, pe_scratch *z, const float *Qu)
{
    const int64_t R = z->R, C = z->C;
    for (int g = 0; g < 2; g++)
        multiply_segment(T, z->segments + g, 2, z->h, g, R, Qu);
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            z->extra[r * T->Bcp + c] += z->segments[2 * r + (z->q_seg[r] != z->k_seg[c])];
}

/* Where all tokens are of one: a number for each query, with those of `row`, which may be NULL. */
static const float *add_own_segment(const pe_tiles *T, pe_scratch *z, const float *Qu, const float *row)
{
    multiply_segment(T, z->segments, 1, z->h, 0, z->R, Qu);
    for (int64_t r = 0; row && r < z->R; r++)
        z->segments[r] += row[r];
    return z->segments;
}

/* Packed sequences: other segments are not seen. */
static void mask_segments(const pe_tiles *T, pe_scratch *z)
{
    const int64_t R = z->R, C = z->C;
    for (int64_t r = 0; r < R; r++)
        for (int64_t c = 0; c < C; c++)
            if (z->q_seg[r] != z->k_seg[c])
                z->extra[r * T->Bcp + c] = -INFINITY;
}

void pe_tile_scores_load_places(const pe_tiles *T, pe_scratch *z)
{
    const int64_t       R = z->R, C = z->C;
    const pe_attention *a = T->a;
    if (z->placed[0] == z->i0 && z->placed[1] == z->j0)
        return;
    const int shared = pe_positions_pair_batches(&a->q_pos, &a->k_pos, 2) == 1 && !pe_has_segments(a);
    z->placed[0]     = shared ? z->i0 : -1;
    z->placed[1]     = z->j0;
    for (int64_t r = 0; r < R; r++) {
        z->q_pos[r] = pe_positions_at(&a->q_pos, z->b, z->i0 + r);
        z->q_seg[r] = pe_pairs_segment(&a->q_segments, z->b, z->i0 + r);
    }
    for (int64_t c = 0; c < C; c++) {
        z->k_pos[c] = pe_positions_at(&a->k_pos, z->b, z->j0 + c);
        z->k_seg[c] = pe_pairs_segment(&a->k_segments, z->b, z->j0 + c);
    }
}

/* All terms of pairs, into z->extra, beside those that are there if it `has_some`; z has the places of the
   tile where they matter. `with_keys`: the band with keys too. */
static void fill_extra(const pe_tiles *T, pe_scratch *z, const float *Qu, const float *Qw, const float *Kt,
                       int with_keys, int has_some)
{
    const pe_attention *a = T->a;
    if (!has_some)
        memset(z->extra, 0, (size_t)(z->R * T->Bcp) * sizeof(float));
    if (!T->skewed)
        look_up(T, z, Qw, Kt);
    if (with_keys)
        add_key_band(T, z, Kt);
    if (a->terms->G != PE_NONE && pe_has_segments(a))
        add_segments(T, z, Qu);
    if ((a->mask & POSENC_MASK_SEGMENTS) && !a->unmasked)
        mask_segments(T, z);
    if ((a->mask & POSENC_MASK_EXPLICIT) && !a->unmasked)
        mask_explicitly(T, z);
}

/* Numbers of pairs join what is added, where they could not be added in their place. */
static void take_pairs(const pe_tiles *T, pe_scratch *z, pe_tile_terms *terms)
{
    const int64_t R = z->R, C = z->C;
    for (int64_t r = 0; r < R; r++) {
        pe_pairs_load(T->a, z->h, z->i0 + r, z->j0, C, z->pair_row);
        for (int64_t c = 0; c < C; c++)
            z->extra[r * T->Bcp + c] = (float)z->pair_row[c] + (terms->extra ? z->extra[r * T->Bcp + c] : 0);
    }
    terms->extra      = z->extra;
    terms->extra_step = T->Bcp;
}

/* ---- what a hook says of the pairs of a tile, and products that are there in double ---- */

pe_tile pe_tile_scores_hook_tile(const pe_tiles *T, const pe_scratch *z)
{
    const pe_beginning *from = &T->a->from;
    return (pe_tile){.h        = from->h + z->h,
                     .rows     = z->R,
                     .cols     = z->C,
                     .stride   = z->C,
                     .i0       = from->i + z->i0,
                     .j0       = from->j + z->j0,
                     .q_pos    = z->q_pos,
                     .k_pos    = z->k_pos,
                     .q_places = {&T->a->q_coordinates, z->b, z->i0},
                     .k_places = {&T->a->k_coordinates, z->b, z->j0},
                     .scale    = T->a->terms->scale,
                     .q        = z->hook.q,
                     .s        = z->hook.s,
                     .state    = z->hook.state,
                     .backward = z->backward && !z->hook.whole_row,
                     .ds       = z->hook.ds,
                     .dq       = z->hook.dq};
}

/* Products and queries in double for a hook that asks for content. Of masks by distance the column limits
   tell. */
static void widen_content(const pe_tiles *T, const pe_scratch *z, const float *s, const float *Qu)
{
    const pe_attention *a = T->a;
    const int64_t       D = a->sizes.D, C = z->C;
    const double        inverse = 1 / a->terms->scale;
    const int           ask     = pe_asks_pairs(T);
    for (int64_t r = 0; r < z->R; r++) {
        const pe_visible seen = pe_seen_columns(z, r);
        const int64_t    low = seen.first, high = seen.first + seen.count;
        for (int64_t d = 0; d < D; d++)
            z->hook.q[r * D + d] = (double)Qu[r * T->Dp + d] * inverse;
        for (int64_t c = 0; c < low; c++)
            z->hook.s[r * C + c] = -INFINITY;
        for (int64_t c = low; c < high; c++)
            z->hook.s[r * C + c] = (double)s[r * T->Bcp + c];
        for (int64_t c = high; c < C; c++)
            z->hook.s[r * C + c] = -INFINITY;
        for (int64_t c = 0; ask && c < C; c++)
            if (!pe_pairs_allowed(a, z->b, z->h, z->i0 + r, z->j0 + c))
                z->hook.s[r * C + c] = -INFINITY;
    }
}

static int any_is_special(const pe_tiles *T, const double pos[], int64_t n)
{
    int found = 0;
    for (int64_t i = 0; T->a->terms->hook.is_special && i < n && !found; i++)
        found = pe_attention_is_special(T->a, pos[i]);
    return found;
}

/* May the hook have something to say of the tile at hand? */
static int is_hooked(const pe_tiles *T, const pe_scratch *z)
{
    const pe_tile_hook *hook = &T->a->terms->hook;
    if (!hook->is_special)
        return hook->visit && !T->hook_cache;
    return any_is_special(T, z->q_pos, z->R) || any_is_special(T, z->k_pos, z->C);
}

/* The bias that the kernel (or a lookup) adds to a pair with a special token, to be subtracted again. */
static double bias_of(const pe_tiles *T, const pe_scratch *z, int64_t r, int64_t c)
{
    const int64_t x =
        T->skewed ? z->j0 + c - (z->i0 + r) + T->a->sizes.Lq - 1 : pe_band_row(T, z->q_pos[r] - z->k_pos[c]);
    return T->by[PE_BIAS].rows && x >= T->band.first && x < T->band.last
               ? (double)*pe_rows_by(T, PE_BIAS, z->h, x) + pe_center(T, z->h)
               : 0;
}

/* The tile's products that are there in double; top[r] is still to be taken from them. */
static const double *product64_row(const pe_scratch *z, int64_t r)
{
    return z->products64.products + r * z->products64.stride + z->j0 - z->products64.from;
}

/* The tile's products in double, each with its share of X (rows `step` apart), into s. */
static void round_products64(const pe_tiles *T, const pe_scratch *z, float *s, const double *X, int64_t step)
{
    const int64_t C = z->C;
    for (int64_t r = 0; r < z->R; r++) {
        const double *product = product64_row(z, r), *x = X + r * step;
        for (int64_t c = 0; c < C; c++)
            s[r * T->Bcp + c] = (float)(product[c] - z->products64.top[r] + x[c]);
    }
}

/* The tile's share of the products that are there in double, into s. */
static void take_products64(const pe_tiles *T, const pe_scratch *z, float *s)
{
    const int64_t C = z->C;
    for (int64_t r = 0; r < z->R; r++) {
        const double *product = product64_row(z, r);
        for (int64_t c = 0; c < C; c++)
            s[r * T->Bcp + c] = (float)(product[c] - z->products64.top[r]);
        for (int64_t c = C; c < T->Bcp; c++)
            s[r * T->Bcp + c] = 0;
    }
}

/* X goes to z->extra; products in double take it in double before they are rounded. */
static void visit_hook(const pe_tiles *T, pe_scratch *z, float *s)
{
    const int64_t       C    = z->C;
    const pe_attention *a    = T->a;
    const pe_tile       tile = pe_tile_scores_hook_tile(T, z);
    const int           wide = pe_products64_serve(T), keys = any_is_special(T, z->k_pos, C),
              queries = any_is_special(T, z->q_pos, z->R);
    a->terms->hook.visit(a->parts[PE_SCORE].p, a->parts[PE_SCORE].par, &tile, z->hook.x);
    for (int64_t r = 0; r < z->R; r++) {
        const double  taken = pe_is_shifted(T, z) && z->back.lse[r] != -INFINITY ? (double)z->back.lse[r] : 0;
        const int     query = queries && pe_attention_is_special(T->a, z->q_pos[r]);
        float        *extra = z->extra + r * T->Bcp, *to = s + r * T->Bcp;
        const double *x = z->hook.x + r * C, *product = wide ? product64_row(z, r) : NULL;
        for (int64_t c = 0; !queries && !keys && wide && c < C; c++)
            to[c] = (float)(product[c] - z->products64.top[r] + (x[c] - taken));
        for (int64_t c = 0; !queries && !keys && !wide && c < C; c++)
            extra[c] += (float)(x[c] - taken);
        for (int64_t c = 0; (queries || keys) && c < C; c++) {
            const int    special = query || (keys && pe_attention_is_special(T->a, z->k_pos[c]));
            const double bias    = special ? bias_of(T, z, r, c) : 0;
            const double more    = x[c] - taken - bias;
            if (wide)
                to[c] = (float)(product[c] - z->products64.top[r] + more);
            else
                extra[c] += (float)more;
        }
    }
}

/* What a hook says where it is cached: read in its place if nothing else is added, or joined with that;
   products in double take it in double before they are rounded. */
static void add_cached(const pe_tiles *T, pe_scratch *z, float *s, pe_tile_terms *terms)
{
    const int64_t R = z->R, C = z->C;
    const int64_t step  = pe_hook_cache_stride(&T->a->sizes),
                  first = pe_hook_cache_first(&T->a->sizes, z->h, z->i0, z->j0);
    if (pe_products64_serve(T))
        round_products64(T, z, s, T->hook_cache + first, step);
    else if (!terms->extra) {
        terms->extra      = T->hook_floats + first;
        terms->extra_step = step;
    } else
        for (int64_t r = 0; r < R; r++)
            for (int64_t c = 0; c < C; c++)
                z->extra[r * T->Bcp + c] += T->hook_floats[first + r * step + c];
}

/* ---- products of queries and keys, and the terms that join them on their way out ---- */

/* Queries carry the factor of their scores, whose sign a modulus would lose. */
static int is_negative(const pe_tiles *T, const pe_scratch *z, int64_t r)
{
    const double tau = pe_scores_are_folded(T) ? pe_temper_at(T->a, z->b, z->h, z->i0 + r) : 1;
    return T->a->terms->scale * tau < 0;
}

/* The modulus of both forms; backward, also the share of each in it: 0 where both are 0 and no direction
   is known. */
static void join_forms(const pe_tiles *T, pe_scratch *z, float *s)
{
    const int64_t n    = T->Br * T->Bcp;
    float *const first = z->forms.share, *const second = z->forms.share ? z->forms.share + n : NULL;
    if (first)
        memcpy(first, s, (size_t)(z->R * T->Bcp) * sizeof *s);
    T->a->kernels->modulus(s, z->forms.S2, T->Bcp, z->R, z->C);
    for (int64_t r = 0; r < z->R; r++) {
        const int64_t turned = is_negative(T, z, r) ? z->C : 0;
        for (int64_t c = 0; c < turned; c++)
            s[r * T->Bcp + c] = -s[r * T->Bcp + c];
    }
    for (int64_t r = 0; first && r < z->R; r++)
        for (int64_t x = r * T->Bcp; x < r * T->Bcp + z->C; x++) {
            first[x]  = s[x] != 0 ? first[x] / s[x] : 0;
            second[x] = s[x] != 0 ? z->forms.S2[x] / s[x] : 0;
        }
}

/* Numbers of the tile's pairs where the caller has them, if a kernel can add them from there; NULL: there
   are none, or something comes between (a kernel reads whole vectors, too). */
static const float *pairs_in_place(const pe_tiles *T, const pe_scratch *z)
{
    const pe_attention *a = T->a;
    const int           between =
        a->grown || z->forms.Q2 || pe_products64_serve(T) || a->terms->hook.visit || T->has_extra;
    return a->terms->pairs.matrix && !between && z->C % PE_LANES == 0 ? pe_pairs_at(a, z->h, z->i0, z->j0)
                                                                      : NULL;
}

/* The same for the tile after this: backward the queries go on, forward the keys. NULL after the last. */
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

/* It is taken from the terms for the kernels that finish scores. Where products are wanted bare,
   there is none. */
static stream take_stream(const pe_tiles *T, const pe_scratch *z, const float *pairs, pe_tile_terms *terms)
{
    stream y = {0};
    if (pe_products64_serve(T) || z->forms.Q2 || T->a->terms->hook.content)
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
static void multiply_group(const pe_tiles *T, float *s, int64_t r, int64_t rows, pe_visible y,
                           const float *Qu, const float *Kt, stream plus, const float *ahead)
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
            PE_PREFETCH((const void *)(rows + (uintptr_t)(r * step + c) * sizeof(float)), 0, 3);
}

/* Products of groups of queries. Where rows far apart are added, each block of products asks memory for those
   of the next, and the last of a tile for the first of the next tile: any earlier they would share sets of
   the first cache with too many others, all at once they would hold up the loads of the product at hand. */
static void multiply_seen(const pe_tiles *T, const pe_scratch *z, float *s, const float *Qu, const float *Kt,
                          stream plus)
{
    for (int64_t r = 0; r < z->R;) {
        const pe_visible y = pe_visible_keys(z, r);
        const int64_t all = pe_smaller(y.rows, z->R - r), rows = plus.far ? pe_smaller(all, TOGETHER) : all,
                      next = r + rows;
        const float *ahead = !plus.far ? NULL : next < z->R ? plus.at + next * plus.step : plus.next;
        if (ahead && rows < TOGETHER)
            call_rows((uintptr_t)ahead, plus.step, pe_smaller(TOGETHER, next < z->R ? z->R - next : T->Br),
                      z->C);
        multiply_group(T, s, r, rows, y, Qu, Kt, plus, ahead);
        r = next;
    }
}

/* The least and the largest position of n elements from s on. */
static void find_extent(const posenc_positions *pos, int64_t b, int64_t s, int64_t n, double to[2])
{
    const int64_t step = pos->array.data || n < 2 ? 1 : n - 1; /* of a range the ends */
    to[0] = INFINITY, to[1] = -INFINITY;
    for (int64_t i = 0; i < n; i += step) {
        const double P = pe_positions_at(pos, b, s + i);
        to[0]          = fmin(to[0], P);
        to[1]          = fmax(to[1], P);
    }
}

/* The classes of a map of distances that the tile's pairs have. */
static unsigned find_classes(const pe_tiles *T, pe_scratch *z)
{
    const pe_attention *a     = T->a;
    const pe_reach      reach = a->unmasked ? pe_positions_reach(POSENC_MASK_NONE, 0) : a->reach;
    double              q[2], k[2];
    find_extent(&a->q_pos, z->b, z->i0, z->R, q);
    find_extent(&a->k_pos, z->b, z->j0, z->C, k);
    return pe_map_met(&a->rotary->map, q, k, (double)reach.low, (double)reach.high);
}

int pe_map_run(const pe_tiles *T, const pe_scratch *z, int64_t r, int64_t c, int64_t *run)
{
    const pe_map *map = &T->a->rotary->map;
    const double  q   = z->q_pos[r];
    const int     n   = pe_map_class(map, q, z->k_pos[c]);
    int64_t       low = c + 1, high = z->C; /* the run ends between them */
    if (T->a->k_pos.array.data) {
        while (low < high && pe_map_class(map, q, z->k_pos[low]) == n)
            low++;
        high = low;
    }
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (pe_map_class(map, q, z->k_pos[middle]) == n)
            low = middle + 1;
        else
            high = middle;
    }
    *run = low - c;
    return n;
}

/* Products of the forms that meet in the tile; of several, each pair takes that of its class. */
static void multiply_mapped(const pe_tiles *T, pe_scratch *z, float *s, const float *Kt, const float *pairs,
                            pe_tile_terms *terms)
{
    const pe_map *map = &T->a->rotary->map;
    z->map.classes    = find_classes(T, z);
    const int several = (z->map.classes & (z->map.classes - 1)) != 0;
    if (several)
        pe_tile_scores_load_places(T, z);
    const stream none = {0}, plus = several ? none : take_stream(T, z, pairs, terms);
    int          others = 0;
    for (int n = 0; n < T->forms[PE_QUERIES]; n++) {
        if (!(z->map.classes >> n & 1))
            continue;
        float *to = others ? z->map.S : s;
        multiply_seen(T, z, to, z->map.Q + n * z->map.step, pe_map_key_form(map, n) ? z->map.Kt : Kt, plus);
        for (int64_t r = 0; others && r < z->R; r++)
            for (int64_t c = 0, run; c < z->C; c += run)
                if (pe_map_run(T, z, r, c, &run) == n)
                    memcpy(s + r * T->Bcp + c, to + r * T->Bcp + c, (size_t)run * sizeof *s);
        others = 1;
    }
}

/* Products of the tile's queries and keys, grown where that is asked for; of both forms their modulus. */
static void multiply_tile(const pe_tiles *T, pe_scratch *z, float *s, const float *Qu, const float *Kt,
                          const float *pairs, pe_tile_terms *terms)
{
    const pe_attention *a  = T->a;
    const float        *Q2 = z->forms.Q2;
    if (T->forms[PE_QUERIES] > 1) {
        multiply_mapped(T, z, s, Kt, pairs, terms);
        return;
    }
    const stream plus = take_stream(T, z, pairs, terms);
    if (pe_walls(a)) {
        pe_tile_wall_multiply(T, z, s, Qu, Kt);
        for (int64_t r = 0; plus.at && r < z->R; r++)
            for (int64_t c = 0; c < z->C; c++)
                s[r * T->Bcp + c] += plus.at[r * plus.step + c];
        return;
    }
    if (a->grown) {
        pe_tile_rows_grow_queries(T, z, Qu);
        Qu = z->growth.Q;
        Q2 = z->forms.Q2 ? z->growth.Q + T->Br * T->Dp : NULL;
        Kt = z->growth.Kt;
    }
    if (pe_products64_serve(T))
        take_products64(T, z, s);
    else if (Q2) /* what is not seen must be numbers too: its share times 0 has to be 0 */
        a->kernels->product(s, T->Bcp, Qu, T->Dp, 1, Kt, T->Bcp, z->R, z->C, a->sizes.D, 0);
    else
        multiply_seen(T, z, s, Qu, Kt, plus);
    if (!Q2)
        return;
    a->kernels->product(z->forms.S2, T->Bcp, Q2, T->Dp, 1, Kt, T->Bcp, z->R, z->C, a->sizes.D, 0);
    join_forms(T, z, s);
}

/* Scores that are tempered or capped need all their terms before the masks do; the masks stay. A cap alone is
   one of the terms, but for the backward pass, which wants slopes. */
static void finish_scores(const pe_tiles *T, pe_scratch *z, float *s, pe_tile_terms *terms)
{
    const pe_attention *a       = T->a;
    const int           tempers = a->temper_on == PE_TEMPER_SCORE && !T->folds;
    if (!tempers && !z->backward) {
        terms->cap = (float)a->softcap;
        return;
    }
    for (int64_t r = 0; tempers && r < z->R; r++)
        z->finish.tau[r] = (float)pe_temper_at(a, z->b, z->h, z->i0 + r);
    const pe_tempering_of_tile by = {.tau = tempers ? z->finish.tau : NULL,
                                     .cap = (float)a->softcap,
                                     .raw =
                                         z->backward && tempers && a->temper.gradient ? z->finish.raw : NULL,
                                     .slope = z->backward && a->softcap > 0 ? z->finish.slope : NULL};
    a->kernels->scores_finish(s, T->Bcp, terms, z->R, z->C);
    a->kernels->temper(s, T->Bcp, &by, z->R, z->C);
    *terms = (pe_tile_terms){.low = terms->low, .high = terms->high};
}

/* ---- running sums ---- */

/* Do all pairs of the tile lie behind their queries, so that they have the sums of that side? */
static int is_behind(const pe_tiles *T, pe_scratch *z)
{
    double least = INFINITY, most = -INFINITY;
    if (!T->a->terms->drift.two_sided)
        return 1;
    pe_tile_scores_load_places(T, z);
    for (int64_t r = 0; r < z->R; r++)
        least = fmin(least, z->q_pos[r]);
    for (int64_t c = 0; c < z->C; c++)
        most = fmax(most, z->k_pos[c]);
    return most <= least;
}

/* c_i of the tile's queries less the largest of them, for all its key tiles. */
static void fill_rows(const pe_tiles *T, pe_scratch *z, const double *query)
{
    const int64_t tile = (z->b * T->a->sizes.H + z->h) * T->query_tiles + z->I;
    if (z->drift.tile == tile)
        return;
    z->drift.tile    = tile;
    z->drift.between = query[0];
    for (int64_t r = 1; r < z->R; r++)
        z->drift.between = query[r] > z->drift.between ? query[r] : z->drift.between;
    for (int64_t r = 0; r < z->R; r++)
        z->drift.row[r] = (float)(query[r] - z->drift.between);
}

/* That number less c_j. Is none of these above 0? Then nothing cancels in the sum of both vectors, and each
   may be rounded. */
static int fill_keys(const pe_tiles *T, pe_scratch *z, const double *key)
{
    const double between = z->drift.between;
    int          above   = 0;
    for (int64_t c = 0; c < z->C; c++) {
        const double x = between - key[c];
        above |= !(x <= 0);
        z->drift.key[c] = (float)x;
    }
    for (int64_t c = z->C; c < T->Bcp; c++)
        z->drift.key[c] = 0;
    return !above;
}

/* The difference of each pair, rounded once, into z->extra. */
static void drift_pairs(const pe_tiles *T, pe_scratch *z, const double *key, int behind)
{
    const pe_attention *a = T->a;
    memset(z->extra, 0, (size_t)(z->R * T->Bcp) * sizeof *z->extra);
    for (int64_t r = 0; behind && r < z->R; r++)
        a->kernels->drift_row(z->extra + r * T->Bcp, pe_drift_queries(a, PE_BEHIND, z->b, z->h)[z->i0 + r],
                              key, z->C);
    if (behind)
        return;
    const double *ahead = pe_drift_keys(a, PE_AHEAD, z->b, z->h, z->j0, z->C, z->drift.keys[PE_AHEAD]);
    const double *query[PE_SIDES] = {pe_drift_queries(a, PE_BEHIND, z->b, z->h) + z->i0,
                                     pe_drift_queries(a, PE_AHEAD, z->b, z->h) + z->i0};
    for (int64_t r = 0; r < z->R; r++)
        for (int64_t c = 0; c < z->C; c++)
            z->extra[r * T->Bcp + c] = z->k_pos[c] > z->q_pos[r] ? (float)(ahead[c] - query[PE_AHEAD][r])
                                                                 : (float)(query[PE_BEHIND][r] - key[c]);
}

/* Two vectors for the tiles to the left, numbers of pairs for the queries' own. That of keys goes into the
   products as a bias whose rows are all the same. */
static void add_drift(const pe_tiles *T, pe_scratch *z, pe_tile_terms *terms)
{
    const int behind = is_behind(T, z);
    fill_rows(T, z, pe_drift_queries(T->a, PE_BEHIND, z->b, z->h) + z->i0);
    const double *key = pe_drift_keys(T->a, PE_BEHIND, z->b, z->h, z->j0, z->C, z->drift.keys[PE_BEHIND]);
    if (behind && fill_keys(T, z, key)) {
        terms->row       = z->drift.row;
        terms->bias      = z->drift.key;
        terms->bias_step = 0;
        return;
    }
    drift_pairs(T, z, key, behind);
    terms->extra      = z->extra;
    terms->extra_step = T->Bcp;
}

/* ---- all together ---- */

/* Allowed columns of each row; returns 0 if all are. */
static int column_limits(const pe_tiles *T, const pe_scratch *z)
{
    if (!T->skewed || (z->i0 - (z->j0 + z->C - 1) >= T->e_low && z->i0 + z->R - 1 - z->j0 <= T->e_high))
        return 0;
    for (int64_t r = 0; r < z->R; r++) {
        const int64_t low = z->i0 + r - T->e_high - z->j0, high = z->i0 + r - T->e_low - z->j0 + 1;
        z->low[r]  = (int32_t)(low < 0 ? 0 : low > z->C ? z->C : low);
        z->high[r] = (int32_t)(high < 0 ? 0 : high > z->C ? z->C : high);
    }
    return 1;
}

const float *pe_tile_scores_gate(const pe_tiles *T, const pe_scratch *z, int64_t *step)
{
    if (!T->by[PE_GATE].rows)
        return NULL;
    *step = T->skewed ? -1 : T->Bcp;
    return T->skewed ? pe_rows_by(T, PE_GATE, z->h, z->x0) + z->R - 1 : z->gate;
}

int pe_tile_scores_multiply(const pe_tiles *T, pe_scratch *z, float *s, const float *Qu, const float *Qw,
                            const float *Kt, const float *key, int reuse, pe_tile_terms *terms)
{
    const pe_attention *a = T->a;
    *terms                = (pe_tile_terms){0};
    if (!pe_tile_is_reached(T, z->I, z->J))
        return 0;
    z->limited = !a->unmasked && column_limits(T, z);
    const int banded_keys =
        T->skewed && T->by[PE_B].rows && !pe_run_is_flat(&T->by[PE_B], z->x0); /* of their own tile */
    const float *pairs = banded_keys ? NULL : pairs_in_place(T, z);
    terms->key         = key && !a->unmasked ? key + z->j0 : NULL;
    if (T->skewed)
        find_diagonals(T, z, Qw, Kt, reuse, terms);
    if (a->projected.at) {
        terms->skewed      = a->projected.at + z->h * a->projected.head + z->i0 * a->projected.row + z->j0;
        terms->skewed_step = a->projected.row;
    }
    if (a->terms->G != PE_NONE && !pe_has_segments(a))
        terms->row = add_own_segment(T, z, Qu, terms->row);
    if (pairs) {
        terms->extra      = pairs;
        terms->extra_step = a->parts[PE_SCORE].p->Lk;
    }
    if (pe_drifts(a))
        add_drift(T, z, terms);
    multiply_tile(T, z, s, Qu, Kt, pairs, terms);
    if (pe_chains(a))
        pe_tile_chain_reach(T, z, s);
    if (T->has_extra || a->terms->hook.is_special)
        pe_tile_scores_load_places(T, z);
    z->hook.is_called = is_hooked(T, z);
    if (T->has_extra || z->hook.is_called || banded_keys) {
        fill_extra(T, z, Qu, Qw, Kt, banded_keys, terms->extra == z->extra);
        terms->extra      = z->extra;
        terms->extra_step = T->Bcp;
    }
    if (a->terms->pairs.matrix && !pairs)
        take_pairs(T, z, terms);
    if (z->limited) {
        terms->low  = z->low;
        terms->high = z->high;
    }
    if (T->hook_cache)
        add_cached(T, z, s, terms);
    if (a->terms->hook.content)
        widen_content(T, z, s, Qu);
    if (z->hook.is_called)
        visit_hook(T, z, s);
    if (T->finishes)
        finish_scores(T, z, s, terms);
    return 1;
}

/* SPDX-License-Identifier: MIT */
/* Terms of scores by distance, which lie along the diagonals of a tile, and products with their bands.
   Contract: tile_scores.h. */
#include <string.h>

#include "engine/groups.h"
#include "engine/tile_scores.h"

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

void pe_add_key_band(const pe_tiles *T, pe_scratch *z, int64_t h, const float *Kt, int64_t i0, int64_t R,
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

void pe_find_diagonals(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t I, int64_t J,
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

/* SPDX-License-Identifier: MIT */
/* Terms of scores that are looked up pair by pair: distances off the diagonals, masks, segments. Contract:
   tile_scores.h. */
#include <math.h>
#include <string.h>

#include "engine/tile_scores.h"

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

const float *pe_meet_own_segment(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, const float *Qu,
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

/* Do the tokens of all items stand at the same places? */
static int places_are_shared(const pe_attention *a)
{
    return pe_position_batches(&a->q_pos) == 1 && pe_position_batches(&a->k_pos) == 1 &&
           !pe_segments_known(a);
}

void pe_load_places(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t R, int64_t C)
{
    const pe_attention *a = T->a;
    if (z->placed[0] == z->i0 && z->placed[1] == z->j0)
        return;
    z->placed[0] = places_are_shared(a) ? z->i0 : -1;
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

void pe_fill_extra(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R, int64_t j0,
                   int64_t C, const float *Qu, const float *Qw, const float *Kt, int with_keys)
{
    const pe_attention *a = T->a;
    if (T->skewed)
        memset(z->extra, 0, (size_t)(R * T->Bcp) * sizeof(float));
    else
        look_up(T, z, h, R, C, Qw, Kt);
    if (with_keys)
        pe_add_key_band(T, z, h, Kt, i0, R, j0, C);
    if (a->terms->G != PE_NONE && pe_segments_known(a))
        meet_segments(T, z, h, R, C, Qu);
    if ((a->mask & POSENC_MASK_SEGMENTS) && !a->unmasked)
        mask_segments(T, z, R, C);
    if ((a->mask & POSENC_MASK_EXPLICIT) && !a->unmasked)
        mask_explicitly(T, z, b, h, i0, R, j0, C);
}

void pe_take_pairs(const pe_tiles *T, pe_scratch *z, int64_t h, int64_t R, int64_t C, pe_tile_terms *terms)
{
    for (int64_t r = 0; r < R; r++) {
        pe_pairs_load(T->a, h, z->i0 + r, z->j0, C, z->pair_row);
        for (int64_t c = 0; c < C; c++)
            z->extra[r * T->Bcp + c] = (float)z->pair_row[c] + (terms->extra ? z->extra[r * T->Bcp + c] : 0);
    }
    terms->extra      = z->extra;
    terms->extra_step = T->Bcp;
}

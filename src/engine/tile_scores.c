/* SPDX-License-Identifier: MIT */
/* The scores of one tile, put together from its products and all their terms. Idea and contract: tiles.h. */
#include "engine/tile_scores.h"

#include "engine/groups.h"
#include "engine/kept.h"

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
    const float *pairs = banded_keys ? NULL : pe_pairs_in_place(T, z, h, C);
    terms->key         = key && !a->unmasked ? key + j0 : NULL;
    if (T->skewed)
        pe_find_diagonals(T, z, b, h, I, J, R, C, Qw, Kt, reuse, terms);
    if (a->terms->G != PE_NONE && !pe_segments_known(a))
        terms->row = pe_meet_own_segment(T, z, h, R, Qu, terms->row);
    if (pairs) {
        terms->extra      = pairs;
        terms->extra_step = a->parts[PE_SCORE].p->Lk;
    }
    pe_multiply_tile(T, z, s, b, R, C, Qu, Kt, pairs, terms);
    if (T->has_extra || a->terms->hook.apart)
        pe_load_places(T, z, b, R, C);
    z->hooked = pe_is_hooked(T, z, R, C);
    if (T->has_extra || z->hooked || banded_keys) {
        pe_fill_extra(T, z, b, h, i0, R, j0, C, Qu, Qw, Kt, banded_keys);
        terms->extra      = z->extra;
        terms->extra_step = T->Bcp;
    }
    if (a->terms->pairs.matrix && !pairs)
        pe_take_pairs(T, z, h, R, C, terms);
    if (z->limited) {
        terms->low  = z->low;
        terms->high = z->high;
    }
    if (T->kept)
        pe_kept_add(T, z, s, h, R, C, terms);
    if (a->terms->hook.content)
        pe_widen_content(T, z, b, h, i0, R, j0, C, s, Qu);
    if (z->hooked)
        pe_visit_hook(T, z, s, h, R, C);
    return 1;
}

/* SPDX-License-Identifier: MIT */
/* What a hook says of the pairs of a tile, and products that are there in double. Contract: tile_scores.h. */
#include <math.h>

#include "engine/groups.h"
#include "engine/sharp.h"
#include "engine/tile_scores.h"

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

void pe_widen_content(const pe_tiles *T, const pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R,
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

int pe_is_hooked(const pe_tiles *T, const pe_scratch *z, int64_t R, int64_t C)
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

void pe_take_sharp(const pe_tiles *T, const pe_scratch *z, float *s, int64_t R, int64_t C)
{
    for (int64_t r = 0; r < R; r++) {
        const double *product = sharp_row(z, r);
        for (int64_t c = 0; c < C; c++)
            s[r * T->Bcp + c] = (float)(product[c] - z->top[r]);
        for (int64_t c = C; c < T->Bcp; c++)
            s[r * T->Bcp + c] = 0;
    }
}

void pe_visit_hook(const pe_tiles *T, pe_scratch *z, float *s, int64_t h, int64_t R, int64_t C)
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

/* SPDX-License-Identifier: MIT */
/*
 * stick.c: weights that break a stick, a tile of keys at once
 *
 * The forward visits the key tiles of a query from right to left and carries what they leave
 * (engine/score/stick.c); outputs are never scaled again. Backward one more visit from the right finds what
 * all keys leave, in double, as the caller's lse may be float, whose rounding would be that of every weight;
 * then tiles come from left to right: what those to the right of one leave is that total without the tiles up
 * to it. A row costs three sigmoids and a logarithm a pair, in double: they, not the products, are what it
 * waits for.
 */
#include <math.h>

#include "engine/tiled/backward.h"

void pe_tile_stick_lay_out(const pe_tiles *T, pe_scratch *z, pe_arena *arena, int backward)
{
    if (!pe_sticks(T->a))
        return;
    z->stick.left  = pe_arena_doubles(arena, T->Br);
    z->stick.row   = pe_arena_doubles(arena, 3 * T->Bcp);
    z->stick.share = pe_arena_doubles(arena, backward ? T->Br * T->Bc : 0);
    z->stick.value = pe_arena_doubles(arena, T->a->sizes.Dv);
}

/* Row r of the tile's finished scores as numbers of the whole score. */
static void load_row(const pe_tiles *T, const pe_scratch *z, int64_t r, double to[])
{
    const double taken = pe_center(T, z->h) + (pe_products64_serve(T) ? z->products64.top[r] : 0);
    for (int64_t c = 0; c < z->C; c++)
        to[c] =
            pe_stick_skips(T->a, z->q_pos[r], z->k_pos[c]) ? -INFINITY : (double)z->S[r * T->Bcp + c] + taken;
}

void pe_tile_stick_weights(const pe_tiles *T, pe_scratch *z, const pe_tile_terms *terms)
{
    double *row = z->stick.row, *A = row + T->Bcp, *share = A + T->Bcp;
    T->a->kernels->scores_finish(z->S, T->Bcp, terms, z->R, z->C);
    pe_tile_scores_load_places(T, z);
    for (int64_t r = 0; r < z->R; r++) {
        load_row(T, z, r, row);
        pe_stick_weights(T->a->kernels, row, z->C, &z->stick.left[r], A, share);
        for (int64_t c = 0; c < T->Bcp; c++)
            z->S[r * T->Bcp + c] = c < z->C ? (float)A[c] : 0;
    }
}

void pe_tile_stick_finish(const pe_tiles *T, pe_scratch *z, int64_t b, int64_t h, int64_t i0, int64_t R)
{
    const pe_attention *a   = T->a;
    pe_own              own = {.keys = a->sizes.Lk};
    for (int64_t r = 0; r < R; r++) {
        const double  lse = z->stick.left[r];
        const int64_t j   = pe_stick_own(a, &own, b, i0 + r);
        if (j >= 0)
            pe_keys_load_double(a, z->stick.value, &a->v, b, h / (a->sizes.H / a->sizes.G), j, a->sizes.Dv);
        for (int64_t d = 0; j >= 0 && d < a->sizes.Dv; d++)
            z->softmax.O[r * T->Dvp + d] += (float)(exp(lse) * z->stick.value[d]);
        if (a->lse.data)
            pe_tensor_store_double(pe_tensor_element(&a->lse, b, h, i0 + r), a->lse.dtype, 1, &lse, 1);
    }
    pe_tile_rows_store_plain(&a->o, b, h, i0, R, z->softmax.O, T->Dvp, a->sizes.Dv);
}

/* ---- backward ---- */

void pe_stick_back_lay_out(pe_backward *w, pe_arena *arena)
{
    const pe_problem *p = &w->T.a->sizes;
    if (!pe_sticks(w->T.a))
        return;
    w->stick     = pe_arena_take(arena, pe_arena_bytes(p->H * p->Lq, sizeof *w->stick));
    w->stick_own = pe_arena_take(arena, pe_arena_bytes(p->Lq, sizeof *w->stick_own));
}

void pe_stick_start(const pe_backward *w, pe_scratch *z, int64_t h, int64_t i0, int64_t R)
{
    const pe_attention *a = w->T.a;
    const pe_problem   *p = &a->sizes;
    for (int64_t r = 0; r < R; r++) {
        const int64_t j = w->stick_own[i0 + r], at = h * p->Lq + i0 + r;
        double        drem = 0;
        if (j >= 0)
            pe_keys_load_double(a, z->stick.value, &a->v, w->b, h / (p->H / p->G), j, p->Dv);
        for (int64_t d = 0; j >= 0 && d < p->Dv; d++)
            drem += (double)w->dout[at * w->T.Dvp + d] * z->stick.value[d];
        w->stick[at] = (pe_stick_state){.all = z->stick.left[r], .drem = drem};
    }
}

void pe_stick_find_own(const pe_backward *w)
{
    pe_own own = {.keys = w->T.a->sizes.Lk};
    for (int64_t i = 0; i < w->T.a->sizes.Lq; i++)
        w->stick_own[i] = pe_stick_own(w->T.a, &own, w->b, i);
}

void pe_stick_rest_back(const pe_backward *w, pe_scratch *z)
{
    const pe_tiles *T  = &w->T;
    const int64_t   at = z->h * T->a->sizes.Lq + z->i0;
    for (int64_t r = 0; r < z->R; r++) {
        const int64_t c    = w->stick_own[z->i0 + r] - z->j0;
        const float   left = (float)exp(w->stick[at + r].all), *dO = w->dout + (at + r) * T->Dvp;
        for (int64_t d = 0; c >= 0 && c < z->C && d < T->a->sizes.Dv; d++)
            z->back.dV[c * T->Dvp + d] += left * dO[d];
    }
}

void pe_stick_weights_again(const pe_backward *w, pe_scratch *z, const pe_tile_terms *terms)
{
    const pe_tiles *T   = &w->T;
    double         *row = z->stick.row, *A = row + T->Bcp;
    T->a->kernels->scores_finish(z->S, T->Bcp, terms, z->R, z->C);
    pe_tile_scores_load_places(T, z);
    for (int64_t r = 0; r < z->R; r++) {
        pe_stick_state *s    = w->stick + z->h * T->a->sizes.Lq + z->i0 + r;
        double          left = 0, *share = z->stick.share + r * T->Bc;
        load_row(T, z, r, row);
        pe_stick_weights(T->a->kernels, row, z->C, &left, A, share);
        s->gone += left; /* by this tile and those to its left */
        const double behind = exp(s->all - s->gone);
        for (int64_t c = 0; c < T->Bcp; c++)
            z->S[r * T->Bcp + c] = c < z->C ? (float)(A[c] * behind) : 0;
    }
}

void pe_stick_cotangent(const pe_backward *w, pe_scratch *z)
{
    const pe_tiles *T    = &w->T;
    const int64_t   at   = z->h * T->a->sizes.Lq + z->i0;
    const float    *dlse = w->dlse ? w->dlse + at : NULL;
    for (int64_t r = 0; r < z->R; r++) {
        pe_stick_state *s   = w->stick + at + r;
        double         *g   = z->stick.row;
        const float    *W   = z->S + r * T->Bcp;
        float          *dS  = z->W + r * T->Bcp;
        const int64_t   own = w->stick_own[z->i0 + r] - z->j0; /* dS there is drem, but for its rounding */
        for (int64_t c = 0; c < z->C; c++)
            g[c] =
                W[c] == 0 || (c == own && !T->by[PE_R].rows) ? 0 : (double)W[c] * ((double)dS[c] - s->drem);
        pe_stick_back(z->stick.share + r * T->Bc, z->C, dlse ? (double)dlse[r] : 0, &s->prefix, g);
        for (int64_t c = 0; c < T->Bcp; c++)
            dS[c] = c < z->C ? (float)g[c] : 0;
    }
}

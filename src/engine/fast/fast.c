/* SPDX-License-Identifier: MIT */
/* Tables and rotation for fast forwards. Contract: fast.h. */
#include "engine/fast/fast.h"

#include <math.h>

int pe_fast_serves(const pe_attention *a)
{
    const pe_terms *m = a->terms;
    return !m->hook.visit && !m->prepare.fill && m->G == PE_NONE && !pe_has(m, PE_A) && !pe_has(m, PE_B) &&
           !pe_has(m, PE_R) && !m->pairs.matrix && !pe_temper_finishes(a) && !m->drift.two_sided &&
           !m->chain.is_given && !m->wall.is_given && !m->stick.is_given &&
           !(a->rotary &&
             (a->rotary->heads > 1 || a->rotary->content || a->rotary->map.kind != PE_MAP_NONE)) &&
           !a->grown && !a->unmasked && !a->tile_q && !a->tile_k;
}

static int64_t padded(int64_t n)
{
    return (n + PE_FAST_LANES - 1) / PE_FAST_LANES * PE_FAST_LANES;
}

/* Are biases and gates there, and what biases lack is what bands would take? */
static int are_ready(const pe_tiles *T)
{
    const pe_terms *m = T->a->terms;
    for (int64_t h = 0; T->ready && pe_has(m, PE_BIAS) && h < T->a->sizes.H; h++)
        if (!pe_ready_has(T, PE_BIAS) || !pe_ready_is_centered(T, h))
            return 0;
    return T->ready && (!pe_has(m, PE_GATE) || pe_ready_has(T, PE_GATE));
}

pe_tiles pe_fast_lay_out(const pe_attention *a, pe_arena *arena, int64_t queries, int64_t keys, int tables)
{
    const pe_terms *m        = a->terms;
    const int       by_reach = (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) != 0;
    pe_tiles        T        = {.a = a, .Br = queries, .Bc = keys, .Bcp = keys};
    T.folds                  = pe_temper_folds(a);
    T.Dp                     = padded(a->sizes.D);
    T.Dvp                    = padded(a->sizes.Dv);
    T.by_distance            = (pe_has(m, PE_BIAS) && !pe_fast_is_sloped(a)) || pe_has(m, PE_GATE);
    T.skewed                 = a->distances.skewed || !(pe_uses_distance(m) || by_reach);
    pe_tables_find_band(&T);
    T.by_distance = T.by_distance && ((tables & PE_FAST_BY_DISTANCE) || are_ready(&T));
    pe_tiles_lay_out_rotation(&T, PE_QUERIES, arena);
    if (tables & PE_FAST_OF_KEYS)
        pe_tiles_lay_out_rotation(&T, PE_KEYS, arena);
    T.scratch = pe_arena_take(arena, (size_t)a->team.threads * sizeof *T.scratch);
    for (int i = 0; i < a->team.threads; i++) {
        double *chunk = pe_arena_doubles(arena, PE_CHUNK);
        if (T.scratch)
            T.scratch[i] = (pe_scratch){.chunk = chunk};
    }
    pe_tables_lay_out(&T, arena, 0);
    return T;
}

double pe_fast_slope(const pe_attention *a, int64_t h)
{
    const pe_part *part = &a->parts[a->terms->bias.owner];
    return a->terms->bias.slope(part->p, part->par, h);
}

double pe_fast_nearest(const pe_attention *a)
{
    return fabs((double)pe_attention_nearest(a));
}

double pe_fast_center(const pe_tiles *T, int64_t h)
{
    return pe_fast_is_sloped(T->a) ? pe_fast_slope(T->a, h) * pe_fast_nearest(T->a) : pe_center(T, h);
}

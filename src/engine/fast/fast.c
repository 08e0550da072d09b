/* SPDX-License-Identifier: MIT */
/* Tables and turns for the roads beside the general one. Contract: roads.h. */
#include "engine/fast/fast.h"

int pe_road_may(const pe_attention *a)
{
    const pe_terms *m = a->terms;
    return !m->hook.visit && !m->prepare.fill && m->G == PE_NONE && !pe_has(m, PE_A) && !pe_has(m, PE_B) &&
           !pe_has(m, PE_R) && !m->pairs.matrix && !(a->turn && a->turn->heads > 1) && !a->grown &&
           !a->unmasked && !a->tile_q && !a->tile_k;
}

static int64_t padded(int64_t n)
{
    return (n + PE_ROAD_LANES - 1) / PE_ROAD_LANES * PE_ROAD_LANES;
}

void pe_road_make(pe_tiles *T, const pe_attention *a, pe_arena *arena, int64_t queries, int64_t keys,
                  int key_turns)
{
    const pe_problem *p = &a->sizes;
    *T                  = (pe_tiles){.a = a, .Br = queries, .Bc = keys, .Bcp = keys};
    T->Dp               = padded(p->D);
    T->Dvp              = padded(p->Dv);
    T->by_distance      = (pe_has(a->terms, PE_BIAS) && !pe_is_sloped(a)) || pe_has(a->terms, PE_GATE);
    T->skewed           = a->distances.skewed ||
                !(pe_uses_distance(a->terms) || (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)));
    pe_band_find(T);
    pe_turns_make(T, arena, key_turns);
    T->scratch = pe_take(arena, (size_t)a->threads * sizeof *T->scratch);
    for (int i = 0; i < a->threads; i++) {
        double *chunk = pe_take_doubles(arena, PE_CHUNK);
        if (arena->memory)
            T->scratch[i] = (pe_scratch){.chunk = chunk};
    }
    pe_tables_lay_out(T, arena, 0);
    if (arena->memory)
        pe_tables_fill(T);
}

double pe_bias_slope(const pe_attention *a, int64_t h)
{
    const pe_part *part = &a->parts[a->terms->bias.owner];
    return a->terms->bias.slope(part->p, part->par, h);
}

double pe_bias_near(const pe_attention *a)
{
    const int64_t low = a->distances.low, high = low + a->distances.count - 1;
    return low > 0 ? (double)low : high < 0 ? (double)-high : 0;
}

double pe_bias_taken(const pe_tiles *T, int64_t h)
{
    return pe_is_sloped(T->a) ? pe_bias_slope(T->a, h) * pe_bias_near(T->a) : pe_center(T, h);
}

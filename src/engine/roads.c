/* SPDX-License-Identifier: MIT */
/* Tables and turns for the roads beside the general one. Contract: roads.h. */
#include "engine/roads.h"

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

static float *take_turns(pe_arena *arena, int64_t batches, int64_t L, const pe_turn *turn)
{
    return pe_take_floats(arena, (turn ? batches * L * pe_turn_width(turn) : 0) + PE_LANES);
}

void pe_road_lay_out(pe_tiles *T, const pe_attention *a, pe_arena *arena, int64_t queries, int64_t keys,
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
    T->q_batches = arena->memory ? pe_position_batches(&a->q_turn) : p->B;
    T->k_batches = arena->memory ? pe_position_batches(&a->k_turn) : p->B;
    T->q_table   = take_turns(arena, T->q_batches, p->Lq, a->turn);
    T->k_table   = key_turns ? take_turns(arena, T->k_batches, p->Lk, a->turn_keys) : NULL;
    T->scratch   = pe_take(arena, (size_t)a->threads * sizeof *T->scratch);
    for (int i = 0; i < a->threads; i++) {
        double *chunk = pe_take_doubles(arena, PE_CHUNK);
        if (arena->memory)
            T->scratch[i] = (pe_scratch){.chunk = chunk};
    }
    pe_tables_lay_out(T, arena, 0);
}

static void fill_turns(float *table, const pe_turn *turn, const posenc_positions *pos, int64_t batches,
                       int64_t L, const pe_kernels *kernels)
{
    for (int64_t b = 0; b < batches; b++)
        pe_turn_table(table + b * L * pe_turn_width(turn), turn, pos, b, 0, L, kernels);
}

void pe_road_fill(const pe_tiles *T, int key_turns)
{
    const pe_attention *a = T->a;
    pe_tables_fill(T);
    if (a->turn)
        fill_turns(T->q_table, a->turn, &a->q_turn, T->q_batches, a->sizes.Lq, a->kernels);
    if (a->turn && key_turns)
        fill_turns(T->k_table, a->turn_keys, &a->k_turn, T->k_batches, a->sizes.Lk, a->kernels);
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

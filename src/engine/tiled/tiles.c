/* SPDX-License-Identifier: MIT */
/* Sizes and scratch of a tiled run, and the tables of its rotation. Idea and contract: tiles.h. */

#include "base/parallel.h"
#include "engine/tiled/tiles.h"

enum { BANDS = 8 }; /* products with distances of so many key tiles lie side by side before they are moved */

enum { TILE = 64 }; /* 64 x 64 scores, D = 64: four tiles of 16 KiB, most of a first-level cache */

/* Numbers of pairs come from memory, each row of a tile from a page of its own: the longer the pieces, the
   fewer of them. Blocks of products ask for what the next ones add; 48 queries are whole blocks of six. */
enum { PAIRS_TALL = 48, PAIRS_WIDE = 192 };

static void lay_out_scratch(const pe_tiles *T, pe_scratch *z, pe_arena *arena, int backward)
{
    const pe_attention *a    = T->a;
    const int64_t       wide = T->Dp > T->Dvp ? T->Dp : T->Dvp;
    const int64_t       tall = T->Br > T->Bc ? T->Br : T->Bc;
    const int64_t       hook = a->terms->hook.visit ? T->Br * T->Bc : 0;
    const int64_t       band = T->Br * T->band_width;
    const pe_terms     *m    = a->terms;
    pe_scratch          y    = {.gamma_key = -1, .flat_of = {-1, -1}, .placed = {-1, -1}};
    y.S                      = pe_take_floats(arena, T->Br * T->Bcp);
    y.W                      = pe_take_floats(arena, T->Br * T->Bcp);
    y.gamma                  = pe_take_floats(arena, pe_has(m, PE_A) ? T->Br * T->gamma_width : 0);
    y.beta                   = pe_take_floats(arena, pe_has(m, PE_B) ? T->band_width * T->Bcp : 0);
    y.flat                   = pe_take_floats(arena, pe_has(m, PE_A) ? T->Br * PE_LANES : 0);
    y.flat_row               = pe_take_floats(arena, pe_has(m, PE_A) ? 2 * T->Br : 0);
    y.flat_key               = pe_take_floats(arena, pe_has(m, PE_B) ? T->Bcp : 0);
    y.shift = pe_take_floats(arena, pe_has(m, PE_R) || (backward && pe_has(m, PE_A)) ? band : 0);
    y.extra = pe_take_floats(arena, T->Br * T->Bcp);
    y.gate  = pe_take_floats(arena, pe_has(m, PE_GATE) ? T->Br * T->Bcp : 0);
    const int64_t content = m->hook.content ? 1 : 0;
    y.x                   = pe_take_doubles(arena, hook);
    y.s                   = pe_take_doubles(arena, content * hook);
    y.ds                  = pe_take_doubles(arena, content * hook);
    y.q                   = pe_take_doubles(arena, content * T->Br * a->sizes.D);
    y.dq                  = pe_take_doubles(arena, content * T->Br * a->sizes.D);
    y.own_state           = pe_take_doubles(arena, T->Br * PE_HOOK_STATE);
    y.state               = y.own_state;
    y.q_pos               = pe_take_doubles(arena, T->Br);
    y.k_pos               = pe_take_doubles(arena, T->Bc);
    y.pair_row            = pe_take_doubles(arena, m->pairs.matrix ? T->Bc : 0);
    y.q_seg               = pe_take(arena, (size_t)T->Br * sizeof(int64_t));
    y.k_seg               = pe_take(arena, (size_t)T->Bc * sizeof(int64_t));
    y.meets               = pe_take_floats(arena, 2 * T->Br);
    y.Qu                  = pe_take_floats(arena, pe_forms(m) * T->Br * T->Dp);
    y.Qw                  = pe_take_floats(arena, pe_has(a->terms, PE_A) ? T->Br * T->Dp : 0);
    y.rows                = pe_take_floats(arena, tall * wide);
    y.O                   = pe_take_floats(arena, T->Br * T->Dvp);
    y.m                   = pe_take_floats(arena, T->Br);
    y.taken               = pe_take_floats(arena, T->Br);
    y.sums                = pe_take_floats(arena, T->Br * PE_LANES);
    y.f                   = pe_take_floats(arena, T->Br);
    y.low                 = pe_take(arena, (size_t)T->Br * sizeof(int32_t));
    y.high                = pe_take(arena, (size_t)T->Br * sizeof(int32_t));
    y.chunk               = pe_take_doubles(arena, PE_CHUNK * wide);
    if (m->prepare.fill) {
        y.raw  = pe_take_doubles(arena, tall * a->D);
        y.made = pe_take_doubles(arena, tall * pe_forms(m) * a->sizes.D);
        y.at   = pe_take_doubles(arena, tall);
        y.draw = pe_take_doubles(arena, backward ? tall * a->D : 0);
    }
    if (m->prepare.sharp) {
        const int64_t columns = backward ? T->Bc : pe_smaller(a->sizes.Lk, PE_SHARP);
        y.sharp               = pe_take_doubles(arena, T->Br * pe_sharp_padded(columns));
        y.keys                = pe_take_doubles(arena, T->Bc * a->sizes.D);
        y.keys_across         = pe_take_doubles(arena, a->sizes.D * pe_sharp_padded(T->Bc));
        y.top                 = pe_take_doubles(arena, T->Br);
    }
    if (a->grown) {
        y.Qg      = pe_take_floats(arena, pe_forms(m) * T->Br * T->Dp);
        y.grow    = pe_take_floats(arena, T->Br * T->Dp);
        y.between = pe_take_floats(arena, T->Dp);
        y.Kg      = pe_take_floats(arena, T->Bc * T->Dp);
        y.dKg     = pe_take_floats(arena, backward ? T->Bc * T->Dp : 0);
        y.Kgt_own = pe_take_floats(arena, backward ? a->sizes.D * T->Bcp : 0);
    }
    if (pe_forms(m) > 1) {
        y.S2    = pe_take_floats(arena, T->Br * T->Bcp);
        y.share = backward ? pe_take_floats(arena, 2 * T->Br * T->Bcp) : NULL;
    }
    if (backward) {
        y.gated    = pe_take_floats(arena, pe_has(m, PE_GATE) ? T->Br * T->Bcp : 0);
        y.K        = pe_take_floats(arena, T->Bc * T->Dp);
        y.Kt       = pe_take_floats(arena, a->sizes.D * T->Bcp);
        y.Vt       = pe_take_floats(arena, a->sizes.Dv * T->Bcp);
        y.dK       = pe_take_floats(arena, T->Bc * T->Dp);
        y.dV       = pe_take_floats(arena, T->Bc * T->Dvp);
        y.diagonal = pe_take_floats(arena, T->band_width);
    }
    if (arena->memory)
        *z = y;
}

enum { TABLE_ROWS = 512 }; /* of one task */

/* One table for each item with positions of its own, and in it for each head with frequencies of its own. */
typedef struct turn_table {
    float                  *to;
    const pe_turn          *by;
    const posenc_positions *pos;
    int64_t                 L, blocks;
    const pe_ladder        *ladder; /* NULL: every angle for itself */
    pe_rung                *rungs;  /* [threads] */
    const pe_kernels       *kernels;
} turn_table;

static void fill_rows(void *context, int64_t index, int thread)
{
    const turn_table *t = context;
    const int64_t     i = index / t->blocks, s = index % t->blocks * TABLE_ROWS, width = pe_turn_width(t->by);
    pe_turn           own;
    pe_turn_fill(t->to + (i * t->L + s) * width, width, pe_turn_of_head(&own, t->by, i % t->by->heads),
                 t->pos, i / t->by->heads, s, pe_smaller(TABLE_ROWS, t->L - s), t->ladder,
                 t->ladder ? &t->rungs[thread] : NULL, 0, t->kernels);
}

static void fill_table(turn_table t, const pe_attention *a, int64_t batches, pe_arena *arena)
{
    const int use_ladder = t.by->heads == 1 && t.L >= PE_LADDER_ROWS;
    pe_ladder ladder     = pe_ladder_lay_out(use_ladder ? 2 * t.by->M : 0, arena);
    t.kernels            = a->kernels;
    t.blocks             = (t.L + TABLE_ROWS - 1) / TABLE_ROWS;
    t.rungs              = pe_rungs_lay_out(a->threads, use_ladder ? 2 * t.by->M : 0, arena);
    if (!arena->memory)
        return;
    if (use_ladder && pe_turn_climbs(t.by, t.pos)) {
        pe_turn_ladder(&ladder, t.by, a->kernels);
        t.ladder = &ladder;
    }
    pe_parallel_for(batches * t.by->heads * t.blocks, a->threads, fill_rows, &t);
}

/* Do keys turn as the queries of the same rows do? */
static int is_one_table(const pe_attention *a)
{
    const posenc_positions *x = &a->q_turn, *y = &a->k_turn;
    return a->sizes.Lq == a->sizes.Lk && !x->array.data && !y->array.data && x->start == y->start &&
           x->step == y->step && !a->turn->growth && a->turn->temperature == PE_NO_TEMPERATURE;
}

void pe_turns_make(pe_tiles *T, pe_arena *arena, int keys)
{
    const pe_attention *a = T->a;
    const pe_problem   *p = &a->sizes;
    const int64_t q = a->turn ? pe_turn_width(a->turn) : 0, k = a->turn ? pe_turn_width(a->turn_keys) : 0;
    T->q_batches        = arena->memory ? pe_position_batches(&a->q_turn) : p->B;
    T->k_batches        = arena->memory ? pe_position_batches(&a->k_turn) : p->B;
    const int64_t heads = a->turn ? a->turn->heads : 1;
    T->q_table          = pe_take_floats(arena, T->q_batches * heads * p->Lq * q + PE_LANES);
    T->k_table          = keys ? pe_take_floats(arena, T->k_batches * heads * p->Lk * k + PE_LANES) : NULL;
    if (!a->turn)
        return;
    fill_table((turn_table){.to = T->q_table, .by = a->turn, .pos = &a->q_turn, .L = p->Lq}, a, T->q_batches,
               arena);
    if (!keys)
        return;
    if (arena->memory && is_one_table(a))
        T->k_table = T->q_table;
    else
        fill_table((turn_table){.to = T->k_table, .by = a->turn_keys, .pos = &a->k_turn, .L = p->Lk}, a,
                   T->k_batches, arena);
}

/* A side of a tile of n rows: as asked for, or the usual. Factors of rows that grow are taken about the
   middle of a tile and must stay finite at its ends (growth.c), so there it is no longer than TILE. */
static int64_t tile_of(const pe_attention *a, int64_t asked, int64_t usual, int64_t n)
{
    const int64_t side = pe_smaller(asked ? asked : usual, n);
    return a->grown ? pe_smaller(side, TILE) : side;
}

pe_tiles pe_tiles_make(const pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p        = &a->sizes;
    const int         by_reach = (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) != 0;
    const int         pairs    = a->terms->pairs.matrix != NULL;
    pe_tiles          T        = {.a = a};
    T.Br                       = tile_of(a, a->tile_q, pairs ? PAIRS_TALL : TILE, p->Lq);
    T.Bc                       = tile_of(a, a->tile_k, pairs ? PAIRS_WIDE : TILE, p->Lk);
    T.Bcp                      = pe_padded(T.Bc);
    T.Dp                       = pe_padded(p->D);
    T.Dvp                      = pe_padded(p->Dv);
    T.band_width               = pe_padded(T.Br + T.Bc) + PE_LANES;
    T.gamma_width              = pe_padded(T.Br + BANDS * T.Bc) + 2 * PE_LANES;
    T.query_tiles              = (p->Lq + T.Br - 1) / T.Br;
    T.key_tiles                = (p->Lk + T.Bc - 1) / T.Bc;
    T.by_distance              = pe_uses_distance(a->terms);
    T.skewed                   = a->distances.skewed || !(T.by_distance || by_reach);
    pe_band_find(&T);
    T.scratch = pe_take(arena, (size_t)a->threads * sizeof *T.scratch);
    for (int z = 0; z < a->threads; z++)
        lay_out_scratch(&T, T.scratch ? T.scratch + z : NULL, arena, backward);
    pe_turns_make(&T, arena, 1);
    pe_beside_lay_out(&T, arena);
    pe_growth_lay_out(&T, arena);
    pe_kept_lay_out(&T, arena);
    T.has_extra = !T.skewed || (a->terms->hook.visit && !a->terms->hook.apart && !T.kept) ||
                  (a->terms->G != PE_NONE && pe_segments_known(a)) ||
                  (a->mask & (POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS));
    pe_tables_lay_out(&T, arena, backward);
    if (!arena->memory)
        return T;
    pe_tables_fill(&T);
    return T;
}

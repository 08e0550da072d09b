/* SPDX-License-Identifier: MIT */
/* Sizes of a tiled run, the memory of its threads, and its tables. Idea and contract: tiles.h. */
#include "engine/tiled/tiles.h"

enum { BANDS = 8 }; /* products with distances of so many key tiles lie side by side before they are moved */

enum { TILE = 64 }; /* 64 x 64 scores, D = 64: four tiles of 16 KiB, most of a first-level cache */

/* Numbers of pairs come from memory, each row of a tile from a page of its own: the longer the pieces, the
   fewer of them. Blocks of products ask for what the next ones add; 48 queries are whole blocks of six. */
enum { PAIRS_TALL = 48, PAIRS_WIDE = 192 };

/* ---- memory of one thread ---- */

static void lay_out_common(const pe_tiles *T, pe_scratch *y, pe_arena *arena)
{
    const pe_problem *p    = &T->a->sizes;
    const int64_t     wide = pe_larger(T->Dp, T->Dvp), widest = pe_larger(wide, T->Ap),
                  tall = pe_larger(T->Br, T->Bc), most = pe_larger(p->Lq + p->Lk, T->a->max_distances);
    y->S              = pe_arena_floats(arena, T->Br * T->Bcp);
    y->W              = pe_arena_floats(arena, T->Br * T->Bcp);
    y->extra          = pe_arena_floats(arena, T->Br * T->Bcp);
    y->hook.own_state = pe_arena_doubles(arena, T->Br * PE_HOOK_STATE);
    y->hook.state     = y->hook.own_state;
    y->q_pos          = pe_arena_doubles(arena, T->Br);
    y->k_pos          = pe_arena_doubles(arena, T->Bc);
    y->q_seg          = pe_arena_take(arena, (size_t)T->Br * sizeof(int64_t));
    y->k_seg          = pe_arena_take(arena, (size_t)T->Bc * sizeof(int64_t));
    y->segments       = pe_arena_floats(arena, 2 * T->Br);
    y->Qu             = pe_arena_floats(arena, pe_query_forms(T) * T->Br * T->Dp);
    y->rows           = pe_arena_floats(arena, tall * wide);
    y->softmax.O      = pe_arena_floats(arena, T->Br * T->Dvp);
    y->m              = pe_arena_floats(arena, T->Br);
    y->softmax.most   = pe_arena_floats(arena, T->Br);
    y->softmax.sums   = pe_arena_floats(arena, T->Br * PE_LANES);
    y->softmax.factor = pe_arena_floats(arena, T->Br);
    y->low            = pe_arena_take(arena, (size_t)T->Br * sizeof(int32_t));
    y->high           = pe_arena_take(arena, (size_t)T->Br * sizeof(int32_t));
    y->chunk          = pe_arena_doubles(arena, pe_smaller(PE_CHUNK, most) * widest);
}

static void lay_out_members(const pe_tiles *T, pe_scratch *y, pe_arena *arena, int backward)
{
    const pe_terms *m = T->a->terms;
    if (pe_has(m, PE_A)) {
        y->Qw            = pe_arena_floats(arena, T->Br * T->Ap);
        y->band.gamma    = pe_arena_floats(arena, T->Br * T->gamma_width);
        y->band.flat     = pe_arena_floats(arena, T->Br * PE_LANES);
        y->band.flat_row = pe_arena_floats(arena, 2 * T->Br);
    }
    if (pe_has(m, PE_B)) {
        y->band.beta     = pe_arena_floats(arena, T->band_width * T->Bcp);
        y->band.flat_key = pe_arena_floats(arena, T->Bcp);
    }
    if (pe_has(m, PE_R) || (backward && pe_has(m, PE_A)))
        y->band.shift = pe_arena_floats(arena, T->Br * T->band_width);
    if (pe_has(m, PE_GATE)) {
        y->gate       = pe_arena_floats(arena, T->Br * T->Bcp);
        y->back.gated = pe_arena_floats(arena, backward ? T->Br * T->Bcp : 0);
    }
    y->pair_row = pe_arena_doubles(arena, m->pairs.matrix ? T->Bc : 0);
}

static void lay_out_hook(const pe_tiles *T, pe_scratch *y, pe_arena *arena)
{
    const pe_tile_hook *hook  = &T->a->terms->hook;
    const int64_t       pairs = hook->visit ? T->Br * T->Bc : 0, content = hook->content ? pairs : 0,
                  queries = hook->content ? T->Br * T->a->sizes.D : 0;
    y->hook.x             = pe_arena_doubles(arena, pairs);
    y->hook.s             = pe_arena_doubles(arena, content);
    y->hook.ds            = pe_arena_doubles(arena, content);
    y->hook.q             = pe_arena_doubles(arena, queries);
    y->hook.dq            = pe_arena_doubles(arena, queries);
}

/* What rows are prepared, multiplied in double, grown, or have a second form for. */
static void lay_out_prepared(const pe_tiles *T, pe_scratch *y, pe_arena *arena, int backward)
{
    const pe_attention *a = T->a;
    const pe_terms     *m = a->terms;
    const int64_t       D = a->sizes.D, tall = pe_larger(T->Br, T->Bc);
    if (m->prepare.fill) {
        y->prepared.raw  = pe_arena_doubles(arena, tall * a->D);
        y->prepared.made = pe_arena_doubles(arena, tall * pe_forms(m) * D);
        y->prepared.at   = pe_arena_doubles(arena, tall);
        y->prepared.draw = pe_arena_doubles(arena, backward ? tall * a->D : 0);
        y->prepared.walk = pe_arena_doubles(arena, pe_turns(a) ? PE_TURN_WALK * a->rotary->M : 0);
    }
    if (m->prepare.products64) {
        const int64_t columns     = backward ? T->Bc : pe_smaller(a->sizes.Lk, PE_PRODUCTS64_KEYS);
        y->products64.products    = pe_arena_doubles(arena, T->Br * pe_products64_padded(columns));
        y->products64.keys        = pe_arena_doubles(arena, T->Bc * D);
        y->products64.keys_across = pe_arena_doubles(arena, D * pe_products64_padded(T->Bc));
        y->products64.top         = pe_arena_doubles(arena, T->Br);
    }
    if (a->grown) {
        y->growth.Q       = pe_arena_floats(arena, pe_forms(m) * T->Br * T->Dp);
        y->growth.factors = pe_arena_floats(arena, T->Br * T->Dp);
        y->growth.between = pe_arena_floats(arena, T->Dp);
        y->growth.K       = pe_arena_floats(arena, T->Bc * T->Dp);
        y->growth.dK      = pe_arena_floats(arena, backward ? T->Bc * T->Dp : 0);
        y->growth.own_Kt  = pe_arena_floats(arena, backward ? D * T->Bcp : 0);
    }
    if (T->finishes) {
        const int64_t tile = backward ? T->Br * T->Bcp : 0;
        y->finish.tau      = pe_arena_floats(arena, T->Br);
        y->finish.slope    = pe_arena_floats(arena, a->softcap > 0 ? tile : 0);
        y->finish.raw      = pe_arena_floats(arena, pe_temper_is_wanted(a) && !T->folds ? tile : 0);
    }
    if (pe_drifts(a)) {
        for (int side = 0; side < PE_SIDES; side++)
            y->drift.keys[side] = pe_arena_doubles(arena, T->Bc);
        y->drift.row  = pe_arena_floats(arena, T->Br);
        y->drift.key  = pe_arena_floats(arena, T->Bcp);
        y->drift.ones = pe_arena_floats(arena, backward ? T->Br : 0);
        y->drift.sum  = pe_arena_floats(arena, backward ? T->Bcp : 0);
    }
    if (T->forms[PE_QUERIES] > 1)
        y->map.S = pe_arena_floats(arena, T->Br * T->Bcp);
    if (pe_forms(m) > 1) {
        y->forms.S2    = pe_arena_floats(arena, T->Br * T->Bcp);
        y->forms.share = backward ? pe_arena_floats(arena, 2 * T->Br * T->Bcp) : NULL;
    }
}

static void lay_out_keys(const pe_tiles *T, pe_scratch *y, pe_arena *arena)
{
    const int64_t forms = T->forms[PE_KEYS];
    y->back.K           = pe_arena_floats(arena, forms * T->Bc * T->Dp);
    y->back.Kt          = pe_arena_floats(arena, forms * T->a->sizes.D * T->Bcp);
    y->back.Vt          = pe_arena_floats(arena, T->a->sizes.Dv * T->Bcp);
    y->back.dK          = pe_arena_floats(arena, forms * T->Bc * T->Dp);
    y->back.dV          = pe_arena_floats(arena, T->Bc * T->Dvp);
    y->back.diagonal    = pe_arena_floats(arena, T->band_width);
}

/* ---- a run ---- */

/* Are keys rotated as the queries of the same rows are? */
static int is_one_table(const pe_attention *a)
{
    const posenc_positions *x = &a->q_coordinates, *y = &a->k_coordinates;
    return a->rotary && !pe_turns(a) && !a->for_any_run && a->sizes.Lq == a->sizes.Lk && !x->array.data &&
           !y->array.data && x->start == y->start && x->step == y->step && !a->rotary->growth &&
           a->rotary->temperature == PE_NO_TEMPERATURE;
}

/* Forms of a side in a map of distances; those for keys ahead come last, and are left out where masks hide
   them. */
static int map_forms(const pe_attention *a, int keys)
{
    const pe_map *map   = a->rotary ? &a->rotary->map : NULL;
    const int     sided = map && (map->kind == PE_REROPE || map->kind == PE_LEAKY_REROPE),
              hidden    = !a->for_any_run && !a->unmasked && (double)a->reach.low > (map ? -map->window : 0);
    return !map ? 1 : sided && !keys && hidden ? 2 : pe_map_forms(map, keys);
}

/* The rotation of a form of a map of distances. */
static const pe_rotary *form_of(const pe_rotary *rotary, int form, pe_arena *arena)
{
    const int     divided = rotary && pe_map_divisor(&rotary->map, form) != 1;
    pe_rotary    *own     = form ? pe_arena_take(arena, sizeof *own) : NULL;
    pe_frequency *step_k  = divided ? pe_arena_take(arena, (size_t)rotary->M * sizeof *step_k) : NULL;
    if (!own)
        return rotary;
    *own        = *rotary;
    own->form   = form;
    own->step_k = step_k;
    return own;
}

void pe_tiles_lay_out_rotation(pe_tiles *T, pe_side side, pe_arena *arena)
{
    const pe_attention *a    = T->a;
    const int           keys = side == PE_KEYS;
    T->forms[side]           = map_forms(a, keys);
    for (int form = 0; form < T->forms[side]; form++) {
        pe_rotation_table *t = &T->rotations[side][form];
        *t         = (pe_rotation_table){.by  = form_of(keys ? a->rotary_keys : a->rotary, form, arena),
                                         .pos = keys ? &a->k_coordinates : &a->q_coordinates,
                                         .L   = keys ? a->sizes.Lk : a->sizes.Lq};
        t->batches = a->for_any_run || pe_turns(a) ? a->sizes.B : pe_positions_batches(t->pos);
        t->heads   = pe_turns(a) ? pe_turn_rows(a) : t->by ? t->by->heads : 1;
        if (keys && form == 0 && is_one_table(a))
            t->rows = T->rotations[PE_QUERIES][0].rows;
        else
            pe_rotation_table_lay_out(t, a->team.threads, arena);
    }
}

/* A side of a tile of n rows: as asked for, or the usual. Factors of rows that grow are taken about the
   middle of a tile and must stay finite at its ends (tile_rows.c), so there it is no longer than
   PE_GROWN_ROWS. */
static int64_t tile_of(const pe_attention *a, int64_t asked, int64_t usual, int64_t n)
{
    const int64_t side = pe_smaller(asked ? asked : usual, n);
    return a->grown ? pe_smaller(side, PE_GROWN_ROWS) : side;
}

pe_tiles pe_tiles_of(const pe_attention *a)
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
    T.Ap                       = pe_padded(pe_member_width(a->terms, p, PE_A));
    T.band_width               = pe_padded(T.Br + T.Bc) + PE_LANES;
    T.gamma_width              = pe_padded(T.Br + BANDS * T.Bc) + 2 * PE_LANES;
    T.query_tiles              = (p->Lq + T.Br - 1) / T.Br;
    T.key_tiles                = (p->Lk + T.Bc - 1) / T.Bc;
    T.folds                    = pe_temper_folds(a);
    T.finishes                 = pe_temper_finishes(a);
    T.by_distance              = pe_uses_distance(a->terms);
    T.skewed                   = a->distances.skewed || !(T.by_distance || by_reach);
    pe_tables_find_band(&T);
    return T;
}

pe_tiles pe_tiles_lay_out(const pe_attention *a, pe_arena *arena, int backward)
{
    pe_tiles T = pe_tiles_of(a);
    for (pe_side side = PE_QUERIES; side <= PE_KEYS; side++)
        pe_tiles_lay_out_rotation(&T, side, arena);
    T.scratch = pe_arena_take(arena, (size_t)a->team.threads * sizeof *T.scratch);
    for (int i = 0; i < a->team.threads; i++) {
        pe_scratch z = {.placed = {-1, -1},
                        .band   = {.gamma_key = -1, .flat_of = {-1, -1}},
                        .drift  = {.tile = -1}};
        lay_out_common(&T, &z, arena);
        lay_out_members(&T, &z, arena, backward);
        lay_out_hook(&T, &z, arena);
        lay_out_prepared(&T, &z, arena, backward);
        pe_tile_chain_lay_out(&T, &z.chain, arena);
        pe_tile_wall_lay_out_scratch(&T, &z, arena, backward);
        pe_tile_stick_lay_out(&T, &z, arena, backward);
        if (backward)
            lay_out_keys(&T, &z, arena);
        if (T.scratch)
            T.scratch[i] = z;
    }
    pe_by_position_lay_out(&T, arena);
    pe_tile_rows_lay_out_growth(&T, arena);
    pe_tile_wall_lay_out(&T, arena);
    pe_hook_cache_lay_out(&T, arena);
    T.has_extra = !T.skewed || (a->terms->hook.visit && !a->terms->hook.is_special && !T.hook_cache) ||
                  (a->terms->G != PE_NONE && pe_has_segments(a)) ||
                  (a->mask & (POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS));
    pe_tables_lay_out(&T, arena, backward);
    return T;
}

void pe_tiles_fill_rotation(pe_tiles *T, pe_side side)
{
    const pe_attention *a = T->a;
    for (int form = 0; form < T->forms[side]; form++)
        if (pe_turns(a))
            pe_turn_table(a, &T->rotations[side][form], side);
        else if (side == PE_QUERIES || T->rotations[side][form].rows != T->rotations[PE_QUERIES][0].rows)
            pe_rotation_table_fill(&T->rotations[side][form], &a->team, a->kernels);
}

void pe_tiles_fill(pe_tiles *T)
{
    for (pe_side side = PE_QUERIES; side <= PE_KEYS; side++)
        pe_tiles_fill_rotation(T, side);
    pe_by_position_fill(T);
    pe_tile_rows_fill_growth(T);
    pe_tile_wall_fill(T);
    pe_hook_cache_fill(T);
    pe_tables_fill(T);
}

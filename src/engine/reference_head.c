/* SPDX-License-Identifier: MIT */
/* One head in double. Contract: reference_head.h. */
#include "engine/reference_head.h"

#include "base/tensor.h"

static int64_t longest_row(const pe_problem *p)
{
    return p->Lk > p->Dv ? p->Lk : p->Dv;
}

double *pe_reference_row(const pe_reference_head *x, int thread, int which)
{
    return x->rows + (thread * PE_REFERENCE_ROWS + which) * longest_row(&x->a->sizes);
}

static int64_t table_size(const pe_attention *a, pe_kind kind)
{
    return pe_has(a->terms, kind) ? a->max_distances * pe_member_width(&a->sizes, kind) : 0;
}

int64_t pe_query_width(const pe_attention *a)
{
    return pe_forms(a->terms) * a->sizes.D;
}

int64_t pe_raw_size(const pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    return a->terms->prepare.fill ? (p->Lq > p->Lk ? p->Lq : p->Lk) * a->D : 0;
}

pe_reference_head pe_reference_lay_out(const pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p = &a->sizes;
    pe_reference_head x = {.a = a};
    x.growth            = pe_take_doubles(arena, a->grown ? (1 + a->threads) * p->D : 0);
    if (a->grown && arena->memory)
        pe_channel_growth(a->grown, p->D, x.growth);
    x.raw   = pe_take_doubles(arena, pe_raw_size(a));
    x.Q     = pe_take_doubles(arena, p->Lq * pe_query_width(a));
    x.K     = pe_take_doubles(arena, p->Lk * p->D);
    x.V     = pe_take_doubles(arena, p->Lk * p->Dv);
    x.q_pos = pe_take_doubles(arena, p->Lq);
    x.k_pos = pe_take_doubles(arena, p->Lk);
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        x.by[kind] = pe_take_doubles(arena, table_size(a, kind));
    x.rows  = pe_take_doubles(arena, PE_REFERENCE_ROWS * a->threads * longest_row(p));
    x.state = pe_take_doubles(arena, PE_HOOK_STATE * a->threads);
    if (backward) {
        x.draw = pe_take_doubles(arena, pe_raw_size(a));
        x.dQ   = pe_take_doubles(arena, p->Lq * pe_query_width(a));
        x.dK   = pe_take_doubles(arena, p->Lk * p->D);
        x.dV   = pe_take_doubles(arena, p->Lk * p->Dv);
        for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
            x.dby[kind] = kind == PE_B && pe_tables_shared(a->terms)
                              ? x.dby[PE_A]
                              : pe_take_doubles(arena, table_size(a, kind));
        x.dout = pe_take_doubles(arena, p->Dv);
    }
    return x;
}

void pe_reference_load_rows(double *to, const posenc_tensor *t, int64_t b, int64_t h, int64_t L,
                            int64_t width)
{
    for (int64_t s = 0; s < L; s++)
        pe_load_double(to + s * width, pe_row(t, b, h, s), t->dtype, t->stride[3], width);
}

void pe_reference_tables(const pe_reference_head *x, int64_t h)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m    = pe_member(a->terms, kind);
        const pe_part       *part = &a->parts[m.owner];
        if (pe_has(a->terms, kind))
            pe_member_fill(part, &m, pe_member_width(&a->sizes, kind), h, a->distances.low,
                           a->distances.count, x->by[kind]);
    }
}

const double *pe_reference_member(const pe_reference_head *x, pe_kind kind, int64_t i, int64_t j)
{
    if (!pe_has(x->a->terms, kind))
        return NULL;
    const int64_t t = (int64_t)(x->q_pos[i] - x->k_pos[j]) - x->a->distances.low;
    return x->by[kind] + t * pe_member_width(&x->a->sizes, kind);
}

void pe_reference_positions(pe_reference_head *x, int64_t b)
{
    const pe_attention *a = x->a;
    for (int64_t i = 0; i < a->sizes.Lq; i++)
        x->q_pos[i] = pe_position(&a->q_pos, b, i);
    for (int64_t j = 0; j < a->sizes.Lk; j++)
        x->k_pos[j] = pe_position(&a->k_pos, b, j);
}

void pe_reference_prepare(const pe_reference_head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const int           keys = side == PE_KEYS;
    a->terms->prepare.fill(part->p, part->par, side, h, keys ? x->k_pos : x->q_pos,
                           keys ? a->sizes.Lk : a->sizes.Lq, x->raw, keys ? x->K : x->Q);
}

void pe_reference_turn(const pe_reference_head *x, pe_side side, int64_t h, double *rows, double sign)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    pe_turn             own;
    const pe_turn      *turn = pe_turn_of_head(&own, keys ? a->turn_keys : a->turn, h);
    const int64_t L = keys ? a->sizes.Lk : a->sizes.Lq, D = a->sizes.D, forms = keys ? 1 : pe_forms(a->terms);
    for (int64_t r = 0; r < L * forms; r++) {
        double at[PE_MAX_AXES];
        pe_turn_place(turn, keys ? &a->k_turn : &a->q_turn, x->b, r / forms, at);
        pe_turn_row(rows + r * D, D, turn, at, sign);
    }
}

/* Queries of head h, or keys of key head h, prepared and rotated. */
static void load_side(const pe_reference_head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    const int64_t       L    = keys ? a->sizes.Lk : a->sizes.Lq;
    double             *rows = keys ? x->K : x->Q;
    pe_reference_load_rows(a->terms->prepare.fill ? x->raw : rows, keys ? &a->k : &a->q, x->b, h, L, a->D);
    if (a->terms->prepare.fill)
        pe_reference_prepare(x, side, h);
    if (a->turn)
        pe_reference_turn(x, side, h, rows, 1);
}

void pe_reference_load(pe_reference_head *x, int64_t b, int64_t h)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const int64_t       g = h / (p->H / p->G);
    x->b                  = b;
    x->h                  = h;
    pe_reference_positions(x, b);
    load_side(x, PE_QUERIES, h);
    load_side(x, PE_KEYS, g);
    if (a->v.data)
        pe_reference_load_rows(x->V, &a->v, b, g, p->Lk, p->Dv);
    pe_reference_tables(x, h);
}

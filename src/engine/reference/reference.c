/* SPDX-License-Identifier: MIT */
/*
 * reference.c: the reference executor, attention in double, direct
 *
 * One (batch item, head) at a time, one query row at a time: scores, softmax, output - as the formula in
 * terms.h reads. Slow and obviously right: the tiled executor is tested against it, and it is what the
 * reference cases in float64 are held against. A row of the forward depends on nothing but its own query, so
 * a chunk of queries gives the same bits as the full pass.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/reference/reference.h"

/* ---- one head in double ---- */

/* One (b,h) in double. */
typedef struct head {
    const pe_attention *a;
    int64_t             b, h;
    double             *Q, *K, *V; /* [Lq,forms,D] and [Lk,D] prepared and rotated, [Lk,Dv]; of a map of
                                      distances as many Q and K as that has forms */
    double       *growth;          /* [D], and [threads, D] factors of a pair */
    double       *raw, *draw; /* rows as the caller has them, [max(Lq,Lk), a->D], where they are prepared */
    double       *q_pos, *k_pos;          /* [Lq], [Lk] */
    double       *drift_memory[PE_SIDES]; /* [Lk] running sums of keys, */
    const double *drift[PE_SIDES];        /* there or where they lie */
    double       *by[PE_KINDS];           /* members by t - distances.low: [count, width] */
    double       *walk;                   /* through the tokens that turn rows: pe_turn_start */
    double       *wall[2];                /* by pe_side [L, D] running sums of the head's gates of channels */
    double       *rows;         /* [threads, ROWS, max(Lk, Dv)]: scores, output, products, their cotangents */
    double       *state;        /* [threads, PE_HOOK_STATE] */
    double       *dQ, *dK, *dV; /* backward: as Q, K, V */
    double       *dby[PE_KINDS];      /* their cotangents */
    double       *dout;               /* [Dv] */
    double       *profile, *dprofile; /* [Lq, profile_width]; of the heads that share it */
    struct {
        double *W, *beta, *x,
            *kept;               /* [Lk, D], [Lk], [threads, D] queries on their way, [Lk, D] one of them */
        double *dW, *dbeta, *dq; /* [G, Lk, D], [G, Lk], [D] */
    } chain;                     /* queries that are transformed from key to key */
    const posenc_tensor *S;      /* scores only */
} head;

/* Rows that each thread has. */
enum {
    ROW_SCORES,
    ROW_OUTPUT,
    ROW_PRODUCTS,
    ROW_DPRODUCTS,
    ROW_BARE,
    ROW_CAPPED,
    ROW_STICK,
    ROW_CHAINED,
    ROW_DCHAINED,
    ROWS
};

static int64_t longest_row(const pe_problem *p)
{
    return p->Lk > p->Dv ? p->Lk : p->Dv;
}

/* A row of this thread. */
static double *row_of(const head *x, int thread, int which)
{
    return x->rows + (thread * ROWS + which) * longest_row(&x->a->sizes);
}

static int64_t table_size(const pe_attention *a, pe_kind kind)
{
    return pe_has(a->terms, kind) ? a->max_distances * pe_member_width(a->terms, &a->sizes, kind) : 0;
}

/* Numbers per prepared query: more than sizes.D where it has two forms. */
static int64_t query_width(const pe_attention *a)
{
    return pe_forms(a->terms) * a->sizes.D;
}

/* Rows to prepare at once, in numbers of the caller's; 0: rows are taken as they are. */
static int64_t raw_size(const pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    return a->terms->prepare.fill ? (p->Lq > p->Lk ? p->Lq : p->Lk) * a->D : 0;
}

static int64_t map_forms(const pe_attention *a, pe_side side)
{
    return a->rotary ? pe_map_forms(&a->rotary->map, side == PE_KEYS) : 1;
}

static int64_t profile_size(const pe_attention *a)
{
    return a->terms->profile == PE_NONE ? 0 : a->sizes.Lq * a->terms->profile_width;
}

static void lay_out_chain(head *x, pe_arena *arena, int backward)
{
    const pe_problem *p = &x->a->sizes;
    if (!pe_chains(x->a))
        return;
    x->chain.W    = pe_arena_doubles(arena, p->Lk * p->D);
    x->chain.beta = pe_arena_doubles(arena, p->Lk);
    x->chain.x    = pe_arena_doubles(arena, x->a->team.threads * p->D);
    if (!backward)
        return;
    x->chain.kept  = pe_arena_doubles(arena, p->Lk * p->D);
    x->chain.dW    = pe_arena_doubles(arena, p->G * p->Lk * p->D);
    x->chain.dbeta = pe_arena_doubles(arena, p->G * p->Lk);
    x->chain.dq    = pe_arena_doubles(arena, p->D);
}

static head lay_out(const pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p = &a->sizes;
    head              x = {.a = a};
    x.growth            = pe_arena_doubles(arena, a->grown || pe_walls(a) ? (1 + a->team.threads) * p->D : 0);
    x.raw               = pe_arena_doubles(arena, raw_size(a));
    x.Q                 = pe_arena_doubles(arena, map_forms(a, PE_QUERIES) * p->Lq * query_width(a));
    x.K                 = pe_arena_doubles(arena, map_forms(a, PE_KEYS) * p->Lk * p->D);
    x.V                 = pe_arena_doubles(arena, p->Lk * p->Dv);
    x.profile           = pe_arena_doubles(arena, profile_size(a));
    x.q_pos             = pe_arena_doubles(arena, p->Lq);
    x.k_pos             = pe_arena_doubles(arena, p->Lk);
    for (int side = 0; pe_drifts(a) && side < PE_SIDES; side++)
        x.drift_memory[side] = pe_arena_doubles(arena, p->Lk);
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        x.by[kind] = pe_arena_doubles(arena, table_size(a, kind));
    x.walk = pe_arena_doubles(arena, PE_TURN_WALK * (pe_walls(a) ? a->D : pe_turns(a) ? a->rotary->M : 0));
    x.wall[PE_QUERIES] = pe_arena_doubles(arena, pe_walls(a) ? p->Lq * p->D : 0);
    x.wall[PE_KEYS]    = pe_arena_doubles(arena, pe_walls(a) ? p->Lk * p->D : 0);
    lay_out_chain(&x, arena, backward);
    x.rows  = pe_arena_doubles(arena, ROWS * a->team.threads * longest_row(p));
    x.state = pe_arena_doubles(arena, PE_HOOK_STATE * a->team.threads);
    if (backward) {
        x.draw = pe_arena_doubles(arena, raw_size(a));
        x.dQ   = pe_arena_doubles(arena, map_forms(a, PE_QUERIES) * p->Lq * query_width(a));
        x.dK   = pe_arena_doubles(arena, map_forms(a, PE_KEYS) * p->Lk * p->D);
        x.dV   = pe_arena_doubles(arena, p->Lk * p->Dv);
        for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
            x.dby[kind] = kind == PE_B && pe_vectors_are_shared(a->terms)
                              ? x.dby[PE_A]
                              : pe_arena_doubles(arena, table_size(a, kind));
        x.dout     = pe_arena_doubles(arena, p->Dv);
        x.dprofile = pe_arena_doubles(arena, profile_size(a));
    }
    return x;
}

static void load_queries(const head *x, double *to, int64_t h)
{
    const posenc_tensor *q = &x->a->q;
    for (int64_t i = 0; i < x->a->sizes.Lq; i++)
        pe_tensor_load_double(to + i * x->a->D, pe_tensor_row(q, x->b, h, i), q->dtype, 1, x->a->D);
}

/* Rows of k or v. */
static void load_keys(const head *x, double *to, const posenc_tensor *t, int64_t g, int64_t width)
{
    for (int64_t j = 0; j < x->a->sizes.Lk; j++)
        pe_keys_load_double(x->a, to + j * width, t, x->b, g, j, width);
}

/* Queries of head h, or keys of key head h, as the caller has them. */
static void load_raw(const head *x, double *to, pe_side side, int64_t h)
{
    if (side == PE_KEYS)
        load_keys(x, to, &x->a->k, h, x->a->D);
    else
        load_queries(x, to, h);
}

static void fill_tables(const head *x, int64_t h)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m    = pe_member(a->terms, kind);
        const pe_part       *part = &a->parts[m.owner];
        if (pe_has(a->terms, kind))
            pe_members_fill(part, &m, pe_member_width(a->terms, &a->sizes, kind), a->from.h + h,
                            a->distances.low, a->distances.count, x->by[kind]);
    }
}

/* The row of a member for pair (i,j); NULL where there is no such member. */
static const double *member_row(const head *x, pe_kind kind, int64_t i, int64_t j)
{
    if (!pe_has(x->a->terms, kind))
        return NULL;
    const int64_t t = (int64_t)(x->q_pos[i] - x->k_pos[j]) - x->a->distances.low;
    return x->by[kind] + t * pe_member_width(x->a->terms, &x->a->sizes, kind);
}

/* Of item b; and what grows with their distances. */
static void load_positions(head *x, int64_t b)
{
    const pe_attention *a = x->a;
    if (a->grown)
        pe_rotation_channel_growth(a->grown, a->sizes.D, x->growth);
    for (int64_t i = 0; i < a->sizes.Lq; i++)
        x->q_pos[i] = pe_positions_at(&a->q_pos, b, i);
    for (int64_t j = 0; j < a->sizes.Lk; j++)
        x->k_pos[j] = pe_positions_at(&a->k_pos, b, j);
}

static void prepare(const head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const int           keys = side == PE_KEYS;
    a->terms->prepare.fill(part->p, part->par, side, (keys ? a->from.g : a->from.h) + h,
                           keys ? x->k_pos : x->q_pos, keys ? a->sizes.Lk : a->sizes.Lq, x->raw,
                           keys ? x->K : x->Q);
}

static void rotate_rows(const head *x, pe_side side, int64_t h, int form, double *rows, double sign)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    pe_rotary           own;
    pe_rotary           formed = keys ? *a->rotary_keys : *a->rotary;
    formed.form                = form;
    const pe_rotary *rotary    = pe_rotation_of_head(&own, &formed, (keys ? a->from.g : a->from.h) + h);
    const int64_t L = keys ? a->sizes.Lk : a->sizes.Lq, D = a->sizes.D, forms = keys ? 1 : pe_forms(a->terms);
    pe_turn_walk  walk = {0};
    if (pe_turns(a))
        walk = pe_turn_start(a, x->b, pe_turn_row(a, keys ? h * (a->sizes.H / a->sizes.G) : h), x->walk);
    for (int64_t r = 0; r < L * forms; r++) {
        double place[PE_MAX_AXES];
        if (!pe_turns(a))
            pe_rotation_place(rotary, keys ? &a->k_coordinates : &a->q_coordinates, x->b, r / forms, place);
        pe_rotation_row(rows + r * D, D, rotary, pe_turns(a) ? pe_turn_at(a, &walk, side, r / forms) : place,
                        sign);
    }
}

/* Rows of one form of a side. */
static double *form_of(const head *x, pe_side side, double *keys, double *queries, int form)
{
    const pe_problem *p = &x->a->sizes;
    return side == PE_KEYS ? keys + form * p->Lk * p->D : queries + form * p->Lq * query_width(x->a);
}

/* Queries of head h, or keys of key head h, prepared and rotated. */
static void load_side(const head *x, pe_side side, int64_t h)
{
    const pe_attention *a = x->a;
    for (int form = 0; form < map_forms(a, side); form++) {
        double *rows = form_of(x, side, x->K, x->Q, form);
        load_raw(x, a->terms->prepare.fill ? x->raw : rows, side, h);
        if (a->terms->prepare.fill)
            prepare(x, side, h);
        if (a->rotary)
            rotate_rows(x, side, h, form, rows, 1);
    }
}

/* tau of query i, where it multiplies its row, or its scores; else 1. */
static double tau_of(const head *x, int64_t i, pe_temper_on on)
{
    return x->a->temper_on == on ? pe_temper_at(x->a, x->b, x->h, i) : 1;
}

/* Rows of queries, or cotangents of those that were tempered. */
static void temper_queries(const head *x, double *rows)
{
    const int64_t width = query_width(x->a), Lq = x->a->sizes.Lq, n = map_forms(x->a, PE_QUERIES) * Lq;
    for (int64_t i = 0; x->a->temper_on == PE_TEMPER_QUERY && i < n; i++) {
        const double tau = tau_of(x, i % Lq, PE_TEMPER_QUERY);
        for (int64_t d = 0; d < width; d++)
            rows[i * width + d] *= tau;
    }
}

/* Running sums of the keys for head h. */
static void fill_drift(head *x, int64_t h)
{
    const pe_attention *a = x->a;
    for (int side = 0; pe_drifts(a) && side < (a->terms->drift.two_sided ? PE_SIDES : 1); side++)
        x->drift[side] = pe_drift_keys(a, side, x->b, h, 0, a->sizes.Lk, x->drift_memory[side]);
}

static void fill_wall(const head *x, int64_t h)
{
    const pe_attention *a = x->a;
    for (pe_side side = PE_QUERIES; pe_walls(a) && side <= PE_KEYS; side++) {
        pe_turn_walk walk = pe_turn_start(a, x->b, pe_turn_row(a, h), x->walk);
        for (int64_t s = 0; s < (side == PE_KEYS ? a->sizes.Lk : a->sizes.Lq); s++)
            memcpy(x->wall[side] + s * a->D, pe_turn_at(a, &walk, side, s), (size_t)a->D * sizeof(double));
    }
}

static void load_profile(const head *x, int64_t h)
{
    const posenc_tensor *t     = pe_profile(x->a);
    const int64_t        width = x->a->terms->profile_width;
    for (int64_t i = 0; t && i < x->a->sizes.Lq; i++)
        pe_tensor_load_double(x->profile + i * width, pe_token_row(x->a, t, x->b, h, i), t->dtype, 1, width);
}

/* Everything of head h of item b; and its steps: all rows of a side rotated forward or back, rows loaded. */
static void load_head(head *x, int64_t b, int64_t h)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    const int64_t       g = h / (p->H / p->G);
    x->b                  = b;
    x->h                  = h;
    load_positions(x, b);
    load_side(x, PE_QUERIES, h);
    temper_queries(x, x->Q);
    load_side(x, PE_KEYS, g);
    if (pe_chains(a))
        pe_chain_load(a, b, g, 0, p->Lk, x->chain.W, p->D, x->chain.beta);
    if (a->v.data)
        load_keys(x, x->V, &a->v, g, p->Dv);
    load_profile(x, h);
    fill_tables(x, h);
    fill_drift(x, h);
    fill_wall(x, h);
}

void pe_reference_lay_out(const pe_attention *a, pe_arena *arena, int backward)
{
    lay_out(a, arena, backward);
}

/* ---- rows of scores, as the formula of terms.h reads ---- */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* dot(a + b, c), b may be NULL */
static double dot_shifted(const double *a, const double *b, const double *c, int64_t n)
{
    return b ? dot(a, c, n) + dot(b, c, n) : dot(a, c, n);
}

/* Are query i and key j of different segments? */
static int differs(const head *x, int64_t i, int64_t j)
{
    return pe_pairs_segment(&x->a->q_segments, x->b, i) != pe_pairs_segment(&x->a->k_segments, x->b, j);
}

/* The hook's view of row i: all keys in one tile. */
static pe_tile hook_tile(const head *x, int64_t i, int thread)
{
    const pe_problem   *p = &x->a->sizes;
    const pe_attention *a = x->a;
    return (pe_tile){.h        = a->from.h + x->h,
                     .rows     = 1,
                     .cols     = p->Lk,
                     .stride   = p->Lk,
                     .i0       = a->from.i + i,
                     .j0       = a->from.j,
                     .q_pos    = x->q_pos + i,
                     .k_pos    = x->k_pos,
                     .q_places = {&a->q_coordinates, x->b, i},
                     .k_places = {&a->k_coordinates, x->b, 0},
                     .scale    = x->a->terms->scale,
                     .q        = x->Q + i * query_width(x->a),
                     .s        = row_of(x, thread, ROW_PRODUCTS),
                     .state    = a->state ? a->state + (x->h * p->Lq + i) * PE_HOOK_STATE
                                          : x->state + thread * PE_HOOK_STATE};
}

/* X of row i into s, or the numbers of its pairs; zero without either. */
static void visit_row(const head *x, int64_t i, double *s, int thread)
{
    const pe_attention *a    = x->a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const pe_tile       tile = hook_tile(x, i, thread);
    memset(s, 0, (size_t)a->sizes.Lk * sizeof *s);
    if (a->terms->pairs.matrix)
        pe_pairs_load(a, x->h, i, 0, a->sizes.Lk, s);
    if (!a->terms->hook.visit)
        return;
    if (!a->state)
        memset(tile.state, 0, PE_HOOK_STATE * sizeof(double));
    a->terms->hook.visit(part->p, part->par, &tile, s);
}

/* What multiplies each channel of the product of a pair; NULL: 1. The memory is the thread's. */
static const double *growth_of(const head *x, int64_t i, int64_t j, int thread)
{
    const int64_t D = x->a->sizes.D;
    double       *f = x->growth + (1 + thread) * D;
    if (pe_walls(x->a)) {
        for (int64_t d = 0; d < D; d++)
            f[d] = exp(fmin(0, x->wall[PE_QUERIES][i * D + d] - x->wall[PE_KEYS][j * D + d]));
        return f;
    }
    if (!x->a->grown)
        return NULL;
    for (int64_t d = 0; d < D; d++)
        f[d] = exp(x->growth[d] * (x->q_pos[i] - x->k_pos[j]));
    return f;
}

/* sum of f (a + b) c, where f and b may be NULL */
static double dot_grown(const double *a, const double *b, const double *c, const double *f, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; f && i < n; i++)
        sum += f[i] * (a[i] + (b ? b[i] : 0)) * c[i];
    return f ? sum : dot_shifted(a, b, c, n);
}

/* Which forms of query i and key j meet. */
static int class_of(const head *x, int64_t i, int64_t j)
{
    const pe_rotary *rotary = x->a->rotary;
    return rotary ? pe_map_class(&rotary->map, x->q_pos[i], x->k_pos[j]) : 0;
}

static int key_form_of(const head *x, int class_of_pair)
{
    return class_of_pair ? pe_map_key_form(&x->a->rotary->map, class_of_pair) : 0;
}

/* (q_i + u) . k_j; with two forms the modulus of both, and in share (may be NULL) how far each moves it. */
static double product_of(const head *x, int64_t i, int64_t j, double share[2], int thread)
{
    const pe_attention *a = x->a;
    const int64_t       D = a->sizes.D;
    const int           n = class_of(x, i, j);
    const double       *q = form_of(x, PE_QUERIES, x->K, x->Q, n) + i * query_width(a),
                 *k       = form_of(x, PE_KEYS, x->K, x->Q, key_form_of(x, n)) + j * D,
                 *f       = growth_of(x, i, j, thread);
    const double s1       = dot_grown(q, pe_head_vector(a, a->terms->u, x->h), k, f, D);
    if (pe_forms(a->terms) == 1)
        return s1;
    const double s2 = dot_grown(q + D, NULL, k, f, D), modulus = hypot(s1, s2);
    if (share) {
        share[0] = modulus > 0 ? s1 / modulus : 0;
        share[1] = modulus > 0 ? s2 / modulus : 0;
    }
    return modulus;
}

static pe_chain_keys chain_keys(const head *x)
{
    return (pe_chain_keys){x->K, x->chain.W, x->chain.beta, x->a->sizes.Lk, x->a->sizes.D};
}

/* Products of query i with all keys, as it is transformed from key to key; a part goes on from its state. */
static const double *chain_row(const head *x, int64_t i, int thread)
{
    const pe_attention *a     = x->a;
    const int64_t       D     = a->sizes.D;
    double             *state = pe_chain_state(a, x->h, i), *to = row_of(x, thread, ROW_CHAINED);
    const pe_chain_keys keys = chain_keys(x);
    pe_chain_products(&keys, pe_chain_own(a, x->b, i), state && state[0] != 0 ? state + 1 : x->Q + i * D,
                      state ? state + 1 : x->chain.x + thread * D, to, NULL);
    if (state)
        state[0] = 1;
    return to;
}

/* Is the hook's X all that is added to the pair, in the place of the bias by distance? */
static int is_special(const head *x, int64_t i, int64_t j)
{
    return pe_attention_is_special(x->a, x->q_pos[i]) || pe_attention_is_special(x->a, x->k_pos[j]);
}

/* Which running sums a pair has, and their difference. */
static int side_of(const head *x, int64_t i, int64_t j)
{
    return x->a->terms->drift.two_sided && x->k_pos[j] > x->q_pos[i] ? PE_AHEAD : PE_BEHIND;
}

static double drift_of(const head *x, int64_t i, int64_t j)
{
    const int    side = side_of(x, i, j);
    const double c    = pe_drift_queries(x->a, side, x->b, x->h)[i] - x->drift[side][j];
    return side == PE_BEHIND ? c : -c;
}

/* What stands in the place of query i before A, or its cotangent; NULL: nothing does. */
static double *profile_row(const head *x, double *rows, int64_t i)
{
    return x->a->terms->profile == PE_NONE ? NULL : rows + i * x->a->terms->profile_width;
}

/* s[j] for every allowed key of query i, -infinity for the others, before they are tempered and capped. */
static void bare_row(const head *x, int64_t i, double *s, int thread)
{
    const pe_attention *a = x->a;
    const pe_terms     *m = a->terms;
    const pe_problem   *p = &a->sizes;
    const double       *q = x->Q + i * query_width(a), *w = pe_head_vector(a, m->w, x->h),
                 *us = pe_head_vector(a, m->us, x->h), *profile = profile_row(x, x->profile, i);
    double *products = row_of(x, thread, ROW_PRODUCTS);
    for (int64_t j = 0; j < p->Lk; j++)
        products[j] = !pe_pairs_allowed(a, x->b, x->h, i, j) ? -INFINITY
                      : m->hook.content                      ? m->scale * product_of(x, i, j, NULL, thread)
                                                             : 0; /* nobody looks */
    visit_row(x, i, s, thread);
    const double *chained = pe_chains(a) ? chain_row(x, i, thread) : NULL;
    for (int64_t j = 0; j < p->Lk; j++) {
        if (products[j] == -INFINITY && !a->unmasked) {
            s[j] = -INFINITY;
            continue;
        }
        const double *k = x->K + j * p->D, *A = member_row(x, PE_A, i, j), *B = member_row(x, PE_B, i, j),
                     *b = is_special(x, i, j) ? NULL : member_row(x, PE_BIAS, i, j);
        double sum      = 0;
        if (A && !profile)
            sum += dot_shifted(q, w, A, p->D);
        if (B)
            sum += dot(k, B, p->D);
        if (m->G != PE_NONE)
            sum += dot_shifted(q, us, pe_segment_vector(a, x->h, differs(x, i, j)), p->D);
        s[j] += m->scale * ((chained ? chained[j] : product_of(x, i, j, NULL, thread)) + sum) + (b ? *b : 0) +
                (pe_drifts(a) ? drift_of(x, i, j) : 0) + (profile ? dot(profile, A, m->profile_width) : 0);
    }
}

/* The same, finished: c tanh(tau S / c). */
static void score_row(const head *x, int64_t i, double *s, int thread)
{
    const double c = x->a->softcap, tau = tau_of(x, i, PE_TEMPER_SCORE);
    bare_row(x, i, s, thread);
    for (int64_t j = 0; (c > 0 || tau != 1) && j < x->a->sizes.Lk; j++)
        if (s[j] != -INFINITY)
            s[j] = c > 0 ? c * tanh(tau * s[j] / c) : tau * s[j];
}

/* ---- forward ---- */

/* Weights of a stick in place of the row's scores, sigma of these to share; returns the logarithm of what is
   left. */
static double break_row(const head *x, int64_t i, double *s, double *share, double *A)
{
    const int64_t Lk   = x->a->sizes.Lk;
    double        left = 0;
    for (int64_t j = 0; j < Lk; j++)
        if (pe_stick_skips(x->a, x->q_pos[i], x->k_pos[j]))
            s[j] = -INFINITY;
    pe_stick_weights(x->a->kernels, s, Lk, &left, A, share);
    memcpy(s, A, (size_t)Lk * sizeof *s);
    return left;
}

static void store_outputs(const head *x, int64_t i, const double *o, double lse)
{
    const pe_attention *a = x->a;
    pe_tensor_store_double(pe_tensor_row(&a->o, x->b, x->h, i), a->o.dtype, 1, o, a->sizes.Dv);
    if (a->lse.data)
        pe_tensor_store_double(pe_tensor_element(&a->lse, x->b, x->h, i), a->lse.dtype, 1, &lse, 1);
}

static void stick_row(const head *x, int64_t i, double *s, int thread)
{
    const pe_attention *a   = x->a;
    const pe_problem   *p   = &a->sizes;
    pe_own              own = {.keys = p->Lk};
    double             *o   = row_of(x, thread, ROW_OUTPUT);
    const double  lse  = break_row(x, i, s, row_of(x, thread, ROW_PRODUCTS), row_of(x, thread, ROW_BARE));
    const int64_t rest = pe_stick_own(a, &own, x->b, i);
    memset(o, 0, (size_t)p->Dv * sizeof *o);
    for (int64_t j = 0; j < p->Lk; j++) {
        const double  A = s[j] + (j == rest ? exp(lse) : 0);
        const double *r = s[j] != 0 ? member_row(x, PE_R, i, j) : NULL;
        for (int64_t d = 0; A != 0 && d < p->Dv; d++)
            o[d] += A * x->V[j * p->Dv + d] + (r ? s[j] * r[d] : 0);
    }
    store_outputs(x, i, o, lse);
}

static void forward_row(void *context, int64_t i, int thread)
{
    const head         *x = context;
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    double             *s = row_of(x, thread, ROW_SCORES), *o = row_of(x, thread, ROW_OUTPUT);
    score_row(x, i, s, thread);
    if (pe_sticks(a)) {
        stick_row(x, i, s, thread);
        return;
    }
    double m = -INFINITY, sum = 0, lse = -INFINITY;
    int    seen = 0; /* any key; a NaN counts and stays */
    for (int64_t j = 0; j < p->Lk; j++) {
        m = fmax(m, s[j]);
        seen |= s[j] != -INFINITY;
    }
    memset(o, 0, (size_t)p->Dv * sizeof *o);
    for (int64_t j = 0; seen && j < p->Lk; j++) {
        const double e = s[j] == -INFINITY ? 0 : exp(s[j] - m);
        sum += e;
        if (e == 0) /* masked: its distance may have no row */
            continue;
        const double *c = member_row(x, PE_GATE, i, j), *r = member_row(x, PE_R, i, j);
        for (int64_t d = 0; d < p->Dv; d++)
            o[d] += e * (c ? *c : 1) * (x->V[j * p->Dv + d] + (r ? r[d] : 0));
    }
    for (int64_t d = 0; seen && d < p->Dv; d++)
        o[d] /= sum;
    if (seen)
        lse = m + log(sum);
    const double left = pe_sink_join(a, x->b, x->h, i, &lse);
    for (int64_t d = 0; a->has_sink && d < p->Dv; d++)
        o[d] *= left;
    store_outputs(x, i, o, lse);
}

static void scores_row(void *context, int64_t i, int thread)
{
    const head *x = context;
    double     *s = row_of(x, thread, ROW_SCORES);
    score_row(x, i, s, thread);
    pe_tensor_store_double(pe_tensor_row(x->S, x->b, x->h, i), x->S->dtype, x->S->stride[3], s,
                           x->a->sizes.Lk);
}

void pe_reference_forward_run(const pe_attention *a, const posenc_tensor *S, pe_arena *arena)
{
    head x = lay_out(a, arena, 0);
    x.S    = S;
    for (int64_t b = 0; b < a->sizes.B; b++)
        for (int64_t h = 0; h < a->sizes.H && !pe_parallel_is_cancelled(&a->team); h++) {
            load_head(&x, b, h);
            pe_parallel_for(a->sizes.Lq, &a->team, S ? scores_row : forward_row, &x);
        }
}

/* Queries and keys of 0. */
static head begin_bias(const pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p = &a->sizes;
    head              x = lay_out(a, arena, backward);
    memset(x.Q, 0, (size_t)(map_forms(a, PE_QUERIES) * p->Lq * query_width(a)) * sizeof(double));
    memset(x.K, 0, (size_t)(map_forms(a, PE_KEYS) * p->Lk * p->D) * sizeof(double));
    memset(x.raw, 0, (size_t)raw_size(a) * sizeof(double));
    load_positions(&x, 0);
    return x;
}

static void begin_bias_head(head *x, int64_t h)
{
    const pe_attention *a = x->a;
    x->h                  = h;
    if (a->terms->prepare.fill) {
        prepare(x, PE_QUERIES, h);
        prepare(x, PE_KEYS, h / (a->sizes.H / a->sizes.G));
    }
    fill_tables(x, h);
    fill_drift(x, h);
}

void pe_reference_bias_run(const pe_attention *a, const posenc_tensor *bias, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    head              x = begin_bias(a, arena, 0);
    double           *s = row_of(&x, 0, ROW_SCORES);
    for (int64_t h = 0; h < p->H && !pe_parallel_is_cancelled(&a->team); h++) {
        begin_bias_head(&x, h);
        for (int64_t i = 0; i < p->Lq && !pe_parallel_is_cancelled(&a->team); i++) {
            score_row(&x, i, s, 0);
            pe_tensor_store_double(pe_tensor_row(bias, h, i, 0), bias->dtype, bias->stride[2], s, p->Lk);
        }
    }
}

/*
 * ---- backward ----
 *
 * Row by row, and in a row pair by pair: above each line of a gradient stands what it differentiates. Serial,
 * so that sums have one order. Cotangents of members by distance are gathered by distance and folded into
 * parameters once per head, those that heads share once per run.
 */

static double *cotangent_of(const head *x, pe_kind kind, int64_t i, int64_t j)
{
    return x->dby[kind] + (member_row(x, kind, i, j) - x->by[kind]);
}

/* x += f*g*y, where g may be NULL */
static void add_grown(double *x, double f, const double *y, const double *g, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += f * (g ? g[i] : 1) * y[i];
}

static void add(double *x, double f, const double *y, int64_t n)
{
    add_grown(x, f, y, NULL, n);
}

/* scale * (q_i + us) . G[z]; f = scale * dS */
static void segment_back(head *x, int64_t i, double f, int z)
{
    const pe_attention *a = x->a;
    const int64_t       D = a->sizes.D;
    const double       *G = pe_segment_vector(a, x->h, z), *us = pe_head_vector(a, a->terms->us, x->h);
    double *dG = pe_segment_gradient(a, x->h, z), *dus = pe_head_vector_gradient(a, a->terms->us, x->h);
    add(x->dQ + i * query_width(a), f, G, D);
    if (dG)
        add(dG, f, x->Q + i * query_width(a), D);
    if (dG && us)
        add(dG, f, us, D);
    if (dus)
        add(dus, f, G, D);
}

/* scale * (q_i + u) . k_j, or the modulus of two forms; f = scale * its cotangent */
static void product_back(head *x, int64_t i, int64_t j, double f)
{
    const pe_attention *a = x->a;
    const int64_t       D = a->sizes.D;
    const int           n = class_of(x, i, j), key_form = key_form_of(x, n);
    const double       *u  = pe_head_vector(a, a->terms->u, x->h),
                 *k        = form_of(x, PE_KEYS, x->K, x->Q, key_form) + j * D,
                 *q        = form_of(x, PE_QUERIES, x->K, x->Q, n) + i * query_width(a);
    double *dq             = form_of(x, PE_QUERIES, x->dK, x->dQ, n) + i * query_width(a),
           *dk             = form_of(x, PE_KEYS, x->dK, x->dQ, key_form) + j * D;
    double       *du       = pe_head_vector_gradient(a, a->terms->u, x->h);
    double        share[2] = {1, 0};
    const double *g        = growth_of(x, i, j, 0);
    if (pe_forms(a->terms) > 1)
        product_of(x, i, j, share, 0);
    for (int64_t form = 0; form < pe_forms(a->terms); form++) {
        add_grown(dq + form * D, f * share[form], k, g, D);
        add_grown(dk, f * share[form], q + form * D, g, D);
    }
    for (int64_t d = 0; a->turn.dkey && d < D; d++)
        a->turn.dkey[(x->h * a->sizes.Lk + j) * D + d] -= f * q[d] * g[d] * k[d];
    if (u)
        add_grown(dk, f * share[0], u, g, D);
    if (du)
        add_grown(du, f * share[0], k, g, D);
}

/* The gradient of one score: dS is the cotangent of S[i,j], dproduct (dS and the hook's share) that of its
   product. Above each line, what it differentiates. */
static void score_back(head *x, int64_t i, int64_t j, double dS, double dproduct)
{
    const pe_attention *a = x->a;
    const pe_terms     *m = a->terms;
    const int64_t       D = a->sizes.D;
    const double       *w = pe_head_vector(a, m->w, x->h), *profile = profile_row(x, x->profile, i);
    double             *dw = pe_head_vector_gradient(a, m->w, x->h);
    const double       *A = member_row(x, PE_A, i, j), *B = member_row(x, PE_B, i, j);
    const double        f  = m->scale * dS;
    double             *dq = x->dQ + i * query_width(a), *dk = x->dK + j * D;
    const double       *q = x->Q + i * query_width(a), *k = x->K + j * D;
    if (pe_chains(a))
        row_of(x, 0, ROW_DCHAINED)[j] = m->scale * dproduct;
    else
        product_back(x, i, j, m->scale * dproduct);
    /* c_i - c_j */
    if (a->drift.dkey[0])
        pe_drift_add(a, side_of(x, i, j), x->h, i, j, dS);
    /* b[t] */
    if (pe_has(m, PE_BIAS) && !is_special(x, i, j))
        *cotangent_of(x, PE_BIAS, i, j) += dS;
    /* r_i . A[t] */
    if (profile) {
        add(profile_row(x, x->dprofile, i), dS, A, m->profile_width);
        add(cotangent_of(x, PE_A, i, j), dS, profile, m->profile_width);
    }
    /* scale * (q_i + w) . A[t] */
    if (A && !profile) {
        add(dq, f, A, D);
        add(cotangent_of(x, PE_A, i, j), f, q, D);
    }
    if (A && w)
        add(cotangent_of(x, PE_A, i, j), f, w, D);
    if (A && dw)
        add(dw, f, A, D);
    if (m->G != PE_NONE)
        segment_back(x, i, f, differs(x, i, j));
    /* scale * k_j . B[t] */
    if (B) {
        add(dk, f, B, D);
        add(cotangent_of(x, PE_B, i, j), f, k, D);
    }
}

/* The gradient of one weight: o_i = sum_j P_ij c[t] (v_j + r[t]). Returns the cotangent of P_ij. */
static double weight_back(head *x, int64_t i, int64_t j, double P)
{
    const int64_t Dv = x->a->sizes.Dv;
    const double *c = member_row(x, PE_GATE, i, j), *r = member_row(x, PE_R, i, j);
    const double  W  = P * (c ? *c : 1);
    double        dW = dot(x->dout, x->V + j * Dv, Dv);
    add(x->dV + j * Dv, W, x->dout, Dv);
    if (r) {
        dW += dot(x->dout, r, Dv);
        add(cotangent_of(x, PE_R, i, j), W, x->dout, Dv);
    }
    if (c)
        *cotangent_of(x, PE_GATE, i, j) += P * dW;
    return dW * (c ? *c : 1);
}

/* The hook's share of the cotangents of products, into dproducts. */
static void hook_back(head *x, int64_t i, const double *dS, double *dproducts)
{
    const pe_attention *a                    = x->a;
    const pe_part      *part                 = &a->parts[PE_SCORE];
    pe_tile             tile                 = hook_tile(x, i, 0);
    double *const       none[PE_HOOK_PARAMS] = {0};
    memset(dproducts, 0, (size_t)a->sizes.Lk * sizeof *dproducts);
    if (!a->terms->hook.visit_back || (!part->dpar && !a->terms->hook.content))
        return;
    tile.ds = dproducts;
    tile.dq = x->dQ + i * query_width(a);
    a->terms->hook.visit_back(part->p, part->par, &tile, dS, part->dpar ? part->dpar : none);
}

/* That of the products of a query that is transformed from key to key. */
static void chain_back(const head *x, int64_t i)
{
    const pe_attention *a   = x->a;
    const pe_problem   *p   = &a->sizes;
    const int64_t       own = pe_chain_own(a, x->b, i), g = x->h / (p->H / p->G);
    const pe_chain_keys keys = chain_keys(x);
    memset(x->chain.dq, 0, (size_t)p->D * sizeof(double));
    pe_chain_products(&keys, own, x->Q + i * p->D, x->chain.x, row_of(x, 0, ROW_CHAINED), x->chain.kept);
    pe_chain_products_back(&keys, own, x->chain.kept, row_of(x, 0, ROW_DCHAINED), x->chain.dq, x->dK,
                           x->chain.dW + g * p->Lk * p->D, x->chain.dbeta + g * p->Lk);
    add(x->dQ + i * p->D, 1, x->chain.dq, p->D);
}

/* The gradient of all scores of row i. */
static void scores_back(head *x, int64_t i, const double *dS)
{
    const pe_attention *a         = x->a;
    double             *dproducts = row_of(x, 0, ROW_DPRODUCTS);
    memset(row_of(x, 0, ROW_DCHAINED), 0, (size_t)a->sizes.Lk * sizeof(double));
    hook_back(x, i, dS, dproducts);
    if (pe_pairs_wanted(a))
        pe_pairs_add(a, x->h, i, 0, a->sizes.Lk, dS);
    for (int64_t j = 0; j < a->sizes.Lk; j++)
        if (dS[j] != 0 || dproducts[j] != 0)
            score_back(x, i, j, dS[j], dS[j] + dproducts[j]);
    if (pe_chains(a))
        chain_back(x, i);
}

/* dZ becomes dS, where Z = c tanh(tau S / c); Z is needed, and S for dtau. */
static void finish_back(const head *x, int64_t i, const double *Z, double *dS)
{
    const pe_attention *a = x->a;
    const double        c = a->softcap, tau = tau_of(x, i, PE_TEMPER_SCORE);
    const int           wants = a->temper_on == PE_TEMPER_SCORE && a->temper.gradient;
    double             *bare = row_of(x, 0, ROW_BARE), dtau = 0;
    if (wants)
        bare_row(x, i, bare, 0);
    for (int64_t j = 0; j < a->sizes.Lk; j++)
        if (dS[j] != 0) {
            dS[j] *= c > 0 ? 1 - Z[j] / c * (Z[j] / c) : 1;
            dtau += wants ? dS[j] * bare[j] : 0;
            dS[j] *= tau;
        }
    if (wants)
        a->temper.gradient[(x->b * a->sizes.H + x->h) * a->sizes.Lq + i] += dtau;
}

/* The row's scores are in s; dout is there. */
static void stick_row_back(head *x, int64_t i, double *s, double dlse)
{
    const pe_attention *a   = x->a;
    const pe_problem   *p   = &a->sizes;
    pe_own              own = {.keys = p->Lk};
    double             *Z = row_of(x, 0, ROW_CAPPED), *share = row_of(x, 0, ROW_STICK), prefix = 0, drem = 0;
    memcpy(Z, s, (size_t)p->Lk * sizeof *Z);
    const double  lse  = break_row(x, i, s, share, row_of(x, 0, ROW_BARE));
    const int64_t rest = pe_stick_own(a, &own, x->b, i);
    if (rest >= 0) {
        drem = dot(x->dout, x->V + rest * p->Dv, p->Dv);
        add(x->dV + rest * p->Dv, exp(lse), x->dout, p->Dv);
    }
    for (int64_t j = 0; j < p->Lk; j++)
        s[j] = s[j] == 0 ? 0 : s[j] * (weight_back(x, i, j, s[j]) - drem);
    pe_stick_back(share, p->Lk, dlse, &prefix, s);
    finish_back(x, i, Z, s);
    scores_back(x, i, s);
}

static void backward_row(head *x, int64_t i)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    double             *s = row_of(x, 0, ROW_SCORES), *o = row_of(x, 0, ROW_OUTPUT), lse, dlse = 0;
    pe_tensor_load_double(&lse, pe_tensor_element(&a->lse, x->b, x->h, i), a->lse.dtype, 1, 1);
    if (lse == -INFINITY)
        return;
    pe_tensor_load_double(o, pe_tensor_row(&a->o, x->b, x->h, i), a->o.dtype, 1, p->Dv);
    pe_tensor_load_double(x->dout, pe_tensor_row(&a->dout, x->b, x->h, i), a->dout.dtype, 1, p->Dv);
    if (a->dlse.data)
        pe_tensor_load_double(&dlse, pe_tensor_element(&a->dlse, x->b, x->h, i), a->dlse.dtype, 1, 1);
    const double delta = dot(x->dout, o, p->Dv) - dlse; /* sum_j P_ij dP_ij; lse grows with S_ij by P_ij */
    score_row(x, i, s, 0);
    if (pe_sticks(a)) {
        stick_row_back(x, i, s, dlse);
        return;
    }
    double *Z = row_of(x, 0, ROW_CAPPED);
    for (int64_t j = 0; j < p->Lk; j++) {
        const double P = s[j] == -INFINITY ? 0 : exp(s[j] - lse);
        Z[j]           = s[j];
        s[j]           = P == 0 ? 0 : P * (weight_back(x, i, j, P) - delta);
    }
    finish_back(x, i, Z, s);
    scores_back(x, i, s);
}

static void store_rows(const posenc_tensor *t, int64_t b, int64_t h, const double *from, int64_t L,
                       int64_t width)
{
    for (int64_t s = 0; t->data && s < L; s++)
        pe_tensor_store_double(pe_tensor_row(t, b, h, s), t->dtype, 1, from + s * width, width);
}

/* Cotangents of prepared rows to those of the caller's, in x->draw, and to parameters; x->raw has the rows.
 */
static void prepare_back(const head *x, pe_side side, int64_t h)
{
    const pe_attention *a                    = x->a;
    const pe_part      *part                 = &a->parts[PE_SCORE];
    const int           keys                 = side == PE_KEYS;
    double *const       none[PE_HOOK_PARAMS] = {0};
    a->terms->prepare.fold(part->p, part->par, side, h, keys ? x->k_pos : x->q_pos,
                           keys ? a->sizes.Lk : a->sizes.Lq, x->raw, keys ? x->dK : x->dQ, x->draw,
                           part->dpar ? part->dpar : none);
}

/* The adjoint of load_side. */
static void store_side(const head *x, pe_side side, int64_t h)
{
    const pe_attention *a    = x->a;
    const int           keys = side == PE_KEYS;
    const int64_t       L    = keys ? a->sizes.Lk : a->sizes.Lq;
    double             *rows = keys ? x->dK : x->dQ;
    for (int form = 0; a->rotary && form < map_forms(a, side); form++) {
        double *own = form_of(x, side, x->dK, x->dQ, form);
        rotate_rows(x, side, h, form, own, -1);
        if (form > 0)
            add(rows, 1, own, L * a->sizes.D);
    }
    if (a->terms->prepare.fill) {
        load_raw(x, x->raw, side, h);
        prepare_back(x, side, h);
    }
    store_rows(keys ? &a->dk : &a->dq, x->b, h, a->terms->prepare.fill ? x->draw : rows, L, a->D);
}

/* Rows that heads share and that lie in the caller's tensor are folded once, when all heads of all items have
   added to them. */
static void fold_tables(const head *x, int shared)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance m    = pe_member(a->terms, kind);
        const pe_part       *part = &a->parts[m.owner];
        if (pe_has(a->terms, kind) && pe_members_wanted(part, &m) && (m.row != NULL) == shared &&
            !(kind == PE_B && pe_vectors_are_shared(a->terms)))
            pe_members_fold(part, &m, pe_member_width(a->terms, &a->sizes, kind), x->h, a->distances.low,
                            a->distances.count, x->dby[kind]);
    }
}

static void clear_tables(const head *x, int shared)
{
    const pe_attention *a = x->a;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (pe_has(a->terms, kind) && (pe_member(a->terms, kind).row != NULL) == shared)
            memset(x->dby[kind], 0,
                   (size_t)(a->distances.count * pe_member_width(a->terms, &a->sizes, kind)) *
                       sizeof(double));
}

/* The heads that share a row follow each other: it is done with the last of them. */
static void store_profile(const head *x)
{
    const pe_attention  *a     = x->a;
    const posenc_tensor *to    = pe_profile_gradient(a);
    const int64_t        width = a->terms->profile_width;
    if (!to || (x->h + 1) % (a->sizes.H / to->shape[1]) != 0)
        return;
    for (int64_t i = 0; i < a->sizes.Lq; i++)
        pe_tensor_store_double(pe_token_row(a, to, x->b, x->h, i), to->dtype, 1, x->dprofile + i * width,
                               width);
}

static void clear_profile(const head *x)
{
    const posenc_tensor *t = pe_profile(x->a);
    if (t && x->h % (x->a->sizes.H / t->shape[1]) == 0)
        memset(x->dprofile, 0, (size_t)profile_size(x->a) * sizeof(double));
}

/* dtau_i = q_i . dq_i, q_i as it was before; then the cotangents of that. */
static void temper_back(const head *x)
{
    const pe_attention *a     = x->a;
    const int64_t       width = query_width(a), Lq = a->sizes.Lq;
    const int           wants = a->temper_on == PE_TEMPER_QUERY && a->temper.gradient;
    if (wants)
        load_side(x, PE_QUERIES, x->h);
    for (int64_t i = 0; wants && i < map_forms(a, PE_QUERIES) * Lq; i++)
        a->temper.gradient[(x->b * a->sizes.H + x->h) * Lq + i % Lq] +=
            dot(x->Q + i * width, x->dQ + i * width, width);
    temper_queries(x, x->dQ);
}

static void backward_head(head *x, int64_t b, int64_t h)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    load_head(x, b, h);
    memset(x->dQ, 0, (size_t)(map_forms(a, PE_QUERIES) * p->Lq * query_width(a)) * sizeof(double));
    clear_tables(x, 0);
    clear_profile(x);
    for (int64_t i = 0; i < p->Lq && !pe_parallel_is_cancelled(&a->team); i++)
        backward_row(x, i);
    store_profile(x);
    temper_back(x);
    store_side(x, PE_QUERIES, h);
    fold_tables(x, 0);
}

void pe_reference_backward_run(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    head              x = lay_out(a, arena, 1);
    clear_tables(&x, 1);
    for (int64_t b = 0; b < p->B; b++) {
        pe_drift_clear(a);
        pe_wall_clear(a);
        for (int64_t n = 0; pe_chains(a) && n < p->G * p->Lk; n++) {
            memset(x.chain.dW + n * p->D, 0, (size_t)p->D * sizeof(double));
            x.chain.dbeta[n] = 0;
        }
        for (int64_t g = 0; g < p->G && !pe_parallel_is_cancelled(&a->team); g++) {
            memset(x.dK, 0, (size_t)(map_forms(a, PE_KEYS) * p->Lk * p->D) * sizeof(double));
            memset(x.dV, 0, (size_t)(p->Lk * p->Dv) * sizeof(double));
            for (int64_t h = g * (p->H / p->G); h < (g + 1) * (p->H / p->G); h++)
                backward_head(&x, b, h);
            store_side(&x, PE_KEYS, g);
            store_rows(&a->dv, b, g, x.dV, p->Lk, p->Dv);
        }
        pe_drift_fold(a, b);
        pe_wall_fold(a, b);
        if (pe_chains(a))
            pe_chain_store(a, b, x.chain.dW, p->D, x.chain.dbeta);
    }
    fold_tables(&x, 1);
}

static void bias_backward_head(head *x, int64_t h, const posenc_tensor *dbias)
{
    const pe_attention *a = x->a;
    const pe_problem   *p = &a->sizes;
    double             *s = row_of(x, 0, ROW_SCORES);
    begin_bias_head(x, h);
    memset(x->dQ, 0, (size_t)(map_forms(a, PE_QUERIES) * p->Lq * query_width(a)) * sizeof(double));
    memset(x->dK, 0, (size_t)(map_forms(a, PE_KEYS) * p->Lk * p->D) * sizeof(double));
    clear_tables(x, 0);
    for (int64_t i = 0; i < p->Lq && !pe_parallel_is_cancelled(&a->team); i++) {
        score_row(x, i, s, 0); /* for the products that a hook sees */
        pe_tensor_load_double(s, pe_tensor_row(dbias, h, i, 0), dbias->dtype, dbias->stride[2], p->Lk);
        scores_back(x, i, s);
    }
    if (a->terms->prepare.fill) {
        prepare_back(x, PE_QUERIES, h);
        prepare_back(x, PE_KEYS, h / (p->H / p->G));
    }
    fold_tables(x, 0);
}

void pe_reference_bias_backward_run(const pe_attention *a, const posenc_tensor *dbias, pe_arena *arena)
{
    head x = begin_bias(a, arena, 1);
    clear_tables(&x, 1);
    pe_drift_clear(a);
    for (int64_t h = 0; h < a->sizes.H && !pe_parallel_is_cancelled(&a->team); h++)
        bias_backward_head(&x, h, dbias);
    pe_drift_fold(a, 0);
    fold_tables(&x, 1);
}

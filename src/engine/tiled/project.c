/* SPDX-License-Identifier: MIT */
/*
 * project.c: few queries times vectors by distance that are a product, the other way round
 *
 * Where the vector of a distance is its sinusoids times a parameter, basis.c makes those vectors, and queries
 * are multiplied with them: worth it for many queries. A few are multiplied with the parameter first,
 *
 *     q . r(t) = sum_k sin(t w_k) us_k + cos(t w_k) uc_k        us_k = Ws_k . q,  uc_k = Wc_k . q
 *
 * which is ranks numbers for each query and head, whatever the distances, and then each distance costs ranks
 * multiply-adds instead of ranks times D. Ranks come WAVES frequencies at a time, so that memory grows
 * neither with them nor with the keys.
 *
 * Where keys stand in steps, the sinusoids are made once, of the steps from the first of KEYS keys on, and u
 * is turned by that key's distance:
 *
 *     sin((c + s) w) us + cos((c + s) w) uc = sin(s w) (cos(c w) us - sin(c w) uc)
 *                                           + cos(s w) (sin(c w) us + cos(c w) uc)
 *
 * Keys that stand otherwise have sinusoids of their own. Both serve all heads and queries: these are turned
 * to where the first query stands. Beyond a limit of distances all pairs of a query have one number.
 */
#include "engine/tiled/project.h"

#include <string.h>

#include "engine/tiled/tiles.h"

enum { WAVES = 64, KEYS = 64 };

enum { LEAST, MOST, ENDS }; /* columns of ends */

typedef struct few_products {
    const pe_attention *a;
    pe_attention        one; /* the same queries and one key */
    pe_tiles            T;   /* of that */
    int64_t             rows, M;
    double              step;      /* from a key to the next; 0: they stand anyhow, or are few */
    float              *Q;         /* [rows, Dp] scale * (q + w) */
    float              *u;         /* [2, rows, WAVES] of some frequencies: of sines, of cosines */
    float              *turned;    /* the same at the keys at hand */
    float              *waves;     /* [2, WAVES, KEYS] sines and cosines of the keys at hand */
    float              *at_ends;   /* [2, WAVES, PE_LANES] of the distances of ENDS */
    float              *ends;      /* [rows, PE_LANES] products there */
    float              *across;    /* [D, WAVES] rows of the parameter */
    char               *wanted;    /* [blocks of KEYS keys] is any of its products? */
    pe_frequency       *frequency; /* [WAVES] */
} few_products;

static void lay_out(few_products *x, const pe_attention *a, pe_arena *arena)
{
    const int64_t rows   = a->sizes.H * a->sizes.Lq;
    *x                   = (few_products){.a = a, .one = *a, .rows = rows, .M = a->terms->A.ranks / 2};
    x->one.sizes.Lk      = 1;
    x->one.max_distances = 1;
    x->T                 = pe_tiles_lay_out(&x->one, arena, 0);
    x->Q                 = pe_arena_floats(arena, rows * x->T.Dp);
    x->u                 = pe_arena_floats(arena, 2 * rows * WAVES);
    x->turned            = pe_arena_floats(arena, 2 * rows * WAVES);
    x->waves             = pe_arena_floats(arena, 2 * WAVES * KEYS);
    x->at_ends           = pe_arena_floats(arena, 2 * WAVES * PE_LANES);
    x->ends              = pe_arena_floats(arena, rows * PE_LANES);
    x->across            = pe_arena_floats(arena, a->sizes.D * WAVES);
    x->wanted            = pe_arena_take(arena, (size_t)((a->sizes.Lk + KEYS - 1) / KEYS));
    x->frequency         = pe_arena_take(arena, WAVES * sizeof *x->frequency);
}

static int is_limited(const few_products *x)
{
    return x->a->terms->A.least != INT64_MIN || x->a->terms->A.most != INT64_MAX;
}

/* ---- queries ---- */

static void load_queries(few_products *x)
{
    pe_tiles   *T = &x->T;
    pe_scratch *z = T->scratch;
    pe_tiles_fill_rotation(T, PE_QUERIES);
    for (int64_t h = 0; h < x->one.sizes.H; h++)
        for (int64_t i = 0; i < x->one.sizes.Lq; i += T->Br) {
            const int64_t n = pe_smaller(T->Br, x->one.sizes.Lq - i);
            pe_tile_rows_load(T, z, z->Qu, NULL, PE_QUERIES, 0, h, i, n);
            pe_tile_rows_scale(T, z->Qu, z->Qw, 0, h, i, n);
            memcpy(x->Q + (h * x->one.sizes.Lq + i) * T->Dp, z->Qw, (size_t)(n * T->Dp) * sizeof(float));
        }
}

/* Rows r .. r+n-1 of the parameter, of head h, transposed. */
static void load_parameter(const few_products *x, int64_t h, int64_t r, int64_t n)
{
    const pe_by_distance *m    = &x->a->terms->A;
    const pe_part        *part = &x->a->parts[m->owner];
    const int64_t         D = x->a->sizes.D, row = part->p->H * D, at = r * row + (x->a->from.h + h) * D;
    const double         *W = part->par[m->param];
    if (!W) {
        x->a->kernels->transpose(x->across, WAVES, (const float *)part->tensor[m->param]->data + at, row, n,
                                 D);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < D; d++)
            x->across[d * WAVES + i] = (float)W[at + i * row + d];
}

/* u of frequencies m .. m+n-1. */
static void project(const few_products *x, int64_t m, int64_t n)
{
    const int64_t Lq = x->a->sizes.Lq;
    for (int64_t h = 0; h < x->a->sizes.H; h++)
        for (int64_t half = 0; half < 2; half++) {
            load_parameter(x, h, half * x->M + m, n);
            x->a->kernels->product(x->u + (half * x->rows + h * Lq) * WAVES, WAVES, x->Q + h * Lq * x->T.Dp,
                                   x->T.Dp, 1, x->across, WAVES, Lq, n, x->a->sizes.D, 0);
        }
}

/* ---- angles ---- */

/* Sines and cosines at a distance, `step` floats from one to the next. */
static void make_waves(const few_products *x, double t, int64_t n, float *sine, float *cosine, int64_t step)
{
    double at[WAVES], cosines[WAVES], sines[WAVES];
    for (int64_t k = 0; k < n; k++)
        at[k] = t;
    x->a->kernels->cosines(at, &x->frequency[0].k_hi, 1, cosines, sines, n);
    for (int64_t k = 0; k < n; k++) {
        sine[k * step]   = (float)sines[k];
        cosine[k * step] = (float)cosines[k];
    }
}

/* u turned by a distance: of query i, or of every query. */
enum { EVERY = -1 };

static void turn(const few_products *x, float *to, const float *u, double t, int64_t i, int64_t n)
{
    float         sine[WAVES], cosine[WAVES];
    const int64_t half = x->rows * WAVES, first = i == EVERY ? 0 : i, step = i == EVERY ? 1 : x->a->sizes.Lq;
    make_waves(x, t, n, sine, cosine, 1);
    for (int64_t r = first; r < x->rows; r += step)
        for (int64_t k = 0; k < n; k++) {
            const float s = u[r * WAVES + k], c = u[half + r * WAVES + k];
            to[r * WAVES + k]        = cosine[k] * s - sine[k] * c;
            to[half + r * WAVES + k] = sine[k] * s + cosine[k] * c;
        }
}

static double query_at(const few_products *x, int64_t i)
{
    return pe_positions_at(&x->a->q_pos, 0, i);
}

static double key_at(const few_products *x, int64_t j)
{
    return pe_positions_at(&x->a->k_pos, 0, j);
}

static double step_of(const pe_attention *a)
{
    if (a->distances.skewed)
        return (double)a->distances.step;
    return a->k_pos.array.data ? 0 : pe_positions_at(&a->k_pos, 0, 1) - pe_positions_at(&a->k_pos, 0, 0);
}

/* ---- products ---- */

static void add_products(const few_products *x, float *to, int64_t stride, const float *u, const float *waves,
                         int64_t width, int64_t columns, int64_t n)
{
    for (int64_t half = 0; half < 2; half++)
        x->a->kernels->product(to, stride, u + half * x->rows * WAVES, WAVES, 1, waves + half * WAVES * width,
                               width, x->rows, columns, n, 1);
}

/* At both ends of the distances. */
static void add_ends(const few_products *x, int64_t n)
{
    const int64_t at[ENDS] = {x->a->terms->A.least, x->a->terms->A.most};
    memset(x->at_ends, 0, 2 * WAVES * PE_LANES * sizeof *x->at_ends);
    for (int end = 0; end < ENDS; end++)
        if (at[end] != INT64_MIN && at[end] != INT64_MAX)
            make_waves(x, (double)at[end], n, x->at_ends + end, x->at_ends + WAVES * PE_LANES + end,
                       PE_LANES);
    add_products(x, x->ends, PE_LANES, x->u, x->at_ends, PE_LANES, ENDS, n);
}

static void store_ends(const few_products *x, float *to, int64_t stride)
{
    const int64_t Lq = x->a->sizes.Lq;
    for (int64_t i = 0; i < Lq; i++)
        for (int64_t j = 0; j < x->a->sizes.Lk; j++) {
            const double t   = query_at(x, i) - key_at(x, j);
            const int    end = t > (double)x->a->terms->A.most    ? MOST
                               : t < (double)x->a->terms->A.least ? LEAST
                                                                  : ENDS;
            for (int64_t r = i; end < ENDS && r < x->rows; r += Lq)
                to[r * stride + j] = x->ends[r * PE_LANES + end];
        }
}

/* Which keys stand at a distance that masks and limits leave to any query; of how many blocks some are. */
static int64_t find_wanted(const few_products *x)
{
    const pe_attention *a      = x->a;
    const int64_t       blocks = (a->sizes.Lk + KEYS - 1) / KEYS;
    const double        low    = (double)pe_larger(a->distances.reach.low, a->terms->A.least),
                 high          = (double)pe_smaller(a->distances.reach.high, a->terms->A.most);
    int64_t count              = 0;
    memset(x->wanted, 0, (size_t)blocks);
    for (int64_t i = 0; i < a->sizes.Lq; i++)
        for (int64_t j = 0; j < a->sizes.Lk; j++) {
            const double t = query_at(x, i) - key_at(x, j);
            x->wanted[j / KEYS] |= t >= low && t <= high;
        }
    for (int64_t n = 0; n < blocks; n++)
        count += x->wanted[n];
    return count;
}

/* Products of keys j .. j+count-1. */
static void add_keys(const few_products *x, float *to, int64_t stride, int64_t j, int64_t count, int64_t n)
{
    const float *u = x->u;
    if (x->step != 0) {
        turn(x, x->turned, x->u, query_at(x, 0) - key_at(x, j), EVERY, n);
        u = x->turned;
    } else
        for (int64_t s = 0; s < count; s++)
            make_waves(x, query_at(x, 0) - key_at(x, j + s), n, x->waves + s, x->waves + WAVES * KEYS + s,
                       KEYS);
    add_products(x, to + j, stride, u, x->waves, KEYS, count, n);
}

/* ---- a part ---- */

void pe_project_run(const pe_attention *a, const pe_projected *to, float *rows, pe_arena *arena)
{
    const pe_by_distance *m  = &a->terms->A;
    const int64_t         Lk = a->sizes.Lk;
    few_products          x;
    lay_out(&x, a, arena);
    x.step = find_wanted(&x) > 1 ? step_of(a) : 0;
    load_queries(&x);
    memset(rows, 0, (size_t)(x.rows * to->row) * sizeof *rows);
    memset(x.waves, 0, 2 * WAVES * KEYS * sizeof *x.waves);
    memset(x.ends, 0, (size_t)(x.rows * PE_LANES) * sizeof *x.ends);
    for (int64_t k = 0, n; k < x.M; k += n) {
        n = pe_smaller(WAVES, x.M - k);
        m->waves(a->parts[m->owner].p, k, n, x.frequency);
        project(&x, k, n);
        if (is_limited(&x))
            add_ends(&x, n);
        for (int64_t i = 1; i < a->sizes.Lq; i++)
            turn(&x, x.u, x.u, query_at(&x, i) - query_at(&x, 0), i, n);
        for (int64_t s = 0; x.step != 0 && s < KEYS; s++)
            make_waves(&x, -(double)s * x.step, n, x.waves + s, x.waves + WAVES * KEYS + s, KEYS);
        for (int64_t j = 0; j < Lk; j += KEYS)
            if (x.wanted[j / KEYS])
                add_keys(&x, rows, to->row, j, pe_smaller(KEYS, Lk - j), n);
    }
    if (is_limited(&x))
        store_ends(&x, rows, to->row);
}

size_t pe_project_bytes(const pe_attention *a)
{
    pe_arena     arena = {0};
    few_products x;
    pe_attention any = *a;
    any.for_any_run  = 1;
    lay_out(&x, &any, &arena);
    return arena.used;
}

int pe_project_serves(const pe_attention *a)
{
    if (!pe_project_is_for(a))
        return 0;
    const pe_tiles T = pe_tiles_of(a);
    return !pe_ready_has(&T, PE_A);
}

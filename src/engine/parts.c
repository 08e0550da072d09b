/* SPDX-License-Identifier: MIT */
/*
 * parts.c: few queries against many keys, in memory that does not grow with them
 *
 * An executor prepares what all tiles of a run need before the first of them: keys that are rotated and
 * packed, vectors by distance, factors. For many queries that is little; for one it is more than the cache
 * itself. So a run of few queries is cut into parts - some heads, some keys - each of which is a run of that
 * executor, small enough for the memory of one thread, and the outputs of parts are joined by their lse.
 * Threads take chunks of keys, and go through the parts of a chunk one after the other. How keys are cut
 * depends only on sizes, so the bits do not depend on the number of threads.
 *
 * A hook that travels sees the keys of a query from right to left: there is one chunk then, and state goes
 * from part to part. So does a query that is transformed from key to key.
 *
 * Vectors by distance that are sinusoids times a parameter would be made anew for each part, and the
 * parameter held whole. Parts are given products with them instead (tiled/project.c), made for as many keys
 * at once as there is memory for.
 *
 * Distances of a part must have rows. Where positions are so far apart that they need more than a part has
 * memory for, it is cut in two, in the end down to one query and one key.
 */
#include "engine/parts.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/tensor.h"
#include "engine/tiled/project.h"

enum {
    PART_BYTES      = 448 << 10, /* of a part's executor, on one thread, if it can be */
    PROJECTED_BYTES = 128 << 10, /* of these, for products with vectors by distance (tiled/project.c) */
    PROJECTED_ROWS  = 32,        /* of queries and heads, so that there are products of many keys */
    LITTLE          = 1 << 22,   /* multiply-adds with sinusoids, which all heads then share */
    SUM_BYTES       = 1 << 18,   /* of all chunks' outputs, if they can be */
    CHUNKS          = 16,        /* at most */
    LEAST           = 512,       /* keys of a chunk at least */
    SIZES           = 6
};

/* How a run is cut. */
typedef struct cut {
    int64_t heads, keys;  /* of a part */
    int64_t distances;    /* whose rows a part has memory for */
    int64_t sets, chunks; /* parts side by side, chunks of keys */
    int64_t chunk;        /* keys of a chunk */
    int64_t stretch;      /* keys whose products with vectors by distance are made at once; 0: none are */
    size_t  bytes;        /* of a part's executor */
} cut;

/* Of one thread. */
typedef struct part_scratch {
    double      *o, *lse;   /* [heads, Lq, Dv], [heads, Lq] of a part, whichever heads it has */
    char        *memory;    /* of its executor */
    float       *products;  /* of a stretch, and */
    pe_projected projected; /* how they lie; no data: there are none */
    int64_t      first;     /* its first key */
} part_scratch;

typedef struct parts {
    const pe_attention  *a;
    const pe_executor   *by;
    const posenc_tensor *S; /* NULL: outputs */
    cut                  cut;
    double              *o, *lse; /* [chunks, H, Lq, Dv], [chunks, H, Lq] of the item at hand */
    double              *state;   /* [H, Lq, PE_HOOK_STATE] */
    double              *chained; /* [H, Lq, 1 + D] */
    double              *rest;    /* [Dv] */
    part_scratch        *scratch; /* [threads] */
    int64_t              b;       /* that item */
} parts;

/* ---- how a run is cut ---- */

/* Would tiles hold a parameter whole, and each part make of it all that it needs? Then they are given
   products. */
static int is_projected(const pe_attention *a, const pe_executor *by)
{
    return !by->reference && pe_project_is_for(a);
}

/* Are all members by distance the same beyond some distance, so that their tables end there? */
static int all_clipped(const pe_attention *a, const pe_executor *by)
{
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (pe_has(a->terms, kind) && !pe_member(a->terms, kind).clipped &&
            !(kind == PE_A && is_projected(a, by)))
            return 0;
    return 1;
}

/* The sizes of a part with so many heads and keys. `wide`: its distances may be any of the run's. */
static pe_attention sized(const pe_attention *a, int64_t heads, int64_t keys, int wide)
{
    pe_attention  y     = *a;
    const int64_t group = a->sizes.H / a->sizes.G;
    y.sizes.B           = 1;
    y.sizes.H           = heads;
    y.sizes.G           = heads > group ? heads / group : 1;
    y.sizes.Lk          = keys;
    y.team              = (pe_team){.threads = 1, .cancel = a->team.cancel};
    if (!wide)
        y.max_distances = keys + POSENC_DECODE_QUERIES;
    return y;
}

static size_t bytes_of(const pe_attention *part, const pe_executor *by)
{
    pe_attention any   = *part;
    pe_arena     arena = {0};
    any.for_any_run    = 1;
    by->lay_out(&any, by->run, &arena);
    return arena.used;
}

/* Keys of whole parts whose products are made at once. */
static int64_t stretch_of(const pe_attention *part)
{
    const int64_t rows = part->sizes.H * part->sizes.Lq,
                  fit  = PROJECTED_BYTES / (int64_t)sizeof(float) / rows - PE_LANES;
    return pe_larger(fit / part->sizes.Lk, 1) * part->sizes.Lk;
}

static size_t most_of(const pe_attention *a, const pe_executor *by)
{
    return is_projected(a, by) ? PART_BYTES - PROJECTED_BYTES : PART_BYTES;
}

/* Memory of a part, or of its products. */
static void count_part(cut *x, const pe_attention *part, const pe_executor *by)
{
    pe_attention products = *part;
    x->bytes              = bytes_of(part, by);
    if (!part->is_projected)
        return;
    products.sizes.Lk = x->stretch = stretch_of(part);
    const size_t more              = pe_project_bytes(&products);
    x->bytes                       = more > x->bytes ? more : x->bytes;
}

/* The first of three that parts may have: all heads, those of one key head, one. */
static int most_heads(const pe_attention *a)
{
    if (a->rotary && a->rotary->heads > 1)
        return 2;
    const pe_problem *p    = &a->sizes;
    const int64_t     rows = p->H * p->Lq;
    if (!pe_project_is_for(a) || (rows <= PROJECTED_ROWS && rows * p->Lk * a->terms->A.ranks <= LITTLE))
        return 0;
    return rows / p->G <= PROJECTED_ROWS ? 1 : 2;
}

/* The largest part that is small enough: all heads if there are keys enough to share what they share, else
   those of one key head, else one. Returns 0 if none is. */
static int size_part(cut *x, const pe_attention *a, const pe_executor *by, int wide)
{
    static const int64_t keys[SIZES] = {512, 256, 128, 64, 32, 16}, least[3] = {128, 128, 16};
    const int64_t        heads[3] = {a->sizes.H, a->sizes.H / a->sizes.G, 1};
    for (int h = most_heads(a); h < 3; h++)
        for (int k = 0; k < SIZES && keys[k] >= least[h]; k++) {
            pe_attention part = sized(a, heads[h], pe_smaller(keys[k], a->sizes.Lk), wide);
            part.is_projected = is_projected(a, by);
            x->heads          = heads[h];
            x->keys           = part.sizes.Lk;
            x->distances      = part.max_distances;
            count_part(x, &part, by);
            if (x->bytes <= most_of(a, by))
                return 1;
        }
    return 0;
}

/* A chunk's outputs, in bytes. */
static int64_t sums_of(const pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    return p->H * p->Lq * (p->Dv + 1) * (int64_t)sizeof(double);
}

static cut cut_run(const pe_attention *a, const pe_executor *by)
{
    cut x = {0};
    if (by->reference || !all_clipped(a, by) || !size_part(&x, a, by, 1))
        size_part(&x, a, by, 0);
    const int64_t fit = SUM_BYTES / sums_of(a), wanted = pe_smaller(fit < 1 ? 1 : fit, CHUNKS),
                  most = a->sizes.Lk / LEAST < 1 ? 1 : a->sizes.Lk / LEAST;
    x.sets             = a->sizes.H / x.heads;
    x.chunks           = a->terms->hook.state || pe_chains(a) || pe_sticks(a) ? 1 : pe_smaller(wanted, most);
    const int64_t each = (a->sizes.Lk + x.chunks - 1) / x.chunks;
    x.chunk            = (each + x.keys - 1) / x.keys * x.keys;
    x.chunks           = (a->sizes.Lk + x.chunk - 1) / x.chunk;
    return x;
}

/* ---- memory ---- */

static parts lay_out(const pe_attention *a, const pe_executor *by, pe_arena *arena)
{
    const pe_problem *p    = &a->sizes;
    parts             x    = {.a = a, .by = by, .cut = cut_run(a, by)};
    const int64_t     rows = p->H * p->Lq, sums = sums_of(a),
                  own  = pe_project_is_for(a) ? pe_smaller(rows, PROJECTED_ROWS) : rows;
    const size_t least = most_of(a, by), part = x.cut.bytes > least ? x.cut.bytes : least;
    x.o       = pe_arena_take(arena, (size_t)(sums > SUM_BYTES ? sums : SUM_BYTES)); /* whatever is cut */
    x.lse     = x.o ? x.o + x.cut.chunks * rows * p->Dv : NULL;
    x.state   = pe_arena_doubles(arena, a->terms->hook.state ? rows * PE_HOOK_STATE : 0);
    x.chained = pe_arena_doubles(arena, pe_chains(a) ? rows * (1 + p->D) : 0);
    x.rest    = pe_arena_doubles(arena, a->terms->stick.to_self ? p->Dv : 0);
    x.scratch = pe_arena_take(arena, (size_t)a->team.threads * sizeof *x.scratch);
    for (int i = 0; i < a->team.threads; i++) {
        part_scratch z = {0};
        z.o            = pe_arena_doubles(arena, own * p->Dv);
        z.lse          = pe_arena_doubles(arena, own);
        z.memory       = pe_arena_take(arena, part);
        z.products     = pe_arena_take(arena, is_projected(a, by) ? PROJECTED_BYTES : 0);
        if (x.scratch)
            x.scratch[i] = z;
    }
    return x;
}

/* On one thread: so it does not depend on their number. */
static size_t whole_bytes(const pe_attention *a, const pe_executor *by)
{
    pe_attention one = *a;
    one.team.threads = 1;
    one.is_projected = is_projected(a, by);
    return bytes_of(&one, by);
}

static int wants_products(const pe_attention *a, const pe_executor *by)
{
    return is_projected(a, by) && pe_project_serves(a);
}

int pe_parts_serve(const pe_attention *a, const pe_executor *by)
{
    return a->sizes.Lq <= POSENC_DECODE_QUERIES &&
           (wants_products(a, by) ||
            (a->sizes.Lk > a->whole_keys[by->reference] && whole_bytes(a, by) > PART_BYTES));
}

int64_t pe_parts_whole_keys(const pe_attention *a, const pe_executor *by)
{
    pe_attention few = *a;
    few.sizes.Lq     = pe_smaller(few.sizes.Lq, POSENC_DECODE_QUERIES);
    while (few.sizes.Lk && whole_bytes(&few, by) > PART_BYTES)
        few.sizes.Lk /= 2;
    return few.sizes.Lk;
}

void pe_parts_lay_out(const pe_attention *a, const pe_executor *by, pe_arena *arena)
{
    pe_attention few  = *a;
    pe_arena     part = *arena, whole = *arena;
    few.sizes.Lq = pe_smaller(few.sizes.Lq, POSENC_DECODE_QUERIES);
    if (!pe_parts_serve(&few, by)) {
        by->lay_out(&few, by->run, arena);
        return;
    }
    lay_out(&few, by, &part);
    pe_arena_take(&whole, (size_t)few.team.threads * PART_BYTES); /* of shorter runs, which are not cut */
    arena->used = part.used > whole.used ? part.used : whole.used;
}

/* ---- views of what a run is given ---- */

/* n elements from `first` on along an axis; one that is broadcast stays as it is. */
static void narrow(posenc_tensor *t, int axis, int64_t first, int64_t n)
{
    if (!t->data || (t->shape[axis] == 1 && n != 1))
        return;
    if (t->shape[axis] > 1)
        t->data = (char *)t->data + pe_tensor_bytes(t->dtype, first * t->stride[axis]);
    t->shape[axis] = n;
}

/* Item b, elements s .. s+n-1. */
static void narrow_positions(posenc_positions *p, int64_t b, int64_t s, int64_t n)
{
    posenc_tensor *t = &p->array;
    if (!t->data) {
        p->start = pe_positions_at(p, b, s);
        p->step  = p->step == 0 ? 1 : p->step; /* as it means where nothing is set */
        return;
    }
    if (t->ndim > 1)
        narrow(t, 0, b, 1);
    narrow(t, t->ndim > 1, s, n);
}

/* A part: heads from h on, keys from j on, queries from i on, and how many of each. */
typedef struct piece {
    int64_t h, i, Lq, j, Lk;
} piece;

static void narrow_masks(pe_attention *y, int64_t b, const piece *of)
{
    narrow(&y->key_allowed, 0, b, 1);
    narrow(&y->key_allowed, 1, of->j, of->Lk);
    narrow(&y->allowed, 0, b, 1);
    narrow(&y->allowed, 1, of->h, y->sizes.H);
    narrow(&y->allowed, 2, of->i, of->Lq);
    narrow(&y->allowed, 3, of->j, of->Lk);
    narrow(&y->q_segments, 0, b, 1);
    narrow(&y->q_segments, 1, of->i, of->Lq);
    narrow(&y->k_segments, 0, b, 1);
    narrow(&y->k_segments, 1, of->j, of->Lk);
}

static void narrow_rows(pe_attention *y, int64_t b, const piece *of)
{
    posenc_tensor *keys[2] = {&y->k, &y->v}, *scales[2] = {&y->k_scale, &y->v_scale};
    narrow(&y->q, 0, b, 1);
    narrow(&y->q, 1, of->h, y->sizes.H);
    narrow(&y->q, 2, of->i, of->Lq);
    for (int s = 0; s < 2; s++) {
        narrow(keys[s], 1, y->from.g, y->sizes.G);
        narrow(scales[s], 0, y->from.g, y->sizes.G);
        if (!y->pages.data) {
            narrow(keys[s], 0, b, 1);
            narrow(keys[s], 2, of->j, of->Lk);
        }
    }
}

/* Rotations that differ from head to head are those of the part's only head. */
static void narrow_rotation(pe_attention *y, pe_rotary own[2])
{
    if (!y->rotary || y->rotary->heads == 1)
        return;
    y->rotary_keys = pe_rotation_of_head(&own[1], y->rotary_keys, y->from.g);
    y->rotary      = pe_rotation_of_head(&own[0], y->rotary, y->from.h);
}

/* The run of a part; its outputs are those of the thread. */
static pe_attention part_of(const parts *x, const part_scratch *z, const piece *of)
{
    const pe_attention *a = x->a;
    pe_attention        y = sized(a, x->cut.heads, of->Lk, 0);
    y.sizes.Lq            = of->Lq;
    y.max_distances       = x->cut.distances;
    y.is_projected        = is_projected(a, x->by);
    y.projected           = z->projected;
    if (y.projected.at)
        y.projected.at += of->i * y.projected.row + of->j - z->first;
    y.from     = (pe_beginning){x->b, of->h, of->h / (a->sizes.H / a->sizes.G), of->i, of->j};
    y.o        = posenc_tensor_contiguous(z->o, POSENC_DTYPE_F64, 4,
                                          (const int64_t[]){1, y.sizes.H, of->Lq, a->sizes.Dv});
    y.has_sink = y.has_rest = 0; /* they join at the end */
    if (y.temper.at)
        y.temper.at += x->b * y.temper.item + of->h * y.temper.head + of->i;
    y.lse   = posenc_tensor_contiguous(z->lse, POSENC_DTYPE_F64, 3, (const int64_t[]){1, y.sizes.H, of->Lq});
    y.state = x->state && a->terms->hook.state ? x->state + of->h * a->sizes.Lq * PE_HOOK_STATE : NULL;
    y.chain.state = pe_chains(a) ? x->chained + of->h * a->sizes.Lq * (1 + a->sizes.D) : NULL;
    narrow_rows(&y, x->b, of);
    narrow_masks(&y, x->b, of);
    narrow_positions(&y.q_pos, x->b, of->i, of->Lq);
    narrow_positions(&y.k_pos, x->b, of->j, of->Lk);
    narrow_positions(&y.q_coordinates, x->b, of->i, of->Lq);
    narrow_positions(&y.k_coordinates, x->b, of->j, of->Lk);
    pe_positions_distances(&y.distances, &y.q_pos, &y.k_pos, 1, of->Lq, of->Lk, a->distances.reach);
    return y;
}

/* ---- a part ---- */

/* (o, lse) of one query joined with that of more keys. */
static void join(double *o, double *lse, const double *more, double more_lse, int64_t Dv)
{
    if (more_lse == -INFINITY)
        return;
    const double most = fmax(*lse, more_lse), old = exp(*lse - most), new = exp(more_lse - most),
                 sum = old + new;
    for (int64_t d = 0; d < Dv; d++)
        o[d] = (old * o[d] + new *more[d]) / sum;
    *lse = most + log(sum);
}

/* Of a stick: the keys to the left get what is left. */
static void join_left(double *o, double *lse, const double *more, double more_lse, int64_t Dv)
{
    const double left = exp(*lse);
    for (int64_t d = 0; d < Dv; d++)
        o[d] += left * more[d];
    *lse += more_lse;
}

/* Outputs of a part to those of its chunk, or scores to where they belong. */
static void compute_part(const parts *x, const part_scratch *z, pe_attention *y, const piece *of,
                         int64_t chunk)
{
    const pe_problem *p     = &x->a->sizes;
    pe_arena          arena = {.memory = z->memory};
    pe_rotary         own[2];
    narrow_rotation(y, own);
    if (x->S) {
        posenc_tensor S    = *x->S;
        const int     head = S.ndim - 3; /* a bias has no items */
        if (head)
            narrow(&S, 0, x->b, 1);
        narrow(&S, head, of->h, y->sizes.H);
        narrow(&S, head + 1, of->i, of->Lq);
        narrow(&S, head + 2, of->j, of->Lk);
        x->by->compute(y, x->by->run, &S, &arena);
        return;
    }
    x->by->compute(y, x->by->run, NULL, &arena);
    for (int64_t r = 0; r < y->sizes.H * of->Lq; r++) {
        const int64_t to = (chunk * p->H + of->h + r / of->Lq) * p->Lq + of->i + r % of->Lq;
        (pe_sticks(y) ? join_left : join)(x->o + to * p->Dv, x->lse + to, z->o + r * p->Dv, z->lse[r], p->Dv);
    }
}

/* Have the distances of the part rows? Along diagonals a tile needs none for those between. */
static int fits(const parts *x, const pe_attention *y)
{
    return !pe_uses_distance(y->terms) || y->distances.count <= x->cut.distances ||
           (!x->by->reference && y->distances.skewed);
}

/* Do masks by distance leave none? */
static int is_unseen(const pe_attention *y)
{
    return y->distances.whole && y->distances.count == 0 && !y->unmasked;
}

static void visit_part(const parts *x, const part_scratch *z, piece of, int64_t chunk)
{
    pe_attention y = part_of(x, z, &of);
    if (is_unseen(&y))
        return;
    if (fits(x, &y) || (of.Lq == 1 && of.Lk == 1)) {
        compute_part(x, z, &y, &of, chunk);
        return;
    }
    piece low = of, high = of; /* keys from right to left, as a hook that travels sees them */
    if (of.Lq > 1) {
        low.Lq  = of.Lq / 2;
        high.i  = of.i + low.Lq;
        high.Lq = of.Lq - low.Lq;
    } else {
        low.Lk  = of.Lk / 2;
        high.j  = of.j + low.Lk;
        high.Lk = of.Lk - low.Lk;
    }
    visit_part(x, z, high, chunk);
    visit_part(x, z, low, chunk);
}

/* ---- a chunk, and all of them ---- */

/* Products of queries and vectors by distance, of keys up to `end`. */
static void make_products(const parts *x, part_scratch *z, int64_t h, int64_t begin, int64_t end)
{
    pe_arena  arena = {.memory = z->memory};
    pe_rotary own[2];
    z->first         = pe_larger(begin, end - x->cut.stretch);
    z->projected     = (pe_projected){0};
    const piece  all = {h, 0, x->a->sizes.Lq, z->first, end - z->first};
    pe_attention y   = part_of(x, z, &all);
    if (is_unseen(&y))
        return;
    narrow_rotation(&y, own);
    z->projected.row  = (end - z->first + PE_LANES - 1) / PE_LANES * PE_LANES;
    z->projected.head = y.sizes.Lq * z->projected.row;
    pe_project_run(&y, &z->projected, z->products, &arena);
    z->projected.at = z->products;
}

static void start_chunk(const parts *x, int64_t chunk, int64_t h)
{
    const pe_problem *p     = &x->a->sizes;
    const int64_t     first = (chunk * p->H + h) * p->Lq, n = x->cut.heads * p->Lq;
    for (int64_t r = first; r < first + n; r++)
        x->lse[r] = pe_sticks(x->a) ? 0 : -INFINITY;
    memset(x->o + first * p->Dv, 0, (size_t)(n * p->Dv) * sizeof *x->o);
    if (x->a->terms->hook.state)
        memset(x->state + h * p->Lq * PE_HOOK_STATE, 0, (size_t)(n * PE_HOOK_STATE) * sizeof *x->state);
    for (int64_t r = 0; pe_chains(x->a) && r < n; r++)
        x->chained[(h * p->Lq + r) * (1 + p->D)] = 0; /* it has not begun */
}

static void visit_chunk(void *context, int64_t index, int thread)
{
    const parts      *x     = context;
    const pe_problem *p     = &x->a->sizes;
    const int64_t     chunk = index % x->cut.chunks, h = index / x->cut.chunks * x->cut.heads,
                  begin = chunk * x->cut.chunk, end = pe_smaller(begin + x->cut.chunk, p->Lk),
                  count = (end - begin + x->cut.keys - 1) / x->cut.keys;
    part_scratch *z     = x->scratch + thread;
    start_chunk(x, chunk, h);
    z->first = end;
    for (int64_t n = count - 1; n >= 0 && !pe_parallel_is_cancelled(&x->a->team); n--) {
        const int64_t j = begin + n * x->cut.keys, keys = pe_smaller(x->cut.keys, end - j);
        if (x->cut.stretch && j < z->first)
            make_products(x, z, h, begin, j + keys);
        visit_part(x, z, (piece){h, 0, p->Lq, j, keys}, chunk);
    }
}

/* What a stick leaves to the query's own value. */
static void add_rest(const parts *x, int64_t h, int64_t i, double *o, double lse)
{
    const pe_attention *a   = x->a;
    pe_own              own = {.keys = a->sizes.Lk};
    const int64_t       j = pe_stick_own(a, &own, x->b, i), g = h / (a->sizes.H / a->sizes.G);
    double             *v = x->rest;
    if (j < 0)
        return;
    pe_keys_load_double(a, v, &a->v, x->b, g, j, a->sizes.Dv);
    for (int64_t d = 0; d < a->sizes.Dv; d++)
        o[d] += exp(lse) * v[d];
}

/* Chunks of one query of all heads, in their order, then to the caller. */
static void store_row(const parts *x, int64_t r)
{
    const pe_attention *a    = x->a;
    const pe_problem   *p    = &a->sizes;
    const int64_t       rows = p->H * p->Lq, h = r / p->Lq, i = r % p->Lq;
    double             *o = x->o + r * p->Dv, *lse = x->lse + r;
    for (int64_t c = 1; c < x->cut.chunks; c++)
        join(o, lse, x->o + (c * rows + r) * p->Dv, x->lse[c * rows + r], p->Dv);
    const double left = pe_sink_join(a, x->b, h, i, lse);
    for (int64_t d = 0; a->has_sink && d < p->Dv; d++)
        o[d] *= left;
    add_rest(x, h, i, o, *lse);
    pe_tensor_store_double(pe_tensor_row(&a->o, x->b, h, i), a->o.dtype, 1, o, p->Dv);
    if (a->lse.data)
        pe_tensor_store_double(pe_tensor_element(&a->lse, x->b, h, i), a->lse.dtype, 1, lse, 1);
}

void pe_parts_run(const pe_attention *a, const pe_executor *by, const posenc_tensor *S, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    parts             x = lay_out(a, by, arena);
    x.S                 = S;
    if (!wants_products(a, by))
        x.cut.stretch = 0;
    for (x.b = 0; x.b < p->B && !pe_parallel_is_cancelled(&a->team); x.b++) {
        pe_parallel_for(x.cut.sets * x.cut.chunks, &a->team, visit_chunk, &x);
        for (int64_t r = 0; !S && r < p->H * p->Lq; r++)
            store_row(&x, r);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * tables.c: members by distance as tables of floats
 *
 * Which row stands for which distance (bands), how much of a member is stored (pe_distance_table), and its
 * numbers: asked of the room in double and rounded once. Vectors are asked for PE_CHUNK distances at a time;
 * scalars all at once, which are few bytes: the room makes once what serves all distances, and the largest of
 * them is there before any is rounded.
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "engine/tiled/tiles.h"

/* ---- bands: which row stands for which distance ---- */

static int64_t floor_division(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static void set_band(pe_tiles *T)
{
    const pe_attention *a  = T->a;
    const pe_distances *d  = &a->distances;
    const int64_t       Lq = a->sizes.Lq, X = Lq + a->sizes.Lk - 1;
    if (!T->by_distance)
        return;
    if (!d->skewed) { /* row x stands for the x-th distance from the largest down */
        T->band = (pe_band){d->count, d->low + d->count - 1, -1, 0, d->count};
        return;
    }
    /* row x stands for i - j = Lq - 1 - x */
    T->band.rows  = X;
    T->band.t0    = d->t00 + d->step * (Lq - 1);
    T->band.slope = -d->step;
    T->band.last  = X;
    if (a->unmasked)
        return;
    T->band.first = pe_smaller(pe_larger(Lq - 1 - T->e_high, 0), X); /* X: no query sees a key */
    T->band.last  = Lq - T->e_low < X ? Lq - T->e_low : X;
    if (T->band.last < T->band.first)
        T->band.last = T->band.first;
}

void pe_tables_find_band(pe_tiles *T)
{
    const pe_distances *d    = &T->a->distances;
    const int64_t       step = d->step, low = T->a->reach.low - d->t00, high = T->a->reach.high - d->t00;
    T->e_low  = INT64_MIN / 4;
    T->e_high = INT64_MAX / 4;
    if (d->skewed && (T->a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW))) {
        /* i - j = e is allowed iff low <= t00 + step*e <= high */
        T->e_low  = step > 0 ? -floor_division(-low, step) : -floor_division(high, -step);
        T->e_high = step > 0 ? floor_division(high, step) : floor_division(-low, -step);
    }
    set_band(T);
    T->ready = pe_ready_serves(T) ? T->a->ready : NULL;
}

/* ---- layout ---- */

/* The longest run of rows that is read at once. */
static int64_t longest_run(const pe_tiles *T)
{
    return T->Br + T->Bc;
}

/* Rows that a table may have to hold; for a plan, whatever the positions. */
static int64_t most_rows(const pe_tiles *T, const pe_by_distance *m)
{
    const pe_attention *a   = T->a;
    const int64_t       X   = a->sizes.Lq + a->sizes.Lk;
    const int64_t       all = a->for_any_run ? pe_larger(X, a->max_distances) : T->band.rows;
    return m->clipped ? pe_smaller(all, m->high - m->low + 2 * longest_run(T) + 2) : all;
}

/* Rows of one content beyond a clipped member's ends: those up to `last_low`, and those from `first_high` on,
   both within what the masks reach. A run with an allowed pair begins and ends less than its length beyond
   their reach. */
static void find_ends(const pe_tiles *T, const pe_by_distance *m, pe_distance_table *t)
{
    const pe_band *band = &T->band;
    const int64_t  n = longest_run(T), slope = band->slope < 0 ? -band->slope : band->slope,
                  down = band->slope < 0 ? band->t0 - m->high : m->low - band->t0,
                  up   = band->slope < 0 ? band->t0 - m->low : m->high - band->t0;
    int64_t last_low = floor_division(down, slope), first_high = -floor_division(-up, slope);
    last_low   = pe_smaller(last_low, band->last - 1);
    first_high = pe_larger(first_high, band->first);
    t->low = t->flat_low = last_low - n + 1;
    t->last_low          = last_low;
    t->high = t->flat_high = first_high;
    t->first               = pe_larger(0, pe_larger(t->low, band->first - n));
    t->last                = pe_smaller(band->rows, n + pe_smaller(first_high, band->last));
}

/* For a plan both ways (along diagonals, looked up) are laid out. `aligned`: a row whose column is to begin
   on a cache line. */
static void lay_out_member(pe_tiles *T, pe_kind kind, int64_t aligned, pe_arena *arena, int backward)
{
    const pe_attention  *a   = T->a;
    const pe_problem    *p   = &a->sizes;
    const pe_by_distance m   = pe_member(a->terms, kind);
    const int            any = a->for_any_run, skewed = T->skewed || any;
    pe_distance_table   *t = &T->by[kind];
    const int64_t        X = any ? pe_smaller(p->Lq + p->Lk, most_rows(T, &m)) : most_rows(T, &m);
    t->width               = pe_member_width(a->terms, p, kind);
    t->row                 = pe_is_scalar(kind) ? 1 : pe_padded(t->width);
    t->low = t->flat_low = INT64_MIN / 4;
    t->high = t->flat_high = INT64_MAX / 4;
    t->last                = T->band.rows;
    if (m.clipped && T->band.slope)
        find_ends(T, &m, t);
    t->count = pe_padded(most_rows(T, &m)) + 2 * PE_LANES; /* vectors are read up to PE_LANES beyond a run */
    /* columns an odd number of cache lines apart: they fall into different sets */
    t->stride = pe_padded(X) + (pe_padded(X) / PE_LANES % 2 ? 2 : 3) * PE_LANES;
    if (kind == PE_B && pe_vectors_are_shared(a->terms))
        t->rows = T->by[PE_A].rows;
    else if (kind != PE_A || !T->skewed || backward || any || pe_vectors_are_shared(a->terms))
        t->rows = pe_arena_floats(arena, p->H * t->count * t->row);
    if (skewed && (kind == PE_A || (kind == PE_R && backward)))
        t->columns = pe_arena_floats(arena, p->H * t->width * t->stride + PE_LANES);
    if (t->columns)
        t->columns += (-(aligned - t->first) % PE_LANES + PE_LANES) % PE_LANES;
}

/* The same table with other numbers for its rows. */
static void renumber(pe_distance_table *t, int64_t shift)
{
    t->low += shift;
    t->high += shift;
    t->flat_low += shift;
    t->flat_high += shift;
    t->last_low += shift;
    t->first += shift;
    t->last += shift;
}

/* The part of a ready table that is the run's. Which runs are of one content is a matter of the run, as it is
   without such a table. */
static void take_ready(pe_tiles *T, pe_kind kind)
{
    const pe_by_distance m = pe_member(T->a->terms, kind);
    pe_distance_table   *t = &T->by[kind], own = T->ready->by[kind];
    if (m.clipped)
        find_ends(T, &m, &own);
    *t = T->ready->by[kind];
    renumber(t, -pe_ready_shift(T));
    if (t->rows)
        t->rows += T->a->from.h * t->count * t->row;
    if (t->columns)
        t->columns += T->a->from.h * t->width * t->stride;
    t->flat_low  = own.flat_low;
    t->flat_high = own.flat_high;
    t->last_low  = own.last_low;
    t->is_ready  = 1;
    if (kind == PE_BIAS)
        T->center = T->ready->center + T->a->from.h;
}

/* Numbers of one head of a table that the run makes itself; a ready one is as long as its plan's runs. */
static int64_t made_count(const pe_distance_table *t)
{
    return t->is_ready ? 0 : t->count;
}

void pe_tables_lay_out(pe_tiles *T, pe_arena *arena, int backward)
{
    const pe_attention *a = T->a;
    if (!T->by_distance)
        return;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (!pe_has(a->terms, kind))
            continue;
        else if (pe_ready_has(T, kind))
            take_ready(T, kind);
        else if (kind != PE_A ||
                 !a->is_projected) /* a whole tile adds to a band those from row j0 - i0 + Lq - 1 on */
            lay_out_member(T, kind, a->sizes.Lq - 1, arena, backward);
    if (pe_has(a->terms, PE_BIAS) && !T->by[PE_BIAS].is_ready && !T->finishes &&
        (!a->unmasked || a->for_any_run))
        T->center = pe_arena_doubles(arena, a->sizes.H);
    T->exact_count = pe_larger(made_count(&T->by[PE_BIAS]), made_count(&T->by[PE_GATE]));
    T->exact       = pe_arena_doubles(arena, a->team.threads * T->exact_count);
    if (T->by[PE_A].width && !T->by[PE_A].is_ready)
        pe_basis_lay_out(T, arena);
}

/* ---- numbers ---- */

/* Rows x0 .. x0+n-1 in the order of the table. A room is asked for rising distances, so a band of falling
   ones is reversed here; other slopes are asked for one by one. */
static void fill_chunk(const pe_tiles *T, pe_kind kind, int64_t h, int64_t x0, int64_t n, double *chunk)
{
    const pe_by_distance m     = pe_member(T->a->terms, kind);
    const pe_part       *part  = &T->a->parts[m.owner];
    const int64_t        width = T->by[kind].width, t0 = pe_band_distance(&T->band, x0);
    h += T->a->from.h; /* as rooms and ready tables count */
    if (kind == PE_BIAS && T->ready && T->ready->exact)
        pe_ready_copy(T, h, x0, n, chunk);
    else if (T->band.slope == 1)
        pe_members_fill(part, &m, width, h, t0, n, chunk);
    else if (T->band.slope == -1) {
        pe_members_fill(part, &m, width, h, t0 - (n - 1), n, chunk);
        for (int64_t r = 0; r < n / 2; r++)
            for (int64_t d = 0; d < width; d++) {
                double      *low = chunk + r * width + d, *high = chunk + (n - 1 - r) * width + d;
                const double x = *low;
                *low           = *high;
                *high          = x;
            }
    } else
        for (int64_t r = 0; r < n; r++)
            pe_members_fill(part, &m, width, h, pe_band_distance(&T->band, x0 + r), 1, chunk + r * width);
}

/* The bias or the gate of one head; of the bias its largest is taken, while it is double. */
static void fill_scalars(const pe_tiles *T, pe_kind kind, int64_t h, double *exact)
{
    const pe_distance_table *t     = &T->by[kind];
    const int64_t            begin = pe_table_begin(T, kind), end = pe_table_end(T, kind),
                  n = end > begin ? end - begin : 0;
    float *rows     = t->rows + h * t->count;
    double center   = 0;
    memset(rows, 0, (size_t)t->count * sizeof *rows);
    fill_chunk(T, kind, h, begin, n, exact);
    if (kind == PE_BIAS && T->center) {
        const double most = pe_products64_largest(exact, n);
        T->center[h] = center = isfinite(most) ? most : 0;
    }
    for (int64_t i = 0; i < n; i++)
        rows[begin - t->first + i] = (float)(exact[i] - center);
}

/* Zeros before row `begin` and from row `end` on; between them everything is about to be written. */
static void clear_around(const pe_distance_table *t, int64_t begin, int64_t end, float *rows, float *columns)
{
    const int64_t from = end > begin ? end : begin;
    if (rows) {
        memset(rows, 0, (size_t)(begin * t->row) * sizeof *rows);
        memset(rows + from * t->row, 0, (size_t)((t->count - from) * t->row) * sizeof *rows);
    }
    for (int64_t d = 0; columns && d < t->width; d++) {
        memset(columns + d * t->stride, 0, (size_t)begin * sizeof *columns);
        memset(columns + d * t->stride + from, 0, (size_t)(t->stride - from) * sizeof *columns);
    }
}

/* A member of vectors of one head: rows, and transposed where that is needed too. */
static void fill_vectors(const pe_tiles *T, pe_kind kind, int64_t h, double *chunk)
{
    const pe_distance_table *t    = &T->by[kind];
    const int64_t            end  = pe_table_end(T, kind);
    float                   *rows = t->rows ? t->rows + h * t->count * t->row : NULL,
          *columns                = t->columns ? t->columns + h * t->width * t->stride : NULL;
    if (kind == PE_A && pe_basis_serves(T)) {
        clear_around(t, pe_table_begin(T, kind) - t->first, end - t->first, rows, columns);
        return;
    }
    if (rows)
        memset(rows, 0, (size_t)(t->count * t->row) * sizeof *rows);
    if (columns)
        memset(columns, 0, (size_t)(t->width * t->stride) * sizeof *columns);
    for (int64_t x = pe_table_begin(T, kind); x < end; x += PE_CHUNK) {
        const int64_t n = pe_smaller(PE_CHUNK, end - x), at = x - t->first;
        fill_chunk(T, kind, h, x, n, chunk);
        for (int64_t i = 0; rows && i < n; i++)
            for (int64_t d = 0; d < t->width; d++)
                rows[(at + i) * t->row + d] = (float)chunk[i * t->width + d];
        for (int64_t d = 0; columns && d < t->width; d++)
            for (int64_t i = 0; i < n; i++)
                columns[d * t->stride + at + i] = (float)chunk[i * t->width + d];
    }
}

static int is_filled(const pe_tiles *T, pe_kind kind)
{
    const pe_terms *m = T->a->terms;
    return pe_has(m, kind) && T->by[kind].width && !T->by[kind].is_ready &&
           !(kind == PE_B && pe_vectors_are_shared(m));
}

static void fill_tables(void *context, int64_t h, int thread)
{
    const pe_tiles *T = context;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (!is_filled(T, kind))
            continue;
        else if (pe_is_scalar(kind))
            fill_scalars(T, kind, h, T->exact + thread * T->exact_count);
        else
            fill_vectors(T, kind, h, T->scratch[thread].chunk);
}

void pe_tables_fill(pe_tiles *T)
{
    int some = 0;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        some |= T->by_distance && is_filled(T, kind);
    if (some)
        pe_parallel_for(T->a->sizes.H, &T->a->team, fill_tables, T);
    if (some && pe_basis_serves(T) && is_filled(T, PE_A))
        pe_basis_fill(T);
}

/* ---- tables that are made before a run: ready.h ---- */

/* The band of all distances, and of it a run that would see them all. */
static pe_tiles tiles_of(const pe_attention *a, const pe_ready *r)
{
    pe_tiles T    = {.a = a, .by_distance = 1, .skewed = 1, .band = r->band};
    T.exact_count = r->by[PE_GATE].count;
    memcpy(T.by, r->by, sizeof T.by);
    return T;
}

static pe_band band_of(const pe_ready *r, int64_t margin)
{
    const int64_t n = r->high - r->low + 1;
    return (pe_band){n + 2 * margin, r->high + margin, -1, margin, margin + n};
}

/* A slope is made into a table faster than one is read. */
static int is_made(const pe_attention *a, pe_kind kind)
{
    const pe_by_distance m = pe_member(a->terms, kind);
    return pe_member_is_given(&m) && !m.slope;
}

pe_ready pe_ready_lay_out(const pe_attention *a, const pe_ready_extent *of, pe_arena *arena)
{
    enum { VECTORS = 256, NUMBERS = 1024 }; /* of usual tiles; of a few queries with a row of keys */
    const int64_t sides = a->tile_q + a->tile_k, n = pe_larger(of->high - of->low + 1, 0);
    pe_ready      r = {.low = of->low, .high = of->high, .margin = {sides + VECTORS, sides + NUMBERS}};
    r.band          = band_of(&r, r.margin[1]);
    pe_tiles T      = tiles_of(a, &r);
    for (pe_kind kind = PE_BIAS; n && kind < PE_KINDS; kind++)
        if (is_made(a, kind)) {
            T.Br   = r.margin[pe_is_scalar(kind)];
            T.band = band_of(&r, T.Br);
            lay_out_member(&T, kind, T.band.t0, arena, 0);
            renumber(&T.by[kind], r.margin[1] - T.Br);
        }
    memcpy(r.by, T.by, sizeof r.by);
    if (r.by[PE_BIAS].width) {
        r.exact  = pe_arena_doubles(arena, a->sizes.H * r.by[PE_BIAS].count);
        r.center = pe_arena_doubles(arena, a->sizes.H);
        r.peaks  = pe_arena_take(arena, (size_t)a->sizes.H * 2 * sizeof *r.peaks);
    }
    pe_by_position_lay_out_ready(&r, a, of->positions, arena);
    return r;
}

/* Where the largest bias of a head is, if that is what its rows lack. */
static void find_peaks(const pe_ready *r, const pe_tiles *T, int64_t h)
{
    const pe_distance_table *t     = &r->by[PE_BIAS];
    const double            *exact = r->exact + h * t->count - t->first;
    int64_t                 *peak  = r->peaks + 2 * h;
    int                      above = 0;
    peak[0] = peak[1] = -1;
    for (int64_t x = pe_table_begin(T, PE_BIAS); x < pe_table_end(T, PE_BIAS); x++) {
        above |= exact[x] > r->center[h];
        if (exact[x] == r->center[h]) {
            peak[0] = peak[0] < 0 ? x : peak[0];
            peak[1] = x;
        }
    }
    if (above)
        peak[0] = peak[1] = -1;
}

typedef struct ready_job {
    const pe_ready *r;
    pe_tiles        T;
} ready_job;

static void make_ready(void *context, int64_t h, int thread)
{
    ready_job *j = context;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (!is_filled(&j->T, kind))
            continue;
        else if (kind == PE_GATE)
            fill_scalars(&j->T, kind, h, j->T.exact + thread * j->T.exact_count);
        else if (kind == PE_BIAS)
            fill_scalars(&j->T, kind, h,
                         j->r->exact + h * j->r->by[kind].count + pe_table_begin(&j->T, kind) -
                             j->r->by[kind].first);
        else
            fill_vectors(&j->T, kind, h, j->T.scratch[thread].chunk);
    if (j->r->by[PE_BIAS].width)
        find_peaks(j->r, &j->T, h);
}

void pe_ready_fill(const pe_ready *r, const pe_attention *a, pe_arena *lent)
{
    const int64_t wide = pe_larger(pe_larger(a->sizes.D, a->sizes.Dv), a->terms->profile_width);
    ready_job     j    = {.r = r, .T = tiles_of(a, r)};
    pe_tiles     *T    = &j.T;
    int           some = 0;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        some |= is_filled(T, kind);
    pe_by_position_make_ready(r, a, lent);
    if (!some)
        return;
    T->center  = r->center;
    T->exact   = pe_arena_doubles(lent, a->team.threads * T->exact_count);
    T->scratch = pe_arena_take(lent, (size_t)a->team.threads * sizeof *T->scratch);
    for (int i = 0; i < a->team.threads; i++) {
        double *chunk = pe_arena_doubles(lent, PE_CHUNK * wide);
        if (T->scratch)
            T->scratch[i] = (pe_scratch){.chunk = chunk};
    }
    if (T->by[PE_A].width)
        pe_basis_lay_out(T, lent);
    if (!lent->memory)
        return;
    pe_parallel_for(a->sizes.H, &a->team, make_ready, &j);
    if (T->by[PE_A].width && pe_basis_serves(T))
        pe_basis_fill(T);
}

int pe_ready_serves(const pe_tiles *T)
{
    const pe_ready *r    = T->a->ready;
    const pe_band  *band = &T->band;
    return r && !T->a->for_any_run && T->by_distance && band->slope == -1 && band->first < band->last &&
           pe_band_distance(band, band->first) <= r->high && pe_band_distance(band, band->last - 1) >= r->low;
}

int64_t pe_ready_shift(const pe_tiles *T)
{
    return T->ready->band.t0 - T->band.t0;
}

/* Does the run reach this row? */
static int reaches_row(const pe_tiles *T, int64_t row)
{
    const int64_t x = row - pe_ready_shift(T);
    return x >= T->band.first && x < T->band.last;
}

/* Does it reach the largest bias of every head? */
static int reaches_peaks(const pe_tiles *T)
{
    for (int64_t i = 0; i < T->a->sizes.H; i++) {
        const int64_t *x = T->ready->peaks + 2 * (T->a->from.h + i);
        if (!reaches_row(T, x[0]) && !reaches_row(T, x[1]) && !pe_ready_is_centered(T, i))
            return 0;
    }
    return 1;
}

int pe_ready_is_centered(const pe_tiles *T, int64_t h)
{
    const int64_t at = T->a->from.h + h, row = pe_band_row(T, (double)pe_attention_nearest(T->a));
    double        nearest;
    pe_ready_copy(T, at, row, 1, &nearest);
    return nearest == T->ready->center[at] && T->ready->peaks[2 * at] >= 0;
}

int pe_ready_has(const pe_tiles *T, pe_kind kind)
{
    if (!T->ready || !T->ready->by[kind].width || longest_run(T) > T->ready->margin[pe_is_scalar(kind)])
        return 0;
    return kind == PE_BIAS ? !T->a->unmasked && !T->finishes && reaches_peaks(T)
                           : T->skewed || T->ready->by[kind].rows;
}

void pe_ready_copy(const pe_tiles *T, int64_t h, int64_t x0, int64_t n, double to[])
{
    const pe_distance_table *t     = &T->ready->by[PE_BIAS];
    const double            *exact = T->ready->exact + h * t->count;
    const int64_t            from  = x0 + pe_ready_shift(T);
    if (from >= t->low && from + n - 1 <= t->high)
        memcpy(to, exact + from - t->first, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = exact[pe_row_in(t, from + i)];
}

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
    if (!d->skewed) {
        T->band = (pe_band){d->count, d->low, 1, 0, d->count};
        return;
    }
    /* row x stands for i - j = Lq - 1 - x */
    T->band.rows  = X;
    T->band.t0    = d->t00 + d->step * (Lq - 1);
    T->band.slope = -d->step;
    T->band.last  = X;
    if (a->unmasked)
        return;
    T->band.first = Lq - 1 - T->e_high > 0 ? Lq - 1 - T->e_high : 0;
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
}

/* ---- layout ---- */

/* The longest run of rows that is read at once. */
static int64_t longest_run(const pe_tiles *T)
{
    return T->Br + T->Bc;
}

/* Rows that a table may have to hold, whatever the positions. */
static int64_t most_rows(const pe_tiles *T, const pe_by_distance *m)
{
    const pe_attention *a   = T->a;
    const int64_t       X   = a->sizes.Lq + a->sizes.Lk;
    const int64_t       all = pe_larger(X, a->max_distances);
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
    last_low    = pe_smaller(last_low, band->last - 1);
    first_high  = pe_larger(first_high, band->first);
    t->low      = last_low - n + 1;
    t->last_low = last_low;
    t->high     = first_high;
    t->first    = pe_larger(0, pe_larger(t->low, band->first - n));
    t->last     = pe_smaller(band->rows, n + pe_smaller(first_high, band->last));
}

/* For a plan both ways (along diagonals, looked up) are laid out. */
static void lay_out_member(pe_tiles *T, pe_kind kind, pe_arena *arena, int backward)
{
    const pe_attention  *a   = T->a;
    const pe_problem    *p   = &a->sizes;
    const pe_by_distance m   = pe_member(a->terms, kind);
    const int            any = a->for_any_run, skewed = T->skewed || any;
    pe_distance_table   *t = &T->by[kind];
    const int64_t        X = pe_smaller(p->Lq + p->Lk, most_rows(T, &m));
    t->width               = pe_member_width(p, kind);
    t->row                 = pe_is_scalar(kind) ? 1 : pe_padded(t->width);
    t->low                 = INT64_MIN / 4;
    t->high                = INT64_MAX / 4;
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
    /* moved so that those which a whole tile adds to a band (from row j0 - i0 + Lq - 1 on) begin on a cache
       line */
    if (t->columns)
        t->columns += (-(p->Lq - 1 - t->first) % PE_LANES + PE_LANES) % PE_LANES;
}

void pe_tables_lay_out(pe_tiles *T, pe_arena *arena, int backward)
{
    const pe_attention *a = T->a;
    if (!T->by_distance)
        return;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (pe_has(a->terms, kind))
            lay_out_member(T, kind, arena, backward);
    if (pe_has(a->terms, PE_BIAS) && (!a->unmasked || a->for_any_run))
        T->center = pe_arena_doubles(arena, a->sizes.H);
    T->exact_count = pe_larger(T->by[PE_BIAS].count, T->by[PE_GATE].count);
    T->exact       = pe_arena_doubles(arena, a->team.threads * T->exact_count);
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
    h += T->a->from.h; /* as the room counts */
    if (T->band.slope == 1)
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

static void fill_tables(void *context, int64_t h, int thread)
{
    const pe_tiles *T = context;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
        if (!pe_has(T->a->terms, kind) || (kind == PE_B && pe_vectors_are_shared(T->a->terms)))
            continue;
        else if (pe_is_scalar(kind))
            fill_scalars(T, kind, h, T->exact + thread * T->exact_count);
        else
            fill_vectors(T, kind, h, T->scratch[thread].chunk);
}

void pe_tables_fill(pe_tiles *T)
{
    if (!T->by_distance)
        return;
    pe_parallel_for(T->a->sizes.H, &T->a->team, fill_tables, T);
    if (pe_basis_serves(T))
        pe_basis_fill(T);
}

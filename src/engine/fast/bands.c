/* SPDX-License-Identifier: MIT */
/* Scalars by distance of a few keys at a time. Contract: fast.h. */
#include <math.h>
#include <string.h>

#include "engine/fast/fast.h"

enum {
    TABLE_BYTES = 192 << 10
}; /* of the tables of all heads, for each item: up to so many they are whole */

/* Rows that a table of the member has at most. */
static int64_t rows_of(const pe_attention *a, pe_kind kind, int64_t keys)
{
    const pe_by_distance m   = pe_member(a->terms, kind);
    const int64_t        all = pe_larger(a->sizes.Lq + a->sizes.Lk, a->max_distances);
    return !pe_has(a->terms, kind) || (kind == PE_BIAS && pe_fast_is_sloped(a)) ? 0
           : m.clipped ? pe_smaller(all, m.high - m.low + 2 * (keys + 1))
                       : all;
}

static double most_rows(const pe_attention *a)
{
    return (double)TABLE_BYTES / sizeof(float) * (double)a->sizes.B / (double)a->sizes.H;
}

int pe_bands_serve(const pe_attention *a, int64_t keys)
{
    return (double)(rows_of(a, PE_BIAS, keys) + rows_of(a, PE_GATE, keys)) > most_rows(a);
}

int64_t pe_bands_padded(int64_t queries, int64_t keys)
{
    return pe_padded(queries + keys) + 2 * PE_LANES;
}

void pe_bands_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_attention *a    = T->a;
    const int64_t       rows = (int64_t)most_rows(a);
    T->center                = pe_arena_doubles(arena, a->sizes.H);
    if (!a->for_any_run) /* shorter runs have tables and, for each thread, their rows in double */
        return;
    pe_arena_floats(arena, a->sizes.H * (rows + 4 * PE_LANES));
    pe_arena_doubles(arena, a->team.threads * (rows + 4 * PE_LANES));
}

/* Rows of t0, t0 + 1, ... Those beyond a clip are alike: it is read once. */
static void fill(const pe_attention *a, pe_kind kind, int64_t h, int64_t t0, int64_t n, double rows[])
{
    const pe_by_distance m   = pe_member(a->terms, kind);
    const int64_t        low = m.clipped ? pe_smaller(m.low - t0, n - 1) : 0, below = pe_larger(low, 0),
                  high  = m.clipped ? pe_smaller(t0 + n - 1 - m.high, n - 1 - below) : 0,
                  above = pe_larger(high, 0), read = n - below - above;
    if (n <= 0)
        return;
    pe_members_fill(&a->parts[m.owner], &m, 1, h, t0 + below, read, rows + below);
    for (int64_t r = 0; r < below; r++)
        rows[r] = rows[below];
    for (int64_t r = n - above; r < n; r++)
        rows[r] = rows[n - above - 1];
}

/* The nearest distance has the largest bias, or nearly so: what matters is small once it is subtracted. */
void pe_bands_center(const pe_tiles *T)
{
    const int64_t t = pe_attention_nearest(T->a);
    for (int64_t h = 0; h < T->a->sizes.H; h++) {
        T->center[h] = 0;
        if (pe_has(T->a->terms, PE_BIAS) && !pe_fast_is_sloped(T->a) && T->a->distances.count > 0)
            fill(T->a, PE_BIAS, h, t, 1, T->center + h);
        if (!isfinite(T->center[h]))
            T->center[h] = 0;
    }
}

static double center_of(const pe_tiles *T, pe_kind kind, int64_t h)
{
    return kind == PE_BIAS ? T->center[h] : 0;
}

float pe_bands_at(const pe_tiles *T, pe_kind kind, int64_t h, int64_t t)
{
    double row;
    fill(T->a, kind, h, t, 1, &row);
    return (float)(row - center_of(T, kind, h));
}

void pe_bands_fill(const pe_tiles *T, pe_kind kind, int64_t h, int64_t j0, int64_t C, double *exact,
                   float *to)
{
    const pe_distances *d    = &T->a->distances;
    const int64_t       Lq   = T->a->sizes.Lq;
    const int64_t       zero = Lq - 1 - j0; /* i - j of row x is zero - x */
    const int64_t begin = pe_larger(0, zero - T->e_high), end = pe_smaller(Lq + C - 1, zero - T->e_low + 1),
                  n     = end > begin ? end - begin : 0,
                  t0    = d->t00 + d->step * (zero - begin); /* of the first row; then -step each */
    const double center = center_of(T, kind, h);
    memset(to, 0, (size_t)pe_bands_padded(Lq, C) * sizeof *to);
    if (d->step == 1 || d->step == -1)
        fill(T->a, kind, h, d->step == 1 ? t0 - (n - 1) : t0, n, exact);
    for (int64_t r = 0; d->step != 1 && d->step != -1 && r < n; r++)
        fill(T->a, kind, h, t0 - d->step * r, 1, exact + r);
    for (int64_t r = 0; r < n; r++)
        to[begin + r] = (float)(exact[d->step == 1 ? n - 1 - r : r] - center);
}

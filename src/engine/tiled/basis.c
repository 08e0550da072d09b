/* SPDX-License-Identifier: MIT */
/*
 * basis.c: a table of vectors by distance that is a product
 *
 * Where all heads share a basis (the sinusoids of Transformer-XL) and a parameter projects it, asking the
 * room for each head would make the basis H times and multiply in double what a float holds. Here rows are
 * products of the kernel, up to PE_CHUNK of them around a centre c, half of which come for nothing: with the
 * parameter rotated by c,
 *
 *     row(c + s) = P(s) + Q(s)      P(s) = sum_k cos(s w_k) (sin(c w_k) Ws_k + cos(c w_k) Wc_k)
 *     row(c - s) = P(s) - Q(s)      Q(s) = sum_k sin(s w_k) (cos(c w_k) Ws_k - sin(c w_k) Wc_k)
 *
 * where Ws and Wc are what the parameter has for sines and for cosines. The same few s serve every centre, so
 * that no other cosine or sine is made than those of the centres, all of them exactly. Chunks begin at the
 * same distances in every run and do not depend on each other or on the threads: a distance has the same
 * numbers wherever it is asked for. Rows that are wanted as columns too are transposed.
 *
 * Source   Dai et al. 2019, arXiv:1901.02860, appendix B: the projection of all distances at once
 */
#include <string.h>

#include "base/parallel.h"
#include "engine/tiled/tiles.h"

enum { MOST_RANKS = 4096 };   /* a wider basis would need more memory than the table itself */
enum { HALF = PE_CHUNK / 2 }; /* distances s = 1/2, 3/2, ... from a centre */
enum { MATRIX = 4 };          /* numbers of a rotation: two rows of two */
enum { ANGLES = 64 };         /* made at once */

static int reaches(const pe_tiles *T, int64_t row)
{
    return pe_ladder_reaches((double)pe_band_distance(&T->band, row));
}

int pe_basis_serves(const pe_tiles *T)
{
    const pe_by_distance *m     = &T->a->terms->A;
    const int64_t         slope = T->band.slope;
    return m->waves && m->ranks <= MOST_RANKS && T->a->sizes.D % PE_LANES == 0 &&
           (slope == 1 || slope == -1) && reaches(T, pe_table_begin(T, PE_A)) &&
           reaches(T, pe_table_end(T, PE_A));
}

/* What a thread works with, for one head: the parameter rotated [ranks, D], rows [PE_CHUNK, D], the same
   transposed with rows that fall into different sets of the cache, rotations [ranks/2, MATRIX]. */
typedef struct basis_scratch {
    float *W, *rows, *across, *rotations;
} basis_scratch;

enum { ACROSS = PE_CHUNK + PE_LANES };

static int64_t scratch_size(const pe_tiles *T)
{
    const int64_t D = T->a->sizes.D, ranks = T->a->terms->A.ranks;
    return ranks * D + PE_CHUNK * D + D * ACROSS + pe_padded(ranks / 2 * MATRIX);
}

static basis_scratch scratch_of(const pe_tiles *T, int thread)
{
    const int64_t D = T->a->sizes.D, ranks = T->a->terms->A.ranks;
    basis_scratch y;
    y.W         = T->basis_scratch + thread * scratch_size(T);
    y.rows      = y.W + ranks * D;
    y.across    = y.rows + PE_CHUNK * D;
    y.rotations = y.across + D * ACROSS;
    return y;
}

/* Taken whatever the slope: while a plan counts, it is not known. */
void pe_basis_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_by_distance *m = &T->a->terms->A;
    if (!m->waves || m->ranks > MOST_RANKS)
        return;
    T->basis         = pe_arena_floats(arena, HALF * m->ranks);
    T->basis_scratch = pe_arena_floats(arena, T->a->team.threads * scratch_size(T));
    T->W             = pe_arena_floats(arena, m->ranks * T->a->sizes.H * T->a->sizes.D);
    T->frequencies   = pe_arena_take(arena, (size_t)(m->ranks / 2) * sizeof *T->frequencies);
}

/* Cosines and sines of all waves at a distance, `step` floats from one to the next. */
static void waves_at(const pe_tiles *T, double t, float *cosine, float *sine, int64_t step)
{
    const int64_t M = T->a->terms->A.ranks / 2;
    double        at[ANGLES], cosines[ANGLES], sines[ANGLES];
    for (int i = 0; i < ANGLES; i++)
        at[i] = t;
    for (int64_t m = 0; m < M; m += ANGLES) {
        const int64_t n = pe_smaller(ANGLES, M - m);
        T->a->kernels->cosines(at, &T->frequencies[m].k_hi, 1, cosines, sines, n);
        for (int64_t i = 0; i < n; i++) {
            cosine[(m + i) * step] = (float)cosines[i];
            sine[(m + i) * step]   = (float)sines[i];
        }
    }
}

/* For each wave [sin cos; cos -sin] at a centre: what makes of its two rows of the parameter those of P and
   of Q. */
static void make_rotations(const pe_tiles *T, double centre, float *rotations)
{
    const int64_t M = T->a->terms->A.ranks / 2;
    waves_at(T, centre, rotations + 1, rotations, MATRIX);
    for (float *x = rotations; x < rotations + M * MATRIX; x += MATRIX) {
        x[2] = x[1];
        x[3] = -x[0];
    }
}

/* Distances PE_CHUNK * number .. PE_CHUNK * (number + 1) - 1 around a centre; of these the rows for t_low ..
   t_high are wanted, and what they are made of: s = from + 1/2 .. to - 1/2. */
typedef struct chunk {
    int64_t number, t_low, t_high, from, to;
} chunk;

static int64_t within(const pe_by_distance *m, int64_t t)
{
    return t < m->least ? m->least : t > m->most ? m->most : t;
}

static int64_t chunk_of(int64_t t)
{
    return (t < 0 ? t - (PE_CHUNK - 1) : t) / PE_CHUNK;
}

/* Which s a distance of the chunk has. */
static int64_t step_of(int64_t number, int64_t t)
{
    const int64_t i = t - number * PE_CHUNK - HALF;
    return i < 0 ? -1 - i : i;
}

/* Which of the chunk's rows it has, in the order of the table. */
static int64_t place_of(const pe_tiles *T, int64_t number, int64_t t)
{
    const int64_t i = t - number * PE_CHUNK;
    return T->band.slope > 0 ? i : PE_CHUNK - 1 - i;
}

/* Where the rows of a run begin and end in distances, and chunk `index` of them. Chunks are the same for all
   runs, so that a distance has the same numbers in all. Beyond a limit rows are made in the limit's chunk. */
static void find_distances(const pe_tiles *T, int64_t *low, int64_t *high)
{
    const int64_t x = pe_band_distance(&T->band, pe_table_begin(T, PE_A)),
                  y = pe_band_distance(&T->band, pe_table_end(T, PE_A) - 1);
    *low            = pe_smaller(x, y);
    *high           = pe_larger(x, y);
}

static chunk chunk_at(const pe_tiles *T, int64_t index)
{
    const pe_by_distance *m = &T->a->terms->A;
    int64_t               low, high;
    find_distances(T, &low, &high);
    const int64_t own = chunk_of(low) + index;
    chunk         x   = {.t_low  = pe_larger(low, own * PE_CHUNK),
                         .t_high = pe_smaller(high, own * PE_CHUNK + PE_CHUNK - 1)};
    x.number          = chunk_of(within(m, x.t_low));
    const int64_t a   = within(m, x.t_low) - x.number * PE_CHUNK - HALF,
                  b   = within(m, x.t_high) - x.number * PE_CHUNK - HALF;
    const int64_t i = step_of(x.number, within(m, x.t_low)), j = step_of(x.number, within(m, x.t_high));
    x.from = a < 0 && b >= 0 ? 0 : pe_smaller(i, j);
    x.to   = pe_larger(i, j) + 1;
    return x;
}

/* Those of the rows around the centre that rotations were made for. */
static void make_rows(const pe_tiles *T, const basis_scratch *z, const chunk *x, int64_t h)
{
    const pe_kernels *k = T->a->kernels;
    const int64_t     D = T->a->sizes.D, ranks = T->a->terms->A.ranks, M = ranks / 2, n = x->to - x->from;
    const float      *W  = T->W + h * ranks * D;
    const int64_t     up = T->band.slope * D; /* from a row to that of the next distance */
    float *const before = z->rows + (HALF - 1) * D, *const after = before + D;
    float *const above = (up > 0 ? after : before) + x->from * up, *const below = (up > 0 ? before : after) -
                                                                                  x->from * up;
    for (int64_t m = 0; m < M; m++)
        k->product(z->W + m * D, M * D, z->rotations + m * MATRIX, 2, 1, W + m * D, M * D, 2, D, 2, 0);
    k->product(above, up, T->basis + x->from * M, M, 1, z->W, D, n, D, M, 0);
    k->product(below, -up, T->basis + (HALF + x->from) * M, M, 1, z->W + M * D, D, n, D, M, 0);
    k->butterfly(above, up, below, -up, n, D);
}

/* Rows t_low .. t_high side by side, each in the place of its own chunk; beyond a limit that of the limit.
   Returns the first in the order of the table. */
static const float *order_rows(const pe_tiles *T, const chunk *x, float *rows)
{
    const int64_t D = T->a->sizes.D, own = chunk_of(x->t_low);
    for (int64_t t = x->t_low; t <= x->t_high; t++) {
        const int64_t to = place_of(T, own, t), from = place_of(T, x->number, within(&T->a->terms->A, t));
        if (from != to)
            memcpy(rows + to * D, rows + from * D, (size_t)D * sizeof *rows);
    }
    return rows + place_of(T, own, T->band.slope > 0 ? x->t_low : x->t_high) * D;
}

static void store_rows(const pe_tiles *T, const chunk *x, const basis_scratch *z, const float *rows,
                       int64_t h)
{
    const pe_distance_table *t = &T->by[PE_A];
    const int64_t D = T->a->sizes.D, n = x->t_high - x->t_low + 1, stride = pe_padded(n) + PE_LANES,
                  first = T->band.slope > 0 ? x->t_low - T->band.t0 : T->band.t0 - x->t_high,
                  at    = first - t->first;
    if (t->rows)
        memcpy(t->rows + (h * t->count + at) * D, rows, (size_t)(n * D) * sizeof(float));
    if (!t->columns)
        return;
    T->a->kernels->transpose(z->across, stride, rows, D, n, D);
    for (int64_t d = 0; d < D; d++)
        memcpy(t->columns + (h * D + d) * t->stride + at, z->across + d * stride, (size_t)n * sizeof(float));
}

static void fill_chunk(void *context, int64_t index, int thread)
{
    const pe_tiles     *T = context;
    const chunk         x = chunk_at(T, index);
    const basis_scratch z = scratch_of(T, thread);
    make_rotations(T, (double)(x.number * PE_CHUNK + HALF) - 0.5, z.rotations);
    for (int64_t h = 0; h < T->a->sizes.H; h++) {
        make_rows(T, &z, &x, h);
        store_rows(T, &x, &z, order_rows(T, &x, z.rows), h);
    }
}

/* The parameter head by head, in float. */
static void load_parameter(const pe_tiles *T)
{
    const pe_by_distance *m = &T->a->terms->A;
    const double         *W = T->a->parts[m->owner].par[m->param];
    const int64_t         H = T->a->parts[m->owner].p->H, D = T->a->sizes.D, first = T->a->from.h;
    for (int64_t h = 0; h < T->a->sizes.H; h++)
        for (int64_t r = 0; r < m->ranks; r++)
            for (int64_t d = 0; d < D; d++)
                T->W[(h * m->ranks + r) * D + d] = (float)W[(r * H + first + h) * D + d];
}

void pe_basis_fill(pe_tiles *T)
{
    const pe_by_distance *m = &T->a->terms->A;
    const int64_t         M = m->ranks / 2;
    int64_t               low, high, from = HALF, to = 0;
    if (pe_table_begin(T, PE_A) >= pe_table_end(T, PE_A))
        return;
    find_distances(T, &low, &high);
    const int64_t chunks = chunk_of(high) - chunk_of(low) + 1;
    for (int64_t i = 0; i < chunks; i++) {
        const chunk x = chunk_at(T, i);
        from          = pe_smaller(from, x.from);
        to            = pe_larger(to, x.to);
    }
    load_parameter(T);
    m->waves(T->a->parts[m->owner].p, 0, M, T->frequencies);
    for (int64_t i = from; i < to; i++)
        waves_at(T, (double)i + 0.5, T->basis + i * M, T->basis + (HALF + i) * M, 1);
    pe_parallel_for(chunks, &T->a->team, fill_chunk, T);
}

/* SPDX-License-Identifier: MIT */
/*
 * basis.c: a table of vectors by distance that is a product
 *
 * Where all heads share a basis (the sinusoids of Transformer-XL) and a parameter projects it, asking the room for each
 * head would make the basis H times and multiply in double what a float keeps. Here the basis of PE_CHUNK distances is
 * made once by a ladder (ladder.h), in float, and multiplied by the kernel for all heads: into rows as it lies, into columns
 * transposed once. Both sum in the same order, so a number is the same in either. Chunks do not depend on each other or on
 * the threads.
 *
 * Source   Dai et al. 2019, arXiv:1901.02860, appendix B: the projection of all distances at once
 */
#include <string.h>

#include "base/parallel.h"
#include "engine/tiles.h"

enum { MOST_RANKS = 4096 };                  /* a wider basis would need more memory than the table itself */
enum { BASIS_STRIDE = PE_CHUNK + PE_LANES }; /* transposed rows fall into different sets of the cache */

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

static pe_columns columns_of(const pe_by_distance *m)
{
    const int64_t M = m->ranks / 2;
    return (pe_columns){.M = M, .width = m->ranks, .cosine = M, .sine = 0, .step = 1};
}

/* Taken whatever the slope: while a plan counts, it is not known. */
void pe_basis_lay_out(pe_tiles *T, pe_arena *arena)
{
    const pe_by_distance *m = &T->a->terms->A;
    if (!m->waves || m->ranks > MOST_RANKS)
        return;
    T->basis_size  = pe_padded(m->ranks) * (PE_CHUNK + BASIS_STRIDE);
    T->basis       = pe_take_floats(arena, T->a->threads * T->basis_size);
    T->W           = pe_take_floats(arena, m->ranks * T->a->sizes.H * T->a->sizes.D);
    T->frequencies = pe_take(arena, (size_t)(m->ranks / 2) * sizeof *T->frequencies);
    T->ladder      = pe_ladder_lay_out(m->ranks, arena);
    T->rungs       = pe_take(arena, (size_t)T->a->threads * sizeof *T->rungs);
    for (int i = 0; i < T->a->threads; i++) {
        const pe_rung rung = pe_rung_lay_out(m->ranks, arena);
        if (T->rungs)
            T->rungs[i] = rung;
    }
}

/* n rows from distance t0 on, `stride` apart: those beyond a limit are those of the limit. */
static void make_rising(const pe_tiles *T, pe_rung *rung, int64_t t0, int64_t n, float *to, int64_t stride)
{
    const pe_by_distance *m = &T->a->terms->A;
    for (int64_t i = 0, count; i < n; i += count) {
        const int64_t t = t0 + i, last = t0 + n - 1;
        const int64_t at  = t < m->least ? m->least : t > m->most ? m->most : t;
        float *const  row = to + i * stride;
        count             = at != t ? 1 : (last < m->most ? last : m->most) - t + 1;
        if (i > 0 && at != t && (t - 1 >= m->most || t - 1 < m->least))
            memcpy(row, row - stride, (size_t)m->ranks * sizeof *row);
        else
            pe_ladder_rows(&T->ladder, rung, row, stride, count, (double)at, 0);
    }
}

/* The basis of rows x0 .. x0+n-1, in their order. */
static void make_basis(const pe_tiles *T, pe_rung *rung, int64_t x0, int64_t n, float *to)
{
    const int64_t ranks = T->a->terms->A.ranks, end = x0 + n - 1;
    if (T->band.slope > 0)
        make_rising(T, rung, pe_band_distance(&T->band, x0), n, to, ranks);
    else
        make_rising(T, rung, pe_band_distance(&T->band, end), n, to + (n - 1) * ranks, -ranks);
}

static void fill_chunk(void *context, int64_t index, int thread)
{
    const pe_tiles *T = context;
    const pe_table *t = &T->by[PE_A];
    const int64_t   D = T->a->sizes.D, row = T->a->sizes.H * D, ranks = T->a->terms->A.ranks,
                  x = pe_table_begin(T, PE_A) + index * PE_CHUNK, at = x - t->first,
                  n = pe_smaller(PE_CHUNK, pe_table_end(T, PE_A) - x);
    float *basis = T->basis + thread * T->basis_size, *turned = basis + pe_padded(ranks) * PE_CHUNK;
    make_basis(T, &T->rungs[thread], x, n, basis);
    if (t->columns)
        T->a->kernels->transpose(turned, BASIS_STRIDE, basis, ranks, n, ranks);
    for (int64_t h = 0; h < T->a->sizes.H; h++) {
        const float *W = T->W + h * D;
        if (t->rows)
            T->a->kernels->product(t->rows + (h * t->count + at) * t->row, t->row, basis, ranks, 1, W, row, n,
                                   D, ranks, 0);
        if (t->columns)
            T->a->kernels->product(t->columns + h * D * t->stride + at, t->stride, W, 1, row, turned,
                                   BASIS_STRIDE, D, n, ranks, 0);
    }
}

/* The ladder is made for each run: the workspace it lies in is nobody's between runs. */
void pe_basis_fill(pe_tiles *T)
{
    const pe_by_distance *m       = &T->a->terms->A;
    const pe_columns      columns = columns_of(m);
    const double         *W       = T->a->parts[m->owner].par[m->param];
    const int64_t         count   = m->ranks * T->a->sizes.H * T->a->sizes.D,
                  rows            = pe_table_end(T, PE_A) - pe_table_begin(T, PE_A);
    for (int64_t i = 0; i < count; i++)
        T->W[i] = (float)W[i];
    if (rows <= 0)
        return;
    m->waves(T->a->parts[m->owner].p, T->frequencies);
    pe_ladder_make(&T->ladder, &columns, T->frequencies, 1, 1, T->a->kernels);
    pe_parallel_for((rows + PE_CHUNK - 1) / PE_CHUNK, T->a->threads, fill_chunk, T);
}

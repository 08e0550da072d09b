/* SPDX-License-Identifier: MIT */
/* What the backward summed goes to parameters, after the whole batch. */
#include <math.h>
#include <string.h>

#include "engine/back.h"

/* The sum over chunks of number d of row x of a member of one head. */
static double sum_of_chunks(const pe_backward *w, pe_kind kind, int64_t h, int64_t x, int64_t d)
{
    const pe_table *t   = &w->T.by[kind];
    double          sum = 0;
    for (int64_t c = 0; c < w->chunks; c++) {
        const int64_t at = (h * w->chunks + c) * t->count + x - t->first;
        sum += pe_is_scalar(kind) ? w->dby1[kind][at] : (double)w->dby[kind][at * t->row + d];
    }
    return sum;
}

/*
 * A softmax does not see a number added to a whole row of scores, so the cotangents of a row sum to zero, and
 * so do those of all distances together. In float a residue of some 1e-7 is left. A parameter that weighs all
 * distances nearly alike (a slow sinusoid behind Wr) has a gradient smaller than that residue and would be
 * nothing but noise; so the residue is taken out, from each distance in proportion to its size, which moves
 * no sum by more than its own rounding. Not where a table's own sum is not zero: pairs that stand apart have
 * no bias, and shared rows meet keys as well.
 */
static void find_residue(const pe_backward *w, pe_kind kind, int64_t h)
{
    const int64_t width = w->T.by[kind].width, end = pe_table_end(&w->T, kind);
    memset(w->total, 0, (size_t)width * sizeof(double));
    memset(w->mass, 0, (size_t)width * sizeof(double));
    for (int64_t r = pe_table_begin(&w->T, kind); r < end; r++)
        for (int64_t d = 0; d < width; d++) {
            const double x = sum_of_chunks(w, kind, h, r, d);
            w->total[d] += x;
            w->mass[d] += fabs(x);
        }
}

static double without_residue(const pe_backward *w, double x, int64_t d)
{
    return w->mass[d] > 0 ? x - w->total[d] * (fabs(x) / w->mass[d]) : x;
}

/* The same for a member that folds; one whose rows heads share folds the sums of all of them, with the
   last. */
static double sum_to_fold(const pe_backward *w, const pe_by_distance *m, pe_kind kind, int64_t h, int64_t x,
                          int64_t d)
{
    double sum = 0;
    for (int64_t i = m->row ? 0 : h; i <= h; i++)
        sum += sum_of_chunks(w, kind, i, x, d);
    return sum;
}

/* The band's sums go back to the room, PE_CHUNK distances at a time and rising; the mirror of fill_chunk. */
static void fold_band(const pe_backward *w, pe_kind kind, int64_t h)
{
    const pe_tiles      *T    = &w->T;
    const pe_by_distance m    = pe_member(T->a->terms, kind);
    const pe_part       *part = &T->a->parts[m.owner];
    const int            down = T->band.slope < 0,
              is_score        = (kind == PE_BIAS && !T->a->terms->hook.apart) || (kind == PE_A && !m.row);
    const int64_t most = T->band.slope == 1 || T->band.slope == -1 ? PE_CHUNK : 1, width = T->by[kind].width,
                  end = pe_table_end(T, kind);
    double *chunk     = T->scratch[0].chunk;
    if (is_score)
        find_residue(w, kind, h);
    for (int64_t r0 = pe_table_begin(T, kind); r0 < end; r0 += most) {
        const int64_t n = pe_smaller(most, end - r0);
        for (int64_t r = 0; r < n; r++)
            for (int64_t d = 0; d < width; d++) {
                const double x                            = sum_to_fold(w, &m, kind, h, r0 + r, d);
                chunk[(down ? n - 1 - r : r) * width + d] = is_score ? without_residue(w, x, d) : x;
            }
        pe_member_fold(part, &m, width, h, pe_band_distance(&T->band, down ? r0 + n - 1 : r0), n, chunk);
    }
}

static void fold_vector(const pe_backward *w, int64_t h, const double *sums, double *to)
{
    const int64_t D = w->T.a->sizes.D;
    for (int64_t c = 0; c < w->chunks; c++)
        for (int64_t d = 0; d < D; d++)
            to[d] += w->T.a->terms->scale * sums[(h * w->chunks + c) * D + d];
}

static void fold_segments(const pe_backward *w, int64_t h)
{
    const int64_t D = w->T.a->sizes.D;
    for (int g = 0; g < 2; g++)
        for (int64_t c = 0; c < w->chunks; c++)
            for (int64_t d = 0; d < D; d++)
                pe_segment_gradient(w->T.a, h, g)[d] += w->dG[(2 * (h * w->chunks + c) + g) * D + d];
}

static void fold_hook(const pe_backward *w)
{
    const pe_part *part = &w->T.a->parts[PE_SCORE];
    for (int64_t task = 0; task < w->T.a->sizes.G * w->chunks; task++)
        for (int i = 0; i < part->count; i++)
            for (int64_t x = 0; w->hook_pointers[task * PE_HOOK_PARAMS + i] && x < part->sizes[i]; x++)
                part->dpar[i][x] += w->hook_pointers[task * PE_HOOK_PARAMS + i][x];
}

/* One head after the other: heads may share parameters, and the order is part of the result. */
void pe_fold_parameters(const pe_backward *w)
{
    const pe_attention *a = w->T.a;
    const pe_terms     *m = a->terms;
    for (int64_t h = 0; h < a->sizes.H; h++) {
        for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
            if (w->wants[kind] && (!pe_member(m, kind).row || h == a->sizes.H - 1) &&
                !(kind == PE_B && pe_tables_shared(m)))
                fold_band(w, kind, h);
        if (w->wants_u)
            fold_vector(w, h, w->du, pe_head_vector_gradient(a, m->u, h));
        if (w->wants_w)
            fold_vector(w, h, w->dw, pe_head_vector_gradient(a, m->w, h));
        if (w->wants_us)
            fold_vector(w, h, w->dus, pe_head_vector_gradient(a, m->us, h));
        if (w->wants_G)
            fold_segments(w, h);
    }
    if (w->wants_hook)
        fold_hook(w);
}

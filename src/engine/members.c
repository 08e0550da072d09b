/* SPDX-License-Identifier: MIT */
/*
 * members.c: rows by distance, from the room or straight from the caller's parameter
 *
 * Some members are functions of the room. One whose rows are those of a parameter is read here. Where the
 * parameter stays in the caller's tensor (pe_by_distance.row) cotangents go where the caller keeps the
 * gradient: a table as long as the positions is not held three times, nor is a matrix with a number for each
 * pair.
 */
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/attend.h"

/* Row of the parameter for distance t. */
static char *left_row(const pe_part *part, const posenc_tensor *tensor, const pe_by_distance *m,
                      int64_t width, int64_t t)
{
    return (char *)tensor->data + m->row(part->p, t) * width * (int64_t)posenc_dtype_size(tensor->dtype);
}

enum { TOGETHER = 512 }; /* distances whose rows are looked up at once */

static double factor_of(const pe_part *part, const pe_by_distance *m)
{
    return m->divided ? 1 / part->p->scale : 1;
}

/* Rows of m->param; `factor` is for members of one number. */
static void read_rows(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                      int64_t n, double to[])
{
    const double *from = part->par[m->param], factor = factor_of(part, m);
    const size_t  size = (size_t)width * sizeof *to;
    int64_t       row[TOGETHER];
    m->index(part->p, h, t0, n, row);
    for (int64_t i = 0; i < n && width == 1 && !m->load; i++)
        to[i] = from[row[i]] * factor;
    for (int64_t i = 0; i < n && (width > 1 || m->load); i++)
        if (row[i] < 0)
            memset(to + i * width, 0, size);
        else if (m->load && i > 0 && row[i] == row[i - 1])
            memcpy(to + i * width, to + (i - 1) * width, size);
        else if (m->load)
            m->load(part->p, part->par, m->param, h, row[i], to + i * width);
        else
            memcpy(to + i * width, from + row[i] * width, size);
}

/* The adjoint: distances that share a row add. */
static void add_rows(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                     int64_t n, const double drows[])
{
    double *const to = part->dpar[m->param], factor = factor_of(part, m);
    int64_t       row[TOGETHER];
    m->index(part->p, h, t0, n, row);
    for (int64_t i = 0; m->store && i < n; i++)
        m->store(part->p, part->par, m->param, h, row[i], drows + i * width, part->dpar);
    for (int64_t i = 0; to && !m->store && i < n; i++)
        for (int64_t d = 0; row[i] >= 0 && d < width; d++)
            to[row[i] * width + d] += drows[i * width + d] * factor;
}

void pe_member_fill(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                    int64_t n, double rows[])
{
    const double slope = m->slope ? m->slope(part->p, part->par, h) : 0;
    if (m->fill)
        m->fill(part->p, part->par, h, t0, n, rows);
    for (int64_t i = 0; m->slope && i < n; i++)
        rows[i] = slope * fabs((double)(t0 + i));
    for (int64_t i = 0; m->index && i < n; i += TOGETHER)
        read_rows(part, m, width, h, t0 + i, n - i < TOGETHER ? n - i : TOGETHER, rows + i * width);
    const posenc_tensor *tensor = m->row ? part->left[m->param] : NULL;
    for (int64_t i = 0; tensor && i < n; i++)
        pe_load_double(rows + i * width, left_row(part, tensor, m, width, t0 + i), tensor->dtype, 1, width);
}

static void add_row(void *to, posenc_dtype dtype, const double *row, int64_t width)
{
    for (int64_t d = 0; d < width; d++) {
        if (dtype == POSENC_DTYPE_F64)
            ((double *)to)[d] += row[d];
        else
            ((float *)to)[d] += (float)row[d];
    }
}

void pe_member_fold(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                    int64_t n, const double drows[])
{
    if (m->fold)
        m->fold(part->p, part->par, h, t0, n, drows, part->dpar);
    for (int64_t i = 0; m->index && i < n; i += TOGETHER)
        add_rows(part, m, width, h, t0 + i, n - i < TOGETHER ? n - i : TOGETHER, drows + i * width);
    const posenc_tensor *tensor = m->row ? part->dleft[m->param] : NULL;
    for (int64_t i = 0; tensor && i < n; i++)
        add_row(left_row(part, tensor, m, width, t0 + i), tensor->dtype, drows + i * width, width);
}

int pe_part_wanted(const pe_part *part)
{
    for (int i = 0; part->dpar && i < part->count; i++)
        if (part->dpar[i])
            return 1;
    return 0;
}

int pe_member_wanted(const pe_part *part, const pe_by_distance *m)
{
    return m->row ? part->dleft && part->dleft[m->param] : (m->fold || m->index) && pe_part_wanted(part);
}

/* ---- numbers of pairs ---- */

static char *pair_at(const pe_attention *a, const posenc_tensor *tensor, int64_t h, int64_t i, int64_t j)
{
    const pe_problem *p  = a->parts[PE_SCORE].p;
    const int64_t     at = (a->terms->pairs.matrix(p, h) * p->Lq + i) * p->Lk + j;
    return (char *)tensor->data + at * (int64_t)posenc_dtype_size(tensor->dtype);
}

void pe_pairs_load(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n, double to[])
{
    const posenc_tensor *tensor = a->parts[PE_SCORE].left[a->terms->pairs.param];
    pe_load_double(to, pair_at(a, tensor, h, i, j0), tensor->dtype, 1, n);
}

void pe_pairs_add(const pe_attention *a, int64_t h, int64_t i, int64_t j0, int64_t n,
                  const double cotangents[])
{
    const posenc_tensor *tensor = a->parts[PE_SCORE].dleft[a->terms->pairs.param];
    add_row(pair_at(a, tensor, h, i, j0), tensor->dtype, cotangents, n);
}

const float *pe_pairs_at(const pe_attention *a, int64_t h, int64_t i, int64_t j0)
{
    const posenc_tensor *tensor = a->parts[PE_SCORE].left[a->terms->pairs.param];
    return tensor->dtype == POSENC_DTYPE_F32 ? (const float *)(const void *)pair_at(a, tensor, h, i, j0)
                                             : NULL;
}

/* ---- which pairs a run lets be seen, and segments ---- */

static int mask_byte(const posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const int64_t index[4] = {i0, i1, i2, i3};
    int64_t       offset   = 0;
    for (int d = 0; d < t->ndim; d++)
        offset += (t->shape[d] == 1 ? 0 : index[d]) * t->stride[d];
    return ((const uint8_t *)t->data)[offset] != 0;
}

int64_t pe_segment(const posenc_tensor *segments, int64_t b, int64_t s)
{
    return segments->data ? pe_integer_at(segments, (segments->shape[0] == 1 ? 0 : b) * segments->stride[0] +
                                                        s * segments->stride[1])
                          : 0;
}

int pe_is_allowed(const pe_attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (a->mask & (POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW)) {
        const double t = pe_position(&a->q_pos, b, i) - pe_position(&a->k_pos, b, j);
        if (t < (double)a->reach.low || t > (double)a->reach.high)
            return 0;
    }
    if ((a->mask & POSENC_MASK_SEGMENTS) &&
        pe_segment(&a->q_segments, b, i) != pe_segment(&a->k_segments, b, j))
        return 0;
    if ((a->mask & POSENC_MASK_KEY_PADDING) && !mask_byte(&a->key_allowed, b, j, 0, 0))
        return 0;
    return !(a->mask & POSENC_MASK_EXPLICIT) || mask_byte(&a->allowed, b, h, i, j);
}

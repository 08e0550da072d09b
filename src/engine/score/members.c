/* SPDX-License-Identifier: MIT */
/*
 * members.c: rows by distance, from the room or straight from the caller's parameter
 *
 * Some members are functions of the room. One whose rows are those of a parameter is read here. Where the
 * parameter stays in the caller's tensor (pe_by_distance.row) cotangents go where the caller has the
 * gradient: a table as long as the positions is not held three times.
 */
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/score/attention.h"

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
    const double factor = factor_of(part, m);
    const size_t size   = (size_t)width * sizeof *to;
    int64_t      row[TOGETHER];
    m->index(part->p, h, t0, n, row);
    for (int64_t i = 0; i < n && width == 1 && !m->load; i++)
        pe_read(part->p, part->par, m->param, row[i], 1, to + i);
    for (int64_t i = 0; i < n && width == 1 && !m->load && factor != 1; i++)
        to[i] *= factor;
    for (int64_t i = 0; i < n && (width > 1 || m->load); i++)
        if (row[i] < 0)
            memset(to + i * width, 0, size);
        else if (m->load && i > 0 && row[i] == row[i - 1])
            memcpy(to + i * width, to + (i - 1) * width, size);
        else if (m->load)
            m->load(part->p, part->par, m->param, h, row[i], to + i * width);
        else
            pe_read(part->p, part->par, m->param, row[i] * width, width, to + i * width);
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

void pe_members_fill(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                     int64_t n, double rows[])
{
    const double slope = m->slope ? m->slope(part->p, part->par, h) : 0;
    if (m->fill)
        m->fill(part->p, part->par, h, t0, n, rows);
    for (int64_t i = 0; m->slope && i < n; i++)
        rows[i] = slope * fabs((double)(t0 + i));
    for (int64_t i = 0; m->index && i < n; i += TOGETHER)
        read_rows(part, m, width, h, t0 + i, n - i < TOGETHER ? n - i : TOGETHER, rows + i * width);
    const posenc_tensor *tensor = m->row ? part->tensor[m->param] : NULL;
    for (int64_t i = 0; tensor && i < n; i++)
        pe_tensor_load_double(rows + i * width, left_row(part, tensor, m, width, t0 + i), tensor->dtype, 1,
                              width);
}

void pe_members_fold(const pe_part *part, const pe_by_distance *m, int64_t width, int64_t h, int64_t t0,
                     int64_t n, const double drows[])
{
    if (m->fold)
        m->fold(part->p, part->par, h, t0, n, drows, part->dpar);
    for (int64_t i = 0; m->index && i < n; i += TOGETHER)
        add_rows(part, m, width, h, t0 + i, n - i < TOGETHER ? n - i : TOGETHER, drows + i * width);
    const posenc_tensor *tensor = m->row ? part->dtensor[m->param] : NULL;
    for (int64_t i = 0; tensor && i < n; i++)
        pe_add_row(left_row(part, tensor, m, width, t0 + i), tensor->dtype, drows + i * width, width);
}

int pe_members_part_wanted(const pe_part *part)
{
    for (int i = 0; part->dpar && i < part->count; i++)
        if (part->dpar[i])
            return 1;
    return 0;
}

int pe_members_wanted(const pe_part *part, const pe_by_distance *m)
{
    return m->row ? part->dtensor && part->dtensor[m->param]
                  : (m->fold || m->index) && pe_members_part_wanted(part);
}

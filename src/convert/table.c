/* SPDX-License-Identifier: MIT */
/*
 * table.c: contract in table.h
 *
 * The old rows become the parameter of an encoding, in float64; its rows are asked for some at a time and
 * rounded once to the type of the file. A row that the rule does not change has the same bits as before.
 */
#include "convert/table.h"

#include <posenc/positions.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

enum { BLOCK = 1 << 17, SPEC = 240 }; /* numbers at a time */

typedef struct table_maker {
    const pe_extend *x;
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace work;
    int64_t          n, out, most; /* rows of the old body and of the new, at a time */
    double          *body, *made;  /* [n,dim], [most,dim] */
    void            *stored;       /* [most,dim] of the file's type */
    int              repeats;
} table_maker;

static int is_repeat(const pe_extend *x)
{
    return !strcmp(x->wish.how, "repeat");
}

/* The encoding's text: learned_resize[kind=bicubic,grid_in=14x14,grid_out=24x24,dim=768] */
static void write_spec(char text[SPEC], const pe_extend *x)
{
    const long long n = (long long)(x->old_rows - x->prefix), out = (long long)(x->rows - x->prefix),
                    dim = (long long)x->dim;
    if (is_repeat(x))
        snprintf(text, SPEC, "learned[rows=%lld,dim=%lld,offset=0]", n, dim);
    else if (!strcmp(x->wish.how, "hierarchical"))
        snprintf(text, SPEC, "hierarchical[rows=%lld,dim=%lld]", n, dim);
    else if (x->old_grid[0])
        snprintf(text, SPEC, "learned_resize[kind=%.40s,grid_in=%lldx%lld,grid_out=%lldx%lld,dim=%lld]",
                 x->wish.how, (long long)x->old_grid[0], (long long)x->old_grid[1],
                 (long long)x->wish.grid[0], (long long)x->wish.grid[1], dim);
    else
        snprintf(text, SPEC, "learned_resize[kind=%.40s,grid_in=%lld,grid_out=%lld,dim=%lld]", x->wish.how, n,
                 out, dim);
}

/* ---------------------------------------------------------------- numbers ------------------- */

static void widen(double *to, const void *from, posenc_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = dtype == POSENC_DTYPE_F64   ? ((const double *)from)[i]
                : dtype == POSENC_DTYPE_F32 ? (double)((const float *)from)[i]
                : dtype == POSENC_DTYPE_F16 ? (double)pe_half_f16_to_float(((const uint16_t *)from)[i])
                                            : (double)pe_half_bf16_to_float(((const uint16_t *)from)[i]);
}

static void narrow(void *to, const double *from, posenc_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        switch (dtype) {
        case POSENC_DTYPE_F64: ((double *)to)[i] = from[i]; break;
        case POSENC_DTYPE_F32: ((float *)to)[i] = (float)from[i]; break;
        case POSENC_DTYPE_F16:
            ((uint16_t *)to)[i] = pe_half_float_to_f16((float)pe_half_round_to_f16(from[i]));
            break;
        default: ((uint16_t *)to)[i] = pe_half_float_to_bf16((float)pe_half_round_to_bf16(from[i]));
        }
}

/* ---------------------------------------------------------------- rows ---------------------- */

static posenc_status make_plan(table_maker *m, posenc_error *err)
{
    char              spec[SPEC];
    const pe_extend  *x       = m->x;
    const posenc_dims dims    = {.B = 1, .Lq = m->most, .Lk = m->most, .d_model = x->dim, .L = m->n};
    posenc_options    options = posenc_options_default();
    options.threads           = 1; /* the file is what takes long; a thread's stack is memory too */
    write_spec(spec, x);
    posenc_status status = posenc_encoding_create(&m->e, spec, NULL, err);
    if (!status)
        status = posenc_plan_create(&m->plan, m->e, &dims, &options, err);
    if (!status)
        status = posenc_workspace_create(&m->work, m->plan, POSENC_RUN_ROWS, NULL, err);
    return status;
}

static posenc_status begin(table_maker *m, const pe_extend *x, posenc_error *err)
{
    const int64_t most = BLOCK / x->dim ? BLOCK / x->dim : 1;
    *m                 = (table_maker){.x = x, .n = x->old_rows - x->prefix, .out = x->rows - x->prefix};
    m->most            = most < m->out ? most : m->out;
    m->repeats         = is_repeat(x);
    return make_plan(m, err);
}

static void end(table_maker *m)
{
    posenc_workspace_free(&m->work);
    posenc_plan_free(m->plan);
    posenc_encoding_free(m->e);
    free(m->body);
    free(m->made);
    free(m->stored);
}

static posenc_status read_body(table_maker *m, posenc_error *err)
{
    const pe_extend *x   = m->x;
    const int64_t    row = x->dim * (int64_t)posenc_dtype_size(x->dtype);
    int64_t          at  = x->c.tensors[x->table].begin + x->prefix * row;
    m->body              = malloc((size_t)(m->n * x->dim) * sizeof *m->body);
    m->made              = malloc((size_t)(m->most * x->dim) * sizeof *m->made);
    m->stored            = malloc((size_t)(m->most * row));
    if (!m->body || !m->made || !m->stored)
        return pe_file_fail(err, POSENC_ERROR_MEMORY, (pe_origin){x->path, x->c.tensors[x->table].name},
                            "not enough memory for its %lld rows", (long long)x->old_rows);
    posenc_status status = POSENC_OK;
    for (int64_t i = 0, count; !status && i < m->n; i += count, at += count * row) {
        count = m->n - i < m->most ? m->n - i : m->most;
        if (!(status = pe_checkpoint_read(&x->c, m->stored, count * row, at, err)))
            widen(m->body + i * x->dim, m->stored, x->dtype, count * x->dim);
    }
    return status;
}

/* Rows first .. first+count-1 of the new body. */
static posenc_status make_rows(const table_maker *m, int64_t first, int64_t count, posenc_error *err)
{
    const int64_t       dim  = m->x->dim;
    const posenc_tensor body = posenc_tensor_contiguous(m->body, POSENC_DTYPE_F64, 2, (int64_t[]){m->n, dim});
    posenc_tensor y = posenc_tensor_contiguous(m->made, POSENC_DTYPE_F64, 3, (int64_t[]){1, count, dim});
    const posenc_rows_in in = {.size = sizeof in,
                               .pos  = posenc_positions_range((double)(m->repeats ? first % m->n : first), 1),
                               .params = &body};
    return posenc_rows(m->plan, &in, &y, &m->work, err);
}

posenc_status pe_table_rows_put(const pe_extend *x, pe_writer *w, posenc_error *err)
{
    table_maker   m;
    posenc_status status = begin(&m, x, err);
    if (!status)
        status = read_body(&m, err);
    for (int64_t i = 0, count; !status && i < m.out; i += count) {
        count = m.out - i < m.most ? m.out - i : m.most;
        if (m.repeats && count > m.n - i % m.n)
            count = m.n - i % m.n;
        if ((status = make_rows(&m, i, count, err)))
            break;
        narrow(m.stored, m.made, x->dtype, count * x->dim);
        status = pe_writer_put(w, m.stored, count * x->dim * (int64_t)posenc_dtype_size(x->dtype), err);
    }
    end(&m);
    return status;
}

posenc_status pe_table_rows_check(const pe_extend *x, posenc_error *err)
{
    table_maker         m;
    const posenc_status status = begin(&m, x, err);
    end(&m);
    return status;
}

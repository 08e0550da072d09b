/* SPDX-License-Identifier: MIT */
/* Gains of pairs of channels, by least squares over heads: contract in dump.h. */
#include "diagnose/dump.h"

#include "base/half.h"
#include "base/shared/compiler.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 1 << 23, LOOK_ROWS = 48, LOOK_HEADS = 8 };

static posenc_status no_memory(posenc_error *err)
{
    *err = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
    return err->status;
}

/* ---------------------------------------------------------------- elements ------------------ */

double pe_dump_element(const posenc_tensor *t, int64_t at)
{
    switch (t->dtype) {
    case POSENC_DTYPE_F64: return ((const double *)t->data)[at];
    case POSENC_DTYPE_F32: return (double)((const float *)t->data)[at];
    case POSENC_DTYPE_F16: return (double)pe_half_f16_to_float(((const uint16_t *)t->data)[at]);
    case POSENC_DTYPE_BF16: return (double)pe_half_bf16_to_float(((const uint16_t *)t->data)[at]);
    default: return NAN;
    }
}

static void read_row(double *to, const posenc_tensor *t, int64_t b, int64_t h, int64_t l)
{
    const int64_t at = b * t->stride[0] + h * t->stride[1] + l * t->stride[2];
    for (int64_t c = 0; c < t->shape[3]; c++)
        to[c] = pe_dump_element(t, at + c * t->stride[3]);
}

/* The mean square of rounding x to so many bits: a number's last bit, uniformly. */
double pe_dump_rounding(double x, double bits)
{
    int exponent;
    if (x == 0)
        return 0;
    frexp(x, &exponent);
    const double step = ldexp(1, exponent - (int)bits);
    return step * step / 12;
}

/* ---------------------------------------------------------------- rows ---------------------- */

int64_t pe_row_side(const pe_rows *rows, int64_t row, int64_t *b, int64_t *l)
{
    const pe_rotation *in    = rows->in;
    const int64_t      first = in->sides[0].before.shape[0] * in->sides[0].before.shape[2];
    const int64_t      side  = row >= first;
    const int64_t      L     = in->sides[side].before.shape[2];
    row -= side ? first : 0;
    *b = row / L;
    *l = row % L;
    return side;
}

const double *pe_row_position(const pe_rows *rows, int64_t row)
{
    int64_t       b, l;
    const int64_t side = pe_row_side(rows, row, &b, &l), L = rows->in->sides[side].before.shape[2];
    return rows->in->sides[side].positions + (b * L + l) * rows->in->coordinates;
}

/* How many bits the numbers really have: arrays of float32 may hold bfloat16, for which NumPy has no type. */
double pe_dump_bits(const posenc_tensor *const *list, int count)
{
    int bf16 = 1, f16 = 1, f32 = 1;
    for (int s = 0; s < count; s++) {
        const posenc_tensor *t    = list[s];
        const int64_t        n    = t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
        const int64_t        step = 1 + n / 20000;
        for (int64_t i = 0; i < n; i += step) {
            const double x = pe_dump_element(t, i);
            if (!(x > -9e3)) /* masked scores */
                continue;
            bf16 &= pe_half_round_to_bf16(x) == x;
            f16 &= pe_half_round_to_f16(x) == x;
            f32 &= (double)(float)x == x;
        }
    }
    return bf16 ? 8 : f16 ? 11 : f32 ? 24 : 40; /* exact angles of float64 are rounded too */
}

static void measure_noise(pe_rows *r, double *line)
{
    for (int64_t row = 0; row < r->count; row++) {
        int64_t       b, l;
        const int64_t side = pe_row_side(r, row, &b, &l);
        for (int64_t h = 0; h < r->heads[side]; h++) {
            read_row(line, &r->in->sides[side].after, b, h, l);
            for (int64_t c = 0; c < r->D; c++)
                r->noise[row * r->D + c] += pe_dump_rounding(line[c], r->bits);
        }
        for (int64_t c = 0; c < r->D; c++)
            r->total += r->noise[row * r->D + c];
    }
}

posenc_status pe_rows_create(pe_rows **rows, const pe_rotation *in, posenc_error *err)
{
    pe_rows *r = *rows = calloc(1, sizeof **rows);
    if (!r)
        return no_memory(err);
    r->in = in;
    r->D  = in->sides[0].before.shape[3];
    for (int s = 0; s < in->count; s++) {
        const int64_t *shape = in->sides[s].before.shape;
        const int64_t  most  = MOST_NUMBERS / (shape[0] * shape[2] * shape[3]) + 2;
        r->count += shape[0] * shape[2];
        r->heads[s] = shape[1] < most ? shape[1] : most;
    }
    const posenc_tensor *after[] = {&in->sides[0].after, &in->sides[1].after};
    r->bits                      = pe_dump_bits(after, in->count);
    r->noise                     = calloc((size_t)(r->count * r->D), sizeof *r->noise);
    r->scale                     = malloc((size_t)r->count * sizeof *r->scale);
    double *line                 = malloc((size_t)r->D * sizeof *line);
    if (r->noise && r->scale && line) {
        for (int64_t i = 0; i < r->count; i++)
            r->scale[i] = 1;
        measure_noise(r, line);
    }
    const int is_made = r->noise && r->scale && line;
    free(line);
    return is_made ? POSENC_OK : no_memory(err);
}

void pe_rows_free(pe_rows *r)
{
    if (!r)
        return;
    free(r->noise);
    free(r->scale);
    free(r);
}

/* ---------------------------------------------------------------- pairs --------------------- */

int64_t pe_pairing_channel(const pe_pairing *p, int is_out, int64_t m, int second)
{
    const int64_t part = p->dim / 2 / p->blocks; /* pairs of a part */
    if (!(is_out ? p->out : p->in))
        return p->offset + 2 * m + second;
    return p->offset + m / part * 2 * part + m % part + second * part;
}

/* The gains of a row, and what they leave over; x and y are [heads,D]. */
typedef struct gain_fit {
    const pe_pairing *p;
    int64_t           heads, D;
    const double     *x, *y;
} gain_fit;

static double complex pair_of(const gain_fit *f, const double *v, int is_out, int64_t m, int64_t h)
{
    const double *row = v + h * f->D;
    return PE_COMPLEX(row[pe_pairing_channel(f->p, is_out, m, 0)],
                      row[pe_pairing_channel(f->p, is_out, m, 1)]);
}

static double complex gain(const gain_fit *f, int64_t m, double *power, double *rest)
{
    double complex xy = 0;
    *power            = 0;
    *rest             = 0;
    for (int64_t h = 0; h < f->heads; h++) {
        const double complex a = pair_of(f, f->x, 0, m, h), b = pair_of(f, f->y, 1, m, h);
        *power += creal(a) * creal(a) + cimag(a) * cimag(a);
        xy += conj(a) * b;
    }
    const double complex z = *power > 0 ? xy / *power : 1;
    for (int64_t h = 0; h < f->heads; h++) {
        const double complex d = pair_of(f, f->y, 1, m, h) - z * pair_of(f, f->x, 0, m, h);
        *rest += creal(d) * creal(d) + cimag(d) * cimag(d);
    }
    return z;
}

/* Squares of the channels that should pass. */
static double passing(const gain_fit *f)
{
    double sum = 0;
    for (int64_t h = 0; h < f->heads; h++)
        for (int64_t c = 0; c < f->D; c++) {
            if (c == f->p->offset)
                c += f->p->dim;
            if (c >= f->D)
                break;
            const double d = f->y[h * f->D + c] - f->x[h * f->D + c];
            sum += d * d;
        }
    return sum;
}

static int64_t read_rows(const pe_rows *r, int64_t row, int64_t most, double *x, double *y)
{
    int64_t       b, l;
    const int64_t side = pe_row_side(r, row, &b, &l), n = r->heads[side] < most ? r->heads[side] : most;
    for (int64_t h = 0; h < n; h++) {
        read_row(x + h * r->D, &r->in->sides[side].before, b, h, l);
        read_row(y + h * r->D, &r->in->sides[side].after, b, h, l);
        for (int64_t c = 0; c < r->D; c++)
            x[h * r->D + c] *= r->scale[row];
    }
    return n;
}

static void find_sizes(pe_gains *g, const pe_rows *rows)
{
    double sum[2] = {0}, weight[2] = {0};
    for (int64_t row = 0; row < rows->count; row++) {
        int64_t       b, l;
        const int64_t side = pe_row_side(rows, row, &b, &l);
        for (int64_t m = 0; m < g->M; m++) {
            sum[side] += g->power[row * g->M + m] * cabs(g->z[row * g->M + m]);
            weight[side] += g->power[row * g->M + m];
        }
    }
    for (int s = 0; s < 2; s++)
        g->size[s] = weight[s] > 0 ? sum[s] / weight[s] : 1;
}

static void fill(pe_gains *g, const pe_rows *rows, double *x, double *y)
{
    double free_rest = 0, passed = 0;
    for (int64_t row = 0; row < rows->count; row++) {
        const gain_fit f  = {&g->pairing, read_rows(rows, row, INT64_MAX, x, y), rows->D, x, y};
        const double  *at = rows->noise + row * rows->D;
        for (int64_t m = 0; m < g->M; m++) {
            double        rest;
            const int64_t i = row * g->M + m;
            g->z[i]         = gain(&f, m, &g->power[i], &rest);
            g->angle[i]     = carg(g->z[i]);
            g->noise[i] =
                at[pe_pairing_channel(&g->pairing, 1, m, 0)] + at[pe_pairing_channel(&g->pairing, 1, m, 1)];
            g->rest += rest;
            free_rest += f.heads > 1 ? rest * (double)f.heads / (double)(f.heads - 1) : g->noise[i];
        }
        passed += passing(&f);
    }
    g->rest += passed;
    g->floor = free_rest + passed;
    find_sizes(g, rows);
}

posenc_status pe_gains_create(pe_gains **gains, const pe_rows *rows, const pe_pairing *p, posenc_error *err)
{
    const int64_t heads = rows->heads[0] > rows->heads[1] ? rows->heads[0] : rows->heads[1];
    const size_t  n     = (size_t)(rows->count * (p->dim / 2));
    pe_gains     *g = *gains = calloc(1, sizeof **gains);
    double       *x          = malloc((size_t)(heads * rows->D) * sizeof *x * 2);
    if (g) {
        *g = (pe_gains){.pairing = *p,
                        .M       = p->dim / 2,
                        .z       = malloc(n * sizeof *g->z),
                        .angle   = malloc(n * sizeof *g->angle),
                        .power   = malloc(n * sizeof *g->power),
                        .noise   = malloc(n * sizeof *g->noise)};
        if (x && g->z && g->angle && g->power && g->noise)
            fill(g, rows, x, x + heads * rows->D);
    }
    const int is_made = g && x && g->z && g->angle && g->power && g->noise;
    free(x);
    return is_made ? POSENC_OK : no_memory(err);
}

void pe_gains_free(pe_gains *g)
{
    if (!g)
        return;
    free(g->z);
    free(g->angle);
    free(g->power);
    free(g->noise);
    free(g);
}

double pe_pairing_misfit(const pe_rows *rows, const pe_pairing *p)
{
    const int64_t step = 1 + rows->count / LOOK_ROWS, M = p->dim / 2;
    double       *x = malloc((size_t)(LOOK_HEADS * rows->D) * 2 * sizeof *x), sum = 0, noise = 0;
    double        size = 0, weight = 0, bend = 0;
    if (!x)
        return INFINITY;
    for (int64_t row = step / 2; row < rows->count; row += step) {
        double        *y = x + LOOK_HEADS * rows->D;
        const gain_fit f = {p, read_rows(rows, row, LOOK_HEADS, x, y), rows->D, x, y};
        int64_t        b, l;
        const double   all = (double)rows->heads[pe_row_side(rows, row, &b, &l)];
        for (int64_t m = 0; m < M; m++) {
            double               power, rest;
            const double complex z = gain(&f, m, &power, &rest);
            sum += f.heads > 1 ? rest * (double)f.heads / (double)(f.heads - 1) : 0;
            size += power * cabs(z);
            weight += power;
            bend += f.heads > 1 ? 0 : power * cabs(z) * cabs(z);
        }
        sum += passing(&f);
        for (int64_t c = 0; c < rows->D; c++)
            noise += rows->noise[row * rows->D + c] * (double)f.heads / all;
    }
    free(x);
    /* of one head a gain can explain anything, but not with one magnitude */
    if (bend > 0 && weight > 0)
        sum += 2 * fmax(0, bend - size * size / weight);
    return noise > 0 ? sum / noise : sum > 0 ? INFINITY : 0;
}

void pe_channels_changed(double *changed, const pe_rows *rows)
{
    const int64_t step = 1 + rows->count / (4 * LOOK_ROWS), D = rows->D;
    double *x = malloc((size_t)(LOOK_HEADS * D) * 2 * sizeof *x), *noise = calloc((size_t)D, sizeof *noise);
    for (int64_t c = 0; c < D; c++)
        changed[c] = x && noise ? 0 : INFINITY;
    for (int64_t row = (rows->count - 1) % step; x && noise && row < rows->count; row += step) {
        double       *y     = x + LOOK_HEADS * D;
        const int64_t heads = read_rows(rows, row, LOOK_HEADS, x, y);
        for (int64_t i = 0; i < heads * D; i++) {
            changed[i % D] += (y[i] - x[i]) * (y[i] - x[i]);
            noise[i % D] += pe_dump_rounding(y[i], rows->bits);
        }
    }
    for (int64_t c = 0; x && noise && c < D; c++)
        changed[c] = noise[c] > 0 ? changed[c] / noise[c] : changed[c] > 0 ? INFINITY : 0;
    free(x);
    free(noise);
}

void pe_fixes_add(pe_fixes *to, const char *format, ...)
{
    va_list list;
    if (to->count == PE_MOST_ADVICE)
        return;
    va_start(list, format);
    vsnprintf(to->words[to->count++], PE_WORDS, format, list);
    va_end(list);
}

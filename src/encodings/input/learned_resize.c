/* SPDX-License-Identifier: MIT */
/*
 * Learned, resized: a table trained on one grid of positions, read on another
 *
 * Place    input: y = x + (M table)[row]
 * Formula  M copies the first prefix_rows rows; on the grid it is a product of one matrix per axis,
 *          M_h (x) M_w.
 *          Cell o of n_out reads around src of n_in, r = n_in / n_out, with
 *            kind                  src                      weights
 *            linear                max((o+1/2) r - 1/2, 0)  1-|x|
 *            .._align_corners      o (n_in-1) / (n_out-1)   1-|x|
 *            bicubic               (o+1/2) r - 1/2          Keys, A = -0.75, 4 taps
 *            bicubic_scale_factor  (o+1/2) r' - 1/2         the same, r' = n_in / (n_out + 0.1)
 *            bicubic_antialias     (o+1/2) r - 1/2          Keys, A = -0.5, stretched by max(r, 1), sum 1
 * Learns   table [prefix_rows + cells of grid_in, dim]
 * Source   Dosovitskiy et al. 2021 (ViT), arXiv:2010.11929, section 3.2; whose code: linear is torch's
 *          interpolate, bilinear_align_corners google-research/vision_transformer (scipy's zoom), bicubic
 *          DeiT, MAE and BEiT, bicubic_antialias timm, bicubic_scale_factor DINO and Hugging Face's ViT
 *
 * Five calls for "resize the position embedding", five results: A, the clamp at the border and the 0.1 all
 * show. M is linear, so what flows back is its transpose, and a model may train at a size other than the one
 * its table has. Taps beyond the border read the border's cell, so their weights add up there; antialiasing
 * leaves them out and divides by the sum of the rest. All kinds but bicubic_scale_factor are the identity
 * where the grids are equal; the authors of that one skip the call then: use `learned`. A row is computed on
 * demand: no matrix is stored.
 */
#include "encodings/encoding.h"

enum { KIND, GRID_IN, GRID_OUT, PREFIX_ROWS, DIM, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"kind", "word", "linear",
     "linear|linear_align_corners|bilinear_align_corners|bicubic|bicubic_antialias|bicubic_scale_factor",
     "how a cell of the new grid reads the old one"},
    {"grid_in", "list", "L", "1..", "cells of the table along each axis: 196, 14x14"},
    {"grid_out", "list", "Lk", "1..", "cells of the grid that is read, as many axes"},
    {"prefix_rows", "integer", "0", "0..", "rows before the grid that are copied (class tokens)"},
    {"dim", "integer", "d_model", "1..", "width of a row"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "prefix_rows+grid_in,dim", "normal(0, sigma)", "one vector per cell of grid_in, row by row", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

static const posenc_example examples[] = {
    {"grid_in=2 grid_out=4 dim=1", 1, 0, 0, 0.25, "cell 1 of 4 lies at 0.25 of a table 0, 1"},
    {"grid_in=2 grid_out=4 dim=1", 0, 0, 0, 0, "the border's cell is not extrapolated to -0.25"},
    {"kind=linear_align_corners grid_in=2 grid_out=4 dim=1", 1, 0, 0, 1.0 / 3, "corners stay corners"},
    {"kind=bicubic grid_in=2 grid_out=4 dim=1", 1, 0, 0, 29.0 / 128, "k(0.75) + k(1.75) with A = -0.75"},
    {"kind=bilinear_align_corners grid_in=2x2 grid_out=3x3 prefix_rows=1 dim=1", 5, 0, 0, 2.5,
     "the middle of 1 2 / 3 4 after a class token of 0"},
    {0},
};

/* What a kind means: `more` cells in the step, Keys' cubic instead of a tent, corners on corners, widened
   when it shrinks. */
static const struct {
    double A, more;
    int    cubic, corners, antialias;
} kinds[] = {
    {.corners = 0},                          /* linear */
    {.corners = 1},                          /* linear_align_corners */
    {.corners = 1},                          /* bilinear_align_corners */
    {.cubic = 1, .A = -0.75},                /* bicubic */
    {.cubic = 1, .A = -0.5, .antialias = 1}, /* bicubic_antialias */
    {.cubic = 1, .A = -0.75, .more = 0.1},   /* bicubic_scale_factor */
};
static_assert(sizeof kinds / sizeof *kinds == 6, "ORDER the range of `kind`");

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const pe_value *in = &p->set[GRID_IN], *out = &p->set[GRID_OUT];
    if (in->count != out->count)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "learned_resize: grid_in has %d axes and grid_out %d; the two must be equal",
                       in->count, out->count);
    if (out->real > 0x1p48 || in->real > 0x1p48)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "learned_resize: a grid has %.3g cells; at most 2^48 are possible",
                       fmax(out->real, in->real));
    return POSENC_OK;
}

static int64_t rows_out(const pe_problem *p)
{
    return p->set[PREFIX_ROWS].integer + (int64_t)p->set[GRID_OUT].real;
}

static posenc_status accept(const pe_problem *p, double low, double high, int whole, posenc_error *err)
{
    if (!whole)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "learned_resize: positions must be whole numbers, the rows of the new grid");
    if (low < 0)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "learned_resize: position %.0f is negative; the rows of a table begin with 0", low);
    if (high >= (double)rows_out(p))
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "learned_resize: position %.0f is outside the table; its rows run from 0 to %lld",
                       high, (long long)rows_out(p) - 1);
    return POSENC_OK;
}

/* ---- one axis: the cells first .. first+count-1 that cell o reads, and with what weight ---- */

typedef struct axis {
    int64_t n_in, first, count;
    int     kind;
    double  src, stretch, sum; /* of distances; of weights */
} axis;

/* Keys 1981: a cubic between knots, 1 at 0 and 0 at every other whole number. */
static double keys(double x, double A)
{
    x = fabs(x);
    if (x <= 1)
        return ((A + 2) * x - (A + 3)) * x * x + 1;
    return x < 2 ? A * (((x - 5) * x + 8) * x - 4) : 0;
}

static double tap_weight(const axis *a, int64_t i)
{
    const double x = ((double)(a->first + i) - a->src) / a->stretch;
    return (kinds[a->kind].cubic ? keys(x, kinds[a->kind].A) : fmax(1 - fabs(x), 0)) / a->sum;
}

/* The cells within 2 * stretch of the centre src + 1/2 of cell o, as timm's PyTorch counts them. */
static void take_support(axis *a)
{
    const double  centre = a->src + 0.5, support = 2 * a->stretch;
    const int64_t end = (int64_t)(centre + support + 0.5);
    a->first          = (int64_t)fmax(centre - support + 0.5, 0);
    a->count          = (end < a->n_in ? end : a->n_in) - a->first;
    double sum        = 0;
    for (int64_t i = 0; i < a->count; i++)
        sum += tap_weight(a, i);
    a->sum = sum;
}

static axis axis_of(int kind, int64_t n_in, int64_t n_out, int64_t o)
{
    const double step = (double)n_in / ((double)n_out + kinds[kind].more);
    axis         a    = {.n_in = n_in, .kind = kind, .stretch = 1, .sum = 1};
    if (kinds[kind].corners)
        a.src = n_out > 1 ? (double)o * (double)(n_in - 1) / (double)(n_out - 1) : 0;
    else
        a.src = ((double)o + 0.5) * step - 0.5;
    if (!kinds[kind].cubic)
        a.src = fmax(a.src, 0);
    a.first = (int64_t)floor(a.src) - kinds[kind].cubic;
    a.count = kinds[kind].cubic ? 4 : 2;
    if (kinds[kind].antialias) {
        a.stretch = fmax(step, 1);
        take_support(&a);
    }
    return a;
}

/* ---- all axes: the product of their taps ---- */

/* A row of the new grid on its way through the table; forward `from` is the table, backward the cotangent. */
typedef struct walk {
    const pe_problem *p;
    const double     *from;
    double           *to;
    int               backward;
} walk;

static void use_row(const walk *s, int64_t row, double weight)
{
    const int64_t dim  = s->p->set[DIM].integer;
    const double *from = s->from + (s->backward ? 0 : row * dim);
    double       *to   = s->to + (s->backward ? row * dim : 0);
    for (int64_t d = 0; d < dim; d++)
        to[d] += weight * from[d];
}

static void walk_taps(const walk *s, const axis *a, int axes, int64_t cell, double weight)
{
    if (!axes) {
        use_row(s, s->p->set[PREFIX_ROWS].integer + cell, weight);
        return;
    }
    for (int64_t i = 0; i < a->count; i++) {
        const int64_t at = a->first + i, inside = at < 0 ? 0 : at < a->n_in ? at : a->n_in - 1;
        walk_taps(s, a + 1, axes - 1, cell * a->n_in + inside, weight * tap_weight(a, i));
    }
}

static void walk_row(const walk *s, int64_t row)
{
    const pe_value *in = &s->p->set[GRID_IN], *out = &s->p->set[GRID_OUT];
    int64_t         cell = row - s->p->set[PREFIX_ROWS].integer;
    axis            axes[PE_MAX_ITEMS];
    if (cell < 0) {
        use_row(s, row, 1);
        return;
    }
    for (int a = in->count - 1; a >= 0; a--) { /* the last axis runs fastest */
        axes[a] = axis_of((int)s->p->set[KIND].integer, in->items[a], out->items[a], cell % out->items[a]);
        cell /= out->items[a];
    }
    walk_taps(s, axes, in->count, 0, 1);
}

static void rows(const pe_problem *p, const double *const par[], const double pos[], int64_t n, double out[])
{
    const int64_t dim = p->set[DIM].integer;
    memset(out, 0, (size_t)(n * dim) * sizeof *out);
    for (int64_t s = 0; s < n; s++)
        walk_row(&(walk){.p = p, .from = par[TABLE], .to = out + s * dim}, (int64_t)pos[s]);
}

/* The transpose: the same taps, the other way. */
static void rows_back(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                      const double dout[], double *const dpar[])
{
    const int64_t dim = p->set[DIM].integer;
    for (int64_t s = 0; dpar[TABLE] && s < n; s++)
        walk_row(&(walk){.p = p, .from = dout + s * dim, .to = dpar[TABLE], .backward = 1}, (int64_t)pos[s]);
}

/* A product and a sum for each cell that a cell of the new grid reads, and for each tap along an axis its
   weight: two for a tent, some eight for a cubic. Near a border antialiasing reads a few less. */
static double count_operations(const pe_problem *p)
{
    const int       kind = (int)p->set[KIND].integer;
    const pe_value *in = &p->set[GRID_IN], *out = &p->set[GRID_OUT];
    const double    rows  = fmin(fmax((double)(p->Lq - p->set[PREFIX_ROWS].integer), 0), out->real);
    double          cells = 1, taps = 0;
    for (int a = 0; a < in->count; a++) {
        const double n_in = (double)in->items[a], wide = 4 * fmax(n_in / (double)out->items[a], 1),
                     n = kinds[kind].antialias ? fmin(wide, n_in)
                         : kinds[kind].cubic   ? 4
                                               : 2;
        cells *= n;
        taps += n;
    }
    return rows * (2 * cells * (double)p->set[DIM].integer + taps * (kinds[kind].cubic ? 8 : 2));
}

const pe_encoding pe_learned_resize = {
    .info.name       = "learned_resize",
    .info.place      = POSENC_PLACE_INPUT,
    .info.title      = "learned table read on another grid",
    .info.formula    = "p = M T , M = M_h ⊗ M_w",
    .info.symbols    = "p: the rows of all positions\n"
                       "M: the resampling matrix\n"
                       "M_h: its part for the rows of the grid\n"
                       "M_w: its part for the columns\n"
                       "h: rows\n"
                       "w: columns\n"
                       "T: the learned table, a row per cell of the grid that was trained",
    .info.paper      = "arXiv:2010.11929",
    .info.models     = "ViT, DeiT, MAE, BEiT, DINO, timm",
    .info.beyond     = "The table ends with its grid: another one gets interpolated rows, which want tuning.",
    .info.pictures   = "heatmap,curves,similarity,similarity2d",
    .info.row_limit  = "grid_out",
    .model           = "grid_in=L grid_out=8*L sigma=0.5",
    .count           = count_operations,
    .check           = check,
    .input.width     = "dim",
    .input.tokens    = "prefix_rows+grid_out",
    .input.accept    = accept,
    .input.rows      = rows,
    .input.rows_back = rows_back,
    PE_TABLES(settings, params, examples),
};

/* SPDX-License-Identifier: MIT */
/*
 * similarity.c: how alike the vectors of positions are
 *
 *   similarity    on a line: the cosine of every pair of vectors, and beside it its profile: mean, smallest
 *                 and largest cosine at each distance. Where the cosine depends on the distance only, the
 *                 three are one
 *                 on a grid: a grid of grids, in cell (y, x) the similarity of all positions to (y, x), as
 *                 the ViT paper draws it (Dosovitskiy et al. 2021, arXiv:2010.11929, fig. 7)
 *   similarity2d  a map per chosen point of a grid, all on one scale
 *
 * Surprises  A vector that is zero (a padding row) has no cosine: it is NaN, a hole in the picture, and the
 *            profile is taken over the others. Encodings with one coordinate read a grid row by row.
 */
#include "plot/sketch.h"

#include "measure/measure.h"

#include <math.h>

enum { MOST_POSITIONS = 1024, POINTS = 3, MOST_CELLS = 4200 };

/* Norms of 1 make a cosine a dot product. */
typedef struct cosines {
    pe_row_set    set;
    const double *norms;
    const char   *name; /* "cosine" */
} cosines;

static double cosine(const cosines *c, int64_t i, int64_t j)
{
    const int64_t width = c->set.width;
    const double  size  = c->norms[i] * c->norms[j];
    return size > 0 ? pe_sketch_dot(c->set.rows + i * width, c->set.rows + j * width, width) / size : NAN;
}

static cosines read_cosines(pe_sketch *s)
{
    cosines c     = {.set = pe_sketch_rows(s)};
    double *norms = pe_sketch_numbers(s, c.set.n);
    for (int64_t i = 0; norms && i < c.set.n; i++) {
        const double *row = c.set.rows + i * c.set.width;
        norms[i]          = s->data->products ? 1 : sqrt(pe_sketch_dot(row, row, c.set.width));
    }
    c.norms = norms;
    c.name  = s->data->products ? "dot product" : "cosine";
    return c;
}

static void set_cosine_map(pe_figure *f, const cosines *c, const double *values, int64_t rows, int64_t cols)
{
    pe_sketch_grid(f, values, rows, cols);
    pe_sketch_labels(f, "column", "row", c->name);
    f->square_cells = 1;
}

/* ---------------------------------------------------------------- on a line ----------------- */

/* Of values [n, n]: mean and extremes along each diagonal below the main one. */
static void measure_profile(const double *values, int64_t n, double *mean, double *low, double *high)
{
    for (int64_t t = 0; t < n; t++) {
        int64_t count = 0;
        mean[t]       = 0;
        low[t]        = INFINITY;
        high[t]       = -INFINITY;
        for (int64_t i = t; i < n; i++) {
            const double v = values[i * n + i - t];
            if (isnan(v))
                continue;
            mean[t] += v;
            low[t]  = fmin(low[t], v);
            high[t] = fmax(high[t], v);
            count++;
        }
        mean[t] /= (double)count;
    }
}

static void set_profile(pe_sketch *s, pe_figure *f, const cosines *c, const double *values)
{
    const int64_t n     = c->set.n;
    double       *y     = pe_sketch_numbers(s, 3 * n);
    pe_curve     *curve = pe_sketch_curves(s, f, pe_sketch_range(s, 0, 1, n), y, n, 1);
    if (!curve)
        return;
    measure_profile(values, n, y, y + n, y + 2 * n);
    curve->low  = y + n;
    curve->high = y + 2 * n;
    curve->name = "mean, smallest to largest";
    pe_sketch_labels(f, "distance (tokens)", pe_sketch_text(s, "%s of the two vectors", c->name), NULL);
    f->title = "profile: mean, smallest and largest";
}

static void set_matrix(pe_sketch *s, pe_figure *f, const cosines *c)
{
    const int64_t n      = c->set.n;
    double       *values = pe_sketch_numbers(s, n * n);
    if (!values)
        return;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            values[i * n + j] = values[j * n + i] = cosine(c, i, j);
    pe_sketch_grid(f, values, n, n);
    pe_sketch_labels(f, "position (tokens)", "position (tokens)",
                     pe_sketch_text(s, "%s of the two vectors", c->name));
    f->title        = "every pair of positions";
    f->square_cells = 1;
    pe_sketch_table(s, f);
}

static void draw_line(pe_sketch *s, const cosines *c)
{
    pe_figure *panels = pe_sketch_panels(s, s->figure, 2, 2);
    if (!panels)
        return;
    set_matrix(s, &panels[0], c);
    set_profile(s, &panels[1], c, panels[0].values);
    for (int k = 0; k < 2; k++) {
        panels[k].marks      = s->marks;
        panels[k].mark_count = s->mark_count;
    }
}

/* ---------------------------------------------------------------- on a grid ----------------- */

/* Cells of rows x cols with an empty line between them: cell (y, x) starts at (y (rows+1), x (cols+1)). */
static void fill_mosaic(const cosines *c, int64_t rows, int64_t cols, double *values)
{
    const int64_t width = cols * (cols + 1) - 1, height = rows * (rows + 1) - 1;
    for (int64_t k = 0; k < width * height; k++) {
        const int64_t Y = k / width, X = k % width;
        const int64_t y = Y % (rows + 1), x = X % (cols + 1);
        values[k] =
            y == rows || x == cols ? NAN : cosine(c, Y / (rows + 1) * cols + X / (cols + 1), y * cols + x);
    }
}

/* The numbers of measure/grid.c below the title: does similarity fall, is the table made of rows and columns?
 */
static void say_structure(pe_sketch *s, const cosines *c)
{
    const int64_t  rows = s->data->rows, cols = s->data->cols, n = rows * cols;
    pe_grid_shares shares;
    double        *similarity = pe_sketch_numbers(s, n * n);
    for (int64_t k = 0; similarity && k < n * n; k++)
        similarity[k] = k % n < k / n ? cosine(c, k / n, k % n) : 0;
    if (!s->status)
        s->status = pe_grid_structure(&shares, c->set.rows, rows, cols, c->set.width, s->err);
    if (!s->status)
        s->what = pe_sketch_text(s, "%s\nrho of distance and %s %.2f; rows %.2f, columns %.2f of the table",
                                 s->what, c->name, pe_grid_trend(similarity, rows, cols), shares.rows,
                                 shares.columns);
}

/* The axes count cells: 0 in the middle of the first. */
static void draw_grid_of_grids(pe_sketch *s, const cosines *c)
{
    const int64_t rows = s->data->rows, cols = s->data->cols;
    const int64_t height = rows * (rows + 1) - 1, width = cols * (cols + 1) - 1;
    pe_figure    *f = s->figure;
    if (height > MOST_CELLS || width > MOST_CELLS)
        pe_sketch_refuse(
            s, POSENC_ERROR_ARGUMENT,
            "picture: a grid of grids of %lldx%lld has %lld cells on a side; at most %d are drawn: use a "
            "squarer or smaller grid, or similarity2d",
            (long long)rows, (long long)cols, (long long)(height > width ? height : width), MOST_CELLS);
    double *values = pe_sketch_numbers(s, height * width);
    if (!values)
        return;
    fill_mosaic(c, rows, cols, values);
    set_cosine_map(f, c, values, height, width);
    f->whole_cells = 1;
    f->x_label     = "column of the position that a small map belongs to";
    f->y_label     = "row of that position";
    f->dx          = 1.0 / (double)(cols + 1);
    f->dy          = 1.0 / (double)(rows + 1);
    f->x0          = -(double)(cols - 1) / 2 * f->dx;
    f->y0          = -(double)(rows - 1) / 2 * f->dy;
    say_structure(s, c);
}

void pe_similarity_matrix(pe_sketch *s)
{
    const int64_t n = s->data->rows ? s->data->rows * s->data->cols : s->data->length;
    if (n > MOST_POSITIONS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: a similarity of %lld positions is too large; at most %d are drawn",
                         (long long)n, MOST_POSITIONS);
    const cosines c = read_cosines(s);
    (s->data->rows ? draw_grid_of_grids : draw_line)(s, &c);
}

/* ---------------------------------------------------------------- from chosen points -------- */

/* The chosen points (y, x), or three along the diagonal. */
static int64_t chosen(const pe_sketch *s, int point, int axis)
{
    static const double parts[POINTS] = {0.2, 0.5, 0.8};
    const int64_t       size          = axis ? s->data->cols : s->data->rows;
    if (s->data->chosen_count)
        return s->data->chosen[2 * point + axis];
    return (int64_t)(parts[point] * (double)size);
}

static void set_similarity_to(pe_sketch *s, pe_figure *f, const cosines *c, int point)
{
    const int64_t rows = s->data->rows, cols = s->data->cols, y = chosen(s, point, 0),
                  x = chosen(s, point, 1);
    if (y < 0 || y >= rows || x < 0 || x >= cols)
        pe_sketch_refuse(
            s, POSENC_ERROR_ARGUMENT,
            "picture: point %lldx%lld is outside the grid; rows are 0 to %lld, columns 0 to %lld",
            (long long)y, (long long)x, (long long)rows - 1, (long long)cols - 1);
    pe_point *cross  = pe_sketch_take(s, 1, sizeof *cross);
    double   *values = pe_sketch_numbers(s, rows * cols);
    if (!values)
        return;
    for (int64_t i = 0; i < rows * cols; i++)
        values[i] = cosine(c, y * cols + x, i);
    set_cosine_map(f, c, values, rows, cols);
    pe_sketch_table(s, f);
    *cross         = (pe_point){(double)x, (double)y};
    f->points      = cross;
    f->point_count = 1;
    f->title       = pe_sketch_text(s, "to row %lld, column %lld", (long long)y, (long long)x);
}

/* One range of colours for all maps, up to `most` at least: a reader compares them. */
static void share_scale(pe_figure *panels, int count, double most)
{
    double low, high;
    pe_colours_extremes(panels, count, &low, &high);
    most = fmax(most, high);
    for (int k = 0; k < count; k++) {
        panels[k].signed_scale = low < 0;
        panels[k].low          = low < 0 ? -most : low;
        panels[k].high         = low < most ? most : low + 1;
    }
}

void pe_similarity_to_points(pe_sketch *s)
{
    const int count = s->data->chosen_count ? s->data->chosen_count / 2 : POINTS;
    if (!s->data->rows)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT, "picture: similarity2d needs a grid of rows and columns");
    const cosines c      = read_cosines(s);
    pe_figure    *panels = pe_sketch_panels(s, s->figure, count, 0);
    for (int k = 0; panels && k < count; k++)
        set_similarity_to(s, &panels[k], &c, k);
    if (!s->status)
        share_scale(panels, count, s->data->products ? 0 : 1);
}

/* SPDX-License-Identifier: MIT */
/* A figure as pixels: contract in canvas.h. Neighbouring source cells that fall onto one pixel are averaged,
   so that a fine pattern fades instead of beating with the pixels. */
#include "plot/canvas.h"

#include <math.h>
#include <stdlib.h>

int pe_canvas_create(pe_canvas *c, int width, int cells_high, int colour)
{
    *c = (pe_canvas){.width = width, .height = cells_high * (colour ? 2 : 1), .per_cell = colour ? 2 : 1};
    const size_t count = (size_t)c->width * (size_t)c->height;
    c->value           = malloc(count * sizeof *c->value);
    c->curve           = calloc(count, sizeof *c->curve);
    c->band            = calloc(count, sizeof *c->band);
    for (size_t i = 0; c->value && i < count; i++)
        c->value[i] = NAN;
    return c->value && c->curve && c->band;
}

void pe_canvas_free(pe_canvas *c)
{
    free(c->value);
    free(c->curve);
    free(c->band);
}

/* ---------------------------------------------------------------- drawing into pixels ------- */

static double mean_of_box(const pe_figure *f, int64_t r0, int64_t r1, int64_t c0, int64_t c1)
{
    double  sum = 0;
    int64_t n   = 0;
    for (int64_t r = r0; r < r1; r++)
        for (int64_t c = c0; c < c1; c++)
            if (isfinite(f->values[r * f->cols + c])) {
                sum += f->values[r * f->cols + c];
                n++;
            }
    return n ? sum / (double)n : NAN;
}

/* The source cells [*first, *end) that pixel i of `pixels` stands for; at least one. */
static void source_cells(int i, int pixels, int64_t cells, int64_t *first, int64_t *end)
{
    *first = (int64_t)i * cells / pixels;
    *end   = ((int64_t)i + 1) * cells / pixels;
    if (*end <= *first)
        *end = *first + 1;
}

void pe_canvas_grid(pe_canvas *c, const pe_figure *f, double low, double high)
{
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) {
            int64_t r0, r1, c0, c1;
            source_cells(y, c->height, f->rows, &r0, &r1);
            source_cells(x, c->width, f->cols, &c0, &c1);
            c->value[y * c->width + x] = (mean_of_box(f, r0, r1, c0, c1) - low) / (high - low);
        }
}

double pe_drawn(double v, int is_log)
{
    return is_log ? log2(v) : v;
}

pe_span pe_canvas_span(const pe_figure *f)
{
    pe_span s = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int k = 0; k < f->curve_count; k++)
        for (int64_t i = 0; i < f->curves[k].n; i++) {
            const double x = pe_drawn(f->curves[k].x[i], f->log_x), y = pe_drawn(f->curves[k].y[i], f->log_y);
            if (!isfinite(x) || !isfinite(y))
                continue;
            const double low  = f->curves[k].low ? pe_drawn(f->curves[k].low[i], f->log_y) : y;
            const double high = f->curves[k].high ? pe_drawn(f->curves[k].high[i], f->log_y) : y;
            s                 = (pe_span){fmin(s.x0, x), fmax(s.x1, x), fmin(s.y0, low), fmax(s.y1, high)};
        }
    if (f->low < f->high)
        s.y0 = pe_drawn(f->low, f->log_y), s.y1 = pe_drawn(f->high, f->log_y);
    if (!(s.x0 < s.x1))
        s.x0 = isfinite(s.x0) ? s.x0 - 0.5 : 0, s.x1 = s.x0 + 1;
    if (!(s.y0 < s.y1))
        s.y0 = isfinite(s.y0) ? s.y0 - 0.5 : 0, s.y1 = s.y0 + 1;
    return s;
}

static void dot(pe_canvas *c, double x, double y, int curve)
{
    const int column = (int)lround(x * (c->width - 1)), row = (int)lround((1 - y) * (c->height - 1));
    if (column >= 0 && column < c->width && row >= 0 && row < c->height)
        c->curve[row * c->width + column] = curve + 1;
}

/* A straight piece, in parts of the canvas; steps fine enough to leave no hole. */
static void line(pe_canvas *c, const double from[2], const double to[2], int curve)
{
    const double dx = (to[0] - from[0]) * c->width, dy = (to[1] - from[1]) * c->height;
    const int    n = 1 + (int)ceil(fmax(fabs(dx), fabs(dy)));
    for (int i = 0; i <= n; i++)
        dot(c, from[0] + (to[0] - from[0]) * i / n, from[1] + (to[1] - from[1]) * i / n, curve);
}

/* Round circles stay round: as many pixels to the right as up, where a character is twice as high as wide. */
void pe_canvas_arrows(pe_canvas *c, const pe_figure *f, const pe_span *s)
{
    for (int k = f->curve_count - 1; k >= 0; k--) {
        const double from[2] = {-s->x0 / (s->x1 - s->x0), -s->y0 / (s->y1 - s->y0)};
        const double to[2]   = {(f->curves[k].x[0] - s->x0) / (s->x1 - s->x0),
                                (f->curves[k].y[0] - s->y0) / (s->y1 - s->y0)};
        line(c, from, to, k);
    }
}

/* Everything between low and high at x, all in parts of the canvas. */
static void column(pe_canvas *c, double x, double low, double high, int curve)
{
    const int at = (int)lround(x * (c->width - 1));
    for (int y = 0; y < c->height; y++) {
        const double here = 1 - (double)y / (c->height > 1 ? c->height - 1 : 1);
        if (at >= 0 && at < c->width && here >= low && here <= high)
            c->band[y * c->width + at] = curve + 1;
    }
}

/* Columns between two samples are interpolated. */
static void draw_band(pe_canvas *c, const pe_figure *f, const pe_span *s, int k)
{
    const pe_curve *curve = &f->curves[k];
    const double    wide = s->x1 - s->x0, high = s->y1 - s->y0;
    for (int64_t i = 0; curve->low && curve->high && i + 1 < curve->n; i++) {
        const double x0 = (pe_drawn(curve->x[i], f->log_x) - s->x0) / wide;
        const double x1 = (pe_drawn(curve->x[i + 1], f->log_x) - s->x0) / wide;
        const int    n  = 1 + (int)ceil(fabs(x1 - x0) * c->width);
        for (int step = 0; step <= n; step++) {
            const double part = (double)step / n;
            const double low  = curve->low[i] + part * (curve->low[i + 1] - curve->low[i]);
            const double top  = curve->high[i] + part * (curve->high[i + 1] - curve->high[i]);
            column(c, x0 + part * (x1 - x0), (pe_drawn(low, f->log_y) - s->y0) / high,
                   (pe_drawn(top, f->log_y) - s->y0) / high, k);
        }
    }
}

void pe_canvas_curves(pe_canvas *c, const pe_figure *f, const pe_span *s)
{
    for (int k = 0; k < f->curve_count; k++)
        draw_band(c, f, s, k);
    for (int k = 0; k < f->curve_count; k++) {
        double before[2] = {NAN, NAN};
        for (int64_t i = 0; i < f->curves[k].n; i++) {
            const double now[2] = {(pe_drawn(f->curves[k].x[i], f->log_x) - s->x0) / (s->x1 - s->x0),
                                   (pe_drawn(f->curves[k].y[i], f->log_y) - s->y0) / (s->y1 - s->y0)};
            const int    stands = isfinite(now[0]) && isfinite(now[1]);
            if (stands)
                line(c, isfinite(before[0]) && f->curves[k].style != PE_DOTS ? before : now, now, k);
            before[0] = stands ? now[0] : NAN;
            before[1] = now[1];
        }
    }
}

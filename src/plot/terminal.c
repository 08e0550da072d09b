/* SPDX-License-Identifier: MIT */
/*
 * terminal.c: a figure as text
 *
 * The idea   A character cell is two pixels, one above the other: the upper half block takes the text colour,
 *            the lower half shows the background. So a grid of W columns has 2 H rows of square pixels.
 *            Colours are written as 24-bit escape sequences.
 * Without    colour (a file, NO_COLOR) a cell is one pixel: a grid is shaded by ten characters from ' ' to
 *            '@', and each curve is drawn with a letter of its own, named below the picture.
 * Panels     stand one below the other, each with its title. Arrows are lines from the origin. Labels of a
 *            second axis stand to the right of their line.
 * Channels   A grid's cells are averaged where several share a pixel. Not those of channels, where sines and
 *            cosines alternate and their means would be bands that no channel has: every second or fourth
 *            channel is drawn then, and the legend says so.
 * Surprises  The picture, labels included, is never wider than asked. NaN is grey, or '|' without colour. A
 *            band is a dimmer colour, or dots.
 */
#include "plot/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 9, LEAST_COLUMNS = 20, MOST_COLUMNS = 1000, SHADES = 10, LETTERS = 26 };

static const char shades[SHADES + 1] = " .:-=+*#%@";

/* ---------------------------------------------------------------- pixels -------------------- */

/* `value` in [0,1] or NaN for nothing (grid); `curve` and `band` = index + 1, 0 for nothing (curves). */
typedef struct pixel {
    double value;
    int    curve, band;
} pixel;

typedef struct canvas {
    int    width, height, per_cell; /* pixels, and how many of them one above the other share a character */
    int    row_stride, col_stride;  /* every such row of a grid is drawn, and the last; 0: all, averaged */
    pixel *pixels;
} canvas;

/* What the axes span (logarithms where the axis is logarithmic). */
typedef struct axis_span {
    double x0, x1, y0, y1;
} axis_span;

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

/* The cells [*first, *end) that pixel i of `pixels` shows; at least one, and only one with a stride. */
static void source_cells(int i, int pixels, int64_t cells, int stride, int64_t *first, int64_t *end)
{
    const int64_t sampled = (int64_t)i * stride < cells ? (int64_t)i * stride : cells - 1;
    *first                = stride ? sampled : (int64_t)i * cells / pixels;
    *end                  = stride ? sampled : ((int64_t)i + 1) * cells / pixels;
    if (*end <= *first)
        *end = *first + 1;
}

/* Neighbouring cells that fall onto one pixel are averaged, so that a fine pattern fades instead of making
   moire patterns. */
static void draw_grid(canvas *c, const pe_figure *f, double low, double high)
{
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) {
            int64_t r0, r1, c0, c1;
            source_cells(y, c->height, f->rows, c->row_stride, &r0, &r1);
            source_cells(x, c->width, f->cols, c->col_stride, &c0, &c1);
            c->pixels[y * c->width + x].value = (mean_of_box(f, r0, r1, c0, c1) - low) / (high - low);
        }
}

static double on_axis(double v, int is_log)
{
    return is_log ? log2(v) : v;
}

static axis_span span_of(const pe_figure *f)
{
    axis_span s = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int k = 0; k < f->curve_count; k++)
        for (int64_t i = 0; i < f->curves[k].n; i++) {
            const double x = on_axis(f->curves[k].x[i], f->log_x), y = on_axis(f->curves[k].y[i], f->log_y);
            if (!isfinite(x) || !isfinite(y))
                continue;
            const double low  = f->curves[k].low ? on_axis(f->curves[k].low[i], f->log_y) : y;
            const double high = f->curves[k].high ? on_axis(f->curves[k].high[i], f->log_y) : y;
            s                 = (axis_span){fmin(s.x0, x), fmax(s.x1, x), fmin(s.y0, low), fmax(s.y1, high)};
        }
    if (f->low < f->high)
        s.y0 = on_axis(f->low, f->log_y), s.y1 = on_axis(f->high, f->log_y);
    if (!(s.x0 < s.x1))
        s.x0 = isfinite(s.x0) ? s.x0 - 0.5 : 0, s.x1 = s.x0 + 1;
    if (!(s.y0 < s.y1))
        s.y0 = isfinite(s.y0) ? s.y0 - 0.5 : 0, s.y1 = s.y0 + 1;
    return s;
}

/* A point in parts of the canvas. */
static void on_canvas(double at[2], const pe_figure *f, const axis_span *s, double x, double y)
{
    at[0] = (on_axis(x, f->log_x) - s->x0) / (s->x1 - s->x0);
    at[1] = (on_axis(y, f->log_y) - s->y0) / (s->y1 - s->y0);
}

/* A straight line, in parts of the canvas; steps fine enough to leave no hole. */
static void draw_line(canvas *c, const double from[2], const double to[2], int curve)
{
    const double dx = (to[0] - from[0]) * c->width, dy = (to[1] - from[1]) * c->height;
    const int    n = 1 + (int)ceil(fmax(fabs(dx), fabs(dy)));
    for (int i = 0; i <= n; i++) {
        const double x = from[0] + (to[0] - from[0]) * i / n, y = from[1] + (to[1] - from[1]) * i / n;
        const int    column = (int)lround(x * (c->width - 1)), row = (int)lround((1 - y) * (c->height - 1));
        if (column >= 0 && column < c->width && row >= 0 && row < c->height)
            c->pixels[row * c->width + column].curve = curve + 1;
    }
}

/* Circles stay round: cells_high takes a character to be twice as high as wide. */
static void draw_arrows(canvas *c, const pe_figure *f, const axis_span *s)
{
    for (int k = f->curve_count - 1; k >= 0; k--) {
        double from[2], to[2];
        on_canvas(from, f, s, 0, 0);
        on_canvas(to, f, s, f->curves[k].x[0], f->curves[k].y[0]);
        draw_line(c, from, to, k);
    }
}

/* Everything between low and high at x, all in parts of the canvas. */
static void draw_column(canvas *c, double x, double low, double high, int curve)
{
    const int at = (int)lround(x * (c->width - 1));
    for (int y = 0; y < c->height; y++) {
        const double here = 1 - (double)y / (c->height > 1 ? c->height - 1 : 1);
        if (at >= 0 && at < c->width && here >= low && here <= high)
            c->pixels[y * c->width + at].band = curve + 1;
    }
}

/* Columns between two samples are interpolated. */
static void draw_band(canvas *c, const pe_figure *f, const axis_span *s, int k)
{
    const pe_curve *curve = &f->curves[k];
    const double    wide = s->x1 - s->x0, high = s->y1 - s->y0;
    for (int64_t i = 0; curve->low && curve->high && i + 1 < curve->n; i++) {
        const double x0 = (on_axis(curve->x[i], f->log_x) - s->x0) / wide;
        const double x1 = (on_axis(curve->x[i + 1], f->log_x) - s->x0) / wide;
        const int    n  = 1 + (int)ceil(fabs(x1 - x0) * c->width);
        for (int step = 0; step <= n; step++) {
            const double part = (double)step / n;
            const double low  = curve->low[i] + part * (curve->low[i + 1] - curve->low[i]);
            const double top  = curve->high[i] + part * (curve->high[i + 1] - curve->high[i]);
            draw_column(c, x0 + part * (x1 - x0), (on_axis(low, f->log_y) - s->y0) / high,
                        (on_axis(top, f->log_y) - s->y0) / high, k);
        }
    }
}

/* Along the old value to the middle, and on along the new one. */
static void draw_step(canvas *c, const double from[2], const double to[2], int curve)
{
    const double middle = (from[0] + to[0]) / 2, low[2] = {middle, from[1]}, high[2] = {middle, to[1]};
    draw_line(c, from, low, curve);
    draw_line(c, low, high, curve);
    draw_line(c, high, to, curve);
}

static void draw_curve(canvas *c, const pe_figure *f, const axis_span *s, int k)
{
    double before[2] = {NAN, NAN};
    for (int64_t i = 0; i < f->curves[k].n; i++) {
        double now[2];
        on_canvas(now, f, s, f->curves[k].x[i], f->curves[k].y[i]);
        const int is_point  = isfinite(now[0]) && isfinite(now[1]);
        const int is_joined = is_point && isfinite(before[0]) && f->curves[k].style != PE_DOTS;
        if (is_joined && f->steps)
            draw_step(c, before, now, k);
        else if (is_point)
            draw_line(c, is_joined ? before : now, now, k);
        before[0] = is_point ? now[0] : NAN;
        before[1] = now[1];
    }
}

/* Rules lie below what is compared with them. */
static void draw_curves(canvas *c, const pe_figure *f, const axis_span *s)
{
    for (int k = 0; k < f->curve_count; k++)
        draw_band(c, f, s, k);
    for (int rules = 1; rules >= 0; rules--)
        for (int k = 0; k < f->curve_count; k++)
            if ((f->curves[k].style == PE_RULE) == rules)
                draw_curve(c, f, s, k);
}

/* ---------------------------------------------------------------- printing ------------------ */

/* Whether pixel (x,y) is painted, and how. */
static int pixel_colour(const canvas *c, const pe_figure *f, int x, int y, pe_rgb *colour)
{
    const int i = y * c->width + x;
    if (f->kind == PE_GRID) {
        *colour = pe_colours_on_scale(f->signed_scale, c->pixels[i].value);
        return 1;
    }
    const int index = c->pixels[i].curve ? c->pixels[i].curve : c->pixels[i].band;
    if (!index)
        return 0;
    *colour = pe_colours_of_curve(f, index - 1);
    if (!(colour->r | colour->g | colour->b)) /* black would be lost on a dark screen */
        *colour = (pe_rgb){200, 200, 200};
    if (!c->pixels[i].curve)
        *colour = (pe_rgb){colour->r / 3, colour->g / 3, colour->b / 3};
    return 1;
}

static void print_coloured_cell(FILE *to, const canvas *c, const pe_figure *f, int x, int row)
{
    pe_rgb    above = {0, 0, 0}, below = {0, 0, 0};
    const int up = pixel_colour(c, f, x, 2 * row, &above), down = pixel_colour(c, f, x, 2 * row + 1, &below);
    if (up && down)
        fprintf(to, "\033[38;2;%d;%d;%d;48;2;%d;%d;%dm\u2580\033[0m", above.r, above.g, above.b, below.r,
                below.g, below.b);
    else if (up)
        fprintf(to, "\033[38;2;%d;%d;%dm\u2580\033[0m", above.r, above.g, above.b);
    else if (down)
        fprintf(to, "\033[38;2;%d;%d;%dm\u2584\033[0m", below.r, below.g, below.b);
    else
        fputc(' ', to);
}

static char letter_of(int curve)
{
    return (char)('a' + curve % LETTERS);
}

static void print_plain_cell(FILE *to, const canvas *c, const pe_figure *f, int x, int row)
{
    const int i = row * c->width + x;
    if (f->kind != PE_GRID)
        fputc(c->pixels[i].curve ? letter_of(c->pixels[i].curve - 1) : c->pixels[i].band ? '.' : ' ', to);
    else if (isnan(c->pixels[i].value))
        fputc('|', to);
    else
        fputc(shades[(int)fmin(fmax(c->pixels[i].value, 0) * SHADES, SHADES - 1)], to);
}

/* The row of a grid that begins at this line of characters. */
static int64_t row_at(const canvas *c, const pe_figure *f, int line)
{
    int64_t first, end;
    source_cells(line * c->per_cell, c->height, f->rows, c->row_stride, &first, &end);
    return first;
}

/* Is the row of this part of the grid's height drawn in that line? Of a stride only if it is drawn at all. */
static int is_in_line(const canvas *c, const pe_figure *f, double part, int line)
{
    const int64_t row = (int64_t)(part * (double)f->rows);
    if (c->row_stride && row == f->rows - 1)
        return line == c->height / c->per_cell - 1;
    if (c->row_stride)
        return row % c->row_stride == 0 && row / c->row_stride / c->per_cell == line;
    return (int)(part * (c->height / c->per_cell)) == line;
}

/* The label of the second axis for a line; the first, where there are several. */
static const char *second_label_at(const canvas *c, const pe_figure *f, int line)
{
    for (int i = 0; f->kind == PE_GRID && i < f->tick_count; i++)
        if (is_in_line(c, f, ((f->ticks[i].y - f->y0) / f->dy + 0.5) / (double)f->rows, line))
            return f->ticks[i].label;
    return NULL;
}

/* Columns that those labels need, with "- " before them. */
static int second_width(const pe_figure *f)
{
    int widest = 0;
    for (int i = 0; f->kind == PE_GRID && i < f->tick_count; i++)
        widest = (int)fmax(widest, (double)strlen(f->ticks[i].label) + 2);
    return widest;
}

/* At the first line of its row. */
static void print_row_name(FILE *to, const canvas *c, const pe_figure *f, int line)
{
    const int64_t here     = row_at(c, f, line);
    const int     is_first = line == 0 || row_at(c, f, line - 1) != here;
    const char   *name     = is_first ? f->row_names[here] : "";
    const int     blanks   = MARGIN - 2 - pe_terminal_columns(name);
    fprintf(to, "%*s%.*s |", blanks > 0 ? blanks : 0, "", blanks < 0 ? MARGIN - 2 : (int)strlen(name), name);
}

/* With up to four digits, as many as the margin has space for. */
static void print_edge(FILE *to, double x)
{
    char text[24];
    for (int digits = 4; digits > 0; digits--)
        if (snprintf(text, sizeof text, "%.*g", digits, x) <= MARGIN - 2)
            break;
    fprintf(to, "%*s |", MARGIN - 2, text);
}

/* Numbers stand at the first and last row, names at each; the label of the axis above the picture. */
static void print_cells(FILE *to, const canvas *c, const pe_figure *f, double top, double bottom)
{
    const int rows = c->height / c->per_cell;
    for (int row = 0; row < rows; row++) {
        const char *second = second_label_at(c, f, row);
        if (f->kind == PE_GRID && f->row_names)
            print_row_name(to, c, f, row);
        else if (row == 0 || row == rows - 1)
            print_edge(to, row == 0 ? top : bottom);
        else
            fprintf(to, "%*s |", MARGIN - 2, "");
        for (int x = 0; x < c->width; x++)
            if (c->per_cell == 2)
                print_coloured_cell(to, c, f, x, row);
            else
                print_plain_cell(to, c, f, x, row);
        fprintf(to, second ? "- %s\n" : "\n", second);
    }
}

/* "0 ............ 63   channel" below the picture: left and right end of the x axis, and what it is. */
static void print_x_axis(FILE *to, int width, double left, double right, const pe_figure *f)
{
    const char *label = f->x_label;
    char        ends[2][24];
    snprintf(ends[0], sizeof ends[0], "%.4g", left);
    snprintf(ends[1], sizeof ends[1], "%.4g", right);
    for (int k = 0; k < 2 && f->kind == PE_GRID && f->col_names; k++)
        snprintf(ends[k], sizeof ends[k], "%s", f->col_names[k ? f->cols - 1 : 0]);
    const int used  = (int)(strlen(ends[0]) + strlen(ends[1]));
    const int space = width - used, wanted = label ? (int)strlen(label) : 0;
    if (space < wanted + 4) {
        fprintf(to, "%*s%s%*s%s\n", MARGIN, "", ends[0], space > 1 ? space : 1, "", ends[1]);
        pe_terminal_lines(to, label ? label : "", MARGIN, MARGIN + width);
    } else
        fprintf(to, "%*s%s%*s%s%*s%s\n", MARGIN, "", ends[0], (space - wanted) / 2, "", label ? label : "",
                space - wanted - (space - wanted) / 2, "", ends[1]);
}

static void print_scale(FILE *to, const pe_figure *f, double low, double high, int width, int colour)
{
    const int steps = width < 40 ? width / 2 : 20;
    fprintf(to, "%*s%.4g ", MARGIN, "", low);
    for (int i = 0; i < steps; i++) {
        const double at = steps > 1 ? (double)i / (steps - 1) : 0;
        const pe_rgb c  = pe_colours_on_scale(f->signed_scale, at);
        if (colour)
            fprintf(to, "\033[38;2;%d;%d;%dm\u2588\033[0m", c.r, c.g, c.b);
        else
            fputc(shades[(int)fmin(at * SHADES, SHADES - 1)], to);
    }
    fprintf(to, " %.4g  %s\n", high, f->value_label ? f->value_label : "");
}

static void print_names(FILE *to, const pe_figure *f, int columns, int colour)
{
    int used = 0;
    if (f->curve_count < 2)
        return; /* a single curve is named by its axis label */
    for (int k = 0; k < f->curve_count; k++) {
        const int    length = (int)strlen(f->curves[k].name) + 4;
        const pe_rgb c      = pe_colours_of_curve(f, k);
        if (used == 0 || used + length > columns) {
            fprintf(to, "%s%*s", used ? "\n" : "", MARGIN, "");
            used = MARGIN;
        }
        if (colour)
            fprintf(to, "\033[38;2;%d;%d;%dm\u2588\033[0m ", c.r | 40, c.g | 40, c.b | 40);
        else
            fprintf(to, "%c ", letter_of(k));
        fprintf(to, "%s  ", f->curves[k].name);
        used += length;
    }
    fputc('\n', to);
}

/* `ends`: the column that the name of the second axis ends at. */
static void print_heading(FILE *to, const pe_figure *f, int ends, int columns)
{
    const char *second = f->kind == PE_GRID && f->tick_count && f->second_label ? f->second_label : "";
    const int   used   = f->y_label ? MARGIN - 1 + (int)strlen(f->y_label) : 0;
    if (f->title)
        pe_terminal_lines(to, f->title, 0, columns);
    if (f->y_label)
        fprintf(to, "%*s%s", MARGIN - 1, "", f->y_label);
    if (*second && used + 2 + (int)strlen(second) <= ends)
        fprintf(to, "%*s", ends - used, second);
    else if (*second)
        fprintf(to, "%s%*s", used ? "\n" : "", ends, second);
    fputs(used || *second ? "\n" : "", to);
}

/* "one channel of every 4 is drawn, and the last", where there is no space for all. */
static void print_strides(FILE *to, const canvas *c, const pe_figure *f, int columns)
{
    const int   stride = c->row_stride ? c->row_stride : c->col_stride;
    const char *label  = c->row_stride ? f->y_label : f->x_label;
    char        text[160];
    if (!stride || !label)
        return;
    snprintf(text, sizeof text, "one %.40s of every %d is drawn, and the last", label, stride);
    pe_terminal_lines(to, text, MARGIN, columns);
}

static void print_grid(FILE *to, canvas *c, const pe_figure *f, int columns, int colour)
{
    double low, high;
    pe_colours_range(f, &low, &high);
    draw_grid(c, f, low, high);
    print_heading(to, f, MARGIN + c->width + second_width(f), columns);
    print_cells(to, c, f, f->y0, f->y0 + f->dy * (double)(f->rows - 1));
    print_x_axis(to, c->width, f->x0, f->x0 + f->dx * (double)(f->cols - 1), f);
    print_scale(to, f, low, high, columns - MARGIN - 24, colour);
    print_strides(to, c, f, columns);
}

static double off_axis(double v, int is_log)
{
    return is_log ? exp2(v) : v;
}

static void print_curves(FILE *to, canvas *c, const pe_figure *f, int columns, int colour)
{
    const axis_span s = f->kind == PE_ARROWS ? (axis_span){f->low, f->high, f->low, f->high} : span_of(f);
    (f->kind == PE_ARROWS ? draw_arrows : draw_curves)(c, f, &s);
    print_heading(to, f, columns, columns);
    print_cells(to, c, f, off_axis(s.y1, f->log_y), off_axis(s.y0, f->log_y));
    print_x_axis(to, c->width, off_axis(s.x0, f->log_x), off_axis(s.x1, f->log_x), f);
    print_names(to, f, columns, colour);
}

/* How many cells of a grid are drawn. */
static int drawn(int64_t cells, int stride)
{
    return stride ? 1 + (int)((cells - 1 + stride - 1) / stride) : (int)cells;
}

/* Every how many of `cells` one has a pixel of its own, and the last one; 0: all of them. A power of two, so
   that of channels in pairs the same one is drawn, and most of those that have a label. */
static int stride_of(int64_t cells, int pixels)
{
    int stride = 2;
    while (drawn(cells, stride) > pixels && stride < cells)
        stride *= 2;
    return cells <= pixels ? 0 : stride;
}

/* Lines of up to half as many again, with a pixel for each row that is drawn. */
static int lines_of_rows(const pe_figure *f, int usual, int per_cell)
{
    const int most  = usual * 3 / 2 * per_cell;
    const int lines = (drawn(f->rows, stride_of(f->rows, most)) + per_cell - 1) / per_cell;
    return lines < 4 ? 4 : lines;
}

/* A map keeps its shape (a character is twice as high as wide); another grid has two rows of pixels per cell
   if it is small, and fills about a screen otherwise. */
static int cells_high(const pe_figure *f, int width, int per_cell)
{
    const int screen = width / 4 < 24 ? width / 4 + 4 : 24;
    if (f->kind == PE_ARROWS)
        return (width + 1) / 2;
    if (f->kind == PE_GRID && f->square_cells)
        return (int)fmax(1, (double)width * (double)f->rows / (double)f->cols / 2 + 0.5);
    if (f->kind == PE_GRID && f->apart_rows)
        return lines_of_rows(f, screen, per_cell);
    if (f->kind == PE_GRID && f->rows < 2 * screen)
        return f->rows < 8 ? 4 : (int)(f->rows + 1) / 2;
    return screen;
}

enum { WIDEST_MAP = 56 }; /* columns: a square map fits on a screen of about 30 lines */

/* Columns of the canvas: a whole number per cell where that is possible. */
static int canvas_width(const pe_figure *f, int columns)
{
    int       width = columns - MARGIN - second_width(f);
    const int shape =
        f->kind == PE_ARROWS || (f->kind == PE_GRID && f->square_cells && f->cols < 2 * f->rows);
    if (shape && width > WIDEST_MAP)
        width = WIDEST_MAP;
    if (f->kind == PE_GRID && f->cols < width)
        width -= (int)(width % f->cols);
    return width;
}

static posenc_status print_figure(FILE *to, const pe_figure *f, int columns, int colour, posenc_error *err)
{
    canvas c = {.width = canvas_width(f, columns), .per_cell = colour ? 2 : 1};
    if (f->kind == PE_GRID && f->with_numbers) {
        pe_terminal_table(to, f, columns, colour);
        return POSENC_OK;
    }
    if (f->kind == PE_GRID && f->apart_cols && (c.col_stride = stride_of(f->cols, c.width)) > 0)
        c.width = drawn(f->cols, c.col_stride);
    c.height = cells_high(f, c.width, c.per_cell) * c.per_cell;
    if (f->kind == PE_GRID && f->apart_rows)
        c.row_stride = stride_of(f->rows, c.height);
    c.pixels = calloc((size_t)c.width * (size_t)c.height, sizeof *c.pixels);
    if (!c.pixels)
        return pe_draw_fail(err, POSENC_ERROR_MEMORY, "not enough memory for a picture of %d columns",
                            columns);
    (f->kind == PE_GRID ? print_grid : print_curves)(to, &c, f, columns, colour);
    free(c.pixels);
    return POSENC_OK;
}

posenc_status pe_terminal_print(const pe_figure *figure, FILE *stream, int columns, int colour,
                                posenc_error *err)
{
    posenc_status status = POSENC_OK;
    if (columns < LEAST_COLUMNS || columns > MOST_COLUMNS)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT,
                            "picture: the terminal has %d columns; %d to %d are needed", columns,
                            LEAST_COLUMNS, MOST_COLUMNS);
    if (figure->kind != PE_PANELS)
        return print_figure(stream, figure, columns, colour, err);
    pe_terminal_lines(stream, figure->title, 0, columns);
    for (int i = 0; i < figure->panel_count && !status; i++) {
        fputc('\n', stream);
        status = print_figure(stream, &figure->panels[i], columns, colour, err);
    }
    return status;
}

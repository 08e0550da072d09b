/* SPDX-License-Identifier: MIT */
/*
 * script.c: a figure in gnuplot's language
 *
 * The idea   Numbers travel in named data blocks inside the script, so that one stream holds everything; the plot
 *            command comes last. Numbers are written with nine digits, enough for any picture and its tooltips.
 * Panels     are one multiplot: each is written as a figure of its own after a `reset`, under a common title.
 * Surprises  Texts may come from a user. gnuplot runs back-quoted shell commands in "..." but never in '...', so
 *            every text goes into single quotes with its own quotes doubled; a line break in a title becomes
 *            'one' ."\n". 'two'. `noenhanced` keeps '_' and '^' what they are. A value that is not finite is written
 *            as NaN, which breaks a line and leaves a hole in a grid.
 */
#include "plot/gnuplot.h"

#include "plot/colours.h"

#include <math.h>
#include <string.h>

/* Solid, long dashes, dash and dot: three, which with eight colours come together again only after 24 curves. */
static const char *const dashes[] = {"1", "(14,5)", "(14,4,2,4)"};
enum { DASHES = sizeof dashes / sizeof *dashes, LONG_NAME = 24, MOST_RECTANGLES = 1024 };

static void write_text(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; text && *text; text++) {
        if (*text == '\n')
            fputs("' .\"\\n\". '", to);
        else if (*text == '\'')
            fputs("''", to);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, to);
    }
    fputc('\'', to);
}

static void write_number(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, " %.9g", x);
    else
        fputs(" NaN", to);
}

static void write_label(FILE *to, const char *axis, const char *text)
{
    if (!text)
        return;
    fprintf(to, "set %s ", axis);
    write_text(to, text);
    fputs(" noenhanced\n", to);
}

static void write_common(FILE *to, const pe_figure *f, int is_panel)
{
    fputs("set encoding utf8\n", to);
    if (f->title) {
        fputs("set title ", to);
        write_text(to, f->title);
        /* an empty line more, where the labels of marks stand */
        fputs(f->mark_count ? " .\"\\n \" noenhanced\n" : " noenhanced\n", to);
    }
    write_label(to, "xlabel", f->x_label);
    write_label(to, "ylabel", f->y_label);
    fprintf(to, "set title font ',%d'\nset border lc rgb '#444444'\n", is_panel ? 13 : 16);
}

/* Data positions span more than powers of ten but less than many: label powers of two. */
static void write_log_axes(FILE *to, const pe_figure *f)
{
    if (f->log_x)
        fputs("set logscale x 2\nset xtics 2\nset mxtics default\n", to);
    if (f->log_y)
        fputs("set logscale y 10\nset format y '10^{%L}'\n", to);
}

/* The label stands above the frame, where no curve runs. */
static void write_marks(FILE *to, const pe_figure *f)
{
    for (int i = 0; i < f->mark_count; i++) {
        fprintf(to, "set arrow %d from first", i + 1);
        write_number(to, f->marks[i].x);
        fputs(", graph 0 to first", to);
        write_number(to, f->marks[i].x);
        fputs(", graph 1 nohead front dashtype 2 lw 1.5 lc rgb '#333333'\n", to);
        fprintf(to, "set label %d ", i + 1);
        write_text(to, f->marks[i].label);
        fputs(" at first", to);
        write_number(to, f->marks[i].x);
        fputs(", graph 1.025 center front noenhanced tc rgb '#333333'\n", to);
    }
}

/* ---------------------------------------------------------------- curves -------------------- */

static void write_curve_data(FILE *to, const pe_curve *c, int index)
{
    fprintf(to, "$curve%d << END_OF_DATA\n", index);
    for (int64_t i = 0; i < c->n; i++) {
        write_number(to, c->x[i]);
        write_number(to, c->y[i]);
        if (c->low && c->high) {
            write_number(to, c->low[i]);
            write_number(to, c->high[i]);
        }
        fputc('\n', to);
    }
    fputs("END_OF_DATA\n", to);
}

static void write_colour(FILE *to, pe_rgb c)
{
    fprintf(to, "rgb '#%02x%02x%02x'", c.r, c.g, c.b);
}

/* One curve says in its axis label what it is; beside a panel there is no room for names, nor for long ones. */
static const char *key_of(const pe_figure *f, int is_panel)
{
    size_t longest = 0;
    if (f->curve_count < 2)
        return "unset key\n";
    for (int i = 0; i < f->curve_count; i++)
        longest = strlen(f->curves[i].name) > longest ? strlen(f->curves[i].name) : longest;
    return is_panel || longest > LONG_NAME
               ? "set key above center horizontal Left reverse samplen 2 spacing 1.1 noenhanced\n"
               : "set key outside right top Left reverse samplen 2.5 spacing 1.2 noenhanced\n";
}

static void write_style(FILE *to, const pe_figure *f, int i, const char *comma)
{
    const char *dash = dashes[f->ordered ? 0 : i % DASHES];
    fprintf(to, "%s$curve%d using 1:2 with ", comma, i);
    if (f->curves[i].style == PE_DOTS)
        fputs("points pt 7 ps 0.8 lc ", to);
    else if (f->curves[i].style == PE_RULE)
        fprintf(to, "lines lw 1.4 dashtype %s lc ", dash);
    else
        fprintf(to, "%s lw 2.2 dashtype %s lc ", f->steps ? "histeps" : "lines", dash);
    write_colour(to, pe_curve_colour(f, i));
}

/* All bands first, so that no band covers a line. */
static void write_curves(FILE *to, const pe_figure *f, int is_panel)
{
    const char *comma = "plot ";
    fputs(key_of(f, is_panel), to);
    fputs("set grid lt 1 lw 1 lc rgb '#d8d8d8'\nset tics nomirror\nset autoscale xfix\n", to);
    if (f->low < f->high)
        fprintf(to, "set yrange [%.9g:%.9g]\n", f->low, f->high);
    for (int i = 0; i < f->curve_count; i++)
        write_curve_data(to, &f->curves[i], i);
    for (int i = 0; i < f->curve_count; i++) {
        if (!f->curves[i].low || !f->curves[i].high)
            continue;
        fprintf(to, "%s$curve%d using 1:3:4 with filledcurves fs transparent solid 0.18 lc ", comma, i);
        write_colour(to, pe_curve_colour(f, i));
        fputs(" notitle", to);
        comma = ", ";
    }
    for (int i = 0; i < f->curve_count; i++) {
        write_style(to, f, i, comma);
        fputs(" title ", to);
        write_text(to, f->curves[i].name);
        fputs(" noenhanced", to);
        comma = ", ";
    }
    fputc('\n', to);
}

/* ---------------------------------------------------------------- arrows -------------------- */

enum { MOST_LABELS = 64 };

/* Is there room for the number of this arrow beside those that are shown? It has one digit, or two. */
static int has_room(const pe_figure *f, int index, const int *shown, int count)
{
    const double    least = (index < 10 ? 0.04 : 0.06) * (f->high - f->low);
    const pe_curve *here  = &f->curves[index];
    for (int i = 0; i < count; i++) {
        const pe_curve *there = &f->curves[shown[i]];
        if (hypot(here->x[0] - there->x[0], here->y[0] - there->y[0]) < least)
            return 0;
    }
    return count < MOST_LABELS;
}

static void write_numbers(FILE *to, const pe_figure *f)
{
    int shown[MOST_LABELS], count = 0;
    for (int i = 0; i < f->curve_count; i++) {
        if (!has_room(f, i, shown, count))
            continue;
        shown[count++] = i;
        fprintf(to, "set label %d '%d' at %.9g,%.9g center font ',11'\n", i + 1, i, 1.1 * f->curves[i].x[0],
                1.1 * f->curves[i].y[0]);
    }
}

/* The number of each arrow stands beyond its tip; the circle is where a vector of length 1 ends. */
static void write_arrows(FILE *to, const pe_figure *f)
{
    fprintf(to, "unset key\nset size ratio -1\nset tics nomirror\nset grid lt 1 lw 1 lc rgb '#d8d8d8'\n");
    fprintf(to, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", f->low, f->high, f->low, f->high);
    fputs("set object 1 circle at 0,0 size first 1 fs empty border lc rgb '#a0a0a0'\n", to);
    write_numbers(to, f);
    for (int i = 0; i < f->curve_count; i++)
        write_curve_data(to, &f->curves[i], i);
    for (int i = f->curve_count - 1; i >= 0; i--) {
        fprintf(to, "%s$curve%d using (0):(0):1:2 with vectors head filled size graph 0.05,18 lw 2.2 lc ",
                i == f->curve_count - 1 ? "plot " : ", ", i);
        write_colour(to, pe_curve_colour(f, i));
    }
    fputc('\n', to);
}

/* ---------------------------------------------------------------- grid ---------------------- */

static void write_palette(FILE *to, int signed_scale)
{
    const pe_rgb *stops;
    const int     n = pe_scale_stops(signed_scale, &stops);
    fputs("set palette defined (", to);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%d '#%02x%02x%02x'", i ? ", " : "", i, stops[i].r, stops[i].g, stops[i].b);
    fputs(")\n", to);
}

/* Half a cell beyond the outermost centres; y grows downwards, as a matrix is read. */
static void write_ranges(FILE *to, const pe_figure *f)
{
    double low, high;
    pe_value_range(f, &low, &high);
    fprintf(to, "set cbrange [%.9g:%.9g]\n", low, high);
    fprintf(to, "set xrange [%.9g:%.9g]\n", f->x0 - f->dx / 2, f->x0 + f->dx * ((double)f->cols - 0.5));
    fprintf(to, "set yrange [%.9g:%.9g]\n", f->y0 + f->dy * ((double)f->rows - 0.5), f->y0 - f->dy / 2);
}

static void write_second_axis(FILE *to, const pe_figure *f)
{
    if (!f->tick_count)
        return;
    write_label(to, "y2label", f->second_label);
    fprintf(to, "set y2range [%.9g:%.9g]\nset y2tics (", f->y0 + f->dy * ((double)f->rows - 0.5),
            f->y0 - f->dy / 2);
    for (int i = 0; i < f->tick_count; i++) {
        fputs(i ? ", " : "", to);
        write_text(to, f->ticks[i].label);
        write_number(to, f->ticks[i].y);
    }
    fputs(")\n", to);
}

/* White below black: seen on every colour. */
static void write_points(FILE *to, const pe_figure *f)
{
    static const char *const strokes[] = {"lw 5 lc rgb 'white'", "lw 2 lc rgb 'black'"};
    for (int k = 0; k < 2 && f->point_count; k++)
        fprintf(to, ", $points using 1:2 with points pt 1 ps 1.6 %s", strokes[k]);
    fputc('\n', to);
}

static void write_grid_data(FILE *to, const pe_figure *f)
{
    fputs("$points << END_OF_DATA\n", to);
    for (int i = 0; i < f->point_count; i++)
        fprintf(to, "%.9g %.9g\n", f->points[i].x, f->points[i].y);
    fputs("END_OF_DATA\n$grid << END_OF_DATA\n", to);
    for (int64_t r = 0; r < f->rows; r++) {
        for (int64_t c = 0; c < f->cols; c++)
            write_number(to, f->values[r * f->cols + c]);
        fputc('\n', to);
    }
    fputs("END_OF_DATA\n", to);
}

static void write_grid(FILE *to, const pe_figure *f, int is_panel)
{
    write_palette(to, f->signed_scale);
    write_ranges(to, f);
    write_label(to, "cblabel", f->value_label);
    fputs(is_panel ? "set cblabel offset -0.4,0\n" : "", to); /* it would lie on the edge of the page */
    if (f->square_cells)
        fprintf(to, "set size ratio %.9g\n", (double)f->rows / (double)f->cols);
    fputs("unset key\nset tics out nomirror\n", to);
    write_second_axis(to, f);
    write_grid_data(to, f);
    /* viewers smooth the pixels of an svg's image away, but not rectangles; of which there must not be too many */
    if (f->rows * f->cols <= MOST_RECTANGLES)
        fputs("pixels = GPVAL_TERM eq 'svg' ? 'pixels' : ''\n", to);
    else
        fputs("pixels = ''\n", to);
    fprintf(to, "plot $grid matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):3 with image @pixels", f->x0, f->dx,
            f->y0, f->dy);
    write_points(to, f);
}

/* ---------------------------------------------------------------- all ----------------------- */

static void write_figure(FILE *to, const pe_figure *f, int is_panel)
{
    write_common(to, f, is_panel);
    write_log_axes(to, f);
    write_marks(to, f);
    switch (f->kind) {
    case PE_GRID: write_grid(to, f, is_panel); break;
    case PE_CURVES: write_curves(to, f, is_panel); break;
    case PE_ARROWS: write_arrows(to, f); break;
    case PE_PANELS: break; /* not inside each other */
    }
}

static int has_names_above(const pe_figure *f)
{
    return f->panels[0].kind == PE_CURVES && f->panels[0].curve_count > 1;
}

static void write_panels(FILE *to, const pe_figure *f)
{
    const int rows = (f->panel_count + f->panel_columns - 1) / f->panel_columns;
    fprintf(to, "set encoding utf8\nset multiplot layout %d,%d title ", rows, f->panel_columns);
    write_text(to, f->title);
    /* an empty line more, where names of curves stand above a panel */
    fputs(has_names_above(f) ? " .\"\\n \"" : "", to);
    fputs(" font ',16' noenhanced\n", to);
    for (int i = 0; i < f->panel_count; i++) {
        fputs("reset\n", to);
        write_figure(to, &f->panels[i], 1);
    }
    fputs("unset multiplot\n", to);
}

/* ---------------------------------------------------------------- size ---------------------- */

enum { WIDTH = 1000, HEIGHT = 600, PANEL_WIDTH = 600, PANEL_HEIGHT = 440, MAP_LEAST = 260, MAP_MOST = 1000 };

/* A figure of its own, or a panel, `width` wide: a map is as high as its cells want, and room for its labels. */
static int height_of(const pe_figure *f, int width, int standard)
{
    enum { BESIDE = 190, ABOVE_AND_BELOW = 110 };
    if (f->kind == PE_ARROWS)
        return width + 10;
    if (f->kind != PE_GRID || !f->square_cells)
        return standard;
    const double wanted = (double)(width - BESIDE) * (double)f->rows / (double)f->cols + ABOVE_AND_BELOW;
    return (int)fmin(fmax(wanted, MAP_LEAST), MAP_MOST);
}

static int is_map(const pe_figure *f)
{
    return f->kind == PE_ARROWS || (f->kind == PE_GRID && f->square_cells);
}

static int is_wide(const pe_figure *f)
{
    return f->kind == PE_GRID && 2 * f->cols > 3 * f->rows;
}

/* Panels have one size: that which the highest of them wants. Maps beside each other are narrower. */
static void panels_size(const pe_figure *f, int *width, int *height)
{
    const int lines = 1 + (strchr(f->title, '\n') != NULL) + has_names_above(f);
    const int title = 25 + 25 * lines, rows = (f->panel_count + f->panel_columns - 1) / f->panel_columns;
    const int narrow = f->panel_columns > (is_wide(&f->panels[0]) ? 3 : 2);
    int       each = narrow ? 2 * PANEL_WIDTH / 3 : PANEL_WIDTH, high = 0;
    if (f->panel_count == 1 && !is_map(&f->panels[0]))
        each = WIDTH;
    for (int i = 0; i < f->panel_count; i++)
        high = (int)fmax(high, height_of(&f->panels[i], each, PANEL_HEIGHT));
    *width  = each * f->panel_columns;
    *height = high * rows + title;
}

static void size_of(const pe_figure *f, int *width, int *height)
{
    *width = is_map(f) ? 800 : WIDTH;
    if (f->kind == PE_PANELS)
        panels_size(f, width, height);
    else
        *height = height_of(f, *width, HEIGHT);
}

void pe_gnuplot_script(FILE *to, const pe_figure *figure, const char *terminal)
{
    int width, height;
    size_of(figure, &width, &height);
    fprintf(to, "width = %d\nheight = %d\n", width, height);
    fputs(terminal, to);
    fputc('\n', to);
    if (figure->kind == PE_PANELS)
        write_panels(to, figure);
    else
        write_figure(to, figure, 0);
}

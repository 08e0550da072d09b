/* SPDX-License-Identifier: MIT */
/*
 * script.c: a figure in gnuplot's language
 *
 * The idea   Numbers travel in named data blocks inside the script, so that one stream holds everything; the plot
 *            command comes last. Numbers are written with nine digits, enough for any picture and its tooltips.
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
enum { DASHES = sizeof dashes / sizeof *dashes };

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

static void write_common(FILE *to, const pe_figure *f)
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
    fputs("set title font ',16'\nset border lc rgb '#444444'\n", to);
}

/* Data positions span more than powers of ten but less than many: label powers of two. */
static void write_log_axes(FILE *to, const pe_figure *f)
{
    if (f->log_x)
        fputs("set logscale x 2\nset xtics 2\nset mxtics default\n", to);
    if (f->log_y)
        fputs("set logscale y 10\n", to);
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

/* All bands first, so that no band covers a line. */
static void write_curves(FILE *to, const pe_figure *f)
{
    const char *comma = "plot ";
    /* one curve says in its axis label what it is */
    fputs(f->curve_count > 1 ? "set key outside right top Left reverse samplen 2.5 spacing 1.2 noenhanced\n"
                             : "unset key\n",
          to);
    fputs("set grid lt 1 lw 1 lc rgb '#d8d8d8'\nset tics nomirror\nset autoscale xfix\n", to);
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
        fprintf(to, "%s$curve%d using 1:2 with lines lw 2.2 dashtype %s lc ", comma, i,
                dashes[f->ordered ? 0 : i % DASHES]);
        write_colour(to, pe_curve_colour(f, i));
        fputs(" title ", to);
        write_text(to, f->curves[i].name);
        fputs(" noenhanced", to);
        comma = ", ";
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

static int is_square(const pe_figure *f)
{
    return f->rows == f->cols && f->x0 == f->y0 && f->dx == f->dy;
}

static void write_grid(FILE *to, const pe_figure *f)
{
    write_palette(to, f->signed_scale);
    write_ranges(to, f);
    write_label(to, "cblabel", f->value_label);
    fputs(is_square(f) ? "set size ratio 1\n" : "", to);
    fputs("unset key\nset tics out nomirror\n$grid << END_OF_DATA\n", to);
    for (int64_t r = 0; r < f->rows; r++) {
        for (int64_t c = 0; c < f->cols; c++)
            write_number(to, f->values[r * f->cols + c]);
        fputc('\n', to);
    }
    fprintf(to, "END_OF_DATA\nplot $grid matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):3 with image\n", f->x0,
            f->dx, f->y0, f->dy);
}

void pe_gnuplot_script(FILE *to, const pe_figure *figure, const char *terminal)
{
    fputs(terminal, to);
    fputc('\n', to);
    write_common(to, figure);
    write_log_axes(to, figure);
    write_marks(to, figure);
    if (figure->kind == PE_GRID)
        write_grid(to, figure);
    else
        write_curves(to, figure);
}

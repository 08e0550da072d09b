/* SPDX-License-Identifier: MIT */
/*
 * script.c: a figure in gnuplot's language
 *
 * The idea   Numbers travel in named data blocks inside the script, so that one stream holds everything; the
 *            plot command comes last. Numbers are written with nine digits, enough for any picture and its
 *            tooltips.
 * Panels     are one multiplot: each is written as a figure of its own after a `reset`, in the pane of
 *            layout.c.
 * Surprises  Texts may come from a stranger. gnuplot runs shell commands in back quotes in "..." but never in
 *            '...', so every text goes into single quotes. A quote of its own becomes 'it' ."'". 's', because
 *            gnuplot misreads several doubled ones in a row, and a line break in a title 'one' ."\n". 'two'.
 *            What is no text, or would end a CDATA section of the SVG, does not pass. `noenhanced` keeps '_'
 *            and '^' what they are; the label of a tick is a format, so its '%' are doubled. A value that is
 *            not finite, or so large that gnuplot takes it for infinite, is written as NaN, which breaks a
 *            line and leaves a hole in a grid.
 * Emptiness  gnuplot refuses an empty range, and curves without a number: the picture would be lost, and
 *            with it a report after hours of training. So such a range is widened, and such a frame says that
 *            it has no numbers.
 */
#include "plot/draw.h"

#include "files/arrays/text.h"

#include <math.h>
#include <string.h>

/* Solid, long dashes, dash and dot: three, so that with eight colours a pair repeats only after 24 curves. */
static const char *const dashes[] = {"1", "(14,5)", "(14,4,2,4)"};
enum { DASHES = sizeof dashes / sizeof *dashes, LONG_NAME = 24, MOST_RECTANGLES = 1024, CELL_POINTS = 11 };
enum { BAR_LABEL = 9001, SECOND_LABEL, PAGE_TITLE, NO_NUMBERS }; /* beyond the tags of marks and arrows */

static void write_text(FILE *to, const char *text)
{
    int    shows;
    size_t size;
    fputc('\'', to);
    for (size_t n = text ? strlen(text) : 0; n; text += size, n -= size) {
        size = pe_text_next(text, n, &shows);
        if (*text == '\n')
            fputs("' .\"\\n\". '", to);
        else if (*text == '\'')
            fputs("' .\"'\". '", to);
        else if (n >= 3 && !memcmp(text, "]]>", 3))
            fputs("] ", to);
        else
            pe_text_put(to, text, size);
    }
    fputc('\'', to);
}

/* The label of a tick is a format. */
static void write_tick_label(FILE *to, const char *text)
{
    char   doubled[2 * PE_TICK_TEXT];
    size_t n = 0;
    for (; *text && n + 2 < sizeof doubled; text++) {
        doubled[n++] = *text;
        if (*text == '%')
            doubled[n++] = '%';
    }
    doubled[n] = 0;
    write_text(to, doubled);
}

static void write_number(FILE *to, double x)
{
    if (fabs(x) <= PE_MOST_DRAWN)
        fprintf(to, " %.9g", x);
    else
        fputs(" NaN", to);
}

/* `title` is already broken into lines, and may be NULL. */
static void write_common(FILE *to, const pe_figure *f, const char *title, int is_panel)
{
    fputs("set encoding utf8\n", to);
    if (title && *title) {
        fputs("set title ", to);
        write_text(to, title);
        /* one more line, empty, for the labels of marks */
        fputs(f->mark_count ? " .\"\\n \" noenhanced\n" : " noenhanced\n", to);
    }
    for (int k = 0; k < 2; k++) {
        const char *label = k ? f->y_label : f->x_label;
        if (!label)
            continue;
        fputs(k ? "set ylabel " : "set xlabel ", to);
        write_text(to, label);
        fputs(!k && f->narrow ? " .\"\\n \" noenhanced\n" : " noenhanced\n", to); /* then the names */
    }
    fprintf(to, "set title font ',%d'\nset border lc rgb '#444444'\n", is_panel ? 13 : 16);
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
        fprintf(to, ", graph %s center front noenhanced tc rgb '#333333'\n", f->narrow ? "1.045" : "1.025");
    }
}

/* ---------------------------------------------------------------- curves -------------------- */

static void write_curve_data(FILE *to, const pe_figure *f)
{
    for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++) {
        fprintf(to, "$curve%d << END_OF_DATA\n", (int)(c - f->curves));
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
}

static void write_colour(FILE *to, pe_rgb c)
{
    fprintf(to, "rgb '#%02x%02x%02x'", c.r, c.g, c.b);
}

/* A single curve is named by its axis label; beside a panel there is no space for names, nor anywhere for
   long ones. */
static const char *key_of(const pe_figure *f, int is_panel)
{
    size_t longest = 0;
    if (f->curve_count < 2)
        return "unset key\n";
    for (int i = 0; i < f->curve_count; i++)
        longest = strlen(f->curves[i].name) > longest ? strlen(f->curves[i].name) : longest;
    if (f->narrow)
        return "set key below center horizontal Left reverse samplen 2 spacing 1.1 noenhanced\n";
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
    write_colour(to, pe_colours_of_curve(f, i));
}

/* gnuplot's own numbers along x touch where they have four digits. The frame is at least half of the pane,
   even beside a wide key. */
static void write_x_step(FILE *to, const pe_figure *f, const pe_box *pane)
{
    double low = INFINITY, high = -INFINITY;
    int    whole = 1;
    for (int i = 0; i < f->curve_count; i++)
        for (int64_t k = 0; k < f->curves[i].n; k++) {
            const double x = f->curves[i].x[k];
            low            = fmin(low, x);
            high           = fmax(high, x);
            whole          = whole && floor(x) == x;
        }
    if (!f->log_x && low < high)
        fprintf(to, "set xtics %.9g\n",
                pe_layout_ticks(low, high, (pane->right - pane->left) / 2, PE_EM, whole, 1).step);
}

/* What gnuplot can draw of curves; x0 > x1, or y0 > y1, where that is nothing. */
typedef struct curves_extent {
    double x0, x1, y0, y1;
    int    is_empty; /* bands alone are not enough */
} curves_extent;

static int is_drawn(double x, int is_log)
{
    return fabs(x) <= PE_MOST_DRAWN && (!is_log || x >= PE_LEAST_DRAWN);
}

static void extend(double *low, double *high, double x, int is_log)
{
    *low  = is_drawn(x, is_log) ? fmin(*low, x) : *low;
    *high = is_drawn(x, is_log) ? fmax(*high, x) : *high;
}

static curves_extent extent_of(const pe_figure *f)
{
    curves_extent e = {INFINITY, -INFINITY, INFINITY, -INFINITY, 1};
    for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++)
        for (int64_t i = 0; i < c->n; i++) {
            extend(&e.x0, &e.x1, c->x[i], f->log_x);
            extend(&e.y0, &e.y1, c->y[i], f->log_y);
            extend(&e.y0, &e.y1, c->low ? c->low[i] : c->y[i], f->log_y);
            extend(&e.y0, &e.y1, c->high ? c->high[i] : c->y[i], f->log_y);
            e.is_empty = e.is_empty && !(is_drawn(c->x[i], f->log_x) && is_drawn(c->y[i], f->log_y));
        }
    return e;
}

/* The axes of curves of which nothing can be drawn; their names stay. */
static void write_empty_frame(FILE *to, curves_extent e)
{
    if (e.x0 > e.x1)
        e.x0 = 1, e.x1 = 2;
    pe_colours_widen(&e.x0, &e.x1);
    fprintf(to, "set xrange [%.9g:%.9g]\nset yrange [1:2]\nunset ytics\n", e.x0, e.x1);
    fprintf(to,
            "set style textbox opaque noborder\n" /* a mark may run behind it */
            "set label %d 'no finite numbers' at graph 0.5, graph 0.5 center front boxed tc rgb '#333333'\n",
            NO_NUMBERS);
}

/* gnuplot's own range of y, unless the figure has one, or it would be empty. */
static void write_frame(FILE *to, const pe_figure *f)
{
    const curves_extent e      = extent_of(f);
    const int           is_set = f->low < f->high;
    double              low = is_set ? f->low : e.y0, high = is_set ? f->high : e.y1;
    if (e.is_empty)
        write_empty_frame(to, e);
    else if (pe_colours_widen(&low, &high) || is_set)
        fprintf(to, "set yrange [%.9g:%.9g]\n", low, high);
}

/* All bands first, so that no band covers a line. */
static void write_curves(FILE *to, const pe_figure *f, const pe_box *pane, int is_panel)
{
    const char *comma = "plot ";
    fputs(key_of(f, is_panel), to);
    write_x_step(to, f, pane);
    fputs("set grid lt 1 lw 1 lc rgb '#d8d8d8'\nset tics nomirror\nset autoscale xfix\n", to);
    write_frame(to, f);
    write_curve_data(to, f);
    for (int i = 0; i < f->curve_count; i++) {
        if (!f->curves[i].low || !f->curves[i].high)
            continue;
        fprintf(to, "%s$curve%d using 1:3:4 with filledcurves fs transparent solid 0.18 lc ", comma, i);
        write_colour(to, pe_colours_of_curve(f, i));
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
#define DIGIT_WIDE 9.5 /* pixels of a digit in the size of these numbers */
#define DIGIT_HIGH 11.0
#define CLEAR      6.0

/* The number of an arrow: its middle, and half its width and height, in pixels from the origin. */
typedef struct arrow_number {
    double x, y, wide, high;
} arrow_number;

/* On a ring around the longest arrow, so far out that its box touches no arrow: all of it lies beyond the
   tangent. */
static arrow_number number_of(const pe_figure *f, int index, double reach, double scale)
{
    const double x = f->curves[index].x[0], y = f->curves[index].y[0], length = hypot(x, y);
    const double right = length > 0 ? x / length : 1, up = length > 0 ? y / length : 0;
    const double wide = DIGIT_WIDE * (index < 10 ? 1 : 2) / 2, high = DIGIT_HIGH / 2;
    const double out = reach * scale + CLEAR + fabs(right) * wide + fabs(up) * high;
    return (arrow_number){out * right, out * up, wide, high};
}

static int is_clear(const arrow_number *here, const arrow_number *shown, int count)
{
    for (int i = 0; i < count; i++)
        if (fabs(here->x - shown[i].x) < here->wide + shown[i].wide + CLEAR &&
            fabs(here->y - shown[i].y) < here->high + shown[i].high + CLEAR)
            return 0;
    return count < MOST_LABELS;
}

static void write_numbers(FILE *to, const pe_figure *f, const pe_pane *p)
{
    arrow_number shown[MOST_LABELS];
    int          count = 0;
    double       reach = 0;
    const double scale = (p->frame.right - p->frame.left) / (f->high - f->low);
    for (int i = 0; i < f->curve_count; i++)
        reach = fmax(reach, hypot(f->curves[i].x[0], f->curves[i].y[0]));
    for (int i = 0; i < f->curve_count; i++) {
        const arrow_number n = number_of(f, i, reach, scale);
        if (!is_clear(&n, shown, count))
            continue;
        shown[count++] = n;
        fprintf(to, "set label %d '%d' at %.9g,%.9g center font ',11'\n", i + 1, i, n.x / scale, n.y / scale);
    }
}

/* The number of each arrow stands beyond its tip; the circle is where a vector of length 1 ends. */
static void write_arrows(FILE *to, const pe_figure *f, const pe_pane *p)
{
    fprintf(to, "unset key\nset tics nomirror\nset grid lt 1 lw 1 lc rgb '#d8d8d8'\n");
    fprintf(to, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n", f->low, f->high, f->low, f->high);
    fputs("set object 1 circle at 0,0 size first 1 fs empty border lc rgb '#a0a0a0'\n", to);
    write_numbers(to, f, p);
    write_curve_data(to, f);
    for (int i = f->curve_count - 1; i >= 0; i--) {
        fprintf(to, "%s$curve%d using (0):(0):1:2 with vectors head filled size graph 0.05,18 lw 2.2 lc ",
                i == f->curve_count - 1 ? "plot " : ", ", i);
        write_colour(to, pe_colours_of_curve(f, i));
    }
    fputc('\n', to);
}

/* ---------------------------------------------------------------- grid ---------------------- */

static void write_palette(FILE *to, int signed_scale)
{
    const pe_rgb *stops;
    const int     n = pe_colours_stops(signed_scale, &stops);
    fputs("set palette defined (", to);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%d '#%02x%02x%02x'", i ? ", " : "", i, stops[i].r, stops[i].g, stops[i].b);
    fputs(")\n", to);
}

/* Half a cell beyond the outermost centres; y grows downwards, as a matrix is read. */
static void write_ranges(FILE *to, const pe_figure *f)
{
    double low, high;
    pe_colours_drawn(f, &low, &high);
    fprintf(to, "set cbrange [%.9g:%.9g]\n", low, high);
    fprintf(to, "set xrange [%.9g:%.9g]\n", f->x0 - f->dx / 2, f->x0 + f->dx * ((double)f->cols - 0.5));
    fprintf(to, "set yrange [%.9g:%.9g]\n", f->y0 + f->dy * ((double)f->rows - 0.5), f->y0 - f->dy / 2);
}

static void write_second_axis(FILE *to, const pe_figure *f)
{
    if (!f->tick_count)
        return;
    fprintf(to, "set y2range [%.9g:%.9g]\nset y2tics (", f->y0 + f->dy * ((double)f->rows - 0.5),
            f->y0 - f->dy / 2);
    for (int i = 0; i < f->tick_count; i++) {
        fputs(i ? ", " : "", to);
        write_tick_label(to, f->ticks[i].label);
        write_number(to, f->ticks[i].y);
    }
    fputs(")\n", to);
}

static void write_ticks(FILE *to, const char *axis, const pe_ticks *t)
{
    char text[PE_TICK_TEXT];
    fprintf(to, "set %s noenhanced (", axis);
    for (int i = 0; i < t->count; i++) {
        pe_layout_tick_text(t, i, text);
        fputs(i ? ", " : "", to);
        write_tick_label(to, text);
        write_number(to, t->first + i * t->step);
    }
    fputs(")\n", to);
}

/* A text that stands upright beside the frame: gnuplot's own labels overlap wide numbers. */
static void write_upright(FILE *to, int tag, const char *text, double x, const pe_pane *p,
                          const pe_page_layout *l)
{
    if (!text)
        return;
    fprintf(to, "set label %d ", tag);
    write_text(to, text);
    fprintf(to, " at screen %.6f, screen %.6f center rotate by 90 noenhanced\n", x / l->width,
            1 - (p->frame.top + p->frame.bottom) / 2 / l->height);
}

static void write_scale(FILE *to, const pe_figure *f, const pe_pane *p, const pe_page_layout *l)
{
    write_ticks(to, "xtics", &p->x);
    write_ticks(to, "ytics", &p->y);
    write_ticks(to, "cbtics", &p->values);
    fprintf(to, "set colorbox vertical user origin screen %.6f, screen %.6f size screen %.6f, screen %.6f\n",
            p->bar.left / l->width, 1 - p->bar.bottom / l->height, (p->bar.right - p->bar.left) / l->width,
            (p->bar.bottom - p->bar.top) / l->height);
    write_upright(to, BAR_LABEL, f->value_label, p->bar_label, p, l);
    if (f->tick_count)
        write_upright(to, SECOND_LABEL, f->second_label, p->second_label, p, l);
}

/* gnuplot draws no image of a single row or column: it is written twice, half as thick. */
static int strokes(int64_t cells)
{
    return cells > 1 ? 1 : 2;
}

static void write_grid_data(FILE *to, const pe_figure *f)
{
    fputs("$points << END_OF_DATA\n", to);
    for (int i = 0; i < f->point_count; i++)
        fprintf(to, "%.9g %.9g\n", f->points[i].x, f->points[i].y);
    fputs("END_OF_DATA\n$grid << END_OF_DATA\n", to);
    for (int64_t r = 0; r < f->rows * strokes(f->rows); r++) {
        for (int64_t c = 0; c < f->cols * strokes(f->cols); c++)
            write_number(to, f->values[r / strokes(f->rows) * f->cols + c / strokes(f->cols)]);
        fputc('\n', to);
    }
    fputs("END_OF_DATA\n", to);
}

/* The numbers of a table, each black or white, whichever is seen better on its cell. */
static void write_numbers_of_cells(FILE *to, const pe_figure *f)
{
    char   text[PE_CELL_TEXT];
    double low, high;
    pe_colours_drawn(f, &low, &high);
    fputs("$numbers << END_OF_DATA\n", to);
    for (int64_t i = 0; i < f->rows * f->cols; i++) {
        const pe_rgb c     = pe_colours_on_scale(f->signed_scale, (f->values[i] - low) / (high - low));
        const double light = 0.299 * c.r + 0.587 * c.g + 0.114 * c.b;
        pe_layout_cell_text(f, i, text);
        if (*text)
            fprintf(to, "%.9g %.9g %s %d\n", f->x0 + f->dx * (double)(i % f->cols),
                    f->y0 + f->dy * (double)(i / f->cols), text, light > 128 ? 0 : 0xffffff);
    }
    fputs("END_OF_DATA\n", to);
}

static void write_grid(FILE *to, const pe_figure *f, const pe_pane *p, const pe_page_layout *l)
{
    write_palette(to, f->signed_scale);
    write_ranges(to, f);
    fputs("unset key\nset tics out nomirror\n", to);
    write_scale(to, f, p, l);
    write_second_axis(to, f);
    write_grid_data(to, f);
    if (f->with_numbers)
        write_numbers_of_cells(to, f);
    /* viewers blur the pixels of an svg's image, but not rectangles, of which there must not be too many */
    if (f->rows * f->cols <= MOST_RECTANGLES)
        fputs("pixels = GPVAL_TERM eq 'svg' ? 'pixels' : ''\n", to);
    else
        fputs("pixels = ''\n", to);
    const double dx = f->dx / strokes(f->cols), dy = f->dy / strokes(f->rows);
    fprintf(to, "plot $grid matrix using (%.9g+%.9g*$1):(%.9g+%.9g*$2):3 with image @pixels",
            f->x0 + (dx - f->dx) / 2, dx, f->y0 + (dy - f->dy) / 2, dy);
    for (int k = 0; k < 2 && f->point_count; k++) /* white below black: seen on every colour */
        fprintf(to, ", $points using 1:2 with points pt 1 ps 1.6 %s",
                k ? "lw 2 lc rgb 'black'" : "lw 5 lc rgb 'white'");
    if (f->with_numbers)
        fprintf(to, ", $numbers using 1:2:(strcol(3)):4 with labels font ',%d' tc rgb variable", CELL_POINTS);
    fputc('\n', to);
}

/* gnuplot measures from the lower left corner, in parts of the page. */
static void write_place(FILE *to, const pe_figure *f, const pe_pane *p, const pe_page_layout *l, int is_panel)
{
    const pe_box *a = &p->all, *b = &p->frame;
    if (pe_layout_frames(f))
        fprintf(to,
                "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                b->left / l->width, b->right / l->width, 1 - b->top / l->height, 1 - b->bottom / l->height);
    else if (is_panel)
        fprintf(to, "set origin %.6f,%.6f\nset size %.6f,%.6f\n", a->left / l->width,
                1 - a->bottom / l->height, (a->right - a->left) / l->width, (a->bottom - a->top) / l->height);
}

/* In the middle of the page, whatever the frames below it do. */
static void write_page_title(FILE *to, const pe_page_layout *l)
{
    if (!l->has_strip || !l->title[0])
        return;
    fprintf(to, "set label %d ", PAGE_TITLE);
    write_text(to, l->title);
    fprintf(to, " at screen 0.5, screen %.6f center font ',16' noenhanced\n",
            1 - (0.75 * PE_TITLE_LINE) / l->height);
}

/* Panel `index`, or the whole figure; the page's title is a label of the first. */
static void write_figure(FILE *to, const pe_page_layout *l, const pe_figure *page, int index)
{
    const int        is_panel = page->kind == PE_PANELS;
    const pe_figure *f        = is_panel ? &page->panels[index] : page;
    pe_pane          p;
    pe_layout_pane(&p, l, page, index);
    write_common(to, f, is_panel ? p.title : l->has_strip ? NULL : l->title, is_panel);
    write_place(to, f, &p, l, is_panel);
    if (index == 0)
        write_page_title(to, l);
    if (f->log_x) /* positions seldom span many powers of ten: label powers of two */
        fputs("set logscale x 2\nset xtics 2\nset mxtics default\n", to);
    if (f->log_y)
        fputs("set logscale y 10\nset format y '10^{%L}'\n", to);
    write_marks(to, f);
    switch (f->kind) {
    case PE_GRID: write_grid(to, f, &p, l); break;
    case PE_CURVES: write_curves(to, f, &p.all, is_panel); break;
    case PE_ARROWS: write_arrows(to, f, &p); break;
    case PE_PANELS: break; /* never inside each other */
    }
}

void pe_script_write(FILE *to, const pe_figure *figure, const char *terminal)
{
    const int      panels = figure->kind == PE_PANELS;
    pe_page_layout l;
    pe_layout_page(&l, figure);
    fprintf(to, "width = %.0f\nheight = %.0f\n%s\n", l.width, l.height, terminal);
    fputs(panels ? "set multiplot\n" : "", to);
    for (int i = 0; i < (panels ? figure->panel_count : 1); i++) {
        fputs(i ? "reset\n" : "", to);
        write_figure(to, &l, figure, i);
    }
    fputs(panels ? "unset multiplot\n" : "", to);
}

/* SPDX-License-Identifier: MIT */
/*
 * layout.c: sizes of pages, panes and frames
 *
 * The idea   Cells decide. A map gets a whole number of pixels per cell, so that all cells, and all lines
 *            between small maps, look equally wide; frames follow from cells, panes from frames, the page
 *            from panes, and texts are broken where the page ends. Maps too wide to stand side by side stand
 *            below each other.
 * Texts      gnuplot cannot be asked how wide a text is before the page is laid out, so it is estimated from
 *            the letters, in em, by a table of classes for a wide font (DejaVu Sans): others need less.
 * Surprises  Where a grid is so long and thin that square cells would make too long a page, its thin side is
 *            drawn wider. Only maps without lines inside (a matrix of a thousand positions) may have fewer
 *            pixels than cells.
 */
#include "plot/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH        = 1000,
    HEIGHT       = 600,
    LOW          = 480, /* of what is narrow, above its names */
    PANEL_WIDTH  = 600,
    PANEL_HEIGHT = 440,
    LEAST_PAGE   = 640,
    WIDEST_PAGE  = 1900, /* panes stand side by side up to here */
    THIN         = 80,   /* a frame's shorter side, at least: numbers and a scale of colours need it */
    LONG         = 1700, /* a frame's longer side, unless more cells must be seen */
    SHRUNK       = 1100, /* from here on a map may have fewer pixels than cells */
    CELL_HIGH    = 26,   /* of a table */
    CELL_GAP     = 14,   /* between two of its numbers */
    BAR          = 18,
    TICK         = 20, /* the mark and the gap before its number */
    UPRIGHT      = 28, /* across a text that stands upright, with its gaps */
    ABOVE_FRAME  = 20, /* between a frame and its title */
    EDGE         = 12,
    ARROW_LEFT   = 100
};

#define BESIDE_KEY 0.78 /* of a page's width: centred there, a title is centred above a plot with a key */

/* ---------------------------------------------------------------- texts --------------------- */

/* DejaVu Sans, rounded up; what is in no row is UNLISTED. In UTF-8 only the first byte of a letter has a
   width. */
static const struct {
    const char *letters;
    double      width;
} classes[] = {
    {" .,ijlI|'", 0.32}, {":;/\\!ft()[]-\"", 0.40}, {"rszc?", 0.55},
    {"m%@wMW", 0.96},    {"+=<>~#", 0.84},          {"ABCDEFGHKNOPQRTUVXYZ&", 0.74},
};
#define UNLISTED   0.64
#define FOREIGN    1.0
#define MOST_LINES 12

static double width_of(char c)
{
    if ((unsigned char)c >= 0x80)
        return (c & 0xC0) == 0x80 ? 0 : FOREIGN;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strchr(classes[i].letters, c))
            return classes[i].width;
    return UNLISTED;
}

double pe_layout_text_width(const char *text, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n && text[i]; i++)
        sum += width_of(text[i]);
    return sum;
}

/* Bytes of the next line, without the blank or break after it. */
static size_t line_length(const char *text, double width)
{
    const size_t whole = strcspn(text, "\n");
    size_t       fits = 0, blank = 0, joint = 0, within = 0;
    double       used = 0;
    while (fits < whole && (used += width_of(text[fits])) <= width) {
        if (text[fits] == ' ')
            blank = fits;
        if (strchr(":,/+", text[fits]))
            joint = fits + 1;
        if (text[fits] == '_')
            within = fits + 1;
        fits++;
    }
    if (fits == whole)
        return whole;
    while (fits > 1 && ((unsigned char)text[fits] & 0xC0) == 0x80) /* not within a letter */
        fits--;
    if (text[fits] == ' ')
        return fits;
    return blank ? blank : joint ? joint : within ? within : fits ? fits : 1;
}

int pe_layout_wrap(const char *text, double width, char to[PE_WRAPPED])
{
    size_t used  = 0;
    int    lines = 0;
    to[0]        = 0;
    while (text && *text && lines < MOST_LINES) {
        const size_t n = line_length(text, width), space = PE_WRAPPED - used - 2;
        if (lines++)
            to[used++] = '\n';
        memcpy(to + used, text, n < space ? n : space);
        used += n < space ? n : space;
        to[used] = 0;
        if (n >= space)
            break;
        text += n;
        text += *text == ' ' || *text == '\n';
    }
    return lines;
}

/* ---------------------------------------------------------------- ticks --------------------- */

double pe_layout_tick_text(const pe_ticks *t, int index, char text[PE_TICK_TEXT])
{
    const double x = t->first + index * t->step;
    if (t->names)
        snprintf(text, PE_TICK_TEXT, "%s", t->names[index * t->stride]);
    else if (t->decimals < 0)
        snprintf(text, PE_TICK_TEXT, "%.3g", x);
    else
        snprintf(text, PE_TICK_TEXT, "%.*f", t->decimals, fabs(x) < 1e-9 * t->step ? 0 : x);
    return pe_layout_text_width(text, strlen(text));
}

/* The widest of them, in pixels. */
static double widest(const pe_ticks *t)
{
    char   text[PE_TICK_TEXT];
    double most = 0;
    for (int i = 0; i < t->count; i++)
        most = fmax(most, pe_layout_tick_text(t, i, text));
    return PE_EM * most;
}

static pe_ticks ticks_of_step(double low, double high, double step)
{
    const double slack = 1e-9 * step, first = ceil((low - slack) / step), last = floor((high + slack) / step);
    const int    digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    return (pe_ticks){.first    = first * step,
                      .step     = step,
                      .count    = last >= first ? (int)(last - first) + 1 : 0,
                      .decimals = digits > 4 || fabs(high) >= 1e7 ? -1 : digits};
}

pe_ticks pe_layout_ticks(double low, double high, double length, double least, int whole, int side_by_side)
{
    static const double ones[] = {1, 2, 5};
    const double        span   = high - low;
    const int           power  = whole ? 0 : (int)floor(log10(span)) - 2;
    pe_ticks            t      = {0};
    for (int i = 0; i < 60; i++) {
        const double step = ones[i % 3] * pow(10, power + i / 3), gap = length * step / span;
        if (gap < least)
            continue;
        t = ticks_of_step(low, high, step);
        if (!side_by_side || gap >= widest(&t) + least)
            break;
    }
    return t;
}

/* ---------------------------------------------------------------- frames -------------------- */

/* Pixels of the longer side at which maps look good, by how many stand side by side. */
static double target_of(int columns)
{
    static const double targets[] = {480, 420, 330, 250};
    return columns < 1 ? 640 : targets[columns < 4 ? columns - 1 : 3];
}

typedef struct size {
    double width, height;
} size;

void pe_layout_cell_text(const pe_figure *f, int64_t index, char text[PE_CELL_TEXT])
{
    const double x = f->values[index], unit = pow(10, -f->decimals);
    if (isnan(x))
        text[0] = 0;
    else /* no -0.00 */
        snprintf(text, PE_CELL_TEXT, "%.*f", f->decimals, fabs(x) < unit / 2 ? 0 : x);
}

/* Of a table: cells as wide as the widest number or name. */
static size table_size(const pe_figure *f)
{
    char   text[PE_CELL_TEXT];
    double wide = 0;
    for (int64_t i = 0; i < f->rows * f->cols; i++) {
        pe_layout_cell_text(f, i, text);
        wide = fmax(wide, PE_CELL_EM * pe_layout_text_width(text, strlen(text)));
    }
    for (int64_t c = 0; f->col_names && c < f->cols; c++)
        wide = fmax(wide, PE_EM * pe_layout_text_width(f->col_names[c], strlen(f->col_names[c])));
    const double cell = fmax(ceil(wide) + CELL_GAP, CELL_HIGH);
    return (size){(double)f->cols * fmax(cell, ceil(THIN / (double)f->cols)),
                  (double)f->rows * fmax(CELL_HIGH, ceil(THIN / (double)f->rows))};
}

/* columns 0: a figure of its own. */
static size map_size(const pe_figure *f, int columns)
{
    if (f->with_numbers)
        return table_size(f);
    const double rows = (double)f->rows, cols = (double)f->cols;
    const double longer = fmax(rows, cols), shorter = fmin(rows, cols), target = target_of(columns);
    double       k = floor(target / longer);
    if (k * longer < 0.7 * target)
        k++;
    if (!f->whole_cells && k * longer > (columns > 2 ? SHRUNK / 2.0 : SHRUNK))
        return (size){cols / ceil(longer / target), rows / ceil(longer / target)};
    if (k * shorter < THIN)
        k = fmax(k, fmin(ceil(THIN / shorter), floor(LONG / longer)));
    return (size){cols * fmax(k, ceil(THIN / cols)), rows * fmax(k, ceil(THIN / rows))};
}

static int is_map(const pe_figure *f)
{
    return f->kind == PE_ARROWS || (f->kind == PE_GRID && (f->square_cells || f->with_numbers));
}

int pe_layout_frames(const pe_figure *f)
{
    return f->kind == PE_ARROWS || f->kind == PE_GRID;
}

/* The frame of a map; of anything else 0: there is none yet. */
static size frame_size(const pe_figure *f, int columns)
{
    const double arrows = target_of(columns ? columns : 1);
    if (f->kind == PE_ARROWS)
        return (size){arrows, arrows};
    return is_map(f) ? map_size(f, columns) : (size){0, 0};
}

/* ---------------------------------------------------------------- margins ------------------- */

/* Of the range of colours; of a short scale its two ends. */
static pe_ticks value_ticks(const pe_figure *f, double height)
{
    double low, high;
    pe_colours_drawn(f, &low, &high);
    const pe_ticks t = pe_layout_ticks(low, high, height, fmax(1.6 * PE_TEXT_LINE, height / 12), 0, 0);
    return t.count > 1 ? t : (pe_ticks){.first = low, .step = high - low, .count = 2, .decimals = -1};
}

/* As many names as there is space for, evenly. */
static pe_ticks name_ticks(double x0, double dx, int64_t n, double length, int side_by_side,
                           const char *const *names)
{
    double wide = 0;
    for (int64_t i = 0; i < n; i++)
        wide = fmax(wide, PE_EM * pe_layout_text_width(names[i], strlen(names[i])));
    const double least  = side_by_side ? wide + 8 : PE_TEXT_LINE;
    const int    stride = (int)fmax(1, ceil(least * (double)n / length - 0.25));
    return (pe_ticks){.first  = x0,
                      .step   = dx * stride,
                      .count  = (int)((n + stride - 1) / stride),
                      .names  = names,
                      .stride = stride};
}

static pe_ticks axis_ticks(double x0, double dx, int64_t n, double length, int side_by_side,
                           const char *const *names)
{
    const double least = side_by_side ? 8 : fmax(1.2 * PE_TEXT_LINE, length / 24);
    if (names)
        return name_ticks(x0, dx, n, length, side_by_side, names);
    return pe_layout_ticks(x0 - dx / 2, x0 + dx * ((double)n - 0.5), length, least, 1, side_by_side);
}

/* The second axis: its numbers and its text. */
static double second_width(const pe_figure *f)
{
    double most = 0;
    for (int i = 0; i < f->tick_count; i++)
        most = fmax(most, PE_EM * pe_layout_text_width(f->ticks[i].label, strlen(f->ticks[i].label)));
    return f->tick_count ? TICK + most + UPRIGHT : 0;
}

/* How far the longest upright text reaches beyond a frame of height `high`, on either side. */
static double beyond(const pe_figure *f, double high)
{
    const char *const texts[] = {f->y_label, f->value_label, f->second_label};
    double            longest = 0;
    for (int i = 0; i < 3; i++)
        longest =
            texts[i] ? fmax(longest, PE_EM * pe_layout_text_width(texts[i], strlen(texts[i]))) : longest;
    return longest > high ? ceil((longest - high) / 2) + 1 : 0;
}

/* The space around a frame for the axes' numbers and texts. The numbers depend on the frame, whose height is
   known. */
static pe_box margins_of(const pe_figure *f, double high)
{
    const double over   = beyond(f, high);
    const double top    = fmax(f->mark_count ? PE_TEXT_LINE + 4 : 0, over);
    const double bottom = fmax(TICK + PE_TEXT_LINE + (f->x_label ? PE_TEXT_LINE + EDGE : 0), over) + EDGE;
    if (f->kind == PE_ARROWS)
        return (pe_box){ARROW_LEFT, top, 2 * EDGE, bottom};
    const pe_ticks y      = axis_ticks(f->y0, f->dy, f->rows, high, 0, f->row_names),
                   values = value_ticks(f, high);
    return (pe_box){EDGE + (f->y_label ? UPRIGHT : 0) + widest(&y) + TICK, top,
                    second_width(f) + EDGE + BAR + TICK + widest(&values) + (f->value_label ? UPRIGHT : 0) +
                        EDGE,
                    bottom};
}

/* ---------------------------------------------------------------- the page ------------------ */

/* The pane that a figure wants, its own title not counted. */
static size pane_size(const pe_figure *f, int columns)
{
    if (!is_map(f))
        return columns ? (size){PANEL_WIDTH, PANEL_HEIGHT - PE_TEXT_LINE}
                       : (size){WIDTH, HEIGHT - 2 * PE_TITLE_LINE};
    const size   frame  = frame_size(f, columns);
    const pe_box m      = margins_of(f, frame.height);
    const double label  = f->x_label ? PE_EM * pe_layout_text_width(f->x_label, strlen(f->x_label)) : 0;
    const double beyond = fmax(label / 2 - frame.width / 2 - fmin(m.left, m.right), 0);
    return (size){m.left + frame.width + m.right + 2 * beyond, m.top + frame.height + m.bottom};
}

static double titles_height(const pe_page_layout *l)
{
    return l->pane_titles ? PE_TEXT_LINE * l->pane_titles + ABOVE_FRAME : 0;
}

/* The title of curves is centred above their plot, which has the key beside it. */
static int page_title(pe_page_layout *l, const pe_figure *f)
{
    const double part = f->kind == PE_CURVES && f->curve_count > 1 ? BESIDE_KEY : 1;
    return pe_layout_wrap(f->title, (part * l->width - 4 * EDGE) / PE_TITLE_EM, l->title);
}

/* Only curves have their title within the plot's own margins, above the labels of their marks. */
static void set_strip(pe_page_layout *l, const pe_figure *f, size pane, int rows)
{
    l->title_lines = page_title(l, f);
    l->has_strip   = f->kind != PE_CURVES;
    const int names_above =
        f->kind == PE_PANELS && f->panels[0].kind == PE_CURVES && f->panels[0].curve_count > 1;
    const double strip = l->has_strip ? PE_TITLE_LINE * (l->title_lines + names_above) + ABOVE_FRAME : 0;
    const double left  = (l->width - pane.width * l->columns) / 2;
    l->first           = (pe_box){left, strip, left + pane.width, strip + pane.height};
    l->height          = ceil(strip + pane.height * rows);
}

static void panels_page(pe_page_layout *l, const pe_figure *f)
{
    size pane = {0, 0};
    char unused[PE_WRAPPED];
    for (int i = 0; i < f->panel_count; i++) {
        const size wanted = pane_size(&f->panels[i], f->panel_columns);
        pane              = (size){fmax(pane.width, wanted.width), fmax(pane.height, wanted.height)};
    }
    if (f->panel_count == 1 && !is_map(&f->panels[0]))
        pane.width = WIDTH;
    for (int i = 0; i < f->panel_count; i++)
        l->pane_titles = (int)fmax(l->pane_titles,
                                   pe_layout_wrap(f->panels[i].title, (pane.width - EDGE) / PE_EM, unused));
    pane.height += titles_height(l);
    l->columns = (int)fmin(fmax(floor(WIDEST_PAGE / pane.width), 1), f->panel_columns);
    l->width   = ceil(fmax(pane.width * l->columns, LEAST_PAGE));
    set_strip(l, f, pane, (f->panel_count + l->columns - 1) / l->columns);
}

void pe_layout_page(pe_page_layout *l, const pe_figure *f)
{
    *l = (pe_page_layout){.columns = 1};
    if (f->kind == PE_PANELS) {
        panels_page(l, f);
        return;
    }
    size pane = pane_size(f, 0);
    if (f->narrow)
        pane.width = LEAST_PAGE;
    l->width = pane.width = ceil(fmax(pane.width, LEAST_PAGE));
    if (f->kind == PE_CURVES) /* title lines beyond the second must not shrink the plot */
        pane.height = (f->narrow ? LOW + PE_TEXT_LINE * ((f->curve_count + 1) / 2) : HEIGHT) +
                      PE_TITLE_LINE * fmax(page_title(l, f) - 2, 0);
    set_strip(l, f, pane, 1);
}

/* The frame, in the middle of its pane; maps have their own size, other grids fill the pane. */
static void place_frame(pe_pane *p, const pe_page_layout *l, const pe_figure *f, int columns)
{
    const double titles = titles_height(l);
    const double wide = p->all.right - p->all.left, high = p->all.bottom - p->all.top - titles;
    size         frame = frame_size(f, columns);
    const pe_box m     = margins_of(f, is_map(f) ? frame.height : 0.8 * high);
    if (!is_map(f))
        frame = (size){wide - m.left - m.right, high - m.top - m.bottom};
    const double left = p->all.left + (wide - m.left - frame.width - m.right) / 2 + m.left;
    const double top  = p->all.top + titles + m.top;
    p->frame = (pe_box){floor(left), floor(top), floor(left) + frame.width, floor(top) + frame.height};
}

static void place_bar(pe_pane *p, const pe_figure *f)
{
    const double left = p->frame.right + second_width(f) + EDGE;
    p->values         = value_ticks(f, p->frame.bottom - p->frame.top);
    p->bar            = (pe_box){left, p->frame.top, left + BAR, p->frame.bottom};
    p->bar_label      = p->bar.right + TICK + widest(&p->values) + UPRIGHT / 2;
    p->second_label   = p->frame.right + second_width(f) - UPRIGHT / 2;
    p->x              = axis_ticks(f->x0, f->dx, f->cols, p->frame.right - p->frame.left, 1, f->col_names);
    p->y              = axis_ticks(f->y0, f->dy, f->rows, p->frame.bottom - p->frame.top, 0, f->row_names);
}

void pe_layout_pane(pe_pane *p, const pe_page_layout *l, const pe_figure *f, int index)
{
    const double wide = l->first.right - l->first.left, high = l->first.bottom - l->first.top;
    const double left         = l->first.left + wide * (index % l->columns),
                 top          = l->first.top + high * (index / l->columns);
    const int        is_panel = f->kind == PE_PANELS;
    const pe_figure *own      = is_panel ? &f->panels[index] : f;
    *p                        = (pe_pane){.all = {left, top, left + wide, top + high}};
    pe_layout_wrap(own->title, (wide - EDGE) / PE_EM, p->title);
    if (!pe_layout_frames(own))
        return;
    place_frame(p, l, own, is_panel ? f->panel_columns : 0);
    if (own->kind == PE_GRID)
        place_bar(p, own);
}

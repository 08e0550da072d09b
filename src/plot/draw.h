/* SPDX-License-Identifier: MIT */
/*
 * draw.h: what the two ways to draw a figure share: how to fail, colours, the script for gnuplot, and where
 * everything stands on a page, in pixels from its upper left corner
 *
 * A page is a strip with the title, and below it panes of one size, row by row: one, or one for each panel.
 * layout.c decides the frame of a grid or a set of arrows in its pane; curves get the pane, and gnuplot finds
 * their frame.
 */
#ifndef PE_PLOT_DRAW_H
#define PE_PLOT_DRAW_H

#include "base/shared/compiler.h"
#include "plot/plot.h"

#include <stdarg.h>
#include <stdint.h>

/* Fills the caller's posenc_error and returns its status, so that a check is one statement. The sentence says
   what is wrong, and how to fix it. */
PE_PRINTF(3, 4)
static inline posenc_status pe_draw_fail(posenc_error *err, posenc_status status, const char *format, ...)
{
    if (err) {
        va_list list;
        va_start(list, format);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, list);
        va_end(list);
    }
    return status;
}

typedef struct pe_rgb {
    uint8_t r, g, b;
} pe_rgb;

/* Scale at x in [0,1]; outside is cut; NaN is grey. */
pe_rgb pe_colours_on_scale(int signed_scale, double x);
/* The stops of a scale, evenly spread: for gnuplot's palette. Returns their count. */
int pe_colours_stops(int signed_scale, const pe_rgb **stops);
/* Colour of curve `index` of the figure. */
pe_rgb pe_colours_of_curve(const pe_figure *figure, int index);
/* The smallest and the largest number in the figures: finite values of grids, curves with their bands. */
void pe_colours_extremes(const pe_figure *figures, int count, double *low, double *high);
/* The range of values that the scale covers: symmetric about zero if signed; never empty. */
void pe_colours_range(const pe_figure *figure, double *low, double *high);

/* gnuplot scales by the inverse of a range. */
#define PE_LEAST_DRAWN 1e-290
/* Widens a range whose bounds would be one number in gnuplot, where an empty range is an error: by 1 % of
   them, about zero by 1. Bounds beyond PE_MOST_DRAWN are cut. Was it widened? */
int pe_colours_widen(double *low, double *high);
/* pe_colours_range as gnuplot can draw it. */
void pe_colours_drawn(const pe_figure *figure, double *low, double *high);

/* Writes the script that draws figure. `terminal` is a whole "set terminal" line, which finds the size that
   suits the figure in the variables `width` and `height` (pixels). */
void pe_script_write(FILE *to, const pe_figure *figure, const char *terminal);

/* The terminal's tables: terminal_table.c. Columns that a text takes on a screen. */
void pe_terminal_table(FILE *to, const pe_figure *figure, int columns, int colour);
int  pe_terminal_columns(const char *text);
/* The text in lines that fit, each with a line end. */
void pe_terminal_lines(FILE *to, const char *text, int indent, int columns);

/* ---------------------------------------------------------------- layout -------------------- */

enum { PE_WRAPPED = 600 };

/* Width of the first n bytes, in em. */
double pe_layout_text_width(const char *text, size_t n);

/* The text with a line break wherever a line would pass `width` em: at blanks, or after ':' ',' '/' '+' in a
   long word, or after '_', or, if there is none of these, anywhere. Its own breaks stay. Returns the number
   of lines. */
int pe_layout_wrap(const char *text, double width, char to[PE_WRAPPED]);

/* Heights of letters, "em", for the fonts that gnuplot.c sets, and of lines. */
enum { PE_EM = 17, PE_TITLE_EM = 22, PE_TEXT_LINE = 21, PE_TITLE_LINE = 27 };

typedef struct pe_box {
    double left, top, right, bottom;
} pe_box;

typedef struct pe_page_layout {
    double width, height; /* of the page */
    int    columns, title_lines, has_strip;
    char   title[PE_WRAPPED];
    pe_box first;       /* the first pane */
    int    pane_titles; /* lines above a frame, so that frames stand in line */
} pe_page_layout;

/* Numbers at an axis: first, first + step, ...; or names, each `stride` cells. */
typedef struct pe_ticks {
    double             first, step;
    int                count, decimals;
    const char *const *names; /* NULL: numbers */
    int                stride;
} pe_ticks;

/* A pane whose frame is decided here. */
typedef struct pe_pane {
    pe_box   all, frame, bar;         /* bar: the scale of colours, of a grid */
    double   bar_label, second_label; /* the middle of these upright texts */
    pe_ticks x, y, values;            /* of a grid */
    char     title[PE_WRAPPED];
} pe_pane;

/* The number in a cell of a table. */
enum { PE_CELL_TEXT = 32, PE_CELL_EM = 14 };
void pe_layout_cell_text(const pe_figure *f, int64_t index, char text[PE_CELL_TEXT]);

void pe_layout_page(pe_page_layout *l, const pe_figure *f);

/* Is its frame decided here? */
int  pe_layout_frames(const pe_figure *f);
void pe_layout_pane(pe_pane *p, const pe_page_layout *l, const pe_figure *f, int index);

/* Ticks in [low, high], at steps of 1, 2 or 5 times a power of ten, at least 1 if `whole`, the largest number
   that leaves `least` of the axis' `length` between two, or space for their own texts if those lie side by
   side. */
pe_ticks pe_layout_ticks(double low, double high, double length, double least, int whole, int side_by_side);
/* The text of a tick; returns its width in em. A long name is cut. */
enum { PE_TICK_TEXT = 64 };
double pe_layout_tick_text(const pe_ticks *t, int index, char text[PE_TICK_TEXT]);

#endif

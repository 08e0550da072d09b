/* SPDX-License-Identifier: MIT */
/*
 * layout.h: where on a page everything of a picture stands, in pixels from its upper left corner
 *
 * A page is a strip with the title, and below it panes of one size, row by row: one, or one for each panel.
 * In its pane a grid or a set of arrows has a frame of a size decided here; curves get the pane, and gnuplot
 * finds their frame.
 */
#ifndef PE_PLOT_LAYOUT_H
#define PE_PLOT_LAYOUT_H

#include "plot/plot.h"

#include <stddef.h>

enum { PE_WRAPPED = 600 };

/* Of the first n bytes, in em. */
double pe_text_width(const char *text, size_t n);

/* The text with a line break wherever a line would pass `width` em: at blanks, or behind ':' ',' '/' '+' of a
   long word, or behind '_', or, if there is none of these, anywhere. Breaks of its own stay. Returns the
   number of lines. */
int pe_text_wrap(const char *text, double width, char to[PE_WRAPPED]);

/* Heights of letters, "em", as gnuplot.c sets the fonts, and of lines. */
enum { PE_EM = 17, PE_TITLE_EM = 22, PE_TEXT_LINE = 21, PE_TITLE_LINE = 27 };

typedef struct pe_box {
    double left, top, right, bottom;
} pe_box;

typedef struct pe_layout {
    double width, height; /* of the page */
    int    columns, title_lines, has_strip;
    char   title[PE_WRAPPED];
    pe_box first;       /* the first pane */
    int    pane_titles; /* lines above a frame, so that frames stand in line */
} pe_layout;

/* Numbers at an axis: first, first + step, ... */
typedef struct pe_ticks {
    double first, step;
    int    count, decimals;
} pe_ticks;

/* A pane whose frame is decided here. */
typedef struct pe_pane {
    pe_box   all, frame, bar;         /* bar: the scale of colours, of a grid */
    double   bar_label, second_label; /* the middle of these upright texts */
    pe_ticks x, y, values;            /* of a grid */
    char     title[PE_WRAPPED];
} pe_pane;

void pe_layout_page(pe_layout *l, const pe_figure *f);

/* Is its frame decided here? */
int  pe_layout_frames(const pe_figure *f);
void pe_layout_pane(pe_pane *p, const pe_layout *l, const pe_figure *f, int index);

/* Ticks in [low, high], at steps of 1, 2 or 5 times a power of ten, at least 1 if `whole`, the largest number
   that leaves `least` of the axis' `length` between two, or room for their own texts if those lie side by
   side. */
pe_ticks pe_layout_ticks(double low, double high, double length, double least, int whole, int side_by_side);
/* The text of a tick; returns its width in em. */
enum { PE_TICK_TEXT = 32 };
double pe_layout_tick_text(const pe_ticks *t, int index, char text[PE_TICK_TEXT]);

#endif

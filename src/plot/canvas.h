/* SPDX-License-Identifier: MIT */
/*
 * canvas.h: a figure as pixels, for the terminal
 *
 * Pixels know what lies on them, a value of a grid or the number of a curve; how that is shown is
 * terminal.c's affair.
 */
#ifndef PE_PLOT_CANVAS_H
#define PE_PLOT_CANVAS_H

#include "plot/plot.h"

/* `value` in [0,1] or NaN for nothing (grid); `curve` and `band` = index + 1, 0 for nothing (curves). */
typedef struct pe_canvas {
    int     width, height, per_cell; /* pixels, and how many of them one above the other share a character */
    double *value;
    int    *curve, *band;
} pe_canvas;

/* Whether there was memory; free in either case. */
int  pe_canvas_create(pe_canvas *c, int width, int cells_high, int colour);
void pe_canvas_free(pe_canvas *c);

/* What the axes span, in drawn units (logarithms where the axis is logarithmic). */
typedef struct pe_span {
    double x0, x1, y0, y1;
} pe_span;

pe_span pe_canvas_span(const pe_figure *f);
double  pe_drawn(double v, int is_log);

void pe_canvas_grid(pe_canvas *c, const pe_figure *f, double low, double high);
void pe_canvas_curves(pe_canvas *c, const pe_figure *f, const pe_span *s);
void pe_canvas_arrows(pe_canvas *c, const pe_figure *f, const pe_span *s);

#endif

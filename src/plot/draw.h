/* SPDX-License-Identifier: MIT */
/*
 * draw.h: what those who draw a figure share: how to fail, colours, and the script for gnuplot
 *
 * One place for the colours of gnuplot and the terminal: two scales and one palette, all readable with any
 * kind of colour blindness: viridis for magnitudes, blue-white-red for signed values (its lightness says the
 * size, its hue the sign), and a palette for unordered curves.
 */
#ifndef PE_PLOT_DRAW_H
#define PE_PLOT_DRAW_H

#include "plot/plot.h"

#include <stdarg.h>
#include <stdint.h>

/* Fills the caller's posenc_error and returns its status, so that a check is one statement. The sentence
   names what is wrong, and the mend. */
__attribute__((format(printf, 3, 4))) static inline posenc_status
pe_plot_fail(posenc_error *err, posenc_status status, const char *format, ...)
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
pe_rgb pe_scale_colour(int signed_scale, double x);
/* The stops of a scale, evenly spread: for gnuplot's palette. Returns their count. */
int pe_scale_stops(int signed_scale, const pe_rgb **stops);
/* Colour of curve `index` of the figure. */
pe_rgb pe_curve_colour(const pe_figure *figure, int index);
/* The least and the largest number of figures: finite values of grids, curves with their bands. */
void pe_span(const pe_figure *figures, int count, double *low, double *high);
/* The range of values that the scale covers: symmetric about zero if signed; never empty. */
void pe_value_range(const pe_figure *figure, double *low, double *high);

/* Writes the script that draws figure. `terminal` is a whole "set terminal" line, which finds the size that
   suits the figure in the variables `width` and `height` (pixels). script.c */
void pe_gnuplot_script(FILE *to, const pe_figure *figure, const char *terminal);

#endif

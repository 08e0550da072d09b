/* SPDX-License-Identifier: MIT */
/*
 * colours.h: the colours of every picture, one place for gnuplot and the terminal
 *
 * Two scales and one palette, all readable with any kind of colour blindness: viridis for magnitudes,
 * blue-white-red for signed values (its lightness says the size, its hue the sign), and a palette for
 * unordered curves.
 */
#ifndef PE_PLOT_COLOURS_H
#define PE_PLOT_COLOURS_H

#include "plot/plot.h"

#include <stdint.h>

typedef struct pe_rgb {
    uint8_t r, g, b;
} pe_rgb;

/* Scale at x in [0,1]; outside is cut; NaN is grey. */
pe_rgb pe_scale_colour(int signed_scale, double x);
/* The stops of a scale, evenly spread: for gnuplot's palette. Returns their count. */
int pe_scale_stops(int signed_scale, const pe_rgb **stops);
/* Colour of curve `index` of the figure. */
pe_rgb pe_curve_colour(const pe_figure *figure, int index);
/* The range of values that the scale covers: symmetric about zero if signed; never empty. */
void pe_value_range(const pe_figure *figure, double *low, double *high);

#endif

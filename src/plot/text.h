/* SPDX-License-Identifier: MIT */
/*
 * text.h: how wide a text is, and where its lines end
 *
 * Nobody asks gnuplot how wide a text came out, so it is estimated from the letters, in em, after a wide font
 * (DejaVu Sans): other fonts leave room.
 */
#ifndef PE_PLOT_TEXT_H
#define PE_PLOT_TEXT_H

#include <stddef.h>

enum { PE_WRAPPED = 600 };

/* Of the first n bytes, in em. */
double pe_text_width(const char *text, size_t n);

/* The text with a line break wherever a line would pass `width` em: at blanks, or behind ':' ',' '/' '+' of a
   long word, or behind '_', or, if there is none of these, anywhere. Breaks of its own stay. Returns the
   number of lines. */
int pe_text_wrap(const char *text, double width, char to[PE_WRAPPED]);

#endif

/* SPDX-License-Identifier: MIT */
/* page.h: what all pages of HTML share. */
#ifndef PE_SHOW_PAGE_H
#define PE_SHOW_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* The first n bytes of a text, escaped. */
void pe_page_escape(FILE *to, const char *text, size_t n);

/* The style of all pages (style.css), for their heads. */
void pe_page_style(FILE *to);

/* An SVG document as a part of a page: without XML's first lines, its title (for those who cannot see it)
 * replaced. */
void pe_page_drawing(FILE *to, const char *svg, const char *title);

#endif

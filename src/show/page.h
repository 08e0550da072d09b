/* SPDX-License-Identifier: MIT */
/* page.h: what all pages of HTML share. */
#ifndef PE_SHOW_PAGE_H
#define PE_SHOW_PAGE_H

#include <stddef.h>
#include <stdio.h>

/* The first n bytes of a text, escaped. */
void pe_page_escape(FILE *to, const char *text, size_t n);

#endif

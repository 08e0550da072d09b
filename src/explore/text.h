/* SPDX-License-Identifier: MIT */
/* text.h: JSON that the page reads; figures as numbers in memory. */
#ifndef PE_EXPLORE_TEXT_H
#define PE_EXPLORE_TEXT_H

#include "base/shared/compiler.h"
#include "plot/plot.h"

#include <stddef.h>

/* A text that grows; memory that ends leaves it NULL. Begin with {0}. */
typedef struct pe_explore_text {
    char  *text;
    size_t used, size;
    int    failed;
} pe_explore_text;

PE_PRINTF(2, 3)
void pe_explore_put(pe_explore_text *t, const char *format, ...);
/* "...", escaped; null for NULL. */
void pe_explore_string(pe_explore_text *t, const char *text);
/* {"kind", "title", ...}: the members of pe_figure under short names, arrays as addresses, the range of its
 * colours. */
void pe_explore_figure(pe_explore_text *t, const pe_figure *f);
/* The text, malloc'd; NULL where memory ended. */
char *pe_explore_finish(pe_explore_text *t);

#endif

/* SPDX-License-Identifier: MIT */
/* page.c: what all pages of HTML share. Contract: page.h. */
#include "show/page.h"

void pe_page_escape(FILE *to, const char *text, size_t n)
{
    for (const char *end = text + n; text < end; text++)
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

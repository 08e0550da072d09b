/* SPDX-License-Identifier: MIT */
/* page.c: what all pages of HTML share. Contract: page.h. */
#include "show/page.h"

#include <string.h>

static const char style[] = {
#include "show/style.inc"
    0};

void pe_page_escape(FILE *to, const char *text, size_t n)
{
    for (const char *end = text + n; text < end; text++)
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default:
            fputc(((unsigned char)*text < ' ' && !strchr("\t\n\r", *text)) || *text == 0x7f ? '?' : *text,
                  to);
        }
}

void pe_page_style(FILE *to)
{
    fprintf(to, "<style>\n%s</style>\n", style);
}

void pe_page_drawing(FILE *to, const char *svg, const char *title)
{
    static const char open[] = "<title>", close[] = "</title>";
    const char       *at = strstr(svg, "<svg"), *from = at ? strstr(at, open) : NULL,
               *end = from ? strstr(from, close) : NULL;
    if (!end)
        return;
    fwrite(at, 1, (size_t)(from - at) + strlen(open), to);
    pe_page_escape(to, title, strlen(title));
    fputs(end, to);
}

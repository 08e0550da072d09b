/* SPDX-License-Identifier: MIT */
/* html.c: text, elements and tables of a page. Contract: html.h. */
#include "train/html.h"

#include <stdarg.h>
#include <string.h>

void pe_html_text(FILE *to, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*s, to);
        }
}

void pe_html_element(FILE *to, const char *tag, const char *format, ...)
{
    char    content[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(content, sizeof content, format, values);
    va_end(values);
    fprintf(to, "<%s>", tag);
    pe_html_text(to, content);
    fprintf(to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

void pe_html_notes(FILE *to, const char *lines)
{
    while (*lines) {
        const size_t n = strcspn(lines, "\n");
        pe_html_element(to, "p class=note", "%.*s", (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

static void table_head(FILE *to, const pe_table *t, int details)
{
    fputs("<thead><tr>", to);
    for (int k = 0; k < t->column_count; k++) {
        if (t->columns[k].is_detail && !details)
            continue;
        fprintf(to, "<th scope=col%s title=\"", t->columns[k].is_text ? " class=t" : "");
        pe_html_text(to, t->columns[k].meaning);
        fputs("\">", to);
        pe_html_text(to, t->columns[k].head);
        fputs("</th>", to);
    }
    fputs("</tr></thead>\n", to);
}

void pe_html_table(FILE *to, const pe_table *t, int details)
{
    fputs("<div class=wide><table>\n", to);
    table_head(to, t, details);
    fputs("<tbody>\n", to);
    for (int row = 0; row < t->row_count; row++) {
        fputs("<tr>", to);
        for (int k = 0; k < t->column_count; k++) {
            if (t->columns[k].is_detail && !details)
                continue;
            fprintf(to, k ? "<td%s>" : "<th scope=row%s>", t->columns[k].is_text ? " class=t" : "");
            pe_html_text(to, pe_table_cell(t, row, k));
            fputs(k ? "</td>" : "</th>", to);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

/* SPDX-License-Identifier: MIT */
/* html.c: text, elements and tables of a page, and its parts from the template. Contract: report.h. */
#include "train/report/report.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum { TEXT = 8192 };

/* ---------------------------------------------------------------- texts --------------------- */

void pe_html_escape(FILE *to, const char *s, size_t n)
{
    for (const char *end = s + n; s < end; s++)
        switch (*s) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*s, to);
        }
}

void pe_html_text(FILE *to, const char *s)
{
    pe_words_write(to, s, strlen(s));
}

void pe_html_element(FILE *to, const char *tag, const char *format, ...)
{
    char    content[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(content, sizeof content, format, values);
    va_end(values);
    fprintf(to, "<%s>", tag);
    if (strstr(tag, "translate=\"no\"") || !strcmp(tag, "code"))
        pe_html_escape(to, content, strlen(content));
    else
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

/* ---------------------------------------------------------------- tables -------------------- */

static void attribute(FILE *to, const char *name, const char *text)
{
    fprintf(to, " %s=\"", name);
    pe_html_text(to, text);
    fputc('"', to);
}

/* Of a column, and of what a cell has besides. */
static void class_of(FILE *to, int is_text, const char *kind)
{
    const char *column = is_text & PE_WIDE ? "w" : is_text & PE_OURS ? "ours" : is_text & PE_TEXT ? "t" : "";
    if (kind)
        fprintf(to, " class=\"%s%s%s\"", column, *column ? " " : "", kind);
    else if (*column)
        fprintf(to, " class=%s", column);
}

/* The text, and below or beside it the rest: small, or of that kind. */
static void content(FILE *to, const char *text, const char *kind)
{
    const size_t n = strcspn(text, "\n\t");
    pe_words_write(to, text, n);
    if (!text[n])
        return;
    fputs(text[n] == '\n' ? "<br>" : " ", to);
    if (kind)
        fprintf(to, "<b class=\"%s\">", kind);
    else
        fputs("<small>", to);
    pe_html_text(to, text + n + 1);
    fputs(kind ? "</b>" : "</small>", to);
}

/* rows: 2 where a head stands beside groups. */
static void column_head(FILE *to, const pe_column *c, int rows)
{
    fputs("<th scope=col", to);
    class_of(to, c->is_text, NULL);
    if (rows > 1)
        fprintf(to, " rowspan=%d", rows);
    if (c->meaning)
        attribute(to, "title", c->meaning);
    fputs(c->is_text & PE_LINK ? "><a href=\"#task-" : ">", to);
    if (c->is_text & PE_LINK)
        fprintf(to, "%s\">", c->head);
    content(to, c->head, NULL);
    fputs(c->is_text & PE_LINK ? "</a></th>" : "</th>", to);
}

/* The group of a column, or NULL. */
static const pe_group *group_of(const pe_table *t, int column)
{
    for (int i = 0; i < t->group_count; i++)
        if (column >= t->groups[i].first && column < t->groups[i].first + t->groups[i].count)
            return &t->groups[i];
    return NULL;
}

/* The first line of heads: groups, and columns without one; without groups it is the only one. */
static void upper_heads(FILE *to, const pe_table *t, int details)
{
    for (int k = 0; k < t->column_count; k++) {
        const pe_group *g = group_of(t, k);
        if (!g && (details || !t->columns[k].is_detail))
            column_head(to, &t->columns[k], t->group_count ? 2 : 1);
        else if (g && g->first == k) {
            fprintf(to, "<th scope=col colspan=%d", g->count);
            class_of(to, t->columns[k].is_text & PE_OURS, NULL);
            fputc('>', to);
            pe_html_text(to, g->head);
            fputs("</th>", to);
        }
    }
}

static void cell(FILE *to, const pe_table *t, int row, int column)
{
    const pe_field *f       = pe_table_at(t, row, column);
    const char     *text    = pe_table_cell(t, row, column);
    const int       is_text = t->columns[column].is_text;
    if (f->rows < 0)
        return;
    fputs(column ? "<td" : "<th scope=row", to);
    class_of(to, is_text, strchr(text, '\n') ? NULL : f->kind);
    if (f->rows > 1)
        fprintf(to, " rowspan=%d", f->rows);
    if (*f->ground)
        fprintf(to, " style=\"background:%s\"", f->ground);
    if (f->hint)
        attribute(to, "title", f->hint);
    fputs(is_text & PE_NAMES ? " translate=\"no\">" : ">", to);
    if (is_text & PE_NAMES)
        pe_html_escape(to, text, strlen(text));
    else
        content(to, text, f->kind);
    fputs(column ? "</td>" : "</th>", to);
}

void pe_html_table(FILE *to, const pe_table *t, const char *class, int details)
{
    fprintf(to, "<div class=wide><table%s%s>\n<thead><tr>", *class ? " class=" : "", class);
    upper_heads(to, t, details);
    fputs(t->group_count ? "</tr>\n<tr>" : "", to);
    for (int k = 0; t->group_count && k < t->column_count; k++)
        if (group_of(t, k))
            column_head(to, &t->columns[k], 1);
    fputs("</tr></thead>\n<tbody>\n", to);
    for (int row = 0; row < t->row_count; row++) {
        fputs("<tr>", to);
        for (int k = 0; k < t->column_count; k++)
            if (details || !t->columns[k].is_detail)
                cell(to, t, row, k);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

/* ---------------------------------------------------------------- template ------------------ */

static const char template[] = {
#include "train/report_html.inc"
    0};

/* What is being read of a part: the text since the last tag, or a tag. */
typedef struct reading {
    const pe_page *p;
    char           text[TEXT];
    size_t         used;
    int            in_tag, is_name; /* is_name: the text is not to be translated */
} reading;

/* The text since the last tag: the space around it as it is, line breaks in it as spaces. */
static void end_text(reading *r)
{
    static const char space[] = " \n";
    size_t            end     = r->used;
    r->text[r->used]          = 0;
    const size_t start        = strspn(r->text, space);
    while (end > start && strchr(space, r->text[end - 1]))
        end--;
    for (size_t i = start; i < end; i++)
        r->text[i] = r->text[i] == '\n' ? ' ' : r->text[i];
    fwrite(r->text, 1, start, r->p->to);
    (r->is_name ? pe_html_escape : pe_words_write)(r->p->to, r->text + start, end - start);
    fwrite(r->text + end, 1, r->used - end, r->p->to);
    r->used = 0;
}

static void put(reading *r, const char *s, size_t n)
{
    if (r->in_tag)
        fwrite(s, 1, n, r->p->to);
    else {
        n = n < TEXT - 1 - r->used ? n : TEXT - 1 - r->used;
        memcpy(r->text + r->used, s, n);
        r->used += n;
    }
}

/* The value of that name. */
static const char *value_of(const pe_page *p, const char *name, size_t n)
{
    for (int i = 0; i < p->count; i++)
        if (strlen(p->values[i].name) == n && !strncmp(p->values[i].name, name, n))
            return p->values[i].text;
    assert(!"the template names a value that was not set");
    return "";
}

/* Behind {{ at `at`: a value, or whether what follows stands. Returns where it goes on. */
static const char *hole(reading *r, const char *at)
{
    const char  *end = strstr(at, "}}"), kind = *at;
    const size_t sign  = kind == '#' || kind == '^';
    const char  *value = kind == '/' ? "" : value_of(r->p, at + sign, (size_t)(end - at) - sign);
    if (!sign)
        put(r, value, strlen(value));
    else if ((kind == '#') != (*value != 0))
        end = strstr(end, "{{/}}") + 3;
    return end + 2;
}

/* Where a tag begins; a style goes on to its end. Returns where to go on. */
static const char *open_tag(reading *r, const char *at)
{
    const char *end = strncmp(at, "<style", 6) ? at + 1 : strstr(at, "</style");
    const char *no  = strstr(at, "translate=\"no\"");
    end_text(r);
    r->in_tag  = 1;
    r->is_name = !strncmp(at, "<pre", 4) || !strncmp(at, "<code", 5) || (no && no < strchr(at, '>'));
    put(r, at, (size_t)(end - at));
    return end;
}

void pe_page_part(const pe_page *p, const char *part)
{
    static const char sign[] = "<!-- ";
    char              head[64];
    reading           r = {.p = p};
    snprintf(head, sizeof head, "%s%s -->\n", sign, part);
    const char *at = strstr(template, head);
    assert(at);
    at += strlen(head);
    while (*at && strncmp(at, sign, strlen(sign)) != 0) {
        if (!strncmp(at, "{{", 2))
            at = hole(&r, at + 2);
        else if (*at == '<')
            at = open_tag(&r, at);
        else {
            put(&r, at, 1);
            r.in_tag &= *at++ != '>';
        }
    }
    end_text(&r);
}

void pe_page_set(pe_page *p, const char *name, const char *format, ...)
{
    int     i = 0;
    va_list values;
    while (i < p->count && strcmp(p->values[i].name, name) != 0)
        i++;
    assert(i < PE_VALUES);
    p->values[i].name = name;
    p->count += i == p->count;
    va_start(values, format);
    vsnprintf(p->values[i].text, PE_VALUE, format, values);
    va_end(values);
}

/* SPDX-License-Identifier: MIT */
/* html.c: text, elements and tables of a page, and its parts from the template. Contract: report.h. */
#include "train/report/report.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

enum { TEXT = 8192 };

/* ---------------------------------------------------------------- texts --------------------- */

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
        pe_page_escape(to, content, strlen(content));
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

void pe_html_paper(FILE *to, const char *source)
{
    const char *number = strstr(source, "arXiv:"), *rest = source;
    fputs("<cite translate=\"no\">", to);
    if (number) {
        const char  *id = number + strlen("arXiv:");
        const size_t n  = strspn(id, "0123456789.");
        pe_page_escape(to, source, (size_t)(number - source));
        fprintf(to, "<a href=\"https://arxiv.org/abs/%.*s\">arXiv:%.*s</a>", (int)n, id, (int)n, id);
        rest = id + n;
    }
    pe_page_escape(to, rest, strlen(rest));
    fputs("</cite>", to);
}

const char *pe_html_count(char text[48], int64_t n, const char *what)
{
    snprintf(text, 48, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
    return text;
}

/* ---------------------------------------------------------------- tables -------------------- */

static void write_attribute(FILE *to, const char *name, const char *text)
{
    fprintf(to, " %s=\"", name);
    pe_html_text(to, text);
    fputc('"', to);
}

/* Of a column, and what a cell has in addition. */
static void write_class(FILE *to, int is_text, const char *kind)
{
    const char *column = is_text & PE_WIDE ? "w" : is_text & PE_OURS ? "ours" : is_text & PE_TEXT ? "t" : "";
    if (kind)
        fprintf(to, " class=\"%s%s%s\"", column, *column ? " " : "", kind);
    else if (*column)
        fprintf(to, " class=%s", column);
}

/* The text, and below or after it the rest: small, or of that kind. */
static void write_content(FILE *to, const char *text, const char *kind)
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

/* rows: 2 for a head among groups. */
static void write_head(FILE *to, const pe_column *c, int rows)
{
    fputs("<th scope=col", to);
    write_class(to, c->is_text, NULL);
    if (rows > 1)
        fprintf(to, " rowspan=%d", rows);
    if (c->meaning)
        write_attribute(to, "title", c->meaning);
    fputs(c->is_text & PE_LINK ? "><a href=\"#task-" : ">", to);
    if (c->is_text & PE_LINK)
        fprintf(to, "%s\">", c->head);
    write_content(to, c->head, NULL);
    fputs(c->is_text & PE_LINK ? "</a></th>" : "</th>", to);
}

/* The group of a column, or NULL. */
static const pe_column_group *group_of(const pe_table *t, int column)
{
    for (int i = 0; i < t->group_count; i++)
        if (column >= t->groups[i].first && column < t->groups[i].first + t->groups[i].count)
            return &t->groups[i];
    return NULL;
}

/* The first line of heads: groups, and columns without one; without groups it is the only one. */
static void write_heads(FILE *to, const pe_table *t, int details)
{
    for (int k = 0; k < t->column_count; k++) {
        const pe_column_group *g = group_of(t, k);
        if (!g && (details || !t->columns[k].is_detail))
            write_head(to, &t->columns[k], t->group_count ? 2 : 1);
        else if (g && g->first == k) {
            fprintf(to, "<th scope=col colspan=%d", g->count);
            write_class(to, t->columns[k].is_text & PE_OURS, NULL);
            fputc('>', to);
            pe_html_text(to, g->head);
            fputs("</th>", to);
        }
    }
}

static void write_list(FILE *to, const char *text)
{
    for (const char *end; (end = strstr(text, ", ")); text = end + 2) {
        pe_words_write(to, text, (size_t)(end - text));
        fputs(", ", to);
    }
    pe_html_text(to, text);
}

static void write_cell(FILE *to, const pe_table *t, int row, int column)
{
    const pe_field *f       = pe_table_at(t, row, column);
    const char     *text    = pe_table_cell(t, row, column);
    const int       is_text = t->columns[column].is_text;
    if (f->rows < 0)
        return;
    fputs(column ? "<td" : "<th scope=row", to);
    write_class(to, is_text, strchr(text, '\n') ? NULL : f->kind);
    if (f->rows > 1)
        fprintf(to, " rowspan=%d", f->rows);
    if (*f->ground)
        fprintf(to, " style=\"background:%s\"", f->ground);
    if (f->hint)
        write_attribute(to, "title", f->hint);
    fputs(is_text & PE_NAMES ? " translate=\"no\">" : ">", to);
    if (is_text & PE_NAMES)
        pe_page_escape(to, text, strlen(text));
    else if (is_text & PE_ITEMS)
        write_list(to, text);
    else
        write_content(to, text, f->kind);
    fputs(column ? "</td>" : "</th>", to);
}

void pe_html_table(FILE *to, const pe_table *t, const char *class, int details)
{
    fprintf(to, "<div class=wide><table%s%s>\n<thead><tr>", *class ? " class=" : "", class);
    write_heads(to, t, details);
    fputs(t->group_count ? "</tr>\n<tr>" : "", to);
    for (int k = 0; t->group_count && k < t->column_count; k++)
        if (group_of(t, k))
            write_head(to, &t->columns[k], 1);
    fputs("</tr></thead>\n<tbody>\n", to);
    for (int row = 0; row < t->row_count; row++) {
        fputs("<tr>", to);
        for (int k = 0; k < t->column_count; k++)
            if (details || !t->columns[k].is_detail)
                write_cell(to, t, row, k);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

/* ---------------------------------------------------------------- template ------------------ */

static const char template[] = {
#include "train/report_html.inc"
    0};

/* What is being read of a part: the text since the last tag, or a tag. */
typedef struct part_reader {
    const pe_page *p;
    char           text[TEXT];
    size_t         used;
    int            in_tag, is_name; /* is_name: the text is not to be translated */
} part_reader;

/* The text since the last tag: the space around it as it is, line breaks in it as spaces. */
static void end_text(part_reader *r)
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
    (r->is_name ? pe_page_escape : pe_words_write)(r->p->to, r->text + start, end - start);
    fwrite(r->text + end, 1, r->used - end, r->p->to);
    r->used = 0;
}

static void put_text(part_reader *r, const char *s, size_t n)
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

/* After {{ at `at`: a value, or whether what follows stands. Returns where it goes on. */
static const char *read_hole(part_reader *r, const char *at)
{
    const char  *end = strstr(at, "}}"), kind = *at;
    const size_t sign  = kind == '#' || kind == '^';
    const char  *value = kind == '/' ? "" : value_of(r->p, at + sign, (size_t)(end - at) - sign);
    if (!sign)
        put_text(r, value, strlen(value));
    else if ((kind == '#') != (*value != 0))
        end = strstr(end, "{{/}}") + 3;
    return end + 2;
}

/* Where a tag begins; a style goes on to its end. Returns where to go on. */
static const char *read_tag(part_reader *r, const char *at)
{
    const char *end = strncmp(at, "<style", 6) ? at + 1 : strstr(at, "</style");
    const char *no  = strstr(at, "translate=\"no\"");
    end_text(r);
    r->in_tag  = 1;
    r->is_name = !strncmp(at, "<pre", 4) || !strncmp(at, "<code", 5) || (no && no < strchr(at, '>'));
    put_text(r, at, (size_t)(end - at));
    return end;
}

void pe_html_part(const pe_page *p, const char *part)
{
    static const char sign[] = "<!-- ";
    char              head[64];
    part_reader       r = {.p = p};
    snprintf(head, sizeof head, "%s%s -->\n", sign, part);
    const char *at = strstr(template, head);
    assert(at);
    at += strlen(head);
    while (*at && strncmp(at, sign, strlen(sign)) != 0) {
        if (!strncmp(at, "{{", 2))
            at = read_hole(&r, at + 2);
        else if (*at == '<')
            at = read_tag(&r, at);
        else {
            put_text(&r, at, 1);
            r.in_tag &= *at++ != '>';
        }
    }
    end_text(&r);
}

void pe_html_set(pe_page *p, const char *name, const char *format, ...)
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

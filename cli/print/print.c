/* SPDX-License-Identifier: MIT */
/*
 * print.c: tables of text cells on the terminal, and values as JSON
 *
 * Every column is as wide as its widest cell, two spaces apart, as long as the lines fit the terminal. Where
 * they do not, columns of prose (PE_WIDE) wrap; and where that does not suffice, the columns that are too
 * many follow below, behind the first one again. A long SPEC, there or in prose, goes on in a next line where
 * one of its settings or parts ends, if the column beside it would not fit else. Nothing is cut; programs
 * should read the JSON.
 */
#include "cli/print/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, MOST_COLUMNS = 64 };

/* How a table becomes lines. Row -1 is the head. */
typedef struct layout {
    const pe_table *t;
    int             page;                /* characters of a line */
    int             indent;              /* blanks before it, which are not counted there */
    int             keys;                /* columns that begin every line */
    int             width[MOST_COLUMNS]; /* of each column; 0: a detail, which is not shown */
} layout;

static const char *cell_of(const pe_table *t, int row, int column)
{
    return row < 0 ? t->columns[column].head : pe_table_cell(t, row, column);
}

/* How much of a text stays together: all of it, a word, or of a SPEC up to where a setting or a part ends. */
enum { WHOLE, WORD, PIECE };

static size_t extent(const char *text, int how)
{
    const size_t first = *text == '[', piece = first + strcspn(text + first, "[:,+/ ");
    return how == WHOLE  ? strlen(text)
           : how == WORD ? strcspn(text, " ")
                         : piece + (text[piece] && strchr(":,+/", text[piece]));
}

/* The widest cell of a column, or what stays together in it. */
static int widest(const pe_table *t, int column, int how)
{
    int most = 1;
    for (int row = -1; row < t->row_count; row++)
        for (const char *s = cell_of(t, row, column); *s;) {
            const size_t n     = extent(s, how);
            const int    width = cli_columns_of(s, n);
            most               = width > most ? width : most;
            s += n + strspn(s + n, " ");
        }
    return most;
}

/* Characters of the shown columns from `first` to `last`, and of the keys before them. */
static int span_of(const layout *l, int first, int last)
{
    int span = -GAP;
    for (int k = 0; k <= last; k++)
        span += l->width[k] && (k < l->keys || k >= first) ? GAP + l->width[k] : 0;
    return span;
}

/* Takes from the widest columns of prose what is too much, down to their longest words. */
static void shrink(layout *l)
{
    const int last = l->t->column_count - 1;
    for (int k = 0; span_of(l, 0, last) > l->page && k >= 0;) {
        k = -1;
        for (int i = 0; i <= last; i++)
            if (l->t->columns[i].is_text & PE_WIDE && l->width[i] > widest(l->t, i, WORD) &&
                (k < 0 || l->width[i] > l->width[k]))
                k = i;
        if (k >= 0)
            l->width[k]--;
    }
}

/* Makes room for column k beside the keys: takes from the widest of these SPECs down to their longest pieces.
 */
static void squeeze(layout *l, int k)
{
    for (int most = 0; span_of(l, k, k) > l->page && most >= 0;) {
        most = -1;
        for (int i = 0; i <= k; i = i + 1 < l->keys ? i + 1 : i < k ? k : k + 1)
            if (l->t->columns[i].is_text && l->width[i] > widest(l->t, i, PIECE) &&
                (most < 0 || l->width[i] > l->width[most]))
                most = i;
        if (most >= 0)
            l->width[most]--;
    }
}

/* How much of a text stands on one line of that width: whole words, or as much of one that is wider. */
static size_t line_of(const char *text, int width)
{
    size_t n = extent(text, WORD);
    if (cli_columns_of(text, n) > width) {
        for (n = extent(text, PIECE); text[n] && text[n] != ' ';) {
            const size_t next = n + extent(text + n, PIECE);
            if (cli_columns_of(text, next) > width)
                break;
            n = next;
        }
        return n;
    }
    while (text[n]) {
        const size_t next = n + strspn(text + n, " ") + strcspn(text + n + strspn(text + n, " "), " ");
        if (cli_columns_of(text, next) > width)
            break;
        n = next;
    }
    return n;
}

/* The part of a cell that stands on line `line` of its row, and how long it is. */
static const char *part_of(const layout *l, int row, int column, int line, size_t *n)
{
    const char *text = cell_of(l->t, row, column);
    for (*n = line_of(text, l->width[column]); line > 0 && *text; line--) {
        text += *n + strspn(text + *n, " ");
        *n = line_of(text, l->width[column]);
    }
    return text;
}

/* Spaces at the end of a line help nobody: it ends with its last cell that is not empty. 0 where all are. */
static int print_line(const layout *l, int row, int line, int first, int last)
{
    size_t n;
    int    is_empty = 1, blanks = l->indent;
    for (int k = 0; k <= last; k = k + 1 < l->keys || k + 1 > first ? k + 1 : first) {
        const char *text = part_of(l, row, k, line, &n);
        if (!l->width[k])
            continue;
        const int rest = l->width[k] - cli_columns_of(text, n), left = l->t->columns[k].is_text ? 0 : rest;
        if (n)
            printf("%*s", blanks + left, ""), pe_text_put(stdout, text, n);
        blanks = n ? rest - left : blanks + l->width[k];
        blanks += GAP;
        is_empty &= !n;
    }
    if (!is_empty || line == 0)
        putchar('\n');
    return !is_empty;
}

void cli_print_table(pe_table *t)
{
    cli_print_indented(t, 0);
}

void cli_print_indented(pe_table *t, int indent)
{
    layout    l    = {.t = t, .page = cli_width() - indent, .indent = indent};
    const int last = t->column_count - 1;
    for (int k = 0; k <= last; k++)
        l.width[k] = t->columns[k].is_detail ? 0 : widest(t, k, WHOLE);
    shrink(&l);
    for (l.keys = 1; l.keys <= last && t->columns[l.keys].is_text & PE_KEY;)
        l.keys++;
    for (int k = l.keys; k <= last; k++)
        if (l.width[k])
            squeeze(&l, k);
    for (int first = 0, end; first <= last; first = end + 1) {
        for (end = first; end < last && span_of(&l, first, end + 1) <= l.page;)
            end++;
        if (first > 0)
            putchar('\n');
        for (int row = -1; t->row_count && row < t->row_count; row++)
            for (int line = 0; print_line(&l, row, line, first, end);)
                line++;
    }
    for (const char *note = t->notes; *note;) {
        const size_t n = strcspn(note, "\n");
        printf("%*s", indent, "");
        cli_wrap(note, n, indent, indent, cli_width());
        note += n + (note[n] == '\n');
    }
    pe_table_free(t);
}

int cli_print_rows(const char *who, const pe_column *columns, int column_count, int count,
                   int (*set)(pe_table *t, int row, const void *from), const void *from)
{
    pe_table table;
    int      made = !pe_table_open(&table, columns, column_count, count, NULL);
    for (int row = 0; made && row < count; row++)
        made = set(&table, row, from);
    if (made) {
        cli_print_table(&table);
        return CLI_DONE;
    }
    pe_table_free(&table);
    return cli_failed("%s: not enough memory for the table", who);
}

/* ---------------------------------------------------------------- JSON ---------------------- */

/* With the characters that act written as JSON writes those of ASCII: \u202e. */
static void put_json(const char *text)
{
    int shows;
    for (size_t n = strlen(text), size; n; text += size, n -= size) {
        size                   = pe_text_next(text, n, &shows);
        const unsigned char *c = (const unsigned char *)text;
        if (shows || size == 1)
            fwrite(text, 1, size, stdout);
        else
            printf("\\u%04x", size == 2 ? (c[0] & 0x1Fu) << 6 | (c[1] & 0x3Fu)
                                        : (c[0] & 0xFu) << 12 | (c[1] & 0x3Fu) << 6 | (c[2] & 0x3Fu));
    }
    putchar('\n');
}

int cli_print_json(json_t *value, size_t digits)
{
    if (!value)
        return cli_failed("not enough memory for the numbers as JSON");
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
    json_decref(value);
    if (!text)
        return cli_failed("not enough memory for the numbers as JSON");
    put_json(text);
    free(text);
    return CLI_DONE;
}

json_t *cli_json_real(double x)
{
    return isnan(x) ? json_null() : json_real(x);
}

json_t *cli_json_text(const char *text)
{
    char   *copy  = text && *text ? strdup(text) : NULL;
    json_t *value = copy ? json_string(pe_text_clean_lines(copy)) : text && *text ? NULL : json_null();
    free(copy);
    return value;
}

json_t *cli_json_words(const char *text, const char *separators)
{
    json_t *list = json_array();
    while (*(text += strspn(text, separators))) {
        const size_t n    = strcspn(text, separators);
        char        *word = strndup(text, n);
        pe_json_add(&list, word ? json_string(pe_text_clean(word)) : NULL);
        free(word);
        text += n;
    }
    return list;
}

json_t *cli_json_bench(const pe_bench_row *rows, int count)
{
    json_t *all = json_array();
    for (const pe_bench_row *row = rows; row < rows + count; row++) {
        const pe_bench_case   *c      = row->what;
        const pe_bench_figure *f      = &row->figure;
        const int              met    = pe_bench_met(row);
        const double           wanted = c->sense == PE_STATED ? (double)NAN : c->wanted;
        json_t                *value =
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "goal", c->goal, "name", c->name,
                      "value", cli_json_real(f->value), "q1", cli_json_real(f->q1), "q3",
                      cli_json_real(f->q3), "limit", cli_json_real(f->limit), "unit", c->unit, "wanted",
                      cli_json_real(wanted), "met", met < 0 ? json_null() : json_boolean(met));
        if (*row->reason)
            pe_json_set(&value, "reason", json_string(row->reason));
        pe_json_add(&all, value);
    }
    return all;
}

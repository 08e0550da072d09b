/* SPDX-License-Identifier: MIT */
/*
 * print.c: tables of text cells on the terminal, and values as JSON
 *
 * Every column is as wide as its widest cell, two spaces apart. Nothing is cut and nothing wraps; programs
 * should read the JSON.
 */
#include "cli/print/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Row -1 is the head. */
static const char *cell_of(const pe_table *t, int row, int column)
{
    return row < 0 ? t->columns[column].head : pe_table_cell(t, row, column);
}

static int width_of(const pe_table *t, int column)
{
    int width = 0;
    for (int row = -1; row < t->row_count; row++) {
        const int n = (int)strlen(cell_of(t, row, column));
        width       = n > width ? n : width;
    }
    return width;
}

/* Spaces at the end of a line help nobody: a row ends with its last cell that is not empty. */
static void print_row(const pe_table *t, int row)
{
    int last = t->column_count - 1;
    while (last > 0 && (t->columns[last].is_detail || !*cell_of(t, row, last)))
        last--;
    for (int k = 0; k <= last; k++)
        if (!t->columns[k].is_detail)
            printf(t->columns[k].is_text ? "%-*s%s" : "%*s%s",
                   t->columns[k].is_text && k == last ? 0 : width_of(t, k), cell_of(t, row, k),
                   k == last ? "" : "  ");
    putchar('\n');
}

void cli_print_table(pe_table *t)
{
    for (int row = -1; row < t->row_count; row++)
        print_row(t, row);
    printf("%s", t->notes);
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

int cli_print_json(json_t *value, size_t digits)
{
    if (!value)
        return cli_failed("not enough memory for the numbers as JSON");
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
    putchar('\n');
    json_decref(value);
    return CLI_DONE;
}

json_t *cli_json_real(double x)
{
    return isnan(x) ? json_null() : json_real(x);
}

json_t *cli_json_text(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

json_t *cli_json_words(const char *text, const char *separators)
{
    json_t *list = json_array();
    while (*(text += strspn(text, separators))) {
        json_array_append_new(list, json_stringn(text, strcspn(text, separators)));
        text += strcspn(text, separators);
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
            json_object_set_new(value, "reason", json_string(row->reason));
        json_array_append_new(all, value);
    }
    return all;
}

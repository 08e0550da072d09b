/* SPDX-License-Identifier: MIT */
/*
 * columns.c: a table of text cells on the terminal
 *
 * Every column is as wide as its widest cell, two spaces apart. Nothing is cut and nothing wraps: who wants
 * less asks for fewer columns, and who wants to compute asks for JSON.
 */
#include "cli/print/columns.h"

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

/* SPDX-License-Identifier: MIT */
/*
 * table.c: cells of text
 *
 * The table of a comparison is made once and shown on the terminal and in the report, so that the two cannot
 * say different things. Cells are text because each has its own way of writing a number; the columns are
 * constant data of whoever makes the table.
 */
#include "train/report/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { CELL = 128 };

posenc_status pe_table_open(pe_table *table, const pe_column *columns, int column_count, int row_count,
                            posenc_error *err)
{
    const size_t cells = (size_t)column_count * (size_t)row_count, heads = (size_t)column_count;
    *table = (pe_table){.columns      = malloc(heads * sizeof *columns),
                        .column_count = column_count,
                        .row_count    = row_count,
                        .cells        = calloc(cells + 1, sizeof *table->cells),
                        .notes        = strdup("")};
    if (table->columns)
        memcpy(table->columns, columns, heads * sizeof *columns);
    if (table->columns && table->cells && table->notes)
        return POSENC_OK;
    pe_table_free(table);
    return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for a table");
}

void pe_table_free(pe_table *table)
{
    for (int i = 0; table->cells && i < table->row_count * table->column_count; i++) {
        free(table->cells[i].text);
        free(table->cells[i].hint);
    }
    free(table->columns);
    free(table->texts);
    free(table->cells);
    free(table->notes);
    *table = (pe_table){0};
}

void pe_table_note(pe_table *table, const char *format, ...)
{
    const size_t used = strlen(table->notes);
    va_list      values;
    va_start(values, format);
    const size_t n = (size_t)vsnprintf(NULL, 0, format, values);
    va_end(values);
    char *longer = realloc(table->notes, used + n + 2);
    if (!longer)
        return;
    va_start(values, format);
    vsnprintf(longer + used, n + 1, format, values);
    va_end(values);
    memcpy(longer + used + n, "\n", 2);
    table->notes = longer;
}

int pe_table_text(pe_table *table, int row, int column, const char *text)
{
    char **cell = &pe_table_at(table, row, column)->text;
    free(*cell);
    *cell = strdup(text);
    return *cell != NULL;
}

int pe_table_set(pe_table *table, int row, int column, const char *format, ...)
{
    char    text[CELL];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return pe_table_text(table, row, column, text);
}

void pe_table_number(pe_table *table, int row, int column, const char *format, double x)
{
    char text[64];
    snprintf(text, sizeof text, format, x);
    pe_table_set(table, row, column, "%s", isnan(x) ? "-" : text);
}

pe_field *pe_table_at(const pe_table *table, int row, int column)
{
    return &table->cells[row * table->column_count + column];
}

const char *pe_table_cell(const pe_table *table, int row, int column)
{
    const char *cell = pe_table_at(table, row, column)->text;
    return cell ? cell : "";
}

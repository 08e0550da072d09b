/* SPDX-License-Identifier: MIT */
/*
 * table.c: cells of text
 *
 * The table of a comparison is made once and shown on the terminal and in the report, so that the two cannot
 * say different things. Cells are text because each has its own way of writing a number; the columns are
 * constant data of whoever makes the table.
 */
#include "train/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/fail.h"

enum { NOTE = 1024 };

int pe_table_create(pe_table *table, const pe_column *columns, int column_count, int row_count)
{
    const size_t cells = (size_t)column_count * (size_t)row_count;
    *table =
        (pe_table){columns, column_count, row_count, calloc(cells + 1, sizeof *table->cells), strdup("")};
    return table->cells && table->notes;
}

void pe_table_free(pe_table *table)
{
    for (int i = 0; table->cells && i < table->row_count * table->column_count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->notes);
    *table = (pe_table){0};
}

posenc_status pe_table_open(pe_table *table, const pe_column *columns, int column_count, int row_count,
                            posenc_error *err)
{
    if (pe_table_create(table, columns, column_count, row_count))
        return POSENC_OK;
    pe_table_free(table);
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for a table");
}

void pe_table_note(pe_table *table, const char *format, ...)
{
    char    text[NOTE];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    char *longer = realloc(table->notes, strlen(table->notes) + strlen(text) + 2);
    if (!longer)
        return;
    strcat(strcat(longer, text), "\n");
    table->notes = longer;
}

int pe_table_set(pe_table *table, int row, int column, const char *format, ...)
{
    char    text[128];
    char  **cell = &table->cells[row * table->column_count + column];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    free(*cell);
    *cell = strdup(text);
    return *cell != NULL;
}

const char *pe_table_cell(const pe_table *table, int row, int column)
{
    const char *cell = table->cells[row * table->column_count + column];
    return cell ? cell : "";
}

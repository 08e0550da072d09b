/* SPDX-License-Identifier: MIT */
/*
 * table.h: rows of text cells, which the terminal, the report and tests show in their own ways
 */
#ifndef PE_TRAIN_TABLE_H
#define PE_TRAIN_TABLE_H

#include <posenc/posenc.h>
#include <stddef.h>

typedef struct pe_column {
    const char *head;
    const char *meaning;   /* a sentence for a tooltip or a footnote */
    int         is_text;   /* left-aligned; numbers stand right */
    int         is_detail; /* for a page, not for a terminal */
} pe_column;

typedef struct pe_table {
    const pe_column *columns;
    int              column_count, row_count;
    char           **cells; /* [row_count * column_count], owned */
    char            *notes; /* lines below the table, each ending with \n; "" if there are none; owned */
} pe_table;

/* Empty cells for so many rows; 0 without memory. Free with pe_table_free in any case. */
int  pe_table_create(pe_table *table, const pe_column *columns, int column_count, int row_count);
void pe_table_free(pe_table *table);
/* The same for a table of a comparison: freed and with a sentence where there is no memory. */
posenc_status pe_table_open(pe_table *table, const pe_column *columns, int column_count, int row_count,
                            posenc_error *err);
/* A line below the table, which stands without it where there is no memory. */
void pe_table_note(pe_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Replaces a cell; 0 without memory. */
int pe_table_set(pe_table *table, int row, int column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *pe_table_cell(const pe_table *table, int row, int column);

#endif

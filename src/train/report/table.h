/* SPDX-License-Identifier: MIT */
/*
 * table.h: rows of cells, which the terminal, the report and tests show in their own ways
 */
#ifndef PE_TRAIN_TABLE_H
#define PE_TRAIN_TABLE_H

#include <posenc/posenc.h>

#include "base/shared/compiler.h"

/* How a column is shown: text stands left, wide text wraps, ours is set off from the column before it; the
   head of a link leads to the task of that name; names are not translated, and items of a list each by
   itself; a key stands again on a terminal where columns go on below, as the first column does. */
enum { PE_TEXT = 1, PE_WIDE = 2, PE_OURS = 4, PE_LINK = 8, PE_NAMES = 16, PE_KEY = 32, PE_ITEMS = 64 };

typedef struct pe_column {
    const char *head;
    const char *meaning;   /* a sentence for a tooltip or a footnote; NULL: none */
    int         is_text;   /* left-aligned; numbers right-aligned. For a page: PE_TEXT | ... */
    int         is_detail; /* for a page, not for a terminal */
} pe_column;

/* A head over `count` columns from `first` on, for a page. */
typedef struct pe_column_group {
    int         first, count;
    const char *head;
} pe_column_group;

typedef struct pe_field {
    char       *text; /* after a first \n, or \t, what a page shows small below it, or after it; NULL: "" */
    char       *hint; /* what a pointer shows; NULL: nothing */
    const char *kind; /* "passed": how a page shows it, or what it shows below; NULL: as the column */
    char        ground[24]; /* "#004488;color:#fff"; "": the page's */
    int         rows;       /* it covers so many, if above 1; -1: it is covered */
} pe_field;

typedef struct pe_table {
    pe_column *columns; /* [column_count], owned */
    int        column_count, row_count;
    pe_field  *cells; /* [row_count * column_count], owned */
    void      *texts; /* of its heads, if they are its own; owned */
    char      *notes; /* lines below the table, each ending with \n; "" if there are none; owned */
    const pe_column_group *groups; /* [group_count], in order */
    int                    group_count;
} pe_table;

/* Empty cells for so many rows; MEMORY, and no table. */
posenc_status pe_table_open(pe_table *table, const pe_column *columns, int column_count, int row_count,
                            posenc_error *err);
void          pe_table_free(pe_table *table); /* one without memory is fine */
/* A line below the table, which stands without it where there is no memory. */
void pe_table_note(pe_table *table, const char *format, ...) PE_PRINTF(2, 3);
/* Replaces a cell's text; 0 without memory. _set cuts it to what fits a terminal. */
int pe_table_text(pe_table *table, int row, int column, const char *text);
int pe_table_set(pe_table *table, int row, int column, const char *format, ...) PE_PRINTF(4, 5);
/* The same with a number, or a dash where it is none. */
void        pe_table_number(pe_table *table, int row, int column, const char *format, double x);
pe_field   *pe_table_at(const pe_table *table, int row, int column);
const char *pe_table_cell(const pe_table *table, int row, int column);

#endif

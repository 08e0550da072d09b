/* SPDX-License-Identifier: MIT */
/* Numbers with names: contract in sheet.h. */
#include "cli/commands/explain/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { GAP = 2, INDENT = 2, LONGEST = 32, SHOWN = 4, NAME = 20, MOST_COLUMNS = 64 };

/* ---------------------------------------------------------------- words --------------------- */

static void print_format(int indent, const char *format, va_list list)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, list);
    printf("%*s", indent, "");
    cli_wrap(text, strlen(text), indent, indent, cli_width());
}

void cli_sheet_title(cli_sheet *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!s->json) {
        fputs(s->is_begun++ ? "\n" : "", stdout);
        print_format(0, format, list);
    }
    va_end(list);
}

void cli_sheet_text(cli_sheet *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!s->json)
        print_format(INDENT, format, list);
    va_end(list);
}

void cli_sheet_put(cli_sheet *s, const char *key, json_t *value)
{
    s->is_lost |= json_object_set_new(s->json, key, value) != 0;
}

/* The name, or a line with it alone where it is long; returns the column that the cursor is in. */
static int print_name(const char *name)
{
    const int blanks = NAME - cli_columns_of(name, strlen(name));
    printf("%*s%s", INDENT, "", name);
    printf(blanks < 0 ? "\n%*s" : "%*s", blanks < 0 ? INDENT + NAME + 1 : blanks + 1, "");
    return INDENT + NAME + 1;
}

void cli_sheet_words(cli_sheet *s, const char *key, const char *name, const char *words)
{
    if (s->json) {
        cli_sheet_put(s, key, json_string(words));
        return;
    }
    const int at = print_name(name);
    cli_wrap(words, strlen(words), at, at, cli_width());
}

/* ---------------------------------------------------------------- numbers ------------------- */

/* Zero has no sign, also where it is what a small number becomes. */
const char *cli_sheet_digits(char text[CLI_SHEET_CELL], const cli_sheet *s, cli_sheet_kind kind, double x)
{
    static const char *const formats[] = {"%.*g", "%.*f", "%.*g"};
    const int                digits    = kind == CLI_SHEET_PLAIN ? 12 : s->digits + (kind != CLI_SHEET_FIXED);
    if (isnan(x))
        return "-";
    snprintf(text, CLI_SHEET_CELL, formats[kind], digits, x);
    return *text == '-' && !strpbrk(text, "123456789") ? text + 1 : text;
}

void cli_sheet_number(cli_sheet *s, const char *key, const char *name, double value)
{
    if (s->json)
        cli_sheet_put(s, key, cli_json_real(value));
    else
        cli_sheet_vector(s, key, name, &value, 1);
}

void cli_sheet_residual(cli_sheet *s, const char *key, const char *name, double value)
{
    char text[CLI_SHEET_CELL];
    if (s->json)
        cli_sheet_put(s, key, cli_json_real(value));
    else {
        snprintf(text, sizeof text, value < 1e-14 ? "< 1e-14" : "%.1e", value);
        print_name(name);
        puts(text);
    }
}

json_t *cli_sheet_numbers(const double *values, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        pe_json_add(&list, cli_json_real(values[i]));
    return list;
}

/* The widest of n numbers; those below 10 have one width, whatever their sign. */
static int width_of(const cli_sheet *s, const double *values, int64_t n)
{
    char text[CLI_SHEET_CELL];
    int  most = s->digits + 3;
    for (int64_t i = 0; i < n; i++) {
        const int width = (int)strlen(cli_sheet_digits(text, s, CLI_SHEET_FIXED, values[i]));
        most            = width > most ? width : most;
    }
    return most;
}

/* n numbers from column `at` on. */
static void print_numbers(const cli_sheet *s, const double *values, int64_t n, int at, int width)
{
    char text[CLI_SHEET_CELL];
    int  column = at;
    for (int64_t i = 0; i < n; i++) {
        if (i && column + GAP + width > cli_width())
            column = printf("\n%*s", at, "") - 1;
        column += printf("%*s%*s", column > at ? GAP : 0, "", width,
                         cli_sheet_digits(text, s, CLI_SHEET_FIXED, values[i]));
    }
}

void cli_sheet_vector(cli_sheet *s, const char *key, const char *name, const double *values, int64_t n)
{
    if (s->json) {
        cli_sheet_put(s, key, cli_sheet_numbers(values, n));
        return;
    }
    const int64_t shown = n > LONGEST ? SHOWN : n;
    print_numbers(s, values, shown, print_name(name), width_of(s, values, shown));
    puts(shown < n ? " ..." : "");
}

int cli_sheet_matrix(cli_sheet *s, const char *key, const char *name, const double *values, int64_t rows,
                     int64_t columns)
{
    const int width = width_of(s, values, rows * columns);
    if (s->json) {
        json_t *list = json_array();
        for (int64_t i = 0; i < rows; i++)
            pe_json_add(&list, cli_sheet_numbers(values + i * columns, columns));
        cli_sheet_put(s, key, list);
        return 1;
    }
    if (INDENT + columns * (width + GAP) - GAP > cli_width())
        return 0;
    if (*name)
        cli_sheet_text(s, "%s", name);
    for (int64_t i = 0; i < rows; i++) {
        print_numbers(s, values + i * columns, columns, printf("%*s", INDENT, ""), width);
        putchar('\n');
    }
    return 1;
}

/* ---------------------------------------------------------------- tables -------------------- */

static json_t *json_cell(cli_sheet_kind kind, double x)
{
    return kind == CLI_SHEET_PLAIN && x == floor(x) ? json_integer((json_int_t)x) : cli_json_real(x);
}

static void json_table(cli_sheet *s, const char *key, const cli_sheet_column *columns, int count,
                       const double *values, int64_t rows)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < rows; i++) {
        json_t *row = json_object();
        for (int k = 0; k < count; k++)
            pe_json_set(&row, columns[k].key, json_cell(columns[k].kind, values[i * count + k]));
        pe_json_add(&list, row);
    }
    cli_sheet_put(s, key, list);
}

int cli_sheet_table(cli_sheet *s, const char *key, const cli_sheet_column *columns, int count,
                    const double *values, int64_t rows)
{
    pe_table  table;
    pe_column heads[MOST_COLUMNS] = {{0}};
    char      text[CLI_SHEET_CELL];
    if (s->json) {
        json_table(s, key, columns, count, values, rows);
        return CLI_DONE;
    }
    for (int k = 0; k < count && k < MOST_COLUMNS; k++)
        heads[k].head = columns[k].head;
    int made = !pe_table_open(&table, heads, count < MOST_COLUMNS ? count : MOST_COLUMNS, (int)rows, NULL);
    for (int64_t i = 0; made && i < rows * count; i++)
        made = pe_table_text(&table, (int)(i / count), (int)(i % count),
                             cli_sheet_digits(text, s, columns[i % count].kind, values[i]));
    if (!made) {
        pe_table_free(&table);
        return cli_failed("not enough memory for a table");
    }
    cli_print_indented(&table, INDENT);
    return CLI_DONE;
}

int cli_sheet_end(cli_sheet *s)
{
    json_t *all = s->json;
    s->json     = NULL;
    if (!s->is_lost)
        return all ? cli_print_json(all, 0) : CLI_DONE;
    json_decref(all);
    return cli_print_json(NULL, 0);
}

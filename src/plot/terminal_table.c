/* SPDX-License-Identifier: MIT */
/*
 * terminal_table.c: a grid whose cells show their numbers, as text
 *
 * Row names on the left, column names above, all columns equally wide. Where they do not fit side by side,
 * the table goes on below, with its row names again. With colour each number stands on its cell's.
 */
#include "plot/draw.h"

#include <math.h>
#include <string.h>

enum { GAP = 2, INDENT = 2 };

/* What the table is printed with: widths in columns of the screen. */
typedef struct text_table {
    FILE            *to;
    const pe_figure *f;
    int              name, cell, colour;
    double           low, high;
} text_table;

/* A letter of Chinese, Japanese or Korean takes two. */
int pe_terminal_columns(const char *text)
{
    int columns = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        columns += (*at & 0xC0) == 0x80 ? 0 : *at >= 0xE3 ? 2 : 1;
    return columns;
}

/* Bytes of the next line of at most `columns`, broken at a blank if there is one. */
static size_t line_of(const char *text, int columns)
{
    size_t fits = 0, blank = 0;
    int    used = 0;
    for (; text[fits] && text[fits] != '\n'; fits++) {
        const unsigned char c = (unsigned char)text[fits];
        used += (c & 0xC0) == 0x80 ? 0 : c >= 0xE3 ? 2 : 1;
        if (used > columns)
            return blank ? blank : fits;
        if (c == ' ')
            blank = fits;
    }
    return fits;
}

void pe_terminal_lines(FILE *to, const char *text, int indent, int columns)
{
    while (*text) {
        const size_t n = line_of(text, columns - indent);
        fprintf(to, "%*s%.*s\n", indent, "", (int)n, text);
        text += n + (text[n] == ' ' || text[n] == '\n');
    }
}

static const char *name_of(const char *const *names, int64_t i, double first, double step,
                           char text[PE_CELL_TEXT])
{
    if (names)
        return names[i];
    snprintf(text, PE_CELL_TEXT, "%.6g", first + (double)i * step);
    return text;
}

static int widest_name(const char *const *names, int64_t n, double first, double step)
{
    char text[PE_CELL_TEXT];
    int  most = 0;
    for (int64_t i = 0; i < n; i++)
        most = (int)fmax(most, pe_terminal_columns(name_of(names, i, first, step, text)));
    return most;
}

static int widest_number(const pe_figure *f)
{
    char text[PE_CELL_TEXT];
    int  most = 0;
    for (int64_t i = 0; i < f->rows * f->cols; i++) {
        pe_layout_cell_text(f, i, text);
        most = (int)fmax(most, (double)strlen(text));
    }
    return most;
}

/* On the right of `width` columns. */
static void print_right(FILE *to, const char *text, int width)
{
    const int used = pe_terminal_columns(text);
    fprintf(to, "%*s%s", width > used ? width - used : 0, "", text);
}

static void print_cell(const text_table *t, int64_t index)
{
    char text[PE_CELL_TEXT];
    pe_layout_cell_text(t->f, index, text);
    if (t->colour) {
        const pe_rgb c =
            pe_colours_on_scale(t->f->signed_scale, (t->f->values[index] - t->low) / (t->high - t->low));
        const int is_light = 0.299 * c.r + 0.587 * c.g + 0.114 * c.b > 128;
        fprintf(t->to, "\033[48;2;%d;%d;%d;38;5;%dm", c.r, c.g, c.b, is_light ? 16 : 231);
    }
    print_right(t->to, text, t->cell);
    fputs(t->colour ? "\033[0m" : "", t->to);
}

/* Columns first .. end-1. */
static void print_part(const text_table *t, int64_t first, int64_t end)
{
    const pe_figure *f = t->f;
    char             text[PE_CELL_TEXT];
    fprintf(t->to, "%*s", INDENT + t->name, "");
    for (int64_t c = first; c < end; c++)
        print_right(t->to, name_of(f->col_names, c, f->x0, f->dx, text), t->cell);
    for (int64_t r = 0; r < f->rows; r++) {
        fprintf(t->to, "\n%*s", INDENT, "");
        print_right(t->to, name_of(f->row_names, r, f->y0, f->dy, text), t->name);
        for (int64_t c = first; c < end; c++)
            print_cell(t, r * f->cols + c);
    }
    fputc('\n', t->to);
}

/* "rows: position (tokens); columns: channel; value" */
static void print_labels(FILE *to, const pe_figure *f, int columns)
{
    const char *const labels[] = {f->y_label, f->x_label, f->value_label}, *const heads[] = {"rows: ",
                                                                                             "columns: ", ""};
    char   line[PE_WRAPPED] = "";
    size_t used             = 0;
    for (int k = 0; k < 3; k++)
        if (labels[k] && used < sizeof line)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s%s", used ? "; " : "", heads[k],
                                     labels[k]);
    pe_terminal_lines(to, line, INDENT, columns);
}

void pe_terminal_table(FILE *to, const pe_figure *f, int columns, int colour)
{
    text_table t = {.to = to, .f = f, .colour = colour};
    pe_colours_range(f, &t.low, &t.high);
    t.name             = widest_name(f->row_names, f->rows, f->y0, f->dy);
    t.cell             = GAP + (int)fmax(widest_number(f), widest_name(f->col_names, f->cols, f->x0, f->dx));
    const int64_t room = (columns - INDENT - t.name) / t.cell, fit = room > 1 ? room : 1;
    if (f->title)
        pe_terminal_lines(to, f->title, 0, columns);
    print_labels(to, f, columns);
    for (int64_t c = 0; c < f->cols; c += fit) {
        fputs(c ? "\n" : "", to);
        print_part(&t, c, c + fit < f->cols ? c + fit : f->cols);
    }
}

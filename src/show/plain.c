/* SPDX-License-Identifier: MIT */
/*
 * plain.c: a formula as text. Contract: formula.h.
 *
 * Every part of a formula is a rectangle of characters with a line that it stands on. A part is measured from
 * its parts, and drawn onto a canvas at the place that its whole gives it. What is below hangs one line
 * lower, what is above stands one line higher; blanks are the notation's, except within indices, where only
 * those between two words stay.
 */
#include "show/formula.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 2, CHARACTER = 8, FURTHER = 2 };

typedef struct extent {
    int width, up, down; /* lines above and below the one it stands on */
} extent;

typedef struct plain_canvas {
    char (*cells)[CHARACTER]; /* [height][width] */
    int width, height;
} plain_canvas;

static extent measure_list(const pe_formula *f, int tight);
static void   draw_list(plain_canvas *c, const pe_formula *f, int tight, int x, int y);

static int most(int a, int b)
{
    return a > b ? a : b;
}

static int letters_of(const char *s, size_t n)
{
    int count = 0;
    for (const char *end = s + n; s < end; s += pe_formula_letter(s))
        count++;
    return count;
}

/* ---------------------------------------------------------------- the canvas ---------------- */

static void put(plain_canvas *c, int x, int y, const char *s, size_t n)
{
    for (const char *end = s + n; s < end; x++) {
        const size_t bytes = pe_formula_letter(s);
        if (x >= 0 && x < c->width && y >= 0 && y < c->height && bytes < CHARACTER)
            snprintf(c->cells[y * c->width + x], CHARACTER, "%.*s", (int)bytes, s);
        s += bytes;
    }
}

static void put_text(plain_canvas *c, int x, int y, const char *s)
{
    put(c, x, y, s, strlen(s));
}

/* A line without the blanks at its end. */
static void write_row(FILE *to, const plain_canvas *c, int y, int indent)
{
    int end = c->width;
    while (end > 0 && !*c->cells[y * c->width + end - 1])
        end--;
    fprintf(to, "%*s", end ? indent : 0, "");
    for (int x = 0; x < end; x++)
        fputs(*c->cells[y * c->width + x] ? c->cells[y * c->width + x] : " ", to);
    fputc('\n', to);
}

/* ---------------------------------------------------------------- parts --------------------- */

/* Of a matrix: the widths of its columns together, or up to one of them. */
static int column_width(const pe_formula *matrix, int column)
{
    int width = 0, at = 0;
    for (const pe_formula *cell = matrix->parts; cell; cell = cell->next, at++)
        if (at % matrix->columns == column)
            width = most(width, measure_list(cell, 0).width);
    return width;
}

/* The row that a cell begins. */
static extent row_extent(const pe_formula *cell, int columns)
{
    extent e = {0};
    for (; cell && columns > 0; cell = cell->next, columns--) {
        const extent of = measure_list(cell, 0);
        e.up            = most(e.up, of.up);
        e.down          = most(e.down, of.down);
    }
    return e;
}

static extent measure_matrix(const pe_formula *f)
{
    int lines = 0, at = 0, width = 0;
    for (int k = 0; k < f->columns; k++)
        width += column_width(f, k) + GAP;
    for (const pe_formula *cell = f->parts; cell; cell = cell->next, at++)
        if (at % f->columns == 0) {
            const extent row = row_extent(cell, f->columns);
            lines += row.up + 1 + row.down;
        }
    return (extent){width + GAP, (lines - 1) / 2, lines - 1 - (lines - 1) / 2};
}

static extent measure_fraction(const pe_formula *f)
{
    const extent n = measure_list(f->parts, 0), d = measure_list(f->parts->next, 0);
    return (extent){most(n.width, d.width), n.up + 1 + n.down, d.up + 1 + d.down};
}

/* √D, √(a + b) */
static int is_short(const pe_formula *list)
{
    const pe_formula *f = list->parts;
    return f && !f->next && f->kind <= PE_WORDS && !f->above;
}

static extent measure_atom(const pe_formula *f, int tight)
{
    extent e = {0};
    switch (f->kind) {
    case PE_LIST: return measure_list(f, tight);
    case PE_FRACTION: return measure_fraction(f);
    case PE_MATRIX: return measure_matrix(f);
    case PE_ROOT:
        e = measure_list(f->parts, tight);
        e.width += is_short(f->parts) ? 1 : 3;
        return e;
    default: return (extent){.width = letters_of(f->text, f->size)};
    }
}

static void draw_matrix(plain_canvas *c, const pe_formula *f, int x, int y)
{
    const extent all = measure_matrix(f);
    int          at = 0, left = 0, top = y - all.up;
    extent       row = {0};
    for (const pe_formula *cell = f->parts; cell; cell = cell->next, at++) {
        const int column = at % f->columns;
        if (column == 0) {
            top += at ? row.up + 1 + row.down : 0;
            row  = row_extent(cell, f->columns);
            left = x + GAP;
        }
        draw_list(c, cell, 0, left, top + row.up);
        left += column_width(f, column) + GAP;
    }
    for (int line = y - all.up; line <= y + all.down; line++) {
        const int kind = all.up + all.down == 0 ? 3 : line == y - all.up ? 0 : line == y + all.down ? 2 : 1;
        put_text(c, x, line, (const char *const[]){"⎡", "⎢", "⎣", "["}[kind]);
        put_text(c, x + all.width - 1, line, (const char *const[]){"⎤", "⎥", "⎦", "]"}[kind]);
    }
}

static void draw_fraction(plain_canvas *c, const pe_formula *f, int x, int y)
{
    const int    width = measure_fraction(f).width;
    const extent n = measure_list(f->parts, 0), d = measure_list(f->parts->next, 0);
    draw_list(c, f->parts, 0, x + (width - n.width) / 2, y - 1 - n.down);
    draw_list(c, f->parts->next, 0, x + (width - d.width) / 2, y + 1 + d.up);
    for (int i = 0; i < width; i++)
        put_text(c, x + i, y, "─");
}

static void draw_root(plain_canvas *c, const pe_formula *f, int tight, int x, int y)
{
    const int whole = !is_short(f->parts), width = measure_list(f->parts, tight).width;
    put_text(c, x, y, whole ? "√(" : "√");
    draw_list(c, f->parts, tight, x + 1 + whole, y);
    if (whole)
        put_text(c, x + 2 + width, y, ")");
}

static void draw_atom(plain_canvas *c, const pe_formula *f, int tight, int x, int y)
{
    switch (f->kind) {
    case PE_LIST: draw_list(c, f, tight, x, y); return;
    case PE_FRACTION: draw_fraction(c, f, x, y); return;
    case PE_MATRIX: draw_matrix(c, f, x, y); return;
    case PE_ROOT: draw_root(c, f, tight, x, y); return;
    default: put(c, x, y, f->text, f->size);
    }
}

/* ---------------------------------------------------------------- items and lists ----------- */

static extent measure_item(const pe_formula *f, int tight)
{
    extent       e     = measure_atom(f, tight);
    const extent below = f->below ? measure_atom(f->below, 1) : (extent){0},
                 above = f->above ? measure_atom(f->above, 1) : (extent){0};
    if (pe_formula_is(f, "∑"))
        e.width = most(e.width, most(below.width, above.width));
    else
        e.width += most(below.width, above.width);
    e.up += f->above ? above.up + 1 + above.down : 0;
    e.down += f->below ? below.up + 1 + below.down : 0;
    return e;
}

static void draw_item(plain_canvas *c, const pe_formula *f, int tight, int x, int y)
{
    const extent own = measure_atom(f, tight), whole = measure_item(f, tight);
    const int    sum  = pe_formula_is(f, "∑");
    const int    side = sum ? x : x + own.width;
    draw_atom(c, f, tight, sum ? x + (whole.width - own.width) / 2 : x, y);
    if (f->below)
        draw_atom(c, f->below, 1, side, y + own.down + 1 + measure_atom(f->below, 1).up);
    if (f->above)
        draw_atom(c, f->above, 1, side, y - own.up - 1 - measure_atom(f->above, 1).down);
}

/* Blanks before f, which follows `before`. */
static int blank_before(const pe_formula *f, const pe_formula *before, int tight)
{
    if (!before || !f->spaced || pe_formula_is(f, ",") || pe_formula_is(f, ";"))
        return 0;
    const int words = f->kind <= PE_WORDS && before->kind <= PE_WORDS;
    return tight ? words && (f->size > 2 || before->size > 2) && before->kind != PE_NUMBER : 1;
}

static extent measure_items(const pe_formula *from, const pe_formula *end, int tight)
{
    extent e = {0};
    for (const pe_formula *f = from, *before = NULL; f != end; before = f, f = f->next) {
        const extent of = measure_item(f, tight);
        e.width += of.width + blank_before(f, before, tight);
        e.up   = most(e.up, of.up);
        e.down = most(e.down, of.down);
    }
    return e;
}

static void draw_items(plain_canvas *c, const pe_formula *from, const pe_formula *end, int tight, int x,
                       int y)
{
    for (const pe_formula *f = from, *before = NULL; f != end; before = f, f = f->next) {
        x += blank_before(f, before, tight);
        draw_item(c, f, tight, x, y);
        x += measure_item(f, tight).width;
    }
}

static extent measure_list(const pe_formula *f, int tight)
{
    return measure_items(f->parts, NULL, tight);
}

static void draw_list(plain_canvas *c, const pe_formula *f, int tight, int x, int y)
{
    draw_items(c, f->parts, NULL, tight, x, y);
}

/* ---------------------------------------------------------------- lines --------------------- */

/* May a line begin here? */
static int is_break(const pe_formula *f)
{
    static const char *const signs[] = {"=", "≈", "+", "−", "·", "⊙", "→", "≤", "∈", "×"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (pe_formula_is(f, signs[i]) && f->spaced)
            return 1;
    return 0;
}

/* The items from `from` that fit a line: up to the last place to break, or to the first one if none fits. */
static const pe_formula *line_end(const pe_formula *from, int width)
{
    const pe_formula *end = NULL;
    for (const pe_formula *f = from->next; f; f = f->next)
        if (is_break(f)) {
            if (end && measure_items(from, f, 0).width > width)
                return end;
            end = f;
        }
    return end && measure_items(from, NULL, 0).width > width ? end : NULL;
}

/* 0 without memory. */
static int write_items(FILE *to, const pe_formula *from, const pe_formula *end, int indent)
{
    const extent e = measure_items(from, end, 0);
    plain_canvas c = {.width = most(e.width, 1), .height = e.up + 1 + e.down};
    c.cells        = calloc((size_t)c.width * (size_t)c.height, sizeof *c.cells);
    if (!c.cells)
        return 0;
    draw_items(&c, from, end, 0, 0, e.up);
    for (int y = 0; y < c.height; y++)
        write_row(to, &c, y, indent);
    free(c.cells);
    return 1;
}

int pe_plain_write(FILE *to, const char *formula, int indent, int width)
{
    int is_good = 1;
    while (*formula && is_good) {
        pe_formula *list = pe_formula_read(formula, &formula);
        is_good          = list != NULL;
        int at           = indent;
        for (const pe_formula *from = list ? list->parts : NULL, *end; from && is_good; from = end) {
            end     = line_end(from, width - at);
            is_good = write_items(to, from, end, at);
            at      = indent + FURTHER;
        }
        pe_formula_free(list);
    }
    return is_good;
}

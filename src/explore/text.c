/* SPDX-License-Identifier: MIT */
/* text.c: figures as JSON whose arrays stay where they are. Contract: text.h. */
#include "explore/text.h"

#include "plot/draw.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void pe_explore_put(pe_explore_text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0 || t->failed)
        return;
    if (t->used + (size_t)n + 1 > t->size) {
        const size_t size = 2 * (t->used + (size_t)n + 1);
        char        *more = realloc(t->text, size);
        t->failed         = !more;
        if (!more)
            return;
        t->text = more;
        t->size = size;
    }
    va_start(list, format);
    vsnprintf(t->text + t->used, t->size - t->used, format, list);
    va_end(list);
    t->used += (size_t)n;
}

void pe_explore_string(pe_explore_text *t, const char *text)
{
    if (!text) {
        pe_explore_put(t, "null");
        return;
    }
    pe_explore_put(t, "\"");
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20)
            pe_explore_put(t, "\\u%04x", (unsigned)*at);
        else
            pe_explore_put(t, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    pe_explore_put(t, "\"");
}

char *pe_explore_finish(pe_explore_text *t)
{
    if (t->failed)
        free(t->text);
    return t->failed ? NULL : t->text;
}

static void put_text(pe_explore_text *t, const char *name, const char *text)
{
    pe_explore_put(t, ", \"%s\": ", name);
    pe_explore_string(t, text);
}

static void put_number(pe_explore_text *t, const char *name, double x)
{
    if (isfinite(x))
        pe_explore_put(t, ", \"%s\": %.17g", name, x);
    else
        pe_explore_put(t, ", \"%s\": null", name);
}

static void put_array(pe_explore_text *t, const char *name, const double *x, int64_t n)
{
    if (x)
        pe_explore_put(t, ", \"%s\": {\"at\": %llu, \"n\": %lld}", name, (unsigned long long)(uintptr_t)x,
                       (long long)n);
}

static void put_names(pe_explore_text *t, const char *name, const char *const *names, int64_t n)
{
    if (!names)
        return;
    pe_explore_put(t, ", \"%s\": [", name);
    for (int64_t i = 0; i < n; i++) {
        pe_explore_put(t, "%s", i ? ", " : "");
        pe_explore_string(t, names[i]);
    }
    pe_explore_put(t, "]");
}

static void put_grid(pe_explore_text *t, const pe_figure *f)
{
    double low, high;
    pe_colours_range(f, &low, &high);
    put_array(t, "values", f->values, f->rows * f->cols);
    pe_explore_put(t, ", \"rows\": %lld, \"cols\": %lld, \"signed\": %d, \"square\": %d, \"decimals\": %d",
                   (long long)f->rows, (long long)f->cols, f->signed_scale, f->square_cells,
                   f->with_numbers ? f->decimals : -1);
    put_number(t, "x0", f->x0), put_number(t, "dx", f->dx);
    put_number(t, "y0", f->y0), put_number(t, "dy", f->dy);
    put_number(t, "low", low), put_number(t, "high", high);
    put_names(t, "row_names", f->row_names, f->rows);
    put_names(t, "col_names", f->col_names, f->cols);
    put_text(t, "second", f->second_label);
    pe_explore_put(t, ", \"ticks\": [");
    for (int i = 0; i < f->tick_count; i++) {
        pe_explore_put(t, "%s[%.17g, ", i ? ", " : "", f->ticks[i].y);
        pe_explore_string(t, f->ticks[i].label);
        pe_explore_put(t, "]");
    }
    pe_explore_put(t, "], \"points\": [");
    for (int i = 0; i < f->point_count; i++)
        pe_explore_put(t, "%s[%.17g, %.17g]", i ? ", " : "", f->points[i].x, f->points[i].y);
    pe_explore_put(t, "]");
}

static void put_curves(pe_explore_text *t, const pe_figure *f)
{
    pe_explore_put(t, ", \"ordered\": %d, \"steps\": %d", f->ordered, f->steps);
    put_number(t, "low", f->low), put_number(t, "high", f->high);
    pe_explore_put(t, ", \"marks\": [");
    for (int i = 0; i < f->mark_count; i++) {
        pe_explore_put(t, "%s[%.17g, ", i ? ", " : "", f->marks[i].x);
        pe_explore_string(t, f->marks[i].label);
        pe_explore_put(t, "]");
    }
    pe_explore_put(t, "], \"curves\": [");
    for (int i = 0; i < f->curve_count; i++) {
        const pe_curve *c      = &f->curves[i];
        const pe_rgb    colour = pe_colours_of_curve(f, i);
        pe_explore_put(t, "%s{\"style\": %d, \"colour\": \"#%02x%02x%02x\"", i ? ", " : "", (int)c->style,
                       (unsigned)colour.r, (unsigned)colour.g, (unsigned)colour.b);
        put_text(t, "name", c->name);
        put_array(t, "x", c->x, c->n), put_array(t, "y", c->y, c->n);
        put_array(t, "low", c->low, c->n), put_array(t, "high", c->high, c->n);
        pe_explore_put(t, "}");
    }
    pe_explore_put(t, "]");
}

void pe_explore_figure(pe_explore_text *t, const pe_figure *f)
{
    static const char *const kinds[] = {"grid", "curves", "arrows", "panels"};
    pe_explore_put(t, "{\"kind\": \"%s\", \"log_x\": %d, \"log_y\": %d", kinds[f->kind], f->log_x, f->log_y);
    put_text(t, "title", f->title), put_text(t, "x_label", f->x_label);
    put_text(t, "y_label", f->y_label), put_text(t, "value_label", f->value_label);
    if (f->kind == PE_GRID)
        put_grid(t, f);
    else if (f->kind != PE_PANELS)
        put_curves(t, f);
    pe_explore_put(t, ", \"columns\": %d, \"panels\": [", f->panel_columns);
    for (int i = 0; i < f->panel_count; i++) {
        pe_explore_put(t, "%s", i ? ", " : "");
        pe_explore_figure(t, &f->panels[i]);
    }
    pe_explore_put(t, "]}");
}

/* SPDX-License-Identifier: MIT */
/*
 * numbers.c: the numbers of a figure as CSV
 *
 *     grid            "channel \ position (tokens)",0,1,...     then a line per row: its y, its values
 *     curves, one x   "position (tokens)","channel 4",...       then a line per x; a band is two more columns
 *     other curves,   "curve",x,y[,low,high]                    then a line per point
 *     arrows
 *
 * Panels follow each other, each after its title alone on a line and, from the second on, an empty line.
 * Numbers are those that were drawn, with the fewest digits that read back as the same double; a table's are
 * rounded as it shows them. Where there is no number the field is empty.
 */
#include "plot/draw.h"

#include "files/arrays/text.h"

#include <math.h>

static void write_real(FILE *to, double x)
{
    char text[PE_TEXT_REAL];
    if (!isnan(x))
        fputs(pe_text_real(text, x), to);
}

static void write_name(FILE *to, const char *text)
{
    pe_text_write_csv(to, text ? text : "");
}

static void write_cell_head(FILE *to, const char *const *names, int64_t i, double x0, double dx)
{
    if (names)
        write_name(to, names[i]);
    else
        write_real(to, x0 + (double)i * dx);
}

static void write_grid(FILE *to, const pe_figure *f)
{
    char head[PE_WRAPPED];
    snprintf(head, sizeof head, "%s \\ %s", f->y_label ? f->y_label : "", f->x_label ? f->x_label : "");
    write_name(to, head);
    for (int64_t c = 0; c < f->cols; c++) {
        fputc(',', to);
        write_cell_head(to, f->col_names, c, f->x0, f->dx);
    }
    for (int64_t i = 0; i < f->rows * f->cols; i++) {
        if (i % f->cols == 0) {
            fputc('\n', to);
            write_cell_head(to, f->row_names, i / f->cols, f->y0, f->dy);
        }
        fputc(',', to);
        if (f->with_numbers && isfinite(f->values[i]))
            fprintf(to, "%.*f", f->decimals, f->values[i]);
        else
            write_real(to, f->values[i]);
    }
    fputc('\n', to);
}

/* ---------------------------------------------------------------- curves -------------------- */

static int have_one_x(const pe_figure *f)
{
    for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++)
        if (c->n != f->curves->n || memcmp(c->x, f->curves->x, (size_t)c->n * sizeof *c->x) != 0)
            return 0;
    return f->kind == PE_CURVES;
}

/* ",name" or ",name: low" */
static void write_column_head(FILE *to, const char *name, const char *part)
{
    char head[PE_WRAPPED];
    snprintf(head, sizeof head, "%s%s%s", name, *part && *name ? ": " : "", part);
    fputc(',', to);
    write_name(to, head);
}

static void write_point(FILE *to, const pe_curve *c, int64_t i, int is_banded)
{
    const double *const columns[] = {c->y, c->low, c->high};
    for (int k = 0; k < (is_banded ? 3 : 1); k++) {
        fputc(',', to);
        write_real(to, columns[k] ? columns[k][i] : (double)NAN);
    }
}

static void write_curves_together(FILE *to, const pe_figure *f)
{
    write_name(to, f->x_label);
    for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++) {
        write_column_head(to, *c->name || !f->y_label ? c->name : f->y_label, "");
        if (c->low && c->high) {
            write_column_head(to, c->name, "low");
            write_column_head(to, c->name, "high");
        }
    }
    for (int64_t i = 0; f->curve_count && i < f->curves->n; i++) {
        fputc('\n', to);
        write_real(to, f->curves->x[i]);
        for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++)
            write_point(to, c, i, c->low && c->high);
    }
    fputc('\n', to);
}

static void write_curves_apart(FILE *to, const pe_figure *f)
{
    int is_banded = 0;
    for (int k = 0; k < f->curve_count; k++)
        is_banded |= f->curves[k].low && f->curves[k].high;
    write_name(to, "curve");
    write_column_head(to, f->x_label ? f->x_label : "x", "");
    write_column_head(to, f->y_label ? f->y_label : "y", "");
    fputs(is_banded ? ",\"low\",\"high\"\n" : "\n", to);
    for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++)
        for (int64_t i = 0; i < c->n; i++) {
            write_name(to, c->name);
            fputc(',', to);
            write_real(to, c->x[i]);
            write_point(to, c, i, is_banded);
            fputc('\n', to);
        }
}

void pe_numbers_write(FILE *to, const pe_figure *f)
{
    for (int i = 0; i < f->panel_count; i++) {
        fputs(i ? "\n" : "", to);
        write_name(to, f->panels[i].title);
        fputc('\n', to);
        pe_numbers_write(to, &f->panels[i]);
    }
    if (f->kind == PE_GRID)
        write_grid(to, f);
    else if (f->kind != PE_PANELS)
        (have_one_x(f) ? write_curves_together : write_curves_apart)(to, f);
}

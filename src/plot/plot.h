/* SPDX-License-Identifier: MIT */
/*
 * plot.h: pictures of grids and curves, drawn by gnuplot through a pipe
 *
 * A figure is data with labels; it knows no encoding. The same figure becomes a file (PNG, SVG, PDF by the
 * ending), a piece of SVG to inline in a page, or text in the terminal. Colours are safe for colour-blind
 * readers: viridis for magnitudes, a blue-white-red scale centred at zero for signed values, and curves differ in
 * their dashes as well.
 *
 * A picture is a figure made from an encoding and its parameters. Which pictures an encoding has is what the
 * registry says (posenc_encoding_info.pictures); how each kind is drawn stands in a table of picture.c.
 */
#ifndef PE_PLOT_H
#define PE_PLOT_H

#include <posenc/posenc.h>
#include <stdio.h>

/* ---------------------------------------------------------------- figures ------------------- */

typedef enum pe_figure_kind { PE_GRID, PE_CURVES } pe_figure_kind;

typedef struct pe_curve {
    const char   *name;
    const double *x, *y;      /* [n]; NaN breaks the line */
    const double *low, *high; /* [n] band, or NULL */
    int64_t       n;
} pe_curve;

typedef struct pe_mark { /* a vertical line with a label */
    double      x;
    const char *label;
} pe_mark;

typedef struct pe_figure {
    pe_figure_kind kind;
    const char    *title, *x_label, *y_label, *value_label; /* with units; NULL: none */
    int            log_x, log_y;
    /* grid: values [rows, cols] row-major, row 0 at the top; x from x0 by dx per column, y from y0 by dy per row */
    const double *values;
    int64_t       rows, cols;
    double        x0, dx, y0, dy;
    int           signed_scale; /* 1: centred at zero */
    /* curves */
    const pe_curve *curves;
    int             curve_count;
    int             ordered; /* 1: the curves are a family in order (heads), coloured along one scale */
    const pe_mark  *marks;
    int             mark_count;
} pe_figure;

/* POSENC_OK if gnuplot can be run, else FILE with the package to install: ask before hours of work. */
posenc_status pe_plot_ready(posenc_error *err);
/* POSENC_OK if path ends in .png, .svg or .pdf, else ARGUMENT. */
posenc_status pe_plot_path_check(const char *path, posenc_error *err);

/* Writes path whole or not at all; the ending chooses the format. FILE if gnuplot is missing or fails. */
posenc_status pe_plot_file(const pe_figure *figure, const char *path, posenc_error *err);
/* A self-contained <svg> document with coordinates after a click and toggled curves (gnuplot's "svg mouse
   standalone"), whose elements carry `name` (letters, digits, '_') so that several live in one page. *svg is
   malloc'd text. */
posenc_status pe_plot_svg(const pe_figure *figure, const char *name, char **svg, posenc_error *err);
/* Half-block characters, `columns` wide; colour 0 = none: then a grid is shaded and curves are letters. */
posenc_status pe_plot_terminal(const pe_figure *figure, FILE *stream, int columns, int colour,
                               posenc_error *err);

/* ---------------------------------------------------------------- pictures of an encoding --- */

enum { PE_KIND_LENGTH = 24, PE_MOST_OFFERS = 16 };

/* One picture that an encoding has: its kind ("heatmap") and the part it shows. */
typedef struct pe_offer {
    posenc_place place;
    char         kind[PE_KIND_LENGTH];
} pe_offer;

/* What e offers, in the order of the places; returns the count (at most PE_MOST_OFFERS). */
int pe_picture_offers(const posenc_encoding *e, pe_offer offers[PE_MOST_OFFERS]);

typedef struct pe_picture_data {
    posenc_dims dims;   /* H, D, d_model, and Lk and L as the parameters were made for */
    int64_t     length; /* positions, or distances, to draw */
    int         causal; /* 1: no keys in the future */
    double      mark;   /* position of a vertical line, e.g. the training length; 0: none */
    const char *mark_label;
    const char *origin; /* where the parameters come from: "initial, seed 1"; NULL where there are none */
    const posenc_tensor *params; /* posenc_param_count(e) of them */
} pe_picture_data;

typedef struct pe_picture pe_picture;

posenc_status    pe_picture_create(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                   const pe_picture_data *data, posenc_error *err);
const pe_figure *pe_picture_figure(const pe_picture *picture);
void             pe_picture_free(pe_picture *picture); /* NULL is fine */

#endif

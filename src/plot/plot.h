/* SPDX-License-Identifier: MIT */
/*
 * plot.h: pictures of grids and curves, drawn by gnuplot through a pipe
 *
 * A figure is data with labels; it knows no encoding. The same figure becomes a file (PNG, SVG, PDF by the
 * ending), a piece of SVG to inline in a page, or text in the terminal. Colours are safe for colour-blind
 * readers: viridis for magnitudes, a blue-white-red scale centred at zero for signed values; curves differ in
 * their dashes as well.
 *
 * A picture is a figure made from an encoding and its parameters. posenc_encoding_info.pictures says which
 * pictures an encoding has; the table of picture.c says how each kind is made.
 */
#ifndef PE_PLOT_H
#define PE_PLOT_H

#include <posenc/registry.h>
#include <stdio.h>

/* ---------------------------------------------------------------- figures ------------------- */

typedef enum pe_figure_kind { PE_GRID, PE_CURVES, PE_ARROWS, PE_PANELS } pe_figure_kind;

/* How the points of a curve are shown: joined, one by one, or joined by a thin grey line to compare others
   with. */
typedef enum pe_curve_style { PE_LINE, PE_DOTS, PE_RULE } pe_curve_style;

typedef struct pe_curve {
    const char    *name;
    const double  *x, *y; /* [n]; NaN breaks the line. Of arrows: [1], the tip; they start at the origin */
    const double  *low, *high; /* [n] band, or NULL */
    int64_t        n;
    pe_curve_style style;
    int            hue; /* 1 .. 8: that colour of the palette; 0: by the place among the curves */
} pe_curve;

typedef struct pe_mark { /* a vertical line with a label */
    double      x;
    const char *label;
} pe_mark;

typedef struct pe_tick { /* a label of the second y axis */
    double      y;
    const char *label;
} pe_tick;

typedef struct pe_point { /* a cross on a grid */
    double x, y;
} pe_point;

typedef struct pe_figure {
    pe_figure_kind kind;
    const char    *title, *x_label, *y_label, *value_label; /* with units; NULL: none */
    int            log_x, log_y;
    double         low, high; /* the colours' range of a grid, the y range of curves; equal: from the data */
    /* grid: values [rows, cols] row-major, row 0 at the top; x from x0 by dx per column, y from y0 by dy per
       row */
    const double *values;
    int64_t       rows, cols;
    double        x0, dx, y0, dy;
    int           signed_scale; /* 1: centred at zero */
    int           square_cells; /* 1: a map, whose cells are as high as wide */
    int           whole_cells;  /* 1: each cell has at least a pixel: there are lines between small maps */
    int           apart_rows;   /* 1: rows (channels) whose neighbours differ: where there is no space for */
    int           apart_cols;   /*    all, some are shown, and never the mean of several; and columns */
    int           with_numbers; /* 1: a table: each cell shows its value, with so many decimals */
    int           decimals;
    const char *const *row_names, *const *col_names; /* [rows], [cols]; NULL: the numbers of the axes */
    const char     *second_label;                    /* of the second y axis */
    const pe_tick  *ticks;
    int             tick_count;
    const pe_point *points;
    int             point_count;
    /* curves, arrows */
    const pe_curve *curves;
    int             curve_count;
    int             ordered; /* 1: the curves are a family in order (heads), coloured along one scale */
    int             narrow;  /* 1: for a page on a phone: two thirds as wide, names below */
    int             steps;   /* 1: values hold from half before to half after, with jumps between */
    const pe_mark  *marks;
    int             mark_count;
    /* panels: figures (none of panels), row by row, under one title */
    const struct pe_figure *panels;
    int                     panel_count, panel_columns;
} pe_figure;

/* A larger number is a hole in what gnuplot draws: it takes those beyond about DBL_MAX / 2 for infinite. */
#define PE_MOST_DRAWN 1e300

/* POSENC_OK if gnuplot can be run, else FILE with the package to install: to be called before long work. */
posenc_status pe_gnuplot_ready(posenc_error *err);
/* How many seconds gnuplot may be silent before it is ended (300), and how many after this process has caught
   a signal (10): for tests. */
void pe_gnuplot_patience(int seconds, int after_signal);
/* POSENC_OK if path ends in .png, .svg, .pdf or .csv, else ARGUMENT. */
posenc_status pe_gnuplot_path_check(const char *path, posenc_error *err);

/* Writes path whole or not at all; the ending chooses the format: .csv has the figure's numbers
   (pe_numbers_write). FILE if gnuplot is missing or fails. */
posenc_status pe_gnuplot_file(const pe_figure *figure, const char *path, posenc_error *err);
/* A self-contained <svg> document that shows coordinates and toggles curves on a click (gnuplot's "svg mouse
   standalone"). `name` (letters, digits, '_') is part of its elements' names, so that one page can hold
   several. *svg is malloc'd text. */
posenc_status pe_gnuplot_svg(const pe_figure *figure, const char *name, char **svg, posenc_error *err);
/* The numbers of the figure as CSV, a block for each panel: of a grid a line for each row, of curves one for
   each x where all have the same, else one for each point. */
void pe_numbers_write(FILE *to, const pe_figure *figure);
/* Half-block characters, `columns` wide; colour 0 = none: then a grid is shaded and curves are letters. */
posenc_status pe_terminal_print(const pe_figure *figure, FILE *stream, int columns, int colour,
                                posenc_error *err);

/* ---------------------------------------------------------------- pictures of an encoding --- */

enum { PE_KIND_LENGTH = 24, PE_MOST_OFFERS = 16, PE_SETTINGS = 200 };

/* One picture that an encoding has: its kind ("heatmap") and the part it shows. */
typedef struct pe_offer {
    posenc_place place;
    char         kind[PE_KIND_LENGTH];
    int          in_report; /* 1: it shows at a glance what training did to the encoding */
} pe_offer;

/* What e offers, in the order of the places; returns the count (at most PE_MOST_OFFERS). */
int pe_picture_offers(const posenc_encoding *e, pe_offer offers[PE_MOST_OFFERS]);
/* The first of them of that kind; 0: there is none. */
int pe_picture_offered(const posenc_encoding *e, const char *kind, pe_offer *offer);

/* Axes of the grid that e's positions lie on, 1 for a line (also where the other coordinate is a word). */
int pe_picture_axes(const posenc_encoding *e, const posenc_dims *dims);

/* Is e's bias drawn as a map of its window, whatever the length? */
int pe_biases_is_map(const posenc_encoding *e);

/* The vectors whose scores, once rotated, are drawn: joined by |, 0 = all. */
enum { PE_VECTORS_ONES = 1, PE_VECTORS_UNIFORM = 2, PE_VECTORS_NORMAL = 4 };
/* How many frequencies rotate the pairs of channels: joined by |, 0 = both, a panel each. */
enum { PE_MANY_THETAS = 1, PE_ONE_THETA = 2 };

/* Zero means that the kind chooses, where nothing else is said. */
typedef struct pe_picture_data {
    posenc_dims dims;   /* H, D, d_model, and Lk and L as the parameters were made for */
    int64_t     length; /* positions, or distances, to draw */
    int         causal; /* 1: no keys in the future */
    double      mark;   /* position of a vertical line, e.g. the training length; 0: none */
    const char *mark_label;
    const char *name;   /* stands for the SPEC in the title: a user's table */
    const char *origin; /* where the parameters come from: "initial, seed 1"; NULL where there are none */
    const posenc_tensor *params;     /* posenc_param_count(e) of them */
    int64_t              rows, cols; /* of a grid of positions, row by row; 0: positions on a line */
    const int64_t
           *sizes; /* of a grid of more than two axes, whose last one is cols and the others together rows */
    int     axes;  /* of it; 0: two */
    int64_t first; /* position that the grid begins with: rows of a table before it */
    const char *const *words; /* names of the positions, `length` of them; NULL: none */
    const int64_t *chosen;    /* channels (heatmap, curves), pairs (pair), or y, x of points (similarity2d) */
    int            chosen_count;
    int            binary_counter; /* 1: heatmap and curves draw that of their positions next to them */
    int            transposed;     /* 1: heatmap has positions down and channels across */
    int            with_numbers, decimals; /* 1: a grid shows the numbers of its cells, a table */
    const double  *bases;                  /* decay: a panel each; none: the encoding's own */
    int            base_count;
    int            thetas, contents; /* decay, mass: PE_MANY_THETAS ..., PE_VECTORS_ONES ... */
    double         theta;            /* the one of PE_ONE_THETA; 0: the middle one of the encoding's own */
    int            products;         /* similarity, similarity2d: 1: dot products, not cosines */
    int64_t        draws;            /* of random vectors; 0: 200 */
    uint64_t       seed;             /* of those */
} pe_picture_data;

/* The sizes of a kind where nobody says others: positions or distances (0: they lie on a grid, or are words),
   the most of them, and the width of a vector or head; NULL: there is no such kind. */
typedef struct pe_picture_size {
    const char *kind;
    int64_t     length, longest, dim;
} pe_picture_size;

enum { PE_PICTURE_KINDS = 14, PE_ENDLESS = 1 << 30 /* of a context, of which no position is drawn */ };
const pe_picture_size *pe_picture_size_of(const char *kind);

/* Do its positions lie on a grid, or is it a map of a window, so that rows and columns say how much there is
   to draw? */
int pe_picture_wants_grid(const posenc_encoding *e, const pe_offer *offer, int64_t length, int64_t dim);

/* The settings that divide the positions of e's input part into axes of these sizes: "shape=16x32"; a table's
   own grid (grid_in) stays as its SPEC says it. "" where it has none. */
void pe_picture_lists(const posenc_encoding *e, const int64_t *sizes, int axes, char settings[PE_SETTINGS]);

/* Fills in what nobody said of a picture that e offers: length, dims.H and dims.D where they are 0, rows and
   cols where positions lie on a grid (those of a bias become its window, and 0), causal, and the other sizes
   of `dims`, for which the parameters are to be made. `settings`: those with which e has to be made anew
   before, such as "shape=16x32" or "rope.length=1024"; "" for none. */
void pe_picture_fit(const posenc_encoding *e, const pe_offer *offer, pe_picture_data *data,
                    char settings[PE_SETTINGS]);

/* Adds N(0,1) to each parameter of `varied` (float64) that has one number everywhere, for such leave nothing
   to see; how many there were, and their names in `names`. */
int pe_picture_vary(const posenc_encoding *e, const posenc_tensor *params, const int *varied, int64_t seed,
                    char *names, size_t n);

typedef struct pe_picture pe_picture;

posenc_status pe_picture_create(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                const pe_picture_data *data, posenc_error *err);
/* The same; and where it is flat, once more with pe_picture_vary's parameters, which `origin` [n] then says.
 */
posenc_status pe_picture_create_varied(pe_picture **picture, const posenc_encoding *e, const pe_offer *offer,
                                       pe_picture_data *data, const int *varied, char *origin, size_t n,
                                       posenc_error *err);
const pe_figure *pe_picture_figure(const pe_picture *picture);
/* Has it the same value everywhere, but for rounding? */
int pe_picture_is_flat(const pe_picture *picture);
/* Pictures of one kind as one: those of a single curve each in one frame, all others side by side. It shows
   what they hold: free it before them. */
posenc_status pe_picture_join(pe_picture **picture, pe_picture *const *parts, int count, posenc_error *err);
void          pe_picture_free(pe_picture *picture); /* NULL is fine */

#endif

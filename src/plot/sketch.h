/* SPDX-License-Identifier: MIT */
/*
 * sketch.h: what the makers of pictures share while one is made
 *
 *   channels.c    input    heatmap, curves
 *   similarity.c  input    similarity (matrix, or grid of grids), similarity2d
 *   rotated.c     rotary   similarity, decay, mass; rotated vectors and frequencies for the two below
 *   pair.c        rotary   pair
 *   wavelengths.c rotary   wavelengths
 *   biases.c      score    bias, mass, buckets; weight: factors
 *   diagrams.c    input    hierarchy, onehot; rotary: words
 *
 * A maker computes its numbers through the public functions and fills the picture's figure. What it takes
 * from the sketch's store lives as long as the picture and is never freed before. The first failure sets the
 * sketch's status; from then on everything taken is NULL, and pe_picture_create returns the status.
 */
#ifndef PE_PLOT_SKETCH_H
#define PE_PLOT_SKETCH_H

#include "base/shared/compiler.h"
#include "base/shared/pi.h"
#include "plot/draw.h"

#include <posenc/files.h>

typedef struct pe_sketch {
    const posenc_encoding      *e;
    const posenc_encoding_info *part;
    const pe_picture_data      *data;
    pe_figure                  *figure;
    const char      *what;      /* title, after the SPEC: that of the kind, or a better one from its maker */
    int              unlearned; /* set by a maker: what is shown depends on no parameters */
    const pe_mark   *marks;     /* data->mark, for panels; picture.c gives it to any other figure */
    int              mark_count;
    posenc_arrays    store; /* all that pe_sketch_take gave, without names */
    int              axes;  /* what pe_picture_axes says */
    posenc_plan     *plan;
    posenc_workspace work;
    posenc_status    status; /* of the first failure, */
    posenc_error    *err;    /* and its sentence */
} pe_sketch;

struct pe_picture {
    pe_figure     figure;
    pe_mark       mark;
    const char   *name, *what, *origin; /* the title's parts; no origin: NULL */
    posenc_arrays store;
};

typedef void pe_maker(pe_sketch *s);

pe_maker pe_channels_heatmap, pe_channels_curves, pe_similarity_matrix, pe_similarity_to_points;
pe_maker pe_rotated_similarity, pe_rotated_decay, pe_rotated_mass, pe_pair_make, pe_wavelengths_make;
pe_maker pe_biases_make, pe_biases_mass, pe_biases_buckets, pe_biases_factors;
pe_maker pe_diagrams_hierarchy, pe_diagrams_onehot, pe_diagrams_words;

/* The picture cannot be made: the sentence says why, unless an earlier one has. */
void pe_sketch_refuse(pe_sketch *s, posenc_status status, const char *format, ...) PE_PRINTF(3, 4);

/* `count` zeroed elements of `size` bytes from the store. NULL, here and below: it failed. */
void   *pe_sketch_take(pe_sketch *s, int64_t count, size_t size);
double *pe_sketch_numbers(pe_sketch *s, int64_t count);
/* x, x + step, ... */
double *pe_sketch_range(pe_sketch *s, double start, double step, int64_t n);
/* A text from the store, never NULL. */
const char *pe_sketch_text(pe_sketch *s, const char *format, ...) PE_PRINTF(2, 3);

posenc_status pe_sketch_no_memory(posenc_error *err);

/* Makes a plan of `e` for these sizes, and a workspace for its runs, in s->plan and s->work; the ones before
   are freed. Returns whether there is one. */
int pe_sketch_prepare(pe_sketch *s, const posenc_encoding *e, const posenc_dims *dims, posenc_run runs);
/* The encoding of the sketch with other settings, until pe_sketch_forget, which also frees the plan. */
posenc_encoding *pe_sketch_alter(pe_sketch *s, const char *settings);
void             pe_sketch_forget(pe_sketch *s, posenc_encoding *other);

/* The rows of the positions to draw, [n, width]: 0, 1, ..., or the grid data->rows x data->cols. rows NULL:
   it failed. */
typedef struct pe_row_set {
    const double *rows;
    int64_t       n, width;
} pe_row_set;

pe_row_set pe_sketch_rows(pe_sketch *s);

/* Rotates q [R, n, D] in place to positions first, first + 1, ... */
void pe_rotated_vectors(pe_sketch *s, double *q, int64_t R, int64_t n, double first);
/* The frequencies of an encoding with the parameters of the picture, [*M], at its length, and the factor on
   cosine and sine (NULL: not wanted), NAN where it changes with the position. Fails where pairs follow
   several coordinates. */
double *pe_rotated_frequencies(pe_sketch *s, const posenc_encoding *e, int64_t *M, double *magnitude);

/* The value of the part's setting in the SPEC, or its default; "" if there is no such setting. */
enum { PE_SETTING_LENGTH = 64 };
void pe_sketch_setting(const pe_sketch *s, const char *name, char text[PE_SETTING_LENGTH]);

double pe_sketch_dot(const double *a, const double *b, int64_t n);

/* Makes f a grid of values [rows, cols]; its scale is signed if a value is negative. */
void pe_sketch_grid(pe_figure *f, const double *values, int64_t rows, int64_t cols);
/* Rows become columns; a second axis, whose labels stand at rows, goes. */
void pe_sketch_transpose(pe_sketch *s, pe_figure *f);
/* Writes the number into each cell, where the data say so. */
void pe_sketch_table(pe_sketch *s, pe_figure *f);
/* Makes f a set of `count` curves [count, n] over one x, unnamed. */
pe_curve *pe_sketch_curves(pe_sketch *s, pe_figure *f, const double *x, const double *y, int64_t n,
                           int count);
/* One figure of figures with one curve each over the same axes, named anew. 0: they are not such. */
int pe_sketch_overlay(pe_sketch *s, pe_figure *to, const pe_figure *figures, const char *const *names,
                      int count);
/* Makes f a set of `count` panels. columns 0: up to three, and four in a square. */
pe_figure *pe_sketch_panels(pe_sketch *s, pe_figure *f, int count, int columns);
void       pe_sketch_labels(pe_figure *f, const char *x, const char *y, const char *value);

/* Scores by distance [n] become the share of the attention on the 1, 2, ... n nearest keys. */
void pe_sketch_shares(double *scores, int64_t n);
/* Makes the figure a set of `count` such curves [count, n], each named after where it reaches 90 %. */
pe_curve *pe_sketch_mass(pe_sketch *s, const double *shares, const char *const *names, int count, int64_t n);

#endif

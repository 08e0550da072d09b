/* SPDX-License-Identifier: MIT */
/*
 * sketch.h: what the families of pictures share while one is made
 *
 *   channels.c    input    heatmap, curves
 *   similarity.c  input    similarity (matrix, or grid of grids), similarity2d
 *   rotated.c     rotary   similarity, decay, mass; turned vectors and frequencies for the two below
 *   pair.c        rotary   pair
 *   wavelengths.c rotary   wavelengths
 *   biases.c      score    bias, mass, buckets
 *
 * A maker computes its numbers through the public door and fills the picture's figure. What it takes from the
 * picture's store lives as long as the picture; nothing is given back before. Whatever fails on the way sets
 * the sketch's status; from then on nothing is given any more (NULL), and only who began the picture asks
 * why.
 */
#ifndef PE_PLOT_SKETCH_H
#define PE_PLOT_SKETCH_H

#include "plot/draw.h"

#define PE_TWO_PI 6.283185307179586

typedef struct pe_sketch {
    const posenc_encoding      *e;
    const posenc_encoding_info *part;
    const pe_picture_data      *data;
    pe_figure                  *figure;
    const char    *what;      /* title, after the SPEC: the kind's own words, or a maker's better ones */
    int            unlearned; /* set by a maker: what is shown depends on no parameters */
    const pe_mark *marks;     /* data->mark, for panels; the figure itself gets it anyway */
    int            mark_count;
    struct block  *store; /* a chain of all that pe_sketch_take gave */
    posenc_plan   *plan;
    void          *work;
    posenc_status  status; /* of the first failure, and its words */
    posenc_error  *err;
} pe_sketch;

typedef void pe_maker(pe_sketch *s);

pe_maker pe_channels_heatmap, pe_channels_curves;
pe_maker pe_similarity_matrix, pe_similarity_to_points;
pe_maker pe_rotated_similarity, pe_rotated_decay, pe_rotated_mass, pe_pair_make, pe_wavelengths_make;
pe_maker pe_biases_by_distance, pe_biases_mass;
pe_maker pe_biases_buckets;

/* The picture cannot be made: one sentence, unless another came before. */
void pe_sketch_refuse(pe_sketch *s, posenc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* `count` zeroed things of `size` bytes from the store. NULL, here and below: it failed. */
void   *pe_sketch_take(pe_sketch *s, int64_t count, size_t size);
double *pe_sketch_numbers(pe_sketch *s, int64_t count);
/* x, x + step, ... */
double *pe_sketch_range(pe_sketch *s, double start, double step, int64_t n);
/* A text from the store, never NULL. */
const char *pe_sketch_text(pe_sketch *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

posenc_status pe_sketch_no_memory(posenc_error *err);

/* A plan of `e` for sizes and a workspace for its runs, in s->plan and s->work; what stood there is freed.
   Whether there is one. */
int pe_sketch_prepare(pe_sketch *s, const posenc_encoding *e, const posenc_dims *dims, int runs);
/* The encoding of the sketch with other settings: valid until pe_sketch_forget, which gives the plan back
 * too. */
posenc_encoding *pe_sketch_alter(pe_sketch *s, const char *settings);
void             pe_sketch_forget(pe_sketch *s, posenc_encoding *other);

/* The rows of the positions to draw, [n, width]: a line from 0 on, or the grid data->rows x data->cols. rows
   NULL: it failed. */
typedef struct pe_row_set {
    const double *rows;
    int64_t       n, width;
} pe_row_set;

pe_row_set pe_sketch_rows(pe_sketch *s);

/* Turns q [R, n, D] in place to positions first, first + 1, ... */
void pe_rotated_vectors(pe_sketch *s, double *q, int64_t R, int64_t n, double first);
/* The frequencies of an encoding with the parameters of the picture, [*M], at its length, and the factor on
   cosine and sine (NULL: not wanted), NAN where it changes with the position. It fails for a matrix. */
double *pe_rotated_frequencies(pe_sketch *s, const posenc_encoding *e, int64_t *M, double *magnitude);

/* What the part's setting is, as the SPEC says it or else its standard; "" if there is no such setting. */
enum { PE_SETTING_LENGTH = 64 };
void pe_sketch_setting(const pe_sketch *s, const char *name, char text[PE_SETTING_LENGTH]);

/* Sum of a[i] b[i], in order. */
double pe_sketch_dot(const double *a, const double *b, int64_t n);

/* Makes f a grid of values [rows, cols]; its scale is signed if a value is negative. */
void pe_sketch_grid(pe_figure *f, const double *values, int64_t rows, int64_t cols);
/* Makes f a set of `count` curves [count, n] over one x, unnamed. */
pe_curve *pe_sketch_curves(pe_sketch *s, pe_figure *f, const double *x, const double *y, int64_t n,
                           int count);
/* Makes f a set of `count` panels. columns 0: up to three, and four in a square. */
pe_figure *pe_sketch_panels(pe_sketch *s, pe_figure *f, int count, int columns);
void       pe_sketch_labels(pe_figure *f, const char *x, const char *y, const char *value);

/* Scores by distance [n] become the share of the attention that the 1, 2, ... n nearest keys have. */
void pe_sketch_shares(double *scores, int64_t n);
/* Makes the figure `count` such shares [count, n], named after where they reach 90 %. */
pe_curve *pe_sketch_mass(pe_sketch *s, const double *shares, const char *const *names, int count, int64_t n);

#endif

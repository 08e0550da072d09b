/* SPDX-License-Identifier: MIT */
/*
 * gallery.h: the pictures of a comparison, drawn once and used by the report and as files
 */
#ifndef PE_TRAIN_GALLERY_H
#define PE_TRAIN_GALLERY_H

#include "train/outcome.h"

#include "plot/plot.h"

enum { PE_GALLERY_NAME = 64 };

typedef struct pe_exhibit {
    char             name[PE_GALLERY_NAME]; /* "loss", "p03_t5_bias": of the file, without its ending */
    int              outcome;               /* whose picture it is; -1: everybody's */
    const pe_figure *figure;
    char            *svg;
    pe_picture      *picture; /* owns the figure of an outcome */
} pe_exhibit;

typedef struct pe_gallery {
    pe_exhibit *items;
    int         count;
    pe_figure   loss, training;
    pe_curve   *curves;         /* of both */
    double     *numbers, *next; /* what the curves point into, and where its free part begins */
    pe_mark     mark;
    char        title[160], mark_label[32];
} pe_gallery;

/* The first two exhibits are loss against position and the training curves; then each encoding's own, drawn from its
   trained parameters. */
posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err);
void          pe_gallery_free(pe_gallery *g);

#endif

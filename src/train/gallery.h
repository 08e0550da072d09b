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

/* The curves that compare all encodings; those that were not measured are missing. */
enum { PE_GENERAL = 4 };

typedef struct pe_gallery {
    pe_exhibit *items;
    int         count;
    pe_figure   general[PE_GENERAL];
    pe_curve   *curves;         /* of all of them */
    double     *numbers, *next; /* what the curves point into, and where its free part begins */
    pe_mark     mark;
    char        title[160], mark_label[32];
} pe_gallery;

/* First the curves over all encodings, then each encoding's own pictures, drawn from its trained
   parameters. */
posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err);
void          pe_gallery_free(pe_gallery *g);

/* "loss" by position, "length", "training", "attention"; NULL where it was not measured. */
const pe_exhibit *pe_gallery_find(const pe_gallery *g, const char *name);

#endif

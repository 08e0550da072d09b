/* SPDX-License-Identifier: MIT */
/*
 * report.h: a comparison in pictures, as one page, and as JSON
 *
 * The template of the page is report.html, which says how it is written; translations are those of zh.po.
 */
#ifndef PE_TRAIN_REPORT_H
#define PE_TRAIN_REPORT_H

#include "train/judge/judge.h"
#include "train/report/summary.h"

#include "base/shared/compiler.h"
#include "plot/plot.h"
#include "show/formula.h"
#include "show/page.h"

#include <stdio.h>

/* ---------------------------------------------------------------- pictures: gallery.c ------- */

/* Drawn once, and used by the report and as files. */
enum { PE_GALLERY_NAME = 64 };

typedef struct pe_exhibit {
    char             name[PE_GALLERY_NAME]; /* "loss", "p03_t5_bias": of the file, without its ending */
    int              outcome;               /* whose picture it is; -1: everybody's */
    const pe_figure *figure;
    char            *svg;
    pe_picture      *picture; /* owns the figure of an outcome */
} pe_exhibit;

/* The curves that compare all encodings; those that were not measured are missing. */
enum { PE_GENERAL = 4, PE_LABELS = 2 * PE_GENERAL };

typedef struct pe_gallery {
    pe_exhibit *items;
    int         count;
    pe_figure   general[PE_GENERAL];
    pe_curve   *curves;         /* of all of them */
    double     *numbers, *next; /* what the curves point into, and where its free part begins */
    pe_mark     mark;
    char        title[160], mark_label[32];
    char       *labels[PE_LABELS]; /* those of figures about tokens */
    int         label_count;
} pe_gallery;

/* First the curves over all encodings, then each encoding's own pictures, drawn from its trained
   parameters. */
posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err);
void          pe_gallery_free(pe_gallery *g);

/* "loss" by position, "length", "training", "attention"; NULL where it was not measured. */
const pe_exhibit *pe_gallery_find(const pe_gallery *g, const char *name);
/* The drawing as a part of a page: without XML's first line and the script that all of them share, with the
   figure's title for those who cannot see it. */
void pe_gallery_draw(FILE *to, const pe_exhibit *x);
/* gnuplot's script, once for all drawings and before them. */
void pe_gallery_script(FILE *to, const pe_gallery *g);

/* ---------------------------------------------------------------- texts, tables, template: html.c, words.c
 */

/* The language of the pages that this thread writes from now on; tokens: 1 where their text is tokens. */
void pe_words_speak(pe_language language, int tokens);
/* The first n bytes of a text in that language, as HTML; in English where no row of the catalogue fits. */
void pe_words_write(FILE *to, const char *text, size_t n);

/* A text escaped and translated: the one place where text of the user becomes HTML. */
void pe_html_text(FILE *to, const char *s);
/* <tag>...</tag>, the content a text; tag may have attributes, of which translate="no" makes it a name. */
void pe_html_element(FILE *to, const char *tag, const char *format, ...) PE_PRINTF(3, 4);
/* The lines of notes as small paragraphs. */
void pe_html_notes(FILE *to, const char *lines);
/* A table of that class, "" for none. Without details it is what the terminal shows, and fits a page. */
void pe_html_table(FILE *to, const pe_table *t, const char *class, int details);
/* "Su et al. 2021, arXiv:2104.09864": a link on its number. */
void pe_html_paper(FILE *to, const char *source);
/* "1 seed", "3 seeds" */
const char *pe_html_count(char text[48], int64_t n, const char *what);

enum { PE_VALUES = 96, PE_VALUE = 2048 };

/* A page that is written from the template, with the values that its parts name. */
typedef struct pe_page {
    FILE *to;
    int   count;
    struct {
        const char *name;
        char        text[PE_VALUE];
    } values[PE_VALUES];
} pe_page;

/* A value from here on. */
void pe_html_set(pe_page *p, const char *name, const char *format, ...) PE_PRINTF(3, 4);
void pe_html_part(const pe_page *p, const char *part);

/* ---------------------------------------------------------------- the page ------------------ */

/* One HTML file that needs nothing else: no network, no other file, readable without JavaScript and on paper.
   What could not be written the stream remembers. */
void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g);

/* Parts of it. A point per encoding, loss at L and at 8 L: answer_chart.c. Nothing where there are fewer than
   two. */
void pe_answer_chart(FILE *to, const pe_compare *c);
/* What of the order is settled, and the learning rates that were tried: report_settled.c. Nothing where
   neither was measured. */
void pe_report_settled(pe_page *page, const pe_compare *c);
/* The tasks, report_tasks.c; nothing where there are none. */
void pe_report_tasks(pe_page *page, const pe_suite *suite);
/* Models read further than they were trained: report_extension.c. Nothing where nothing was extended. */
void pe_report_extension(pe_page *page, const pe_compare *c);
/* A card per encoding: formula, settings, papers, numbers, pictures; report_cards.c. */
void pe_report_cards(pe_page *page, const pe_compare *c, const pe_gallery *g);
/* What papers found, next to what was found here; report_papers.c. */
void pe_report_papers(pe_page *page, const pe_compare *c);
/* What introductions say, next to what is measured; report_papers.c. Nothing where it was not asked for. */
void pe_report_claims(pe_page *page, const pe_compare *c);
/* The titles of the introductions that a claim names by number. */
void pe_report_sources(char *text, size_t n, const char *tutorials);

#endif

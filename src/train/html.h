/* SPDX-License-Identifier: MIT */
/*
 * html.h: what every part of the report writes: texts, formulas, tables, and the parts of its template
 *
 * The template is report.html, which says how it is written; translations are those of zh.po.
 */
#ifndef PE_TRAIN_HTML_H
#define PE_TRAIN_HTML_H

#include "train/compare.h"
#include "train/table.h"

#include <stdio.h>

/* "en", "zh"; NULL if there is no such one. */
const char *pe_language_code(pe_language language);
/* The language of the pages that this thread writes from now on. */
void pe_words_speak(pe_language language);
/* The first n bytes of a text in that language, as HTML; in English where no row of the catalogue fits. */
void pe_words_write(FILE *to, const char *text, size_t n);

/* The formula (mathml.c says how it is written) as <math> elements, one per line of it. Returns 0 and has
   written something of no use where it is not well formed. */
int pe_mathml_write(FILE *to, const char *formula);

/* The first n bytes, escaped, in no language: names. */
void pe_html_escape(FILE *to, const char *s, size_t n);
/* A text escaped and translated: the one place where text of the user becomes HTML. */
void pe_html_text(FILE *to, const char *s);
/* <tag>...</tag>, the content a text; tag may have attributes, of which translate="no" makes it a name. */
void pe_html_element(FILE *to, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The lines of notes as small paragraphs. */
void pe_html_notes(FILE *to, const char *lines);
/* A table of that class, "" for none. Without details it is what the terminal shows, and fits a page. */
void pe_html_table(FILE *to, const pe_table *t, const char *class, int details);

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
void pe_page_set(pe_page *p, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void pe_page_part(const pe_page *p, const char *part);

#endif

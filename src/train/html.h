/* SPDX-License-Identifier: MIT */
/*
 * html.h: what every part of the report writes
 */
#ifndef PE_TRAIN_HTML_H
#define PE_TRAIN_HTML_H

#include "train/table.h"

#include <stdio.h>

/* Escaped: the one place where text of the user becomes HTML. */
void pe_html_text(FILE *to, const char *s);
/* <tag>...</tag>, the content escaped; tag may have attributes. */
void pe_html_element(FILE *to, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The lines of notes as small paragraphs. */
void pe_html_notes(FILE *to, const char *lines);
/* Without details it is what the terminal shows, and fits a page. */
void pe_html_table(FILE *to, const pe_table *t, int details);

#endif

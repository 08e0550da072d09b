/* SPDX-License-Identifier: MIT */
/*
 * words.h: the report in another language
 */
#ifndef PE_TRAIN_WORDS_H
#define PE_TRAIN_WORDS_H

#include "train/compare.h"

#include <stddef.h>
#include <stdio.h>

/* "en", "zh"; NULL if there is no such one. */
const char *pe_language_code(pe_language language);

/* Number of rows of words.def, and one of them. */
int  pe_words_count(void);
void pe_words_at(int index, const char **english, const char **chinese);

/* The Chinese of a text into chinese[n], cut if it is longer; 0 if no row fits it. */
int pe_words_translate(char *chinese, size_t n, const char *english);

/* A page in English, written with every text of it translated: what stands between two tags and what a
   pointer shows (title="..."). Code, formulas, scripts and whatever is marked translate="no" stay as they
   are, and so does a text without a translation. */
void pe_words_page(FILE *to, const char *page, pe_language language);

#endif

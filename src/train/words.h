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

/* The language of the pages that this thread writes from now on. */
void pe_words_speak(pe_language language);

/* The first n bytes of a text in that language, as HTML; in English where no row of the catalogue fits. */
void pe_words_write(FILE *to, const char *text, size_t n);

#endif

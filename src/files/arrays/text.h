/* SPDX-License-Identifier: MIT */
/* text.h: words, lists of words, reals as text, texts of strangers, and texts in CSV. */
#ifndef PE_FILES_TEXT_H
#define PE_FILES_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/decimal.h"

/* The same word? NULL is none. */
static inline int pe_text_is(const char *a, const char *b)
{
    return a && !strcmp(a, b);
}

static inline int pe_text_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Is word one of the blank-separated words of list? NULL is none. */
static inline int pe_text_is_among(const char *list, const char *word)
{
    const size_t n = word && !strchr(word, ' ') ? strlen(word) : 0;
    for (const char *at = list; at && n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return 1;
    return 0;
}

/* x with the fewest of 15 to 17 digits that read back as x. Returns text. */
enum { PE_TEXT_REAL = 40 };
static inline const char *pe_text_real(char text[PE_TEXT_REAL], double x)
{
    pe_decimal_shortest(text, PE_TEXT_REAL, x, 15, 17, 0);
    return text;
}

/* The same of a float, with 6 to 9 digits. */
static inline const char *pe_text_single(char text[PE_TEXT_REAL], float x)
{
    pe_decimal_shortest(text, PE_TEXT_REAL, (double)x, 6, 9, 1);
    return text;
}

/* ---------------------------------------------------------------- texts of strangers -------- */

/* A name out of a file, or a file's own, may be anything but what it says it is: bytes that are no UTF-8,
   sequences that a terminal obeys, marks that turn the direction of what follows. Shown, each such byte is a
   '?', so that a text keeps its length. text.c. */

/* Bytes of the character at text, of which n > 0 are there; *shows: it is one that only shows itself. */
size_t pe_text_next(const char *text, size_t n, int *shows);
/* The first n bytes of a text, or up to its end. */
void pe_text_put(FILE *to, const char *text, size_t n);
/* In place; a last character that was cut off is left out. Returns text. In _lines the ends of lines stay. */
char *pe_text_clean(char *text);
char *pe_text_clean_lines(char *text);

/* A field of CSV, between quotes. A spreadsheet would run what begins as a formula: a quote of its own stands
   before that. */
void pe_text_write_csv(FILE *to, const char *text);

#endif

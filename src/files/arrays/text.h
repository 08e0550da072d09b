/* SPDX-License-Identifier: MIT */
/* text.h: words, lists of words, reals as text, and texts in CSV. */
#ifndef PE_FILES_TEXT_H
#define PE_FILES_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, PE_TEXT_REAL, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    return text;
}

/* The same of a float, with 6 to 9 digits. */
static inline const char *pe_text_single(char text[PE_TEXT_REAL], float x)
{
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, PE_TEXT_REAL, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    return text;
}

/* A field of CSV, between quotes. */
static inline void pe_text_write_csv(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * words.c: a text of the report in Chinese, by the catalogue zh.po. Contract: report.h.
 *
 * The report is made of numbers, names and sentences of many parts of the tool: checks, tasks, claims, the
 * registry, pictures, reasons of the library. None of them knows a language but English, which is also what
 * results.json and the terminal have. So a text is looked up as it is written, numbers and names filled in: a
 * row's msgid is a pattern with places for them, and for further texts, which are translated in turn. (To
 * look up formats before they are filled in was the other way: it could not reach the library's sentences.)
 *
 * A row fits if its letters stand in the text in that order, from the first to the last, with something for
 * each place between. Where several do, the one with the most letters of its own says most about the text.
 */
#include "train/report/report.h"

#include <string.h>

enum { PLACES = 16, TEXT = 4096, DEEPEST = 5 };

typedef struct catalogue_row {
    const char *english, *chinese;
} catalogue_row;

static const catalogue_row rows[] = {
#include "train/zh.inc"
};

enum { ROWS = sizeof rows / sizeof *rows };

/* What stands at the places of a pattern. */
typedef struct fit {
    const char *at[PLACES];
    size_t      length[PLACES];
    char        kind[PLACES];
    int         count;
} fit;

static _Thread_local pe_language spoken;

void pe_words_speak(pe_language language)
{
    spoken = language;
}

void pe_words_escape(FILE *to, const char *text, size_t n)
{
    for (const char *end = text + n; text < end; text++)
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

/* ---------------------------------------------------------------- patterns ------------------ */

static int is_place(const char *s)
{
    return s[0] == '%' && s[1] && strchr("sdwt", s[1]);
}

/* Does text fit the pattern from here on? A place takes as little as it can. */
static int fits(const char *pattern, const char *text, fit *f)
{
    for (; !is_place(pattern); pattern++, text++)
        if (*pattern != *text)
            return 0;
        else if (!*pattern)
            return 1;
    const char   kind = pattern[1];
    const size_t most = kind == 'd'   ? strspn(text, "+-0123456789.e")
                        : kind == 'w' ? strcspn(text, " ")
                                      : strlen(text);
    const int    mine = f->count++;
    f->at[mine]       = text;
    f->kind[mine]     = kind;
    for (f->length[mine] = 1; f->length[mine] <= most; f->length[mine]++)
        if (fits(pattern + 2, text + f->length[mine], f))
            return 1;
    f->count = mine;
    return 0;
}

/* The row that says most about the text, or NULL; what stands at its places. */
static const catalogue_row *find_row(const char *text, fit *best)
{
    const catalogue_row *found = NULL;
    size_t               most  = 0;
    for (const catalogue_row *r = rows; r < rows + ROWS; r++) {
        fit    f = {.count = 0};
        size_t n = strlen(r->english); /* letters that are not places */
        for (const char *s = r->english; *s; s++)
            n -= is_place(s) ? 2 : 0;
        if (n > most && fits(r->english, text, &f)) {
            found = r;
            most  = n;
            *best = f;
        }
    }
    return found;
}

/* ---------------------------------------------------------------- translation --------------- */

/* A place named in a msgstr: %1 .. %9, %a ..; -1: none. */
static int place_named(const char *s)
{
    static const char names[] = "123456789abcdef";
    const char       *at      = s[0] == '%' && s[1] ? strchr(names, s[1]) : NULL;
    return at ? (int)(at - names) : -1;
}

static void translate(FILE *to, const char *from, size_t n, int depth)
{
    char                 text[TEXT];
    fit                  f = {.count = 0};
    const catalogue_row *r =
        n < TEXT && depth < DEEPEST ? (snprintf(text, TEXT, "%.*s", (int)n, from), find_row(text, &f)) : NULL;
    if (!r)
        pe_words_escape(to, from, n);
    for (const char *s = r ? r->chinese : ""; *s; s++) {
        const int place = place_named(s);
        if (place < 0 || place >= f.count)
            pe_words_escape(to, s, 1);
        else {
            translate(to, f.at[place], f.length[place], f.kind[place] == 's' ? depth + 1 : DEEPEST);
            s++;
        }
    }
}

void pe_words_write(FILE *to, const char *text, size_t n)
{
    translate(to, text, n, spoken == PE_ENGLISH ? DEEPEST : 0);
}

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

#include <ctype.h>
#include <stdlib.h>
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
static _Thread_local int         of_tokens; /* the text is no bytes */

void pe_words_speak(pe_language language, int tokens)
{
    spoken    = language;
    of_tokens = tokens;
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
        pe_page_escape(to, from, n);
    for (const char *s = r ? r->chinese : ""; *s; s++) {
        const int place = place_named(s);
        if (place < 0 || place >= f.count)
            pe_page_escape(to, s, 1);
        else {
            translate(to, f.at[place], f.length[place], f.kind[place] == 's' ? depth + 1 : DEEPEST);
            s++;
        }
    }
}

/* ---------------------------------------------------------------- tokens -------------------- */

/* All texts are about bytes. Where tokens are compared, these words take their place, in either language; a
   word that is part of a name (--token-bytes, bytes.npy) stays. */
static const struct {
    const char *byte, *token;
} units[] = {{"bytes", "tokens"}, {"byte", "token"}, {"字节", "词元"}};

static int is_part(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-_/.", c));
}

/* The row of `units` that stands at `at`, or -1. */
static int unit_at(const char *text, const char *at)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t n       = strlen(units[i].byte);
        const int    is_word = isalpha((unsigned char)*units[i].byte);
        if (!strncmp(at, units[i].byte, n) &&
            !(is_word && ((at > text && is_part(at[-1])) ||
                          (is_part(at[n]) && isalnum((unsigned char)at[n + (at[n] == '.')])))))
            return (int)i;
    }
    return -1;
}

static void write_of_tokens(FILE *to, const char *text)
{
    for (const char *at = text; *at;) {
        const int unit = unit_at(text, at);
        fputs(unit < 0 ? (const char[]){*at, 0} : units[unit].token, to);
        at += unit < 0 ? 1 : strlen(units[unit].byte);
    }
}

char *pe_words_retell(const pe_compare *c, const char *text)
{
    char  *told = NULL;
    size_t n;
    FILE  *to = c->text.vocabulary ? open_memstream(&told, &n) : NULL;
    if (!to)
        return c->text.vocabulary ? NULL : strdup(text);
    write_of_tokens(to, text);
    fclose(to);
    return told;
}

void pe_words_write(FILE *to, const char *text, size_t n)
{
    const int depth = spoken == PE_ENGLISH ? DEEPEST : 0;
    char     *whole = NULL;
    size_t    size;
    FILE     *memory = of_tokens ? open_memstream(&whole, &size) : NULL;
    translate(memory ? memory : to, text, n, depth);
    if (memory && !fclose(memory))
        write_of_tokens(to, whole);
    free(whole);
}

/* SPDX-License-Identifier: MIT */
/*
 * words.c: a text of the report in Chinese, by the table words.def
 *
 * The report is made of numbers, names and sentences of many parts of the tool: checks, tasks, claims, the
 * registry, pictures, reasons of the library. None of them knows a language but English, which is also what
 * results.json and the terminal have. So the page is written in English, and this file recognises its texts:
 * a row of the table is a pattern with places for numbers, names, and further texts, which are translated in
 * turn. (A function that translates formats where they are filled in was the other way: it would stand in
 * forty places on three floors, and could not reach the library's.)
 *
 * A row fits if its letters stand in the text in that order, from the first to the last, with something for
 * each place between. Where several do, the one with the most letters of its own says most about the text.
 */
#include "train/words.h"

#include "train/fail.h"

#include <string.h>

enum { PLACES = 16, TEXT = 4096, DEEPEST = 4 };

typedef struct row {
    const char *english, *chinese;
} row;

static const row rows[] = {
#define WORDS(english, chinese) {english, chinese},
#include "train/words.def"
#undef WORDS
};

enum { ROWS = sizeof rows / sizeof *rows };

/* What stands at the places of a pattern. */
typedef struct fit {
    const char *at[PLACES];
    size_t      length[PLACES];
    char        kind[PLACES];
    int         count;
} fit;

const char *pe_language_code(pe_language language)
{
    static const char *const codes[] = {[PE_ENGLISH] = "en", [PE_CHINESE] = "zh"};
    return language <= PE_CHINESE ? codes[language] : NULL;
}

posenc_status pe_language_read(pe_language *language, const char *word, posenc_error *err)
{
    for (*language = PE_ENGLISH; pe_language_code(*language); ++*language)
        if (!strcmp(word, pe_language_code(*language)))
            return POSENC_OK;
    return pe_train_fail(err, POSENC_ARGUMENT, "lang: \"%.20s\" is not known; it must be en or zh", word);
}

int pe_words_count(void)
{
    return ROWS;
}

void pe_words_at(int index, const char **english, const char **chinese)
{
    *english = rows[index].english;
    *chinese = rows[index].chinese;
}

/* ---------------------------------------------------------------- patterns ------------------ */

static int is_place(const char *s)
{
    return s[0] == '%' && s[1] && strchr("sdwt", s[1]);
}

/* The longest that place `kind` can take of text. */
static size_t longest(const char *text, char kind)
{
    return kind == 'd' ? strspn(text, "+-0123456789.e") : kind == 'w' ? strcspn(text, " ") : strlen(text);
}

/* Does text fit the pattern from here on? A place takes as little as it can. */
static int fits(const char *pattern, const char *text, fit *f)
{
    for (; !is_place(pattern); pattern++, text++)
        if (*pattern != *text)
            return 0;
        else if (!*pattern)
            return 1;
    const size_t most = longest(text, pattern[1]);
    const int    mine = f->count++;
    f->at[mine]       = text;
    f->kind[mine]     = pattern[1];
    for (f->length[mine] = 1; f->length[mine] <= most; f->length[mine]++)
        if (fits(pattern + 2, text + f->length[mine], f))
            return 1;
    f->count = mine;
    return 0;
}

/* Letters of a pattern that are not places. */
static size_t own_letters(const char *pattern)
{
    size_t n = strlen(pattern);
    for (; *pattern; pattern++)
        n -= is_place(pattern) ? 2 : 0;
    return n;
}

/* The row that says most about the text, or NULL; what stands at its places. */
static const row *find(const char *text, fit *best)
{
    const row *found = NULL;
    size_t     most  = 0;
    for (const row *r = rows; r < rows + ROWS; r++) {
        fit          f = {.count = 0};
        const size_t n = own_letters(r->english);
        if ((!found || n > most) && fits(r->english, text, &f)) {
            found = r;
            most  = n;
            *best = f;
        }
    }
    return found;
}

/* ---------------------------------------------------------------- translation --------------- */

typedef struct writing {
    char  *to;
    size_t room, used;
} writing;

static void put(writing *w, const char *s, size_t n)
{
    n = n < w->room - 1 - w->used ? n : w->room - 1 - w->used;
    memcpy(w->to + w->used, s, n);
    w->used += n;
    w->to[w->used] = 0;
}

/* Number of the place that a Chinese text names here, from 0: %1 .. %9, %a ..; -1: none. */
static int place_named(const char *s)
{
    static const char names[] = "123456789abcdef";
    const char       *at      = s[0] == '%' && s[1] ? strchr(names, s[1]) : NULL;
    return at ? (int)(at - names) : -1;
}

static int translate(writing *w, const char *text, int depth);

/* What stands at a place, translated where the pattern says so. */
static void put_place(writing *w, const fit *f, int place, int depth)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%.*s", (int)f->length[place], f->at[place]);
    if (f->kind[place] != 's' || depth == DEEPEST || !translate(w, text, depth + 1))
        put(w, f->at[place], f->length[place]);
}

static int translate(writing *w, const char *text, int depth)
{
    fit        f;
    const row *r = find(text, &f);
    if (!r)
        return 0;
    for (const char *s = r->chinese; *s; s++) {
        const int place = place_named(s);
        if (place >= 0 && place < f.count)
            put_place(w, &f, place, depth);
        else
            put(w, s, 1);
        s += place >= 0 && place < f.count;
    }
    return 1;
}

int pe_words_translate(char *chinese, size_t n, const char *english)
{
    writing w  = {chinese, n, 0};
    chinese[0] = 0;
    return translate(&w, english, 0);
}

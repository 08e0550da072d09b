/* SPDX-License-Identifier: MIT */
/*
 * words_page.c: a page of HTML with its texts translated
 *
 * Reads what the report has written, not HTML at large: elements that are closed, attributes in double quotes
 * where they hold text, the four entities of pe_html_text. What is inside an element that is not translated
 * is copied up to its end tag; none of those contains one of its own name.
 */
#include "train/words.h"

#include "train/html.h"

#include <ctype.h>
#include <string.h>

enum { TEXT = 4096 };

/* ---------------------------------------------------------------- texts --------------------- */

static const struct {
    const char *entity;
    char        character;
} entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}};

/* text[TEXT] = the n bytes without entities; 0 if they are too long. */
static int decode(char *text, const char *from, size_t n)
{
    char *to = text;
    if (n >= TEXT)
        return 0;
    for (const char *end = from + n; from < end;) {
        size_t width = 1;
        *to          = *from;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            if (!strncmp(from, entities[i].entity, strlen(entities[i].entity))) {
                *to   = entities[i].character;
                width = strlen(entities[i].entity);
            }
        to++;
        from += width;
    }
    *to = 0;
    return 1;
}

/* The n bytes translated, or as they are. */
static void text(FILE *to, const char *from, size_t n)
{
    char english[TEXT], chinese[TEXT];
    if (decode(english, from, n) && pe_words_translate(chinese, sizeof chinese, english))
        pe_html_text(to, chinese);
    else
        fwrite(from, 1, n, to);
}

/* The same, and the space around it as it is. */
static void spaced_text(FILE *to, const char *from, size_t n)
{
    size_t before = 0, after = 0;
    while (before < n && isspace((unsigned char)from[before]))
        before++;
    while (after < n - before && isspace((unsigned char)from[n - 1 - after]))
        after++;
    fwrite(from, 1, before, to);
    if (before + after < n)
        text(to, from + before, n - before - after);
    fwrite(from + n - after, 1, after, to);
}

/* ---------------------------------------------------------------- tags ---------------------- */

/* Is `word` in the n bytes of a tag? Where it begins, else NULL. */
static const char *find_in(const char *tag, size_t n, const char *word)
{
    const char *at = strstr(tag, word);
    return at && at + strlen(word) <= tag + n ? at : NULL;
}

/* A tag, with what a pointer shows translated and its language set. */
static void write_tag(FILE *to, const char *tag, size_t n, pe_language language)
{
    static const char title[] = " title=\"", lang[] = "lang=en";
    const char       *at = find_in(tag, n, title), *end = tag + n;
    if (!strncmp(tag, "<html", 5) && (at = find_in(tag, n, lang))) {
        fwrite(tag, 1, (size_t)(at - tag), to);
        fprintf(to, "lang=%s", pe_language_code(language));
        at += sizeof lang - 1;
    } else if (at) {
        at += sizeof title - 1;
        fwrite(tag, 1, (size_t)(at - tag), to);
        text(to, at, strcspn(at, "\""));
        at += strcspn(at, "\"");
    } else
        at = tag;
    fwrite(at, 1, (size_t)(end - at), to);
}

/* Bytes from a start tag to behind the end tag of an element that stays as it is; 0 for any other. */
static size_t kept(const char *tag, size_t n)
{
    static const char *const names[]  = {"script", "style", "pre", "code", "math"};
    char                     name[16] = "", end[24];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(tag + 1, " />"), tag + 1);
    int is_kept = find_in(tag, n, "translate=\"no\"") != NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_kept |= !strcmp(name, names[i]);
    snprintf(end, sizeof end, "</%s>", name);
    const char *at = is_kept && tag[n - 2] != '/' ? strstr(tag + n, end) : NULL;
    return at ? (size_t)(at - tag) + strlen(end) : 0;
}

void pe_words_page(FILE *to, const char *page, pe_language language)
{
    while (*page) {
        const size_t words = strcspn(page, "<");
        spaced_text(to, page, words);
        page += words;
        const size_t n     = strcspn(page, ">") + (*page != 0);
        const size_t whole = n > 2 ? kept(page, n) : 0;
        if (whole)
            fwrite(page, 1, whole, to);
        else if (n)
            write_tag(to, page, n, language);
        page += whole ? whole : n;
    }
}

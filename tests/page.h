/* SPDX-License-Identifier: MIT */
/*
 * page.h: reads a page of HTML for tests: are its elements closed in order, and what texts has it?
 */
#ifndef PAGE_H
#define PAGE_H

#include <stdio.h>
#include <string.h>

enum { PAGE_DEEPEST = 64, PAGE_NAME = 24, PAGE_FAULT = 160, PAGE_TEXT = 8192 };

/* Elements that have no end, and those whose content is no markup. */
static inline int page_is_one_of(const char *name, const char *list)
{
    char word[PAGE_NAME + 2];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

typedef struct page_reader {
    const char *at;
    char        open[PAGE_DEEPEST][PAGE_NAME];
    int         kept[PAGE_DEEPEST]; /* is it, or what it is in, not to be translated? */
    int         depth;
} page_reader;

/* Goes behind the next tag; text[PAGE_TEXT] = what stood before it, *is_kept whether that is no text of the
   page's language. 0 at the end, -1 where the page is not well formed, with the reason. */
static inline int page_next(page_reader *r, char *text, int *is_kept, char fault[PAGE_FAULT])
{
    const size_t words = strcspn(r->at, "<");
    char         name[PAGE_NAME];
    snprintf(text, PAGE_TEXT, "%.*s", (int)words, r->at);
    *is_kept = r->depth && r->kept[r->depth - 1];
    r->at += words;
    if (!*r->at) {
        snprintf(fault, PAGE_FAULT, "<%s> is open at the end", r->depth ? r->open[r->depth - 1] : "");
        return r->depth ? -1 : 0;
    }
    const char  *tag    = r->at;
    const size_t n      = strcspn(tag, ">");
    const int    is_end = tag[1] == '/';
    snprintf(name, sizeof name, "%.*s", (int)strcspn(tag + 1 + is_end, " />\n"), tag + 1 + is_end);
    r->at += n + 1;
    if (is_end) {
        snprintf(fault, PAGE_FAULT, "</%s> closes <%s>", name, r->depth ? r->open[r->depth - 1] : "");
        return r->depth && !strcmp(r->open[r->depth - 1], name) ? r->depth--, 1 : -1;
    }
    if (tag[1] == '!' || tag[n - 1] == '/' || page_is_one_of(name, " br meta "))
        return 1;
    snprintf(fault, PAGE_FAULT, "more than %d elements in each other", PAGE_DEEPEST);
    if (r->depth == PAGE_DEEPEST)
        return -1;
    const char *no    = strstr(tag, "translate=\"no\"");
    r->kept[r->depth] = (r->depth && r->kept[r->depth - 1]) || (no && no < tag + n) ||
                        page_is_one_of(name, " script style pre code math desc ");
    if (page_is_one_of(name, " script style ")) {
        char end[PAGE_NAME + 4];
        snprintf(end, sizeof end, "</%s>", name);
        r->at = strstr(r->at, end);
        r->at += r->at ? strlen(end) : 0;
        snprintf(fault, PAGE_FAULT, "<%s> has no end", name);
        return r->at ? 1 : -1;
    }
    snprintf(r->open[r->depth++], PAGE_NAME, "%s", name);
    return 1;
}

static inline int page_is_well_formed(const char *page, char fault[PAGE_FAULT])
{
    page_reader r = {.at = page};
    char        text[PAGE_TEXT];
    int         is_kept, more = 1;
    while (more > 0)
        more = page_next(&r, text, &is_kept, fault);
    return more == 0;
}

#endif

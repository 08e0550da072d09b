/* SPDX-License-Identifier: MIT */
/*
 * marker.c: contract in marker.h
 *
 * The text goes in where the object of texts begins, with blanks behind it up to a multiple of 8 bytes, to
 * which headers are padded. A header without such an object gets one, with the "format" that transformers
 * asks for in it. One that another program has written anew since is read as JSON and written anew.
 */
#include "convert/marker.h"

#include <stdlib.h>
#include <string.h>

#include "files/arrays/json.h"
#include "files/arrays/text.h"

enum { LONGEST = 160 };
static const char key[] = "posenc.rope_layout", metadata[] = "__metadata__";

void pe_marker_read(pe_layout *now, pe_layout *was, const pe_checkpoint *c)
{
    const char *text = json_string_value(json_object_get(json_object_get(c->json, metadata), key));
    *now             = !text                                    ? PE_LAYOUT_UNTOLD
                       : !strcmp(text, "half, was interleaved") ? PE_LAYOUT_HALF
                       : !strcmp(text, "interleaved, was half") ? PE_LAYOUT_INTERLEAVED
                                                                : PE_LAYOUT_UNTOLD;
    *was             = *now == PE_LAYOUT_UNTOLD ? PE_LAYOUT_UNTOLD : (pe_layout) !*now;
}

/* What is put in: where there are texts already, or with an object for them. */
static size_t mark(char text[LONGEST], int has_texts, pe_layout now, pe_layout was)
{
    int n = snprintf(text, LONGEST,
                     has_texts ? "\"%s\":\"%s, was %s\","
                               : "\"__metadata__\":{\"%s\":\"%s, was %s\",\"format\":\"pt\"},",
                     key, pe_layout_name(now), pe_layout_name(was));
    while (n % 8)
        text[n++] = ' ';
    text[n] = '\0';
    return (size_t)n;
}

/* Where texts begin; NULL: there are none. */
static const char *first_text(const pe_checkpoint *c)
{
    const char  *end = c->header + (c->data - 8), *at = strstr(c->header, "\"__metadata__\"");
    const size_t size = json_object_size(json_object_get(c->json, metadata));
    at                = at && at < end && size ? strchr(at, '{') : NULL;
    return at ? at + 1 : NULL;
}

/* The text without the n bytes at `hole`, or with those of `more` there. */
static char *spliced(int64_t *length, const pe_checkpoint *c, const char *place, size_t n, const char *more)
{
    const size_t all = (size_t)(c->data - 8), before = (size_t)(place - c->header), m = strlen(more);
    char        *to = malloc(all + m + 1);
    if (!to)
        return NULL;
    memcpy(to, c->header, before);
    memcpy(to + before, more, m);
    memcpy(to + before + m, place + n, all - before - n);
    *length = (int64_t)(all + m - n);
    return to;
}

/* Read and written anew. */
static char *rewritten(int64_t *length, const pe_checkpoint *c, pe_layout now, pe_layout was)
{
    char    value[LONGEST];
    json_t *copy = json_deep_copy(c->json), *texts = json_object_get(copy, metadata);
    if (copy && !texts && !json_object_set_new(copy, metadata, json_object()))
        texts = json_object_get(copy, metadata);
    json_object_del(texts, key);
    snprintf(value, sizeof value, "%s, was %s", pe_layout_name(now), pe_layout_name(was));
    const int lost = now != PE_LAYOUT_UNTOLD && json_object_set_new(texts, key, json_string(value));
    char     *text = lost ? NULL : json_dumps(copy, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(copy);
    const size_t n = text ? strlen(text) : 0, padded = (n + 7) / 8 * 8;
    char        *to = text ? realloc(text, padded + 1) : NULL;
    if (!to)
        free(text);
    else
        memset(to + n, ' ', padded - n);
    *length = (int64_t)padded;
    return to;
}

char *pe_marker_write(int64_t *length, const pe_checkpoint *c, pe_layout now, pe_layout was)
{
    char        text[LONGEST];
    pe_layout   old_now, old_was;
    const char *place;
    pe_marker_read(&old_now, &old_was, c);
    if (now == old_now)
        return spliced(length, c, c->header, 0, "");
    for (int has_texts = 0; has_texts < 2 && old_now != PE_LAYOUT_UNTOLD; has_texts++) {
        const size_t n = mark(text, has_texts, old_now, old_was);
        if (now == PE_LAYOUT_UNTOLD && (place = strstr(c->header, text)))
            return spliced(length, c, place, n, "");
    }
    place = first_text(c);
    if (old_now != PE_LAYOUT_UNTOLD || (!place && json_object_get(c->json, metadata)))
        return rewritten(length, c, now, was);
    mark(text, place != NULL, now, was);
    return spliced(length, c, place ? place : strchr(c->header, '{') + 1, 0, text);
}

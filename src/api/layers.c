/* SPDX-License-Identifier: MIT */
/*
 * layers.c: what one layer has of a SPEC per layer
 *
 *     LAYERS   = ENTRY { "/" ENTRY }            the whole repeats to the number of layers
 *     ENTRY    = SPEC [ ":" n ]                 n layers alike
 *
 * An entry is a SPEC (spec.c) whose settings may have `window`, which is no encoding's: it is the mask's, and
 * is taken out here. '/' and ':' within brackets are the SPEC's own.
 */
#include <stdio.h>
#include <string.h>

#include "api/objects.h"

enum { MOST_WINDOW = 1 << 30, MOST_LAYERS = 1 << 16 };

/* A stretch of text. */
typedef struct stretch {
    const char *at;
    size_t      length;
} stretch;

/* Of `text` what stands before the first `end` outside brackets. */
static stretch before(const char *text, size_t length, char end)
{
    size_t n = 0;
    for (int depth = 0; n < length && (depth > 0 || text[n] != end); n++)
        depth += (text[n] == '[') - (text[n] == ']');
    return (stretch){text, n};
}

/* A whole number from 1 to `most`, with nothing else; 0: it is none. */
static int64_t whole(stretch s, int64_t most)
{
    int64_t value = 0;
    for (size_t i = 0; i < s.length; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' || value > most)
            return 0;
        value = 10 * value + (s.at[i] - '0');
    }
    return value <= most ? value : 0;
}

static posenc_status put(posenc_layer *layer, stretch s, posenc_error *err)
{
    const size_t used = strlen(layer->spec);
    if (used + s.length >= sizeof layer->spec)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "layers: '%.40s...' is too long; an entry must have fewer than %zu characters",
                       layer->spec, sizeof layer->spec);
    memcpy(layer->spec + used, s.at, s.length);
    layer->spec[used + s.length] = '\0';
    return POSENC_OK;
}

static posenc_status take_window(posenc_layer *layer, stretch value, posenc_error *err)
{
    const int64_t window = whole(value, MOST_WINDOW);
    if (!window)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "layers: window is '%.*s'; it must be a whole number from 1", (int)value.length,
                       value.at);
    if (layer->window && layer->window != window)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "layers: window is %lld and %lld in one entry; a layer has one window",
                       (long long)layer->window, (long long)window);
    layer->window = window;
    return POSENC_OK;
}

static const char separators[] = ":, \t\n";
static const char window_is[]  = "window=";

/* A part, NAME or NAME[settings], without its window. */
static posenc_status take_part(posenc_layer *layer, stretch part, posenc_error *err)
{
    const char *bracket = memchr(part.at, '[', part.length);
    size_t      name = bracket ? (size_t)(bracket - part.at) : part.length, lead = strspn(part.at, " ");
    lead                    = lead < name ? lead : 0;
    const pe_encoding *own  = pe_encoding_find(part.at + lead, name - lead);
    int                left = 0, taken = 0;
    if (!bracket || part.at[part.length - 1] != ']' ||
        (own && pe_settings_index(own->info.settings, "window", 6) >= 0))
        return put(layer, part, err);
    const posenc_layer was    = *layer;
    posenc_status      status = put(layer, (stretch){part.at, name}, err);
    for (const char *at = bracket + 1, *end = part.at + part.length - 1; at < end && !status;) {
        size_t n = 0, gap = strspn(at, separators);
        at += gap;
        while (at + n < end && !strchr(separators, at[n]))
            n++;
        const size_t named = sizeof window_is - 1;
        if (n >= named && pe_settings_begins(window_is, at, named)) {
            status = take_window(layer, (stretch){at + named, n - named}, err);
            taken  = 1;
        } else if (n) { /* the separator before it stays what it was */
            status = put(layer, left++ ? (stretch){gap ? at - 1 : at, gap ? 1 : 0} : (stretch){"[", 1}, err);
            if (!status)
                status = put(layer, (stretch){at, n}, err);
        }
        at += n;
    }
    if (!status && left)
        status = put(layer, (stretch){"]", 1}, err);
    if (!status && !taken) { /* as it stands: whatever is wrong is the encoding's to say */
        *layer = was;
        status = put(layer, part, err);
    }
    return status;
}

/* An entry without its count, part by part. */
static posenc_status take_entry(posenc_layer *layer, stretch entry, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    while (!status) {
        const stretch part = before(entry.at, entry.length, '+');
        if (part.length)
            status = take_part(layer, part, err);
        if (status || part.length == entry.length)
            return status;
        status = put(layer, (stretch){"+", 1}, err);
        entry  = (stretch){part.at + part.length + 1, entry.length - part.length - 1};
    }
    return status;
}

/* The entry of `text` at which it begins, and for how many layers. */
static posenc_status next_entry(stretch *entry, int64_t *count, const char *text, posenc_error *err)
{
    const stretch all  = {text, strcspn(text, "/")};
    const stretch spec = before(text, all.length, ':');
    *entry             = spec;
    *count             = 1;
    if (strspn(spec.at, " ") >= spec.length)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "layers: an entry is empty; write SPEC/SPEC or SPEC:n/SPEC");
    if (spec.length == all.length)
        return POSENC_OK;
    const stretch n = {spec.at + spec.length + 1, all.length - spec.length - 1};
    *count          = whole(n, MOST_LAYERS);
    return *count
               ? POSENC_OK
               : pe_fail(err, POSENC_ERROR_SETTING,
                         "layers: '%.*s' after '%.*s:' is not a number of layers; it must be a whole number "
                         "from 1 to %d",
                         (int)n.length, n.at, (int)spec.length, spec.at, MOST_LAYERS);
}

/* The layers that all entries are for; `found` is what stands at number `index` of them. */
static posenc_status walk(int64_t *period, stretch *found, const char *spec, int64_t index, posenc_error *err)
{
    for (*period = 0;;) {
        stretch             entry;
        int64_t             count  = 0;
        const posenc_status status = next_entry(&entry, &count, spec, err);
        if (status)
            return status;
        if (*period <= index && index < *period + count)
            *found = entry;
        *period += count;
        spec += strcspn(spec, "/");
        if (!*spec++)
            return POSENC_OK;
    }
}

posenc_status posenc_layer_read(posenc_layer *layer, const char *spec, int64_t index, posenc_error *err)
{
    stretch      entry = {0};
    posenc_layer read  = {.window = 0}; /* `layer` is written when nothing can fail any more */
    if (!layer || !spec)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "layers: layer and spec must not be NULL");
    if (index < 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "layers: index is %lld; it must be at least 0",
                       (long long)index);
    posenc_status status = walk(&read.period, &entry, spec, -1, err);
    if (!status)
        status = walk(&read.period, &entry, spec, index % read.period, err);
    if (!status)
        status = take_entry(&read, entry, err);
    if (status)
        return status;
    *layer = read;
    return pe_done(err);
}

/* SPDX-License-Identifier: MIT */
/*
 * conventions.c: the other ways in which an encoding may have been understood
 *
 * The registry says which settings are choices (words, flags) and which numbers: so each encoding has its
 * list without being named here. Only scaling is spelled out, because it is several settings that are lost
 * together.
 */
#include "diagnose/diagnose.h"

#include "base/shared/compiler.h"
#include "base/shared/decimal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };

typedef struct making {
    pe_conventions             *list;
    const posenc_encoding      *e;
    const posenc_encoding_info *part;
    int                         joined; /* settings are written "encoding.name" */
} making;

/* A shift or a sign where there are no settings. Encodings that cannot be, or are the same, are left out. */
static void add(making *m, const char *spec, const char *settings, int shift, int inverse, const char *format,
                ...) PE_PRINTF(6, 7);

static void add(making *m, const char *spec, const char *settings, int shift, int inverse, const char *format,
                ...)
{
    posenc_encoding *other = NULL;
    va_list          values;
    if (m->list->count == PE_MOST_CONVENTIONS)
        return;
    if (spec && posenc_encoding_create(&other, spec, settings, NULL))
        return;
    if (other && !strcmp(posenc_encoding_spec(other), posenc_encoding_spec(m->e))) {
        posenc_encoding_free(other);
        return;
    }
    pe_convention *c = &m->list->items[m->list->count++];
    va_start(values, format);
    vsnprintf(c->words, sizeof c->words, format, values);
    va_end(values);
    c->e       = other;
    c->shift   = shift;
    c->inverse = inverse;
}

/* One setting differently. */
static void add_setting(making *m, const char *name, const char *value)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%s%s%.80s=%.80s", m->joined ? m->part->name : "", m->joined ? "." : "", name,
             value);
    add(m, posenc_encoding_spec(m->e), text, 0, 0, "it fits %.80s=%.80s", name, value);
}

static int is_given(const making *m, const char *name)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%.80s=", name);
    const char *at = strstr(posenc_encoding_spec(m->e), text);
    return at && (at[-1] == '[' || at[-1] == ':');
}

/* Each word of "a|b|c". */
static void add_words(making *m, const posenc_setting_info *s)
{
    for (const char *at = s->range; *at;) {
        char         word[64];
        const size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        add_setting(m, s->name, word);
        at += n + (at[n] == '|');
    }
}

static void add_numbers(making *m, const char *name, const double *list, size_t count)
{
    char value[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(value, sizeof value, "%.10g", list[i]);
        add_setting(m, name, value);
    }
}

/* Without a schedule and all that belongs to it: what is left of base, layout and widths. */
static void add_unscaled(making *m)
{
    static const char *const kept[] = {"base", "layout", "dim", "offset_dim", "layout_out"};
    const char              *spec   = posenc_encoding_spec(m->e);
    char                     text[TEXT], name[32];
    size_t                   used = 0;
    text[0]                       = '\0';
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        snprintf(name, sizeof name, "%s=", kept[i]);
        const char *at = is_given(m, kept[i]) ? strstr(spec, name) : NULL;
        if (at && used < sizeof text - 64)
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s ", (int)strcspn(at, ":]"), at);
    }
    add(m, m->part->name, text, 0, 0, "the scaling of the config is dropped");
}

/* A whole number, halved and doubled: num_buckets=16, max_distance=64. */
static void add_neighbours(making *m, const posenc_setting_info *s)
{
    char        text[TEXT];
    const char *at = NULL;
    snprintf(text, sizeof text, "%.80s=", s->name);
    if (is_given(m, s->name))
        at = strstr(posenc_encoding_spec(m->e), text) + strlen(text);
    const double value = strtod(at ? at : s->default_value ? s->default_value : "", NULL);
    if (value >= 2)
        add_numbers(m, s->name, (const double[]){(double)((long long)value / 2), 2 * value}, 2);
}

static void add_settings(making *m)
{
    static const double bases[]   = {1e4, 1e5, 5e5, 1e6, 2e6, 5e6, 1e7};
    static const double factors[] = {2, 4, 8, 16, 32};
    for (int i = 0; i < m->part->setting_count; i++) {
        const posenc_setting_info *s = &m->part->settings[i];
        if (strchr(s->range, '|') && !strstr(s->range, ".."))
            add_words(m, s);
        else if (!strcmp(s->name, "base"))
            add_numbers(m, s->name, bases, sizeof bases / sizeof *bases);
        else if (!strcmp(s->name, "factor") && is_given(m, s->name))
            add_numbers(m, s->name, factors, sizeof factors / sizeof *factors);
        else if (!strcmp(s->type, "integer"))
            add_neighbours(m, s);
    }
}

posenc_status pe_conventions_create(pe_conventions **list, const posenc_encoding *e, posenc_error *err)
{
    static const posenc_place order[] = {POSENC_PLACE_ROTARY, POSENC_PLACE_SCORE, POSENC_PLACE_WEIGHT,
                                         POSENC_PLACE_INPUT};
    making                    m       = {.list = calloc(1, sizeof **list), .e = e};
    *list                             = m.list;
    if (!m.list) {
        *err = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
        return POSENC_ERROR_MEMORY;
    }
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, order[i]);
        m.joined += part != NULL;
        m.part = m.part ? m.part : part;
    }
    m.joined              = m.joined > 1;
    const locale_t before = pe_decimal_begin(); /* numbers go into SPECs and come out of them */
    if (!posenc_encoding_part(e, POSENC_PLACE_INPUT) || m.joined)
        add(&m, NULL, NULL, 0, 1, "the sign is the other one");
    add(&m, NULL, NULL, 1, 0, "positions are too large by one");
    add(&m, NULL, NULL, -1, 0, "positions are too small by one");
    if (!m.joined && is_given(&m, "schedule"))
        add_unscaled(&m);
    add_settings(&m);
    pe_decimal_end(before);
    return POSENC_OK;
}

void pe_conventions_free(pe_conventions *list)
{
    for (int i = 0; list && i < list->count; i++)
        posenc_encoding_free(list->items[i].e);
    free(list);
}

/* SPDX-License-Identifier: MIT */
/*
 * spec.c: from a SPEC to parts, and back to its canonical text
 *
 *     SPEC     = PART { "+" PART }
 *     PART     = NAME [ "[" PAIRS "]" ]
 *     PAIRS    = name "=" value { separator name "=" value }        separator ":" "," " "
 *
 * A piece without "=" continues the value before it, so a list may be written 24:20:20.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/memory.h"

/* ---- parsing ---- */

/* NULL: none is near. A setting is also found by the first word that explains it: base by "theta". */
static const char *nearest_setting(const pe_encoding *room, const char *name)
{
    const posenc_encoding_info *const from[] = {&pe_common.info, &room->info};
    const char                       *best   = NULL;
    int                               far    = 2 * ((int)strlen(name) / 3 + 1) + 1;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < from[k]->setting_count; i++) {
            const posenc_setting_info *s = &from[k]->settings[i];
            const size_t               n = strcspn(s->meaning, " ,:;");
            const int                  is_said =
                strlen(name) == n && pe_settings_begins(s->meaning, name, n) && s->meaning[n] == ':';
            const int d = is_said ? 0 : pe_settings_distance(name, s->name);
            if (d < far)
                far = d, best = s->name;
        }
    return best;
}

/* The text slot of a setting, and its row; NULL if neither the room nor the common ones have it. */
static pe_setting_text *find_slot(posenc_encoding *e, pe_chosen *part, const char *name, size_t length,
                                  const posenc_setting_info **row)
{
    const int own = pe_settings_index(part->room->info.settings, name, length);
    if (own >= 0) {
        *row = &part->room->info.settings[own];
        return &part->text[own];
    }
    const int common = pe_settings_index(pe_common.info.settings, name, length);
    *row             = common >= 0 ? &pe_common.info.settings[common] : NULL;
    return common >= 0 ? &e->parts[PE_PLACE_COMMON].text[common] : NULL;
}

static posenc_status set_value(posenc_encoding *e, pe_chosen *part, const char *name, size_t length,
                               const char *value, size_t value_length, posenc_error *err)
{
    const posenc_setting_info *row;
    char                       word[PE_MAX_TEXT];
    pe_value                   unused;
    pe_setting_text           *slot = find_slot(e, part, name, length, &row);
    const char                *who  = part->room->info.name;
    if (!slot) {
        snprintf(word, sizeof word, "%.*s", (int)length, name);
        if (!strcmp(word, "window"))
            return pe_fail(
                err, POSENC_ERROR_SETTING,
                "%s: window is a setting of layers, as posenc compare takes them; here the mask has "
                "it (--window, options.window)",
                who);
        const char *near = nearest_setting(part->room, word);
        return near ? pe_fail(err, POSENC_ERROR_SETTING, "%s has no setting '%.60s'; did you mean '%s'?", who,
                              word, near)
                    : pe_fail(err, POSENC_ERROR_SETTING,
                              "%s has no setting '%.60s'; posenc list %s shows all", who, word, who);
    }
    if (value_length == 0)
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s has no value; write %s=value", who, row->name,
                       row->name);
    if (value_length >= sizeof slot->text)
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: the value of %s must have 1 to %d characters", who,
                       row->name, (int)sizeof slot->text - 1);
    memcpy(slot->text, value, value_length);
    slot->text[value_length] = '\0';
    return pe_settings_resolve(&unused, row, slot->text, NULL, who, err);
}

static int is_separator(char c)
{
    return c == ':' || c == ',' || c == ' ' || c == '\t' || c == '\n';
}

/* Length of the pair at `at`: up to a separator that is followed by another "name=", or the end. */
static size_t pair_length(const char *at, size_t rest)
{
    size_t end = 0;
    while (end < rest) {
        while (end < rest && !is_separator(at[end]))
            end++;
        size_t next = end;
        while (next < rest && is_separator(at[next]))
            next++;
        size_t piece = next;
        while (piece < rest && !is_separator(at[piece]) && at[piece] != '=')
            piece++;
        if (next == rest || (piece < rest && at[piece] == '='))
            return end;
        end = piece;
    }
    return end;
}

/* The part a name like "rope.base" or "base" is for; *name moves to after the dot. NULL: none. */
static pe_chosen *part_for(posenc_encoding *e, const char **name, size_t *length)
{
    const char *dot = memchr(*name, '.', *length);
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        pe_chosen *part = &e->parts[place];
        if (!part->room)
            continue;
        const size_t n = strlen(part->room->info.name);
        if (dot ? (size_t)(dot - *name) == n && pe_settings_begins(part->room->info.name, *name, n)
                : pe_settings_index(part->room->info.settings, *name, *length) >= 0) {
            if (dot) {
                *length -= n + 1;
                *name = dot + 1;
            }
            return part;
        }
    }
    for (int place = 0; !dot && place < POSENC_PLACE_COUNT; place++)
        if (e->parts[place].room) /* a common setting, or a mistake that this part's message explains */
            return &e->parts[place];
    return NULL;
}

/* A map's value goes on over the pairs that follow as long as their names are its own. */
static size_t map_length(const pe_chosen *part, const char *name, size_t name_length, const char *text,
                         size_t n, size_t rest)
{
    const int index = pe_settings_index(part->room->info.settings, name, name_length);
    if (index < 0 || strcmp(part->room->info.settings[index].type, "map"))
        return n;
    while (n < rest && text[n] == ':') {
        const size_t more  = pair_length(text + n + 1, rest - n - 1);
        const char  *equal = memchr(text + n + 1, '=', more);
        if (!equal || pe_settings_word_index(part->room->info.settings[index].range, text + n + 1,
                                             (size_t)(equal - text) - n - 1) < 0)
            break;
        n += 1 + more;
    }
    return n;
}

/* "a=1:b=2" for one part, or (part NULL) for whichever part has the name. */
static posenc_status parse_pairs(posenc_encoding *e, pe_chosen *part, const char *text, size_t length,
                                 posenc_error *err)
{
    const char *end = text + length;
    while (text < end) {
        while (text < end && is_separator(*text))
            text++;
        if (text == end)
            break;
        size_t      n     = pair_length(text, (size_t)(end - text));
        const char *equal = memchr(text, '=', n), *name = text;
        if (!equal || equal == text)
            return pe_fail(err, POSENC_ERROR_SETTING, "setting '%.*s' has no %s; write name=value", (int)n,
                           text, equal ? "name" : "value");
        size_t     name_length = (size_t)(equal - text);
        pe_chosen *owner       = part ? part : part_for(e, &name, &name_length);
        if (!owner)
            return pe_fail(err, POSENC_ERROR_SETTING,
                           "setting '%.*s' belongs to no encoding of this specification", (int)(equal - text),
                           text);
        n = map_length(owner, name, name_length, text, n, (size_t)(end - text));
        const posenc_status status =
            set_value(e, owner, name, name_length, equal + 1, n - (size_t)(equal + 1 - text), err);
        if (status)
            return status;
        text += n;
    }
    return POSENC_OK;
}

/* What was meant by a name that no encoding has: other brackets, a list, a setting, or a misspelt one. */
static posenc_status refuse_name(const char *name, posenc_error *err)
{
    const char  *near     = posenc_encoding_nearest(name);
    const size_t first    = strcspn(name, "({,=");
    const int    is_close = pe_settings_distance(name, near) <= 2 * ((int)strlen(name) / 3 + 1);
    if (name[first] == ',')
        return pe_fail(err, POSENC_ERROR_SETTING, "'%.60s' is no encoding; join several by '+': NAME+NAME",
                       name);
    if (name[first])
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "'%.60s' is no encoding; settings stand in square brackets: NAME[setting=value]",
                       name);
    return pe_fail(err, POSENC_ERROR_SETTING, "unknown encoding '%.60s'; did you mean '%s'?%s", name, near,
                   is_close ? "" : " (posenc list shows all)");
}

static posenc_status add_part(posenc_encoding *e, const char *text, size_t length, posenc_error *err)
{
    const char  *bracket = memchr(text, '[', length);
    const size_t n       = bracket ? (size_t)(bracket - text) : length;
    char         name[PE_MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const pe_encoding *room = pe_encoding_find(text, n);
    if (!room)
        return refuse_name(name, err);
    pe_chosen *part = &e->parts[room->info.place];
    if (part->room)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "%s and %s both act at place %s; join at most one encoding per place",
                       part->room->info.name, name, posenc_place_name(room->info.place));
    part->room = room;
    e->part_count++;
    if (!bracket)
        return POSENC_OK;
    if (text[length - 1] != ']')
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: '[' without ']' at the end", name);
    return parse_pairs(e, part, bracket + 1, length - n - 2, err);
}

/* '/' outside brackets joins the SPECs of layers: layers.c. */
static posenc_status check_one_layer(const char *spec, posenc_error *err)
{
    int depth = 0;
    for (const char *at = spec; *at; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at == '/' && depth <= 0)
            return pe_fail(err, POSENC_ERROR_SETTING,
                           "'%.80s' has a SPEC per layer, separated by '/'; this takes one layer's: give one "
                           "of them",
                           spec);
    }
    return POSENC_OK;
}

static posenc_status parse_spec(posenc_encoding *e, const char *spec, posenc_error *err)
{
    const posenc_status layers = check_one_layer(spec, err);
    if (layers)
        return layers;
    for (;;) {
        size_t n = 0; /* up to a '+' outside brackets */
        for (int depth = 0; spec[n] && (depth || spec[n] != '+'); n++)
            depth += (spec[n] == '[') - (spec[n] == ']');
        const size_t before = strspn(spec, " "), rest = n > before ? n - before : 0;
        size_t       length = rest; /* without the blanks of "rope + t5" */
        while (length && spec[before + length - 1] == ' ')
            length--;
        const posenc_status status =
            length ? add_part(e, spec + before, length, err)
                   : pe_fail(err, POSENC_ERROR_SETTING, "an encoding's name is missing; see posenc list");
        if (status || !spec[n])
            return status;
        spec += n + 1;
    }
}

/* Rotations do not go with all scores. */
static posenc_status check_rotation(const posenc_encoding *e, posenc_error *err)
{
    const pe_encoding *score  = e->parts[POSENC_PLACE_SCORE].room,
                      *rotary = e->parts[POSENC_PLACE_ROTARY].room;
    if (!score || !rotary || !score->no_rotation)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "encoding: %s and %s do not go together: %s has no rotation, for %s; leave %s out",
                   score->info.name, rotary->info.name, score->info.name, score->no_rotation,
                   rotary->info.name);
}

/* ---- names and canonical text ---- */

static posenc_status name_params(posenc_encoding *e, posenc_error *err)
{
    for (int place = 0; place < PE_PLACES; place++) {
        const pe_chosen *part = &e->parts[place];
        pe_value         set[PE_MAX_SETTINGS];
        if (!part->room)
            continue;
        pe_encoding_words(part, set);
        for (int i = 0; i < part->room->info.param_count; i++) {
            if (part->room->has && !part->room->has(set, i))
                continue;
            if (e->param_count == PE_MAX_PARAMS)
                return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                               "encoding: more than %d parameters in all; leave a part out", PE_MAX_PARAMS);
            const int joined          = e->part_count > 1 && place != PE_PLACE_COMMON;
            e->params[e->param_count] = (pe_param_place){place, i};
            snprintf(e->names[e->param_count++], PE_MAX_NAME, "%s%s%s", joined ? part->room->info.name : "",
                     joined ? "." : "", part->room->info.params[i].name);
        }
    }
    return POSENC_OK;
}

static void append(char *to, const char *text)
{
    const size_t used = strlen(to);
    snprintf(to + used, PE_MAX_SPEC - used, "%s", text);
}

/* The default of a setting, which may be another one where the part is joined with a score part. */
static const char *default_of(const posenc_encoding *e, const pe_encoding *room,
                              const posenc_setting_info *row)
{
    const char  *text = e->parts[POSENC_PLACE_SCORE].room ? room->with_score : NULL;
    const size_t n    = strlen(row->name);
    return text && !strncmp(text, row->name, n) && text[n] == '=' ? text + n + 1 : row->default_value;
}

/* The settings of one part that differ from their defaults; `open`: how many stand there already. */
static int print_settings(posenc_encoding *e, const pe_chosen *part, int open)
{
    for (int i = 0; i < part->room->info.setting_count; i++) {
        const posenc_setting_info *row = &part->room->info.settings[i];
        if (!*part->text[i].text || !strcmp(part->text[i].text, default_of(e, part->room, row)))
            continue;
        append(e->spec, open++ ? ":" : "[");
        append(e->spec, row->name);
        append(e->spec, "=");
        append(e->spec, part->text[i].text);
    }
    return open;
}

/* The common settings stand with the first part. */
static void print_spec(posenc_encoding *e)
{
    int written = 0;
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const pe_chosen *part = &e->parts[place];
        if (!part->room)
            continue;
        append(e->spec, written ? "+" : "");
        append(e->spec, part->room->info.name);
        int open = print_settings(e, part, 0);
        if (!written++)
            open = print_settings(e, &e->parts[PE_PLACE_COMMON], open);
        append(e->spec, open ? "]" : "");
    }
}

/* Both would temper, and nobody means that. */
static posenc_status check_temperatures(const posenc_encoding *e, posenc_error *err)
{
    const pe_chosen *rotary = &e->parts[POSENC_PLACE_ROTARY], *common = &e->parts[PE_PLACE_COMMON];
    const int        own =
                  rotary->room ? pe_settings_index(rotary->room->info.settings, "temperature_rule", 16) : -1,
              other = pe_settings_index(pe_common.info.settings, "temperature", 11);
    if (own < 0 || !*rotary->text[own].text || !strcmp(rotary->text[own].text, "none") ||
        !*common->text[other].text || !strcmp(common->text[other].text, "none"))
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING,
                   "encoding: temperature=%s and %s's temperature_rule=%s both temper; leave one of them out",
                   common->text[other].text, rotary->room->info.name, rotary->text[own].text);
}

/* A sink is a term of a denominator; it is the one common parameter or token input of that name. */
static posenc_status check_sink(const posenc_encoding *e, posenc_error *err)
{
    const pe_encoding *weight = e->parts[POSENC_PLACE_WEIGHT].room;
    int                sinks  = 0;
    for (int i = 0; i < e->param_count; i++)
        sinks |= !strcmp(posenc_param_name(e, i), "sink");
    for (int i = 0; i < e->token_count; i++)
        sinks |= !strcmp(posenc_token_name(e, i), "sink");
    if (!sinks || !weight || !weight->info.replaces_softmax)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_UNSUPPORTED,
        "encoding: %s has no sink, for there is no denominator that it could join; leave sink= out",
        weight->info.name);
}

static posenc_status fill(posenc_encoding *made, const char *spec, const char *settings, posenc_error *err)
{
    made->parts[PE_PLACE_COMMON].room = &pe_common;
    posenc_status status              = parse_spec(made, spec, err);
    if (!status)
        status = check_rotation(made, err);
    if (!status && settings)
        status = parse_pairs(made, NULL, settings, strlen(settings), err);
    if (!status) {
        pe_chosen *weight = &made->parts[POSENC_PLACE_WEIGHT];
        for (int i = 0; weight->room && i < weight->room->info.setting_count; i++) {
            const posenc_setting_info *row   = &weight->room->info.settings[i];
            const char                *value = default_of(made, weight->room, row);
            if (!*weight->text[i].text && value != row->default_value)
                snprintf(weight->text[i].text, PE_MAX_TEXT, "%s", value);
        }
        if (!(status = name_params(made, err)))
            status = pe_tokens_name(made, err);
        print_spec(made);
    }
    if (!status)
        status = pe_common_check(made->parts[PE_PLACE_COMMON].text, err);
    if (!status)
        status = check_temperatures(made, err);
    if (!status)
        status = check_sink(made, err);
    if (!status && strlen(made->spec) == PE_MAX_SPEC - 1) /* it may have been cut */
        status = pe_fail(err, POSENC_ERROR_SETTING,
                         "encoding: the specification is longer than %d characters", PE_MAX_SPEC - 2);
    return status;
}

posenc_status posenc_encoding_create_in(posenc_encoding **e, const char *spec, const char *settings,
                                        const posenc_allocator *allocator, posenc_error *err)
{
    posenc_allocator from;
    posenc_status    status;
    if (e)
        *e = NULL;
    if (!e || !spec)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "encoding: e and spec must not be NULL");
    if ((status = pe_given_allocator(&from, allocator, "encoding", err)))
        return status;
    posenc_encoding *made = pe_memory_zeros_create(&from, sizeof *made);
    if (!made)
        return pe_fail(err, POSENC_ERROR_MEMORY, "encoding: out of memory");
    made->allocator = from;
    if ((status = fill(made, spec, settings, err))) {
        posenc_encoding_free(made);
        return status;
    }
    *e = made;
    return pe_done(err);
}

posenc_status posenc_encoding_create(posenc_encoding **e, const char *spec, const char *settings,
                                     posenc_error *err)
{
    return posenc_encoding_create_in(e, spec, settings, NULL, err);
}

void posenc_encoding_free(posenc_encoding *e)
{
    if (!e)
        return;
    const posenc_allocator to = e->allocator;
    pe_memory_free(&to, e);
}

const char *posenc_encoding_spec(const posenc_encoding *e)
{
    return e ? e->spec : NULL;
}

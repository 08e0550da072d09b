/* SPDX-License-Identifier: MIT */
/*
 * encoding.c: from a SPEC to parts, and what the registry tells about them
 *
 *     SPEC     = PART { "+" PART }
 *     PART     = NAME [ "[" PAIRS "]" ]
 *     PAIRS    = name "=" value { separator name "=" value }        separator ":" "," " "
 *
 * A piece without "=" continues the value before it, so a list may be written 24:20:20.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/expression.h"
#include "base/tensor.h"
#include "encodings/registry.h"

static const posenc_setting_info common[] = {
    {"scale", "real", "", "",
     "factor of the products in a score; absent: the encoding's own, mostly 1/sqrt(D)"},
    {0},
};

int posenc_common_settings(const posenc_setting_info **settings)
{
    *settings = common;
    return PE_ROWS(common);
}

/* ---- introspection ---- */

int posenc_encoding_count(void)
{
    return pe_encoding_count();
}

const posenc_encoding_info *posenc_encoding_info_at(int index)
{
    const pe_encoding *room = pe_encoding_at(index);
    return room ? &room->info : NULL;
}

const posenc_encoding_info *posenc_encoding_find(const char *name)
{
    const pe_encoding *room = name ? pe_encoding_find(name, strlen(name)) : NULL;
    return room ? &room->info : NULL;
}

/* Twice the edits between two names; a name that begins with what was typed is nearer than one edit ("sinus"). */
static int distance(const char *typed, const char *name)
{
    const size_t n = strlen(typed);
    if (!strcmp(typed, name))
        return 0;
    return n >= 3 && !strncmp(typed, name, n) ? 1 : 2 * pe_edit_distance(typed, name);
}

const char *posenc_encoding_nearest(const char *name)
{
    const char *best = pe_encoding_at(0)->info.name;
    for (int i = 1; i < pe_encoding_count(); i++) {
        const char *other = pe_encoding_at(i)->info.name;
        if (distance(name, other) < distance(name, best))
            best = other;
    }
    return best;
}

const char *posenc_place_name(posenc_place place)
{
    static const char *const names[] = {"input", "rotary", "score", "weight"};
    return (size_t)place < POSENC_PLACES ? names[place] : "unknown";
}

int posenc_examples(const char *name, const posenc_example **examples)
{
    const pe_encoding *room = name ? pe_encoding_find(name, strlen(name)) : NULL;
    int                n    = 0;
    *examples               = room ? room->examples : NULL;
    while (*examples && (*examples)[n].settings)
        n++;
    return n;
}

/* ---- parsing ---- */

static const char *nearest_setting(const pe_encoding *room, const char *name)
{
    const char *best = common[0].name;
    for (int i = 0; i < room->info.setting_count; i++)
        if (pe_edit_distance(name, room->info.settings[i].name) < pe_edit_distance(name, best))
            best = room->info.settings[i].name;
    return best;
}

/* The text slot of a setting, and its row; NULL if neither the room nor the common ones have it. */
static pe_setting_text *find_slot(posenc_encoding *e, pe_chosen *part, const char *name, size_t length,
                                  const posenc_setting_info **row)
{
    const int own = pe_setting_index(part->room->info.settings, name, length);
    if (own >= 0) {
        *row = &part->room->info.settings[own];
        return &part->text[own];
    }
    *row = common;
    return pe_setting_index(common, name, length) == 0 ? &e->scale : NULL;
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
        return pe_fail(err, POSENC_SETTING, "%s has no setting '%s'; did you mean '%s'?", who, word,
                       nearest_setting(part->room, word));
    }
    if (value_length == 0 || value_length >= sizeof slot->text)
        return pe_fail(err, POSENC_SETTING, "%s: the value of %s must have 1 to %d characters", who,
                       row->name, (int)sizeof slot->text - 1);
    memcpy(slot->text, value, value_length);
    slot->text[value_length] = '\0';
    return pe_setting_resolve(&unused, row, slot->text, NULL, who, err);
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

/* The part a name like "rope.base" or "base" is for; *name moves behind the dot. NULL: none. */
static pe_chosen *part_for(posenc_encoding *e, const char **name, size_t *length)
{
    const char *dot = memchr(*name, '.', *length);
    for (int place = 0; place < POSENC_PLACES; place++) {
        pe_chosen *part = &e->parts[place];
        if (!part->room)
            continue;
        const size_t n = strlen(part->room->info.name);
        if (dot ? (size_t)(dot - *name) == n && !strncmp(*name, part->room->info.name, n)
                : pe_setting_index(part->room->info.settings, *name, *length) >= 0) {
            if (dot) {
                *length -= n + 1;
                *name = dot + 1;
            }
            return part;
        }
    }
    for (int place = 0; !dot && place < POSENC_PLACES; place++)
        if (e->parts[place].room) /* a common setting, or a mistake that this part's message explains */
            return &e->parts[place];
    return NULL;
}

/* A map's value goes on over the pairs that follow as long as their names are its own. */
static size_t map_length(const pe_chosen *part, const char *name, size_t name_length, const char *text,
                         size_t n, size_t rest)
{
    const int index = pe_setting_index(part->room->info.settings, name, name_length);
    if (index < 0 || strcmp(part->room->info.settings[index].type, "map"))
        return n;
    while (n < rest && text[n] == ':') {
        const size_t more  = pair_length(text + n + 1, rest - n - 1);
        const char  *equal = memchr(text + n + 1, '=', more);
        if (!equal || pe_word_index(part->room->info.settings[index].range, text + n + 1,
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
        if (!equal)
            return pe_fail(err, POSENC_SETTING, "setting '%.*s' has no value; write name=value", (int)n,
                           text);
        size_t     name_length = (size_t)(equal - text);
        pe_chosen *owner       = part ? part : part_for(e, &name, &name_length);
        if (!owner)
            return pe_fail(err, POSENC_SETTING, "setting '%.*s' names no encoding of this specification",
                           (int)(equal - text), text);
        n = map_length(owner, name, name_length, text, n, (size_t)(end - text));
        const posenc_status status =
            set_value(e, owner, name, name_length, equal + 1, n - (size_t)(equal + 1 - text), err);
        if (status)
            return status;
        text += n;
    }
    return POSENC_OK;
}

static posenc_status add_part(posenc_encoding *e, const char *text, size_t length, posenc_error *err)
{
    const char  *bracket = memchr(text, '[', length);
    const size_t n       = bracket ? (size_t)(bracket - text) : length;
    char         name[PE_MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    const pe_encoding *room = pe_encoding_find(text, n);
    if (!room)
        return pe_fail(err, POSENC_SETTING, "unknown encoding '%s'; did you mean '%s'?", name,
                       posenc_encoding_nearest(name));
    pe_chosen *part = &e->parts[room->info.place];
    if (part->room)
        return pe_fail(err, POSENC_UNSUPPORTED,
                       "%s and %s both act at place %s; join at most one encoding per place",
                       part->room->info.name, name, posenc_place_name(room->info.place));
    part->room = room;
    e->part_count++;
    if (!bracket)
        return POSENC_OK;
    if (text[length - 1] != ']')
        return pe_fail(err, POSENC_SETTING, "%s: '[' without ']' at the end", name);
    return parse_pairs(e, part, bracket + 1, length - n - 2, err);
}

/* Length of the part at `spec`: up to a '+' outside brackets. */
static size_t part_length(const char *spec)
{
    size_t n = 0;
    for (int depth = 0; spec[n] && (depth || spec[n] != '+'); n++)
        depth += (spec[n] == '[') - (spec[n] == ']');
    return n;
}

static posenc_status parse_spec(posenc_encoding *e, const char *spec, posenc_error *err)
{
    for (;;) {
        const size_t        n = part_length(spec);
        const posenc_status status =
            n ? add_part(e, spec, n, err)
              : pe_fail(err, POSENC_SETTING, "an encoding's name is missing; see posenc list");
        if (status || !spec[n])
            return status;
        spec += n + 1;
    }
}

/* ---- names and canonical text ---- */

/* The flags and words of a part; numbers may need sizes and stay 0. */
static void resolve_words(const pe_chosen *part, pe_value set[PE_MAX_SETTINGS])
{
    const posenc_encoding_info *info = &part->room->info;
    for (int i = 0; i < info->setting_count; i++)
        pe_setting_resolve(&set[i], &info->settings[i], part->text[i].text, NULL, info->name, NULL);
}

static posenc_status name_params(posenc_encoding *e, posenc_error *err)
{
    for (int place = 0; place < POSENC_PLACES; place++) {
        const pe_chosen *part = &e->parts[place];
        pe_value         set[PE_MAX_SETTINGS];
        if (!part->room)
            continue;
        resolve_words(part, set);
        for (int i = 0; i < part->room->info.param_count; i++) {
            if (part->room->has && !part->room->has(set, i))
                continue;
            if (e->param_count == PE_MAX_PARAMS)
                return pe_fail(err, POSENC_UNSUPPORTED, "encoding: more than %d parameters together",
                               PE_MAX_PARAMS);
            char *name                = e->names[e->param_count];
            e->params[e->param_count] = (pe_param_place){(posenc_place)place, i};
            if (e->part_count > 1)
                snprintf(name, PE_MAX_NAME, "%s.%s", part->room->info.name, part->room->info.params[i].name);
            else
                snprintf(name, PE_MAX_NAME, "%s", part->room->info.params[i].name);
            e->param_count++;
        }
    }
    return POSENC_OK;
}

static void append(char *to, const char *text)
{
    const size_t used = strlen(to);
    snprintf(to + used, PE_MAX_SPEC - used, "%s", text);
}

/* What a setting is where nothing is said: its standard, or what the weight part implies beside a score part. */
static const char *standard_of(const posenc_encoding *e, const pe_chosen *part,
                               const posenc_setting_info *row)
{
    const char  *pair = part->room->beside_score;
    const size_t n    = strlen(row->name);
    const int    is   = pair && e->parts[POSENC_SCORE].room && !strncmp(pair, row->name, n) && pair[n] == '=';
    return is ? pair + n + 1 : row->standard;
}

static void print_spec(posenc_encoding *e)
{
    int written = 0;
    for (int place = 0; place < POSENC_PLACES; place++) {
        const pe_chosen *part = &e->parts[place];
        if (!part->room)
            continue;
        append(e->spec, written ? "+" : "");
        append(e->spec, part->room->info.name);
        int open = 0;
        for (int i = 0; i <= part->room->info.setting_count; i++) {
            const int                  own  = i < part->room->info.setting_count;
            const char                *text = own ? part->text[i].text : written ? "" : e->scale.text;
            const posenc_setting_info *row  = own ? &part->room->info.settings[i] : common;
            if (!*text || !strcmp(text, standard_of(e, part, row)))
                continue;
            append(e->spec, open++ ? ":" : "[");
            append(e->spec, row->name);
            append(e->spec, "=");
            append(e->spec, text);
        }
        append(e->spec, open ? "]" : "");
        written++;
    }
}

/* Beside a score part the weight part's own standard holds, where the user said nothing. */
static void take_implied(posenc_encoding *e)
{
    pe_chosen *weight = &e->parts[POSENC_WEIGHT];
    if (!weight->room || !weight->room->beside_score || !e->parts[POSENC_SCORE].room)
        return;
    const char      *pair = weight->room->beside_score;
    const size_t     n    = strcspn(pair, "=");
    pe_setting_text *slot = &weight->text[pe_setting_index(weight->room->info.settings, pair, n)];
    if (!*slot->text)
        snprintf(slot->text, sizeof slot->text, "%s", pair + n + 1);
}

posenc_status posenc_encoding_create(posenc_encoding **e, const char *spec, const char *settings,
                                     posenc_error *err)
{
    if (!e || !spec)
        return pe_fail(err, POSENC_ARGUMENT, "encoding: e and spec must not be NULL");
    *e                    = NULL;
    posenc_encoding *made = calloc(1, sizeof *made);
    if (!made)
        return pe_fail(err, POSENC_MEMORY, "encoding: out of memory");
    posenc_status status = parse_spec(made, spec, err);
    if (!status && settings)
        status = parse_pairs(made, NULL, settings, strlen(settings), err);
    if (!status) {
        take_implied(made);
        status = name_params(made, err);
    }
    if (status) {
        free(made);
        return status;
    }
    print_spec(made);
    if (strlen(made->spec) == PE_MAX_SPEC - 1) { /* it may have been cut */
        free(made);
        return pe_fail(err, POSENC_SETTING, "encoding: the specification is longer than %d characters",
                       PE_MAX_SPEC - 2);
    }
    *e = made;
    return pe_done(err);
}

void posenc_encoding_free(posenc_encoding *e)
{
    free(e);
}

const char *posenc_encoding_spec(const posenc_encoding *e)
{
    return e->spec;
}

int posenc_coordinates(const posenc_encoding *e)
{
    const pe_chosen *part = &e->parts[POSENC_INPUT];
    pe_value         set[PE_MAX_SETTINGS];
    if (!part->room || !part->room->coordinates)
        return 1;
    resolve_words(part, set);
    return part->room->coordinates(set);
}

const posenc_encoding_info *posenc_encoding_part(const posenc_encoding *e, posenc_place place)
{
    return (size_t)place < POSENC_PLACES && e->parts[place].room ? &e->parts[place].room->info : NULL;
}

/* ---- sizes and settings as numbers ---- */

posenc_dims pe_full_dims(const posenc_dims *dims)
{
    posenc_dims d = *dims;
    d.B           = d.B ? d.B : 1;
    d.G           = d.G ? d.G : d.H;
    d.Dv          = d.Dv ? d.Dv : d.D;
    d.Lk          = d.Lk ? d.Lk : d.Lq;
    d.Lq          = d.Lq ? d.Lq : d.Lk;
    d.d_model     = d.d_model ? d.d_model : d.H * d.D;
    d.L           = d.L ? d.L : d.Lk;
    return d;
}

/* Where no plan says which; a POSENC_ISA that does not run here is refused when a plan is made. */
static const pe_kernels *any_kernels(void)
{
    const pe_kernels *chosen = pe_kernels_choose();
    return chosen ? chosen : pe_kernels_at(0);
}

posenc_status pe_resolve(pe_resolved *r, const pe_chosen *part, const posenc_dims *full, posenc_error *err)
{
    const posenc_encoding_info *info = &part->room->info;
    *r                               = (pe_resolved){.room = part->room};
    for (int i = 0; i < info->setting_count; i++) {
        const pe_scope      scope  = {full, info->settings, r->set, i};
        const posenc_status status = pe_setting_resolve_in(&r->set[i], &info->settings[i], part->text[i].text,
                                                           &scope, info->name, err);
        if (status)
            return status;
    }
    r->problem = (pe_problem){full->B,  full->H,       full->G, full->Lq, full->Lk, full->D,
                              full->Dv, full->d_model, full->L, r->set,   NAN,      any_kernels()};
    return part->room->check ? part->room->check(&r->problem, err) : POSENC_OK;
}

posenc_status posenc_rows_tokens(const posenc_encoding *e, const posenc_dims *dims, int64_t *tokens,
                                 posenc_error *err)
{
    pe_resolved r;
    if (!e || !dims || !tokens)
        return pe_fail(err, POSENC_ARGUMENT, "rows: e, dims and tokens must not be NULL");
    const pe_chosen *part = &e->parts[POSENC_INPUT];
    if (!part->room)
        return pe_fail(err, POSENC_UNSUPPORTED, "rows: %s has no part at place input", e->spec);
    const posenc_dims   full   = pe_full_dims(dims);
    const posenc_status status = pe_resolve(&r, part, &full, err);
    if (status)
        return status;
    *tokens = part->room->tokens ? part->room->tokens(&r.problem) : 0;
    return pe_done(err);
}

/* The fewest digits that read back as the same number: 0.1, not 0.10000000000000001. */
static void print_number(char *text, size_t n, double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, n, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            return;
    }
}

posenc_status posenc_small_model(const char *name, const posenc_dims *dims, char *buf, size_t n,
                                 posenc_error *err)
{
    return posenc_small_model_for(name, dims, POSENC_MASK_CAUSAL, buf, n, err);
}

posenc_status posenc_small_model_for(const char *name, const posenc_dims *dims, int mask, char *buf, size_t n,
                                     posenc_error *err)
{
    const pe_encoding *room = name ? pe_encoding_find(name, strlen(name)) : NULL;
    if (!room)
        return pe_fail(err, POSENC_SETTING, "unknown encoding '%s'; did you mean '%s'?", name ? name : "",
                       name ? posenc_encoding_nearest(name) : "");
    if (!dims || !buf || n == 0)
        return pe_fail(err, POSENC_ARGUMENT, "small model: dims and buf must not be NULL or empty");
    const posenc_dims full   = pe_full_dims(dims);
    const int         future = !(mask & POSENC_MASK_CAUSAL) && room->model_both;
    size_t            used   = 0;
    buf[0]                   = '\0';
    for (const char *at = future ? room->model_both : room->model ? room->model : ""; *at;) {
        const size_t               pair = strcspn(at, " "), name_length = strcspn(at, "=");
        const int                  own = pe_setting_index(room->info.settings, at, name_length);
        const posenc_setting_info *row = own >= 0 ? &room->info.settings[own] : common;
        char                       text[PE_MAX_TEXT];
        pe_value                   value;
        snprintf(text, sizeof text, "%.*s", (int)(pair - name_length - 1), at + name_length + 1);
        const posenc_status status = pe_setting_resolve(&value, row, text, &full, name, err);
        if (status)
            return status;
        const int is_number = !strcmp(row->type, "integer") || !strcmp(row->type, "real");
        if (is_number)
            print_number(text, sizeof text, value.real);
        for (int item = 0, length = 0; item < value.count && length < (int)sizeof text; item++)
            length += snprintf(text + length, sizeof text - (size_t)length, "%s%lld", item ? "x" : "",
                               (long long)value.items[item]);
        used += (size_t)snprintf(buf + used, used < n ? n - used : 0, "%s%s=%s", used ? " " : "", row->name,
                                 text);
        if (used >= n)
            return pe_fail(err, POSENC_ARGUMENT,
                           "small model: buf has %zu bytes, too few for the settings of %s", n, name);
        at += pair + (at[pair] == ' ');
    }
    return pe_done(err);
}

/* ---- parameters ---- */

int posenc_param_count(const posenc_encoding *e)
{
    return e->param_count;
}

const pe_chosen *pe_param_owner(const posenc_encoding *e, int index, int *local)
{
    if (index < 0 || index >= e->param_count)
        return NULL;
    *local = e->params[index].local;
    return &e->parts[e->params[index].place];
}

const posenc_param_info *posenc_param_describe(const posenc_encoding *e, int index)
{
    int              local = 0;
    const pe_chosen *part  = pe_param_owner(e, index, &local);
    return part ? &part->room->info.params[local] : NULL;
}

const char *posenc_param_name(const posenc_encoding *e, int index)
{
    return index >= 0 && index < e->param_count ? e->names[index] : NULL;
}

int posenc_param_trainable(const posenc_encoding *e, int index)
{
    int              local = 0;
    const pe_chosen *part  = pe_param_owner(e, index, &local);
    pe_value         set[PE_MAX_SETTINGS];
    if (!part)
        return 0;
    if (!part->room->trains)
        return part->room->info.params[local].trainable;
    resolve_words(part, set);
    return part->room->trains(set, local);
}

typedef struct shape_names {
    const posenc_dims *full;
    const pe_resolved *r;
} shape_names;

static int shape_lookup(void *context, const char *name, size_t length, double *value)
{
    const shape_names *s = context;
    if (pe_setting_by_name(s->r->room->info.settings, s->r->set, name, length, value))
        return isfinite(*value);
    return pe_size_by_name(s->full, name, length, value);
}

/* "H if per_head": an axis that a flag calls for. Leaves the size alone in `piece`. */
static int has_axis(const pe_resolved *r, char *piece)
{
    char *condition = strstr(piece, " if ");
    if (!condition)
        return 1;
    const char *flag  = condition + strlen(" if ");
    const int   index = pe_setting_index(r->room->info.settings, flag, strlen(flag));
    *condition        = '\0';
    return index >= 0 && r->set[index].integer == 1;
}

posenc_status posenc_param_shape(const posenc_encoding *e, const posenc_dims *dims, int index, int32_t *ndim,
                                 int64_t shape[POSENC_MAX_DIMS], posenc_error *err)
{
    int              local = 0;
    pe_resolved      r;
    const pe_chosen *part = e ? pe_param_owner(e, index, &local) : NULL;
    if (!part || !dims)
        return pe_fail(err, POSENC_ARGUMENT, "parameter: this encoding has no parameter number %d", index);
    const posenc_dims   full   = pe_full_dims(dims);
    const posenc_status status = pe_resolve(&r, part, &full, err);
    if (status)
        return status;
    shape_names names = {&full, &r};
    *ndim             = 0;
    double total      = 1;
    for (const char *at = part->room->info.params[local].shape; *at;) {
        char         piece[PE_MAX_TEXT];
        double       size;
        const size_t n = strcspn(at, ",");
        snprintf(piece, sizeof piece, "%.*s", (int)n, at);
        at += n + (at[n] == ',');
        if (!has_axis(&r, piece))
            continue;
        if (!pe_evaluate(piece, shape_lookup, &names, &size) || !(size >= 1) || (total *= size) > 0x1p40)
            return pe_fail(err, POSENC_SHAPE,
                           "parameter %s: its axis '%s' is missing, below 1 or too large for these sizes",
                           e->names[index], piece);
        shape[(*ndim)++] = (int64_t)size;
    }
    return pe_done(err);
}

static posenc_status init_one(const posenc_encoding *e, const posenc_dims *full, int index, posenc_tensor *to,
                              uint64_t seed, posenc_error *err)
{
    int              local = 0;
    pe_resolved      r;
    const pe_chosen *part   = pe_param_owner(e, index, &local);
    posenc_status    status = pe_resolve(&r, part, full, err);
    if (status)
        return status;
    char stream[2 * PE_MAX_NAME];
    snprintf(stream, sizeof stream, "%s.%s", part->room->info.name, part->room->info.params[local].name);
    pe_random    rng  = pe_random_stream(seed, stream);
    const size_t item = posenc_dtype_size(to->dtype);
    for (int64_t i = 0; i < pe_element_count(to); i++) {
        const double x = part->room->init(&r.problem, local, &rng, i);
        pe_store_double((char *)to->data + (size_t)i * item, to->dtype, 1, &x, 1);
    }
    return POSENC_OK;
}

posenc_status posenc_param_init(const posenc_encoding *e, const posenc_dims *dims, posenc_tensor *params,
                                uint64_t seed, posenc_error *err)
{
    if (!e || !dims || (!params && e->param_count))
        return pe_fail(err, POSENC_ARGUMENT, "parameters: e, dims and params must not be NULL");
    const posenc_dims full = pe_full_dims(dims);
    for (int i = 0; i < e->param_count; i++) {
        int32_t       ndim;
        int64_t       shape[POSENC_MAX_DIMS];
        posenc_status status = posenc_param_shape(e, dims, i, &ndim, shape, err);
        if (!status)
            status = pe_check_tensor(&params[i], e->names[i], ndim, shape, err);
        if (!status && (!pe_is_contiguous(&params[i]) ||
                        (params[i].dtype != POSENC_F32 && params[i].dtype != POSENC_F64)))
            status = pe_fail(err, POSENC_DTYPE, "parameter %s must be contiguous F32 or F64", e->names[i]);
        if (status)
            return status;
    }
    for (int i = 0; i < e->param_count; i++) {
        const posenc_status status = init_one(e, &full, i, &params[i], seed, err);
        if (status)
            return status;
    }
    return pe_done(err);
}

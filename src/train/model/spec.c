/* SPDX-License-Identifier: MIT */
/*
 * spec.c: SPECs of `compare`, and how rows enter: combine= and inject= out of a SPEC, and into it
 *
 * A SPEC is text: NAME, NAME[settings], several parts joined by '+'. The comma that separates SPECs also
 * separates settings within brackets, so a list is cut by depth. What a setting means is the library's
 * affair; here a part is given the settings that its room recommends for a small model, before its own,
 * because the last one counts.
 *
 * A bracket is cut into pieces at the separators that the library knows, and pieces that begin with a name of
 * the table below are taken. A bracket from which nothing was taken is copied as it stands, so that whatever
 * else is wrong with it is the library's to say.
 *
 * A SPEC per layer is read by the library (posenc_layer_read); here its entries are rewritten one by one.
 */
#include "train/model/spec.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { COMBINE, INJECT, SETTINGS, WORDS = 2, LONGEST_SETTINGS = 1024 };

static const struct {
    const char *name, *words[WORDS];
} settings[SETTINGS] = {
    {"combine", {"add", "concat"}},  /* ORDER pe_combine */
    {"inject", {"input", "blocks"}}, /* ORDER pe_inject */
};

static const char separators[] = ":, \t\n";

const char *pe_spec_combine_name(pe_combine combine)
{
    return settings[COMBINE].words[combine];
}

const char *pe_spec_inject_name(pe_inject inject)
{
    return settings[INJECT].words[inject];
}

int pe_spec_entry_is_default(const pe_entry *entry)
{
    return entry->combine == PE_ADD && entry->inject == PE_AT_INPUT;
}

/* ---------------------------------------------------------------- text ---------------------- */

pe_spec_text pe_spec_begin(char *to, size_t capacity)
{
    to[0] = 0;
    return (pe_spec_text){.to = to, .capacity = capacity};
}

void pe_spec_put(pe_spec_text *t, const char *from, size_t length)
{
    t->is_full |= t->used + length >= t->capacity;
    if (t->is_full)
        return;
    memcpy(t->to + t->used, from, length);
    t->to[t->used += length] = 0;
}

posenc_status pe_spec_end(const pe_spec_text *t, const char *spec, posenc_error *err)
{
    return t->is_full ? pe_fail(err, POSENC_ERROR_ARGUMENT, "%.40s: this specification is too long", spec)
                      : POSENC_OK;
}

void pe_spec_put_with(pe_spec_text *t, const pe_spec_part *p, const char *given, const char *between)
{
    const size_t name = p->bracket ? (size_t)(p->bracket - p->whole.at) : p->whole.length,
                 own  = p->bracket ? p->whole.length - name - 1 : 0; /* with the closing bracket */
    pe_spec_put(t, p->whole.at, name);
    if (!given[0] && !p->bracket)
        return;
    pe_spec_put(t, "[", 1);
    pe_spec_put(t, given, strlen(given));
    if (given[0] && own > 1)
        pe_spec_put(t, between, strlen(between));
    pe_spec_put(t, p->bracket ? p->bracket + 1 : "]", p->bracket ? own : 1);
}

/* ---------------------------------------------------------------- parts and pieces ---------- */

/* Length of text up to the first `end` outside brackets. */
static size_t length_to(const char *text, char end)
{
    size_t n = 0;
    for (int depth = 0; text[n] && (depth > 0 || text[n] != end); n++)
        depth += (text[n] == '[') - (text[n] == ']');
    return n;
}

pe_spec_part pe_spec_first(const char *spec)
{
    pe_spec_part p = {.whole = {spec, length_to(spec, '+')}};
    p.bracket      = memchr(spec, '[', p.whole.length);
    const size_t n = p.bracket ? (size_t)(p.bracket - spec) : p.whole.length;
    if (p.bracket)
        p.inside =
            (pe_spec_piece){p.bracket + 1, spec[p.whole.length - 1] == ']' ? p.whole.length - n - 2 : 0};
    snprintf(p.name, sizeof p.name, "%.*s", (int)(n < sizeof p.name ? n : sizeof p.name - 1), spec);
    return p;
}

int pe_spec_following(pe_spec_text *t, pe_spec_part *p)
{
    const char *end = p->whole.at + p->whole.length;
    if (!*end)
        return 0;
    pe_spec_put(t, "+", 1);
    *p = pe_spec_first(end + 1);
    return 1;
}

/* The next piece of `rest`, which then starts after it; of length 0 at the end. */
static pe_spec_piece next_piece(pe_spec_piece *rest)
{
    while (rest->length && strchr(separators, *rest->at)) {
        rest->at++;
        rest->length--;
    }
    pe_spec_piece p = {rest->at, 0};
    while (p.length < rest->length && !strchr(separators, p.at[p.length]))
        p.length++;
    rest->at += p.length;
    rest->length -= p.length;
    return p;
}

/* Which setting a piece "name=value" is about, or -1; *value receives what follows '='. */
static int setting_of(pe_spec_piece p, pe_spec_piece *value)
{
    for (int i = 0; i < SETTINGS; i++) {
        const size_t n = strlen(settings[i].name);
        if (p.length > n && !strncmp(p.at, settings[i].name, n) && p.at[n] == '=') {
            *value = (pe_spec_piece){p.at + n + 1, p.length - n - 1};
            return i;
        }
    }
    return -1;
}

/* The number of a word among a setting's, or -1. */
static int word_of(int setting, pe_spec_piece value)
{
    for (int i = 0; i < WORDS; i++)
        if (strlen(settings[setting].words[i]) == value.length &&
            !strncmp(settings[setting].words[i], value.at, value.length))
            return i;
    return -1;
}

/* ---------------------------------------------------------------- out of a SPEC ------------- */

/* What setting number i of a part says, into entry. */
static posenc_status set_entry(pe_entry *entry, const pe_spec_part *p, int i, pe_spec_piece value,
                               posenc_error *err)
{
    const posenc_encoding_info *info = posenc_encoding_find(p->name);
    const int                   word = word_of(i, value);
    if (info && info->place != POSENC_PLACE_INPUT)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "%s: %s is for encodings that act at the input; this one acts at place %s", p->name,
                       settings[i].name, posenc_place_name(info->place));
    if (word < 0)
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s is '%.*s'; it must be %s or %s", p->name,
                       settings[i].name, (int)value.length, value.at, settings[i].words[0],
                       settings[i].words[1]);
    if (i == COMBINE) {
        entry->combine       = (pe_combine)word;
        entry->names_combine = 1;
    } else
        entry->inject = (pe_inject)word;
    return POSENC_OK;
}

/* Takes what is ours from the pieces of a part and writes the others. */
static posenc_status take_part(pe_spec_text *t, pe_entry *entry, const pe_spec_part *p, posenc_error *err)
{
    pe_spec_piece      rest = p->inside, one, value;
    const pe_spec_text mark = *t;
    int ours = -1, taken = 0, copied = 0; /* ours: the setting of the piece before, if it was one */
    pe_spec_put(t, p->name, strlen(p->name));
    while ((one = next_piece(&rest)).length) {
        const int is_pair = memchr(one.at, '=', one.length) != NULL, before = ours;
        ours = setting_of(one, &value);
        if (ours < 0 && (is_pair || before < 0)) {
            pe_spec_put(t, copied++ ? ":" : "[", 1);
            pe_spec_put(t, one.at, one.length);
            continue;
        }
        /* what has no '=' continues a list: we have none */
        const int           i      = ours >= 0 ? ours : before;
        const posenc_status status = set_entry(entry, p, i, ours >= 0 ? value : one, err);
        if (status)
            return status;
        if (ours < 0)
            return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s takes one value, not a list", p->name,
                           settings[i].name);
        taken = 1;
    }
    if (copied)
        pe_spec_put(t, "]", 1);
    if (!taken) {
        *t = mark;
        pe_spec_put(t, p->whole.at, p->whole.length);
    }
    return POSENC_OK;
}

posenc_status pe_spec_split(char *plain, size_t n, pe_entry *entry, const char *spec, posenc_error *err)
{
    pe_spec_text  t      = pe_spec_begin(plain, n);
    pe_spec_part  p      = pe_spec_first(spec);
    posenc_status status = POSENC_OK;
    *entry               = (pe_entry){PE_ADD, PE_AT_INPUT, 0};
    if (spec[length_to(spec, '/')]) { /* of layers, in which no rows enter */
        pe_spec_put(&t, spec, strlen(spec));
        return pe_spec_end(&t, spec, err);
    }
    do
        status = take_part(&t, entry, &p, err);
    while (!status && pe_spec_following(&t, &p));
    if (!status && entry->combine == PE_CONCAT && entry->inject == PE_IN_BLOCKS)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "%.60s: combine=concat needs inject=input; with inject=blocks rows are added", spec);
    return status ? status : pe_spec_end(&t, spec, err);
}

/* ---------------------------------------------------------------- into a SPEC --------------- */

int pe_spec_has_setting(const posenc_encoding_info *info, const char *name)
{
    for (int i = 0; info && i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name))
            return 1;
    return 0;
}

/* Has this part a setting of that name about which it says nothing? */
static int leaves_open(const pe_spec_part *p, const posenc_encoding_info *info, const char *name)
{
    const size_t  n    = strlen(name);
    int           open = pe_spec_has_setting(info, name);
    pe_spec_piece rest = p->inside, one;
    while (open && (one = next_piece(&rest)).length)
        open = one.length <= n || strncmp(one.at, name, n) || one.at[n] != '=';
    return open;
}

/* Writes spec with name=value in its input part, always or where that is open. */
static posenc_status write_with(char *to, size_t n, const char *spec, const char *name, const char *value,
                                int always, posenc_error *err)
{
    pe_spec_text t = pe_spec_begin(to, n);
    pe_spec_part p = pe_spec_first(spec);
    if (spec[length_to(spec, '/')]) {
        pe_spec_put(&t, spec, strlen(spec));
        return pe_spec_end(&t, spec, err);
    }
    do {
        char                        pair[64];
        const posenc_encoding_info *info = posenc_encoding_find(p.name);
        const int                   wants =
            info && info->place == POSENC_PLACE_INPUT && (always || leaves_open(&p, info, name));
        snprintf(pair, sizeof pair, "%s%s=%s]", !p.bracket ? "[" : p.inside.length ? ":" : "", name, value);
        pe_spec_put(&t, p.whole.at, p.whole.length - (wants && p.bracket)); /* without the closing bracket */
        pe_spec_put(&t, pair, wants ? strlen(pair) : 0);
    } while (pe_spec_following(&t, &p));
    return pe_spec_end(&t, spec, err);
}

posenc_status pe_spec_set_combine(char *named, size_t n, const char *spec, pe_combine combine,
                                  posenc_error *err)
{
    return write_with(named, n, spec, settings[COMBINE].name, pe_spec_combine_name(combine), 1, err);
}

posenc_status pe_spec_set_missing(char spec[PE_LONGEST_SPEC], const char *name, int64_t value,
                                  posenc_error *err)
{
    char given[PE_LONGEST_SPEC], text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    const posenc_status status = write_with(given, sizeof given, spec, name, text, 0, err);
    if (!status)
        strcpy(spec, given);
    return status;
}

posenc_status pe_spec_read_combine(int *ways, const char *list, posenc_error *err)
{
    pe_spec_piece rest = {list, strlen(list)}, one;
    *ways              = 0;
    while ((one = next_piece(&rest)).length) {
        const int word = word_of(COMBINE, one);
        if (word < 0)
            return pe_fail(err, POSENC_ERROR_ARGUMENT,
                           "combine: \"%.*s\" is not known; it must be add, concat or add,concat",
                           (int)one.length, one.at);
        *ways |= 1 << word;
    }
    return *ways
               ? POSENC_OK
               : pe_fail(err, POSENC_ERROR_ARGUMENT, "combine: it is empty; write add, concat or add,concat");
}

/* ---------------------------------------------------------------- lists, small models ------- */

/* "rope, alibi" and "rope + t5": blanks count within brackets only. */
static void copy_without_blanks(char *spec, const char *list, size_t length)
{
    for (int depth = 0; length; length--, list++) {
        depth += (*list == '[') - (*list == ']');
        if (depth || *list != ' ')
            *spec++ = *list;
    }
    *spec = 0;
}

/* "RoPE" is rope: a comparison knows its encodings by the names of the registry. */
static void write_names(char *spec)
{
    pe_spec_part p    = pe_spec_first(spec);
    pe_spec_text none = {.is_full = 1};
    do {
        const posenc_encoding_info *info = posenc_encoding_find(p.name);
        if (info)
            memcpy(spec + (p.whole.at - spec), info->name, strlen(info->name));
    } while (pe_spec_following(&none, &p));
}

const char *pe_spec_next(char *spec, size_t n, const char *list, posenc_status *status, posenc_error *err)
{
    const size_t length = length_to(list, ',');
    *status             = POSENC_OK;
    if (length == 0)
        *status = pe_fail(err, POSENC_ERROR_ARGUMENT,
                          "a name is missing in the list of encodings; write NAME,NAME,...");
    else if (length >= n)
        *status = pe_fail(err, POSENC_ERROR_ARGUMENT,
                          "the encoding \"%.40s...\" has %zu characters; it must have fewer than %zu", list,
                          length, n);
    if (*status)
        return NULL;
    copy_without_blanks(spec, list, length);
    write_names(spec);
    return list[length] ? list + length + 1 : NULL;
}

static posenc_status complete_one(char *complete, size_t n, const char *spec, const posenc_dims *dims,
                                  int mask, posenc_error *err)
{
    char         small[LONGEST_SETTINGS];
    pe_spec_text t = pe_spec_begin(complete, n);
    pe_spec_part p = pe_spec_first(spec);
    do {
        const posenc_status status = posenc_small_model(p.name, dims, mask, small, sizeof small, err);
        if (status)
            return status;
        pe_spec_put_with(&t, &p, small, " ");
        if (t.is_full)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: the settings of this encoding are too long",
                           p.name);
    } while (pe_spec_following(&t, &p));
    return pe_spec_end(&t, spec, err);
}

/* ---------------------------------------------------------------- one per layer ------------- */

int pe_spec_is_layered(const char *spec)
{
    posenc_layer read;
    return spec[length_to(spec, '/')] || (!posenc_layer_read(&read, spec, 0, NULL) && read.window);
}

posenc_status pe_spec_layer(posenc_encoding **e, posenc_layer *read, const char *spec, int64_t l,
                            posenc_error *err)
{
    *e                         = NULL;
    const posenc_status status = posenc_layer_read(read, spec, l, err);
    return status ? status : posenc_encoding_create(e, read->spec, NULL, err);
}

posenc_status pe_spec_check(const char *spec, posenc_error *err)
{
    posenc_layer  read   = {.period = 1};
    posenc_status status = POSENC_OK;
    for (int64_t l = 0; l < read.period && !status; l++) {
        posenc_encoding *e;
        status = pe_spec_layer(&e, &read, spec, l, err);
        posenc_encoding_free(e);
    }
    return status;
}

/* Writes an entry with its window, for so many layers. */
static void put_entry(pe_spec_text *t, const char *entry, int64_t window, int64_t count)
{
    char         text[48];
    pe_spec_part p = pe_spec_first(entry);
    if (t->used)
        pe_spec_put(t, "/", 1);
    snprintf(text, sizeof text, "window=%lld", (long long)window);
    pe_spec_put_with(t, &p, window ? text : "", ":");
    pe_spec_put(t, p.whole.at + p.whole.length, strlen(p.whole.at + p.whole.length));
    snprintf(text, sizeof text, ":%lld", (long long)count);
    if (count > 1)
        pe_spec_put(t, text, strlen(text));
}

/* What becomes of one entry. */
typedef posenc_status rewrite(char *to, size_t n, const char *entry, const void *with, posenc_error *err);

/* Entries one by one; equal ones that follow each other are written once. */
static posenc_status rewrite_all(char *to, size_t n, const char *spec, rewrite *one, const void *with,
                                 posenc_error *err)
{
    pe_spec_text t    = pe_spec_begin(to, n);
    posenc_layer read = {.period = 1}, before = {.window = -1};
    int64_t      alike                  = 0;
    char         entry[PE_LONGEST_SPEC] = "", next[PE_LONGEST_SPEC] = "";
    for (int64_t l = 0; l <= read.period; l++) {
        posenc_status status = posenc_layer_read(&read, spec, l, err);
        if (!status && l < read.period)
            status = one(next, sizeof next, read.spec, with, err);
        if (status)
            return status;
        const int same = l < read.period && read.window == before.window && !strcmp(next, entry);
        if (l && !same)
            put_entry(&t, entry, before.window, read.period == alike ? 1 : alike);
        alike = same ? alike + 1 : 1;
        strcpy(entry, next);
        before = read;
    }
    return pe_spec_end(&t, spec, err);
}

typedef struct small_model {
    const posenc_dims *dims;
    int                mask;
} small_model;

static posenc_status complete_entry(char *to, size_t n, const char *entry, const void *with,
                                    posenc_error *err)
{
    const small_model *model = with;
    return complete_one(to, n, entry, model->dims, model->mask, err);
}

posenc_status pe_spec_complete(char *complete, size_t n, const char *spec, const posenc_dims *dims, int mask,
                               posenc_error *err)
{
    const small_model model = {dims, mask};
    return pe_spec_is_layered(spec) ? rewrite_all(complete, n, spec, complete_entry, &model, err)
                                    : complete_one(complete, n, spec, dims, mask, err);
}

static posenc_status canonical_entry(char *to, size_t n, const char *entry, const void *with,
                                     posenc_error *err)
{
    posenc_encoding *e;
    posenc_status    status = posenc_encoding_create(&e, entry, NULL, err);
    if (!status && strlen(posenc_encoding_spec(e)) >= n)
        status = pe_fail(err, POSENC_ERROR_ARGUMENT, "%.40s: this specification is too long", entry);
    else if (!status)
        strcpy(to, posenc_encoding_spec(e));
    posenc_encoding_free(e);
    return status;
}

posenc_status pe_spec_canonical(char *to, size_t n, const char *spec, posenc_error *err)
{
    return rewrite_all(to, n, spec, canonical_entry, NULL, err);
}

/* SPDX-License-Identifier: MIT */
/*
 * entry.c: combine= and inject= out of a SPEC, and into it
 *
 * A SPEC is cut into parts, a bracket into pieces at the separators that the library knows, and pieces that
 * begin with a name of the table below are taken. A bracket from which nothing was taken is copied as it
 * stands, so that whatever else is wrong with it is the library's to say.
 */
#include "train/entry.h"

#include "train/fail.h"
#include "train/preset.h"

#include <string.h>

enum { COMBINE, INJECT, SETTINGS, WORDS = 2, NAME = 64 };

static const struct {
    const char *name, *words[WORDS];
} settings[SETTINGS] = {
    {"combine", {"add", "concat"}},  /* ORDER pe_combine */
    {"inject", {"input", "blocks"}}, /* ORDER pe_inject */
};

static const char separators[] = ":, \t\n";

const char *pe_combine_name(pe_combine combine)
{
    return settings[COMBINE].words[combine];
}

const char *pe_inject_name(pe_inject inject)
{
    return settings[INJECT].words[inject];
}

int pe_entry_is_standard(const pe_entry *entry)
{
    return entry->combine == PE_ADD && entry->inject == PE_AT_INPUT;
}

/* ---------------------------------------------------------------- pieces -------------------- */

/* A stretch of text. */
typedef struct piece {
    const char *at;
    size_t      length;
} piece;

/* The next piece of `rest`, which is advanced behind it; of length 0 at the end. */
static piece next_piece(piece *rest)
{
    while (rest->length && strchr(separators, *rest->at)) {
        rest->at++;
        rest->length--;
    }
    piece p = {rest->at, 0};
    while (p.length < rest->length && !strchr(separators, p.at[p.length]))
        p.length++;
    rest->at += p.length;
    rest->length -= p.length;
    return p;
}

/* Which setting a piece "name=value" is about, or -1; *value receives what stands behind '='. */
static int setting_of(piece p, piece *value)
{
    for (int i = 0; i < SETTINGS; i++) {
        const size_t n = strlen(settings[i].name);
        if (p.length > n && !strncmp(p.at, settings[i].name, n) && p.at[n] == '=') {
            *value = (piece){p.at + n + 1, p.length - n - 1};
            return i;
        }
    }
    return -1;
}

/* The number of a word among a setting's, or -1. */
static int word_of(int setting, piece value)
{
    for (int i = 0; i < WORDS; i++)
        if (strlen(settings[setting].words[i]) == value.length &&
            !strncmp(settings[setting].words[i], value.at, value.length))
            return i;
    return -1;
}

/* A part of a SPEC: its name, and what stands between its brackets, if it has any. */
typedef struct part {
    char  name[NAME];
    piece whole, inside;
} part;

static part part_at(const char *spec)
{
    part p         = {.whole = {spec, pe_spec_length(spec, '+')}};
    p.inside       = (piece){memchr(spec, '[', p.whole.length), 0};
    const size_t n = p.inside.at ? (size_t)(p.inside.at++ - spec) : p.whole.length;
    if (p.inside.at && spec[p.whole.length - 1] == ']')
        p.inside.length = p.whole.length - n - 2;
    snprintf(p.name, sizeof p.name, "%.*s", (int)(n < NAME ? n : NAME - 1), spec);
    return p;
}

/* ---------------------------------------------------------------- out of a SPEC ------------- */

static posenc_status too_long(const char *spec, posenc_error *err)
{
    return pe_train_fail(err, POSENC_ARGUMENT, "%.40s: this specification is too long", spec);
}

/* What setting number i of a part says, into entry. */
static posenc_status set(pe_entry *entry, const part *p, int i, piece value, posenc_error *err)
{
    const posenc_encoding_info *info = posenc_encoding_find(p->name);
    const int                   word = word_of(i, value);
    if (info && info->place != POSENC_INPUT)
        return pe_train_fail(err, POSENC_SETTING,
                             "%s: %s is for encodings that act at the input; this one acts at place %s",
                             p->name, settings[i].name, posenc_place_name(info->place));
    if (word < 0)
        return pe_train_fail(err, POSENC_SETTING, "%s: %s is '%.*s'; it must be %s or %s", p->name,
                             settings[i].name, (int)value.length, value.at, settings[i].words[0],
                             settings[i].words[1]);
    if (i == COMBINE) {
        entry->combine       = (pe_combine)word;
        entry->names_combine = 1;
    } else
        entry->inject = (pe_inject)word;
    return POSENC_OK;
}

/* Takes what is ours from the pieces of a part; the others are joined in `kept`. *taken counts. */
static posenc_status sort_pieces(char *kept, size_t n, int *taken, pe_entry *entry, const part *p,
                                 posenc_error *err)
{
    piece rest = p->inside, one, value;
    int   ours = -1; /* the setting of the piece before, if that was one of ours */
    *taken     = 0;
    kept[0]    = 0;
    while ((one = next_piece(&rest)).length) {
        const int is_pair = memchr(one.at, '=', one.length) != NULL, before = ours;
        ours = setting_of(one, &value);
        if (ours >= 0 || (!is_pair && before >= 0)) { /* what has no '=' continues a list: we have none */
            const int           i      = ours >= 0 ? ours : before;
            const posenc_status status = set(entry, p, i, ours >= 0 ? value : one, err);
            if (status)
                return status;
            if (ours < 0)
                return pe_train_fail(err, POSENC_SETTING, "%s: %s has one value, not a list", p->name,
                                     settings[i].name);
            ++*taken;
        } else if (!pe_spec_append(kept, n, ":", kept[0] != 0) ||
                   !pe_spec_append(kept, n, one.at, one.length))
            return too_long(p->whole.at, err);
    }
    return POSENC_OK;
}

static posenc_status take_part(char *plain, size_t n, pe_entry *entry, const part *p, posenc_error *err)
{
    char                kept[1024];
    int                 taken, fits;
    const posenc_status status = sort_pieces(kept, sizeof kept, &taken, entry, p, err);
    if (status)
        return status;
    if (!taken)
        fits = pe_spec_append(plain, n, p->whole.at, p->whole.length);
    else {
        fits = pe_spec_append(plain, n, p->name, strlen(p->name));
        if (kept[0])
            fits = fits && pe_spec_append(plain, n, "[", 1) && pe_spec_append(plain, n, kept, strlen(kept)) &&
                   pe_spec_append(plain, n, "]", 1);
    }
    return fits ? POSENC_OK : too_long(p->whole.at, err);
}

posenc_status pe_entry_take(char *plain, size_t n, pe_entry *entry, const char *spec, posenc_error *err)
{
    *entry   = (pe_entry){PE_ADD, PE_AT_INPUT, 0};
    plain[0] = 0;
    for (const char *at = spec;; at++) { /* behind a '+' */
        const part          p      = part_at(at);
        const posenc_status status = take_part(plain, n, entry, &p, err);
        if (status)
            return status;
        at += p.whole.length;
        if (!*at)
            break;
        if (!pe_spec_append(plain, n, "+", 1))
            return too_long(spec, err);
    }
    if (entry->combine == PE_CONCAT && entry->inject == PE_IN_BLOCKS)
        return pe_train_fail(err, POSENC_SETTING,
                             "%.60s: combine=concat is for inject=input; in every block rows are added",
                             spec);
    return POSENC_OK;
}

/* ---------------------------------------------------------------- into a SPEC --------------- */

/* Part p with a further setting. */
static int append_with(char *to, size_t n, const part *p, const char *name, const char *value)
{
    char         pair[64];
    const int    has_bracket = p->inside.at != NULL;
    const size_t head        = p->whole.length - (has_bracket ? 1 : 0); /* without the closing bracket */
    snprintf(pair, sizeof pair, "%s%s=%s]", !has_bracket ? "[" : p->inside.length ? ":" : "", name, value);
    return pe_spec_append(to, n, p->whole.at, head) && pe_spec_append(to, n, pair, strlen(pair));
}

static int is_at_input(const part *p)
{
    const posenc_encoding_info *info = posenc_encoding_find(p->name);
    return info && info->place == POSENC_INPUT;
}

/* Has this part a setting of that name about which it says nothing? */
static int leaves_open(const part *p, const char *name)
{
    const posenc_encoding_info *info = posenc_encoding_find(p->name);
    const size_t                n    = strlen(name);
    int                         open = 0;
    piece                       rest = p->inside, one;
    for (int i = 0; i < info->setting_count; i++)
        open |= !strcmp(info->settings[i].name, name);
    while (open && (one = next_piece(&rest)).length)
        open = one.length <= n || strncmp(one.at, name, n) || one.at[n] != '=';
    return open;
}

/* Writes spec with name=value in its input part, always or where that is open. */
static posenc_status write_with(char *to, size_t n, const char *spec, const char *name, const char *value,
                                int always, posenc_error *err)
{
    to[0] = 0;
    for (const char *at = spec;; at++) {
        const part p     = part_at(at);
        const int  wants = is_at_input(&p) && (always || leaves_open(&p, name));
        const int  fits =
            wants ? append_with(to, n, &p, name, value) : pe_spec_append(to, n, p.whole.at, p.whole.length);
        at += p.whole.length;
        if (!fits || (*at && !pe_spec_append(to, n, "+", 1)))
            return too_long(spec, err);
        if (!*at)
            return POSENC_OK;
    }
}

posenc_status pe_entry_name_combine(char *named, size_t n, const char *spec, pe_combine combine,
                                    posenc_error *err)
{
    return write_with(named, n, spec, settings[COMBINE].name, pe_combine_name(combine), 1, err);
}

posenc_status pe_entry_give(char *given, size_t n, const char *spec, const char *name, int64_t value,
                            posenc_error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return write_with(given, n, spec, name, text, 0, err);
}

posenc_status pe_combine_read(int *ways, const char *list, posenc_error *err)
{
    piece rest = {list, strlen(list)}, one;
    *ways      = 0;
    while ((one = next_piece(&rest)).length) {
        const int word = word_of(COMBINE, one);
        if (word < 0)
            return pe_train_fail(
                err, POSENC_ARGUMENT,
                "combine: there is no way \"%.*s\"; there are add, concat, and both: add,concat",
                (int)one.length, one.at);
        *ways |= 1 << word;
    }
    return *ways
               ? POSENC_OK
               : pe_train_fail(err, POSENC_ARGUMENT, "combine: it is empty; write add, concat or add,concat");
}

/* SPDX-License-Identifier: MIT */
/* One parser for every setting. Contract: settings.h. */
#include "base/settings.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/shared/decimal.h"
#include "base/expression.h"
#include "base/status.h"

int pe_settings_index(const posenc_setting_info *table, const char *name, size_t length)
{
    for (int i = 0; table && table[i].name; i++)
        if (strlen(table[i].name) == length && !strncmp(table[i].name, name, length))
            return i;
    return -1;
}

int pe_settings_next(pe_setting_pair *pair, const char **at, const char *separators)
{
    const size_t n = strcspn(*at, separators), name = strcspn(*at, "=");
    if (!**at)
        return 0;
    *pair = name < n ? (pe_setting_pair){*at, *at + name + 1, name, n - name - 1}
                     : (pe_setting_pair){*at, NULL, n, 0};
    *at += n + strspn(*at + n, separators);
    return 1;
}

int pe_settings_word_index(const char *range, const char *word, size_t length)
{
    for (int index = 0;; index++) {
        const size_t span = strcspn(range, "|");
        if (span == length && !strncmp(range, word, length))
            return index;
        if (!range[span])
            return -1;
        range += span + 1;
    }
}

int pe_settings_size(const posenc_dims *sizes, const char *name, size_t length, double *value)
{
    const struct {
        const char *name;
        int64_t     size;
    } all[] = {
        {"B", sizes->B}, {"H", sizes->H},   {"G", sizes->G}, {"Lq", sizes->Lq},           {"Lk", sizes->Lk},
        {"D", sizes->D}, {"Dv", sizes->Dv}, {"L", sizes->L}, {"d_model", sizes->d_model},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].name) == length && !strncmp(all[i].name, name, length)) {
            *value = (double)all[i].size;
            return 1;
        }
    return 0;
}

int pe_settings_number(const posenc_setting_info *table, const pe_value *set, const char *name, size_t length,
                       double *value)
{
    const int own = pe_settings_index(table, name, length);
    if (own >= 0) {
        const double number = strchr("wf", *table[own].type) ? (double)set[own].integer : set[own].real;
        *value              = set[own].given ? number : INFINITY;
        return 1;
    }
    const int item = length > 1 ? name[length - 1] - '1' : -1,
              list = pe_settings_index(table, name, length - 1);
    if (list < 0 || item < 0 || item >= set[list].count)
        return 0;
    *value = (double)set[list].items[item];
    return 1;
}

static int scope_lookup(void *context, const char *name, size_t length, double *value)
{
    const pe_scope   *scope = context;
    const posenc_dims any   = {0};
    if (scope->known && pe_settings_number(scope->table, scope->set, name, length, value))
        return 1;
    if (scope->sizes)
        return pe_settings_size(scope->sizes, name, length, value);
    *value = NAN; /* a size not known yet: checked later */
    return pe_settings_size(&any, name, length, &(double){0});
}

/* "2..", "0..1", "..5": both ends included. "1<.." excludes the lower one. */
static int is_in_range(const char *range, double x)
{
    const char *dots = strstr(range, "..");
    char       *end;
    if (!dots)
        return 1;
    if (dots != range) {
        const double low = pe_decimal_read(range, &end);
        if (*end == '<' ? !(x > low) : !(x >= low))
            return 0;
    }
    return !dots[2] || x <= pe_decimal_read(dots + 2, NULL);
}

/* Names the value of an expression as well. */
static posenc_status refuse_number(const posenc_setting_info *row, const char *text, double x,
                                   const char *who, posenc_error *err)
{
    const char *kind = strcmp(row->type, "real") != 0 ? "an integer" : "a real number";
    char       *end;
    pe_decimal_read(text, &end);
    if (!*end || !isfinite(x))
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s=%s is out of range; it must be %s %s", who,
                       row->name, text, kind, row->range);
    return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s=%s is %g; it must be %s %s", who, row->name, text, x,
                   kind, row->range);
}

static posenc_status resolve_number(pe_value *value, const posenc_setting_info *row, const char *text,
                                    const pe_scope *scope, const char *who, posenc_error *err)
{
    const int whole = strcmp(row->type, "real") != 0;
    double    x;
    if (!pe_expression_evaluate(text, scope_lookup, (void *)(uintptr_t)scope, &x)) {
        const size_t n    = strlen(text);
        const int    list = n > 1 && scope->table ? pe_settings_index(scope->table, text, n - 1) : -1;
        if (list >= 0) /* item 2 of a list of one */
            return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s has %d numbers; %s needs %s, or to be given",
                           who, scope->table[list].name, scope->set[list].count, row->name, text);
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s=%s is not a number; %s must be %s %s", who,
                       row->name, text, row->name, whole ? "an integer" : "a real number", row->range);
    }
    if (isnan(x) && !scope->sizes)
        return POSENC_OK;
    if (!isfinite(x) || !is_in_range(row->range, x) || (whole && (x != floor(x) || fabs(x) > 0x1p53)))
        return refuse_number(row, text, x, who, err);
    value->real    = x;
    value->integer = whole ? (int64_t)x : 0;
    return POSENC_OK;
}

/* "24:20:20" or "7x7": each piece is a number of its own. */
static posenc_status resolve_list(pe_value *value, const posenc_setting_info *row, const char *text,
                                  const pe_scope *scope, const char *who, posenc_error *err)
{
    value->real = 1;
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ":x");
        char         piece[PE_MAX_TEXT];
        pe_value     item = {0};
        if (value->count == PE_MAX_ITEMS || n >= sizeof piece || (at[n] && !at[n + 1]))
            return pe_fail(err, POSENC_ERROR_SETTING,
                           "%s: %s=%s is not a list; write 1 to %d integers joined by ':' or 'x'", who,
                           row->name, text, PE_MAX_ITEMS);
        memcpy(piece, at, n);
        piece[n]                   = '\0';
        const posenc_status status = resolve_number(&item, row, piece, scope, who, err);
        if (status)
            return status;
        value->items[value->count++] = item.integer;
        value->real *= item.real;
        at += n + (at[n] != '\0');
    }
    return POSENC_OK;
}

/* One "name=number" of a map into its place. Returns its length, 0 with the reason in err. */
static size_t resolve_entry(pe_value *value, const posenc_setting_info *row, const char *text,
                            const pe_scope *scope, const char *who, posenc_error *err)
{
    const size_t n = strcspn(text, ":"), named = strcspn(text, "=");
    const int    index = named < n ? pe_settings_word_index(row->range, text, named) : -1;
    char         number[PE_MAX_TEXT];
    pe_value     item = {0};
    if (index < 0 || index >= PE_MAX_ITEMS || n - named - 1 >= sizeof number) {
        pe_fail(err, POSENC_ERROR_SETTING, "%s: %s=%s is not a map; join name=integer by ':', names: %s", who,
                row->name, text, row->range);
        return 0;
    }
    snprintf(number, sizeof number, "%.*s", (int)(n - named - 1), text + named + 1);
    const posenc_setting_info entry = {row->name, "integer", "", "0..", row->meaning};
    if (resolve_number(&item, &entry, number, scope, who, err))
        return 0;
    value->items[index] = item.integer;
    value->count        = index >= value->count ? index + 1 : value->count;
    return n;
}

/* The default has every name, the text some of them. Without a table only the text is checked: the default
   may name other settings. */
static posenc_status resolve_map(pe_value *value, const posenc_setting_info *row, const char *text,
                                 const pe_scope *scope, const char *who, posenc_error *err)
{
    const char *both[] = {row->default_value, text};
    for (int i = scope->table ? 0 : 1; i < 2; i++)
        for (const char *at = both[i]; *at;) {
            const size_t n = resolve_entry(value, row, at, scope, who, err);
            if (n == 0)
                return POSENC_ERROR_SETTING;
            at += n + (at[n] != '\0');
        }
    return POSENC_OK;
}

posenc_status pe_settings_resolve(pe_value *value, const posenc_setting_info *row, const char *text,
                                  const posenc_dims *sizes, const char *who, posenc_error *err)
{
    return pe_settings_resolve_in(value, row, text, &(pe_scope){.sizes = sizes}, who, err);
}

posenc_status pe_settings_resolve_in(pe_value *value, const posenc_setting_info *row, const char *text,
                                     const pe_scope *scope, const char *who, posenc_error *err)
{
    const char *chosen = *text ? text : row->default_value;
    *value             = (pe_value){0};
    if (!*chosen)
        return POSENC_OK;
    value->given = 1;
    if (!strcmp(row->type, "integer") || !strcmp(row->type, "real"))
        return resolve_number(value, row, chosen, scope, who, err);
    if (!strcmp(row->type, "list"))
        return resolve_list(value, row, chosen, scope, who, err);
    if (!strcmp(row->type, "map"))
        return resolve_map(value, row, chosen, scope, who, err);
    const char *range = strcmp(row->type, "flag") ? row->range : "no|yes";
    const int   index = pe_settings_word_index(range, chosen, strlen(chosen));
    if (index < 0)
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: %s=%s is unknown; it must be one of %s", who,
                       row->name, chosen, range);
    value->integer = index;
    return POSENC_OK;
}

static int is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

int pe_settings_begins(const char *text, const char *typed, size_t n)
{
    size_t same = 0;
    while (same < n && text[same] && is_same_letter(text[same], typed[same]))
        same++;
    return same == n;
}

int pe_settings_has_word(const char *text, const char *typed)
{
    enum { FEWEST_LETTERS = 3 };
    static const char between[] = " ,;|_-()'";
    const size_t      n         = strlen(typed);
    while (n >= FEWEST_LETTERS && text && *text) {
        if (pe_settings_begins(text, typed, n))
            return 1;
        text += strcspn(text, between);
        text += strspn(text, between);
    }
    return 0;
}

int pe_settings_distance(const char *typed, const char *name)
{
    const int edits = 2 * pe_settings_edit_distance(typed, name);
    if (edits <= PE_SETTINGS_BEGINS || !pe_settings_has_word(name, typed))
        return edits;
    const int near =
        pe_settings_begins(name, typed, strlen(typed)) ? PE_SETTINGS_BEGINS : PE_SETTINGS_HAS_WORD;
    return edits < near ? edits : near;
}

int pe_settings_edit_distance(const char *a, const char *b)
{
    enum { MAX = 40 };
    const size_t na = strlen(a), nb = strlen(b);
    int          d[MAX + 1][MAX + 1];
    if (na > MAX || nb > MAX)
        return MAX;
    for (size_t i = 0; i <= na; i++)
        for (size_t j = 0; j <= nb; j++) {
            if (!i || !j) {
                d[i][j] = (int)(i + j);
                continue;
            }
            const int edit = (d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] : d[i][j - 1]) + 1,
                      same = d[i - 1][j - 1] + !is_same_letter(a[i - 1], b[j - 1]);
            d[i][j]        = edit < same ? edit : same;
            if (i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) && is_same_letter(a[i - 2], b[j - 1]) &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[na][nb];
}

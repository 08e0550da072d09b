/* SPDX-License-Identifier: MIT */
/*
 * formula.c: a formula, and what each of its letters means
 *
 * A letter is a name of the formula's notation (posenc_encoding_info.formula), with or without what is below
 * it: S_{h,i,j}, then h, i and j. Its meaning is the first that is found in the room's own list (.symbols),
 * in the glossary of posenc.h, which is repeated here, and among the settings of the room, whose value stands
 * there as well. A meaning for q_i is not one for q_m, but one for w_m
 * is one for w by itself, and one for W_1 is one for W_2 or W_{a + b}.
 */
#include "cli/commands/explain/explain.h"
#include "show/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LETTERS = 40, LETTER = 24, MEANING = 320 };

/* "NAME: meaning" lines, as in the rooms. */
static const char glossary[] =
    "S_{h,i,j}: the score of query i and key j in head h\n"
    "q_i: the query of token i, D numbers\n"
    "k_j: the key of token j, D numbers\n"
    "v_j: the value of token j\n"
    "o_i: the output for token i\n"
    "p: the row of position P, d numbers\n"
    "P: the position of a token, counted from 0\n"
    "t: the distance P(i) − P(j) of query and key; positive: the key lies in the past\n"
    "h: a head, counted from 0\n"
    "i: a query\n"
    "j: a key\n"
    "m: a pair of channels, counted from 0\n"
    "H: how many heads there are\n"
    "D: the width of a head\n"
    "d: the width of the model\n"
    "s: the factor of products in a score, setting scale\n"
    "softmax: e^S of one key divided by the sum over all keys\n"
    "clip: the number, or the bound that it has passed\n"
    "σ: the logistic function 1 / (1 + e^−x)\n";

/* Words that are no letters. */
static const char functions[] = " sin cos ln log max min mod sign sqrt frac ";

typedef struct letter {
    char        name[LETTER]; /* "S_{h,i,j}" */
    const char *meaning;      /* up to the end of its line; NULL: none was found */
} letter;

typedef struct letters {
    const posenc_encoding_info *info;
    const char                 *spec; /* with settings that are not the default */
    int                         count;
    letter                      list[MOST_LETTERS];
    char                        settings[MOST_LETTERS][MEANING];
} letters;

/* ---------------------------------------------------------------- reading ------------------- */

static size_t is_letter(const char *s)
{
    const unsigned char lead = (unsigned char)*s;
    return isalpha(lead) ? 1 : lead >= 0xCD && lead <= 0xCF ? 2 : 0; /* Greek: U+0370 to U+03FF */
}

/* Bytes of a name: Latin letters belong together, a Greek one stands by itself. */
static size_t name_length(const char *s)
{
    size_t n = 0;
    if (is_letter(s) == 2)
        return 2;
    while (is_letter(s + n) == 1 || (n && isdigit((unsigned char)s[n])))
        n++;
    return n;
}

/* Bytes of what is below a name, with its "_": a group in braces, a name or a digit. */
static size_t below_length(const char *s)
{
    if (*s != '_')
        return 0;
    if (s[1] == '{')
        return strcspn(s, "}") + 1;
    return 1 + (isdigit((unsigned char)s[1]) ? 1 : name_length(s + 1));
}

/* ---------------------------------------------------------------- meanings ------------------ */

/* The line of a list for the first n bytes of `name`; with any_below also one that has something below. */
static const char *line_of(const char *list, const char *name, size_t n, int any_below)
{
    for (const char *line = list; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, name, n) && (line[n] == ':' || (any_below && line[n] == '_')))
            return line;
    return NULL;
}

/* The value of a setting where it is not the default; 0: it is. */
static size_t setting_value(const char *spec, const char *name, const char **value)
{
    const size_t n = strlen(name);
    for (const char *at = spec; (at = strstr(at, name)) != NULL; at += n)
        if (at > spec && strchr("[,", at[-1]) && at[n] == '=') {
            *value = at + n + 1;
            return strcspn(*value, ",]");
        }
    return 0;
}

double cli_explain_setting(const cli_explanation *x, const posenc_encoding_info *info, const char *name)
{
    const posenc_setting_info *row  = pe_calc_setting(info, name);
    const char                *text = row ? row->default_value : "";
    char                      *end;
    setting_value(posenc_encoding_spec(x->subject.p.e), name, &text);
    const double value = strtod(text, &end);
    return end == text ? NAN : value;
}

/* "NAME: meaning" of a setting, with its value. */
static const char *setting_line(letters *l, const char *name, size_t n)
{
    char *to = l->settings[l->count];
    for (int i = 0; i < l->info->setting_count; i++) {
        const posenc_setting_info *row   = &l->info->settings[i];
        const char                *value = row->default_value;
        if (strlen(row->name) != n || strncmp(row->name, name, n) != 0)
            continue;
        size_t size = setting_value(l->spec, row->name, &value);
        size        = size ? size : strlen(value);
        snprintf(to, MEANING, "%.24s: setting %.24s%s%.*s: %.216s", row->name, row->name, size ? " = " : "",
                 (int)(size < 40 ? size : 40), value, row->meaning);
        return to;
    }
    return NULL;
}

static const char *meaning_of(letters *l, const char *name, size_t n, size_t below)
{
    const char *const lists[] = {l->info->symbols, glossary};
    const char       *found   = NULL;
    for (int i = 0; i < 2 && !found && below; i++)
        found = line_of(lists[i], name, n + below, 0);
    for (int i = 0; i < 2 && !found; i++)
        found = line_of(lists[i], name, n, 0);
    for (int i = 0; i < 2 && !found; i++)
        found = line_of(lists[i], name, n, !below || !isalpha((unsigned char)name[n + 1]));
    return found ? found : setting_line(l, name, n);
}

/* Adds a letter unless it is there; its name is that of its line. */
static void add(letters *l, const char *name, size_t n, size_t below)
{
    const char  *line = meaning_of(l, name, n, below);
    const size_t size = line ? strcspn(line, ":") : n + below;
    for (int i = 0; i < l->count; i++)
        if (line ? l->list[i].meaning == line + size + 2 : !strncmp(l->list[i].name, name, size))
            return;
    if (l->count == MOST_LETTERS)
        return;
    letter *to = &l->list[l->count++];
    snprintf(to->name, LETTER, "%.*s", (int)size, line ? line : name);
    to->meaning = line ? line + size + 2 : NULL;
}

/* Only before what they are taken of: `max` may be a setting. */
static int is_function(const char *name, size_t n)
{
    char word[LETTER];
    snprintf(word, sizeof word, " %.*s ", (int)n, name);
    return (strstr(functions, word) && strchr("({_ ", name[n])) || (n == 1 && *name == 'e' && name[1] == '^');
}

static void read_letters(letters *l)
{
    for (const char *at = l->info->formula; at && *at;) {
        const size_t n = name_length(at);
        if (n && !is_function(at, n))
            add(l, at, n, below_length(at + n));
        at += n ? n : 1; /* what is below it comes next */
    }
}

/* ---------------------------------------------------------------- the answer ---------------- */

static void print_letter(cli_sheet *s, json_t **list, const letter *it)
{
    char      meaning[MEANING];
    const int n = it->meaning ? (int)strcspn(it->meaning, "\n") : 0;
    snprintf(meaning, sizeof meaning, "%.*s", n, it->meaning ? it->meaning : "");
    if (s->json)
        pe_json_add(list, json_pack("{s:s, s:o}", "symbol", it->name, "meaning", cli_json_text(meaning)));
    else
        cli_sheet_words(s, "", it->name, meaning);
}

void cli_explain_formula(cli_explanation *x, const posenc_encoding_info *info)
{
    letters    l    = {.info = info, .spec = posenc_encoding_spec(x->subject.p.e)};
    json_t    *list = x->sheet.json ? json_array() : NULL;
    cli_sheet *s    = &x->sheet;
    read_letters(&l);
    cli_sheet_title(s, "%s: %s", info->name, info->title);
    if (list)
        cli_sheet_words(s, "formula", "", info->formula);
    else
        pe_plain_write(stdout, info->formula, 2, cli_width());
    for (int i = 0; i < l.count; i++)
        print_letter(s, &list, &l.list[i]);
    if (x->theta.count && info->place == POSENC_PLACE_ROTARY)
        cli_sheet_text(s, "Here --theta gives each w_m, in radians per position, and not its formula.");
    if (s->json)
        cli_sheet_put(s, "symbols", list);
}

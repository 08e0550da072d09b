/* SPDX-License-Identifier: MIT */
/*
 * cmd_list.c: posenc list: what encodings there are, and everything one of them says about itself
 *
 * The command only walks the registry: posenc_encoding_info, posenc_common_settings and posenc_examples hold
 * the content. As text they become aligned tables whose last column wraps, or, where the others leave it too
 * little width, stands below each row; with --json the same members, unabridged, for programs.
 */
#include "cli/print/print.h"
#include "show/formula.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_PROSE = 30, INDENT = 2, COLUMNS = 5, CELL = 64, MOST_ROWS = 256 };

/* Prose in longer lines is hard to read. */
static int narrow(void)
{
    return cli_width() < 80 ? cli_width() : 80;
}

/* A row of a table, as many cells as the table has columns. Those of the last column are prose and wrap. */
typedef struct list_row {
    const char *cells[COLUMNS];
} list_row;

static int cell_width(const list_row *rows, int count, int column)
{
    size_t widest = 0;
    for (int r = 0; r < count; r++) {
        const char *cell = rows[r].cells[column];
        if (cell && strlen(cell) > widest)
            widest = strlen(cell);
    }
    return (int)widest;
}

static void print_table(const list_row *rows, int count, int columns, int indent, int width)
{
    for (int r = 0; r < count; r++) {
        int at = printf("%*s", indent, "");
        for (int c = 0; c < columns - 1; c++)
            at += printf("%-*s", cell_width(rows, count, c) + 2, rows[r].cells[c]);
        const char *last = rows[r].cells[columns - 1];
        cli_wrap(last, strlen(last), at, at, width);
    }
}

/* "a|b|c" in lines that fit, broken after a '|' or at a blank; the cursor stands at `indent`. */
static void print_choices(const char *text, int indent)
{
    for (int at = indent; *text;) {
        const int n = (int)strcspn(text, "| "), whole = n + (text[n] == '|');
        if (at > indent && at + whole > narrow())
            at = printf("\n%*s", indent, "") - 1;
        at += printf("%.*s", whole + (text[n] == ' '), text);
        text += n + (text[n] != 0);
    }
    putchar('\n');
}

static int longest_choice(const char *text)
{
    size_t longest = 0;
    for (; *text; text += text[strcspn(text, "| ")] ? strcspn(text, "| ") + 1 : strcspn(text, "| "))
        longest = strcspn(text, "| ") > longest ? strcspn(text, "| ") : longest;
    return (int)longest + 1;
}

/* A cell and what follows it up to the next column, or, after a cell too wide for its own, on the next line.
   Returns where the next column begins. */
static int print_cell(const char *cell, int at, int width)
{
    const int next = at + width + 2;
    if ((int)strlen(cell) <= width)
        printf("%-*s", width + 2, cell);
    else {
        cli_wrap(cell, strlen(cell), at, at, narrow());
        printf("%*s", next, "");
    }
    return next;
}

static void print_row_above_prose(const list_row *rows, int count, int r, int columns)
{
    const int   widest = narrow() < 80 ? 16 : 24;
    const char *prose  = rows[r].cells[columns - 1];
    int         at = printf("%*s", INDENT, ""), below = 0;
    for (int c = 0; c < columns - 2; c++) {
        const int width = cell_width(rows, count, c);
        at              = print_cell(rows[r].cells[c], at, width < widest ? width : widest);
        below           = c ? below : at;
    }
    if (at + longest_choice(rows[r].cells[columns - 2]) > narrow())
        at = printf("\n%*s", 2 * INDENT, "") - 1;
    print_choices(rows[r].cells[columns - 2], at);
    printf("%*s", below, "");
    cli_wrap(prose, strlen(prose), below, below, narrow());
}

/* A table with prose in its last column, below each row where it is not wide enough; nothing where it has
   only its head. */
static void print_section(const char *title, const list_row *rows, int count, int columns)
{
    int before = INDENT;
    if (count < 2)
        return;
    printf("\n%s\n", title);
    for (int c = 0; c < columns - 1; c++)
        before += cell_width(rows, count, c) + 2;
    if (before + LEAST_PROSE <= narrow())
        print_table(rows, count, columns, INDENT, narrow());
    else
        for (int r = 0; r < count; r++)
            print_row_above_prose(rows, count, r, columns);
}

/* The names of the parameters that are trained with default settings, the first `most` of them, or
   "nothing". */
static void what_it_learns(const posenc_encoding_info *info, int most, char text[CELL])
{
    posenc_encoding *e     = NULL;
    size_t           used  = 0;
    int              names = 0;
    snprintf(text, CELL, "nothing");
    if (posenc_encoding_create(&e, info->name, NULL, NULL))
        return;
    for (int i = 0; i < posenc_param_count(e) && used < CELL; i++)
        if (posenc_param_trainable(e, i) && names++ < most)
            used +=
                (size_t)snprintf(text + used, CELL - used, "%s%s", used ? ", " : "", posenc_param_name(e, i));
    if (names > most && used < CELL)
        snprintf(text + used, CELL - used, " +%d", names - most);
    posenc_encoding_free(e);
}

static const char *or_dash(const char *text)
{
    return text && *text ? text : "-";
}

static int set_encoding(pe_table *t, int row, const void *from)
{
    const posenc_encoding_info *info = posenc_encoding_info_at(row);
    char                        learns[CELL], about[512];
    (void)from;
    what_it_learns(info, 3, learns);
    snprintf(about, sizeof about, "learns %s; %s%s%s", learns, or_dash(info->paper),
             info->models && *info->models ? "; " : "", info->models ? info->models : "");
    return pe_table_text(t, row, 0, info->name) && pe_table_text(t, row, 1, posenc_place_name(info->place)) &&
           pe_table_text(t, row, 2, about);
}

static int print_all(void)
{
    static const pe_column columns[] = {{"ENCODING", "", 1, 0},
                                        {"PLACE", "", 1, 0},
                                        {"LEARNS; PAPER; MODELS", "", PE_WIDE, 0}};
    return cli_print_rows("list", columns, 3, posenc_encoding_count(), set_encoding, NULL);
}

/* ---------------------------------------------------------------- one encoding --------------- */

static const char *what_scores_see(const posenc_encoding_info *info)
{
    if (info->sees)
        return info->sees;
    if (info->by_distance && info->place == POSENC_PLACE_SCORE && info->token_count)
        return "distances, weighed by what the query's token says";
    return info->by_distance ? "only distances" : "absolute positions";
}

/* What products are multiplied by unless the setting says otherwise; NULL where no such product is the
   encoding's. */
static const char *default_scale(const posenc_encoding_info *info)
{
    if (info->place != POSENC_PLACE_SCORE)
        return NULL;
    return info->scale ? info->scale : "1/sqrt(D)";
}

static void print_settings(const char *head, const posenc_setting_info *settings, int count)
{
    list_row rows[MOST_ROWS] = {{{"NAME", "TYPE", "DEFAULT", "RANGE", "MEANING"}}};
    int      n               = 1;
    for (int i = 0; i < count && n < MOST_ROWS; i++)
        rows[n++] = (list_row){{settings[i].name, settings[i].type, or_dash(settings[i].default_value),
                                or_dash(settings[i].range), settings[i].meaning}};
    print_section(head, rows, n, 5);
}

static void print_params(const posenc_param_info *params, int count)
{
    list_row rows[MOST_ROWS] = {{{"NAME", "SHAPE", "INITIALLY", "TRAINED", "MEANING"}}};
    int      n               = 1;
    for (int i = 0; i < count && n < MOST_ROWS; i++)
        rows[n++] = (list_row){{params[i].name, *params[i].shape ? params[i].shape : "one number",
                                params[i].init, params[i].trainable ? "yes" : "no", params[i].meaning}};
    print_section("Parameters", rows, n, 5);
}

/* Do the default settings call for this token input? */
static int is_needed(const posenc_encoding_info *info, const char *token)
{
    posenc_encoding *e;
    int              is = 0;
    if (posenc_encoding_create(&e, info->name, NULL, NULL))
        return 0;
    for (int i = 0; i < posenc_token_count(e); i++)
        is |= !strcmp(posenc_token_name(e, i), token);
    posenc_encoding_free(e);
    return is;
}

static void print_tokens(const posenc_encoding_info *info)
{
    list_row rows[MOST_ROWS] = {{{"NAME", "CHANNELS", "OF EACH", "DEFAULT", "MEANING"}}};
    int      n               = 1;
    for (int i = 0; i < info->token_count && n < MOST_ROWS; i++) {
        const posenc_token_info *t = &info->tokens[i];
        rows[n++]                  = (list_row){{t->name, t->channels, t->of_keys ? "key" : "query",
                                is_needed(info, t->name) ? "needed" : "-", t->meaning}};
    }
    print_section("Token inputs, which the model makes", rows, n, 5);
}

/* What a value of a worked example is, by the place: the meaning of (a, b, c) that posenc.h states. */
static void example_subject(posenc_place place, const posenc_example *e, char text[CELL])
{
    const long long at[] = {(long long)e->a, (long long)e->b, (long long)e->c};
    switch (place) {
    case POSENC_PLACE_INPUT: snprintf(text, CELL, "row %lld, channel %lld", at[0], at[1]); return;
    case POSENC_PLACE_ROTARY: snprintf(text, CELL, "frequency of pair %lld", at[0]); return;
    default: snprintf(text, CELL, "head %lld, query %lld, key %lld", at[0], at[1], at[2]); return;
    }
}

static void print_examples(const posenc_encoding_info *info)
{
    const posenc_example *examples;
    list_row              rows[MOST_ROWS] = {{{"SETTINGS", "AT", "VALUE", "SOURCE"}}};
    char                  subjects[MOST_ROWS][CELL], values[MOST_ROWS][CELL];
    const int             count = posenc_examples(info->name, &examples);
    int                   n     = 1;
    for (int i = 0; i < count && n < MOST_ROWS; i++, n++) {
        const posenc_example *e = &examples[i];
        example_subject(info->place, e, subjects[n]);
        snprintf(values[n], CELL, "%.15g", e->value);
        rows[n] = (list_row){{or_dash(e->settings), subjects[n], values[n], e->source}};
    }
    print_section("Worked examples", rows, n, 4);
}

static void print_one(const posenc_encoding_info *info)
{
    const posenc_setting_info *common;
    char                       learns[CELL];
    char                       by_hand[CELL];
    snprintf(by_hand, sizeof by_hand, "posenc explain %s", info->name);
    what_it_learns(info, info->param_count, learns);
    const list_row facts[] = {
        {{"by hand", by_hand}}, /* each letter of the formula, and numbers */
        {{"place", posenc_place_name(info->place)}},
        {{"learns", learns}},
        {{"paper", or_dash(info->paper)}},
        {{"models", or_dash(info->models)}},
        {{"pictures", or_dash(info->pictures)}},
        {{"beyond L", info->beyond}},
        {{"scores see", what_scores_see(info)}},
        {{"direction", info->causal_only ? "causal only" : "causal or both"}},
        {{"scale", default_scale(info)}}, /* the last: left out where there is none */
    };
    const int count = (int)(sizeof facts / sizeof *facts) - !default_scale(info);
    cli_wrap(info->title, strlen(info->title), printf("%s: ", info->name), 0, narrow());
    putchar('\n');
    pe_plain_write(stdout, info->formula, INDENT, narrow());
    putchar('\n');
    print_table(facts, count, 2, INDENT, narrow());
    print_settings("Settings (--set NAME=VALUE)", info->settings, info->setting_count);
    const int common_count = posenc_common_settings(&common);
    if (info->place != POSENC_PLACE_INPUT) /* they are about scores */
        print_settings("Settings of every encoding", common, common_count);
    print_params(info->params, info->param_count);
    print_tokens(info);
    print_examples(info);
}

/* ---------------------------------------------------------------- --json --------------------- */

static json_t *json_settings(const posenc_setting_info *settings, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        pe_json_add(&list,
                    json_pack("{s:s, s:s, s:o, s:o, s:s}", "name", settings[i].name, "type", settings[i].type,
                              "default", cli_json_text(settings[i].default_value), "range",
                              cli_json_text(settings[i].range), "meaning", settings[i].meaning));
    return list;
}

static json_t *json_params(const posenc_param_info *params, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        pe_json_add(&list, json_pack("{s:s, s:s, s:s, s:b, s:s}", "name", params[i].name, "shape",
                                     params[i].shape, "init", params[i].init, "trainable",
                                     params[i].trainable, "meaning", params[i].meaning));
    return list;
}

static json_t *json_tokens(const posenc_encoding_info *info)
{
    json_t *list = json_array();
    for (int i = 0; i < info->token_count; i++) {
        const posenc_token_info *t = &info->tokens[i];
        pe_json_add(&list, json_pack("{s:s, s:s, s:s, s:b, s:s}", "name", t->name, "channels", t->channels,
                                     "of", t->of_keys ? "key" : "query", "needed", is_needed(info, t->name),
                                     "meaning", t->meaning));
    }
    return list;
}

static json_t *json_examples(const char *name)
{
    const posenc_example *e;
    const int             count = posenc_examples(name, &e);
    json_t               *list  = json_array();
    for (int i = 0; i < count; i++)
        pe_json_add(&list, json_pack("{s:s, s:[I,I,I], s:f, s:s}", "settings", e[i].settings, "at",
                                     (json_int_t)e[i].a, (json_int_t)e[i].b, (json_int_t)e[i].c, "value",
                                     e[i].value, "source", e[i].source));
    return list;
}

static json_t *json_one(const posenc_encoding_info *info)
{
    const posenc_setting_info *common;
    const int                  count = posenc_common_settings(&common);
    const struct {
        const char *key;
        json_t     *value;
    } members[] = {{"name", json_string(info->name)},
                   {"place", json_string(posenc_place_name(info->place))},
                   {"title", cli_json_text(info->title)},
                   {"formula", cli_json_text(info->formula)},
                   {"symbols", cli_json_words(info->symbols ? info->symbols : "", "\n")},
                   {"paper", cli_json_text(info->paper)},
                   {"models", cli_json_text(info->models)},
                   {"pictures", cli_json_words(info->pictures ? info->pictures : "", ", ")},
                   {"by_distance", json_boolean(info->by_distance)},
                   {"beyond", json_string(info->beyond)},
                   {"scores_see", json_string(what_scores_see(info))},
                   {"causal_only", json_boolean(info->causal_only)},
                   {"scale", cli_json_text(default_scale(info))},
                   {"settings", json_settings(info->settings, info->setting_count)},
                   {"common_settings", json_settings(common, count)},
                   {"params", json_params(info->params, info->param_count)},
                   {"tokens", json_tokens(info)},
                   {"examples", json_examples(info->name)}};
    json_t *one = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        pe_json_set(&one, members[i].key, members[i].value);
    return one;
}

/* ---------------------------------------------------------------- models --------------------- */

/* What models.def knows; length 0: no longest sequence is known. */
static const struct list_model {
    const char *name;
    int         length;
    const char *spec, *note, *source;
} models[] = {
#define MODEL(name, length, spec, note, source) {name, length, spec, note, source},
#include "cli/commands/models.def"
#undef MODEL
};
enum { MODELS = sizeof models / sizeof *models };

/* Their numbers: of those that use one encoding, or of all. */
typedef struct model_choice {
    int count, index[MODELS];
} model_choice;

static model_choice choose_models(const char *encoding)
{
    model_choice c = {0};
    for (int i = 0; i < MODELS; i++) {
        const size_t n = strcspn(models[i].spec, "[");
        if (!encoding || (strlen(encoding) == n && !strncmp(models[i].spec, encoding, n)))
            c.index[c.count++] = i;
    }
    return c;
}

static int set_model(pe_table *t, int row, const void *from)
{
    const struct list_model *m          = &models[((const model_choice *)from)->index[row]];
    char                     length[16] = "-", about[512];
    if (m->length)
        snprintf(length, sizeof length, "%d", m->length);
    snprintf(about, sizeof about, "%s; %s%s%s", m->spec, m->note, *m->note ? "; " : "", m->source);
    for (char *c = about; *c && *c != ']'; c++) /* a long SPEC goes on below; blanks separate settings too */
        if (*c == ',')
            *c = ' ';
    return pe_table_text(t, row, 0, m->name) && pe_table_text(t, row, 1, length) &&
           pe_table_text(t, row, 2, about);
}

static json_t *json_models(const model_choice *c)
{
    json_t *list = json_array();
    for (int i = 0; i < c->count; i++) {
        const struct list_model *m = &models[c->index[i]];
        pe_json_add(&list, json_pack("{s:s, s:o, s:s, s:o, s:s}", "model", m->name, "length",
                                     m->length ? json_integer(m->length) : json_null(), "spec", m->spec,
                                     "note", cli_json_text(m->note), "source", m->source));
    }
    return list;
}

static int print_models(const posenc_encoding_info *info, int json)
{
    static const pe_column columns[] = {{"MODEL", "", PE_WIDE, 0},
                                        {"LENGTH", "", 0, 0},
                                        {"SPEC; NOTE; SOURCE", "", PE_WIDE, 0}};
    const model_choice     c         = choose_models(info ? info->name : NULL);
    if (json)
        return cli_print_json(json_models(&c), 0);
    if (c.count)
        return cli_print_rows("list", columns, 3, c.count, set_model, &c);
    printf("no model with %s is listed here with its settings%s%s\n", info->name,
           info->models && *info->models ? "; it is used by " : "", info->models ? info->models : "");
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the command ---------------- */

static int run(const cli_args *args)
{
    const char *name = cli_at(args, 0);
    const int   json = cli_value(args, "json") != NULL;
    if (args->count > 1)
        return cli_usage("list: unexpected argument \"%s\"; give one encoding, or none for all",
                         cli_at(args, 1));
    const posenc_encoding_info *info = name ? posenc_encoding_find(name) : NULL;
    if (name && !info)
        return cli_usage("list: there is no encoding \"%s\"; did you mean \"%s\"?", name,
                         posenc_encoding_nearest(name));
    if (cli_value(args, "models"))
        return print_models(info, json);
    if (!name && !json)
        return print_all();
    if (!name) {
        json_t *all = json_array();
        for (int i = 0; i < posenc_encoding_count(); i++)
            pe_json_add(&all, json_one(posenc_encoding_info_at(i)));
        return cli_print_json(all, 0);
    }
    if (json)
        return cli_print_json(json_one(info), 0);
    print_one(info);
    return CLI_DONE;
}

static const cli_option options[] = {
    {0, "models", NULL, "models that use it, with their settings and longest sequences; without NAME all"},
    {0, "json", NULL, "print everything as JSON"},
    {0, NULL, NULL, NULL},
};

const cli_command cli_list = {
    .name     = "list",
    .summary  = "list the encodings, or show everything about one",
    .synopsis = "[NAME] [--models] [--json]",
    .details  = "Without NAME, prints a table: where each encoding acts, what it learns, its paper, models "
                "that use it. With NAME, prints its settings with types, defaults and ranges, its parameters "
                "with shapes in the letters of the library (H heads, D head width, d_model model width), "
                "and worked examples from its paper. posenc explain NAME puts numbers into its formula.",
    .options  = options,
    .run      = run,
    .takes    = "NAME",
};

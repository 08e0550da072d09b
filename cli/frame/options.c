/* SPDX-License-Identifier: MIT */
/*
 * options.c: from the words of a call to the values of its options
 *
 * A command's option table is its only list of options; getopt_long's own tables are made from it here, and
 * thrown away. Options and arguments may be mixed, `--` ends the options and `-` alone is an argument: all of
 * that is getopt_long's. Its messages are replaced, because ours are one line that names the nearest option.
 *
 * Two of its liberties are taken away, because they do something else than was meant, in silence. Long
 * options cannot be shortened: --seed would be --seeds, a number of trainings. And -length is not -l with a
 * value.
 */
#include "base/settings.h"
#include "cli/frame/cli.h"
#include "files/arrays/text.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option cli_common_options[] = {
    {'h', "help", NULL, "print this help and stop"},
    {'V', "version", NULL, "print the version and stop"},
    {0, NULL, NULL, NULL},
};

/* A long option without a letter is reported as FIRST_LONG + its row, above every letter. */
enum { FIRST_LONG = UCHAR_MAX + 1, MOST_OPTIONS = 64, LONGEST_WORD = 64, LONGEST_LIST = 160 };

/* A command's options and the common ones in getopt's shape. */
typedef struct tables {
    const cli_option  *rows[MOST_OPTIONS];
    struct option      longs[MOST_OPTIONS + 1];
    char               letters[2 + 2 * MOST_OPTIONS];
    int                count;
    char               before[32], help[64]; /* "list: " and "try posenc list --help" */
    const cli_command *command;
} tables;

static void add_rows(tables *t, const cli_option *rows)
{
    char *letter = t->letters + strlen(t->letters);
    for (; rows && rows->name && t->count < MOST_OPTIONS; rows++) {
        t->longs[t->count]  = (struct option){rows->name, rows->value ? required_argument : no_argument, NULL,
                                             rows->letter ? rows->letter : FIRST_LONG + t->count};
        t->rows[t->count++] = rows;
        if (rows->letter)
            *letter++ = rows->letter;
        if (rows->letter && rows->value)
            *letter++ = ':';
    }
}

static const cli_option *row_of(const tables *t, int code)
{
    for (int i = 0; i < t->count; i++)
        if (code && t->longs[i].val == code)
            return t->rows[i];
    return NULL;
}

const char *cli_options_nearest(const char *word, const char *const *candidates, int count)
{
    const char *best = NULL;
    int closest = 2 * ((int)strlen(word) / 3 + 2); /* "jsno" still finds "json", "frobnicate" finds nothing */
    for (int i = 0; i < count; i++) {
        const int d = pe_settings_distance(word, candidates[i]);
        if (d < closest) {
            closest = d;
            best    = candidates[i];
        }
    }
    return best;
}

static const cli_option *row_named(const cli_option *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (!strcmp(rows->name, name))
            return rows;
    return NULL;
}

static int is_long(const tables *t, const char *name)
{
    return row_named(cli_common_options, name) || row_named(t->command->options, name);
}

/* " (did you mean --json?)", " here, only in plot", or nothing. */
static const char *advice(char text[LONGEST_LIST], const tables *t, const char *word)
{
    const char *names[MOST_OPTIONS];
    int         used = 0;
    *text            = 0;
    for (int i = 0; i < t->count; i++)
        names[i] = t->rows[i]->name;
    const char *near = cli_options_nearest(word, names, t->count);
    if (near)
        snprintf(text, LONGEST_LIST, " (did you mean --%s?)", near);
    for (int i = 0; !near && cli_commands[i] && used < LONGEST_LIST; i++)
        if (row_named(cli_commands[i]->options, word))
            used += snprintf(text + used, (size_t)(LONGEST_LIST - used), "%s%s",
                             used ? ", " : " here, only in ", cli_commands[i]->name);
    return text;
}

/* Refuses a long option that is not there as it stands, before getopt completes it to one that is. The words
   behind an option that takes a value are looked at too: none begins with two dashes by intention. */
static int check_words(const tables *t, int argc, char *const *argv)
{
    char name[LONGEST_WORD + 1], text[LONGEST_LIST];
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const int dashes = argv[i][0] != '-' ? 0 : 1 + (argv[i][1] == '-');
        snprintf(name, sizeof name, "%s", argv[i] + dashes);
        name[strcspn(name, "=")] = 0;
        if (dashes == 2 && !is_long(t, name))
            return cli_usage("%sthere is no option --%s%s; %s", t->before, name, advice(text, t, name),
                             t->help);
        if (dashes == 1 && name[0] && name[1] && is_long(t, name))
            return cli_usage("%sthere is no option -%s; write it with two dashes: --%s", t->before, name,
                             name);
    }
    return CLI_DONE;
}

/* getopt says ':' for a missing value, and '?' for a letter that is unknown or a value too many. */
static int refuse(const tables *t, const cli_option *row, int code)
{
    if (!row)
        return cli_usage("%sthere is no option -%c; %s", t->before, optopt, t->help);
    if (code == ':')
        return cli_usage("%soption --%s needs a value: --%s %s", t->before, row->name, row->name, row->value);
    return cli_usage("%soption --%s takes no value; leave it out", t->before, row->name);
}

/* `-o --length 8`: what was to follow is missing. */
static int is_option(const tables *t, const char *value)
{
    return !strncmp(value, "--", 2) && is_long(t, value + 2);
}

int cli_options_parse(cli_args *args, const cli_command *command, int argc, char **argv)
{
    const int named = command->name[0] != 0;
    tables    t     = {.letters = ":", .command = command};
    int       code;
    snprintf(t.before, sizeof t.before, "%s%s", command->name, named ? ": " : "");
    snprintf(t.help, sizeof t.help, "try posenc%s%s --help", named ? " " : "", command->name);
    *args = (cli_args){.command = command};
    add_rows(&t, command->options);
    add_rows(&t, cli_common_options);
    if (check_words(&t, argc, argv))
        return CLI_USAGE;
    args->given = calloc((size_t)argc + 1, sizeof *args->given);
    if (!args->given)
        return cli_failed("not enough memory for the arguments");

    opterr = 0;
    while ((code = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
        const cli_option *row = row_of(&t, code);
        if (!row)
            return refuse(&t, row_of(&t, optopt), code);
        if (row->value && optarg == argv[optind - 1] && is_option(&t, optarg))
            return refuse(&t, row, ':');
        args->help |= row == &cli_common_options[0];
        args->version |= row == &cli_common_options[1];
        if (args->given_count < argc)
            args->given[args->given_count++] = (cli_given){row, row->value ? optarg : ""};
    }
    args->words = argv + optind;
    args->count = argc - optind;
    return CLI_DONE;
}

/* ---------------------------------------------------------------- what commands ask ---------- */

const char *cli_value_at(const cli_args *args, const char *option, int index)
{
    for (int i = 0; i < args->given_count; i++)
        if (!strcmp(args->given[i].option->name, option) && index-- == 0)
            return args->given[i].value;
    return NULL;
}

int cli_value_count(const cli_args *args, const char *option)
{
    int n = 0;
    for (int i = 0; i < args->given_count; i++)
        n += !strcmp(args->given[i].option->name, option);
    return n;
}

const char *cli_value(const cli_args *args, const char *option)
{
    return cli_value_at(args, option, cli_value_count(args, option) - 1);
}

const char *cli_at(const cli_args *args, int index)
{
    return index >= 0 && index < args->count ? args->words[index] : NULL;
}

/* ---------------------------------------------------------------- values -------------------- */

/* A bound of a real number; scales have none. */
static double bound(const cli_option *row, int64_t end, double none)
{
    return row->type == CLI_REAL_TEXT ? none : (double)end;
}

/* What a value of this option must be. */
static void describe(char to[160], const cli_option *row)
{
    const long long low = row->low, high = row->high;
    const double    least = bound(row, low, -HUGE_VAL), most = bound(row, high, HUGE_VAL);
    const size_t    size = 160;
    size_t          used = 0;
    snprintf(to, size, "%s", row->must ? row->must : "");
    switch (row->must ? CLI_ASKED : row->type) {
    case CLI_WHOLE: snprintf(to, size, "a whole number from %lld to %lld", low, high); break;
    case CLI_REAL:
    case CLI_REAL_TEXT: snprintf(to, size, "a number from %g to %g", least, most); break;
    case CLI_WHOLES:
        snprintf(to, size, "up to %d whole numbers from %lld to %lld, such as 4:8", CLI_LIST_MOST, low, high);
        break;
    case CLI_REALS:
        snprintf(to, size, "up to %d numbers from %g to %g, such as 1e4:5e5", CLI_LIST_MOST, least, most);
        break;
    case CLI_POINTS:
        snprintf(to, size, "up to %d points ROWxCOLUMN, such as 4x6:8x16", CLI_LIST_MOST / 2);
        break;
    case CLI_GRID:
        snprintf(to, size, "ROWSxCOLUMNS, each from %lld to %lld, such as 16x32", low, high);
        break;
    case CLI_WORD:
        for (const char *at = row->words; at;) {
            const int n = (int)strcspn(at, "|");
            used += (size_t)snprintf(to + used, size - used, "%s%.*s",
                                     at == row->words ? ""
                                     : at[n]          ? ", "
                                                      : " or ",
                                     n, at);
            at = at[n] ? at + n + 1 : NULL;
        }
        break;
    case CLI_ASKED:
    case CLI_FLAG:
    case CLI_TEXT: break;
    }
}

/* Reads one number at *text and steps over it; whether there is one within bounds. */
static int next_number(const char **text, const cli_option *row, int64_t *whole, double *real)
{
    char *end;
    int   fits;
    errno = 0;
    if (row->type == CLI_REAL || row->type == CLI_REAL_TEXT || row->type == CLI_REALS) {
        *real = strtod(*text, &end);
        fits  = *real >= bound(row, row->low, -HUGE_VAL) && *real <= bound(row, row->high, HUGE_VAL);
    } else {
        *whole = strtoll(*text, &end, 10);
        fits   = !errno && *whole >= row->low && *whole <= row->high;
    }
    fits  = fits && end != *text;
    *text = end;
    return fits;
}

/* Numbers with ':' (as in settings) or ',' between them; points and grids are two with an x between them. */
static int read_list(const cli_option *row, const char *text, cli_numbers *list)
{
    const int paired = row->type == CLI_POINTS || row->type == CLI_GRID;
    const int most   = row->type == CLI_GRID ? 2 : CLI_LIST_MOST;
    for (int n = 0; n < most; n++, text++) {
        const int is_first = paired && n % 2 == 0; /* of a pair */
        if (!next_number(&text, row, &list->whole[n], &list->real[n]))
            return -1;
        list->count = n + 1;
        if (!*text && !is_first)
            return 1;
        if (is_first ? *text != 'x' : !*text || !strchr(":,", *text))
            return -1;
    }
    return -1;
}

int cli_options_word(const char *list, char separator, const char *word)
{
    const size_t n = strlen(word);
    for (int number = 0; list; number++) {
        if (!strncmp(list, word, n) && (list[n] == separator || !list[n]) && !memchr(word, separator, n))
            return number;
        list = strchr(list, separator);
        list = list ? list + 1 : NULL;
    }
    return -1;
}

/* 1 or -1. */
static int read_value(const cli_option *row, const char *text, void *to)
{
    int64_t whole;
    double  real;
    int     number;
    switch (row->type) {
    case CLI_WHOLE: return next_number(&text, row, to, &real) && !*text ? 1 : -1;
    case CLI_REAL: return next_number(&text, row, &whole, to) && !*text ? 1 : -1;
    case CLI_WHOLES:
    case CLI_REALS:
    case CLI_POINTS:
    case CLI_GRID: return read_list(row, text, to);
    case CLI_WORD:
        number     = cli_options_word(row->words, '|', text);
        *(int *)to = number < 0 ? 0 : number;
        return number < 0 ? -1 : 1;
    case CLI_FLAG: return *(int *)to = 1;
    case CLI_REAL_TEXT:
    case CLI_TEXT:
        *(const char **)to = text;
        return row->type == CLI_TEXT || (next_number(&text, row, &whole, &real) && !*text) ? 1 : -1;
    case CLI_ASKED: break;
    }
    return 1;
}

int cli_read_as(const cli_args *args, const cli_option *row, void *to)
{
    const char *text = cli_value(args, row->name);
    char        must[160];
    const int   found = text ? read_value(row, text, to) : 0;
    if (found < 0) {
        describe(must, row);
        cli_usage("%s: --%s is \"%s\"; it must be %s", args->command->name, row->name, text, must);
    }
    return found;
}

int cli_read(const cli_args *args, void *values)
{
    for (const cli_option *row = args->command->options; row->name; row++)
        if (cli_read_as(args, row, (char *)values + row->at) < 0)
            return CLI_USAGE;
    return CLI_DONE;
}

int cli_integer(const cli_args *args, const char *option, int64_t low, int64_t high, int64_t *x)
{
    return cli_read_as(args, &(cli_option){.name = option, .type = CLI_WHOLE, .low = low, .high = high}, x);
}

int cli_check_page(const cli_args *args)
{
    const char *path = cli_value(args, "output");
    if (!path || !strcmp(path, "-") || pe_text_ends_with(path, ".html"))
        return CLI_DONE;
    return cli_usage("%s: --output is \"%s\"; it must end in .html, as the page is HTML, or be -",
                     args->command->name, path);
}

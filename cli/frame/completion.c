/* SPDX-License-Identifier: MIT */
/*
 * completion.c: what may follow in a call, for the completion of bash
 *
 *     posenc completion bash                     the script, which the build installs
 *     posenc completion bash -- posenc list al   what may stand in the place of the last word, one per line
 *
 * The script asks the tool itself at every Tab, so that all knowledge is here, in the tables that options.c
 * parses by and in the registry. A line that begins with a slash stands for files: "/.npy" those with that
 * ending, "/" any, "//" folders; the shell finds them.
 *
 * What may stand in a place is a list of items (cli.h, cli_command.takes): SPEC, NAME, K=V, F, DIR, endings
 * of files and words. Options have it in `words`, or in the placeholder of their value.
 */
#include "base/settings.h"
#include "cli/frame/cli.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST_WORD = 1024 };

/* The call up to the cursor; `typed` is the end of its last word, for which something is looked for. */
typedef struct line {
    char *const       *words;
    int                count;
    const cli_command *command;
    const char        *last, *typed;
} line;

/* ---------------------------------------------------------------- candidates ---------------- */

/* Prints the last word with `candidate` in the place of what was typed, if it begins so. */
static void offer(const line *l, const char *typed, const char *candidate, size_t n, const char *after)
{
    const size_t begun = strlen(typed);
    if (begun <= n && pe_settings_begins(candidate, typed, begun))
        printf("%.*s%.*s%s\n", (int)(typed - l->last), l->last, (int)n, candidate, after);
}

static void offer_word(const line *l, const char *candidate)
{
    offer(l, l->typed, candidate, strlen(candidate), "");
}

static void offer_words(const line *l, const char *typed, const char *list)
{
    for (size_t n; *list; list += n + (list[n] == '|')) {
        n = strcspn(list, "|");
        offer(l, typed, list, n, "");
    }
}

/* What stands behind the last of these characters. */
static const char *behind(const char *text, const char *separators)
{
    const char *last = text;
    for (; *text; text++)
        if (strchr(separators, *text))
            last = text + 1;
    return last;
}

/* ---------------------------------------------------------------- encodings ----------------- */

static void offer_settings(const line *l, const char *typed, const posenc_setting_info *row)
{
    const char  *equal = strchr(typed, '=');
    const size_t named = equal ? (size_t)(equal - typed) : 0;
    for (; row->name; row++) {
        const int is_this = strlen(row->name) == named && !strncmp(row->name, typed, named);
        if (!equal)
            offer(l, typed, row->name, strlen(row->name), "=");
        else if (is_this && !strcmp(row->type, "word"))
            offer_words(l, equal + 1, row->range);
        else if (is_this && !strcmp(row->type, "flag"))
            offer_words(l, equal + 1, "yes|no");
        else if (is_this)
            offer(l, equal + 1, row->default_value, strlen(row->default_value), "");
    }
}

static void offer_settings_of(const line *l, const char *typed, const posenc_encoding_info *info)
{
    const posenc_setting_info *common;
    posenc_common_settings(&common);
    offer_settings(l, typed, info->settings);
    offer_settings(l, typed, common);
}

static const posenc_encoding_info *encoding_in(const char *text, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    return posenc_encoding_find(name);
}

static void offer_encodings(const line *l, const char *typed)
{
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const char *name = posenc_encoding_info_at(i)->name;
        offer(l, typed, name, strlen(name), "");
    }
}

/* "alibi+t5[num_": names, and settings between brackets. */
static void offer_spec(const line *l)
{
    const char *part = l->typed, *bracket = NULL;
    for (const char *at = part; *at; at++) {
        bracket = *at == '[' ? at : *at == ']' ? NULL : bracket;
        part    = !bracket && strchr("+,", *at) ? at + 1 : part;
    }
    const posenc_encoding_info *info = bracket ? encoding_in(part, (size_t)(bracket - part)) : NULL;
    if (!bracket)
        offer_encodings(l, part);
    else if (info)
        offer_settings_of(l, behind(bracket + 1, ":, "), info);
}

/* "base=", or "rope.base=" where it says which: of the encodings that the call names. */
static void offer_set(const line *l)
{
    const char                 *dot = strchr(l->typed, '.'), *equal = strchr(l->typed, '=');
    const posenc_encoding_info *said =
        dot && (!equal || dot < equal) ? encoding_in(l->typed, (size_t)(dot - l->typed)) : NULL;
    if (said)
        offer_settings_of(l, dot + 1, said);
    for (int i = 2; i < l->count - 1 && !said; i++)
        for (const char *part = l->words[i]; *part; part += strcspn(part, "+"), part += *part == '+') {
            const posenc_encoding_info *info = encoding_in(part, strcspn(part, "[+"));
            if (info)
                offer_settings_of(l, l->typed, info);
        }
}

/* ---------------------------------------------------------------- places -------------------- */

static const line *asked; /* for the words that a command calls out */

static void called_out(const char *word)
{
    offer_word(asked, word);
}

/* One item of a place; `what` is the option, NULL for an argument. */
static void offer_item(line *l, const char *item, size_t n, const char *what)
{
    char text[LONGEST_WORD];
    snprintf(text, sizeof text, "%.*s", (int)n, item);
    char *more = strstr(text, ",..."); /* a list: its last member; a SPEC may have commas of its own */
    if (more && strncmp(text, "SPEC", 4) != 0)
        l->typed = behind(l->typed, ",");
    if (more)
        *more = 0;
    if (!strcmp(text, "SPEC"))
        offer_spec(l);
    else if (!strcmp(text, "NAME"))
        offer_encodings(l, l->typed);
    else if (strchr(text, '='))
        offer_set(l);
    else if (!strcmp(text, "*") && l->command->words) {
        asked = l;
        l->command->words(what, called_out);
    } else if (!strcmp(text, "DIR"))
        puts("//");
    else if (*text == '.' || !strncmp(text, "F.", 2) || !strcmp(text, "F"))
        printf("/%s\n", text + (*text == 'F'));
    else if (islower((unsigned char)*text) || isdigit((unsigned char)*text))
        offer_word(l, text);
}

static void offer_items(line *l, const char *items, size_t length, const char *what)
{
    for (size_t n, at = 0; at < length; at += n + 1) {
        n = strcspn(items + at, "| ");
        n = n < length - at ? n : length - at;
        offer_item(l, items + at, n, what);
    }
}

static void offer_value(line *l, const cli_option *row)
{
    const char *items = row->words ? row->words : row->value;
    offer_items(l, items, strlen(items), row->name);
}

/* Number `place` of the arguments; the last one may be repeated if it ends with dots. */
static void offer_argument(line *l, int place)
{
    const char *items = l->command->takes ? l->command->takes : "";
    size_t      n     = strcspn(items, " ");
    for (; place > 0 && items[n]; place--, n = strcspn(items, " "))
        items += n + 1;
    const size_t dots = n >= 3 && !strncmp(items + n - 3, "...", 3) ? 3 : 0;
    if (place == 0 || dots)
        offer_items(l, items, n - dots, NULL);
}

static void offer_options(const line *l, const cli_option *row)
{
    char text[LONGEST_WORD];
    for (; row && row->name; row++) {
        snprintf(text, sizeof text, "--%s", row->name);
        offer_word(l, text);
    }
}

/* The option whose value the next word is: "-o" or "--output" of one that takes a value. */
static const cli_option *awaits(const line *l, const char *word)
{
    const cli_option *row = l->command->options;
    for (; row && row->name; row++)
        if (row->value && *word == '-' &&
            (word[1] == '-' ? !strcmp(word + 2, row->name) : word[1] && word[1] == row->letter && !word[2]))
            return row;
    return NULL;
}

/* "--output=fi": the option, and typed moves behind the sign. */
static const cli_option *holds(line *l)
{
    char         name[LONGEST_WORD];
    const size_t n = strcspn(l->typed, "=");
    snprintf(name, sizeof name, "%.*s", (int)n, l->typed);
    const cli_option *row = l->typed[n] ? awaits(l, name) : NULL;
    l->typed += row ? n + 1 : 0;
    return row;
}

static void offer_in_command(line *l)
{
    const cli_option *row   = NULL;
    int               place = 0;
    for (int i = 2; i < l->count - 1; i++) {
        row = row ? NULL : awaits(l, l->words[i]);
        place += !row && l->words[i][0] != '-' && !awaits(l, l->words[i - 1]);
    }
    row = row ? row : holds(l);
    if (row)
        offer_value(l, row);
    else if (*l->typed == '-') {
        offer_options(l, l->command->options);
        offer_options(l, cli_common_options);
    } else
        offer_argument(l, place);
}

/* words[0] is the tool, words[1] the command. */
static void offer_next(char *const *words, int count)
{
    line l = {words, count, count > 2 ? cli_pages_find(words[1]) : NULL, words[count - 1], words[count - 1]};
    if (l.command)
        offer_in_command(&l);
    else if (count == 2 && *l.typed == '-')
        offer_options(&l, cli_common_options);
    for (int i = 0; count == 2 && cli_commands[i]; i++)
        offer_word(&l, cli_commands[i]->name);
}

/* ---------------------------------------------------------------- the script ---------------- */

/* Bash cuts words at the = and : of COMP_WORDBREAKS, and replaces what is behind the last one alone. */
static const char *const script[] = {
    "# bash completion for posenc; printed by `posenc completion bash`",
    "_posenc()",
    "{",
    "    local words=() breaks=${COMP_WORDBREAKS//[^=:]/} glued= files= word head typed i",
    "    for ((i = 0; i <= COMP_CWORD; i++)); do",
    "        word=${COMP_WORDS[i]}",
    "        if [[ $i -gt 0 && ( $glued || $word == [=:]* ) ]]; then words[-1]+=$word; else "
    "words+=(\"$word\"); fi",
    "        [[ $word == *[=:] ]] && glued=1 || glued=",
    "    done",
    "    word=${words[-1]} typed=${words[-1]} COMPREPLY=()",
    "    [[ $breaks ]] && typed=${word##*[$breaks]}",
    "    head=${word%\"$typed\"}",
    "    while IFS= read -r word; do",
    "        case $word in",
    "        //) files=1 ;;",
    "        /*) files=1",
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X \"!*${word#/}\" -- \"$typed\") "
    ";;",
    "        *) COMPREPLY+=(\"${word#\"$head\"}\") ;;",
    "        esac",
    "    done < <(\"${words[0]/#\\~/$HOME}\" completion bash -- \"${words[@]}\" 2>/dev/null)",
    "    if [[ $files ]]; then",
    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- \"$typed\")",
    "        compopt -o filenames 2>/dev/null",
    "    elif [[ ${COMPREPLY[0]} == *= || ${words[-1]} == *\\[* ]]; then",
    "        compopt -o nospace 2>/dev/null",
    "    fi",
    "}",
    "complete -F _posenc posenc",
};

static int run_completion(const cli_args *args)
{
    const char *shell = cli_at(args, 0);
    if (!shell || strcmp(shell, "bash") != 0)
        return cli_usage("completion: the shell is \"%s\"; it must be bash: posenc completion bash",
                         shell ? shell : "");
    if (args->count > 2)
        offer_next(args->words + 1, args->count - 1);
    for (size_t i = 0; args->count == 1 && i < sizeof script / sizeof *script; i++)
        puts(script[i]);
    return CLI_DONE;
}

const cli_command cli_completion = {
    .name     = "completion",
    .summary  = "print the completion for a shell",
    .synopsis = "bash [-- WORD...]",
    .details =
        "For this session: source <(posenc completion bash). With the words of a call, prints what may stand "
        "in the place of the last one.",
    .takes = "bash",
    .run   = run_completion,
};

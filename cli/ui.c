/* SPDX-License-Identifier: MIT */
/*
 * ui.c: how the tool speaks: errors, warnings, the words of the call, the terminal
 *
 * Every message is one line on standard error, "posenc: error: ..." or "posenc: warning: ...", so that a
 * script can cut it out and a log stays readable. Colour and escape sequences appear on a terminal only, and
 * not where NO_COLOR (no-color.org) or TERM=dumb say no.
 */
#include "cli.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Red for errors, yellow for warnings; the words alone must do, colour only helps the eye. */
static void say(const char *kind, const char *format, va_list values)
{
    const int shines = cli_colour(STDERR_FILENO);
    fflush(stdout);
    const char *colour = !strcmp(kind, "error") ? "\033[31m" : "\033[33m";
    fprintf(stderr, "posenc: %s%s:%s ", shines ? colour : "", kind, shines ? "\033[0m" : "");
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
}

int cli_usage(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say("error", format, values);
    va_end(values);
    return CLI_USAGE;
}

int cli_failed(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say("error", format, values);
    va_end(values);
    return CLI_FAILED;
}

void cli_warn(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say("warning", format, values);
    va_end(values);
}

/* FILE and MEMORY are the machine's refusals; everything else the caller can mend. */
int cli_error(const posenc_error *err)
{
    const int machine = err->status == POSENC_ERROR_FILE || err->status == POSENC_ERROR_MEMORY;
    return machine ? cli_failed("%s", err->message) : cli_usage("%s", err->message);
}

const char *cli_real_text(char text[CLI_DIGITS], double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, CLI_DIGITS, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    return text;
}

int cli_is_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

int cli_colour(int fd)
{
    const char *no = getenv("NO_COLOR");
    return (!no || !*no) && cli_is_terminal(fd);
}

/* ---------------------------------------------------------------- JSON and signals ---------- */

int cli_print_json(json_t *value, size_t digits)
{
    if (!value)
        return cli_failed("there is no memory for the numbers as JSON");
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
    putchar('\n');
    json_decref(value);
    return CLI_DONE;
}

json_t *cli_json_real(double x)
{
    return isnan(x) ? json_null() : json_real(x);
}

json_t *cli_json_text(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

volatile sig_atomic_t cli_interrupted;

static void interrupt(int number)
{
    cli_interrupted = 1;
}

void cli_heed(int number)
{
    const struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(number, &action, NULL);
}

/* ---------------------------------------------------------------- the words of the call ------ */

static char *call;

/* Letters, digits and what no shell reads; anything else wants quotes, and as a quote cannot stand inside
   quotes, it stands between two pairs of them: 'it'\''s'. */
void cli_print_word(FILE *to, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
    const int         quoted  = !*word || word[strspn(word, plain)];
    if (quoted)
        fputc('\'', to);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", to);
        else
            fputc(*word, to);
    if (quoted)
        fputc('\'', to);
}

int cli_remember_call(int argc, char **argv)
{
    size_t size;
    FILE  *to = open_memstream(&call, &size);
    if (!to)
        return -1;
    fputs("posenc", to);
    for (int i = 1; i < argc; i++) {
        fputc(' ', to);
        cli_print_word(to, argv[i]);
    }
    return fclose(to) ? -1 : 0;
}

const char *cli_call(void)
{
    return call ? call : "posenc";
}

int cli_finish(int status)
{
    const int lost = ferror(stdout) | fclose(stdout);
    free(call);
    call = NULL;
    /* A reader that left early (head) is no error of ours: stay silent, as a death by SIGPIPE would. */
    if (lost && errno == EPIPE)
        return CLI_FAILED;
    if (lost && status != CLI_DONE) /* the command has said so already: one line for one fault */
        return status;
    return lost ? cli_failed("cannot write to standard output: %s", strerror(errno)) : status;
}

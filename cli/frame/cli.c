/* SPDX-License-Identifier: MIT */
/*
 * cli.c: how the tool speaks: errors, warnings, the words of the call, the terminal
 *
 * Every message is one line on standard error, "posenc: error: ..." or "posenc: warning: ...", so that a
 * script can cut it out and a log stays readable. Colour and escape sequences appear on a terminal only, and
 * not where NO_COLOR (no-color.org) or TERM=dumb forbid it.
 */
#include "cli/frame/cli.h"

#include "files/arrays/text.h"

#include <errno.h>
#include <posenc/files.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LONGEST_MESSAGE = 4096 };

static int why_lost; /* errno of the first flush that failed: the next calls forget it */

void cli_flush(void)
{
    if (fflush(stdout) && !why_lost)
        why_lost = errno;
}

/* Red for errors, yellow for warnings; the words must do without it, colour only helps the eye. */
int cli_say(int status, const char *format, ...)
{
    const char *kind = status ? "error" : "warning", *colour = status ? "\033[31m" : "\033[33m";
    const int   shines = cli_colour(STDERR_FILENO);
    char        text[LONGEST_MESSAGE];
    va_list     values;
    cli_flush();
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "posenc: %s%s:%s %s\n", shines ? colour : "", kind, shines ? "\033[0m" : "",
            pe_text_clean(text));
    return status;
}

void cli_print_text(const char *text, int width)
{
    pe_text_put(stdout, text, strlen(text));
    printf("%*s", width > (int)strlen(text) ? width - (int)strlen(text) : 0, "");
}

/* FILE and MEMORY come from the system; everything else the caller can fix. */
int cli_error(const posenc_error *err)
{
    const int is_system = err->status == POSENC_ERROR_FILE || err->status == POSENC_ERROR_MEMORY;
    return cli_say(is_system ? CLI_FAILED : CLI_USAGE, "%s", err->message);
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

int cli_width(void)
{
    enum { LEAST = 40, MOST = 1000, USUAL = 80 };
    const char    *given = getenv("COLUMNS");
    struct winsize size  = {0};
    int            width = given ? atoi(given) : 0;
    if (width <= 0 && (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !ioctl(STDERR_FILENO, TIOCGWINSZ, &size)))
        width = size.ws_col;
    return width <= 0 ? USUAL : width < LEAST ? LEAST : width > MOST ? MOST : width;
}

/* ---------------------------------------------------------------- signals ------------------- */

volatile sig_atomic_t cli_interrupted;

static const char *acknowledgement;

void cli_leave(int number)
{
    posenc_whole_file_abandon();
    signal(number, SIG_DFL);
    raise(number);
}

/* Whoever presses Ctrl-C looks for a sign at once; the runs stop a moment later. */
static void interrupt(int number)
{
    if (cli_interrupted)
        cli_leave(number);
    const int before = errno;
    cli_interrupted  = 1;
    if (acknowledgement && write(STDERR_FILENO, acknowledgement, strlen(acknowledgement)) < 0)
        acknowledgement = NULL; /* nobody reads it */
    errno = before;
}

void cli_catch(int number, const char *line)
{
    acknowledgement               = line;
    const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
}

/* ---------------------------------------------------------------- the words of the call ------ */

static char *call;

static int is_shown(const char *word)
{
    int shows = 1;
    for (size_t n = strlen(word), size; n && (shows || word[-1] == '\n'); word += size, n -= size)
        size = pe_text_next(word, n, &shows);
    return shows || word[-1] == '\n';
}

/* Letters, digits and what no shell reads; anything else wants quotes, and as a quote cannot stand inside
   quotes, it stands between two pairs of them: 'it'\''s'. What a terminal would obey, or what is no text, is
   written as bash and others read it: $'\033'. */
void cli_print_word(FILE *to, const char *word)
{
    if (!is_shown(word)) {
        fputs("$'", to);
        for (; *word; word++)
            if ((unsigned char)*word < ' ' || (unsigned char)*word >= 0x7f)
                fprintf(to, "\\%03o", (unsigned)(unsigned char)*word);
            else
                fprintf(to, *word == '\'' || *word == '\\' ? "\\%c" : "%c", *word);
        fputc('\'', to);
        return;
    }
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
    free(call);
    call           = NULL;
    errno          = 0;
    const int lost = ferror(stdout) | fclose(stdout);
    errno          = why_lost ? why_lost : errno ? errno : EIO;
    /* A reader that left early (head) is no error of ours: stay silent, as a death by SIGPIPE would. */
    if (lost && errno == EPIPE)
        return CLI_FAILED;
    if (lost && status != CLI_DONE) /* the command has said so already: one line for one fault */
        return status;
    return lost ? cli_failed("cannot write to standard output: %s", strerror(errno)) : status;
}

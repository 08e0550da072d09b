/* SPDX-License-Identifier: MIT */
/*
 * child.c: a command of the tool, run by the tool itself. Contract: child.h.
 *
 * No shell and no second file: a forked child calls the same function as main, with its standard streams on a
 * pipe. So a tutorial shows what this very tool computes, wherever it was copied. The parent starts no
 * threads before.
 */
#include "cli/tutorial/child.h"

#include "cli/frame/cli.h"
#include "cli/tutorial/lesson.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORDS = 64, SIGNALLED = 128 };

/* ---------------------------------------------------------------- words --------------------- */

/* The words of a line, which is taken apart, after those that are there. Returns their count. */
static int split(char *line, char *words[MOST_WORDS], int count)
{
    char *to = line;
    while (*(line += strspn(line, " ")) && count < MOST_WORDS - 1) {
        words[count++] = to;
        for (int quoted = 0; *line && (quoted || *line != ' '); line++)
            if (*line == '\'')
                quoted = !quoted;
            else
                *to++ = *line;
        line += *line != 0;
        *to++ = 0;
    }
    words[count] = NULL;
    return count;
}

/* ---------------------------------------------------------------- the child ----------------- */

/* Standard input from the file that stands behind a `<`, where there is one; both words go. Returns how many
   are left, 0 if there is no such file. */
static int take_input(char *words[MOST_WORDS], int count)
{
    int at = 1;
    while (at < count && strcmp(words[at], "<"))
        at++;
    if (at >= count - 1)
        return count;
    size_t      size;
    const void *bytes = cli_lesson_file(words[at + 1], &size);
    FILE       *to    = bytes ? tmpfile() : NULL;
    if (!to || fwrite(bytes, 1, size, to) != size || fflush(to) || fseek(to, 0, SEEK_SET) ||
        dup2(fileno(to), STDIN_FILENO) < 0)
        return 0;
    memmove(words + at, words + at + 2, (size_t)(count - at - 1) * sizeof *words);
    return count - 2;
}

/* In the child: never returns. */
static void become(const char *command, const char *more, int columns, int aloud, int to)
{
    char *words[MOST_WORDS] = {"posenc"}, width[16], *line = strdup(command),
         *rest = strdup(more ? more : "");
    if (!line || !rest || dup2(to, STDOUT_FILENO) < 0 || (!aloud && dup2(to, STDERR_FILENO) < 0))
        _exit(CLI_FAILED);
    close(to);
    snprintf(width, sizeof width, "%d", columns);
    setenv("COLUMNS", width, 1);
    optind          = 1; /* getopt has read the parent's words */
    const int count = take_input(words, split(rest, words, split(line, words, 1)));
    _exit(count ? cli_start(count, words) : CLI_FAILED);
}

/* Everything that comes out of it; NULL without memory. */
static char *read_all(int from)
{
    char   *text = NULL, part[4096];
    size_t  size;
    ssize_t n;
    FILE   *to = open_memstream(&text, &size);
    while ((n = read(from, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
        if (to && n > 0)
            fwrite(part, 1, (size_t)n, to);
    if (!to || fclose(to)) {
        free(text);
        return NULL;
    }
    return text;
}

int cli_child_run(cli_output *o, const char *command, const char *more, int columns, int aloud)
{
    int ends[2], how = 0;
    *o = (cli_output){0};
    if (pipe(ends))
        return cli_failed("tutorial: no pipe to a command: %s", strerror(errno)), -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        become(command, more, columns, aloud, ends[1]);
    }
    close(ends[1]);
    o->text = child > 0 ? read_all(ends[0]) : NULL;
    close(ends[0]);
    if (child < 0)
        return cli_failed("tutorial: cannot start a command: %s", strerror(errno)), -1;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    o->status = WIFEXITED(how) ? WEXITSTATUS(how) : SIGNALLED + WTERMSIG(how);
    return o->text ? 0 : (cli_failed("tutorial: not enough memory for what a command prints"), -1);
}

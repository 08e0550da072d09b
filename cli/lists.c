/* SPDX-License-Identifier: MIT */
/* Lists and grids as values of options: contract in lists.h. */
#include "lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* Reads one number at *text and steps behind it; 0 if there is none within bounds. */
static int next_integer(const char **text, int64_t low, int64_t high, int64_t *x)
{
    char *end;
    errno             = 0;
    const long long n = strtoll(*text, &end, 10);
    if (end == *text || errno || n < low || n > high)
        return 0;
    *x    = n;
    *text = end;
    return 1;
}

static int next_real(const char **text, double low, double high, double *x)
{
    char        *end;
    const double n = strtod(*text, &end);
    if (end == *text || !(n >= low && n <= high))
        return 0;
    *x    = n;
    *text = end;
    return 1;
}

/* Steps over the character between two numbers; 0 at the end of the text, -1 before anything else. */
static int separator(const char **text)
{
    if (!**text)
        return 0;
    if (!strchr(":,", **text))
        return -1;
    ++*text;
    return 1;
}

int cli_integers(const cli_args *args, const char *option, int64_t low, int64_t high,
                 int64_t list[CLI_LIST_MOST])
{
    const char *text = cli_value(args, option);
    int         n = 0, more = text != NULL;
    while (more > 0 && n < CLI_LIST_MOST)
        more = next_integer(&text, low, high, &list[n++]) ? separator(&text) : -1;
    if (!more)
        return n;
    cli_usage("%s: --%s is \"%s\"; it must be up to %d whole numbers from %lld to %lld, such as 4:8",
              args->command->name, option, cli_value(args, option), CLI_LIST_MOST, (long long)low,
              (long long)high);
    return -1;
}

int cli_reals(const cli_args *args, const char *option, double low, double high, double list[CLI_LIST_MOST])
{
    const char *text = cli_value(args, option);
    int         n = 0, more = text != NULL;
    while (more > 0 && n < CLI_LIST_MOST)
        more = next_real(&text, low, high, &list[n++]) ? separator(&text) : -1;
    if (!more)
        return n;
    cli_usage("%s: --%s is \"%s\"; it must be up to %d numbers from %g to %g, such as 1e4:5e5",
              args->command->name, option, cli_value(args, option), CLI_LIST_MOST, low, high);
    return -1;
}

/* "16x32" */
static int next_pair(const char **text, int64_t low, int64_t high, int64_t pair[2])
{
    if (!next_integer(text, low, high, &pair[0]) || **text != 'x')
        return 0;
    ++*text;
    return next_integer(text, low, high, &pair[1]);
}

int cli_points(const cli_args *args, const char *option, int64_t most, int64_t list[CLI_LIST_MOST])
{
    const char *text = cli_value(args, option);
    int         n = 0, more = text != NULL;
    for (; more > 0 && n + 2 <= CLI_LIST_MOST; n += 2)
        more = next_pair(&text, 0, most, &list[n]) ? separator(&text) : -1;
    if (!more)
        return n;
    cli_usage("%s: --%s is \"%s\"; it must be up to %d points ROWxCOLUMN, such as 4x6:8x16",
              args->command->name, option, cli_value(args, option), CLI_LIST_MOST / 2);
    return -1;
}

int cli_grid(const cli_args *args, const char *option, int64_t most, int64_t *rows, int64_t *cols)
{
    const char *text = cli_value(args, option);
    int64_t     pair[2];
    if (!text)
        return 0;
    if (!next_pair(&text, 1, most, pair) || *text) {
        cli_usage("%s: --%s is \"%s\"; it must be ROWSxCOLUMNS, each from 1 to %lld, such as 16x32",
                  args->command->name, option, cli_value(args, option), (long long)most);
        return -1;
    }
    *rows = pair[0];
    *cols = pair[1];
    return 2;
}

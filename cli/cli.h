/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what a command of the tool is, and what the commands share
 *
 * One command, one file (cmd_<name>.c), one row in commands.def. The table of options of a command is the
 * only list of them: parsing, --help, the man page and the shell completions all come from it. The tool uses
 * the public libraries and the one door of each upper library, nothing else.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <posenc/posenc.h>
#include <stdint.h>

/* Exit statuses of the tool. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* One option. `value` is the placeholder in the help ("F", "N"); NULL makes it a flag. letter 0 = none. */
typedef struct cli_option {
    char        letter;
    const char *name;
    const char *value;
    const char *meaning;
} cli_option;

typedef struct cli_args cli_args;

/* `synopsis`: what follows the name, e.g. "DIR [-e NAME,...]"; `details`: paragraphs for help and man page;
   options end with a row whose name is NULL (--help and --version are added by main). run returns an exit
   status. */
typedef struct cli_command {
    const char       *name, *summary, *synopsis, *details;
    const cli_option *options;
    int (*run)(const cli_args *args);
} cli_command;

/* Last value given for an option, or NULL. For a flag: "" if given. Options may be repeated: cli_value_at. */
const char *cli_value(const cli_args *args, const char *option);
int         cli_value_count(const cli_args *args, const char *option);
const char *cli_value_at(const cli_args *args, const char *option, int index);
/* Positional arguments. */
int         cli_count(const cli_args *args);
const char *cli_at(const cli_args *args, int index);
/* The words of the whole call, quoted for a shell: for "how to reproduce". */
const char *cli_call(void);

/* Prints "posenc: error: ..." as one line to standard error and returns CLI_USAGE, for `return
   cli_usage(...)`. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for what failed though the arguments were good; returns CLI_FAILED. */
int cli_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints err->message; returns the exit status that fits err->status (FILE on writing: 1; else 2). */
int cli_error(const posenc_error *err);
/* "posenc: warning: ..." */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whole numbers and reals from an option's value, with range check. Returns 0 if the option is absent, 1 if
 *x was set, -1 after printing an error (return CLI_USAGE then). */
int cli_integer(const cli_args *args, const char *option, int64_t low, int64_t high, int64_t *x);
int cli_real(const cli_args *args, const char *option, double low, double high, double *x);

/* Which of the NULL-terminated words an option is, 0 if it was not given; -1 after printing an error. */
int cli_choice(const cli_args *args, const char *option, const char *const *words);

int cli_ends_with(const char *text, const char *end);

/* Joins every --set NAME=VALUE into one settings text for posenc_encoding_create; free() it. NULL without
   memory. */
char *cli_settings(const cli_args *args);

int cli_is_terminal(int fd); /* a terminal where escape sequences make sense */
int cli_colour(int fd);      /* a terminal, NO_COLOR empty, TERM not dumb */

#endif

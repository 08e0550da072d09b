/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what a command of the tool is, and what the commands share
 *
 * One command, one file (cmd_<name>.c), one row in commands.def. The table of options of a command is the
 * only list of them: parsing, --help, the man page and the shell completions all come from it. The tool uses
 * the public libraries and one header of each upper library.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <posenc/registry.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/shared/compiler.h"

/* Exit statuses of the tool. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* What an option's value is, and so where it goes: a flag or the number of a word an int (a flag 1), a whole
   number an int64_t, a real one a double, text a const char *; REAL_TEXT is the text of any real number.
   Lists of numbers (4:8), points (4x6:8x16: y, x, y, x) and a grid (16x32) are a cli_numbers. What is ASKED
   is not stored: the command asks for it by cli_value. */
typedef enum cli_type {
    CLI_ASKED,
    CLI_FLAG,
    CLI_TEXT,
    CLI_WORD,
    CLI_WHOLE,
    CLI_REAL,
    CLI_REAL_TEXT,
    CLI_WHOLES,
    CLI_REALS,
    CLI_POINTS,
    CLI_GRID
} cli_type;

enum { CLI_LIST_MOST = 32 };
typedef struct cli_numbers {
    int     count;
    int64_t whole[CLI_LIST_MOST];
    double  real[CLI_LIST_MOST];
} cli_numbers;

/* One option. `value` is the placeholder in the help ("F", "N"); NULL makes it a flag. letter 0 = none. */
typedef struct cli_option {
    char        letter;
    const char *name;
    const char *value;
    const char *meaning;
    cli_type    type;
    size_t      at;        /* where the value goes in the command's struct (cli_read) */
    int64_t     low, high; /* of each number */
    const char *words;     /* "bhld|blhd"; of another type, what completion offers instead of `value` */
    const char *must;      /* what a value must be, in a message: "numbers such as 1,2"; NULL: by its type */
} cli_option;

typedef struct cli_args cli_args;

/* `synopsis`: what follows the name, e.g. "DIR [-e NAME,...]"; `details`: paragraphs for help and man page,
   below which `lines` calls line for each of its own; options end with a row whose name is NULL (--help and
   --version are added by main). run returns an exit status.
   For completion, `takes` says what may stand as each argument, "F", "*|.json SPEC...": items joined by '|',
   places by blanks, dots where the last one repeats. SPEC, NAME an encoding with and without settings; K=V a
   setting; F, F.npy or .npy files; DIR a folder; * what `words` calls out for an option's name or, NULL, the
   first argument; anything in small letters itself. */
typedef struct cli_command {
    const char *name, *summary, *synopsis, *details;
    void (*lines)(
        void (*line)(const char *text)); /* NULL: none; each shorter than a line, printed unchanged */
    const cli_option *options;
    int (*run)(const cli_args *args);
    const char *takes;                                                 /* NULL: nothing */
    void (*words)(const char *option, void (*word)(const char *word)); /* NULL: none */
} cli_command;

/* Last value given for an option, or NULL. For a flag: "" if given. Options may be repeated: cli_value_at. */
const char *cli_value(const cli_args *args, const char *option);
int         cli_value_count(const cli_args *args, const char *option);
const char *cli_value_at(const cli_args *args, const char *option, int index);
/* A positional argument (of args->count), or NULL. */
const char *cli_at(const cli_args *args, int index);
/* The words of the whole call, quoted for a shell: for "how to reproduce". */
const char *cli_call(void);
void        cli_print_word(FILE *to, const char *word); /* as a shell reads it back */

/* Prints one line to standard error, "posenc: error: ..." (for CLI_DONE "posenc: warning: ..."), and returns
   the status: `return cli_usage(...)` where the arguments are unusable, `return cli_failed(...)` where they
   are good and it failed all the same. */
int cli_say(int status, const char *format, ...) PE_PRINTF(2, 3);
#define cli_usage(...)  cli_say(CLI_USAGE, __VA_ARGS__)
#define cli_failed(...) cli_say(CLI_FAILED, __VA_ARGS__)
#define cli_warn(...)   cli_say(CLI_DONE, __VA_ARGS__)
/* Prints err->message; returns the exit status that fits err->status (FILE on writing: 1; else 2). */
int cli_error(const posenc_error *err);

/* Reads every option of the table that is given and has a type into the command's struct. CLI_DONE, or
   CLI_USAGE after printing an error. */
int cli_read(const cli_args *args, void *values);

/* CLI_DONE where --output is a page's name, - or absent; else CLI_USAGE after printing what it must be. */
int cli_check_page(const cli_args *args);

/* One option by a row that need not be in a table. 0 if it is absent, 1 if *to was set, -1 after printing an
   error. */
int cli_read_as(const cli_args *args, const cli_option *row, void *to);
int cli_integer(const cli_args *args, const char *option, int64_t low, int64_t high, int64_t *x);

/* A text of a stranger to standard output, followed by blanks up to so many bytes; what does not show itself
 * is ?. */
void cli_print_text(const char *text, int width);

/* Which word of "a|b|c" it is, or of a list with another separator; -1: none. */
int cli_options_word(const char *list, char separator, const char *word);

/* Has one of the signals that are caught arrived? `line` (NULL: nothing) then stands on standard error at
   once. The second one ends the tool. */
extern volatile sig_atomic_t cli_interrupted;
void                         cli_catch(int signal, const char *line);

/* Bytes of the UTF-8 character at text, and how many columns of a terminal it takes; and of a whole text. */
size_t cli_columns_next(const char *text, int *columns);
int    cli_columns_of(const char *text, size_t length);

int cli_is_terminal(int fd); /* a terminal where escape sequences make sense */
int cli_colour(int fd);      /* a terminal, NO_COLOR empty, TERM not dumb */
int cli_width(void);         /* characters of a line: COLUMNS, or the terminal's, or 80 */

/* ---------------------------------------------------------------- the frame ----------------- */

/* From here on main.c, options.c, cli.c and pages.c are among themselves: who parses, who prints pages. */

/* What getopt found, in the order of the call. */
typedef struct cli_given {
    const cli_option *option;
    const char       *value;
} cli_given;

struct cli_args {
    const cli_command *command;
    char             **words; /* positional arguments */
    int                count;
    cli_given         *given;
    int                given_count;
    int                help, version; /* --help and --version were among them */
};

/* The options that every command has, ended like a command's own table. */
extern const cli_option cli_common_options[];

/* The commands of commands.def, then NULL. */
extern const cli_command *const cli_commands[];

/* Reads argv[1 ..] (argv[0] is the command's name) into args, which holds pointers into argv and one block to
   free(args->given). CLI_DONE, or an exit status after printing what is wrong. */
int cli_options_parse(cli_args *args, const cli_command *command, int argc, char **argv);

/* The command of that name, or NULL. */
const cli_command *cli_pages_find(const char *name);

/* Says that no command has this name, and which may be meant. The exit status. */
int cli_pages_unknown(const char *word);

/* The candidate nearest to a misspelt word, or NULL if none is near (more than about a third of it wrong). */
const char *cli_options_nearest(const char *word, const char *const *candidates, int count);

/* Prints the words of text[0 .. length-1] and a line end. The cursor stands in column `at`; a word that would
   pass `width` starts a new line, indented. */
void cli_wrap(const char *text, size_t length, int at, int indent, int width);

/* Help of one command, or with NULL or a nameless one of the tool, to standard output. */
void cli_pages_help(const cli_command *command);
void cli_pages_version(void);

/* Runs the command that the words ask for; the tool's whole life. An exit status; standard output is closed.
 */
int cli_start(int argc, char **argv);

/* The handler of a signal that ends the tool: removes the temporary files, and the signal does what it does.
 */
void cli_leave(int signal);

/* Keeps the words of the whole call for cli_call(). 0, or -1 without memory. */
int cli_remember_call(int argc, char **argv);
/* Closes standard output and says so if what was written there did not arrive. */
int cli_finish(int status);
/* Writes out what is printed so far, and remembers why that failed. */
void cli_flush(void);

#endif

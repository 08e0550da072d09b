/* SPDX-License-Identifier: MIT */
/*
 * options.h: the frame of the tool, seen from inside: who parses, who prints pages
 *
 * Commands include cli.h alone; this header joins main.c, options.c, ui.c and pages.c.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "cli.h"

#include <stddef.h>

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

/* The commands of commands.def, then NULL; and those that print pages about them (help, completion). */
extern const cli_command *const cli_commands[];
extern const cli_command *const cli_page_commands[];

/* Reads argv[1 ..] (argv[0] is the command's name) into args, which holds pointers into argv and one block to
   free(args->given). CLI_DONE, or an exit status after printing what is wrong. */
int cli_parse(cli_args *args, const cli_command *command, int argc, char **argv);

/* The command of that name in a list, or NULL. */
const cli_command *cli_find_command(const cli_command *const list[], const char *name);

/* Says that no command has this name, and which may be meant. The exit status. */
int cli_unknown_command(const char *word);

/* The candidate nearest to a misspelt word, or NULL if none is near (more than about a third of it wrong). */
const char *cli_nearest(const char *word, const char *const *candidates, int count);

/* Prints the words of text[0 .. length-1] and a line end. The cursor stands in column `at`; a word that would
   pass `width` starts a new line, indented. */
void cli_wrap(const char *text, size_t length, int at, int indent, int width);

/* Help of one command, or with NULL or a nameless one of the tool, to standard output. */
void cli_print_help(const cli_command *command);

/* Keeps the words of the whole call for cli_call(). 0, or -1 without memory. */
int cli_remember_call(int argc, char **argv);
/* Closes standard output and says so if what was written there did not arrive. */
int cli_finish(int status);

#endif

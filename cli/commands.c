/* SPDX-License-Identifier: MIT */
/* commands.c: the table of commands, made from commands.def, and who is meant by a name */
#include "options.h"

#include <string.h>

#define COMMAND(name) extern const cli_command cli_##name;
#include "commands.def"
#undef COMMAND

#define COMMAND(name) &cli_##name,
const cli_command *const cli_commands[] = {
#include "commands.def"
    NULL,
};
#undef COMMAND

const cli_command *cli_find_command(const cli_command *const list[], const char *name)
{
    for (; *list; list++)
        if (!strcmp((*list)->name, name))
            return *list;
    return NULL;
}

int cli_unknown_command(const char *word)
{
    const char *names[sizeof cli_commands / sizeof *cli_commands];
    int         count = 0;
    for (; cli_commands[count]; count++)
        names[count] = cli_commands[count]->name;
    const char *near = cli_nearest(word, names, count);
    return near
               ? cli_usage("there is no command \"%s\" (did you mean \"%s\"?); try posenc --help", word, near)
               : cli_usage("there is no command \"%s\"; try posenc --help", word);
}

/* SPDX-License-Identifier: MIT */
/*
 * completion.c: completion for bash, from the tables of options and the registry of encodings
 *
 * The build calls `posenc completion bash` and installs what it prints.
 */
#include "cli/frame/cli.h"

#include <string.h>

static void print_option_words(const cli_option *row)
{
    for (; row && row->name; row++)
        printf(" --%s", row->name);
}

static void print_bash(void)
{
    puts("# bash completion for posenc; printed by `posenc completion bash`");
    puts("_posenc()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} words=\n    COMPREPLY=()");
    puts("    if [ \"$COMP_CWORD\" = 1 ]; then");
    printf("        words=\"--help --version");
    for (int i = 0; cli_commands[i]; i++)
        printf(" %s", cli_commands[i]->name);
    puts("\"\n    else\n        case $word in\n        -*) case ${COMP_WORDS[1]} in");
    for (int i = 0; cli_commands[i]; i++) {
        printf("            %s) words=\"", cli_commands[i]->name);
        print_option_words(cli_commands[i]->options);
        print_option_words(cli_common_options);
        puts("\" ;;");
    }
    printf("            esac ;;\n        *) words=\"");
    for (int i = 0; i < posenc_encoding_count(); i++)
        printf("%s%s", i ? " " : "", posenc_encoding_info_at(i)->name);
    puts("\" ;;\n        esac\n    fi");
    puts("    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}");
    puts("complete -o default -F _posenc posenc");
}

static int run_completion(const cli_args *args)
{
    const char *shell = cli_at(args, 0);
    if (!shell || strcmp(shell, "bash") != 0 || args->count > 1)
        return cli_usage("completion: the shell is \"%s\"; it must be bash: posenc completion bash",
                         shell ? shell : "");
    print_bash();
    return CLI_DONE;
}

const cli_command cli_completion = {
    .name     = "completion",
    .summary  = "print the completion for a shell",
    .synopsis = "bash",
    .details  = "For this session: source <(posenc completion bash)",
    .run      = run_completion,
};

/* SPDX-License-Identifier: MIT */
/*
 * start.c: which command was meant, and running it
 *
 * The commands are the rows of commands.def, each in its own file cmd_<name>.c with a table of its options.
 * This file finds the command (pages.c), lets options.c read the rest and runs it. The last three, `help`,
 * `version` (pages.c) and `completion` (completion.c), print what the tables say: a man page and a shell
 * completion that cannot fall behind.
 */
#include "cli/frame/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_args args;
    int      status = cli_options_parse(&args, command, argc, argv);
    if (status == CLI_DONE && args.help)
        cli_pages_help(command);
    else if (status == CLI_DONE && args.version)
        cli_pages_version();
    else if (status == CLI_DONE)
        status = command->run(&args);
    free(args.given);
    return status;
}

static int refuse_options(const cli_args *args)
{
    return cli_usage("the command comes first: posenc COMMAND [OPTION]...; try posenc --help");
}

/* A run on another instruction set than the one asked for would be worse than none. */
static int check_isa(void)
{
    const char *wanted = getenv("POSENC_ISA");
    char        list[80];
    size_t      used = 0;
    for (int i = 0; posenc_isa_at(i) && used < sizeof list; i++) {
        if (!wanted || !*wanted || !strcmp(wanted, posenc_isa_at(i)))
            return CLI_DONE;
        used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", posenc_isa_at(i));
    }
    return cli_usage("POSENC_ISA is \"%s\", which this processor cannot run; it must be one of: %s", wanted,
                     list);
}

static int run(int argc, char **argv)
{
    static const cli_command tool = {.name = "", .summary = "", .run = refuse_options};
    if (check_isa())
        return CLI_USAGE;
    if (argc < 2)
        return cli_usage("a command is missing; try posenc --help");
    if (argv[1][0] == '-')
        return run_command(&tool, argc, argv);
    const cli_command *command = cli_pages_find(argv[1]);
    return command ? run_command(command, argc - 1, argv + 1) : cli_pages_unknown(argv[1]);
}

/* Where a parent has closed one of the three, the next file that is opened would take its number, and
   messages would go there: something takes it that can be neither read nor written as that stream is. */
static int fill_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return -1;
    return 0;
}

/* Whoever ends a command before its time finds no half-written file. */
static void catch_signals(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction       before; /* nohup: what is ignored stays ignored */
        const struct sigaction action = {.sa_handler = cli_leave, .sa_flags = SA_RESTART};
        if (!sigaction(ends[i], NULL, &before) && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of writing, with a sentence */
}

int cli_start(int argc, char **argv)
{
    /* A parent may have told us to ignore it; `posenc list | head -1` shall end quietly all the same. */
    signal(SIGPIPE, SIG_DFL);
    catch_signals();
    if (fill_streams())
        return CLI_FAILED;
    if (cli_remember_call(argc, argv))
        return cli_failed("not enough memory for the arguments");
    return cli_finish(run(argc, argv));
}

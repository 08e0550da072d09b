/* SPDX-License-Identifier: MIT */
/*
 * main.c: posenc, the command-line tool
 *
 *     posenc COMMAND [OPTION]... [ARGUMENT]...
 *
 * Exit status: 0 done; 1 it failed or found a difference; 2 arguments or input are unusable; 130 interrupted.
 */
#include "cli/frame/cli.h"

int main(int argc, char **argv)
{
    return cli_start(argc, argv);
}

/* SPDX-License-Identifier: MIT */
/*
 * judge.h: is a number that a tutorial prints the one that a command gives? Does what it claims hold?
 *
 * A check is a member of "numbers" or "measured" of a row's run: where in the output its numbers stand, and
 * what they must be. docs/tutorials/README.md has the words.
 */
#ifndef CLI_TUTORIAL_JUDGE_H
#define CLI_TUTORIAL_JUDGE_H

#include <jansson.h>

/* Of a number: as printed, or the tutorial's is wrong and the right one is measured. Of a measurement: holds.
   FAILS: neither, and MISSING: no such number in the output. FAULTY: the table is. */
typedef enum cli_finding {
    CLI_AS_PRINTED,
    CLI_DIFFERS,
    CLI_HOLDS,
    CLI_FAILS,
    CLI_MISSING,
    CLI_FAULTY
} cli_finding;

enum { CLI_NUMBER = 40 };
typedef struct cli_verdict {
    cli_finding finding;
    char        printed[CLI_NUMBER], right[CLI_NUMBER]; /* of a number; right: "" where the printed one is */
    char        found[CLI_NUMBER];                      /* as the output has it */
} cli_verdict;

/* How many verdicts a check has: one for each number, or one. */
int cli_judge_count(const json_t *check);
/* The verdict on number `index` of a check, in what the command printed. */
cli_verdict cli_judge(const json_t *check, int index, const char *output);

#endif

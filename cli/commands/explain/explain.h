/* SPDX-License-Identifier: MIT */
/*
 * explain.h: what `posenc explain` was asked for, and the parts that answer
 *
 * cmd_explain.c reads the options and calls one part: model.c for a model's file, words.c for a sentence, and
 * else one per place of the encoding. Each asks the library for all its numbers first and writes them on
 * a sheet (sheet.h) afterwards, so that a call that fails has printed nothing.
 */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "cli/commands/explain/sheet.h"
#include "cli/commands/subject.h"

typedef struct cli_explanation {
    const cli_args *args;
    cli_subject     subject; /* its encoding, made; sizes and parameters are each part's */
    cli_sheet       sheet;
    int64_t         dim, heads, length; /* 0: not given */
    int64_t         step, seed, digits;
    double          position, key_position;
    cli_numbers     vector, key, theta; /* count 0: not given */
} cli_explanation;

/* All leave what is wrong in x->subject.p. */

/* The formula of a part, what its letters mean, and the settings that its numbers are made with. */
void cli_explain_formula(cli_explanation *x, const posenc_encoding_info *info);

/* Every formula of the rotation of --config with its numbers in place. */
void cli_explain_model(cli_explanation *x);

#endif

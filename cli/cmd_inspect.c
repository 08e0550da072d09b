/* SPDX-License-Identifier: MIT */
/*
 * cmd_inspect.c: posenc inspect: what a model's own file says about its positions
 *
 * posenc_model_read finds the encoding of every layer, each number with the rule that gave it; this command
 * prints that, for people with wavelengths against the context and the errors that rounded angles would make,
 * or with --json as facts.
 */
#include "inspect.h"

#include <stdio.h>
#include <string.h>

static const cli_option options[] = {
    {0, "layer", "N", "the layers that are like layer N alone"},
    {0, "json", NULL, "print every number as JSON, for programs"},
    {0, NULL, NULL, NULL},
};

/* The group that --layer names, or -1 for all. */
static int choose(const cli_args *args, const posenc_model *model, int *group)
{
    const posenc_model_info *info = posenc_model_describe(model);
    int64_t                  layer;
    *group          = -1;
    const int given = cli_integer(args, "layer", 0, info->layers > 0 ? info->layers - 1 : INT64_MAX, &layer);
    if (given <= 0)
        return given < 0 ? CLI_USAGE : CLI_DONE;
    *group = posenc_model_group_of(model, layer);
    if (*group < 0)
        return cli_usage("inspect: --layer: layer %lld has no attention, so no positions", (long long)layer);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    posenc_error  err;
    posenc_model *model;
    int           group;
    if (cli_count(args) != 1)
        return cli_usage("inspect: it takes one file: config.json, .gguf or .safetensors (- is standard "
                         "input); %d are given",
                         cli_count(args));
    if (posenc_model_read(&model, cli_at(args, 0), &err))
        return err.status == POSENC_MEMORY ? cli_failed("%s", err.message) : cli_usage("%s", err.message);
    int status = choose(args, model, &group);
    if (status == CLI_DONE)
        status = cli_value(args, "json") ? cli_inspect_json(model, group) : cli_inspect_text(model, group);
    posenc_model_free(model);
    return status;
}

const cli_command cli_inspect = {
    .name     = "inspect",
    .summary  = "say which encoding a model was trained with, from its own file",
    .synopsis = "FILE [--layer N] [--json]",
    .details  = "FILE is a config.json (Hugging Face, before and since transformers 5), a .gguf, or a "
                ".safetensors with its config.json beside it. What the file leaves out comes from the "
                "table of model types, by the rules of transformers 5.16; what has no clear meaning is "
                "refused in a sentence.\n\n"
                "For each kind of layer: the encoding, its numbers with the rule that gave each, the SPEC "
                "for the other commands; for a rotation every frequency and wavelength, how many pairs "
                "never complete a turn within the context, where the magnitude acts, and the largest error "
                "that angles in float32 and bf16 would make at the model's context. Then the warnings: "
                "what in this file engines disagree about.\n\n"
                "--json prints one object: model_type, encoding, groups of layers that are alike, context, "
                "warnings. Its names and numbers are those of the file's meaning in float64, never rounded "
                "to float32.",
    .options  = options,
    .run      = run,
};

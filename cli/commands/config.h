/* SPDX-License-Identifier: MIT */
/*
 * config.h: the encoding of a model, for commands that take --config F
 *
 * A model's layers need not be alike: the groups of posenc_model say which are. Where there are several that
 * a command could mean, --layer or --tower must choose one, and the refusal lists them.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "cli/commands/calc.h"

// clang-format off
#define CLI_CONFIG_FILE                                                                             \
    {0, "config", "F", "use the encoding of a model, from its config.json, .gguf or .safetensors",  \
     .words = ".json|.gguf|.safetensors"}
#define CLI_CONFIG_TOWER                                                                            \
    {0, "tower", "NAME", "which part of --config, of a model that has several, such as encoder or decoder"}
#define CLI_CONFIG_OPTIONS                                                                          \
    CLI_CONFIG_FILE, CLI_CONFIG_TOWER,                                                              \
    {0, "layer", "N", "which layer of --config; needed if its layers differ"}
// clang-format on

/* What a command does with a group. */
typedef enum cli_config_use {
    CLI_CONFIG_ROTATE, /* the rotation */
    CLI_CONFIG_ATTEND, /* whatever acts in attention */
    CLI_CONFIG_ENCODE  /* what acts at the input */
} cli_config_use;

enum { CLI_LAYERS_TEXT = 120 };

typedef struct cli_config {
    const char               *path;
    posenc_model             *model;
    const posenc_model       *part; /* of it, which --tower named; or all of it */
    const posenc_model_info  *info;
    const posenc_model_group *group; /* the one that was chosen; NULL without --config */
    int                       index; /* its number */
    int64_t                   layer; /* of --layer; -1 without */
} cli_config;

/* Reads --config and chooses by --layer and --tower; nothing to do without them. An exit status after
   printing what is wrong. The model is the caller's to free in either case. */
int cli_config_read(cli_config *c, const cli_args *args, cli_config_use use);
/* The end of a command: cli_calc_end, and the model is freed. */
int cli_config_end(cli_config *c, pe_calc *p);
/* The part of a model that --tower names: itself for one of its stacks, and without a name; NULL after
   printing what there is. */
const posenc_model *cli_config_part(const posenc_model *model, const char *tower);
/* What a model does besides, in its attention or at its input, is not left out in silence. */
int cli_config_refuse_others(const cli_config *c);
/* What is peculiar about the file, for the end of a call that did its work. */
void cli_config_warn(const cli_config *c);

/* "all 32 layers", "layer 5", "layers 0-4, 6-10, ...": as many runs of neighbours as fit. */
const char *cli_config_layers(char *text, size_t size, const posenc_model_group *group);

/* A fact as a number; NAN where there is none. */
double cli_config_fact(const posenc_model_group *group, const char *name);

/* Over how many positions the keys of a query lie: the sliding window of the group's layers, their longest,
   where all have one that is shorter than the context; else the context (0 if nobody knows). */
int64_t cli_config_reach(const posenc_model_group *group, int64_t context);

/* The frequencies of pairs in a sequence as long as the context: where that is longer than the original
   length, those of longrope's long factors. */
const posenc_fact *cli_config_frequencies(const posenc_model_group *group, int64_t context);
/* How many pairs never complete a rotation within so many positions; *still of them are not rotated at all.
 */
int64_t cli_config_unfinished(const posenc_fact *frequencies, int64_t reach, int64_t *still);

/* The model's numbers in the place of parameters that are as they are initialised: those that its file holds,
   and of a .safetensors what training made. Others that training makes are refused. Nothing without --config.
 */
void cli_config_params(const cli_config *c, pe_calc *p);
/* The same; attention needs learned sinks too. */
void cli_config_params_of_attention(const cli_config *c, pe_calc *p);
/* Refuses q, k and v whose heads are not as wide as the model's, unless --set says what is to be done. */
void cli_config_check_width(const cli_config *c, pe_calc *p, const cli_args *args, const char *name);

#endif

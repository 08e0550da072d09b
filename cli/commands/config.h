/* SPDX-License-Identifier: MIT */
/*
 * config.h: the rotation of a model, for commands that take --config F
 *
 * A model's layers need not be alike: the groups of posenc_model say which are. Where there are several
 * rotations, --layer must choose one, and the refusal lists them.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "cli/commands/calc.h"

#define CLI_CONFIG_OPTIONS                                                                         \
    {0, "config", "F", "use the rotation of a model, from its config.json, .gguf or .safetensors", \
     .words = ".json|.gguf|.safetensors"},                                                         \
    {                                                                                              \
        0, "layer", "N", "which layer of --config; needed if its layers are rotated differently"   \
    }

enum { CLI_LAYERS_TEXT = 120 };

typedef struct cli_config {
    const char               *path;
    posenc_model             *model;
    const posenc_model_info  *info;
    const posenc_model_group *group; /* the rotary one that was chosen; NULL without --config */
} cli_config;

/* Reads --config and chooses by --layer; nothing to do without them. An exit status after printing what is
   wrong. The model is the caller's to free in either case. */
int cli_config_read(cli_config *c, const cli_args *args);
/* What is peculiar about the file, for the end of a call that did its work. */
void cli_config_warn(const cli_config *c);

/* "all 32 layers", "layer 5", "layers 0-4, 6-10, ...": as many runs of neighbours as fit. */
const char *cli_config_layers(char *text, size_t size, const posenc_model_group *group);

/* A fact as a number; NAN where there is none. */
double cli_config_fact(const posenc_model_group *group, const char *name);

/* The file's numbers in the place of parameters that are as they are initialised. */
void cli_config_params(const cli_config *c, pe_calc *p);

#endif

/* SPDX-License-Identifier: MIT */
/* inspect.h: the two forms in which `posenc inspect` prints a model. group -1 is all of them. */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "cli.h"

#include <posenc/files.h>

int cli_inspect_json(const posenc_model *model, int group);
int cli_inspect_text(const posenc_model *model, int group);

#endif

/* SPDX-License-Identifier: MIT */
/* model_types.c: the rows of model_types.def as an array. */
#include "files/model_types.h"

#include <stddef.h>
#include <string.h>

#define MODEL(type, ...) {.name = type, __VA_ARGS__},
#define COMPOSITE(outer, inner)
static const pe_model_type types[] = {
#include "files/model_types.def"
};
#undef MODEL
#undef COMPOSITE

#define MODEL(type, ...)
#define COMPOSITE(outer, inner) {outer, inner},
static const char *const composites[][2] = {
#include "files/model_types.def"
};

const pe_model_type *pe_model_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

const char *pe_model_type_inside(const char *name)
{
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++)
        if (!strcmp(composites[i][0], name))
            return composites[i][1];
    return NULL;
}

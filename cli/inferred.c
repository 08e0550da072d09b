/* SPDX-License-Identifier: MIT */
/* Settings read off parameter arrays: contract in inferred.h. */
#include "inferred.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is "name=" somewhere in the text, as a word of its own? */
static int is_said(const char *text, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
        if (at[n] == '=' && (at == text || strchr(" ,:[.", at[-1])))
            return 1;
    return 0;
}

static int is_setting(const posenc_encoding_info *info, const char *name, const char *type)
{
    for (int i = 0; i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name) && !strcmp(info->settings[i].type, type))
            return 1;
    return 0;
}

/* Which part of e a parameter belongs to. */
static const posenc_encoding_info *owner_of(const posenc_encoding *e, const posenc_param_info *param)
{
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        for (int i = 0; part && i < part->param_count; i++)
            if (param == &part->params[i])
                return part;
    }
    return NULL;
}

static int is_free(const posenc_encoding_info *info, const char *name, const char *type, const char *spec,
                   const char *given)
{
    return is_setting(info, name, type) && !is_said(spec, name) && !is_said(given, name);
}

/* An axis "grid1*grid2" is the product of a list of two; how it divides an array cannot tell, so it is one
   column. */
static void read_column(FILE *to, const posenc_encoding_info *info, const char *axis, int64_t size,
                        const char *spec, const char *given)
{
    char name[64], other[64];
    int  end = 0;
    if (sscanf(axis, "%63[a-z_]1*%63[a-z_]2%n", name, other, &end) == 2 && end && !axis[end] &&
        !strcmp(name, other) && is_free(info, name, "list", spec, given))
        fprintf(to, " %s.%s=%lldx1", info->name, name, (long long)size);
}

/* Every axis of the parameter that is a setting nobody has given. Shapes with axes that a flag calls for are
   left. */
static void read_axes(FILE *to, const posenc_encoding_info *info, const posenc_param_info *param,
                      const posenc_tensor *array, const char *spec, const char *given)
{
    int32_t axes = *param->shape ? 1 : 0;
    for (const char *at = param->shape; *at; at++)
        axes += *at == ',';
    if (array->ndim != axes || strstr(param->shape, " if "))
        return;
    const char *at = param->shape;
    for (int32_t axis = 0; axis < axes; axis++) {
        char         name[64];
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (is_free(info, name, "integer", spec, given))
            fprintf(to, " %s.%s=%lld", info->name, name, (long long)array->shape[axis]);
        read_column(to, info, name, array->shape[axis], spec, given);
        at += n + (at[n] == ',');
    }
}

/* A parameter that a flag of its own name calls for: whoever brings the array has raised the flag. */
static void raise_flags(FILE *to, const posenc_encoding_info *info, int alone, const char *spec,
                        const char *given, cli_param_finder *find, void *context)
{
    for (int i = 0; i < info->param_count; i++) {
        const char *plain = info->params[i].name;
        char        name[128];
        if (!is_free(info, plain, "flag", spec, given))
            continue;
        snprintf(name, sizeof name, "%s%s%s", alone ? "" : info->name, alone ? "" : ".", plain);
        if (find(context, name))
            fprintf(to, " %s.%s=yes", info->name, plain);
    }
}

char *cli_inferred_settings(const posenc_encoding *e, const char *spec, const char *given,
                            cli_param_finder *find, void *context)
{
    char  *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fputs(given, to);
    for (int i = 0; i < posenc_param_count(e); i++) {
        const posenc_param_info    *param = posenc_param_describe(e, i);
        const posenc_encoding_info *info  = owner_of(e, param);
        const posenc_tensor        *array = find(context, posenc_param_name(e, i));
        if (info && array)
            read_axes(to, info, param, array, spec, given);
    }
    int parts = 0;
    for (int place = 0; place < POSENC_PLACES; place++)
        parts += posenc_encoding_part(e, (posenc_place)place) != NULL;
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part)
            raise_flags(to, part, parts == 1, spec, given, find, context);
    }
    const int failed = ferror(to);
    if (!fclose(to) && !failed)
        return text;
    free(text);
    return NULL;
}

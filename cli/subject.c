/* SPDX-License-Identifier: MIT */
/* What a picture shows: contract in subject.h. */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- an encoding --------------- */

int cli_subject_again(cli_subject *s, const cli_args *args, const char *spec, const char *settings)
{
    posenc_error err;
    char        *said = cli_settings(args), *all = said ? malloc(strlen(settings) + strlen(said) + 2) : NULL;
    int          status = CLI_DONE;
    posenc_encoding_free(s->e);
    s->e = NULL;
    if (!all)
        status = cli_failed("plot: there is no memory for the settings");
    else {
        sprintf(all, "%s%s%s", settings, *settings && *said ? " " : "", said);
        status = posenc_encoding_create(&s->e, spec, all, &err) ? cli_error(&err) : CLI_DONE;
    }
    free(said);
    free(all);
    return status;
}

int cli_subject_encoding(cli_subject *s, const cli_args *args, const char *spec)
{
    return cli_subject_again(s, args, spec, "");
}

int cli_subject_params(cli_subject *s, const posenc_dims *dims, int64_t seed)
{
    int trainable = 0;
    s->file       = (cli_inputs){.path = "plot"};
    if (cli_params_make(&s->params, &s->file, s->e, dims, POSENC_F64, seed))
        return s->file.status;
    const int status = cli_config_params(&s->config, &s->params, s->e);
    for (int i = 0; i < s->params.count; i++)
        trainable |= s->params.is_initial[i] && posenc_param_trainable(s->e, i);
    if (status)
        return status;
    if (trainable)
        snprintf(s->origin, sizeof s->origin, "untrained: initial parameters, seed %lld", (long long)seed);
    return CLI_DONE;
}

/* Follows its present length, and has not been told which that is? */
static int follows_length(const char *spec)
{
    return (strstr(spec, "schedule=dynamic") || strstr(spec, "schedule=longrope")) &&
           !strstr(spec, ",length=") && !strstr(spec, ":length=") && !strstr(spec, "[length=");
}

int cli_subject_at_length(cli_subject *s, int64_t length)
{
    posenc_error     err;
    char             setting[80];
    posenc_encoding *fixed = NULL;
    if (!follows_length(posenc_encoding_spec(s->e)))
        return CLI_DONE;
    snprintf(setting, sizeof setting, "%s.length=%lld", posenc_encoding_part(s->e, POSENC_ROTARY)->name,
             (long long)length);
    if (posenc_encoding_create(&fixed, posenc_encoding_spec(s->e), setting, &err))
        return cli_error(&err);
    posenc_encoding_free(s->e);
    s->e = fixed;
    return CLI_DONE;
}

/* ---------------------------------------------------------------- a model ------------------- */

/* "FOLDER/FILE", of a layer where there is a choice: model files are often named alike. */
static void name_model(cli_subject *s, const char *layer)
{
    const char *path = s->config.path, *from = path + strlen(path);
    for (int slashes = 0; from > path && slashes < 2; from--)
        slashes += from[-1] == '/';
    from += *from == '/';
    snprintf(s->name, sizeof s->name, "%.56s%s%s", from, layer ? ", layer " : "", layer ? layer : "");
}

int cli_subject_config(cli_subject *s, const cli_args *args)
{
    int status = cli_config_read(&s->config, args);
    if (!status)
        status = cli_subject_encoding(s, args, s->config.group->spec);
    if (!status)
        name_model(s, cli_value(args, "layer"));
    return status;
}

/* ---------------------------------------------------------------- a table ------------------- */

/* The array of that name, or the only one where there is no name. */
static int find_table(cli_subject *s, const char *name, posenc_tensor *table)
{
    const posenc_arrays *arrays     = &s->file.file;
    char                 known[160] = "";
    for (int i = 0; i < arrays->count; i++)
        if (name ? !strcmp(arrays->items[i].name, name) : arrays->count == 1) {
            const char *const it[] = {arrays->items[i].name, NULL};
            *table                 = cli_inputs_find(&s->file, it);
            snprintf(s->name, sizeof s->name, "%s", it[0]);
            return s->file.status;
        }
    for (int i = 0; i < arrays->count && strlen(known) < 100; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%.40s", i ? ", " : "",
                 arrays->items[i].name);
    if (!name)
        return cli_inputs_fail(&s->file, "it has %d arrays; write which one, --table F:NAME: %s",
                               arrays->count, known);
    return cli_inputs_fail(&s->file, "it has no array %.60s; it has: %s", name, known);
}

/* The encoding whose parameter the table is. */
static int become_learned(cli_subject *s, const posenc_tensor *table)
{
    posenc_error  err;
    char          settings[80], shape[CLI_SHAPE_TEXT];
    posenc_tensor two = cli_with_axes(*table, 2);
    if (two.ndim != 2 || !cli_is_float(two.dtype) || two.shape[0] < 2 || two.shape[1] < 1)
        return cli_inputs_fail(&s->file,
                               "%s has shape %s; a table of positions is [rows, width], real numbers",
                               s->name, cli_shape_text(shape, table->ndim, table->shape));
    s->rows           = two.shape[0];
    s->width          = two.shape[1];
    s->params.tensors = calloc(2, sizeof *s->params.tensors);
    if (!s->params.tensors)
        return cli_failed("plot: there is no memory for the table");
    s->params.tensors[0] = cli_inputs_convert(&s->file, POSENC_F64, &two);
    snprintf(settings, sizeof settings, "rows=%lld dim=%lld", (long long)s->rows, (long long)s->width);
    if (!s->file.status && posenc_encoding_create(&s->e, "learned", settings, &err))
        return cli_error(&err);
    return s->file.status;
}

/* A long text's end, which says more than its beginning. */
static const char *tail(const char *text, const char **dots)
{
    enum { MOST = 32 };
    const size_t n = strlen(text);
    *dots          = n > MOST ? "..." : "";
    return n > MOST ? text + n - MOST : text;
}

/* "NAME of FILE", the file without its folders. */
static void name_table(cli_subject *s, const char *path)
{
    char        array[CLI_SUBJECT_TEXT];
    const char *slash = strrchr(path, '/'), *before[2];
    const char *file  = tail(slash ? slash + 1 : path, &before[1]);
    snprintf(array, sizeof array, "%s", s->name);
    const char *end = tail(array, &before[0]);
    snprintf(s->name, sizeof s->name, "%s%.32s of %s%.32s", before[0], end, before[1], file);
}

int cli_subject_table(cli_subject *s, const char *source)
{
    posenc_tensor table = {0};
    char         *path  = strdup(source);
    char         *colon = path ? strrchr(path, ':') : NULL;
    int           status;
    if (!path)
        return cli_failed("plot: there is no memory for the name of a file");
    if (colon)
        *colon = 0;
    status = cli_inputs_read(&s->file, path);
    if (!status)
        status = find_table(s, colon ? colon + 1 : NULL, &table);
    if (!status)
        status = become_learned(s, &table);
    name_table(s, path);
    free(path);
    s->file.path = source; /* `path` is gone; what is still to be said names what the caller wrote */
    return status;
}

void cli_subject_free(cli_subject *s)
{
    cli_params_free(&s->params);
    posenc_encoding_free(s->e);
    cli_inputs_free(&s->file);
    cli_config_free(&s->config);
}

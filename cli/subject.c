/* SPDX-License-Identifier: MIT */
/* What a picture shows: contract in subject.h. */
#include "subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- an encoding --------------- */

int cli_subject_encoding(cli_subject *s, const cli_args *args, const char *spec, const char *settings)
{
    const char *said = cli_settings(&s->p, args);
    cli_encoding(&s->p, spec, cli_text(&s->p, "%s%s%s", settings, *settings && *said ? " " : "", said));
    return cli_problem_status(&s->p);
}

int cli_subject_params(cli_subject *s, const posenc_dims *dims, int64_t seed)
{
    int trainable = 0;
    s->p.dims     = *dims;
    s->p.seed     = seed;
    cli_params(&s->p, POSENC_DTYPE_F64);
    for (int i = 0; i < s->p.count; i++)
        trainable |= s->p.is_initial[i] && posenc_param_trainable(s->p.e, i);
    if (!cli_stopped(&s->p))
        cli_said(&s->p, cli_config_params(&s->config, &s->p));
    if (trainable)
        snprintf(s->origin, sizeof s->origin, "untrained: initial parameters, seed %lld", (long long)seed);
    return cli_problem_status(&s->p);
}

/* Follows its present length, and has not been told which that is? */
static int follows_length(const char *spec)
{
    return (strstr(spec, "schedule=dynamic") || strstr(spec, "schedule=longrope")) &&
           !strstr(spec, ",length=") && !strstr(spec, ":length=") && !strstr(spec, "[length=");
}

int cli_subject_at_length(cli_subject *s, int64_t length)
{
    cli_problem *p = &s->p;
    if (!follows_length(posenc_encoding_spec(p->e)))
        return CLI_DONE;
    const char *spec = cli_text(p, "%s", posenc_encoding_spec(p->e));
    cli_encoding(p, spec,
                 cli_text(p, "%s.length=%lld", posenc_encoding_part(p->e, POSENC_PLACE_ROTARY)->name,
                          (long long)length));
    return cli_problem_status(p);
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
        status = cli_subject_encoding(s, args, s->config.group->spec, "");
    if (!status)
        name_model(s, cli_value(args, "layer"));
    return status;
}

/* ---------------------------------------------------------------- a table ------------------- */

/* The array of that name, or the only one where there is no name. */
static int find_table(cli_subject *s, const char *name, posenc_tensor *table)
{
    const posenc_arrays *arrays     = &s->p.file;
    char                 known[160] = "";
    for (int i = 0; i < arrays->count; i++)
        if (name ? !strcmp(arrays->items[i].name, name) : arrays->count == 1) {
            const char *const it[] = {arrays->items[i].name, NULL};
            *table                 = cli_find(&s->p, it);
            snprintf(s->name, sizeof s->name, "%s", it[0]);
            return cli_problem_status(&s->p);
        }
    for (int i = 0; i < arrays->count && strlen(known) < 100; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%.40s", i ? ", " : "",
                 arrays->items[i].name);
    if (!name)
        cli_refuse(&s->p, "it has %d arrays; write which one, --table F:NAME: %s", arrays->count, known);
    else
        cli_refuse(&s->p, "it has no array %.60s; it has: %s", name, known);
    return cli_problem_status(&s->p);
}

/* The encoding whose parameter the table is. */
static int become_learned(cli_subject *s, const posenc_tensor *table)
{
    cli_problem        *p   = &s->p;
    const posenc_tensor two = cli_with_axes(*table, 2);
    if (two.ndim != 2 || !cli_is_float(two.dtype) || two.shape[0] < 2 || two.shape[1] < 1)
        cli_refuse(p, "%s has shape %s; a table of positions is [rows, width], real numbers", s->name,
                   cli_shape_text(p, table->ndim, table->shape));
    s->rows   = two.shape[0];
    s->width  = two.shape[1];
    p->params = cli_block(p, sizeof *p->params);
    if (p->params)
        p->params[0] = cli_convert(p, POSENC_DTYPE_F64, &two);
    cli_encoding(p, "learned", cli_text(p, "rows=%lld dim=%lld", (long long)s->rows, (long long)s->width));
    return cli_problem_status(p);
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
    const char   *colon = strrchr(source, ':'), *path = source;
    if (colon)
        path = cli_text(&s->p, "%.*s", (int)(colon - source), source);
    cli_problem_read(&s->p, path);
    int status = cli_problem_status(&s->p);
    if (!status)
        status = find_table(s, colon ? colon + 1 : NULL, &table);
    if (!status)
        status = become_learned(s, &table);
    name_table(s, path);
    s->p.path = source; /* what is still to be said names what the caller wrote */
    return status;
}

void cli_subject_free(cli_subject *s)
{
    cli_problem_end(&s->p);
    cli_config_free(&s->config);
}

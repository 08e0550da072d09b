/* SPDX-License-Identifier: MIT */
/* What a picture shows: contract in subject.h. */
#include "cli/commands/subject.h"

#include "plot/plot.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- an encoding --------------- */

int cli_subject_encoding(cli_subject *s, const cli_args *args, const char *spec, const char *settings)
{
    const char *said = cli_calc_settings(&s->p, args);
    pe_calc_encoding(&s->p, spec,
                     pe_calc_text(&s->p, "%s%s%s", settings, *settings && *said ? " " : "", said));
    return cli_calc_status(&s->p);
}

int cli_subject_params(cli_subject *s, const posenc_dims *dims, int64_t seed)
{
    int trainable = 0;
    s->p.dims     = *dims;
    s->p.is_shown = 1;
    s->p.seed     = seed;
    pe_calc_params(&s->p, POSENC_DTYPE_F64);
    for (int i = 0; i < s->p.count; i++)
        trainable |= s->p.is_initial[i] && posenc_param_trainable(s->p.e, i);
    cli_config_params(&s->config, &s->p);
    if (trainable)
        snprintf(s->origin, sizeof s->origin, "untrained: initial parameters, seed %lld", (long long)seed);
    return cli_calc_status(&s->p);
}

int *cli_subject_varied(cli_subject *s)
{
    pe_calc *p      = &s->p;
    int     *varied = pe_calc_block(p, (size_t)p->count * sizeof *varied + 1);
    for (int i = 0; varied && i < p->count; i++)
        varied[i] = p->is_initial[i] && posenc_param_trainable(p->e, i);
    return varied;
}

int cli_subject_vary(cli_subject *s, int64_t seed)
{
    char       names[CLI_SUBJECT_TEXT];
    const int *varied = cli_subject_varied(s);
    const int  count  = varied ? pe_picture_vary(s->p.e, s->p.params, varied, seed, names, sizeof names) : 0;
    if (count)
        snprintf(s->origin, sizeof s->origin,
                 "untrained, and N(0,1) added to %.40s, flat as initialised; seed %lld", names,
                 (long long)seed);
    return count;
}

/* ---------------------------------------------------------------- a model ------------------- */

int cli_subject_config(cli_subject *s, const cli_args *args)
{
    int status = cli_config_read(&s->config, args, CLI_CONFIG_ROTATE);
    if (!status)
        status = cli_subject_encoding(s, args, s->config.group->spec, "");
    if (status)
        return status;
    /* "FOLDER/FILE", of a layer where there is a choice: model files are often named alike */
    const char *path = s->config.path, *from = path + strlen(path), *layer = cli_value(args, "layer");
    for (int slashes = 0; from > path && slashes < 2; from--)
        slashes += from[-1] == '/';
    from += *from == '/';
    snprintf(s->name, sizeof s->name, "%.56s%s%s", from, layer ? ", layer " : "", layer ? layer : "");
    return CLI_DONE;
}

/* ---------------------------------------------------------------- a table ------------------- */

/* Is that the name, or what follows the last '/' of it? A file of runs puts a run's own name before. */
static int is_named(const char *full, const char *name)
{
    const size_t n = strlen(full), m = strlen(name);
    return n >= m && !strcmp(full + n - m, name) && (n == m || full[n - m - 1] == '/');
}

static int count_named(const posenc_arrays *arrays, const char *name)
{
    int count = 0;
    for (int i = 0; name && i < arrays->count; i++)
        count += is_named(arrays->items[i].name, name);
    return count;
}

/* The array of that name, or the only one where there is no name; no data after a refusal. */
static posenc_tensor find_table(cli_subject *s, const char *name)
{
    const posenc_arrays *arrays    = &s->p.file;
    const char          *known     = "";
    const int            is_single = count_named(arrays, name) == 1;
    for (int i = 0; i < arrays->count; i++) {
        const char *const it[] = {arrays->items[i].name, NULL};
        if (name ? !strcmp(it[0], name) || (is_single && is_named(it[0], name)) : arrays->count == 1) {
            snprintf(s->name, sizeof s->name, "%s", name ? name : it[0]);
            return pe_calc_find(&s->p, it);
        }
        if (strlen(known) < 100)
            known = pe_calc_text(&s->p, "%s%s%.40s", known, i ? ", " : "", it[0]);
    }
    if (!name)
        pe_calc_refuse(&s->p, "it has %d arrays; say which one with --table F:NAME: %s", arrays->count,
                       known);
    else
        pe_calc_refuse(&s->p, "it has no array %.60s; it has: %s", name, known);
    return (posenc_tensor){0};
}

/* The encoding whose parameter the table is. */
static void become_learned(cli_subject *s, const posenc_tensor *table)
{
    pe_calc            *p   = &s->p;
    const posenc_tensor two = pe_calc_with_axes(*table, 2);
    if (two.ndim != 2 || !pe_tensor_is_float(two.dtype) || two.shape[0] < 2 || two.shape[1] < 1)
        pe_calc_refuse(p,
                       "%s has the shape %s; a table of positions must be real numbers, [rows, width], of 2 "
                       "rows or more",
                       s->name, pe_calc_shape_text(p, table->ndim, table->shape));
    s->rows   = two.shape[0];
    s->width  = two.shape[1];
    p->params = pe_calc_block(p, sizeof *p->params);
    if (p->params)
        p->params[0] = pe_calc_convert(p, POSENC_DTYPE_F64, &two);
    pe_calc_encoding(p, "learned",
                     pe_calc_text(p, "rows=%lld dim=%lld", (long long)s->rows, (long long)s->width));
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
    if (!strcmp(path, "-"))
        snprintf(s->name, sizeof s->name, "a table");
    else
        snprintf(s->name, sizeof s->name, "%s%.32s of %s%.32s", before[0], end, before[1], file);
}

int cli_subject_table(cli_subject *s, const char *source)
{
    const char *colon = strrchr(source, ':'), *path = source;
    if (colon)
        path = pe_calc_text(&s->p, "%.*s", (int)(colon - source), source);
    pe_calc_read(&s->p, path);
    const posenc_tensor table =
        pe_calc_failed(&s->p) ? (posenc_tensor){0} : find_table(s, colon ? colon + 1 : NULL);
    if (!pe_calc_failed(&s->p))
        become_learned(s, &table);
    const int status = cli_calc_status(&s->p);
    name_table(s, path);
    s->p.path = source; /* what is still to be said names what the caller wrote */
    return status;
}

void cli_subject_free(cli_subject *s)
{
    cli_config_end(&s->config, &s->p);
}

/* SPDX-License-Identifier: MIT */
/* The rotation of a model: contract in config.h. */
#include "cli/commands/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- words --------------------- */

const char *cli_config_layers(char *text, size_t size, const posenc_model_group *group)
{
    enum { RANGE = 48 }; /* two numbers of 19 digits, and what stands between them */
    const int64_t *layers = group->layers, n = group->layer_count;
    if (group->is_all || !layers) {
        snprintf(text, size, n ? "all %lld layers" : "all layers", (long long)n);
        return text;
    }
    size_t used = (size_t)snprintf(text, size, n ? n == 1 ? "layer" : "layers" : "no layers");
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = layers[i];
        if (used + RANGE > size) {
            snprintf(text + used, size - used, ", ...");
            return text;
        }
        used += (size_t)snprintf(text + used, size - used, "%s %lld", i ? "," : "", (long long)first);
        while (i + 1 < n && layers[i + 1] == layers[i] + 1)
            i++;
        if (layers[i] > first)
            used += (size_t)snprintf(text + used, size - used, "-%lld", (long long)layers[i]);
    }
    return text;
}

double cli_config_fact(const posenc_model_group *group, const char *name)
{
    const posenc_fact *f = posenc_model_fact(group, name);
    return !f || f->kind == POSENC_FACT_NONE ? NAN
           : f->kind == POSENC_FACT_REAL     ? f->real
                                             : (double)f->integer;
}

static int is_rotary(const posenc_model_group *group)
{
    const posenc_encoding_info *info = posenc_encoding_find(group->encoding);
    return !group->is_input && info && info->place == POSENC_PLACE_ROTARY;
}

/* ---------------------------------------------------------------- the choice ---------------- */

/* One line that lists what there is. */
static int refuse_many(const cli_config *c)
{
    char   layers[CLI_LAYERS_TEXT], *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    if (!to)
        return cli_failed("%s: not enough memory to list its layers", c->path);
    for (int i = 0, listed = 0; i < c->info->group_count; i++) {
        const posenc_model_group *g = posenc_model_group_at(c->model, i);
        if (is_rotary(g))
            fprintf(to, "%s%s in %s", listed++ ? "; " : "", g->spec,
                    cli_config_layers(layers, sizeof layers, g));
    }
    if (!fclose(to))
        cli_usage("%s: its layers are rotated differently; choose one by --layer N: %s", c->path, text);
    free(text);
    return CLI_USAGE;
}

static int choose_layer(cli_config *c, int64_t layer)
{
    const int index = posenc_model_group_of(c->model, layer);
    c->group        = index < 0 ? NULL : posenc_model_group_at(c->model, index);
    if (c->group && is_rotary(c->group))
        return CLI_DONE;
    if (c->info->layers && layer >= c->info->layers)
        return cli_usage("%s: --layer is %lld; its layers are 0 to %lld", c->path, (long long)layer,
                         (long long)c->info->layers - 1);
    if (!c->group)
        return cli_usage("%s: layer %lld has no attention; choose another by --layer", c->path,
                         (long long)layer);
    return cli_usage("%s: layer %lld is not rotated: its encoding is %s", c->path, (long long)layer,
                     c->group->encoding);
}

static int choose(cli_config *c, const cli_args *args)
{
    int64_t   layer;
    int       count = 0;
    const int given = cli_integer(args, "layer", 0, INT32_MAX, &layer);
    if (given)
        return given < 0 ? CLI_USAGE : choose_layer(c, layer);
    for (int i = 0; i < c->info->group_count; i++)
        if (is_rotary(posenc_model_group_at(c->model, i))) {
            c->group = posenc_model_group_at(c->model, i);
            count++;
        }
    if (!count)
        return cli_usage("%s: no layer is rotated: its encoding is %s", c->path, c->info->encoding);
    return count == 1 ? CLI_DONE : refuse_many(c);
}

int cli_config_read(cli_config *c, const cli_args *args)
{
    posenc_error err;
    c->path = cli_value(args, "config");
    if (!c->path)
        return cli_value(args, "layer")
                   ? cli_usage("--layer selects a layer of a model; give the model with --config F")
                   : CLI_DONE;
    if (posenc_model_read(&c->model, c->path, &err))
        return cli_usage("%s", err.message); /* an input that cannot be read is an unusable argument */
    c->info = posenc_model_describe(c->model);
    return choose(c, args);
}

void cli_config_warn(const cli_config *c)
{
    for (int i = 0; c->model && i < c->info->warning_count; i++)
        cli_warn("%s: %s", c->path, posenc_model_warning_at(c->model, i)->sentence);
}

/* ---------------------------------------------------------------- parameters ---------------- */

void cli_config_params(const cli_config *c, pe_calc *p)
{
    for (int i = 0; i < p->count && c->group; i++)
        for (int k = 0; k < c->group->param_count && !pe_calc_failed(p); k++) {
            const char          *name = posenc_param_name(p->e, i);
            const posenc_tensor *must = &p->params[i], *t = &c->group->params[k].tensor;
            if (strcmp(c->group->params[k].name, name) != 0 || !p->is_initial[i])
                continue;
            if (t->ndim != must->ndim || memcmp(t->shape, must->shape, (size_t)t->ndim * sizeof *t->shape))
                cli_calc_said(p, cli_usage("%s: its %s has the shape %s; with these settings it must be %s",
                                           c->path, name, pe_calc_shape_text(p, t->ndim, t->shape),
                                           pe_calc_shape_text(p, must->ndim, must->shape)));
            p->params[i]     = *t;
            p->is_initial[i] = 0;
        }
}

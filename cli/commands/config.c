/* SPDX-License-Identifier: MIT */
/* The encoding of a model: contract in config.h. */
#include "base/shared/pi.h"
#include "cli/commands/config.h"
#include "files/arrays/text.h"

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
        snprintf(text, size, n == 1 ? "the only layer" : n ? "all %lld layers" : "all layers", (long long)n);
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

int64_t cli_config_reach(const posenc_model_group *group, int64_t context)
{
    const posenc_fact *f      = posenc_model_fact(group, "sliding_window");
    int64_t            window = f && f->kind == POSENC_FACT_INTEGER ? f->integer : 0;
    for (int64_t i = 0; f && f->kind == POSENC_FACT_INTEGERS && i < f->count; i++) {
        if (f->list[i] <= 0)
            return context;
        window = f->list[i] > (double)window ? (int64_t)f->list[i] : window;
    }
    return window && (!context || window < context) ? window : context;
}

const posenc_fact *cli_config_frequencies(const posenc_model_group *group, int64_t context)
{
    const posenc_fact *late    = posenc_model_fact(group, "inv_freq_long");
    const int          is_late = late && (double)context > cli_config_fact(group, "original_length");
    return is_late ? late : posenc_model_fact(group, "inv_freq");
}

int64_t cli_config_unfinished(const posenc_fact *frequencies, int64_t reach, int64_t *still)
{
    int64_t unfinished = 0;
    *still             = 0;
    for (int64_t m = 0; m < frequencies->count; m++) {
        const double w = fabs(frequencies->list[m]);
        *still += w < 1e-20;
        unfinished += w * (double)reach < PE_TWO_PI;
    }
    return unfinished;
}

/* Can the command use it? */
static int is_usable(const posenc_model_group *group, cli_config_use use)
{
    const posenc_encoding_info *info = posenc_encoding_find(group->encoding);
    if (use == CLI_CONFIG_ENCODE || group->is_input)
        return use == CLI_CONFIG_ENCODE && group->is_input;
    return use == CLI_CONFIG_ATTEND || (info && info->place == POSENC_PLACE_ROTARY);
}

static int has_layer(const posenc_model_group *g, int64_t layer)
{
    int is_listed = layer < 0 || g->is_all;
    for (int64_t i = 0; i < g->layer_count; i++)
        is_listed |= g->layers[i] == layer;
    return is_listed;
}

/* ---------------------------------------------------------------- the choice ---------------- */

/* A group of that part? One that is a model by itself was chosen before. */
static int is_of_part(const cli_config *c, const posenc_model_group *g, const char *tower)
{
    return !tower || pe_text_is(c->info->tower, tower) || pe_text_is(g->stack, tower);
}

/* One line that lists what there is. */
static int refuse_many(const cli_config *c, cli_config_use use, const char *tower)
{
    char   layers[CLI_LAYERS_TEXT], *text = NULL;
    size_t size;
    int    stacks = 0;
    FILE  *to     = open_memstream(&text, &size);
    if (!to)
        return cli_failed("%s: not enough memory to list its layers", c->path);
    for (int i = 0, listed = 0; i < c->info->group_count; i++) {
        const posenc_model_group *g = posenc_model_group_at(c->part, i);
        if (!is_usable(g, use) || !is_of_part(c, g, tower) || !has_layer(g, c->layer))
            continue;
        stacks += g->stack != NULL;
        fprintf(to, "%s%s in %s", listed++ ? "; " : "", g->spec,
                g->stack ? g->stack : cli_config_layers(layers, sizeof layers, g));
    }
    if (!fclose(to))
        cli_usage(stacks ? "%s: it has several parts; choose one by --tower NAME: %s"
                  : use == CLI_CONFIG_ROTATE
                      ? "%s: its layers are rotated differently; choose one by --layer N: %s"
                      : "%s: its layers differ; choose one by --layer N: %s",
                  c->path, text);
    free(text);
    return CLI_USAGE;
}

static int refuse_layer(const cli_config *c)
{
    const posenc_model_group *g = posenc_model_group_at(c->part, posenc_model_group_of(c->part, c->layer));
    if (c->info->layers && c->layer >= c->info->layers)
        return cli_usage("%s: --layer is %lld; its layers are 0 to %lld", c->path, (long long)c->layer,
                         (long long)c->info->layers - 1);
    if (!g)
        return cli_usage("%s: layer %lld has no attention; choose another by --layer", c->path,
                         (long long)c->layer);
    return cli_usage("%s: layer %lld is not rotated: its encoding is %s", c->path, (long long)c->layer,
                     g->encoding);
}

/* "; posenc explain alibi --heads 32 shows it" of a bias, which explain takes by its SPEC. */
static const char *what_to_try(char text[], size_t size, const cli_config *c)
{
    const posenc_model_group   *g    = posenc_model_group_at(c->part, 0);
    const posenc_encoding_info *info = g ? posenc_encoding_find(g->encoding) : NULL;
    const char                 *mark = g && strchr(g->spec, '[') ? "'" : "";
    *text                            = '\0';
    if (info && info->place == POSENC_PLACE_SCORE && g->dims.H > 0)
        snprintf(text, size, "; posenc explain %s%s%s --heads %lld shows it", mark, g->spec, mark,
                 (long long)g->dims.H);
    return text;
}

static int refuse_none(const cli_config *c, cli_config_use use)
{
    static const char *const sentences[] = {
        [CLI_CONFIG_ROTATE] = "%s: no layer is rotated: its encoding is %s%s",
        [CLI_CONFIG_ATTEND] =
            "%s: nothing acts in its attention: its encoding is %s; encode writes rows of the "
            "input, and nope attends without positions%s",
        [CLI_CONFIG_ENCODE] = "%s: nothing acts at its input: its encoding is %s%s",
    };
    char text[512];
    return cli_usage(sentences[use], c->path, c->info->encoding,
                     use == CLI_CONFIG_ROTATE ? what_to_try(text, sizeof text, c) : "");
}

static int choose(cli_config *c, const cli_args *args, cli_config_use use)
{
    const char *tower  = cli_value(args, "tower");
    int         usable = 0, count = 0;
    c->layer = -1;
    if (cli_integer(args, "layer", 0, INT32_MAX, &c->layer) < 0)
        return CLI_USAGE;
    for (int i = 0; i < c->info->group_count; i++) {
        const posenc_model_group *g = posenc_model_group_at(c->part, i);
        if (!is_usable(g, use) || !is_of_part(c, g, tower))
            continue;
        usable++;
        if (!has_layer(g, c->layer) || (c->layer >= c->info->layers && c->info->layers && c->layer >= 0))
            continue;
        c->group = g;
        c->index = i;
        count++;
    }
    if (count > 1)
        return refuse_many(c, use, tower);
    if (count == 1)
        return CLI_DONE;
    return usable || c->layer >= 0 ? refuse_layer(c) : refuse_none(c, use);
}

static int has_stack(const posenc_model *model, const char *stack)
{
    for (int i = 0; i < posenc_model_describe(model)->group_count; i++)
        if (pe_text_is(posenc_model_group_at(model, i)->stack, stack))
            return 1;
    return 0;
}

const posenc_model *cli_config_part(const posenc_model *model, const char *tower)
{
    const posenc_model_info *info  = posenc_model_describe(model);
    const char              *names = "";
    char                     text[200];
    size_t                   used = 0;
    if (!tower || pe_text_is(info->tower, tower) || has_stack(model, tower))
        return model;
    for (int i = 0; i < info->tower_count; i++) {
        const posenc_model *part = posenc_model_tower(model, i);
        const char         *name = posenc_model_describe(part)->tower;
        if (pe_text_is(name, tower))
            return part;
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, ", %.30s", name);
        names = text;
    }
    if (info->tower && used < sizeof text)
        snprintf(text + used, sizeof text - used, ", %.30s", info->tower), names = text;
    cli_usage(*names ? "--tower: the model has no part %s; it has: %s"
                     : "--tower: the model has no part %s%s",
              tower,
              *names                        ? names + 2
              : has_stack(model, "encoder") ? "; it has: encoder, decoder"
                                            : "");
    return NULL;
}

int cli_config_read(cli_config *c, const cli_args *args, cli_config_use use)
{
    posenc_error err;
    c->path = cli_value(args, "config");
    if (!c->path && cli_value(args, "layer"))
        return cli_usage("--layer selects a layer of a model; give the model with --config F");
    if (!c->path)
        return cli_value(args, "tower")
                   ? cli_usage("--tower selects a part of a model; give the model with --config F")
                   : CLI_DONE;
    if (posenc_model_read(&c->model, c->path, &err))
        return cli_usage("%s", err.message); /* an input that cannot be read is an unusable argument */
    c->part = cli_config_part(c->model, cli_value(args, "tower"));
    if (!c->part)
        return CLI_USAGE;
    c->info = posenc_model_describe(c->part);
    return choose(c, args, use);
}

int cli_config_refuse_others(const cli_config *c)
{
    const posenc_fact *f = c->group ? posenc_model_fact(c->group, "other_terms") : NULL;
    return f ? cli_usage("%s: the %s of %s also has %s, which is not computed here; to do without, give %s",
                         c->group->is_input ? "encode" : "attend", c->group->is_input ? "input" : "attention",
                         c->path, f->text, c->group->spec)
             : CLI_DONE;
}

void cli_config_warn(const cli_config *c)
{
    for (int i = 0; c->model && i < c->info->warning_count; i++)
        cli_warn("%s: %s", c->path, posenc_model_warning_at(c->part, i)->sentence);
}

/* ---------------------------------------------------------------- parameters ---------------- */

/* The numbers of one parameter, under its name. */
static void take_param(const cli_config *c, pe_calc *p, int i, const posenc_tensor *t)
{
    const char          *name = posenc_param_name(p->e, i);
    const posenc_tensor *must = &p->params[i];
    if (!t || pe_calc_failed(p))
        return;
    if (t->ndim != must->ndim || memcmp(t->shape, must->shape, (size_t)t->ndim * sizeof *t->shape))
        cli_calc_said(p, cli_usage("%s: its %s has the shape %s; with these settings it must be %s", c->path,
                                   name, pe_calc_shape_text(p, t->ndim, t->shape),
                                   pe_calc_shape_text(p, must->ndim, must->shape)));
    p->params[i]     = pe_calc_convert(p, t->dtype == POSENC_DTYPE_F64 ? t->dtype : must->dtype, t);
    p->is_initial[i] = 0;
}

/* Sinks matter to attention alone. */
static int lacks_trained(const pe_calc *p, int with_sinks)
{
    for (int i = 0; i < p->count; i++)
        if (p->is_initial[i] && posenc_param_trainable(p->e, i) &&
            (with_sinks || !pe_text_is(posenc_param_name(p->e, i), "sink")))
            return i + 1;
    return 0;
}

static void refuse_lacking(pe_calc *p, int with_sinks)
{
    const int lacks = pe_calc_failed(p) ? 0 : lacks_trained(p, with_sinks);
    if (lacks)
        pe_calc_refuse(p,
                       "it has no array %s, which the model was trained with; give it, or the checkpoint: "
                       "--config MODEL.safetensors",
                       posenc_param_name(p->e, lacks - 1));
}

void cli_config_params(const cli_config *c, pe_calc *p)
{
    if (!c->group || pe_calc_failed(p))
        return;
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < c->group->param_count && p->is_initial[i]; k++)
            if (pe_text_is(c->group->params[k].name, posenc_param_name(p->e, i)))
                take_param(c, p, i, &c->group->params[k].tensor);
    if (lacks_trained(p, 1) && pe_text_ends_with(c->path, ".safetensors"))
        posenc_model_params(&p->made, c->part, c->index, c->layer, c->path, &p->err);
    for (int i = 0; i < p->count; i++) {
        const posenc_tensor *found = posenc_arrays_find(&p->made, posenc_param_name(p->e, i)),
                            copy   = found ? *found : (posenc_tensor){0}; /* the set grows below */
        if (p->is_initial[i] && found)
            take_param(c, p, i, &copy);
    }
    refuse_lacking(p, 0);
}

void cli_config_params_of_attention(const cli_config *c, pe_calc *p)
{
    cli_config_params(c, p);
    if (c->group)
        refuse_lacking(p, 1);
}

void cli_config_check_width(const cli_config *c, pe_calc *p, const cli_args *args, const char *name)
{
    const int64_t D = c->group ? c->group->dims.D : 0;
    if (D && D != p->dims.D && !cli_value(args, "set"))
        pe_calc_refuse(p,
                       "%s is %lld wide but a head of %s is %lld; give whole heads, or say with --set "
                       "dim=... and --set offset_dim=... which channels are rotated",
                       name, (long long)p->dims.D, c->path, (long long)D);
}

int cli_config_end(cli_config *c, pe_calc *p)
{
    const int status = cli_calc_end(p);
    posenc_model_free(c->model);
    return status;
}

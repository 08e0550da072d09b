/* SPDX-License-Identifier: MIT */
/*
 * cases: the harness for reference cases
 *
 * The idea  A case is arrays with names: in_* go in, par_* are the parameters, out_* must come out;
 *           gin_* go in from behind and g_* must come out in front. The place where an encoding
 *           acts says which of three forms its cases have (forms.c).
 * Executors reference takes the arrays as float64; tiled takes them rounded to float32 and is
 *           measured against the same float64 references.
 * Surprise  An array that nothing looked at must not count as agreement. A gradient or parameter
 *           that the encoding does not have fails the case, so does an array that the manifest
 *           lists and the file lacks; other arrays are named in the result.
 * Source    docs/reference-cases.md
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trial.h"

const cli_executor cli_executors[CLI_EXECUTORS] = {
    {"reference", POSENC_REFERENCE, POSENC_F64},
    {"tiled", POSENC_TILED, POSENC_F32},
};

/* ---------------------------------------------------------------- other subjects ------------ */

static void run_buckets(cli_trial *t)
{
    cli_problem         *p   = &t->p;
    const posenc_tensor *rel = cli_trial_find(t, "in_rel");
    if (!rel)
        cli_refuse(p, "it has no array in_rel, which a table of index maps needs");
    const posenc_tensor in = cli_convert(p, POSENC_I64, rel);
    for (int m = 0; m < t->c->map_count && !cli_stopped(p); m++) {
        const posenc_case_map *map  = &t->c->maps[m];
        const posenc_tensor    out  = cli_make_like(p, POSENC_I64, rel);
        const char            *name = cli_text(p, "out_%s", map->out);
        if (!cli_trial_has(t, name))
            cli_refuse(p, "it has no array %.60s, which its settings promise", name);
        if (!cli_stopped(p))
            posenc_index_map(map->map, map->settings, in.data, cli_element_count(rel), out.data, &p->err);
        cli_trial_compare(t, CLI_INDEX, name, &out, 0);
    }
}

/* Which parameter a table "<encoding>_<parameter>" means; -1 if no encoding has it. */
static int find_param(const posenc_encoding_info **info, const char *table)
{
    for (int i = 0; (*info = posenc_encoding_info_at(i)); i++) {
        const size_t n = strlen((*info)->name);
        if (strncmp(table, (*info)->name, n) || table[n] != '_')
            continue;
        for (int p = 0; p < (*info)->param_count; p++)
            if (!strcmp(table + n + 1, (*info)->params[p].name))
                return p;
    }
    return -1;
}

/* What a parameter starts as, for each number of heads. */
static void run_initial(cli_trial *t)
{
    cli_problem                *p = &t->p;
    const posenc_encoding_info *info;
    const int                   param = find_param(&info, t->c->table);
    if (param < 0)
        cli_refuse(p,
                   "settings: the table '%.60s' is unknown; there are buckets, swin and ENCODING_PARAMETER",
                   t->c->table);
    cli_encoding(p, info ? info->name : "", NULL);
    for (int i = 0; i < t->c->head_count && !cli_stopped(p); i++) {
        const int64_t heads = t->c->heads[i];
        const char   *name  = cli_text(p, "out_H%lld", (long long)heads);
        if (!cli_trial_has(t, name))
            cli_refuse(p, "it has no array %s, which its settings promise", name);
        p->dims = (posenc_dims){.B = 1, .H = heads, .G = heads, .Lq = 1, .Lk = 1, .D = 2, .Dv = 2};
        const posenc_tensor *params = cli_initial(p, POSENC_F64);
        if (params)
            cli_trial_compare(t, CLI_PREPARED, name, &params[param], 0);
    }
}

static void run_index_map(cli_trial *t)
{
    if (!t->c->table)
        cli_refuse(&t->p, "its settings name no `table`");
    else if (!strcmp(t->c->table, "swin"))
        cli_compare_windows(t);
    else if (!strcmp(t->c->table, "buckets"))
        run_buckets(t);
    else
        run_initial(t);
}

int cli_is_subject(const char *name)
{
    return !strcmp(name, "index_map");
}

/* ---------------------------------------------------------------- a whole case -------------- */

static void (*const by_place[POSENC_PLACES])(cli_trial *t) = {
    [POSENC_INPUT]  = cli_run_rows,
    [POSENC_ROTARY] = cli_run_rotation,
    [POSENC_SCORE]  = cli_run_attention,
    [POSENC_WEIGHT] = cli_run_attention,
};

/* Runs with each executor; a setting that the manifest leaves to the shape of a parameter is read there. */
static void run_encoding(cli_trial *t)
{
    cli_problem                *p    = &t->p;
    const posenc_encoding_info *info = posenc_encoding_find(t->c->encoding);
    if (!info)
        cli_refuse(p, "the encoding %.40s is unknown; the nearest is %s", t->c->encoding,
                   posenc_encoding_nearest(t->c->encoding));
    cli_encoding(p, t->c->encoding, t->c->settings);
    cli_infer(p, t->c->encoding, t->c->settings);
    for (int i = 0; i < CLI_EXECUTORS && !cli_stopped(p); i++) {
        if (!(t->options->executors & 1u << i))
            continue;
        t->with = &cli_executors[i];
        (cli_trial_has(t, "in_v") ? cli_run_attention : by_place[info->place])(t);
        posenc_plan_free(p->plan);
        p->plan = NULL;
    }
}

/* An unused gradient or parameter means that the case was not understood; other arrays are only
   named. */
static void check_used(cli_trial *t)
{
    cli_case_result *r      = t->result;
    size_t           length = 0;
    for (int i = 0; i < t->p.file.count && !cli_stopped(&t->p); i++) {
        const char *name         = t->p.file.items[i].name;
        const int   is_parameter = !strncmp(name, "par_", 4), is_gradient = !strncmp(name, "g_", 2);
        if (t->p.used[i])
            continue;
        if (is_parameter || is_gradient)
            cli_refuse(&t->p, "%s has no %s for the array %.60s", t->c->encoding,
                       is_parameter ? "parameter" : "gradient", name);
        else if (length < sizeof r->unused)
            length += (size_t)snprintf(r->unused + length, sizeof r->unused - length, "%s%s",
                                       length ? " " : "", name);
    }
    if (r->compared == 0)
        cli_refuse(&t->p, "none of its arrays could be compared");
}

static void run_trial(cli_trial *t)
{
    cli_problem *p = &t->p;
    for (char **name = t->c->arrays; *name; name++)
        if (!cli_trial_has(t, *name))
            cli_refuse(p, "the file lacks the array %.60s, which the manifest lists", *name);
    if (!cli_stopped(p) && cli_is_subject(t->c->encoding))
        run_index_map(t);
    else if (!cli_stopped(p))
        run_encoding(t);
    check_used(t);
    if (cli_stopped(p))
        snprintf(t->result->problem, sizeof t->result->problem, "%s",
                 p->sentence[0] ? p->sentence : p->err.message);
    t->result->passed = !t->result->problem[0];
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
    posenc_arrays_free(&p->made);
}

void cli_case_run_arrays(cli_case_result *result, const posenc_arrays *file, const posenc_case *c,
                         const cli_case_options *options)
{
    cli_trial t = {.p = cli_problem_new(c->file), .c = c, .options = options, .result = result};
    *result     = (cli_case_result){0};
    t.p.file    = *file;
    t.p.used    = cli_block(&t.p, (size_t)file->count);
    run_trial(&t);
}

void cli_case_run(cli_case_result *result, const char *dir, const posenc_case *c,
                  const cli_case_options *options)
{
    cli_trial t = {.p = cli_problem_new(c->file), .c = c, .options = options, .result = result};
    *result     = (cli_case_result){0};
    if (strchr(c->file, '/'))
        cli_refuse(&t.p, "its file name leaves the folder; name a file beside the manifest");
    cli_problem_read(&t.p, cli_text(&t.p, "%s/%s", dir, c->file));
    run_trial(&t);
    posenc_arrays_free(&t.p.file);
}

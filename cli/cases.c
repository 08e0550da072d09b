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

#include "forms.h"
#include "inferred.h"
#include "inside.h"

const cli_executor cli_executors[CLI_EXECUTORS] = {
    {"reference", POSENC_REFERENCE, POSENC_F64},
    {"tiled", POSENC_TILED, POSENC_F32},
};

/* ---------------------------------------------------------------- other subjects ------------ */

static posenc_status run_buckets(cli_trial *t)
{
    posenc_error         err;
    const posenc_tensor *rel = cli_trial_find(t, "in_rel");
    if (!rel)
        return cli_trial_fail(t, "it has no array in_rel, which a table of index maps needs");
    const posenc_tensor in = cli_trial_convert(t, POSENC_I64, rel);
    for (int m = 0; m < t->c->map_count && !t->status; m++) {
        const posenc_case_map *map = &t->c->maps[m];
        posenc_tensor          out = cli_trial_make_like(t, POSENC_I64, rel);
        char                   name[CLI_MAX_NAME];
        snprintf(name, sizeof name, "out_%s", map->out);
        if (!cli_trial_has(t, name))
            return cli_trial_fail(t, "it has no array %.60s, which its settings promise", name);
        if (!t->status &&
            posenc_index_map(map->map, map->settings, in.data, cli_element_count(rel), out.data, &err))
            return cli_trial_refused(t, &err);
        cli_trial_compare(t, CLI_INDEX, name, &out, 0);
    }
    return t->status;
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

/* What a parameter of `heads` heads starts as. */
static posenc_status compare_initial(cli_trial *t, int param, int64_t heads)
{
    const posenc_dims dims = {.B = 1, .H = heads, .G = heads, .Lq = 1, .Lk = 1, .D = 2, .Dv = 2};
    char              name[CLI_MAX_NAME];
    snprintf(name, sizeof name, "out_H%lld", (long long)heads);
    if (!cli_trial_has(t, name))
        return cli_trial_fail(t, "it has no array %s, which its settings promise", name);
    if (!cli_trial_initial(t, &dims, POSENC_F64, t->params))
        cli_trial_compare(t, CLI_PREPARED, name, &t->params[param], 0);
    return t->status;
}

static posenc_status run_initial(cli_trial *t)
{
    posenc_error                err;
    posenc_encoding            *e = NULL;
    const posenc_encoding_info *info;
    const int                   param = find_param(&info, t->c->table);
    if (param < 0)
        return cli_trial_fail(
            t, "settings: the table '%.60s' is unknown; there are buckets, swin and ENCODING_PARAMETER",
            t->c->table);
    if (posenc_encoding_create(&e, info->name, NULL, &err))
        return cli_trial_refused(t, &err);
    t->e = e;
    for (int i = 0; i < t->c->head_count && !t->status; i++)
        compare_initial(t, param, t->c->heads[i]);
    t->e = NULL;
    posenc_encoding_free(e);
    return t->status;
}

static posenc_status run_index_map(cli_trial *t)
{
    if (!t->c->table)
        return cli_trial_fail(t, "its settings name no `table`");
    if (!strcmp(t->c->table, "swin"))
        return cli_compare_windows(t);
    return strcmp(t->c->table, "buckets") ? run_initial(t) : run_buckets(t);
}

static const struct {
    const char *name;
    posenc_status (*run)(cli_trial *t);
} subjects[] = {{"index_map", run_index_map}};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static int subject_index(const char *name)
{
    for (int i = 0; i < SUBJECTS; i++)
        if (!strcmp(name, subjects[i].name))
            return i;
    return -1;
}

int cli_is_subject(const char *name)
{
    return subject_index(name) >= 0;
}

/* ---------------------------------------------------------------- a whole case -------------- */

static posenc_status (*const by_place[POSENC_PLACES])(cli_trial *t) = {
    [POSENC_INPUT]  = cli_run_rows,
    [POSENC_ROTARY] = cli_run_rotation,
    [POSENC_SCORE]  = cli_run_attention,
    [POSENC_WEIGHT] = cli_run_attention,
};

static void close_trial(cli_trial *t)
{
    posenc_plan_free(t->plan);
    t->plan = NULL;
    posenc_arrays_free(&t->made);
}

static const posenc_tensor *case_param(void *context, const char *name)
{
    cli_trial *t = context;
    char       prefixed[CLI_MAX_NAME];
    snprintf(prefixed, sizeof prefixed, "par_%s", name);
    const posenc_tensor *par = posenc_arrays_find(t->file, prefixed);
    snprintf(prefixed, sizeof prefixed, "in_%s", name);
    return par ? par : posenc_arrays_find(t->file, prefixed);
}

/* The case's encoding; a setting that its manifest leaves to the shape of a parameter is read there. */
static posenc_status create_encoding(cli_trial *t, posenc_encoding **e, posenc_error *err)
{
    posenc_status status   = posenc_encoding_create(e, t->c->encoding, t->c->settings, err);
    char         *settings = NULL;
    if (status)
        return status;
    settings = cli_inferred_settings(*e, t->c->encoding, t->c->settings, case_param, t);
    posenc_encoding_free(*e);
    *e = NULL;
    if (!settings)
        return cli_trial_fail(t, "no memory for its settings");
    status = posenc_encoding_create(e, t->c->encoding, settings, err);
    free(settings);
    return status;
}

static void run_encoding(cli_trial *t)
{
    posenc_error                err;
    posenc_encoding            *e    = NULL;
    const posenc_encoding_info *info = posenc_encoding_find(t->c->encoding);
    if (!info) {
        cli_trial_fail(t, "the encoding %.40s is unknown; the nearest is %s", t->c->encoding,
                       posenc_encoding_nearest(t->c->encoding));
        return;
    }
    if (create_encoding(t, &e, &err)) {
        cli_trial_refused(t, &err);
        return;
    }
    t->e = e;
    for (int i = 0; i < CLI_EXECUTORS && !t->status; i++) {
        if (!(t->options->executors & 1u << i))
            continue;
        t->with = &cli_executors[i];
        (cli_trial_has(t, "in_v") ? cli_run_attention : by_place[info->place])(t);
        close_trial(t);
    }
    posenc_encoding_free(e);
}

/* Every array that the manifest lists must be there. */
static void check_complete(cli_trial *t)
{
    for (char **name = t->c->arrays; *name && !t->status; name++)
        if (!cli_trial_has(t, *name))
            cli_trial_fail(t, "the file lacks the array %.60s, which the manifest lists", *name);
}

/* An unused gradient or parameter means that the case was not understood; other arrays are only
   named. */
static void check_used(cli_trial *t)
{
    size_t length = 0;
    for (int i = 0; i < t->file->count && !t->status; i++) {
        const char *name         = t->file->items[i].name;
        const int   is_parameter = !strncmp(name, "par_", 4), is_gradient = !strncmp(name, "g_", 2);
        if (t->used[i])
            continue;
        if (is_parameter || is_gradient) {
            cli_trial_fail(t, "%s has no %s for the array %.60s", t->c->encoding,
                           is_parameter ? "parameter" : "gradient", name);
            return;
        }
        if (length < sizeof t->result->unused)
            length += (size_t)snprintf(t->result->unused + length, sizeof t->result->unused - length, "%s%s",
                                       length ? " " : "", name);
    }
    if (!t->status && t->result->compared == 0)
        cli_trial_fail(t, "none of its arrays could be compared");
}

static void run_file(cli_trial *t)
{
    const int s = subject_index(t->c->encoding);
    check_complete(t);
    if (t->status)
        return;
    if (s >= 0) {
        subjects[s].run(t);
        close_trial(t);
    } else {
        run_encoding(t);
    }
    check_used(t);
}

void cli_case_run_arrays(cli_case_result *result, const posenc_arrays *file, const posenc_case *c,
                         const cli_case_options *options)
{
    *result     = (cli_case_result){0};
    cli_trial t = {.c = c, .file = file, .options = options, .result = result};
    t.used      = calloc((size_t)file->count + 1, 1);
    if (t.used)
        run_file(&t);
    else
        cli_trial_fail(&t, "no memory to run it");
    free(t.used);
    result->passed = !t.status && !result->problem[0];
}

/* The case's file beside the manifest; 0 with the reason in *err. */
static int read_case(posenc_arrays *file, const char *dir, const char *name, posenc_error *err)
{
    const size_t room = strlen(dir) + strlen(name) + 2;
    char        *path = strchr(name, '/') ? NULL : malloc(room);
    if (!path) {
        snprintf(err->message, sizeof err->message, "%s",
                 strchr(name, '/') ? "its file name leaves the folder; name a file beside the manifest"
                                   : "no memory for its file name");
        return 0;
    }
    snprintf(path, room, "%s/%s", dir, name);
    const posenc_status status = posenc_arrays_read(file, path, err);
    free(path);
    return !status;
}

void cli_case_run(cli_case_result *result, const char *dir, const posenc_case *c,
                  const cli_case_options *options)
{
    posenc_arrays file = {0};
    posenc_error  err;
    if (read_case(&file, dir, c->file, &err)) {
        cli_case_run_arrays(result, &file, c, options);
        posenc_arrays_free(&file);
        return;
    }
    *result = (cli_case_result){0};
    snprintf(result->problem, sizeof result->problem, "%s", err.message);
}

/* SPDX-License-Identifier: MIT */
/*
 * case.c: the harness for reference cases
 *
 * The idea  A case is arrays with names: in_* go in, par_* are the parameters, out_* must come out;
 *           gin_* are gradients of the outputs, and g_* of the inputs and parameters must come out. The
 *           place where an encoding acts says which of three forms its cases have.
 * Executors reference takes the arrays as float64; tiled takes them rounded to float32 and is
 *           measured against the same float64 references.
 * Surprise  An array that nothing looked at must not count as agreement. A gradient or parameter
 *           that the encoding does not have fails the case, so does an array that the manifest
 *           lists and the file lacks; other arrays are named in the result.
 * Source    docs/reference-cases.md
 */
#include "verify/trial.h"

#include <posenc/positions.h>
#include <string.h>
#include <sys/stat.h>

static const pe_case_executor executors[PE_CASE_EXECUTORS] = {
    {"reference", POSENC_EXECUTOR_REFERENCE, POSENC_DTYPE_F64},
    {"tiled", POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32},
};

/* ---------------------------------------------------------------- other subjects ------------ */

static void run_buckets(pe_trial *t)
{
    pe_calc             *p   = &t->p;
    const posenc_tensor *rel = pe_trial_find(t, "in_rel");
    if (!rel)
        pe_calc_refuse(p, "it has no array in_rel, which a table of index maps needs");
    const posenc_tensor in = pe_calc_convert(p, POSENC_DTYPE_I64, rel);
    for (int m = 0; m < t->c->map_count && !pe_calc_failed(p); m++) {
        const posenc_case_map *map  = &t->c->maps[m];
        const posenc_tensor    out  = pe_calc_make_like(p, POSENC_DTYPE_I64, rel);
        const char            *name = pe_calc_text(p, "out_%s", map->out);
        if (!pe_trial_has(t, name))
            pe_calc_refuse(p, "it has no array %.60s, which its settings require", name);
        if (!pe_calc_failed(p))
            posenc_index_map(map->map, map->settings, in.data, pe_tensor_elements(rel), out.data, &p->err);
        pe_trial_compare(t, PE_CASE_INDEX, name, &out, 0);
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
static void run_initial(pe_trial *t)
{
    pe_calc                    *p = &t->p;
    const posenc_encoding_info *info;
    const int                   param = find_param(&info, t->c->table);
    if (param < 0)
        pe_calc_refuse(
            p, "settings: the table '%.60s' is unknown; there are buckets, swin and ENCODING_PARAMETER",
            t->c->table);
    pe_calc_encoding(p, info ? info->name : "", NULL);
    for (int i = 0; i < t->c->head_count && !pe_calc_failed(p); i++) {
        const int64_t heads = t->c->heads[i];
        const char   *name  = pe_calc_text(p, "out_H%lld", (long long)heads);
        if (!pe_trial_has(t, name))
            pe_calc_refuse(p, "it has no array %s, which its settings require", name);
        p->dims = (posenc_dims){.B = 1, .H = heads, .G = heads, .Lq = 1, .Lk = 1, .D = 2, .Dv = 2};
        const posenc_tensor *params = pe_calc_initial(p, POSENC_DTYPE_F64);
        if (params)
            pe_trial_compare(t, PE_CASE_PREPARED, name, &params[param], 0);
    }
}

static void run_index_map(pe_trial *t)
{
    if (!t->c->table)
        pe_calc_refuse(&t->p, "its settings name no `table`");
    else if (!strcmp(t->c->table, "swin"))
        pe_trial_attention_windows(t);
    else if (!strcmp(t->c->table, "buckets"))
        run_buckets(t);
    else
        run_initial(t);
}

int pe_case_is_subject(const char *name)
{
    return !strcmp(name, "index_map");
}

/* ---------------------------------------------------------------- a whole case -------------- */

/* A stranger's manifest must not keep the machine busy: what a case may have is worth its arrays. */
enum { LEAST_BYTES = 48 << 20, BYTES_PER_NUMBER = 2048 };

static void (*const by_place[POSENC_PLACE_COUNT])(pe_trial *t) = {
    [POSENC_PLACE_INPUT]  = pe_trial_rows,
    [POSENC_PLACE_ROTARY] = pe_trial_attention_rotation,
    [POSENC_PLACE_SCORE]  = pe_trial_attention,
    [POSENC_PLACE_WEIGHT] = pe_trial_attention,
};

/* Runs with each executor; a setting that the manifest leaves to the shape of a parameter is read there. */
static void run_encoding(pe_trial *t)
{
    pe_calc                    *p      = &t->p;
    const posenc_encoding_info *info   = posenc_encoding_find(t->c->encoding);
    const int                   joined = strchr(t->c->encoding, '+') != NULL;
    if (!info && !joined)
        pe_calc_refuse(p, "the encoding %.40s is unknown; the nearest is %s", t->c->encoding,
                       posenc_encoding_nearest(t->c->encoding));
    pe_calc_encoding(p, t->c->encoding, t->c->settings);
    pe_calc_infer(p, t->c->encoding, t->c->settings);
    for (int i = 0; i < PE_CASE_EXECUTORS && !pe_calc_failed(p); i++) {
        if (!(t->options->executors & 1u << i))
            continue;
        t->with = &executors[i];
        if (joined && !pe_trial_has(t, "in_v"))
            pe_calc_refuse(p, "it joins encodings, and has no in_v: only attention does both");
        else
            (pe_trial_has(t, "in_v") ? pe_trial_attention : by_place[info->place])(t);
        posenc_plan_free(p->plan);
        p->plan = NULL;
    }
}

/* An unused gradient or parameter means that the case was not understood; other arrays are only
   named. */
static void check_used(pe_trial *t)
{
    pe_case_result *r      = t->result;
    size_t          length = 0;
    for (int i = 0; i < t->p.file.count && !pe_calc_failed(&t->p); i++) {
        const char *name         = t->p.file.items[i].name;
        const int   is_parameter = !strncmp(name, "par_", 4), is_gradient = !strncmp(name, "g_", 2);
        if (t->p.used[i])
            continue;
        if (is_parameter || is_gradient)
            pe_calc_refuse(&t->p, "%s has no %s for the array %.60s", t->c->encoding,
                           is_parameter ? "parameter" : "gradient", name);
        else if (length < sizeof r->unused)
            length += (size_t)snprintf(r->unused + length, sizeof r->unused - length, "%s%s",
                                       length ? " " : "", name);
    }
    if (r->compared == 0)
        pe_calc_refuse(&t->p, "none of its arrays could be compared");
}

static void run_trial(pe_trial *t)
{
    pe_calc *p = &t->p;
    for (char **name = t->c->arrays; *name; name++)
        if (!pe_trial_has(t, *name))
            pe_calc_refuse(p, "the file lacks the array %.60s, which the manifest lists", *name);
    if (!pe_calc_failed(p) && pe_case_is_subject(t->c->encoding))
        run_index_map(t);
    else if (!pe_calc_failed(p))
        run_encoding(t);
    check_used(t);
    if (pe_calc_failed(p))
        snprintf(t->result->problem, sizeof t->result->problem, "%s",
                 p->sentence[0] ? p->sentence : p->err.message);
    t->result->passed = !t->result->problem[0];
}

/* Only the manifest names it: a pipe in its place is not waited for. */
static void read_file(pe_calc *p, const char *dir, const char *name)
{
    struct stat about;
    const char *path = pe_calc_text(p, "%s/%s", dir, name);
    if (strchr(name, '/'))
        pe_calc_refuse(p, "its file name leaves the folder; name a file in the folder of the manifest");
    else if (!pe_calc_failed(p) && !stat(path, &about) && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
        pe_calc_refuse(p, "it is no regular file, which is needed here");
    else
        pe_calc_read(p, path);
}

void pe_case_run(pe_case_result *result, const char *dir, const posenc_arrays *file, const posenc_case *c,
                 const pe_case_options *options)
{
    pe_trial t = {.p = pe_calc_new(c->file), .c = c, .options = options, .result = result};
    pe_calc *p = &t.p;
    *result    = (pe_case_result){0};
    if (!dir) {
        p->file = *file;
        p->used = pe_calc_block(p, (size_t)file->count);
    } else
        read_file(p, dir, c->file);
    p->most = LEAST_BYTES;
    for (int i = 0; i < p->file.count && p->most < INT64_MAX / 2 / BYTES_PER_NUMBER; i++)
        p->most += BYTES_PER_NUMBER * pe_tensor_elements(&p->file.items[i].tensor);
    run_trial(&t);
    if (!dir) /* the arrays are the caller's */
        p->file = (posenc_arrays){0};
    pe_calc_free(p);
}

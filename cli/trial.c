/* SPDX-License-Identifier: MIT */
/*
 * trial: the harness for reference cases
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
#include "trial.h"

#include <math.h>
#include <posenc/positions.h>
#include <string.h>

const cli_executor cli_executors[CLI_EXECUTORS] = {
    {"reference", POSENC_EXECUTOR_REFERENCE, POSENC_DTYPE_F64},
    {"tiled", POSENC_EXECUTOR_TILED, POSENC_DTYPE_F32},
};

/* ---------------------------------------------------------------- arrays -------------------- */

const posenc_tensor *cli_trial_find(cli_trial *t, const char *name)
{
    for (int i = 0; i < t->p.file.count; i++)
        if (!strcmp(t->p.file.items[i].name, name)) {
            t->p.used[i] = 1;
            return &t->p.file.items[i].tensor;
        }
    return NULL;
}

int cli_trial_has(const cli_trial *t, const char *name)
{
    return posenc_arrays_find(&t->p.file, name) != NULL;
}

int cli_trial_need(cli_trial *t, const char *const *names)
{
    for (; *names; names++)
        if (!cli_trial_has(t, *names))
            cli_refuse(&t->p, "it has no array %s, which a case of this form needs", *names);
    return !cli_stopped(&t->p);
}

posenc_tensor cli_trial_numbers(cli_trial *t, const char *name)
{
    return cli_convert(&t->p, t->with->dtype, cli_trial_find(t, name));
}

posenc_positions cli_trial_positions(cli_trial *t, const char *name)
{
    const posenc_tensor *array = cli_trial_find(t, name);
    return posenc_positions_array(
        cli_convert(&t->p, array->dtype == POSENC_DTYPE_I64 ? POSENC_DTYPE_I64 : POSENC_DTYPE_F64, array));
}

const char *cli_case_setting(const posenc_case *c, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = c->settings; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    return NULL;
}

/* ---------------------------------------------------------------- tolerances ---------------- */

/* Of float64 and of float32 results; by_row says what a float32 factor is relative to. */
static const struct {
    double factor[2];
    int    by_row;
} rules[CLI_KINDS] = {
    [CLI_OUTPUT] = {{1e-12, 2e-6}, 1}, [CLI_GRADIENT] = {{1e-11, 2e-5}, 1},
    [CLI_SOLVED] = {{1e-10, 2e-6}, 1}, [CLI_PREPARED] = {{1e-12, 1e-12}, 0},
    [CLI_INDEX] = {{0, 0}, 0},
};

static const double LEAST_SCALE = 1e-3; /* of a row, relative to its array */

/* What a float64 gradient may be off by. An array whose references are all below is 0 - a number added to
   every score of a row has no gradient, for example - and what the reference holds is its own rounding: no
   scale for a float32 result, which is a sum of numbers as large as the other gradients. */
static const double ZERO = 1e-11;

static double largest(const posenc_tensor *t, int64_t from, int64_t n)
{
    double most = 0;
    for (int64_t i = from; i < from + n; i++) {
        const double x = fabs(cli_element(t, i));
        if (isfinite(x) && x > most)
            most = x;
    }
    return most;
}

double cli_largest(const posenc_tensor *t)
{
    return largest(t, 0, cli_element_count(t));
}

static double fraction(double got, double want, double allowed)
{
    if (got == want)
        return 0;
    const double error = fabs(got - want);
    return isfinite(error) && allowed > 0 ? error / allowed : (double)INFINITY;
}

cli_measure cli_measure_array(const posenc_tensor *got, const posenc_tensor *want, const cli_allowance *a)
{
    const int64_t n      = cli_element_count(want);
    const int64_t width  = want->ndim ? want->shape[want->ndim - 1] : 1;
    const double  factor = rules[a->kind].factor[a->is_single], array = cli_largest(want);
    const double  least  = a->kind == CLI_GRADIENT && array <= ZERO ? a->others : LEAST_SCALE * array;
    const int     by_row = a->is_single && rules[a->kind].by_row;
    cli_measure   m      = {0, 0, 0, 0};
    for (int64_t row = 0; row * width < n; row++) {
        const double most  = largest(want, row * width, width);
        const double scale = fmax(most, least);
        const double angle = (a->angles ? a->angles[row] : a->angle) * fmax(1, most);
        for (int64_t i = row * width; i < (row + 1) * width; i++) {
            const double x = cli_element(got, i), ref = cli_element(want, i);
            const double allowed = factor * (by_row ? scale : fmax(1, fabs(ref))) + angle;
            const double f       = fraction(x, ref, allowed);
            if (f > m.worst || i == 0)
                m = (cli_measure){f, i, x, ref};
        }
    }
    return m;
}

/* ---------------------------------------------------------------- measuring ----------------- */

/* Equal but for leading axes of length 1, which carry no meaning in the cases ([L,d] is [1,L,d]). */
static int same_shape(const posenc_tensor *a, const posenc_tensor *b)
{
    const posenc_tensor same = cli_with_axes(*a, b->ndim);
    return same.ndim == b->ndim && !memcmp(same.shape, b->shape, (size_t)b->ndim * sizeof *b->shape);
}

static const char *element_text(cli_trial *t, const posenc_tensor *array, int64_t at)
{
    int64_t index[POSENC_MAX_DIMS];
    for (int32_t a = array->ndim - 1; a >= 0; a--) {
        index[a] = at % array->shape[a];
        at /= array->shape[a];
    }
    return cli_shape_text(&t->p, array->ndim, index);
}

/* The new largest error, and which element shows it if it is too large. */
static void keep(cli_trial *t, const char *name, const posenc_tensor *want, const cli_measure *m)
{
    cli_case_result *r = t->result;
    r->worst           = m->worst;
    r->executor        = t->with ? t->with->name : NULL;
    snprintf(r->array, sizeof r->array, "%s", name);
    if (m->worst > 1)
        snprintf(r->problem, sizeof r->problem, "%.60s%s is %.17g instead of %.17g", name,
                 element_text(t, want, m->at), m->got, m->want);
}

static void measure(cli_trial *t, const char *name, const posenc_tensor *got, cli_allowance *allowance)
{
    const posenc_tensor *want = cli_stopped(&t->p) ? NULL : cli_trial_find(t, name);
    if (!want)
        return;
    if (!same_shape(got, want)) {
        cli_refuse(&t->p, "%.60s has the shape %s but the encoding gives %s", name,
                   cli_shape_text(&t->p, want->ndim, want->shape),
                   cli_shape_text(&t->p, got->ndim, got->shape));
        return;
    }
    allowance->is_single = t->with && t->with->dtype == POSENC_DTYPE_F32;
    const cli_measure m  = cli_measure_array(got, want, allowance);
    if (t->result->compared++ == 0 || m.worst > t->result->worst)
        keep(t, name, want, &m);
}

void cli_trial_compare(cli_trial *t, cli_kind kind, const char *name, const posenc_tensor *got, double angle)
{
    cli_allowance allowance = {.kind = kind, .angle = angle};
    for (int i = 0; kind == CLI_GRADIENT && i < t->p.file.count; i++)
        if (!strncmp(t->p.file.items[i].name, "g_", 2))
            allowance.others = fmax(allowance.others, cli_largest(&t->p.file.items[i].tensor));
    measure(t, name, got, &allowance);
}

void cli_trial_compare_rows(cli_trial *t, const char *name, const posenc_tensor *got, const double *angles)
{
    measure(t, name, got, &(cli_allowance){.kind = CLI_OUTPUT, .angles = angles});
}

void cli_trial_compare_param_gradients(cli_trial *t, double angle)
{
    for (int i = 0; i < t->p.count && !cli_stopped(&t->p); i++)
        if (t->dparams[i].data)
            cli_trial_compare(t, CLI_GRADIENT, cli_text(&t->p, "g_%s", posenc_param_name(t->p.e, i)),
                              &t->dparams[i], angle);
}

/* ---------------------------------------------------------------- plan and parameters ------- */

/* Copies the file's par_<name>, or in_<name>, over the initial value of a parameter. */
static void take_param(cli_trial *t, posenc_tensor *to, const char *name)
{
    const posenc_tensor *par  = cli_trial_find(t, cli_text(&t->p, "par_%s", name));
    const posenc_tensor *from = par ? par : cli_trial_find(t, cli_text(&t->p, "in_%s", name));
    if (from && !same_shape(from, to))
        cli_refuse(&t->p, "par_%.60s has the shape %s; the settings ask for %s", name,
                   cli_shape_text(&t->p, from->ndim, from->shape),
                   cli_shape_text(&t->p, to->ndim, to->shape));
    for (int64_t n = 0; from && !cli_stopped(&t->p) && n < cli_element_count(from); n++)
        cli_put_element(to, n, cli_element(from, n));
}

/* Does parameter i belong to the rotary part? */
static int is_rotary(const cli_problem *p, int i)
{
    const posenc_encoding_info *part = posenc_encoding_part(p->e, POSENC_PLACE_ROTARY);
    for (int n = 0; part && n < part->param_count; n++)
        if (&part->params[n] == posenc_param_describe(p->e, i))
            return 1;
    return 0;
}

int cli_trial_prepare(cli_trial *t, const posenc_dims *dims, int mask, int runs)
{
    cli_problem *p      = &t->p;
    p->dims             = *dims;
    p->options.mask     = mask;
    p->options.executor = t->with->executor;
    p->options.tile_q   = t->options->tile_q;
    p->options.tile_k   = t->options->tile_k;
    p->options.threads  = 1; /* cases are small, and the bits do not depend on it */
    cli_plan(p, runs);
    p->params  = cli_initial(p, t->with->dtype);
    t->exact   = cli_initial(p, POSENC_DTYPE_F64);
    p->count   = cli_stopped(p) ? 0 : posenc_param_count(p->e);
    t->dparams = cli_block(p, ((size_t)p->count + 1) * sizeof *t->dparams);
    for (int i = 0; i < p->count && !cli_stopped(p); i++) {
        const char *name = posenc_param_name(p->e, i);
        take_param(t, &p->params[i], name);
        take_param(t, &t->exact[i], name);
        if (cli_trial_find(t, cli_text(p, "g_%s", name)))
            t->dparams[i] = cli_make_like(p, t->with->dtype, &p->params[i]);
        if (is_rotary(p, i))
            p->params[i] = t->exact[i];
    }
    return !cli_stopped(p);
}

/* ---------------------------------------------------------------- other subjects ------------ */

static void run_buckets(cli_trial *t)
{
    cli_problem         *p   = &t->p;
    const posenc_tensor *rel = cli_trial_find(t, "in_rel");
    if (!rel)
        cli_refuse(p, "it has no array in_rel, which a table of index maps needs");
    const posenc_tensor in = cli_convert(p, POSENC_DTYPE_I64, rel);
    for (int m = 0; m < t->c->map_count && !cli_stopped(p); m++) {
        const posenc_case_map *map  = &t->c->maps[m];
        const posenc_tensor    out  = cli_make_like(p, POSENC_DTYPE_I64, rel);
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
        const posenc_tensor *params = cli_initial(p, POSENC_DTYPE_F64);
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

static void (*const by_place[POSENC_PLACE_COUNT])(cli_trial *t) = {
    [POSENC_PLACE_INPUT]  = cli_run_rows,
    [POSENC_PLACE_ROTARY] = cli_run_rotation,
    [POSENC_PLACE_SCORE]  = cli_run_attention,
    [POSENC_PLACE_WEIGHT] = cli_run_attention,
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

void cli_case_run(cli_case_result *result, const char *dir, const posenc_arrays *file, const posenc_case *c,
                  const cli_case_options *options)
{
    cli_trial    t = {.p = cli_problem_new(c->file), .c = c, .options = options, .result = result};
    cli_problem *p = &t.p;
    *result        = (cli_case_result){0};
    if (!dir) {
        p->file = *file;
        p->used = cli_block(p, (size_t)file->count);
        run_trial(&t);
        return;
    }
    if (strchr(c->file, '/'))
        cli_refuse(p, "its file name leaves the folder; name a file beside the manifest");
    cli_problem_read(p, cli_text(p, "%s/%s", dir, c->file));
    run_trial(&t);
    posenc_arrays_free(&p->file);
}

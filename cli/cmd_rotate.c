/* SPDX-License-Identifier: MIT */
/*
 * cmd_rotate.c: posenc rotate: queries and keys of a file, turned by their positions
 *
 * For whoever holds a dump of q before and after "their" RoPE, or wants the rotation that a model was trained
 * with: q, k or both go in under the names that the reference cases use, out_q and out_k come out in the same
 * shape and type. Run on a reference case it gives that case's results.
 *
 * Complex numbers (<c8, <c16) are pairs of channels by themselves: number m of a row is pair m, as in the
 * code that multiplies by exp(i a). So the layout is known, and another one asked for is refused.
 *
 * Where q and k have different lengths and no positions, nobody can say where the queries stand among the
 * keys: that is refused, not guessed. Everything is checked before anything is computed, and the output is
 * written whole at the end.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "inferred.h"

static const cli_option options[] = {
    {'i', "input", "F", "q, k or both: .npz, .npy or .safetensors; - is standard input"},
    {'o', "output", "F", "where they go: .npz, or .npy for one array; - is standard output, as .npz"},
    CLI_CONFIG_OPTIONS,
    {0, "set", "K=V", "a setting of the rotation; may be repeated (posenc list rope shows them)"},
    {0, "inverse", NULL,
     "turn back, by the same angles and the same magnitude: the transpose, so the gradient"},
    {0, "offset", "N",
     "position of the first token where there is no array of positions (the standard is 0)"},
    {0, "heads-layout", "NAME", "order of the axes of q and k: bhld (the standard) or blhd"},
    {0, "threads", "N", "0 is one per core (the standard); the results are the same for any number"},
    {0},
};

enum { QUERIES, KEYS, SIDES };

/* q or k; all that is said of one holds of the other. */
typedef struct side {
    const posenc_array *array; /* of the file; NULL: it has none */
    int64_t             shape[4];
    posenc_tensor       from, to; /* [B,H,L,D], a complex number as two channels */
    posenc_positions    pos;
} side;

typedef struct job {
    const cli_args  *args;
    const char      *output;
    cli_inputs       in;
    cli_config       config;
    int              is_blhd;
    int64_t          offset, threads;
    side             sides[SIDES];
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_dims      dims;
    cli_params       params;
    posenc_arrays    results;
} job;

/* ---------------------------------------------------------------- the arguments ------------- */

static int read_arguments(job *j)
{
    static const char *const layouts[] = {"bhld", "blhd", NULL};
    static const int64_t     most = INT64_C(1) << 52; /* of a position, with room for the tokens behind */
    j->output                     = cli_value(j->args, "output");
    if (cli_count(j->args) > 1)
        return cli_usage("rotate: give one rotary encoding, or none for rope, not %d", cli_count(j->args));
    if (cli_count(j->args) && cli_value(j->args, "config"))
        return cli_usage("rotate: %s and --config both say how to rotate; give one of them",
                         cli_at(j->args, 0));
    if (!cli_value(j->args, "input"))
        return cli_usage("rotate: the input is missing; name a file with q, k or both: -i F");
    if (!j->output)
        return cli_usage("rotate: the output is missing; name a file that ends in .npz or .npy: -o F");
    if (strcmp(j->output, "-") && !cli_ends_with(j->output, ".npz") && !cli_ends_with(j->output, ".npy"))
        return cli_usage("rotate: the output %s must end in .npz or .npy, or be -", j->output);
    j->is_blhd = cli_choice(j->args, "heads-layout", layouts);
    if (j->is_blhd < 0 || cli_integer(j->args, "offset", -most, most, &j->offset) < 0 ||
        cli_integer(j->args, "threads", 0, 4096, &j->threads) < 0)
        return CLI_USAGE;
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the encoding -------------- */

static int check_places(const job *j)
{
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(j->e, (posenc_place)place);
        if (part && place != POSENC_ROTARY)
            return cli_usage("rotate: %s acts at place %s and turns nothing; leave it out", part->name,
                             posenc_place_name(part->place));
    }
    return CLI_DONE;
}

static const char *spec_of(const job *j)
{
    return j->config.group ? j->config.group->spec : cli_count(j->args) ? cli_at(j->args, 0) : "rope";
}

static int read_config(job *j)
{
    return cli_config_read(&j->config, j->args);
}

/* Takes the settings over. */
static int create(job *j, char *settings)
{
    posenc_error err;
    if (!settings)
        return cli_failed("rotate: there is no memory for the settings");
    posenc_encoding_free(j->e);
    j->e                       = NULL;
    const posenc_status status = posenc_encoding_create(&j->e, spec_of(j), settings, &err);
    free(settings);
    return status ? cli_error(&err) : check_places(j);
}

static int make_encoding(job *j)
{
    return create(j, cli_settings(j->args));
}

static int holds_complex(const job *j)
{
    const posenc_array *q = j->sides[QUERIES].array, *k = j->sides[KEYS].array;
    return (q && q->is_complex) || (k && k->is_complex);
}

/* The settings of the call. Complex numbers are pairs in a model of any layout; what was set is left to
   check_layout. */
static char *settings_of(const job *j)
{
    static const char neighbours[] = "layout=interleaved layout_out=same ";
    char *given = cli_settings(j->args), *all = given ? malloc(sizeof neighbours + strlen(given)) : NULL;
    if (all)
        sprintf(all, "%s%s", j->config.group && holds_complex(j) ? neighbours : "", given);
    free(given);
    return all;
}

/* What the arrays of the input say about settings that were not given. */
static int infer_settings(job *j)
{
    cli_param_search search = {&j->in, j->e};
    char            *given = settings_of(j), *all = NULL;
    if (given)
        all = cli_inferred_settings(j->e, spec_of(j), given, cli_params_array, &search);
    free(given);
    return create(j, all);
}

/* ---------------------------------------------------------------- q and k ------------------- */

static int read_input(job *j)
{
    return cli_inputs_read(&j->in, cli_value(j->args, "input"));
}

/* [L,D], [H,L,D] or [B,H,L,D] as [B,H,L,D]; blhd has the last heads before the width. */
static void name_axes(int64_t shape[4], int is_blhd, int32_t n, const int64_t *size)
{
    const int swapped = is_blhd && n > 2;
    shape[0]          = n > 3 ? size[0] : 1;
    shape[1]          = n > 2 ? size[swapped ? n - 2 : n - 3] : 1;
    shape[2]          = size[swapped ? n - 3 : n - 2];
    shape[3]          = size[n - 1];
}

/* [B,H,L,D] of the elements at `data`, which lie in the file's order. */
static posenc_tensor in_layout(const job *j, void *data, posenc_dtype dtype, const int64_t shape[4])
{
    return j->is_blhd ? posenc_tensor_from_blhd(data, dtype, shape[0], shape[2], shape[1], shape[3])
                      : posenc_tensor_contiguous(data, dtype, 4, shape);
}

static int read_side(job *j, side *s)
{
    char                 text[CLI_SHAPE_TEXT];
    const posenc_tensor *t = &s->array->tensor;
    const int32_t        n = t->ndim - s->array->is_complex;
    cli_shape_text(text, n, t->shape);
    if (!cli_is_float(t->dtype))
        return cli_inputs_fail(
            &j->in, "%s holds whole numbers; it must be float64, float32, float16, bfloat16 or complex",
            s->array->name);
    if (n < 2 || n > 4)
        return cli_inputs_fail(&j->in, "%s has the shape %s; it must be %s", s->array->name, text,
                               j->is_blhd ? "[L,D], [L,H,D] or [B,L,H,D]"
                                          : "[L,D], [H,L,D] or [B,H,L,D] (--heads-layout blhd: L before H)");
    for (int32_t a = 0; a < n; a++)
        if (t->shape[a] < 1)
            return cli_inputs_fail(&j->in, "%s has the shape %s; every size must be at least 1",
                                   s->array->name, text);
    name_axes(s->shape, j->is_blhd, n, t->shape);
    s->shape[3] *= s->array->is_complex ? 2 : 1;
    s->from = in_layout(j, t->data, t->dtype, s->shape);
    return CLI_DONE;
}

/* A file of neither is what this command wrote, or a lone .npy, whose name is that of its file. */
static void find_sides(job *j)
{
    static const char *const names[][SIDES][3] = {{{"q", "in_q", NULL}, {"k", "in_k", NULL}},
                                                  {{"out_q", NULL}, {"out_k", NULL}}};
    side                    *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    for (size_t i = 0; i < sizeof names / sizeof *names && !q->array && !k->array; i++) {
        q->array = cli_inputs_array(&j->in, names[i][QUERIES]);
        k->array = cli_inputs_array(&j->in, names[i][KEYS]);
    }
    if (q->array || k->array || j->in.file.count != 1 || !cli_ends_with(j->in.path, ".npy"))
        return;
    const char *const only[] = {j->in.file.items[0].name, NULL};
    q->array                 = cli_inputs_array(&j->in, only);
}

/* Where q and k meet, their sizes must. */
static int check_both(job *j)
{
    const int64_t *q = j->sides[QUERIES].shape, *k = j->sides[KEYS].shape;
    if (q[0] != k[0] || q[3] != k[3])
        return cli_inputs_fail(&j->in, "q has batch %lld and width %lld, k %lld and %lld; they must be equal",
                               (long long)q[0], (long long)q[3], (long long)k[0], (long long)k[3]);
    if (q[1] % k[1] != 0)
        return cli_inputs_fail(&j->in, "k has %lld heads but q has %lld; heads of k must divide heads of q",
                               (long long)k[1], (long long)q[1]);
    return CLI_DONE;
}

static int read_sides(job *j)
{
    side *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    find_sides(j);
    for (int i = 0; i < SIDES; i++)
        if (!j->in.status && j->sides[i].array)
            read_side(j, &j->sides[i]);
    if (!j->in.status && !q->array && !k->array)
        return cli_inputs_fail(&j->in, "it has neither q (or in_q) nor k (or in_k)");
    if (!j->in.status && q->array && k->array)
        check_both(j);
    if (!j->in.status && cli_ends_with(j->output, ".npy") && q->array && k->array)
        return cli_inputs_fail(&j->in, "it has q and k, but %s can hold one array; name an .npz", j->output);
    const int64_t *one = q->array ? q->shape : k->shape, *other = k->array ? k->shape : q->shape;
    j->dims = (posenc_dims){
        .B = one[0], .H = one[1], .G = other[1], .Lq = one[2], .Lk = other[2], .D = one[3], .Dv = one[3]};
    return j->in.status;
}

/* Pairs of complex numbers are neighbours in memory, whatever their real parts are to each other. */
static int check_layout(job *j)
{
    for (int i = 0; i < SIDES; i++)
        if (j->sides[i].array && j->sides[i].array->is_complex &&
            strstr(posenc_encoding_spec(j->e), "layout"))
            return cli_inputs_fail(&j->in,
                                   "%s holds complex numbers, which are pairs already; leave out the layout",
                                   j->sides[i].array->name);
    return CLI_DONE;
}

/* A head of another width has other channels at the places that the model rotates. */
static int check_width(job *j)
{
    const int64_t D = j->config.group ? j->config.group->dims.D : 0;
    if (D && D != j->dims.D && !cli_value(j->args, "set"))
        return cli_inputs_fail(
            &j->in,
            "%s is %lld wide but a head of %s %lld; give whole heads, or say by --set dim=... and "
            "--set offset_dim=... which channels turn",
            j->sides[QUERIES].array ? "q" : "k", (long long)j->dims.D, j->config.path, (long long)D);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- positions ----------------- */

static int read_positions(job *j)
{
    static const char *const names[SIDES][5] = {{"q_pos", "in_q_pos", "pos", "in_pos", NULL},
                                                {"k_pos", "in_k_pos", "pos", "in_pos", NULL}};
    int                      arrays          = 0;
    for (int i = 0; i < SIDES; i++) {
        side               *s     = &j->sides[i];
        const posenc_tensor array = s->array ? cli_inputs_positions(&j->in, names[i]) : (posenc_tensor){0};
        s->pos = array.data ? posenc_positions_array(array) : posenc_positions_range((double)j->offset, 1);
        arrays += array.data != NULL;
    }
    const side *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    if (arrays && cli_value(j->args, "offset"))
        cli_inputs_fail(&j->in, "it has positions; leave out --offset, or the array");
    if (q->array && k->array && q->shape[2] != k->shape[2] && arrays < SIDES)
        cli_inputs_fail(&j->in,
                        "q has %lld tokens and k %lld; say where both stand, in arrays q_pos and k_pos",
                        (long long)q->shape[2], (long long)k->shape[2]);
    return j->in.status;
}

static int make_plan(job *j)
{
    posenc_error                err;
    posenc_options              with = posenc_options_default();
    const posenc_encoding_info *part = posenc_encoding_part(j->e, POSENC_ROTARY);
    with.threads                     = (int)j->threads;
    with.mask =
        part && part->causal_only ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE; /* no scores are made here */
    return posenc_plan_create(&j->plan, j->e, &j->dims, &with, &err) ? cli_error(&err) : CLI_DONE;
}

/* Frequencies that the settings ask for are never made up. */
static int make_params(job *j)
{
    if (cli_params_make(&j->params, &j->in, j->e, &j->dims, POSENC_F64, 0))
        return j->in.status;
    const int status = cli_config_params(&j->config, &j->params, j->e);
    for (int i = 0; i < j->params.count && !status; i++)
        if (j->params.is_initial[i])
            return cli_inputs_fail(&j->in, "it has no array %s (or par_%s), which %s needs",
                                   posenc_param_name(j->e, i), posenc_param_name(j->e, i),
                                   posenc_encoding_spec(j->e));
    return status;
}

/* ---------------------------------------------------------------- results ------------------- */

/* Like the array of the file; NumPy has no bfloat16, so that becomes float32. */
static int make_result(job *j, side *s, const char *name)
{
    const posenc_tensor *like  = &s->array->tensor;
    const posenc_dtype   dtype = like->dtype == POSENC_BF16 ? POSENC_F32 : like->dtype;
    const posenc_tensor *to    = posenc_arrays_add(&j->results, name, dtype, like->ndim, like->shape);
    if (!to)
        return cli_failed("rotate: there is no memory for %s", name);
    j->results.items[j->results.count - 1].is_complex = s->array->is_complex;

    s->to = in_layout(j, to->data, dtype, s->shape);
    return CLI_DONE;
}

static int make_results(job *j)
{
    static const char *const names[SIDES] = {"out_q", "out_k"};
    int                      status       = CLI_DONE;
    for (int i = 0; i < SIDES && !status; i++)
        status = j->sides[i].array ? make_result(j, &j->sides[i], names[i]) : CLI_DONE;
    return status;
}

static int compute(job *j)
{
    posenc_error           err;
    const side            *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    void                  *work = cli_inputs_block(&j->in, posenc_plan_workspace(j->plan, POSENC_FORWARD));
    const posenc_rotate_io io   = {.q         = q->from,
                                   .k         = k->from,
                                   .q_pos     = q->pos,
                                   .k_pos     = k->pos,
                                   .to_q      = q->to,
                                   .to_k      = k->to,
                                   .direction = cli_value(j->args, "inverse") ? -1 : 1,
                                   .params    = j->params.tensors};
    if (!work)
        return j->in.status;
    return posenc_rotate(j->plan, &io, work, &err) ? cli_error(&err) : CLI_DONE;
}

static int write_results(job *j)
{
    posenc_error err;
    if (posenc_arrays_write(&j->results, j->output, &err))
        return cli_error(&err);
    cli_config_warn(&j->config);
    cli_inputs_warn_unused(&j->in, "gin_");
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the command --------------- */

static void free_job(job *j)
{
    posenc_plan_free(j->plan);
    posenc_encoding_free(j->e);
    posenc_arrays_free(&j->results);
    cli_inputs_free(&j->in);
    cli_params_free(&j->params);
    cli_config_free(&j->config);
}

typedef int step(job *j);

static int run(const cli_args *args)
{
    static step *const steps[] = {read_arguments, read_config,  make_encoding, read_input,     read_sides,
                                  infer_settings, check_layout, check_width,   read_positions, make_plan,
                                  make_params,    make_results, compute,       write_results};
    job                j       = {.args = args};
    int                status  = CLI_DONE;
    for (size_t i = 0; !status && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](&j);
    free_job(&j);
    return status;
}

const cli_command cli_rotate = {
    .name     = "rotate",
    .summary  = "queries and keys of a file, turned by their positions",
    .synopsis = "[SPEC | --config F [--layer N]] -i F -o F [--set K=V]... [--inverse] [--offset N]",
    .details =
        "SPEC is a rotary encoding, rope if none is given, with settings in brackets or by --set. --config "
        "takes the "
        "rotation that a model was trained with from its own file; --set overrides parts of it.\n\n"
        "The input holds q, k or both: [B,H,L,D], [H,L,D] or [L,D], float64, float32, float16, bfloat16, or "
        "complex numbers (complex64, complex128), each of which is a pair. It may hold positions, pos for "
        "both "
        "or q_pos and k_pos: [L], [B,L], or [B,L,N] of N coordinates, whole or real; without them tokens are "
        "numbered from --offset on. Frequencies and factors that the settings ask for (posenc list rope) are "
        "arrays of "
        "their names. The names of reference cases are understood too: in_q, in_k, in_pos, par_inv_freq; "
        "where there are none, out_q and out_k of a former call are read. The array of an .npy is q, unless "
        "the file "
        "is named k.npy.\n\n"
        "The output holds out_q and out_k in the same shapes and types; bfloat16, for which NumPy has no "
        "type, "
        "becomes float32.",
    .options = options,
    .run     = run,
};

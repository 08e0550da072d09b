/* SPDX-License-Identifier: MIT */
/*
 * cmd_attend.c: posenc attend: attention with an encoding, or several, on the tensors of a file
 *
 * For whoever ports a model and asks "are these numbers right?": q, k, v and the parameters go in under
 * the names that the reference cases use, o and lse come out, with --grad the gradients of everything.
 * Run on a reference case, it gives that case's out_* and g_* arrays.
 *
 * The file decides what it can: sizes come from the tensors, masks and positions are there or not, and
 * float64 tensors go to the reference executor. A parameter that is missing is initialised as its
 * source says, and a warning names it if training would have changed it.
 *
 * Everything is checked before anything is computed, and the output is written whole at the end.
 */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halves.h"
#include "inferred.h"
#include "params.h"

static const cli_option options[] = {
    {'i', "input", "F", "tensors: .npz or .safetensors; - is standard input"},
    {'o', "output", "F", "where the results go: .npz; - is standard output"},
    {0, "set", "[NAME.]K=V", "a setting of the encoding; may be repeated (posenc list NAME shows them)"},
    {0, "causal", NULL, "a query sees no key beyond its own position"},
    {0, "window", "N", "a query sees keys at distances below N only"},
    {0, "segments", "NAME",
     "what segments in the input do: mask (packed sequences) or see (the encoding's terms)"},
    {0, "scale", "X", "factor of the products in a score (the standard is the encoding's own)"},
    {0, "q-offset", "N", "position of the first query where there is no array q_pos (the standard is 0)"},
    {0, "heads-layout", "NAME", "order of q, k, v, dout and the results: bhld (the standard) or blhd"},
    {0, "executor", "NAME",
     "reference (float64), tiled (float32), or auto: reference for float64 tensors (the standard)"},
    {0, "grad", NULL, "also the gradients of q, k, v and of every parameter"},
    {0, "seed", "N", "for parameters that the file does not have (the standard is 0)"},
    {0, "threads", "N", "0 is one per core (the standard); the results are the same for any number"},
    {0},
};

typedef struct job {
    const cli_args *args;
    cli_inputs      in;
    int             is_blhd, wants_grad, sees_segments;
    int64_t         q_offset, seed;
    posenc_options  options;
    posenc_dtype    dtype;            /* of the results */
    int64_t         q[4], k[4], v[4]; /* shapes, always [B,H,L,D] */

    posenc_encoding   *e;
    posenc_plan       *plan;
    posenc_dims        dims;
    posenc_attend_in   run;
    posenc_attend_out  to;
    posenc_attend_grad grad;
    cli_params         params;
    posenc_tensor     *dparams;
    int                in_halves; /* q, k and v came as real and imaginary parts; so go the results */
    posenc_arrays      results;
} job;

/* ---------------------------------------------------------------- the arguments ------------- */

static int read_choices(job *j)
{
    static const char *const     layouts[]   = {"bhld", "blhd", NULL};
    static const char *const     uses[]      = {"mask", "see", NULL};
    static const char *const     executors[] = {"auto", "reference", "tiled", NULL};
    static const posenc_executor chosen[]    = {POSENC_AUTO, POSENC_REFERENCE, POSENC_TILED};
    const int                    layout      = cli_choice(j->args, "heads-layout", layouts);
    const int                    use         = layout < 0 ? -1 : cli_choice(j->args, "segments", uses);
    const int                    executor    = use < 0 ? -1 : cli_choice(j->args, "executor", executors);
    if (executor < 0)
        return CLI_USAGE;
    j->is_blhd          = layout;
    j->sees_segments    = use;
    j->options.executor = chosen[executor];
    return CLI_DONE;
}

static int read_numbers(job *j)
{
    static const double most    = 0x1p53; /* of a position */
    int64_t             threads = 0;
    double              unused;
    const int           windowed = cli_integer(j->args, "window", 1, INT64_MAX / 4, &j->options.window);
    if (windowed < 0 || cli_integer(j->args, "q-offset", -(int64_t)most, (int64_t)most, &j->q_offset) < 0 ||
        cli_integer(j->args, "seed", 0, INT64_MAX, &j->seed) < 0 ||
        cli_integer(j->args, "threads", 0, 4096, &threads) < 0 ||
        cli_real(j->args, "scale", -HUGE_VAL, HUGE_VAL, &unused) < 0)
        return CLI_USAGE;
    j->options.threads = (int)threads;
    j->options.mask =
        (cli_value(j->args, "causal") ? POSENC_MASK_CAUSAL : 0) | (windowed ? POSENC_MASK_WINDOW : 0);
    j->wants_grad = cli_value(j->args, "grad") != NULL;
    return CLI_DONE;
}

static int read_names(const job *j)
{
    const char *output = cli_value(j->args, "output");
    if (cli_count(j->args) != 1)
        return cli_usage("attend: give one specification of an encoding, such as alibi or rope+t5, not %d",
                         cli_count(j->args));
    if (!cli_value(j->args, "input"))
        return cli_usage("attend: the input is missing; name a file with q, k and v: -i F");
    if (!output)
        return cli_usage("attend: the output is missing; name a file that ends in .npz: -o F");
    if (strcmp(output, "-") && !cli_ends_with(output, ".npz"))
        return cli_usage("attend: the output %s must end in .npz, or be -", output);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the encoding -------------- */

/* Every --set and --scale as one text; free() it. */
static char *settings_text(const cli_args *args)
{
    const char  *scale = cli_value(args, "scale");
    char        *given = cli_settings(args);
    const size_t size  = given ? strlen(given) + (scale ? strlen(scale) : 0) + sizeof " scale=" : 0;
    char        *text  = given ? malloc(size) : NULL;
    if (text)
        snprintf(text, size, "%s%s%s", given, scale ? " scale=" : "", scale ? scale : "");
    free(given);
    return text;
}

static int check_places(const job *j)
{
    const posenc_encoding_info *input = posenc_encoding_part(j->e, POSENC_INPUT);
    if (input)
        return cli_usage("attend: %s acts on the embeddings, before q, k and v exist; leave it out here",
                         input->name);
    for (int place = 0; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(j->e, (posenc_place)place);
        if (part && part->causal_only && !(j->options.mask & POSENC_MASK_CAUSAL))
            return cli_usage("attend: %s has a meaning with a causal mask only: %s; add --causal", part->name,
                             part->why_causal);
    }
    return CLI_DONE;
}

static int create(job *j, char *settings)
{
    posenc_error err;
    if (!settings)
        return cli_failed("attend: there is no memory for the settings");
    const posenc_status status = posenc_encoding_create(&j->e, cli_at(j->args, 0), settings, &err);
    free(settings);
    return status ? cli_error(&err) : check_places(j);
}

static int make_encoding(job *j)
{
    return create(j, settings_text(j->args));
}

/* What the arrays of the input say about settings that were not given. */
static int infer_settings(job *j)
{
    cli_param_search search = {&j->in, j->e};
    char            *given = settings_text(j->args), *all = NULL;
    if (given)
        all = cli_inferred_settings(j->e, cli_at(j->args, 0), given, cli_params_array, &search);
    free(given);
    posenc_encoding_free(j->e);
    j->e = NULL;
    return create(j, all);
}

/* ---------------------------------------------------------------- q, k, v ------------------- */

/* [B,H,L,D] of an array in the file's layout. */
static posenc_tensor in_layout(const job *j, posenc_tensor t)
{
    return j->is_blhd
               ? posenc_tensor_from_blhd(t.data, t.dtype, t.shape[0], t.shape[1], t.shape[2], t.shape[3])
               : t;
}

/* An array under one of its two names; or its real and imaginary parts, the same names followed by r and i,
   as one. */
static posenc_tensor whole(job *j, const char *const *names)
{
    char          text[2][2][CLI_SHAPE_TEXT];
    const char   *parts[2][3] = {{text[0][0], text[0][1], NULL}, {text[1][0], text[1][1], NULL}};
    posenc_tensor half[2];
    int64_t       shape[POSENC_MAX_DIMS];
    for (int part = 0; part < 2; part++)
        for (int n = 0; n < 2; n++)
            snprintf(text[part][n], sizeof text[part][n], "%s%c", names[n], "ri"[part]);
    if (cli_inputs_find(&j->in, names).data || !cli_inputs_find(&j->in, parts[0]).data)
        return cli_inputs_need(&j->in, names);
    for (int part = 0; part < 2; part++)
        half[part] = cli_inputs_need(&j->in, parts[part]);
    if (!j->in.status && !cli_are_halves(&half[0], &half[1]))
        cli_inputs_fail(&j->in, "%s and %s must have one shape and type: they are parts of one array",
                        text[0][0], text[1][0]);
    if (j->in.status)
        return (posenc_tensor){0};
    cli_whole_shape(shape, &half[0]);
    posenc_tensor both = cli_inputs_make(&j->in, half[0].dtype, half[0].ndim, shape);
    if (both.data)
        cli_join_halves(&both, &half[0], &half[1]);
    j->in_halves++;
    return both;
}

/* An array of four axes, each at least 1, of real numbers. */
static posenc_tensor heads(job *j, const char *const *names, int64_t shape[4])
{
    char                text[CLI_SHAPE_TEXT];
    const posenc_tensor t = whole(j, names);
    if (!t.data)
        return t;
    cli_shape_text(text, t.ndim, t.shape);
    if (t.ndim != 4)
        cli_inputs_fail(&j->in, "%s has the shape %s; it must have four axes, %s", names[0], text,
                        j->is_blhd ? "[B,L,H,D]" : "[B,H,L,D] (or [B,L,H,D] with --heads-layout blhd)");
    else if (t.shape[0] < 1 || t.shape[1] < 1 || t.shape[2] < 1 || t.shape[3] < 1)
        cli_inputs_fail(&j->in, "%s has the shape %s; every size must be at least 1", names[0], text);
    else if (!cli_is_float(t.dtype))
        cli_inputs_fail(&j->in, "%s holds whole numbers; it must be float64, float32, float16 or bfloat16",
                        names[0]);
    if (j->in.status)
        return (posenc_tensor){0};
    const posenc_tensor view = in_layout(j, t);
    memcpy(shape, view.shape, 4 * sizeof *shape);
    return view;
}

/* An axis of k or v that must be as long as another's. */
static void must_match(job *j, const char *what, int64_t size, const char *other, int64_t wanted)
{
    if (size != wanted)
        cli_inputs_fail(&j->in, "%s is %lld but %s is %lld; they must be equal", what, (long long)size, other,
                        (long long)wanted);
}

static int read_heads(job *j)
{
    static const char *const names[3][3] = {{"q", "in_q"}, {"k", "in_k"}, {"v", "in_v"}};
    j->run.q                             = heads(j, names[0], j->q);
    j->run.k                             = heads(j, names[1], j->k);
    j->run.v                             = heads(j, names[2], j->v);
    if (j->in.status)
        return j->in.status;
    if (j->in_halves != 0 && j->in_halves != 3)
        return cli_inputs_fail(
            &j->in, "some of q, k and v are in two parts and some whole; give all of them in one way");
    must_match(j, "the batch of k", j->k[0], "that of q", j->q[0]);
    must_match(j, "the width of k", j->k[3], "that of q", j->q[3]);
    must_match(j, "the batch of v", j->v[0], "that of k", j->k[0]);
    must_match(j, "the number of heads of v", j->v[1], "that of k", j->k[1]);
    must_match(j, "the length of v", j->v[2], "that of k", j->k[2]);
    if (j->q[1] % j->k[1] != 0)
        cli_inputs_fail(&j->in, "k has %lld heads but q has %lld; heads of k must divide heads of q",
                        (long long)j->k[1], (long long)j->q[1]);
    j->dims = (posenc_dims){.B  = j->q[0],
                            .H  = j->q[1],
                            .G  = j->k[1],
                            .Lq = j->q[2],
                            .Lk = j->k[2],
                            .D  = j->q[3],
                            .Dv = j->v[3],
                            .L  = j->k[2]};
    if (j->options.executor == POSENC_AUTO)
        j->options.executor = j->run.q.dtype == POSENC_F64 ? POSENC_REFERENCE : POSENC_TILED;
    j->dtype = j->options.executor == POSENC_REFERENCE ? POSENC_F64 : POSENC_F32;
    return j->in.status;
}

/* ---------------------------------------------------------------- positions and masks ------- */

/* An array of whole numbers, as `dtype`, with so many axes. */
static posenc_tensor whole_array(job *j, const char *const *names, posenc_dtype dtype, int32_t ndim)
{
    const posenc_tensor t = cli_inputs_find(&j->in, names);
    if (t.data && cli_is_float(t.dtype))
        cli_inputs_fail(&j->in, "%s holds real numbers; it must be whole numbers or booleans", names[0]);
    return cli_with_axes(cli_inputs_convert(&j->in, dtype, &t), ndim);
}

/* `pos` is for both, unless it is a parameter (tupe). */
static void read_positions(job *j)
{
    const char *const   pos     = cli_is_param(j->e, "pos") ? NULL : "pos";
    const char *const   q[]     = {"q_pos", "in_q_pos", "in_pos", pos, NULL};
    const char *const   k[]     = {"k_pos", "in_k_pos", "in_pos", pos, NULL};
    const posenc_tensor q_array = cli_inputs_positions(&j->in, q), k_array = cli_inputs_positions(&j->in, k);
    j->run.q_pos = posenc_positions_range((double)j->q_offset, 1);
    j->run.k_pos = posenc_positions_range(0, 1);
    if (q_array.data && cli_value(j->args, "q-offset"))
        cli_inputs_fail(&j->in, "it has positions of the queries; leave out --q-offset, or the array");
    if (q_array.data)
        j->run.q_pos = posenc_positions_array(q_array);
    if (k_array.data)
        j->run.k_pos = posenc_positions_array(k_array);
}

/* What segments do is never guessed: packed sequences must not see each other, a model with segment terms
   must. */
static void read_segments(job *j)
{
    static const char *const q[]   = {"q_segments", "in_q_segments", "segment_ids", "in_segment_ids", NULL};
    static const char *const k[]   = {"k_segments", "in_k_segments", "segment_ids", "in_segment_ids", NULL};
    const char              *given = cli_value(j->args, "segments");
    j->run.q_segments              = whole_array(j, q, POSENC_I64, 2);
    j->run.k_segments              = whole_array(j, k, POSENC_I64, 2);
    const int both                 = j->run.q_segments.data && j->run.k_segments.data;
    if (!both && (j->run.q_segments.data || j->run.k_segments.data))
        cli_inputs_fail(&j->in, "it has %s alone; give both q_segments and k_segments, or neither",
                        j->run.q_segments.data ? q[0] : k[0]);
    else if (both && !given)
        cli_inputs_fail(&j->in, "it has segments; say what they do: --segments mask (packed sequences) or "
                                "--segments see (the encoding's terms alone)");
    else if (given && !both)
        cli_inputs_fail(&j->in, "it has no q_segments and k_segments, which --segments needs");
    j->options.mask |= given && !j->sees_segments ? POSENC_MASK_SEGMENTS : 0;
}

static void read_masks(job *j)
{
    static const char *const keys[] = {"key_allowed", "in_key_allowed", NULL};
    static const char *const all[]  = {"allowed", "in_allowed", "allow", "in_allow", NULL};
    j->run.key_allowed              = whole_array(j, keys, POSENC_U8, 2);
    j->run.allowed                  = whole_array(j, all, POSENC_U8, 4);
    j->options.mask |= (j->run.key_allowed.data ? POSENC_MASK_KEY_PADDING : 0) |
                       (j->run.allowed.data ? POSENC_MASK_EXPLICIT : 0);
}

/* The least and the greatest position; a range of L is known by its ends. */
static void widen_span(double *low, double *high, const posenc_positions *p, int64_t L)
{
    const posenc_tensor *a = &p->array;
    int64_t              n = a->data ? 1 : 0;
    for (int32_t axis = 0; axis < a->ndim && a->data; axis++)
        n *= a->shape[axis];
    *low  = a->data ? HUGE_VAL : p->start;
    *high = a->data ? -HUGE_VAL : p->start + (double)(L - 1);
    for (int64_t i = 0; i < n; i++) {
        const double x =
            a->dtype == POSENC_I64 ? (double)((const int64_t *)a->data)[i] : ((const double *)a->data)[i];
        *low  = fmin(*low, x);
        *high = fmax(*high, x);
    }
}

/* How many distances lie between the positions: the plan must hold them where an encoding acts by
   distance. */
static int64_t count_distances(const job *j)
{
    static const double most = 0x1p31;
    double              q_low, q_high, k_low, k_high;
    widen_span(&q_low, &q_high, &j->run.q_pos, j->q[2]);
    widen_span(&k_low, &k_high, &j->run.k_pos, j->k[2]);
    const double span = floor((q_high - k_low) - (q_low - k_high)) + 1;
    return span > 0 && span < most ? (int64_t)span : (int64_t)most;
}

static int make_plan(job *j)
{
    posenc_error err;
    read_positions(j);
    read_masks(j);
    read_segments(j);
    if (j->in.status)
        return j->in.status;
    const int64_t span       = count_distances(j);
    j->options.max_distances = span > j->q[2] + j->k[2] ? span : 0;
    return posenc_plan_create(&j->plan, j->e, &j->dims, &j->options, &err) ? cli_error(&err) : CLI_DONE;
}

static int make_params(job *j)
{
    j->dparams = calloc((size_t)posenc_param_count(j->e) + 1, sizeof *j->dparams);
    if (!j->dparams)
        return cli_failed("attend: there is no memory for %d gradients", posenc_param_count(j->e));
    const int status = cli_params_make(&j->params, &j->in, j->e, &j->dims, j->dtype, j->seed);
    j->run.params    = j->params.tensors;
    return status;
}

/* ---------------------------------------------------------------- results ------------------- */

static posenc_tensor result(job *j, const char *prefix, const char *name, int32_t ndim, const int64_t *shape)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const posenc_tensor *added = posenc_arrays_add(&j->results, full, j->dtype, ndim, shape);
    if (!added && !j->in.status)
        j->in.status = cli_failed("attend: there is no memory for %s", full);
    return added ? *added : (posenc_tensor){0};
}

/* [B,H,L,D] in the file's layout; where the inputs came in parts, a whole that is taken apart at the end. */
static posenc_tensor heads_result(job *j, const char *prefix, const char *name, const int64_t shape[4])
{
    const int64_t stored[4] = {shape[0], shape[j->is_blhd ? 2 : 1], shape[j->is_blhd ? 1 : 2], shape[3]};
    return in_layout(j, j->in_halves ? cli_inputs_make(&j->in, j->dtype, 4, stored)
                                     : result(j, prefix, name, 4, stored));
}

/* The parts of one such whole as results NAMEr and NAMEi. */
static void split_result(job *j, const char *prefix, const char *name, const posenc_tensor *view)
{
    const int64_t shape[4] = {view->shape[0], view->shape[j->is_blhd ? 2 : 1],
                              view->shape[j->is_blhd ? 1 : 2], view->shape[3] / 2};
    posenc_tensor parts[2];
    for (int part = 0; part < 2; part++) {
        char text[CLI_SHAPE_TEXT];
        snprintf(text, sizeof text, "%s%c", name, "ri"[part]);
        parts[part] = result(j, prefix, text, 4, shape);
    }
    const int64_t       both[4] = {shape[0], shape[1], shape[2], 2 * shape[3]};
    const posenc_tensor stored  = posenc_tensor_contiguous(view->data, view->dtype, 4, both);
    if (!j->in.status)
        cli_split_halves(&stored, &parts[0], &parts[1]);
}

static int split_results(job *j)
{
    if (!j->in_halves)
        return CLI_DONE;
    split_result(j, "out_", "o", &j->to.o);
    if (j->wants_grad) {
        split_result(j, "g_", "q", &j->grad.dq);
        split_result(j, "g_", "k", &j->grad.dk);
        split_result(j, "g_", "v", &j->grad.dv);
    }
    return j->in.status;
}

/* The file's, or ones. */
static posenc_tensor upstream(job *j, const int64_t o[4])
{
    static const char *const names[] = {"dout", "gin_do", NULL}, *const parts[] = {"doutr", "gin_dor", NULL};
    char    is[CLI_SHAPE_TEXT], must[CLI_SHAPE_TEXT];
    int64_t shape[4];
    if (!cli_inputs_find(&j->in, names).data && !cli_inputs_find(&j->in, parts).data) {
        posenc_tensor ones = cli_inputs_make(&j->in, j->dtype, 4, o);
        for (int64_t i = 0; ones.data && i < o[0] * o[1] * o[2] * o[3]; i++)
            if (j->dtype == POSENC_F64)
                ((double *)ones.data)[i] = 1;
            else
                ((float *)ones.data)[i] = 1;
        return ones;
    }
    const posenc_tensor t = heads(j, names, shape);
    if (t.data && memcmp(shape, o, sizeof shape))
        cli_inputs_fail(&j->in, "%s is for an output of shape %s, but it has %s (as [B,H,L,D])", names[0],
                        cli_shape_text(is, 4, shape), cli_shape_text(must, 4, o));
    return t;
}

static int make_results(job *j)
{
    const int64_t o[4] = {j->q[0], j->q[1], j->q[2], j->v[3]};
    j->to.o            = heads_result(j, "out_", "o", o);
    j->to.lse          = result(j, "out_", "lse", 3, o);
    if (!j->wants_grad || j->in.status)
        return j->in.status;
    j->grad = (posenc_attend_grad){.o    = j->to.o,
                                   .lse  = j->to.lse,
                                   .dout = upstream(j, o),
                                   .dq   = heads_result(j, "g_", "q", j->q),
                                   .dk   = heads_result(j, "g_", "k", j->k),
                                   .dv   = heads_result(j, "g_", "v", j->v)};
    for (int i = 0; i < posenc_param_count(j->e); i++)
        j->dparams[i] = result(j, "g_", posenc_param_name(j->e, i), j->params.tensors[i].ndim,
                               j->params.tensors[i].shape);
    j->grad.dparams = j->dparams;
    return j->in.status;
}

/* ---------------------------------------------------------------- the command --------------- */

static int compute(job *j)
{
    posenc_error err;
    const int    runs = POSENC_FORWARD | (j->wants_grad ? POSENC_BACKWARD : 0);
    void        *work = cli_inputs_block(&j->in, posenc_plan_workspace(j->plan, runs));
    if (!work)
        return j->in.status;
    if (posenc_attend(j->plan, &j->run, &j->to, work, &err) ||
        (j->wants_grad && posenc_attend_backward(j->plan, &j->run, &j->grad, work, &err)))
        return cli_error(&err);
    return CLI_DONE;
}

static int write_results(const job *j)
{
    posenc_error err;
    if (posenc_arrays_write(&j->results, cli_value(j->args, "output"), &err))
        return cli_error(&err);
    cli_params_warn_initial(&j->params, &j->in, j->e);
    cli_inputs_warn_unused(&j->in, j->wants_grad ? "" : "gin_");
    return CLI_DONE;
}

static int read_input(job *j)
{
    return cli_inputs_read(&j->in, cli_value(j->args, "input"));
}

static void free_job(job *j)
{
    posenc_plan_free(j->plan);
    posenc_encoding_free(j->e);
    posenc_arrays_free(&j->results);
    cli_inputs_free(&j->in);
    cli_params_free(&j->params);
    free(j->dparams);
}

typedef int step(job *j);

static int run(const cli_args *args)
{
    static step *const steps[] = {read_choices,   read_numbers, make_encoding, read_input,
                                  infer_settings, read_heads,   make_plan,     make_params,
                                  make_results,   compute,      split_results};
    job                j       = {.args = args, .options = posenc_options_default()};
    int                status  = read_names(&j);
    for (size_t i = 0; !status && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](&j);
    if (!status)
        status = write_results(&j);
    free_job(&j);
    return status;
}

const cli_command cli_attend = {
    .name     = "attend",
    .summary  = "attention with an encoding on the tensors of a file, with gradients",
    .synopsis = "SPEC -i F -o F [--set [NAME.]K=V]... [--causal] [--grad]",
    .details =
        "SPEC is an encoding or several joined by +, each with settings in brackets: "
        "t5[max_distance=64]+rope[base=5e5]. Those that act on the embeddings have no place here.\n\n"
        "The input holds q [B,H,Lq,D], k [B,G,Lk,D] and v [B,G,Lk,Dv]; G divides H. It may hold "
        "parameters of the encoding by name (posenc list NAME shows them); positions q_pos and k_pos, or "
        "pos for both ([L], [B,L] or [B,L,N], whole or real; where the encoding has a parameter pos, as tupe "
        "has, pos alone is that, and in_pos are positions for both); masks, where 0 forbids: key_allowed "
        "[B,Lk], "
        "allowed [B,H,Lq,Lk] (B and H may be 1); and segments: q_segments and k_segments, or segment_ids "
        "for both ([B,L], whole numbers). With --grad also dout, the gradient of the output; ones without "
        "it. The names of reference cases are understood too: in_q, in_allow, par_table, gin_do. Complex "
        "heads (complex_order_attention) are real parts, then imaginary parts along the last axis, or two "
        "arrays each, qr and qi, kr and ki, vr and vi; then the results are in two as well. A setting that "
        "is just "
        "an axis of a parameter in the file (mlp_width) need not be given.\n\n"
        "A parameter may be named with its encoding, tupe.pos, which a combination asks for.\n\n"
        "The output holds out_o, out_lse (natural log of the sum of exp over allowed keys) and with --grad "
        "g_q, g_k, g_v and g_PARAMETER: float64 from the reference executor, float32 from the tiled one.\n\n"
        "A parameter that the input lacks is initialised as its source does it; a warning names it.",
    .options = options,
    .run     = run,
};

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
#include "cli/commands/config.h"
#include "files/arrays/text.h"

#include <math.h>
#include <string.h>

typedef struct attend_job {
    pe_calc         p;
    const cli_args *args;
    cli_config      config;
    posenc_layer    layer; /* of SPEC */
    const char     *input, *output, *scale;
    int             causal, grad, segments_see, is_blhd, executor;
    int64_t         q_offset, threads;
    posenc_dtype    dtype; /* of the results */

    posenc_attend_in   run;
    posenc_attend_out  to;
    posenc_attend_grad grad_to;
    int                in_halves; /* q, k and v came as real and imaginary parts; so go the results */
    int32_t            axes[3];   /* of q, k and v in the file; their results have as many */
} attend_job;

#define MOST (INT64_C(1) << 53) /* of a position */

static const cli_option options[] = {
    {'i', "input", "F", "tensors: .npz, .safetensors or .csv; - is standard input", CLI_TEXT,
     offsetof(attend_job, input), .words = ".npz|.safetensors|.csv"},
    {'o', "output", "F",
     "where the results go: .npz or .csv; - is standard output, as .npz; without -o they are printed as CSV",
     CLI_TEXT, offsetof(attend_job, output), .words = ".npz|.csv"},
    CLI_CONFIG_FILE,
    CLI_CONFIG_TOWER,
    {0, "layer", "N", "which layer of --config, or of a SPEC per layer; needed if layers differ"},
    {0, "set", "[NAME.]K=V", "a setting of the encoding; may be repeated (posenc list NAME shows them)"},
    {0, "causal", NULL, "causal mask: a query sees no key after its own position", CLI_FLAG,
     offsetof(attend_job, causal)},
    {0, "window", "N",
     "sliding window: a query sees only keys at distances below N; a window in SPEC must be the same",
     CLI_WHOLE, offsetof(attend_job, p.options.window), 1, INT64_MAX / 4},
    {0, "segments", "NAME",
     "what segments in the input do: mask (packed sequences do not see each other) or see (only the "
     "encoding's terms use them)",
     CLI_WORD, offsetof(attend_job, segments_see), .words = "mask|see"},
    {0, "scale", "X", "factor of q.k in a score (default: the encoding's own)", CLI_REAL_TEXT,
     offsetof(attend_job, scale)},
    {0, "q-offset", "N", "position of the first query if the input has no array q_pos (default: 0)",
     CLI_WHOLE, offsetof(attend_job, q_offset), -MOST, MOST},
    {0, "heads-layout", "NAME", "axis order of q, k, v, dout and the results: bhld (default) or blhd",
     CLI_WORD, offsetof(attend_job, is_blhd), .words = "bhld|blhd"},
    {0, "executor", "NAME",
     "reference (float64), tiled (float32), or auto (default): reference for float64 tensors, else tiled",
     CLI_WORD, offsetof(attend_job, executor), .words = "auto|reference|tiled"},
    {0, "grad", NULL, "also write the gradients of q, k, v, every parameter and every token input", CLI_FLAG,
     offsetof(attend_job, grad)},
    {0, "seed", "N", "seed of parameters that the input does not have (default: 0)", CLI_WHOLE,
     offsetof(attend_job, p.seed), 0, INT64_MAX},
    {0, "threads", "N", "number of threads; 0 is one per core (default); results do not depend on it",
     CLI_WHOLE, offsetof(attend_job, threads), 0, 4096},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

static void read_arguments(attend_job *j)
{
    static const posenc_executor executors[] = {POSENC_EXECUTOR_AUTO, POSENC_EXECUTOR_REFERENCE,
                                                POSENC_EXECUTOR_TILED};
    pe_calc                     *p           = &j->p;
    if (j->args->count && cli_value(j->args, "config"))
        pe_calc_refuse(p, "%s and --config both say how to attend; give only one", cli_at(j->args, 0));
    else if (j->args->count != 1 && !cli_value(j->args, "config"))
        pe_calc_refuse(p, "give one specification of an encoding, such as alibi or rope+t5, not %d",
                       j->args->count);
    else if (!cli_value(j->args, "input"))
        pe_calc_refuse(p, "the input is missing; name a file with q, k and v: -i F");
    else
        cli_calc_output(p, j->args, ".npz .csv");
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_read(j->args, j));
    p->options.executor = executors[j->executor];
    p->options.threads  = (int)j->threads;
    p->options.mask     = (j->causal ? POSENC_MASK_CAUSAL : 0) | (p->options.window ? POSENC_MASK_WINDOW : 0);
}

/* ---------------------------------------------------------------- the encoding -------------- */

static const char *settings_of(attend_job *j)
{
    const char *given = cli_calc_settings(&j->p, j->args);
    return j->scale ? pe_calc_text(&j->p, "%s scale=%s", given, j->scale) : given;
}

static const char *spec_of(const attend_job *j)
{
    return j->config.group ? j->config.group->spec : j->layer.spec;
}

/* Layers that differ only in their windows are one group, so that there the layer must be known. */
static void read_window(attend_job *j)
{
    const cli_config  *c = &j->config;
    const posenc_fact *f = posenc_model_fact(c->group, "sliding_window");
    if (!f || j->p.options.window)
        return;
    if (f->kind == POSENC_FACT_INTEGERS && c->layer < 0)
        pe_calc_refuse(&j->p,
                       "some layers of %s have a sliding window and some have none; choose one by --layer N",
                       c->path);
    j->p.options.window =
        f->kind == POSENC_FACT_INTEGER ? f->integer : posenc_model_window(c->part, c->layer);
    j->p.options.mask |= j->p.options.window ? POSENC_MASK_WINDOW : 0;
}

/* SPEC may be one per layer, whose windows are the mask's. */
static void read_layer(attend_job *j)
{
    pe_calc    *p     = &j->p;
    const int   given = cli_value(j->args, "layer") != NULL;
    const char *spec  = cli_at(j->args, 0);
    int64_t     index = 0, window = p->options.window;
    if (cli_integer(j->args, "layer", 0, INT32_MAX, &index) < 0)
        cli_calc_said(p, CLI_USAGE);
    else if (posenc_layer_read(&j->layer, spec, index, &p->err))
        return;
    else if (given && j->layer.period == 1)
        pe_calc_refuse(
            p, "--layer selects a layer of a model, or of SPEC/SPEC; give --config F, or such a SPEC");
    else if (!given && j->layer.period > 1)
        pe_calc_refuse(p, "%s says something else of each layer; choose one by --layer N", spec);
    else if (window && j->layer.window && window != j->layer.window)
        pe_calc_refuse(p, "window is %lld in %s and %lld in --window; they must agree: leave out one of them",
                       (long long)j->layer.window, spec, (long long)window);
    p->options.window = window ? window : j->layer.window;
    p->options.mask |= p->options.window ? POSENC_MASK_WINDOW : 0;
}

static void make_encoding(attend_job *j)
{
    pe_calc  *p         = &j->p;
    const int of_a_spec = j->args->count && cli_value(j->args, "layer") && !cli_value(j->args, "tower");
    if (!of_a_spec)
        cli_calc_said(p, cli_config_read(&j->config, j->args, CLI_CONFIG_ATTEND));
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_config_refuse_others(&j->config));
    if (j->config.group)
        read_window(j);
    else if (!pe_calc_failed(p))
        read_layer(j);
    if (pe_calc_failed(p))
        return;
    pe_calc_encoding(p, spec_of(j), settings_of(j));
    for (int place = 0; place < POSENC_PLACE_COUNT && !pe_calc_failed(p); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part && place == POSENC_PLACE_INPUT)
            pe_calc_refuse(p, "%s acts on the embeddings, before q, k and v exist; leave it out here",
                           part->name);
        if (part && part->causal_only && !j->causal)
            pe_calc_refuse(p, "%s works only with a causal mask: %s; add --causal", part->name,
                           part->why_causal);
    }
}

/* ---------------------------------------------------------------- q, k, v ------------------- */

/* [B,H,L,D] of an array in the file's layout, if there is one. */
static posenc_tensor in_layout(const attend_job *j, posenc_tensor t)
{
    return t.data ? cli_calc_heads(&(posenc_array){.tensor = t}, j->is_blhd, t.data, t.dtype) : t;
}

/* The other way: the sizes of an array of so many axes in the file's layout. */
static void stored_shape(const attend_job *j, int64_t *to, const int64_t *bhld, int32_t axes)
{
    const int     swapped = j->is_blhd && axes > 2;
    const int64_t all[4]  = {bhld[0], bhld[swapped ? 2 : 1], bhld[swapped ? 1 : 2], bhld[3]};
    memcpy(to, all + 4 - axes, (size_t)axes * sizeof *to);
}

/* An array under one of its two names; or its real and imaginary parts, the same names followed by r and i,
   as one. */
static posenc_tensor whole(attend_job *j, const char *const *names)
{
    pe_calc      *p = &j->p;
    const char   *parts[2][3];
    posenc_tensor half[2];
    for (int part = 0; part < 2; part++) {
        parts[part][0] = pe_calc_text(p, "%s%c", names[0], "ri"[part]);
        parts[part][1] = pe_calc_text(p, "%s%c", names[1], "ri"[part]);
        parts[part][2] = NULL;
    }
    if (pe_calc_find(p, names).data || !pe_calc_find(p, parts[0]).data)
        return pe_calc_need(p, names);
    for (int part = 0; part < 2; part++)
        half[part] = pe_calc_need(p, parts[part]);
    const posenc_tensor both = pe_calc_join(p, half);
    if (!both.data)
        pe_calc_refuse(p, "%s and %s must have the same shape and type: they are parts of one array",
                       parts[0][0], parts[1][0]);
    j->in_halves++;
    return both;
}

/* An array of real numbers and at most four axes, each at least 1; how many it has. */
static posenc_tensor heads(attend_job *j, const char *const *names, int32_t *axes)
{
    pe_calc            *p = &j->p;
    const posenc_tensor t = whole(j, names);
    if (pe_calc_failed(p))
        return (posenc_tensor){0};
    cli_calc_check_heads(p, names[0], &t, t.ndim, p->file.items[0].is_text, j->is_blhd);
    if (!pe_tensor_is_float(t.dtype))
        pe_calc_refuse(p, "%s holds whole numbers; it must be float64, float32, float16 or bfloat16",
                       names[0]);
    *axes = t.ndim;
    return pe_calc_failed(p) ? (posenc_tensor){0} : in_layout(j, t);
}

/* An axis of k or v that must be as long as another's. */
static void must_match(attend_job *j, const char *what, int64_t size, const char *other, int64_t wanted)
{
    if (size != wanted)
        pe_calc_refuse(&j->p, "%s is %lld but %s is %lld; they must be equal", what, (long long)size, other,
                       (long long)wanted);
}

static void read_heads(attend_job *j)
{
    static const char *const names[3][3] = {{"q", "in_q"}, {"k", "in_k"}, {"v", "in_v"}};
    pe_calc                 *p           = &j->p;
    pe_calc_read(p, j->input);
    pe_calc_infer(p, spec_of(j), settings_of(j));
    const posenc_tensor q = heads(j, names[0], &j->axes[0]), k = heads(j, names[1], &j->axes[1]),
                        v = heads(j, names[2], &j->axes[2]);
    if (pe_calc_failed(p))
        return;
    if (j->in_halves != 0 && j->in_halves != 3)
        pe_calc_refuse(p, "some of q, k and v are split in two and some are whole; split all or none");
    must_match(j, "the batch of k", k.shape[0], "that of q", q.shape[0]);
    must_match(j, "the width of k", k.shape[3], "that of q", q.shape[3]);
    must_match(j, "the batch of v", v.shape[0], "that of k", k.shape[0]);
    must_match(j, "the number of heads of v", v.shape[1], "that of k", k.shape[1]);
    must_match(j, "the length of v", v.shape[2], "that of k", k.shape[2]);
    if (q.shape[1] % k.shape[1] != 0)
        pe_calc_refuse(p, "k has %lld heads but q has %lld; heads of k must divide heads of q",
                       (long long)k.shape[1], (long long)q.shape[1]);
    p->dims   = pe_calc_attention_dims(&q, &k, &v);
    p->dims.L = p->dims.Lk;
    if (j->config.group) {
        p->dims.d_model = j->config.group->dims.d_model;
        cli_config_check_width(&j->config, p, j->args, "q");
    }
    if (p->options.executor == POSENC_EXECUTOR_AUTO)
        p->options.executor = q.dtype == POSENC_DTYPE_F64 ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    j->dtype = p->options.executor == POSENC_EXECUTOR_REFERENCE ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32;
    j->run   = (posenc_attend_in){.size = sizeof(posenc_attend_in), .q = q, .k = k, .v = v};
}

/* ---------------------------------------------------------------- positions and masks ------- */

/* An array of whole numbers, as `dtype`, with so many axes. */
static posenc_tensor whole_numbers(attend_job *j, const char *const *names, posenc_dtype dtype, int32_t ndim)
{
    const posenc_array *array = pe_calc_find_array(&j->p, names);
    const posenc_tensor t     = pe_calc_find(&j->p, names);
    if (t.data && !pe_calc_is_whole(array))
        pe_calc_refuse(&j->p, "%s holds real numbers; it must be whole numbers or booleans", names[0]);
    return pe_calc_with_axes(pe_calc_convert(&j->p, dtype, &t), ndim);
}

/* `pos` is for both, unless it is a parameter (tupe). */
static void read_positions(attend_job *j)
{
    pe_calc            *p       = &j->p;
    const char *const   pos     = pe_calc_is_param(p, "pos") ? NULL : "pos";
    const char *const   q[]     = {"q_pos", "in_q_pos", "in_pos", pos, NULL};
    const char *const   k[]     = {"k_pos", "in_k_pos", "in_pos", pos, NULL};
    const posenc_tensor q_array = pe_calc_find_positions(p, q), k_array = pe_calc_find_positions(p, k);
    j->run.q_pos = posenc_positions_range((double)j->q_offset, 1);
    j->run.k_pos = posenc_positions_range(0, 1);
    if (q_array.data && cli_value(j->args, "q-offset"))
        pe_calc_refuse(p,
                       "both the file and --q-offset give positions of the queries; leave out one of them");
    if (q_array.data)
        j->run.q_pos = posenc_positions_array(q_array);
    if (k_array.data)
        j->run.k_pos = posenc_positions_array(k_array);
    pe_calc_match_positions(p, &j->run.q_pos, &j->run.k_pos);
}

/* What segments do is never guessed: packed sequences must not see each other, a model with segment terms
   must. */
static void read_segments(attend_job *j)
{
    static const char *const q[]   = {"q_segments", "in_q_segments", "segment_ids", "in_segment_ids", NULL};
    static const char *const k[]   = {"k_segments", "in_k_segments", "segment_ids", "in_segment_ids", NULL};
    const int                given = cli_value(j->args, "segments") != NULL;
    j->run.q_segments              = whole_numbers(j, q, POSENC_DTYPE_I64, 2);
    j->run.k_segments              = whole_numbers(j, k, POSENC_DTYPE_I64, 2);
    const int both                 = j->run.q_segments.data && j->run.k_segments.data;
    if (!both && (j->run.q_segments.data || j->run.k_segments.data))
        pe_calc_refuse(&j->p, "it has only %s; give both q_segments and k_segments, or neither",
                       j->run.q_segments.data ? q[0] : k[0]);
    else if (both && !given)
        pe_calc_refuse(&j->p, "it has segments; say what they do: --segments mask (packed sequences) or "
                              "--segments see (only the encoding's terms use them)");
    else if (given && !both)
        pe_calc_refuse(&j->p, "it has no q_segments and k_segments, which --segments needs");
    j->p.options.mask |= given && !j->segments_see ? POSENC_MASK_SEGMENTS : 0;
}

static void read_masks(attend_job *j)
{
    static const char *const keys[] = {"key_allowed", "in_key_allowed", NULL};
    static const char *const all[]  = {"allowed", "in_allowed", "allow", "in_allow", NULL};
    j->run.key_allowed              = whole_numbers(j, keys, POSENC_DTYPE_U8, 2);
    j->run.allowed                  = whole_numbers(j, all, POSENC_DTYPE_U8, 4);
    j->p.options.mask |= (j->run.key_allowed.data ? POSENC_MASK_KEY_PADDING : 0) |
                         (j->run.allowed.data ? POSENC_MASK_EXPLICIT : 0);
}

/* The least and the greatest position; a range of L is known by its ends. */
static void widen_span(double *low, double *high, const posenc_positions *p, int64_t L)
{
    const posenc_tensor *a = &p->array;
    *low                   = a->data ? HUGE_VAL : p->start;
    *high                  = a->data ? -HUGE_VAL : p->start + (double)(L - 1);
    for (int64_t i = 0; a->data && i < pe_tensor_elements(a); i++) {
        *low  = fmin(*low, pe_calc_element(a, i));
        *high = fmax(*high, pe_calc_element(a, i));
    }
}

/* How many distances lie between the positions: the plan must hold them where an encoding acts by
   distance. */
static int64_t count_distances(const attend_job *j)
{
    static const double most = 0x1p31;
    double              q_low, q_high, k_low, k_high;
    widen_span(&q_low, &q_high, &j->run.q_pos, j->p.dims.Lq);
    widen_span(&k_low, &k_high, &j->run.k_pos, j->p.dims.Lk);
    const double span = floor((q_high - k_low) - (q_low - k_high)) + 1;
    return span > 0 && span < most ? (int64_t)span : (int64_t)most;
}

static void make_plan(attend_job *j)
{
    read_positions(j);
    read_masks(j);
    read_segments(j);
    if (pe_calc_failed(&j->p))
        return;
    const int64_t span         = count_distances(j);
    j->p.options.max_distances = span > j->p.dims.Lq + j->p.dims.Lk ? span : 0;
    pe_calc_plan(&j->p, POSENC_RUN_FORWARD | (j->grad ? POSENC_RUN_BACKWARD : 0));
    pe_calc_params(&j->p, j->dtype);
    cli_config_params_of_attention(&j->config, &j->p);
    cli_calc_need_rotary(&j->p);
    j->run.params = j->p.params;
    j->run.tokens = pe_calc_tokens(&j->p, j->dtype);
}

/* ---------------------------------------------------------------- results ------------------- */

/* [B,H,L,D] in the file's layout; where the inputs came in parts, a whole that is split at the end. */
static posenc_tensor heads_result(attend_job *j, const char *name, const int64_t *shape, int32_t axes)
{
    int64_t stored[4];
    stored_shape(j, stored, shape, axes);
    return in_layout(j, j->in_halves ? pe_calc_make(&j->p, j->dtype, axes, stored)
                                     : pe_calc_result(&j->p, name, j->dtype, axes, stored));
}

/* The parts of one such whole as results NAMEr and NAMEi. */
static void split_result(attend_job *j, const char *name, const posenc_tensor *view, int32_t axes)
{
    int64_t whole[4], half[4];
    stored_shape(j, whole, view->shape, axes);
    memcpy(half, whole, sizeof half);
    half[axes - 1] /= 2;
    const posenc_tensor stored   = posenc_tensor_contiguous(view->data, view->dtype, axes, whole);
    const posenc_tensor parts[2] = {
        pe_calc_result(&j->p, pe_calc_text(&j->p, "%sr", name), j->dtype, axes, half),
        pe_calc_result(&j->p, pe_calc_text(&j->p, "%si", name), j->dtype, axes, half)};
    if (!pe_calc_failed(&j->p))
        pe_calc_split(&stored, parts);
}

/* The file's, or ones. */
static posenc_tensor upstream(attend_job *j, const int64_t o[4])
{
    static const char *const names[] = {"dout", "gin_do", NULL}, *const parts[] = {"doutr", "gin_dor", NULL};
    pe_calc *p = &j->p;
    if (!pe_calc_find(p, names).data && !pe_calc_find(p, parts).data) {
        posenc_tensor ones = pe_calc_make(p, j->dtype, 4, o);
        for (int64_t i = 0; ones.data && i < pe_tensor_elements(&ones); i++)
            pe_calc_put(&ones, i, 1);
        return ones;
    }
    int32_t             axes;
    const posenc_tensor t = heads(j, names, &axes);
    if (t.data && memcmp(t.shape, o, 4 * sizeof *o))
        pe_calc_refuse(p, "%s has the shape %s; it must have that of the output, %s (as [B,H,L,D])", names[0],
                       pe_calc_shape_text(p, 4, t.shape), pe_calc_shape_text(p, 4, o));
    return t;
}

static void make_gradients(attend_job *j, const int64_t o[4])
{
    const pe_calc *p = &j->p;
    j->grad_to =
        (posenc_attend_grad){.size    = sizeof(posenc_attend_grad),
                             .o       = j->to.o,
                             .lse     = j->to.lse,
                             .dout    = upstream(j, o),
                             .dq      = heads_result(j, "g_q", j->run.q.shape, j->axes[0]),
                             .dk      = heads_result(j, "g_k", j->run.k.shape, j->axes[1]),
                             .dv      = heads_result(j, "g_v", j->run.v.shape, j->axes[2]),
                             .dparams = pe_calc_block(&j->p, ((size_t)p->count + 1) * sizeof *p->params)};
    for (int i = 0; i < p->count && !pe_calc_failed(p); i++)
        j->grad_to.dparams[i] = pe_calc_result(&j->p, pe_calc_text(&j->p, "g_%s", posenc_param_name(p->e, i)),
                                               j->dtype, p->params[i].ndim, p->params[i].shape);
    const int tokens   = pe_calc_failed(p) ? 0 : posenc_token_count(p->e);
    j->grad_to.dtokens = pe_calc_block(&j->p, ((size_t)tokens + 1) * sizeof *j->grad_to.dtokens);
    for (int i = 0; i < tokens && !pe_calc_failed(p); i++)
        j->grad_to.dtokens[i] = pe_calc_result(&j->p, pe_calc_text(&j->p, "g_%s", posenc_token_name(p->e, i)),
                                               j->dtype, 4, j->run.tokens[i].shape);
}

static void make_results(attend_job *j)
{
    const int64_t o[4] = {j->p.dims.B, j->p.dims.H, j->p.dims.Lq, j->p.dims.Dv};
    const int32_t axes = j->axes[0] > 1 ? j->axes[0] - 1 : 1; /* of lse: [B,H,Lq], or the last of them */
    j->to.size         = sizeof j->to;
    j->to.o            = heads_result(j, "out_o", o, j->axes[0]);
    j->to.lse          = pe_calc_with_axes(pe_calc_result(&j->p, "out_lse", j->dtype, axes, o + 3 - axes), 3);
    if (j->grad)
        make_gradients(j, o);
}

/* ---------------------------------------------------------------- the command --------------- */

static void compute(attend_job *j)
{
    pe_calc *p = &j->p;
    if (!posenc_attend(p->plan, &j->run, &j->to, &p->work, &p->err) && j->grad)
        posenc_attend_backward(p->plan, &j->run, &j->grad_to, &p->work, &p->err);
}

static void write_results(attend_job *j)
{
    pe_calc *p = &j->p;
    if (j->in_halves)
        split_result(j, "out_o", &j->to.o, j->axes[0]);
    if (j->in_halves && j->grad) {
        split_result(j, "g_q", &j->grad_to.dq, j->axes[0]);
        split_result(j, "g_k", &j->grad_to.dk, j->axes[1]);
        split_result(j, "g_v", &j->grad_to.dv, j->axes[2]);
    }
    if (cli_calc_write(p, j->output))
        return;
    cli_config_warn(&j->config);
    cli_calc_warn_initial(p);
    cli_calc_warn_unused(p, j->grad ? "" : "gin_");
}

static int run(const cli_args *args)
{
    static void (*const steps[])(attend_job *) = {read_arguments, make_encoding, read_heads,   make_plan,
                                                  make_results,   compute,       write_results};
    attend_job j                               = {.args = args, .p = pe_calc_new("attend")};
    for (size_t i = 0; !pe_calc_failed(&j.p) && i < sizeof steps / sizeof *steps; i++)
        steps[i](&j);
    return cli_config_end(&j.config, &j.p);
}

static void lines(void (*line)(const char *text))
{
    line("One query, two keys, two values of one channel, by hand:");
    line("    printf '# q\\n1,0\\n# k\\n1,0\\n0,1\\n# v\\n5\\n7\\n' | posenc attend nope -i -");
}

const cli_command cli_attend = {
    .name    = "attend",
    .summary = "run attention with an encoding on tensors from a file, with gradients",
    .synopsis =
        "SPEC | --config F [--layer N] [--tower NAME] -i F [-o F] [--set [NAME.]K=V]... [--causal] [--grad]",
    .details =
        "SPEC is an encoding or several joined by +, each with settings in brackets: "
        "t5[max_distance=64]+rope[base=5e5]. It may have a window, rope[window=512], and be one per layer, "
        "rope[window=512]:3/nope, of which --layer chooses (the first is 0). Encodings that act on the "
        "embeddings are refused. "
        "--config reads what a layer of a model does from the model's own file: the encoding, its numbers, "
        "the "
        "factor of the scores and the sliding window; of a .safetensors also the trained parameters that the "
        "input lacks. Whether it is causal, --causal says.\n\n"
        "The input holds q [B,H,Lq,D], k [B,G,Lk,D] and v [B,G,Lk,Dv]; G divides H; without B, or without B "
        "and heads, they may have fewer axes ([L,D]), and so have the results. It may hold parameters "
        "of the encoding by name (posenc list NAME shows them); it holds the encoding's token inputs, "
        "[B,Ht,L,n] with H, G or 1 for Ht, whatever the layout (sink of sink=token); positions q_pos and "
        "k_pos, or pos for both "
        "([L], [B,L] or [B,L,N], whole or real; if the encoding has a parameter pos, as tupe does, pos is "
        "that parameter, and in_pos holds positions for both); masks, where 0 forbids: key_allowed [B,Lk], "
        "allowed [B,H,Lq,Lk] (B and H may be 1); and segments: q_segments and k_segments, or segment_ids for "
        "both ([B,L], whole numbers). With --grad also dout, the gradient with respect to the output (ones "
        "if absent). "
        "Names of reference cases work too: in_q, in_allow, par_table, gin_do. Complex heads "
        "(complex_order_attention) are real parts, then imaginary parts along the last axis, or two arrays "
        "each, qr and qi, kr and ki, vr and vi; then the results are two arrays each as well. A setting that "
        "is only the length of an axis of a parameter in the input (mlp_width) may be left out.\n\n"
        "A parameter may be named together with its encoding, as in tupe.pos; in a combination it must "
        "be where several parts have one of that name, and where its name is pos.\n\n"
        "The output holds out_o, out_lse (natural log of the sum of exp over allowed keys) and with --grad "
        "g_q, g_k, g_v, g_PARAMETER and g_TOKEN_INPUT: float64 from the reference executor, float32 from the "
        "tiled "
        "executor.\n\n"
        "A parameter that the input lacks is initialised as in its source; a warning names it. The "
        "frequencies "
        "and factors of a rotation, and what a model of --config was trained with, are never made "
        "up.\n\n" CLI_CALC_CSV,
    .lines   = lines,
    .options = options,
    .run     = run,
    .takes   = "SPEC",
};

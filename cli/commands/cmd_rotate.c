/* SPDX-License-Identifier: MIT */
/*
 * cmd_rotate.c: posenc rotate: rotate the queries and keys of a file by their positions
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
#include "cli/commands/config.h"
#include "files/arrays/text.h"

#include <string.h>

enum { QUERIES, KEYS, SIDES, WIDEST = 65536 /* of dims.D */ };

/* q or k; all that is said of one holds of the other. */
typedef struct rotate_side {
    const posenc_array *array;    /* of the file; NULL: it has none */
    posenc_tensor       from, to; /* [B,H,L,D], a complex number as two channels */
    posenc_positions    pos;
} rotate_side;

typedef struct rotate_job {
    pe_calc         p;
    const cli_args *args;
    const char     *input, *output;
    int             inverse, is_blhd;
    int64_t         offset, threads;
    cli_config      config;
    rotate_side     sides[SIDES];
} rotate_job;

#define MOST (INT64_C(1) << 52) /* of a position, with space for the tokens after it */

static const cli_option options[] = {
    {'i', "input", "F", "q, k or both: .npz, .npy, .safetensors or .csv; - is standard input", CLI_TEXT,
     offsetof(rotate_job, input), .words = ".npz|.npy|.safetensors|.csv"},
    {'o', "output", "F",
     "where the results go: .npz, .csv, or .npy for one array; - is standard output, as .npz; without -o "
     "they are printed as CSV",
     CLI_TEXT, offsetof(rotate_job, output), .words = ".npz|.csv|.npy"},
    CLI_CONFIG_OPTIONS,
    {0, "set", "K=V", "a setting of the rotation; may be repeated (posenc list rope shows them)"},
    {0, "inverse", NULL,
     "rotate back by the same angles and with the same magnitude (the transpose, so also the gradient)",
     CLI_FLAG, offsetof(rotate_job, inverse)},
    {0, "offset", "N", "position of the first token if the input has no positions (default: 0)", CLI_WHOLE,
     offsetof(rotate_job, offset), -MOST, MOST},
    {0, "heads-layout", "NAME", "axis order of q and k: bhld (default) or blhd", CLI_WORD,
     offsetof(rotate_job, is_blhd), .words = "bhld|blhd"},
    {0, "threads", "N", "number of threads; 0 is one per core (default); results do not depend on it",
     CLI_WHOLE, offsetof(rotate_job, threads), 0, 4096},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

static void read_arguments(rotate_job *j)
{
    pe_calc *p = &j->p;
    if (j->args->count > 1)
        pe_calc_refuse(p,
                       "give one rotary encoding, or none for rope, not %d; files are named by -i F and -o F",
                       j->args->count);
    else if (j->args->count && cli_value(j->args, "config"))
        pe_calc_refuse(p, "%s and --config both say how to rotate; give only one", cli_at(j->args, 0));
    else if (!cli_value(j->args, "input"))
        pe_calc_refuse(p, "the input is missing; name a file with q, k or both: -i F");
    else
        cli_calc_output(p, j->args, ".npz .npy .csv");
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_read(j->args, j));
    p->options.threads = (int)j->threads;
}

/* ---------------------------------------------------------------- the encoding -------------- */

static const char *spec_of(const rotate_job *j)
{
    return j->config.group ? j->config.group->spec : j->args->count ? cli_at(j->args, 0) : "rope";
}

static void make_encoding(rotate_job *j)
{
    pe_calc *p = &j->p;
    cli_calc_said(p, cli_config_read(&j->config, j->args, CLI_CONFIG_ROTATE));
    pe_calc_encoding(p, spec_of(j), cli_calc_settings(p, j->args));
    for (int place = 0; place < POSENC_PLACE_COUNT && !pe_calc_failed(p); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part && place != POSENC_PLACE_ROTARY)
            pe_calc_refuse(p, "%s acts at place %s and rotates nothing; leave it out", part->name,
                           posenc_place_name(part->place));
    }
}

/* What the arrays of the input say about settings that were not given. Complex numbers are pairs in a model
   of any layout; what was set, check_layout looks at. */
static void infer_settings(rotate_job *j)
{
    pe_calc    *p       = &j->p;
    const char *given   = cli_calc_settings(p, j->args);
    int         complex = 0;
    for (int i = 0; i < SIDES && j->config.group; i++)
        complex |= j->sides[i].array && j->sides[i].array->is_complex;
    if (complex)
        given = pe_calc_text(p, "layout=interleaved layout_out=same %s", given);
    pe_calc_infer(p, spec_of(j), given);
}

/* ---------------------------------------------------------------- q and k ------------------- */

static void read_side(rotate_job *j, rotate_side *s)
{
    pe_calc             *p = &j->p;
    const posenc_tensor *t = &s->array->tensor;
    if (!pe_tensor_is_float(t->dtype))
        pe_calc_refuse(p, "%s holds whole numbers; it must be float64, float32, float16, bfloat16 or complex",
                       s->array->name);
    cli_calc_check_heads(p, s->array->name, t, t->ndim - s->array->is_complex, s->array->is_text, j->is_blhd);
    if (!pe_calc_failed(p))
        s->from = cli_calc_heads(s->array, j->is_blhd, t->data, t->dtype);
    if (!pe_calc_failed(p) && s->from.shape[3] > WIDEST) /* often a whole file in one line */
        pe_calc_refuse(p, "%s has vectors of %lld numbers; at most %d are rotated", s->array->name,
                       (long long)s->from.shape[3], WIDEST);
}

/* A file of neither is what this command wrote, or a lone array without a name of its own. */
static void find_sides(rotate_job *j)
{
    static const char *const names[][SIDES][3] = {{{"q", "in_q", NULL}, {"k", "in_k", NULL}},
                                                  {{"out_q", NULL}, {"out_k", NULL}}};
    rotate_side             *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    for (size_t i = 0; i < sizeof names / sizeof *names && !q->array && !k->array; i++) {
        q->array = pe_calc_find_array(&j->p, names[i][QUERIES]);
        k->array = pe_calc_find_array(&j->p, names[i][KEYS]);
    }
    if (q->array || k->array || j->p.file.count != 1 || !j->p.file.items[0].is_unnamed)
        return;
    const char *const only[] = {j->p.file.items[0].name, NULL};
    q->array                 = pe_calc_find_array(&j->p, only);
}

/* The sizes of q and k must fit each other. */
static void check_both(rotate_job *j, const int64_t *q, const int64_t *k)
{
    if (q[0] != k[0] || q[3] != k[3])
        pe_calc_refuse(&j->p, "q has batch %lld and width %lld, k %lld and %lld; they must be equal",
                       (long long)q[0], (long long)q[3], (long long)k[0], (long long)k[3]);
    if (q[1] % k[1] != 0)
        pe_calc_refuse(&j->p, "k has %lld heads but q has %lld; heads of k must divide heads of q",
                       (long long)k[1], (long long)q[1]);
    if (j->output && pe_text_ends_with(j->output, ".npy"))
        pe_calc_refuse(&j->p, "it has q and k, but %s can hold only one array; name an .npz", j->output);
}

static void read_sides(rotate_job *j)
{
    const rotate_side *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    pe_calc           *p = &j->p;
    pe_calc_read(p, j->input);
    find_sides(j);
    for (int i = 0; i < SIDES; i++)
        if (!pe_calc_failed(p) && j->sides[i].array)
            read_side(j, &j->sides[i]);
    if (!q->array && !k->array)
        pe_calc_refuse(p, "it has neither q (or in_q) nor k (or in_k)");
    if (pe_calc_failed(p))
        return;
    if (q->array && k->array)
        check_both(j, q->from.shape, k->from.shape);
    const posenc_tensor *one = q->array ? &q->from : &k->from, *other = k->array ? &k->from : &q->from;
    p->dims = pe_calc_attention_dims(one, other, one);
}

/* Pairs of complex numbers are neighbours in memory, whatever their real parts are to each other. And a head
   of another width has other channels at the places that the model rotates. */
static void check_layout(rotate_job *j)
{
    for (int i = 0; i < SIDES; i++)
        if (j->sides[i].array && j->sides[i].array->is_complex &&
            strstr(posenc_encoding_spec(j->p.e), "layout"))
            pe_calc_refuse(&j->p, "%s holds complex numbers, which are pairs already; leave out the layout",
                           j->sides[i].array->name);
    cli_config_check_width(&j->config, &j->p, j->args, j->sides[QUERIES].array ? "q" : "k");
}

/* ---------------------------------------------------------------- positions ----------------- */

static void read_positions(rotate_job *j)
{
    static const char *const names[SIDES][5] = {{"q_pos", "in_q_pos", "pos", "in_pos", NULL},
                                                {"k_pos", "in_k_pos", "pos", "in_pos", NULL}};
    int                      arrays          = 0;
    for (int i = 0; i < SIDES; i++) {
        rotate_side        *s     = &j->sides[i];
        const posenc_tensor array = s->array ? pe_calc_find_positions(&j->p, names[i]) : (posenc_tensor){0};
        s->pos = array.data ? posenc_positions_array(array) : posenc_positions_range((double)j->offset, 1);
        arrays += array.data != NULL;
    }
    const rotate_side *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    if (q->array && k->array)
        pe_calc_match_positions(&j->p, &q->pos, &k->pos);
    if (arrays && cli_value(j->args, "offset"))
        pe_calc_refuse(&j->p, "both the file and --offset give positions; leave out one of them");
    if (q->array && k->array && j->p.dims.Lq != j->p.dims.Lk && arrays < SIDES)
        pe_calc_refuse(&j->p,
                       "q has %lld tokens and k %lld; give the positions of both, in arrays q_pos and k_pos",
                       (long long)j->p.dims.Lq, (long long)j->p.dims.Lk);
}

static void make_plan(rotate_job *j)
{
    pe_calc                    *p    = &j->p;
    const posenc_encoding_info *part = posenc_encoding_part(p->e, POSENC_PLACE_ROTARY);
    if (part && part->causal_only) /* no scores are made here */
        p->options.mask = POSENC_MASK_CAUSAL;
    pe_calc_plan(p, POSENC_RUN_ROTATE);
    pe_calc_params(p, POSENC_DTYPE_F64);
    cli_config_params(&j->config, p);
    cli_calc_need_rotary(p);
}

/* ---------------------------------------------------------------- results ------------------- */

/* Like the array of the file; NumPy has no bfloat16, so that becomes float32. */
static void make_result(rotate_job *j, rotate_side *s, const char *name)
{
    const posenc_tensor *like  = &s->array->tensor;
    const posenc_dtype   dtype = like->dtype == POSENC_DTYPE_BF16 ? POSENC_DTYPE_F32 : like->dtype;
    const posenc_tensor  to    = pe_calc_result(&j->p, name, dtype, like->ndim, like->shape);
    if (!to.data)
        return;
    j->p.results.items[j->p.results.count - 1].is_complex = s->array->is_complex;
    s->to = cli_calc_heads(s->array, j->is_blhd, to.data, dtype);
}

static void compute(rotate_job *j)
{
    static const char *const names[SIDES] = {"out_q", "out_k"};
    pe_calc                 *p            = &j->p;
    for (int i = 0; i < SIDES; i++)
        if (j->sides[i].array)
            make_result(j, &j->sides[i], names[i]);
    const rotate_side     *q = &j->sides[QUERIES], *k = &j->sides[KEYS];
    const posenc_rotate_io io = {.size      = sizeof io,
                                 .q         = q->from,
                                 .k         = k->from,
                                 .q_pos     = q->pos,
                                 .k_pos     = k->pos,
                                 .to_q      = q->to,
                                 .to_k      = k->to,
                                 .direction = j->inverse ? -1 : 1,
                                 .params    = p->params};
    if (!pe_calc_failed(p))
        posenc_rotate(p->plan, &io, &p->work, &p->err);
}

static void write_results(rotate_job *j)
{
    if (cli_calc_write(&j->p, j->output))
        return;
    cli_config_warn(&j->config);
    cli_calc_warn_unused(&j->p, "gin_");
}

/* ---------------------------------------------------------------- the command --------------- */

static int run(const cli_args *args)
{
    static void (*const steps[])(rotate_job *) = {read_arguments, make_encoding, read_sides,
                                                  infer_settings, check_layout,  read_positions,
                                                  make_plan,      compute,       write_results};
    rotate_job j                               = {.args = args, .p = pe_calc_new("rotate")};
    for (size_t i = 0; !pe_calc_failed(&j.p) && i < sizeof steps / sizeof *steps; i++)
        steps[i](&j);
    return cli_config_end(&j.config, &j.p);
}

static void lines(void (*line)(const char *text))
{
    line("Worked by hand, the vector (1, 2, 3, 4) at position 2:");
    line("    echo 1,2,3,4 | posenc rotate -i - --offset 2");
    line("Two heads of two positions and four channels, with positions of their own:");
    line("    printf '# q 2x2x4\\n1,2,3,4\\n5,6,7,8\\n1,0,1,0\\n0,1,0,1\\n# pos\\n5,9\\n' |");
    line("        posenc rotate -i -");
}

const cli_command cli_rotate = {
    .name    = "rotate",
    .summary = "rotate the queries and keys of a file by their positions",
    .synopsis =
        "[SPEC | --config F [--layer N] [--tower NAME]] -i F [-o F] [--set K=V]... [--inverse] [--offset N]",
    .details =
        "SPEC is a rotary encoding, rope if none is given, with settings in brackets or by --set. --config "
        "reads the rotation that a model was trained with from its own file; --set overrides parts of it.\n\n"
        "The input holds q, k or both: [B,H,L,D], [H,L,D] or [L,D], float64, float32, float16, "
        "bfloat16, or "
        "complex numbers (complex64, complex128), each of which is a pair. It may hold positions, pos for "
        "both or q_pos and k_pos: [L], [B,L], or [B,L,N] of N coordinates, whole or real; without them "
        "tokens are numbered from --offset on. Frequencies and factors that the settings ask for (posenc "
        "list rope) are read from arrays of the same names. Names of reference cases work too: in_q, in_k, "
        "in_pos, par_inv_freq; if there are none, out_q and out_k of an earlier call are read. The array of "
        "an .npy, or of a CSV without a name, is q, unless the file is named k.\n\n"
        "The output holds out_q and out_k in the same shapes and types; bfloat16, for which NumPy has no "
        "type, becomes float32.\n\n" CLI_CALC_CSV,
    .lines   = lines,
    .options = options,
    .run     = run,
    .takes   = "SPEC",
};

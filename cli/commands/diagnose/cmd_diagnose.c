/* SPDX-License-Identifier: MIT */
/*
 * cmd_diagnose.c: posenc diagnose: which of two implementations is wrong, and in what
 *
 * For whoever ports a model: tensors before and after the other program's rotation, or logits without and
 * with its bias, and the model's config. What was done to them is measured (src/diagnose) and held against
 * what the config asks for; the difference is named and a fix is said.
 */
#include "cli/commands/diagnose/diagnose.h"
#include "files/arrays/text.h"

#include <math.h>
#include <posenc/rotary.h>
#include <string.h>

enum { SIDES = 2 };

#define MOST (INT64_C(1) << 52)

static const cli_option options[] = {
    {0, "before", "F", "q, k or both before they were rotated: .npz, .npy, .safetensors or .csv", CLI_TEXT,
     offsetof(diagnose_job, before_path), .words = ".npz|.npy|.safetensors|.csv"},
    {0, "after", "F", "the same arrays after it", CLI_TEXT, offsetof(diagnose_job, after_path),
     .words = ".npz|.npy|.safetensors|.csv"},
    {0, "scores-before", "F",
     "scores [B,H,Lq,Lk] or [H,Lq,Lk] without the bias, or of the implementation that is right", CLI_TEXT,
     offsetof(diagnose_job, scores_before), .words = ".npz|.npy|.safetensors|.csv"},
    {0, "scores-after", "F", "scores with it, or of the other implementation", CLI_TEXT,
     offsetof(diagnose_job, scores_after), .words = ".npz|.npy|.safetensors|.csv"},
    {'i', "input", "F", "of scores: q and k, whose products are then what --scores-before would hold",
     CLI_TEXT, offsetof(diagnose_job, content), .words = ".npz|.safetensors"},
    CLI_CONFIG_OPTIONS,
    {0, "set", "K=V",
     "a setting of what is expected; may be repeated (posenc list rope shows them). Of scores also scale, "
     "softcap, causal=yes, "
     "window"},
    {0, "positions", "F",
     "the positions as they should be: a file with [L], [B,L] or [B,L,N], or a list such as 0,1,2",
     .words = ".npy|.npz|.safetensors|.csv"},
    {0, "offset", "N", "position of the first token where no file says positions (default: 0)", CLI_WHOLE,
     offsetof(diagnose_job, offset), -MOST, MOST},
    {0, "heads-layout", "NAME", "axis order of the tensors: bhld (default) or blhd", CLI_WORD,
     offsetof(diagnose_job, is_blhd), .words = "bhld|blhd"},
    {0, "json", NULL, "print one JSON object, for programs", CLI_FLAG, offsetof(diagnose_job, is_json)},
    {0},
};

/* ---------------------------------------------------------------- what is expected ---------- */

static void read_arguments(diagnose_job *j)
{
    pe_calc *p = &j->p;
    if (j->args->count > 1)
        pe_calc_refuse(p, "give one encoding, or none, not %d; files are named by --before F and --after F",
                       j->args->count);
    else if (j->args->count && cli_value(j->args, "config"))
        pe_calc_refuse(p, "%s and --config both say what is expected; give only one", cli_at(j->args, 0));
    else if (cli_value(j->args, "scores-after")
                 ? !cli_value(j->args, "scores-before") && !cli_value(j->args, "input")
                 : !cli_value(j->args, "before") || !cli_value(j->args, "after"))
        pe_calc_refuse(
            p, "the tensors are missing; name them by --before F and --after F, or --scores-before F and "
               "--scores-after F");
    else if (cli_value(j->args, "scores-after") &&
             (cli_value(j->args, "before") || cli_value(j->args, "after")))
        pe_calc_refuse(p, "--scores-after and --after are two questions; ask one at a time");
    else if (!cli_value(j->args, "scores-after") &&
             (cli_value(j->args, "scores-before") || cli_value(j->args, "input")))
        pe_calc_refuse(p, "--scores-before and -i go with --scores-after F; give it");
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_read(j->args, j));
}

static void make_encoding(diagnose_job *j)
{
    pe_calc    *p        = &j->p;
    const char *settings = cli_calc_settings(p, j->args);
    cli_calc_said(p, cli_config_read(&j->config, j->args, CLI_CONFIG_ROTATE));
    j->is_expected  = j->config.group || j->args->count || *settings;
    j->in.is_strict = strstr(settings, "angles=exact") != NULL;
    if (j->is_expected)
        pe_calc_encoding(p,
                         j->config.group  ? j->config.group->spec
                         : j->args->count ? cli_at(j->args, 0)
                                          : "rope",
                         settings);
    const posenc_encoding_info *part = p->e ? posenc_encoding_part(p->e, POSENC_PLACE_ROTARY) : NULL;
    if (p->e && !pe_calc_failed(p) && (!part || strcmp(part->name, "rope")))
        pe_calc_refuse(p, "%s is no rope; give the settings of a rope, or a config whose layers have one",
                       posenc_encoding_spec(p->e));
}

/* ---------------------------------------------------------------- tensors ------------------- */

static void read_side(diagnose_job *j, pe_calc *file, posenc_tensor *to, const posenc_array *array)
{
    const posenc_tensor *t = &array->tensor;
    const int32_t        n = t->ndim - array->is_complex;
    if (!pe_tensor_is_float(t->dtype))
        pe_calc_refuse(file,
                       "%s holds whole numbers; it must be float64, float32, float16, bfloat16 or complex",
                       array->name);
    else if (n < 2 || n > 4 || pe_tensor_elements(t) < 1)
        pe_calc_refuse(file, "%s has the shape %s; it must be %s, with no size 0", array->name,
                       pe_calc_shape_text(file, n, t->shape),
                       j->is_blhd ? "[L,D], [L,H,D] or [B,L,H,D]" : "[L,D], [H,L,D] or [B,H,L,D]");
    else
        *to = cli_calc_heads(array, j->is_blhd, t->data, t->dtype);
}

/* q and k by the names that rotate reads and writes; or the only array. */
static void find_sides(diagnose_job *j, pe_calc *file, int is_after)
{
    static const char *const own[SIDES]         = {"q", "k"};
    static const char *const names[SIDES][2][3] = {{{"q", "in_q", NULL}, {"out_q", NULL}},
                                                   {{"k", "in_k", NULL}, {"out_k", NULL}}};
    int                      found              = 0;
    for (int i = 0; i < SIDES && !pe_calc_failed(file); i++) {
        const posenc_array *array = pe_calc_find_array(file, names[i][is_after ? 1 : 0]);
        if (!array && !pe_calc_failed(file))
            array = pe_calc_find_array(file, names[i][is_after ? 0 : 1]);
        if (!array)
            continue;
        read_side(j, file, is_after ? &j->in.sides[i].after : &j->in.sides[i].before, array);
        j->in.sides[i].name = own[i];
        found++;
    }
    if (found || pe_calc_failed(file))
        return;
    if (file->file.count != 1)
        pe_calc_refuse(file, "it has neither q nor k, and not one array alone");
    else {
        file->used[0] = 1;
        read_side(j, file, is_after ? &j->in.sides[0].after : &j->in.sides[0].before, &file->file.items[0]);
        j->in.sides[0].name = j->in.sides[0].name ? j->in.sides[0].name : "q";
    }
}

static void read_tensors(diagnose_job *j)
{
    pe_calc *p = &j->p;
    pe_calc_read(p, j->before_path);
    find_sides(j, p, 0);
    if (pe_calc_failed(p))
        return;
    pe_calc_read(&j->after, j->after_path);
    find_sides(j, &j->after, 1);
    if (pe_calc_failed(&j->after))
        return;
    pe_dump *s = j->in.sides;
    if (!s[0].before.data != !s[0].after.data && !s[1].before.data != !s[1].after.data &&
        !!s[0].before.data != !!s[1].before.data) {
        /* one array each, one of them named k by its file */
        const int at = s[0].before.data ? 0 : 1;
        s[at].after  = s[1 - at].after;
    }
    int count = 0;
    for (int i = 0; i < SIDES; i++)
        if (s[i].before.data && s[i].after.data)
            s[count++] = s[i];
    j->in.count = count;
    if (!count)
        pe_calc_refuse(p, "it has no array that %s has too; both must hold q, k or both", j->after_path);
    for (int i = 0; i < count; i++)
        if (memcmp(s[i].before.shape, s[i].after.shape, sizeof(int64_t[4])))
            pe_calc_refuse(p, "its %s has the shape %s, that of %s %s; they must be equal", s[i].name,
                           pe_calc_shape_text(p, 4, s[i].before.shape), j->after_path,
                           pe_calc_shape_text(p, 4, s[i].after.shape));
    if (!pe_calc_failed(p) && count == 2 && s[0].before.shape[3] != s[1].before.shape[3])
        pe_calc_refuse(p, "its q is %lld wide and its k %lld; they must be equal",
                       (long long)s[0].before.shape[3], (long long)s[1].before.shape[3]);
    if (!pe_calc_failed(p))
        p->dims = pe_calc_attention_dims(&s[0].before, &s[count - 1].before, &s[0].before);
}

/* ---------------------------------------------------------------- positions ----------------- */

static int is_list(const char *text)
{
    return text && !text[strspn(text, "0123456789+-.eE,:")] && strpbrk(text, "0123456789");
}

/* The array of positions for a side; no data: counted from --offset. */
static posenc_tensor given_positions(diagnose_job *j, int side)
{
    static const char *const names[SIDES][5] = {{"q_pos", "in_q_pos", "pos", "in_pos", NULL},
                                                {"k_pos", "in_k_pos", "pos", "in_pos", NULL}};
    static const char *const others[]        = {"pos", "in_pos", "positions", "position_ids", NULL};
    const char              *path            = cli_value(j->args, "positions");
    pe_calc                 *from            = path ? &j->where : &j->p;
    if (!path)
        return pe_calc_find_positions(from, names[!strcmp(j->in.sides[side].name, "k")]);
    const char *const only[] = {from->file.count == 1 ? from->file.items[0].name : "", NULL};
    posenc_tensor     t =
        is_list(path) ? from->params[0] : pe_calc_find_positions(from, from->file.count == 1 ? only : others);
    if (!t.data)
        t = pe_calc_find_positions(from, names[!strcmp(j->in.sides[side].name, "k")]);
    if (!t.data)
        pe_calc_refuse(from, "it has no array pos (or positions)");
    return t;
}

/* Numbers joined by commas; those of one position by colons. */
static void read_list(diagnose_job *j, const char *text)
{
    int64_t count = 1, N = 1;
    for (size_t i = 0; text[i]; i++)
        count += text[i] == ',' || text[i] == ':';
    for (size_t i = 0; text[i] && text[i] != ','; i++)
        N += text[i] == ':';
    j->where.params = pe_calc_block(&j->where, sizeof(posenc_tensor));
    j->where.params[0] =
        pe_calc_make(&j->where, POSENC_DTYPE_F64, N > 1 ? 2 : 1, (const int64_t[2]){count / N, N});
    for (int64_t i = 0; i < count / N * N; i++) {
        char *end;
        ((double *)j->where.params[0].data)[i] = strtod(text, &end);
        text                                   = end + (*end != 0);
    }
}

static void fill_positions(diagnose_job *j, int side, int N)
{
    const int64_t *shape = j->in.sides[side].before.shape, B = shape[0], L = shape[2];
    pe_calc       *p    = &j->p;
    posenc_tensor  t    = given_positions(j, side);
    pe_calc       *from = cli_value(j->args, "positions") ? &j->where : p;
    double        *to   = pe_calc_make(p, POSENC_DTYPE_F64, 1, (const int64_t[1]){B * L * N}).data;
    const int64_t  n    = t.data ? pe_tensor_elements(&t) : 0;
    if (pe_calc_failed(p) || pe_calc_failed(from))
        return;
    if (t.data && n != L && n != B * L && n != L * N && n != B * L * N)
        pe_calc_refuse(
            from, "the positions have the shape %s; for %s they must be [L] or [B,L]%s, L = %lld, B = %lld",
            pe_calc_shape_text(from, t.ndim, t.shape), j->in.sides[side].name,
            N > 1 ? ", or with N coordinates as last axis" : "", (long long)L, (long long)B);
    const int is_wide = N > 1 && (n == B * L * N || (n == L * N && n != L && n != B * L));
    for (int64_t b = 0; b < B && !pe_calc_failed(from); b++)
        for (int64_t l = 0; l < L; l++)
            for (int a = 0; a < N; a++) {
                const int64_t width = is_wide ? N : 1, item = n == B * L * width ? b : 0;
                to[(b * L + l) * N + a] =
                    t.data ? pe_calc_element(&t, (item * L + l) * width + (is_wide ? a : 0))
                           : (double)(j->offset + l);
            }
    j->in.sides[side].positions = to;
}

/* Of the expected rotation; where nothing is expected, of the positions given, [B,L,N] or [L,N]. */
static int count_coordinates(diagnose_job *j)
{
    const posenc_tensor t = given_positions(j, 0);
    const int64_t       L = j->in.sides[0].before.shape[2];
    const int64_t       N = !t.data                                             ? 1
                            : t.ndim == 3                                       ? t.shape[2]
                            : t.ndim == 2 && t.shape[0] == L && t.shape[1] != L ? t.shape[1]
                                                                                : 1;
    return j->p.plan ? posenc_rotary_coordinates(j->p.plan) : N > 0 && N <= PE_MOST_AXES ? (int)N : 1;
}

static void read_positions(diagnose_job *j)
{
    const char *path = cli_value(j->args, "positions");
    if (path && is_list(path))
        read_list(j, path);
    else if (path)
        pe_calc_read(&j->where, path);
    j->in.coordinates = pe_calc_failed(&j->where) || !j->in.count ? 1 : count_coordinates(j);
    for (int i = 0; i < j->in.count && !pe_calc_failed(&j->where); i++)
        fill_positions(j, i, j->in.coordinates);
}

static void make_plan(diagnose_job *j)
{
    pe_calc *p = &j->p;
    if (!j->is_expected)
        return;
    cli_config_check_width(&j->config, p, j->args, j->in.sides[0].name);
    pe_calc_plan(p, POSENC_RUN_ROTATE);
    pe_calc_params(p, POSENC_DTYPE_F64);
    cli_config_params(&j->config, p);
    cli_calc_need_rotary(p);
    j->in.e      = p->e;
    j->in.params = p->params;
}

/* ---------------------------------------------------------------- the report ---------------- */

static json_t *setting_json(pe_calc *p, const char *spec, const char *name, const char *otherwise,
                            int is_number)
{
    const char *text = cli_diagnose_setting(p, spec, name, otherwise);
    return !text ? json_null() : is_number ? json_real(strtod(text, NULL)) : json_string(text);
}

static json_t *reading_json(diagnose_job *j, const pe_reading *r, int is_alternative)
{
    static const struct {
        const char *name, *otherwise;
        int         is_number;
    } rows[]   = {{"layout", "interleaved", 0}, {"layout_out", NULL, 0}, {"dim", NULL, 1},
                  {"offset_dim", "0", 1},       {"base", "10000", 1},    {"schedule", "default", 0},
                  {"factor", NULL, 1},          {"alpha", NULL, 1},      {"axis_rule", NULL, 0}};
    json_t  *o = json_object();
    pe_calc *p = &j->p;
    if (is_alternative)
        pe_json_set(&o, "departs", cli_diagnose_names(r->departs));
    pe_json_set(&o, "spec", json_string(r->spec));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        pe_json_set(&o, rows[i].name,
                    setting_json(p, r->spec, rows[i].name, rows[i].otherwise, rows[i].is_number));
    if (!strcmp(cli_diagnose_setting(p, r->spec, "layout_out", "same"), "same"))
        pe_json_set(&o, "layout_out", setting_json(p, r->spec, "layout", "interleaved", 0));
    if (json_is_null(json_object_get(o, "dim")))
        pe_json_set(&o, "dim", json_real((double)j->in.sides[0].before.shape[3]));
    const int is_inverse =
        (r->step < 0) != !strcmp(cli_diagnose_setting(p, r->spec, "direction", "forward"), "inverse");
    pe_json_set(&o, "direction", json_string(is_inverse ? "inverse" : "forward"));
    pe_json_set(&o, "magnitude", cli_json_real(r->magnitude));
    json_t *at = json_object();
    pe_json_set(&at, "words", json_string(r->positions));
    pe_json_set(&at, "step", json_real(fabs(r->step)));
    pe_json_set(&at, "offset", json_real(r->step < 0 ? -r->offset : r->offset));
    pe_json_set(&o, "positions", at);
    pe_json_set(&o, "angles", json_string(r->angles));
    if (is_alternative) {
        pe_json_set(&o, "words", cli_json_text(r->words));
        pe_json_set(&o, "residual", cli_json_real(r->mismatch));
    }
    return o;
}

static int print_json(diagnose_job *j)
{
    const pe_diagnosis *d = &j->d;
    json_t             *o = json_object(), *list = json_array();
    for (int i = 0; i < d->alternative_count; i++)
        pe_json_add(&list, reading_json(j, &d->alternatives[i], 1));
    pe_json_set(&o, "verdict", json_string(cli_diagnose_verdicts[d->verdict]));
    pe_json_set(&o, "departs", cli_diagnose_names(d->departs));
    json_t *found = d->verdict == PE_UNEXPLAINED ? json_null() : reading_json(j, &d->found, 0);
    if (d->frequencies) {
        json_t *w = json_array();
        for (int64_t m = 0; m < d->pairs; m++)
            pe_json_add(&w, cli_json_real(d->frequencies[m]));
        pe_json_set(&found, "frequencies", w);
    }
    pe_json_set(&o, "found", found);
    pe_json_set(&o, "expected", j->is_expected ? reading_json(j, &d->expected, 0) : json_null());
    pe_json_set(&o, "alternatives", list);
    pe_json_set(&o, "residual", cli_diagnose_six_digits(d->residual));
    pe_json_set(&o, "difference", cli_diagnose_six_digits(d->difference));
    if (d->side)
        pe_json_set(&o, "side", json_string(d->side));
    pe_json_set(&o, "advice", cli_diagnose_fixes(&d->advice));
    return cli_print_json(o, 0);
}

static void print_reading(const char *title, const pe_reading *r)
{
    printf("%-10s %s%s\n", title, r->spec, r->step < 0 ? ", rotated the other way" : "");
    printf("           positions %s; magnitude %.6g; angles %s\n", r->positions, r->magnitude, r->angles);
}

static int print_words(diagnose_job *j)
{
    const pe_diagnosis *d = &j->d;
    cli_diagnose_print_verdict(d->verdict, d->departs);
    if (d->verdict != PE_UNEXPLAINED)
        print_reading("found", &d->found);
    if (j->is_expected)
        print_reading("expected", &d->expected);
    for (int i = 0; i < d->alternative_count; i++) {
        printf("%-10s ", i ? "" : "or");
        cli_diagnose_print_names(d->alternatives[i].departs);
        printf(": %s\n", *d->alternatives[i].words ? d->alternatives[i].words : d->alternatives[i].spec);
    }
    if (j->is_expected && isfinite(d->difference)) {
        printf("difference %.3g times the rounding of %s", d->difference, j->after_path);
        if (d->verdict == PE_DIFFERENT)
            printf("; from what was found %.3g", d->residual);
        printf("\n");
    }
    cli_diagnose_print_fixes(&d->advice);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the command --------------- */

static void judge(diagnose_job *j)
{
    if (pe_rotation_judge(&j->d, &j->in, &j->p.err))
        return;
    j->status         = cli_diagnose_status(j->d.verdict);
    const int printed = (j->is_json ? print_json : print_words)(j);
    if (printed)
        j->status = printed;
    cli_config_warn(&j->config);
}

static int run(const cli_args *args)
{
    static void (*const steps[])(diagnose_job *)     = {read_arguments, make_encoding,  read_tensors,
                                                        make_plan,      read_positions, judge};
    diagnose_job j                                   = {.args  = args,
                                                        .p     = pe_calc_new("diagnose"),
                                                        .after = pe_calc_new("diagnose"),
                                                        .where = pe_calc_new("diagnose")};
    static void (*const of_scores[])(diagnose_job *) = {read_arguments, cli_diagnose_scores};
    const int    is_scores                           = cli_value(args, "scores-after") != NULL;
    const size_t count  = is_scores ? sizeof of_scores / sizeof *of_scores : sizeof steps / sizeof *steps;
    int          failed = 0;
    for (size_t i = 0; !failed && i < count; i++) {
        (is_scores ? of_scores : steps)[i](&j);
        failed = pe_calc_failed(&j.p) || pe_calc_failed(&j.after) || pe_calc_failed(&j.where);
    }
    const int ends[] = {cli_calc_end(&j.p), cli_calc_end(&j.after), cli_calc_end(&j.where)};
    pe_diagnosis_free(&j.d);
    posenc_model_free(j.config.model);
    return ends[0] ? ends[0] : ends[1] ? ends[1] : ends[2] ? ends[2] : j.status;
}

static void lines(void (*line)(const char *text))
{
    line("Is the port's rotation that of the model's config?");
    line("    posenc diagnose --before q.npy --after q_rotated.npy --config config.json");
    line("Which bias was added?");
    line("    posenc diagnose alibi --scores-before s.npy --scores-after biased.npy");
    line("What rotation is this at all?");
    line("    posenc diagnose --before before.npz --after after.npz");
}

const cli_command cli_diagnose = {
    .name     = "diagnose",
    .summary  = "say what another implementation does differently, and how to fix it",
    .synopsis = "[SPEC | --config F [--layer N]] --before F --after F | --scores-before F --scores-after F "
                "[-i F] [--set K=V]... [--positions F] [--json]",
    .details =
        "The files hold q, k or both before and after the other program rotated them: [B,H,L,D], [H,L,D] or "
        "[L,D], float64, float32, float16 or bfloat16. What was done to them is measured: which channels are "
        "pairs (layout in and out, rotated block), how fast and which way each turns (base, schedule, "
        "factor), "
        "at which positions, with which magnitude, and how its angles were rounded.\n\n"
        "This is held against --config, SPEC or --set. The first line is same, different with the names of "
        "what departs, or unexplained; then what was found and expected, other causes that give the same "
        "rotation, and what to change. Where nothing is expected it is found, or unexplained. Exact angles "
        "and those of float32 count as right, unless --set angles=exact asks for exact ones. Differences "
        "below "
        "2.5 times the rounding of the file after are none.\n\n"
        "Of scores, --scores-after is explained by --scores-before (or by the products of q and k of -i): a "
        "bias (alibi with its slopes, t5 with its buckets), a scale, a temperature of each row, a softcap, a "
        "mask. What is expected is SPEC (alibi, t5), --config, or --set encoding=alibi, scale=, softcap=, "
        "causal=yes, window=; a mask that the scores before have is expected too.\n\n"
        "Exit status: 0 same or found, 1 different or unexplained.",
    .lines   = lines,
    .options = options,
    .run     = run,
    .takes   = "SPEC",
};

/* SPDX-License-Identifier: MIT */
/*
 * cmd_permute.c: posenc permute: the queries and keys of a checkpoint in the other rotary layout
 *
 * For whoever ports a model between programs that pair channels differently: rows of weights and of all that
 * belongs to them change places, and the model stays the same. Everything is read and refused before the
 * first byte is written.
 */
#include "cli/commands/progress.h"
#include "cli/print/print.h"
#include "convert/permute.h"

#include <string.h>

typedef struct permute_job {
    const cli_args *args;
    const char     *input, *output, *config;
    int             to, from, dry_run, is_json;
    int64_t         heads, kv_heads, head_dim, rotary_dim;
    posenc_model   *model;
    pe_permute      plan;
} permute_job;

#define LAYOUTS "half|interleaved"

static const cli_option options[] = {
    {'o', "output", "F",
     "where it goes: a .safetensors, or the .index.json of a sharded checkpoint in another folder", CLI_TEXT,
     offsetof(permute_job, output), .words = ".safetensors|.json"},
    {0, "to", "NAME", "the layout that is wanted: half or interleaved", CLI_WORD, offsetof(permute_job, to),
     .words = LAYOUTS},
    {0, "from", "NAME", "the layout that it has (default: what its header, else the model's type, says)",
     CLI_WORD, offsetof(permute_job, from), .words = LAYOUTS},
    {0, "config", "F", "the model's config.json, which says heads, widths and the order of fused rows",
     CLI_TEXT, offsetof(permute_job, config), .words = ".json"},
    {0, "heads", "H", "without --config: heads of queries", CLI_WHOLE, offsetof(permute_job, heads), 1,
     1 << 16},
    {0, "kv-heads", "G", "heads of keys (default: as many)", CLI_WHOLE, offsetof(permute_job, kv_heads), 1,
     1 << 16},
    {0, "head-dim", "D", "channels of a head", CLI_WHOLE, offsetof(permute_job, head_dim), 2, 1 << 16},
    {0, "rotary-dim", "R",
     "channels of a head that rotate, its first, or with a latent key (MLA) its last (default: all)",
     CLI_WHOLE, offsetof(permute_job, rotary_dim), 2, 1 << 16},
    {0, "dry-run", NULL, "print which tensors change, and write nothing", CLI_FLAG,
     offsetof(permute_job, dry_run)},
    {0, "json", NULL, "print which tensors change as JSON", CLI_FLAG, offsetof(permute_job, is_json)},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

static int check_sizes(permute_job *j)
{
    const int any = j->heads || j->kv_heads || j->head_dim || j->rotary_dim;
    if (j->config && any)
        return cli_usage("permute: --config says heads and widths; leave out --heads, --kv-heads, --head-dim "
                         "and --rotary-dim");
    if (j->config)
        return CLI_DONE;
    if (!j->heads || !j->head_dim)
        return cli_usage("permute: how wide a head is cannot be told from the weights; give --config F, or "
                         "--heads H --kv-heads G --head-dim D");
    j->kv_heads   = j->kv_heads ? j->kv_heads : j->heads;
    j->rotary_dim = j->rotary_dim ? j->rotary_dim : j->head_dim;
    if (j->heads % j->kv_heads)
        return cli_usage("permute: --kv-heads %lld must divide --heads %lld", (long long)j->kv_heads,
                         (long long)j->heads);
    if (j->rotary_dim % 2 || j->rotary_dim > j->head_dim)
        return cli_usage("permute: --rotary-dim %lld must be even and at most --head-dim %lld",
                         (long long)j->rotary_dim, (long long)j->head_dim);
    return CLI_DONE;
}

static int read_arguments(permute_job *j)
{
    if (j->args->count != 1)
        return cli_usage("permute: give one checkpoint, a .safetensors or the .index.json of a sharded one, "
                         "not %d",
                         j->args->count);
    if (cli_read(j->args, j))
        return CLI_USAGE;
    j->input = cli_at(j->args, 0);
    if (j->to < 0)
        return cli_usage("permute: the layout is missing: --to half or --to interleaved");
    if (!j->output && !j->dry_run)
        return cli_usage("permute: the output is missing: -o F (or --dry-run, to see what would change)");
    if (j->is_json && !j->dry_run && !strcmp(j->output, "-"))
        return cli_usage("permute: --json and -o - both take standard output; give a file");
    return check_sizes(j);
}

static int make_plan(permute_job *j)
{
    posenc_error err;
    if (j->config && posenc_model_read(&j->model, j->config, &err))
        return cli_usage("%s", err.message);
    const pe_permute_wish wish = {{j->model,
                                   {.H = j->heads, .G = j->kv_heads, .D = j->head_dim, .dim = j->rotary_dim}},
                                  (pe_layout)j->from,
                                  (pe_layout)j->to};
    if (pe_permute_plan(&j->plan, j->input, &wish, &err))
        return err.status == POSENC_ERROR_MEMORY ? cli_error(&err) : cli_usage("%s", err.message);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- what changes -------------- */

/* Number i of the changes of all files. */
static const pe_rows_change *change_at(const pe_permute *p, int64_t i, const pe_permute_file **file)
{
    for (int f = 0; f < p->file_count; i -= p->files[f++].count)
        if (i < p->files[f].count) {
            *file = &p->files[f];
            return &p->files[f].changes[i];
        }
    return NULL;
}

static int64_t width_of(const pe_rows_change *c)
{
    return c->slot;
}

static int set_row(pe_table *t, int row, const void *from)
{
    const pe_permute_file *f;
    const pe_rows_change  *c = change_at(from, row, &f);
    char                   name[200];
    snprintf(name, sizeof name, "%s", f->c.tensors[c->tensor].name);
    return pe_table_text(t, row, 0, pe_text_clean(name)) && pe_table_text(t, row, 1, c->part) &&
           pe_table_text(t, row, 2, pe_rows_order_name(c->order)) &&
           pe_table_set(t, row, 3, "%lld", (long long)c->rows) &&
           pe_table_set(t, row, 4, "%lld", (long long)pe_rows_rotating(c)) &&
           pe_table_set(t, row, 5, "%lld-%lld of %lld", (long long)c->heads.offset,
                        (long long)(c->heads.offset + c->heads.dim - 1), (long long)width_of(c));
}

static int print_table(const permute_job *j)
{
    static const pe_column columns[] = {{.head = "tensor", .is_text = 1},
                                        {.head = "part", .is_text = 1},
                                        {.head = "order", .is_text = 1},
                                        {.head = "rows"},
                                        {.head = "heads"},
                                        {.head = "channels"}};
    printf(j->plan.changes == 1 ? "%s -> %s: %lld tensor changes\n" : "%s -> %s: %lld tensors change\n",
           pe_layout_name(j->plan.from), pe_layout_name(j->plan.to), (long long)j->plan.changes);
    return cli_print_rows("permute", columns, 6, (int)j->plan.changes, set_row, &j->plan);
}

static json_t *shape_of(const pe_checkpoint_tensor *t)
{
    json_t *shape = json_array();
    for (int32_t a = 0; a < t->ndim && a < POSENC_MAX_DIMS; a++)
        pe_json_add(&shape, json_integer(t->shape[a]));
    return shape;
}

static json_t *change_object(const pe_permute *p, int64_t i)
{
    const pe_permute_file      *f;
    const pe_rows_change       *c = change_at(p, i, &f);
    const pe_checkpoint_tensor *t = &f->c.tensors[c->tensor];
    json_t                     *o = json_object();
    pe_json_set(&o, "file", cli_json_text(f->name));
    pe_json_set(&o, "tensor", cli_json_text(t->name));
    pe_json_set(&o, "part", json_string(c->part));
    pe_json_set(&o, "order", json_string(pe_rows_order_name(c->order)));
    pe_json_set(&o, "type", cli_json_text(t->type));
    pe_json_set(&o, "shape", shape_of(t));
    pe_json_set(&o, "heads", json_integer(pe_rows_rotating(c)));
    pe_json_set(&o, "head_dim", json_integer(width_of(c)));
    pe_json_set(&o, "rotary_dim", json_integer(c->heads.dim));
    pe_json_set(&o, "offset", json_integer(c->heads.offset));
    return o;
}

static int print_json(const permute_job *j)
{
    const pe_permute *p       = &j->plan;
    json_t           *o       = json_object();
    json_t           *changes = json_array();
    int64_t           tensors = 0;
    for (int f = 0; f < p->file_count; f++)
        tensors += p->files[f].c.count;
    for (int64_t i = 0; i < p->changes; i++)
        pe_json_add(&changes, change_object(p, i));
    pe_json_set(&o, "from", json_string(pe_layout_name(p->from)));
    pe_json_set(&o, "to", json_string(pe_layout_name(p->to)));
    pe_json_set(&o, "written", json_boolean(!j->dry_run));
    pe_json_set(&o, "tensors", json_integer(tensors));
    pe_json_set(&o, "changes", changes);
    return cli_print_json(o, 0);
}

/* ---------------------------------------------------------------- the command --------------- */

static int write_output(permute_job *j)
{
    posenc_error        err;
    cli_progress        shown;
    const pe_progress   progress = {cli_progress_begin(&shown, "permute", j->plan.bytes), &shown};
    const posenc_status status   = pe_permute_run(&j->plan, j->output, progress, &err);
    cli_progress_end(&shown);
    return status ? cli_error(&err) : CLI_DONE;
}

static int run(const cli_args *args)
{
    permute_job j      = {.args = args, .to = PE_LAYOUT_UNTOLD, .from = PE_LAYOUT_UNTOLD};
    int         status = read_arguments(&j);
    if (!status)
        status = make_plan(&j);
    if (!status && !j.dry_run)
        status = write_output(&j);
    if (!status && j.is_json)
        status = print_json(&j);
    else if (!status && j.dry_run)
        status = print_table(&j);
    pe_permute_free(&j.plan);
    posenc_model_free(j.model);
    return status;
}

static void lines(void (*line)(const char *text))
{
    line("Meta's Llama (interleaved) as transformers has it (half), to look at first:");
    line("    posenc permute meta.safetensors --from interleaved --to half \\");
    line("        --config config.json --dry-run");
    line("A sharded checkpoint, into a folder that is there:");
    line("    posenc permute model.safetensors.index.json --config config.json \\");
    line("        --to interleaved -o other/model.safetensors.index.json");
}

const cli_command cli_permute = {
    .name     = "permute",
    .summary  = "write a checkpoint in the other rotary layout: half or interleaved",
    .synopsis = "F -o F --to half|interleaved [--from half|interleaved] (--config F | --heads H --kv-heads G "
                "--head-dim D [--rotary-dim R]) [--dry-run] [--json]",
    .details =
        "Two conventions pair the channels that rotate together: neighbours (interleaved: GPT-J, Meta's "
        "Llama, ggml's NORM) or one of each half (half: GPT-NeoX, transformers, ggml's NEOX). A model that "
        "is "
        "run by the other one needs rows of its queries and keys in another order, and nothing else: scores "
        "stay as they were. The weights, biases and scales of their rows, LoRA's B and norms of queries and "
        "keys are permuted, in separate projections and in fused ones; with partial rotation only the "
        "channels that rotate; with a latent key (MLA) the rotary rows of both projections. Values, outputs, "
        "towers of images and layers without rotation stay as they are.\n\n"
        "F is a .safetensors or the .index.json of a sharded checkpoint; GGUF is not written. Any size "
        "passes "
        "through some MiB of memory, and blocks of zeros stay holes. The output is written whole or not at "
        "all. Files of a sharded checkpoint are written beside and renamed at the end, the index last: in a "
        "folder without them, or in their own place, where -o names F itself. Cut short between two "
        "renames, the same command does the rest.\n\n"
        "A permuted file says so in its header (posenc.rope_layout), so that it is not permuted twice; "
        "permuted back it has the same bytes as before. A file that is in the layout already is refused "
        "where "
        "that can be told, by its header or the model's type, and so are rows that are quantised in blocks "
        "which would be torn.",
    .lines   = lines,
    .options = options,
    .run     = run,
    .takes   = ".safetensors|.json",
};

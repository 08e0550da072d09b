/* SPDX-License-Identifier: MIT */
/*
 * cmd_encode.c: posenc encode: the table of an input encoding as a file
 *
 * For whoever wants the numbers: rows of any encoding that acts on the embeddings, at a length, on a grid or
 * at positions of their own, in float64. A learned table is initialised from its seed, or comes from
 * a file.
 *
 * Everything is checked before anything is computed, and the output is written whole at the end.
 */
#include "cli/commands/config.h"
#include "cli/commands/rows.h"
#include "files/arrays/text.h"

#include <math.h>
#include <string.h>

/* Numbers of a table, and of one written as text. */
enum { MOST_NUMBERS = 1 << 26, MOST_IN_TEXT = 1 << 22 };

typedef struct encode_job {
    pe_calc          p, listed; /* with the file of --params, and with that of --positions */
    const cli_args  *args;
    cli_config       config;
    const char      *output, *params;
    cli_rows         wanted;
    int64_t          dim, width;
    posenc_positions pos;
} encode_job;

static const cli_option options[] = {
    {0, "length", "L", "the rows of the first L tokens"},
    {0, "grid", "HxW[xT]", "the rows of a grid's tokens, in the encoding's own order"},
    {0, "positions", "LIST|F",
     "the rows of these positions: 0,1.5,7 (coordinates joined by :) or a file of [L] or [L,N] (.npy, .npz, "
     ".csv; - is standard input)"},
    {0, "dim", "D", "width of the model", CLI_WHOLE, offsetof(encode_job, dim), 1, 1 << 20},
    CLI_CONFIG_FILE,
    CLI_CONFIG_TOWER,
    {0, "set", "K=V", "a setting of the encoding; may be repeated (posenc list NAME shows them)"},
    {0, "params", "F",
     "parameters by name, .npz, .safetensors or .csv; missing ones are initialised as in their source",
     CLI_TEXT, offsetof(encode_job, params)},
    {0, "seed", "N", "seed of parameters that no file has (default: 0)", CLI_WHOLE,
     offsetof(encode_job, p.seed), 0, INT64_MAX},
    {'o', "output", "F", "where the rows go: .npy, .npz or .csv; - is standard output, as .csv (default)",
     CLI_TEXT, offsetof(encode_job, output), .words = ".npy|.npz|.csv"},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

static int is_csv(const char *output)
{
    return !strcmp(output, "-") || pe_text_ends_with(output, ".csv");
}

static void read_arguments(encode_job *j)
{
    pe_calc    *p      = &j->p;
    const char *output = cli_value(j->args, "output");
    if (j->args->count && cli_value(j->args, "config"))
        pe_calc_refuse(p, "%s and --config both name an encoding; give only one", cli_at(j->args, 0));
    else if (j->args->count != 1 && !cli_value(j->args, "config"))
        pe_calc_refuse(p, "give one encoding that acts at the input, such as sinusoidal, not %d",
                       j->args->count);
    if (output && !is_csv(output) && !pe_text_ends_with(output, ".npy") && !pe_text_ends_with(output, ".npz"))
        pe_calc_refuse(p, "the output %s must end in .npy, .npz or .csv, or be -", output);
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_read(j->args, j));
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_config_read(&j->config, j->args, CLI_CONFIG_ENCODE));
    if (!pe_calc_failed(p))
        cli_calc_said(p, cli_config_refuse_others(&j->config));
}

/* ---------------------------------------------------------------- the encoding -------------- */

static const char *spec_of(const encode_job *j)
{
    return j->config.group ? j->config.group->spec : cli_at(j->args, 0);
}

/* Before sizes are asked for: one that has no rows needs none. */
static void make_encoding(encode_job *j)
{
    pe_calc *p = &j->p;
    pe_calc_encoding(p, spec_of(j), cli_calc_settings(p, j->args));
    for (int place = POSENC_PLACE_INPUT + 1; place < POSENC_PLACE_COUNT && !pe_calc_failed(p); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part)
            pe_calc_refuse(p, "%s acts at place %s and has no rows; give an encoding at place input",
                           part->name, posenc_place_name(part->place));
    }
}

static void read_sizes(encode_job *j)
{
    pe_calc *p = &j->p;
    if (!j->dim && j->config.group)
        j->dim = j->config.group->dims.d_model;
    if (!j->dim)
        pe_calc_refuse(p, "the width is missing: --dim D");
    else
        cli_rows_read(&j->wanted, j->args, &j->listed);
    cli_calc_said(p, cli_calc_status(&j->listed));
}

/* The encoding once more, with its grid. What --set says about the grid comes last and counts. */
static void set_grid(encode_job *j)
{
    pe_calc    *p        = &j->p;
    const char *settings = cli_calc_settings(p, j->args);
    char        grid[CLI_GRID_TEXT];
    cli_calc_said(p, cli_rows_settings(&j->wanted, p->e, grid));
    if (!pe_calc_failed(p) && grid[0])
        pe_calc_encoding(p, spec_of(j), pe_calc_text(p, "%s %s", grid, settings));
}

/* The table of a model is as long as what is asked of it. */
static void set_length(encode_job *j, int64_t length)
{
    const int64_t last = j->wanted.list.data ? (int64_t)floor(fmin(j->wanted.last, 0x1p30)) + 1 : 0;
    j->p.dims          = (posenc_dims){
                 .B = 1, .Lq = length, .Lk = length, .d_model = j->dim, .L = last > length ? last : length};
}

static void find_rows(encode_job *j)
{
    pe_calc *p = &j->p;
    int64_t  tokens;
    set_length(j, j->wanted.length ? j->wanted.length : 1);
    if (posenc_rows_tokens(p->e, &p->dims, &tokens, &p->err))
        return;
    j->pos = cli_rows_positions(&j->wanted, p->e, tokens, &j->listed);
    cli_calc_said(p, cli_calc_status(&j->listed));
    set_length(j, j->wanted.length);
}

/* ---------------------------------------------------------------- rows ---------------------- */

static void compute(encode_job *j)
{
    pe_calc      *p = &j->p;
    const int64_t L = j->wanted.length;
    if (j->params)
        pe_calc_read(p, j->params);
    pe_calc_params(p, POSENC_DTYPE_F64);
    cli_config_params(&j->config, p);
    pe_calc_plan(p, POSENC_RUN_ROWS);
    if (pe_calc_failed(p))
        return;
    j->width           = posenc_rows_width(p->plan);
    const int64_t most = is_csv(j->output) ? MOST_IN_TEXT : MOST_NUMBERS;
    if (L && j->width > most / L) {
        pe_calc_refuse(p,
                       "%lld rows of %lld numbers are more than %lld%s; ask for fewer, or for some of the "
                       "positions (--positions)",
                       (long long)L, (long long)j->width, (long long)most,
                       is_csv(j->output) ? ", the most in CSV" : "");
        return;
    }
    posenc_tensor *table =
        posenc_arrays_add(&p->results, "out_y", POSENC_DTYPE_F64, 2, (const int64_t[2]){L, j->width});
    if (!table) {
        pe_calc_refuse_memory(p, pe_calc_text(p, "%lld rows of %lld numbers", (long long)L,
                                              (long long)j->width));
        return;
    }
    posenc_tensor y =
        posenc_tensor_contiguous(table->data, POSENC_DTYPE_F64, 3, (const int64_t[3]){1, L, j->width});
    const posenc_rows_in in = {.size = sizeof in, .pos = j->pos, .params = p->params};
    posenc_rows(p->plan, &in, &y, &p->work, &p->err);
}

/* ---------------------------------------------------------------- output -------------------- */

static void write_csv(encode_job *j)
{
    char              text[PE_TEXT_REAL];
    posenc_whole_file file;
    const double     *y = j->p.results.items[0].tensor.data;
    if (posenc_whole_file_open(&file, j->output, &j->p.err))
        return;
    for (int64_t i = 0; i < j->wanted.length * j->width; i++) {
        fputs(pe_text_real(text, y[i]), file.stream);
        fputc((i + 1) % j->width ? ',' : '\n', file.stream);
    }
    posenc_whole_file_commit(&file, &j->p.err);
}

static void add_copy(encode_job *j, const char *prefix, const char *name, const posenc_tensor *from)
{
    const char         *full = pe_calc_text(&j->p, "%s%s", prefix, name);
    const posenc_tensor to   = pe_calc_result(&j->p, full, from->dtype, from->ndim, from->shape);
    if (to.data)
        memcpy(to.data, from->data, (size_t)pe_tensor_elements(from) * posenc_dtype_size(from->dtype));
}

static void write_rows(encode_job *j)
{
    pe_calc *p = &j->p;
    /* an archive also says what the rows were made of: it can be read again with --params and --positions */
    const int is_archive = pe_text_ends_with(j->output, ".npz");
    if (is_archive && j->pos.array.data)
        add_copy(j, "in_", "pos", &j->pos.array);
    for (int i = 0; is_archive && i < p->count; i++)
        add_copy(j, "par_", posenc_param_name(p->e, i), &p->params[i]);
    if (is_csv(j->output))
        write_csv(j);
    else if (!pe_calc_failed(p))
        posenc_arrays_write(&p->results, j->output, &p->err);
    if (pe_calc_failed(p))
        return;
    cli_config_warn(&j->config);
    if (!j->params)
        return;
    cli_calc_warn_initial(p);
    cli_calc_warn_unused(p, "in_");
}

/* ---------------------------------------------------------------- the command --------------- */

static int run(const cli_args *args)
{
    static void (*const steps[])(encode_job *) = {read_arguments, make_encoding, read_sizes, set_grid,
                                                  find_rows,      compute,       write_rows};
    encode_job j                               = {.args = args, .output = "-"};
    j.p = j.listed = pe_calc_new("encode");
    for (size_t i = 0; !pe_calc_failed(&j.p) && i < sizeof steps / sizeof *steps; i++)
        steps[i](&j);
    const int status = cli_config_end(&j.config, &j.p);
    cli_calc_end(&j.listed);
    return status;
}

const cli_command cli_encode = {
    .name     = "encode",
    .summary  = "write the table of an input encoding as .npy, .npz or .csv",
    .synopsis = "NAME | --config F [--tower NAME] --length L | --grid HxW[xT] | --positions LIST|F --dim D "
                "[--set K=V]... [-o F]",
    .details =
        "NAME is an encoding at place input (posenc list), with settings in brackets or by --set; or "
        "--config "
        "reads it from a model's own file, and a learned table from a .safetensors. Rows are float64, [L, "
        "width].\n\n"
        "The tokens of a grid come in the encoding's own order, after the rows of class tokens if "
        "prefix_rows asks for them. learned_resize takes this grid as that of its table unless grid_in is "
        "set. With --positions, a table of limited length is made long enough for the largest position, and "
        "sinusoidal_nd gets one axis per coordinate.\n\n"
        "An .npy holds the rows; an .npz holds them as out_y, the positions that were given as in_pos, and "
        "the parameters as par_NAME, which --params reads; a .csv has a line for each row and nothing "
        "else, so that rotate reads it as q. In CSV that is read, a line such as # table 4x8 names the array "
        "below it.",
    .options = options,
    .run     = run,
    .takes   = "SPEC",
};

/* SPDX-License-Identifier: MIT */
/*
 * cmd_encode.c: posenc encode: the table of an input encoding as a file
 *
 * For whoever wants the numbers: rows of any encoding that acts on the embeddings, at a length, on a grid or
 * at positions of their own, in float64. A table that is learned is as it starts, by its seed, or comes from
 * a file.
 *
 * Everything is checked before anything is computed, and the output is written whole at the end.
 */
#include "cli.h"

#include <math.h>
#include <string.h>

#include "places.h"

typedef struct job {
    cli_problem      p, listed; /* with the file of --params, and with that of --positions */
    const cli_args  *args;
    const char      *output, *params;
    cli_places       places;
    int64_t          dim, width;
    posenc_positions pos;
} job;

static const cli_option options[] = {
    {0, "length", "L", "the rows of L tokens, from the first on"},
    {0, "grid", "HxW[xT]", "the rows of a grid's tokens, in the encoding's own order"},
    {0, "positions", "LIST|F",
     "the rows of these positions: 0,1.5,7 (coordinates joined by :) or an .npy or .npz of [L] or [L,N]"},
    {0, "dim", "D", "width of the model", CLI_WHOLE, offsetof(job, dim), 1, 1 << 24},
    {0, "set", "K=V", "a setting of the encoding; may be repeated (posenc list NAME shows them)"},
    {0, "params", "F",
     "parameters by name, .npz or .safetensors; those it lacks start as the source has them", CLI_TEXT,
     offsetof(job, params)},
    {0, "seed", "N", "for parameters that no file brings (the standard is 0)", CLI_WHOLE,
     offsetof(job, p.seed), 0, INT64_MAX},
    {'o', "output", "F",
     "where the rows go: .npy, .npz or .csv; - is standard output, as .csv (the standard)", CLI_TEXT,
     offsetof(job, output)},
    {0},
};

/* ---------------------------------------------------------------- the arguments ------------- */

static int is_csv(const char *output)
{
    return !strcmp(output, "-") || cli_ends_with(output, ".csv");
}

static void read_arguments(job *j)
{
    cli_problem *p      = &j->p;
    const char  *output = cli_value(j->args, "output");
    if (cli_count(j->args) != 1)
        cli_refuse(p, "give one encoding that acts at the input, such as sinusoidal, not %d",
                   cli_count(j->args));
    if (output && !is_csv(output) && !cli_ends_with(output, ".npy") && !cli_ends_with(output, ".npz"))
        cli_refuse(p, "the output %s must end in .npy, .npz or .csv, or be -", output);
    if (!cli_stopped(p))
        cli_said(p, cli_read(j->args, j));
    if (!j->dim)
        cli_refuse(p, "the width is missing: --dim D");
    if (!cli_stopped(p))
        cli_said(p, cli_places_read(&j->places, j->args, &j->listed));
}

/* ---------------------------------------------------------------- the encoding -------------- */

/* Once to know the encoding, and again with its grid. What --set says about the grid comes last and
   counts. */
static void make_encoding(job *j)
{
    cli_problem *p        = &j->p;
    const char  *settings = cli_settings(p, j->args);
    char         grid[CLI_GRID_TEXT];
    cli_encoding(p, cli_at(j->args, 0), settings);
    for (int place = POSENC_PLACE_INPUT + 1; place < POSENC_PLACE_COUNT && !cli_stopped(p); place++) {
        const posenc_encoding_info *part = posenc_encoding_part(p->e, (posenc_place)place);
        if (part)
            cli_refuse(p, "%s acts at place %s and has no rows; give an encoding at place input", part->name,
                       posenc_place_name(part->place));
    }
    if (cli_stopped(p))
        return;
    cli_said(p, cli_places_settings(&j->places, p->e, grid));
    if (grid[0])
        cli_encoding(p, cli_at(j->args, 0), cli_text(p, "%s %s", grid, settings));
}

/* The table of a model is as long as what is asked of it. */
static void set_length(job *j, int64_t length)
{
    const int64_t last = j->places.list.data ? (int64_t)floor(fmin(j->places.last, 0x1p30)) + 1 : 0;
    j->p.dims          = (posenc_dims){
                 .B = 1, .Lq = length, .Lk = length, .d_model = j->dim, .L = last > length ? last : length};
}

static void find_rows(job *j)
{
    cli_problem *p = &j->p;
    int64_t      tokens;
    set_length(j, j->places.length ? j->places.length : 1);
    if (posenc_rows_tokens(p->e, &p->dims, &tokens, &p->err))
        return;
    cli_said(p, cli_places_positions(&j->places, p->e, tokens, &j->listed, &j->pos));
    set_length(j, j->places.length);
}

/* ---------------------------------------------------------------- rows ---------------------- */

static void compute(job *j)
{
    cli_problem  *p = &j->p;
    const int64_t L = j->places.length;
    if (j->params)
        cli_problem_read(p, j->params);
    cli_params(p, POSENC_DTYPE_F64);
    cli_plan(p, POSENC_RUN_FORWARD);
    if (cli_stopped(p))
        return;
    j->width = posenc_rows_width(p->plan);
    posenc_tensor *table =
        posenc_arrays_add(&p->results, "out_y", POSENC_DTYPE_F64, 2, (const int64_t[2]){L, j->width});
    if (!table) {
        cli_refuse_memory(p, cli_text(p, "%lld rows of %lld numbers", (long long)L, (long long)j->width));
        return;
    }
    posenc_tensor y =
        posenc_tensor_contiguous(table->data, POSENC_DTYPE_F64, 3, (const int64_t[3]){1, L, j->width});
    const posenc_rows_in in = {.pos = j->pos, .params = p->params};
    posenc_rows(p->plan, &in, &y, p->work, &p->err);
}

/* ---------------------------------------------------------------- output -------------------- */

static void write_csv(job *j)
{
    char              text[CLI_DIGITS];
    posenc_whole_file file;
    const double     *y = j->p.results.items[0].tensor.data;
    if (posenc_whole_file_open(&file, j->output, &j->p.err))
        return;
    for (int64_t i = 0; i < j->places.length * j->width; i++) {
        fputs(cli_real_text(text, y[i]), file.stream);
        fputc((i + 1) % j->width ? ',' : '\n', file.stream);
    }
    posenc_whole_file_commit(&file, &j->p.err);
}

static void add_copy(job *j, const char *prefix, const char *name, const posenc_tensor *from)
{
    const char         *full = cli_text(&j->p, "%s%s", prefix, name);
    const posenc_tensor to   = cli_result(&j->p, full, from->dtype, from->ndim, from->shape);
    if (to.data)
        memcpy(to.data, from->data, (size_t)cli_element_count(from) * posenc_dtype_size(from->dtype));
}

static void write_rows(job *j)
{
    cli_problem *p = &j->p;
    /* an archive also says what the rows were made of: it can be read again with --params and --positions */
    const int is_archive = cli_ends_with(j->output, ".npz");
    if (is_archive && j->pos.array.data)
        add_copy(j, "in_", "pos", &j->pos.array);
    for (int i = 0; is_archive && i < p->count; i++)
        add_copy(j, "par_", posenc_param_name(p->e, i), &p->params[i]);
    if (is_csv(j->output))
        write_csv(j);
    else if (!cli_stopped(p))
        posenc_arrays_write(&p->results, j->output, &p->err);
    if (cli_stopped(p) || !j->params)
        return;
    cli_warn_initial(p);
    cli_warn_unused(p, "in_");
}

/* ---------------------------------------------------------------- the command --------------- */

static int run(const cli_args *args)
{
    static void (*const steps[])(job *) = {read_arguments, make_encoding, find_rows, compute, write_rows};
    job j                               = {.args = args, .output = "-"};
    j.p = j.listed = cli_problem_new("encode");
    for (size_t i = 0; !cli_stopped(&j.p) && i < sizeof steps / sizeof *steps; i++)
        steps[i](&j);
    const int status = cli_problem_end(&j.p);
    cli_problem_end(&j.listed);
    return status;
}

const cli_command cli_encode = {
    .name     = "encode",
    .summary  = "the table of an input encoding as .npy, .npz or .csv",
    .synopsis = "NAME --length L | --grid HxW[xT] | --positions LIST|F --dim D [--set K=V]... [-o F]",
    .details =
        "NAME is an encoding at place input (posenc list), with settings in brackets or by --set. Rows are "
        "float64, [L, width].\n\n"
        "A grid's tokens come in the encoding's own order, after the rows of class tokens if prefix_rows "
        "asks for them. Where learned_resize is not told the grid of its table (grid_in), it is this one. "
        "Where --positions are given, a table that ends is long enough for the largest of them, and the axes "
        "of sinusoidal_nd are as many as its coordinates.\n\n"
        "An .npy holds the rows; an .npz holds them as out_y, the positions that were given as in_pos, and "
        "the parameters as par_NAME, which --params reads; a .csv has a line for each row and no header.",
    .options = options,
    .run     = run,
};

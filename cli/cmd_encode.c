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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "params.h"
#include "places.h"

static const cli_option options[] = {
    CLI_PLACE_OPTIONS,
    {0, "dim", "D", "width of the model"},
    {0, "set", "K=V", "a setting of the encoding; may be repeated (posenc list NAME shows them)"},
    {0, "params", "F",
     "parameters by name, .npz or .safetensors; those it lacks start as the source has them"},
    {0, "seed", "N", "for parameters that no file brings (the standard is 0)"},
    {'o', "output", "F",
     "where the rows go: .npy, .npz or .csv; - is standard output, as .csv (the standard)"},
    {0},
};

typedef struct job {
    const cli_args  *args;
    const char      *output;
    cli_inputs       in, listed; /* the file of --params, and that of --positions */
    cli_places       places;
    int64_t          dim, seed, width;
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_dims      dims;
    posenc_positions pos;
    cli_params       params;
    posenc_arrays    results;
} job;

/* ---------------------------------------------------------------- the arguments ------------- */

static int is_csv(const char *output)
{
    return !strcmp(output, "-") || cli_ends_with(output, ".csv");
}

static int read_arguments(job *j)
{
    const char *output = cli_value(j->args, "output");
    j->output          = output ? output : "-";
    if (cli_count(j->args) != 1)
        return cli_usage("encode: give one encoding that acts at the input, such as sinusoidal, not %d",
                         cli_count(j->args));
    if (!is_csv(j->output) && !cli_ends_with(j->output, ".npy") && !cli_ends_with(j->output, ".npz"))
        return cli_usage("encode: the output %s must end in .npy, .npz or .csv, or be -", j->output);
    const int has_dim = cli_integer(j->args, "dim", 1, 1 << 24, &j->dim);
    if (has_dim == 0)
        return cli_usage("encode: the width is missing: --dim D");
    if (has_dim < 0 || cli_integer(j->args, "seed", 0, INT64_MAX, &j->seed) < 0)
        return CLI_USAGE;
    return cli_places_read(&j->places, j->args, &j->listed);
}

/* ---------------------------------------------------------------- the encoding -------------- */

static int check_places(const job *j)
{
    for (int place = POSENC_INPUT + 1; place < POSENC_PLACES; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(j->e, (posenc_place)place);
        if (part)
            return cli_usage("encode: %s acts at place %s and has no rows; give an encoding at place input",
                             part->name, posenc_place_name(part->place));
    }
    return CLI_DONE;
}

static int create(job *j, const char *settings)
{
    posenc_error err;
    posenc_encoding_free(j->e);
    j->e = NULL;
    return posenc_encoding_create(&j->e, cli_at(j->args, 0), settings, &err) ? cli_error(&err) : CLI_DONE;
}

/* Once to know the encoding, and again with its grid. What --set says about the grid comes last and
   counts. */
static int make_encoding(job *j)
{
    char  grid[CLI_GRID_TEXT];
    char *settings = cli_settings(j->args);
    char *all      = settings ? malloc(strlen(settings) + sizeof grid + 1) : NULL;
    int   status   = all ? create(j, settings) : cli_failed("encode: there is no memory for the settings");
    if (!status)
        status = check_places(j);
    if (!status)
        status = cli_places_settings(&j->places, j->e, grid);
    if (!status && grid[0]) {
        sprintf(all, "%s %s", grid, settings);
        status = create(j, all);
    }
    free(settings);
    free(all);
    return status;
}

/* The table of a model is as long as what is asked of it. */
static posenc_dims dims_for(const job *j, int64_t length)
{
    const int64_t last = j->places.list.data ? (int64_t)floor(fmin(j->places.last, 0x1p30)) + 1 : 0;
    return (posenc_dims){
        .B = 1, .Lq = length, .Lk = length, .d_model = j->dim, .L = last > length ? last : length};
}

static int find_rows(job *j)
{
    posenc_error  err;
    int64_t       tokens;
    const int64_t length = j->places.length ? j->places.length : 1;
    j->dims              = dims_for(j, length);
    if (posenc_rows_tokens(j->e, &j->dims, &tokens, &err))
        return cli_error(&err);
    const int status = cli_places_positions(&j->places, j->e, tokens, &j->listed, &j->pos);
    j->dims          = dims_for(j, j->places.length);
    return status;
}

/* ---------------------------------------------------------------- rows ---------------------- */

static int read_params(job *j)
{
    const char *path = cli_value(j->args, "params");
    j->in            = (cli_inputs){.path = "encode"};
    if (path && cli_inputs_read(&j->in, path))
        return j->in.status;
    return cli_params_make(&j->params, &j->in, j->e, &j->dims, POSENC_F64, j->seed);
}

static int compute(job *j)
{
    posenc_error  err;
    const int64_t L = j->places.length;
    if (posenc_plan_create(&j->plan, j->e, &j->dims, NULL, &err))
        return cli_error(&err);
    j->width                = posenc_row_width(j->plan);
    const int64_t  shape[2] = {L, j->width};
    void          *work     = cli_inputs_block(&j->in, posenc_plan_workspace(j->plan, POSENC_FORWARD));
    posenc_tensor *table    = posenc_arrays_add(&j->results, "out_y", POSENC_F64, 2, shape);
    if (!work || !table)
        return cli_failed("encode: there is no memory for %lld rows of %lld numbers", (long long)L,
                          (long long)j->width);
    posenc_tensor y =
        posenc_tensor_contiguous(table->data, POSENC_F64, 3, (const int64_t[3]){1, L, j->width});
    const posenc_rows_in in = {.pos = j->pos, .params = j->params.tensors};
    return posenc_rows(j->plan, &in, &y, work, &err) ? cli_error(&err) : CLI_DONE;
}

/* ---------------------------------------------------------------- output -------------------- */

/* The fewest digits, 15 at least, that read back as the same number. */
static void put_number(FILE *to, double x)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    fputs(text, to);
}

static int write_csv(const job *j)
{
    posenc_error      err;
    posenc_whole_file file;
    const double     *y = j->results.items[0].tensor.data;
    if (posenc_whole_file_open(&file, j->output, &err))
        return cli_error(&err);
    for (int64_t i = 0; i < j->places.length * j->width; i++) {
        put_number(file.stream, y[i]);
        fputc((i + 1) % j->width ? ',' : '\n', file.stream);
    }
    return posenc_whole_file_commit(&file, &err) ? cli_error(&err) : CLI_DONE;
}

static int add_copy(job *j, const char *prefix, const char *name, const posenc_tensor *from)
{
    char full[160];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    posenc_tensor *to = posenc_arrays_add(&j->results, full, from->dtype, from->ndim, from->shape);
    if (!to)
        return cli_failed("encode: there is no memory for %s", full);
    int64_t n = 1;
    for (int32_t a = 0; a < from->ndim; a++)
        n *= from->shape[a];
    memcpy(to->data, from->data, (size_t)n * posenc_dtype_size(from->dtype));
    return CLI_DONE;
}

/* An archive also says what the rows were made of: it can be read again with --params and --positions. */
static int add_origins(job *j)
{
    int status = j->pos.array.data ? add_copy(j, "in_", "pos", &j->pos.array) : CLI_DONE;
    for (int i = 0; i < j->params.count && !status; i++)
        status = add_copy(j, "par_", posenc_param_name(j->e, i), &j->params.tensors[i]);
    return status;
}

static int write_rows(job *j)
{
    posenc_error err;
    if (is_csv(j->output))
        return write_csv(j);
    const int status = cli_ends_with(j->output, ".npz") ? add_origins(j) : CLI_DONE;
    if (status)
        return status;
    return posenc_arrays_write(&j->results, j->output, &err) ? cli_error(&err) : CLI_DONE;
}

/* ---------------------------------------------------------------- the command --------------- */

static void warn(const job *j)
{
    if (!cli_value(j->args, "params"))
        return;
    cli_params_warn_initial(&j->params, &j->in, j->e);
    cli_inputs_warn_unused(&j->in, "in_");
}

static void free_job(job *j)
{
    posenc_plan_free(j->plan);
    posenc_encoding_free(j->e);
    posenc_arrays_free(&j->results);
    cli_params_free(&j->params);
    cli_inputs_free(&j->in);
    cli_inputs_free(&j->listed);
}

typedef int step(job *j);

static int run(const cli_args *args)
{
    static step *const steps[] = {read_arguments, make_encoding, find_rows, read_params, compute, write_rows};
    job                j       = {.args = args, .listed = {.path = "encode"}};
    int                status  = CLI_DONE;
    for (size_t i = 0; !status && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](&j);
    if (!status)
        warn(&j);
    free_job(&j);
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
        "asks "
        "for them. Where learned_resize is not told the grid of its table (grid_in), it is this one. Where "
        "--positions are given, a table that ends is long enough for the largest of them, and the axes of "
        "sinusoidal_nd are as many as its coordinates.\n\n"
        "An .npy holds the rows; an .npz holds them as out_y, the positions that were given as in_pos, and "
        "the "
        "parameters as par_NAME, which --params reads; a .csv has a line for each row and no header.",
    .options = options,
    .run     = run,
};

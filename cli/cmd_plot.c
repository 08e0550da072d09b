/* SPDX-License-Identifier: MIT */
/*
 * cmd_plot.c: posenc plot heatmap|similarity|bias NAME: a picture of an encoding
 *
 * With -o the picture is a file, without it is drawn in the terminal. Which pictures an encoding has is the
 * registry's word; whoever asks for another is told which there are. Nothing is trained here: an encoding that
 * learns is shown as it is born, and the title says so.
 */
#include "cli.h"

#include "plot/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LENGTH     = 128,
    DIM        = 64,
    HEADS      = 8,
    LONGEST    = 4096,
    WIDEST     = 4096,
    MOST_HEADS = 64,
    COLUMNS    = 80,
    ALIGNMENT  = 64
};

static const cli_option options[] = {
    {0, "set", "NAME=VALUE", "a setting of the encoding (may be repeated); see posenc list NAME"},
    {0, "length", "N", "positions or distances to draw (128)"},
    {0, "dim", "D", "width of a vector (input) or of a head (64)"},
    {0, "heads", "H", "heads (8)"},
    {0, "seed", "N", "seed of random initial parameters (1)"},
    {'o', "output", "F", "write F.png, F.svg or F.pdf instead of drawing in the terminal"},
    {0, NULL, NULL, NULL},
};

/* What was asked for. */
typedef struct request {
    const char      *kind, *path;
    posenc_encoding *e;
    pe_offer         offer;
    pe_picture_data  data;
    posenc_tensor   *params;
    int64_t          length, dim, heads, seed;
    char             origin[96];
} request;

static int read_numbers(const cli_args *args, request *r)
{
    r->length = LENGTH;
    r->dim    = DIM;
    r->heads  = HEADS;
    r->seed   = 1;
    const struct {
        const char *name;
        int64_t     low, high, *to;
    } rows[] = {{"length", 2, LONGEST, &r->length},
                {"dim", 1, WIDEST, &r->dim},
                {"heads", 1, MOST_HEADS, &r->heads},
                {"seed", 0, INT64_MAX, &r->seed}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cli_integer(args, rows[i].name, rows[i].low, rows[i].high, rows[i].to) < 0)
            return CLI_USAGE;
    return CLI_DONE;
}

/* "heatmap, similarity", or "no pictures". */
static void join_offers(char *text, size_t size, const pe_offer *offers, int count)
{
    size_t used = 0;
    snprintf(text, size, "no pictures");
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", offers[i].kind);
}

static int choose_offer(request *r)
{
    pe_offer  offers[PE_MOST_OFFERS];
    char      known[PE_MOST_OFFERS * (PE_KIND_LENGTH + 2)];
    const int count = pe_picture_offers(r->e, offers);
    for (int i = 0; i < count; i++)
        if (!strcmp(offers[i].kind, r->kind)) {
            r->offer = offers[i];
            return CLI_DONE;
        }
    join_offers(known, sizeof known, offers, count);
    return cli_usage("plot: %s has no picture \"%s\"; it has: %s", posenc_encoding_spec(r->e), r->kind,
                     known);
}

/* A SPEC and every --set; a mistake in either is the caller's. */
static int create_encoding(const cli_args *args, const char *spec, request *r)
{
    posenc_error        err;
    char               *settings = cli_settings(args);
    const posenc_status status =
        settings ? posenc_encoding_create(&r->e, spec, settings, &err) : POSENC_MEMORY;
    if (!settings)
        return cli_failed("plot: there is no memory for the settings");
    free(settings);
    return status ? cli_error(&err) : CLI_DONE;
}

static void set_data(request *r)
{
    const posenc_encoding_info *part     = posenc_encoding_part(r->e, r->offer.place);
    const int                   is_input = r->offer.place == POSENC_INPUT;
    r->data = (pe_picture_data){.length = r->length, .causal = part->causal_only};
    r->data.dims =
        (posenc_dims){.B = 1, .H = r->heads, .D = r->dim, .Lq = r->length, .Lk = r->length, .L = r->length};
    r->data.dims.d_model = is_input ? r->dim : r->heads * r->dim;
}

static int64_t elements(int32_t ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int32_t a = 0; a < ndim; a++)
        n *= shape[a];
    return n;
}

/* Parameters as they are born. */
static int create_params(request *r)
{
    posenc_error err;
    int          trainable = 0;
    const int    count     = posenc_param_count(r->e);
    r->params              = calloc((size_t)count + 1, sizeof *r->params);
    for (int i = 0; r->params && i < count; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(r->e, &r->data.dims, i, &ndim, shape, &err))
            return cli_error(&err);
        void *numbers = calloc((size_t)elements(ndim, shape), sizeof(double));
        if (!numbers)
            return cli_failed("plot: there is no memory for parameter %s", posenc_param_name(r->e, i));
        r->params[i] = posenc_tensor_contiguous(numbers, POSENC_F64, ndim, shape);
        trainable |= posenc_param_trainable(r->e, i);
    }
    if (!r->params)
        return cli_failed("plot: there is no memory for the parameters");
    if (posenc_param_init(r->e, &r->data.dims, r->params, (uint64_t)r->seed, &err))
        return cli_error(&err);
    if (trainable)
        snprintf(r->origin, sizeof r->origin, "untrained: initial parameters, seed %lld", (long long)r->seed);
    r->data.params = r->params;
    r->data.origin = trainable ? r->origin : NULL;
    return CLI_DONE;
}

static int terminal_columns(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 20)
        return size.ws_col < 200 ? size.ws_col : 200;
    return COLUMNS;
}

static int draw(const request *r)
{
    posenc_error  err;
    pe_picture   *picture;
    posenc_status status = pe_picture_create(&picture, r->e, &r->offer, &r->data, &err);
    if (status)
        return cli_error(&err);
    if (r->path)
        status = pe_plot_file(pe_picture_figure(picture), r->path, &err);
    else
        status = pe_plot_terminal(pe_picture_figure(picture), stdout, terminal_columns(),
                                  cli_colour(STDOUT_FILENO), &err);
    pe_picture_free(picture);
    return status ? cli_error(&err) : CLI_DONE;
}

static int make(const cli_args *args, request *r)
{
    posenc_error err;
    int          status = read_numbers(args, r);
    r->path             = cli_value(args, "output");
    if (!status && r->path && pe_plot_path_check(r->path, &err))
        status = cli_error(&err);
    if (!status)
        status = create_encoding(args, cli_at(args, 1), r);
    if (!status)
        status = choose_offer(r);
    if (!status)
        set_data(r);
    if (!status)
        status = create_params(r);
    return status ? status : draw(r);
}

static void release(request *r)
{
    for (int i = 0; r->params && i < posenc_param_count(r->e); i++)
        free(r->params[i].data);
    free(r->params);
    posenc_encoding_free(r->e);
}

static int run(const cli_args *args)
{
    request r = {0};
    if (cli_count(args) != 2)
        return cli_usage(
            "plot: give a picture and an encoding, e.g. posenc plot heatmap NAME; try posenc plot --help");
    r.kind           = cli_at(args, 0);
    const int status = make(args, &r);
    release(&r);
    return status;
}

const cli_command cli_plot = {
    .name     = "plot",
    .summary  = "draw an encoding: heat map, similarity of positions, bias by distance",
    .synopsis = "heatmap|similarity|bias SPEC [--set NAME=VALUE]... [--length N] [-o F.png|.svg|.pdf]",
    .details =
        "heatmap: the vector of each position. similarity: of an input encoding, the cosine of the vectors "
        "of "
        "every two positions; of a rotary one, the score of two equal vectors against their distance. bias: "
        "what "
        "is added to the scores, per head, against the distance.\n\n"
        "Without -o the picture is drawn in the terminal. Encodings that learn are shown untrained; posenc "
        "compare shows them trained.",
    .options = options,
    .run     = run,
};

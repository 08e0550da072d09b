/* SPDX-License-Identifier: MIT */
/*
 * cmd_plot.c: posenc plot KIND SPEC..., or KIND --table F:NAME: a picture
 *
 * With -o the picture is written to a file, otherwise it is drawn in the terminal. Several SPECs make one
 * picture. The registry says which pictures an encoding has, the table below which options a kind of picture
 * takes; any other is refused with a list of those there are, never ignored. Nothing is trained here: an
 * encoding that learns is shown as it is initialised, and the title says so.
 */
#include "cli/commands/rows.h"
#include "cli/commands/subject.h"
#include "files/arrays/text.h"
#include "plot/plot.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WIDEST       = 4096,
    MOST_HEADS   = 64,
    LONGEST_ROW  = 256,
    MOST_DRAWS   = 100000,
    MOST_PREFIX  = 2, /* class and distillation tokens: rows before a table's grid that need no word */
    MOST_GRID    = 1 << 16,
    MOST_SPECS   = 8,
    MOST_WORDS   = 32,
    MOST_POINTS  = CLI_LIST_MOST / 2,
    WIDEST_PAGE  = 200, /* columns of a terminal */
    MOST_DIGITS  = 9,
    LONGEST_TEXT = 512
};

/* Which options each kind of picture takes; --set and --output are for all. ORDER sizes of picture.c */
static const struct plot_kind {
    const char *name;
    const char *takes;
} kinds[] = {
    {"heatmap", "table length dim seed grid prefix-rows binary-counter channels transpose digits"},
    {"curves", "table length dim seed grid prefix-rows binary-counter channels"},
    {"similarity", "table config layer length dim seed grid prefix-rows measure digits"},
    {"similarity2d", "table dim seed grid prefix-rows points measure digits"},
    {"decay", "config layer length dim seed bases theta content draws"},
    {"mass", "config layer length dim heads seed content draws"},
    {"pair", "config layer length dim pairs"},
    {"wavelengths", "config layer length dim"},
    {"words", "config layer dim seed words digits"},
    {"bias", "length dim heads seed grid"},
    {"buckets", "length words digits"},
    {"factors", "length dim heads seed"},
    {"hierarchy", "dim seed"},
    {"onehot", "table length dim seed digits"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static_assert((int)KINDS == (int)PE_PICTURE_KINDS, "a row for each kind of picture");

/* What was asked for. */
typedef struct plot_request {
    const struct plot_kind *kind;
    const char             *path;
    cli_subject             subject;
    pe_offer                offer;
    pe_picture_data         data;
    int64_t                 length, dim, heads, seed, draws, rows, cols, prefix; /* prefix -1: not said */
    cli_rows                wanted;                                              /* --grid */
    cli_numbers             chosen, bases;
    int                     measure; /* which word */
    int                     random_points;
    const char             *spec; /* NULL: a table or a model */
    const char             *words[MOST_WORDS];
    char                    word_text[LONGEST_TEXT];
} plot_request;

static const cli_option options[] = {
    {0, "set", "NAME=VALUE", "a setting of the encoding (may be repeated); see posenc list NAME"},
    {0, "table", "F:NAME",
     "draw a table of positions instead of a SPEC: array NAME of a .safetensors, .npz or .npy (heatmap, "
     "curves, similarity, similarity2d)",
     .words = ".safetensors|.npz|.npy"},
    CLI_CONFIG_OPTIONS,
    {0, "length", "N",
     "positions or distances to draw (heatmap, curves, similarity, bias: 128; buckets: 256; decay, mass: "
     "1024; factors: 64; pair: 8; onehot: 4); for wavelengths the context "
     "(4096; with --config the model's, or the window of that layer)"},
    {0, "dim", "D",
     "width of a vector (input: 64, similarity2d: 128, hierarchy: 8, onehot: 4) or of a head (64, decay, "
     "wavelengths: 128, words: 8)",
     CLI_WHOLE, offsetof(plot_request, dim), 1, WIDEST},
    {0, "heads", "H", "heads of a bias (bias, mass, factors: 8)", CLI_WHOLE, offsetof(plot_request, heads), 1,
     MOST_HEADS},
    {0, "grid", "HxW",
     "positions on a grid of H rows and W columns (heatmap, curves, similarity: a grid of grids; "
     "similarity2d: 16x32; bias of a window or a grid); heatmap and curves take more axes, such as 2x3x4"},
    {0, "prefix-rows", "N",
     "rows of a table before its grid, where there are more than the 0 to 2 of class tokens (heatmap, "
     "curves, similarity, similarity2d)",
     CLI_WHOLE, offsetof(plot_request, prefix), 0, INT32_MAX},
    {0, "points", "LIST|random:N",
     "points ROWxCOLUMN of the grid, such as 4x6:8x16, or N drawn at random (similarity2d: three on the "
     "diagonal)"},
    {0, "measure", "cosine|dot",
     "compare vectors by their cosine or by their dot product (similarity, "
     "similarity2d: cosine)",
     CLI_WORD, offsetof(plot_request, measure), .words = "cosine|dot"},
    {0, "transpose", NULL, "positions down and channels across (heatmap)", CLI_FLAG,
     offsetof(plot_request, data.transposed)},
    {0, "digits", "N",
     "a table: write the number into each cell, with N decimals (heatmap, similarity, "
     "similarity2d, buckets, words, onehot)"},
    {0, "words", "TEXT", "name the positions by the words of a text (words, buckets)"},
    {0, "channels", "LIST", "channels, such as 4:5:6:7 (heatmap, curves)", CLI_WHOLES,
     offsetof(plot_request, chosen), 0, WIDEST - 1},
    {0, "pairs", "LIST", "pairs of channels, such as 0:8 (pair)", CLI_WHOLES, offsetof(plot_request, chosen),
     0, WIDEST - 1},
    {0, "binary-counter", NULL, "draw the binary counter of the same positions next to it (heatmap, curves)"},
    {0, "bases", "LIST", "a panel for each base, such as 1e4:5e5:1e6 (decay)", CLI_REALS,
     offsetof(plot_request, bases), 1, (int64_t)1e18},
    {0, "theta", "one|many|both|X",
     "rotate all pairs by one frequency (one, or this number X), each by its own (many), or draw a panel of "
     "each (decay: both)",
     .words = "one|many|both"},
    {0, "content", "LIST",
     "vectors: ones, uniform (U[0,1]), normal (N(0,1)) (decay, mass of a rotary encoding: all)",
     .words = "ones,...|uniform,...|normal,..."},
    {0, "draws", "N", "draws of random vectors (decay, mass of a rotary encoding: 200)", CLI_WHOLE,
     offsetof(plot_request, draws), 1, MOST_DRAWS},
    {0, "seed", "N", "seed of random parameters and vectors (1)", CLI_WHOLE, offsetof(plot_request, seed), 0,
     INT64_MAX},
    {'o', "output", "F",
     "write F.png, F.svg or F.pdf, or the numbers of the picture as F.csv, instead of drawing in the "
     "terminal",
     .words = ".png|.svg|.pdf|.csv"},
    {0, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- what belongs together ----- */

/* "heatmap, curves": the kinds that take an option, or all where it is NULL. */
static const char *join_kinds(char text[200], const char *option)
{
    size_t used = 0;
    *text       = '\0';
    for (int i = 0; i < KINDS; i++)
        if (!option || cli_options_word(kinds[i].takes, ' ', option) >= 0)
            used += (size_t)snprintf(text + used, 200 - used, "%s%s", used ? ", " : "", kinds[i].name);
    return text;
}

enum { OFFERS_TEXT = PE_MOST_OFFERS * (PE_KIND_LENGTH + 2) };

/* "heatmap, curves": what can be drawn of an encoding. */
static const char *join_offers(char text[OFFERS_TEXT], const posenc_encoding *e)
{
    pe_offer  offers[PE_MOST_OFFERS];
    const int count = pe_picture_offers(e, offers);
    size_t    used  = 0;
    snprintf(text, OFFERS_TEXT, "no pictures");
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, OFFERS_TEXT - used, "%s%s", i ? ", " : "", offers[i].kind);
    return text;
}

static int find_kind(const cli_args *args, plot_request *r)
{
    char known[200];
    for (r->kind = kinds; r->kind < kinds + KINDS; r->kind++)
        if (!strcmp(r->kind->name, cli_at(args, 0)))
            return CLI_DONE;
    if (posenc_encoding_find(cli_at(args, 0)))
        return cli_usage("plot: %s is an encoding; the picture comes first: posenc plot %s %s",
                         cli_at(args, 0), cli_at(args, 1), cli_at(args, 0));
    return cli_usage("plot: there is no picture \"%s\"; there are: %s", cli_at(args, 0),
                     join_kinds(known, NULL));
}

static int check_options(const cli_args *args, plot_request *r)
{
    static const char *const of_a_spec[] = {"set", "dim", "heads", "seed"};
    char                     known[200];
    for (const cli_option *row = options; row->name; row++)
        if (cli_value(args, row->name) && cli_options_word(r->kind->takes, ' ', row->name) < 0 &&
            *join_kinds(known, row->name))
            return cli_usage("plot: %s takes no --%s; it is an option of: %s", r->kind->name, row->name,
                             known);
    for (size_t i = 0; cli_value(args, "table") && i < sizeof of_a_spec / sizeof *of_a_spec; i++)
        if (cli_value(args, of_a_spec[i]))
            return cli_usage("plot: --%s does not apply to a table; leave it out", of_a_spec[i]);
    if (cli_value(args, "config") && cli_value(args, "table"))
        return cli_usage("plot: --config and --table both say what to draw; give one of them");
    if (cli_value(args, "config") && cli_value(args, "dim"))
        return cli_usage(
            "plot: --dim does not apply to a model, whose heads have their own width; leave it out");
    if (cli_value(args, "grid") && cli_value(args, "length"))
        return cli_usage("plot: --length and --grid both say how many positions there are; give one of them");
    if (cli_value(args, "prefix-rows") && !(cli_value(args, "table") && cli_value(args, "grid")))
        return cli_usage("plot: --prefix-rows is the number of rows of a --table before its --grid; give "
                         "both of these, or leave it out");
    if (cli_value(args, "grid") && cli_value(args, "digits") && !strcmp(r->kind->name, "similarity"))
        return cli_usage(
            "plot: --digits does not apply to a grid of grids; leave it out, or draw similarity2d");
    if (cli_value(args, "grid") && cli_value(args, "binary-counter"))
        return cli_usage("plot: --binary-counter needs positions on a line; leave out --grid");
    return CLI_DONE;
}

/* Options of a kind at one place and not at the other: mass of a bias draws no vectors, a rotation has no
   heads. */
static int check_place(const cli_args *args, plot_request *r)
{
    static const struct {
        const char  *option;
        posenc_place place;
        const char  *kind;
    } rows[] = {
        {"heads", POSENC_PLACE_ROTARY, "mass"},         {"content", POSENC_PLACE_SCORE, "mass"},
        {"draws", POSENC_PLACE_SCORE, "mass"},          {"grid", POSENC_PLACE_ROTARY, "similarity"},
        {"measure", POSENC_PLACE_ROTARY, "similarity"}, {"digits", POSENC_PLACE_ROTARY, "similarity"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cli_value(args, rows[i].option) && r->offer.place == rows[i].place &&
            !strcmp(r->kind->name, rows[i].kind))
            return cli_usage("plot: --%s does not apply to the %s of a %s encoding; leave it out",
                             rows[i].option, rows[i].kind, posenc_place_name(rows[i].place));
    if (cli_value(args, "length") && !strcmp(r->kind->name, "bias") && pe_biases_is_map(r->subject.p.e))
        return cli_usage("plot: --length does not apply to a bias on a grid; give --grid HxW");
    return CLI_DONE;
}

/* ---------------------------------------------------------------- reading ------------------- */

/* "16x32", and for pictures that go along the positions one by one "2x3x4". */
static int read_grid(const cli_args *args, plot_request *r)
{
    const char *text = cli_value(args, "grid"), *cross = text ? strchr(text, 'x') : NULL;
    const int   is_flat = (strcmp(r->kind->name, "heatmap") && strcmp(r->kind->name, "curves")) || !cross ||
                        !strchr(cross + 1, 'x');
    r->wanted = (cli_rows){.command = "plot"};
    if (is_flat) {
        const cli_option row  = {.name = "grid", .type = CLI_GRID, .low = 1, .high = LONGEST_ROW};
        cli_numbers      grid = {0};
        if (cli_read_as(args, &row, &grid) < 0)
            return CLI_USAGE;
        r->wanted.axes = grid.count;
        r->rows = r->wanted.grid[0] = grid.whole[0];
        r->cols = r->wanted.grid[1] = grid.whole[1];
        return CLI_DONE;
    }
    if (cli_rows_read_grid(&r->wanted, text))
        return CLI_USAGE;
    r->rows = 1;
    for (int a = 0; a < r->wanted.axes - 1; a++)
        r->rows *= r->wanted.grid[a];
    r->cols       = r->wanted.grid[r->wanted.axes - 1];
    r->data.sizes = r->wanted.grid;
    r->data.axes  = r->wanted.axes;
    return r->rows * r->cols <= MOST_GRID
               ? CLI_DONE
               : cli_usage("plot: --grid is \"%s\"; at most %d positions are drawn", text, MOST_GRID);
}

static int read_digits(const cli_args *args, plot_request *r)
{
    static const cli_option digits = {.name = "digits", .type = CLI_WHOLE, .low = 0, .high = MOST_DIGITS};
    int64_t                 n      = 0;
    r->data.with_numbers           = cli_read_as(args, &digits, &n);
    r->data.decimals               = (int)n;
    return r->data.with_numbers < 0 ? CLI_USAGE : CLI_DONE;
}

static int read_numbers(const cli_args *args, plot_request *r)
{
    const pe_picture_size *size = pe_picture_size_of(r->kind->name);
    r->length                   = size->length;
    r->prefix                   = -1;
    r->dim                      = size->dim;
    r->seed                     = 1;
    if (cli_integer(args, "length", 2, size->longest, &r->length) < 0 || cli_read(args, r))
        return CLI_USAGE;
    r->data.bases      = r->bases.real;
    r->data.base_count = r->bases.count;
    r->data.products   = r->measure;
    return read_digits(args, r);
}

/* Points that are listed; those drawn at random follow once the grid is known. */
static int read_points(const cli_args *args, plot_request *r)
{
    static const cli_option points    = {.name = "points", .type = CLI_POINTS, .low = 0, .high = LONGEST_ROW};
    const char             *text      = cli_value(args, "points");
    const int               is_random = text && !strncmp(text, "random:", 7);
    char                   *end;
    if (!is_random)
        return cli_read_as(args, &points, &r->chosen) < 0 ? CLI_USAGE : CLI_DONE;
    const long long n = strtoll(text + 7, &end, 10);
    if (n < 1 || n > MOST_POINTS || *end)
        return cli_usage("plot: --points is \"%s\"; at random it must be random:1 to random:%d", text,
                         MOST_POINTS);
    r->random_points = (int)n;
    return CLI_DONE;
}

/* Each by its own number of the stream, so that more points do not move the first ones. */
static void draw_points(plot_request *r)
{
    for (int k = 0; k < r->random_points; k++) {
        const uint64_t seed = (uint64_t)r->seed, at = 2 * (uint64_t)k;
        r->chosen.whole[2 * k] =
            (int64_t)(posenc_random_uniform(seed, "plot points", at) * (double)r->data.rows);
        r->chosen.whole[2 * k + 1] =
            (int64_t)(posenc_random_uniform(seed, "plot points", at + 1) * (double)r->data.cols);
    }
    if (r->random_points)
        r->chosen.count = 2 * r->random_points;
}

static int read_words(const cli_args *args, plot_request *r)
{
    const char *text = cli_value(args, "words");
    if (!text && !strcmp(r->kind->name, "words"))
        return cli_usage("plot: words needs a text, e.g. --words \"Enhanced Transformer with Rotary\"");
    if (!text)
        return CLI_DONE;
    if (cli_value(args, "length"))
        return cli_usage(
            "plot: --words and --length both say how many positions there are; give one of them");
    if (strlen(text) >= LONGEST_TEXT)
        return cli_usage("plot: --words has %zu bytes; at most %d are drawn", strlen(text), LONGEST_TEXT - 1);
    strcpy(r->word_text, text);
    int count = 0;
    for (char *at = strtok(r->word_text, " \t\n"); at; at = strtok(NULL, " \t\n"), count++)
        if (count < MOST_WORDS)
            r->words[count] = pe_text_clean(at);
    if (count < 2 || count > MOST_WORDS)
        return cli_usage("plot: --words has %d words; 2 to %d are drawn", count, MOST_WORDS);
    r->length     = count;
    r->data.words = r->words;
    return CLI_DONE;
}

static int read_theta(const cli_args *args, plot_request *r)
{
    static const int thetas[] = {PE_ONE_THETA, PE_MANY_THETAS, PE_ONE_THETA | PE_MANY_THETAS};
    const char      *text     = cli_value(args, "theta");
    char            *end;
    if (!text)
        return CLI_DONE;
    const int word = cli_options_word("one|many|both", '|', text);
    r->data.thetas = word < 0 ? PE_ONE_THETA : thetas[word];
    r->data.theta  = word < 0 ? strtod(text, &end) : 0;
    return word >= 0 || (r->data.theta > 0 && isfinite(r->data.theta) && !*end)
               ? CLI_DONE
               : cli_usage("plot: --theta is \"%s\"; it must be one, many, both, or a number above 0", text);
}

static int read_choices(const cli_args *args, plot_request *r)
{
    static const int worth[] = {PE_VECTORS_ONES, PE_VECTORS_UNIFORM, PE_VECTORS_NORMAL};
    const char      *content = cli_value(args, "content"), *text = content;
    r->data.binary_counter = cli_value(args, "binary-counter") != NULL;
    while (text && *text) { /* words joined by : or , */
        char      word[16];
        const int n = (int)strcspn(text, ":,");
        snprintf(word, sizeof word, "%.*s", n, text);
        const int number = cli_options_word("ones|uniform|normal", '|', word);
        if (number < 0)
            break;
        r->data.contents |= worth[number];
        text += n + (text[n] != 0);
    }
    if (text && (*text || !r->data.contents))
        return cli_usage("plot: --content is \"%s\"; it must be a list of: ones, uniform, normal", content);
    return r->data.thetas == PE_ONE_THETA && r->data.base_count
               ? cli_usage("plot: --bases does not apply with one theta; it is for the encoding's own "
                           "frequencies")
               : CLI_DONE;
}

/* ---------------------------------------------------------------- the subject --------------- */

static int choose_offer(const cli_args *args, plot_request *r)
{
    pe_offer  offers[PE_MOST_OFFERS];
    char      known[OFFERS_TEXT];
    const int count = pe_picture_offers(r->subject.p.e, offers);
    for (int i = 0; i < count; i++) {
        r->offer = offers[i];
        if (!strcmp(offers[i].kind, r->kind->name))
            return check_place(args, r);
    }
    return cli_usage("plot: %s has no picture \"%s\"; it has: %s", posenc_encoding_spec(r->subject.p.e),
                     r->kind->name, join_offers(known, r->subject.p.e));
}

/* Where a table's grid begins: after the rows of class tokens, or as many as are said. */
static int fit_table_grid(plot_request *r)
{
    cli_subject  *s    = &r->subject;
    const int64_t grid = r->rows * r->cols, before = s->rows - grid;
    if (before < 0)
        return cli_usage("plot: %s has %lld rows; a grid of %lldx%lld needs %lld", s->name,
                         (long long)s->rows, (long long)r->rows, (long long)r->cols, (long long)grid);
    if (r->prefix >= 0 && r->prefix != before)
        return cli_usage("plot: %s has %lld rows: --prefix-rows %lld and a grid of %lldx%lld make %lld; "
                         "together they must be all the rows",
                         s->name, (long long)s->rows, (long long)r->prefix, (long long)r->rows,
                         (long long)r->cols, (long long)(r->prefix + grid));
    if (r->prefix < 0 && before > MOST_PREFIX)
        return cli_usage("plot: %s has %lld rows, %lld more than a grid of %lldx%lld; give the grid that it "
                         "has, with 0 to %d rows before it, or give --prefix-rows %lld",
                         s->name, (long long)s->rows, (long long)before, (long long)r->rows,
                         (long long)r->cols, MOST_PREFIX, (long long)before);
    r->data.first = before;
    if (before > 0)
        snprintf(s->origin, sizeof s->origin, "without the %lld row%s before the grid", (long long)before,
                 before > 1 ? "s" : "");
    return CLI_DONE;
}

/* Which positions of a table to draw: a grid is its last rows, a line its first ones. */
static int fit_table(const cli_args *args, plot_request *r)
{
    cli_subject *s = &r->subject;
    r->dim         = s->width;
    if (r->data.axes || (!r->rows && !r->length))
        return cli_usage("plot: %s is a table of rows; give their --grid HxW", s->name);
    if (r->rows)
        return fit_table_grid(r);
    if (cli_value(args, "length") && r->length > s->rows)
        return cli_usage("plot: --length is %lld, but %s has only %lld rows", (long long)r->length, s->name,
                         (long long)s->rows);
    if (!cli_value(args, "length"))
        r->length = s->rows < 1024 ? s->rows : 1024;
    return CLI_DONE;
}

/* Encodings of a grid want a grid, which fits them, and a bias only where it has one. */
static int check_grid(const cli_args *args, plot_request *r)
{
    const posenc_encoding      *e      = r->subject.p.e;
    const posenc_encoding_info *part   = posenc_encoding_part(e, r->offer.place);
    const int                   is_map = pe_picture_wants_grid(e, &r->offer, r->length, r->dim);
    char                        grid[CLI_GRID_TEXT];
    if (r->offer.place != POSENC_PLACE_INPUT)
        return cli_value(args, "grid") && !is_map
                   ? cli_usage("plot: --grid does not apply to the bias of %s, whose positions lie on a "
                               "line; give --length",
                               part->name)
                   : CLI_DONE;
    if (cli_value(args, "length") && is_map)
        return cli_usage(
            "plot: --length does not apply to %s, whose positions lie on a grid; give --grid HxW",
            posenc_encoding_spec(e));
    return r->data.axes && cli_rows_settings(&r->wanted, r->subject.p.e, grid) ? CLI_USAGE : CLI_DONE;
}

/* The model's own sizes; its context, or its window, is what wavelengths are held against. */
static int fit_model(const cli_args *args, plot_request *r)
{
    const cli_config *c = &r->subject.config;
    r->dim              = c->group->dims.D;
    if (cli_value(args, "length") || strcmp(r->kind->name, "wavelengths") != 0)
        return CLI_DONE;
    const int64_t reach = cli_config_reach(c->group, c->info->max_positions);
    if (reach < 2 || reach > PE_ENDLESS)
        return cli_usage("plot: %s does not say how long its context is; give --length N", c->path);
    r->length = reach;
    if (reach != c->info->max_positions) {
        const size_t n = strlen(r->subject.name);
        snprintf(r->subject.name + n, sizeof r->subject.name - n, ", window %lld", (long long)reach);
    }
    return CLI_DONE;
}

/* A picture of holes alone, or with holes where the largest numbers are, would be no answer. As text all
   numbers can be shown. */
static int check_range(const plot_request *r)
{
    const cli_subject *s    = &r->subject;
    const double      *x    = s->p.params[0].data;
    double             most = -1;
    for (int64_t i = 0; i < s->rows * s->width; i++)
        most = isfinite(x[i]) ? fmax(most, fabs(x[i])) : most;
    if (!r->path || pe_text_ends_with(r->path, ".csv") || (most >= 0 && most <= PE_MOST_DRAWN))
        return CLI_DONE;
    return most < 0
               ? cli_usage("plot: %s has no finite number; give another --table, or leave out -o", s->name)
               : cli_usage("plot: %s has numbers up to %.3g; at most %.0e is drawn: scale it down, or write "
                           "its numbers (-o F.csv)",
                           s->name, most, PE_MOST_DRAWN);
}

static int find_subject(const cli_args *args, plot_request *r)
{
    const char *table = cli_value(args, "table");
    if (table) {
        const int status = cli_subject_table(&r->subject, table);
        return status ? status : check_range(r);
    }
    if (!cli_value(args, "config"))
        return cli_subject_encoding(&r->subject, args, r->spec, "");
    const int status = cli_subject_config(&r->subject, args);
    return status ? status : fit_model(args, r);
}

static int fit(const cli_args *args, plot_request *r)
{
    pe_calc  *p        = &r->subject.p;
    const int is_table = cli_value(args, "table") != NULL,
              status   = (is_table ? fit_table : check_grid)(args, r);
    char settings[PE_SETTINGS];
    if (status)
        return status;
    r->data.length = r->length;
    r->data.rows   = r->rows;
    r->data.cols   = r->cols;
    r->data.draws  = r->draws;
    r->data.seed   = (uint64_t)r->seed;
    r->data.dims   = (posenc_dims){.H = r->heads, .D = r->dim};
    pe_picture_fit(p->e, &r->offer, &r->data, settings);
    if (is_table)
        r->data.dims.L = r->data.dims.Lk = r->subject.rows;
    else if (*settings)
        pe_calc_encoding(p, pe_calc_text(p, "%s", posenc_encoding_spec(p->e)), settings);
    return cli_calc_status(p);
}

static int take_params(const cli_args *args, plot_request *r)
{
    draw_points(r);
    r->data.chosen_count = r->chosen.count;
    const int status =
        cli_value(args, "table") ? CLI_DONE : cli_subject_params(&r->subject, &r->data.dims, r->seed);
    r->data.params = r->subject.p.params;
    r->data.name   = r->subject.name[0] ? r->subject.name : NULL;
    r->data.origin = r->subject.origin[0] ? r->subject.origin : NULL;
    return status;
}

/* ---------------------------------------------------------------- drawing ------------------- */

static int check_path(const cli_args *args, plot_request *r)
{
    posenc_error err;
    r->path = cli_value(args, "output");
    return r->path && pe_gnuplot_path_check(r->path, &err) ? cli_error(&err) : CLI_DONE;
}

static int show(const plot_request *r, const pe_picture *picture)
{
    posenc_error        err;
    const int           columns = cli_width() < WIDEST_PAGE ? cli_width() : WIDEST_PAGE;
    const posenc_status status  = r->path ? pe_gnuplot_file(pe_picture_figure(picture), r->path, &err)
                                          : pe_terminal_print(pe_picture_figure(picture), stdout, columns,
                                                              cli_colour(STDOUT_FILENO), &err);
    return status ? cli_error(&err) : CLI_DONE;
}

static int make_picture(const cli_args *args, plot_request *r, pe_picture **picture)
{
    static int (*const steps[])(const cli_args *args, plot_request *r) = {find_subject, choose_offer, fit,
                                                                          take_params};
    posenc_error err;
    int          status = CLI_DONE;
    for (size_t i = 0; !status && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](args, r);
    const int *varied = status ? NULL : cli_subject_varied(&r->subject);
    if (status || !varied)
        return status ? status : cli_calc_status(&r->subject.p);
    return pe_picture_create_varied(picture, r->subject.p.e, &r->offer, &r->data, varied, r->subject.origin,
                                    sizeof r->subject.origin, &err)
               ? cli_error(&err)
               : CLI_DONE;
}

static int show_all(const plot_request *r, pe_picture *const *pictures, int count)
{
    posenc_error err;
    pe_picture  *joint;
    if (count == 1)
        return show(r, pictures[0]);
    if (pe_picture_join(&joint, pictures, count, &err))
        return cli_error(&err);
    const int status = show(r, joint);
    pe_picture_free(joint);
    return status;
}

/* A picture of each SPEC, or of the table or model. */
static int draw(const cli_args *args, plot_request *r)
{
    pe_picture *pictures[MOST_SPECS] = {NULL};
    const int   count                = args->count > 1 ? args->count - 1 : 1;
    int         status               = CLI_DONE;
    for (int i = 0; !status && i < count; i++) {
        plot_request one = *r;
        one.subject.p    = pe_calc_new("plot");
        one.data.chosen  = one.chosen.whole;
        one.data.words   = r->data.words;
        one.spec         = cli_at(args, 1 + i);
        status           = make_picture(args, &one, &pictures[i]);
        if (!status)
            cli_config_warn(&one.subject.config);
        cli_subject_free(&one.subject);
    }
    if (!status)
        status = show_all(r, pictures, count);
    for (int i = 0; i < count; i++)
        pe_picture_free(pictures[i]);
    return status;
}

/* `plot rope`: which pictures rope has; of a word that is no encoding, what a call looks like. */
static int refuse_one_word(const char *word)
{
    posenc_encoding *e = NULL;
    char             known[OFFERS_TEXT];
    if (!word || posenc_encoding_create(&e, word, NULL, NULL))
        return cli_usage(
            "plot: give a picture and an encoding, e.g. posenc plot heatmap NAME; try posenc plot "
            "--help");
    cli_usage("plot: the picture is missing: posenc plot PICTURE %s; %s has: %s", word, word,
              join_offers(known, e));
    posenc_encoding_free(e);
    return CLI_USAGE;
}

static int check_count(const cli_args *args)
{
    const int has_subject = cli_value(args, "table") || cli_value(args, "config");
    if (has_subject && args->count != 1)
        return cli_usage("plot: with --table or --config give only a picture, e.g. posenc plot similarity");
    if (!has_subject && args->count < 2)
        return refuse_one_word(cli_at(args, 0));
    return args->count > 1 + MOST_SPECS
               ? cli_usage("plot: %d encodings are given; at most %d are drawn", args->count - 1, MOST_SPECS)
               : CLI_DONE;
}

static int run(const cli_args *args)
{
    plot_request r                               = {0};
    static int (*const steps[])(const cli_args *args,
                                plot_request   *r) = {find_kind,  check_options, read_numbers, read_points,
                                                    read_words, read_grid,     read_theta,   read_choices,
                                                    check_path, draw};
    int status                                   = check_count(args);
    for (size_t i = 0; !status && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](args, &r);
    return status;
}

static void call_out(const char *option, void (*word)(const char *word))
{
    for (int i = 0; i < KINDS; i++)
        word(kinds[i].name);
}

const cli_command cli_plot = {
    .name     = "plot",
    .summary  = "draw an encoding: table, similarity, decay, bias, buckets",
    .synopsis = "KIND SPEC...|--config F|--table F:NAME [--set NAME=VALUE]... [OPTION]... "
                "[-o F.png|.svg|.pdf|.csv]",
    .details =
        "For an input encoding, KIND is: heatmap, the vector of each position, with the wavelengths of its "
        "channels; curves, single channels; similarity, the cosine of every pair of positions and its "
        "profile by distance, with --grid a grid of grids; similarity2d, maps of the similarity to chosen "
        "points of a grid; onehot, a position added to a token, and as a one-hot vector beside it; "
        "hierarchy, the "
        "two digits of a hierarchical position.\n\n"
        "For a rotary encoding: decay, the score of two vectors by their distance, for vectors of ones, "
        "U[0,1] and N(0,1) (mean and the middle 80 % of the draws), with the encoding's frequencies and with "
        "a single one (without --theta or --content beside the envelope of ones); similarity, the same for "
        "vectors of ones "
        "only; mass, the share of the attention that "
        "goes to the nearest keys; pair, a vector being rotated; wavelengths, those of the pairs compared "
        "with the context (or the window of that layer), before and after scaling, coloured by how often "
        "they rotate within the context of the first training; words, the words of a text before and after "
        "their rotation.\n\n"
        "For an encoding in the scores: bias, what each head adds at each distance (t5, alibi ...) or a map "
        "of it (swin, tupe); mass, the share of the attention that the bias gives to the nearest keys; "
        "buckets, which distances share a bucket (t5, deberta) or a vector (shaw); factors, what urpe "
        "multiplies the weights by. posenc list NAME says which pictures an encoding has; for a combination, "
        "the first part that has the picture is drawn. Several SPECs are drawn together: in one frame if "
        "each has a single curve, else side by side.\n\n"
        "A --table on a --grid has as many rows as the grid has cells, and up to 2 before them (class "
        "tokens), which are skipped; if there are more, --prefix-rows must say how many.\n\n"
        "Without -o the picture is drawn in the terminal. Encodings that learn are shown untrained, and if "
        "their parameters start at zero, with numbers drawn from N(0,1); posenc compare shows them trained. "
        "To draw a table of your own model, use --table; for its rotation, "
        "--config.",
    .options = options,
    .run     = run,
    .takes   = "* SPEC...",
    .words   = call_out,
};

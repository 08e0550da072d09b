/* SPDX-License-Identifier: MIT */
/*
 * cmd_properties.c: posenc properties: is it unique, relative, blind to order, falling with distance, and at
 * what cost?
 *
 * measure/measure.h measures and gives the verdicts; this command chooses sizes and shows the numbers: all of
 * one encoding, or one line for each of several, or everything as JSON. With --sweep the vectors of one input
 * encoding are measured again for each value of a setting: how near the nearest two come, whether a step is
 * still one linear map, and how many channels hardly change; everything before anything is printed, so
 * that a wrong value in a list prints no half table. The formulas are in docs/properties.md.
 */
#include "cli/commands/calc.h"
#include "cli/print/print.h"
#include "measure/measure.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 512, TOKENS = 64, WIDTH = 64, HEADS = 4, DRAWS = 20 }; /* where nothing is said */
enum { LONGEST = 65536, MOST_TOKENS = 2048, WIDEST = 4096, MOST_HEADS = 64, MOST_DRAWS = 10000 };
enum { LONGEST_SIDE = 1024, LARGEST_GRID = 2048 };
enum { TEXT = 64, SPEC = 512, SUMMARY_SIZE = 7 };

static const cli_option options[] = {
    {0, "set", "NAME=VALUE", "a setting of the encoding (may be repeated); see posenc list NAME"},
    {0, "length", "N", "positions of tables, distances of scores (512)", CLI_WHOLE,
     offsetof(pe_survey, sizes.length), 2, LONGEST},
    {0, "grid", "HxW", "positions on a grid of H rows and W columns, in place of --length"},
    {0, "tokens", "N", "tokens where the work is quadratic: eta, terms, equivariance (64)", CLI_WHOLE,
     offsetof(pe_survey, tokens), 2, MOST_TOKENS},
    {0, "dim", "D", "width of a vector (input) or of a head (64)", CLI_WHOLE,
     offsetof(pe_survey, sizes.width), 1, WIDEST},
    {0, "heads", "H", "heads (4)", CLI_WHOLE, offsetof(pe_survey, sizes.heads), 1, MOST_HEADS},
    {0, "draws", "N", "random draws of content, matrices and initial parameters (20)", CLI_WHOLE,
     offsetof(pe_survey, sizes.draws), 1, MOST_DRAWS},
    {0, "seed", "N", "seed of all random numbers (1)", CLI_WHOLE, offsetof(pe_survey, sizes.seed), 0,
     INT64_MAX / 2},
    {0, "sweep", "NAME=V,V,...", "measure the vectors again for each value of a setting (may be repeated)"},
    {0, "time", NULL, "also measure the speed, which differs from run to run", CLI_FLAG,
     offsetof(pe_survey, time)},
    {0, "json", NULL, "print every number as JSON"},
    {0, NULL, NULL, NULL},
};

/* What was found of one encoding, or the sentence that says why nothing was. */
typedef struct subject {
    const char  *name;
    char         spec[SPEC]; /* with the settings it was measured with */
    int          has_input, coordinates;
    pe_findings  findings;
    posenc_error err;

    const posenc_encoding_info *parts[POSENC_PLACE_COUNT];
} subject;

/* posenc_status of the subject: what is wrong stands in its err. */
static posenc_status measure(subject *s, const char *settings, const pe_survey *survey)
{
    posenc_encoding *e;
    posenc_status    status = pe_survey_encoding(&e, s->name, settings, &s->err);
    if (status)
        return status;
    snprintf(s->spec, sizeof s->spec, "%s", posenc_encoding_spec(e));
    s->coordinates = posenc_rows_coordinates(e);
    for (int place = 0; place < POSENC_PLACE_COUNT; place++)
        s->parts[place] = posenc_encoding_part(e, (posenc_place)place);
    s->has_input = s->parts[POSENC_PLACE_INPUT] != NULL;
    status       = pe_survey_run(e, survey, &s->findings, &s->err);
    posenc_encoding_free(e);
    return status;
}

/* ---------------------------------------------------------------- numbers as text ----------- */

/* Round-off has no digits worth reading. */
static void number_text(char text[TEXT], double x)
{
    if (isnan(x))
        snprintf(text, TEXT, "-");
    else if (x != 0 && fabs(x) < 1e-20)
        snprintf(text, TEXT, "<1e-20");
    else if (x != 0 && fabs(x) < 1e-12)
        snprintf(text, TEXT, "<1e-12");
    else if (x == floor(x) && fabs(x) < 1e15)
        snprintf(text, TEXT, "%.0f", x);
    else
        snprintf(text, TEXT, "%.4g", x);
}

/* Why there is no number: a word for the cell, and the note that explains it. NULL: no reason is known. */
typedef enum reason { NO_VECTORS, NOT_ON_A_LINE, CAUSAL_ALONE, NO_POSITION, REASONS } reason;
static const char *const words[REASONS] = {"no vectors", "not on a line", "causal only",
                                           "no position in the scores"};
static const char *const notes[REASONS] = {
    "the encoding adds nothing at the input",
    "a position has several coordinates (a grid), or belongs to a word: there is no distance i - j to "
    "measure by",
    "the encoding has no meaning without a causal mask, which hides the future",
    "the scores are the same at every distance"};

static int set_finding(pe_table *table, int row, const void *from)
{
    const pe_finding *f = (const pe_finding *)from + row;
    char              value[TEXT], spread[TEXT];
    number_text(value, f->value);
    number_text(spread, f->spread);
    const char *const cells[] = {pe_findings_property(f->measure),
                                 pe_findings_title(f->measure),
                                 f->detail,
                                 value,
                                 isnan(f->spread) ? "" : spread,
                                 pe_findings_unit(f->measure),
                                 f->verdict ? f->verdict : ""};
    int               made    = 1;
    for (int k = 0; made && k < 7; k++)
        made = pe_table_set(table, row, k, "%s", cells[k]);
    return made;
}

/* "NAME: what is to be said.", in lines that fit. */
static void print_note(const char *name, const char *said, const char *more)
{
    char text[512];
    snprintf(text, sizeof text, "%.80s: %.300s%.120s.", name, said, more);
    cli_wrap(text, strlen(text), 0, 0, cli_width());
}

/* What measures nothing: what each part does beyond the length that it was trained at. */
static void print_beyond(const subject *s)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++)
        if (s->parts[place])
            cli_wrap(s->parts[place]->beyond, strlen(s->parts[place]->beyond),
                     printf("%s, beyond its length: ", s->parts[place]->name), 0, cli_width());
}

static int print_one(const subject *s, const pe_survey *survey)
{
    static const pe_column columns[] = {{"PROPERTY", "", PE_WIDE, 0},
                                        {"MEASURE", "", PE_WIDE | PE_KEY, 0},
                                        {"OF", "", PE_WIDE | PE_KEY, 0},
                                        {"VALUE", "", 0, 0},
                                        {"SPREAD", "", 0, 0},
                                        {"UNIT", "", PE_WIDE, 0},
                                        {"VERDICT", "", PE_WIDE, 0}};
    char                   sizes[256];
    snprintf(sizes, sizeof sizes,
             "%lld positions, %lld tokens, width %lld, %lld heads, %lld draws, seed %llu",
             (long long)survey->sizes.length, (long long)survey->tokens, (long long)survey->sizes.width,
             (long long)survey->sizes.heads, (long long)survey->sizes.draws,
             (unsigned long long)survey->sizes.seed);
    cli_wrap(sizes, strlen(sizes), printf("%s: ", s->spec), 0, cli_width());
    puts(s->findings.randomised ? "initialised to zero: parameters are drawn from N(0,1)\n" : "");
    const int status =
        cli_print_rows("properties", columns, 7, s->findings.count, set_finding, s->findings.rows);
    if (!status && s->coordinates > 1) {
        putchar('\n');
        print_note(words[NOT_ON_A_LINE], notes[NOT_ON_A_LINE], "");
    }
    if (!status) {
        putchar('\n');
        print_beyond(s);
    }
    return status;
}

/* ---------------------------------------------------------------- a line for each ----------- */

static const pe_finding *first_of(const pe_findings *f, pe_measure m)
{
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].measure == m)
            return &f->rows[i];
    return NULL;
}

/* ORDER the columns of print_summary */
static const pe_measure summary[SUMMARY_SIZE] = {PE_NEAREST,   PE_SHIFT, PE_SCORES,    PE_BOTH_WAYS,
                                                 PE_DIRECTION, PE_TREND, PE_PARAMETERS};

static reason why_missing(const subject *s, pe_measure m)
{
    if ((m == PE_NEAREST || m == PE_SHIFT) && !s->has_input)
        return NO_VECTORS;
    if (s->coordinates > 1)
        return NOT_ON_A_LINE;
    return s->findings.causal_only && m != PE_TREND ? CAUSAL_ALONE : NO_POSITION;
}

/* Row `row` is that of a subject that could be measured. */
static int set_summary(pe_table *table, int row, const void *from)
{
    const subject *s = from;
    for (int before = row; s->err.status || before > 0; s++)
        before -= !s->err.status;
    int made = pe_table_set(table, row, 0, "%s", s->name);
    for (int k = 0; made && k < SUMMARY_SIZE; k++) {
        const pe_finding *f = first_of(&s->findings, summary[k]);
        char              value[TEXT];
        number_text(value, f ? f->value : (double)NAN);
        if (!f)
            made = pe_table_set(table, row, k + 1, "%s", words[why_missing(s, summary[k])]);
        else if (isnan(f->value))
            made = pe_table_set(table, row, k + 1, "%s", f->verdict ? f->verdict : "-");
        else
            made = pe_table_set(table, row, k + 1, "%s%s%s", value, f->verdict ? " " : "",
                                f->verdict ? f->verdict : "");
    }
    return made;
}

/* Of the words that stand in the table, and of what was done to encodings before they were measured. */
static void print_notes(const subject *list, int count)
{
    int is_used[REASONS] = {0};
    for (int i = 0; i < count; i++)
        for (int k = 0; !list[i].err.status && k < SUMMARY_SIZE; k++)
            if (!first_of(&list[i].findings, summary[k]))
                is_used[why_missing(&list[i], summary[k])] = 1;
    putchar('\n');
    for (int r = 0; r < REASONS; r++)
        if (is_used[r])
            print_note(words[r], notes[r], "");
    for (int i = 0; i < count; i++) {
        if (!list[i].err.status && list[i].findings.randomised)
            print_note(list[i].name, "initialised to zero; its parameters are drawn from N(0,1)", "");
        if (!list[i].err.status && strlen(list[i].spec) > strlen(list[i].name))
            print_note(list[i].name, "measured as ", list[i].spec);
    }
    for (int i = 0; i < count; i++)
        if (!list[i].err.status)
            print_beyond(&list[i]);
}

static int print_summary(const subject *list, int count)
{
    static const pe_column columns[] = {{"ENCODING", "", 1, 0},          {"NEAREST VECTORS", "", 1, 0},
                                        {"STEP r(1)", "", 1, 0},         {"SCORES eta", "", 1, 0},
                                        {"PERMUTED, NO MASK", "", 1, 0}, {"DIRECTION", "", 1, 0},
                                        {"TREND rho", "", 1, 0},         {"PARAMETERS", "", 1, 0}};
    int                    measured  = 0;
    for (int i = 0; i < count; i++)
        measured += !list[i].err.status;
    const int status = cli_print_rows("properties", columns, SUMMARY_SIZE + 1, measured, set_summary, list);
    if (!status)
        print_notes(list, count);
    return status;
}

/* ---------------------------------------------------------------- --json -------------------- */

static json_t *json_findings(const pe_findings *f)
{
    json_t *list = json_array();
    for (int i = 0; i < f->count; i++) {
        const pe_finding *row = &f->rows[i];
        pe_json_add(&list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "property",
                                     pe_findings_property(row->measure), "measure",
                                     pe_findings_title(row->measure), "of", cli_json_text(row->detail),
                                     "value", cli_json_real(row->value), "spread", cli_json_real(row->spread),
                                     "unit", cli_json_text(pe_findings_unit(row->measure)), "verdict",
                                     cli_json_text(row->verdict)));
    }
    return list;
}

static json_t *json_beyond(const subject *s)
{
    json_t *parts = json_object();
    for (int place = 0; place < POSENC_PLACE_COUNT; place++)
        if (s->parts[place])
            pe_json_set(&parts, s->parts[place]->name, json_string(s->parts[place]->beyond));
    return parts;
}

static int print_json(const subject *list, int count, const pe_survey *survey)
{
    json_t *all = json_array();
    for (int i = 0; i < count; i++)
        pe_json_add(
            &all, list[i].err.status
                      ? json_pack("{s:s, s:s}", "encoding", list[i].name, "not_measured", list[i].err.message)
                      : json_pack("{s:s, s:s, s:b, s:o, s:o}", "encoding", list[i].name, "measured_as",
                                  list[i].spec, "random_parameters", list[i].findings.randomised, "beyond",
                                  json_beyond(&list[i]), "findings", json_findings(&list[i].findings)));
    json_t *value =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "length", (json_int_t)survey->sizes.length, "tokens",
                  (json_int_t)survey->tokens, "dim", (json_int_t)survey->sizes.width, "heads",
                  (json_int_t)survey->sizes.heads, "draws", (json_int_t)survey->sizes.draws, "seed",
                  (json_int_t)survey->sizes.seed, "encodings", all);
    return cli_print_json(value, 9);
}

/* ---------------------------------------------------------------- --sweep ------------------- */

enum { SHIFTS = 3, MOST_VALUES = 64, VALUE = 64 };
static const int64_t shifts[SHIFTS] = {1, 7, 64};

/* What is measured of one value. */
typedef struct sweep_point {
    char        value[VALUE];
    pe_row_pair nearest;
    double      r[SHIFTS], tau;
    int64_t     idle;
} sweep_point;

/* One --sweep. */
typedef struct sweep {
    char        name[VALUE];
    int64_t     width; /* channels of a vector */
    sweep_point points[MOST_VALUES];
    int         count;
} sweep;

/* "base=10,100": 0, or an exit status after saying what is wrong. */
static int read_sweep(sweep *to, const char *text)
{
    const char *is = strchr(text, '=');
    if (!is || is == text || !is[1] || is - text >= VALUE)
        return cli_usage("properties: --sweep is \"%s\"; it must be NAME=VALUE,VALUE,...", text);
    snprintf(to->name, sizeof to->name, "%.*s", (int)(is - text), text);
    for (const char *at = is + 1; *at;) {
        const size_t length = strcspn(at, ",");
        if (!length || length >= VALUE || to->count == MOST_VALUES)
            return cli_usage("properties: --sweep %s needs 1 to %d values, each of 1 to %d characters", text,
                             MOST_VALUES, VALUE - 1);
        snprintf(to->points[to->count++].value, VALUE, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
    return CLI_DONE;
}

static int measure_encoding(sweep_point *p, const posenc_encoding *e, const pe_subject_sizes *sizes)
{
    const int64_t N = sizes->length, d = sizes->width;
    posenc_error  err;
    pe_subject   *s;
    double       *table = malloc((size_t)(N * d) * sizeof *table);
    if (!table)
        return cli_failed("properties: not enough memory for a table");
    posenc_status status = pe_subject_create(&s, e, sizes, &err);
    if (!status)
        status = pe_subject_rows(s, NULL, table, &err);
    if (!status) {
        p->nearest = pe_uniqueness_nearest_pair(table, N, d);
        p->idle    = pe_relativity_idle_channels(table, N, d);
        status     = pe_relativity_offset_share(&p->tau, table, N, d, &err);
    }
    for (int k = 0; !status && k < SHIFTS; k++)
        status = pe_relativity_shift_residual(&p->r[k], table, N, d, shifts[k], &err);
    pe_subject_free(s);
    free(table);
    return status ? cli_error(&err) : CLI_DONE;
}

static int measure_point(const char *spec, const char *settings, const char *name, sweep_point *p,
                         const pe_subject_sizes *sizes)
{
    posenc_error     err;
    posenc_encoding *e;
    const size_t     size = strlen(settings) + strlen(name) + VALUE + 3;
    char            *all  = malloc(size);
    if (!all)
        return cli_failed("properties: not enough memory for the settings");
    snprintf(all, size, "%s%s%s=%s", settings, *settings ? " " : "", name, p->value);
    const posenc_status status = pe_survey_encoding(&e, spec, all, &err);
    free(all);
    if (status)
        return cli_error(&err);
    const int result =
        posenc_encoding_part(e, POSENC_PLACE_INPUT)
            ? measure_encoding(p, e, sizes)
            : cli_usage("properties: --sweep measures encodings at place input; %s has no part there", spec);
    posenc_encoding_free(e);
    return result;
}

static void share_text(char text[VALUE], double x)
{
    snprintf(text, VALUE, isnan(x) ? "-" : x < 1e-20 ? "<1e-20" : "%.4g", x);
}

static int set_point(pe_table *table, int row, const void *from)
{
    const sweep       *s = from;
    const sweep_point *p = &s->points[row];
    char               shares[SHIFTS + 1][VALUE];
    for (int k = 0; k < SHIFTS; k++)
        share_text(shares[k], p->r[k]);
    share_text(shares[SHIFTS], p->tau);
    int made = pe_table_set(table, row, 0, "%s=%s", s->name, p->value) &&
               pe_table_set(table, row, 1, "%.4f", p->nearest.distance) &&
               pe_table_set(table, row, 2, "%s", pe_findings_word(PE_NEAREST, p->nearest.distance)) &&
               pe_table_set(table, row, 7, "%s", pe_findings_word(PE_SHIFT, p->r[0])) &&
               pe_table_set(table, row, 8, "%lld of %lld", (long long)p->idle, (long long)s->width);
    for (int k = 0; made && k <= SHIFTS; k++)
        made = pe_table_set(table, row, k + 3, "%s", shares[k]);
    return made;
}

static void add_sweep(json_t **list, const sweep *s)
{
    for (int i = 0; i < s->count; i++) {
        const sweep_point *p = &s->points[i];
        pe_json_add(list, json_pack("{s:s, s:s, s:f, s:s, s:[o,o,o], s:s, s:o, s:I}", "setting", s->name,
                                    "value", p->value, "nearest", p->nearest.distance, "nearest_verdict",
                                    pe_findings_word(PE_NEAREST, p->nearest.distance), "shift_residuals",
                                    cli_json_real(p->r[0]), cli_json_real(p->r[1]), cli_json_real(p->r[2]),
                                    "shift_verdict", pe_findings_word(PE_SHIFT, p->r[0]), "tau",
                                    cli_json_real(p->tau), "idle_channels", (json_int_t)p->idle));
    }
}

static int show_sweeps(const cli_args *args, const sweep *list, int count)
{
    static const pe_column columns[] = {{"SETTING", "", 1, 0}, {"NEAREST PAIR", "", 0, 0},
                                        {"", "", 1, 0},        {"r(1)", "", 0, 0},
                                        {"r(7)", "", 0, 0},    {"r(64)", "", 0, 0},
                                        {"tau", "", 0, 0},     {"STEP k=1", "", 1, 0},
                                        {"IDLE", "", 0, 0}};
    int                    status    = CLI_DONE;
    if (!cli_value(args, "json")) {
        for (int i = 0; !status && i < count; i++) {
            fputs(i ? "\n" : "", stdout);
            status = cli_print_rows("properties", columns, 9, list[i].count, set_point, &list[i]);
        }
        return status;
    }
    json_t *all = json_array();
    for (int i = 0; i < count; i++)
        add_sweep(&all, &list[i]);
    return cli_print_json(all, 9);
}

static int sweep_all(const cli_args *args, const char *settings, const pe_subject_sizes *sizes)
{
    const int count  = cli_value_count(args, "sweep");
    int       status = CLI_DONE;
    if (args->count != 1)
        return cli_usage("properties: --sweep needs one SPEC, not %d", args->count);
    sweep *list = calloc((size_t)count, sizeof *list);
    if (!list)
        return cli_failed("properties: not enough memory for %d sweeps", count);
    for (int i = 0; !status && i < count; i++) {
        list[i].width = sizes->width;
        status        = read_sweep(&list[i], cli_value_at(args, "sweep", i));
        for (int k = 0; !status && k < list[i].count; k++)
            status = measure_point(cli_at(args, 0), settings, list[i].name, &list[i].points[k], sizes);
    }
    if (!status)
        status = show_sweeps(args, list, count);
    free(list);
    return status;
}

/* ---------------------------------------------------------------- the command --------------- */

/* The names that were given must all be measured; of those that were not, some have no meaning at these
   sizes. */
static int measure_all(const cli_args *args, subject *list, int count, const char *settings,
                       const pe_survey *survey)
{
    const int given = args->count > 0;
    for (int i = 0; i < count; i++) {
        list[i].name = given ? cli_at(args, i) : posenc_encoding_info_at(i)->name;
        if (measure(&list[i], settings, survey) && given)
            return cli_error(&list[i].err);
    }
    if (cli_value(args, "json"))
        return print_json(list, count, survey);
    const int status = count == 1 ? print_one(list, survey) : print_summary(list, count);
    for (int i = 0; i < count; i++)
        if (list[i].err.status)
            cli_warn("%s is not measured at these sizes: %s", list[i].name, list[i].err.message);
    return status;
}

static int survey_or_sweep(const cli_args *args, const char *settings, const pe_survey *survey)
{
    if (cli_value(args, "sweep"))
        return sweep_all(args, settings, &survey->sizes);
    const int      count  = args->count ? args->count : posenc_encoding_count();
    subject *const list   = calloc((size_t)count, sizeof *list);
    const int      status = list ? measure_all(args, list, count, settings, survey)
                                 : cli_failed("properties: not enough memory for %d encodings", count);
    free(list);
    return status;
}

static int read_grid(const cli_args *args, pe_survey *survey)
{
    static const cli_option row  = {.name = "grid", .type = CLI_GRID, .low = 1, .high = LONGEST_SIDE};
    cli_numbers             grid = {0};
    const int               said = cli_read_as(args, &row, &grid);
    if (said <= 0)
        return said ? CLI_USAGE : CLI_DONE;
    if (cli_value(args, "length"))
        return cli_usage(
            "properties: --length and --grid both say how many positions there are; give one of them");
    survey->rows         = grid.whole[0];
    survey->sizes.length = grid.whole[0] * grid.whole[1];
    return survey->sizes.length >= 2 && survey->sizes.length <= LARGEST_GRID
               ? CLI_DONE
               : cli_usage("properties: --grid is \"%s\"; it must have 2 to %d positions",
                           cli_value(args, "grid"), LARGEST_GRID);
}

static int run(const cli_args *args)
{
    pe_survey survey = {
        .sizes  = {.length = LENGTH, .width = WIDTH, .heads = HEADS, .draws = DRAWS, .seed = 1},
        .tokens = TOKENS};
    if (cli_read(args, &survey) || read_grid(args, &survey))
        return CLI_USAGE;
    pe_calc p = pe_calc_new("properties");
    cli_calc_said(&p, survey_or_sweep(args, cli_calc_settings(&p, args), &survey));
    return cli_calc_end(&p);
}

const cli_command cli_properties = {
    .name     = "properties",
    .summary  = "measure encodings: uniqueness, relativity, equivariance, decay, direction, cost",
    .synopsis = "[SPEC...] [--set NAME=VALUE]... [--sweep NAME=V,V,...]... [--json]",
    .details =
        "With one SPEC, prints every number, each with a verdict by a fixed rule; with several, or with none "
        "for all encodings, one line for each. Formulas, units and rules: docs/properties.md.\n\n"
        "uniqueness: the nearest pair of vectors, and what rounding to bf16 leaves of them; distances that "
        "the scores tell apart. relativity: whether a step of k positions is one linear map, and whether dot "
        "products and scores depend only on the offset. score terms: content and position in the scores of "
        "an input encoding. equivariance: what a permutation of the tokens changes. decay: scores against "
        "distance. grid: for positions of two coordinates, or with --grid, how much of the table is rows and "
        "columns, "
        "and whether dot products fall with the distance of the cells. cost: parameters, operations, memory; "
        "with "
        "--time speed.\n\n"
        "A learned encoding is measured as it is initialised; if all its parameters are initialised to zero, "
        "they are drawn from N(0,1). For equivariance, N(0,1) is added to parameters that are initialised to "
        "one constant. swin, swin_v2 and hierarchical get a window or a table that fits the length, unless "
        "it is set.\n\n"
        "--sweep needs one SPEC with an input part: for each value of the setting it prints the nearest "
        "pair, the residuals r(1), r(7), r(64), tau, and how many channels hardly change.",
    .options = options,
    .run     = run,
    .takes   = "SPEC...",
};

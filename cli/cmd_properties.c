/* SPDX-License-Identifier: MIT */
/*
 * cmd_properties.c: posenc properties: is it unique, relative, blind to order, falling with distance, and at
 * what cost?
 *
 * measure/measure.h measures and finds the words; this command chooses sizes and shows the numbers: all of
 * one encoding, or one line for each of several, or everything as JSON. With --sweep the vectors of one input
 * encoding are measured again for each value of a setting (sweep.c). The formulas stand in
 * docs/properties.md.
 */
#include "problem.h"
#include "sweep.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 512, TOKENS = 64, WIDTH = 64, HEADS = 4, DRAWS = 20 }; /* where nothing is said */
enum { LONGEST = 65536, MOST_TOKENS = 2048, WIDEST = 4096, MOST_HEADS = 64, MOST_DRAWS = 10000 };
enum { TEXT = 64, SPEC = 512, SUMMARY_SIZE = 7 };

static const cli_option options[] = {
    {0, "set", "NAME=VALUE", "a setting of the encoding (may be repeated); see posenc list NAME"},
    {0, "length", "N", "positions of tables, distances of scores (512)", CLI_WHOLE,
     offsetof(pe_survey, sizes.length), 2, LONGEST},
    {0, "tokens", "N", "tokens where the work is quadratic: eta, terms, equivariance (64)", CLI_WHOLE,
     offsetof(pe_survey, tokens), 2, MOST_TOKENS},
    {0, "dim", "D", "width of a vector (input) or of a head (64)", CLI_WHOLE,
     offsetof(pe_survey, sizes.width), 1, WIDEST},
    {0, "heads", "H", "heads (4)", CLI_WHOLE, offsetof(pe_survey, sizes.heads), 1, MOST_HEADS},
    {0, "draws", "N", "draws of content, matrices and initial parameters (20)", CLI_WHOLE,
     offsetof(pe_survey, sizes.draws), 1, MOST_DRAWS},
    {0, "seed", "N", "seed of everything drawn (1)", CLI_WHOLE, offsetof(pe_survey, sizes.seed), 0,
     INT64_MAX / 2},
    {0, "sweep", "NAME=V,V,...", "measure the vectors again for each value of a setting (may be repeated)"},
    {0, "time", NULL, "measure the speed too; its number is another at each run", CLI_FLAG,
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
} subject;

/* posenc_status of the subject: what is wrong stands in its err. */
static posenc_status measure(subject *s, const char *settings, const pe_survey *survey)
{
    posenc_encoding *e;
    posenc_status    status = pe_measure_encoding(&e, s->name, settings, &s->err);
    if (status)
        return status;
    snprintf(s->spec, sizeof s->spec, "%s", posenc_encoding_spec(e));
    s->coordinates = posenc_rows_coordinates(e);
    s->has_input   = posenc_encoding_part(e, POSENC_PLACE_INPUT) != NULL;
    status         = pe_measure_all(e, survey, &s->findings, &s->err);
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
static const char *const words[REASONS] = {"no vectors", "not on a line", "causal alone",
                                           "no position in the scores"};
static const char *const notes[REASONS] = {
    "the encoding adds nothing at the input",
    "a position has several coordinates (a grid), or belongs to a word: there is no distance i - j to "
    "measure by",
    "the encoding has no meaning without a causal mask, which hides the future",
    "the scores are the same at every distance"};

static int print_one(const subject *s, const pe_survey *survey)
{
    static const pe_column columns[] = {{"PROPERTY", "", 1, 0}, {"MEASURE", "", 1, 0}, {"OF", "", 1, 0},
                                        {"VALUE", "", 0, 0},    {"SPREAD", "", 0, 0},  {"UNIT", "", 1, 0},
                                        {"VERDICT", "", 1, 0}};
    const pe_findings     *f         = &s->findings;
    pe_table               table;
    int                    made = pe_table_create(&table, columns, 7, f->count);
    for (int i = 0; made && i < f->count; i++) {
        const pe_finding *row = &f->rows[i];
        char              value[TEXT], spread[TEXT];
        number_text(value, row->value);
        number_text(spread, row->spread);
        const char *const cells[] = {pe_measure_property(row->measure),
                                     pe_measure_title(row->measure),
                                     row->detail,
                                     value,
                                     isnan(row->spread) ? "" : spread,
                                     pe_measure_unit(row->measure),
                                     row->verdict ? row->verdict : ""};
        for (int k = 0; made && k < 7; k++)
            made = pe_table_set(&table, i, k, "%s", cells[k]);
    }
    if (!made) {
        pe_table_free(&table);
        return cli_failed("properties: there is no memory for the table");
    }
    printf("%s: %lld positions, %lld tokens, width %lld, %lld heads, %lld draws, seed %llu\n%s\n", s->spec,
           (long long)survey->sizes.length, (long long)survey->tokens, (long long)survey->sizes.width,
           (long long)survey->sizes.heads, (long long)survey->sizes.draws,
           (unsigned long long)survey->sizes.seed,
           s->findings.drawn ? "born as zeros: parameters are drawn from N(0,1)\n" : "");
    cli_print_table(&table);
    if (s->coordinates > 1)
        printf("\n%s: %s.\n", words[NOT_ON_A_LINE], notes[NOT_ON_A_LINE]);
    return CLI_DONE;
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

static int set_summary(pe_table *table, int row, const subject *s)
{
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
            printf("%s: %s.\n", words[r], notes[r]);
    for (int i = 0; i < count; i++) {
        if (!list[i].err.status && list[i].findings.drawn)
            printf("%s: born as zeros; its parameters are drawn from N(0,1).\n", list[i].name);
        if (!list[i].err.status && strlen(list[i].spec) > strlen(list[i].name))
            printf("%s: measured as %s.\n", list[i].name, list[i].spec);
    }
}

static int print_summary(const subject *list, int count)
{
    static const pe_column columns[] = {{"ENCODING", "", 1, 0},          {"NEAREST VECTORS", "", 1, 0},
                                        {"STEP r(1)", "", 1, 0},         {"SCORES eta", "", 1, 0},
                                        {"PERMUTED, NO MASK", "", 1, 0}, {"DIRECTION", "", 1, 0},
                                        {"TREND rho", "", 1, 0},         {"PARAMETERS", "", 1, 0}};
    pe_table               table;
    int                    row = 0, measured = 0;
    for (int i = 0; i < count; i++)
        measured += !list[i].err.status;
    int made = pe_table_create(&table, columns, SUMMARY_SIZE + 1, measured);
    for (int i = 0; made && i < count; i++)
        if (!list[i].err.status)
            made = set_summary(&table, row++, &list[i]);
    if (!made) {
        pe_table_free(&table);
        return cli_failed("properties: there is no memory for the table");
    }
    cli_print_table(&table);
    print_notes(list, count);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- --json -------------------- */

static json_t *json_findings(const pe_findings *f)
{
    json_t *list = json_array();
    for (int i = 0; i < f->count; i++) {
        const pe_finding *row = &f->rows[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "property", pe_measure_property(row->measure),
                      "measure", pe_measure_title(row->measure), "of", cli_json_text(row->detail), "value",
                      cli_json_real(row->value), "spread", cli_json_real(row->spread), "unit",
                      cli_json_text(pe_measure_unit(row->measure)), "verdict", cli_json_text(row->verdict)));
    }
    return list;
}

static int print_json(const subject *list, int count, const pe_survey *survey)
{
    json_t *all = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(all, list[i].err.status ? json_pack("{s:s, s:s}", "encoding", list[i].name,
                                                                  "not_measured", list[i].err.message)
                                                      : json_pack("{s:s, s:s, s:b, s:o}", "encoding",
                                                                  list[i].name, "measured_as", list[i].spec,
                                                                  "drawn", list[i].findings.drawn, "findings",
                                                                  json_findings(&list[i].findings)));
    json_t *value =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "length", (json_int_t)survey->sizes.length, "tokens",
                  (json_int_t)survey->tokens, "dim", (json_int_t)survey->sizes.width, "heads",
                  (json_int_t)survey->sizes.heads, "draws", (json_int_t)survey->sizes.draws, "seed",
                  (json_int_t)survey->sizes.seed, "encodings", all);
    return cli_print_json(value, 9);
}

/* ---------------------------------------------------------------- the command --------------- */

/* The names that were given must all be measured; of those that were not, some have no meaning at these
   sizes. */
static int measure_all(const cli_args *args, subject *list, int count, const char *settings,
                       const pe_survey *survey)
{
    const int given = cli_count(args) > 0;
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
        return cli_sweep(args, settings, &survey->sizes);
    const int      count  = cli_count(args) ? cli_count(args) : posenc_encoding_count();
    subject *const list   = calloc((size_t)count, sizeof *list);
    const int      status = list ? measure_all(args, list, count, settings, survey)
                                 : cli_failed("properties: there is no memory for %d encodings", count);
    free(list);
    return status;
}

static int run(const cli_args *args)
{
    pe_survey survey = {
        .sizes  = {.length = LENGTH, .width = WIDTH, .heads = HEADS, .draws = DRAWS, .seed = 1},
        .tokens = TOKENS};
    if (cli_read(args, &survey))
        return CLI_USAGE;
    cli_problem p = cli_problem_new("properties");
    cli_said(&p, survey_or_sweep(args, cli_settings(&p, args), &survey));
    return cli_problem_end(&p);
}

const cli_command cli_properties = {
    .name     = "properties",
    .summary  = "measure encodings: uniqueness, relativity, equivariance, decay, direction, cost",
    .synopsis = "[SPEC...] [--set NAME=VALUE]... [--sweep NAME=V,V,...]... [--json]",
    .details =
        "With one SPEC every number of it, each with the word that a fixed rule gives it; with several, or "
        "with none for all encodings, a line for each. Formulas, units and rules: docs/properties.md.\n\n"
        "uniqueness: the nearest pair of vectors, and what rounding to bf16 leaves of them; distances that "
        "the scores tell apart. relativity: whether a step of k positions is one linear map, and whether dot "
        "products and scores depend on the offset alone. score terms: content and position in the scores of "
        "an input encoding. equivariance: what a permutation of the tokens changes. decay: scores against "
        "distance. cost: parameters, operations, memory; with --time speed.\n\n"
        "An encoding that learns is measured as it is born; one that is born as zeros throughout has its "
        "parameters drawn from N(0,1). For equivariance N(0,1) is added to parameters that are born as one "
        "number everywhere. swin, swin_v2 and hierarchical, unless told otherwise, get a window or a table "
        "that suits the length.\n\n"
        "--sweep needs one SPEC with an input part: for each value of the setting the nearest pair, the "
        "residuals r(1), r(7), r(64), tau, and how many channels are idle.",
    .options = options,
    .run     = run,
};

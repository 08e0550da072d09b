/* SPDX-License-Identifier: MIT */
/*
 * sweep.c: why this base, this spacing, sine and cosine? Measured for each value of a setting
 *
 * The questions that every introduction to sinusoids asks have numbers: how near the nearest two vectors
 * come, whether a step is still one linear map, and how many channels stand nearly still over the positions
 * there are. Everything is measured before anything is printed, so that a wrong value in a list prints no
 * half table.
 */
#include "sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFTS = 3, MOST_VALUES = 64, VALUE = 64 };
static const int64_t shifts[SHIFTS] = {1, 7, 64};

/* What is measured of one value. */
typedef struct point {
    char    value[VALUE];
    pe_pair nearest;
    double  r[SHIFTS], tau;
    int64_t idle;
} point;

/* One --sweep. */
typedef struct sweep {
    char  name[VALUE];
    point points[MOST_VALUES];
    int   count;
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
            return cli_usage("properties: --sweep %s needs 1 to %d values, each of 1 to %d letters", text,
                             MOST_VALUES, VALUE - 1);
        snprintf(to->points[to->count++].value, VALUE, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
    return CLI_DONE;
}

static posenc_status measure_table(point *p, const double *table, int64_t N, int64_t d, posenc_error *err)
{
    p->nearest           = pe_nearest_pair(table, N, d);
    p->idle              = pe_idle_channels(table, N, d);
    posenc_status status = pe_offset_share(&p->tau, table, N, d, err);
    for (int k = 0; !status && k < SHIFTS; k++)
        status = pe_shift_residual(&p->r[k], table, N, d, shifts[k], err);
    return status;
}

static int measure_encoding(point *p, const posenc_encoding *e, const pe_subject_sizes *sizes)
{
    posenc_error err;
    pe_subject  *s;
    double      *table = malloc((size_t)(sizes->length * sizes->width) * sizeof *table);
    if (!table)
        return cli_failed("properties: there is no memory for a table");
    posenc_status status = pe_subject_create(&s, e, sizes, &err);
    if (!status)
        status = pe_subject_rows(s, NULL, table, &err);
    if (!status)
        status = measure_table(p, table, sizes->length, sizes->width, &err);
    pe_subject_free(s);
    free(table);
    return status ? cli_error(&err) : CLI_DONE;
}

static int measure_point(const char *spec, const char *settings, const char *name, point *p,
                         const pe_subject_sizes *sizes)
{
    posenc_error     err;
    posenc_encoding *e;
    const size_t     room = strlen(settings) + strlen(name) + VALUE + 3;
    char            *all  = malloc(room);
    if (!all)
        return cli_failed("properties: there is no memory for the settings");
    snprintf(all, room, "%s%s%s=%s", settings, *settings ? " " : "", name, p->value);
    const posenc_status status = pe_measure_encoding(&e, spec, all, &err);
    free(all);
    if (status)
        return cli_error(&err);
    const int result =
        posenc_encoding_part(e, POSENC_PLACE_INPUT)
            ? measure_encoding(p, e, sizes)
            : cli_usage("properties: --sweep measures vectors at the input, which %s has not", spec);
    posenc_encoding_free(e);
    return result;
}

/* ---------------------------------------------------------------- showing it ---------------- */

static void share_text(char text[VALUE], double x)
{
    snprintf(text, VALUE, isnan(x) ? "-" : x < 1e-20 ? "<1e-20" : "%.4g", x);
}

static int set_row(pe_table *table, int row, const sweep *s, const pe_subject_sizes *sizes)
{
    const point *p = &s->points[row];
    char         shares[SHIFTS + 1][VALUE];
    for (int k = 0; k < SHIFTS; k++)
        share_text(shares[k], p->r[k]);
    share_text(shares[SHIFTS], p->tau);
    int made = pe_table_set(table, row, 0, "%s=%s", s->name, p->value) &&
               pe_table_set(table, row, 1, "%.4f", p->nearest.distance) &&
               pe_table_set(table, row, 2, "%s", pe_word(PE_NEAREST, p->nearest.distance)) &&
               pe_table_set(table, row, 7, "%s", pe_word(PE_SHIFT, p->r[0])) &&
               pe_table_set(table, row, 8, "%lld of %lld", (long long)p->idle, (long long)sizes->width);
    for (int k = 0; made && k <= SHIFTS; k++)
        made = pe_table_set(table, row, k + 3, "%s", shares[k]);
    return made;
}

static int print_sweep(const sweep *s, const pe_subject_sizes *sizes)
{
    static const pe_column columns[] = {{"SETTING", "", 1, 0}, {"NEAREST PAIR", "", 0, 0},
                                        {"", "", 1, 0},        {"r(1)", "", 0, 0},
                                        {"r(7)", "", 0, 0},    {"r(64)", "", 0, 0},
                                        {"tau", "", 0, 0},     {"STEP k=1", "", 1, 0},
                                        {"IDLE", "", 0, 0}};
    pe_table               table;
    int                    made = pe_table_create(&table, columns, 9, s->count);
    for (int i = 0; made && i < s->count; i++)
        made = set_row(&table, i, s, sizes);
    if (made)
        cli_print_table(&table);
    else
        pe_table_free(&table);
    return made ? CLI_DONE : cli_failed("properties: there is no memory for the table");
}

static void add_sweep(json_t *list, const sweep *s)
{
    for (int i = 0; i < s->count; i++) {
        const point *p = &s->points[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:f, s:s, s:[o,o,o], s:s, s:o, s:I}", "setting", s->name,
                                        "value", p->value, "nearest", p->nearest.distance, "nearest_verdict",
                                        pe_word(PE_NEAREST, p->nearest.distance), "shift_residuals",
                                        cli_json_real(p->r[0]), cli_json_real(p->r[1]),
                                        cli_json_real(p->r[2]), "shift_verdict", pe_word(PE_SHIFT, p->r[0]),
                                        "tau", cli_json_real(p->tau), "idle_channels", (json_int_t)p->idle));
    }
}

static int show(const cli_args *args, const sweep *list, int count, const pe_subject_sizes *sizes)
{
    int status = CLI_DONE;
    if (!cli_value(args, "json")) {
        for (int i = 0; !status && i < count; i++)
            status = (i && putchar('\n') == EOF) ? CLI_FAILED : print_sweep(&list[i], sizes);
        return status;
    }
    json_t *all = json_array();
    for (int i = 0; i < count; i++)
        add_sweep(all, &list[i]);
    return cli_print_json(all, 9);
}

int cli_sweep(const cli_args *args, const char *settings, const pe_subject_sizes *sizes)
{
    const int count  = cli_value_count(args, "sweep");
    int       status = CLI_DONE;
    if (cli_count(args) != 1)
        return cli_usage("properties: --sweep needs one SPEC, not %d", cli_count(args));
    sweep *list = calloc((size_t)count, sizeof *list);
    if (!list)
        return cli_failed("properties: there is no memory for %d sweeps", count);
    for (int i = 0; !status && i < count; i++) {
        status = read_sweep(&list[i], cli_value_at(args, "sweep", i));
        for (int k = 0; !status && k < list[i].count; k++)
            status = measure_point(cli_at(args, 0), settings, list[i].name, &list[i].points[k], sizes);
    }
    if (!status)
        status = show(args, list, count, sizes);
    free(list);
    return status;
}

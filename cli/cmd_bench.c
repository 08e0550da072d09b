/* SPDX-License-Identifier: MIT */
/*
 * cmd_bench.c: posenc bench: how fast is every kernel, beside what this machine can do?
 *
 * bench/bench.h knows the rows and measures them; this command chooses among them, shows how far it is, and
 * prints a table or JSON. A row is never missing: what is not measured says why. Ctrl-C (SIGINT, SIGTERM)
 * keeps what is finished, and the other rows say that they were interrupted. A goal that is not met is a
 * figure, no failure: the exit status is 0.
 */
#include "bench/bench.h"

#include "cli.h"
#include "columns.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REPEATS = 1000, REPEATS = 31, MOST_THREADS = 1024, TEXT = 64 };

#define SECONDS 1.0
/* On a machine that others disturb rows take longer: after so many seconds each gets three turns alone. */
#define HURRY_AFTER 330.0

static const cli_option options[] = {
    {0, "goal", "G1,G2,...", "only the rows of these goals (see --list)"},
    {0, "long", NULL, "G17 too: sequences of a million tokens, for minutes"},
    {0, "repeats", "N", "turns of a kernel and its limit, at most (31)"},
    {0, "seconds", "S", "time for each row, beyond its first seven turns (1)", CLI_REAL,
     offsetof(pe_bench_effort, seconds), 0, 3600},
    {0, "threads", "N", "threads of every kernel and of its limit (1)"},
    {0, "list", NULL, "print the rows and what is wanted of them, measure nothing"},
    {0, "json", NULL, "print the rows as one JSON array"},
    {0, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- rows as text and JSON ------ */

static json_t *met_json(const pe_bench_row *row)
{
    const int met = pe_bench_met(row);
    return met < 0 ? json_null() : json_boolean(met);
}

static json_t *row_json(const pe_bench_row *row)
{
    const pe_bench_case   *c      = row->what;
    const pe_bench_figure *f      = &row->figure;
    const double           wanted = c->sense == PE_STATED ? (double)NAN : c->wanted;
    json_t *value = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "goal", c->goal, "name",
                              c->name, "value", cli_json_real(f->value), "q1", cli_json_real(f->q1), "q3",
                              cli_json_real(f->q3), "limit", cli_json_real(f->limit), "unit", c->unit,
                              "wanted", cli_json_real(wanted), "met", met_json(row));
    if (value && *row->reason)
        json_object_set_new(value, "reason", json_string(row->reason));
    return value;
}

json_t *cli_bench_json(const pe_bench_row *rows, int count)
{
    json_t *all = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(all, row_json(&rows[i]));
    return all;
}

static const char *wanted_text(char text[TEXT], const pe_bench_case *c)
{
    switch (c->sense) {
    case PE_AT_LEAST: snprintf(text, TEXT, ">= %.4g", c->wanted); break;
    case PE_AT_MOST: snprintf(text, TEXT, "<= %.4g", c->wanted); break;
    case PE_NEAR_ONE: snprintf(text, TEXT, "1 +- %.2g", 1 - c->wanted); break;
    case PE_STATED: return "";
    }
    return text;
}

static const char *number_text(char text[TEXT], double x)
{
    if (isnan(x))
        return "";
    snprintf(text, TEXT, fabs(x) < 10 ? "%.3f" : fabs(x) < 1000 ? "%.1f" : "%.0f", x);
    return text;
}

static const char *limit_text(char text[2 * TEXT], const pe_bench_row *row)
{
    char number[TEXT];
    snprintf(text, 2 * TEXT, "%s%s%s", number_text(number, row->figure.limit),
             isnan(row->figure.limit) ? "" : " ", isnan(row->figure.value) ? "" : row->what->unit);
    return text;
}

static int set_row(pe_table *table, int i, const pe_bench_row *row)
{
    static const char *const words[] = {"", "NO", "yes"};
    char                     texts[4][TEXT], limit[2 * TEXT], quartiles[2 * TEXT + 4] = "";
    if (!isnan(row->figure.q1))
        snprintf(quartiles, sizeof quartiles, "[%s %s]", number_text(texts[0], row->figure.q1),
                 number_text(texts[1], row->figure.q3));
    const char *const cells[] = {row->what->goal,
                                 row->what->name,
                                 number_text(texts[2], row->figure.value),
                                 quartiles,
                                 wanted_text(texts[3], row->what),
                                 words[pe_bench_met(row) + 1],
                                 *row->reason ? row->reason : limit_text(limit, row)};
    int               made    = 1;
    for (int k = 0; made && k < 7; k++)
        made = pe_table_set(table, i, k, "%s", cells[k]);
    return made;
}

static int print_table(const pe_bench_row *rows, int count)
{
    static const pe_column columns[] = {{"GOAL", "", 1, 0},      {"WHAT", "", 1, 0},   {"VALUE", "", 0, 0},
                                        {"QUARTILES", "", 1, 0}, {"WANTED", "", 1, 0}, {"MET", "", 1, 0},
                                        {"LIMIT", "", 1, 0}};
    pe_table               table;
    int                    made = pe_table_create(&table, columns, 7, count);
    for (int i = 0; made && i < count; i++)
        made = set_row(&table, i, &rows[i]);
    if (!made) {
        pe_table_free(&table);
        return cli_failed("bench: there is no memory for the table");
    }
    cli_print_table(&table);
    return CLI_DONE;
}

/* ---------------------------------------------------------------- measuring ------------------ */

static void show_progress(int i, int count, const char *name)
{
    if (cli_is_terminal(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%.90s", i < count ? "measuring: " : "", name);
}

static void measure_all(const cli_args *args, pe_bench_row *rows, int count, const pe_bench_effort *effort)
{
    const int is_long = cli_value(args, "long") != NULL, is_list = cli_value(args, "list") != NULL;
    const pe_bench_effort hurried = {.repeats = effort->repeats < 3 ? effort->repeats : 3,
                                     .threads = effort->threads};
    const time_t          start   = time(NULL);
    for (int i = 0; i < count; i++) {
        if (is_list || cli_interrupted) {
            pe_bench_leave(&rows[i], rows[i].what, is_list ? "not measured: --list" : "interrupted");
            continue;
        }
        show_progress(i, count, rows[i].what->name);
        const int is_late = !is_long && difftime(time(NULL), start) > HURRY_AFTER;
        pe_bench_measure(&rows[i], rows[i].what, is_late ? &hurried : effort, is_long);
    }
    if (!is_list)
        show_progress(count, count, "");
}

static int measure_and_print(const cli_args *args, pe_bench_row *rows, int count,
                             const pe_bench_effort *effort)
{
    cli_heed(SIGINT);
    cli_heed(SIGTERM);
    measure_all(args, rows, count, effort);
    const int status =
        cli_value(args, "json") ? cli_print_json(cli_bench_json(rows, count), 6) : print_table(rows, count);
    return cli_interrupted && status == CLI_DONE ? CLI_INTERRUPTED : status;
}

/* ---------------------------------------------------------------- the command ---------------- */

static int read_effort(const cli_args *args, pe_bench_effort *effort)
{
    int64_t repeats = REPEATS, threads = 1;
    *effort = (pe_bench_effort){.seconds = SECONDS};
    if (cli_count(args))
        return cli_usage("bench: \"%s\" is one word too many; goals are chosen by --goal", cli_at(args, 0));
    if (cli_integer(args, "repeats", 1, MOST_REPEATS, &repeats) < 0 || cli_read(args, effort) ||
        cli_integer(args, "threads", 1, MOST_THREADS, &threads) < 0)
        return CLI_USAGE;
    effort->repeats = (int)repeats;
    effort->threads = (int)threads;
    return CLI_DONE;
}

/* Rows are in the order of their goals. */
static int refuse_goal(const char *word, int length, const pe_bench_case *cases, int count)
{
    char   list[256] = "";
    size_t used      = 0;
    for (int i = 0; i < count && used < sizeof list; i++)
        if (!i || strcmp(cases[i].goal, cases[i - 1].goal) != 0)
            used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", cases[i].goal);
    return cli_usage("bench: --goal names \"%.*s\"; goals are %s", length, word, list);
}

static int choose(const cli_args *args, const pe_bench_case *cases, int count, const pe_bench_effort *effort)
{
    const char *goals = cli_value(args, "goal");
    int         length, chosen = 0;
    const char *stranger = goals ? pe_bench_stranger(goals, cases, count, &length) : NULL;
    if (stranger)
        return refuse_goal(stranger, length, cases, count);
    pe_bench_row *rows = calloc((size_t)count, sizeof *rows);
    if (!rows)
        return cli_failed("bench: there is no memory for %d rows", count);
    for (int i = 0; i < count; i++)
        if (pe_bench_is_wanted(goals, cases[i].goal))
            rows[chosen++].what = &cases[i];
    const int status = measure_and_print(args, rows, chosen, effort);
    free(rows);
    return status;
}

static int run(const cli_args *args)
{
    pe_bench_effort effort;
    pe_bench_case  *cases;
    posenc_error    err;
    int             count;
    if (read_effort(args, &effort))
        return CLI_USAGE;
    if (pe_bench_cases(&cases, &count, &err))
        return cli_error(&err);
    const int status = choose(args, cases, count, &effort);
    free(cases);
    return status;
}

const cli_command cli_bench = {
    .name     = "bench",
    .summary  = "measure every kernel against this machine's own limits",
    .synopsis = "[--goal G1,G2,...] [--long] [--repeats N] [--seconds S] [--threads N] [--list] [--json]",
    .details =
        "Each kernel runs in turns with the limit of the machine that it works against: a pass over the same "
        "memory in place, a copy, a store, a read, or a loop of multiply-adds; on random numbers. VALUE is "
        "the kernel's share of the limit in the same turn (or the time over another run, where at most so "
        "much is wanted): the median of all turns, with their quartiles. LIMIT is what the limit itself "
        "reached. The limits are measured and checked first (goal limits).\n\n"
        "What this machine cannot do has a row that says why. Goals, rules, and what was reached where: "
        "docs/performance.md. POSENC_ISA measures another instruction set. All of it takes three to eight "
        "minutes; a goal that is not met is no failure (status 0).",
    .options = options,
    .run     = run,
};

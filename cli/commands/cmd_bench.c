/* SPDX-License-Identifier: MIT */
/*
 * cmd_bench.c: posenc bench: how fast is every kernel, compared with what this computer can do?
 *
 * bench/bench.h knows the rows and measures them; this command chooses among them, shows how far it is, and
 * prints a table, JSON or CSV. A row is never missing: what is not measured says why. After Ctrl-C (SIGINT,
 * SIGTERM) what is finished is printed, and the other rows say that they were interrupted. A goal that is not
 * met is a figure, no failure: the exit status is 0.
 */
#include "bench/bench.h"
#include "files/arrays/text.h"
#include "cli/print/print.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REPEATS = 1000, REPEATS = 31, MOST_THREADS = 1024, TEXT = 64 };

#define SECONDS 1.0
/* Rows take longer where other programs disturb them: after so many seconds each gets only three repeats. */
#define HURRY_AFTER 330.0

typedef struct bench_job {
    const char *goals;
    int         is_long, is_list, is_json, is_csv;
    int64_t     repeats, threads;
    double      seconds;
} bench_job;

static const cli_option options[] = {
    {0, "goal", "G1,G2,...", "only the rows of these goals (see --list)", CLI_TEXT,
     offsetof(bench_job, goals)},
    {0, "long", NULL, "also measure G17: sequences of a million tokens, which takes minutes", CLI_FLAG,
     offsetof(bench_job, is_long)},
    {0, "repeats", "N", "most repeats of a kernel and its limit (31)", CLI_WHOLE,
     offsetof(bench_job, repeats), 1, MOST_REPEATS},
    {0, "seconds", "S", "time for each row, after its first seven repeats (1)", CLI_REAL,
     offsetof(bench_job, seconds), 0, 3600},
    {0, "threads", "N", "threads of every kernel and of its limit (1)", CLI_WHOLE,
     offsetof(bench_job, threads), 1, MOST_THREADS},
    {0, "list", NULL, "print the rows and what is wanted of them, measure nothing", CLI_FLAG,
     offsetof(bench_job, is_list)},
    {0, "json", NULL, "print the rows as one JSON array", CLI_FLAG, offsetof(bench_job, is_json)},
    {0, "csv", NULL, "print the rows as CSV, each with this machine and today's date", CLI_FLAG,
     offsetof(bench_job, is_csv)},
    {0, NULL, NULL, NULL},
};

/* ---------------------------------------------------------------- rows as text and CSV -------- */

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

static const pe_column columns[] = {{"GOAL", "", 1, 0},       {"WHAT", "", PE_WIDE, 0},
                                    {"VALUE", "", 0, 0},      {"QUARTILES", "", PE_WIDE, 0},
                                    {"WANTED", "", 1, 0},     {"MET", "", 1, 0},
                                    {"LIMIT", "", PE_WIDE, 0}};

static int set_row(pe_table *table, int i, const void *rows)
{
    const pe_bench_row      *row     = (const pe_bench_row *)rows + i;
    static const char *const words[] = {"", "NO", "yes"};
    char                     texts[4][TEXT], limit[2 * TEXT], quartiles[2 * TEXT + 4] = "";
    if (!isnan(row->figure.q1))
        snprintf(quartiles, sizeof quartiles, "[%s %s]", number_text(texts[0], row->figure.q1),
                 number_text(texts[1], row->figure.q3));
    snprintf(limit, sizeof limit, "%s%s%s", number_text(texts[0], row->figure.limit),
             isnan(row->figure.limit) ? "" : " ", isnan(row->figure.value) ? "" : row->what->unit);
    const char *const cells[] = {row->what->goal,
                                 row->what->name,
                                 number_text(texts[2], row->figure.value),
                                 quartiles,
                                 wanted_text(texts[3], row->what),
                                 words[pe_bench_met(row) + 1],
                                 *row->reason ? row->reason : limit};
    int               made    = 1;
    for (int k = 0; made && k < 7; k++)
        made = pe_table_set(table, i, k, "%s", cells[k]);
    return made;
}

static int print_csv(const pe_bench_row *rows, int count)
{
    static const char *const met[] = {"", "no", "yes"};
    const time_t             now   = time(NULL);
    char                     machine[4 * TEXT], date[TEXT];
    pe_bench_machine(machine, sizeof machine);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    puts("machine,date,isa,goal,name,value,q1,q3,limit,wanted,unit,met,reason");
    for (int i = 0; i < count; i++) {
        const pe_bench_case   *c         = rows[i].what;
        const pe_bench_figure *f         = &rows[i].figure;
        const double           wanted    = c->sense == PE_STATED ? (double)NAN : c->wanted;
        const double           numbers[] = {f->value, f->q1, f->q3, f->limit, wanted};
        pe_text_write_csv(stdout, machine);
        printf(",%s,%s,%s,", date, c->isa ? c->isa : posenc_isa(), c->goal);
        pe_text_write_csv(stdout, c->name);
        for (int k = 0; k < 5; k++) {
            putchar(',');
            if (!isnan(numbers[k]))
                printf("%.6g", numbers[k]);
        }
        printf(",%s,%s,", c->unit, met[pe_bench_met(&rows[i]) + 1]);
        pe_text_write_csv(stdout, rows[i].reason);
        putchar('\n');
    }
    return CLI_DONE;
}

/* ---------------------------------------------------------------- measuring ------------------ */

static void show_progress(int i, int count, const char *name)
{
    if (cli_is_terminal(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%.90s", i < count ? "measuring: " : "", name);
}

static void measure_all(const bench_job *j, pe_bench_row *rows, int count)
{
    const int             repeats = (int)j->repeats, threads = (int)j->threads;
    const pe_bench_effort full    = {.seconds = j->seconds, .repeats = repeats, .threads = threads};
    const pe_bench_effort hurried = {.repeats = repeats < 3 ? repeats : 3, .threads = threads};
    const time_t          start   = time(NULL);
    for (int i = 0; i < count; i++) {
        if (j->is_list || cli_interrupted) {
            pe_bench_skip(&rows[i], rows[i].what, j->is_list ? "not measured: --list" : "interrupted");
            continue;
        }
        show_progress(i, count, rows[i].what->name);
        const int is_late = !j->is_long && difftime(time(NULL), start) > HURRY_AFTER;
        pe_bench_measure(&rows[i], rows[i].what, is_late ? &hurried : &full, j->is_long);
    }
    if (!j->is_list)
        show_progress(count, count, "");
}

/* ---------------------------------------------------------------- the command ---------------- */

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

static int choose(const bench_job *j, const pe_bench_case *cases, int count)
{
    int         length, chosen = 0;
    const char *stranger = j->goals ? pe_bench_unknown_goal(j->goals, cases, count, &length) : NULL;
    if (stranger)
        return refuse_goal(stranger, length, cases, count);
    pe_bench_row *rows = calloc((size_t)count, sizeof *rows);
    if (!rows)
        return cli_failed("bench: not enough memory for %d rows", count);
    for (int i = 0; i < count; i++)
        if (pe_bench_is_wanted(j->goals, cases[i].goal))
            rows[chosen++].what = &cases[i];
    static const char interruption[] =
        "posenc: interrupted: printing what was measured after this row; once more ends at once\n";
    cli_catch(SIGINT, interruption);
    cli_catch(SIGTERM, interruption);
    measure_all(j, rows, chosen);
    const int status = j->is_json  ? cli_print_json(cli_json_bench(rows, chosen), 6)
                       : j->is_csv ? print_csv(rows, chosen)
                                   : cli_print_rows("bench", columns, 7, chosen, set_row, rows);
    free(rows);
    return cli_interrupted && status == CLI_DONE ? CLI_INTERRUPTED : status;
}

static int run(const cli_args *args)
{
    bench_job      j = {.repeats = REPEATS, .threads = 1, .seconds = SECONDS};
    pe_bench_case *cases;
    posenc_error   err;
    int            count;
    if (args->count)
        return cli_usage("bench: unexpected argument \"%s\"; choose goals with --goal", cli_at(args, 0));
    if (cli_read(args, &j))
        return CLI_USAGE;
    if (j.is_json && j.is_csv)
        return cli_usage("bench: --json and --csv cannot be given together; leave out one of them");
    if (pe_cases_create(&cases, &count, &err))
        return cli_error(&err);
    const int status = choose(&j, cases, count);
    free(cases);
    return status;
}

const cli_command cli_bench = {
    .name     = "bench",
    .summary  = "measure every kernel against this machine's own limits",
    .synopsis = "[--goal G1,G2,...] [--long] [--repeats N] [--seconds S] [--threads N] [--list] [--json | "
                "--csv]",
    .details =
        "Each kernel runs alternately with the limit that it works against: a pass over the same memory in "
        "place, a copy, a store, a read, or a loop of multiply-adds, all on random numbers. VALUE is the "
        "share of the limit that the kernel reaches, or, where smaller is better, its time divided by that "
        "of another run: the median of all repeats, with their quartiles. LIMIT is what the limit itself "
        "reached. The limits are measured and checked first (goal limits).\n\n"
        "A row that this machine cannot measure says why. docs/performance.md explains the method and says "
        "what was reached. POSENC_ISA selects another instruction set. The whole table takes three to eight "
        "minutes. The exit status is 0 whether or not the goals are met.",
    .options = options,
    .run     = run,
};

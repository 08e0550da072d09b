/* SPDX-License-Identifier: MIT */
/*
 * tour.c: through a tutorial, row by row. Contract: tour.h.
 *
 * A command's lines are made wide, so that tables do not wrap and numbers stand where the table of the
 * tutorial says, whatever the terminal; the view folds them. Pictures are as wide as the view.
 */
#include "cli/tutorial/tour.h"

#include "base/shared/compiler.h"
#include "cli/frame/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDE = 400, SENTENCE = 1024, PICTURE_MOST = 72, INDENT = 4 };

static const char text_word[] = "TEXT"; /* in commands: the user's text */

/* ---------------------------------------------------------------- commands ------------------ */

static int is_picture(const char *command)
{
    return !strncmp(command, "plot ", strlen("plot "));
}

/* FNV-1a: the same name for the same command. */
static unsigned name_of(const char *command)
{
    unsigned hash = 2166136261u;
    for (; *command; command++)
        hash = (hash ^ (unsigned char)*command) * 16777619u;
    return hash;
}

/* The command with the name of the text in place of TEXT, and a folder for its results, where a call that was
   interrupted goes on; malloc'd, NULL without memory. */
static char *with_text(const char *command, const char *path)
{
    const char *at = strstr(command, text_word);
    char       *line;
    size_t      size;
    FILE       *to = open_memstream(&line, &size);
    if (!to)
        return NULL;
    if (at)
        fprintf(to, "%.*s'%s'%s --resume -o posenc-tutorial-%08x", (int)(at - command), command, path,
                at + strlen(text_word), name_of(command));
    else
        fputs(command, to);
    return fclose(to) ? (free(line), NULL) : line;
}

static const cli_tour_run *find_run(const cli_tour *t, const char *command)
{
    for (int i = 0; i < t->run_count; i++)
        if (!strcmp(t->runs[i].command, command))
            return &t->runs[i];
    return NULL;
}

/* A place for a further run, with its command. */
static cli_tour_run *add_run(cli_tour *t, const char *command)
{
    cli_tour_run *more = realloc(t->runs, (size_t)(t->run_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    t->runs = more;
    more += t->run_count;
    *more = (cli_tour_run){.command = strdup(command)};
    t->run_count += more->command != NULL;
    return more->command ? more : NULL;
}

/* A stored one is copied, so that all are freed alike. */
static int fill_run(const cli_tour *t, cli_tour_run *run, const char *stored)
{
    const int columns = is_picture(run->command) ? t->view.width - INDENT : WIDE;
    if (stored && !t->text) {
        run->output = (cli_output){.text = strdup(stored)};
        return run->output.text ? 0 : (cli_failed("tutorial: not enough memory for a stored result"), -1);
    }
    char     *command = with_text(run->command, t->text ? t->text : text_word);
    const int most    = is_picture(run->command) && columns > PICTURE_MOST ? PICTURE_MOST : columns;
    const int fault   = command ? cli_child_run(&run->output, command, NULL, most, stored != NULL)
                                : (cli_failed("tutorial: not enough memory for a command"), -1);
    free(command);
    return fault;
}

const cli_output *cli_tour_output(cli_tour *t, const char *command, const char **measured_on)
{
    const char         *stored = cli_lesson_stored(command, t->view.tongue, measured_on);
    const cli_tour_run *known  = find_run(t, command);
    if (t->text)
        *measured_on = NULL;
    if (known)
        return &known->output;
    cli_tour_run *run = add_run(t, command);
    if (!run)
        cli_failed("tutorial: not enough memory for what a command prints");
    return run && !fill_run(t, run, stored) ? &run->output : NULL;
}

void cli_tour_free(cli_tour *t)
{
    for (int i = 0; i < t->run_count; i++) {
        free(t->runs[i].command);
        free(t->runs[i].output.text);
    }
    free(t->runs);
    t->runs      = NULL;
    t->run_count = 0;
}

/* ---------------------------------------------------------------- what is shown ------------- */

static int has_one_of(const char *line, size_t n, const json_t *marks)
{
    for (size_t i = 0; i < json_array_size(marks); i++) {
        const char *mark = json_string_value(json_array_get(marks, i)),
                   *at   = mark ? strstr(line, mark) : NULL;
        if (at && at + strlen(mark) <= line + n)
            return 1;
    }
    return 0;
}

/* The lines that have one of the marks, or all of them; malloc'd. */
static char *choose_lines(const char *text, const json_t *marks)
{
    char  *chosen = NULL;
    size_t size;
    FILE  *to = open_memstream(&chosen, &size);
    for (size_t n; to && *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (!marks || has_one_of(text, n, marks))
            fprintf(to, "%.*s\n", (int)n, text);
    }
    return to && !fclose(to) ? chosen : (free(chosen), NULL);
}

/* From one text to before another one, or all where the first is missing; malloc'd. */
static char *choose_part(const char *text, const json_t *part)
{
    const char *from = json_string_value(json_object_get(part, "from")),
               *to   = json_string_value(json_object_get(part, "to"));
    const char *at   = from ? strstr(text, from) : NULL;
    const char *end  = at && to ? strstr(at, to) : NULL;
    return end ? strndup(at, (size_t)(end - at)) : strdup(at ? at : text);
}

/* A file as text; malloc'd, NULL if it cannot be read. */
static char *read_file(const char *path)
{
    char  *text = NULL, part[4096];
    size_t size, n;
    FILE  *from = fopen(path, "rb"), *to = from ? open_memstream(&text, &size) : NULL;
    while (to && (n = fread(part, 1, sizeof part, from)) > 0)
        fwrite(part, 1, n, to);
    if (from)
        fclose(from);
    return to && !fclose(to) ? text : (free(text), NULL);
}

/* The picture that a command draws, by way of a file in a folder of its own. 0, or -1 after printing why. */
static int show_picture(const cli_tour *t, const char *command)
{
    char       folder[] = "/tmp/posenc-XXXXXX", path[40], more[48];
    cli_output said     = {0};
    if (!mkdtemp(folder))
        return cli_failed("tutorial: no folder for a picture in /tmp: %s", strerror(errno)), -1;
    snprintf(path, sizeof path, "%s/p.svg", folder);
    snprintf(more, sizeof more, "-o %s", path);
    const int fault = cli_child_run(&said, command, more, t->view.width, 0);
    char     *svg   = fault ? NULL : read_file(path);
    if (svg)
        t->view.picture(&t->view, svg, command);
    else if (!fault)
        cli_failed("tutorial: no picture of `posenc %s`: %.*s", command, (int)strcspn(said.text, "\n"),
                   said.text);
    const int shown = svg != NULL;
    free(svg);
    free(said.text);
    unlink(path);
    rmdir(folder);
    return shown ? 0 : -1;
}

static int show_output(const cli_tour *t, const cli_row_run *run, const cli_output *o)
{
    if (t->view.pictures && is_picture(run->command) && !run->show && !run->status)
        return show_picture(t, run->command);
    char *lines =
        json_is_object(run->show) ? choose_part(o->text, run->show) : choose_lines(o->text, run->show);
    const int shown = lines && t->view.output(&t->view, lines);
    free(lines);
    return shown ? 0 : (cli_failed("tutorial: not enough memory for what a command prints"), -1);
}

/* ---------------------------------------------------------------- verdicts ------------------ */

/* A sentence in the view's language. */
PE_PRINTF(4, 6)
static void say(const cli_tour *t, cli_mood mood, int is_verdict, const char *english, const char *chinese,
                ...)
{
    char    text[SENTENCE];
    va_list values;
    va_start(values, chinese);
    vsnprintf(text, sizeof text, t->view.tongue == CLI_CHINESE ? chinese : english, values);
    va_end(values);
    if (is_verdict)
        t->view.verdict(&t->view, mood, text);
    else
        t->view.note(&t->view, text);
}

static void say_number(const cli_tour *t, const cli_verdict *v, int erratum)
{
    if (v->finding == CLI_DIFFERS)
        say(t, CLI_OTHER, 1, "differs: the tutorial says %s, right is %s (erratum %d)",
            "与原文不同：原文为 %s，应为 %s（勘误 %d）", v->printed, v->right, erratum);
    else if (v->finding == CLI_FAILS)
        say(t, CLI_BAD, 1, "WRONG: the tutorial says %s, this tool %s", "有误：原文为 %s，本工具得到 %s",
            v->printed, v->found);
    else
        say(t, CLI_BAD, 1, "MISSING: the tutorial says %s, but the output has no number there",
            "缺失：原文为 %s，而输出中没有该数", v->printed);
}

/* Numbers that are as printed in one line, the others one by one. */
static void judge_numbers(cli_tour *t, const json_t *check, int erratum, const char *output)
{
    const int count = cli_judge_count(check);
    char      same[SENTENCE];
    size_t    used = 0;
    *same          = 0;
    for (int i = 0; i < count; i++) {
        const cli_verdict v = cli_judge(check, i, output);
        t->kinds[v.finding]++;
        if (v.finding == CLI_AS_PRINTED && used < sizeof same)
            used += (size_t)snprintf(same + used, sizeof same - used, "%s%s", used ? ", " : "", v.printed);
        else if (v.finding != CLI_AS_PRINTED)
            say_number(t, &v, erratum);
    }
    if (used)
        say(t, CLI_GOOD, 1, "as printed: %s", "与原文一致：%s", same);
}

/* "place       rotary" as "place rotary" between the quotation marks of the language; malloc'd. */
static char *quote(const char *text, cli_tongue tongue)
{
    static const char *const marks[CLI_TONGUES][2] = {{"\"", "\""}, {"“", "”"}};
    char                    *quoted                = NULL;
    size_t                   size;
    FILE                    *to = open_memstream(&quoted, &size);
    if (!to)
        return NULL;
    fputs(marks[tongue][0], to);
    for (text += strspn(text, " \n"); *text;) {
        const size_t word = strcspn(text, " \n"), blanks = strspn(text + word, " \n");
        fprintf(to, "%.*s%s", (int)word, text, blanks && text[word + blanks] ? " " : "");
        text += word + blanks;
    }
    fputs(marks[tongue][1], to);
    return fclose(to) ? (free(quoted), NULL) : quoted;
}

/* A measurement is a number, or a text of the output that is quoted. */
static void judge_measured(cli_tour *t, const json_t *check, const char *output)
{
    const cli_verdict v    = cli_judge(check, 0, output);
    const char       *what = cli_lesson_heading(check, t->view.tongue),
               *is         = json_string_value(json_object_get(check, "is")),
               *text       = json_string_value(json_object_get(check, "says"));
    char       *says       = quote(text ? text : "", t->view.tongue);
    const char *must       = is ? is : says ? says : "-";
    t->kinds[v.finding]++;
    if (v.finding == CLI_HOLDS && is)
        say(t, CLI_GOOD, 1, "measured: %s: %s (must be %s)", "实测：%s：%s（应 %s）", what, v.found, is);
    else if (v.finding == CLI_HOLDS)
        say(t, CLI_GOOD, 1, "measured: %s: %s", "实测：%s：%s", what, must);
    else
        say(t, CLI_BAD, 1, "NOT SO: %s: %s (must be %s)", "不成立：%s：%s（应 %s）", what,
            *v.found ? v.found : "-", must);
    free(says);
}

static void judge_run(cli_tour *t, const cli_row_run *run, int erratum, const cli_output *o)
{
    size_t  i;
    json_t *check;
    if (o->status != run->status) {
        t->broken++;
        say(t, CLI_BAD, 1, "the command ended with status %d instead of %d", "命令的退出状态为 %d，应为 %d",
            o->status, run->status);
    }
    json_array_foreach(run->numbers, i, check) judge_numbers(t, check, erratum, o->text);
    json_array_foreach(run->measured, i, check) judge_measured(t, check, o->text);
}

/* ---------------------------------------------------------------- rows ---------------------- */

/* 0, or -1 after printing why. */
static int show_run(cli_tour *t, json_t *from, int erratum)
{
    char        fault[160];
    cli_row_run run;
    const char *wrong = cli_lesson_run(&run, from, fault), *measured_on;
    if (wrong)
        return cli_failed("tutorial: the table is broken: %s", wrong), -1;
    const cli_output *o = cli_tour_output(t, run.command, &measured_on);
    if (!o)
        return -1;
    t->view.command(&t->view, run.command);
    if (show_output(t, &run, o))
        return -1;
    if (measured_on)
        say(t, CLI_OTHER, 0, "(stored: %s; --run TEXT runs it, which takes minutes)",
            "（已存结果：%s；用 --run TEXT 重新运行，需数分钟）", measured_on);
    judge_run(t, &run, erratum, o);
    return 0;
}

static int show_row(cli_tour *t, json_t *from)
{
    const cli_view *v = &t->view;
    char            fault[160];
    cli_row         row;
    size_t          i;
    json_t         *run;
    const char     *wrong = cli_lesson_row(&row, from, fault);
    if (wrong)
        return cli_failed("tutorial: the table is broken: %s", wrong), -1;
    if (t->only && strcmp(t->only, row.id) != 0)
        return 0;
    t->rows++;
    t->errata += row.erratum > 0;
    if (!v->row(v, &row))
        return cli_failed("tutorial: the formula of %s is not well formed, or memory is short", row.id), -1;
    json_array_foreach(row.runs, i, run) if (show_run(t, run, row.erratum)) return -1;
    if (row.erratum)
        say(t, CLI_OTHER, 1, "erratum %d: %s", "勘误 %d：%s", row.erratum, row.right[v->tongue]);
    if (row.note[v->tongue])
        v->note(v, row.note[v->tongue]);
    v->end_row(v);
    return 0;
}

/* ---------------------------------------------------------------- the whole ----------------- */

int cli_tour_find(const cli_lesson *l, const char *id)
{
    size_t  s, i;
    json_t *part, *row;
    json_array_foreach(l->sections, s, part) json_array_foreach(
        cli_lesson_rows(part), i,
        row) if (!strcmp(id, json_string_value(json_object_get(row, "id")))) return (int)s +
        1;
    return 0;
}

static int failures(const cli_tour *t)
{
    return t->broken + t->kinds[CLI_FAILS] + t->kinds[CLI_MISSING] + t->kinds[CLI_FAULTY];
}

static void summarise(const cli_tour *t)
{
    static const char *const forms[CLI_TONGUES] = {
        "Rows: %d, %d of them with an erratum; numbers as printed: %d; numbers that differ: %d; measurements "
        "that hold: %d; failed: %d.",
        "%d 条，其中 %d 条有勘误；%d 个数值与原文一致，%d 个与原文不同；%d 项实测成立；%d 项失败。"};
    char line[SENTENCE];
    snprintf(line, sizeof line, forms[t->view.tongue], t->rows, t->errata, t->kinds[CLI_AS_PRINTED],
             t->kinds[CLI_DIFFERS], t->kinds[CLI_HOLDS], failures(t));
    t->view.end(&t->view, t->only ? NULL : line);
}

int cli_tour_show(cli_tour *t, const cli_lesson *l)
{
    size_t  s, i;
    json_t *part, *row;
    t->view.begin(&t->view, l);
    json_array_foreach(l->sections, s, part)
    {
        if (t->section && t->section != (int)s + 1)
            continue;
        t->view.section(&t->view, (int)s + 1, cli_lesson_heading(part, t->view.tongue));
        json_array_foreach(cli_lesson_rows(part), i, row) if (show_row(t, row)) return CLI_FAILED;
    }
    summarise(t);
    return failures(t);
}

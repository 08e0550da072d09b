/* SPDX-License-Identifier: MIT */
/*
 * screen.c: a tutorial in the terminal. Contract: view.h.
 *
 * Prose is folded at blanks, and between Chinese characters, which are two columns wide. What commands print
 * is a table more often than not: where its lines are too long, columns of blanks that all of them share
 * shrink to two, and what is too long even then goes on below.
 */
#include "cli/frame/cli.h"
#include "cli/tutorial/view.h"

#include "show/formula.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, DEEP = 4, GAP = 2, MOST_COLUMNS = 4096 };

/* ---------------------------------------------------------------- characters ---------------- */

/* A line does not begin with one of these. */
static int closes(const char *s)
{
    static const char *const marks[] = {"，", "。", "、", "：", "；", "）", "”", "？", "！", "》", "」"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(s, marks[i], strlen(marks[i])))
            return 1;
    return 0;
}

/* Bytes of the piece at s that stays on one line, and its columns: a word, or one wide character and what
   must follow it. */
static size_t read_piece(const char *s, int *columns)
{
    size_t n = 0;
    *columns = 0;
    while (s[n] && s[n] != ' ' && s[n] != '\n') {
        int          wide;
        const size_t bytes = cli_columns_next(s + n, &wide);
        if (n && wide > 1 && !closes(s + n))
            break;
        n += bytes;
        *columns += wide;
        if (wide > 1 && !closes(s + n))
            break;
    }
    return n;
}

/* A paragraph; the cursor stands in column `at`, and further lines are indented. */
static void fold(FILE *to, const char *s, int at, int indent, int width)
{
    int columns, column = at;
    while (*s) {
        const int blank = *s == ' ' || *s == '\n';
        s += strspn(s, " \n");
        const size_t n = read_piece(s, &columns);
        if (column > indent && column + blank + columns > width) {
            fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (blank && column > indent) {
            fputc(' ', to);
            column++;
        }
        fwrite(s, 1, n, to);
        column += columns;
        s += n;
    }
    fputc('\n', to);
}

static void paragraph(const cli_view *v, const char *escape, const char *s)
{
    fprintf(v->to, "%*s%s", INDENT, "", v->colour ? escape : "");
    fold(v->to, s, INDENT, INDENT, v->width);
    fputs(v->colour && *escape ? "\033[0m" : "", v->to);
}

/* ---------------------------------------------------------------- what commands print ------- */

/* Marks the columns in which any line has something; returns the longest line's columns. */
static int mark_columns(const char *text, char used[MOST_COLUMNS])
{
    int longest = 0;
    for (const char *line = text; *line; line += *line == '\n') {
        int column = 0, wide;
        while (*line && *line != '\n') {
            const char here = *line;
            line += cli_columns_next(line, &wide);
            for (int i = 0; i < wide && column < MOST_COLUMNS; i++)
                used[column++] |= here != ' ';
        }
        longest = column > longest ? column : longest;
    }
    return longest;
}

/* The columns that stay: of those that all lines leave blank, the first `gap` of a run. Returns their count.
 */
static int mark_kept(char kept[MOST_COLUMNS], const char used[MOST_COLUMNS], int columns, int gap)
{
    int count = 0;
    for (int column = 0, run = 0; column < columns; column++) {
        run          = used[column] ? 0 : run + 1;
        kept[column] = run <= gap;
        count += kept[column];
    }
    return count;
}

/* The text without the columns that do not stay; malloc'd. */
static char *squeeze(const char *text, const char kept[MOST_COLUMNS])
{
    char  *squeezed = NULL;
    size_t size, bytes;
    FILE  *to     = open_memstream(&squeezed, &size);
    int    column = 0, wide;
    for (; to && *text; text += bytes) {
        bytes = cli_columns_next(text, &wide);
        if (*text == '\n' || column >= MOST_COLUMNS || kept[column])
            fwrite(text, 1, bytes, to);
        column = *text == '\n' ? 0 : column + wide;
    }
    return to && !fclose(to) ? squeezed : (free(squeezed), NULL);
}

/* Bytes of a line that fit so many columns: up to a blank or behind a comma, if there is one in the second
 * half. */
static size_t part_of(const char *line, size_t n, int columns)
{
    size_t fits = 0, end = 0;
    int    wide;
    for (size_t bytes; fits < n; fits += bytes, columns -= wide) {
        bytes = cli_columns_next(line + fits, &wide);
        if (wide > columns)
            break;
        if (line[fits] == ' ' || line[fits] == ',')
            end = fits + (line[fits] == ',');
    }
    return fits < n && 2 * end > fits ? end : fits;
}

/* A line in as many lines as it needs, the further ones indented a little more. */
static void write_line(const cli_view *v, const char *line, size_t n)
{
    const int further = DEEP + GAP + (int)strspn(line, " ");
    for (int indent = DEEP; n > 0; indent = further) {
        const size_t part = part_of(line, n, v->width - indent), next = part + strspn(line + part, " ");
        fprintf(v->to, "%*s%.*s\n", indent, "", (int)part, line);
        line += next < n ? next : n;
        n -= next < n ? next : n;
    }
}

static int show_output(const cli_view *v, const char *text)
{
    char      used[MOST_COLUMNS] = {0}, kept[MOST_COLUMNS];
    const int columns = mark_columns(text, used), known = columns < MOST_COLUMNS ? columns : MOST_COLUMNS;
    int       gap = columns;
    while (gap > 1 && DEEP + mark_kept(kept, used, known, gap) > v->width)
        gap = gap > GAP ? GAP : gap - 1;
    mark_kept(kept, used, known, gap);
    char *squeezed = squeeze(text, kept);
    for (const char *line = squeezed; line && *line; line += strcspn(line, "\n") + 1)
        if (*line == '\n')
            fputc('\n', v->to);
        else
            write_line(v, line, strcspn(line, "\n"));
    free(squeezed);
    return squeezed != NULL;
}

/* ---------------------------------------------------------------- the view ------------------ */

static const char bold[] = "\033[1m", faint[] = "\033[2m";

static void show_line(const cli_view *v, const char *escape, const char *text)
{
    fputs(v->colour ? escape : "", v->to);
    fold(v->to, text, 0, 0, v->width);
    fputs(v->colour ? "\033[0m" : "", v->to);
}

static void begin(const cli_view *v, const cli_lesson *l)
{
    char title[512];
    snprintf(title, sizeof title, "%s  %s", l->number, l->title[v->tongue]);
    show_line(v, bold, title);
    show_line(v, faint, l->source[v->tongue]);
}

static void section(const cli_view *v, int number, const char *heading)
{
    char title[512];
    snprintf(title, sizeof title, "%d. %s", number, heading);
    fputc('\n', v->to);
    show_line(v, bold, title);
}

static int row(const cli_view *v, const cli_row *r)
{
    fprintf(v->to, "\n%s%s%s  %s\n", v->colour ? bold : "", r->id, v->colour ? "\033[0m" : "",
            cli_lesson_kind(r->id, v->tongue));
    paragraph(v, "", r->says[v->tongue]);
    if (!r->formula)
        return 1;
    fputc('\n', v->to);
    return pe_plain_write(v->to, r->formula, DEEP, v->width);
}

static void command(const cli_view *v, const char *text)
{
    char line[1024];
    snprintf(line, sizeof line, "$ posenc %s", text);
    fputc('\n', v->to);
    paragraph(v, bold, line);
}

static void verdict(const cli_view *v, cli_mood mood, const char *text)
{
    static const char *const escapes[] = {
        [CLI_GOOD] = "\033[32m", [CLI_OTHER] = "\033[33m", [CLI_BAD] = "\033[31m"};
    paragraph(v, escapes[mood], text);
}

static void note(const cli_view *v, const char *text)
{
    paragraph(v, "", text);
}

static void end_row(const cli_view *v)
{
}

static void end(const cli_view *v, const char *summary)
{
    if (!summary)
        return;
    fputc('\n', v->to);
    show_line(v, bold, summary);
}

void cli_screen_view(cli_view *v)
{
    v->begin   = begin;
    v->section = section;
    v->row     = row;
    v->command = command;
    v->output  = show_output;
    v->picture = NULL;
    v->verdict = verdict;
    v->note    = note;
    v->end_row = end_row;
    v->end     = end;
}

/* SPDX-License-Identifier: MIT */
/*
 * page.c: a tutorial as one HTML file that needs nothing else: no network, no script. Contract: view.h.
 *
 * Its style is that of the report. Formulas are MathML, pictures SVG. What commands print stands as it is:
 * its sentences, which are in lines as long as they need, are wrapped, and its tables scrolled sideways where
 * they are too wide.
 */
#include "cli/tutorial/view.h"

#include "show/formula.h"
#include "show/page.h"

#include <string.h>

enum { LONG = 60 }; /* bytes of a line */

static void element(FILE *to, const char *tag, const char *text)
{
    fprintf(to, "<%s>", tag);
    pe_page_escape(to, text, strlen(text));
    fprintf(to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* The sections, to jump to. */
static void contents(const cli_view *v, const cli_lesson *l)
{
    size_t  i;
    json_t *part;
    fputs("<nav>\n", v->to);
    json_array_foreach(l->sections, i, part)
    {
        fprintf(v->to, "<a href=\"#s%d\">%d. ", (int)i + 1, (int)i + 1);
        const char *heading = cli_lesson_heading(part, v->tongue);
        pe_page_escape(v->to, heading, strlen(heading));
        fputs("</a>\n", v->to);
    }
    fputs("</nav>\n", v->to);
}

static void begin(const cli_view *v, const cli_lesson *l)
{
    static const char *const codes[CLI_TONGUES] = {"en", "zh"};
    fprintf(v->to,
            "<!DOCTYPE html>\n<html lang=%s><head><meta charset=utf-8>\n"
            "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n",
            codes[v->tongue]);
    element(v->to, "title", l->title[v->tongue]);
    pe_page_style(v->to);
    fputs("</head>\n<body><main>\n<h1>", v->to);
    pe_page_escape(v->to, l->title[v->tongue], strlen(l->title[v->tongue]));
    fputs("</h1>\n", v->to);
    element(v->to, "p class=note", l->source[v->tongue]);
    contents(v, l);
}

static void section(const cli_view *v, int number, const char *heading)
{
    fprintf(v->to, "<h2 id=s%d>%d. ", number, number);
    pe_page_escape(v->to, heading, strlen(heading));
    fputs("</h2>\n", v->to);
}

static int row(const cli_view *v, const cli_row *r)
{
    int is_good = 1;
    fprintf(v->to, "<article class=row id=\"%s\">\n<h3>%s <small>%s</small></h3>\n", r->id, r->id,
            cli_lesson_kind(r->id, v->tongue));
    element(v->to, "p", r->says[v->tongue]);
    if (r->formula) {
        fputs("<div class=formula>", v->to);
        is_good = pe_mathml_write(v->to, r->formula);
        fputs("</div>\n", v->to);
    }
    return is_good;
}

static void command(const cli_view *v, const char *text)
{
    fputs("<pre>$ posenc ", v->to);
    pe_page_escape(v->to, text, strlen(text));
    fputs("</pre>\n", v->to);
}

/* A long line of words with single blanks between them; a name with a gap behind it may come first. */
static int is_sentence(const char *line, size_t n)
{
    size_t gaps = 0, blanks = 0, at = strspn(line, " ");
    for (; n > LONG && at < n; at++)
        if (line[at] == ' ') {
            const size_t gap = strspn(line + at, " ");
            gaps += gap > 1;
            blanks += gap == 1;
            at += gap - 1;
        }
    return gaps <= 1 && blanks >= LONG / 10;
}

static int output(const cli_view *v, const char *text)
{
    fputs("<pre class=output>", v->to);
    for (size_t n; *text; text += n) {
        const size_t line = strcspn(text, "\n");
        const int    is   = is_sentence(text, line);
        n                 = line + (text[line] == '\n');
        fputs(is ? "<span>" : "", v->to);
        pe_page_escape(v->to, text, n);
        fputs(is ? "</span>" : "", v->to);
    }
    fputs("</pre>\n", v->to);
    return 1;
}

static void picture(const cli_view *v, const char *svg, const char *title)
{
    fputs("<figure>\n", v->to);
    pe_page_drawing(v->to, svg, title);
    fputs("</figure>\n", v->to);
}

static void verdict(const cli_view *v, cli_mood mood, const char *text)
{
    static const char *const tags[] = {
        [CLI_GOOD] = "p class=passed", [CLI_OTHER] = "p class=differs", [CLI_BAD] = "p class=FAILED"};
    element(v->to, tags[mood], text);
}

static void note(const cli_view *v, const char *text)
{
    element(v->to, "p", text);
}

static void end_row(const cli_view *v)
{
    fputs("</article>\n", v->to);
}

static void end(const cli_view *v, const char *summary)
{
    if (summary)
        element(v->to, "p class=note", summary);
    fputs("</main></body></html>\n", v->to);
}

void cli_page_view(cli_view *v)
{
    v->pictures = 1;
    v->begin    = begin;
    v->section  = section;
    v->row      = row;
    v->command  = command;
    v->output   = output;
    v->picture  = picture;
    v->verdict  = verdict;
    v->note     = note;
    v->end_row  = end_row;
    v->end      = end;
}

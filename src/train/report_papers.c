/* SPDX-License-Identifier: MIT */
/*
 * report_papers.c: what papers found, beside what this comparison found, with the sizes of both
 *
 * A table per paper, of the encodings that were compared with standard settings; nothing of a paper without
 * any. The paper's columns are the lengths at which it read its models, ours those of the results. The units
 * are others, so the thing to compare is how a row goes on: of ours the ratio to the loss at L stands below
 * each number.
 */
#include "train/report.h"

#include "train/html.h"

#include <math.h>
#include <string.h>

enum { LENGTHS = 5 };

/* A paper, where it has a source; else a row of the paper above it. */
typedef struct anchor {
    const char *source, *model, *data;
    int64_t     trained;
    const char *unit;
    int64_t     lengths[LENGTHS];
    const char *encoding, *what, *values[LENGTHS];
} anchor;

static const anchor anchors[] = {
#define PAPER(source, model, data, trained, unit, ...) \
    {source, model, data, trained, unit, {__VA_ARGS__}, NULL, NULL, {0}},
#define ANCHOR(name, done, ...) {.encoding = name, .what = done, .values = {__VA_ARGS__}},
#include "train/anchors.def"
#undef PAPER
#undef ANCHOR
};

enum { ANCHORS = sizeof anchors / sizeof *anchors };

/* The outcome that a row is to be read beside; NULL if it was not compared. */
static const pe_outcome *ours(const pe_compare *c, const anchor *a)
{
    const int i = a->encoding ? pe_check_find(c, a->encoding) : -1;
    return i < 0 ? NULL : &c->outcomes[i];
}

/* How many columns the paper has. */
static int columns_of(const anchor *paper)
{
    int n = 0;
    while (n < LENGTHS && paper->lengths[n])
        n++;
    return n;
}

/* Number of the paper's rows that have something beside them. */
static int rows_of(const pe_compare *c, int paper)
{
    int count = 0;
    for (int i = paper + 1; i < ANCHORS && !anchors[i].source; i++)
        count += ours(c, &anchors[i]) != NULL;
    return count;
}

static void paper_head(FILE *to, const pe_compare *c, const anchor *p)
{
    fputs("<div class=\"wide\"><table><thead><tr><th rowspan=\"2\" class=\"t\"></th>", to);
    fprintf(to, "<th colspan=\"%d\">", columns_of(p));
    pe_html_text(to, p->unit);
    fprintf(to, "</th><th colspan=\"%d\" class=\"ours\">", PE_BUCKETS - PE_AT_L);
    pe_html_text(to, "here: nats per byte");
    fputs("</th></tr>\n<tr>", to);
    for (int k = 0; k < columns_of(p); k++)
        fprintf(to, "<th>%lld</th>", (long long)p->lengths[k]);
    for (int b = PE_AT_L; b < PE_BUCKETS; b++)
        fprintf(to, "<th%s>%lld</th>", b == PE_AT_L ? " class=\"ours\"" : "",
                (long long)pe_bucket_edge(c->config.preset.L, b + 1));
    fputs("</tr></thead><tbody>\n", to);
}

static void our_cell(FILE *to, const pe_outcome *o, int bucket)
{
    fprintf(to, "<td%s>", bucket == PE_AT_L ? " class=\"ours\"" : "");
    if (isfinite(o->loss[bucket]))
        fprintf(to, "%.2f<br><small>x%.2f</small>", o->loss[bucket], o->loss[bucket] / o->loss[PE_AT_L]);
    else
        fputs("-", to);
    fputs("</td>", to);
}

static void paper_row(FILE *to, const anchor *a, const anchor *p, const pe_outcome *o)
{
    fputs("<tr>", to);
    if (*a->what)
        pe_html_element(to, "th scope=\"row\" class=\"t\" translate=\"no\"", "%s: %s", a->encoding, a->what);
    else
        pe_html_element(to, "th scope=\"row\" class=\"t\" translate=\"no\"", "%s", a->encoding);
    for (int k = 0; k < columns_of(p); k++)
        pe_html_element(to, "td", "%s", *a->values[k] ? a->values[k] : "-");
    for (int b = PE_AT_L; b < PE_BUCKETS; b++)
        if (*a->what)
            fputs("<td></td>", to);
        else
            our_cell(to, o, b);
    fputs("</tr>\n", to);
}

static void paper_table(FILE *to, const pe_compare *c, int paper)
{
    const anchor *p = &anchors[paper];
    fputs("<h3>", to);
    pe_report_paper(to, p->source);
    fputs("</h3>\n", to);
    pe_html_element(to, "p class=\"note\"",
                    "Theirs: %s, %s, trained at %lld tokens. Here: %lld thousand parameters, trained at %lld "
                    "bytes.",
                    p->model, p->data, (long long)p->trained,
                    (long long)(c->outcomes[c->reference].runs[0].parameters / 1000),
                    (long long)c->config.preset.L);
    paper_head(to, c, p);
    for (int i = paper + 1; i < ANCHORS && !anchors[i].source; i++)
        if (ours(c, &anchors[i]))
            paper_row(to, &anchors[i], p, ours(c, &anchors[i]));
    fputs("</tbody></table></div>\n", to);
}

/* The papers measured the next token, so beside hidden bytes there is nothing to read. */
void pe_report_papers(FILE *to, const pe_compare *c)
{
    if (c->config.bidirectional || c->reference < 0)
        return;
    pe_html_element(to, "h2 id=\"papers\"", "%s", "What papers found");
    pe_html_element(to, "p", "%s",
                    "Large models beside the small ones of this page; lower is better. Perplexity per token "
                    "and nats per byte cannot be compared with each other: what to compare is how a row goes "
                    "on beyond the length that was trained. Below each number of ours is its ratio to that "
                    "at L.");
    for (int i = 0; i < ANCHORS; i++)
        if (anchors[i].source && rows_of(c, i))
            paper_table(to, c, i);
}

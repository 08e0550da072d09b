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

enum { HERE = PE_BUCKETS - PE_AT_L, COLUMNS = 1 + LENGTHS + HERE };

/* The paper's lengths and ours. */
static void set_heads(pe_column heads[COLUMNS], char text[COLUMNS][24], const pe_compare *c, const anchor *p)
{
    const int n = columns_of(p);
    heads[0]    = (pe_column){"", NULL, PE_TEXT | PE_NAMES, 0};
    for (int k = 1; k <= n + HERE; k++) {
        const int64_t length =
            k <= n ? p->lengths[k - 1] : pe_bucket_edge(c->config.preset.L, PE_AT_L + k - n);
        snprintf(text[k], sizeof text[k], "%lld", (long long)length);
        heads[k] = (pe_column){text[k], NULL, k == n + 1 ? PE_OURS : 0, 0};
    }
}

static void paper_row(pe_table *t, int row, const anchor *a, const anchor *p, const pe_outcome *o)
{
    const int n = columns_of(p);
    pe_table_set(t, row, 0, *a->what ? "%s: %s" : "%s%s", a->encoding, a->what);
    for (int k = 0; k < n; k++)
        pe_table_text(t, row, 1 + k, *a->values[k] ? a->values[k] : "-");
    for (int b = PE_AT_L; b < PE_BUCKETS && !*a->what; b++)
        if (isfinite(o->loss[b]))
            pe_table_set(t, row, 1 + n + b - PE_AT_L, "%.2f\nx%.2f", o->loss[b],
                         o->loss[b] / o->loss[PE_AT_L]);
        else
            pe_table_text(t, row, 1 + n + b - PE_AT_L, "-");
}

static void paper_table(FILE *to, const pe_compare *c, int paper)
{
    const anchor  *p        = &anchors[paper];
    const pe_group groups[] = {{1, columns_of(p), p->unit}, {1 + columns_of(p), HERE, "here: nats per byte"}};
    pe_column      heads[COLUMNS];
    char           text[COLUMNS][24];
    pe_table       t;
    set_heads(heads, text, c, p);
    if (pe_table_open(&t, heads, 1 + columns_of(p) + HERE, rows_of(c, paper), NULL))
        return;
    t.groups      = groups;
    t.group_count = 2;
    for (int i = paper + 1, row = 0; i < ANCHORS && !anchors[i].source; i++)
        if (ours(c, &anchors[i]))
            paper_row(&t, row++, &anchors[i], p, ours(c, &anchors[i]));
    fputs("<h3>", to);
    pe_report_paper(to, p->source);
    fputs("</h3>\n", to);
    pe_html_element(to, "p class=note",
                    "Theirs: %s, %s, trained at %lld tokens. Here: %lld thousand parameters, trained at %lld "
                    "bytes.",
                    p->model, p->data, (long long)p->trained,
                    (long long)(c->outcomes[c->reference].runs[0].parameters / 1000),
                    (long long)c->config.preset.L);
    pe_html_table(to, &t, "", 1);
    pe_table_free(&t);
}

/* The papers measured the next token, so beside hidden bytes there is nothing to read. */
void pe_report_papers(pe_page *page, const pe_compare *c)
{
    if (c->config.bidirectional || c->reference < 0)
        return;
    pe_page_part(page, "papers");
    for (int i = 0; i < ANCHORS; i++)
        if (anchors[i].source && rows_of(c, i))
            paper_table(page->to, c, i);
}

/* SPDX-License-Identifier: MIT */
/*
 * report_papers.c: what papers found and introductions say, next to what this comparison found
 *
 * A table per paper, of the encodings that were compared with default settings; nothing of a paper without
 * any. The paper's columns are the lengths at which it read its models, ours those of the results. The units
 * are others, so the thing to compare is how a row goes on: of ours the ratio to the loss at L stands below
 * each number.
 */
#include "train/report/report.h"

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
#include "train/report/anchors.def"
#undef PAPER
#undef ANCHOR
};

enum { ANCHORS = sizeof anchors / sizeof *anchors };

/* The outcome to compare a row with; NULL if it was not compared. */
static const pe_outcome *ours(const pe_compare *c, const anchor *a)
{
    const int i = a->encoding ? pe_claims_find(c, a->encoding) : -1;
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

/* Number of the paper's rows that have such an outcome. */
static int rows_of(const pe_compare *c, int paper)
{
    int count = 0;
    for (int i = paper + 1; i < ANCHORS && !anchors[i].source; i++)
        count += ours(c, &anchors[i]) != NULL;
    return count;
}

enum { MOST_HERE = PE_MOST_BUCKETS - PE_AT_L, COLUMNS = 1 + LENGTHS + MOST_HERE };

/* How many of our lengths stand beside them. */
static int lengths_here(const pe_compare *c)
{
    return pe_stats_furthest(c->config.preset.reach);
}

/* The paper's lengths and ours. */
static void set_heads(pe_column heads[COLUMNS], char text[COLUMNS][24], const pe_compare *c, const anchor *p)
{
    const int n = columns_of(p), here = lengths_here(c);
    heads[0] = (pe_column){"", NULL, PE_TEXT | PE_NAMES, 0};
    for (int k = 1; k <= n + here; k++) {
        const int64_t length =
            k <= n ? p->lengths[k - 1] : pe_stats_bucket_edge(c->config.preset.L, PE_AT_L + k - n);
        snprintf(text[k], sizeof text[k], "%lld", (long long)length);
        heads[k] = (pe_column){text[k], NULL, k == n + 1 ? PE_OURS : 0, 0};
    }
}

static void put_paper_row(pe_table *t, int row, const anchor *a, const anchor *p, const pe_outcome *o)
{
    const int n = columns_of(p);
    pe_table_set(t, row, 0, *a->what ? "%s: %s" : "%s%s", a->encoding, a->what);
    for (int k = 0; k < n; k++)
        pe_table_text(t, row, 1 + k, *a->values[k] ? a->values[k] : "-");
    for (int b = PE_AT_L; b <= pe_stats_furthest(o->config.reach) && !*a->what; b++)
        if (isfinite(o->loss[b]))
            pe_table_set(t, row, 1 + n + b - PE_AT_L, "%.2f\nx%.2f", o->loss[b],
                         o->loss[b] / o->loss[PE_AT_L]);
        else
            pe_table_text(t, row, 1 + n + b - PE_AT_L, "-");
}

static void write_paper(FILE *to, const pe_compare *c, int paper)
{
    const anchor         *p        = &anchors[paper];
    const pe_column_group groups[] = {{1, columns_of(p), p->unit},
                                      {1 + columns_of(p), lengths_here(c), "here: nats per byte"}};
    pe_column             heads[COLUMNS];
    char                  text[COLUMNS][24];
    pe_table              t;
    set_heads(heads, text, c, p);
    if (pe_table_open(&t, heads, 1 + columns_of(p) + lengths_here(c), rows_of(c, paper), NULL))
        return;
    t.groups      = groups;
    t.group_count = 2;
    for (int i = paper + 1, row = 0; i < ANCHORS && !anchors[i].source; i++)
        if (ours(c, &anchors[i]))
            put_paper_row(&t, row++, &anchors[i], p, ours(c, &anchors[i]));
    fputs("<h3>", to);
    pe_html_paper(to, p->source);
    fputs("</h3>\n", to);
    pe_html_element(
        to, "p class=note",
        "Theirs: %s, %s, trained at %lld tokens. Here: %lld thousand parameters, trained at %lld bytes.",
        p->model, p->data, (long long)p->trained,
        (long long)(c->outcomes[c->reference].runs[0].result.parameters / 1000),
        (long long)c->config.preset.L);
    pe_html_table(to, &t, "", 1);
    pe_table_free(&t);
}

/* The papers measured the next token, so with hidden bytes there is nothing to compare. */
void pe_report_papers(pe_page *page, const pe_compare *c)
{
    if (c->config.bidirectional || c->reference < 0)
        return;
    pe_html_part(page, "papers");
    for (int i = 0; i < ANCHORS; i++)
        if (anchors[i].source && rows_of(c, i))
            write_paper(page->to, c, i);
}

/* ---------------------------------------------------------------- introductions ------------ */

/* By the numbers of docs/errata.md, which has authors and addresses. */
static const char *const sources[] = {"Positional encoding in the Transformer (blog post)",
                                      "Embedding (lecture slides)",
                                      "In natural language, order decides everything (essay)",
                                      "Position Encoding in the Transformer (Zheng 2022)",
                                      "Position Embedding (notes)"};

void pe_report_sources(char *text, size_t n, const char *tutorials)
{
    text[0] = 0;
    for (const char *at = tutorials; (at = strstr(at, "00")); at += 3)
        if ((size_t)(at[2] - '0') < sizeof sources / sizeof *sources)
            snprintf(text + strlen(text), n - strlen(text), "%s%s", *text ? "; " : "", sources[at[2] - '0']);
}

static const char *class_of(pe_holds holds)
{
    return holds == PE_HOLDS ? "passed" : holds == PE_HOLDS_NOT ? "FAILED" : "note";
}

static void set_evidence(pe_table *t, int row, const pe_evidence *e)
{
    pe_table_text(t, row, 2, e->words);
    if (isnan(e->value) || isnan(e->low))
        pe_table_number(t, row, 3, fabs(e->value) < 1000 ? "%.3g" : "%.0f",
                        fabs(e->value) < 1e-12 ? 0 : e->value);
    else
        pe_table_set(t, row, 3, "%.3f\n%.3f to %.3f", e->value, e->low, e->high);
    pe_table_set(t, row, 4, "at %s %.3g", e->at_least ? "least" : "most", e->limit);
    pe_table_text(t, row, 5, pe_claims_holds_name(e->holds));
    pe_table_at(t, row, 5)->kind = class_of(e->holds);
}

/* A claim with its evidence, from that row on; returns the next. */
static int set_claim(pe_table *t, int row, const pe_compare *c, int claim)
{
    const char *tutorials, *said;
    int         count;
    char        text[1024], where[1024];
    said = pe_claims_said(claim, &tutorials, &count);
    snprintf(text, sizeof text, "%s\n%s", said, pe_claims_holds_name(pe_claims_judge(c, claim)));
    pe_report_sources(where, sizeof where, tutorials);
    pe_table_text(t, row, 0, where);
    pe_table_text(t, row, 1, text);
    pe_table_at(t, row, 1)->kind = class_of(pe_claims_judge(c, claim));
    for (int i = 0; i < count; i++) {
        const pe_evidence e              = pe_claims_evidence(c, claim, i);
        pe_table_at(t, row + i, 0)->rows = pe_table_at(t, row + i, 1)->rows = i ? -1 : count;
        set_evidence(t, row + i, &e);
    }
    return row + count;
}

void pe_report_claims(pe_page *page, const pe_compare *c)
{
    static const pe_column heads[] = {{"where", NULL, PE_WIDE, 0},    {"said", NULL, PE_WIDE, 0},
                                      {"measured", NULL, PE_WIDE, 0}, {"found", NULL, 0, 0},
                                      {"to hold", NULL, 0, 0},        {"verdict", NULL, PE_TEXT, 0}};
    pe_table               t;
    int                    rows = 0, count;
    const char            *tutorials;
    for (int k = 0; k < pe_claims_count(); k++, rows += count)
        pe_claims_said(k, &tutorials, &count);
    if (!c->properties || pe_table_open(&t, heads, 6, rows, NULL))
        return;
    for (int k = 0, row = 0; k < pe_claims_count(); k++)
        row = set_claim(&t, row, c, k);
    pe_html_part(page, "claims");
    pe_html_table(page->to, &t, "stack", 1);
    pe_table_free(&t);
}

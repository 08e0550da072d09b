/* SPDX-License-Identifier: MIT */
/* claims_report.c: what introductions say, in results.json and in the report. Contract: claims.h. */
#include "train/claims.h"

#include "train/report.h"
#include "train/results.h"

#include <math.h>

static json_t *evidence_json(const pe_evidence *e)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:f, s:s}", "what", e->words, "of", e->of, "value",
                     pe_json_number(e->value), "low", pe_json_number(e->low), "high", pe_json_number(e->high),
                     "must_be", e->at_least ? "at least" : "at most", "limit", e->limit, "verdict",
                     pe_holds_name(e->holds));
}

json_t *pe_json_claims(const pe_compare *c)
{
    json_t *array = json_array();
    for (int k = 0; c->properties && k < pe_claim_count(); k++) {
        const char *tutorials, *said;
        int         count;
        json_t     *list = json_array();
        said             = pe_claim_said(k, &tutorials, &count);
        for (int i = 0; i < count; i++) {
            const pe_evidence e = pe_claim_evidence(c, k, i);
            json_array_append_new(list, evidence_json(&e));
        }
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:s, s:o}", "tutorials", tutorials, "said", said,
                                        "verdict", pe_holds_name(pe_claim_judge(c, k)), "evidence", list));
    }
    return array;
}

/* ---------------------------------------------------------------- report -------------------- */

static const char *class_of(pe_holds holds)
{
    return holds == PE_HOLDS ? "passed" : holds == PE_HOLDS_NOT ? "FAILED" : "note";
}

static void set_value(pe_table *t, int row, int column, const pe_evidence *e)
{
    if (isnan(e->value) || isnan(e->low))
        pe_table_number(t, row, column, fabs(e->value) < 1000 ? "%.3g" : "%.0f",
                        fabs(e->value) < 1e-12 ? 0 : e->value);
    else
        pe_table_set(t, row, column, "%+.3f\n%+.3f to %+.3f", e->value, e->low, e->high);
}

static void set_evidence(pe_table *t, int row, const pe_evidence *e)
{
    pe_table_text(t, row, 2, e->words);
    set_value(t, row, 3, e);
    pe_table_set(t, row, 4, "at %s %.3g", e->at_least ? "least" : "most", e->limit);
    pe_table_text(t, row, 5, pe_holds_name(e->holds));
    pe_table_at(t, row, 5)->kind = class_of(e->holds);
}

/* A claim with its evidence, from that row on; returns the next. */
static int set_claim(pe_table *t, int row, const pe_compare *c, int claim)
{
    const char *tutorials, *said;
    int         count;
    char        text[1024];
    said = pe_claim_said(claim, &tutorials, &count);
    snprintf(text, sizeof text, "%s\n%s", said, pe_holds_name(pe_claim_judge(c, claim)));
    pe_table_text(t, row, 0, tutorials);
    pe_table_text(t, row, 1, text);
    pe_table_at(t, row, 1)->kind = class_of(pe_claim_judge(c, claim));
    for (int i = 0; i < count; i++) {
        const pe_evidence e              = pe_claim_evidence(c, claim, i);
        pe_table_at(t, row + i, 0)->rows = pe_table_at(t, row + i, 1)->rows = i ? -1 : count;
        set_evidence(t, row + i, &e);
    }
    return row + count;
}

void pe_report_claims(pe_page *page, const pe_compare *c)
{
    static const pe_column heads[] = {{"where", NULL, PE_TEXT, 0},    {"said", NULL, PE_WIDE, 0},
                                      {"measured", NULL, PE_WIDE, 0}, {"found", NULL, 0, 0},
                                      {"to hold", NULL, 0, 0},        {"verdict", NULL, PE_TEXT, 0}};
    pe_table               t;
    int                    rows = 0, count;
    const char            *tutorials;
    for (int k = 0; k < pe_claim_count(); k++, rows += count)
        pe_claim_said(k, &tutorials, &count);
    if (!c->properties || pe_table_open(&t, heads, 6, rows, NULL))
        return;
    for (int k = 0, row = 0; k < pe_claim_count(); k++)
        row = set_claim(&t, row, c, k);
    pe_page_part(page, "claims");
    pe_html_table(page->to, &t, "stack", 1);
    pe_table_free(&t);
}

/* SPDX-License-Identifier: MIT */
/* claims_report.c: what introductions say, in results.json and in the report. Contract: claims.h. */
#include "train/claims.h"

#include "train/html.h"
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

static void write_value(FILE *to, const pe_evidence *e)
{
    if (isnan(e->value))
        fputs("<td>-</td>", to);
    else if (isnan(e->low))
        fprintf(to, fabs(e->value) < 1000 ? "<td>%.3g</td>" : "<td>%.0f</td>",
                fabs(e->value) < 1e-12 ? 0 : e->value);
    else
        fprintf(to, "<td>%+.3f<br><small>%+.3f to %+.3f</small></td>", e->value, e->low, e->high);
}

static void write_evidence(FILE *to, const pe_evidence *e)
{
    fputs("<td class=w>", to);
    pe_html_text(to, e->words);
    fputs("</td>", to);
    write_value(to, e);
    fprintf(to, "<td>at %s %.3g</td><td class=\"t %s\">%s</td></tr>\n", e->at_least ? "least" : "most",
            e->limit, class_of(e->holds), pe_holds_name(e->holds));
}

static void write_claim(FILE *to, const pe_compare *c, int claim)
{
    const char    *tutorials;
    int            count;
    const char    *said    = pe_claim_said(claim, &tutorials, &count);
    const pe_holds verdict = pe_claim_judge(c, claim);
    fprintf(to, "<tr><td class=t rowspan=%d>%s</td><td class=w rowspan=%d>", count, tutorials, count);
    pe_html_text(to, said);
    fprintf(to, "<br><b class=\"%s\">%s</b></td>", class_of(verdict), pe_holds_name(verdict));
    for (int i = 0; i < count; i++) {
        const pe_evidence e = pe_claim_evidence(c, claim, i);
        if (i)
            fputs("<tr>", to);
        write_evidence(to, &e);
    }
}

void pe_report_claims(FILE *to, const pe_compare *c)
{
    if (!c->properties)
        return;
    fputs(
        "<h2 id=claims>What introductions say</h2>\n<p>Sentences of five introductions to positional "
        "encodings "
        "(000 to 004 of the project's errata), and what is measured of them here: numbers of the encodings "
        "by "
        "themselves, and of the models of this page. The limit is where this project draws the line for the "
        "sentence's word.</p>\n<div class=wide><table class=stack><thead><tr><th scope=col class=t>where</th>"
        "<th scope=col class=w>said</th><th scope=col class=w>measured</th><th scope=col>found</th>"
        "<th scope=col>to hold</th><th scope=col class=t>verdict</th></tr></thead><tbody>\n",
        to);
    for (int k = 0; k < pe_claim_count(); k++)
        write_claim(to, c, k);
    fputs("</tbody></table></div>\n", to);
}

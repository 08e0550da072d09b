/* SPDX-License-Identifier: MIT */
/*
 * report_extension.c: extended models in the report
 *
 * A number is compared with the same bytes' loss of the unmodified model ("none", "random", untuned): its
 * difference has an interval, and is what a colour says in the report: blue where doing it helped, orange
 * where it harmed, white where the interval contains zero. These two hues differ for every eye, and the sign
 * is in the cell too.
 */
#include "train/report/report.h"

#include <math.h>
#include <string.h>

static int is_measured(const pe_extension *x)
{
    return x && x->count && x->means;
}

static void set_loss(pe_table *t, int row, int column, const pe_extension *x, pe_losses_reading s, int bucket)
{
    const double loss = pe_losses_extended(x, s, bucket);
    pe_field    *cell = pe_table_at(t, row, column);
    char         hint[128];
    pe_table_number(t, row, column, "%.3f", isfinite(loss) ? loss : NAN);
    const pe_losses_reading nothing = pe_losses_nothing_done(s.way);
    if ((s.way == nothing.way && s.tuning == PE_UNTUNED) || !isfinite(loss))
        return;
    const pe_interval d = pe_losses_extended_difference(x, s, nothing, bucket);
    snprintf(cell->ground, sizeof cell->ground, "%s",
             d.high < 0  ? "#cfe3f5;color:#000"
             : d.low > 0 ? "#fbdcc4;color:#000"
                         : "transparent");
    snprintf(hint, sizeof hint, "%+.3f (%+.3f to %+.3f) against the unmodified model", d.value, d.low,
             d.high);
    cell->hint = strdup(hint);
    pe_table_set(t, row, column, "%.3f\n%+.3f", loss, d.value);
}

static void write_factor(FILE *to, const pe_extension *x, const pe_extension_plan *p, int factor_index)
{
    pe_column heads[2 + PE_FAR_BUCKETS] = {{"method", NULL, 1, 0}, {"", NULL, 1, 0}};
    pe_table  t;
    int       rows = 0;
    for (int b = PE_AT_L; b < PE_FAR_BUCKETS; b++)
        heads[2 + b - PE_AT_L] = (pe_column){.head = pe_way_bucket_name(b)};
    if (pe_table_open(&t, heads, 2 + PE_FAR_BUCKETS - PE_AT_L, p->way_count * PE_TUNINGS, NULL))
        return;
    for (int k = 0; k < p->way_count * PE_TUNINGS; k++) {
        const pe_losses_reading s = {p->ways[k / PE_TUNINGS], factor_index, k % PE_TUNINGS};
        if (!pe_losses_has_extended(x, s))
            continue;
        pe_table_text(&t, rows, 0, pe_ways[s.way].name);
        pe_table_text(&t, rows, 1, pe_way_tuning_name(s.tuning));
        for (int b = PE_AT_L; b < PE_FAR_BUCKETS; b++)
            set_loss(&t, rows, 2 + b - PE_AT_L, x, s, b);
        rows++;
    }
    t.row_count = rows;
    pe_html_table(to, &t, "heat", 1);
    pe_table_free(&t);
}

/* The factor 2, which is tuned everywhere; the report has all. */
static void set_way(pe_table *t, const pe_extension *x, const pe_extension_plan *p, int k)
{
    enum { FACTOR_2 = 0 };
    const int row = t->row_count++;
    pe_table_text(t, row, 0, p->family);
    pe_table_text(t, row, 1, pe_ways[p->ways[k]].name);
    for (int n = 0; n < 2 * PE_TUNINGS; n++) {
        const pe_losses_reading s    = {p->ways[k], FACTOR_2, n % PE_TUNINGS};
        const double            loss = pe_losses_has_extended(x, s)
                                           ? pe_losses_extended(x, s, n < PE_TUNINGS ? PE_AT_2L : PE_AT_4L)
                                           : NAN;
        pe_table_number(t, row, 2 + n, "%.3f", isfinite(loss) ? loss : NAN);
    }
}

posenc_status pe_report_extension_table(const pe_compare *c, pe_table *t, posenc_error *err)
{
    static const pe_column heads[] = {{"extended", NULL, 1, 0}, {"method", NULL, 1, 0}, {.head = "x2"},
                                      {.head = "tuned"},        {.head = "x4"},         {.head = "tuned"}};
    const pe_extension    *x       = c->extension;
    int                    rows    = 0;
    for (int f = 0; is_measured(x) && f < x->count; f++)
        rows += x->plans[f].way_count;
    const posenc_status status = pe_table_open(t, heads, sizeof heads / sizeof *heads, rows, err);
    if (status || !rows)
        return status;
    t->row_count = 0;
    for (int f = 0; f < x->count; f++)
        for (int k = 0; k < x->plans[f].way_count; k++)
            set_way(t, x, &x->plans[f], k);
    pe_table_note(t,
                  "Extended to 2 L: nats per byte up to twice and four times the trained length, without "
                  "tuning and after %lld steps of it at 2 L (drope and kept: at L). The report has the other "
                  "factors.",
                  (long long)x->plans[0].steps);
    return POSENC_OK;
}

static void write_family(pe_page *page, const pe_extension *x, const pe_extension_plan *p)
{
    pe_html_set(page, "family", "%s", p->family);
    pe_html_part(page, "family");
    for (int k = 0; k < p->way_count; k++) {
        pe_html_element(page->to, "dt", "%s", pe_ways[p->ways[k]].name);
        pe_html_element(page->to, "dd", "%s", pe_ways[p->ways[k]].what);
    }
    fputs("</dl>\n", page->to);
    for (int f = 0; f < PE_FACTORS; f++) {
        pe_html_set(page, "open", "%s", f ? "" : " open");
        pe_html_set(page, "factor", "%lld", (long long)pe_way_factor(f));
        pe_html_part(page, "factor");
        write_factor(page->to, x, p, f);
        fputs("</details>\n", page->to);
    }
}

void pe_report_extension(pe_page *page, const pe_compare *c)
{
    const pe_extension *x = c->extension;
    if (!is_measured(x))
        return;
    pe_html_set(page, "tune_steps", "%lld", (long long)x->plans[0].steps);
    pe_html_set(page, "far_windows", "%lld", (long long)x->windows);
    pe_html_set(page, "far_reach", "%lld", (long long)(PE_FURTHEST * x->L));
    pe_html_part(page, "extension");
    for (int f = 0; f < x->count; f++)
        write_family(page, x, &x->plans[f]);
}

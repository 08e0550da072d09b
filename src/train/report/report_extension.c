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

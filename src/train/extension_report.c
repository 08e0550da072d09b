/* SPDX-License-Identifier: MIT */
/*
 * extension_report.c: extended models in results.json, in the report and on the terminal
 *
 * A number is read beside the same bytes' loss when nothing was done ("none", "random", untuned): its
 * difference has an interval, and is what a colour says in the report: blue where doing it helped, orange
 * where it harmed, white where the interval contains zero. These two hues differ for every eye, and the sign
 * stands in the cell too.
 */
#include "train/extension.h"

#include "train/html.h"
#include "train/results.h"

#include <math.h>
#include <string.h>

pe_spot pe_extension_nothing_done(int way)
{
    int first = 0;
    while (strcmp(pe_way_at(first)->family, pe_way_at(way)->family) != 0)
        first++;
    return (pe_spot){first, 0, PE_UNTUNED};
}

static int is_nothing_done(pe_spot s)
{
    return s.way == pe_extension_nothing_done(s.way).way && s.tuning == PE_UNTUNED;
}

/* ---------------------------------------------------------------- JSON ---------------------- */

static json_t *bucket_json(const pe_extension *x, pe_spot s, int bucket)
{
    int64_t first, end;
    pe_far_bucket_range(x->L, bucket, &first, &end);
    return json_pack(
        "{s:s, s:I, s:I, s:o, s:o}", "name", pe_far_bucket_name(bucket), "first", (json_int_t)first, "end",
        (json_int_t)end, "loss", pe_json_number(pe_extension_loss(x, s.way, s.factor, s.tuning, bucket)),
        "to_nothing_done",
        pe_json_interval(pe_extension_difference(x, s, pe_extension_nothing_done(s.way), bucket)));
}

/* null where it was not read, as what was not tuned. */
static json_t *buckets_json(const pe_extension *x, pe_spot s)
{
    if (!pe_extension_has(x, s.way, s.factor, s.tuning))
        return json_null();
    json_t *array = json_array();
    for (int b = 0; b < PE_FAR_BUCKETS; b++)
        json_array_append_new(array, bucket_json(x, s, b));
    return array;
}

static json_t *factors_json(const pe_extension *x, int way)
{
    json_t *array = json_array();
    for (int f = 0; f < PE_FACTORS; f++)
        json_array_append_new(array, json_pack("{s:I, s:o, s:o}", "factor", (json_int_t)pe_factor_at(f),
                                               "untuned", buckets_json(x, (pe_spot){way, f, PE_UNTUNED}),
                                               "tuned", buckets_json(x, (pe_spot){way, f, PE_TUNED})));
    return array;
}

json_t *pe_json_extension(const pe_extension *x)
{
    json_t *ways = json_array();
    if (!x || !x->count)
        return json_pack("{s:s, s:o}", "reason", x && x->reason[0] ? x->reason : "not asked for", "schedules",
                         ways);
    for (int i = 0; i < pe_way_count(); i++) {
        const pe_way *w = pe_way_at(i);
        json_array_append_new(ways, json_pack("{s:s, s:s, s:s, s:o}", "family", w->family, "schedule",
                                              w->name, "what", w->what, "factors", factors_json(x, i)));
    }
    const pe_extension_plan *p = &x->plans[0];
    return json_pack("{s:s, s:I, s:{s:I, s:I, s:f}, s:o}", "extent", pe_extend_name(p->extend), "windows",
                     (json_int_t)x->windows, "tuning", "steps", (json_int_t)p->steps, "warmup",
                     (json_int_t)p->warmup, "learning_rate", p->learning_rate, "schedules", ways);
}

/* ---------------------------------------------------------------- terminal ------------------ */

/* The bucket that ends at f L. */
static int bucket_of(int factor)
{
    return PE_AT_2L + factor;
}

static int is_measured(const pe_extension *x)
{
    return x && x->count && x->means;
}

/* Loss and, in brackets, what doing it changed; a dash where it was not read. */
static void put_loss(pe_table *t, int row, int column, const pe_extension *x, pe_spot s)
{
    const int    bucket = bucket_of(s.factor);
    const double loss   = pe_extension_loss(x, s.way, s.factor, s.tuning, bucket);
    if (!isfinite(loss)) {
        pe_table_set(t, row, column, "-");
        return;
    }
    const pe_interval d = pe_extension_difference(x, s, pe_extension_nothing_done(s.way), bucket);
    pe_table_set(t, row, column, d.low > 0 || d.high < 0 ? "%.3f%s" : "%.3f", loss, d.low > 0 ? " +" : " -");
}

posenc_status pe_compare_extension(const pe_compare *c, pe_table *table, posenc_error *err)
{
    static const pe_column heads[] = {
        {"trained", "the encoding that was trained at L", 1, 0},
        {"read by", "what was done to read it further", 1, 0},
        {"", "as it was, or after a short training at that length", 1, 0},
        {"2 L", "loss in [L, 2 L) with factor 2; - and +: clear of nothing done, below and above", 0, 0},
        {"4 L", "in [2 L, 4 L) with factor 4", 0, 0},
        {"8 L", "in [4 L, 8 L) with factor 8", 0, 0},
        {"16 L", "in [8 L, 16 L) with factor 16", 0, 0}};
    const pe_extension *x    = c->extension;
    const int           rows = is_measured(x) ? PE_TUNINGS * pe_way_count() : 0;
    if (!pe_table_create(table, heads, sizeof heads / sizeof *heads, rows)) {
        pe_table_free(table);
        return err ? (err->status = POSENC_MEMORY) : POSENC_MEMORY;
    }
    for (int row = 0; row < rows; row++) {
        const int way = row / PE_TUNINGS, tuning = row % PE_TUNINGS;
        pe_table_set(table, row, 0, "%s", pe_way_at(way)->family);
        pe_table_set(table, row, 1, "%s", pe_way_at(way)->name);
        pe_table_set(table, row, 2, "%s", pe_tuning_name(tuning));
        for (int f = 0; f < PE_FACTORS; f++)
            put_loss(table, row, 3 + f, x, (pe_spot){way, f, tuning});
    }
    if (rows)
        pe_table_note(
            table,
            "Read further: nats per byte in the second half of that length, read with that factor. "
            "Behind a number - and + say that the "
            "paired 95 %% interval lies below and above what nothing done has; a dash alone: not read.");
    return POSENC_OK;
}

/* ---------------------------------------------------------------- report -------------------- */

static void loss_cell(FILE *to, const pe_extension *x, pe_spot s, int bucket)
{
    const double loss = pe_extension_loss(x, s.way, s.factor, s.tuning, bucket);
    if (!isfinite(loss)) {
        fputs("<td>-</td>", to);
        return;
    }
    const pe_interval d = pe_extension_difference(x, s, pe_extension_nothing_done(s.way), bucket);
    const char *ground = d.high < 0 ? "#cfe3f5;color:#000" : d.low > 0 ? "#fbdcc4;color:#000" : "transparent";
    if (is_nothing_done(s))
        fprintf(to, "<td>%.3f</td>", loss);
    else
        fprintf(to,
                "<td style=\"background:%s\" title=\"%+.3f (%+.3f to %+.3f) against nothing "
                "done\">%.3f<br><small>%+.3f</small></td>",
                ground, d.value, d.low, d.high, loss, d.value);
}

static void write_row(FILE *to, const pe_extension *x, pe_spot s)
{
    fputs("<tr><th scope=row class=t>", to);
    pe_html_text(to, pe_way_at(s.way)->name);
    fprintf(to, "</th><td class=t>%s</td>", pe_tuning_name(s.tuning));
    for (int b = PE_AT_L; b < PE_FAR_BUCKETS; b++)
        loss_cell(to, x, s, b);
    fputs("</tr>\n", to);
}

static void write_factor(FILE *to, const pe_extension *x, const pe_extension_plan *p, int factor)
{
    fprintf(to,
            "<details%s><summary>%s, factor %lld</summary><div class=wide><table class=heat><thead><tr>"
            "<th scope=col class=t>read by</th><th scope=col class=t></th>",
            factor ? "" : " open", p->family, (long long)pe_factor_at(factor));
    for (int b = PE_AT_L; b < PE_FAR_BUCKETS; b++)
        fprintf(to, "<th scope=col>%s</th>", pe_far_bucket_name(b));
    fputs("</tr></thead><tbody>\n", to);
    for (int k = 0; k < p->way_count; k++)
        for (int t = 0; t < PE_TUNINGS; t++)
            if (pe_extension_has(x, p->ways[k], factor, t))
                write_row(to, x, (pe_spot){p->ways[k], factor, t});
    fputs("</tbody></table></div></details>\n", to);
}

static void write_family(FILE *to, const pe_extension *x, const pe_extension_plan *p)
{
    pe_html_element(to, "h3", "%s", p->family);
    fputs("<dl>\n", to);
    for (int k = 0; k < p->way_count; k++) {
        pe_html_element(to, "dt", "%s", pe_way_at(p->ways[k])->name);
        pe_html_element(to, "dd", "%s", pe_way_at(p->ways[k])->what);
    }
    fputs("</dl>\n", to);
    for (int f = 0; f < PE_FACTORS; f++)
        write_factor(to, x, p, f);
}

void pe_report_extension(FILE *to, const pe_compare *c)
{
    const pe_extension *x = c->extension;
    if (!is_measured(x))
        return;
    fputs("<h2 id=extension>Reading further than trained</h2>\n", to);
    pe_html_element(
        to, "p",
        "One model was trained at L = %lld and then read at up to 16 L in every way below, as it was "
        "and, where it says tuned, after %lld more steps at factor times L (as many bytes per step, a "
        "quarter of the learning rate). Nats per byte over %lld windows of %lld bytes; below each number "
        "what doing it changed, in the same bytes, against the model as it was trained: blue where that "
        "is below zero and orange where it is above, each by a paired 95 %% interval, which a pointer on "
        "the cell shows.",
        (long long)x->L, (long long)x->plans[0].steps, (long long)x->windows,
        (long long)(PE_FURTHEST * x->L));
    for (int f = 0; f < x->count; f++)
        write_family(to, x, &x->plans[f]);
}

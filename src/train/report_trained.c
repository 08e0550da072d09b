/* SPDX-License-Identifier: MIT */
/*
 * report_trained.c: properties of the trained models in results.json and in the report
 *
 * One row per encoding, best at L first: how far it carries (extrapolation, break), what it makes of more
 * context (gain), how far back it looks (attention), and whether it notices where a text begins (shift). A
 * number that was not measured is null, and a dash.
 */
#include "train/report.h"

#include "train/html.h"
#include "train/results.h"

#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- JSON ---------------------- */

static json_t *shifts_json(const pe_outcome *o)
{
    json_t *array = json_array();
    for (int i = 0; i < PE_SHIFTS; i++)
        json_array_append_new(array, json_pack("{s:I, s:o}", "first_position",
                                               (json_int_t)pe_shift_at(o->config.L, i), "loss_change",
                                               pe_json_number(o->shift[i])));
    return array;
}

static json_t *weights_json(const double *x, int64_t n)
{
    json_t *array = json_array();
    for (int64_t t = 0; x && t < n; t++)
        json_array_append_new(array, pe_json_number(x[t]));
    return array;
}

static json_t *distance_json(int64_t distance)
{
    return distance < 0 ? json_null() : json_integer(distance);
}

json_t *pe_json_trained(const pe_outcome *o)
{
    const int64_t L = o->config.L;
    return json_pack("{s:o, s:o, s:{s:o, s:o, s:o, s:o}}", "shift", shifts_json(o),
                     "gain_over_truncated_context", pe_json_interval(o->gain), "attention_weight",
                     "holds_90_percent_at_L", distance_json(o->near_90), "holds_90_percent_at_8L",
                     distance_json(o->far_90), "weight_by_distance_at_L", weights_json(o->near, L),
                     "weight_by_distance_at_8L", weights_json(o->far, PE_REACH * L));
}

/* ---------------------------------------------------------------- report -------------------- */

#define LEAST_SHIFT 1e-4 /* nats: what check 14 allows where nothing may change */

static void number(FILE *to, const char *format, double x)
{
    if (!isfinite(x)) {
        fputs("<td>-</td>", to);
        return;
    }
    fputs("<td>", to);
    fprintf(to, format, x);
    fputs("</td>", to);
}

static void distance(FILE *to, int64_t t)
{
    if (t < 0)
        fputs("<td>-</td>", to);
    else
        fprintf(to, "<td>%lld</td>", (long long)t);
}

static void gain(FILE *to, pe_interval g)
{
    if (!isfinite(g.value))
        fputs("<td>-</td>", to);
    else
        fprintf(to, "<td>%+.3f<br><small>%+.3f to %+.3f</small></td>", g.value, g.low, g.high);
}

/* Round-off of sums in float is no finding. */
static void shift(FILE *to, double x)
{
    if (fabs(x) > 0 && fabs(x) < LEAST_SHIFT)
        fprintf(to, "<td>&lt;%g</td>", LEAST_SHIFT);
    else
        number(to, fabs(x) > 0 ? "%+.4f" : "%.0f", x);
}

static void row(FILE *to, const pe_outcome *o)
{
    fputs("<tr><th scope=row class=t>", to);
    pe_html_text(to, o->label);
    fputs("</th>", to);
    for (int b = PE_AT_2L; b < PE_BUCKETS; b++)
        number(to, "%.2f", o->ratio[b]);
    fprintf(to, "<td class=t>%s</td>", o->verdict);
    distance(to, o->break_position + 1);
    gain(to, o->gain);
    distance(to, o->near_90);
    distance(to, o->far_90);
    for (int i = 0; i < PE_SHIFTS; i++)
        shift(to, o->shift[i]);
    fputs("</tr>\n", to);
}

static void head(FILE *to, int64_t L)
{
    fputs("<div class=wide><table><thead><tr><th scope=col class=t rowspan=2>encoding</th>"
          "<th scope=col colspan=4>loss beyond L / at L</th><th scope=col rowspan=2>breaks at</th>"
          "<th scope=col rowspan=2>gain of 8 L over L</th><th scope=col colspan=2>90 % of the weight "
          "within</th>",
          to);
    fprintf(to, "<th scope=col colspan=%d>change of loss from position</th></tr><tr>", PE_SHIFTS);
    fputs("<th>E_2</th><th>E_4</th><th>E_8</th><th class=t>class</th><th>at L</th><th>at 8 L</th>", to);
    for (int i = 0; i < PE_SHIFTS; i++)
        fprintf(to, "<th>%lld</th>", (long long)pe_shift_at(L, i));
    fputs("</tr></thead><tbody>\n", to);
}

static const char *const meanings[][2] = {
    {"class", "extrapolates: E_8 at most 1.10; degrades: at most 1.40; breaks: above"},
    {"breaks at", "the first position behind the last whose smoothed loss is within 0.1 nat of that at L"},
    {"gain", "loss of the bytes from 4 L to 8 L when each is read behind L bytes of context at most, less "
             "their loss in one "
             "pass over 8 L, with its paired 95 % interval: above zero the encoding uses what lies further "
             "back, near "
             "zero it tolerates it, below it is harmed by it"},
    {"90 % of the weight",
     "the distance within which the attention of the last queries lies, mean over layers and heads, "
     "of inputs of L and of 8 L bytes"},
    {"change of loss", "the same bytes read at later positions: zero for what sees differences alone"},
};

static void attention(FILE *to, const pe_gallery *g)
{
    const pe_exhibit *x = pe_gallery_find(g, "attention");
    if (x)
        pe_report_figure(to, x,
                         "Queries of the last L of 8 L bytes. A curve that is high on the left looks near by "
                         "alone; one that still rises beyond the line uses what it was never trained on, or "
                         "spreads over it.");
}

void pe_report_trained(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    int      *order = c->config.bidirectional ? NULL : malloc((size_t)c->count * sizeof *order);
    const int n     = order ? pe_outcomes_order(c, order) : 0;
    if (n > 0) {
        fputs("<h2 id=properties>What the trained models do with positions</h2>\n", to);
        head(to, c->config.preset.L);
        for (int i = 0; i < n; i++)
            row(to, &c->outcomes[order[i]]);
        fputs("</tbody></table></div>\n<details><summary>What the columns mean</summary><dl>\n", to);
        for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
            pe_html_element(to, "dt", "%s", meanings[i][0]);
            pe_html_element(to, "dd", "%s", meanings[i][1]);
        }
        fputs("</dl></details>\n", to);
        attention(to, g);
    }
    free(order);
}

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

enum { RATIOS = 1, CLASS = 4, BREAK, GAIN, NEAR, FAR, SHIFTS, COLUMNS = SHIFTS + PE_SHIFTS };

/* A dash where it was not measured. */
static void distance(pe_table *t, int row, int column, int64_t distance)
{
    pe_table_number(t, row, column, "%.0f", distance < 0 ? NAN : (double)distance);
}

/* Round-off of sums in float is no finding. */
static void shift(pe_table *t, int row, int column, double x)
{
    if (fabs(x) > 0 && fabs(x) < LEAST_SHIFT)
        pe_table_set(t, row, column, "<%g", LEAST_SHIFT);
    else
        pe_table_number(t, row, column, fabs(x) > 0 ? "%+.4f" : "%.0f", isfinite(x) ? x : NAN);
}

static void fill(pe_table *t, int row, const pe_outcome *o)
{
    pe_table_text(t, row, 0, o->label);
    for (int b = PE_AT_2L; b < PE_BUCKETS; b++)
        pe_table_number(t, row, RATIOS + b - PE_AT_2L, "%.2f", isfinite(o->ratio[b]) ? o->ratio[b] : NAN);
    pe_table_text(t, row, CLASS, o->verdict);
    distance(t, row, BREAK, o->break_position + 1);
    if (isfinite(o->gain.value))
        pe_table_set(t, row, GAIN, "%+.3f\n%+.3f to %+.3f", o->gain.value, o->gain.low, o->gain.high);
    else
        pe_table_text(t, row, GAIN, "-");
    distance(t, row, NEAR, o->near_90);
    distance(t, row, FAR, o->far_90);
    for (int i = 0; i < PE_SHIFTS; i++)
        shift(t, row, SHIFTS + i, o->shift[i]);
}

void pe_report_trained(pe_page *page, const pe_compare *c, const pe_gallery *g)
{
    static const pe_group groups[]       = {{RATIOS, 4, "loss beyond L / at L"},
                                            {NEAR, 2, "90 % of the weight within"},
                                            {SHIFTS, PE_SHIFTS, "change of loss from position"}};
    pe_column             heads[COLUMNS] = {{"encoding", NULL, 1, 0},
                                            {"E_2", NULL, 0, 0},
                                            {"E_4", NULL, 0, 0},
                                            {"E_8", NULL, 0, 0},
                                            {"class", NULL, 1, 0},
                                            {"breaks at", NULL, 0, 0},
                                            {"gain of 8 L over L", NULL, 0, 0},
                                            {"at L", NULL, 0, 0},
                                            {"at 8 L", NULL, 0, 0}};
    char                  from[PE_SHIFTS][24];
    pe_table              t;
    int                  *order = c->config.bidirectional ? NULL : malloc((size_t)c->count * sizeof *order);
    const int             n     = order ? pe_outcomes_order(c, order) : 0;
    for (int i = 0; i < PE_SHIFTS; i++) {
        snprintf(from[i], sizeof from[i], "%lld", (long long)pe_shift_at(c->config.preset.L, i));
        heads[SHIFTS + i] = (pe_column){.head = from[i]};
    }
    if (n > 0 && !pe_table_open(&t, heads, COLUMNS, n, NULL)) {
        t.groups      = groups;
        t.group_count = sizeof groups / sizeof *groups;
        for (int i = 0; i < n; i++)
            fill(&t, i, &c->outcomes[order[i]]);
        pe_page_part(page, "trained");
        pe_html_table(page->to, &t, "", 1);
        pe_page_part(page, "trained columns");
        pe_report_drawing(page, g, "attention");
        pe_table_free(&t);
    }
    free(order);
}

/* SPDX-License-Identifier: MIT */
/*
 * settled.c: what was chosen and what is settled: learning rates, and the order of the encodings
 */
#include "files/arrays/json.h"
#include "train/report/settled.h"

#include "base/shared/compiler.h"
#include "train/judge/judge.h"
#include "train/report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_NAMES = 8, CURVE_RATES = 3 };

static json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *numbers_json(const double *x, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        pe_json_add(&array, number_json(x[i]));
    return array;
}

/* ---------------------------------------------------------------- learning rates ------------ */

/* Losses of the preset `quick` by learning rate: where its only rate lies. NAN: not measured. */
static const double curve_rates[CURVE_RATES] = {0.012, 0.024, 0.048};
static const struct {
    const char *encoding;
    double      losses[CURVE_RATES];
} curves[] = {
#define CURVE(encoding, ...) {#encoding, {__VA_ARGS__}},
#include "train/report/rate_curves.def"
#undef CURVE
};

static json_t *curves_json(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        pe_json_add(&array, json_pack("{s:s, s:o}", "encoding", curves[i].encoding, "losses",
                                      numbers_json(curves[i].losses, CURVE_RATES)));
    return json_pack("{s:s, s:o, s:o}", "what",
                     "the preset quick on the text of make demo, nats per byte at L; docs/experiments.md, "
                     "section 18",
                     "learning_rates", numbers_json(curve_rates, CURVE_RATES), "encodings", array);
}

static json_t *trials_json(const pe_compare *c, int i)
{
    static const char *const edges[] = {"lowest", NULL, "highest"};
    const pe_trials         *t       = c->trials;
    json_t                  *array   = json_array();
    for (int r = 0; r < t->rate_count && t->outcomes; r++)
        pe_json_add(&array, json_pack("{s:f, s:o}", "learning_rate", t->rates[r], "loss",
                                      number_json(pe_trial_loss(t, i, r))));
    return json_pack("{s:s, s:o, s:s?, s:o}", "encoding", c->outcomes[i].label, "learning_rate",
                     t->chosen[i] < 0 ? json_null() : json_real(t->rates[t->chosen[i]]), "edge",
                     edges[1 + pe_trial_edge(t, i)], "trials", array);
}

json_t *pe_settled_rates_json(const pe_compare *c)
{
    const pe_trials *t     = c->trials;
    json_t          *array = json_array();
    for (int i = 0; i < c->count; i++)
        pe_json_add(&array, trials_json(c, i));
    json_t *json = json_pack("{s:o, s:o, s:s}", "tried", numbers_json(t->rates, t->rate_count), "encodings",
                             array, "note", c->rates_note);
    if (t->outcomes)
        pe_json_set(&json, "chosen_on",
                    json_pack("{s:s, s:I, s:I, s:f, s:I}", "what",
                              "the last bytes of the training part, on which nothing was trained", "bytes",
                              (json_int_t)c->text.spared, "windows", (json_int_t)t->plan.windows,
                              "share_of_steps", t->share, "steps",
                              (json_int_t)pe_trial_steps(c->config.preset.steps, t->share)));
    else
        pe_json_set(&json, "documented_curve", curves_json());
    return json;
}

/* ---------------------------------------------------------------- the order ----------------- */

static json_t *level_json(const pe_compare *c, int level)
{
    json_t              *array    = json_array();
    const int            furthest = pe_stats_furthest(c->config.preset.reach);
    const pe_run_config *config   = NULL;
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o = pe_level_outcome(c, level, i);
        if (!o)
            continue;
        config = &o->config;
        if (o->is_complete)
            pe_json_add(&array, json_pack("{s:s, s:o, s:o}", "encoding", c->outcomes[i].label, "loss_at_L",
                                          number_json(o->loss[PE_AT_L]), "loss_at_end",
                                          number_json(o->loss[furthest])));
    }
    return json_pack("{s:s, s:I, s:I, s:o}", "level", pe_level_name(level), "steps",
                     (json_int_t)(config ? config->steps : 0), "d_model",
                     (json_int_t)(config ? config->d_model : 0), "encodings", array);
}

static json_t *groups_json(const pe_compare *c, const pe_order *o)
{
    json_t *groups = json_array();
    for (int g = 0; g < o->groups; g++)
        pe_json_add(&groups, json_array());
    for (int i = 0; i < o->ranked; i++) {
        const int item = o->sorted[i];
        if (json_array_append_new(json_array_get(groups, (size_t)o->group[item]),
                                  json_string(c->outcomes[item].label)))
            pe_json_lose(&groups);
    }
    return groups;
}

static json_t *pairs_json(const pe_compare *c, const pe_order *o)
{
    json_t *array = json_array();
    for (const pe_order_pair *p = o->pairs; p < o->pairs + o->pair_count; p++)
        pe_json_add(&array,
                    json_pack("{s:s, s:s, s:s, s:s?, s:o}", "better", c->outcomes[p->better].label, "worse",
                              c->outcomes[p->worse].label, "state", pe_order_state_name(p->state), "reason",
                              p->reason, "differences", numbers_json(p->difference, o->levels)));
    return array;
}

/* The line that says it; 0 without memory. */
static int write_order(char text[PE_LONGEST_ANSWER], const pe_compare *c, const pe_order *o)
{
    const char **labels = malloc((size_t)c->count * sizeof *labels);
    for (int i = 0; labels && i < c->count; i++)
        labels[i] = c->outcomes[i].label;
    text[0] = 0;
    if (labels)
        pe_order_write(text, PE_LONGEST_ANSWER, o, labels);
    free(labels);
    return labels != NULL;
}

static json_t *order_json(const pe_compare *c, int which)
{
    const pe_order *o = c->orders[which];
    char            text[PE_LONGEST_ANSWER], at[24] = "L";
    if (which == PE_ORDER_FURTHEST)
        snprintf(at, sizeof at, "%lld L", (long long)c->config.preset.reach);
    write_order(text, c, o);
    return json_pack("{s:s, s:s, s:f, s:o, s:o, s:o}", "at", at, "text", text, "resolution",
                     pe_stability_resolution(which), "groups", groups_json(c, o), "kendall_tau",
                     numbers_json(o->tau, o->levels), "pairs", pairs_json(c, o));
}

json_t *pe_settled_orders_json(const pe_compare *c)
{
    json_t *levels = json_array(), *orders = json_array();
    for (int k = 0; c->orders[0] && k < c->orders[0]->levels; k++)
        pe_json_add(&levels, level_json(c, pe_stability_level(c->levels, k)));
    for (int which = 0; which < PE_ORDERS_SHOWN && c->orders[which]; which++)
        pe_json_add(&orders, order_json(c, which));
    return json_pack("{s:s, s:o, s:o}", "extent", pe_preset_extent_name(c->levels->extent), "levels", levels,
                     "orders", orders);
}

/* ---------------------------------------------------------------- notes --------------------- */

PE_PRINTF(2, 3) static void append_rates(pe_compare *c, const char *format, ...)
{
    const size_t used = strlen(c->rates_note);
    va_list      values;
    va_start(values, format);
    vsnprintf(c->rates_note + used, sizeof c->rates_note - used, format, values);
    va_end(values);
}

/* "Learning rates: 0.001 alibi, rope; 0.002 nope." */
static void append_choice(pe_compare *c)
{
    const pe_trials *t      = c->trials;
    int              groups = 0;
    for (int r = 0; r < t->rate_count && t->outcomes; r++) {
        int names = 0;
        for (int i = 0; i < c->count; i++) {
            if (t->chosen[i] != r)
                continue;
            if (!names++)
                append_rates(c, "%s%g", groups++ ? "; " : "Learning rates: ", t->rates[r]);
            append_rates(c, "%s%.60s", names > 1 ? ", " : " ", c->outcomes[i].label);
        }
    }
    if (groups)
        append_rates(c, ".\n");
}

static void append_rate(pe_compare *c, double rate, int *n)
{
    append_rates(c, "%s%g", (*n)++ ? "," : "", rate);
}

/* Of the encodings whose best rate is the lowest (-1) or highest (1) that was tried: which they are, and what
   to try then. Rates are tried in steps like the last one. */
static void append_edge(pe_compare *c, int edge)
{
    const pe_trials *t     = c->trials;
    const int        last  = t->rate_count - 1;
    const double     found = edge < 0 ? t->rates[0] : t->rates[last];
    int              names = 0, listed = 0;
    for (int i = 0; i < c->count; i++)
        if (pe_trial_edge(t, i) == edge && ++names <= SHOWN_NAMES)
            append_rates(c, "%s%.60s", names > 1 ? ", " : "", c->outcomes[i].label);
    if (!names)
        return;
    append_rates(c,
                 "%s: the best learning rate is the %s that was tried, %g; a %s one may be better: try "
                 "--rates ",
                 names > SHOWN_NAMES ? " and others" : "", edge < 0 ? "lowest" : "highest", found,
                 edge < 0 ? "lower" : "higher");
    if (edge < 0)
        append_rate(c, found * t->rates[0] / t->rates[1], &listed);
    for (int r = 0; r <= last; r++)
        append_rate(c, t->rates[r], &listed);
    if (edge > 0)
        append_rate(c, found * t->rates[last] / t->rates[last - 1], &listed);
    append_rates(c, "\n");
}

void pe_settled_write_notes(pe_compare *c)
{
    char order[PE_LONGEST_ANSWER];
    c->rates_note[0] = c->orders_note[0] = 0;
    append_choice(c);
    append_edge(c, -1);
    append_edge(c, 1);
    if (c->orders[PE_ORDER_AT_L] && write_order(order, c, c->orders[PE_ORDER_AT_L]) && order[0])
        snprintf(c->orders_note, sizeof c->orders_note, "Order at L: %.*s.", PE_LONGEST_ANSWER - 32, order);
}

/* SPDX-License-Identifier: MIT */
/*
 * report_settled.c: in the report, whether the order would hold, and the learning rates that were tried
 *
 * A line of the first table is an order, at L or at the furthest length: its groups, how many pairs are in
 * which state, and how alike the orders of less training are. Pairs whose order is doubtful follow, folded;
 * of `full` they are hundreds. order.h says what the states are.
 */
#include "train/report/report.h"

#include <stdlib.h>

enum { AT, ORDER, SETTLED, TIED, MOVING, CROSSED, TAU }; /* columns; a tau for each level but the last */
enum { PLACE, BETTER, WORSE, WHY, DIFFERENCE };          /* a difference for each level */
enum { HEAD = 64 };

static const pe_order *order_of(const pe_compare *c, int which)
{
    return c->orders[which] && c->orders[which]->levels > 1 ? c->orders[which] : NULL;
}

/* "L", "8 L", which stays in one line. */
static void put_place(pe_table *t, int row, int column, const pe_compare *c, int which)
{
    if (which == PE_ORDER_AT_L)
        pe_table_text(t, row, column, "L");
    else
        pe_table_set(t, row, column, "%lld\u00a0L", (long long)c->config.preset.reach);
}

/* The groups alone. */
static void put_groups(pe_table *t, int row, const pe_compare *c, const pe_order *o)
{
    char         text[PE_LONGEST_ANSWER];
    const char **labels = malloc((size_t)c->count * sizeof *labels);
    for (int i = 0; labels && i < c->count; i++)
        labels[i] = c->outcomes[i].label;
    if (labels)
        pe_order_write_groups(text, sizeof text, o, labels);
    pe_table_text(t, row, ORDER, labels ? text : "");
    free(labels);
}

static void put_order(pe_table *t, int row, const pe_compare *c, int which)
{
    const pe_order *o                              = order_of(c, which);
    int             counts[1 + PE_PAIR_UNMEASURED] = {0};
    for (int i = 0; i < o->pair_count; i++)
        counts[o->pairs[i].state]++;
    put_place(t, row, AT, c, which);
    put_groups(t, row, c, o);
    pe_table_set(t, row, SETTLED, "%d", counts[PE_PAIR_SETTLED]);
    pe_table_set(t, row, TIED, "%d", counts[PE_PAIR_TIED]);
    pe_table_set(t, row, MOVING, "%d", counts[PE_PAIR_MOVING]);
    pe_table_set(t, row, CROSSED, "%d", counts[PE_PAIR_CROSSED]);
    for (int k = 0; k + 1 < o->levels; k++)
        pe_table_number(t, row, TAU + k, "%.2f", o->tau[k]);
}

/* Of the levels from the first on, into texts[]: "a quarter of the steps". */
static void name_levels(pe_column *heads, char texts[][HEAD], const pe_compare *c, int count,
                        const char *format)
{
    for (int k = 0; k < count; k++) {
        snprintf(texts[k], HEAD, format, pe_level_name(pe_stability_level(c->levels, k)));
        heads[k] = (pe_column){.head = texts[k]};
    }
}

static void write_orders(pe_page *page, const pe_compare *c, int levels)
{
    char      texts[PE_MOST_LEVELS][HEAD];
    pe_column heads[TAU + PE_MOST_LEVELS] = {{.head = "at"},           {"order", NULL, PE_WIDE | PE_NAMES, 0},
                                             {.head = "settled"},      {.head = "tied"},
                                             {.head = "still moving"}, {.head = "crossed"}};
    pe_table  t;
    int       row = 0;
    name_levels(heads + TAU, texts, c, levels - 1, "tau, %s");
    if (pe_table_open(&t, heads, TAU + levels - 1, PE_ORDERS_SHOWN, NULL))
        return;
    for (int which = 0; which < PE_ORDERS_SHOWN; which++)
        if (order_of(c, which))
            put_order(&t, row++, c, which);
    t.row_count = row;
    pe_html_table(page->to, &t, "", 1);
    pe_table_free(&t);
}

static int is_doubtful(const pe_order_pair *p)
{
    return p->reason != NULL;
}

static int count_doubtful(const pe_order *o)
{
    int count = 0;
    for (int i = 0; o && i < o->pair_count; i++)
        count += is_doubtful(&o->pairs[i]);
    return count;
}

static void put_pair(pe_table *t, int row, const pe_compare *c, int which, const pe_order_pair *p)
{
    put_place(t, row, PLACE, c, which);
    pe_table_text(t, row, BETTER, c->outcomes[p->better].label);
    pe_table_text(t, row, WORSE, c->outcomes[p->worse].label);
    pe_table_text(t, row, WHY, p->reason);
    for (int k = 0; k < order_of(c, which)->levels; k++)
        pe_table_number(t, row, DIFFERENCE + k, "%+.3f", p->difference[k]);
}

static void write_pairs(pe_page *page, const pe_compare *c, int levels, int rows)
{
    char      texts[PE_MOST_LEVELS][HEAD];
    pe_column heads[DIFFERENCE + PE_MOST_LEVELS] = {{.head = "at"},
                                                    {"better", NULL, PE_TEXT | PE_NAMES, 0},
                                                    {"worse", NULL, PE_TEXT | PE_NAMES, 0},
                                                    {"why", NULL, PE_TEXT, 0}};
    pe_table  t;
    int       row = 0;
    name_levels(heads + DIFFERENCE, texts, c, levels, "%s");
    if (pe_table_open(&t, heads, DIFFERENCE + levels, rows, NULL))
        return;
    for (int which = 0; which < PE_ORDERS_SHOWN; which++)
        for (int i = 0; order_of(c, which) && i < order_of(c, which)->pair_count; i++)
            if (is_doubtful(&order_of(c, which)->pairs[i]))
                put_pair(&t, row++, c, which, &order_of(c, which)->pairs[i]);
    pe_html_table(page->to, &t, "", 1);
    pe_table_free(&t);
}

static void write_rates(pe_page *page, const pe_compare *c)
{
    const pe_trials *t = c->trials;
    char             texts[PE_MOST_RATES][HEAD];
    pe_column        heads[2 + PE_MOST_RATES] = {{"encoding", NULL, PE_TEXT, 0}};
    pe_table         table;
    for (int r = 0; r < t->rate_count; r++) {
        snprintf(texts[r], HEAD, "%g", t->rates[r]);
        heads[1 + r] = (pe_column){.head = texts[r]};
    }
    heads[1 + t->rate_count] = (pe_column){"chosen", NULL, PE_TEXT, 0};
    if (pe_table_open(&table, heads, 2 + t->rate_count, c->order_count, NULL))
        return;
    for (int row = 0; row < c->order_count; row++) {
        const int i = c->order[PE_AT_L][row], edge = pe_trial_edge(t, i);
        pe_table_text(&table, row, 0, c->outcomes[i].label);
        for (int r = 0; r < t->rate_count; r++)
            pe_table_number(&table, row, 1 + r, "%.3f", pe_trial_loss(t, i, r));
        if (t->chosen[i] >= 0)
            pe_table_set(&table, row, 1 + t->rate_count, "%g%s", t->rates[t->chosen[i]],
                         edge < 0   ? "\nthe lowest tried"
                         : edge > 0 ? "\nthe highest tried"
                                    : "");
    }
    pe_html_part(page, "rates");
    pe_html_table(page->to, &table, "", 1);
    pe_table_free(&table);
}

void pe_report_settled(pe_page *page, const pe_compare *c)
{
    const pe_order *at_L = order_of(c, PE_ORDER_AT_L);
    if (at_L) {
        const int doubtful = count_doubtful(at_L) + count_doubtful(order_of(c, PE_ORDER_FURTHEST));
        pe_html_set(page, "doubtful", "%d", doubtful);
        pe_html_part(page, "settled");
        write_orders(page, c, at_L->levels);
        pe_html_part(page, "states");
        if (doubtful) {
            pe_html_part(page, "pairs");
            write_pairs(page, c, at_L->levels, doubtful);
            pe_html_part(page, "pairs end");
        }
    }
    if (c->trials->outcomes)
        write_rates(page, c);
}

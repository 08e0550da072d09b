/* SPDX-License-Identifier: MIT */
/*
 * report_cards.c: a card per encoding: what it is, what it learned, what was measured of it
 *
 * Formula and papers come from the registry, settings and pictures from the trained model, numbers from the
 * same outcomes as the tables. An encoding of two parts (rope+alibi) has the formulas of both.
 */
#include "train/report/report.h"

#include <math.h>
#include <string.h>

#define BLIND 1e-5 /* of pe_outcome.permuted: as check 1 has it */

/* What it is. */
static void write_part(pe_page *page, const posenc_encoding_info *info)
{
    pe_html_set(page, "title", "%s", info->title);
    pe_html_set(page, "place", "%s", posenc_place_name(info->place));
    pe_html_set(page, "beyond", "%s", info->beyond);
    pe_html_set(page, "models", "%s", info->models ? info->models : "");
    pe_html_part(page, "card formula");
    pe_mathml_write(page->to, info->formula);
    pe_html_part(page, "card place");
    if (info->paper && *info->paper) {
        pe_html_part(page, "card paper");
        pe_html_paper(page->to, info->paper);
        fputs("</dd>\n", page->to);
    }
    pe_html_part(page, "card models");
}

/* ---------------------------------------------------------------- what was measured --------- */

/* Its loss in a bucket and its rank among all, "2 of 7", or "2 of 7, shared". */
static void set_loss(pe_page *page, const char *loss, const char *rank, const pe_compare *c,
                     const pe_outcome *o, int bucket)
{
    int shared = 0, ranked = 0;
    for (int i = 0; i < c->count; i++) {
        ranked += c->outcomes[i].rank[bucket] > 0;
        shared += c->outcomes[i].rank[bucket] == o->rank[bucket];
    }
    pe_html_set(page, loss, "%.3f", o->loss[bucket]);
    pe_html_set(page, rank, shared > 1 ? "rank %d of %d, shared" : "rank %d of %d", o->rank[bucket], ranked);
}

static void set_measured(pe_page *page, const pe_compare *c, const pe_outcome *o)
{
    char text[PE_LONGEST_SPEC + 64];
    pe_outcome_settings(text, o);
    pe_html_set(page, "settings", "%s", text);
    snprintf(text, sizeof text, "%lld numbers", (long long)o->runs[0].result.encoding_parameters);
    pe_html_set(page, "learns", "%s", o->runs[0].result.encoding_parameters ? text : "nothing");
    pe_html_set(page, "diverged", "%s", o->diverged ? "yes" : "");
    set_loss(page, "loss", "rank", c, o, PE_AT_L);
    set_loss(page, "loss_8", "rank_8", c, o, pe_stats_furthest(o->config.reach));
    pe_html_set(page, "class", "%s", o->verdict);
    pe_html_set(page, "ratio", "%.2f", o->ratio[pe_stats_furthest(o->config.reach)]);
    pe_html_set(page, "gain", "%+.3f", o->gain.value);
    pe_html_set(page, "gain_range", "%+.3f to %+.3f", o->gain.low, o->gain.high);
    if (o->diverged || !isfinite(o->gain.value))
        pe_html_set(page, "gain", "%s", "");
}

static void write_tasks(FILE *to, const pe_compare *c, const pe_outcome *o)
{
    for (int i = 0; c->suite && i < c->suite->task_count * c->suite->label_count; i++) {
        const pe_cell *cell = &c->suite->cells[i];
        if (!cell->is_complete || strcmp(cell->label, o->label) != 0)
            continue;
        pe_html_element(to, "dt translate=\"no\"", "%s", cell->task->name);
        fputs("<dd>", to);
        if (isfinite(cell->beyond))
            pe_html_element(to, "span", "%.2f right at L, %.2f beyond", cell->accuracy[PE_TASK_L].value,
                            cell->beyond);
        else
            pe_html_element(to, "span", "%.2f right at L", cell->accuracy[PE_TASK_L].value);
        fputs("</dd>\n", to);
    }
}

/* ---------------------------------------------------------------- cards --------------------- */

/* Returns how many. */
static int write_pictures(FILE *to, const pe_gallery *g, const pe_outcome *o, int index)
{
    int count = 0;
    for (int i = 0; i < g->count; i++)
        if (g->items[i].outcome == index) {
            fputs("<figure>\n", to);
            pe_gallery_draw(to, &g->items[i]);
            pe_html_element(to, "figcaption", "%s",
                            o->untrained_beyond
                                ? "Beyond the line at L are rows that no training step ever reached."
                                : "");
            fputs("</figure>\n", to);
            count++;
        }
    return count;
}

static void write_card(pe_page *page, const pe_compare *c, const pe_gallery *g, int index)
{
    const pe_outcome *o = &c->outcomes[index];
    pe_html_set(page, "label", "%s", o->label);
    pe_html_part(page, "card");
    for (int k = 0; k < o->part_count; k++)
        write_part(page, o->parts[k]);
    set_measured(page, c, o);
    pe_html_part(page, "card numbers");
    write_tasks(page->to, c, o);
    pe_html_part(page, "card pictures");
    const int is_bare = !write_pictures(page->to, g, o, index) && !o->diverged;
    pe_html_set(page, "blind", "%s", is_bare && o->permuted < BLIND ? "yes" : "");
    pe_html_set(page, "undrawn", "%s", is_bare && !(o->permuted < BLIND) ? "yes" : "");
    pe_html_part(page, "card end");
}

void pe_report_cards(pe_page *page, const pe_compare *c, const pe_gallery *g)
{
    pe_html_part(page, "cards");
    for (int i = 0; i < c->order_count; i++)
        write_card(page, c, g, c->order[PE_AT_L][i]);
    for (int i = 0; i < c->absent_count; i++) {
        pe_html_set(page, "label", "%s", c->absent[i].label);
        pe_html_set(page, "reason", "%s", c->absent[i].reason);
        pe_html_part(page, "absent");
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * report_cards.c: a card per encoding: what it is, what it learned, what was measured of it
 *
 * Formula and papers come from the registry, settings and pictures from the trained model, numbers from the
 * same outcomes as the tables. An encoding of two parts (rope+alibi) has the formulas of both.
 */
#include "train/report.h"

#include "train/html.h"
#include "train/mathml.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLIND 1e-5 /* of pe_outcome.permuted: as check 1 has it */

/* A row of the card's list: in `tag`, and small behind it, unless NULL. */
static void fact(FILE *to, const char *words, const char *tag, const char *value, const char *small)
{
    pe_html_element(to, "dt", "%s", words);
    fputs("<dd>", to);
    pe_html_element(to, tag, "%s", value);
    if (small) {
        fputs(" ", to);
        pe_html_element(to, "small", "%s", small);
    }
    fputs("</dd>\n", to);
}

/* ---------------------------------------------------------------- what it is ---------------- */

static void papers(FILE *to, const posenc_encoding_info *info)
{
    if (info->paper && *info->paper) {
        pe_html_element(to, "dt", "%s", "paper");
        fputs("<dd>", to);
        pe_report_paper(to, info->paper);
        fputs("</dd>\n", to);
    }
    if (info->models && *info->models)
        fact(to, "in use", "cite", info->models, NULL);
}

static void part(FILE *to, const posenc_encoding_info *info)
{
    pe_html_element(to, "h4", "%s", info->title);
    fputs("<div class=\"formula\">\n", to);
    pe_mathml_write(to, info->formula);
    fputs("</div>\n<dl class=\"card\">\n", to);
    fact(to, "place", "span", posenc_place_name(info->place), NULL);
    papers(to, info);
    fputs("</dl>\n", to);
}

static void settings(FILE *to, const pe_outcome *o)
{
    char text[PE_LONGEST_SPEC + 64];
    pe_outcome_settings(text, o);
    fact(to, "settings", "code", text, NULL);
    snprintf(text, sizeof text, "%lld numbers", (long long)o->runs[0].encoding_parameters);
    fact(to, "learns", "span", o->runs[0].encoding_parameters ? text : "nothing", NULL);
}

/* ---------------------------------------------------------------- what was measured --------- */

enum { TEXT = 64 };

/* With the rank among all, "2 of 7", or "2 of 7, shared". */
static void loss(FILE *to, const pe_compare *c, const pe_outcome *o, const char *where, int bucket)
{
    char text[TEXT], rank[TEXT];
    int  shared = 0, ranked = 0;
    for (int i = 0; i < c->count; i++) {
        ranked += c->outcomes[i].rank[bucket] > 0;
        shared += c->outcomes[i].rank[bucket] == o->rank[bucket];
    }
    snprintf(text, TEXT, "%.3f nats per byte", o->loss[bucket]);
    snprintf(rank, TEXT, "rank %d of %d%s", o->rank[bucket], ranked, shared > 1 ? ", shared" : "");
    fact(to, where, "span", text, rank);
}

static void on_text(FILE *to, const pe_compare *c, const pe_outcome *o)
{
    char value[TEXT], text[TEXT];
    loss(to, c, o, "loss at L", PE_AT_L);
    loss(to, c, o, "loss at 8 L", PE_AT_8L);
    snprintf(text, TEXT, "%.2f times the loss at L", o->ratio[PE_AT_8L]);
    fact(to, "beyond L", "span", o->verdict, text);
    snprintf(value, TEXT, "%+.3f", o->gain.value);
    snprintf(text, TEXT, "%+.3f to %+.3f", o->gain.low, o->gain.high);
    if (isfinite(o->gain.value))
        fact(to, "gain of 8 L over L", "span", value, text);
}

static void on_tasks(FILE *to, const pe_compare *c, const pe_outcome *o)
{
    const pe_suite *s   = c->suite;
    int             row = 0;
    while (s && row < s->label_count && strcmp(s->labels[row], o->label) != 0)
        row++;
    for (int t = 0; s && row < s->label_count && t < s->task_count; t++) {
        const pe_cell *cell = pe_suite_cell(s, t, row);
        if (!cell->is_complete)
            continue;
        pe_html_element(to, "dt translate=\"no\"", "%s", cell->task->name);
        fputs("<dd>", to);
        pe_html_element(to, "span",
                        isfinite(cell->beyond) ? "%.2f right at L, %.2f beyond" : "%.2f right at L",
                        cell->accuracy[PE_TASK_L].value, cell->beyond);
        fputs("</dd>\n", to);
    }
}

/* ---------------------------------------------------------------- cards --------------------- */

static void pictures(FILE *to, const pe_gallery *g, const pe_outcome *o, int index)
{
    int drawn = 0;
    for (int i = 0; i < g->count; i++)
        if (g->items[i].outcome == index) {
            pe_report_figure(to, &g->items[i],
                             o->untrained_beyond
                                 ? "Beyond the line at L are rows that no training step ever reached."
                                 : "");
            drawn = 1;
        }
    if (!drawn && !o->diverged)
        pe_html_element(to, "p class=\"note\"", "%s",
                        o->permuted < BLIND
                            ? "Nothing about positions enters this model, so there is nothing to draw."
                            : "There is no picture of it: what it adds is neither rows, nor "
                              "turns, nor a bias that depends on positions alone.");
}

static void card(FILE *to, const pe_compare *c, const pe_gallery *g, int index)
{
    const pe_outcome *o = &c->outcomes[index];
    fputs("<article class=\"card\">\n", to);
    pe_html_element(to, "h3 translate=\"no\"", "%s", o->label);
    for (int place = 0; place < POSENC_PLACES; place++)
        if (posenc_encoding_part(o->e, (posenc_place)place))
            part(to, posenc_encoding_part(o->e, (posenc_place)place));
    fputs("<dl class=\"card\">\n", to);
    settings(to, o);
    if (!o->diverged)
        on_text(to, c, o);
    on_tasks(to, c, o);
    fputs("</dl>\n", to);
    if (o->diverged)
        pe_html_element(to, "p class=\"FAILED\"", "%s",
                        "Its training diverged: a loss was no longer a finite number.");
    pictures(to, g, o, index);
    fputs("</article>\n", to);
}

void pe_report_cards(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    int *order = malloc((size_t)c->count * sizeof *order);
    pe_html_element(to, "h2 id=\"encodings\"", "%s", "The encodings, as they came out of training");
    for (int i = 0, n = order ? pe_outcomes_order(c, order) : 0; i < n; i++)
        card(to, c, g, order[i]);
    free(order);
    for (int i = 0; i < c->absent_count; i++) {
        pe_html_element(to, "h3 translate=\"no\"", "%s", c->absent[i].label);
        pe_html_element(to, "p", "It does not apply to these models: %s.", c->absent[i].reason);
    }
}

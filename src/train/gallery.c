/* SPDX-License-Identifier: MIT */
/*
 * gallery.c: loss against position, training curves, and what each encoding learned
 *
 * Positions start at L/16: before that no encoding knows anything yet, and the first bytes would stretch the scale.
 * Encodings are drawn from the parameters of the first seed's first layer after training, so an encoding that learns
 * is seen as it became. Twice the training length is shown, with a line at L: what lies beyond was never trained.
 */
#include "train/gallery.h"

#include "train/fail.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PART = 16, PICTURE_LENGTHS = 2, GENERAL = 2 };

static posenc_status no_memory(posenc_error *err)
{
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the pictures");
}

/* ---------------------------------------------------------------- the two that compare ------ */

static void set_curves(pe_gallery *g, const pe_compare *c, const int *order, int count)
{
    const int64_t L = c->config.preset.L, first = L / FIRST_PART, n = PE_REACH * L - first;
    for (int64_t p = 0; p < PE_REACH * L || p < c->config.preset.steps; p++)
        g->x[p] = (double)(p + 1);
    for (int i = 0; i < count; i++) {
        const pe_outcome *o  = &c->outcomes[order[i]];
        g->curves[i]         = (pe_curve){.name = o->label, .x = g->x + first, .y = o->curve + first,
                                          .low = o->low ? o->low + first : NULL,
                                          .high = o->high ? o->high + first : NULL, .n = n};
        g->curves[count + i] = (pe_curve){.name = o->label, .x = g->x, .y = o->training, .n = c->config.preset.steps};
    }
}

static void set_general(pe_gallery *g, const pe_compare *c, int count)
{
    const pe_preset *p = &c->config.preset;
    snprintf(g->title, sizeof g->title, "Loss by position, trained at L = %lld%s", (long long)p->L,
             p->seeds > 1 ? " (band: range over seeds)" : "");
    snprintf(g->mark_label, sizeof g->mark_label, "L = %lld", (long long)p->L);
    g->mark     = (pe_mark){(double)p->L, g->mark_label};
    g->loss     = (pe_figure){.kind = PE_CURVES, .title = g->title, .x_label = "position in the window (bytes, log scale)",
                              .y_label = "loss (nats per byte)", .log_x = 1, .curves = g->curves, .curve_count = count,
                              .marks = &g->mark, .mark_count = 1};
    g->training = (pe_figure){.kind = PE_CURVES, .title = "Training: loss of the batches, smoothed",
                              .x_label = "step", .y_label = "loss (nats per byte)", .curves = g->curves + count,
                              .curve_count = count};
    g->items[0] = (pe_exhibit){.name = "loss", .outcome = -1, .figure = &g->loss};
    g->items[1] = (pe_exhibit){.name = "training", .outcome = -1, .figure = &g->training};
    g->count    = GENERAL;
}

/* ---------------------------------------------------------------- one encoding's ------------ */

/* "p03_t5_num_buckets_16__bias": whatever the label holds, a plain file name. */
static void name_exhibit(pe_exhibit *x, const pe_outcome *o, int number, const char *kind)
{
    char   slug[32];
    size_t n = 0;
    for (; o->label[n] && n < sizeof slug - 1; n++)
        slug[n] = (char)(isalnum((unsigned char)o->label[n]) ? o->label[n] : '_');
    slug[n] = 0;
    snprintf(x->name, sizeof x->name, "p%02d_%s_%s", number + 1, slug, kind);
}

/* The tensors of one layer's parameters, as the library takes them; NULL without memory. */
static posenc_tensor *layer_params(const pe_outcome *o, int layer)
{
    const int      n      = posenc_param_count(o->e);
    posenc_tensor *params = calloc((size_t)n + 1, sizeof *params);
    for (int i = 0; params && i < n; i++)
        params[i] = o->runs[0].params[layer * n + i].tensor;
    return params;
}

/* Do the parameters differ from what they were born as? */
static int learns(const pe_outcome *o)
{
    for (int i = 0; i < posenc_param_count(o->e); i++)
        if (posenc_param_trainable(o->e, i))
            return 1;
    return 0;
}

static posenc_status add_picture(pe_gallery *g, const pe_compare *c, int index, const pe_offer *offer, posenc_error *err)
{
    const pe_outcome *o = &c->outcomes[index];
    const pe_preset  *p = &c->config.preset;
    pe_exhibit       *x = &g->items[g->count];
    char              origin[96];
    pe_picture_data   data = {.length = PICTURE_LENGTHS * p->L, .causal = 1, .mark = (double)p->L,
                              .mark_label = g->mark_label};
    data.dims = (posenc_dims){.B = 1, .H = p->heads, .D = p->d_model / p->heads, .Lq = PE_REACH * p->L,
                              .Lk = PE_REACH * p->L, .d_model = p->d_model, .L = p->L};
    snprintf(origin, sizeof origin, "after %lld training steps, seed 1%s", (long long)p->steps,
             offer->place == POSENC_INPUT ? "" : ", first layer");
    data.origin           = learns(o) ? origin : NULL;
    posenc_tensor *params = layer_params(o, 0);
    data.params           = params;
    *x                    = (pe_exhibit){.outcome = index};
    name_exhibit(x, o, index, offer->kind);
    const posenc_status status = params ? pe_picture_create(&x->picture, o->e, offer, &data, err) : no_memory(err);
    free(params);
    if (status)
        return status;
    x->figure = pe_picture_figure(x->picture);
    g->count++;
    return POSENC_OK;
}

static posenc_status add_pictures(pe_gallery *g, const pe_compare *c, int index, posenc_error *err)
{
    pe_offer      offers[PE_MOST_OFFERS];
    posenc_status status = POSENC_OK;
    const int     count  = pe_picture_offers(c->outcomes[index].e, offers);
    for (int i = 0; i < count && !status; i++)
        status = add_picture(g, c, index, &offers[i], err);
    return status;
}

/* ---------------------------------------------------------------- all ----------------------- */

static posenc_status fill(pe_gallery *g, const pe_compare *c, const int *order, int count, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    set_curves(g, c, order, count);
    set_general(g, c, count);
    for (int i = 0; i < count && !status; i++)
        if (!c->outcomes[order[i]].diverged)
            status = add_pictures(g, c, order[i], err);
    for (int i = 0; i < g->count && !status; i++)
        status = pe_plot_svg(g->items[i].figure, g->items[i].name, &g->items[i].svg, err);
    return status;
}

posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err)
{
    const int64_t longest = PE_REACH * c->config.preset.L + c->config.preset.steps;
    int          *order   = malloc((size_t)c->count * sizeof *order);
    *g                    = (pe_gallery){0};
    g->items              = calloc((size_t)(GENERAL + c->count * PE_MOST_OFFERS), sizeof *g->items);
    g->curves             = calloc((size_t)(2 * c->count), sizeof *g->curves);
    g->x                  = malloc((size_t)longest * sizeof *g->x);
    posenc_status status  = no_memory(err);
    if (order && g->items && g->curves && g->x)
        status = fill(g, c, order, pe_outcomes_order(c, order), err);
    free(order);
    if (status)
        pe_gallery_free(g);
    return status;
}

void pe_gallery_free(pe_gallery *g)
{
    for (int i = 0; i < g->count; i++) {
        free(g->items[i].svg);
        pe_picture_free(g->items[i].picture);
    }
    free(g->items);
    free(g->curves);
    free(g->x);
    *g = (pe_gallery){0};
}

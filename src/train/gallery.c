/* SPDX-License-Identifier: MIT */
/*
 * gallery.c: the pictures of a comparison: curves over all encodings, and what each encoding learned
 *
 * Encodings are drawn from the parameters of the first seed's first layer after training, so an encoding that
 * learns is seen as it became. Twice the training length is shown, with a line at L: what lies beyond was
 * never trained.
 */
#include "train/gallery.h"

#include "train/fail.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURE_LENGTHS = 2 };

static posenc_status no_memory(posenc_error *err)
{
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the pictures");
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
        params[i] = o->runs[0].params[layer * n + i];
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

static posenc_status add_picture(pe_gallery *g, const pe_compare *c, int index, const pe_offer *offer,
                                 posenc_error *err)
{
    const pe_outcome *o = &c->outcomes[index];
    const pe_preset  *p = &c->config.preset;
    pe_exhibit       *x = &g->items[g->count];
    char              origin[96];
    pe_picture_data   data = {.length     = PICTURE_LENGTHS * p->L,
                              .causal     = !c->config.bidirectional,
                              .mark       = (double)p->L,
                              .mark_label = g->mark_label};
    data.dims              = (posenc_dims){.B       = 1,
                                           .H       = p->heads,
                                           .D       = p->d_model / p->heads,
                                           .Lq      = PE_REACH * p->L,
                                           .Lk      = PE_REACH * p->L,
                                           .d_model = p->d_model,
                                           .L       = p->L};
    snprintf(origin, sizeof origin, "after %lld training steps, seed 1%s", (long long)p->steps,
             offer->place == POSENC_INPUT ? "" : ", first layer");
    data.origin           = learns(o) ? origin : NULL;
    posenc_tensor *params = layer_params(o, 0);
    data.params           = params;
    *x                    = (pe_exhibit){.outcome = index};
    name_exhibit(x, o, index, offer->kind);
    const posenc_status status =
        params ? pe_picture_create(&x->picture, o->e, offer, &data, err) : no_memory(err);
    free(params);
    if (status)
        return status == POSENC_UNSUPPORTED ? POSENC_OK
                                            : status; /* heads that differ: a report without this picture */
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
        if (offers[i].in_report)
            status = add_picture(g, c, index, &offers[i], err);
    return status;
}

/* ---------------------------------------------------------------- all ----------------------- */

static posenc_status fill(pe_gallery *g, const pe_compare *c, const int *order, int count, posenc_error *err)
{
    posenc_status status = pe_gallery_lines(g, c, order, count, err);
    for (int i = 0; i < count && !status; i++)
        if (!c->outcomes[order[i]].diverged)
            status = add_pictures(g, c, order[i], err);
    for (int i = 0; i < g->count && !status; i++)
        status = pe_plot_svg(g->items[i].figure, g->items[i].name, &g->items[i].svg, err);
    return status;
}

posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err)
{
    int *order           = malloc((size_t)c->count * sizeof *order);
    *g                   = (pe_gallery){0};
    g->items             = calloc((size_t)(PE_GENERAL + c->count * PE_MOST_OFFERS), sizeof *g->items);
    posenc_status status = no_memory(err);
    if (order && g->items)
        status = fill(g, c, order, pe_outcomes_order(c, order), err);
    free(order);
    if (status)
        pe_gallery_free(g);
    return status;
}

const pe_exhibit *pe_gallery_find(const pe_gallery *g, const char *name)
{
    for (int i = 0; i < g->count; i++)
        if (!strcmp(g->items[i].name, name))
            return &g->items[i];
    return NULL;
}

void pe_gallery_free(pe_gallery *g)
{
    for (int i = 0; i < g->count; i++) {
        free(g->items[i].svg);
        pe_picture_free(g->items[i].picture);
    }
    free(g->items);
    free(g->curves);
    free(g->numbers);
    *g = (pe_gallery){0};
}

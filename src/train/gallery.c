/* SPDX-License-Identifier: MIT */
/*
 * gallery.c: loss against position, training curves, and what each encoding learned
 *
 * Positions start at L/16: before that no encoding knows anything yet, and the first bytes would stretch the scale.
 * Beyond L the smoothing widens with the position, as the axis does. (Numbers that are written elsewhere do not.)
 * Hidden bytes are measured at five lengths: a staircase, which nothing smooths.
 * Encodings are drawn from the parameters of the first seed's first layer after training, so an encoding that learns
 * is seen as it became. Twice the training length is shown, with a line at L: what lies beyond was never trained.
 */
#include "train/gallery.h"

#include "train/fail.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PART = 16, STEP_PART = 48, SMOOTH_PART = 8, MOST_STEPS = 200, PICTURE_LENGTHS = 2, GENERAL = 2 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static posenc_status no_memory(posenc_error *err)
{
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the pictures");
}

/* ---------------------------------------------------------------- the two that compare ------ */

/* Positions that are drawn: all at first, then ever fewer, evenly on a logarithmic axis. Returns their count. */
static int64_t choose_positions(int64_t *positions, int64_t L)
{
    int64_t n = 0;
    for (int64_t p = larger(1, L / FIRST_PART); p < PE_REACH * L - 1; p += larger(1, p / STEP_PART))
        positions[n++] = p;
    positions[n++] = PE_REACH * L - 1;
    return n;
}

/* At each chosen position the mean over a window of an eighth of it, but of L/8 at least, as the curve has already:
   on a logarithmic axis that is the same width everywhere. Returns where the numbers stand. */
static double *thin(pe_gallery *g, const double *curve, const int64_t *positions, int64_t n,
                    const pe_run_config *c)
{
    const int64_t L = c->L;

    double *y = g->next;
    g->next += n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = positions[i], half = p > L && !c->bidirectional ? p / 2 / SMOOTH_PART : 0;
        const int64_t end = p + half + 1 > PE_REACH * L ? PE_REACH * L : p + half + 1;
        y[i]              = pe_mean(curve + p - half, end - (p - half));
    }
    return y;
}

static void set_loss_curves(pe_gallery *g, const pe_compare *c, const int *order, int count,
                            int64_t *positions)
{
    const int64_t L = c->config.preset.L, n = choose_positions(positions, L);
    double       *x = g->next;
    g->next += n;
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(positions[i] + 1);
    for (int i = 0; i < count; i++) {
        const pe_outcome *o = &c->outcomes[order[i]];
        g->curves[i] =
            (pe_curve){.name = o->label, .x = x, .y = thin(g, o->curve, positions, n, &o->config), .n = n};
        if (o->low && o->high) {
            g->curves[i].low  = thin(g, o->low, positions, n, &o->config);
            g->curves[i].high = thin(g, o->high, positions, n, &o->config);
        }
    }
}

/* Step number i of n, spread evenly over all. */
static int64_t step_at(int64_t i, int64_t n, int64_t steps)
{
    return n > 1 ? i * (steps - 1) / (n - 1) : 0;
}

/* At most MOST_STEPS points, the last step among them: the curve is smooth already. */
static void set_training_curves(pe_gallery *g, const pe_compare *c, const int *order, int count)
{
    const int64_t steps = c->config.preset.steps, n = steps < MOST_STEPS ? steps : MOST_STEPS;
    double       *x = g->next;
    g->next += n;
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(step_at(i, n, steps) + 1);
    for (int k = 0; k < count; k++) {
        const pe_outcome *o  = &c->outcomes[order[k]];
        g->curves[count + k] = (pe_curve){.name = o->label, .x = x, .y = g->next, .n = n};
        for (int64_t i = 0; i < n; i++)
            *g->next++ = o->training[step_at(i, n, steps)];
    }
}

static void set_general(pe_gallery *g, const pe_compare *c, int count)
{
    const pe_preset *p      = &c->config.preset;
    const int        masked = c->config.bidirectional;
    snprintf(g->title, sizeof g->title, "Loss by %s, trained at L = %lld%s", masked ? "length" : "position",
             (long long)p->L, p->seeds > 1 ? " (band: range over seeds)" : "");
    snprintf(g->mark_label, sizeof g->mark_label, "L = %lld", (long long)p->L);
    g->mark     = (pe_mark){(double)p->L, g->mark_label};
    g->loss     = (pe_figure){.kind        = PE_CURVES,
                              .title       = g->title,
                              .x_label     = masked ? "length that is read at once (bytes, log scale)"
                                                    : "position in the window (bytes, log scale)",
                              .y_label     = "loss (nats per byte)",
                              .log_x       = 1,
                              .curves      = g->curves,
                              .curve_count = count,
                              .marks       = &g->mark,
                              .mark_count  = 1};
    g->training = (pe_figure){.kind        = PE_CURVES,
                              .title       = "Training: loss of the batches, smoothed",
                              .x_label     = "step",
                              .y_label     = "loss (nats per byte)",
                              .curves      = g->curves + count,
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
    posenc_status status    = POSENC_OK;
    int64_t      *positions = malloc((size_t)(PE_REACH * c->config.preset.L) * sizeof *positions);
    if (!positions)
        return no_memory(err);
    set_loss_curves(g, c, order, count, positions);
    set_training_curves(g, c, order, count);
    set_general(g, c, count);
    free(positions);
    for (int i = 0; i < count && !status; i++)
        if (!c->outcomes[order[i]].diverged)
            status = add_pictures(g, c, order[i], err);
    for (int i = 0; i < g->count && !status; i++)
        status = pe_plot_svg(g->items[i].figure, g->items[i].name, &g->items[i].svg, err);
    return status;
}

posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err)
{
    /* loss: x, then y, low and high of each; training: x, then y of each */
    const int64_t numbers = (1 + 3 * c->count) * PE_REACH * c->config.preset.L + (1 + c->count) * MOST_STEPS;
    int          *order   = malloc((size_t)c->count * sizeof *order);
    *g                    = (pe_gallery){0};
    g->items              = calloc((size_t)(GENERAL + c->count * PE_MOST_OFFERS), sizeof *g->items);
    g->curves             = calloc((size_t)(2 * c->count), sizeof *g->curves);
    g->numbers            = malloc((size_t)numbers * sizeof *g->numbers);
    g->next               = g->numbers;
    posenc_status status  = no_memory(err);
    if (order && g->items && g->curves && g->numbers)
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
    free(g->numbers);
    *g = (pe_gallery){0};
}

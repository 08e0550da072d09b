/* SPDX-License-Identifier: MIT */
/*
 * gallery.c: the pictures of a comparison: curves over all encodings, and what each encoding learned
 *
 * Encodings are drawn from the parameters of the first seed's first layer after training, so an encoding that
 * learns is seen as it became. Twice the training length is shown, with a line at L: what lies beyond was
 * never trained.
 *
 * By position   starts at L/16: before that no encoding knows anything yet, and the first bytes would stretch
 *               the scale. Beyond L the smoothing widens with the position, as the axis does. (Numbers that
 *               are written elsewhere do not.) Hidden bytes are measured at five lengths: a staircase, which
 *               nothing smooths.
 * By length     the means of the table, each at the end of its range. The band is the paired interval of the
 *               difference from the encoding that is best at L: where two bands do not touch in that sense is
 *               what the ranks say. The interval of a loss by itself is some ten times as wide, as texts
 *               differ, and would hide everything.
 * Attention     the share of the weight that lies within a distance, of queries at the end of R L.
 * On a page     each drawing of gnuplot carries the same script of 30 KB. It is written once, and an empty
 *               element stands where it was, because that script counts the elements. It also takes the mouse
 *               wheel and the arrow keys, with which people scroll: a listener before it hands them back.
 */
#include "train/report/report.h"

#include "base/status.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURE_LENGTHS = 2, FIRST_PART = 16, STEP_PART = 48, SMOOTH_PART = 8, MOST_STEPS = 200 };

/* ---------------------------------------------------------------- curves of all ------------- */

/* Space for n numbers of a curve. */
static double *next_numbers(pe_gallery *g, int64_t n)
{
    double *space = g->next;
    g->next += n;
    return space;
}

/* A label about bytes, or about tokens where they are compared: then the gallery's own. */
static const char *label_of(pe_gallery *g, const pe_compare *c, const char *text)
{
    char *told = c->text.vocabulary && g->label_count < PE_LABELS ? pe_words_retell(c, text) : NULL;
    if (told)
        g->labels[g->label_count++] = told;
    return told ? told : text;
}

/* The next exhibit, a figure with a curve for each encoding, for the caller to fill. */
static pe_figure *add_figure(pe_gallery *g, pe_curve **curves, const char *name, const pe_compare *c)
{
    const int  count   = c->order_count;
    pe_figure *f       = &g->general[g->count];
    *curves            = g->curves + g->count * count;
    *f                 = (pe_figure){.kind = PE_CURVES, .curves = *curves, .curve_count = count, .narrow = 1};
    f->y_label         = label_of(g, c, "loss (nats per byte)");
    g->items[g->count] = (pe_exhibit){.outcome = -1, .figure = f};
    snprintf(g->items[g->count].name, PE_GALLERY_NAME, "%s", name);
    g->count++;
    return f;
}

static void set_mark(pe_gallery *g, pe_figure *f)
{
    f->log_x      = 1;
    f->marks      = &g->mark;
    f->mark_count = 1;
}

/* ---------------------------------------------------------------- by position --------------- */

/* Positions that are drawn: all at first, then ever fewer, evenly on a logarithmic axis. Returns their
   count. */
static int64_t choose_positions(int64_t *positions, int64_t L, int64_t far)
{
    int64_t n = 0;
    for (int64_t p = L < FIRST_PART ? 1 : L / FIRST_PART; p < far - 1; p += p < STEP_PART ? 1 : p / STEP_PART)
        positions[n++] = p;
    positions[n++] = far - 1;
    return n;
}

/* At each chosen position the mean over a window of an eighth of it, but of L/8 at least, as the curve has
   already: on a logarithmic axis that is the same width everywhere. Returns where the numbers stand. */
static double *thin(pe_gallery *g, const double *curve, const int64_t *positions, int64_t n,
                    const pe_run_config *c)
{
    const int64_t L = c->L, far = c->reach * L;
    double       *y = next_numbers(g, n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = positions[i], half = p > L && !c->bidirectional ? p / 2 / SMOOTH_PART : 0;
        const int64_t end = p + half + 1 > far ? far : p + half + 1;
        y[i]              = pe_stats_mean(curve + p - half, end - (p - half));
    }
    return y;
}

/* A band may be many times as wide as the range of all losses, and would press them together: half as much as
   they span shows beyond them, and no loss below 0. */
static void bound_bands(pe_figure *f)
{
    double least = INFINITY, most = -INFINITY, low = INFINITY, high = -INFINITY;
    for (int k = 0; k < f->curve_count; k++) {
        const pe_curve *c = &f->curves[k];
        for (int64_t i = 0; i < c->n; i++) {
            if (!isfinite(c->y[i]))
                continue;
            least = fmin(least, c->y[i]);
            most  = fmax(most, c->y[i]);
            low   = fmin(low, c->low ? c->low[i] : c->y[i]);
            high  = fmax(high, c->high ? c->high[i] : c->y[i]);
        }
    }
    const double beyond = (most - least) / 2;
    if (!(least < most) || (low >= fmax(0, least - beyond) && high <= most + beyond))
        return;
    f->low  = fmax(0, fmax(low, least - beyond));
    f->high = fmin(high, most + beyond);
}

static void add_positions(pe_gallery *g, const pe_compare *c, const int64_t *positions, const double *x,
                          int64_t n)
{
    const pe_preset *p      = &c->config.preset;
    const int        masked = c->config.bidirectional;
    pe_curve        *curves;
    pe_figure       *f = add_figure(g, &curves, "loss", c);
    snprintf(g->title, sizeof g->title, "Loss by %s, trained at L = %lld%s", masked ? "length" : "position",
             (long long)p->L, p->seeds > 1 ? " (band: range over seeds)" : "");
    f->title   = g->title;
    f->x_label = label_of(g, c,
                          masked ? "length that is read at once (bytes, log scale)"
                                 : "position in the window (bytes, log scale)");
    set_mark(g, f);
    for (int i = 0; i < c->order_count; i++) {
        const pe_outcome *o     = &c->outcomes[c->order[PE_AT_L][i]];
        pe_curve         *curve = &curves[i];
        *curve =
            (pe_curve){.name = o->label, .x = x, .y = thin(g, o->curve, positions, n, &o->config), .n = n};
        if (o->low && o->high) {
            curve->low  = thin(g, o->low, positions, n, &o->config);
            curve->high = thin(g, o->high, positions, n, &o->config);
        }
    }
    bound_bands(f);
}

/* ---------------------------------------------------------------- by length ----------------- */

/* Each encoding's means and the bounds of its differences around them. */
static void add_lengths(pe_gallery *g, const pe_compare *c)
{
    const int  buckets = pe_stats_buckets(c->config.preset.reach);
    double    *x       = next_numbers(g, buckets);
    pe_curve  *curves;
    pe_figure *f = add_figure(g, &curves, "length", c);
    f->title     = "Loss by length, paired 95 % bands";
    f->x_label   = label_of(g, c, "end of the range of positions (bytes, log scale)");
    set_mark(g, f);
    for (int b = 0; b < buckets; b++)
        x[b] = (double)pe_stats_bucket_edge(c->config.preset.L, b + 1);
    for (int i = 0; i < c->order_count; i++) {
        const pe_outcome *o = &c->outcomes[c->order[PE_AT_L][i]];
        double           *y = next_numbers(g, buckets), *low = next_numbers(g, buckets),
               *high = next_numbers(g, buckets);
        for (int b = 0; b < buckets; b++) {
            const pe_interval d = o->difference[b];
            y[b]                = o->loss[b];
            low[b]              = isfinite(d.value) ? y[b] - (d.value - d.low) : y[b];
            high[b]             = isfinite(d.value) ? y[b] + (d.high - d.value) : y[b];
        }
        curves[i] = (pe_curve){.name = o->label, .x = x, .y = y, .low = low, .high = high, .n = buckets};
    }
    bound_bands(f);
}

/* ---------------------------------------------------------------- training ------------------ */

/* Step number i of n, spread evenly over all. */
static int64_t step_at(int64_t i, int64_t n, int64_t steps)
{
    return n > 1 ? i * (steps - 1) / (n - 1) : 0;
}

/* At most MOST_STEPS points, the last step among them: the curve is smooth already. */
static void add_training(pe_gallery *g, const pe_compare *c)
{
    const int64_t steps = c->config.preset.steps, n = steps < MOST_STEPS ? steps : MOST_STEPS;
    double       *x = next_numbers(g, n);
    pe_curve     *curves;
    pe_figure    *f = add_figure(g, &curves, "training", c);
    f->title        = "Training loss, smoothed";
    f->x_label      = "step";
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)(step_at(i, n, steps) + 1);
    for (int k = 0; k < c->order_count; k++) {
        const pe_outcome *o = &c->outcomes[c->order[PE_AT_L][k]];
        double           *y = next_numbers(g, n);
        curves[k]           = (pe_curve){.name = o->label, .x = x, .y = y, .n = n};
        for (int64_t i = 0; i < n; i++)
            y[i] = o->training[step_at(i, n, steps)];
    }
}

/* ---------------------------------------------------------------- attention ----------------- */

/* At each chosen distance the weight up to it. */
static double *share_within(pe_gallery *g, const double *weight, const int64_t *positions, int64_t n)
{
    double *y = next_numbers(g, n), sum = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        for (; at <= positions[i]; at++)
            sum += weight[at];
        y[i] = sum;
    }
    return y;
}

static int is_measured(const pe_outcome *o)
{
    return o->far && o->far_90 >= 0;
}

static void add_attention(pe_gallery *g, const pe_compare *c, const int64_t *positions, const double *x,
                          int64_t n)
{
    int measured = 0;
    for (int i = 0; i < c->order_count; i++)
        measured += is_measured(&c->outcomes[c->order[PE_AT_L][i]]);
    if (!measured)
        return;
    pe_curve  *curves;
    pe_figure *f   = add_figure(g, &curves, "attention", c);
    f->title       = "Attention weight within a distance";
    f->x_label     = label_of(g, c, "distance + 1 (bytes, log scale)");
    f->y_label     = "share of the weight";
    f->curve_count = 0;
    set_mark(g, f);
    for (int i = 0; i < c->order_count; i++) {
        const pe_outcome *o = &c->outcomes[c->order[PE_AT_L][i]];
        if (is_measured(o))
            curves[f->curve_count++] =
                (pe_curve){.name = o->label, .x = x, .y = share_within(g, o->far, positions, n), .n = n};
    }
}

/* 0 without memory. */
static int add_lines(pe_gallery *g, const pe_compare *c)
{
    const int64_t far = c->config.preset.reach * c->config.preset.L, n = c->count;
    /* by position x, then y, low and high of each; by length the same; training x and y; attention y */
    const int64_t numbers   = (1 + 3 * n) * (far + PE_MOST_BUCKETS) + (1 + n) * MOST_STEPS + n * far;
    int64_t      *positions = malloc((size_t)far * sizeof *positions);
    g->curves               = calloc((size_t)(PE_GENERAL * n), sizeof *g->curves);
    g->numbers              = malloc((size_t)numbers * sizeof *g->numbers);
    g->next                 = g->numbers;
    if (positions && g->curves && g->numbers) {
        snprintf(g->mark_label, sizeof g->mark_label, "L = %lld", (long long)c->config.preset.L);
        g->mark              = (pe_mark){(double)c->config.preset.L, g->mark_label};
        const int64_t points = choose_positions(positions, c->config.preset.L, far);
        double       *x      = next_numbers(g, points);
        for (int64_t i = 0; i < points; i++)
            x[i] = (double)(positions[i] + 1);
        add_positions(g, c, positions, x, points);
        add_lengths(g, c);
        add_training(g, c);
        add_attention(g, c, positions, x, points);
    }
    free(positions);
    return g->count > 0;
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

static posenc_status add_picture(pe_gallery *g, const pe_compare *c, int index, const pe_offer *offer,
                                 posenc_error *err)
{
    const pe_outcome *o = &c->outcomes[index];
    const pe_preset  *p = &c->config.preset;
    pe_exhibit       *x = &g->items[g->count];
    char              origin[96];
    pe_picture_data   data = {.dims       = pe_outcome_dims(p),
                              .length     = PICTURE_LENGTHS * p->L,
                              .causal     = !c->config.bidirectional,
                              .mark       = (double)p->L,
                              .mark_label = g->mark_label};
    snprintf(origin, sizeof origin, "after %lld training steps, seed 1%s", (long long)p->steps,
             offer->place == POSENC_PLACE_INPUT ? "" : ", first layer");
    for (int i = 0; i < posenc_param_count(o->e); i++)
        if (posenc_param_trainable(o->e, i))
            data.origin = origin;
    data.params = o->runs[0].result.params; /* of the first layer, which is the first of them */
    *x          = (pe_exhibit){.outcome = index};
    name_exhibit(x, o, index, offer->kind);
    const posenc_status status = pe_picture_create(&x->picture, o->e, offer, &data, err);
    if (status)
        return status == POSENC_ERROR_UNSUPPORTED
                   ? POSENC_OK
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

posenc_status pe_gallery_create(pe_gallery *g, const pe_compare *c, posenc_error *err)
{
    *g       = (pe_gallery){0};
    g->items = calloc((size_t)(PE_GENERAL + c->count * PE_MOST_OFFERS), sizeof *g->items);
    posenc_status status =
        g->items && add_lines(g, c)
            ? POSENC_OK
            : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the pictures");
    for (int i = 0; i < c->order_count && !status; i++)
        if (!c->outcomes[c->order[PE_AT_L][i]].diverged)
            status = add_pictures(g, c, c->order[PE_AT_L][i], err);
    for (int i = 0; i < g->count && !status; i++)
        status = pe_gnuplot_svg(g->items[i].figure, g->items[i].name, &g->items[i].svg, err);
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
    for (int i = 0; i < g->label_count; i++)
        free(g->labels[i]);
    free(g->items);
    free(g->curves);
    free(g->numbers);
    *g = (pe_gallery){0};
}

/* ---------------------------------------------------------------- on a page ----------------- */

static const char script_open[] = "<script", script_close[] = "</script>", title_open[] = "<title>",
                  title_close[] = "</title>";

/* The first script element of a drawing: from its '<' to after its end. NULL if there is none. */
static const char *find_script(const char *svg, const char **end)
{
    const char *start = strstr(svg, script_open), *close = start ? strstr(start, script_close) : NULL;
    *end = close ? close + sizeof script_close - 1 : NULL;
    return close ? start : NULL;
}

/* A part of a drawing, its texts translated: what stands between two tags. */
static void write_range(FILE *to, const char *from, const char *end)
{
    for (char before = 0; from < end;) {
        const size_t rest = (size_t)(end - from), to_mark = strcspn(from, "<>&\"");
        const size_t n = to_mark < rest ? to_mark : rest;
        if (before == '>' && n < rest && from[n] == '<')
            pe_words_write(to, from, n);
        else
            fwrite(from, 1, n, to);
        from += n;
        if (from < end)
            fputc(before = *from++, to);
    }
}

void pe_gallery_draw(FILE *to, const pe_exhibit *x)
{
    const char *at = strstr(x->svg, "<svg"), *title = at ? strstr(at, title_open) : NULL;
    const char *title_end = title ? strstr(title, title_close) : NULL, *script_end;
    if (!title_end)
        return;
    fwrite(at, 1, (size_t)(title + sizeof title_open - 1 - at), to);
    char line[256]; /* a figure's title may have two */
    snprintf(line, sizeof line, "%s", x->figure->title ? x->figure->title : "");
    for (char *newline = line; (newline = strchr(newline, '\n'));)
        *newline = ' ';
    pe_html_text(to, line);
    const char *script = find_script(title_end, &script_end);
    if (script) {
        write_range(to, title_end, script);
        fputs("<script></script>", to);
    }
    const char *rest = script ? script_end : title_end;
    write_range(to, rest, rest + strlen(rest));
}

/* Out of its CDATA. */
void pe_gallery_script(FILE *to, const pe_gallery *g)
{
    static const char opening[] = "<![CDATA[", closing[] = "]]>";
    const char       *end, *start = g->count ? find_script(g->items[0].svg, &end) : NULL;
    const char *code = start ? strstr(start, opening) : NULL, *code_end = code ? strstr(code, closing) : NULL;
    if (!code_end || code_end > end)
        return;
    fputs("<script>\n"
          "for (const kind of ['wheel', 'keydown'])\n"
          "    window.addEventListener(kind, e => { if (!e.ctrlKey) e.stopPropagation(); }, true);\n"
          "addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(d => d.open = "
          "true));\n",
          to);
    fwrite(code + sizeof opening - 1, 1, (size_t)(code_end - code) - sizeof opening + 1, to);
    fputs("</script>\n", to);
}

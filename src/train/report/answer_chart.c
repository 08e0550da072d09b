/* SPDX-License-Identifier: MIT */
/*
 * answer_chart.c: one picture of all encodings: loss at L, and loss at the furthest length
 *
 * A point per encoding; low on the left is good at both. The names stand in a column on the right, in the
 * order of their points and joined to them, so that points that lie together stay legible. Written as SVG and
 * not by gnuplot: it takes its colours from the page, and is as wide as a phone.
 */
#include "train/report/report.h"

#include <math.h>
#include <string.h>

enum {
    LEFT  = 46,
    TOP   = 24,
    RIGHT = 244,
    NAME  = 256,
    WIDTH = 370,
    ROW   = 14,
    BELOW = 42,
    LEAST = 220,
    MOST  = 256
};
enum { LONGEST_NAME = 18, TICKS = 4 };
#define EDGE 0.06 /* of the range, around the points */

typedef struct chart_axis {
    double low, high, from, to; /* the losses, and where they lie in the picture */
} chart_axis;

typedef struct chart {
    const pe_compare *c;
    int               order[MOST], count; /* outcomes, the highest point first */
    chart_axis        x, y;
} chart;

static double at(const chart_axis *a, double loss)
{
    return a->from + (loss - a->low) / (a->high - a->low) * (a->to - a->from);
}

static int furthest_of(const pe_compare *c)
{
    return pe_stats_furthest(c->config.preset.reach);
}

static double loss_of(const chart *k, int i, int bucket)
{
    return k->c->outcomes[k->order[i]].loss[bucket];
}

static chart_axis range_of(const chart *k, int bucket, double from, double to)
{
    chart_axis a = {INFINITY, -INFINITY, from, to};
    for (int i = 0; i < k->count; i++) {
        a.low  = fmin(a.low, loss_of(k, i, bucket));
        a.high = fmax(a.high, loss_of(k, i, bucket));
    }
    const double edge = fmax(EDGE * (a.high - a.low), 1e-3);
    a.low -= edge;
    a.high += edge;
    return a;
}

/* Those with both losses. */
static void fill(chart *k, const pe_compare *c)
{
    const int furthest = furthest_of(c);
    k->c               = c;
    for (int i = c->order_count - 1; i >= 0 && k->count < MOST; i--) {
        const int index = c->order[furthest][i];
        if (!c->outcomes[index].diverged && isfinite(c->outcomes[index].loss[furthest]))
            k->order[k->count++] = index;
    }
    const double bottom = TOP + fmax(LEAST, ROW * k->count);
    k->x                = range_of(k, PE_AT_L, LEFT, RIGHT);
    k->y                = range_of(k, furthest_of(k->c), bottom, TOP);
}

/* 1, 2 or 5 times a power of ten, so that there are about TICKS of them. */
static double step_of(const chart_axis *a)
{
    const double rough = (a->high - a->low) / TICKS, ten = pow(10, floor(log10(rough)));
    return rough > 5 * ten ? 10 * ten : rough > 2 * ten ? 5 * ten : rough > ten ? 2 * ten : ten;
}

static void write_ticks(FILE *to, const chart *k, int is_x)
{
    const chart_axis *a      = is_x ? &k->x : &k->y;
    const double      step   = step_of(a);
    const int         digits = step < 0.01 ? 3 : step < 0.1 ? 2 : 1;
    for (double tick = ceil(a->low / step) * step; tick <= a->high; tick += step) {
        const double p = at(a, tick);
        if (is_x)
            fprintf(
                to,
                "<path class=grid d=\"M%.1f %.1fV%d\"/><text x=%.1f y=%.1f text-anchor=middle>%.*f</text>\n",
                p, k->y.from, TOP, p, k->y.from + 14, digits, tick);
        else
            fprintf(to, "<path class=grid d=\"M%d %.1fH%d\"/><text x=%d y=%.1f text-anchor=end>%.*f</text>\n",
                    LEFT, p, RIGHT, LEFT - 5, p + 4, digits, tick);
    }
}

/* Where the names stand: at the height of their points, and below the one before. */
static void place_names(double y[MOST], const chart *k)
{
    const double bottom = k->y.from;
    for (int i = 0; i < k->count; i++) {
        const double own = at(&k->y, loss_of(k, i, furthest_of(k->c)));
        y[i]             = i ? fmax(own, y[i - 1] + ROW) : fmax(own, TOP + ROW / 2.0);
    }
    for (int i = k->count - 1; i >= 0; i--)
        y[i] = fmin(y[i], bottom - ROW * (k->count - 1 - i));
}

static void write_points(FILE *to, const chart *k)
{
    double y[MOST];
    place_names(y, k);
    for (int i = 0; i < k->count; i++) {
        const pe_outcome *o  = &k->c->outcomes[k->order[i]];
        const double      px = at(&k->x, o->loss[PE_AT_L]), py = at(&k->y, o->loss[furthest_of(k->c)]);
        const size_t      n = strlen(o->label);
        fprintf(to, "<path class=grid d=\"M%.1f %.1fL%d %.1f\"/><circle cx=%.1f cy=%.1f r=3.5 />", px, py,
                NAME - 4, y[i], px, py);
        fprintf(to, "<text translate=\"no\" class=name x=%d y=%.1f>", NAME, y[i] + 4);
        pe_page_escape(to, o->label, n > LONGEST_NAME ? LONGEST_NAME - 2 : n);
        fputs(n > LONGEST_NAME ? "..</text>\n" : "</text>\n", to);
    }
}

void pe_answer_chart(FILE *to, const pe_compare *c)
{
    chart k = {0};
    if (c->order_count > 0)
        fill(&k, c);
    if (k.count < 2)
        return;
    fprintf(to, "<figure><svg class=chart role=img viewBox=\"0 0 %d %.0f\">\n", WIDTH, k.y.from + BELOW);
    write_ticks(to, &k, 1);
    write_ticks(to, &k, 0);
    write_points(to, &k);
    fputs("<text x=4 y=12>", to);
    char label[32];
    snprintf(label, sizeof label, "loss at %lld L", (long long)c->config.preset.reach);
    pe_html_text(to, label);
    fprintf(to, "</text><text x=%d y=%.1f text-anchor=middle>", (LEFT + RIGHT) / 2, k.y.from + 32);
    pe_html_text(to, "loss at L (nats per byte)");
    fputs("</text></svg>\n", to);
    pe_html_element(to, "figcaption",
                    "Every encoding: low on the left is good at both lengths. Names follow the "
                    "height of their points.");
    fputs("</figure>\n", to);
}

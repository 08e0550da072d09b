/* SPDX-License-Identifier: MIT */
/*
 * colours.c: viridis, blue-white-red, and a palette for curves
 *
 * Scales are a few stops with straight lines between them in RGB; seventeen stops of viridis are within 3/255
 * of the original table of 256. The palette is Okabe and Ito's ("Color Universal Design", 2008) with grey in
 * place of its yellow, which is hard to see on white paper. Ordered families (heads) run through viridis up
 * to 0.88 only, for the same reason.
 *
 * Source  viridis: Smith and van der Walt, matplotlib 1.5, CC0. Blue-white-red: ColorBrewer's RdBu, reversed.
 */
#include "plot/draw.h"

#include <math.h>

enum { PALETTE = 8 };
#define FAMILY_END  0.88
#define NINE_DIGITS 1e-8 /* numbers that differ by more, in parts of the larger, differ in nine digits */

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const pe_rgb viridis[] = {
    {68, 1, 84},    {72, 24, 106},  {71, 45, 123},  {66, 64, 134},  {59, 82, 139},  {51, 99, 141},
    {44, 114, 142}, {38, 130, 142}, {33, 145, 140}, {31, 160, 136}, {40, 174, 128}, {63, 188, 115},
    {94, 201, 98},  {132, 212, 75}, {173, 220, 48}, {216, 226, 25}, {253, 231, 37},
};

static const pe_rgb blue_white_red[] = {
    {5, 48, 97},     {33, 102, 172},  {67, 147, 195}, {146, 197, 222}, {209, 229, 240}, {247, 247, 247},
    {253, 219, 199}, {244, 165, 130}, {214, 96, 77},  {178, 24, 43},   {103, 0, 31},
};

static const pe_rgb palette[PALETTE] = {
    {0, 114, 178},  {213, 94, 0},  {0, 158, 115}, {204, 121, 167},
    {86, 180, 233}, {230, 159, 0}, {0, 0, 0},     {127, 127, 127},
};

static const pe_rgb missing = {160, 160, 160};

int pe_colours_stops(int signed_scale, const pe_rgb **stops)
{
    *stops = signed_scale ? blue_white_red : viridis;
    return signed_scale ? COUNT(blue_white_red) : COUNT(viridis);
}

static uint8_t between(uint8_t a, uint8_t b, double part)
{
    return (uint8_t)lround(a + (b - a) * part);
}

pe_rgb pe_colours_on_scale(int signed_scale, double x)
{
    const pe_rgb *stops;
    const int     n = pe_colours_stops(signed_scale, &stops);
    if (isnan(x))
        return missing;
    const double at   = fmin(fmax(x, 0), 1) * (n - 1);
    const int    i    = at >= n - 1 ? n - 2 : (int)at;
    const double part = at - i;
    return (pe_rgb){between(stops[i].r, stops[i + 1].r, part), between(stops[i].g, stops[i + 1].g, part),
                    between(stops[i].b, stops[i + 1].b, part)};
}

pe_rgb pe_colours_of_curve(const pe_figure *figure, int index)
{
    if (figure->curves[index].style == PE_RULE)
        return palette[PALETTE - 1];
    if (figure->curves[index].hue)
        return palette[(figure->curves[index].hue - 1) % PALETTE];
    if (!figure->ordered)
        return palette[index % PALETTE];
    const int last = figure->curve_count > 1 ? figure->curve_count - 1 : 1;
    return pe_colours_on_scale(0, FAMILY_END * index / last);
}

void pe_colours_extremes(const pe_figure *figures, int count, double *low, double *high)
{
    *low  = INFINITY;
    *high = -INFINITY;
    for (const pe_figure *f = figures; f < figures + count; f++) {
        for (int64_t i = 0; i < f->rows * f->cols; i++) {
            if (!isfinite(f->values[i]))
                continue;
            *low  = fmin(*low, f->values[i]);
            *high = fmax(*high, f->values[i]);
        }
        for (const pe_curve *c = f->curves; c < f->curves + f->curve_count; c++)
            for (int64_t i = 0; i < c->n; i++) {
                *low  = fmin(*low, c->low ? c->low[i] : c->y[i]);
                *high = fmax(*high, c->high ? c->high[i] : c->y[i]);
            }
    }
}

void pe_colours_range(const pe_figure *figure, double *low, double *high)
{
    *low  = figure->low;
    *high = figure->high;
    if (*low < *high)
        return;
    pe_colours_extremes(figure, 1, low, high);
    if (*low > *high)
        *low = *high = 0;
    if (figure->signed_scale) {
        *high = fmax(fabs(*low), fabs(*high));
        *low  = -*high;
    }
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
}

int pe_colours_widen(double *low, double *high)
{
    *low             = fmin(fmax(*low, -PE_MOST_DRAWN), PE_MOST_DRAWN);
    *high            = fmin(fmax(*high, -PE_MOST_DRAWN), PE_MOST_DRAWN);
    const double far = fmax(fabs(*low), fabs(*high)), beyond = far < PE_LEAST_DRAWN ? 1 : far / 100;
    if (*high - *low > fmax(NINE_DIGITS * far, PE_LEAST_DRAWN))
        return 0;
    *low -= beyond;
    *high += beyond;
    return 1;
}

void pe_colours_drawn(const pe_figure *figure, double *low, double *high)
{
    pe_colours_range(figure, low, high);
    pe_colours_widen(low, high);
}

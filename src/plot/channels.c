/* SPDX-License-Identifier: MIT */
/*
 * channels.c: the table of an input encoding: its heat map, and its channels as curves
 *
 *   heatmap  channel against position, with the wavelength of channels on the second axis; if wanted, the
 *            binary counter of the same positions beside it: fast digits at the top, slow ones at the bottom
 *   curves   chosen channels against position
 *
 * Wavelengths are measured, not taken from a formula: a pure sine of frequency w satisfies, exactly,
 *     x(s+1) - 2 x(s) + x(s-1) = -2 (1 - cos w) x(s),
 * so least squares over s gives w, and the residual says whether the channel is a sine at all. A learned
 * table has no wavelengths and gets no second axis; nor does a grid that is read row by row.
 */
#include "plot/sketch.h"

#include <math.h>

enum { TICKS = 9, CHANNELS = 5, LEAST_MEASURED = 8 };

/* Second differences of slow channels have 16 digits minus those of 1/w^2: three remain at w = 1e-6. */
#define PURE 1e-3

/* Of column c of rows; NaN where it is no sine. */
static double wavelength(const pe_row_set *set, int64_t c)
{
    const double *x     = set->rows + c;
    double        cross = 0, square = 0, rest = 0;
    if (set->n < LEAST_MEASURED)
        return NAN;
    for (int64_t s = 1; s < set->n - 1; s++) {
        const double here = x[s * set->width];
        cross -= here * (x[(s + 1) * set->width] - 2 * here + x[(s - 1) * set->width]);
        square += here * here;
    }
    const double k = cross / square; /* 2 (1 - cos w) = 4 sin^2(w/2) */
    for (int64_t s = 1; s < set->n - 1; s++) {
        const double here     = x[s * set->width];
        const double residual = x[(s + 1) * set->width] - 2 * here + x[(s - 1) * set->width] + k * here;
        rest += residual * residual;
    }
    return k > 0 && k < 4 && rest <= PURE * PURE * k * k * square ? PE_TWO_PI / (2 * asin(sqrt(k) / 2)) : NAN;
}

static const char *wavelength_text(pe_sketch *s, double length)
{
    return pe_sketch_text(s, length < 100 ? "%.3g" : "%.0f", length);
}

/* Labels on about TICKS rows of a grid, spread evenly; none unless two channels are sines. Of 64 rows they
   are multiples of 8 and the last: the terminal may have space for every second or fourth row alone. */
static void set_wavelengths(pe_sketch *s, pe_figure *f, const pe_row_set *set)
{
    pe_tick      *ticks = pe_sketch_take(s, TICKS, sizeof *ticks);
    const int64_t most  = f->rows < TICKS ? f->rows : TICKS;
    for (int64_t k = 0; ticks && k < most; k++) {
        const int64_t even   = most > 1 ? k * f->rows / (most - 1) : 0;
        const int64_t row    = even < f->rows ? even : f->rows - 1;
        const double  length = wavelength(set, s->data->chosen_count ? s->data->chosen[row] : row);
        if (isfinite(length))
            ticks[f->tick_count++] = (pe_tick){(double)row, wavelength_text(s, length)};
    }
    if (f->tick_count < 2)
        f->tick_count = 0;
    f->ticks        = ticks;
    f->second_label = "wavelength of the channel (tokens)";
}

static const char *position_label(const pe_sketch *s)
{
    return s->data->rows ? "position on the grid, row by row" : "position (tokens)";
}

static void check_channels(pe_sketch *s, const pe_row_set *set)
{
    for (int k = 0; k < s->data->chosen_count; k++)
        if (s->data->chosen[k] < 0 || s->data->chosen[k] >= set->width)
            pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                             "picture: channel %lld is chosen; the vectors have channels 0 to %lld",
                             (long long)s->data->chosen[k], (long long)set->width - 1);
}

/* Of chosen channels: their numbers, for the axis. */
static const char **channel_names(pe_sketch *s)
{
    const char **names = pe_sketch_take(s, s->data->chosen_count, sizeof *names);
    for (int k = 0; names && k < s->data->chosen_count; k++)
        names[k] = pe_sketch_text(s, "%lld", (long long)s->data->chosen[k]);
    return names;
}

/* All channels, or the chosen ones, in their order. */
static void set_table(pe_sketch *s, pe_figure *f, const pe_row_set *set)
{
    const int64_t *chosen = s->data->chosen_count ? s->data->chosen : NULL;
    const int64_t  count  = chosen ? s->data->chosen_count : set->width;
    double        *values = pe_sketch_numbers(s, set->n * count);
    check_channels(s, set);
    if (!values || s->status)
        return;
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < set->n; i++)
            values[k * set->n + i] = set->rows[i * set->width + (chosen ? chosen[k] : k)];
    pe_sketch_grid(f, values, count, set->n);
    pe_sketch_labels(f, position_label(s), "channel", "value");
    f->row_names  = chosen ? channel_names(s) : NULL;
    f->apart_rows = 1;
    set_wavelengths(s, f, set);
}

/* As the data want it: numbers in its cells, positions down. */
static void finish_table(pe_sketch *s, pe_figure *f)
{
    pe_sketch_table(s, f);
    if (s->data->transposed)
        pe_sketch_transpose(s, f);
    else if (f->with_numbers)
        f->tick_count = 0; /* beside numbers there is no space for wavelengths */
}

/* Digit r of position i, the lowest in row 0; its period is 2^(r+1) positions. */
static void set_binary(pe_sketch *s, pe_figure *f, int64_t n)
{
    int64_t digits = 1;
    while ((int64_t)1 << digits < n)
        digits++;
    double  *values = pe_sketch_numbers(s, digits * n);
    pe_tick *ticks  = pe_sketch_take(s, digits, sizeof *ticks);
    for (int64_t r = 0; ticks && r < digits; r++) {
        for (int64_t i = 0; i < n; i++)
            values[r * n + i] = (double)(i >> r & 1);
        ticks[r] = (pe_tick){(double)r, pe_sketch_text(s, "%lld", 2LL << r)};
    }
    if (s->status)
        return;
    pe_sketch_grid(f, values, digits, n);
    pe_sketch_labels(f, "position (tokens)", "binary digit, lowest first", "digit");
    f->title        = "binary counter";
    f->apart_rows   = 1;
    f->second_label = "period of the digit (tokens)";
    f->ticks        = ticks;
    f->tick_count   = (int)digits;
}

void pe_channels_heatmap(pe_sketch *s)
{
    const pe_row_set set    = pe_sketch_rows(s);
    pe_figure       *panels = s->data->binary_counter ? pe_sketch_panels(s, s->figure, 2, 2) : s->figure;
    if (s->status)
        return;
    set_table(s, panels, &set);
    if (s->data->binary_counter) {
        panels[0].title = s->part->name;
        set_binary(s, &panels[1], set.n);
    }
    for (int k = 0; !s->status && k <= s->data->binary_counter; k++)
        finish_table(s, &panels[k]);
}

/* ---------------------------------------------------------------- curves -------------------- */

/* The chosen channels, or those at eighths of the first half: the second half of a sinusoid hardly moves. */
static int64_t chosen_channel(const pe_sketch *s, const pe_row_set *set, int k)
{
    return s->data->chosen_count ? s->data->chosen[k] : k * set->width / 8;
}

static void set_curves(pe_sketch *s, pe_figure *f, const pe_row_set *set, int count)
{
    double   *y      = pe_sketch_numbers(s, count * set->n);
    pe_curve *curves = pe_sketch_curves(s, f, pe_sketch_range(s, 0, 1, set->n), y, set->n, count);
    for (int k = 0; curves && k < count; k++) {
        const int64_t c = chosen_channel(s, set, k);
        for (int64_t i = 0; i < set->n; i++)
            y[k * set->n + i] = set->rows[i * set->width + c];
        const double length = wavelength(set, c);
        curves[k].name = isfinite(length) ? pe_sketch_text(s, "channel %lld, wavelength %s", (long long)c,
                                                           wavelength_text(s, length))
                                          : pe_sketch_text(s, "channel %lld", (long long)c);
    }
    pe_sketch_labels(f, position_label(s), "value", NULL);
}

void pe_channels_curves(pe_sketch *s)
{
    const pe_row_set set   = pe_sketch_rows(s);
    const int        count = s->data->chosen_count ? s->data->chosen_count : set.width < 8 ? 1 : CHANNELS;
    check_channels(s, &set);
    pe_figure *panels = s->data->binary_counter ? pe_sketch_panels(s, s->figure, 2, 2) : s->figure;
    if (s->status)
        return;
    set_curves(s, panels, &set, count);
    if (s->data->binary_counter) {
        panels[0].title = s->part->name;
        set_binary(s, &panels[1], set.n);
    }
}

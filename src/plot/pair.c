/* SPDX-License-Identifier: MIT */
/*
 * pair.c: the vector (1, 0) of a pair of channels, rotated to position 0, 1, 2, ...
 *
 * The rotation itself shows which channels make a pair: each unit vector is rotated by one position. So every
 * layout can be drawn, and the axes are named after the channels that the layout joins.
 */
#include "plot/sketch.h"

#include <math.h>

enum { MOST_ARROWS = 32, MOST_PAIRS = 12 };

static int64_t refuse_growth(pe_sketch *s)
{
    pe_sketch_refuse(s, POSENC_ERROR_RANGE,
                     "picture: with the settings of %s a vector one position on is longer than any number",
                     posenc_encoding_spec(s->e));
    return 0;
}

/* Unit vectors [1, D, 1, D] at position 1: y[c, partner] is not zero where c and its partner are rotated
   together. */
static int64_t find_pairs(pe_sketch *s, int64_t (*pairs)[2])
{
    const int64_t D     = s->data->dims.D;
    double       *y     = pe_sketch_numbers(s, D * D);
    int64_t       count = 0;
    for (int64_t c = 0; y && c < D; c++)
        y[c * D + c] = 1;
    pe_rotated_vectors(s, y, D, 1, 1);
    for (int64_t c = 0; !s->status && c < D; c++)
        for (int64_t other = c + 1; other < D; other++)
            if (!isfinite(y[c * D + other]))
                return refuse_growth(s);
            else if (y[c * D + other] != 0 && count < D) { /* a channel is in one pair at most */
                pairs[count][0]   = c;
                pairs[count++][1] = other;
            }
    return count;
}

/* The tips of the unit vector of pair[0], rotated to positions 0 .. n-1. */
static void set_arrows(pe_sketch *s, pe_figure *f, const int64_t pair[2])
{
    const int64_t n = s->data->length, D = s->data->dims.D;
    double       *x = pe_sketch_numbers(s, n), *y = pe_sketch_numbers(s, n), *q = pe_sketch_numbers(s, n * D);
    pe_curve     *arrows = pe_sketch_curves(s, f, x, y, 1, (int)n);
    double        reach  = 0;
    for (int64_t i = 0; q && i < n; i++)
        q[i * D + pair[0]] = 1;
    pe_rotated_vectors(s, q, 1, n, 0);
    for (int64_t i = 0; !s->status && i < n; i++) {
        x[i]      = q[i * D + pair[0]];
        y[i]      = q[i * D + pair[1]];
        arrows[i] = (pe_curve){
            .name = pe_sketch_text(s, "position %lld", (long long)i), .x = x + i, .y = y + i, .n = 1};
        reach = fmax(reach, hypot(x[i], y[i]));
    }
    f->kind    = PE_ARROWS;
    f->ordered = 1;
    f->high    = 1.25 * reach; /* numbers stand beyond the tips */
    f->low     = -f->high;
    pe_sketch_labels(f, pe_sketch_text(s, "channel %lld", (long long)pair[0]),
                     pe_sketch_text(s, "channel %lld", (long long)pair[1]), NULL);
}

/* The chosen pairs, or numbers 0 (the fastest), M/8 and M/4. */
static int64_t chosen_pair(const pe_sketch *s, int k, int64_t M)
{
    if (s->data->chosen_count)
        return s->data->chosen[k];
    return k == 0 ? 0 : k == 1 ? M / 8 : M / 4;
}

static void check_pairs(pe_sketch *s, int count, int64_t M)
{
    if (s->data->length > MOST_ARROWS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT,
                         "picture: length is %lld; a pair is drawn at 2 to %d positions",
                         (long long)s->data->length, MOST_ARROWS);
    if (count > MOST_PAIRS)
        pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT, "picture: %d pairs are chosen; at most %d are drawn",
                         count, MOST_PAIRS);
    for (int k = 0; k < count; k++)
        if (chosen_pair(s, k, M) < 0 || chosen_pair(s, k, M) >= M)
            pe_sketch_refuse(s, POSENC_ERROR_ARGUMENT, "picture: pair %lld is chosen; %s has pairs 0 to %lld",
                             (long long)chosen_pair(s, k, M), s->part->name, (long long)M - 1);
}

void pe_pair_make(pe_sketch *s)
{
    int64_t(*pairs)[2]  = pe_sketch_take(s, s->data->dims.D, sizeof *pairs);
    int64_t       all   = 0;
    const double *w     = pe_rotated_frequencies(s, s->e, &all, NULL);
    const int64_t found = find_pairs(s, pairs), M = found < all ? found : all;
    const int     count = s->data->chosen_count ? s->data->chosen_count : M < 3 ? (int)M : 3;
    check_pairs(s, count, M);
    pe_figure *panels = pe_sketch_panels(s, s->figure, count, 0);
    s->what =
        pe_sketch_text(s, "(1, 0) of a pair, rotated to positions 0 to %lld", (long long)s->data->length - 1);
    for (int k = 0; panels && k < count; k++) {
        const int64_t m = chosen_pair(s, k, M);
        panels[k].title = pe_sketch_text(s, "pair %lld\n%.3g rad/position, wavelength %.4g", (long long)m,
                                         w[m], PE_TWO_PI / w[m]);
        set_arrows(s, &panels[k], pairs[m]);
    }
}

/* SPDX-License-Identifier: MIT */
/*
 * pair.c: the vector (1, 0) of a pair of channels, turned to position 0, 1, 2, ...
 *
 * Which channels make a pair is asked of the rotation itself: turn each unit vector by one position and see
 * where it goes. So every layout is drawn, and the axes are named after the channels that the layout joins.
 */
#include "plot/turns.h"

#include <math.h>

enum { MOST_ARROWS = 32, MOST_PAIRS = 12 };

/* Unit vectors [1, D, 1, D] at position 1: y[c, partner] is not zero where c and its partner turn
   together. */
static posenc_status find_pairs(pe_sketch *s, int64_t (*pairs)[2], int64_t *count, posenc_error *err)
{
    const int64_t D = s->data->dims.D, shape[4] = {1, D, 1, D};
    posenc_dims   dims   = pe_turning_dims(s, D, 2);
    double       *y      = pe_take_numbers(s, D * D);
    posenc_status status = y ? pe_prepare(s, s->e, &dims, POSENC_FORWARD, err) : pe_plot_no_memory(err);
    if (status)
        return status;
    for (int64_t c = 0; c < D; c++)
        y[c * D + c] = 1;
    const posenc_tensor    q  = posenc_tensor_contiguous(y, POSENC_F64, 4, shape);
    const posenc_rotate_io io = {.q         = q,
                                 .to_q      = q,
                                 .q_pos     = posenc_positions_range(1, 1),
                                 .k_pos     = posenc_positions_range(0, 1),
                                 .direction = 1,
                                 .params    = s->data->params};
    status                    = posenc_rotate(s->plan, &io, s->work, err);
    *count                    = 0;
    for (int64_t c = 0; !status && c < D; c++)
        for (int64_t other = c + 1; other < D; other++)
            if (y[c * D + other] != 0) {
                pairs[*count][0]     = c;
                pairs[(*count)++][1] = other;
            }
    return status;
}

/* Tips [n] of the unit vector of pair[0], turned to positions 0 .. n-1. */
static posenc_status turn_unit(pe_sketch *s, const int64_t pair[2], int64_t n, double *x, double *y,
                               posenc_error *err)
{
    const int64_t D = s->data->dims.D, shape[4] = {1, 1, n, D};
    posenc_dims   dims   = pe_turning_dims(s, 1, n);
    double       *q      = pe_take_numbers(s, n * D);
    posenc_status status = q ? pe_prepare(s, s->e, &dims, POSENC_FORWARD, err) : pe_plot_no_memory(err);
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        q[i * D + pair[0]] = 1;
    const posenc_tensor    all = posenc_tensor_contiguous(q, POSENC_F64, 4, shape);
    const posenc_rotate_io io  = {.q         = all,
                                  .to_q      = all,
                                  .q_pos     = posenc_positions_range(0, 1),
                                  .k_pos     = posenc_positions_range(0, 1),
                                  .direction = 1,
                                  .params    = s->data->params};
    status                     = posenc_rotate(s->plan, &io, s->work, err);
    for (int64_t i = 0; !status && i < n; i++) {
        x[i] = q[i * D + pair[0]];
        y[i] = q[i * D + pair[1]];
    }
    return status;
}

static posenc_status set_arrows(pe_sketch *s, pe_figure *f, const int64_t pair[2], posenc_error *err)
{
    const int64_t n = s->data->length;
    double       *x = pe_take_numbers(s, n), *y = pe_take_numbers(s, n);
    pe_curve     *arrows = x && y ? pe_set_curves(s, f, x, y, 1, (int)n) : NULL;
    double        reach  = 0;
    if (!arrows)
        return pe_plot_no_memory(err);
    const posenc_status status = turn_unit(s, pair, n, x, y, err);
    for (int64_t i = 0; i < n; i++) {
        arrows[i] = (pe_curve){
            .name = pe_take_text(s, "position %lld", (long long)i), .x = x + i, .y = y + i, .n = 1};
        reach = fmax(reach, hypot(x[i], y[i]));
    }
    f->kind    = PE_ARROWS;
    f->ordered = 1;
    f->high    = 1.25 * reach; /* room for numbers beyond the tips */
    f->low     = -f->high;
    f->x_label = pe_take_text(s, "channel %lld", (long long)pair[0]);
    f->y_label = pe_take_text(s, "channel %lld", (long long)pair[1]);
    return status;
}

/* The chosen pairs, or the fastest, one that turns an eighth of a circle or less per step, and the
   slowest. */
static int64_t chosen_pair(const pe_sketch *s, int k, int64_t M)
{
    if (s->data->chosen_count)
        return s->data->chosen[k];
    return k == 0 ? 0 : k == 1 ? M / 8 : M / 4;
}

static posenc_status check_pairs(const pe_sketch *s, int count, int64_t M, posenc_error *err)
{
    if (s->data->length > MOST_ARROWS)
        return pe_plot_fail(err, POSENC_ARGUMENT,
                            "picture: length is %lld; a pair is drawn at 2 to %d positions",
                            (long long)s->data->length, MOST_ARROWS);
    if (count > MOST_PAIRS)
        return pe_plot_fail(err, POSENC_ARGUMENT, "picture: %d pairs are chosen; at most %d are drawn", count,
                            MOST_PAIRS);
    for (int k = 0; k < count; k++)
        if (chosen_pair(s, k, M) < 0 || chosen_pair(s, k, M) >= M)
            return pe_plot_fail(err, POSENC_ARGUMENT, "picture: pair %lld is chosen; %s has pairs 0 to %lld",
                                (long long)chosen_pair(s, k, M), s->part->name, (long long)M - 1);
    return POSENC_OK;
}

posenc_status pe_make_pair(pe_sketch *s, posenc_error *err)
{
    int64_t(*pairs)[2] = pe_take(s, s->data->dims.D, sizeof *pairs);
    double       *w    = NULL;
    int64_t       M = 0, found = 0;
    posenc_status status = pairs ? pe_read_frequencies(s, s->e, &w, &M, NULL, err) : pe_plot_no_memory(err);
    if (!status)
        status = find_pairs(s, pairs, &found, err);
    M               = found < M ? found : M;
    const int count = s->data->chosen_count ? s->data->chosen_count : M < 3 ? (int)M : 3;
    if (!status)
        status = check_pairs(s, count, M, err);
    if (status)
        return status;
    pe_figure *panels = pe_set_panels(s, s->figure, count, 0);
    s->what =
        pe_take_text(s, "(1, 0) of a pair, turned to positions 0 to %lld", (long long)s->data->length - 1);
    status = panels ? POSENC_OK : pe_plot_no_memory(err);
    for (int k = 0; !status && k < count; k++) {
        const int64_t m = chosen_pair(s, k, M);
        panels[k].title = pe_take_text(s, "pair %lld\n%.3g rad/position, wavelength %.4g", (long long)m, w[m],
                                       PE_TWO_PI / w[m]);
        status          = set_arrows(s, &panels[k], pairs[m], err);
    }
    return status;
}

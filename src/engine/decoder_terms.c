/* SPDX-License-Identifier: MIT */
/* What a few queries' scores have beside products: biases and masks, and the gate. Contract: decoder.h. */
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "engine/decoder.h"
#include "engine/tile_scores.h"

/* What goes by positions one by one, into z->extra. */
static int fill_extra(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t h, int64_t i)
{
    const pe_attention *a         = x->a;
    const pe_distances *d         = &a->distances;
    const int           looked_up = !x->T.skewed;
    if (!pe_decoder_has_extra(x))
        return 0;
    const double slope = pe_is_sloped(a) ? pe_bias_slope(a, h) : 0;
    memset(z->extra, 0, PE_DECODE_PIECE * sizeof *z->extra);
    for (int64_t c = 0; c < n->C; c++) {
        const double t = pe_position(&a->q_pos, n->b, i) - pe_position(&a->k_pos, n->b, n->j0 + c);
        if (!pe_is_allowed(a, n->b, h, i, n->j0 + c) || t < (double)d->reach.low || t > (double)d->reach.high)
            z->extra[c] = -INFINITY;
        else if (looked_up && pe_is_sloped(a))
            z->extra[c] = (float)(slope * (fabs(t) - x->near));
        else if (looked_up && x->T.by[PE_BIAS].rows)
            z->extra[c] = *pe_rows_by(&x->T, PE_BIAS, h, (int64_t)t - x->T.band.t0);
    }
    return 1;
}

static void add_slope(const pe_decoder *x, float *s, const pe_keys *n, int64_t h, int64_t i)
{
    const pe_distances *d = &x->a->distances;
    x->a->kernels->slope_row(s, pe_bias_slope(x->a, h), (double)(d->t00 + d->step * (i - n->j0)),
                             (double)-d->step, x->near, n->C);
}

/* Products of one query with a piece become scores. */
static void finish_row(const pe_decoder *x, pe_decode_bench *z, float *s, const pe_keys *n, int64_t h,
                       int64_t i)
{
    const pe_attention *a     = x->a;
    const pe_tiles     *T     = &x->T;
    pe_tile_terms       terms = {0};
    int32_t             low, high;
    if (pe_is_sloped(a) && T->skewed)
        add_slope(x, s, n, h, i);
    if (fill_extra(x, z, n, h, i))
        terms.extra = z->extra;
    if (T->skewed && T->by[PE_BIAS].rows)
        terms.bias = pe_rows_by(T, PE_BIAS, h, pe_band_start(T, i, 1, n->j0));
    if (a->mask & POSENC_MASK_KEY_PADDING)
        terms.key = z->key;
    if (T->skewed && (i - (n->j0 + n->C - 1) < T->e_low || i - n->j0 > T->e_high)) {
        const int64_t least = i - T->e_high - n->j0, most = i - T->e_low - n->j0 + 1;
        low        = (int32_t)(least < 0 ? 0 : pe_smaller(least, n->C));
        high       = (int32_t)(most < 0 ? 0 : pe_smaller(most, n->C));
        terms.low  = &low;
        terms.high = &high;
    }
    if (terms.bias && !terms.extra && !terms.key && !terms.low && n->C % PE_LANES == 0)
        a->kernels->add_skewed(s, PE_DECODE_PIECE, terms.bias, 0, 1, n->C);
    else if (terms.extra || terms.bias || terms.key || terms.low || n->C % PE_LANES)
        a->kernels->scores_finish(s, PE_DECODE_PIECE, &terms, 1, n->C);
}

static void gate_row(const pe_decoder *x, float *s, const pe_keys *n, int64_t h, int64_t i)
{
    const pe_attention *a = x->a;
    const pe_tiles     *T = &x->T;
    if (T->skewed) {
        a->kernels->gate(s, PE_DECODE_PIECE, pe_rows_by(T, PE_GATE, h, pe_band_start(T, i, 1, n->j0)), 0, 1,
                         n->C);
        return;
    }
    for (int64_t c = 0; c < n->C; c++) {
        const double t = pe_position(&a->q_pos, n->b, i) - pe_position(&a->k_pos, n->b, n->j0 + c);
        if (s[c] != 0) /* hidden: its distance may have no row */
            s[c] *= *pe_rows_by(T, PE_GATE, h, (int64_t)t - T->band.t0);
    }
}

static void load_mask(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n)
{
    const posenc_tensor *t = &x->a->key_allowed;
    for (int64_t c = 0; (x->a->mask & POSENC_MASK_KEY_PADDING) && c < PE_DECODE_PIECE; c++)
        z->key[c] = c >= n->C || !pe_integer_at(t, (t->shape[0] == 1 ? 0 : n->b) * t->stride[0] +
                                                       (n->j0 + c) * t->stride[1])
                        ? -INFINITY
                        : 0;
}

/* The rows of scores of one key head, piece by piece. */
void pe_decode_finish(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t h0)
{
    const int64_t Lq = x->a->sizes.Lq;
    for (int64_t c = 0; c < n->C; c += x->piece) {
        const pe_keys piece = {n->b, n->j0 + c, pe_smaller(x->piece, n->C - c), NULL};
        load_mask(x, z, &piece);
        for (int64_t r = 0; r < x->rows; r++)
            finish_row(x, z, z->S + r * x->block + c, &piece, h0 + r / Lq, r % Lq);
    }
}

void pe_decode_gate(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t h0)
{
    const int64_t Lq = x->a->sizes.Lq;
    for (int64_t c = 0; pe_has(x->a->terms, PE_GATE) && c < n->C; c += PE_DECODE_PIECE) {
        const pe_keys piece = {n->b, n->j0 + c, pe_smaller(PE_DECODE_PIECE, n->C - c), NULL};
        for (int64_t r = 0; r < x->rows; r++)
            gate_row(x, z->S + r * x->block + c, &piece, h0 + r / Lq, r % Lq);
    }
}

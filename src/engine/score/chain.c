/* SPDX-License-Identifier: MIT */
/*
 * chain.c: queries that are transformed from key to key
 *
 * Formula  q_i . k_j becomes q_i^T H_m ... H_{j+1} k_j, H_l = I - beta_l w_l w_l^T, m the key that is query i
 *          itself; a key ahead of it meets q_i as it is
 * Adjoint  of y = H x with cotangent dy: dx = H dy, dw -= beta ((w.dy) x + (w.x) dy), dbeta -= (w.x)(w.dy)
 *
 * H is singular where beta is 1, so the backward cannot undo it: it keeps what became of a query at each key.
 * What padding hides has beta 0. A query's own key is the last that stands not beyond it in its segment.
 */
#include <string.h>

#include "base/sizes.h"
#include "base/tensor.h"
#include "engine/score/attention.h"

void pe_chain_lay_out(pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    if (!pe_chains(a))
        return;
    a->chain.queries = p->Lq;
    a->chain.own     = pe_arena_take(arena, pe_arena_bytes(p->B * p->Lq, sizeof(int64_t)));
}

void pe_chain_fill(pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    for (int64_t b = 0; pe_chains(a) && b < p->B; b++) {
        pe_own own = {.keys = p->Lk};
        for (int64_t i = 0; i < p->Lq; i++) {
            pe_own_find(&own, a, b, i);
            a->chain.own[b * p->Lq + i] = own.first + pe_own_count(&own, a, b, i, 1) - 1;
        }
    }
}

int pe_chain_is_wanted(const pe_attention *a)
{
    posenc_tensor *const *to = a->dtokens[PE_SCORE];
    return pe_chains(a) && (a->for_any_run || to[a->terms->chain.w] || to[a->terms->chain.beta]);
}

/* Row j of a token input that key head g reads. */
static void *row_of(const pe_attention *a, const posenc_tensor *t, int64_t b, int64_t g, int64_t j)
{
    return pe_tensor_row(t, a->from.b + b, t->shape[1] == 1 ? 0 : a->from.g + g, a->from.j + j);
}

void pe_chain_load(const pe_attention *a, int64_t b, int64_t g, int64_t j0, int64_t n, double *w,
                   int64_t stride, double *beta)
{
    const posenc_tensor *all_w    = a->tokens[PE_SCORE][a->terms->chain.w],
                        *all_beta = a->tokens[PE_SCORE][a->terms->chain.beta];
    for (int64_t j = 0; j < n; j++) {
        double *to = w + j * stride;
        beta[j]    = 0;
        if (pe_keys_is_padding(&a->key_allowed, b, j0 + j)) {
            memset(to, 0, (size_t)a->sizes.D * sizeof *to);
            continue;
        }
        pe_tensor_load_double(to, row_of(a, all_w, b, g, j0 + j), all_w->dtype, 1, a->sizes.D);
        pe_tensor_load_double(&beta[j], row_of(a, all_beta, b, g, j0 + j), all_beta->dtype, 1, 1);
    }
}

/* Of all key heads that share a row, one after the other. */
static void store_row(const pe_attention *a, const posenc_tensor *to, int64_t b, int64_t row, int64_t j,
                      const double *from, int64_t stride, int64_t width)
{
    enum { SOME = 64 };
    const int64_t share = a->sizes.G / to->shape[1];
    char         *at    = pe_tensor_row(to, b, row, j);
    for (int64_t d = 0; d < width; d += SOME) {
        const int64_t n         = pe_smaller(SOME, width - d);
        double        sum[SOME] = {0};
        for (int64_t g = row * share; g < (row + 1) * share && !pe_keys_is_padding(&a->key_allowed, b, j);
             g++)
            for (int64_t c = 0; c < n; c++)
                sum[c] += from[(g * a->sizes.Lk + j) * stride + d + c];
        pe_tensor_store_double(at + pe_tensor_bytes(to->dtype, d), to->dtype, 1, sum, n);
    }
}

void pe_chain_store(const pe_attention *a, int64_t b, const double *dw, int64_t stride, const double *dbeta)
{
    const posenc_tensor *to_w    = a->dtokens[PE_SCORE][a->terms->chain.w],
                        *to_beta = a->dtokens[PE_SCORE][a->terms->chain.beta];
    for (int64_t x = 0; to_w && x < to_w->shape[1] * a->sizes.Lk; x++)
        store_row(a, to_w, b, x / a->sizes.Lk, x % a->sizes.Lk, dw, stride, a->sizes.D);
    for (int64_t x = 0; to_beta && x < to_beta->shape[1] * a->sizes.Lk; x++)
        store_row(a, to_beta, b, x / a->sizes.Lk, x % a->sizes.Lk, dbeta, 1, 1);
}

/* ---- as the formula reads ---- */

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void add(double *x, double f, const double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += f * y[i];
}

void pe_chain_products(const pe_chain_keys *keys, int64_t own, const double *q, double *x, double products[],
                       double *kept)
{
    const int64_t D = keys->D;
    if (x != q)
        memcpy(x, q, (size_t)D * sizeof *x);
    for (int64_t j = keys->Lk - 1; j >= 0; j--) {
        const double *w = keys->W + j * D;
        products[j]     = dot(x, keys->K + j * D, D);
        if (kept)
            memcpy(kept + j * D, x, (size_t)D * sizeof *x);
        if (j <= own)
            add(x, -keys->beta[j] * dot(w, x, D), w, D);
    }
}

void pe_chain_products_back(const pe_chain_keys *keys, int64_t own, const double *kept,
                            const double dproducts[], double *dq, double *dK, double *dW, double *dbeta)
{
    const int64_t D = keys->D;
    for (int64_t j = 0; j < keys->Lk; j++) {
        const double *w = keys->W + j * D, *x = kept + j * D, beta = keys->beta[j];
        if (j <= own) {
            const double wx = dot(w, x, D), wd = dot(w, dq, D);
            dbeta[j] -= wx * wd;
            add(dW + j * D, -beta * wd, x, D);
            add(dW + j * D, -beta * wx, dq, D);
            add(dq, -beta * wd, w, D);
        }
        add(dK + j * D, dproducts[j], x, D);
        add(dq, dproducts[j], keys->K + j * D, D);
    }
}

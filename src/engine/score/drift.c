/* SPDX-License-Identifier: MIT */
/*
 * drift.c: running sums of gates, or a rate times the position
 *
 * Formula  drift_ij = c_i - c_j; of gates c_j = ln f_0 + ... + ln f_j, and c_i that up to the key that is the
 *          query itself: the last of its segment whose position is not beyond its own (by_key: c_j and c_i
 *          without that last gate). Ahead, where there are two sides: c'_j - c'_i
 * Adjoint  g[x], x gates in a sum: g[x of query] += sum_j dS, g[x of key] -= sum_i dS; all g together
 *          are 0, so d ln f_l = sum over x > l of g[x] = -(sum over x <= l of g[x])
 *
 * Sums are double: a million gates of ln f = -0.3 end at -3e5, where floats are 0.03 apart. A gate of a key
 * that padding hides counts as 1. Many queries have the sums of all keys; a few, which must not need memory
 * that grows with the keys, have one for each FEW of them and add up the rest when they are asked. A cache
 * that keeps the sums gives them, and nothing is added up.
 *
 * A row of the softmax does not see a constant, so its cotangents sum to what lse and the sink add, which is
 * known: that is taken, not the sum of their rounding errors. With a softcap, or two sides, it is not known.
 */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/tensor.h"
#include "engine/score/attention.h"

enum { FEW = 512, CHUNK = 128 };

static const pe_drift *of(const pe_attention *a)
{
    return &a->terms->drift;
}

static int sides_of(const pe_attention *a)
{
    return of(a)->two_sided ? PE_SIDES : 1;
}

static const posenc_tensor *token_of(const pe_attention *a, int side)
{
    return a->tokens[PE_SCORE][of(a)->token[side]];
}

static int64_t token_heads(const pe_attention *a, int side)
{
    const posenc_tensor *given = &a->drift.given[side];
    return given->data ? given->shape[1] : a->for_any_run ? a->sizes.H : token_of(a, side)->shape[1];
}

/* Which head of the token input a query head reads. */
static int64_t token_head(const pe_attention *a, int side, int64_t h)
{
    return h / (a->drift.heads / token_heads(a, side));
}

/* ---- memory ---- */

int pe_drift_is_wanted(const pe_attention *a)
{
    int wanted = a->for_any_run || of(a)->kind == PE_DRIFT_RATE;
    for (int side = 0; of(a)->kind == PE_DRIFT_GATES && side < sides_of(a); side++)
        wanted |= a->dtokens[PE_SCORE][of(a)->token[side]] != NULL;
    return pe_drifts(a) && wanted &&
           (of(a)->kind != PE_DRIFT_RATE || a->for_any_run || pe_members_part_wanted(&a->parts[PE_SCORE]));
}

int pe_drift_is_open(const pe_attention *a)
{
    return of(a)->two_sided || a->softcap > 0 || pe_sticks(a);
}

void pe_drift_lay_out(pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p     = &a->sizes;
    pe_drifted       *x     = &a->drift;
    const int         gates = of(a)->kind == PE_DRIFT_GATES;
    if (!pe_drifts(a))
        return;
    x->heads       = p->H;
    x->queries     = p->Lq;
    x->keys        = p->Lk;
    x->key_allowed = a->key_allowed;
    x->every       = backward || p->Lq > POSENC_DECODE_QUERIES ? 1 : FEW;
    x->stored      = (p->Lk + x->every - 1) / x->every;
    for (int side = 0; side < sides_of(a); side++) {
        x->query[side] = pe_arena_doubles(arena, p->B * p->H * p->Lq);
        if (gates)
            x->index[side] = pe_arena_take(arena, pe_arena_bytes(p->B * p->Lq, sizeof(int64_t)));
        if (gates && !x->given[side].data)
            x->sums[side] = pe_arena_doubles(arena, p->B * token_heads(a, side) * x->stored);
        if (backward && pe_drift_is_wanted(a)) {
            x->dquery[side] = pe_arena_doubles(arena, p->H * p->Lq);
            x->dkey[side]   = pe_arena_doubles(arena, p->H * p->Lk);
        }
    }
    if (backward && gates && pe_drift_is_wanted(a))
        x->fold = pe_arena_doubles(arena, p->Lk + 1);
}

/* ---- gates, and sums of them ---- */

/* What the token input says of n keys; and ln of the gates of that, n at most CHUNK. */
static void load_tokens(const pe_attention *a, int side, int64_t b, int64_t row, int64_t j, int64_t n,
                        double to[])
{
    const posenc_tensor *t = token_of(a, side);
    pe_tensor_load_double(to, pe_tensor_row(t, b, row, j), t->dtype, 1, n);
}

static void load_gates(const pe_attention *a, int side, int64_t b, int64_t row, int64_t j, int64_t n,
                       double to[])
{
    double x[CHUNK];
    load_tokens(a, side, b, row, j, n, x);
    of(a)->gates(a->parts[PE_SCORE].p, x, n, to);
    for (int64_t c = 0; c < n; c++)
        if (pe_keys_is_padding(&a->drift.key_allowed, b, j + c))
            to[c] = 0;
}

static void sum_head(void *context, int64_t index, int thread)
{
    const pe_attention *a    = context;
    const int           side = index >= a->sizes.B * token_heads(a, 0);
    const int64_t       at = index - side * a->sizes.B * token_heads(a, 0), heads = token_heads(a, side);
    double             *to = a->drift.sums[side] + at * a->drift.stored, sum = 0, log_gate[CHUNK];
    (void)thread;
    for (int64_t j = 0; j < a->drift.keys; j += CHUNK) {
        const int64_t n = pe_smaller(CHUNK, a->drift.keys - j);
        load_gates(a, side, at / heads, at % heads, j, n, log_gate);
        for (int64_t c = 0; c < n; c++) {
            sum += log_gate[c];
            if ((j + c + 1) % a->drift.every == 0)
                to[(j + c) / a->drift.every] = sum;
        }
    }
}

/* Sums of the first x, x + 1, ... x + n - 1 gates of a row of the whole run; where only some are stored, on
   from the last of those. */
static void load_sums(const pe_attention *a, int side, int64_t b, int64_t row, int64_t x, int64_t n,
                      double to[])
{
    const pe_drifted    *d     = &a->drift;
    const posenc_tensor *given = &d->given[side];
    int64_t              c     = 0;
    for (; x + c == 0 && c < n; c++)
        to[c] = 0;
    if (given->data) {
        pe_tensor_load_double(to + c, pe_tensor_row(given, b, row, x + c - 1), given->dtype, given->stride[2],
                              n - c);
        return;
    }
    const double *stored = d->sums[side] + (b * token_heads(a, side) + row) * d->stored;
    if (d->every == 1) {
        memcpy(to + c, stored + x + c - 1, (size_t)(n - c) * sizeof *to);
        return;
    }
    int64_t have = x / d->every * d->every; /* gates */
    double  sum  = have ? stored[have / d->every - 1] : 0, log_gate[CHUNK];
    if (have == x + c && c < n)
        to[c++] = sum;
    while (c < n) {
        const int64_t some = pe_smaller(CHUNK, x + n - 1 - have);
        load_gates(a, side, b, row, have, some, log_gate);
        for (int64_t i = 0; i < some; i++) {
            sum += log_gate[i];
            if (have + i + 1 == x + c)
                to[c++] = sum;
        }
        have += some;
    }
}

/* ---- which gates are a query's ---- */

static void find_indices(const pe_attention *a, int64_t b)
{
    const int64_t Lq  = a->sizes.Lq;
    pe_own        own = {.keys = a->drift.keys};
    for (int64_t i = 0; i < Lq; i++) {
        pe_own_find(&own, a, b, i);
        for (int side = 0; side < sides_of(a); side++)
            a->drift.index[side][b * Lq + i] =
                own.first + pe_own_count(&own, a, b, i, side == PE_AHEAD || !of(a)->by_key);
    }
}

static double rate_of(const pe_attention *a, int side, int64_t h)
{
    const pe_part *part = &a->parts[PE_SCORE];
    return of(a)->rate(part->p, part->par, h, side);
}

static void fill_queries(void *context, int64_t index, int thread)
{
    const pe_attention *a  = context;
    const pe_drifted   *d  = &a->drift;
    const int64_t       Lq = a->sizes.Lq, b = index / a->sizes.H, h = index % a->sizes.H;
    (void)thread;
    for (int side = 0; side < sides_of(a); side++) {
        double      *to   = d->query[side] + index * Lq;
        const double rate = of(a)->kind == PE_DRIFT_RATE ? rate_of(a, side, h) : 0;
        for (int64_t i = 0; i < Lq; i++)
            if (of(a)->kind == PE_DRIFT_RATE)
                to[i] = rate * pe_positions_at(&a->q_pos, b, i);
            else
                load_sums(a, side, b, token_head(a, side, h), d->index[side][b * Lq + i], 1, to + i);
    }
}

void pe_drift_fill(pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    int64_t           n = 0;
    if (!pe_drifts(a))
        return;
    for (int64_t b = 0; of(a)->kind == PE_DRIFT_GATES && b < p->B; b++)
        find_indices(a, b);
    for (int side = 0; side < sides_of(a) && a->drift.sums[side]; side++)
        n += p->B * token_heads(a, side);
    pe_parallel_for(n, &a->team, sum_head, a);
    pe_parallel_for(p->B * p->H, &a->team, fill_queries, a);
}

const double *pe_drift_queries(const pe_attention *a, int side, int64_t b, int64_t h)
{
    const pe_drifted *d = &a->drift;
    return d->query[side] + ((a->from.b + b) * d->heads + a->from.h + h) * d->queries + a->from.i;
}

/* Where the sum of the first x > 0 gates of a row of the whole run lies, the others after it; NULL: nowhere.
 */
static const double *sums_at(const pe_attention *a, int side, int64_t b, int64_t row, int64_t x)
{
    const pe_drifted    *d     = &a->drift;
    const posenc_tensor *given = &d->given[side];
    if (given->data)
        return given->stride[2] == 1 ? pe_tensor_row(given, b, row, x - 1) : NULL;
    return d->every == 1 ? d->sums[side] + (b * token_heads(a, side) + row) * d->stored + x - 1 : NULL;
}

const double *pe_drift_keys(const pe_attention *a, int side, int64_t b, int64_t h, int64_t j0, int64_t n,
                            double to[])
{
    if (of(a)->kind == PE_DRIFT_RATE) {
        const double rate = rate_of(a, side, a->from.h + h);
        for (int64_t c = 0; c < n; c++)
            to[c] = rate * pe_positions_at(&a->k_pos, b, j0 + c);
        return to;
    }
    const int     without = side == PE_BEHIND && of(a)->by_key;
    const int64_t item = a->from.b + b, row = token_head(a, side, a->from.h + h),
                  x  = a->from.j + j0 + !without;
    const double *at = x > 0 ? sums_at(a, side, item, row, x) : NULL;
    if (at)
        return at;
    load_sums(a, side, item, row, x, n, to);
    return to;
}

/* ---- backward ---- */

void pe_drift_clear(const pe_attention *a)
{
    for (int side = 0; side < PE_SIDES; side++)
        if (a->drift.dkey[side]) {
            memset(a->drift.dquery[side], 0, (size_t)(a->sizes.H * a->sizes.Lq) * sizeof(double));
            memset(a->drift.dkey[side], 0, (size_t)(a->sizes.H * a->sizes.Lk) * sizeof(double));
        }
}

void pe_drift_close(const pe_attention *a, int64_t b)
{
    const int64_t Lq = a->sizes.Lq;
    for (int64_t x = 0; a->drift.dquery[0] && x < a->sizes.H * Lq; x++) {
        const int64_t h = x / Lq, i = x % Lq;
        double        lse, sum      = 0;
        pe_tensor_load_double(&lse, pe_tensor_element(&a->lse, b, h, i), a->lse.dtype, 1, 1);
        if (a->dlse.data && lse != -INFINITY)
            pe_tensor_load_double(&sum, pe_tensor_element(&a->dlse, b, h, i), a->dlse.dtype, 1, 1);
        if (a->dsink)
            sum -= a->dsink[b * a->sizes.H * Lq + x];
        a->drift.dquery[0][x] = a->temper_on == PE_TEMPER_SCORE ? pe_temper_at(a, b, h, i) * sum : sum;
    }
}

/* Of the heads that share a row of the token input, into the numbers of gates. */
static void gather(const pe_attention *a, int side, int64_t b, int64_t row)
{
    const pe_drifted *d  = &a->drift;
    const int64_t     Lq = a->sizes.Lq, Lk = a->sizes.Lk, share = a->sizes.H / token_heads(a, side);
    const int         without = side == PE_BEHIND && of(a)->by_key;
    memset(d->fold, 0, (size_t)(Lk + 1) * sizeof(double));
    for (int64_t h = row * share; h < (row + 1) * share; h++) {
        for (int64_t i = 0; i < Lq; i++)
            d->fold[d->index[side][b * Lq + i]] += d->dquery[side][h * Lq + i];
        for (int64_t j = 0; j < Lk; j++)
            d->fold[j + !without] += d->dkey[side][h * Lk + j];
    }
}

static void fold_tokens(const pe_attention *a, int side, int64_t b, const posenc_tensor *to)
{
    for (int64_t row = 0; row < to->shape[1]; row++) {
        double sum = 0, x[CHUNK], dx[CHUNK];
        gather(a, side, b, row);
        for (int64_t j = 0; j < a->sizes.Lk; j += CHUNK) {
            const int64_t n = pe_smaller(CHUNK, a->sizes.Lk - j);
            load_tokens(a, side, b, row, j, n, x);
            for (int64_t c = 0; c < n; c++) {
                sum += a->drift.fold[j + c];
                dx[c] = pe_keys_is_padding(&a->drift.key_allowed, b, j + c) ? 0 : 0 - sum;
            }
            of(a)->gates_back(a->parts[PE_SCORE].p, x, n, dx);
            pe_tensor_store_double(pe_tensor_row(to, b, row, j), to->dtype, 1, dx, n);
        }
    }
}

/* About the first key, far from which nothing need be: positions may be large. */
static void fold_rate(const pe_attention *a, int side, int64_t b)
{
    const pe_part *part = &a->parts[PE_SCORE];
    const int64_t  Lq = a->sizes.Lq, Lk = a->sizes.Lk;
    const double   first = pe_positions_at(&a->k_pos, b, 0);
    for (int64_t h = 0; h < a->sizes.H; h++) {
        double sum = 0;
        for (int64_t i = 0; i < Lq; i++)
            sum += (pe_positions_at(&a->q_pos, b, i) - first) * a->drift.dquery[side][h * Lq + i];
        for (int64_t j = 0; j < Lk; j++)
            sum += (pe_positions_at(&a->k_pos, b, j) - first) * a->drift.dkey[side][h * Lk + j];
        of(a)->rate_back(part->p, part->par, h, side, sum, part->dpar);
    }
}

void pe_drift_fold(const pe_attention *a, int64_t b)
{
    for (int side = 0; a->drift.dkey[0] && side < sides_of(a); side++) {
        const posenc_tensor *to =
            of(a)->kind == PE_DRIFT_GATES ? a->dtokens[PE_SCORE][of(a)->token[side]] : NULL;
        if (to)
            fold_tokens(a, side, b, to);
        if (of(a)->kind == PE_DRIFT_RATE && a->parts[PE_SCORE].dpar)
            fold_rate(a, side, b);
    }
}

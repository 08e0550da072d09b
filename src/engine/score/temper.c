/* SPDX-License-Identifier: MIT */
/* What a run says query by query: the factor of the temperature, the sink. Contract: attention.h. */
#include <math.h>

#include "base/sizes.h"
#include "base/tensor.h"
#include "engine/score/attention.h"

/* ---- the temperature ---- */

int pe_temper_folds(const pe_attention *a)
{
    const pe_terms *m      = a->terms;
    const int       others = pe_has(m, PE_BIAS) || pe_has(m, PE_B) || m->pairs.matrix || m->hook.visit ||
                       pe_drifts(a) || m->u != PE_NONE || m->w != PE_NONE || m->us != PE_NONE ||
                       m->G != PE_NONE;
    return a->temper_on == PE_TEMPER_QUERY || (a->temper_on == PE_TEMPER_SCORE && !others && !m->temper.fold);
}

int pe_temper_finishes(const pe_attention *a)
{
    return a->softcap > 0 || (a->temper_on == PE_TEMPER_SCORE && !pe_temper_folds(a));
}

int pe_temper_is_wanted(const pe_attention *a)
{
    const pe_part *part = &a->parts[PE_COMMON];
    return a->temper_on != PE_TEMPER_NONE && a->terms->temper.fold &&
           (a->for_any_run || pe_members_part_wanted(part));
}

/* Rows of the factor: one for all heads where it follows from the position. */
static int64_t heads_of(const pe_attention *a)
{
    return a->terms->temper.fill_by_head ? a->sizes.H : 1;
}

void pe_temper_lay_out(pe_attention *a, pe_arena *arena, int backward)
{
    const pe_problem *p = &a->sizes;
    if (a->temper_on == PE_TEMPER_NONE)
        return;
    const int64_t heads = heads_of(a);
    a->temper           = (pe_tempered){.at   = pe_arena_doubles(arena, p->B * heads * p->Lq),
                                        .item = heads * p->Lq,
                                        .head = heads > 1 ? p->Lq : 0};
    if (backward && pe_temper_is_wanted(a))
        a->temper.gradient = pe_arena_doubles(arena, p->B * p->H * p->Lq);
}

/* Keys that a query may see. Where only distances decide, and they follow from the place, nobody counts. */
static int64_t count_keys(const pe_attention *a, int64_t b, int64_t h, int64_t i)
{
    const int     others = POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS | POSENC_MASK_KEY_PADDING;
    const int64_t Lk     = a->sizes.Lk;
    int64_t       n      = 0;
    if (!(a->mask & ~others) && !(a->mask & others))
        return Lk;
    if (!(a->mask & others) && !a->k_pos.array.data && a->k_pos.step == 1) {
        const double t    = pe_positions_at(&a->q_pos, b, i) - a->k_pos.start; /* of key 0: the largest */
        const double low  = fmax(0, ceil(t - (double)a->reach.high)),
                     high = fmin((double)Lk - 1, floor(t - (double)a->reach.low));
        return high < low ? 0 : (int64_t)(high - low) + 1;
    }
    for (int64_t j = 0; j < Lk; j++)
        n += pe_pairs_allowed(a, b, h, i, j);
    return n;
}

/* What a rule sees of query i. */
static pe_tempering tempering_of(const pe_attention *a, int64_t b, int64_t h, int64_t i)
{
    pe_tempering of = {.h        = a->from.h + h,
                       .position = fmax(pe_positions_coordinate(&a->q_coordinates, b, i, 0), 0)};
    if (a->terms->temper.counts)
        of.keys = pe_larger(count_keys(a, b, h, i), 1);
    return of;
}

static void fill_row(void *context, int64_t index, int thread)
{
    const pe_attention *a     = context;
    const pe_part      *part  = &a->parts[PE_COMMON];
    const int64_t       heads = heads_of(a), b = index / heads, h = index % heads;
    double             *to = a->temper.at + index * a->sizes.Lq;
    (void)thread;
    for (int64_t i = 0; i < a->sizes.Lq; i++) {
        const pe_tempering of = tempering_of(a, b, h, i);
        to[i]                 = a->terms->temper.fill(part->p, part->par, &of);
    }
}

void pe_temper_fill(pe_attention *a)
{
    const pe_problem *p = &a->sizes;
    if (a->temper_on == PE_TEMPER_NONE)
        return;
    pe_parallel_for(p->B * heads_of(a), &a->team, fill_row, a);
    for (int64_t x = 0; a->temper.gradient && x < p->B * p->H * p->Lq; x++)
        a->temper.gradient[x] = 0;
}

void pe_temper_fold(const pe_attention *a)
{
    const pe_problem *p    = &a->sizes;
    const pe_part    *part = &a->parts[PE_COMMON];
    for (int64_t b = 0; a->temper.gradient && b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++)
            for (int64_t i = 0; i < p->Lq; i++) {
                const pe_tempering of = tempering_of(a, b, h, i);
                a->terms->temper.fold(part->p, part->par, &of, a->temper.gradient[(b * p->H + h) * p->Lq + i],
                                      part->dpar);
            }
}

/* ---- the sink ---- */

double pe_sink_at(const pe_attention *a, int64_t b, int64_t h, int64_t i)
{
    if (!a->has_sink)
        return -INFINITY;
    if (a->terms->sink != PE_NONE)
        return a->parts[PE_COMMON].par[a->terms->sink][a->from.h + h];
    const posenc_tensor *t = a->tokens[PE_COMMON][a->terms->sink_token];
    double               s;
    pe_tensor_load_double(&s, pe_tensor_row(t, b, h / (a->sizes.H / t->shape[1]), i), t->dtype, 1, 1);
    return s;
}

double pe_sink_join(const pe_attention *a, int64_t b, int64_t h, int64_t i, double *lse)
{
    const double s = pe_sink_at(a, b, h, i), old = *lse;
    if (s == -INFINITY)
        return 1;
    *lse = fmax(old, s) + log1p(exp(-fabs(old - s)));
    return exp(old - *lse);
}

double pe_sink_share(const pe_attention *a, int64_t b, int64_t h, int64_t i, double lse)
{
    const double s = pe_sink_at(a, b, h, i);
    return s == -INFINITY ? 0 : exp(s - lse);
}

/* ds of one row: its share of lse takes what lse has, and what the weights lose. */
static double row_back(const pe_attention *a, int64_t b, int64_t h, int64_t i)
{
    enum { SOME = 64 };
    double lse, o[SOME], dout[SOME], dlse = 0, delta = 0;
    pe_tensor_load_double(&lse, pe_tensor_element(&a->lse, b, h, i), a->lse.dtype, 1, 1);
    if (a->dlse.data)
        pe_tensor_load_double(&dlse, pe_tensor_element(&a->dlse, b, h, i), a->dlse.dtype, 1, 1);
    const char *at = pe_tensor_row(&a->o, b, h, i), *dat = pe_tensor_row(&a->dout, b, h, i);
    for (int64_t d = 0; d < a->sizes.Dv; d += SOME) {
        const int64_t n = pe_smaller(SOME, a->sizes.Dv - d);
        pe_tensor_load_double(o, at + pe_tensor_bytes(a->o.dtype, d), a->o.dtype, 1, n);
        pe_tensor_load_double(dout, dat + pe_tensor_bytes(a->dout.dtype, d), a->dout.dtype, 1, n);
        for (int64_t k = 0; k < n; k++)
            delta += o[k] * dout[k];
    }
    const double share = lse == -INFINITY ? 0 : pe_sink_share(a, b, h, i, lse);
    return share == 0 ? 0 : share * (dlse - delta);
}

static void head_back(void *context, int64_t index, int thread)
{
    const pe_attention *a = context;
    (void)thread;
    for (int64_t i = 0; i < a->sizes.Lq; i++)
        a->dsink[index * a->sizes.Lq + i] = row_back(a, index / a->sizes.H, index % a->sizes.H, i);
}

void pe_sink_lay_out(pe_attention *a, pe_arena *arena)
{
    a->dsink = a->has_sink ? pe_arena_doubles(arena, a->sizes.B * a->sizes.H * a->sizes.Lq) : NULL;
}

void pe_sink_back(pe_attention *a)
{
    if (a->dsink)
        pe_parallel_for(a->sizes.B * a->sizes.H, &a->team, head_back, a);
}

double pe_sink_row_sum(const pe_attention *a, int64_t h)
{
    double sum = 0;
    for (int64_t b = 0; a->dsink && b < a->sizes.B; b++)
        for (int64_t i = 0; i < a->sizes.Lq; i++)
            sum -= a->dsink[(b * a->sizes.H + h) * a->sizes.Lq + i] *
                   (a->temper_on == PE_TEMPER_SCORE ? pe_temper_at(a, b, h, i) : 1);
    return sum;
}

/* One number of a token input: the sum of the heads that share it. */
static void store_token(const pe_attention *a, const posenc_tensor *to, int64_t b, int64_t row, int64_t i)
{
    const int64_t H = a->sizes.H, share = H / to->shape[1];
    double        sum = 0;
    for (int64_t h = row * share; h < (row + 1) * share; h++)
        sum += a->dsink[(b * H + h) * a->sizes.Lq + i];
    pe_tensor_store_double(pe_tensor_row(to, b, row, i), to->dtype, 1, &sum, 1);
}

void pe_sink_fold(const pe_attention *a)
{
    const int            by_token = a->terms->sink == PE_NONE;
    double *const       *dpar     = a->parts[PE_COMMON].dpar;
    double              *to       = a->dsink && dpar && !by_token ? dpar[a->terms->sink] : NULL;
    const posenc_tensor *token    = a->dsink && by_token ? a->dtokens[PE_COMMON][a->terms->sink_token] : NULL;
    const int64_t        Lq       = a->sizes.Lq;
    for (int64_t x = 0; to && x < a->sizes.B * a->sizes.H * Lq; x++)
        to[x / Lq % a->sizes.H] += a->dsink[x];
    for (int64_t x = 0; token && x < a->sizes.B * token->shape[1] * Lq; x++)
        store_token(a, token, x / Lq / token->shape[1], x / Lq % token->shape[1], x % Lq);
}

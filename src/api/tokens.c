/* SPDX-License-Identifier: MIT */
/* tokens.c: inputs per token that the model makes: which there are, their shapes, and what a run is given */
#include <stdio.h>

#include <posenc/scores.h>

#include "api/objects.h"
#include "base/overlap.h"
#include "base/sizes.h"
#include "base/tensor.h"

/* ---- which there are ---- */

int posenc_token_count(const posenc_encoding *e)
{
    return e ? e->token_count : 0;
}

const posenc_token_info *posenc_token_describe(const posenc_encoding *e, int index)
{
    if (!e || index < 0 || index >= e->token_count)
        return NULL;
    return &e->parts[e->tokens[index].place].room->info.tokens[e->tokens[index].local];
}

const char *posenc_token_name(const posenc_encoding *e, int index)
{
    const posenc_token_info *info = posenc_token_describe(e, index);
    return info ? info->name : NULL;
}

posenc_status posenc_token_shape(const posenc_encoding *e, const posenc_dims *dims, int index,
                                 int64_t shape[4], posenc_error *err)
{
    const posenc_token_info *info = posenc_token_describe(e, index);
    pe_resolved              r;
    if (!e || !dims || !shape)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "token input: e, dims and shape must not be NULL");
    if (!info)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "token input: this encoding has no token input number %d",
                       index);
    const posenc_dims   full   = pe_encoding_full_dims(dims);
    const posenc_status status = pe_encoding_resolve(&r, &e->parts[e->tokens[index].place], &full, err);
    if (status)
        return status;
    const int64_t made[4] = {full.B, info->key_heads ? full.G : full.H, info->of_keys ? full.Lk : full.Lq,
                             pe_encoding_whole(&r, &full, info->channels)};
    for (int a = 0; a < 4; a++)
        shape[a] = made[a];
    return pe_done(err);
}

posenc_status pe_tokens_name(posenc_encoding *e, posenc_error *err)
{
    for (int place = 0; place < PE_PLACES; place++) {
        const pe_chosen *part = &e->parts[place];
        pe_value         set[PE_MAX_SETTINGS];
        if (!part->room || !part->room->info.token_count)
            continue;
        pe_encoding_words(part, set);
        for (int i = 0; i < part->room->info.token_count; i++) {
            if (part->room->has_token && !part->room->has_token(set, i))
                continue;
            if (e->token_count == PE_MAX_TOKENS)
                return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                               "encoding: more than %d token inputs in all; leave a part out", PE_MAX_TOKENS);
            e->tokens[e->token_count++] = (pe_param_place){place, i};
        }
    }
    return POSENC_OK;
}

/* ---- of a run ---- */

/* [B, H or G or 1, L, n], or of what keys follow [B, G or 1, L, n]. `what` names it. */
static posenc_status check_heads(const pe_problem *p, const posenc_token_info *info, const posenc_tensor *t,
                                 const char *what, posenc_error *err)
{
    if (info->key_heads && t->shape[1] != p->G && t->shape[1] != 1)
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s has %lld heads; it must have %lld (of keys) or 1", what,
                       (long long)t->shape[1], (long long)p->G);
    if (t->shape[1] != p->H && t->shape[1] != p->G && t->shape[1] != 1)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "%s has %lld heads; it must have %lld (of queries), %lld (of keys) or 1", what,
                       (long long)t->shape[1], (long long)p->H, (long long)p->G);
    return POSENC_OK;
}

posenc_status pe_tokens_check(const pe_problem *p, const posenc_token_info *info, const posenc_tensor *t,
                              const char *what, const int64_t sizes[3], posenc_error *err)
{
    const int64_t shape[4] = {sizes[0], -1, sizes[1], sizes[2]};
    posenc_status status   = pe_tensor_check(t, what, 4, shape, err);
    if (status || (status = check_heads(p, info, t, what, err)))
        return status;
    if (!pe_tensor_is_float(t->dtype))
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be F32, F64, F16 or BF16", what,
                       pe_tensor_dtype_name(t->dtype));
    return POSENC_OK;
}

/* Is t such a tensor, contiguous? */
static posenc_status check_one(const pe_attention *a, const posenc_token_info *info, const posenc_tensor *t,
                               const char *what, const int64_t *sizes, posenc_error *err)
{
    const posenc_status status = pe_tokens_check(&a->sizes, info, t, what, sizes, err);
    if (!status && !pe_tensor_is_contiguous(t))
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s must be contiguous; copy it", what);
    return status;
}

static pe_owner owner_of(int place)
{
    return place == PE_PLACE_COMMON ? PE_COMMON : place == POSENC_PLACE_WEIGHT ? PE_WEIGHT : PE_SCORE;
}

enum { OF_TURN = PE_SIDES, CHUNK = 64 };

/* Which of the running sums those of a token input are: of a side of the drift, or of angles; -1: it has
   none. */
static int side_of(const posenc_plan *plan, pe_param_place at)
{
    const pe_drift *d = &plan->terms.drift;
    if ((at.place == POSENC_PLACE_ROTARY && plan->rotary.content == PE_CONTENT_STEP) ||
        (at.place == POSENC_PLACE_SCORE && plan->terms.wall.is_given && at.local == plan->terms.wall.token))
        return OF_TURN;
    for (int side = 0; d->kind == PE_DRIFT_GATES && side <= d->two_sided; side++)
        if (at.place == POSENC_PLACE_SCORE && at.local == d->token[side])
            return side;
    return -1;
}

/* Running sums [B, Ht, keys, n]. */
static posenc_status check_sums(const pe_attention *a, const posenc_token_info *info, const posenc_tensor *t,
                                int side, const int64_t sizes[3], const char *what, posenc_error *err)
{
    const int64_t shape[4] = {sizes[0], -1, sizes[1], sizes[2]};
    if (side < 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: it has no running sums; give it in in.tokens", what);
    const posenc_status status = pe_tensor_check(t, what, 4, shape, err);
    if (status)
        return status;
    if (t->dtype != POSENC_DTYPE_F64)
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be F64", what,
                       pe_tensor_dtype_name(t->dtype));
    return check_heads(&a->sizes, info, t, what, err);
}

/* n numbers of token j from the first on: what is summed, gates or steps. */
static void load_summed(const posenc_plan *plan, int side, const posenc_tensor *token, int64_t b, int64_t h,
                        int64_t j, int64_t first, int64_t n, double to[])
{
    const pe_problem *p     = &plan->parts[POSENC_PLACE_SCORE].problem;
    const int         steps = side == OF_TURN && !plan->terms.wall.is_given;
    double            x[CHUNK];
    pe_tensor_load_double(steps ? to : x,
                          (char *)pe_tensor_row(token, b, h, j) +
                              pe_tensor_bytes(token->dtype, first * token->stride[3]),
                          token->dtype, token->stride[3], n);
    if (!steps)
        (side == OF_TURN ? plan->terms.wall.gates : plan->terms.drift.gates)(p, x, n, to);
}

/* Sums of some channels of a row, from its first on; those before are in `sums`. */
static void sum_tokens(const posenc_plan *plan, int side, const posenc_tensor *token,
                       const posenc_tensor *sums, int64_t from, int64_t row, int64_t first)
{
    const int64_t b = row / token->shape[1], h = row % token->shape[1],
                  n   = pe_smaller(CHUNK, token->shape[3] - first);
    double sum[CHUNK] = {0}, x[CHUNK];
    for (int64_t j = 0; j < token->shape[2]; j++) {
        char *to = pe_tensor_row(sums, b, h, from + j);
        to += first * sums->stride[3] * (int64_t)sizeof(double);
        if (j == 0 && from > 0)
            pe_tensor_load_double(sum, to - sums->stride[2] * (int64_t)sizeof(double), sums->dtype,
                                  sums->stride[3], n);
        load_summed(plan, side, token, b, h, j, first, n, x);
        for (int64_t c = 0; c < n; c++)
            sum[c] += x[c];
        pe_tensor_store_double(to, sums->dtype, sums->stride[3], sum, n);
    }
}

posenc_status posenc_token_sums(const posenc_plan *plan, int index, const posenc_tensor *token,
                                posenc_tensor *sums, int64_t from, posenc_error *err)
{
    if (!plan || !token || !sums)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "sums: plan, token and sums must not be NULL");
    const posenc_token_info *info = posenc_token_describe(plan->e, index);
    if (!info || plan->dims.D == 0 || side_of(plan, plan->e->tokens[index]) < 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "sums: %s has no token input number %d with running sums",
                       plan->e->spec, index);
    const int     side  = side_of(plan, plan->e->tokens[index]);
    const int64_t width = plan->token_channels[index];
    posenc_status status =
        pe_tensor_check(token, "sums: token", 4, (const int64_t[]){-1, -1, -1, width}, err);
    if (!status)
        status = pe_tensor_check_output(sums, "sums: sums", 4,
                                        (const int64_t[]){token->shape[0], token->shape[1], -1, width}, err);
    if (status)
        return status;
    if (!pe_tensor_is_float(token->dtype) || sums->dtype != POSENC_DTYPE_F64)
        return pe_fail(err, POSENC_ERROR_DTYPE, "sums: token is %s and sums %s; they must be floats and F64",
                       pe_tensor_dtype_name(token->dtype), pe_tensor_dtype_name(sums->dtype));
    if ((status = pe_overlap_check(sums, "sums: sums", token, "token", 0, err)))
        return status;
    const int64_t n = token->shape[2];
    if (from < 0 || from > sums->shape[2] - n)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "sums: from is %lld; with %lld tokens and sums of %lld keys it must be from 0 to %lld",
                       (long long)from, (long long)n, (long long)sums->shape[2],
                       (long long)(sums->shape[2] - n));
    for (int64_t row = 0; n > 0 && row < token->shape[0] * token->shape[1]; row++)
        for (int64_t first = 0; first < width; first += CHUNK)
            sum_tokens(plan, side, token, sums, from, row, first);
    return pe_done(err);
}

/* Of queries or keys, item by item: does each position stand after the one before, in its segment? */
static posenc_status check_rising(const posenc_positions *pos, const posenc_tensor *segments, int64_t B,
                                  int64_t L, const char *who, const char *name, posenc_error *err)
{
    if (!pos->array.data && pos->step >= 0) /* 0: of 1 */
        return POSENC_OK;
    for (int64_t b = 0; b < B; b++)
        for (int64_t s = 1; s < L; s++)
            if (pe_pairs_segment(segments, b, s) == pe_pairs_segment(segments, b, s - 1) &&
                !(pe_positions_at(pos, b, s) > pe_positions_at(pos, b, s - 1)))
                return pe_fail(err, POSENC_ERROR_RANGE,
                               "%s: %s of token %lld is %.17g, after %.17g; which token a query is "
                               "follows from positions, which must rise within each segment",
                               who, name, (long long)s, pe_positions_at(pos, b, s),
                               pe_positions_at(pos, b, s - 1));
    return POSENC_OK;
}

/* Is each segment of keys in one place? A query's own key is found in its segment, from which sums count. */
static posenc_status check_together(const pe_attention *a, const char *who, posenc_error *err)
{
    const posenc_tensor *t = &a->k_segments;
    for (int64_t b = 0; t->data && b < t->shape[0]; b++) {
        int64_t low = INT64_MAX, high = INT64_MIN; /* most number them upwards: then none is sought */
        for (int64_t s = 0, before; s < a->sizes.Lk; s++) {
            const int64_t own = pe_pairs_segment(t, b, s);
            if (s && own == pe_pairs_segment(t, b, s - 1))
                continue;
            for (before = own < low || own > high ? s : 0;
                 before < s && pe_pairs_segment(t, b, before) != own;)
                before++;
            if (before < s)
                return pe_fail(
                    err, POSENC_ERROR_RANGE,
                    "%s: k_segments[%lld,%lld] is %lld again, after another segment; the keys of a "
                    "segment must stand side by side",
                    who, (long long)b, (long long)s, (long long)own);
            low  = own < low ? own : low;
            high = own > high ? own : high;
        }
    }
    return POSENC_OK;
}

posenc_status pe_tokens_check_order(const pe_attention *a, const posenc_plan *plan, const char *who,
                                    posenc_error *err)
{
    if (plan->terms.drift.kind != PE_DRIFT_GATES && !plan->rotary.content && !plan->terms.chain.is_given &&
        !plan->terms.wall.is_given && !plan->terms.stick.to_self)
        return POSENC_OK;
    const pe_problem *p      = &a->sizes;
    posenc_status     status = check_together(a, who, err);
    if (!status)
        status = check_rising(&a->q_pos, &a->q_segments, p->B, p->Lq, who, "q_pos", err);
    return status ? status : check_rising(&a->k_pos, &a->k_segments, p->B, p->Lk, who, "k_pos", err);
}

posenc_status pe_tokens_take(pe_attention *a, const posenc_plan *plan, const pe_tokens_given *given,
                             posenc_error *err)
{
    for (int i = 0; i < plan->e->token_count; i++) {
        const pe_param_place     at       = plan->e->tokens[i];
        const posenc_token_info *info     = posenc_token_describe(plan->e, i);
        const int64_t            sizes[3] = {a->sizes.B, info->of_keys ? given->keys : a->sizes.Lq,
                                             plan->token_channels[i]};
        char                     what[PE_MAX_NAME + 32];
        if (!(given->places >> at.place & 1))
            continue;
        if (given->sums && pe_tensor_is_given(&given->sums[i])) {
            const int side = side_of(plan, at);
            snprintf(what, sizeof what, "%s: in.sums of %s", given->who, info->name);
            const posenc_status status = check_sums(a, info, &given->sums[i], side, sizes, what, err);
            if (status)
                return status;
            if (side == OF_TURN)
                a->turn.given = given->sums[i];
            else
                a->drift.given[side] = given->sums[i];
            continue;
        }
        snprintf(what, sizeof what, "%s: token input %s", given->who, info->name);
        if (!given->tokens || !pe_tensor_is_given(&given->tokens[i]))
            return pe_fail(err, POSENC_ERROR_ARGUMENT,
                           "%s is missing; %s needs it, [B, %sG or 1, %s, %lld], in in.tokens", what,
                           plan->e->spec, info->key_heads ? "" : "H or ", info->of_keys ? "Lk" : "Lq",
                           (long long)sizes[2]);
        const posenc_status status = check_one(a, info, &given->tokens[i], what, sizes, err);
        if (status)
            return status;
        if (at.place == POSENC_PLACE_ROTARY)
            a->turn.token = &given->tokens[i];
        else
            a->tokens[owner_of(at.place)][at.local] = &given->tokens[i];
    }
    return POSENC_OK;
}

posenc_status pe_tokens_take_gradients(pe_attention *a, const posenc_plan *plan, const pe_tokens_given *given,
                                       posenc_error *err)
{
    for (int i = 0; given->dtokens && i < plan->e->token_count; i++) {
        const pe_param_place     at   = plan->e->tokens[i];
        const posenc_token_info *info = posenc_token_describe(plan->e, i);
        posenc_tensor           *to   = &given->dtokens[i];
        char                     what[PE_MAX_NAME + 32];
        snprintf(what, sizeof what, "%s: gradient of %s", given->who, info->name);
        if (!to->data || !(given->places >> at.place & 1))
            continue;
        posenc_status status = pe_tensor_check_output(to, what, 4, given->tokens[i].shape, err);
        if (!status && (!pe_tensor_is_float(to->dtype) || !pe_tensor_is_contiguous(to)))
            status = pe_fail(err, POSENC_ERROR_DTYPE, "%s must be contiguous F32, F64, F16 or BF16", what);
        if (status)
            return status;
        if (at.place == POSENC_PLACE_ROTARY)
            a->turn.dtoken = to;
        else
            a->dtokens[owner_of(at.place)][at.local] = to;
    }
    return POSENC_OK;
}

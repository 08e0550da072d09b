/* SPDX-License-Identifier: MIT */
/* tokens.c: inputs per token that the model makes: which there are, their shapes, and what a run is given */
#include <math.h>
#include <stdio.h>

#include "api/objects.h"
#include "base/overlap.h"
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
    const int64_t made[4] = {full.B, full.H, info->of_keys ? full.Lk : full.Lq,
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

/* Is t [B, H or G or 1, L, n], contiguous, of the kinds that q may be of? `what` names it. */
static posenc_status check_one(const pe_attention *a, const posenc_token_info *info, const posenc_tensor *t,
                               const char *what, const int64_t *sizes, posenc_error *err)
{
    const pe_problem *p        = &a->sizes;
    const int64_t     shape[4] = {sizes[0], -1, sizes[1], sizes[2]};
    posenc_status     status   = pe_tensor_check(t, what, 4, shape, err);
    if (status)
        return status;
    if (t->shape[1] != p->H && t->shape[1] != p->G && t->shape[1] != 1)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "%s has %lld heads; it must have %lld (of queries), %lld (of keys) or 1", what,
                       (long long)t->shape[1], (long long)p->H, (long long)p->G);
    if (!pe_tensor_is_float(t->dtype))
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be F32, F64, F16 or BF16", what,
                       pe_tensor_dtype_name(t->dtype));
    if (!pe_tensor_is_contiguous(t))
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s must be contiguous; copy it", what);
    return POSENC_OK;
}

static pe_owner owner_of(int place)
{
    return place == PE_PLACE_COMMON ? PE_COMMON : place == POSENC_PLACE_WEIGHT ? PE_WEIGHT : PE_SCORE;
}

posenc_status pe_tokens_take(pe_attention *a, const posenc_plan *plan, const posenc_tensor *tokens,
                             int64_t keys, posenc_error *err)
{
    for (int i = 0; i < plan->e->token_count; i++) {
        const pe_param_place     at   = plan->e->tokens[i];
        const posenc_token_info *info = posenc_token_describe(plan->e, i);
        const int64_t sizes[3] = {a->sizes.B, info->of_keys ? keys : a->sizes.Lq, plan->token_channels[i]};
        char          what[PE_MAX_NAME + 32];
        snprintf(what, sizeof what, "attend: token input %s", info->name);
        if (!tokens || !pe_tensor_is_given(&tokens[i]))
            return pe_fail(err, POSENC_ERROR_ARGUMENT,
                           "%s is missing; %s needs it, [B, H or G or 1, %s, %lld], in in.tokens", what,
                           plan->e->spec, info->of_keys ? "Lk" : "Lq", (long long)sizes[2]);
        const posenc_status status = check_one(a, info, &tokens[i], what, sizes, err);
        if (status)
            return status;
        a->tokens[owner_of(at.place)][at.local] = &tokens[i];
    }
    return POSENC_OK;
}

posenc_status pe_tokens_take_gradients(pe_attention *a, const posenc_plan *plan, const posenc_tensor *tokens,
                                       posenc_tensor *dtokens, posenc_error *err)
{
    for (int i = 0; dtokens && i < plan->e->token_count; i++) {
        const pe_param_place     at   = plan->e->tokens[i];
        const posenc_token_info *info = posenc_token_describe(plan->e, i);
        char                     what[PE_MAX_NAME + 32];
        snprintf(what, sizeof what, "attend: gradient of %s", info->name);
        if (!dtokens[i].data)
            continue;
        posenc_status status = pe_tensor_check_output(&dtokens[i], what, 4, tokens[i].shape, err);
        if (!status && (!pe_tensor_is_float(dtokens[i].dtype) || !pe_tensor_is_contiguous(&dtokens[i])))
            status = pe_fail(err, POSENC_ERROR_DTYPE, "%s must be contiguous F32, F64, F16 or BF16", what);
        const posenc_tensor *const inputs[] = {&a->q, &a->k, &a->v, &tokens[i]};
        for (int k = 0; !status && k < 4; k++)
            status = pe_overlap_check(&dtokens[i], what, inputs[k], "an input", 0, err);
        if (status)
            return status;
        a->dtokens[owner_of(at.place)][at.local] = &dtokens[i];
    }
    return POSENC_OK;
}

/* SPDX-License-Identifier: MIT */
/* attend_checks.c: what a caller gives to attention, looked at before the first write. Contract:
   attend_checks.h. */
#include "api/attend_checks.h"

#include "base/positions.h"
#include "base/tensor.h"

static posenc_status check_rows(const posenc_tensor *t, const char *who, const int64_t shape[4],
                                posenc_error *err)
{
    posenc_status status = pe_check_tensor(t, who, 4, shape, err);
    if (!status && !pe_is_float(t->dtype))
        status = pe_fail(err, POSENC_DTYPE, "%s is %s; it must be F32, F64, F16 or BF16", who,
                         pe_dtype_name(t->dtype));
    if (!status && t->stride[3] != 1)
        status = pe_fail(err, POSENC_SHAPE,
                         "%s: its last axis has stride %lld; it must be 1 (copy it, or swap axes by strides)",
                         who, (long long)t->stride[3]);
    return status;
}

static posenc_status check_output_rows(const posenc_tensor *t, const char *who, const int64_t shape[4],
                                       posenc_error *err)
{
    const posenc_status status = check_rows(t, who, shape, err);
    return status ? status : pe_check_output(t, who, 4, shape, err);
}

static posenc_status check_limit(const char *what, int64_t size, int64_t most, posenc_error *err)
{
    if (size <= most)
        return POSENC_OK;
    return pe_fail(err, POSENC_RANGE, "attend: %s is %lld but the plan was made for at most %lld", what,
                   (long long)size, (long long)most);
}

static posenc_status check_heads(const posenc_plan *plan, const posenc_attend_in *in, posenc_error *err)
{
    const int64_t H = in->q.ndim == 4 ? in->q.shape[1] : 0, G = in->k.ndim == 4 ? in->k.shape[1] : 0;
    if (H > 0 && G > 0 && H % G != 0)
        return pe_fail(err, POSENC_SHAPE,
                       "attend: k has %lld heads but q has %lld; heads of k must divide heads of q",
                       (long long)G, (long long)H);
    const int64_t q[4]   = {-1, plan->dims.H, -1, plan->dims.D};
    posenc_status status = check_rows(&in->q, "attend: q", q, err);
    if (status)
        return status;
    const int64_t k[4] = {in->q.shape[0], plan->dims.G, -1, plan->dims.D};
    return check_rows(&in->k, "attend: k", k, err);
}

/* Segments are needed by their mask; an encoding may see them, and sees one segment where there are none. */
static posenc_status check_segments(const pe_attention *a, const posenc_tensor *t, const char *who, int64_t L,
                                    posenc_error *err)
{
    const int64_t shape[2] = {-1, L};
    if (!t->data && !(a->mask & POSENC_MASK_SEGMENTS))
        return POSENC_OK;
    const posenc_status status = pe_check_tensor(t, who, 2, shape, err);
    if (status)
        return status;
    if ((t->shape[0] != 1 && t->shape[0] != a->sizes.B) || (t->dtype != POSENC_I64 && t->dtype != POSENC_U8))
        return pe_fail(err, POSENC_SHAPE, "%s must be I64 or U8 for 1 or %lld items", who,
                       (long long)a->sizes.B);
    return POSENC_OK;
}

static posenc_status check_masks(const pe_attention *a, const posenc_attend_in *in, posenc_error *err)
{
    const pe_problem *p      = &a->sizes;
    const int64_t     key[2] = {-1, p->Lk}, all[4] = {-1, -1, p->Lq, p->Lk};
    posenc_status     status = POSENC_OK;
    if (a->mask & POSENC_MASK_KEY_PADDING) {
        const posenc_tensor *t = &in->key_allowed;
        status                 = pe_check_tensor(t, "attend: key_allowed", 2, key, err);
        if (!status && (t->dtype != POSENC_U8 || (t->shape[0] != 1 && t->shape[0] != p->B)))
            status = pe_fail(err, POSENC_SHAPE, "attend: key_allowed must be U8 for 1 or %lld items",
                             (long long)p->B);
    }
    if (!status)
        status = check_segments(a, &in->q_segments, "attend: q_segments", p->Lq, err);
    if (!status)
        status = check_segments(a, &in->k_segments, "attend: k_segments", p->Lk, err);
    if (!status && (a->mask & POSENC_MASK_EXPLICIT)) {
        const posenc_tensor *t = &in->allowed;
        status                 = pe_check_tensor(t, "attend: allowed", 4, all, err);
        if (!status && (t->dtype != POSENC_U8 || (t->shape[0] != 1 && t->shape[0] != p->B) ||
                        (t->shape[1] != 1 && t->shape[1] != p->H)))
            status =
                pe_fail(err, POSENC_SHAPE, "attend: allowed must be U8 [1 or %lld, 1 or %lld, %lld, %lld]",
                        (long long)p->B, (long long)p->H, (long long)p->Lq, (long long)p->Lk);
    }
    return status;
}

/* Positions of several coordinates have no order: tokens are counted instead, which says nothing to an
   encoding by distance. */
static posenc_status count_tokens(const posenc_plan *plan, pe_attention *a, posenc_error *err)
{
    const int N = posenc_rotary_coordinates(plan);
    if (N == 1 || (!a->q_turn.array.data && !a->k_turn.array.data))
        return POSENC_OK;
    if (pe_uses_distance(a->terms) || a->terms->hook.visit || a->terms->prepare.fill)
        return pe_fail(
            err, POSENC_UNSUPPORTED,
            "attend: positions with %d coordinates turn q and k, but %s also has a part that goes by one "
            "number; give a range, or leave that part out",
            N, plan->e->spec);
    a->q_pos = posenc_positions_range((double)(a->sizes.Lk - a->sizes.Lq), 1);
    a->k_pos = posenc_positions_range(0, 1);
    return POSENC_OK;
}

static posenc_status check_positions(const posenc_plan *plan, pe_attention *a, posenc_error *err)
{
    const pe_problem *p  = &a->sizes;
    a->q_turn            = a->q_pos;
    a->k_turn            = a->k_pos;
    posenc_status status = pe_rotary_positions(plan, &a->q_turn, "attend: q_pos", p->B, p->Lq, err);
    if (!status)
        status = pe_rotary_positions(plan, &a->k_turn, "attend: k_pos", p->B, p->Lk, err);
    return status ? status : count_tokens(plan, a, err);
}

static posenc_status find_distances(const posenc_plan *plan, pe_attention *a, posenc_error *err)
{
    const pe_problem *p      = &a->sizes;
    posenc_status     status = check_positions(plan, a, err);
    if (status)
        return status;
    a->reach = pe_reach_of(a->mask, plan->options.window);
    pe_distances_find(&a->distances, &a->q_pos, &a->k_pos, p->B, p->Lq, p->Lk,
                      a->unmasked ? pe_reach_of(POSENC_MASK_NONE, 0) : a->reach);
    if (!pe_uses_distance(a->terms))
        return POSENC_OK;
    if (!a->distances.whole)
        return pe_fail(err, POSENC_RANGE,
                       "attend: %s acts by whole distances; positions must be whole numbers", plan->e->spec);
    if (a->distances.count > a->max_distances)
        return pe_fail(
            err, POSENC_RANGE,
            "attend: the positions span %lld distances but the plan holds %lld; set options.max_distances",
            (long long)a->distances.count, (long long)a->max_distances);
    return POSENC_OK;
}

/* Rooms with tables that end somewhere see where this run goes, item by item. */
static posenc_status check_reach(const posenc_plan *plan, const pe_attention *a, posenc_error *err)
{
    const pe_problem   *p       = &a->sizes;
    const pe_distances *d       = &a->distances;
    const int64_t       batches = pe_position_pairs(&a->q_pos, &a->k_pos, p->B);
    for (int place = 0; place < POSENC_PLACES; place++) {
        const pe_resolved *part = &plan->parts[place];
        for (int64_t b = 0; part->room && part->room->reach && p->Lq && p->Lk && d->count && b < batches;
             b++) {
            const pe_extent q          = pe_position_extent(&a->q_pos, b, p->Lq),
                            k          = pe_position_extent(&a->k_pos, b, p->Lk);
            const pe_span       span   = {.q_low  = q.low,
                                          .q_high = q.high,
                                          .k_low  = k.low,
                                          .k_high = k.high,
                                          .t_low  = d->low,
                                          .t_high = d->low + d->count - 1,
                                          .whole  = d->whole};
            const posenc_status status = part->room->reach(&part->problem, &span, err);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

posenc_status pe_attend_check_in(const posenc_plan *plan, const posenc_attend_in *in, pe_attention *a,
                                 int needs_v, posenc_error *err)
{
    posenc_status status = check_heads(plan, in, err);
    if (status)
        return status;
    pe_problem *p      = &a->sizes;
    p->B               = in->q.shape[0];
    p->Lq              = in->q.shape[2];
    p->Lk              = in->k.shape[2];
    const int64_t v[4] = {p->B, p->G, p->Lk, p->Dv};
    if (needs_v)
        status = check_rows(&in->v, "attend: v", v, err);
    if (!status)
        status = check_limit("the batch", p->B, plan->dims.B, err);
    if (!status)
        status = check_limit("the number of queries", p->Lq, plan->dims.Lq, err);
    if (!status)
        status = check_limit("the number of keys", p->Lk, plan->dims.Lk, err);
    a->q           = in->q;
    a->k           = in->k;
    a->v           = needs_v ? in->v : (posenc_tensor){0};
    a->q_pos       = pe_plain_positions(&in->q_pos);
    a->k_pos       = pe_plain_positions(&in->k_pos);
    a->key_allowed = in->key_allowed;
    a->allowed     = in->allowed;
    a->q_segments  = in->q_segments;
    a->k_segments  = in->k_segments;
    if (!status)
        status = check_masks(a, in, err);
    if (!status)
        status = find_distances(plan, a, err);
    return status ? status : check_reach(plan, a, err);
}

posenc_status pe_attend_check_start(const posenc_plan *plan, const void *in, const void *out, const char *who,
                                    posenc_error *err)
{
    if (!plan || !in || !out)
        return pe_fail(err, POSENC_ARGUMENT, "%s: plan, inputs and outputs must not be NULL", who);
    if (plan->dims.D == 0)
        return pe_fail(err, POSENC_UNSUPPORTED, "%s: the plan was made without heads; give dims.H and dims.D",
                       who);
    return POSENC_OK;
}

static posenc_status check_lse(const pe_attention *a, const posenc_tensor *lse, posenc_error *err)
{
    const int64_t shape[3] = {a->sizes.B, a->sizes.H, a->sizes.Lq};
    posenc_status status   = pe_check_output(lse, "attend: lse", 3, shape, err);
    if (!status && lse->dtype != POSENC_F32 && lse->dtype != POSENC_F64)
        status =
            pe_fail(err, POSENC_DTYPE, "attend: lse must be F32 or F64, not %s", pe_dtype_name(lse->dtype));
    return status;
}

posenc_status pe_attend_check_causal(const posenc_plan *plan, posenc_error *err)
{
    for (int place = 0; place < POSENC_PLACES; place++) {
        const pe_encoding *room = plan->parts[place].room;
        if (room && room->info.causal_only && !(plan->options.mask & POSENC_MASK_CAUSAL))
            return pe_fail(
                err, POSENC_UNSUPPORTED,
                "attend: %s has a meaning with a causal mask only (%s); plan with POSENC_MASK_CAUSAL",
                room->info.name, room->info.why_causal);
    }
    return POSENC_OK;
}

posenc_status pe_attend_check_gradients(const pe_attention *a, const posenc_attend_grad *g, posenc_error *err)
{
    const pe_problem *p    = &a->sizes;
    const int64_t     o[4] = {p->B, p->H, p->Lq, p->Dv}, q[4] = {p->B, p->H, p->Lq, a->D},
                  k[4] = {p->B, p->G, p->Lk, a->D}, v[4] = {p->B, p->G, p->Lk, p->Dv};
    posenc_status status = check_rows(&g->o, "attend: o", o, err);
    if (!status)
        status = check_rows(&g->dout, "attend: dout", o, err);
    if (!status)
        status = check_lse(a, &g->lse, err);
    if (!status && g->dq.data)
        status = check_output_rows(&g->dq, "attend: dq", q, err);
    if (!status && g->dk.data)
        status = check_output_rows(&g->dk, "attend: dk", k, err);
    if (!status && g->dv.data)
        status = check_output_rows(&g->dv, "attend: dv", v, err);
    return status;
}

posenc_status pe_attend_check_out(const pe_attention *a, const posenc_attend_out *out, posenc_error *err)
{
    const int64_t o[4]   = {a->sizes.B, a->sizes.H, a->sizes.Lq, a->sizes.Dv};
    posenc_status status = check_output_rows(&out->o, "attend: o", o, err);
    if (!status && out->lse.data)
        status = check_lse(a, &out->lse, err);
    return status;
}

posenc_status pe_attend_check_bias(const posenc_plan *plan, const posenc_attend_in *in,
                                   const posenc_tensor *bias, pe_attention *a, posenc_error *err)
{
    const int64_t shape[3] = {plan->dims.H, -1, -1};
    posenc_status status   = pe_check_output(bias, "bias", 3, shape, err);
    if (status)
        return status;
    a->sizes.B  = 1;
    a->sizes.Lq = bias->shape[1];
    a->sizes.Lk = bias->shape[2];
    a->q_pos    = pe_plain_positions(&in->q_pos);
    a->k_pos    = pe_plain_positions(&in->k_pos);
    status      = check_limit("the number of queries", a->sizes.Lq, plan->dims.Lq, err);
    if (!status)
        status = check_limit("the number of keys", a->sizes.Lk, plan->dims.Lk, err);
    if (!status)
        status = find_distances(plan, a, err);
    return status ? status : check_reach(plan, a, err);
}

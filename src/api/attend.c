/* SPDX-License-Identifier: MIT */
/*
 * attend.c: posenc_attend and posenc_bias, their backward, and posenc_scores
 *
 * All checks come before the first write; a check only refuses, in one sentence. Then the run, a
 * pe_attention, goes to the executor: the plan's, or by the storage of q where the plan leaves it open.
 */
#include <math.h>
#include <posenc/scores.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/objects.h"
#include "base/overlap.h"
#include "base/positions.h"
#include "base/sizes.h"
#include "base/tensor.h"
#include "engine/attend.h"

/* Whose parameters and token inputs attention needs. */
enum {
    PLACES =
        1 << POSENC_PLACE_ROTARY | 1 << POSENC_PLACE_SCORE | 1 << POSENC_PLACE_WEIGHT | 1 << PE_PLACE_COMMON
};

/* ---- what a caller gives, looked at before the first write ---- */

pe_attention pe_attend_of(const posenc_plan *plan)
{
    const posenc_dims *d = &plan->dims;
    pe_attention       a = {0};
    a.sizes              = (pe_problem){d->B,       d->H, d->G, d->Lq, d->Lk,         d->D, d->Dv,
                                        d->d_model, d->L, NULL, 0,     plan->kernels, NULL};
    a.D                  = d->D;
    a.terms              = &plan->terms;
    a.temper_on          = plan->terms.temper.on;
    a.has_sink           = plan->terms.sink != PE_NONE || plan->terms.sink_token != PE_NONE;
    a.softcap            = plan->terms.softcap;
    a.has_rest           = plan->terms.stick.to_self;
    if (plan->terms.prepare.fill)
        a.sizes.D = plan->terms.prepare.width;
    a.mask          = plan->options.mask;
    a.tile_q        = plan->options.tile_q;
    a.tile_k        = plan->options.tile_k;
    a.max_distances = plan->max_distances;
    a.kernels       = plan->kernels;
    a.products      = plan->options.products;
    memcpy(a.whole_keys, plan->whole_keys, sizeof a.whole_keys);
    return a;
}

/* The inputs as this version has them, or NULL (pe_given_read). `who` opens the sentence, here and below. */
static const posenc_attend_in *read_in(posenc_attend_in *copy, const posenc_attend_in *in, const char *who,
                                       posenc_error *err)
{
    return pe_given_read(copy, in, PE_GIVEN(posenc_attend_in, q), who, "in", err);
}

/* What the plan knows of the run, which must have heads. */
static posenc_status open_run(pe_attention *a, const posenc_plan *plan, const char *who, posenc_error *err)
{
    if (plan->dims.D == 0)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "%s: the plan was made without heads; give dims.H and dims.D", who);
    *a = pe_attend_of(plan);
    return POSENC_OK;
}

static posenc_status check_floats(const posenc_tensor *t, const char *who, int ndim, const int64_t *shape,
                                  posenc_error *err)
{
    const posenc_status status = pe_tensor_check(t, who, ndim, shape, err);
    if (!status && !pe_tensor_is_float(t->dtype))
        return pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be F32, F64, F16 or BF16", who,
                       pe_tensor_dtype_name(t->dtype));
    return status;
}

static posenc_status check_last_axis(const posenc_tensor *t, const char *who, posenc_error *err)
{
    if (t->stride[3] == 1)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SHAPE,
                   "%s: its last axis has stride %lld; it must be 1 (copy it, or swap axes by strides)", who,
                   (long long)t->stride[3]);
}

static posenc_status check_rows(const posenc_tensor *t, const char *who, const int64_t shape[4],
                                posenc_error *err)
{
    const posenc_status status = check_floats(t, who, 4, shape, err);
    return status ? status : check_last_axis(t, who, err);
}

/* Keys or values: quantised rows too, whose blocks must begin where rows do; their scale [G]. */
static posenc_status check_keys(const posenc_tensor *t, const posenc_tensor *scale, const char *who,
                                const char *scale_name, const int64_t shape[4], posenc_error *err)
{
    posenc_status status = pe_tensor_is_quantised(t->dtype) ? pe_tensor_check(t, who, 4, shape, err)
                                                            : check_floats(t, who, 4, shape, err);
    if (!status)
        status = check_last_axis(t, who, err);
    for (int a = 0; !status && t->dtype == POSENC_DTYPE_Q8_0 && a < 4; a++)
        if ((a == 3 ? t->shape[a] : t->shape[a] > 1 ? t->stride[a] : 0) % PE_HALF_Q8 != 0)
            status =
                pe_fail(err, POSENC_ERROR_SHAPE,
                        "%s is Q8_0, blocks of %d numbers: its width and strides must be multiples of %d",
                        who, PE_HALF_Q8, PE_HALF_Q8);
    if (status || !scale->data)
        return status;
    if (t->dtype != POSENC_DTYPE_F8_E4M3)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "%s belongs to rows of F8_E4M3; leave it empty",
                       scale_name);
    status = pe_tensor_check(scale, scale_name, 1, &shape[1], err);
    if (!status && scale->dtype != POSENC_DTYPE_F32)
        status = pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be F32", scale_name,
                         pe_tensor_dtype_name(scale->dtype));
    return status;
}

static posenc_status check_output_rows(const posenc_tensor *t, const char *who, const int64_t shape[4],
                                       posenc_error *err)
{
    const posenc_status status = check_rows(t, who, shape, err);
    return status ? status : pe_tensor_check_output(t, who, 4, shape, err);
}

static posenc_status check_limit(const char *what, int64_t size, int64_t most, posenc_error *err)
{
    if (size <= most)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_RANGE, "attend: %s is %lld but the plan was made for at most %lld", what,
                   (long long)size, (long long)most);
}

static posenc_status check_heads(const posenc_plan *plan, const posenc_attend_in *in, posenc_error *err)
{
    const int64_t q[4] = {-1, plan->dims.H, -1, plan->dims.D};
    if (in->q.ndim == 4 && in->q.shape[1] != plan->dims.H && in->q.shape[2] == plan->dims.H)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "attend: q has %lld heads on axis 1, and the plan %lld; for [B,L,H,D] take "
                       "posenc_tensor_from_blhd",
                       (long long)in->q.shape[1], (long long)plan->dims.H);
    posenc_status status = check_rows(&in->q, "attend: q", q, err);
    if (status)
        return status;
    const int64_t k[4] = {pe_tensor_is_given(&in->k_pages) ? -1 : in->q.shape[0], plan->dims.G, -1,
                          plan->dims.D};
    status             = check_keys(&in->k, &in->k_scale, "attend: k", "attend: k_scale", k, err);
    return status ? status : pe_items_check_pages(in, err);
}

/* Segments are needed by their mask; an encoding may see them, and sees one segment where there are none. */
static posenc_status check_segments(const pe_attention *a, const posenc_tensor *t, const char *who, int64_t L,
                                    posenc_error *err)
{
    const int64_t shape[2] = {-1, L};
    if (!t->data && !(a->mask & POSENC_MASK_SEGMENTS))
        return POSENC_OK;
    const posenc_status status = pe_tensor_check(t, who, 2, shape, err);
    if (status)
        return status;
    if ((t->shape[0] != 1 && t->shape[0] != a->sizes.B) ||
        (!pe_tensor_is_whole(t->dtype) && t->dtype != POSENC_DTYPE_U8))
        return pe_fail(err, POSENC_ERROR_SHAPE, "%s must be I64, I32 or U8 for 1 or %lld items", who,
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
        status                 = pe_tensor_check(t, "attend: key_allowed", 2, key, err);
        if (!status && (t->dtype != POSENC_DTYPE_U8 || (t->shape[0] != 1 && t->shape[0] != p->B)))
            status = pe_fail(err, POSENC_ERROR_SHAPE, "attend: key_allowed must be U8 for 1 or %lld items",
                             (long long)p->B);
    }
    if (!status)
        status = check_segments(a, &in->q_segments, "attend: q_segments", p->Lq, err);
    if (!status)
        status = check_segments(a, &in->k_segments, "attend: k_segments", p->Lk, err);
    if (!status && (a->mask & POSENC_MASK_EXPLICIT)) {
        const posenc_tensor *t = &in->allowed;
        status                 = pe_tensor_check(t, "attend: allowed", 4, all, err);
        if (!status && (t->dtype != POSENC_DTYPE_U8 || (t->shape[0] != 1 && t->shape[0] != p->B) ||
                        (t->shape[1] != 1 && t->shape[1] != p->H)))
            status = pe_fail(err, POSENC_ERROR_SHAPE,
                             "attend: allowed must be U8 [1 or %lld, 1 or %lld, %lld, %lld]", (long long)p->B,
                             (long long)p->H, (long long)p->Lq, (long long)p->Lk);
    }
    return status;
}

/* Positions of several coordinates have no order: tokens are counted instead, which has no meaning for
   an encoding by distance. A score part with coordinates has as many as a rotation beside it. */
static posenc_status count_tokens(const posenc_plan *plan, pe_attention *a, posenc_error *err)
{
    const int N = pe_plan_coordinates(plan), of_score = pe_plan_score_coordinates(plan);
    if ((N == 1 && of_score == 1) || (!a->q_coordinates.array.data && !a->k_coordinates.array.data))
        return POSENC_OK;
    if (of_score != 1 && of_score != N)
        return pe_fail(
            err, POSENC_ERROR_UNSUPPORTED,
            "attend: %s rotates by %d coordinates of a position and has scores by %d; give a range, "
            "or settings for as many",
            plan->e->spec, N, of_score);
    if (pe_uses_distance(a->terms) || a->terms->prepare.fill || (a->terms->hook.visit && of_score != N))
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "attend: positions have %d coordinates, but a part of %s needs one number per "
                       "position; give a range, or leave that part out",
                       N, plan->e->spec);
    a->q_pos = posenc_positions_range((double)(a->sizes.Lk - a->sizes.Lq), 1);
    a->k_pos = posenc_positions_range(0, 1);
    return POSENC_OK;
}

/* Rooms with tables that end somewhere see where this run goes, item by item. Where masks leave no distance,
   only rooms that look at single positions read anything. */
static posenc_status check_reach(const posenc_plan *plan, const pe_attention *a, posenc_error *err)
{
    const pe_problem   *p       = &a->sizes;
    const pe_distances *d       = &a->distances;
    const int64_t       batches = pe_positions_pair_batches(&a->q_pos, &a->k_pos, p->B);
    const int           none    = d->whole && !d->count && !a->terms->prepare.fill && !a->terms->hook.visit;
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const pe_resolved *part = &plan->parts[place];
        if (!part->room || !part->room->attention.reach)
            continue;
        for (int64_t b = 0; p->Lq && p->Lk && !none && b < batches; b++) {
            const pe_extent q          = pe_positions_extent(&a->q_pos, b, p->Lq),
                            k          = pe_positions_extent(&a->k_pos, b, p->Lk);
            const pe_span       span   = {.q_low  = q.low,
                                          .q_high = q.high,
                                          .k_low  = k.low,
                                          .k_high = k.high,
                                          .t_low  = d->low,
                                          .t_high = d->low + d->count - 1,
                                          .whole  = d->whole};
            const posenc_status status = part->room->attention.reach(&part->problem, &span, err);
            if (status)
                return status;
        }
    }
    return POSENC_OK;
}

/* Is there no query, or no key that one could see? */
static int is_empty(const pe_attention *a)
{
    return !a->sizes.B || !a->sizes.Lq || !a->sizes.Lk;
}

static int uses_reference(const posenc_plan *plan, posenc_dtype q)
{
    return plan->options.executor == POSENC_EXECUTOR_REFERENCE ||
           (plan->options.executor == POSENC_EXECUTOR_AUTO && q == POSENC_DTYPE_F64);
}

/* The farthest that a row stands from the middle of its tile; of arrays, from any row of two tiles. */
static double apart(const posenc_positions *pos, int64_t B, int64_t L)
{
    double most = (double)(pe_smaller(L, PE_GROWN_ROWS) / 2) * fabs(pos->step);
    for (int64_t b = 0; pos->array.data && b < B; b++)
        for (int64_t first = 0; first < L; first += PE_GROWN_ROWS) {
            double low = INFINITY, high = -INFINITY;
            for (int64_t s = first; s < pe_smaller(L, first + 2 * PE_GROWN_ROWS); s++) {
                const double x = pe_positions_at(pos, b, s);
                low            = fmin(low, x);
                high           = fmax(high, x);
            }
            most = fmax(first || b ? most : 0, high - low);
        }
    return most;
}

/* Float holds what decays along a tile, not what has all but vanished within one. */
static posenc_status check_growth(const posenc_plan *plan, const pe_attention *a, posenc_error *err)
{
    const pe_rotary *rotary = &plan->rotary;
    double           most   = 0;
    for (int64_t m = 0; rotary->growth && m < rotary->M; m++)
        most = fmax(most, fabs(rotary->growth[m]));
    if (most == 0 || uses_reference(plan, a->q.dtype))
        return POSENC_OK;
    const double far = fmax(apart(&a->q_pos, pe_positions_batches(&a->q_pos), a->sizes.Lq),
                            apart(&a->k_pos, pe_positions_batches(&a->k_pos), a->sizes.Lk));
    if (most * far <= PE_MOST_GROWTH)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_RANGE,
        "attend: %s decays by a factor of e^%.3g between positions of neighbours that are %.3g apart; "
        "float holds e^%d: take POSENC_EXECUTOR_REFERENCE",
        plan->e->spec, most * far, far, PE_MOST_GROWTH);
}

/* Self-Extend and DCA divide positions into blocks. */
static posenc_status check_map(const posenc_plan *plan, const pe_attention *a, posenc_error *err)
{
    const posenc_positions *pos[2]  = {&a->q_pos, &a->k_pos};
    const int64_t           L[2]    = {a->sizes.Lq, a->sizes.Lk};
    const char *const       names[] = {"q_pos", "k_pos"};
    if (plan->rotary.map.kind != PE_SELF_EXTEND && plan->rotary.map.kind != PE_DCA)
        return POSENC_OK;
    for (int side = 0; side < 2; side++)
        for (int64_t b = 0; b < pe_positions_batches(pos[side]); b++) {
            const pe_extent e = pe_positions_extent(pos[side], b, L[side]);
            if (!e.whole || e.low < 0)
                return pe_fail(err, POSENC_ERROR_RANGE,
                               "attend: %s runs from %g to %g; for %s positions must be whole numbers, not "
                               "below 0",
                               names[side], e.low, e.high, plan->e->spec);
        }
    return POSENC_OK;
}

/* Where queries and keys are, and which distances they span; whether the encoding can do with them. `keys`:
   those that have positions; what stands at those beyond a length is not looked at. */
static posenc_status find_distances(const posenc_plan *plan, const posenc_attend_in *in, pe_attention *a,
                                    int64_t keys, posenc_error *err)
{
    const pe_problem *p = &a->sizes;
    const int         N = posenc_rotary_coordinates(plan);
    posenc_status     status;
    a->q_pos         = pe_positions_with_defaults(&in->q_pos);
    a->k_pos         = pe_positions_with_defaults(&in->k_pos);
    a->q_coordinates = pe_rotary_read_positions(plan, &in->q_pos);
    a->k_coordinates = pe_rotary_read_positions(plan, &in->k_pos);
    if ((status = pe_positions_check(&a->q_coordinates, "attend: q_pos", p->B, p->Lq, N, err)) ||
        (status = pe_positions_check_some(&a->k_coordinates, "attend: k_pos", p->B, keys, N, p->Lk, err)) ||
        (status = count_tokens(plan, a, err)) || is_empty(a) || (status = check_growth(plan, a, err)))
        return status;
    a->reach = pe_positions_reach(a->mask, plan->options.window);
    pe_positions_distances(&a->distances, &a->q_pos, &a->k_pos, p->B, p->Lq, p->Lk,
                           a->unmasked ? pe_positions_reach(POSENC_MASK_NONE, 0) : a->reach);
    if ((status = pe_tokens_check_order(a, plan, "attend", err)) || (status = check_map(plan, a, err)))
        return status;
    if (!pe_uses_distance(a->terms))
        return check_reach(plan, a, err);
    if (!a->distances.whole)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "attend: %s depends on whole distances; positions must be whole numbers",
                       plan->e->spec);
    if (a->distances.count > a->max_distances)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "attend: the positions span %lld distances but the plan was made for %lld; raise "
                       "options.max_distances",
                       (long long)a->distances.count, (long long)a->max_distances);
    return check_reach(plan, a, err);
}

/* What the plan does not ask for would be ignored. */
static posenc_status check_unasked(const posenc_plan *plan, const posenc_attend_in *in, posenc_error *err)
{
    const int mask = plan->options.mask;
    if (in->key_allowed.data && !(mask & POSENC_MASK_KEY_PADDING))
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "attend: key_allowed is given, but the plan's mask has no POSENC_MASK_KEY_PADDING; add "
            "it, or leave key_allowed empty");
    if (in->allowed.data && !(mask & POSENC_MASK_EXPLICIT))
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "attend: allowed is given, but the plan's mask has no POSENC_MASK_EXPLICIT; add it, or "
            "leave allowed empty");
    if ((in->q_segments.data || in->k_segments.data) && !(mask & POSENC_MASK_SEGMENTS) &&
        plan->terms.G == PE_NONE) /* else the encoding sees them */
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "attend: %s is given, but the plan's mask has no POSENC_MASK_SEGMENTS; add it, or leave "
            "%s empty",
            in->q_segments.data ? "q_segments" : "k_segments",
            in->q_segments.data ? "q_segments" : "k_segments");
    return POSENC_OK;
}

/* Tensors, masks and segments of a run. */
static posenc_status check_in(const posenc_plan *plan, const posenc_attend_in *in, const pe_attention *a,
                              int needs_v, posenc_error *err)
{
    const pe_problem *p      = &a->sizes;
    const int64_t     v[4]   = {in->k.shape[0], p->G, in->k.shape[2], p->Dv};
    posenc_status     status = check_heads(plan, in, err);
    if (status || (status = check_unasked(plan, in, err)) ||
        (needs_v && (status = check_keys(&in->v, &in->v_scale, "attend: v", "attend: v_scale", v, err))) ||
        (status = check_limit("the batch", p->B, plan->dims.B, err)) ||
        (status = check_limit("the number of queries", p->Lq, plan->dims.Lq, err)) ||
        (!pe_items_apart(in) && (status = check_limit("the number of keys", p->Lk, plan->dims.Lk, err))))
        return status;
    return check_masks(a, in, err);
}

/* The inputs of a run as they came, then what is wrong with them. */
static posenc_status take_tensors(pe_attention *a, const posenc_plan *plan, const posenc_attend_in *in,
                                  int needs_v, posenc_error *err)
{
    a->sizes.B                   = in->q.shape[0];
    a->sizes.Lq                  = in->q.shape[2];
    a->sizes.Lk                  = pe_items_keys(in);
    a->q                         = in->q;
    a->k                         = in->k;
    a->v                         = needs_v ? in->v : (posenc_tensor){0};
    a->key_allowed               = a->mask & POSENC_MASK_KEY_PADDING ? in->key_allowed : (posenc_tensor){0};
    a->allowed                   = in->allowed;
    a->q_segments                = in->q_segments;
    a->k_segments                = in->k_segments;
    a->k_scale                   = in->k_scale;
    a->v_scale                   = in->v_scale;
    const pe_tokens_given tokens = {in->tokens, in->sums, NULL, a->sizes.Lk, PLACES, "attend"};
    const posenc_status   status = check_in(plan, in, a, needs_v, err);
    return status ? status : pe_tokens_take(a, plan, &tokens, err);
}

/* And which distances they span. A batch whose items are apart has one item here. */
static posenc_status take_in(pe_attention *a, const posenc_plan *plan, const posenc_attend_in *in,
                             int needs_v, posenc_error *err)
{
    const posenc_status status = take_tensors(a, plan, in, needs_v, err);
    if (status)
        return status;
    a->sizes.Lk = pe_items_length(in, 0);
    if (pe_tensor_is_given(&in->k_pages)) {
        a->pages           = in->k_pages; /* of one item: [P] */
        a->pages.ndim      = 1;
        a->pages.shape[0]  = in->k_pages.shape[1];
        a->pages.stride[0] = in->k_pages.stride[1];
    }
    return find_distances(plan, in, a, pe_items_keys(in), err);
}

static posenc_status check_lse(const pe_attention *a, const posenc_tensor *lse, const char *who,
                               int is_output, posenc_error *err)
{
    const int64_t shape[3] = {a->sizes.B, a->sizes.H, a->sizes.Lq};
    posenc_status status   = is_output ? pe_tensor_check_output(lse, who, 3, shape, err)
                                       : pe_tensor_check(lse, who, 3, shape, err);
    if (!status && lse->dtype != POSENC_DTYPE_F32 && lse->dtype != POSENC_DTYPE_F64)
        status = pe_fail(err, POSENC_ERROR_DTYPE, "%s must be F32 or F64, not %s", who,
                         pe_tensor_dtype_name(lse->dtype));
    return status;
}

/* Only scores, and rotations, may be asked for without a mask; attention that sees the future may not. */
static posenc_status check_causal(const posenc_plan *plan, posenc_error *err)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const pe_encoding *room = plan->parts[place].room;
        if (room &&
            (room->sees_future ? !room->sees_future(plan->parts[place].set) : room->info.causal_only) &&
            !(plan->options.mask & POSENC_MASK_CAUSAL))
            return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                           "attend: %s works only with a causal mask (%s); plan with POSENC_MASK_CAUSAL",
                           room->info.name, room->info.why_causal);
    }
    return POSENC_OK;
}

/* The backward reads keys where they lie and writes their gradients as they lie. */
static posenc_status check_trainable(const posenc_attend_in *in, posenc_error *err)
{
    if (in->sums)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "attend: the backward takes token inputs, not their sums; leave in.sums NULL");
    if (pe_tensor_is_given(&in->k_pages))
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "attend: the backward takes no pages; give k and v in rows");
    if (pe_tensor_is_quantised(in->k.dtype) || pe_tensor_is_quantised(in->v.dtype))
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                       "attend: the backward takes no quantised rows; give k and v in F32, F64, F16 or BF16");
    return POSENC_OK;
}

/* dk and dv have all keys, of which a length may leave some. */
static posenc_status check_shapes_back(const pe_attention *a, const posenc_attend_grad *g, int64_t keys,
                                       posenc_error *err)
{
    const pe_problem *p    = &a->sizes;
    const int64_t     o[4] = {p->B, p->H, p->Lq, p->Dv}, q[4] = {p->B, p->H, p->Lq, a->D},
                  k[4] = {p->B, p->G, keys, a->D}, v[4] = {p->B, p->G, keys, p->Dv};
    posenc_status status;
    if ((status = check_rows(&g->o, "attend: o", o, err)) ||
        (status = check_rows(&g->dout, "attend: dout", o, err)) ||
        (status = check_lse(a, &g->lse, "attend: lse", 0, err)) ||
        (g->dlse.data && (status = check_lse(a, &g->dlse, "attend: dlse", 0, err))) ||
        (g->dq.data && (status = check_output_rows(&g->dq, "attend: dq", q, err))) ||
        (g->dk.data && (status = check_output_rows(&g->dk, "attend: dk", k, err))) ||
        (g->dv.data && (status = check_output_rows(&g->dv, "attend: dv", v, err))))
        return status;
    return POSENC_OK;
}

/* For a bias or its cotangent, whose own shape says how many queries and keys there are. */
static posenc_status check_bias(const posenc_plan *plan, const posenc_tensor *bias, int is_output,
                                posenc_error *err)
{
    const int64_t shape[3] = {plan->dims.H, -1, -1};
    posenc_status status   = is_output ? pe_tensor_check_output(bias, "bias", 3, shape, err)
                                       : check_floats(bias, "bias: dbias", 3, shape, err);
    if (!status)
        status = check_limit("the number of queries", bias->shape[1], plan->dims.Lq, err);
    return status ? status : check_limit("the number of keys", bias->shape[2], plan->dims.Lk, err);
}

/* ---- execution ---- */

/* Growth is a matter of pairs, not of rows: rows are rotated without it. */
static void set_rotation(pe_attention *a, const pe_run_rotation *rotation)
{
    a->rotary      = rotation->queries;
    a->rotary_keys = rotation->keys;
    a->grown       = rotation->queries && rotation->queries->growth ? rotation->queries : NULL;
    if (!a->grown)
        return;
    a->plain[0]        = *rotation->queries;
    a->plain[1]        = *rotation->keys;
    a->plain[0].growth = a->plain[1].growth = NULL;
    a->rotary                               = &a->plain[0];
    a->rotary_keys                          = &a->plain[1];
}

/* Parameters into the workspace, and the rotation made of them; counts on an arena without memory. */
static void load(pe_attention *a, pe_numbers *numbers, pe_run_rotation *rotation, const posenc_plan *plan,
                 const pe_numbers_of *of, double length, pe_arena *arena)
{
    pe_numbers_load(numbers, plan, of, arena);
    pe_rotary_make(rotation, plan, numbers, length, arena);
    set_rotation(a, rotation);
    a->parts[PE_SCORE]  = pe_numbers_part(plan, POSENC_PLACE_SCORE, numbers, of->dparams != NULL);
    a->parts[PE_WEIGHT] = pe_numbers_part(plan, POSENC_PLACE_WEIGHT, numbers, of->dparams != NULL);
    a->parts[PE_COMMON] = pe_numbers_part(plan, PE_PLACE_COMMON, numbers, of->dparams != NULL);
}

static pe_numbers_use use_of(int run, int64_t Lq)
{
    return run == POSENC_RUN_ATTEND_BACKWARD || run == POSENC_RUN_BIAS_BACKWARD ? PE_NUMBERS_BOTH
           : Lq > POSENC_DECODE_QUERIES                                         ? PE_NUMBERS_FORWARD
                                                                                : PE_NUMBERS_FEW;
}

/* No run yet, but what is known of all runs of a size; run 0 is posenc_bias. */
typedef struct any_run {
    pe_attention    a;
    pe_numbers      numbers;
    pe_run_rotation rotation;
    pe_arena        arena; /* counts */
} any_run;

static void open_any(any_run *x, const posenc_plan *plan, const pe_run_size *of, int run)
{
    x->arena      = (pe_arena){0};
    x->a          = pe_attend_of(plan);
    x->a.sizes.B  = of->B;
    x->a.sizes.Lq = of->Lq;
    x->a.sizes.Lk = of->Lk;
    x->a.team     = (pe_team){.threads = of->threads};
    load(&x->a, &x->numbers, &x->rotation, plan,
         &(pe_numbers_of){.places = PLACES, .use = use_of(run, of->Lq)}, 0, &x->arena);
}

/* Of a run whose q has this type. */
static size_t bytes_of_type(const posenc_plan *plan, const pe_run_size *of, posenc_dtype q, int run)
{
    const pe_rotated_run any = {.team = {.threads = of->threads}};
    any_run              x;
    open_any(&x, plan, of, run);
    x.a.q.dtype = q;
    if (run == POSENC_RUN_ATTEND_BACKWARD)
        pe_rotary_slopes(plan, &x.numbers, &any, &x.arena);
    pe_attend_lay_out(&x.a, run, uses_reference(plan, q), &x.arena);
    return x.arena.used;
}

size_t pe_attend_bytes(const posenc_plan *plan, const pe_run_size *of, posenc_run run)
{
    static const posenc_dtype ways[] = {POSENC_DTYPE_F32, POSENC_DTYPE_BF16, POSENC_DTYPE_F64};
    size_t most = run == POSENC_RUN_SCORES ? bytes_of_type(plan, of, of->dtype, PE_ATTEND_BIAS) : 0;
    for (int i = 0; i < 3; i++)
        if (of->any_type || of->dtype == ways[i] || (i == 0 && of->dtype == POSENC_DTYPE_F16)) {
            const size_t bytes = bytes_of_type(plan, of, ways[i], (int)run);
            most               = bytes > most ? bytes : most;
        }
    return most;
}

/* Sizes of all runs of few queries on the plan's threads. */
static pe_run_size all_few(const posenc_plan *plan)
{
    const posenc_dims *d  = &plan->dims;
    const int64_t      Lq = d->Lq < POSENC_DECODE_QUERIES ? d->Lq : POSENC_DECODE_QUERIES;
    return (pe_run_size){.B = d->B, .Lq = Lq, .Lk = d->Lk, .threads = plan->threads, .any_type = 1};
}

void pe_attend_know(posenc_plan *plan)
{
    const pe_run_size few = all_few(plan);
    any_run           x;
    open_any(&x, plan, &few, POSENC_RUN_ATTEND);
    for (int reference = 0; reference < 2; reference++)
        plan->whole_keys[reference] = pe_attend_whole_keys(&x.a, reference);
    plan->few_bytes[0] = pe_attend_bytes(plan, &few, POSENC_RUN_ATTEND);
    plan->few_bytes[1] = pe_attend_bytes(plan, &few, POSENC_RUN_SCORES);
}

/* Bytes that a run takes, or where the workspace has them, more: those of all runs like this. */
static size_t enough_bytes(const posenc_plan *plan, const pe_run_size *of, posenc_run run,
                           const posenc_workspace *work)
{
    const size_t few    = plan->few_bytes[run == POSENC_RUN_SCORES];
    const int    is_few = use_of((int)run, of->Lq) == PE_NUMBERS_FEW && of->threads <= plan->threads;
    const int    has    = work && work->size >= offsetof(posenc_workspace, bytes) + sizeof work->bytes;
    return is_few && has && work->bytes >= few ? few : pe_attend_bytes(plan, of, run);
}

/* ---- runs ---- */

/* What the items of a batch that are apart have in common, made with the first of them. */
typedef struct common {
    int        is_made;
    pe_numbers numbers;
    pe_opened  run; /* the workspace after the numbers */
} common;

/* A run, and what it is given. */
typedef struct attend_run {
    const posenc_plan      *plan;
    const posenc_attend_in *in;
    posenc_tensor          *dparams; /* backward only */
    int run; /* POSENC_RUN_ATTEND, _ATTEND_BACKWARD, _BIAS_BACKWARD or _SCORES, or PE_ATTEND_BIAS */
    const posenc_tensor    *S; /* scores, a bias, or its cotangent */
    const char             *who;
    const posenc_workspace *work;
    common                 *items; /* of a batch whose items are apart; NULL: it is whole */
} attend_run;

static pe_param_source source_of(const posenc_attend_in *in)
{
    return (pe_param_source){.params = in->params, .bound = in->bound};
}

/* Token inputs, or the sums given in their place, which an output must be apart from; returns how many. */
static int name_tokens(pe_named to[PE_MAX_TOKENS], const posenc_plan *plan, const posenc_attend_in *in)
{
    for (int i = 0; i < plan->e->token_count; i++) {
        const int is_sum = in->sums && pe_tensor_is_given(&in->sums[i]);
        to[i]            = (pe_named){is_sum ? &in->sums[i] : &in->tokens[i], posenc_token_name(plan->e, i)};
    }
    return plan->e->token_count;
}

/* Gradients of a run that attends, and where they go; *a is the run or a batch of them. */
static posenc_status check_gradients(pe_attention *a, const attend_run *r, const posenc_attend_grad *g,
                                     posenc_error *err)
{
    enum { INPUTS = 7, OUTPUTS = 3 };
    pe_named inputs[INPUTS + PE_MAX_TOKENS] = {{&a->q, "q"},      {&a->k, "k"},     {&a->v, "v"},
                                               {&g->o, "o"},      {&g->lse, "lse"}, {&g->dout, "dout"},
                                               {&g->dlse, "dlse"}},
                             outputs[OUTPUTS + PE_MAX_TOKENS] = {{&g->dq, "attend: dq"},
                                                                 {&g->dk, "attend: dk"},
                                                                 {&g->dv, "attend: dv"}};
    char          names[PE_MAX_TOKENS][PE_MAX_NAME + 32];
    int           outputs_count = OUTPUTS;
    const int     inputs_count  = INPUTS + name_tokens(inputs + INPUTS, r->plan, r->in);
    posenc_status status        = check_shapes_back(a, g, pe_items_keys(r->in), err);
    if (!status)
        status = pe_tokens_take_gradients(
            a, r->plan, &(pe_tokens_given){r->in->tokens, NULL, g->dtokens, 0, PLACES, "attend"}, err);
    for (int i = 0; g->dtokens && i < r->plan->e->token_count; i++) {
        snprintf(names[i], sizeof names[i], "attend: gradient of %s", posenc_token_name(r->plan->e, i));
        outputs[outputs_count++] = (pe_named){&g->dtokens[i], names[i]};
    }
    if (!status)
        status = pe_overlap_check_apart(outputs, outputs_count, inputs, inputs_count, err);
    if (status || !g->dparams || (is_empty(a) && !a->has_sink))
        return status;
    status = pe_numbers_check(r->plan, PLACES, source_of(r->in), g->dparams, r->who, err);
    if (!status)
        status = pe_numbers_check_apart(r->plan, PLACES, g->dparams, outputs, outputs_count, r->who, err);
    return status ? status
                  : pe_numbers_check_apart(r->plan, PLACES, g->dparams, inputs, inputs_count, r->who, err);
}

/* Outputs of the forward run; *a has the sizes. */
static posenc_status check_out(const pe_attention *a, const attend_run *r, const posenc_attend_out *out,
                               posenc_error *err)
{
    const int64_t  o[4]                      = {a->sizes.B, a->sizes.H, a->sizes.Lq, a->sizes.Dv};
    const pe_named outputs[2]                = {{&out->o, "attend: o"}, {&out->lse, "attend: lse"}};
    pe_named       inputs[3 + PE_MAX_TOKENS] = {{&a->q, "q"}, {&a->k, "k"}, {&a->v, "v"}};
    posenc_status  status                    = check_output_rows(&out->o, "attend: o", o, err);
    if (!status && out->lse.data)
        status = check_lse(a, &out->lse, "attend: lse", 1, err);
    return status
               ? status
               : pe_overlap_check_apart(outputs, 2, inputs, 3 + name_tokens(inputs + 3, r->plan, r->in), err);
}

/* The number in params of the sink of heads; -1: it has none. */
static int sink_param(const attend_run *r)
{
    const posenc_encoding *e = r->plan->e;
    for (int n = 0; r->plan->terms.sink != PE_NONE && n < e->param_count; n++)
        if (e->params[n].place == PE_PLACE_COMMON && e->params[n].local == r->plan->terms.sink)
            return n;
    return -1;
}

/* lse of a query that sees no key: its sink, which is parameter n, or (-1) a token input or none. */
static double lonely_lse(const attend_run *r, const pe_attention *a, int n, int64_t b, int64_t h, int64_t i)
{
    double s;
    if (pe_sticks(a))
        return 0;
    if (n < 0)
        return pe_sink_at(a, b, h, i);
    if (r->in->bound)
        return r->in->bound->numbers.par[PE_PLACE_COMMON][r->plan->terms.sink][h];
    const posenc_tensor *t = &r->in->params[n];
    pe_tensor_load_double(&s, (char *)t->data + pe_tensor_bytes(t->dtype, h), t->dtype, 1, 1);
    return s;
}

/* An empty run: no query sees a key. */
static posenc_status see_nothing(const attend_run *r, const pe_attention *a, posenc_error *err)
{
    const posenc_status status =
        a->has_sink ? pe_numbers_check(r->plan, PLACES, source_of(r->in), r->dparams, r->who, err)
                    : POSENC_OK;
    if (status)
        return status;
    const int n = sink_param(r);
    pe_items_clear(&a->o, 0);
    for (int64_t b = 0; a->lse.data && !pe_tensor_is_empty(&a->lse) && b < a->sizes.B; b++)
        for (int64_t h = 0; h < a->sizes.H; h++)
            for (int64_t i = 0; i < a->sizes.Lq; i++) {
                const double lse = lonely_lse(r, a, n, b, h, i);
                pe_tensor_store_double(pe_tensor_element(&a->lse, b, h, i), a->lse.dtype, 1, &lse, 1);
            }
    return pe_done(err);
}

/* Its backward: a sink alone is lse. */
static void see_nothing_back(const attend_run *r, const pe_attention *a)
{
    const int            n = sink_param(r);
    const posenc_tensor *token =
        a->has_sink && n < 0 ? a->dtokens[PE_COMMON][r->plan->terms.sink_token] : NULL;
    for (int i = 0; i < PE_MAX_TOKENS; i++)
        if (a->dtokens[PE_SCORE][i])
            pe_items_clear(a->dtokens[PE_SCORE][i], 0);
    if (a->turn.dtoken)
        pe_items_clear(a->turn.dtoken, 0);
    const posenc_tensor *to = n >= 0 && r->dparams && r->dparams[n].data ? &r->dparams[n] : NULL;
    if (token)
        pe_items_clear(token, 0);
    for (int64_t x = 0; (to || token) && a->dlse.data && x < a->sizes.B * a->sizes.H * a->sizes.Lq; x++) {
        const int64_t i = x % a->sizes.Lq, h = x / a->sizes.Lq % a->sizes.H, b = x / a->sizes.Lq / a->sizes.H;
        const posenc_tensor *t  = to ? to : token;
        char                *at = to ? (char *)to->data + pe_tensor_bytes(to->dtype, h)
                                     : pe_tensor_row(token, b, h / (a->sizes.H / token->shape[1]), i);
        double               dlse, sum;
        pe_tensor_load_double(&dlse, pe_tensor_element(&a->dlse, b, h, i), a->dlse.dtype, 1, 1);
        pe_tensor_load_double(&sum, at, t->dtype, 1, 1);
        sum += dlse;
        pe_tensor_store_double(at, t->dtype, 1, &sum, 1);
    }
}

/* The last of the checks: parameters and workspace. */
static posenc_status open_work(pe_opened *run, const pe_attention *a, const attend_run *r, posenc_error *err)
{
    const posenc_status status = pe_numbers_check(r->plan, PLACES, source_of(r->in), r->dparams, r->who, err);
    if (status)
        return status;
    const pe_run_size size   = {a->sizes.B,  a->sizes.Lq,
                                a->sizes.Lk, pe_run_threads(r->plan, r->work),
                                a->q.dtype,  0};
    const posenc_run  kind   = r->run == PE_ATTEND_BIAS ? POSENC_RUN_SCORES : (posenc_run)r->run;
    const pe_wanted   wanted = {r->who, size.threads, enough_bytes(r->plan, &size, kind, r->work), 0};
    return pe_run_open(run, r->plan, r->work, &wanted, err);
}

/* The workspace, and the parameters as they are by then. */
static posenc_status open_numbers(pe_opened *run, pe_param_source *given, const pe_attention *a,
                                  const attend_run *r, posenc_error *err)
{
    *given = source_of(r->in);
    if (!r->items)
        return open_work(run, a, r, err);
    if (!r->items->is_made) {
        const posenc_status status = open_work(&r->items->run, a, r, err);
        if (status)
            return status;
        const pe_numbers_of of = {PLACES, *given, NULL, use_of(r->run, a->sizes.Lq)};
        pe_numbers_load(&r->items->numbers, r->plan, &of, &r->items->run.arena);
        r->items->is_made = 1;
    }
    given->loaded = &r->items->numbers;
    *run          = r->items->run;
    return POSENC_OK;
}

/* Gradients of parameters; those of the rotary part are made of dq and dk, which are complete now. */
static void add_gradients(const attend_run *r, const pe_attention *a, const pe_numbers *numbers,
                          double length, pe_arena *arena)
{
    const pe_rotated_run sides = {{{&a->q, &a->dq, &a->q_coordinates, a->rotary},
                                   {&a->k, &a->dk, &a->k_coordinates, a->rotary_keys}},
                                  length,
                                  1,
                                  a->team};
    pe_rotary_slopes(r->plan, numbers, &sides, arena);
    pe_numbers_add(numbers, r->plan, r->dparams);
}

/* What every run ends with: parameters, workspace, the rotation; then the executor, and gradients of
   parameters. */
static posenc_status finish(pe_attention *a, const attend_run *r, posenc_error *err)
{
    pe_numbers      numbers;
    pe_run_rotation rotation;
    pe_opened       run;
    pe_param_source given;
    posenc_status   status = open_numbers(&run, &given, a, r, err);
    if (status)
        return status;
    const double length =
        pe_rotary_length(pe_rotary_length(0, &a->q_coordinates, a->sizes.Lq), &a->k_coordinates, a->sizes.Lk);
    load(a, &numbers, &rotation, r->plan,
         &(pe_numbers_of){PLACES, given, r->dparams, use_of(r->run, a->sizes.Lq)}, length, &run.arena);
    if ((status = pe_rotary_check(&rotation, r->plan, r->who, err)))
        return status;
    pe_arena free_memory = run.arena;
    a->team              = run.team;
    a->ready =
        r->in->bound && !r->dparams && r->run != POSENC_RUN_ATTEND_BACKWARD ? &r->in->bound->ready : NULL;
    pe_attend_run(a, r->run, uses_reference(r->plan, a->q.dtype), r->S, &run.arena);
    status = pe_run_done(&run.team, r->who, err);
    if (!status && r->run == POSENC_RUN_ATTEND_BACKWARD)
        add_gradients(r, a, &numbers, length, &free_memory);
    else if (!status && r->run == POSENC_RUN_BIAS_BACKWARD)
        pe_numbers_add(&numbers, r->plan, r->dparams);
    return status;
}

/* dry: only the checks. */
static posenc_status forward(const attend_run *r, const posenc_attend_out *out, int dry, posenc_error *err)
{
    pe_attention  a;
    pe_opened     run;
    posenc_status status;
    if ((status = open_run(&a, r->plan, "attend", err)) || (status = check_causal(r->plan, err)) ||
        (status = take_in(&a, r->plan, r->in, 1, err)) || (status = check_out(&a, r, out, err)))
        return status;
    a.o   = out->o;
    a.lse = out->lse;
    if (dry)
        return is_empty(&a) ? POSENC_OK : open_work(&run, &a, r, err);
    return is_empty(&a) ? see_nothing(r, &a, err) : finish(&a, r, err);
}

/* A batch whose items are apart, as a whole: what holds of its tensors need not be asked of each item. */
static posenc_status take_batch(pe_attention *a, const attend_run *r, posenc_error *err)
{
    const posenc_plan *plan = r->plan;
    posenc_status      status;
    if ((status = open_run(a, plan, "attend", err)) || (status = take_tensors(a, plan, r->in, 1, err)) ||
        (status = pe_items_check_lengths(r->in, err)))
        return status;
    for (int64_t b = 0; b < a->sizes.B && !status; b++)
        status = check_limit("the number of keys", pe_items_length(r->in, b), plan->dims.Lk, err);
    return status;
}

/* Item b of such a batch. dry: only the checks. */
static posenc_status forward_item(const attend_run *r, const posenc_attend_out *out, int64_t b, int dry,
                                  common *items, posenc_error *err)
{
    posenc_tensor           tokens[2 * PE_MAX_TOKENS];
    const posenc_attend_in  item = pe_items_in(r->plan, r->in, b, tokens);
    const posenc_attend_out to   = {sizeof to, pe_items_view(&out->o, b), pe_items_view(&out->lse, b)};
    attend_run              one  = *r;
    one.in                       = &item;
    one.items                    = items;
    return forward(&one, &to, dry, err);
}

/* ---- items side by side ---- */

/* Keys and values of all items that are read sooner than other threads have begun: bytes. */
enum { LITTLE_TOGETHER = 6 << 20 };

/* Items as tasks, each on one thread and in a part of the workspace. */
typedef struct side_by_side {
    const attend_run        *run;
    const posenc_attend_out *out;
    const common            *items; /* made */
    int64_t                  most;  /* keys of an item that is such a task; longer ones have all threads */
    size_t                   part;  /* bytes of a slot, after what items have in common */
    atomic_int               has_stopped;
} side_by_side;

/* Items that have more keys than a thread's share of all would keep one thread busy while others wait. */
static int64_t longest_task(const posenc_attend_in *in, int threads)
{
    int64_t keys = 0;
    for (int64_t b = 0; b < in->q.shape[0]; b++)
        keys += pe_items_length(in, b);
    const posenc_dtype k = in->k.dtype;
    const int64_t row    = pe_tensor_bytes(k, in->k.shape[3]) + pe_tensor_bytes(in->v.dtype, in->v.shape[3]);
    return keys * in->k.shape[1] * row < LITTLE_TOGETHER ? 0 : keys / threads;
}

/* A part for each thread, where the workspace has room for so many: a caller's threads are all or none. */
static int has_parts(side_by_side *s)
{
    const posenc_attend_in *in   = s->run->in;
    const pe_opened        *open = &s->items->run;
    s->part                      = PE_ALIGN;
    for (int64_t b = 0; b < in->q.shape[0]; b++) {
        const pe_run_size size  = {1, in->q.shape[2], pe_items_length(in, b), 1, in->q.dtype, 0};
        const int         is_it = size.Lk && size.Lk <= s->most;
        const size_t      bytes = is_it ? pe_attend_bytes(s->run->plan, &size, POSENC_RUN_ATTEND) : 0;
        s->part                 = bytes > s->part ? bytes : s->part;
    }
    return (s->run->work->bytes - open->arena.used) / s->part >= (size_t)open->team.threads;
}

static void run_item(void *argument, int64_t b, int slot)
{
    side_by_side *s   = argument;
    common        own = *s->items;
    posenc_error  err;
    if (pe_items_length(s->run->in, b) > s->most)
        return;
    own.run.arena.memory += own.run.arena.used + (size_t)slot * s->part;
    own.run.arena.used   = 0;
    own.run.team.threads = 1;
    if (forward_item(s->run, s->out, b, 0, &own, &err))
        atomic_store(&s->has_stopped, 1);
}

/* Those that can be; returns how many keys they have at most, -1 for none. An item that has stopped says why
   when it is run again. */
static int64_t run_side_by_side(const attend_run *r, const posenc_attend_out *out, const common *items)
{
    side_by_side   s    = {.run = r, .out = out, .items = items};
    const pe_team *team = &items->run.team;
    if (!items->is_made || team->threads < 2 || !(s.most = longest_task(r->in, team->threads)) ||
        !has_parts(&s))
        return -1;
    pe_parallel_for(r->in->q.shape[0], team, run_item, &s);
    return s.has_stopped ? -1 : s.most;
}

/* Each item of such a batch; checked all, then run all. The first makes what all have in common. */
static posenc_status forward_items(const attend_run *r, const posenc_attend_out *out, posenc_error *err)
{
    common        items = {0};
    pe_attention  a;
    int64_t       b      = 0;
    posenc_status status = take_batch(&a, r, err);
    if (status || (status = check_out(&a, r, out, err)))
        return status;
    for (; !status && b < a.sizes.B; b++)
        status = forward_item(r, out, b, 1, &items, err);
    for (b = 0; !status && !items.is_made && b < a.sizes.B; b++)
        status = forward_item(r, out, b, 0, &items, err);
    const int64_t done = status ? -1 : run_side_by_side(r, out, &items);
    for (; !status && b < a.sizes.B; b++)
        if (pe_items_length(r->in, b) > done)
            status = forward_item(r, out, b, 0, &items, err);
    return status ? status : pe_done(err);
}

posenc_status posenc_attend(const posenc_plan *plan, const posenc_attend_in *in, const posenc_attend_out *out,
                            const posenc_workspace *work, posenc_error *err)
{
    posenc_attend_in  in_copy;
    posenc_attend_out out_copy;
    if (!plan || !in || !out)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "attend: plan, in and out must not be NULL");
    if (!(in = read_in(&in_copy, in, "attend", err)) ||
        !(out = pe_given_read(&out_copy, out, PE_GIVEN(posenc_attend_out, o), "attend", "out", err)))
        return POSENC_ERROR_ARGUMENT;
    const attend_run run = {.plan = plan, .in = in, .run = POSENC_RUN_ATTEND, .who = "attend", .work = work};
    return pe_items_apart(in) ? forward_items(&run, out, err) : forward(&run, out, 0, err);
}

/* Gates of channels learn from what their queries receive. */
static posenc_status check_wall(const pe_attention *a, const posenc_attend_grad *grad, posenc_error *err)
{
    if (!pe_walls(a) || !a->dtokens[PE_SCORE][a->terms->wall.token] || pe_tensor_is_given(&grad->dq))
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_ARGUMENT,
                   "attend: the gradient of the gates of channels comes from dq; give it");
}

static posenc_status backward(const attend_run *r, const posenc_attend_grad *grad, int dry, posenc_error *err)
{
    const posenc_attend_in *in = r->in;
    pe_attention            a;
    pe_opened               run;
    posenc_status           status;
    if ((status = open_run(&a, r->plan, "attend", err)) || (status = check_causal(r->plan, err)) ||
        (status = take_in(&a, r->plan, in, 1, err)) || (status = check_trainable(in, err)) ||
        (status = check_gradients(&a, r, grad, err)) ||
        (status = pe_rotary_slopes_check(r->plan, grad->dparams, &grad->dq, &grad->dk, "attend", err)) ||
        (a.turn.dtoken && (status = pe_rotary_turns_check(r->plan, &grad->dq, &grad->dk, "attend", err))) ||
        (status = check_wall(&a, grad, err)))
        return status;
    const int nothing = is_empty(&a);
    if (dry)
        return nothing ? POSENC_OK : open_work(&run, &a, r, err);
    a.o    = grad->o;
    a.lse  = grad->lse;
    a.dout = grad->dout;
    a.dlse = grad->dlse;
    a.dq   = grad->dq;
    a.dk   = grad->dk;
    a.dv   = grad->dv;
    for (int i = 0; i < PE_MAX_TOKENS && pe_items_apart(in); i++)
        if (a.dtokens[PE_SCORE][i])
            pe_items_clear(a.dtokens[PE_SCORE][i], 0); /* keys that a length leaves */
    if (a.turn.dtoken && pe_items_apart(in))
        pe_items_clear(a.turn.dtoken, 0);
    if (nothing || pe_items_apart(in)) {
        pe_items_clear(&a.dk, nothing ? 0 : a.sizes.Lk);
        pe_items_clear(&a.dv, nothing ? 0 : a.sizes.Lk);
        pe_items_clear(&a.dq, nothing ? 0 : a.sizes.Lq);
    }
    if (nothing)
        see_nothing_back(r, &a);
    return nothing ? pe_done(err) : finish(&a, r, err);
}

static posenc_status backward_items(const attend_run *r, const posenc_attend_grad *grad, posenc_error *err)
{
    common        items = {0};
    pe_attention  a;
    posenc_status status = take_batch(&a, r, err);
    if (status || (status = check_trainable(r->in, err)) || (status = check_gradients(&a, r, grad, err)))
        return status;
    for (int dry = 1; dry >= 0; dry--)
        for (int64_t b = 0; !status && b < a.sizes.B; b++) {
            posenc_tensor          tokens[2 * PE_MAX_TOKENS], dtokens[PE_MAX_TOKENS];
            const posenc_attend_in item = pe_items_in(r->plan, r->in, b, tokens);
            for (int i = 0; grad->dtokens && i < r->plan->e->token_count; i++)
                dtokens[i] = pe_items_view(&grad->dtokens[i], b);
            const posenc_attend_grad to = {
                .size    = sizeof to,
                .o       = pe_items_view(&grad->o, b),
                .lse     = pe_items_view(&grad->lse, b),
                .dout    = pe_items_view(&grad->dout, b),
                .dlse    = pe_items_view(&grad->dlse, b),
                .dq      = pe_items_view(&grad->dq, b),
                .dk      = pe_items_view(&grad->dk, b),
                .dv      = pe_items_view(&grad->dv, b),
                .dparams = grad->dparams,
                .dtokens = grad->dtokens ? dtokens : NULL,
            };
            attend_run one = *r;
            one.in         = &item;
            one.items      = &items;
            status         = backward(&one, &to, dry, err);
        }
    return status ? status : pe_done(err);
}

posenc_status posenc_attend_backward(const posenc_plan *plan, const posenc_attend_in *in,
                                     const posenc_attend_grad *grad, const posenc_workspace *work,
                                     posenc_error *err)
{
    posenc_attend_in   in_copy;
    posenc_attend_grad grad_copy;
    if (!plan || !in || !grad)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "attend: plan, in and grad must not be NULL");
    if (!(in = read_in(&in_copy, in, "attend", err)) ||
        !(grad = pe_given_read(&grad_copy, grad, PE_GIVEN(posenc_attend_grad, dout), "attend", "grad", err)))
        return POSENC_ERROR_ARGUMENT;
    const attend_run run = {.plan    = plan,
                            .in      = in,
                            .dparams = grad->dparams,
                            .run     = POSENC_RUN_ATTEND_BACKWARD,
                            .who     = "attend",
                            .work    = work};
    return pe_items_apart(in) ? backward_items(&run, grad, err) : backward(&run, grad, 0, err);
}

posenc_status posenc_scores(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *S,
                            const posenc_workspace *work, posenc_error *err)
{
    posenc_attend_in copy;
    pe_attention     a;
    if (!plan || !in || !S)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "scores: plan, in and S must not be NULL");
    if (!(in = read_in(&copy, in, "scores", err)))
        return POSENC_ERROR_ARGUMENT;
    const attend_run run = {
        .plan = plan, .in = in, .run = POSENC_RUN_SCORES, .S = S, .who = "scores", .work = work};
    posenc_status status = open_run(&a, plan, "scores", err);
    if (status)
        return status;
    if (pe_items_apart(in))
        return pe_fail(
            err, POSENC_ERROR_UNSUPPORTED,
            "scores: k_lengths and k_pages are for posenc_attend; give k in rows, an item at a time");
    a.unmasked = 1;
    if (!plan->terms.hook.content &&
        !plan->terms.temper.counts) /* then nothing depends on the mask, and its arrays are not needed */
        a.mask &= plan->terms.drift.kind == PE_DRIFT_GATES || plan->terms.chain.is_given ||
                          plan->terms.wall.is_given || plan->rotary.content
                      ? POSENC_MASK_KEY_PADDING
                      : POSENC_MASK_NONE;
    if ((status = take_in(&a, plan, in, 0, err)))
        return status;
    const int64_t shape[4]                  = {a.sizes.B, a.sizes.H, a.sizes.Lq, a.sizes.Lk};
    pe_named      inputs[2 + PE_MAX_TOKENS] = {{&a.q, "q"}, {&a.k, "k"}};
    if ((status = pe_tensor_check_output(S, "scores: S", 4, shape, err)) ||
        (status = pe_overlap_check_apart(&(pe_named){S, "scores: S"}, 1, inputs,
                                         2 + name_tokens(inputs + 2, plan, in), err)))
        return status;
    return is_empty(&a) ? pe_done(err) : finish(&a, &run, err);
}

/* bias, or its gradient where run.dparams is given; run.in becomes the library's own reading of it. */
static posenc_status bias_run(attend_run run, posenc_error *err)
{
    posenc_attend_in copy;
    pe_attention     a;
    if (!(run.in = read_in(&copy, run.in, "bias", err)))
        return POSENC_ERROR_ARGUMENT;
    posenc_status status = open_run(&a, run.plan, "bias", err);
    if (!status && run.plan->e->parts[POSENC_PLACE_SCORE].room && pe_tokens_of(run.plan, POSENC_PLACE_SCORE))
        status = pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                         "bias: %s adds what its token inputs say, not the same to any content; ask "
                         "posenc_scores",
                         run.plan->e->spec);
    if (status)
        return status;
    a.mask     = POSENC_MASK_NONE;
    a.unmasked = 1;
    a.sizes.B  = 1;
    a.sizes.Lq = run.S->shape[1];
    a.sizes.Lk = run.S->shape[2];
    status     = check_bias(run.plan, run.S, !run.dparams, err);
    if (status || (status = find_distances(run.plan, run.in, &a, a.sizes.Lk, err)))
        return status;
    if (is_empty(&a))
        return pe_done(err);
    if (run.dparams &&
        (status = pe_numbers_check(run.plan, PLACES, source_of(run.in), run.dparams, run.who, err)))
        return status;
    status =
        pe_numbers_check_apart(run.plan, PLACES, run.dparams, &(pe_named){run.S, "dbias"}, 1, run.who, err);
    return status ? status : finish(&a, &run, err);
}

posenc_status posenc_bias(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *bias,
                          const posenc_workspace *work, posenc_error *err)
{
    if (!plan || !in || !bias)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "bias: plan, in and bias must not be NULL");
    const attend_run run = {
        .plan = plan, .in = in, .run = PE_ATTEND_BIAS, .S = bias, .who = "bias", .work = work};
    return bias_run(run, err);
}

posenc_status posenc_bias_backward(const posenc_plan *plan, const posenc_attend_in *in,
                                   const posenc_tensor *dbias, posenc_tensor *dparams,
                                   const posenc_workspace *work, posenc_error *err)
{
    if (!plan || !in || !dbias || !dparams)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "bias: plan, in, dbias and dparams must not be NULL");
    const attend_run run = {.plan    = plan,
                            .in      = in,
                            .dparams = dparams,
                            .run     = POSENC_RUN_BIAS_BACKWARD,
                            .S       = dbias,
                            .who     = "bias",
                            .work    = work};
    return bias_run(run, err);
}

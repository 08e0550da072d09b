/* SPDX-License-Identifier: MIT */
/*
 * attention_part.h: runs on parts of an attention_case, and on tensors that lie anywhere in memory
 *
 * One plan serves all runs of a session, whatever items, queries and keys they take: that is how engines run.
 * A part is a view of the whole problem's tensors, whose strides it keeps, so what a run writes lands in its
 * place in the whole result; the rest of the result stays as it was.
 */
#ifndef TESTS_ATTENTION_PART_H
#define TESTS_ATTENTION_PART_H

#include "api/objects.h"
#include "attention_case.h"

/* Items b .. b+B-1, queries i .. i+Lq-1, keys j .. j+Lk-1 of a problem. */
typedef struct part {
    int64_t b, B, i, Lq, j, Lk;
} part;

typedef struct session {
    attention_case    *c;
    int                wide; /* F64 on the reference executor, else F32 on the tiled one */
    posenc_plan       *plan;
    posenc_workspace   work;
    posenc_attend_in   in; /* of the whole problem */
    posenc_attend_out  out;
    posenc_attend_grad grad;
    posenc_tensor      params[CASE_PARAMS], dparams[CASE_PARAMS];
    attention_result   r; /* what out and grad write, unless a test moves them elsewhere */
} session;

/* Does every run of it need inputs of tokens, which some tests do not give? */
static inline int needs_tokens(const char *spec)
{
    posenc_encoding *e;
    if (posenc_encoding_create(&e, spec, NULL, NULL))
        return 0;
    const int needs = posenc_token_count(e) > 0;
    posenc_encoding_free(e);
    return needs;
}

/* "name[settings of a small model]"; the return value says that it acts in attention. */
static inline int write_small(char *spec, size_t n, const posenc_encoding_info *info, const posenc_dims *d)
{
    char small[256];
    if (info->place == POSENC_PLACE_INPUT ||
        posenc_small_model(info->name, d, POSENC_MASK_CAUSAL, small, sizeof small, NULL))
        return 0;
    snprintf(spec, n, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
    return 1;
}

/* Does a score depend on where its key lies among the others, not on positions alone? 1 where an encoding
   counts keys or takes them in their order, 2 where it has a number for each pair of the tensors. */
static inline int goes_by_place(const char *spec, const posenc_dims *d)
{
    posenc_options   options = posenc_options_default();
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    options.mask = POSENC_MASK_CAUSAL; /* every encoding has a meaning with this mask */
    if (posenc_encoding_create(&e, spec, NULL, &err) || posenc_plan_create(&plan, e, d, &options, &err)) {
        fprintf(stderr, "%s: %s\n", spec, err.message);
        abort();
    }
    const int is = plan->terms.pairs.matrix ? 2 : plan->terms.hook.state > 0 || plan->terms.stick.is_given;
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return is;
}

static inline part whole(const attention_case *c)
{
    return (part){0, c->dims.B, 0, c->dims.Lq, 0, c->dims.Lk};
}

static inline void session_open(session *s, attention_case *c, int wide)
{
    const posenc_dims *d = &c->dims;
    posenc_error       err;
    memset(s, 0, sizeof *s);
    s->c                = c;
    s->wide             = wide;
    c->options.executor = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    if (posenc_plan_create(&s->plan, c->e, d, &c->options, &err))
        case_stop("plan", c, &err);
    s->work = workspace_for(s->plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    s->in   = case_in(c, wide, s->params);
    s->r    = (attention_result){.o   = array_make4(d->B, d->H, d->Lq, d->Dv),
                                 .lse = array_make(3, (int64_t[]){d->B, d->H, d->Lq}),
                                 .dq  = array_make4(d->B, d->H, d->Lq, d->D),
                                 .dk  = array_make4(d->B, d->G, d->Lk, d->D),
                                 .dv  = array_make4(d->B, d->G, d->Lk, d->Dv)};
    s->out  = (posenc_attend_out){.size = sizeof(posenc_attend_out),
                                  .o    = array_tensor(&s->r.o, wide),
                                  .lse  = array_tensor(&s->r.lse, wide)};
    for (int i = 0; i < c->param_count; i++) {
        s->r.dparams[i] = array_make(c->params[i].ndim, c->params[i].shape);
        s->dparams[i]   = array_tensor(&s->r.dparams[i], wide);
    }
    s->grad = (posenc_attend_grad){.size    = sizeof(posenc_attend_grad),
                                   .o       = s->out.o,
                                   .lse     = s->out.lse,
                                   .dout    = array_tensor(&c->dout, wide),
                                   .dq      = array_tensor(&s->r.dq, wide),
                                   .dk      = array_tensor(&s->r.dk, wide),
                                   .dv      = array_tensor(&s->r.dv, wide),
                                   .dparams = s->dparams};
}

static inline void session_close(session *s)
{
    posenc_workspace_free(&s->work);
    posenc_plan_free(s->plan);
    result_free(&s->r);
}

/* `count` places of an axis from `from` on. */
static inline posenc_tensor cut(posenc_tensor t, int axis, int64_t from, int64_t count)
{
    if (t.data)
        t.data = (char *)t.data + from * t.stride[axis] * (int64_t)posenc_dtype_size(t.dtype);
    t.shape[axis] = count;
    return t;
}

/* Items and places of an axis together. */
static inline posenc_tensor cut_both(posenc_tensor t, const part *p, int axis, int64_t from, int64_t count)
{
    return cut(cut(t, 0, p->b, p->B), axis, from, count);
}

static inline posenc_attend_in in_of(const session *s, const part *p)
{
    posenc_attend_in in = s->in;
    in.q                = cut_both(in.q, p, 2, p->i, p->Lq);
    in.k                = cut_both(in.k, p, 2, p->j, p->Lk);
    in.v                = cut_both(in.v, p, 2, p->j, p->Lk);
    in.key_allowed      = cut_both(in.key_allowed, p, 1, p->j, p->Lk);
    in.allowed          = cut(cut_both(in.allowed, p, 2, p->i, p->Lq), 3, p->j, p->Lk);
    in.q_segments       = cut_both(in.q_segments, p, 1, p->i, p->Lq);
    in.k_segments       = cut_both(in.k_segments, p, 1, p->j, p->Lk);
    in.q_pos.start += (double)p->i * in.q_pos.step;
    in.k_pos.start += (double)p->j * in.k_pos.step;
    in.params = s->params;
    return in;
}

static inline void part_forward(const session *s, const part *p)
{
    const posenc_attend_in  in  = in_of(s, p);
    const posenc_attend_out out = {.size = sizeof out,
                                   .o    = cut_both(s->out.o, p, 2, p->i, p->Lq),
                                   .lse  = cut_both(s->out.lse, p, 2, p->i, p->Lq)};
    posenc_error            err;
    if (posenc_attend(s->plan, &in, &out, &s->work, &err))
        case_stop("attend", s->c, &err);
}

static inline void part_backward(session *s, const part *p)
{
    const posenc_attend_in in   = in_of(s, p);
    posenc_attend_grad     grad = s->grad;
    posenc_error           err;
    grad.o       = cut_both(grad.o, p, 2, p->i, p->Lq);
    grad.lse     = cut_both(grad.lse, p, 2, p->i, p->Lq);
    grad.dout    = cut_both(grad.dout, p, 2, p->i, p->Lq);
    grad.dq      = cut_both(grad.dq, p, 2, p->i, p->Lq);
    grad.dk      = cut_both(grad.dk, p, 2, p->j, p->Lk);
    grad.dv      = cut_both(grad.dv, p, 2, p->j, p->Lk);
    grad.dparams = s->dparams;
    if (posenc_attend_backward(s->plan, &in, &grad, &s->work, &err))
        case_stop("backward", s->c, &err);
}

static inline double number_of(const array *a, int64_t i, int wide)
{
    return wide ? a->wide[i] : (double)a->narrow[i];
}

static inline int are_same_bits(const array *a, const array *b, int wide)
{
    const size_t n = (size_t)a->count;
    return wide ? !memcmp(a->wide, b->wide, n * sizeof(double))
                : !memcmp(a->narrow, b->narrow, n * sizeof(float));
}

/* Largest difference in shares of the largest number of b, at least `least`; infinite where one is no number.
 */
static inline double distance_from(const array *a, const array *b, int wide, double least)
{
    double most = 0, scale = least;
    for (int64_t i = 0; i < b->count; i++) {
        const double x = number_of(a, i, wide), y = number_of(b, i, wide);
        if (x == y)
            continue;
        if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        most = fmax(most, fabs(x - y));
    }
    for (int64_t i = 0; i < b->count; i++)
        if (isfinite(number_of(b, i, wide)))
            scale = fmax(scale, fabs(number_of(b, i, wide)));
    return most / scale;
}

static inline double distance_of(const array *a, const array *b, int wide)
{
    return distance_from(a, b, wide, 1e-2);
}

/* a += b, in both types. */
static inline void array_add(array *a, const array *b)
{
    for (int64_t i = 0; i < a->count; i++) {
        a->wide[i] += b->wide[i];
        a->narrow[i] += b->narrow[i];
    }
}

enum { RESULTS = 5 + CASE_PARAMS };

/* o, lse, dq, dk, dv, then gradients of parameters; how many there are. */
static inline int results_of(const attention_case *c, attention_result *r, array *all[RESULTS])
{
    array *first[] = {&r->o, &r->lse, &r->dq, &r->dk, &r->dv};
    memcpy(all, first, sizeof first);
    for (int i = 0; i < c->param_count; i++)
        all[5 + i] = &r->dparams[i];
    return 5 + c->param_count;
}

static inline const char *result_name(const attention_case *c, int i)
{
    static const char *const names[] = {"o", "lse", "dq", "dk", "dv"};
    return i < 5 ? names[i] : posenc_param_name(c->e, i - 5);
}

/* distance_of result i. All scores of a head share FIRE's b2: its gradient is 0, of which the roundings of
   1e3 products may leave 4e-6 with kernels that round each. */
static inline double result_distance(const attention_case *c, int i, const array *a, const array *b, int wide)
{
    const int is_zero = !strncmp(posenc_encoding_spec(c->e), "fire", 4) && !strcmp(result_name(c, i), "b2");
    return distance_from(a, b, wide, is_zero ? 3e-2 : 1e-2);
}

#endif

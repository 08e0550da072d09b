/* SPDX-License-Identifier: MIT */
/*
 * differences.h: gradients against finite differences, in double on the reference executor
 *
 * The loss is sum(dout * o) for attention and sum(dy * y) for rows. A central difference with h = 1e-6 is off
 * by h^2/6 of the third derivative and by 2^-53 * loss / h of rounding, both about 1e-9 here; so 1e-6 of the
 * tensor's largest gradient, at least 1e-2, is tight enough to see any missing term and wide enough never to
 * fail by chance.
 */
#ifndef TESTS_ENCODINGS_DIFFERENCES_H
#define TESTS_ENCODINGS_DIFFERENCES_H

#include "attention_case.h"

enum { SAMPLES = 16 };

#define STEP      1e-6
#define TOLERANCE 1e-6

static inline double loss_of(attention_case *c)
{
    attention_result r   = case_run(c, 1);
    double           sum = 0;
    for (int64_t i = 0; i < r.o.count; i++)
        sum += c->dout.wide[i] * r.o.wide[i];
    result_free(&r);
    return sum;
}

static inline double slope_at(attention_case *c, array *x, int64_t i)
{
    const double start = x->wide[i];
    x->wide[i]         = start + STEP;
    const double above = loss_of(c);
    x->wide[i]         = start - STEP;
    const double below = loss_of(c);
    x->wide[i]         = start;
    return (above - below) / (2 * STEP);
}

/* Samples of one tensor: evenly spread, and the place of its largest gradient. */
static inline void compare_tensor(attention_case *c, array *x, const array *dx, const char *name,
                                  const char *axes)
{
    /* a quotient of losses near 10 carries 2e-9 of rounding */
    const double  scale = fmax(largest(dx, NULL), 1e-2);
    const int64_t every = dx->count > SAMPLES ? dx->count / SAMPLES : 1;
    for (int64_t i = 0; i < dx->count; i++) {
        if (i % every != 0 && fabs(dx->wide[i]) < scale)
            continue;
        const double slope = slope_at(c, x, i);
        if (!(fabs(slope - dx->wide[i]) <= TOLERANCE * scale))
            fail_msg("%s, mask %s: gradient of %s at %s: backward of the reference says %.12g, finite "
                     "differences of its forward say %.12g",
                     posenc_encoding_spec(c->e), mask_text(c->options.mask), name, array_place(dx, i, axes),
                     dx->wide[i], slope);
    }
}

/* A source may hold a parameter at a small positive number and let its gradient through all the same: there
   the loss has no slope to compare with. */
static inline void keep_away_from_zero(attention_case *c)
{
    for (int i = 0; i < c->param_count; i++)
        for (int64_t n = 0; n < c->params[i].count; n++)
            if (fabs(c->params[i].wide[n]) < 0.02)
                array_set(&c->params[i], n,
                          copysign(0.02 + fabs(c->params[i].wide[n]), c->params[i].wide[n]));
}

/* All gradients of attention with this SPEC. */
static inline void compare_gradients(const char *spec, posenc_dims dims, int mask, uint64_t seed)
{
    attention_case c  = case_make(spec, dims, seed);
    c.options.mask    = mask;
    c.options.window  = c.options.mask & POSENC_MASK_WINDOW ? 3 : 0;
    c.options.threads = 1;
    keep_away_from_zero(&c);
    attention_result r = case_run(&c, 1);
    compare_tensor(&c, &c.q, &r.dq, "q", "item,head,query,channel");
    compare_tensor(&c, &c.k, &r.dk, "k", "item,head,key,channel");
    compare_tensor(&c, &c.v, &r.dv, "v", "item,head,key,channel");
    for (int i = 0; i < c.param_count; i++)
        compare_tensor(&c, &c.params[i], &r.dparams[i], posenc_param_name(c.e, i),
                       posenc_param_describe(c.e, i)->shape);
    for (int i = 0; i < c.token_count; i++)
        compare_tensor(&c, &c.tokens[i], &r.dtokens[i], posenc_token_name(c.e, i), "item,head,token,channel");
    result_free(&r);
    case_free(&c);
}

#endif

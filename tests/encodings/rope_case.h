/* SPDX-License-Identifier: MIT */
/*
 * rope_case.h: a rotation made from its SPEC, for tests that look at its pairs and at what they do to a row
 *
 * D is the head's width; there is one head, and no parameters unless the test brings them. The pairs are
 * those of a short sequence.
 */
#ifndef ROPE_CASE_H
#define ROPE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/rotary.h>

#include "workspace.h"

enum { MOST_PAIRS = 512 };

typedef struct turning {
    posenc_encoding   *e;
    posenc_plan       *plan;
    posenc_workspace   work;
    int64_t            D, M;
    double             magnitude;
    posenc_rotary_pair pairs[MOST_PAIRS];
} turning;

static inline turning make(const char *spec, int64_t D)
{
    turning           t = {.D = D};
    posenc_error      err;
    const posenc_dims dims = {.B = 1, .H = 1, .G = 1, .Lq = 4, .Lk = 4, .D = D};
    if (posenc_encoding_create(&t.e, spec, NULL, &err) ||
        posenc_plan_create(&t.plan, t.e, &dims, NULL, &err) ||
        posenc_rotary_frequencies(t.plan, NULL, &t.M, &t.magnitude, &err))
        fail_msg("%s: %s", spec, err.message);
    t.work = workspace_for(t.plan, POSENC_RUN_FORWARD);
    assert_in_range(t.M, 1, MOST_PAIRS);
    if (!posenc_param_count(t.e) && posenc_rotary_pairs(t.plan, NULL, 0, t.pairs, &t.work, &err))
        fail_msg("%s: %s", spec, err.message);
    return t;
}

static inline void drop(turning *t)
{
    posenc_workspace_free(&t->work);
    posenc_plan_free(t->plan);
    posenc_encoding_free(t->e);
}

static inline void assert_near(double got, double want, double relative, const char *what)
{
    if (!(fabs(got - want) <= relative * (want == 0 ? 1 : fabs(want))))
        fail_msg("%s is %.17g, not %.17g", what, got, want);
}

/* Cosine and sine of pair i at position p: what becomes of the pair (1, 0). */
static inline void turn_one(turning *t, double p, int64_t i, double *cosine, double *sine)
{
    double       row[2 * MOST_PAIRS] = {0};
    posenc_error err;
    row[t->pairs[i].from[0]] = 1;
    const posenc_tensor x =
        posenc_tensor_contiguous(row, POSENC_DTYPE_F64, 4, (const int64_t[]){1, 1, 1, t->D});
    const posenc_rotate_io io = {
        .size = sizeof io, .q = x, .to_q = x, .q_pos = posenc_positions_range(p, 1), .direction = 1};
    if (posenc_rotate(t->plan, &io, &t->work, &err))
        fail_msg("%s", err.message);
    *cosine = row[t->pairs[i].to[0]];
    *sine   = row[t->pairs[i].to[1]];
}

#endif

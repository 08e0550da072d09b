/* SPDX-License-Identifier: MIT */
/*
 * rotation.c: which rotation turned one tensor into another, and what of it is not as it should be
 *
 * The idea   Not a list of known mistakes is tried, but the rotation is measured: which channels are pairs
 *            (dump.h), how fast each turns (speeds.c), how long it becomes. Then theories are made, each the
 *            expected encoding with one to three things changed, with numbers that fit what was measured, and
 *            what is left after each is counted in units of the rounding of the tensor.
 * Choice     Of those that leave nothing over, the one with the fewest changes and the roundest numbers; the
 *            others that do so as well are alternatives. What differs from the expected rotation by less
 *            than SAME roundings is the same.
 * Files      frame.c and misfit.c compute what a theory gives; pairings.c, theories.c, places.c, numbers.c,
 *            schedules.c, axes.c and lows.c make theories; verdict.c chooses; advice.c says it.
 */
#include "diagnose/search.h"

#include "base/shared/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_departures[PE_DEPARTURES] = {"layout",   "dim",    "direction",   "base",
                                                  "schedule", "factor", "positions",   "magnitude",
                                                  "axes",     "angles", "slopes",      "buckets",
                                                  "scale",    "mask",   "temperature", "softcap"};

static void choose_rows(pe_search *s)
{
    const int64_t n = s->rows->count, most = n < PE_LOOK ? n : PE_LOOK;
    for (int64_t i = 0; i < most; i++) /* the first few, and some of all the rest */
        s->look[s->look_count++] = i < most / 4 ? i : i * (n - 1) / (most > 1 ? most - 1 : 1);
}

static posenc_status check(const pe_rotation *in, posenc_error *err)
{
    for (int i = 0; i < in->count; i++) {
        const posenc_tensor *a = &in->sides[i].before, *b = &in->sides[i].after;
        if (a->ndim != 4 || b->ndim != 4 || memcmp(a->shape, b->shape, 4 * sizeof *a->shape) ||
            a->shape[3] != in->sides[0].before.shape[3] || a->shape[3] < 2) {
            *err = (posenc_error){.status = POSENC_ERROR_SHAPE,
                                  .message =
                                      "diagnose: tensors before and after must have one shape, [B,H,L,D]"};
            return err->status;
        }
        if (a->shape[3] > PE_WIDEST) {
            *err = (posenc_error){.status = POSENC_ERROR_SHAPE};
            snprintf(err->message, sizeof err->message,
                     "diagnose: heads have %lld channels; they must have %d or fewer, as [B,H,L,D] says",
                     (long long)a->shape[3], PE_WIDEST);
            return err->status;
        }
    }
    return POSENC_OK;
}

static posenc_status look(pe_diagnosis *d, pe_search *s)
{
    pe_pairing       expected = {0, 0, 1, 0, s->rows->D - s->rows->D % 2};
    posenc_encoding *e        = NULL;
    for (int64_t row = 0; row < s->rows->count; row++)
        for (int n = 0; n < s->N; n++)
            s->length = fmax(s->length, pe_row_position(s->rows, row)[n] + 1);
    const posenc_status status = posenc_encoding_create(&e, s->base, NULL, s->err);
    if (status)
        return status;
    if (!pe_pairings_of(&expected, s, e) && s->in->e) {
        posenc_encoding_free(e);
        *s->err = (posenc_error){
            .status = POSENC_ERROR_UNSUPPORTED,
            .message =
                "diagnose: the expected rotation does not fit these heads, or is no rope whose pairs have "
                "one angle each; give the config of this model, or layout, dim and base of a rope"};
        return s->err->status;
    }
    posenc_encoding_free(e);
    choose_rows(s);
    if (pe_pairings_find(s, &expected) || pe_pairings_keep(s))
        return POSENC_ERROR_MEMORY;
    pe_theory    right = {0};
    const double away  = s->in->e ? pe_verdict_distance(s, s->in->is_strict, &right) : INFINITY;
    posenc_encoding_free(right.e);
    for (int p = 0; p < s->pairing_count && away > 0.6; p++)
        if (pe_pairings_is_rotation(s, &s->pairings[p]))
            pe_axes_each(s, p, pe_schedules_try);
    if (away > pe_same && !pe_theories_has(s, 104))
        pe_lows_try(s);
    for (int p = 0; p < s->pairing_count && away > pe_same && !pe_theories_explain(s); p++)
        if (pe_pairings_is_rotation(s, &s->pairings[p])) {
            if (s->N > 1)
                pe_numbers_of_axes(s, p, "");
            pe_theories_try_measured(s, p);
        }
    pe_verdict_choose(d, s);
    return POSENC_OK;
}

static posenc_status judge_together(pe_diagnosis *d, const pe_rotation *in, posenc_error *err)
{
    const locale_t before = pe_decimal_begin();
    pe_search     *s      = calloc(1, sizeof *s);
    *d                    = (pe_diagnosis){0};
    *err = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
    posenc_status status =
        s ? check(in, err) == POSENC_ERROR_SHAPE ? POSENC_ERROR_SHAPE : pe_rows_create(&s->rows, in, err)
          : err->status;
    if (!status) {
        *err  = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "diagnose: not enough memory"};
        s->in = in;
        s->N  = in->coordinates;
        snprintf(s->plain, sizeof s->plain, in->coordinates > 1 ? "rope[axes=%d]" : "rope", in->coordinates);
        s->base = in->e ? posenc_encoding_spec(in->e) : s->plain;
        s->err  = err;
        for (int n = 0; n < PE_MOST_AXES; n++)
            s->axes[n] = n;
        s->coarse = pe_fine;
        status    = look(d, s);
    }
    for (int i = 0; s && i < s->theory_count; i++)
        pe_theories_free(&s->theories[i]);
    for (int i = 0; s && i < s->pairing_count; i++) {
        pe_gains_free(s->pairings[i].gains);
        free(s->pairings[i].w);
        free(s->pairings[i].error);
        free(s->pairings[i].of_axes);
    }
    if (s)
        pe_rows_free(s->rows);
    free(s);
    pe_decimal_end(before);
    if (!status)
        *err = (posenc_error){0};
    return status;
}

/* Is it something that two sides which differ would look like: nothing that is known, or positions of no
   rule? */
static int may_be_one_side(const pe_diagnosis *d, const pe_rotation *in)
{
    return in->e && in->count == 2 &&
           (d->verdict == PE_UNEXPLAINED ||
            ((d->departs >> PE_POSITIONS & 1) && d->found.step == 1 && d->found.offset == 0));
}

posenc_status pe_rotation_judge(pe_diagnosis *d, const pe_rotation *in, posenc_error *err)
{
    pe_diagnosis  alone[2] = {0};
    posenc_status status   = judge_together(d, in, err);
    if (status || !may_be_one_side(d, in))
        return status;
    for (int i = 0; i < 2 && !status; i++) {
        pe_rotation one = *in;
        one.count       = 1;
        one.sides[0]    = in->sides[i];
        status          = judge_together(&alone[i], &one, err);
    }
    const int is_odd = !status && (alone[0].verdict == PE_SAME) != (alone[1].verdict == PE_SAME),
              wrong  = alone[0].verdict == PE_SAME;
    if (is_odd && alone[wrong].verdict == PE_DIFFERENT) {
        pe_diagnosis_free(d);
        *d           = alone[wrong];
        d->side      = in->sides[wrong].name;
        alone[wrong] = (pe_diagnosis){0};
        pe_fixes_add(&d->advice, "all this is of %s alone: %s is as expected", d->side,
                     in->sides[!wrong].name);
    }
    pe_diagnosis_free(&alone[0]);
    pe_diagnosis_free(&alone[1]);
    return status;
}

void pe_diagnosis_free(pe_diagnosis *d)
{
    free(d->frequencies);
    d->frequencies = NULL;
}

/* SPDX-License-Identifier: MIT */
/* What an encoding makes of the heads: which channels are pairs, and how fast each turns. */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void pe_frame_free(pe_frame *f)
{
    free(f->course.w);
    free(f->course.blur);
    free(f->course.coordinate);
    free(f->course.order);
    free(f->pairs);
    *f = (pe_frame){0};
}

/* Angles of float32: their frequency is a power whose exponent was rounded (1 / base^(2i/d), or e^(-x log
   base): relative error of e^-y by a rounded y is y), which costs as much again; then the product. */
static double blur_of(double w)
{
    return (2.25 + fabs(log(fabs(w) + 1e-300))) * 0x1p-23;
}

static int64_t round_up(double x)
{
    return x < 1 ? 1 : x > 1e15 ? (int64_t)1e15 : (int64_t)x;
}

void pe_frame_sort(pe_frame *f)
{
    for (int64_t i = 0; i < f->M; i++) {
        int64_t at = i;
        for (; at > 0 && fabs(f->course.w[f->course.order[at - 1]]) > fabs(f->course.w[i]); at--)
            f->course.order[at] = f->course.order[at - 1];
        f->course.order[at] = i;
    }
}

/* 0 where it cannot be: an encoding that does not fit the heads, or has parameters that nobody knows. */
int pe_frame_open(pe_frame *f, const pe_search *s, const posenc_encoding *e)
{
    const int64_t     D        = s->rows->D;
    const int         is_given = s->in->e && posenc_param_count(e) == posenc_param_count(s->in->e);
    const posenc_dims dims     = {.B = 1, .H = 1, .Lq = 1, .Lk = 1, .D = D, .L = round_up(s->length)};
    posenc_options    options  = posenc_options_default();
    posenc_plan      *plan     = NULL;
    posenc_workspace  work     = {0};
    posenc_error      why;
    double            magnitude = 1;
    *f                          = (pe_frame){0};
    options.threads             = 1;
    int is_good                 = (posenc_param_count(e) == 0 || (is_given && s->in->params)) &&
                  !posenc_plan_create(&plan, e, &dims, &options, &why) &&
                  posenc_rotary_coordinates(plan) == s->N &&
                  !posenc_rotary_frequencies(plan, NULL, &f->M, &magnitude, &why) && f->M > 0;
    if (is_good) {
        f->pairs             = malloc((size_t)f->M * sizeof *f->pairs);
        f->course.w          = malloc((size_t)f->M * sizeof *f->course.w);
        f->course.blur       = malloc((size_t)f->M * sizeof *f->course.blur);
        f->course.coordinate = malloc((size_t)f->M * sizeof *f->course.coordinate);
        f->course.order      = malloc((size_t)f->M * sizeof *f->course.order);
        f->course.size       = magnitude;
        is_good =
            f->pairs && f->course.w && f->course.blur && f->course.coordinate && f->course.order &&
            !posenc_workspace_create(&work, plan, POSENC_RUN_ROTATE, NULL, &why) &&
            !posenc_rotary_pairs(plan, is_given ? s->in->params : NULL, s->length, f->pairs, &work, &why);
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    for (int64_t m = 0; is_good && m < f->M; m++) {
        f->course.w[m]          = f->pairs[m].w;
        f->course.blur[m]       = blur_of(f->pairs[m].w);
        f->course.coordinate[m] = f->pairs[m].coordinate;
        is_good &= f->pairs[m].coordinate >= 0;
    }
    if (is_good)
        pe_frame_sort(f);
    else
        pe_frame_free(f);
    return is_good;
}

/* A dynamic schedule computes its base from the longest position. */
posenc_encoding *pe_frame_follow(pe_frame *f, const pe_search *s, const pe_theory *t)
{
    const char      *spec   = posenc_encoding_spec(t->e);
    const double     limit  = pe_spec_number(spec, "max_length", 0);
    const double     length = rint(pe_misfit_longest(s, t)) + 1;
    posenc_encoding *e      = NULL;
    posenc_error     why;
    char             text[40];
    *f = (pe_frame){0};
    if (s->N > 1 || !pe_spec_is_word(spec, "schedule", "dynamic", 0) ||
        pe_spec_number(spec, "length", 0) > 0 || fmax(length, limit) == fmax(s->length, limit) ||
        !(length < 1e9))
        return NULL;
    snprintf(text, sizeof text, "length=%.10g", length);
    if (posenc_encoding_create(&e, spec, text, &why) || !pe_frame_open(f, s, e)) {
        posenc_encoding_free(e);
        e = NULL;
    }
    return e;
}

/* Are these the channels of the pairing? */
int pe_frame_has_channels(const pe_frame *f, const pe_pairing *p)
{
    if (f->M != p->dim / 2)
        return 0;
    for (int64_t m = 0; m < f->M; m++)
        for (int second = 0; second < 2; second++)
            if (f->pairs[m].from[second] != pe_pairing_channel(p, 0, m, second) ||
                f->pairs[m].to[second] != pe_pairing_channel(p, 1, m, second))
                return 0;
    return 1;
}

/* SPDX-License-Identifier: MIT */
/*
 * score_terms.c: the four terms of a score between two embedded positions
 *
 *     ((x_i + p_i) W_q) . ((x_j + p_j) W_k) = xx + xp + px + pp
 *
 * content-content, content-position, position-content, position-position, times the scale. Tokens x ~ N(0,
 * I), matrices from N(0, 1/d_model). The size of each is its root mean square over all pairs and heads,
 * averaged over draws of tokens, matrices and initial parameters. The draws matter: a sinusoid moves in few
 * directions, so the two matrices decide the size of position-position, and one draw has half or twice as
 * much as another. The sum of the four is compared with the score of the embedded tokens themselves, in every
 * draw.
 *
 * Only for an input encoding by itself: with a part that acts in attention the score is no longer these four
 * products.
 */
#include "measure/subject.h"

#include <math.h>

enum { TERMS = 4 };

/* One side of the product: content, position and their sum, embedded [N,d] and projected [H,N,D]. */
typedef struct term_side {
    double *content, *position, *both;
} term_side;

typedef struct term_arrays {
    double   *x, *p, *y, *W, *part, *sum, *S;
    term_side q, k;
} term_arrays;

static int take_arrays(term_arrays *r, pe_subject *s)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model, pairs = s->dims.H * N * N;
    const int64_t sizes[] = {N * d, N * d, N * d, d * d, N * d, N * d, N * d,
                             N * d, N * d, N * d, pairs, pairs, pairs};
    double      **parts[] = {&r->x,          &r->p,      &r->y,         &r->W,          &r->q.content,
                             &r->q.position, &r->q.both, &r->k.content, &r->k.position, &r->k.both,
                             &r->part,       &r->sum,    &r->S};
    return pe_subject_take_all(s, parts, sizes, sizeof sizes / sizeof *sizes);
}

static void project_side(term_arrays *r, term_side *to, const pe_subject *s, const char *name, int64_t draw)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model;
    pe_subject_draw_normal(r->W, d * d, 1 / sqrt((double)d), s, name, draw);
    pe_subject_project(to->content, r->x, r->W, &s->dims, N);
    pe_subject_project(to->position, r->p, r->W, &s->dims, N);
    pe_subject_project(to->both, r->y, r->W, &s->dims, N);
}

static posenc_status embed(pe_subject *s, term_arrays *r, int64_t draw, posenc_error *err)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model;
    pe_subject_draw_normal(r->x, N * d, 1, s, "tokens", draw);
    posenc_status status = pe_subject_initialise(s, s->sizes.seed + (uint64_t)draw, err);
    if (!status)
        status = pe_subject_rows(s, NULL, r->p, err);
    if (!status)
        status = pe_subject_embed(s, r->x, r->y, err);
    if (!status) {
        project_side(r, &r->q, s, "Wq", draw);
        project_side(r, &r->k, s, "Wk", draw);
    }
    return status;
}

/* The sizes of the four terms into `size`, their sum into r->sum. */
static posenc_status add_terms(pe_subject *s, term_arrays *r, double size[TERMS], posenc_error *err)
{
    const int64_t       pairs       = s->dims.H * s->sizes.length * s->sizes.length;
    const double *const q_of[TERMS] = {r->q.content, r->q.content, r->q.position, r->q.position};
    const double *const k_of[TERMS] = {r->k.content, r->k.position, r->k.content, r->k.position};
    for (int64_t i = 0; i < pairs; i++)
        r->sum[i] = 0;
    for (int t = 0; t < TERMS; t++) {
        const posenc_status status = pe_subject_scores(s, q_of[t], k_of[t], r->part, err);
        if (status)
            return status;
        double squares = 0;
        for (int64_t i = 0; i < pairs; i++) {
            squares += r->part[i] * r->part[i];
            r->sum[i] += r->part[i];
        }
        size[t] = sqrt(squares / (double)pairs);
    }
    return pe_subject_scores(s, r->q.both, r->k.both, r->S, err);
}

/* The results of all draws. */
typedef struct term_draws {
    pe_sample size[TERMS];
    double    largest; /* difference of a score and its four terms */
} term_draws;

static posenc_status add_draw(pe_subject *s, term_arrays *r, int64_t draw, term_draws *to, posenc_error *err)
{
    double        size[TERMS];
    posenc_status status = embed(s, r, draw, err);
    if (!status)
        status = add_terms(s, r, size, err);
    for (int t = 0; !status && t < TERMS; t++)
        pe_subject_sample_add(&to->size[t], size[t]);
    for (int64_t i = 0; !status && i < s->dims.H * s->sizes.length * s->sizes.length; i++)
        to->largest = fmax(to->largest, fabs(r->sum[i] - r->S[i]));
    return status;
}

posenc_status pe_score_terms_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    term_arrays   r;
    term_draws    all    = {.largest = 0};
    posenc_status status = POSENC_OK;
    if (!pe_subject_has(s, POSENC_PLACE_INPUT) || pe_subject_attends(s))
        return POSENC_OK;
    if (!take_arrays(&r, s))
        return pe_subject_no_memory(err, "the terms of scores");
    for (int64_t draw = 0; !status && draw < s->sizes.draws; draw++)
        status = add_draw(s, &r, draw, &all, err);
    if (status)
        return status;
    for (int t = 0; t < TERMS; t++)
        pe_findings_add(to, (pe_measure)(PE_CONTENT_CONTENT + t), pe_subject_sample_mean(&all.size[t]),
                        pe_subject_sample_spread(&all.size[t]), "%lld draws", (long long)s->sizes.draws);
    pe_findings_add(to, PE_TERMS_SUM, all.largest, NAN, "%lld draws", (long long)s->sizes.draws);
    return POSENC_OK;
}

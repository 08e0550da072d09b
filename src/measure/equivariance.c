/* SPDX-License-Identifier: MIT */
/*
 * equivariance.c: what becomes of the output when the tokens are permuted?
 *
 * f is one layer of attention: the embedded tokens are projected by matrices from N(0, 1/d_model) to q, k and
 * v, and the heads' outputs are f(x). P is a random permutation. Without position information max |f(Px) - P
 * f(x)| is round-off: the output moves along with its token (equivariance; "invariance" would say that it
 * stays the same, which is true only of sums over all outputs). Parameters are as the encoding's source
 * initialises them, because that is the size they are meant for (an equation with weights of another size
 * explodes); but where one is initialised with the same number everywhere, a table of zeros or gates of 1,
 * N(0, 1) is added to it, because it would have no effect before training.
 *
 * A causal mask breaks the symmetry by itself: the same measure under the mask is the second number.
 */
#include "measure/subject.h"

#include <math.h>

typedef struct layer_arrays {
    double  *x, *moved, *y, *W, *q, *k, *v, *o, *o_moved;
    int64_t *order; /* token i of the moved sequence was token order[i] */
} layer_arrays;

/* Fisher and Yates: every order is as likely as any other. */
static void shuffle(int64_t *order, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j =
            (int64_t)(posenc_random_uniform(seed, "permutation", (uint64_t)i) * (double)(i + 1));
        const int64_t other = order[i];
        order[i]            = order[j];
        order[j]            = other;
    }
}

static void draw_tokens(pe_subject *s, layer_arrays *r)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model;
    pe_subject_draw_normal(r->x, N * d, 1, s, "tokens", 0);
    shuffle(r->order, N, s->sizes.seed);
    for (int64_t i = 0; i < N; i++)
        for (int64_t c = 0; c < d; c++)
            r->moved[i * d + c] = r->x[r->order[i] * d + c];
}

static void project_tokens(pe_subject *s, layer_arrays *r, const char *name, double *to)
{
    const int64_t d = s->dims.d_model;
    pe_subject_draw_normal(r->W, d * s->dims.H * s->dims.D, 1 / sqrt((double)d), s, name, 0);
    pe_subject_project(to, r->y, r->W, &s->dims, s->sizes.length);
}

static posenc_status layer(pe_subject *s, layer_arrays *r, int causal, const double *x, double *o,
                           posenc_error *err)
{
    const posenc_status status = pe_subject_embed(s, x, r->y, err);
    if (status)
        return status;
    project_tokens(s, r, "Wq", r->q);
    project_tokens(s, r, "Wk", r->k);
    project_tokens(s, r, "Wv", r->v);
    return pe_subject_attend(s, causal, r->q, r->k, r->v, o, err);
}

static double largest_difference(const pe_subject *s, const layer_arrays *r)
{
    const int64_t N = s->sizes.length, D = s->dims.D;
    double        largest = 0;
    for (int64_t h = 0; h < s->dims.H; h++)
        for (int64_t i = 0; i < N; i++)
            for (int64_t c = 0; c < D; c++)
                largest = fmax(largest,
                               fabs(r->o_moved[(h * N + i) * D + c] - r->o[(h * N + r->order[i]) * D + c]));
    return largest;
}

static posenc_status find_difference(pe_subject *s, layer_arrays *r, int causal, pe_findings *to,
                                     posenc_error *err)
{
    posenc_status status = layer(s, r, causal, r->x, r->o, err);
    if (!status)
        status = layer(s, r, causal, r->moved, r->o_moved, err);
    if (!status)
        pe_findings_add(to, causal ? PE_CAUSAL : PE_BOTH_WAYS, largest_difference(s, r), NAN, "%lld tokens",
                        (long long)s->sizes.length);
    return status;
}

posenc_status pe_equivariance_measure(pe_subject *s, pe_findings *to, posenc_error *err)
{
    const int64_t N = s->sizes.length, d = s->dims.d_model, all = s->dims.H * s->dims.D;
    const int64_t sizes[] = {N * d, N * d, N * d, d * all, N * all, N * all, N * all, N * all, N * all};
    layer_arrays  r       = {.order = pe_subject_take(s, N, sizeof *r.order)};
    double      **parts[] = {&r.x, &r.moved, &r.y, &r.W, &r.q, &r.k, &r.v, &r.o, &r.o_moved};
    if (!r.order || !pe_subject_take_all(s, parts, sizes, sizeof sizes / sizeof *sizes))
        return pe_subject_no_memory(err, "a layer");
    draw_tokens(s, &r);
    posenc_status status = pe_subject_initialise_varied(s, s->sizes.seed, err);
    if (!status && !s->causal_only)
        status = find_difference(s, &r, 0, to, err);
    return status ? status : find_difference(s, &r, 1, to, err);
}

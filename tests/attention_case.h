/* SPDX-License-Identifier: MIT */
/*
 * attention_case.h: a random attention problem for any encoding, run on either executor
 *
 * Inputs are made once in double from numbers that float holds exactly, so both executors start from the same
 * values and every difference is arithmetic. Tolerances are those of DESIGN's table: a float result may
 * differ from the double one by 2e-6 (outputs) or 2e-5 (gradients) of the row's scale; the row is the last
 * axis, its scale the largest absolute reference value in it, at least 1e-3 of the array's. Random problems
 * contain what no float arithmetic can keep - a saturated softmax, a sum over all distances that vanishes
 * because scores may be shifted - so in addition an array may be off by what changing every input in its last
 * bits does to it: the reference runs twice more with inputs moved by up to 2^-22 of themselves, and eight
 * times the largest change in the array counts; and a gradient whose true value is 0 may hold what is left of
 * weights times dout.v in float, 2^-20 of the largest such product.
 */
#ifndef TESTS_ATTENTION_CASE_H
#define TESTS_ATTENTION_CASE_H

#include <math.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workspace.h"

enum { CASE_PARAMS = 16, CASE_TOKENS = 4, DISTURBED = 2 };

typedef struct array { /* owns its numbers; one shape for double and float */
    int32_t ndim;
    int64_t shape[POSENC_MAX_DIMS], count;
    int     by_head; /* a row is a head's [L, n], as of the gradient of a token input */
    double *wide;
    float  *narrow;
} array;

typedef struct attention_case {
    posenc_encoding *e;
    posenc_dims      dims;
    posenc_options   options;
    posenc_positions q_pos, k_pos;
    array            q, k, v, dout, params[CASE_PARAMS];
    uint8_t         *key_allowed, *allowed;   /* [B,Lk], [B,1,Lq,Lk] */
    int64_t         *q_segments, *k_segments; /* [B,Lq], [B,Lk]: 0, 1 or 2 */
    int              param_count, token_count;
    array            tokens[CASE_TOKENS];
    posenc_tensor   *views; /* [CASE_TOKENS] of the run at hand */
} attention_case;

typedef struct attention_result {
    array o, lse, dq, dk, dv, dparams[CASE_PARAMS], dtokens[CASE_TOKENS];
} attention_result;

static inline array array_make(int32_t ndim, const int64_t *shape)
{
    array a = {.ndim = ndim, .count = 1};
    for (int32_t i = 0; i < ndim; i++) {
        a.shape[i] = shape[i];
        a.count *= shape[i];
    }
    a.wide   = calloc((size_t)a.count + 1, sizeof *a.wide);
    a.narrow = calloc((size_t)a.count + 1, sizeof *a.narrow);
    return a;
}

static inline array array_make4(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return array_make(4, (int64_t[]){a, b, c, d});
}

static inline void array_free(array *a)
{
    free(a->wide);
    free(a->narrow);
    *a = (array){0};
}

static inline void array_set(array *a, int64_t i, double x)
{
    a->narrow[i] = (float)x;
    a->wide[i]   = (double)a->narrow[i];
}

static inline void array_fill(array *a, uint64_t seed, const char *name, double scale)
{
    for (int64_t i = 0; i < a->count; i++)
        array_set(a, i, scale * posenc_random_normal(seed, name, (uint64_t)i));
}

static inline posenc_tensor array_tensor(const array *a, int wide)
{
    return posenc_tensor_contiguous(wide ? (void *)a->wide : (void *)a->narrow,
                                    wide ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32, a->ndim, a->shape);
}

/* Parameters: what the encoding starts with, a little smaller so that none keeps a value that a formula
   treats apart and none leaves an interval around 0; zeros become normal noise. */
static inline void case_fill_params(attention_case *c, uint64_t seed)
{
    posenc_tensor tensors[CASE_PARAMS];
    posenc_error  err;
    c->param_count = posenc_param_count(c->e);
    for (int i = 0; i < c->param_count; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(c->e, &c->dims, i, &ndim, shape, &err))
            fprintf(stderr, "%s\n", err.message), abort();
        c->params[i] = array_make(ndim, shape);
        tensors[i]   = array_tensor(&c->params[i], 1);
    }
    if (posenc_param_init(c->e, &c->dims, tensors, seed, &err))
        fprintf(stderr, "%s\n", err.message), abort();
    for (int i = 0; i < c->param_count; i++)
        for (int64_t x = 0; x < c->params[i].count; x++) {
            const char  *name  = posenc_param_name(c->e, i);
            const double start = c->params[i].wide[x], share = posenc_random_uniform(seed, name, (uint64_t)x);
            array_set(&c->params[i], x,
                      start != 0 ? start * (1 - 0.3 * share)
                                 : 0.2 * posenc_random_normal(seed, name, (uint64_t)x));
        }
}

/* What a model makes of numbers of either sign. */
static inline void array_make_token(array *a, posenc_token_made made)
{
    const int64_t n = a->shape[3];
    for (int64_t row = 0; made == POSENC_TOKEN_UNIT && row < a->count; row += n) {
        double sum = 0;
        for (int64_t i = row; i < row + n; i++)
            sum += a->wide[i] * a->wide[i];
        for (int64_t i = row; i < row + n; i++)
            array_set(a, i, a->wide[i] / sqrt(sum));
    }
    for (int64_t i = 0; made == POSENC_TOKEN_UP_TO_2 && i < a->count; i++)
        array_set(a, i, 2 / (1 + exp(-a->wide[i])));
}

/* Token inputs: of all query heads (where keys may differ by them), of the key heads, or of one for all, by
   the seed. */
static inline void case_fill_tokens(attention_case *c, uint64_t seed)
{
    c->token_count = posenc_token_count(c->e);
    c->views       = calloc(CASE_TOKENS, sizeof *c->views);
    for (int i = 0; i < c->token_count; i++) {
        const int64_t H       = posenc_token_describe(c->e, i)->key_heads ? c->dims.G : c->dims.H,
                      heads[] = {H, c->dims.G, 1};
        int64_t      shape[4];
        posenc_error err;
        if (posenc_token_shape(c->e, &c->dims, i, shape, &err))
            fprintf(stderr, "%s\n", err.message), abort();
        c->tokens[i] = array_make4(shape[0], heads[(seed + (uint64_t)i) % 3], shape[2], shape[3]);
        array_fill(&c->tokens[i], seed, posenc_token_name(c->e, i), 1);
        array_make_token(&c->tokens[i], posenc_token_describe(c->e, i)->made);
    }
}

/* Some parts do not go together (pope with a rotation); for dims, if not NULL, some have no plan (shaw with a
   map of distances). */
static inline int case_exists(const char *spec, const posenc_dims *dims)
{
    posenc_encoding *e;
    posenc_plan     *plan   = NULL;
    posenc_status    status = posenc_encoding_create(&e, spec, NULL, NULL);
    if (!status && dims)
        status = posenc_plan_create(&plan, e, dims, NULL, NULL);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return status != POSENC_ERROR_UNSUPPORTED;
}

/* dims with every size given; the SPEC must be valid for them. */
static inline attention_case case_make(const char *spec, posenc_dims dims, uint64_t seed)
{
    attention_case c = {.dims = dims, .options = posenc_options_default()};
    posenc_error   err;
    c.options.threads = 1;
    if (posenc_encoding_create(&c.e, spec, NULL, &err))
        fprintf(stderr, "%s\n", err.message), abort();
    c.q     = array_make4(dims.B, dims.H, dims.Lq, dims.D);
    c.k     = array_make4(dims.B, dims.G, dims.Lk, dims.D);
    c.v     = array_make4(dims.B, dims.G, dims.Lk, dims.Dv);
    c.dout  = array_make4(dims.B, dims.H, dims.Lq, dims.Dv);
    c.q_pos = posenc_positions_range((double)(dims.Lk - dims.Lq), 1);
    c.k_pos = posenc_positions_range(0, 1);
    array_fill(&c.q, seed, "q", 1);
    array_fill(&c.k, seed, "k", 1);
    array_fill(&c.v, seed, "v", 1);
    array_fill(&c.dout, seed, "dout", 1);
    case_fill_params(&c, seed);
    case_fill_tokens(&c, seed);
    c.key_allowed = malloc((size_t)(dims.B * dims.Lk));
    c.allowed     = malloc((size_t)(dims.B * dims.Lq * dims.Lk));
    c.q_segments  = malloc((size_t)(dims.B * dims.Lq) * sizeof(int64_t));
    c.k_segments  = malloc((size_t)(dims.B * dims.Lk) * sizeof(int64_t));
    for (int64_t i = 0; i < dims.B * dims.Lq; i++)
        c.q_segments[i] = i % dims.Lq * 3 / dims.Lq;
    for (int64_t i = 0; i < dims.B * dims.Lk; i++)
        c.k_segments[i] = i % dims.Lk * 3 / dims.Lk;
    for (int64_t i = 0; i < dims.B * dims.Lk; i++)
        c.key_allowed[i] = posenc_random_uniform(seed, "key_allowed", (uint64_t)i) < 0.7;
    for (int64_t i = 0; i < dims.B * dims.Lq * dims.Lk; i++)
        c.allowed[i] = posenc_random_uniform(seed, "allowed", (uint64_t)i) < 0.6;
    return c;
}

static inline void case_free(attention_case *c)
{
    array *all[] = {&c->q, &c->k, &c->v, &c->dout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
    for (int i = 0; i < c->param_count; i++)
        array_free(&c->params[i]);
    for (int i = 0; i < c->token_count; i++)
        array_free(&c->tokens[i]);
    free(c->views);
    free(c->key_allowed);
    free(c->allowed);
    free(c->q_segments);
    free(c->k_segments);
    posenc_encoding_free(c->e);
}

static inline void result_free(attention_result *r)
{
    array *all[] = {&r->o, &r->lse, &r->dq, &r->dk, &r->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
    for (int i = 0; i < CASE_PARAMS; i++)
        if (r->dparams[i].wide)
            array_free(&r->dparams[i]);
    for (int i = 0; i < CASE_TOKENS; i++)
        if (r->dtokens[i].wide)
            array_free(&r->dtokens[i]);
}

/* Segments are refused where neither the mask nor the encoding reads them. */
static inline int case_reads_segments(const attention_case *c)
{
    int reads = c->options.mask & POSENC_MASK_SEGMENTS;
    for (int i = 0; i < c->param_count; i++)
        reads |= strstr(posenc_param_name(c->e, i), "seg_embed") != NULL;
    return reads;
}

/* Where an encoding asks for several coordinates, each is the number that an array has for a token. */
static inline posenc_positions case_places(const posenc_encoding *e, const posenc_dims *d,
                                           posenc_positions pos)
{
    posenc_plan   *plan;
    posenc_tensor *to = &pos.array;
    assert_int_equal(posenc_plan_create(&plan, e, d, NULL, NULL), POSENC_OK);
    const int N = posenc_rotary_coordinates(plan);
    posenc_plan_free(plan);
    if (N == 1 || !to->data || to->ndim == 3)
        return pos;
    for (int a = 1; a >= 0; a--) {
        const int is_given = a >= 2 - to->ndim;
        to->shape[a]       = is_given ? to->shape[a - 2 + to->ndim] : 1;
        to->stride[a]      = is_given ? to->stride[a - 2 + to->ndim] : 0;
    }
    to->shape[2]  = N;
    to->stride[2] = 0;
    to->ndim      = 3;
    return pos;
}

static inline posenc_attend_in case_in(const attention_case *c, int wide, posenc_tensor params[CASE_PARAMS])
{
    const posenc_dims *d  = &c->dims;
    posenc_attend_in   in = {.size = sizeof in,
                             .q    = array_tensor(&c->q, wide),
                             .k    = array_tensor(&c->k, wide),
                             .v    = array_tensor(&c->v, wide)};
    for (int i = 0; i < c->param_count; i++)
        params[i] = array_tensor(&c->params[i], wide);
    in.q_pos = case_places(c->e, d, c->q_pos);
    in.k_pos = case_places(c->e, d, c->k_pos);
    if (c->options.mask & POSENC_MASK_KEY_PADDING)
        in.key_allowed =
            posenc_tensor_contiguous(c->key_allowed, POSENC_DTYPE_U8, 2, (int64_t[]){d->B, d->Lk});
    if (c->options.mask & POSENC_MASK_EXPLICIT)
        in.allowed =
            posenc_tensor_contiguous(c->allowed, POSENC_DTYPE_U8, 4, (int64_t[]){d->B, 1, d->Lq, d->Lk});
    if (case_reads_segments(c)) {
        in.q_segments =
            posenc_tensor_contiguous(c->q_segments, POSENC_DTYPE_I64, 2, (int64_t[]){d->B, d->Lq});
        in.k_segments =
            posenc_tensor_contiguous(c->k_segments, POSENC_DTYPE_I64, 2, (int64_t[]){d->B, d->Lk});
    }
    for (int i = 0; i < c->token_count; i++)
        c->views[i] = array_tensor(&c->tokens[i], wide);
    in.params = params;
    in.tokens = c->views;
    return in;
}

static inline void case_stop(const char *what, const attention_case *c, const posenc_error *err)
{
    fprintf(stderr, "%s of %s: %s\n", what, posenc_encoding_spec(c->e), err->message);
    abort();
}

/* Forward and backward. wide: F64 tensors on the reference executor; else F32 on the tiled one. */
static inline attention_result case_run(const attention_case *c, int wide)
{
    const posenc_dims *d       = &c->dims;
    posenc_options     options = c->options;
    posenc_plan       *plan;
    posenc_error       err;
    posenc_tensor      params[CASE_PARAMS], dparams[CASE_PARAMS], dtokens[CASE_TOKENS];
    attention_result   r = {.o   = array_make4(d->B, d->H, d->Lq, d->Dv),
                            .lse = array_make(3, (int64_t[]){d->B, d->H, d->Lq}),
                            .dq  = array_make4(d->B, d->H, d->Lq, d->D),
                            .dk  = array_make4(d->B, d->G, d->Lk, d->D),
                            .dv  = array_make4(d->B, d->G, d->Lk, d->Dv)};
    options.executor     = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    if (posenc_plan_create(&plan, c->e, d, &options, &err))
        case_stop("plan", c, &err);
    posenc_workspace  work = workspace_for(plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    posenc_attend_in  in   = case_in(c, wide, params);
    posenc_attend_out out  = {.size = sizeof out,
                              .o    = array_tensor(&r.o, wide),
                              .lse  = array_tensor(&r.lse, wide)};
    if (posenc_attend(plan, &in, &out, &work, &err))
        case_stop("attend", c, &err);
    for (int i = 0; i < c->param_count; i++) {
        r.dparams[i] = array_make(c->params[i].ndim, c->params[i].shape);
        dparams[i]   = array_tensor(&r.dparams[i], wide);
    }
    for (int i = 0; i < c->token_count; i++) {
        r.dtokens[i]         = array_make(4, c->tokens[i].shape);
        r.dtokens[i].by_head = 1;
        dtokens[i]           = array_tensor(&r.dtokens[i], wide);
    }
    posenc_attend_grad grad = {.size    = sizeof grad,
                               .o       = out.o,
                               .lse     = out.lse,
                               .dout    = array_tensor(&c->dout, wide),
                               .dtokens = dtokens,
                               .dq      = array_tensor(&r.dq, wide),
                               .dk      = array_tensor(&r.dk, wide),
                               .dv      = array_tensor(&r.dv, wide),
                               .dparams = dparams};
    memset(work.memory, 0xff, work.bytes);
    if (posenc_attend_backward(plan, &in, &grad, &work, &err))
        case_stop("backward", c, &err);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return r;
}

enum { CASE_INPUTS = 4 + CASE_PARAMS + CASE_TOKENS };

static inline int case_inputs(attention_case *c, array *all[CASE_INPUTS])
{
    array *const rows[] = {&c->q, &c->k, &c->v, &c->dout};
    int          n      = 0;
    for (int i = 0; i < 4; i++)
        all[n++] = rows[i];
    for (int i = 0; i < c->param_count; i++)
        all[n++] = &c->params[i];
    for (int i = 0; i < c->token_count; i++)
        all[n++] = &c->tokens[i];
    return n;
}

/* The same problem with every input moved by up to 2^-22 of itself, in double only. */
static inline void case_disturb(attention_case *c, uint64_t seed)
{
    array    *all[CASE_INPUTS];
    const int count = case_inputs(c, all);
    for (int a = 0; a < count; a++)
        for (int64_t i = 0; i < all[a]->count; i++)
            all[a]->wide[i] *=
                1 + 0x1p-22 * (2 * posenc_random_uniform(seed, "disturb", (uint64_t)(a * 1000003 + i)) - 1);
}

static inline void case_restore(attention_case *c)
{
    array    *all[CASE_INPUTS];
    const int count = case_inputs(c, all);
    for (int a = 0; a < count; a++)
        for (int64_t i = 0; i < all[a]->count; i++)
            all[a]->wide[i] = (double)all[a]->narrow[i];
}

static inline double largest(const array *a, const array *minus)
{
    double most = 0;
    for (int64_t i = 0; i < a->count; i++)
        if (isfinite(a->wide[i]))
            most = fmax(most, fabs(a->wide[i] - (minus ? minus->wide[i] : 0)));
    return most;
}

/* Largest |narrow - wide| as a fraction of what is allowed, and where that is; above 1 is a failure. */
static inline double array_error_at(const array *got, const array *want,
                                    const array *const disturbed[DISTURBED], double tolerance, double rest,
                                    int64_t *at)
{
    const double  whole    = largest(want, NULL);
    double        inherent = 0, worst = 0;
    const int64_t last  = want->ndim ? want->shape[want->ndim - 1] : 1;
    const int64_t width = want->by_head ? last * want->shape[want->ndim - 2] : last;
    for (int i = 0; i < DISTURBED; i++)
        inherent = fmax(inherent, largest(want, disturbed[i]));
    for (int64_t row = 0; row < want->count; row += width) {
        double scale = 1e-3 * whole;
        for (int64_t i = row; i < row + width; i++)
            if (isfinite(want->wide[i]))
                scale = fmax(scale, fabs(want->wide[i]));
        for (int64_t i = row; i < row + width; i++) {
            const double g = (double)got->narrow[i], w = want->wide[i];
            if (isinf(w) ? g != w : !isfinite(g)) {
                *at = i;
                return INFINITY;
            }
            const double e = isfinite(w) ? fabs(g - w) / (tolerance * scale + 8 * inherent + rest) : 0;
            if (g != w && e > worst) {
                worst = e;
                *at   = i;
            }
        }
    }
    return worst;
}

static inline double array_error(const array *got, const array *want, const array *const disturbed[DISTURBED],
                                 double tolerance, double rest)
{
    int64_t at = 0;
    return array_error_at(got, want, disturbed, tolerance, rest, &at);
}

/* "causal+window": the masks of a plan in words. */
static inline const char *mask_text(int mask)
{
    static const char *const names[] = {"causal", "window", "key_padding", "explicit", "segments"};
    static char              text[64];
    size_t                   n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mask >> i & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "+" : "", names[i]);
    return n ? text : "none";
}

/* Number i of an array in words, "head 1, query 5": the names of its axes stand between commas, H for head.
   "number 0" of an array without axes. */
static inline const char *array_place(const array *a, int64_t i, const char *axes)
{
    static char text[200];
    int64_t     index[POSENC_MAX_DIMS] = {0};
    size_t      n                      = 0;
    for (int32_t d = a->ndim - 1; d >= 0; i /= a->shape[d--])
        index[d] = i % a->shape[d];
    strcpy(text, "number 0");
    for (int32_t d = 0; d < a->ndim && n < sizeof text; d++) {
        const size_t length = strcspn(axes, ",");
        const int    is_H   = *axes == 'H' && (length == 1 || axes[1] == ' ');
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s %lld", d ? ", " : "", is_H ? 4 : (int)length,
                              is_H ? "head" : axes, (long long)index[d]);
        axes += length + (axes[length] == ',');
    }
    return text;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * test_bound: parameters made ready once are the same parameters
 *
 * Every encoding of the registry, bound and not, must write the same bits: in attention on both executors
 * with many queries and with few, forward and backward, under masks, with lengths, pages, segments and
 * positions off the diagonals, on one thread and on three; in scores, in rotations and in rows. While a bound
 * is in use its parameters are gone: they were overwritten and freed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "attention_part.h"

static const posenc_dims few    = {.B = 2, .H = 4, .G = 2, .Lq = 3, .Lk = 75, .D = 16, .Dv = 16, .L = 16},
                         prompt = {.B = 2, .H = 4, .G = 2, .Lq = 70, .Lk = 90, .D = 16, .Dv = 16, .L = 16};

/* With parameters that the settings of a small model do not call for, and parts together. */
static const char *const more[] = {
    "rope[schedule=longrope:original_length=16:factor=4]",
    "rope[schedule=explicit]+t5[bidirectional=no]",
    "shaw[max_relative=3]+urpe[rows=1025:index_offset=512]",
    "deberta[span=5:projected=no:sigma=0.2:biases=both:norm_rel_ebd=yes]",
    "shaw[min_distance=-3:max_distance=2:beyond=zero]",
    "tupe[relative=yes:rows=600:sigma=0.2]",
    "transformer_xl[clamp_len=3:scale=0.5]",
    "rope+alibi",
    "kerple_log+urpe",
};

enum { MORE = sizeof more / sizeof *more };

typedef struct run {
    const char *what;
    int         mask, threads;
    int64_t     step;                 /* from one position to the next */
    int         lengths, pages, gaps; /* of keys, item by item; keys in pages; positions with gaps */
    int         backward;
} run;

static const run runs[] = {
    {.what = "plain", .mask = POSENC_MASK_CAUSAL, .step = 1, .backward = 1},
    {.what = "three threads", .mask = POSENC_MASK_CAUSAL, .step = 1, .threads = 3, .backward = 1},
    {.what = "window", .mask = POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW, .step = 1},
    {.what = "segments", .mask = POSENC_MASK_CAUSAL | POSENC_MASK_SEGMENTS, .step = 1, .backward = 1},
    {.what = "lengths", .mask = POSENC_MASK_CAUSAL, .step = 1, .lengths = 1, .backward = 1},
    {.what = "pages", .mask = POSENC_MASK_CAUSAL, .step = 1, .lengths = 1, .pages = 1, .threads = 2},
    {.what = "gaps", .mask = POSENC_MASK_CAUSAL, .step = 1, .gaps = 1, .backward = 1},
    {.what = "steps of two", .mask = POSENC_MASK_CAUSAL, .step = 2},
};

enum { RUNS = sizeof runs / sizeof *runs, PAGE = 15, MOST = 90 };

typedef struct places {
    int64_t lengths[2], pages[2 * MOST / PAGE], q[2 * MOST], k[2 * MOST];
} places;

static posenc_tensor whole_numbers(int64_t *data, int32_t ndim, int64_t a, int64_t b)
{
    return posenc_tensor_contiguous(data, POSENC_DTYPE_I64, ndim, (int64_t[]){a, b});
}

/* What the run has besides the tensors of its case. */
static void arrange(session *s, const run *r, places *at)
{
    const posenc_dims *d = &s->c->dims;
    s->in.q_pos          = posenc_positions_range((double)((d->Lk - d->Lq) * r->step), (double)r->step);
    s->in.k_pos          = posenc_positions_range(0, (double)r->step);
    for (int64_t x = 0; x < 2 * MOST; x++) {
        at->k[x] = x + x / 40;
        at->q[x] = d->Lk - d->Lq + 2 + x;
    }
    if (r->gaps) {
        s->in.k_pos = posenc_positions_array(whole_numbers(at->k, 1, d->Lk, 1));
        s->in.q_pos = posenc_positions_array(whole_numbers(at->q, 1, d->Lq, 1));
    }
    at->lengths[0] = d->Lk - 20;
    at->lengths[1] = d->Lk;
    if (r->lengths)
        s->in.k_lengths = whole_numbers(at->lengths, 1, d->B, 1);
    if (!r->pages)
        return;
    const int64_t pages = d->Lk / PAGE;
    for (int64_t i = 0; i < d->B * pages; i++)
        at->pages[i] = (i * 5 + 3) % (d->B * pages);
    s->in.k_pages         = whole_numbers(at->pages, 2, d->B, pages);
    posenc_tensor *rows[] = {&s->in.k, &s->in.v};
    for (int i = 0; i < 2; i++) /* the same numbers, read as pages */
        *rows[i] = posenc_tensor_contiguous(rows[i]->data, rows[i]->dtype, 4,
                                            (int64_t[]){d->B * pages, d->G, PAGE, rows[i]->shape[3]});
}

/* Positions that an encoding's tables do not reach are refused. */
static posenc_status run_it(session *s, const run *r)
{
    posenc_error        err;
    const posenc_status status = posenc_attend(s->plan, &s->in, &s->out, &s->work, &err);
    if (status == POSENC_ERROR_RANGE)
        return status;
    if (status)
        case_stop(r->what, s->c, &err);
    s->grad.dparams = s->dparams;
    if (r->backward && posenc_attend_backward(s->plan, &s->in, &s->grad, &s->work, &err))
        case_stop(r->what, s->c, &err);
    return status;
}

/* A bound of copies that are gone when it is used, but for numbers by pair. */
static posenc_bound *bind(const session *s)
{
    posenc_tensor copies[CASE_PARAMS];
    posenc_bound *bound;
    posenc_error  err;
    for (int i = 0; i < s->c->param_count; i++) {
        const size_t bytes = (size_t)s->c->params[i].count * posenc_dtype_size(s->params[i].dtype);
        copies[i]          = s->params[i];
        copies[i].data     = memcpy(malloc(bytes + 1), s->params[i].data, bytes);
    }
    const posenc_tensor *from = s->plan->terms.pairs.matrix ? s->params : copies;
    if (posenc_plan_bind(&bound, s->plan, from, &err))
        case_stop("bind", s->c, &err);
    for (int i = 0; i < s->c->param_count; i++) {
        memset(copies[i].data, 0xff, (size_t)s->c->params[i].count * posenc_dtype_size(copies[i].dtype));
        free(copies[i].data);
    }
    return bound;
}

static void assert_same(session *got, session *want, const run *r)
{
    array    *a[RESULTS], *b[RESULTS];
    const int count = results_of(got->c, &got->r, a);
    results_of(want->c, &want->r, b);
    for (int i = 0; i < count; i++)
        if (!are_same_bits(a[i], b[i], got->wide))
            fail_msg("%s, %s, %d queries, %s: %s differs by %.3g", posenc_encoding_spec(got->c->e), r->what,
                     (int)got->c->dims.Lq, got->wide ? "reference" : "tiled", result_name(got->c, i),
                     distance_of(a[i], b[i], got->wide));
}

static int takes(const attention_case *c, const run *r)
{
    const int by_place = goes_by_place(posenc_encoding_spec(c->e), &c->dims);
    return !(by_place == 2 && (r->lengths || r->pages));
}

static void compare(attention_case *c, const run *r, int wide)
{
    session plain, ready;
    places  at;
    c->options.mask          = r->mask;
    c->options.window        = r->mask & POSENC_MASK_WINDOW ? 9 : 0;
    c->options.threads       = r->threads ? r->threads : 1;
    c->options.max_distances = r->gaps || r->step > 1 ? 4 * MOST : 0;
    session_open(&plain, c, wide), session_open(&ready, c, wide);
    posenc_bound *bound = bind(&ready);
    arrange(&plain, r, &at), arrange(&ready, r, &at);
    ready.in.bound  = bound;
    ready.in.params = NULL;
    assert_int_equal(run_it(&plain, r), run_it(&ready, r));
    assert_same(&ready, &plain, r);
    posenc_bound_free(bound);
    session_close(&plain), session_close(&ready);
}

/* SPEC number i, "" where it does not act in attention; 0 at the end. */
static int spec_at(int i, char *spec, size_t n, const posenc_dims *d)
{
    const int count = posenc_encoding_count();
    spec[0]         = 0;
    if (i < count)
        write_small(spec, n, posenc_encoding_info_at(i), d);
    else if (i < count + MORE)
        snprintf(spec, n, "%s", more[i - count]);
    return i < count + MORE;
}

static void compare_all(const posenc_dims *d)
{
    char spec[300];
    for (int i = 0; spec_at(i, spec, sizeof spec, d); i++) {
        if (!spec[0])
            continue;
        attention_case c = case_make(spec, *d, (uint64_t)(40 + i));
        for (int r = 0; r < RUNS; r++)
            for (int wide = 0; wide < 2 && takes(&c, &runs[r]); wide++)
                compare(&c, &runs[r], wide);
        case_free(&c);
    }
}

static void few_queries_write_the_same_bits(void **state)
{
    (void)state;
    compare_all(&few);
}

static void many_queries_write_the_same_bits(void **state)
{
    (void)state;
    compare_all(&prompt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_queries_write_the_same_bits),
        cmocka_unit_test(many_queries_write_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

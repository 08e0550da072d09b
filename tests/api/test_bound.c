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
    int64_t     step, from;           /* from one position to the next, and the first key's */
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
    {.what = "positions that the bound has no rows for", .mask = POSENC_MASK_CAUSAL, .step = 1, .from = 200},
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
    s->in.q_pos = posenc_positions_range((double)(r->from + (d->Lk - d->Lq) * r->step), (double)r->step);
    s->in.k_pos = posenc_positions_range((double)r->from, (double)r->step);
    for (int64_t x = 0; x < 2 * MOST; x++) {
        at->k[x] = x + x / 40;
        at->q[x] = d->Lk - d->Lq + 2 + x;
    }
    if (r->gaps) {
        s->in.k_pos = posenc_positions_array(whole_numbers(at->k, 1, d->Lk, 1));
        s->in.q_pos = posenc_positions_array(whole_numbers(at->q, 1, d->Lq, 1));
        s->in.k_pos = case_places(s->c->e, d, s->in.k_pos);
        s->in.q_pos = case_places(s->c->e, d, s->in.q_pos);
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

/* The same bits; but a few queries of some encodings read vectors by distance of a bound that without one
   they do not make (posenc_plan_bind), and what they write is the same within the rounding of floats. */
static int are_same(const posenc_encoding *e, int64_t Lq, array *a, array *b, int wide)
{
    const char *spec = posenc_encoding_spec(e);
    const int   rounds =
        Lq <= POSENC_DECODE_QUERIES && (strstr(spec, "transformer_xl") || strstr(spec, "xlnet"));
    return are_same_bits(a, b, wide) || (rounds && !wide && distance_of(a, b, wide) <= 1e-4);
}

static void assert_same(session *got, session *want, const run *r)
{
    array    *a[RESULTS], *b[RESULTS];
    const int count = results_of(got->c, &got->r, a);
    results_of(want->c, &want->r, b);
    for (int i = 0; i < count; i++)
        if (!are_same(got->c->e, got->c->dims.Lq, a[i], b[i], got->wide))
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
        spec[write_small(spec, n, posenc_encoding_info_at(i), d) && needs_tokens(spec) ? 0 : strlen(spec)] =
            0;
    else if (i < count + MORE)
        snprintf(spec, n, "%s", more[i - count]);
    return i < count + MORE;
}

/* The reference executor, which reads numbers only, is asked for the first run. */
static void compare_all(const posenc_dims *d, int most)
{
    char spec[300];
    for (int i = 0; spec_at(i, spec, sizeof spec, d); i++) {
        if (!spec[0])
            continue;
        attention_case c = case_make(spec, *d, (uint64_t)(40 + i));
        for (int r = 0; r < most; r++)
            for (int wide = 0; wide <= (r == 0) && takes(&c, &runs[r]); wide++)
                compare(&c, &runs[r], wide);
        case_free(&c);
    }
}

static void few_queries_write_the_same_bits(void **state)
{
    (void)state;
    compare_all(&few, RUNS);
}

static void many_queries_write_the_same_bits(void **state)
{
    (void)state;
    compare_all(&prompt, 2);
}

/* ---- scores, rotations, rows ---- */

static void scores_and_biases_are_the_same_bits(void **state)
{
    (void)state;
    char spec[300];
    for (int i = 0; spec_at(i, spec, sizeof spec, &few); i++) {
        if (!spec[0])
            continue;
        attention_case c = case_make(spec, few, (uint64_t)(40 + i));
        session        s;
        posenc_error   err;
        c.options.mask = POSENC_MASK_CAUSAL;
        session_open(&s, &c, 0);
        posenc_workspace work  = workspace_for(s.plan, POSENC_RUN_SCORES);
        posenc_bound    *bound = bind(&s);
        array            S[2], b[2];
        for (int is_bound = 0; is_bound < 2; is_bound++) {
            S[is_bound]      = array_make4(few.B, few.H, few.Lq, few.Lk);
            b[is_bound]      = array_make(3, (int64_t[]){few.H, few.Lq, few.Lk});
            posenc_tensor to = array_tensor(&S[is_bound], 0), bias = array_tensor(&b[is_bound], 1);
            s.in.bound                 = is_bound ? bound : NULL;
            s.in.params                = is_bound ? NULL : s.params;
            const posenc_status status = posenc_scores(s.plan, &s.in, &to, &work, &err);
            if (status == POSENC_ERROR_RANGE) /* keys in the future that its tables do not reach */
                continue;
            if (status || posenc_bias(s.plan, &s.in, &bias, &work, &err))
                case_stop("scores", &c, &err);
        }
        if (!are_same(c.e, few.Lq, &S[0], &S[1], 0) || !are_same_bits(&b[0], &b[1], 1))
            fail_msg("%s: scores or bias differ", spec);
        for (int x = 0; x < 2; x++)
            array_free(&S[x]), array_free(&b[x]);
        posenc_bound_free(bound);
        posenc_workspace_free(&work);
        session_close(&s);
        case_free(&c);
    }
}

/* Of sequences below and above the length where rows are made by a ladder. */
static void rotations_are_the_same_bits(void **state)
{
    (void)state;
    static const char *const specs[] = {"rope[schedule=explicit]",
                                        "rope[schedule=longrope:original_length=16:factor=4]",
                                        "rope[schedule=dynamic:max_length=16:factor=2]",
                                        "rope[schedule=explicit]+t5",
                                        "xpos",
                                        "rope"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int64_t L = 5; L < 700; L += 300) {
            const posenc_dims d = {.B = 1, .H = 2, .G = 2, .Lq = L, .Lk = L, .D = 16, .Dv = 16, .L = 16};
            attention_case    c = case_make(specs[i], d, 7 + i);
            session           s;
            posenc_error      err;
            session_open(&s, &c, 0);
            posenc_bound    *bound = bind(&s);
            posenc_rotate_io io    = {.size = sizeof io, .q = s.in.q, .direction = 1, .params = s.params};
            io.to_q                = s.out.o;
            if (posenc_rotate(s.plan, &io, &s.work, &err))
                case_stop("rotate", &c, &err);
            io.to_q   = array_tensor(&s.r.dq, 0);
            io.params = NULL;
            io.bound  = bound;
            if (posenc_rotate(s.plan, &io, &s.work, &err))
                case_stop("rotate", &c, &err);
            if (!are_same_bits(&s.r.o, &s.r.dq, 0))
                fail_msg("%s, %d rows differ", specs[i], (int)L);
            posenc_bound_free(bound);
            session_close(&s);
            case_free(&c);
        }
}

static void rows_are_the_same_bits(void **state)
{
    (void)state;
    const posenc_dims d    = {.B = 2, .Lq = 12, .Lk = 12, .L = 12, .d_model = 32};
    int               seen = 0;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        small[256];
        posenc_encoding            *e;
        posenc_plan                *plan;
        posenc_bound               *bound;
        posenc_error                err;
        posenc_tensor               params[CASE_PARAMS];
        array                       of[CASE_PARAMS], y[2];
        if (info->place != POSENC_PLACE_INPUT || info->param_count == 0 ||
            posenc_small_model(info->name, &d, 0, small, sizeof small, NULL) ||
            posenc_encoding_create(&e, info->name, small, &err))
            continue;
        if (posenc_plan_create(&plan, e, &d, NULL, &err)) {
            posenc_encoding_free(e);
            continue;
        }
        const int64_t width = posenc_rows_width(plan);
        const int     N = posenc_rows_coordinates(e), count = posenc_param_count(e);
        for (int p = 0; p < count; p++) {
            int32_t ndim;
            int64_t shape[POSENC_MAX_DIMS];
            assert_int_equal(posenc_param_shape(e, &d, p, &ndim, shape, &err), POSENC_OK);
            of[p]     = array_make(ndim, shape);
            params[p] = array_tensor(&of[p], 0);
            array_fill(&of[p], 3, posenc_param_name(e, p), 0.1);
        }
        assert_int_equal(posenc_plan_bind(&bound, plan, params, &err), POSENC_OK);
        posenc_workspace work = workspace_for(plan, POSENC_RUN_ROWS);
        int64_t          pos[2 * 12 * 4];
        int              is_run[2];
        for (int x = 0; x < 2 * 12 * 4; x++)
            pos[x] = x / N % 3;
        for (int is_bound = 0; is_bound < 2; is_bound++) {
            y[is_bound]       = array_make(3, (int64_t[]){2, 12, width});
            posenc_tensor  to = array_tensor(&y[is_bound], 0);
            posenc_rows_in in = {.size = sizeof in};
            if (N > 1)
                in.pos = posenc_positions_array(
                    posenc_tensor_contiguous(pos, POSENC_DTYPE_I64, 3, (int64_t[]){2, 12, N}));
            in.params        = is_bound ? NULL : params;
            in.bound         = is_bound ? bound : NULL;
            is_run[is_bound] = posenc_rows(plan, &in, &to, &work, &err) == POSENC_OK;
        }
        if (is_run[0] != is_run[1] || !are_same_bits(&y[0], &y[1], 0))
            fail_msg("%s[%s]: rows differ", info->name, small);
        seen += is_run[0] && (!strcmp(info->name, "floater") || !strcmp(info->name, "learned"));
        for (int p = 0; p < count; p++)
            array_free(&of[p]);
        array_free(&y[0]), array_free(&y[1]);
        posenc_workspace_free(&work);
        posenc_bound_free(bound);
        posenc_plan_free(plan);
        posenc_encoding_free(e);
    }
    assert_int_equal(seen, 2); /* rows that follow from each other, and rows that do not */
}

/* ---- whose a bound is ---- */

typedef struct layer {
    const session      *s;
    const posenc_bound *bound;
    array               o;
} layer;

static void *run_layer(void *of)
{
    layer            *l    = of;
    posenc_workspace  work = workspace_for(l->s->plan, POSENC_RUN_ATTEND);
    posenc_attend_in  in   = l->s->in;
    posenc_attend_out out  = {.size = sizeof out, .o = array_tensor(&l->o, 0)};
    in.bound               = l->bound;
    in.params              = NULL;
    for (int i = 0; i < 20; i++)
        if (posenc_attend(l->s->plan, &in, &out, &work, NULL))
            abort();
    posenc_workspace_free(&work);
    return NULL;
}

/* Of one plan, each with its own parameters, in three threads, two of which share one. */
static void layers_are_bound_at_once(void **state)
{
    (void)state;
    attention_case c = case_make("rope[schedule=explicit]+t5[bidirectional=no]", few, 3);
    session        s;
    posenc_error   err;
    posenc_bound  *bound[2];
    array          want[2];
    c.options.mask = POSENC_MASK_CAUSAL;
    session_open(&s, &c, 0);
    for (int i = 0; i < 2; i++) {
        bound[i]              = bind(&s);
        want[i]               = array_make4(few.B, few.H, few.Lq, few.Dv);
        posenc_attend_out out = {.size = sizeof out, .o = array_tensor(&want[i], 0)};
        if (posenc_attend(s.plan, &s.in, &out, &s.work, &err))
            case_stop("attend", &c, &err);
        for (int p = 0; p < c.param_count; p++)
            for (int64_t x = 0; x < c.params[p].count; x++)
                c.params[p].narrow[x] *= 1.5F;
    }
    layer     layers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        layers[i] = (layer){&s, bound[i % 2], array_make4(few.B, few.H, few.Lq, few.Dv)};
        assert_int_equal(pthread_create(&threads[i], NULL, run_layer, &layers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_true(are_same_bits(&layers[i].o, &want[i % 2], 0));
        array_free(&layers[i].o);
    }
    assert_false(are_same_bits(&want[0], &want[1], 0));
    array_free(&want[0]), array_free(&want[1]);
    session_close(&s); /* plans may go before bounds */
    posenc_bound_free(bound[1]), posenc_bound_free(bound[0]);
    case_free(&c);
}

static void fill_o(const session *s)
{
    for (int64_t i = 0; i < s->r.o.count; i++)
        s->r.o.narrow[i] = 7;
}

static void refused(const session *s, const posenc_bound *bound, const char *words)
{
    posenc_attend_in in = s->in;
    posenc_error     err;
    in.bound  = bound;
    in.params = NULL;
    fill_o(s);
    assert_int_equal(posenc_attend(s->plan, &in, &s->out, &s->work, &err), POSENC_ERROR_ARGUMENT);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_true(s->r.o.narrow[0] == 7);
}

static void a_bound_of_another_plan_is_refused(void **state)
{
    (void)state;
    static const char *const specs[] = {"t5[bidirectional=no]", "t5[bidirectional=no]",
                                        "t5[bidirectional=no:num_buckets=16]", "alibi"};
    attention_case           c[4];
    session                  s[4];
    posenc_bound            *bound[4];
    for (int i = 0; i < 4; i++) {
        posenc_dims d = few;
        d.Lk += i == 1;
        c[i]              = case_make(specs[i], d, 3);
        c[i].options.mask = POSENC_MASK_CAUSAL;
        session_open(&s[i], &c[i], 0);
        bound[i] = bind(&s[i]);
    }
    for (int i = 1; i < 4; i++)
        refused(&s[0], bound[i], "bound was made for another plan");
    for (int i = 0; i < 4; i++) {
        posenc_bound_free(bound[i]);
        session_close(&s[i]);
        case_free(&c[i]);
    }
}

static void parameters_that_are_left_out_are_asked_for(void **state)
{
    (void)state;
    attention_case c = case_make("rope[schedule=explicit]+t5[bidirectional=no]", few, 3);
    session        s;
    posenc_error   err;
    posenc_bound  *bound;
    posenc_tensor  params[CASE_PARAMS];
    session_open(&s, &c, 0);
    memcpy(params, s.params, sizeof params);
    params[1].data = NULL; /* t5's table */
    assert_int_equal(posenc_plan_bind(&bound, s.plan, params, &err), POSENC_OK);
    refused(&s, bound, "without parameter t5.table");
    posenc_rotate_io io = {.size = sizeof io, .q = s.in.q, .to_q = s.out.o, .direction = 1, .bound = bound};
    assert_int_equal(posenc_rotate(s.plan, &io, &s.work, &err), POSENC_OK);
    posenc_bound_free(bound);
    session_close(&s);
    case_free(&c);
}

static void what_cannot_be_bound_is_refused(void **state)
{
    (void)state;
    attention_case c = case_make("t5", few, 3);
    session        s;
    posenc_error   err;
    posenc_bound  *bound = (posenc_bound *)&c;
    posenc_tensor  wrong = c.param_count ? array_tensor(&c.params[0], 0) : (posenc_tensor){0};
    session_open(&s, &c, 0);
    wrong.shape[0]--;
    assert_int_equal(posenc_plan_bind(&bound, s.plan, &wrong, &err), POSENC_ERROR_SHAPE);
    assert_null(bound);
    assert_int_equal(posenc_plan_bind(&bound, s.plan, NULL, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_plan_bind(&bound, NULL, s.params, &err), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_plan_bind(NULL, s.plan, s.params, &err), POSENC_ERROR_ARGUMENT);
    posenc_bound_free(NULL);
    session_close(&s);
    case_free(&c);
}

/* What a call of one key costs must not follow the plan: the numbers that it makes are counted by what it
   leaves in its workspace. */
static void a_short_run_touches_no_more_in_a_longer_plan(void **state)
{
    (void)state;
    static const char *const specs[] = {"cope", "kerple_log", "t5", "sandwich"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        size_t touched[2];
        for (int is_long = 0; is_long < 2; is_long++) {
            const posenc_dims d = {.B  = 1,
                                   .H  = 2,
                                   .G  = 2,
                                   .Lq = 1,
                                   .Lk = is_long ? 8192 : 512,
                                   .D  = 16,
                                   .Dv = 16,
                                   .L  = is_long ? 8192 : 512};
            attention_case    c = case_make(specs[i], d, 5);
            session           s;
            posenc_error      err;
            c.options.mask = POSENC_MASK_CAUSAL;
            session_open(&s, &c, 0);
            posenc_bound *bound = bind(&s);
            part          p     = whole(&c);
            p.Lk                = 1;
            memset(s.work.memory, 0x5a, s.work.bytes);
            posenc_attend_in in = in_of(&s, &p);
            in.bound            = bound;
            if (posenc_attend(s.plan, &in, &s.out, &s.work, &err))
                case_stop("attend", &c, &err);
            touched[is_long] = 0;
            for (size_t b = 0; b < s.work.bytes; b++)
                touched[is_long] += ((unsigned char *)s.work.memory)[b] != 0x5a;
            posenc_bound_free(bound);
            session_close(&s);
            case_free(&c);
        }
        if (touched[1] > touched[0] + 64)
            fail_msg("%s: %zu bytes, in a longer plan %zu", specs[i], touched[0], touched[1]);
    }
}

/* ---- memory ---- */

enum { BEHIND = 1 << 16, PATTERN = 0x5a };

/* A bound's tables may have more rows than a run's own would: the run must not ask for memory of theirs. */
static void run_within(const attention_case *c, posenc_run kind)
{
    const posenc_dims *d = &c->dims;
    array              o = array_make4(d->B, d->H, d->Lq, d->Dv), S = array_make4(d->B, d->H, d->Lq, d->Lk);
    posenc_tensor      params[CASE_PARAMS], to = array_tensor(kind == POSENC_RUN_SCORES ? &S : &o, 0);
    posenc_attend_in   in = case_in(c, 0, params);
    posenc_plan       *plan;
    posenc_bound      *bound;
    posenc_error       err;
    if (posenc_plan_create(&plan, c->e, d, &c->options, &err) || posenc_plan_bind(&bound, plan, params, &err))
        case_stop("bind", c, &err);
    const size_t            bytes = posenc_plan_workspace(plan, kind, NULL);
    unsigned char          *at    = aligned_alloc(64, bytes + BEHIND);
    const posenc_workspace  work  = posenc_workspace_over(memset(at, PATTERN, bytes + BEHIND), bytes);
    const posenc_attend_out out   = {.size = sizeof out, .o = to};
    in.bound                      = bound;
    const posenc_status status    = kind == POSENC_RUN_SCORES ? posenc_scores(plan, &in, &to, &work, &err)
                                                              : posenc_attend(plan, &in, &out, &work, &err);
    if (status && status != POSENC_ERROR_RANGE) /* keys farther than an encoding's table reaches */
        case_stop("run", c, &err);
    for (size_t i = bytes; i < bytes + BEHIND; i++)
        if (at[i] != PATTERN)
            fail_msg("%s, %d x %d, %d threads: byte %zu behind a workspace of %zu is written",
                     posenc_encoding_spec(c->e), (int)d->Lq, (int)d->Lk, c->options.threads, i - bytes,
                     bytes);
    posenc_bound_free(bound);
    posenc_plan_free(plan);
    free(at);
    array_free(&o), array_free(&S);
}

static void bound_runs_keep_to_their_workspace(void **state)
{
    static const int64_t lengths[] = {16, 64, 128};
    (void)state;
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
        for (int one = 0; one < 2; one++) {
            const int64_t     L = lengths[n];
            const posenc_dims d = {
                .B = 1, .H = 4, .G = 2, .Lq = one ? 1 : L, .Lk = L, .D = 16, .Dv = 16, .L = 16};
            char spec[300];
            for (int i = 0; spec_at(i, spec, sizeof spec, &d); i++) {
                if (!spec[0])
                    continue;
                attention_case c = case_make(spec, d, (uint64_t)i);
                c.options.mask   = POSENC_MASK_CAUSAL;
                for (c.options.threads = 1; c.options.threads <= 3; c.options.threads += 2) {
                    run_within(&c, one ? POSENC_RUN_DECODE : POSENC_RUN_ATTEND);
                    run_within(&c, POSENC_RUN_SCORES);
                }
                case_free(&c);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_queries_write_the_same_bits),
        cmocka_unit_test(many_queries_write_the_same_bits),
        cmocka_unit_test(scores_and_biases_are_the_same_bits),
        cmocka_unit_test(rotations_are_the_same_bits),
        cmocka_unit_test(rows_are_the_same_bits),
        cmocka_unit_test(layers_are_bound_at_once),
        cmocka_unit_test(a_bound_of_another_plan_is_refused),
        cmocka_unit_test(parameters_that_are_left_out_are_asked_for),
        cmocka_unit_test(what_cannot_be_bound_is_refused),
        cmocka_unit_test(a_short_run_touches_no_more_in_a_longer_plan),
        cmocka_unit_test(bound_runs_keep_to_their_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

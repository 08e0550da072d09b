/* SPDX-License-Identifier: MIT */
/*
 * fuzz_api: the public calls, with whatever a caller may pass
 *
 * The bytes choose an encoding or two of the registry, settings, sizes, options, then calls: attention
 * forward and backward, scores, bias both ways, rows and rotation both ways, tables, re-rotation, angles.
 * Each call runs twice on the same numbers: on the reference executor with contiguous float64, and as the
 * bytes say - executor, threads of the library and of the caller, instruction set, tiles, storage types and
 * their scales, strides, pages, lengths, positions, masks, segments, parameters or a bound of them,
 * workspaces that end where memory does or are too small. Where both succeed the results must agree; where
 * one fails it must have said why in one line, and have written nothing. Some tensors are spoiled on the way,
 * by what a caller's mistake could be without lying about memory: a missing one, another type of no greater
 * size, fewer elements, another number of axes.
 *
 * The numbers are agreed on roughly, as what is sought are wrong ones: 2e-3 of an array's largest (5e-2 where
 * half types take part), and what inputs moved by 2^-20 of themselves change.
 */
#include <posenc/positions.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <posenc/scores.h>

#include "fuzz/draw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARAMS = 24, TOKENS = 4, LARGEST = 1 << 14, WORKSPACE = 1 << 22 };

/* What is the same for both runs of a call. */
typedef struct problem {
    draw_source      s;
    char             spec[512];
    posenc_encoding *e;
    posenc_dims      dims;
    posenc_options   options;
    posenc_plan     *plan;        /* of the first run as the bytes say; NULL once a session has it */
    int64_t          width;       /* of its rows */
    int              coordinates; /* of a position of its rotation */
    int              wild;        /* numbers that no two ways agree on: results are not compared */
    int              coarse;      /* half types take part */
    double           move;        /* inputs of the exact run are moved by so much of themselves */
    int              count;
    draw_numbers     params[PARAMS];
} problem;

/* ---- an encoding ---- */

static void add_text(problem *p, const char *text)
{
    const size_t used = strlen(p->spec);
    snprintf(p->spec + used, sizeof p->spec - used, "%s", text);
}

/* Word number i of "a|b|c". */
static void add_word(problem *p, const char *range, int64_t i)
{
    char   word[64];
    size_t n;
    for (; i > 0 && strchr(range, '|'); i--)
        range = strchr(range, '|') + 1;
    n = strcspn(range, "|");
    snprintf(word, sizeof word, "%.*s", (int)n, range);
    add_text(p, word);
}

static void add_number(problem *p, const char *type)
{
    static const char *const texts[] = {"L",      "Lk-1", "H*D", "1e-3", "0.5", "1e300", "9007199254740992",
                                        "1048576"};
    char                     text[32];
    if (draw_chance(&p->s, 8)) {
        add_text(p, texts[draw_below(&p->s, sizeof texts / sizeof *texts)]);
        return;
    }
    snprintf(text, sizeof text, strcmp(type, "real") != 0 ? "%.0f" : "%g", (double)draw_below(&p->s, 24) - 1);
    add_text(p, text);
}

static void add_setting(problem *p, const posenc_setting_info *row, const char *before)
{
    add_text(p, before);
    add_text(p, row->name);
    add_text(p, "=");
    if (strchr("wf", row->type[0])) {
        add_word(p, row->range, draw_below(&p->s, 12));
        return;
    }
    if (row->type[0] == 'm') {
        add_word(p, row->range, draw_below(&p->s, 4));
        add_text(p, "=");
    }
    add_number(p, row->type);
    for (int64_t more = row->type[0] == 'l' ? draw_below(&p->s, 4) : 0; more > 0; more--) {
        add_text(p, "x");
        add_number(p, row->type);
    }
}

/* One encoding: settings of a small model or none, and some of the bytes' own, its and those of all. */
static void add_part(problem *p)
{
    const posenc_encoding_info *info =
        posenc_encoding_info_at((int)draw_below(&p->s, posenc_encoding_count()));
    char small[256] = "";
    if (draw_below(&p->s, 4))
        posenc_small_model(info->name, &p->dims, p->options.mask, small, sizeof small, NULL);
    add_text(p, info->name);
    add_text(p, "[");
    for (char *c = small; *c; c++)
        *c = *c == ' ' ? ':' : *c;
    add_text(p, small);
    for (int64_t n = draw_below(&p->s, 4), i = 0; i < n && info->setting_count; i++)
        add_setting(p, &info->settings[draw_below(&p->s, info->setting_count)], i || *small ? ":" : "");
    const posenc_setting_info *common;
    const int                  count = posenc_common_settings(&common);
    for (int64_t n = draw_chance(&p->s, 3) ? 1 + draw_below(&p->s, 3) : 0; n > 0; n--)
        add_setting(p, &common[draw_below(&p->s, count)], p->spec[strlen(p->spec) - 1] == '[' ? "" : ":");
    add_text(p, "]");
}

/* "name[]" is no SPEC. */
static void clean_spec(char *spec)
{
    for (char *empty; (empty = strstr(spec, "[]"));)
        memmove(empty, empty + 2, strlen(empty + 2) + 1);
}

/* A run takes as long as its products: more inputs in a second find more. */
static void make_cheap(posenc_dims *d)
{
    enum { PRODUCTS = 1 << 15 };
    if (d->B * d->H * d->Lq * d->Lk * d->D > PRODUCTS)
        d->B = 1;
    if (d->H * d->Lq * d->Lk * d->D > PRODUCTS) {
        d->H /= d->G;
        d->G = 1;
    }
    for (; d->H * d->Lq * d->Lk * d->D > PRODUCTS && d->D % 4 == 0 && d->D > 4; d->D /= 2)
        ;
}

static void draw_sizes(problem *p)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 8, 9, 17, 33, 70},
                         widths[]  = {2, 1, 4, 8, 6, 12, 16, 32, 64};
    draw_source  *s                = &p->s;
    const int64_t group            = 1 + draw_below(s, 3);
    p->dims.B                      = 1 + draw_below(s, 3);
    p->dims.G                      = 1 + draw_below(s, 2);
    p->dims.H                      = group * p->dims.G;
    p->dims.Lq                     = lengths[draw_below(s, 9)];
    p->dims.Lk                     = draw_chance(s, 2) ? lengths[draw_below(s, 9)] : p->dims.Lq;
    p->dims.D                      = widths[draw_below(s, 9)];
    p->dims.Dv                     = draw_chance(s, 2) ? widths[draw_below(s, 9)] : p->dims.D;
    p->dims.d_model                = widths[draw_below(s, 9)];
    p->dims.L                      = lengths[draw_below(s, 9)];
    if (!draw_chance(s, 16))
        make_cheap(&p->dims);
}

/* A caller's own threads: tasks in an order that no other has. */
static void run_backwards(void *context, int64_t n, posenc_task *task, void *argument)
{
    const int threads = *(const int *)context;
    for (int64_t i = n - 1; i >= 0; i--)
        task(argument, i, (int)((n - i) * 7 % threads));
}

static void draw_options(problem *p)
{
    static const int masks[] = {0, POSENC_MASK_CAUSAL, POSENC_MASK_WINDOW,
                                POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW};
    draw_source     *s       = &p->s;
    posenc_options  *o       = &p->options;
    *o                       = posenc_options_default();
    o->mask                  = masks[draw_below(s, 4)] | (draw_chance(s, 4) ? (int)draw_below(s, 8) << 2 : 0);
    o->window                = o->mask & POSENC_MASK_WINDOW ? draw_integer(s) : 0;
    o->threads               = draw_chance(s, 8) ? 1 + (int)draw_below(s, 8) : 1;
    if (draw_chance(s, 8)) {
        o->parallel_for     = run_backwards;
        o->parallel_context = &o->threads;
    }
    o->tile_q        = draw_chance(s, 4) ? draw_below(s, 9) : 0;
    o->tile_k        = draw_chance(s, 4) ? draw_below(s, 9) : 0;
    o->executor      = draw_chance(s, 8) ? (posenc_executor)draw_below(s, 3) : POSENC_EXECUTOR_TILED;
    o->max_distances = draw_chance(s, 8) ? draw_integer(s) : 0;
    o->products      = draw_chance(s, 8) ? POSENC_PRODUCTS_F32 : POSENC_PRODUCTS_BY_STORAGE;
    o->isa           = draw_chance(s, 4) ? posenc_isa_at((int)draw_below(s, 4)) : NULL;
}

/* Of a run: 1 .. most, now and then 0. */
static int64_t draw_size(draw_source *s, int64_t most)
{
    return draw_chance(s, 24) ? 0 : 1 + draw_below(s, most);
}

/* ---- failures ---- */

static void require(int holds, const problem *p, const char *what)
{
    const posenc_dims *d = &p->dims;
    if (holds)
        return;
    fprintf(stderr,
            "%s\n%s  B=%lld H=%lld G=%lld Lq=%lld Lk=%lld D=%lld Dv=%lld d_model=%lld L=%lld  mask=%d "
            "window=%lld "
            "executor=%d tiles=%lldx%lld isa=%s threads=%d max_distances=%lld\n",
            what, p->e ? posenc_encoding_spec(p->e) : p->spec, (long long)d->B, (long long)d->H,
            (long long)d->G, (long long)d->Lq, (long long)d->Lk, (long long)d->D, (long long)d->Dv,
            (long long)d->d_model, (long long)d->L, p->options.mask, (long long)p->options.window,
            (int)p->options.executor, (long long)p->options.tile_q, (long long)p->options.tile_k,
            p->options.isa ? p->options.isa : "best", p->options.threads,
            (long long)p->options.max_distances);
    abort();
}

/* A status and its sentence. */
static posenc_status said(posenc_status status, const posenc_error *err, const problem *p)
{
    require(!status || (err->status == status && err->message[0] && !strchr(err->message, '\n')), p,
            "a failure without a sentence");
    return status;
}

/* ---- a plan, its workspace and parameters ---- */

typedef struct session {
    posenc_plan     *plan;
    posenc_workspace work;
    void            *room;  /* that the workspace lies in, if it is not the library's */
    posenc_bound    *bound; /* in place of the tensors, or NULL */
    posenc_tensor   *given; /* the tensors; NULL where a bound has them */
    draw_view        params[PARAMS], dparams[PARAMS];
    posenc_tensor    tensors[PARAMS], gradients[PARAMS];
    draw_view        tokens[TOKENS], dtokens[TOKENS], sums[TOKENS];
    posenc_tensor    token_tensors[TOKENS], token_gradients[TOKENS], token_sums[TOKENS];
    int              has_sums;
} session;

/* An input of the exact run, moved by p->move. */
static draw_view view_of(problem *p, const draw_numbers *a, int exact, posenc_dtype dtype, int rows)
{
    draw_source none = {0};
    draw_view   v    = draw_tensor(exact ? &none : &p->s, a, exact ? POSENC_DTYPE_F64 : dtype, rows, 0);
    none.noise       = 1;
    for (int64_t i = 0; exact && p->move != 0 && i < a->count; i++)
        ((double *)v.t.data)[i] *= 1 + p->move * draw_noise(&none);
    return v;
}

static void open_params(problem *p, session *x, int exact)
{
    for (int i = 0; i < p->count; i++) {
        const posenc_dtype dtype = exact || draw_chance(&p->s, 4) ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32;
        draw_source        none  = {0};
        draw_numbers       zeros = draw_array(p->params[i].ndim, p->params[i].shape);
        x->params[i]             = draw_tensor(&none, &p->params[i], dtype, 1, 0);
        none.noise               = (uint64_t)i + 7;
        for (int64_t n = 0; exact && p->move != 0 && n < p->params[i].count; n++)
            ((double *)x->params[i].t.data)[n] *= 1 + p->move * draw_noise(&none);
        x->dparams[i]   = draw_tensor(&none, &zeros, dtype, 1, 0);
        x->tensors[i]   = x->params[i].t;
        x->gradients[i] = x->dparams[i].t;
        if (!exact && draw_chance(&p->s, 32))
            x->tensors[i].data = NULL;
        if (!exact && draw_chance(&p->s, 16))
            x->gradients[i].data = NULL;
        free(zeros.x);
    }
}

/* The library's, or one that ends where a page begins that nobody may touch; now and then too small. */
static int open_workspace(problem *p, session *x, posenc_run runs, size_t bytes, int exact)
{
    posenc_error err;
    if (exact || bytes > DRAW_ROOM || draw_chance(&p->s, 2))
        return !posenc_workspace_create(&x->work, x->plan, runs, NULL, &err);
    if (draw_chance(&p->s, 16) && bytes)
        bytes = bytes * (size_t)draw_below(&p->s, 256) / 256 / 64 * 64;
    x->room = draw_memory(bytes, 2);
    x->work = posenc_workspace_over(x->room, bytes);
    return 1;
}

/* Not where a run would take too long or too much. */
static int session_open(problem *p, session *x, int exact)
{
    const int runs = POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES | POSENC_RUN_BIAS_BACKWARD;
    posenc_options options = p->options;
    posenc_error   err;
    posenc_sizes   sizes = posenc_sizes_default();
    *x                   = (session){0};
    if (exact) {
        options.executor     = POSENC_EXECUTOR_REFERENCE;
        options.threads      = 1;
        options.parallel_for = NULL;
    }
    if (!exact && p->plan) {
        x->plan = p->plan;
        p->plan = NULL;
    } else if (said(posenc_plan_create(&x->plan, p->e, &p->dims, &options, &err), &err, p))
        return 0;
    const size_t bytes = posenc_plan_workspace(x->plan, (posenc_run)runs, &sizes);
    require(bytes % 64 == 0, p, "a workspace that is no multiple of 64");
    if (bytes > WORKSPACE || !open_workspace(p, x, (posenc_run)runs, bytes, exact))
        return 0;
    memset(x->work.memory, 0xff, x->work.bytes);
    open_params(p, x, exact);
    if (!exact && draw_chance(&p->s, 4) && posenc_plan_bind(&x->bound, x->plan, x->tensors, &err)) {
        said(err.status, &err, p);
        require(!x->bound, p, "a bound that was refused is there");
    }
    x->given = x->bound && draw_chance(&p->s, 2) ? NULL : x->tensors;
    return 1;
}

static void session_close(problem *p, session *x)
{
    for (int i = 0; i < p->count; i++) {
        draw_free(x->params[i].block);
        draw_free(x->dparams[i].block);
    }
    if (x->room)
        draw_free(x->room);
    else
        posenc_workspace_free(&x->work);
    if (p->s.left % 2)
        posenc_plan_free(x->plan);
    posenc_bound_free(x->bound);
    if (!(p->s.left % 2))
        posenc_plan_free(x->plan);
}

/* The numbers of all parameters; 0 where they are too many. Half a step from what they begin with, so that
   none is special. */
static int draw_params(problem *p)
{
    posenc_error  err;
    posenc_tensor tensors[PARAMS];
    p->count = 0;
    for (int i = 0, n = posenc_param_count(p->e); i < n; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], count = 1;
        if (n > PARAMS || said(posenc_param_shape(p->e, &p->dims, i, &ndim, shape, &err), &err, p))
            return 0;
        for (int a = 0; a < ndim && count <= LARGEST; a++)
            count = shape[a] <= LARGEST ? count * shape[a] : LARGEST + 1;
        if (count > LARGEST)
            return 0;
        p->params[p->count++] = draw_array(ndim, shape);
    }
    for (int i = 0; i < p->count; i++)
        tensors[i] =
            posenc_tensor_contiguous(p->params[i].x, POSENC_DTYPE_F64, p->params[i].ndim, p->params[i].shape);
    if (p->count && said(posenc_param_init(p->e, &p->dims, tensors, 1, &err), &err, p))
        return 0;
    for (int i = 0; i < p->count; i++)
        for (int64_t n = 0; n < p->params[i].count; n++) {
            double *x = &p->params[i].x[n];
            *x = (double)(float)(*x != 0 ? *x * (1 - 0.01 * draw_noise(&p->s)) : 0.2 * draw_noise(&p->s));
            p->wild |= !(fabs(*x) < 1e6);
        }
    return 1;
}

/* ---- results ---- */

enum { RESULTS = 6 + PARAMS + TOKENS };

typedef struct results {
    posenc_status forward, backward;
    draw_numbers  of[RESULTS];
} results;

static void results_free(results *r)
{
    for (int i = 0; i < RESULTS; i++)
        free(r->of[i].x);
}

static double largest(const draw_numbers *a, const draw_numbers *b)
{
    double most = 0;
    for (int64_t i = 0; i < a->count; i++)
        if (isfinite(a->x[i]) && (!b || isfinite(b->x[i])))
            most = fmax(most, fabs(a->x[i] - (b ? b->x[i] : 0)));
    return most;
}

/* Do they agree, up to `rest`? What overflows in float64 may be NaN or infinite in float (a factor of xpos).
 */
static int agree(const draw_numbers *got, const draw_numbers *want, double rest)
{
    for (int64_t i = 0; i < want->count; i++) {
        const double g = got->x[i], w = want->x[i];
        if (isnan(w) ? isfinite(g) : isinf(w) ? g != w : !(fabs(g - w) <= rest))
            return 0;
    }
    return 1;
}

/* A call on the exact inputs or on others. */
typedef void call(problem *p, session *x, const void *inputs, int exact, results *r);

static void gradients_of(problem *p, session *x, results *r)
{
    for (int i = 0; i < p->count; i++) {
        r->of[6 + i] = draw_array(p->params[i].ndim, p->params[i].shape);
        for (int64_t n = 0; n < r->of[6 + i].count; n++)
            r->of[6 + i].x[n] = draw_get(x->dparams[i].t.data, x->dparams[i].t.dtype, n);
        if (!x->gradients[i].data) {
            free(r->of[6 + i].x);
            r->of[6 + i] = (draw_numbers){0};
        }
    }
}

static int run_exact(problem *p, call *run, const void *inputs, double move, results *r)
{
    session x;
    p->move      = move;
    const int ok = session_open(p, &x, 1);
    *r           = (results){.forward = POSENC_ERROR_MEMORY, .backward = POSENC_ERROR_MEMORY};
    if (ok)
        run(p, &x, inputs, 1, r);
    session_close(p, &x);
    p->move = 0;
    return ok;
}

/* Where two arrays differ: more than what a little noise in the inputs changes, to either side, or the
   rounding of large scores, of which some lse is one (biases of a million)? A sum of CoPE's gates that is a
   whole number, as those of q.k and -q.k, is a kink of its gradient. */
enum { MOVES = 6 };

static void compare(problem *p, call *run, const void *inputs, const results *got, const results *want)
{
    char         sentence[96];
    const double scores       = want->of[1].x ? largest(&want->of[1], NULL) : 0;
    const double tolerance    = (p->coarse ? 5e-2 : 2e-3) + 0x1p-21 * scores;
    results      moved[MOVES] = {{0}};
    int          ran          = 0;
    for (int i = 0; i < RESULTS; i++) {
        const draw_numbers *g = &got->of[i], *w = &want->of[i];
        const double        most = w->x ? largest(w, NULL) : 0, rest = tolerance * (1 + most);
        double              change = 0;
        if (!g->x || !w->x || most > 1e6 || agree(g, w, rest))
            continue;
        for (int m = 0; m < MOVES; m++) {
            if (!ran)
                run_exact(p, run, inputs, (m / 2 + 1) * (m % 2 ? -1 : 1) * (p->coarse ? 0x1p-9 : 0x1p-20),
                          &moved[m]);
            if (moved[m].of[i].x)
                change = fmax(change, largest(&moved[m].of[i], w));
        }
        ran = 1;
        snprintf(sentence, sizeof sentence, "result %d is wrong: off by %g of %g, noise %g", i, largest(g, w),
                 most, change);
        require(change > 1e-2 * most || agree(g, w, rest + 64 * change), p, sentence);
    }
    for (int m = 0; m < MOVES; m++)
        results_free(&moved[m]);
}

static void run_both_ways(problem *p, call *run, const void *inputs)
{
    session x;
    results want, got = {0};
    if (run_exact(p, run, inputs, 0, &want)) {
        const int ok = session_open(p, &x, 0);
        if (ok)
            run(p, &x, inputs, 0, &got);
        if (ok && !p->wild) {
            if (want.forward || got.forward)
                got.of[0].count = got.of[1].count = want.of[0].count = want.of[1].count = 0;
            compare(p, run, inputs, &got, &want);
        }
        session_close(p, &x);
    }
    results_free(&want);
    results_free(&got);
}

/* ---- what a caller gets wrong ---- */

static void spoil(problem *p, posenc_tensor *const tensors[], int count)
{
    posenc_tensor *t    = tensors[draw_below(&p->s, count)];
    const size_t   size = posenc_dtype_size(t->dtype);
    p->wild             = 1;
    if (!t->data)
        return;
    switch (draw_below(&p->s, 5)) {
    case 0: t->data = NULL; break;
    case 3: t->data = (char *)t->data + (size > 1); break; /* between two elements */
    case 1: {
        const posenc_dtype other = (posenc_dtype)draw_below(&p->s, 10);
        if (other > POSENC_DTYPE_Q8_0 || (posenc_dtype_size(other) && posenc_dtype_size(other) <= size))
            t->dtype = other;
        break;
    }
    case 2: t->ndim = (int32_t)draw_below(&p->s, 8) - 1; break;
    default: {
        const int64_t a = draw_below(&p->s, POSENC_MAX_DIMS), fewer = draw_below(&p->s, 4) - 1;
        if (fewer < t->shape[a])
            t->shape[a] = fewer;
    }
    }
}

/* ---- positions ---- */

typedef struct places {
    posenc_positions range;
    draw_numbers     array;
    posenc_dtype     dtype;
    draw_view        view;
} places;

static places draw_places(problem *p, int64_t B, int64_t L, int64_t N, double from)
{
    draw_source  *s        = &p->s;
    places        x        = {.range = posenc_positions_range(from, 1), .dtype = POSENC_DTYPE_F64};
    const int64_t batch    = draw_chance(s, 2) ? B : 1;
    const int     axes     = N > 1 ? 3 : batch > 1 || draw_chance(s, 2) ? 2 : 1;
    const int64_t shape[3] = {batch, L, N};
    const int     kind     = (int)draw_below(s, 10);
    if (kind == 1)
        x.range = posenc_positions_range((double)draw_below(s, 20), 1 + (double)draw_below(s, 3));
    if (kind == 2) {
        x.range = posenc_positions_range(draw_real(s), draw_real(s));
        p->wild = 1;
    }
    if (kind > 7) { /* steps that few ask for, down and broken ones among them */
        static const double steps[]  = {-1, -2, -5, 0.5, -0.25, 3, 16, 1.0 / 3, -1.1, 100},
                            starts[] = {0, -3, 5, 1000, -1000, 65536, 0.5, -0.75};
        x.range = posenc_positions_range(starts[draw_below(s, 8)], steps[draw_below(s, 10)]);
        p->wild |= strstr(p->spec, "xpos") != NULL; /* float does not hold its decay from 0 */
    }
    if ((kind < 3 || kind == 8) && !((kind == 0 || kind == 8) && N > 1))
        return x;
    x.array = draw_array(axes, axes == 1 ? shape + 1 : shape);
    s->noise += (uint64_t)draw_below(s, 256);
    for (int64_t i = 0; i < x.array.count; i++)
        x.array.x[i] = kind > 7   ? x.range.start + x.range.step * (double)(i / N % L)
                       : kind < 6 ? (double)(i / N % L) + from
                                  : floor(8 * (1.75 + draw_noise(s)));
    if (draw_chance(s, 8) && x.array.count) {
        x.array.x[draw_below(s, x.array.count)] = draw_real(s);
        p->wild                                 = 1;
    }
    if (!draw_chance(s, 3))
        x.dtype = draw_chance(s, 2) ? POSENC_DTYPE_I64 : POSENC_DTYPE_I32;
    return x;
}

/* Of a type that holds them all, for the exact run too. */
static posenc_positions open_places(problem *p, places *x, int exact)
{
    draw_source none = {0};
    if (!x->array.x)
        return x->range;
    x->view = draw_tensor(exact ? &none : &p->s, &x->array, x->dtype, 0, 0);
    return posenc_positions_array(x->view.t);
}

static void close_places(places *x)
{
    draw_free(x->view.block);
    x->view = (draw_view){0};
}

static posenc_dtype draw_dtype(problem *p)
{
    static const posenc_dtype all[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F64, POSENC_DTYPE_F16,
                                       POSENC_DTYPE_BF16};
    const int64_t             which = draw_chance(&p->s, 3) ? draw_below(&p->s, 4) : 0;
    p->coarse |= which > 1;
    return all[which];
}

/* ---- attention ---- */

typedef struct attention {
    draw_numbers q, k, v, dout, dlse, key_allowed, allowed, q_segments, k_segments, lengths, k_scale, v_scale;
    places       q_pos, k_pos;
    int64_t      page; /* keys of one; 0: rows */
    posenc_dtype cache;
    int          is_backward, what; /* 0: attention, 1: scores, 2: bias */
    draw_numbers tokens[TOKENS];
} attention;

static draw_numbers draw_bits(problem *p, int32_t ndim, const int64_t *shape, int64_t most)
{
    draw_numbers a = draw_array(ndim, shape);
    p->s.noise += (uint64_t)draw_below(&p->s, 256);
    for (int64_t i = 0; i < a.count; i++)
        a.x[i] = (double)((int64_t)(4 * (1.75 + draw_noise(&p->s))) % most);
    if (ndim > 1 && draw_chance(&p->s, 8))
        draw_repeat(&a, (int32_t)draw_below(&p->s, ndim - 1));
    return a;
}

static draw_numbers draw_floats(problem *p, int64_t a, int64_t b, int64_t c, int64_t d)
{
    draw_numbers x = draw_array(4, (int64_t[]){a, b, c, d});
    draw_fill(&p->s, &x);
    if (draw_chance(&p->s, 24) && x.count) {
        x.x[draw_below(&p->s, x.count)] = draw_real(&p->s);
        p->wild                         = 1;
    }
    return x;
}

/* What rows of F8_E4M3 are multiplied by. */
static draw_numbers draw_scale(problem *p)
{
    draw_numbers a = draw_array(1, &p->dims.G);
    for (int64_t g = 0; g < a.count; g++)
        a.x[g] = 0.375 * (double)(1 + draw_below(&p->s, 8));
    return a;
}

/* Products of what a model makes shorter than 1 or smaller than 2 must not grow from key to key. By powers of
   2, so that the numbers stay those of every type. */
static void hold_token(draw_numbers *x, posenc_token_made made)
{
    const int64_t n = x->ndim == 4 ? x->shape[3] : 1;
    for (int64_t row = 0; made == POSENC_TOKEN_UNIT && row < x->count; row += n) {
        double sum = 0;
        for (int64_t c = row; c < row + n; c++)
            sum += x->x[c] * x->x[c];
        for (int64_t c = row; sum > 1 && isfinite(sum) && c < row + n; c++)
            x->x[c] = ldexp(x->x[c], -(int)ceil(log2(sum) / 2));
    }
    for (int64_t i = 0; made == POSENC_TOKEN_UP_TO_2 && i < x->count; i++)
        x->x[i] = fmin(fabs(x->x[i]), 2);
}

/* Token input i of some queries or keys, of as many heads as it may have. */
static draw_numbers draw_token(problem *p, int i, const attention *a)
{
    const int64_t heads[3] = {p->dims.H, p->dims.G, 1};
    const int     of_keys  = posenc_token_describe(p->e, i)->of_keys;
    int64_t       shape[4];
    posenc_error  err;
    if (posenc_token_shape(p->e, &p->dims, i, shape, &err) || shape[3] > LARGEST)
        return (draw_numbers){0};
    draw_numbers x = draw_floats(p, a->q.shape[0], heads[draw_below(&p->s, 3)],
                                 (of_keys ? &a->k : &a->q)->shape[2], shape[3]);
    hold_token(&x, posenc_token_describe(p->e, i)->made);
    return x;
}

static attention draw_attention(problem *p)
{
    draw_source       *s = &p->s;
    const posenc_dims *d = &p->dims;
    const int64_t      B = draw_size(s, d->B), Lq = draw_size(s, d->Lq), Lk = draw_size(s, d->Lk),
                  b1 = draw_chance(s, 2) ? B : 1, h1 = draw_chance(s, 2) ? d->H : 1;
    const int N    = draw_chance(s, 2) && strstr(p->spec, "axes") ? 1 + (int)draw_below(s, 4) : 1;
    attention a    = {.q    = draw_floats(p, B, d->H, Lq, d->D),
                      .k    = draw_floats(p, B, d->G, Lk, d->D),
                      .v    = draw_floats(p, B, d->G, Lk, d->Dv),
                      .dout = draw_floats(p, B, d->H, Lq, d->Dv)};
    const int mask = draw_chance(s, 16) ? (int)draw_below(s, 32) : p->options.mask;
    a.q_pos        = draw_places(p, B, Lq, N, Lk > Lq ? (double)(Lk - Lq) : 0);
    a.k_pos        = draw_places(p, B, Lk, N, 0);
    a.is_backward  = draw_chance(s, 2);
    a.what         = draw_chance(s, 6) ? 1 + (int)draw_below(s, 2) : 0;
    if (draw_chance(s, 2))
        a.dlse = draw_bits(p, 3, (int64_t[]){B, d->H, Lq}, 3);
    if (mask & POSENC_MASK_KEY_PADDING)
        a.key_allowed = draw_bits(p, 2, (int64_t[]){b1, Lk}, 2);
    if (mask & POSENC_MASK_EXPLICIT)
        a.allowed = draw_bits(p, 4, (int64_t[]){b1, h1, Lq, Lk}, 2);
    if (mask & POSENC_MASK_SEGMENTS || draw_chance(s, 8)) {
        a.q_segments = draw_bits(p, 2, (int64_t[]){b1, Lq}, 3);
        a.k_segments = draw_bits(p, 2, (int64_t[]){b1, Lk}, 3);
    }
    if (draw_chance(s, 6)) {
        a.lengths = draw_array(1, &B);
        for (int64_t b = 0; b < B; b++)
            a.lengths.x[b] = (double)draw_below(s, Lk + 1) + (draw_chance(s, 16) ? draw_real(s) : 0);
    }
    if (!a.is_backward && Lk && draw_chance(s, 8))
        for (a.page = 1 + draw_below(s, Lk); Lk % a.page; a.page--)
            ;
    if (!a.is_backward && draw_chance(s, 6))
        a.cache = draw_chance(s, 2) ? POSENC_DTYPE_F8_E4M3 : POSENC_DTYPE_Q8_0;
    if (a.cache == POSENC_DTYPE_Q8_0 && (d->D % DRAW_BLOCK || d->Dv % DRAW_BLOCK))
        a.cache = POSENC_DTYPE_F32;
    if (a.cache && p->wild)
        a.cache = POSENC_DTYPE_F32;
    if (a.cache == POSENC_DTYPE_F8_E4M3 && draw_chance(s, 2))
        a.k_scale = draw_scale(p);
    if (a.cache == POSENC_DTYPE_F8_E4M3 && draw_chance(s, 2))
        a.v_scale = draw_scale(p);
    for (int i = 0; i < posenc_token_count(p->e) && i < TOKENS; i++)
        a.tokens[i] = draw_token(p, i, &a);
    return a;
}

static void attention_free(attention *a)
{
    draw_numbers *const all[] = {&a->q,          &a->k,           &a->v,           &a->dout,
                                 &a->dlse,       &a->key_allowed, &a->allowed,     &a->q_segments,
                                 &a->k_segments, &a->lengths,     &a->q_pos.array, &a->k_pos.array,
                                 &a->k_scale,    &a->v_scale};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->x);
    for (int i = 0; i < TOKENS; i++)
        free(a->tokens[i].x);
}

/* [B,G,Lk,D] in pages of n keys, the last item's first page first: [B*P,G,n,D]. */
static draw_numbers in_pages(const draw_numbers *k, int64_t n)
{
    const int64_t B = k->shape[0], G = k->shape[1], L = k->shape[2], D = k->shape[3], P = L / n;
    draw_numbers  x = draw_array(4, (int64_t[]){B * P, G, n, D});
    for (int64_t i = 0; i < x.count; i++) {
        const int64_t d = i % D, j = i / D % n, g = i / D / n % G, page = B * P - 1 - i / D / n / G;
        x.x[i] = k->x[((page / P * G + g) * L + page % P * n + j) * D + d];
    }
    return x;
}

static draw_numbers page_numbers(int64_t B, int64_t P)
{
    draw_numbers x = draw_array(2, (int64_t[]){B, P});
    for (int64_t i = 0; i < x.count; i++)
        x.x[i] = (double)(x.count - 1 - i);
    return x;
}

/* All tensors of a call, and what they stand in. */
enum {
    Q,
    K,
    V,
    KEY_ALLOWED,
    ALLOWED,
    Q_SEGMENTS,
    K_SEGMENTS,
    LENGTHS,
    PAGES,
    K_SCALE,
    V_SCALE,
    O,
    LSE,
    DOUT,
    DLSE,
    DQ,
    DK,
    DV,
    VIEWS
};

static posenc_dtype whole_type(problem *p, int exact, int bytes_too)
{
    static const posenc_dtype all[] = {POSENC_DTYPE_I64, POSENC_DTYPE_I32, POSENC_DTYPE_U8};
    return exact ? POSENC_DTYPE_I64 : all[draw_below(&p->s, bytes_too ? 3 : 2)];
}

static draw_view view_whole(problem *p, const draw_numbers *a, posenc_dtype dtype, int exact)
{
    draw_source none = {0};
    return draw_tensor(exact ? &none : &p->s, a, dtype, 0, 0);
}

static draw_view view_output(problem *p, const draw_numbers *a, int exact, posenc_dtype dtype, int rows)
{
    draw_source none = {0};
    return draw_tensor(exact ? &none : &p->s, a, exact ? POSENC_DTYPE_F64 : dtype, rows, 1);
}

/* What a cache stands for: rows times their scale, as the exact run has them. */
static draw_numbers unscaled(const draw_numbers *k, const draw_numbers *scale)
{
    draw_numbers x = draw_array(4, k->shape);
    for (int64_t i = 0; i < x.count; i++)
        x.x[i] = k->x[i] * (scale->x ? scale->x[i / (k->shape[2] * k->shape[3]) % k->shape[1]] : 1);
    return x;
}

static void open_cache(problem *p, const attention *a, int exact, draw_view v[VIEWS])
{
    const int    paged = a->page && !exact;
    draw_numbers k     = exact   ? unscaled(&a->k, &a->k_scale)
                         : paged ? in_pages(&a->k, a->page)
                                 : a->k,
                 w     = exact   ? unscaled(&a->v, &a->v_scale)
                         : paged ? in_pages(&a->v, a->page)
                                 : a->v,
                 pages = paged ? page_numbers(a->k.shape[0], a->k.shape[2] / a->page) : (draw_numbers){0};
    const posenc_dtype dtype = a->cache ? a->cache : draw_dtype(p);
    v[K]                     = view_of(p, &k, exact, dtype, 1);
    v[V]                     = view_of(p, &w, exact, a->cache ? dtype : draw_dtype(p), 1);
    v[PAGES]                 = view_whole(p, &pages, whole_type(p, exact, 0), exact);
    if (!exact) {
        v[K_SCALE] = view_whole(p, &a->k_scale, POSENC_DTYPE_F32, exact);
        v[V_SCALE] = view_whole(p, &a->v_scale, POSENC_DTYPE_F32, exact);
    }
    if (k.x != a->k.x) {
        free(k.x);
        free(w.x);
    }
    free(pages.x);
}

static void open_inputs(problem *p, const attention *a, int exact, draw_view v[VIEWS])
{
    v[Q] = view_of(p, &a->q, exact, draw_dtype(p), 1);
    open_cache(p, a, exact, v);
    v[KEY_ALLOWED] = view_whole(p, &a->key_allowed, POSENC_DTYPE_U8, exact);
    v[ALLOWED]     = view_whole(p, &a->allowed, POSENC_DTYPE_U8, exact);
    v[Q_SEGMENTS]  = view_whole(p, &a->q_segments, whole_type(p, exact, 1), exact);
    v[K_SEGMENTS]  = view_whole(p, &a->k_segments, whole_type(p, exact, 1), exact);
    v[LENGTHS]     = view_whole(p, &a->lengths, whole_type(p, exact, 0), exact);
    v[DOUT]        = view_of(p, &a->dout, exact, draw_dtype(p), 1);
    v[DLSE]        = view_of(p, &a->dlse, exact, POSENC_DTYPE_F32, 0);
}

/* Token inputs and where their gradients go; now and then one is missing. */
static void open_tokens(problem *p, session *x, const attention *a, int exact)
{
    for (int i = 0; i < TOKENS && a->tokens[i].x; i++) {
        const posenc_dtype dtype = exact ? POSENC_DTYPE_F64 : draw_dtype(p);
        draw_source        none  = {0};
        draw_numbers       zeros = draw_array(4, a->tokens[i].shape);
        x->tokens[i]             = draw_tensor(&none, &a->tokens[i], dtype, 1, 0);
        none.noise               = (uint64_t)i + 31;
        for (int64_t n = 0; exact && p->move != 0 && n < zeros.count; n++)
            ((double *)x->tokens[i].t.data)[n] *= 1 + p->move * draw_noise(&none);
        x->dtokens[i]         = draw_tensor(&none, &zeros, dtype, 1, 0);
        x->token_tensors[i]   = x->tokens[i].t;
        x->token_gradients[i] = x->dtokens[i].t;
        if (!exact && draw_chance(&p->s, 32))
            x->token_tensors[i].data = NULL;
        if (!exact && draw_chance(&p->s, 16))
            x->token_gradients[i].data = NULL;
        free(zeros.x);
    }
}

/* Running sums as a decoder keeps them: of the tokens up to a place, then of the others. A key that padding
   hides would want another token, so there are none with padding. */
static void open_sums(problem *p, session *x, const attention *a)
{
    x->has_sums = !a->key_allowed.x && draw_chance(&p->s, 4);
    for (int i = 0; x->has_sums && i < TOKENS && a->tokens[i].x; i++) {
        const int64_t n = a->tokens[i].shape[2], half = n ? draw_below(&p->s, n) : 0;
        posenc_tensor first = x->token_tensors[i], rest = x->token_tensors[i];
        draw_numbers  zeros = draw_array(4, a->tokens[i].shape);
        posenc_error  err   = {0};
        x->sums[i]          = draw_tensor(&p->s, &zeros, POSENC_DTYPE_F64, 1, 1);
        first.shape[2]      = half;
        rest.shape[2]       = n - half;
        if (rest.data)
            rest.data = (char *)rest.data + (size_t)(half * rest.stride[2]) * posenc_dtype_size(rest.dtype);
        if (!said(posenc_token_sums(x->plan, i, &first, &x->sums[i].t, 0, &err), &err, p) &&
            !said(posenc_token_sums(x->plan, i, &rest, &x->sums[i].t, half, &err), &err, p))
            x->token_sums[i] = x->sums[i].t;
        free(zeros.x);
    }
}

static void close_tokens(session *x)
{
    for (int i = 0; i < TOKENS; i++) {
        draw_free(x->tokens[i].block);
        draw_free(x->dtokens[i].block);
        draw_free(x->sums[i].block);
    }
}

/* After a backward. */
static void token_gradients_of(const attention *a, const session *x, results *r)
{
    for (int i = 0; i < TOKENS && a->tokens[i].x; i++) {
        draw_numbers *to = &r->of[6 + PARAMS + i];
        if (!x->token_gradients[i].data)
            continue;
        *to = draw_array(4, a->tokens[i].shape);
        for (int64_t n = 0; n < to->count; n++)
            to->x[n] = draw_get(x->dtokens[i].t.data, x->dtokens[i].t.dtype, n);
    }
}

static posenc_attend_in attend_in(const session *x, const draw_view v[VIEWS], posenc_positions q_pos,
                                  posenc_positions k_pos)
{
    return (posenc_attend_in){.size        = sizeof(posenc_attend_in),
                              .q           = v[Q].t,
                              .k           = v[K].t,
                              .v           = v[V].t,
                              .q_pos       = q_pos,
                              .k_pos       = k_pos,
                              .key_allowed = v[KEY_ALLOWED].t,
                              .allowed     = v[ALLOWED].t,
                              .q_segments  = v[Q_SEGMENTS].t,
                              .k_segments  = v[K_SEGMENTS].t,
                              .k_lengths   = v[LENGTHS].t,
                              .k_pages     = v[PAGES].t,
                              .k_scale     = v[K_SCALE].t,
                              .v_scale     = v[V_SCALE].t,
                              .params      = x->given,
                              .tokens      = x->token_tensors,
                              .sums        = x->has_sums ? x->token_sums : NULL,
                              .bound       = x->bound};
}

/* The gradient of a bias, whose cotangent has as many numbers as one item of the scores. */
static void run_bias_backward(problem *p, session *x, const attention *a, const posenc_attend_in *in,
                              int exact, results *r)
{
    draw_source  none  = {.noise = 3};
    posenc_error err   = {0};
    draw_numbers dbias = draw_array(3, (int64_t[]){p->dims.H, a->q.shape[2], a->k.shape[2]});
    draw_fill(&none, &dbias);
    draw_view v = view_of(p, &dbias, exact, draw_dtype(p), 0);
    memset(x->work.memory, 0xff, x->work.bytes);
    r->backward = posenc_bias_backward(x->plan, in, &v.t, p->count ? x->gradients : NULL, &x->work, &err);
    if (!said(r->backward, &err, p))
        gradients_of(p, x, r);
    draw_free(v.block);
    free(dbias.x);
}

/* Scores or a bias: one array. */
static void run_scores(problem *p, session *x, const attention *a, posenc_attend_in *in, int exact,
                       results *r)
{
    const int64_t shape[4] = {a->q.shape[0], p->dims.H, a->q.shape[2], a->k.shape[2]};
    posenc_error  err      = {0};
    r->of[0]               = a->what == 1 ? draw_array(4, shape) : draw_array(3, shape + 1);
    draw_view S            = view_output(p, &r->of[0], exact, draw_dtype(p), 0);
    r->forward             = (a->what == 1 ? posenc_scores : posenc_bias)(x->plan, in, &S.t, &x->work, &err);
    if (said(r->forward, &err, p))
        draw_require_untouched(&S);
    else
        draw_read(&S, &r->of[0]);
    draw_free(S.block);
    if (a->what == 2 && a->is_backward)
        run_bias_backward(p, x, a, in, exact, r);
}

static void run_backward(problem *p, session *x, const attention *a, const posenc_attend_in *in, int exact,
                         draw_view v[VIEWS], results *r)
{
    posenc_error err = {0};
    r->of[2]         = draw_array(4, a->q.shape);
    r->of[3]         = draw_array(4, a->k.shape);
    r->of[4]         = draw_array(4, a->v.shape);
    for (int i = 0; i < 3; i++)
        v[DQ + i] = view_output(p, &r->of[2 + i], exact, draw_dtype(p), 1);
    posenc_attend_grad   grad  = {.size    = sizeof(posenc_attend_grad),
                                  .o       = v[O].t,
                                  .lse     = v[LSE].t,
                                  .dout    = v[DOUT].t,
                                  .dlse    = v[DLSE].t,
                                  .dq      = v[DQ].t,
                                  .dk      = v[DK].t,
                                  .dv      = v[DV].t,
                                  .dtokens = x->token_gradients,
                                  .dparams = p->count ? x->gradients : NULL};
    posenc_tensor *const all[] = {&grad.o, &grad.lse, &grad.dout, &grad.dlse, &grad.dq, &grad.dk, &grad.dv};
    if (!exact && draw_chance(&p->s, 12))
        spoil(p, all, 7);
    memset(x->work.memory, 0xff, x->work.bytes);
    r->backward = posenc_attend_backward(x->plan, in, &grad, &x->work, &err);
    for (int i = 0; i < 3; i++) {
        if (said(r->backward, &err, p) || !all[4 + i]->data)
            draw_require_untouched(&v[DQ + i]);
        else if (p->wild)
            continue;
        else
            draw_read(&v[DQ + i], &r->of[2 + i]);
        if (r->backward || !all[4 + i]->data) {
            free(r->of[2 + i].x);
            r->of[2 + i] = (draw_numbers){0};
        }
    }
    if (!r->backward) {
        gradients_of(p, x, r);
        token_gradients_of(a, x, r);
    }
}

static void run_attention(problem *p, session *x, const void *inputs, int exact, results *r)
{
    attention         a        = *(const attention *)inputs;
    draw_view         v[VIEWS] = {0};
    posenc_error      err      = {0};
    posenc_attend_out out;
    open_inputs(p, &a, exact, v);
    open_tokens(p, x, &a, exact);
    if (!exact)
        open_sums(p, x, &a);
    posenc_attend_in in = attend_in(x, v, open_places(p, &a.q_pos, exact), open_places(p, &a.k_pos, exact));
    posenc_tensor *const all[] = {&in.q,           &in.k,           &in.v,       &in.q_pos.array,
                                  &in.k_pos.array, &in.key_allowed, &in.allowed, &in.q_segments,
                                  &in.k_segments,  &in.k_lengths,   &in.k_pages, &in.k_scale,
                                  &in.v_scale};
    if (!exact && draw_chance(&p->s, 12))
        spoil(p, all, 13);
    if (a.what)
        run_scores(p, x, &a, &in, exact, r);
    else {
        r->of[0] = draw_array(4, (int64_t[]){a.q.shape[0], a.q.shape[1], a.q.shape[2], a.v.shape[3]});
        r->of[1] = draw_array(3, a.q.shape);
        v[O]     = view_output(p, &r->of[0], exact, draw_dtype(p), 1);
        v[LSE] =
            view_output(p, &r->of[1], exact, draw_chance(&p->s, 2) ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32, 0);
        out        = (posenc_attend_out){.size = sizeof(posenc_attend_out), .o = v[O].t, .lse = v[LSE].t};
        r->forward = posenc_attend(x->plan, &in, &out, &x->work, &err);
        if (said(r->forward, &err, p)) {
            draw_require_untouched(&v[O]);
            draw_require_untouched(&v[LSE]);
        } else {
            if (a.is_backward)
                run_backward(p, x, &a, &in, exact, v, r);
            draw_read(&v[O], &r->of[0]);
            draw_read(&v[LSE], &r->of[1]);
        }
    }
    close_places(&a.q_pos);
    close_places(&a.k_pos);
    close_tokens(x);
    for (int i = 0; i < VIEWS; i++)
        draw_free(v[i].block);
}

static void try_attention(problem *p)
{
    attention a = draw_attention(p);
    run_both_ways(p, run_attention, &a);
    attention_free(&a);
}

/* ---- rows ---- */

typedef struct row_inputs {
    draw_numbers x, dy;
    places       pos;
} row_inputs;

static void run_rows(problem *p, session *x, const void *inputs, int exact, results *r)
{
    row_inputs   a             = *(const row_inputs *)inputs;
    posenc_error err           = {0};
    draw_view    from          = view_of(p, &a.x, exact, draw_dtype(p), 0),
              dy               = view_of(p, &a.dy, exact, draw_dtype(p), 0);
    posenc_rows_in       in    = {.size   = sizeof(posenc_rows_in),
                                  .x      = from.t,
                                  .pos    = open_places(p, &a.pos, exact),
                                  .params = x->given,
                                  .bound  = x->bound};
    posenc_tensor *const all[] = {&in.x, &in.pos.array, &dy.t};
    r->of[0]                   = draw_array(3, a.dy.shape);
    r->of[2]                   = draw_array(3, a.dy.shape);
    draw_view y                = view_output(p, &r->of[0], exact, draw_dtype(p), 0),
              dx               = view_output(p, &r->of[2], exact, draw_dtype(p), 0);
    const posenc_tensor kept   = dy.t;
    if (!exact && draw_chance(&p->s, 12))
        spoil(p, all, 3);
    r->forward = posenc_rows(x->plan, &in, &y.t, &x->work, &err);
    if (said(r->forward, &err, p))
        draw_require_untouched(&y);
    else
        draw_read(&y, &r->of[0]);
    const posenc_rows_grad grad = {
        .size = sizeof(posenc_rows_grad), .dy = dy.t, .dx = dx.t, .dparams = p->count ? x->gradients : NULL};
    memset(x->work.memory, 0xff, x->work.bytes);
    r->backward = posenc_rows_backward(x->plan, &in, &grad, &x->work, &err);
    if (said(r->backward, &err, p)) {
        draw_require_untouched(&dx);
        free(r->of[2].x);
        r->of[2] = (draw_numbers){0};
    } else {
        draw_read(&dx, &r->of[2]);
        gradients_of(p, x, r);
    }
    dy.t = kept;
    close_places(&a.pos);
    draw_free(from.block);
    draw_free(dy.block);
    draw_free(y.block);
    draw_free(dx.block);
}

static void try_rows(problem *p)
{
    row_inputs    a = {0};
    const int64_t B = draw_size(&p->s, 3), L = draw_size(&p->s, p->dims.Lq);
    if (p->width < 1 || p->width > 512)
        return;
    a.pos = draw_places(p, B, L, posenc_rows_coordinates(p->e), 0);
    a.dy  = draw_array(3, (int64_t[]){B, L, p->width});
    draw_fill(&p->s, &a.dy);
    if (draw_chance(&p->s, 2)) {
        a.x = draw_array(3, a.dy.shape);
        draw_fill(&p->s, &a.x);
    }
    run_both_ways(p, run_rows, &a);
    free(a.x.x);
    free(a.dy.x);
    free(a.pos.array.x);
}

/* ---- rotation ---- */

typedef struct turn_inputs {
    draw_numbers x[2], dto[2]; /* of queries and keys; no array: that side is left out */
    places       pos[2];
    int          direction, tables;
} turn_inputs;

/* A table of cosines for a side, or nothing. */
static draw_view table_of(problem *p, session *x, int side, const draw_numbers *a, posenc_positions pos)
{
    const int64_t          width = posenc_rotary_width(x->plan, (posenc_side)side);
    posenc_error           err   = {0};
    const posenc_rotary_in in    = {
           .size = sizeof(posenc_rotary_in), .pos = pos, .params = x->given, .bound = x->bound};
    draw_numbers n = draw_array(3, (int64_t[]){a->shape[0], a->shape[2], width > 0 ? width : 1});
    draw_view    v = draw_tensor(&p->s, &n, POSENC_DTYPE_F32, 1, 1);
    if (said(posenc_rotary_table(x->plan, (posenc_side)side, &in, &v.t, &x->work, &err), &err, p)) {
        draw_require_untouched(&v);
        v.t.data = NULL;
    }
    free(n.x);
    return v;
}

static void run_turn(problem *p, session *x, const void *inputs, int exact, results *r)
{
    turn_inputs      a = *(const turn_inputs *)inputs;
    draw_view        from[2], to[2], dto[2], dx[2], table[2] = {0};
    posenc_error     err = {0};
    posenc_rotate_io io  = {
         .size = sizeof(posenc_rotate_io), .direction = a.direction, .params = x->given, .bound = x->bound};
    posenc_rotate_grad grad = {.size = sizeof(posenc_rotate_grad), .dparams = p->count ? x->gradients : NULL};
    posenc_tensor *const    in[]  = {&io.q,           &io.k,           &io.to_q,    &io.to_k,
                                     &io.q_pos.array, &io.k_pos.array, &io.q_table, &io.k_table,
                                     &grad.dto_q,     &grad.dto_k,     &grad.dq,    &grad.dk};
    posenc_positions *const pos[] = {&io.q_pos, &io.k_pos};
    for (int i = 0; i < 2; i++) {
        const posenc_dtype dtype = draw_dtype(p);
        from[i]                  = view_of(p, &a.x[i], exact, dtype, 1);
        dto[i]                   = view_of(p, &a.dto[i], exact, dtype, 1);
        if (a.x[i].x) {
            r->of[i]     = draw_array(4, a.x[i].shape);
            r->of[2 + i] = draw_array(4, a.x[i].shape);
        }
        to[i]   = view_output(p, &r->of[i], exact, dtype, 1);
        dx[i]   = view_output(p, &r->of[2 + i], exact, dtype, 1);
        *pos[i] = open_places(p, &a.pos[i], exact);
        if (!exact && a.x[i].x && (a.tables >> i & 1) && dtype != POSENC_DTYPE_F64)
            table[i] = table_of(p, x, i, &a.x[i], *pos[i]);
        *in[i] = from[i].t, *in[2 + i] = to[i].t, *in[6 + i] = table[i].t, *in[8 + i] = dto[i].t,
        *in[10 + i] = dx[i].t;
    }
    if (!exact && draw_chance(&p->s, 12))
        spoil(p, in, 12);
    memset(x->work.memory, 0xff, x->work.bytes);
    r->forward = posenc_rotate(x->plan, &io, &x->work, &err);
    for (int i = 0; i < 2; i++)
        if (a.x[i].x) {
            if (said(r->forward, &err, p) || !in[i]->data)
                draw_require_untouched(&to[i]);
            else if (!p->wild)
                draw_read(&to[i], &r->of[i]);
        }
    memset(x->work.memory, 0xff, x->work.bytes);
    r->backward = posenc_rotate_backward(x->plan, &io, &grad, &x->work, &err);
    for (int i = 0; i < 2; i++) {
        if (said(r->backward, &err, p))
            draw_require_untouched(&dx[i]);
        else if (a.x[i].x && !p->wild)
            draw_read(&dx[i], &r->of[2 + i]);
        if (r->backward) {
            free(r->of[2 + i].x);
            r->of[2 + i] = (draw_numbers){0};
        }
    }
    if (!r->backward)
        gradients_of(p, x, r);
    for (int i = 0; i < 2; i++) {
        close_places(&a.pos[i]);
        draw_free(from[i].block);
        draw_free(to[i].block);
        draw_free(dto[i].block);
        draw_free(dx[i].block);
        draw_free(table[i].block);
    }
}

static void try_turn(problem *p)
{
    turn_inputs a = {.direction = draw_chance(&p->s, 32) ? 0 : draw_chance(&p->s, 2) ? -1 : 1};
    a.tables      = draw_chance(&p->s, 3) ? (int)draw_below(&p->s, 4) : 0;
    for (int i = 0; i < 2; i++) {
        const int64_t heads = i ? p->dims.G : p->dims.H, B = draw_size(&p->s, 2),
                      L = draw_size(&p->s, p->dims.Lq);
        if (draw_chance(&p->s, 4))
            continue;
        a.x[i]   = draw_floats(p, B, heads, L, p->dims.D);
        a.dto[i] = draw_floats(p, B, heads, L, p->dims.D);
        a.pos[i] = draw_places(p, B, L, p->coordinates, (double)i);
    }
    run_both_ways(p, run_turn, &a);
    for (int i = 0; i < 2; i++) {
        free(a.x[i].x);
        free(a.dto[i].x);
        free(a.pos[i].array.x);
    }
}

/* ---- cached keys, moved ---- */

typedef struct move_inputs {
    draw_numbers k;
    places       from, to;
} move_inputs;

/* Keys rotated where they were and moved from there; in the exact run, rotated where they come to lie. */
static void run_move(problem *p, session *x, const void *inputs, int exact, results *r)
{
    move_inputs            a     = *(const move_inputs *)inputs;
    const posenc_dtype     dtype = draw_dtype(p);
    posenc_error           err   = {0};
    draw_numbers           was   = draw_array(4, a.k.shape);
    draw_view              k = view_of(p, &a.k, exact, dtype, 1), turned = k, to;
    const posenc_positions from = open_places(p, &a.from, exact), place = open_places(p, &a.to, exact);
    posenc_rotate_io       turn = {.size      = sizeof turn,
                                   .direction = 1,
                                   .k         = k.t,
                                   .k_pos     = exact ? place : from,
                                   .params    = x->given,
                                   .bound     = x->bound};
    r->of[0]                    = draw_array(4, a.k.shape);
    turned                      = view_output(p, exact ? &r->of[0] : &was, exact, dtype, 1);
    turn.to_k                   = turned.t;
    to                          = view_output(p, &r->of[0], exact, dtype, 1);
    posenc_rerotate_io   io     = {.size        = sizeof io,
                                   .k           = turned.t,
                                   .to_k        = p->s.left % 2 ? to.t : turned.t,
                                   .from_pos    = from,
                                   .to_pos      = place,
                                   .from_params = x->tensors,
                                   .to_params   = x->tensors};
    posenc_tensor *const all[]  = {&io.k, &io.to_k, &io.from_pos.array, &io.to_pos.array};
    r->forward                  = posenc_rotate(x->plan, &turn, &x->work, &err);
    if (!said(r->forward, &err, p) && !exact) {
        if (draw_chance(&p->s, 12))
            spoil(p, all, 4);
        r->forward = posenc_rotary_rerotate(x->plan, x->plan, &io, &x->work, &err);
        if (said(r->forward, &err, p))
            draw_require_untouched(&to);
    }
    if (!r->forward && !p->wild)
        draw_read(exact || io.to_k.data == turned.t.data ? &turned : &to, &r->of[0]);
    close_places(&a.from);
    close_places(&a.to);
    draw_free(k.block);
    draw_free(turned.block);
    draw_free(to.block);
    free(was.x);
}

static void try_move(problem *p)
{
    move_inputs   a = {0};
    const int64_t N = p->coordinates, B = draw_size(&p->s, p->dims.B), L = draw_size(&p->s, p->dims.Lk);
    a.k    = draw_floats(p, B, p->dims.G, L, p->dims.D);
    a.from = draw_places(p, B, L, N, 0);
    a.to   = draw_places(p, B, L, N, 2);
    run_both_ways(p, run_move, &a);
    free(a.k.x);
    free(a.from.array.x);
    free(a.to.array.x);
}

/* ---- pairs and angles ---- */

/* What is told of a rotation: nothing to compare with, but its tensors are as exact as all others. */
static void try_angles(problem *p)
{
    session            x;
    posenc_error       err = {0};
    double             w[128], magnitude;
    posenc_rotary_pair pairs[128];
    int64_t            M;
    if (session_open(p, &x, 0) &&
        !said(posenc_rotary_frequencies(x.plan, NULL, &M, &magnitude, &err), &err, p) && M <= 128) {
        const int64_t B = draw_size(&p->s, p->dims.B), L = draw_size(&p->s, p->dims.Lq);
        places        at          = draw_places(p, B, L, posenc_rotary_coordinates(x.plan), 0);
        draw_numbers  n           = draw_array(3, (int64_t[]){B, L, M * posenc_rotary_heads(x.plan)}),
                     t            = draw_array(2, n.shape);
        draw_view angle           = draw_tensor(&p->s, &n, POSENC_DTYPE_F64, 0, 1),
                  heat            = draw_tensor(&p->s, &t, POSENC_DTYPE_F64, 0, 1);
        const posenc_rotary_in in = {
            .size = sizeof in, .pos = open_places(p, &at, 0), .params = x.given, .bound = x.bound};
        said(posenc_rotary_frequencies(x.plan, w, &M, &magnitude, &err), &err, p);
        said(posenc_rotary_pairs(x.plan, x.tensors, draw_real(&p->s), pairs, &x.work, &err), &err, p);
        if (said(posenc_rotary_angles(x.plan, &in, &angle.t, &heat.t, &x.work, &err), &err, p)) {
            draw_require_untouched(&angle);
            draw_require_untouched(&heat);
        } else {
            draw_read(&angle, &n);
            draw_read(&heat, &t);
        }
        close_places(&at);
        draw_free(angle.block);
        draw_free(heat.block);
        free(at.array.x);
        free(n.x);
        free(t.x);
    }
    session_close(p, &x);
}

/* ---- all ---- */

/* What a plan says of itself, however large it is. */
static int try_plan(problem *p)
{
    posenc_error err;
    int32_t      ndim;
    int64_t      shape[POSENC_MAX_DIMS], tokens;
    for (int i = 0; i < posenc_param_count(p->e); i++) {
        posenc_param_trainable(p->e, i);
        said(posenc_param_shape(p->e, &p->dims, i, &ndim, shape, &err), &err, p);
    }
    said(posenc_rows_tokens(p->e, &p->dims, &tokens, &err), &err, p);
    if (said(posenc_plan_create(&p->plan, p->e, &p->dims, &p->options, &err), &err, p))
        return 0;
    require(!(posenc_plan_operations(p->plan) < 0), p, "operations below 0");
    p->width       = posenc_rows_width(p->plan);
    p->coordinates = posenc_rotary_coordinates(p->plan);
    return 1;
}

/* Runs are only of plans that a machine holds. */
static int is_small(const posenc_dims *d)
{
    const int64_t all[] = {d->B, d->H, d->G, d->Lq, d->Lk, d->D, d->Dv, d->d_model};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] < 1 || all[i] > 80)
            return 0;
    return d->H % d->G == 0;
}

/* An equation is solved in as many steps as its settings ask for; exactly, a steep one in 2^17 for each
 * position. */
static int takes_long(const problem *p)
{
    const int steep = strstr(p->spec, "dt=") || strstr(p->spec, "sigma=");
    return strstr(p->spec, "floater") &&
           (strstr(p->spec, "substeps=") || (steep && strstr(p->spec, "solver=exact")));
}

static void try_all(problem *p)
{
    if (!try_plan(p) || !is_small(&p->dims) || takes_long(p) || !draw_params(p))
        return;
    if (posenc_encoding_part(p->e, POSENC_PLACE_INPUT))
        try_rows(p);
    const int64_t which = posenc_encoding_part(p->e, POSENC_PLACE_ROTARY) ? draw_below(&p->s, 8) : 0;
    if (which == 7)
        try_move(p);
    else if (which == 6)
        try_angles(p);
    else if (which > 3)
        try_turn(p);
    else
        try_attention(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    posenc_error err;
    problem     *p = calloc(1, sizeof *p);
    p->s           = (draw_source){.at = data, .left = size};
    draw_sizes(p);
    draw_options(p);
    add_part(p);
    for (int64_t more = (draw_below(&p->s, 8) > 3) + draw_chance(&p->s, 4); more > 0; more--) {
        add_text(p, "+");
        add_part(p);
    }
    clean_spec(p->spec);
    if (strstr(p->spec, "scale=1e300") || strstr(p->spec, "scale=9007199254740992"))
        p->wild = 1; /* scores that float does not hold */
    if (strstr(p->spec, "swin_v2") && p->dims.D == 1)
        p->wild =
            1; /* unit vectors are 1 or -1, so what 1e12 multiplies where one is 0 is a rest of rounding */
    if (draw_chance(&p->s, 32))
        (&p->dims.B)[draw_below(&p->s, 9)] = draw_integer(&p->s);
    if (!said(posenc_encoding_create(&p->e, p->spec, NULL, &err), &err, p))
        try_all(p);
    for (int i = 0; i < p->count; i++)
        free(p->params[i].x);
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
    free(p);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* What a case runs, made ready, and memory. Contract: workload.h. */
#define _DEFAULT_SOURCE /* madvise */
#include "bench/workload.h"

#include <math.h>
#include <posenc/rotary.h>
#include <posenc/scores.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/half.h"

enum { HUGE_PAGE = 1 << 21, SEED = 88172645, REACH = 8 /* trained at an eighth of the keys */ };

static int small_pages;

void pe_workload_use_small_pages(void)
{
    small_pages = 1;
#ifdef PR_SET_THP_DISABLE
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* what was freed has kept the advice it got before */
#endif
}

/* Bytes that nothing has touched. */
static void *untouched(pe_buffers *all, size_t bytes, posenc_error *err)
{
    void *block = NULL;
    if (all->count < PE_MOST_BUFFERS)
        block = aligned_alloc(HUGE_PAGE, (bytes / HUGE_PAGE + 1) * HUGE_PAGE);
    if (!block) {
        *err = (posenc_error){.status = POSENC_ERROR_MEMORY};
        snprintf(err->message, sizeof err->message, "not enough memory for %zu MiB", bytes >> 20);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE && !small_pages)
        madvise(block, (bytes / HUGE_PAGE + 1) * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    all->blocks[all->count++] = block;
    return block;
}

/* Marsaglia's xorshift: fast, and random enough to be no constant. */
static uint64_t next_of(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void put(void *to, int64_t i, posenc_dtype dtype, float x)
{
    if (dtype == POSENC_DTYPE_BF16)
        ((uint16_t *)to)[i] = pe_half_float_to_bf16(x);
    else if (dtype == POSENC_DTYPE_F16)
        ((uint16_t *)to)[i] = pe_half_float_to_f16(x);
    else
        ((float *)to)[i] = x;
}

void *pe_workload_random(pe_buffers *all, int64_t n, posenc_dtype dtype, posenc_error *err)
{
    const float spread = sqrtf(12.0f) * 0x1p-32f; /* 2^32 steps become a width of sqrt(12): variance 1 */
    uint64_t    state  = SEED + (uint64_t)all->count;
    void       *block  = untouched(all, (size_t)n * posenc_dtype_size(dtype), err);
    for (int64_t i = 0; block && i < n; i++)
        put(block, i, dtype, spread * (float)(int32_t)(next_of(&state) >> 32));
    return block;
}

void pe_workload_free(pe_buffers *all)
{
    for (int i = 0; i < all->count; i++)
        free(all->blocks[i]);
    all->count = 0;
}

/* ---------------------------------------------------------------- the workload -------------- */

void pe_workload_close(pe_workload *w)
{
    posenc_bound_free(w->bound);
    posenc_plan_free(w->plan);
    posenc_encoding_free(w->e);
    pe_workload_free(&w->all);
}

static posenc_status open_plan(pe_workload *w, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s          = &c->shape;
    posenc_options        o          = posenc_options_default();
    char                  small[512] = "";
    posenc_status         status     = POSENC_OK;
    if ((s->verb == PE_ATTEND || s->verb == PE_MAKE_ROWS) && !strpbrk(s->spec, "[+"))
        status = posenc_small_model(s->spec, &w->dims, s->mask, small, sizeof small, err);
    if (!status)
        status = posenc_encoding_create(&w->e, s->spec, small, err);
    if (status)
        return status;
    o.isa = c->isa;
    if ((status = pe_crew_set(&o, s->crew, threads, err)))
        return status;
    if (s->verb == PE_ATTEND) {
        o.mask     = s->mask;
        o.window   = o.mask & POSENC_MASK_WINDOW ? s->window : 0;
        o.executor = POSENC_EXECUTOR_TILED;
    }
    return posenc_plan_create(&w->plan, w->e, &w->dims, &o, err);
}

/* A tensor of random numbers; no data after an error. */
static posenc_tensor random_tensor(pe_workload *w, posenc_dtype dtype, int32_t ndim, const int64_t *shape,
                                   posenc_error *err)
{
    int64_t n = 1;
    for (int32_t a = 0; a < ndim; a++)
        n *= shape[a];
    return posenc_tensor_contiguous(pe_workload_random(&w->all, n + PE_BEYOND, dtype, err), dtype, ndim,
                                    shape);
}

static void replace_zeros(posenc_tensor *t)
{
    float  *x = t->data;
    int64_t n = 1, zeros = 0;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    while (zeros < n && x[zeros] == 0)
        zeros++;
    for (int64_t i = 0; zeros == n && i < n; i++)
        x[i] = (float)(0.1 * posenc_random_uniform(1, "bench", (uint64_t)i));
}

static posenc_status open_params(pe_workload *w, posenc_error *err)
{
    const int count = posenc_param_count(w->e);
    if (count > PE_BENCH_PARAMS) {
        *err = (posenc_error){POSENC_ERROR_UNSUPPORTED, "more parameters than the measurement can hold"};
        return err->status;
    }
    for (int i = 0; i < count; i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS];
        const posenc_status status = posenc_param_shape(w->e, &w->dims, i, &ndim, shape, err);
        if (status)
            return status;
        w->params[i] = random_tensor(w, POSENC_DTYPE_F32, ndim, shape, err);
        if (!w->params[i].data)
            return err->status;
        w->dparams[i] = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, ndim, shape);
        if (w->shape->backward && posenc_param_trainable(w->e, i))
            w->dparams[i] = random_tensor(w, POSENC_DTYPE_F32, ndim, shape, err);
    }
    const posenc_status status = count ? posenc_param_init(w->e, &w->dims, w->params, 1, err) : POSENC_OK;
    for (int i = 0; !status && i < count; i++)
        replace_zeros(&w->params[i]);
    return status;
}

/* Pages in an order that jumps; their number is a power of two. */
static posenc_tensor page_table(pe_workload *w, int64_t pages, posenc_error *err)
{
    const int64_t shape[2] = {1, pages};
    int32_t      *table    = untouched(&w->all, (size_t)pages * sizeof *table, err);
    for (int64_t i = 0; table && i < pages; i++)
        table[i] = (int32_t)(i * (5 * pages / 8 | 1) % pages);
    return posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, shape);
}

/* What a model makes of numbers of either sign. */
static void make_token(const posenc_tensor *t, posenc_token_made made)
{
    float        *x     = t->data;
    const int64_t width = t->shape[3], n = t->shape[0] * t->shape[1] * t->shape[2] * width;
    for (int64_t row = 0; made == POSENC_TOKEN_UNIT && row < n; row += width) {
        float sum = 0;
        for (int64_t i = row; i < row + width; i++)
            sum += x[i] * x[i];
        for (int64_t i = row; i < row + width; i++)
            x[i] /= sqrtf(sum);
    }
    for (int64_t i = 0; made == POSENC_TOKEN_UP_TO_2 && i < n; i++)
        x[i] = 2 / (1 + expf(-x[i]));
}

/* Has token input i running sums? Those of no tokens would say so. */
static int has_sums(const pe_workload *w, int i, const int64_t shape[4])
{
    const int64_t empty[4] = {shape[0], shape[1], 0, shape[3]};
    posenc_tensor none     = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, 4, empty);
    return !posenc_token_sums(w->plan, i, &none, &none, 0, NULL);
}

/* Token inputs; those of a cache as the running sums that it keeps, if they have any. */
static void open_tokens(pe_workload *w, posenc_error *err)
{
    const int n = posenc_token_count(w->e), decodes = w->dims.Lq <= POSENC_DECODE_QUERIES;
    for (int i = 0; i < n && i < PE_BENCH_TOKENS && !err->status; i++) {
        const posenc_token_info *info = posenc_token_describe(w->e, i);
        int64_t                  shape[4];
        if (posenc_token_shape(w->e, &w->dims, i, shape, err))
            return;
        if (info->of_keys)
            shape[2] = w->keys;
        w->tokens[i] = random_tensor(w, POSENC_DTYPE_F32, 4, shape, err);
        if (!err->status)
            make_token(&w->tokens[i], info->made);
        if (w->shape->backward)
            w->dtokens[i] = random_tensor(w, POSENC_DTYPE_F32, 4, shape, err);
        if (!decodes || err->status || !has_sums(w, i, shape))
            continue;
        const size_t count = (size_t)(shape[1] * shape[2] * shape[3]);
        void        *room  = untouched(&w->all, count * sizeof(double), err);
        w->sums[i]         = posenc_tensor_contiguous(room, POSENC_DTYPE_F64, 4, shape);
        if (room)
            posenc_token_sums(w->plan, i, &w->tokens[i], &w->sums[i], 0, err);
        w->in.sums = w->sums;
    }
    w->in.tokens    = n ? w->tokens : NULL;
    w->grad.dtokens = n && w->shape->backward ? w->dtokens : NULL;
}

static void open_attention(pe_workload *w, posenc_error *err)
{
    const posenc_dims    *d    = &w->dims;
    const pe_bench_shape *s    = w->shape;
    const int64_t         q[4] = {1, d->H, d->Lq, d->D}, lse[3] = {1, d->H, d->Lq},
                  k[4] = {s->page ? w->keys / s->page : 1, d->G, s->page ? s->page : w->keys, d->D};
    w->in.size         = sizeof w->in;
    w->in.q            = random_tensor(w, s->dtype, 4, q, err);
    w->in.k            = random_tensor(w, s->dtype, 4, k, err);
    w->in.v            = random_tensor(w, s->dtype, 4, k, err);
    w->in.q_pos        = posenc_positions_range((double)(w->keys - d->Lq), 1);
    w->in.k_pos        = posenc_positions_range(0, 1);
    w->in.params       = w->params;
    w->in.bound        = w->bound;
    w->out.size        = sizeof w->out;
    w->out.o           = random_tensor(w, s->dtype, 4, q, err);
    w->out.lse         = random_tensor(w, POSENC_DTYPE_F32, 3, lse, err);
    if (s->page)
        w->in.k_pages = page_table(w, k[0], err);
    if (!s->backward) {
        open_tokens(w, err);
        return;
    }
    w->grad = (posenc_attend_grad){
        .size = sizeof(posenc_attend_grad), .o = w->out.o, .lse = w->out.lse, .dparams = w->dparams};
    w->grad.dout = random_tensor(w, s->dtype, 4, q, err);
    w->grad.dq   = random_tensor(w, s->dtype, 4, q, err);
    w->grad.dk   = random_tensor(w, s->dtype, 4, k, err);
    w->grad.dv   = random_tensor(w, s->dtype, 4, k, err);
    open_tokens(w, err);
}

/* Positions 0, 1, 2, ...; where rows belong to words too, some word at each: pairs of word and position. */
static posenc_positions row_positions(pe_workload *w, posenc_error *err)
{
    const posenc_encoding_info *info = posenc_encoding_find(w->shape->spec);
    const int64_t               L    = w->dims.Lq;
    int64_t *pairs = info && info->by_word ? untouched(&w->all, (size_t)(2 * L) * sizeof *pairs, err) : NULL;
    if (!pairs)
        return posenc_positions_range(0, 1);
    for (int64_t i = 0; i < L; i++) {
        pairs[2 * i]     = i % 64;
        pairs[2 * i + 1] = i;
    }
    return posenc_positions_array(posenc_tensor_contiguous(pairs, POSENC_DTYPE_I64, 2, (int64_t[]){L, 2}));
}

static void open_rows(pe_workload *w, posenc_error *err)
{
    w->is_rotary = posenc_encoding_part(w->e, POSENC_PLACE_ROTARY) != NULL;
    const int64_t width =
        w->is_rotary ? posenc_rotary_width(w->plan, POSENC_SIDE_QUERIES) : posenc_rows_width(w->plan);
    const int64_t shape[3] = {1, w->dims.Lq, width};
    w->rows =
        (posenc_rows_in){.size = sizeof(posenc_rows_in), .pos = row_positions(w, err), .params = w->params};
    w->y     = random_tensor(w, POSENC_DTYPE_F32, 3, shape, err);
    w->to    = w->y.data;
    w->bytes = w->dims.Lq * width * (int64_t)sizeof(float);
    if (w->shape->backward)
        w->rows_grad = (posenc_rows_grad){.size    = sizeof(posenc_rows_grad),
                                          .dy      = random_tensor(w, POSENC_DTYPE_F32, 3, shape, err),
                                          .dparams = w->dparams};
}

static void open_rotation(pe_workload *w, posenc_error *err)
{
    const pe_bench_shape *s = w->shape;
    const int64_t         n = s->Lq * s->H * s->D;
    w->x                    = pe_workload_random(&w->all, n + PE_BEYOND, s->dtype, err);
    w->to                   = pe_workload_random(&w->all, n + PE_BEYOND, s->dtype, err);
    w->bytes                = n * (int64_t)posenc_dtype_size(s->dtype);
    const posenc_tensor x   = posenc_tensor_from_blhd(w->x, s->dtype, 1, s->Lq, s->H, s->D),
                        y   = posenc_tensor_from_blhd(w->to, s->dtype, 1, s->Lq, s->H, s->D);
    w->rotation             = (posenc_rotate_io){.size      = sizeof(posenc_rotate_io),
                                                 .q         = x,
                                                 .to_q      = s->verb == PE_ROTATE_AWAY ? y : x,
                                                 .q_pos     = posenc_positions_range(0, 1),
                                                 .k_pos     = posenc_positions_range(0, 1),
                                                 .direction = 1};
}

void pe_workload_open(pe_workload *w, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    memset(w, 0, sizeof *w);
    w->shape = s;
    w->keys  = s->keys ? s->keys : s->Lk;
    w->dims  = (posenc_dims){.B  = 1,
                             .H  = s->H,
                             .G  = s->G ? s->G : s->H,
                             .Lq = s->Lq,
                             .Lk = s->Lk,
                             .D  = s->D,
                             .Dv = s->verb == PE_ATTEND ? s->D : 0,
                             .L  = (s->Lk + REACH - 1) / REACH};
    if (!err->status)
        err->status = open_plan(w, c, threads, err);
    if (!err->status)
        err->status = open_params(w, err);
    if (!err->status && s->is_bound)
        err->status = posenc_plan_bind(&w->bound, w->plan, w->params, err);
    if (err->status)
        return;
    switch (s->verb) {
    case PE_ATTEND: open_attention(w, err); break;
    case PE_MAKE_ROWS:
    case PE_MAKE_TABLE: open_rows(w, err); break;
    default: open_rotation(w, err);
    }
}

static posenc_status run(pe_workload *w, int backward, posenc_error *err)
{
    switch (w->shape->verb) {
    case PE_ATTEND:
        return backward ? posenc_attend_backward(w->plan, &w->in, &w->grad, &w->work, err)
                        : posenc_attend(w->plan, &w->in, &w->out, &w->work, err);
    case PE_MAKE_ROWS:
    case PE_MAKE_TABLE:
        return backward       ? posenc_rows_backward(w->plan, &w->rows, &w->rows_grad, &w->work, err)
               : w->is_rotary ? posenc_rotary_table(w->plan, POSENC_SIDE_QUERIES,
                                                    &(posenc_rotary_in){.size = sizeof(posenc_rotary_in),
                                                                        .pos  = w->rows.pos},
                                                    &w->y, &w->work, err)
                              : posenc_rows(w->plan, &w->rows, &w->y, &w->work, err);
    default: return posenc_rotate(w->plan, &w->rotation, &w->work, err);
    }
}

void pe_workload_run(void *context)
{
    pe_workload *w = context;
    run(w, w->shape->backward, &w->err);
}

/* The table of all positions, by which later runs rotate. */
static posenc_status open_table(pe_workload *w, posenc_error *err)
{
    const int64_t shape[3] = {1, w->dims.Lq, posenc_rotary_width(w->plan, POSENC_SIDE_QUERIES)};
    w->rotation.q_table    = random_tensor(w, POSENC_DTYPE_F32, 3, shape, err);
    return w->rotation.q_table.data
               ? posenc_rotary_table(w->plan, POSENC_SIDE_QUERIES,
                                     &(posenc_rotary_in){.size = sizeof(posenc_rotary_in),
                                                         .pos  = w->rotation.q_pos},
                                     &w->rotation.q_table, &w->work, err)
               : err->status;
}

void pe_workload_start(pe_workload *w, posenc_error *err)
{
    if (err->status)
        return;
    const int    backward = w->shape->backward, first = !backward || w->shape->verb == PE_ATTEND;
    const int    runs  = (first ? POSENC_RUN_FORWARD : 0) | (backward ? POSENC_RUN_BACKWARD : 0);
    posenc_sizes sizes = posenc_sizes_default();
    sizes.Lk           = w->keys;
    const size_t bytes = posenc_plan_workspace(w->plan, (posenc_run)runs, &sizes);
    w->work            = posenc_workspace_over(untouched(&w->all, bytes, err), bytes);
    if (!err->status && w->shape->verb == PE_ROTATE_BY_TABLE)
        err->status = open_table(w, err);
    if (!err->status && first)
        err->status = run(w, 0, err);
    if (!err->status && backward)
        err->status = run(w, 1, err);
}

void pe_workload_ready(pe_workload *w, const pe_bench_case *c, int threads, posenc_error *err)
{
    pe_workload_open(w, c, threads, err);
    pe_workload_start(w, err);
}

/* Pairs of one head; queries are the last Lq of Lk positions. */
static double pairs_of(const pe_bench_shape *s)
{
    double pairs = 0;
    for (int64_t i = s->Lk - s->Lq; i < s->Lk; i++) {
        const int64_t past   = s->mask & POSENC_MASK_WINDOW && i + 1 > s->window ? s->window : i + 1;
        const int64_t future = s->Lk - 1 - i;
        pairs += (double)past;
        if (!(s->mask & POSENC_MASK_CAUSAL))
            pairs +=
                (double)(s->mask & POSENC_MASK_WINDOW && future > s->window - 1 ? s->window - 1 : future);
    }
    return pairs;
}

double pe_workload_operations(const pe_bench_shape *s)
{
    return (s->backward ? 10.0 : 4.0) * (double)(s->D * s->H) * pairs_of(s);
}

/* SPDX-License-Identifier: MIT */
/* One problem of a case, and memory. Contract: problem.h. */
#define _DEFAULT_SOURCE /* madvise */
#include "bench/problem.h"

#include <math.h>
#include <posenc/rotary.h>
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

void pe_take_small_pages(void)
{
    small_pages = 1;
#ifdef PR_SET_THP_DISABLE
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* what was freed has kept the advice it got before */
#endif
}

/* Bytes that nothing has touched. */
static void *plain_buffer(pe_buffers *all, size_t bytes, posenc_error *err)
{
    void *block = NULL;
    if (all->count < PE_MOST_BUFFERS)
        block = aligned_alloc(HUGE_PAGE, (bytes / HUGE_PAGE + 1) * HUGE_PAGE);
    if (!block) {
        *err = (posenc_error){.status = POSENC_ERROR_MEMORY};
        snprintf(err->message, sizeof err->message, "there is no memory for %zu MiB", bytes >> 20);
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
        ((uint16_t *)to)[i] = pe_float_to_bf16(x);
    else if (dtype == POSENC_DTYPE_F16)
        ((uint16_t *)to)[i] = pe_float_to_f16(x);
    else
        ((float *)to)[i] = x;
}

void *pe_random_buffer(pe_buffers *all, int64_t n, posenc_dtype dtype, posenc_error *err)
{
    const float spread = sqrtf(12.0f) * 0x1p-32f; /* 2^32 steps become a width of sqrt(12): variance 1 */
    uint64_t    state  = SEED + (uint64_t)all->count;
    void       *block  = plain_buffer(all, (size_t)n * posenc_dtype_size(dtype), err);
    for (int64_t i = 0; block && i < n; i++)
        put(block, i, dtype, spread * (float)(int32_t)(next_of(&state) >> 32));
    return block;
}

void pe_free_buffers(pe_buffers *all)
{
    for (int i = 0; i < all->count; i++)
        free(all->blocks[i]);
    all->count = 0;
}

/* ---------------------------------------------------------------- the problem --------------- */

void pe_problem_close(pe_problem *p)
{
    posenc_plan_free(p->plan);
    posenc_encoding_free(p->e);
    pe_free_buffers(&p->all);
}

static posenc_status open_plan(pe_problem *p, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s          = &c->shape;
    posenc_options        o          = posenc_options_default();
    char                  small[512] = "";
    posenc_status         status     = POSENC_OK;
    if ((s->verb == PE_ATTEND || s->verb == PE_ROWS) && !strpbrk(s->spec, "[+"))
        status = posenc_small_model(s->spec, &p->dims, s->mask, small, sizeof small, err);
    if (!status)
        status = posenc_encoding_create(&p->e, s->spec, small, err);
    if (status)
        return status;
    o.threads = threads;
    o.isa     = c->isa;
    if (s->verb == PE_ATTEND) {
        o.mask     = s->mask;
        o.window   = s->window;
        o.executor = POSENC_EXECUTOR_TILED;
    }
    return posenc_plan_create(&p->plan, p->e, &p->dims, &o, err);
}

/* A tensor of random numbers; no data after an error. */
static posenc_tensor draw(pe_problem *p, posenc_dtype dtype, int32_t ndim, const int64_t *shape,
                          posenc_error *err)
{
    int64_t n = 1;
    for (int32_t a = 0; a < ndim; a++)
        n *= shape[a];
    return posenc_tensor_contiguous(pe_random_buffer(&p->all, n + PE_BEYOND, dtype, err), dtype, ndim, shape);
}

static void fill_zeros(posenc_tensor *t)
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

static posenc_status open_params(pe_problem *p, posenc_error *err)
{
    const int count = posenc_param_count(p->e);
    if (count > PE_BENCH_PARAMS) {
        *err = (posenc_error){POSENC_ERROR_UNSUPPORTED, "more parameters than the measurement has room for"};
        return err->status;
    }
    for (int i = 0; i < count; i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS];
        const posenc_status status = posenc_param_shape(p->e, &p->dims, i, &ndim, shape, err);
        if (status)
            return status;
        p->params[i] = draw(p, POSENC_DTYPE_F32, ndim, shape, err);
        if (!p->params[i].data)
            return err->status;
        p->dparams[i] = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F32, ndim, shape);
        if (p->shape->backward && posenc_param_trainable(p->e, i))
            p->dparams[i] = draw(p, POSENC_DTYPE_F32, ndim, shape, err);
    }
    const posenc_status status = count ? posenc_param_init(p->e, &p->dims, p->params, 1, err) : POSENC_OK;
    for (int i = 0; !status && i < count; i++)
        fill_zeros(&p->params[i]);
    return status;
}

static void open_attention(pe_problem *p, posenc_error *err)
{
    const posenc_dims    *d = &p->dims;
    const pe_bench_shape *s = p->shape;
    const int64_t q[4] = {1, d->H, d->Lq, d->D}, k[4] = {1, d->G, d->Lk, d->D}, lse[3] = {1, d->H, d->Lq};
    p->in.q      = draw(p, s->dtype, 4, q, err);
    p->in.k      = draw(p, s->dtype, 4, k, err);
    p->in.v      = draw(p, s->dtype, 4, k, err);
    p->in.q_pos  = posenc_positions_range((double)(d->Lk - d->Lq), 1);
    p->in.k_pos  = posenc_positions_range(0, 1);
    p->in.params = p->params;
    p->out.o     = draw(p, s->dtype, 4, q, err);
    p->out.lse   = draw(p, POSENC_DTYPE_F32, 3, lse, err);
    if (!s->backward)
        return;
    p->grad      = (posenc_attend_grad){.o = p->out.o, .lse = p->out.lse, .dparams = p->dparams};
    p->grad.dout = draw(p, s->dtype, 4, q, err);
    p->grad.dq   = draw(p, s->dtype, 4, q, err);
    p->grad.dk   = draw(p, s->dtype, 4, k, err);
    p->grad.dv   = draw(p, s->dtype, 4, k, err);
}

/* Positions 0, 1, 2, ...; where rows belong to words too, some word at each. */
static posenc_positions row_positions(pe_problem *p, posenc_error *err)
{
    const posenc_encoding_info *info = posenc_encoding_find(p->shape->spec);
    const int64_t               L    = p->dims.Lq;
    int64_t                    *places =
        info && info->by_word ? plain_buffer(&p->all, (size_t)(2 * L) * sizeof *places, err) : NULL;
    if (!places)
        return posenc_positions_range(0, 1);
    for (int64_t i = 0; i < L; i++) {
        places[2 * i]     = i % 64;
        places[2 * i + 1] = i;
    }
    return posenc_positions_array(posenc_tensor_contiguous(places, POSENC_DTYPE_I64, 2, (int64_t[]){L, 2}));
}

static void open_rows(pe_problem *p, posenc_error *err)
{
    p->is_rotary = posenc_encoding_part(p->e, POSENC_PLACE_ROTARY) != NULL;
    const int64_t width =
        p->is_rotary ? posenc_rotary_width(p->plan, POSENC_SIDE_QUERIES) : posenc_rows_width(p->plan);
    const int64_t shape[3] = {1, p->dims.Lq, width};
    p->rows                = (posenc_rows_in){.pos = row_positions(p, err), .params = p->params};
    p->y                   = draw(p, POSENC_DTYPE_F32, 3, shape, err);
    p->to                  = p->y.data;
    p->bytes               = p->dims.Lq * width * (int64_t)sizeof(float);
    if (p->shape->backward)
        p->rows_grad =
            (posenc_rows_grad){.dy = draw(p, POSENC_DTYPE_F32, 3, shape, err), .dparams = p->dparams};
}

static void open_turn(pe_problem *p, posenc_error *err)
{
    const pe_bench_shape *s = p->shape;
    const int64_t         n = s->Lq * s->H * s->D;
    p->x                    = pe_random_buffer(&p->all, n + PE_BEYOND, s->dtype, err);
    p->to                   = pe_random_buffer(&p->all, n + PE_BEYOND, s->dtype, err);
    p->bytes                = n * (int64_t)posenc_dtype_size(s->dtype);
    p->turn = (posenc_rotate_io){.q         = posenc_tensor_from_blhd(p->x, s->dtype, 1, s->Lq, s->H, s->D),
                                 .q_pos     = posenc_positions_range(0, 1),
                                 .k_pos     = posenc_positions_range(0, 1),
                                 .direction = 1};
    p->turn.to_q =
        s->verb == PE_TURN_AWAY ? posenc_tensor_from_blhd(p->to, s->dtype, 1, s->Lq, s->H, s->D) : p->turn.q;
}

void pe_problem_open(pe_problem *p, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    memset(p, 0, sizeof *p);
    p->shape = s;
    p->dims  = (posenc_dims){.B  = 1,
                             .H  = s->H,
                             .G  = s->G ? s->G : s->H,
                             .Lq = s->Lq,
                             .Lk = s->Lk,
                             .D  = s->D,
                             .Dv = s->verb == PE_ATTEND ? s->D : 0,
                             .L  = (s->Lk + REACH - 1) / REACH};
    if (!err->status)
        err->status = open_plan(p, c, threads, err);
    if (!err->status)
        err->status = open_params(p, err);
    if (err->status)
        return;
    switch (s->verb) {
    case PE_ATTEND: open_attention(p, err); break;
    case PE_ROWS:
    case PE_TABLE: open_rows(p, err); break;
    default: open_turn(p, err);
    }
}

static posenc_status run(pe_problem *p, int backward, posenc_error *err)
{
    switch (p->shape->verb) {
    case PE_ATTEND:
        return backward ? posenc_attend_backward(p->plan, &p->in, &p->grad, p->work, err)
                        : posenc_attend(p->plan, &p->in, &p->out, p->work, err);
    case PE_ROWS:
    case PE_TABLE:
        return backward ? posenc_rows_backward(p->plan, &p->rows, &p->rows_grad, p->work, err)
               : p->is_rotary
                   ? posenc_rotary_table(p->plan, POSENC_SIDE_QUERIES,
                                         &(posenc_rotary_in){.pos = p->rows.pos}, &p->y, p->work, err)
                   : posenc_rows(p->plan, &p->rows, &p->y, p->work, err);
    default: return posenc_rotate(p->plan, &p->turn, p->work, err);
    }
}

void pe_problem_go(void *context)
{
    pe_problem *p = context;
    run(p, p->shape->backward, &p->err);
}

/* The table of all positions, which later runs turn by. */
static posenc_status open_table(pe_problem *p, posenc_error *err)
{
    const int64_t shape[3] = {1, p->dims.Lq, posenc_rotary_width(p->plan, POSENC_SIDE_QUERIES)};
    p->turn.q_table        = draw(p, POSENC_DTYPE_F32, 3, shape, err);
    return p->turn.q_table.data
               ? posenc_rotary_table(p->plan, POSENC_SIDE_QUERIES, &(posenc_rotary_in){.pos = p->turn.q_pos},
                                     &p->turn.q_table, p->work, err)
               : err->status;
}

void pe_problem_start(pe_problem *p, posenc_error *err)
{
    if (err->status)
        return;
    const int    backward = p->shape->backward, first = !backward || p->shape->verb == PE_ATTEND;
    const size_t bytes = posenc_plan_workspace(p->plan, (first ? POSENC_RUN_FORWARD : 0) |
                                                            (backward ? POSENC_RUN_BACKWARD : 0));
    p->work            = plain_buffer(&p->all, bytes, err);
    if (!err->status && p->shape->verb == PE_TURN_BY_TABLE)
        err->status = open_table(p, err);
    if (!err->status && first)
        err->status = run(p, 0, err);
    if (!err->status && backward)
        err->status = run(p, 1, err);
}

void pe_problem_ready(pe_problem *p, const pe_bench_case *c, int threads, posenc_error *err)
{
    pe_problem_open(p, c, threads, err);
    pe_problem_start(p, err);
}

/* Pairs of one head; queries are the last Lq of Lk places. */
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

double pe_attention_operations(const pe_bench_shape *s)
{
    return (s->backward ? 10.0 : 4.0) * (double)(s->D * s->H) * pairs_of(s);
}

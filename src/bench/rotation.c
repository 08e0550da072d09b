/* SPDX-License-Identifier: MIT */
/*
 * rotation.c: RoPE against the memory it passes through: G1 to G4, G6
 *
 * Tensors are tokens x heads x 128, as engines hold them. A rotation in place reads and writes every number
 * once, so its limit is a pass in place over the very same buffer; a rotation out of place is held against a
 * copy between the same two. G6 asks what it costs to make cosines and sines in the run: posenc_rotate beside
 * the same kernel fed from a finished table.
 *
 * The overhead of a call is what a call costs where there is no work: seconds of one token and of three,
 * drawn on to none.
 *
 * While a model decodes, its engine makes the cosines and sines of a step once (posenc_rotary_table) and
 * every layer turns by them: the rows of G3 do that. Beside them stand the same calls from positions, which
 * make their table each time.
 */
#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { IN_PLACE, OVER_MEMCPY, OUT_OF_PLACE, BY_TABLE, OVERHEAD, OVERHEAD_BY_TABLE, IN_FLIGHT };

typedef struct rotation {
    pe_buffers       all;
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_rotate_io io;
    void            *x, *y, *work;
    int64_t          bytes;
    posenc_error     err; /* of the last run */
} rotation;

static void close_rotation(rotation *r)
{
    posenc_plan_free(r->plan);
    posenc_encoding_free(r->e);
    pe_free_buffers(&r->all);
}

static posenc_status open_plan(rotation *r, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s    = &c->shape;
    const posenc_dims     dims = {.B = 1, .H = s->H, .G = s->H, .Lq = s->Lq, .Lk = s->Lq, .D = s->D};
    posenc_options        o    = posenc_options_default();
    o.threads                  = threads;
    o.isa                      = c->isa;
    posenc_status status       = posenc_encoding_create(&r->e, s->spec, NULL, err);
    return status ? status : posenc_plan_create(&r->plan, r->e, &dims, &o, err);
}

/* The table of all positions, which later runs turn by. */
static posenc_status open_table(rotation *r, const pe_bench_shape *s, posenc_error *err)
{
    const int64_t width = posenc_rotary_width(r->plan, POSENC_QUERIES);
    float        *table = pe_random_buffer(&r->all, s->Lq * width, POSENC_F32, err);
    if (!table)
        return err->status;
    r->io.q_table = posenc_tensor_contiguous(table, POSENC_F32, 3, (int64_t[]){1, s->Lq, width});
    return posenc_rotary_table(r->plan, POSENC_QUERIES, NULL, &r->io.q_pos, &r->io.q_table, r->work, err);
}

static posenc_status open_rotation(rotation *r, const pe_bench_case *c, int threads, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    const int64_t         n = s->Lq * s->H * s->D;
    *r                      = (rotation){.bytes = n * (int64_t)posenc_dtype_size(s->dtype)};
    posenc_status status    = open_plan(r, c, threads, err);
    if (status)
        return status;
    /* a little longer, so that passes from other alignments reach as far */
    if (!(r->x = pe_random_buffer(&r->all, n + 1024, s->dtype, err)) ||
        !(r->y = pe_random_buffer(&r->all, n + 1024, s->dtype, err)) ||
        !(r->work = pe_plain_buffer(&r->all, posenc_plan_workspace(r->plan, POSENC_FORWARD), err)))
        return err->status;
    r->io = (posenc_rotate_io){.q         = posenc_tensor_from_blhd(r->x, s->dtype, 1, s->Lq, s->H, s->D),
                               .q_pos     = posenc_positions_range(0, 1),
                               .k_pos     = posenc_positions_range(0, 1),
                               .direction = 1};
    r->io.to_q =
        s->kind == OUT_OF_PLACE ? posenc_tensor_from_blhd(r->y, s->dtype, 1, s->Lq, s->H, s->D) : r->io.q;
    if (s->kind == BY_TABLE || s->kind == OVERHEAD_BY_TABLE)
        status = open_table(r, s, err);
    return status ? status : posenc_rotate(r->plan, &r->io, r->work, err);
}

static void run_rotation(void *context)
{
    rotation *r = context;
    posenc_rotate(r->plan, &r->io, r->work, &r->err);
}

static posenc_status measure_against_pass(const pe_bench_case *c, const pe_bench_effort *effort,
                                          pe_bench_figure *figure, posenc_error *err)
{
    const int           is_copy = c->shape.kind == OVER_MEMCPY || c->shape.kind == OUT_OF_PLACE;
    rotation            r;
    const posenc_status status = open_rotation(&r, c, effort->threads, err);
    if (!status) {
        pe_pass        pass;
        const pe_timed kernel = {run_rotation, &r, 2.0 * (double)r.bytes, effort->threads},
                       limit  = pe_best_pass(&pass, is_copy ? PE_PASS_MEMCPY : PE_PASS_IN_PLACE, r.x, r.y,
                                             r.bytes + 2048, effort->threads);
        pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    close_rotation(&r);
    return status;
}

/* ---------------------------------------------------------------- a call without work -------- */

/* Nanoseconds of a call at 1 and at 3 tokens give a line; what it has at 0 is the overhead. */
static posenc_status measure_overhead(const pe_bench_case *c, const pe_bench_effort *effort,
                                      pe_bench_figure *figure, posenc_error *err)
{
    enum { MOST = 101 };
    double        one[MOST];
    const int     n   = effort->repeats < MOST ? effort->repeats : MOST;
    pe_bench_case few = *c, many = *c;
    rotation      a = {0}, b = {0};
    few.shape.Lq         = 1;
    many.shape.Lq        = 3;
    posenc_status status = open_rotation(&a, &few, effort->threads, err);
    if (!status)
        status = open_rotation(&b, &many, effort->threads, err);
    for (int i = 0; !status && i < n; i++) {
        const pe_timed short_call = {run_rotation, &a, 1, effort->threads},
                       long_call  = {run_rotation, &b, 1, effort->threads};
        one[i]                    = 1e9 * (3 * pe_time_once(&short_call) - pe_time_once(&long_call)) / 2;
    }
    if (!status)
        *figure = pe_quartiles(one, n);
    close_rotation(&a);
    close_rotation(&b);
    return status;
}

/* ---------------------------------------------------------------- a finished table ----------- */

/* The kernel that posenc_rotate runs, from a table of all positions. */
typedef struct tabled {
    const float  *table;
    float        *x;
    pe_rotate_fn *turn;
    int64_t       L, H, D, far;
} tabled;

static void run_tabled(void *context)
{
    const tabled *t = context;
    t->turn(&(pe_rotation){.to           = t->x,
                           .from         = t->x,
                           .to_token     = t->H * t->D,
                           .to_head      = t->D,
                           .from_token   = t->H * t->D,
                           .from_head    = t->D,
                           .table        = t->table,
                           .table_stride = t->D,
                           .tokens       = t->L,
                           .heads        = t->H,
                           .M            = t->D / 2,
                           .sign         = 1,
                           .far          = t->far,
                           .far_table    = 1});
}

/* Any unit vectors do: what is measured does not look at the angles. */
static float *make_table(rotation *r, const pe_bench_shape *s, posenc_error *err)
{
    float *table = pe_random_buffer(&r->all, s->Lq * s->D, POSENC_F32, err);
    for (int64_t i = 0; table && i < s->Lq; i++)
        for (int64_t m = 0; m < s->D / 2; m++) {
            float *const c = table + i * s->D + m, *const n = c + s->D / 2;
            const float length = hypotf(*c, *n) + 1e-20f;
            *c /= length;
            *n /= length;
        }
    return table;
}

static posenc_status measure_in_flight(const pe_bench_case *c, const pe_bench_effort *effort,
                                       pe_bench_figure *figure, posenc_error *err)
{
    const pe_bench_shape *s = &c->shape;
    rotation              r;
    posenc_status         status  = open_rotation(&r, c, 1, err);
    const pe_kernels     *kernels = pe_kernels_named(c->isa ? c->isa : posenc_isa());
    const float          *table   = status ? NULL : make_table(&r, s, err);
    if (!status && !table)
        status = err->status;
    if (!status) {
        tabled         t      = {.table = table,
                                 .x     = r.x,
                                 .turn  = kernels->rotate[PE_STORED_F32][strstr(s->spec, "half") != NULL],
                                 .L     = s->Lq,
                                 .H     = s->H,
                                 .D     = s->D,
                                 .far   = pe_rotation_ahead(sizeof *table, r.bytes)};
        const pe_timed flight = {run_rotation, &r, 2.0 * (double)r.bytes, 1},
                       tables = {run_tabled, &t, 2.0 * (double)r.bytes, 1};
        pe_compare(figure, &flight, &tables, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    close_rotation(&r);
    return status;
}

/* ---------------------------------------------------------------- the rows ------------------ */

static const struct {
    const char *name, *spec;
} layouts[] = {{"half", "rope[layout=half]"}, {"interleaved", "rope"}};

static const struct {
    int64_t L, H;
} large[] = {{4096, 32}, {32768, 8}};

enum { LAYOUTS = 2, LARGE = 2, WIDTH = 128 };

static void add(pe_case_list *to, const char *goal, const char *what, const char *of, double wanted,
                int layout, int64_t L, int64_t H, posenc_dtype dtype, int kind)
{
    static pe_bench_fn *const functions[] = {
        [IN_PLACE] = measure_against_pass,     [OVER_MEMCPY] = measure_against_pass,
        [OUT_OF_PLACE] = measure_against_pass, [BY_TABLE] = measure_against_pass,
        [OVERHEAD] = measure_overhead,         [OVERHEAD_BY_TABLE] = measure_overhead,
        [IN_FLIGHT] = measure_in_flight};
    const int            is_overhead = kind == OVERHEAD || kind == OVERHEAD_BY_TABLE;
    const pe_bench_shape shape       = {
              .spec = layouts[layout].spec, .H = H, .G = H, .Lq = L, .D = WIDTH, .dtype = dtype, .kind = kind};
    pe_add_case(to, goal,
                (pe_bench_case){.unit    = is_overhead ? "ns" : "GB/s",
                                .wanted  = wanted,
                                .sense   = !(wanted > 0) ? PE_STATED
                                           : is_overhead ? PE_AT_MOST
                                                         : PE_AT_LEAST,
                                .measure = functions[kind],
                                .shape   = shape},
                "%s %s %s, %lld x %lld x %d%s", what, pe_dtype_word(dtype), layouts[layout].name,
                (long long)L, (long long)H, WIDTH, of);
}

void pe_rotation_cases(pe_case_list *to)
{
    for (int layout = 0; layout < LAYOUTS; layout++)
        for (int s = 0; s < LARGE; s++) {
            const int64_t L = large[s].L, H = large[s].H;
            add(to, "G1", "rope in place", ", of in-place read-modify-write", 0.95, layout, L, H, POSENC_F32,
                IN_PLACE);
            add(to, "G1", "rope in place", ", of memcpy", 1.45, layout, L, H, POSENC_F32, OVER_MEMCPY);
            add(to, "G2", "rope in place", ", of in-place read-modify-write", 0.90, layout, L, H, POSENC_BF16,
                IN_PLACE);
            add(to, "G2", "rope in place", ", of in-place read-modify-write", 0.90, layout, L, H, POSENC_F16,
                IN_PLACE);
            add(to, "G4", "rope out of place", ", of memcpy", 1.2, layout, L, H, POSENC_F32, OUT_OF_PLACE);
            add(to, "G6", "cos and sin in flight", ", of the table's speed", 0.95, layout, L, H, POSENC_F32,
                IN_FLIGHT);
        }
    for (int layout = 0; layout < LAYOUTS; layout++) {
        add(to, "G3", "rope in place by a table", ", in L2, of in-place read-modify-write", 0.85, layout, 8,
            32, POSENC_F32, BY_TABLE);
        add(to, "G3", "rope in place from positions", ", in L2, of in-place read-modify-write", 0, layout, 8,
            32, POSENC_F32, IN_PLACE);
        add(to, "G3", "overhead of a call of rope by a table", ", in ns beyond the work", 50, layout, 8, 1,
            POSENC_F32, OVERHEAD_BY_TABLE);
        add(to, "G3", "overhead of a call of rope from positions", ", in ns beyond the work", 0, layout, 8, 1,
            POSENC_F32, OVERHEAD);
        add(to, "G6", "cos and sin in flight", ", in L2, of the table's speed", 0, layout, 8, 32, POSENC_F32,
            IN_FLIGHT);
    }
}

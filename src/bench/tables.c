/* SPDX-License-Identifier: MIT */
/*
 * tables.c: tables of cosines and sines against stores: G7
 *
 * A table is written once and nothing is read, so its limit is a store of the same bytes: streaming beyond
 * the last cache, plain in it. Rows of 128 channels, float32. Sinusoidal rows come from posenc_rows without
 * x, rotary ones from posenc_rotary_table.
 */
#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/limits.h"

enum { WIDTH = 128 };

typedef struct table {
    pe_buffers       all;
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_rows_in   in;
    int              is_rotary;
    posenc_tensor    y;
    void            *work, *to;
    int64_t          bytes;
    posenc_error     err;
} table;

static void close_table(table *t)
{
    posenc_plan_free(t->plan);
    posenc_encoding_free(t->e);
    pe_free_buffers(&t->all);
}

static posenc_status make_table(table *t, posenc_error *err)
{
    return t->is_rotary ? posenc_rotary_table(t->plan, POSENC_QUERIES, NULL, &t->in.pos, &t->y, t->work, err)
                        : posenc_rows(t->plan, &t->in, &t->y, t->work, err);
}

static posenc_status open_table(table *t, const pe_bench_case *c, int threads, posenc_error *err)
{
    const int64_t     L = c->shape.Lq, shape[3] = {1, L, WIDTH};
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = L, .Lk = L, .D = WIDTH, .d_model = WIDTH};
    posenc_options    o    = posenc_options_default();
    *t                     = (table){.bytes = L * WIDTH * (int64_t)sizeof(float)};
    o.threads              = threads;
    posenc_status status   = posenc_encoding_create(&t->e, c->shape.spec, NULL, err);
    if (!status)
        status = posenc_plan_create(&t->plan, t->e, &dims, &o, err);
    if (status)
        return status;
    if (!(t->to = pe_random_buffer(&t->all, L * WIDTH + 1024, POSENC_F32, err)) ||
        !(t->work = pe_plain_buffer(&t->all, posenc_plan_workspace(t->plan, POSENC_FORWARD), err)))
        return err->status;
    t->in        = (posenc_rows_in){.pos = posenc_positions_range(0, 1)};
    t->y         = posenc_tensor_contiguous(t->to, POSENC_F32, 3, shape);
    t->is_rotary = posenc_encoding_part(t->e, POSENC_ROTARY) != NULL;
    return make_table(t, err);
}

static void run_table(void *context)
{
    table *t = context;
    make_table(t, &t->err);
}

static posenc_status measure_table(const pe_bench_case *c, const pe_bench_effort *effort,
                                   pe_bench_figure *figure, posenc_error *err)
{
    table               t;
    const posenc_status status = open_table(&t, c, effort->threads, err);
    if (!status) {
        pe_pass        pass;
        const pe_timed kernel = {run_table, &t, (double)t.bytes, effort->threads},
                       limit =
                           pe_best_pass(&pass, PE_PASS_STORE, NULL, t.to, t.bytes + 2048, effort->threads);
        pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    close_table(&t);
    return status;
}

void pe_table_cases(pe_case_list *to)
{
    static const struct {
        const char *name, *spec;
    } kinds[] = {{"sinusoidal", "sinusoidal"}, {"rotary", "rope"}};
    static const struct {
        const char *name;
        int64_t     L;
        double      wanted;
    } sizes[] = {{"out of cache", 262144, 0.90}, {"in cache", 4096, 0.55}};
    for (int k = 0; k < 2; k++)
        for (int s = 0; s < 2; s++)
            pe_add_case(to, "G7",
                        (pe_bench_case){.unit    = "GB/s",
                                        .wanted  = sizes[s].wanted,
                                        .measure = measure_table,
                                        .shape   = {.spec = kinds[k].spec, .Lq = sizes[s].L, .D = WIDTH}},
                        "%s table f32, %lld x %d, %s, of the best store", kinds[k].name,
                        (long long)sizes[s].L, WIDTH, sizes[s].name);
}

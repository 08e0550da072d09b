/* SPDX-License-Identifier: MIT */
/*
 * test_pages: decoding against pages of every length, in any order, against the same rows side by side
 *
 * Pages are read several at a time where nothing of them is hidden, else one by one. Tried are pages of one
 * key and longer than a block, those whose keys are no multiple of what is read at once, windows that begin
 * and keys that are hidden within a page; caches of 32, 16 and 8 bits. What is hidden or beyond the length is
 * NaN or a page that is not there. The number of threads changes no bit. Outputs may be off by roundings:
 * sums are of 1300 products at most, each of 2^-24, and weights of bf16, where they are rounded, 2^-8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "workspace.h"

enum { H = 8, G = 2, D = 64, KEYS = 1300, WINDOW = 701, HIDDEN = 230, MOST = 2048, ROWS = H * D };

static const int64_t pages[] = {1, 2, 4, 12, 16, 20, 48, 64, 256, 1024};

static const int masks[] = {POSENC_MASK_CAUSAL, POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW,
                            POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING};

static const posenc_dtype types[][2] = {{POSENC_DTYPE_F32, POSENC_DTYPE_F32},
                                        {POSENC_DTYPE_F32, POSENC_DTYPE_BF16},
                                        {POSENC_DTYPE_BF16, POSENC_DTYPE_BF16},
                                        {POSENC_DTYPE_F32, POSENC_DTYPE_F8_E4M3},
                                        {POSENC_DTYPE_F32, POSENC_DTYPE_Q8_0}};

enum { PAGES = sizeof pages / sizeof *pages, MASKS = sizeof masks / sizeof *masks };
enum { TYPES = sizeof types / sizeof *types };

/* ---- rows ---- */

static size_t bytes_of(posenc_dtype type, int64_t n)
{
    return type == POSENC_DTYPE_Q8_0      ? (size_t)(n / PE_HALF_Q8 * PE_HALF_Q8_BYTES)
           : type == POSENC_DTYPE_F8_E4M3 ? (size_t)n
                                          : (size_t)n * posenc_dtype_size(type);
}

static float normal(const char *name, int64_t i)
{
    return (float)posenc_random_normal(11, name, (uint64_t)i);
}

/* n numbers; of 8 bits any bytes but NaN. */
static void draw(void *to, posenc_dtype type, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++) {
        const float   x    = normal(name, i);
        const uint8_t byte = (uint8_t)((int)(x * 50) & 0xff);
        uint8_t      *row  = to;
        if (type == POSENC_DTYPE_F32)
            ((float *)to)[i] = x;
        else if (type == POSENC_DTYPE_BF16)
            ((uint16_t *)to)[i] = pe_half_float_to_bf16(x);
        else if (type == POSENC_DTYPE_F8_E4M3)
            row[i] = (byte & 0x78) > 0x40 ? byte & 0xbf : byte;
        else {
            const uint16_t step  = pe_half_float_to_f16(0.01f);
            uint8_t       *block = row + i / PE_HALF_Q8 * PE_HALF_Q8_BYTES;
            memcpy(block, &step, sizeof step);
            block[2 + i % PE_HALF_Q8] = byte;
        }
    }
}

/* Page number i of `count`, mixed: an odd step goes through all where their number is a power of two. */
static int32_t page_at(int64_t i, int64_t count)
{
    int64_t all = 1;
    while (all < count)
        all *= 2;
    return (int32_t)((5 * i + 3) % all);
}

/* ---- a run ---- */

typedef struct run {
    posenc_dtype q_type, type;
    int          mask, threads;
    int64_t      page; /* 0: rows */
    char         o[ROWS * sizeof(float)];
} run;

static uint8_t shown[MOST];

/* Rows [G, KEYS] as the run wants them; pages and the ends of rows that are not needed are all ones: NaN. */
static posenc_tensor arrange(const run *r, const char *rows, int32_t *table)
{
    const int64_t n = r->page ? r->page : KEYS, count = (KEYS + n - 1) / n;
    const size_t  row = bytes_of(r->type, D);
    int64_t       all = 1;
    while (r->page && all < count)
        all *= 2;
    const posenc_tensor x =
        posenc_tensor_contiguous(malloc((size_t)(all * G * n) * row), r->type, 4, (int64_t[]){all, G, n, D});
    memset(x.data, 0xff, (size_t)(all * G * n) * row);
    for (int64_t i = 0; i < count; i++)
        table[i] = r->page ? page_at(i, count) : 0;
    for (int64_t g = 0; g < G; g++)
        for (int64_t j = 0; j < KEYS; j++)
            if (!(r->mask & POSENC_MASK_KEY_PADDING) || shown[j])
                memcpy((char *)x.data + (size_t)((table[j / n] * G + g) * n + j % n) * row,
                       rows + (size_t)(g * KEYS + j) * row, row);
    return x;
}

static void go(run *r, const char *k, const char *v)
{
    const int64_t     n = r->page ? r->page : KEYS, count = (KEYS + n - 1) / n, one[] = {1};
    int64_t           length  = KEYS;
    const posenc_dims dims    = {.B = 1, .H = H, .G = G, .Lq = 1, .Lk = count * n, .D = D, .Dv = D};
    posenc_options    options = posenc_options_default();
    int32_t          *table   = malloc((size_t)(count + 1) * sizeof *table);
    float             slopes[H];
    char              q[ROWS * sizeof(float)];
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_error      err;
    const int64_t     shape[] = {1, H, 1, D};
    posenc_tensor     params  = posenc_tensor_contiguous(slopes, POSENC_DTYPE_F32, 1, (int64_t[]){H});
    options.mask              = r->mask;
    options.window            = r->mask & POSENC_MASK_WINDOW ? WINDOW : 0;
    options.threads           = r->threads;
    draw(q, r->q_type, ROWS, "q");
    if (posenc_encoding_create(&e, "alibi", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, &options, &err) || posenc_param_init(e, &dims, &params, 0, &err))
        fail_msg("%s", err.message);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_DECODE);
    posenc_attend_in in   = {.size      = sizeof in,
                             .q         = posenc_tensor_contiguous(q, r->q_type, 4, shape),
                             .k         = arrange(r, k, table),
                             .v         = arrange(r, v, table),
                             .q_pos     = posenc_positions_range(KEYS - 1, 1),
                             .k_pos     = posenc_positions_range(0, 1),
                             .params    = &params,
                             .k_lengths = posenc_tensor_contiguous(&length, POSENC_DTYPE_I64, 1, one)};
    if (r->mask & POSENC_MASK_KEY_PADDING)
        in.key_allowed = posenc_tensor_contiguous(shown, POSENC_DTYPE_U8, 2, (int64_t[]){1, dims.Lk});
    if (r->page)
        in.k_pages = posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, (int64_t[]){1, count});
    const posenc_attend_out out = {.size = sizeof out,
                                   .o    = posenc_tensor_contiguous(r->o, r->q_type, 4, shape)};
    if (posenc_attend(plan, &in, &out, &work, &err))
        fail_msg("%s", err.message);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    free(in.k.data), free(in.v.data), free(table);
}

static double number(const run *r, int i)
{
    return (double)(r->q_type == POSENC_DTYPE_F32
                        ? ((const float *)(const void *)r->o)[i]
                        : pe_half_bf16_to_float(((const uint16_t *)(const void *)r->o)[i]));
}

static void check(const posenc_dtype type[2], int mask, const char *k, const char *v)
{
    static run   rows, paged, threaded;
    const double off = type[0] == POSENC_DTYPE_BF16 ? 0x1p-6 : 0x1p-17;
    rows             = (run){.q_type = type[0], .type = type[1], .mask = mask, .threads = 1};
    go(&rows, k, v);
    for (int i = 0; i < PAGES; i++) {
        paged            = rows;
        paged.page       = pages[i];
        threaded         = paged;
        threaded.threads = 3;
        memset(paged.o, 0xff, sizeof paged.o), memset(threaded.o, 0xff, sizeof threaded.o);
        go(&paged, k, v), go(&threaded, k, v);
        assert_memory_equal(paged.o, threaded.o, sizeof paged.o);
        for (int x = 0; x < ROWS; x++)
            if (!(fabs(number(&paged, x) - number(&rows, x)) <= off * (1 + fabs(number(&rows, x)))))
                fail_msg("types %d and %d, mask %d, pages of %d: output %d is %.9g, not %.9g", (int)type[0],
                         (int)type[1], mask, (int)pages[i], x, number(&paged, x), number(&rows, x));
    }
}

static void pages_of_every_length_are_rows_side_by_side(void **state)
{
    (void)state;
    for (int64_t j = 0; j < MOST; j++)
        shown[j] = j % HIDDEN != HIDDEN - 1 && (j < 300 || j > 420);
    for (int t = 0; t < TYPES; t++) {
        char *k = malloc(bytes_of(types[t][1], G * KEYS * D)),
             *v = malloc(bytes_of(types[t][1], G * KEYS * D));
        draw(k, types[t][1], G * KEYS * D, "k"), draw(v, types[t][1], G * KEYS * D, "v");
        for (int m = 0; m < MASKS; m++)
            check(types[t], masks[m], k, v);
        free(k), free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_of_every_length_are_rows_side_by_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

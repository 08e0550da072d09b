/* SPDX-License-Identifier: MIT */
/*
 * test_ends: a run reads its inputs to their ends and no further
 *
 * What lies behind an input may be another program's, or nothing: each of q, k, v, positions, the masks and
 * the outputs ends where a page begins that nobody may touch. Lengths and widths are no multiples of what
 * kernels take at once; of one query, of few and of many, in each storage type, forward, with every attention
 * encoding.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "attention_case.h"
#include "base/tensor.h"

enum { MANY = 67, KEYS = 131 };

/* Memory that ends with its page; whole pages begin with theirs. */
typedef struct ending {
    char  *pages;
    size_t bytes;
} ending;

static void *open_ending(ending *to, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n + page - 1) / page * page;
    to->bytes = page + room + page;
    to->pages = mmap(NULL, to->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(to->pages != MAP_FAILED);
    assert_int_equal(mprotect(to->pages, page, PROT_NONE), 0);
    assert_int_equal(mprotect(to->pages + page + room, page, PROT_NONE), 0);
    return to->pages + page + room - n;
}

enum { Q, K, V, O, ALLOWED, Q_POS, K_POS, ENDINGS };

static posenc_tensor stored(const array *a, posenc_dtype dtype, ending *to)
{
    const int64_t row = a->shape[3], bytes = pe_tensor_bytes(dtype, 1);
    posenc_tensor t =
        posenc_tensor_contiguous(open_ending(to, (size_t)(a->count * bytes)), dtype, 4, a->shape);
    for (int64_t i = 0; i < a->count; i += row)
        pe_tensor_store_double((char *)t.data + i * bytes, dtype, 1, a->wide + i, row);
    return t;
}

/* Whole positions of tokens, of which the first stands one further back than those that follow. */
static posenc_positions placed(const attention_case *c, int64_t first, int64_t n, ending *to)
{
    int64_t *at = open_ending(to, (size_t)n * sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[i] = first + i - (first > 0 && i == 0);
    return case_places(c->e, &c->dims,
                       posenc_positions_array(posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 1, &n)));
}

static void run(const attention_case *c, const posenc_plan *plan, posenc_dtype dtype)
{
    ending            ends[ENDINGS];
    posenc_error      err;
    posenc_tensor     params[CASE_PARAMS];
    posenc_attend_in  in    = case_in(c, 0, params);
    array             o     = array_make4(c->dims.B, c->dims.H, c->dims.Lq, c->dims.Dv);
    posenc_workspace  work  = workspace_for(plan, POSENC_RUN_ATTEND);
    posenc_attend_out out   = {.size = sizeof out, .o = stored(&o, dtype, &ends[O])};
    const size_t      bytes = (size_t)(c->dims.B * c->dims.Lk);
    in.q                    = stored(&c->q, dtype, &ends[Q]);
    in.k                    = stored(&c->k, dtype, &ends[K]);
    in.v                    = stored(&c->v, dtype, &ends[V]);
    in.key_allowed.data     = memcpy(open_ending(&ends[ALLOWED], bytes), c->key_allowed, bytes);
    in.q_pos                = placed(c, KEYS - c->dims.Lq, c->dims.Lq, &ends[Q_POS]);
    in.k_pos                = placed(c, 0, KEYS, &ends[K_POS]);
    if (posenc_attend(plan, &in, &out, &work, &err))
        case_stop("attend", c, &err);
    for (int i = 0; i < ENDINGS; i++)
        munmap(ends[i].pages, ends[i].bytes);
    posenc_workspace_free(&work);
    array_free(&o);
}

static void inputs_are_read_to_their_ends_and_no_further(void **state)
{
    static const int64_t      lengths[] = {1, 5, MANY};
    static const posenc_dtype types[]   = {POSENC_DTYPE_F32, POSENC_DTYPE_BF16, POSENC_DTYPE_F16,
                                           POSENC_DTYPE_F64};
    (void)state;
    for (int e = 0; e < posenc_encoding_count(); e++)
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            const posenc_encoding_info *info = posenc_encoding_info_at(e);
            const posenc_dims           dims = {
                          .B = 1, .H = 2, .G = 1, .Lq = lengths[n], .Lk = KEYS, .D = 20, .Dv = 12, .L = KEYS};
            char         small[256], spec[300];
            posenc_plan *plan;
            posenc_error err;
            if (info->place == POSENC_PLACE_INPUT)
                continue;
            assert_int_equal(posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, small, sizeof small,
                                                NULL),
                             POSENC_OK);
            snprintf(spec, sizeof spec, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
            attention_case c = case_make(spec, dims, 3);
            c.options.mask   = POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING;
            if (posenc_plan_create(&plan, c.e, &c.dims, &c.options, &err))
                case_stop("plan", &c, &err);
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                run(&c, plan, types[t]);
            posenc_plan_free(plan);
            case_free(&c);
        }
}

/* The table of a cache in pages, and the mask of its keys, between memory that nobody may touch. One page is
   hidden in part. */
static void tables_of_pages_are_read_from_end_to_end(void **state)
{
    enum { PAGE = 16, POOL = 8, D = 64 };
    const int64_t     count = sysconf(_SC_PAGESIZE) / (int64_t)sizeof(int32_t), keys = count * PAGE;
    const posenc_dims dims    = {.B = 1, .H = 2, .G = 1, .Lq = 1, .Lk = keys, .D = D, .Dv = D};
    posenc_options    options = posenc_options_default();
    array    q = array_make4(1, 2, 1, D), k = array_make4(POOL, 1, PAGE, D), o = array_make4(1, 2, 1, D);
    ending   ends[2];
    int32_t *table   = open_ending(&ends[0], (size_t)count * sizeof *table);
    char    *allowed = open_ending(&ends[1], (size_t)keys);
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_error     err;
    (void)state;
    array_fill(&q, 5, "q", 1), array_fill(&k, 5, "k", 1);
    for (int64_t i = 0; i < count; i++)
        table[i] = (int32_t)(i % POOL);
    memset(allowed, 1, (size_t)keys);
    allowed[keys / 2] = 0;
    options.mask      = POSENC_MASK_KEY_PADDING;
    if (posenc_encoding_create(&e, "nope", NULL, &err) || posenc_plan_create(&plan, e, &dims, &options, &err))
        fail_msg("%s", err.message);
    posenc_workspace        work = workspace_for(plan, POSENC_RUN_DECODE);
    const posenc_attend_out out  = {.size = sizeof out, .o = array_tensor(&o, 0)};
    posenc_attend_in        in   = {.size  = sizeof in,
                                    .q     = array_tensor(&q, 0),
                                    .k     = array_tensor(&k, 0),
                                    .v     = array_tensor(&k, 0),
                                    .q_pos = posenc_positions_range((double)(keys - 1), 1),
                                    .k_pos = posenc_positions_range(0, 1)};
    in.k_pages     = posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, (int64_t[]){1, count});
    in.key_allowed = posenc_tensor_contiguous(allowed, POSENC_DTYPE_U8, 2, (int64_t[]){1, keys});
    if (posenc_attend(plan, &in, &out, &work, &err))
        fail_msg("%s", err.message);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    array_free(&q), array_free(&k), array_free(&o);
    for (int i = 0; i < 2; i++)
        munmap(ends[i].pages, ends[i].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_pages_are_read_from_end_to_end),
        cmocka_unit_test(inputs_are_read_to_their_ends_and_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

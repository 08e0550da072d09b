/* SPDX-License-Identifier: MIT */
/*
 * test_ends: a run reads its inputs to their ends and no further
 *
 * What lies behind an input may be another program's, or nothing: each of q, k, v, the masks and the outputs
 * ends where a page begins that nobody may touch. Lengths and widths are no multiples of what kernels take at
 * once; of one query, of few and of many, in each storage type, forward, with every attention encoding.
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

/* Memory that ends with its page. */
typedef struct ending {
    char  *pages;
    size_t bytes;
} ending;

static void *open_ending(ending *to, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (n + page - 1) / page * page;
    to->bytes = room + page;
    to->pages = mmap(NULL, to->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(to->pages != MAP_FAILED);
    assert_int_equal(mprotect(to->pages + room, page, PROT_NONE), 0);
    return to->pages + room - n;
}

enum { Q, K, V, O, ALLOWED, ENDINGS };

static posenc_tensor stored(const array *a, posenc_dtype dtype, ending *to)
{
    const int64_t row = a->shape[3], bytes = pe_tensor_bytes(dtype, 1);
    posenc_tensor t =
        posenc_tensor_contiguous(open_ending(to, (size_t)(a->count * bytes)), dtype, 4, a->shape);
    for (int64_t i = 0; i < a->count; i += row)
        pe_tensor_store_double((char *)t.data + i * bytes, dtype, 1, a->wide + i, row);
    return t;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_are_read_to_their_ends_and_no_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

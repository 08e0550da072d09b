/* SPDX-License-Identifier: MIT */
/*
 * test_allocation: runs allocate nothing, and preparing survives every failure of the allocator
 *
 * The linker turns the library's malloc, calloc, realloc, aligned_alloc and free into the functions below
 * (-Wl,--wrap), which count, and fail on demand. One thread: OpenMP's own team is no affair of ours. For
 * every encoding of the registry each run is counted; and each *_create is repeated with its first, second,
 * ... allocation failing until it succeeds: before that it must return POSENC_ERROR_MEMORY, leave NULL, and
 * hold no memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void  __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void  __wrap_free(void *memory);

static struct {
    int64_t asked, held; /* calls, and blocks not yet freed */
    int64_t failing;     /* this call fails; -1: none */
} heap = {0, 0, -1};

static int may_allocate(void)
{
    return heap.asked++ != heap.failing;
}

static void *counted(void *memory)
{
    heap.held += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? counted(__real_malloc(size)) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? counted(__real_calloc(count, size)) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
    if (!may_allocate())
        return NULL;
    heap.held -= old != NULL;
    return counted(__real_realloc(old, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return may_allocate() ? counted(__real_aligned_alloc(alignment, size)) : NULL;
}

void __wrap_free(void *memory)
{
    heap.held -= memory != NULL;
    __real_free(memory);
}

static const posenc_dims dims = {
    .B = 2, .H = 2, .G = 1, .Lq = 70, .Lk = 70, .D = 8, .Dv = 8, .d_model = 16, .L = 64};

static void write_spec(char *spec, size_t n, const posenc_encoding_info *info)
{
    char small[256];
    assert_int_equal(posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                     POSENC_OK);
    snprintf(spec, n, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
}

/* ---- preparing ---- */

static void creating_an_encoding_survives_every_failure(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        posenc_status status = POSENC_ERROR_MEMORY;
        char          spec[300];
        write_spec(spec, sizeof spec, posenc_encoding_info_at(i));
        for (int64_t failing = 0; status; failing++) {
            posenc_encoding *e      = (posenc_encoding *)(uintptr_t)&heap; /* must be overwritten */
            posenc_error     err    = {0};
            const int64_t    before = heap.held;
            heap.asked              = 0;
            heap.failing            = failing;
            status                  = posenc_encoding_create(&e, spec, NULL, &err);
            heap.failing            = -1;
            if (status) {
                assert_int_equal(status, POSENC_ERROR_MEMORY);
                assert_int_equal(err.status, POSENC_ERROR_MEMORY);
                assert_null(e);
            } else {
                assert_true(failing > 0); /* it did allocate */
                posenc_encoding_free(e);
            }
            assert_int_equal(heap.held, before);
        }
    }
}

static void creating_a_plan_survives_every_failure(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        posenc_status    status = POSENC_ERROR_MEMORY;
        posenc_encoding *e;
        char             spec[300];
        write_spec(spec, sizeof spec, posenc_encoding_info_at(i));
        assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
        for (int64_t failing = 0; status; failing++) {
            posenc_plan  *plan   = (posenc_plan *)(uintptr_t)&heap;
            posenc_error  err    = {0};
            const int64_t before = heap.held;
            heap.asked           = 0;
            heap.failing         = failing;
            status               = posenc_plan_create(&plan, e, &dims, NULL, &err);
            heap.failing         = -1;
            if (status) {
                assert_int_equal(status, POSENC_ERROR_MEMORY);
                assert_null(plan);
            } else {
                assert_true(failing > 0);
                posenc_plan_free(plan);
            }
            assert_int_equal(heap.held, before);
        }
        posenc_encoding_free(e);
    }
}

/* `form` with a name for each %s. */
static void binding_parameters_survives_every_failure(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        posenc_status  status = POSENC_ERROR_MEMORY;
        char           spec[300];
        posenc_plan   *plan;
        posenc_tensor  params[CASE_PARAMS];
        posenc_options options = posenc_options_default();
        write_spec(spec, sizeof spec, posenc_encoding_info_at(i));
        attention_case c = case_make(spec, dims, 7);
        options.mask     = POSENC_MASK_CAUSAL;
        assert_int_equal(posenc_plan_create(&plan, c.e, &dims, &options, NULL), POSENC_OK);
        for (int p = 0; p < c.param_count; p++)
            params[p] = array_tensor(&c.params[p], 0);
        for (int64_t failing = 0; status; failing++) {
            posenc_bound *bound  = (posenc_bound *)(uintptr_t)&heap;
            const int64_t before = heap.held;
            heap.asked           = 0;
            heap.failing         = failing;
            status               = posenc_plan_bind(&bound, plan, params, NULL);
            heap.failing         = -1;
            if (status) {
                assert_int_equal(status, POSENC_ERROR_MEMORY);
                assert_null(bound);
            } else {
                assert_true(failing > 0);
                posenc_bound_free(bound);
            }
            assert_int_equal(heap.held, before);
        }
        posenc_plan_free(plan);
        case_free(&c);
    }
}

static void write_bad(char *spec, size_t n, const char *form, const char *name)
{
    spec[0] = '\0';
    for (; *form; form += form[0] == '%' ? 2 : 1)
        snprintf(spec + strlen(spec), n - strlen(spec), "%.*s", *form == '%' ? 64 : 1,
                 *form == '%' ? name : form);
}

static void what_is_refused_holds_no_memory(void **state)
{
    static const char *const bad[]  = {"", "nonsense", "%s+%s", "%s[scale=x]", "%s[", "%s[scale=1]+"};
    const int64_t            before = heap.held;
    posenc_encoding         *e;
    posenc_plan             *plan;
    posenc_dims              none = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char spec[160];
        write_bad(spec, sizeof spec, bad[i], posenc_encoding_info_at(0)->name);
        assert_int_not_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
        assert_int_equal(heap.held, before);
    }
    assert_int_equal(posenc_encoding_create(&e, posenc_encoding_info_at(0)->name, NULL, NULL), POSENC_OK);
    assert_int_not_equal(posenc_plan_create(&plan, e, &none, NULL, NULL), POSENC_OK);
    posenc_encoding_free(e);
    posenc_encoding_free(NULL);
    posenc_plan_free(NULL);
    assert_int_equal(heap.held, before);
}

/* ---- runs ---- */

/* Counts allocations of one call. */
#define ASSERT_ALLOCATES_NOTHING(call)     \
    do {                                   \
        heap.asked = 0;                    \
        assert_int_equal(call, POSENC_OK); \
        assert_int_equal(heap.asked, 0);   \
    } while (0)

typedef struct setup {
    attention_case   c;
    attention_result r;
    posenc_plan     *plan;
    posenc_tensor    params[CASE_PARAMS], dparams[CASE_PARAMS];
    posenc_workspace work;
} setup;

static setup setup_make(const posenc_encoding_info *info, int wide)
{
    char spec[300];
    write_spec(spec, sizeof spec, info);
    setup s              = {.c = case_make(spec, dims, 1)};
    s.c.options.threads  = 1;
    s.c.options.executor = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
    s.c.options.mask     = POSENC_MASK_CAUSAL;
    s.r                  = case_run(&s.c, wide);
    assert_int_equal(posenc_plan_create(&s.plan, s.c.e, &dims, &s.c.options, NULL), POSENC_OK);
    s.work = workspace_for(s.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES);
    for (int i = 0; i < s.c.param_count; i++) {
        s.params[i]  = array_tensor(&s.c.params[i], wide);
        s.dparams[i] = array_tensor(&s.r.dparams[i], wide);
    }
    return s;
}

static void setup_free(setup *s)
{
    posenc_workspace_free(&s->work);
    posenc_plan_free(s->plan);
    result_free(&s->r);
    case_free(&s->c);
}

static void attention_runs_allocate_nothing(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < posenc_encoding_count(); i++) {
            setup         s = setup_make(posenc_encoding_info_at(i), wide);
            posenc_tensor dtokens[CASE_TOKENS];
            for (int t = 0; t < s.c.token_count; t++)
                dtokens[t] = array_tensor(&s.r.dtokens[t], wide);
            array scores               = array_make4(dims.B, dims.H, dims.Lq, dims.Lk),
                  bias                 = array_make(3, (int64_t[]){dims.H, 70, 70});
            posenc_tensor            S = array_tensor(&scores, wide), b = array_tensor(&bias, wide);
            const posenc_attend_in   in   = {.size   = sizeof in,
                                             .q      = array_tensor(&s.c.q, wide),
                                             .k      = array_tensor(&s.c.k, wide),
                                             .v      = array_tensor(&s.c.v, wide),
                                             .params = s.params,
                                             .tokens = s.c.views};
            const posenc_attend_out  out  = {.size = sizeof out,
                                             .o    = array_tensor(&s.r.o, wide),
                                             .lse  = array_tensor(&s.r.lse, wide)};
            const posenc_attend_grad grad = {.size    = sizeof grad,
                                             .o       = out.o,
                                             .lse     = out.lse,
                                             .dout    = array_tensor(&s.c.dout, wide),
                                             .dq      = array_tensor(&s.r.dq, wide),
                                             .dk      = array_tensor(&s.r.dk, wide),
                                             .dv      = array_tensor(&s.r.dv, wide),
                                             .dparams = s.dparams,
                                             .dtokens = dtokens};
            ASSERT_ALLOCATES_NOTHING(posenc_attend(s.plan, &in, &out, &s.work, NULL));
            ASSERT_ALLOCATES_NOTHING(posenc_attend_backward(s.plan, &in, &grad, &s.work, NULL));
            ASSERT_ALLOCATES_NOTHING(posenc_scores(s.plan, &in, &S, &s.work, NULL));
            if (s.c.token_count == 0) /* what is added follows from tokens */
                ASSERT_ALLOCATES_NOTHING(posenc_bias(s.plan, &in, &b, &s.work, NULL));
            array_free(&scores), array_free(&bias);
            setup_free(&s);
        }
}

static void rotations_allocate_nothing(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < posenc_encoding_count(); i++) {
            if (posenc_encoding_info_at(i)->place != POSENC_PLACE_ROTARY)
                continue;
            setup                  s = setup_make(posenc_encoding_info_at(i), wide);
            const posenc_tensor    q = array_tensor(&s.c.q, wide), k = array_tensor(&s.c.k, wide);
            const posenc_rotate_io io = {
                .size = sizeof io, .q = q, .k = k, .to_q = q, .to_k = k, .direction = 1};
            ASSERT_ALLOCATES_NOTHING(posenc_rotate(s.plan, &io, &s.work, NULL));
            setup_free(&s);
        }
}

/* The width of a table at the input is that of d_model with the settings of a small model. */
static void rows_allocate_nothing(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < posenc_encoding_count(); i++) {
            if (posenc_encoding_info_at(i)->place != POSENC_PLACE_INPUT)
                continue;
            setup                  s    = setup_make(posenc_encoding_info_at(i), wide);
            array                  x    = array_make(3, (int64_t[]){dims.B, dims.Lq, dims.d_model});
            posenc_tensor          y    = array_tensor(&x, wide);
            const posenc_rows_in   in   = {.size = sizeof in, .x = y, .params = s.params};
            const posenc_rows_grad grad = {.size = sizeof grad, .dy = y, .dx = y, .dparams = s.dparams};
            ASSERT_ALLOCATES_NOTHING(posenc_rows(s.plan, &in, &y, &s.work, NULL));
            ASSERT_ALLOCATES_NOTHING(posenc_rows_backward(s.plan, &in, &grad, &s.work, NULL));
            array_free(&x);
            setup_free(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_an_encoding_survives_every_failure),
        cmocka_unit_test(creating_a_plan_survives_every_failure),
        cmocka_unit_test(binding_parameters_survives_every_failure),
        cmocka_unit_test(what_is_refused_holds_no_memory),
        cmocka_unit_test(attention_runs_allocate_nothing),
        cmocka_unit_test(rotations_allocate_nothing),
        cmocka_unit_test(rows_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_given: structs of arguments of callers of other versions
 *
 * Each struct that begins with its size is given in every size that some version could have, its last byte
 * before a page that must not be touched: what is read behind it ends the test.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <posenc/rotary.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workspace.h"

enum { L = 3, H = 2, D = 8, WIDTH = H * D, N = H * L * D, MORE = 16, MOST = 4096 };

/* A call of each kind, whose structs are all good. */
typedef struct calls {
    posenc_encoding   *e;
    posenc_plan       *plan;
    float              q[N], k[N], v[N], o[N], dout[N], dq[N], dk[N], dv[N], lse[H * L], x[N], y[N];
    posenc_workspace   work;
    posenc_options     options;
    posenc_sizes       sizes;
    posenc_rows_in     rows_in;
    posenc_rows_grad   rows_grad;
    posenc_rotate_io   rotate_io;
    posenc_rotate_grad rotate_grad;
    posenc_attend_in   attend_in;
    posenc_attend_out  attend_out;
    posenc_attend_grad attend_grad;
    posenc_rotary_in   rotary_in;
    posenc_rerotate_io rerotate_io;
    posenc_allocator   allocator;
} calls;

static posenc_tensor heads(float *x)
{
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (const int64_t[]){1, H, L, D});
}

static posenc_tensor rows(float *x)
{
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 3, (const int64_t[]){1, L, WIDTH});
}

static const posenc_dims dims = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};

static int set_up(void **state)
{
    static calls        c;
    posenc_error        err;
    const posenc_tensor lse =
        posenc_tensor_contiguous(c.lse, POSENC_DTYPE_F32, 3, (const int64_t[]){1, H, L});
    c.options = posenc_options_default();
    c.sizes   = posenc_sizes_default();
    if (posenc_encoding_create(&c.e, "sinusoidal+rope", NULL, &err) ||
        posenc_plan_create(&c.plan, c.e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    posenc_workspace_create(&c.work, c.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES,
                            NULL, NULL);
    c.rows_in   = (posenc_rows_in){.size = sizeof c.rows_in, .x = rows(c.x)};
    c.rows_grad = (posenc_rows_grad){.size = sizeof c.rows_grad, .dy = rows(c.y), .dx = rows(c.x)};
    c.rotate_io =
        (posenc_rotate_io){.size = sizeof c.rotate_io, .q = heads(c.q), .to_q = heads(c.o), .direction = 1};
    c.rotate_grad =
        (posenc_rotate_grad){.size = sizeof c.rotate_grad, .dto_q = heads(c.dout), .dq = heads(c.dq)};
    c.attend_in =
        (posenc_attend_in){.size = sizeof c.attend_in, .q = heads(c.q), .k = heads(c.k), .v = heads(c.v)};
    c.attend_out  = (posenc_attend_out){.size = sizeof c.attend_out, .o = heads(c.o), .lse = lse};
    c.attend_grad = (posenc_attend_grad){.size = sizeof c.attend_grad,
                                         .o    = heads(c.o),
                                         .lse  = lse,
                                         .dout = heads(c.dout),
                                         .dq   = heads(c.dq),
                                         .dk   = heads(c.dk),
                                         .dv   = heads(c.dv)};
    c.rotary_in   = (posenc_rotary_in){.size = sizeof c.rotary_in};
    c.rerotate_io = (posenc_rerotate_io){.size = sizeof c.rerotate_io, .k = heads(c.k), .to_k = heads(c.o)};
    c.allocator   = (posenc_allocator){sizeof c.allocator, NULL, NULL, NULL};
    *state        = &c;
    return 0;
}

static int tear_down(void **state)
{
    calls *c = *state;
    posenc_workspace_free(&c->work);
    posenc_plan_free(c->plan);
    posenc_encoding_free(c->e);
    return 0;
}

/* The calls, each with one of its structs replaced. */
static posenc_status run_rows(calls *c, const void *in, posenc_error *err)
{
    posenc_tensor y = rows(c->y);
    return posenc_rows(c->plan, in, &y, &c->work, err);
}

static posenc_status run_rows_back(calls *c, const void *grad, posenc_error *err)
{
    return posenc_rows_backward(c->plan, &c->rows_in, grad, &c->work, err);
}

static posenc_status run_rows_back_in(calls *c, const void *in, posenc_error *err)
{
    return posenc_rows_backward(c->plan, in, &c->rows_grad, &c->work, err);
}

static posenc_status run_rotate(calls *c, const void *io, posenc_error *err)
{
    return posenc_rotate(c->plan, io, &c->work, err);
}

static posenc_status run_rotate_back(calls *c, const void *grad, posenc_error *err)
{
    return posenc_rotate_backward(c->plan, &c->rotate_io, grad, &c->work, err);
}

static posenc_status run_rotate_back_io(calls *c, const void *io, posenc_error *err)
{
    return posenc_rotate_backward(c->plan, io, &c->rotate_grad, &c->work, err);
}

static posenc_status run_attend_in(calls *c, const void *in, posenc_error *err)
{
    return posenc_attend(c->plan, in, &c->attend_out, &c->work, err);
}

static posenc_status run_attend_out(calls *c, const void *out, posenc_error *err)
{
    return posenc_attend(c->plan, &c->attend_in, out, &c->work, err);
}

static posenc_status run_attend_work(calls *c, const void *work, posenc_error *err)
{
    return posenc_attend(c->plan, &c->attend_in, &c->attend_out, work, err);
}

static posenc_status run_attend_back(calls *c, const void *grad, posenc_error *err)
{
    return posenc_attend_backward(c->plan, &c->attend_in, grad, &c->work, err);
}

static posenc_status run_attend_back_in(calls *c, const void *in, posenc_error *err)
{
    return posenc_attend_backward(c->plan, in, &c->attend_grad, &c->work, err);
}

static posenc_status run_scores(calls *c, const void *in, posenc_error *err)
{
    float         numbers[H * L * L];
    posenc_tensor S = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F32, 4, (const int64_t[]){1, H, L, L});
    return posenc_scores(c->plan, in, &S, &c->work, err);
}

static posenc_status run_bias(calls *c, const void *in, posenc_error *err)
{
    float         numbers[H * L * L];
    posenc_tensor bias = posenc_tensor_contiguous(numbers, POSENC_DTYPE_F32, 3, (const int64_t[]){H, L, L});
    return posenc_bias(c->plan, in, &bias, &c->work, err);
}

static posenc_status run_table(calls *c, const void *in, posenc_error *err)
{
    float         numbers[L * D];
    posenc_tensor table =
        posenc_tensor_contiguous(numbers, POSENC_DTYPE_F32, 3,
                                 (const int64_t[]){1, L, posenc_rotary_width(c->plan, POSENC_SIDE_QUERIES)});
    return posenc_rotary_table(c->plan, POSENC_SIDE_QUERIES, in, &table, &c->work, err);
}

static posenc_status run_angles(calls *c, const void *in, posenc_error *err)
{
    double              numbers[L * D];
    const posenc_tensor angle =
        posenc_tensor_contiguous(numbers, POSENC_DTYPE_F64, 3, (const int64_t[]){1, L, D / 2});
    return posenc_rotary_angles(c->plan, in, &angle, NULL, &c->work, err);
}

static posenc_status run_rerotate(calls *c, const void *io, posenc_error *err)
{
    posenc_workspace    two    = {sizeof two, aligned_alloc(64, 2 * c->work.bytes), 2 * c->work.bytes, 1};
    const posenc_status status = posenc_rotary_rerotate(c->plan, c->plan, io, &two, err);
    free(two.memory);
    return status;
}

static posenc_status run_plan(calls *c, const void *options, posenc_error *err)
{
    posenc_plan        *plan;
    const posenc_status status = posenc_plan_create(&plan, c->e, &dims, options, err);
    posenc_plan_free(plan);
    return status;
}

static posenc_status run_plan_in(calls *c, const void *allocator, posenc_error *err)
{
    posenc_options options = c->options;
    options.allocator      = allocator;
    return run_plan(c, &options, err);
}

static posenc_status run_encoding_in(calls *c, const void *allocator, posenc_error *err)
{
    posenc_encoding    *e;
    const posenc_status status = posenc_encoding_create_in(&e, "rope", NULL, allocator, err);
    (void)c;
    posenc_encoding_free(e);
    return status;
}

static posenc_status run_workspace(calls *c, const void *sizes, posenc_error *err)
{
    posenc_workspace    work;
    const posenc_status status = posenc_workspace_create(&work, c->plan, POSENC_RUN_ATTEND, sizes, err);
    assert_int_equal(posenc_plan_workspace(c->plan, POSENC_RUN_ATTEND, sizes), status ? 0 : work.bytes);
    posenc_workspace_free(&work);
    return status;
}

typedef struct subject {
    const char *name, *type; /* as sentences have them */
    size_t      place, bytes, least;
    posenc_status (*run)(calls *c, const void *given, posenc_error *err);
} subject;

#define GIVEN(name, member, last, run)                                                  \
    {                                                                                   \
        name, "posenc_" #member, offsetof(calls, member), sizeof(posenc_##member),      \
            offsetof(posenc_##member, last) + sizeof(((posenc_##member *)0)->last), run \
    }

static const subject subjects[] = {
    GIVEN("rows: in", rows_in, x, run_rows),
    GIVEN("rows: in", rows_in, x, run_rows_back_in),
    GIVEN("rows: grad", rows_grad, dy, run_rows_back),
    GIVEN("rotate: io", rotate_io, direction, run_rotate),
    GIVEN("rotate: io", rotate_io, direction, run_rotate_back_io),
    GIVEN("rotate: grad", rotate_grad, dto_k, run_rotate_back),
    GIVEN("attend: in", attend_in, q, run_attend_in),
    GIVEN("attend: in", attend_in, q, run_attend_back_in),
    GIVEN("attend: out", attend_out, o, run_attend_out),
    GIVEN("attend: grad", attend_grad, dout, run_attend_back),
    GIVEN("scores: in", attend_in, q, run_scores),
    GIVEN("bias: in", attend_in, q, run_bias),
    GIVEN("table: in", rotary_in, pos, run_table),
    GIVEN("angles: in", rotary_in, pos, run_angles),
    GIVEN("rerotate: io", rerotate_io, to_pos, run_rerotate),
    GIVEN("plan: options", options, mask, run_plan),
    GIVEN("plan: allocator", allocator, context, run_plan_in),
    GIVEN("encoding: allocator", allocator, context, run_encoding_in),
    GIVEN("workspace: sizes", sizes, Lk, run_workspace),
    {"attend: work", "posenc_workspace", offsetof(calls, work), sizeof(posenc_workspace),
     offsetof(posenc_workspace, bytes) + sizeof(size_t), run_attend_work},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* The first n bytes of the good struct, zeros behind them, up to a page that cannot be read. */
static void *before_the_end(const calls *c, const subject *s, size_t n)
{
    static unsigned char *pages;
    const size_t          page = (size_t)sysconf(_SC_PAGESIZE), room = 2 * MOST / page * page + page;
    if (!pages) {
        pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pages != MAP_FAILED);
        assert_int_equal(mprotect(pages + room, page, PROT_NONE), 0);
    }
    memset(pages, 0, room);
    return memcpy(pages + room - n, (const char *)c + s->place, n < s->bytes ? n : s->bytes);
}

/* The same with `size` n. */
static void *of_size(const calls *c, const subject *s, size_t n)
{
    size_t *given = before_the_end(c, s, n);
    *given        = n;
    return given;
}

static void refuses(calls *c, const subject *s, const void *given, const char *words)
{
    posenc_error        err;
    const posenc_status status = s->run(c, given, &err);
    if (status != POSENC_ERROR_ARGUMENT || err.status != status || !strstr(err.message, s->name) ||
        !strstr(err.message, words))
        fail_msg("%s: status %d, \"%s\"; expected \"%s\"", s->name, (int)status, err.message, words);
}

static void the_structs_of_this_version_are_read(void **state)
{
    calls *c = *state;
    for (int i = 0; i < SUBJECTS; i++) {
        posenc_error err;
        if (subjects[i].run(c, of_size(c, &subjects[i], subjects[i].bytes), &err))
            fail_msg("%s: %s", subjects[i].name, err.message);
    }
}

static void a_size_that_no_version_has_is_refused(void **state)
{
    calls *c = *state;
    for (int i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        char           words[96];
        for (size_t n = s->run == run_attend_work ? sizeof n : 0; n < s->least; n += sizeof n) {
            size_t *given = before_the_end(c, s, n ? n : sizeof n);
            *given        = n;
            snprintf(words, sizeof words, "size is %zu; set it to sizeof(%s)", n, s->type);
            refuses(c, s, given, words);
        }
        size_t *given = before_the_end(c, s, s->bytes);
        *given        = SIZE_MAX;
        refuses(c, s, given, "set it to sizeof");
    }
}

static void a_shorter_struct_is_read_with_zeros(void **state)
{
    calls *c = *state;
    for (int i = 0; i < SUBJECTS; i++) {
        const subject *s = &subjects[i];
        for (size_t n = (s->least + 7) / 8 * 8; n < s->bytes; n += 8) {
            posenc_error  got, expected;
            unsigned char whole[MOST] = {0};
            memcpy(whole, (const char *)c + s->place, n);
            memcpy(whole, &s->bytes, sizeof s->bytes);
            const posenc_status status = s->run(c, of_size(c, s, n), &got);
            if (status != s->run(c, whole, &expected) || strcmp(got.message, expected.message) != 0)
                fail_msg("%s of %zu bytes: \"%s\"; with zeros \"%s\"", s->name, n, got.message,
                         expected.message);
        }
    }
}

static void a_longer_struct_of_zeros_is_read(void **state)
{
    calls *c = *state;
    for (int i = 0; i < SUBJECTS; i++) {
        posenc_error err;
        if (subjects[i].run(c, of_size(c, &subjects[i], subjects[i].bytes + MORE), &err))
            fail_msg("%s: %s", subjects[i].name, err.message);
    }
}

static void a_longer_struct_that_says_more_is_refused(void **state)
{
    calls *c = *state;
    char   words[96];
    snprintf(words, sizeof words, "has 16 bytes more than this library (%s) knows, and they are not zero",
             posenc_version());
    for (int i = 0; i < SUBJECTS; i++)
        for (size_t n = 0; n < MORE; n++) {
            unsigned char *given         = of_size(c, &subjects[i], subjects[i].bytes + MORE);
            given[subjects[i].bytes + n] = 1;
            refuses(c, &subjects[i], given, words);
        }
}

/* Below a workspace's least size lies a zeroed one: it is empty. */
static void a_workspace_of_size_0_is_empty(void **state)
{
    calls       *c = *state;
    posenc_error err;
    assert_int_equal(run_attend_work(c, &(posenc_workspace){0}, &err), POSENC_ERROR_WORKSPACE);
    assert_string_equal(err.message,
                        "attend: the workspace is empty, its size 0; see posenc_workspace_create");
}

static void freeing_writes_no_member_that_an_older_workspace_lacks(void **state)
{
    calls           *c = *state;
    posenc_workspace work;
    assert_int_equal(posenc_workspace_create(&work, c->plan, POSENC_RUN_ROTATE, NULL, NULL), POSENC_OK);
    work.size    = offsetof(posenc_workspace, threads);
    work.threads = 77;
    posenc_workspace_free(&work);
    assert_null(work.memory);
    assert_int_equal(work.threads, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_structs_of_this_version_are_read),
        cmocka_unit_test(a_size_that_no_version_has_is_refused),
        cmocka_unit_test(a_shorter_struct_is_read_with_zeros),
        cmocka_unit_test(a_longer_struct_of_zeros_is_read),
        cmocka_unit_test(a_longer_struct_that_says_more_is_refused),
        cmocka_unit_test(a_workspace_of_size_0_is_empty),
        cmocka_unit_test(freeing_writes_no_member_that_an_older_workspace_lacks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

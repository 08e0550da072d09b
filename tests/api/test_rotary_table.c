/* SPDX-License-Identifier: MIT */
/*
 * test_rotary_table: rows made once turn as positions do
 *
 * posenc_rotary_table gives what posenc_rotate makes for itself; with such a table, positions and parameters
 * are not looked at. Every type of storage that is turned in float, both layouts, parts of heads, results
 * that lie elsewhere, heads apart as in [B,H,L,D] or together as in [B,L,H,D], few tokens (each angle for
 * itself) and many (angles added).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <posenc/rotary.h>
#include <stdlib.h>
#include <string.h>

#include "workspace.h"

enum { B = 2, H = 3, D = 64, MOST = 300, ALL = B * H * MOST * D };

typedef struct subject {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace work;
} subject;

static subject open_subject(const char *spec)
{
    subject           s;
    posenc_error      err  = {POSENC_OK, ""};
    const posenc_dims dims = {.B = B, .H = H, .Lq = MOST, .Lk = MOST, .D = D};
    if (posenc_encoding_create(&s.e, spec, NULL, &err) || posenc_plan_create(&s.plan, s.e, &dims, NULL, &err))
        fail_msg("%s", err.message);
    s.work = workspace_for(s.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    return s;
}

static void close_subject(subject *s)
{
    posenc_workspace_free(&s->work);
    posenc_plan_free(s->plan);
    posenc_encoding_free(s->e);
}

static _Alignas(64) char from[8 * ALL], plain[8 * ALL], by_table[8 * ALL];
static float rows[B * MOST * (D + 1)];

static void fill(posenc_dtype dtype)
{
    for (int64_t i = 0; i < ALL; i++) {
        const float x = (float)posenc_random_uniform(3, "x", (uint64_t)i) + 1;
        uint32_t    bits;
        memcpy(&bits, &x, sizeof bits);
        if (dtype == POSENC_DTYPE_F32)
            ((float *)from)[i] = x;
        else if (dtype == POSENC_DTYPE_F64)
            ((double *)from)[i] = (double)x;
        else /* any bits of a number from 1 to 2 */
            ((uint16_t *)from)[i] =
                (uint16_t)(dtype == POSENC_DTYPE_BF16 ? bits >> 16 : 0x3c00 | (bits & 0x3ff));
    }
}

static posenc_tensor tensor(void *data, posenc_dtype dtype, int64_t L, int together)
{
    const int64_t shape[4] = {B, H, L, D};
    return together ? posenc_tensor_from_blhd(data, dtype, B, L, H, D)
                    : posenc_tensor_contiguous(data, dtype, 4, shape);
}

static posenc_tensor table_of(const subject *s, const posenc_positions *pos, int64_t L, posenc_side side)
{
    posenc_error  err;
    posenc_tensor table =
        posenc_tensor_contiguous(rows, POSENC_DTYPE_F32, 3,
                                 (const int64_t[]){1, L, posenc_rotary_width(s->plan, side)});
    if (posenc_rotary_table(s->plan, side, &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = *pos},
                            &table, &s->work, &err))
        fail_msg("%s", err.message);
    return table;
}

static void rotate(const subject *s, posenc_rotate_io io)
{
    posenc_error err;
    if (posenc_rotate(s->plan, &io, &s->work, &err))
        fail_msg("%s", err.message);
}

static const char *const specs[] = {
    "rope",
    "rope[layout=half]",
    "rope[dim=32:offset_dim=16]",
    "rope[layout=half:layout_out=interleaved]",
    "rope[schedule=yarn:factor=4:original_length=64:layout=half]",
    "rope[temperature_rule=llama4:temperature_scale=0.1:temperature_length=16]"};

static void a_table_turns_as_its_positions_do(void **state)
{
    static const posenc_dtype types[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F16, POSENC_DTYPE_BF16};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        subject s = open_subject(specs[i]);
        for (int way = 0; way < 3 * 2 * 2 * 2; way++) {
            const posenc_dtype     dtype    = types[way % 3];
            const int              together = way / 3 % 2, direction = way / 6 % 2 ? 1 : -1;
            const int64_t          L     = way / 12 % 2 ? MOST : 9;
            const posenc_positions pos   = posenc_positions_range(1000, 1);
            const size_t           bytes = (size_t)(B * H * L * D) * posenc_dtype_size(dtype);
            const posenc_tensor    x     = tensor(from, dtype, L, together);
            const posenc_tensor    to    = tensor(plain, dtype, L, together);
            posenc_rotate_io       io    = {
                         .size = sizeof io, .q = x, .to_q = to, .q_pos = pos, .direction = direction};
            fill(dtype);
            rotate(&s, io);
            io.to_q        = tensor(by_table, dtype, L, together);
            io.q_table     = table_of(&s, &pos, L, POSENC_SIDE_QUERIES);
            io.q_pos.start = NAN; /* not looked at */
            rotate(&s, io);
            assert_memory_equal(plain, by_table, bytes);
            io.to_q = x; /* in place */
            rotate(&s, io);
            assert_memory_equal(plain, from, bytes);
        }
        close_subject(&s);
    }
}

static void keys_have_rows_of_their_own(void **state)
{
    subject s = open_subject("rope[temperature_rule=llama4:temperature_scale=0.1:temperature_length=16]");
    const posenc_positions pos = posenc_positions_range(0, 1);
    (void)state;
    assert_int_equal(posenc_rotary_width(s.plan, POSENC_SIDE_QUERIES), D + 1);
    assert_int_equal(posenc_rotary_width(s.plan, POSENC_SIDE_KEYS), D);
    fill(POSENC_DTYPE_F32);
    posenc_rotate_io io = {.size      = sizeof io,
                           .k         = tensor(from, POSENC_DTYPE_F32, 20, 1),
                           .to_k      = tensor(plain, POSENC_DTYPE_F32, 20, 1),
                           .k_pos     = pos,
                           .direction = 1};
    rotate(&s, io);
    io.to_k    = tensor(by_table, POSENC_DTYPE_F32, 20, 1);
    io.k_table = table_of(&s, &pos, 20, POSENC_SIDE_KEYS);
    rotate(&s, io);
    assert_memory_equal(plain, by_table, B * H * 20 * D * sizeof(float));
    close_subject(&s);
}

/* A length that the schedule follows is then that of the keys, even right after a run of far queries. */
static void positions_beside_a_table_are_read_alone(void **state)
{
    subject       s     = open_subject("rope[schedule=dynamic:factor=2:max_length=8]");
    const int64_t bytes = B * H * 20 * D * (int64_t)sizeof(float);
    (void)state;
    fill(POSENC_DTYPE_F32);
    posenc_rotate_io keys = {.size      = sizeof keys,
                             .k         = tensor(from, POSENC_DTYPE_F32, 20, 1),
                             .to_k      = tensor(plain, POSENC_DTYPE_F32, 20, 1),
                             .direction = 1};
    rotate(&s, keys);
    keys.to_k             = tensor(by_table, POSENC_DTYPE_F32, 20, 1);
    posenc_rotate_io both = keys;
    both.q_table          = table_of(&s, &both.k_pos, 20, POSENC_SIDE_QUERIES);
    both.q                = keys.k;
    both.to_q             = tensor(by_table + bytes, POSENC_DTYPE_F32, 20, 1);
    posenc_rotate_io far  = {.size = sizeof far, .q = both.q, .to_q = both.to_q, .direction = 1};
    far.q_pos             = posenc_positions_range(1000, 1);
    rotate(&s, far);
    rotate(&s, both);
    assert_memory_equal(plain, by_table, bytes);
    close_subject(&s);
}

/* A hundred rows together and each alone: what is stored is the same to a thousandth of a last place. */
static void rows_do_not_depend_on_how_many_there_are(void **state)
{
    subject      s = open_subject("rope[base=5e5]");
    static float one[D];
    posenc_error err;
    (void)state;
    for (int start = -150; start < 100000; start += 33333) {
        const posenc_positions pos = posenc_positions_range(start, 1);
        table_of(&s, &pos, MOST, POSENC_SIDE_QUERIES);
        for (int64_t r = 0; r < MOST; r++) {
            const posenc_positions here = posenc_positions_range((double)(start + r), 1);
            posenc_tensor          row =
                posenc_tensor_contiguous(one, POSENC_DTYPE_F32, 3, (const int64_t[]){1, 1, D});
            assert_int_equal(posenc_rotary_table(s.plan, POSENC_SIDE_QUERIES,
                                                 &(posenc_rotary_in){.size = sizeof(posenc_rotary_in),
                                                                     .pos  = here},
                                                 &row, &s.work, &err),
                             POSENC_OK);
            for (int d = 0; d < D; d++) /* both are within 0.501 ulp, so neighbours at most */
                assert_true(fabs((double)one[d] - (double)rows[r * D + d]) <= 0x1p-23 * fabs((double)one[d]));
        }
    }
    close_subject(&s);
}

static void assert_refused(const subject *s, posenc_rotate_io io, posenc_status status, const char *words)
{
    posenc_error err = {POSENC_OK, ""};
    assert_int_equal(posenc_rotate(s->plan, &io, &s->work, &err), status);
    if (!strstr(err.message, words))
        fail_msg("'%s' has no '%s'", err.message, words);
}

static void tables_that_do_not_fit_are_refused(void **state)
{
    subject                s   = open_subject("rope");
    const posenc_positions pos = posenc_positions_range(0, 1);
    posenc_rotate_io       io  = {.size      = sizeof io,
                                  .q         = tensor(from, POSENC_DTYPE_F32, 20, 1),
                                  .to_q      = tensor(plain, POSENC_DTYPE_F32, 20, 1),
                                  .direction = 1};
    posenc_error           err;
    (void)state;
    fill(POSENC_DTYPE_F32);
    io.q_table = table_of(&s, &pos, 19, POSENC_SIDE_QUERIES);
    assert_refused(&s, io, POSENC_ERROR_SHAPE, "rotate: q_table");
    io.q_table       = table_of(&s, &pos, 20, POSENC_SIDE_QUERIES);
    io.q_table.dtype = POSENC_DTYPE_F16;
    assert_refused(&s, io, POSENC_ERROR_DTYPE, "rotate: q_table");
    io.q_table.dtype     = POSENC_DTYPE_F32;
    io.q_table.stride[2] = 2;
    assert_refused(&s, io, POSENC_ERROR_DTYPE, "stride 1");
    io.q_table.stride[2] = 1;
    io.q = tensor(from, POSENC_DTYPE_F64, 20, 1), io.to_q = tensor(plain, POSENC_DTYPE_F64, 20, 1);
    assert_refused(&s, io, POSENC_ERROR_DTYPE, "leave the table out");
    posenc_tensor narrow =
        posenc_tensor_contiguous(rows, POSENC_DTYPE_F32, 3, (const int64_t[]){1, 20, D - 2});
    assert_int_equal(posenc_rotary_table(s.plan, POSENC_SIDE_QUERIES,
                                         &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = pos},
                                         &narrow, &s.work, &err),
                     POSENC_ERROR_SHAPE);
    assert_int_equal(posenc_rotary_table(s.plan, POSENC_SIDE_QUERIES, NULL, &narrow, &s.work, &err),
                     POSENC_ERROR_ARGUMENT);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_turns_as_its_positions_do),
        cmocka_unit_test(keys_have_rows_of_their_own),
        cmocka_unit_test(positions_beside_a_table_are_read_alone),
        cmocka_unit_test(rows_do_not_depend_on_how_many_there_are),
        cmocka_unit_test(tables_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

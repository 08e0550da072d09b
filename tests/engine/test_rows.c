/* SPDX-License-Identifier: MIT */
/*
 * test_rows: the pass over rows for every encoding at the input
 *
 * The machine's own business, whatever the room: y = x + rows, in any storage type and stride; a shared list
 * of positions gives the bits of the same list written out for every item; threads change nothing; the
 * backward hands the cotangent to x unchanged and sums over a batch that shares its positions. Positions with
 * several coordinates reach a room row by row, whether they come as an array or a room places the tokens of a
 * range; a room made for the test shows what it sees. Lengths exceed the machine's block of
 * 64 rows. In float64 nothing here has a tolerance but sums taken in another order: 1e-14.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "attention_case.h"
#include "engine/rows/rows.h"

enum { B = 3, L = 150, DIM = 10, COORDINATES = 4 };

typedef struct setup {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_tensor    params[CASE_PARAMS];
    array            numbers[CASE_PARAMS];
    posenc_workspace work;
    int              count;
} setup;

/* Encoding `info` for B items of L positions, small settings, random parameters. */
static setup make(const posenc_encoding_info *info, int threads)
{
    const posenc_dims d       = {.B = B, .Lq = L, .Lk = L, .d_model = DIM, .L = L};
    posenc_options    options = posenc_options_default();
    char              small[256];
    posenc_error      err;
    setup             s = {0};
    options.threads     = threads;
    assert_int_equal(posenc_small_model(info->name, &d, POSENC_MASK_CAUSAL, small, sizeof small, &err),
                     POSENC_OK);
    assert_int_equal(posenc_encoding_create(&s.e, info->name, small, &err), POSENC_OK);
    if (posenc_plan_create(&s.plan, s.e, &d, &options, &err))
        fail_msg("%s: %s", info->name, err.message);
    s.count = posenc_param_count(s.e);
    for (int i = 0; i < s.count; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        assert_int_equal(posenc_param_shape(s.e, &d, i, &ndim, shape, &err), POSENC_OK);
        s.numbers[i] = array_make(ndim, shape);
        array_fill(&s.numbers[i], 3, posenc_param_name(s.e, i), 1);
        s.params[i] = array_tensor(&s.numbers[i], 1);
    }
    s.work = workspace_for(s.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    return s;
}

static void free_setup(setup *s)
{
    for (int i = 0; i < s->count; i++)
        array_free(&s->numbers[i]);
    posenc_workspace_free(&s->work);
    posenc_plan_free(s->plan);
    posenc_encoding_free(s->e);
}

static void run(const setup *s, posenc_tensor x, posenc_positions pos, posenc_tensor y)
{
    posenc_error         err;
    const posenc_rows_in in = {.size = sizeof in, .x = x, .pos = pos, .params = s->params};
    if (posenc_rows(s->plan, &in, &y, &s->work, &err))
        fail_msg("%s", err.message);
}

/* The next encoding at the input, from *index on; NULL: no more. */
static const posenc_encoding_info *input_at(int *index)
{
    for (; *index < posenc_encoding_count(); (*index)++)
        if (posenc_encoding_info_at(*index)->place == POSENC_PLACE_INPUT)
            return posenc_encoding_info_at((*index)++);
    return NULL;
}

static const posenc_tensor none = {0};

static void x_is_added_to_the_rows_and_every_item_gets_the_same(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = input_at(&index)) != NULL;) {
        setup s = make(info, 1);
        array x = array_make(3, (int64_t[]){B, L, DIM}), y = array_make(3, x.shape),
              rows = array_make(3, x.shape);
        array_fill(&x, 1, "x", 1);
        run(&s, none, posenc_positions_range(0, 1), array_tensor(&rows, 1));
        run(&s, array_tensor(&x, 1), posenc_positions_range(0, 1), array_tensor(&y, 1));
        for (int64_t i = 0; i < x.count; i++) {
            assert_true(y.wide[i] == x.wide[i] + rows.wide[i]);
            assert_true(rows.wide[i] == rows.wide[i % (L * DIM)]);
        }
        assert_true(largest(&rows, NULL) > 0.5);
        array_free(&x), array_free(&y), array_free(&rows);
        free_setup(&s);
    }
}

static void in_place_and_any_stride_give_the_same_numbers(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = input_at(&index)) != NULL;) {
        setup s = make(info, 1);
        array x = array_make(3, (int64_t[]){B, L, DIM}), y = array_make(3, x.shape);
        array_fill(&x, 1, "x", 1);
        run(&s, array_tensor(&x, 1), posenc_positions_range(0, 1), array_tensor(&y, 1));
        double       *turned = malloc((size_t)x.count * sizeof *turned); /* [L, DIM, B] in memory */
        posenc_tensor t      = array_tensor(&x, 1);
        t.data               = turned;
        t.stride[0]          = 1;
        t.stride[1]          = DIM * B;
        t.stride[2]          = B;
        for (int64_t b = 0; b < B; b++)
            for (int64_t i = 0; i < L * DIM; i++)
                turned[i * B + b] = x.wide[b * L * DIM + i];
        run(&s, t, posenc_positions_range(0, 1), t);
        for (int64_t b = 0; b < B; b++)
            for (int64_t i = 0; i < L * DIM; i++)
                assert_true(turned[i * B + b] == y.wide[b * L * DIM + i]);
        free(turned);
        array_free(&x), array_free(&y);
        free_setup(&s);
    }
}

static void a_shared_list_of_positions_is_the_same_list_for_every_item(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = input_at(&index)) != NULL;) {
        setup   s   = make(info, 1);
        array   one = array_make(3, (int64_t[]){B, L, DIM}), all = array_make(3, one.shape);
        int     N = posenc_rows_coordinates(s.e);
        int64_t ids[B * L * COORDINATES];
        assert_in_range(N, 1, COORDINATES);
        for (int i = 0; i < B * L * N; i++)
            ids[i] = i % (L * N) * 7 % L;
        run(&s, none,
            posenc_positions_array(
                posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, N > 1 ? 2 : 1, (int64_t[]){L, N})),
            array_tensor(&one, 1));
        run(&s, none,
            posenc_positions_array(
                posenc_tensor_contiguous(ids, POSENC_DTYPE_I64, N > 1 ? 3 : 2, (int64_t[]){B, L, N})),
            array_tensor(&all, 1));
        assert_memory_equal(one.wide, all.wide, (size_t)one.count * sizeof(double));
        array_free(&one), array_free(&all);
        free_setup(&s);
    }
}

static void threads_change_no_bit_and_float_is_double_rounded_once(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = input_at(&index)) != NULL;) {
        setup one = make(info, 1), four = make(info, 4);
        array a = array_make(3, (int64_t[]){B, L, DIM}), b = array_make(3, a.shape);
        run(&one, none, posenc_positions_range(0, 1), array_tensor(&a, 1));
        run(&four, none, posenc_positions_range(0, 1), array_tensor(&b, 1));
        assert_memory_equal(a.wide, b.wide, (size_t)a.count * sizeof(double));
        run(&four, none, posenc_positions_range(0, 1), array_tensor(&b, 0));
        for (int64_t i = 0; i < a.count; i++)
            assert_true(b.narrow[i] == (float)a.wide[i]);
        array_free(&a), array_free(&b);
        free_setup(&one), free_setup(&four);
    }
}

/* With y linear in each parameter (a table), dparams of a batch is the sum of the items'. */
/* Waves of a range in float come from a ladder where its positions allow that, 1024 at a time. fairseq's
   first token is position 2. */
static void rows_of_a_range_are_those_of_its_positions_one_by_one(void **state)
{
    enum { ROWS = 1100 };
    static const char *const presets[] = {"vaswani", "t2t", "fairseq", "marian", "tutorial003"};
    static const double  starts[]  = {0, 1, 5, 0.5, -5, -1099, 0x1p31 - ROWS, 0x1p31 - ROWS / 2, 0x1p31, 3e9};
    static const int64_t lengths[] = {7, 8, 31, 32, 33, 200, ROWS};
    const posenc_dims    d         = {.B = 1, .Lq = ROWS, .Lk = ROWS, .d_model = DIM, .L = ROWS};
    posenc_options       options   = posenc_options_default();
    double               list[ROWS];
    char                 spec[64];
    posenc_error         err;
    (void)state;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        setup s = {0};
        snprintf(spec, sizeof spec, "sinusoidal[preset=%s]", presets[i]);
        assert_int_equal(posenc_encoding_create(&s.e, spec, NULL, &err), POSENC_OK);
        assert_int_equal(posenc_plan_create(&s.plan, s.e, &d, &options, &err), POSENC_OK);
        s.work = workspace_for(s.plan, POSENC_RUN_FORWARD);
        for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
            for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
                const int64_t shape[] = {1, lengths[n], DIM};
                array         got = array_make(3, shape), want = array_make(3, shape);
                for (int64_t r = 0; r < lengths[n]; r++)
                    list[r] = starts[k] + (double)r + (strcmp(presets[i], "fairseq") ? 0 : 2);
                run(&s, none, posenc_positions_range(starts[k], 1), array_tensor(&got, 0));
                run(&s, none,
                    posenc_positions_array(posenc_tensor_contiguous(list, POSENC_DTYPE_F64, 1, shape + 1)),
                    array_tensor(&want, 1));
                for (int64_t x = 0; x < want.count; x++)
                    if (!(fabs((double)got.narrow[x] - want.wide[x]) <= 2e-7))
                        fail_msg("%s from %.17g: row %d of %d, channel %d is %.9g, not %.9g", spec, starts[k],
                                 (int)(x / DIM), (int)lengths[n], (int)(x % DIM), (double)got.narrow[x],
                                 want.wide[x]);
                array_free(&got), array_free(&want);
            }
        free_setup(&s);
    }
}

static void gradients_of_a_batch_are_the_sum_over_its_items(void **state)
{
    const posenc_encoding_info *info;
    (void)state;
    for (int index = 0; (info = input_at(&index)) != NULL;) {
        setup         s  = make(info, 1);
        array         dy = array_make(3, (int64_t[]){B, L, DIM}), dx = array_make(3, dy.shape);
        array         whole[CASE_PARAMS], items[CASE_PARAMS];
        posenc_tensor to_whole[CASE_PARAMS], to_items[CASE_PARAMS];
        posenc_error  err;
        array_fill(&dy, 1, "dy", 1);
        array_fill(&dx, 1, "rubbish", 1); /* overwritten */
        for (int i = 0; i < s.count; i++) {
            whole[i]    = array_make(s.numbers[i].ndim, s.numbers[i].shape);
            items[i]    = array_make(s.numbers[i].ndim, s.numbers[i].shape);
            to_whole[i] = array_tensor(&whole[i], 1);
            to_items[i] = array_tensor(&items[i], 1);
        }
        const posenc_rows_in in   = {.size = sizeof in, .params = s.params};
        posenc_rows_grad     grad = {.size = sizeof grad, .dy = array_tensor(&dy, 1), .dparams = to_whole};
        grad.dx                   = array_tensor(&dx, 1);
        assert_int_equal(posenc_rows_backward(s.plan, &in, &grad, &s.work, &err), POSENC_OK);
        assert_memory_equal(dx.wide, dy.wide, (size_t)dy.count * sizeof(double));
        for (int b = 0; b < B; b++) { /* each adds */
            grad = (posenc_rows_grad){.size = sizeof(posenc_rows_grad), .dparams = to_items};
            grad.dy =
                posenc_tensor_contiguous(dy.wide + b * L * DIM, POSENC_DTYPE_F64, 3, (int64_t[]){1, L, DIM});
            assert_int_equal(posenc_rows_backward(s.plan, &in, &grad, &s.work, &err), POSENC_OK);
        }
        for (int i = 0; i < s.count; i++) {
            assert_true(largest(&whole[i], NULL) > 0);
            assert_true(largest(&whole[i], &items[i]) <= 1e-14 * largest(&whole[i], NULL));
            array_free(&whole[i]), array_free(&items[i]);
        }
        array_free(&dy), array_free(&dx);
        free_setup(&s);
    }
}

/* ---- several coordinates, seen by a room made for this ---- */

enum { N = 2, WIDE = 3 };

/* row = (a, b, 0), and the cotangent of b goes to parameter 0. */
static void show_places(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                        double out[])
{
    (void)p, (void)par;
    for (int64_t s = 0; s < n; s++)
        memcpy(out + s * WIDE, (double[]){pos[s * N], pos[s * N + 1], 0}, WIDE * sizeof *out);
}

static void fold_places(const pe_problem *p, const double *const par[], const double pos[], int64_t n,
                        const double dout[], double *const dpar[])
{
    (void)p, (void)par;
    for (int64_t s = 0; s < n; s++)
        dpar[0][0] += pos[s * N + 1] * dout[s * WIDE + 1];
}

/* Token s stands in line s/7 at column s%7. */
static void place_in_lines(const pe_problem *p, int64_t s, double at[])
{
    (void)p;
    at[0] = (double)(s / 7);
    at[1] = (double)(s % 7);
}

static pe_rows_run places_run(posenc_positions pos, array *y, int threads)
{
    pe_rows_run r = {.width = WIDE,
                     .N     = N,
                     .rows  = show_places,
                     .B     = B,
                     .L     = L,
                     .pos   = pos,
                     .y     = array_tensor(y, 1),
                     .team  = {.threads = threads}};
    return r;
}

typedef void rows_pass(const pe_rows_run *r, pe_arena *arena);

static void run_places(const pe_rows_run *r, rows_pass *lay_out, rows_pass *compute)
{
    pe_arena arena = {0};
    lay_out(r, &arena);
    arena.memory = aligned_alloc(PE_ALIGN, arena.used);
    arena.used   = 0;
    compute(r, &arena);
    free(arena.memory);
}

static void several_coordinates_reach_the_room_row_by_row(void **state)
{
    array y = array_make(3, (int64_t[]){B, L, WIDE}), at = array_make(3, (int64_t[]){B, L, N});
    (void)state;
    array_fill(&at, 1, "places", 1);
    pe_rows_run r = places_run(posenc_positions_array(array_tensor(&at, 1)), &y, 3);
    run_places(&r, pe_rows_forward_lay_out, pe_rows_forward_run);
    for (int64_t s = 0; s < B * L; s++)
        assert_true(y.wide[s * WIDE] == at.wide[s * N] && y.wide[s * WIDE + 1] == at.wide[s * N + 1]);
    r        = places_run(posenc_positions_range(5, 2), &y, 3);
    r.locate = place_in_lines;
    run_places(&r, pe_rows_forward_lay_out, pe_rows_forward_run);
    for (int64_t s = 0; s < B * L; s++)
        assert_true(y.wide[s * WIDE] == (double)((5 + s % L * 2) / 7) &&
                    y.wide[s * WIDE + 1] == (double)((5 + s % L * 2) % 7));
    array_free(&y), array_free(&at);
}

static void several_coordinates_reach_the_backward_too(void **state)
{
    array            dy = array_make(3, (int64_t[]){B, L, WIDE}), at = array_make(3, (int64_t[]){B, L, N});
    double           sum = 0, want = 0;
    double *const    dpar[1] = {&sum};
    const pe_problem p       = {0};
    (void)state;
    array_fill(&dy, 1, "dy", 1);
    array_fill(&at, 1, "places", 1);
    pe_rows_run r = places_run(posenc_positions_array(array_tensor(&at, 1)), &dy, 1);
    r.x           = r.y;
    r.y           = (posenc_tensor){0};
    r.rows_back   = fold_places;
    r.part        = (pe_part){.p = &p, .dpar = dpar};
    run_places(&r, pe_rows_backward_lay_out, pe_rows_backward_run);
    for (int64_t s = 0; s < B * L; s++)
        want += at.wide[s * N + 1] * dy.wide[s * WIDE + 1];
    assert_true(fabs(sum - want) <= 1e-12 * fabs(want));
    array_free(&dy), array_free(&at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(x_is_added_to_the_rows_and_every_item_gets_the_same),
        cmocka_unit_test(in_place_and_any_stride_give_the_same_numbers),
        cmocka_unit_test(a_shared_list_of_positions_is_the_same_list_for_every_item),
        cmocka_unit_test(threads_change_no_bit_and_float_is_double_rounded_once),
        cmocka_unit_test(rows_of_a_range_are_those_of_its_positions_one_by_one),
        cmocka_unit_test(gradients_of_a_batch_are_the_sum_over_its_items),
        cmocka_unit_test(several_coordinates_reach_the_room_row_by_row),
        cmocka_unit_test(several_coordinates_reach_the_backward_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

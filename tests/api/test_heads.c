/* SPDX-License-Identifier: MIT */
/*
 * test_heads: rotations whose heads turn at their own frequencies (per_head, timm's mixed form)
 *
 * Held against the same thing done head by head: an encoding of one head with that head's matrix, on that
 * head's rows. Rows are turned by the same code, so rotations agree to the bit, in double and in float,
 * forward and back, and keys that move in a cache too; attention on the reference executor agrees but for the
 * order of its sums, some LK roundings of 2^-53. What holds of all rotations - transposes, slopes, executors,
 * threads - test_rotation.c asks of per_head as well.
 */
#include <posenc/rotary.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

#define ALL_ALIKE "rope[layout=half:axes=2:axis_rule=matrix]"
#define ITS_OWN   "rope[layout=half:axes=2:axis_rule=matrix:per_head=yes]"

enum { B = 2, H = 3, LQ = 9, LK = 14, D = 16, M = D / 2, N = 2 };

static const posenc_dims many = {.B = B, .H = H, .G = H, .Lq = LQ, .Lk = LK, .D = D, .Dv = D, .L = LK},
                         one  = {.B = B, .H = 1, .G = 1, .Lq = LQ, .Lk = LK, .D = D, .Dv = D, .L = LK};

/* Places on a grid, different in each item. */
static array places(int64_t L, int64_t from)
{
    array at = array_make(3, (int64_t[]){B, L, N});
    for (int64_t i = 0; i < B * L; i++) {
        at.wide[2 * i]     = (double)((i + from) / 4 - 1);
        at.wide[2 * i + 1] = (double)((3 * i + from) % 5);
    }
    return at;
}

static attention_case make(const char *spec, posenc_dims dims, const array *q_at, const array *k_at)
{
    attention_case c = case_make(spec, dims, 9);
    c.q_pos          = posenc_positions_array(array_tensor(q_at, 1));
    c.k_pos          = posenc_positions_array(array_tensor(k_at, 1));
    return c;
}

/* Head h of [B,heads,L,width] to or from a tensor of one head. */
static void move_head(array *of_one, array *of_many, int64_t h, int to_one)
{
    const int64_t heads = of_many->shape[1], rows = of_one->count / B;
    for (int64_t b = 0; b < B; b++) {
        double *const a = of_one->wide + b * rows, *const all = of_many->wide + (b * heads + h) * rows;
        float *const f = of_one->narrow + b * rows, *const fall = of_many->narrow + (b * heads + h) * rows;
        memcpy(to_one ? a : all, to_one ? all : a, (size_t)rows * sizeof *a);
        memcpy(to_one ? f : fall, to_one ? fall : f, (size_t)rows * sizeof *f);
    }
}

/* The problem of head h alone. */
static attention_case head_of(attention_case *c, int64_t h, const array *q_at, const array *k_at)
{
    attention_case x = make(ALL_ALIKE, one, q_at, k_at);
    move_head(&x.q, &c->q, h, 1), move_head(&x.k, &c->k, h, 1);
    move_head(&x.v, &c->v, h, 1), move_head(&x.dout, &c->dout, h, 1);
    memcpy(x.params[0].wide, c->params[0].wide + h * M * N, M * N * sizeof(double));
    memcpy(x.params[0].narrow, c->params[0].narrow + h * M * N, M * N * sizeof(float));
    return x;
}

/* ---- rotation ---- */

/* q and k in place, then turned on by 5 in a cache: keys alone. */
static void turn(attention_case *c, int wide, int direction, int threads)
{
    posenc_plan   *plan;
    posenc_error   err;
    posenc_options options = posenc_options_default();
    posenc_tensor  params[CASE_PARAMS];
    options.threads = threads;
    if (posenc_plan_create(&plan, c->e, &c->dims, &options, &err))
        case_stop("plan", c, &err);
    assert_int_equal(posenc_rotary_heads(plan), c->dims.H); /* of one head: 1 either way */
    const size_t           bytes = 2 * posenc_plan_workspace(plan, POSENC_RUN_ROTATE, NULL);
    posenc_workspace       work  = posenc_workspace_over(aligned_alloc(64, bytes), bytes);
    const posenc_attend_in in    = case_in(c, wide, params);
    posenc_rotate_io       io    = {sizeof io, in.q, in.k, in.q_pos, in.k_pos, .to_q = in.q, .to_k = in.k};
    io.direction                 = direction;
    io.params                    = params;
    if (posenc_rotate(plan, &io, &work, &err))
        case_stop("rotate", c, &err);
    const posenc_rerotate_io moved = {.size        = sizeof moved,
                                      .k           = in.k,
                                      .to_k        = in.k,
                                      .from_pos    = in.k_pos,
                                      .to_pos      = posenc_positions_range(5, 1),
                                      .from_params = params,
                                      .to_params   = params};
    if (posenc_rotary_rerotate(plan, plan, &moved, &work, &err))
        case_stop("rerotate", c, &err);
    free(work.memory);
    posenc_plan_free(plan);
}

static void assert_head(array *of_one, array *of_many, int64_t h, int wide, const char *what)
{
    array got = array_make(of_one->ndim, of_one->shape);
    move_head(&got, of_many, h, 1);
    if (wide ? memcmp(got.wide, of_one->wide, (size_t)got.count * sizeof(double))
             : memcmp(got.narrow, of_one->narrow, (size_t)got.count * sizeof(float)))
        fail_msg("%s of head %d differ", what, (int)h);
    array_free(&got);
}

static void a_head_is_turned_as_if_it_were_alone(void **state)
{
    array q_at = places(LQ, 3), k_at = places(LK, 0);
    (void)state;
    for (int wide = 0; wide < 2; wide++)
        for (int direction = -1; direction <= 1; direction += 2) {
            attention_case c = make(ITS_OWN, many, &q_at, &k_at), start = make(ITS_OWN, many, &q_at, &k_at);
            turn(&c, wide, direction, 3);
            for (int64_t h = 0; h < H; h++) {
                attention_case x = head_of(&start, h, &q_at, &k_at);
                turn(&x, wide, direction, 1);
                assert_head(&x.q, &c.q, h, wide, "queries");
                assert_head(&x.k, &c.k, h, wide, "keys");
                case_free(&x);
            }
            case_free(&c), case_free(&start);
        }
    array_free(&q_at), array_free(&k_at);
}

/* [B or 1, L, H*M]: head by head. */
static void angles_come_head_by_head(void **state)
{
    array          q_at = places(LQ, 3), k_at = places(LK, 0), all = array_make(3, (int64_t[]){B, LQ, H * M});
    attention_case c = make(ITS_OWN, many, &q_at, &k_at);
    posenc_tensor  params[CASE_PARAMS], angle = array_tensor(&all, 1);
    posenc_plan   *plan;
    posenc_error   err;
    (void)state;
    if (posenc_plan_create(&plan, c.e, &c.dims, NULL, &err))
        case_stop("plan", &c, &err);
    posenc_workspace       work = workspace_for(plan, POSENC_RUN_FORWARD);
    const posenc_attend_in in   = case_in(&c, 1, params);
    if (posenc_rotary_angles(
            plan, &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = in.q_pos, .params = params},
            &angle, NULL, &work, &err))
        case_stop("angles", &c, &err);
    for (int64_t s = 0; s < B * LQ; s++)
        for (int64_t i = 0; i < H * M; i++) {
            const double *w = c.params[0].wide + i * N, *p = q_at.wide + s * N;
            assert_true(all.wide[s * H * M + i] == p[0] * w[0] + p[1] * w[1]);
        }
    angle.shape[2] = M;
    assert_int_equal(posenc_rotary_angles(plan,
                                          &(posenc_rotary_in){.size   = sizeof(posenc_rotary_in),
                                                              .pos    = in.q_pos,
                                                              .params = params},
                                          &angle, NULL, &work, &err),
                     POSENC_ERROR_SHAPE);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    case_free(&c);
    array_free(&q_at), array_free(&k_at), array_free(&all);
}

/* ---- attention ---- */

static void assert_close_head(array *of_one, array *of_many, int64_t h, const char *what)
{
    array got = array_make(of_one->ndim, of_one->shape);
    move_head(&got, of_many, h, 1);
    if (!(largest(&got, of_one) <= 1e-13 * largest(of_one, NULL)))
        fail_msg("%s of head %d: %.3g off", what, (int)h, largest(&got, of_one));
    array_free(&got);
}

static void a_head_attends_as_if_it_were_alone(void **state)
{
    array            q_at = places(LQ, 3), k_at = places(LK, 0);
    attention_case   c      = make(ITS_OWN, many, &q_at, &k_at);
    attention_result all    = case_run(&c, 1);
    const double     slopes = largest(&all.dparams[0], NULL);
    (void)state;
    assert_true(slopes > 0.1);
    for (int64_t h = 0; h < H; h++) {
        attention_case   x = head_of(&c, h, &q_at, &k_at);
        attention_result r = case_run(&x, 1);
        assert_close_head(&r.o, &all.o, h, "o");
        assert_close_head(&r.dq, &all.dq, h, "dq");
        assert_close_head(&r.dk, &all.dk, h, "dk");
        assert_close_head(&r.dv, &all.dv, h, "dv");
        for (int i = 0; i < M * N; i++)
            assert_true(fabs(r.dparams[0].wide[i] - all.dparams[0].wide[h * M * N + i]) <= 1e-12 * slopes);
        result_free(&r);
        case_free(&x);
    }
    result_free(&all);
    case_free(&c);
    array_free(&q_at), array_free(&k_at);
}

/* One matrix for all is the same matrix in each head, whose gradients then add up. */
static void one_matrix_for_all_is_the_same_in_each_head(void **state)
{
    array q_at = places(LQ, 3), k_at = places(LK, 0);
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        attention_case own = make(ITS_OWN, many, &q_at, &k_at), shared = make(ALL_ALIKE, many, &q_at, &k_at);
        for (int64_t i = 0; i < H * M * N; i++)
            array_set(&own.params[0], i, shared.params[0].wide[i % (M * N)]);
        attention_result a = case_run(&own, wide), b = case_run(&shared, wide);
        const array     *same[][2] = {{&a.o, &b.o}, {&a.dq, &b.dq}, {&a.dk, &b.dk}, {&a.dv, &b.dv}};
        for (int i = 0; i < 4; i++)
            assert_memory_equal(wide ? (void *)same[i][0]->wide : (void *)same[i][0]->narrow,
                                wide ? (void *)same[i][1]->wide : (void *)same[i][1]->narrow,
                                (size_t)same[i][0]->count * (wide ? sizeof(double) : sizeof(float)));
        for (int i = 0; wide && i < M * N; i++) {
            double sum = 0;
            for (int h = 0; h < H; h++)
                sum += a.dparams[0].wide[h * M * N + i];
            assert_true(fabs(sum - b.dparams[0].wide[i]) <= 1e-12 * largest(&b.dparams[0], NULL));
        }
        result_free(&a), result_free(&b);
        case_free(&own), case_free(&shared);
    }
    array_free(&q_at), array_free(&k_at);
}

/* ---- start, and what is refused ---- */

/* As timm: lengths base^(-4m/dim), each head turned by an angle of its own, the second half of the pairs at
   right angles. */
static void heads_start_turned_by_angles_of_their_own(void **state)
{
    posenc_encoding *e;
    posenc_error     err;
    array            w     = array_make(3, (int64_t[]){H, M, N});
    posenc_tensor    param = array_tensor(&w, 1);
    int32_t          ndim;
    int64_t          shape[POSENC_MAX_DIMS];
    (void)state;
    assert_int_equal(posenc_encoding_create(&e, "rope[base=10:axes=2:axis_rule=matrix:per_head=yes]", NULL,
                                            &err),
                     POSENC_OK);
    assert_int_equal(posenc_param_shape(e, &many, 0, &ndim, shape, &err), POSENC_OK);
    assert_true(ndim == 3 && shape[0] == H && shape[1] == M && shape[2] == N);
    assert_int_equal(posenc_param_init(e, &many, &param, 7, &err), POSENC_OK);
    for (int h = 0; h < H; h++) {
        const double *x = w.wide + h * M * N;
        for (int m = 0; m < M; m++) {
            const double *a = x + m * N, length = pow(10, -4.0 * (m % (M / 2)) / D);
            assert_true(fabs(hypot(a[0], a[1]) - length) <= 1e-15);
            if (m < M / 2)
                assert_true(fabs(a[0] * a[M] + a[1] * a[M + 1]) <= 1e-15 * length * length);
            assert_true(fabs(atan2(a[1], a[0]) - atan2(x[(m / (M / 2)) * M + 1], x[(m / (M / 2)) * M])) <=
                        1e-15);
        }
        if (h > 0)
            assert_true(fabs(atan2(x[1], x[0]) - atan2(w.wide[1], w.wide[0])) > 1e-3);
    }
    posenc_encoding_free(e);
    array_free(&w);
}

static void what_has_no_meaning_by_head_is_refused(void **state)
{
    static const struct {
        const char *spec;
        int64_t     G;
        const char *words;
    } all[] = {{"rope[per_head=yes]", H, "per_head=yes needs axis_rule=matrix"},
               {ITS_OWN, 1, "needs as many key heads as heads, 3, not 1"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        posenc_encoding *e;
        posenc_plan     *plan;
        posenc_error     err;
        posenc_dims      dims = many;
        dims.G                = all[i].G;
        assert_int_equal(posenc_encoding_create(&e, all[i].spec, NULL, &err), POSENC_OK);
        assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_ERROR_SETTING);
        assert_non_null(strstr(err.message, all[i].words));
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_turned_as_if_it_were_alone),
        cmocka_unit_test(angles_come_head_by_head),
        cmocka_unit_test(a_head_attends_as_if_it_were_alone),
        cmocka_unit_test(one_matrix_for_all_is_the_same_in_each_head),
        cmocka_unit_test(heads_start_turned_by_angles_of_their_own),
        cmocka_unit_test(what_has_no_meaning_by_head_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

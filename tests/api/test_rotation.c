/* SPDX-License-Identifier: MIT */
/*
 * test_rotation: what holds of every rotation, whatever builds it
 *
 * The list of specifications has each layout, axis rule, schedule and rounding once. For all of them: turning
 * back is the transpose of turning; order in memory, in place or not, q and k together or alone, and the
 * number of threads change no bit; 16-bit tensors are the float result rounded once; keys turned from one
 * plan to another are those that the other would have turned; gradients of frequencies are slopes.
 * Tolerances: in double some ten roundings of a pair, 1e-14 of its length, and what the last bit of an angle
 * is where two angles are compared; in float the kernel's 2^-22 and a table's 2^-24.5.
 */
#include <posenc/rotary.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"
#include "base/half.h"

static const char *const specs[] = {
    "rope",
    "rope[layout=half:base=5e5]",
    "rope[dim=8:offset_dim=16]",
    "rope[layout=half:dim=12:offset_dim=6]",
    "rope[layout_out=half]",
    "rope[layout=half:layout_out=interleaved:dim=20:offset_dim=4]",
    "rope[direction=inverse:layout_out=half:dim=12]",
    "rope[schedule=linear:factor=4]",
    "rope[schedule=ntk:alpha=8]",
    "rope[schedule=ntk_mixed:factor=4:mixed_b=0.6]",
    "rope[schedule=dynamic:factor=2:max_length=32]",
    "rope[layout=half:schedule=yarn:factor=8:original_length=256]",
    "rope[schedule=longrope:factor=4:original_length=64]",
    "rope[schedule=llama3:factor=8:low_freq_factor=1:high_freq_factor=4:original_length=256]",
    "rope[layout=half:schedule=proportional:partial_rotary_factor=0.5]",
    "rope[schedule=explicit]",
    "rope[freq_factors=yes]",
    "rope[layout=half:schedule=period:base=100:axes=2:axis_rule=axial]",
    "rope[schedule=pixel:max_freq=10:axes=2:axis_rule=axial]",
    "rope[layout=half:axes=3:sections=4:4:4]",
    "rope[layout=half:axes=3:axis_rule=interleaved_sections:sections=4:4:4]",
    "rope[layout=half:axes=4:axis_rule=interleaved_sections_ggml:sections=6:3:3:0]",
    "rope[axes=3:axis_rule=alternate_sections:sections=4:4:4]",
    "rope[axes=3:axis_rule=balanced:sections=4:4:4]",
    "rope[axes=3:axis_rule=axial:sections=2:5:5]",
    "rope[layout=half:base=100:axes=2:axis_rule=halves]",
    "rope[layout=half:base=100:axes=2:axis_rule=halves:sections=5:7:layout_out=interleaved]",
    "rope[layout=half:axes=8:axis_rule=halves:sections=1:1:1:1:2:2:2:2]",
    "rope[axes=2:axis_rule=axial_alternate]",
    "rope[layout=half:axes=2:axis_rule=alternate]",
    "rope[axes=2:axis_rule=matrix]",
    "rope[layout=half:axes=2:axis_rule=matrix:direction=inverse:layout_out=interleaved]",
    "rope[axes=2:axis_rule=matrix:per_head=yes]",
    "rope[layout=half:dim=16:offset_dim=4:axes=3:axis_rule=matrix:per_head=yes:layout_out=interleaved]",
    "rope[angles=float32:layout=half]",
    "rope[angles=float32:axes=2:axis_rule=matrix]",
    "rope[angles=ggml:axes=3:sections=4:4:4]",
    "rope[angles=ggml:axes=2:axis_rule=axial:schedule=linear:factor=3]",
    "rope[frequency_type=bf16:table_type=bf16]",
    "rope[table_type=f16:layout=half]",
    "rope[dim=8:temperature_rule=llama4:temperature_length=7]",
    "rope[temperature_rule=ministral:temperature_length=5:schedule=yarn:factor=8:original_length=256]",
    "xpos",
    "xpos[layout=half:center=40:dim=10]",
};

enum { SPECS = sizeof specs / sizeof *specs, B = 2, H = 4, G = 2, LQ = 21, LK = 37, D = 24 };

static const posenc_dims dims = {
    .B = B, .H = H, .G = G, .Lq = LQ, .Lk = LK, .D = D, .Dv = D, .d_model = H * D, .L = LK};

/* Heads with frequencies of their own have keys of their own. */
static posenc_dims dims_of(const char *spec)
{
    posenc_dims d = dims;
    if (strstr(spec, "per_head"))
        d.G = H;
    return d;
}

/* ---- an encoding with its plan, parameters and positions ---- */

typedef struct rotation {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace work;
    posenc_dims      dims;
    int              N;
    array            numbers[CASE_PARAMS];
    posenc_tensor    params[CASE_PARAMS];
    array            q, k, q_at, k_at; /* [B,H,LQ,D], [B,G,LK,D], [B,LQ,N], [B,LK,N] */
} rotation;

static void fill_places(array *at, const char *name)
{
    for (int64_t i = 0; i < at->count; i++) /* eighths from -20 to 60 */
        at->wide[i] = floor(640 * posenc_random_uniform(11, name, (uint64_t)i)) / 8 - 20;
}

static rotation make_by(const char *spec, int threads, posenc_executor executor)
{
    rotation       r;
    posenc_error   err;
    posenc_options options = posenc_options_default();
    options.threads        = threads;
    options.executor       = executor;
    memset(&r, 0, sizeof r);
    r.dims = dims_of(spec);
    if (posenc_encoding_create(&r.e, spec, NULL, &err) ||
        posenc_plan_create(&r.plan, r.e, &r.dims, &options, &err))
        fail_msg("%s: %s", spec, err.message);
    r.work = workspace_for(r.plan, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD);
    r.N    = posenc_rotary_coordinates(r.plan);
    for (int i = 0; i < posenc_param_count(r.e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        assert_int_equal(posenc_param_shape(r.e, &r.dims, i, &ndim, shape, &err), POSENC_OK);
        r.numbers[i] = array_make(ndim, shape);
        r.params[i]  = array_tensor(&r.numbers[i], 1);
    }
    assert_int_equal(posenc_param_init(r.e, &r.dims, r.params, 1, &err), POSENC_OK);
    for (int i = 0; i < posenc_param_count(r.e); i++)
        for (int64_t n = 0; n < r.numbers[i].count; n++) /* no list of ones */
            r.numbers[i].wide[n] *=
                1 + 0.5 * posenc_random_uniform(2, posenc_param_name(r.e, i), (uint64_t)n);
    r.q    = array_make4(B, H, LQ, D);
    r.k    = array_make4(B, r.dims.G, LK, D);
    r.q_at = array_make(3, (int64_t[]){B, LQ, r.N});
    r.k_at = array_make(3, (int64_t[]){B, LK, r.N});
    array_fill(&r.q, 1, "q", 1);
    array_fill(&r.k, 1, "k", 1);
    fill_places(&r.q_at, "q_at");
    fill_places(&r.k_at, "k_at");
    return r;
}

static rotation make_with(const char *spec, int threads)
{
    return make_by(spec, threads, POSENC_EXECUTOR_AUTO);
}

static rotation make(const char *spec)
{
    return make_with(spec, 1);
}

static void drop(rotation *r)
{
    array *all[] = {&r->q, &r->k, &r->q_at, &r->k_at};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
    for (int i = 0; i < posenc_param_count(r->e); i++)
        array_free(&r->numbers[i]);
    posenc_workspace_free(&r->work);
    posenc_plan_free(r->plan);
    posenc_encoding_free(r->e);
}

static posenc_positions places(const array *at)
{
    return posenc_positions_array(array_tensor(at, 1));
}

static posenc_rotate_io io_of(const rotation *r, posenc_tensor q, posenc_tensor k)
{
    return (posenc_rotate_io){.size      = sizeof(posenc_rotate_io),
                              .q         = q,
                              .k         = k,
                              .to_q      = q,
                              .to_k      = k,
                              .q_pos     = places(&r->q_at),
                              .k_pos     = places(&r->k_at),
                              .direction = 1,
                              .params    = r->params};
}

static void run(const rotation *r, const posenc_rotate_io *io)
{
    posenc_error err;
    if (posenc_rotate(r->plan, io, &r->work, &err))
        fail_msg("%s: %s", posenc_encoding_spec(r->e), err.message);
}

/* Copies of q and k, turned. */
static void turned(const rotation *r, array *q, array *k, int wide, int direction)
{
    posenc_rotate_io io = io_of(r, array_tensor(q, wide), array_tensor(k, wide));
    io.direction        = direction;
    run(r, &io);
}

static array copy_of(const array *a)
{
    array b = array_make(a->ndim, a->shape);
    memcpy(b.wide, a->wide, (size_t)a->count * sizeof(double));
    memcpy(b.narrow, a->narrow, (size_t)a->count * sizeof(float));
    return b;
}

static double product(const array *a, const array *b, int wide)
{
    double sum = 0;
    for (int64_t i = 0; i < a->count; i++)
        sum += wide ? a->wide[i] * b->wide[i] : (double)a->narrow[i] * (double)b->narrow[i];
    return sum;
}

static double length(const array *a)
{
    return sqrt(product(a, a, 1));
}

/* ---- back is the transpose ---- */

static void turning_back_is_the_transpose_of_turning(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++) {
        rotation r  = make(specs[i]);
        array    gq = array_make4(B, H, LQ, D), gk = array_make4(B, r.dims.G, LK, D);
        array_fill(&gq, 2, "gq", 1);
        array_fill(&gk, 2, "gk", 1);
        for (int wide = 0; wide < 2; wide++) {
            array q = copy_of(&r.q), k = copy_of(&r.k), bq = copy_of(&gq), bk = copy_of(&gk);
            turned(&r, &q, &k, wide, 1);
            turned(&r, &bq, &bk, wide, -1);
            const double there = product(&q, &gq, wide) + product(&k, &gk, wide),
                         back  = product(&r.q, &bq, wide) + product(&r.k, &bk, wide);
            const double scale = length(&q) * length(&gq) + length(&k) * length(&gk);
            if (!(fabs(there - back) <= (wide ? 1e-15 : 1e-7) * scale))
                fail_msg("%s: %.17g there, %.17g back", specs[i], there, back);
            assert_true(largest(&q, &r.q) > 0.1 || !wide); /* it did turn */
            array_free(&q), array_free(&k), array_free(&bq), array_free(&bk);
        }
        array_free(&gq), array_free(&gk);
        drop(&r);
    }
}

/* posenc_rotate_backward gives what posenc_rotate with direction -1 gives, and the other way round. */
static void the_gradient_is_turning_back(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++)
        for (int direction = -1; direction <= 1; direction += 2) {
            rotation     r = make(specs[i]);
            posenc_error err;
            array        q = copy_of(&r.q), k = copy_of(&r.k), dq = copy_of(&r.q), dk = copy_of(&r.k);
            turned(&r, &q, &k, 1, -direction);
            posenc_rotate_io io           = io_of(&r, array_tensor(&r.q, 1), array_tensor(&r.k, 1));
            io.direction                  = direction;
            const posenc_rotate_grad grad = {.size  = sizeof grad,
                                             .dto_q = array_tensor(&dq, 1),
                                             .dto_k = array_tensor(&dk, 1),
                                             .dq    = array_tensor(&dq, 1),
                                             .dk    = array_tensor(&dk, 1)};
            if (posenc_rotate_backward(r.plan, &io, &grad, &r.work, &err))
                fail_msg("%s", err.message);
            assert_memory_equal(q.wide, dq.wide, (size_t)q.count * sizeof(double));
            assert_memory_equal(k.wide, dk.wide, (size_t)k.count * sizeof(double));
            array_free(&q), array_free(&k), array_free(&dq), array_free(&dk);
            drop(&r);
        }
}

/* ---- nothing of the storage matters ---- */

static const void *data_of(const array *a, int wide)
{
    return wide ? (const void *)a->wide : (const void *)a->narrow;
}

static void assert_same(const array *a, const array *b, int wide, const char *what, const char *spec)
{
    if (memcmp(data_of(a, wide), data_of(b, wide),
               (size_t)a->count * (wide ? sizeof(double) : sizeof(float))))
        fail_msg("%s: %s changes bits", spec, what);
}

static void threads_places_in_memory_and_company_change_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++)
        for (int wide = 0; wide < 2; wide++) {
            rotation r = make(specs[i]), three = make_with(specs[i], 3);
            array    q = copy_of(&r.q), k = copy_of(&r.k), q2 = copy_of(&r.q), k2 = copy_of(&r.k);
            turned(&r, &q, &k, wide, 1);
            turned(&three, &q2, &k2, wide, 1);
            assert_same(&q, &q2, wide, "a number of threads", specs[i]);
            assert_same(&k, &k2, wide, "a number of threads", specs[i]);
            posenc_rotate_io io = io_of(&r, array_tensor(&r.q, wide), array_tensor(&r.k, wide));
            memset(wide ? (void *)q2.wide : (void *)q2.narrow, 0xff, (size_t)q2.count * sizeof(float));
            io.to_q = array_tensor(&q2, wide);
            io.to_k = array_tensor(&k2, wide);
            run(&r, &io); /* out of place */
            assert_same(&q, &q2, wide, "another tensor for the result", specs[i]);
            if (!strstr(specs[i], "dynamic") &&
                !strstr(specs[i], "longrope")) { /* the run's length is that of both */
                io.k.data = NULL;
                run(&r, &io);
                assert_same(&q, &q2, wide, "company of k", specs[i]);
            }
            array_free(&q), array_free(&k), array_free(&q2), array_free(&k2);
            drop(&r), drop(&three);
        }
}

/* Long enough for the longest blocks of rows, by as many positions as fill none. */
static void long_runs_are_turned_in_blocks_that_change_no_bit(void **state)
{
    enum { L = 8192 + 77, WIDE = 16 };
    const posenc_dims  d     = {.B = 1, .H = 1, .Lq = L, .Lk = L, .D = WIDE};
    const int64_t      all[] = {1, 1, L, WIDE};
    static float       from[L * WIDE], narrow[3][L * WIDE];
    static double      exact[L * WIDE], wide[L * WIDE];
    static const char *words[] = {"rope", "rope[layout=half]"};
    (void)state;
    for (int i = 0; i < L * WIDE; i++)
        exact[i] = from[i] = (float)posenc_random_normal(5, "q", (uint64_t)i);
    for (int spec = 0; spec < 2; spec++) {
        for (int threads = 1; threads <= 3; threads++) {
            posenc_encoding *e;
            posenc_plan     *plan;
            posenc_error     err;
            posenc_options   options = posenc_options_default();
            options.threads          = threads;
            if (posenc_encoding_create(&e, words[spec], NULL, &err) ||
                posenc_plan_create(&plan, e, &d, &options, &err))
                fail_msg("%s", err.message);
            posenc_workspace work = workspace_for(plan, POSENC_RUN_FORWARD);
            float           *to   = narrow[threads - 1];
            posenc_rotate_io io   = {.size      = sizeof io,
                                     .q         = posenc_tensor_contiguous(from, POSENC_DTYPE_F32, 4, all),
                                     .to_q      = posenc_tensor_contiguous(to, POSENC_DTYPE_F32, 4, all),
                                     .q_pos     = posenc_positions_range(1000, 1),
                                     .direction = 1};
            assert_int_equal(posenc_rotate(plan, &io, &work, &err), POSENC_OK);
            io.q    = posenc_tensor_contiguous(exact, POSENC_DTYPE_F64, 4, all);
            io.to_q = posenc_tensor_contiguous(wide, POSENC_DTYPE_F64, 4, all);
            assert_int_equal(posenc_rotate(plan, &io, &work, &err), POSENC_OK);
            posenc_workspace_free(&work);
            posenc_plan_free(plan);
            posenc_encoding_free(e);
        }
        for (int64_t i = 0; i < L * WIDE;
             i++) /* two products of a rounded factor each, and a rounding: 4 halves of an ulp */
            assert_true(fabs(narrow[0][i] - wide[i]) <= 0x1p-23 * (fabs(exact[i]) + 6));
        assert_memory_equal(narrow[0], narrow[1], sizeof narrow[0]);
        assert_memory_equal(narrow[0], narrow[2], sizeof narrow[0]);
    }
}

/* The same numbers as [B,L,H,D]. */
static array other_order(const array *a)
{
    array b = array_make4(a->shape[0], a->shape[2], a->shape[1], a->shape[3]);
    for (int64_t i = 0; i < a->count; i++) {
        const int64_t d = i % a->shape[3], s = i / a->shape[3] % a->shape[2],
                      h  = i / a->shape[3] / a->shape[2] % a->shape[1],
                      at = ((i / a->shape[3] / a->shape[2] / a->shape[1] * a->shape[2] + s) * a->shape[1] +
                            h) *
                               a->shape[3] +
                           d;
        b.wide[at]   = a->wide[i];
        b.narrow[at] = a->narrow[i];
    }
    return b;
}

static void the_order_of_axes_in_memory_changes_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++)
        for (int wide = 0; wide < 2; wide++) {
            rotation           r    = make(specs[i]);
            const posenc_dtype type = wide ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32;
            array q = copy_of(&r.q), k = copy_of(&r.k), q2 = other_order(&r.q), k2 = other_order(&r.k);
            turned(&r, &q, &k, wide, 1);
            posenc_rotate_io io =
                io_of(&r,
                      posenc_tensor_from_blhd(wide ? (void *)q2.wide : (void *)q2.narrow, type, B, LQ, H, D),
                      posenc_tensor_from_blhd(wide ? (void *)k2.wide : (void *)k2.narrow, type, B, LK,
                                              r.dims.G, D));
            run(&r, &io);
            array want_q = other_order(&q), want_k = other_order(&k);
            assert_same(&q2, &want_q, wide, "the order of axes", specs[i]);
            assert_same(&k2, &want_k, wide, "the order of axes", specs[i]);
            array_free(&q), array_free(&k), array_free(&q2), array_free(&k2), array_free(&want_q),
                array_free(&want_k);
            drop(&r);
        }
}

static void sixteen_bit_tensors_are_the_float_result_rounded_once(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++)
        for (int brain = 0; brain < 2; brain++) {
            rotation  r = make(specs[i]);
            array     q = copy_of(&r.q), k = copy_of(&r.k);
            uint16_t *half = malloc((size_t)q.count * sizeof *half);
            for (int64_t n = 0; n < q.count; n++) {
                half[n]     = brain ? pe_half_float_to_bf16(q.narrow[n]) : pe_half_float_to_f16(q.narrow[n]);
                q.narrow[n] = brain ? pe_half_bf16_to_float(half[n]) : pe_half_f16_to_float(half[n]);
            }
            turned(&r, &q, &k, 0, 1);
            posenc_rotate_io io = io_of(
                &r, posenc_tensor_contiguous(half, brain ? POSENC_DTYPE_BF16 : POSENC_DTYPE_F16, 4, q.shape),
                array_tensor(&r.k, 0));
            run(&r, &io);
            for (int64_t n = 0; n < q.count; n++)
                assert_true(half[n] ==
                            (brain ? pe_half_float_to_bf16(q.narrow[n]) : pe_half_float_to_f16(q.narrow[n])));
            free(half);
            array_free(&q), array_free(&k);
            drop(&r);
        }
}

/* Float against double, pair by pair: a row's largest number bounds its pairs. */
static void float_agrees_with_double(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++) {
        rotation r = make(specs[i]);
        array    q = copy_of(&r.q), k = copy_of(&r.k);
        turned(&r, &q, &k, 0, 1);
        turned(&r, &q, &k, 1, 1);
        for (int64_t row = 0; row < q.count; row += D) {
            double scale = 0;
            for (int64_t d = row; d < row + D; d++)
                scale = fmax(scale, fabs(q.wide[d]) + fabs(r.q.wide[d]));
            for (int64_t d = row; d < row + D; d++)
                if (!(fabs((double)q.narrow[d] - q.wide[d]) <= (0x1p-22 + 0x1p-24) * 1.5 * scale))
                    fail_msg("%s: %.9g in float, %.17g in double", specs[i], (double)q.narrow[d], q.wide[d]);
        }
        array_free(&q), array_free(&k);
        drop(&r);
    }
}

/* The reference executor turns floats in double and rounds each number once; the others do not. */
static void the_reference_executor_rounds_floats_once(void **state)
{
    int64_t changed = 0;
    (void)state;
    for (int i = 0; i < SPECS; i++) {
        rotation r     = make_by(specs[i], 1, POSENC_EXECUTOR_REFERENCE),
                 tiled = make_by(specs[i], 1, POSENC_EXECUTOR_TILED);
        array q = copy_of(&r.q), k = copy_of(&r.k), p = copy_of(&r.q);
        for (int64_t n = 0; n < q.count; n++)
            q.wide[n] = (double)q.narrow[n];
        turned(&r, &q, &k, 0, 1);
        turned(&r, &q, &k, 1, 1);
        turned(&tiled, &p, &k, 0, 1);
        for (int64_t n = 0; n < q.count; n++) {
            if (q.narrow[n] != (float)q.wide[n])
                fail_msg("%s: %.9g is not %.17g rounded", specs[i], (double)q.narrow[n], q.wide[n]);
            changed += q.narrow[n] != p.narrow[n];
        }
        array_free(&q), array_free(&k), array_free(&p);
        drop(&r), drop(&tiled);
    }
    assert_true(changed > 1000);
}

/* Packed sequences: positions that begin anew are the sequences one by one. */
static void packed_sequences_are_turned_as_if_alone(void **state)
{
    rotation r = make("rope[layout=half]");
    array    q = copy_of(&r.q), k = copy_of(&r.k), one = copy_of(&r.q);
    (void)state;
    for (int64_t i = 0; i < r.q_at.count; i++) /* 8 tokens, 13 tokens */
        r.q_at.wide[i] = (double)(i % LQ < 8 ? i % LQ : i % LQ - 8);
    turned(&r, &q, &k, 0, 1);
    for (int part = 0; part < 2; part++) {
        const int64_t from = part ? 8 : 0, n = part ? 13 : 8;
        posenc_tensor x           = array_tensor(&one, 0);
        x.data                    = one.narrow + from * D;
        x.shape[2]                = n;
        const posenc_rotate_io io = {.size = sizeof io, .q = x, .to_q = x, .direction = 1};
        run(&r, &io);
    }
    assert_same(&q, &one, 0, "a neighbour in the pack", "rope[layout=half]");
    array_free(&q), array_free(&k), array_free(&one);
    drop(&r);
}

/* ---- from one plan to another ---- */

/* From the caller's parameters into `to`, and the same bits from bound ones in place. */
static void rerotate_keys(const rotation *from, const rotation *to, array *k, const array *to_at, int wide)
{
    posenc_error err;
    const size_t bytes = posenc_plan_workspace(from->plan, POSENC_RUN_ROTATE, NULL) +
                         posenc_plan_workspace(to->plan, POSENC_RUN_ROTATE, NULL);
    posenc_workspace   work  = posenc_workspace_over(aligned_alloc(64, bytes), bytes);
    array              given = copy_of(k);
    posenc_bound      *bound[2];
    posenc_rerotate_io io = {.size        = sizeof io,
                             .k           = array_tensor(k, wide),
                             .to_k        = array_tensor(&given, wide),
                             .from_pos    = places(&from->k_at),
                             .to_pos      = places(to_at),
                             .from_params = from->params,
                             .to_params   = to->params};
    if (posenc_rotary_rerotate(from->plan, to->plan, &io, &work, &err) ||
        posenc_plan_bind(&bound[0], from->plan, from->params, &err) ||
        posenc_plan_bind(&bound[1], to->plan, to->params, &err))
        fail_msg("%s to %s: %s", posenc_encoding_spec(from->e), posenc_encoding_spec(to->e), err.message);
    io.to_k        = io.k;
    io.from_params = io.to_params = NULL;
    io.from_bound = bound[0], io.to_bound = bound[1];
    if (posenc_rotary_rerotate(from->plan, to->plan, &io, &work, &err))
        fail_msg("bound: %s to %s: %s", posenc_encoding_spec(from->e), posenc_encoding_spec(to->e),
                 err.message);
    assert_memory_equal(k->wide, given.wide, (size_t)k->count * sizeof *k->wide);
    assert_memory_equal(k->narrow, given.narrow, (size_t)k->count * sizeof *k->narrow);
    posenc_bound_free(bound[0]), posenc_bound_free(bound[1]);
    array_free(&given);
    free(work.memory);
}

/* Keys alone, so that a run's length is theirs. */
static void turn_keys(const rotation *r, array *k, const array *at, int wide)
{
    const posenc_tensor    x  = array_tensor(k, wide);
    const posenc_rotate_io io = {
        .size = sizeof io, .k = x, .to_k = x, .k_pos = places(at), .direction = 1, .params = r->params};
    run(r, &io);
}

static void check_rerotate(const char *from_spec, const char *to_spec, double shift)
{
    for (int wide = 0; wide < 2; wide++) {
        rotation from = make(from_spec), to = make_with(to_spec, 3);
        array    k = copy_of(&from.k), want = copy_of(&from.k), at = copy_of(&from.k_at);
        if (from.N != to.N) {
            array_free(&at);
            at = copy_of(&to.k_at);
        }
        for (int64_t i = 0; i < at.count; i++)
            at.wide[i] += shift;
        turn_keys(&from, &k, &from.k_at, wide);
        turn_keys(&to, &want, &at, wide);
        rerotate_keys(&from, &to, &k, &at, wide);
        const double scale = 4 * largest(&from.k, NULL);
        for (int64_t i = 0; i < k.count; i++) {
            const double got = wide ? k.wide[i] : (double)k.narrow[i],
                         ref = wide ? want.wide[i] : (double)want.narrow[i];
            if (!(fabs(got - ref) <= (wide ? 2e-15 : 2e-7) * scale))
                fail_msg("%s to %s, shift %g: %.17g, not %.17g", from_spec, to_spec, shift, got, ref);
        }
        array_free(&k), array_free(&want), array_free(&at);
        drop(&from), drop(&to);
    }
}

static void cached_keys_move_from_plan_to_plan(void **state)
{
    static const char *const pairs[][2] = {
        {"rope[schedule=dynamic:factor=2:max_length=32:length=32]",
         "rope[schedule=dynamic:factor=2:max_length=32:length=90]"},
        {"rope[schedule=longrope:factor=4:original_length=64:length=64]",
         "rope[schedule=longrope:factor=4:original_length=64:length=65]"},
        {"rope", "rope[schedule=yarn:factor=8:original_length=256]"},
        {"rope[schedule=yarn:factor=8:original_length=256]", "rope"},
        {"rope[layout_out=half]", "rope"},
        {"rope[dim=8:offset_dim=16]", "rope[dim=8:offset_dim=16:layout_out=half]"},
        {"rope[angles=float32]", "rope"},
        {"rope", "rope[direction=inverse:angles=ggml]"},
        {"xpos", "xpos[center=40]"},
        {"rope", "rope[axes=3:axis_rule=interleaved_sections:sections=4:4:4]"},
        {"rope[axes=2:axis_rule=axial]", "rope[axes=2:axis_rule=matrix]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check_rerotate(pairs[i][0], pairs[i][1], 0);
        check_rerotate(pairs[i][0], pairs[i][1], -13.5);
    }
    for (int i = 0; i < SPECS; i++) /* a context shift: the same plan; coarse tables were rounded twice */
        if (!strstr(specs[i], "table_type"))
            check_rerotate(specs[i], specs[i], -8);
}

/* Far away too, where angles are 10^9 and their difference is 1: nothing is lost on the way. */
static void a_context_shift_far_away_is_exact(void **state)
{
    rotation r = make("rope");
    array    k = copy_of(&r.k), want = copy_of(&r.k), at = copy_of(&r.k_at);
    (void)state;
    for (int64_t i = 0; i < at.count; i++) {
        r.k_at.wide[i] = 2147480000 + floor(r.k_at.wide[i]);
        at.wide[i]     = r.k_at.wide[i] - 2147479000;
    }
    turn_keys(&r, &k, &r.k_at, 1);
    turn_keys(&r, &want, &at, 1);
    rerotate_keys(&r, &r, &k, &at, 1);
    assert_true(largest(&k, &want) <= 4e-15 * largest(&want, NULL));
    array_free(&k), array_free(&want), array_free(&at);
    drop(&r);
}

static void plans_that_do_not_fit_are_refused(void **state)
{
    static const char *const other[] = {"rope[dim=6:offset_dim=1]", "rope[dim=8:offset_dim=2]",
                                        "rope[dim=8:offset_dim=1:layout=half]", "alibi"};
    rotation                 r       = make("rope[dim=8:offset_dim=1]");
    posenc_error             err;
    (void)state;
    for (int i = 0; i < 4; i++) {
        rotation                 x  = make(other[i]);
        array                    k  = copy_of(&r.k);
        const posenc_rerotate_io io = {.size = sizeof io,
                                       .k    = array_tensor(&k, 1),
                                       .to_k = array_tensor(&k, 1)};
        assert_int_equal(posenc_rotary_rerotate(r.plan, x.plan, &io, &r.work, &err),
                         i < 3 ? POSENC_ERROR_SHAPE : POSENC_ERROR_UNSUPPORTED);
        assert_non_null(
            strstr(err.message, i < 3 ? "the plans pair different channels" : "no part at place rotary"));
        assert_true(largest(&k, &r.k) == 0);
        array_free(&k);
        drop(&x);
    }
    drop(&r);
}

/* ---- gradients of frequencies ---- */

static const char *const learned[] = {
    "rope[axes=2:axis_rule=matrix]",
    "rope[layout=half:axes=2:axis_rule=matrix:dim=16:offset_dim=4:freq_factors=yes]",
    "rope[axes=3:axis_rule=matrix:direction=inverse:layout_out=half]",
    "rope[axes=2:axis_rule=matrix:per_head=yes]",
    "rope[layout=half:axes=1:axis_rule=matrix:per_head=yes:dim=16:freq_factors=yes]",
    "rope[schedule=explicit:layout=half]",
    "rope[schedule=explicit:axes=2:axis_rule=axial:freq_factors=yes:temperature_rule=llama4:temperature_"
    "length=5]",
    "rope[schedule=yarn:factor=8:original_length=256:freq_factors=yes]",
    "rope[schedule=longrope:factor=4:original_length=64:length=60]",
    "rope[schedule=longrope:factor=4:original_length=64:length=70]",
};

enum { LEARNED = sizeof learned / sizeof *learned };

static double turned_loss(const rotation *r, const array *gq, const array *gk, int direction)
{
    array q = copy_of(&r->q), k = copy_of(&r->k);
    turned(r, &q, &k, 1, direction);
    const double loss = product(&q, gq, 1) + product(&k, gk, 1);
    array_free(&q), array_free(&k);
    return loss;
}

/* Slopes by central differences: h = 1e-6 leaves h^2/6 p^3 with p <= 80, and rounding of 1e-13 / h; both 1e-7
   of a slope that is a sum of some hundred terms of size p. */
static void gradients_of_frequencies_are_slopes(void **state)
{
    (void)state;
    for (int i = 0; i < LEARNED; i++)
        for (int direction = -1; direction <= 1; direction += 2) {
            rotation     r = make(learned[i]);
            posenc_error err;
            array gq = array_make4(B, H, LQ, D), gk = array_make4(B, r.dims.G, LK, D), dq = copy_of(&gq),
                  dk = copy_of(&gk);
            array         sums[CASE_PARAMS];
            posenc_tensor dparams[CASE_PARAMS];
            array_fill(&gq, 3, "gq", 1);
            array_fill(&gk, 3, "gk", 1);
            for (int p = 0; p < posenc_param_count(r.e); p++) {
                sums[p]    = array_make(r.numbers[p].ndim, r.numbers[p].shape);
                dparams[p] = array_tensor(&sums[p], 1);
                for (int64_t n = 0; n < sums[p].count; n++)
                    sums[p].wide[n] = 5; /* gradients add */
            }
            posenc_rotate_io io           = io_of(&r, array_tensor(&r.q, 1), array_tensor(&r.k, 1));
            io.direction                  = direction;
            const posenc_rotate_grad grad = {.size    = sizeof grad,
                                             .dto_q   = array_tensor(&gq, 1),
                                             .dto_k   = array_tensor(&gk, 1),
                                             .dq      = array_tensor(&dq, 1),
                                             .dk      = array_tensor(&dk, 1),
                                             .dparams = dparams};
            if (posenc_rotate_backward(r.plan, &io, &grad, &r.work, &err))
                fail_msg("%s", err.message);
            for (int p = 0; p < posenc_param_count(r.e); p++)
                for (int64_t n = 0; n < sums[p].count; n++) {
                    const double start = r.numbers[p].wide[n], got = sums[p].wide[n] - 5;
                    r.numbers[p].wide[n] = start + 1e-6;
                    const double above   = turned_loss(&r, &gq, &gk, direction);
                    r.numbers[p].wide[n] = start - 1e-6;
                    const double slope   = (above - turned_loss(&r, &gq, &gk, direction)) / 2e-6;
                    r.numbers[p].wide[n] = start;
                    if (!(fabs(got - slope) <= 1e-6 * (100 + fabs(slope))))
                        fail_msg("%s: d%s[%d] is %.12g, the slope is %.12g", learned[i],
                                 posenc_param_name(r.e, p), (int)n, got, slope);
                }
            for (int p = 0; p < posenc_param_count(r.e); p++)
                array_free(&sums[p]);
            array_free(&gq), array_free(&gk), array_free(&dq), array_free(&dk);
            drop(&r);
        }
}

static void rounded_angles_have_no_gradient(void **state)
{
    rotation      r       = make("rope[angles=float32:axes=2:axis_rule=matrix]");
    array         sum     = copy_of(&r.numbers[0]);
    posenc_tensor dparams = array_tensor(&sum, 1), q = array_tensor(&r.q, 1), k = array_tensor(&r.k, 1);
    posenc_error  err;
    (void)state;
    const posenc_rotate_io   io   = io_of(&r, q, k);
    const posenc_rotate_grad grad = {
        .size = sizeof grad, .dto_q = q, .dto_k = k, .dq = q, .dk = k, .dparams = &dparams};
    assert_int_equal(posenc_rotate_backward(r.plan, &io, &grad, &r.work, &err), POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "use angles=exact"));
    array_free(&sum);
    drop(&r);
}

/* ---- attention with several coordinates ---- */

static attention_case attention_with(const char *spec, posenc_dims d, const array *q_at, const array *k_at)
{
    attention_case c = case_make(spec, d, 4);
    if (q_at) {
        c.q_pos = places(q_at);
        c.k_pos = places(k_at);
    }
    return c;
}

static attention_case attention_of(const char *spec, const array *q_at, const array *k_at)
{
    return attention_with(spec, dims_of(spec), q_at, k_at);
}

static void assert_results(const attention_result *a, const attention_result *b, double tolerance,
                           const char *what)
{
    const array *all[][2] = {{&a->o, &b->o}, {&a->dq, &b->dq}, {&a->dk, &b->dk}, {&a->dv, &b->dv}};
    for (size_t i = 0; i < 4; i++)
        if (!(largest(all[i][0], all[i][1]) <= tolerance * largest(all[i][1], NULL)))
            fail_msg("%s: array %d differs by %.3g", what, (int)i, largest(all[i][0], all[i][1]));
}

/* Attention turns by itself what posenc_rotate turns: scores of turned tensors under nope are those of the
   encoding. */
static void attention_turns_as_rotate_does(void **state)
{
    (void)state;
    for (int i = 0; i < SPECS; i++) {
        const char *const apart[] = {"xpos", "dynamic",
                                     "float32:axes"}; /* causal, by the run, without gradients */
        if (strstr(specs[i], apart[0]) || strstr(specs[i], apart[1]) || strstr(specs[i], apart[2]))
            continue;
        rotation       r     = make(specs[i]);
        attention_case c     = attention_of(specs[i], &r.q_at, &r.k_at),
                       plain = attention_with("nope", r.dims, NULL, NULL);
        for (int p = 0; p < c.param_count; p++)
            memcpy(c.params[p].wide, r.numbers[p].wide, (size_t)r.numbers[p].count * sizeof(double));
        memcpy(r.q.wide, c.q.wide, (size_t)c.q.count * sizeof(double));
        memcpy(r.k.wide, c.k.wide, (size_t)c.k.count * sizeof(double));
        turned(&r, &r.q, &r.k, 1, 1);
        memcpy(plain.q.wide, r.q.wide, (size_t)c.q.count * sizeof(double));
        memcpy(plain.k.wide, r.k.wide, (size_t)c.k.count * sizeof(double));
        attention_result got = case_run(&c, 1), want = case_run(&plain, 1);
        turned(&r, &want.dq, &want.dk, 1, -1);
        assert_results(&got, &want, 1e-13, specs[i]);
        result_free(&got), result_free(&want);
        case_free(&c), case_free(&plain);
        drop(&r);
    }
}

/* Both executors, every gradient, parameters of the rotation too. */
static void executors_agree_on_positions_of_several_coordinates(void **state)
{
    static const int masks[] = {POSENC_MASK_NONE, POSENC_MASK_CAUSAL,
                                POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW};
    (void)state;
    for (int i = 0; i < SPECS; i++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            rotation       r = make(specs[i]);
            attention_case c = attention_of(specs[i], &r.q_at, &r.k_at);
            if (r.N == 1 || strstr(specs[i], "float32")) { /* its parameter has no gradient for compare */
                case_free(&c);
                drop(&r);
                continue;
            }
            c.options.mask        = masks[m];
            c.options.window      = c.options.mask & POSENC_MASK_WINDOW ? 9 : 0;
            attention_result wide = case_run(&c, 1), narrow = case_run(&c, 0);
            const array     *all[][2]        = {{&narrow.o, &wide.o},
                                                {&narrow.dq, &wide.dq},
                                                {&narrow.dk, &wide.dk},
                                                {&narrow.dv, &wide.dv},
                                                {&narrow.dparams[0], &wide.dparams[0]}};
            const array     *same[DISTURBED] = {NULL};
            for (int a = 0; a < 4 + c.param_count; a++) {
                same[0] = same[1]  = all[a][1];
                const double error = array_error(all[a][0], all[a][1], same, a ? 2e-5 : 4e-6, 0);
                if (!(error <= 1))
                    fail_msg("%s, mask %d, array %d: %.3g of what is allowed", specs[i], masks[m], a, error);
            }
            result_free(&wide), result_free(&narrow);
            case_free(&c);
            drop(&r);
        }
}

static double attention_loss(const attention_case *c)
{
    attention_result r    = case_run(c, 1);
    const double     loss = product(&r.o, &c->dout, 1);
    result_free(&r);
    return loss;
}

static void attention_s_gradients_of_frequencies_are_slopes(void **state)
{
    (void)state;
    for (int i = 0; i < LEARNED; i++) {
        rotation         r = make(learned[i]);
        attention_case   c = attention_of(learned[i], &r.q_at, &r.k_at);
        attention_result x = case_run(&c, 1);
        for (int p = 0; p < c.param_count; p++)
            for (int64_t n = 0; n < c.params[p].count; n += 3) {
                const double start  = c.params[p].wide[n];
                c.params[p].wide[n] = start + 1e-6;
                const double above  = attention_loss(&c);
                c.params[p].wide[n] = start - 1e-6;
                const double slope  = (above - attention_loss(&c)) / 2e-6;
                c.params[p].wide[n] = start;
                if (!(fabs(x.dparams[p].wide[n] - slope) <= 1e-5 * (1 + largest(&x.dparams[p], NULL))))
                    fail_msg("%s: d%s[%d] is %.12g, the slope is %.12g", learned[i],
                             posenc_param_name(c.e, p), (int)n, x.dparams[p].wide[n], slope);
            }
        result_free(&x);
        case_free(&c);
        drop(&r);
    }
}

/* Text: all coordinates alike, as an array or as a range, is plain RoPE where one list goes over all
   pairs. */
static void text_among_pictures_is_plain_rope(void **state)
{
    static const char *const rules[] = {
        "rope[layout=half:axes=3:sections=4:4:4]",
        "rope[layout=half:axes=3:axis_rule=interleaved_sections:sections=4:4:4]",
        "rope[layout=half:axes=3:axis_rule=balanced:sections=4:4:4]"};
    array q_at = array_make(3, (int64_t[]){1, LQ, 3}), k_at = array_make(3, (int64_t[]){1, LK, 3});
    (void)state;
    for (int64_t i = 0; i < q_at.count; i++)
        q_at.wide[i] = (double)(i / 3 + LK - LQ);
    for (int64_t i = 0; i < k_at.count; i++)
        k_at.wide[i] = (double)(i / 3);
    for (int i = 0; i < 3; i++)
        for (int wide = 0; wide < 2; wide++) {
            attention_case plain  = attention_of("rope[layout=half]", NULL, NULL),
                           range  = attention_of(rules[i], NULL, NULL),
                           array3 = attention_of(rules[i], &q_at, &k_at);
            plain.options.mask = range.options.mask = array3.options.mask = POSENC_MASK_CAUSAL;
            attention_result a = case_run(&plain, wide), b = case_run(&range, wide),
                             c = case_run(&array3, wide);
            assert_same(&a.o, &b.o, wide, "a range", rules[i]);
            assert_same(&a.o, &c.o, wide, "an array", rules[i]);
            assert_same(&a.dk, &c.dk, wide, "an array", rules[i]);
            result_free(&a), result_free(&b), result_free(&c);
            case_free(&plain), case_free(&range), case_free(&array3);
        }
    array_free(&q_at), array_free(&k_at);
}

/* A causal mask counts tokens: it is the explicit one whose last query sees the last key. */
static void masks_count_tokens_where_positions_have_no_order(void **state)
{
    rotation       r = make("rope[axes=3:sections=4:4:4]");
    attention_case c = attention_of("rope[axes=3:sections=4:4:4]", &r.q_at, &r.k_at), explicit_mask = c;
    (void)state;
    for (int64_t i = 0; i < B * LQ * LK; i++)
        c.allowed[i] = i % LK <= i / LK % LQ + LK - LQ;
    c.options.mask             = POSENC_MASK_CAUSAL;
    explicit_mask.options.mask = POSENC_MASK_EXPLICIT;
    attention_result a = case_run(&c, 1), b = case_run(&explicit_mask, 1);
    assert_results(&a, &b, 1e-13, "causal");
    result_free(&a), result_free(&b);
    case_free(&c);
    drop(&r);
}

static posenc_status attend(const char *spec, const array *q_at, const array *k_at, posenc_error *err)
{
    attention_case    c = attention_of(spec, q_at, k_at);
    posenc_plan      *plan;
    posenc_tensor     params[CASE_PARAMS];
    array             o   = array_make4(B, H, LQ, D);
    posenc_attend_in  in  = case_in(&c, 1, params);
    posenc_attend_out out = {.size = sizeof out, .o = array_tensor(&o, 1)};
    if (posenc_plan_create(&plan, c.e, &dims, NULL, err))
        fail_msg("%s", err->message);
    posenc_workspace    work   = workspace_for(plan, POSENC_RUN_FORWARD);
    const posenc_status status = posenc_attend(plan, &in, &out, &work, err);
    assert_true(status == POSENC_OK || largest(&o, NULL) == 0);
    posenc_workspace_free(&work);
    array_free(&o);
    posenc_plan_free(plan);
    case_free(&c);
    return status;
}

static void positions_that_an_encoding_cannot_read_are_refused(void **state)
{
    rotation     r = make("rope[axes=3:sections=4:4:4]"), one = make("rope");
    posenc_error err;
    (void)state;
    assert_int_equal(attend("rope[axes=3:sections=4:4:4]", &r.q_at, &r.k_at, &err), POSENC_OK);
    assert_int_equal(attend("rope[axes=3:sections=4:4:4]+alibi", NULL, NULL, &err), POSENC_OK); /* text */
    assert_int_equal(attend("rope[axes=3:sections=4:4:4]+alibi", &r.q_at, &r.k_at, &err),
                     POSENC_ERROR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "needs one number per position"));
    assert_int_equal(
        attend("rope[axes=3:sections=4:4:4]+swin_v2[window=1x37]", &r.q_at, &r.k_at, &err) == POSENC_OK, 0);
    assert_int_equal(attend("rope", &r.q_at, &r.k_at, &err), POSENC_ERROR_SHAPE);
    assert_non_null(strstr(err.message, "has 3 coordinates per position; it must have 1"));
    assert_int_equal(attend("alibi", &r.q_at, &r.k_at, &err), POSENC_ERROR_SHAPE);
    assert_int_equal(attend("rope[axes=3:sections=4:4:4]", &one.q_at, &one.k_at, &err), POSENC_ERROR_SHAPE);
    assert_non_null(strstr(err.message, "has 1 coordinates per position; it must have 3"));
    drop(&r), drop(&one);
}

static void frequencies_that_are_no_numbers_are_refused(void **state)
{
    static const double bad[] = {NAN, INFINITY, 0x1p30};
    rotation            r     = make("rope[schedule=explicit]");
    posenc_error        err;
    (void)state;
    for (int i = 0; i < 3; i++) {
        array q                   = copy_of(&r.q);
        r.numbers[0].wide[5]      = bad[i];
        const posenc_tensor    x  = array_tensor(&q, 1);
        const posenc_rotate_io io = {
            .size = sizeof io, .q = x, .to_q = x, .direction = 1, .params = r.params};
        assert_int_equal(posenc_rotate(r.plan, &io, &r.work, &err), POSENC_ERROR_RANGE);
        assert_non_null(strstr(err.message, "the frequency of pair 5 of rope is not a finite number"));
        assert_true(largest(&q, &r.q) == 0);
        array_free(&q);
    }
    double  w[D];
    int64_t M;
    assert_int_equal(posenc_rotary_frequencies(r.plan, w, &M, NULL, &err), POSENC_ERROR_UNSUPPORTED);
    const posenc_rotate_io io = {
        .size = sizeof io, .q = array_tensor(&r.q, 1), .to_q = array_tensor(&r.q, 1), .direction = 1};
    assert_int_equal(posenc_rotate(r.plan, &io, &r.work, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "has parameter inv_freq"));
    drop(&r);
}

/* The length of a run is that of all it sees; below max_length dynamic is plain. */
static void schedules_without_a_length_follow_the_run(void **state)
{
    rotation r = make("rope[schedule=dynamic:factor=2:max_length=32]"), plain = make("rope"),
             long_ = make("rope[schedule=dynamic:factor=2:max_length=32:length=90]");
    (void)state;
    for (int far = 0; far < 2; far++) {
        array           q = copy_of(&r.q), k = copy_of(&r.k), want_q = copy_of(&r.q), want_k = copy_of(&r.k);
        const rotation *like = far ? &long_ : &plain;
        for (int64_t i = 0; i < r.k_at.count; i++)
            r.k_at.wide[i] = like->k_at.wide[i] = (double)(i % LK % 32);
        for (int64_t i = 0; i < r.q_at.count; i++)
            r.q_at.wide[i] = like->q_at.wide[i] = (double)(i % LQ);
        if (far) /* one key of the second item stands at 89 */
            r.k_at.wide[r.k_at.count - 3] = like->k_at.wide[r.k_at.count - 3] = 89;
        turned(&r, &q, &k, 1, 1);
        turned(like, &want_q, &want_k, 1, 1);
        assert_true(largest(&q, &want_q) <= 1e-14 * largest(&q, NULL));
        assert_true(largest(&k, &want_k) <= 1e-14 * largest(&k, NULL));
        array_free(&q), array_free(&k), array_free(&want_q), array_free(&want_k);
    }
    drop(&r), drop(&plain), drop(&long_);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turning_back_is_the_transpose_of_turning),
        cmocka_unit_test(the_gradient_is_turning_back),
        cmocka_unit_test(threads_places_in_memory_and_company_change_no_bit),
        cmocka_unit_test(long_runs_are_turned_in_blocks_that_change_no_bit),
        cmocka_unit_test(the_order_of_axes_in_memory_changes_no_bit),
        cmocka_unit_test(sixteen_bit_tensors_are_the_float_result_rounded_once),
        cmocka_unit_test(float_agrees_with_double),
        cmocka_unit_test(the_reference_executor_rounds_floats_once),
        cmocka_unit_test(packed_sequences_are_turned_as_if_alone),
        cmocka_unit_test(cached_keys_move_from_plan_to_plan),
        cmocka_unit_test(a_context_shift_far_away_is_exact),
        cmocka_unit_test(plans_that_do_not_fit_are_refused),
        cmocka_unit_test(gradients_of_frequencies_are_slopes),
        cmocka_unit_test(rounded_angles_have_no_gradient),
        cmocka_unit_test(attention_turns_as_rotate_does),
        cmocka_unit_test(executors_agree_on_positions_of_several_coordinates),
        cmocka_unit_test(attention_s_gradients_of_frequencies_are_slopes),
        cmocka_unit_test(text_among_pictures_is_plain_rope),
        cmocka_unit_test(masks_count_tokens_where_positions_have_no_order),
        cmocka_unit_test(positions_that_an_encoding_cannot_read_are_refused),
        cmocka_unit_test(frequencies_that_are_no_numbers_are_refused),
        cmocka_unit_test(schedules_without_a_length_follow_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * test_layouts: where tensors lie, and as what they are stored, changes nothing else
 *
 * Models keep q, k and v in one buffer [B, L, heads, D] that a single projection wrote, and want the
 * gradients in one of the same kind; caches are longer than what is used; a prompt's keys are shared by all
 * items (stride 0); keys serve as values. For every encoding that acts in attention and both executors such
 * runs have the bits of contiguous ones and write nowhere else. A gradient or output in another storage type
 * is the number in the executor's own type, rounded once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_part.h"
#include "base/half.h"

static const posenc_dims dims = {
    .B = 2, .H = 4, .G = 2, .Lq = 35, .Lk = 35, .D = 8, .Dv = 8, .d_model = 16, .L = 16};

enum { HEADS = 8 /* H + 2 G */, SLACK = 3 /* numbers after each token */, CANARY = 12345 };

typedef void trial(session *s, const attention_result *plain, const char *name);

/* Each encoding: a plain run, whose results are copied, then the trial's own. */
static void try_all(trial *run)
{
    for (int i = 0; i < posenc_encoding_count() * 2; i++) {
        char    spec[300];
        session plain, s;
        if (!write_small(spec, sizeof spec, posenc_encoding_info_at(i / 2), &dims))
            continue;
        attention_case c = case_make(spec, dims, (uint64_t)(60 + i));
        c.options.mask   = POSENC_MASK_CAUSAL;
        session_open(&plain, &c, i % 2), session_open(&s, &c, i % 2);
        const part all = whole(&c);
        part_forward(&plain, &all);
        part_backward(&plain, &all);
        run(&s, &plain.r, posenc_encoding_spec(c.e));
        session_close(&plain), session_close(&s);
        case_free(&c);
    }
}

static void assert_same_bits_all(session *s, const attention_result *plain, const char *name, const char *how)
{
    attention_result copy = *plain;
    array           *a[RESULTS], *b[RESULTS];
    const int        count = results_of(s->c, &s->r, a);
    results_of(s->c, &copy, b);
    for (int i = 0; i < count; i++)
        if (!are_same_bits(a[i], b[i], s->wide))
            fail_msg("%s, %s, %s: %s has other bits", name, s->wide ? "double" : "float", how,
                     result_name(s->c, i));
}

/* ---- one buffer ---- */

/* Heads first .. first+heads-1 of a buffer [B, L, HEADS, D] with SLACK numbers after each token. */
static posenc_tensor heads_of(void *buffer, int wide, int64_t first, int64_t heads, int64_t L)
{
    const int64_t token = HEADS * dims.D + SLACK;
    posenc_tensor t =
        posenc_tensor_from_blhd(buffer, wide ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32, dims.B, L, HEADS, dims.D);
    t.stride[0] = L * token;
    t.stride[2] = token;
    return cut(t, 1, first, heads);
}

/* Where number n of the tensor lies, counted in elements from its first. */
static int64_t offset_of(const posenc_tensor *t, int64_t n)
{
    int64_t at = 0;
    for (int a = t->ndim - 1; a >= 0; n /= t->shape[a--])
        at += n % t->shape[a] * t->stride[a];
    return at;
}

static void copy_to(const posenc_tensor *to, const array *from, int wide)
{
    for (int64_t n = 0; n < from->count; n++)
        if (wide)
            ((double *)to->data)[offset_of(to, n)] = from->wide[n];
        else
            ((float *)to->data)[offset_of(to, n)] = from->narrow[n];
}

static void copy_from(array *to, const posenc_tensor *from, int wide)
{
    for (int64_t n = 0; n < to->count; n++)
        if (wide)
            to->wide[n] = ((const double *)from->data)[offset_of(from, n)];
        else
            to->narrow[n] = ((const float *)from->data)[offset_of(from, n)];
}

static array make_buffer(void)
{
    array a = array_make(1, (int64_t[]){dims.B * dims.Lk * (HEADS * dims.D + SLACK)});
    for (int64_t n = 0; n < a.count; n++)
        array_set(&a, n, CANARY);
    return a;
}

static void *data_of(const array *a, int wide)
{
    return wide ? (void *)a->wide : (void *)a->narrow;
}

/* The numbers after each token, and any heads beyond `used`, are as they were. */
static void assert_nothing_else_written(const array *a, int wide, int64_t used, const char *name)
{
    const int64_t token = HEADS * dims.D + SLACK;
    for (int64_t n = 0; n < a->count; n++)
        if (n % token >= used * dims.D && number_of(a, n, wide) != CANARY)
            fail_msg("%s: wrote at %d beyond the heads of a token", name, (int)(n % token));
}

static void in_one_buffer(session *s, const attention_result *plain, const char *name)
{
    const int     w   = s->wide;
    const array   qkv = make_buffer(), dqkv = make_buffer(), o = make_buffer(), dout = make_buffer();
    const int64_t G = dims.G, H = dims.H;
    s->in.q        = heads_of(data_of(&qkv, w), w, 0, H, dims.Lq);
    s->in.k        = heads_of(data_of(&qkv, w), w, H, G, dims.Lk);
    s->in.v        = heads_of(data_of(&qkv, w), w, H + G, G, dims.Lk);
    s->grad.dq     = heads_of(data_of(&dqkv, w), w, 0, H, dims.Lq);
    s->grad.dk     = heads_of(data_of(&dqkv, w), w, H, G, dims.Lk);
    s->grad.dv     = heads_of(data_of(&dqkv, w), w, H + G, G, dims.Lk);
    s->out.o       = heads_of(data_of(&o, w), w, 0, H, dims.Lq);
    s->grad.o      = s->out.o;
    s->grad.dout   = heads_of(data_of(&dout, w), w, 0, H, dims.Lq);
    const part all = whole(s->c);
    copy_to(&s->in.q, &s->c->q, w), copy_to(&s->in.k, &s->c->k, w), copy_to(&s->in.v, &s->c->v, w);
    copy_to(&s->grad.dout, &s->c->dout, w);
    part_forward(s, &all);
    part_backward(s, &all);
    copy_from(&s->r.o, &s->out.o, w);
    copy_from(&s->r.dq, &s->grad.dq, w), copy_from(&s->r.dk, &s->grad.dk, w);
    copy_from(&s->r.dv, &s->grad.dv, w);
    assert_same_bits_all(s, plain, name, "one buffer");
    assert_nothing_else_written(&dqkv, w, HEADS, name);
    assert_nothing_else_written(&o, w, H, name);
    array all_buffers[] = {qkv, dqkv, o, dout};
    for (int i = 0; i < 4; i++)
        array_free(&all_buffers[i]);
}

static void q_k_and_v_may_lie_in_one_buffer_and_so_may_their_gradients(void **state)
{
    (void)state;
    try_all(in_one_buffer);
}

/* ---- shared inputs ---- */

static void repeat_first_item(array *a)
{
    for (int64_t n = a->count / dims.B; n < a->count; n++)
        array_set(a, n, a->wide[n % (a->count / dims.B)]);
}

/* Keys of item 0 for all items: written out, and by a stride of 0. The plain run does not matter here. */
static void shared_by_all_items(session *s, const attention_result *plain, const char *name)
{
    session    out;
    const part all = whole(s->c);
    (void)plain;
    repeat_first_item(&s->c->k), repeat_first_item(&s->c->v);
    session_open(&out, s->c, s->wide);
    s->in.k.stride[0] = s->in.v.stride[0] = 0;
    session *both[]                       = {s, &out};
    for (int i = 0; i < 2; i++) {
        part_forward(both[i], &all);
        part_backward(both[i], &all);
    }
    assert_same_bits_all(s, &out.r, name, "keys shared by all items");
    session_close(&out);
}

static void keys_of_all_items_may_be_one(void **state)
{
    (void)state;
    try_all(shared_by_all_items);
}

/* Values that are the keys themselves: one tensor given twice. */
static void keys_as_values(session *s, const attention_result *plain, const char *name)
{
    session    out;
    const part all = whole(s->c);
    (void)plain;
    for (int64_t n = 0; n < s->c->k.count; n++)
        array_set(&s->c->v, n, s->c->k.wide[n]);
    session_open(&out, s->c, s->wide);
    s->in.v         = s->in.k;
    session *both[] = {s, &out};
    for (int i = 0; i < 2; i++) {
        part_forward(both[i], &all);
        part_backward(both[i], &all);
    }
    assert_same_bits_all(s, &out.r, name, "keys as values");
    session_close(&out);
}

static void keys_may_be_the_values_too(void **state)
{
    (void)state;
    try_all(keys_as_values);
}

/* ---- storage ---- */

static double rounded(double x, posenc_dtype dtype)
{
    switch (dtype) {
    case POSENC_DTYPE_F16: return (double)pe_half_f16_to_float(pe_half_float_to_f16((float)x));
    case POSENC_DTYPE_BF16: return (double)pe_half_bf16_to_float(pe_half_float_to_bf16((float)x));
    case POSENC_DTYPE_F32: return (double)(float)x;
    default: return x;
    }
}

static double stored(const void *data, posenc_dtype dtype, int64_t n)
{
    switch (dtype) {
    case POSENC_DTYPE_F16: return (double)pe_half_f16_to_float(((const uint16_t *)data)[n]);
    case POSENC_DTYPE_BF16: return (double)pe_half_bf16_to_float(((const uint16_t *)data)[n]);
    case POSENC_DTYPE_F32: return (double)((const float *)data)[n];
    default: return ((const double *)data)[n];
    }
}

/* Gradients in this type, contiguous; free each. */
static void with_gradients_in(session *s, posenc_dtype dtype, posenc_tensor to[3])
{
    const attention_case *c      = s->c;
    const array          *like[] = {&c->q, &c->k, &c->v};
    const part            all    = whole(c);
    for (int i = 0; i < 3; i++)
        to[i] = posenc_tensor_contiguous(malloc((size_t)like[i]->count * 8), dtype, 4, like[i]->shape);
    s->grad.dq = to[0], s->grad.dk = to[1], s->grad.dv = to[2];
    part_forward(s, &all);
    part_backward(s, &all);
}

/* In doubles a gradient is what the executor has before it stores; in its own type it is that of the plain
   run. */
static void in_every_type(session *s, const attention_result *plain, const char *name)
{
    static const posenc_dtype dtypes[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F16, POSENC_DTYPE_BF16};
    const array              *own[]    = {&plain->dq, &plain->dk, &plain->dv};
    posenc_tensor             exact[3], to[3];
    with_gradients_in(s, POSENC_DTYPE_F64, exact);
    for (int t = 0; t < 3; t++) {
        with_gradients_in(s, dtypes[t], to);
        for (int i = 0; i < 3; i++) {
            for (int64_t n = 0; n < own[i]->count; n++) {
                const double x   = stored(exact[i].data, POSENC_DTYPE_F64, n),
                             got = stored(to[i].data, dtypes[t], n);
                if (got != rounded(x, dtypes[t]) ||
                    number_of(own[i], n, s->wide) != (s->wide ? x : (double)(float)x))
                    fail_msg(
                        "%s, %s, type %d: %s at %d is %.9g and %.9g in the executor's type; exactly %.17g",
                        name, s->wide ? "reference" : "tiled", (int)dtypes[t], result_name(s->c, 2 + i),
                        (int)n, got, number_of(own[i], n, s->wide), x);
            }
            free(to[i].data);
        }
    }
    for (int i = 0; i < 3; i++)
        free(exact[i].data);
}

static void a_gradient_in_another_type_is_the_same_rounded(void **state)
{
    (void)state;
    try_all(in_every_type);
}

/* Inputs stored in 16 bits: the gradients are those of the numbers they hold, stored as floats or doubles. */
static void from_sixteen_bits(session *s, const attention_result *plain, const char *name)
{
    static const posenc_dtype kinds[] = {POSENC_DTYPE_BF16, POSENC_DTYPE_F16, POSENC_DTYPE_BF16};
    array                    *from[]  = {&s->c->q, &s->c->k, &s->c->v};
    session                   out;
    const part                all  = whole(s->c);
    posenc_tensor            *to[] = {&s->in.q, &s->in.k, &s->in.v};
    (void)plain;
    for (int i = 0; i < 3; i++) {
        uint16_t *data = malloc((size_t)from[i]->count * sizeof *data);
        for (int64_t n = 0; n < from[i]->count; n++) {
            const float x = from[i]->narrow[n];
            data[n]       = kinds[i] == POSENC_DTYPE_F16 ? pe_half_float_to_f16(x) : pe_half_float_to_bf16(x);
            array_set(from[i], n, rounded((double)x, kinds[i]));
        }
        *to[i] = posenc_tensor_contiguous(data, kinds[i], 4, from[i]->shape);
    }
    session_open(&out, s->c, s->wide);
    session *both[] = {s, &out};
    for (int i = 0; i < 2; i++) {
        part_forward(both[i], &all);
        part_backward(both[i], &all);
    }
    assert_same_bits_all(s, &out.r, name, "inputs of 16 bits");
    session_close(&out);
    for (int i = 0; i < 3; i++)
        free(to[i]->data);
}

static void inputs_of_sixteen_bits_are_the_numbers_they_hold(void **state)
{
    (void)state;
    try_all(from_sixteen_bits);
}

/* o in 16 bits and lse in the other type: the executor's numbers, rounded once; without lse o is the same. */
static void other_outputs(session *s, const attention_result *plain, const char *name)
{
    const posenc_dtype other = s->wide ? POSENC_DTYPE_F32 : POSENC_DTYPE_F64;
    const array       *o = &plain->o, *lse = &plain->lse;
    const part         all = whole(s->c);
    s->out.o   = posenc_tensor_contiguous(malloc((size_t)o->count * 2), POSENC_DTYPE_BF16, 4, o->shape);
    s->out.lse = posenc_tensor_contiguous(malloc((size_t)lse->count * 8), other, 3, lse->shape);
    for (int with = 1; with >= 0; with--) {
        void *const place = s->out.lse.data;
        memset(s->out.o.data, 0, (size_t)o->count * 2);
        s->out.lse.data = with ? place : NULL;
        part_forward(s, &all);
        s->out.lse.data = place;
        for (int64_t n = 0; n < o->count; n++)
            if (stored(s->out.o.data, POSENC_DTYPE_BF16, n) !=
                rounded(number_of(o, n, s->wide), POSENC_DTYPE_BF16))
                fail_msg("%s: o in bf16 at %d is not o rounded", name, (int)n);
    }
    for (int64_t n = 0; n < lse->count; n++)
        if (!(fabs(stored(s->out.lse.data, other, n) - number_of(lse, n, s->wide)) <=
              0x1p-23 * fabs(number_of(lse, n, s->wide))))
            fail_msg("%s: lse in another type at %d is another number", name, (int)n);
    free(s->out.o.data), free(s->out.lse.data);
}

static void outputs_in_another_type_are_the_same_rounded(void **state)
{
    (void)state;
    try_all(other_outputs);
}

/* Parameters and their gradients in the type that the executor does not compute in. The numbers are floats,
   so that both types hold them. A gradient of each pair is summed in the caller's memory, in its type. */
static void parameters_in_the_other_type(session *s, const attention_result *plain, const char *name)
{
    const part       all   = whole(s->c);
    const double     slack = goes_by_place(name, &dims) == 2 ? 1e-5 : 0;
    attention_result copy  = *plain;
    array           *a[RESULTS], *b[RESULTS];
    const int        count = results_of(s->c, &s->r, a);
    results_of(s->c, &copy, b);
    for (int i = 0; i < s->c->param_count; i++) {
        s->params[i]  = array_tensor(&s->c->params[i], !s->wide);
        s->dparams[i] = array_tensor(&s->r.dparams[i], !s->wide);
    }
    part_forward(s, &all);
    part_backward(s, &all);
    for (int i = 0; i < count; i++)
        for (int64_t n = 0; n < a[i]->count; n++) {
            const double got  = number_of(a[i], n, i < 5 ? s->wide : !s->wide),
                         want = number_of(b[i], n, s->wide);
            if (i < 5 ? got != want : fabs((double)((float)got - (float)want)) > slack)
                fail_msg("%s, %s: %s at %d is %.17g with parameters in the other type, not %.17g", name,
                         s->wide ? "reference" : "tiled", result_name(s->c, i), (int)n, got, want);
        }
}

static void parameters_of_either_type_are_the_same_numbers(void **state)
{
    (void)state;
    try_all(parameters_in_the_other_type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q_k_and_v_may_lie_in_one_buffer_and_so_may_their_gradients),
        cmocka_unit_test(keys_of_all_items_may_be_one),
        cmocka_unit_test(keys_may_be_the_values_too),
        cmocka_unit_test(a_gradient_in_another_type_is_the_same_rounded),
        cmocka_unit_test(inputs_of_sixteen_bits_are_the_numbers_they_hold),
        cmocka_unit_test(outputs_in_another_type_are_the_same_rounded),
        cmocka_unit_test(parameters_of_either_type_are_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

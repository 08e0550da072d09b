/* SPDX-License-Identifier: MIT */
/*
 * test_caches: keys and values as engines keep them
 *
 * Items of a batch with keys of different lengths, keys in pages in any order, rows of 8 bits, padding full
 * of NaN, and gradients through lse: for every encoding that acts in attention, in float and in double. What
 * is compared with are runs of one item with rows side by side, to the bit where the arithmetic is the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_part.h"
#include "base/half.h"

static const posenc_dims dims = {
    .B = 3, .H = 4, .G = 2, .Lq = 5, .Lk = 72, .D = 32, .Dv = 32, .d_model = 64, .L = 16};
static const int64_t lengths[] = {72, 31, 0}; /* of keys, item by item */

enum { PAGE = 12, PAGES = 6, SPARE = 3 }; /* keys of a page, pages of an item, and those that nobody needs */

/* Of many queries, which go another way. */
static const posenc_dims prompt = {
    .B = 3, .H = 4, .G = 2, .Lq = 70, .Lk = 72, .D = 32, .Dv = 32, .d_model = 64, .L = 16};

typedef void with_encoding(attention_case *c, int wide);

/* Of an encoding, whatever others the registry has. */
static uint64_t seed_of(const char *name)
{
    uint64_t seed = 70;
    for (; *name; name++)
        seed = 31 * seed + (unsigned char)*name;
    return seed;
}

/* Every encoding that acts in attention, with queries at the end of the longest item. */
static void visit(with_encoding *test, const posenc_dims *d, int mask, int most_by_place)
{
    for (int i = 0; i < posenc_encoding_count() * 2; i++) {
        char spec[300];
        if (!write_small(spec, sizeof spec, posenc_encoding_info_at(i / 2), d) ||
            goes_by_place(spec, d) > most_by_place || needs_tokens(spec))
            continue;
        attention_case c = case_make(spec, *d, seed_of(posenc_encoding_info_at(i / 2)->name));
        c.options.mask   = mask;
        test(&c, i % 2);
        case_free(&c);
    }
}

static void assert_same(attention_case *c, attention_result *got, attention_result *want, int wide, int most,
                        double allowed, const char *what)
{
    array    *a[RESULTS], *b[RESULTS];
    const int count = results_of(c, got, a);
    results_of(c, want, b);
    for (int i = 0; i < count && i < most; i++) {
        const double off = result_distance(c, i, a[i], b[i], wide);
        if (!(off <= allowed))
            fail_msg("%s, %s, mask %s: %s is off by %.3g, not %.3g, in %s", posenc_encoding_spec(c->e), what,
                     mask_text(c->options.mask), result_name(c, i), off, allowed, wide ? "double" : "float");
    }
}

static void fill_with_nan(array *a, int64_t from, int64_t count)
{
    for (int64_t i = from; i < from + count; i++)
        a->wide[i] = (double)(a->narrow[i] = NAN);
}

static void run_all(session *s)
{
    posenc_error err;
    if (posenc_attend(s->plan, &s->in, &s->out, &s->work, &err))
        case_stop("attend", s->c, &err);
    s->grad.dparams = s->dparams;
    if (posenc_attend_backward(s->plan, &s->in, &s->grad, &s->work, &err))
        case_stop("backward", s->c, &err);
}

/* ---- lengths ---- */

/* What lies beyond a length: not read, and without a gradient. */
static void spoil_beyond(attention_case *c)
{
    for (int64_t x = 0; x < dims.B * dims.G; x++) {
        const int64_t length = lengths[x / dims.G], rest = dims.Lk - length, row = x * dims.Lk + length;
        fill_with_nan(&c->k, row * dims.D, rest * dims.D);
        fill_with_nan(&c->v, row * dims.Dv, rest * dims.Dv);
    }
}

static void each_item_alone(session *s)
{
    memset(s->r.dk.wide, 0, (size_t)s->r.dk.count * sizeof(double));
    for (int64_t b = 0; b < dims.B; b++) {
        part p = whole(s->c);
        p.b    = b;
        p.B    = 1;
        p.Lk   = lengths[b];
        if (!p.Lk)
            continue;
        part_forward(s, &p);
        part_backward(s, &p);
    }
    const int64_t rows = dims.H * s->c->dims.Lq;
    for (int64_t x = 2 * rows; x < 3 * rows; x++) /* the item without keys */
        s->r.lse.wide[x] = (double)(s->r.lse.narrow[x] = s->plan->terms.stick.is_given ? 0.0f : -INFINITY);
}

static void go_by_length(attention_case *c, int wide)
{
    session one, all;
    session_open(&one, c, wide), session_open(&all, c, wide);
    each_item_alone(&one);
    spoil_beyond(c);
    const int32_t       narrow[] = {72, 31, 0};
    const int           is_short = wide; /* both types of numbers */
    const posenc_tensor t =
        posenc_tensor_contiguous(is_short ? (void *)(uintptr_t)narrow : (void *)(uintptr_t)lengths,
                                 is_short ? POSENC_DTYPE_I32 : POSENC_DTYPE_I64, 1, (int64_t[]){dims.B});
    all.in.k_lengths = t;
    fill_with_nan(&all.r.dk, 0, all.r.dk.count);
    fill_with_nan(&all.r.dv, 0, all.r.dv.count);
    fill_with_nan(&all.r.dq, 0, all.r.dq.count);
    fill_with_nan(&all.r.o, 0, all.r.o.count);
    run_all(&all);
    assert_same(c, &all.r, &one.r, wide, 5, 0, "lengths");
    assert_same(c, &all.r, &one.r, wide, RESULTS, wide ? 1e-13 : 1e-6, "lengths");
    session_close(&one), session_close(&all);
}

static void items_with_lengths_are_what_they_are_alone(void **state)
{
    (void)state;
    visit(go_by_length, &dims, POSENC_MASK_CAUSAL, 2);
    visit(go_by_length, &prompt, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING, 2);
}

/* ---- pages ---- */

/* Page number i of item b: all mixed. */
static int64_t page_of(int64_t b, int64_t i)
{
    return (8 * (b * PAGES + i) + 2) % (dims.B * PAGES + SPARE);
}

/* Rows [B,G,Lk,D] as pages [N,G,PAGE,D]; what no item needs is NaN. */
static array in_pages(const array *rows)
{
    array pages = array_make4(dims.B * PAGES + SPARE, dims.G, PAGE, rows->shape[3]);
    fill_with_nan(&pages, 0, pages.count);
    for (int64_t b = 0; b < dims.B; b++)
        for (int64_t g = 0; g < dims.G; g++)
            for (int64_t j = 0; j < lengths[b]; j++) {
                const int64_t to   = ((page_of(b, j / PAGE) * dims.G + g) * PAGE + j % PAGE) * rows->shape[3],
                              from = ((b * dims.G + g) * dims.Lk + j) * rows->shape[3];
                for (int64_t d = 0; d < rows->shape[3]; d++)
                    array_set(&pages, to + d, rows->wide[from + d]);
            }
    return pages;
}

static void go_by_page(attention_case *c, int wide)
{
    session one, all;
    int64_t table[3 * PAGES];
    array   k = in_pages(&c->k), v = in_pages(&c->v);
    session_open(&one, c, wide), session_open(&all, c, wide);
    each_item_alone(&one);
    for (int64_t x = 0; x < dims.B * PAGES; x++)
        table[x] = x % PAGES * PAGE < lengths[x / PAGES] ? page_of(x / PAGES, x % PAGES) : -1;
    all.in.k = array_tensor(&k, wide);
    all.in.v = array_tensor(&v, wide);
    all.in.k_lengths =
        posenc_tensor_contiguous((void *)(uintptr_t)lengths, POSENC_DTYPE_I64, 1, (int64_t[]){dims.B});
    all.in.k_pages = posenc_tensor_contiguous(table, POSENC_DTYPE_I64, 2, (int64_t[]){dims.B, PAGES});
    posenc_error err;
    if (posenc_attend(all.plan, &all.in, &all.out, &all.work, &err))
        case_stop("attend", c, &err);
    assert_same(c, &all.r, &one.r, wide, 2, wide ? 0 : 2e-6, "pages");
    assert_int_equal(posenc_attend_backward(all.plan, &all.in, &all.grad, &all.work, &err),
                     POSENC_ERROR_UNSUPPORTED);
    array_free(&k), array_free(&v);
    session_close(&one), session_close(&all);
}

static void pages_in_any_order_are_rows_side_by_side(void **state)
{
    (void)state;
    visit(go_by_page, &dims, POSENC_MASK_CAUSAL, 2);
    visit(go_by_page, &dims, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING, 2);
    visit(go_by_page, &prompt, POSENC_MASK_CAUSAL, 2);
}

/* ---- padding ---- */

static void spoil_padding(attention_case *c)
{
    for (int64_t x = 0; x < c->dims.B * c->dims.G; x++)
        for (int64_t j = 0; j < c->dims.Lk; j++)
            if (!c->key_allowed[x / c->dims.G * c->dims.Lk + j]) {
                const int64_t row = x * c->dims.Lk + j;
                fill_with_nan(&c->k, row * c->dims.D, c->dims.D);
                fill_with_nan(&c->v, row * c->dims.Dv, c->dims.Dv);
            }
}

static void go_with_padding(attention_case *c, int wide)
{
    session clean, full;
    session_open(&clean, c, wide), session_open(&full, c, wide);
    run_all(&clean);
    spoil_padding(c);
    run_all(&full);
    assert_same(c, &full.r, &clean.r, wide, RESULTS, 0, "padding of NaN");
    session_close(&clean), session_close(&full);
}

static void padding_is_not_read(void **state)
{
    (void)state;
    visit(go_with_padding, &dims, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING, 2);
    visit(go_with_padding, &prompt, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING, 2);
}

/* ---- rows of 8 bits ---- */

/* x as Q8_0 stores it, and what it then is. */
static void to_q8(unsigned char *to, array *x)
{
    for (int64_t block = 0; block < x->count / PE_HALF_Q8; block++, to += PE_HALF_Q8_BYTES) {
        double most = 0;
        for (int i = 0; i < PE_HALF_Q8; i++)
            most = fmax(most, fabs(x->wide[block * PE_HALF_Q8 + i]));
        const uint16_t scale = pe_half_float_to_f16((float)(most / 127));
        const float    step  = pe_half_f16_to_float(scale);
        memcpy(to, &scale, sizeof scale);
        for (int i = 0; i < PE_HALF_Q8; i++) {
            const int n =
                step > 0 ? (int)fmin(127, fmax(-127, rint(x->wide[block * PE_HALF_Q8 + i] / (double)step)))
                         : 0;
            to[2 + i] = (unsigned char)(signed char)n;
            array_set(x, block * PE_HALF_Q8 + i, (double)(step * (float)n));
        }
    }
}

/* What a byte of e4m3 means, from its definition: sign, four bits of exponent with bias 7, three of fraction.
 */
static double from_e4m3(int byte)
{
    const int    exponent = byte >> 3 & 15, fraction = byte & 7;
    const double size = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return (byte & 127) == 127 ? (double)NAN : byte >> 7 ? -size : size;
}

/* Random bytes, and what they then are: times the scale of their key head. */
static void to_e4m3(unsigned char *to, array *x, const float scale[2], const char *name)
{
    const int64_t each = x->shape[2] * x->shape[3];
    for (int64_t i = 0; i < x->count; i++) {
        to[i] = (unsigned char)(posenc_random_uniform(3, name, (uint64_t)i) * 256);
        if ((to[i] & 127) > 0x48) /* keep them below 5, and none NaN */
            to[i] = (unsigned char)(to[i] & 0xc7);
        array_set(x, i, from_e4m3(to[i]) * (double)scale[i / each % x->shape[1]]);
    }
}

static void go_with_bytes(attention_case *c, int wide)
{
    session        s, exact;
    unsigned char *k = malloc((size_t)c->k.count * 2), *v = malloc((size_t)c->v.count * 2);
    float          k_scale[] = {0.25f, 0.5f}, v_scale[] = {1.5f, 0.75f};
    posenc_error   err;
    for (int type = POSENC_DTYPE_F8_E4M3; type <= POSENC_DTYPE_Q8_0; type++) {
        const int is_q8 = type == POSENC_DTYPE_Q8_0;
        if (is_q8)
            to_q8(k, &c->k), to_q8(v, &c->v);
        else
            to_e4m3(k, &c->k, k_scale, "k bytes"), to_e4m3(v, &c->v, v_scale, "v bytes");
        session_open(&s, c, wide), session_open(&exact, c, wide);
        s.in.k = posenc_tensor_contiguous(k, (posenc_dtype)type, 4, c->k.shape);
        s.in.v = posenc_tensor_contiguous(v, (posenc_dtype)type, 4, c->v.shape);
        if (!is_q8) {
            s.in.k_scale = posenc_tensor_contiguous(k_scale, POSENC_DTYPE_F32, 1, (int64_t[]){2});
            s.in.v_scale = posenc_tensor_contiguous(v_scale, POSENC_DTYPE_F32, 1, (int64_t[]){2});
        }
        if (posenc_attend(s.plan, &s.in, &s.out, &s.work, &err) ||
            posenc_attend(exact.plan, &exact.in, &exact.out, &exact.work, &err))
            case_stop("attend", c, &err);
        assert_same(c, &s.r, &exact.r, wide, 2, wide ? 1e-12 : 2e-6, is_q8 ? "Q8_0" : "F8_E4M3");
        assert_int_equal(posenc_attend_backward(s.plan, &s.in, &s.grad, &s.work, &err),
                         POSENC_ERROR_UNSUPPORTED);
        session_close(&s), session_close(&exact);
    }
    free(k), free(v);
}

static void bytes_count_as_the_floats_they_mean(void **state)
{
    (void)state;
    visit(go_with_bytes, &dims, POSENC_MASK_CAUSAL, 2);
    visit(go_with_bytes, &prompt, POSENC_MASK_CAUSAL, 2);
}

static void every_byte_of_e4m3_is_its_number(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        const double want = from_e4m3(byte), got = (double)pe_half_e4m3_to_float((uint8_t)byte);
        assert_true(isnan(want) ? isnan(got) : want == got && signbit(want) == signbit(got));
    }
}

/* ---- gradients through lse ---- */

/* Row by row: what an output and a lse of a part get of the cotangent of what they are joined to. */
static void split_cotangent(const session *whole_run, const session *part_run, array *dout, array *dlse)
{
    const int wide = whole_run->wide;
    for (int64_t row = 0; row < dlse->count; row++) {
        const double part_lse = number_of(&part_run->r.lse, row, wide);
        const double share =
            part_lse == -INFINITY ? 0 : exp(part_lse - number_of(&whole_run->r.lse, row, wide));
        double sum = 0;
        for (int64_t d = 0; d < dims.Dv; d++) {
            const int64_t at = row * dims.Dv + d;
            const double  c  = number_of(&whole_run->c->dout, at, wide);
            sum += c * (number_of(&part_run->r.o, at, wide) - number_of(&whole_run->r.o, at, wide));
            array_set(dout, at, share * c);
            dout->wide[at] = share * c;
        }
        array_set(dlse, row, share * sum);
        dlse->wide[row] = share * sum;
    }
}

static void train_through_parts(attention_case *c, int wide)
{
    static const int64_t from[] = {0, 40}, to[] = {40, 72};
    session              once, parts;
    session_open(&once, c, wide), session_open(&parts, c, wide);
    const part all = whole(c);
    part_forward(&once, &all);
    part_backward(&once, &all);
    array dout = array_make4(dims.B, dims.H, dims.Lq, dims.Dv),
          dlse = array_make(3, (int64_t[]){dims.B, dims.H, dims.Lq}),
          dq   = array_make4(dims.B, dims.H, dims.Lq, dims.D);
    for (int n = 0; n < 2; n++) {
        part p = all;
        p.j    = from[n];
        p.Lk   = to[n] - from[n];
        part_forward(&parts, &p);
        split_cotangent(&once, &parts, &dout, &dlse);
        parts.grad.dout = array_tensor(&dout, wide);
        parts.grad.dlse = array_tensor(&dlse, wide);
        part_backward(&parts, &p);
        array_add(&dq, &parts.r.dq);
    }
    memcpy(parts.r.dq.wide, dq.wide, (size_t)dq.count * sizeof *dq.wide);
    memcpy(parts.r.dq.narrow, dq.narrow, (size_t)dq.count * sizeof *dq.narrow);
    memcpy(parts.r.o.wide, once.r.o.wide, (size_t)once.r.o.count * sizeof(double)); /* only gradients count */
    memcpy(parts.r.o.narrow, once.r.o.narrow, (size_t)once.r.o.count * sizeof(float));
    memcpy(parts.r.lse.wide, once.r.lse.wide, (size_t)once.r.lse.count * sizeof(double));
    memcpy(parts.r.lse.narrow, once.r.lse.narrow, (size_t)once.r.lse.count * sizeof(float));
    assert_same(c, &parts.r, &once.r, wide, RESULTS, wide ? 1e-11 : 2e-4, "parts of the keys");
    array_free(&dout), array_free(&dlse), array_free(&dq);
    session_close(&once), session_close(&parts);
}

static void parts_are_trained_through_their_log_sum_exp(void **state)
{
    (void)state;
    visit(train_through_parts, &dims, POSENC_MASK_CAUSAL, 0);
    visit(train_through_parts, &dims, POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING, 0);
}

/* ---- refusals ---- */

static void assert_refused(const session *s, const posenc_attend_in *in, posenc_status status,
                           const char *sentence)
{
    posenc_error err;
    assert_int_equal(posenc_attend(s->plan, in, &s->out, &s->work, &err), status);
    if (!strstr(err.message, sentence))
        fail_msg("'%s' instead of '%s'", err.message, sentence);
}

static void wrong_lengths_and_pages_are_refused(void **state)
{
    (void)state;
    attention_case c = case_make("alibi", dims, 9);
    session        s;
    session_open(&s, &c, 0);
    int64_t          wrong[] = {72, 73, 1}, negative[] = {1, 2, -1}, two[] = {1, 2};
    float            scale[] = {1, 1};
    posenc_attend_in in      = s.in;
    in.k_lengths             = posenc_tensor_contiguous(wrong, POSENC_DTYPE_I64, 1, (int64_t[]){3});
    assert_refused(&s, &in, POSENC_ERROR_RANGE, "k_lengths[1] is 73; it must be from 0 to 72");
    in.k_lengths.data = negative;
    assert_refused(&s, &in, POSENC_ERROR_RANGE, "k_lengths[2] is -1; it must be from 0 to 72");
    in.k_lengths = posenc_tensor_contiguous(two, POSENC_DTYPE_I64, 1, (int64_t[]){2});
    assert_refused(&s, &in, POSENC_ERROR_SHAPE, "k_lengths has shape [2]; it must be [3]");
    in         = s.in;
    in.k_scale = posenc_tensor_contiguous(scale, POSENC_DTYPE_F32, 1, (int64_t[]){2});
    assert_refused(&s, &in, POSENC_ERROR_ARGUMENT, "k_scale belongs to rows of F8_E4M3");
    in         = s.in;
    in.k_pages = posenc_tensor_contiguous(wrong, POSENC_DTYPE_I64, 2, (int64_t[]){3, 1});
    assert_refused(&s, &in, POSENC_ERROR_RANGE, "k_pages[0,0] is 72; it must be from 0 to 2, as k has pages");
    session_close(&s);
    case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_with_lengths_are_what_they_are_alone),
        cmocka_unit_test(pages_in_any_order_are_rows_side_by_side),
        cmocka_unit_test(padding_is_not_read),
        cmocka_unit_test(bytes_count_as_the_floats_they_mean),
        cmocka_unit_test(every_byte_of_e4m3_is_its_number),
        cmocka_unit_test(parts_are_trained_through_their_log_sum_exp),
        cmocka_unit_test(wrong_lengths_and_pages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A calculation on named arrays: how arrays are found, converted and reshaped, what their shapes say about
 * settings, whose numbers a parameter has, and that the first failure stays
 */
#include "base/tensor.h"
#include "verify/calc.h"

#include <math.h>

#include "base/half.h"
#include "files/scratch.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* A file of the arrays, read. */
static pe_calc calc_of(posenc_arrays *set)
{
    pe_calc p = pe_calc_new("none");
    if (posenc_arrays_write(set, scratch("in.npz"), &p.err))
        fail_msg("%s", p.err.message);
    posenc_arrays_free(set);
    pe_calc_read(&p, scratch("in.npz"));
    assert_false(pe_calc_failed(&p));
    return p;
}

/* An array 0, 1, 2, ... */
static posenc_tensor *add_counted(posenc_arrays *set, const char *name, posenc_dtype dtype, int32_t ndim,
                                  const int64_t *shape)
{
    posenc_tensor *t = posenc_arrays_add(set, name, dtype, ndim, shape);
    assert_non_null(t);
    for (int64_t i = 0; i < pe_tensor_elements(t); i++)
        pe_calc_put(t, i, (double)i);
    return t;
}

/* The calculation has failed with our sentence, which is `sentence`; it ends here. */
static void failed_with(pe_calc *p, const char *sentence)
{
    assert_true(pe_calc_failed(p));
    assert_string_equal(p->sentence, sentence);
    pe_calc_free(p);
}

/* The same with a sentence of the library's. */
static void library_failed_with(pe_calc *p, const char *part)
{
    assert_true(pe_calc_failed(p));
    assert_string_equal(p->sentence, "");
    if (!strstr(p->err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", p->err.message, part);
    pe_calc_free(p);
}

/* ---------------------------------------------------------------- finding ------------------- */

static void an_array_is_found_by_any_of_its_names(void **state)
{
    posenc_arrays set = {0};
    (void)state;
    add_counted(&set, "in_q", POSENC_DTYPE_F64, 1, SHAPE(3));
    add_counted(&set, "other", POSENC_DTYPE_F64, 1, SHAPE(2));
    pe_calc p = calc_of(&set);
    assert_int_equal(pe_calc_find(&p, NAMES("q", "in_q")).shape[0], 3);
    assert_int_equal(pe_calc_need(&p, NAMES("in_q", "q")).shape[0], 3);
    assert_null(pe_calc_find(&p, NAMES("k", "in_k")).data);
    assert_false(pe_calc_failed(&p));
    for (int i = 0; i < p.file.count; i++) /* what nobody asked for can be told */
        assert_int_equal(p.used[i], !strcmp(p.file.items[i].name, "in_q"));
    pe_calc_free(&p);
}

static void two_names_of_one_array_are_refused(void **state)
{
    posenc_arrays set = {0};
    (void)state;
    add_counted(&set, "q", POSENC_DTYPE_F64, 1, SHAPE(3));
    add_counted(&set, "in_q", POSENC_DTYPE_F64, 1, SHAPE(3));
    pe_calc p = calc_of(&set);
    assert_null(pe_calc_find(&p, NAMES("q", "in_q")).data);
    failed_with(&p, "it has both q and in_q, two names of one array; keep one");
}

static void an_array_that_is_needed_is_named_where_it_is_missing(void **state)
{
    posenc_arrays set = {0};
    (void)state;
    add_counted(&set, "k", POSENC_DTYPE_F64, 1, SHAPE(3));
    pe_calc p = calc_of(&set);
    assert_null(pe_calc_need(&p, NAMES("q", "in_q")).data);
    failed_with(&p, "it has no array q (or in_q)");
}

static void complex_numbers_are_for_those_who_ask_for_them(void **state)
{
    posenc_arrays set = {0};
    (void)state;
    add_counted(&set, "q", POSENC_DTYPE_F64, 2, SHAPE(3, 2));
    set.items[0].is_complex = 1;
    pe_calc p               = calc_of(&set);
    assert_int_equal(pe_calc_find_array(&p, NAMES("q"))->tensor.ndim, 2);
    assert_null(pe_calc_find(&p, NAMES("q")).data);
    failed_with(&p, "q holds complex numbers; it must be real");
}

static void a_file_that_cannot_be_read_is_an_argument(void **state)
{
    pe_calc p = pe_calc_new("none");
    (void)state;
    pe_calc_read(&p, scratch("absent.npz"));
    assert_int_equal(p.err.status, POSENC_ERROR_ARGUMENT);
    assert_null(pe_calc_need(&p, NAMES("q", "in_q")).data);
    library_failed_with(&p, "absent.npz");
}

/* After a failure all helpers do nothing: a command looks once, at the end, and reads the first reason. */
static void the_first_failure_stays(void **state)
{
    pe_calc             p    = pe_calc_new("none");
    const int64_t       two  = 2;
    double              x[2] = {1, 2};
    const posenc_tensor some = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 1, &two);
    (void)state;
    pe_calc_refuse(&p, "the %s", "first");
    pe_calc_refuse(&p, "the second");
    pe_calc_refuse_memory(&p, "a third");
    pe_calc_read(&p, scratch("absent.npz"));
    pe_calc_encoding(&p, "no such encoding", NULL);
    pe_calc_infer(&p, "no such encoding", "");
    pe_calc_plan(&p, POSENC_RUN_FORWARD);
    pe_calc_params(&p, POSENC_DTYPE_F64);
    assert_null(pe_calc_make(&p, POSENC_DTYPE_F64, 1, &two).data);
    assert_null(pe_calc_make_like(&p, POSENC_DTYPE_F32, &some).data);
    assert_null(pe_calc_convert(&p, POSENC_DTYPE_F32, &some).data);
    assert_null(pe_calc_result(&p, "o", POSENC_DTYPE_F64, 1, &two).data);
    assert_null(pe_calc_block(&p, 8));
    assert_string_equal(pe_calc_text(&p, "words"), "");
    assert_int_equal(p.count, 0);
    assert_int_equal(p.err.status, POSENC_ERROR_ARGUMENT);
    failed_with(&p, "the first");
}

static void a_lack_of_memory_is_told_as_such(void **state)
{
    const int64_t huge[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 1};
    pe_calc       p       = pe_calc_new("none");
    (void)state;
    assert_null(pe_calc_result(&p, "o", POSENC_DTYPE_F64, 3, huge).data);
    assert_int_equal(p.err.status, POSENC_ERROR_MEMORY);
    failed_with(&p, "not enough memory for o");
}

/* ---------------------------------------------------------------- numbers ------------------- */

/* Every bit pattern, against the conversions of the kernels, which share no line with these. */
static void sixteen_bits_are_the_numbers_that_they_stand_for(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        uint16_t            half = (uint16_t)bits;
        const int64_t       one  = 1;
        const posenc_tensor f16  = posenc_tensor_contiguous(&half, POSENC_DTYPE_F16, 1, &one);
        const posenc_tensor bf16 = posenc_tensor_contiguous(&half, POSENC_DTYPE_BF16, 1, &one);
        const double        x = pe_calc_element(&f16, 0), wanted = (double)pe_half_f16_to_float(half);
        const double        y = pe_calc_element(&bf16, 0), wanted_y = (double)pe_half_bf16_to_float(half);
        if ((x != wanted && !(isnan(x) && isnan(wanted))) || !signbit(x) != !signbit(wanted))
            fail_msg("float16 %04x is %g, not %g", bits, x, wanted);
        if ((y != wanted_y && !(isnan(y) && isnan(wanted_y))) || !signbit(y) != !signbit(wanted_y))
            fail_msg("bfloat16 %04x is %g, not %g", bits, y, wanted_y);
    }
}

static void numbers_are_converted_and_masks_are_0_and_1(void **state)
{
    static const struct {
        posenc_dtype to;
        double       wanted[4];
    } rows[]           = {{POSENC_DTYPE_F32, {0, 1, -7, 300}},
                          {POSENC_DTYPE_I64, {0, 1, -7, 300}},
                          {POSENC_DTYPE_U8, {0, 1, 1, 1}}};
    double        x[4] = {0, 1, -7, 300};
    pe_calc       p    = pe_calc_new("none");
    posenc_tensor from = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 2, SHAPE(2, 2)), none = {0};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const posenc_tensor to = pe_calc_convert(&p, rows[r].to, &from);
        assert_int_equal(to.dtype, rows[r].to);
        assert_int_equal(to.ndim, 2);
        for (int64_t i = 0; i < 4; i++)
            assert_true(pe_calc_element(&to, i) == rows[r].wanted[i]);
    }
    assert_ptr_equal(pe_calc_convert(&p, POSENC_DTYPE_F64, &from).data, x); /* nothing to do: not copied */
    assert_null(pe_calc_convert(&p, POSENC_DTYPE_F32, &none).data);
    assert_null(pe_calc_convert(&p, POSENC_DTYPE_F32, NULL).data);
    assert_false(pe_calc_failed(&p));
    pe_calc_free(&p);
}

static void positions_stay_whole_where_they_are(void **state)
{
    static const struct {
        posenc_dtype from, to;
    } rows[] = {{POSENC_DTYPE_U8, POSENC_DTYPE_I64},
                {POSENC_DTYPE_I64, POSENC_DTYPE_I64},
                {POSENC_DTYPE_F32, POSENC_DTYPE_F64},
                {POSENC_DTYPE_F64, POSENC_DTYPE_F64}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        posenc_arrays set = {0};
        pe_calc_put(posenc_arrays_add(&set, "pos", rows[r].from, 1, SHAPE(2)), 1, 1);
        pe_calc             p = calc_of(&set);
        const posenc_tensor t = pe_calc_find_positions(&p, NAMES("pos"));
        assert_int_equal(t.dtype, rows[r].to);
        assert_true(pe_calc_element(&t, 0) == 0 && pe_calc_element(&t, 1) == 1);
        assert_null(pe_calc_find_positions(&p, NAMES("k_pos")).data);
        assert_false(pe_calc_failed(&p));
        pe_calc_free(&p);
    }
}

static void blocks_are_aligned_and_zeroed_and_texts_are_whole(void **state)
{
    pe_calc p = pe_calc_new("none");
    (void)state;
    for (size_t bytes = 0; bytes < 200; bytes += 7) {
        const char *block = pe_calc_block(&p, bytes);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(block[i], 0);
    }
    const char *text = pe_calc_text(&p, "%0500d", 7);
    assert_int_equal(strlen(text), 500);
    assert_int_equal(text[499], '7');
    assert_string_equal(pe_calc_shape_text(&p, 4, SHAPE(2, 3, 7, 8)), "[2,3,7,8]");
    assert_string_equal(pe_calc_shape_text(&p, 1, SHAPE(0)), "[0]");
    assert_string_equal(pe_calc_shape_text(&p, 0, NULL), "[]");
    pe_calc_free(&p);
}

/* ---------------------------------------------------------------- shapes -------------------- */

static void leading_axes_of_length_one_come_and_go(void **state)
{
    double              x[6] = {0};
    const posenc_tensor flat = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 2, SHAPE(2, 3));
    const posenc_tensor deep = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 4, SHAPE(1, 1, 2, 3));
    const posenc_tensor one  = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 0, NULL);
    (void)state;
    const posenc_tensor added = pe_calc_with_axes(flat, 4), taken = pe_calc_with_axes(deep, 2);
    assert_int_equal(added.ndim, 4);
    assert_memory_equal(added.shape, SHAPE(1, 1, 2, 3), 4 * sizeof(int64_t));
    assert_int_equal(added.stride[2], 3);
    assert_int_equal(taken.ndim, 2);
    assert_memory_equal(taken.shape, SHAPE(2, 3), 2 * sizeof(int64_t));
    assert_int_equal(pe_calc_with_axes(deep, 1).ndim, 4); /* 2 means something: unchanged */
    assert_int_equal(pe_calc_with_axes(deep, 4).ndim, 4);
    assert_int_equal(pe_calc_with_axes(one, 1).shape[0], 1);
    assert_null(pe_calc_with_axes((posenc_tensor){0}, 2).data);
}

/* [2,3] and [2,3] make [2,6]: per row the real parts, then the imaginary ones. */
static void parts_are_joined_by_the_row_and_split_again(void **state)
{
    static const posenc_dtype types[]  = {POSENC_DTYPE_F64, POSENC_DTYPE_F32};
    static const double       wanted[] = {0, 1, 2, 100, 101, 102, 3, 4, 5, 103, 104, 105};
    (void)state;
    for (size_t n = 0; n < sizeof types / sizeof *types; n++) {
        pe_calc       p        = pe_calc_new("none");
        posenc_tensor parts[2] = {pe_calc_make(&p, types[n], 2, SHAPE(2, 3)),
                                  pe_calc_make(&p, types[n], 2, SHAPE(2, 3))};
        posenc_tensor again[2] = {pe_calc_make(&p, types[n], 2, SHAPE(2, 3)),
                                  pe_calc_make(&p, types[n], 2, SHAPE(2, 3))};
        for (int64_t i = 0; i < 6; i++) {
            pe_calc_put(&parts[0], i, (double)i);
            pe_calc_put(&parts[1], i, (double)(100 + i));
        }
        const posenc_tensor whole = pe_calc_join(&p, parts);
        assert_memory_equal(whole.shape, SHAPE(2, 6), 2 * sizeof(int64_t));
        for (int64_t i = 0; i < 12; i++)
            assert_true(pe_calc_element(&whole, i) == wanted[i]);
        pe_calc_split(&whole, again);
        for (int64_t i = 0; i < 6; i++)
            for (int part = 0; part < 2; part++)
                assert_true(pe_calc_element(&again[part], i) == pe_calc_element(&parts[part], i));
        pe_calc_free(&p);
    }
}

static void parts_that_do_not_fit_are_not_joined(void **state)
{
    pe_calc             p       = pe_calc_new("none");
    const posenc_tensor whole   = pe_calc_make(&p, POSENC_DTYPE_F64, 2, SHAPE(2, 3)),
                        wrong[] = {pe_calc_make(&p, POSENC_DTYPE_F64, 2, SHAPE(3, 2)),
                                   pe_calc_make(&p, POSENC_DTYPE_F64, 1, SHAPE(6)),
                                   pe_calc_make(&p, POSENC_DTYPE_F32, 2, SHAPE(2, 3)),
                                   {0}},
                        number  = pe_calc_make(&p, POSENC_DTYPE_F64, 0, NULL),
                        empty   = pe_calc_make(&p, POSENC_DTYPE_F64, 2, SHAPE(2, 0));
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(pe_calc_join(&p, (const posenc_tensor[]){whole, wrong[i]}).data);
        assert_null(pe_calc_join(&p, (const posenc_tensor[]){wrong[i], whole}).data);
    }
    assert_null(pe_calc_join(&p, (const posenc_tensor[]){number, number}).data);
    assert_int_equal(pe_tensor_elements(&empty), 0);
    const posenc_tensor joined = pe_calc_join(&p, (const posenc_tensor[]){empty, empty});
    assert_int_equal(joined.shape[1], 0);
    assert_false(pe_calc_failed(&p));
    pe_calc_free(&p);
}

/* ---------------------------------------------------------------- settings and parameters --- */

static void a_setting_is_given_as_a_word_of_its_own(void **state)
{
    static const struct {
        const char *text, *name;
        int         wanted;
    } rows[] = {
        {"rows=4", "rows", 1},
        {"learned[rows=4]", "rows", 1},
        {"learned[dim=2,rows=4]", "rows", 1},
        {"learned[dim=2:rows=4]", "rows", 1},
        {"dim=2 rows=4", "rows", 1},
        {"learned.rows=4", "rows", 1},
        {"max_rows=4", "rows", 0},
        {"rows", "rows", 0},
        {"rowsx=4", "rows", 0},
        {"max_rows=4 rows=2", "rows", 1},
        {"", "rows", 0},
        {"rowsrows=1", "rows", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pe_calc_is_set(rows[i].text, rows[i].name) != rows[i].wanted)
            fail_msg("is %s set in \"%s\"?", rows[i].name, rows[i].text);
}

/* What the encoding of SPEC becomes with an array of a parameter in the file. */
static void settings_are_read_off(const char *spec, const char *given, const char *param,
                                  const int64_t shape[2], const char *wanted)
{
    posenc_arrays set = {0};
    add_counted(&set, param, POSENC_DTYPE_F64, 2, shape);
    pe_calc p = calc_of(&set);
    pe_calc_encoding(&p, spec, given);
    pe_calc_infer(&p, spec, given);
    if (pe_calc_failed(&p))
        fail_msg("%s: %s %s", spec, p.sentence, p.err.message);
    if (!strstr(posenc_encoding_spec(p.e), wanted))
        fail_msg("%s became %s, which lacks %s", spec, posenc_encoding_spec(p.e), wanted);
    pe_calc_free(&p);
}

static void a_table_says_how_many_rows_it_has(void **state)
{
    (void)state;
    settings_are_read_off("learned", "", "table", SHAPE(9, 4), "rows=9");
    settings_are_read_off("learned", "", "par_table", SHAPE(9, 4), "rows=9");
    settings_are_read_off("learned", "", "learned.table", SHAPE(9, 4), "rows=9");
    settings_are_read_off("learned[rows=5]", "", "table", SHAPE(9, 4), "rows=5"); /* what is said stands */
    settings_are_read_off("learned", "rows=5", "table", SHAPE(9, 4), "rows=5");
    settings_are_read_off("learned+alibi", "", "learned.table", SHAPE(9, 4), "rows=9");
}

/* An encoding with two parameters, of which the file has the one that is named, as `dtype`. */
static pe_calc with_table(const char *name, posenc_dtype dtype, int32_t ndim, const int64_t *shape)
{
    posenc_arrays set = {0};
    add_counted(&set, name, dtype, ndim, shape);
    pe_calc p = calc_of(&set);
    p.dims = (posenc_dims){.B = 1, .H = 2, .G = 2, .Lq = 3, .Lk = 3, .D = 4, .Dv = 4, .d_model = 4, .L = 3};
    p.seed = 5;
    pe_calc_encoding(&p, "learned[rows=3]+alibi", NULL);
    pe_calc_params(&p, POSENC_DTYPE_F32);
    return p;
}

static void a_parameter_of_the_file_takes_the_place_of_its_initial_numbers(void **state)
{
    pe_calc        p       = with_table("learned.table", POSENC_DTYPE_F64, 2, SHAPE(3, 4));
    posenc_tensor *initial = pe_calc_initial(&p, POSENC_DTYPE_F32);
    (void)state;
    assert_false(pe_calc_failed(&p));
    assert_int_equal(p.count, 2);
    for (int i = 0; i < p.count; i++) {
        const int is_table = !strcmp(posenc_param_name(p.e, i), "learned.table");
        assert_int_equal(p.is_initial[i], !is_table);
        assert_int_equal(p.params[i].dtype, is_table ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32);
        for (int64_t n = 0; n < pe_tensor_elements(&p.params[i]); n++)
            assert_true(pe_calc_element(&p.params[i], n) ==
                        (is_table ? (double)n : pe_calc_element(&initial[i], n)));
    }
    pe_calc_free(&p);
}

static void a_parameter_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    pe_calc tall  = with_table("learned.table", POSENC_DTYPE_F64, 2, SHAPE(4, 4)),
            whole = with_table("par_learned.table", POSENC_DTYPE_I64, 2, SHAPE(3, 4)),
            deep  = with_table("learned.table", POSENC_DTYPE_F32, 3, SHAPE(1, 3, 4));
    assert_false(pe_calc_failed(&deep)); /* as NumPy broadcasts */
    pe_calc_free(&deep);
    failed_with(&tall, "learned.table has the shape [4,4]; with these settings and sizes it must be [3,4]");
    failed_with(&whole, "learned.table holds whole numbers; parameters are real ones");
}

static void an_encoding_takes_the_place_of_the_one_before(void **state)
{
    pe_calc p = pe_calc_new("none");
    (void)state;
    pe_calc_encoding(&p, "alibi", NULL);
    assert_true(pe_calc_is_param(&p, "slopes"));
    pe_calc_encoding(&p, "learned", "rows=3");
    assert_false(pe_calc_is_param(&p, "slopes"));
    assert_true(pe_calc_is_param(&p, "table"));
    const posenc_encoding_info *info = posenc_encoding_part(p.e, POSENC_PLACE_INPUT);
    assert_string_equal(pe_calc_setting(info, "rows")->name, "rows");
    assert_null(pe_calc_setting(info, "row"));
    pe_calc_encoding(&p, "lerned", NULL);
    assert_null(p.e);
    library_failed_with(&p, "lerned");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_found_by_any_of_its_names),
        cmocka_unit_test(two_names_of_one_array_are_refused),
        cmocka_unit_test(an_array_that_is_needed_is_named_where_it_is_missing),
        cmocka_unit_test(complex_numbers_are_for_those_who_ask_for_them),
        cmocka_unit_test(a_file_that_cannot_be_read_is_an_argument),
        cmocka_unit_test(the_first_failure_stays),
        cmocka_unit_test(a_lack_of_memory_is_told_as_such),
        cmocka_unit_test(sixteen_bits_are_the_numbers_that_they_stand_for),
        cmocka_unit_test(numbers_are_converted_and_masks_are_0_and_1),
        cmocka_unit_test(positions_stay_whole_where_they_are),
        cmocka_unit_test(blocks_are_aligned_and_zeroed_and_texts_are_whole),
        cmocka_unit_test(leading_axes_of_length_one_come_and_go),
        cmocka_unit_test(parts_are_joined_by_the_row_and_split_again),
        cmocka_unit_test(parts_that_do_not_fit_are_not_joined),
        cmocka_unit_test(a_setting_is_given_as_a_word_of_its_own),
        cmocka_unit_test(a_table_says_how_many_rows_it_has),
        cmocka_unit_test(a_parameter_of_the_file_takes_the_place_of_its_initial_numbers),
        cmocka_unit_test(a_parameter_that_does_not_fit_is_refused),
        cmocka_unit_test(an_encoding_takes_the_place_of_the_one_before),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

/* SPDX-License-Identifier: MIT */
/*
 * The .safetensors reader: what the original writes is read, and each rule of the format is held
 *
 * A file is a header's text and some bytes behind it, so each test shows the one thing that is wrong
 * with its own. The two files of the original's own tests stand here byte for byte.
 */
#include "files/arrays/formats.h"

#include "scratch.h"

enum { MOST = 4096 };

typedef struct bytes {
    unsigned char data[MOST];
    size_t        size;
} bytes;

/* A file whose header claims `claimed` bytes. */
static bytes file_claiming(uint64_t claimed, const char *header, const void *data, size_t n)
{
    bytes        b    = {.size = 8};
    const size_t text = strlen(header);
    for (int i = 0; i < 8; i++)
        b.data[i] = (unsigned char)(claimed >> (8 * i) & 0xff);
    memcpy(b.data + 8, header, text);
    if (n)
        memcpy(b.data + 8 + text, data, n);
    b.size += text + n;
    return b;
}

static bytes file_of(const char *header, const void *data, size_t n)
{
    return file_claiming(strlen(header), header, data, n);
}

static posenc_arrays read_whole(const bytes *b)
{
    posenc_arrays set = {0};
    posenc_error  err;
    if (pe_arrays_parse(&set, b->data, b->size, "dir/m.safetensors", &err))
        fail_msg("%s", err.message);
    return set;
}

static void refused(const bytes *b, const char *part)
{
    posenc_arrays set = {0};
    posenc_error  err;
    assert_int_equal(pe_arrays_parse(&set, b->data, b->size, "dir/m.safetensors", &err), POSENC_ERROR_FORMAT);
    assert_int_equal(set.count, 0);
    assert_non_null(strstr(err.message, "dir/m.safetensors: "));
    assert_null(strchr(err.message, '\n'));
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

/* ---------------------------------------------------------------- what is read -------------- */

static void every_type_is_read(void **state)
{
    static const double        f64[] = {-1.5, 3};
    static const float         f32[] = {-1.5f, 3};
    static const uint16_t      f16[] = {0xbe00, 0x4200}, bf16[] = {0xbfc0, 0x4040};
    static const int64_t       i64[] = {-2, 3};
    static const int32_t       i32[] = {-2, 3};
    static const unsigned char u8[] = {255, 3}, yes[] = {7, 0};
    static const struct {
        const char  *type;
        posenc_dtype dtype;
        const void  *data;
        size_t       size; /* of one element in the file */
        int64_t      whole[2];
    } rows[] = {{"F64", POSENC_DTYPE_F64, f64, 8, {0}},     {"F32", POSENC_DTYPE_F32, f32, 4, {0}},
                {"F16", POSENC_DTYPE_F16, f16, 2, {0}},     {"BF16", POSENC_DTYPE_BF16, bf16, 2, {0}},
                {"I64", POSENC_DTYPE_I64, i64, 8, {-2, 3}}, {"I32", POSENC_DTYPE_I64, i32, 4, {-2, 3}},
                {"U8", POSENC_DTYPE_U8, u8, 1, {255, 3}},   {"BOOL", POSENC_DTYPE_U8, yes, 1, {1, 0}}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}",
                 rows[i].type, 2 * rows[i].size);
        const bytes          b   = file_of(header, rows[i].data, 2 * rows[i].size);
        posenc_arrays        set = read_whole(&b);
        const posenc_tensor *t   = posenc_arrays_find(&set, "x");
        assert_non_null(t);
        assert_int_equal(t->dtype, rows[i].dtype);
        assert_int_equal(t->ndim, 1);
        assert_int_equal(t->shape[0], 2);
        for (int n = 0; n < 2; n++)
            if (t->dtype == POSENC_DTYPE_I64)
                assert_int_equal(((int64_t *)t->data)[n], rows[i].whole[n]);
            else if (t->dtype == POSENC_DTYPE_U8)
                assert_int_equal(((unsigned char *)t->data)[n], rows[i].whole[n]);
        if (t->dtype != POSENC_DTYPE_I64 && t->dtype != POSENC_DTYPE_U8)
            assert_memory_equal(t->data, rows[i].data, 2 * rows[i].size);
        posenc_arrays_free(&set);
    }
}

/* test_serialization and test_empty of the original's tensor.rs. */
static void the_files_of_the_original_are_read(void **state)
{
    static const char  attn[] = "{\"attn.0\":{\"dtype\":\"F32\",\"shape\":[1,2,3],\"data_offsets\":[0,24]}}";
    static const float x[]    = {0, 1, 2, 3, 4, 5};
    const bytes        some = file_of(attn, x, sizeof x), none = file_of("{}      ", NULL, 0),
                words = file_of("{\"__metadata__\":{\"framework\":\"pt\"}}     ", NULL, 0);
    (void)state;
    posenc_arrays        set = read_whole(&some);
    const posenc_tensor *t   = posenc_arrays_find(&set, "attn.0");
    assert_non_null(t);
    assert_int_equal(t->ndim, 3);
    assert_int_equal(t->stride[0], 6);
    assert_memory_equal(t->data, x, sizeof x);
    posenc_arrays_free(&set);
    set = read_whole(&none);
    assert_int_equal(set.count, 0);
    set = read_whole(&words);
    assert_int_equal(set.count, 0);
}

static void tensors_come_in_the_order_of_their_data(void **state)
{
    static const char          header[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
                                          "\"none\":{\"dtype\":\"F64\",\"shape\":[0,4],"
                                          "\"data_offsets\":[1,1]},"
                                          "\"a\":{\"dtype\":\"U8\",\"shape\":[],"
                                          "\"data_offsets\":[0,1],\"extra\":1}}";
    static const unsigned char data[]   = {5, 6, 7};
    const bytes                b        = file_of(header, data, sizeof data);
    (void)state;
    posenc_arrays set = read_whole(&b);
    assert_int_equal(set.count, 3);
    assert_string_equal(set.items[0].name, "a");
    assert_int_equal(set.items[0].tensor.ndim, 0);
    assert_int_equal(((unsigned char *)set.items[0].tensor.data)[0], 5);
    assert_string_equal(set.items[1].name, "none");
    assert_int_equal(set.items[1].tensor.shape[0], 0);
    assert_string_equal(set.items[2].name, "b");
    assert_int_equal(((unsigned char *)set.items[2].tensor.data)[1], 7);
    posenc_arrays_free(&set);
}

/* A header of 0x4b50 bytes begins with "PK", as an archive does. */
static void a_header_whose_length_spells_PK_is_no_archive(void **state)
{
    enum { LENGTH = 0x4b50 };
    char         *bytes_of_file = malloc(8 + LENGTH);
    posenc_arrays set           = {0};
    posenc_error  err;
    (void)state;
    assert_non_null(bytes_of_file);
    memset(bytes_of_file, ' ', 8 + LENGTH);
    memcpy(bytes_of_file, "PK\0\0\0\0\0\0{}", 10);
    if (pe_arrays_parse(&set, bytes_of_file, 8 + LENGTH, "x", &err))
        fail_msg("%s", err.message);
    assert_int_equal(set.count, 0);
    free(bytes_of_file);
}

static const char one_byte[] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";

/* Whatever its name, from a file and from a pipe. */
static void the_first_bytes_say_what_it_is(void **state)
{
    const bytes   b   = file_of(one_byte, "\7", 1);
    posenc_arrays set = {0};
    posenc_error  err;
    int           ends[2];
    (void)state;
    scratch_write("model.bin", b.data, b.size);
    if (posenc_arrays_read(&set, scratch("model.bin"), &err))
        fail_msg("%s", err.message);
    assert_string_equal(set.items[0].name, "x");
    posenc_arrays_free(&set);

    assert_int_equal(pipe(ends), 0);
    const int before = dup(STDIN_FILENO);
    assert_int_equal(write(ends[1], b.data, b.size), (ssize_t)b.size);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    if (posenc_arrays_read(&set, "-", &err))
        fail_msg("%s", err.message);
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    clearerr(stdin);
    assert_int_equal(((unsigned char *)set.items[0].tensor.data)[0], 7);
    posenc_arrays_free(&set);
}

/* ---------------------------------------------------------------- what is refused ----------- */

#define ENTRY(type, shape, offsets) \
    "{\"x\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" first "}," \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" second "}}"

static void a_header_that_breaks_a_rule_is_refused_by_name(void **state)
{
    static const struct {
        const char *header, *part;
    } rows[] = {
        {"[]", "does not begin with '{'"},
        {" {}", "does not begin with '{'"},
        {"{", "its header: line 1, column"},
        {"{} {}", "its header: line 1, column"},
        {"{\"x\":1}", "x: its entry is not an object"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "duplicate object key"},
        {"{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "duplicate object key"},
        {"{\"__metadata__\":[]}", "__metadata__: it is not an object of strings"},
        {"{\"__metadata__\":{\"step\":3}}", "the value of \"step\" is not a string"},
        {"{\"x\":{\"shape\":[1],\"data_offsets\":[0,1]}}", "x: its \"dtype\" is missing"},
        {"{\"x\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", "x: its \"shape\" is missing"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}", "x: its \"data_offsets\" are not"},
        {ENTRY("F8_E4M3", "[4]", "[0,4]"), "x: its type is F8_E4M3; F64, F32, F16, BF16"},
        {ENTRY("F4", "[8]", "[0,4]"), "x: its type is F4;"},
        {ENTRY("I16", "[2]", "[0,4]"), "x: its type is I16;"},
        {ENTRY("U64", "[0]", "[0,0]"), "x: its type is U64;"},
        {ENTRY("u8", "[4]", "[0,4]"), "x: its type is u8;"},
        {ENTRY("U8", "[4.0]", "[0,4]"), "x: size 0 of its shape"},
        {ENTRY("U8", "[2,-2]", "[0,4]"), "x: size 1 of its shape is not a whole number"},
        {ENTRY("U8", "[4611686018427387904,4,0]", "[0,0]"), "x: size 0 of its shape is too large"},
        {ENTRY("U8", "[1,1,1,1,1,1,4]", "[0,4]"), "x: it has 7 axes; at most 6"},
        {ENTRY("U8", "[4294967296,4294967296]", "[0,4]"), "x: its shape holds more than"},
        {ENTRY("U8", "[0,4294967296,4294967296]", "[0,0]"), "x: its shape holds more than"},
        {ENTRY("F32", "[2]", "[0,4]"), "hold 4 bytes but its shape and type ask for 8"},
        {ENTRY("U8", "[4]", "[4,0]"), "not two whole numbers"},
        {ENTRY("U8", "[4]", "[0]"), "not two whole numbers"},
        {ENTRY("U8", "[4]", "[-4,0]"), "not two whole numbers"},
        {ENTRY("U8", "[4]", "[9223372036854775806,9223372036854775807]"), "not two whole numbers"},
        {ENTRY("U8", "[3]", "[1,4]"),
         "x: its data begin at byte 1 but the tensor before ends at 0: the file has a hole"},
        {TWO("[0,2]", "[1,3]"),
         "b: its data begin at byte 1 but the tensor before ends at 2: the file has an overlap"},
        {TWO("[0,2]", "[0,2]"), "an overlap"},
        {ENTRY("U8", "[3]", "[0,3]"), "asks for 3 bytes of data but 4 follow: it is longer"},
        {ENTRY("U8", "[5]", "[0,5]"), "asks for 5 bytes of data but 4 follow: it is truncated"},
        {"{}", "asks for 0 bytes of data but 4 follow"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bytes b = file_of(rows[i].header, "data", 4);
        refused(&b, rows[i].part);
    }
}

static void a_length_that_cannot_be_is_refused(void **state)
{
    static const struct {
        uint64_t    claimed;
        const char *part;
    } rows[] = {{100000001, "100000001 bytes; a .safetensors header has at most 100000000"},
                {UINT64_MAX, "18446744073709551615 bytes"},
                {(uint64_t)1 << 63, "at most 100000000"},
                {100000000, "but only 3 follow: it is truncated"},
                {4, "but only 3 follow: it is truncated"},
                {0, "does not begin with '{'"},
                {1, "its header: line 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bytes b = file_claiming(rows[i].claimed, "{} ", NULL, 0);
        refused(&b, rows[i].part);
    }
    const bytes tiny = {.data = {2}, .size = 7};
    refused(&tiny, "it has 7 bytes");
}

/* What all tensors take in memory, not in the file: I32 becomes I64. */
static void a_tensor_beyond_the_limit_is_refused_before_it_is_allocated(void **state)
{
    const bytes b =
        file_of("{\"x\":{\"dtype\":\"I32\",\"shape\":[536870912],\"data_offsets\":[0,2147483648]},"
                "\"y\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2147483648,2147483649]}}",
                NULL, 0);
    (void)state;
    refused(&b, "y: with this tensor the file holds more than 4294967296 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(the_files_of_the_original_are_read),
        cmocka_unit_test(tensors_come_in_the_order_of_their_data),
        cmocka_unit_test(a_header_whose_length_spells_PK_is_no_archive),
        cmocka_unit_test_teardown(the_first_bytes_say_what_it_is, scratch_clear),
        cmocka_unit_test(a_header_that_breaks_a_rule_is_refused_by_name),
        cmocka_unit_test(a_length_that_cannot_be_is_refused),
        cmocka_unit_test(a_tensor_beyond_the_limit_is_refused_before_it_is_allocated),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

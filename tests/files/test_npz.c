/* SPDX-License-Identifier: MIT */
/*
 * The .npz container: round trips, the same bytes each time, and archives that lie
 *
 * Hostile archives are made of honest ones: libzip writes what it would, then a field of the zip
 * structures is changed in place. Offsets of the fields: local header "PK\3\4" flags 6, method 8,
 * checksum 14, compressed size 18, size 22, name 30; central header "PK\1\2" flags 8, method 10,
 * checksum 16, compressed size 20, size 24, name 46.
 */
#include "files/arrays/formats.h"

#include <zip.h>

#include "scratch.h"

/* ---------------------------------------------------------------- making archives ----------- */

typedef struct member {
    const char *name;
    const void *bytes;
    size_t      size;
} member;

/* An archive with these members as they are, deflated or stored. */
static char *archive_of(const member *members, int count, int method, size_t *n)
{
    const char *path = scratch("made.zip");
    int         error;
    unlink(path);
    zip_t *archive = zip_open(path, ZIP_CREATE, &error);
    assert_non_null(archive);
    for (int i = 0; i < count; i++) {
        zip_source_t     *source = zip_source_buffer(archive, members[i].bytes, members[i].size, 0);
        const zip_int64_t index  = zip_file_add(archive, members[i].name, source, 0);
        assert_true(index >= 0);
        assert_int_equal(zip_set_file_compression(archive, (zip_uint64_t)index, method, 0), 0);
    }
    assert_int_equal(zip_close(archive), 0);
    return scratch_read(path, n);
}

/* The .npy bytes of n doubles 0, 1, 2, ... */
static char *npy_of(int64_t n, size_t *size)
{
    char   *bytes = malloc(PE_NPY_HEADER + (size_t)n * sizeof(double));
    double *x     = malloc((size_t)n * sizeof *x + 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)i;
    const posenc_array a = {.tensor = posenc_tensor_contiguous(x, POSENC_DTYPE_F64, 1, &n)};
    assert_int_equal(pe_npy_header(bytes, size, &a, (pe_origin){"x", NULL}, NULL), POSENC_OK);
    memcpy(bytes + *size, x, (size_t)n * sizeof *x);
    *size += (size_t)n * sizeof *x;
    free(x);
    return bytes;
}

/* Writes `width` bytes of value at `offset` of every structure that begins with the two bytes
   behind "PK". */
static void patch(char *bytes, size_t n, const char *kind, size_t offset, uint64_t value, int width)
{
    for (size_t i = 0; i + 4 < n; i++)
        if (!memcmp(bytes + i, "PK", 2) && !memcmp(bytes + i + 2, kind, 2))
            for (int k = 0; k < width; k++)
                bytes[i + offset + (size_t)k] = (char)(value >> (8 * k));
}

/* An archive of a.npy alone, `count` doubles. */
static char *one_array(int64_t count, int method, size_t *n)
{
    size_t       size;
    char        *npy   = npy_of(count, &size);
    const member one   = {"a.npy", npy, size};
    char        *bytes = archive_of(&one, 1, method, n);
    free(npy);
    return bytes;
}

static void refused_part(const char *bytes, size_t n, const char *part)
{
    posenc_arrays set = {0};
    posenc_error  err;
    assert_int_equal(pe_arrays_parse(&set, bytes, n, "a.npz", &err), POSENC_ERROR_FORMAT);
    assert_int_equal(set.count, 0);
    assert_non_null(strstr(err.message, "a.npz: "));
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

/* ---------------------------------------------------------------- honest archives ----------- */

static void fill(posenc_arrays *set)
{
    static const struct {
        const char  *name;
        posenc_dtype dtype;
        int32_t      ndim;
        int64_t      shape[3];
    } rows[] = {
        {"in_q", POSENC_DTYPE_F64, 3, {2, 3, 4}}, {"par_c", POSENC_DTYPE_F64, 0, {0}},
        {"x", POSENC_DTYPE_F32, 2, {5, 1}},       {"half", POSENC_DTYPE_F16, 1, {3}},
        {"pos", POSENC_DTYPE_I64, 2, {1, 7}},     {"allow", POSENC_DTYPE_U8, 1, {9}},
        {"none", POSENC_DTYPE_F64, 2, {0, 3}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_tensor *t = posenc_arrays_add(set, rows[i].name, rows[i].dtype, rows[i].ndim, rows[i].shape);
        assert_non_null(t);
        for (size_t k = 0; k < pe_arrays_bytes(t); k++)
            ((unsigned char *)t->data)[k] = (unsigned char)(17 * k + i);
    }
}

static void what_is_written_is_read_again(void **state)
{
    posenc_arrays out = {0}, in = {0};
    posenc_error  err;
    (void)state;
    fill(&out);
    assert_int_equal(posenc_arrays_write(&out, scratch("r.npz"), &err), POSENC_OK);
    assert_int_equal(posenc_arrays_read(&in, scratch("r.npz"), &err), POSENC_OK);
    assert_int_equal(in.count, out.count);
    for (int i = 0; i < out.count; i++) {
        const posenc_tensor *a = &out.items[i].tensor, *b = posenc_arrays_find(&in, out.items[i].name);
        assert_non_null(b);
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->ndim, b->ndim);
        assert_memory_equal(a->shape, b->shape, sizeof a->shape);
        assert_int_equal(memcmp(a->data, b->data, pe_arrays_bytes(a)), 0);
    }
    posenc_arrays_free(&out);
    posenc_arrays_free(&in);
}

static void equal_sets_give_equal_bytes(void **state)
{
    posenc_arrays out = {0};
    size_t        n, m;
    (void)state;
    fill(&out);
    assert_int_equal(posenc_arrays_write(&out, scratch("1.npz"), NULL), POSENC_OK);
    assert_int_equal(posenc_arrays_write(&out, scratch("2.npz"), NULL), POSENC_OK);
    char *a = scratch_read(scratch("1.npz"), &n), *b = scratch_read(scratch("2.npz"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    assert_memory_equal(a + 10, "\x00\x00\x21\x00", 4); /* midnight of 1980-01-01 */
    free(a);
    free(b);
    posenc_arrays_free(&out);
}

static void deflated_members_are_read(void **state)
{
    size_t        size, n;
    char         *npy   = npy_of(1000, &size);
    const member  one   = {"a/b.npy", npy, size};
    char         *bytes = archive_of(&one, 1, ZIP_CM_DEFLATE, &n);
    posenc_arrays set   = {0};
    posenc_error  err;
    (void)state;
    assert_true(n < size / 2);
    assert_int_equal(pe_arrays_parse(&set, bytes, n, "a.npz", &err), POSENC_OK);
    assert_string_equal(set.items[0].name, "a/b");
    assert_true(((double *)set.items[0].tensor.data)[999] == 999);
    posenc_arrays_free(&set);
    free(bytes);
    free(npy);
}

static void an_archive_without_members_is_an_empty_set(void **state)
{
    static const char empty[22] = "PK\5\6";
    posenc_arrays     set       = {0};
    posenc_error      err;
    (void)state;
    assert_int_equal(pe_arrays_parse(&set, empty, sizeof empty, "a.npz", &err), POSENC_OK);
    assert_int_equal(set.count, 0);
    posenc_arrays_free(&set);
}

/* ---------------------------------------------------------------- hostile archives ---------- */

static void names_that_leave_the_archive_are_refused(void **state)
{
    static const char *const names[] = {"/a.npy",  "../a.npy",  "a/../../b.npy", "a/..",
                                        "C:a.npy", "..\\a.npy", "\\a.npy"};
    size_t                   size, n;
    char                    *npy = npy_of(1, &size);
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const member one   = {names[i], npy, size};
        char        *bytes = archive_of(&one, 1, ZIP_CM_STORE, &n);
        refused_part(bytes, n, "outside the archive");
        free(bytes);
    }
    free(npy);
}

static void members_that_are_no_arrays_are_refused(void **state)
{
    static const struct {
        const char *name, *bytes, *part;
    } rows[] = {{"readme.txt", "hello", "not named NAME.npy"},
                {".npy", "hello", "not named NAME.npy"},
                {"a.npy", "hello, world", "does not begin with"},
                {"a.npy", "", "truncated"}};
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const member one   = {rows[i].name, rows[i].bytes, strlen(rows[i].bytes)};
        char        *bytes = archive_of(&one, 1, ZIP_CM_STORE, &n);
        refused_part(bytes, n, rows[i].part);
        free(bytes);
    }
}

static void two_members_of_one_name_are_refused(void **state)
{
    size_t       size, n;
    char        *npy    = npy_of(1, &size);
    const member both[] = {{"a.npy", npy, size}, {"b.npy", npy, size}};
    char        *bytes  = archive_of(both, 2, ZIP_CM_STORE, &n);
    (void)state;
    patch(bytes, n, "\3\4", 30, 'a', 1);
    patch(bytes, n, "\1\2", 46, 'a', 1);
    refused_part(bytes, n, "two members have the same name");
    free(bytes);
    free(npy);
}

static void encrypted_members_are_refused(void **state)
{
    size_t n;
    char  *bytes = one_array(1, ZIP_CM_STORE, &n);
    (void)state;
    patch(bytes, n, "\3\4", 6, 1, 2);
    patch(bytes, n, "\1\2", 8, 1, 2);
    refused_part(bytes, n, "encrypted");
    free(bytes);
}

static void other_compressions_are_refused(void **state)
{
    size_t n;
    char  *bytes = one_array(1, ZIP_CM_STORE, &n);
    (void)state;
    patch(bytes, n, "\3\4", 8, ZIP_CM_BZIP2, 2);
    patch(bytes, n, "\1\2", 10, ZIP_CM_BZIP2, 2);
    refused_part(bytes, n, "its compression is 12");
    free(bytes);
}

static void a_wrong_checksum_is_noticed(void **state)
{
    size_t       size, n;
    char        *npy   = npy_of(4, &size);
    const member one   = {"a.npy", npy, size};
    char        *bytes = archive_of(&one, 1, ZIP_CM_STORE, &n);
    (void)state;
    bytes[30 + 5 + size - 1] ^= 1; /* the last byte of the last element */
    refused_part(bytes, n, "damaged: CRC");
    free(bytes);
    free(npy);
}

/* The member claims to inflate to more than its bytes could, or than may be; nothing of that size
   is allocated. */
static void sizes_that_cannot_be_are_refused(void **state)
{
    static const struct {
        uint32_t    size;
        const char *part;
    } rows[] = {
        {0x10000000, "cannot inflate"}, {0xfffffffe, "cannot inflate"}, {2000, "a.npy"}, {100, "a.npy"}};
    size_t n;
    char  *bytes = one_array(100, ZIP_CM_DEFLATE, &n);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        patch(bytes, n, "\3\4", 22, rows[i].size, 4);
        patch(bytes, n, "\1\2", 24, rows[i].size, 4);
        refused_part(bytes, n, rows[i].part);
    }
    free(bytes);
}

static void an_archive_cut_anywhere_is_refused(void **state)
{
    size_t n;
    char  *bytes = one_array(3, ZIP_CM_STORE, &n);
    (void)state;
    for (n--; n > 0; n--)
        refused_part(bytes, n, "");
    free(bytes);
}

/* ---------------------------------------------------------------- writing ------------------- */

static void writing_refused(const posenc_arrays *set, const char *name, posenc_status status,
                            const char *part)
{
    posenc_error err;
    assert_int_equal(posenc_arrays_write(set, scratch(name), &err), status);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    assert_int_equal(scratch_count(), 0);
}

static void what_cannot_be_written_leaves_no_file(void **state)
{
    posenc_arrays set   = {0};
    const int64_t shape = 2;
    (void)state;
    writing_refused(&set, "a.npz", POSENC_ERROR_ARGUMENT, "no array to write");
    assert_non_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, 1, &shape));
    writing_refused(&set, "a.txt", POSENC_ERROR_ARGUMENT, "must end in .npz, .npy or .csv");
    assert_non_null(posenc_arrays_add(&set, "a", POSENC_DTYPE_F64, 1, &shape));
    writing_refused(&set, "a.npz", POSENC_ERROR_ARGUMENT, "cannot be added");
    writing_refused(&set, "a.npy", POSENC_ERROR_ARGUMENT, "one array but there are 2");
    set.items[1].name[0] = '/';
    writing_refused(&set, "a.npz", POSENC_ERROR_FORMAT, "outside the archive");
    set.items[1].name[0]      = 'b';
    set.items[1].tensor.dtype = POSENC_DTYPE_BF16;
    writing_refused(&set, "a.npz", POSENC_ERROR_DTYPE, "bf16");
    posenc_arrays_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_written_is_read_again, scratch_clear),
        cmocka_unit_test_teardown(equal_sets_give_equal_bytes, scratch_clear),
        cmocka_unit_test_teardown(deflated_members_are_read, scratch_clear),
        cmocka_unit_test(an_archive_without_members_is_an_empty_set),
        cmocka_unit_test_teardown(names_that_leave_the_archive_are_refused, scratch_clear),
        cmocka_unit_test_teardown(members_that_are_no_arrays_are_refused, scratch_clear),
        cmocka_unit_test_teardown(two_members_of_one_name_are_refused, scratch_clear),
        cmocka_unit_test_teardown(encrypted_members_are_refused, scratch_clear),
        cmocka_unit_test_teardown(other_compressions_are_refused, scratch_clear),
        cmocka_unit_test_teardown(a_wrong_checksum_is_noticed, scratch_clear),
        cmocka_unit_test_teardown(sizes_that_cannot_be_are_refused, scratch_clear),
        cmocka_unit_test_teardown(an_archive_cut_anywhere_is_refused, scratch_clear),
        cmocka_unit_test_teardown(what_cannot_be_written_leaves_no_file, scratch_clear),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

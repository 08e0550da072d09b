/* SPDX-License-Identifier: MIT */
/* Bytes of one file written into another, and blocks of zeros that stay holes there. */
#include "files/arrays/checkpoint.h"

#include <sys/stat.h>

#include "scratch.h"

enum { BLOCK = 4096 };

/* A file of n bytes, zero but for those at `places`; opened as a checkpoint is, without its header. */
static pe_checkpoint sparse(const char *name, int64_t n, const int64_t *places, int count)
{
    pe_checkpoint c = {.path = name, .stream = fopen(scratch(name), "w+b"), .size = n};
    assert_non_null(c.stream);
    assert_int_equal(ftruncate(fileno(c.stream), n), 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(pwrite(fileno(c.stream), "x", 1, places[i]), 1);
    return c;
}

static pe_writer writer(const char *name)
{
    pe_writer    w;
    posenc_error err;
    if (pe_writer_open(&w, scratch(name), (pe_progress){0}, &err))
        fail_msg("%s", err.message);
    return w;
}

static int64_t on_disk(const char *name)
{
    struct stat s;
    assert_int_equal(stat(scratch(name), &s), 0);
    return 512 * (int64_t)s.st_blocks;
}

static void a_copy_has_the_same_bytes_wherever_it_begins(void **state)
{
    const int64_t places[] = {0, 5 * BLOCK - 1, 100 * BLOCK, 150 * BLOCK + 17};
    (void)state;
    pe_checkpoint c = sparse("from", 200 * BLOCK + 3, places, 4);
    for (int64_t shift = 0; shift < BLOCK + 2; shift += 1 + 511 * (shift > 2)) {
        size_t    n, m;
        pe_writer w = writer("to");
        for (int64_t i = 0; i < shift; i++)
            assert_int_equal(pe_writer_put(&w, "y", 1, NULL), POSENC_OK);
        assert_int_equal(pe_writer_copy(&w, &c, c.size, 0, NULL), POSENC_OK);
        assert_int_equal(pe_writer_commit(&w, NULL), POSENC_OK);
        char *from = scratch_read(scratch("from"), &n), *to = scratch_read(scratch("to"), &m);
        assert_int_equal(m, n + (size_t)shift);
        assert_memory_equal(to + shift, from, n);
        free(from);
        free(to);
    }
    pe_checkpoint_close(&c);
}

static void zeros_take_no_place_on_the_disk(void **state)
{
    static char numbers[64 * BLOCK];
    (void)state;
    numbers[3 * BLOCK] = 1;
    pe_checkpoint c    = sparse("from", INT64_C(1) << 30, (int64_t[]){1 << 20}, 1);
    if (on_disk("from") > 1 << 20) {
        pe_checkpoint_close(&c);
        skip(); /* a file system without holes */
    }
    pe_writer w = writer("to");
    assert_int_equal(pe_writer_put(&w, numbers, sizeof numbers, NULL), POSENC_OK);
    assert_int_equal(pe_writer_copy(&w, &c, c.size, 0, NULL), POSENC_OK);
    assert_int_equal(pe_writer_commit(&w, NULL), POSENC_OK);
    assert_true(on_disk("to") <= 16 * BLOCK);
    struct stat s;
    assert_int_equal(stat(scratch("to"), &s), 0);
    assert_int_equal(s.st_size, (INT64_C(1) << 30) + (int64_t)sizeof numbers);
    pe_checkpoint_close(&c);
}

static void what_is_discarded_leaves_nothing(void **state)
{
    (void)state;
    const int before = scratch_count();
    pe_writer w      = writer("new");
    assert_int_equal(pe_writer_put(&w, "abc", 3, NULL), POSENC_OK);
    pe_writer_discard(&w);
    pe_writer_discard(&w);
    assert_int_equal(scratch_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_has_the_same_bytes_wherever_it_begins),
        cmocka_unit_test(zeros_take_no_place_on_the_disk),
        cmocka_unit_test(what_is_discarded_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}

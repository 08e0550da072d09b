/* SPDX-License-Identifier: MIT */
/* test_arena: pieces of one block: counted as they are taken, aligned, and none over another */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"

/* Sizes on both sides of an alignment, and none. */
static const int64_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 1000};
enum { PIECES = sizeof sizes / sizeof *sizes };

typedef struct pieces {
    char   *bytes[PIECES];
    double *doubles[PIECES], *zeros[PIECES];
    float  *floats[PIECES];
} pieces;

static void lay_out(pe_arena *arena, pieces *p)
{
    for (int i = 0; i < PIECES; i++) {
        p->bytes[i]   = pe_arena_take(arena, (size_t)sizes[i]);
        p->doubles[i] = pe_arena_doubles(arena, sizes[i]);
        p->zeros[i]   = pe_arena_zeros(arena, sizes[i]);
        p->floats[i]  = pe_arena_floats(arena, sizes[i]);
    }
}

static void counting_gives_no_memory_and_the_size_of_the_block(void **state)
{
    pieces   counted, taken;
    pe_arena count = {0};
    (void)state;
    lay_out(&count, &counted);
    for (int i = 0; i < PIECES; i++)
        assert_true(!counted.bytes[i] && !counted.doubles[i] && !counted.zeros[i] && !counted.floats[i]);
    pe_arena run = {.memory = aligned_alloc(PE_ALIGN, count.used)};
    assert_non_null(run.memory);
    lay_out(&run, &taken);
    assert_int_equal(run.used, count.used);
    free(run.memory);
}

/* Each piece is filled with its number; in the end each still holds it. */
static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    pieces   p;
    pe_arena count = {0};
    (void)state;
    lay_out(&count, &p);
    pe_arena run = {.memory = aligned_alloc(PE_ALIGN, count.used)};
    assert_non_null(run.memory);
    memset(run.memory, 0x55, count.used);
    lay_out(&run, &p);
    for (int i = 0; i < PIECES; i++) {
        const void *all[] = {p.bytes[i], p.doubles[i], p.zeros[i], p.floats[i]};
        for (int k = 0; k < 4; k++)
            assert_int_equal((uintptr_t)all[k] % PE_ALIGN, 0);
        for (int64_t n = 0; n < sizes[i]; n++)
            assert_true(p.zeros[i][n] == 0);
        memset(p.bytes[i], 4 * i, (size_t)sizes[i]);
        memset(p.doubles[i], 4 * i + 1, (size_t)sizes[i] * sizeof(double));
        memset(p.zeros[i], 4 * i + 2, (size_t)sizes[i] * sizeof(double));
        memset(p.floats[i], 4 * i + 3, (size_t)sizes[i] * sizeof(float));
    }
    for (int i = 0; i < PIECES; i++) {
        const char  *all[]   = {p.bytes[i], (char *)p.doubles[i], (char *)p.zeros[i], (char *)p.floats[i]};
        const size_t width[] = {1, sizeof(double), sizeof(double), sizeof(float)};
        for (int k = 0; k < 4; k++)
            for (size_t n = 0; n < (size_t)sizes[i] * width[k]; n++)
                assert_int_equal(all[k][n], 4 * i + k);
    }
    free(run.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counting_gives_no_memory_and_the_size_of_the_block),
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

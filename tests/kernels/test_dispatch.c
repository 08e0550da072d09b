/* SPDX-License-Identifier: MIT */
/*
 * test_dispatch: which kernels this processor gets
 *
 * POSENC_ISA forces a level for tests; an unknown name falls back to the best. A table without one of its kernels
 * would crash far away from here, so every pointer of every table is looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

static const pe_kernels *best(void)
{
    const pe_kernels *last = NULL;
    for (int i = 0; pe_kernels_at(i); i++)
        last = pe_kernels_at(i);
    return last;
}

static void every_table_is_complete_and_the_portable_one_comes_first(void **state)
{
    (void)state;
    assert_string_equal(pe_kernels_at(0)->isa, "plain");
    for (int i = 0; pe_kernels_at(i); i++) {
        const char *const *words = (const char *const *)(const void *)pe_kernels_at(i);
        for (size_t w = 0; w < sizeof(pe_kernels) / sizeof *words; w++) /* a struct of pointers alone */
            assert_non_null(words[w]);
    }
}

static void the_environment_names_the_table_and_the_best_is_taken_otherwise(void **state)
{
    (void)state;
    for (int i = 0; pe_kernels_at(i); i++) {
        assert_int_equal(setenv("POSENC_ISA", pe_kernels_at(i)->isa, 1), 0);
        assert_ptr_equal(pe_kernels_choose(), pe_kernels_at(i));
        assert_string_equal(posenc_isa(), pe_kernels_at(i)->isa);
    }
    assert_int_equal(setenv("POSENC_ISA", "abacus", 1), 0);
    assert_ptr_equal(pe_kernels_choose(), best());
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
    assert_ptr_equal(pe_kernels_choose(), best());
}

static void beyond_the_last_table_there_is_none(void **state)
{
    (void)state;
    assert_null(pe_kernels_at(100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_is_complete_and_the_portable_one_comes_first),
        cmocka_unit_test(the_environment_names_the_table_and_the_best_is_taken_otherwise),
        cmocka_unit_test(beyond_the_last_table_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

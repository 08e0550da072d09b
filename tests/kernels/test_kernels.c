/* SPDX-License-Identifier: MIT */
/*
 * test_kernels: which kernels this processor gets
 *
 * POSENC_ISA and options.isa force a level for tests and measurements; a name that does not run here is
 * refused by the plan, in words. A table without one of its kernels
 * would crash far away from here, so every pointer of every table is looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/posenc.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
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
    assert_int_equal(setenv("POSENC_ISA", "", 1), 0);
    assert_ptr_equal(pe_kernels_choose(), best());
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
    assert_ptr_equal(pe_kernels_choose(), best());
}

static posenc_status plan_on(const char *isa, posenc_plan **plan, posenc_error *err)
{
    const posenc_dims dims    = {.B = 1, .H = 1, .Lq = 4, .Lk = 4, .D = 4};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    options.isa = isa;
    assert_int_equal(posenc_encoding_create(&e, "nope", NULL, err), POSENC_OK);
    const posenc_status status = posenc_plan_create(plan, e, &dims, &options, err);
    if (!status) /* the plan's encoding may go now: only its kernels are looked at */
        assert_non_null((*plan)->kernels);
    posenc_encoding_free(e);
    return status;
}

static void a_plan_takes_the_table_that_its_options_name(void **state)
{
    (void)state;
    assert_int_equal(setenv("POSENC_ISA", best()->isa, 1), 0);
    for (int i = 0; posenc_isa_at(i); i++) {
        posenc_plan *plan;
        posenc_error err;
        assert_int_equal(plan_on(posenc_isa_at(i), &plan, &err), POSENC_OK);
        assert_ptr_equal(plan->kernels, pe_kernels_at(i));
        posenc_plan_free(plan);
    }
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
}

static void a_name_that_does_not_run_here_is_refused_in_words(void **state)
{
    posenc_plan *plan;
    posenc_error err;
    (void)state;
    assert_int_equal(plan_on("abacus", &plan, &err), POSENC_ERROR_ARGUMENT);
    assert_null(plan);
    assert_non_null(strstr(err.message, "options.isa is \"abacus\""));
    assert_non_null(strstr(err.message, "one of: plain"));
    assert_int_equal(setenv("POSENC_ISA", "sliderule", 1), 0);
    assert_null(pe_kernels_choose());
    assert_string_equal(posenc_isa(), best()->isa);
    assert_int_equal(plan_on(NULL, &plan, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "POSENC_ISA is \"sliderule\""));
    assert_int_equal(plan_on("plain", &plan, &err), POSENC_OK); /* the plan's own word counts first */
    posenc_plan_free(plan);
    assert_int_equal(unsetenv("POSENC_ISA"), 0);
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
        cmocka_unit_test(a_plan_takes_the_table_that_its_options_name),
        cmocka_unit_test(a_name_that_does_not_run_here_is_refused_in_words),
        cmocka_unit_test(beyond_the_last_table_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

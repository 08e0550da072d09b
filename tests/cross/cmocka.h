/* SPDX-License-Identifier: MIT */
/*
 * cmocka.h: as much of cmocka as the kernels' tests use, for processors that it is not installed for
 *
 * run.sh puts this folder before the system's headers when it builds those tests for another processor. A
 * failed assertion leaves its test and counts; the program's status says whether any did.
 */
#ifndef TESTS_CROSS_CMOCKA_H
#define TESTS_CROSS_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

static jmp_buf cmocka_out;

#define cmocka_unit_test(function) \
    {                              \
#function, function        \
    }

#define fail_msg(...)                          \
    do {                                       \
        printf("%s:%d: ", __FILE__, __LINE__); \
        printf(__VA_ARGS__);                   \
        putchar('\n');                         \
        longjmp(cmocka_out, 1);                \
    } while (0)

#define assert_true(x)              \
    do {                            \
        if (!(x))                   \
            fail_msg("not %s", #x); \
    } while (0)
#define assert_false(x)                 assert_true(!(x))
#define assert_null(x)                  assert_true((x) == NULL)
#define assert_non_null(x)              assert_true((x) != NULL)
#define assert_int_equal(a, b)          assert_true((a) == (b))
#define assert_ptr_equal(a, b)          assert_true((a) == (b))
#define assert_string_equal(a, b)       assert_true(!strcmp(a, b))
#define assert_memory_equal(a, b, size) assert_true(!memcmp(a, b, size))

#define cmocka_run_group_tests(tests, before, after) \
    cmocka_run_all(tests, sizeof tests / sizeof *tests, before, after)

static inline int cmocka_run_all(const struct CMUnitTest *tests, size_t count, int (*before)(void **),
                                 int (*after)(void **))
{
    static int failed;
    void      *state = NULL;
    failed           = before ? before(&state) : 0;
    for (size_t i = 0; i < count; i++) {
        const int is_out = setjmp(cmocka_out);
        if (!is_out)
            tests[i].run(&state);
        failed += is_out;
        printf("[%s] %s\n", is_out ? "  FAILED  " : "       OK ", tests[i].name);
    }
    return failed + (after ? after(&state) : 0);
}

#endif

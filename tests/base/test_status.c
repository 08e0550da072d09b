/* SPDX-License-Identifier: MIT */
/*
 * test_status: the one way to fail
 *
 * A failed call leaves its status and a sentence in the caller's struct; the struct may be missing, and a
 * sentence too long for it is cut, never written beyond its end. Every status has a word of its own, and a
 * number that is no status has one too: posenc_status_string never returns NULL.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/status.h"

static void a_failure_returns_its_status_and_fills_in_the_sentence(void **state)
{
    posenc_error err;
    (void)state;
    assert_int_equal(pe_fail(&err, POSENC_ERROR_SHAPE, "q has %d heads", 5), POSENC_ERROR_SHAPE);
    assert_int_equal(err.status, POSENC_ERROR_SHAPE);
    assert_string_equal(err.message, "q has 5 heads");
}

static void a_caller_without_an_error_struct_still_gets_the_status(void **state)
{
    (void)state;
    assert_int_equal(pe_fail(NULL, POSENC_ERROR_MEMORY, "out of memory"), POSENC_ERROR_MEMORY);
    assert_int_equal(pe_done(NULL), POSENC_OK);
}

static void a_sentence_too_long_is_cut_inside_the_struct(void **state)
{
    struct {
        posenc_error err;
        char         behind[16];
    } x;
    char text[1000];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(x.behind, 7, sizeof x.behind);
    assert_int_equal(pe_fail(&x.err, POSENC_ERROR_RANGE, "%s", text), POSENC_ERROR_RANGE);
    assert_int_equal(strlen(x.err.message), sizeof x.err.message - 1);
    for (size_t i = 0; i < sizeof x.behind; i++)
        assert_int_equal(x.behind[i], 7);
}

static void success_clears_an_old_sentence(void **state)
{
    posenc_error err;
    (void)state;
    pe_fail(&err, POSENC_ERROR_RANGE, "old");
    assert_int_equal(pe_done(&err), POSENC_OK);
    assert_int_equal(err.status, POSENC_OK);
    assert_string_equal(err.message, "");
}

static void every_status_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (int a = POSENC_OK; a <= POSENC_ERROR_CANCELLED; a++) {
        const char *word = posenc_status_string((posenc_status)a);
        assert_non_null(word);
        assert_string_not_equal(word, "unknown");
        for (int b = POSENC_OK; b < a; b++)
            assert_string_not_equal(word, posenc_status_string((posenc_status)b));
    }
    assert_string_equal(posenc_status_string((posenc_status)(POSENC_ERROR_CANCELLED + 1)), "unknown");
    assert_string_equal(posenc_status_string((posenc_status)-1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_returns_its_status_and_fills_in_the_sentence),
        cmocka_unit_test(a_caller_without_an_error_struct_still_gets_the_status),
        cmocka_unit_test(a_sentence_too_long_is_cut_inside_the_struct),
        cmocka_unit_test(success_clears_an_old_sentence),
        cmocka_unit_test(every_status_has_a_word_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

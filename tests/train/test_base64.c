/* SPDX-License-Identifier: MIT */
/*
 * Numbers as base64: against the RFC's own letters, back to the same bits, and nothing but what was written.
 */
#include "train/base64.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* RFC 4648, section 10: "foob" is Zm9vYg==; as a float its bytes are 66 6f 6f 62. */
static void letters_are_those_of_the_rfc(void **state)
{
    const uint32_t bits = 0x626f6f66;
    float          x;
    (void)state;
    memcpy(&x, &bits, sizeof x);
    char *text = pe_base64_write(&x, 1);
    assert_string_equal(text, "Zm9vYg==");
    free(text);
}

static void every_bit_comes_back_for_any_count(void **state)
{
    float x[50], y[50];
    (void)state;
    for (uint32_t i = 0; i < 50; i++) {
        const uint32_t bits = i * 2654435761u ^ 0x7fc00000u; /* some are NaN with a payload */
        memcpy(&x[i], &bits, sizeof bits);
    }
    x[3] = -0.0f;
    x[4] = INFINITY;
    for (int64_t n = 0; n <= 50; n++) {
        char *text = pe_base64_write(x, n);
        assert_true(pe_base64_read(y, n, text, strlen(text)));
        assert_memory_equal(x, y, (size_t)n * sizeof *x);
        free(text);
    }
}

static void what_was_not_written_is_not_read(void **state)
{
    float       x[3] = {1, 2, 3}, y[4];
    char       *text = pe_base64_write(x, 3); /* twelve bytes: no padding */
    const char *bad  = "\n !-_=.";
    (void)state;
    for (size_t n = 0; n < strlen(text); n++)
        assert_false(pe_base64_read(y, 3, text, n));
    assert_false(pe_base64_read(y, 2, text, strlen(text)));
    assert_false(pe_base64_read(y, 4, text, strlen(text)));
    for (size_t i = 0; i < strlen(text); i++)
        for (const char *b = bad; *b; b++) {
            const char was = text[i];
            text[i]        = *b;
            assert_false(pe_base64_read(y, 3, text, strlen(text)));
            text[i] = was;
        }
    assert_true(pe_base64_read(y, 3, text, strlen(text)));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_those_of_the_rfc),
        cmocka_unit_test(every_bit_comes_back_for_any_count),
        cmocka_unit_test(what_was_not_written_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

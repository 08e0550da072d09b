/* SPDX-License-Identifier: MIT */
/* Texts that a program reads again: files/arrays/text.h */
#include "files/arrays/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_csv_field_keeps_commas_and_doubles_quotes(void **state)
{
    char        text[64] = "";
    FILE *const to       = fmemopen(text, sizeof text, "w");
    (void)state;
    assert_non_null(to);
    pe_text_write_csv(to, "t5[buckets=8], \"large\"");
    pe_text_write_csv(to, "");
    fclose(to);
    assert_string_equal(text, "\"t5[buckets=8], \"\"large\"\"\"\"\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_csv_field_keeps_commas_and_doubles_quotes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

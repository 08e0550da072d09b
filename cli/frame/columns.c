/* SPDX-License-Identifier: MIT */
/*
 * columns.c: how wide UTF-8 text is on a terminal
 *
 * A terminal gives Chinese, Japanese and Korean characters and their punctuation two columns, everything else
 * that the tool prints one. wcwidth knows more, but only in a locale that the tool does not set, because
 * numbers would follow it too. Source: Unicode, EastAsianWidth.txt, classes W and F, in whole blocks.
 */
#include "cli/frame/cli.h"

static int is_wide(unsigned code)
{
    return (code >= 0x2E80 && code <= 0xA4CF) || (code >= 0xAC00 && code <= 0xD7A3) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0xFE30 && code <= 0xFE6F) ||
           (code >= 0xFF00 && code <= 0xFF60) || (code >= 0x20000 && code <= 0x3FFFD);
}

size_t cli_columns_next(const char *text, int *columns)
{
    const unsigned char lead = (unsigned char)*text;
    size_t              n    = 1;
    unsigned code = lead < 0x80 ? lead : lead < 0xE0 ? lead & 0x1F : lead < 0xF0 ? lead & 0x0F : lead & 7;
    for (; ((unsigned char)text[n] & 0xC0) == 0x80; n++)
        code = code << 6 | ((unsigned char)text[n] & 0x3F);
    *columns = is_wide(code) ? 2 : 1;
    return n;
}

int cli_columns_of(const char *text, size_t length)
{
    int all = 0, columns;
    for (const char *end = text + length; text < end && *text; all += columns)
        text += cli_columns_next(text, &columns);
    return all;
}

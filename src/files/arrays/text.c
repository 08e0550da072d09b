/* SPDX-License-Identifier: MIT */
/* Texts of strangers, shown and in CSV. Contract: text.h. Source: the table of well-formed sequences of the
   Unicode standard, section 3.9, table 3-7. */
#include "files/arrays/text.h"

/* How many bytes follow the first one of a character, and between which numbers the second of them all lies.
 */
static const struct {
    unsigned char first, last, more, low, high;
} leads[] = {
    {0x00, 0x7F, 0, 0x00, 0x00}, {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF},
    {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF},
    {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

/* Control characters, old (C0) and new (C1), and those of direction and of lines: U+061C, 200E, 200F, 2028 to
   202E, 2066 to 2069; the mark that is not seen, U+FEFF; and U+FFFE and FFFF, which no XML may hold. */
static int acts(const unsigned char *c)
{
    if (c[0] < 0x80)
        return c[0] < 0x20 || c[0] == 0x7F;
    if (c[0] == 0xC2)
        return c[1] < 0xA0;
    return (c[0] == 0xE2 && c[1] == 0x80 &&
            (c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xA8 && c[2] <= 0xAE))) ||
           (c[0] == 0xE2 && c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9) ||
           (c[0] == 0xEF && c[1] == 0xBB && c[2] == 0xBF) || (c[0] == 0xD8 && c[1] == 0x9C) ||
           (c[0] == 0xEF && c[1] == 0xBF && c[2] >= 0xBE);
}

size_t pe_text_next(const char *text, size_t n, int *shows)
{
    const unsigned char *c = (const unsigned char *)text;
    *shows                 = 0;
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
        size_t more = leads[i].more;
        if (c[0] < leads[i].first || c[0] > leads[i].last)
            continue;
        if (more >= n || (more && (c[1] < leads[i].low || c[1] > leads[i].high)))
            return 1;
        for (size_t k = 2; k <= more; k++)
            if ((c[k] & 0xC0) != 0x80)
                return 1;
        *shows = !acts(c);
        return 1 + more;
    }
    return 1;
}

void pe_text_put(FILE *to, const char *text, size_t n)
{
    int shows;
    n = strnlen(text, n);
    for (size_t at = 0, size; at < n; at += size) {
        size = pe_text_next(text + at, n - at, &shows);
        for (size_t i = 0; i < size; i++)
            fputc(shows ? text[at + i] : '?', to);
    }
}

/* Does a character begin there that the end of the text has cut off? */
static int is_cut(const char *text, size_t n)
{
    const unsigned char lead = (unsigned char)*text;
    const size_t        all  = lead > 0xF4 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
    size_t              i    = 1;
    while (i < n && ((unsigned char)text[i] & 0xC0) == 0x80)
        i++;
    return i == n && n < all;
}

static char *clean(char *text, char but)
{
    const size_t n = strlen(text);
    int          shows;
    for (size_t at = 0, size; at < n; at += size) {
        size = pe_text_next(text + at, n - at, &shows);
        if (!shows && is_cut(text + at, n - at)) {
            text[at] = 0;
            break;
        }
        if (!shows && text[at] != but)
            memset(text + at, '?', size);
    }
    return text;
}

char *pe_text_clean(char *text)
{
    return clean(text, '?');
}

char *pe_text_clean_lines(char *text)
{
    return clean(text, '\n');
}

/* Would a spreadsheet take it for a formula? Some do where = + - @ are as wide as a Chinese character. */
static int is_formula(const char *text)
{
    static const char *const wide[] = {"\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (!strncmp(text, wide[i], 3))
            return 1;
    return *text && strchr("=+-@\t\r\n", *text);
}

void pe_text_write_csv(FILE *to, const char *text)
{
    int shows;
    fputs(is_formula(text) ? "\"'" : "\"", to);
    for (size_t n = strlen(text), size; n; text += size, n -= size) {
        size = pe_text_next(text, n, &shows);
        if (*text == '"')
            fputc('"', to);
        if (shows || *text == '\n')
            fwrite(text, 1, size, to);
        else
            fputs(&"???"[3 - (size < 3 ? size : 3)], to);
    }
    fputc('"', to);
}

/* SPDX-License-Identifier: MIT */
/* Widths from a table of classes of letters, and greedy lines: contract in text.h. */
#include "plot/text.h"

#include <string.h>

/* DejaVu Sans, rounded up; what is in no row is UNLISTED. The bytes behind the first of a letter in UTF-8
   have no width. */
static const struct {
    const char *letters;
    double      width;
} classes[] = {
    {" .,ijlI|'", 0.32}, {":;/\\!ft()[]-\"", 0.40}, {"rszc?", 0.55},
    {"m%@wMW", 0.96},    {"+=<>~#", 0.84},          {"ABCDEFGHKNOPQRTUVXYZ&", 0.74},
};
#define UNLISTED   0.64
#define FOREIGN    1.0
#define MOST_LINES 12

static double width_of(char c)
{
    if ((unsigned char)c >= 0x80)
        return (c & 0xC0) == 0x80 ? 0 : FOREIGN;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strchr(classes[i].letters, c))
            return classes[i].width;
    return UNLISTED;
}

double pe_text_width(const char *text, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n && text[i]; i++)
        sum += width_of(text[i]);
    return sum;
}

/* Bytes of the next line, without the blank or break behind it. */
static size_t line_length(const char *text, double width)
{
    const size_t whole = strcspn(text, "\n");
    size_t       fits = 0, blank = 0, joint = 0, within = 0;
    double       used = 0;
    while (fits < whole && (used += width_of(text[fits])) <= width) {
        if (text[fits] == ' ')
            blank = fits;
        if (strchr(":,/+", text[fits]))
            joint = fits + 1;
        if (text[fits] == '_')
            within = fits + 1;
        fits++;
    }
    if (fits == whole)
        return whole;
    while (fits > 1 && ((unsigned char)text[fits] & 0xC0) == 0x80) /* not within a letter */
        fits--;
    if (text[fits] == ' ')
        return fits;
    return blank ? blank : joint ? joint : within ? within : fits ? fits : 1;
}

int pe_text_wrap(const char *text, double width, char to[PE_WRAPPED])
{
    size_t used  = 0;
    int    lines = 0;
    to[0]        = 0;
    while (text && *text && lines < MOST_LINES) {
        const size_t n = line_length(text, width), room = PE_WRAPPED - used - 2;
        if (lines++)
            to[used++] = '\n';
        memcpy(to + used, text, n < room ? n : room);
        used += n < room ? n : room;
        to[used] = 0;
        if (n >= room)
            break;
        text += n;
        text += *text == ' ' || *text == '\n';
    }
    return lines;
}

/* SPDX-License-Identifier: MIT */
/* Sentences that name their file: contract in fail.h. */
#include "files/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SHOWN = 90, MEMBER_SHOWN = 40 };

/* The last `shown` characters of a name, and "..." before them if that is not all. */
static int put_name(char *to, size_t room, const char *name, size_t shown)
{
    const size_t n = strlen(name);
    return n <= shown ? snprintf(to, room, "%s: ", name) : snprintf(to, room, "...%s: ", name + n - shown);
}

static void one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

posenc_status pe_file_fail_list(posenc_error *err, posenc_status status, pe_origin origin, const char *format,
                                va_list list)
{
    if (!err)
        return status;
    char  *to   = err->message;
    size_t used = (size_t)put_name(to, sizeof err->message, origin.path, PATH_SHOWN);
    if (origin.member)
        used += (size_t)put_name(to + used, sizeof err->message - used, origin.member, MEMBER_SHOWN);
    vsnprintf(to + used, sizeof err->message - used, format, list);
    one_line(to);
    err->status = status;
    return status;
}

posenc_status pe_file_fail(posenc_error *err, posenc_status status, pe_origin origin, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    pe_file_fail_list(err, status, origin, format, list);
    va_end(list);
    return status;
}

posenc_status pe_file_done(posenc_error *err)
{
    if (err) {
        err->status     = POSENC_OK;
        err->message[0] = '\0';
    }
    return POSENC_OK;
}

const char *pe_file_reason(int number)
{
    return number ? strerror(number) : "no reason given";
}

void pe_real_text(char text[PE_REAL_TEXT], double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, PE_REAL_TEXT, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            return;
    }
}

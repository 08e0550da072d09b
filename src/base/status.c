/* SPDX-License-Identifier: MIT */
/* Status codes and the sentence that goes with them: contract in status.h and posenc.h. */
#include "base/status.h"

#include "base/shared/decimal.h"

posenc_status pe_fail(posenc_error *err, posenc_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        err->status = status;
        va_start(args, format);
        pe_decimal_print(err->message, sizeof err->message, format, args);
        va_end(args);
        for (char *c = err->message; *c; c++) /* a caller's text may have any */
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
    }
    return status;
}

posenc_status pe_done(posenc_error *err)
{
    if (err) {
        err->status     = POSENC_OK;
        err->message[0] = '\0';
    }
    return POSENC_OK;
}

const char *posenc_status_string(posenc_status status)
{
    static const char *const words[] = {
        "ok",        "argument", "shape",       "dtype", "setting", "range",
        "workspace", "memory",   "unsupported", "file",  "format",  "cancelled",
    };
    const size_t n = sizeof words / sizeof *words;
    return (size_t)status < n ? words[status] : "unknown";
}

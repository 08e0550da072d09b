/* SPDX-License-Identifier: MIT */
/*
 * fail.h: the one way to fail in this folder
 *
 * Fills the caller's posenc_error and returns its status, so that a check is one statement. The core's own
 * function of this kind stands behind its door, where nobody may reach. The sentence names what is wrong, and
 * the mend.
 */
#ifndef PE_PLOT_FAIL_H
#define PE_PLOT_FAIL_H

#include <posenc/posenc.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static inline posenc_status
pe_plot_fail(posenc_error *err, posenc_status status, const char *format, ...)
{
    if (err) {
        va_list list;
        va_start(list, format);
        err->status = status;
        vsnprintf(err->message, sizeof err->message, format, list);
        va_end(list);
    }
    return status;
}

#endif

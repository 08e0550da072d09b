/* SPDX-License-Identifier: MIT */
/*
 * fail.h: the one way to fail in this folder
 *
 * The core has the same function behind its door, where nobody may reach; this one fills the public
 * posenc_error and returns its status, so that a check is one statement:
 *
 *     if (config->steps < 1)
 *         return pe_train_fail(err, POSENC_ERROR_ARGUMENT, "run: steps is %lld; it must be at least 1", ...);
 *
 * The sentence names the argument, what it is, and what it must be. Nothing here prints.
 */
#ifndef PE_TRAIN_FAIL_H
#define PE_TRAIN_FAIL_H

#include <posenc/posenc.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static inline posenc_status
pe_train_fail(posenc_error *err, posenc_status status, const char *format, ...)
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

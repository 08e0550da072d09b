/* SPDX-License-Identifier: MIT */
/*
 * status.h: the one way to fail
 *
 *     return pe_fail(err, POSENC_ERROR_SHAPE, "attend: k has %lld heads but q has %lld; ...", ...);
 *
 * The sentence names the argument, what it is and what it must be. It goes into the caller's struct;
 * nothing is printed, allocated or stored elsewhere.
 */
#ifndef PE_BASE_STATUS_H
#define PE_BASE_STATUS_H

#include <posenc/posenc.h>

#include "base/shared/compiler.h"

/* Writes status and sentence to *err (which may be NULL) and returns status. Too long a sentence is cut, and
   control characters become '?', so that it stays one line. */
posenc_status pe_fail(posenc_error *err, posenc_status status, const char *format, ...) PE_PRINTF(3, 4);

/* Clears *err and returns POSENC_OK. */
posenc_status pe_done(posenc_error *err);

#endif

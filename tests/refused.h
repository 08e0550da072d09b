/* SPDX-License-Identifier: MIT */
/* refused.h: a call that must fail, with this status and these words in its sentence */
#ifndef TESTS_REFUSED_H
#define TESTS_REFUSED_H

#include <string.h>

static inline void assert_refused(posenc_status got, const posenc_error *err, posenc_status status,
                                  const char *words)
{
    if (got != status || !strstr(err->message, words))
        fail_msg("'%s' (%s) instead of '%s' (%s)", got ? err->message : "", posenc_status_string(got), words,
                 posenc_status_string(status));
}

#endif

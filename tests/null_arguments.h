/* SPDX-License-Identifier: MIT */
/* null_arguments.h: public functions, tried with every pointer NULL, one at a time and all together */
#ifndef TESTS_NULL_ARGUMENTS_H
#define TESTS_NULL_ARGUMENTS_H

#include <posenc/posenc.h>
#include <stdio.h>
#include <string.h>

enum { NULL_ARGUMENTS = 6 };

/* A call whose pointer number i is NULL where bit i of `without` is set; WITH(i, x) is that pointer. */
typedef posenc_status null_call(unsigned without, posenc_error *err);
#define WITH(i, x) (without >> (i)&1 ? NULL : (x))

/* Its pointers by their names; those that may be NULL end in '?'. */
typedef struct null_subject {
    const char *name;
    null_call  *call;
    const char *pointers[NULL_ARGUMENTS];
} null_subject;

static inline void null_refused(const null_subject *s, unsigned without, const char *word)
{
    posenc_error        err    = {POSENC_OK, "untouched"};
    const posenc_status status = s->call(without, &err);
    if ((status != POSENC_ERROR_ARGUMENT && status != POSENC_ERROR_WORKSPACE) || err.status != status ||
        !strstr(err.message, word))
        fail_msg("%s without %s: status %d, \"%s\"", s->name, word, (int)status, err.message);
    if (s->call(without, NULL) != status)
        fail_msg("%s without %s: without err it has another status", s->name, word);
}

static inline void null_try(const null_subject *s)
{
    posenc_error err;
    unsigned     needed = 0;
    if (s->call(0, &err))
        fail_msg("%s with every pointer: %s", s->name, err.message);
    for (unsigned i = 0; i < NULL_ARGUMENTS && s->pointers[i]; i++) {
        const char *name = s->pointers[i];
        if (!strchr(name, '?')) {
            null_refused(s, 1U << i, name);
            needed |= 1U << i;
        } else if (s->call(1U << i, &err))
            fail_msg("%s without %s: %s", s->name, name, err.message);
    }
    null_refused(s, needed, "");
    null_refused(s, ~0U, "");
}

#endif

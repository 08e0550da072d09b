/* SPDX-License-Identifier: MIT */
/*
 * Sizes tell versions apart: a member that is added goes to the end, and zero is its default. So a shorter
 * struct says nothing of the members that it lacks, and a longer one nothing new while they are zero. A size
 * far too large is no newer caller's, but memory that nobody set. Contract: given.h.
 */
#include "api/given.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

enum { MOST_UNKNOWN = 4096 };

static size_t first_not_zero(const unsigned char *bytes, size_t from, size_t to)
{
    while (from < to && !bytes[from])
        from++;
    return from;
}

const void *pe_given_read_other(void *copy, const void *from, pe_given of, const char *who, const char *name,
                                posenc_error *err)
{
    if (!from) {
        pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: %s is NULL; it must be a %s", who, name, of.type);
        return NULL;
    }
    const size_t size = *(const size_t *)from;
    if (size < of.least || size > of.bytes + MOST_UNKNOWN) {
        pe_fail(err, POSENC_ERROR_ARGUMENT, "%s: %s.size is %zu; set it to sizeof(%s)", who, name, size,
                of.type);
        return NULL;
    }
    if (size < of.bytes) {
        memset(copy, 0, of.bytes);
        return memcpy(copy, from, size);
    }
    if (first_not_zero(from, of.bytes, size) == size)
        return from;
    pe_fail(
        err, POSENC_ERROR_ARGUMENT,
        "%s: %s has %zu bytes more than this library (%d.%d.%d) knows, and they are not zero; set its size "
        "to sizeof(%s), or use the library of your headers",
        who, name, size - of.bytes, POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR, POSENC_VERSION_PATCH,
        of.type);
    return NULL;
}

posenc_status pe_given_allocator(posenc_allocator *to, const posenc_allocator *from, const char *who,
                                 posenc_error *err)
{
    posenc_allocator copy;
    *to = (posenc_allocator){0};
    if (!from)
        return POSENC_OK;
    if (!(from = pe_given_read(&copy, from, PE_GIVEN(posenc_allocator, context), who, "allocator", err)))
        return POSENC_ERROR_ARGUMENT;
    *to = *from;
    return pe_memory_check(to, who, err);
}

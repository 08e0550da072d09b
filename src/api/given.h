/* SPDX-License-Identifier: MIT */
/* given.h: structs of arguments, which begin with their size, as callers of other versions give them */
#ifndef PE_API_GIVEN_H
#define PE_API_GIVEN_H

#include <posenc/posenc.h>

/* A struct of arguments: its type's name, its bytes in this version, and how many every version has. */
typedef struct pe_given {
    const char *type;
    size_t      bytes, least;
} pe_given;

/* That of a type whose callers give all members up to `last`. */
#define PE_GIVEN(type, last) \
    ((const pe_given){#type, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last)})

/* The struct as this version has it: `from` itself, or, of an older caller's, which is shorter, `copy` with
   zeros for what it lacks. Nothing is read behind its size. NULL for a struct that is NULL, whose size is no
   size of it, or whose bytes that this version does not know are not all zero: ARGUMENT. `who`: "attend",
   `name`: "in". */
const void *pe_given_read_other(void *copy, const void *from, pe_given of, const char *who, const char *name,
                                posenc_error *err);

/* Inlined, for a rotation of one row takes less time than ten calls. */
static inline const void *pe_given_read(void *copy, const void *from, pe_given of, const char *who,
                                        const char *name, posenc_error *err)
{
    return from && *(const size_t *)from == of.bytes ? from
                                                     : pe_given_read_other(copy, from, of, who, name, err);
}

/* The caller's allocator as it is kept, zeroed where there is none. */
posenc_status pe_given_allocator(posenc_allocator *to, const posenc_allocator *from, const char *who,
                                 posenc_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * memory.c: memory that ends, ends the tool: one sentence, status 1
 *
 * The idea   The program's own malloc, calloc, realloc, aligned_alloc and posix_memalign take the place of
 * those of the C library in the whole process, and pass every call on to them. What they cannot give is never
 *            handed back as NULL: the temporary files are removed, one sentence is written, and it is over.
 * Why        The library returns an error to its caller. But below a command also lie jansson, libzip and the
 * C library, and some of their calls cannot tell "absent" from "no memory": a JSON object without a member
 *            reads like one that never had it, and a picture without its last lines like a picture. One place
 * that none of them passes is worth more than a check behind each of a thousand calls. Surprises  RTLD_NEXT
 * finds what would have been called without this file, so another allocator that is loaded first
 * (LD_PRELOAD), one that fails on purpose included, stays what it is. Nothing here allocates: the sentence is
 * written to a buffer of its own and past stdio, whose locks another thread may hold. Not part of builds with
 * sanitizers, which bring an allocator of their own.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <posenc/files.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *end(size_t size)
{
    char      text[96];
    const int n = snprintf(text, sizeof text,
                           "posenc: error: not enough memory: %zu more bytes could not be had\n", size);
    posenc_whole_file_abandon();
    (void)!write(STDERR_FILENO, text, (size_t)n);
    _exit(1);
}

/* The next function of that name, into *call; threads that come at once find the same one. */
static void find(void *call, const char *name)
{
    void *const found = dlsym(RTLD_NEXT, name);
    if (!found)
        _exit(127);
    memcpy(call, &found, sizeof found); /* C has no conversion from an object's address to a function's */
}

POSENC_API void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (!next)
        find(&next, "malloc");
    void *memory = next(size);
    return memory || !size ? memory : end(size);
}

POSENC_API void *calloc(size_t count, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        find(&next, "calloc");
    void *memory = next(count, size);
    return memory || !count || !size ? memory : end(size > SIZE_MAX / count ? SIZE_MAX : count * size);
}

POSENC_API void *realloc(void *old, size_t size)
{
    static void *(*next)(void *, size_t);
    if (!next)
        find(&next, "realloc");
    void *memory = next(old, size);
    return memory || !size ? memory : end(size);
}

POSENC_API void *aligned_alloc(size_t alignment, size_t size)
{
    static void *(*next)(size_t, size_t);
    if (!next)
        find(&next, "aligned_alloc");
    void *memory = next(alignment, size);
    return memory || !size ? memory : end(size);
}

POSENC_API int posix_memalign(void **memory, size_t alignment, size_t size)
{
    static int (*next)(void **, size_t, size_t);
    if (!next)
        find(&next, "posix_memalign");
    const int status = next(memory, alignment, size);
    if (status == ENOMEM)
        end(size);
    return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * windows.h: what the tests take for granted and the C library of Windows does not have
 *
 * Included before each test's first line. Memory of aligned_alloc is given back there in another way than
 * that of malloc, so all of a test's memory comes from the one that can do both.
 */
#ifndef TESTS_CROSS_WINDOWS_H
#define TESTS_CROSS_WINDOWS_H

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static inline void *tests_zeros(size_t count, size_t size)
{
    void *memory = _aligned_malloc(count * size + 1, 64);
    return memory ? memset(memory, 0, count * size) : NULL;
}

#define aligned_alloc(alignment, size) _aligned_malloc(size, alignment)
#define malloc(size)                   _aligned_malloc((size) + 1, 64)
#define calloc(count, size)            tests_zeros(count, size)
#define realloc(memory, size)          _aligned_realloc(memory, size, 64)
#define free(memory)                   _aligned_free(memory)

#define setenv(name, value, anew) _putenv_s(name, value)
#define unsetenv(name)            _putenv_s(name, "")

#endif

/* SPDX-License-Identifier: MIT */
/* The caller's allocator, or malloc and free. Contract: memory.h. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#ifdef _WIN32 /* has no aligned_alloc, and takes such memory back in a way of its own */
#define aligned_alloc(alignment, bytes) _aligned_malloc(bytes, alignment)
#define free                            _aligned_free
#endif

#include "base/arena.h"
#include "base/status.h"

void *pe_memory_create(const posenc_allocator *from, size_t bytes)
{
    const size_t whole = (bytes + PE_ALIGN - 1) / PE_ALIGN * PE_ALIGN;
    return from->allocate ? from->allocate(from->context, PE_ALIGN, whole) : aligned_alloc(PE_ALIGN, whole);
}

void *pe_memory_zeros_create(const posenc_allocator *from, size_t bytes)
{
    void *memory = pe_memory_create(from, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void pe_memory_free(const posenc_allocator *to, void *memory)
{
    if (memory && to->release)
        to->release(to->context, memory);
    else if (memory)
        free(memory);
}

posenc_status pe_memory_check(const posenc_allocator *allocator, const char *who, posenc_error *err)
{
    if (!allocator->allocate == !allocator->release)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_ARGUMENT,
                   "%s: the allocator has only one of allocate and release; give both, or neither", who);
}

/* SPDX-License-Identifier: MIT */
/* memory.h: where objects get their memory: the caller's allocator, or malloc and free */
#ifndef PE_BASE_MEMORY_H
#define PE_BASE_MEMORY_H

#include <posenc/posenc.h>

/* `bytes` aligned to 64, or NULL; and such that are all 0. */
void *pe_memory_create(const posenc_allocator *from, size_t bytes);
void *pe_memory_zeros_create(const posenc_allocator *from, size_t bytes);
/* NULL is fine. */
void pe_memory_free(const posenc_allocator *to, void *memory);

/* Are both functions there, or neither? `who` opens the sentence. */
posenc_status pe_memory_check(const posenc_allocator *allocator, const char *who, posenc_error *err);

#endif

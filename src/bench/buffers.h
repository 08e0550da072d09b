/* SPDX-License-Identifier: MIT */
/*
 * buffers.h: memory to measure on: huge pages, and random numbers, never zeros
 *
 * Zeros move faster than numbers (streaming stores twice as fast on the machine where it was seen), and pages
 * of 4 KiB cost up to 8 %: so buffers begin at 2 MiB, ask for huge pages, and are written in full before
 * anything is timed.
 */
#ifndef PE_BENCH_BUFFERS_H
#define PE_BENCH_BUFFERS_H

#include <posenc/posenc.h>
#include <stddef.h>

enum { PE_MOST_BUFFERS = 96 };

/* All memory of one case, freed at once. */
typedef struct pe_buffers {
    void *blocks[PE_MOST_BUFFERS];
    int   count;
} pe_buffers;

/* n numbers of a storage type, uniform with mean 0 and variance 1. NULL without memory, after filling err. */
void *pe_random_buffer(pe_buffers *all, int64_t n, posenc_dtype dtype, posenc_error *err);
/* Bytes that nothing has touched. */
void *pe_plain_buffer(pe_buffers *all, size_t bytes, posenc_error *err);
void  pe_free_buffers(pe_buffers *all);

/* From now on this process has small pages: for whoever counts which are touched. */
void pe_take_small_pages(void);

#endif

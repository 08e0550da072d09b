/* SPDX-License-Identifier: MIT */
/* Memory to measure on. Contract: buffers.h. */
#define _DEFAULT_SOURCE /* madvise */
#include "bench/buffers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/half.h"

enum { HUGE_PAGE = 1 << 21, SEED = 88172645 };

static int small_pages;

void pe_take_small_pages(void)
{
    small_pages = 1;
#ifdef PR_SET_THP_DISABLE
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* what was freed has kept the advice it got before */
#endif
}

void *pe_plain_buffer(pe_buffers *all, size_t bytes, posenc_error *err)
{
    void *block = NULL;
    if (all->count < PE_MOST_BUFFERS)
        block = aligned_alloc(HUGE_PAGE, (bytes / HUGE_PAGE + 1) * HUGE_PAGE);
    if (!block) {
        *err = (posenc_error){.status = POSENC_MEMORY};
        snprintf(err->message, sizeof err->message, "there is no memory for %zu MiB", bytes >> 20);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (bytes >= HUGE_PAGE && !small_pages)
        madvise(block, (bytes / HUGE_PAGE + 1) * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    all->blocks[all->count++] = block;
    return block;
}

/* Marsaglia's xorshift: fast, and random enough to be no constant. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void put(void *to, int64_t i, posenc_dtype dtype, float x)
{
    if (dtype == POSENC_BF16)
        ((uint16_t *)to)[i] = pe_float_to_bf16(x);
    else if (dtype == POSENC_F16)
        ((uint16_t *)to)[i] = pe_float_to_f16(x);
    else
        ((float *)to)[i] = x;
}

void *pe_random_buffer(pe_buffers *all, int64_t n, posenc_dtype dtype, posenc_error *err)
{
    const float spread = sqrtf(12.0f) * 0x1p-32f; /* 2^32 steps become a width of sqrt(12): variance 1 */
    uint64_t    state  = SEED + (uint64_t)all->count;
    void       *block  = pe_plain_buffer(all, (size_t)n * posenc_dtype_size(dtype), err);
    for (int64_t i = 0; block && i < n; i++)
        put(block, i, dtype, spread * (float)(int32_t)(draw(&state) >> 32));
    return block;
}

void pe_free_buffers(pe_buffers *all)
{
    for (int i = 0; i < all->count; i++)
        free(all->blocks[i]);
    all->count = 0;
}

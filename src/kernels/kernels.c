/* SPDX-License-Identifier: MIT */
/*
 * kernels.c: which kernels this processor gets
 *
 * A row per instruction set, slowest first; the last one that runs is chosen, or the one that the plan's
 * options or POSENC_ISA name. A name that this processor cannot run chooses nothing: a test or a measurement
 * of "avx512" that silently used something else would mislead. The choice is stored in each plan: there is no
 * global to initialise and no lock.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

extern const pe_kernels pe_kernels_plain;
#ifdef POSENC_X86
extern const pe_kernels      pe_kernels_avx2, pe_kernels_avx512, pe_kernels_avx512bf16;
extern const pe_bf16_kernels pe_bf16_kernels_avx512;

/* F16C is older than AVX2 (Ivy Bridge, Piledriver) and part of every processor that has it; compilers differ
   in whether they can be asked for it. */
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static int has_avx512bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16");
}
#endif

#ifdef POSENC_NEON
extern const pe_kernels pe_kernels_neon;
#endif

static int always(void)
{
    return 1;
}

static const struct {
    const pe_kernels *kernels;
    int (*runs)(void);
} levels[] = {
    {&pe_kernels_plain, always},
#ifdef POSENC_X86
    {&pe_kernels_avx2, has_avx2}, {&pe_kernels_avx512, has_avx512}, {&pe_kernels_avx512bf16, has_avx512bf16},
#endif
#ifdef POSENC_NEON
    {&pe_kernels_neon, always},
#endif
};

enum { LEVELS = sizeof levels / sizeof *levels };

const pe_kernels *pe_kernels_at(int index)
{
    for (int i = 0; i < LEVELS; i++)
        if (index >= 0 && levels[i].runs() && index-- == 0)
            return levels[i].kernels;
    return NULL;
}

const pe_kernels *pe_kernels_named(const char *name)
{
    const pe_kernels *kernels;
    for (int i = 0; (kernels = pe_kernels_at(i)); i++)
        if (!strcmp(kernels->isa, name))
            return kernels;
    return NULL;
}

const char *pe_kernels_wanted(void)
{
    const char *wanted = getenv("POSENC_ISA");
    return wanted && *wanted ? wanted : NULL;
}

const pe_kernels *pe_kernels_choose(void)
{
    const char *wanted = pe_kernels_wanted();
    int         best   = LEVELS - 1;
    while (!levels[best].runs()) /* the first does always */
        best--;
    return wanted ? pe_kernels_named(wanted) : levels[best].kernels;
}

/* On AMD's family 19h (measured on Zen 4; Zen 3 is of it too) the hardware prefetches streams better by
   itself: rotation in place reaches 0.73 to 0.84 of the speed of a pass in place with prefetches, and 0.87 to
   0.95 without, at any distance and for any cache; decoding loses a third by prefetching (decode.inc). On
   family 1Ah prefetching gains as much. */
int pe_kernels_prefetch_helps(void)
{
#ifdef POSENC_X86
    return !__builtin_cpu_is("amdfam19h");
#else
    return 1;
#endif
}

int64_t pe_kernels_prefetch_distance(int64_t size, int64_t bytes)
{
    enum {
        AHEAD = 6 << 10, /* bytes; lines of 16-bit numbers take longer to rotate and are prefetched sooner */
        FAR   = 1 << 20  /* bytes: the second cache of a core */
    };
    if (bytes <= FAR || !pe_kernels_prefetch_helps())
        return 0;
    return size == 2 ? 2 * AHEAD : AHEAD;
}

const pe_bf16_kernels *pe_kernels_bf16(const pe_kernels *kernels)
{
#ifdef POSENC_X86
    if (kernels == &pe_kernels_avx512bf16)
        return &pe_bf16_kernels_avx512;
#endif
    return NULL;
}

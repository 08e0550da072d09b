/* SPDX-License-Identifier: MIT */
/*
 * dispatch.c: which kernels this processor gets
 *
 * A row per instruction set, worst first; the last one that runs is chosen, or the one that POSENC_ISA names (for
 * tests). The choice is stored in each plan: there is no global to initialise and no lock.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

extern const pe_kernels pe_kernels_plain;
#ifdef POSENC_X86
extern const pe_kernels      pe_kernels_avx2, pe_kernels_avx512, pe_kernels_avx512bf16;
extern const pe_bf16_kernels pe_bf16_kernels_avx512;

/* F16C is older than AVX2 (Ivy Bridge, Piledriver) and part of every processor that has it; compilers differ in whether they
   can be asked for it. */
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
    {&pe_kernels_avx2, has_avx2},
    {&pe_kernels_avx512, has_avx512},
    {&pe_kernels_avx512bf16, has_avx512bf16},
#endif
};

enum { LEVELS = sizeof levels / sizeof *levels };

const pe_kernels *pe_kernels_at(int index)
{
    for (int i = 0; i < LEVELS; i++)
        if (levels[i].runs() && index-- == 0)
            return levels[i].kernels;
    return NULL;
}

const pe_kernels *pe_kernels_choose(void)
{
    const char       *wanted = getenv("POSENC_ISA");
    const pe_kernels *best   = NULL;
    for (int i = 0; i < LEVELS; i++) {
        if (!levels[i].runs())
            continue;
        best = levels[i].kernels;
        if (wanted && !strcmp(wanted, best->isa))
            return best;
    }
    return best;
}

const pe_bf16_kernels *pe_kernels_bf16(const pe_kernels *kernels)
{
#ifdef POSENC_X86
    if (kernels == &pe_kernels_avx512bf16)
        return &pe_bf16_kernels_avx512;
#endif
    (void)kernels;
    return NULL;
}

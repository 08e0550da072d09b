/* SPDX-License-Identifier: MIT */
/*
 * gates.h: logarithms of gates, which let a share of something through
 *
 * ls(x) = ln 1/(1 + e^-x) = min(x, 0) - ln(1 + e^-|x|), never the logarithm of a sigmoid, which is 0 below
 * -90 in float.
 */
#ifndef PE_ENGINE_GATES_H
#define PE_ENGINE_GATES_H

#include <math.h>

#include "engine/score/terms.h"

/* e^-|x| = s/(1 - s) for s = 1/(1 + e^|x|), which is at most 1/2; out is not x. */
static inline void pe_gates_ls(const pe_kernels *kernels, const double x[], int64_t n, double out[])
{
    for (int64_t i = 0; i < n; i++)
        out[i] = -fabs(x[i]);
    kernels->sigmoids(out, out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] /= 1 - out[i];
    kernels->logs(out, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] < 0 ? x[i] : 0) - out[i];
}

static inline void pe_gates_log(const pe_problem *p, const double x[], int64_t n, double log_gate[])
{
    pe_gates_ls(p->kernels, x, n, log_gate);
}

/* d ls(x) / dx = 1/(1 + e^x) */
static inline double pe_gates_share(double x)
{
    return x > 0 ? exp(-x) / (1 + exp(-x)) : 1 / (1 + exp(x));
}

static inline void pe_gates_log_back(const pe_problem *p, const double x[], int64_t n, double dx[])
{
    (void)p;
    for (int64_t i = 0; i < n; i++)
        dx[i] *= pe_gates_share(x[i]);
}

#endif

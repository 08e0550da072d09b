/* SPDX-License-Identifier: MIT */
/* moments.h: mean and standard deviation of numbers that come one by one; NaN ones are left out. */
#ifndef PE_MEASURE_MOMENTS_H
#define PE_MEASURE_MOMENTS_H

#include <math.h>
#include <stdint.h>

typedef struct pe_moments {
    double  sum, squares;
    int64_t count;
} pe_moments;

static inline void pe_moments_add(pe_moments *m, double x)
{
    if (isnan(x))
        return;
    m->sum += x;
    m->squares += x * x;
    m->count++;
}

/* NaN of none. */
static inline double pe_moments_mean(const pe_moments *m)
{
    return m->count ? m->sum / (double)m->count : (double)NAN;
}

/* Of a sample; NaN of fewer than two. */
static inline double pe_moments_spread(const pe_moments *m)
{
    if (m->count < 2)
        return (double)NAN;
    const double mean = pe_moments_mean(m);
    return sqrt(fmax(0, m->squares / (double)m->count - mean * mean) * (double)m->count /
                (double)(m->count - 1));
}

#endif

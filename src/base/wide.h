/* SPDX-License-Identifier: MIT */
/*
 * wide.h: numbers of twice double's digits, for what is computed once and rounded once
 *
 * A wide number is the sum of two doubles, the second below the last bit of the first: about 104 bits. A
 * frequency that comes out of a power, a quotient and a blend, each rounded to double, is off by several of
 * its last bits, and a position multiplies that; carried in wide numbers it is rounded only at the end. long
 * double would be enough on some machines and is plain double on others; this is the same everywhere.
 *
 * Error  sum: 2^-104 of the larger operand; product, ratio: 2^-103; exp, log, power: 2^-90
 * Needs  a correctly rounded fma and no contraction (-ffp-contract=off)
 * Source Dekker, Numer. Math. 18 (1971) 224; exp by halving the argument six times, log by one step of
 * Newton's
 */
#ifndef PE_BASE_WIDE_H
#define PE_BASE_WIDE_H

#include <math.h>

typedef struct pe_wide {
    double hi, lo; /* hi is the number rounded to double */
} pe_wide;

static inline pe_wide pe_wide_of(double x)
{
    return (pe_wide){x, 0};
}

/* hi + lo, where lo is the smaller. What is no finite number has no second part. */
static inline pe_wide pe_wide_joined(double hi, double lo)
{
    const double sum = hi + lo;
    return isfinite(sum) ? (pe_wide){sum, lo - (sum - hi)} : (pe_wide){isfinite(hi) ? sum : hi, 0};
}

static inline pe_wide pe_wide_sum(pe_wide a, pe_wide b)
{
    const double sum = a.hi + b.hi, back = sum - a.hi;
    return pe_wide_joined(sum, (a.hi - (sum - back)) + (b.hi - back) + (a.lo + b.lo));
}

static inline pe_wide pe_wide_difference(pe_wide a, pe_wide b)
{
    return pe_wide_sum(a, (pe_wide){-b.hi, -b.lo});
}

static inline pe_wide pe_wide_product(pe_wide a, pe_wide b)
{
    const double product = a.hi * b.hi;
    return pe_wide_joined(product, fma(a.hi, b.hi, -product) + (a.hi * b.lo + a.lo * b.hi));
}

static inline pe_wide pe_wide_ratio(pe_wide a, pe_wide b)
{
    const double ratio = a.hi / b.hi, rest = fma(-ratio, b.hi, a.hi) + (a.lo - ratio * b.lo);
    return pe_wide_joined(ratio, rest / b.hi);
}

static inline int pe_wide_is_below(pe_wide a, pe_wide b)
{
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

pe_wide pe_wide_exp(pe_wide x);
pe_wide pe_wide_log(pe_wide x);              /* x > 0 */
pe_wide pe_wide_power(pe_wide x, pe_wide y); /* x > 0 */

#endif

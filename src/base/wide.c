/* SPDX-License-Identifier: MIT */
/* Powers of numbers of two doubles. Contract: wide.h. */
#include "base/wide.h"

static const pe_wide LN2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

enum { HALVINGS = 6, WIDE = 5, TERMS = 12 };

/* exp(r) for |r| < 0.006. Terms after the fifth are so small that double is enough. */
static pe_wide series(pe_wide r)
{
    static const pe_wide over[WIDE + 1] = {{1, 0}, /* 1/n! */
                                           {1, 0},
                                           {0.5, 0},
                                           {0x1.5555555555555p-3, 0x1.5555555555555p-57},
                                           {0x1.5555555555555p-5, 0x1.5555555555555p-59},
                                           {0x1.1111111111111p-7, 0x1.1111111111111p-63}};
    double               small          = 1;
    for (int n = TERMS; n > WIDE + 1; n--)
        small = 1 + r.hi / n * small;
    pe_wide sum = pe_wide_sum(over[WIDE], pe_wide_of(r.hi / (WIDE + 1) * over[WIDE].hi * small));
    for (int n = WIDE - 1; n >= 0; n--)
        sum = pe_wide_sum(over[n], pe_wide_product(r, sum));
    return sum;
}

pe_wide pe_wide_exp(pe_wide x)
{
    if (!(fabs(x.hi) < 740)) /* no normal number, or none at all */
        return pe_wide_of(exp(x.hi));
    const double  doublings = rint(x.hi / LN2.hi), part = ldexp(1, -HALVINGS);
    const pe_wide rest = pe_wide_difference(x, pe_wide_product(pe_wide_of(doublings), LN2));
    pe_wide       e    = series((pe_wide){rest.hi * part, rest.lo * part});
    for (int i = 0; i < HALVINGS; i++)
        e = pe_wide_product(e, e);
    return pe_wide_joined(ldexp(e.hi, (int)doublings), ldexp(e.lo, (int)doublings));
}

/* y = log(x) in double leaves x e^-y = 1 + t, and log(1 + t) = t - t^2/2 to 2^-140. */
pe_wide pe_wide_log(pe_wide x)
{
    const double  y = log(x.hi);
    const pe_wide t = pe_wide_difference(pe_wide_product(x, pe_wide_exp(pe_wide_of(-y))), pe_wide_of(1));
    return pe_wide_sum(pe_wide_of(y), pe_wide_joined(t.hi, t.lo - t.hi * t.hi / 2));
}

pe_wide pe_wide_power(pe_wide x, pe_wide y)
{
    if (y.hi == 0)
        return pe_wide_of(1);
    if (!(x.hi > 0 && isfinite(x.hi)))
        return pe_wide_of(pow(x.hi, y.hi));
    return pe_wide_exp(pe_wide_product(y, pe_wide_log(x)));
}

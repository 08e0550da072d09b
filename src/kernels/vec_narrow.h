/* SPDX-License-Identifier: MIT */
/* vec_narrow.h: floats as narrowing leaves them (vec_four.h), where that is a vector like any other. */
#ifndef PE_KERNELS_VEC_NARROW_H
#define PE_KERNELS_VEC_NARROW_H

typedef vec nvec;

static inline nvec nnarrow(dvec low, dvec high)
{
    return vkeep(vnarrow(low, high));
}

static inline nvec nset(float x)
{
    return vset(x);
}

static inline void nstore(float *p, nvec x)
{
    vstore(p, x);
}

static inline void nstream(float *p, nvec x)
{
    vstream(p, x);
}

static inline nvec nleast(nvec a, nvec b)
{
    return vleast(a, b);
}

static inline int nany_below(nvec x, float limit)
{
    return vany_below(x, limit);
}

#endif

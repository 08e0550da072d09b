/* SPDX-License-Identifier: MIT */
/* vec_narrow.h: what layers narrower than AVX-512 share, below their own. Meanings: vec_all.h. */
#ifndef PE_KERNELS_VEC_NARROW_H
#define PE_KERNELS_VEC_NARROW_H

static inline vec vcut(vec t)
{
    return vmax(vset(-127.0f), t);
}

static inline vec vscale2(vec x, vec k)
{
    const uvec power = (uvec)(k + vset(0x1.8p23f + 127))
                       << 23; /* k + 127: the last bits, then the exponent */
    return x * (vec)(power & (uvec)(k >= vset(LEAST_POWER)));
}

static inline void vsums(const vec x[], int rows, int keys, float *to, int64_t stride)
{
    for (int i = 0; i < rows * keys; i++)
        to[i / keys * stride + i % keys] = vhsum(x[i]);
}

typedef vec nvec; /* what narrowing leaves is a vector like any other */

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

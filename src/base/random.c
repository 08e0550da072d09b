/* SPDX-License-Identifier: MIT */
/* Philox 4x32-10 and what is made of it. Contract: random.h. */
#include "base/random.h"
#include "base/shared/pi.h"

#include <math.h>
#include <posenc/registry.h>

void pe_random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* FNV-1a over the name, then the finaliser of SplitMix64 so that near seeds give far keys. */
uint64_t pe_random_key(uint64_t seed, const char *name)
{
    uint64_t h = 0xCBF29CE484222325u ^ seed * 0x9E3779B97F4A7C15u;
    for (const char *c = name; c && *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001B3u;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
    return h ^ (h >> 31);
}

pe_random pe_random_stream(uint64_t seed, const char *name)
{
    return (pe_random){.key = pe_random_key(seed, name), .next = 0};
}

/* Two 53-bit fractions from one block. */
static void two_uniforms(uint64_t key, uint64_t index, double u[2])
{
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0, 0};
    const uint32_t words[2]   = {(uint32_t)key, (uint32_t)(key >> 32)};
    uint32_t       x[4];
    pe_random_philox(counter, words, x);
    for (int i = 0; i < 2; i++)
        u[i] = (double)((((uint64_t)x[2 * i] << 32) | x[2 * i + 1]) >> 11) * 0x1p-53;
}

double pe_random_uniform_at(uint64_t key, uint64_t index)
{
    double u[2];
    two_uniforms(key, index, u);
    return u[0];
}

/* Box-Muller on the block of `index`. */
static double normal_at(uint64_t key, uint64_t index)
{
    double u[2];
    two_uniforms(key, index, u);
    return sqrt(-2.0 * log1p(-u[0])) * cos(PE_TWO_PI * u[1]); /* 1 - u0 is never 0 */
}

double pe_random_uniform(pe_random *r)
{
    return pe_random_uniform_at(r->key, r->next++);
}

double pe_random_normal(pe_random *r)
{
    return normal_at(r->key, r->next++);
}

double posenc_random_uniform(uint64_t seed, const char *name, uint64_t index)
{
    return pe_random_uniform_at(pe_random_key(seed, name), index);
}

double posenc_random_normal(uint64_t seed, const char *name, uint64_t index)
{
    return normal_at(pe_random_key(seed, name), index);
}

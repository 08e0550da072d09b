/* SPDX-License-Identifier: MIT */
/*
 * random.h: counter-based random numbers
 *
 * Philox 4x32-10: number i of a stream is a function of (key, i) alone, so numbers can be drawn in any order,
 * on any thread, and a run can resume anywhere. The key is made of a seed and a name: two parameters never
 * share numbers, and adding one changes no other.
 * Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
 */
#ifndef PE_BASE_RANDOM_H
#define PE_BASE_RANDOM_H

#include <stdint.h>

typedef struct pe_random {
    uint64_t key;
    uint64_t next; /* counter of the next draw */
} pe_random;

/* Ten rounds of Philox on a 128-bit counter with a 64-bit key. */
void pe_random_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

uint64_t  pe_random_key(uint64_t seed, const char *name);
pe_random pe_random_stream(uint64_t seed, const char *name);

double pe_random_uniform_at(uint64_t key, uint64_t index); /* [0,1) with 53 bits */

double pe_random_uniform(pe_random *r);
double pe_random_normal(pe_random *r);

#endif

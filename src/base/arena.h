/* SPDX-License-Identifier: MIT */
/*
 * arena.h: one block of the caller carved into aligned pieces
 *
 * The function that lays pieces out at run time also runs once at prepare time, on an arena without memory:
 * then it only counts. So size and layout cannot disagree.
 */
#ifndef PE_BASE_ARENA_H
#define PE_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PE_ALIGN = 64 };

/* Larger pieces, and all together, count as so many bytes: more than any plan is made for, 2^62 or 2^30. */
#define PE_ARENA_MOST (SIZE_MAX / 4 + 1)

typedef struct pe_arena {
    char  *memory; /* NULL: counting only */
    size_t used;
} pe_arena;

/* `bytes` (rounded up to 64) from the arena; NULL while counting. */
static inline void *pe_arena_take(pe_arena *arena, size_t bytes)
{
    void        *piece = arena->memory ? arena->memory + arena->used : NULL;
    const size_t left  = PE_ARENA_MOST - arena->used;
    arena->used += bytes < left ? (bytes + PE_ALIGN - 1) / PE_ALIGN * PE_ALIGN : left;
    return piece;
}

/* Bytes of n elements. */
static inline size_t pe_arena_bytes(int64_t n, size_t each)
{
    return n >= 0 && (uint64_t)n <= PE_ARENA_MOST / each ? (size_t)n * each : PE_ARENA_MOST;
}

static inline double *pe_arena_doubles(pe_arena *arena, int64_t n)
{
    return (double *)pe_arena_take(arena, pe_arena_bytes(n, sizeof(double)));
}

static inline float *pe_arena_floats(pe_arena *arena, int64_t n)
{
    return (float *)pe_arena_take(arena, pe_arena_bytes(n, sizeof(float)));
}

/* The same, all 0. */
static inline double *pe_arena_zeros(pe_arena *arena, int64_t n)
{
    double *x = pe_arena_doubles(arena, n);
    return x ? memset(x, 0, (size_t)n * sizeof *x) : NULL;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * run_positions.c: where the windows of training stand
 *
 * Usually at 0 .. L - 1. A rule spreads them over 0 .. N - 1, so that positions beyond L were seen before
 * they are read:
 *
 *     random:N   L of the N, without replacement, in their order: Ruoss et al. 2023, arXiv:2305.16843
 *     pose:N     two halves, the second further on by a draw of 0 .. N - L: Zhu et al. 2023,
 *                arXiv:2309.10400
 *     shift:N    all further on by a draw of 0 .. N - L: Kiyono et al. 2021, arXiv:2109.05644
 *
 * Each window has a draw of its own (the code of random draws once per batch, its paper per sequence). What
 * is read afterwards stands at 0, 1, 2 ... as ever.
 *
 * Numbers are counter-based: stream "positions", number (step * batch + row) * N and those after it.
 */
#include "base/status.h"
#include "train/run/run.h"

#include <posenc/registry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"", "random", "pose", "shift"}; /* ORDER pe_run_places_kind */

enum { KINDS = sizeof names / sizeof *names };

posenc_status pe_run_positions_read(pe_run_places *places, const char *rule, int64_t L, posenc_error *err)
{
    const char *colon = strchr(rule, ':');
    char       *end   = NULL;
    *places           = (pe_run_places){.kind = PE_IN_ORDER};
    for (int k = 1; k < KINDS && colon; k++)
        if (strlen(names[k]) == (size_t)(colon - rule) && !strncmp(rule, names[k], (size_t)(colon - rule)))
            places->kind = (pe_run_places_kind)k;
    if (places->kind == PE_IN_ORDER)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "compare: --positions is \"%.40s\"; it must be random:N, pose:N or shift:N", rule);
    places->count = strtoll(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end || places->count < L || places->count > PE_MOST_PLACES)
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "compare: --positions is \"%.40s\"; N must be a whole number from --length, %lld, to %d", rule,
            (long long)L, PE_MOST_PLACES);
    return POSENC_OK;
}

const char *pe_run_positions_name(pe_run_places_kind kind)
{
    return names[kind];
}

/* `length` of 0 .. N - 1, each set of them as likely, ascending: one after the other is taken with the
   probability that what is wanted has of what is left (Knuth, volume 2, 3.4.2, algorithm S). */
static void draw_sorted(int64_t *to, int64_t length, int64_t N, uint64_t seed, uint64_t first)
{
    int64_t taken = 0;
    for (int64_t p = 0; p < N && taken < length; p++)
        if (posenc_random_uniform(seed, "positions", first + (uint64_t)p) * (double)(N - p) <
            (double)(length - taken))
            to[taken++] = p;
}

void pe_run_positions_draw(int64_t *to, const pe_run_places *places, int64_t length, uint64_t seed,
                           int64_t window)
{
    const int64_t  N     = places->count > length ? places->count : length;
    const uint64_t first = (uint64_t)window * (uint64_t)N;
    const int64_t  on = (int64_t)(posenc_random_uniform(seed, "positions", first) * (double)(N - length + 1));
    if (places->kind == PE_AT_RANDOM)
        draw_sorted(to, length, N, seed, first);
    for (int64_t p = 0; p < length && places->kind != PE_AT_RANDOM; p++)
        to[p] = p + (places->kind == PE_AT_SHIFT || p >= length / 2 ? on : 0);
}

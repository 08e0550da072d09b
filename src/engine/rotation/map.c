/* SPDX-License-Identifier: MIT */
/*
 * map.c: where pairs of tokens are turned. Contract: map.h.
 *
 *   class      0                         1                          2
 *   rerope     |t| < w: P; P             t >= w: w; 0               t <= -w: -w; 0
 *   leaky      |t| < w: P; P             (P + w (f-1))/f; P/f       (P - w (f-1))/f; P/f
 *   extend     t < w: P; P               t >= w: P//G + o; P//G
 *   dca        n_i <= n_j: m; m          n_i = n_j + 1:             else:
 *                                        min(m + c, chunk); m       min(2 c - 1, chunk); m
 *
 * query; key. dca: c = chunk - local, n = P // c, m = P mod c.
 *
 * Source   ReRoPE, Leaky ReRoPE: Su 2023, bojone/rerope; Self-Extend: Jin et al. 2024, arXiv:2401.01325; DCA:
 *          An et al. 2024, arXiv:2402.17463
 */
#include "engine/rotation/map.h"

#include <math.h>

int pe_map_forms(const pe_map *map, int keys)
{
    switch (map->kind) {
    case PE_MAP_NONE: return 1;
    case PE_SELF_EXTEND: return 2;
    case PE_DCA: return keys ? 1 : 3;
    default: return keys ? 2 : 3;
    }
}

static double period(const pe_map *map)
{
    return map->chunk - map->local;
}

static int class_by_chunks(double apart)
{
    return apart <= 0 ? 0 : apart == 1 ? 1 : 2;
}

int pe_map_class(const pe_map *map, double q, double k)
{
    const double t = q - k;
    switch (map->kind) {
    case PE_MAP_NONE: return 0;
    case PE_SELF_EXTEND: return t >= map->window;
    case PE_DCA: return class_by_chunks(floor(q / period(map)) - floor(k / period(map)));
    default: return t >= map->window ? 1 : t <= -map->window ? 2 : 0;
    }
}

int pe_map_key_form(const pe_map *map, int class_of_pair)
{
    return class_of_pair > 0 && pe_map_forms(map, 1) > 1;
}

double pe_map_divisor(const pe_map *map, int form)
{
    return map->kind == PE_LEAKY_REROPE && form > 0 ? map->factor : 1;
}

double pe_map_place(const pe_map *map, int keys, int form, double P)
{
    return pe_map_steps(map, keys, form, P) / pe_map_divisor(map, form);
}

double pe_map_steps(const pe_map *map, int keys, int form, double P)
{
    const double w = map->window, f = map->factor, c = period(map), far = form == 2 ? -w : w;
    switch (map->kind) {
    case PE_MAP_NONE: return P;
    case PE_REROPE: return form == 0 ? P : keys ? 0 : far;
    case PE_LEAKY_REROPE: return form == 0 || keys ? P : P + far * (f - 1);
    case PE_SELF_EXTEND: return form == 0 ? P : floor(P / f) + (keys ? 0 : map->offset);
    case PE_DCA:
        P -= c * floor(P / c);
        return form == 0 ? P : fmin(form == 1 ? P + c : 2 * c - 1, map->chunk);
    }
    return P;
}

unsigned pe_map_met(const pe_map *map, const double q[2], const double k[2], double t_low, double t_high)
{
    const double low = fmax(q[0] - k[1], t_low), high = fmin(q[1] - k[0], t_high), w = map->window;
    unsigned     met = 0;
    if (map->kind == PE_DCA) {
        const double c     = period(map);
        const int    first = class_by_chunks(floor(q[0] / c) - floor(k[1] / c)),
                  last     = class_by_chunks(floor(q[1] / c) - floor(k[0] / c));
        for (int n = first; n <= last; n++)
            met |= 1U << n;
        return met;
    }
    if (low < w && (high > -w || map->kind == PE_SELF_EXTEND))
        met |= 1;
    if (high >= w)
        met |= 2;
    if (low <= -w && map->kind != PE_SELF_EXTEND)
        met |= 4;
    return met ? met : 1;
}

/* SPDX-License-Identifier: MIT */
/* Which pair follows which coordinate: the expected rule, others, coordinates taken for each other. */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RULES = 40 };

/* Which pair follows which coordinate. */
typedef struct follow {
    char     settings[96];
    int      axes[PE_MOST_AXES];
    unsigned departs;
    double   disorder;
} follow;

static void add_follow(follow *list, int *count, const pe_search *s, const char *rule, unsigned departs)
{
    if (*count == MOST_RULES)
        return;
    follow *f = &list[(*count)++];
    *f        = (follow){.departs = departs};
    snprintf(f->settings, sizeof f->settings, "%s%s", *rule ? "axis_rule=" : "", rule);
    memcpy(f->axes, s->axes, sizeof f->axes);
}

/* How well pair m turns with one speed of coordinate n. */
static double order_of(const pe_paired *q, int n, int64_t m)
{
    const int64_t M = q->pairing.dim / 2;
    return q->of_axes[3 * M * n + 2 * M + m];
}

/* Of three coordinates that follow each other, where the second and third begin. */
static void find_blocks(int64_t first[2], const pe_paired *q)
{
    const int64_t M    = q->pairing.dim / 2;
    double        best = -1;
    for (int64_t i = 1; i < M - 1; i++)
        for (int64_t k = i + 1; k < M; k++) {
            double all = 0;
            for (int64_t m = 0; m < M; m++)
                all += order_of(q, m < i ? 0 : m < k ? 1 : 2, m);
            if (all > best) {
                best     = all;
                first[0] = i;
                first[1] = k;
            }
        }
}

/* Every third pair follows coordinate n, up to how many? */
static int64_t find_count(const pe_paired *q, int n)
{
    const int64_t M    = q->pairing.dim / 2;
    double        best = 0, sum = 0;
    int64_t       count = 0;
    for (int64_t m = n; m < M; m += 3) {
        sum += order_of(q, n, m) - order_of(q, 0, m);
        if (sum > best) {
            best  = sum;
            count = m / 3 + 1;
        }
    }
    return count;
}

/* The two rules of sections with those that the pairs show. */
static void add_sections(follow *list, int *count, const pe_search *s, int p)
{
    const pe_paired *q        = &s->pairings[p];
    const int64_t    M        = q->pairing.dim / 2;
    int64_t          first[2] = {1, 2};
    char             rule[64];
    if (s->N != 3 || !q->of_axes || M < 3 || M > 256)
        return;
    find_blocks(first, q);
    snprintf(rule, sizeof rule, "sections sections=%d:%d:%d", (int)first[0], (int)(first[1] - first[0]),
             (int)(M - first[1]));
    add_follow(list, count, s, rule, 1u << PE_AXES);
    const int64_t high = find_count(q, 1), wide = find_count(q, 2);
    snprintf(rule, sizeof rule, "interleaved_sections sections=%d:%d:%d", (int)(M - high - wide), (int)high,
             (int)wide);
    add_follow(list, count, s, rule, 1u << PE_AXES);
}

/* The expected rule, others, the expected one with coordinates taken for each other, and other sections. */
static int list_follows(follow *list, pe_search *s, int p)
{
    static const char *const rules[] = {"sections",
                                        "interleaved_sections",
                                        "interleaved_sections_ggml",
                                        "alternate_sections",
                                        "balanced",
                                        "axial",
                                        "axial_alternate",
                                        "alternate"};
    char                     value[64];
    int                      count = 0;
    pe_spec_said(value, sizeof value, s->base, "axis_rule");
    add_follow(list, &count, s, "", 0);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i], *value ? value : "sections"))
            add_follow(list, &count, s, rules[i], 1u << PE_AXES);
    for (int way = 1; way < 27 && s->N <= 3; way++) {
        int is_identity = 1, is_possible = 1;
        for (int n = 0, left_over = way; n < s->N; n++, left_over /= 3) {
            s->axes[n] = (n + left_over) % 3;
            is_identity &= s->axes[n] == n;
            is_possible &= s->axes[n] < s->N;
        }
        if (is_possible && !is_identity)
            add_follow(list, &count, s, "", 1u << PE_AXES);
    }
    for (int n = 0; n < PE_MOST_AXES; n++)
        s->axes[n] = n;
    add_sections(list, &count, s, p);
    return count;
}

/* A rule by which pairs turn with no one speed is not tried: that would take long, and in vain. */
void pe_axes_each(pe_search *s, int p, pe_axes_fn *try)
{
    follow    list[MOST_RULES];
    double    least = 1;
    const int count = s->N > 1 ? list_follows(list, s, p) : 0;
    if (s->N == 1)
        try(s, p, "", 0);
    for (int i = 0; i < count; i++) {
        memcpy(s->axes, list[i].axes, sizeof s->axes);
        list[i].disorder = pe_numbers_of_axes(s, p, list[i].settings);
        least            = fmin(least, list[i].disorder);
    }
    for (int i = 0; i < count; i++) {
        memcpy(s->axes, list[i].axes, sizeof s->axes);
        if (list[i].disorder <= 3 * least + 0.02)
            try(s, p, list[i].settings, list[i].departs);
    }
    for (int n = 0; n < PE_MOST_AXES; n++)
        s->axes[n] = n;
}
